/*
 * Aliases: targets that are one node group at their provider. The rules of precedence are at the
 * head of engine_aliases.h.
 *
 * Invariants: a target is in `backing_waiting` only while a candidate of its family is awaited. An
 * awaited candidate that is idle is in the ready list, or has a deadline at the end of its
 * back-off.
 *
 * The module stores nothing, and changes no size: it answers whether a target may change.
 */
#include "engine_aliases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/engine/engine.h>

#include "engine_concerns.h"
#include "engine_registry.h"

/* What was read longer ago is read anew before another target relies on it. */
#define BACKING_AGE_US (10 * AS_US_PER_MIN)
/* A rival that was not found for this time does not exist: a cloud may deny a group briefly. */
#define MISSING_US   AS_US_PER_MIN
#define OBSTACLE_MAX (AS_MESSAGE_SIZE - 1)

struct backing { /* the resources behind the target (engine_aliases.h); in memory alone */
    TAILQ_ENTRY(backing) link, in_waiting;
    struct target *target;
    bool is_candidate; /* its resources may be another target's, too */
    bool is_known;
    bool is_awaited; /* by others: its resources are to be read */
    bool is_probe;   /* the present observation is only for its resources */
    bool is_waiting; /* for others' resources */
    char **names;    /* as last read */
    size_t count;
    char *family;        /* at the last reload, if a request was under way; NULL */
    uint64_t fixed_from; /* its entry, if without templates, is of these rules or of later ones */
    bool is_due;         /* to be read again before a target relies on it */
    as_mono_time asked;  /* when the present reading, or the last one, began */
    /* When readings began; INT64_MIN: none since the rules were loaded. */
    as_mono_time tried;   /* the last one */
    as_mono_time read;    /* the last one that gave names */
    as_mono_time gained;  /* the first one with the newest name */
    as_mono_time missing; /* the first one in a row that has not found it */
    enum as_reason outcome;
};

static struct backing *get_backing(const struct target *target)
{
    return target->parts[CONCERN_ALIASES];
}

static void backing_forget(struct backing *backing)
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

enum rank { RANK_NEW, RANK_STORED, RANK_FIXED };

static enum rank get_rank(const struct target *target)
{
    if (target->config && !target->config->is_templated)
        return RANK_FIXED;
    return target->is_stored || target->intent || target->in_doubt ? RANK_STORED : RANK_NEW;
}

/* NULL: it is no alias of any target, or no rule can lead to it. */
static const char *find_family(const struct as_engine *engine, const struct target *target)
{
    if (target->config)
        return target->config->family;
    for (size_t i = 0; i < engine->ruleset->target_count; i++) {
        const struct as_target_config *entry = engine->ruleset->targets[i];
        if (entry->family && entry->is_templated && as_target_may_have_id(entry, target->ref->id))
            return entry->family;
    }
    return NULL;
}

static bool is_of_family(const struct as_engine *engine, const struct target *target,
                         const char *family)
{
    const char *own = find_family(engine, target);
    return own && strcmp(own, family) == 0;
}

/* Whether `other` comes before the target if they have a common resource. */
static bool has_precedence(const struct target *other, const struct target *target)
{
    const enum rank its = get_rank(other), own = get_rank(target);
    if (its != own)
        return its > own;
    return its == RANK_FIXED || strcmp(other->ref->id, target->ref->id) < 0;
}

/* Whether the target must yield to `other` if they have a common resource. A target whose entry was
 * removed during its request keeps its family. */
static bool is_rival(const struct as_engine *engine, const struct target *target,
                     const struct target *other)
{
    if (other == target || (get_rank(other) == RANK_NEW && other->open_bindings == 0) ||
        !has_precedence(other, target))
        return false;
    const char *family = find_family(engine, target);
    family = family ? family : get_backing(target)->family;
    return family && is_of_family(engine, other, family);
}

static bool alias_has_name(const struct backing *backing, const char *name)
{
    for (size_t i = 0; i < backing->count; i++) {
        if (strcmp(backing->names[i], name) == 0)
            return true;
    }
    return false;
}

/* NULL: none. */
static const char *find_common(const struct backing *a, const struct backing *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (alias_has_name(b, a->names[i]))
            return a->names[i];
    }
    return NULL;
}

static bool has_family(const struct target *target)
{
    return target->config && target->config->family;
}

/* ---- reading ---- */

static void end_waiting(struct as_engine *engine, struct target *target)
{
    if (!get_backing(target)->is_waiting)
        return;
    get_backing(target)->is_waiting = false;
    TAILQ_REMOVE(&engine->backing_waiting, get_backing(target), in_waiting);
}

static bool is_family_awaited(const struct as_engine *engine, const char *family)
{
    const struct backing *each;
    TAILQ_FOREACH (each, &engine->candidates, link) {
        const struct target *target = each->target;
        if (get_backing(target)->is_awaited && is_of_family(engine, target, family))
            return true;
    }
    return false;
}

static void end_await(struct as_engine *engine, struct target *target)
{
    struct backing *each, *next;
    if (!get_backing(target)->is_awaited)
        return;
    get_backing(target)->is_awaited = false;
    TAILQ_FOREACH_SAFE (each, &engine->backing_waiting, in_waiting, next) {
        struct target *waiting = each->target;
        if (is_family_awaited(engine, waiting->config->family))
            continue;
        end_waiting(engine, waiting);
        waiting->dirty = true;
        target_make_ready(engine, waiting);
    }
}

static void await(struct as_engine *engine, struct target *target)
{
    get_backing(target)->is_awaited = true;
    if (!target_is_backing_off(engine, target))
        target_make_ready(engine, target);
    else if (target->phase == PHASE_IDLE && target->deadline.us > target->retry.us)
        target_set_deadline(engine, target, target->retry);
}

bool alias_is_waiting(const struct target *target)
{
    return get_backing(target)->is_waiting;
}

void alias_begin_reading(const struct as_engine *engine, struct target *target, bool is_probe)
{
    struct backing *backing = get_backing(target);
    backing->asked = engine->mono;
    backing->is_probe = is_probe;
}

const char *const *alias_get_resources(const struct target *target, size_t *count_out)
{
    const struct backing *backing = get_backing(target);
    *count_out = backing->count;
    return (const char *const *)backing->names;
}

bool alias_is_awaited(const struct target *target)
{
    return get_backing(target)->is_awaited;
}

static void alias_keep(struct backing *backing, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!backing->is_known || !alias_has_name(backing, names[i]))
            backing->gained = backing->asked;
    }
    backing_forget(backing);
    backing->is_known = true;
    backing->read = backing->asked;
    backing->names = as_xcalloc(count + 1, sizeof(*backing->names));
    for (; backing->count < count; backing->count++)
        backing->names[backing->count] = as_xstrdup(names[backing->count]);
}

/* An object has one resource, itself: as the provider `clusterapi` names it. */
static void keep_object(struct backing *backing, const char *uid)
{
    char name[sizeof("kubernetes/") + AS_UID_SIZE];
    snprintf(name, sizeof(name), "kubernetes/%s", uid);
    alias_keep(backing, (const char *const[]){name}, 1);
}

bool aliases_see(struct as_engine *engine, struct target *target,
                 const struct as_observation *observation)
{
    struct backing *backing = get_backing(target);
    const bool is_probe = backing->is_probe;
    backing->is_probe = false;
    if (!backing->is_candidate || target->generation != engine->generation)
        return is_probe;
    backing->is_due = false;
    backing->tried = backing->asked;
    backing->outcome = observation->outcome;
    if (observation->outcome != AS_REASON_TARGET_NOT_FOUND)
        backing->missing.us = INT64_MIN;
    else if (backing->missing.us == INT64_MIN)
        backing->missing = backing->asked;
    if (observation->outcome == AS_REASON_APPLIED && target->ref->kind->has_nodes)
        alias_keep(backing, observation->backing, observation->backing_count);
    else if (observation->outcome == AS_REASON_APPLIED)
        keep_object(backing, observation->uid);
    end_await(engine, target);
    return is_probe;
}

/* What was read of a rival before the target has got a resource says nothing about it: the resource
 * may be new behind both names. */
static bool alias_is_older(const struct target *other, const struct target *target)
{
    return get_backing(other)->tried.us < get_backing(target)->gained.us;
}

/* Whether the resources of `other` must be read, and can be read, before the target may rely on
 * them. A target that was only named by its id has no address. */
static bool is_unread(const struct as_engine *engine, const struct target *other,
                      const struct target *target)
{
    const struct backing *backing = get_backing(other);
    const bool needs_all = get_rank(target) != RANK_FIXED;
    if (other->ref->field_count == 0)
        return false;
    if (backing->tried.us == INT64_MIN)
        return true;
    if (target_is_backing_off(engine, other))
        return needs_all && alias_is_older(other, target) &&
               other->failure == AS_REASON_TARGET_NOT_FOUND;
    return (needs_all && backing->is_due) || alias_is_older(other, target) ||
           as_time_add(backing->tried.us, BACKING_AGE_US) <= engine->mono.us;
}

bool alias_is_stale(const struct target *target)
{
    return has_family(target) && !get_backing(target)->is_known;
}

bool alias_must_wait(struct as_engine *engine, struct target *target, bool is_used)
{
    const struct backing *each;
    bool must_wait = false;
    if (!has_family(target))
        return false;
    TAILQ_FOREACH (each, &engine->candidates, link) {
        struct target *other = each->target;
        if (get_rank(other) == RANK_NEW || !is_unread(engine, other, target) ||
            !is_rival(engine, target, other))
            continue;
        target_wake(engine, other);
        await(engine, other);
        must_wait = true;
    }
    if (must_wait && is_used && !get_backing(target)->is_waiting) {
        get_backing(target)->is_waiting = true;
        TAILQ_INSERT_TAIL(&engine->backing_waiting, get_backing(target), in_waiting);
    }
    return must_wait;
}

/* ---- precedence ---- */

static const struct target *alias_find_winner(const struct as_engine *engine,
                                              const struct target *target, const char **common_out)
{
    const struct backing *each;
    TAILQ_FOREACH (each, &engine->candidates, link) {
        const struct target *other = each->target;
        const char *common = find_common(get_backing(target), get_backing(other));
        if (!common || !is_rival(engine, target, other))
            continue;
        *common_out = common;
        return other;
    }
    return NULL;
}

/* Whether it may have a resource of the target without having been seen with it. */
static bool is_unknown(const struct target *other, const struct target *target)
{
    const struct backing *backing = get_backing(other);
    if (other->ref->field_count == 0)
        return false;
    if (backing->is_known && backing->read.us >= get_backing(target)->gained.us)
        return false;
    return alias_is_older(other, target) || backing->outcome != AS_REASON_TARGET_NOT_FOUND ||
           backing->missing.us == INT64_MIN ||
           backing->tried.us < as_time_add(backing->missing.us, MISSING_US);
}

/* Only for a target of a template: see the header. All that are found are read again before the
 * target's next try. */
static const struct target *find_unknown(struct as_engine *engine, const struct target *target)
{
    const struct target *found = NULL;
    const struct backing *each;
    if (get_rank(target) == RANK_FIXED)
        return NULL;
    TAILQ_FOREACH (each, &engine->candidates, link) {
        struct target *other = each->target;
        if (get_rank(other) == RANK_NEW || !is_unknown(other, target) ||
            !is_rival(engine, target, other))
            continue;
        get_backing(other)->is_due = true;
        found = found ? found : other;
    }
    return found;
}

bool alias_is_refused(const struct as_engine *engine, const struct target *target)
{
    const char *common;
    return has_family(target) && alias_find_winner(engine, target, &common);
}

const char *alias_find_obstacle(struct as_engine *engine, const struct target *target)
{
    char text[OBSTACLE_MAX + 1];
    const char *common;
    if (!has_family(target))
        return NULL;
    const struct target *winner = alias_find_winner(engine, target, &common);
    const struct target *unknown = winner ? NULL : find_unknown(engine, target);
    if (winner && get_rank(target) == RANK_FIXED)
        snprintf(text, sizeof(text), "the same group as target %s, by %s: neither is changed",
                 winner->ref->id, common);
    else if (winner)
        snprintf(text, sizeof(text), "the same group as target %s, which has precedence, by %s",
                 winner->ref->id, common);
    else if (unknown)
        snprintf(text, sizeof(text), "it may be the same group as target %s, which is not read: %s",
                 unknown->ref->id,
                 get_backing(unknown)->outcome == AS_REASON_APPLIED
                     ? "not yet"
                     : as_reason_get_word(get_backing(unknown)->outcome));
    else
        return NULL;
    return as_arena_strdup(&engine->arena, text);
}

/* Whether its entry was added during the target's request, and its resources are not read. */
static bool is_new(const struct target *other, const struct target *target)
{
    return get_rank(target) != RANK_FIXED && get_rank(other) == RANK_FIXED &&
           get_backing(other)->fixed_from > target->intent->generation &&
           !get_backing(other)->is_known;
}

const char *as_engine_find_new_rival(const struct as_engine *engine, const char *id)
{
    const struct target *target = target_find_id(engine, id);
    const struct backing *each;
    if (!target || target->phase != PHASE_SCALING ||
        target->intent->generation == engine->generation)
        return NULL;
    TAILQ_FOREACH (each, &engine->candidates, link) {
        const struct target *other = each->target;
        if ((is_new(other, target) || find_common(get_backing(target), get_backing(other))) &&
            is_rival(engine, target, other))
            return other->ref->id;
    }
    return NULL;
}

/* ---- the end ---- */

static void alias_forget(struct as_engine *engine, struct target *target)
{
    struct backing *backing = get_backing(target);
    end_await(engine, target);
    end_waiting(engine, target);
    if (backing->is_candidate)
        TAILQ_REMOVE(&engine->candidates, backing, link);
    backing->is_candidate = false;
}

/* The resources of a request under way are kept, to be compared with those of new entries. */
static void engine_aliases_forget(struct as_engine *engine, struct target *target)
{
    struct backing *backing = get_backing(target);
    const char *family = find_family(engine, target);
    if (target->phase != PHASE_SCALING) {
        backing_forget(backing);
    } else if (family) {
        free(backing->family);
        backing->family = as_xstrdup(family);
    }
    backing->is_known = false;
}

void aliases_on_rules(struct as_engine *engine)
{
    const struct backing *each;
    TAILQ_FOREACH (each, &engine->candidates, link) {
        struct target *target = each->target;
        engine_aliases_forget(engine, target);
        if (get_rank(target) != RANK_FIXED)
            get_backing(target)->fixed_from = engine->generation;
        get_backing(target)->tried.us = get_backing(target)->missing.us = INT64_MIN;
        get_backing(target)->read.us = get_backing(target)->gained.us = INT64_MIN;
        get_backing(target)->is_awaited = get_backing(target)->is_due = false;
        target->dirty = target->dirty || get_backing(target)->is_waiting;
        end_waiting(engine, target);
    }
}

static void alias_init(struct target *target)
{
    get_backing(target)->target = target;
}

static void alias_deinit(struct target *target)
{
    backing_forget(get_backing(target));
}

/* A node group may be another one under another name; of other kinds their entry says so. */
static void alias_on_entry(struct as_engine *engine, struct target *target)
{
    struct backing *backing = get_backing(target);
    if (backing->is_candidate ||
        !(target->ref->kind->has_nodes || (target->config && target->config->family)))
        return;
    backing->is_candidate = true;
    backing->fixed_from = engine->generation;
    backing->tried.us = backing->read.us = INT64_MIN;
    backing->gained.us = backing->missing.us = INT64_MIN;
    TAILQ_INSERT_TAIL(&engine->candidates, backing, link);
}

static bool alias_needs_address(const struct target *target)
{
    return !target->config && get_backing(target)->is_candidate && target->ref->field_count > 0;
}

static const char *alias_find_obstacle_to(const struct as_engine *engine,
                                          const struct target *target, const struct intent *intent)
{
    (void)intent;
    return alias_is_refused(engine, target)
               ? "not sent, as another target was found to be the same "
                 "group since it was decided"
               : NULL;
}

const struct concern concern_aliases = {
    .name = "aliases",
    .find_obstacle = alias_find_obstacle_to,
    .size = sizeof(struct backing),
    .init = alias_init,
    .deinit = alias_deinit,
    .needs_address = alias_needs_address,
    .on_entry = alias_on_entry,
    .forget = alias_forget,
};
