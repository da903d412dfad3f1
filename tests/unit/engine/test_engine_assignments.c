/*
 * Pools in the engine: their decisions reach their groups as shares, which the groups carry out by
 * themselves. What a cluster has is made up here: each pod that waits needs a node of its own, and
 * what was bought since the start is on its way.
 */
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/arena.h>

#include "engine_harness.h"

#define GROUPS_MAX 8
#define LOOKS_MAX  4
#define START      4 /* size of every group, by the harness */

struct look { /* of one pool: what the engine asked with it */
    char name[32];
    struct as_arena arena;
    struct as_pool_request request;
    struct as_snapshot snapshot;
    struct as_snapshot_group groups[GROUPS_MAX];
    struct as_pool_plan plan;
    struct as_pool_group_plan group_plans[GROUPS_MAX];
    const char *take[4];
    uint32_t take_group[4];
    struct as_unneeded unneeded[4];
    struct as_asked asked[2];
};

static struct world { /* the cluster that all pools of a test look at */
    int32_t pods;     /* that wait for a node of their own */
    struct {
        const char *node, *group;
    } unneeded[4];
    bool is_unknown;      /* the facts are not fresh */
    bool asks;            /* the pod classes are not fully checked */
    int32_t unregistered; /* nodes of `a` that another controller has requested in vain */
    size_t known;         /* unneeded nodes, and pairs that were asked, in the last request */
    size_t known_asked;
    struct look looks[LOOKS_MAX];
} world;

static struct look *find_look(const char *name)
{
    size_t i = 0;
    while (world.looks[i].name[0] && strcmp(world.looks[i].name, name) != 0)
        cr_assert_lt(++i, LOOKS_MAX);
    (void)snprintf(world.looks[i].name, sizeof(world.looks[i].name), "%s", name);
    return &world.looks[i];
}

static void forget_look(struct look *look)
{
    as_pool_request_deinit(&look->request);
    as_arena_deinit(&look->arena);
}

static void on_ask(struct harness *harness, const char *name, const struct as_pool_request *request)
{
    (void)harness;
    struct look *look = find_look(name);
    cr_assert_leq(request->member_count, GROUPS_MAX);
    forget_look(look);
    as_pool_request_copy(request, &look->arena, &look->request);
    world.known = request->unneeded_count;
    world.known_asked = request->asked_count;
}

static int32_t get_size(struct harness *harness, const struct as_pool_member *member)
{
    return harness_target(harness, member->ref->id)->size;
}

static void fill_groups(struct harness *harness, struct look *look, struct as_observation *out)
{
    const struct as_pool_request *request = &look->request;
    out->replicas = 0;
    for (size_t i = 0; i < request->member_count; i++) {
        const struct as_pool_member *member = &request->members[i];
        const int32_t size = get_size(harness, member);
        look->groups[i] = (struct as_snapshot_group){.name = member->name,
                                                     .is_member = member->is_member,
                                                     .size = size,
                                                     .min = member->min,
                                                     .max = member->max,
                                                     .closed = member->closed,
                                                     .surplus = member->surplus};
        if (strcmp(member->name, "a") == 0 && world.unregistered > 0) {
            look->groups[i].unregistered = world.unregistered;
            if (world.unregistered > member->unregistered)
                look->groups[i].closed = AS_REASON_COOLDOWN;
        }
        look->group_plans[i] = (struct as_pool_group_plan){.fit = size, .take_to = size};
        out->replicas += member->is_member ? size : 0;
    }
    out->status_replicas = out->replicas;
}

/* Each group gets what it has room for, the first one first. */
static void plan_fit(struct look *look)
{
    int32_t lacking = world.pods;
    for (size_t i = 0; i < look->request.member_count; i++)
        lacking -= look->groups[i].size - START;
    for (size_t i = 0; i < look->request.member_count && lacking > 0; i++) {
        const struct as_snapshot_group *group = &look->groups[i];
        if (!group->is_member || group->closed != AS_REASON_SCALED)
            continue;
        const int32_t room = group->max - group->size, more = lacking < room ? lacking : room;
        look->group_plans[i].fit += more;
        look->plan.fit_size += more;
        lacking -= more;
    }
    if (world.asks && look->plan.fit_size > look->plan.size) {
        look->asked[0] = (struct as_asked){.pod_class = 1, .template_ = 2, .group = "a", .at = {1}};
        look->plan.asked = look->asked;
        look->plan.asked_count = 1;
    }
}

static void plan_take(struct look *look, as_wall_time now)
{
    struct as_pool_plan *plan = &look->plan;
    for (size_t i = 0; i < AS_ARRAY_SIZE(world.unneeded) && world.unneeded[i].node; i++) {
        for (uint32_t at = 0; at < look->request.member_count; at++) {
            if (strcmp(look->groups[at].name, world.unneeded[i].group) != 0 ||
                look->groups[at].closed == AS_REASON_PAUSED ||
                look->request.members[at].down_in_doubt)
                continue;
            look->take_group[plan->take_count] = at;
            look->take[plan->take_count++] = world.unneeded[i].node;
            plan->take_size--;
        }
        look->unneeded[plan->unneeded_count++] =
            (struct as_unneeded){.node = world.unneeded[i].node, .since = {true, now}};
    }
}

static void on_look(struct harness *harness, const char *name, struct as_observation *out)
{
    struct look *look = find_look(name);
    const int32_t size = out->replicas;
    fill_groups(harness, look, out);
    if (!strcmp(look->request.members[0].name, name)) /* a group by itself */
        out->replicas = out->status_replicas = size;
    look->snapshot = (struct as_snapshot){.groups = look->groups,
                                          .group_count = look->request.member_count,
                                          .error = world.is_unknown ? "stale" : NULL};
    out->snapshot = &look->snapshot;
    if (world.is_unknown)
        return;
    look->plan = (struct as_pool_plan){.size = out->replicas,
                                       .fit_size = out->replicas,
                                       .take_size = out->replicas,
                                       .fit_reason = AS_REASON_NO_CHANGE,
                                       .groups = look->group_plans,
                                       .take = look->take,
                                       .take_group = look->take_group,
                                       .unneeded = look->unneeded};
    if (look->request.with_fit)
        plan_fit(look);
    if (look->request.with_take)
        plan_take(look, harness->wall);
    out->plan = &look->plan;
}

/* What has left is unneeded no more. */
static void on_request(struct harness *harness, const struct queued_call *call, bool is_done)
{
    (void)harness;
    if (is_done && call->request.take_count > 0)
        memset(world.unneeded, 0, sizeof(world.unneeded));
}

static const struct spec workers = {
    .targets = {{.name = "a", .is_group = true, .cluster = "c", .min = 1, .max = 6},
                {.name = "b", .is_group = true, .cluster = "c", .min = 1, .max = 9},
                {.name = "other", .is_group = true, .cluster = "c", .max = 9},
                {.name = "far", .is_group = true, .cluster = "d", .max = 9},
                {.name = "workers", .pool = {"a", "b"}, .max = 20, .up = 180, .down = 60}},
    .rules = {{.name = "wait",
               .match = {"alertname=Wait"},
               .target = "workers",
               .fit = true,
               .every = 15},
              {.name = "idle",
               .match = {"alertname=Idle"},
               .target = "workers",
               .take = true,
               .every = 15,
               .guard = "none"}},
};

static void begin(struct harness *harness, const struct spec *spec)
{
    memset(&world, 0, sizeof(world));
    harness->on_ask = on_ask;
    harness->on_look = on_look;
    harness->on_request = on_request;
    harness_start(harness, spec);
}

static void end(struct harness *harness)
{
    for (size_t i = 0; i < LOOKS_MAX; i++)
        forget_look(&world.looks[i]);
    harness_stop(harness);
}

#define WITH_WORLD(name, spec)                                                                     \
    struct harness name = {0};                                                                     \
    begin(&(name), &(spec))

static int32_t size_of(struct harness *harness, const char *name)
{
    return harness_target(harness, name)->size;
}

static const struct as_pool_member *find_member(const char *pool, const char *name)
{
    const struct as_pool_request *request = &find_look(pool)->request;
    for (size_t i = 0; i < request->member_count; i++) {
        if (strcmp(request->members[i].name, name) == 0)
            return &request->members[i];
    }
    return NULL;
}

static struct as_target_view viewed;
static const char *view_of;

static void take_view(void *context, const struct as_target_view *view)
{
    (void)context;
    if (view->name && strcmp(view->name, view_of) == 0)
        viewed = *view;
}

static const struct as_target_view *see(struct harness *harness, const char *name)
{
    view_of = name;
    as_engine_visit_targets(harness->engine, harness->mono, harness->wall, take_view, NULL);
    return &viewed;
}

static bool is_up_locked(struct harness *harness, const char *name)
{
    return as_moment_is_set(see(harness, name)->up_locked_until);
}

Test(engine_assignments, a_decision_reaches_the_groups_as_shares)
{
    WITH_WORLD(h, workers);
    world.pods = 3;
    fire(&h, "Wait", 990);
    const char *text = said(&h);
    cr_expect(
        has(text, "look at workers; decided workers 8>11 scaled by wait; observe a; observe b"),
        "%s", text);
    cr_expect(has(text, "decided a 4>6 scaled by wait"), "%s", text);
    cr_expect(has(text, "decided b 4>5 scaled by wait"), "%s", text);
    cr_expect(has(text, "acted a 4>6 applied") && has(text, "acted b 4>5 applied"), "%s", text);
    cr_expect_not(has(text, "scale workers"), "a pool sets no size");
    cr_expect_str_eq(h.last_shared, h.last_pool_decision, "a group's decision names its pool's");
    cr_expect(is_up_locked(&h, "workers"), "the pool's lock has begun");
    cr_expect_not(is_up_locked(&h, "a"), "a group has no lock of its own");
    end(&h);
}

Test(engine_assignments, a_look_tells_of_all_groups_of_the_cluster)
{
    WITH_WORLD(h, workers);
    fire(&h, "Wait", 990);
    const struct as_pool_request *request = &find_look("workers")->request;
    cr_assert_eq(request->member_count, 3, "a group of another cluster is left out");
    cr_expect_str_eq(request->members[0].name, "a", "in the pool's order");
    cr_expect_str_eq(request->members[1].name, "b");
    cr_expect(request->members[1].is_member);
    cr_expect_not(find_member("workers", "other")->is_member);
    cr_expect_eq(find_member("workers", "b")->max, 9);
    cr_expect_eq(request->min, 2, "the sum of the groups' minima");
    cr_expect_eq(request->max, 20);
    cr_expect(request->with_fit && !request->with_take, "only what rules in force ask for");
    fire(&h, "Idle", 991);
    cr_expect(find_look("workers")->request.with_take);
    end(&h);
}

Test(engine_assignments, nodes_leave_by_name)
{
    WITH_WORLD(h, workers);
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "b";
    world.unneeded[1].node = "n2";
    world.unneeded[1].group = "b";
    fire(&h, "Idle", 990);
    const char *text = said(&h);
    cr_expect(has(text, "decided workers 8>6 scaled by idle"), "%s", text);
    cr_expect(has(text, "scale b 4>2 without n1,n2"), "%s", text);
    cr_expect_eq(size_of(&h, "a"), START);
    end(&h);
}

Test(engine_assignments, a_group_that_has_grown_since_loses_only_the_named_nodes)
{
    WITH_WORLD(h, workers);
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "b";
    harness_target(&h, "b")->is_hanging = true;
    fire(&h, "Idle", 990);
    harness_target(&h, "b")->size = 6;
    harness_target(&h, "b")->is_hanging = false;
    (void)said(&h);
    harness_settle(&h);
    cr_expect(has(said(&h), "scale b 6>5 without n1"));
    end(&h);
}

Test(engine_assignments, until_its_shares_are_settled_a_pool_is_not_evaluated)
{
    WITH_WORLD(h, workers);
    world.pods = 3;
    harness_target(&h, "b")->is_hanging = true;
    fire(&h, "Wait", 990);
    (void)said(&h);
    fire(&h, "Wait,job=x", 991);
    tick(&h, 20);
    cr_expect_not(has(said(&h), "look at workers"));
    harness_target(&h, "b")->is_hanging = false;
    harness_settle(&h);
    const char *text = said(&h);
    cr_expect(has(text, "acted b 4>5 applied"), "%s", text);
    cr_expect(has(text, "look at workers"), "%s", text);
    end(&h);
}

Test(engine_assignments, a_group_without_capacity_does_not_hold_up_one_with)
{
    WITH_WORLD(h, workers);
    world.pods = 2;
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_REJECTED, .is_shortage = true});
    fire(&h, "Wait", 990);
    const char *text = said(&h);
    cr_expect(has(text, "acted a 4>6 rejected"), "%s", text);
    cr_expect(has(text, "acted b 4>6 applied"), "%s", text);
    cr_expect(is_up_locked(&h, "a"), "it backs off");
    cr_expect_eq(find_member("workers", "a")->closed, AS_REASON_COOLDOWN);
    end(&h);
}

Test(engine_assignments, any_failure_of_an_increase_backs_its_group_off)
{
    static const enum as_reason outcomes[] = {AS_REASON_REJECTED, AS_REASON_FORBIDDEN,
                                              AS_REASON_UNREACHABLE, AS_REASON_TIMEOUT};
    for (size_t i = 0; i < AS_ARRAY_SIZE(outcomes); i++) {
        WITH_WORLD(h, workers);
        world.pods = 1;
        harness_script(&h, (struct scale_script){.outcome = outcomes[i]});
        fire(&h, "Wait", 990);
        cr_expect(is_up_locked(&h, "a"), "%s", as_reason_get_word(outcomes[i]));
        cr_expect_eq(size_of(&h, "b"), START + 1, "%s", as_reason_get_word(outcomes[i]));
        end(&h);
    }
}

Test(engine_assignments, after_a_conflict_or_when_throttled_the_group_is_tried_again)
{
    static const enum as_reason outcomes[] = {AS_REASON_CONFLICT, AS_REASON_THROTTLED};
    for (size_t i = 0; i < AS_ARRAY_SIZE(outcomes); i++) {
        WITH_WORLD(h, workers);
        world.pods = 1;
        harness_script(&h, (struct scale_script){.outcome = outcomes[i]});
        fire(&h, "Wait", 990);
        tick(&h, 10);
        const char *text = said(&h);
        cr_expect(has(text, "acted a 4>5 applied"), "%s", text);
        cr_expect_not(is_up_locked(&h, "a"));
        cr_expect_eq(size_of(&h, "b"), START);
        end(&h);
    }
}

Test(engine_assignments, the_rest_is_decided_despite_the_pools_lock)
{
    WITH_WORLD(h, workers);
    world.pods = 3;
    harness_target(&h, "a")->is_hanging = true;
    fire(&h, "Wait", 990);
    cr_assert(is_up_locked(&h, "workers"), "b has its share: %s", said(&h));
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_REJECTED, .is_shortage = true});
    harness_target(&h, "a")->is_hanging = false;
    harness_settle(&h);
    const char *text = said(&h);
    cr_expect(has(text, "acted a 4>6 rejected"), "%s", text);
    cr_expect(has(text, "acted b 5>7 applied"), "at once: %s", text);
    end(&h);
}

Test(engine_assignments, a_share_that_is_not_applied_in_time_goes_to_others)
{
    WITH_WORLD(h, workers);
    world.pods = 2;
    harness_target(&h, "a")->is_hanging = true;
    fire(&h, "Wait", 990);
    tick(&h, 29);
    cr_expect_eq(size_of(&h, "b"), START, "not yet");
    tick(&h, 2);
    cr_expect_eq(size_of(&h, "b"), START + 2, "%s", said(&h));
    cr_expect(is_up_locked(&h, "a"), "it backs off");
    end(&h);
}

/* Else the same nodes might come twice. */
Test(engine_assignments, while_its_request_is_open_nobody_else_gets_a_share)
{
    WITH_WORLD(h, workers);
    world.pods = 2;
    harness_target(&h, "a")->is_hanging = true;
    fire(&h, "Wait", 990);
    h.hold_commits = true;
    harness_target(&h, "a")->is_hanging = false;
    harness_settle(&h); /* decided, and about to be sent */
    harness_target(&h, "a")->is_hanging = true;
    h.hold_commits = false;
    harness_settle(&h);
    const char *text = said(&h);
    cr_assert(has(text, "scale a 4>6") && !has(text, "acted a"), "%s", text);
    tick(&h, 100);
    cr_expect_eq(size_of(&h, "b"), START, "%s", said(&h));
    cr_expect_not(is_up_locked(&h, "a"), "nothing has failed");
    harness_target(&h, "a")->is_hanging = false;
    harness_settle(&h);
    tick(&h, 60);
    cr_expect_eq(size_of(&h, "a") + size_of(&h, "b"), 2 * START + 2, "%s", said(&h));
    end(&h);
}

Test(engine_assignments, an_increase_in_doubt_does_not_hold_up_the_other_groups)
{
    WITH_WORLD(h, workers);
    world.pods = 2;
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Wait", 990);
    const char *text = said(&h);
    cr_expect(has(text, "acted a 4>6 timeout"), "%s", text);
    cr_expect(has(text, "acted b 4>6 applied"), "at once: %s", text);
    cr_expect_eq(find_member("workers", "a")->closed, AS_REASON_COOLDOWN);
    cr_expect_eq(find_member("workers", "a")->in_doubt, 2, "it may have been accepted");
    cr_expect(find_member("workers", "a")->open_at.set);
    tick(&h, 280);
    text = said(&h);
    cr_expect_not(has(text, "scale a"), "it backs off: %s", text);
    tick(&h, 40);
    cr_expect_eq(find_member("workers", "a")->in_doubt, 0, "it is lost");
    cr_expect_eq(find_member("workers", "a")->closed, AS_REASON_SCALED);
    end(&h);
}

Test(engine_assignments, an_increase_in_doubt_that_was_accepted_stays)
{
    WITH_WORLD(h, workers);
    world.pods = 2;
    harness_script(&h, (struct scale_script){
                           .outcome = AS_REASON_TIMEOUT, .is_ambiguous = true, .is_done = true});
    harness_target(&h, "a")->is_hanging = false;
    fire(&h, "Wait", 990);
    tick(&h, 60);
    const char *text = said(&h);
    cr_expect(has(text, "acted a 4>6 applied"), "found later: %s", text);
    cr_expect_eq(size_of(&h, "a"), START + 2);
    cr_expect_eq(find_member("workers", "a")->in_doubt, 0);
    tick(&h, 300);
    cr_expect_eq(size_of(&h, "a"), START + 2, "%s", said(&h));
    cr_expect_eq(find_member("workers", "a")->surplus, 2);
    cr_expect(find_member("workers", "a")->surplus_since.set);
    cr_expect_eq(find_member("workers", "b")->surplus, 0);
    world.pods = 0;
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "a";
    fire(&h, "Idle", 990);
    tick(&h, 120);
    cr_expect_eq(size_of(&h, "a"), START + 1, "%s", said(&h));
    cr_expect_eq(find_member("workers", "a")->surplus, 0, "`take` has considered all nodes");
    end(&h);
}

Test(engine_assignments, surplus_nodes_are_remembered_over_a_restart)
{
    WITH_WORLD(h, workers);
    world.pods = 2;
    harness_script(&h, (struct scale_script){
                           .outcome = AS_REASON_TIMEOUT, .is_ambiguous = true, .is_done = true});
    fire(&h, "Wait", 990);
    tick(&h, 60);
    const as_maybe_time since = find_member("workers", "a")->surplus_since;
    cr_assert_eq(find_member("workers", "a")->surplus, 2);
    harness_crash(&h, 10);
    fire(&h, "Wait", 990);
    tick(&h, 60);
    cr_expect_eq(find_member("workers", "a")->surplus, 2);
    cr_expect_eq(find_member("workers", "a")->surplus_since.at.us, since.at.us);
    end(&h);
}

Test(engine_assignments, a_group_backs_off_for_nodes_of_others_that_do_not_register)
{
    WITH_WORLD(h, workers);
    world.pods = 2;
    world.unregistered = 1;
    fire(&h, "Wait", 990);
    tick(&h, 30);
    const char *text = said(&h);
    cr_expect(has(text, "acted b 4>6 applied"), "%s", text);
    cr_expect_not(has(text, "scale a"), "%s", text);
    const struct as_pool_member *member = find_member("workers", "a");
    cr_expect_eq(member->closed, AS_REASON_COOLDOWN);
    cr_expect(member->open_at.set);
    cr_expect_eq(member->unregistered, 1);
    tick(&h, 300);
    cr_expect_eq(find_member("workers", "a")->closed, AS_REASON_SCALED, "five minutes");
    world.unregistered = 2;
    tick(&h, 30);
    cr_expect_eq(find_member("workers", "a")->closed, AS_REASON_COOLDOWN, "one more");
    tick(&h, 300);
    cr_expect_eq(find_member("workers", "a")->closed, AS_REASON_COOLDOWN, "ten minutes");
    end(&h);
}

/* Its nodes may be marked: another decision would mark others. */
Test(engine_assignments, during_a_decrease_in_doubt_other_groups_grow_and_no_other_node_leaves)
{
    WITH_WORLD(h, workers);
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "b";
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Idle", 990);
    cr_expect(has(said(&h), "acted b 4>3 timeout"));
    cr_expect(as_moment_is_set(see(&h, "workers")->down_locked_until), "it may be done");
    harness_target(&h, "b")->is_hanging = true;
    world.unneeded[0].group = "a";
    world.pods = 2;
    fire(&h, "Wait", 990);
    tick(&h, 60);
    const char *text = said(&h);
    cr_expect(has(text, "acted a 4>6 applied"), "%s", text);
    cr_expect_not(has(text, "acted a 6>5"), "%s", text);
    cr_expect_eq(find_member("workers", "b")->closed, AS_REASON_IN_PROGRESS);
    cr_expect(find_member("workers", "a")->down_in_doubt);
    cr_expect_not(is_up_locked(&h, "b"), "no increase has failed");
    end(&h);
}

Test(engine_assignments, a_decrease_that_fails_again_and_again_is_proven_anew)
{
    WITH_WORLD(h, workers);
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "b";
    for (int i = 0; i < 8; i++)
        harness_script(&h,
                       (struct scale_script){.outcome = AS_REASON_TIMEOUT, .is_ambiguous = true});
    fire(&h, "Idle", 990);
    tick(&h, 29);
    cr_expect(has(said(&h), "scale b"), "it is tried again");
    tick(&h, 300);
    const char *text = said(&h);
    const char *again = strstr(text, "scale b"), *look = strstr(text, "look at workers");
    cr_expect(look && (!again || look < again), "%s", text);
    end(&h);
}

/* ---- `after`: pods grow after the nodes, and shrink before them */

/* `api` runs on the nodes of `named`. */
static struct spec make_ordered(const char *named)
{
    struct spec spec = workers;
    spec.targets[5] = (struct target_spec){.name = "api", .min = 1, .max = 9, .after = {named}};
    spec.rules[2] = (struct rule_spec){
        .name = "less", .match = {"alertname=Idle"}, .target = "api", .down = 1, .guard = "none"};
    return spec;
}

static void hold_nodes(struct harness *h, const char *named)
{
    const struct spec spec = make_ordered(named);
    begin(h, &spec);
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "b";
    harness_target(h, "api")->is_hanging = true;
    fire(h, "Idle", 990);
}

Test(engine_assignments, a_pool_waits_with_its_decrease_for_what_runs_on_it)
{
    struct harness h = {0};
    hold_nodes(&h, "workers");
    const char *text = said(&h);
    cr_expect(has(text, "decided workers 8 in_progress (7) by idle waits for api"), "%s", text);
    cr_expect_not(has(text, "decided b"), "no share: %s", text);
    harness_target(&h, "api")->is_hanging = false;
    harness_settle(&h);
    text = said(&h);
    const char *pods = strstr(text, "acted api 4>3 applied");
    cr_assert(pods && has(pods, "scale b 4>3 without n1"), "%s", text);
    end(&h);
}

Test(engine_assignments, a_pool_waits_for_no_longer_than_thirty_seconds)
{
    struct harness h = {0};
    hold_nodes(&h, "workers");
    tick(&h, 29);
    cr_expect_eq(size_of(&h, "b"), START, "%s", said(&h));
    tick(&h, 1);
    cr_expect_eq(size_of(&h, "b"), START - 1, "%s", said(&h));
    end(&h);
}

/* It is not given up meanwhile. */
Test(engine_assignments, a_share_waits_for_what_runs_on_its_group)
{
    struct harness h = {0};
    hold_nodes(&h, "b");
    const char *text = said(&h);
    cr_expect(has(text, "decided b 4 in_progress (3) by idle waits for api"), "%s", text);
    tick(&h, 29);
    cr_expect_eq(size_of(&h, "b"), START);
    (void)said(&h);
    tick(&h, 6);
    text = said(&h);
    cr_expect(has(text, "scale b 4>3 without n1"), "%s", text);
    cr_expect_not(has(text, "look at workers; decided workers 8>7"), "the same share: %s", text);
    end(&h);
}

/* The pool names `api` here: as long as a share of its decrease is open, it is being decreased. */
Test(engine_assignments, a_target_waits_with_its_decrease_for_the_shares_of_a_pool)
{
    struct spec spec = make_ordered(NULL);
    spec.targets[4].after[0] = "api";
    spec.rules[2].match[0] = "alertname=Less";
    WITH_WORLD(h, spec);
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "b";
    harness_target(&h, "b")->is_hanging = true;
    fire(&h, "Idle", 990);
    fire(&h, "Less", 990);
    const char *text = said(&h);
    cr_expect(has(text, "decided api 4 in_progress (3) by less waits for workers"), "%s", text);
    harness_target(&h, "b")->is_hanging = false;
    harness_settle(&h);
    text = said(&h);
    const char *nodes = strstr(text, "acted b 4>3 applied");
    cr_assert(nodes && has(nodes, "acted api 4>3 applied"), "%s", text);
    end(&h);
}

Test(engine_assignments, a_target_does_not_wait_with_its_decrease_for_a_pool_that_grows)
{
    struct spec spec = make_ordered(NULL);
    spec.targets[4].after[0] = "api";
    spec.rules[2].match[0] = "alertname=Less";
    WITH_WORLD(h, spec);
    world.pods = 1;
    harness_target(&h, "a")->is_hanging = true;
    fire(&h, "Wait", 990);
    fire(&h, "Less", 990);
    const char *text = said(&h);
    cr_expect(has(text, "acted api 4>3 applied"), "%s", text);
    end(&h);
}

Test(engine_assignments, a_share_waits_for_a_place_within_the_limits)
{
    struct harness h = {.config.limits = {.actions_max = 1, .actions_per_us = 90 * AS_US_PER_S}};
    begin(&h, &workers);
    world.pods = 3;
    fire(&h, "Wait", 990);
    const char *text = said(&h);
    cr_expect(has(text, "acted a 4>6 applied"), "the pool's decision takes no place: %s", text);
    cr_expect(has(text, "decided b 4 budget (5) by wait"), "%s", text);
    tick(&h, 80);
    cr_expect_not(is_up_locked(&h, "b"), "it is not given up");
    tick(&h, 12);
    cr_expect_eq(size_of(&h, "b"), START + 1, "%s", said(&h));
    end(&h);
}

Test(engine_assignments, a_decrease_that_waits_for_a_place_is_proven_anew)
{
    struct harness h = {.config.limits = {.actions_max = 1, .actions_per_us = 90 * AS_US_PER_S}};
    struct spec spec = workers;
    spec.rules[1].guard = "up == 1";
    begin(&h, &spec);
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "a";
    world.unneeded[1].node = "n2";
    world.unneeded[1].group = "b";
    h.queries[0].text = "up == 1";
    h.queries[0].result = (struct as_query_result){.value = 1};
    fire(&h, "Idle", 990);
    const char *text = said(&h);
    cr_expect(has(text, "acted a 4>3 applied"), "%s", text);
    cr_expect(has(text, "decided b 4 budget (3) by idle"), "%s", text);
    world.unneeded[0].node = "n2";
    world.unneeded[0].group = "b";
    h.queries[0].result = (struct as_query_result){.error = "no data"};
    tick(&h, 100);
    cr_expect_eq(size_of(&h, "b"), START, "monitoring was lost meanwhile: %s", said(&h));
    h.queries[0].result = (struct as_query_result){.value = 1};
    tick(&h, 100);
    cr_expect_eq(size_of(&h, "b"), START - 1, "%s", said(&h));
    end(&h);
}

Test(engine_assignments, what_a_paused_group_cannot_do_others_do)
{
    WITH_WORLD(h, workers);
    world.pods = 2;
    harness_target(&h, "a")->is_hanging = true;
    fire(&h, "Wait", 990);
    harness_order(&h,
                  (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = "a"});
    harness_target(&h, "a")->is_hanging = false;
    harness_settle(&h);
    const char *text = said(&h);
    cr_expect(has(text, "decided a 4 paused (6) by wait"), "%s", text);
    cr_expect(has(text, "acted b 4>6 applied"), "%s", text);
    cr_expect_eq(find_member("workers", "a")->closed, AS_REASON_PAUSED);
    end(&h);
}

Test(engine_assignments, the_kill_switch_stops_shares)
{
    WITH_WORLD(h, workers);
    world.pods = 3;
    harness_target(&h, "a")->is_hanging = harness_target(&h, "b")->is_hanging = true;
    fire(&h, "Wait", 990);
    harness_halt(&h, "stop");
    harness_target(&h, "a")->is_hanging = harness_target(&h, "b")->is_hanging = false;
    harness_settle(&h);
    tick(&h, 60);
    cr_expect_not(has(said(&h), "scale "));
    harness_halt(&h, NULL);
    tick(&h, 60);
    cr_expect_eq(size_of(&h, "a") + size_of(&h, "b"), 2 * START + 3);
    end(&h);
}

Test(engine_assignments, after_a_crash_between_two_shares_the_pool_decides_anew)
{
    WITH_WORLD(h, workers);
    world.pods = 3;
    harness_target(&h, "b")->is_hanging = true;
    fire(&h, "Wait", 990);
    cr_assert_eq(size_of(&h, "a"), 6, "%s", said(&h));
    harness_target(&h, "b")->is_hanging = false;
    harness_crash(&h, 2);
    cr_expect(is_up_locked(&h, "workers"), "the lock was stored with the first share");
    cr_expect_eq(size_of(&h, "b"), START);
    tick(&h, 190);
    cr_expect_eq(size_of(&h, "a") + size_of(&h, "b"), 2 * START + 3, "no more and no less");
    end(&h);
}

Test(engine_assignments, new_rules_end_open_shares)
{
    WITH_WORLD(h, workers);
    struct spec changed = workers;
    changed.rules[0].name = "wait2";
    world.pods = 2;
    harness_target(&h, "a")->is_hanging = true;
    fire(&h, "Wait", 990);
    harness_reload(&h, &changed);
    harness_target(&h, "a")->is_hanging = false;
    (void)said(&h);
    harness_settle(&h);
    tick(&h, 20);
    const char *text = said(&h);
    cr_expect_not(has(text, "scaled by wait;"), "%s", text);
    cr_expect_eq(size_of(&h, "a"), START + 2, "decided anew: %s", text);
    end(&h);
}

Test(engine_assignments, an_order_for_a_group_comes_before_its_share)
{
    WITH_WORLD(h, workers);
    world.pods = 1;
    harness_target(&h, "a")->is_hanging = true;
    fire(&h, "Wait", 990);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "a", .replicas = 6});
    harness_target(&h, "a")->is_hanging = false;
    harness_settle(&h);
    tick(&h, 40);
    const char *text = said(&h);
    cr_expect(has(text, "ordered a 4>6 applied"), "%s", text);
    cr_expect_eq(size_of(&h, "a"), 6, "the share is there already: %s", text);
    cr_expect_not(is_up_locked(&h, "a"), "nothing has failed");
    cr_expect_eq(size_of(&h, "b"), START);
    end(&h);
}

Test(engine_assignments, a_pool_takes_no_ordered_size)
{
    WITH_WORLD(h, workers);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "workers", .replicas = 9});
    cr_expect(has(said(&h), "scale workers 9 refused"));
    cr_expect_str_eq(h.last_message,
                     "a pool has no size of its own: order the size of one of its groups");
    end(&h);
}

Test(engine_assignments, in_a_dry_run_of_all_the_pool_says_what_it_would_do)
{
    struct harness h = {.config.dry_run = true};
    begin(&h, &workers);
    world.pods = 2;
    fire(&h, "Wait", 990);
    const char *text = said(&h);
    cr_expect(has(text, "decided workers 8 dry_run (10) by wait"), "%s", text);
    cr_expect_not(has(text, "decided a"), "no share: %s", text);
    cr_expect_eq(find_member("workers", "a")->closed, AS_REASON_SCALED, "that is not the group's");
    end(&h);
}

Test(engine_assignments, a_group_in_dry_run_is_closed)
{
    struct spec spec = workers;
    spec.targets[0].dry_run = true;
    WITH_WORLD(h, spec);
    world.pods = 2;
    fire(&h, "Wait", 990);
    cr_expect_eq(find_member("workers", "a")->closed, AS_REASON_DRY_RUN);
    cr_expect_eq(size_of(&h, "b"), START + 2);
    end(&h);
}

static const struct spec two_pools = {
    .targets = {{.name = "a", .is_group = true, .cluster = "c", .max = 9},
                {.name = "b", .is_group = true, .cluster = "c", .max = 9},
                {.name = "one", .pool = {"a"}, .max = 20},
                {.name = "two", .pool = {"b"}, .max = 20}},
    .rules =
        {{.name = "wait1", .match = {"alertname=Wait"}, .target = "one", .fit = true, .every = 15},
         {.name = "wait2", .match = {"alertname=Wait"}, .target = "two", .fit = true, .every = 15}},
};

Test(engine_assignments, two_pools_do_not_both_buy_for_one_pod)
{
    WITH_WORLD(h, two_pools);
    world.pods = 1;
    fire(&h, "Wait", 990);
    tick(&h, 60);
    cr_expect_eq(size_of(&h, "a") + size_of(&h, "b"), 2 * START + 1, "%s", said(&h));
    end(&h);
}

Test(engine_assignments, pools_of_a_cluster_decide_in_turn)
{
    WITH_WORLD(h, two_pools);
    world.pods = 12; /* more than one of them has room for */
    harness_target(&h, "a")->is_hanging = harness_target(&h, "b")->is_hanging = true;
    fire(&h, "Wait", 990);
    const char *text = said(&h);
    cr_expect_neq(has(text, "look at one"), has(text, "look at two"), "one of them: %s", text);
    harness_target(&h, "a")->is_hanging = harness_target(&h, "b")->is_hanging = false;
    harness_settle(&h);
    tick(&h, 20);
    cr_expect_eq(size_of(&h, "a"), 9, "%s", said(&h));
    cr_expect_eq(size_of(&h, "b"), 9);
    end(&h);
}

Test(engine_assignments, a_pool_that_keeps_buying_lets_others_have_their_turn)
{
    WITH_WORLD(h, two_pools);
    world.pods = 12;
    harness_target(&h, "a")->is_hanging = harness_target(&h, "b")->is_hanging = true;
    fire(&h, "Wait", 990);
    fire(&h, "Wait,job=x", 991); /* news for the pool that has its turn */
    const bool is_one = has(said(&h), "look at one");
    harness_target(&h, is_one ? "a" : "b")->is_hanging = false;
    harness_settle(&h);
    const char *text = said(&h), *first = strstr(text, "look at ");
    cr_assert_not_null(first, "%s", text);
    cr_expect(has(first, is_one ? "look at two" : "look at one") &&
                  strncmp(first, is_one ? "look at two" : "look at one", 11) == 0,
              "%s", text);
    end(&h);
}

Test(engine_assignments, what_is_unneeded_is_remembered_in_memory_alone)
{
    WITH_WORLD(h, workers);
    struct spec locked = workers;
    locked.targets[4].dry_run = true; /* it stays unneeded */
    harness_reload(&h, &locked);
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "b";
    fire(&h, "Idle", 990);
    tick(&h, 16);
    cr_expect_eq(world.known, 1);
    harness_reload(&h, &locked);
    cr_expect_eq(world.known, 0, "new rules begin anew");
    tick(&h, 16);
    cr_assert_eq(world.known, 1);
    harness_crash(&h, 1);
    cr_expect_eq(world.known, 0, "so does a start");
    tick(&h, 16);
    cr_assert_eq(world.known, 1);
    world.is_unknown = true;
    tick(&h, 16);
    tick(&h, 16);
    cr_expect_eq(world.known, 0, "so do facts that are not there");
    end(&h);
}

Test(engine_assignments, what_was_asked_is_stored_before_the_increase)
{
    WITH_WORLD(h, workers);
    world.pods = 1;
    world.asks = true;
    harness_target(&h, "a")->is_hanging = true;
    fire(&h, "Wait", 990);
    harness_crash(&h, 1);
    cr_expect_eq(world.known_asked, 1);
    end(&h);
}

Test(engine_assignments, what_was_not_asked_after_all_is_not_stored)
{
    struct harness h = {.config.dry_run = true};
    begin(&h, &workers);
    world.pods = 1;
    world.asks = true;
    fire(&h, "Wait", 990);
    tick(&h, 16);
    cr_expect_eq(world.known_asked, 0);
    end(&h);
}

Test(engine_assignments, without_facts_nothing_is_bought_or_taken)
{
    WITH_WORLD(h, workers);
    world.pods = 2;
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "b";
    world.is_unknown = true;
    fire(&h, "Wait", 990);
    fire(&h, "Idle", 990);
    const char *text = said(&h);
    cr_expect(has(text, "metric_unavailable"), "%s", text);
    cr_expect_not(has(text, "scale "), "%s", text);
    end(&h);
}

Test(engine_assignments, to_take_needs_a_proof_at_that_moment)
{
    struct spec spec = workers;
    spec.rules[1].guard = NULL; /* and no watchdog has been seen */
    WITH_WORLD(h, spec);
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "b";
    fire(&h, "Idle", 990);
    const char *text = said(&h);
    cr_expect(has(text, "decided workers 8 guarded"), "%s", text);
    cr_expect_eq(size_of(&h, "b"), START);
    end(&h);
}

Test(engine_assignments, a_guard_is_asked_before_the_look)
{
    struct spec spec = workers;
    spec.rules[1].guard = "up == 1";
    WITH_WORLD(h, spec);
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "b";
    h.queries[0].text = "up == 1";
    h.queries[0].result = (struct as_query_result){.value = 1};
    fire(&h, "Idle", 990);
    const char *text = said(&h);
    cr_expect(has(text, "query up == 1; look at workers"), "%s", text);
    cr_expect(has(text, "scale b 4>3 without n1"), "%s", text);
    end(&h);
}

static const struct spec lone = {
    .targets = {{.name = "build", .is_group = true, .cluster = "c", .min = 1, .max = 9, .up = 60},
                {.name = "b", .is_group = true, .cluster = "c", .max = 9}},
    .rules =
        {{.name = "wait", .match = {"alertname=Wait"}, .target = "build", .fit = true, .every = 15},
         {.name = "idle",
          .match = {"alertname=Idle"},
          .target = "build",
          .take = true,
          .every = 15,
          .guard = "none"}},
};

Test(engine_assignments, a_group_by_itself_acts_directly)
{
    WITH_WORLD(h, lone);
    world.pods = 1;
    fire(&h, "Wait", 990);
    const char *text = said(&h);
    cr_expect(has(text, "look at build; decided build 4>5 scaled by wait; scale build 4>5"), "%s",
              text);
    const struct as_pool_request *request = &find_look("build")->request;
    cr_assert_eq(request->member_count, 2);
    cr_expect(request->members[0].is_member && !request->members[1].is_member);
    world.pods = 0;
    world.unneeded[0].node = "n1";
    world.unneeded[0].group = "build";
    fire(&h, "Idle", 990);
    cr_expect(has(said(&h), "scale build 5>4 without n1"));
    end(&h);
}

Test(engine_assignments, a_group_by_itself_backs_off_when_its_increase_fails)
{
    WITH_WORLD(h, lone);
    world.pods = 1;
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_REJECTED});
    fire(&h, "Wait", 990);
    cr_expect(is_up_locked(&h, "build"));
    tick(&h, 200);
    cr_expect_eq(size_of(&h, "build"), START);
    tick(&h, 120);
    cr_expect_eq(size_of(&h, "build"), START + 1, "after five minutes: %s", said(&h));
    end(&h);
}

Test(engine_assignments, an_order_does_not_wait_for_a_turn)
{
    struct spec spec = lone;
    spec.targets[2] = (struct target_spec){.name = "p", .pool = {"b"}, .max = 9};
    spec.rules[2] = (struct rule_spec){
        .name = "wait2", .match = {"alertname=More"}, .target = "p", .fit = true, .every = 15};
    WITH_WORLD(h, spec);
    world.pods = 1;
    harness_target(&h, "b")->is_hanging = true;
    fire(&h, "More", 990); /* has its turn now */
    fire(&h, "Wait", 990);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "build", .replicas = 7});
    cr_expect_eq(size_of(&h, "build"), 7, "%s", said(&h));
    end(&h);
}

Test(engine_assignments, an_answer_that_nobody_waits_for_changes_nothing)
{
    WITH_WORLD(h, workers);
    fire(&h, "Wait", 990);
    struct as_effects effects;
    const struct as_observation observation = {.outcome = AS_REASON_APPLIED, .replicas = 99};
    as_engine_step(h.engine,
                   &(struct as_event){.kind = AS_EVENT_OBSERVED,
                                      .call_id = 123456,
                                      .mono = h.mono,
                                      .wall = h.wall,
                                      .observation = &observation},
                   &effects);
    cr_expect_eq(effects.count, 0);
    cr_expect_eq(see(&h, "workers")->replicas, 2 * START);
    end(&h);
}
