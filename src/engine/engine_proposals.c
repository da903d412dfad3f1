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
#include "engine_proposals.h"

#include <math.h>
#include <string.h>

#include "engine_approvals.h"
#include "engine_endings.h"
#include "engine_groups.h"
#include "engine_news.h"
#include "engine_sources.h"
#include "engine_watchdog.h"

#define VALUES_MAX 32 /* per rule */

static bool is_due(const struct as_engine *engine, const struct binding *binding)
{
    if (binding->group->target->pool.is_short && !incident_is_held(binding->incident))
        return true; /* the rest of a step that has begun */
    return binding_get_due(binding).us <= engine->mono.us;
}

/* The oldest incident for which the rule may act now; NULL: none. */
static const struct binding *find_due(const struct as_engine *engine, const struct group *group)
{
    const struct binding *binding;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (is_due(engine, binding))
            return binding;
    }
    return NULL;
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
    proposals->incident_total += group->count;
    const struct binding *binding;
    TAILQ_FOREACH (binding, &group->bindings, in_group) {
        if (proposals->incident_count == AS_RECORD_LIST_MAX)
            return;
        proposals->incidents[proposals->incident_count++] = binding->incident->key.digest;
    }
}

static const char *print_digest(struct as_engine *engine, const struct incident *incident)
{
    char *text = as_arena_alloc(&engine->arena, 1, AS_DIGEST_TEXT_SIZE);
    as_digest_print(&incident->key.digest, text);
    return text;
}

static struct as_proposal *add(struct proposals *proposals, const struct as_rule *rule,
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
    (void)add(proposals, group->rule, print_digest(engine, oldest), &stay);
    proposals->origins[proposals->count++] = (struct proposer){.group = group};
}

static size_t find_value(const char *const *values, size_t count, const char *value)
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
            add(proposals, group->rule, print_digest(engine, incident), &group->rule->action);
        sources_read(engine, target, group->rule, incident, proposal, &value);
        const size_t same = find_value(values, count, value);
        note_report(engine, &proposals->items[first + same], binding);
        if (same < count)
            continue;
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
        add(proposals, group->rule, print_digest(engine, oldest->incident), &group->rule->action);
    const struct binding *binding;
    for (binding = oldest; binding && needs_news(group->rule);
         binding = TAILQ_NEXT(binding, in_group)) {
        if (is_due(engine, binding))
            note_report(engine, proposal, binding);
    }
    proposals->origins[proposals->count++] =
        (struct proposer){.group = group, .incident = oldest->incident};
}

static void propose(struct as_engine *engine, struct target *target, struct proposals *proposals,
                    struct group *group)
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
    struct ending *ending;
    TAILQ_FOREACH (ending, &target->endings, in_target) {
        struct as_action action;
        proposals->has_dry = proposals->has_dry || ending->rule->dry_run;
        if ((ending->rule->dry_run && !with_dry) ||
            !ending_get_action(engine, ending, target->replicas, &action))
            continue;
        const char *incident = as_arena_strdup(&engine->arena, ending->state.incident);
        (void)add(proposals, ending->rule, incident, &action);
        proposals->origins[proposals->count++] = (struct proposer){.ending = ending};
    }
}

/* What the pool has decided for this group. Where it has grown since, no node but those named
 * leaves. */
static void propose_share(struct as_engine *engine, const struct target *target,
                          struct proposals *proposals)
{
    const struct share *share = &target->share;
    if (!share->pool || (!share->is_up && share->proof_until.us <= engine->mono.us))
        return;
    int64_t to = share->to;
    if (!share->is_up && to < target->replicas - (int64_t)share->take_count)
        to = target->replicas - (int64_t)share->take_count;
    struct as_proposal *proposal = &proposals->items[proposals->count];
    *proposal = (struct as_proposal){
        .rule = as_arena_strdup(&engine->arena, share->rule), /* the share may end in this step */
        .action = {.kind = share->is_up ? AS_ACTION_SCALE_UP : AS_ACTION_SCALE_DOWN,
                   .is_to = true,
                   .size = to},
    };
    proposals->origins[proposals->count++] = (struct proposer){.is_share = true};
}

static const struct as_rule *get_rule(const struct proposer *origin)
{
    return origin->group ? origin->group->rule : origin->ending ? origin->ending->rule : NULL;
}

/* A pool's share has the pool's approval. */
static void add_terms(struct as_engine *engine, struct target *target, struct proposals *proposals)
{
    for (size_t i = 0; i < proposals->count; i++) {
        const struct as_rule *rule = get_rule(&proposals->origins[i]);
        if (rule)
            proposals->items[i].approval = approvals_get_terms(engine, target, rule);
    }
}

static size_t count_possible(const struct target *target)
{
    struct group *group;
    size_t count = target->ending_count;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        const size_t values = group->count < VALUES_MAX ? group->count : VALUES_MAX;
        count += group->rule->source.kind == AS_SOURCE_NONE ? 1 : values;
    }
    return count + 2; /* a share; and an item is written before it is known to count */
}

void proposals_gather(struct as_engine *engine, struct target *target, bool with_dry,
                      struct proposals *proposals_out)
{
    const size_t possible = count_possible(target);
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
            propose(engine, target, &proposals, group);
    }
    propose_endings(engine, target, &proposals, with_dry);
    propose_share(engine, target, &proposals);
    add_terms(engine, target, &proposals);
    *proposals_out = proposals;
}

/* Who made the winning proposal; NULL: nobody (bounds are enforced for nobody). */
static const struct proposer *find_winner(const struct proposals *proposals,
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

void proposals_ask(struct as_engine *engine, struct target *target,
                   const struct proposals *proposals, const struct as_proposal_result *results,
                   const struct as_decision *decision, const char *id)
{
    size_t i = 0;
    while (results[i].approval != AS_APPROVAL_ASKS)
        i++;
    const struct as_proposal *proposal = &proposals->items[i];
    approvals_ask(engine, target,
                  &(struct approval_wish){
                      .rule = get_rule(&proposals->origins[i]),
                      .incident = proposal->incident,
                      .decision = id,
                      .from = decision->replicas,
                      .to = decision->asked,
                  });
}

const char *proposals_find_approval(const struct proposals *proposals,
                                    const struct as_proposal_result *results)
{
    for (size_t i = 0; i < proposals->count; i++) {
        if (results[i].approval == AS_APPROVAL_USED)
            return proposals->items[i].approval.id;
    }
    return NULL;
}

/* Whether a decision to scale down lacks the proof that its rule requires. */
bool proposals_lack_proof(struct as_engine *engine, const struct target *target,
                          const struct proposals *proposals,
                          const struct as_proposal_result *results,
                          const struct as_decision *decision)
{
    if (decision->direction != AS_DIRECTION_DOWN || !decision->rule)
        return false;
    const struct proposer *winner = find_winner(proposals, results, decision);
    if (!winner || winner->is_share) /* the pool's decision was proven */
        return false;
    if (winner->ending)
        return !ending_is_proven(engine, target, winner->ending);
    const struct as_rule *rule = winner->group->rule;
    if (winner->incident && rule->guard_kind == AS_GUARD_QUERY)
        return !sources_is_guard_met(target, sources_get_guard(engine, rule, winner->incident));
    /* No monitoring is asked about nodes: its being alive is proven by itself. */
    return (rule->source.kind == AS_SOURCE_NODES || rule->action.is_take) &&
           rule->guard_kind == AS_GUARD_ABSENT && !watchdog_is_alive(engine, engine->mono);
}

/* Notes which rules wanted up: the action answers them too. */
void proposals_note_wishes(const struct proposals *proposals,
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

/* Notes the value that each rule saw, of several incidents the highest one. */
void proposals_note_values(const struct proposals *proposals,
                           const struct as_proposal_result *results, int32_t replicas)
{
    for (size_t i = 0; i < proposals->count; i++) {
        if (proposals->origins[i].group)
            proposals->origins[i].group->has_value = false;
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
    size_t count = 0;
    for (size_t i = 0, at = 0; i < proposal->sample_count && at < observation->pod_count;) {
        const int order = strcmp(proposal->samples[i].pod, observation->pods[at].name);
        if (order == 0)
            own[count++] = proposal->samples[i];
        i += order <= 0;
        at += order >= 0;
    }
    proposal->samples = own;
    proposal->sample_count = count;
}

/* Without pods, samples are no value; the error is the observation's. */
void proposals_check_pods(struct as_engine *engine, const struct as_observation *observation,
                          struct proposals *proposals)
{
    for (size_t i = 0; i < proposals->count; i++) {
        struct as_proposal *proposal = &proposals->items[i];
        if (proposal->sample_count == 0)
            continue;
        if (observation->has_pods)
            join_samples(engine, observation, proposal);
        if (observation->has_pods && proposal->sample_count > 0)
            continue;
        proposal->samples = NULL;
        proposal->sample_count = 0;
        proposal->error = observation->has_pods ? "none of the samples is of a pod of the target"
                          : observation->message[0]
                              ? as_arena_strdup(&engine->arena, observation->message)
                              : "the target has no pods to join the samples with";
    }
}
