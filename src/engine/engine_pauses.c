/*
 * Pauses, of both directions or of one, of one target or of all: ordered by an operator, stored,
 * ended by another order or by time. And two that come from outside and are not stored: the kill
 * switch, and the annotations of scaling policies.
 *
 * A paused target is observed and decided as usual, with the flag `paused`: so the log shows what
 * it would do. A pause of one direction is a block (engine_blocks.c). A decision from before the
 * pause is not sent any more.
 *
 * Invariants: the list of paused targets has exactly the targets with their own pause; `pause_due`
 * is not after the first end. A pause is counted from its order, so that a restart does not make it
 * longer.
 */
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_effects.h"

struct paused {
    struct as_pause_state pause;    /* the first member: pauses_get; owns its texts */
    struct as_pause_state declared; /* by the scaling policy that the target is of; not stored */
    struct target *target;
    TAILQ_ENTRY(paused) link; /* if the pause is set */
};

static struct paused *get_paused(const struct target *target)
{
    return target->parts[CONCERN_PAUSES];
}

static as_mono_time pause_get_end(const struct as_pause_state *pause)
{
    if (!pause->is_set || pause->for_us == 0)
        return AS_MONO_NEVER;
    return (as_mono_time){as_time_add(pause->since.mono.us, pause->for_us)};
}

static void note_end(struct as_engine *engine, const struct as_pause_state *pause)
{
    const as_mono_time end = pause_get_end(pause);
    if (end.us < engine->pause_due.us)
        engine->pause_due = end;
}

static void find_first_end(struct as_engine *engine)
{
    engine->pause_due = pause_get_end(&engine->pause);
    const struct paused *paused;
    TAILQ_FOREACH (paused, &engine->paused, link)
        note_end(engine, &paused->pause);
}

/* Copies the texts. */
static void pause_fill(struct as_pause_state *pause, const struct as_pause_state *state)
{
    pause_free(pause);
    *pause = *state;
    pause->is_set = true;
    if (pause->ways == AS_WAYS_NONE)
        pause->ways = AS_WAYS_BOTH;
    as_rows_own_texts(as_pause_rows, pause);
}

/* Puts the target into the list; copies the texts. */
static void set(struct as_engine *engine, struct target *target, const struct as_pause_state *state)
{
    struct as_pause_state *pause = target ? &get_paused(target)->pause : &engine->pause;
    if (target && !pause->is_set) {
        struct paused *paused = get_paused(target);
        paused->target = target;
        TAILQ_INSERT_TAIL(&engine->paused, paused, link);
        engine->paused_count++;
    }
    pause_fill(pause, state);
    note_end(engine, pause);
}

void pause_set(struct as_engine *engine, struct target *target,
               const struct as_operator_command *order)
{
    set(engine, target,
        &(struct as_pause_state){.since = moment_now(engine),
                                 .for_us = order->for_us,
                                 .ways = order->ways,
                                 .who = order->who,
                                 .reason = order->reason});
    if (target)
        effect_put_target(engine, target);
    else
        effect_put_pause(engine);
}

void pause_clear(struct as_engine *engine, struct target *target)
{
    if (!target) {
        pause_free(&engine->pause);
        (void)effect_add(engine, AS_EFFECT_DELETE_PAUSE);
        return;
    }
    TAILQ_REMOVE(&engine->paused, get_paused(target), link);
    engine->paused_count--;
    pause_free(&get_paused(target)->pause);
    effect_put_target(engine, target);
}

/* The pauses that hold for a target, whether they are set or not. */
#define PAUSES_OF_TARGET 4
struct pause_list {
    const struct as_pause_state *items[PAUSES_OF_TARGET];
};

/* A pause that a policy declares ends with the target's entry. */
static const struct as_pause_state *pauses_get_declared(const struct target *target)
{
    static const struct as_pause_state none;
    return target->config && target->config->policy ? &get_paused(target)->declared : &none;
}

static struct pause_list pauses_list(const struct as_engine *engine, const struct target *target)
{
    return (struct pause_list){
        {&engine->halt, &engine->pause, &get_paused(target)->pause, pauses_get_declared(target)}};
}

/* Of the target alone: an operator's, else the declared one. */
static const struct as_pause_state *pauses_get_own(const struct target *target)
{
    const struct as_pause_state *ordered = pauses_get(target);
    return ordered->is_set ? ordered : pauses_get_declared(target);
}

/* NULL: none forbids all of these directions. */
static const struct as_pause_state *pauses_find_in(const struct as_engine *engine,
                                                   const struct target *target, enum as_ways ways)
{
    const struct pause_list pauses = pauses_list(engine, target);
    for (size_t i = 0; i < PAUSES_OF_TARGET; i++) {
        if (pauses.items[i]->is_set && (pauses.items[i]->ways & ways) == ways)
            return pauses.items[i];
    }
    return NULL;
}

static const struct as_pause_state *pauses_find(const struct as_engine *engine,
                                                const struct target *target)
{
    return pauses_find_in(engine, target, AS_WAYS_BOTH);
}

const struct as_pause_note *pauses_note(struct as_engine *engine, const struct target *target)
{
    const struct as_pause_state *pause = pauses_find(engine, target);
    if (!pause)
        pause = engine->pause.is_set ? &engine->pause : pauses_get_own(target);
    if (!pause->is_set)
        return NULL;
    struct as_pause_note *note = as_arena_alloc(&engine->arena, 1, sizeof(*note));
    const as_mono_time end = pause_get_end(pause);
    *note = (struct as_pause_note){
        .ways = pause->ways,
        .who = as_arena_strdup(&engine->arena, pause->who),
        .reason = as_arena_strdup(&engine->arena, pause->reason),
        .is_of_all = pause == &engine->halt || pause == &engine->pause,
        .until = {end.us != AS_MONO_NEVER.us,
                  lock_get_end(pause->since, pause->for_us, engine->mono, engine->wall).wall},
    };
    return note;
}

static const char *pauses_find_obstacle(const struct as_engine *engine, const struct target *target,
                                        const struct intent *intent)
{
    if (engine->halt.is_set)
        return "not sent, as the kill switch has been set since it was decided";
    if (!intent->state.is_ordered &&
        pauses_find_in(engine, target, as_ways_get(intent->state.from, intent->state.to)))
        return "not sent, as the target has been paused since it was decided";
    return NULL;
}

void pauses_touch_all(struct as_engine *engine, struct waiter *waiter)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets)
        target_touch(target, waiter);
}

/* A record without an operator's order: an end by time, the kill switch. */
static void pause_record(struct as_engine *engine, enum as_operator_command_kind kind,
                         const struct target *target, const char *who, const char *reason)
{
    struct as_operator_command *order = as_arena_alloc(&engine->arena, 1, sizeof(*order));
    *order = (struct as_operator_command){
        .kind = kind,
        .target = target ? target->ref->id : NULL,
        .who = as_arena_strdup(&engine->arena, who),
        .remote = "",
        .reason = as_arena_strdup(&engine->arena, reason),
    };
    (void)effect_order_record(engine, order, target, schedules_find_bounds(engine, target), 0);
}

/* Called at every look at the switch; ignores repeats. */
bool pauses_on_halt(struct as_engine *engine, const struct as_halt *halt)
{
    struct as_pause_state *now = &engine->halt;
    if (halt->reason && !(now->is_set && strcmp(now->reason, halt->reason) == 0 &&
                          strcmp(now->who, halt->who) == 0)) {
        pause_fill(now, &(struct as_pause_state){
                            .since = moment_now(engine), .who = halt->who, .reason = halt->reason});
        pause_record(engine, AS_OPERATOR_COMMAND_PAUSE, NULL, now->who, now->reason);
        return true;
    }
    if (!halt->reason && now->is_set) {
        pause_record(engine, AS_OPERATOR_COMMAND_RESUME, NULL, now->who, "it is not set any more");
        pause_free(now);
        pauses_touch_all(engine, effect_commit_awaited(engine));
    }
    return false;
}

void pauses_on_deadline(struct as_engine *engine)
{
    static const char over[] = "the time of the pause is over";
    if (engine->pause_due.us > engine->mono.us)
        return;
    const size_t effects = engine->effect_count;
    const bool is_of_all = pause_get_end(&engine->pause).us <= engine->mono.us;
    struct target **ended = as_xcalloc(engine->paused_count + 1, sizeof(struct target *));
    size_t count = 0;
    if (is_of_all) {
        pause_record(engine, AS_OPERATOR_COMMAND_RESUME, NULL, "", over);
        pause_clear(engine, NULL);
    }
    struct paused *paused, *next;
    TAILQ_FOREACH_SAFE (paused, &engine->paused, link, next) {
        struct target *target = paused->target;
        if (pause_get_end(&paused->pause).us > engine->mono.us)
            continue;
        pause_record(engine, AS_OPERATOR_COMMAND_RESUME, target, "", over);
        pause_clear(engine, target);
        ended[count++] = target;
    }
    find_first_end(engine);
    if (engine->effect_count > effects) {
        struct waiter *waiter = effect_commit_awaited(engine);
        for (size_t i = 0; i < count; i++)
            target_touch(ended[i], waiter);
        if (is_of_all)
            pauses_touch_all(engine, waiter);
    }
    free(ended);
}

static bool lasts_longer(const struct as_pause_state *pause, const struct as_pause_state *than)
{
    const struct as_pause_state other = {
        .is_set = true, .since = than->since, .for_us = than->for_us};
    return pause->is_set && pause_get_end(pause).us >= pause_get_end(&other).us;
}

void pauses_restore(struct as_engine *engine, struct target *target,
                    const struct as_pause_state *state)
{
    if (state && !(target && lasts_longer(&get_paused(target)->pause, state)))
        set(engine, target, state);
}

size_t pauses_count_of(const struct as_engine *engine, const char *credential)
{
    const struct paused *paused;
    size_t count = 0;
    TAILQ_FOREACH (paused, &engine->paused, link)
        count += strcmp(paused->pause.who, credential) == 0;
    return count;
}

static void pauses_deinit(struct target *target)
{
    pause_free(&get_paused(target)->pause);
    pause_free(&get_paused(target)->declared);
}

/* A pause that the entry declares begins when it is first seen. */
static void pauses_on_entry(struct as_engine *engine, struct target *target)
{
    const struct as_policy_terms *policy = target->config ? target->config->policy : NULL;
    struct as_pause_state *declared = &get_paused(target)->declared;
    if (!policy || policy->paused == AS_WAYS_NONE) {
        pause_free(declared);
        return;
    }
    if (declared->is_set && declared->ways == policy->paused &&
        strcmp(declared->reason, policy->pause_reason) == 0)
        return;
    pause_fill(declared, &(struct as_pause_state){.since = moment_now(engine),
                                                  .ways = policy->paused,
                                                  .who = "annotation",
                                                  .reason = policy->pause_reason});
}

static void pauses_store(struct as_engine *engine, const struct target *target,
                         struct as_target_state *state)
{
    const struct as_pause_state *pause = pauses_get(target);
    if (pause->is_set)
        state->pause = pause_fill_state(engine, pause);
}

static void pauses_restore_target(struct as_engine *engine, struct target *target,
                                  const struct as_target_state *state)
{
    pauses_restore(engine, target, state->pause);
}

/* A pause belongs to the name. */
static void pauses_unite(struct as_engine *engine, struct target *target, struct target *former)
{
    if (!pauses_get(former)->is_set)
        return;
    pauses_restore(engine, target, pauses_get(former));
    pause_clear(engine, former);
    effect_put_target(engine, target);
    effect_commit(engine);
}

static struct as_pause_view pause_make_view(const struct as_pause_state *pause, bool is_halt,
                                            as_mono_time now, as_wall_time wall)
{
    struct as_pause_view view = {
        .is_set = pause->is_set,
        .is_halt = is_halt,
        .ways = pause->ways,
        .who = pause->who,
        .reason = pause->reason,
        .since = pause->is_set ? pause->since : AS_MOMENT_NEVER,
        .until = AS_MOMENT_NEVER,
    };
    if (pause->is_set && pause->for_us > 0)
        view.until = lock_get_end(pause->since, pause->for_us, now, wall);
    return view;
}

struct as_pause_view as_engine_get_pause(const struct as_engine *engine, as_mono_time now,
                                         as_wall_time wall)
{
    const bool is_halt = engine->halt.is_set;
    return pause_make_view(is_halt ? &engine->halt : &engine->pause, is_halt, now, wall);
}

static void pauses_fill_view(const struct target *target, as_mono_time now, as_wall_time wall,
                             struct as_target_view *view)
{
    view->pause = pause_make_view(pauses_get_own(target), false, now, wall);
}

/* The kill switch, the pause of all targets, and those of this one. */
static void pauses_visit_blocks(const struct block_query *query, const struct target *target)
{
    const struct as_engine *engine = query->engine;
    const struct pause_list pauses = pauses_list(engine, target);
    for (size_t i = 0; i < PAUSES_OF_TARGET; i++) {
        const struct as_pause_state *pause = pauses.items[i];
        if (pause->is_set)
            query->visit(query->context, &(struct block){.ways = pause->ways,
                                                         .kind = BLOCK_PAUSE,
                                                         .is_of_all = pause == &engine->halt ||
                                                                      pause == &engine->pause,
                                                         .name = pause->who});
    }
}

const struct concern concern_pauses = {
    .name = "pauses",
    .find_obstacle = pauses_find_obstacle,
    .size = sizeof(struct paused),
    .deinit = pauses_deinit,
    .store = pauses_store,
    .restore = pauses_restore_target,
    .unite = pauses_unite,
    .on_entry = pauses_on_entry,
    .fill_view = pauses_fill_view,
    .visit_blocks = pauses_visit_blocks,
};
