/*
 * Whether nodes that are marked to leave may go on leaving, and whether pods of a target may go on
 * being resized. Asked before each such step.
 */
#include <alertscaler/engine/engine.h>

#include <alertscaler/decide/sized.h>

#include "engine_leave.h"

#include "engine_aliases.h"
#include "engine_follow.h"
#include "engine_forbidden.h"
#include "engine_pauses.h"
#include "engine_scopes.h"
#include "engine_state.h"
#include "engine_targets.h"
#include "engine_watchdog.h"

static bool is_resized(const struct target *target)
{
    struct as_sized sized;
    as_sized_read(target->ref, &sized);
    return sized.what == AS_SIZED_RESOURCE;
}

/* A group that is scaled down by rules which say `guard: none`, and by no others, needs no proof.
 */
static bool needs_proof(const struct as_engine *engine, const struct target *target)
{
    const struct as_ruleset *ruleset = engine->ruleset;
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        const struct as_rule *rule = &ruleset->rules[i];
        if (&ruleset->targets[rule->target] == target->config &&
            rule->action.kind != AS_ACTION_SCALE_UP && rule->action.kind != AS_ACTION_HOLD &&
            rule->guard_kind != AS_GUARD_WAIVED)
            return engine->config.watchdog_count > 0;
    }
    return false;
}

const char *as_engine_find_leave_obstacle(const struct as_engine *engine, const char *id,
                                          as_mono_time now)
{
    const struct target *target = target_find_id(engine, id);
    const struct as_nodes_config *nodes = target ? target_get_nodes(target) : NULL;
    if (!target || !target->config || (!is_resized(target) && (!nodes || !nodes->cluster)))
        return "";
    if (engine->stopping)
        return "alertscaler stops";
    if (engine->config.dry_run || target->config->dry_run)
        return "dry run";
    if (pauses_find(engine, target))
        return "paused";
    if (alias_is_refused(engine, target))
        return "another target is the same group";
    if (!is_resized(target) && forbidden_is_with_pool(engine, target, AS_WAYS_DOWN))
        return "held: the size must not go down";
    if (nodes && needs_proof(engine, target) && !watchdog_is_alive(engine, now))
        return "guarded: the watchdog is not heard of";
    return NULL;
}

void leave_on_start(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets) {
        const struct as_target_config *config =
            target->config ? target->config : target_find_entry(engine, target);
        const bool is_restored = target->is_stored || target->maybe;
        if (is_restored && target->ref->kind->has_nodes &&
            (!config || as_target_config_has_nodes(config)))
            engine->has_restored_groups = true;
    }
}

bool as_engine_has_restored_groups(const struct as_engine *engine)
{
    return engine->has_restored_groups;
}

bool as_engine_is_contended(const struct as_engine *engine, const char *id)
{
    const struct target *target = target_find_id(engine, id);
    return target && as_moment_is_set(target->contention.since);
}

bool as_engine_is_ineffective(const struct as_engine *engine, const char *id, const char *rule)
{
    const struct target *target = target_find_id(engine, id);
    return target && follow_holds(engine, target, rule);
}

size_t as_engine_count_open(const struct as_engine *engine, const char *id)
{
    const struct target *target = target_find_id(engine, id);
    return target ? target->open_bindings : 0;
}

const char *as_engine_find_sender(const struct as_engine *engine, const char *id)
{
    const struct target *target = target_find_id(engine, id);
    return target ? scope_find_sender(engine, target) : NULL;
}

const char *as_engine_find_name(const struct as_engine *engine, const char *id)
{
    const struct target *target = target_find_id(engine, id);
    return target && target->config ? target->config->name : "";
}
