/*
 * The rule file of a target, and Prometheus' file with the alerts of all targets. Every target has
 * an alert that always fires: what it comes from looked at its numbers all the time.
 */
#include <inttypes.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/time.h>

#include "convert_plan.h"

#define ALERT             "Autoscaled"
#define TOLERANCE_DEFAULT 10000 /* of a target: 10 % */

static void append_key(struct as_buf *out, const char *key, const char *text)
{
    as_buf_printf(out, "%s: ", key);
    yaml_append_text(out, text);
}

/* The labels of the alert that are not its name. */
static void append_object(struct as_buf *out, const struct plan_target *target)
{
    if (target->space) {
        append_key(out, "namespace", target->space);
        as_buf_append_str(out, ", ");
    }
    append_key(out, target->label, target->object);
}

void yaml_append_labels(struct as_buf *out, const struct plan_target *target)
{
    as_buf_append_str(out, "alertname: " ALERT ", ");
    append_object(out, target);
}

/* Names are those of Kubernetes, or of targets, and need no escapes in a matcher. */
static void append_match(struct as_buf *out, const struct plan_target *target)
{
    as_buf_append_str(out, "    match: ['alertname=\"" ALERT "\"', ");
    if (target->space)
        as_buf_printf(out, "'namespace=\"%s\"', ", target->space);
    as_buf_printf(out, "'%s=\"%s\"']\n    target: ", target->label, target->object);
    yaml_append_text(out, target->name);
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
        append_key(out, "apiVersion", target->api_version);
        as_buf_append_str(out, ", ");
    }
    append_key(out, "kind", target->scaled_kind);
    as_buf_append_str(out, ", ");
    append_key(out, "namespace", target->space);
    as_buf_append_str(out, ", ");
    append_key(out, "name", target->scaled);
    as_buf_append_str(out, "}\n");
}

static void append_bounds(struct as_buf *out, const struct plan_target *target)
{
    as_buf_printf(out, "    min: %d\n    max: %d\n    enforce_bounds: true\n", target->min,
                  target->max);
    if (target->is_dry)
        as_buf_printf(out, "    dry_run: true%s\n",
                      target->is_incomplete
                          ? "                     # until the rules are complete: see the head"
                          : "");
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
        append_key(out, "timezone", schedule->timezone);
        as_buf_append_str(out, ", ");
        append_days(out, schedule->days);
        as_buf_printf(out, "from: '%02u:%02u', to: '%02u:%02u', min: %d}\n", schedule->from / 60,
                      schedule->from % 60, schedule->to / 60, schedule->to % 60, schedule->min);
    }
}

static void append_time(struct as_buf *out, const char *key, int64_t us)
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
    append_key(out, "name", rule->name);
    as_buf_append_char(out, '\n');
    append_match(out, target);
    as_buf_printf(out, "    track:\n      %s: ", goals[rule->goal]);
    yaml_append_milli(out, rule->milli);
    as_buf_append_str(out, is_utilization ? "%\n" : "\n");
    if (is_utilization)
        as_buf_printf(out, "      of: %s_requests\n", resource);
    else if (rule->is_resource)
        as_buf_printf(out, "      resource: %s\n", resource);
    if (rule->is_per_pod)
        as_buf_append_str(out, "      per_pod: true\n");
    if (rule->is_per_pod && rule->pod_label && strcmp(rule->pod_label, "pod") != 0)
        as_buf_printf(out, "      pod_label: %s\n", rule->pod_label);
    as_buf_append_str(out, "      query: ");
    yaml_append_query(out, rule->query, 8);
    as_buf_append_char(out, '\n');
    if (rule->fallback.at_least == 0)
        return;
    as_buf_append_str(out, "    fallback: {");
    append_time(out, "after", rule->fallback.after_us);
    as_buf_printf(out, ", at_least: %d}\n", rule->fallback.at_least);
}

static void append_group(struct as_buf *out, const struct plan_target *target)
{
    const struct plan_group *group = target->group;
    as_buf_append_str(out, "    node_group: {provider: aws, ");
    append_key(out, "name", group->group);
    as_buf_append_str(out, "}\n");
    append_bounds(out, target);
    as_buf_append_str(out, "    cooldown: {");
    append_time(out, "up", group->cooldown_us);
    as_buf_append_str(out, ", ");
    append_time(out, "down", group->cooldown_us);
    as_buf_append_str(out, "}\n    nodes:\n      choose: oldest\n      drain: wait\n      ");
    append_time(out, "drain_after", group->soft_us);
    as_buf_append_str(out, "\n      ");
    append_time(out, "drain_timeout", group->hard_us);
    as_buf_append_char(out, '\n');
    if (group->is_default)
        as_buf_append_str(out, "      pending: any\n");
    if (group->health_us > 0) {
        as_buf_append_str(out, "      health: {");
        append_time(out, "grace", group->health_us);
        as_buf_printf(out, ", newest: %d%%, most: %d%%}\n", group->newest, group->most);
    }
}

static void append_group_rule(struct as_buf *out, const struct plan_target *target,
                              const char *name, const char *about)
{
    AS_CLEANUP(as_free_p) char *whole = as_xasprintf("%s.%s", target->name, name);
    as_buf_printf(out, "  # %s\n  - ", about);
    append_key(out, "name", whole);
    as_buf_append_char(out, '\n');
    append_match(out, target);
    as_buf_append_str(out, "    every: 1m\n");
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
    as_buf_append_str(out,
                      "    guard: {query: vector(1)}         # no node leaves while Prometheus "
                      "does not answer\n");
    if (!group->starves)
        return;
    append_group_rule(out, target, "starved", "scale_on_starve");
    as_buf_append_str(out, "    scale_up: {fit: pending_pods}\n");
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
    for (size_t i = 0; i < target->rule_count; i++)
        append_rule(out, target, &target->rules[i]);
}

void write_alerts(struct plan_target *const *targets, size_t count, struct as_buf *out)
{
    as_buf_append_str(out,
                      "# For Prometheus: an alert for each target, which always fires. Give it a "
                      "route that leads to alertscaler\n# alone (docs/receiver.md), by the label "
                      "`scale`: it is not for people.\ngroups:\n  - name: alertscaler-autoscaled\n"
                      "    rules:\n");
    for (size_t i = 0; i < count; i++) {
        as_buf_append_str(out, "      - alert: " ALERT "\n        expr: vector(1)\n"
                               "        labels: {scale: \"true\", ");
        append_object(out, targets[i]);
        as_buf_append_str(out, "}\n");
    }
}
