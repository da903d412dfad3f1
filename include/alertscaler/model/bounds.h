/*
 * Limits of a target's size and its changes: bounds, cooldown, tolerance and HPA's `behavior`; and
 * bounds that hold at certain times.
 *
 * Which schedules are in force follows from the given time alone, so that a clock that jumps leaves
 * nothing behind.
 */
#ifndef ALERTSCALER_MODEL_BOUNDS_H
#define ALERTSCALER_MODEL_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/time.h>
#include <alertscaler/base/zone.h>
#include <alertscaler/model/forbidden.h>

#define AS_SIZE_MAX INT32_MAX

struct as_cooldown {
    int64_t up_us, down_us, up_after_down_us;
    bool has_down_after_down; /* else it is `down_us` */
    int64_t down_after_down_us;
};

/* How long after a decrease the next one waits. */
static inline int64_t as_cooldown_get_down_after_down(const struct as_cooldown *cooldown)
{
    return cooldown->has_down_after_down ? cooldown->down_after_down_us : cooldown->down_us;
}

enum as_policy_type { AS_POLICY_PODS, AS_POLICY_PERCENT };
enum as_select_policy { AS_SELECT_MAX, AS_SELECT_MIN, AS_SELECT_DISABLED };

struct as_policy {
    enum as_policy_type type;
    int32_t value;
    int64_t period_us;
};

#define AS_POLICIES_MAX 16

struct as_scaling_rules { /* one direction of HPA's behavior, defaults filled in */
    int64_t window_us;
    enum as_select_policy select;
    uint32_t policy_count;
    struct as_policy policies[AS_POLICIES_MAX];
};

struct as_behavior {
    struct as_scaling_rules up, down;
};

/* HPA's defaults: up 0 s, Max, Pods 4/15 s, Percent 100/15 s; down 300 s, Max, Percent 100/15 s. */
extern const struct as_behavior as_behavior_default;

/* What a rollout of a workload means for its size. X(enumerator, word) */
#define AS_ROLLOUTS(X)                                                                             \
    X(AS_ROLLOUT_AS_HPA, "as_hpa")   /* the ratio of `track` times the pods that it counts */      \
    X(AS_ROLLOUT_BY_SPEC, "by_spec") /* the ratio times the requested size */                      \
    X(AS_ROLLOUT_WAIT, "wait")       /* as HPA, but no decrease while a rollout is under way */

#define AS_ROLLOUT_ENUM(enumerator, word) enumerator,
enum as_rollout { AS_ROLLOUTS(AS_ROLLOUT_ENUM) AS_ROLLOUT_COUNT };
#undef AS_ROLLOUT_ENUM
const char *as_rollout_get_word(enum as_rollout rollout);

/* A target's settings in a rule file that a decision needs. */
struct as_bounds_config {
    int32_t min, max;
    struct as_cooldown cooldown;
    double tolerance_up, tolerance_down; /* 0.1 is 10 % */
    bool enforce_bounds;
    enum as_rollout rollout;
    int64_t cpu_initialization_us, initial_readiness_delay_us;
    bool has_behavior;
    struct as_behavior behavior;
};

/* --- schedules: bounds that hold at certain times --- */

#define AS_SCHEDULES_MAX 16 /* of a target */

#define AS_SCHEDULE_ALL_DAYS 0x7fu

/* What happens at the end of a schedule to the size that its `min` has added.
 * X(enumerator, word) */
#define AS_SCHEDULE_ENDS(X)                                                                        \
    X(AS_SCHEDULE_KEEP, "keep")                                                                    \
    X(AS_SCHEDULE_MIN, "min")       /* down to the `min` that is then in force */                  \
    X(AS_SCHEDULE_BEFORE, "before") /* down to the size before the first of such schedules */

#define AS_SCHEDULE_END_ENUM(enumerator, word) enumerator,
enum as_schedule_end { AS_SCHEDULE_ENDS(AS_SCHEDULE_END_ENUM) AS_SCHEDULE_END_COUNT };
const char *as_schedule_end_get_word(enum as_schedule_end end);

struct as_schedule {
    char *name;
    const struct as_zone *zone; /* of the rule set; NULL: from `begin` to `end` */
    unsigned days;              /* bit 0: begins on Mondays */
    int32_t from_s, to_s;       /* wall times in seconds; `to_s` <= `from_s`: of the next day */
    as_wall_time begin, end;
    bool has_min, has_max;
    int32_t min, max;
    enum as_ways hold; /* directions that it forbids */
    enum as_schedule_end at_end;
};

/* The schedule sets the size to 0 at its begin. The size from before returns at its end. */
static inline bool as_schedule_is_zero(const struct as_schedule *schedule)
{
    return schedule->has_max && schedule->max == 0;
}

struct as_schedule_state {
    bool is_in_force;
    as_maybe_time change; /* its end; else its next begin. Unset: none within two weeks, or never */
};

/* A schedule begins at the first `from` and ends at the last `to` where a wall time exists twice;
 * for one that does not exist the next that does counts. One that ends when it begins is left
 * out. */
struct as_schedule_state as_schedule_state(const struct as_schedule *schedule, as_wall_time now);

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
