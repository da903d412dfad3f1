/*
 * Another object under the same name: one was deleted, and another made (another UID). What is
 * known of the former says nothing of it: locks, the history that windows and policies go by, sizes
 * to give back, a request of which nobody knows, an ordered size. Pauses are the name's. What a
 * rule has done for an incident (`once`, max_steps, `every`) is the incident's, and what an alert's
 * last report was used for (last_step_down) is the alert's: these stay.
 *
 * What has no UID is the same for ever. So is a target that was stored without one. A UID that was
 * there before is an old view of the target.
 */
#include "engine_objects.h"

#include <string.h>

#include "engine/incidents/engine_bindings.h"
#include "engine/state/engine_effects.h"
#include "engine/targets/engine_actions.h"
#include "engine/targets/engine_endings.h"
#include "engine/targets/engine_orders.h"

static const char why[] = "given up: another object has the name now";

static void forget_former(struct as_engine *engine, struct target *target)
{
    target->last_up = target->last_down = AS_MOMENT_NEVER;
    target->dry_last_up = target->dry_last_down = AS_MOMENT_NEVER;
    target->recommendation_count = 0;
    target->born = moment_now(engine);
    target->is_untold = true;
    lock_cause_free(&target->cause);
    endings_forget_sizes(target);
    bindings_forget_sizes(engine, target);
    actions_supersede_maybe(engine, target, why);
    orders_supersede(engine, target, why);
}

void object_see(struct as_engine *engine, struct target *target, const char *uid)
{
    if (!*uid || strcmp(target->uid, uid) == 0 || strcmp(target->former_uid, uid) == 0)
        return;
    const bool is_other = target->uid[0] != '\0';
    memcpy(target->former_uid, target->uid, sizeof(target->uid));
    memcpy(target->uid, uid, strlen(uid) + 1);
    if (is_other)
        forget_former(engine, target);
    if (!is_other && !target->is_stored)
        return;
    effect_put_target(engine, target);
    effect_commit(engine);
}
