/*
 * policy_status.h against a scripted API server: the requests, their order and rate, and the end of
 * each status: written, newer, tried again, or dropped.
 */
#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/policy_status.h>

#include "kube_client.h"

static struct as_policy_status_writer *writer;
static int status;              /* of each answer */
static const char *retry_after; /* or NULL */
static bool is_away, is_too_large;
static char told[256]; /* what is written, as the callback had it */
static enum as_permit permit;

static struct world_answer serve(void *context, const struct world_request *request)
{
    (void)context;
    if (is_too_large && strstr(request->url, "/large/"))
        return (struct world_answer){.outcome = AS_HTTP_TOO_LARGE, .error = "too large"};
    if (is_away)
        return (struct world_answer){.outcome = AS_HTTP_UNREACHABLE, .error = "refused"};
    return (struct world_answer){
        .status = status, .retry_after = retry_after, .body = STATUS("no", "")};
}

static void on_written(void *context, const char *namespace, const char *name, const char *uid)
{
    const size_t used = strlen(told);
    (void)snprintf(told + used, sizeof(told) - used, "%s/%s %s;", namespace, name, uid);
}

static enum as_permit get_permit(void *context)
{
    return permit;
}

static void setup(void)
{
    setup_client();
    world.serve = serve;
    status = 200;
    retry_after = NULL;
    is_away = is_too_large = false;
    told[0] = '\0';
    permit = AS_PERMIT_ALL;
    env.get_permit = get_permit;
    writer = as_policy_status_writer_new(&client, on_written, NULL);
}

static void teardown(void)
{
    writer = as_policy_status_writer_free(writer);
    env.get_permit = NULL;
    teardown_client();
}

TestSuite(policy_status, .init = setup, .fini = teardown);

static void put(const char *name, const char *json, bool is_urgent)
{
    as_policy_status_put(writer, "shop", name, "uid-1", json, strlen(json), is_urgent);
}

static void put_many(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        AS_CLEANUP(as_free_p) char *name = as_xasprintf("p%u", i);
        put(name, "{}", false);
    }
}

/* In small steps: the bucket holds few tokens. */
static void pass(int64_t us)
{
    for (; us > 0; us -= 20 * AS_US_PER_MS)
        world_advance(&world, 20 * AS_US_PER_MS);
}

static void expect_counts(uint64_t written, uint64_t failed, size_t waiting)
{
    const struct as_policy_status_counts counts = as_policy_status_get_counts(writer);
    cr_expect_eq(counts.written, written, "written: %llu", (unsigned long long)counts.written);
    cr_expect_eq(counts.failed, failed, "failed: %llu", (unsigned long long)counts.failed);
    cr_expect_eq(counts.waiting, waiting, "waiting: %zu", counts.waiting);
}

Test(policy_status, applies_the_status_as_a_field_manager)
{
    put("web", "{\"size\":6}", true);
    cr_expect_eq(world.request_count, 0);
    world_run(&world);
    cr_assert_eq(world.request_count, 1);
    const struct world_request *request = get_last_request();
    cr_expect_str_eq(request->method, "PATCH");
    cr_expect_str_eq(request->url,
                     "https://k:6443/apis/alertscaler.io/v1alpha1/namespaces/shop/"
                     "scalingpolicies/web/status?fieldManager=alertscaler&force=true");
    cr_expect(strstr(request->headers, "Content-Type: application/apply-patch+yaml\n"));
    cr_expect_str_eq(request->body,
                     "{\"apiVersion\":\"alertscaler.io/v1alpha1\",\"kind\":\"ScalingPolicy\","
                     "\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"uid-1\"},"
                     "\"status\":{\"size\":6}}");
    cr_expect_str_eq(told, "shop/web uid-1;");
    expect_counts(1, 0, 0);
}

Test(policy_status, sends_at_most_fifty_a_second)
{
    put_many(200);
    world_run(&world);
    cr_expect_eq(world.request_count, 10, "a burst: %zu", world.request_count);
    pass(1 * AS_US_PER_S);
    cr_expect_eq(world.request_count, 60, "%zu", world.request_count);
    pass(3 * AS_US_PER_S);
    cr_expect_eq(world.request_count, 200);
    expect_counts(200, 0, 0);
}

Test(policy_status, conditions_come_first)
{
    put_many(30);
    put("p20", "{\"size\":1}", true);
    put("urgent", "{}", true);
    world_run(&world);
    cr_assert_gt(world.request_count, 2);
    cr_expect(strstr(world.requests[0].url, "/p20/"));
    cr_expect(strstr(world.requests[1].url, "/urgent/"));
    cr_expect(strstr(world.requests[2].url, "/p0/"));
}

Test(policy_status, the_newest_status_wins)
{
    put("web", "{\"size\":1}", true);
    put("web", "{\"size\":2}", false);
    expect_counts(0, 0, 1);
    world_run(&world);
    cr_expect_eq(world.request_count, 1);
    cr_expect(strstr(get_last_request()->body, "\"size\":2"));
}

/* The request is under way while the next status comes. */
Test(policy_status, one_request_at_a_time_for_a_policy)
{
    put("web", "{\"size\":1}", false);
    (void)world_expire(&world);
    cr_assert_eq(world.request_count, 1);
    put("web", "{\"size\":2}", false);
    put("web", "{\"size\":3}", false);
    (void)world_expire(&world);
    cr_expect_eq(world.request_count, 1);
    world_run(&world);
    cr_expect_eq(world.request_count, 2);
    cr_expect(strstr(get_last_request()->body, "\"size\":3"));
    cr_expect_str_eq(told, "shop/web uid-1;", "only of the newest: %s", told);
    expect_counts(2, 0, 0);
}

static void expect_dropped(int http, uint64_t failed)
{
    status = http;
    put("web", "{}", true);
    world_advance(&world, AS_US_PER_H);
    cr_expect_eq(world.request_count, 1, "%d: %zu", http, world.request_count);
    cr_expect_str_eq(told, "");
    expect_counts(0, failed, 0);
}

Test(policy_status, an_object_that_is_gone_is_no_failure)
{
    expect_dropped(404, 0);
}

Test(policy_status, a_successor_of_the_name_is_no_failure)
{
    expect_dropped(409, 0);
}

Test(policy_status, a_refusal_is_not_repeated)
{
    expect_dropped(403, 1);
}

Test(policy_status, tries_again_later_and_later)
{
    status = 500;
    put("web", "{\"size\":1}", true);
    put("other", "{}", false);
    world_run(&world);
    cr_expect_eq(world.request_count, 2, "one failure holds nothing else back");
    world_advance(&world, 1 * AS_US_PER_S);
    cr_expect_eq(world.request_count, 4);
    world_advance(&world, 1 * AS_US_PER_S);
    cr_expect_eq(world.request_count, 4);
    put("web", "{\"size\":2}", false);
    world_run(&world);
    cr_expect_eq(world.request_count, 4, "a newer status waits as long");
    status = 200;
    world_advance(&world, 1 * AS_US_PER_S);
    cr_expect_eq(world.request_count, 6);
    cr_expect(strstr(world.requests[4].body, "\"size\":2"));
    expect_counts(2, 4, 0);
}

Test(policy_status, waits_as_long_as_the_server_asks)
{
    status = 429;
    retry_after = "7";
    put("web", "{}", false);
    world_run(&world);
    put("other", "{}", false);
    world_advance(&world, 7 * AS_US_PER_S - 1);
    cr_expect_eq(world.request_count, 1, "nothing else either");
    status = 200;
    world_advance(&world, 1);
    cr_expect_eq(world.request_count, 3);
    expect_counts(2, 1, 0);
}

Test(policy_status, an_answer_that_is_too_large_delays_its_own_policy_alone)
{
    is_too_large = true;
    put("large", "{}", true);
    world_run(&world);
    put("other", "{}", true);
    world_run(&world);
    cr_expect_str_eq(told, "shop/other uid-1;");
    is_too_large = false;
    pass(AS_US_PER_S);
    cr_expect_str_eq(told, "shop/other uid-1;shop/large uid-1;");
}

Test(policy_status, waits_while_the_server_is_away)
{
    is_away = true;
    put_many(100);
    pass(AS_US_PER_MIN);
    cr_expect_lt(world.request_count, 150, "%zu", world.request_count);
    is_away = false;
    pass(AS_US_PER_MIN);
    cr_expect_eq(as_policy_status_get_counts(writer).written, 100);
    cr_expect_eq(as_policy_status_get_counts(writer).waiting, 0);
}

Test(policy_status, sends_nothing_while_another_replica_may_lead)
{
    permit = AS_PERMIT_NONE;
    put("web", "{}", true);
    world_advance(&world, AS_US_PER_MIN);
    cr_expect_eq(world.request_count, 0);
    expect_counts(0, 0, 0);
    permit = AS_PERMIT_UNDO; /* the kill switch stops sizes, not words */
    put("web", "{}", true);
    world_run(&world);
    cr_expect_eq(world.request_count, 1);
}

Test(policy_status, what_waits_has_a_limit)
{
    const size_t size = (size_t)4 * 1024 * 1024;
    AS_CLEANUP(as_free_p) char *large = as_xmalloc(size + 1);
    memset(large, ' ', size);
    large[0] = '{';
    large[size - 1] = '}';
    large[size] = '\0';
    permit = AS_PERMIT_ALL;
    for (unsigned i = 0; i <= AS_POLICY_STATUS_BYTES / size; i++) {
        AS_CLEANUP(as_free_p) char *name = as_xasprintf("p%u", i);
        put(name, large, false);
    }
    expect_counts(0, 1, AS_POLICY_STATUS_BYTES / size);
    put("p1", "{}", false);
    put("more", "{}", false);
    expect_counts(0, 1, AS_POLICY_STATUS_BYTES / size + 1);
}

Test(policy_status, an_event_is_on_the_policy)
{
    AS_CLEANUP(as_free_p) char *long_text = as_xcalloc(1, 3001);
    memset(long_text, 'x', 3000);
    as_policy_status_post_event(writer, "shop", "web", "uid-1", "Paused", "annotation: release");
    world_run(&world);
    const struct world_request *request = get_last_request();
    cr_expect_str_eq(request->method, "POST");
    cr_expect_str_eq(request->url, "https://k:6443/api/v1/namespaces/shop/events");
    cr_expect(strstr(request->body, "\"kind\":\"ScalingPolicy\""), "%s", request->body);
    cr_expect(strstr(request->body, "\"uid\":\"uid-1\""));
    cr_expect(strstr(request->body, "\"reason\":\"Paused\""));
    cr_expect(strstr(request->body, "\"message\":\"annotation: release\""));
    as_policy_status_post_event(writer, "shop", "web", "uid-1", "Paused", long_text);
    world_run(&world);
    cr_expect_eq(world.request_count, 2);
    cr_expect_lt(strlen(get_last_request()->body), 2000);
    expect_counts(0, 0, 0);
}

/*
 * An outage flips a condition of all policies: as many as the reports give in a step come every
 * 250 ms, beside changed values. All conditions are written within 200 s, before any value that
 * came later, and a status takes the memory of one while it waits.
 */
Test(policy_status, an_outage_is_written_within_200_s)
{
    enum { POLICIES = 10000, A_STEP = 200 };
    static char name[32];
    const as_mono_time begun = {world.mono.us};
    size_t most = 0;
    for (int i = 0; i < POLICIES; i += A_STEP) {
        for (int k = i; k < i + A_STEP; k++) {
            (void)snprintf(name, sizeof(name), "value%d", k);
            put(name, "{\"size\":1}", false);
            (void)snprintf(name, sizeof(name), "p%d", k);
            put(name, "{\"size\":1}", true);
            put(name, "{\"size\":2}", true); /* the reason changed meanwhile */
        }
        pass(240 * AS_US_PER_MS);
        const size_t waiting = as_policy_status_get_counts(writer).waiting;
        most = waiting > most ? waiting : most;
    }
    while (as_policy_status_get_counts(writer).waiting > POLICIES)
        pass(100 * AS_US_PER_MS);
    cr_expect_leq(world.mono.us - begun.us, 200 * AS_US_PER_S, "%lld us",
                  (long long)(world.mono.us - begun.us));
    cr_expect_leq(most, 2 * POLICIES);
    for (size_t i = 0; i < POLICIES; i++)
        cr_assert(strstr(world.requests[i].url, "/p") && !strstr(world.requests[i].url, "/value"),
                  "request %zu: %s", i, world.requests[i].url);
    const struct as_policy_status_counts counts = as_policy_status_get_counts(writer);
    cr_expect_geq(counts.written, POLICIES);
    cr_expect_eq(counts.failed, 0);
}
