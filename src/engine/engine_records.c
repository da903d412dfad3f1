/*
 * Records of actions: see the header.
 */
#include "engine_records.h"

#include <alertscaler/decide/sized.h>

#include "engine_effects.h"

struct as_action_record *record_action(struct as_engine *engine, const struct target *target,
                                       const struct intent *intent, enum as_reason outcome)
{
    struct as_action_record *record = as_arena_alloc(&engine->arena, 1, sizeof(*record));
    const struct origin *origin = &target->origin;
    const bool is_answer = origin->set && !intent->is_ordered; /* to an alert */
    const char *decision = as_arena_strdup(&engine->arena, intent->decision_id);
    *record = (struct as_action_record){
        .id = as_arena_strdup(&engine->arena, intent->action_id),
        .decision = intent->is_ordered ? NULL : decision,
        .command = intent->is_ordered ? decision : NULL,
        .target = target->ref->id,
        .target_name = target->config ? target->config->name : "",
        .target_kind = target->ref->kind,
        .unit = as_sized_get_unit(target->ref),
        .rule = intent->is_ordered ? NULL : as_arena_strdup(&engine->arena, intent->rule),
        .has_sizes = true,
        .from = intent->from,
        .to = intent->to,
        .outcome = outcome,
        .message = "",
        .method = "",
        .path = "",
        .version = as_arena_strdup(&engine->arena, intent->version),
        .attempts = 1,
        .duration_us = engine->mono.us - intent->sent.us,
        .since_notification_us = is_answer ? engine->mono.us - origin->notified.us : -1,
        .since_alert_us = is_answer ? engine->wall.us - origin->alert.us : -1,
        .approval = intent->approval[0] ? as_arena_strdup(&engine->arena, intent->approval) : NULL,
    };
    if (is_answer && record->since_alert_us < 0)
        record->since_alert_us = 0;
    effect_add(engine, AS_EFFECT_RECORD_ACTION)->action = record;
    return record;
}
