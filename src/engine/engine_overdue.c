/*
 * Instances that never became nodes: see the header.
 */
#include "engine_overdue.h"

#include <stdio.h>
#include <string.h>

#include "engine_forbidden.h"
#include "engine_limits.h"
#include "engine_pauses.h"
#include "engine_pools.h"
#include "engine_targets.h"

void overdue_tell(struct as_engine *engine, struct target *target,
                  const struct as_observation *observation, const struct outcome *outcome)
{
    const struct as_survey *survey = observation->survey;
    if (!outcome->is_decided || outcome->decision.overdue == 0)
        return;
    for (size_t i = 0; i < survey->group_count; i++) {
        const int32_t count = observation->plan->groups[i].overdue;
        struct target *group =
            count > 0 ? pool_find_group(engine, target, survey->groups[i].name) : NULL;
        if (!group || (group->overdue.size > 0 && group->overdue.until.us > engine->mono.us))
            continue; /* told lately: it waits, or was hindered */
        group->overdue = (struct overdue){.count = count,
                                          .size = survey->groups[i].size,
                                          .until = {as_time_add(engine->mono.us, OVERDUE_US)}};
        memcpy(group->overdue.decision, outcome->id, AS_ULID_SIZE);
        group->dirty = true;
        if (group != target)
            target_make_ready(engine, group);
    }
}

/* Whether something stands against it that the decision could not know. */
static bool is_hindered(const struct as_engine *engine, const struct target *target,
                        const struct as_observation *observation)
{
    return observation->replicas != target->overdue.size || observation->in_progress ||
           target->overdue.until.us <= engine->mono.us || engine->stopping || engine->halt.is_set ||
           pauses_find(engine, target) || engine->config.dry_run || !target->config ||
           forbidden_is_with_pool(engine, target, AS_WAYS_DOWN) || target->config->dry_run ||
           target->growth.is_open || target->maybe || target->ordered.is_set || target->share.pool;
}

int32_t overdue_review(struct as_engine *engine, struct target *target,
                       const struct as_observation *observation)
{
    struct overdue *overdue = &target->overdue;
    if (overdue->count == 0)
        return -1;
    if (is_hindered(engine, target, observation)) {
        overdue->count = 0;
        return -1;
    }
    int32_t least = target_get_bounds(engine, target).min;
    least = observation->min > least ? observation->min : least;
    int32_t to = observation->replicas - overdue->count;
    to = to > least ? to : least;
    if (to >= observation->replicas) {
        overdue->count = 0;
        return -1;
    }
    if (limits_refuse(engine, target, to, to)) /* waits for its place */
        return -1;
    overdue->count = 0;
    return to;
}

const char *overdue_explain(struct as_engine *engine, const struct intent *intent)
{
    char text[AS_MESSAGE_SIZE];
    const int32_t count = intent->from - intent->to;
    (void)snprintf(text, sizeof(text), "%d instance%s never became %s: removed", count,
                   count == 1 ? "" : "s", count == 1 ? "a node" : "nodes");
    return as_arena_strdup(&engine->arena, text);
}
