/*
 * Objects that `allow.list` of an entry selects. Each is a target of the entry while a list shows
 * it, without an alert, so that its schedules hold.
 *
 * All entries with `allow.list` are listed every LIST_US, one after the other, in the order of the
 * rule files. A list that is not complete adds targets, and removes none. An object of several
 * lists belongs to the entry whose list has shown it first. An object that an open alert leads to
 * another entry belongs to that entry until the alert ends.
 *
 * Nothing is stored: a restart begins with a list.
 */
#include <stdlib.h>

#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"

#define LIST_US (60 * AS_US_PER_S)

static struct listing *get_listing(const struct target *target)
{
    return target->parts[CONCERN_LISTINGS];
}

static void listing_begin(struct as_engine *engine, struct target *target)
{
    get_listing(target)->is_listed = true;
    engine->listed_count++;
    target->dirty = true;
    target_make_ready(engine, target);
}

static void listing_end(struct as_engine *engine, struct target *target)
{
    get_listing(target)->is_listed = false;
    engine->listed_count--;
    target->dirty = true;
    target_make_ready(engine, target);
}

/* Requests the list of the next entry that has one; behind the last, waits for the next round. */
static void listing_request(struct as_engine *engine, size_t from)
{
    struct listings *listings = &engine->listings;
    const struct as_ruleset *ruleset = engine->ruleset;
    size_t at = from;
    listings->due = AS_MONO_NEVER;
    while (at < ruleset->target_count && !ruleset->targets[at].list_selector)
        at++;
    if (at < ruleset->target_count) {
        listings->call_id = ++engine->next_call_id;
        listings->generation = engine->generation;
        listings->entry = at;
        struct as_effect *effect = effect_add(engine, AS_EFFECT_LIST_OBJECTS);
        effect->call_id = listings->call_id;
        effect->entry = &ruleset->targets[at];
    } else if (from > 0) {
        listings->due = (as_mono_time){as_time_add(engine->mono.us, LIST_US)};
    }
}

/* A list that is under way goes on. With other rules its answer is not used. */
void listings_resume(struct as_engine *engine)
{
    const size_t count = engine->ruleset->target_count;
    as_mono_time *complete = as_xcalloc(count + 1, sizeof(*complete));
    for (size_t i = 0; i < count; i++)
        complete[i] = engine->mono;
    free(engine->listings.complete);
    engine->listings.complete = complete;
    if (engine->listings.call_id == 0)
        listing_request(engine, 0);
}

void listings_on_deadline(struct as_engine *engine)
{
    if (engine->listings.due.us <= engine->mono.us && !engine->stopping)
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
    LIST_FOREACH (member, &engine->members[entry], of_entry) {
        if (listings_has(member) && get_listing(member)->round != engine->listings.call_id)
            listing_end(engine, member);
    }
}

void listings_on_listed(struct as_engine *engine, uint64_t call_id,
                        const struct as_object_list *list)
{
    struct listings *listings = &engine->listings;
    if (call_id == 0 || call_id != listings->call_id)
        return;
    const bool is_current = listings->generation == engine->generation;
    for (size_t i = 0; is_current && !engine->stopping && i < list->count; i++)
        listing_take(engine, &engine->ruleset->targets[listings->entry], &list->items[i]);
    if (is_current && !list->error) {
        listings->complete[listings->entry] = engine->mono;
        listing_drop_others(engine, listings->entry);
    }
    listings->call_id = 0;
    if (!engine->stopping)
        listing_request(engine, is_current ? listings->entry + 1 : 0);
}

/* The entry may be gone, or has no list any more. */
static bool listing_remake(struct as_engine *engine, struct target *target)
{
    if (listings_has(target) && !(target->config && target->config->list_selector))
        listing_end(engine, target);
    return false;
}

static as_mono_time listing_get_forget_time(const struct target *target)
{
    return listings_has(target) ? AS_MONO_NEVER : (as_mono_time){INT64_MIN};
}

void as_engine_visit_lists(const struct as_engine *engine, as_list_visit_fn *visit, void *context)
{
    for (size_t i = 0; engine->listings.complete && i < engine->ruleset->target_count; i++) {
        const struct as_target_config *entry = &engine->ruleset->targets[i];
        struct as_list_view view = {.entry = entry->name, .complete = engine->listings.complete[i]};
        const struct target *member;
        if (!entry->list_selector)
            continue;
        LIST_FOREACH (member, &engine->members[i], of_entry)
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
