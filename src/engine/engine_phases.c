/*
 * A target's phases: what an event leads to, and which phase is next.
 *
 *   phase      event                               next       what is done
 *   idle       due, and used by something          observing  its size is requested, and queries
 *   idle       due, others wait for its resources  observing  they are read, and nothing else
 *   idle       due, backing off or held back       idle       it waits for its deadline
 *   idle       due, used by nothing                idle       forgotten once its locks are over
 *   idle       due, a pool without its turn        idle       made ready when its turn comes
 *   idle       due, a pool with assignments        idle       those that are overdue end
 *   idle       due, a pool with queries            sampling   they are asked before its look
 *   observing  seen, only for its resources        idle       those that wait become ready
 *   observing  seen, size is that of `in_doubt`    outcome    locks and steps of it begin
 *   observing  seen, others' resources are needed  idle       made ready when they are read
 *   observing  seen, another target has precedence idle       as a failed observation
 *   observing  seen, `scaleup` is overdue          intent     what has not come is taken back
 *   observing  seen, `resize` did not come, or     intent     the size before it, or the last one,
 *              pods came later                                is set
 *   observing  seen, `ordered` can be done         intent     the ordered size, without a decision
 *   observing  seen, `overdue` can leave           intent     instances that never became nodes
 *   observing  seen, queries are not answered      sampling   the observation is held
 *   observing  seen, queries are answered          (decided)
 *   observing  observation failed                  idle       recorded if it is new; backs off
 *   sampling   the last query is answered          (decided)
 *   sampling   ... of a pool                       observing  its groups and nodes are looked at
 *   sampling   another entry, or the stop          idle       dirty; the held one is dropped
 *   (decided)  another size is wanted              intent     the intent is committed
 *   (decided)  ... by a pool                       idle       its groups get assignments
 *   (decided)  no other size, or it must wait      idle       a deadline for the next look
 *   (decided)  other rules, or held back meanwhile idle       dirty
 *   intent     committed                           scaling    the request is sent
 *   intent     committed, but paused or new rules  outcome    superseded; dirty
 *   scaling    done, or accepted                   outcome    locks, steps and `scaleup` begin
 *   scaling    failed                              outcome    backs off
 *   scaling    the answer was lost                 outcome    the request is `in_doubt`; backs off
 *   outcome    committed                           idle
 *
 * A target is due at its deadline, when a commit that touched it is done, when it is idle again and
 * dirty, and when it is in the ready list. Other events while it is not idle mark it `dirty`.
 *
 *   dirty    something has happened since the last decision
 *   retry    after a failure: it stays idle until then; only an operator's order overrides this
 *   in_doubt a request that may still be carried out: looked for every IN_DOUBT_OBSERVE_US, for
 *            IN_DOUBT_US; meanwhile no other size is requested
 *   turn     it waits for a place within the limits; turn_after: for others to settle (before it is
 *            evaluated, or with a decrease). The target that gives up a place, or settles, puts it
 *            into the ready list
 *   ordered  an operator's size that is not set yet: comes before the rules, asks no queries
 *   scaleup  an increase that has not come yet
 *   assignment
 *            what a pool has decided for this group: its proposal (engine_pools.h)
 *
 * Long because the table and what it says are read as one.
 *
 * A target with an assignment is observed every ASSIGNMENT_OBSERVE_US, one with a pending scale-up
 * every SCALEUP_OBSERVE_US or more often.
 */
#include "engine_phases.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>

#include "engine_aliases.h"
#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_incidents.h"
#include "engine_pools.h"
#include "engine_registry.h"
#include "engine_state.h"

/*
 * Another object under the same name: the former was deleted, the new one has another UID. What
 * belongs to the former is dropped: locks, the history for windows and policies, sizes to give
 * back, a request with unknown outcome, an ordered size. The rest stays: pauses belong to the name,
 * what a rule has done for an incident (`once`, max_steps, `every`) to the incident, and
 * last_step_down to the alert's reports.
 *
 * Objects without a UID count as the same for ever, as do targets stored without one. If an earlier
 * UID comes back, it is an outdated view of the target.
 *
 * The same object in another unit (decide/sized.h) has other sizes: what is a size or a number of
 * steps is dropped. Its locks stay.
 */

#define GIVEN_UP "given up: "

#define OTHER_OBJECT "another object has the name now"
#define OTHER_UNIT   "sizes are counted in another unit now"

static const struct other_object is_other_object = {OTHER_OBJECT, GIVEN_UP OTHER_OBJECT};
static const struct other_object is_other_unit = {OTHER_UNIT, GIVEN_UP OTHER_UNIT};

/* To be committed. */
static void phase_forget_sizes(struct as_engine *engine, struct target *target,
                               const struct other_object *why)
{
    target->born = moment_now(engine);
    FOR_CONCERNS (engine, concern)
        if (concern->forget_sizes)
            concern->forget_sizes(engine, target, why);
}

static void forget_former(struct as_engine *engine, struct target *target)
{
    target->locks.last_up = target->locks.last_down = target->locks.last_return = AS_MOMENT_NEVER;
    target->locks.dry_last_up = target->locks.dry_last_down = AS_MOMENT_NEVER;
    target->is_unreported = true;
    phase_forget_sizes(engine, target, &is_other_object);
}

/* The UID without the unit behind it. */
static size_t measure_uid(const char *uid)
{
    return strcspn(uid, (const char[]){AS_SIZED_UNIT_MARK, '\0'});
}

static bool is_same_object(const char *uid, const char *other)
{
    const size_t size = measure_uid(uid);
    return size > 0 && size == measure_uid(other) && memcmp(uid, other, size) == 0;
}

static void see_unit(struct as_engine *engine, struct target *target, const char *uid)
{
    memcpy(target->uid, uid, strlen(uid) + 1);
    phase_forget_sizes(engine, target, &is_other_unit);
    effect_put_target(engine, target);
    effect_commit(engine);
}

/* Call it before an observation is used. Drops what belongs to the former object; records and
 * commits that. */
static void object_see(struct as_engine *engine, struct target *target, const char *uid)
{
    if (!*uid || strcmp(target->uid, uid) == 0)
        return;
    if (is_same_object(target->uid, uid)) {
        see_unit(engine, target, uid);
        return;
    }
    if (is_same_object(target->former_uid, uid))
        return;
    const bool is_other = target->uid[0] != '\0';
    memcpy(target->former_uid, target->uid, sizeof(target->uid));
    memcpy(target->uid, uid, strlen(uid) + 1);
    if (is_other)
        forget_former(engine, target);
    if (!is_other && !target->is_stored)
        return;
    effect_put_target(engine, target);
    effect_commit(engine);
}

/* Targets with a plain address, or of a list, and no incidents are observed this often, below this
 * rate in all. */
#define REFRESH_US (60 * AS_US_PER_S)
/* How often a request with a lost answer is looked for, while others wait. */
#define IN_DOUBT_OBSERVE_US (5 * AS_US_PER_S)
#define LOOK_AGAIN_MIN_US   (10 * AS_US_PER_MS)

/* A pool has no size but those of its groups. */
static bool is_named(const struct target *target)
{
    return target->config && !target->config->is_templated && !target->config->pool;
}

/* When what is remembered of a target that nothing uses can be forgotten. */
static as_mono_time get_forget_time(const struct as_engine *engine, const struct target *target)
{
    as_mono_time last = {INT64_MIN};
    FOR_CONCERNS (engine, concern) {
        const as_mono_time forget =
            concern->get_forget_time ? concern->get_forget_time(target) : last;
        last = forget.us > last.us ? forget : last;
    }
    return last;
}

/* It has schedules while it is known; one with a plain address always is. An object of a list is
 * known while it is listed, or a schedule has to end. */
static bool is_scheduled(const struct as_engine *engine, const struct target *target)
{
    const struct as_target_config *config = target->config;
    if (!config || (config->schedule_count == 0 && floor_get(target)->size == 0))
        return false;
    if (!config->is_templated || floor_get(target)->size > 0)
        return true;
    const as_mono_time forget = get_forget_time(engine, target);
    return config->list_selector ? forget.us == AS_MONO_NEVER.us : forget.us > engine->mono.us;
}

static bool is_used_by_concern(const struct as_engine *engine, const struct target *target)
{
    FOR_CONCERNS (engine, concern)
        if (concern->is_using && concern->is_using(engine, target))
            return true;
    return false;
}

/* Something wants it now. */
static bool is_used(const struct as_engine *engine, const struct target *target)
{
    return is_used_by_concern(engine, target) || is_scheduled(engine, target);
}

static bool is_needed(const struct as_engine *engine, const struct target *target)
{
    return is_used(engine, target) || is_named(target);
}

/* Requests the size, and what else the rules need with it. */
static void phase_observe(struct as_engine *engine, struct target *target)
{
    struct as_observe_request *request = as_arena_alloc(&engine->arena, 1, sizeof(*request));
    target_set_phase(engine, target, PHASE_OBSERVING);
    alias_begin_reading(engine, target, false);
    request->credential = target_note_sender(engine, target);
    target->with_pods = sources_need_pods(target) || scaleup_needs_pods(target);
    target->with_nodes = sources_need_nodes(target);
    request->with_pods = target->with_pods;
    request->with_owners = target->with_owners = sources_need_owners(target);
    request->with_nodes = target->with_nodes;
    request->with_rollout = rollouts_are_awaited(target);
    contention_fill_request(engine, target, request);
    request->nodes = target_get_nodes(target);
    request->pool = pool_make_request(engine, target);
    if (request->pool)
        templates_fill(engine, pool_get_cluster(engine, target), request);
    else if (target->with_nodes && request->nodes && request->nodes->cluster)
        templates_fill(engine, request->nodes->cluster, request);
    target->with_snapshot = request->pool != NULL;
    struct as_effect *effect = effect_add(engine, AS_EFFECT_OBSERVE);
    effect->call_id = target->call_id;
    effect->call.ref = target->ref;
    effect->call.observe = request;
}

/* Requests only the resources behind the target: for others, so it does not wait for them. */
static void observe_backing(struct as_engine *engine, struct target *target)
{
    target->generation = engine->generation;
    alias_begin_reading(engine, target, true);
    target_set_phase(engine, target, PHASE_OBSERVING);
    struct as_effect *effect = effect_add(engine, AS_EFFECT_OBSERVE);
    effect->call_id = target->call_id;
    effect->call.ref = target->ref;
    effect->call.observe = as_arena_alloc(&engine->arena, 1, sizeof(struct as_observe_request));
}

/* Whether the target waits for others. Those may wait for its place within the limits, so it gives
 * up the place. */
static bool must_wait(struct as_engine *engine, struct target *target)
{
    if (commands_get(target)->is_set ||
        (!after_must_wait(engine, target) && !pool_must_wait(engine, target)))
        return false;
    limits_give_up(engine, target);
    return true;
}

static void evaluate(struct as_engine *engine, struct target *target)
{
    if (engine->stopping || target->phase != PHASE_IDLE)
        return;
    if (alias_is_awaited(target) && !target_is_backing_off(engine, target)) {
        observe_backing(engine, target);
        return;
    }
    if (pool_is_assigning(engine, target) || target_is_backing_off(engine, target) ||
        alias_is_waiting(target) || must_wait(engine, target))
        return;
    limits_on_evaluate(target);
    always_on_evaluate(engine, target);
    if (!is_needed(engine, target) && !target->in_doubt) {
        if (metric_gaps_drop(target)) {
            effect_put_target(engine, target);
            effect_commit(engine);
        }
        target->dirty = false;
        asked_clear(&target->asked);
        return;
    }
    target_set_deadline(engine, target, AS_MONO_NEVER);
    target->generation = engine->generation;
    target->entry_digest = target->config ? target->config->digest : (struct as_digest){{0}};
    if (pool_get(target)->has_turn) { /* its snapshot cannot be held */
        sources_ask(engine, target);
        if (target->asks_open > 0) {
            target_set_phase(engine, target, PHASE_SAMPLING);
            return;
        }
    }
    phase_observe(engine, target);
    if (!commands_get(target)->is_set)
        sources_ask(engine, target);
}

static int64_t get_refresh_us(const struct as_engine *engine)
{
    const int64_t paced =
        (int64_t)(engine->named_count + engine->listed_count) * (AS_US_PER_S / OBSERVED_PER_SECOND);
    return paced > REFRESH_US ? paced : REFRESH_US;
}

/* Forgets a target without rules, incidents or locks. */
static void forget_or_wait(struct as_engine *engine, struct target *target)
{
    contention_review(engine, target);
    const as_mono_time forget = get_forget_time(engine, target);
    if (forget.us > engine->mono.us) {
        const as_mono_time over = contention_get_end(target), floor = floor_get_end(target);
        const as_mono_time first = over.us < floor.us ? over : floor;
        target_set_deadline(engine, target, first.us < forget.us ? first : forget);
        return;
    }
    if (target->pins > 0 || pauses_get(target)->is_set || evaluations_are_open(target))
        return; /* the waiter's commit, or the end of the pause, evaluates it again */
    target_set_deadline(engine, target, AS_MONO_NEVER);
    FOR_CONCERNS (engine, concern)
        if (concern->forget)
            concern->forget(engine, target);
    RB_REMOVE(target_tree, &engine->targets, target);
    engine->target_count--;
    TAILQ_INSERT_TAIL(&engine->gone, target, in_gone);
    if (target->is_stored) {
        effect_delete_target(engine, target);
        effect_commit(engine);
    }
}

void targets_evaluate_ready(struct as_engine *engine)
{
    struct target *target;
    while ((target = TAILQ_FIRST(&engine->ready))) {
        TAILQ_REMOVE(&engine->ready, target, in_ready);
        target->is_ready = false;
        evaluate(engine, target);
    }
}

/* Of an idle target that nothing has given a deadline. */
static void set_usual_deadline(struct as_engine *engine, struct target *target)
{
    if (target->in_doubt && target->in_doubt->until.us > engine->mono.us)
        target_set_deadline(engine, target, target->in_doubt->until);
    else if (target->in_doubt || is_used_by_concern(engine, target))
        target_set_deadline_in(engine, target, REEVALUATE_US);
    else if (is_named(target) || is_scheduled(engine, target))
        target_set_deadline_in(engine, target, get_refresh_us(engine));
    else if (!target->config || target->config->is_templated)
        forget_or_wait(engine, target);
}

/* Both ends of a schedule are events. One that fails is tried again, which looks at them too. */
static void target_evaluate_schedules(struct as_engine *engine, struct target *target)
{
    as_mono_time due = schedules_get_due(engine, target);
    if (due.us < AS_MONO_NEVER.us)
        due.us = as_time_add(due.us, listings_get_offset(engine, target));
    if (due.us < engine->mono.us + LOOK_AGAIN_MIN_US)
        due.us = engine->mono.us + LOOK_AGAIN_MIN_US; /* the clock was set back a little */
    if (due.us < target->deadline.us && is_scheduled(engine, target) &&
        !target_is_backing_off(engine, target))
        target_set_deadline(engine, target, due);
}

/* The target is idle (again): evaluates it if something has happened, else sets its deadline if it
 * needs one. */
void target_settle_down(struct as_engine *engine, struct target *target)
{
    target_set_phase(engine, target, PHASE_IDLE);
    sources_drop(engine, target);
    if (engine->stopping)
        return;
    bool is_over = false;
    FOR_CONCERNS (engine, concern)
        if (concern->on_idle && concern->on_idle(engine, target))
            is_over = true;
    if (is_over) {
        effect_put_target(engine, target);
        effect_commit(engine);
    }
    if (target->dirty || alias_is_awaited(target))
        evaluate(engine, target);
    if (target->phase != PHASE_IDLE)
        return;
    FOR_CONCERNS (engine, concern)
        if (concern->release)
            concern->release(engine, target);
    targets_evaluate_ready(engine); /* before `target` is settled or forgotten */
    FOR_CONCERNS (engine, concern) {
        const int64_t us =
            concern->get_observe_us ? concern->get_observe_us(engine, target) : INT64_MAX;
        if (us < INT64_MAX && target->deadline.us > engine->mono.us + us)
            target_set_deadline_in(engine, target, us);
    }
    if (target->deadline.us == AS_MONO_NEVER.us)
        set_usual_deadline(engine, target);
    target_evaluate_schedules(engine, target);
    const as_mono_time answered = approvals_get_next_end(target);
    if (target->deadline.us > answered.us)
        target_set_deadline(engine, target, answered);
}

void target_on_deadline(struct as_engine *engine, struct target *target)
{
    if (target->phase != PHASE_IDLE) {
        target->dirty = true;
        return;
    }
    evaluate(engine, target);
    if (target->phase == PHASE_IDLE)
        target_settle_down(engine, target);
}

/* No proposal is due before `due`; the decision itself would change at `next_evaluation`. */
static void set_next_observation(struct as_engine *engine, struct target *target,
                                 const struct outcome *outcome)
{
    const struct as_decision *decision = &outcome->decision;
    int64_t next = as_time_add(engine->mono.us, REEVALUATE_US);
    if (outcome->is_decided && decision->next_evaluation.set)
        next = as_time_add(engine->mono.us, decision->next_evaluation.at.us - engine->wall.us);
    if (outcome->due.us < next)
        next = outcome->due.us;
    if (target->in_doubt && next > engine->mono.us + IN_DOUBT_OBSERVE_US)
        next = engine->mono.us + IN_DOUBT_OBSERVE_US;
    if (next < engine->mono.us + LOOK_AGAIN_MIN_US)
        next = engine->mono.us + LOOK_AGAIN_MIN_US;
    target_set_deadline(engine, target,
                        target_limit_observation(engine, target, (as_mono_time){next}));
}

static void phase_hold(struct target *target, const struct as_observation *observation)
{
    struct held *held = as_xcalloc(1, sizeof(*held));
    struct as_pod_seen *pods = as_arena_alloc(&held->arena, observation->pod_count, sizeof(*pods));
    for (size_t i = 0; i < observation->pod_count; i++) {
        pods[i] = observation->pods[i];
        pods[i].name = as_arena_strdup(&held->arena, observation->pods[i].name);
        pods[i].owner_name = as_arena_strdup(&held->arena, pods[i].owner_name);
        pods[i].owner_error = as_arena_strdup(&held->arena, pods[i].owner_error);
        pods[i].containers = as_containers_copy(
            &pods[i], as_arena_alloc_raw(&held->arena, as_containers_get_size(&pods[i])));
    }
    held->observation = *observation;
    held->observation.pods = pods;
    held->observation.backing = NULL; /* already taken */
    held->observation.backing_count = 0;
    held->observation.nodes = sources_copy_nodes(&held->arena, observation->nodes);
    target->held = held;
}

/* A pool has no intent: its decision uses the approval. */
static void begin_shares(struct as_engine *engine, struct target *target, struct outcome *outcome)
{
    const struct as_decision *decision = &outcome->decision;
    if (outcome->approval)
        approvals_use(engine, target, outcome->approval, NULL);
    else if (decision->rule)
        approvals_note_step(engine, target, decision->rule, decision->desired - decision->replicas);
    if (approvals_has_steps(target) || outcome->approval) {
        effect_put_target(engine, target);
        outcome->is_recorded = true;
    }
}

static void phase_decide(struct as_engine *engine, struct target *target,
                         const struct as_observation *observation)
{
    if (after_must_wait(engine, target)) { /* the targets in its `after` have become busy */
        target->dirty = true;
        target_settle_down(engine, target);
        return;
    }
    struct outcome outcome;
    decisions_make(engine, target, observation, &outcome);
    target->desired = outcome.is_decided ? outcome.decision.desired : observation->replicas;
    const bool is_new = outcome.is_decided && outcome.decision.desired != observation->replicas;
    if (pool_remember(engine, target, observation,
                      is_new && outcome.decision.direction == AS_DIRECTION_UP)) {
        effect_put_target(engine, target);
        outcome.is_recorded = true;
    }
    if (is_new && !target->config->pool) {
        actions_begin(engine, target, observation, &outcome);
        after_release(engine, target);
        return;
    }
    if (is_new) {
        begin_shares(engine, target, &outcome);
        pool_assign(engine, target, observation, &outcome);
    } else if (outcome.is_decided)
        assignment_on_stay(engine, target, outcome.decision.reason);
    target->failures = target->conflicts = 0;
    target->failure = AS_REASON_APPLIED;
    target->origin.set = false;
    if (observation->plan)
        pool_end_step(target);
    if (outcome.is_recorded)
        effect_commit(engine);
    unregistered_report(engine, target, observation, &outcome);
    if (outcome.is_decided || target->open_bindings > 0 || target->in_doubt ||
        endings_are_open(target))
        set_next_observation(engine, target, &outcome);
    target_settle_down(engine, target);
}

/* The target was observed: decides, once all queries are answered too. */
static void phase_go_on(struct as_engine *engine, struct target *target,
                        const struct as_observation *observation)
{
    if (!target->config || engine->stopping) {
        target->failures = target->conflicts = 0;
        target_settle_down(engine, target);
        return;
    }
    if (target->generation != engine->generation || alias_is_stale(target) ||
        ((sources_need_pods(target) || scaleup_needs_pods(target)) && !target->with_pods) ||
        (sources_need_owners(target) && !target->with_owners) ||
        (sources_need_nodes(target) && !target->with_nodes) ||
        (pool_is_asked(target) && !target->with_snapshot && !commands_get(target)->is_set)) {
        target->dirty = true; /* another entry, or the rules need more of the observation */
        target_settle_down(engine, target);
        return;
    }
    sources_ask(engine, target);
    if (target->asks_open > 0 && observation->snapshot) { /* asks for more: with the next look */
        target->dirty = true;
        target_settle_down(engine, target);
    } else if (target->asks_open > 0) {
        phase_hold(target, observation);
        target_set_phase(engine, target, PHASE_SAMPLING);
    } else {
        phase_decide(engine, target, observation);
    }
}

static void phase_on_failed(struct as_engine *engine, struct target *target,
                            const struct as_observation *observation)
{
    sources_drop(engine, target);
    struct as_action_record *record = actions_record_failure(engine, target, observation);
    bool is_changed = false;
    FOR_CONCERNS (engine, concern)
        if (concern->on_unseen && concern->on_unseen(engine, target, observation->outcome))
            is_changed = true;
    if (is_changed) {
        effect_put_target(engine, target);
        effect_commit(engine);
    }
    if (target->in_doubt && !is_needed(engine, target))
        actions_give_up_in_doubt(engine, target);
    target_back_off(engine, target, observation->outcome, observation->retry_after_us);
    if (record)
        actions_note_next_try(engine, target, record);
    target_settle_down(engine, target);
}

/* It may be the same group as another target, whose resources are read first. Nothing is decided
 * meanwhile. If nothing uses the target now, its next usual observation is soon enough. */
static bool waits_for_backing(struct as_engine *engine, struct target *target)
{
    const struct as_target_config *config = target->config;
    const bool is_used_now = is_used(engine, target) || (config && config->bounds.enforce_bounds);
    if (!alias_must_wait(engine, target, is_used_now))
        return false;
    sources_drop(engine, target);
    target_settle_down(engine, target);
    return true;
}

static bool is_refused(struct as_engine *engine, struct target *target)
{
    struct as_observation refused = {.outcome = AS_REASON_TARGET_NOT_ALLOWED};
    const char *obstacle = alias_find_obstacle(engine, target);
    if (!obstacle)
        return false;
    memcpy(refused.message, obstacle, strlen(obstacle) + 1);
    phase_on_failed(engine, target, &refused);
    return true;
}

void target_on_observed(struct as_engine *engine, struct target *target,
                        const struct as_observation *observation)
{
    if (aliases_see(engine, target, observation)) {
        target_settle_down(engine, target);
        return;
    }
    target->dirty = false;
    if (observation->outcome != AS_REASON_APPLIED) {
        phase_on_failed(engine, target, observation);
        return;
    }
    target->has_size = true;
    target->replicas = observation->replicas;
    target->status_replicas = observation->status_replicas;
    target->names_instances = observation->names_instances;
    target->ready = scaleup_count_ready(observation);
    target->is_relative = observation->is_relative;
    target->observed = moment_now(engine);
    object_see(engine, target, observation->uid);
    FOR_CONCERNS (engine, concern)
        if (concern->on_observed)
            concern->on_observed(engine, target, observation);
    if (target->in_doubt && actions_settle_in_doubt(engine, target, observation))
        return;
    if (waits_for_backing(engine, target) || is_refused(engine, target))
        return;
    if (!target->in_doubt)
        contention_see(engine, target, observation);
    struct change change;
    FOR_CONCERNS (engine, concern) {
        if (concern->claim && concern->claim(engine, target, observation, &change)) {
            sources_drop(engine, target);
            actions_begin_change(engine, target, observation, &change);
            return;
        }
    }
    phase_go_on(engine, target, observation);
}

void target_on_queried(struct as_engine *engine, uint64_t call_id,
                       const struct as_query_result *result)
{
    struct target *target = sources_answer(engine, call_id, result);
    if (!target || target->phase != PHASE_SAMPLING || target->asks_open > 0)
        return;
    struct held *held = target->held;
    if (!held) { /* a pool: its look comes after its queries */
        phase_observe(engine, target);
        return;
    }
    target->held = NULL;
    phase_go_on(engine, target, &held->observation);
    as_arena_deinit(&held->arena);
    free(held);
}

/* The answers are useless, and some may take long. */
static void stop_sampling(struct as_engine *engine, struct target *target)
{
    if (target->phase != PHASE_SAMPLING)
        return;
    held_free(target);
    sources_drop(engine, target);
    target_set_phase(engine, target, PHASE_IDLE);
    target->dirty = true;
}

void targets_stop_sampling(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets)
        stop_sampling(engine, target);
}

/* Whether the observation under way is of use with the new rules. A snapshot rests on all rules of
 * its pool. */
static bool may_go_on(const struct target *target)
{
    static const struct as_digest unknown;
    const bool is_observed =
        target->phase == PHASE_OBSERVING || (target->phase == PHASE_SAMPLING && target->held);
    return is_observed && !target->with_snapshot && target->config &&
           as_digest_compare(&target->config->digest, &unknown) != 0 &&
           as_digest_compare(&target->config->digest, &target->entry_digest) == 0;
}

/* A slow target is decided although rules of other targets change again and again. */
static void target_on_rules(struct as_engine *engine, struct target *target)
{
    if (may_go_on(target)) {
        target->generation = engine->generation;
        sources_on_rules(engine, target);
        if (target->asks_open > 0 || target->phase == PHASE_OBSERVING)
            return;
    }
    stop_sampling(engine, target);
}

void targets_on_rules(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets)
        target_on_rules(engine, target);
}

/* After the start and after new rules, targets with `always` rules alone are evaluated at their own
 * times, so that not all send their requests at once. Not a target that something else waits for.
 */
static void await_first_evaluation(struct as_engine *engine, struct target *target)
{
    const as_mono_time due = always_get_next_due(target, (as_mono_time){engine->mono.us - 1});
    const int64_t latest = as_time_add(engine->mono.us, REEVALUATE_US);
    target->dirty = false;
    target_set_deadline(engine, target, due.us < latest ? due : (as_mono_time){latest});
}

static void target_settle(struct as_engine *engine, struct target *target)
{
    target->dirty = target->dirty || target->open_bindings > 0;
    if (target->phase != PHASE_IDLE)
        return;
    if (engine->config.spreads_evaluations && always_is_alone(target) && !target->in_doubt &&
        !commands_get(target)->is_set && !target_is_backing_off(engine, target))
        await_first_evaluation(engine, target);
    target_settle_down(engine, target);
}

void targets_settle(struct as_engine *engine)
{
    struct target *target, *next;
    RB_FOREACH_SAFE (target, target_tree, &engine->targets, next)
        target_settle(engine, target);
}

void targets_change(struct as_engine *engine, const struct target_array *targets)
{
    for (size_t i = 0; i < targets->count; i++) {
        targets->items[i]->generation = OTHER_GENERATION;
        target_outdate_intents(targets->items[i]);
        target_on_rules(engine, targets->items[i]);
    }
    for (size_t i = 0; i < targets->count; i++)
        target_settle(engine, targets->items[i]);
}
