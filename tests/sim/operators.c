/*
 * Operators: orders to the daemon at any moment, and the kill switch, which needs no daemon. Who
 * gets no answer does not know what became of the order; the checks do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "sim.h"

#define STEPS_MAX       60 /* from the time of the order to the event after which it comes */
#define CALM_PAUSE      (5 * MINUTE) /* a longer one is not waited for in the calm */
#define CALM_LOOKS_LAST (20 * MINUTE)

static const char *const names[] = {"web", "db", "pool", "any"};

static void pick_target(struct world *world, char *out, size_t size)
{
    const int64_t way = between(world, 0, 99);
    if (way < 25) {
        (void)snprintf(out, size, "%s",
                       names[between(world, 0, (int64_t)AS_ARRAY_SIZE(names) - 1)]);
    } else if (way < 88 && world->target_count > 0) {
        const int64_t at = between(world, 0, (int64_t)world->target_count - 1);
        (void)snprintf(out, size, "%s", world->targets[at].id);
    } else { /* perhaps one to come */
        (void)snprintf(out, size, "kubernetes/default/apps/v1/Deployment/shop/app-%d",
                       (int)between(world, 0, 3));
    }
}

static int64_t pick_duration(struct world *world)
{
    if (chance(world, 400))
        return 0;
    const int64_t longest = chance(world, 800) ? 120 : 1800;
    return between(world, 1, longest) * SECOND;
}

void operators_give(struct world *world, const struct as_operator_command *wanted,
                    const char *target)
{
    struct sim_order *order = as_xcalloc(1, sizeof(*order));
    world->orders =
        as_xgrow(world->orders, world->order_count, &world->order_capacity, sizeof(*world->orders));
    world->orders[world->order_count++] = order;
    order->order = *wanted;
    (void)snprintf(order->reason, sizeof(order->reason), "order %zu", world->order_count);
    order->order.who = "operator";
    order->order.remote = "192.0.2.9";
    order->order.reason = order->reason;
    if (target) {
        (void)snprintf(order->target, sizeof(order->target), "%s", target);
        order->order.target = order->target;
    }
    trace(world, "operator: %s: %s %s %d%s for %.0f s", order->reason,
          as_operator_command_kind_get_word(wanted->kind),
          wanted->request ? wanted->request
          : target        ? target
                          : "all",
          wanted->replicas, wanted->force ? " by force" : "",
          (double)wanted->for_us / (double)SECOND);
    daemon_order(world, world->order_count);
}

/* The kill switch. */

static void set_switch(struct world *world, const char *who, const char *reason)
{
    world->kill_switch.who = who;
    world->kill_switch.reason = reason;
    world->kill_switch.settings++;
    trace(world, "operator: the kill switch is %s", reason ? reason : "taken away");
    trouble_note(world, reason ? TROUBLE_HALT_SET : TROUBLE_HALT_ENDED);
    daemon_note_switch(world);
}

static void on_switch_end(struct world *world, void *subject, uint64_t settings)
{
    (void)subject;
    if (world->kill_switch.settings == settings && world->kill_switch.reason)
        set_switch(world, world->kill_switch.who, NULL);
}

static void turn_switch(struct world *world)
{
    static const char *const who[] = {"kill switch file", "kill switch annotation"};
    static const char *const reasons[] = {"set", "set for another reason"};
    const char *reason = reasons[between(world, 0, 1)];
    set_switch(world, who[between(world, 0, 1)], reason);
    const int64_t longest_ms = chance(world, 700) ? 5000 : 180000;
    later(world, between(world, 1, longest_ms) * AS_US_PER_MS, on_switch_end, NULL,
          world->kill_switch.settings);
}

/* Orders. */

static bool give_resume(struct world *world)
{
    for (size_t i = 0; i < world->target_count; i++) {
        if (world->targets[i].pause.is_on && chance(world, 500)) {
            operators_give(world, &(struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME},
                           world->targets[i].id);
            return true;
        }
    }
    if (!world->pause.is_on)
        return false;
    operators_give(world, &(struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME}, NULL);
    return true;
}

static enum as_ways pick_way(struct world *world)
{
    return chance(world, 500) ? AS_WAYS_DOWN : AS_WAYS_UP;
}

static void pick_floor(struct world *world, struct as_operator_command *order)
{
    order->kind = AS_OPERATOR_COMMAND_FLOOR;
    order->is_end = chance(world, 200);
    const int64_t highest = chance(world, 800) ? 8 : 20;
    order->replicas = (int32_t)between(world, 1, highest);
    const int64_t longest = chance(world, 700) ? 300 : 1800;
    order->for_us = between(world, 10, longest) * SECOND;
}

static void act(struct world *world)
{
    struct as_operator_command order = {.kind = AS_OPERATOR_COMMAND_PAUSE};
    char text[128];
    const char *target = text;
    int64_t highest;
    if (chance(world, 350) && give_resume(world))
        return;
    pick_target(world, text, sizeof(text));
    switch (between(world, 0, 15)) {
    case 0:
    case 1:
    case 2:
    case 3:
        target = chance(world, 250) ? NULL : text;
        order.for_us = pick_duration(world);
        order.ways = chance(world, 400) ? pick_way(world) : AS_WAYS_NONE;
        break;
    case 13:
    case 14:
    case 15: pick_floor(world, &order); break;
    case 4:
        order.kind = AS_OPERATOR_COMMAND_RESUME;
        target = chance(world, 500) ? NULL : text;
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        order.kind = AS_OPERATOR_COMMAND_SCALE;
        highest = chance(world, 700) ? 9 : 20;
        order.replicas = (int32_t)between(world, 0, highest);
        order.force = chance(world, 300);
        break;
    case 9:
    case 10: order.kind = AS_OPERATOR_COMMAND_UNLOCK; break;
    default: turn_switch(world); return;
    }
    operators_give(world, &order, target);
}

static void on_operator(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
    if (world->is_calm)
        return;
    later(world, between(world, 1, 90) * SECOND, on_operator, NULL, 0);
    static const enum phase phases[] = {PHASE_INTENT, PHASE_SENT, PHASE_COMMITTING};
    world->is_order_due = true;
    world->order_waits_for = chance(world, 400) ? phases[between(world, 0, 2)] : PHASE_IDLE;
    world->order_steps = between(world, 0, STEPS_MAX);
}

void operators_after_step(struct world *world)
{
    if (!world->is_order_due || world->is_calm)
        return;
    const enum phase phase = daemon_get_phase(world);
    if (world->order_waits_for != PHASE_IDLE ? phase != world->order_waits_for
                                             : world->order_steps-- > 0)
        return;
    world->is_order_due = false;
    trouble_note(world, TROUBLE_ORDER + phase);
    act(world);
}

void operators_on_answer(struct world *world, uint64_t order)
{
    trace(world, "operator: order %llu is answered: %s", (unsigned long long)order,
          as_operator_command_outcome_get_word(world->orders[order - 1]->outcome));
    check_orders_answer(world, order);
}

struct sim_order *operators_find(struct world *world, const char *id)
{
    for (size_t i = world->order_count; i-- > 0;) {
        struct sim_order *order = world->orders[i];
        if (order->is_recorded && strcmp(order->id, id) == 0)
            return order;
    }
    return NULL;
}

/* In the calm all pauses are ended: by order, until the daemon has done it, or by time. */

static void resume_if_long(struct world *world, const struct as_pause_view *pause,
                           const char *target)
{
    const bool ends =
        as_moment_is_set(pause->until) && pause->until.wall.us - pause->since.wall.us <= CALM_PAUSE;
    if (pause->is_set && !pause->is_halt && !ends)
        operators_give(world, &(struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME},
                       target);
}

struct look {
    struct world *world;
    struct as_pause_view pauses[SERVER_TARGETS];
    const char *targets[SERVER_TARGETS];
    size_t count;
};

static void look_at(void *context, const struct as_target_view *view)
{
    struct look *look = context;
    if (!view->pause.is_set || look->count == SERVER_TARGETS)
        return;
    look->pauses[look->count] = view->pause;
    look->targets[look->count++] = server_find(look->world, view->id)->id;
}

static void on_calm_look(struct world *world, void *subject, uint64_t argument)
{
    const struct daemon *daemon = &world->daemon;
    struct look look = {.world = world};
    (void)subject;
    later(world, argument < CALM_LOOKS_LAST ? MINUTE : 30 * MINUTE, on_calm_look, NULL,
          argument + MINUTE);
    if (!daemon->shell || world->former.shell)
        return;
    const struct as_engine *engine = as_shell_get_engine(daemon->shell);
    const struct as_clock *clock = &daemon->clock->clock;
    const as_mono_time now = clock->get_mono(clock);
    const as_wall_time wall = clock->get_wall(clock);
    const struct as_pause_view all = as_engine_get_pause(engine, now, wall);
    as_engine_visit_targets(engine, now, wall, look_at, &look);
    resume_if_long(world, &all, NULL);
    for (size_t i = 0; i < look.count; i++)
        resume_if_long(world, &look.pauses[i], look.targets[i]);
}

/* One for each target, and time for it. */
static void on_calm_floors(struct world *world, void *subject, uint64_t is_over)
{
    (void)subject;
    if (is_over) {
        check_floors_held(world);
        return;
    }
    for (size_t i = 0; i < world->target_count; i++) {
        struct as_operator_command order = {.kind = AS_OPERATOR_COMMAND_FLOOR,
                                            .for_us = 30 * MINUTE};
        order.replicas = (int32_t)between(world, 1, 8);
        if (chance(world, 300))
            operators_give(world, &order, world->targets[i].id);
    }
    later(world, 25 * MINUTE, on_calm_floors, NULL, true);
}

void operators_start(struct world *world)
{
    world->has_operators = chance(world, 600);
    if (world->has_operators)
        later(world, between(world, 1, 120) * SECOND, on_operator, NULL, 0);
}

void operators_calm_down(struct world *world)
{
    if (!world->has_operators)
        return;
    if (world->kill_switch.reason)
        set_switch(world, world->kill_switch.who, NULL);
    later(world, SECOND, on_calm_look, NULL, 0);
    later(world, between(world, 6, 15) * MINUTE, on_calm_floors, NULL, false);
}
