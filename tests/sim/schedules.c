/*
 * Schedules of targets, and what they promise: the bounds of a decision are those of the daemon's
 * clock, narrowed by the target's own, and at the end of the calm a size is not below a min in
 * force.
 */
#include <alertscaler/base/attr.h>

#include "sim.h"

#define SETTLED_US (10 * MINUTE) /* after a begin; longer than a back-off */

static as_wall_time daemon_wall(const struct world *world)
{
    return (as_wall_time){true_wall(world).us + world->daemon.clock->wall_offset};
}

void schedules_randomize(struct world *world, struct target_spec *target)
{
    static const char *const names[] = {"early", "late"};
    const int64_t now = true_wall(world).us / SECOND;
    const int64_t count = between(world, 1, 2);
    for (int64_t i = 0; i < count; i++) {
        struct schedule_spec *schedule = &target->schedules[i];
        const bool is_daily = chance(world, 500);
        *schedule = (struct schedule_spec){.name = names[i]};
        schedule->from =
            is_daily ? 60 * between(world, 0, 1439) : now + between(world, -3600, 10800);
        schedule->to =
            is_daily ? 60 * between(world, 0, 1439) : schedule->from + between(world, 60, 14400);
        if (is_daily)
            schedule->zone = "Europe/Berlin";
        if (is_daily && schedule->from == schedule->to)
            schedule->to = (schedule->from + 60) % 86400;
        if (chance(world, 700))
            schedule->min = (int32_t)between(world, 1, target->max);
        if (chance(world, 300))
            schedule->max = (int32_t)between(world, target->min + 1, target->max + 6);
        if (schedule->min > 0) /* not drawn, so that other worlds stay as they were */
            schedule->end = schedule->from % 4 == 0 ? AS_SCHEDULE_KEEP
                            : schedule->from % 2    ? AS_SCHEDULE_MIN
                                                    : AS_SCHEDULE_BEFORE;
        else if (schedule->max == 0)
            schedule->is_zero = schedule->from % 2 == 0;
    }
}

struct as_schedule_bounds schedules_get_bounds(const struct world *world,
                                               const struct as_target_config *config)
{
    return as_target_config_get_bounds(config, daemon_wall(world));
}

/* The clock may have jumped since the decision: at any time. */
void schedules_get_widest(const struct as_target_config *config, int32_t *min_out, int32_t *max_out)
{
    *min_out = config->bounds.min;
    *max_out = config->bounds.max;
    for (size_t i = 0; i < config->schedule_count; i++) {
        const struct as_schedule *schedule = &config->schedules[i];
        const int32_t lowest =
            schedule->has_max && (!schedule->has_min || schedule->max < schedule->min)
                ? schedule->max
                : schedule->min;
        if ((schedule->has_min || schedule->has_max) && lowest < *min_out)
            *min_out = lowest;
        if (schedule->has_max && schedule->max > *max_out)
            *max_out = schedule->max;
    }
}

int32_t schedules_get_lowest_max(const struct as_target_config *config)
{
    int32_t lowest = config->bounds.max;
    for (size_t i = 0; i < config->schedule_count; i++)
        if (config->schedules[i].has_max && config->schedules[i].max < lowest)
            lowest = config->schedules[i].max;
    return lowest;
}

/* What schedules have set */

void schedules_note_applied(struct world *world, struct server_target *target, int32_t from,
                            int32_t to, bool is_by_rule)
{
    const struct as_target_config *config = rules_find_target(world, target->id);
    const int32_t before_zero = target->scheduled.before_zero;
    const int32_t added = target->scheduled.added;
    const bool is_zero = config && to == 0 && schedules_get_lowest_max(config) == 0;
    target->scheduled.added = target->scheduled.before_zero = 0;
    if (is_by_rule)
        return;
    if (is_zero) {
        trouble_note(world, TROUBLE_SCHEDULE_SET_0);
        target->scheduled.before_zero = from;
        target->scheduled.is_unsure = false;
        target->scheduled.zero_at = world->now;
        target->scheduled.rule_changes = world->rule_changes;
    } else if (from == 0 && before_zero > 0) {
        target->scheduled.added = to > before_zero ? to - before_zero : 0;
    } else {
        target->scheduled.added = added + to - from > 0 ? added + to - from : 0;
    }
}

void schedules_note_others(struct server_target *target, int32_t from, int32_t to)
{
    if (to == from) /* nothing shows it */
        return;
    target->scheduled.before_zero = 0;
    if (to > from)
        return;
    target->scheduled.added -= from - to;
    if (target->scheduled.added < 0)
        target->scheduled.added = 0;
}

/* The end of a schedule takes at most what schedules have added, and returns at most the size from
 * before, or the min in force. */
static void check_end(struct world *world, const struct as_decision_record *decision)
{
    const struct server_target *target = server_find(world, decision->target);
    const struct as_decision *output = decision->output;
    const int32_t change = output->desired - output->replicas;
    if (output->reason != AS_REASON_SCHEDULE_ENDED || target->size != output->replicas)
        return; /* another size is there already: the request will conflict */
    trouble_note(world, change < 0 ? TROUBLE_SCHEDULE_TOOK_BACK : TROUBLE_SCHEDULE_RETURNED);
    const int32_t least = decision->input->config.min > 1 ? decision->input->config.min : 1;
    const int32_t most =
        target->scheduled.before_zero > least ? target->scheduled.before_zero : least;
    if (change < 0 && -change > target->scheduled.added)
        fail(world, "%s: the end of a schedule takes %d, but schedules have added %d", target->id,
             -change, target->scheduled.added);
    if (change > 0 &&
        (output->replicas > 0 || target->scheduled.before_zero == 0 || output->desired > most))
        fail(world, "%s: the end of a schedule returns %d after %d", target->id, output->desired,
             target->scheduled.before_zero);
}

/* The target's own bounds narrow those in force; a max goes before every min. */
static void check_bounds(struct world *world, const struct as_decision_record *decision,
                         const struct as_target_config *config)
{
    const struct server_target *target = server_find(world, decision->target);
    const struct as_decide_input *input = decision->input;
    const struct as_schedule_bounds bounds = schedules_get_bounds(world, config);
    int32_t min = bounds.min > input->floor ? bounds.min : input->floor, max = bounds.max;
    if (pools_has(world, target))
        return;
    if (target->own_max >= 0 && target->own_max < max)
        max = target->own_max;
    if (target->own_min > min)
        min = target->own_min;
    if (min > max)
        min = max;
    if (input->config.min != min || input->config.max != max)
        fail(world, "%s: decided with bounds of %d and %d instead of %d and %d", decision->target,
             input->config.min, input->config.max, min, max);
}

void schedules_check_decision(struct world *world, const struct as_decision_record *decision)
{
    const struct as_target_config *config = rules_find_target(world, decision->target);
    const struct as_decide_input *input = decision->input;
    size_t in_force = 0;
    bool has_min = false;
    for (size_t i = 0; config && i < config->schedule_count; i++) {
        const struct as_schedule *schedule = &config->schedules[i];
        const bool is_in_force = as_schedule_state(schedule, daemon_wall(world)).is_in_force;
        in_force += is_in_force;
        has_min |= is_in_force && schedule->has_min;
    }
    has_min |= input->floor > 0; /* which check_orders.c checks */
    if (config && (input->schedule_count != in_force || input->enforce_min != has_min))
        fail(world, "%s: decided with %zu schedules, but %zu are in force", decision->target,
             input->schedule_count, in_force);
    if (config)
        check_bounds(world, decision, config);
    check_end(world, decision);
}

/* A target sleeps although no schedule has kept it at 0 for long, and nothing else set a size. */
static void check_woken(struct world *world, const struct server_target *target,
                        const struct as_schedule_bounds *now,
                        const struct as_schedule_bounds *before)
{
    if (target->size == 0 && target->scheduled.before_zero > 0 && !target->scheduled.is_unsure &&
        now->max > 0 && before->max > 0 && target->own_max != 0 &&
        target->scheduled.rule_changes == world->rule_changes &&
        target->scheduled.zero_at < world->now - SETTLED_US)
        fail(world, "%s: 0 at the end, though the schedule that set it is over", target->id);
}

/* What neither began nor ended lately. */
void schedules_check_end(struct world *world)
{
    const as_wall_time now = daemon_wall(world);
    for (size_t i = 0; i < world->target_count; i++) {
        const struct server_target *target = &world->targets[i];
        const struct as_target_config *config = rules_find_target(world, target->id);
        if (!config || config->schedule_count == 0 || config->is_templated || config->dry_run ||
            world->daemon.config.dry_run || !target->exists || check_get_paused(world, target) ||
            world->kill_switch.reason || target->stuck_in || target->rival.is_there)
            continue;
        const struct as_schedule_bounds bounds = schedules_get_bounds(world, config);
        const struct as_schedule_bounds before =
            as_target_config_get_bounds(config, (as_wall_time){now.us - SETTLED_US});
        check_woken(world, target, &bounds, &before);
        if (target->size == 0 && (config->bounds.min > 0 || target->own_min > 0))
            continue; /* it is switched off */
        int32_t min = bounds.min < before.min ? bounds.min : before.min;
        if (!bounds.has_min || !before.has_min)
            continue;
        if (target->own_max >= 0 && target->own_max < min)
            min = target->own_max;
        trouble_note(world, TROUBLE_SCHEDULE_AT_REST);
        if (target->size < min)
            fail(world, "%s: %d at the end, though a schedule has a min of %d", target->id,
                 target->size, min);
    }
}
