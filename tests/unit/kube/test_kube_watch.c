/*
 * kube_watch.h in the fake world: what is asked, what is told, and when it is asked again. However
 * the answers break or lie, what the listener knows in the end is what the server has.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/http/access_limits.h>

#include "kube/kube_watch.h"
#include "pod.h"

#define PROTOBUF "application/vnd.kubernetes.protobuf"

static struct as_kube_access *access_;
static struct as_kube_client client;
static struct as_kube_watch *watch;
static struct as_buf told;
static const char *stop_at; /* a line of `told` */

static void setup(void)
{
    struct as_kube_access_config config = {NULL, NULL};
    struct as_error error = AS_ERROR_INIT;
    setup_pod("first");
    cr_assert_eq(as_kube_access_new(&config, &env, &access_, &error), 0, "%s", error.text);
    as_kube_client_init(&client, &env, access_);
    told = AS_BUF_INIT(1 << 20);
}

static void teardown(void)
{
    watch = as_kube_watch_stop(watch);
    as_buf_deinit(&told);
    as_kube_client_deinit(&client);
    as_kube_access_free(access_);
    teardown_pod();
}

TestSuite(kube_watch, .init = setup, .fini = teardown);

static void maybe_stop(const char *line)
{
    if (stop_at && strstr(line, stop_at))
        watch = as_kube_watch_stop(watch);
}

static void list_begin(void *context)
{
    cr_expect(!as_kube_watch_is_synced(watch));
    as_buf_append_str(&told, "begin\n");
}

static int object(void *context, enum as_kube_verb verb, enum as_kube_form form, const char *bytes,
                  size_t size, struct as_error *error)
{
    static const char *const verbs[] = {"LISTED", "ADDED", "MODIFIED", "DELETED"};
    as_buf_printf(&told, "%s%s ", verbs[verb], form == AS_KUBE_PROTOBUF ? " binary" : "");
    as_buf_append(&told, bytes, size);
    as_buf_append_char(&told, '\n');
    if (!memmem(bytes, size, "unusable", 8))
        return 0;
    as_error_set(error, "unusable");
    return -EBADMSG;
}

static void list_end(void *context, const char *resource_version)
{
    cr_expect(as_kube_watch_is_synced(watch));
    as_buf_printf(&told, "end %s\n", resource_version);
    maybe_stop("end");
}

static void failed(void *context, const char *message)
{
    as_buf_printf(&told, "%s\n", message);
    maybe_stop(message);
}

static const struct as_kube_watch_listener listener = {list_begin, object, list_end, failed};

static struct as_kube_watch_spec get_spec(void)
{
    return (struct as_kube_watch_spec){
        .path = "/api/v1/pods", .list_operation = "list_pods", .watch_operation = "watch_pods"};
}

static void start(struct as_kube_watch_spec spec)
{
    watch = as_kube_watch_start(&client, &spec, &listener, NULL);
    cr_assert_eq(told.size, 0);
}

/* What has been told since the last look. */
#define EXPECT_TOLD(expected)                                                                      \
    do {                                                                                           \
        cr_expect_str_eq(told.data ? told.data : "", (expected));                                  \
        as_buf_clear(&told);                                                                       \
    } while (0)

#define LIST(version, next, items)                                                                 \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" next \
    "\"},\"items\":[" items "]}"
#define OBJECT(version)      "{\"metadata\":{\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, version) "{\"type\":\"" type "\",\"object\":" OBJECT(version) "}\n"
#define STATUS(code, reason, message)                                                              \
    "{\"kind\":\"Status\",\"code\":" code ",\"reason\":\"" reason "\",\"message\":\"" message "\"" \
    "}"
#define ERROR(code, reason, message)                                                               \
    "{\"type\":\"ERROR\",\"object\":" STATUS(code, reason, message) "}\n"

#define LIST_PATH "/api/v1/pods?limit=500"
#define WATCH_PATH                                                                                 \
    "/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=100&resourceVersion="

static void answer(const char *path, int status, const char *body)
{
    world_answer(&world, (struct world_answer){
                             .method = "GET", .path = path, .status = status, .body = body});
}

/* The answer to a watch, which goes on. */
static void answer_watch(const char *path, const char *body)
{
    world_answer(&world,
                 (struct world_answer){
                     .method = "GET", .path = path, .status = 200, .body = body, .stays = true});
}

static void feed(const char *text)
{
    world_feed(&world, text, strlen(text));
}

static const struct world_request *get_last(void)
{
    return &world.requests[world.request_count - 1];
}

static int64_t get_age(void)
{
    return world.mono.us - as_kube_watch_get_fresh_at(watch).us;
}

/* A watch of a cluster with one pod, from version 5 on. */
static void start_synced(void)
{
    answer(LIST_PATH, 200, LIST("5", "", OBJECT("3")));
    answer_watch(WATCH_PATH "5", "");
    start(get_spec());
    world_run(&world);
    EXPECT_TOLD("begin\nLISTED " OBJECT("3") "\nend 5\n");
}

Test(kube_watch, lists_in_pages_and_then_watches)
{
    struct as_kube_watch_spec spec = get_spec();
    spec.field_selector = "status.phase!=Failed,a=b";
#define SELECTOR "?fieldSelector=status.phase%21%3DFailed%2Ca%3Db&"
    answer(SELECTOR "limit=500", 200, LIST("5", "to/2", OBJECT("1") "," OBJECT("2")));
    answer(SELECTOR "limit=500&continue=to%2F2", 200, LIST("6", "", OBJECT("3")));
    answer_watch(
        SELECTOR "watch=true&allowWatchBookmarks=true&timeoutSeconds=100&resourceVersion=5", "");
    start(spec);
    cr_expect(!as_kube_watch_is_synced(watch));
    world_run(&world);
    EXPECT_TOLD(
        "begin\nLISTED " OBJECT("1") "\nLISTED " OBJECT("2") "\nLISTED " OBJECT("3") "\nend 5\n");
    cr_expect(as_kube_watch_is_synced(watch));
    cr_assert_eq(world.request_count, 3);
    for (size_t i = 0; i < 3; i++) {
        cr_expect_str_eq(world.requests[i].headers,
                         "Accept: application/json\nAuthorization: Bearer first\n");
        cr_expect(world.requests[i].is_streamed);
        cr_expect_eq(world.requests[i].class, AS_HTTP_WATCH);
        cr_expect_eq(world.requests[i].timeout_us,
                     i < 2 ? AS_KUBE_LIST_TIMEOUT_US : AS_KUBE_WATCH_TIMEOUT_US);
        cr_expect_eq(world.requests[i].idle_us, i < 2 ? AS_KUBE_LIST_IDLE_US : 0);
    }
    feed(EVENT("ADDED", "6") EVENT("MODIFIED", "7"));
    feed(EVENT("DELETED", "8"));
    EXPECT_TOLD("ADDED " OBJECT("6") "\nMODIFIED " OBJECT("7") "\nDELETED " OBJECT("8") "\n");
}

Test(kube_watch, selects_by_labels_in_the_list_and_in_the_watch)
{
    struct as_kube_watch_spec spec = get_spec();
    spec.label_selector = "team=shop,tier=1";
#define LABELS "?labelSelector=team%3Dshop%2Ctier%3D1&"
    answer(LABELS "limit=500", 200, LIST("5", "", ""));
    answer_watch(LABELS "watch=true&allowWatchBookmarks=true&timeoutSeconds=100&resourceVersion=5",
                 "");
    start(spec);
    world_run(&world);
    EXPECT_TOLD("begin\nend 5\n");
}

Test(kube_watch, asks_for_the_binary_form_and_reads_what_comes)
{
    struct as_kube_watch_spec spec = get_spec();
    spec.wants_protobuf = true;
    static const char list[] = "k8s\0\x0a\x09\x12\x07PodList\x12\x0a\x0a\x03\x12\x01"
                               "5\x12\x03one";
    static const char event[] = "\0\0\0\x16\x0a\x05"
                                "ADDED\x12\x0d\x0a\x0bk8s\0\x12\x05\x0a\x03\x32\x01"
                                "6";
    world_answer(&world, (struct world_answer){.method = "GET",
                                               .path = LIST_PATH,
                                               .status = 200,
                                               .content_type = PROTOBUF,
                                               .body = list,
                                               .body_size = sizeof(list) - 1});
    world_answer(&world, (struct world_answer){.method = "GET",
                                               .path = WATCH_PATH "5",
                                               .status = 200,
                                               .content_type = PROTOBUF ";stream=watch",
                                               .stays = true});
    start(spec);
    world_run(&world);
    EXPECT_TOLD("begin\nLISTED binary one\nend 5\n");
    cr_expect(strstr(world.requests[0].headers, "Accept: " PROTOBUF ", application/json;q=0.9\n"));
    cr_expect(strstr(world.requests[1].headers,
                     "Accept: " PROTOBUF ";stream=watch, application/json;q=0.9\n"));
    world_feed(&world, event, sizeof(event) - 1);
    EXPECT_TOLD("ADDED binary \n\x03\x32\x01"
                "6\n");
}

Test(kube_watch, is_fresh_by_events_bookmarks_and_reopening)
{
    start_synced();
    cr_expect_eq(get_age(), 0);
    world_advance(&world, 40 * AS_US_PER_S);
    cr_expect_eq(get_age(), 40 * AS_US_PER_S);
    feed(EVENT("ADDED", "6"));
    cr_expect_eq(get_age(), 0);
    world_advance(&world, 30 * AS_US_PER_S);
    feed(EVENT("BOOKMARK", "60"));
    cr_expect_eq(get_age(), 0);
    const as_mono_time confirmed_at = world.mono;
    world_advance(&world, 30 * AS_US_PER_S);
    EXPECT_TOLD("ADDED " OBJECT("6") "\n");
    answer_watch(WATCH_PATH "60", "");
    world_end(&world, AS_HTTP_ANSWERED, "");
    cr_expect_str_eq(get_last()->url, "https://k:443" WATCH_PATH "60");
    cr_expect_eq(get_age(), 0);
    cr_expect_eq(as_kube_watch_get_confirmed_at(watch).us, confirmed_at.us,
                 "opening tells nothing");
    EXPECT_TOLD("");
    cr_expect(as_kube_watch_is_synced(watch));
}

/* Each answer takes a second. */
static struct world_answer serve_slowly(void *context, const struct world_request *request)
{
    const char *page = strstr(request->url, "continue=");
    world.mono.us += AS_US_PER_S;
    if (strstr(request->url, "watch="))
        return (struct world_answer){.status = 500};
    return (struct world_answer){.status = 200,
                                 .body = page ? LIST("5", "", "") : LIST("5", "2", "")};
}

Test(kube_watch, a_list_is_as_old_as_its_request)
{
    world.serve = serve_slowly;
    start(get_spec());
    world_run(&world);
    EXPECT_TOLD("begin\nend 5\nwatch /api/v1/pods: HTTP 500\n");
    cr_expect_eq(get_age(), 3 * AS_US_PER_S);
    cr_expect_eq(world.mono.us - as_kube_watch_get_confirmed_at(watch).us, 3 * AS_US_PER_S);
}

Test(kube_watch, a_list_that_is_gone_begins_anew_at_once_and_then_slowly)
{
    answer(LIST_PATH, 200, LIST("5", "2", OBJECT("1")));
    answer(LIST_PATH "&continue=2", 410, STATUS("410", "Expired", "too old"));
    answer(LIST_PATH, 200, LIST("6", "3", OBJECT("2")));
    answer(LIST_PATH "&continue=3", 410, "");
    start(get_spec());
    world_run(&world);
    EXPECT_TOLD("begin\nLISTED " OBJECT("1") "\nbegin\nLISTED " OBJECT(
        "2") "\nlist /api/v1/pods: HTTP 410\n");
    answer(LIST_PATH, 200, LIST("7", "", ""));
    answer_watch(WATCH_PATH "7", "");
    world_advance(&world, AS_US_PER_S - 1);
    EXPECT_TOLD("");
    world_advance(&world, AS_US_PER_S + 1);
    EXPECT_TOLD("begin\nend 7\n");
}

Test(kube_watch, a_watch_that_is_gone_is_listed_anew)
{
    for (unsigned i = 0; i < 2; i++) { /* as a status; as an event */
        answer(LIST_PATH, 200, LIST("5", "", OBJECT("3")));
        answer(WATCH_PATH "5", i ? 200 : 410, i ? ERROR("410", "Gone", "x") : "no JSON");
        answer(LIST_PATH, 200, LIST("9", "", ""));
        answer_watch(WATCH_PATH "9", "");
        start(get_spec());
        world_run(&world);
        EXPECT_TOLD("begin\nLISTED " OBJECT("3") "\nend 5\nbegin\nend 9\n");
        feed(EVENT("ADDED", "10"));
        answer(LIST_PATH, 200, LIST("30", "", ""));
        answer_watch(WATCH_PATH "30", "");
        feed(ERROR("410", "Gone", "x")); /* there was progress: at once again */
        EXPECT_TOLD("ADDED " OBJECT("10") "\nbegin\nend 30\n");
        watch = as_kube_watch_stop(watch);
    }
}

/* After an outage the watch has failed for a while: the list does not wait for another back-off. */
Test(kube_watch, what_was_forgotten_in_an_outage_is_listed_anew_at_once)
{
    start_synced();
    world_end(&world, AS_HTTP_BROKEN, "reset");
    for (unsigned i = 0; i < 8; i++) {
        world_answer(&world, (struct world_answer){.method = "GET",
                                                   .path = WATCH_PATH "5",
                                                   .outcome = AS_HTTP_UNREACHABLE,
                                                   .error = "refused"});
        world_advance(&world, 30 * AS_US_PER_S);
    }
    as_buf_clear(&told);
    answer(WATCH_PATH "5", 410, STATUS("410", "Expired", "too old"));
    answer(LIST_PATH, 200, LIST("9", "", OBJECT("8")));
    answer(WATCH_PATH "9", 410, STATUS("410", "Expired", "too old")); /* again: slowly */
    world_advance(&world, 30 * AS_US_PER_S);
    EXPECT_TOLD("begin\nLISTED " OBJECT("8") "\nend 9\nwatch /api/v1/pods: HTTP 410: too old\n");
    answer(LIST_PATH, 200, LIST("12", "", ""));
    answer_watch(WATCH_PATH "12", "");
    world_advance(&world, 15 * AS_US_PER_S - 1);
    EXPECT_TOLD("");
    world_advance(&world, 15 * AS_US_PER_S + 1);
    EXPECT_TOLD("begin\nend 12\n");
}

/* An API server whose state was restored knows none of our versions, and would say so for ever. */
Test(kube_watch, a_version_of_the_future_is_listed_anew)
{
    start_synced();
    world_advance(&world, 50 * AS_US_PER_S);
    answer(WATCH_PATH "5", 504,
           STATUS("504", "Timeout", "Too large resource version: 5, current: 2"));
    world_end(&world, AS_HTTP_ANSWERED, "");
    answer(LIST_PATH, 200, LIST("2", "", ""));
    answer_watch(WATCH_PATH "2", "");
    world_advance(&world, AS_US_PER_S);
    EXPECT_TOLD("watch /api/v1/pods: HTTP 504: Too large resource version: 5, current: "
                "2\nbegin\nend 2\n");
}

Test(kube_watch, what_passes_is_retried_from_where_it_was)
{
    static const struct {
        struct world_answer answer;
        const char *told;
        int64_t least_us, most_us;
    } rows[] = {
        {{.outcome = AS_HTTP_UNREACHABLE, .error = "refused"}, "refused", 500000, 1000000},
        {{.outcome = AS_HTTP_BROKEN, .error = "reset"}, "reset", 1000000, 2000000},
        {{.outcome = AS_HTTP_TIMEOUT, .error = "silence"}, "silence", 2000000, 4000000},
        {{.status = 403, .body = STATUS("403", "Forbidden", "may not")},
         "HTTP 403: may not",
         4000000,
         8000000},
        {{.status = 429, .retry_after = "40"}, "HTTP 429", 40000000, 40000000},
        {{.status = 503,
          .body = "{\"kind\":\"Status\",\"message\":\"busy\",\"details\":{\"retryAfterSeconds\":"
                  "50}}"},
         "HTTP 503: busy",
         50000000,
         50000000},
        {{.status = 500}, "HTTP 500", 15000000, 30000000},
        {{.status = 502}, "HTTP 502", 15000000, 30000000},
        /* An answer that begins, and breaks. */
        {{.status = 200, .outcome = AS_HTTP_BROKEN, .error = "cut", .body = "{\"type\":"},
         "cut",
         15000000,
         30000000},
        {{.status = 200, .body = "{\"type\":"},
         "the watch ends within an event",
         15000000,
         30000000},
        {{.status = 200}, "the server ends the watch at once", 15000000, 30000000},
    };
    start_synced();
    world_advance(&world, 50 * AS_US_PER_S);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char expected[128];
        struct world_answer next = rows[i].answer;
        next.method = "GET";
        next.path = WATCH_PATH "5";
        world_answer(&world, next);
        if (i == 0) {
            world_end(&world, AS_HTTP_ANSWERED, "");
        } else {
            world_advance(&world, rows[i - 1].least_us - 1);
            EXPECT_TOLD("");
            world_advance(&world, rows[i - 1].most_us - rows[i - 1].least_us + 1);
        }
        snprintf(expected, sizeof(expected), "watch /api/v1/pods: %s\n", rows[i].told);
        EXPECT_TOLD(expected);
        cr_expect(as_kube_watch_is_synced(watch));
    }
    answer_watch(WATCH_PATH "5", EVENT("BOOKMARK", "6")); /* and the waits are short again */
    world_advance(&world, 30 * AS_US_PER_S);
    answer_watch(WATCH_PATH "6", "");
    world_end(&world, AS_HTTP_BROKEN, "reset");
    EXPECT_TOLD("watch /api/v1/pods: reset\n");
    world_advance(&world, AS_US_PER_S);
    cr_expect(!TAILQ_EMPTY(&world.staying));
}

/* What is told is not to be trusted any more. */
Test(kube_watch, after_a_lie_the_list_begins_anew)
{
    static const struct {
        const char *lie, *told;
        unsigned objects; /* told before */
    } rows[] = {
        {"}{", "not JSON: byte 0: expected a value", 0},
        {"<html>", "not JSON: byte 0: expected a value", 0},
        {EVENT("REPLACED", "9"), "byte 65: type: unknown type of event", 0},
        {EVENT("ADDED", ""), "byte 61: object.metadata.resourceVersion: missing", 0},
        {EVENT("ADDED", "9") EVENT("MODIFIED", "8"),
         "byte 128: resourceVersion goes back from 9 to 8", 1},
        {EVENT("BOOKMARK", "4"), "byte 65: resourceVersion goes back from 5 to 4", 0},
        {ERROR("500", "InternalError", "no"), "byte 94: 500 InternalError: no", 0},
        {EVENT("ADDED", "unusable"), "byte 69: unusable", 2},
        {EVENT("ADDED", "9") "x", "not JSON: byte 63: expected a value", 1},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char expected[256];
        start_synced();
        feed(rows[i].lie);
        snprintf(expected, sizeof(expected), "%s%swatch /api/v1/pods: %s\n",
                 rows[i].objects == 1 ? "ADDED " OBJECT("9") "\n" : "",
                 rows[i].objects == 2 ? "ADDED " OBJECT("unusable") "\n" : "", rows[i].told);
        EXPECT_TOLD(expected);
        answer(LIST_PATH, 200, LIST("20", "", ""));
        answer_watch(WATCH_PATH "20", "");
        world_advance(&world, AS_US_PER_S);
        EXPECT_TOLD("begin\nend 20\n");
        watch = as_kube_watch_stop(watch);
    }
}

Test(kube_watch, a_list_that_fails_begins_anew)
{
    static const struct {
        struct world_answer answer;
        const char *told;
    } rows[] = {
        {{.outcome = AS_HTTP_UNREACHABLE, .error = "refused"}, "list /api/v1/pods: refused\n"},
        {{.status = 404}, "list /api/v1/pods: HTTP 404\n"},
        {{.status = 200, .body = "{}"}, "begin\nlist /api/v1/pods: byte 2: items: missing\n"},
        {{.status = 200, .body = "{\"items\":[", .outcome = AS_HTTP_TIMEOUT, .error = "idle"},
         "begin\nlist /api/v1/pods: idle\n"},
        {{.status = 200, .body = "{\"items\":["},
         "begin\nlist /api/v1/pods: the list ends early\n"},
        {{.status = 200, .body = LIST("1", "", OBJECT("unusable"))},
         "begin\nLISTED " OBJECT("unusable") "\nlist /api/v1/pods: items[0]: unusable\n"},
        {{.status = 200, .content_type = "text/html", .body = "<html>"},
         "list /api/v1/pods: Content-Type: expected application/json or " PROTOBUF "\n"},
    };
    start(get_spec());
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct world_answer next = rows[i].answer;
        next.method = "GET";
        next.path = LIST_PATH;
        world_answer(&world, next);
        world_advance(&world, i == 0 ? 0 : 30 * AS_US_PER_S);
        EXPECT_TOLD(rows[i].told);
        cr_expect(!as_kube_watch_is_synced(watch));
    }
    stop_at = "refused";
    world_answer(&world, (struct world_answer){.method = "GET",
                                               .path = LIST_PATH,
                                               .outcome = AS_HTTP_UNREACHABLE,
                                               .error = "refused"});
    world_advance(&world, 30 * AS_US_PER_S);
    cr_expect_null(watch, "failed may stop the watch");
}

Test(kube_watch, may_be_stopped_when_the_list_has_ended)
{
    stop_at = "end";
    answer(LIST_PATH, 200, LIST("5", "", ""));
    start(get_spec());
    world_run(&world);
    EXPECT_TOLD("begin\nend 5\n");
    cr_expect_null(watch);
    cr_expect(get_last()->is_cancelled);
}

static struct world_answer serve_endless_list(void *context, const struct world_request *request)
{
    return (struct world_answer){.status = 200, .body = LIST("1", "again", "")};
}

Test(kube_watch, a_list_ends_somewhere)
{
    world.serve = serve_endless_list;
    stop_at = "too long";
    start(get_spec());
    world_run(&world);
    EXPECT_TOLD("begin\nlist /api/v1/pods: the list is too long\n");
    cr_expect_eq(world.request_count, AS_KUBE_LIST_PAGES_MAX);
}

Test(kube_watch, credentials_that_end_are_renewed)
{
    start_synced();
    world_advance(&world, 100 * AS_US_PER_S);
    answer(WATCH_PATH "5", 401, "");
    answer_watch(WATCH_PATH "5", EVENT("ADDED", "6"));
    write_file(account_token, "second");
    world_end(&world, AS_HTTP_ANSWERED, "");
    EXPECT_TOLD("ADDED " OBJECT("6") "\n");
    cr_expect(strstr(get_last()->headers, "Bearer second\n"));
}

Test(kube_watch, without_credentials_it_says_so)
{
    unlink(account_token);
    start(get_spec());
    world_run(&world);
    cr_expect(strstr(told.data, "list /api/v1/pods: ") == told.data, "%s", told.data);
    cr_expect_eq(world.request_count, 0);
}

/* ---- broken at each byte ---- */

/* Three pods; then one is added, one changes, one goes. The connection breaks once, at a byte of
 * all that is sent. */
static struct server {
    size_t break_at, sent;
    bool has_broken;
} server;

#define NAMED(name, version)                                                                       \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define CHANGE(type, name, version) "{\"type\":\"" type "\",\"object\":" NAMED(name, version) "}\n"

static const char *const bodies[] = {
    LIST("10", "2", NAMED("a", "1") "," NAMED("b", "2")),
    LIST("10", "", NAMED("c", "3")),
    CHANGE("ADDED", "d", "11") CHANGE("MODIFIED", "b", "12") CHANGE("DELETED", "a", "13"),
    CHANGE("MODIFIED", "b", "12") CHANGE("DELETED", "a", "13"),
    CHANGE("DELETED", "a", "13"),
    "",
};

static const char *choose_body(const char *url)
{
    static const char *const ends[] = {"limit=500", "continue=2",         "resourceVersion=10",
                                       "n=11",      "resourceVersion=12", "resourceVersion=13"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(ends); i++)
        if (strlen(url) > strlen(ends[i]) &&
            strcmp(url + strlen(url) - strlen(ends[i]), ends[i]) == 0)
            return bodies[i];
    cr_assert_fail("%s", url);
    return NULL;
}

static struct world_answer serve_broken(void *context, const struct world_request *request)
{
    const char *body = choose_body(request->url);
    const size_t size = strlen(body);
    struct world_answer out = {
        .status = 200, .body = body, .stays = strstr(request->url, "watch=")};
    if (!server.has_broken && server.break_at < server.sent + size) {
        server.has_broken = true;
        out.stays = false;
        out.outcome = AS_HTTP_BROKEN;
        out.error = "reset";
        out.body_size = server.break_at - server.sent;
        if (out.body_size == 0)
            out.body = "";
    }
    server.sent += size;
    return out;
}

static bool has[128]; /* what a listener knows, by the name's letter */
static bool listed[128];
static char versions[128][8];

static void forget_all(void *context)
{
    memset(listed, 0, sizeof(listed));
}

static int learn(void *context, enum as_kube_verb verb, enum as_kube_form form, const char *bytes,
                 size_t size, struct as_error *error)
{
    char text[128], name, version[8];
    snprintf(text, sizeof(text), "%.*s", (int)size, bytes);
    cr_assert_eq(sscanf(text, "{\"metadata\":{\"name\":\"%c\",\"resourceVersion\":\"%7[0-9]", &name,
                        version),
                 2, "%s", text);
    (verb == AS_KUBE_LISTED ? listed : has)[(unsigned char)name] = verb != AS_KUBE_DELETED;
    snprintf(versions[(unsigned char)name], 8, "%s", version);
    return 0;
}

static void replace_all(void *context, const char *resource_version)
{
    memcpy(has, listed, sizeof(has));
}

static void ignore(void *context, const char *message)
{
}

Test(kube_watch, broken_at_each_byte_it_knows_the_same)
{
    static const struct as_kube_watch_listener learner = {forget_all, learn, replace_all, ignore};
    const struct as_kube_watch_spec spec = get_spec();
    size_t size = strlen(bodies[0]) + strlen(bodies[1]) + strlen(bodies[2]);
    world.serve = serve_broken;
    for (size_t at = 0; at < size; at++) {
        server = (struct server){.break_at = at};
        memset(has, 0, sizeof(has));
        watch = as_kube_watch_start(&client, &spec, &learner, NULL);
        world_run(&world);
        world_advance(&world, AS_US_PER_S);
        cr_assert(server.has_broken && !TAILQ_EMPTY(&world.staying), "broken at %zu", at);
        cr_assert(!has['a'] && has['b'] && has['c'] && has['d'], "broken at %zu", at);
        cr_assert_str_eq(versions['b'], "12", "broken at %zu", at);
        cr_assert(as_kube_watch_is_synced(watch));
        watch = as_kube_watch_stop(watch);
    }
}
