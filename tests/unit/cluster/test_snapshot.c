/*
 * The snapshot of a pool, from the facts of its cluster: sections 4.1 to 4.3 and 5.1 of the
 * contract, case by case; support/nodes_text.h has the words of nodes and pods.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/cluster/node_sums.h>
#include <alertscaler/cluster/snapshot.h>

#include "../../support/nodes_text.h"

#define NODES_MAX  16
#define PODS_MAX   64
#define GROUPS_MAX 4
#define NOW_US     (INT64_C(1000) * AS_US_PER_H)
#define NOW        ((as_wall_time){NOW_US})
#define DIGEST     UINT64_C(0x1fddc6c94223e459)
#define AGO(time)  ((as_wall_time){NOW_US - (time)})

static struct nodes_text texts;
static struct as_arena arena;
static struct as_node_fact nodes[NODES_MAX];
static struct as_pod_fact pods[PODS_MAX];
static struct as_budget_fact budgets[4];
static struct as_cluster cluster;
static struct as_snapshot_member members[GROUPS_MAX];
static const char *names[GROUPS_MAX][NODES_MAX];
static struct as_pool_config config;
static struct as_snapshot_request request;
static struct as_snapshot snapshot;
static char text[4096];

static void begin(void)
{
    nodes_text_init(&texts);
    arena = AS_ARENA_INIT;
    config = (struct as_pool_config){.group_count = 1, .expendable_below = -10};
    memset(members, 0, sizeof(members));
    cluster = (struct as_cluster){.nodes = nodes, .pods = pods, .budgets = budgets};
    request = (struct as_snapshot_request){
        .cluster = &cluster, .members = members, .config = &config, .now = NOW, .seed = 7};
    for (size_t i = 0; i < GROUPS_MAX; i++)
        members[i] = (struct as_snapshot_member){
            .name = (const char *[]){"a", "b", "c", "d"}[i],
            .id = (const char *[]){"id-a", "id-b", "id-c", "id-d"}[i],
            .is_member = true,
            .max = 100,
            .closed = AS_REASON_SCALED,
            .nodes = names[i],
            .ready_timeout_us = 15 * AS_US_PER_MIN,
            .unneeded = {.below = 50, .keep = AS_KEEP_DEFAULT},
        };
}

static void end(void)
{
    as_arena_deinit(&arena);
    nodes_text_deinit(&texts);
}

TestSuite(snapshot, .init = begin, .fini = end);

/* A cluster: "a cpu:10; cpu:1; cpu:2 | - cpu:5": node n0 of group a with two pods, n1 of no group.
 * All nodes are an hour old. */
static void read_node(char *line)
{
    const uint32_t index = (uint32_t)cluster.node_count++;
    const char name[] = {'n', (char)('0' + index), '\0'};
    char *words = strsep(&line, ";"), *pod;

    cr_assert_lt(index, NODES_MAX);
    words += strspn(words, " ");
    nodes[index] = nodes_text_read_node(&texts, name, words + 1);
    nodes[index].created = AGO(AS_US_PER_H);
    if (*words != '-') {
        const size_t group = (size_t)(*words - 'a');
        cr_assert_lt(group, GROUPS_MAX);
        names[group][members[group].node_count++] = nodes[index].name;
        members[group].size++;
        if (request.member_count <= group)
            request.member_count = group + 1;
    }
    while ((pod = strsep(&line, ";")) != NULL)
        pods[cluster.pod_count++] =
            (struct as_pod_fact){.pod_class = nodes_text_read_pod(&texts, pod),
                                 .node = index,
                                 .is_bound = true,
                                 .nominated = AS_NO_NODE,
                                 .created = AGO(AS_US_PER_H)};
}

static void read_cluster(const char *lines)
{
    char *rest = as_arena_strdup(&texts.arena, lines), *line;

    while ((line = strsep(&rest, "|")) != NULL)
        read_node(line);
    cluster.resources = texts.names;
}

/* "3 cpu:5; 1 cpu:2": pods that the scheduler called Unschedulable; the first are the oldest. Equal
 * lines are one pod class. */
static void read_pending(const char *lines)
{
    char *rest = lines ? as_arena_strdup(&texts.arena, lines) : NULL, *line;
    int64_t age = AS_US_PER_MIN;

    while ((line = strsep(&rest, ";")) != NULL) {
        char *words;
        const long count = strtol(line, &words, 10);
        const struct as_pod_class *pod_class = nodes_text_read_pod(&texts, words);

        for (long i = 0; i < count; i++)
            pods[cluster.pod_count++] = (struct as_pod_fact){.pod_class = pod_class,
                                                             .node = AS_NO_NODE,
                                                             .nominated = AS_NO_NODE,
                                                             .is_unschedulable = true,
                                                             .created = AGO(age)};
        age -= AS_US_PER_S;
    }
    cluster.resources = texts.names;
}

static void make_with(uint64_t fits)
{
    struct as_snapshot_work *work = as_snapshot_begin(&request, &arena);

    memset(&snapshot, 0xff, sizeof(snapshot));
    while (!as_snapshot_step(work, fits, &snapshot))
        ;
}

static void print_pods(struct as_buf *out, const struct as_snapshot_pods *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cr_assert_lt(list[i].pod_class, snapshot.pod_class_count);
        as_buf_printf(
            out, " %ux%ld", list[i].count,
            (long)snapshot.pod_classes[list[i].pod_class].pod.requests.amount[AS_RES_CPU]);
    }
}

/* "a+1 b:at_max wait 2x5 move n1:20 1x2 take n2:300 keep utilized:1": on its way, closed; pending
 * pods by their cpu; candidates with utilization and pods; nodes with free cpu; who stays. */
static const char *print(void)
{
    struct as_buf out = AS_BUF_INIT(sizeof(text));

    for (size_t i = 0; i < snapshot.group_count; i++) {
        const struct as_snapshot_group *group = &snapshot.groups[i];
        as_buf_printf(&out, "%s%s", i > 0 ? " " : "", group->name);
        if (group->coming > 0)
            as_buf_printf(&out, "+%d", group->coming);
        if (group->overdue > 0)
            as_buf_printf(&out, "-%d", group->overdue);
        if (group->closed != AS_REASON_SCALED)
            as_buf_printf(&out, ":%s", as_reason_get_word(group->closed));
    }
    if (snapshot.pending_count > 0)
        as_buf_append_str(&out, " wait");
    print_pods(&out, snapshot.pending, snapshot.pending_count);
    for (size_t i = 0; i < snapshot.node_count; i++) {
        const struct as_snapshot_node *node = &snapshot.nodes[i];
        if (node->is_candidate)
            as_buf_printf(&out, " move %s:%.0f", node->node.name, node->utilization);
        else
            as_buf_printf(&out, " take %s:%ld", node->node.name,
                          (long)node->left.amount[AS_RES_CPU]);
        print_pods(&out, node->pods, node->pod_count);
    }
    for (enum as_stay i = 0; i < AS_STAY_COUNT; i++)
        if (snapshot.kept[i] > 0)
            as_buf_printf(&out, " %s:%lu", as_stay_get_word(i), (unsigned long)snapshot.kept[i]);
    snprintf(text, sizeof(text), "%s", out.size ? out.data : "");
    as_buf_deinit(&out);
    return text;
}

static void check(const char *wanted)
{
    make_with(1000000);
    cr_assert_str_eq(print(), wanted);
}

struct row {
    const char *cluster, *pending, *wanted;
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            end();
            begin();
        }
        read_cluster(rows[i].cluster);
        read_pending(rows[i].pending);
        make_with(1000000);
        cr_expect_str_eq(print(), rows[i].wanted, "%s ++ %s:\n  %s", rows[i].cluster,
                         rows[i].pending ? rows[i].pending : "", text);
    }
}

/* Pods that wait */

Test(snapshot, pods_wait_that_find_no_room_on_any_open_ready_node)
{
    static const struct row rows[] = {
        {"a cpu:10 memory:100; cpu:8", "5 cpu:1", "a wait 3x1 utilized:1"},
        /* a node in no group has room too */
        {"a cpu:10 memory:100; cpu:8|- cpu:10 memory:100", "5 cpu:1", "a no_group:1 utilized:1"},
        {"a cpu:10 memory:100; cpu:8|- cpu:10 memory:100 notready", "5 cpu:1",
         "a wait 3x1 no_group:1 utilized:1"},
        {"a cpu:10 memory:100; cpu:8|- cpu:10 memory:100 cordoned", "5 cpu:1",
         "a wait 3x1 no_group:1 utilized:1"},
        {"a cpu:10 memory:100; cpu:8|- cpu:10 memory:100 !k=v/N", "5 cpu:1",
         "a wait 3x1 no_group:1 utilized:1"},
        /* the oldest find room first */
        {"a cpu:10 memory:100; cpu:8", "1 cpu:2; 1 cpu:1", "a wait 1x1 utilized:1"},
        {"a cpu:10 memory:100; cpu:8", "1 cpu:1; 1 cpu:2", "a wait 1x2 utilized:1"},
        /* nobody waits for a DaemonSet's pod, nor for a mirror pod */
        {"a cpu:10 memory:100; cpu:8", "5 cpu:9 daemon; 5 cpu:9 mirror", "a utilized:1"},
        /* without a place even for one */
        {"a cpu:10 memory:100; cpu:8", "2 cpu:100; 1 z=1", "a wait 2x100 1x0 utilized:1"},
    };

    check_rows(rows, AS_ARRAY_SIZE(rows));
}

static struct as_pod_fact *read_waiting_pod(void)
{
    read_cluster("a cpu:10 memory:100; cpu:8|a cpu:10 memory:100; cpu:8");
    read_pending("1 cpu:5");
    return &pods[cluster.pod_count - 1];
}

Test(snapshot, pods_do_not_wait_that_the_scheduler_has_not_refused)
{
    read_waiting_pod()->is_unschedulable = false;
    check("a utilized:2");
    cr_assert_eq(snapshot.pending_pods, 0);
}

Test(snapshot, pods_that_are_being_deleted_do_not_wait)
{
    read_waiting_pod()->is_leaving = true;
    check("a utilized:2");
}

Test(snapshot, pods_of_a_priority_below_minus_10_do_not_wait)
{
    struct as_pod_fact *pod = read_waiting_pod();
    struct as_pod_class pod_class = *pod->pod_class;

    pod->pod_class = &pod_class;
    pod_class.priority = -10;
    check("a wait 1x5 utilized:2");
    pod_class.priority = -11;
    check("a utilized:2");
}

/* As the scheduler would: the same order says which pods are part of the snapshot first. */
Test(snapshot, room_goes_to_the_highest_priority_then_to_the_oldest)
{
    read_cluster("a cpu:10 memory:100; cpu:8");
    read_pending("2 cpu:2; 1 cpu:1; 2 cpu:2 memory:1");
    check("a wait 1x2 1x1 2x2 utilized:1");
    struct as_pod_class young = *pods[4].pod_class, middle = *pods[3].pod_class;

    pods[4].pod_class = pods[5].pod_class = &young;
    young.priority = 100;
    check("a wait 1x2 2x2 1x1 utilized:1");
    cr_expect_eq(snapshot.pod_classes[snapshot.pending[0].pod_class].pod.priority, 100);
    pods[3].pod_class = &middle;
    middle.priority = 50;
    check("a wait 1x2 1x1 2x2 utilized:1");
    young.priority = -5; /* the middle one finds room, then nothing is left for the others */
    check("a wait 2x2 2x2 utilized:1");
}

/* Pods below `expendable_below`: those that may preempt have their room, and no node is busy with
 * them. */
Test(snapshot, expendable_pods_take_no_room)
{
    static const struct row rows[] = {
        {"a cpu:10 memory:100; cpu:8 low", "5 cpu:1", "a receives:1"},
        {"a cpu:10 memory:100; cpu:8 low", "5 cpu:1 never", "a wait 3x1 receives:1"},
        {"a cpu:10 memory:100; cpu:8", "5 cpu:1 never", "a wait 3x1 utilized:1"},
        /* the room of one pod only once */
        {"a cpu:10 memory:100; cpu:8 low", "6 cpu:1; 5 cpu:1 never", "a wait 5x1 utilized:1"},
        {"a cpu:10 memory:100; cpu:2 low; cpu:4", "6 cpu:1; 5 cpu:1 never",
         "a wait 5x1 utilized:1"},
        /* and they need no other place */
        {"a cpu:10 memory:100; cpu:8|a cpu:10 memory:100 ours; cpu:8 low", "1 cpu:2",
         "a+1 leaving:1 utilized:1"},
        {"a cpu:10 memory:100; cpu:8 low", "1 cpu:1 low", "a move n0:0"},
        /* and a pod that is placed in their room counts */
        {"a cpu:10 memory:100; cpu:5 low", "1 cpu:1", "a receives:1"},
        {"a cpu:10 memory:100; cpu:8 low", "1 cpu:6", "a utilized:1"},
    };

    check_rows(rows, AS_ARRAY_SIZE(rows));
    end();
    begin();
    read_cluster("a cpu:10 memory:100; cpu:8 low");
    read_pending("1 cpu:1");
    config.expendable_below = -20;
    check("a utilized:1");
}

/* By a budget, an annotation or `keep` they hold a node all the same. */
Test(snapshot, expendable_pods_hold_a_node_only_by_their_own_word)
{
    read_cluster("a cpu:10 memory:100; cpu:8 low");
    struct as_pod_class pod_class = *pods[0].pod_class;

    pods[0].pod_class = &pod_class;
    pod_class.unchecked = AS_UNCHECKED_AFFINITY;
    check("a move n0:0");
    cr_expect_eq(snapshot.nodes[0].expendable->amount[AS_RES_CPU], 8);
    cr_expect_eq(snapshot.groups[0].sums.requests[AS_RESOURCE_CPU], 0);
    pod_class.eviction = AS_EVICTION_REFUSED;
    check("a unevictable:1");
    pod_class.eviction = AS_EVICTION_LOCAL_STORAGE;
    check("a unevictable:1");
    pod_class.eviction = AS_EVICTION_ALLOWED;
    budgets[0] = (struct as_budget_fact){"default", "all", NULL, 0, .allowed = 0};
    cluster.budget_count = 1;
    check("a budget:1");
    budgets[0].allowed = 1;
    check("a move n0:0");
}

/* It has its room there; where the node leaves, it waits like any other. */
Test(snapshot, a_pod_that_is_nominated_takes_the_room_of_its_node)
{
    struct as_pod_fact *pod = read_waiting_pod();

    pods[1].pod_class = nodes_text_read_pod(&texts, "cpu:1");
    pod->nominated = 1;
    pods[cluster.pod_count++] =
        (struct as_pod_fact){.pod_class = nodes_text_read_pod(&texts, "cpu:5"),
                             .node = AS_NO_NODE,
                             .nominated = AS_NO_NODE,
                             .is_unschedulable = true,
                             .created = NOW};
    check("a wait 1x5 utilized:2");
    nodes[1].leaving = AS_NODE_LEAVING_OURS;
    nodes[1].is_cordoned = true;
    check("a+1 wait 2x5 leaving:1 utilized:1");
    cr_assert_eq(snapshot.pending_pods, 2);
}

Test(snapshot, pods_of_leaving_nodes_are_placed_first)
{
    read_cluster("a cpu:10 memory:100; cpu:6|a cpu:10 memory:100 ours; cpu:3; cpu:1 daemon");
    read_pending("1 cpu:2");
    check("a+1 wait 1x2 leaving:1 utilized:1");
    cr_assert_eq(snapshot.leaving_drained, 1);
    cr_assert_eq(snapshot.leaving_empty, 0);
}

Test(snapshot, nobody_makes_room_for_what_nobody_makes_anew)
{
    read_cluster("a cpu:10 memory:100; cpu:6|a cpu:10 memory:100 ours; cpu:3");
    struct as_pod_class pod_class = *pods[1].pod_class;
    pod_class.eviction = AS_EVICTION_UNREPLICATED;
    pods[1].pod_class = &pod_class;
    read_pending("1 cpu:2");
    check("a+1 leaving:1 utilized:1");
}

/* What is on its way */

Test(snapshot, what_is_neither_ready_nor_late_nor_refused_is_on_its_way)
{
    static const struct {
        int32_t size, min, refused, overdue;
        bool first_is_ready;
        int64_t age;
        const char *wanted;
    } rows[] = {
        {2, 0, 0, 0, true, AS_US_PER_H, "a"},
        {5, 0, 0, 0, true, AS_US_PER_H, "a+3"},
        {5, 0, 2, 0, true, AS_US_PER_H, "a+1"},
        {5, 0, 4, 0, true, AS_US_PER_H, "a"},
        {5, 0, -4, 0, true, AS_US_PER_H, "a+3"},
        {5, 0, 0, 2, true, AS_US_PER_H, "a+1-2"},
        {5, 4, 0, 2, true, AS_US_PER_H, "a+1-1"}, /* never below the minimum */
        {5, 9, 0, 2, true, AS_US_PER_H, "a+1"},
        {2, 0, 0, 0, false, AS_US_PER_H, "a"},     /* late */
        {2, 0, 0, 0, false, AS_US_PER_MIN, "a+1"}, /* it starts */
        {1, 0, 0, 0, true, AS_US_PER_H, "a"},      /* never below 0 */
        {-1, 0, 0, 0, true, AS_US_PER_H, "a:unreachable"},
        {INT32_MAX, 0, 0, 0, true, AS_US_PER_H, "a+2147483645:at_max"},
        {INT32_MAX, 0, INT32_MAX, INT32_MAX, true, AS_US_PER_H, "a-2147483647:at_max"},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (i > 0) {
            end();
            begin();
        }
        read_cluster("a cpu:10 memory:100; cpu:9|a cpu:10 memory:100; cpu:9");
        nodes[0].is_ready = rows[i].first_is_ready;
        nodes[0].created = AGO(rows[i].age);
        members[0].size = rows[i].size;
        members[0].min = rows[i].min;
        members[0].refused = rows[i].refused;
        members[0].overdue = rows[i].overdue;
        make_with(1000000);
        memset(snapshot.kept, 0, sizeof(snapshot.kept));
        snapshot.node_count = 0;
        cr_expect_str_eq(print(), rows[i].wanted, "%zu: %s", i, text);
    }
}

/* Another controller has requested them: they are no room, and the group does not grow. */
Test(snapshot, unregistered_nodes_are_not_waited_for)
{
    read_cluster("a cpu:10 memory:100; cpu:9");
    members[0].size = 3;
    members[0].unregistered = 2;
    make_with(1000000);
    cr_expect_eq(snapshot.groups[0].coming, 0);
    cr_expect_eq(snapshot.groups[0].size, 3, "they still count");
    cr_expect_eq(snapshot.groups[0].unregistered, 2);
    cr_expect_eq(snapshot.groups[0].closed, AS_REASON_COOLDOWN);
    members[0].backed_off = 2;
    make_with(1000000);
    cr_expect_eq(snapshot.groups[0].coming, 0);
    cr_expect_eq(snapshot.groups[0].closed, AS_REASON_SCALED, "the engine's back-off has ended");
}

Test(snapshot, a_group_with_marked_nodes_is_not_switched_off)
{
    read_cluster("a cpu:10 memory:100; cpu:9");
    nodes[0].leaving = AS_NODE_LEAVING_OURS;
    members[0].size = 0;
    members[0].min = 1;
    members[0].last = &(struct as_node_template){.source = AS_NODE_TEMPLATE_LAST};
    make_with(1000000);
    cr_expect_eq(snapshot.groups[0].closed, AS_REASON_SCALED);
}

Test(snapshot, an_increase_or_decrease_in_doubt_keeps_the_nodes)
{
    read_cluster("a cpu:10 memory:100");
    check("a move n0:0");
    members[0].in_doubt = 1;
    check("a in_progress:1");
    cr_expect_eq(snapshot.groups[0].in_doubt, 1);
    members[0].in_doubt = 0;
    members[0].down_in_doubt = true;
    check("a in_progress:1");
}

Test(snapshot, a_node_with_a_startup_taint_is_not_ready_yet)
{
    static const char *const taints[] = {"gpu"};

    read_cluster("a cpu:10 memory:100; cpu:9|a cpu:10 memory:100 !gpu=no/N");
    nodes[1].created = AGO(AS_US_PER_MIN);
    members[0].startup_taints = taints;
    members[0].startup_taint_count = 1;
    read_pending("1 cpu:5 ~/NX");
    check("a+1 wait 1x5 starting:1 utilized:1");
}

/* Its condition is Ready a moment before the node lifecycle controller takes the taint away. */
Test(snapshot, a_node_with_the_taint_of_a_new_node_is_on_its_way)
{
    read_cluster("a cpu:10 memory:100; cpu:9|a cpu:10 memory:100 !node.kubernetes.io/not-ready=/N");
    nodes[1].created = AGO(AS_US_PER_MIN);
    read_pending("1 cpu:5 ~/NX");
    check("a+1 wait 1x5 starting:1 utilized:1");
}

/* The provider's size does not have them any more. */
Test(snapshot, marked_nodes_are_no_part_of_the_size)
{
    read_cluster("a cpu:10 memory:100; cpu:9|a cpu:10 memory:100 ours cordoned");
    members[0].size = 2;
    check("a+1 leaving:1 utilized:1");
    cr_assert_eq(snapshot.groups[0].nodes, 1);
    cr_assert_eq(snapshot.groups[0].cpu, 10);
    cr_assert_eq(snapshot.leaving_empty, 1);
}

/* For metrics: open nodes, Ready ones and those that leave; requests without what DaemonSets ask
 * for, against what open nodes have. */
Test(snapshot, sums_tell_how_the_nodes_of_a_group_are)
{
    read_cluster("a cpu:10 memory:100; cpu:3 memory:20; cpu:2 daemon|"
                 "a cpu:10 memory:100 cordoned; cpu:4|a cpu:10 memory:100|"
                 "a cpu:10 memory:100 ours cordoned");
    nodes[2].is_ready = false;
    make_with(1000000);
    const struct as_group_sums *sums = &snapshot.groups[0].sums;
    cr_expect_eq(sums->open, 2);
    cr_expect_eq(sums->ready, 1);
    cr_expect_eq(sums->leaving, 1);
    cr_expect_eq(sums->requests[AS_RESOURCE_CPU], 7);
    cr_expect_eq(sums->requests[AS_RESOURCE_MEMORY], 20);
    cr_expect_eq(sums->allocatable[AS_RESOURCE_CPU], 20);
    cr_expect_eq(sums->allocatable[AS_RESOURCE_MEMORY], 200);
}

Test(snapshot, a_node_that_two_groups_name_belongs_to_neither)
{
    read_cluster("a cpu:10 memory:100|b cpu:10 memory:100; cpu:9");
    names[1][0] = "n0";
    names[1][1] = "n1";
    members[1].node_count = 2;
    members[1].size = 2;
    check("a b no_group:1 utilized:1");
}

Test(snapshot, names_that_are_no_nodes_and_repeated_ones_do_not_matter)
{
    read_cluster("a cpu:10 memory:100; cpu:9");
    names[0][1] = "n0";
    names[0][2] = "n00";
    members[0].node_count = 3;
    check("a utilized:1");
    cr_assert_eq(snapshot.groups[0].nodes, 1);
}

/* Groups */

Test(snapshot, a_group_is_closed_for_growth_with_a_reason)
{
    static const struct {
        enum as_reason closed;
        int32_t size;
        bool in_progress, has_pending_scaleup, has_template;
        const char *wanted;
        int32_t min;
    } rows[] = {
        {AS_REASON_SCALED, 1, false, false, true, "a", 0},
        {AS_REASON_SCALED, 0, false, false, true, "a", 0},
        {AS_REASON_SCALED, 0, false, false, true, "a:disabled", 1}, /* as the group's own gate */
        {AS_REASON_COOLDOWN, 1, false, false, true, "a:cooldown", 0},
        {AS_REASON_PAUSED, -1, true, false, false, "a:paused", 0},
        {AS_REASON_DRY_RUN, 1, false, false, true, "a:dry_run", 0},
        {AS_REASON_SCALED, 1, true, false, true, "a:in_progress", 0},
        {AS_REASON_SCALED, 1, true, true, true, "a", 0}, /* ours: it is extended */
        {AS_REASON_SCALED, 100, false, false, true, "a:at_max", 0},
        {AS_REASON_SCALED, 1, false, false, false, "a:no_template", 0},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (i > 0) {
            end();
            begin();
        }
        read_cluster("a cpu:10 memory:100; cpu:9");
        nodes[0].is_cordoned = !rows[i].has_template;
        members[0].closed = rows[i].closed;
        members[0].size = rows[i].size;
        members[0].min = rows[i].min;
        members[0].in_progress = rows[i].in_progress;
        members[0].has_pending_scaleup = rows[i].has_pending_scaleup;
        make_with(1000000);
        memset(snapshot.kept, 0, sizeof(snapshot.kept));
        ((struct as_snapshot_group *)snapshot.groups)[0].coming = 0;
        cr_expect_str_eq(print(), rows[i].wanted, "%zu: %s", i, text);
    }
}

Test(snapshot, a_template_has_only_labels_that_a_pod_reads)
{
    read_cluster("a cpu:10 memory:100 disk=ssd zone=x; cpu:9");
    read_pending("1 cpu:9 disk=ssd");
    make_with(1000000);
    cr_assert_eq(snapshot.groups[0].template_.shape.labels->count, 1);
    cr_assert_str_eq(as_labels_get(snapshot.groups[0].template_.shape.labels, "disk"), "ssd");
    const uint64_t digest = snapshot.groups[0].template_digest;

    config.balance = true;
    make_with(1000000);
    cr_assert_eq(snapshot.groups[0].template_.shape.labels->count, 2);
    cr_assert_eq(snapshot.groups[0].template_digest, digest);
}

/* What is remembered of a group must serve pods that come later. */
Test(snapshot, the_whole_template_has_labels_that_no_pod_reads)
{
    read_cluster("a cpu:10 memory:100 disk=ssd zone=x; cpu:9");
    read_pending("1 cpu:9 disk=ssd");
    struct as_snapshot_work *work = as_snapshot_begin(&request, &arena);
    while (!as_snapshot_step(work, 1000, &snapshot))
        ;
    const struct as_labels *labels = as_snapshot_get_template(work, 0)->shape.labels;
    cr_assert_eq(labels->count, 2);
    cr_assert_str_eq(as_labels_get(labels, "zone"), "x");
    cr_assert_eq(snapshot.groups[0].template_.shape.labels->count, 1);
}

/* Who may leave */

Test(snapshot, a_node_stays_for_the_first_reason_that_fits)
{
    static const struct row rows[] = {
        {"a cpu:10 memory:100|a cpu:10 memory:100 ours; cpu:9", NULL, "a+1 leaving:1 utilized:1"},
        {"- cpu:10 memory:100; cpu:1|a cpu:10 memory:100", NULL, "a move n1:0 no_group:1"},
        {"a cpu:10 memory:100; cpu:5", NULL, "a move n0:50 1x5"}, /* not above */
        {"a cpu:10 memory:100; cpu:5 memory:51", NULL, "a utilized:1"},
        {"a cpu:10 memory:100 notready; cpu:9", NULL, "a:no_template utilized:1"},
        {"a cpu:10 memory:100 notready; cpu:5", NULL, "a:no_template move n0:50 1x5"},
        {"a memory:100 notready", NULL, "a:no_template utilized:1"},
        {"a memory:100", NULL, "a:no_template utilized:1"},
        {"a cpu:10 memory:100; cpu:1 daemon; cpu:1 mirror", NULL, "a move n0:20"},
        {"a cpu:-10 memory:-5", NULL, "a:no_template utilized:1"},
        {"a cpu:4611686018427387904 memory:4611686018427387904; cpu:4611686018427387904", NULL,
         "a utilized:1"},
    };

    check_rows(rows, AS_ARRAY_SIZE(rows));
}

/* Pods that wait, and pods of leaving nodes, count where they find room. */
Test(snapshot, a_node_that_other_pods_would_fill_is_not_idle)
{
    static const struct row rows[] = {
        {"a cpu:10 memory:100; cpu:1", "1 cpu:4", "a receives:1"},
        {"a cpu:10 memory:100; cpu:1", "1 cpu:5", "a utilized:1"},
        {"a cpu:10 memory:100", "3 cpu:2", "a utilized:1"},
        {"a cpu:10 memory:100", "1 cpu:1", "a receives:1"},
        {"a cpu:10 memory:100; cpu:1 daemon", "1 memory:1", "a receives:1"},
        {"a cpu:10 memory:100|a cpu:10 memory:100 ours; cpu:6", NULL, "a+1 leaving:1 utilized:1"},
        {"a cpu:10 memory:100 cordoned; cpu:1", "1 cpu:5", "a:no_template wait 1x5 move n0:10 1x1"},
        {"a cpu:10 memory:100|a cpu:10 memory:100", "1 cpu:6", "a move n1:0 utilized:1"},
        {"a cpu:10 memory:100; cpu:1|a cpu:10 memory:100; cpu:8", "1 cpu:2",
         "a utilized:1 receives:1"},
    };

    check_rows(rows, AS_ARRAY_SIZE(rows));
}

Test(snapshot, its_group_keeps_a_node)
{
    static const struct {
        enum as_reason closed;
        int32_t size;
        bool is_member, in_progress, has_pending_scaleup;
        const char *wanted;
    } rows[] = {
        {AS_REASON_SCALED, 1, true, false, false, "a move n0:0"},
        {AS_REASON_COOLDOWN, 1, true, false, false, "a:cooldown move n0:0"},
        {AS_REASON_SCALED, 100, true, false, false, "a+99:at_max move n0:0"},
        {AS_REASON_SCALED, 1, false, false, false, "a no_group:1"},
        {AS_REASON_PAUSED, 1, true, false, false, "a:paused paused:1"},
        {AS_REASON_DRY_RUN, 1, true, false, false, "a:dry_run dry_run:1"},
        {AS_REASON_SCALED, -1, true, false, false, "a:unreachable unreadable:1"},
        {AS_REASON_SCALED, 1, true, true, true, "a in_progress:1"},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (i > 0) {
            end();
            begin();
        }
        read_cluster("a cpu:10 memory:100");
        members[0].closed = rows[i].closed;
        members[0].size = rows[i].size;
        members[0].is_member = rows[i].is_member;
        members[0].in_progress = rows[i].in_progress;
        members[0].has_pending_scaleup = rows[i].has_pending_scaleup;
        make_with(1000000);
        cr_expect_str_eq(print(), rows[i].wanted, "%zu: %s", i, text);
    }
}

Test(snapshot, an_annotation_disables_a_node_before_its_group_is_asked)
{
    read_cluster("- cpu:10 memory:100|a cpu:10 memory:100");
    nodes[0].keep = "it is annotated";
    check("a move n1:0 disabled:1");
    nodes[0].leaving = AS_NODE_LEAVING_ESCALATOR;
    check("a move n1:0 leaving:1");
}

Test(snapshot, a_node_that_starts_stays)
{
    read_cluster("a cpu:10 memory:100 notready");
    nodes[0].created = AGO(15 * AS_US_PER_MIN - 1);
    check("a+1:no_template starting:1");
    nodes[0].created = AGO(15 * AS_US_PER_MIN);
    check("a:no_template move n0:0");
}

Test(snapshot, classes_of_pods_keep_their_node)
{
    static const struct {
        enum as_eviction_class class;
        unsigned unchecked, keep;
        bool is_kept;
    } rows[] = {
        {AS_EVICTION_ALLOWED, 0, AS_KEEP_DEFAULT, false},
        {AS_EVICTION_REFUSED, 0, 0, true},
        {AS_EVICTION_SYSTEM, 0, AS_KEEP_DEFAULT, false},
        {AS_EVICTION_SYSTEM, 0, AS_KEEP_SYSTEM_PODS, true},
        {AS_EVICTION_LOCAL_STORAGE, 0, AS_KEEP_DEFAULT, true},
        {AS_EVICTION_LOCAL_STORAGE, 0, AS_KEEP_SYSTEM_PODS, false},
        {AS_EVICTION_UNREPLICATED, 0, AS_KEEP_DEFAULT, true},
        {AS_EVICTION_UNREPLICATED, 0, AS_KEEP_LOCAL_STORAGE, false},
        {AS_EVICTION_ALLOWED, AS_UNCHECKED_AFFINITY, 0, true},
        {AS_EVICTION_ALLOWED, AS_UNCHECKED_SPREAD, 0, true},
        {AS_EVICTION_ALLOWED, AS_UNCHECKED_CLAIMS, 0, true},
        {AS_EVICTION_ALLOWED, AS_UNCHECKED_RESOURCES, 0, true},
        {AS_EVICTION_ALLOWED, AS_UNCHECKED_VOLUMES, 0, true}, /* the node is in no zone */
        {AS_EVICTION_DAEMON, AS_UNCHECKED_VOLUMES, AS_KEEP_DEFAULT, false},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        if (i > 0) {
            end();
            begin();
        }
        read_cluster("a cpu:10 memory:100; cpu:1");
        struct as_pod_class pod_class = *pods[0].pod_class;
        pod_class.eviction = rows[i].class;
        pod_class.unchecked = rows[i].unchecked;
        pods[0].pod_class = &pod_class;
        members[0].unneeded.keep = rows[i].keep;
        make_with(1000000);
        cr_expect_eq(snapshot.kept[AS_STAY_UNEVICTABLE], rows[i].is_kept, "%zu", i);
        cr_expect_eq(snapshot.node_count, !rows[i].is_kept, "%zu", i);
    }
}

Test(snapshot, a_pod_with_a_claim_may_move_within_its_zone)
{
    read_cluster("a cpu:10 memory:100 topology.kubernetes.io/zone=x other=1; cpu:1; cpu:1|"
                 "a cpu:10 memory:100 failure-domain.beta.kubernetes.io/zone=y; cpu:1; cpu:9");
    struct as_pod_class pod_class = *pods[0].pod_class;
    pod_class.unchecked = AS_UNCHECKED_VOLUMES;
    pods[0].pod_class = &pod_class;
    pods[2].pod_class = &pod_class;
    check("a move n0:20 1x1 1x1 take n1:0 utilized:1");
    cr_assert_str_eq(snapshot.pod_classes[snapshot.nodes[0].pods[0].pod_class].pod.zone, "x");
    cr_assert_null(snapshot.pod_classes[snapshot.nodes[0].pods[1].pod_class].pod.zone);
    cr_assert_eq(snapshot.nodes[0].node.labels->count, 1);
    cr_assert_eq(as_node_admits(&snapshot.nodes[1].node,
                                &snapshot.pod_classes[snapshot.nodes[0].pods[0].pod_class].pod),
                 AS_MISFIT_ZONE);
}

Test(snapshot, pods_that_are_long_over_their_grace_count_as_gone)
{
    read_cluster("a cpu:10 memory:100; cpu:9");
    pods[0].is_leaving = true;
    pods[0].gone_at = (as_maybe_time){.set = true, .at = AGO(AS_POD_LATE_US)};
    check("a utilized:1");
    pods[0].gone_at.at.us--;
    check("a move n0:0");
}

static const char *const web[] = {"web"};
static const struct as_node_requirement is_web = {
    .key = "app", .operator_ = AS_NODE_IN, .values = web, .value_count = 1};

static void add_labels(struct as_pod_fact *pod, const char *app, struct as_pod_class *pod_class)
{
    const struct as_label label = {"app", app};

    *pod_class = *pod->pod_class;
    cr_assert_eq(as_labels_new_in(&texts.arena, &label, 1, &pod_class->labels), 0);
    pod->pod_class = pod_class;
}

Test(snapshot, a_budget_without_a_disruption_left_keeps_the_node)
{
    struct as_pod_class first, second;

    read_cluster("a cpu:10 memory:100; cpu:1|a cpu:10 memory:100; cpu:1");
    add_labels(&pods[0], "web", &first);
    add_labels(&pods[1], "db", &second);
    budgets[0] = (struct as_budget_fact){"default", "web", &is_web, 1, .allowed = 0};
    budgets[1] = (struct as_budget_fact){"other", "all", NULL, 0, .allowed = 0};
    budgets[2] = (struct as_budget_fact){"default", "none", NULL, 0, .is_nothing = true};
    cluster.budget_count = 3;
    check("a take n0:9 move n1:10 1x1 budget:1");
    cr_assert_eq(snapshot.budget_count, 0);

    budgets[0].allowed = 1;
    check("a move n0:10 1x1 move n1:10 1x1");
    cr_assert_eq(snapshot.budget_count, 1);
    cr_assert_str_eq(snapshot.budgets[0].name, "default/web");
    cr_assert_eq(snapshot.pod_classes[snapshot.nodes[0].pods[0].pod_class].budget_count, 1);
    cr_assert_eq(snapshot.pod_classes[snapshot.nodes[1].pods[0].pod_class].budget_count, 0);

    /* the API evicts no pod that two budgets select */
    budgets[2] = (struct as_budget_fact){"default", "all", NULL, 0, .allowed = 5};
    check("a take n0:9 move n1:10 1x1 budget:1");
}

Test(snapshot, a_budget_protects_a_system_pod_instead_of_keeping_its_node)
{
    struct as_pod_class pod_class;

    read_cluster("a cpu:10 memory:100; cpu:1");
    add_labels(&pods[0], "web", &pod_class);
    pod_class.eviction = AS_EVICTION_SYSTEM;
    members[0].unneeded.keep = AS_KEEP_SYSTEM_PODS;
    check("a unevictable:1");
    budgets[0] = (struct as_budget_fact){"default", "web", &is_web, 1, .allowed = 1};
    cluster.budget_count = 1;
    check("a move n0:10 1x1");
    budgets[0].allowed = 0;
    check("a budget:1");
}

/* Pod classes */

Test(snapshot, pods_that_differ_in_labels_only_are_one_pod_class)
{
    struct as_pod_class first, second;

    read_cluster("a cpu:10 memory:100; cpu:1; cpu:1; cpu:1; cpu:1 memory:1");
    add_labels(&pods[0], "web", &first);
    add_labels(&pods[1], "db", &second);
    second.namespace_ = "other";
    check("a move n0:40 3x1 1x1");
    cr_assert_eq(snapshot.pod_class_count, 2);
    cr_assert_neq(snapshot.pod_classes[0].digest, snapshot.pod_classes[1].digest);
    cr_assert_null(snapshot.pod_classes[0].pod.labels);
}

/* The constants are those of the documented hash: they must never change, as `asked` is stored. */
Test(snapshot, a_digest_is_the_same_in_every_process)
{
    read_cluster("a cpu:10 memory:100; cpu:9");
    read_pending("1 cpu:500 memory:100 gpu:1 zone=a ~k=v/NX ?key:in:a,b @TCP/0.0.0.0/80 #7");
    make_with(1000000);
    cr_assert_eq(snapshot.pod_class_count, 1);
    const uint64_t digest = snapshot.pod_classes[0].digest;
    cr_expect_eq(digest, DIGEST, "0x%lx", (unsigned long)digest);

    /* whatever the index of the resource in the cluster's table */
    end();
    begin();
    read_cluster("a cpu:10 memory:100 other:1; cpu:9");
    read_pending("1 cpu:500 memory:100 gpu:1 zone=a ~k=v/NX ?key:in:a,b @TCP/0.0.0.0/80 #7");
    make_with(1000000);
    cr_expect_eq(snapshot.pod_classes[0].digest, digest);
}

/* Candidates */

static as_maybe_time ago(int64_t us)
{
    return (as_maybe_time){.set = true, .at = AGO(us)};
}

Test(snapshot, what_is_remembered_is_told_of_candidates_only)
{
    const struct as_unneeded remembered[] = {
        {.node = "n0", .since = ago(AS_US_PER_MIN)},
        {.node = "n1", .since = ago(AS_US_PER_MIN), .no_room = ago(AS_US_PER_MIN)},
        {.node = "n2", .no_room = ago(5 * AS_US_PER_MIN)},
        {.node = "n9", .since = ago(AS_US_PER_MIN)},
    };

    read_cluster("a cpu:10 memory:100; cpu:1|a cpu:10 memory:100; cpu:9|a cpu:10 memory:100");
    request.unneeded = remembered;
    request.unneeded_count = AS_ARRAY_SIZE(remembered);
    make_with(1000000);
    cr_assert_eq(snapshot.unneeded_count, 2);
    cr_assert_str_eq(snapshot.unneeded[0].node, "n0");
    cr_assert(snapshot.unneeded[0].since.set);
    cr_assert_str_eq(snapshot.unneeded[1].node, "n1"); /* so that it goes last next time */
    cr_assert(!snapshot.unneeded[1].since.set && snapshot.unneeded[1].no_room.set);
}

Test(snapshot, the_last_failed_drain_counts)
{
    read_cluster("a cpu:10 memory:100|b cpu:10 memory:100|c cpu:10 memory:100");
    members[0].drain_failed = ago(AS_US_PER_MIN);
    members[1].drain_failed = ago(AS_US_PER_S);
    members[2].drain_failed = ago(0);
    members[2].is_member = false;
    make_with(1000000);
    cr_assert(snapshot.drain_failed.set);
    cr_assert_eq(snapshot.drain_failed.at.us, NOW.us - AS_US_PER_S);
}

/* The taint of the node controller may come later. */
Test(snapshot, a_cordoned_candidate_takes_no_pods)
{
    read_cluster("a cpu:10 memory:100 cordoned; cpu:1|a cpu:10 memory:100; cpu:1");
    make_with(1000000);
    cr_assert_eq(snapshot.node_count, 2);
    cr_assert_eq(as_node_admits(&snapshot.nodes[0].node, &snapshot.pod_classes[0].pod),
                 AS_MISFIT_TAINT);
    cr_assert_eq(as_node_admits(&snapshot.nodes[1].node, &snapshot.pod_classes[0].pod), AS_FITS);
}

Test(snapshot, guests_are_named_where_they_keep_others_away)
{
    read_cluster("a cpu:10 memory:100; cpu:1 @TCP/0.0.0.0/80|"
                 "a cpu:10 memory:100; cpu:9 @TCP/0.0.0.0/80; cpu:0 @TCP/0.0.0.0/81 daemon|"
                 "a cpu:10 memory:100; cpu:9 #7");
    make_with(1000000);
    cr_assert_eq(snapshot.node_count, 3);
    cr_assert_eq(snapshot.nodes[0].guest_count, 1);
    cr_assert_eq(snapshot.nodes[1].guest_count, 1);
    cr_assert_eq(snapshot.nodes[2].guest_count, 0);
}

/* The work */

Test(snapshot, the_size_of_the_steps_changes_nothing)
{
    static const uint64_t fits[] = {1, 2, 3, 7, 100};
    char whole[sizeof(text)];

    read_cluster(
        "a cpu:10 memory:100; cpu:1; cpu:2 @TCP/0.0.0.0/80|b cpu:10 memory:100 ours; cpu:3|"
        "- cpu:10 memory:100 k=v; cpu:8|c cpu:10 memory:100; cpu:6|a cpu:5 memory:100");
    read_pending("3 cpu:3; 2 cpu:9; 1 cpu:1 k=v; 4 cpu:2 #7");
    make_with(1000000);
    snprintf(whole, sizeof(whole), "%s", print());
    for (size_t i = 0; i < AS_ARRAY_SIZE(fits); i++) {
        make_with(fits[i]);
        cr_expect_str_eq(print(), whole, "%zu", i);
    }
}

Test(snapshot, an_empty_cluster_has_an_empty_snapshot)
{
    check("");
    cr_assert_eq(snapshot.pod_class_count + snapshot.node_count + snapshot.budget_count, 0);
    cr_assert_eq(snapshot.seed, 7);
    cr_assert_null(snapshot.error);
}
