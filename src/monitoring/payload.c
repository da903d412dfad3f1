/*
 * The webhook payload. Decoding makes a tree in one pass, then walks it once; the result copies all
 * it needs. Errors name the place by the path of members.
 */
#include <alertscaler/monitoring/payload.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/doc/json_writer.h>

#include "alert_reader.h"

#define YEAR_ONE    ((as_wall_time){-INT64_C(62135596800) * AS_US_PER_S}) /* no end */
#define COUNT_MAX   1e15 /* what a double holds exactly */
#define OPEN_STATUS "firing"

static int copy_receiver(struct alert_reader *reader, const struct tree_value *root,
                         char **text_out)
{
    const char *text = NULL;
    int status = alert_read_text(reader, root, "receiver", AS_PAYLOAD_RECEIVER_MAX, &text);

    if (status == 0)
        *text_out = as_xstrdup(text ? text : "");
    return status;
}

/* NULL where there is none. */
static char *copy_url(const struct tree_value *object, const char *member)
{
    const char *url = alert_find_url(object, member);

    return url ? as_xstrdup(url) : NULL;
}

/* It contains labels of alerts, which may be long. */
static int copy_group_key(struct alert_reader *reader, const struct tree_value *root,
                          char **text_out)
{
    const struct tree_value *value = alert_find(root, "groupKey");
    const char *text = tree_get_text(value);

    if (value && !text)
        return alert_fail(reader, "groupKey", NULL, "expected a string, got %s",
                          alert_get_type_word(value));
    text = text ? text : "";
    *text_out = as_xstrndup(text, as_str_cut_utf8(text, strlen(text), AS_PAYLOAD_TEXT_MAX));
    return 0;
}

static int read_status(struct alert_reader *reader, const struct tree_value *object,
                       enum as_alert_status *status_out)
{
    const char *text = NULL;
    int status = alert_read_text(reader, object, "status", AS_PAYLOAD_TEXT_MAX, &text);

    if (status < 0)
        return status;
    if (!text)
        return alert_fail(reader, "status", NULL, "missing");
    if (strcmp(text, OPEN_STATUS) == 0)
        *status_out = AS_ALERT_FIRING;
    else if (strcmp(text, "resolved") == 0)
        *status_out = AS_ALERT_RESOLVED;
    else
        return alert_fail_with_text(reader, "status", "\"firing\" or \"resolved\"", text);
    return 0;
}

static int read_alert(struct alert_reader *reader, const struct tree_value *object,
                      struct as_alert *alert)
{
    if (object->kind != TREE_OBJECT)
        return alert_fail(reader, "", NULL, "expected an object, got %s",
                          alert_get_type_word(object));
    if (!alert_find(object, "labels"))
        return alert_fail(reader, "labels", NULL, "missing");

    alert->ends_at = YEAR_ONE;
    int status = read_status(reader, object, &alert->status);
    if (status == 0)
        status = alert_read_labels(reader, object, "labels", &alert->labels);
    if (status == 0)
        status = alert_read_labels(reader, object, "annotations", &alert->annotations);
    if (status == 0)
        status = alert_read_time(reader, object, "startsAt", true, &alert->starts_at);
    if (status == 0)
        status = alert_read_time(reader, object, "endsAt", false, &alert->ends_at);
    if (status == 0)
        status =
            alert_read_identity(reader, object, alert->labels, &alert->digest, &alert->fingerprint);
    if (status == 0)
        alert->generator_url = copy_url(object, "generatorURL");
    return status;
}

/* Its outcome says why; the other alerts are accepted. */
static int give_up(struct alert_reader *reader, struct as_alert *alert)
{
    char *problem = NULL;
    int status = alert_give_up(reader, &problem);
    if (status < 0)
        return status;
    as_labels_free(alert->labels);
    as_labels_free(alert->annotations);
    *alert = (struct as_alert){.problem = problem, .status = alert->status};
    if (as_labels_new(NULL, 0, &alert->labels) < 0 ||
        as_labels_new(NULL, 0, &alert->annotations) < 0)
        abort(); /* nothing is not too much */
    return 0;
}

static int read_alerts(struct alert_reader *reader, const struct tree_value *array,
                       struct as_notification *result)
{
    const size_t count = array->size;

    if (array->kind != TREE_ARRAY)
        return alert_fail(reader, "alerts", NULL, "expected an array, got %s",
                          alert_get_type_word(array));
    if (count > AS_PAYLOAD_ALERTS_MAX)
        return alert_fail(reader, "alerts", NULL, "more than %d", AS_PAYLOAD_ALERTS_MAX);
    result->alerts = calloc(count ? count : 1, sizeof(*result->alerts));
    if (!result->alerts)
        return -ENOMEM;
    for (const struct tree_value *object = array->first; object; object = object->next) {
        struct as_alert *alert = &result->alerts[result->alert_count];
        alert_enter(reader, result->alert_count++); /* so that a half-read alert is freed too */
        int status = read_alert(reader, object, alert);
        if (status == -EINVAL)
            status = give_up(reader, alert);
        if (status < 0)
            return status;
    }
    reader->in_alert = false;
    return 0;
}

static int read_truncated(struct alert_reader *reader, const struct tree_value *root,
                          uint64_t *truncated_out)
{
    const struct tree_value *value = alert_find(root, "truncatedAlerts");

    double number;

    if (!value)
        return 0;
    if (!tree_get_double(value, &number) || number < 0 || number > COUNT_MAX ||
        number != floor(number))
        return alert_fail(reader, "truncatedAlerts", NULL, "expected a whole number not below 0");
    *truncated_out = (uint64_t)number;
    return 0;
}

/* Go's regexp.QuoteMeta puts a backslash before each of these. */
static const char quoted_by_go[] = "\\.+*?()|[]{}^$";

static void unquote(char *text)
{
    char *out = text;

    for (const char *at = text; *at; at++) {
        if (*at == '\\' && at[1] && strchr(quoted_by_go, at[1]))
            at++;
        *out++ = *at;
    }
    *out = '\0';
}

/* A sender may be configured to send anything: for another document the error says what to do. */
static int check_kind(struct alert_reader *reader, const struct tree_value *root)
{
    const char *missing = NULL;

    if (root->kind != TREE_OBJECT)
        return alert_fail(reader, "", NULL, "expected a JSON object, got %s",
                          alert_get_type_word(root));
    if (!alert_find(root, "alerts"))
        missing = "alerts";
    else if (!alert_find(root, "version"))
        missing = "version";
    if (!missing)
        return 0;
    return alert_fail(reader, "", NULL,
                      "no \"%s\": not Alertmanager's webhook payload; remove the custom `payload` "
                      "from the sender's webhook configuration",
                      missing);
}

/* Only displayed: a reason that is no text is ignored. */
static const char *get_reason(const struct tree_value *root)
{
    const struct tree_value *value = alert_find(root, "notification_reason");
    const char *text = tree_get_text(value);
    return text && value->size <= AS_PAYLOAD_TEXT_MAX ? text : "";
}

static int read_root(struct alert_reader *reader, const struct tree_value *root,
                     struct as_notification *result)
{
    const char *version = NULL;
    int status = check_kind(reader, root);

    if (status == 0)
        status = alert_read_text(reader, root, "version", AS_PAYLOAD_TEXT_MAX, &version);
    if (status == 0)
        status = copy_receiver(reader, root, &result->receiver);
    if (status == 0)
        status = copy_group_key(reader, root, &result->group_key);
    if (status == 0)
        status = read_truncated(reader, root, &result->truncated);
    if (status == 0)
        status = read_alerts(reader, alert_find(root, "alerts"), result);
    if (status == 0)
        unquote(result->receiver);
    result->external_url = copy_url(root, "externalURL");
    result->reason = as_xstrdup(get_reason(root));
    return status;
}

int as_payload_decode(const char *body, size_t size, struct as_notification **notification_out,
                      struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(AS_DOCUMENT_MEMORY_MAX(size));
    AS_CLEANUP(as_labels_hasher_free_p)
    struct as_labels_hasher *hasher = as_labels_hasher_new();
    struct alert_reader reader;
    int status = alert_load(&reader, &tree, hasher, body, size, error);
    if (status < 0)
        return status;
    AS_CLEANUP(as_notification_free_p)
    struct as_notification *result = as_xcalloc(1, sizeof(*result));
    status = read_root(&reader, tree.root, result);
    if (status < 0)
        return status;
    result->remote = as_xstrdup("");
    result->credential = as_xstrdup("");
    result->traceparent = as_xstrdup("");
    *notification_out = result;
    result = NULL;
    return 0;
}

static void write_labels(struct as_json_writer *json, const char *member,
                         const struct as_labels *labels)
{
    as_json_write_key(json, member);
    as_json_begin_object(json);
    for (uint32_t i = 0; i < labels->count; i++)
        as_json_write_member(json, labels->items[i].name, labels->items[i].value);
    as_json_end_object(json);
}

static void write_time(struct as_json_writer *json, const char *member, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];

    as_wall_time_print_short(time, text);
    as_json_write_member(json, member, text);
}

static const char *get_status_word(enum as_alert_status status)
{
    return status == AS_ALERT_FIRING ? OPEN_STATUS : "resolved";
}

static void write_alert(struct as_json_writer *json, const struct as_alert *alert)
{
    as_json_begin_object(json);
    as_json_write_member(json, "status", get_status_word(alert->status));
    write_labels(json, "labels", alert->labels);
    write_labels(json, "annotations", alert->annotations);
    write_time(json, "startsAt", alert->starts_at);
    write_time(json, "endsAt", alert->ends_at);
    as_json_write_member(json, "generatorURL", alert->generator_url ? alert->generator_url : "");
    as_json_write_key(json, "fingerprint");
    as_json_write_hex(json, alert->fingerprint);
    as_json_end_object(json);
}

static const struct as_labels *get_labels(const struct as_alert *alert, bool of_annotations)
{
    return of_annotations ? alert->annotations : alert->labels;
}

static bool is_common(const struct as_notification *notification, const struct as_label *label,
                      bool of_annotations)
{
    for (size_t i = 1; i < notification->alert_count; i++) {
        const struct as_labels *others = get_labels(&notification->alerts[i], of_annotations);
        if (strcmp(as_labels_get(others, label->name), label->value) != 0)
            return false;
    }
    return true;
}

/* Labels or annotations that all alerts share; if `name` is given, only that one. */
static void write_common(struct as_json_writer *json, const char *member,
                         const struct as_notification *notification, bool of_annotations,
                         const char *name)
{
    as_json_write_key(json, member);
    as_json_begin_object(json);
    if (notification->alert_count > 0) {
        const struct as_labels *first = get_labels(&notification->alerts[0], of_annotations);
        for (uint32_t i = 0; i < first->count; i++) {
            const struct as_label *label = &first->items[i];
            if ((!name || strcmp(name, label->name) == 0) &&
                is_common(notification, label, of_annotations))
                as_json_write_member(json, label->name, label->value);
        }
    }
    as_json_end_object(json);
}

static void write_receiver(struct as_json_writer *json, const char *receiver)
{
    struct as_buf quoted = AS_BUF_INIT(SIZE_MAX / 2);

    for (const char *c = receiver; *c; c++) {
        if (strchr(quoted_by_go, *c))
            as_buf_append_char(&quoted, '\\');
        as_buf_append_char(&quoted, *c);
    }
    as_json_write_key(json, "receiver");
    as_json_write_string_size(json, quoted.data, quoted.size);
    as_buf_deinit(&quoted);
}

void as_payload_encode(const struct as_notification *notification, struct as_buf *out)
{
    struct as_json_writer json;
    enum as_alert_status status = AS_ALERT_RESOLVED;

    for (size_t i = 0; i < notification->alert_count; i++) {
        if (notification->alerts[i].status == AS_ALERT_FIRING)
            status = AS_ALERT_FIRING;
    }
    as_json_init(&json, out, AS_JSON_ANY_ORDER | AS_JSON_HTML);
    as_json_begin_object(&json);
    write_receiver(&json, notification->receiver);
    as_json_write_member(&json, "status", get_status_word(status));
    as_json_write_key(&json, "alerts");
    as_json_begin_array(&json);
    for (size_t i = 0; i < notification->alert_count; i++)
        write_alert(&json, &notification->alerts[i]);
    as_json_end_array(&json);
    write_common(&json, "groupLabels", notification, false, "alertname");
    write_common(&json, "commonLabels", notification, false, NULL);
    write_common(&json, "commonAnnotations", notification, true, NULL);
    as_json_write_member(&json, "externalURL",
                         notification->external_url ? notification->external_url : "");
    as_json_write_member(&json, "version", "4");
    as_json_write_member(&json, "groupKey", notification->group_key);
    as_json_write_member_i64(&json, "truncatedAlerts", (int64_t)notification->truncated);
    if (*notification->reason)
        as_json_write_member(&json, "notification_reason", notification->reason);
    as_json_end_object(&json);
    as_buf_append_char(out, '\n');
}
