/*
 * Did it help? For each action that an open incident caused, one record says when as many were
 * ready as it asked for, and when its alert was resolved. It is written once both are known, an
 * hour after the action at the latest, in the commit of what completes it: so a crash neither loses
 * nor doubles it.
 *
 * Its alert: all incidents of the rule that were open at the decision. So the last of them to end
 * counts. An end of another kind than `resolved` tells nothing of the action.
 *
 * A rule with ineffective_after whose last actions did not help is held on this target. An action
 * did not help if its alert was not resolved within the hour: several steps of one incident are one
 * attempt, which may only succeed with the last of them, so a later step proves nothing.
 *
 * Of a pool, the actions are those of its groups, and the rule is held on the pool.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"

#define EVALUATIONS_MAX 64 /* of one target; beyond, the oldest ends as unknown */

/* How long a rule that was found ineffective is held. */
#define INEFFECTIVE_HELD_US AS_US_PER_DAY

struct evaluation { /* an action of an alert, until its effect is known */
    TAILQ_ENTRY(evaluation) in_target, in_engine;
    struct target *target;
    struct as_evaluation_state state; /* owns its texts */
};

struct rule_effect { /* how a rule's last actions went */
    TAILQ_ENTRY(rule_effect) in_target;
    struct as_rule_effect_state state; /* owns its text */
};
TAILQ_HEAD(rule_effect_list, rule_effect);

struct evaluations {
    struct evaluation_list open; /* by `applied` */
    size_t open_count;
    struct rule_effect_list rules; /* with ineffective_after */
    size_t rule_count;
};

static struct evaluations *get_evaluations(const struct target *target)
{
    return target->parts[CONCERN_EVALUATIONS];
}

/* The rule was found ineffective, and is held. */
static bool rule_effect_is_held(const struct rule_effect *rule_effect, as_mono_time now)
{
    return as_moment_is_set(rule_effect->state.held) &&
           as_time_add(rule_effect->state.held.mono.us, INEFFECTIVE_HELD_US) > now.us;
}

/* Both lists ascend by `applied`; the clock of restored ones may be another. */
static struct evaluation *evaluation_add(struct as_engine *engine, struct target *target,
                                         const struct as_evaluation_state *state)
{
    struct evaluations *evaluations = get_evaluations(target);
    struct evaluation *evaluation = as_xcalloc(1, sizeof(*evaluation));
    evaluation->target = target;
    evaluation->state = *state;
    as_rows_own_texts(as_evaluation_rows, &evaluation->state);
    struct evaluation *other = TAILQ_LAST(&evaluations->open, evaluation_list);
    while (other && other->state.applied.mono.us > state->applied.mono.us)
        other = TAILQ_PREV(other, evaluation_list, in_target);
    if (other)
        TAILQ_INSERT_AFTER(&evaluations->open, other, evaluation, in_target);
    else
        TAILQ_INSERT_HEAD(&evaluations->open, evaluation, in_target);
    other = TAILQ_LAST(&engine->evaluations, evaluation_list);
    while (other && other->state.applied.mono.us > state->applied.mono.us)
        other = TAILQ_PREV(other, evaluation_list, in_engine);
    if (other)
        TAILQ_INSERT_AFTER(&engine->evaluations, other, evaluation, in_engine);
    else
        TAILQ_INSERT_HEAD(&engine->evaluations, evaluation, in_engine);
    evaluations->open_count++;
    return evaluation;
}

static void evaluation_free(struct as_engine *engine, struct evaluation *evaluation)
{
    TAILQ_REMOVE(&get_evaluations(evaluation->target)->open, evaluation, in_target);
    TAILQ_REMOVE(&engine->evaluations, evaluation, in_engine);
    get_evaluations(evaluation->target)->open_count--;
    as_rows_free_texts(as_evaluation_rows, &evaluation->state);
    free(evaluation);
}

static struct rule_effect *rule_effect_find(const struct target *target, const char *rule)
{
    struct evaluations *evaluations = get_evaluations(target);
    struct rule_effect *rule_effect;
    TAILQ_FOREACH (rule_effect, &evaluations->rules, in_target) {
        if (strcmp(rule_effect->state.rule, rule) == 0)
            return rule_effect;
    }
    return NULL;
}

static struct rule_effect *rule_effect_get(struct target *target, const char *rule)
{
    struct evaluations *evaluations = get_evaluations(target);
    struct rule_effect *rule_effect = rule_effect_find(target, rule);
    if (rule_effect)
        return rule_effect;
    rule_effect = as_xcalloc(1, sizeof(*rule_effect));
    rule_effect->state = (struct as_rule_effect_state){.rule = rule, .held = AS_MOMENT_NEVER};
    as_rows_own_texts(as_rule_effect_rows, &rule_effect->state);
    TAILQ_INSERT_TAIL(&evaluations->rules, rule_effect, in_target);
    evaluations->rule_count++;
    return rule_effect;
}

static void rule_effect_free(struct target *target, struct rule_effect *rule_effect)
{
    struct evaluations *evaluations = get_evaluations(target);
    TAILQ_REMOVE(&evaluations->rules, rule_effect, in_target);
    evaluations->rule_count--;
    as_rows_free_texts(as_rule_effect_rows, &rule_effect->state);
    free(rule_effect);
}

/* Where the rule's incidents are: the target itself, or its pool. */
static struct target *evaluation_find_owner(const struct as_engine *engine, struct target *target,
                                            const char *name)
{
    struct target *pool = target_find_pool(engine, target);
    if (!pool)
        return target;
    const struct as_rule *rule = as_ruleset_find_rule(engine->ruleset, name);
    return rule && rule->target == pool->config ? pool : target;
}

/* Whether an incident of the rule is open that was open then. `but`: it has just ended. */
static bool evaluation_has_cause(const struct as_engine *engine, struct target *target,
                                 const char *rule, struct as_moment at, const struct incident *but)
{
    const struct group *group = group_find(evaluation_find_owner(engine, target, rule), rule);
    const struct binding *binding;
    if (!group)
        return false;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (binding->incident != but && binding->incident->state.opened.mono.us <= at.mono.us)
            return true;
    }
    return false;
}

bool evaluation_is_of_alert(struct as_engine *engine, struct target *target,
                            const struct intent *intent)
{
    const struct group *group =
        group_find(evaluation_find_owner(engine, target, intent->state.rule), intent->state.rule);
    if (intent->state.is_ordered || !group || group->count == 0 || group->rule->is_always)
        return false;
    /* the way back is on_resolved's, of an earlier incident */
    return intent->state.to > intent->state.from || group->rule->action.kind != AS_ACTION_SCALE_UP;
}

/* Trials */

/* Counts an action whose effect is known. An action that helped ends the hold: no more have all of
 * the last ones been in vain. */
static void evaluation_count_open(struct as_engine *engine, struct target *target,
                                  struct as_effect_record *record)
{
    const struct as_rule *rule = as_ruleset_find_rule(engine->ruleset, record->rule);
    struct target *owner = evaluation_find_owner(engine, target, record->rule);
    if (!rule || rule->ineffective_after == 0 || record->end == AS_EVALUATION_UNKNOWN)
        return;
    struct rule_effect *rule_effect = rule_effect_get(owner, record->rule);
    const bool was_held = rule_effect_is_held(rule_effect, engine->mono);
    if (record->end == AS_EVALUATION_RESOLVED || (as_moment_is_set(rule_effect->state.held) &&
                                                  !was_held)) { /* the hold is over: begins anew */
        rule_effect->state.in_vain = 0;
        rule_effect->state.held = AS_MOMENT_NEVER;
    }
    if (record->end == AS_EVALUATION_NOT_RESOLVED && rule_effect->state.in_vain < UINT32_MAX)
        rule_effect->state.in_vain++;
    record->in_vain = rule_effect->state.in_vain;
    if (!was_held && rule_effect->state.in_vain >= rule->ineffective_after) {
        rule_effect->state.held = moment_now(engine);
        record->is_held = true;
        record->until.us = as_time_add(engine->wall.us, INEFFECTIVE_HELD_US);
    }
    owner->dirty = true;
    if (owner != target)
        effect_put_target(engine, owner);
}

bool evaluation_holds(const struct as_engine *engine, const struct target *target, const char *rule)
{
    const struct target *owner = evaluation_find_owner(engine, (struct target *)(uintptr_t)target,
                                                       rule); /* neither is changed */
    const struct rule_effect *rule_effect = rule_effect_find(owner, rule);
    return rule_effect && rule_effect_is_held(rule_effect, engine->mono);
}

static bool evaluation_release_target(struct as_engine *engine, struct target *target)
{
    struct evaluations *evaluations = get_evaluations(target);
    struct rule_effect *rule_effect;
    bool was_held = false;
    TAILQ_FOREACH (rule_effect, &evaluations->rules, in_target) {
        was_held = was_held || rule_effect_is_held(rule_effect, engine->mono);
        rule_effect->state.held = AS_MOMENT_NEVER;
        rule_effect->state.in_vain = 0;
    }
    if (was_held)
        effect_put_target(engine, target);
    return was_held;
}

bool evaluation_release(struct as_engine *engine, struct target *target)
{
    bool was_held = false;
    if (target)
        return evaluation_release_target(engine, target);
    RB_FOREACH (target, target_tree, &engine->targets)
        was_held = evaluation_release_target(engine, target) || was_held;
    return was_held;
}

/* Effect evaluations */

/* The target is to be stored. */
static void evaluation_finish(struct as_engine *engine, struct evaluation *evaluation,
                              enum as_effect_end end)
{
    const struct as_evaluation_state *state = &evaluation->state;
    struct target *target = evaluation->target;
    struct as_effect_record *record = as_arena_alloc(&engine->arena, 1, sizeof(*record));
    *record = (struct as_effect_record){
        .action = as_arena_strdup(&engine->arena, state->action_id),
        .decision = as_arena_strdup(&engine->arena, state->decision_id),
        .target = target->ref->id,
        .target_name = target->config ? target->config->name : "",
        .rule = as_arena_strdup(&engine->arena, state->rule),
        .from = state->from,
        .to = state->to,
        .ready_us = state->ready_us,
        .resolved_us = state->resolved_us,
        .end = end,
    };
    evaluation_free(engine, evaluation);
    evaluation_count_open(engine, target, record);
    effect_add(engine, AS_EFFECT_RECORD_EVALUATION)->evaluation = record;
}

/* Finishes it if nothing is open any more. */
static void evaluation_settle(struct as_engine *engine, struct evaluation *evaluation)
{
    if (evaluation->state.resolved_us >= 0 && !evaluation->state.awaits_ready)
        evaluation_finish(engine, evaluation, AS_EVALUATION_RESOLVED);
}

static bool knows_ready(const struct target *target)
{
    return target->ready >= 0 && (target->names_instances || scaleup_get_timeout(target) > 0);
}

/* The target's size is not yet the new one. */
static int32_t find_missing(const struct target *target, const struct intent *intent)
{
    if (scaleup_get(target)->is_open && scaleup_get(target)->from <= intent->state.from)
        return scaleup_get(target)->missing;
    const int32_t missing = intent->state.from - target->ready;
    return missing > 0 ? missing : 0;
}

static void evaluation_begin(struct as_engine *engine, struct target *target,
                             const struct intent *intent)
{
    struct evaluations *evaluations = get_evaluations(target);
    if (!intent->state.is_of_alert || intent->state.to == intent->state.from)
        return;
    if (evaluations->open_count >= EVALUATIONS_MAX)
        evaluation_finish(engine, TAILQ_FIRST(&evaluations->open), AS_EVALUATION_UNKNOWN);
    const bool awaits_ready = intent->state.to > intent->state.from && knows_ready(target);
    const struct as_evaluation_state state = {
        .action_id = intent->state.action_id,
        .decision_id = intent->state.decision_id,
        .rule = intent->state.rule,
        .from = intent->state.from,
        .to = intent->state.to,
        .missing = awaits_ready ? find_missing(target, intent) : 0,
        .at = intent->state.at,
        .applied = moment_now(engine),
        .awaits_ready = awaits_ready,
        .ready_us = -1,
        .resolved_us = -1,
    };
    struct evaluation *evaluation = evaluation_add(engine, target, &state);
    if (evaluation_has_cause(engine, target, intent->state.rule, intent->state.at, NULL))
        return;
    if (!intent->is_resolved) {
        evaluation_finish(engine, evaluation, AS_EVALUATION_UNKNOWN);
        return;
    }
    evaluation->state.resolved_us = 0;
    evaluation_settle(engine, evaluation);
}

static void evaluation_see(struct as_engine *engine, struct target *target,
                           const struct as_observation *observation)
{
    struct evaluations *evaluations = get_evaluations(target);
    struct evaluation *evaluation, *next;
    bool is_changed = false;
    TAILQ_FOREACH_SAFE (evaluation, &evaluations->open, in_target, next) {
        struct as_evaluation_state *state = &evaluation->state;
        const int64_t age_us = engine->mono.us - state->applied.mono.us;
        if (!state->awaits_ready || !knows_ready(target))
            continue;
        if (observation->replicas >= state->to &&
            scaleup_count_ready(observation) + state->missing >= state->to)
            state->ready_us = age_us;
        else if (observation->replicas >= state->to ||
                 age_us < IN_DOUBT_US) /* maybe from a cache */
            continue;
        state->awaits_ready = false; /* ready, or smaller again: it never will be */
        is_changed = true;
        evaluation_settle(engine, evaluation);
    }
    if (!is_changed)
        return;
    effect_put_target(engine, target);
    effect_commit(engine);
}

/* Its alert ends while its request is under way. */
static void end_cause_of(struct as_engine *engine, struct target *target, struct intent *intent,
                         const char *rule, const struct incident *incident, bool is_resolved)
{
    if (intent && strcmp(intent->state.rule, rule) == 0 &&
        incident->state.opened.mono.us <= intent->state.at.mono.us)
        intent->is_resolved =
            is_resolved && !evaluation_has_cause(engine, target, rule, intent->state.at, incident);
}

static void end_causes(struct as_engine *engine, struct target *target, const char *rule,
                       const struct incident *incident, bool is_resolved)
{
    struct evaluations *evaluations = get_evaluations(target);
    struct evaluation *evaluation, *next;
    bool is_changed = false;
    end_cause_of(engine, target, target->intent, rule, incident, is_resolved);
    end_cause_of(engine, target, target->in_doubt, rule, incident, is_resolved);
    TAILQ_FOREACH_SAFE (evaluation, &evaluations->open, in_target, next) {
        struct as_evaluation_state *state = &evaluation->state;
        if (state->resolved_us >= 0 || strcmp(state->rule, rule) != 0 ||
            incident->state.opened.mono.us > state->at.mono.us ||
            evaluation_has_cause(engine, target, rule, state->at, incident))
            continue;
        is_changed = true;
        if (!is_resolved) {
            evaluation_finish(engine, evaluation, AS_EVALUATION_UNKNOWN);
            continue;
        }
        state->resolved_us = engine->mono.us - state->applied.mono.us;
        evaluation_settle(engine, evaluation);
    }
    if (is_changed)
        effect_put_target(engine, target);
}

void evaluation_on_end(struct as_engine *engine, const struct incident *incident, bool is_resolved)
{
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct group *group = incident->bindings[i].group;
        const struct as_pool_config *pool = group->target->config->pool;
        end_causes(engine, group->target, group->rule->name, incident, is_resolved);
        for (size_t k = 0; pool && k < pool->group_count; k++) {
            struct target *member =
                LIST_FIRST(target_get_members(engine, engine->ruleset->targets[pool->groups[k]]));
            if (member)
                end_causes(engine, member, group->rule->name, incident, is_resolved);
        }
    }
}

as_mono_time evaluation_get_deadline(const struct as_engine *engine)
{
    const struct evaluation *first = TAILQ_FIRST(&engine->evaluations);
    if (!first || engine->stopping)
        return AS_MONO_NEVER;
    return (as_mono_time){as_time_add(first->state.applied.mono.us, AS_EVALUATION_US)};
}

void evaluation_on_deadline(struct as_engine *engine)
{
    bool is_changed = false;
    while (evaluation_get_deadline(engine).us <= engine->mono.us) {
        struct evaluation *evaluation = TAILQ_FIRST(&engine->evaluations);
        struct target *target = evaluation->target;
        evaluation_finish(engine, evaluation,
                          evaluation->state.resolved_us >= 0 ? AS_EVALUATION_RESOLVED
                                                             : AS_EVALUATION_NOT_RESOLVED);
        effect_put_target(engine, target);
        is_changed = true;
    }
    if (is_changed)
        effect_commit(engine);
}

static bool drop_rule_effects(struct as_engine *engine, struct target *target)
{
    struct evaluations *evaluations = get_evaluations(target);
    struct rule_effect *rule_effect, *next;
    bool is_changed = false;
    TAILQ_FOREACH_SAFE (rule_effect, &evaluations->rules, in_target, next) {
        const struct as_rule *rule = as_ruleset_find_rule(engine->ruleset, rule_effect->state.rule);
        if (rule && rule->ineffective_after > 0)
            continue;
        rule_effect_free(target, rule_effect);
        is_changed = true;
    }
    return is_changed;
}

void evaluations_remake(struct as_engine *engine, struct target *target)
{
    struct evaluations *evaluations = get_evaluations(target);
    struct evaluation *evaluation, *next;
    bool is_changed = drop_rule_effects(engine, target);
    TAILQ_FOREACH_SAFE (evaluation, &evaluations->open, in_target, next) {
        const struct as_evaluation_state *state = &evaluation->state;
        if (state->resolved_us >= 0 ||
            evaluation_has_cause(engine, target, state->rule, state->at, NULL))
            continue;
        evaluation_finish(engine, evaluation, AS_EVALUATION_UNKNOWN);
        is_changed = true;
    }
    if (is_changed)
        effect_put_target(engine, target);
}

static void evaluation_forget_pods(struct as_engine *engine, struct target *target,
                                   const struct other_object *why)
{
    (void)why;
    struct evaluations *evaluations = get_evaluations(target);
    struct evaluation *evaluation, *next;
    TAILQ_FOREACH_SAFE (evaluation, &evaluations->open, in_target, next) {
        evaluation->state.awaits_ready = false;
        evaluation_settle(engine, evaluation);
    }
}

bool evaluations_are_open(const struct target *target)
{
    return get_evaluations(target)->open_count > 0;
}

static void visit_ineffective_of(const struct target *target, as_mono_time now, as_wall_time wall,
                                 as_ineffective_visit_fn *visit, void *context)
{
    const struct rule_effect *rule_effect;
    TAILQ_FOREACH (rule_effect, &get_evaluations(target)->rules, in_target) {
        const struct as_ineffective_view view = {
            .ref = target->ref,
            .target_name = target->config ? target->config->name : "",
            .is_templated = target->config && target->config->is_templated,
            .rule = rule_effect->state.rule,
            .since = rule_effect->state.held,
            .until = lock_get_end(rule_effect->state.held, INEFFECTIVE_HELD_US, now, wall),
        };
        if (rule_effect_is_held(rule_effect, now))
            visit(context, &view);
    }
}

void as_engine_visit_ineffective(const struct as_engine *engine, const struct as_target_ref *ref,
                                 as_mono_time now, as_wall_time wall,
                                 as_ineffective_visit_fn *visit, void *context)
{
    struct target_tree *targets = (struct target_tree *)(uintptr_t)&engine->targets;
    struct target key = {.ref = (struct as_target_ref *)(uintptr_t)ref};
    struct target *target =
        ref ? RB_FIND(target_tree, targets, &key) : RB_MIN(target_tree, targets);
    while (target) {
        visit_ineffective_of(target, now, wall, visit, context);
        target = ref ? NULL : RB_NEXT(target_tree, targets, target);
    }
}

static void evaluations_init(struct target *target)
{
    struct evaluations *evaluations = get_evaluations(target);
    TAILQ_INIT(&evaluations->open);
    TAILQ_INIT(&evaluations->rules);
}

/* Evaluations are in a list of the engine, too: `forget` and the end of the engine free them. */
static void evaluations_deinit(struct target *target)
{
    struct evaluations *evaluations = get_evaluations(target);
    while (!TAILQ_EMPTY(&evaluations->rules))
        rule_effect_free(target, TAILQ_FIRST(&evaluations->rules));
}

void evaluations_free_all(struct as_engine *engine)
{
    while (!TAILQ_EMPTY(&engine->evaluations))
        evaluation_free(engine, TAILQ_FIRST(&engine->evaluations));
}

static void evaluations_store(struct as_engine *engine, const struct target *target,
                              struct as_target_state *state)
{
    struct evaluations *evaluations = get_evaluations(target);
    struct as_evaluation_state *states =
        as_arena_alloc(&engine->arena, evaluations->open_count, sizeof(*states));
    const struct evaluation *evaluation;
    TAILQ_FOREACH (evaluation, &evaluations->open, in_target)
        states[state->evaluation_count++] = evaluation->state;
    state->evaluations = as_rows_copy(&engine->arena, as_evaluation_rows, states,
                                      state->evaluation_count, sizeof(*states));
    struct as_rule_effect_state *rule_effects =
        as_arena_alloc(&engine->arena, evaluations->rule_count, sizeof(*rule_effects));
    const struct rule_effect *rule_effect;
    TAILQ_FOREACH (rule_effect, &evaluations->rules, in_target)
        rule_effects[state->rule_effect_count++] = rule_effect->state;
    state->rule_effects = as_rows_copy(&engine->arena, as_rule_effect_rows, rule_effects,
                                       state->rule_effect_count, sizeof(*rule_effects));
}

static void evaluations_restore(struct as_engine *engine, struct target *target,
                                const struct as_target_state *state)
{
    for (size_t i = 0; i < state->evaluation_count; i++)
        evaluation_add(engine, target, &state->evaluations[i]);
    for (size_t i = 0; i < state->rule_effect_count; i++) {
        struct rule_effect *rule_effect = rule_effect_get(target, state->rule_effects[i].rule);
        const char *rule = rule_effect->state.rule; /* owned */
        rule_effect->state = state->rule_effects[i];
        rule_effect->state.rule = rule;
    }
}

static void evaluations_on_applied(struct as_engine *engine, struct target *target,
                                   const struct action *action)
{
    evaluation_begin(engine, target, action->intent);
}

/* A rule that did not help changes nothing. */
static void evaluations_visit_blocks(const struct block_query *query, const struct target *target)
{
    const struct rule_effect *rule_effect;
    TAILQ_FOREACH (rule_effect, &get_evaluations(target)->rules, in_target) {
        const char *rule = rule_effect->state.rule;
        if (rule_effect_is_held(rule_effect, query->now))
            query->visit(query->context, &(struct block){.ways = AS_WAYS_BOTH,
                                                         .kind = BLOCK_INEFFECTIVE,
                                                         .name = rule,
                                                         .rule = rule});
    }
}

const struct concern concern_evaluations = {
    .name = "evaluations",
    .on_observed = evaluation_see,
    .on_applied = evaluations_on_applied,
    .size = sizeof(struct evaluations),
    .init = evaluations_init,
    .deinit = evaluations_deinit,
    .store = evaluations_store,
    .restore = evaluations_restore,
    .visit_blocks = evaluations_visit_blocks,
    .forget_sizes = evaluation_forget_pods,
};
