/* Any text as the value of a header that we parse ourselves: Accept of a scrape, Retry-After of an
 * answer. */
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/http/client.h>
#include <alertscaler/runtime/metrics.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_CLEANUP(as_free_p) char *text = as_xstrndup((const char *)data, size);
    const as_wall_time now = {784111777 * AS_US_PER_S};
    const enum as_metrics_format format = as_metrics_choose_format(text);
    const int64_t after = as_retry_after_parse(text, now);

    FUZZ_CHECK(format == AS_METRICS_TEXT || format == AS_METRICS_OPENMETRICS);
    FUZZ_CHECK(format == AS_METRICS_TEXT || strcasestr(text, "application/openmetrics-text"));
    FUZZ_CHECK(after >= 0 && after <= AS_US_PER_H);
    return 0;
}
