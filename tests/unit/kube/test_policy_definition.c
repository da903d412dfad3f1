/*
 * policy_definition.h against a scripted API server: the request, the comparison, and the next
 * request after each kind of answer.
 */
#include <alertscaler/kube/policy_definition.h>
#include <alertscaler/rules/policy.h>

#include "kube_client.h"

#define NEWEST "{\"metadata\":{\"annotations\":{\"a\":\"b\",\"alertscaler.io/schema\":\"1\"}}}"
#define BARE   "{\"metadata\":{\"name\":\"scalingpolicies.alertscaler.io\"}}"

static struct as_policy_definition *definition;
static int status;
static const char *body;
static unsigned reads;
static bool is_older;

static struct world_answer serve(void *context, const struct world_request *request)
{
    (void)context, (void)request;
    if (status == 0)
        return (struct world_answer){.outcome = AS_HTTP_UNREACHABLE, .error = "refused"};
    return (struct world_answer){.status = status, .body = body};
}

static void on_read(void *context, bool older)
{
    (void)context;
    reads++;
    is_older = older;
}

static void setup(void)
{
    setup_client();
    world.serve = serve;
    status = 200;
    body = NEWEST;
    reads = 0;
    definition = as_policy_definition_start(&client, on_read, NULL);
}

static void teardown(void)
{
    definition = as_policy_definition_stop(definition);
    teardown_client();
}

TestSuite(policy_definition, .init = setup, .fini = teardown);

Test(policy_definition, requests_the_metadata_once)
{
    world_run(&world);
    cr_assert_eq(world.request_count, 1);
    const struct world_request *request = get_last_request();
    cr_expect_str_eq(request->url, "https://k:6443/apis/apiextensions.k8s.io/v1/"
                                   "customresourcedefinitions/scalingpolicies.alertscaler.io");
    cr_expect(strstr(request->headers,
                     "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1\n"));
    cr_expect_eq(reads, 1);
    cr_expect(!is_older);
    world_advance(&world, AS_US_PER_H);
    cr_expect_eq(world.request_count, 1);
}

Test(policy_definition, compares_numbers)
{
    static const struct {
        const char *body;
        bool is_older;
    } rows[] = {
        {BARE, true},
        {"{\"metadata\":{\"annotations\":{\"alertscaler.io/schema\":\"0\"}}}", true},
        {"{\"metadata\":{\"annotations\":{\"alertscaler.io/schema\":\"new\"}}}", true},
        {"{\"metadata\":{\"annotations\":{\"alertscaler.io/schema\":9}}}", true},
        {"{\"metadata\":{\"annotations\":{\"alertscaler.io/schema\":\"9\"}}}", false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        body = rows[i].body;
        as_policy_definition_refresh(definition);
        world_advance(&world, AS_US_PER_S);
        cr_expect_eq(reads, i + 1);
        cr_expect_eq(is_older, rows[i].is_older, "%s", body);
    }
}

Test(policy_definition, reads_an_older_definition_until_it_is_replaced)
{
    body = BARE;
    world_run(&world);
    cr_expect(is_older);
    world_advance(&world, 29 * AS_US_PER_S);
    cr_expect_eq(reads, 1);
    body = NEWEST;
    world_advance(&world, AS_US_PER_S);
    cr_expect_eq(reads, 2);
    cr_expect(!is_older);
    world_advance(&world, AS_US_PER_H);
    cr_expect_eq(reads, 2);
}

Test(policy_definition, many_refreshes_are_one_request)
{
    world_run(&world);
    for (unsigned i = 0; i < 1000; i++)
        as_policy_definition_refresh(definition);
    world_advance(&world, AS_US_PER_MIN);
    cr_expect_eq(world.request_count, 2);
}

Test(policy_definition, repeats_after_a_failure)
{
    status = 0;
    world_run(&world);
    cr_expect_eq(world.request_count, 1);
    status = 500;
    world_advance(&world, 30 * AS_US_PER_S);
    cr_expect_eq(world.request_count, 2);
    status = 200;
    body = "no JSON";
    world_advance(&world, 30 * AS_US_PER_S);
    cr_expect_eq(world.request_count, 3);
    cr_expect_eq(reads, 0);
    body = NEWEST;
    world_advance(&world, 30 * AS_US_PER_S);
    cr_expect_eq(reads, 1);
}

Test(policy_definition, waits_without_the_right_or_the_definition)
{
    static const int answers[] = {403, 404};
    for (size_t i = 0; i < AS_ARRAY_SIZE(answers); i++) {
        status = answers[i];
        body = STATUS("no", "");
        as_policy_definition_refresh(definition);
        world_advance(&world, AS_US_PER_H);
        cr_expect_eq(world.request_count, i + 1);
    }
    cr_expect_eq(reads, 0);
}
