/*
 * Shared by the files of the decision. Scale-downs mirror scale-ups. So both use one computation:
 * with a distance (0 and up) from the present size in the wanted direction.
 */
#ifndef ALERTSCALER_SRC_DECIDE_DECIDE_PRIVATE_H
#define ALERTSCALER_SRC_DECIDE_DECIDE_PRIVATE_H

#include <alertscaler/decide/decide.h>

/* What gate 4 wants. */
struct as_move {
    enum as_direction direction; /* up or down */
    int32_t wanted;              /* distance, above 0 */
    int64_t bound;               /* distance to the bound ahead; negative: already beyond it */
};

/* Age, at least 0: a time in the future counts as now. */
static inline int64_t as_decide_get_age(as_wall_time now, as_wall_time at)
{
    return now.us > at.us ? now.us - at.us : 0;
}

static inline enum as_direction as_decide_get_direction(const struct as_decide_input *input,
                                                        int32_t size)
{
    return size > input->replicas   ? AS_DIRECTION_UP
           : size < input->replicas ? AS_DIRECTION_DOWN
                                    : AS_DIRECTION_NONE;
}

/* Distance of `size` from the present size in the direction; negative: the other way. */
static inline int64_t as_decide_get_distance(const struct as_decide_input *input,
                                             enum as_direction direction, int64_t size)
{
    return direction == AS_DIRECTION_UP ? size - input->replicas : input->replicas - size;
}

static inline int32_t as_decide_saturate(__int128 size)
{
    return size < 0 ? 0 : size > AS_SIZE_MAX ? AS_SIZE_MAX : (int32_t)size;
}

/* The smallest size not below the number. */
int32_t as_decide_saturate_ceil(double number);

/* In thousandths. Integers with an error from multiplication are rounded. */
double as_decide_to_milli(double number);

/* The size that one proposal wants, or the reason for none. */
struct as_proposal_result as_decide_propose(const struct as_decide_input *input,
                                            const struct as_proposal *proposal);
struct as_proposal_result as_decide_track(const struct as_decide_input *input,
                                          const struct as_proposal *proposal);

/* Whether nothing may go in the direction, and who is named for it. */
bool as_decide_is_forbidden(const struct as_decide_input *input, enum as_direction direction,
                            struct as_holder_name *holder_out);

/* What forbids the direction to the proposals of this rule alone; NULL: nothing. */
const struct as_forbidden *as_decide_find_ban(const struct as_decide_input *input, const char *rule,
                                              enum as_direction direction);

/* The part of the wanted distance that the stabilization window allows now. */
int32_t as_decide_stabilize(const struct as_decide_input *input, const struct as_move *move);

/* Approvals. A change of this distance by the proposal's rule needs none. */
bool as_decide_is_free(const struct as_proposal *proposal, enum as_direction direction,
                       int64_t distance);
/* A change that needs one: what becomes of it. USED: cut to the size that was shown. */
enum as_approval_use as_decide_use_approval(const struct as_decide_input *input,
                                            const struct as_proposal *proposal,
                                            enum as_direction direction, int32_t *distance);
/* Some request of the target waits for its answer. */
bool as_decide_is_awaited(const struct as_decide_input *input);
/* For all proposals of the winner's rule. */
void as_decide_note_use(const struct as_decide_input *input, struct as_proposal_result *results,
                        const struct as_proposal *winner, enum as_approval_use use);
/* It lacks an approval: it cannot win, but limits the others. */
bool as_decide_is_set_aside(const struct as_proposal_result *result);

/* The distance that the policies allow now. */
int32_t as_decide_get_allowance(const struct as_decide_input *input, enum as_direction direction);

/* When windows and periods first change the size or the reason; INT64_MAX: never. */
int64_t as_decide_find_relief(const struct as_decide_input *input, const struct as_move *move);

#endif
