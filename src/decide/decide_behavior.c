/*
 * HPA's `behavior`: stabilization windows, scaling policies, and when both will next allow a
 * change. Computes distances (decide_private.h), in integers except for percentages.
 */
#include "decide_private.h"

#include <math.h>

#include <alertscaler/base/attr.h>

const struct as_behavior as_behavior_default = {
    .up = {.window_us = 0,
           .select = AS_SELECT_MAX,
           .policy_count = 2,
           .policies = {{AS_POLICY_PODS, 4, 15 * AS_US_PER_S},
                        {AS_POLICY_PERCENT, 100, 15 * AS_US_PER_S}}},
    .down = {.window_us = 300 * AS_US_PER_S,
             .select = AS_SELECT_MAX,
             .policy_count = 1,
             .policies = {{AS_POLICY_PERCENT, 100, 15 * AS_US_PER_S}}},
};

static const struct as_scaling_rules *get_rules(const struct as_decide_input *input,
                                                enum as_direction direction)
{
    return direction == AS_DIRECTION_UP ? &input->config.behavior.up : &input->config.behavior.down;
}

/* `lo` of a scale-up and `hi` of a scale-down are the same: the shortest distance wanted within the
 * window. */
int32_t as_decide_stabilize(const struct as_decide_input *input, const struct as_move *move)
{
    int64_t window = get_rules(input, move->direction)->window_us, shortest = move->wanted;

    for (size_t i = 0; i < input->recommendation_count; i++) {
        const struct as_recommendation *old = &input->recommendations[i];
        int64_t distance = as_decide_get_distance(input, move->direction, old->replicas);
        if (distance < shortest && as_decide_get_age(input->now, old->at) < window)
            shortest = distance;
    }
    return shortest > 0 ? (int32_t)shortest : 0;
}

/* When the last recommendation with a distance of at most `level` leaves the window; now, if there
 * is none. */
static int64_t find_release(const struct as_decide_input *input, const struct as_move *move,
                            int64_t level)
{
    int64_t window = get_rules(input, move->direction)->window_us, release = input->now.us;

    for (size_t i = 0; i < input->recommendation_count; i++) {
        const struct as_recommendation *old = &input->recommendations[i];
        if (as_decide_get_distance(input, move->direction, old->replicas) > level ||
            as_decide_get_age(input->now, old->at) >= window)
            continue;
        int64_t end = as_time_add(old->at.us, window);
        release = end > release ? end : release;
    }
    return release;
}

/* The changes that one policy counts. Events are in order of time, so they also leave in order. */
struct period {
    size_t first; /* the oldest event in it */
    int64_t up, down;
    int32_t allowance;
};

/*
 * HPA's ceil(start x (1 + value/100)) and trunc(start x (1 - value/100)), in doubles as there
 * (calculateScaleUpLimitWithScalingRules, calculateScaleDownLimitWithBehaviors). v: 1 was exact.
 */
static __int128 apply_percent(const struct as_decide_input *input, bool up, int64_t start,
                              int32_t percent)
{
    if (input->version < 2) {
        __int128 scaled = (__int128)start * (up ? 100 + (int64_t)percent : 100 - (int64_t)percent);
        return scaled / 100 + (up && scaled % 100 > 0);
    }
    double part = (double)percent / 100;
    double size = (double)start * (up ? 1 + part : 1 - part);
    return (__int128)(up ? ceil(size) : size);
}

/* The distance that one policy allows. Saturating the size does not shorten a wanted distance,
 * which never leads beyond 0 or the largest size. */
static int32_t compute_allowance(const struct as_decide_input *input, enum as_direction direction,
                                 const struct as_policy *policy, const struct period *period)
{
    bool up = direction == AS_DIRECTION_UP;
    int64_t start = input->replicas - period->up + period->down; /* as the period began */
    __int128 size;

    if (policy->type == AS_POLICY_PODS)
        size = up ? start + policy->value : start - policy->value;
    else
        size = apply_percent(input, up, start, policy->value);
    __int128 distance = up ? size - input->replicas : input->replicas - size;
    return as_decide_saturate(distance);
}

static void add_event(struct period *period, int64_t change, int sign)
{
    if (change > 0)
        period->up += sign * change;
    else
        period->down -= sign * change;
}

static void fill_period(const struct as_decide_input *input, enum as_direction direction,
                        const struct as_policy *policy, struct period *period)
{
    *period = (struct period){.first = input->event_count};
    while (period->first > 0 &&
           as_decide_get_age(input->now, input->events[period->first - 1].at) < policy->period_us)
        add_event(period, input->events[--period->first].change, 1);
    period->allowance = compute_allowance(input, direction, policy, period);
}

/* Drops the events that are as old as the period or older at time `at`. */
static void advance_period(const struct as_decide_input *input, enum as_direction direction,
                           const struct as_policy *policy, struct period *period, int64_t at)
{
    size_t before = period->first;

    while (period->first < input->event_count &&
           as_time_add(input->events[period->first].at.us, policy->period_us) <= at)
        add_event(period, input->events[period->first++].change, -1);
    if (period->first != before)
        period->allowance = compute_allowance(input, direction, policy, period);
}

static int32_t select_allowance(const struct as_scaling_rules *rules, const struct period *periods)
{
    int32_t chosen = 0;

    if (rules->select == AS_SELECT_DISABLED)
        return 0;
    for (size_t i = 0; i < rules->policy_count; i++) {
        bool better = rules->select == AS_SELECT_MAX ? periods[i].allowance > chosen
                                                     : periods[i].allowance < chosen;
        if (i == 0 || better)
            chosen = periods[i].allowance;
    }
    return chosen;
}

static void fill_periods(const struct as_decide_input *input, enum as_direction direction,
                         struct period periods[AS_POLICIES_MAX])
{
    const struct as_scaling_rules *rules = get_rules(input, direction);

    for (size_t i = 0; i < rules->policy_count; i++)
        fill_period(input, direction, &rules->policies[i], &periods[i]);
}

int32_t as_decide_get_allowance(const struct as_decide_input *input, enum as_direction direction)
{
    struct period periods[AS_POLICIES_MAX];

    fill_periods(input, direction, periods);
    return select_allowance(get_rules(input, direction), periods);
}

/* When the next event leaves one of the periods; INT64_MAX: never. */
static int64_t find_next_leave(const struct as_decide_input *input,
                               const struct as_scaling_rules *rules, const struct period *periods)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < rules->policy_count; i++) {
        if (periods[i].first == input->event_count)
            continue;
        int64_t leave =
            as_time_add(input->events[periods[i].first].at.us, rules->policies[i].period_us);
        next = leave < next ? leave : next;
    }
    return next;
}

/* The first time when the policies allow less than `level`, or, from `release` on, more. */
static int64_t find_other_allowance(const struct as_decide_input *input, const struct as_move *move,
                                    int32_t level, int64_t release)
{
    const struct as_scaling_rules *rules = get_rules(input, move->direction);
    struct period periods[AS_POLICIES_MAX];
    int64_t at = input->now.us;

    if (rules->select == AS_SELECT_DISABLED)
        return INT64_MAX;
    fill_periods(input, move->direction, periods);
    for (;;) {
        int32_t allowance = select_allowance(rules, periods);
        int64_t next = find_next_leave(input, rules, periods);
        if (allowance < level)
            return at;
        if (allowance > level && release < next) /* the allowance stays until `next` */
            return release > at ? release : at;
        if (next == INT64_MAX)
            return INT64_MAX;
        at = next;
        for (size_t i = 0; i < rules->policy_count; i++)
            advance_period(input, move->direction, &rules->policies[i], &periods[i], at);
    }
}

/*
 * The distance that windows allow only grows with time; what policies allow may also shrink. The
 * size is now at distance `level`. (A size that stays at or beyond its bound has distance 1, which
 * stands for all above: only a fall to 0 would change the reason.) The size changes when the
 * policies allow less, or when both windows and policies allow more, unless the bound stops it.
 */
int64_t as_decide_find_relief(const struct as_decide_input *input, const struct as_move *move)
{
    int32_t stable = as_decide_stabilize(input, move);
    int32_t allowance = as_decide_get_allowance(input, move->direction);
    int64_t top = move->bound > 1 ? move->bound : 1;
    int32_t level = stable < allowance ? stable : allowance;

    if (stable == 0) /* the reason is `stabilized`: any other reason is a new answer */
        return find_release(input, move, 0);
    if (level >= top || level == move->wanted)
        return find_other_allowance(input, move, level < top ? level : (int32_t)top, INT64_MAX);
    return find_other_allowance(input, move, level, find_release(input, move, level));
}
