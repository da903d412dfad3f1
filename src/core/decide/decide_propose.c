/*
 * The size that one proposal wants: steps, fixed sizes and values passed through. Integers stay
 * integers: a percentage is thousandths of a percent, so that 10 % of 30 is 3 and not a little
 * more.
 */
#include "decide_private.h"

#include <math.h>

#define MILLI_PERCENT 100000 /* in 100 % */

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

/* AWS step scaling: the last step whose bound the value strictly crosses; NULL: none. */
static const struct as_amount *find_step(const struct as_action *action, double value)
{
    for (size_t i = action->step_count; i > 0; i--) {
        const struct as_step *step = &action->steps[i - 1];
        if (step->is_above ? value > step->bound : value < step->bound)
            return &step->amount;
    }
    return NULL;
}

/* `to: N` goes one way: at N or beyond it the size is left to others, as far as they do not undo a
 * scale-up. */
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

static struct as_proposal_result propose_step(const struct as_decide_input *input,
                                              const struct as_proposal *proposal, bool up)
{
    const struct as_amount *amount = &proposal->action.amount;

    if (proposal->action.is_to)
        return propose_to(input, &proposal->action, up);
    if (proposal->action.steps) {
        if (!has_finite_value(proposal))
            return propose_nothing(false);
        amount = find_step(&proposal->action, proposal->value);
        if (!amount)
            return propose_nothing(true);
    }
    __int128 change = compute_amount(amount, input->replicas, up);
    return propose(up ? input->replicas + change : input->replicas - change);
}

struct as_proposal_result as_decide_propose(const struct as_decide_input *input,
                                            const struct as_proposal *proposal)
{
    if (proposal->error)
        return propose_nothing(false);
    switch (proposal->action.kind) {
    case AS_ACTION_SCALE_UP: return propose_step(input, proposal, true);
    case AS_ACTION_SCALE_DOWN: return propose_step(input, proposal, false);
    case AS_ACTION_SCALE_TO: return propose(proposal->action.size);
    case AS_ACTION_TRACK: return as_decide_track(input, proposal);
    case AS_ACTION_PASS_THROUGH:
        return has_finite_value(proposal) ? propose(as_decide_saturate_ceil(proposal->value))
                                          : propose_nothing(false);
    case AS_ACTION_KIND_COUNT: break;
    }
    return propose_nothing(false);
}
