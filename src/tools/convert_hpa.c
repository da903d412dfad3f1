/*
 * HorizontalPodAutoscaler: autoscaling/v1, v2beta2 and v2, as a target with a rule for each metric.
 */
#include <string.h>

#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/rules/tables.h>

#include "convert_plan.h"

struct raw_goal {
    unsigned type; /* index into goal_words */
    const struct as_yaml_node *node, *value, *average_value;
    int32_t average_utilization; /* 0: not given */
};

struct raw_identifier {
    const char *name;
    const struct as_yaml_node *selector; /* NULL: none */
};

struct raw_metric_source {
    const struct as_yaml_node *node;
    const char *resource, *container; /* of the types Resource, ContainerResource */
    struct raw_identifier metric;
    struct raw_reference described;
    struct raw_goal goal;
    const struct as_yaml_node *fallback; /* NULL: none */
};

enum metric_type {
    METRIC_RESOURCE,
    METRIC_CONTAINER_RESOURCE,
    METRIC_PODS,
    METRIC_OBJECT,
    METRIC_EXTERNAL,
    METRIC_COUNT
};

struct raw_metric {
    unsigned type; /* a metric_type */
    const struct as_yaml_node *node;
    struct raw_metric_source sources[METRIC_COUNT];
};

/* --- `behavior` --- */

/*
 * It is read as that of a target: the table of rule files reads it. `tolerance` is a key of the
 * target there, so it is taken out first.
 */

#define PERCENT_SCALE 5      /* a tolerance in thousandths of a percent */
#define TOLERANCE_MAX 100000 /* of a target: 100 % */

/* A copy of the map without one key. */
static struct as_yaml_node *copy_without(struct convert *convert, const struct as_yaml_node *map,
                                         const char *key)
{
    struct as_yaml_node *copy = as_arena_alloc(&convert->arena, 1, sizeof(*copy));
    *copy = *map;
    if (map->kind != AS_YAML_MAP)
        return copy;
    struct as_yaml_pair *pairs = as_arena_alloc(&convert->arena, map->count, sizeof(*pairs));
    copy->count = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        if (strcmp(map->pairs[i].key->text, key) != 0)
            pairs[copy->count++] = map->pairs[i];
    }
    copy->pairs = pairs;
    return copy;
}

static void read_tolerance(struct convert *convert, const struct as_yaml_node *node,
                           int64_t *tolerance)
{
    char found[AS_YAML_FOUND_SIZE];
    int64_t down = 0, up = 0;
    if (node->kind != AS_YAML_SCALAR ||
        as_quantity_parse_scaled(node->text, node->size, PERCENT_SCALE, false, &down) < 0 ||
        as_quantity_parse_scaled(node->text, node->size, PERCENT_SCALE, true, &up) < 0)
        loader_report(&convert->loader, node, "expected a quantity such as 0.05, found %s",
                      as_yaml_describe(node, found));
    else if (down > TOLERANCE_MAX)
        convert_lose(convert, node, "a tolerance of more than 100 %%: give the target another one");
    else
        *tolerance = down;
    if (down != up)
        convert_hint(convert, node, "the tolerance is cut to thousandths of a percent");
}

/* Reads what the table of rule files does not have, and returns the rest. */
static const struct as_yaml_node *read_direction(struct convert *convert,
                                                 const struct as_yaml_node *direction,
                                                 int64_t *tolerance)
{
    const struct as_yaml_node *value = as_yaml_find(direction, "tolerance");
    const struct as_yaml_node *policies = as_yaml_find(direction, "policies");
    if (value && !as_yaml_is_null(value))
        read_tolerance(convert, value, tolerance);
    struct as_yaml_node *rest = copy_without(convert, direction, "tolerance");
    if (policies && policies->kind == AS_YAML_LIST && policies->count > AS_POLICIES_MAX) {
        convert_lose(convert, policies,
                     "%u policies: a target has at most %d. Keep those that count", policies->count,
                     AS_POLICIES_MAX);
        rest = copy_without(convert, rest, "policies");
    }
    return rest;
}

/* As an HPA without `behavior`: docs/from-hpa.md says what differs. */
static const struct as_scaling_rules old_up = {
    .select = AS_SELECT_MAX,
    .policy_count = 2,
    .policies = {{AS_POLICY_PERCENT, 100, 15 * AS_US_PER_S}, {AS_POLICY_PODS, 3, 15 * AS_US_PER_S}},
};

void behavior_read(struct convert *convert, const struct as_yaml_node *node,
                   const struct as_yaml_node *at, struct plan_target *target)
{
    target->has_behavior = true;
    target->behavior = as_behavior_default;
    if (!node || as_yaml_is_null(node)) {
        target->behavior.up = old_up;
        target->is_old_behavior = true;
        convert_hint(convert, at,
                     "it has no `behavior`, and HPA then has other rules for growth: "
                     "docs/from-hpa.md#an-hpa-without-behavior. The rules come close to them");
        return;
    }
    if (!schema_is_kind(&convert->loader, node, AS_YAML_MAP))
        return;
    struct as_yaml_node rest = *node;
    struct as_yaml_pair *pairs = as_arena_alloc(&convert->arena, node->count, sizeof(*pairs));
    for (uint32_t i = 0; i < node->count; i++) {
        const bool is_up = strcmp(node->pairs[i].key->text, "scaleUp") == 0;
        int64_t *tolerance = is_up ? &target->tolerance_up : &target->tolerance_down;
        pairs[i] = node->pairs[i];
        pairs[i].value = read_direction(convert, node->pairs[i].value, tolerance);
    }
    rest.pairs = pairs;
    const struct schema_field *field = schema_policy.fields;
    while (strcmp(field->key, "behavior") != 0)
        field++;
    struct as_target_defaults policy = {.bounds = {.has_behavior = false}};
    if (schema_parse_value(&convert->loader, field, &rest, &policy))
        target->behavior = policy.bounds.behavior;
}

/* --- metrics as rules that track --- */

/*
 * Each metric is a rule of the target: the highest size wins, and a missing value forbids a scale-
 * down, in HPA and here.
 */

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

static void keep_hpa_fallback(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    if (!as_yaml_is_null(value) && schema_is_kind(loader, value, AS_YAML_MAP))
        ((struct raw_metric_source *)object)->fallback = value;
}

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
    {.key = "fallback", .type = SCHEMA_CUSTOM, .parse = keep_hpa_fallback},
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
static const struct schema hpa_metric =
    SCHEMA("metric", raw_metric, metric_fields, .other = convert_lose_key, .init = init_metric,
           .finish = finish_metric);

/* --- `fallback` of an external metric --- */

/*
 * KEP-5679. The field is that of the KEP's text: Kubernetes 1.37 does not have it. Its earlier
 * drafts count failures, one at each look of the controller.
 */

#define HPA_SYNC_US     (15 * AS_US_PER_S)
#define HPA_AFTER_MAX   (7 * AS_US_PER_DAY)
#define HPA_FAILING_FOR "3m"

struct raw_hpa_fallback {
    int64_t failing_us;
    int32_t failures; /* 0: not given */
    int32_t replicas;
};

static const struct schema_field hpa_fallback_fields[] = {
    SCHEMA_FIELD("failureDuration", DURATION, raw_hpa_fallback, failing_us, .min = 1,
                 .max = HPA_AFTER_MAX, .fallback = HPA_FAILING_FOR),
    SCHEMA_FIELD("failureThreshold", INT, raw_hpa_fallback, failures, .min = 1,
                 .max = HPA_AFTER_MAX / HPA_SYNC_US),
    SCHEMA_FIELD("replicas", INT, raw_hpa_fallback, replicas, .is_required = true, .min = 1,
                 .max = AS_SIZE_MAX),
    {0},
};
static const struct schema hpa_fallback_table =
    SCHEMA("fallback", raw_hpa_fallback, hpa_fallback_fields, .other = convert_lose_key);

/* HPA's `replicas` is what the metric wants, so that a larger size may fall to it. Ours never
 * lowers a size. */
static void hpa_add_fallback(struct convert *convert, const struct raw_metric *metric,
                             struct plan_rule *rule)
{
    const struct as_yaml_node *node = metric->sources[metric->type].fallback;
    const size_t errors = convert_count_errors(convert);
    struct raw_hpa_fallback raw = {.failures = 0};
    if (!node)
        return;
    if (metric->type != METRIC_EXTERNAL) {
        convert_lose(convert, node,
                     "`fallback` of a metric of type %s: only external metrics "
                     "have one",
                     type_words[metric->type]);
        return;
    }
    schema_fill_defaults(&convert->loader, &hpa_fallback_table, &raw);
    schema_parse(&convert->loader, &hpa_fallback_table, node, node, &raw);
    if (convert_count_errors(convert) != errors)
        return;
    convert_hint(convert, node,
                 "`fallback`: without the metric HPA lowers a size above %d. Here the size stays, "
                 "because a `fallback` never lowers a size",
                 raw.replicas);
    rule->fallback = (struct as_fallback){
        .after_us = raw.failures > 0 ? raw.failures * HPA_SYNC_US : raw.failing_us,
        .at_least = raw.replicas,
    };
}

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
    if (container && goal == AS_GOAL_UTILIZATION && !as_sized_is_container(container)) {
        convert_lose(convert, node,
                     "the utilization of container `%.63s`: a container cannot have this name",
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
    rule->container = goal == AS_GOAL_UTILIZATION ? container : NULL;
    rule->is_per_pod = true;
    rule->pod_label = answer.label;
    rule->query = answer.query;
}

/* The goal of a metric that is not a resource. */
static bool hpa_read_goal(struct convert *convert, const struct raw_metric *metric,
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
    if (!hpa_read_goal(convert, metric, &source->goal, &goal, &milli))
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
    hpa_add_fallback(convert, metric, rule);
}

/* Adds the rule of a metric, or reports why not. */
static void hpa_add_metric(struct convert *convert, struct plan_target *target,
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

/* --- the object --- */

#define UTILIZATION_DEFAULT 80 /* the API server's, of cpu, where there are no metrics */

struct raw_hpa {
    struct raw_reference target;
    int32_t min, max;
    int32_t cpu_utilization; /* v1; 0: not given */
    struct raw_metric *metrics;
    size_t metric_count;
    const struct as_yaml_node *behavior;
    unsigned selection; /* a selection_words */
};

static void keep_behavior(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)loader;
    ((struct raw_hpa *)object)->behavior = value;
}

static void finish_hpa(struct loader *loader, const struct as_yaml_node *node,
                       const struct as_yaml_node *at, void *object)
{
    const struct raw_hpa *hpa = object;
    const struct as_yaml_node *max = as_yaml_find(node, "maxReplicas");
    (void)at;
    if (hpa->max > 0 && hpa->min > hpa->max)
        loader_report(loader, max, "`maxReplicas` %d is below `minReplicas` %d", hpa->max,
                      hpa->min);
}

static const struct schema_field shared_fields[] = {
    SCHEMA_FIELD("scaleTargetRef", MAP, raw_hpa, target, .is_required = true,
                 .map = &convert_reference),
    SCHEMA_FIELD("minReplicas", INT, raw_hpa, min, .min = 0, .max = AS_SIZE_MAX, .fallback = "1"),
    SCHEMA_FIELD("maxReplicas", INT, raw_hpa, max, .is_required = true, .min = 1,
                 .max = AS_SIZE_MAX),
    {0},
};

static const struct schema shared = SCHEMA("HPA", raw_hpa, shared_fields);

static const struct schema_field old_fields[] = {
    SCHEMA_FIELD("targetCPUUtilizationPercentage", INT, raw_hpa, cpu_utilization, .min = 1,
                 .max = INT32_MAX),
    {0},
};

/* KEP-5325. The field is that of the KEP's text: Kubernetes 1.37 does not have it. */
enum { SELECTION_LABELS, SELECTION_OWNER };
static const char *const selection_words[] = {[SELECTION_LABELS] = "LabelSelector",
                                              [SELECTION_OWNER] = "OwnerReference",
                                              [SELECTION_OWNER + 1] = NULL};

static const struct schema_field new_fields[] = {
    SCHEMA_FIELD("metrics", MAPS, raw_hpa, metrics, .map = &hpa_metric,
                 .count_offset = offsetof(struct raw_hpa, metric_count)),
    {.key = "behavior", .type = SCHEMA_CUSTOM, .parse = keep_behavior},
    SCHEMA_FIELD("selectionStrategy", WORD, raw_hpa, selection, .words = selection_words,
                 .fallback = "LabelSelector"),
    {0},
};

static const struct schema hpa_v1 = SCHEMA("HPA v1", raw_hpa, old_fields, .base = &shared,
                                           .other = convert_lose_key, .finish = finish_hpa);
static const struct schema hpa_v2 = SCHEMA("HPA v2", raw_hpa, new_fields, .base = &shared,
                                           .other = convert_lose_key, .finish = finish_hpa);

static const struct version {
    const char *name;
    const struct schema *table; /* NULL: not read */
} versions[] = {
    {"autoscaling/v2", &hpa_v2},
    {"autoscaling/v2beta2", &hpa_v2},
    {"autoscaling/v1", &hpa_v1},
};

const char *convert_origin(struct convert *convert, const struct as_yaml_node *node)
{
    return convert_text(convert, "%s:%u", as_yaml_get_file(convert->loader.tree), node->place.line);
}

/* v1 keeps what it has no keys for in annotations, in the form of an API that is gone. */
static bool has_old_annotations(struct convert *convert, const struct raw_object *object)
{
    static const char *const names[] = {"autoscaling.alpha.kubernetes.io/metrics",
                                        "autoscaling.alpha.kubernetes.io/behavior"};
    const struct as_yaml_node *map = object->meta.annotations;
    for (size_t i = 0; map && map->kind == AS_YAML_MAP && i < AS_ARRAY_SIZE(names); i++) {
        const struct as_yaml_node *key = schema_find_key(map, names[i]);
        if (!key)
            continue;
        convert_lose(convert, key,
                     "the whole object: annotation `%s` holds what autoscaling/v1 has no keys for. "
                     "Take it as v2: kubectl get hpa.v2.autoscaling -o yaml",
                     names[i]);
        return true;
    }
    return false;
}

/* KEDA keeps an HPA behind each ScaledObject. */
static bool has_owner(struct convert *convert, const struct raw_object *object)
{
    const struct as_yaml_node *owners = object->meta.owners;
    for (uint32_t i = 0; owners && owners->kind == AS_YAML_LIST && i < owners->count; i++) {
        const struct as_yaml_node *kind = as_yaml_find(owners->items[i], "kind");
        if (!kind || kind->kind != AS_YAML_SCALAR || strcmp(kind->text, "ScaledObject") != 0)
            continue;
        convert_hint(convert, owners->items[i],
                     "it belongs to a ScaledObject, so it is left out: convert the ScaledObject");
        return true;
    }
    return false;
}

static const struct schema *find_table(struct convert *convert, const struct raw_object *object,
                                       const struct as_yaml_node *node)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(versions); i++) {
        if (strcmp(versions[i].name, object->api_version) == 0)
            return versions[i].table;
    }
    convert_lose(convert, as_yaml_find(node, "apiVersion"),
                 "the whole object: of this API, v1, v2 and v2beta2 are read. Take it as v2: "
                 "kubectl get hpa.v2.autoscaling -o yaml");
    return NULL;
}

static bool can_be_zero(const struct raw_hpa *hpa)
{
    for (size_t i = 0; i < hpa->metric_count; i++) {
        if (hpa->metrics[i].type == METRIC_OBJECT || hpa->metrics[i].type == METRIC_EXTERNAL)
            return true;
    }
    return false;
}

static void add_metrics(struct convert *convert, struct plan_target *target,
                        const struct raw_hpa *hpa, const struct as_yaml_node *spec)
{
    const int64_t percent = hpa->cpu_utilization ? hpa->cpu_utilization : UTILIZATION_DEFAULT;
    for (size_t i = 0; i < hpa->metric_count; i++)
        hpa_add_metric(convert, target, &hpa->metrics[i]);
    if (hpa->metric_count == 0)
        hpa_add_resource(convert, target, spec, "cpu", NULL, AS_GOAL_UTILIZATION, percent * 1000);
    for (size_t i = 0; i < target->rule_count && hpa->selection == SELECTION_OWNER; i++) {
        struct plan_rule *rule = &target->rules[i];
        rule->by_owner = rule->is_per_pod || rule->goal == AS_GOAL_VALUE;
    }
}

void hpa_convert(struct convert *convert, const struct raw_object *object,
                 const struct as_yaml_node *node)
{
    const struct schema *table = find_table(convert, object, node);
    struct raw_hpa hpa = {.min = 1};
    if (!table || has_owner(convert, object) ||
        (table == &hpa_v1 && has_old_annotations(convert, object)))
        return;
    struct plan_target *target = object_start(convert, object);
    if (!object->spec) {
        loader_report(&convert->loader, node, "it has no `spec`");
        return;
    }
    const size_t errors = convert_count_errors(convert);
    schema_fill_defaults(&convert->loader, table, &hpa);
    schema_parse(&convert->loader, table, object->spec, object->spec, &hpa);
    if (!target)
        return;
    behavior_read(convert, hpa.behavior, object->spec, target);
    if (convert_count_errors(convert) > errors)
        return;
    if (!hpa.target.kind) {
        loader_report(&convert->loader, hpa.target.node, "key `kind` is missing");
        return;
    }
    if (!object_refer(convert, &hpa.target, target))
        return;
    if (hpa.min == 0 && !can_be_zero(&hpa)) {
        loader_report(&convert->loader, as_yaml_find(object->spec, "minReplicas"),
                      "`minReplicas: 0` needs an Object or External metric: nothing else has a "
                      "value without pods");
        return;
    }
    target->min = hpa.min;
    target->max = hpa.max;
    add_metrics(convert, target, &hpa, object->spec);
    if (target->rule_count > 0)
        object_finish(convert, target);
}
