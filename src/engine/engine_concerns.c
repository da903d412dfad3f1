/*
 * The concerns of a target as rows of one table, in the order in which each hook is called. The
 * order matters where a hook has effects: the simulator's digests notice another one.
 *
 * The table is alone in its object file, so that a test links another one. The hooks wrap the
 * functions of the concerns' own modules (engine_concerns.h).
 */
#include "engine_concerns.h"

#include <alertscaler/base/attr.h>

#include "engine_aliases.h"
#include "engine_incidents.h"
#include "engine_pools.h"
#include "engine_registry.h"

static as_mono_time get_kept_until(const struct target *target, struct as_moment moment)
{
    return as_moment_is_set(moment) ? (as_mono_time){as_time_add(moment.mono.us, target->keep_us)}
                                    : (as_mono_time){INT64_MIN};
}

/* ---- pools: assignments of a group, and the turn of a pool ---- */

static bool pool_is_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return target->assignment.pool != NULL;
}

static bool pool_on_unseen(struct as_engine *engine, struct target *target, enum as_reason outcome)
{
    assignment_on_unseen(engine, target, outcome);
    return false;
}

static int64_t pool_get_observe_us(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return target->assignment.pool ? ASSIGNMENT_OBSERVE_US : INT64_MAX;
}

/* An increase of the pool has failed: the rest of it is not another one. */
static void pool_fill(struct as_engine *engine, const struct target *target,
                      const struct as_observation *observation, struct as_decide_input *input)
{
    (void)engine, (void)observation;
    if (!target->pool.is_short)
        return;
    input->last_up = (as_maybe_time){0};
    input->config.cooldown.up_after_down_us = 0;
}

/* ---- contention ---- */

static void contention_forget_sizes(struct as_engine *engine, struct target *target,
                                    const struct other_object *why)
{
    contention_end(engine, target, why->cause);
}

/* ---- endings ---- */

static bool endings_are_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return target->ending_count > 0;
}

static void endings_drop_sizes(struct as_engine *engine, struct target *target,
                               const struct other_object *why)
{
    (void)engine, (void)why;
    endings_forget_sizes(target);
}

static bool endings_on_unseen(struct as_engine *engine, struct target *target,
                              enum as_reason outcome)
{
    (void)outcome;
    return endings_review(engine, target, -1);
}

/* ---- incidents: what rules have done for them ---- */

static bool bindings_are_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return target->open_bindings > 0;
}

static void bindings_drop_sizes(struct as_engine *engine, struct target *target,
                                const struct other_object *why)
{
    (void)why;
    bindings_forget_sizes(engine, target);
}

/* ---- pending scale-ups ---- */

static bool scaleup_is_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return target->scaleup.is_open;
}

static as_mono_time scaleup_get_forget_time(const struct target *target)
{
    return get_kept_until(target, target->scaleup.failed);
}

static void scaleup_drop_sizes(struct as_engine *engine, struct target *target,
                               const struct other_object *why)
{
    (void)engine, (void)why;
    scaleup_forget_pods(target);
}

static int64_t scaleup_observe_within(const struct as_engine *engine, const struct target *target)
{
    return target->scaleup.is_open ? scaleup_get_observe_us(engine, target) : INT64_MAX;
}

/* Takes back what did not come. It waits like any action until one may begin; what never served is
 * no removal that is limited. The scale-up is observed again soon. */
static bool scaleup_claim(struct as_engine *engine, struct target *target,
                          const struct as_observation *observation)
{
    const int32_t keep = scaleup_review(engine, target, observation);
    if (keep < 0 || limits_refuse(engine, target, keep, keep))
        return false;
    sources_drop(engine, target);
    actions_begin_take_back(engine, target, observation, keep);
    return true;
}

/* ---- resizes ---- */

static bool resize_is_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return target->resize.is_open || target->resize.is_above;
}

static void resize_drop_sizes(struct as_engine *engine, struct target *target,
                              const struct other_object *why)
{
    (void)engine, (void)why;
    resize_forget(target);
}

static bool resize_cannot_see(struct as_engine *engine, struct target *target,
                              enum as_reason outcome)
{
    (void)engine;
    return resize_on_unseen(target, outcome);
}

static int64_t resize_observe_within(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return target->resize.is_open ? SCALEUP_OBSERVE_US : INT64_MAX;
}

static bool resize_claim(struct as_engine *engine, struct target *target,
                         const struct as_observation *observation)
{
    const int32_t size = resize_review(engine, target, observation);
    if (size < 0 || target->ordered.is_set)
        return false;
    sources_drop(engine, target);
    actions_begin_resize(engine, target, observation, size);
    return true;
}

/* ---- effect evaluations ---- */

static void evaluations_drop_sizes(struct as_engine *engine, struct target *target,
                                   const struct other_object *why)
{
    (void)why;
    evaluation_forget_pods(engine, target);
}

/* ---- requests in doubt ---- */

static void in_doubt_drop_sizes(struct as_engine *engine, struct target *target,
                                const struct other_object *why)
{
    actions_supersede_in_doubt(engine, target, why->given_up);
}

/* ---- metric gaps ---- */

static bool metric_gaps_end(struct as_engine *engine, struct target *target, int32_t replicas)
{
    (void)engine, (void)replicas;
    return metric_gaps_review(target);
}

/* ---- operator commands, with floors ---- */

static bool commands_are_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return target->ordered.is_set;
}

static as_mono_time commands_get_forget_time(const struct target *target)
{
    /* a floor holds again if a rule leads here again */
    return target->floor.size > 0 ? floor_get_end(target) : (as_mono_time){INT64_MIN};
}

static void commands_drop_sizes(struct as_engine *engine, struct target *target,
                                const struct other_object *why)
{
    commands_supersede(engine, target, why->given_up);
}

static bool commands_review(struct as_engine *engine, struct target *target, int32_t replicas)
{
    (void)replicas;
    return commands_end_floor(engine, target);
}

static bool commands_on_unseen(struct as_engine *engine, struct target *target,
                               enum as_reason outcome)
{
    return commands_on_failure(engine, target, outcome, false);
}

static bool commands_claim(struct as_engine *engine, struct target *target,
                           const struct as_observation *observation)
{
    if (!commands_begin(engine, target, observation))
        return false;
    sources_drop(engine, target);
    actions_begin_ordered(engine, target, observation);
    return true;
}

/* ---- approvals ---- */

static as_mono_time approvals_get_forget_time(const struct target *target)
{
    const size_t count = target->free_step_count;
    return count > 0 ? (as_mono_time){as_time_add(target->free_steps[count - 1].at.mono.us,
                                                  AS_APPROVAL_SPAN_US)}
                     : (as_mono_time){INT64_MIN};
}

static void approvals_drop_sizes(struct as_engine *engine, struct target *target,
                                 const struct other_object *why)
{
    approvals_forget(engine, target, why->cause);
}

static bool approvals_settle(struct as_engine *engine, struct target *target, int32_t replicas)
{
    const bool is_over = approvals_review(engine, target);
    return approvals_see_size(engine, target, replicas) || is_over;
}

/* ---- instances that never became nodes ---- */

static bool unregistered_is_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return target->overdue.count > 0;
}

static bool unregistered_claim(struct as_engine *engine, struct target *target,
                               const struct as_observation *observation)
{
    const int32_t keep = unregistered_review(engine, target, observation);
    if (keep < 0)
        return false;
    sources_drop(engine, target);
    actions_begin_clean_up(engine, target, observation, keep);
    return true;
}

/* ---- forbidden directions ---- */

static void forbidden_fill_input(struct as_engine *engine, const struct target *target,
                                 const struct as_observation *observation,
                                 struct as_decide_input *input)
{
    (void)observation;
    forbidden_fill(engine, target, input);
}

/* ---- history: locks, windows, policies ---- */

static as_mono_time history_get_forget_time(const struct target *target)
{
    const struct as_moment moments[] = {target->locks.last_up,        target->locks.last_down,
                                        target->locks.dry_last_up,    target->locks.dry_last_down,
                                        target->locks.last_step_down, target->locks.last_return};
    as_mono_time forget = {INT64_MIN};
    if (target->event_count > 0) /* also if the locks were ended by hand */
        forget = get_kept_until(target, target->events[target->event_count - 1].at);
    for (size_t i = 0; i < AS_ARRAY_SIZE(moments); i++) {
        const as_mono_time kept = get_kept_until(target, moments[i]);
        forget = kept.us > forget.us ? kept : forget;
    }
    return forget;
}

static void history_fill_input(struct as_engine *engine, const struct target *target,
                               const struct as_observation *observation,
                               struct as_decide_input *input)
{
    (void)observation;
    history_fill(engine, target, input);
}

const struct concern engine_concerns[] = {
    {.name = "limits", .release = limits_on_idle, .forget = limits_forget},
    {.name = "aliases", .forget = alias_forget},
    {.name = "pools",
     .is_using = pool_is_using,
     .on_unseen = pool_on_unseen,
     .fill_input = pool_fill,
     .get_observe_us = pool_get_observe_us,
     .release = pool_release,
     .forget = pool_forget},
    {.name = "after", .release = after_release, .forget = after_forget},
    {.name = "contention",
     .get_forget_time = contention_get_forget_time,
     .forget_sizes = contention_forget_sizes},
    {.name = "endings",
     .is_using = endings_are_using,
     .forget_sizes = endings_drop_sizes,
     .on_unseen = endings_on_unseen,
     .review = endings_review},
    {.name = "incidents", .is_using = bindings_are_using, .forget_sizes = bindings_drop_sizes},
    {.name = "scale-ups",
     .is_using = scaleup_is_using,
     .get_forget_time = scaleup_get_forget_time,
     .forget_sizes = scaleup_drop_sizes,
     .claim = scaleup_claim,
     .get_observe_us = scaleup_observe_within},
    {.name = "resizes",
     .is_using = resize_is_using,
     .forget_sizes = resize_drop_sizes,
     .on_unseen = resize_cannot_see,
     .claim = resize_claim,
     .get_observe_us = resize_observe_within},
    {.name = "evaluations", .forget_sizes = evaluations_drop_sizes},
    {.name = "requests in doubt", .forget_sizes = in_doubt_drop_sizes},
    {.name = "metric gaps", .review = metric_gaps_end},
    {.name = "commands",
     .is_using = commands_are_using,
     .get_forget_time = commands_get_forget_time,
     .forget_sizes = commands_drop_sizes,
     .on_unseen = commands_on_unseen,
     .claim = commands_claim,
     .review = commands_review,
     .on_idle = commands_end_floor},
    {.name = "approvals",
     .get_forget_time = approvals_get_forget_time,
     .forget_sizes = approvals_drop_sizes,
     .review = approvals_settle,
     .on_idle = approvals_review},
    {.name = "schedules", .fill_input = schedules_fill},
    {.name = "unregistered", .is_using = unregistered_is_using, .claim = unregistered_claim},
    {.name = "forbidden", .fill_input = forbidden_fill_input},
    {.name = "history",
     .get_forget_time = history_get_forget_time,
     .fill_input = history_fill_input},
    {.name = NULL},
};
