/*
 * Shares of pools: see the header.
 */
#include "engine_shares.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_effects.h"
#include "engine_groups.h"
#include "engine_growth.h"
#include "engine_history.h"
#include "engine_targets.h"

static char **copy_names(const char *const *names, size_t count)
{
    char **copy = as_xcalloc(count, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = as_xstrdup(names[i]);
    return copy;
}

/* It is over; after the last one the pool decides anew. */
static void share_drop(struct as_engine *engine, struct target *group)
{
    struct target *pool = group->share.pool;
    share_free(&group->share);
    if (!pool || --pool->pool.shares > 0)
        return;
    pool->dirty = true;
    target_make_ready(engine, pool);
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
        .is_rest = terms->is_rest,
        .serial = engine->next_serial,
        .at = moment_now(engine),
    };
    share->proof_until = share->until;
    memcpy(share->decision, terms->decision, AS_ULID_SIZE);
    pool->pool.shares++;
    group->dirty = true;
    target_make_ready(engine, group);
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

/* Nothing comes of it. What an increase lacks is decided among the other groups, in spite of the
 * pool's lock. */
static void give_up(struct as_engine *engine, struct target *group)
{
    if (group->share.is_up)
        group->share.pool->pool.is_short = true;
    share_drop(engine, group);
}

/* To be committed. */
static void fail(struct as_engine *engine, struct target *group)
{
    if (group->share.is_up) {
        growth_fail(engine, group);
        effect_put_target(engine, group);
    }
    give_up(engine, group);
}

/* Whether what became of its request is not known: it counts as on the way, and nobody else buys
 * it. A request and `maybe` end by themselves. */
static bool is_requested(const struct target *group)
{
    return (group->intent && share_is_of(group, group->intent)) ||
           (group->maybe && share_is_of(group, group->maybe));
}

/* Whether an incident of the pool still wants it. */
static bool has_cause(const struct share *share)
{
    const struct group *group = group_find(share->pool, share->rule);
    const struct binding *binding;
    if (!group)
        return false;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (!incident_is_held(binding->incident))
            return true;
    }
    return false;
}

void share_review(struct as_engine *engine, struct target *group)
{
    if (group->share.pool && !has_cause(&group->share) && !is_requested(group))
        share_drop(engine, group);
}

void shares_on_halt(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets) {
        if (target->share.pool && !is_requested(target))
            give_up(engine, target);
    }
}

as_mono_time shares_expire(struct as_engine *engine, const struct target *pool)
{
    const struct as_pool_config *config = pool->config->pool;
    as_mono_time next = AS_MONO_NEVER;
    bool has_failed = false;
    for (size_t i = 0; i < config->group_count; i++) {
        struct target *group = LIST_FIRST(&engine->members[config->groups[i]]);
        if (group)
            share_review(engine, group);
        if (!group || group->share.pool != pool)
            continue;
        /* Its request is open, or an increase waits for a place within the limits. The proof of a
         * decrease does not last that long. */
        if (is_requested(group) || (group->turn.is_waiting && group->share.is_up))
            group->share.until.us = as_time_add(engine->mono.us, SHARE_US);
        if (group->share.until.us <= engine->mono.us) {
            has_failed = has_failed || group->share.is_up;
            fail(engine, group);
        } else if (group->share.until.us < next.us) {
            next = group->share.until;
        }
    }
    if (has_failed)
        effect_commit(engine);
    return next;
}

void share_prolong(struct target *group, as_mono_time until)
{
    if (group->share.pool && group->share.until.us < until.us)
        group->share.until = group->share.proof_until = until;
}

void share_on_unseen(struct as_engine *engine, struct target *group, enum as_reason outcome)
{
    if (!group->share.pool || outcome == AS_REASON_THROTTLED)
        return;
    const bool is_up = group->share.is_up;
    fail(engine, group);
    if (is_up)
        effect_commit(engine);
}

void share_on_stay(struct as_engine *engine, struct target *group, enum as_reason reason)
{
    if (!group->share.pool)
        return;
    if (reason == AS_REASON_NO_CHANGE) /* the size is there already */
        share_drop(engine, group);
    else if (reason == AS_REASON_PAUSED || as_reason_has_holder(reason) ||
             reason == AS_REASON_DRY_RUN ||
             reason == AS_REASON_COOLDOWN) /* of these the pool knows at its next look */
        give_up(engine, group);
}

bool share_is_of(const struct target *group, const struct intent *intent)
{
    const struct share *share = &group->share;
    return share->pool && !intent->is_ordered && strcmp(intent->rule, share->rule) == 0 &&
           (intent->to > intent->from) == share->is_up;
}

/* The pool's lock, and the step of its rule: with the first share that is applied. */
static void begin_lock(struct as_engine *engine, const struct share *share,
                       const struct intent *intent)
{
    struct target *pool = share->pool;
    struct as_moment *last = share->is_up ? &pool->last_up : &pool->last_down;
    if (as_moment_is_set(*last) && last->mono.us >= share->at.mono.us)
        return; /* of another share of the same decision */
    const struct intent decided = {.rule = share->rule,
                                   .from = intent->from,
                                   .to = intent->to,
                                   .serial = share->serial,
                                   .at = share->at,
                                   .generation = engine->generation};
    *last = moment_now(engine);
    if (!share->is_up)
        pool->last_step_down = moment_now(engine);
    if (!share->is_rest)
        steps_count(engine, pool, &decided);
    target_set_keep(engine, pool);
    effect_put_target(engine, pool);
}

void share_on_applied(struct as_engine *engine, struct target *group, const struct intent *intent,
                      bool is_short)
{
    if (!share_is_of(group, intent))
        return;
    begin_lock(engine, &group->share, intent);
    if (!group->share.is_up)
        group->growth.surplus = 0; /* `take` has considered all nodes */
    if (is_short)
        give_up(engine, group);
    else
        share_drop(engine, group);
}

/* A decrease in doubt starts the pool's lock, as it may be done. Its marks stay, and until its
 * outcome is known no other node of the pool leaves (as_pool_member.down_in_doubt). */
void share_on_failure(struct as_engine *engine, struct target *group, const struct intent *intent,
                      const struct as_scale_result *result)
{
    if (!group->share.pool)
        return;
    if (growth_is_failure(result) || (group->share.is_up && result->is_ambiguous)) {
        fail(engine, group);
    } else if (result->is_ambiguous) {
        begin_lock(engine, &group->share, intent);
        share_drop(engine, group);
    } /* else it is tried again */
}

void shares_on_taken_back(struct as_engine *engine, struct target *group)
{
    struct target *pool = target_find_pool(engine, group);
    if (!pool)
        return;
    pool->pool.is_short = true;
    pool->dirty = true;
    target_make_ready(engine, pool);
}
