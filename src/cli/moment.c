/*
 * Completes shorter forms for the one strict parser.
 */
#include "moment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DAY_SIZE    10 /* 2026-11-20 */
#define MINUTE_SIZE 16 /* 2026-11-20T14:03 */

as_wall_time moment_get_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (as_wall_time){(int64_t)now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static int parse_time(const char *text, as_wall_time *time_out)
{
    char whole[64];
    size_t size = strlen(text);

    if (size == DAY_SIZE)
        snprintf(whole, sizeof(whole), "%sT00:00:00Z", text);
    else if (size > MINUTE_SIZE && size < 32 && text[MINUTE_SIZE] != ':')
        snprintf(whole, sizeof(whole), "%.*s:00%s", MINUTE_SIZE, text, text + MINUTE_SIZE);
    else
        return as_wall_time_parse(text, size, time_out);
    return as_wall_time_parse(whole, strlen(whole), time_out);
}

int moment_parse(const char *option, const char *text, as_wall_time now, as_wall_time *time_out,
                 struct as_error *error)
{
    int64_t ago = 0;

    if (parse_time(text, time_out) == 0)
        return 0;
    if (strcmp(text, "now") != 0 && as_duration_parse(text, &ago, NULL) != 0) {
        as_error_set(error,
                     "--%s: \"%s\" is neither a time (2026-11-20T14:00:00Z) nor a duration (2h30m)",
                     option, text);
        return -EINVAL;
    }
    time_out->us = as_time_add(now.us, -ago);
    return 0;
}
