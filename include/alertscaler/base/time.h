/*
 * Two clocks as types that cannot be mixed up, and two text forms of time: RFC 3339 and Prometheus
 * durations. All times are in microseconds.
 *
 * Monotonic time is CLOCK_BOOTTIME, which goes on while the machine sleeps; use it for durations.
 * Wall time is UTC since 1970; use it for records. Nothing here reads a clock.
 */
#ifndef ALERTSCALER_BASE_TIME_H
#define ALERTSCALER_BASE_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

#define AS_US_PER_MS  INT64_C(1000)
#define AS_US_PER_S   INT64_C(1000000)
#define AS_US_PER_MIN (60 * AS_US_PER_S)
#define AS_US_PER_H   (60 * AS_US_PER_MIN)
#define AS_US_PER_DAY (24 * AS_US_PER_H)

typedef struct {
    int64_t us;
} as_mono_time;

typedef struct {
    int64_t us;
} as_wall_time;

typedef struct {
    bool set;
    as_wall_time at;
} as_maybe_time;

#define AS_MONO_NEVER ((as_mono_time){INT64_MAX}) /* later than every time */

#define AS_RFC3339_SIZE 36 /* enough for every text as_wall_time_print writes, with NUL */

/*
 * RFC 3339 with any offset, 0 to 9 fractional digits (cut to microseconds), years 0001 to 9999. A
 * leap second :60 is read as :59.999999. All `size` bytes must belong to the time. 0 or -EINVAL.
 */
int as_wall_time_parse(const char *text, size_t size, as_wall_time *time_out) AS_MUST_USE;

/* "2026-11-20T10:00:00.000000Z": always UTC with six digits. Times outside years 1 to 9999
 * saturate. */
void as_wall_time_print(as_wall_time time, char text_out[AS_RFC3339_SIZE]);

/* As as_wall_time_print, with fewest fractional digits: "2026-11-20T10:00:00Z", "...00.25Z". */
void as_wall_time_print_short(as_wall_time time, char text_out[AS_RFC3339_SIZE]);

/*
 * Prometheus durations: "90s", "5m", "1h30m", "1d", "100ms", "2w", "1y", "0". Units descend, each
 * at most once. 0; -EINVAL with an error that says what is expected; -ERANGE above 100 years.
 */
int as_duration_parse(const char *text, int64_t *us_out, struct as_error *error) AS_MUST_USE;

#define AS_DURATION_SIZE 48
void as_duration_print(int64_t us, char text_out[AS_DURATION_SIZE]); /* "1h30m", "0s", "250ms" */

/* a + b, saturating. */
int64_t as_time_add(int64_t a, int64_t b);

#endif
