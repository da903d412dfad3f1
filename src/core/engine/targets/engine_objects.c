/*
 * Another object under the same name: the former was deleted, the new one has another UID. What
 * belongs to the former is dropped: locks, the history for windows and policies, sizes to give
 * back, a request with unknown outcome, an ordered size. The rest stays: pauses belong to the name,
 * what a rule has done for an incident (`once`, max_steps, `every`) to the incident, and
 * last_step_down to the alert's reports.
 *
 * Objects without a UID count as the same for ever, as do targets stored without one. If an earlier
 * UID comes back, it is an outdated view of the target.
 */
#include "engine_objects.h"

#include <string.h>

#include "engine/follow/engine_follow.h"
#include "engine/incidents/engine_bindings.h"
#include "engine/others/engine_contention.h"
#include "engine/state/engine_effects.h"
#include "engine/targets/engine_actions.h"
#include "engine/targets/engine_endings.h"
#include "engine/targets/engine_growth.h"
#include "engine/targets/engine_orders.h"

static const char why[] = "given up: another object has the name now";
static const char why_over[] = "another object has the name now";

static void forget_former(struct as_engine *engine, struct target *target)
{
    target->last_up = target->last_down = target->last_return = AS_MOMENT_NEVER;
    target->dry_last_up = target->dry_last_down = AS_MOMENT_NEVER;
    target->recommendation_count = 0;
    target->born = moment_now(engine);
    target->is_untold = true;
    lock_cause_free(&target->cause);
    contention_end(engine, target, why_over);
    endings_forget_sizes(target);
    bindings_forget_sizes(engine, target);
    growth_forget_pods(target);
    follow_forget_pods(engine, target);
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
