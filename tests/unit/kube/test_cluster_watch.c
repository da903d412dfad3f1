/*
 * cluster_watch.h: facts that are held stay as they are, and nothing that is heard meanwhile is
 * lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/kube/cluster_watch.h>

#include "kube_client.h"

#define NODES   "/api/v1/nodes"
#define PODS    "/api/v1/pods"
#define BUDGETS "/apis/policy/v1/poddisruptionbudgets"
#define LIMITED "?limit=500"
#define RUNNING "?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
#define WATCHED(version)                                                                           \
    "watch=true&allowWatchBookmarks=true&timeoutSeconds=100&resourceVersion=" version
#define LIST(version, items)                                                                       \
    "{\"kind\":\"AnyList\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items   \
    "]}"
#define NODE(name, version, cpu)                                                                   \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version                          \
    "\"},\"status\":{\"allocatable\":{\"cpu\":\"" cpu "\",\"memory\":\"1Gi\"}}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

static struct as_cluster_watch *watch;
static const struct as_cluster *known;
static unsigned told;

static void keep(void *context, const struct as_cluster *cluster, const struct as_error *error)
{
    told++;
    known = cluster;
    cr_expect(cluster, "%s", error->text);
}

static size_t count_nodes(void)
{
    const unsigned before = told;
    cr_assert_not_null(as_cluster_watch_ask(watch, keep, NULL));
    world_run(&world);
    cr_assert_eq(told, before + 1);
    return known->node_count;
}

static void answer_nodes_watch(const char *path)
{
    world_answer(&world, (struct world_answer){"GET", path, .status = 200, .stays = true});
}

/* Watches of pods and budgets break off: they are tried again when time goes on. */
static void setup(void)
{
    setup_client();
    told = 0;
    answer("GET", NODES LIMITED, 200, LIST("5", ""));
    answer("GET", PODS RUNNING "&limit=500", 200, LIST("5", ""));
    answer("GET", BUDGETS LIMITED, 200, LIST("5", ""));
    answer_nodes_watch(NODES "?" WATCHED("5"));
    answer("GET", PODS RUNNING "&" WATCHED("5"), 500, "");
    answer("GET", BUDGETS "?" WATCHED("5"), 500, "");
    watch = as_cluster_watch_new(&client);
    cr_assert_eq(count_nodes(), 0);
}

static void teardown(void)
{
    watch = as_cluster_watch_free(watch);
    teardown_client();
}

TestSuite(cluster_watch, .init = setup, .fini = teardown);

static void feed(const char *text)
{
    world_feed(&world, text, strlen(text));
}

Test(cluster_watch, what_is_heard_while_held_comes_after_it_in_order)
{
    cr_assert(as_cluster_watch_hold(watch));
    cr_expect(!as_cluster_watch_hold(watch), "there is one already");
    feed(EVENT("ADDED", NODE("a", "6", "1")) EVENT("ADDED", NODE("b", "7", "1")));
    feed(EVENT("DELETED", NODE("a", "8", "1")));
    cr_expect_eq(known->node_count, 0);
    cr_expect_eq(count_nodes(), 0, "others see the same meanwhile");
    as_cluster_watch_release(watch);
    cr_expect_eq(count_nodes(), 1);
    cr_expect_str_eq(known->nodes[0].name, "b");
    cr_expect(as_cluster_watch_hold(watch), "it may be held again");
    as_cluster_watch_release(watch);
}

Test(cluster_watch, is_confirmed_by_what_it_told_since_unless_held)
{
    const as_mono_time since = world.mono;
    cr_expect_null(as_cluster_watch_find_since(watch, since), "listed before");
    world_advance(&world, 100);
    cr_expect_null(as_cluster_watch_find_since(watch, since), "stalled");
    feed(EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"6\"}}"));
    cr_expect_not_null(as_cluster_watch_find_since(watch, since));
    cr_expect_null(as_cluster_watch_find_since(watch, world.mono), "not after it");
    cr_assert(as_cluster_watch_hold(watch));
    feed(EVENT("ADDED", NODE("a", "7", "1")));
    cr_expect_null(as_cluster_watch_find_since(watch, since), "the event waits");
    as_cluster_watch_release(watch);
    const struct as_cluster *cluster = as_cluster_watch_find_since(watch, since);
    cr_assert_not_null(cluster);
    cr_expect_eq(cluster->node_count, 1);
}

Test(cluster_watch, a_list_that_comes_while_held_replaces_what_was)
{
    feed(EVENT("ADDED", NODE("old", "6", "1")));
    cr_assert_eq(count_nodes(), 1);
    cr_assert(as_cluster_watch_hold(watch));
    answer("GET", NODES LIMITED, 200, LIST("9", NODE("new", "9", "1")));
    answer_nodes_watch(NODES "?" WATCHED("9"));
    feed("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","
         "\"message\":\"too old\"}}\n");
    world_run(&world);
    cr_expect_str_eq(known->nodes[0].name, "old");
    as_cluster_watch_release(watch);
    cr_expect_eq(count_nodes(), 1);
    cr_expect_str_eq(known->nodes[0].name, "new");
}

Test(cluster_watch, an_object_that_cannot_be_used_while_held_lists_its_kind_anew)
{
    cr_assert(as_cluster_watch_hold(watch));
    feed(EVENT("ADDED", NODE("a", "6", "none")) EVENT("ADDED", NODE("b", "7", "1")));
    answer("GET", NODES LIMITED, 200, LIST("9", NODE("c", "9", "1")));
    answer_nodes_watch(NODES "?" WATCHED("9"));
    as_cluster_watch_release(watch);
    cr_expect_eq(count_nodes(), 1);
    cr_expect_str_eq(known->nodes[0].name, "c");
}

Test(cluster_watch, it_may_end_while_it_is_held)
{
    cr_assert(as_cluster_watch_hold(watch));
    feed(EVENT("ADDED", NODE("a", "6", "1")));
}
