/*
 * Objects that `allow.list` of an entry selects. Each is a target of the entry while a list shows
 * it, without an alert, and the entry's schedules hold for these objects only. An object that
 * leaves the list is like one whose schedules end.
 *
 * All entries with `allow.list` are listed every LIST_US, one after the other, in the order of the
 * rule files. A list that is not complete adds targets, and removes none. An object of several
 * lists belongs to the entry whose list has shown it first. An object that an open alert leads to
 * another entry belongs to that entry until the alert ends.
 *
 * Lists are not stored. After a restart, an object counts as listed until the first complete list,
 * if a schedule has set its size.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"

#define LIST_US (60 * AS_US_PER_S)

static struct listing *get_listing(const struct target *target)
{
    return target->parts[CONCERN_LISTINGS];
}

/* Observations of all listed objects are spread, like those of targets without incidents. */
int64_t listings_get_offset(const struct as_engine *engine, const struct target *target)
{
    const uint64_t span = engine->listed_count * (AS_US_PER_S / OBSERVED_PER_SECOND);
    if (!engine->config.spreads_evaluations || !listings_has(target))
        return 0;
    return (int64_t)(engine_hash(ENGINE_HASH_INIT, target->ref->id, strlen(target->ref->id)) %
                     span);
}

void listings_wake(struct as_engine *engine, struct target *target)
{
    const int64_t offset = listings_get_offset(engine, target);
    const as_mono_time due = {as_time_add(engine->mono.us, offset)};
    if (offset == 0 || target->phase != PHASE_IDLE) {
        target->dirty = true;
        target_make_ready(engine, target);
    } else if (due.us < target->deadline.us) {
        target_set_deadline(engine, target, due);
    }
}

static void listing_begin(struct as_engine *engine, struct target *target)
{
    get_listing(target)->is_listed = true;
    engine->listed_count++;
    listings_wake(engine, target);
}

static void listing_end(struct as_engine *engine, struct target *target)
{
    get_listing(target)->is_listed = false;
    engine->listed_count--;
    listings_wake(engine, target);
}

/* Requests the list of the next entry that has one; behind the last, waits for the next round. */
static void listing_request(struct as_engine *engine, size_t from)
{
    struct listings *listings = &engine->listings;
    const struct as_ruleset *ruleset = engine->ruleset;
    size_t at = from;
    listings->due = AS_MONO_NEVER;
    listings->call_id = 0;
    while (at < ruleset->target_count && !ruleset->targets[at]->list_selector)
        at++;
    if (at < ruleset->target_count) {
        listings->call_id = ++engine->next_call_id;
        listings->entry = at;
        struct as_effect *effect = effect_add(engine, AS_EFFECT_LIST_OBJECTS);
        effect->call_id = listings->call_id;
        effect->entry = ruleset->targets[at];
    } else if (from > 0) {
        listings->due = (as_mono_time){as_time_add(engine->mono.us, LIST_US)};
    }
}

/* The answer to a list that is under way is not used. */
void listings_resume(struct as_engine *engine)
{
    const size_t count = engine->ruleset->target_count;
    as_mono_time *complete = as_xcalloc(count + 1, sizeof(*complete));
    for (size_t i = 0; i < count; i++)
        complete[i] = engine->mono;
    free(engine->listings.complete);
    engine->listings.complete = complete;
    listing_request(engine, 0);
}

void listings_on_deadline(struct as_engine *engine)
{
    if (engine->listings.due.us > engine->mono.us)
        return;
    engine->listings.due = AS_MONO_NEVER;
    if (!engine->stopping)
        listing_request(engine, 0);
}

static void listing_take(struct as_engine *engine, const struct as_target_config *entry,
                         const struct as_listed_object *object)
{
    struct as_target_ref *ref = as_target_ref_of_object(entry, object->namespace_, object->name);
    struct target *target = ref ? target_claim(engine, entry, ref) : NULL;
    if (!target)
        return;
    get_listing(target)->round = engine->listings.call_id;
    if (!listings_has(target))
        listing_begin(engine, target);
}

static void listing_drop_others(struct as_engine *engine, size_t entry)
{
    struct target *member;
    LIST_FOREACH (member, target_get_members(engine, engine->ruleset->targets[entry]), of_entry) {
        if (listings_has(member) && get_listing(member)->round != engine->listings.call_id)
            listing_end(engine, member);
    }
}

void listings_on_listed(struct as_engine *engine, uint64_t call_id,
                        const struct as_object_list *list)
{
    struct listings *listings = &engine->listings;
    if (call_id == 0 || call_id != listings->call_id || engine->stopping)
        return;
    for (size_t i = 0; i < list->count; i++)
        listing_take(engine, engine->ruleset->targets[listings->entry], &list->items[i]);
    if (!list->error) {
        listings->complete[listings->entry] = engine->mono;
        listing_drop_others(engine, listings->entry);
    }
    listing_request(engine, listings->entry + 1);
}

/* The entry may be gone, be another one, or have no list any more. */
static bool listing_remake(struct as_engine *engine, struct target *target)
{
    const struct as_target_config *config = target->config;
    const bool may_be = config && config->list_selector &&
                        (!target->entry || strcmp(target->entry, config->name) == 0);
    if (listings_has(target) && !may_be)
        listing_end(engine, target);
    else if (may_be && engine->generation == 0 && schedule_ends_is_open(target)) /* the start */
        listing_begin(engine, target);
    return false;
}

static as_mono_time listing_get_forget_time(const struct target *target)
{
    return listings_has(target) ? AS_MONO_NEVER : (as_mono_time){INT64_MIN};
}

void as_engine_visit_lists(const struct as_engine *engine, as_list_visit_fn *visit, void *context)
{
    for (size_t i = 0; engine->listings.complete && i < engine->ruleset->target_count; i++) {
        const struct as_target_config *entry = engine->ruleset->targets[i];
        const struct target *member;
        if (!entry->list_selector) /* only files have lists; their indices stay */
            continue;
        struct as_list_view view = {.entry = entry->name, .complete = engine->listings.complete[i]};
        LIST_FOREACH (member, target_get_members(engine, engine->ruleset->targets[i]), of_entry)
            view.objects += listings_has(member);
        visit(context, &view);
    }
}

const struct concern concern_listings = {
    .name = "listings",
    .size = sizeof(struct listing),
    .remake = listing_remake,
    .get_forget_time = listing_get_forget_time,
};
