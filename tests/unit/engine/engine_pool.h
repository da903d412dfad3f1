/*
 * Two node groups and their pool, in the engine's harness: one node of `dear` that is full. The
 * cluster is a fleet (fleet.h).
 */
#ifndef ALERTSCALER_TESTS_ENGINE_POOL_H
#define ALERTSCALER_TESTS_ENGINE_POOL_H

#include "engine_harness.h"

#define CHEAP_AND_DEAR                                                                             \
    {.name = "cheap", .is_group = true, .max = 10},                                                \
        {.name = "dear", .is_group = true, .min = 1, .max = 10},                                   \
    {                                                                                              \
        .name = "both", .pool = {"cheap", "dear"}, .max = 12, .down = 60                           \
    }
#define WAIT_AND_IDLE                                                                              \
    {.name = "wait", .match = {"alertname=Wait"}, .target = "both", .fit = true},                  \
    {                                                                                              \
        .name = "idle", .match = {"alertname=Idle"}, .target = "both", .take = true,               \
        .guard = "none"                                                                            \
    }

static const struct fleet_group groups[] = {FLEET_GROUP("cheap", 0, 10),
                                            FLEET_GROUP("dear", 1, 10)};

static struct fleet fleet;

static void start(struct harness *harness, const struct spec *spec)
{
    harness_start(harness, spec);
    fleet_init(&fleet, groups, AS_ARRAY_SIZE(groups), harness->wall);
    harness->fleet = &fleet;
    fleet_add_pods(&fleet, 0, 4); /* which fill the node of `dear` */
    tick(harness, 120);
    cr_assert_eq(fleet_count_waiting(&fleet), 0);
    (void)said(harness);
}

static void stop(struct harness *harness)
{
    harness_stop(harness);
    fleet_deinit(&fleet);
}

#endif
