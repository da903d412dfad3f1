/*
 * The log has no annotations, URLs and ends of alerts; a resolved alert ended at the time of its
 * record.
 */
#include "replay_notification.h"

#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/log/record.h>
#include <alertscaler/model/labels_digest.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/tools/record_text.h>

#include "log_reader.h"
#include "replay_values.h"

#define YEAR_1_US INT64_C(-62135596800000000) /* Alertmanager's value for no end */

static struct as_labels *make_labels(json_t *object)
{
    const size_t count = json_object_size(object);
    struct as_label *pairs = as_xcalloc(count + 1, sizeof(*pairs));
    struct as_labels *labels = NULL;
    const char *key;
    json_t *value;
    size_t used = 0;

    json_object_foreach(object, key, value)
    {
        if (json_is_string(value))
            pairs[used++] = (struct as_label){key, json_string_value(value)};
    }
    if (as_labels_new(pairs, used, &labels) != 0 && as_labels_new(NULL, 0, &labels) != 0)
        labels = NULL; /* impossible: 16 MiB of labels are never accepted */
    as_free_p(&pairs);
    return labels;
}

static void fill_alert(struct as_alert *alert, const json_t *record, bool is_firing,
                       as_wall_time at)
{
    const char *fingerprint = as_record_get_text(record, "fingerprint");
    const char *digest = as_record_get_text(record, "digest");
    const char *starts_at = as_record_get_text(record, "startsAt");

    alert->status = is_firing ? AS_ALERT_FIRING : AS_ALERT_RESOLVED;
    alert->labels = make_labels(json_object_get(record, "labels"));
    alert->annotations = replay_values_make_annotations(as_record_get_incident(record));
    if (as_number_parse_u64_hex(fingerprint, strlen(fingerprint), &alert->fingerprint) != 0)
        alert->fingerprint = as_labels_get_fingerprint(alert->labels);
    if (!as_digest_parse(digest, strlen(digest), &alert->digest)) /* from an earlier version */
        alert->digest = as_labels_get_digest(alert->labels);
    if (as_wall_time_parse(starts_at, strlen(starts_at), &alert->starts_at) != 0)
        alert->starts_at = at;
    alert->ends_at = is_firing ? (as_wall_time){YEAR_1_US} : at;
}

static bool is_forbidden(const json_t *alert)
{
    return strcmp(as_record_get_text(alert, "outcome"), as_reason_get_word(AS_REASON_FORBIDDEN)) ==
           0;
}

size_t replay_notification_count_forbidden(const json_t *record)
{
    const json_t *alert;
    size_t i, count = 0;

    json_array_foreach(json_object_get(record, "alerts"), i, alert) count += is_forbidden(alert);
    return count;
}

struct as_notification *replay_notification_make(const json_t *record,
                                                 const struct replay_scopes *scopes)
{
    struct as_notification *notification = as_xcalloc(1, sizeof(*notification));
    const json_t *alerts = json_object_get(record, "alerts");
    const bool is_incident = !json_is_array(alerts);
    const size_t count = is_incident ? 1 : json_array_size(alerts);
    const char *credential = is_incident ? "" : as_record_get_text(record, "credential");
    const bool is_known = replay_scopes_know(scopes, credential);
    as_wall_time at = {0};

    if (as_record_get_time(record, &at, NULL) != 0)
        at = (as_wall_time){0};
    memcpy(notification->id, as_record_get_text(record, "id"),
           strnlen(as_record_get_text(record, "id"), AS_ULID_SIZE - 1));
    notification->receiver = as_xstrdup(as_record_get_text(record, "receiver"));
    notification->group_key = as_xstrdup(as_record_get_text(record, "groupKey"));
    notification->reason = as_xstrdup(as_record_get_text(record, "notification_reason"));
    notification->remote = as_xstrdup("");
    notification->credential = as_xstrdup(is_known ? credential : "");
    notification->traceparent = as_xstrdup("");
    notification->alerts = as_xcalloc(count + 1, sizeof(*notification->alerts));
    for (size_t i = 0; i < count; i++) {
        const json_t *alert = is_incident ? record : json_array_get(alerts, i);
        const bool is_firing = is_incident
                                   ? strcmp(as_record_get_text(record, "event"), "opened") == 0
                                   : strcmp(as_record_get_text(alert, "status"), "firing") == 0;
        if (strcmp(as_record_get_text(alert, "outcome"), as_reason_get_word(AS_REASON_INVALID)) ==
            0)
            continue;
        if (is_known || is_incident || !is_forbidden(alert))
            fill_alert(&notification->alerts[notification->alert_count++], alert, is_firing, at);
    }
    return notification;
}

static bool is_cut(json_t *labels)
{
    const char *key;
    json_t *value;

    json_object_foreach(labels, key, value)
    {
        const size_t size = json_string_length(value), end = strlen(AS_RECORD_CUT);
        if (size > end && strcmp(json_string_value(value) + size - end, AS_RECORD_CUT) == 0)
            return true;
    }
    return false;
}

bool replay_notification_is_cut(const json_t *record)
{
    const json_t *alert;
    size_t i;

    json_array_foreach(json_object_get(record, "alerts"), i, alert)
    {
        if (is_cut(json_object_get(alert, "labels")))
            return true;
    }
    return false;
}
