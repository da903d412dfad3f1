/*
 * Retry-After: see the header.
 */
#include <alertscaler/http/retry_after.h>

#include <errno.h>
#include <string.h>
#include <time.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/access_limits.h>

int as_http_date_parse(const char *text, as_wall_time *time_out)
{
    struct tm date = {0};
    char normal[AS_RFC3339_SIZE];
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date);
    if (!end || *end)
        return -EINVAL;
    size_t size = strftime(normal, sizeof(normal), "%Y-%m-%dT%H:%M:%SZ", &date);
    return as_wall_time_parse(normal, size, time_out);
}

int64_t as_retry_after_parse(const char *text, as_wall_time now)
{
    int64_t seconds;
    as_wall_time until;
    if (as_str_is_empty(text))
        return 0;
    if (as_number_parse_i64(text, strlen(text), &seconds) < 0) {
        if (as_http_date_parse(text, &until) < 0)
            return 0;
        seconds = (until.us - now.us) / AS_US_PER_S;
    }
    if (seconds <= 0)
        return 0;
    return seconds > AS_RETRY_AFTER_MAX_US / AS_US_PER_S ? AS_RETRY_AFTER_MAX_US
                                                         : seconds * AS_US_PER_S;
}
