/*
 * The order in which pods are placed: see pool_work.h.
 */
#include "pool_work.h"

#include <stdlib.h>

struct ranked {
    const struct as_survey_shape *shape;
    struct as_survey_pods pods;
};

static int compare_amounts(const struct ranked *a, const struct ranked *b, enum as_res resource)
{
    const int64_t left = a->shape->pod.requests.amount[resource];
    const int64_t right = b->shape->pod.requests.amount[resource];
    return (left < right) - (left > right);
}

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    const int32_t one = left->shape->pod.priority, other = right->shape->pod.priority;
    int order = (one < other) - (one > other);
    if (order == 0)
        order = compare_amounts(left, right, AS_RES_CPU);
    if (order == 0)
        order = compare_amounts(left, right, AS_RES_MEMORY);
    if (order == 0)
        order = (left->shape->digest > right->shape->digest) -
                (left->shape->digest < right->shape->digest);
    if (order == 0)
        order = (left->pods.shape > right->pods.shape) - (left->pods.shape < right->pods.shape);
    return order;
}

struct as_survey_pods *pool_sort_pods(const struct as_survey *survey,
                                      const struct as_survey_pods *pods, size_t count,
                                      struct as_arena *arena)
{
    struct ranked *ranked = as_arena_alloc(arena, count, sizeof(*ranked));
    struct as_survey_pods *sorted = as_arena_alloc(arena, count, sizeof(*sorted));
    for (size_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){&survey->shapes[pods[i].shape], pods[i]};
    if (count > 1)
        qsort(ranked, count, sizeof(*ranked), compare_ranked);
    for (size_t i = 0; i < count; i++)
        sorted[i] = ranked[i].pods;
    return sorted;
}
