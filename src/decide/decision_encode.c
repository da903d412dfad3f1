/*
 * Writes decision documents in canonical form: sorted keys, no spaces, all defaults written.
 *
 * Input and answer are one record, written in its order. The answer's part about a pool comes from
 * the plan. Snapshots of pools have a module of their own (decision_snapshot.c).
 */
#include <math.h>
#include <stdio.h>

#include <alertscaler/base/number.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/doc/json_writer.h>

#include "decision_private.h"

/*
 * Writes what a pool's plan says into the answer of a decision.
 */

/* Where the decision goes: to the sizes of the plan in its direction. */
static int32_t get_to(const struct as_decide_input *input, const struct as_decision *decision,
                      size_t group)
{
    switch (decision->direction) {
    case AS_DIRECTION_UP: return input->plan->groups[group].fit;
    case AS_DIRECTION_DOWN: return input->plan->groups[group].take_to;
    case AS_DIRECTION_NONE: break;
    }
    return input->snapshot->groups[group].size;
}

static void decision_write_groups(struct as_json_writer *json, const struct as_decide_input *input,
                                  const struct as_decision *decision)
{
    as_json_write_key(json, "groups");
    as_json_begin_array(json);
    for (size_t i = 0; i < input->snapshot->group_count; i++) {
        const struct as_snapshot_group *group = &input->snapshot->groups[i];
        const int32_t to = get_to(input, decision, i);

        if (to == group->size)
            continue;
        as_json_begin_object(json);
        as_json_write_member_i64(json, "from", group->size);
        as_json_write_member(json, "name", group->name);
        as_json_write_member_i64(json, "to", to);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void decision_write_homeless_to_kept(struct as_json_writer *json,
                                            const struct as_pool_plan *plan)
{
    decision_write_pods(json, "homeless", plan->homeless_pods, plan->homeless_count);
    decision_write_kept(json, plan->kept);
}

static void write_scores(struct as_json_writer *json, const struct as_pool_option *option)
{
    /* Keys ascend; the enum has another order. */
    static const enum as_pool_filter by_word[] = {AS_POOL_LEAST_NODES, AS_POOL_LEAST_WASTE,
                                                  AS_POOL_MOST_PODS,   AS_POOL_PRICE,
                                                  AS_POOL_PRIORITY,    AS_POOL_RANDOM};
    _Static_assert(AS_ARRAY_SIZE(by_word) == AS_POOL_FILTER_COUNT, "all of them");

    as_json_write_key(json, "scores");
    as_json_begin_object(json);
    for (size_t i = 0; i < AS_POOL_FILTER_COUNT; i++) {
        if (!(option->scored & (1U << by_word[i])))
            continue;
        as_json_write_key(json, as_pool_filter_get_word(by_word[i]));
        as_json_write_double(json, option->scores[by_word[i]]);
    }
    as_json_end_object(json);
}

static void write_options(struct as_json_writer *json, const struct as_decide_input *input)
{
    const struct as_pool_plan *plan = input->plan;

    as_json_write_key(json, "options");
    as_json_begin_array(json);
    for (size_t i = 0; i < input->snapshot->group_count; i++) {
        const struct as_pool_option *option = &plan->groups[i].option;

        if (!plan->groups[i].has_option)
            continue;
        as_json_begin_object(json);
        if (plan->chosen == i)
            as_json_write_member_bool(json, "chosen", true);
        as_json_write_member(json, "group", input->snapshot->groups[i].name);
        as_json_write_member_i64(json, "nodes", (int64_t)option->nodes);
        if (option->is_out && option->out_by < AS_POOL_FILTER_COUNT)
            as_json_write_member(json, "out_by", as_pool_filter_get_word(option->out_by));
        as_json_write_member_i64(json, "pods", (int64_t)option->pods);
        write_scores(json, option);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_unregistered(struct as_json_writer *json, const struct as_decide_input *input,
                               const struct as_decision *decision)
{
    if (decision->overdue == 0)
        return;
    as_json_write_key(json, "overdue");
    as_json_begin_array(json);
    for (size_t i = 0; i < input->snapshot->group_count; i++) {
        if (input->plan->groups[i].overdue == 0)
            continue;
        as_json_begin_object(json);
        as_json_write_member_i64(json, "count", input->plan->groups[i].overdue);
        as_json_write_member(json, "group", input->snapshot->groups[i].name);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void decision_write_pool_input(struct as_json_writer *json,
                                      const struct as_decide_input *input,
                                      const struct as_decision *decision)
{
    write_options(json, input);
    write_unregistered(json, input, decision);
}

static void decision_write_skipped(struct as_json_writer *json, const struct as_decide_input *input)
{
    as_json_write_key(json, "skipped");
    as_json_begin_array(json);
    for (size_t i = 0; i < input->snapshot->group_count; i++) {
        if (input->plan->groups[i].skipped == AS_REASON_SCALED)
            continue;
        as_json_begin_object(json);
        as_json_write_member(json, "group", input->snapshot->groups[i].name);
        as_json_write_member(json, "why", as_reason_get_word(input->plan->groups[i].skipped));
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void decision_write_take(struct as_json_writer *json, const struct as_decide_input *input,
                                const struct as_decision *decision)
{
    const size_t count = decision->direction == AS_DIRECTION_DOWN ? input->plan->take_count : 0;

    as_json_write_key(json, "take");
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++)
        as_json_write_string(json, input->plan->take[i]);
    as_json_end_array(json);
}

static const char *encode_get_word(const struct as_read_word *words, int value)
{
    while (words->value != value)
        words++;
    return words->text;
}

static void encode_write_time(struct as_json_writer *json, const char *key, as_maybe_time time)
{
    char text[AS_RFC3339_SIZE];
    as_json_write_key(json, key);
    if (!time.set) {
        as_json_write_null(json);
        return;
    }
    as_wall_time_print_short(time.at, text);
    as_json_write_string(json, text);
}

static void write_time_if(struct as_json_writer *json, const char *key, as_maybe_time time)
{
    if (time.set)
        encode_write_time(json, key, time);
}

static void write_string_if(struct as_json_writer *json, const char *key, const char *text)
{
    if (text)
        as_json_write_member(json, key, text);
}

static void write_string_or_null(struct as_json_writer *json, const char *key, const char *text)
{
    as_json_write_key(json, key);
    if (text)
        as_json_write_string(json, text);
    else
        as_json_write_null(json);
}

static void write_strings(struct as_json_writer *json, const char *key, const char *const *texts,
                          size_t count)
{
    as_json_write_key(json, key);
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++)
        as_json_write_string(json, texts[i]);
    as_json_end_array(json);
}

static void encode_write_double(struct as_json_writer *json, const char *key, double number)
{
    as_json_write_key(json, key);
    as_json_write_double(json, number);
}

static void write_double_if(struct as_json_writer *json, const char *key, double number)
{
    if (isfinite(number))
        encode_write_double(json, key, number);
}

static void encode_write_seconds(struct as_json_writer *json, const char *key, int64_t us)
{
    if (us % AS_US_PER_S == 0)
        as_json_write_member_i64(json, key, us / AS_US_PER_S);
    else
        encode_write_double(json, key, (double)us / AS_US_PER_S);
}

/* "50%", "12.5%" */
static void encode_write_percent(struct as_json_writer *json, const char *key,
                                 int64_t milli_percent)
{
    char number[AS_NUMBER_SIZE], text[AS_NUMBER_SIZE + 1];

    as_number_print_double((double)milli_percent / 1000, number);
    snprintf(text, sizeof(text), "%s%%", number);
    as_json_write_member(json, key, text);
}

static void write_scaling_rules(struct as_json_writer *json, const struct as_scaling_rules *rules)
{
    as_json_begin_object(json);
    as_json_write_key(json, "policies");
    as_json_begin_array(json);
    for (size_t i = 0; i < rules->policy_count; i++) {
        const struct as_policy *policy = &rules->policies[i];
        as_json_begin_object(json);
        encode_write_seconds(json, "periodSeconds", policy->period_us);
        as_json_write_member(json, "type",
                             encode_get_word(as_decision_policy_types, (int)policy->type));
        as_json_write_member_i64(json, "value", policy->value);
        as_json_end_object(json);
    }
    as_json_end_array(json);
    as_json_write_member(json, "selectPolicy",
                         encode_get_word(as_decision_selects, (int)rules->select));
    encode_write_seconds(json, "stabilizationWindowSeconds", rules->window_us);
    as_json_end_object(json);
}

static void encode_write_target(struct as_json_writer *json, const struct as_decide_input *input)
{
    const struct as_bounds_config *config = &input->config;
    as_json_begin_object(json);
    if (config->has_behavior) {
        as_json_write_key(json, "behavior");
        as_json_begin_object(json);
        as_json_write_key(json, "scaleDown");
        write_scaling_rules(json, &config->behavior.down);
        as_json_write_key(json, "scaleUp");
        write_scaling_rules(json, &config->behavior.up);
        as_json_end_object(json);
    }
    as_json_write_key(json, "cooldown");
    as_json_begin_object(json);
    encode_write_seconds(json, "down", config->cooldown.down_us);
    if (config->cooldown.has_down_after_down)
        encode_write_seconds(json, "down_after_down", config->cooldown.down_after_down_us);
    encode_write_seconds(json, "up", config->cooldown.up_us);
    encode_write_seconds(json, "up_after_down", config->cooldown.up_after_down_us);
    as_json_end_object(json);
    encode_write_seconds(json, "cpu_initialization_seconds", config->cpu_initialization_us);
    as_json_write_member_bool(json, "dry_run", input->dry_run);
    as_json_write_member_bool(json, "enforce_bounds", config->enforce_bounds);
    if (input->enforce_min)
        as_json_write_member_bool(json, "enforce_min", true);
    if (input->floor > 0)
        as_json_write_member_i64(json, "floor", input->floor);
    write_string_if(json, "id", input->target);
    encode_write_seconds(json, "initial_readiness_delay_seconds",
                         config->initial_readiness_delay_us);
    as_json_write_member_i64(json, "max", config->max);
    as_json_write_member_i64(json, "min", config->min);
    if (input->has_own_min)
        as_json_write_member_i64(json, "own_min", input->own_min);
    if (input->pool) {
        as_json_write_key(json, "pool");
        decision_write_pool(json, input->pool);
    }
    if (input->schedule_count > 0)
        write_strings(json, "schedules", input->schedules, input->schedule_count);
    as_json_write_key(json, "tolerance");
    as_json_begin_object(json);
    encode_write_double(json, "down", config->tolerance_down);
    encode_write_double(json, "up", config->tolerance_up);
    as_json_end_object(json);
    as_json_end_object(json);
}

static void write_pod(struct as_json_writer *json, const struct as_pod *pod)
{
    as_json_begin_object(json);
    as_json_write_member_bool(json, "deleting", pod->deleting);
    as_json_write_member(json, "name", pod->name);
    as_json_write_member(json, "phase", encode_get_word(as_decision_phases, (int)pod->phase));
    as_json_write_key(json, "ready");
    if (pod->ready == AS_UNKNOWN)
        as_json_write_null(json);
    else
        as_json_write_bool(json, pod->ready == AS_TRUE);
    write_time_if(json, "ready_since", pod->ready_since);
    as_json_write_key(json, "resources");
    as_json_begin_object(json);
    write_double_if(json, "cpu", pod->resource[AS_RESOURCE_CPU]);
    write_double_if(json, "memory", pod->resource[AS_RESOURCE_MEMORY]);
    as_json_end_object(json);
    write_time_if(json, "start_time", pod->start_time);
    as_json_end_object(json);
}

static void write_resources(struct as_json_writer *json, const char *key,
                            const int64_t amounts[AS_RESOURCE_COUNT])
{
    as_json_write_key(json, key);
    as_json_begin_object(json);
    encode_write_double(json, "cpu", (double)amounts[AS_RESOURCE_CPU] / 1000);
    as_json_write_member_i64(json, "memory", amounts[AS_RESOURCE_MEMORY]);
    as_json_end_object(json);
}

static void write_nodes(struct as_json_writer *json, const struct as_nodes_seen *nodes)
{
    as_json_begin_object(json);
    if (nodes->error) {
        as_json_write_member(json, "error", nodes->error);
    } else {
        write_resources(json, "allocatable", nodes->allocatable);
        if (nodes->coming > 0)
            as_json_write_member_i64(json, "coming", nodes->coming);
        if (nodes->lacking[AS_RESOURCE_CPU] || nodes->lacking[AS_RESOURCE_MEMORY]) {
            as_json_write_key(json, "lacking");
            as_json_begin_object(json);
            for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++)
                write_string_if(json, as_decision_resources[i].text, nodes->lacking[i]);
            as_json_end_object(json);
        }
        as_json_write_member_i64(json, "open", nodes->open);
        write_resources(json, "requests", nodes->requests);
        if (nodes->is_template)
            as_json_write_member_bool(json, "template", true);
        if (nodes->waiting > 0)
            as_json_write_member_i64(json, "waiting", nodes->waiting);
    }
    as_json_end_object(json);
}

static void write_observed(struct as_json_writer *json, const struct as_decide_input *input)
{
    const struct as_snapshot *snapshot =
        input->snapshot && !input->snapshot->error ? input->snapshot : NULL;

    as_json_begin_object(json);
    if (snapshot) {
        decision_write_budgets_to_kept(json, snapshot);
        decision_write_leaving(json, snapshot);
    }
    if (input->marked > 0)
        as_json_write_member_i64(json, "marked", input->marked);
    if (input->nodes) {
        as_json_write_key(json, "nodes");
        write_nodes(json, input->nodes);
    }
    if (snapshot)
        decision_write_pending_to_plan(json, input);
    if (input->has_pods) {
        as_json_write_key(json, "pods");
        as_json_begin_array(json);
        for (size_t i = 0; i < input->pod_count; i++)
            write_pod(json, &input->pods[i]);
        as_json_end_array(json);
    }
    if (input->snapshot)
        write_string_if(json, "pool_error", input->snapshot->error);
    if (snapshot)
        decision_write_nodes(json, snapshot);
    as_json_write_member_i64(json, "replicas", input->replicas);
    if (snapshot)
        decision_write_resources_to_pod_classes(json, snapshot);
    as_json_write_member_i64(json, "status_replicas", input->status_replicas);
    as_json_end_object(json);
}

static void write_history(struct as_json_writer *json, const struct as_decide_input *input)
{
    const struct as_snapshot *snapshot = input->snapshot;
    as_json_begin_object(json);
    if (snapshot) {
        decision_write_asked(json, snapshot->asked, snapshot->asked_count);
        decision_write_time(json, "drain_failed", snapshot->drain_failed);
    }
    encode_write_time(json, "last_down", input->last_down);
    write_time_if(json, "last_step_down", input->last_step_down);
    encode_write_time(json, "last_up", input->last_up);
    as_json_write_key(json, "recommendations");
    as_json_begin_array(json);
    for (size_t i = 0; i < input->recommendation_count; i++) {
        as_json_begin_object(json);
        encode_write_time(json, "at", (as_maybe_time){true, input->recommendations[i].at});
        as_json_write_member_i64(json, "replicas", input->recommendations[i].replicas);
        as_json_end_object(json);
    }
    as_json_end_array(json);
    as_json_write_key(json, "scale_events");
    as_json_begin_array(json);
    for (size_t i = 0; i < input->event_count; i++) {
        as_json_begin_object(json);
        encode_write_time(json, "at", (as_maybe_time){true, input->events[i].at});
        as_json_write_member_i64(json, "change", input->events[i].change);
        as_json_end_object(json);
    }
    as_json_end_array(json);
    if (snapshot)
        decision_write_unneeded(json, snapshot->unneeded, snapshot->unneeded_count);
    as_json_end_object(json);
}

static void write_flags(struct as_json_writer *json, const struct as_decide_input *input)
{
    as_json_begin_object(json);
    as_json_write_member_bool(json, "budget_exhausted", input->flags.budget_exhausted);
    if (input->flags.contended)
        as_json_write_member_bool(json, "contended", true);
    as_json_write_member_bool(json, "guarded", input->flags.guarded);
    as_json_write_member_bool(json, "in_progress", input->flags.in_progress);
    as_json_write_member_bool(json, "paused", input->flags.paused);
    as_json_end_object(json);
}

static void write_forbidden(struct as_json_writer *json, const struct as_decide_input *input)
{
    if (input->forbidden_count == 0)
        return;
    as_json_write_key(json, "forbidden");
    as_json_begin_array(json);
    for (size_t i = 0; i < input->forbidden_count; i++) {
        const struct as_forbidden *row = &input->forbidden[i];
        as_json_begin_object(json);
        as_json_write_member(json, "by", as_holder_get_word(row->by));
        as_json_write_member(json, "direction", as_ways_get_word(row->ways));
        write_string_if(json, "name", row->name);
        write_string_if(json, "rule", row->rule);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

/* `at_least` and `by`; "below" sorts between the two. */
static void encode_write_amount(struct as_json_writer *json, const struct as_amount *amount,
                                const struct as_step *step)
{
    if (step && step->is_above)
        encode_write_double(json, "above", step->bound);
    if (amount->is_percent)
        as_json_write_member_i64(json, "at_least", amount->at_least);
    if (step && !step->is_above)
        encode_write_double(json, "below", step->bound);
    if (amount->is_percent)
        encode_write_percent(json, "by", amount->milli_percent);
    else
        as_json_write_member_i64(json, "by", amount->size);
}

static void write_step(struct as_json_writer *json, const struct as_action *action,
                       const struct as_step *step)
{
    as_json_begin_object(json);
    if (action->kind == AS_ACTION_SCALE_TO) {
        encode_write_double(json, "from", step->bound);
        as_json_write_member_i64(json, "size", step->amount.size);
    } else if (step->to > 0) {
        encode_write_double(json, step->is_above ? "above" : "below", step->bound);
        encode_write_double(json, "to", step->to);
    } else {
        encode_write_amount(json, &step->amount, step);
    }
    as_json_end_object(json);
}

/* scale_up, scale_down; scale_to with steps */
static void write_step_action(struct as_json_writer *json, const struct as_action *action)
{
    as_json_begin_object(json);
    if (action->is_fit) {
        as_json_write_member(json, "fit", "pending_pods");
    } else if (action->is_take) {
        as_json_write_member(json, "take", "unneeded_nodes");
    } else if (action->is_to) {
        as_json_write_member_i64(json, "to", action->size);
    } else if (action->steps) {
        as_json_write_key(json, "steps");
        as_json_begin_array(json);
        for (size_t i = 0; i < action->step_count; i++)
            write_step(json, action, &action->steps[i]);
        as_json_end_array(json);
    } else {
        encode_write_amount(json, &action->amount, NULL);
    }
    as_json_end_object(json);
}

static void encode_write_track(struct as_json_writer *json, const struct as_track *track)
{
    bool is_utilization = track->goal == AS_GOAL_UTILIZATION;
    as_json_begin_object(json);
    if (track->goal == AS_GOAL_AVERAGE_VALUE)
        encode_write_double(json, "average_value", track->value);
    if (is_utilization || (track->is_resource && track->goal == AS_GOAL_AVERAGE_VALUE))
        as_json_write_member(json, "resource",
                             encode_get_word(as_decision_resources, (int)track->resource));
    if (is_utilization)
        encode_write_percent(json, "utilization", llround(track->value * 1000));
    if (track->goal == AS_GOAL_VALUE)
        encode_write_double(json, "value", track->value);
    as_json_end_object(json);
}

static void encode_write_action(struct as_json_writer *json, const struct as_action *action)
{
    as_json_begin_object(json);
    as_json_write_key(json, as_action_kind_get_word(action->kind));
    switch (action->kind) {
    case AS_ACTION_SCALE_UP:
    case AS_ACTION_SCALE_DOWN: write_step_action(json, action); break;
    case AS_ACTION_SCALE_TO:
        if (action->steps)
            write_step_action(json, action);
        else
            as_json_write_i64(json, action->size);
        break;
    case AS_ACTION_TRACK: encode_write_track(json, &action->track); break;
    case AS_ACTION_HOLD: as_json_write_string(json, as_ways_get_word(action->hold)); break;
    case AS_ACTION_PASS_THROUGH:
    case AS_ACTION_KIND_COUNT:
        as_json_begin_object(json);
        as_json_end_object(json);
        break;
    }
    as_json_end_object(json);
}

static void write_samples(struct as_json_writer *json, const struct as_proposal *proposal)
{
    as_json_write_key(json, "samples");
    as_json_begin_array(json);
    for (size_t i = 0; i < proposal->sample_count; i++) {
        const struct as_sample *sample = &proposal->samples[i];
        if (!isfinite(sample->value))
            continue;
        as_json_begin_object(json);
        write_time_if(json, "at", sample->at);
        as_json_write_member(json, "pod", sample->pod);
        encode_write_double(json, "value", sample->value);
        encode_write_seconds(json, "window", sample->window_us);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void encode_write_fallback(struct as_json_writer *json, const struct as_fallback *fallback)
{
    if (fallback->at_least == 0)
        return;
    as_json_write_key(json, "fallback");
    as_json_begin_object(json);
    encode_write_seconds(json, "after", fallback->after_us);
    as_json_write_member_i64(json, "at_least", fallback->at_least);
    as_json_end_object(json);
}

static void write_proposal(struct as_json_writer *json, const struct as_proposal *proposal)
{
    as_json_begin_object(json);
    as_json_write_key(json, "action");
    encode_write_action(json, &proposal->action);
    as_decision_write_approval(json, &proposal->approval);
    write_string_if(json, "error", proposal->error);
    encode_write_fallback(json, &proposal->fallback);
    write_string_if(json, "incident", proposal->incident);
    write_string_if(json, "nodes", as_nodes_word_get_text(proposal->nodes));
    if (proposal->needs_news)
        encode_write_time(json, "reported", proposal->reported);
    write_string_if(json, "rule", proposal->rule);
    if (proposal->samples)
        write_samples(json, proposal);
    write_time_if(json, "unavailable_since", proposal->unavailable_since);
    if (proposal->has_value)
        write_double_if(json, "value", proposal->value);
    as_json_end_object(json);
}

void as_decision_encode_input(const struct as_decide_input *input, struct as_buf *out)
{
    struct as_json_writer json;

    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    as_json_write_key(&json, "flags");
    write_flags(&json, input);
    write_forbidden(&json, input);
    as_json_write_key(&json, "history");
    write_history(&json, input);
    encode_write_time(&json, "now", (as_maybe_time){.set = true, .at = input->now});
    as_json_write_key(&json, "observed");
    write_observed(&json, input);
    as_json_write_key(&json, "proposals");
    as_json_begin_array(&json);
    for (size_t i = 0; i < input->proposal_count; i++)
        write_proposal(&json, &input->proposals[i]);
    as_json_end_array(&json);
    if (input->snapshot && input->snapshot->seed != 0) {
        as_json_write_key(&json, "seed");
        as_json_write_hex(&json, input->snapshot->seed);
    }
    as_json_write_key(&json, "target");
    encode_write_target(&json, input);
    as_json_write_member_i64(&json, "v", input->version);
    as_json_end_object(&json);
}

static void write_size_or_null(struct as_json_writer *json, const char *key, bool has_size,
                               int32_t size)
{
    as_json_write_key(json, key);
    if (has_size)
        as_json_write_i64(json, size);
    else
        as_json_write_null(json);
}

static void write_limits(struct as_json_writer *json, unsigned limits)
{
    static const struct {
        unsigned bit;
        const char *word;
    } rows[] = {{AS_LIMIT_MIN, "min"},
                {AS_LIMIT_MAX, "max"},
                {AS_LIMIT_STABILIZATION, "stabilization"},
                {AS_LIMIT_POLICY, "policy"}};
    as_json_begin_array(json);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (limits & rows[i].bit)
            as_json_write_string(json, rows[i].word);
    }
    as_json_end_array(json);
}

static void write_results(struct as_json_writer *json, const struct as_decide_input *input,
                          const struct as_proposal_result *results)
{
    as_json_begin_array(json);
    for (size_t i = 0; i < input->proposal_count; i++) {
        const struct as_proposal_result *result = &results[i];
        as_json_begin_object(json);
        write_string_if(json, "approval", as_approval_use_get_word(result->approval));
        write_size_or_null(json, "desired", result->has_size || result->is_floor, result->desired);
        as_json_write_member(json, "reason",
                             result->is_floor                                         ? "floor"
                             : result->is_hold                                        ? "hold"
                             : result->has_size && result->is_missing && !result->ban ? "fallback"
                             : result->ban
                                 ? as_reason_get_word(as_holder_get_reason(result->ban->by))
                             : !result->has_size        ? as_reason_get_word(result->reason)
                             : result->within_tolerance ? "within_tolerance"
                                                        : "ok");
        write_string_or_null(json, "rule", input->proposals[i].rule);
        if (result->has_value)
            encode_write_double(json, "value", result->value);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_holder(struct as_json_writer *json, const struct as_decision *decision)
{
    if (!as_reason_has_holder(decision->reason))
        return;
    as_json_write_key(json, "held_by");
    as_json_begin_object(json);
    as_json_write_member(json, "by", as_holder_get_word(decision->held_by.by));
    write_string_if(json, "name", decision->held_by.name);
    as_json_end_object(json);
}

void as_decision_encode_output(const struct as_decide_input *input,
                               const struct as_proposal_result *results,
                               const struct as_decision *decision, struct as_buf *out)
{
    struct as_json_writer json;
    const struct as_pool_plan *plan = input->plan;

    as_json_init(&json, out, 0);
    as_json_begin_object(&json);
    if (decision->is_asking)
        as_json_write_member_i64(&json, "ask", decision->asked);
    if (plan)
        decision_write_asked(&json, plan->asked, plan->asked_count);
    as_json_write_member_i64(&json, "desired", decision->desired);
    as_json_write_member(&json, "direction", as_direction_get_word(decision->direction));
    if (plan)
        decision_write_groups(&json, input, decision);
    write_holder(&json, decision);
    if (plan)
        decision_write_homeless_to_kept(&json, plan);
    as_json_write_key(&json, "limited_by");
    write_limits(&json, decision->limited_by);
    encode_write_time(&json, "next_evaluation", decision->next_evaluation);
    if (plan)
        decision_write_pool_input(&json, input, decision);
    as_json_write_key(&json, "proposals");
    write_results(&json, input, results);
    as_json_write_member(&json, "reason", as_reason_get_word(decision->reason));
    write_size_or_null(&json, "recommendation", decision->has_recommendation,
                       decision->recommendation);
    as_json_write_member_i64(&json, "replicas", decision->replicas);
    write_string_or_null(&json, "rule", decision->rule);
    if (plan) {
        decision_write_skipped(&json, input);
        decision_write_take(&json, input, decision);
    }
    as_json_write_key(&json, "trail");
    as_json_begin_array(&json);
    for (size_t i = 0; i < decision->trail_count; i++) {
        as_json_begin_object(&json);
        as_json_write_member_i64(&json, "desired", decision->trail[i].desired);
        as_json_write_member(&json, "gate", as_gate_get_word(decision->trail[i].gate));
        as_json_end_object(&json);
    }
    as_json_end_array(&json);
    if (plan)
        decision_write_unneeded(&json, plan->unneeded, plan->unneeded_count);
    as_json_write_member_i64(&json, "v", input->version);
    if (decision->has_would)
        as_json_write_member_i64(&json, "would", decision->would);
    as_json_end_object(&json);
}
