/*
 * The promises to operators: what was ordered is recorded once; while a target is paused, nothing
 * is set but what was ordered; while the kill switch is set, nothing at all; an ordered size is
 * within the bounds unless it was forced, and comes to its end; what was answered holds over a
 * crash.
 *
 * What is known of a pause is certain from its record on, for as long as the engine that wrote it
 * lives, and for ever once it was answered. In between a crash may have undone it.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORDER_MAX_US (10 * MINUTE) /* from docs/operators.md */
#define SLACK_US     (3 * MINUTE)  /* from the last look at a target to its request */
#define FLOOR_US     (10 * MINUTE) /* of calm, in which a floor raises its target */

static bool is_surely_on(const struct world *world, const struct sim_pause *pause)
{
    return pause->is_certain && pause->is_on && world->now < pause->until;
}

static bool is_surely_off(const struct sim_pause *pause)
{
    return pause->order == 0 ? !pause->is_on : pause->is_certain && !pause->is_on;
}

enum as_ways check_get_paused(const struct world *world, const struct server_target *target)
{
    const enum as_ways all = is_surely_on(world, &world->pause) ? world->pause.ways : AS_WAYS_NONE;
    const enum as_ways own =
        is_surely_on(world, &target->pause) ? target->pause.ways : AS_WAYS_NONE;
    return all | own | policies_get_paused(world, target);
}

/* What it has, a target's max aside: a floor ends there. */
int32_t check_get_floor(const struct world *world, const struct server_target *target)
{
    const struct as_target_config *config = rules_find_target(world, target->id);
    int32_t floor = is_surely_on(world, &target->floor) ? target->floor.size : 0;
    if (!config)
        return 0;
    const int32_t max = schedules_get_lowest_max(config);
    floor = max < floor ? max : floor;
    return target->own_max >= 0 && target->own_max < floor ? target->own_max : floor;
}

static struct sim_pause *find_pause(struct world *world,
                                    const struct as_operator_command_record *record)
{
    return record->target ? &server_find(world, record->target)->pause : &world->pause;
}

/* What comes of itself: a pause or a floor ends by time; the kill switch. */
static void check_unordered(struct world *world, const struct as_operator_command_record *record)
{
    const bool is_floor = record->order->kind == AS_OPERATOR_COMMAND_FLOOR && record->order->is_end;
    struct sim_pause *pause =
        is_floor ? &server_find(world, record->target)->floor : find_pause(world, record);
    if (record->order->who[0] != '\0')
        return;
    if ((record->order->kind != AS_OPERATOR_COMMAND_RESUME && !is_floor) ||
        record->outcome != AS_OPERATOR_COMMAND_DONE)
        fail(world, "a command that nobody gave: %s", record->id);
    if (is_surely_on(world, pause))
        fail(world, "%s: a %s ends %.6f s early", record->target ? record->target : "all",
             is_floor ? "floor" : "pause", (double)(pause->until - world->now) / (double)SECOND);
    trouble_note(world, is_floor ? TROUBLE_FLOOR_OVER : TROUBLE_PAUSE_OVER);
    *pause = (struct sim_pause){.is_certain = true, .order = UINT64_MAX};
}

static void check_pause(struct world *world, const struct sim_order *order, uint64_t number,
                        struct sim_pause *pause)
{
    const struct as_operator_command *it = &order->order;
    if (order->outcome != AS_OPERATOR_COMMAND_DONE)
        return;
    trouble_note(world, it->ways     ? TROUBLE_ORDER_PAUSE_ONE_WAY
                        : it->target ? TROUBLE_ORDER_PAUSE
                                     : TROUBLE_ORDER_PAUSE_ALL);
    *pause = (struct sim_pause){
        .ways = it->ways ? it->ways : AS_WAYS_BOTH,
        .is_on = true,
        .is_certain = true,
        .order = number,
        .until = it->for_us > 0 ? world->now + it->for_us : INT64_MAX,
    };
}

/* An operator who resumes also releases rules that did not help. */
static bool may_have_ineffective(const struct world *world)
{
    for (size_t i = 0; i < world->daemon.ruleset->rule_count; i++) {
        if (world->daemon.ruleset->rules[i]->ineffective_after > 0)
            return true;
    }
    return false;
}

static void check_resume(struct world *world, const struct sim_order *order, uint64_t number,
                         struct sim_pause *pause)
{
    if (order->outcome == AS_OPERATOR_COMMAND_NOTHING_TO_DO && is_surely_on(world, pause))
        fail(world, "%s: nothing to do, but it is paused", order->reason);
    if (order->outcome != AS_OPERATOR_COMMAND_DONE)
        return;
    const bool may_be_contended = order->found && order->found->rival.is_there;
    if (is_surely_off(pause) && !may_be_contended && !may_have_ineffective(world))
        fail(world, "%s: resumed what was not paused", order->reason);
    trouble_note(world, TROUBLE_ORDER_RESUME);
    *pause = (struct sim_pause){.is_certain = true, .order = number};
}

static void check_floor(struct world *world, const struct sim_order *order, uint64_t number,
                        struct server_target *target)
{
    const struct as_operator_command *it = &order->order;
    const struct as_target_config *config = target ? rules_find_target(world, target->id) : NULL;
    if (order->outcome == AS_OPERATOR_COMMAND_NOTHING_TO_DO && is_surely_on(world, &target->floor))
        fail(world, "%s: no floor, it says, but there is one", order->reason);
    if (order->outcome == AS_OPERATOR_COMMAND_OUT_OF_BOUNDS &&
        it->replicas <= schedules_get_bounds(world, config).max)
        fail(world, "%s: a floor of %d is out of bounds, it says", order->reason, it->replicas);
    if (order->outcome != AS_OPERATOR_COMMAND_DONE)
        return;
    if (it->is_end && is_surely_off(&target->floor))
        fail(world, "%s: took back a floor that was not there", order->reason);
    if (!it->is_end && (!config || it->replicas > schedules_get_bounds(world, config).max))
        fail(world, "%s: a floor of %d is accepted", order->reason, it->replicas);
    trouble_note(world, it->is_end ? TROUBLE_ORDER_FLOOR_BACK : TROUBLE_ORDER_FLOOR);
    target->floor = (struct sim_pause){
        .is_on = !it->is_end,
        .is_certain = true,
        .order = number,
        .size = it->is_end ? 0 : it->replicas,
        .since = world->now,
        .until = it->is_end ? 0 : world->now + it->for_us,
    };
}

static bool is_surely_locked(const struct world *world, const struct server_target *target)
{
    const struct as_target_config *config = rules_find_target(world, target->id);
    const struct applied *last = &target->last;
    if (!config || !last->set || !last->recorded)
        return false;
    const struct as_cooldown *cooldown = &config->bounds.cooldown;
    return world->now - last->at <
               (last->is_up ? cooldown->down_us : as_cooldown_get_down_after_down(cooldown)) ||
           (!last->is_return &&
            world->now - last->at < (last->is_up ? cooldown->up_us : cooldown->up_after_down_us));
}

static void check_unlock(struct world *world, const struct sim_order *order,
                         struct server_target *target)
{
    if (order->outcome == AS_OPERATOR_COMMAND_NOTHING_TO_DO && target &&
        is_surely_locked(world, target))
        fail(world, "%s: no lock, it says, but there is one", order->reason);
    if (order->outcome != AS_OPERATOR_COMMAND_DONE)
        return;
    trouble_note(world, TROUBLE_ORDER_UNLOCK);
    target->last_up_at = target->last_down_at = target->last_return_at = INT64_MIN;
    target->last.set = target->last.set && !target->last.recorded;
}

static bool is_within(const struct world *world, const struct server_target *target,
                      const struct as_target_config *config, int32_t replicas)
{
    const struct as_schedule_bounds bounds = schedules_get_bounds(world, config);
    const int32_t floor = is_surely_on(world, &target->floor) ? target->floor.size : 0;
    return replicas >= bounds.min && replicas <= bounds.max &&
           (replicas >= floor || replicas == bounds.max);
}

static void check_scale(struct world *world, struct sim_order *order,
                        const struct server_target *target)
{
    const struct as_target_config *config = target ? rules_find_target(world, target->id) : NULL;
    const bool is_within_bounds = config && is_within(world, target, config, order->order.replicas);
    const bool is_floor_known = !target || target->floor.is_certain || target->floor.order == 0;
    if (order->outcome == AS_OPERATOR_COMMAND_OUT_OF_BOUNDS &&
        ((is_within_bounds && is_floor_known) || order->order.force))
        fail(world, "%s: %d is out of bounds, it says", order->reason, order->order.replicas);
    if (order->outcome != AS_OPERATOR_COMMAND_DONE)
        return;
    if (!config)
        fail(world, "%s: of a target that no rule leads to", order->reason);
    else if (config->dry_run || world->daemon.config.dry_run)
        fail(world, "%s: accepted in a dry run", order->reason);
    else if (!is_within_bounds && !order->order.force)
        fail(world, "%s: %d is accepted without force", order->reason, order->order.replicas);
    trouble_note(world, config && !is_within_bounds ? TROUBLE_ORDER_FORCED : TROUBLE_ORDER_SCALE);
    if (target)
        check_orders_size(world, target);
}

static bool may_be_refused(const struct world *world, const struct sim_order *order)
{
    const struct as_target_config *config =
        order->found ? rules_find_target(world, order->found->id) : NULL;
    const bool is_halted = world->kill_switch.reason || world->daemon.is_halted;
    const bool is_pool = config && config->pool;
    switch (order->order.kind) {
    case AS_OPERATOR_COMMAND_SCALE:
        return is_halted || is_pool || world->daemon.config.dry_run || (config && config->dry_run);
    case AS_OPERATOR_COMMAND_FLOOR: return is_pool || (is_halted && !order->order.is_end);
    case AS_OPERATOR_COMMAND_APPROVE:
    case AS_OPERATOR_COMMAND_DENY:
    case AS_OPERATOR_COMMAND_UNLOCK: return is_halted;
    case AS_OPERATOR_COMMAND_PAUSE:
    case AS_OPERATOR_COMMAND_RESUME:
    case AS_OPERATOR_COMMAND_KIND_COUNT: break;
    }
    return false;
}

static void check_outcome(struct world *world, const struct sim_order *order)
{
    if (order->outcome == AS_OPERATOR_COMMAND_UNKNOWN_TARGET && order->order.target &&
        rules_find_target(world, order->target) && strcmp(order->target, "any") != 0 &&
        strchr(order->target, '/') == NULL)
        fail(world, "%s: %s is unknown, it says", order->reason, order->target);
    if (order->outcome == AS_OPERATOR_COMMAND_REFUSED && !world->daemon.stopping &&
        !may_be_refused(world, order))
        fail(world, "%s: refused for no reason", order->reason);
    if (order->outcome != AS_OPERATOR_COMMAND_DONE)
        trouble_note(world, TROUBLE_ORDER_REFUSED);
}

static void note_record(struct world *world, struct sim_order *order,
                        const struct as_operator_command_record *record)
{
    order->is_recorded = true;
    order->outcome = record->outcome;
    order->generation = world->daemon.generation;
    order->at = world->now;
    order->found = record->target ? server_find(world, record->target) : NULL;
    memcpy(order->id, record->id, AS_ULID_SIZE);
}

void check_command(struct world *world, const struct as_effect *effect)
{
    const struct as_operator_command_record *record = effect->order;
    unsigned long long number = 0;
    if (record->order->remote[0] == '\0') {
        check_unordered(world, record);
        return;
    }
    if (sscanf(record->order->reason, "order %llu", &number) != 1 || number == 0 ||
        number > world->order_count || world->orders[number - 1]->is_recorded ||
        effect->call_id == 0) {
        fail(world, "an order recorded twice, or never given: %s", record->order->reason);
        return;
    }
    struct sim_order *order = world->orders[number - 1];
    note_record(world, order, record);
    check_outcome(world, order);
    struct server_target *target = record->target ? server_find(world, record->target) : NULL;
    switch (record->order->kind) {
    case AS_OPERATOR_COMMAND_PAUSE:
        check_pause(world, order, number, find_pause(world, record));
        break;
    case AS_OPERATOR_COMMAND_RESUME:
        check_resume(world, order, number, find_pause(world, record));
        break;
    case AS_OPERATOR_COMMAND_SCALE: check_scale(world, order, target); break;
    case AS_OPERATOR_COMMAND_FLOOR: check_floor(world, order, number, target); break;
    case AS_OPERATOR_COMMAND_UNLOCK: check_unlock(world, order, target); break;
    case AS_OPERATOR_COMMAND_APPROVE:
    case AS_OPERATOR_COMMAND_DENY: check_answer(world, order); break;
    case AS_OPERATOR_COMMAND_KIND_COUNT: break;
    }
}

/* A later order was accepted by who decides, or by somebody before it and answered. */
static bool is_replaced(const struct world *world, const struct sim_order *order)
{
    bool is_later = false;
    for (size_t i = 0; i < world->order_count; i++) {
        const struct sim_order *other = world->orders[i];
        if (is_later && other->is_recorded && other->order.kind == AS_OPERATOR_COMMAND_SCALE &&
            other->outcome == AS_OPERATOR_COMMAND_DONE && other->found == order->found &&
            (other->is_answered || other->generation == world->daemon.generation))
            return true;
        is_later = is_later || other == order;
    }
    return false;
}

/* What was ordered did not come. */
static bool is_taken_back(const struct server_target *target, const struct sim_order *order,
                          int32_t from, int32_t to)
{
    return target->group >= 0 && order && order->found == target && from > to &&
           to < order->order.replicas;
}

void check_ordered_intent(struct world *world, struct server_target *target,
                          const struct as_intent_state *intent)
{
    const struct sim_order *order = operators_find(world, intent->decision_id);
    if (is_taken_back(target, order, intent->from, intent->to))
        return;
    if (!order || order->outcome != AS_OPERATOR_COMMAND_DONE ||
        order->order.kind != AS_OPERATOR_COMMAND_SCALE || order->found != target ||
        order->order.replicas != intent->to) {
        fail(world, "%s: %d was not ordered", target->id, intent->to);
        return;
    }
    if (is_replaced(world, order))
        fail(world, "%s: %s goes on, though there is a later one", target->id, order->reason);
    if (world->now - order->at > ORDER_MAX_US + SLACK_US)
        fail(world, "%s: %s is too old to begin now", target->id, order->reason);
}

void check_ordered_request(struct world *world, struct server_target *target,
                           const struct as_scale_request *request)
{
    const struct sim_order *order = operators_find(world, request->decision_id);
    const struct as_target_config *config = rules_find_target(world, target->id);
    int32_t min = 0, max = 0; /* of schedules that may have ended since it was accepted */
    if (config)
        schedules_get_widest(config, &min, &max);
    if (is_taken_back(target, order, request->from, request->to))
        return;
    if (!order || order->order.replicas != request->to || order->found != target) {
        fail(world, "%s: %d was not ordered", target->id, request->to);
        return;
    }
    if (config && !order->order.force &&
        (request->to < min || request->to > max ||
         (target->own_max >= 0 && request->to > target->own_max) || request->to < target->own_min))
        fail(world, "%s: %s is beyond the bounds, and not forced", target->id, order->reason);
    if (check_get_paused(world, target))
        trouble_note(world, TROUBLE_ORDERED_IN_PAUSE);
}

/* Fewer nodes may leave than an order says. */
static bool is_in_part(const struct server_target *target, const struct sim_order *order,
                       const struct as_action_record *record)
{
    return target->group >= 0 && order->order.replicas < record->to && record->to < record->from;
}

void check_ordered_action(struct world *world, struct server_target *target,
                          const struct as_action_record *record)
{
    const struct sim_order *order = operators_find(world, record->command);
    if (is_taken_back(target, order, record->from, record->to))
        return;
    if (order && order->found == target && is_in_part(target, order, record))
        return;
    if (!order || order->order.kind != AS_OPERATOR_COMMAND_SCALE ||
        order->order.replicas != record->to || order->found != target)
        fail(world, "%s: an action by a command that was not given", target->id);
    else if (record->outcome == AS_REASON_APPLIED && !order->was_size)
        fail(world, "%s: %s is applied, it says, but the size was never %d", target->id,
             order->reason, record->to);
}

/* A decision is held by a pause if and only if there is one; and likewise with a floor. */
void check_holds_of_decision(struct world *world, const struct as_decision_record *record)
{
    const struct server_target *target = server_find(world, record->target);
    const struct as_decide_input *input = record->input;
    const bool is_halted = world->daemon.is_halted;
    const enum as_ways paused = is_halted ? AS_WAYS_BOTH : check_get_paused(world, target);
    const enum as_ways way = as_ways_get(record->output->replicas, record->output->desired);
    if (!record->pause && paused)
        fail(world, "%s: decided as if it were not paused", target->id);
    if (record->pause && !is_halted && is_surely_off(&world->pause) &&
        is_surely_off(&target->pause) && !policies_get_paused(world, target))
        fail(world, "%s: decided as if it were paused", target->id);
    if (way & (paused | (record->pause ? record->pause->ways : AS_WAYS_NONE)))
        fail(world, "%s: paused, and to be set to %d", target->id, record->output->desired);
    if (way && paused)
        trouble_note(world, TROUBLE_OTHER_WAY_IN_PAUSE);
    if (is_surely_on(world, &target->floor) && input->config.min < target->floor.size &&
        input->config.min < input->config.max)
        fail(world, "%s: decided with a min of %d in spite of its floor", target->id,
             input->config.min);
    if (input->floor > 0 && is_surely_off(&target->floor))
        fail(world, "%s: decided with a floor of %d, which is not there", target->id, input->floor);
}

static struct as_pause_view get_pause(const struct world *world)
{
    const struct as_clock *clock = &world->daemon.clock->clock;
    return as_engine_get_pause(as_shell_get_engine(world->daemon.shell), clock->get_mono(clock),
                               clock->get_wall(clock));
}

void check_halt(struct world *world)
{
    const char *reason = world->kill_switch.reason;
    const struct as_pause_view pause = get_pause(world);
    if (pause.is_halt != (reason != NULL) || (reason && strcmp(pause.reason, reason) != 0))
        fail(world, "the engine has not heard that the kill switch is %s", reason ? "set" : "gone");
}

static void settle(struct sim_pause *pause, uint64_t order)
{
    if (pause->order == order)
        pause->is_settled = pause->is_certain = true;
}

void check_orders_answer(struct world *world, uint64_t number)
{
    struct sim_order *order = world->orders[number - 1];
    if (!order->is_recorded || order->is_answered) {
        fail(world, "%s is answered %s", order->reason,
             order->is_answered ? "twice" : "without a record");
        return;
    }
    order->is_answered = true;
    settle(&world->pause, number);
    for (size_t i = 0; i < world->target_count; i++) {
        settle(&world->targets[i].pause, number);
        settle(&world->targets[i].floor, number);
    }
}

/* The size has changed, or an order asks for the one that is there or is still shown. */
void check_orders_size(struct world *world, const struct server_target *target)
{
    for (size_t i = 0; i < world->order_count; i++) {
        struct sim_order *order = world->orders[i];
        if (order->found == target &&
            (order->order.replicas == target->size ||
             (target->before.until > world->now && order->order.replicas == target->before.size) ||
             (target->shown_until > world->now && order->order.replicas == target->shown)))
            order->was_size = true;
    }
}

static void doubt(struct sim_pause *pause)
{
    pause->is_certain = pause->is_certain && pause->is_settled;
}

void check_orders_crash(struct world *world)
{
    bool is_paused = is_surely_on(world, &world->pause) && world->pause.is_settled;
    bool is_floor = false;
    doubt(&world->pause);
    for (size_t i = 0; i < world->target_count; i++) {
        is_paused = is_paused || is_surely_on(world, &world->targets[i].pause);
        doubt(&world->targets[i].pause);
        doubt(&world->targets[i].floor);
        is_floor = is_floor || is_surely_on(world, &world->targets[i].floor);
    }
    if (is_floor)
        trouble_note(world, TROUBLE_FLOOR_RESTORED);
    if (is_paused)
        trouble_note(world, TROUBLE_PAUSE_RESTORED);
    if (world->kill_switch.reason)
        trouble_note(world, TROUBLE_HALT_RESTARTED);
}

static void find_leftover(void *context, const struct as_target_view *view)
{
    struct world *world = context;
    if (view->pause.is_set)
        fail(world, "%s: still paused after a long calm", view->id);
    if (view->has_order)
        fail(world, "%s: still ordered after a long calm", view->id);
    if (view->floor.size > 0)
        fail(world, "%s: still a floor after a long calm", view->id);
}

/* What a floor in force has had time to raise. */
void check_floors_held(struct world *world)
{
    for (size_t i = 0; i < world->target_count; i++) {
        const struct server_target *target = &world->targets[i];
        const struct as_target_config *config = rules_find_target(world, target->id);
        const int32_t floor = check_get_floor(world, target);
        if (floor == 0 || pools_has(world, target) || target->rival.is_there ||
            rivals_hold(world, target) || world->now - target->floor.since < FLOOR_US ||
            config->dry_run || world->daemon.config.dry_run || check_get_paused(world, target) ||
            world->kill_switch.reason || target->stuck_in ||
            (target->size == 0 && (config->bounds.min > 0 || target->own_min > 0)))
            continue;
        trouble_note(world, TROUBLE_FLOOR_HELD);
        if (target->size < floor)
            fail(world, "%s: still %d under a floor of %d", target->id, target->size, floor);
    }
}

void check_orders_end(struct world *world)
{
    const struct as_clock *clock = &world->daemon.clock->clock;
    if (get_pause(world).is_set)
        fail(world, "still all paused after a long calm");
    as_engine_visit_targets(as_shell_get_engine(world->daemon.shell), clock->get_mono(clock),
                            clock->get_wall(clock), find_leftover, world);
    for (size_t i = 0; i < world->order_count; i++) {
        if (world->orders[i]->is_recorded && !world->orders[i]->is_answered)
            trouble_note(world, TROUBLE_ORDER_UNANSWERED);
    }
}
