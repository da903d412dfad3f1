/*
 * HPA's `behavior` as a target's: the table of rule files reads it. `tolerance` is a key of the
 * target there, so it is taken out first.
 */
#include <string.h>

#include <alertscaler/base/quantity.h>

#include "convert_plan.h"
#include <alertscaler/rules/tables.h>

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
