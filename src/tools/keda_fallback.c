/*
 * KEDA's `fallback`. KEDA counts failures of a trigger, one in each `pollingInterval`, and then
 * acts as if its number asked for `replicas`; cpu and memory have none. Here it is the time without
 * a value, and a size is only ever raised.
 */
#include "convert_keda.h"

#include <string.h>

#define AFTER_MAX_S (7 * 86400)

struct raw_fallback {
    int32_t failures, replicas;
    const char *behavior;
};

static const struct schema_field fields[] = {
    SCHEMA_FIELD("failureThreshold", INT, raw_fallback, failures, .is_required = true, .min = 0,
                 .max = INT32_MAX),
    SCHEMA_FIELD("replicas", INT, raw_fallback, replicas, .is_required = true, .min = 0,
                 .max = AS_SIZE_MAX),
    SCHEMA_FIELD("behavior", STRING, raw_fallback, behavior, .fallback = "static"),
    {0},
};
static const struct schema table =
    SCHEMA("fallback", raw_fallback, fields, .other = convert_lose_key);

/* What a size becomes that is below `replicas`, and one above. */
static const struct {
    const char *word;
    bool raises, lowers;
} behaviors[] = {
    {"static", true, true},
    {"currentReplicas", false, false},
    {"currentReplicasIfHigher", true, false},
    {"currentReplicasIfLower", false, true},
};

static void take(struct convert *convert, const struct as_yaml_node *node,
                 const struct raw_fallback *raw, int32_t polling_s, struct as_fallback *fallback)
{
    const int64_t after_s = (int64_t)raw->failures * polling_s;
    size_t i = 0;
    while (i < AS_ARRAY_SIZE(behaviors) && strcmp(behaviors[i].word, raw->behavior) != 0)
        i++;
    if (i == AS_ARRAY_SIZE(behaviors)) {
        convert_lose(convert, node, "`fallback` with the `behavior` `%.60s`, which is not known",
                     raw->behavior);
        return;
    }
    if (after_s > AFTER_MAX_S) {
        convert_lose(convert, node,
                     "`fallback`: `failureThreshold` times `pollingInterval` is "
                     "more than a week");
        return;
    }
    if (behaviors[i].lowers)
        convert_hint(convert, node,
                     "`fallback`: without data KEDA lowers a size above %d, which here stays",
                     raw->replicas);
    if (behaviors[i].raises && raw->replicas > 0)
        *fallback =
            (struct as_fallback){.after_us = after_s * AS_US_PER_S, .at_least = raw->replicas};
}

void keda_add_fallback(struct convert *convert, struct plan_target *target,
                       const struct as_yaml_node *node, int32_t polling_s)
{
    struct raw_fallback raw = {.behavior = NULL};
    struct as_fallback fallback = {.at_least = 0};
    const size_t errors = convert_count_errors(convert);
    if (!node || !schema_is_kind(&convert->loader, node, AS_YAML_MAP))
        return;
    schema_fill_defaults(&convert->loader, &table, &raw);
    schema_parse(&convert->loader, &table, node, node, &raw);
    if (convert_count_errors(convert) == errors)
        take(convert, node, &raw, polling_s, &fallback);
    for (size_t i = 0; i < target->rule_count; i++) {
        struct plan_rule *rule = &target->rules[i];
        if (!rule->is_resource && rule->goal != AS_GOAL_UTILIZATION)
            rule->fallback = fallback;
    }
}
