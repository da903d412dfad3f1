/*
 * kube_client.h: one request to an API server on the wire; a 401 is answered with other credentials
 * once; a request that cannot start reports it in a later turn.
 */
#include <alertscaler/kube/kube_client.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/http/access_limits.h>

#include "pod.h"

static struct as_kube_access *access_;
static struct as_kube_client client;
static unsigned told, attempts_told;
static int status_told;
static enum as_http_outcome outcome_told;

static void setup(void)
{
    struct as_kube_access_config config = {NULL, NULL};
    struct as_error error = AS_ERROR_INIT;
    setup_pod("first");
    cr_assert_eq(as_kube_access_new(&config, &env, &access_, &error), 0, "%s", error.text);
    as_kube_client_init(&client, &env, access_);
}

static void teardown(void)
{
    as_kube_client_deinit(&client);
    as_kube_access_free(access_);
    teardown_pod();
}

TestSuite(kube_client, .init = setup, .fini = teardown);

static void done(void *context, const struct as_http_response *response, unsigned attempts)
{
    told++;
    attempts_told = attempts;
    outcome_told = response->outcome;
    status_told = response->status;
}

static struct as_kube_request *start(const struct as_kube_request_spec *spec)
{
    struct as_kube_request *request = as_kube_request_start(&client, spec, done, NULL);
    cr_assert_eq(told, 0, "told in the same turn");
    return request;
}

#define PATH "/apis/coordination.k8s.io/v1/namespaces/a/leases/b"

Test(kube_client, a_patch_as_the_caller_wants_it)
{
    const struct as_kube_request_spec spec = {
        .method = "PATCH",
        .path = PATH,
        .operation = "patch_lease",
        .content_type = "application/merge-patch+json",
        .body = "{}",
        .body_size = 2,
        .max_response = 1000,
        .timeout_us = 3 * AS_US_PER_S,
    };
    world_answer(&world, (struct world_answer){.method = "PATCH", .path = PATH, .status = 200});
    (void)!start(&spec);
    world_run(&world);
    cr_assert_eq(world.request_count, 1);
    const struct world_request *request = &world.requests[0];
    cr_expect_str_eq(request->url, "https://k:443" PATH);
    cr_expect_str_eq(request->headers, "Accept: application/json\n"
                                       "Content-Type: application/merge-patch+json\n"
                                       "Authorization: Bearer first\n");
    cr_expect_str_eq(request->body, "{}");
    cr_expect_eq(request->timeout_us, 3 * AS_US_PER_S);
    cr_expect_eq(request->max_response, 1000);
    cr_expect_eq(told, 1);
    cr_expect_eq(attempts_told, 1);
    cr_expect_eq(status_told, 200);
}

Test(kube_client, said_nothing_a_body_is_json_and_the_time_is_limited)
{
    const struct as_kube_request_spec spec = {
        .method = "POST", .path = "/x", .body = "[]", .body_size = 2, .max_response = 10};
    world_answer(&world, (struct world_answer){.method = "POST", .path = "/x", .status = 201});
    (void)!start(&spec);
    world_run(&world);
    cr_expect_not_null(strstr(world.requests[0].headers, "Content-Type: application/json\n"));
    cr_expect_eq(world.requests[0].timeout_us, AS_KUBE_TIMEOUT_US);
}

Test(kube_client, refused_credentials_are_read_again_once)
{
    const struct as_kube_request_spec spec = {.method = "GET", .path = "/x", .max_response = 10};
    world_answer(&world, (struct world_answer){.method = "GET", .path = "/x", .status = 401});
    world_answer(&world, (struct world_answer){.method = "GET", .path = "/x", .status = 401});
    (void)!start(&spec);
    write_file(account_token, "second");
    world_run(&world);
    cr_assert_eq(world.request_count, 2);
    cr_expect_not_null(strstr(world.requests[1].headers, "Bearer second\n"));
    cr_expect_eq(told, 1);
    cr_expect_eq(attempts_told, 2);
    cr_expect_eq(status_told, 401);
}

Test(kube_client, without_credentials_nothing_is_sent)
{
    const struct as_kube_request_spec spec = {.method = "GET", .path = "/x", .max_response = 10};
    unlink(account_token);
    (void)!start(&spec);
    world_run(&world);
    cr_expect_eq(world.request_count, 0);
    cr_expect_eq(told, 1);
    cr_expect_eq(attempts_told, 0);
    cr_expect_eq(outcome_told, AS_HTTP_UNREACHABLE);
}

Test(kube_client, nothing_is_told_after_a_cancel)
{
    const struct as_kube_request_spec spec = {.method = "GET", .path = "/x", .max_response = 10};
    as_kube_request_cancel(start(&spec));
    world_run(&world);
    cr_expect_eq(told, 0);
    cr_expect(world.requests[0].is_cancelled);
}
