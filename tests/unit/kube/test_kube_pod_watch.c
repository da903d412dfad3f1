/*
 * Pods out of a watch, through the Kubernetes adapter against a scripted API server: from which
 * number of targets on there is a watch, when its pods are used, and that lists go on otherwise.
 */
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/kube/cluster_watch.h>
#include <alertscaler/kube/kube_target.h>
#include <alertscaler/kube/target_outcome.h>

#include "support.h"

#define APPS                                                                                       \
    "{\"groupVersion\":\"apps/v1\",\"resources\":[{\"name\":\"deployments\",\"kind\":"             \
    "\"Deployment\",\"namespaced\":true},{\"name\":\"deployments/scale\",\"kind\":\"Scale\","      \
    "\"group\":\"autoscaling\",\"version\":\"v1\"}]}"
#define POD(name, version, labels, more)                                                           \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\",\"labels\":{" labels \
    "}},\"spec\":{\"containers\":[{\"resources\":{\"requests\":{" more "}}}]},"                    \
    "\"status\":{\"phase\":\"Running\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version)                                                                          \
    EVENT("BOOKMARK", "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"" version "\"}}")
#define PODS                                                                                       \
    POD("p1", "1", "\"app\":\"web\",\"tier\":\"a\"", "")                                           \
    "," POD("p2", "1", "\"app\":\"web\",\"tier\":\"b\"",                                           \
            "") "," POD("p3", "1", "\"app\":\"\"", "") "," POD("p4", "1", "\"tier\":\"a\"", "")
#define LIST(pods)                                                                                 \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" pods "]}"

static struct as_target_port *port;
static const char *selector, *listed;
static unsigned lists, watches, whole_lists; /* requests */
static bool is_forbidden;
static struct as_buf names; /* of the pods of the last observation */

static struct world_answer serve(void *context, const struct world_request *request)
{
    static char scale[512];
    struct world_answer answer = {.status = 200, .body = APPS};
    (void)context;
    if (strstr(request->url, "/scale")) {
        snprintf(scale, sizeof(scale),
                 "{\"kind\":\"Scale\",\"metadata\":{\"name\":\"w\",\"uid\":\"u\","
                 "\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":4},"
                 "\"status\":{\"replicas\":4,\"selector\":\"%s\"}}",
                 selector);
        answer.body = scale;
    } else if (strstr(request->url, "watch=true")) {
        watches++;
        answer.stays = !is_forbidden;
        answer.status = is_forbidden ? 403 : 200;
        answer.body = is_forbidden ? "{\"kind\":\"Status\",\"message\":\"no watch\"}" : "";
    } else if (strstr(request->url, "labelSelector=")) {
        lists++;
        answer.body = LIST(POD("listed", "1", "", ""));
    } else if (strstr(request->url, "/pods?")) {
        whole_lists++;
        answer.body = listed;
    }
    return answer;
}

static void setup(void)
{
    setup_world();
    port = as_kubernetes_new(open_access(), &env);
    world.serve = serve;
    selector = "app=web";
    listed = LIST(PODS);
    names = AS_BUF_INIT(4096);
}

static void teardown(void)
{
    port->close(port);
    as_buf_deinit(&names);
    teardown_world();
}

TestSuite(kube_pod_watch, .init = setup, .fini = teardown);

static void keep_names(void *context, uint64_t call_id, const struct as_observation *told)
{
    keep_observation(context, call_id, told);
    as_buf_clear(&names);
    as_buf_append_str(&names, told->has_pods ? "" : "unknown");
    for (size_t i = 0; i < told->pod_count; i++)
        as_buf_printf(&names, "%s%s", i ? " " : "", told->pods[i].name);
}

static const char *observe_in(const char *namespace_, unsigned number)
{
    AS_CLEANUP(as_free_p) char *name = as_xasprintf("web-%u", number);
    struct as_target_ref *ref = make_ref("apps/v1", "Deployment", namespace_, name);
    const unsigned before = observed_count;
    port->observe(port, 7, ref, &(struct as_observe_request){.with_pods = true}, keep_names, NULL);
    world_run(&world);
    as_target_ref_free(ref);
    cr_assert_eq(observed_count, before + 1);
    return names.data ? names.data : "";
}

static const char *observe_number(unsigned number)
{
    return observe_in("shop", number);
}

static void observe_many(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        observe_number(i);
}

static void feed(const char *event)
{
    world_feed(&world, event, strlen(event));
    world_run(&world);
}

static const char *observe_selected(const char *text)
{
    selector = text;
    return observe_number(0);
}

#define EXPECT_WATCHED(text, expected)                                                             \
    do {                                                                                           \
        const unsigned before_ = lists;                                                            \
        cr_expect_str_eq(observe_selected(text), expected, "%s: %s", text, names.data);            \
        cr_expect_eq(lists, before_, "%s", text);                                                  \
    } while (0)

#define EXPECT_LISTED(text)                                                                        \
    do {                                                                                           \
        const unsigned before_ = lists;                                                            \
        cr_expect_str_eq(observe_selected(text), "listed", "%s: %s", text, names.data);            \
        cr_expect_eq(lists, before_ + 1, "%s", text);                                              \
    } while (0)

Test(kube_pod_watch, lists_for_a_hundred_targets)
{
    observe_many(AS_POD_WATCH_TARGETS);
    observe_many(AS_POD_WATCH_TARGETS);
    cr_expect_eq(lists, 2 * AS_POD_WATCH_TARGETS);
    cr_expect_eq(whole_lists + watches, 0);
}

Test(kube_pod_watch, watches_for_more_targets)
{
    observe_many(AS_POD_WATCH_TARGETS + 1);
    cr_expect_eq(lists, AS_POD_WATCH_TARGETS + 1, "the first answer of a watch takes time");
    cr_expect_eq(whole_lists, 1);
    cr_expect_eq(watches, 1);
    EXPECT_WATCHED("app=web", "p1 p2");
}

Test(kube_pod_watch, selects_as_the_server_does)
{
    observe_many(AS_POD_WATCH_TARGETS + 1);
    EXPECT_WATCHED("app", "p1 p2 p3");
    EXPECT_WATCHED("!app", "p4");
    EXPECT_WATCHED("app=", "p3");
    EXPECT_WATCHED("app==web,tier!=a", "p2");
    EXPECT_WATCHED("app!=web", "p3 p4");
    EXPECT_WATCHED("tier in (a,b)", "p1 p2 p4");
    EXPECT_WATCHED("tier in (a), app in (web)", "p1");
    EXPECT_WATCHED("tier notin (a)", "p2 p3");
    EXPECT_WATCHED("tier notin (a,b),app", "p3");
    EXPECT_WATCHED("example.com/x=y", "");
    EXPECT_LISTED("tier>1");
    EXPECT_LISTED("tier in (a");
    EXPECT_LISTED("tier in a");
    EXPECT_LISTED("app=web,");
    EXPECT_LISTED("app=web)");
    EXPECT_LISTED("app=-");
    EXPECT_LISTED("app=web tier=a");
}

Test(kube_pod_watch, follows_events)
{
    observe_many(AS_POD_WATCH_TARGETS + 1);
    feed(EVENT("DELETED", POD("p2", "11", "\"app\":\"web\"", "")));
    feed(EVENT("ADDED", POD("p0", "12", "\"app\":\"web\"", "")));
    feed(EVENT("MODIFIED", POD("p3", "13", "\"app\":\"web\"", "")));
    feed(EVENT("MODIFIED", POD("p1", "14", "\"app\":\"other\"", "")));
    EXPECT_WATCHED("app=web", "p0 p3");
}

Test(kube_pod_watch, leaves_what_it_cannot_read_to_the_list)
{
    observe_many(AS_POD_WATCH_TARGETS + 1);
    feed(EVENT("ADDED", POD("p9", "11", "\"app\":\"bad\"", "\"cpu\":\"much\"")));
    EXPECT_LISTED("app=bad");
    EXPECT_WATCHED("app=web", "p1 p2");
}

Test(kube_pod_watch, is_not_used_without_an_event_or_a_bookmark)
{
    observe_many(AS_POD_WATCH_TARGETS + 1);
    world_advance(&world, AS_CLUSTER_WATCH_FRESH_US - 1);
    EXPECT_WATCHED("app=web", "p1 p2");
    world_advance(&world, 1);
    EXPECT_LISTED("app=web");
    feed(BOOKMARK("20"));
    EXPECT_WATCHED("app=web", "p1 p2");
}

Test(kube_pod_watch, forgets_what_a_new_list_lacks)
{
    observe_many(AS_POD_WATCH_TARGETS + 1);
    listed = LIST(POD("p2", "30", "\"app\":\"web\"", ""));
    feed(EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","
                        "\"message\":\"too old\"}"));
    cr_expect_eq(whole_lists, 2);
    EXPECT_WATCHED("app=web", "p2");
}

Test(kube_pod_watch, lists_where_the_right_to_watch_is_missing)
{
    is_forbidden = true;
    observe_many(AS_POD_WATCH_TARGETS + 1);
    cr_expect_eq(watches, 1);
    EXPECT_LISTED("app=web");
    world_advance(&world, AS_POD_WATCH_CLOSED_US - 1);
    observe_many(AS_POD_WATCH_TARGETS + 1);
    cr_expect_eq(watches, 1, "not again at once");
    is_forbidden = false;
    world_advance(&world, 1);
    observe_number(0);
    cr_expect_eq(watches, 2);
    EXPECT_WATCHED("app=web", "p1 p2");
}

/* Each pod has a label of a megabyte. */
Test(kube_pod_watch, lists_while_the_pods_take_too_much_memory)
{
    const size_t size = (size_t)1024 * 1024;
    AS_CLEANUP(as_free_p) char *value = as_xmalloc(size + 1);
    memset(value, 'x', size);
    value[size] = '\0';
    observe_many(AS_POD_WATCH_TARGETS + 1);
    for (size_t i = 0; i < AS_POD_WATCH_BYTES / size; i++) {
        EXPECT_WATCHED("app=web", "p1 p2");
        AS_CLEANUP(as_free_p)
        char *event = as_xasprintf(EVENT("ADDED", POD("large-%zu", "%zu", "\"app\":\"%s\"", "")), i,
                                   i + 20, value);
        feed(event);
    }
    EXPECT_LISTED("app=web");
    world_advance(&world, AS_POD_WATCH_CLOSED_US - 1);
    observe_many(AS_POD_WATCH_TARGETS + 1);
    cr_expect_eq(watches, 1, "not again at once");
    world_advance(&world, 1);
    observe_number(0);
    EXPECT_WATCHED("app=web", "p1 p2");
}

Test(kube_pod_watch, watches_a_hundred_namespaces)
{
    is_forbidden = true; /* an attempt is enough */
    observe_many(AS_POD_WATCH_TARGETS + 1);
    for (unsigned i = 1; i < AS_POD_WATCH_NAMESPACES; i++) {
        AS_CLEANUP(as_free_p) char *name = as_xasprintf("shop-%u", i);
        observe_in(name, i);
    }
    cr_expect_eq(watches, AS_POD_WATCH_NAMESPACES);
    cr_expect_str_eq(observe_in("one-more", 1), "listed");
    cr_expect_eq(watches, AS_POD_WATCH_NAMESPACES);
}

Test(kube_pod_watch, ends_with_the_need)
{
    observe_many(AS_POD_WATCH_TARGETS + 1);
    for (int minute = 0; minute <= 10; minute++) {
        world_advance(&world, AS_US_PER_MIN);
        if (TAILQ_EMPTY(&world.staying))
            break;
        feed(BOOKMARK("20"));
        observe_many(AS_POD_WATCH_TARGETS - 1);
    }
    cr_expect(TAILQ_EMPTY(&world.staying));
    cr_expect_eq(watches, 1);
    EXPECT_LISTED("app=web");
}
