/*
 * http_config with a login, against scripted servers: one request for a token at a time, tokens
 * that expire, that are refused, that are none; one error each; no secret in any of them.
 */
#include <alertscaler/login/http_auth.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "files.h"
#include "world.h"

#define TOKEN_URL "https://login.example.com/token"
#define SECRET    "s3cret/+ ="
#define BASIC     "Authorization: Basic Y2xpZW50OnMzY3JldCUyRiUyQiUyMCUzRA==\n"
#define FORM      "grant_type=client_credentials&scope=metrics.read%20other"
#define TYPE      "Content-Type: application/x-www-form-urlencoded\n"

static struct world world;
static struct as_http_settings settings;
static struct as_http_auth *auth;
static char directory[] = "/tmp/as-login-XXXXXX", secret[64];
static const char *variables[8][2];

static const char *get_variable(const char *name)
{
    for (size_t i = 0; variables[i][0]; i++)
        if (strcmp(variables[i][0], name) == 0)
            return variables[i][1];
    return NULL;
}

static const char *scopes[] = {"metrics.read", "other"};

static void setup(void)
{
    world_init(&world);
    cr_assert_not_null(mkdtemp(directory));
    snprintf(secret, sizeof(secret), "%s/secret", directory);
    write_file(secret, SECRET "\n");
    settings = (struct as_http_settings){
        .login = AS_LOGIN_OAUTH2,
        .oauth2 = {.client_id = "client",
                   .client_secret_file = secret,
                   .token_url = TOKEN_URL,
                   .scopes = scopes,
                   .scope_count = 2},
    };
}

static void open_auth(void)
{
    const struct as_login_env env = {&world.http, &world.loop, &world.runner, &world.clock,
                                     get_variable};
    auth = as_http_auth_new(&settings, &env);
}

static void teardown(void)
{
    auth = as_http_auth_free(auth);
    unlink(secret);
    rmdir(directory);
    world_deinit(&world);
}

TestSuite(http_auth, .init = setup, .fini = teardown);

/* ---- requests to the service ---- */

struct sent {
    struct as_http_call *call;
    bool is_done, may_pass;
    enum as_http_outcome outcome;
    int status;
    char text[512]; /* the body, or the error */
};

static void keep(void *context, const struct as_http_response *response)
{
    struct sent *sent = context;
    cr_assert_not(sent->is_done);
    sent->is_done = true;
    sent->call = NULL;
    sent->outcome = response->outcome;
    sent->may_pass = response->may_pass;
    sent->status = response->outcome == AS_HTTP_ANSWERED ? response->status : 0;
    snprintf(sent->text, sizeof(sent->text), "%s",
             response->outcome == AS_HTTP_ANSWERED ? response->body : response->error);
    cr_expect_null(strstr(sent->text, "s3cret"));
}

static void start(struct sent *sent)
{
    char header[] = "Content-Type: text/plain", url[] = "https://metrics/query", body[] = "q";
    const char *const headers[] = {header, NULL};
    struct as_http *http = as_http_auth_get_port(auth);
    const struct as_http_request request = {
        .method = "POST",
        .url = url,
        .headers = headers,
        .body = body,
        .body_size = 1,
        .timeout_us = 30 * AS_US_PER_S,
        .max_response = 1024,
    };
    *sent = (struct sent){0};
    sent->call = http->start(http, &request, keep, sent);
    cr_assert_not(sent->is_done, "done in the same turn");
    memset(header, 'x', sizeof(header) - 1); /* borrowed for the call only */
    memset(url, 'x', sizeof(url) - 1);
    body[0] = 'x';
}

static void answer_token(int status, const char *body)
{
    world_answer(&world, (struct world_answer){"POST", "/token", .status = status, .body = body});
}

static void answer(int status, const char *body)
{
    world_answer(&world, (struct world_answer){"POST", "/query", .status = status, .body = body});
}

static void run(struct sent *sent)
{
    start(sent);
    world_run(&world);
    cr_assert(sent->is_done);
}

static const struct world_request *request_at(size_t from_end)
{
    return &world.requests[world.request_count - 1 - from_end];
}

static void expect_good(const char *body)
{
    struct sent sent;
    run(&sent);
    cr_assert_eq(sent.outcome, AS_HTTP_ANSWERED, "%s", sent.text);
    cr_assert_eq(sent.status, 200);
    cr_assert_str_eq(sent.text, body);
}

static void expect_failure(bool may_pass, const char *error)
{
    struct sent sent;
    run(&sent);
    cr_assert_eq(sent.outcome, AS_HTTP_UNSENT, "%d %s", sent.status, sent.text);
    cr_assert_str_eq(sent.text, error);
    cr_assert_eq(sent.may_pass, may_pass, "%s", error);
}

/* A person must do something. */
static void expect_unsent(const char *error)
{
    expect_failure(false, error);
}

/* ---- oauth2 ---- */

Test(http_auth, a_token_is_fetched_once_and_sent_with_each_request)
{
    settings.oauth2.tls.ca_file = "/login-ca.pem";
    settings.tls.ca_file = "/metrics-ca.pem";
    settings.proxy_url = "http://proxy:3128";
    open_auth();
    answer_token(200, "{\"access_token\":\"t1\",\"token_type\":\"bearer\",\"expires_in\":3600}");
    answer(200, "one");
    expect_good("one");
    cr_expect_str_eq(request_at(1)->url, TOKEN_URL);
    cr_expect_str_eq(request_at(1)->headers, TYPE "Accept: application/json\n" BASIC);
    cr_expect_str_eq(request_at(1)->body, FORM);
    cr_expect_str_eq(request_at(1)->ca_file, "/login-ca.pem");
    cr_expect_str_eq(request_at(1)->proxy_url, "http://proxy:3128");
    cr_expect_str_eq(request_at(0)->url, "https://metrics/query");
    cr_expect_str_eq(request_at(0)->headers,
                     "Content-Type: text/plain\nAuthorization: Bearer t1\n");
    cr_expect_str_eq(request_at(0)->body, "q");
    cr_expect_str_eq(request_at(0)->ca_file, "/metrics-ca.pem");
    answer(200, "two");
    expect_good("two");
    cr_expect_eq(world.request_count, 3);
}

Test(http_auth, endpoint_params_and_no_scope)
{
    struct as_form_parameter parameters[] = {{"audience", "https://metrics/"}, {"a b", "&"}};
    settings.oauth2.scope_count = 0;
    settings.oauth2.endpoint_params = parameters;
    settings.oauth2.endpoint_param_count = 2;
    open_auth();
    answer_token(200, "{\"access_token\":\"t1\"}");
    answer(200, "");
    expect_good("");
    cr_expect_str_eq(request_at(1)->body, "grant_type=client_credentials&audience=https%3A%2F%2F"
                                          "metrics%2F&a%20b=%26");
}

Test(http_auth, a_server_that_accepts_only_the_form_is_remembered)
{
    struct sent sent;
    open_auth();
    answer_token(401, "{\"error\":\"invalid_client\"}");
    answer_token(200, "{\"access_token\":\"t1\",\"expires_in\":600}");
    answer(200, "");
    expect_good("");
    cr_expect_str_eq(request_at(2)->body, FORM);
    cr_expect_str_eq(request_at(1)->body,
                     FORM "&client_id=client&client_secret=s3cret%2F%2B%20%3D");
    cr_expect_str_eq(request_at(1)->headers, TYPE "Accept: application/json\n");
    world_advance(&world, 11 * AS_US_PER_MIN);
    answer_token(200, "{\"access_token\":\"t2\",\"expires_in\":600}");
    answer(200, "");
    run(&sent);
    cr_expect_eq(world.request_count, 5);
    cr_expect_str_eq(request_at(1)->body,
                     FORM "&client_id=client&client_secret=s3cret%2F%2B%20%3D");
}

Test(http_auth, the_secret_is_read_for_each_token)
{
    open_auth();
    answer_token(200, "{\"access_token\":\"t1\",\"expires_in\":60}");
    answer(200, "");
    expect_good("");
    write_file(secret, "other\n");
    world_advance(&world, 2 * AS_US_PER_MIN);
    answer_token(200, "{\"access_token\":\"t2\",\"expires_in\":60}");
    answer(200, "");
    expect_good("");
    cr_expect_not_null(strstr(request_at(1)->headers, "Basic Y2xpZW50Om90aGVy\n"));
    cr_expect_not_null(strstr(request_at(0)->headers, "Bearer t2\n"));
}

Test(http_auth, all_that_wait_have_one_token)
{
    struct sent sent[3];
    open_auth();
    for (size_t i = 0; i < 3; i++)
        start(&sent[i]);
    answer_token(200, "{\"access_token\":\"t1\",\"expires_in\":3600}");
    for (size_t i = 0; i < 3; i++)
        answer(200, "");
    world_run(&world);
    for (size_t i = 0; i < 3; i++)
        cr_expect(sent[i].is_done && sent[i].status == 200);
    cr_expect_eq(world.request_count, 4);
}

Test(http_auth, a_token_is_renewed_after_half_of_a_short_life_and_used_meanwhile)
{
    struct sent sent;
    open_auth();
    answer_token(200, "{\"access_token\":\"t1\",\"expires_in\":300}");
    answer(200, "");
    expect_good("");
    world_advance(&world, 140 * AS_US_PER_S);
    answer(200, "");
    expect_good("");
    world_advance(&world, 20 * AS_US_PER_S);
    answer_token(503, "");
    answer(200, "");
    run(&sent); /* with the old token, although the renewal fails */
    cr_expect_eq(sent.status, 200);
    answer(200, ""); /* and no other renewal at once */
    expect_good("");
    world_advance(&world, 10 * AS_US_PER_S);
    answer(200, "");
    answer_token(200, "{\"access_token\":\"t2\",\"expires_in\":300}");
    expect_good("");
    answer(200, "");
    expect_good("");
    cr_expect_not_null(strstr(request_at(0)->headers, "Bearer t2\n"));
}

/* Its last tenth. */
Test(http_auth, an_old_token_is_used_to_its_end_if_there_is_no_new_one)
{
    struct sent sent;
    open_auth();
    answer_token(200, "{\"access_token\":\"t1\",\"expires_in\":300}");
    answer(200, "");
    expect_good("");
    world_advance(&world, 280 * AS_US_PER_S);
    answer_token(503, "");
    answer(200, "");
    expect_good(""); /* it has waited for the new token */
    answer(200, "");
    expect_good(""); /* no other search at once */
    cr_expect_eq(world.request_count, 5);
    world_advance(&world, 6 * AS_US_PER_S);
    answer(200, "");
    answer_token(503, "");
    run(&sent); /* while the next search runs */
    cr_expect_eq(sent.status, 200);
    cr_expect_str_eq(request_at(0)->url, TOKEN_URL);
    world_advance(&world, 2 * AS_US_PER_S);
    answer(200, "");
    expect_good("");
    cr_expect_not_null(strstr(request_at(0)->headers, "Bearer t1\n"));
    world_advance(&world, 20 * AS_US_PER_S); /* it has expired */
    answer_token(200, "{\"access_token\":\"t2\",\"expires_in\":300}");
    answer(200, "");
    expect_good("");
    cr_expect_not_null(strstr(request_at(0)->headers, "Bearer t2\n"));
}

Test(http_auth, a_token_server_may_ask_for_a_longer_pause)
{
    static const struct {
        const char *asked;
        int64_t pause_s;
    } rows[] = {{"", 5}, {"0", 5}, {"3", 5}, {"60", 60}, {"300", 300}, {"86400", 300}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const char *error = "oauth2: " TOKEN_URL ": HTTP 503";
        const size_t before = world.request_count;
        open_auth();
        world_answer(&world, (struct world_answer){"POST", "/token", .status = 503, .body = "",
                                                   .retry_after = rows[i].asked});
        expect_failure(true, error);
        world_advance(&world, (rows[i].pause_s - 1) * AS_US_PER_S);
        expect_failure(true, error);
        cr_expect_eq(world.request_count, before + 1);
        world_advance(&world, AS_US_PER_S);
        answer_token(200, "{\"access_token\":\"t1\"}");
        answer(200, "");
        expect_good("");
        auth = as_http_auth_free(auth);
    }
}

Test(http_auth, a_token_without_an_end_is_used_until_it_is_refused)
{
    static const char *const bodies[] = {
        "{\"access_token\":\"t1\"}",
        "{\"access_token\":\"t1\",\"expires_in\":0}",
        "{\"access_token\":\"t1\",\"expires_in\":-5}",
        "{\"access_token\":\"t1\",\"expires_in\":\"soon\"}",
        "{\"access_token\":\"t1\",\"expires_in\":1e300}",
        "{\"access_token\":\"t1\",\"expires_in\":null}",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(bodies); i++) {
        open_auth();
        answer_token(200, bodies[i]);
        answer(200, "");
        expect_good("");
        world_advance(&world, 1000 * AS_US_PER_H);
        answer(401, "");
        answer_token(200, "{\"access_token\":\"t2\"}");
        answer(200, "again");
        expect_good("again");
        cr_expect_not_null(strstr(request_at(0)->headers, "Bearer t2\n"));
        cr_expect_str_eq(request_at(0)->body, "q");
        auth = as_http_auth_free(auth);
    }
}

Test(http_auth, digits_are_a_life_too)
{
    open_auth();
    answer_token(200, "{\"access_token\":\"t1\",\"expires_in\":\"60\"}");
    answer(200, "");
    expect_good("");
    world_advance(&world, AS_US_PER_MIN);
    answer_token(200, "{\"access_token\":\"t2\",\"expires_in\":60.5}");
    answer(200, "");
    expect_good("");
}

Test(http_auth, a_refusal_leads_to_one_token_and_one_request)
{
    static const int statuses[] = {401, 403};
    for (size_t i = 0; i < AS_ARRAY_SIZE(statuses); i++) {
        struct sent sent;
        open_auth();
        answer_token(200, "{\"access_token\":\"t1\"}");
        answer(statuses[i], "first");
        answer_token(200, "{\"access_token\":\"t2\"}");
        answer(statuses[i], "second");
        run(&sent);
        cr_expect_eq(sent.status, statuses[i]);
        cr_expect_str_eq(sent.text, "second");
        answer(statuses[i], "third"); /* no other token for a minute */
        run(&sent);
        cr_expect_str_eq(sent.text, "third");
        world_advance(&world, 61 * AS_US_PER_S);
        answer(statuses[i], "fourth");
        answer_token(200, "{\"access_token\":\"t3\"}");
        answer(200, "fifth");
        expect_good("fifth");
        answer(statuses[i], ""); /* the service has accepted the last token: again at once */
        answer_token(200, "{\"access_token\":\"t4\"}");
        answer(200, "sixth");
        expect_good("sixth");
        auth = as_http_auth_free(auth);
    }
}

/* One query may be forbidden for good. */
Test(http_auth, a_request_that_is_always_refused_makes_no_tokens_beside_others)
{
    struct sent sent;
    open_auth();
    answer_token(200, "{\"access_token\":\"t1\"}");
    answer(403, "");
    answer_token(200, "{\"access_token\":\"t2\"}");
    answer(403, "no");
    run(&sent);
    for (size_t i = 0; i < 3; i++) {
        answer(200, "");
        expect_good("");
        answer(403, "no");
        run(&sent);
        cr_expect_eq(sent.status, 403);
        cr_expect_str_eq(sent.text, "no");
    }
    cr_expect_eq(world.request_count, 10);
}

Test(http_auth, many_refusals_lead_to_one_token)
{
    struct sent sent[3];
    open_auth();
    answer_token(200, "{\"access_token\":\"t1\"}");
    answer(200, "");
    expect_good("");
    for (size_t i = 0; i < 3; i++) {
        start(&sent[i]);
        answer(401, "");
    }
    answer_token(200, "{\"access_token\":\"t2\"}");
    for (size_t i = 0; i < 3; i++)
        answer(200, "good");
    world_run(&world);
    for (size_t i = 0; i < 3; i++)
        cr_expect(sent[i].is_done && sent[i].status == 200);
    cr_expect_eq(world.request_count, 9);
}

Test(http_auth, a_refusal_without_new_credentials_names_both)
{
    open_auth();
    answer_token(200, "{\"access_token\":\"t1\"}");
    answer(401, "");
    answer_token(400, "{\"error\":\"invalid_scope\",\"error_description\":\"no\"}");
    expect_unsent(
        "oauth2: the server refused the credentials, and there are no new ones: " TOKEN_URL
        ": invalid_scope: no");
}

Test(http_auth, a_refusal_in_the_pause_of_the_token_server_has_its_answer)
{
    struct sent sent;
    open_auth();
    answer_token(200, "{\"access_token\":\"t1\"}");
    answer(401, "");
    world_answer(&world, (struct world_answer){"POST", "/token", .status = 429, .body = "",
                                               .retry_after = "60"});
    run(&sent);
    cr_expect(sent.outcome == AS_HTTP_UNSENT && sent.may_pass);
    world_advance(&world, 59 * AS_US_PER_S);
    answer(401, "no");
    run(&sent);
    cr_expect_str_eq(sent.text, "no");
    world_advance(&world, AS_US_PER_S);
    answer(401, "");
    answer_token(200, "{\"access_token\":\"t2\"}");
    answer(200, "");
    expect_good("");
}

Test(http_auth, what_goes_wrong_with_a_token)
{
    static const char large[] = "large";
    static const struct {
        struct world_answer answer;
        const char *error;
        bool may_pass;
    } rows[] = {
        {{.outcome = AS_HTTP_UNREACHABLE, .error = "Connection refused"},
         "Connection refused",
         true},
        {{.outcome = AS_HTTP_TIMEOUT, .error = "no answer within 10s"},
         "no answer within 10s",
         true},
        {{.outcome = AS_HTTP_TOO_LARGE, .error = large},
         "the answer is larger than 256 KiB",
         false},
        {{.status = 200, .body = ""}, "the answer is not a JSON object", true},
        {{.status = 200, .body = "<html>Sign in</html>"}, "the answer is not a JSON object", true},
        {{.status = 200, .body = "[\"access_token\"]"}, "the answer is not a JSON object", true},
        {{.status = 200, .body = "{}"}, "the answer has no access_token", true},
        {{.status = 200, .body = "{\"access_token\":\"\"}"},
         "the answer has no access_token",
         true},
        {{.status = 200, .body = "{\"access_token\":7}"}, "the answer has no access_token", true},
        {{.status = 200, .body = "{\"access_token\":\"a\\r\\nX: b\"}"},
         "the access_token has characters that no header line may have",
         true},
        {{.status = 200, .body = "{\"access_token\":\"a b\"}"},
         "the access_token has characters that no header line may have",
         true},
        {{.status = 200, .body = "{\"access_token\":\"t1\",\"token_type\":\"mac\"}"},
         "the token_type is not Bearer",
         false},
        {{.status = 302, .body = "", .location = "https://evil/"},
         "HTTP 302: redirects are not followed",
         false},
        {{.status = 500, .body = "x"}, "HTTP 500", true},
        {{.status = 404, .body = "x"}, "HTTP 404", false},
        {{.status = 429, .body = "{\"error\":\"slow_down\"}"}, "slow_down", true},
        {{.status = 400, .body = "{\"error\":\"invalid_scope\",\"error_description\":\"a\\nb\"}"},
         "invalid_scope: a b",
         false},
        {{.status = 400,
          .body = "{\"error\":\"invalid_scope\",\"error_description\":\"got " SECRET "\"}"},
         "refused",
         false},
        {{.status = 400, /* as in a form */
          .body = "{\"error\":\"invalid_scope\",\"error_description\":\"s3cret%2f%2b%20%3D\"}"},
         "refused",
         false},
        {{.status = 400, /* as in the header */
          .body = "{\"error\":\"invalid_scope\",\"error_description\":\"got "
                  "Y2xpZW50OnMzY3JldCUyRiUyQiUyMCUzRA\"}"},
         "refused",
         false},
        {{.status = 400, /* as in a header without percent signs */
          .body = "{\"error\":\"invalid_scope\",\"error_description\":\""
                  "Y2xpZW50OnMzY3JldC8rID0=\"}"},
         "refused",
         false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct world_answer given = rows[i].answer;
        char error[256];
        given.method = "POST";
        given.path = "/token";
        open_auth();
        world_answer(&world, given);
        snprintf(error, sizeof(error), "oauth2: " TOKEN_URL ": %s", rows[i].error);
        expect_failure(rows[i].may_pass, error);
        expect_failure(rows[i].may_pass, error); /* and no other request at once */
        world_advance(&world, 6 * AS_US_PER_S);
        answer_token(200, "{\"access_token\":\"t1\"}");
        answer(200, "");
        expect_good("");
        auth = as_http_auth_free(auth);
    }
}

/* `query` of the server's address may hold a secret. */
Test(http_auth, the_server_is_named_without_its_query)
{
    settings.oauth2.token_url = TOKEN_URL "?key=s3cret-too";
    open_auth();
    world_answer(&world, (struct world_answer){"POST", "?key=s3cret-too", .status = 500});
    expect_failure(true, "oauth2: " TOKEN_URL ": HTTP 500");
}

Test(http_auth, a_client_that_is_refused_twice_has_the_better_error)
{
    static const struct {
        const char *basic, *form, *error;
    } rows[] = {
        {"{\"error\":\"invalid_client\",\"error_description\":\"wrong secret\"}",
         "{\"error\":\"invalid_request\"}", "invalid_client: wrong secret"},
        {"{\"error\":\"invalid_client\",\"error_description\":\"no client\"}",
         "{\"error\":\"invalid_client\",\"error_description\":\"wrong secret\"}",
         "invalid_client: wrong secret"},
        {"", "{\"error\":\"invalid_scope\"}", "invalid_scope"},
        {"", "", "HTTP 401"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char error[256];
        open_auth();
        answer_token(401, rows[i].basic);
        answer_token(401, rows[i].form);
        snprintf(error, sizeof(error), "oauth2: " TOKEN_URL ": %s", rows[i].error);
        expect_unsent(error);
        auth = as_http_auth_free(auth);
    }
}

Test(http_auth, a_secret_that_cannot_be_read)
{
    char error[256];
    unlink(secret);
    open_auth();
    snprintf(error, sizeof(error), "oauth2: client_secret_file: cannot read %s: %s", secret,
             "No such file or directory");
    expect_unsent(error);
    cr_expect_eq(world.request_count, 0);
}

Test(http_auth, a_token_server_that_others_can_read_gets_no_secret)
{
    settings.oauth2.token_url = "http://login.example.com/token";
    open_auth();
    expect_unsent("oauth2: token_url: expected a URL with https:// (http:// only to this machine)");
    cr_expect_eq(world.request_count, 0);
}

/* The proxy could read the secret, and has another machine. */
Test(http_auth, a_token_server_on_this_machine_is_asked_without_the_proxy)
{
    static const char *const urls[] = {"http://localhost:81/token", "http://127.0.0.1/token",
                                       "http://[::1]:81/token"};
    settings.proxy_url = "http://proxy:3128";
    for (size_t i = 0; i < AS_ARRAY_SIZE(urls); i++) {
        settings.oauth2.token_url = urls[i];
        open_auth();
        answer_token(200, "{\"access_token\":\"t1\"}");
        answer(200, "");
        expect_good("");
        cr_expect_str_eq(request_at(1)->url, urls[i]);
        cr_expect_null(request_at(1)->proxy_url);
        cr_expect_str_eq(request_at(0)->proxy_url, "http://proxy:3128");
        auth = as_http_auth_free(auth);
    }
}

/* ---- sigv4 ---- */

#define EXPIRED "{\"message\":\"The security token included in the request is expired\"}"

static void set_variable(const char *name, const char *value)
{
    size_t i = 0;
    while (variables[i][0] && strcmp(variables[i][0], name) != 0)
        i++;
    cr_assert_lt(i + 1, AS_ARRAY_SIZE(variables));
    variables[i][0] = name;
    variables[i][1] = value;
}

static void set_keys(void)
{
    settings.login = AS_LOGIN_SIGV4;
    settings.sigv4.region = "eu-central-1";
    set_variable("AWS_ACCESS_KEY_ID", "AKID");
    set_variable("AWS_SECRET_ACCESS_KEY", "aws-s3cret");
}

/* The signature itself is checked against AWS' own client in test_sign_aws.c. */
static void expect_signed(const char *key, const char *day, const char *names)
{
    char part[256];
    const char *headers = request_at(0)->headers;
    snprintf(part, sizeof(part),
             "Authorization: AWS4-HMAC-SHA256 Credential=%s/%s/eu-central-1/aps/aws4_request, "
             "SignedHeaders=%s, Signature=",
             key, day, names);
    cr_assert_not_null(strstr(headers, part), "%s", headers);
    cr_assert(as_str_starts_with(headers, "Content-Type: text/plain\n"
                                          "Host: metrics\nX-Amz-Date: "),
              "%s", headers);
    cr_assert_null(strstr(headers, "s3cret"));
}

Test(http_auth, a_request_is_signed_for_the_service_of_metrics)
{
    set_keys();
    open_auth();
    answer(200, "");
    expect_good("");
    expect_signed("AKID", "20261121", "content-type;host;x-amz-date");
    cr_expect_eq(world.request_count, 1);
}

Test(http_auth, the_region_may_come_from_the_environment)
{
    set_keys();
    settings.sigv4.region = NULL;
    set_variable("AWS_REGION", "eu-central-1");
    open_auth();
    answer(200, "");
    expect_good("");
    expect_signed("AKID", "20261121", "content-type;host;x-amz-date");
}

Test(http_auth, without_a_region_nothing_is_signed)
{
    set_keys();
    settings.sigv4.region = NULL;
    open_auth();
    world_answer(&world,
                 (struct world_answer){"PUT", "/latest/api/token", .outcome = AS_HTTP_UNREACHABLE,
                                       .error = "no route"});
    expect_unsent("sigv4: the region is not known: set `region`, or AWS_REGION");
}

Test(http_auth, a_profile_has_keys_and_the_environment_is_not_used)
{
    char config[64];
    snprintf(config, sizeof(config), "%s/config", directory);
    write_file(config, "[profile metrics]\nregion = eu-central-1\n"
                       "aws_access_key_id = PROFILE\naws_secret_access_key = other-s3cret\n");
    set_keys();
    settings.sigv4.region = NULL;
    settings.sigv4.profile = "metrics";
    set_variable("AWS_CONFIG_FILE", config);
    set_variable("AWS_SHARED_CREDENTIALS_FILE", "/nowhere");
    open_auth();
    answer(200, "");
    expect_good("");
    expect_signed("PROFILE", "20261121", "content-type;host;x-amz-date");
    unlink(config);
}

static void answer_role(int status, const char *body)
{
    world_answer(&world, (struct world_answer){"POST", "https://sts.eu-central-1.amazonaws.com/",
                                               .status = status, .body = body});
}

#define ROLE                                                                                       \
    "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ROLE</AccessKeyId>"           \
    "<SecretAccessKey>role-s3cret</SecretAccessKey><SessionToken>session</SessionToken>"           \
    "<Expiration>2026-11-21T11:00:00Z</Expiration></Credentials></AssumeRoleResult>"               \
    "</AssumeRoleResponse>"
#define ROLE_FORM                                                                                  \
    "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Freader&"         \
    "RoleSessionName=alertscaler&ExternalId=shop"

static void set_role(void)
{
    set_keys();
    settings.sigv4.role_arn = "arn:aws:iam::1:role/reader";
    settings.sigv4.external_id = "shop";
}

Test(http_auth, a_role_is_assumed_with_the_keys_of_the_chain)
{
    set_role();
    open_auth();
    answer_role(200, ROLE);
    answer(200, "");
    expect_good("");
    cr_expect_str_eq(request_at(1)->body, ROLE_FORM);
    cr_expect_not_null(
        strstr(request_at(1)->headers, "Credential=AKID/20261121/eu-central-1/sts/"));
    expect_signed("ROLE", "20261121", "content-type;host;x-amz-date;x-amz-security-token");
    cr_expect_not_null(strstr(request_at(0)->headers, "X-Amz-Security-Token: session\n"));
    answer(200, "");
    expect_good("");
    cr_expect_eq(world.request_count, 3);
}

/* The roles of a profile come first: each is assumed with the credentials of the one before. */
Test(http_auth, a_role_on_top_of_the_role_of_a_profile)
{
    char config[64];
    snprintf(config, sizeof(config), "%s/config", directory);
    write_file(config, "[profile base]\naws_access_key_id = BASE\naws_secret_access_key = s\n"
                       "[profile metrics]\nrole_arn = arn:aws:iam::2:role/first\n"
                       "source_profile = base\n");
    set_role();
    settings.sigv4.profile = "metrics";
    set_variable("AWS_CONFIG_FILE", config);
    set_variable("AWS_SHARED_CREDENTIALS_FILE", "/nowhere");
    open_auth();
    answer_role(200, ROLE);
    answer_role(200, ROLE);
    answer(200, "");
    expect_good("");
    cr_expect_not_null(strstr(request_at(2)->body, "arn%3Aaws%3Aiam%3A%3A2%3Arole%2Ffirst"));
    cr_expect_not_null(strstr(request_at(2)->headers, "Credential=BASE/"));
    cr_expect_str_eq(request_at(1)->body, ROLE_FORM);
    cr_expect_not_null(strstr(request_at(1)->headers, "Credential=ROLE/"));
    cr_expect_not_null(strstr(request_at(1)->headers, "X-Amz-Security-Token: session\n"));
    unlink(config);
}

Test(http_auth, a_role_that_is_refused)
{
    set_role();
    open_auth();
    answer_role(403, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>User is not "
                     "authorized</Message></Error></ErrorResponse>");
    expect_unsent("sigv4: environment: assume_role: AccessDenied: User is not authorized");
}

Test(http_auth, a_role_without_credentials_to_assume_it)
{
    set_role();
    set_variable("AWS_ACCESS_KEY_ID", "");
    set_variable("AWS_SECRET_ACCESS_KEY", "");
    set_variable("AWS_EC2_METADATA_DISABLED", "true");
    open_auth();
    expect_unsent("sigv4: none are set up in any of the places where they are looked for");
}

Test(http_auth, a_role_of_another_sts)
{
    set_role();
    set_variable("AWS_ENDPOINT_URL_STS", "https://vpce-1.sts.example.com/");
    open_auth();
    world_answer(&world, (struct world_answer){"POST", "https://vpce-1.sts.example.com/",
                                               .status = 200, .body = ROLE});
    answer(200, "");
    expect_good("");
}

Test(http_auth, a_role_is_not_requested_where_others_can_read)
{
    set_role();
    set_variable("AWS_ENDPOINT_URL_STS", "http://sts.example.com");
    open_auth();
    expect_unsent("sigv4: environment: AWS_ENDPOINT_URL_STS: expected a URL with https:// (http:// "
                  "only to this machine)");
}

Test(http_auth, keys_that_have_expired_are_searched_once_more)
{
    set_role();
    open_auth();
    answer_role(200, ROLE);
    answer(403, EXPIRED);
    answer_role(200, ROLE);
    answer(200, "");
    expect_good("");
    cr_expect_eq(world.request_count, 4);
}

Test(http_auth, a_signature_by_the_servers_clock)
{
    struct sent sent;
    set_keys();
    open_auth();
    world_answer(&world, (struct world_answer){"POST", "/query", .status = 403, .body = "late",
                                               .fields = "Date\0Sun, 22 Nov 2026 10:20:00 GMT\0"});
    answer(200, "");
    expect_good("");
    expect_signed("AKID", "20261122", "content-type;host;x-amz-date");
    cr_expect_eq(world.request_count, 2);
    world_answer(&world, (struct world_answer){"POST", "/query", .status = 403, .body = "late",
                                               .fields = "Date\0Tue, 24 Nov 2026 10:20:00 GMT\0"});
    answer(403, "still"); /* once only */
    run(&sent);
    cr_expect_str_eq(sent.text, "still");
}

/* Whatever the login is. The body of a good answer is not touched. */
Test(http_auth, a_server_that_shows_what_it_refuses)
{
    struct sent sent;
    settings.header_count = 1;
    settings.headers = &(struct as_header_settings){
        .name = "X-Key", .files = (const char *[]){secret}, .file_count = 1};
    open_auth();
    answer_token(200, "{\"access_token\":\"token-1\"}");
    answer(200, "token-1");
    run(&sent);
    cr_expect_str_eq(sent.text, "token-1");
    answer(500, "no token-1, and no " SECRET);
    run(&sent);
    cr_expect_str_eq(sent.text, "no *******, and no **********");
    as_http_auth_free(auth);

    settings.login = AS_LOGIN_NONE;
    settings.header_count = 0;
    settings.basic_auth.username = "the-user";
    settings.basic_auth.password_file = secret;
    open_auth();
    answer(403, "no the-user:" SECRET " (dGhlLXVzZXI6czNjcmV0LysgPQ==)");
    run(&sent);
    cr_expect_str_eq(sent.text, "no the-user:********** (****************************)");
    as_http_auth_free(auth);

    settings.basic_auth.username = NULL;
    settings.basic_auth.password_file = NULL;
    settings.authorization.type = "Key";
    settings.authorization.credentials_file = secret;
    open_auth();
    answer(401, "Key " SECRET);
    run(&sent);
    cr_expect_str_eq(sent.text, "Key **********");
}

Test(http_auth, a_request_that_is_too_large_is_not_signed)
{
    struct sent sent = {0};
    struct as_http *http;
    char *body = as_xcalloc(1, 300 * 1024);
    const struct as_http_request request = {.method = "POST",
                                            .url = "https://metrics/query",
                                            .body = body,
                                            .body_size = 300 * 1024,
                                            .timeout_us = 1,
                                            .max_response = 1};
    memset(body, 'a', 300 * 1024);
    set_keys();
    open_auth();
    http = as_http_auth_get_port(auth);
    sent.call = http->start(http, &request, keep, &sent);
    free(body);
    world_run(&world);
    cr_expect_str_eq(sent.text, "sigv4: the request is too large to be signed");
}

/* ---- azuread ---- */

#define AZURE_TOKEN "{\"token_type\":\"Bearer\",\"expires_in\":3599,\"access_token\":\"ey.1\"}"

static const struct azure_row {
    const char *cloud, *authority, *audience; /* percent-encoded */
} azure_rows[] = {
    {NULL, "https://login.microsoftonline.com", "https%3A%2F%2Fprometheus.monitor.azure.com"},
    {"AzurePublic", "https://login.microsoftonline.com",
     "https%3A%2F%2Fprometheus.monitor.azure.com"},
    {"AzureChina", "https://login.chinacloudapi.cn", "https%3A%2F%2Fprometheus.monitor.azure.cn"},
    {"AzureGovernment", "https://login.microsoftonline.us",
     "https%3A%2F%2Fprometheus.monitor.azure.us"},
};

static void set_azure(const char *cloud)
{
    settings.login = AS_LOGIN_AZUREAD;
    settings.azuread = (struct as_azuread_settings){.cloud = cloud};
}

/* What a provider would use is in the environment: it changes nothing. */
Test(http_auth, an_application_of_each_cloud_has_the_audience_of_queries)
{
    set_variable("AZURE_CLIENT_ID", "cli-env");
    set_variable("AZURE_CLIENT_SECRET", "env-s3cret");
    set_variable("AZURE_FEDERATED_TOKEN_FILE", "/var/run/token");
    for (size_t i = 0; i < AS_ARRAY_SIZE(azure_rows); i++) {
        char url[128], body[512];
        set_azure(azure_rows[i].cloud);
        settings.azuread.oauth.is_set = true;
        settings.azuread.oauth.client_id = "cli-1";
        settings.azuread.oauth.tenant_id = "ten-1";
        settings.azuread.oauth.client_secret_file = secret;
        snprintf(url, sizeof(url), "%s/ten-1/oauth2/v2.0/token", azure_rows[i].authority);
        snprintf(body, sizeof(body),
                 "grant_type=client_credentials&client_id=cli-1&scope=%s%%2F.default&"
                 "client_secret=s3cret%%2F%%2B%%20%%3D",
                 azure_rows[i].audience);
        open_auth();
        world_answer(&world,
                     (struct world_answer){"POST", url, .status = 200, .body = AZURE_TOKEN});
        answer(200, "");
        expect_good("");
        cr_expect_str_eq(request_at(1)->url, url);
        cr_expect_str_eq(request_at(1)->body, body);
        cr_expect_not_null(strstr(request_at(0)->headers, "Authorization: Bearer ey.1\n"));
        auth = as_http_auth_free(auth);
    }
}

Test(http_auth, an_identity_of_the_machine_is_the_systems_or_a_client)
{
    static const struct {
        const char *client, *query;
    } rows[] = {{NULL, ""}, {"cli-2", "&client_id=cli-2"}};
    set_variable("AZURE_CLIENT_ID", "cli-env"); /* of the pod, not of the machine */
    for (size_t i = 0; i < AS_ARRAY_SIZE(azure_rows) * AS_ARRAY_SIZE(rows); i++) {
        char url[256];
        const struct azure_row *row = &azure_rows[i / AS_ARRAY_SIZE(rows)];
        set_azure(row->cloud);
        settings.azuread.managed_identity.is_set = true;
        settings.azuread.managed_identity.client_id = rows[i % AS_ARRAY_SIZE(rows)].client;
        snprintf(url, sizeof(url),
                 "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&"
                 "resource=%s%s",
                 row->audience, rows[i % AS_ARRAY_SIZE(rows)].query);
        open_auth();
        world_answer(&world, (struct world_answer){"GET", url, .status = 200, .body = AZURE_TOKEN});
        answer(200, "");
        expect_good("");
        cr_expect_str_eq(request_at(1)->url, url);
        cr_expect_str_eq(request_at(1)->headers, "Metadata: true\n");
        cr_expect_null(request_at(1)->proxy_url);
        auth = as_http_auth_free(auth);
    }
}

Test(http_auth, an_identity_of_the_pod_comes_from_the_settings_or_the_environment)
{
    for (size_t i = 0; i < 2; i++) {
        set_azure("AzurePublic");
        settings.azuread.workload_identity.is_set = true;
        if (i == 0) {
            settings.azuread.workload_identity.client_id = "cli-3";
            settings.azuread.workload_identity.tenant_id = "ten-3";
            settings.azuread.workload_identity.token_file_path = secret;
        } else {
            set_variable("AZURE_CLIENT_ID", "cli-3");
            set_variable("AZURE_TENANT_ID", "ten-3");
            set_variable("AZURE_FEDERATED_TOKEN_FILE", secret);
        }
        open_auth();
        world_answer(&world, (struct world_answer){"POST", "/ten-3/oauth2/v2.0/token",
                                                   .status = 200, .body = AZURE_TOKEN});
        answer(200, "");
        expect_good("");
        cr_expect_str_eq(request_at(1)->body,
                         "grant_type=client_credentials&client_id=cli-3&scope=https%3A%2F%2F"
                         "prometheus.monitor.azure.com%2F.default&client_assertion_type=urn%3A"
                         "ietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&"
                         "client_assertion=s3cret%2F%2B%20%3D");
        auth = as_http_auth_free(auth);
    }
}

Test(http_auth, an_identity_of_the_pod_that_is_not_there)
{
    set_azure("AzurePublic");
    settings.azuread.workload_identity.is_set = true;
    open_auth();
    expect_unsent("azuread: workload_identity: the token's file is not known: set "
                  "`token_file_path`, or AZURE_FEDERATED_TOKEN_FILE");
}

Test(http_auth, a_refusal_of_entra_is_told_without_the_secret)
{
    set_azure("AzurePublic");
    settings.azuread.oauth.is_set = true;
    settings.azuread.oauth.client_id = "cli-1";
    settings.azuread.oauth.tenant_id = "ten-1";
    settings.azuread.oauth.client_secret_file = secret;
    open_auth();
    world_answer(&world, (struct world_answer){"POST", "/ten-1/oauth2/v2.0/token", .status = 401,
                                               .body = "{\"error\":\"invalid_client\","
                                                       "\"error_description\":\"AADSTS7000215\"}"});
    expect_unsent("azuread: oauth: get_entra_token: invalid_client: AADSTS7000215");
}

/* ---- google_iam ---- */

Test(http_auth, the_machine_gives_a_token_that_only_reads_metrics)
{
    settings.login = AS_LOGIN_GOOGLE_IAM;
    open_auth();
    world_answer(&world,
                 (struct world_answer){
                     "GET",
                     "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/"
                     "default/token?scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2F"
                     "monitoring.read",
                     .status = 200, .body = "{\"access_token\":\"g1\",\"expires_in\":3599}",
                     .fields = "metadata-flavor\0Google\0"});
    answer(200, "");
    expect_good("");
    cr_expect_not_null(strstr(request_at(0)->headers, "Authorization: Bearer g1\n"));
}

Test(http_auth, a_credentials_file_that_is_missing_is_not_passed_over)
{
    settings.login = AS_LOGIN_GOOGLE_IAM;
    settings.google_iam.credentials_file = "/nowhere.json";
    open_auth();
    expect_unsent("google_iam: credentials_file: /nowhere.json: No such file or directory");
}

/* ---- time ---- */

/* Timers only: all servers are silent meanwhile. */
static void pass_silent(int64_t us)
{
    world.mono.us += us;
    world.wall.us += us;
    while (world_expire(&world))
        continue;
}

Test(http_auth, the_time_of_a_request_includes_its_login)
{
    struct sent sent;
    open_auth();
    start(&sent);
    pass_silent(0);
    pass_silent(12 * AS_US_PER_S);
    cr_expect_not(sent.is_done);
    answer_token(200, "{\"access_token\":\"t1\"}");
    answer(200, "");
    world_run(&world);
    cr_expect_eq(request_at(0)->timeout_us, 18 * AS_US_PER_S);
    cr_expect_eq(sent.status, 200);
}

Test(http_auth, a_request_ends_in_time_without_a_token)
{
    struct sent sent;
    open_auth();
    start(&sent);
    pass_silent(0);
    pass_silent(30 * AS_US_PER_S);
    cr_assert(sent.is_done);
    cr_expect_eq(sent.outcome, AS_HTTP_UNSENT);
    cr_expect(sent.may_pass);
    cr_expect_str_eq(sent.text, "oauth2: no credentials within 30s");
    answer_token(200, "{\"access_token\":\"t1\"}"); /* for the next one */
    world_run(&world);
    answer(200, "");
    expect_good("");
}

static void cancel(struct sent *sent)
{
    struct as_http *http = as_http_auth_get_port(auth);
    http->cancel(http, sent->call);
}

Test(http_auth, a_request_that_is_cancelled_ends_silently)
{
    struct sent sent[3];
    open_auth();
    for (size_t i = 0; i < 3; i++)
        start(&sent[i]);
    pass_silent(0);
    cancel(&sent[0]); /* it waits for the token */
    answer_token(200, "{\"access_token\":\"t1\"}");
    answer(200, "");
    answer(200, "");
    world_run(&world);
    cr_expect_not(sent[0].is_done);
    cr_expect(sent[1].is_done && sent[2].is_done);
    start(&sent[0]);
    pass_silent(0);
    cancel(&sent[0]); /* it is sent */
    unlink(secret);
    world_run(&world);
    cr_expect_not(sent[0].is_done);
    cr_expect_eq(world.request_count, 4);
}

Test(http_auth, a_request_that_fails_is_cancelled_before_it_is_told)
{
    struct sent sent;
    settings.login = AS_LOGIN_NONE;
    settings.authorization.type = "Bearer";
    settings.authorization.credentials_file = "/nowhere";
    open_auth();
    start(&sent);
    cancel(&sent);
    world_run(&world);
    cr_expect_not(sent.is_done);
    expect_unsent("credentials_file: /nowhere: No such file or directory");
}

static bool is_permitted;

static bool permit(void *context)
{
    cr_expect_not(((struct sent *)context)->is_done);
    return is_permitted;
}

/* A change waits for its login: whether it may still be made is asked when it is sent. */
Test(http_auth, a_change_that_is_not_permitted_any_more_is_not_sent)
{
    const struct as_http_request change = {.method = "PUT",
                                           .url = "https://group/",
                                           .timeout_us = AS_US_PER_S,
                                           .max_response = 1,
                                           .permit = permit};
    struct sent sent = {0};
    struct as_http *http;
    open_auth();
    http = as_http_auth_get_port(auth);
    is_permitted = true;
    sent.call = http->start(http, &change, keep, &sent);
    pass_silent(0);
    is_permitted = false;
    answer_token(200, "{\"access_token\":\"t1\"}");
    world_run(&world);
    cr_expect_eq(sent.outcome, AS_HTTP_UNSENT);
    cr_expect_str_eq(sent.text, "oauth2: the request is not permitted any more");
    cr_expect_eq(world.request_count, 1);

    is_permitted = true; /* nor is it sent a second time */
    sent = (struct sent){0};
    sent.call = http->start(http, &change, keep, &sent);
    world_answer(&world, (struct world_answer){"PUT", "https://group/", .status = 401});
    pass_silent(0);
    is_permitted = false;
    answer_token(200, "{\"access_token\":\"t2\"}");
    world_run(&world);
    cr_expect_eq(sent.outcome, AS_HTTP_UNSENT);
    cr_expect_eq(world.request_count, 3);
}

Test(http_auth, freed_while_requests_wait)
{
    struct sent sent[2];
    open_auth();
    start(&sent[0]);
    start(&sent[1]);
    pass_silent(0);
    auth = as_http_auth_free(auth);
    world_run(&world);
    cr_expect_not(sent[0].is_done || sent[1].is_done);
}
