/*
 * `after`, in both directions. Nothing polls: who is held is released when the others settle.
 *
 *   evaluation  a target is not evaluated while a target in its `after` has open incidents, or a
 *               assignment of its pool, and is still busy with them
 *   decrease    a decided decrease is not begun while a target that has this one in its `after` is
 *               being decreased, or has still to decide whether it is; the hold is part of the
 *               decision, and when it ends the target is observed and decided again
 *
 * Invariants: a held target is idle and has a deadline, AFTER_MAX_US after it was first held in
 * this way; after that it is not held any more. Three kinds of targets hold no other target: one
 * whose decrease is held (so the two ways never wait for each other), one that waits after a
 * failure, and one that a lock, a limit or its bounds keep at its size. The configuration has no
 * cycles; even in a cycle the deadlines would end the wait.
 */
#include <bsd/sys/queue.h>

#include "engine_concerns.h"
#include "engine_pools.h"
#include "engine_registry.h"

/* The longest time that a target is held in one way. */
#define AFTER_MAX_US (30 * AS_US_PER_S)

struct after_end { /* of being held in one way */
    bool is_begun;
    as_mono_time until;
};

struct after {
    TAILQ_ENTRY(after) link; /* while it is held */
    struct target *target;
    bool is_held, is_decrease;    /* is_decrease: decided, and only its decrease is held */
    const struct target *blocker; /* the first one found; NULL: it is forgotten */
    struct after_end evaluation, decrease;
};

static struct after *get_after(const struct target *target)
{
    return target->parts[CONCERN_AFTER];
}

static bool is_decrease_held(const struct target *target)
{
    const struct after *after = get_after(target);
    return after->is_held && after->is_decrease;
}

static bool is_busy(const struct as_engine *engine, const struct target *target)
{
    return !target_is_backing_off(engine, target) && !is_decrease_held(target) &&
           (target->phase != PHASE_IDLE || target->dirty || get_after(target)->is_held ||
            pool_get(target)->assignments > 0);
}

static bool is_at_work(const struct as_engine *engine, const struct target *target)
{
    return (target->open_bindings > 0 || assignment_get(target)->pool) && is_busy(engine, target);
}

/* Whether something is there that may want less. */
static bool may_want_less(const struct target *target)
{
    if (assignment_get(target)->pool)
        return !assignment_get(target)->is_up;
    if (pool_get(target)->assignments > 0)
        return target->verdict.direction == AS_DIRECTION_DOWN;
    return target->open_bindings > 0 || endings_are_open(target);
}

/* Or may be, once it has decided. */
static bool is_being_decreased(const struct as_engine *engine, const struct target *target)
{
    if (target->intent)
        return target->intent->state.to < target->intent->state.from;
    return may_want_less(target) && is_busy(engine, target) && !engine->config.dry_run &&
           !target->config->dry_run && !blocks_forbid(engine, target, AS_WAYS_DOWN, BLOCK_PAUSE);
}

static const struct target *find_blocker(const struct as_engine *engine,
                                         const struct target *target)
{
    const struct as_target_config *config = target->config;
    for (size_t i = 0; i < config->after_count; i++) {
        const struct target *other;
        LIST_FOREACH (other, target_get_members(engine, engine->ruleset->targets[config->after[i]]),
                      of_entry) {
            if (is_at_work(engine, other))
                return other;
        }
    }
    return NULL;
}

static bool is_named_by(const struct target *target, const struct as_engine *engine,
                        const struct as_target_config *other)
{
    for (size_t i = 0; i < other->after_count; i++) {
        if (engine->ruleset->targets[other->after[i]] == target->config)
            return true;
    }
    return false;
}

static const struct target *find_decreased(const struct as_engine *engine,
                                           const struct target *target)
{
    for (uint32_t i = 0; i < engine->ruleset->target_count; i++) {
        const struct target *other;
        if (!is_named_by(target, engine, engine->ruleset->targets[i]))
            continue;
        LIST_FOREACH (other, target_get_members(engine, engine->ruleset->targets[i]), of_entry) {
            if (is_being_decreased(engine, other))
                return other;
        }
    }
    return NULL;
}

static void let_go(struct as_engine *engine, struct target *target)
{
    if (get_after(target)->is_held)
        TAILQ_REMOVE(&engine->held_back, get_after(target), link);
    get_after(target)->is_held = false;
}

/* False: it has been held long enough. */
static bool after_hold(struct as_engine *engine, struct target *target,
                       const struct target *blocker, bool is_decrease)
{
    struct after *after = get_after(target);
    struct after_end *end = is_decrease ? &after->decrease : &after->evaluation;
    if (!end->is_begun)
        end->until.us = as_time_add(engine->mono.us, AFTER_MAX_US);
    end->is_begun = true;
    if (end->until.us <= engine->mono.us)
        return false;
    after->is_held = true;
    after->is_decrease = is_decrease;
    after->blocker = blocker;
    TAILQ_INSERT_TAIL(&engine->held_back, after, link);
    return true;
}

/* True: the target was held back, and must stay idle. */
bool after_must_wait(struct as_engine *engine, struct target *target)
{
    let_go(engine, target);
    if (!target->config || target->config->after_count == 0 || target->open_bindings == 0)
        return false;
    const struct target *blocker = find_blocker(engine, target);
    if (!blocker || !after_hold(engine, target, blocker, false))
        return false;
    target_set_deadline(engine, target, get_after(target)->evaluation.until);
    return true;
}

const struct target *after_hold_decrease(struct as_engine *engine, struct target *target,
                                         as_mono_time *until_out)
{
    const struct target *blocker = find_decreased(engine, target);
    if (!blocker || !after_hold(engine, target, blocker, true))
        return NULL;
    *until_out = get_after(target)->decrease.until;
    return blocker;
}

/* The target is idle, or has decided: targets that waited for it continue, or wait for the next
 * one. */
void after_release(struct as_engine *engine, struct target *target)
{
    struct after *after = get_after(target);
    if (!after->is_held && target->phase == PHASE_IDLE)
        after->evaluation.is_begun = after->decrease.is_begun = false;
    struct after *held, *next;
    TAILQ_FOREACH_SAFE (held, &engine->held_back, link, next) {
        if (held->blocker != target)
            continue;
        if (held->is_decrease ? !is_being_decreased(engine, target) : !is_at_work(engine, target))
            target_make_ready(engine, held->target);
    }
}

static void after_forget(struct as_engine *engine, struct target *target)
{
    struct after *held;
    let_go(engine, target);
    TAILQ_FOREACH (held, &engine->held_back, link) {
        if (held->blocker == target)
            held->blocker = NULL;
    }
    target_set_config(engine, target, NULL);
}

static void after_init(struct target *target)
{
    get_after(target)->target = target;
}

static void after_fill_view(const struct target *target, as_mono_time now, as_wall_time wall,
                            struct as_target_view *view)
{
    const struct after *after = get_after(target);
    const struct target *blocker = after->is_held ? after->blocker : NULL;
    (void)now, (void)wall;
    view->waits_for = blocker && blocker->config ? blocker->config->name : NULL;
}

const struct concern concern_after = {
    .name = "after",
    .size = sizeof(struct after),
    .init = after_init,
    .fill_view = after_fill_view,
    .release = after_release,
    .forget = after_forget,
};
