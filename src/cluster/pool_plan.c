/*
 * The plan of a pool: see the header. The phases are gone through in order; each step does parts of
 * them until its fits are spent.
 */
#include "pool_work.h"

#include <assert.h>
#include <string.h>

#include <alertscaler/base/attr.h>

static const struct {
    pool_phase_fn *run;
    bool is_take; /* else fit */
} phases[] = {
    {pool_fit_begin, false},    {pool_fit_place, false},    {pool_fit_look, false},
    {pool_fit_estimate, false}, {pool_fit_choose, false},   {pool_take_begin, true},
    {pool_take_class, true},    {pool_take_simulate, true}, {pool_leave, true},
};

/* Of a group that cannot be read, the nodes that are known count. */
static int32_t get_size(const struct as_survey_group *group)
{
    if (group->size >= 0)
        return group->size;
    return group->nodes < INT32_MAX ? (int32_t)group->nodes : INT32_MAX;
}

static void init_plan(struct as_pool_work *work)
{
    const struct as_survey *survey = work->survey;
    struct as_pool_plan *plan = &work->plan;
    int64_t size = 0;
    *plan = (struct as_pool_plan){
        .terms = work->request.terms,
        .fit_reason = AS_REASON_NO_CHANGE,
        .chosen = AS_POOL_NO_OPTION,
    };
    plan->groups = as_arena_alloc(work->arena, survey->group_count, sizeof(*plan->groups));
    for (size_t i = 0; i < survey->group_count; i++) {
        const struct as_survey_group *group = &survey->groups[i];
        plan->groups[i].fit = plan->groups[i].take_to = get_size(group);
        plan->groups[i].skipped = AS_REASON_SCALED;
        size += group->is_member ? plan->groups[i].fit : 0;
    }
    plan->size = size < INT32_MAX ? (int32_t)size : INT32_MAX;
    plan->fit_size = plan->take_size = plan->size;
    memcpy(plan->kept, survey->kept, sizeof(plan->kept));
    /* Without `take` it stays as it is. */
    plan->unneeded = as_arena_alloc(work->arena, survey->unneeded_count, sizeof(*plan->unneeded));
    plan->unneeded_count = survey->unneeded_count;
    for (size_t i = 0; i < survey->unneeded_count; i++)
        plan->unneeded[i] = survey->unneeded[i];
    pool_asked_review(work);
    pool_overdue_find(work);
}

struct as_pool_work *as_pool_begin(const struct as_pool_plan_request *request,
                                   struct as_arena *arena)
{
    struct as_pool_work *work = as_arena_alloc(arena, 1, sizeof(*work));
    assert(!request->survey->error);
    work->request = *request;
    work->survey = request->survey;
    work->arena = arena;
    init_plan(work);
    return work;
}

static bool is_asked_for(const struct as_pool_work *work)
{
    return phases[work->phase].is_take ? work->request.terms.with_take
                                       : work->request.terms.with_fit;
}

bool as_pool_step(struct as_pool_work *work, uint64_t fits, struct as_pool_plan *plan_out)
{
    work->slice = fits;
    while (work->phase < AS_ARRAY_SIZE(phases) && work->slice > 0) {
        if (!is_asked_for(work) || phases[work->phase].run(work))
            work->phase++;
    }
    if (work->phase < AS_ARRAY_SIZE(phases))
        return false;
    *plan_out = work->plan;
    return true;
}
