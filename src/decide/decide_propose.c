/*
 * The size that one proposal wants: steps, fixed sizes and passed values. Integers stay integers: a
 * percentage is in thousandths of a percent, so that 10 % of 30 is exactly 3.
 */
#include "decide_private.h"

#include <math.h>

#define MILLI_PERCENT 100000 /* 100 % */
#define MICRO         1000000
#define GOAL_MAX      1000000000000 /* of a step with `to` */

static struct as_proposal_result propose(__int128 size)
{
    return (struct as_proposal_result){.has_size = true, .desired = as_decide_saturate(size)};
}

static struct as_proposal_result propose_nothing(bool no_opinion)
{
    return (struct as_proposal_result){
        .no_opinion = no_opinion,
        .reason = no_opinion ? AS_REASON_NO_CHANGE : AS_REASON_METRIC_UNAVAILABLE,
    };
}

static bool has_finite_value(const struct as_proposal *proposal)
{
    return proposal->has_value && isfinite(proposal->value);
}

/* A scale-up rounds its percentage up, a scale-down rounds it down. */
static __int128 compute_amount(const struct as_amount *amount, int32_t replicas, bool round_up)
{
    if (!amount->is_percent)
        return amount->size;
    __int128 part = (__int128)replicas * amount->milli_percent;
    __int128 size = (part + (round_up ? MILLI_PERCENT - 1 : 0)) / MILLI_PERCENT;
    return size > amount->at_least ? size : amount->at_least;
}

/* The step that counts; NULL: none, or no value. */
static const struct as_step *find_step(const struct as_proposal *proposal)
{
    return has_finite_value(proposal) ? as_action_find_step(&proposal->action, proposal->value)
                                      : NULL;
}

bool as_decide_has_exact_nodes(const struct as_decide_input *input)
{
    return input->version >= 3;
}

/* Only the result is rounded. A product of an int64 sum, a size and these factors has at most 122
 * bits. */
static int64_t divide_up(int64_t open, __int128 sum, __int128 divisor)
{
    return as_decide_saturate((open * sum * MICRO + divisor - 1) / divisor);
}

/* n x v / X, rounded up; X counts in millionths. */
static int64_t count_needed_nodes(const struct as_nodes_seen *seen, enum as_nodes_word word,
                                  double goal)
{
    const __int128 micro = goal < 1 / (double)MICRO ? 1
                           : goal < GOAL_MAX        ? (int64_t)round(goal * MICRO)
                                                    : (__int128)GOAL_MAX * MICRO;
    int64_t needed = 0;

    if (word == AS_NODES_COUNT)
        return divide_up(seen->open, seen->open, micro);
    if (word == AS_NODES_CORES)
        return divide_up(seen->open, seen->allocatable[AS_RESOURCE_CPU], 1000 * micro);
    for (size_t i = 0; i < AS_RESOURCE_COUNT; i++) {
        const int64_t part =
            divide_up(seen->open, (__int128)100 * seen->requests[i], seen->allocatable[i] * micro);
        needed = part > needed ? part : needed;
    }
    return needed;
}

static int64_t count_needed(const struct as_decide_input *input, const struct as_proposal *proposal,
                            double goal, bool up, int64_t count)
{
    if (proposal->nodes && count > 0 && as_decide_has_exact_nodes(input))
        return count_needed_nodes(input->nodes, proposal->nodes, goal);
    const double all =
        as_decide_to_milli(proposal->value) * (up && count == 0 ? 1.0 : (double)count);
    return as_decide_saturate_ceil(all / as_decide_to_milli(goal));
}

/* Escalator's delta: n x (v - X) / X, rounded up = ceil(n x v / X) - n; mirrored for down. So n
 * changes until the shared value v is at most X per instance. Scaling up from 0 uses v alone. */
static int64_t compute_delta(const struct as_decide_input *input,
                             const struct as_proposal *proposal, double goal, bool up)
{
    const int64_t count =
        proposal->nodes ? input->nodes->open : (int64_t)as_decide_count_ready(input);
    const int64_t needed = count_needed(input, proposal, goal, up, count);
    const int64_t delta = up ? needed - count : count - needed;

    return delta > 0 ? delta : 0;
}

/* `to: N` has one direction: at N or beyond it, others decide the size, as long as they do not undo
 * a scale-up. */
static struct as_proposal_result propose_to(const struct as_decide_input *input,
                                            const struct as_action *action, bool up)
{
    struct as_proposal_result result = propose(action->size);

    if (up ? input->replicas >= result.desired : input->replicas <= result.desired) {
        result = propose_nothing(true);
        result.is_floor = up;
        result.desired = as_decide_saturate(action->size);
    }
    return result;
}

/* `fit` only adds: without a new node it leaves the size to others, and says why. */
static struct as_proposal_result propose_fit(const struct as_decide_input *input)
{
    const struct as_pool_plan *plan = input->plan;

    if (!plan)
        return propose_nothing(false);
    if (plan->fit_size > plan->size)
        return propose(plan->fit_size);
    return (struct as_proposal_result){.no_opinion = true, .reason = plan->fit_reason};
}

/* Never more than there is, whatever the plan says of the size. */
static struct as_proposal_result propose_take(const struct as_decide_input *input)
{
    if (!input->plan)
        return propose_nothing(false);
    return propose(input->plan->take_size < input->replicas ? input->plan->take_size
                                                            : input->replicas);
}

static struct as_proposal_result propose_step(const struct as_decide_input *input,
                                              const struct as_proposal *proposal, bool up)
{
    const struct as_action *action = &proposal->action;
    const struct as_step *step = find_step(proposal);

    if (action->is_fit)
        return propose_fit(input);
    if (action->is_take)
        return propose_take(input);
    if (action->is_to)
        return propose_to(input, action, up);
    if (action->steps && !step)
        return propose_nothing(has_finite_value(proposal));
    const struct as_amount *amount = step ? &step->amount : &action->amount;
    const bool has_goal = step && step->to > 0;
    __int128 change = has_goal ? compute_delta(input, proposal, step->to, up)
                               : compute_amount(amount, input->replicas, up);
    if (has_goal && change == 0)
        return propose_nothing(true);
    return propose(up ? input->replicas + change : input->replicas - change);
}

static struct as_proposal_result propose_fixed(const struct as_proposal *proposal)
{
    const struct as_step *step = find_step(proposal);

    if (!proposal->action.steps)
        return propose(proposal->action.size);
    return step ? propose(step->amount.size) : propose_nothing(false);
}

/* The proposal of a value that is there, or of none. */
static struct as_proposal_result propose_action(const struct as_decide_input *input,
                                                const struct as_proposal *proposal)
{
    switch (proposal->action.kind) {
    case AS_ACTION_SCALE_UP: return propose_step(input, proposal, true);
    case AS_ACTION_SCALE_DOWN: return propose_step(input, proposal, false);
    case AS_ACTION_SCALE_TO: return propose_fixed(proposal);
    case AS_ACTION_TRACK: return as_decide_track(input, proposal);
    case AS_ACTION_PASS_THROUGH:
        return has_finite_value(proposal) ? propose(as_decide_saturate_ceil(proposal->value))
                                          : propose_nothing(false);
    case AS_ACTION_HOLD:
        return (struct as_proposal_result){
            .no_opinion = true, .is_hold = true, .reason = AS_REASON_NO_CHANGE};
    case AS_ACTION_KIND_COUNT: break;
    }
    return propose_nothing(false);
}

/* Without an open node nothing shares the requests: one node more while pods wait for a first one,
 * and never fewer. */
static struct as_proposal_result propose_first_node(const struct as_decide_input *input,
                                                    const struct as_proposal *proposal)
{
    const struct as_nodes_seen *seen = input->nodes;

    if (proposal->action.kind != AS_ACTION_SCALE_DOWN && seen->waiting > 0 && seen->coming == 0)
        return propose((__int128)input->replicas + 1);
    struct as_proposal_result result = propose_nothing(true);
    result.is_floor = true;
    result.desired = input->replicas;
    return result;
}

static struct as_proposal_result propose_valued(const struct as_decide_input *input,
                                                const struct as_proposal *proposal)
{
    if (proposal->error)
        return propose_nothing(false);
    if (proposal->nodes == AS_NODES_NONE)
        return propose_action(input, proposal);
    if (as_decide_has_exact_nodes(input) && input->nodes &&
        as_nodes_seen_is_made_up(input->nodes, proposal->nodes))
        return propose_first_node(input, proposal);
    struct as_proposal valued = *proposal;
    struct as_error error;
    if (!input->nodes ||
        as_nodes_seen_get(input->nodes, proposal->nodes, &valued.value, &error) != 0)
        return propose_nothing(false);
    valued.has_value = true;
    struct as_proposal_result result = propose_action(input, &valued);
    result.has_value = true;
    result.value = valued.value;
    return result;
}

/* Only ever more than there is. */
static bool falls_back(const struct as_decide_input *input, const struct as_proposal *proposal)
{
    return proposal->fallback.at_least > input->replicas && proposal->unavailable_since.set &&
           as_decide_get_age(input->now, proposal->unavailable_since.at) >=
               proposal->fallback.after_us;
}

/* A rule that may not go its way wants the size to stay. */
struct as_proposal_result as_decide_propose(const struct as_decide_input *input,
                                            const struct as_proposal *proposal)
{
    struct as_proposal_result result = propose_valued(input, proposal);

    result.is_missing = !result.has_size && !result.no_opinion;
    if (result.is_missing && falls_back(input, proposal)) {
        result.has_size = true;
        result.desired = proposal->fallback.at_least;
    }
    if (!result.has_size)
        return result;
    result.ban =
        as_decide_find_ban(input, proposal->rule, as_decide_get_direction(input, result.desired));
    if (result.ban) {
        result.desired = input->replicas;
        result.within_tolerance = false;
    }
    return result;
}
