/*
 * Resources of containers. A change of a pod template is open until its rollout has ended. If the
 * rollout's deadline passes before, what was before it is put back, once. Deployments have a
 * controller that says when the deadline has passed; of others it passes when no further pod was
 * replaced for ROLLOUT_US.
 *
 * Pods that are resized in place leave their template as it is. Pods that come later have the
 * template's request: they get the target's last size while that is larger. Only a pod that has
 * exactly the template's request counts as come later; what somebody else has set stays.
 */
#include "engine_resize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/core/sized.h>

#include "engine/holds/engine_forbidden.h"
#include "engine/state/engine_effects.h"
#include "engine/state/engine_targets.h"
#include "engine/targets/engine_growth.h"
#include "engine/targets/engine_pauses.h"

#define ROLLOUT_US (600 * AS_US_PER_S) /* Kubernetes' default of progressDeadlineSeconds */

static bool is_ours(const struct target *target, const struct intent *intent)
{
    return target->resize.is_set && !intent->rule[0] &&
           strcmp(intent->decision_id, target->resize.id) == 0;
}

bool resize_is_by_pods(const struct target *target)
{
    struct as_sized sized;
    as_sized_read(target->ref, &sized);
    return sized.what == AS_SIZED_RESOURCE && sized.by_pods;
}

bool resize_is_put_back(const struct target *target, const struct intent *intent)
{
    return is_ours(target, intent) && target->resize.is_late && intent->to == target->resize.from;
}

bool resize_is_catch_up(const struct target *target, const struct intent *intent)
{
    const struct resize *resize = &target->resize;
    return is_ours(target, intent) && !resize->is_open && intent->to <= resize->to &&
           intent->from < intent->to;
}

static const char *explain_put_back(struct as_engine *engine, struct target *target,
                                    const struct intent *intent)
{
    const char *unit = as_sized_get_unit(target->ref);
    char text[AS_MESSAGE_SIZE], of[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];
    snprintf(text, sizeof(text),
             "did_not_come: the rollout of %s did not end in time; put back to %s",
             as_unit_print_size(unit, intent->from, of), as_unit_print_size(unit, intent->to, to));
    return as_arena_strdup(&engine->arena, text);
}

const char *resize_on_applied(struct as_engine *engine, struct target *target,
                              const struct intent *intent)
{
    struct resize *resize = &target->resize;
    struct as_sized sized;
    as_sized_read(target->ref, &sized);
    if (sized.what != AS_SIZED_RESOURCE)
        return NULL;
    if (resize_is_put_back(target, intent)) {
        if (intent->to < intent->from)
            growth_fail(engine, target);
        resize->is_open = resize->is_late = false;
        resize->to = intent->to;
        return explain_put_back(engine, target, intent);
    }
    if (resize_is_catch_up(target, intent))
        return "pods that came after the last change";
    *resize = (struct resize){
        .is_set = true,
        .is_open = !sized.by_pods,
        .is_ordered = intent->is_ordered,
        .from = intent->from,
        .to = intent->to,
        .moved = moment_now(engine),
    };
    memcpy(resize->id, intent->decision_id, AS_ULID_SIZE);
    if (target->config) {
        free(target->entry);
        target->entry = as_xstrdup(target->config->name);
    }
    return NULL;
}

bool resize_remake(struct as_engine *engine, struct target *target)
{
    if (!target->resize.is_open)
        return false;
    target->dirty = true;
    if (target_recover_config(engine, target))
        return false;
    target->resize.is_open = target->resize.is_late = false; /* nobody is responsible */
    return true;
}

bool resize_is_awaited(const struct target *target, const struct as_observation *observation)
{
    return target->resize.is_open && observation->resize.is_rolling;
}

void resize_give_up(struct as_engine *engine, struct target *target)
{
    target->resize.is_open = target->resize.is_late = false;
    effect_put_target(engine, target);
}

static bool has_failed(struct as_engine *engine, struct resize *resize,
                       const struct as_resize_seen *seen)
{
    if (seen->has_verdict)
        return seen->has_failed;
    if (seen->updated != resize->updated || !as_moment_is_set(resize->moved)) {
        resize->updated = seen->updated;
        resize->moved = moment_now(engine);
    }
    return as_time_add(resize->moved.mono.us, ROLLOUT_US) <= engine->mono.us;
}

/* Whether the old size is due; closes what has ended, or what somebody else has changed since. */
static bool review_rollout(struct as_engine *engine, struct target *target,
                           const struct as_observation *observation)
{
    struct resize *resize = &target->resize;
    if (!observation->resize.is_rolling || observation->replicas != resize->to) {
        if (observation->replicas == resize->to)
            target->growth.failed = AS_MOMENT_NEVER;
        resize_give_up(engine, target);
        effect_commit(engine);
        return false;
    }
    resize->is_late = resize->is_late || has_failed(engine, resize, &observation->resize);
    return resize->is_late;
}

static int32_t find_last_size(const struct resize *resize, const struct as_observation *observation)
{
    const struct as_resize_seen *seen = &observation->resize;
    const int32_t to =
        seen->settled >= 0 && seen->settled < resize->to ? seen->settled : resize->to;
    return seen->template_size >= 0 && observation->replicas == seen->template_size &&
                   to > seen->template_size
               ? to
               : -1;
}

int32_t resize_review(struct as_engine *engine, struct target *target,
                      const struct as_observation *observation)
{
    const struct resize *resize = &target->resize;
    int32_t size;
    if (!observation->resize.is_set || !resize->is_set || !target->config || engine->stopping)
        return -1;
    if (resize->is_open)
        size = review_rollout(engine, target, observation) ? resize->from : -1;
    else
        size = find_last_size(resize, observation);
    if (target->maybe || pauses_find(engine, target) || size < 0 ||
        forbidden_is(engine, target, size > observation->replicas ? AS_WAYS_UP : AS_WAYS_DOWN) ||
        engine->config.dry_run || target->config->dry_run)
        return -1;
    return size;
}
