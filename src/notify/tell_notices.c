/*
 * What is told, and when. A state begins and ends with a decision, in the decision's commit. If its
 * cause is gone and nothing is decided any more (the alerts ended, the rules changed), a record of
 * its own says that it is over.
 */
#include "tell_private.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#define CHECK_EVERY_US AS_US_PER_MIN /* whether states hold that end with their time */

static bool asks_for(const struct destination *destination, enum as_notice_kind kind)
{
    return destination->settings && (destination->settings->on & 1U << kind);
}

static void tell_all(struct tell *tell, struct as_storage_batch *batch,
                     const struct as_notice *notice)
{
    for (size_t i = 0; i < tell->destination_count; i++) {
        if (asks_for(tell->destinations[i], notice->kind))
            queue_add(tell, tell->destinations[i], batch, notice);
    }
}

/* An order is its operator's. */
static const char *find_sender(const struct tell *tell, const char *target, const char *command)
{
    return command || tell->destination_count == 0
               ? NULL
               : tell->callbacks.find_sender(tell->callbacks.context, target);
}

static void tell_action(struct tell *tell, struct as_storage_batch *batch,
                        const struct as_action_record *record)
{
    /* The target of a conflict is looked at again at once, and the notice is about the next action.
     * Without pods there is nothing to do. */
    if (record->outcome == AS_REASON_CONFLICT || record->outcome == AS_REASON_SUPERSEDED ||
        record->outcome == AS_REASON_NO_PODS)
        return;
    tell_all(tell, batch,
             &(struct as_notice){
                 .kind = record->outcome == AS_REASON_APPLIED ? AS_NOTICE_SCALED : AS_NOTICE_FAILED,
                 .phase = AS_NOTICE_EVENT,
                 .target = record->target,
                 .target_name = record->target_name,
                 .rule = record->rule,
                 .reason = as_reason_get_word(record->outcome),
                 .decision = record->decision,
                 .command = record->command,
                 .credential = find_sender(tell, record->target, record->command),
                 .message = record->message,
                 .has_from = record->has_sizes && record->from >= 0,
                 .has_to = record->has_sizes,
                 .from = record->from,
                 .to = record->to,
                 .unit = as_str_is_empty(record->unit) ? NULL : record->unit,
                 .at = tell->clock->get_wall(tell->clock),
             });
}

/* States */

/* The key of a state ends with its target's id. */
static struct state *state_new(struct tell *tell, const struct as_notice *notice, const char *key)
{
    const size_t size = strlen(key);
    struct state *state = as_xcalloc(1, sizeof(*state) + size + 1);
    memcpy(state->key, key, size);
    state->kind = notice->kind;
    state->target = state->key + size - strlen(notice->target);
    if (notice->kind == AS_NOTICE_INEFFECTIVE)
        state->rule = as_xstrdup(notice->rule);
    TAILQ_INSERT_TAIL(&tell->states, state, in_order);
    HASH_ADD(hh, tell->by_key, key, size, state);
    return state;
}

/* What differs between states of one target and one kind; NULL: there is one state. */
static const char *get_part(const struct as_notice *notice)
{
    return notice->kind == AS_NOTICE_NEEDS_APPROVAL ? notice->approval
           : notice->kind == AS_NOTICE_INEFFECTIVE  ? notice->rule
                                                    : NULL;
}

static char *make_key(const struct as_notice *notice)
{
    const char *part = get_part(notice);
    return as_xasprintf(TELL_STATE_PREFIX "%s/%s%s%s", as_notice_kind_get_row(notice->kind)->word,
                        part ? part : "", part ? "/" : "", notice->target);
}

static struct state *find_state(const struct tell *tell, const char *key)
{
    struct state *state;
    HASH_FIND(hh, tell->by_key, key, strlen(key), state);
    return state;
}

void states_free(struct noted *noted)
{
    struct state *state = (struct state *)noted;
    free(state->noted.text);
    free(state->rule);
    free(state);
}

/* This state ends without a record. */
static void plan_check(struct tell *tell)
{
    tell->check_due.us = as_time_add(tell_now(tell).us, CHECK_EVERY_US);
}

static void forget_state(struct tell *tell, struct state *state)
{
    assert(tell->by_key); /* it is in there */
    HASH_DEL(tell->by_key, state);
    TAILQ_REMOVE(&tell->states, state, in_order);
    if (state->noted.is_durable)
        states_free(&state->noted);
    else
        state->noted.is_gone = true; /* tell_on_hashed frees it */
}

void states_deinit(struct tell *tell)
{
    struct state *state, *next;
    TAILQ_FOREACH_SAFE (state, &tell->states, in_order, next) {
        HASH_DEL(tell->by_key, state);
        states_free(&state->noted);
    }
}

bool states_restore(struct tell *tell, uint64_t number, const struct as_notice *notice,
                    const char *key, size_t key_size, const char *text, size_t size)
{
    AS_CLEANUP(as_free_p) char *own = make_key(notice);
    if (!as_notice_kind_get_row(notice->kind)->is_state || notice->phase != AS_NOTICE_BEGIN ||
        key_size != strlen(own) || memcmp(key, own, key_size) != 0)
        return false;
    noted_restore(tell, &state_new(tell, notice, own)->noted, number, text, size);
    return true;
}

static void begin_state(struct tell *tell, struct as_storage_batch *batch, const char *key,
                        const struct as_notice *notice)
{
    struct state *state = state_new(tell, notice, key);
    noted_write(tell, &state->noted, batch, key, notice);
    tell_all(tell, batch, notice);
}

/* The alert that ends has the labels with which it began. The rest is that of `news`. */
static void end_state(struct tell *tell, struct as_storage_batch *batch, struct state *state,
                      const struct as_notice *news)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_notice notice;
    if (as_notice_decode(state->noted.text, state->noted.size, &arena, &notice, NULL) != 0)
        abort(); /* we wrote it, or have read it already */
    notice.phase = AS_NOTICE_END;
    notice.ended = (as_maybe_time){true, tell->clock->get_wall(tell->clock)};
    notice.hash = NULL;
    notice.decision = news->decision ? news->decision : notice.decision;
    notice.message = news->message ? news->message : notice.message;
    notice.has_from = news->has_from;
    notice.from = news->from;
    tell_all(tell, batch, &notice);
    as_storage_batch_delete(batch, AS_STORE_META, state->key, strlen(state->key));
    as_arena_deinit(&arena);
    forget_state(tell, state);
}

static void tell_decision(struct tell *tell, const struct as_engine *engine,
                          struct as_storage_batch *batch, const struct as_decision_record *record)
{
    const struct as_decision *output = record->output;
    const bool holds =
        output->reason == AS_REASON_AT_MAX && as_engine_count_open(engine, record->target) > 0;
    struct as_notice notice = {
        .kind = AS_NOTICE_AT_MAX,
        .phase = AS_NOTICE_BEGIN,
        .target = record->target,
        .target_name = record->target_name,
        .rule = output->rule,
        .reason = as_reason_get_word(output->reason),
        .decision = record->id,
        .has_from = true,
        .from = output->replicas,
        .unit = as_str_is_empty(record->unit) ? NULL : record->unit,
        .at = tell->clock->get_wall(tell->clock),
    };
    AS_CLEANUP(as_free_p) char *key = make_key(&notice);
    struct state *state = find_state(tell, key);
    if (holds && !state) {
        notice.credential = find_sender(tell, record->target, NULL);
        begin_state(tell, batch, key, &notice);
    } else if (!holds && state) {
        end_state(tell, batch, state, &notice);
    }
}

/* It ends with the hold: see still_holds. If an earlier end is not told yet, the state goes on. */
static void tell_follow(struct tell *tell, struct as_storage_batch *batch,
                        const struct as_follow_record *record)
{
    char until[AS_RFC3339_SIZE], message[128];
    if (!record->is_held)
        return;
    as_wall_time_print_short(record->until, until);
    (void)snprintf(message, sizeof(message),
                   "the last %" PRIu32 " actions did not help: held until %s, or until resume",
                   record->in_vain, until);
    const struct as_notice notice = {
        .kind = AS_NOTICE_INEFFECTIVE,
        .phase = AS_NOTICE_BEGIN,
        .target = record->target,
        .target_name = record->target_name,
        .rule = record->rule,
        .reason = as_reason_get_word(AS_REASON_INEFFECTIVE),
        .decision = record->decision,
        .credential = find_sender(tell, record->target, NULL),
        .message = message,
        .has_from = true,
        .has_to = true,
        .from = record->from,
        .to = record->to,
        .at = tell->clock->get_wall(tell->clock),
    };
    AS_CLEANUP(as_free_p) char *key = make_key(&notice);
    if (!find_state(tell, key)) {
        begin_state(tell, batch, key, &notice);
        plan_check(tell);
    }
}

/* A contention begins and ends with records of its own. */
static void tell_others(struct tell *tell, struct as_storage_batch *batch,
                        const struct as_others_record *record)
{
    const struct as_set_back *last =
        record->set_back_count > 0 ? &record->set_backs[record->set_back_count - 1] : NULL;
    const struct as_notice notice = {
        .kind = AS_NOTICE_CONTENDED,
        .phase = AS_NOTICE_BEGIN,
        .target = record->target,
        .target_name = record->target_name,
        .reason = as_reason_get_word(AS_REASON_CONTENDED),
        .credential = find_sender(tell, record->target, NULL),
        .message = last && *last->by ? last->by : NULL,
        .has_from = last != NULL,
        .from = last ? last->found : 0,
        .at = tell->clock->get_wall(tell->clock),
    };
    AS_CLEANUP(as_free_p) char *key = make_key(&notice);
    struct state *state = find_state(tell, key);
    if (record->event == AS_OTHERS_CONTENDED && !state)
        begin_state(tell, batch, key, &notice);
    else if (record->event == AS_OTHERS_OVER && state)
        end_state(tell, batch, state, &notice);
}

/* "approved by ada: the sale" */
static char *describe_end(const struct as_approval_record *record)
{
    const char *who = record->request->who;
    return as_xasprintf("%s%s%s%s%s", as_approval_event_get_word(record->event), *who ? " by " : "",
                        who, *record->message ? ": " : "", record->message);
}

/* The request waits until any record but `asked` says what has become of it. One that comes back
 * does not wait. */
static void tell_approval(struct tell *tell, struct as_storage_batch *batch,
                          const struct as_approval_record *record)
{
    const struct as_approval_state *request = record->request;
    const bool is_asked = record->event == AS_APPROVAL_ON_ASKED;
    AS_CLEANUP(as_free_p) char *message = is_asked ? NULL : describe_end(record);
    const struct as_notice notice = {
        .kind = AS_NOTICE_NEEDS_APPROVAL,
        .phase = AS_NOTICE_BEGIN,
        .target = record->target,
        .target_name = record->target_name,
        .rule = request->rule,
        .reason = as_reason_get_word(AS_REASON_NEEDS_APPROVAL),
        .message = message,
        .decision = request->decision,
        .credential = find_sender(tell, record->target, NULL),
        .approval = request->id,
        .has_from = true,
        .has_to = true,
        .from = request->from,
        .to = request->to,
        .unit = as_str_is_empty(record->unit) ? NULL : record->unit,
        .at = tell->clock->get_wall(tell->clock),
    };
    AS_CLEANUP(as_free_p) char *key = make_key(&notice);
    struct state *state = find_state(tell, key);
    if (is_asked && !state)
        begin_state(tell, batch, key, &notice);
    else if (!is_asked && state)
        end_state(tell, batch, state, &notice);
}

void tell_on_effect(struct tell *tell, const struct as_engine *engine,
                    const struct as_effect *effect, struct as_storage_batch *batch)
{
    if (effect->kind == AS_EFFECT_RECORD_ACTION)
        tell_action(tell, batch, effect->action);
    else if (effect->kind == AS_EFFECT_RECORD_FOLLOW)
        tell_follow(tell, batch, effect->follow);
    else if (effect->kind == AS_EFFECT_RECORD_DECISION)
        tell_decision(tell, engine, batch, effect->decision);
    else if (effect->kind == AS_EFFECT_RECORD_OTHERS)
        tell_others(tell, batch, effect->others);
    else if (effect->kind == AS_EFFECT_RECORD_APPROVAL)
        tell_approval(tell, batch, effect->approval);
}

static bool still_holds(const struct as_engine *engine, const struct state *state)
{
    if (state->kind == AS_NOTICE_CONTENDED)
        return as_engine_is_contended(engine, state->target);
    if (state->kind == AS_NOTICE_INEFFECTIVE)
        return as_engine_is_ineffective(engine, state->target, state->rule);
    if (state->kind == AS_NOTICE_NEEDS_APPROVAL) /* it ends by records of its own */
        return true;
    return as_engine_count_open(engine, state->target) > 0;
}

void tell_check_states(struct tell *tell, const struct as_engine *engine)
{
    struct state *state, *next;
    tell->check_due = AS_MONO_NEVER;
    TAILQ_FOREACH_SAFE (state, &tell->states, in_order, next) {
        if (still_holds(engine, state)) {
            if (state->kind == AS_NOTICE_INEFFECTIVE)
                plan_check(tell);
            continue;
        }
        struct as_storage_batch *batch = as_storage_batch_new(0);
        tell->callbacks.record(tell->callbacks.context, batch,
                               &(struct as_notify_record){
                                   .state = state->kind,
                                   .target = state->target,
                                   .target_name = as_engine_find_name(engine, state->target),
                                   .rule = state->rule,
                               });
        end_state(tell, batch, state, &(struct as_notice){.kind = state->kind});
        as_storage_submit(tell->storage, batch);
    }
}

bool tell_must_check_states(const struct tell *tell)
{
    return tell->check_due.us <= tell_now(tell).us;
}
