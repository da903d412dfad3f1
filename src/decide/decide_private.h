/*
 * What the gates (decide.c) and the proposals (propose.c) share. Scale-downs mirror scale-ups. So
 * both use one computation: with a distance (0 and up) from the present size in the wanted
 * direction.
 */
#ifndef ALERTSCALER_SRC_DECIDE_DECIDE_PRIVATE_H
#define ALERTSCALER_SRC_DECIDE_DECIDE_PRIVATE_H

#include <alertscaler/decide/decide.h>

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

static inline bool as_decide_has_way(enum as_ways ways, enum as_direction direction)
{
    return (direction == AS_DIRECTION_DOWN && (ways & AS_WAYS_DOWN)) ||
           (direction == AS_DIRECTION_UP && (ways & AS_WAYS_UP));
}

static inline int32_t as_decide_saturate(__int128 size)
{
    return size < 0 ? 0 : size > AS_SIZE_MAX ? AS_SIZE_MAX : (int32_t)size;
}

/* The size that one proposal wants, or the reason for none. */
struct as_proposal_result as_decide_propose(const struct as_decide_input *input,
                                            const struct as_proposal *proposal);

#endif
