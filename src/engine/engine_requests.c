/*
 * Requests for approvals and free steps: see the header.
 */
#include "engine_requests.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

/* A target with more free steps than this has the oldest of a rule added to that rule's next one,
 * which counts longer. */
#define FREE_STEPS_MAX 1024

struct request *request_new(const struct as_approval_state *state)
{
    struct request *request = as_xcalloc(1, sizeof(*request));
    request->state = *state;
    request->state.id = as_xstrdup(state->id);
    request->state.decision = as_xstrdup(state->decision);
    request->state.rule = as_xstrdup(state->rule);
    request->state.incident = as_xstrdup(state->incident);
    request->state.uid = as_xstrdup(state->uid);
    request->state.who = as_xstrdup(state->who);
    return request;
}

static void free_text(const char *text)
{
    free((char *)(uintptr_t)text);
}

struct request *request_find(struct target *target, const char *rule)
{
    struct request *request;
    TAILQ_FOREACH (request, &target->requests, in_target) {
        if (strcmp(request->state.rule, rule) == 0)
            return request;
    }
    return NULL;
}

void request_remove(struct target *target, struct request *request)
{
    TAILQ_REMOVE(&target->requests, request, in_target);
}

void request_set_who(struct request *request, const char *who)
{
    free_text(request->state.who);
    request->state.who = as_xstrdup(who);
}

as_mono_time request_get_end(const struct request *request)
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

struct as_approval_state request_copy_state(struct as_engine *engine, const struct request *request)
{
    struct as_approval_state state = request->state;
    state.id = as_arena_strdup(&engine->arena, state.id);
    state.decision = as_arena_strdup(&engine->arena, state.decision);
    state.rule = as_arena_strdup(&engine->arena, state.rule);
    state.incident = as_arena_strdup(&engine->arena, state.incident);
    state.uid = as_arena_strdup(&engine->arena, state.uid);
    state.who = as_arena_strdup(&engine->arena, state.who);
    return state;
}

static bool is_within(const struct as_free_step *step, as_mono_time now)
{
    return now.us - step->at.mono.us < AS_APPROVAL_SPAN_US;
}

static int32_t add(int32_t a, int32_t b)
{
    const int64_t sum = (int64_t)a + b;
    return sum > INT32_MAX ? INT32_MAX : sum < -INT32_MAX ? -INT32_MAX : (int32_t)sum;
}

static void remove_step(struct target *target, size_t at)
{
    free_text(target->free_steps[at].rule);
    target->free_step_count--;
    memmove(target->free_steps + at, target->free_steps + at + 1,
            (target->free_step_count - at) * sizeof(*target->free_steps));
}

static void unite_oldest(struct target *target)
{
    const struct as_free_step *oldest = &target->free_steps[0];
    for (size_t i = 1; i < target->free_step_count; i++) {
        struct as_free_step *step = &target->free_steps[i];
        if (strcmp(step->rule, oldest->rule) == 0 && (step->change > 0) == (oldest->change > 0)) {
            step->change = add(step->change, oldest->change);
            break;
        }
    }
    remove_step(target, 0);
}

void free_steps_add(struct target *target, as_mono_time now, const struct as_free_step *step)
{
    while (target->free_step_count > 0 && !is_within(&target->free_steps[0], now))
        remove_step(target, 0);
    if (target->free_step_count >= FREE_STEPS_MAX)
        unite_oldest(target);
    target->free_steps = as_xgrow(target->free_steps, target->free_step_count,
                                  &target->free_step_capacity, sizeof(*target->free_steps));
    size_t at = target->free_step_count++;
    for (; at > 0 && target->free_steps[at - 1].at.mono.us > step->at.mono.us; at--)
        target->free_steps[at] = target->free_steps[at - 1];
    target->free_steps[at] = *step;
    target->free_steps[at].rule = as_xstrdup(step->rule);
}

int32_t free_steps_sum(const struct target *target, as_mono_time now, const char *rule, bool is_up)
{
    int32_t sum = 0;
    for (size_t i = 0; i < target->free_step_count; i++) {
        const struct as_free_step *step = &target->free_steps[i];
        if (is_within(step, now) && (step->change > 0) == is_up && strcmp(step->rule, rule) == 0)
            sum = add(sum, is_up ? step->change : -step->change);
    }
    return sum;
}

void requests_fill_state(struct as_engine *engine, const struct target *target,
                         struct as_target_state *state)
{
    const struct request *request;
    size_t count = 0;
    TAILQ_FOREACH (request, &target->requests, in_target)
        count++;
    if (count > 0) {
        struct as_approval_state *approvals =
            as_arena_alloc(&engine->arena, count, sizeof(*approvals));
        TAILQ_FOREACH (request, &target->requests, in_target)
            approvals[state->approval_count++] = request_copy_state(engine, request);
        state->approvals = approvals;
    }
    if (target->free_step_count > 0) {
        struct as_free_step *steps =
            as_arena_alloc(&engine->arena, target->free_step_count, sizeof(*steps));
        for (size_t i = 0; i < target->free_step_count; i++) {
            steps[i] = target->free_steps[i];
            steps[i].rule = as_arena_strdup(&engine->arena, steps[i].rule);
        }
        state->free_steps = steps;
        state->free_step_count = target->free_step_count;
    }
}

/* Another spelling of the target may have a request of the same rule: the later one counts. */
static void take_request(struct target *target, const struct as_approval_state *state)
{
    struct request *other = request_find(target, state->rule);
    if (other && other->state.asked.mono.us >= state->asked.mono.us)
        return;
    if (other) {
        request_remove(target, other);
        request_free(other);
    }
    struct request *request = request_new(state);
    TAILQ_INSERT_TAIL(&target->requests, request, in_target);
}

void requests_take_state(struct target *target, const struct as_target_state *state)
{
    for (size_t i = 0; i < state->approval_count; i++)
        take_request(target, &state->approvals[i]);
    for (size_t i = 0; i < state->free_step_count; i++)
        free_steps_add(target, state->free_steps[i].at.mono, &state->free_steps[i]);
}
