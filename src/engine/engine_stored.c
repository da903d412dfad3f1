/*
 * Converts the engine's state, piece by piece: for the store, in the step's memory, and back,
 * before the first event.
 *
 * Earlier versions stored two spellings of one object as two targets. These are united: the latest
 * of each lock counts, and both histories.
 */
#include "engine_stored.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_floors.h"
#include "engine_lacks.h"
#include "engine_requests.h"
#include "engine_scopes.h"
#include "engine_set_backs.h"

struct as_incident_target binding_get_target(const struct binding *binding)
{
    const struct target *target = binding->group->target;
    return (struct as_incident_target){
        .target = target->ref->id,
        .rule = binding->group->rule->name,
        .has_replicas = target->has_size,
        .replicas = target->replicas,
    };
}

struct as_incident_state incident_get_state(const struct incident *incident)
{
    return (struct as_incident_state){
        .key = incident->key,
        .fingerprint = incident->fingerprint,
        .is_open = incident->is_open,
        .starts_at = incident->starts_at,
        .is_undated = incident->is_undated,
        .opened = incident->opened,
        .seen = incident->seen,
        .resolved = incident->resolved,
        .silenced = incident->silenced,
        .receivers = (const char *const *)incident->receivers,
        .receiver_count = incident->receiver_count,
        .credentials = (const char *const *)incident->credentials,
        .credential_count = incident->credential_count,
        .labels = incident->labels,
        .annotations = incident->annotations,
    };
}

struct as_incident_state *incident_fill_state(struct as_engine *engine,
                                              const struct incident *incident)
{
    struct as_incident_state *state = as_arena_alloc(&engine->arena, 1, sizeof(*state));
    *state = incident_get_state(incident);
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
    incident->key = state->key;
    incident->key.owner = as_xstrdup(state->key.owner);
    incident->fingerprint = state->fingerprint;
    incident->serial = ++engine->next_serial;
    incident->is_open = state->is_open;
    incident->starts_at = state->starts_at;
    incident->is_undated = state->is_undated;
    incident->opened = state->opened;
    incident->seen = state->seen;
    incident->resolved = state->resolved;
    incident->seen_stored = state->seen.mono;
    /* `seen` is stored late, never by more than this */
    if (state->is_open)
        incident->seen.mono.us = as_time_add(incident->seen.mono.us,
                                             engine->config.incident_expiry_us / SEEN_STORE_PART);
    incident->listed.us = INT64_MIN;
    incident->silenced = state->silenced;
    incident->late_until.us = INT64_MIN;
    incident->receivers = as_xcalloc(state->receiver_count + 1, sizeof(*incident->receivers));
    for (size_t i = 0; i < state->receiver_count; i++)
        incident->receivers[incident->receiver_count++] = as_xstrdup(state->receivers[i]);
    for (size_t i = 0; i < state->credential_count; i++)
        (void)incident_add_credential(incident, state->credentials[i]);
    incident->labels = state->labels ? as_labels_copy(state->labels) : NULL;
    incident->annotations = state->annotations ? as_labels_copy(state->annotations) : NULL;
    incident->kept = copy_progress(state->progress, state->progress_count);
    incident->kept_count = (uint32_t)state->progress_count;
    return incident;
}

struct as_intent_state *intent_fill_state(struct as_engine *engine, const struct target *target,
                                          const struct intent *intent, bool maybe)
{
    struct as_intent_state *state = as_arena_alloc(&engine->arena, 1, sizeof(*state));
    const struct as_target_config *config = target->config;
    *state = (struct as_intent_state){
        .ref = target->ref,
        .stored_as = target->ref->key,
        .uid = target->uid,
        .action_id = intent->action_id,
        .decision_id = intent->decision_id,
        .is_ordered = intent->is_ordered,
        .is_of_alert = intent->is_of_alert,
        .rule = intent->rule,
        .from = intent->from,
        .to = intent->to,
        .at = intent->at,
        .maybe = maybe,
        .outcome = intent->outcome,
        .approval = intent->approval[0] ? intent->approval : NULL,
        .marks_nodes = config && as_target_config_has_nodes(config) && intent->to <= intent->from,
    };
    const size_t size = strlen(intent->version) + 1;
    memcpy(state->version, intent->version, size < AS_VERSION_SIZE ? size : AS_VERSION_SIZE);
    return state;
}

static struct intent *intent_of_state(const struct as_engine *engine,
                                      const struct as_intent_state *state)
{
    struct intent *intent = as_xcalloc(1, sizeof(*intent));
    memcpy(intent->action_id, state->action_id, strnlen(state->action_id, AS_ULID_SIZE - 1));
    memcpy(intent->decision_id, state->decision_id, strnlen(state->decision_id, AS_ULID_SIZE - 1));
    intent->is_ordered = state->is_ordered;
    intent->is_of_alert = state->is_of_alert;
    intent->rule = as_xstrdup(state->rule);
    intent->from = state->from;
    intent->to = state->to;
    intent->version = as_xstrdup(state->version);
    intent->at = state->at;
    intent->sent = state->at.mono;
    intent->until.us = as_time_add(state->at.mono.us, MAYBE_US);
    intent->outcome = state->outcome;
    intent->serial = engine->next_serial;
    intent->restored = !state->maybe;
    if (state->approval)
        memcpy(intent->approval, state->approval, strnlen(state->approval, AS_ULID_SIZE - 1));
    return intent;
}

static void take_uid(struct target *target, const char *uid)
{
    if (!target->uid[0] && uid && strlen(uid) < sizeof(target->uid))
        memcpy(target->uid, uid, strlen(uid) + 1);
}

/* The newest comes first. All are looked for before the next decision. */
void target_take_intent(const struct as_engine *engine, struct target *target,
                        const struct as_intent_state *state)
{
    struct intent *intent = intent_of_state(engine, state);
    struct intent **place = &target->maybe;
    while (*place && (*place)->at.mono.us >= intent->at.mono.us)
        place = &(*place)->older;
    intent->older = *place;
    *place = intent;
    take_uid(target, state->uid);
    target->dirty = true;
}

struct as_pause_state *pause_fill_state(struct as_engine *engine, const struct pause *pause)
{
    struct as_pause_state *state = as_arena_alloc(&engine->arena, 1, sizeof(*state));
    *state = (struct as_pause_state){
        .since = pause->since,
        .for_us = pause->for_us,
        .ways = pause->ways == AS_WAYS_BOTH ? AS_WAYS_NONE : (int32_t)pause->ways,
        .who = as_arena_strdup(&engine->arena, pause->who),
        .reason = as_arena_strdup(&engine->arena, pause->reason),
    };
    return state;
}

static void fill_endings(struct as_engine *engine, const struct target *target,
                         struct as_target_state *state)
{
    struct as_ending_state *endings =
        as_arena_alloc(&engine->arena, target->ending_count, sizeof(*endings));
    const struct ending *ending;
    TAILQ_FOREACH (ending, &target->endings, in_target) {
        struct as_ending_state *copy = &endings[state->ending_count++];
        *copy = ending->state;
        copy->rule = as_arena_strdup(&engine->arena, ending->state.rule);
        copy->incident = as_arena_strdup(&engine->arena, ending->state.incident);
        copy->guard = as_arena_strdup(&engine->arena, ending->state.guard);
    }
    state->endings = endings;
}

/* Another spelling of the target may have left an ending of the same rule: the later one counts. */
static void take_ending(struct target *target, const struct as_ending_state *state)
{
    struct ending *other = ending_find(target, state->rule);
    if (other && other->state.ended.mono.us >= state->ended.mono.us)
        return;
    if (other)
        ending_free(target, other);
    (void)ending_add(target, state);
}

static void take_endings(struct target *target, const struct as_target_state *state)
{
    if (!target->entry || *state->entry) {
        free(target->entry);
        target->entry = as_xstrdup(state->entry);
    }
    for (size_t i = 0; i < state->ending_count; i++)
        take_ending(target, &state->endings[i]);
}

static void fill_ordered(struct as_engine *engine, const struct target *target,
                         struct as_target_state *state)
{
    const struct ordered *ordered = &target->ordered;
    if (!ordered->is_set)
        return;
    struct as_ordered_state *copy = as_arena_alloc(&engine->arena, 1, sizeof(*copy));
    *copy = (struct as_ordered_state){
        .id = as_arena_strdup(&engine->arena, ordered->id),
        .replicas = ordered->replicas,
        .force = ordered->force,
        .at = ordered->at,
    };
    state->ordered = copy;
}

static void take_ordered(struct target *target, const struct as_target_state *state)
{
    const struct as_ordered_state *ordered = state->ordered;
    if (!ordered || (target->ordered.is_set && target->ordered.at.mono.us > ordered->at.mono.us))
        return;
    target->ordered = (struct ordered){
        .is_set = true,
        .replicas = ordered->replicas,
        .force = ordered->force,
        .at = ordered->at,
    };
    memcpy(target->ordered.id, ordered->id, strnlen(ordered->id, AS_ULID_SIZE - 1));
}

static void fill_growth(struct as_engine *engine, const struct target *target,
                        struct as_target_state *state)
{
    const struct growth *growth = &target->growth;
    if (!growth->is_open && !as_moment_is_set(growth->failed) && growth->surplus == 0)
        return;
    struct as_growth_state *copy = as_arena_alloc(&engine->arena, 1, sizeof(*copy));
    *copy = (struct as_growth_state){
        .id = as_arena_strdup(&engine->arena, growth->id),
        .is_open = growth->is_open,
        .is_ordered = growth->is_ordered,
        .is_refused = growth->is_refused,
        .from = growth->from,
        .to = growth->to,
        .missing = growth->missing,
        .since = growth->since,
        .failed = growth->failed,
        .back_off_us = growth->back_off_us,
        .did_not_come = growth->did_not_come,
        .ready = growth->ready,
        .surplus = growth->surplus,
        .surplus_from = growth->surplus_from,
        .surplus_since = growth->surplus_since,
    };
    state->growth = copy;
}

static void take_growth(struct target *target, const struct as_target_state *state)
{
    const struct as_growth_state *stored = state->growth;
    struct growth *growth = &target->growth;
    if (!stored || (growth->is_open && growth->since.mono.us > stored->since.mono.us))
        return;
    *growth = (struct growth){
        .is_open = stored->is_open,
        .is_ordered = stored->is_ordered,
        .is_refused = stored->is_refused,
        .from = stored->from,
        .to = stored->to,
        .missing = stored->missing,
        .since = stored->since,
        .failed = stored->failed,
        .back_off_us = stored->back_off_us,
        .did_not_come = stored->did_not_come,
        .ready = stored->ready,
        .surplus = stored->surplus,
        .surplus_from = stored->surplus_from,
        .surplus_since = stored->surplus_since,
    };
    memcpy(growth->id, stored->id, strnlen(stored->id, AS_ULID_SIZE - 1));
}

static void fill_follows(struct as_engine *engine, const struct target *target,
                         struct as_target_state *state)
{
    struct as_follow_state *follows =
        as_arena_alloc(&engine->arena, target->follow_count, sizeof(*follows));
    const struct follow *follow;
    TAILQ_FOREACH (follow, &target->follows, in_target) {
        struct as_follow_state *copy = &follows[state->follow_count++];
        *copy = follow->state;
        copy->action_id = as_arena_strdup(&engine->arena, follow->state.action_id);
        copy->decision_id = as_arena_strdup(&engine->arena, follow->state.decision_id);
        copy->rule = as_arena_strdup(&engine->arena, follow->state.rule);
    }
    state->follows = state->follow_count > 0 ? follows : NULL;
    struct as_trial_state *trials =
        as_arena_alloc(&engine->arena, target->trial_count, sizeof(*trials));
    const struct trial *trial;
    TAILQ_FOREACH (trial, &target->trials, in_target) {
        struct as_trial_state *copy = &trials[state->trial_count++];
        *copy = trial->state;
        copy->rule = as_arena_strdup(&engine->arena, trial->state.rule);
    }
    state->trials = state->trial_count > 0 ? trials : NULL;
}

static void take_follows(struct as_engine *engine, struct target *target,
                         const struct as_target_state *state)
{
    for (size_t i = 0; i < state->follow_count; i++)
        follow_add(engine, target, &state->follows[i]);
    for (size_t i = 0; i < state->trial_count; i++) {
        struct trial *trial = trial_get(target, state->trials[i].rule);
        trial->state.in_vain = state->trials[i].in_vain;
        trial->state.held = state->trials[i].held;
    }
}

static void fill_resize(struct as_engine *engine, const struct target *target,
                        struct as_target_state *state)
{
    const struct resize *resize = &target->resize;
    if (!resize->is_set)
        return;
    struct as_resize_state *copy = as_arena_alloc(&engine->arena, 1, sizeof(*copy));
    *copy = (struct as_resize_state){
        .id = as_arena_strdup(&engine->arena, resize->id),
        .is_open = resize->is_open,
        .is_above = resize->is_above,
        .is_late = resize->is_late,
        .is_ordered = resize->is_ordered,
        .from = resize->from,
        .to = resize->to,
    };
    state->resize = copy;
}

/* What is known already is newer. */
static void take_resize(struct target *target, const struct as_target_state *state)
{
    const struct as_resize_state *stored = state->resize;
    if (!stored || target->resize.is_set)
        return;
    target->resize = (struct resize){
        .is_set = true,
        .is_open = stored->is_open,
        .is_above = stored->is_above,
        .is_late = stored->is_late,
        .is_ordered = stored->is_ordered,
        .from = stored->from,
        .to = stored->to,
        .moved = AS_MOMENT_NEVER,
    };
    memcpy(target->resize.id, stored->id, strnlen(stored->id, AS_ULID_SIZE - 1));
}

static void take_event(struct target *target, const struct as_past_event *event)
{
    target->events = as_xgrow(target->events, target->event_count, &target->event_capacity,
                              sizeof(*target->events));
    size_t at = target->event_count++;
    for (; at > 0 && target->events[at - 1].at.mono.us > event->at.mono.us; at--)
        target->events[at] = target->events[at - 1];
    target->events[at] = *event;
}

static void take_recommendation(struct target *target, const struct as_past_recommendation *item)
{
    target->recommendations =
        as_xgrow(target->recommendations, target->recommendation_count,
                 &target->recommendation_capacity, sizeof(*target->recommendations));
    size_t at = target->recommendation_count++;
    for (; at > 0 && target->recommendations[at - 1].at.mono.us > item->at.mono.us; at--)
        target->recommendations[at] = target->recommendations[at - 1];
    target->recommendations[at] = *item;
}

/* Merges the history with that of another spelling, in order. */
static void take_history(struct target *target, const struct as_target_state *state)
{
    for (size_t i = 0; i < state->event_count; i++)
        take_event(target, &state->events[i]);
    for (size_t i = 0; i < state->recommendation_count; i++)
        take_recommendation(target, &state->recommendations[i]);
}

/* What is to go on after a restart needs the address before an alert gives it: what is unfinished,
 * floors, and the schedules of an entry with templates. So does a node group that other targets may
 * be, too. */
static bool needs_address(const struct target *target)
{
    const bool is_templated =
        target->config ? target->config->is_templated
                       : (target->entry && *target->entry) || target->backing.is_candidate;
    return target->ending_count > 0 || target->ordered.is_set || target->growth.is_open ||
           target->resize.is_open || target->resize.is_above || target->floor.size > 0 ||
           (is_templated && target->ref->field_count > 0);
}

static void fill_address(struct as_engine *engine, const struct target *target,
                         struct as_target_state *state)
{
    const bool is_needed = needs_address(target);
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
        .last_up = target->last_up,
        .last_down = target->last_down,
        .dry_last_up = target->dry_last_up,
        .dry_last_down = target->dry_last_down,
        .last_step_down = target->last_step_down,
        .last_return = target->last_return,
        .uid = target->uid,
        .born = target->born,
        .keep_us = target->keep_us,
        .events = target->events,
        .event_count = target->event_count,
        .recommendations = target->recommendations,
        .recommendation_count = target->recommendation_count,
        .template_ = as_arena_strdup(&engine->arena, target->template_),
    };
    fill_address(engine, target, state);
    fill_endings(engine, target, state);
    lacks_fill_state(engine, target, state);
    floor_fill_state(engine, target, state);
    fill_ordered(engine, target, state);
    fill_growth(engine, target, state);
    fill_follows(engine, target, state);
    contention_fill_state(engine, &target->contention, state);
    fill_resize(engine, target, state);
    requests_fill_state(engine, target, state);
    state->asked = target->pool.asked;
    state->asked_count = target->pool.asked_count;
    if (target->pause.is_set)
        state->pause = pause_fill_state(engine, &target->pause);
    return state;
}

static void take_locks(struct target *target, const struct as_target_state *state)
{
    target->last_up = moment_get_later(target->last_up, state->last_up);
    target->last_down = moment_get_later(target->last_down, state->last_down);
    target->dry_last_up = moment_get_later(target->dry_last_up, state->dry_last_up);
    target->dry_last_down = moment_get_later(target->dry_last_down, state->dry_last_down);
    target->last_step_down = moment_get_later(target->last_step_down, state->last_step_down);
    target->last_return = moment_get_later(target->last_return, state->last_return);
}

void target_take_locks(struct target *target, const struct as_target_state *state)
{
    take_locks(target, state);
    if (target->event_count == 0 && target->recommendation_count == 0)
        take_history(target, state);
}

/* All but its pause. */
void target_take_state(struct as_engine *engine, struct target *target,
                       const struct as_target_state *state)
{
    take_locks(target, state);
    target->born = moment_get_later(target->born, state->born);
    if (!target->is_stored || target->keep_us < state->keep_us)
        target->keep_us = state->keep_us;
    target->is_stored = true;
    take_uid(target, state->uid);
    take_history(target, state);
    take_endings(target, state);
    lacks_take_state(target, state);
    floor_take_state(target, state);
    take_ordered(target, state);
    take_growth(target, state);
    take_follows(engine, target, state);
    contention_take_state(&target->contention, state);
    take_resize(target, state);
    requests_take_state(target, state);
    if (state->asked_count > 0)
        pool_set_asked(&target->pool, state->asked, state->asked_count);
    if (state->template_ && !target->template_)
        target->template_ = as_xstrdup(state->template_);
}
