/*
 * The engine's state: its trees and lists, targets with the states of their concerns, incidents and
 * intents, and their stored form.
 *
 * Invariants: what a part keeps it has copied; what is filled for the store is memory of the step.
 * The module decides nothing. It calls other modules of the engine only by the table of concerns.
 */
#include "engine_state.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>

#include "engine_concerns.h"
#include "engine_registry.h"

/* Trees, lists, and the memory of all other parts */

#define CREDENTIALS_MAX 64 /* per incident */

#define CLOCK_JUMP_US AS_US_PER_S

static int incident_compare(const struct incident *a, const struct incident *b)
{
    const int order = as_digest_compare(&a->state.key.digest, &b->state.key.digest);
    return order ? order : strcmp(a->state.key.owner, b->state.key.owner);
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

static int call_id_compare(const struct target *a, const struct target *b)
{
    return (a->call_id > b->call_id) - (a->call_id < b->call_id);
}

static int group_compare(const struct group *a, const struct group *b)
{
    return as_rule_compare(a->rule, b->rule);
}

static int ask_compare(const struct ask *a, const struct ask *b)
{
    return (a->call_id > b->call_id) - (a->call_id < b->call_id);
}

RB_GENERATE(incident_tree, incident, by_digest, incident_compare)
RB_GENERATE(target_tree, target, by_id, target_compare)
RB_GENERATE(deadline_tree, target, by_deadline, deadline_compare)
RB_GENERATE(call_id_tree, target, by_call_id, call_id_compare)
RB_GENERATE(group_tree, group, in_target, group_compare)
RB_GENERATE(ask_tree, ask, by_call_id, ask_compare)

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

/* Lists of texts that an incident owns. */

static void texts_add(const char *const **texts, size_t *count, const char *text)
{
    const char **more = as_xrealloc_array((void *)(uintptr_t)*texts, *count + 1, sizeof(*more));
    more[(*count)++] = as_xstrdup(text);
    *texts = more;
}

static void texts_free(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)texts[i]);
    free((void *)(uintptr_t)texts);
}

void incident_free(struct incident *incident)
{
    for (uint32_t i = 0; i < incident->kept_count; i++)
        progress_deinit(&incident->kept[i]);
    free(incident->kept);
    free(incident->always);
    free((char *)(uintptr_t)incident->state.key.owner);
    texts_free(incident->state.receivers, incident->state.receiver_count);
    texts_free(incident->state.credentials, incident->state.credential_count);
    free(incident->reported);
    free(incident->bindings);
    as_labels_free((struct as_labels *)(uintptr_t)incident->state.labels);
    as_labels_free((struct as_labels *)(uintptr_t)incident->state.annotations);
    free((char *)(uintptr_t)incident->state.generator_url);
    free((char *)(uintptr_t)incident->state.external_url);
    free(incident);
}

void incident_print(const struct incident *incident, char text_out[AS_DIGEST_TEXT_SIZE])
{
    if (incident->always)
        snprintf(text_out, AS_DIGEST_TEXT_SIZE, AS_INCIDENT_ALWAYS);
    else
        as_digest_print(&incident->state.key.digest, text_out);
}

void incident_add_receiver(struct incident *incident, const char *receiver)
{
    texts_add(&incident->state.receivers, &incident->state.receiver_count, receiver);
}

bool incident_add_credential(struct incident *incident, const char *credential)
{
    for (uint32_t i = 0; i < incident->state.credential_count; i++) {
        if (strcmp(incident->state.credentials[i], credential) == 0)
            return false;
    }
    if (incident->state.credential_count == CREDENTIALS_MAX)
        return false;
    incident->reported = as_xrealloc_array(incident->reported, incident->state.credential_count + 1,
                                           sizeof(*incident->reported));
    incident->reported[incident->state.credential_count].us = INT64_MIN;
    texts_add(&incident->state.credentials, &incident->state.credential_count, credential);
    return true;
}

void names_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

void ask_free(struct ask *ask)
{
    as_arena_deinit(&ask->arena);
    free(ask);
}

void pause_free(struct as_pause_state *pause)
{
    as_rows_free_texts(as_pause_rows, pause);
    *pause = (struct as_pause_state){0};
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

#define ALIGN(size)                                                                                \
    (((size) + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t))

static struct target *target_alloc(const struct as_engine *engine)
{
    size_t count = 0, size = 0;
    FOR_CONCERNS (engine, concern) {
        count++;
        size += ALIGN(concern->size);
    }
    const size_t head = ALIGN(sizeof(struct target) + count * sizeof(void *));
    struct target *target = as_xcalloc(1, head + size);
    char *at = (char *)target + head;
    count = 0;
    FOR_CONCERNS (engine, concern) {
        target->parts[count++] = concern->size > 0 ? at : NULL;
        at += ALIGN(concern->size);
    }
    return target;
}

struct target *target_new(const struct as_engine *engine, struct as_target_ref *ref_taken)
{
    struct target *target = target_alloc(engine);
    target->ref = ref_taken;
    target->deadline = AS_MONO_NEVER;
    target->failure = AS_REASON_APPLIED;
    target->observed = target->locks.last_up = target->locks.last_down = AS_MOMENT_NEVER;
    target->locks.dry_last_up = target->locks.dry_last_down = target->locks.last_step_down =
        AS_MOMENT_NEVER;
    target->locks.last_return = AS_MOMENT_NEVER;
    target->born = AS_MOMENT_NEVER;
    target->retry.us = INT64_MIN;
    RB_INIT(&target->groups);
    TAILQ_INIT(&target->asks);
    target->ready = -1;
    FOR_CONCERNS (engine, concern)
        if (concern->init)
            concern->init(target);
    return target;
}

struct target *target_free(const struct as_engine *engine, struct target *target)
{
    FOR_CONCERNS (engine, concern)
        if (concern->deinit)
            concern->deinit(target);
    asked_clear(&target->asked);
    free(target->sender);
    free(target->entry);
    held_free(target);
    free(target->verdict.rule);
    free(target->verdict.holder);
    free(target->dry_verdict.rule);
    free(target->dry_verdict.holder);
    as_target_ref_free(target->ref);
    free(target);
    return NULL;
}

/*
 * The conversion of the engine's state, piece by piece: for the store, in the step's memory, and
 * back, before the first event. A row comes before everything else that is known of its target.
 */

struct as_policy_ref target_get_policy(const struct target *target)
{
    const struct as_policy_terms *policy = target->config ? target->config->policy : NULL;
    return policy ? (struct as_policy_ref){policy->namespace, policy->name, policy->uid}
                  : (struct as_policy_ref){.name = NULL};
}

struct as_incident_target binding_get_target(const struct binding *binding)
{
    const struct target *target = binding->group->target;
    return (struct as_incident_target){
        .target = target->ref->id,
        .rule = binding->group->rule->name,
        .replicas = target->has_size ? target->replicas : -1,
    };
}

struct as_incident_state *incident_fill_state(struct as_engine *engine,
                                              const struct incident *incident)
{
    struct as_incident_state *state = as_arena_alloc(&engine->arena, 1, sizeof(*state));
    *state = incident->state;
    struct as_progress *progress = as_arena_alloc(
        &engine->arena, incident->binding_count + incident->kept_count, sizeof(*progress));
    state->progress = progress;
    for (uint32_t i = 0; i < incident->kept_count; i++) { /* bound in the same step: it is freed */
        struct as_progress *kept = &progress[state->progress_count++];
        *kept = incident->kept[i];
        kept->rule = as_arena_strdup(&engine->arena, kept->rule);
        kept->target = as_arena_strdup(&engine->arena, kept->target);
    }
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct binding *binding = &incident->bindings[i];
        if (binding->steps == 0)
            continue;
        progress[state->progress_count++] = (struct as_progress){
            .rule = binding->group->rule->name,
            .target = binding->group->target->ref->id,
            .steps = binding->steps,
            .applied = binding->applied,
            .origin = binding->origin,
        };
    }
    return state;
}

static bool take_link(const char **link, const char *url)
{
    if (*link || as_str_is_empty(url))
        return false;
    *link = as_xstrdup(url);
    return true;
}

bool incident_take_links(struct incident *incident, const char *generator_url,
                         const char *external_url)
{
    const bool has_generator = take_link(&incident->state.generator_url, generator_url);
    const bool has_external = take_link(&incident->state.external_url, external_url);
    return has_generator || has_external;
}

static struct as_progress *copy_progress(const struct as_progress *progress, size_t count)
{
    struct as_progress *copies = as_xcalloc(count + 1, sizeof(*copies));
    for (size_t i = 0; i < count; i++) {
        copies[i] = progress[i];
        copies[i].rule = as_xstrdup(progress[i].rule);
        copies[i].target = as_xstrdup(progress[i].target);
    }
    return copies;
}

/* With the next serial; not in the tree yet. */
struct incident *incident_of_state(struct as_engine *engine, const struct as_incident_state *state)
{
    struct incident *incident = as_xcalloc(1, sizeof(*incident));
    incident->state = *state;
    incident->state.key.owner = as_xstrdup(state->key.owner);
    incident->serial = ++engine->next_serial;
    incident->seen_stored = state->seen.mono;
    /* `seen` is stored late, never by more than this */
    if (state->is_open)
        incident->state.seen.mono.us = as_time_add(
            incident->state.seen.mono.us, engine->config.incident_expiry_us / SEEN_STORE_PART);
    incident->listed.us = INT64_MIN;
    incident->late_until.us = INT64_MIN;
    incident->state.receiver_count = incident->state.credential_count = 0;
    incident->state.receivers = incident->state.credentials = NULL;
    for (size_t i = 0; i < state->receiver_count; i++)
        incident_add_receiver(incident, state->receivers[i]);
    for (size_t i = 0; i < state->credential_count; i++)
        (void)incident_add_credential(incident, state->credentials[i]);
    incident->state.labels = state->labels ? as_labels_copy(state->labels) : NULL;
    incident->state.annotations = state->annotations ? as_labels_copy(state->annotations) : NULL;
    incident->state.generator_url = incident->state.external_url = NULL;
    (void)incident_take_links(incident, state->generator_url, state->external_url);
    incident->kept = copy_progress(state->progress, state->progress_count);
    incident->kept_count = (uint32_t)state->progress_count;
    incident->state.progress = NULL;
    incident->state.progress_count = 0;
    return incident;
}

struct as_intent_state *intent_fill_state(struct as_engine *engine, const struct target *target,
                                          const struct intent *intent, bool in_doubt)
{
    struct as_intent_state *state = as_arena_alloc(&engine->arena, 1, sizeof(*state));
    const struct as_target_config *config = target->config;
    *state = intent->state;
    state->ref = target->ref;
    state->stored_as = target->ref->key;
    state->uid = target->uid;
    state->in_doubt = in_doubt;
    state->marks_nodes = config && as_target_config_has_nodes(config) && state->to <= state->from;
    return state;
}

static struct intent *intent_of_state(const struct as_engine *engine,
                                      const struct as_intent_state *state)
{
    struct intent *intent = as_xcalloc(1, sizeof(*intent));
    intent->state = *state;
    intent->state.rule = as_xstrdup(state->rule);
    intent->sent = state->at.mono;
    intent->until.us = as_time_add(state->at.mono.us, IN_DOUBT_US);
    intent->serial = engine->next_serial;
    intent->restored = !state->in_doubt;
    return intent;
}

static void take_uid(struct target *target, const char *uid)
{
    if (!target->uid[0] && uid && strlen(uid) < sizeof(target->uid))
        memcpy(target->uid, uid, strlen(uid) + 1);
}

/* The next observation shows whether the request took effect. */
void target_take_intent(const struct as_engine *engine, struct target *target,
                        const struct as_intent_state *state)
{
    target->in_doubt = intent_of_state(engine, state);
    take_uid(target, state->uid);
    target->dirty = true;
}

void target_outdate_intents(struct target *target)
{
    struct intent *const intents[] = {target->intent, target->in_doubt};
    for (size_t i = 0; i < AS_ARRAY_SIZE(intents); i++)
        if (intents[i])
            intents[i]->generation = OTHER_GENERATION;
}

const struct as_pause_state *pause_fill_state(struct as_engine *engine,
                                              const struct as_pause_state *pause)
{
    struct as_pause_state *state =
        as_rows_copy(&engine->arena, as_pause_rows, pause, 1, sizeof(*pause));
    if (state->ways == AS_WAYS_BOTH)
        state->ways = AS_WAYS_NONE;
    return state;
}

/* What goes on after a restart needs the address before an alert gives it. So do the schedules of
 * an entry with templates. */
static bool needs_address(const struct as_engine *engine, const struct target *target)
{
    const bool is_templated =
        target->config ? target->config->is_templated : target->entry && *target->entry;
    FOR_CONCERNS (engine, concern)
        if (concern->needs_address && concern->needs_address(target))
            return true;
    return is_templated && target->ref->field_count > 0;
}

static void fill_address(struct as_engine *engine, const struct target *target,
                         struct as_target_state *state)
{
    const bool is_needed = needs_address(engine, target);
    const char *entry = target->config ? target->config->name : target->entry;
    state->ref = is_needed ? target->ref : NULL;
    state->entry = is_needed && entry ? as_arena_strdup(&engine->arena, entry) : "";
}

struct as_target_state *target_fill_state(struct as_engine *engine, const struct target *target)
{
    struct as_target_state *state = as_arena_alloc(&engine->arena, 1, sizeof(*state));
    *state = (struct as_target_state){
        .id = target->ref->id,
        .stored_as = target->ref->key,
        .locks = target->locks,
        .uid = target->uid,
        .born = target->born,
        .keep_us = target->keep_us,
    };
    fill_address(engine, target, state);
    FOR_CONCERNS (engine, concern)
        if (concern->store)
            concern->store(engine, target, state);
    return state;
}

void target_unite_locks(struct target *target, const struct as_lock_state *locks)
{
    struct as_lock_state later = *locks;
    struct as_moment *const moments = (struct as_moment *)&later;
    const struct as_moment *const former = (const struct as_moment *)&target->locks;
    _Static_assert(sizeof(later) % sizeof(*moments) == 0, "moments only");
    for (size_t i = 0; i < sizeof(later) / sizeof(*moments); i++)
        moments[i] = moment_get_later(former[i], moments[i]);
    target->locks = later;
}

void target_take_state(struct as_engine *engine, struct target *target,
                       const struct as_target_state *state)
{
    target_unite_locks(target, &state->locks);
    target->born = state->born;
    target->keep_us = state->keep_us;
    target->is_stored = true;
    take_uid(target, state->uid);
    free(target->entry);
    target->entry = as_xstrdup(state->entry);
    FOR_CONCERNS (engine, concern)
        if (concern->restore)
            concern->restore(engine, target, state);
}
