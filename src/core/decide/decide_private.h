/*
 * What the files of the decision share. The way of a scale-down mirrors that of a scale-up: so both
 * are computed once, as a distance (0 and up) from the present size in the direction wanted.
 */
#ifndef ALERTSCALER_SRC_CORE_DECIDE_DECIDE_PRIVATE_H
#define ALERTSCALER_SRC_CORE_DECIDE_DECIDE_PRIVATE_H

#include <alertscaler/core/decide.h>

/* A wish as it comes out of gate 4. */
struct as_move {
    enum as_direction direction; /* up or down */
    int32_t wanted;              /* distance, above 0 */
    int64_t bound;               /* distance to the bound ahead; negative: already beyond it */
};

/* How long ago, at least 0: a time in the future counts as now. */
static inline int64_t as_decide_get_age(as_wall_time now, as_wall_time at)
{
    return now.us > at.us ? now.us - at.us : 0;
}

/* `size` as a distance from the present size in the direction; negative: the other way. */
static inline int64_t as_decide_get_distance(const struct as_decide_input *input,
                                             enum as_direction direction, int64_t size)
{
    return direction == AS_DIRECTION_UP ? size - input->replicas : input->replicas - size;
}

static inline int32_t as_decide_saturate(__int128 size)
{
    return size < 0 ? 0 : size > AS_SIZE_MAX ? AS_SIZE_MAX : (int32_t)size;
}

/* The smallest size that is not below the number. */
int32_t as_decide_saturate_ceil(double number);

/* In thousandths; what is an integer but for the rounding of the multiplication becomes one. */
double as_decide_to_milli(double number);

/* The size that one proposal wants, or why it wants none. */
struct as_proposal_result as_decide_propose(const struct as_decide_input *input,
                                            const struct as_proposal *proposal);
struct as_proposal_result as_decide_track(const struct as_decide_input *input,
                                          const struct as_proposal *proposal);

/* What the stabilization window leaves of the wanted distance, now. */
int32_t as_decide_stabilize(const struct as_decide_input *input, const struct as_move *move);

/* The distance that the policies allow, now. */
int32_t as_decide_get_allowance(const struct as_decide_input *input, enum as_direction direction);

/* When windows and periods will first lead to another size or reason; INT64_MAX: never. */
int64_t as_decide_find_relief(const struct as_decide_input *input, const struct as_move *move);

#endif
