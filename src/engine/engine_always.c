/*
 * The times at which `always` rules are evaluated: the start of the engine, plus an offset that
 * spreads the targets over the rule's `every`, plus multiples of `every`. So evaluations do not
 * drift, and targets do not send their queries all at once. After a change of the size, the rule
 * may change it again at its next time.
 *
 * Their incidents are in engine_bindings.c.
 */
#include <string.h>

#include "engine_concerns.h"
#include "engine_registry.h"

struct always {
    as_mono_time origin; /* the time 0 of its targets' evaluations */
    uint64_t hash;       /* of its id; 0: the evaluations are not spread */
    as_mono_time begun;  /* the evaluation under way; AS_MONO_NEVER: none */
};

static struct always *get_always(const struct target *target)
{
    return target->parts[CONCERN_ALWAYS];
}

as_mono_time always_get_due(const struct target *target, const struct as_rule *rule,
                            as_mono_time after)
{
    const struct always *always = get_always(target);
    const int64_t every = rule->every_us;
    const int64_t first = as_time_add(always->origin.us, (int64_t)(always->hash % (uint64_t)every));
    if (after.us < first)
        return (as_mono_time){first};
    return (as_mono_time){as_time_add(after.us, every - (after.us - first) % every)};
}

as_mono_time always_get_next_due(const struct target *target, as_mono_time after)
{
    as_mono_time next = AS_MONO_NEVER;
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        const as_mono_time due =
            group->rule->is_always ? always_get_due(target, group->rule, after) : AS_MONO_NEVER;
        next = due.us < next.us ? due : next;
    }
    return next;
}

bool always_is_alone(const struct target *target)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        if (!group->rule->is_always)
            return false;
    }
    return target->open_bindings > 0;
}

void always_on_evaluate(const struct as_engine *engine, struct target *target)
{
    get_always(target)->begun = engine->mono;
}

/* Counts the times at which the evaluation that ends now was still under way. */
static bool always_on_idle(struct as_engine *engine, struct target *target)
{
    struct always *always = get_always(target);
    struct group *group;
    RB_FOREACH (group, group_tree, &target->groups) {
        if (!group->rule->is_always || always->begun.us == AS_MONO_NEVER.us)
            continue;
        const as_mono_time missed = always_get_due(target, group->rule, always->begun);
        if (missed.us <= engine->mono.us)
            engine->evaluations_skipped +=
                1 + (uint64_t)((engine->mono.us - missed.us) / group->rule->every_us);
    }
    always->begun = AS_MONO_NEVER;
    return false;
}

static void always_on_entry(struct as_engine *engine, struct target *target)
{
    struct always *always = get_always(target);
    always->origin = engine->started;
    always->hash = engine->config.spreads_evaluations
                       ? engine_hash(ENGINE_HASH_INIT, target->ref->id, strlen(target->ref->id))
                       : 0;
}

static void always_init(struct target *target)
{
    get_always(target)->begun = AS_MONO_NEVER;
}

const struct concern concern_always = {
    .name = "always",
    .size = sizeof(struct always),
    .init = always_init,
    .on_entry = always_on_entry,
    .on_idle = always_on_idle,
};
