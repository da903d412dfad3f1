/*
 * Rules whose large changes wait for people, and the people who are asked: they approve or deny, at
 * once or late, twice, too late, or never.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "sim.h"

struct as_approval_config approvals_randomize(struct world *world)
{
    const int64_t above = between(world, 0, 4);
    const int64_t seconds = chance(world, 500) ? between(world, 60, 200) : between(world, 60, 1800);
    return (struct as_approval_config){
        .is_set = true, .above = (int32_t)above, .for_us = seconds * SECOND};
}

static void on_answer(struct world *world, void *subject, uint64_t number)
{
    const struct sim_approval *approval = subject;
    const struct as_operator_command order = {
        .kind = chance(world, 700) ? AS_OPERATOR_COMMAND_APPROVE : AS_OPERATOR_COMMAND_DENY,
        .request = approval->id,
    };
    operators_give(world, &order, NULL);
    if (number == 0 && chance(world, 300)) {
        const int64_t longest_ms = chance(world, 500) ? 2000 : 600000;
        later(world, between(world, 1, longest_ms) * AS_US_PER_MS, on_answer, subject, number + 1);
    }
}

static int64_t pick_delay(struct world *world, const struct sim_approval *approval)
{
    switch (between(world, 0, 3)) {
    case 0: return between(world, 1, 3000) * AS_US_PER_MS;
    case 1: return approval->for_us + between(world, -2000, 2000) * AS_US_PER_MS;
    default: return between(world, SECOND, approval->for_us);
    }
}

struct sim_approval *approvals_note_asked(struct world *world,
                                          const struct as_approval_record *record)
{
    const struct as_approval_state *request = record->request;
    struct sim_approval *approval = as_xcalloc(1, sizeof(*approval));
    world->approvals = as_xgrow(world->approvals, world->approval_count, &world->approval_capacity,
                                sizeof(*world->approvals));
    world->approvals[world->approval_count++] = approval;
    *approval = (struct sim_approval){
        .target = server_find(world, record->target),
        .is_up = request->is_up,
        .to = request->to,
        .for_us = request->for_us,
        .rule_changes = world->rule_changes,
        .asked_at = world->now,
        .approved_at = INT64_MIN,
        .refused_at = INT64_MIN,
    };
    (void)snprintf(approval->id, sizeof(approval->id), "%s", request->id);
    (void)snprintf(approval->rule, sizeof(approval->rule), "%s", request->rule);
    (void)snprintf(approval->incident, sizeof(approval->incident), "%s", request->incident);
    (void)snprintf(approval->uid, sizeof(approval->uid), "%s", request->uid);
    if (world->has_operators && chance(world, 800))
        later(world, pick_delay(world, approval), on_answer, approval, 0);
    return approval;
}

struct sim_approval *approvals_look_up(const struct world *world, const char *id)
{
    for (size_t i = world->approval_count; i-- > 0;) {
        if (strcmp(world->approvals[i]->id, id) == 0)
            return world->approvals[i];
    }
    return NULL;
}

void approvals_stop(struct world *world)
{
    for (size_t i = 0; i < world->approval_count; i++)
        free(world->approvals[i]);
    free(world->approvals);
    free(world->free_steps);
}
