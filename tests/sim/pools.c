/*
 * A cluster (tests/support/fleet.h) whose node groups are targets: pods come and go, the scheduler
 * places them, providers lack capacity, refuse or cannot be reached, and nodes that were marked
 * leave in the background, as cloud/node_terminate.c lets them. Watches of the cluster stop:
 * for two minutes what they said last counts, then nothing is known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "pools.h"

#define TICK_US     (10 * SECOND)
#define LEAVE_MAX   (300 * SECOND) /* from mark to deletion: pods take their time */
#define PODS_MAX    70
#define BROKEN_MAX  8 /* size of a broken group that others still increase */
#define NODE_CPU    2000
#define NODE_MEMORY (INT64_C(8) << 30)

static const char *const names[FLEET_GROUPS] = {"g0", "g1", "g2", "g3"};
static const char id_start[] = "node_group/mine/";

/* ---- groups as targets ---- */

int pools_find_group(const struct world *world, const char *id)
{
    const size_t size = sizeof(id_start) - 1;
    for (int i = 0; world->pools && i < FLEET_GROUPS; i++) {
        if (strncmp(id, id_start, size) == 0 && strcmp(id + size, names[i]) == 0)
            return i;
    }
    return -1;
}

bool pools_fails(const struct world *world, const char *id)
{
    const int group = pools_find_group(world, id);
    return group >= 0 && world->pools->moods[group] == MOOD_FAILS;
}

bool pools_has(const struct world *world, const struct server_target *target)
{
    return world->pools && (target->group >= 0 || strncmp(target->id, "pool/", 5) == 0);
}

int32_t pools_get_size(const struct world *world, const struct server_target *target)
{
    return target->group >= 0 ? fleet_get_size(&world->pools->fleet, (size_t)target->group) : 0;
}

/* What the world has done to a group shows in its target. */
static void sync_target(struct world *world, int group)
{
    const int32_t size = fleet_get_size(&world->pools->fleet, (size_t)group);
    for (size_t i = 0; i < world->target_count; i++) {
        struct server_target *target = &world->targets[i];
        if (target->group != group || target->size == size)
            continue;
        check_others_change(world, target);
        target->size = size;
        target->version++;
        check_orders_size(world, target);
    }
}

static void tick(struct world *world)
{
    fleet_tick(&world->pools->fleet, true_wall(world));
}

void pools_set_size(struct world *world, int group, int32_t size)
{
    struct fleet *fleet = &world->pools->fleet;
    const int32_t now = fleet_get_size(fleet, (size_t)group);
    world->pools->disturbed_at = world->now;
    if (size > now)
        fleet->groups[group].size += size - now;
    for (int32_t left = now - size; left > 0; left--) {
        struct fleet_node *node = fleet_find_newest(fleet, (size_t)group);
        if (node)
            fleet_delete(fleet, node);
        else
            fleet->groups[group].size--; /* it never came */
    }
    tick(world);
}

/* ---- what providers and the API server answer ---- */

static bool is_without_capacity(const struct pools *pools, int group)
{
    return pools->moods[group] == MOOD_REFUSES || pools->moods[group] == MOOD_TELLS ||
           pools->moods[group] == MOOD_SILENT;
}

static void observe_group(struct world *world, int group, struct as_observation *observation)
{
    const struct pools *pools = world->pools;
    const size_t index = (size_t)group;
    observation->replicas = fleet_get_size(&pools->fleet, index);
    observation->status_replicas = (int32_t)fleet_count_nodes(&pools->fleet, index, true);
    observation->names_instances = true;
    observation->in_progress = pools->fleet.groups[group].is_busy;
    observation->lacks_capacity = pools->moods[group] == MOOD_TELLS;
    observation->drain_failed = pools->fleet.groups[group].drain_failed;
    if (pools->moods[group] == MOOD_UNREADABLE) {
        *observation = (struct as_observation){.outcome = AS_REASON_UNREACHABLE};
        (void)snprintf(observation->message, sizeof(observation->message), "HTTP 500");
    }
}

/* As cloud/pool_target.c: where the facts are not fresh there is no plan. */
static void look(struct world *world, struct pool_look *look_at, struct as_observation *observation)
{
    struct pools *pools = world->pools;
    observation->snapshot = &look_at->snapshot;
    if (world->now - pools->facts_at > FACTS_FRESH_US) {
        look_at->snapshot.error = "the watch of the cluster has stopped";
        return;
    }
    fleet_snapshot_from(&pools->fleet, &pools->facts, &look_at->request, &look_at->arena,
                        &look_at->snapshot, &look_at->plan);
    observation->plan = &look_at->plan;
    check_pools_plan(world, look_at);
    if (!world->daemon.is_former)
        check_pools_look(world);
}

void pools_observe(struct world *world, const struct server_target *target,
                   struct pool_look *look_at, struct as_observation *observation)
{
    tick(world);
    if (target->group >= 0)
        observe_group(world, target->group, observation);
    if (observation->outcome != AS_REASON_APPLIED || look_at->request.member_count == 0)
        return;
    look(world, look_at, observation);
    if (target->group >= 0)
        return;
    observation->replicas = observation->status_replicas = 0;
    for (size_t i = 0; i < look_at->request.member_count; i++) {
        const struct as_pool_member *member = &look_at->request.members[i];
        const int group = pools_find_group(world, member->ref->id);
        if (!member->is_member || world->pools->moods[group] == MOOD_UNREADABLE)
            continue;
        observation->replicas += fleet_get_size(&world->pools->fleet, (size_t)group);
    }
    observation->status_replicas = observation->replicas;
    if (observation->plan)
        observation->replicas = look_at->plan.size;
}

static bool is_named(const struct as_scale_request *request, const struct fleet_node *node)
{
    for (size_t i = 0; i < request->take_count; i++) {
        if (strcmp(request->take[i], node->name) == 0)
            return true;
    }
    return request->take_count == 0;
}

/* Each node is read anew; who may not leave any more stays, and nobody takes its place. */
static int32_t mark(struct world *world, int group, const struct as_scale_request *request)
{
    struct fleet *fleet = &world->pools->fleet;
    int32_t left = request->from - request->to;
    for (size_t i = FLEET_NODES; i-- > 0 && left > 0;) {
        struct fleet_node *node = &fleet->nodes[i];
        if (!node->is_used || node->group != group || node->is_marked || !node->is_node ||
            !is_named(request, node) || !fleet_may_leave(fleet, node))
            continue;
        trace(world, "cluster: %s is marked", node->name);
        node->is_marked = true;
        node->leaves_us = world->now + between(world, 10 * SECOND, LEAVE_MAX);
        left--;
    }
    return request->from - request->to - left;
}

static void shrink(struct world *world, int group, const struct as_scale_request *request,
                   struct as_scale_result *result)
{
    struct fleet *fleet = &world->pools->fleet;
    const int32_t wanted = request->from - request->to;
    int32_t done = 0;
    if (request->is_clean_up) {
        done = fleet_clean_up(fleet, (size_t)group, wanted);
        if (done > 0)
            trouble_note(world, TROUBLE_CLEANED_UP);
    } else if (request->take_count == 0) /* what does not serve goes first */
        done = fleet_take_back(fleet, (size_t)group, wanted);
    if (done < wanted && !request->is_take_back && !request->is_clean_up) {
        struct as_scale_request rest = *request;
        rest.from -= done;
        done += mark(world, group, &rest);
    }
    result->reached = request->from - done;
    result->is_partial = done < wanted;
    result->outcome = done > 0 ? AS_REASON_APPLIED : AS_REASON_REJECTED;
}

static void grow(struct world *world, int group, const struct as_scale_request *request,
                 struct as_scale_result *result)
{
    struct pools *pools = world->pools;
    if (pools->moods[group] == MOOD_REFUSES) {
        trouble_note(world, TROUBLE_NO_CAPACITY_REFUSED);
        result->outcome = AS_REASON_REJECTED;
        result->is_shortage = true;
        return;
    }
    if (pools->moods[group] == MOOD_SILENT || pools->moods[group] == MOOD_TELLS)
        trouble_note(world, TROUBLE_NO_CAPACITY_ACCEPTED);
    const int32_t more = request->to - request->from;
    result->returned = fleet_return(&pools->fleet, (size_t)group, more);
    if (result->returned > 0) {
        trace(world, "cluster: %d nodes of %s stay after all", result->returned, names[group]);
        trouble_note(world, TROUBLE_NODE_RETURNED);
        pools->disturbed_at = world->now;
    }
    pools->fleet.groups[group].size += more - result->returned;
    result->outcome = AS_REASON_APPLIED;
}

void pools_carry_out(struct world *world, struct server_target *target,
                     const struct as_scale_request *request, bool is_former,
                     struct as_scale_result *result)
{
    const struct pools *pools = world->pools;
    tick(world);
    if (fleet_get_size(&pools->fleet, (size_t)target->group) != request->from) {
        result->outcome = AS_REASON_CONFLICT;
    } else if (pools->moods[target->group] == MOOD_UNREADABLE ||
               (request->to < request->from && pools->is_cut_off)) {
        result->outcome = AS_REASON_UNREACHABLE; /* the provider; who marks nodes */
    } else if (pools->moods[target->group] == MOOD_FAILS) {
        trouble_note(world, TROUBLE_GROUP_FAILS);
        result->outcome = chance(world, 500) ? AS_REASON_UNREACHABLE : AS_REASON_TIMEOUT;
        result->is_ambiguous = chance(world, 800);
    } else if (request->to > request->from) {
        if (!is_former)
            check_pools_growth(world, target, request);
        grow(world, target->group, request, result);
    } else {
        if (request->is_clean_up)
            check_pools_clean_up(world, target, request);
        else if (!is_former)
            check_pools_take(world, target, request);
        shrink(world, target->group, request, result);
    }
    if (result->outcome == AS_REASON_APPLIED)
        check_pools_applied(world, target, request);
    tick(world);
}

/* ---- nodes that leave ---- */

static void give_back(struct world *world, struct fleet_node *node, const char *why)
{
    trace(world, "cluster: %s is put back: %s", node->name, why);
    node->is_marked = false;
    world->pools->disturbed_at = world->now;
    world->pools->fleet.groups[node->group].drain_failed = (as_maybe_time){true, true_wall(world)};
    sync_target(world, node->group);
}

/* One step of one node: its pods are evicted, then it is deleted. */
static void leave(struct world *world, struct fleet_node *node)
{
    struct daemon *daemon = &world->daemon;
    const struct as_clock *clock = &daemon->clock->clock;
    char id[64];
    (void)snprintf(id, sizeof(id), "%s%s", id_start, names[node->group]);
    const char *obstacle = as_engine_find_terminate_obstacle(as_shell_get_engine(daemon->shell), id,
                                                             clock->get_mono(clock));
    if (obstacle && *obstacle) {
        trace(world, "cluster: %s waits: %s", node->name, obstacle);
        trouble_note(world, TROUBLE_LEAVING_HELD);
        return;
    }
    if (obstacle) { /* its target is gone */
        give_back(world, node, "its group is in no rule");
        return;
    }
    if (!world->is_calm && chance(world, 60)) {
        trouble_note(world, TROUBLE_DRAIN_FAILED);
        give_back(world, node, "the drain failed");
        return;
    }
    check_pools_leave(world, node);
    trace(world, "cluster: %s is deleted", node->name);
    const int group = node->group;
    fleet_delete(&world->pools->fleet, node);
    sync_target(world, group);
}

static void let_leave(struct world *world)
{
    struct pools *pools = world->pools;
    const struct daemon *daemon = &world->daemon;
    if (!daemon->shell || daemon->failed || daemon->stopping || daemon->paused_until > world->now ||
        !daemon_leads(world) || pools->is_cut_off)
        return;
    for (size_t i = 0; i < FLEET_NODES; i++) {
        struct fleet_node *node = &pools->fleet.nodes[i];
        if (node->is_used && node->is_marked && node->leaves_us <= world->now &&
            pools->moods[node->group] != MOOD_UNREADABLE)
            leave(world, node);
    }
}

/* ---- what happens by itself ---- */

static void set_mood(struct world *world, int group, enum mood mood)
{
    static const char *const words[] = {
        "well",    "refuses", "accepts in vain", "tells of its want of capacity",
        "failing", "broken",  "unreadable"};
    struct pools *pools = world->pools;
    struct fleet_group *of = &pools->fleet.groups[group];
    pools->moods[group] = mood;
    pools->mood_at[group] = world->now;
    int32_t there = 0;
    for (size_t i = 0; i < FLEET_NODES; i++)
        there += pools->fleet.nodes[i].is_used && pools->fleet.nodes[i].group == group;
    of->capacity = is_without_capacity(pools, group) ? there : 1000;
    of->is_broken = mood == MOOD_BROKEN;
    of->is_unreadable = mood == MOOD_UNREADABLE;
    trace(world, "provider: %s is %s", of->name, words[mood]);
    if (mood != MOOD_WELL)
        trouble_note(world, TROUBLE_GROUP_UNWELL);
}

/* Another controller orders instances that the provider does not have. */
static void order_in_vain(struct world *world, int group)
{
    const int32_t size = fleet_get_size(&world->pools->fleet, (size_t)group);
    if (world->pools->moods[group] != MOOD_SILENT || !chance(world, 500))
        return;
    trouble_note(world, TROUBLE_ORDERED_IN_VAIN);
    pools_set_size(world, group, size + (int32_t)between(world, 1, 2));
    sync_target(world, group);
}

/* Somebody else orders an instance that will never be a node, or not for long. */
static int64_t break_down(struct world *world, int group)
{
    const int32_t size = fleet_get_size(&world->pools->fleet, (size_t)group);
    if (chance(world, 500) && size < BROKEN_MAX) {
        pools_set_size(world, group, size + 1);
        sync_target(world, group);
    }
    return between(world, 600, 2400) * SECOND;
}

static void on_mood(struct world *world, void *subject, uint64_t group)
{
    (void)subject;
    if (world->is_calm)
        return;
    const enum mood mood =
        chance(world, 500) ? MOOD_WELL : (enum mood)between(world, 0, MOOD_COUNT - 1);
    set_mood(world, (int)group, mood);
    order_in_vain(world, (int)group);
    world->pools->fleet.groups[group].is_busy = chance(world, 50);
    later(world,
          mood == MOOD_BROKEN ? break_down(world, (int)group) : between(world, 20, 600) * SECOND,
          on_mood, NULL, group);
}

static void on_watch_back(struct world *world, void *subject, uint64_t argument)
{
    (void)subject;
    (void)argument;
    if (world->pools->is_cut_off || world->pools->is_stale)
        trace(world, "cluster: its watch goes on");
    world->pools->is_cut_off = world->pools->is_stale = false;
}

/* The API server is away, or only its watch says nothing any more. */
static void on_watch(struct world *world, void *subject, uint64_t argument)
{
    struct pools *pools = world->pools;
    (void)subject;
    (void)argument;
    if (world->is_calm)
        return;
    pools->is_stale = true;
    pools->is_cut_off = chance(world, 500);
    trouble_note(world, pools->is_cut_off ? TROUBLE_API_AWAY : TROUBLE_WATCH_STOPPED);
    trace(world, "cluster: %s", pools->is_cut_off ? "its API server is away" : "its watch stops");
    later(world, between(world, 10, 900) * SECOND, on_watch_back, NULL, 0);
    later(world, between(world, 60, 3600) * SECOND, on_watch, NULL, 0);
}

static unsigned count_pods(const struct fleet *fleet, int pod_class)
{
    unsigned count = 0;
    for (size_t i = 0; i < FLEET_PODS; i++)
        count += fleet->pods[i].is_used && fleet->pods[i].pod_class != FLEET_DAEMON &&
                 (pod_class < 0 || fleet->pods[i].pod_class == pod_class);
    return count;
}

static void on_pods(struct world *world, void *subject, uint64_t argument)
{
    static const int pod_classes[] = {0, 0, 0, 1, 1, 2, 3, 4, 5};
    struct fleet *fleet = &world->pools->fleet;
    (void)subject;
    (void)argument;
    if (world->is_calm)
        return;
    int pod_class = pod_classes[between(world, 0, (int64_t)AS_ARRAY_SIZE(pod_classes) - 1)];
    if (fleet->has_daemons && chance(world, 150)) {
        trouble_note(world, TROUBLE_DAEMON_PORT);
        pod_class = FLEET_PORT;
    }
    const int64_t count = between(world, 1, 8);
    const bool is_more = chance(world, 550) && count_pods(fleet, -1) + count <= PODS_MAX;
    fleet->now = true_wall(world);
    if (is_more)
        fleet_add_pods(fleet, pod_class, (unsigned)count);
    else
        fleet_remove_pods(fleet, pod_class, (unsigned)count);
    trace(world, "pods: %lld %s of shape %d", (long long)count, is_more ? "more" : "less",
          pod_class);
    later(world, between(world, 5, 240) * SECOND, on_pods, NULL, 0);
}

static void on_tick(struct world *world, void *subject, uint64_t argument)
{
    struct pools *pools = world->pools;
    (void)subject;
    (void)argument;
    let_leave(world);
    tick(world);
    if (!pools->is_stale) {
        pools->facts = pools->fleet;
        pools->facts_at = world->now;
    }
    later(world, TICK_US, on_tick, NULL, 0);
}

/* ---- life ---- */

void pools_start(struct world *world)
{
    struct fleet_group groups[FLEET_GROUPS];
    struct pools *pools = as_xcalloc(1, sizeof(*pools));
    struct as_error error;
    world->pools = pools;
    for (int i = 0; i < FLEET_GROUPS; i++) {
        const int64_t cores = between(world, 1, 2);
        const int64_t size = between(world, 0, 3);
        const int64_t boot_s = between(world, 5, 60);
        const int64_t ready_timeout_min = between(world, 2, 10);
        groups[i] = (struct fleet_group){
            .name = names[i],
            .size = (int32_t)size,
            .capacity = 1000,
            .boot_us = boot_s * SECOND,
            .cpu = NODE_CPU * cores,
            .memory = NODE_MEMORY * cores,
            .ready_timeout_us = ready_timeout_min * MINUTE,
        };
    }
    fleet_init(&pools->fleet, groups, FLEET_GROUPS, true_wall(world));
    pools->fleet.has_daemons = chance(world, 300);
    if (as_matcher_init(&pools->watchdog, "alertname=A0", &error) != 0)
        abort();
    pools->disturbed_at = INT64_MIN / 2;
    pools->heard_at = INT64_MIN / 2;
    pools->lacking = chance(world, 300) ? (int)between(world, 0, FLEET_GROUPS - 1) : -1;
    on_tick(world, NULL, 0);
    on_pods(world, NULL, 0);
    later(world, between(world, 60, 3600) * SECOND, on_watch, NULL, 0);
    for (int i = 0; i < FLEET_GROUPS; i++)
        later(world, between(world, 20, 600) * SECOND, on_mood, NULL, (uint64_t)i);
}

/* Alerts of group 0 fire all the time, as a watchdog does. */
bool pools_is_watchdog(const struct world *world, const struct alert *alert)
{
    return world->pools && alert == &world->alerts[0];
}

void pools_note_heard(struct world *world, const struct alert *alert)
{
    if (world->pools && alert->group == 0)
        world->pools->heard_at = world->now;
}

void pools_configure(struct world *world, struct as_engine_config *config)
{
    struct pools *pools = world->pools;
    if (!chance(world, 500))
        return;
    config->watchdog = &pools->watchdog;
    config->watchdog_count = 1;
    config->watchdog_within_us = between(world, 2, 30) * MINUTE;
}

void pools_calm_down(struct world *world)
{
    struct pools *pools = world->pools;
    on_watch_back(world, NULL, 0);
    for (int i = 0; i < FLEET_GROUPS; i++) {
        pools->fleet.groups[i].is_busy = false;
        if (i == pools->lacking && !is_without_capacity(pools, i)) {
            set_mood(world, i, (enum mood)between(world, MOOD_REFUSES, MOOD_FAILS));
            order_in_vain(world, i);
        }
        if (i != pools->lacking)
            set_mood(world, i, MOOD_WELL);
    }
    check_pools_calm(world);
}

void pools_stop(struct world *world)
{
    if (!world->pools)
        return;
    fleet_deinit(&world->pools->fleet);
    as_matcher_deinit(&world->pools->watchdog);
    free(world->pools);
    world->pools = NULL;
}

/* ---- rules ---- */

static void make_group(struct world *world, struct target_spec *target, int group)
{
    target->name = names[group];
    target->is_group = true;
    target->ready_timeout = world->pools->fleet.groups[group].ready_timeout_us / SECOND;
    target->unneeded_for = chance(world, 800) ? between(world, 20, 180) : 600;
    target->min =
        (int32_t)between(world, world->pools->fleet.has_daemons, 2); /* see seems_to_fit */
    target->max = target->min + (int32_t)between(world, 1, 10);
    target->dry_run = chance(world, 40);
}

static void make_pool(struct world *world, struct target_spec *target, const char *name, int first)
{
    target->name = name;
    target->pool[0] = names[first];
    target->pool[1] = names[first + 1];
    target->max = (int32_t)between(world, 5, 16);
    target->choose = (enum as_pool_filter)between(world, AS_POOL_LEAST_WASTE, AS_POOL_LEAST_NODES);
    if (chance(world, 200))
        target->choose = AS_POOL_RANDOM;
    target->balance = chance(world, 300);
    target->dry_run = chance(world, 40);
}

static void make_rules(struct world *world, struct rule_spec *rules,
                       const char *const rule_names[2], struct target_spec *target)
{
    static const char *const matches[] = {"alertname=A0", "alertname=A0", "alertname=A1",
                                          "alertname=~\"A0|A1\""};
    static const char *const guards[] = {"none", NULL, "g0"};
    target->up = chance(world, 300) ? 60 : 0;
    target->down = between(world, 0, 10) * 60;
    target->has_down_after_down = chance(world, 500);
    const char *match = matches[between(world, 0, 3)];
    rules[0] = (struct rule_spec){.name = rule_names[0],
                                  .match = {match},
                                  .target = target->name,
                                  .fit = true,
                                  .dry_run = chance(world, 30)};
    match = matches[between(world, 0, 3)];
    const bool is_disabled = chance(world, 200);
    const char *guard = guards[between(world, 0, 2)];
    rules[1] = (struct rule_spec){.name = rule_names[1],
                                  .match = {match},
                                  .target = target->name,
                                  .take = true,
                                  .guard = guard,
                                  .disabled = is_disabled};
    if (!rules[1].guard && world->daemon.config.watchdog_count == 0)
        rules[1].guard = source_queries[GUARD]; /* `check` wants a proof */
    for (size_t i = 0; world->has_always && i < 2; i++) {
        if (chance(world, 300))
            continue;
        rules[i].always = true;
        rules[i].match[0] = NULL;
        rules[i].every = 15;
        if (i == 1 && chance(world, 700))
            rules[i].guard = NULL; /* the facts are the proof */
    }
}

/* One pool of two groups; and another one, a group that is a pool of itself, or none. */
void pools_randomize(struct world *world, struct spec *spec)
{
    static const char *const first[2] = {"r0", "r1"}, *const second[2] = {"r2", "r3"};
    const int64_t others = between(world, 0, 2);
    size_t count = 0;
    *spec = (struct spec){0};
    make_group(world, &spec->targets[count++], 0);
    make_group(world, &spec->targets[count++], 1);
    make_pool(world, &spec->targets[count], "pa", 0);
    make_rules(world, &spec->rules[0], first, &spec->targets[count++]);
    if (others == 0)
        return;
    make_group(world, &spec->targets[count++], 2);
    if (others == 1) {
        make_group(world, &spec->targets[count++], 3);
        make_pool(world, &spec->targets[count], "pb", 2);
        make_rules(world, &spec->rules[2], second, &spec->targets[count]);
    } else {
        make_rules(world, &spec->rules[2], second, &spec->targets[count - 1]);
    }
}
