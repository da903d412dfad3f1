/*
 * Escalator's nodegroups.yaml: each group by what its pods request of its nodes.
 */
#include <string.h>

#include <alertscaler/base/str.h>

#include "convert_plan.h"

#define SOFT_US     (5 * AS_US_PER_MIN) /* the defaults of `drain_after`, `drain_timeout` */
#define HARD_US     (10 * AS_US_PER_MIN)
#define COOLDOWN_US (10 * AS_US_PER_MIN)
#define PERCENT_MAX 10000

struct raw_nodegroup {
    const struct as_yaml_node *name;
    const char *group;
    int32_t min, max;
    bool is_dry, starves;
    int32_t full, slow_below, fast_below, slow_by, fast_by, newest, most;
    int64_t soft_us, hard_us, cooldown_us, health_us;
};

static void keep_name(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    if (schema_is_kind(loader, value, AS_YAML_SCALAR))
        ((struct raw_nodegroup *)object)->name = value;
}

static void skip(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)loader;
    (void)value;
    (void)object;
}

static void read_age(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)object;
    convert_leave(convert_of(loader), value,
                  "`max_node_age`: replace old nodes by a rule on an alert about their age");
}

/* A node that leaves is cordoned, which is NoSchedule, Escalator's default. */
static void read_effect(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)object;
    if (value->kind != AS_YAML_SCALAR || strcmp(value->text, "NoSchedule") != 0)
        convert_leave(convert_of(loader), value,
                      "`taint_effect`: a node that leaves is cordoned, and its pods stay until it "
                      "is empty or `drain_timeout` is over. `drain: true` evicts them");
}

static void read_timeout(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)object;
    convert_hint(
        convert_of(loader), value,
        "`scale_up_cool_down_timeout`: the lock lasts for scale_up_cool_down_period; nodes "
        "that do not come are taken back after `nodes.ready_timeout`");
}

static void read_aws(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)object;
    if (as_yaml_find(value, "launch_template_id"))
        convert_leave(convert_of(loader), value,
                      "`aws.launch_template_id`: the group is set to a size, by its own template. "
                      "There is no EC2 Fleet");
}

#define PERCENT(key, member, ...)                                                                  \
    SCHEMA_FIELD(key, INT, raw_nodegroup, member, .min = 0, .max = PERCENT_MAX, __VA_ARGS__)

static const struct schema_field group_fields[] = {
    {.key = "name", .type = SCHEMA_CUSTOM, .is_required = true, .parse = keep_name},
    SCHEMA_FIELD("cloud_provider_group_name", STRING, raw_nodegroup, group, .is_required = true),
    SCHEMA_FIELD("min_nodes", INT, raw_nodegroup, min, .min = 0, .max = AS_SIZE_MAX,
                 .fallback = "0"),
    SCHEMA_FIELD("max_nodes", INT, raw_nodegroup, max, .min = 0, .max = AS_SIZE_MAX,
                 .fallback = "0"),
    SCHEMA_FIELD("dry_mode", BOOL, raw_nodegroup, is_dry, .fallback = "false"),
    SCHEMA_FIELD("scale_on_starve", BOOL, raw_nodegroup, starves, .fallback = "false"),
    PERCENT("scale_up_threshold_percent", full, .is_required = true),
    PERCENT("taint_upper_capacity_threshold_percent", slow_below, .is_required = true),
    PERCENT("taint_lower_capacity_threshold_percent", fast_below, .is_required = true),
    SCHEMA_FIELD("slow_node_removal_rate", INT, raw_nodegroup, slow_by, .is_required = true,
                 .min = 0, .max = AS_SIZE_MAX),
    SCHEMA_FIELD("fast_node_removal_rate", INT, raw_nodegroup, fast_by, .is_required = true,
                 .min = 0, .max = AS_SIZE_MAX),
    SCHEMA_FIELD("scale_up_cool_down_period", DURATION, raw_nodegroup, cooldown_us),
    SCHEMA_FIELD("soft_delete_grace_period", DURATION, raw_nodegroup, soft_us),
    SCHEMA_FIELD("hard_delete_grace_period", DURATION, raw_nodegroup, hard_us),
    SCHEMA_FIELD("unhealthy_node_grace_period", DURATION, raw_nodegroup, health_us),
    SCHEMA_FIELD("health_check_newest_nodes_percent", INT, raw_nodegroup, newest, .min = 1,
                 .max = 100),
    SCHEMA_FIELD("max_unhealthy_nodes_percentage", INT, raw_nodegroup, most, .min = 0, .max = 100),
    {.key = "label_key", .type = SCHEMA_CUSTOM, .parse = skip}, /* the group's nodes are known */
    {.key = "label_value", .type = SCHEMA_CUSTOM, .parse = skip},
    {.key = "scale_up_cool_down_timeout", .type = SCHEMA_CUSTOM, .parse = read_timeout},
    {.key = "taint_effect", .type = SCHEMA_CUSTOM, .parse = read_effect},
    {.key = "max_node_age", .type = SCHEMA_CUSTOM, .parse = read_age},
    {.key = "aws", .type = SCHEMA_CUSTOM, .parse = read_aws},
    {0},
};

static void finish_group(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    const struct raw_nodegroup *raw = object;
    const struct as_yaml_node *upper =
        schema_find_key(node, "taint_upper_capacity_threshold_percent");
    const struct as_yaml_node *max = as_yaml_find(node, "max_nodes");
    (void)at;
    if (upper && (raw->fast_below >= raw->slow_below || raw->slow_below >= raw->full))
        loader_report(loader, upper,
                      "expected taint_lower_capacity_threshold_percent below it, and "
                      "scale_up_threshold_percent above it");
    if (max && raw->max > 0 && raw->min > raw->max)
        loader_report(loader, max, "`max_nodes` %d is below `min_nodes` %d", raw->max, raw->min);
    if (raw->hard_us <= raw->soft_us)
        loader_report(loader, node,
                      "`hard_delete_grace_period` must be longer than `soft_delete_grace_period`");
    if (raw->health_us > 0 && raw->newest == 0)
        loader_report(loader, node,
                      "`unhealthy_node_grace_period` needs `health_check_newest_nodes_percent`");
}

static const struct schema group_table = SCHEMA("node_groups", raw_nodegroup, group_fields,
                                                .other = convert_lose_key, .finish = finish_group);

static struct plan_group *escalator_make_group(struct convert *convert,
                                               const struct raw_nodegroup *raw)
{
    struct plan_group *group = as_arena_alloc(&convert->arena, 1, sizeof(*group));
    *group = (struct plan_group){
        .group = raw->group,
        .full = raw->full,
        .slow_below = raw->slow_below,
        .slow_by = raw->slow_by,
        .fast_below = raw->fast_below,
        .fast_by = raw->fast_by,
        .starves = raw->starves,
        .is_default = strcmp(raw->name->text, "default") == 0,
        .soft_us = raw->soft_us,
        .hard_us = raw->hard_us,
        .cooldown_us = raw->cooldown_us,
        .health_us = raw->health_us,
        .newest = raw->newest,
        .most = raw->most,
    };
    return group;
}

/* NULL: it is left out, or an error was reported. */
static struct plan_target *make_target(struct convert *convert, const struct raw_nodegroup *raw)
{
    const char *name = raw->name->text;
    if (!schema_is_name(name) || strchr(".-", name[0])) {
        convert_lose(convert, raw->name,
                     "the whole group: its name becomes that of a target and of files, so it has "
                     "letters, digits, `_`, `.` and `-`, and begins with a letter or a digit. "
                     "Rename it");
        return NULL;
    }
    if (raw->max == 0) {
        convert_lose(convert, raw->name,
                     "the whole group: its bounds are those of the cloud (auto-discovery), and a "
                     "target has its own. Give min_nodes and max_nodes");
        return NULL;
    }
    if (strstr(raw->group, "{{")) {
        convert_lose(convert, raw->name,
                     "the whole group: `{{` in cloud_provider_group_name would begin a template");
        return NULL;
    }
    struct plan_target *target =
        plan_target_new(convert, as_arena_strdup(&convert->arena, name), raw->name);
    if (!target)
        return NULL;
    target->group = escalator_make_group(convert, raw);
    target->min = raw->min;
    target->max = raw->max;
    target->is_dry = raw->is_dry;
    return target;
}

static void convert_group(struct convert *convert, const struct as_yaml_node *node)
{
    const struct as_yaml_node *name = as_yaml_find(node, "name");
    const size_t errors = convert_count_errors(convert);
    struct raw_nodegroup raw = {.soft_us = SOFT_US, .hard_us = HARD_US, .cooldown_us = COOLDOWN_US};
    convert_begin(convert, "node group %.200s",
                  name && name->kind == AS_YAML_SCALAR ? name->text : "");
    schema_fill_defaults(&convert->loader, &group_table, &raw);
    schema_parse(&convert->loader, &group_table, node, node, &raw);
    if (convert_count_errors(convert) > errors)
        return;
    struct plan_target *target = make_target(convert, &raw);
    if (target)
        object_finish(convert, target);
}

void escalator_convert(struct convert *convert, const struct as_yaml_node *groups)
{
    if (!schema_is_kind(&convert->loader, groups, AS_YAML_LIST))
        return;
    for (uint32_t i = 0; i < groups->count; i++)
        convert_group(convert, groups->items[i]);
    convert->shown = "";
}
