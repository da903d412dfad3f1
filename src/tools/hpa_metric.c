/*
 * An HPA's metrics as rules that track. Each metric is a rule of the target: the highest size wins,
 * and a missing value forbids a scale-down, in HPA and here.
 */
#include <string.h>

#include <alertscaler/base/str.h>

#include "convert_adapter.h"
#include "hpa_parts.h"

#define UTILIZATION_MAX 1000000 /* percent, of a rule file */

/* --- tables --- */

enum goal_type { GOAL_UTILIZATION, GOAL_VALUE, GOAL_AVERAGE_VALUE, GOAL_COUNT };

static const char *const goal_words[] = {"Utilization", "Value", "AverageValue", NULL};
static const char *const goal_keys[] = {"averageUtilization", "value", "averageValue"};

/* Until one is read. */
static void init_goal(struct loader *loader, void *object)
{
    (void)loader;
    ((struct raw_goal *)object)->type = GOAL_COUNT;
}

static void init_metric(struct loader *loader, void *object)
{
    (void)loader;
    ((struct raw_metric *)object)->type = METRIC_COUNT;
}

static void finish_goal(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    struct raw_goal *goal = object;
    goal->node = node;
    if (goal->type < GOAL_COUNT && !as_yaml_find(node, goal_keys[goal->type]))
        loader_report(loader, at, "`type: %s` needs `%s`", goal_words[goal->type],
                      goal_keys[goal->type]);
}

static const struct schema_field goal_fields[] = {
    SCHEMA_FIELD("type", WORD, raw_goal, type, .is_required = true, .words = goal_words),
    SCHEMA_FIELD("value", QUERY, raw_goal, value),
    SCHEMA_FIELD("averageValue", QUERY, raw_goal, average_value),
    SCHEMA_FIELD("averageUtilization", INT, raw_goal, average_utilization, .min = 1,
                 .max = INT32_MAX),
    {0},
};
static const struct schema goal_table =
    SCHEMA("target", raw_goal, goal_fields, .other = convert_lose_key, .init = init_goal,
           .finish = finish_goal);

static void keep_selector(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    if (!as_yaml_is_null(value) && schema_is_kind(loader, value, AS_YAML_MAP))
        ((struct raw_identifier *)object)->selector = value;
}

static const struct schema_field identifier_fields[] = {
    SCHEMA_FIELD("name", TEXT, raw_identifier, name, .is_required = true),
    {.key = "selector", .type = SCHEMA_CUSTOM, .parse = keep_selector},
    {0},
};
static const struct schema identifier_table =
    SCHEMA("metric", raw_identifier, identifier_fields, .other = convert_lose_key);

static void finish_source(struct loader *loader, const struct as_yaml_node *node,
                          const struct as_yaml_node *at, void *object)
{
    (void)loader;
    (void)at;
    ((struct raw_metric_source *)object)->node = node;
}

static const struct schema_field source_fields[] = {
    SCHEMA_FIELD("name", TEXT, raw_metric_source, resource),
    SCHEMA_FIELD("container", TEXT, raw_metric_source, container),
    SCHEMA_FIELD("metric", MAP, raw_metric_source, metric, .map = &identifier_table),
    SCHEMA_FIELD("describedObject", MAP, raw_metric_source, described, .map = &convert_reference),
    SCHEMA_FIELD("target", MAP, raw_metric_source, goal, .is_required = true, .map = &goal_table),
    {0},
};
static const struct schema source_table =
    SCHEMA("metric source", raw_metric_source, source_fields, .other = convert_lose_key,
           .finish = finish_source);

static const char *const type_words[] = {"Resource", "ContainerResource", "Pods",
                                         "Object",   "External",          NULL};
static const char *const type_keys[] = {"resource", "containerResource", "pods", "object",
                                        "external"};
/* What the source of each type names. */
static const char *const source_keys[METRIC_COUNT][3] = {
    [METRIC_RESOURCE] = {"name"},   [METRIC_CONTAINER_RESOURCE] = {"name", "container"},
    [METRIC_PODS] = {"metric"},     [METRIC_OBJECT] = {"metric", "describedObject"},
    [METRIC_EXTERNAL] = {"metric"},
};

static void finish_metric(struct loader *loader, const struct as_yaml_node *node,
                          const struct as_yaml_node *at, void *object)
{
    struct raw_metric *metric = object;
    metric->node = node;
    if (metric->type == METRIC_COUNT)
        return; /* is reported */
    const struct as_yaml_node *source = as_yaml_find(node, type_keys[metric->type]);
    if (!source) {
        loader_report(loader, at, "`type: %s` needs `%s`", type_words[metric->type],
                      type_keys[metric->type]);
        return;
    }
    for (const char *const *key = source_keys[metric->type]; key < source_keys[metric->type] + 3;
         key++) {
        if (*key && source->kind == AS_YAML_MAP && !as_yaml_find(source, *key))
            loader_report(loader, source, "key `%s` is missing", *key);
    }
}

#define IN_METRIC(type)                                                                            \
    offsetof(struct raw_metric, sources) + (type) * sizeof(struct raw_metric_source)

static const struct schema_field metric_fields[] = {
    SCHEMA_FIELD("type", WORD, raw_metric, type, .is_required = true, .words = type_words),
    {.key = "resource",
     .type = SCHEMA_MAP,
     .offset = IN_METRIC(METRIC_RESOURCE),
     .map = &source_table},
    {.key = "containerResource",
     .type = SCHEMA_MAP,
     .offset = IN_METRIC(METRIC_CONTAINER_RESOURCE),
     .map = &source_table},
    {.key = "pods", .type = SCHEMA_MAP, .offset = IN_METRIC(METRIC_PODS), .map = &source_table},
    {.key = "object", .type = SCHEMA_MAP, .offset = IN_METRIC(METRIC_OBJECT), .map = &source_table},
    {.key = "external",
     .type = SCHEMA_MAP,
     .offset = IN_METRIC(METRIC_EXTERNAL),
     .map = &source_table},
    {0},
};
const struct schema hpa_metric =
    SCHEMA("metric", raw_metric, metric_fields, .other = convert_lose_key, .init = init_metric,
           .finish = finish_metric);

/* --- rules --- */

static bool find_resource(const char *name, enum as_resource *resource_out)
{
    static const char *const words[] = {[AS_RESOURCE_CPU] = "cpu", [AS_RESOURCE_MEMORY] = "memory"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
        if (strcmp(words[i], name) == 0) {
            *resource_out = (enum as_resource)i;
            return true;
        }
    }
    return false;
}

void hpa_add_resource(struct convert *convert, struct plan_target *target,
                      const struct as_yaml_node *node, const char *resource, const char *container,
                      enum as_goal goal, int64_t milli)
{
    struct adapter_answer answer;
    enum as_resource kind;
    const char *why = NULL;
    if (!find_resource(resource, &kind)) {
        convert_lose(
            convert, node,
            "the metric of resource `%.60s`: only cpu and memory are resources here. Track "
            "an `average_value` with a query",
            resource);
        return;
    }
    if (container && goal == AS_GOAL_UTILIZATION) {
        convert_lose(convert, node,
                     "the utilization of container `%.63s`: a target knows the requests of whole "
                     "pods only. Use `averageValue`, or the resource of the whole pod",
                     container);
        return;
    }
    if (goal == AS_GOAL_UTILIZATION && milli > INT64_C(1000) * UTILIZATION_MAX) {
        convert_lose(convert, node, "a utilization above %d %%: use `averageValue`",
                     UTILIZATION_MAX);
        return;
    }
    if (!adapter_find_usage(convert, target, kind, container, &answer, &why)) {
        convert_lose(
            convert, node,
            "the usage of %s: the `resourceRules` of prometheus-adapter cannot be used: %s",
            resource, why);
        return;
    }
    struct plan_rule *rule = plan_add_rule(convert, target, resource);
    rule->about =
        convert_text(convert, "%s of %s%s, %s", resource, container ? "container " : "whole pods",
                     container ? container : "", convert_origin(convert, node));
    rule->goal = goal;
    rule->milli = milli;
    rule->is_resource = true;
    rule->resource = kind;
    rule->is_per_pod = true;
    rule->pod_label = answer.label;
    rule->query = answer.query;
}

/* The goal of a metric that is not a resource. */
static bool read_goal(struct convert *convert, const struct raw_metric *metric,
                      const struct raw_goal *goal, enum as_goal *goal_out, int64_t *milli_out)
{
    const bool is_value = goal->type == GOAL_VALUE;
    if (goal->type == GOAL_UTILIZATION || (is_value && metric->type == METRIC_PODS)) {
        loader_report(&convert->loader, goal->node, "a metric of type %s has no `%s`",
                      type_words[metric->type], goal_words[goal->type]);
        return false;
    }
    *goal_out = is_value ? AS_GOAL_VALUE : AS_GOAL_AVERAGE_VALUE;
    return convert_parse_goal(convert, is_value ? goal->value : goal->average_value, milli_out);
}

static void fill_object(struct convert *convert, const struct raw_reference *described,
                        struct adapter_request *request)
{
    const char *version = described->api_version ? described->api_version : "";
    const char *slash = strchr(version, '/');
    char *resource = as_arena_strdup(&convert->arena, described->kind ? described->kind : "");
    for (char *at = resource; *at; at++)
        *at |= *at >= 'A' && *at <= 'Z' ? 0x20 : 0;
    request->group = slash ? convert_text(convert, "%.*s", (int)(slash - version), version) : "";
    request->resource = resource;
    /* of a namespace HPA asks for its own, whatever the name */
    request->object = strcmp(resource, "namespace") == 0 ? request->space : described->name;
}

static void add_metric(struct convert *convert, struct plan_target *target,
                       const struct raw_metric *metric)
{
    const struct raw_metric_source *source = &metric->sources[metric->type];
    struct adapter_request request = {
        .metric = source->metric.name,
        .selector = source->metric.selector,
        .space = target->space,
    };
    struct adapter_answer answer;
    enum as_goal goal;
    int64_t milli = 0;
    const char *why = NULL;
    if (!read_goal(convert, metric, &source->goal, &goal, &milli))
        return;
    if (metric->type == METRIC_PODS) {
        request.group = "";
        request.resource = "pod";
        request.object = plan_match_pods(convert, target);
        request.is_pods = true;
    } else if (metric->type == METRIC_OBJECT) {
        fill_object(convert, &source->described, &request);
    }
    if (!adapter_find(convert, &request, &answer, &why)) {
        convert_lose(convert, source->node, "the metric `%.100s`: %s", request.metric, why);
        return;
    }
    if (answer.other)
        convert_hint(convert, source->node,
                     "the metric `%.100s` may be made by two rules of prometheus-adapter's "
                     "configuration, on lines %u and %u, and only Prometheus knows which series "
                     "there is. The first one of these is taken",
                     request.metric, answer.rule->node->place.line, answer.other->node->place.line);
    struct plan_rule *rule = plan_add_rule(convert, target, request.metric);
    rule->about = convert_text(convert, "%s metric %.100s, %s; its query is that of %s:%u",
                               type_words[metric->type], request.metric,
                               convert_origin(convert, metric->node),
                               as_yaml_get_file(answer.rule->tree), answer.rule->node->place.line);
    rule->goal = goal;
    rule->milli = milli;
    rule->is_per_pod = metric->type == METRIC_PODS;
    rule->pod_label = answer.label;
    rule->query = answer.query;
}

void hpa_add_metric(struct convert *convert, struct plan_target *target,
                    const struct raw_metric *metric)
{
    const struct raw_metric_source *source = &metric->sources[metric->type];
    const struct raw_goal *goal = &source->goal;
    int64_t milli = (int64_t)goal->average_utilization * 1000;
    if (metric->type > METRIC_CONTAINER_RESOURCE) {
        add_metric(convert, target, metric);
        return;
    }
    if (goal->type == GOAL_VALUE) {
        loader_report(&convert->loader, goal->node, "a metric of type %s has no `Value`",
                      type_words[metric->type]);
        return;
    }
    if (goal->type == GOAL_AVERAGE_VALUE &&
        !convert_parse_goal(convert, goal->average_value, &milli))
        return;
    hpa_add_resource(convert, target, source->node, source->resource, source->container,
                     goal->type == GOAL_UTILIZATION ? AS_GOAL_UTILIZATION : AS_GOAL_AVERAGE_VALUE,
                     milli);
}
