/*
 * Another object under the same name: the former was deleted, the new one has another UID. What
 * belongs to the former is dropped: locks, the history for windows and policies, sizes to give
 * back, a request with unknown outcome, an ordered size. The rest stays: pauses belong to the name,
 * what a rule has done for an incident (`once`, max_steps, `every`) to the incident, and
 * last_step_down to the alert's reports.
 *
 * Objects without a UID count as the same for ever, as do targets stored without one. If an earlier
 * UID comes back, it is an outdated view of the target.
 *
 * The same object in another unit (decide/sized.h) has other sizes: what is a size or a number of
 * steps is dropped. Its locks stay.
 */
#include "engine_objects.h"

#include <string.h>

#include <alertscaler/decide/sized.h>

#include "engine_actions.h"
#include "engine_approvals.h"
#include "engine_bindings.h"
#include "engine_contention.h"
#include "engine_effects.h"
#include "engine_endings.h"
#include "engine_follow.h"
#include "engine_growth.h"
#include "engine_orders.h"
#include "engine_resize.h"

#define GIVEN_UP "given up: "

static const char is_other_object[] = GIVEN_UP "another object has the name now";
static const char is_other_unit[] = GIVEN_UP "sizes are counted in another unit now";

/* To be committed. `why` begins with GIVEN_UP. */
static void forget_sizes(struct as_engine *engine, struct target *target, const char *why)
{
    const char *cause = why + strlen(GIVEN_UP);
    target->recommendation_count = 0;
    target->born = moment_now(engine);
    contention_end(engine, target, cause);
    endings_forget_sizes(target);
    bindings_forget_sizes(engine, target);
    growth_forget_pods(target);
    resize_forget(target);
    follow_forget_pods(engine, target);
    actions_supersede_maybe(engine, target, why);
    orders_supersede(engine, target, why);
    approvals_forget(engine, target, cause);
}

static void forget_former(struct as_engine *engine, struct target *target)
{
    target->last_up = target->last_down = target->last_return = AS_MOMENT_NEVER;
    target->dry_last_up = target->dry_last_down = AS_MOMENT_NEVER;
    target->is_untold = true;
    forget_sizes(engine, target, is_other_object);
}

/* The UID without the unit behind it. */
static size_t measure_uid(const char *uid)
{
    return strcspn(uid, (const char[]){AS_SIZED_UNIT_MARK, '\0'});
}

static bool is_same_object(const char *uid, const char *other)
{
    const size_t size = measure_uid(uid);
    return size > 0 && size == measure_uid(other) && memcmp(uid, other, size) == 0;
}

static void see_unit(struct as_engine *engine, struct target *target, const char *uid)
{
    memcpy(target->uid, uid, strlen(uid) + 1);
    forget_sizes(engine, target, is_other_unit);
    effect_put_target(engine, target);
    effect_commit(engine);
}

void object_see(struct as_engine *engine, struct target *target, const char *uid)
{
    if (!*uid || strcmp(target->uid, uid) == 0)
        return;
    if (is_same_object(target->uid, uid)) {
        see_unit(engine, target, uid);
        return;
    }
    if (is_same_object(target->former_uid, uid))
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
