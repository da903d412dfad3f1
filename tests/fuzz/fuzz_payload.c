/* Any body: decoded or refused with a line of text; what was decoded survives encoding. */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/wire/limits.h>
#include <alertscaler/wire/payload.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_notification *notification = NULL;
    struct as_error error = AS_ERROR_INIT;
    int r = as_payload_decode((const char *)data, size, &notification, &error);

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
