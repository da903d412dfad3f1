/*
 * The HTTP node group's adapter and http_config against a scripted server: entity tags are returned
 * unchanged, secrets are read for every request, every failure has one reason.
 */
#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/kube/target_outcome.h>

#include "../kube/support.h"
#include "cloud/node_group.h"

static char directory[] = "/tmp/as-group-XXXXXX", secret[64], other[64];
static struct as_provider_settings settings;
static struct as_target_port *port;
static struct as_target_ref *pool;

static struct as_target_ref *make_group(const char *url)
{
    const struct as_target_field fields[] = {{"provider", "mine"}, {"url", url}};
    return as_target_ref_make(&as_target_kind_node_group, "node_group/mine/x", fields, url ? 2 : 1);
}

static void setup(void)
{
    setup_world();
    cr_assert_not_null(mkdtemp(directory));
    snprintf(secret, sizeof(secret), "%s/secret", directory);
    snprintf(other, sizeof(other), "%s/other", directory);
    settings = (struct as_provider_settings){
        .name = "mine", .type = "http", .timeout_us = 3 * AS_US_PER_S};
    pool = make_group("https://pool:8443/groups/a?token=very-secret");
}

static void open_port(void)
{
    port = as_node_group_new(as_group_provider_find("http"), &settings, &env, NULL, NULL);
}

static void teardown(void)
{
    if (port)
        port->close(port);
    as_target_ref_free(pool);
    unlink(secret);
    unlink(other);
    rmdir(directory);
    teardown_world();
}

TestSuite(http_group, .init = setup, .fini = teardown);

static void answer(const char *method, int status, const char *body, const char *etag)
{
    world_answer(&world, (struct world_answer){method, "/groups/a?token=very-secret",
                                               .status = status, .body = body, .etag = etag});
}

static const struct world_request *last_request(void)
{
    return &world.requests[world.request_count - 1];
}

Test(http_group, observing)
{
    open_port();
    answer("GET", 200, "{\"size\":4,\"min\":1,\"max\":9,\"in_progress\":true}", "\"v1\"");
    observe(port, pool);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED);
    cr_expect_eq(observation.replicas, 4);
    cr_expect_eq(observation.status_replicas, 4);
    cr_expect_eq(observation.min, 1);
    cr_expect_eq(observation.max, 9);
    cr_expect(observation.in_progress);
    cr_expect_str_eq(observation.version, "\"v1\"");
    cr_expect_str_eq(last_request()->headers, "Accept: application/json\n");
    cr_expect_eq(last_request()->timeout_us, 3 * AS_US_PER_S);
}

Test(http_group, the_tag_of_the_body_counts_before_the_headers)
{
    open_port();
    answer("GET", 200, "{\"size\":4,\"etag\":\"b\"}", "\"h\"");
    observe(port, pool);
    cr_expect_str_eq(observation.version, "b");
    cr_expect_eq(observation.min, -1);
    cr_expect_eq(observation.max, -1);
    cr_expect_not(observation.in_progress);
}

Test(http_group, scaling_says_both_sizes_and_the_tag)
{
    open_port();
    answer("PUT", 202, "whatever", NULL);
    scale(port, pool, 4, 6, "W/\"v1\"");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED);
    cr_expect_eq(result.attempts, 1);
    cr_expect_str_eq(result.method, "PUT");
    cr_expect_str_eq(result.path, "/groups/a"); /* without the query, which may be a secret */
    cr_expect_str_eq(last_request()->body, "{\"size\":6,\"observed\":4}");
    cr_expect_str_eq(last_request()->headers, "Accept: application/json\nContent-Type: "
                                              "application/json\nIf-Match: W/\"v1\"\n");
    answer("PUT", 200, "", NULL);
    scale(port, pool, 4, 6, "");
    cr_expect_null(strstr(last_request()->headers, "If-Match"));
}

Test(http_group, a_change_is_one_request_in_both_directions)
{
    open_port();
    answer("PUT", 200, "", NULL);
    scale(port, pool, 6, 2, "v");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED);
    cr_expect_not(result.is_partial);
    cr_expect_eq(world.request_count, 1);
    cr_expect_str_eq(last_request()->body, "{\"size\":2,\"observed\":6}");
    cr_expect_eq(last_request()->max_response, AS_TARGET_RESPONSE_MAX);
    cr_expect_str_eq(last_request()->target, "node_group/mine/x");
}

Test(http_group, instances_are_not_known)
{
    open_port();
    answer("GET", 200, "{\"size\":4,\"removes_by_name\":true}", NULL);
    observe(port, pool);
    cr_expect_eq(observation.status_replicas, 4);
    cr_expect_not(observation.names_instances);
    cr_expect_null(observation.nodes);
    cr_expect_null(observation.members);
    cr_expect_eq(observation.marked, 0);
}

/* The time and the request id in the answer have no effect. */
Test(http_group, a_refused_request_is_not_sent_again)
{
    open_port();
    world_answer(&world, (struct world_answer){"PUT", "very-secret", .status = 401,
                                               .fields = "Date\0Wed, 01 Jan 2020 00:00:00 GMT\0"
                                                         "X-Request-Id\0r1\0"});
    scale(port, pool, 4, 6, "v");
    cr_expect_eq(result.outcome, AS_REASON_FORBIDDEN);
    cr_expect_eq(result.attempts, 1);
    cr_expect_eq(world.request_count, 1);
    cr_expect_str_eq(result.request_id, "");
}

Test(http_group, a_read_neither_conflicts_nor_is_ambiguous)
{
    static const struct {
        int status;
        enum as_reason reason;
        const char *message;
    } rows[] = {
        {408, AS_REASON_REJECTED, "HTTP 408"},  {409, AS_REASON_REJECTED, "HTTP 409"},
        {412, AS_REASON_REJECTED, "HTTP 412"},  {410, AS_REASON_TARGET_NOT_FOUND, "HTTP 410"},
        {429, AS_REASON_THROTTLED, "HTTP 429"}, {503, AS_REASON_UNREACHABLE, "HTTP 503"},
        {301, AS_REASON_REJECTED, "HTTP 301"},
    };
    open_port();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        world_answer(&world, (struct world_answer){"GET", "very-secret", .status = rows[i].status,
                                                   .body = "", .retry_after = "7"});
        observe(port, pool);
        cr_expect_eq(observation.outcome, rows[i].reason, "row %zu", i);
        cr_expect_str_eq(observation.message, rows[i].message, "row %zu", i);
        cr_expect_eq(observation.http_status, rows[i].status, "row %zu", i);
        cr_expect_eq(observation.retry_after_us, 7 * AS_US_PER_S, "row %zu", i);
        cr_expect_eq(observation.min, -1);
        cr_expect_eq(observation.max, -1);
    }
}

Test(http_group, what_goes_wrong)
{
    static const struct {
        enum as_http_outcome transport;
        int status;
        const char *body;
        enum as_reason reason;
        bool is_ambiguous;
        const char *message;
    } rows[] = {
        {AS_HTTP_ANSWERED, 400, "{\"error\":\"no\"}", AS_REASON_REJECTED, false, "no"},
        {AS_HTTP_ANSWERED, 401, "", AS_REASON_FORBIDDEN, false, "HTTP 401"},
        {AS_HTTP_ANSWERED, 408, "", AS_REASON_REJECTED, false, "HTTP 408"},
        {AS_HTTP_ANSWERED, 404, "<html>", AS_REASON_TARGET_NOT_FOUND, false, "HTTP 404"},
        {AS_HTTP_ANSWERED, 409, "", AS_REASON_CONFLICT, false, "HTTP 409"},
        {AS_HTTP_ANSWERED, 412, "", AS_REASON_CONFLICT, false, "HTTP 412"},
        {AS_HTTP_ANSWERED, 429, "", AS_REASON_THROTTLED, false, "HTTP 429"},
        {AS_HTTP_ANSWERED, 500, "", AS_REASON_UNREACHABLE, true, "HTTP 500"},
        {AS_HTTP_UNREACHABLE, 0, "", AS_REASON_UNREACHABLE, false, "transport"},
        {AS_HTTP_BROKEN, 0, "", AS_REASON_UNREACHABLE, true, "transport"},
        {AS_HTTP_TIMEOUT, 0, "", AS_REASON_TIMEOUT, true, "transport"},
        {AS_HTTP_TOO_LARGE, 0, "", AS_REASON_REJECTED, true, "transport"},
    };
    open_port();
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        world_answer(&world,
                     (struct world_answer){"PUT", "very-secret", rows[i].transport, rows[i].status,
                                           .body = rows[i].body, .error = "transport"});
        scale(port, pool, 4, 6, "v");
        cr_expect_eq(result.outcome, rows[i].reason, "row %zu", i);
        cr_expect_eq(result.is_ambiguous, rows[i].is_ambiguous, "row %zu", i);
        cr_expect_str_eq(result.message, rows[i].message, "row %zu", i);
    }
    answer("GET", 200, "{\"size\":-1}", NULL);
    observe(port, pool);
    cr_expect_eq(observation.outcome, AS_REASON_REJECTED);
    cr_expect_not_null(strstr(observation.message, "not a node group's document: size: expected"));
    answer("GET", 200, "{\"size\":1}", "bad tag");
    observe(port, pool);
    cr_expect_eq(observation.outcome, AS_REASON_REJECTED);
}

Test(http_group, what_cannot_be_sent_is_rejected)
{
    struct as_target_ref *nowhere = make_group(NULL);
    open_port();
    observe(port, nowhere);
    cr_expect_eq(observation.outcome, AS_REASON_REJECTED);
    scale(port, pool, 4, 6, "v\r\nX-Evil: 1");
    cr_expect_eq(result.outcome, AS_REASON_REJECTED);
    cr_expect_str_eq(result.message, "not an entity tag");
    cr_expect_str_eq(result.path, "/groups/a");
    cr_expect_str_eq(observation.message, "the target has no url");
    cr_expect_not(result.is_ambiguous);
    cr_expect_eq(world.request_count, 0);
    as_target_ref_free(nowhere);
}

/* http_config */

static void expect_headers(const char *want)
{
    answer("GET", 200, "{\"size\":4}", NULL);
    observe(port, pool);
    cr_assert_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
    cr_expect_str_eq(last_request()->headers, want);
}

Test(http_group, a_rotated_secret_is_used_after_a_second)
{
    settings.http.authorization.type = "Token";
    settings.http.authorization.credentials_file = secret;
    write_file(secret, "one\n");
    open_port();
    expect_headers("Accept: application/json\nAuthorization: Token one\n");
    write_file(secret, "two\n");
    usleep(1100 * 1000);
    expect_headers("Accept: application/json\nAuthorization: Token two\n");
}

Test(http_group, basic_auth)
{
    settings.http.basic_auth.username = "admin";
    settings.http.basic_auth.password_file = secret;
    write_file(secret, "secret");
    open_port();
    expect_headers("Accept: application/json\nAuthorization: Basic YWRtaW46c2VjcmV0\n");
}

Test(http_group, basic_auth_with_the_name_in_a_file)
{
    settings.http.basic_auth.username_file = other;
    settings.http.basic_auth.password_file = secret;
    write_file(other, "admin");
    write_file(secret, "secret");
    open_port();
    expect_headers("Accept: application/json\nAuthorization: Basic YWRtaW46c2VjcmV0\n");
}

Test(http_group, further_headers_tls_and_proxy)
{
    const char *values[] = {"a", "b"}, *files[] = {secret};
    struct as_header_settings headers[] = {{.name = "X-One", .values = values, .value_count = 2},
                                           {.name = "X-Two", .files = files, .file_count = 1}};
    settings.http.headers = headers;
    settings.http.header_count = 2;
    settings.http.tls.ca_file = "/ca";
    settings.http.tls.key_file = "/key";
    settings.http.proxy_url = "http://proxy";
    write_file(secret, "s");
    open_port();
    expect_headers("Accept: application/json\nX-One: a\nX-One: b\nX-Two: s\n");
    cr_expect_str_eq(last_request()->ca_file, "/ca");
    cr_expect_str_eq(last_request()->key_file, "/key");
    cr_expect_str_eq(last_request()->proxy_url, "http://proxy");
}

/* The proxy of the group's own requests is the user's choice. */
Test(http_group, a_group_on_this_machine_may_be_behind_the_proxy)
{
    settings.http.proxy_url = "http://proxy";
    as_target_ref_free(pool);
    pool = make_group("http://localhost:81/groups/a?token=very-secret");
    open_port();
    expect_headers("Accept: application/json\n");
    cr_expect_str_eq(last_request()->proxy_url, "http://proxy");
}

Test(http_group, a_secret_that_cannot_be_read_sends_nothing)
{
    settings.http.authorization.type = "Bearer";
    settings.http.authorization.credentials_file = secret;
    open_port();
    scale(port, pool, 4, 6, "v");
    cr_expect_eq(result.outcome, AS_REASON_UNREACHABLE);
    cr_expect_not(result.is_ambiguous);
    cr_expect_eq(result.attempts, 0);
    cr_expect_eq(strncmp(result.message, "credentials_file: ", 18), 0, "%s", result.message);
    cr_expect_str_eq(result.method, "PUT");
    cr_expect_str_eq(result.path, "/groups/a");
    cr_expect_eq(world.request_count, 0);
}

Test(http_group, nothing_is_told_after_close)
{
    struct as_target_ref *nowhere = make_group(NULL);
    open_port();
    port->observe(port, 1, pool, &(struct as_observe_request){0}, keep_observation, NULL);
    while (world.request_count < 1)
        cr_assert(world_expire(&world));
    port->observe(port, 2, nowhere, &(struct as_observe_request){0}, keep_observation, NULL);
    port->close(port);
    port = NULL;
    world_run(&world);
    cr_expect_eq(observed_count, 0);
    cr_expect(last_request()->is_cancelled);
    as_target_ref_free(nowhere);
}
