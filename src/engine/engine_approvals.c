/*
 * Approvals: changes that wait for a person, from the request to its end or its use.
 *
 * Invariants: a rule has at most one request on a target; an approval that an intent uses is not in
 * the target's list, and returns to it only if the action was certainly not done. The module asks
 * nobody: it adds records, which messages and pages show.
 */
#include <assert.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/sized.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"
#include "engine_state.h"

static const char halted[] = "the kill switch was set";

static bool approval_is_open(const struct request *request)
{
    return request->state.answer == AS_APPROVAL_WAITING ||
           request->state.answer == AS_APPROVAL_APPROVED;
}

static struct as_approval_record *approval_record(struct as_engine *engine,
                                                  const struct target *target,
                                                  const struct request *request,
                                                  enum as_approval_event event)
{
    struct as_approval_state *state = as_arena_alloc(&engine->arena, 1, sizeof(*state));
    struct as_approval_record *record = as_arena_alloc(&engine->arena, 1, sizeof(*record));
    *state = request_copy_state(engine, request);
    *record = (struct as_approval_record){
        .event = event,
        .request = state,
        .target = target->ref->id,
        .target_name = target->config ? target->config->name : "",
        .target_kind = target->ref->kind,
        .unit = as_sized_get_unit(target->ref),
        .message = "",
    };
    if (approval_is_open(request) && event != AS_APPROVAL_ON_VOID && event != AS_APPROVAL_ON_USED) {
        const int64_t left = request_get_end(request).us - engine->mono.us;
        record->until = (as_maybe_time){true, {as_time_add(engine->wall.us, left)}};
    }
    effect_add(engine, AS_EFFECT_RECORD_APPROVAL)->approval = record;
    return record;
}

struct as_approval_terms approvals_get_terms(struct as_engine *engine, struct target *target,
                                             const struct as_rule *rule)
{
    const struct request *request = request_find(target, rule->name);
    struct as_approval_terms terms = {.is_set = rule->approval.is_set};
    if (!terms.is_set)
        return terms;
    terms.above = rule->approval.above;
    terms.up = free_steps_sum(target, engine->mono, rule->name, true);
    terms.down = free_steps_sum(target, engine->mono, rule->name, false);
    if (!request)
        return terms;
    const int64_t left = request_get_end(request).us - engine->mono.us;
    terms.is_asked = true;
    terms.id = as_arena_strdup(&engine->arena, request->state.id);
    terms.is_up = request->state.is_up;
    terms.to = request->state.to;
    terms.answer = request->state.answer;
    terms.until = (as_maybe_time){true, {as_time_add(engine->wall.us, left)}};
    return terms;
}

/* Ends */

/* The rule that has asked still wants something for the same incident, or its ending; NULL: no. */
static const struct as_rule *find_cause(struct target *target, const struct request *request)
{
    const struct as_approval_state *state = &request->state;
    const struct group *group = group_find(target, state->rule);
    const struct binding *binding;
    const struct ending *ending;
    char text[AS_DIGEST_TEXT_SIZE];
    if (group) {
        TAILQ_FOREACH (binding, &group->bindings, in_group) {
            as_digest_print(&binding->incident->state.key.digest, text);
            if (strcmp(text, state->incident) == 0 &&
                binding->incident->state.opened.mono.us <= state->asked.mono.us)
                return group->rule;
        }
    }
    TAILQ_FOREACH (ending, &target->endings, in_target) {
        if (ending->rule && strcmp(ending->state.rule, state->rule) == 0 &&
            strcmp(ending->state.incident, state->incident) == 0 &&
            ending->state.ended.mono.us <= state->asked.mono.us)
            return ending->rule;
    }
    return NULL;
}

/* NULL: the request still stands. */
static const char *approval_find_reason_against(struct target *target,
                                                const struct request *request)
{
    const struct as_rule *rule = find_cause(target, request);
    if (!rule)
        return "the incident that asked is over";
    if (!rule->approval.is_set || as_digest_compare(&rule->digest, &request->state.digest) != 0)
        return "the rule or its target was changed";
    if (strcmp(request->state.uid, target->uid) != 0)
        return "another object has the name now";
    return NULL;
}

static void make_void(struct as_engine *engine, const struct target *target,
                      struct request *request, const char *why)
{
    request->state.answer = AS_APPROVAL_VOID;
    approval_record(engine, target, request, AS_APPROVAL_ON_VOID)->message = why;
}

/* Nothing is left of it: the rule may ask again. */
static void approval_end(struct as_engine *engine, struct target *target, struct request *request,
                         const char *why)
{
    if (approval_is_open(request))
        make_void(engine, target, request, why);
    request_remove(target, request);
    request_free(request);
}

static void set_answer(struct as_engine *engine, struct request *request,
                       enum as_approval_answer answer)
{
    request->state.answer = answer;
    request->state.answered = moment_now(engine);
}

static void approval_expire(struct as_engine *engine, struct target *target,
                            struct request *request)
{
    const bool was_approved = request->state.answer == AS_APPROVAL_APPROVED;
    set_answer(engine, request, AS_APPROVAL_EXPIRED);
    approval_record(engine, target, request, AS_APPROVAL_ON_EXPIRED)->message =
        was_approved ? "the approval was not used in time" : "nobody answered in time";
}

bool approvals_review(struct as_engine *engine, struct target *target)
{
    struct request *request, *next;
    bool is_changed = false;
    TAILQ_FOREACH_SAFE (request, &target->requests, in_target, next) {
        const char *why = approval_find_reason_against(target, request);
        const bool is_over = request_get_end(request).us <= engine->mono.us;
        if (!why && !is_over)
            continue;
        if (!why && approval_is_open(request))
            approval_expire(engine, target, request);
        else
            approval_end(engine, target, request, why);
        is_changed = true;
    }
    return is_changed;
}

bool approvals_see_size(struct as_engine *engine, struct target *target, int32_t replicas)
{
    struct request *request, *next;
    bool is_changed = false;
    TAILQ_FOREACH_SAFE (request, &target->requests, in_target, next) {
        const struct as_approval_state *state = &request->state;
        if (!approval_is_open(request) ||
            (state->is_up ? replicas < state->to : replicas > state->to))
            continue;
        approval_end(engine, target, request, "the size is there already");
        is_changed = true;
    }
    return is_changed;
}

void approvals_forget(struct as_engine *engine, struct target *target, const char *why)
{
    struct request *request;
    while ((request = TAILQ_FIRST(&target->requests)))
        approval_end(engine, target, request, why);
}

/* Ends the approvals of a target that no action has used yet. True: the target must be stored. */
static bool revoke(struct as_engine *engine, struct target *target)
{
    struct request *request, *next;
    bool is_changed = false;
    TAILQ_FOREACH_SAFE (request, &target->requests, in_target, next) {
        if (request->state.answer != AS_APPROVAL_APPROVED)
            continue;
        approval_end(engine, target, request, halted);
        is_changed = true;
    }
    return is_changed;
}

void approvals_on_halt(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets) {
        if (target->intent)
            target->intent->is_revoked = true;
        if (revoke(engine, target))
            effect_put_target(engine, target);
    }
}

as_mono_time approvals_get_next_end(const struct target *target)
{
    const struct request *request;
    as_mono_time next = AS_MONO_NEVER;
    TAILQ_FOREACH (request, &target->requests, in_target) {
        const as_mono_time at = request_get_end(request);
        next = at.us < next.us ? at : next;
    }
    return next;
}

bool approvals_apply(struct as_engine *engine, struct target *target,
                     const struct as_decision *decision)
{
    const enum as_direction direction = decision->direction;
    struct request *request;
    bool is_changed = false;
    if (direction == AS_DIRECTION_NONE)
        return false;
    TAILQ_FOREACH (request, &target->requests, in_target) {
        if (!approval_is_open(request) || request->state.is_up == (direction == AS_DIRECTION_UP))
            continue;
        set_answer(engine, request, AS_APPROVAL_VOID);
        approval_record(engine, target, request, AS_APPROVAL_ON_VOID)->message =
            "a decision in the other direction came first";
        is_changed = true;
    }
    return is_changed;
}

/* Questions and answers */

void approvals_ask(struct as_engine *engine, struct target *target,
                   const struct desired_approval *desired)
{
    struct request *old = request_find(target, desired->rule->name), *other, *next;
    char id[AS_ULID_SIZE];
    if (old)
        approval_end(engine, target, old, "it is asked anew");
    /* Its incident is held, for example by a silence: else its rule would be in the decision. */
    TAILQ_FOREACH_SAFE (other, &target->requests, in_target, next) {
        if (other->state.answer == AS_APPROVAL_WAITING)
            approval_end(engine, target, other, "another rule asks, and its incident is held");
    }
    as_ulid_print(engine->wall, &engine->random, id);
    struct request *request = request_new(&(struct as_approval_state){
        .id = id,
        .decision = desired->decision,
        .rule = desired->rule->name,
        .incident = desired->incident,
        .uid = target->uid,
        .digest = desired->rule->digest,
        .is_up = desired->to > desired->from,
        .from = desired->from,
        .to = desired->to,
        .for_us = desired->rule->approval.for_us,
        .answer = AS_APPROVAL_WAITING,
        .asked = moment_now(engine),
        .answered = AS_MOMENT_NEVER,
        .who = "",
    });
    TAILQ_INSERT_TAIL(&target->requests, request, in_target);
    (void)approval_record(engine, target, request, AS_APPROVAL_ON_ASKED);
}

static struct request *find_by_id(const struct target *target, const char *id)
{
    struct request *request;
    TAILQ_FOREACH (request, &target->requests, in_target) {
        if (strcmp(request->state.id, id) == 0)
            return request;
    }
    return NULL;
}

static bool is_under_way(const struct target *target, const char *id)
{
    const struct intent *const intents[] = {target->intent, target->in_doubt};
    for (size_t i = 0; i < AS_ARRAY_SIZE(intents); i++) {
        if (intents[i] && strcmp(intents[i]->state.approval, id) == 0)
            return true;
    }
    return false;
}

struct target *approvals_find(const struct as_engine *engine, const char *id)
{
    struct target *target;
    if (!*id)
        return NULL;
    RB_FOREACH (target, target_tree, (struct target_tree *)(uintptr_t)&engine->targets) {
        if (find_by_id(target, id) || is_under_way(target, id))
            return target;
    }
    return NULL;
}

/* NULL: it may be answered so. */
static const char *approval_find_obstacle(const struct as_engine *engine,
                                          const struct request *request,
                                          enum as_operator_command_kind kind)
{
    if (!request)
        return "it was approved, and the change is under way";
    if (approval_is_open(request) && request_get_end(request).us <= engine->mono.us)
        return "its time is over";
    switch (request->state.answer) {
    case AS_APPROVAL_WAITING: return NULL;
    case AS_APPROVAL_APPROVED:
        return kind == AS_OPERATOR_COMMAND_DENY ? NULL : "it is approved already";
    case AS_APPROVAL_DENIED: return "it was denied";
    case AS_APPROVAL_EXPIRED: return "its time is over";
    case AS_APPROVAL_VOID: return "it is void: a decision in the other direction came first";
    case AS_APPROVAL_ANSWER_COUNT: break;
    }
    return "it is over";
}

const char *approvals_answer(struct as_engine *engine, struct target *target,
                             const struct as_operator_command *order, const char *command)
{
    struct request *request = find_by_id(target, order->request);
    const bool is_yes = order->kind == AS_OPERATOR_COMMAND_APPROVE;
    const char *obstacle = approval_find_obstacle(engine, request, order->kind);
    if (obstacle)
        return obstacle;
    set_answer(engine, request, is_yes ? AS_APPROVAL_APPROVED : AS_APPROVAL_DENIED);
    request_set_who(request, order->who);
    struct as_approval_record *answer = approval_record(
        engine, target, request, is_yes ? AS_APPROVAL_ON_APPROVED : AS_APPROVAL_ON_DENIED);
    answer->command = command;
    answer->message = as_arena_strdup(&engine->arena, order->reason);
    return NULL;
}

/* Use */

void approvals_use(struct as_engine *engine, struct target *target, const char *id,
                   struct intent *intent)
{
    struct request *request = find_by_id(target, id);
    assert(request); /* the decision that uses it was made in this step */
    struct as_approval_record *used = approval_record(engine, target, request, AS_APPROVAL_ON_USED);
    request_remove(target, request);
    if (!intent) {
        request_free(request);
        return;
    }
    used->action = as_arena_strdup(&engine->arena, intent->state.action_id);
    memcpy(intent->state.approval, id, strlen(id) + 1);
    intent->used = request;
}

bool approvals_return(struct as_engine *engine, struct target *target, struct intent *intent)
{
    struct request *request = intent->used;
    if (!request)
        return false;
    intent->used = NULL;
    if (intent->is_revoked) {
        make_void(engine, target, request, halted);
        request_free(request);
        return false;
    }
    TAILQ_INSERT_TAIL(&target->requests, request, in_target);
    struct as_approval_record *back =
        approval_record(engine, target, request, AS_APPROVAL_ON_RETURNED);
    back->action = as_arena_strdup(&engine->arena, intent->state.action_id);
    back->message = "the change was not made";
    return true;
}

/* By the rule set: what has wanted the change may have ended while it was under way. */
static bool has_approval(const struct as_engine *engine, const char *name)
{
    const struct as_rule *rule = as_ruleset_find_rule(engine->ruleset, name);
    return rule && rule->approval.is_set;
}

void approvals_note_step(struct as_engine *engine, struct target *target, const char *rule,
                         int32_t change)
{
    if (change == 0 || !has_approval(engine, rule))
        return;
    free_steps_add(target, engine->mono, &(struct as_free_step){rule, change, moment_now(engine)});
}

static as_mono_time approvals_get_forget_time(const struct target *target)
{
    const size_t count = target->free_step_count;
    return count > 0 ? (as_mono_time){as_time_add(target->free_steps[count - 1].at.mono.us,
                                                  AS_APPROVAL_SPAN_US)}
                     : (as_mono_time){INT64_MIN};
}

static void approvals_drop_sizes(struct as_engine *engine, struct target *target,
                                 const struct other_object *why)
{
    approvals_forget(engine, target, why->cause);
}

static bool approvals_settle(struct as_engine *engine, struct target *target, int32_t replicas)
{
    const bool is_over = approvals_review(engine, target);
    return approvals_see_size(engine, target, replicas) || is_over;
}

const struct concern concern_approvals = {
    .name = "approvals",
    .get_forget_time = approvals_get_forget_time,
    .forget_sizes = approvals_drop_sizes,
    .review = approvals_settle,
    .on_idle = approvals_review,
};
