/*
 * Numbers of looks at nodes: see the header.
 */
#include "engine_seen.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

void seen_clear(struct target *target)
{
    free(target->pool.seen);
    target->pool.seen = NULL;
}

/* NULL: the rules have no such group of the target. */
static const char *find_name(const struct as_engine *engine, const struct target *target,
                             const char *name)
{
    const struct as_pool_config *pool = target->config->pool;
    if (!pool)
        return target->config->name;
    for (size_t i = 0; i < pool->group_count; i++) {
        const char *known = engine->ruleset->targets[pool->groups[i]].name;
        if (strcmp(known, name) == 0)
            return known;
    }
    return NULL;
}

static void take_survey(const struct as_engine *engine, const struct target *target,
                        const struct as_observation *observation, struct as_pool_seen *seen)
{
    const struct as_survey *survey = observation->survey;
    seen->has_pods = true;
    seen->pending_pods = survey->pending_pods;
    for (size_t i = 0; i < observation->plan->unneeded_count; i++)
        seen->unneeded_nodes += observation->plan->unneeded[i].since.set;
    for (size_t i = 0; i < survey->group_count; i++) {
        const struct as_survey_group *group = &survey->groups[i];
        const char *name = group->is_member ? find_name(engine, target, group->name) : NULL;
        if (name)
            seen->groups[seen->group_count++] = (struct as_group_seen){.name = name,
                                                                       .sums = group->sums,
                                                                       .coming = group->coming,
                                                                       .overdue = group->overdue,
                                                                       .closed = group->closed};
    }
}

/* The sums of the source `nodes` also have pods that wait for the group. */
static void take_sums(const struct target *target, const struct as_nodes_seen *nodes,
                      struct as_pool_seen *seen)
{
    struct as_group_seen *group = &seen->groups[0];
    if (seen->group_count == 0)
        *group = (struct as_group_seen){.name = target->config->name,
                                        .sums = {.ready = -1, .leaving = -1},
                                        .coming = -1,
                                        .overdue = -1,
                                        .closed = AS_REASON_SCALED};
    seen->group_count = 1;
    group->sums.open = nodes->open;
    memcpy(group->sums.requests, nodes->requests, sizeof(group->sums.requests));
    for (size_t i = 0; i < AS_RESOURCE_COUNT; i++)
        group->sums.allocatable[i] = nodes->is_template ? 0 : nodes->allocatable[i];
}

void seen_set(const struct as_engine *engine, struct target *target,
              const struct as_observation *observation)
{
    const bool has_survey = observation->plan != NULL;
    const bool has_sums = !target->config->pool && target->ref->kind->has_nodes &&
                          observation->nodes && !observation->nodes->error;
    seen_clear(target);
    if (!has_survey && !has_sums)
        return;
    const size_t groups = (has_survey ? observation->survey->group_count : 0) + 1;
    struct as_pool_seen *seen = as_xcalloc(1, sizeof(*seen) + groups * sizeof(seen->groups[0]));
    if (has_survey)
        take_survey(engine, target, observation, seen);
    if (has_sums)
        take_sums(target, observation->nodes, seen);
    target->pool.seen = seen;
}
