/*
 * Resources of containers. A change of a pod template is open until its rollout has ended. If the
 * rollout's deadline passes before, what was before it is put back, once. Deployments have a
 * controller that says when the deadline has passed; of others it passes when no further pod was
 * replaced for ROLLOUT_US.
 *
 * Pods that are resized in place leave their template as it is. Pods that come later have the
 * template's request: they get the target's last size while that is larger. Only a pod that has
 * exactly the template's request counts as come later; what somebody else has set stays.
 */
#include <stdio.h>
#include <string.h>

#include <alertscaler/decide/sized.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"

#define ROLLOUT_US (600 * AS_US_PER_S) /* Kubernetes' default of progressDeadlineSeconds */

static struct as_resize_state *get_resize(const struct target *target)
{
    return target->parts[CONCERN_RESIZES];
}

static bool resize_is_ours(const struct target *target, const struct intent *intent)
{
    const struct as_resize_state *resize = get_resize(target);
    return resize->is_set && !intent->state.rule[0] &&
           strcmp(intent->state.decision_id, resize->id) == 0;
}

static bool resize_is_put_back(const struct target *target, const struct intent *intent)
{
    return resize_is_ours(target, intent) && get_resize(target)->is_late &&
           intent->state.to == get_resize(target)->from;
}

static bool resize_is_catch_up(const struct target *target, const struct intent *intent)
{
    const struct as_resize_state *resize = get_resize(target);
    return resize_is_ours(target, intent) && !resize->is_open && intent->state.to <= resize->to &&
           intent->state.from < intent->state.to;
}

static const char *explain_put_back(struct as_engine *engine, struct target *target,
                                    const struct intent *intent)
{
    const char *unit = as_sized_get_unit(target->ref);
    char text[AS_MESSAGE_SIZE], of[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];
    snprintf(text, sizeof(text), "put back to %s, as the rollout of %s did not end in time",
             as_unit_print_size(unit, intent->state.to, to),
             as_unit_print_size(unit, intent->state.from, of));
    return as_arena_strdup(&engine->arena, text);
}

static const char *resize_note_applied(struct as_engine *engine, struct target *target,
                                       const struct intent *intent)
{
    struct as_resize_state *resize = get_resize(target);
    struct as_sized sized;
    as_sized_read(target->ref, &sized);
    if (sized.what != AS_SIZED_RESOURCE)
        return NULL;
    if (resize_is_put_back(target, intent)) {
        resize->is_open = resize->is_late = false;
        resize->to = intent->state.to;
        return explain_put_back(engine, target, intent);
    }
    if (resize_is_catch_up(target, intent))
        return "pods that came after the last change";
    *resize = (struct as_resize_state){
        .is_set = true,
        .is_open = !sized.by_pods,
        .is_ordered = intent->state.is_ordered,
        .is_above = sized.by_pods && intent->state.to > intent->state.from,
        .from = intent->state.from,
        .to = intent->state.to,
        .moved = moment_now(engine),
        .newest = resize->newest,
    };
    memcpy(resize->id, intent->state.decision_id, AS_ULID_SIZE);
    target_note_entry(target);
    return NULL;
}

static bool resize_remake(struct as_engine *engine, struct target *target)
{
    struct as_resize_state *resize = get_resize(target);
    if (!resize->is_open && !resize->is_above)
        return false;
    target->dirty = true;
    if (target_recover_config(engine, target))
        return false;
    resize->is_open = resize->is_late = resize->is_above = false; /* no rule uses it */
    return true;
}

static void resize_forget(struct as_engine *engine, struct target *target,
                          const struct other_object *why)
{
    (void)engine, (void)why;
    *get_resize(target) = (struct as_resize_state){.moved = AS_MOMENT_NEVER};
}

static bool resize_on_unseen(struct as_engine *engine, struct target *target,
                             enum as_reason outcome)
{
    (void)engine;
    const bool is_gone = outcome == AS_REASON_TARGET_NOT_FOUND && get_resize(target)->is_above;
    if (is_gone)
        get_resize(target)->is_above = false;
    return is_gone;
}

static bool resize_is_awaited(const struct target *target, const struct as_observation *observation)
{
    return get_resize(target)->is_open && observation->resize.is_rolling;
}

static void resize_give_up(struct as_engine *engine, struct target *target)
{
    get_resize(target)->is_open = get_resize(target)->is_late = false;
    effect_put_target(engine, target);
}

static bool resize_has_failed(struct as_engine *engine, struct as_resize_state *resize,
                              const struct as_resize_seen *seen)
{
    if (seen->has_verdict)
        return seen->has_failed;
    if (seen->updated != resize->updated || !as_moment_is_set(resize->moved)) {
        resize->updated = seen->updated;
        resize->moved = moment_now(engine);
    }
    return as_time_add(resize->moved.mono.us, ROLLOUT_US) <= engine->mono.us;
}

/* The rollout has not ended in time. That is the outcome of the change; what was before is due. */
static void give_up_rollout(struct as_engine *engine, struct target *target,
                            const struct as_resize_seen *seen)
{
    struct as_resize_state *resize = get_resize(target);
    struct intent change = {.state = {.is_ordered = resize->is_ordered,
                                      .rule = "",
                                      .from = resize->from,
                                      .to = resize->to},
                            .sent = engine->mono};
    char text[2 * AS_MESSAGE_SIZE], size[AS_SIZE_TEXT_SIZE];
    resize->is_late = true;
    if (resize->to > resize->from)
        scaleup_fail(engine, target);
    as_ulid_print(engine->wall, &engine->random, change.state.action_id);
    memcpy(change.state.decision_id, resize->id, AS_ULID_SIZE);
    struct as_action_record *record =
        record_action(engine, target, &change, AS_REASON_DID_NOT_COME);
    snprintf(text, sizeof(text), "the rollout of %s did not end in time%s%s",
             as_unit_print_size(record->unit, resize->to, size), seen->message[0] ? ": " : "",
             seen->message);
    record->is_late = true;
    record->attempts = 0;
    record->message = as_arena_strdup(&engine->arena, text);
    effect_warn(engine, target,
                &(struct as_late_warning){
                    .from = resize->from,
                    .to = resize->to,
                    .ready = -1,
                    .decision_id = resize->id,
                    .is_ordered = resize->is_ordered,
                });
}

/* Whether the old size is due; closes what has ended, or what somebody else has changed since. */
static bool review_rollout(struct as_engine *engine, struct target *target,
                           const struct as_observation *observation)
{
    struct as_resize_state *resize = get_resize(target);
    if (!observation->resize.is_rolling || observation->replicas != resize->to) {
        if (observation->replicas == resize->to)
            scaleup_end_back_off(target);
        resize_give_up(engine, target);
        effect_commit(engine);
        return false;
    }
    if (!resize->is_late && resize_has_failed(engine, resize, &observation->resize))
        give_up_rollout(engine, target, &observation->resize);
    return resize->is_late;
}

/* What pods that came later are to have; -1: none came. A pod that asks for the last size and has
 * not got it yet is no such pod. */
static int32_t find_last_size(const struct as_resize_state *resize,
                              const struct as_resize_seen *seen)
{
    const int32_t to =
        seen->settled >= 0 && seen->settled < resize->to ? seen->settled : resize->to;
    return seen->asked >= 0 && seen->asked == seen->template_size && to > seen->asked ? to : -1;
}

/* While an increase that did not come backs off, a resize is only for pods that came since: the pod
 * that could not be resized is not tried again. False: none came. */
static bool choose_pods(const struct as_engine *engine, struct target *target,
                        const struct as_resize_seen *seen)
{
    struct as_resize_state *resize = get_resize(target);
    resize->later_than = (as_maybe_time){.set = false};
    if (!scaleup_did_not_come(target, engine->mono))
        return true;
    if (!seen->newest.set || !resize->newest.set || seen->newest.at.us <= resize->newest.at.us)
        return false;
    resize->later_than = resize->newest;
    resize->newest = seen->newest;
    return true;
}

/* While later pods would have less, the target is looked at, also without an incident. */
static void review_template(struct as_engine *engine, struct target *target,
                            const struct as_resize_seen *seen)
{
    struct as_resize_state *resize = get_resize(target);
    const bool is_above = seen->template_size >= 0 && resize->to > seen->template_size;
    if (is_above == resize->is_above)
        return;
    resize->is_above = is_above;
    if (is_above)
        target_note_entry(target);
    effect_put_target(engine, target);
    effect_commit(engine);
}

static int32_t resize_find_size(struct as_engine *engine, struct target *target,
                                const struct as_observation *observation)
{
    const struct as_resize_seen *seen = &observation->resize;
    struct as_resize_state *resize = get_resize(target);
    int32_t size;
    if (seen->newest.set && !scaleup_did_not_come(target, engine->mono))
        resize->newest = seen->newest;
    if (!seen->is_set || !resize->is_set || !target->config || engine->stopping)
        return -1;
    if (resize->is_open) {
        size = review_rollout(engine, target, observation) ? resize->from : -1;
    } else {
        review_template(engine, target, seen);
        size = find_last_size(resize, seen);
    }
    const enum as_ways way = size > observation->replicas ? AS_WAYS_UP : AS_WAYS_DOWN;
    if (size < 0 || blocks_forbid_change(engine, target, way, BLOCK_HOLDS))
        return -1;
    return way == AS_WAYS_DOWN || choose_pods(engine, target, seen) ? size : -1;
}

static bool resize_is_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return get_resize(target)->is_open || get_resize(target)->is_above;
}

static int64_t resize_observe_within(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return get_resize(target)->is_open ? SCALEUP_OBSERVE_US : INT64_MAX;
}

static bool resize_claim(struct as_engine *engine, struct target *target,
                         const struct as_observation *observation, struct change *change_out)
{
    const struct as_resize_state *resize = get_resize(target);
    const int32_t size = resize_find_size(engine, target, observation);
    if (size < 0 || commands_get(target)->is_set)
        return false;
    *change_out = (struct change){.to = size,
                                  .cause = resize->id,
                                  .is_ordered = resize->is_ordered,
                                  .later_than = resize->later_than};
    return true;
}

static bool resize_needs_address(const struct target *target)
{
    return get_resize(target)->is_open || get_resize(target)->is_above;
}

static void resize_store(struct as_engine *engine, const struct target *target,
                         struct as_target_state *state)
{
    const struct as_resize_state *resize = get_resize(target);
    if (resize->is_set)
        state->resize = effect_copy(engine, resize, sizeof(*resize));
}

static void resize_restore(struct as_engine *engine, struct target *target,
                           const struct as_target_state *state)
{
    struct as_resize_state *resize = get_resize(target);
    (void)engine;
    if (!state->resize)
        return;
    *resize = *state->resize;
    resize->is_set = true;
    resize->moved = AS_MOMENT_NEVER;
}

static void resize_mark(const struct target *target, const struct intent *intent,
                        struct marks *marks)
{
    marks->is_put_back = resize_is_put_back(target, intent);
    marks->is_catch_up = resize_is_catch_up(target, intent);
}

static void resize_on_applied(struct as_engine *engine, struct target *target,
                              const struct action *action)
{
    const char *note = resize_note_applied(engine, target, action->intent);
    if (note)
        action->record->message = note;
}

/* The put-back was refused for good: it is not tried again. */
static void resize_on_failed(struct as_engine *engine, struct target *target,
                             const struct action *action)
{
    const struct as_scale_result *result = action->result;
    if (action->marks.is_put_back && !result->is_ambiguous && scaleup_is_final(result->outcome))
        resize_give_up(engine, target);
}

static void resize_fill_input(struct as_engine *engine, const struct target *target,
                              const struct as_observation *observation,
                              struct as_decide_input *input)
{
    (void)engine;
    if (resize_is_awaited(target, observation))
        input_set_in_progress(input, AS_IN_PROGRESS_RESIZE);
}

const struct concern concern_resizes = {
    .name = "resizes",
    .fill_input = resize_fill_input,
    .remake = resize_remake,
    .mark = resize_mark,
    .on_applied = resize_on_applied,
    .on_failed = resize_on_failed,
    .size = sizeof(struct as_resize_state),
    .store = resize_store,
    .restore = resize_restore,
    .needs_address = resize_needs_address,
    .is_using = resize_is_using,
    .forget_sizes = resize_forget,
    .on_unseen = resize_on_unseen,
    .claim = resize_claim,
    .get_observe_us = resize_observe_within,
};
