/*
 * Views of the engine for metrics and the API. A view changes nothing.
 */
#include <alertscaler/decide/sized.h>

#include "engine_concerns.h"
#include "engine_registry.h"
#include "engine_state.h"

/* Of alerts. An incident has one binding per rule; only its first binding to the target counts. */
static size_t count_incidents(const struct target *target)
{
    struct group *group;
    const struct binding *binding;
    size_t count = 0;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        TAILQ_FOREACH (binding, &group->bindings, in_group) {
            if (binding->incident->always)
                continue;
            const struct binding *first = binding->incident->bindings;
            while (first->group->target != target)
                first++;
            count += first == binding;
        }
    }
    return count;
}

static bool is_acting(const struct as_engine *engine, const struct incident *incident)
{
    if (!incident->state.is_open || as_moment_is_set(incident->state.silenced) ||
        engine->config.dry_run)
        return false;
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct binding *binding = &incident->bindings[i];
        const struct group *group = binding->group;
        if (!group->rule->dry_run && !group->target->config->dry_run &&
            !binding_is_used_up(binding))
            return true;
    }
    return false;
}

struct as_acting_counts as_engine_count_acting(const struct as_engine *engine, as_wall_time since)
{
    struct as_acting_counts counts = {0};
    struct incident *incident;
    RB_FOREACH (incident, incident_tree, (struct incident_tree *)(uintptr_t)&engine->incidents) {
        const bool acts = is_acting(engine, incident);
        counts.acting += acts;
        counts.late += acts && incident->state.opened.wall.us >= since.us;
    }
    return counts;
}

static void set_lock_ends(const struct target *target, as_mono_time now, as_wall_time wall,
                          struct as_moment *up_out, struct as_moment *down_out)
{
    *up_out = *down_out = AS_MOMENT_NEVER;
    if (!target->config)
        return;
    const struct locks locks = scaleup_get_locks(target, now);
    const struct as_cooldown *cooldown = &locks.cooldown;
    *up_out = moment_get_later(lock_get_end(locks.up, cooldown->up_us, now, wall),
                               lock_get_end(locks.down, cooldown->up_after_down_us, now, wall));
    *down_out = moment_get_later(
        lock_get_end(locks.up, cooldown->down_us, now, wall),
        lock_get_end(locks.down, as_cooldown_get_down_after_down(cooldown), now, wall));
}

static struct as_target_view make_view(const struct as_engine *engine, const struct target *target,
                                       as_mono_time now, as_wall_time wall)
{
    struct as_target_view view = {
        .id = target->ref->id,
        .name = target->config ? target->config->name : "",
        .ref = target->ref,
        .config = target->config,
        .has_size = target->has_size,
        .replicas = target->replicas,
        .status_replicas = target->status_replicas,
        .desired = target->desired,
        .seen = target->observed,
        .open_incidents = count_incidents(target),
        .last_decision = target->last_decision[0] ? target->last_decision : NULL,
        .last_reason = target->verdict.set ? target->verdict.reason : target->dry_verdict.reason,
        .last_at = target->decided_at,
        .last_rule = target->verdict.set ? target->verdict.rule : target->dry_verdict.rule,
        .busy = target->phase != PHASE_IDLE,
        .last_failure = target->failure,
        .failing_since = AS_MOMENT_NEVER,
        .next_try = AS_MOMENT_NEVER,
        .did_not_come = scaleup_did_not_come(target, now),
        .ready = scaleup_get_timeout(target) > 0 && target->has_size ? target->ready : -1,
        .contended_until = AS_MOMENT_NEVER,
    };
    set_lock_ends(target, now, wall, &view.up_locked_until, &view.down_locked_until);
    if (target->failure != AS_REASON_APPLIED && target->failures > 0) {
        view.tries = target->failures;
        view.failing_since = target->failing_since;
        if (target->retry.us > now.us)
            view.next_try =
                (struct as_moment){target->retry, {wall.us + (target->retry.us - now.us)}};
    }
    if (view.last_decision && view.last_reason == AS_REASON_BUDGET)
        view.namespace_limit = limits_get_view(engine, target);
    FOR_CONCERNS (engine, concern)
        if (concern->fill_view)
            concern->fill_view(target, now, wall, &view);
    return view;
}

void as_engine_visit_targets(const struct as_engine *engine, as_mono_time now, as_wall_time wall,
                             as_target_visit_fn *visit, void *context)
{
    struct target *target;
    RB_FOREACH (target, target_tree, (struct target_tree *)(uintptr_t)&engine->targets) {
        const struct as_target_view view = make_view(engine, target, now, wall);
        visit(context, &view);
    }
}

bool as_engine_visit_target(const struct as_engine *engine, const char *id, as_mono_time now,
                            as_wall_time wall, as_target_visit_fn *visit, void *context)
{
    const struct target *target = target_find_id(engine, id);
    if (!target)
        return false;
    const struct as_target_view view = make_view(engine, target, now, wall);
    visit(context, &view);
    return true;
}

bool as_engine_encode_target(const struct as_engine *engine, const char *id, struct as_buf *out)
{
    struct as_engine *memory = (struct as_engine *)(uintptr_t)engine; /* of its last step */
    struct target *target;
    RB_FOREACH (target, target_tree, &memory->targets) {
        if (strcmp(target->ref->id, id) != 0)
            continue;
        as_state_encode_target(target_fill_state(memory, target), "", out);
        return true;
    }
    return false;
}

/*
 * Clusters. The targets of a cluster stand next to each other: their keys begin with its name.
 */

static const char *view_get_cluster(const struct target *target)
{
    return target->ref->kind == &as_target_kind_kubernetes
               ? as_target_ref_get(target->ref, "cluster")
               : "";
}

static const struct target *view_get_next(const struct target *target)
{
    return RB_NEXT(target_tree, NULL, (struct target *)(uintptr_t)target);
}

static bool is_unanswered(const struct target *target)
{
    return target->failures > 0 &&
           (target->failure == AS_REASON_UNREACHABLE || target->failure == AS_REASON_TIMEOUT);
}

/* The cluster of the first target, up to the target before `end`. */
static void visit_cluster(const struct target *first, const struct target *end,
                          as_cluster_visit_fn *visit, void *context)
{
    struct as_cluster_view view = {view_get_cluster(first), AS_MOMENT_NEVER};
    as_mono_time answered = {INT64_MIN};
    bool is_known = false;
    for (const struct target *target = first; target != end; target = view_get_next(target)) {
        if (!as_moment_is_set(target->observed))
            continue;
        is_known = true;
        if (target->observed.mono.us > answered.us)
            answered = target->observed.mono;
    }
    for (const struct target *target = first; target != end; target = view_get_next(target)) {
        if (!is_unanswered(target) || target->failing_since.mono.us <= answered.us)
            continue;
        if (!as_moment_is_set(view.unreachable_since) ||
            target->failing_since.mono.us < view.unreachable_since.mono.us)
            view.unreachable_since = target->failing_since;
    }
    if (*view.cluster && (is_known || as_moment_is_set(view.unreachable_since)))
        visit(context, &view);
}

void as_engine_visit_clusters(const struct as_engine *engine, as_cluster_visit_fn *visit,
                              void *context)
{
    const struct target *first =
        RB_MIN(target_tree, (struct target_tree *)(uintptr_t)&engine->targets);
    while (first) {
        const struct target *end = first;
        while (end && strcmp(view_get_cluster(end), view_get_cluster(first)) == 0)
            end = view_get_next(end);
        visit_cluster(first, end, visit, context);
        first = end;
    }
}

as_mono_time as_engine_find_observed(const struct as_engine *engine, const char *target,
                                     const char **cluster_out)
{
    const struct target *found = target_find_id(engine, target);
    *cluster_out = found ? view_get_cluster(found) : "";
    return found ? found->observed.mono : (as_mono_time){INT64_MIN};
}

static bool has_open_incident(const struct group *group)
{
    const struct binding *binding;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (binding->incident->state.is_open)
            return true;
    }
    return false;
}

static size_t count_alerts(const struct group *group)
{
    const struct binding *binding;
    size_t count = 0;
    TAILQ_FOREACH (binding, &group->bindings, in_group)
        count += binding->incident->state.is_open && !binding->incident->always;
    return count;
}

static void visit_rules_of(const struct target *target, as_rule_visit_fn *visit, void *context)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        const struct as_rule_view view = {.ref = target->ref,
                                          .target = target->config,
                                          .rule = group->rule,
                                          .has_value = group->has_value,
                                          .value = group->value,
                                          .has_desired = group->has_size,
                                          .desired = group->size,
                                          .reason = group->reason,
                                          .missing_since = group->missing_since,
                                          .alerts = count_alerts(group)};
        if (target->config && has_open_incident(group))
            visit(context, &view);
    }
}

void as_engine_visit_rules(const struct as_engine *engine, as_rule_visit_fn *visit, void *context)
{
    struct target *target;
    RB_FOREACH (target, target_tree, (struct target_tree *)(uintptr_t)&engine->targets)
        visit_rules_of(target, visit, context);
}

void as_engine_visit_target_rules(const struct as_engine *engine, const char *id,
                                  as_rule_visit_fn *visit, void *context)
{
    const struct target *target = target_find_id(engine, id);
    if (target)
        visit_rules_of(target, visit, context);
}

static void incident_visit(const struct incident *incident, as_incident_visit_fn *visit,
                           void *context)
{
    struct as_incident_target targets[AS_RECORD_LIST_MAX];
    size_t count = 0;
    for (uint32_t i = 0; i < incident->binding_count && count < AS_RECORD_LIST_MAX; i++)
        targets[count++] = binding_get_target(&incident->bindings[i]);
    visit(context, &incident->state, targets, count);
}

void as_engine_visit_incidents(const struct as_engine *engine, as_incident_visit_fn *visit,
                               void *context)
{
    struct incident *incident;
    RB_FOREACH (incident, incident_tree, (struct incident_tree *)(uintptr_t)&engine->incidents)
        incident_visit(incident, visit, context);
}

void as_engine_visit_incident(const struct as_engine *engine, const struct as_incident_state *state,
                              as_incident_visit_fn *visit, void *context)
{
    const struct incident *incident = incident_find(engine, &state->key.digest, state->key.owner);
    if (incident)
        incident_visit(incident, visit, context);
}
