/*
 * What is promised of changes that wait for people. As it happens, by the true time: who has
 * answered; no change goes beyond what its rule may do without asking, or what was shown; an
 * approval is used in time, by the rule that asked, as it was written then, and not after a change
 * in the other direction. In the log, where only what has become durable counts: an approval is
 * used once, and not after its incident's end; and nobody is asked twice within an hour.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "sim.h"

static bool is_open(enum as_approval_event last)
{
    return last == AS_APPROVAL_ON_ASKED || last == AS_APPROVAL_ON_APPROVED ||
           last == AS_APPROVAL_ON_RETURNED;
}

/* Requests */

static void check_asked(struct world *world, const struct as_approval_record *record)
{
    const struct as_approval_state *request = record->request;
    const struct as_rule *rule = rules_find_rule(world, request->rule);
    struct sim_approval *approval = approvals_look_up(world, request->id);
    if (approval) {
        fail(world, "%s is asked twice", request->id);
        return;
    }
    approval = approvals_note_asked(world, record);
    if (!rule || !rule->approval.is_set || rule->approval.for_us != request->for_us) {
        fail(world, "%s asks, though it needs no approval", request->rule);
        return;
    }
    approval->digest = rule->digest;
    if (request->to == request->from || request->is_up != (request->to > request->from))
        fail(world, "%s: %s is asked for nothing", request->rule, request->id);
}

/* By whom, and that it was said in time. */
static void check_answered(struct world *world, const struct sim_approval *approval,
                           const struct as_approval_record *record)
{
    const bool is_yes = record->event == AS_APPROVAL_ON_APPROVED;
    const struct sim_order *order = operators_find(world, record->command);
    if (!order || order->outcome != AS_OPERATOR_COMMAND_DONE ||
        order->order.kind != (is_yes ? AS_OPERATOR_COMMAND_APPROVE : AS_OPERATOR_COMMAND_DENY) ||
        strcmp(order->order.request, approval->id) != 0)
        fail(world, "%s is answered, but by nobody", approval->id);
    if (is_yes && world->now - approval->asked_at >= approval->for_us)
        fail(world, "%s is approved too late", approval->id);
}

static void check_expired(struct world *world, const struct sim_approval *approval,
                          const struct as_approval_state *request)
{
    const bool was_approved = as_moment_is_set(request->answered) && approval->approved_at >= 0;
    const int64_t since = was_approved && approval->last != AS_APPROVAL_ON_ASKED
                              ? approval->approved_at
                              : approval->asked_at;
    if (approval->generation == world->daemon.generation && is_open(approval->last) &&
        world->now - since < approval->for_us)
        fail(world, "%s expires early", approval->id);
}

static void check_used(struct world *world, const struct sim_approval *approval)
{
    const struct as_rule *rule = rules_find_rule(world, approval->rule);
    if (approval->approved_at == INT64_MIN)
        fail(world, "%s is used, and nobody has approved it", approval->id);
    else if (world->now - approval->approved_at >= approval->for_us)
        fail(world, "%s is used too late", approval->id);
    if (!rule || as_digest_compare(&rule->digest, &approval->digest) != 0)
        fail(world, "%s is used by another rule than the one that asked", approval->id);
    if (approval->is_opposed)
        fail(world, "%s is used after a change in the other direction", approval->id);
}

void check_approval(struct world *world, const struct as_approval_record *record)
{
    static const enum trouble troubles[AS_APPROVAL_EVENT_COUNT] = {
        [AS_APPROVAL_ON_ASKED] = TROUBLE_APPROVAL_ASKED,
        [AS_APPROVAL_ON_APPROVED] = TROUBLE_APPROVAL_APPROVED,
        [AS_APPROVAL_ON_DENIED] = TROUBLE_APPROVAL_DENIED,
        [AS_APPROVAL_ON_EXPIRED] = TROUBLE_APPROVAL_EXPIRED,
        [AS_APPROVAL_ON_VOID] = TROUBLE_APPROVAL_VOID,
        [AS_APPROVAL_ON_USED] = TROUBLE_APPROVAL_USED,
        [AS_APPROVAL_ON_RETURNED] = TROUBLE_APPROVAL_RETURNED,
    };
    trouble_note(world, troubles[record->event]);
    if (record->event == AS_APPROVAL_ON_ASKED)
        check_asked(world, record);
    struct sim_approval *approval = approvals_look_up(world, record->request->id);
    if (!approval) {
        fail(world, "%s was never asked", record->request->id);
        return;
    }
    switch (record->event) {
    case AS_APPROVAL_ON_APPROVED:
        check_answered(world, approval, record);
        approval->approved_at = world->now;
        break;
    case AS_APPROVAL_ON_DENIED:
        check_answered(world, approval, record);
        approval->refused_at = world->now;
        break;
    case AS_APPROVAL_ON_EXPIRED:
        check_expired(world, approval, record->request);
        approval->refused_at = world->now;
        break;
    case AS_APPROVAL_ON_USED: check_used(world, approval); break;
    case AS_APPROVAL_ON_ASKED:
    case AS_APPROVAL_ON_VOID:
    case AS_APPROVAL_ON_RETURNED:
    case AS_APPROVAL_EVENT_COUNT: break;
    }
    approval->last = record->event;
    approval->generation = world->daemon.generation;
}

/* Who answers in time is heard. */
void check_answer(struct world *world, const struct sim_order *order)
{
    const struct sim_approval *approval = approvals_look_up(world, order->order.request);
    const bool is_waiting = approval->last == AS_APPROVAL_ON_ASKED &&
                            approval->generation == world->daemon.generation &&
                            world->now - approval->asked_at < approval->for_us;
    if (order->outcome == AS_OPERATOR_COMMAND_DONE || order->outcome == AS_OPERATOR_COMMAND_REFUSED)
        return;
    if (is_waiting)
        fail(world, "%s waits, but its answer is %s", approval->id,
             as_operator_command_outcome_get_word(order->outcome));
    trouble_note(world, approval->approved_at == INT64_MIN ? TROUBLE_APPROVAL_TOO_LATE
                                                           : TROUBLE_APPROVAL_AGAIN);
}

/* Changes */

void check_approval_of_intent(struct world *world, const struct server_target *target,
                              const struct as_intent_state *intent, struct capture *capture)
{
    const struct as_rule *rule = rules_find_rule(world, intent->rule);
    capture->needs_approvals = rule && rule->approval.is_set && !intent->is_ordered;
    if (!intent->approval[0])
        return;
    const struct sim_approval *approval = approvals_look_up(world, intent->approval);
    (void)snprintf(capture->approval, sizeof(capture->approval), "%s", intent->approval);
    if (!approval || intent->is_ordered || approval->target != target ||
        strcmp(approval->rule, intent->rule) != 0 || strcmp(approval->uid, intent->uid) != 0 ||
        approval->last != AS_APPROVAL_ON_USED)
        fail(world, "%s: %d by %s rests on %s, which is for something else", target->id, intent->to,
             intent->rule, intent->approval);
    else if (approval->is_up != (intent->to > intent->from) ||
             (approval->is_up ? intent->to > approval->to : intent->to < approval->to))
        fail(world, "%s: %d to %d, but %s was shown as %d", target->id, intent->from, intent->to,
             intent->approval, approval->to);
}

static const struct capture *find_capture(const struct server_target *target, const char *decision)
{
    for (int i = 0; i < CAPTURES; i++) {
        if (strcmp(target->captures[i].decision_id, decision) == 0)
            return &target->captures[i];
    }
    return NULL;
}

/* What the rule has changed in this direction within the hour, as far as its daemon knows. */
static int32_t sum_free(const struct world *world, const struct server_target *target,
                        const char *rule, bool is_up)
{
    int32_t sum = 0;
    for (size_t i = 0; i < world->free_step_count; i++) {
        const struct sim_free_step *step = &world->free_steps[i];
        if (step->target == target && strcmp(step->rule, rule) == 0 &&
            (step->change > 0) == is_up && world->now - step->at < AS_APPROVAL_SPAN_US)
            sum += is_up ? step->change : -step->change;
    }
    return sum;
}

/* Those that were asked before it was decided: nothing is asked while a change is under way. */
static void oppose(struct world *world, const struct server_target *target, bool is_up)
{
    for (size_t i = 0; i < world->approval_count; i++) {
        struct sim_approval *approval = world->approvals[i];
        if (approval->target == target && approval->is_up != is_up)
            approval->is_opposed = true;
    }
}

void check_approval_of_request(struct world *world, const struct server_target *target,
                               const struct as_scale_request *request)
{
    const struct as_rule *rule = rules_find_rule(world, request->rule);
    const struct capture *capture = find_capture(target, request->decision_id);
    const bool is_up = request->to > request->from;
    const int32_t distance = is_up ? request->to - request->from : request->from - request->to;
    if (!rule || pools_has(world, target))
        return;
    oppose(world, target, is_up);
    if (!rule->approval.is_set || !capture || capture->approval[0])
        return;
    const int32_t before = sum_free(world, target, rule->name, is_up);
    if (before + distance > rule->approval.above)
        fail(world, "%s: %s changes %d after %d without an approval, above %d", target->id,
             rule->name, distance, before, rule->approval.above);
    trouble_note(world, TROUBLE_APPROVAL_FREE);
}

void check_free_step(struct world *world, struct server_target *target,
                     const struct capture *capture, const struct as_action_record *record)
{
    const struct as_rule *rule = rules_find_rule(world, capture->rule);
    if (capture->approval[0] || !capture->needs_approvals || !rule || !rule->approval.is_set)
        return;
    world->free_steps = as_xgrow(world->free_steps, world->free_step_count,
                                 &world->free_step_capacity, sizeof(*world->free_steps));
    struct sim_free_step *step = &world->free_steps[world->free_step_count++];
    *step = (struct sim_free_step){
        .target = target, .change = record->to - record->from, .at = world->now};
    (void)snprintf(step->action, sizeof(step->action), "%s", record->id);
    (void)snprintf(step->rule, sizeof(step->rule), "%s", capture->rule);
}

/* Trouble */

static size_t count_open(const struct world *world)
{
    size_t count = 0;
    for (size_t i = 0; i < world->approval_count; i++)
        count += is_open(world->approvals[i]->last) &&
                 world->approvals[i]->generation == world->daemon.generation;
    return count;
}

/* A step whose intent is still in the store will be learned of anew. */
void check_approvals_crash(struct world *world)
{
    size_t kept = 0;
    for (size_t i = 0; i < world->free_step_count; i++) {
        const struct sim_free_step *step = &world->free_steps[i];
        if (!check_has_stored_intent(world, step->target, step->action))
            world->free_steps[kept++] = *step;
    }
    world->free_step_count = kept;
    if (count_open(world) > 0)
        trouble_note(world, TROUBLE_APPROVAL_CRASHED);
}

void check_approvals_reload(struct world *world)
{
    if (count_open(world) > 0)
        trouble_note(world, TROUBLE_APPROVAL_CHANGED);
}

/* In the log */

/* The rule has been refused for the same incident, and nothing has changed since. */
static void check_not_refused(struct world *world, const struct sim_approval *approval)
{
    for (size_t i = 0; i < world->approval_count; i++) {
        const struct sim_approval *other = world->approvals[i];
        if (other != approval && other->logged.answer == SIM_REFUSED && !other->logged.is_over &&
            !other->logged.is_renewed && other->target == approval->target &&
            other->rule_changes == approval->rule_changes &&
            strcmp(other->rule, approval->rule) == 0 && strcmp(other->uid, approval->uid) == 0 &&
            strcmp(other->incident, approval->incident) == 0 &&
            approval->asked_at - other->refused_at < AS_APPROVAL_SPAN_US)
            fail(world, "%s is asked within an hour after %s", approval->id, other->id);
        if (other != approval && other->target == approval->target &&
            (other->logged.answer == SIM_WAITING ||
             (other->logged.answer == SIM_APPROVED && strcmp(other->rule, approval->rule) == 0)))
            fail(world, "%s is asked while %s waits", approval->id, other->id);
    }
}

struct passage { /* from one of these answers, as bits, to this one */
    unsigned from;
    enum sim_answer to;
};

static const struct passage passages[AS_APPROVAL_EVENT_COUNT] = {
    [AS_APPROVAL_ON_ASKED] = {1U << SIM_UNASKED, SIM_WAITING},
    [AS_APPROVAL_ON_APPROVED] = {1U << SIM_WAITING, SIM_APPROVED},
    [AS_APPROVAL_ON_DENIED] = {1U << SIM_WAITING | 1U << SIM_APPROVED, SIM_REFUSED},
    [AS_APPROVAL_ON_EXPIRED] = {1U << SIM_WAITING | 1U << SIM_APPROVED, SIM_REFUSED},
    [AS_APPROVAL_ON_VOID] = {1U << SIM_WAITING | 1U << SIM_APPROVED | 1U << SIM_USED, SIM_VOID},
    [AS_APPROVAL_ON_USED] = {1U << SIM_APPROVED, SIM_USED},
    [AS_APPROVAL_ON_RETURNED] = {1U << SIM_USED, SIM_APPROVED},
};

static bool has_incident(const struct world *world, const char *incident)
{
    char text[AS_DIGEST_TEXT_SIZE];
    for (int i = 0; i < ALERTS; i++) {
        as_digest_print(&world->alerts[i].digest, text);
        if (world->alerts[i].has_incident && strcmp(text, incident) == 0)
            return true;
    }
    return false;
}

void log_approval(struct world *world, const json_t *record)
{
    const char *id = log_text(record, "id"), *word = log_text(record, "event");
    struct sim_approval *approval = approvals_look_up(world, id);
    enum as_approval_event event = AS_APPROVAL_ON_ASKED;
    while (event < AS_APPROVAL_EVENT_COUNT && strcmp(as_approval_event_get_word(event), word) != 0)
        event++;
    if (!approval || event == AS_APPROVAL_EVENT_COUNT ||
        !(passages[event].from & 1U << approval->logged.answer)) {
        fail(world, "the log: %s is %s after %d", id, word,
             approval ? (int)approval->logged.answer : -1);
        return;
    }
    approval->logged.answer = passages[event].to;
    if (event == AS_APPROVAL_ON_ASKED) {
        check_not_refused(world, approval);
        approval->logged.is_of_end = !has_incident(world, approval->incident);
    }
    if (event == AS_APPROVAL_ON_USED && approval->logged.is_over && !approval->logged.is_of_end)
        fail(world, "%s is used after the end of its incident", id);
    if (event == AS_APPROVAL_ON_USED)
        (void)snprintf(approval->logged.action, sizeof(approval->logged.action), "%s",
                       log_text(record, "action"));
    if (event == AS_APPROVAL_ON_RETURNED &&
        (approval->logged.is_applied ||
         strcmp(approval->logged.action, log_text(record, "action")) != 0))
        fail(world, "%s is returned by an action that used it", id);
}

void log_approved_action(struct world *world, const json_t *record)
{
    const char *id = log_text(record, "approval"), *action = log_text(record, "id");
    if (!*id)
        return;
    struct sim_approval *approval = approvals_look_up(world, id);
    if (!approval || approval->logged.answer == SIM_UNASKED ||
        (strcmp(log_text(record, "outcome"), "applied") == 0 &&
         (approval->logged.answer != SIM_USED || approval->logged.is_applied ||
          strcmp(approval->logged.action, action) != 0))) {
        fail(world, "action %s rests on %s, which it has not used", action, id);
        return;
    }
    approval->logged.is_applied = strcmp(log_text(record, "outcome"), "applied") == 0;
}

/* A request may be for `on_resolved` of an incident that has ended before: when its alert fires
 * again, the rule may ask for the new incident. */
void log_approvals_note_incident(struct world *world, uint64_t fingerprint, bool opens)
{
    for (int i = 0; i < ALERTS; i++) {
        char incident[AS_DIGEST_TEXT_SIZE];
        if (world->alerts[i].fingerprint != fingerprint)
            continue;
        world->alerts[i].has_incident = opens;
        as_digest_print(&world->alerts[i].digest, incident);
        for (size_t j = 0; j < world->approval_count; j++) {
            struct sim_approval *approval = world->approvals[j];
            if (approval->logged.answer != SIM_UNASKED && strcmp(approval->incident, incident) == 0)
                *(opens ? &approval->logged.is_renewed : &approval->logged.is_over) = true;
        }
    }
}

struct comparison {
    struct world *world;
    size_t open;
};

static void compare(void *context, const struct as_approval_view *view)
{
    struct comparison *comparison = context;
    const struct sim_approval *approval = approvals_look_up(comparison->world, view->state.id);
    const enum as_approval_answer answer = view->state.answer;
    if (answer != AS_APPROVAL_WAITING && answer != AS_APPROVAL_APPROVED)
        return;
    comparison->open++;
    if (!approval ||
        approval->logged.answer != (answer == AS_APPROVAL_WAITING ? SIM_WAITING : SIM_APPROVED))
        fail(comparison->world, "%s is %s in the engine, but not in the log", view->state.id,
             as_approval_answer_get_word(answer));
}

/* And not over by a record of the present engine, which is not durable yet. */
static bool is_open_by_log(const struct world *world, const struct sim_approval *approval)
{
    const bool is_over =
        approval->generation == world->daemon.generation && !is_open(approval->last);
    return !is_over &&
           (approval->logged.answer == SIM_WAITING || approval->logged.answer == SIM_APPROVED);
}

void log_approvals_compare(struct world *world)
{
    const struct as_clock *clock = &world->daemon.clock->clock;
    struct comparison comparison = {.world = world};
    size_t open = 0;
    for (size_t i = 0; i < world->approval_count; i++)
        open += is_open_by_log(world, world->approvals[i]);
    as_engine_visit_approvals(as_shell_get_engine(world->daemon.shell), clock->get_mono(clock),
                              clock->get_wall(clock), compare, &comparison);
    if (comparison.open != open)
        fail(world, "%zu requests are open by the log, %zu in the engine", open, comparison.open);
}
