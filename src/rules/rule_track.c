/*
 * The action `track` of a rule.
 */
#include <string.h>

#include "rule_parts.h"

struct raw_track {
    struct raw_source source;
    double value, average_value;
    int64_t utilization;
    unsigned of, resource;
};

void rule_parse_goal(struct loader *loader, const struct as_yaml_node *value, double *out)
{
    const double milli = 0.001; /* HPA's unit: smaller values count as zero */
    if (schema_parse_number(loader, value, out) && *out < milli)
        loader_report(loader, value, "expected a number of at least 0.001");
}

static void parse_value(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_parse_goal(loader, value, &((struct raw_track *)object)->value);
}

static void parse_average_value(struct loader *loader, const struct as_yaml_node *value,
                                void *object)
{
    rule_parse_goal(loader, value, &((struct raw_track *)object)->average_value);
}

/* In parse_track's order. */
static const char *const of_words[] = {"cpu_requests", "memory_requests", "cpu_limits",
                                       "memory_limits", NULL};

static const char *const resource_words[] = {
    [AS_RESOURCE_CPU] = "cpu", [AS_RESOURCE_MEMORY] = "memory", [AS_RESOURCE_COUNT] = NULL};

static const struct schema_field track_fields[] = {
    {.key = "value",
     .type = SCHEMA_CUSTOM,
     .parse = parse_value,
     .forms = RULE_GOAL_FORMS,
     .expected = "number"},
    {.key = "average_value",
     .type = SCHEMA_CUSTOM,
     .parse = parse_average_value,
     .forms = RULE_GOAL_FORMS,
     .expected = "number"},
    SCHEMA_FIELD("utilization", PERCENT, raw_track, utilization, .min = 1000,
                 .max = INT64_C(1000000) * 1000),
    SCHEMA_FIELD("of", WORD, raw_track, of, .words = of_words),
    SCHEMA_FIELD("resource", WORD, raw_track, resource, .words = resource_words),
    SCHEMA_FIELD("per_pod", BOOL, raw_track, source.per_pod, .fallback = "false"),
    SCHEMA_FIELD("pod_label", STRING, raw_track, source.pod_label, .fallback = "pod"),
    {0},
};

static void finish_track(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    bool is_per_pod = ((const struct raw_track *)object)->source.per_pod;
    const struct as_yaml_node *of = schema_find_key(node, "of");
    const struct as_yaml_node *resource = schema_find_key(node, "resource");
    const struct as_yaml_node *utilization = schema_find_key(node, "utilization");
    const struct as_yaml_node *per_pod = schema_find_key(node, "per_pod");
    const struct as_yaml_node *pod_label = schema_find_key(node, "pod_label");
    if (utilization && !of)
        loader_report(loader, utilization, "`utilization` needs `of`, such as `of: cpu_requests`");
    if (of && !utilization)
        loader_report(loader, of, "`of` goes with `utilization`");
    if (resource && !(is_per_pod && as_yaml_find(node, "average_value")))
        loader_report(loader, resource, "`resource` goes with `average_value` and `per_pod: true`");
    if (utilization && !is_per_pod)
        loader_report(loader, utilization, "`utilization` needs a `query` with `per_pod: true`");
    if (is_per_pod && as_yaml_find(node, "value"))
        loader_report(loader, per_pod, "`value` takes one number, not one for each pod");
    if (is_per_pod && !as_yaml_find(node, "query"))
        loader_report(loader, per_pod, "`per_pod` goes with a `query`");
    if (pod_label && !is_per_pod)
        loader_report(loader, pod_label, "`pod_label` goes with `per_pod: true`");
}

static const struct schema_choice track_choices[] = {
    {SCHEMA_ONE_OF("value", "average_value", "utilization"), false},
    {rule_source_keys, false},
    {0}};

const struct schema rule_track = SCHEMA("track", raw_track, track_fields, .base = &rule_source,
                                        .base_offset = offsetof(struct raw_track, source),
                                        .choices = track_choices, .finish = finish_track);

static enum as_goal get_goal(const struct raw_track *raw)
{
    return raw->utilization > 0     ? AS_GOAL_UTILIZATION
           : raw->average_value > 0 ? AS_GOAL_AVERAGE_VALUE
                                    : AS_GOAL_VALUE;
}

const struct schema_field schema_track_forms[] = {SCHEMA_FORM(MAP, .map = &rule_track), {0}};

void parse_track(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    struct raw_track raw = {.of = 0};
    rule->action.kind = AS_ACTION_TRACK;
    schema_fill_defaults(loader, &rule_track, &raw);
    schema_parse(loader, &rule_track, value, value, &raw);
    enum as_goal goal = get_goal(&raw);
    const double goals[] = {
        [AS_GOAL_VALUE] = raw.value,
        [AS_GOAL_AVERAGE_VALUE] = raw.average_value,
        [AS_GOAL_UTILIZATION] = (double)raw.utilization / 1000,
    };
    rule->action.track = (struct as_track){
        .goal = goal,
        .value = goals[goal],
        .resource = goal != AS_GOAL_UTILIZATION ? (enum as_resource)raw.resource
                    : raw.of % 2                ? AS_RESOURCE_MEMORY
                                                : AS_RESOURCE_CPU,
        .of_limits = raw.of >= 2,
        .is_resource = goal == AS_GOAL_UTILIZATION || as_yaml_find(value, "resource"),
    };
    rule->source = raw.source;
    const struct as_yaml_node *of = as_yaml_find(value, "of");
    if (goal == AS_GOAL_UTILIZATION && of && of->kind == AS_YAML_SCALAR &&
        strcmp(of->text, of_words[raw.of]) == 0)
        rule->resource = of;
}
