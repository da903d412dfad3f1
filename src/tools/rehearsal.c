/*
 * The engine in virtual time. Where the shell uses ports, the rehearsal answers at once from a
 * simulated world.
 *
 * The engine's requests are answered in order, each in a step of its own, until none is left; only
 * then time advances. Only the world grows: writes to the store are dropped.
 */
#include <alertscaler/tools/rehearsal.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "rehearsal_pool.h"
#include "rehearsal_world.h"

#define MONO_START (1000 * AS_US_PER_S) /* arbitrary; moments may be before it */

enum call { CALL_COMMIT, CALL_OBSERVE, CALL_QUERY, CALL_SCALE, CALL_APPROVE };

struct pending { /* an effect to be answered */
    enum call call;
    uint64_t ticket;
    struct world_target *target;       /* NULL: not found */
    struct as_observe_request observe; /* without its pool: */
    struct world_pool *pool;           /* as seen when it was asked for; NULL: no pool */
    int32_t size;
    const struct world_query *query; /* NULL: not found */
    enum as_query_form form;
    char request[AS_ULID_SIZE]; /* that a person approves */
};

struct as_rehearsal {
    struct as_rehearsal_callbacks callbacks;
    struct as_engine *engine;
    struct world world;
    as_wall_time start, now;
    bool approves, started;
    struct pending *pending; /* from `head` on; the memory is reused */
    size_t head, count, capacity;
    uint64_t requests;
};

struct as_rehearsal *as_rehearsal_new(const struct as_rehearsal_config *config)
{
    struct as_rehearsal *rehearsal = as_xcalloc(1, sizeof(*rehearsal));
    struct as_engine_config engine = config->engine;
    engine.resync_us = 0;
    rehearsal->callbacks = config->callbacks;
    rehearsal->approves = config->approves;
    rehearsal->engine = as_engine_new(&engine, config->ruleset);
    rehearsal->start = rehearsal->now = config->start;
    world_init(&rehearsal->world, config->ruleset, config->start);
    return rehearsal;
}

struct as_rehearsal *as_rehearsal_free(struct as_rehearsal *rehearsal)
{
    if (!rehearsal)
        return NULL;
    as_engine_free(rehearsal->engine);
    for (size_t i = rehearsal->head; i < rehearsal->count; i++)
        world_pool_free(rehearsal->pending[i].pool);
    world_deinit(&rehearsal->world);
    free(rehearsal->pending);
    free(rehearsal);
    return NULL;
}

void as_rehearsal_set_size(struct as_rehearsal *rehearsal, const char *target, int32_t replicas)
{
    world_get_target(&rehearsal->world, target)->size = replicas < 0 ? -1 : replicas;
}

int32_t as_rehearsal_get_size(const struct as_rehearsal *rehearsal, const char *target)
{
    return world_get_size(&rehearsal->world, target);
}

void as_rehearsal_set_pods(struct as_rehearsal *rehearsal, const char *target,
                           const struct as_pod_seen *pods, size_t count)
{
    world_set_pods(world_get_target(&rehearsal->world, target), pods, count);
}

void as_rehearsal_set_nodes(struct as_rehearsal *rehearsal, const char *target,
                            const struct as_nodes_seen *nodes)
{
    world_set_nodes(world_get_target(&rehearsal->world, target), nodes);
}

void as_rehearsal_set_cluster(struct as_rehearsal *rehearsal,
                              const struct as_rule_test_cluster *cluster)
{
    rehearsal->world.cluster = cluster;
}

void as_rehearsal_set_query(struct as_rehearsal *rehearsal, const char *text,
                            const struct as_query_result *result)
{
    world_set_query(&rehearsal->world, text, result);
}

static void ask(struct as_rehearsal *rehearsal, struct pending pending)
{
    rehearsal->pending = as_xgrow(rehearsal->pending, rehearsal->count, &rehearsal->capacity,
                                  sizeof(*rehearsal->pending));
    rehearsal->pending[rehearsal->count++] = pending;
}

static void ask_target(struct as_rehearsal *rehearsal, enum call call,
                       const struct as_effect *effect)
{
    const struct as_pool_request *pool = effect->call.observe ? effect->call.observe->pool : NULL;
    ask(rehearsal,
        (struct pending){
            .call = call,
            .ticket = effect->ticket,
            .pool = pool ? world_pool_new(&rehearsal->world, pool, rehearsal->now) : NULL,
            .target = world_find_target(&rehearsal->world, effect->call.ref->id),
            .observe =
                effect->call.observe ? *effect->call.observe : (struct as_observe_request){0},
            .size = effect->call.request ? effect->call.request->to : 0,
        });
}

static void ask_query(struct as_rehearsal *rehearsal, const struct as_effect *effect)
{
    const struct as_rehearsal_callbacks *callbacks = &rehearsal->callbacks;
    const struct world_query *query = world_find_query(&rehearsal->world, effect->query->text);
    if (!query && callbacks->no_data)
        callbacks->no_data(callbacks->context, rehearsal->now, effect->query);
    ask(rehearsal, (struct pending){
                       .call = CALL_QUERY,
                       .ticket = effect->ticket,
                       .query = query,
                       .form = effect->query->form,
                   });
}

static void tell(const struct as_rehearsal *rehearsal, const struct as_effect *effect)
{
    const struct as_rehearsal_callbacks *to = &rehearsal->callbacks;
    const as_wall_time now = rehearsal->now;
    if (effect->kind == AS_EFFECT_RECORD_NOTIFICATION && to->notification)
        to->notification(to->context, now, effect->notification);
    else if (effect->kind == AS_EFFECT_RECORD_DECISION && to->decision)
        to->decision(to->context, now, effect->decision);
    else if (effect->kind == AS_EFFECT_RECORD_ACTION && to->action)
        to->action(to->context, now, effect->action);
    else if (effect->kind == AS_EFFECT_RECORD_INCIDENT && to->incident)
        to->incident(to->context, now, effect->incident_record);
    else if (effect->kind == AS_EFFECT_RECORD_APPROVAL && to->approval)
        to->approval(to->context, now, effect->approval);
}

static void ask_person(struct as_rehearsal *rehearsal, const struct as_approval_record *record)
{
    struct pending pending = {.call = CALL_APPROVE};
    if (!rehearsal->approves || record->event != AS_APPROVAL_ON_ASKED)
        return;
    memcpy(pending.request, record->request->id, strlen(record->request->id) + 1);
    ask(rehearsal, pending);
}

static void carry_out(struct as_rehearsal *rehearsal, const struct as_effect *effect)
{
    if (effect->kind == AS_EFFECT_OBSERVE)
        ask_target(rehearsal, CALL_OBSERVE, effect);
    else if (effect->kind == AS_EFFECT_SCALE)
        ask_target(rehearsal, CALL_SCALE, effect);
    else if (effect->kind == AS_EFFECT_QUERY)
        ask_query(rehearsal, effect);
    else if (effect->kind == AS_EFFECT_COMMIT && effect->ticket != 0)
        ask(rehearsal, (struct pending){.call = CALL_COMMIT, .ticket = effect->ticket});
    else
        tell(rehearsal, effect);
    if (effect->kind == AS_EFFECT_RECORD_APPROVAL)
        ask_person(rehearsal, effect->approval);
}

static as_mono_time get_mono(const struct as_rehearsal *rehearsal)
{
    return (as_mono_time){MONO_START + rehearsal->now.us - rehearsal->start.us};
}

static void step(struct as_rehearsal *rehearsal, struct as_event event)
{
    struct as_effects effects;
    event.mono = get_mono(rehearsal);
    event.wall = rehearsal->now;
    as_engine_step(rehearsal->engine, &event, &effects);
    for (size_t i = 0; i < effects.count; i++)
        carry_out(rehearsal, &effects.items[i]);
}

static struct as_scale_result set_size(const struct pending *pending)
{
    struct as_scale_result result = {.outcome = AS_REASON_TARGET_NOT_FOUND, .attempts = 1};
    if (pending->target && pending->target->size >= 0) {
        pending->target->size = pending->size;
        result.outcome = AS_REASON_APPLIED;
    }
    return result;
}

static struct as_event make_order(struct as_rehearsal *rehearsal, const struct as_order *order)
{
    return (struct as_event){
        .kind = AS_EVENT_ORDER, .ticket = ++rehearsal->requests, .order = order};
}

static struct as_order make_answer(const char *request, bool approves)
{
    return (struct as_order){
        .kind = approves ? AS_ORDER_APPROVE : AS_ORDER_DENY,
        .request = request,
        .who = "",
        .remote = "",
        .reason = "a rehearsal",
    };
}

static void answer(struct as_rehearsal *rehearsal, const struct pending *pending)
{
    const uint64_t ticket = pending->ticket;
    switch (pending->call) {
    case CALL_OBSERVE: {
        struct as_observation seen =
            world_observe(&rehearsal->world, pending->target, &pending->observe);
        if (pending->pool)
            world_pool_tell(pending->pool, &seen);
        step(rehearsal,
             (struct as_event){.kind = AS_EVENT_OBSERVED, .ticket = ticket, .observation = &seen});
        world_pool_free(pending->pool);
        break;
    }
    case CALL_QUERY: {
        const struct as_query_result result = world_answer(pending->query, pending->form);
        step(rehearsal,
             (struct as_event){.kind = AS_EVENT_QUERIED, .ticket = ticket, .answer = &result});
        break;
    }
    case CALL_SCALE: {
        const struct as_scale_result result = set_size(pending);
        step(rehearsal,
             (struct as_event){.kind = AS_EVENT_SCALED, .ticket = ticket, .result = &result});
        break;
    }
    case CALL_COMMIT:
        step(rehearsal, (struct as_event){.kind = AS_EVENT_COMMITTED, .ticket = ticket});
        break;
    case CALL_APPROVE: {
        const struct as_order order = make_answer(pending->request, true);
        step(rehearsal, make_order(rehearsal, &order));
        break;
    }
    }
}

/* One step, and the answers to all its effects. */
static void run(struct as_rehearsal *rehearsal, struct as_event event)
{
    step(rehearsal, event);
    while (rehearsal->head < rehearsal->count) {
        const struct pending pending = rehearsal->pending[rehearsal->head++];
        if (rehearsal->head == rehearsal->count)
            rehearsal->head = rehearsal->count = 0;
        answer(rehearsal, &pending);
    }
}

/* As late as possible, when sizes are known. */
static void start(struct as_rehearsal *rehearsal)
{
    if (rehearsal->started)
        return;
    rehearsal->started = true;
    run(rehearsal, (struct as_event){.kind = AS_EVENT_START});
}

static as_wall_time get_next_deadline(const struct as_rehearsal *rehearsal)
{
    const as_mono_time deadline = as_engine_get_next_deadline(rehearsal->engine);
    if (deadline.us == AS_MONO_NEVER.us)
        return (as_wall_time){INT64_MAX};
    return (as_wall_time){as_time_add(deadline.us - MONO_START, rehearsal->start.us)};
}

/* Runs every deadline before `end`. */
static void go(struct as_rehearsal *rehearsal, int64_t end)
{
    start(rehearsal);
    for (;;) {
        const as_wall_time deadline = get_next_deadline(rehearsal);
        if (deadline.us >= end)
            return;
        if (deadline.us > rehearsal->now.us)
            rehearsal->now = deadline;
        run(rehearsal, (struct as_event){.kind = AS_EVENT_DEADLINE});
    }
}

void as_rehearsal_approach(struct as_rehearsal *rehearsal, as_wall_time to)
{
    go(rehearsal, to.us);
    if (to.us > rehearsal->now.us)
        rehearsal->now = to;
}

void as_rehearsal_advance(struct as_rehearsal *rehearsal, as_wall_time to)
{
    go(rehearsal, as_time_add(to.us, 1));
    if (to.us > rehearsal->now.us)
        rehearsal->now = to;
}

void as_rehearsal_notify(struct as_rehearsal *rehearsal, const struct as_notification *notification)
{
    start(rehearsal);
    run(rehearsal, (struct as_event){
                       .kind = AS_EVENT_NOTIFICATION,
                       .ticket = ++rehearsal->requests,
                       .notification = notification,
                   });
}

struct waiting { /* the request that waits on a target */
    const struct as_rehearsal *rehearsal;
    const struct world_target *target;
    const char *rule; /* NULL: any */
    int32_t size;     /* -1: none */
    char id[AS_ULID_SIZE];
};

static void find_waiting(void *context, const struct as_approval_view *view)
{
    struct waiting *waiting = context;
    const struct as_approval_state *state = &view->state;
    if (state->answer != AS_APPROVAL_WAITING ||
        (waiting->rule && strcmp(waiting->rule, state->rule) != 0) || !waiting->target ||
        world_find_target(&waiting->rehearsal->world, view->target) != waiting->target)
        return;
    waiting->size = state->to;
    memcpy(waiting->id, state->id, strlen(state->id) + 1);
}

static struct waiting look(const struct as_rehearsal *rehearsal, const char *target,
                           const char *rule)
{
    struct waiting waiting = {.rehearsal = rehearsal,
                              .target = world_find_target(&rehearsal->world, target),
                              .rule = rule,
                              .size = -1};
    as_engine_visit_approvals(rehearsal->engine, get_mono(rehearsal), rehearsal->now, find_waiting,
                              &waiting);
    return waiting;
}

int32_t as_rehearsal_get_asked(const struct as_rehearsal *rehearsal, const char *target)
{
    return look(rehearsal, target, NULL).size;
}

bool as_rehearsal_answer(struct as_rehearsal *rehearsal, const char *target, const char *rule,
                         bool approves)
{
    const struct waiting waiting = look(rehearsal, target, rule);
    const struct as_order order = make_answer(waiting.id, approves);
    if (waiting.size < 0)
        return false;
    run(rehearsal, make_order(rehearsal, &order));
    return true;
}

as_wall_time as_rehearsal_get_now(const struct as_rehearsal *rehearsal)
{
    return rehearsal->now;
}
