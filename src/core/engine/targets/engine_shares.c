/*
 * Shares of pools: see the header.
 */
#include "engine_shares.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine/state/engine_effects.h"
#include "engine/state/engine_targets.h"
#include "engine/targets/engine_growth.h"
#include "engine/targets/engine_steps.h"

static char **copy_names(const char *const *names, size_t count)
{
    char **copy = as_xcalloc(count, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = as_xstrdup(names[i]);
    return copy;
}

void share_give(struct as_engine *engine, struct target *pool, struct target *group,
                const struct share_terms *terms)
{
    struct share *share = &group->share;
    share_drop(engine, group);
    *share = (struct share){
        .pool = pool,
        .rule = as_xstrdup(terms->rule),
        .to = terms->to,
        .is_up = terms->is_up,
        .take = copy_names(terms->take, terms->take_count),
        .take_count = terms->take_count,
        .until = {as_time_add(engine->mono.us, SHARE_US)},
        .serial = engine->next_serial,
        .at = moment_now(engine),
    };
    memcpy(share->decision, terms->decision, AS_ULID_SIZE);
    pool->pool.shares++;
    group->dirty = true;
    target_make_ready(engine, group);
}

void share_drop(struct as_engine *engine, struct target *group)
{
    struct target *pool = group->share.pool;
    share_free(&group->share);
    if (!pool || --pool->pool.shares > 0)
        return;
    pool->dirty = true;
    target_make_ready(engine, pool);
}

void shares_drop_all(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets) {
        if (target->share.pool)
            target->share.pool->pool.shares = 0;
        share_free(&target->share);
    }
}

/* The rest is decided among the other groups, in spite of the pool's lock. */
static void fail(struct as_engine *engine, struct target *group)
{
    if (group->share.is_up) {
        growth_fail(engine, group);
        group->share.pool->pool.is_short = true;
    }
    share_drop(engine, group);
}

void share_review(struct as_engine *engine, struct target *group)
{
    if (!group->share.pool || group->share.until.us > engine->mono.us)
        return;
    fail(engine, group);
    effect_put_target(engine, group);
    effect_commit(engine);
}

void share_on_unseen(struct as_engine *engine, struct target *group, enum as_reason outcome)
{
    if (!group->share.pool)
        return;
    if (outcome == AS_REASON_THROTTLED) {
        share_drop(engine, group);
        return;
    }
    fail(engine, group);
    effect_put_target(engine, group);
    effect_commit(engine);
}

void share_on_stay(struct as_engine *engine, struct target *group, enum as_reason reason)
{
    struct share *share = &group->share;
    if (!share->pool)
        return;
    if (reason == AS_REASON_BUDGET)
        share->until.us = as_time_add(engine->mono.us, SHARE_US);
    else if (reason == AS_REASON_PAUSED || reason == AS_REASON_DRY_RUN ||
             reason == AS_REASON_NO_CHANGE)
        share_drop(engine, group);
}

bool share_is_of(const struct target *group, const struct intent *intent)
{
    const struct share *share = &group->share;
    return share->pool && !intent->is_ordered && strcmp(intent->rule, share->rule) == 0 &&
           (intent->to > intent->from) == share->is_up;
}

/* The pool's lock begins with the first share that is applied. */
void share_on_applied(struct as_engine *engine, struct target *group, const struct intent *intent,
                      bool is_short)
{
    struct share *share = &group->share;
    struct target *pool = share->pool;
    if (!share_is_of(group, intent))
        return;
    const struct intent decided = {.rule = share->rule,
                                   .from = intent->from,
                                   .to = intent->to,
                                   .serial = share->serial,
                                   .at = share->at,
                                   .generation = engine->generation};
    *(share->is_up ? &pool->last_up : &pool->last_down) = moment_now(engine);
    if (!share->is_up)
        pool->last_step_down = moment_now(engine);
    steps_count(engine, pool, &decided);
    target_set_keep(engine, pool);
    effect_put_target(engine, pool);
    pool->pool.is_short = pool->pool.is_short || (is_short && share->is_up);
    share_drop(engine, group);
}

void share_on_failure(struct as_engine *engine, struct target *group,
                      const struct as_scale_result *result)
{
    const struct share *share = &group->share;
    if (!share->pool || result->is_ambiguous || result->outcome == AS_REASON_CONFLICT)
        return; /* it may still be carried out, or is tried again */
    if (result->outcome == AS_REASON_THROTTLED) {
        share_drop(engine, group);
        return;
    }
    const bool is_up = share->is_up;
    fail(engine, group);
    if (is_up)
        effect_put_target(engine, group);
}

void shares_on_taken_back(struct as_engine *engine, struct target *group)
{
    const struct as_target_config *config = group->config;
    if (!config || config->of_pool == AS_NO_TARGET)
        return;
    struct target *pool = LIST_FIRST(&engine->members[config->of_pool]);
    if (!pool)
        return;
    pool->pool.is_short = true;
    pool->dirty = true;
    target_make_ready(engine, pool);
}
