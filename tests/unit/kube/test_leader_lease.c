/*
 * The adapter against a scripted API server: what is sent, what is reported, and that nothing is
 * lost between two requests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/kube/leader_lease.h>

#include "pod.h"

#define S          AS_US_PER_S
#define COLLECTION "/apis/coordination.k8s.io/v1/namespaces/ops/leases"
#define PATH       COLLECTION "/alertscaler"

static struct as_leader *leader;
static unsigned changes, dones;

static void on_changed(void *context)
{
    changes++;
}

static void on_done(void *context)
{
    dones++;
}

static void setup(void)
{
    struct as_kube_access_config config = {NULL, NULL};
    struct as_error error = AS_ERROR_INIT;
    struct as_kube_access *access_;
    setup_pod("first");
    cr_assert_eq(as_kube_access_new(&config, &env, &access_, &error), 0, "%s", error.text);
    leader = as_lease_leader_new(
        &(struct as_lease_leader_config){"ops", "alertscaler", "me", 15 * S, 10 * S, 2 * S, 1},
        access_, &env);
}

static void teardown(void)
{
    if (leader)
        leader->close(leader);
    teardown_pod();
}

TestSuite(lease, .init = setup, .fini = teardown);

static void answer(const char *method, const char *path, int status, const char *body)
{
    world_answer(&world, (struct world_answer){method, path, .status = status, .body = body});
}

/* The object with this holder and version, and more in its metadata. */
static const char *object(const char *holder, int version, const char *more)
{
    static char texts[8][1000];
    static unsigned next;
    char *text = texts[next++ % 8];
    snprintf(text, sizeof(texts[0]),
             "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":"
             "\"alertscaler\",\"namespace\":\"ops\",\"resourceVersion\":\"%d\"%s},\"spec\":{"
             "\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":15,\"leaseTransitions\":%d}}",
             version, more, holder, version);
    return text;
}

static struct world_answer refuse(void *context, const struct world_request *request)
{
    return (struct world_answer){.outcome = AS_HTTP_UNREACHABLE, .error = "refused"};
}

static const struct world_request *get_request(size_t from_end)
{
    cr_assert_leq(from_end, world.request_count);
    return &world.requests[world.request_count - from_end];
}

static void pass(int64_t us)
{
    for (int64_t step = S / 20; us > 0; us -= step)
        world_advance(&world, step);
}

static void start(void)
{
    leader->start(leader, &(struct as_leader_callbacks){on_changed, NULL});
    cr_assert_eq(changes, 0, "told in the same turn");
}

static void lead(void)
{
    answer("GET", PATH, 404, "{}");
    answer("POST", COLLECTION, 201, object("me", 1, ""));
    start();
    world_run(&world);
    cr_assert(leader->look(leader).is_leader);
    cr_assert(leader->may_act(leader));
}

Test(lease, what_is_not_there_is_made_and_leads)
{
    lead();
    cr_expect_eq(changes, 1);
    cr_expect_str_eq(leader->look(leader).holder, "me");
    cr_expect_str_eq(leader->look(leader).identity, "me");
    cr_expect_null(leader->look(leader).problem);
    cr_expect_null(leader->look(leader).paused);
    const struct world_request *request = get_request(1);
    cr_expect_str_eq(request->method, "POST");
    cr_expect(strstr(request->body, "\"holderIdentity\":\"me\""));
    cr_expect(strstr(request->body, "\"leaseDurationSeconds\":15"));
    cr_expect(strstr(request->body, "\"renewTime\":\""));
    cr_expect_eq(request->timeout_us, 5 * S);
    cr_expect_eq(request->class, AS_HTTP_LEASE);
}

Test(lease, it_is_renewed_over_what_was_read_last)
{
    lead();
    answer("PUT", PATH, 200, object("me", 2, ",\"labels\":{\"team\":\"a\"}"));
    pass(2 * S);
    cr_expect(strstr(get_request(1)->body, "\"resourceVersion\":\"1\""));
    answer("PUT", PATH, 200, object("me", 3, ",\"labels\":{\"team\":\"a\"}"));
    pass(2 * S);
    cr_expect(strstr(get_request(1)->body, "\"resourceVersion\":\"2\""));
    cr_expect(strstr(get_request(1)->body, "\"team\":\"a\""), "others' labels stay");
    cr_expect_eq(changes, 1, "renewing changes nothing");
}

Test(lease, who_follows_says_whom)
{
    answer("GET", PATH, 200, object("other", 7, ""));
    start();
    world_run(&world);
    cr_expect_eq(changes, 1);
    cr_expect_not(leader->look(leader).is_leader);
    cr_expect_not(leader->may_act(leader));
    cr_expect_str_eq(leader->look(leader).holder, "other");
}

Test(lease, the_kill_switch_is_seen_by_both)
{
    answer("GET", PATH, 200,
           object("other", 7, ",\"annotations\":{\"alertscaler.io/paused\":\"freeze\"}"));
    start();
    world_run(&world);
    cr_assert_not_null(leader->look(leader).paused);
    cr_expect_str_eq(leader->look(leader).paused, "freeze");
    answer("GET", PATH, 200, object("", 8, ""));
    answer("PUT", PATH, 200, object("me", 9, ""));
    pass(S);
    cr_expect_null(leader->look(leader).paused);
    cr_expect(leader->look(leader).is_leader);
    /* annotated under the leader: its next renewal meets a conflict, and then it sees why */
    answer("PUT", PATH, 409, "{}");
    answer("GET", PATH, 200, object("me", 10, ",\"annotations\":{\"alertscaler.io/paused\":\"\"}"));
    answer("PUT", PATH, 200, object("me", 11, ",\"annotations\":{\"alertscaler.io/paused\":\"\"}"));
    pass(5 * S / 2);
    cr_assert_not_null(leader->look(leader).paused);
    cr_expect_str_eq(leader->look(leader).paused, "");
    cr_expect(leader->look(leader).is_leader);
    cr_expect_null(leader->look(leader).problem, "a conflict is none");
}

Test(lease, what_goes_wrong_is_said_and_passes)
{
    answer("GET", PATH, 403,
           "{\"kind\":\"Status\",\"message\":\"leases.coordination.k8s.io \\\"alertscaler\\\" is "
           "forbidden\"}");
    start();
    world_run(&world);
    cr_assert_not_null(leader->look(leader).problem);
    cr_expect_str_eq(leader->look(leader).problem,
                     "reading lease ops/alertscaler: HTTP 403: leases.coordination.k8s.io "
                     "\"alertscaler\" is forbidden");
    answer("GET", PATH, 200, "{}");
    pass(S);
    cr_expect(strstr(leader->look(leader).problem, "kind: expected Lease"));
    answer("GET", PATH, 200, object("other", 7, ""));
    pass(S);
    cr_expect_null(leader->look(leader).problem);
    cr_expect_eq(changes, 3);
}

Test(lease, a_term_that_cannot_be_renewed_ends_and_is_told)
{
    lead();
    world_answer(&world, (struct world_answer){"PUT", PATH, .outcome = AS_HTTP_TIMEOUT,
                                               .error = "timed out"});
    world.serve = refuse;
    pass(10 * S);
    cr_expect_not(leader->look(leader).is_leader);
    cr_expect_not(leader->may_act(leader));
    cr_expect_str_eq(leader->look(leader).problem, "reading lease ops/alertscaler: refused");
    cr_expect_geq(changes, 3, "it led, there was a problem, it does not lead");
}

Test(lease, yielding_is_told_and_others_may_have_it)
{
    lead();
    answer("GET", PATH, 200, object("me", 1, ""));
    answer("PUT", PATH, 200, object("", 2, ""));
    leader->yield(leader);
    cr_expect_not(leader->may_act(leader));
    cr_expect_eq(changes, 1, "told in the same turn");
    world_run(&world);
    cr_expect_gt(changes, 1);
    cr_expect_not(leader->look(leader).is_leader);
    cr_expect(strstr(get_request(1)->body, "\"holderIdentity\":\"\""));
    answer("GET", PATH, 200, object("other", 3, ""));
    pass(S);
    cr_expect_str_eq(leader->look(leader).holder, "other");
}

Test(lease, giving_back_is_done_once_it_is_written)
{
    lead();
    answer("PUT", PATH, 200, object("", 2, ""));
    leader->release(leader, on_done, NULL);
    cr_expect_not(leader->may_act(leader));
    cr_expect_eq(dones, 0, "told in the same turn");
    world_run(&world);
    cr_expect_eq(dones, 1);
    cr_expect(strstr(get_request(1)->body, "\"holderIdentity\":\"\""));
    cr_expect(strstr(get_request(1)->body, "\"leaseDurationSeconds\":1"));
    pass(60 * S);
    cr_expect_eq(world.request_count, 3, "nothing afterwards");
}

Test(lease, giving_back_what_is_not_ours_is_done_at_once)
{
    answer("GET", PATH, 200, object("other", 7, ""));
    start();
    world_run(&world);
    leader->release(leader, on_done, NULL);
    world_run(&world);
    cr_expect_eq(dones, 1);
    cr_expect_eq(world.request_count, 1);
}

Test(lease, giving_back_ends_without_an_api_server_too)
{
    lead();
    world.serve = refuse;
    leader->release(leader, on_done, NULL);
    pass(5 * S);
    cr_expect_eq(dones, 1);
    const size_t asked = world.request_count;
    cr_expect_geq(asked, 6, "tried again meanwhile");
    pass(60 * S);
    cr_expect_eq(world.request_count, asked);
}

Test(always, one_replica_leads_from_the_first_turn_on, .init = setup, .fini = teardown)
{
    struct as_leader *always = as_always_leader_new("one", &world.loop);
    cr_expect_not(always->may_act(always));
    always->start(always, &(struct as_leader_callbacks){on_changed, NULL});
    cr_expect_eq(changes, 0);
    world_run(&world);
    cr_expect_eq(changes, 1);
    cr_expect(always->may_act(always));
    cr_expect(always->look(always).is_leader);
    cr_expect_str_eq(always->look(always).holder, "one");
    always->yield(always);
    cr_expect(always->may_act(always), "there is nobody else");
    always->release(always, on_done, NULL);
    cr_expect_not(always->may_act(always));
    world_run(&world);
    cr_expect_eq(dones, 1);
    always->close(always);
}
