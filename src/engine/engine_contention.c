/*
 * Contention: sizes of ours that other writers reverted, and the target that is left alone because
 * of them. The module never sets a size again.
 *
 * Only of targets whose observation is never older than the request before it: a provider's cache
 * that shows the former size would look like a set-back. An API server's observation of an older
 * version, as after its fail-over, is ignored too. Versions of objects are as API servers give
 * them: growing numbers, opaque elsewhere.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/sized.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_state.h"

/* Sizes of ours that others set back. */
struct contention {
    bool has_own;
    struct as_own_size own; /* owns its version */
    struct as_reverted_change
        reverted_changes[AS_REVERTED_CHANGES_MAX]; /* ascending by time; own their texts */
    size_t count;
    struct as_moment since; /* the target is left alone since then; unset: it is not */
};

static struct contention *get_contention(const struct target *target)
{
    return target->parts[CONCERN_CONTENTION];
}

static void contention_forget_own(struct contention *contention)
{
    as_rows_free_texts(as_own_size_rows, &contention->own);
    contention->own = (struct as_own_size){.version = NULL};
    contention->has_own = false;
}

static void contention_drop_oldest(struct contention *contention)
{
    as_rows_free_texts(as_reverted_change_rows, &contention->reverted_changes[0]);
    memmove(contention->reverted_changes, contention->reverted_changes + 1,
            --contention->count * sizeof(*contention->reverted_changes));
}

static void contention_clear(struct contention *contention)
{
    while (contention->count > 0)
        contention_drop_oldest(contention);
    contention_forget_own(contention);
    contention->since = AS_MOMENT_NEVER;
}

static void contention_add(struct contention *contention,
                           const struct as_reverted_change *reverted_change)
{
    if (contention->count == AS_REVERTED_CHANGES_MAX)
        contention_drop_oldest(contention);
    struct as_reverted_change *copy = &contention->reverted_changes[contention->count++];
    *copy = *reverted_change;
    as_rows_own_texts(as_reverted_change_rows, copy);
}

static const struct as_reverted_change *contention_copy(struct as_engine *engine,
                                                        const struct contention *contention)
{
    return as_rows_copy(&engine->arena, as_reverted_change_rows, contention->reverted_changes,
                        contention->count, sizeof(*contention->reverted_changes));
}

/* Numbers; the unit may stand behind (decide/sized.h). */
static bool contention_is_older(const char *version, const char *other)
{
    const size_t size = strspn(version, "0123456789"), other_size = strspn(other, "0123456789");
    if ((version[size] != '\0' && version[size] != AS_SIZED_UNIT_MARK) ||
        strcmp(version + size, other + other_size) != 0)
        return false;
    return size != other_size ? size < other_size : memcmp(version, other, size) < 0;
}

/* not "", and not only a unit (decide/sized.h) */
static bool version_is_set(const char *version)
{
    return *version && *version != AS_SIZED_UNIT_MARK;
}

bool version_is_newer(const char *version, const char *than)
{
    return *version && *than && strcmp(version, than) != 0 && !contention_is_older(version, than);
}

bool version_lacks(const char *version, const char *than)
{
    return version_is_set(than) && !version_is_newer(version, than);
}

static bool contention_is_within(const struct as_engine *engine, struct as_moment at, int64_t span)
{
    return engine->mono.us - at.mono.us < span;
}

static void contention_note_own(const struct as_engine *engine, struct target *target,
                                const struct intent *intent, enum as_reason outcome)
{
    struct contention *contention = get_contention(target);
    contention_forget_own(contention);
    if (!target->ref->kind->is_current || intent->state.from == intent->state.to ||
        outcome != AS_REASON_APPLIED)
        return;
    contention->has_own = true;
    contention->own = (struct as_own_size){.from = intent->state.from,
                                           .to = intent->state.to,
                                           .at = moment_now(engine),
                                           .version = as_xstrdup(intent->state.version)};
}

void contention_fill_request(const struct as_engine *engine, const struct target *target,
                             struct as_observe_request *request)
{
    const struct contention *contention = get_contention(target);
    request->has_own_size = contention->has_own && !target->in_doubt &&
                            contention_is_within(engine, contention->own.at, AS_REVERTED_WITHIN_US);
    request->own_size = contention->own.to;
}

static bool is_towards(const struct as_own_size *own, int32_t found)
{
    return own->to > own->from ? found < own->to : found > own->to;
}

/* The size that others may have changed. */
static int32_t get_found(const struct as_own_size *own, const struct as_observation *observation)
{
    const struct as_resize_seen *pods = &observation->resize;
    if (!pods->is_set || pods->template_size < 0)
        return observation->replicas;
    return pods->asked < 0 || pods->asked == pods->template_size ? own->to : pods->asked;
}

/* Pods that are resized in place have no version, but the template that was sized before them has
 * one: what was set there is not what is found here. */
static bool is_comparable(const struct as_own_size *own, const struct as_observation *observation)
{
    return version_is_set(own->version) == version_is_set(observation->version);
}

static void note_reverted(const struct as_engine *engine, struct contention *contention,
                          int32_t found, const char *by)
{
    while (contention->count > 0 &&
           !contention_is_within(engine, contention->reverted_changes[0].at, AS_CONTENDED_US))
        contention_drop_oldest(contention);
    contention_add(contention, &(struct as_reverted_change){
                                   .at = moment_now(engine),
                                   .from = contention->own.from,
                                   .to = contention->own.to,
                                   .found = found,
                                   .by = by,
                               });
}

as_mono_time contention_get_end(const struct target *target)
{
    const struct as_moment since = get_contention(target)->since;
    if (!as_moment_is_set(since))
        return AS_MONO_NEVER;
    return (as_mono_time){as_time_add(since.mono.us, AS_CONTENDED_US)};
}

bool contention_is_set(const struct target *target)
{
    return as_moment_is_set(get_contention(target)->since);
}

bool contention_holds(const struct as_engine *engine, const struct target *target)
{
    const as_mono_time end = contention_get_end(target);
    return end.us != AS_MONO_NEVER.us && end.us > engine->mono.us;
}

static as_wall_time get_end_wall(const struct as_engine *engine, const struct target *target)
{
    return lock_get_end(get_contention(target)->since, AS_CONTENDED_US, engine->mono, engine->wall)
        .wall;
}

static const struct as_contended_note *add_note(struct as_engine *engine,
                                                const struct target *target)
{
    struct as_contended_note *note = as_arena_alloc(&engine->arena, 1, sizeof(*note));
    *note = (struct as_contended_note){
        .reverted_changes = contention_copy(engine, get_contention(target)),
        .reverted_change_count = get_contention(target)->count,
        .until = get_end_wall(engine, target),
    };
    return note;
}

const struct as_contended_note *contention_note(struct as_engine *engine,
                                                const struct target *target)
{
    return contention_holds(engine, target) ? add_note(engine, target) : NULL;
}

static struct as_others_record *add_record(struct as_engine *engine, const struct target *target,
                                           enum as_others_event event)
{
    struct as_others_record *record = as_arena_alloc(&engine->arena, 1, sizeof(*record));
    *record = (struct as_others_record){
        .event = event,
        .target = target->ref->id,
        .target_name = target->config ? target->config->name : "",
    };
    effect_add(engine, AS_EFFECT_RECORD_OTHERS)->others = record;
    return record;
}

static void contention_begin(struct as_engine *engine, struct target *target)
{
    get_contention(target)->since = moment_now(engine);
    add_record(engine, target, AS_OTHERS_CONTENDED)->contended = add_note(engine, target);
}

void contention_see(struct as_engine *engine, struct target *target,
                    const struct as_observation *observation)
{
    struct contention *contention = get_contention(target);
    struct as_own_size *own = &contention->own;
    contention_review(engine, target);
    const int32_t found = get_found(own, observation);
    if (!contention->has_own || found == own->to ||
        version_lacks(observation->version, own->version))
        return;
    const bool is_reverted = contention_is_within(engine, own->at, AS_REVERTED_WITHIN_US) &&
                             is_towards(own, found) && is_comparable(own, observation) &&
                             !contention_holds(engine, target);
    if (is_reverted)
        note_reverted(engine, contention, found, observation->changed_by);
    if (is_reverted && contention->count == AS_REVERTED_CHANGES_MAX)
        contention_begin(engine, target);
    contention_forget_own(contention); /* the size is somebody else's now */
    effect_put_target(engine, target);
    effect_commit(engine);
}

void contention_end(struct as_engine *engine, struct target *target, const char *why)
{
    const bool was_contended = as_moment_is_set(get_contention(target)->since);
    contention_clear(get_contention(target));
    if (was_contended)
        add_record(engine, target, AS_OTHERS_OVER)->message = why;
}

void contention_review(struct as_engine *engine, struct target *target)
{
    if (contention_get_end(target).us > engine->mono.us)
        return;
    contention_end(engine, target, "the hour is over");
    effect_put_target(engine, target);
    effect_commit(engine);
}

static as_mono_time contention_get_forget_time(const struct target *target)
{
    const struct contention *contention = get_contention(target);
    if (as_moment_is_set(contention->since))
        return contention_get_end(target);
    if (contention->count == 0)
        return (as_mono_time){INT64_MIN};
    const struct as_moment last = contention->reverted_changes[contention->count - 1].at;
    return (as_mono_time){as_time_add(last.mono.us, AS_CONTENDED_US)};
}

static void contention_init(struct target *target)
{
    get_contention(target)->since = AS_MOMENT_NEVER;
}

static void contention_deinit(struct target *target)
{
    contention_clear(get_contention(target));
}

static void contention_store(struct as_engine *engine, const struct target *target,
                             struct as_target_state *state)
{
    const struct contention *contention = get_contention(target);
    const int64_t age = engine->mono.us - contention->own.at.mono.us;
    if (contention->has_own && age < AS_REVERTED_WITHIN_US)
        state->own_size = as_rows_copy(&engine->arena, as_own_size_rows, &contention->own, 1,
                                       sizeof(contention->own));
    state->reverted_changes = contention_copy(engine, contention);
    state->reverted_change_count = contention->count;
    state->contended = contention->since;
}

static void contention_restore(struct as_engine *engine, struct target *target,
                               const struct as_target_state *state)
{
    (void)engine;
    struct contention *contention = get_contention(target);
    const struct as_own_size *own = state->own_size;
    if (own) {
        contention->has_own = true;
        contention->own = *own;
        as_rows_own_texts(as_own_size_rows, &contention->own);
    }
    if (state->reverted_change_count > 0) {
        for (size_t i = 0; i < state->reverted_change_count; i++)
            contention_add(contention, &state->reverted_changes[i]);
        contention->since = state->contended;
    }
}

static void contention_fill_view(const struct target *target, as_mono_time now, as_wall_time wall,
                                 struct as_target_view *view)
{
    const struct contention *contention = get_contention(target);
    view->reverted_changes = contention->reverted_changes;
    view->reverted_change_count = contention->count;
    view->contended_until = lock_get_end(contention->since, AS_CONTENDED_US, now, wall);
}

static void contention_forget_sizes(struct as_engine *engine, struct target *target,
                                    const struct other_object *why)
{
    contention_end(engine, target, why->cause);
}

/* Pods that came later are no change of the target. */
static void contention_on_applied(struct as_engine *engine, struct target *target,
                                  const struct action *action)
{
    if (!action->marks.is_catch_up)
        contention_note_own(engine, target, action->intent, action->result->outcome);
}

static void contention_fill_input(struct as_engine *engine, const struct target *target,
                                  const struct as_observation *observation,
                                  struct as_decide_input *input)
{
    (void)observation;
    input->flags.contended = contention_holds(engine, target);
}

const struct concern concern_contention = {
    .name = "contention",
    .fill_input = contention_fill_input,
    .on_applied = contention_on_applied,
    .size = sizeof(struct contention),
    .init = contention_init,
    .deinit = contention_deinit,
    .store = contention_store,
    .restore = contention_restore,
    .fill_view = contention_fill_view,
    .get_forget_time = contention_get_forget_time,
    .forget_sizes = contention_forget_sizes,
};
