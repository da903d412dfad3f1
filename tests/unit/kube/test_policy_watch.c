/*
 * policy_watch.h against a scripted API server: which lists and watches it requests, and that the
 * listener has exactly the policies of the selected namespaces, whatever changes in between.
 */
#include <alertscaler/base/buf.h>
#include <alertscaler/kube/policy_watch.h>

#include "kube_client.h"

#define PREFIX "/apis/alertscaler.io/v1alpha1"
#define NAMED(namespace, name, version)                                                            \
    "{\"metadata\":{\"namespace\":\"" namespace "\",\"name\":\"" name                              \
                                                "\",\"resourceVersion\":\"" version "\"}}"
#define NAMESPACE(name, version)                                                                   \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define GONE                                                                                       \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","     \
    "\"message\":\"too old\"}}\n"
#define LIST(items)                                                                                \
    "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" items "]}"

static struct as_policy_watch *watch;
static struct as_buf told;
static struct {
    const char *part; /* of the URL of the list */
    int status;       /* 0: 200 */
    const char *body;
    bool is_slow; /* stays open behind the body */
} lists[8];

static struct world_answer serve(void *context, const struct world_request *request)
{
    struct world_answer answer = {.status = 200, .body = LIST("")};
    (void)context;
    if (strstr(request->url, "watch=true"))
        return (struct world_answer){.status = 200, .body = "", .stays = true};
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++) {
        if (!lists[i].part || !strstr(request->url, lists[i].part))
            continue;
        answer.status = lists[i].status ? lists[i].status : 200;
        answer.body = lists[i].body;
        answer.stays = lists[i].is_slow;
        break;
    }
    return answer;
}

static void setup(void)
{
    setup_client();
    world.serve = serve;
    memset(lists, 0, sizeof(lists));
    told = AS_BUF_INIT(1 << 20);
}

static void teardown(void)
{
    watch = as_policy_watch_stop(watch);
    as_buf_deinit(&told);
    teardown_client();
}

TestSuite(policy_watch, .init = setup, .fini = teardown);

static void on_list_begin(void *context, const char *namespace)
{
    as_buf_printf(&told, "begin %s\n", namespace ? namespace : "all");
}

static void on_put(void *context, const char *text, size_t size)
{
    char line[200], namespace[64], name[64], version[64];
    snprintf(line, sizeof(line), "%.*s", (int)size, text);
    cr_assert_eq(sscanf(line,
                        "{\"metadata\":{\"namespace\":\"%63[^\"]\",\"name\":\"%63[^\"]\","
                        "\"resourceVersion\":\"%63[^\"]",
                        namespace, name, version),
                 3, "%s", line);
    as_buf_printf(&told, "put %s/%s %s\n", namespace, name, version);
}

static void on_removed(void *context, const char *namespace, const char *name)
{
    as_buf_printf(&told, "removed %s/%s\n", namespace, name);
}

static void on_list_end(void *context, const char *namespace)
{
    as_buf_printf(&told, "end %s\n", namespace ? namespace : "all");
}

static void on_failed(void *context, const char *message)
{
    as_buf_printf(&told, "failed: %s\n", message);
}

static const struct as_policy_watch_listener listener = {on_list_begin, on_put, on_removed,
                                                         on_list_end, on_failed};

static void start(const char *const *namespaces, const char *selector,
                  const char *namespace_selector)
{
    struct as_object_settings settings = {.selector = selector,
                                          .namespace_selector = namespace_selector};
    const char *copies[8];
    while (namespaces && namespaces[settings.namespace_count]) {
        copies[settings.namespace_count] = namespaces[settings.namespace_count];
        settings.namespace_count++;
    }
    settings.namespaces = copies;
    watch = as_policy_watch_start(&client, &settings, 7, &listener, NULL);
    cr_expect(!as_policy_watch_is_synced(watch));
    cr_assert_eq(told.size, 0, "told in the turn of the start");
    world_run(&world);
}

#define NAMES(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

#define EXPECT_TOLD(expected)                                                                      \
    do {                                                                                           \
        cr_expect_str_eq(told.data ? told.data : "", (expected));                                  \
        as_buf_clear(&told);                                                                       \
    } while (0)

static void feed_to(const char *part, const char *text)
{
    world_feed_to(&world, part, text, strlen(text));
}

static size_t count_requests(const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < world.request_count; i++)
        count += strstr(world.requests[i].url, part) != NULL;
    return count;
}

Test(policy_watch, has_one_watch_for_all_namespaces)
{
    lists[0].part = "k:6443" PREFIX "/scalingpolicies?labelSelector=team%3Dshop%2Ctier%3D1&limit=";
    lists[0].body = LIST(NAMED("a", "p", "1") "," NAMED("b", "q", "2"));
    start(NULL, "team=shop,tier=1", NULL);
    EXPECT_TOLD("begin all\nput a/p 1\nput b/q 2\nend all\n");
    cr_expect(as_policy_watch_is_synced(watch));
    cr_expect_eq(world.request_count, 2);
    feed_to("?labelSelector=team%3Dshop%2Ctier%3D1&watch=true",
            EVENT("ADDED", NAMED("c", "r", "11")) EVENT("MODIFIED", NAMED("a", "p", "12"))
                EVENT("DELETED", NAMED("b", "q", "13")));
    EXPECT_TOLD("put c/r 11\nput a/p 12\nremoved b/q\n");
}

Test(policy_watch, has_a_watch_for_each_named_namespace)
{
    lists[0].part = PREFIX "/namespaces/a/scalingpolicies?limit";
    lists[0].body = LIST(NAMED("a", "p", "1"));
    lists[1].part = PREFIX "/namespaces/b/scalingpolicies?limit";
    lists[1].body = LIST(NAMED("b", "q", "2"));
    start(NAMES("a", "b", "a"), NULL, NULL);
    EXPECT_TOLD("begin a\nput a/p 1\nend a\nbegin b\nput b/q 2\nend b\n");
    cr_expect(as_policy_watch_is_synced(watch));
    cr_expect_eq(world.request_count, 4, "no list of all namespaces: %zu", world.request_count);
    feed_to("/a/", EVENT("DELETED", NAMED("a", "p", "11")));
    feed_to("/b/", EVENT("ADDED", NAMED("b", "r", "12")));
    EXPECT_TOLD("removed a/p\nput b/r 12\n");
}

Test(policy_watch, one_namespace_without_rights_does_not_stop_the_others)
{
    lists[0].part = PREFIX "/namespaces/a/";
    lists[0].status = 403;
    lists[0].body = STATUS("no list", "");
    lists[1].part = PREFIX "/namespaces/b/";
    lists[1].body = LIST(NAMED("b", "q", "2"));
    start(NAMES("a", "b"), NULL, NULL);
    EXPECT_TOLD("failed: list " PREFIX "/namespaces/a/scalingpolicies: HTTP 403: no list\n"
                "begin b\nput b/q 2\nend b\n");
    cr_expect(!as_policy_watch_is_synced(watch));
    lists[0].status = 200;
    lists[0].body = LIST(NAMED("a", "p", "1"));
    world_advance(&world, 1 * AS_US_PER_S);
    EXPECT_TOLD("begin a\nput a/p 1\nend a\n");
    cr_expect(as_policy_watch_is_synced(watch));
}

Test(policy_watch, selects_by_patterns_of_namespaces)
{
    lists[0].part = PREFIX "/scalingpolicies?limit";
    lists[0].body =
        LIST(NAMED("team-a", "p", "1") "," NAMED("shop", "p", "2") "," NAMED("other", "p", "3"));
    start(NAMES("team-*", "shop"), NULL, NULL);
    EXPECT_TOLD("begin all\nput team-a/p 1\nput shop/p 2\nend all\n");
    feed_to("watch",
            EVENT("ADDED", NAMED("team-b", "q", "11")) EVENT("ADDED", NAMED("shop2", "q", "12"))
                EVENT("DELETED", NAMED("other", "p", "13")));
    EXPECT_TOLD("put team-b/q 11\n");
}

static void expect_failure(int status, const char *message)
{
    lists[0].part = "/scalingpolicies?limit";
    lists[0].status = status;
    lists[0].body = STATUS("no", "");
    start(NULL, NULL, NULL);
    EXPECT_TOLD(message);
    world_advance(&world, 1 * AS_US_PER_S);
    EXPECT_TOLD(message);
    cr_expect(!as_policy_watch_is_synced(watch));
}

Test(policy_watch, a_refusal_is_no_empty_list)
{
    expect_failure(403, "failed: list " PREFIX "/scalingpolicies: HTTP 403: no\n");
}

Test(policy_watch, a_missing_definition_is_no_empty_list)
{
    expect_failure(404, "failed: list " PREFIX "/scalingpolicies: HTTP 404: no\n");
}

/* The definition is deleted with its objects: the watch ends by DELETED events, then 404. */
Test(policy_watch, keeps_the_objects_when_a_later_list_is_refused)
{
    lists[0].part = "/scalingpolicies?limit";
    lists[0].body = LIST(NAMED("a", "p", "1"));
    start(NULL, NULL, NULL);
    EXPECT_TOLD("begin all\nput a/p 1\nend all\n");
    lists[0].status = 403;
    lists[0].body = STATUS("no", "");
    feed_to("watch", GONE);
    EXPECT_TOLD("failed: list " PREFIX "/scalingpolicies: HTTP 403: no\n");
}

Test(policy_watch, lists_anew_after_an_object_without_a_name)
{
    lists[0].part = "/scalingpolicies?limit";
    lists[0].body = LIST(NAMED("a", "p", "1"));
    start(NULL, NULL, NULL);
    as_buf_clear(&told);
    feed_to("watch", EVENT("ADDED", NAMESPACE("p", "11")));
    EXPECT_TOLD("failed: watch " PREFIX
                "/scalingpolicies: byte 74: metadata.namespace: expected a name\n");
    world_advance(&world, 1 * AS_US_PER_S);
    EXPECT_TOLD("begin all\nput a/p 1\nend all\n");
}

/* ---- labels of namespaces ---- */

#define POLICIES_LIST "k:6443" PREFIX "/scalingpolicies?limit"
#define POLICIES      "k:6443" PREFIX "/scalingpolicies?watch"
#define NAMESPACES    "/api/v1/namespaces?labelSelector=team%3Dx&watch"

/* The namespaces a and b are selected; c is not. Each has the policy p. */
static void start_selected(void)
{
    lists[0].part = "/api/v1/namespaces?labelSelector=team%3Dx&limit";
    lists[0].body = LIST(NAMESPACE("a", "1") "," NAMESPACE("b", "2"));
    lists[1].part = POLICIES_LIST;
    lists[1].body = LIST(NAMED("a", "p", "3") "," NAMED("b", "p", "4") "," NAMED("c", "p", "5"));
    lists[2].part = "/namespaces/c/scalingpolicies?limit";
    lists[2].body = LIST(NAMED("c", "p", "5"));
    start(NULL, NULL, "team=x");
    EXPECT_TOLD("begin all\nput a/p 3\nput b/p 4\nend all\n");
    cr_expect(as_policy_watch_is_synced(watch));
    cr_expect_eq(world.request_count, 4, "nothing is listed twice");
}

Test(policy_watch, knows_the_namespaces_before_it_lists_policies)
{
    lists[0].part = "/api/v1/namespaces";
    lists[0].status = 403;
    lists[0].body = STATUS("no", "");
    start(NULL, NULL, "team=x");
    EXPECT_TOLD("failed: list /api/v1/namespaces: HTTP 403: no\n");
    cr_expect_eq(count_requests("/scalingpolicies"), 0);
    cr_expect(!as_policy_watch_is_synced(watch));
}

Test(policy_watch, selects_by_labels_of_namespaces)
{
    start_selected();
    feed_to(POLICIES,
            EVENT("MODIFIED", NAMED("c", "p", "11")) EVENT("DELETED", NAMED("c", "p", "12")));
    feed_to(POLICIES, EVENT("MODIFIED", NAMED("b", "p", "13")));
    EXPECT_TOLD("put b/p 13\n");
}

Test(policy_watch, empties_a_namespace_whose_labels_no_longer_match)
{
    start_selected();
    feed_to(NAMESPACES, EVENT("DELETED", NAMESPACE("b", "11")));
    EXPECT_TOLD("begin b\nend b\n");
    feed_to(POLICIES, EVENT("MODIFIED", NAMED("b", "p", "12")));
    EXPECT_TOLD("");
}

Test(policy_watch, lists_a_namespace_whose_labels_match_later)
{
    start_selected();
    feed_to(NAMESPACES, EVENT("ADDED", NAMESPACE("c", "11")));
    EXPECT_TOLD("begin c\nput c/p 5\nend c\n");
    cr_expect(as_policy_watch_is_synced(watch));
    world_advance(&world, 60 * AS_US_PER_S);
    cr_expect_eq(count_requests("/namespaces/c/scalingpolicies?limit"), 1, "once");
    feed_to(POLICIES, EVENT("MODIFIED", NAMED("c", "p", "12")));
    EXPECT_TOLD("put c/p 12\n");
    feed_to(NAMESPACES, EVENT("MODIFIED", NAMESPACE("c", "13")));
    EXPECT_TOLD("");
}

/* The list may be older than the event. */
Test(policy_watch, lists_a_namespace_again_after_an_event_meanwhile)
{
    start_selected();
    lists[2].body =
        "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" NAMED("c", "p",
                                                                                         "5");
    lists[2].is_slow = true;
    feed_to(NAMESPACES, EVENT("ADDED", NAMESPACE("c", "11")));
    EXPECT_TOLD("begin c\nput c/p 5\n");
    feed_to(POLICIES, EVENT("DELETED", NAMED("c", "p", "12")));
    lists[2].body = LIST("");
    lists[2].is_slow = false;
    feed_to("/namespaces/c/", "]}");
    world_end_of(&world, "/namespaces/c/", AS_HTTP_ANSWERED, NULL);
    EXPECT_TOLD("removed c/p\nend c\n");
    cr_expect(!as_policy_watch_is_synced(watch));
    world_advance(&world, 1 * AS_US_PER_S - 1);
    EXPECT_TOLD("");
    world_advance(&world, 1);
    EXPECT_TOLD("begin c\nend c\n");
    cr_expect(as_policy_watch_is_synced(watch));
}

Test(policy_watch, leaves_a_namespace_to_the_whole_list_that_is_under_way)
{
    start_selected();
    lists[1].body =
        "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[" NAMED(
            "a", "p", "3") "," NAMED("c", "p", "5");
    lists[1].is_slow = true;
    feed_to(POLICIES, GONE);
    EXPECT_TOLD("begin all\nput a/p 3\n");
    feed_to(NAMESPACES,
            EVENT("ADDED", NAMESPACE("c", "11")) EVENT("DELETED", NAMESPACE("a", "12")));
    EXPECT_TOLD("");
    cr_expect(!as_policy_watch_is_synced(watch));
    feed_to(POLICIES_LIST, "]}");
    world_end_of(&world, POLICIES_LIST, AS_HTTP_ANSWERED, NULL);
    EXPECT_TOLD("end all\nbegin a\nend a\nbegin c\nput c/p 5\nend c\n");
    cr_expect(as_policy_watch_is_synced(watch));
}

/* Those known stay. */
Test(policy_watch, refuses_too_many_namespaces)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(16 << 20);
    start_selected();
    as_buf_append_str(
        &body, "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[" NAMESPACE(
                   "a", "1") "," NAMESPACE("b", "2"));
    for (unsigned i = 2; i <= AS_POLICY_NAMESPACES_MAX; i++)
        as_buf_printf(&body, "," NAMESPACE("n%u", "1"), i);
    as_buf_append_str(&body, "]}");
    cr_assert_eq(as_buf_check(&body), 0);
    lists[0].body = body.data;
    lists[3].part = "/namespaces/n";
    lists[3].body = LIST("");
    feed_to(NAMESPACES, GONE);
    cr_expect(strstr(told.data, ": more than 50000 namespaces are selected\n"), "%s", told.data);
    cr_expect(!strstr(told.data, "begin a\n") && !strstr(told.data, "begin all\n"));
}

Test(policy_watch, forgets_namespaces_that_a_new_list_lacks)
{
    start_selected();
    lists[0].body = LIST(NAMESPACE("b", "2") "," NAMESPACE("c", "20"));
    feed_to(NAMESPACES, GONE);
    EXPECT_TOLD("begin a\nend a\nbegin c\nput c/p 5\nend c\n");
}

Test(policy_watch, watches_named_namespaces_while_their_labels_match)
{
    lists[0].part = "/api/v1/namespaces?labelSelector=team%3Dx&limit";
    lists[0].body = LIST(NAMESPACE("a", "1") "," NAMESPACE("b", "2"));
    lists[1].part = "/namespaces/a/scalingpolicies?limit";
    lists[1].body = LIST(NAMED("a", "p", "3"));
    lists[2].part = "/namespaces/c/scalingpolicies?limit";
    lists[2].body = LIST(NAMED("c", "p", "4"));
    start(NAMES("a", "c"), NULL, "team=x");
    EXPECT_TOLD("begin a\nput a/p 3\nend a\n");
    cr_expect_eq(count_requests(PREFIX "/scalingpolicies"), 0);
    feed_to(NAMESPACES, EVENT("ADDED", NAMESPACE("c", "11")));
    EXPECT_TOLD("begin c\nput c/p 4\nend c\n");
    feed_to(NAMESPACES, EVENT("DELETED", NAMESPACE("a", "12")));
    EXPECT_TOLD("begin a\nend a\n");
    feed_to("/c/", EVENT("DELETED", NAMED("c", "p", "13")));
    EXPECT_TOLD("removed c/p\n");
    cr_expect(as_policy_watch_is_synced(watch));
}
