/*
 * Time, events, trace and verdict.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>

#include "sim.h"

static int compare_events(const struct event *a, const struct event *b)
{
    if (a->at != b->at)
        return a->at > b->at ? 1 : -1;
    return (a->order > b->order) - (a->order < b->order);
}

RB_GENERATE(event_tree, event, link, compare_events)

int64_t between(struct world *world, int64_t low, int64_t high)
{
    return low + (int64_t)as_random_get_below(&world->random, (uint64_t)(high - low + 1));
}

bool chance(struct world *world, int64_t per_mille)
{
    return between(world, 0, 999) < per_mille;
}

int64_t latency(struct world *world)
{
    if (!world->is_calm && chance(world, 20))
        return between(world, 1, 8000) * AS_US_PER_MS;
    return between(world, 50, 30000);
}

struct event *later(struct world *world, int64_t delay, event_fn *happen, void *subject,
                    uint64_t argument)
{
    struct event *event = as_xcalloc(1, sizeof(*event));
    *event = (struct event){.at = world->now + delay,
                            .order = ++world->event_order,
                            .happen = happen,
                            .subject = subject,
                            .argument = argument};
    RB_INSERT(event_tree, &world->events, event);
    return event;
}

void trace(struct world *world, const char *format, ...)
{
    if (!world->is_verbose)
        return;
    va_list list;
    va_start(list, format);
    printf("%12.6f ", (double)world->now / (double)AS_US_PER_S);
    (void)vprintf(format, list);
    printf("\n");
    va_end(list);
}

void fail(struct world *world, const char *format, ...)
{
    if (world->is_failed)
        return;
    va_list list;
    va_start(list, format);
    world->is_failed = true;
    (void)vsnprintf(world->failure, sizeof(world->failure), format, list);
    va_end(list);
    trace(world, "FAILED: %s", world->failure);
}
