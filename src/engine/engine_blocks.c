/*
 * Blocks: why a target must not be scaled in a direction now. The module lists what the concerns
 * know, for each question anew; nothing is stored.
 *
 * Each question has its kinds of blocks:
 *
 *   question                              kinds
 *   the input of a decision               all; a pause of both directions is the flag `paused`,
 *                                         a rule with `hold` of the target is a proposal
 *   take back instances; clean up         all holds, also those of the pool
 *   put back the size before a rollout    holds of the target
 *   growth of a group, for its pool       holds, and an increase that did not come
 *   draining a marked node                pauses; for nodes also all holds with the pool's
 */
#include <alertscaler/base/attr.h>

#include "engine_concerns.h"
#include "engine_registry.h"

static bool group_holds(const struct group *group)
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

/* Rules of the target with `hold`. */
static void rules_visit_blocks(const struct block_query *query, const struct target *target)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        if (group_holds(group))
            query->visit(query->context, &(struct block){.ways = group->rule->action.hold,
                                                         .kind = BLOCK_RULE,
                                                         .name = group->rule->name});
    }
}

static void blocks_visit(const struct block_query *query, const struct target *target)
{
    FOR_CONCERNS (query->engine, concern)
        if (concern->visit_blocks)
            concern->visit_blocks(query, target);
}

struct search {
    enum as_ways ways;
    unsigned kinds;
    bool is_found;
};

static void search_visit(void *context, const struct block *block)
{
    struct search *search = context;
    if ((block->kind & ~search->kinds) == 0 && !block->rule &&
        (block->ways & search->ways) == search->ways)
        search->is_found = true;
}

bool blocks_forbid(const struct as_engine *engine, const struct target *target, enum as_ways ways,
                   unsigned kinds)
{
    const struct target *pool = kinds & BLOCK_OF_POOL ? target_find_pool(engine, target) : NULL;
    struct search search = {.ways = ways, .kinds = kinds & ~(unsigned)BLOCK_OF_POOL};
    const struct block_query query = {engine, engine->mono, engine->wall, search_visit, &search};
    blocks_visit(&query, target);
    if (pool && !search.is_found)
        blocks_visit(&query, pool);
    return search.is_found;
}

bool blocks_forbid_change(const struct as_engine *engine, const struct target *target,
                          enum as_ways way, unsigned kinds)
{
    return target->in_doubt || engine->config.dry_run || target->config->dry_run ||
           blocks_forbid(engine, target, way, kinds);
}

/* The input of a decision */

struct list {
    struct as_engine *engine;
    struct as_decide_input *input;
    struct as_forbidden *rows;
    size_t count, capacity;
};

static enum as_holder block_get_holder(unsigned kind)
{
    switch (kind) {
    case BLOCK_RULE: return AS_HOLDER_RULE;
    case BLOCK_SCHEDULE: return AS_HOLDER_SCHEDULE;
    case BLOCK_DID_NOT_COME: return AS_HOLDER_DID_NOT_COME;
    case BLOCK_INEFFECTIVE: return AS_HOLDER_INEFFECTIVE;
    case BLOCK_ROLLOUT: return AS_HOLDER_ROLLOUT;
    default: return AS_HOLDER_PAUSE;
    }
}

static void list_add(struct list *list, const struct block *block)
{
    struct as_arena *arena = &list->engine->arena;
    if (list->count == list->capacity) {
        struct as_forbidden *more =
            as_arena_alloc(arena, 2 * list->capacity + 4, sizeof(*list->rows));
        for (size_t i = 0; i < list->count; i++)
            more[i] = list->rows[i];
        list->rows = more;
        list->capacity = 2 * list->capacity + 4;
    }
    list->rows[list->count++] = (struct as_forbidden){.ways = block->ways,
                                                      .by = block_get_holder(block->kind),
                                                      .name = as_arena_strdup(arena, block->name),
                                                      .rule = as_arena_strdup(arena, block->rule)};
}

static void list_visit(void *context, const struct block *block)
{
    struct list *list = context;
    if (block->kind == BLOCK_PAUSE && block->ways == AS_WAYS_BOTH)
        list->input->flags.paused = true;
    else if (block->kind != BLOCK_RULE)
        list_add(list, block);
}

/* Blocks of a pool also block its groups, also after they got their assignments: pauses of one
 * direction, and rules. */
static void list_visit_pool(void *context, const struct block *block)
{
    const bool is_pause =
        block->kind == BLOCK_PAUSE && block->ways != AS_WAYS_BOTH && !block->is_of_all;
    if (is_pause || block->kind == BLOCK_RULE)
        list_add(context, block);
}

static void blocks_fill_input(struct as_engine *engine, const struct target *target,
                              const struct as_observation *observation,
                              struct as_decide_input *input)
{
    const struct target *pool = target_find_pool(engine, target);
    struct list list = {.engine = engine, .input = input};
    struct block_query query = {engine, engine->mono, engine->wall, list_visit, &list};
    (void)observation;
    blocks_visit(&query, target);
    query.visit = list_visit_pool;
    if (pool)
        blocks_visit(&query, pool);
    input->forbidden = list.rows;
    input->forbidden_count = list.count;
}

/* Views */

struct hold_view {
    as_hold_visit_fn *visit;
    void *context;
};

static void hold_visit(void *context, const struct block *block)
{
    const struct hold_view *view = context;
    if (block->kind & (BLOCK_RULE | BLOCK_SCHEDULE | BLOCK_ROLLOUT))
        view->visit(view->context, &(struct as_hold_view){.ways = block->ways,
                                                          .by = block_get_holder(block->kind),
                                                          .name = block->name ? block->name : "",
                                                          .until = block->until});
}

void as_engine_visit_holds(const struct as_engine *engine, const struct as_target_ref *ref,
                           as_mono_time now, as_wall_time wall, as_hold_visit_fn *visit_hold,
                           void *context)
{
    struct target key = {.ref = (struct as_target_ref *)(uintptr_t)ref};
    const struct target *target =
        RB_FIND(target_tree, (struct target_tree *)(uintptr_t)&engine->targets, &key);
    struct hold_view view = {visit_hold, context};
    const struct block_query query = {engine, now, wall, hold_visit, &view};

    if (target)
        blocks_visit(&query, target);
}

const struct concern concern_blocks = {
    .name = "blocks",
    .visit_blocks = rules_visit_blocks,
    .fill_input = blocks_fill_input,
};
