/*
 * Forbidden directions of a target: who forbids each, read from where it is known.
 *
 * The list is made anew for each question, and is not stored. The module decides nothing: gates of
 * the decision apply the list.
 */
#include <assert.h>

#include <alertscaler/base/attr.h>

#include "engine_concerns.h"
#include "engine_registry.h"

#define SINGLE_MAX 4 /* three pauses, and an increase that did not come */

struct list {
    struct as_forbidden *rows;
    size_t count, capacity;
};

static void forbidden_add(struct list *list, struct as_forbidden row)
{
    assert(list->count < list->capacity);
    list->rows[list->count++] = row;
}

/* Pauses of all targets, and of this one. One of both directions is a flag of its own. */
static void add_pauses(struct as_engine *engine, const struct target *target, struct list *list)
{
    const struct as_pause_state *const pauses[] = {&engine->pause, &target->pause};

    for (size_t i = 0; i < AS_ARRAY_SIZE(pauses); i++) {
        if (pauses[i]->is_set && pauses[i]->ways != AS_WAYS_BOTH)
            forbidden_add(list, (struct as_forbidden){
                                    .ways = pauses[i]->ways,
                                    .by = AS_HOLDER_PAUSE,
                                    .name = as_arena_strdup(&engine->arena, pauses[i]->who),
                                });
    }
}

/* No step up: the last increase did not come. */
static void forbidden_add_scaleup(const struct as_engine *engine, const struct target *target,
                                  struct list *list)
{
    if (target_did_not_come(target, engine->mono))
        forbidden_add(list,
                      (struct as_forbidden){.ways = AS_WAYS_UP, .by = AS_HOLDER_DID_NOT_COME});
}

/* Rules that did not help go no way. */
static void add_ineffective(struct as_engine *engine, const struct target *target,
                            struct list *list)
{
    const struct rule_effect *rule_effect;
    TAILQ_FOREACH (rule_effect, &target->rule_effects, in_target) {
        const char *rule = as_arena_strdup(&engine->arena, rule_effect->state.rule);
        if (rule_effect_is_held(rule_effect, engine->mono))
            forbidden_add(list, (struct as_forbidden){.ways = AS_WAYS_BOTH,
                                                      .by = AS_HOLDER_INEFFECTIVE,
                                                      .name = rule,
                                                      .rule = rule});
    }
}

static void add_schedules(const struct as_engine *engine, const struct target *target,
                          struct list *list)
{
    const struct as_target_config *config = target->config;
    const uint32_t in_force = target_get_bounds(engine, target).in_force;

    for (size_t i = 0; i < config->schedule_count; i++) {
        const struct as_schedule *schedule = &config->schedules[i];
        if ((in_force >> i & 1) && schedule->hold != AS_WAYS_NONE)
            forbidden_add(list, (struct as_forbidden){.ways = schedule->hold,
                                                      .by = AS_HOLDER_SCHEDULE,
                                                      .name = schedule->name});
    }
}

static bool is_held_by_schedule(const struct as_engine *engine, const struct target *target,
                                enum as_ways way)
{
    const struct as_target_config *config = target->config;
    const uint32_t in_force = config ? target_get_bounds(engine, target).in_force : 0;

    for (size_t i = 0; in_force && i < config->schedule_count; i++) {
        if ((in_force >> i & 1) && (config->schedules[i].hold & way))
            return true;
    }
    return false;
}

bool group_holds(const struct group *group)
{
    const struct binding *binding;
    if (group->rule->dry_run || group->rule->action.hold == AS_WAYS_NONE)
        return false;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (!incident_is_held(binding->incident))
            return true;
    }
    return false;
}

static bool is_held_by_rule(const struct target *target, enum as_ways way)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        if ((group->rule->action.hold & way) && group_holds(group))
            return true;
    }
    return false;
}

/* What is forbidden on a pool is forbidden on its groups: also after they got their assignments. */
static void add_pool(struct as_engine *engine, const struct target *target, struct list *list)
{
    const struct target *pool = target_find_pool(engine, target);
    struct group *group;
    if (!pool)
        return;
    if (pool->pause.is_set && pool->pause.ways != AS_WAYS_BOTH)
        forbidden_add(
            list, (struct as_forbidden){.ways = pool->pause.ways,
                                        .by = AS_HOLDER_PAUSE,
                                        .name = as_arena_strdup(&engine->arena, pool->pause.who)});
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&pool->groups) {
        if (group_holds(group))
            forbidden_add(list, (struct as_forbidden){.ways = group->rule->action.hold,
                                                      .by = AS_HOLDER_RULE,
                                                      .name = group->rule->name});
    }
}

bool forbidden_is_with_pool(const struct as_engine *engine, const struct target *target,
                            enum as_ways way)
{
    const struct target *pool = target_find_pool(engine, target);
    return forbidden_is(engine, target, way) || (pool && forbidden_is(engine, pool, way));
}

bool forbidden_is_held(const struct as_engine *engine, const struct target *target,
                       enum as_ways way)
{
    return pauses_find_in(engine, target, way) || is_held_by_rule(target, way) ||
           is_held_by_schedule(engine, target, way);
}

bool forbidden_is(const struct as_engine *engine, const struct target *target, enum as_ways way)
{
    return forbidden_is_held(engine, target, way) ||
           (way == AS_WAYS_UP && target_did_not_come(target, engine->mono));
}

static size_t forbidden_count_possible(const struct as_engine *engine, const struct target *target)
{
    const struct target *pool = target_find_pool(engine, target);
    size_t count = SINGLE_MAX + target->rule_effect_count + target->config->schedule_count;
    struct group *group;
    if (pool) {
        RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&pool->groups)
            count += group_holds(group);
    }
    return count;
}

void forbidden_fill(struct as_engine *engine, const struct target *target,
                    struct as_decide_input *input)
{
    struct list list = {.capacity = forbidden_count_possible(engine, target)};

    list.rows = as_arena_alloc(&engine->arena, list.capacity, sizeof(*list.rows));
    add_pauses(engine, target, &list);
    forbidden_add_scaleup(engine, target, &list);
    add_ineffective(engine, target, &list);
    add_schedules(engine, target, &list);
    add_pool(engine, target, &list);
    input->forbidden = list.rows;
    input->forbidden_count = list.count;
}

static void forbidden_fill_input(struct as_engine *engine, const struct target *target,
                                 const struct as_observation *observation,
                                 struct as_decide_input *input)
{
    (void)observation;
    forbidden_fill(engine, target, input);
}

const struct concern concern_forbidden = {
    .name = "forbidden",
    .fill_input = forbidden_fill_input,
};
