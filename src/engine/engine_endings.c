/*
 * `on_resolved`: what rules still have to do after an incident was resolved.
 *
 * The end of an alert does not prove that the load is gone. So each step of an ending needs a proof
 * that monitoring works: the rule's guard, else the watchdog, unless the rule waives it. Endings
 * are stored with their target, and last no longer than an incident that is not seen any more.
 *
 * The module sets no size: an ending is a proposal like others.
 */
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_incidents.h"
#include "engine_registry.h"

/*
 * The watchdog: an alert that always fires, as proof that monitoring works.
 */

/* Prometheus may evaluate and send alerts of different groups this far apart (a minute each, unless
 * configured otherwise). */
#define WATCHDOG_SPREAD_US (2 * AS_US_PER_MIN)

bool watchdog_matches(const struct as_engine *engine, const struct as_labels *labels)
{
    const struct as_engine_config *config = &engine->config;
    for (size_t i = 0; i < config->watchdog_count; i++) {
        if (!as_matcher_match(&config->watchdog[i], labels))
            return false;
    }
    return config->watchdog_count > 0;
}

void watchdog_see(struct as_engine *engine, const struct as_labels *labels)
{
    if (watchdog_matches(engine, labels))
        engine->watchdog_seen = engine->mono;
}

bool watchdog_is_alive(const struct as_engine *engine, as_mono_time now)
{
    return engine->config.watchdog_count > 0 && engine->watchdog_seen.us != INT64_MIN &&
           now.us - engine->watchdog_seen.us <= engine->config.watchdog_within_us;
}

/*
 * Whether monitoring still worked after `moment`. When Prometheus dies, all its alerts end at about
 * the same time, also the watchdog. So seeing it before an alert ended proves nothing, nor just
 * after: alerts are sent and end in no fixed order.
 */
static bool watchdog_proves(const struct as_engine *engine, struct as_moment moment)
{
    const int64_t within = engine->config.watchdog_within_us;
    const int64_t spread = within < WATCHDOG_SPREAD_US ? within : WATCHDOG_SPREAD_US;
    return watchdog_is_alive(engine, engine->mono) &&
           engine->watchdog_seen.us - moment.mono.us >= spread;
}

bool watchdog_is_same(const struct as_engine_config *a, const struct as_engine_config *b)
{
    if (a->watchdog_count != b->watchdog_count)
        return false;
    for (size_t i = 0; i < a->watchdog_count; i++) {
        const struct as_matcher *left = &a->watchdog[i], *right = &b->watchdog[i];
        if (left->op != right->op || strcmp(left->name, right->name) != 0 ||
            strcmp(left->value, right->value) != 0)
            return false;
    }
    return true;
}

/* Endings */

#define ENDINGS_MAX 64 /* per target; a new one replaces the oldest */

struct endings {
    struct ending_list list; /* the first member: endings_get; by the time of their ends */
    size_t count;
};

static struct endings *get_endings(const struct target *target)
{
    return target->parts[CONCERN_ENDINGS];
}

static void ending_free(struct target *target, struct ending *ending)
{
    struct endings *endings = get_endings(target);
    TAILQ_REMOVE(&endings->list, ending, in_target);
    endings->count--;
    as_rows_free_texts(as_ending_rows, &ending->state);
    free(ending);
}

static struct ending *ending_add(struct target *target, const struct as_ending_state *state)
{
    struct endings *endings = get_endings(target);
    struct ending *ending = as_xcalloc(1, sizeof(*ending));
    ending->state = *state;
    as_rows_own_texts(as_ending_rows, &ending->state);
    if (endings->count == ENDINGS_MAX)
        ending_free(target, TAILQ_FIRST(&endings->list));
    TAILQ_INSERT_TAIL(&endings->list, ending, in_target);
    endings->count++;
    return ending;
}

static struct ending *ending_find(const struct target *target, const char *rule)
{
    struct endings *endings = get_endings(target);
    struct ending *ending;
    TAILQ_FOREACH (ending, &endings->list, in_target) {
        if (strcmp(ending->state.rule, rule) == 0)
            return ending;
    }
    return NULL;
}

bool endings_are_open(const struct target *target)
{
    return get_endings(target)->count > 0;
}

/* The size before the rule's first action for the incident, even if that is still under way; -1: no
 * action. */
static int32_t ending_get_origin(const struct binding *binding)
{
    const struct target *target = binding->group->target;
    const struct intent *const intents[] = {target->in_doubt, target->intent};
    int32_t origin = binding->origin;
    for (size_t i = 0; i < AS_ARRAY_SIZE(intents) && origin < 0; i++) {
        if (intents[i] && strcmp(intents[i]->state.rule, binding->group->rule->name) == 0)
            origin = intents[i]->state.from;
    }
    return origin;
}

static void ending_begin(struct as_engine *engine, const struct binding *binding)
{
    const struct as_rule *rule = binding->group->rule;
    struct target *target = binding->group->target;
    const bool gives_back = rule->on_resolved.kind == AS_ENDING_GIVE_BACK;
    const int32_t origin = gives_back ? ending_get_origin(binding) : 0;
    const int32_t size = target->has_size ? target->replicas : -1;
    if (rule->on_resolved.kind == AS_ENDING_NOTHING || origin < 0)
        return;
    struct ending *old = ending_find(target, rule->name);
    if (old)
        ending_free(target, old);
    char incident[AS_DIGEST_TEXT_SIZE];
    as_digest_print(&binding->incident->state.key.digest, incident);
    const struct as_ending_state state = {
        .rule = rule->name,
        .incident = incident,
        .ended = moment_now(engine),
        .origin = origin,
        .peak = size,
        .last = size,
        .applied = AS_MOMENT_NEVER,
        .guard = sources_get_guard(engine, rule, binding->incident),
    };
    ending_add(target, &state)->rule = rule;
    target_note_entry(target);
    effect_put_target(engine, target);
}

/* Call it before the incident's bindings are dropped; belongs to the commit of its end. */
void endings_begin(struct as_engine *engine, const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->binding_count; i++)
        ending_begin(engine, &incident->bindings[i]);
}

static as_mono_time ending_get_end(const struct as_engine *engine, const struct ending *ending)
{
    return (as_mono_time){
        as_time_add(ending->state.ended.mono.us, engine->config.incident_expiry_us)};
}

/* A size change by someone else, or another incident, ends a give-back: the size to return to is
 * out of date. */
static bool ending_is_over(const struct as_engine *engine, const struct target *target,
                           const struct ending *ending, int32_t replicas)
{
    if (ending_get_end(engine, ending).us <= engine->mono.us)
        return true;
    if (ending->rule->on_resolved.kind != AS_ENDING_GIVE_BACK || replicas < 0)
        return false;
    return target->open_bindings > 0 || replicas != ending->state.last ||
           replicas <= ending->state.origin;
}

/* Drops endings that are over, at this size (-1: unknown). True: the target must be stored. */
static bool endings_review(struct as_engine *engine, struct target *target, int32_t replicas)
{
    struct endings *endings = get_endings(target);
    struct ending *ending, *next;
    bool changed = false;
    TAILQ_FOREACH_SAFE (ending, &endings->list, in_target, next) {
        if (ending->state.last < 0 && replicas >= 0) { /* the first observation */
            ending->state.last = ending->state.peak = replicas;
            changed = true;
        }
        if (!ending_is_over(engine, target, ending, replicas))
            continue;
        ending_free(target, ending);
        changed = true;
    }
    return changed;
}

static as_mono_time get_due(const struct ending *ending)
{
    const struct as_ending *what = &ending->rule->on_resolved;
    const int64_t after = what->kind == AS_ENDING_GIVE_BACK ? what->after_us : 0;
    return (as_mono_time){as_time_add(ending->state.ended.mono.us, after)};
}

/* The size of the next step back: by at least one, at most to the origin. */
static int64_t get_next_size(const struct ending *ending, int32_t replicas)
{
    const struct as_ending_state *state = &ending->state;
    const int64_t all = (int64_t)state->peak - state->origin;
    int64_t step = (all * ending->rule->on_resolved.step_milli_percent + 99999) / 100000;
    step = step < 1 ? 1 : step;
    return replicas - step > state->origin ? replicas - step : state->origin;
}

/* The ending's action now; false: not due. */
bool ending_get_action(const struct as_engine *engine, const struct ending *ending,
                       int32_t replicas, struct as_action *action_out)
{
    if (get_due(ending).us > engine->mono.us)
        return false;
    *action_out = ending->rule->on_resolved.kind == AS_ENDING_GIVE_BACK
                      ? (struct as_action){.kind = AS_ACTION_SCALE_TO,
                                           .size = get_next_size(ending, replicas)}
                      : ending->rule->on_resolved.action;
    return true;
}

/* The target has the wanted size, or its bounds allow no more of it. */
static bool is_done(const struct as_engine *engine, const struct target *target,
                    const struct as_action *action, int32_t replicas)
{
    const struct as_schedule_bounds bounds = target_get_bounds(engine, target);
    const int64_t wanted =
        action->kind == AS_ACTION_SCALE_TO ? action->size : (int64_t)replicas - 1;
    return wanted < replicas   ? replicas <= bounds.min
           : wanted > replicas ? replicas >= bounds.max
                               : true;
}

/* Without the dry run it would have been carried out now. */
static bool is_done_dry(const struct ending *ending, const struct as_decision *decision)
{
    return decision->reason == AS_REASON_DRY_RUN && decision->direction == AS_DIRECTION_DOWN &&
           decision->rule && strcmp(decision->rule, ending->state.rule) == 0;
}

/* After a decision: drops endings that act once, if they have acted (in a dry run: would have), or
 * have nothing to do. They do not wait for a size that somebody sets later. True: the target must
 * be stored. A live decision does not end those of rules in dry run, nor the reverse. */
bool endings_finish(struct as_engine *engine, struct target *target,
                    const struct as_decision *decision, bool is_live)
{
    struct endings *endings = get_endings(target);
    struct ending *ending, *next;
    bool changed = false;
    TAILQ_FOREACH_SAFE (ending, &endings->list, in_target, next) {
        struct as_action action;
        if (ending->rule->dry_run == is_live ||
            ending->rule->on_resolved.kind == AS_ENDING_GIVE_BACK ||
            !ending_get_action(engine, ending, decision->replicas, &action) ||
            !(is_done(engine, target, &action, decision->replicas) ||
              is_done_dry(ending, decision)))
            continue;
        ending_free(target, ending);
        changed = true;
    }
    return changed;
}

bool ending_is_proven(const struct as_engine *engine, const struct target *target,
                      const struct ending *ending)
{
    switch (ending->rule->guard_kind) {
    case AS_GUARD_QUERY: /* a guard that came with a reload cannot be filled in any more: not met */
        return ending->state.guard[0] && sources_is_guard_met(target, ending->state.guard);
    case AS_GUARD_WAIVED: return true;
    case AS_GUARD_ABSENT: break;
    }
    return watchdog_proves(engine, ending->state.ended);
}

as_mono_time endings_get_next_due(const struct as_engine *engine, const struct target *target)
{
    struct endings *endings = get_endings(target);
    const struct ending *ending;
    as_mono_time next = AS_MONO_NEVER;
    TAILQ_FOREACH (ending, &endings->list, in_target) {
        const as_mono_time due = get_due(ending);
        const as_mono_time end = ending_get_end(engine, ending);
        if (due.us > engine->mono.us && due.us < next.us)
            next = due;
        if (end.us < next.us)
            next = end;
    }
    return next;
}

/* We have set a size. Call it before the target is stored. */
/* An ordered size ends what is given back: the size is an operator's. */
static void endings_on_applied(struct as_engine *engine, struct target *target,
                               const struct action *action)
{
    const struct as_intent_state *change = &action->intent->state;
    const int32_t from = change->from, to = change->to;
    if (change->is_ordered)
        return;
    struct endings *endings = get_endings(target);
    struct ending *ending, *next;
    TAILQ_FOREACH_SAFE (ending, &endings->list, in_target, next) {
        ending->state.last = to;
        if (to > ending->state.peak) /* it was under way when the incident ended */
            ending->state.peak = to;
        if (to >= from || strcmp(ending->state.rule, change->rule) != 0)
            continue;
        ending->state.applied = moment_now(engine);
        if (ending->rule->on_resolved.kind != AS_ENDING_GIVE_BACK || to <= ending->state.origin)
            ending_free(target, ending);
    }
}

/* The rule, if it still has an `on_resolved` for this target: the rule's entry must have the
 * address, under any name. If no entry is known to have it: the entry has the stored name, and its
 * template can give the address. */
static const struct as_rule *find_successor(const struct as_engine *engine,
                                            const struct target *target,
                                            const struct ending *ending)
{
    const struct as_rule *rule = as_ruleset_find_rule(engine->ruleset, ending->state.rule);
    if (!rule || !rule->enabled || rule->on_resolved.kind == AS_ENDING_NOTHING)
        return NULL;
    const struct as_target_config *entry = &engine->ruleset->targets[rule->target];
    const bool is_same = target->config ? target->config == entry
                                        : strcmp(entry->name, target->entry) == 0 &&
                                              as_target_may_have_id(entry, target->ref->id);
    return is_same ? rule : NULL;
}

/* True: the entry's name differs from the stored one. */
static bool note_entry(struct as_engine *engine, struct target *target, const struct as_rule *rule)
{
    const struct as_target_config *entry = &engine->ruleset->targets[rule->target];
    const bool is_renamed = strcmp(entry->name, target->entry) != 0;
    target_set_config(engine, target, entry);
    if (is_renamed)
        target_note_entry(target);
    return is_renamed;
}

/* After new rules or a restart: finds the rules again by name, and drops the endings of missing
 * rules. True: the target must be stored. */
static bool endings_remake(struct as_engine *engine, struct target *target)
{
    struct endings *endings = get_endings(target);
    struct ending *ending, *next;
    bool changed = false;
    TAILQ_FOREACH_SAFE (ending, &endings->list, in_target, next) {
        ending->rule = find_successor(engine, target, ending);
        changed = !ending->rule || note_entry(engine, target, ending->rule) || changed;
        if (!ending->rule)
            ending_free(target, ending);
    }
    return changed;
}

static void endings_forget_sizes(struct as_engine *engine, struct target *target,
                                 const struct other_object *why)
{
    (void)engine, (void)why;
    struct endings *endings = get_endings(target);
    struct ending *ending, *next;
    TAILQ_FOREACH_SAFE (ending, &endings->list, in_target, next) {
        if (ending->rule->on_resolved.kind == AS_ENDING_GIVE_BACK)
            ending_free(target, ending);
    }
}

static void endings_init(struct target *target)
{
    TAILQ_INIT(&get_endings(target)->list);
}

static void endings_deinit(struct target *target)
{
    struct endings *endings = get_endings(target);
    while (endings->count > 0)
        ending_free(target, TAILQ_FIRST(&endings->list));
}

static void endings_store(struct as_engine *engine, const struct target *target,
                          struct as_target_state *state)
{
    struct endings *endings = get_endings(target);
    struct as_ending_state *states =
        as_arena_alloc(&engine->arena, endings->count, sizeof(*states));
    const struct ending *ending;
    TAILQ_FOREACH (ending, &endings->list, in_target)
        states[state->ending_count++] = ending->state;
    if (state->ending_count > 0)
        states = as_rows_copy(&engine->arena, as_ending_rows, states, state->ending_count,
                              sizeof(*states));
    state->endings = states;
}

static void endings_restore(struct as_engine *engine, struct target *target,
                            const struct as_target_state *state)
{
    (void)engine;
    for (size_t i = 0; i < state->ending_count; i++) {
        if (!ending_find(target, state->endings[i].rule)) /* a damaged row may repeat it */
            (void)ending_add(target, &state->endings[i]);
    }
}

static bool endings_are_using(const struct as_engine *engine, const struct target *target)
{
    struct endings *endings = get_endings(target);
    (void)engine;
    return endings->count > 0;
}

static bool endings_on_unseen(struct as_engine *engine, struct target *target,
                              enum as_reason outcome)
{
    (void)outcome;
    return endings_review(engine, target, -1);
}

const struct concern concern_endings = {
    .name = "endings",
    .remake = endings_remake,
    .on_applied = endings_on_applied,
    .needs_address = endings_are_open,
    .size = sizeof(struct endings),
    .init = endings_init,
    .deinit = endings_deinit,
    .store = endings_store,
    .restore = endings_restore,
    .is_using = endings_are_using,
    .forget_sizes = endings_forget_sizes,
    .on_unseen = endings_on_unseen,
    .review = endings_review,
};
