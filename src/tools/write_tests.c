/*
 * The rule tests of a target. They say what holds for every rule that tracks: at its goals the size
 * stays; without data it stays; at twice its goals it grows to twice the size, as far as bounds and
 * `behavior` allow. The sizes are computed here, not by the engine that the tests are for.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "convert_plan.h"

#define SIZE_WANTED 2   /* replicas of a test, if the bounds allow it */
#define SIZE_MOST   100 /* with more the pods would fill the file */
#define SHOWN_PODS  2   /* then */
#define NODES       10

#define FALLBACK_MOST_US (30 * AS_US_PER_MIN) /* an incident lasts longer without news */

static int32_t get_size(const struct plan_target *target)
{
    int32_t wanted = target->group ? NODES : SIZE_WANTED;
    for (size_t i = 0; i < target->schedule_count; i++) /* whichever is in force */
        wanted = target->schedules[i].min > wanted ? target->schedules[i].min : wanted;
    return wanted < target->min ? target->min : wanted > target->max ? target->max : wanted;
}

/* What a growth from `size` may come to by `behavior`, with no history. */
static int32_t get_limit(const struct as_scaling_rules *rules, int32_t size)
{
    double limit = rules->select == AS_SELECT_MIN ? AS_SIZE_MAX : size;
    for (uint32_t i = 0; i < rules->policy_count; i++) {
        const struct as_policy *policy = &rules->policies[i];
        const double most = policy->type == AS_POLICY_PODS
                                ? (double)size + policy->value
                                : ceil((double)size * (1 + (double)policy->value / 100));
        limit = rules->select == AS_SELECT_MIN ? fmin(limit, most) : fmax(limit, most);
    }
    return limit > AS_SIZE_MAX ? AS_SIZE_MAX : (int32_t)limit;
}

/* What the first step towards a size leads to. Before the window of growth is over, and where
 * growth is disabled, there is none. */
static int32_t get_grown(const struct plan_target *target, int32_t size, int32_t wanted)
{
    const struct as_scaling_rules *up = &target->behavior.up;
    const int32_t limit =
        up->select == AS_SELECT_DISABLED || up->window_us > 0 ? size : get_limit(up, size);
    const int32_t most = wanted < target->max ? wanted : target->max;
    return most < limit ? most : limit;
}

/* NULL: none. All rules that have a fallback have the same. */
static const struct as_fallback *find_fallback(const struct plan_target *target)
{
    for (size_t i = 0; i < target->rule_count; i++) {
        if (target->rules[i].fallback.at_least > 0)
            return &target->rules[i].fallback;
    }
    return NULL;
}

/* Of one pod that meets the goal, in thousandths of cores, bytes or whatever is counted. */
static int64_t get_usage(const struct plan_rule *rule)
{
    const int64_t percent = rule->milli / 1000;
    if (rule->goal != AS_GOAL_UTILIZATION)
        return rule->milli;
    return rule->resource == AS_RESOURCE_CPU ? percent * 10           /* of a core */
                                             : percent * 10000000000; /* of 1 GB */
}

/* The pods of the test: as many as its size, or a few. */
static int32_t count_pods(int32_t size)
{
    return size <= SIZE_MOST ? size : SHOWN_PODS;
}

static void append_start(struct as_buf *out, const struct plan_target *target, const char *name,
                         int32_t size)
{
    as_buf_printf(out, "  - name: %s\n    targets:\n      ", name);
    yaml_append_text(out, target->name);
    as_buf_printf(out, ":\n        replicas: %d\n", size);
    if (target->group)
        return;
    as_buf_append_str(out, "        pods:\n");
    for (int32_t i = 1; i <= count_pods(size); i++)
        as_buf_printf(out, "          - {name: pod-%d, requests: {cpu: 1, memory: 1G}}\n", i);
}

/* What is expected `after` the alert began, up to the target's name. */
static void append_input_until(struct as_buf *out, const struct plan_target *target, int64_t after)
{
    char at[AS_DURATION_SIZE];
    as_duration_print(after, at);
    as_buf_append_str(out, "    input:\n      - {at: 0s, fire: {");
    yaml_append_labels(out, target);
    as_buf_printf(out, "}}\n    expect:\n      - {at: %s, target: ", at);
    yaml_append_text(out, target->name);
}

static void append_input(struct as_buf *out, const struct plan_target *target)
{
    append_input_until(out, target, 0);
}

static void append_query(struct as_buf *out, const struct plan_rule *rule, int32_t size,
                         int64_t times)
{
    const int64_t usage = times * get_usage(rule);
    as_buf_append_str(out, "      - query: ");
    yaml_append_query(out, rule->query, 10);
    if (!rule->is_per_pod) {
        as_buf_append_str(out, "\n        value: ");
        yaml_append_milli(out, rule->goal == AS_GOAL_VALUE ? usage : usage * size);
        as_buf_append_char(out, '\n');
        return;
    }
    as_buf_append_str(out, "\n        pods: {");
    for (int32_t i = 1; i <= count_pods(size); i++) {
        as_buf_printf(out, "%spod-%d: ", i > 1 ? ", " : "", i);
        yaml_append_milli(out, usage);
    }
    as_buf_append_str(out, "}\n");
}

static void append_queries(struct as_buf *out, const struct plan_target *target, int32_t size,
                           int64_t times)
{
    as_buf_append_str(out, "    queries:\n");
    for (size_t i = 0; i < target->rule_count; i++) {
        bool is_new = true; /* two rules may ask the same */
        for (size_t k = 0; k < i; k++)
            is_new = is_new && strcmp(target->rules[i].query, target->rules[k].query) != 0;
        if (is_new)
            append_query(out, &target->rules[i], size, times);
    }
}

/* Whether all goals can be met at once, by numbers that fit. */
static bool can_meet(const struct plan_target *target, int32_t size)
{
    for (size_t i = 0; i < target->rule_count; i++) {
        const struct plan_rule *rule = &target->rules[i];
        if (get_usage(rule) > INT64_MAX / 2 / size)
            return false;
        for (size_t k = 0; k < i; k++) {
            const struct plan_rule *other = &target->rules[k];
            if (strcmp(rule->query, other->query) == 0 &&
                (rule->goal != other->goal || rule->milli != other->milli))
                return false;
        }
    }
    return true;
}

static void append_change(struct as_buf *out, const struct plan_target *target, int32_t size,
                          int32_t grown)
{
    if (grown == size)
        as_buf_printf(out, ", replicas: %d}\n", size);
    else if (target->is_dry)
        as_buf_printf(out, ", replicas: %d, desired: %d, reason: dry_run}\n", size, grown);
    else
        as_buf_printf(out, ", replicas: %d, reason: scaled}\n", grown);
}

static void write_without_data(struct as_buf *out, const struct plan_target *target, int32_t size)
{
    const struct as_fallback *fallback = find_fallback(target);
    const int64_t after_us = fallback ? fallback->after_us : 0;
    const int32_t wanted = fallback && fallback->at_least > size ? fallback->at_least : size;
    const int32_t grown = get_grown(target, size, wanted);
    if (after_us > 0 || grown == size) {
        append_start(out, target, "without data the size stays", size);
        append_input(out, target);
        as_buf_printf(out, ", replicas: %d, reason: metric_unavailable}\n", size);
    }
    if (after_us > FALLBACK_MOST_US || grown == size)
        return;
    as_buf_append_str(out, after_us > 0 ? "\n" : "");
    append_start(out, target, "for long without data it has at least its fallback", size);
    append_input_until(out, target, after_us > 0 ? after_us : AS_US_PER_S);
    append_change(out, target, size, grown);
}

static void write_workload(struct as_buf *out, const struct plan_target *target)
{
    const int32_t size = get_size(target);
    const bool tolerates_twice = target->tolerance_up >= 100000;
    write_without_data(out, target, size);
    if (!can_meet(target, size))
        return;
    as_buf_append_char(out, '\n');
    append_start(out, target, "at its goals the size stays", size);
    append_queries(out, target, size, 1);
    append_input(out, target);
    as_buf_printf(out, ", replicas: %d, reason: within_tolerance}\n", size);
    if (size > SIZE_MOST || tolerates_twice)
        return;
    as_buf_append_char(out, '\n');
    append_start(out, target, "at twice its goals it grows, as far as it may", size);
    append_queries(out, target, size, 2);
    append_input(out, target);
    append_change(out, target, size, get_grown(target, size, 2 * size));
}

/* Nodes of one core, whose pods request `percent` of it. */
static void write_group_test(struct as_buf *out, const struct plan_target *target, const char *name,
                             int32_t size, int64_t percent)
{
    append_start(out, target, name, size);
    as_buf_printf(out, "        nodes: {open: %d, requests: {cpu: ", size);
    yaml_append_milli(out, size * percent * 10);
    as_buf_printf(out, ", memory: 0}, allocatable: {cpu: %d, memory: %dG}}\n", size, size);
    as_buf_append_str(out, "    queries:\n      - {query: vector(1), value: 1}\n");
    if (target->group->starves)
        as_buf_append_str(out, "    cluster: {pods: []}\n");
    append_input(out, target);
}

static void write_group(struct as_buf *out, const struct plan_target *target)
{
    const struct plan_group *group = target->group;
    const int32_t size = get_size(target);
    const int64_t grown = 2 * (int64_t)size;
    const int32_t left = size - group->fast_by > target->min ? size - group->fast_by : target->min;
    write_group_test(out, target, "at scale_up_threshold_percent the size stays", size,
                     group->full);
    as_buf_printf(out, ", replicas: %d}\n\n", size);
    write_group_test(out, target,
                     "at twice scale_up_threshold_percent it doubles, as far as it may", size,
                     2 * (int64_t)group->full);
    append_change(out, target, size, grown > target->max ? target->max : (int32_t)grown);
    as_buf_append_char(out, '\n');
    write_group_test(out, target, "below taint_lower_capacity_threshold_percent nodes leave", size,
                     0);
    append_change(out, target, size, left);
}

void write_tests(const struct plan_target *target, struct as_buf *out)
{
    as_buf_printf(out,
                  "# Tests of the rules in ../rules/%s.yaml: alertscaler test %s.yaml\n"
                  "rule_files: ['../rules/%s.yaml']\ntests:\n",
                  target->name, target->name, target->name);
    if (target->group)
        write_group(out, target);
    else
        write_workload(out, target);
}
