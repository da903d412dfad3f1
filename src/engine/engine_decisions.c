/*
 * From an observation and the rules' proposals to a decision and its record.
 *
 * Rules with `dry_run` are decided at the same time, but separately from live rules: their
 * proposals never move or veto anything.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_incidents.h"
#include "engine_phases.h"
#include "engine_pools.h"
#include "engine_registry.h"

/*
 * What a target's rules want now.
 *
 * All incidents of one rule on one target propose the same. So a rule proposes once, for its oldest
 * incident that may act now; a rule with a source proposes once for each value of its incidents. If
 * none of its incidents may act now, a rule that may scale up proposes to stay (`by: 0`), other
 * rules nothing. A held (silenced) incident never acts.
 *
 * A proposal that rests only on the alert, and could lower the size, says when the alert was last
 * reported: the latest report of all incidents with this proposal.
 */

#define VALUES_MAX 32 /* per rule */

static bool is_due(const struct as_engine *engine, const struct binding *binding)
{
    if (pool_get(binding->group->target)->is_short && !incident_is_held(binding->incident))
        return true; /* the rest of a step that has begun */
    return binding_get_due(binding).us <= engine->mono.us;
}

/* The reason of an alert's state if its query is not the reason; NULL: it is. */
static const char *find_state_reason(const struct incident *incident)
{
    return as_annotations_find_state(incident->state.annotations);
}

/* The oldest incident for which the rule may act now, preferably one that lets it lower the size;
 * NULL: none. */
static const struct binding *find_due(const struct as_engine *engine, const struct group *group)
{
    const struct binding *binding, *first = NULL;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (!is_due(engine, binding))
            continue;
        if (!find_state_reason(binding->incident))
            return binding;
        first = first ? first : binding;
    }
    return first;
}

/* Neither scale-ups nor values queried for this decision need a report. */
static bool needs_news(const struct as_rule *rule)
{
    return !as_source_is_asked(&rule->source) && rule->action.kind != AS_ACTION_SCALE_UP &&
           rule->action.kind != AS_ACTION_HOLD && !rule->action.is_take;
}

static void note_report(const struct as_engine *engine, struct as_proposal *proposal,
                        const struct binding *binding)
{
    proposal->needs_news = needs_news(binding->group->rule);
    if (!proposal->needs_news)
        return;
    const struct as_moment latest = {.mono = news_get(engine, binding)};
    const as_maybe_time reported = moment_get_wall(engine, latest);
    if (reported.set && (!proposal->reported.set || reported.at.us > proposal->reported.at.us))
        proposal->reported = reported;
}

static bool wants_to_stay(const struct as_action *action, int32_t replicas)
{
    switch (action->kind) {
    case AS_ACTION_SCALE_UP: return !action->is_fit;
    case AS_ACTION_TRACK:
    case AS_ACTION_PASS_THROUGH: return true;
    case AS_ACTION_SCALE_TO: return action->steps || action->size >= replicas;
    case AS_ACTION_SCALE_DOWN:
    case AS_ACTION_HOLD:
    case AS_ACTION_KIND_COUNT: break;
    }
    return false;
}

static void list_incidents(struct proposals *proposals, const struct group *group)
{
    if (group->rule->is_always)
        return;
    proposals->incident_total += group->count;
    const struct binding *binding;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (proposals->incident_count == AS_RECORD_LIST_MAX)
            return;
        proposals->incidents[proposals->incident_count++] = binding->incident->state.key.digest;
    }
}

static const char *decision_print_incident(struct as_engine *engine,
                                           const struct incident *incident)
{
    char *text = as_arena_alloc(&engine->arena, 1, AS_DIGEST_TEXT_SIZE);
    incident_print(incident, text);
    return text;
}

static struct as_proposal *decision_add(struct proposals *proposals, const struct as_rule *rule,
                                        const char *incident, const struct as_action *action)
{
    struct as_proposal *proposal = &proposals->items[proposals->count];
    *proposal = (struct as_proposal){
        .rule = rule->name,
        .incident = incident,
        .action = *action,
    };
    return proposal;
}

static void propose_to_stay(struct as_engine *engine, struct proposals *proposals,
                            struct group *group)
{
    const struct as_action *action = &group->rule->action;
    const int32_t replicas = group->target->replicas;
    struct as_action stay = {.kind = AS_ACTION_SCALE_UP, .amount = {.at_least = 1}};
    if (action->is_to) { /* no decrease goes below its size */
        stay.is_to = true;
        stay.size = action->size < replicas ? action->size : replicas;
    }
    const struct incident *oldest = TAILQ_FIRST(&group->bindings)->incident;
    (void)decision_add(proposals, group->rule, decision_print_incident(engine, oldest), &stay);
    proposals->origins[proposals->count++] = (struct proposer){.group = group};
}

static size_t decision_find_value(const char *const *values, size_t count, const char *value)
{
    size_t i = 0;
    while (i < count && strcmp(values[i], value) != 0)
        i++;
    return i;
}

static void propose_values(struct as_engine *engine, struct target *target,
                           struct proposals *proposals, struct group *group)
{
    const char *values[VALUES_MAX];
    const size_t first = proposals->count;
    size_t count = 0;
    const struct binding *binding;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (!is_due(engine, binding))
            continue;
        const struct incident *incident = binding->incident;
        const char *value;
        struct as_proposal *proposal =
            decision_add(proposals, group->rule, decision_print_incident(engine, incident),
                         &group->rule->action);
        sources_read(engine, target, group->rule, incident, proposal, &value);
        const size_t same = decision_find_value(values, count, value);
        note_report(engine, &proposals->items[first + same], binding);
        if (same < count) {
            struct proposer *origin = &proposals->origins[first + same];
            if (find_state_reason(origin->incident) && !find_state_reason(incident)) {
                origin->incident = incident;
                proposals->items[first + same].incident = proposal->incident;
            }
            continue;
        }
        proposals->origins[proposals->count++] =
            (struct proposer){.group = group, .incident = incident};
        if (sources_is_same_for_all(group->rule))
            return;
        if (count == VALUES_MAX - 1) {
            proposal->has_value = false;
            proposal->samples = NULL;
            proposal->sample_count = 0;
            proposal->error = "too many different values for one rule";
            return;
        }
        values[count++] = value;
    }
}

static void propose_one(struct as_engine *engine, struct proposals *proposals, struct group *group,
                        const struct binding *oldest)
{
    struct as_proposal *proposal =
        decision_add(proposals, group->rule, decision_print_incident(engine, oldest->incident),
                     &group->rule->action);
    const struct binding *binding;
    for (binding = oldest; binding && needs_news(group->rule);
         binding = TAILQ_NEXT(binding, in_group)) {
        if (is_due(engine, binding))
            note_report(engine, proposal, binding);
    }
    proposals->origins[proposals->count++] =
        (struct proposer){.group = group, .incident = oldest->incident};
}

static void decision_propose(struct as_engine *engine, struct target *target,
                             struct proposals *proposals, struct group *group)
{
    const struct binding *due = find_due(engine, group);
    const size_t before = proposals->count;
    if (!due && wants_to_stay(&group->rule->action, target->replicas)) {
        propose_to_stay(engine, proposals, group);
    } else if (due && group->rule->source.kind != AS_SOURCE_NONE) {
        propose_values(engine, target, proposals, group);
    } else if (due) {
        propose_one(engine, proposals, group, due);
    }
    if (proposals->count > before)
        list_incidents(proposals, group);
}

static void propose_endings(struct as_engine *engine, struct target *target,
                            struct proposals *proposals, bool with_dry)
{
    const struct ending *ending;
    TAILQ_FOREACH (ending, endings_get(target), in_target) {
        struct as_action action;
        if (!ending->rule)
            continue;
        proposals->has_dry = proposals->has_dry || ending->rule->dry_run;
        if ((ending->rule->dry_run && !with_dry) ||
            !ending_get_action(engine, ending, target->replicas, &action))
            continue;
        const char *incident = as_arena_strdup(&engine->arena, ending->state.incident);
        (void)decision_add(proposals, ending->rule, incident, &action);
        proposals->origins[proposals->count++] = (struct proposer){.ending = ending};
    }
}

static bool proposals_have(const struct proposals *proposals, const struct group *group)
{
    for (size_t i = 0; i < proposals->count; i++) {
        if (proposals->origins[i].group == group)
            return true;
    }
    return false;
}

/* The rule of an open incident lowers the size itself. The incident holds the end of a schedule
 * back, also if the rule wants no size now. */
static bool proposals_scale_down(const struct proposals *proposals)
{
    for (size_t i = 0; i < proposals->count; i++) {
        const struct group *group = proposals->origins[i].group;
        if (group && !group->rule->is_always && group->rule->action.kind == AS_ACTION_SCALE_DOWN)
            return true;
    }
    return false;
}

/* The rule proposes a size, which is its answer to a decrease. */
static bool decides_decrease(const struct proposals *proposals, const struct group *group)
{
    const struct as_action *action = &group->rule->action;
    return group->rule->is_always ||
           (action->kind != AS_ACTION_HOLD && !action->is_fit && proposals_have(proposals, group));
}

/* The end of a schedule. An open incident holds a decrease back: its rule proposes at least to
 * stay, or scales down by itself. An `always` rule has a value instead. */
static void propose_schedule_end(struct as_engine *engine, struct target *target,
                                 struct proposals *proposals, bool with_dry)
{
    const char *schedule;
    int32_t size;
    if (!schedule_ends_get_size(engine, target, target->replicas, &schedule, &size) ||
        (size < target->replicas && proposals_scale_down(proposals)))
        return;
    struct group *group;
    RB_FOREACH (group, group_tree, &target->groups) {
        if (size < target->replicas && (with_dry || !group->rule->dry_run) &&
            !decides_decrease(proposals, group))
            propose_to_stay(engine, proposals, group);
    }
    proposals->items[proposals->count] = (struct as_proposal){
        .schedule = as_arena_strdup(&engine->arena, schedule),
        .action = {.kind = AS_ACTION_SCALE_TO, .size = size},
    };
    proposals->origins[proposals->count++] = (struct proposer){0};
}

/* What the pool has decided for this group. Where it has grown since, no node but those named
 * leaves. */
static void propose_share(struct as_engine *engine, const struct target *target,
                          struct proposals *proposals)
{
    const struct assignment *assignment = assignment_get(target);
    if (!assignment->pool || (!assignment->is_up && assignment->proof_until.us <= engine->mono.us))
        return;
    int64_t to = assignment->to;
    if (!assignment->is_up && to < target->replicas - (int64_t)assignment->take_count)
        to = target->replicas - (int64_t)assignment->take_count;
    struct as_proposal *proposal = &proposals->items[proposals->count];
    *proposal = (struct as_proposal){
        .rule = as_arena_strdup(&engine->arena,
                                assignment->rule), /* the assignment may end in this step */
        .action = {.kind = assignment->is_up ? AS_ACTION_SCALE_UP : AS_ACTION_SCALE_DOWN,
                   .is_to = true,
                   .size = to},
    };
    proposals->origins[proposals->count++] = (struct proposer){.is_assignment = true};
}

static const struct as_rule *get_rule(const struct proposer *origin)
{
    return origin->group ? origin->group->rule : origin->ending ? origin->ending->rule : NULL;
}

/* A pool's assignment has the pool's approval. */
static void add_terms(struct as_engine *engine, struct target *target, struct proposals *proposals)
{
    for (size_t i = 0; i < proposals->count; i++) {
        const struct as_rule *rule = get_rule(&proposals->origins[i]);
        if (rule)
            proposals->items[i].approval = approvals_get_terms(engine, target, rule);
    }
}

static size_t decision_count_possible(const struct target *target)
{
    struct group *group;
    const struct ending *ending;
    size_t count = 0;
    TAILQ_FOREACH (ending, endings_get(target), in_target)
        count++;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        const size_t values = group->count < VALUES_MAX ? group->count : VALUES_MAX;
        count += 1 + (group->rule->source.kind == AS_SOURCE_NONE ? 1 : values); /* 1: to stay */
    }
    /* the end of a schedule, an assignment; and an item is written before it is known to count */
    return count + 3;
}

static void proposals_gather(struct as_engine *engine, struct target *target, bool with_dry,
                             struct proposals *proposals_out)
{
    const size_t possible = decision_count_possible(target);
    struct proposals proposals = {
        .items = as_arena_alloc(&engine->arena, possible, sizeof(*proposals.items)),
        .origins = as_arena_alloc(&engine->arena, possible, sizeof(*proposals.origins)),
        .incidents =
            as_arena_alloc(&engine->arena, AS_RECORD_LIST_MAX, sizeof(*proposals.incidents)),
    };
    struct group *group;
    RB_FOREACH (group, group_tree, &target->groups) {
        proposals.has_dry = proposals.has_dry || group->rule->dry_run;
        if (with_dry || !group->rule->dry_run)
            decision_propose(engine, target, &proposals, group);
    }
    propose_endings(engine, target, &proposals, with_dry);
    propose_schedule_end(engine, target, &proposals, with_dry);
    propose_share(engine, target, &proposals);
    add_terms(engine, target, &proposals);
    *proposals_out = proposals;
}

/* Who made the winning proposal; NULL: nobody (bounds are enforced for nobody). */
static const struct proposer *decision_find_winner(const struct proposals *proposals,
                                                   const struct as_proposal_result *results,
                                                   const struct as_decision *decision)
{
    const struct proposer *winner = NULL;
    int32_t highest = -1;
    for (size_t i = 0; i < proposals->count; i++) {
        if (proposals->items[i].rule != decision->rule || !results[i].has_size ||
            results[i].desired <= highest)
            continue;
        highest = results[i].desired;
        winner = &proposals->origins[i];
    }
    return winner;
}

/* Asks for the approval that the decision with this id lacks. */
static void proposals_ask(struct as_engine *engine, struct target *target,
                          const struct proposals *proposals,
                          const struct as_proposal_result *results,
                          const struct as_decision *decision, const char *id)
{
    size_t i = 0;
    while (results[i].approval != AS_APPROVAL_ASKS)
        i++;
    const struct as_proposal *proposal = &proposals->items[i];
    approvals_ask(engine, target,
                  &(struct desired_approval){
                      .rule = get_rule(&proposals->origins[i]),
                      .incident = proposal->incident,
                      .decision = id,
                      .from = decision->replicas,
                      .to = decision->asked,
                  });
}

/* Id of the request that the decision rests on; NULL: none. */
static const char *proposals_find_approval(const struct proposals *proposals,
                                           const struct as_proposal_result *results)
{
    for (size_t i = 0; i < proposals->count; i++) {
        if (results[i].approval == AS_APPROVAL_USED)
            return proposals->items[i].approval.id;
    }
    return NULL;
}

/* An alert whose state does not come from its query lowers no size. */
static const char *proposals_find_state(const struct proposer *winner)
{
    return winner->group && winner->incident ? find_state_reason(winner->incident) : NULL;
}

/* The missing proof of a decision to scale down: the query of a guard, or "" for the watchdog.
 * NULL: none is missing. */
static const char *proposals_find_missing_proof(struct as_engine *engine,
                                                const struct target *target,
                                                const struct proposer *winner)
{
    if (winner->is_assignment) /* the pool's decision was proven */
        return NULL;
    const struct ending *ending = winner->ending;
    if (ending && ending_is_proven(engine, target, ending))
        return NULL;
    if (ending)
        return ending->rule->guard_kind == AS_GUARD_QUERY ? ending->state.guard : "";
    const struct as_rule *rule = winner->group->rule;
    if (winner->incident && rule->guard_kind == AS_GUARD_QUERY) {
        const char *guard = sources_get_guard(engine, rule, winner->incident);
        return sources_is_guard_met(target, guard) ? NULL : guard;
    }
    /* No monitoring is asked about nodes: its being alive is proven by itself. An `always` rule
     * needs no monitoring, and facts about nodes that are not fresh are no value. */
    return !rule->is_always && (rule->source.kind == AS_SOURCE_NODES || rule->action.is_take) &&
                   rule->guard_kind == AS_GUARD_ABSENT && !watchdog_is_alive(engine, engine->mono)
               ? ""
               : NULL;
}

/* The missing proof of a decrease by the winner, for its record; NULL: none is missing. */
static const struct as_proof_note *proposals_note_proof(struct as_engine *engine,
                                                        const struct target *target,
                                                        const struct proposer *winner)
{
    const char *state = proposals_find_state(winner);
    const char *query = state ? NULL : proposals_find_missing_proof(engine, target, winner);
    if (!state && !query)
        return NULL;
    struct as_proof_note *proof = as_arena_alloc(&engine->arena, 1, sizeof(*proof));
    *proof =
        (struct as_proof_note){.state = as_arena_strdup(&engine->arena, state), .every_us = -1};
    if (query && *query)
        proof->query = as_arena_strdup(&engine->arena, query);
    else if (query)
        watchdog_fill_note(engine, proof);
    return proof;
}

/* Adds to the outcome what people are told of the winner: a missing proof, a step of `give_back`.
 */
static void decision_note_winner(struct as_engine *engine, const struct target *target,
                                 const struct proposer *winner, struct outcome *outcome)
{
    outcome->proof = proposals_note_proof(engine, target, winner);
    if (winner->ending)
        outcome->give_back = ending_note_step(engine, winner->ending, target->replicas);
}

/* Notes which rules wanted up: the action answers them too. */
static void proposals_note_desired(const struct proposals *proposals,
                                   const struct as_proposal_result *results, int32_t replicas)
{
    for (size_t i = 0; i < proposals->count; i++) {
        if (proposals->origins[i].group)
            proposals->origins[i].group->wants_up = false;
    }
    for (size_t i = 0; i < proposals->count; i++) {
        if (proposals->origins[i].group && results[i].has_size && results[i].desired > replicas)
            proposals->origins[i].group->wants_up = true;
    }
}

/* False: there was none. Of a total with a goal per pod, the average. */
static bool find_measure(const struct as_proposal *proposal,
                         const struct as_proposal_result *result, int32_t replicas,
                         double *value_out)
{
    const bool is_average = proposal->action.kind == AS_ACTION_TRACK &&
                            proposal->action.track.goal == AS_GOAL_AVERAGE_VALUE;
    double value = result->has_average ? result->average
                   : result->has_value ? result->value
                                       : proposal->value;
    if (!result->has_average && !result->has_value && !proposal->has_value)
        return false;
    if (is_average && !result->has_average && replicas > 0)
        value /= replicas;
    *value_out = value;
    return isfinite(value);
}

/* Notes the size that a rule wants, and why it wants none; of several incidents the highest one. */
static void group_note_size(struct group *group, const struct as_proposal_result *result)
{
    const bool is_better = !group->has_size || result->desired > group->size;
    if (!result->has_size) {
        group->reason = group->has_size ? group->reason : result->reason;
    } else if (is_better) {
        group->size = result->desired;
        group->reason = result->is_missing         ? AS_REASON_METRIC_UNAVAILABLE
                        : result->within_tolerance ? AS_REASON_WITHIN_TOLERANCE
                                                   : AS_REASON_SCALED;
    }
    group->has_size = group->has_size || result->has_size;
}

static void proposals_note_missing(struct as_engine *engine, const struct proposals *proposals,
                                   const struct as_proposal_result *results)
{
    for (size_t i = 0; i < proposals->count;) {
        struct group *group = proposals->origins[i].group;
        bool is_missing = false;
        do /* the proposals of one rule stand together */
            is_missing = is_missing || results[i].is_missing;
        while (++i < proposals->count && proposals->origins[i].group == group);
        if (group && !is_missing)
            group->missing_since = AS_MOMENT_NEVER;
        else if (group && !as_moment_is_set(group->missing_since))
            group->missing_since = moment_now(engine);
    }
}

/* Notes the value that each rule saw, of several incidents the highest one. */
static void proposals_note_values(const struct proposals *proposals,
                                  const struct as_proposal_result *results, int32_t replicas)
{
    for (size_t i = 0; i < proposals->count; i++) {
        if (proposals->origins[i].group)
            proposals->origins[i].group->has_value = proposals->origins[i].group->has_size = false;
    }
    for (size_t i = 0; i < proposals->count; i++) {
        if (proposals->origins[i].group)
            group_note_size(proposals->origins[i].group, &results[i]);
    }
    for (size_t i = 0; i < proposals->count; i++) {
        struct group *group = proposals->origins[i].group;
        double value = 0;
        if (!group || !find_measure(&proposals->items[i], &results[i], replicas, &value))
            continue;
        group->value = group->has_value && group->value > value ? group->value : value;
        group->has_value = true;
    }
}

/* Keeps only the samples of the target's own pods: a decision ignores all others, which would fill
 * the log. Both lists ascend. */
static void join_samples(struct as_engine *engine, const struct as_observation *observation,
                         struct as_proposal *proposal)
{
    struct as_sample *own =
        as_arena_alloc(&engine->arena, observation->pod_count, sizeof(*proposal->samples));
    const bool by_owner = proposal->action.track.by_owner;
    size_t count = 0;
    for (size_t i = 0, at = 0; i < proposal->sample_count && at < observation->pod_count;) {
        const struct as_pod_seen *pod = &observation->pods[at];
        const int order = strcmp(proposal->samples[i].pod, pod->name);
        if (order == 0 && (!by_owner || pod->owner != AS_POD_OF_OTHER))
            own[count++] = proposal->samples[i];
        i += order <= 0;
        at += order >= 0;
    }
    proposal->samples = own;
    proposal->sample_count = count;
}

static const struct as_container_seen *find_container(const struct as_pod_seen *pod,
                                                      const char *name)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (strcmp(pod->containers[i].name, name) == 0)
            return &pod->containers[i];
    return NULL;
}

/* Why the pod has nothing that a `utilization` could be measured against, in the step's memory;
 * NULL: it has. */
static const char *explain_lack(struct as_engine *engine, const struct as_pod_seen *pod,
                                const struct as_track *track)
{
    static const char *const words[] = {[AS_RESOURCE_CPU] = "cpu", [AS_RESOURCE_MEMORY] = "memory"};
    const struct as_container_seen *container =
        track->container ? find_container(pod, track->container) : NULL;
    const double *of = container ? track->of_limits ? container->limits : container->requests
                       : track->of_limits ? pod->limits
                                          : pod->requests;
    const char *wanted = track->of_limits ? "limit" : "request";
    char text[AS_MESSAGE_SIZE];
    if (track->container && !container)
        snprintf(text, sizeof(text), "pod %s has no container %s", pod->name, track->container);
    else if (isfinite(of[track->resource]))
        return NULL;
    else if (container)
        snprintf(text, sizeof(text), "container %s of pod %s has no %s %s", container->name,
                 pod->name, words[track->resource], wanted);
    else
        snprintf(text, sizeof(text), "a container of pod %s has no %s %s", pod->name,
                 words[track->resource], wanted);
    return as_arena_strdup(&engine->arena, text);
}

/* Why it is not known whether the target owns the pod, in the step's memory; NULL: it is known. */
static const char *explain_owner(struct as_engine *engine, const struct as_pod_seen *pod)
{
    const char *name = pod->owner_name ? pod->owner_name : "an object";
    char text[2 * AS_MESSAGE_SIZE];
    if (pod->owner != AS_POD_OF_GONE)
        return NULL;
    if (pod->owner_error)
        snprintf(text, sizeof(text), "the owner of pod %s, %s, cannot be read: %s", pod->name, name,
                 pod->owner_error);
    else
        snprintf(text, sizeof(text), "the owner of pod %s, %s, is gone", pod->name, name);
    return as_arena_strdup(&engine->arena, text);
}

/* One pod that lacks something is enough: the average of the others is not that of the target. */
static void proposal_check_owners(struct as_engine *engine,
                                  const struct as_observation *observation,
                                  struct as_proposal *proposal)
{
    const struct as_track *track = &proposal->action.track;
    if (proposal->action.kind != AS_ACTION_TRACK || !track->by_owner)
        return;
    for (size_t i = 0; i < observation->pod_count && !proposal->error; i++)
        proposal->error = explain_owner(engine, &observation->pods[i]);
}

static void proposal_check_resources(struct as_engine *engine,
                                     const struct as_observation *observation,
                                     struct as_proposal *proposal)
{
    const struct as_track *track = &proposal->action.track;
    if (proposal->action.kind != AS_ACTION_TRACK || track->goal != AS_GOAL_UTILIZATION)
        return;
    for (size_t i = 0; i < observation->pod_count && !proposal->error; i++)
        if (!track->by_owner || observation->pods[i].owner == AS_POD_OF_TARGET)
            proposal->error = explain_lack(engine, &observation->pods[i], track);
}

/* Without pods, samples are no value; the error is the observation's. */
static void proposals_check_pods(struct as_engine *engine, const struct as_observation *observation,
                                 struct proposals *proposals)
{
    for (size_t i = 0; i < proposals->count; i++) {
        struct as_proposal *proposal = &proposals->items[i];
        proposal_check_owners(engine, observation, proposal);
        if (proposal->sample_count == 0)
            continue;
        if (observation->has_pods)
            join_samples(engine, observation, proposal);
        if (observation->has_pods && proposal->sample_count > 0) {
            proposal_check_resources(engine, observation, proposal);
            continue;
        }
        proposal->samples = NULL;
        proposal->sample_count = 0;
        proposal->error = observation->has_pods ? "none of the samples is of a pod of the target"
                          : observation->message[0]
                              ? as_arena_strdup(&engine->arena, observation->message)
                              : "the target has no pods to join the samples with";
    }
}

static struct as_decide_input *make_input(struct as_engine *engine, const struct target *target,
                                          const struct as_observation *observation,
                                          const struct proposals *proposals, bool dry_run)
{
    struct as_decide_input *input = as_arena_alloc(&engine->arena, 1, sizeof(*input));
    const struct locks locks = scaleup_get_locks(target, engine->mono);
    const struct as_moment up =
        dry_run ? moment_get_later(locks.up, target->locks.dry_last_up) : locks.up;
    const struct as_moment down =
        dry_run ? moment_get_later(locks.down, target->locks.dry_last_down) : locks.down;
    const struct as_moment step_down =
        dry_run ? moment_get_later(target->locks.last_step_down, target->locks.dry_last_down)
                : target->locks.last_step_down;
    *input = (struct as_decide_input){
        .version = AS_DECIDE_VERSION,
        .now = engine->wall,
        .target = target->ref->id,
        .config = target->config->bounds,
        .dry_run = dry_run,
        .replicas = observation->replicas,
        .status_replicas = observation->status_replicas,
        .marked = observation->marked,
        .last_up = moment_get_wall(engine, up),
        .last_down = moment_get_wall(engine, down),
        .last_step_down = moment_get_wall(engine, step_down),
        .proposals = proposals->items,
        .proposal_count = proposals->count,
    };
    input->config.cooldown = locks.cooldown;
    if (observation->in_progress)
        input_set_in_progress(input, AS_IN_PROGRESS_PROVIDER);
    FOR_CONCERNS (engine, concern)
        if (concern->fill_input)
            concern->fill_input(engine, target, observation, input);
    /* the record outlives an observation that was held for queries */
    input->nodes = sources_copy_nodes(&engine->arena, observation->nodes);
    input->snapshot = observation->snapshot;
    input->plan = observation->plan;
    input->plan_terms = observation->plan ? &observation->plan->terms : NULL;
    if (observation->snapshot)
        input->pool = target->config->pool ? target->config->pool : &as_pool_config_default;
    sources_fill_pods(engine, target, observation, input);
    return input;
}

static const char *get_holder(const struct as_decision *decision)
{
    return as_reason_has_holder(decision->reason) ? decision->held_by.name : NULL;
}

/* 0: of no pool. */
static uint64_t digest_nodes(const struct as_pool_plan *plan)
{
    if (!plan)
        return 0;
    uint64_t state = engine_hash(ENGINE_HASH_INIT, plan->kept, sizeof(plan->kept));
    for (size_t i = 0; i < plan->unneeded_count; i++) {
        const struct as_unneeded *unneeded = &plan->unneeded[i];
        if (!unneeded->since.set)
            continue;
        state = engine_hash(state, unneeded->node, strlen(unneeded->node) + 1);
        state = engine_hash(state, &unneeded->since.at.us, sizeof(unneeded->since.at.us));
    }
    return state;
}

/* A record of a large pool has 1 MiB: changes of its nodes alone are recorded once a minute. */
static bool are_nodes_current(const struct as_engine *engine, const struct target *target,
                              const struct verdict *verdict, const struct as_pool_plan *plan)
{
    return verdict->nodes == digest_nodes(plan) ||
           engine->wall.us - target->decided_at.us < AS_US_PER_MIN;
}

/* A value that moves within the tolerance gives one reason or the other, again and again. */
static bool is_at_goal(enum as_reason reason)
{
    return reason == AS_REASON_NO_CHANGE || reason == AS_REASON_WITHIN_TOLERANCE;
}

static bool verdict_is_equal(const struct target *target, const struct verdict *verdict,
                             const struct as_decision *decision)
{
    const bool has_same_reason =
        verdict->reason == decision->reason ||
        (is_at_goal(verdict->reason) && is_at_goal(decision->reason) && always_is_alone(target));
    return verdict->set && has_same_reason && verdict->direction == decision->direction &&
           verdict->replicas == decision->replicas && verdict->desired == decision->desired &&
           verdict->would == (decision->has_would ? decision->would : -1) &&
           verdict->overdue == decision->overdue && as_str_equal(verdict->rule, decision->rule) &&
           as_str_equal(verdict->holder, get_holder(decision));
}

static void verdict_set(struct verdict *verdict, const struct as_decision *decision,
                        const struct as_pool_plan *plan, const char *id)
{
    const char *holder = get_holder(decision);
    free(verdict->rule);
    free(verdict->holder);
    *verdict = (struct verdict){
        .set = true,
        .direction = decision->direction,
        .replicas = decision->replicas,
        .desired = decision->desired,
        .would = decision->has_would ? decision->would : -1,
        .reason = decision->reason,
        .overdue = decision->overdue,
        .nodes = digest_nodes(plan),
        .rule = decision->rule ? as_xstrdup(decision->rule) : NULL,
        .holder = holder ? as_xstrdup(holder) : NULL,
    };
    memcpy(verdict->id, id, AS_ULID_SIZE);
}

/* Ids of notifications since the last decision, and their age. */
static void describe_cause(struct as_engine *engine, const struct target *target,
                           struct as_decision_record *record)
{
    const struct asked *asked = &target->asked;
    char(*ids)[AS_ULID_SIZE] = as_arena_alloc(&engine->arena, asked->count, AS_ULID_SIZE);
    if (asked->count > 0)
        memcpy(ids, asked->ids, asked->count * AS_ULID_SIZE);
    record->notifications = (const char(*)[AS_ULID_SIZE])ids;
    record->notification_count = asked->count;
    record->notification_total = asked->total;
    record->since_notification_us = asked->total ? engine->mono.us - asked->first.us : -1;
    record->since_alert_us = asked->total ? engine->wall.us - asked->youngest.us : -1;
    if (asked->total && record->since_alert_us < 0)
        record->since_alert_us = 0;
}

static const char *record_decision(struct as_engine *engine, struct target *target,
                                   const struct proposals *proposals,
                                   const struct as_decide_input *input,
                                   const struct as_proposal_result *results,
                                   const struct outcome *outcome, uint64_t repeats)
{
    const struct as_decision *decision = &outcome->decision;
    const struct target *waits_for = outcome->waits_for;
    char *id = as_arena_alloc(&engine->arena, 1, AS_ULID_SIZE);
    as_ulid_print(engine->wall, &engine->random, id);
    struct as_decision *output = as_arena_alloc(&engine->arena, 1, sizeof(*output));
    *output = *decision;
    struct as_decision_record *record = as_arena_alloc(&engine->arena, 1, sizeof(*record));
    *record = (struct as_decision_record){
        .id = id,
        .target = target->ref->id,
        .target_name = target->config->name,
        .target_kind = target->ref->kind,
        .unit = as_sized_get_unit(target->ref),
        .incidents = proposals->incidents,
        .incident_count = proposals->incident_count,
        .incident_total = proposals->incident_total,
        .input = input,
        .results = results,
        .output = output,
        .rules_digest = engine->ruleset->digest,
        .repeats = repeats,
        .pause = pauses_note(engine, target),
        .contended = contention_note(engine, target),
        .proof = outcome->proof,
        .give_back = outcome->give_back,
        .pool_decision = assignment_get(target)->pool
                             ? as_arena_strdup(&engine->arena, assignment_get(target)->decision)
                             : NULL,
        .waits_for = waits_for ? waits_for->config->name : NULL,
        .former_uid =
            target->is_unreported ? as_arena_strdup(&engine->arena, target->former_uid) : NULL,
    };
    target->is_unreported = false;
    describe_cause(engine, target, record);
    effect_add(engine, AS_EFFECT_RECORD_DECISION)->decision = record;
    memcpy(target->last_decision, id, AS_ULID_SIZE);
    target->decided_at = engine->wall;
    return id;
}

/* If two requests ask for different sizes, the first one might still be carried out without
 * being recognized. So while it is open, only its size may be requested; if requests are
 * relative, none. */
static bool contradicts_in_doubt(const struct target *target, const struct as_decision *decision)
{
    return target->in_doubt && decision->desired != decision->replicas &&
           (target->is_relative || decision->desired != target->in_doubt->state.to);
}

/* Decides, and decides again if something holds the decision back: the hold is part of the input,
 * so that the log explains itself. */
static void decision_decide(struct as_engine *engine, struct target *target,
                            const struct proposals *proposals, struct as_decide_input *input,
                            struct as_proposal_result *results, struct outcome *outcome)
{
    struct as_decision *decision = &outcome->decision;
    as_decide(input, results, decision);
    if (contradicts_in_doubt(target, decision))
        input_set_in_progress(input, AS_IN_PROGRESS_IN_DOUBT);
    const struct proposer *winner = decision->direction == AS_DIRECTION_DOWN && decision->rule
                                        ? decision_find_winner(proposals, results, decision)
                                        : NULL;
    if (winner)
        decision_note_winner(engine, target, winner, outcome);
    if (outcome->proof)
        input->flags.guarded = true;
    if (input->flags.in_progress || input->flags.guarded)
        as_decide(input, results, decision);
    if (decision->desired < decision->replicas &&
        (outcome->waits_for = after_hold_decrease(engine, target, &outcome->due))) {
        assignment_prolong(target, (as_mono_time){outcome->due.us + ASSIGNMENT_OBSERVE_US});
        input_set_in_progress(input, AS_IN_PROGRESS_AFTER);
        as_decide(input, results, decision);
        return;
    }
    if (decision->desired == decision->replicas || target->config->pool || /* its groups count */
        !limits_refuse(engine, target, decision->replicas, decision->desired))
        return;
    outcome->due = limits_get_free_time(engine, target, decision->replicas, decision->desired);
    input->flags.budget_exhausted = true;
    as_decide(input, results, decision);
}

/* What a live decision means for requests. */
static void settle_requests(struct as_engine *engine, struct target *target,
                            const struct proposals *proposals, const struct as_decide_input *input,
                            const struct as_proposal_result *results, struct outcome *outcome)
{
    const struct as_decision *decision = &outcome->decision;
    bool is_changed = approvals_apply(engine, target, decision);
    outcome->approval = proposals_find_approval(proposals, results);
    if (decision->is_asking && !input->dry_run) {
        proposals_ask(engine, target, proposals, results, decision, outcome->id);
        is_changed = true;
    }
    if (is_changed)
        effect_put_target(engine, target);
    outcome->is_recorded = outcome->is_recorded || is_changed;
}

/* Decides one set of proposals. Records the decision, unless it repeats the last one and no
 * notification caused it. */
static bool decide_one(struct as_engine *engine, struct target *target,
                       const struct as_observation *observation, const struct proposals *proposals,
                       bool dry_run, struct verdict *verdict, struct outcome *outcome)
{
    struct as_decide_input *input = make_input(engine, target, observation, proposals, dry_run);
    struct as_proposal_result *results =
        as_arena_alloc(&engine->arena, proposals->count, sizeof(*results));
    struct as_decision *decision = &outcome->decision;
    decision_decide(engine, target, proposals, input, results, outcome);
    if (proposals->count == 0 && decision->reason != AS_REASON_ABOVE_MAX &&
        decision->reason != AS_REASON_BELOW_MIN && !as_reason_has_holder(decision->reason) &&
        !decision->has_would)
        return false; /* no proposals, no bound enforced */

    const bool is_live = verdict == &target->verdict;
    proposals_note_missing(engine, proposals, results);
    proposals_note_values(proposals, results,
                          input->config.rollout == AS_ROLLOUT_BY_SPEC
                              ? observation->replicas
                              : observation->status_replicas);
    if (is_live)
        proposals_note_desired(proposals, results, observation->replicas);
    bool is_changed = is_live && decision->has_recommendation &&
                      history_add_recommendation(engine, target, decision->recommendation);
    if (metric_gaps_note(engine, target, proposals, results))
        is_changed = true;
    if (decision->reason == AS_REASON_DRY_RUN) {
        *(decision->direction == AS_DIRECTION_UP ? &target->locks.dry_last_up
                                                 : &target->locks.dry_last_down) =
            moment_now(engine);
        target_set_keep(engine, target);
        is_changed = true;
    }
    if (is_changed) {
        effect_put_target(engine, target);
        outcome->is_recorded = true;
    }
    outcome->id = verdict->id;
    if (target->asked.total == 0 && !target->is_unreported &&
        verdict_is_equal(target, verdict, decision) &&
        are_nodes_current(engine, target, verdict, input->plan) &&
        !(decision->is_asking && is_live && !dry_run)) {
        verdict->repeats++;
    } else {
        const char *id =
            record_decision(engine, target, proposals, input, results, outcome, verdict->repeats);
        outcome->is_recorded = true;
        verdict_set(verdict, decision, input->plan, id);
    }
    if (is_live)
        settle_requests(engine, target, proposals, input, results, outcome);
    return true;
}

static as_mono_time get_earlier(as_mono_time a, as_mono_time b)
{
    return a.us < b.us ? a : b;
}

/* When the proof that a scale-down lacks may arrive. */
static as_mono_time get_proof_time(const struct as_engine *engine, struct target *target,
                                   const struct as_decision *decision)
{
    const struct group *group = group_find(target, decision->rule);
    const int64_t every = group && group->rule->every_us > 0 ? group->rule->every_us : ASK_AGAIN_US;
    return (as_mono_time){as_time_add(engine->mono.us, every)};
}

/* When a value or a rule may next want something else, without any event. */
as_mono_time decisions_get_next_due(const struct as_engine *engine, struct target *target)
{
    const as_mono_time sampled = sources_get_next_due(engine, target);
    const as_mono_time asked = get_earlier(bindings_get_next_due(engine, target),
                                           metric_gaps_get_next_due(engine, target));
    return get_earlier(sampled, get_earlier(asked, endings_get_next_due(engine, target)));
}

void decisions_make(struct as_engine *engine, struct target *target,
                    const struct as_observation *observation, struct outcome *outcome_out)
{
    bool is_reviewed = false;
    FOR_CONCERNS (engine, concern)
        if (concern->review && concern->review(engine, target, observation->replicas))
            is_reviewed = true;
    if (is_reviewed)
        effect_put_target(engine, target);
    assignment_review(engine, target);
    struct proposals live, all;
    proposals_gather(engine, target, false, &live);
    proposals_check_pods(engine, observation, &live);
    metric_gaps_fill(engine, target, &live);
    if (live.count > 0)
        history_begin(engine, target, observation->replicas);
    struct outcome dry = {0};
    if (live.has_dry) {
        proposals_gather(engine, target, true, &all);
        proposals_check_pods(engine, observation, &all);
        metric_gaps_fill(engine, target, &all);
        if (all.count > live.count)
            dry.is_decided =
                decide_one(engine, target, observation, &all, true, &target->dry_verdict, &dry);
    }

    struct outcome outcome = {.due = AS_MONO_NEVER};
    const bool dry_run = engine->config.dry_run || target->config->dry_run;
    outcome.is_decided =
        decide_one(engine, target, observation, &live, dry_run, &target->verdict, &outcome);
    outcome.due = get_earlier(outcome.due, decisions_get_next_due(engine, target));
    outcome.due = get_earlier(outcome.due, contention_get_end(target));
    if (outcome.is_decided && outcome.decision.reason == AS_REASON_GUARDED)
        outcome.due = get_earlier(outcome.due, get_proof_time(engine, target, &outcome.decision));
    bool is_finished =
        outcome.is_decided && endings_finish(engine, target, &outcome.decision, true);
    if (dry.is_decided && endings_finish(engine, target, &dry.decision, false))
        is_finished = true;
    if (is_finished)
        effect_put_target(engine, target);
    outcome.is_recorded = outcome.is_recorded || dry.is_recorded || is_reviewed || is_finished;
    if (target->asked.total > 0)
        target->origin = (struct origin){true, target->asked.first, target->asked.youngest};
    asked_clear(&target->asked);
    *outcome_out = outcome;
}
