/*
 * One seed: trouble for so many steps, then calm, in which everything that was begun must come to
 * its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/decide/ruleset.h>

#include "sim.h"

#define CALM_US             (120 * MINUTE) /* a repeat may be late, and a size of 18 needs 18 locks */
#define CALM_STEPS_MAX      200000
#define POOLS_PER_MILLE     200 /* of the worlds: those with a cluster */
#define FIELDS_PER_MILLE    250 /* those with a target that is a field */
#define RIVALS_PER_MILLE    200 /* those where another controller sets sizes back */
#define ALWAYS_PER_MILLE    150 /* those with rules without an alert */
#define POLICIES_PER_MILLE  150 /* those with scaling policies */
#define POLICIES_SALT       UINT64_C(0x5ca1e)
#define APPROVALS_PER_MILLE 400 /* those where changes wait for people */

void run_take_step(struct world *world)
{
    struct event *event = RB_MIN(event_tree, &world->events);
    RB_REMOVE(event_tree, &world->events, event);
    world->now = event->at;
    world->steps++;
    event->happen(world, event->subject, event->argument);
    free(event);
    faults_after_step(world);
    operators_after_step(world);
}

static bool is_served(const struct world *world, const struct alert *alert)
{
    struct as_rule_index *index = as_rule_index_new(world->daemon.ruleset);
    const struct as_rule *const *rules;
    const size_t count =
        as_rule_index_match(index, alert->labels, (const char *const[]){"scaler"}, 1, &rules);
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        const struct as_rule *rule = rules[i];
        const char *target = rule->target->name;
        const bool is_allowed = strcmp(target, "any") != 0 ||
                                strncmp(as_labels_get(alert->labels, "app"), "app-", 4) == 0;
        found = found || (rule->enabled && is_allowed);
    }
    as_rule_index_free(index);
    return found;
}

struct calm_check {
    struct world *world;
    const struct alert *alert;
    bool is_open;
};

static void find_open(void *context, const struct as_incident_state *state,
                      const struct as_incident_target *targets, size_t count)
{
    struct calm_check *check = context;
    (void)targets;
    (void)count;
    check->is_open =
        check->is_open || (state->is_open && state->fingerprint == check->alert->fingerprint);
}

struct ineffective_check {
    const char *target, *rule;
    bool is_held;
};

static void find_ineffective(void *context, const struct as_ineffective_view *view)
{
    struct ineffective_check *check = context;
    check->is_held = check->is_held || (strcmp(view->ref->id, check->target) == 0 &&
                                        strcmp(view->rule, check->rule) == 0);
}

/* An alert that fires through the calm outlasts the hour that each step has to help. */
static bool is_ineffective(const struct world *world, const struct server_target *target,
                           const struct as_rule *rule)
{
    const struct as_clock *clock = &world->daemon.clock->clock;
    struct ineffective_check check = {.target = target->id, .rule = rule->name};
    as_engine_visit_ineffective(as_shell_get_engine(world->daemon.shell), NULL,
                                clock->get_mono(clock), clock->get_wall(clock), find_ineffective,
                                &check);
    return rule->ineffective_after > 0 && check.is_held;
}

/* A rule that applies again each time the lock expires has brought its target to the maximum. */
static void check_raised(void *context, const struct as_incident_state *state,
                         const struct as_incident_target *targets, size_t count)
{
    struct calm_check *check = context;
    struct world *world = check->world;
    for (size_t i = 0; i < count && state->is_open; i++) {
        const struct server_target *target = server_find(world, targets[i].target);
        const struct as_target_config *config = rules_find_target(world, target->id);
        const struct as_rule *rule = rules_find_rule(world, targets[i].rule);
        if (!rule || !config || rule->action.kind != AS_ACTION_SCALE_UP || rule->action.is_fit ||
            rule->max_steps || rule->source.kind != AS_SOURCE_NONE || rule->dry_run ||
            config->dry_run || world->daemon.config.dry_run ||
            (config->bounds.cooldown.up_us == 0 && !rule->action.is_to) || rule->approval.is_set ||
            target->rival.is_there || /* it may have been left alone for an hour */
            is_ineffective(world, target, rule))
            continue;
        if (config->bounds.has_behavior && target->size == 0)
            continue; /* a policy in percent allows nothing from nothing, as HPA's */
        int32_t max = target->own_max >= 0 && target->own_max < config->bounds.max
                          ? target->own_max
                          : config->bounds.max;
        for (size_t k = 0; k < config->schedule_count; k++)
            max = config->schedules[k].has_max && config->schedules[k].max < max
                      ? config->schedules[k].max
                      : max;
        if (rule->action.is_to && rule->action.size < max)
            max = (int32_t)rule->action.size;
        if (target->size < max && (target->size > 0 || config->bounds.min == 0) &&
            (target->size > 0 || target->own_min <= 0))
            fail(world, "%s: still %d of %d after a long calm, though %s is open", target->id,
                 target->size, max, rule->name);
    }
}

/* With a list to go by, nothing is open that does not fire, and nothing is held that is heard. */
static void check_listed(void *context, const struct as_incident_state *state,
                         const struct as_incident_target *targets, size_t count)
{
    struct calm_check *check = context;
    (void)targets;
    (void)count;
    if (!state->is_open || check->world->daemon.config.resync_us == 0)
        return;
    if (as_moment_is_set(state->silenced))
        fail(check->world, "incident %016llx is still held",
             (unsigned long long)state->fingerprint);
    for (int i = 0; i < ALERTS; i++) {
        const struct alert *alert = &check->world->alerts[i];
        if (alert->fingerprint == state->fingerprint && !alert->firing)
            fail(check->world, "incident %016llx is open, but its alert is over",
                 (unsigned long long)state->fingerprint);
    }
}

static int count_intent(void *context, const void *key, size_t key_size, const void *value,
                        size_t value_size)
{
    struct world *world = context;
    char id[128];
    (void)value;
    (void)value_size;
    (void)snprintf(id, sizeof(id), "%.*s", (int)key_size, (const char *)key);
    if (pools_fails(world, id))
        return 0;
    fail(world, "an intent is left over after a long calm: %s", id);
    return 0;
}

static void check_calm_end(struct world *world)
{
    struct as_store *peek = world->daemon.peek;
    if (!world->daemon.shell) {
        fail(world, "the daemon did not come back");
        return;
    }
    check_state_against_log(world);
    daemon_restart(world); /* which checks it again */
    if (world->is_failed)
        return;
    const struct as_engine *engine = as_shell_get_engine(world->daemon.shell);
    for (int i = 0; i < ALERTS; i++) {
        struct calm_check check = {.world = world, .alert = &world->alerts[i]};
        if (!check.alert->firing || !is_served(world, check.alert))
            continue;
        as_engine_visit_incidents(engine, find_open, &check);
        if (!check.is_open)
            fail(world, "alert %016llx fires and was sent, but is no incident",
                 (unsigned long long)check.alert->fingerprint);
    }
    struct calm_check check = {.world = world};
    as_engine_visit_incidents(engine, check_raised, &check);
    as_engine_visit_incidents(engine, check_listed, &check);
    check_orders_end(world);
    check_rest_end(world);
    schedules_check_end(world);
    people_check_end(world);
    if (world->pools)
        check_pools_end(world);
    if (peek->visit(peek, AS_STORE_INTENT, count_intent, world, NULL) != 0)
        fail(world, "the store cannot be read");
}

static void calm_down(struct world *world)
{
    world->is_calm = true;
    trace(world, "calm");
    alertmanager_calm_down(world);
    faults_calm_down(world);
    server_calm_down(world);
    source_calm_down(world);
    if (world->pools)
        pools_calm_down(world);
    operators_calm_down(world);
    policies_calm_down(world);
    check_rest_begin(world);
    const int64_t end = world->now + CALM_US;
    for (uint64_t i = 0; !world->is_failed; i++) {
        const struct event *event = RB_MIN(event_tree, &world->events);
        if (event->at > end && daemon_is_at_rest(world) && !people_wait(world))
            return;
        if (i == CALM_STEPS_MAX) {
            fail(world, "no rest after %d steps of calm", CALM_STEPS_MAX);
            return;
        }
        run_take_step(world);
    }
}

void run_world_deinit(struct world *world)
{
    daemon_stop(world);
    alertmanager_stop(world);
    server_stop(world);
    source_stop(world);
    pools_stop(world);
    struct event *event, *next;
    RB_FOREACH_SAFE (event, event_tree, &world->events, next) {
        RB_REMOVE(event_tree, &world->events, event);
        free(event);
    }
    check_log_end(world);
    free(world->counts);
    free(world->begun);
    for (size_t i = 0; i < world->order_count; i++)
        free(world->orders[i]);
    free(world->orders);
    approvals_stop(world);
    free(world->acknowledged.items);
    free(world->bodies.told);
}

/* Not one of the world's own choices: other worlds stay what they were before such rules, and
 * before policies. */
static bool choose_for_seed(uint64_t seed, uint64_t salt, uint64_t per_mille)
{
    struct as_random random;
    as_random_init(&random, ~seed ^ salt);
    return as_random_get_below(&random, 1000) < per_mille;
}

void run_seed(uint64_t seed, uint64_t steps, bool is_verbose, FILE *log_out,
              struct run_result *result_out)
{
    static struct world the_world;
    struct world *world = &the_world;
    *world = (struct world){.seed = seed, .is_verbose = is_verbose};
    RB_INIT(&world->events);
    as_random_init(&world->random, seed);
    world->has_always = choose_for_seed(seed, 0, ALWAYS_PER_MILLE);
    world->allows_jumps = chance(world, 500);
    world->has_approvals = chance(world, APPROVALS_PER_MILLE);
    world->has_fields = chance(world, FIELDS_PER_MILLE);
    world->has_rivals = chance(world, RIVALS_PER_MILLE);
    if (chance(world, POOLS_PER_MILLE))
        pools_start(world);
    world->has_policies = !world->pools && choose_for_seed(seed, POLICIES_SALT, POLICIES_PER_MILLE);
    alertmanager_start(world);
    server_start(world);
    source_start(world);
    daemon_start(world);
    faults_start(world);
    operators_start(world);
    policies_start(world);
    while (world->steps < steps && !world->is_failed)
        run_take_step(world);
    if (!world->is_failed)
        calm_down(world);
    *result_out = (struct run_result){.virtual_us = world->now, .steps = world->steps};
    if (!world->is_failed)
        check_calm_end(world);
    if (!world->is_failed)
        check_log(world, &result_out->log);
    result_out->store_digest = as_store_memory_get_digest(world->daemon.state);
    result_out->is_failed = world->is_failed;
    memcpy(result_out->failure, world->failure, sizeof(world->failure));
    if (log_out) {
        size_t size;
        const char *lines = as_audit_memory_get_lines(world->daemon.log, &size);
        (void)fwrite(lines, 1, size, log_out);
    }
    run_world_deinit(world);
}
