/*
 * `after`: a target is not evaluated while a target in its `after` has open incidents and is still
 * busy with them. It is held back, and released when those settle; nothing polls.
 *
 * Invariants: a held target is idle and has a deadline, AFTER_MAX_US after it was first held, which
 * evaluates it whatever the others do. A target that waits after a failure holds nobody back, nor
 * does a target that a lock, a limit or its bounds keep at its size: it is settled. The
 * configuration has no cycles; even in a cycle the deadline would end the wait.
 */
#include "engine_after.h"

#include <bsd/sys/queue.h>

#include "engine/state/engine_targets.h"

/* The longest time that a target waits for the targets in its `after`. */
#define AFTER_MAX_US (30 * AS_US_PER_S)

static bool is_at_work(const struct as_engine *engine, const struct target *target)
{
    return target->open_bindings > 0 && !target_is_backing_off(engine, target) &&
           (target->phase != PHASE_IDLE || target->dirty || target->turn_after.is_held ||
            target->pool.shares > 0);
}

static const struct target *find_blocker(const struct as_engine *engine,
                                         const struct target *target)
{
    const struct as_target_config *config = target->config;
    for (size_t i = 0; i < config->after_count; i++) {
        const struct target *other;
        LIST_FOREACH (other, &engine->members[config->after[i]], of_entry) {
            if (is_at_work(engine, other))
                return other;
        }
    }
    return NULL;
}

static void let_go(struct as_engine *engine, struct target *target)
{
    if (target->turn_after.is_held)
        TAILQ_REMOVE(&engine->held_back, target, turn_after.link);
    target->turn_after.is_held = false;
}

/* True: the target was held back, and must stay idle. */
bool after_must_wait(struct as_engine *engine, struct target *target)
{
    struct turn_after *turn = &target->turn_after;
    let_go(engine, target);
    if (!target->config || target->config->after_count == 0 || target->open_bindings == 0)
        return false;
    const struct target *blocker = find_blocker(engine, target);
    if (!blocker)
        return false;
    if (!turn->is_begun)
        turn->until.us = as_time_add(engine->mono.us, AFTER_MAX_US);
    turn->is_begun = true;
    if (turn->until.us <= engine->mono.us)
        return false;
    turn->is_held = true;
    turn->blocker = blocker;
    TAILQ_INSERT_TAIL(&engine->held_back, target, turn_after.link);
    target_set_deadline(engine, target, turn->until);
    return true;
}

/* The target is idle: targets that waited for it continue, or wait for the next one. */
void after_release(struct as_engine *engine, struct target *target)
{
    if (!target->turn_after.is_held)
        target->turn_after.is_begun = false;
    if (is_at_work(engine, target))
        return;
    struct target *held, *next;
    TAILQ_FOREACH_SAFE (held, &engine->held_back, turn_after.link, next) {
        if (held->turn_after.blocker == target)
            target_make_ready(engine, held);
    }
}

void after_forget(struct as_engine *engine, struct target *target)
{
    let_go(engine, target);
    target_set_config(engine, target, NULL);
}
