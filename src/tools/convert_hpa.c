/*
 * HorizontalPodAutoscaler: autoscaling/v1, v2beta2 and v2.
 */
#include "hpa_parts.h"

#include <string.h>

#include <alertscaler/base/str.h>

#define UTILIZATION_DEFAULT 80 /* the API server's, of cpu, where there are no metrics */

struct raw_hpa {
    struct raw_reference target;
    int32_t min, max;
    int32_t cpu_utilization; /* v1; 0: not given */
    struct raw_metric *metrics;
    size_t metric_count;
    const struct as_yaml_node *behavior;
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

static const struct schema_field new_fields[] = {
    SCHEMA_FIELD("metrics", MAPS, raw_hpa, metrics, .map = &hpa_metric,
                 .count_offset = offsetof(struct raw_hpa, metric_count)),
    {.key = "behavior", .type = SCHEMA_CUSTOM, .parse = keep_behavior},
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
}

void hpa_convert(struct convert *convert, const struct raw_object *object,
                 const struct as_yaml_node *node)
{
    const struct schema *table = find_table(convert, object, node);
    struct raw_hpa hpa = {.min = 1};
    if (!table || has_owner(convert, object) ||
        (table == &hpa_v1 && has_old_annotations(convert, object)))
        return;
    struct plan_target *target = object_start(convert, object, "horizontalpodautoscaler");
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
