/* Any body: decoded, or refused with a line of text; a decoded payload survives encoding. jansson
 * agrees on what is JSON, and on its texts. */
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/str.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/monitoring/payload.h>

#include "fuzz.h"

static void check_alert(const struct as_alert *a, const struct as_alert *b)
{
    if (a->problem) { /* nothing else of it counts */
        FUZZ_CHECK(*a->problem && !strchr(a->problem, '\n'));
        FUZZ_CHECK(a->labels->count == 0 && a->annotations->count == 0);
        return;
    }
    FUZZ_CHECK(a->status == b->status);
    FUZZ_CHECK(a->fingerprint == b->fingerprint);
    FUZZ_CHECK(as_digest_compare(&a->digest, &b->digest) == 0);
    FUZZ_CHECK(a->starts_at.us == b->starts_at.us);
    FUZZ_CHECK(a->ends_at.us == b->ends_at.us);
    FUZZ_CHECK(as_labels_equal(a->labels, b->labels));
    FUZZ_CHECK(as_labels_equal(a->annotations, b->annotations));
}

static void check_round_trip(const struct as_notification *first)
{
    struct as_buf body = AS_BUF_INIT((size_t)1 << 26);
    struct as_notification *second = NULL;
    struct as_error error = AS_ERROR_INIT;

    as_payload_encode(first, &body);
    FUZZ_CHECK(as_buf_check(&body) == 0);
    FUZZ_CHECK(as_payload_decode(body.data, body.size, &second, &error) == 0);
    FUZZ_CHECK(strcmp(first->receiver, second->receiver) == 0);
    FUZZ_CHECK(strcmp(first->group_key, second->group_key) == 0);
    FUZZ_CHECK(strcmp(first->reason, second->reason) == 0);
    FUZZ_CHECK(first->truncated == second->truncated);
    FUZZ_CHECK(first->alert_count == second->alert_count);
    for (size_t i = 0; i < first->alert_count; i++)
        check_alert(&first->alerts[i], &second->alerts[i]);
    as_notification_free(second);
    as_buf_deinit(&body);
}

static void check_labels(const struct as_labels *labels, const json_t *object)
{
    FUZZ_CHECK(labels->count == json_object_size(object));
    for (uint32_t i = 0; i < labels->count; i++) {
        const json_t *value = json_object_get(object, labels->items[i].name);
        FUZZ_CHECK(json_is_string(value));
        FUZZ_CHECK(strcmp(labels->items[i].value, json_string_value(value)) == 0);
    }
}

/* NULs apart: escaped, jansson refuses the whole document; as bytes, it overlooks them behind
 * numbers. */
static void check_against_jansson(const char *json, size_t size, const struct as_notification *read,
                                  const struct as_error *error)
{
    json_error_t problem;
    const bool is_json = read || strncmp(error->text, "not JSON", 8) != 0;
    json_t *root =
        json_loadb(json, size, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &problem);
    const enum json_error_code code = root ? json_error_unknown : json_error_code(&problem);
    const json_t *alerts = json_object_get(root, "alerts");
    if (code == json_error_null_character || code == json_error_null_byte_in_key)
        return;
    FUZZ_CHECK(is_json == (root != NULL) || strstr(error->text, "too many values") ||
               memchr(json, 0, size));
    for (size_t i = 0; read && i < read->alert_count; i++) {
        const json_t *alert = json_array_get(alerts, i);
        if (read->alerts[i].problem)
            continue;
        check_labels(read->alerts[i].labels, json_object_get(alert, "labels"));
        check_labels(read->alerts[i].annotations, json_object_get(alert, "annotations"));
    }
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_notification *notification = NULL;
    struct as_error error = AS_ERROR_INIT;
    int r = as_payload_decode((const char *)data, size, &notification, &error);

    check_against_jansson((const char *)data, size, notification, &error);
    if (r < 0) {
        FUZZ_CHECK(r == -EINVAL && !notification);
        FUZZ_CHECK(*error.text && !strchr(error.text, '\n'));
        return 0;
    }
    /* quoting makes a receiver's name longer, perhaps too long */
    if (strlen(notification->receiver) <= AS_PAYLOAD_TEXT_MAX / 2)
        check_round_trip(notification);
    as_notification_free(notification);
    return 0;
}
