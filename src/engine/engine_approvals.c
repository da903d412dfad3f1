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

struct request { /* for an approval; of a rule at most one */
    TAILQ_ENTRY(request) in_target;
    struct as_approval_state state; /* owns its texts */
};
TAILQ_HEAD(request_list, request);

struct approvals {
    struct request_list requests;
    struct as_free_step *free_steps; /* ascending by time; own their texts */
    size_t free_step_count, free_step_capacity;
};

static struct approvals *get_approvals(const struct target *target)
{
    return target->parts[CONCERN_APPROVALS];
}

struct request *request_free(struct request *request)
{
    if (!request)
        return NULL;
    as_rows_free_texts(as_approval_rows, &request->state);
    free(request);
    return NULL;
}

/* A target with more free steps than this has the oldest of a rule added to that rule's next one,
 * which counts longer. */
#define FREE_STEPS_MAX 1024

static struct request *request_new(const struct as_approval_state *state)
{
    struct request *request = as_xcalloc(1, sizeof(*request));
    request->state = *state;
    as_rows_own_texts(as_approval_rows, &request->state);
    return request;
}

static struct request *request_find(const struct target *target, const char *rule)
{
    struct approvals *approvals = get_approvals(target);
    struct request *request;
    TAILQ_FOREACH (request, &approvals->requests, in_target) {
        if (strcmp(request->state.rule, rule) == 0)
            return request;
    }
    return NULL;
}

static void request_remove(struct target *target, struct request *request)
{
    struct approvals *approvals = get_approvals(target);
    TAILQ_REMOVE(&approvals->requests, request, in_target);
}

static void request_set_who(struct request *request, const char *who)
{
    free((char *)(uintptr_t)request->state.who);
    request->state.who = as_xstrdup(who);
}

static as_mono_time request_get_end(const struct request *request)
{
    const struct as_approval_state *state = &request->state;
    switch (state->answer) {
    case AS_APPROVAL_WAITING:
        return (as_mono_time){as_time_add(state->asked.mono.us, state->for_us)};
    case AS_APPROVAL_APPROVED:
        return (as_mono_time){as_time_add(state->answered.mono.us, state->for_us)};
    case AS_APPROVAL_DENIED:
    case AS_APPROVAL_EXPIRED:
    case AS_APPROVAL_VOID:
    case AS_APPROVAL_ANSWER_COUNT: break;
    }
    return (as_mono_time){as_time_add(state->answered.mono.us, AS_APPROVAL_SPAN_US)};
}

static struct as_approval_state request_copy_state(struct as_engine *engine,
                                                   const struct request *request)
{
    return *(const struct as_approval_state *)as_rows_copy(
        &engine->arena, as_approval_rows, &request->state, 1, sizeof(request->state));
}

static bool is_within_span(const struct as_free_step *step, as_mono_time now)
{
    return now.us - step->at.mono.us < AS_APPROVAL_SPAN_US;
}

static int32_t add_bounded(int32_t a, int32_t b)
{
    const int64_t sum = (int64_t)a + b;
    return sum > INT32_MAX ? INT32_MAX : sum < -INT32_MAX ? -INT32_MAX : (int32_t)sum;
}

static void remove_step(struct target *target, size_t at)
{
    struct approvals *approvals = get_approvals(target);
    as_rows_free_texts(as_free_step_rows, &approvals->free_steps[at]);
    approvals->free_step_count--;
    memmove(approvals->free_steps + at, approvals->free_steps + at + 1,
            (approvals->free_step_count - at) * sizeof(*approvals->free_steps));
}

static void unite_oldest(struct target *target)
{
    struct approvals *approvals = get_approvals(target);
    const struct as_free_step *oldest = &approvals->free_steps[0];
    for (size_t i = 1; i < approvals->free_step_count; i++) {
        struct as_free_step *step = &approvals->free_steps[i];
        if (strcmp(step->rule, oldest->rule) == 0 && (step->change > 0) == (oldest->change > 0)) {
            step->change = add_bounded(step->change, oldest->change);
            break;
        }
    }
    remove_step(target, 0);
}

static void free_steps_add(struct target *target, as_mono_time now, const struct as_free_step *step)
{
    struct approvals *approvals = get_approvals(target);
    while (approvals->free_step_count > 0 && !is_within_span(&approvals->free_steps[0], now))
        remove_step(target, 0);
    if (approvals->free_step_count >= FREE_STEPS_MAX)
        unite_oldest(target);
    approvals->free_steps =
        as_xgrow(approvals->free_steps, approvals->free_step_count, &approvals->free_step_capacity,
                 sizeof(*approvals->free_steps));
    size_t at = approvals->free_step_count++;
    for (; at > 0 && approvals->free_steps[at - 1].at.mono.us > step->at.mono.us; at--)
        approvals->free_steps[at] = approvals->free_steps[at - 1];
    approvals->free_steps[at] = *step;
    as_rows_own_texts(as_free_step_rows, &approvals->free_steps[at]);
}

static int32_t free_steps_sum(const struct target *target, as_mono_time now, const char *rule,
                              bool is_up)
{
    struct approvals *approvals = get_approvals(target);
    int32_t sum = 0;
    for (size_t i = 0; i < approvals->free_step_count; i++) {
        const struct as_free_step *step = &approvals->free_steps[i];
        if (is_within_span(step, now) && (step->change > 0) == is_up &&
            strcmp(step->rule, rule) == 0)
            sum = add_bounded(sum, is_up ? step->change : -step->change);
    }
    return sum;
}

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
            incident_print(binding->incident, text);
            if (strcmp(text, state->incident) == 0 &&
                binding->incident->state.opened.mono.us <= state->asked.mono.us)
                return group->rule;
        }
    }
    TAILQ_FOREACH (ending, endings_get(target), in_target) {
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

static bool approvals_review(struct as_engine *engine, struct target *target)
{
    struct approvals *approvals = get_approvals(target);
    struct request *request, *next;
    bool is_changed = false;
    TAILQ_FOREACH_SAFE (request, &approvals->requests, in_target, next) {
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

static bool approvals_see_size(struct as_engine *engine, struct target *target, int32_t replicas)
{
    struct approvals *approvals = get_approvals(target);
    struct request *request, *next;
    bool is_changed = false;
    TAILQ_FOREACH_SAFE (request, &approvals->requests, in_target, next) {
        const struct as_approval_state *state = &request->state;
        if (!approval_is_open(request) ||
            (state->is_up ? replicas < state->to : replicas > state->to))
            continue;
        approval_end(engine, target, request, "the size is there already");
        is_changed = true;
    }
    return is_changed;
}

static void approvals_forget_sizes(struct as_engine *engine, struct target *target,
                                   const struct other_object *why)
{
    struct approvals *approvals = get_approvals(target);
    struct request *request;
    while ((request = TAILQ_FIRST(&approvals->requests)))
        approval_end(engine, target, request, why->cause);
}

/* Ends the approvals of a target that no action has used yet. True: the target must be stored. */
static bool revoke(struct as_engine *engine, struct target *target)
{
    struct approvals *approvals = get_approvals(target);
    struct request *request, *next;
    bool is_changed = false;
    TAILQ_FOREACH_SAFE (request, &approvals->requests, in_target, next) {
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
    struct approvals *approvals = get_approvals(target);
    const struct request *request;
    as_mono_time next = AS_MONO_NEVER;
    TAILQ_FOREACH (request, &approvals->requests, in_target) {
        const as_mono_time at = request_get_end(request);
        next = at.us < next.us ? at : next;
    }
    return next;
}

bool approvals_apply(struct as_engine *engine, struct target *target,
                     const struct as_decision *decision)
{
    struct approvals *approvals = get_approvals(target);
    const enum as_direction direction = decision->direction;
    struct request *request;
    bool is_changed = false;
    if (direction == AS_DIRECTION_NONE)
        return false;
    TAILQ_FOREACH (request, &approvals->requests, in_target) {
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
    struct approvals *approvals = get_approvals(target);
    struct request *old = request_find(target, desired->rule->name), *other, *next;
    char id[AS_ULID_SIZE];
    if (old)
        approval_end(engine, target, old, "it is asked anew");
    /* Its incident is held, for example by a silence: else its rule would be in the decision. */
    TAILQ_FOREACH_SAFE (other, &approvals->requests, in_target, next) {
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
    TAILQ_INSERT_TAIL(&approvals->requests, request, in_target);
    (void)approval_record(engine, target, request, AS_APPROVAL_ON_ASKED);
}

bool approvals_has_steps(const struct target *target)
{
    return get_approvals(target)->free_step_count > 0;
}

bool approvals_sets_aside(const struct target *target, const struct as_rule *rule)
{
    const struct request *request = request_find(target, rule->name);
    return request && request->state.answer != AS_APPROVAL_APPROVED;
}

static struct request *find_by_id(const struct target *target, const char *id)
{
    struct approvals *approvals = get_approvals(target);
    struct request *request;
    TAILQ_FOREACH (request, &approvals->requests, in_target) {
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

static bool approvals_return(struct as_engine *engine, struct target *target, struct intent *intent)
{
    struct approvals *approvals = get_approvals(target);
    struct request *request = intent->used;
    if (!request)
        return false;
    intent->used = NULL;
    if (intent->is_revoked) {
        make_void(engine, target, request, halted);
        request_free(request);
        return false;
    }
    TAILQ_INSERT_TAIL(&approvals->requests, request, in_target);
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

void as_engine_visit_approvals(const struct as_engine *engine, as_mono_time now, as_wall_time wall,
                               as_approval_visit_fn *visit, void *context)
{
    struct target *target;
    const struct request *request;
    RB_FOREACH (target, target_tree, (struct target_tree *)(uintptr_t)&engine->targets) {
        TAILQ_FOREACH (request, &get_approvals(target)->requests, in_target) {
            const int64_t left = request_get_end(request).us - now.us;
            const struct as_approval_view view = {
                .target = target->ref->id,
                .name = target->config ? target->config->name : "",
                .is_templated = target->config && target->config->is_templated,
                .unit = as_sized_get_unit(target->ref),
                .state = request->state,
                .until = {as_time_add(wall.us, left)},
            };
            visit(context, &view);
        }
    }
}

static as_mono_time approvals_get_forget_time(const struct target *target)
{
    struct approvals *approvals = get_approvals(target);
    const size_t count = approvals->free_step_count;
    return count > 0 ? (as_mono_time){as_time_add(approvals->free_steps[count - 1].at.mono.us,
                                                  AS_APPROVAL_SPAN_US)}
                     : (as_mono_time){INT64_MIN};
}

static bool approvals_settle(struct as_engine *engine, struct target *target, int32_t replicas)
{
    const bool is_over = approvals_review(engine, target);
    return approvals_see_size(engine, target, replicas) || is_over;
}

static void approvals_init(struct target *target)
{
    TAILQ_INIT(&get_approvals(target)->requests);
}

static void approvals_deinit(struct target *target)
{
    struct approvals *approvals = get_approvals(target);
    struct request *request;
    while ((request = TAILQ_FIRST(&approvals->requests))) {
        TAILQ_REMOVE(&approvals->requests, request, in_target);
        request_free(request);
    }
    while (approvals->free_step_count > 0)
        as_rows_free_texts(as_free_step_rows, &approvals->free_steps[--approvals->free_step_count]);
    free(approvals->free_steps);
}

static void approvals_store(struct as_engine *engine, const struct target *target,
                            struct as_target_state *state)
{
    struct approvals *approvals = get_approvals(target);
    const struct request *request;
    size_t count = 0;
    TAILQ_FOREACH (request, &approvals->requests, in_target)
        count++;
    if (count > 0) {
        struct as_approval_state *states = as_arena_alloc(&engine->arena, count, sizeof(*states));
        TAILQ_FOREACH (request, &approvals->requests, in_target)
            states[state->approval_count++] = request_copy_state(engine, request);
        state->approvals = states;
    }
    state->free_steps = as_rows_copy(&engine->arena, as_free_step_rows, approvals->free_steps,
                                     approvals->free_step_count, sizeof(*approvals->free_steps));
    state->free_step_count = approvals->free_step_count;
}

/* Another spelling of the target may have a request of the same rule: the later one counts. */
static void take_request(struct target *target, const struct as_approval_state *state)
{
    struct approvals *approvals = get_approvals(target);
    struct request *other = request_find(target, state->rule);
    if (other && other->state.asked.mono.us >= state->asked.mono.us)
        return;
    if (other) {
        request_remove(target, other);
        request_free(other);
    }
    struct request *request = request_new(state);
    TAILQ_INSERT_TAIL(&approvals->requests, request, in_target);
}

static void approvals_restore(struct as_engine *engine, struct target *target,
                              const struct as_target_state *state)
{
    (void)engine;
    for (size_t i = 0; i < state->approval_count; i++)
        take_request(target, &state->approvals[i]);
    for (size_t i = 0; i < state->free_step_count; i++)
        free_steps_add(target, state->free_steps[i].at.mono, &state->free_steps[i]);
}

static void approvals_on_unsent(struct as_engine *engine, struct target *target,
                                struct intent *intent)
{
    if (approvals_return(engine, target, intent))
        effect_put_target(engine, target);
}

static void approvals_on_applied(struct as_engine *engine, struct target *target,
                                 const struct action *action)
{
    const struct as_intent_state *change = &action->intent->state;
    if (!change->is_ordered && !change->approval[0])
        approvals_note_step(engine, target, change->rule, change->to - change->from);
}

static void approvals_on_failed(struct as_engine *engine, struct target *target,
                                const struct action *action)
{
    if (!action->result->is_ambiguous)
        approvals_on_unsent(engine, target, action->intent);
}

const struct concern concern_approvals = {
    .name = "approvals",
    .remake = approvals_review,
    .on_unsent = approvals_on_unsent,
    .on_applied = approvals_on_applied,
    .on_failed = approvals_on_failed,
    .size = sizeof(struct approvals),
    .init = approvals_init,
    .deinit = approvals_deinit,
    .store = approvals_store,
    .restore = approvals_restore,
    .get_forget_time = approvals_get_forget_time,
    .forget_sizes = approvals_forget_sizes,
    .review = approvals_settle,
    .on_idle = approvals_review,
};
