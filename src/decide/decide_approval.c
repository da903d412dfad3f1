/*
 * Gate 11: changes that wait for a person.
 *
 * A proposal that needs an approval and has none is set aside, and what the others want without it
 * is found by the gates before. Set aside it still limits them: a wish to grow keeps others from
 * shrinking the target, and a wish to shrink from shrinking it further. So the absence of an
 * answer never does more than the rules together want.
 */
#include "decide_private.h"

#include <alertscaler/base/str.h>

bool as_decide_is_free(const struct as_proposal *proposal, enum as_direction direction,
                       int64_t distance)
{
    const struct as_approval_terms *terms = &proposal->approval;
    const int32_t before = direction == AS_DIRECTION_UP ? terms->up : terms->down;
    return !terms->is_set || before + distance <= terms->above;
}

bool as_decide_is_set_aside(const struct as_proposal_result *result)
{
    return result->approval != AS_APPROVAL_FREE && result->approval != AS_APPROVAL_USED;
}

void as_decide_note_use(const struct as_decide_input *input, struct as_proposal_result *results,
                        const struct as_proposal *winner, enum as_approval_use use)
{
    for (size_t i = 0; i < input->proposal_count; i++) {
        if (as_str_equal(input->proposals[i].rule, winner->rule))
            results[i].approval = use;
    }
}

/* Whether the request's present answer still holds. */
static bool is_lasting(const struct as_decide_input *input, const struct as_approval_terms *terms)
{
    return terms->until.set && terms->until.at.us > input->now.us;
}

bool as_decide_is_awaited(const struct as_decide_input *input)
{
    for (size_t i = 0; i < input->proposal_count; i++) {
        const struct as_approval_terms *terms = &input->proposals[i].approval;
        if (terms->is_set && terms->is_asked && terms->answer == AS_APPROVAL_WAITING &&
            is_lasting(input, terms))
            return true;
    }
    return false;
}

enum as_approval_use as_decide_use_approval(const struct as_decide_input *input,
                                            const struct as_proposal *proposal,
                                            enum as_direction direction, int32_t *distance)
{
    const struct as_approval_terms *terms = &proposal->approval;
    const int64_t shown = as_decide_get_distance(input, direction, terms->to);
    const bool is_other = terms->is_up != (direction == AS_DIRECTION_UP);
    const bool is_refused =
        terms->answer == AS_APPROVAL_DENIED || terms->answer == AS_APPROVAL_EXPIRED;
    if (!terms->is_asked || (is_other && !is_refused)) /* a refusal holds for both directions */
        return AS_APPROVAL_ASKS;
    switch (terms->answer) {
    case AS_APPROVAL_WAITING:
        return is_lasting(input, terms) ? AS_APPROVAL_AWAITED : AS_APPROVAL_REFUSED;
    case AS_APPROVAL_APPROVED:
        if (!is_lasting(input, terms))
            return AS_APPROVAL_REFUSED;
        if (shown <= 0) /* the size is there already: this is a further change */
            return AS_APPROVAL_ASKS;
        *distance = *distance > shown ? (int32_t)shown : *distance;
        return AS_APPROVAL_USED;
    case AS_APPROVAL_DENIED:
    case AS_APPROVAL_EXPIRED:
    case AS_APPROVAL_VOID:
    case AS_APPROVAL_ANSWER_COUNT: break;
    }
    return is_lasting(input, terms) ? AS_APPROVAL_REFUSED : AS_APPROVAL_ASKS;
}
