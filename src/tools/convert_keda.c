/*
 * KEDA's ScaledObject. KEDA has two loops, an HPA between 1 and the maximum and its own to and from
 * 0; here one decision leads all the way. docs/from-keda.md says what that changes.
 */
#include "convert_keda.h"

#include <string.h>

#include <alertscaler/base/str.h>

#define WINDOW_MAX_S 3600 /* of a `behavior` */

/* --- tables --- */

struct raw_hpa_config {
    const struct as_yaml_node *behavior;
};

struct raw_advanced {
    struct raw_hpa_config hpa;
    bool restores;
    const struct as_yaml_node *node, *modifiers;
};

struct raw_keda {
    struct raw_reference target;
    int32_t polling_s, cooldown_s, initial_s;
    int32_t idle, min, max; /* idle -1: not given */
    const struct as_yaml_node *fallback;
    struct raw_advanced advanced;
    struct raw_trigger *triggers;
    size_t trigger_count;
};

#define KEEP(function, owner, member)                                                              \
    static void function(struct loader *loader, const struct as_yaml_node *value, void *object)    \
    {                                                                                              \
        (void)loader;                                                                              \
        ((struct owner *)object)->member = as_yaml_is_null(value) ? NULL : value;                  \
    }

KEEP(keep_behavior, raw_hpa_config, behavior)
KEEP(keep_modifiers, raw_advanced, modifiers)
KEEP(keep_fallback, raw_keda, fallback)

static void skip(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)loader;
    (void)value;
    (void)object;
}

static const struct schema_field hpa_fields[] = {
    {.key = "behavior", .type = SCHEMA_CUSTOM, .parse = keep_behavior},
    {.key = "name", .type = SCHEMA_CUSTOM, .parse = skip}, /* of the HPA that KEDA makes */
    {0},
};
static const struct schema hpa_table =
    SCHEMA("horizontalPodAutoscalerConfig", raw_hpa_config, hpa_fields, .other = convert_lose_key);

static const struct schema_field advanced_fields[] = {
    SCHEMA_FIELD("horizontalPodAutoscalerConfig", MAP, raw_advanced, hpa, .map = &hpa_table),
    SCHEMA_FIELD("restoreToOriginalReplicaCount", BOOL, raw_advanced, restores,
                 .fallback = "false"),
    {.key = "scalingModifiers", .type = SCHEMA_CUSTOM, .parse = keep_modifiers},
    {0},
};
static const struct schema advanced_table =
    SCHEMA("advanced", raw_advanced, advanced_fields, .other = convert_lose_key);

static const struct schema_field keda_fields[] = {
    SCHEMA_FIELD("scaleTargetRef", MAP, raw_keda, target, .is_required = true,
                 .map = &convert_reference),
    SCHEMA_FIELD("pollingInterval", INT, raw_keda, polling_s, .min = 1, .max = INT32_MAX,
                 .fallback = "30"),
    SCHEMA_FIELD("cooldownPeriod", INT, raw_keda, cooldown_s, .min = 0, .max = INT32_MAX,
                 .fallback = "300"),
    SCHEMA_FIELD("initialCooldownPeriod", INT, raw_keda, initial_s, .min = 0, .max = INT32_MAX,
                 .fallback = "0"),
    SCHEMA_FIELD("idleReplicaCount", INT, raw_keda, idle, .min = 0, .max = AS_SIZE_MAX),
    SCHEMA_FIELD("minReplicaCount", INT, raw_keda, min, .min = 0, .max = AS_SIZE_MAX,
                 .fallback = "0"),
    SCHEMA_FIELD("maxReplicaCount", INT, raw_keda, max, .min = 1, .max = AS_SIZE_MAX,
                 .fallback = "100"),
    {.key = "fallback", .type = SCHEMA_CUSTOM, .parse = keep_fallback},
    SCHEMA_FIELD("advanced", MAP, raw_keda, advanced, .map = &advanced_table),
    SCHEMA_FIELD("triggers", MAPS, raw_keda, triggers, .is_required = true, .map = &keda_trigger,
                 .count_offset = offsetof(struct raw_keda, trigger_count)),
    {0},
};

static void finish_keda(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    const struct raw_keda *keda = object;
    const struct as_yaml_node *max = as_yaml_find(node, "maxReplicaCount");
    const struct as_yaml_node *idle = as_yaml_find(node, "idleReplicaCount");
    if (keda->min > keda->max)
        loader_report(loader, max ? max : at, "`maxReplicaCount` %d is below `minReplicaCount` %d",
                      keda->max, keda->min);
    if (idle && keda->idle >= keda->min)
        loader_report(loader, idle, "`idleReplicaCount` %d is not below `minReplicaCount` %d",
                      keda->idle, keda->min);
}

static const struct schema keda_table =
    SCHEMA("ScaledObject", raw_keda, keda_fields, .other = convert_lose_key, .finish = finish_keda);

/* --- what is not carried over --- */

static void lose_parts(struct convert *convert, const struct raw_object *object,
                       const struct raw_keda *keda)
{
    const struct as_yaml_node *spec = object->spec;
    if (keda->advanced.restores)
        convert_leave(convert, as_yaml_find(spec, "advanced"),
                      "`restoreToOriginalReplicaCount`: set the size when you remove the rules: "
                      "alertscaler scale");
    if (keda->advanced.modifiers)
        convert_lose(convert, keda->advanced.modifiers,
                     "`scalingModifiers`: write the formula in PromQL, as the query of one rule");
    if (keda->initial_s > 0)
        convert_leave(convert, as_yaml_find(spec, "initialCooldownPeriod"),
                      "`initialCooldownPeriod`: pause the target when you create the workload: "
                      "alertscaler pause");
}

static void lose_pauses(struct convert *convert, const struct raw_object *object)
{
    static const char prefix[] = "autoscaling.keda.sh/";
    const struct as_yaml_node *map = object->meta.annotations;
    for (uint32_t i = 0; map && map->kind == AS_YAML_MAP && i < map->count; i++) {
        const struct as_yaml_node *key = map->pairs[i].key, *value = map->pairs[i].value;
        if (!as_str_starts_with(key->text, prefix) ||
            (value->kind == AS_YAML_SCALAR && strcmp(value->text, "false") == 0))
            continue;
        convert_lose(convert, key,
                     "annotation `%.80s`: to pause the target use `alertscaler pause`, to set its "
                     "size `alertscaler scale`",
                     key->text);
    }
}

/* --- bounds --- */

static bool has_kind(const struct raw_keda *keda, bool is_resource)
{
    for (size_t i = 0; i < keda->trigger_count; i++) {
        if (keda_trigger_is_resource(&keda->triggers[i]) == is_resource)
            return true;
    }
    return false;
}

/* The least size, and how far below it a workload without work goes. */
static void set_bounds(struct convert *convert, const struct raw_keda *keda,
                       const struct as_yaml_node *spec, struct plan_target *target)
{
    const bool has_resources = has_kind(keda, true), has_others = has_kind(keda, false);
    target->min = keda->idle >= 0 ? keda->idle : keda->min;
    target->max = keda->max;
    if (target->min > 0 || keda->trigger_count == 0)
        return;
    if (!has_others) {
        target->min = keda->min > 0 ? keda->min : 1;
        convert_hint(convert, spec,
                     "cpu and memory have no value without pods, so the size does not go below %d",
                     target->min);
    } else if (has_resources) {
        convert_lose(convert, spec,
                     "the way to zero: a rule by cpu or memory keeps at least one replica, and the "
                     "highest size wins. Remove that rule, or set `min: 1`");
    }
}

/* KEDA waits for `cooldownPeriod` before zero, and its HPA for the window before all else. */
static void set_window(struct convert *convert, const struct raw_keda *keda,
                       const struct as_yaml_node *spec, struct plan_target *target)
{
    struct as_scaling_rules *down = &target->behavior.down;
    const struct as_yaml_node *period = as_yaml_find(spec, "cooldownPeriod");
    const int64_t window_s = down->window_us / AS_US_PER_S;
    if (target->min > 0 || keda->cooldown_s <= window_s)
        return;
    const int32_t taken = keda->cooldown_s < WINDOW_MAX_S ? keda->cooldown_s : WINDOW_MAX_S;
    down->window_us = taken * AS_US_PER_S;
    if (taken < keda->cooldown_s)
        convert_lose(convert, period,
                     "a `cooldownPeriod` of more than an hour: the window is %d s. Give the rule a "
                     "`guard`, or use a query over a longer time",
                     WINDOW_MAX_S);
    else
        convert_hint(convert, period ? period : spec,
                     "`cooldownPeriod` becomes the window of every step down, not only of the one "
                     "to zero");
}

static void fill_reference(struct raw_reference *reference)
{
    if (!reference->kind)
        reference->kind = "Deployment";
    if (!reference->api_version && strcmp(reference->kind, "Deployment") != 0 &&
        strcmp(reference->kind, "StatefulSet") != 0)
        reference->api_version = "apps/v1"; /* KEDA's default, for every kind */
}

void keda_convert(struct convert *convert, const struct raw_object *object,
                  const struct as_yaml_node *node)
{
    struct raw_keda keda = {.idle = -1};
    struct plan_target *target = object_start(convert, object, "scaledobject");
    if (!object->spec) {
        loader_report(&convert->loader, node, "it has no `spec`");
        return;
    }
    const size_t errors = convert_count_errors(convert);
    schema_fill_defaults(&convert->loader, &keda_table, &keda);
    schema_parse(&convert->loader, &keda_table, object->spec, object->spec, &keda);
    if (!target || convert_count_errors(convert) > errors)
        return;
    fill_reference(&keda.target);
    if (!object_refer(convert, &keda.target, target))
        return;
    lose_parts(convert, object, &keda);
    lose_pauses(convert, object);
    set_bounds(convert, &keda, object->spec, target);
    behavior_read(convert, keda.advanced.hpa.behavior, object->spec, target);
    set_window(convert, &keda, object->spec, target);
    const struct keda_floor floor = {
        .is_zero = target->min == 0,
        .min = keda.idle >= 0 ? keda.min : 0,
    };
    for (size_t i = 0; i < keda.trigger_count; i++)
        keda_add_trigger(convert, target, &keda.triggers[i], &floor);
    keda_add_fallback(convert, target, keda.fallback, keda.polling_s);
    if (target->rule_count > 0)
        object_finish(convert, target);
    else if (target->schedule_count > 0)
        convert_lose(convert, object->spec,
                     "cron triggers alone: after a schedule no rule would bring the size down. "
                     "Write both: docs/from-keda.md#a-cron-trigger");
}
