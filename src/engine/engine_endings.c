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

/* Copies of a report, from other Alertmanagers, arrive this close together. */
#define WATCHDOG_COPY_US (10 * AS_US_PER_S)

void watchdog_see(struct as_engine *engine, const struct as_labels *labels)
{
    if (!watchdog_matches(engine, labels))
        return;
    if (watchdog_is_alive(engine, engine->mono) &&
        engine->mono.us - engine->watchdog_seen.us >= WATCHDOG_COPY_US)
        engine->watchdog_every_us = engine->mono.us - engine->watchdog_seen.us;
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

void watchdog_fill_note(const struct as_engine *engine, struct as_proof_note *note)
{
    note->every_us = engine->watchdog_every_us > 0 ? engine->watchdog_every_us : -1;
    if (engine->watchdog_seen.us != INT64_MIN)
        note->reported = moment_get_wall(engine, (struct as_moment){.mono = engine->watchdog_seen});
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

/* False also while its rule is not known. */
static bool is_give_back(const struct ending *ending)
{
    return ending->rule && ending->rule->on_resolved.kind == AS_ENDING_GIVE_BACK;
}

/* A size change by someone else, or another incident, ends a give-back: the size to return to is
 * out of date. */
static bool ending_is_over(const struct as_engine *engine, const struct target *target,
                           const struct ending *ending, int32_t replicas)
{
    if (ending_get_end(engine, ending).us <= engine->mono.us)
        return true;
    if (!is_give_back(ending) || replicas < 0)
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
    if (!ending->rule)
        return AS_MONO_NEVER;
    const struct as_ending *what = &ending->rule->on_resolved;
    const int64_t after = what->kind == AS_ENDING_GIVE_BACK ? what->after_us : 0;
    return (as_mono_time){as_time_add(ending->state.ended.mono.us, after)};
}

/* The size of a step back: at least one. */
static int64_t ending_get_step(const struct ending *ending)
{
    const int64_t all = (int64_t)ending->state.peak - ending->state.origin;
    const int64_t step = (all * ending->rule->on_resolved.step_milli_percent + 99999) / 100000;
    return step < 1 ? 1 : step;
}

/* After the next step back, which goes at most to the origin. */
static int64_t get_next_size(const struct ending *ending, int32_t replicas)
{
    const int64_t next = replicas - ending_get_step(ending);
    return next > ending->state.origin ? next : ending->state.origin;
}

static bool ending_fill_step(const struct ending *ending, int32_t replicas,
                             struct as_give_back_note *note)
{
    const struct as_ending_state *state = &ending->state;
    if (ending->rule->on_resolved.kind != AS_ENDING_GIVE_BACK || state->peak < replicas)
        return false;
    const int64_t step = ending_get_step(ending);
    *note = (struct as_give_back_note){
        .incident = state->incident,
        .step = (uint32_t)((state->peak - replicas) / step) + 1,
        .steps = (uint32_t)((state->peak - state->origin + step - 1) / step),
        .added = state->peak - state->origin,
        .amount = (int32_t)(replicas - get_next_size(ending, replicas)),
    };
    return note->amount > 0;
}

const struct as_give_back_note *ending_note_step(struct as_engine *engine,
                                                 const struct ending *ending, int32_t replicas)
{
    struct as_give_back_note *note = as_arena_alloc(&engine->arena, 1, sizeof(*note));
    if (!ending_fill_step(ending, replicas, note))
        return NULL;
    note->incident = as_arena_strdup(&engine->arena, note->incident);
    return note;
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
        if (!ending->rule || ending->rule->dry_run == is_live || is_give_back(ending) ||
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
        if (ending->rule && (!is_give_back(ending) || to <= ending->state.origin))
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
    const struct as_target_config *entry = rule->target;
    const bool is_same = target->config ? target->config == entry
                                        : strcmp(entry->name, target->entry) == 0 &&
                                              as_target_may_have_id(entry, target->ref->id);
    return is_same ? rule : NULL;
}

/* True: the entry's name differs from the stored one. */
static bool note_entry(struct as_engine *engine, struct target *target, const struct as_rule *rule)
{
    const struct as_target_config *entry = rule->target;
    const bool is_renamed = strcmp(entry->name, target->entry) != 0;
    target_set_config(engine, target, entry);
    if (is_renamed)
        target_note_entry(target);
    return is_renamed;
}

/* Their rules are not known, and may come back: until then nothing is due. */
void endings_sleep(struct target *target)
{
    struct ending *ending;
    TAILQ_FOREACH (ending, &get_endings(target)->list, in_target)
        ending->rule = NULL;
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
        if (is_give_back(ending))
            ending_free(target, ending);
    }
}

/*
 * The view: what happens after an incident.
 */

/* The proof that is not there yet. Whether a guard is met is known only with the next answer. */
static enum as_next_wait ending_get_wait(const struct as_engine *engine,
                                         const struct ending *ending)
{
    switch (ending->rule->guard_kind) {
    case AS_GUARD_QUERY: return AS_NEXT_GUARD;
    case AS_GUARD_WAIVED: return AS_NEXT_NOW;
    case AS_GUARD_ABSENT: break;
    }
    return watchdog_proves(engine, ending->state.ended) ? AS_NEXT_NOW : AS_NEXT_WATCHDOG;
}

static struct as_next_view ending_make_view(const struct as_engine *engine,
                                            const struct target *target,
                                            const struct ending *ending, as_mono_time now,
                                            as_wall_time wall)
{
    const struct as_ending *what = &ending->rule->on_resolved;
    const bool gives_back = what->kind == AS_ENDING_GIVE_BACK;
    struct as_next_view view = {
        .effect = gives_back ? AS_NEXT_GIVES_BACK : AS_NEXT_SCALES,
        .rule = ending->state.rule,
        .size = -1,
        .wait = ending_get_wait(engine, ending),
        .from = lock_get_end(ending->state.ended, gives_back ? what->after_us : 0, now, wall),
        .silent_since = AS_MOMENT_NEVER,
    };
    struct as_give_back_note step;
    if (gives_back && target->has_size && ending_fill_step(ending, target->replicas, &step)) {
        view.size = target->replicas - step.amount;
        view.amount = step.amount;
        view.added = step.added;
        view.step = step.step;
        view.steps = step.steps;
    } else if (what->kind == AS_ENDING_SCALE && what->action.kind == AS_ACTION_SCALE_TO) {
        view.size = (int32_t)what->action.size;
    }
    if (view.wait == AS_NEXT_WATCHDOG && engine->watchdog_seen.us != INT64_MIN &&
        !watchdog_is_alive(engine, now)) {
        const int64_t ago_us = now.us - engine->watchdog_seen.us;
        view.silent_since = (struct as_moment){engine->watchdog_seen, {wall.us - ago_us}};
    }
    return view;
}

/* The rule of the last decision, if all its incidents are over and it has no `on_resolved`. */
static const struct as_rule *find_last_rule(const struct as_engine *engine,
                                            const struct target *target)
{
    const struct verdict *verdict = &target->verdict;
    if (!verdict->set || !verdict->rule || target->open_bindings > 0 || !target->has_size ||
        verdict->desired != target->replicas || target->phase != PHASE_IDLE)
        return NULL;
    const struct as_rule *rule = as_ruleset_find_rule(engine->ruleset, verdict->rule);
    return rule && !rule->is_always && rule->on_resolved.kind == AS_ENDING_NOTHING ? rule : NULL;
}

/* The name of the alert whose report the last decision waits for; NULL: it waits for none. */
static const char *find_awaited_alert(struct target *target)
{
    const struct verdict *verdict = &target->verdict;
    if (!verdict->set || verdict->reason != AS_REASON_UNCONFIRMED || !verdict->rule)
        return NULL;
    const struct group *group = group_find(target, verdict->rule);
    return group ? as_labels_get(TAILQ_FIRST(&group->bindings)->incident->state.labels, "alertname")
                 : NULL;
}

void as_engine_visit_next(const struct as_engine *engine, const struct as_target_ref *ref,
                          as_mono_time now, as_wall_time wall, as_next_visit_fn *visit,
                          void *context)
{
    struct target key = {.ref = (struct as_target_ref *)(uintptr_t)ref};
    struct target *target =
        RB_FIND(target_tree, (struct target_tree *)(uintptr_t)&engine->targets, &key);
    const struct ending *ending;
    if (!target)
        return;
    TAILQ_FOREACH (ending, endings_get(target), in_target) {
        if (!ending->rule)
            continue;
        const struct as_next_view view = ending_make_view(engine, target, ending, now, wall);
        visit(context, &view);
    }
    const struct as_rule *rule = find_last_rule(engine, target);
    if (rule && TAILQ_EMPTY(endings_get(target)))
        visit(context, &(struct as_next_view){.effect = AS_NEXT_STAYS,
                                              .rule = rule->name,
                                              .size = target->replicas,
                                              .from = AS_MOMENT_NEVER,
                                              .silent_since = AS_MOMENT_NEVER});
    const char *alert = find_awaited_alert(target);
    if (alert)
        visit(context, &(struct as_next_view){.effect = AS_NEXT_WAITS,
                                              .rule = target->verdict.rule,
                                              .size = target->replicas,
                                              .wait = AS_NEXT_REPORT,
                                              .alert = alert,
                                              .from = AS_MOMENT_NEVER,
                                              .silent_since = AS_MOMENT_NEVER});
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
