/*
 * The trace of the engine: names of events, phases and effects, and the target of each.
 *
 * A line names a target, a rule or a ticket, but has no label value. It changes nothing.
 */
#include <inttypes.h>
#include <stdio.h>

#include <alertscaler/model/reason.h>

#include "engine_concerns.h"

#define DETAIL_SIZE 64

static const char *const event_words[] = {
    [AS_EVENT_START] = "start",         [AS_EVENT_NOTIFICATION] = "notification",
    [AS_EVENT_COMMITTED] = "committed", [AS_EVENT_OBSERVED] = "observed",
    [AS_EVENT_QUERIED] = "queried",     [AS_EVENT_LISTED] = "listed",
    [AS_EVENT_OBJECTS] = "objects",     [AS_EVENT_SCALED] = "scaled",
    [AS_EVENT_DEADLINE] = "deadline",   [AS_EVENT_RULES] = "rules",
    [AS_EVENT_ORDER] = "command",       [AS_EVENT_HALT] = "kill_switch",
    [AS_EVENT_STOP] = "stop",
};

static const char *const phase_words[] = {
    [PHASE_IDLE] = "idle",     [PHASE_OBSERVING] = "observing", [PHASE_SAMPLING] = "sampling",
    [PHASE_INTENT] = "intent", [PHASE_SCALING] = "scaling",     [PHASE_OUTCOME] = "outcome",
};

static const char *const effect_words[] = {
    [AS_EFFECT_PUT_INCIDENT] = "put_incident",
    [AS_EFFECT_DELETE_INCIDENT] = "delete_incident",
    [AS_EFFECT_PUT_TARGET] = "put_target",
    [AS_EFFECT_DELETE_TARGET] = "delete_target",
    [AS_EFFECT_PUT_INTENT] = "put_intent",
    [AS_EFFECT_DELETE_INTENT] = "delete_intent",
    [AS_EFFECT_PUT_PAUSE] = "put_pause",
    [AS_EFFECT_DELETE_PAUSE] = "delete_pause",
    [AS_EFFECT_RECORD_NOTIFICATION] = "record_notification",
    [AS_EFFECT_RECORD_DECISION] = "record_decision",
    [AS_EFFECT_RECORD_ACTION] = "record_action",
    [AS_EFFECT_RECORD_INCIDENT] = "record_incident",
    [AS_EFFECT_RECORD_EVALUATION] = "record_evaluation",
    [AS_EFFECT_RECORD_OTHERS] = "record_conflicting_writer",
    [AS_EFFECT_RECORD_COMMAND] = "record_command",
    [AS_EFFECT_RECORD_APPROVAL] = "record_approval",
    [AS_EFFECT_COMMIT] = "commit",
    [AS_EFFECT_ANSWER] = "answer",
    [AS_EFFECT_OBSERVE] = "observe",
    [AS_EFFECT_QUERY] = "query",
    [AS_EFFECT_LIST_ALERTS] = "list_alerts",
    [AS_EFFECT_LIST_OBJECTS] = "list_objects",
    [AS_EFFECT_SCALE] = "scale",
    [AS_EFFECT_WARN] = "warn",
};

static void trace_write(const struct as_engine *engine, const struct as_trace_line *line)
{
    engine->config.trace(engine->config.trace_context, line);
}

/* The target that waits for the ticket; NULL: none. */
static const char *trace_find_target(struct as_engine *engine, uint64_t call_id)
{
    struct target key = {.call_id = call_id};
    const struct target *target = RB_FIND(call_id_tree, &engine->call_ids, &key);
    return target ? target->ref->id : NULL;
}

void trace_event(struct as_engine *engine, const struct as_event *event)
{
    char detail[DETAIL_SIZE] = "";
    struct as_trace_line line = {.kind = "event",
                                 .name = event_words[event->kind],
                                 .detail = detail,
                                 .call_id = event->call_id};
    if (!engine->config.trace)
        return;
    if (event->kind == AS_EVENT_OBSERVED || event->kind == AS_EVENT_SCALED)
        line.target = trace_find_target(engine, event->call_id);
    if (event->kind == AS_EVENT_NOTIFICATION)
        (void)snprintf(detail, sizeof(detail), "%zu alerts", event->notification->alert_count);
    else if (event->kind == AS_EVENT_OBSERVED)
        (void)snprintf(detail, sizeof(detail), "%s, %" PRIi32,
                       as_reason_get_word(event->observation->outcome),
                       event->observation->replicas);
    else if (event->kind == AS_EVENT_SCALED)
        line.detail = as_reason_get_word(event->result->outcome);
    else if (event->kind == AS_EVENT_ORDER)
        line.detail = as_operator_command_kind_get_word(event->order->kind);
    trace_write(engine, &line);
}

void trace_phase(struct as_engine *engine, const struct target *target, enum phase next)
{
    if (engine->config.trace && target->phase != next)
        trace_write(engine, &(struct as_trace_line){.kind = "state",
                                                    .name = phase_words[next],
                                                    .target = target->ref->id,
                                                    .detail = phase_words[target->phase]});
}

/* Adds the target and the detail of an effect to its line. */
static void trace_describe(const struct as_effect *effect, char detail[DETAIL_SIZE],
                           struct as_trace_line *line)
{
    switch (effect->kind) {
    case AS_EFFECT_PUT_TARGET: line->target = effect->target->id; return;
    case AS_EFFECT_DELETE_TARGET:
    case AS_EFFECT_DELETE_INTENT: line->target = effect->stored_as; return;
    case AS_EFFECT_PUT_INTENT:
        line->target = effect->intent->ref->id;
        (void)snprintf(detail, DETAIL_SIZE, "%" PRIi32 " to %" PRIi32, effect->intent->from,
                       effect->intent->to);
        return;
    case AS_EFFECT_RECORD_DECISION:
        line->target = effect->decision->target;
        line->detail = as_reason_get_word(effect->decision->output->reason);
        return;
    case AS_EFFECT_RECORD_ACTION:
        line->target = effect->action->target;
        line->detail = as_reason_get_word(effect->action->outcome);
        return;
    case AS_EFFECT_OBSERVE:
    case AS_EFFECT_WARN: line->target = effect->call.ref->id; return;
    case AS_EFFECT_SCALE:
        line->target = effect->call.ref->id;
        (void)snprintf(detail, DETAIL_SIZE, "%" PRIi32 " to %" PRIi32, effect->call.request->from,
                       effect->call.request->to);
        return;
    case AS_EFFECT_RECORD_COMMAND:
        line->target = effect->order->target;
        line->detail = as_operator_command_kind_get_word(effect->order->order->kind);
        return;
    case AS_EFFECT_PUT_INCIDENT:
    case AS_EFFECT_DELETE_INCIDENT:
    case AS_EFFECT_PUT_PAUSE:
    case AS_EFFECT_DELETE_PAUSE:
    case AS_EFFECT_RECORD_NOTIFICATION:
    case AS_EFFECT_RECORD_INCIDENT:
    case AS_EFFECT_RECORD_EVALUATION:
    case AS_EFFECT_RECORD_OTHERS:
    case AS_EFFECT_RECORD_APPROVAL:
    case AS_EFFECT_COMMIT:
    case AS_EFFECT_ANSWER:
    case AS_EFFECT_QUERY:
    case AS_EFFECT_LIST_ALERTS:
    case AS_EFFECT_LIST_OBJECTS: return;
    }
}

void trace_effects(struct as_engine *engine)
{
    for (size_t i = 0; engine->config.trace && i < engine->effect_count; i++) {
        const struct as_effect *effect = &engine->effects[i];
        char detail[DETAIL_SIZE] = "";
        struct as_trace_line line = {.kind = "effect",
                                     .name = effect_words[effect->kind],
                                     .detail = detail,
                                     .call_id = effect->call_id};
        trace_describe(effect, detail, &line);
        trace_write(engine, &line);
    }
}
