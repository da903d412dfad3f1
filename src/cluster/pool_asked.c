/*
 * What was asked without a full check: pairs of a shape and a group (struct as_asked). A pair is
 * open while nodes of the group are on their way and two to three minutes longer. Then the pair is
 * in vain if such a pod still waits; else it is forgotten. A pair that is in vain is not asked
 * again for AS_ASKED_FOR_US or until the group's template changes.
 */
#include "pool_work.h"

#include <string.h>

#define PATIENCE_US (2 * AS_US_PER_MIN) /* after the nodes came */
#define NOTE_US     AS_US_PER_MIN       /* `at` is kept as current as this: each change is stored */

static const struct as_survey_group *find_group(const struct as_survey *survey, const char *name)
{
    for (size_t i = 0; i < survey->group_count; i++)
        if (strcmp(survey->groups[i].name, name) == 0)
            return &survey->groups[i];
    return NULL;
}

static bool has_changed(const struct as_survey_group *group, const struct as_asked *asked)
{
    return group->template_.source != AS_NODE_TEMPLATE_NONE &&
           group->template_digest != asked->template_;
}

static bool still_waits(const struct as_survey *survey, uint64_t digest)
{
    for (size_t i = 0; i < survey->pending_count; i++)
        if (survey->pending[i].count > 0 &&
            survey->shapes[survey->pending[i].shape].digest == digest)
            return true;
    for (size_t i = 0; i < survey->shape_count; i++)
        if (survey->shapes[i].waiting > 0 && survey->shapes[i].digest == digest)
            return true;
    return false;
}

static int64_t get_age(const struct as_pool_work *work, as_wall_time at)
{
    return work->request.terms.now.us > at.us ? work->request.terms.now.us - at.us : 0;
}

/* False: it is forgotten. A group in cooldown has failed to grow: nothing came that a pod could
 * have refused. */
static bool review_open(const struct as_pool_work *work, const struct as_survey_group *group,
                        struct as_asked *asked)
{
    if (group->coming > 0) {
        if (get_age(work, asked->at) >= NOTE_US)
            asked->at = work->request.terms.now;
        return true;
    }
    if (group->closed == AS_REASON_COOLDOWN)
        return false;
    if (get_age(work, asked->at) < NOTE_US + PATIENCE_US)
        return true;
    asked->is_in_vain = still_waits(work->survey, asked->shape);
    asked->at = work->request.terms.now;
    return asked->is_in_vain;
}

static bool review(const struct as_pool_work *work, struct as_asked *asked)
{
    const struct as_survey_group *group = find_group(work->survey, asked->group);
    if (!group || has_changed(group, asked))
        return false;
    if (asked->is_in_vain)
        return get_age(work, asked->at) < AS_ASKED_FOR_US;
    return review_open(work, group, asked);
}

void pool_asked_review(struct as_pool_work *work)
{
    const struct as_survey *survey = work->survey;
    struct as_pool_plan *plan = &work->plan;
    plan->asked = as_arena_alloc(work->arena, AS_ASKED_MAX, sizeof(*plan->asked));
    for (size_t i = 0; i < survey->asked_count && plan->asked_count < AS_ASKED_MAX; i++) {
        struct as_asked *asked = &plan->asked[plan->asked_count];
        *asked = survey->asked[i];
        plan->asked_count += review(work, asked);
    }
}

static struct as_asked *find_asked(const struct as_pool_work *work, uint32_t shape, uint32_t group)
{
    const struct as_survey *survey = work->survey;
    for (size_t i = 0; i < work->plan.asked_count; i++) {
        struct as_asked *asked = &work->plan.asked[i];
        if (asked->shape == survey->shapes[shape].digest &&
            strcmp(asked->group, survey->groups[group].name) == 0)
            return asked;
    }
    return NULL;
}

bool pool_asked_in_vain(const struct as_pool_work *work, uint32_t shape, uint32_t group)
{
    const struct as_asked *asked = NULL;
    if (work->survey->shapes[shape].pod.unchecked)
        asked = find_asked(work, shape, group);
    return asked && asked->is_in_vain;
}

/* Its own entry if there is one; else a new one; where there is no room, the oldest. */
static struct as_asked *get_place(struct as_pool_work *work, uint32_t shape, uint32_t group)
{
    struct as_pool_plan *plan = &work->plan;
    struct as_asked *place = find_asked(work, shape, group);
    if (place)
        return place;
    if (plan->asked_count < AS_ASKED_MAX)
        return &plan->asked[plan->asked_count++];
    place = &plan->asked[0];
    for (size_t i = 1; i < plan->asked_count; i++)
        if (plan->asked[i].at.us < place->at.us)
            place = &plan->asked[i];
    return place;
}

void pool_asked_add(struct as_pool_work *work, uint32_t shape, uint32_t group)
{
    const struct as_survey_group *asked = &work->survey->groups[group];
    *get_place(work, shape, group) = (struct as_asked){
        .shape = work->survey->shapes[shape].digest,
        .template_ = asked->template_digest,
        .group = asked->name,
        .at = work->request.terms.now,
    };
}
