/*
 * The state's trees and lists, and the memory of its parts.
 */
#include "engine_state.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/sized.h>

#include "engine_set_backs.h"

#define CLOCK_JUMP_US AS_US_PER_S
#define ENDINGS_MAX   64 /* per target; a new one replaces the oldest */

static int incident_compare(const struct incident *a, const struct incident *b)
{
    const int order = as_digest_compare(&a->key.digest, &b->key.digest);
    return order ? order : strcmp(a->key.owner, b->key.owner);
}

static int target_compare(const struct target *a, const struct target *b)
{
    return strcmp(a->ref->key, b->ref->key);
}

static int deadline_compare(const struct target *a, const struct target *b)
{
    if (a->deadline.us != b->deadline.us)
        return a->deadline.us > b->deadline.us ? 1 : -1;
    return target_compare(a, b);
}

static int ticket_compare(const struct target *a, const struct target *b)
{
    return (a->ticket > b->ticket) - (a->ticket < b->ticket);
}

static int group_compare(const struct group *a, const struct group *b)
{
    /* the rules of one set are one array, in the order of the files */
    return (a->rule > b->rule) - (a->rule < b->rule);
}

static int ask_compare(const struct ask *a, const struct ask *b)
{
    return (a->ticket > b->ticket) - (a->ticket < b->ticket);
}

RB_GENERATE(incident_tree, incident, by_digest, incident_compare)
RB_GENERATE(target_tree, target, by_id, target_compare)
RB_GENERATE(deadline_tree, target, by_deadline, deadline_compare)
RB_GENERATE(ticket_tree, target, by_ticket, ticket_compare)
RB_GENERATE(group_tree, group, in_target, group_compare)
RB_GENERATE(ask_tree, ask, by_ticket, ask_compare)

struct as_moment lock_get_end(struct as_moment since, int64_t lock_us, as_mono_time now,
                              as_wall_time wall)
{
    if (!as_moment_is_set(since))
        return AS_MOMENT_NEVER;
    const as_mono_time end = {as_time_add(since.mono.us, lock_us)};
    if (end.us <= now.us)
        return AS_MOMENT_NEVER;
    /* The two clocks are not read at the same instant: unless the wall clock has jumped since, the
     * first computed end stays. */
    const int64_t seen_now = wall.us + (end.us - now.us);
    const int64_t seen_then = as_time_add(since.wall.us, lock_us);
    const bool jumped = llabs(seen_now - seen_then) > CLOCK_JUMP_US;
    return (struct as_moment){end, {jumped ? seen_now : seen_then}};
}

void progress_deinit(struct as_progress *progress)
{
    free((char *)(uintptr_t)progress->rule);
    free((char *)(uintptr_t)progress->target);
}

void incident_free(struct incident *incident)
{
    for (uint32_t i = 0; i < incident->kept_count; i++)
        progress_deinit(&incident->kept[i]);
    free(incident->kept);
    free((char *)(uintptr_t)incident->key.owner);
    for (uint32_t i = 0; i < incident->receiver_count; i++)
        free(incident->receivers[i]);
    free(incident->receivers);
    for (uint32_t i = 0; i < incident->credential_count; i++)
        free(incident->credentials[i]);
    free(incident->credentials);
    free(incident->reported);
    free(incident->bindings);
    as_labels_free(incident->labels);
    as_labels_free(incident->annotations);
    free(incident);
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static void free_text(const char *text)
{
    free((char *)(uintptr_t)text);
}

struct request *request_free(struct request *request)
{
    if (!request)
        return NULL;
    free_text(request->state.id);
    free_text(request->state.decision);
    free_text(request->state.rule);
    free_text(request->state.incident);
    free_text(request->state.uid);
    free_text(request->state.who);
    free(request);
    return NULL;
}

/* And its free steps. */
static void requests_deinit(struct target *target)
{
    struct request *request;
    while ((request = TAILQ_FIRST(&target->requests))) {
        TAILQ_REMOVE(&target->requests, request, in_target);
        request_free(request);
    }
    while (target->free_step_count > 0)
        free_text(target->free_steps[--target->free_step_count].rule);
    free(target->free_steps);
}

struct intent *intent_free(struct intent *intent)
{
    if (!intent)
        return NULL;
    intent_free(intent->older);
    free(intent->rule);
    free(intent->version);
    free_names(intent->take, intent->take_count);
    request_free(intent->used);
    free(intent);
    return NULL;
}

void store_keys_free(struct store_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        free(keys->items[i]);
    free(keys->items);
    *keys = (struct store_keys){0};
}

void ask_free(struct ask *ask)
{
    as_arena_deinit(&ask->arena);
    free(ask);
}

struct as_schedule_bounds target_get_bounds_at(const struct target *target, as_mono_time now,
                                               as_wall_time wall)
{
    struct as_schedule_bounds bounds = as_target_config_get_bounds(target->config, wall);
    const struct floor *floor = &target->floor;
    const struct as_moment end = lock_get_end(floor->since, floor->for_us, now, wall);
    if (floor->size == 0 || !as_moment_is_set(end))
        return bounds;
    if (floor->size > bounds.min)
        bounds.min = floor->size < bounds.max ? floor->size : bounds.max;
    bounds.has_min = true;
    if (!bounds.change.set || end.wall.us < bounds.change.at.us)
        bounds.change = (as_maybe_time){true, end.wall};
    return bounds;
}

void floor_free(struct floor *floor)
{
    free(floor->who);
    free(floor->reason);
    *floor = (struct floor){0};
}

void pause_free(struct pause *pause)
{
    free(pause->who);
    free(pause->reason);
    *pause = (struct pause){0};
}

void ending_free(struct target *target, struct ending *ending)
{
    TAILQ_REMOVE(&target->endings, ending, in_target);
    target->ending_count--;
    free((char *)(uintptr_t)ending->state.rule);
    free((char *)(uintptr_t)ending->state.incident);
    free((char *)(uintptr_t)ending->state.guard);
    free(ending);
}

struct ending *ending_add(struct target *target, const struct as_ending_state *state)
{
    struct ending *ending = as_xcalloc(1, sizeof(*ending));
    ending->state = *state;
    ending->state.rule = as_xstrdup(state->rule);
    ending->state.incident = as_xstrdup(state->incident);
    ending->state.guard = as_xstrdup(state->guard);
    if (target->ending_count == ENDINGS_MAX)
        ending_free(target, TAILQ_FIRST(&target->endings));
    TAILQ_INSERT_TAIL(&target->endings, ending, in_target);
    target->ending_count++;
    return ending;
}

struct ending *ending_find(struct target *target, const char *rule)
{
    struct ending *ending;
    TAILQ_FOREACH (ending, &target->endings, in_target) {
        if (strcmp(ending->state.rule, rule) == 0)
            return ending;
    }
    return NULL;
}

/* Both lists ascend by `applied`; the clock of restored ones may be another. */
struct follow *follow_add(struct as_engine *engine, struct target *target,
                          const struct as_follow_state *state)
{
    struct follow *follow = as_xcalloc(1, sizeof(*follow));
    follow->target = target;
    follow->state = *state;
    follow->state.action_id = as_xstrdup(state->action_id);
    follow->state.decision_id = as_xstrdup(state->decision_id);
    follow->state.rule = as_xstrdup(state->rule);
    struct follow *other = TAILQ_LAST(&target->follows, follow_list);
    while (other && other->state.applied.mono.us > state->applied.mono.us)
        other = TAILQ_PREV(other, follow_list, in_target);
    if (other)
        TAILQ_INSERT_AFTER(&target->follows, other, follow, in_target);
    else
        TAILQ_INSERT_HEAD(&target->follows, follow, in_target);
    other = TAILQ_LAST(&engine->follows, follow_list);
    while (other && other->state.applied.mono.us > state->applied.mono.us)
        other = TAILQ_PREV(other, follow_list, in_engine);
    if (other)
        TAILQ_INSERT_AFTER(&engine->follows, other, follow, in_engine);
    else
        TAILQ_INSERT_HEAD(&engine->follows, follow, in_engine);
    target->follow_count++;
    return follow;
}

void follow_free(struct as_engine *engine, struct follow *follow)
{
    TAILQ_REMOVE(&follow->target->follows, follow, in_target);
    TAILQ_REMOVE(&engine->follows, follow, in_engine);
    follow->target->follow_count--;
    free((char *)(uintptr_t)follow->state.action_id);
    free((char *)(uintptr_t)follow->state.decision_id);
    free((char *)(uintptr_t)follow->state.rule);
    free(follow);
}

struct trial *trial_find(const struct target *target, const char *rule)
{
    struct trial *trial;
    TAILQ_FOREACH (trial, &target->trials, in_target) {
        if (strcmp(trial->state.rule, rule) == 0)
            return trial;
    }
    return NULL;
}

struct trial *trial_get(struct target *target, const char *rule)
{
    struct trial *trial = trial_find(target, rule);
    if (trial)
        return trial;
    trial = as_xcalloc(1, sizeof(*trial));
    trial->state = (struct as_trial_state){.rule = as_xstrdup(rule), .held = AS_MOMENT_NEVER};
    TAILQ_INSERT_TAIL(&target->trials, trial, in_target);
    target->trial_count++;
    return trial;
}

void trial_free(struct target *target, struct trial *trial)
{
    TAILQ_REMOVE(&target->trials, trial, in_target);
    target->trial_count--;
    free((char *)(uintptr_t)trial->state.rule);
    free(trial);
}

void asked_clear(struct asked *asked)
{
    free(asked->ids);
    *asked = (struct asked){0};
}

void held_free(struct target *target)
{
    if (target->held)
        as_arena_deinit(&target->held->arena);
    free(target->held);
    target->held = NULL;
}

void share_free(struct share *share)
{
    free(share->rule);
    free_names(share->take, share->take_count);
    *share = (struct share){0};
}

/* `asked` may be what is set already. */
void pool_set_asked(struct pool *pool, const struct as_asked *asked, size_t count)
{
    struct as_arena texts = AS_ARENA_INIT;
    struct as_asked *copies = as_arena_alloc(&texts, count, sizeof(*copies));
    for (size_t i = 0; i < count; i++) {
        copies[i] = asked[i];
        copies[i].group = as_arena_strdup(&texts, asked[i].group);
    }
    as_arena_deinit(&pool->asked_texts);
    pool->asked_texts = texts;
    pool->asked = copies;
    pool->asked_count = count;
}

void backing_forget(struct backing *backing)
{
    for (size_t i = 0; i < backing->count; i++)
        free(backing->names[i]);
    free(backing->names);
    free(backing->family);
    backing->names = NULL;
    backing->family = NULL;
    backing->count = 0;
    backing->is_known = false;
}

struct target *target_free(struct target *target)
{
    share_free(&target->share);
    backing_forget(&target->backing);
    as_arena_deinit(&target->pool.texts);
    as_arena_deinit(&target->pool.asked_texts);
    free(target->pool.seen);
    asked_clear(&target->asked);
    intent_free(target->intent);
    intent_free(target->maybe);
    free(target->events);
    free(target->recommendations);
    while (!TAILQ_EMPTY(&target->endings))
        ending_free(target, TAILQ_FIRST(&target->endings));
    while (!TAILQ_EMPTY(&target->trials))
        trial_free(target, TAILQ_FIRST(&target->trials));
    requests_deinit(target);
    free(target->sender);
    free(target->entry);
    free(target->template_);
    pause_free(&target->pause);
    floor_free(&target->floor);
    for (size_t i = 0; i < target->lack_count; i++)
        free(target->lacks[i].rule);
    free(target->lacks);
    contention_clear(&target->contention);
    held_free(target);
    free(target->verdict.rule);
    free(target->verdict.holder);
    free(target->dry_verdict.rule);
    free(target->dry_verdict.holder);
    as_target_ref_free(target->ref);
    store_keys_free(&target->stored_as);
    store_keys_free(&target->intents_stored_as);
    free(target);
    return NULL;
}

bool target_did_not_come(const struct target *target, as_mono_time now)
{
    const struct growth *growth = &target->growth;
    const bool backs_off = as_moment_is_set(growth->failed) &&
                           as_time_add(growth->failed.mono.us, growth->back_off_us) > now.us;
    struct as_sized sized;
    if (growth->is_open && growth->did_not_come)
        return true;
    if (!backs_off)
        return false;
    as_sized_read(target->ref, &sized);
    return sized.what == AS_SIZED_RESOURCE;
}
