/*
 * All targets: found by their address, assigned to their entry of the rule files; their phase,
 * deadline and back-off, and the list of those to be evaluated in this step.
 *
 * A failed target waits for its deadline, whatever comes: more alerts do not mean more requests to
 * a broken API server. A target that was not found waits less for a new incident.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"
#include "engine_state.h"

#define BACKOFF_FIRST_US (1 * AS_US_PER_S)
#define BACKOFF_MAX_US   (60 * AS_US_PER_S)
/* The first wait after forbidden, not found, rejected. */
#define BACKOFF_REFUSED_US (15 * AS_US_PER_S)
/* For a new incident, a target that was not found is observed sooner: it may exist by now. This is
 * the minimum between two observations, however many incidents come. */
#define NOT_FOUND_LOOK_US  (5 * AS_US_PER_S)
#define RETRY_AFTER_MAX_US (10 * AS_US_PER_MIN)
#define CONFLICTS_AT_ONCE  3 /* conflicts in a row that are retried without waiting */
#define KEEP_LOCKS_US      AS_US_PER_DAY

/* Effects of this step may point to the old reference. */
static void take_ref(struct as_engine *engine, struct target *target,
                     struct as_target_ref *ref_taken)
{
    engine->former_refs = as_xgrow(engine->former_refs, engine->former_ref_count,
                                   &engine->former_ref_capacity, sizeof(*engine->former_refs));
    engine->former_refs[engine->former_ref_count++] = target->ref;
    target->ref = ref_taken;
}

static struct target *find_in_tree(const struct as_engine *engine, const char *key)
{
    struct as_target_ref ref = {.key = key};
    struct target wanted = {.ref = &ref};
    return RB_FIND(target_tree, (struct target_tree *)(uintptr_t)&engine->targets, &wanted);
}

static int target_compare_places(const void *left, const void *right)
{
    const struct target_place *a = left, *b = right;
    return strcmp(a->key, b->key);
}

/* By the key of one of its ids. NULL: none. */
static struct target *target_find(const struct as_engine *engine, const char *key)
{
    const struct target_place wanted = {.key = (char *)(uintptr_t)key};
    const struct target_place *place = engine->place_count > 0
                                           ? bsearch(&wanted, engine->places, engine->place_count,
                                                     sizeof(*engine->places), target_compare_places)
                                           : NULL;
    return place ? place->target : find_in_tree(engine, key);
}

struct target *target_find_id(const struct as_engine *engine, const char *id)
{
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(id);
    return target_find(engine, key);
}

static struct target *engine_targets_find(const struct as_engine *engine,
                                          const struct as_target_ref *ref)
{
    return target_find(engine, ref->key);
}

static struct target *target_make(struct as_engine *engine, struct as_target_ref *ref_taken)
{
    struct target *target = target_new(engine, ref_taken);
    target->keep_us = KEEP_LOCKS_US;
    RB_INSERT(target_tree, &engine->targets, target);
    engine->target_count++;
    FOR_CONCERNS (engine, concern)
        if (concern->on_entry)
            concern->on_entry(engine, target);
    return target;
}

/* A reference with only an id, which is enough to find locks; the address comes with the first
 * alert or rule. */
struct as_target_ref *target_ref_of_id(const char *id)
{
    const struct as_target_kind *kind = as_target_kind_find_of_id(id);
    return as_target_ref_make(kind ? kind : as_target_kinds[0], id, NULL, 0);
}

struct target *target_get(struct as_engine *engine, struct as_target_ref *ref_taken)
{
    struct target *target = engine_targets_find(engine, ref_taken);
    if (!target)
        return target_make(engine, ref_taken);
    if (target->ref->field_count == 0) /* restored with only its id */
        take_ref(engine, target, ref_taken);
    else
        as_target_ref_free(ref_taken);
    return target;
}

const struct member_list *target_get_members(const struct as_engine *engine,
                                             const struct as_target_config *config)
{
    static const struct member_list none = {NULL};
    struct entry_members *members;
    HASH_FIND_PTR(engine->members, &config, members);
    return members ? &members->list : &none;
}

static struct member_list *members_take(struct as_engine *engine,
                                        const struct as_target_config *config)
{
    struct entry_members *members;
    HASH_FIND_PTR(engine->members, &config, members);
    if (!members) {
        members = as_xcalloc(1, sizeof(*members));
        members->config = config;
        HASH_ADD_PTR(engine->members, config, members);
    }
    return &members->list;
}

static void members_free(struct as_engine *engine, struct entry_members *members)
{
    HASH_DEL(engine->members, members);
    free(members);
}

static void targets_free_members(struct as_engine *engine)
{
    struct entry_members *members, *next;
    HASH_ITER (hh, engine->members, members, next)
        members_free(engine, members);
}

void targets_forget_members(struct as_engine *engine, const struct as_ruleset *next)
{
    for (size_t i = 0; i < next->removed_count; i++) {
        const struct as_target_config *config = next->removed[i]->targets[0];
        struct entry_members *members;
        HASH_FIND_PTR(engine->members, &config, members);
        if (members)
            members_free(engine, members);
    }
}

void target_set_config(struct as_engine *engine, struct target *target,
                       const struct as_target_config *config)
{
    if (target->config == config)
        return;
    if (target->config)
        LIST_REMOVE(target, of_entry);
    target->config = config;
    if (!config)
        return;
    LIST_INSERT_HEAD(members_take(engine, config), target, of_entry);
    FOR_CONCERNS (engine, concern)
        if (concern->on_entry)
            concern->on_entry(engine, target);
}

/* True also if the former has no address. */
static bool has_url_of(const struct target *former, const struct as_target_ref *ref)
{
    AS_CLEANUP(as_free_p) char *id = as_target_ref_make_url_id(former->ref);
    AS_CLEANUP(as_free_p) char *other = as_target_ref_make_url_id(ref);
    return former->ref->field_count == 0 || (id && other && as_target_is_same(id, other));
}

/* An HTTP group may be known under its other id: by the name, before its entry had a template, or
 * by the URL, before its entry had a name. Its locks and its pause count. */
static void unite_former(struct as_engine *engine, struct target *target,
                         const struct as_target_ref *ref)
{
    AS_CLEANUP(as_free_p)
    char *id = target->config->is_templated ? as_target_ref_make_name_id(ref)
                                            : as_target_ref_make_url_id(ref);
    AS_CLEANUP(as_free_p) char *key = id ? as_target_key_make(id) : NULL;
    struct target *former = key ? find_in_tree(engine, key) : NULL;
    if (!former || former->config || !has_url_of(former, ref))
        return;
    target_unite_locks(target, &former->locks);
    FOR_CONCERNS (engine, concern)
        if (concern->unite)
            concern->unite(engine, target, former);
}

struct target *target_claim(struct as_engine *engine, const struct as_target_config *config,
                            struct as_target_ref *ref_taken)
{
    struct target *target = engine_targets_find(engine, ref_taken);
    const bool is_free =
        !target || !target->config ||
        (target->config->is_templated && target->open_bindings == 0 && !listings_has(target));
    if (!target)
        target = target_make(engine, ref_taken);
    else if (is_free)
        take_ref(engine, target, ref_taken); /* requests use the address as written now */
    if (is_free)
        target_set_config(engine, target, config);
    const bool is_ours = target->config == config;
    if (is_ours)
        unite_former(engine, target, ref_taken);
    if (target->ref != ref_taken)
        as_target_ref_free(ref_taken);
    return is_ours ? target : NULL;
}

void target_make_ready(struct as_engine *engine, struct target *target)
{
    if (target->is_ready || target->phase != PHASE_IDLE)
        return;
    target->is_ready = true;
    TAILQ_INSERT_TAIL(&engine->ready, target, in_ready);
}

void target_set_deadline(struct as_engine *engine, struct target *target, as_mono_time deadline)
{
    if (target->deadline.us != AS_MONO_NEVER.us)
        RB_REMOVE(deadline_tree, &engine->deadlines, target);
    target->deadline = deadline;
    if (deadline.us != AS_MONO_NEVER.us)
        RB_INSERT(deadline_tree, &engine->deadlines, target);
}

void target_set_deadline_in(struct as_engine *engine, struct target *target, int64_t us)
{
    target_set_deadline(engine, target, (as_mono_time){as_time_add(engine->mono.us, us)});
}

/* Each phase but idle waits for the answer to one ticket; observing and scaling targets are found
 * by their tickets. */
void target_set_phase(struct as_engine *engine, struct target *target, enum phase phase)
{
    trace_phase(engine, target, phase);
    if (target->phase == PHASE_OBSERVING || target->phase == PHASE_SCALING)
        RB_REMOVE(call_id_tree, &engine->call_ids, target);
    engine->busy_count -= target->phase != PHASE_IDLE;
    target->phase = phase;
    engine->busy_count += phase != PHASE_IDLE;
    if (phase == PHASE_OBSERVING || phase == PHASE_SCALING) {
        target->call_id = ++engine->next_call_id;
        RB_INSERT(call_id_tree, &engine->call_ids, target);
    }
}

bool target_is_backing_off(const struct as_engine *engine, const struct target *target)
{
    return target->retry.us > engine->mono.us;
}

const struct as_target_config *target_find_entry(const struct as_engine *engine,
                                                 const struct target *target)
{
    if (target->config || !target->entry)
        return target->config;
    for (size_t i = 0; i < engine->ruleset->target_count; i++) {
        const struct as_target_config *entry = engine->ruleset->targets[i];
        if (strcmp(entry->name, target->entry) == 0 &&
            as_target_may_have_id(entry, target->ref->id) && as_target_allows(entry, target->ref))
            return entry;
    }
    return NULL;
}

bool target_is_awaited(const struct as_engine *engine, const struct target *target)
{
    return !target->config && target->entry && as_ruleset_awaits(engine->ruleset, target->entry);
}

void target_note_entry(struct target *target)
{
    if (!target->config)
        return;
    free(target->entry);
    target->entry = as_xstrdup(target->config->name);
}

bool target_recover_config(struct as_engine *engine, struct target *target)
{
    const struct as_target_config *entry = target_find_entry(engine, target);
    if (entry)
        target_set_config(engine, target, entry);
    return entry != NULL;
}

struct target *target_find_pool(const struct as_engine *engine, const struct target *target)
{
    const struct as_target_config *config = target->config;
    return config && config->of_pool != AS_NO_TARGET
               ? LIST_FIRST(target_get_members(engine, engine->ruleset->targets[config->of_pool]))
               : NULL;
}

const struct as_nodes_config *target_get_nodes(const struct target *target)
{
    const struct as_target_config *config = target->config;
    return config && config->kind->has_nodes ? &config->nodes : NULL;
}

/* Locks are kept as long as the longest of them may matter. The last step down is kept as long as
 * an incident that was reported before it. */
void target_set_keep(const struct as_engine *engine, struct target *target)
{
    if (!target->config)
        return;
    const struct as_cooldown *cooldown = &target->config->bounds.cooldown;
    const int64_t locks[] = {cooldown->up_us,
                             cooldown->down_us,
                             cooldown->up_after_down_us,
                             as_cooldown_get_down_after_down(cooldown),
                             history_get_span(engine),
                             engine->config.incident_expiry_us};
    target->keep_us = KEEP_LOCKS_US;
    for (size_t i = 0; i < AS_ARRAY_SIZE(locks); i++) {
        if (locks[i] > target->keep_us)
            target->keep_us = locks[i];
    }
}

/* Exponential with jitter (50 to 100 %). Longer for failures that a quick retry will not change. */
void target_back_off(struct as_engine *engine, struct target *target, enum as_reason outcome,
                     int64_t retry_after_us)
{
    if (outcome == AS_REASON_CONFLICT && ++target->conflicts <= CONFLICTS_AT_ONCE) {
        target->dirty = true;
        return;
    }
    const bool refused = outcome == AS_REASON_FORBIDDEN || outcome == AS_REASON_REJECTED ||
                         outcome == AS_REASON_TARGET_NOT_FOUND ||
                         outcome == AS_REASON_TARGET_NOT_ALLOWED ||
                         outcome == AS_REASON_DID_NOT_COME;
    int64_t delay = refused ? BACKOFF_REFUSED_US : BACKOFF_FIRST_US;
    for (unsigned i = 0; i < target->failures && delay < BACKOFF_MAX_US; i++)
        delay *= 2;
    if (delay > BACKOFF_MAX_US)
        delay = BACKOFF_MAX_US;
    if (target->failures++ == 0)
        target->failing_since = moment_now(engine);
    delay = delay / 2 + (int64_t)as_random_get_below(&engine->random, (uint64_t)delay / 2);
    if (retry_after_us > RETRY_AFTER_MAX_US)
        retry_after_us = RETRY_AFTER_MAX_US;
    if (delay < retry_after_us)
        delay = retry_after_us;
    target_set_deadline_in(engine, target, delay);
    target->failed = engine->mono;
    target->retry = target->deadline;
}

/* For a new incident, whose commit evaluates the target. */
void target_wake(struct as_engine *engine, struct target *target)
{
    const as_mono_time early = {as_time_add(target->failed.us, NOT_FOUND_LOOK_US)};
    if (target->failure != AS_REASON_TARGET_NOT_FOUND || target->retry.us <= early.us)
        return;
    target->retry = early;
    if (target->phase == PHASE_IDLE && target_is_backing_off(engine, target))
        target_set_deadline(engine, target, early);
}

as_mono_time target_limit_observation(const struct as_engine *engine, const struct target *target,
                                      as_mono_time next)
{
    const as_mono_time latest = {as_time_add(engine->mono.us, REEVALUATE_US)};
    return target->uid[0] && latest.us < next.us ? latest : next;
}

static void targets_free_places(struct as_engine *engine)
{
    for (size_t i = 0; i < engine->place_count; i++)
        free(engine->places[i].key);
    free(engine->places);
    engine->places = NULL;
    engine->place_count = 0;
}

void targets_deinit(struct as_engine *engine)
{
    targets_free_places(engine);
    targets_free_members(engine);
}

/* No template may claim the URL of a group that has another id. */
static void note_places(struct as_engine *engine)
{
    struct target *target;
    size_t count = 0;
    engine->places = as_xcalloc(engine->named_count + 1, sizeof(*engine->places));
    RB_FOREACH (target, target_tree, &engine->targets) {
        AS_CLEANUP(as_free_p)
        char *id = target->config ? as_target_ref_make_url_id(target->ref) : NULL;
        AS_CLEANUP(as_free_p) char *key = id ? as_target_key_make(id) : NULL;
        if (!key || strcmp(key, target->ref->key) == 0)
            continue;
        engine->places[count++] = (struct target_place){.key = key, .target = target};
        key = NULL;
    }
    engine->place_count = count;
    qsort(engine->places, count, sizeof(*engine->places), target_compare_places);
}

struct target *target_make_named(struct as_engine *engine, const struct as_target_config *config)
{
    struct as_target_ref *ref;
    if (as_target_ref_new(config, NULL, NULL, &ref, NULL) != 0)
        return NULL; /* cannot happen: the configuration was checked */
    struct target *target = target_claim(engine, config, ref);
    if (!target)
        return NULL; /* cannot happen: two entries with one address are an error */
    target->dirty = true;
    engine->named_count++;
    return target;
}

/* Targets with a plain address exist from the start: for metrics and the API, and because no
 * template may claim their address. */
static void targets_make_named(struct as_engine *engine)
{
    engine->named_count = 0;
    engine->has_templates = false;
    targets_free_places(engine);
    for (size_t i = 0; i < engine->ruleset->target_count; i++) {
        const struct as_target_config *config = engine->ruleset->targets[i];
        engine->has_templates = engine->has_templates || config->is_templated;
        if (!config->is_templated)
            (void)target_make_named(engine, config);
    }
    note_places(engine);
}

void targets_reset_entries(struct as_engine *engine)
{
    struct target *target;
    RB_FOREACH (target, target_tree, &engine->targets) {
        if (target->config && target->config->is_templated) /* an alert gave it */
            target_note_entry(target);
        target_set_config(engine, target, NULL);
    }
    targets_free_members(engine);
    targets_make_named(engine);
}
