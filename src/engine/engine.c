/*
 * The engine's steps: the handling of each event, its tickets and its deadlines.
 *
 * Invariants after each step: a target in any phase but idle has exactly one observation, request
 * or commit under way; a size is set only after the commit of its intent; commits are answered in
 * order.
 */
#include <alertscaler/engine/engine.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/sized.h>

#include "engine_aliases.h"
#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_incidents.h"
#include "engine_phases.h"
#include "engine_pools.h"
#include "engine_registry.h"
#include "engine_state.h"

/*
 * Node groups of the restored state, whose nodes may have our marks.
 */

/*
 * Restores the stored state, before the first event. Two rows about one subject are refused.
 */

static int compare_seen(const void *a, const void *b)
{
    const struct incident *const *left = a, *const *right = b;
    const int64_t x = (*left)->state.seen.mono.us, y = (*right)->state.seen.mono.us;
    return x != y ? (x > y) - (x < y) : ((*left)->serial > (*right)->serial) * 2 - 1;
}

static int compare_resolved(const void *a, const void *b)
{
    const struct incident *const *left = a, *const *right = b;
    const int64_t x = (*left)->state.resolved.mono.us, y = (*right)->state.resolved.mono.us;
    return x != y ? (x > y) - (x < y) : ((*left)->serial > (*right)->serial) * 2 - 1;
}

static void engine_sort(struct incident_list *list, int (*compare)(const void *, const void *))
{
    struct incident *incident;
    size_t count = 0, at = 0;
    TAILQ_FOREACH (incident, list, in_order)
        count++;
    struct incident **incidents = as_xcalloc(count + 1, sizeof(struct incident *));
    TAILQ_FOREACH (incident, list, in_order)
        incidents[at++] = incident;
    qsort(incidents, count, sizeof(struct incident *), compare);
    TAILQ_INIT(list);
    for (at = 0; at < count; at++)
        TAILQ_INSERT_TAIL(list, incidents[at], in_order);
    free(incidents);
}

/* Dates ahead of the clock: the clock went back. */
static void date(struct as_engine *engine)
{
    struct incident *incident;
    RB_FOREACH (incident, incident_tree, &engine->incidents) {
        if (!is_ahead(engine, incident->state.starts_at))
            continue;
        incident->state.starts_at = engine->wall;
        incident->state.is_undated = true;
    }
}

/* After everything is restored: sorts the lists by time, which the next deadline needs; the store
 * has another order. */
static void restore_finish(struct as_engine *engine)
{
    engine_sort(&engine->open, compare_seen);
    engine_sort(&engine->resolved, compare_resolved);
    date(engine);
}

int as_engine_restore_incident(struct as_engine *engine, const struct as_incident_state *state)
{
    if (incident_find(engine, &state->key.digest, state->key.owner))
        return -EEXIST;
    incident_insert(engine, incident_of_state(engine, state));
    return 0;
}

int as_engine_restore_target(struct as_engine *engine, const struct as_target_state *state)
{
    struct target *target = target_get(engine, state->ref ? as_target_ref_copy(state->ref)
                                                          : target_ref_of_id(state->id));
    if (strcmp(target->ref->key, state->stored_as) != 0)
        return -EBADMSG;
    if (target->is_stored)
        return -EEXIST;
    target_take_state(engine, target, state);
    return 0;
}

int as_engine_restore_intent(struct as_engine *engine, const struct as_intent_state *state)
{
    struct target *target = target_get(engine, as_target_ref_copy(state->ref));
    if (strcmp(target->ref->key, state->stored_as) != 0)
        return -EBADMSG;
    if (target->in_doubt)
        return -EEXIST;
    target_take_intent(engine, target, state);
    return 0;
}

int as_engine_restore_pause(struct as_engine *engine, const struct as_pause_state *state)
{
    pauses_restore(engine, NULL, state);
    return 0;
}

/*
 * Whether nodes that are marked to leave may go on leaving, and whether pods of a target may go on
 * being resized. Asked before each such step.
 */

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
        const struct as_rule *rule = ruleset->rules[i];
        if (rule->target == target->config && rule->action.kind != AS_ACTION_SCALE_UP &&
            rule->action.kind != AS_ACTION_HOLD && rule->guard_kind != AS_GUARD_WAIVED &&
            !rule->is_always)
            return engine->config.watchdog_count > 0;
    }
    return false;
}

const char *as_engine_find_terminate_obstacle(const struct as_engine *engine, const char *id,
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
    if (blocks_forbid(engine, target, AS_WAYS_BOTH, BLOCK_PAUSE))
        return "paused";
    if (alias_is_refused(engine, target))
        return "another target is the same group";
    if (!is_resized(target) &&
        blocks_forbid(engine, target, AS_WAYS_DOWN, BLOCK_HOLDS | BLOCK_OF_POOL))
        return "held: the size must not go down";
    if (nodes && needs_proof(engine, target) && !watchdog_is_alive(engine, now))
        return "guarded: the watchdog is not heard of";
    return NULL;
}

/* Call it at the start, after rules are bound and before targets are forgotten. */
static void leave_on_start(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets) {
        const struct as_target_config *config =
            target->config ? target->config : target_find_entry(engine, target);
        const bool is_restored = target->is_stored || target->in_doubt;
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
    return target && contention_is_set(target);
}

bool as_engine_is_ineffective(const struct as_engine *engine, const char *id, const char *rule)
{
    const struct target *target = target_find_id(engine, id);
    return target && evaluation_holds(engine, target, rule);
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

struct as_engine *as_engine_new(const struct as_engine_config *config,
                                const struct as_ruleset *ruleset)
{
    struct as_engine *engine = as_xcalloc(1, sizeof(*engine));
    engine->config = *config;
    engine->concerns = engine_concerns;
    engine->ruleset = ruleset;
    engine->index = as_rule_index_new(ruleset);
    as_random_init(&engine->random, config->seed);
    RB_INIT(&engine->incidents);
    TAILQ_INIT(&engine->open);
    TAILQ_INIT(&engine->resolved);
    TAILQ_INIT(&engine->graveyard);
    TAILQ_INIT(&engine->always);
    as_shares_init(&engine->incident_shares);
    RB_INIT(&engine->targets);
    RB_INIT(&engine->deadlines);
    RB_INIT(&engine->call_ids);
    TAILQ_INIT(&engine->gone);
    TAILQ_INIT(&engine->ready);
    STAILQ_INIT(&engine->waiters);
    RB_INIT(&engine->asks);
    TAILQ_INIT(&engine->answered);
    TAILQ_INIT(&engine->budget.waiting);
    TAILQ_INIT(&engine->held_back);
    TAILQ_INIT(&engine->snapshots_begun);
    TAILQ_INIT(&engine->snapshots_waiting);
    TAILQ_INIT(&engine->candidates);
    TAILQ_INIT(&engine->backing_waiting);
    TAILQ_INIT(&engine->paused);
    TAILQ_INIT(&engine->evaluations);
    engine->pause_due = engine->list_due = engine->history_due = AS_MONO_NEVER;
    engine->listings.due = AS_MONO_NEVER;
    engine->history_committed.us = INT64_MIN / 2;
    engine->watchdog_seen.us = INT64_MIN;
    return engine;
}

static void graveyard_empty(struct as_engine *engine)
{
    struct incident *incident;
    while ((incident = TAILQ_FIRST(&engine->graveyard))) {
        TAILQ_REMOVE(&engine->graveyard, incident, in_order);
        incident_free(incident);
    }
    struct ask *ask;
    while ((ask = TAILQ_FIRST(&engine->answered))) {
        TAILQ_REMOVE(&engine->answered, ask, in_target);
        ask_free(ask);
    }
    struct target *target;
    while ((target = TAILQ_FIRST(&engine->gone))) {
        TAILQ_REMOVE(&engine->gone, target, in_gone);
        target_free(engine, target);
    }
    while (engine->former_ref_count > 0)
        as_target_ref_free(engine->former_refs[--engine->former_ref_count]);
}

static void waiter_free(struct waiter *waiter)
{
    free(waiter->kick);
    free(waiter);
}

struct as_engine *as_engine_free(struct as_engine *engine)
{
    if (!engine)
        return NULL;
    graveyard_empty(engine);
    as_shares_deinit(&engine->incident_shares);
    struct waiter *waiter;
    while ((waiter = STAILQ_FIRST(&engine->waiters))) {
        STAILQ_REMOVE_HEAD(&engine->waiters, next);
        waiter_free(waiter);
    }
    evaluations_free_all(engine);
    struct incident *incident, *next_incident;
    RB_FOREACH_SAFE (incident, incident_tree, &engine->incidents, next_incident) {
        bindings_drop(engine, incident);
        RB_REMOVE(incident_tree, &engine->incidents, incident);
        incident_free(incident);
    }
    TAILQ_FOREACH_SAFE (incident, &engine->always, in_order, next_incident) {
        bindings_drop(engine, incident);
        incident_free(incident);
    }
    struct target *target, *next_target;
    RB_FOREACH_SAFE (target, target_tree, &engine->targets, next_target) {
        RB_REMOVE(target_tree, &engine->targets, target);
        sources_drop(engine, target);
        target_free(engine, target);
    }
    graveyard_empty(engine);
    limits_deinit(engine);
    pause_free(&engine->pause);
    pause_free(&engine->halt);
    muting_deinit(engine);
    as_rule_index_free(engine->index);
    as_arena_deinit(&engine->arena);
    free(engine->effects);
    free(engine->former_refs);
    targets_deinit(engine);
    free(engine->listings.complete);
    free(engine);
    return NULL;
}

static void on_committed(struct as_engine *engine, uint64_t call_id)
{
    struct waiter *waiter = STAILQ_FIRST(&engine->waiters);
    if (!waiter || waiter->call_id != call_id)
        return;
    STAILQ_REMOVE_HEAD(&engine->waiters, next);

    if (waiter->has_request)
        effect_add(engine, AS_EFFECT_ANSWER)->call_id = waiter->request;
    if (waiter->target) {
        struct target *target = waiter->target;
        target->pins--;
        if (target->phase == PHASE_INTENT)
            actions_on_intent(engine, target);
        else
            target_settle_down(engine, target);
    }
    for (size_t i = 0; i < waiter->kick_count; i++) {
        waiter->kick[i]->pins--;
        if (waiter->kick[i]->phase == PHASE_IDLE)
            target_settle_down(engine, waiter->kick[i]);
    }
    waiter_free(waiter);
}

static struct target *find_by_call_id(struct as_engine *engine, uint64_t call_id, enum phase phase)
{
    struct target key = {.call_id = call_id};
    struct target *target = RB_FIND(call_id_tree, &engine->call_ids, &key);
    return target && target->phase == phase ? target : NULL;
}

static void on_deadline(struct as_engine *engine)
{
    incidents_expire(engine);
    alerts_on_deadline(engine);
    listings_on_deadline(engine);
    pauses_on_deadline(engine);
    evaluation_on_deadline(engine);
    history_on_deadline(engine);
    struct target *target;
    while ((target = RB_MIN(deadline_tree, &engine->deadlines)) &&
           target->deadline.us <= engine->mono.us) {
        target_set_deadline(engine, target, AS_MONO_NEVER);
        target_on_deadline(engine, target);
    }
}

/* More are quicker together: changes; comparisons of their rules with incidents */
#define LOCAL_MAX         64
#define LOCAL_MATCHES_MAX ((size_t)200000)

static bool has_same_target(const struct as_engine *engine, const struct as_target_config *former,
                            const struct as_target_config *next)
{
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    if (as_target_ref_new(next, NULL, NULL, &ref, NULL) != 0)
        return false;
    const struct target *target = target_find_id(engine, ref->id);
    return target && target->config == former;
}

/* Whether only policies of workloads differ from the rules in force, and no other target can be
 * concerned by that: by a group of nodes, by `after`, or by a template that leads there. */
static bool change_is_local(const struct as_engine *engine, const struct as_ruleset *next)
{
    const struct as_ruleset *const *lists[] = {next->removed, next->added};
    const size_t counts[] = {next->removed_count, next->added_count};
    if (next->base == 0 || next->base != engine->ruleset->serial ||
        counts[0] + counts[1] > LOCAL_MAX || (engine->has_templates && counts[0] != counts[1]))
        return false;
    size_t rules = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++) {
        for (size_t k = 0; k < counts[i]; k++) {
            const struct as_target_config *config = lists[i][k]->targets[0];
            rules += lists[i][k]->rule_count;
            if (config->family || config->kind->has_nodes || config->after_count > 0)
                return false;
            if (engine->has_templates &&
                !has_same_target(engine, next->removed[k]->targets[0], next->added[k]->targets[0]))
                return false;
        }
    }
    return engine->open_count == 0 || rules <= LOCAL_MATCHES_MAX / engine->open_count;
}

/* A change of a few policies: its cost does not depend on the number of all targets. */
static bool change_some(struct as_engine *engine, const struct as_event *event)
{
    const struct as_ruleset *next = event->ruleset;
    struct target_array targets = {
        .items = as_arena_alloc(&engine->arena, next->removed_count + next->added_count + 1,
                                sizeof(struct target *))};
    if (!bindings_remake_some(engine, next, &targets))
        return false;
    engine->config = event->config;
    targets_change(engine, &targets);
    alerts_resume(engine);
    return true;
}

static void on_rules(struct as_engine *engine, const struct as_event *event)
{
    if (change_is_local(engine, event->ruleset) && change_some(engine, event))
        return;
    const struct as_limits limits = engine->config.limits;
    as_rule_index_free(engine->index);
    engine->generation++;
    engine->ruleset = event->ruleset;
    if (!watchdog_is_same(&engine->config, &event->config))
        engine->watchdog_seen.us = INT64_MIN;
    engine->config = event->config;
    engine->index = as_rule_index_new(event->ruleset);
    limits_on_rules(engine, &limits);
    pools_on_rules(engine);
    aliases_on_rules(engine);
    bindings_remake_all(engine);
    targets_on_rules(engine);
    targets_settle(engine);
    alerts_resume(engine);
    listings_resume(engine);
}

static void engine_on_start(struct as_engine *engine)
{
    engine->started = engine->mono;
    restore_finish(engine);
    limits_restore(engine);
    bindings_remake_all(engine);
    leave_on_start(engine);
    targets_settle(engine);
    alerts_resume(engine);
    listings_resume(engine);
}

static void on_order(struct as_engine *engine, const struct as_operator_command *order,
                     uint64_t request)
{
    struct target *target = commands_handle(engine, order, request);
    if (target && target->phase == PHASE_IDLE)
        target_settle_down(engine, target); /* the target may exist only for this order */
}

static void on_halt(struct as_engine *engine, const struct as_halt *halt)
{
    if (!pauses_on_halt(engine, halt))
        return;
    commands_on_halt(engine);
    approvals_on_halt(engine);
    assignments_on_halt(engine);
    effect_commit(engine);
}

void as_engine_step(struct as_engine *engine, const struct as_event *event,
                    struct as_effects *effects_out)
{
    graveyard_empty(engine);
    as_arena_reset(&engine->arena);
    engine->effect_count = 0;
    engine->mono = event->mono;
    engine->wall = event->wall;
    trace_event(engine, event);

    struct target *target;
    switch (event->kind) {
    case AS_EVENT_START: engine_on_start(engine); break;
    case AS_EVENT_NOTIFICATION:
        incidents_handle(engine, event->notification, event->call_id);
        break;
    case AS_EVENT_COMMITTED: on_committed(engine, event->call_id); break;
    case AS_EVENT_OBSERVED:
        if ((target = find_by_call_id(engine, event->call_id, PHASE_OBSERVING)))
            target_on_observed(engine, target, event->observation);
        break;
    case AS_EVENT_SCALED:
        if ((target = find_by_call_id(engine, event->call_id, PHASE_SCALING)))
            actions_on_scaled(engine, target, event->result);
        break;
    case AS_EVENT_QUERIED: target_on_queried(engine, event->call_id, event->answer); break;
    case AS_EVENT_LISTED: alerts_on_listed(engine, event->call_id, event->list); break;
    case AS_EVENT_OBJECTS: listings_on_listed(engine, event->call_id, event->objects); break;
    case AS_EVENT_DEADLINE: on_deadline(engine); break;
    case AS_EVENT_RULES: on_rules(engine, event); break;
    case AS_EVENT_ORDER: on_order(engine, event->order, event->call_id); break;
    case AS_EVENT_HALT: on_halt(engine, event->halt); break;
    case AS_EVENT_STOP:
        engine->stopping = true;
        targets_stop_sampling(engine);
        break;
    }
    targets_evaluate_ready(engine);
    trace_effects(engine);
    *effects_out = (struct as_effects){engine->effects, engine->effect_count};
}

as_mono_time as_engine_get_next_deadline(const struct as_engine *engine)
{
    as_mono_time deadline = incidents_get_deadline(engine);
    const as_mono_time list = alerts_get_deadline(engine);
    if (list.us < deadline.us)
        deadline = list;
    if (engine->listings.due.us < deadline.us)
        deadline = engine->listings.due;
    if (engine->pause_due.us < deadline.us)
        deadline = engine->pause_due;
    if (engine->history_due.us < deadline.us)
        deadline = engine->history_due;
    const as_mono_time evaluation = evaluation_get_deadline(engine);
    if (evaluation.us < deadline.us)
        deadline = evaluation;
    const struct target *target =
        RB_MIN(deadline_tree, (struct deadline_tree *)(uintptr_t)&engine->deadlines);
    if (target && target->deadline.us < deadline.us)
        deadline = target->deadline;
    return deadline;
}

bool as_engine_is_idle(const struct as_engine *engine)
{
    return engine->busy_count == 0 && STAILQ_EMPTY(&engine->waiters);
}

struct as_engine_counts as_engine_get_counts(const struct as_engine *engine)
{
    return (struct as_engine_counts){
        .incidents_open = engine->open_count,
        .targets = engine->target_count,
        .targets_busy = engine->busy_count,
        .targets_paused = engine->paused_count,
        .incident_bytes = room_get_used(engine),
        .incident_bytes_max = engine->config.incident_bytes_max,
        .evaluations_skipped = engine->evaluations_skipped,
    };
}
