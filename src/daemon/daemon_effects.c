/*
 * Passes the engine's effects to metrics, the API, waiting requests and the log. The shell carries
 * the effects out.
 */
#include "daemon_private.h"

#include <alertscaler/base/log.h>
#include <alertscaler/base/unit.h>

struct sizes { /* as people read them */
    char from[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];
};

static const struct sizes *print_sizes(const char *unit, int32_t from, int32_t to,
                                       struct sizes *sizes)
{
    (void)as_unit_print_size(unit, from, sizes->from);
    (void)as_unit_print_size(unit, to, sizes->to);
    return sizes;
}

static void log_action(const struct as_action_record *action)
{
    const struct sizes *sizes =
        print_sizes(action->unit, action->from, action->to, &(struct sizes){.from = ""});
    const bool applied = action->outcome == AS_REASON_APPLIED;
    if (!action->has_sizes)
        as_log(AS_LOG_WARN, "target not observed", AS_F("target", action->target),
               AS_F("outcome", as_reason_get_word(action->outcome)),
               AS_FI("http_status", action->http_status), AS_F("error", action->message));
    else
        as_log(applied ? AS_LOG_INFO : AS_LOG_WARN, applied ? "scaled" : "not scaled",
               AS_F("target", action->target), AS_F("from", sizes->from), AS_F("to", sizes->to),
               AS_F_IF("rule", action->rule), AS_F("outcome", as_reason_get_word(action->outcome)),
               AS_F_IF("decision", action->decision), AS_F_IF("command", action->command),
               AS_F_IF("error", action->message));
}

static void log_order(const struct as_order_record *record)
{
    const struct as_order *order = record->order;
    const char *target = record->target ? record->target : order->target;
    as_log(AS_LOG_INFO, "command", AS_F("command", as_order_kind_get_word(order->kind)),
           AS_F_IF("target", target           ? target
                             : order->request ? NULL
                                              : "all"),
           AS_F_IF("request", order->request), AS_F("who", order->who),
           AS_F("reason", order->reason),
           AS_F("outcome", as_order_outcome_get_word(record->outcome)),
           AS_F_IF("error", record->outcome == AS_ORDER_DONE ? NULL : record->message));
}

static void log_approval(const struct as_approval_record *record)
{
    const struct as_approval_state *request = record->request;
    const struct sizes *sizes =
        print_sizes(record->unit, request->from, request->to, &(struct sizes){.from = ""});
    as_log(AS_LOG_INFO, "approval", AS_F("event", as_approval_event_get_word(record->event)),
           AS_F("request", request->id), AS_F("target", record->target),
           AS_F("rule", request->rule), AS_F("from", sizes->from), AS_F("to", sizes->to),
           AS_F_IF("who", request->who), AS_F_IF("message", record->message));
}

static void log_decision(const struct as_decision_record *record)
{
    if (!as_log_is_enabled(AS_LOG_DEBUG))
        return;
    const struct as_decision *output = record->output;
    const struct sizes *sizes =
        print_sizes(record->unit, output->replicas, output->desired, &(struct sizes){.from = ""});
    as_log(AS_LOG_DEBUG, "decided", AS_F("target", record->target),
           AS_F("reason", as_reason_get_word(output->reason)), AS_F("replicas", sizes->from),
           AS_F("desired", sizes->to), AS_F_IF("rule", output->rule), AS_F("decision", record->id));
}

static void log_others(const struct as_others_record *record)
{
    const struct as_set_back *last =
        record->set_back_count > 0 ? &record->set_backs[record->set_back_count - 1] : NULL;
    if (last)
        as_log(AS_LOG_WARN, "others set the size back: the target is left alone for an hour",
               AS_F("target", record->target), AS_FI("to", last->to), AS_FI("found", last->found),
               AS_F_IF("by", *last->by ? last->by : NULL));
    else
        as_log(AS_LOG_INFO, "the target is not left alone any more", AS_F("target", record->target),
               AS_F("reason", record->message));
}

void daemon_on_effect(void *context, const struct as_effect *effect)
{
    struct daemon *daemon = context;
    as_metrics_on_effect(daemon->metrics, effect);
    as_api_on_effect(daemon->api, effect, as_system_clock.get_wall(&as_system_clock));
    if (effect->kind == AS_EFFECT_RECORD_NOTIFICATION) {
        as_receiver_on_outcome(daemon->receiver, effect->ticket, effect->notification);
    } else if (effect->kind == AS_EFFECT_RECORD_COMMAND) {
        as_operators_on_outcome(daemon->operators, effect->ticket, effect->order);
        log_order(effect->order);
    } else if (effect->kind == AS_EFFECT_RECORD_ACTION) {
        log_action(effect->action);
    } else if (effect->kind == AS_EFFECT_RECORD_DECISION) {
        log_decision(effect->decision);
    } else if (effect->kind == AS_EFFECT_RECORD_OTHERS) {
        log_others(effect->others);
    } else if (effect->kind == AS_EFFECT_RECORD_APPROVAL) {
        log_approval(effect->approval);
    } else if (effect->kind == AS_EFFECT_ANSWER) {
        as_waiting_end(daemon->waiting, effect->ticket);
    }
}
