/*
 * A moment on the command line: RFC 3339, also without seconds (2026-11-20T14:03Z) or as a day
 * (2026-11-20: its start in UTC), `now`, or a duration ago (2h30m).
 */
#ifndef ALERTSCALER_SRC_CLI_MOMENT_H
#define ALERTSCALER_SRC_CLI_MOMENT_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>

as_wall_time moment_get_now(void);

/* 0; or -EINVAL with an error that names the option. */
int moment_parse(const char *option, const char *text, as_wall_time now, as_wall_time *time_out,
                 struct as_error *error) AS_MUST_USE;

#endif
