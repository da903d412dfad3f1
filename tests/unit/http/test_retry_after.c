/*
 * as_retry_after_parse: valid values, and values that are ignored.
 */
#include <criterion/criterion.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/client.h>

/* Sun, 06 Nov 1994 08:49:37 GMT */
#define NOW ((as_wall_time){784111777 * AS_US_PER_S})

Test(retry_after, seconds_or_a_date)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {
        {"", 0},
        {"0", 0},
        {"120", 120},
        {"-5", 0},
        {"1.5", 0},
        {"soon", 0},
        {"99999999999999999999", 0},
        {"9223372036854775807", 3600}, /* capped */
        {"Sun, 06 Nov 1994 08:50:37 GMT", 60},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
        {"Sun, 06 Nov 1994 08:49:00 GMT", 0}, /* past */
        {"Sun, 06 Nov 2094 08:49:00 GMT", 3600},
        {"Sun, 06 Nov 1994 08:50:37 GMT and more", 0},
        {"Sun, 06 Nov 1994 08:50:37 CET", 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_eq(as_retry_after_parse(rows[i].text, NOW), rows[i].seconds * AS_US_PER_S, "%s",
                     rows[i].text);
}
