/*
 * The same facts come as effects of the engine, and as records of the action log.
 */
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/tools/record_text.h>

#include "history_private.h"

static int32_t to_seconds(int64_t us)
{
    const int64_t seconds = us / AS_US_PER_S;
    return seconds < 0 ? 0 : seconds > INT32_MAX ? INT32_MAX : (int32_t)seconds;
}

static void add_size(struct as_history *history, const char *target, int64_t at, int32_t size)
{
    history_add(history, history_get_line(history, target),
                &(struct history_event){.at = at, .kind = HISTORY_SIZE, .value = size});
}

static void add_lock(struct as_history *history, const char *target, int64_t at,
                     enum history_kind kind, int32_t seconds)
{
    history_add(history, history_get_line(history, target),
                &(struct history_event){.at = at, .kind = (uint8_t)kind, .value = seconds});
}

static void add_action(struct as_history *history, const struct as_history_action *action)
{
    const struct history_line *line = history_get_line(history, action->target);
    const bool is_up = action->to > action->from;
    const int32_t up_s = is_up ? line->up_s : line->up_after_down_s;
    const int32_t down_s = is_up ? line->down_s : line->down_after_down_s;
    const struct history_event event = {
        .at = action->at.us,
        .kind = HISTORY_ACTION,
        .value = action->to,
        .other = action->from,
        .name = history_get_name(history, action->rule),
        .reason = (uint8_t)action->outcome,
    };
    history_add(history, history_get_line(history, action->target), &event);
    if (action->outcome != AS_REASON_APPLIED)
        return;
    add_size(history, action->target, action->at.us, action->to);
    if (up_s > 0)
        add_lock(history, action->target, action->at.us, HISTORY_UP_LOCK, up_s);
    if (down_s > 0)
        add_lock(history, action->target, action->at.us, HISTORY_DOWN_LOCK, down_s);
}

static void add_alert(struct as_history *history, const char *target, const char *alert, int64_t at,
                      bool begins)
{
    const uint16_t name = history_get_name(history, alert);
    history_add(history, history_get_line(history, target),
                &(struct history_event){
                    .at = at, .kind = HISTORY_ALERT, .value = begins ? 1 : -1, .name = name});
}

static void unlock(struct as_history *history, const char *target, int64_t at)
{
    add_lock(history, target, at, HISTORY_UP_LOCK, 0);
    add_lock(history, target, at, HISTORY_DOWN_LOCK, 0);
}

/* --- effects --- */

static void take_decision(struct as_history *history, const struct as_decision_record *record)
{
    const struct as_cooldown *cooldown = &record->input->config.cooldown;
    struct history_line *line = history_get_line(history, record->target);
    line->up_s = to_seconds(cooldown->up_us);
    line->down_s = to_seconds(cooldown->down_us);
    line->up_after_down_s = to_seconds(cooldown->up_after_down_us);
    line->down_after_down_s = to_seconds(as_cooldown_get_down_after_down(cooldown));
    add_size(history, record->target, record->input->now.us, record->output->replicas);
}

static bool begins(const char *event)
{
    return strcmp(event, as_incident_event_get_word(AS_INCIDENT_OPENED)) == 0;
}

static bool ends(const char *event)
{
    return strcmp(event, as_incident_event_get_word(AS_INCIDENT_CLOSED)) == 0 ||
           strcmp(event, as_incident_event_get_word(AS_INCIDENT_EXPIRED)) == 0 ||
           strcmp(event, as_incident_event_get_word(AS_INCIDENT_SUPERSEDED)) == 0;
}

static void take_incident(struct as_history *history, const struct as_incident_record *record,
                          as_wall_time now)
{
    const char *alert = as_labels_get(record->labels, "alertname");
    const char *event = as_incident_event_get_word(record->event);
    if (!begins(event) && !ends(event))
        return;
    for (size_t i = 0; i < record->target_count; i++)
        add_alert(history, record->targets[i].target, alert, now.us, begins(event));
}

void as_history_on_effect(struct as_history *history, const struct as_effect *effect,
                          as_wall_time now)
{
    if (effect->kind == AS_EFFECT_RECORD_DECISION) {
        take_decision(history, effect->decision);
    } else if (effect->kind == AS_EFFECT_RECORD_INCIDENT) {
        take_incident(history, effect->incident_record, now);
    } else if (effect->kind == AS_EFFECT_RECORD_ACTION && effect->action->has_sizes) {
        const struct as_action_record *record = effect->action;
        add_action(history, &(struct as_history_action){record->target, record->rule, now,
                                                        record->from, record->to, record->outcome});
    } else if (effect->kind == AS_EFFECT_RECORD_COMMAND && effect->order->target &&
               effect->order->order->kind == AS_ORDER_UNLOCK &&
               effect->order->outcome == AS_ORDER_DONE) {
        unlock(history, effect->order->target, now.us);
    }
}

/* --- records --- */

static int32_t get_seconds(const json_t *cooldown, const char *key)
{
    const double seconds = json_number_value(json_object_get(cooldown, key));
    return seconds > 0 && seconds < INT32_MAX ? (int32_t)seconds : 0;
}

static void take_decision_record(struct as_history *history, const json_t *record, as_wall_time at)
{
    const char *target = as_record_get_text(record, "target");
    const json_t *input = json_object_get(record, "input");
    const json_t *cooldown = json_object_get(json_object_get(input, "target"), "cooldown");
    int32_t size;
    if (!*target || !as_record_get_size(json_object_get(record, "output"), "replicas", &size))
        return;
    struct history_line *line = history_get_line(history, target);
    line->up_s = get_seconds(cooldown, "up");
    line->down_s = get_seconds(cooldown, "down");
    line->up_after_down_s = get_seconds(cooldown, "up_after_down");
    line->down_after_down_s = json_object_get(cooldown, "down_after_down")
                                  ? get_seconds(cooldown, "down_after_down")
                                  : line->down_s;
    add_size(history, target, at.us, size);
}

static void take_action_record(struct as_history *history, const json_t *record, as_wall_time at)
{
    struct as_history_action action = {
        .target = as_record_get_text(record, "target"),
        .rule = as_record_get_text(record, "rule"),
        .at = at,
    };
    if (*action.target && as_record_get_size(record, "to", &action.to) &&
        as_reason_find(as_record_get_text(record, "outcome"), &action.outcome)) {
        if (!as_record_get_size(record, "from", &action.from))
            action.from = AS_TIMELINE_UNKNOWN;
        add_action(history, &action);
    }
}

static void take_incident_record(struct as_history *history, const json_t *record, as_wall_time at)
{
    const char *event = as_record_get_text(record, "event");
    const char *alert = as_record_get_text(json_object_get(record, "labels"), "alertname");
    const json_t *target;
    size_t i;
    if (!begins(event) && !ends(event))
        return;
    json_array_foreach(json_object_get(record, "targets"), i, target)
    {
        const char *id = as_record_get_text(target, "target");
        if (*id)
            add_alert(history, id, alert, at.us, begins(event));
    }
}

static void take_command_record(struct as_history *history, const json_t *record, as_wall_time at)
{
    const char *target = as_record_get_text(record, "target");
    if (*target &&
        strcmp(as_record_get_text(record, "command"), as_order_kind_get_word(AS_ORDER_UNLOCK)) ==
            0 &&
        strcmp(as_record_get_text(record, "outcome"), as_order_outcome_get_word(AS_ORDER_DONE)) ==
            0)
        unlock(history, target, at.us);
}

void as_history_take_record(struct as_history *history, const json_t *record, as_wall_time at,
                            as_wall_time previous)
{
    static const struct {
        enum as_record_kind kind;
        void (*take)(struct as_history *history, const json_t *record, as_wall_time at);
    } rows[] = {
        {AS_RECORD_DECISION, take_decision_record},
        {AS_RECORD_ACTION, take_action_record},
        {AS_RECORD_INCIDENT, take_incident_record},
        {AS_RECORD_COMMAND, take_command_record},
    };
    const char *kind = as_record_get_text(record, "kind");
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (strcmp(kind, as_record_kind_get_word(rows[i].kind)) == 0)
            rows[i].take(history, record, at);
    }
    if (strcmp(kind, as_record_kind_get_word(AS_RECORD_START)) == 0 ||
        strcmp(kind, as_record_kind_get_word(AS_RECORD_STOP)) == 0)
        as_history_interrupt(history, previous);
}
