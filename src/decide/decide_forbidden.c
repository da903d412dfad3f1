/*
 * Directions that are forbidden, and who is named for it: first the rules with `hold`, in the order
 * of their proposals, then the others, in the order of the document.
 */
#include "decide_private.h"

#include <alertscaler/base/str.h>

static bool has_way(enum as_ways ways, enum as_direction direction)
{
    return (direction == AS_DIRECTION_DOWN && (ways & AS_WAYS_DOWN)) ||
           (direction == AS_DIRECTION_UP && (ways & AS_WAYS_UP));
}

bool as_decide_is_forbidden(const struct as_decide_input *input, enum as_direction direction,
                            struct as_holder_name *holder_out)
{
    for (size_t i = 0; i < input->proposal_count; i++) {
        const struct as_proposal *proposal = &input->proposals[i];
        if (proposal->action.kind == AS_ACTION_HOLD && has_way(proposal->action.hold, direction)) {
            *holder_out = (struct as_holder_name){AS_HOLDER_RULE, proposal->rule};
            return true;
        }
    }
    for (size_t i = 0; i < input->forbidden_count; i++) {
        const struct as_forbidden *row = &input->forbidden[i];
        if (!row->rule && has_way(row->ways, direction)) {
            *holder_out = (struct as_holder_name){row->by, row->name};
            return true;
        }
    }
    return false;
}

const struct as_forbidden *as_decide_find_ban(const struct as_decide_input *input, const char *rule,
                                              enum as_direction direction)
{
    for (size_t i = 0; i < input->forbidden_count; i++) {
        const struct as_forbidden *row = &input->forbidden[i];
        if (row->rule && as_str_equal(row->rule, rule) && has_way(row->ways, direction))
            return row;
    }
    return NULL;
}
