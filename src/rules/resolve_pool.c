/*
 * Pools: from names of groups to indices, and what pools, their groups, and rules with `fit` and
 * `take` may have.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "resolve.h"

/* Keys that a target must not have, and why. */
static void refuse_keys(struct resolver *resolver, const struct raw_target *raw,
                        const char *const *keys, const char *why)
{
    resolver->loader.tree = raw->tree;
    for (; *keys; keys++) {
        const struct as_yaml_node *key = schema_find_key(raw->node, *keys);
        if (key)
            loader_report(&resolver->loader, key, "`%s` %s", *keys, why);
    }
}

/* Why a target is no group of a pool; NULL: it may be one. */
static const char *find_obstacle(const struct resolver *resolver, const struct raw_target *group,
                                 const struct as_target_config *config)
{
    if (!group->kind || !group->kind->has_nodes)
        return "is not a node group";
    if (find_lack_of_nodes(resolver, group))
        return "has no nodes in a cluster";
    return config->is_templated ? "has a template in its address" : NULL;
}

static void resolve_group(struct resolver *resolver, uint32_t pool, const struct as_yaml_node *item)
{
    static const char *const keys[] = {"cooldown", "behavior", "enforce_bounds", "after", NULL};
    struct as_target_config *targets = resolver->ruleset->targets;
    struct as_pool_config *config = targets[pool].pool;
    const struct raw_target *raw = resolver->targets[pool];
    const struct raw_target *group = find_target(resolver, item->text);
    resolver->loader.tree = raw->tree;
    if (!group) {
        report_unknown_target(resolver, item);
        return;
    }
    struct as_target_config *of = &targets[group->number];
    const char *obstacle = find_obstacle(resolver, group, of);
    const struct raw_target *first =
        config->group_count > 0 ? resolver->targets[config->groups[0]] : group;
    if (obstacle) {
        loader_report(&resolver->loader, item, "target `%s` %s", group->name, obstacle);
    } else if (of->of_pool != AS_NO_TARGET) {
        loader_report(&resolver->loader, item, "target `%s` is a group of pool `%s` already",
                      group->name, targets[of->of_pool].name);
    } else if (strcmp(first->nodes.cluster, group->nodes.cluster) != 0) {
        loader_report(&resolver->loader, item,
                      "the groups of a pool are in one cluster: `%s` is in cluster %s, those "
                      "before it in %s",
                      group->name, group->nodes.cluster, first->nodes.cluster);
    } else {
        of->of_pool = pool;
        of->bounds.cooldown = (struct as_cooldown){0};
        of->bounds.has_behavior = of->bounds.enforce_bounds = false;
        config->groups[config->group_count++] = group->number;
        refuse_keys(resolver, group, keys, "stands at the pool: this group belongs to one");
        if (!group->rule)
            return;
        resolver->loader.tree = group->rule->tree;
        loader_report(&resolver->loader, as_yaml_find(group->rule->node, "target"),
                      "target `%s` belongs to pool `%s`: rules name the pool", group->name,
                      targets[pool].name);
    }
}

static void copy_pool(const struct raw_pool *raw, struct as_pool_config *config)
{
    *config = raw->of;
    config->cpu_price = raw->pod_price.cpu;
    config->memory_price = raw->pod_price.memory;
    config->at_once_empty = (uint32_t)raw->at_once.empty;
    config->at_once_drain = (uint32_t)raw->at_once.drain;
    config->ignore_labels = copy_strings(raw->ignore_labels, raw->ignore_label_count);
    config->ignore_label_count = raw->ignore_label_count;
}

static void resolve_pool(struct resolver *resolver, uint32_t number)
{
    static const char *const keys[] = {"min",       "enforce_bounds", "behavior", "allow",
                                       "tolerance", "nodes",          NULL};
    struct as_ruleset *ruleset = resolver->ruleset;
    struct as_target_config *pool = &ruleset->targets[number];
    const struct raw_target *raw = resolver->targets[number];
    const struct as_yaml_node *list = as_yaml_find(as_yaml_find(raw->node, "pool"), "groups");
    const struct as_yaml_node *max = as_yaml_find(raw->node, "max");
    int64_t min = 0;
    pool->pool = as_xcalloc(1, sizeof(*pool->pool));
    copy_pool(&raw->pool, pool->pool);
    refuse_keys(resolver, raw, keys, "is not a key of a pool: its groups decide that");
    pool->bounds.has_behavior = pool->bounds.enforce_bounds = false;
    if (!list || list->kind != AS_YAML_LIST)
        return;
    pool->pool->groups = as_xcalloc(list->count + 1, sizeof(*pool->pool->groups));
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i]->kind == AS_YAML_SCALAR)
            resolve_group(resolver, number, list->items[i]);
    }
    for (size_t i = 0; i < pool->pool->group_count; i++)
        min += ruleset->targets[pool->pool->groups[i]].bounds.min;
    resolver->loader.tree = raw->tree;
    if (max && min > pool->bounds.max)
        loader_report(&resolver->loader, max,
                      "`max` %d is below the sum of the groups' minima, %lld", pool->bounds.max,
                      (long long)min);
    else
        pool->bounds.min = (int32_t)min;
}

/* The rule, its action or its end. */
static void check_rule(struct resolver *resolver, const struct raw_rule *raw,
                       const struct as_rule *rule)
{
    const struct as_ruleset *ruleset = resolver->ruleset;
    const struct raw_target *target = raw->target ? find_target(resolver, raw->target) : NULL;
    const bool is_of_pool = rule->action.is_fit || rule->action.is_take;
    const struct as_yaml_node *at = as_yaml_find(raw->node, "target");
    resolver->loader.tree = raw->tree;
    if (!target)
        return;
    if (as_target_kind_has_groups(target->kind) && (!is_of_pool || raw->has_ending))
        loader_report(&resolver->loader, at,
                      "target `%s` is a pool, which only has `scale_up: {fit: pending_pods}` and "
                      "`scale_down: {take: unneeded_nodes}`, without `on_resolved`",
                      target->name);
    if (!is_of_pool || as_target_kind_has_groups(target->kind))
        return;
    const char *obstacle = find_obstacle(resolver, target, &ruleset->targets[target->number]);
    if (obstacle)
        loader_report(&resolver->loader, at,
                      "`fit` and `take` are for pools and node groups, but target `%s` %s",
                      target->name, obstacle);
}

void resolve_pools(struct resolver *resolver)
{
    struct as_ruleset *ruleset = resolver->ruleset;
    for (size_t i = 0; i < ruleset->target_count; i++)
        ruleset->targets[i].of_pool = AS_NO_TARGET;
    for (uint32_t i = 0; i < ruleset->target_count; i++) {
        if (as_target_kind_has_groups(ruleset->targets[i].kind))
            resolve_pool(resolver, i);
    }
    for (size_t i = 0; i < resolver->rule_count; i++)
        check_rule(resolver, resolver->rules[i], &ruleset->rules[i]);
}
