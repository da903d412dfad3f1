/*
 * The files of a conversion: the rule file and the rule tests of each target.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/doc/yaml_text.h>

#include "convert_plan.h"

/* --- rules --- */

#define TOLERANCE_DEFAULT 10000 /* of a target: 10 % */

static void write_append_key(struct as_buf *out, const char *key, const char *text)
{
    as_buf_printf(out, "%s: ", key);
    yaml_append_text(out, text);
}

/* The other autoscaler evaluates all the time, so its rules need no alert. */
static void append_always(struct as_buf *out, const struct plan_target *target)
{
    as_buf_append_str(out, "    always: true\n    ");
    write_append_key(out, "target", target->name);
    as_buf_append_char(out, '\n');
}

static void append_direction(struct as_buf *out, const char *name,
                             const struct as_scaling_rules *rules)
{
    static const char *const selects[] = {
        [AS_SELECT_MAX] = "Max", [AS_SELECT_MIN] = "Min", [AS_SELECT_DISABLED] = "Disabled"};
    as_buf_printf(out,
                  "      %s:\n        stabilizationWindowSeconds: %" PRId64
                  "\n        selectPolicy: %s\n        policies:\n",
                  name, rules->window_us / AS_US_PER_S, selects[rules->select]);
    for (uint32_t i = 0; i < rules->policy_count; i++)
        as_buf_printf(out, "          - {type: %s, value: %d, periodSeconds: %" PRId64 "}\n",
                      rules->policies[i].type == AS_POLICY_PODS ? "Pods" : "Percent",
                      rules->policies[i].value, rules->policies[i].period_us / AS_US_PER_S);
}

static void append_tolerance(struct as_buf *out, const struct plan_target *target)
{
    const int64_t up = target->tolerance_up, down = target->tolerance_down;
    if (up == PLAN_NO_TOLERANCE && down == PLAN_NO_TOLERANCE)
        return;
    as_buf_append_str(out, "    tolerance: {up: ");
    yaml_append_milli(out, up == PLAN_NO_TOLERANCE ? TOLERANCE_DEFAULT : up);
    as_buf_append_str(out, "%, down: ");
    yaml_append_milli(out, down == PLAN_NO_TOLERANCE ? TOLERANCE_DEFAULT : down);
    as_buf_append_str(out, "%}\n");
}

static void append_workload(struct as_buf *out, const struct plan_target *target)
{
    as_buf_append_str(out, "    kubernetes: {");
    if (target->api_version) {
        write_append_key(out, "apiVersion", target->api_version);
        as_buf_append_str(out, ", ");
    }
    write_append_key(out, "kind", target->scaled_kind);
    as_buf_append_str(out, ", ");
    write_append_key(out, "namespace", target->space);
    as_buf_append_str(out, ", ");
    write_append_key(out, "name", target->scaled);
    as_buf_append_str(out, "}\n");
}

static void append_dry_run(struct as_buf *out, const struct plan_target *target)
{
    if (target->is_dry)
        as_buf_printf(out, "    dry_run: true%s\n",
                      target->is_incomplete
                          ? "                     # until the rules are complete: see the head"
                          : "");
}

static void append_bounds(struct as_buf *out, const struct plan_target *target)
{
    as_buf_printf(out, "    min: %d\n    max: %d\n    enforce_bounds: true\n", target->min,
                  target->max);
    append_dry_run(out, target);
}

/* "days: [mon, tue], " */
static void append_days(struct as_buf *out, unsigned days)
{
    static const char *const names[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
    const char *separator = "";
    as_buf_append_str(out, "days: [");
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        if (!(days >> i & 1))
            continue;
        as_buf_printf(out, "%s%s", separator, names[i]);
        separator = ", ";
    }
    as_buf_append_str(out, "], ");
}

static void append_schedules(struct as_buf *out, const struct plan_target *target)
{
    if (target->schedule_count > 0)
        as_buf_append_str(out, "    schedules:\n");
    for (size_t i = 0; i < target->schedule_count; i++) {
        const struct plan_schedule *schedule = &target->schedules[i];
        as_buf_printf(out, "      - {name: cron-%zu, ", i + 1);
        write_append_key(out, "timezone", schedule->timezone);
        as_buf_append_str(out, ", ");
        append_days(out, schedule->days);
        as_buf_printf(out, "from: '%02u:%02u', to: '%02u:%02u', min: %d}\n", schedule->from / 60,
                      schedule->from % 60, schedule->to / 60, schedule->to % 60, schedule->min);
    }
}

static void write_append_time(struct as_buf *out, const char *key, int64_t us)
{
    char text[AS_DURATION_SIZE];
    as_duration_print(us, text);
    as_buf_printf(out, "%s: %s", key, text);
}

static void append_rule(struct as_buf *out, const struct plan_target *target,
                        const struct plan_rule *rule)
{
    static const char *const goals[] = {[AS_GOAL_VALUE] = "value",
                                        [AS_GOAL_AVERAGE_VALUE] = "average_value",
                                        [AS_GOAL_UTILIZATION] = "utilization"};
    const bool is_utilization = rule->goal == AS_GOAL_UTILIZATION;
    const char *resource = rule->resource == AS_RESOURCE_CPU ? "cpu" : "memory";
    as_buf_append_str(out, "  # ");
    yaml_append_comment(out, rule->about);
    as_buf_append_str(out, "\n  - ");
    write_append_key(out, "name", rule->name);
    as_buf_append_char(out, '\n');
    append_always(out, target);
    as_buf_printf(out, "    track:\n      %s: ", goals[rule->goal]);
    yaml_append_milli(out, rule->milli);
    as_buf_append_str(out, is_utilization ? "%\n" : "\n");
    if (is_utilization)
        as_buf_printf(out, "      of: %s_requests\n", resource);
    else if (rule->is_resource)
        as_buf_printf(out, "      resource: %s\n", resource);
    if (rule->container) {
        as_buf_append_str(out, "      ");
        write_append_key(out, "container", rule->container);
        as_buf_append_char(out, '\n');
    }
    if (rule->is_per_pod)
        as_buf_append_str(out, "      per_pod: true\n");
    if (rule->is_per_pod && rule->pod_label && strcmp(rule->pod_label, "pod") != 0)
        as_buf_printf(out, "      pod_label: %s\n", rule->pod_label);
    if (rule->by_owner)
        as_buf_append_str(out, "      pods: owned\n");
    as_buf_append_str(out, "      query: ");
    yaml_append_query(out, rule->query, 8);
    as_buf_append_char(out, '\n');
    if (rule->fallback.at_least == 0)
        return;
    as_buf_append_str(out, "    fallback: {");
    write_append_time(out, "after", rule->fallback.after_us);
    as_buf_printf(out, ", at_least: %d}\n", rule->fallback.at_least);
}

static void append_group(struct as_buf *out, const struct plan_target *target)
{
    const struct plan_group *group = target->group;
    as_buf_append_str(out, "    node_group: {provider: aws, ");
    write_append_key(out, "name", group->group);
    as_buf_append_str(out, "}\n");
    append_bounds(out, target);
    as_buf_append_str(out, "    cooldown: {");
    write_append_time(out, "up", group->cooldown_us);
    as_buf_append_str(out, ", ");
    write_append_time(out, "down", group->cooldown_us);
    as_buf_append_str(out, "}\n    nodes:\n      choose: oldest\n      drain: wait\n      ");
    write_append_time(out, "drain_after", group->soft_us);
    as_buf_append_str(out, "\n      ");
    write_append_time(out, "drain_timeout", group->hard_us);
    as_buf_append_char(out, '\n');
    if (group->is_default)
        as_buf_append_str(out, "      pending: any\n");
    if (group->health_us > 0) {
        as_buf_append_str(out, "      health: {");
        write_append_time(out, "grace", group->health_us);
        as_buf_printf(out, ", newest: %d%%, most: %d%%}\n", group->newest, group->most);
    }
}

static void append_named_rule(struct as_buf *out, const struct plan_target *target,
                              const char *name, const char *about, int64_t every_us)
{
    AS_CLEANUP(as_free_p) char *whole = as_xasprintf("%s.%s", target->name, name);
    as_buf_printf(out, "  # %s\n  - ", about);
    write_append_key(out, "name", whole);
    as_buf_append_char(out, '\n');
    append_always(out, target);
    as_buf_append_str(out, "    ");
    write_append_time(out, "every", every_us);
    as_buf_append_char(out, '\n');
}

static void append_group_rule(struct as_buf *out, const struct plan_target *target,
                              const char *name, const char *about)
{
    append_named_rule(out, target, name, about, AS_US_PER_MIN);
}

static void append_group_rules(struct as_buf *out, const struct plan_target *target)
{
    const struct plan_group *group = target->group;
    append_group_rule(out, target, "full",
                      "scale_up_threshold_percent: as many more as bring it to the threshold");
    as_buf_printf(out,
                  "    scale_up:\n      value: {nodes: utilization}\n      steps: [{above: %d, "
                  "to: %d}]\n",
                  group->full, group->full);
    append_group_rule(out, target, "idle",
                      "taint_upper_capacity_threshold_percent, taint_lower_capacity_threshold_"
                      "percent and their rates");
    as_buf_printf(out,
                  "    scale_down:\n      value: {nodes: utilization}\n      steps:\n"
                  "        - {below: %d, by: %d}\n        - {below: %d, by: %d}\n",
                  group->slow_below, group->slow_by, group->fast_below, group->fast_by);
    if (!group->starves)
        return;
    append_group_rule(out, target, "starved", "scale_on_starve");
    as_buf_append_str(out, "    scale_up: {fit: pending_pods}\n");
}

/* "key: [a, b]", on a line of its own; nothing if there are none. */
static void append_list(struct as_buf *out, const char *key, const struct plan_texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        as_buf_printf(out, i > 0 ? ", " : "      %s: [", key);
        yaml_append_text(out, texts->items[i]);
    }
    as_buf_append_str(out, texts->count > 0 ? "]\n" : "");
}

static void append_word(struct plan_texts *texts, bool is_in, const char *word)
{
    if (is_in)
        texts->items[texts->count++] = word;
}

/* One of the pool's groups. All have the same `nodes`. */
static void append_member(struct as_buf *out, const struct plan_pool *pool,
                          const struct plan_member *member)
{
    struct plan_texts keep = {.count = 0}, ignore = {.count = 0};
    append_word(&keep, pool->keeps_system, "system_pods");
    append_word(&keep, pool->keeps_local, "local_storage");
    append_word(&keep, pool->keeps_custom, "unreplicated");
    append_word(&ignore, pool->ignores_daemonsets, "daemonsets");
    append_word(&ignore, pool->ignores_mirror, "mirror");
    as_buf_append_str(out, "  ");
    yaml_append_text(out, member->name);
    as_buf_printf(out, ":\n    node_group: {provider: %s%s}\n    min: %d\n    max: %d\n",
                  pool->provider, member->address, member->min, member->max);
    as_buf_append_str(out, "    nodes:\n      ");
    write_append_time(out, "ready_timeout", pool->ready_us);
    as_buf_append_str(out, "\n      ");
    write_append_time(out, "drain_timeout", pool->evict_us + pool->grace_s * AS_US_PER_S);
    as_buf_append_char(out, '\n');
    append_list(out, "startup_taints", &pool->startup_taints);
    append_list(out, "keep", &keep);
    as_buf_append_str(out, keep.count > 0 ? "" : "      keep: []\n");
    as_buf_append_str(out, "      unneeded:\n        below: ");
    yaml_append_milli(out, pool->below);
    as_buf_append_str(out, "%\n        ");
    write_append_time(out, "for", pool->unneeded_us);
    as_buf_append_str(out, "\n        ");
    if (pool->takes_unready)
        write_append_time(out, "unready_for", pool->unready_us);
    else
        as_buf_append_str(out, "unready_for: never");
    as_buf_append_str(out, ignore.count > 0 ? "\n  " : "\n");
    append_list(out, "ignore", &ignore);
}

static void append_range(struct as_buf *out, const char *key, const struct plan_range *range,
                         const char *unit)
{
    if (range->is_given)
        as_buf_printf(out, "      %s: {min: %" PRId64 "%s, max: %" PRId64 "%s}\n", key, range->min,
                      unit, range->max, unit);
}

static void append_pool(struct as_buf *out, const struct plan_target *target)
{
    const struct plan_pool *pool = target->pool;
    as_buf_append_str(out, "    pool:\n      groups: [");
    for (size_t i = 0; i < pool->member_count; i++) {
        as_buf_append_str(out, i > 0 ? ", " : "");
        yaml_append_text(out, pool->members[i].name);
    }
    as_buf_append_str(out, "]\n");
    append_list(out, "choose", &pool->choose);
    as_buf_append_str(out, pool->balances ? "      balance: true\n" : "");
    append_list(out, "ignore_labels", &pool->ignore_labels);
    append_range(out, "cpu", &pool->cores, "");
    append_range(out, "memory", &pool->memory, "Gi");
    as_buf_printf(out,
                  "      at_once: {empty: %d, drain: %d}\n      expendable_below: %d\n"
                  "    max: %d\n",
                  pool->empty, pool->drain, pool->expendable, pool->max);
    append_dry_run(out, target);
    as_buf_append_str(out, "    cooldown: {up: 0s, ");
    write_append_time(out, "down", pool->after_add_us);
    as_buf_append_str(out, ", ");
    write_append_time(out, "down_after_down", pool->after_delete_us);
    as_buf_append_str(out, "}\n");
    for (size_t i = 0; i < pool->member_count; i++)
        append_member(out, pool, &pool->members[i]);
}

static void append_pool_rules(struct as_buf *out, const struct plan_target *target)
{
    const int64_t every_us = target->pool->every_us;
    append_named_rule(out, target, "pods-wait", "pods that no node has room for", every_us);
    as_buf_append_str(out, "    scale_up: {fit: pending_pods}\n");
    if (!target->pool->shrinks)
        return;
    append_named_rule(out, target, "nodes-unneeded", "nodes whose pods fit on other nodes",
                      every_us);
    as_buf_append_str(out, "    scale_down: {take: unneeded_nodes}\n");
}

static void append_head(const struct convert *convert, struct as_buf *out,
                        const struct plan_target *target)
{
    as_buf_append_str(out, "# From ");
    yaml_append_comment(out, target->shown);
    as_buf_append_str(out, ", ");
    yaml_append_comment(out, as_yaml_get_file(target->tree));
    as_buf_printf(out, ":%u, by `alertscaler convert`.\n", target->node->place.line);
    as_buf_append_str(out, "# Two programs that set one size undo each other's work: remove the "
                           "original before these rules act.\n");
    const struct as_conversion *conversion = convert->conversion;
    for (size_t i = target->items.from; i < target->items.to; i++) {
        const struct as_conversion_item *item = &conversion->items[i];
        as_buf_append_str(out, item->is_carried ? "# Differs, " : "# Not carried over, ");
        yaml_append_comment(out, item->file);
        as_buf_printf(out, ":%u: %s.\n", item->line, item->text);
    }
}

void write_rules(const struct convert *convert, const struct plan_target *target,
                 struct as_buf *out)
{
    append_head(convert, out, target);
    as_buf_append_str(out, "targets:\n  ");
    yaml_append_text(out, target->name);
    as_buf_append_str(out, ":\n");
    if (target->group) {
        append_group(out, target);
    } else if (target->pool) {
        append_pool(out, target);
    } else {
        append_workload(out, target);
        append_bounds(out, target);
        append_schedules(out, target);
        as_buf_append_str(out, "    cooldown: {up: 0s, down: 0s}\n");
        append_tolerance(out, target);
        as_buf_append_str(out, "    behavior:\n");
        append_direction(out, "scaleUp", &target->behavior.up);
        append_direction(out, "scaleDown", &target->behavior.down);
    }
    as_buf_append_str(out, "\nrules:\n");
    if (target->group)
        append_group_rules(out, target);
    if (target->pool)
        append_pool_rules(out, target);
    for (size_t i = 0; i < target->rule_count; i++)
        append_rule(out, target, &target->rules[i]);
}

/* --- policies --- */

/* The names in a policy lack what its place says: the namespace, and the name of the policy. */
static const char *get_policy_name(const struct plan_target *target)
{
    return target->name + strlen(target->space) + 1;
}

static void append_policy_rule(struct as_buf *out, const struct plan_target *target,
                               const struct plan_rule *rule)
{
    static const char *const goals[] = {[AS_GOAL_VALUE] = "value",
                                        [AS_GOAL_AVERAGE_VALUE] = "averageValue",
                                        [AS_GOAL_UTILIZATION] = "utilization"};
    const bool is_utilization = rule->goal == AS_GOAL_UTILIZATION;
    const char *resource = rule->resource == AS_RESOURCE_CPU ? "Cpu" : "Memory";
    as_buf_append_str(out, "    # ");
    yaml_append_comment(out, rule->about);
    as_buf_append_str(out, "\n    - ");
    write_append_key(out, "name", rule->name + strlen(target->name) + 1);
    as_buf_printf(out, "\n      always: true\n      track:\n        %s: '", goals[rule->goal]);
    yaml_append_milli(out, rule->milli);
    as_buf_append_str(out, is_utilization ? "%'\n" : "'\n");
    if (is_utilization)
        as_buf_printf(out, "        of: %sRequests\n", resource);
    else if (rule->is_resource)
        as_buf_printf(out, "        resource: %s\n", resource);
    if (rule->container) {
        as_buf_append_str(out, "        ");
        write_append_key(out, "container", rule->container);
        as_buf_append_char(out, '\n');
    }
    if (rule->is_per_pod)
        as_buf_append_str(out, "        perPod: true\n");
    if (rule->is_per_pod && rule->pod_label && strcmp(rule->pod_label, "pod") != 0)
        as_buf_printf(out, "        podLabel: %s\n", rule->pod_label);
    if (rule->by_owner)
        as_buf_append_str(out, "        pods: Owned\n");
    as_buf_append_str(out, "        query: ");
    yaml_append_query(out, rule->query, 10);
    as_buf_append_char(out, '\n');
    if (rule->fallback.at_least == 0)
        return;
    as_buf_append_str(out, "      fallback: {");
    write_append_time(out, "after", rule->fallback.after_us);
    as_buf_printf(out, ", atLeast: %d}\n", rule->fallback.at_least);
}

void write_policy(const struct convert *convert, const struct plan_target *target,
                  struct as_buf *out)
{
    append_head(convert, out, target);
    as_buf_append_str(out,
                      "apiVersion: alertscaler.io/v1alpha1\nkind: ScalingPolicy\nmetadata:\n  ");
    write_append_key(out, "name", get_policy_name(target));
    as_buf_append_str(out, "\n  ");
    write_append_key(out, "namespace", target->space);
    as_buf_append_str(out, "\nspec:\n  target:\n    kubernetes: {");
    if (target->api_version) {
        write_append_key(out, "apiVersion", target->api_version);
        as_buf_append_str(out, ", ");
    }
    write_append_key(out, "kind", target->scaled_kind);
    as_buf_append_str(out, ", ");
    write_append_key(out, "name", target->scaled);
    as_buf_printf(out, "}\n    min: %d\n    max: %d\n    enforceBounds: true\n", target->min,
                  target->max);
    if (target->is_dry)
        as_buf_append_str(out, "    dryRun: true\n");
    append_schedules(out, target);
    as_buf_append_str(out, "    cooldown: {up: 0s, down: 0s}\n");
    append_tolerance(out, target);
    as_buf_append_str(out, "    behavior:\n");
    append_direction(out, "scaleUp", &target->behavior.up);
    append_direction(out, "scaleDown", &target->behavior.down);
    as_buf_append_str(out, "  rules:\n");
    for (size_t i = 0; i < target->rule_count; i++)
        append_policy_rule(out, target, &target->rules[i]);
}

/* --- rule tests --- */

/*
 * They say what holds for every rule that tracks: at its goals the size stays; without data it
 * stays; at twice its goals it grows to twice the size, as far as bounds and `behavior` allow. The
 * sizes are computed here, not by the engine that the tests are for.
 */

#define SIZE_WANTED 2   /* replicas of a test, if the bounds allow it */
#define SIZE_MOST   100 /* with more the pods would fill the file */
#define SHOWN_PODS  2   /* then */
#define NODES       10

#define FALLBACK_MOST_US (30 * AS_US_PER_MIN) /* longer tests would take long */

static int32_t write_get_size(const struct plan_target *target)
{
    int32_t wanted = target->group ? NODES : SIZE_WANTED;
    for (size_t i = 0; i < target->schedule_count; i++) /* whichever is in force */
        wanted = target->schedules[i].min > wanted ? target->schedules[i].min : wanted;
    return wanted < target->min ? target->min : wanted > target->max ? target->max : wanted;
}

/* What a growth from `size` may come to by `behavior`, with no history. */
static int32_t write_get_limit(const struct as_scaling_rules *rules, int32_t size)
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
        up->select == AS_SELECT_DISABLED || up->window_us > 0 ? size : write_get_limit(up, size);
    const int32_t most = wanted < target->max ? wanted : target->max;
    return most < limit ? most : limit;
}

/* NULL: none. The first that acts; of several at one time the largest. */
static const struct as_fallback *find_fallback(const struct plan_target *target)
{
    const struct as_fallback *first = NULL;
    for (size_t i = 0; i < target->rule_count; i++) {
        const struct as_fallback *fallback = &target->rules[i].fallback;
        if (fallback->at_least > 0 &&
            (!first || fallback->after_us < first->after_us ||
             (fallback->after_us == first->after_us && fallback->at_least > first->at_least)))
            first = fallback;
    }
    return first;
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
static int32_t write_count_pods(int32_t size)
{
    return size <= SIZE_MOST ? size : SHOWN_PODS;
}

/* Those that rules name, each once. */
static void append_containers(struct as_buf *out, const struct plan_target *target)
{
    size_t count = 0;
    for (size_t i = 0; i < target->rule_count; i++) {
        const char *container = target->rules[i].container;
        bool is_new = container != NULL;
        for (size_t k = 0; k < i && is_new; k++)
            is_new = !as_str_equal(target->rules[k].container, container);
        if (!is_new)
            continue;
        as_buf_append_str(out, count++ > 0 ? ", {" : ", containers: [{");
        write_append_key(out, "name", container);
        as_buf_append_str(out, ", requests: {cpu: 1, memory: 1G}}");
    }
    if (count > 0)
        as_buf_append_char(out, ']');
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
    for (int32_t i = 1; i <= write_count_pods(size); i++) {
        as_buf_printf(out, "          - {name: pod-%d, requests: {cpu: 1, memory: 1G}", i);
        append_containers(out, target);
        as_buf_append_str(out, "}\n");
    }
}

/* What is expected `after` the start, up to the target's name. */
static void append_expect_after(struct as_buf *out, const struct plan_target *target, int64_t after)
{
    char at[AS_DURATION_SIZE];
    as_duration_print(after, at);
    as_buf_printf(out, "    expect:\n      - {at: %s, target: ", at);
    yaml_append_text(out, target->name);
}

static void append_expect(struct as_buf *out, const struct plan_target *target)
{
    append_expect_after(out, target, 0);
}

static void write_append_query(struct as_buf *out, const struct plan_rule *rule, int32_t size,
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
    for (int32_t i = 1; i <= write_count_pods(size); i++) {
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
            write_append_query(out, &target->rules[i], size, times);
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
        append_expect(out, target);
        as_buf_printf(out, ", replicas: %d, reason: metric_unavailable}\n", size);
    }
    if (after_us > FALLBACK_MOST_US || grown == size)
        return;
    as_buf_append_str(out, after_us > 0 ? "\n" : "");
    append_start(out, target, "for long without data it has at least its fallback", size);
    append_expect_after(out, target, after_us > 0 ? after_us : AS_US_PER_S);
    append_change(out, target, size, grown);
}

static void write_workload(struct as_buf *out, const struct plan_target *target)
{
    const int32_t size = write_get_size(target);
    const bool tolerates_twice = target->tolerance_up >= 100000;
    write_without_data(out, target, size);
    if (!can_meet(target, size))
        return;
    as_buf_append_char(out, '\n');
    append_start(out, target, "at its goals the size stays", size);
    append_queries(out, target, size, 1);
    append_expect(out, target);
    as_buf_printf(out, ", replicas: %d, reason: within_tolerance}\n", size);
    if (size > SIZE_MOST || tolerates_twice)
        return;
    as_buf_append_char(out, '\n');
    append_start(out, target, "at twice its goals it grows, as far as it may", size);
    append_queries(out, target, size, 2);
    append_expect(out, target);
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
    if (target->group->starves)
        as_buf_append_str(out, "    cluster: {pods: []}\n");
    append_expect(out, target);
}

static void write_node_group(struct as_buf *out, const struct plan_target *target)
{
    const struct plan_group *group = target->group;
    const int32_t size = write_get_size(target);
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

/* What a node of the groups has is not known, so a test has no nodes: it can only say that nothing
 * happens. */
static void write_pool(struct as_buf *out, const struct plan_target *target)
{
    int64_t size = 0;
    as_buf_append_str(out, "  - name: without pods that wait the groups stay at their minima\n"
                           "    targets:\n");
    for (size_t i = 0; i < target->pool->member_count; i++) {
        const struct plan_member *member = &target->pool->members[i];
        as_buf_append_str(out, "      ");
        yaml_append_text(out, member->name);
        as_buf_printf(out, ": {replicas: %d}\n", member->min);
        size += member->min;
    }
    as_buf_append_str(out, "    cluster: {pods: []}\n    expect:\n      - {at: 1h, target: ");
    yaml_append_text(out, target->name);
    as_buf_printf(out, ", replicas: %" PRId64 "}\n", size);
}

void write_tests(const struct plan_target *target, bool is_policy, struct as_buf *out)
{
    AS_CLEANUP(as_free_p) char *name = NULL;
    const char *folder = is_policy ? "policies" : "rules";
    struct plan_target named = *target;
    as_buf_printf(out,
                  "# Tests of the rules in ../%s/%s.yaml: alertscaler test %s.yaml\n"
                  "rule_files: ['../%s/%s.yaml']\ntests:\n",
                  folder, target->name, target->name, folder, target->name);
    if (is_policy)
        named.name = name = as_xasprintf("%s/%s", target->space, get_policy_name(target));
    if (target->group)
        write_node_group(out, target);
    else if (target->pool)
        write_pool(out, target);
    else
        write_workload(out, &named);
}
