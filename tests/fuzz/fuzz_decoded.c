/* Bodies, separated by bytes of 0xFF, through a small cache, twice: each result equals that of
 * decoding alone. The first byte sets the cache's size. */
#include <string.h>

#include <alertscaler/monitoring/payload.h>
#include <alertscaler/runtime/requests.h>

#include "fuzz.h"

static void check_body(struct as_decoded *decoded, const char *body, size_t size)
{
    struct as_notification *known = NULL, *fresh = NULL;
    struct as_error known_error = AS_ERROR_INIT, error = AS_ERROR_INIT;
    const int r = as_payload_decode(body, size, &fresh, &error);

    FUZZ_CHECK(as_decoded_get(decoded, body, size, NULL, &known, &known_error) == r);
    FUZZ_CHECK(strcmp(known_error.text, error.text) == 0);
    if (r < 0)
        return;
    struct as_buf a = AS_BUF_INIT((size_t)1 << 26), b = AS_BUF_INIT((size_t)1 << 26);
    as_payload_encode(known, &a);
    as_payload_encode(fresh, &b);
    FUZZ_CHECK(a.size == b.size && memcmp(a.data, b.data, a.size) == 0);
    FUZZ_CHECK(known->body_size == size);
    for (size_t i = 0; i < fresh->alert_count; i++) {
        const struct as_alert *x = &known->alerts[i], *y = &fresh->alerts[i];
        FUZZ_CHECK(as_digest_compare(&x->digest, &y->digest) == 0);
        FUZZ_CHECK(!x->problem == !y->problem);
        FUZZ_CHECK(!x->problem || strcmp(x->problem, y->problem) == 0);
    }
    as_buf_deinit(&a);
    as_buf_deinit(&b);
    as_notification_free(fresh);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct as_decoded *decoded = as_decoded_new((size_t)data[0] * 64);
    for (int round = 0; round < 2; round++) {
        const char *at = (const char *)data + 1, *end = (const char *)data + size;
        while (at < end) {
            const char *stop = memchr(at, 0xFF, (size_t)(end - at));
            stop = stop ? stop : end;
            check_body(decoded, at, (size_t)(stop - at));
            at = stop + 1;
        }
    }
    as_decoded_free(decoded);
    return 0;
}
