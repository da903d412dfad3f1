/*
 * From an observation and the rules' proposals to a decision and its record.
 *
 * Rules with `dry_run` are decided at the same time, but separately from live rules: their
 * proposals never move or veto anything.
 */
#include "engine_decisions.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>

#include "engine_after.h"
#include "engine_approvals.h"
#include "engine_contention.h"
#include "engine_effects.h"
#include "engine_endings.h"
#include "engine_forbidden.h"
#include "engine_groups.h"
#include "engine_growth.h"
#include "engine_history.h"
#include "engine_lacks.h"
#include "engine_limits.h"
#include "engine_orders.h"
#include "engine_pauses.h"
#include "engine_proposals.h"
#include "engine_resize.h"
#include "engine_schedules.h"
#include "engine_shares.h"
#include "engine_sources.h"
#include "engine_targets.h"

static struct as_decide_input *make_input(struct as_engine *engine, const struct target *target,
                                          const struct as_observation *observation,
                                          const struct proposals *proposals, bool dry_run)
{
    struct as_decide_input *input = as_arena_alloc(&engine->arena, 1, sizeof(*input));
    const struct locks locks = growth_get_locks(target, engine->mono);
    const struct as_moment up =
        dry_run ? moment_get_later(locks.up, target->dry_last_up) : locks.up;
    const struct as_moment down =
        dry_run ? moment_get_later(locks.down, target->dry_last_down) : locks.down;
    const struct as_moment step_down =
        dry_run ? moment_get_later(target->last_step_down, target->dry_last_down)
                : target->last_step_down;
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
        .flags = {.paused = pauses_find(engine, target) != NULL,
                  .contended = contention_holds(engine, target),
                  .in_progress = observation->in_progress ||
                                 growth_is_awaited(target, observation) ||
                                 resize_is_awaited(target, observation)},
        .proposals = proposals->items,
        .proposal_count = proposals->count,
    };
    input->config.cooldown = locks.cooldown;
    schedules_fill(engine, target, observation, input);
    if (target->pool.is_short) { /* an increase has failed: the rest is not another one */
        input->last_up = (as_maybe_time){0};
        input->config.cooldown.up_after_down_us = 0;
    }
    forbidden_fill(engine, target, input);
    history_fill(engine, target, input);
    input->nodes = observation->nodes;
    input->survey = observation->survey;
    input->plan = observation->plan;
    input->plan_terms = observation->plan ? &observation->plan->terms : NULL;
    if (observation->survey)
        input->pool = target->config->pool ? target->config->pool : &as_pool_config_default;
    sources_fill_pods(engine, target, observation, input);
    return input;
}

static const char *get_holder(const struct as_decision *decision)
{
    return as_reason_has_holder(decision->reason) ? decision->held_by.name : NULL;
}

static void digest(uint64_t *state, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        *state = (*state ^ bytes[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
}

/* 0: of no pool. */
static uint64_t digest_nodes(const struct as_pool_plan *plan)
{
    uint64_t state = UINT64_C(0xcbf29ce484222325);
    if (!plan)
        return 0;
    digest(&state, plan->kept, sizeof(plan->kept));
    for (size_t i = 0; i < plan->unneeded_count; i++) {
        const struct as_unneeded *unneeded = &plan->unneeded[i];
        if (!unneeded->since.set)
            continue;
        digest(&state, unneeded->node, strlen(unneeded->node) + 1);
        digest(&state, &unneeded->since.at.us, sizeof(unneeded->since.at.us));
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

static bool verdict_is_equal(const struct verdict *verdict, const struct as_decision *decision)
{
    return verdict->set && verdict->direction == decision->direction &&
           verdict->replicas == decision->replicas && verdict->desired == decision->desired &&
           verdict->would == (decision->has_would ? decision->would : -1) &&
           verdict->reason == decision->reason && verdict->overdue == decision->overdue &&
           as_str_equal(verdict->rule, decision->rule) &&
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
        .pool_decision =
            target->share.pool ? as_arena_strdup(&engine->arena, target->share.decision) : NULL,
        .waits_for = waits_for ? waits_for->config->name : NULL,
        .former_uid =
            target->is_untold ? as_arena_strdup(&engine->arena, target->former_uid) : NULL,
    };
    target->is_untold = false;
    describe_cause(engine, target, record);
    effect_add(engine, AS_EFFECT_RECORD_DECISION)->decision = record;
    memcpy(target->last_decision, id, AS_ULID_SIZE);
    target->decided_at = engine->wall;
    return id;
}

/* If two requests ask for different sizes, the first one might still be carried out without
 * being recognized. So while it is open, only its size may be requested; if requests are
 * relative, none. */
static bool contradicts_maybe(const struct target *target, const struct as_decision *decision)
{
    return target->maybe && decision->desired != decision->replicas &&
           (target->is_relative || decision->desired != target->maybe->to);
}

/* Decides, and decides again if something holds the decision back: the hold is part of the input,
 * so that the log explains itself. */
static void decide(struct as_engine *engine, struct target *target,
                   const struct proposals *proposals, struct as_decide_input *input,
                   struct as_proposal_result *results, struct outcome *outcome)
{
    struct as_decision *decision = &outcome->decision;
    as_decide(input, results, decision);
    if (contradicts_maybe(target, decision))
        input->flags.in_progress = true;
    if (proposals_lack_proof(engine, target, proposals, results, decision))
        input->flags.guarded = true;
    if (input->flags.in_progress || input->flags.guarded)
        as_decide(input, results, decision);
    if (decision->desired < decision->replicas &&
        (outcome->waits_for = after_hold_decrease(engine, target, &outcome->due))) {
        share_prolong(target, (as_mono_time){outcome->due.us + SHARE_LOOK_US});
        input->flags.in_progress = true;
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
    bool is_changed = approvals_heed(engine, target, decision);
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
    decide(engine, target, proposals, input, results, outcome);
    if (proposals->count == 0 && decision->reason != AS_REASON_ABOVE_MAX &&
        decision->reason != AS_REASON_BELOW_MIN && !as_reason_has_holder(decision->reason) &&
        !decision->has_would)
        return false; /* no proposals, no bound enforced */

    const bool is_live = verdict == &target->verdict;
    proposals_note_values(proposals, results, observation->status_replicas);
    if (is_live)
        proposals_note_wishes(proposals, results, observation->replicas);
    bool is_changed = is_live && decision->has_recommendation &&
                      history_add_recommendation(engine, target, decision->recommendation);
    if (lacks_note(engine, target, proposals, results))
        is_changed = true;
    if (decision->reason == AS_REASON_DRY_RUN) {
        *(decision->direction == AS_DIRECTION_UP ? &target->dry_last_up : &target->dry_last_down) =
            moment_now(engine);
        target_set_keep(engine, target);
        is_changed = true;
    }
    if (is_changed) {
        effect_put_target(engine, target);
        outcome->is_recorded = true;
    }
    outcome->id = verdict->id;
    if (target->asked.total == 0 && !target->is_untold && verdict_is_equal(verdict, decision) &&
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
    const as_mono_time sampled = {as_time_add(engine->mono.us, sources_get_interval(target))};
    const as_mono_time asked =
        get_earlier(bindings_get_next_due(engine, target), lacks_get_next_due(engine, target));
    return get_earlier(sampled, get_earlier(asked, endings_get_next_due(engine, target)));
}

void decisions_make(struct as_engine *engine, struct target *target,
                    const struct as_observation *observation, struct outcome *outcome_out)
{
    bool is_reviewed = endings_review(engine, target, observation->replicas);
    if (lacks_review(target))
        is_reviewed = true;
    if (orders_end_floor(engine, target))
        is_reviewed = true;
    if (approvals_review(engine, target))
        is_reviewed = true;
    if (approvals_see_size(engine, target, observation->replicas))
        is_reviewed = true;
    if (is_reviewed)
        effect_put_target(engine, target);
    share_review(engine, target);
    struct proposals live, all;
    proposals_gather(engine, target, false, &live);
    proposals_check_pods(engine, observation, &live);
    lacks_fill(engine, target, &live);
    if (live.count > 0)
        history_begin(engine, target, observation->replicas);
    struct outcome dry = {0};
    if (live.has_dry) {
        proposals_gather(engine, target, true, &all);
        proposals_check_pods(engine, observation, &all);
        lacks_fill(engine, target, &all);
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
