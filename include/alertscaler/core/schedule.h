/*
 * Bounds that hold at certain times: days of the week between two wall times of a zone, or between
 * two moments. Everything follows from the given time alone, so that a clock that jumps leaves
 * nothing behind.
 */
#ifndef ALERTSCALER_CORE_SCHEDULE_H
#define ALERTSCALER_CORE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/time.h>
#include <alertscaler/base/zone.h>
#include <alertscaler/core/forbidden.h>

#define AS_SCHEDULES_MAX 16 /* of a target */

#define AS_SCHEDULE_ALL_DAYS 0x7fu

struct as_schedule {
    char *name;
    const struct as_zone *zone; /* of the rule set; NULL: from `begin` to `end` */
    unsigned days;              /* bit 0: begins on Mondays */
    int32_t from_s, to_s;       /* wall times in seconds; `to_s` <= `from_s`: of the next day */
    as_wall_time begin, end;
    bool has_min, has_max;
    int32_t min, max;
    enum as_ways hold; /* directions that it forbids */
};

struct as_schedule_look {
    bool is_in_force;
    as_maybe_time change; /* its end; else its next begin. Unset: none within two weeks, or never */
};

/* A schedule begins at the first `from` and ends at the last `to` where a wall time exists twice;
 * for one that does not exist the next that does counts. One that ends when it begins is left
 * out. */
struct as_schedule_look as_schedule_look(const struct as_schedule *schedule, as_wall_time now);

struct as_schedule_bounds { /* in force at one time */
    int32_t min, max;       /* the highest of those in force that name one; else the target's own */
    bool has_min;           /* by a schedule: it is enforced */
    uint32_t in_force;      /* bit i: schedules[i] */
    as_maybe_time change;   /* the next begin or end of any */
};

/* `own_min`, `own_max`: the target's own. A `min` above `max` is lowered to it. */
struct as_schedule_bounds as_schedules_get_bounds(const struct as_schedule *schedules, size_t count,
                                                  int32_t own_min, int32_t own_max,
                                                  as_wall_time now);

/* When two schedules of a target contradict each other: at `at`, `min` of one is above `max`. */
struct as_schedule_conflict {
    as_wall_time at;
    size_t min_of, max_of; /* indices; AS_SCHEDULES_MAX: the target's own */
    int32_t min, max;
};

/* Looks for a time with a `min` above `max`: at each begin and end within a year of `around`, and
 * within a year of the begin of each schedule with fixed moments. */
bool as_schedules_find_conflict(const struct as_schedule *schedules, size_t count, int32_t own_min,
                                int32_t own_max, as_wall_time around,
                                struct as_schedule_conflict *conflict_out);

#endif
