/*
 * Writes what a pool's plan says into the answer of a decision.
 */
#include "decision_survey.h"

/* Where the decision goes: to the sizes of the plan in its direction. */
static int32_t get_to(const struct as_decide_input *input, const struct as_decision *decision,
                      size_t group)
{
    switch (decision->direction) {
    case AS_DIRECTION_UP: return input->plan->groups[group].fit;
    case AS_DIRECTION_DOWN: return input->plan->groups[group].take_to;
    case AS_DIRECTION_NONE: break;
    }
    return input->survey->groups[group].size;
}

void decision_write_groups(struct as_json_writer *json, const struct as_decide_input *input,
                           const struct as_decision *decision)
{
    as_json_write_key(json, "groups");
    as_json_begin_array(json);
    for (size_t i = 0; i < input->survey->group_count; i++) {
        const struct as_survey_group *group = &input->survey->groups[i];
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

void decision_write_homeless_to_kept(struct as_json_writer *json, const struct as_pool_plan *plan)
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
    for (size_t i = 0; i < input->survey->group_count; i++) {
        const struct as_pool_option *option = &plan->groups[i].option;

        if (!plan->groups[i].has_option)
            continue;
        as_json_begin_object(json);
        if (plan->chosen == i)
            as_json_write_member_bool(json, "chosen", true);
        as_json_write_member(json, "group", input->survey->groups[i].name);
        as_json_write_member_i64(json, "nodes", (int64_t)option->nodes);
        if (option->is_out && option->out_by < AS_POOL_FILTER_COUNT)
            as_json_write_member(json, "out_by", as_pool_filter_get_word(option->out_by));
        as_json_write_member_i64(json, "pods", (int64_t)option->pods);
        write_scores(json, option);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

static void write_overdue(struct as_json_writer *json, const struct as_decide_input *input,
                          const struct as_decision *decision)
{
    if (decision->overdue == 0)
        return;
    as_json_write_key(json, "overdue");
    as_json_begin_array(json);
    for (size_t i = 0; i < input->survey->group_count; i++) {
        if (input->plan->groups[i].overdue == 0)
            continue;
        as_json_begin_object(json);
        as_json_write_member_i64(json, "count", input->plan->groups[i].overdue);
        as_json_write_member(json, "group", input->survey->groups[i].name);
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

void decision_write_options_to_overdue(struct as_json_writer *json,
                                       const struct as_decide_input *input,
                                       const struct as_decision *decision)
{
    write_options(json, input);
    write_overdue(json, input, decision);
}

void decision_write_skipped(struct as_json_writer *json, const struct as_decide_input *input)
{
    as_json_write_key(json, "skipped");
    as_json_begin_array(json);
    for (size_t i = 0; i < input->survey->group_count; i++) {
        if (input->plan->groups[i].skipped == AS_REASON_SCALED)
            continue;
        as_json_begin_object(json);
        as_json_write_member(json, "group", input->survey->groups[i].name);
        as_json_write_member(json, "why", as_reason_get_word(input->plan->groups[i].skipped));
        as_json_end_object(json);
    }
    as_json_end_array(json);
}

void decision_write_take(struct as_json_writer *json, const struct as_decide_input *input,
                         const struct as_decision *decision)
{
    const size_t count = decision->direction == AS_DIRECTION_DOWN ? input->plan->take_count : 0;

    as_json_write_key(json, "take");
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++)
        as_json_write_string(json, input->plan->take[i]);
    as_json_end_array(json);
}
