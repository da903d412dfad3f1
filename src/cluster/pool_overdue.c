/*
 * Instances that never became nodes: how many of each group may be removed. Whatever else closes a
 * group for growth, they leave; but not where nobody may touch the group, or it is being changed.
 */
#include "pool_work.h"

static bool may_touch(const struct as_survey_group *group)
{
    return group->is_member && group->size >= 0 &&
           (group->closed == AS_REASON_SCALED || group->closed == AS_REASON_AT_MAX ||
            group->closed == AS_REASON_COOLDOWN || group->closed == AS_REASON_NO_TEMPLATE);
}

void pool_overdue_find(struct as_pool_work *work)
{
    struct as_pool_plan *plan = &work->plan;
    int64_t room = (int64_t)plan->size - work->request.terms.min;
    for (size_t i = 0; i < work->survey->group_count && work->request.terms.with_fit; i++) {
        const struct as_survey_group *group = &work->survey->groups[i];
        int64_t count = may_touch(group) ? group->removable : 0;
        const int64_t above = (int64_t)group->size - group->min;
        count = count < above ? count : above;
        count = count < room ? count : room;
        if (count <= 0)
            continue;
        room -= count;
        plan->groups[i].overdue = (int32_t)count;
        plan->overdue += (int32_t)count;
    }
}
