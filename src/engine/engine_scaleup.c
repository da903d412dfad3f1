/*
 * Pending scale-ups: an increase is open until everything requested has arrived, or ready_timeout
 * has passed.
 *
 * Of a workload with ready_timeout, then nothing is taken back: the cluster still tries. But no
 * rule steps up (`did_not_come`) until another number of pods is ready.
 *
 * Of a node group, what is missing is taken back, and the group backs off: no increase for 5
 * minutes, doubling to 30, so that a group without capacity never ratchets up. If the provider
 * refuses for lack of capacity, the group backs off at once.
 *
 * A back-off is a lock like a cooldown's, after the decrease by the taking back. It is forgotten
 * when an increase arrives in full, or after three hours.
 */
#include <stdio.h>
#include <string.h>

#include <alertscaler/decide/sized.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"

#define BACK_OFF_FIRST_US  (5 * AS_US_PER_MIN)
#define BACK_OFF_MAX_US    (30 * AS_US_PER_MIN)
#define BACK_OFF_FORGET_US (3 * AS_US_PER_H)

/* A growing workload is looked at more often at first, for its time to be known. */
#define WORKLOAD_LOOK_MIN_US (1 * AS_US_PER_S)
#define WORKLOAD_LOOK_PART   8 /* of its age */

static struct as_scaleup_state *get_scaleup(const struct target *target)
{
    return target->parts[CONCERN_SCALEUPS];
}

void scaleup_end_back_off(struct target *target)
{
    get_scaleup(target)->failed = AS_MOMENT_NEVER;
}

void scaleup_forget_surplus(struct target *target)
{
    get_scaleup(target)->surplus = 0;
}

static bool has_failed_since(const struct as_scaleup_state *scaleup, struct as_moment moment)
{
    return as_moment_is_set(scaleup->failed) && scaleup->failed.mono.us >= moment.mono.us;
}

/* Nodes that came back lock decreases for `cooldown.down`, and no increase. */
static struct locks get_cooldowns(const struct target *target)
{
    struct locks locks = {target->locks.last_up, target->locks.last_down,
                          target->config->bounds.cooldown};
    const struct as_moment returned = target->locks.last_return;
    const int64_t lock_us = as_cooldown_get_down_after_down(&locks.cooldown);
    if (!as_moment_is_set(returned) ||
        (as_moment_is_set(locks.down) && as_time_add(locks.down.mono.us, lock_us) >=
                                             as_time_add(returned.mono.us, locks.cooldown.down_us)))
        return locks;
    locks.down = returned;
    locks.cooldown.has_down_after_down = false;
    locks.cooldown.up_after_down_us = 0;
    return locks;
}

struct locks scaleup_get_locks(const struct target *target, as_mono_time now)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    struct locks locks = get_cooldowns(target);
    if (!as_moment_is_set(scaleup->failed))
        return locks;
    const int64_t end = as_time_add(scaleup->failed.mono.us, scaleup->back_off_us);
    if (end <= now.us)
        return locks;
    locks.down = moment_get_later(locks.down, scaleup->failed);
    const int64_t rest = end - locks.down.mono.us; /* whole seconds, for display */
    if (rest > locks.cooldown.up_after_down_us)
        locks.cooldown.up_after_down_us = (rest + AS_US_PER_S - 1) / AS_US_PER_S * AS_US_PER_S;
    return locks;
}

/* A failure during a back-off (of an order, say) restarts the time. */
static void back_off(struct as_engine *engine, struct target *target)
{
    struct as_scaleup_state *scaleup = get_scaleup(target);
    const int64_t failed_us = scaleup->failed.mono.us;
    if (!as_moment_is_set(scaleup->failed) ||
        as_time_add(failed_us, BACK_OFF_FORGET_US) <= engine->mono.us)
        scaleup->back_off_us = BACK_OFF_FIRST_US;
    else if (as_time_add(failed_us, scaleup->back_off_us) <= engine->mono.us)
        scaleup->back_off_us *= 2;
    if (scaleup->back_off_us > BACK_OFF_MAX_US)
        scaleup->back_off_us = BACK_OFF_MAX_US;
    scaleup->failed = moment_now(engine);
}

/* A workload whose pods are waited for. */
static bool is_workload(const struct target *target)
{
    return scaleup_get_timeout(target) > 0 && !target->names_instances;
}

int64_t scaleup_get_timeout(const struct target *target)
{
    const struct as_target_config *config = target->config;
    return config && config->kind->has_pods ? config->ready_timeout_us : 0;
}

int32_t scaleup_count_ready(const struct as_observation *observation)
{
    int32_t ready = 0;
    if (!observation->has_pods)
        return observation->status_replicas;
    for (size_t i = 0; i < observation->pod_count; i++)
        ready += observation->pods[i].ready == AS_TRUE && !observation->pods[i].deleting;
    return ready;
}

bool scaleup_needs_pods(const struct target *target)
{
    return scaleup_get_timeout(target) > 0 &&
           (target->open_bindings > 0 || commands_get(target)->is_set ||
            get_scaleup(target)->is_open);
}

static int64_t scaleup_get_observe_us(const struct as_engine *engine, const struct target *target)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    const int64_t part = (engine->mono.us - scaleup->since.mono.us) / WORKLOAD_LOOK_PART;
    if (!is_workload(target) || scaleup->did_not_come || part > SCALEUP_OBSERVE_US)
        return SCALEUP_OBSERVE_US;
    return part > WORKLOAD_LOOK_MIN_US ? part : WORKLOAD_LOOK_MIN_US;
}

/* Of the last observation. */
static int32_t scaleup_count_missing(const struct target *target)
{
    const int32_t missing = target->replicas - target->ready;
    return missing > 0 ? missing : 0;
}

static void scaleup_begin(struct as_engine *engine, struct target *target,
                          const struct intent *intent)
{
    struct as_scaleup_state *scaleup = get_scaleup(target);
    if ((!target->names_instances && !is_workload(target)) || !target->config ||
        intent->state.to <= intent->state.from)
        return;
    if (!scaleup->is_open || intent->state.from < scaleup->from) {
        scaleup->from = intent->state.from;
        scaleup->missing = scaleup_count_missing(target);
    }
    scaleup->is_open = true;
    scaleup->is_refused = scaleup->did_not_come = false;
    scaleup->is_ordered = intent->state.is_ordered;
    memcpy(scaleup->id, intent->state.decision_id, AS_ULID_SIZE);
    scaleup->to = intent->state.to;
    scaleup->since = moment_now(engine);
    target_note_entry(target);
}

static void scaleup_refuse(struct as_engine *engine, struct target *target)
{
    get_scaleup(target)->is_refused = true;
    back_off(engine, target);
}

/* Clocks of providers may be wrong, and give whole seconds or minutes. */
bool scaleup_on_shortage(struct as_engine *engine, struct target *target,
                         const struct as_observation *observation)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    const as_maybe_time began = moment_get_wall(engine, scaleup->since);
    if (!scaleup->is_open || scaleup->is_refused || !observation->lacks_capacity || !began.set ||
        (observation->gap_since.set && observation->gap_since.at.us < began.at.us - AS_US_PER_MIN))
        return false;
    scaleup_refuse(engine, target);
    return true;
}

/* Twice in one step counts once. */
void scaleup_fail(struct as_engine *engine, struct target *target)
{
    if (get_scaleup(target)->failed.mono.us != engine->mono.us)
        back_off(engine, target);
}

bool scaleup_is_failure(const struct as_scale_result *result)
{
    return result->outcome != AS_REASON_APPLIED && !result->is_ambiguous &&
           result->outcome != AS_REASON_CONFLICT && result->outcome != AS_REASON_THROTTLED;
}

bool scaleup_is_backing_off(const struct target *target, as_mono_time now)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    return as_moment_is_set(scaleup->failed) &&
           as_time_add(scaleup->failed.mono.us, scaleup->back_off_us) > now.us;
}

as_maybe_time scaleup_get_open_at(const struct as_engine *engine, const struct target *target)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    as_maybe_time failed = moment_get_wall(engine, scaleup->failed);
    if (!scaleup_is_backing_off(target, engine->mono) || !failed.set)
        return (as_maybe_time){0};
    failed.at.us = as_time_add(failed.at.us, scaleup->back_off_us);
    return failed;
}

static void scaleup_note_surplus(struct as_engine *engine, struct target *target,
                                 const struct intent *intent)
{
    struct as_scaleup_state *scaleup = get_scaleup(target);
    const int32_t before = scaleup_get_surplus(target);
    if (before == 0) {
        scaleup->surplus_from = intent->state.from;
        scaleup->surplus_since = moment_now(engine);
    }
    scaleup->surplus = before + intent->state.to - intent->state.from;
}

int32_t scaleup_get_surplus(const struct target *target)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    const int32_t above = target->replicas - scaleup->surplus_from;
    return above < scaleup->surplus ? (above > 0 ? above : 0) : scaleup->surplus;
}

/* An increase of ours that is open has its own back-off. */
bool scaleup_note_unregistered(struct as_engine *engine, struct target *target, int32_t count)
{
    struct as_scaleup_state *scaleup = get_scaleup(target);
    if (scaleup->is_open)
        return false;
    const bool is_more = count > scaleup->unregistered;
    scaleup->unregistered = count;
    if (is_more)
        scaleup_fail(engine, target);
    return is_more;
}

int32_t scaleup_get_refused(const struct target *target)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    const int32_t short_of = target->replicas - target->status_replicas - scaleup->missing;
    return scaleup->is_open && scaleup->is_refused && short_of > 0 ? short_of : 0;
}

static void scaleup_give_up(struct as_engine *engine, struct target *target)
{
    struct as_scaleup_state *scaleup = get_scaleup(target);
    if (!has_failed_since(scaleup, scaleup->since))
        back_off(engine, target);
    scaleup->is_open = false;
    effect_put_target(engine, target);
}

static bool scaleup_is_taken_back(const struct target *target, const struct intent *intent)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    return scaleup->is_open && intent->state.to < intent->state.from && !intent->state.rule[0] &&
           strcmp(intent->state.decision_id, scaleup->id) == 0;
}

static const char *explain_taking_back(struct as_engine *engine,
                                       const struct as_scaleup_state *scaleup, int32_t count,
                                       const char *why)
{
    const int64_t end = as_time_add(scaleup->failed.mono.us, scaleup->back_off_us);
    const int64_t left_us = end - engine->mono.us;
    const int64_t minutes = (left_us + AS_US_PER_MIN - 1) / AS_US_PER_MIN;
    char text[AS_MESSAGE_SIZE + 160], rest[64] = "";
    if (left_us > 0)
        snprintf(rest, sizeof(rest), ", and requests no more in the next %lld minute%s",
                 (long long)minutes, minutes == 1 ? "" : "s");
    snprintf(text, sizeof(text),
             "%d requested instance%s did not come: alertscaler takes the request back%s%s%s",
             count, count == 1 ? "" : "s", rest, *why ? ": " : "", why);
    return as_arena_strdup(&engine->arena, text);
}

/* Returns the message of the record. `why`: the provider's reason; "" if unknown. */
static const char *scaleup_note_taken_back(struct as_engine *engine, struct target *target,
                                           const struct intent *intent, const char *why)
{
    struct as_scaleup_state *scaleup = get_scaleup(target);
    if (!has_failed_since(scaleup, scaleup->since))
        back_off(engine, target);
    scaleup->to = intent->state.to;
    scaleup->is_refused = false; /* the rest has its normal time */
    return explain_taking_back(engine, scaleup, intent->state.from - intent->state.to, why);
}

static void scaleup_close(struct as_engine *engine, struct target *target)
{
    get_scaleup(target)->is_open = false;
    effect_put_target(engine, target);
    effect_commit(engine);
}

/* Instances or pods that serve, and those that did not serve before either. */
static int32_t count_there(const struct as_scaleup_state *scaleup,
                           const struct as_observation *observation)
{
    return scaleup_count_ready(observation) + scaleup->missing;
}

static bool is_complete(const struct as_scaleup_state *scaleup,
                        const struct as_observation *observation)
{
    return !observation->in_progress && count_there(scaleup, observation) >= observation->replicas;
}

/* Only for our own increase: an instance that fails long afterwards must not block the group. */
static bool scaleup_is_awaited(const struct target *target,
                               const struct as_observation *observation)
{
    return get_scaleup(target)->is_open && !get_scaleup(target)->did_not_come &&
           !is_complete(get_scaleup(target), observation);
}

/* True: nothing to wait for (any more). For a while, a size smaller than requested may come from a
 * cache. */
static bool scaleup_is_over(const struct as_engine *engine, const struct target *target,
                            const struct as_observation *observation)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    const bool is_late = as_time_add(scaleup->since.mono.us, IN_DOUBT_US) <= engine->mono.us;
    if (!observation->names_instances && !is_workload(target))
        return true;
    if (scaleup->did_not_come && scaleup_count_ready(observation) != scaleup->ready)
        return true;
    if (observation->replicas >= scaleup->to || is_late)
        return is_complete(scaleup, observation) || observation->replicas <= scaleup->from;
    return false;
}

/* After a failure for lack of capacity, the provider's lists get time to catch up. */
static bool is_past_deadline(const struct as_engine *engine, const struct target *target)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    const int64_t timeout_us = target->names_instances ? target_get_nodes(target)->ready_timeout_us
                                                       : scaleup_get_timeout(target);
    return as_time_add(scaleup->since.mono.us, timeout_us) <= engine->mono.us ||
           (scaleup->is_refused &&
            as_time_add(scaleup->failed.mono.us, SCALEUP_OBSERVE_US) <= engine->mono.us);
}

/* Keeps what is there, and what was there before the increase. */
static int32_t get_size_to_keep(const struct as_scaleup_state *scaleup,
                                const struct as_observation *observation)
{
    int32_t keep = count_there(scaleup, observation);
    if (keep < scaleup->from)
        keep = scaleup->from;
    return keep < observation->min ? observation->min : keep;
}

/* The workload's pods are not ready in time: its readers are told, once it is stored. */
static void give_up_waiting(struct as_engine *engine, struct target *target,
                            const struct as_observation *observation)
{
    struct as_scaleup_state *scaleup = get_scaleup(target);
    scaleup->did_not_come = true;
    scaleup->ready = scaleup_count_ready(observation);
    effect_warn(engine, target,
                &(struct as_late_warning){
                    .from = scaleup->from,
                    .to = observation->replicas,
                    .ready = scaleup->ready,
                    .decision_id = scaleup->id,
                    .is_ordered = scaleup->is_ordered,
                });
}

static void scaleup_forget_pods(struct as_engine *engine, struct target *target,
                                const struct other_object *why)
{
    (void)engine, (void)why;
    if (!target->names_instances)
        get_scaleup(target)->is_open = get_scaleup(target)->did_not_come = false;
}

static int32_t scaleup_review(struct as_engine *engine, struct target *target,
                              const struct as_observation *observation)
{
    struct as_scaleup_state *scaleup = get_scaleup(target);
    if (!scaleup->is_open || !target->config || engine->stopping)
        return -1;
    if (scaleup_is_over(engine, target, observation)) {
        if (observation->replicas >= scaleup->to && !has_failed_since(scaleup, scaleup->since))
            scaleup->failed = AS_MOMENT_NEVER;
        scaleup_close(engine, target);
        return -1;
    }
    if (is_workload(target)) {
        if (!scaleup->did_not_come && is_past_deadline(engine, target))
            give_up_waiting(engine, target, observation);
        return -1;
    }
    const int32_t keep = get_size_to_keep(scaleup, observation);
    if (keep >= observation->replicas || !is_past_deadline(engine, target) ||
        blocks_forbid_change(engine, target, AS_WAYS_DOWN, BLOCK_HOLDS | BLOCK_OF_POOL))
        return -1;
    return keep;
}

bool scaleup_did_not_come(const struct target *target, as_mono_time now)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    const bool backs_off = as_moment_is_set(scaleup->failed) &&
                           as_time_add(scaleup->failed.mono.us, scaleup->back_off_us) > now.us;
    struct as_sized sized;
    if (scaleup->is_open && scaleup->did_not_come)
        return true;
    if (!backs_off)
        return false;
    as_sized_read(target->ref, &sized);
    return sized.what == AS_SIZED_RESOURCE;
}

static bool scaleup_remake(struct as_engine *engine, struct target *target)
{
    if (!get_scaleup(target)->is_open)
        return false;
    target->dirty = true;
    if (target_recover_config(engine, target))
        return false;
    get_scaleup(target)->is_open = false; /* no rule uses it */
    return true;
}

static bool scaleup_is_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return get_scaleup(target)->is_open;
}

static as_mono_time scaleup_get_forget_time(const struct target *target)
{
    return target_get_kept_until(target, get_scaleup(target)->failed);
}

static int64_t scaleup_observe_within(const struct as_engine *engine, const struct target *target)
{
    return get_scaleup(target)->is_open ? scaleup_get_observe_us(engine, target) : INT64_MAX;
}

/* Takes back what did not come. It waits like any action until one may begin; what never served is
 * no removal that is limited. The scale-up is observed again soon. */
static bool scaleup_claim(struct as_engine *engine, struct target *target,
                          const struct as_observation *observation, struct change *change_out)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    const int32_t keep = scaleup_review(engine, target, observation);
    if (keep < 0 || limits_refuse(engine, target, keep, keep))
        return false;
    *change_out =
        (struct change){.to = keep, .cause = scaleup->id, .is_ordered = scaleup->is_ordered};
    return true;
}

static bool scaleup_is_open(const struct target *target)
{
    return get_scaleup(target)->is_open;
}

static void scaleup_init(struct target *target)
{
    get_scaleup(target)->failed = AS_MOMENT_NEVER;
}

static void scaleup_store(struct as_engine *engine, const struct target *target,
                          struct as_target_state *state)
{
    const struct as_scaleup_state *scaleup = get_scaleup(target);
    if (scaleup->is_open || as_moment_is_set(scaleup->failed) || scaleup->surplus != 0)
        state->scaleup = effect_copy(engine, scaleup, sizeof(*scaleup));
}

static void scaleup_restore(struct as_engine *engine, struct target *target,
                            const struct as_target_state *state)
{
    (void)engine;
    if (state->scaleup)
        *get_scaleup(target) = *state->scaleup;
}

/* Only a person, or time, changes this outcome. */
bool scaleup_is_final(enum as_reason outcome)
{
    return outcome == AS_REASON_REJECTED || outcome == AS_REASON_FORBIDDEN ||
           outcome == AS_REASON_TARGET_NOT_FOUND || outcome == AS_REASON_TIMEOUT ||
           outcome == AS_REASON_DID_NOT_COME;
}

/* The group backs off: an increase for pods that wait has failed, or an increase of a container's
 * resource that a node can never do. */
static bool has_failed(const struct action *action)
{
    const struct intent *intent = action->intent;
    return intent->state.to > intent->state.from &&
           ((action->marks.is_for_pods && scaleup_is_failure(action->result)) ||
            action->result->outcome == AS_REASON_DID_NOT_COME);
}

static void scaleup_mark(const struct target *target, const struct intent *intent,
                         struct marks *marks)
{
    marks->is_take_back = scaleup_is_taken_back(target, intent);
}

static void scaleup_on_applied(struct as_engine *engine, struct target *target,
                               const struct action *action)
{
    const struct as_scale_result *result = action->result;
    const struct as_intent_state *change = &action->intent->state;
    const int32_t growth = change->to - change->from;
    if (action->is_late && growth > 0 && target_find_pool(engine, target) && change->rule[0] &&
        !change->is_ordered)
        scaleup_note_surplus(engine, target, action->intent);
    if (action->marks.is_take_back)
        action->record->message =
            scaleup_note_taken_back(engine, target, action->intent, result->message);
    else if (growth <= 0 || growth > result->returned)
        scaleup_begin(engine, target, action->intent);
    if (result->is_shortage && growth > 0)
        scaleup_refuse(engine, target);
    else if (has_failed(action))
        scaleup_fail(engine, target);
    if (action->marks.is_take_back && scaleup_is_final(result->outcome))
        scaleup_give_up(engine, target);
}

static void scaleup_on_failed(struct as_engine *engine, struct target *target,
                              const struct action *action)
{
    const struct as_scale_result *result = action->result;
    if (target->names_instances)
        scaleup_begin(engine, target, action->intent); /* a part of it may still come */
    if (result->is_shortage) {
        scaleup_refuse(engine, target);
    } else if (has_failed(action)) {
        scaleup_fail(engine, target);
        effect_put_target(engine, target);
    }
    if (action->marks.is_take_back && !result->is_ambiguous && scaleup_is_final(result->outcome))
        scaleup_give_up(engine, target);
    if (get_scaleup(target)->is_open)
        effect_put_target(engine, target);
}

/* No step up: the last increase did not come. */
static void scaleup_visit_blocks(const struct block_query *query, const struct target *target)
{
    if (scaleup_did_not_come(target, query->now))
        query->visit(query->context,
                     &(struct block){.ways = AS_WAYS_UP, .kind = BLOCK_DID_NOT_COME});
}

static void scaleup_fill_input(struct as_engine *engine, const struct target *target,
                               const struct as_observation *observation,
                               struct as_decide_input *input)
{
    (void)engine;
    if (scaleup_is_awaited(target, observation))
        input_set_in_progress(input, AS_IN_PROGRESS_SCALE_UP);
}

const struct concern concern_scaleups = {
    .name = "scale-ups",
    .fill_input = scaleup_fill_input,
    .remake = scaleup_remake,
    .mark = scaleup_mark,
    .on_applied = scaleup_on_applied,
    .on_failed = scaleup_on_failed,
    .size = sizeof(struct as_scaleup_state),
    .init = scaleup_init,
    .store = scaleup_store,
    .restore = scaleup_restore,
    .visit_blocks = scaleup_visit_blocks,
    .needs_address = scaleup_is_open,
    .is_using = scaleup_is_using,
    .get_forget_time = scaleup_get_forget_time,
    .forget_sizes = scaleup_forget_pods,
    .claim = scaleup_claim,
    .get_observe_us = scaleup_observe_within,
};
