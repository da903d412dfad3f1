/*
 * Limits of a target's size and its changes: bounds, cooldown, tolerance and HPA's `behavior`.
 */
#ifndef ALERTSCALER_CORE_BOUNDS_H
#define ALERTSCALER_CORE_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

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

/* A target's settings in a rule file that a decision needs. */
struct as_bounds_config {
    int32_t min, max;
    struct as_cooldown cooldown;
    double tolerance_up, tolerance_down; /* 0.1 is 10 % */
    bool enforce_bounds;
    int64_t cpu_initialization_us, initial_readiness_delay_us;
    bool has_behavior;
    struct as_behavior behavior;
};

#endif
