/*
 * Accounts against a scripted cloud: credentials are fetched once for all waiting requests, renewed
 * before they expire and after a refusal, and kept while they are valid.
 */
#include "cloud/provider_account.h"

#include <stdlib.h>
#include <unistd.h>

#include "../kube/support.h"

#define URL "/groups/a"

static unsigned begun, ended_count; /* searches; calls that ended */
static as_maybe_time expires;       /* of the next credentials */
static bool is_missing, is_broken, is_timed;
static as_wall_time searched_at;
static struct as_provider_settings settings = {.name = "mine", .timeout_us = AS_US_PER_S};
static struct as_account *account;

/* A source that asks a service. */
static void on_token(struct as_cloud_op *op)
{
    struct as_credentials_op *search = (struct as_credentials_op *)op;
    if (!as_cloud_op_is_good(op))
        return;
    search->found.token = strdup(op->answer->body);
    search->found.expires = expires;
    as_cloud_op_end(op);
}

static void begin_service(struct as_credentials_op *search)
{
    begun++;
    searched_at = search->op.now;
    as_cloud_op_ask(&search->op, "GET", "http://metadata/token");
    search->op.request.is_plain = true;
    search->op.request.is_timed = is_timed;
    search->op.request.without_proxy = true;
    as_cloud_op_send(&search->op, "get_token", on_token);
}

static void begin_other(struct as_credentials_op *search)
{
    if (is_broken)
        as_cloud_op_fail(&search->op, AS_CLOUD_OP_CONFIGURATION, "the file is no file");
    else
        as_credentials_not_here(search);
}

static void begin_service_or_not(struct as_credentials_op *search)
{
    if (is_missing)
        as_credentials_not_here(search);
    else
        begin_service(search);
}

static const struct as_credentials_source sources[] = {
    {"file", begin_other}, {"service", begin_service_or_not}, {0}};

/* A provider of one request. */
static void on_response(struct as_cloud_op *op)
{
    if (as_cloud_op_is_good(op))
        as_cloud_op_end(op);
}

static bool is_changing;

static void begin(struct as_group_op *op)
{
    as_cloud_op_ask(&op->op, is_changing ? "PUT" : "GET", "https://cloud" URL);
    as_cloud_op_send(&op->op, "get_group", on_response);
}

static as_wall_time signed_at;

static int sign(struct as_cloud_op *op, const struct as_provider_credentials *credentials,
                const struct as_sign_scope *scope, struct as_error *problem)
{
    signed_at = scope->now;
    return as_sign_bearer(op, credentials, scope, problem);
}

static const struct as_group_provider provider = {
    .type = "test", .credentials = sources, .sign = sign, .begin = begin};

static void setup(void)
{
    setup_world();
    settings.http.proxy_url = "http://proxy:3128";
    account = as_account_new(&provider, &settings, &env, NULL);
}

static void teardown(void)
{
    as_account_free(account);
    teardown_world();
}

TestSuite(account, .init = setup, .fini = teardown);

static void ended(void *context)
{
    struct as_account_call **call = context;
    *call = NULL;
    ended_count++;
}

static struct as_account_call *calls[4];
static struct as_group_op ops[4];
static char group_id[] = "node_group/prod/x";
static struct as_target_ref group = {.id = group_id};

static struct as_cloud_op *start(size_t number)
{
    as_cloud_op_deinit(&ops[number].op);
    as_account_init_op(account, &ops[number]);
    ops[number].group = &group;
    calls[number] = as_account_start(account, &ops[number], ended, &calls[number]);
    return &ops[number].op;
}

static void deinit_ops(void)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(ops); i++)
        as_cloud_op_deinit(&ops[i].op);
}

static void answer_token(const char *token)
{
    world_answer(&world, (struct world_answer){"GET", "/token", .status = 200, .body = token});
}

static void answer_group(int status)
{
    world_answer(&world, (struct world_answer){"GET", URL, .status = status, .body = "{}"});
}

static const char *last_headers(void)
{
    return world.requests[world.request_count - 1].headers;
}

Test(account, one_search_for_all_who_wait)
{
    const struct as_cloud_op *first = start(0), *second = start(1);
    answer_token("t1");
    answer_group(200);
    answer_group(200);
    cr_expect_eq(ended_count, 0, "told in the same turn");
    world_run(&world);
    cr_expect_eq(ended_count, 2);
    cr_expect_eq(begun, 1);
    cr_expect_eq(first->fault, AS_CLOUD_OP_OK);
    cr_expect_eq(second->fault, AS_CLOUD_OP_OK);
    cr_expect_eq(world.request_count, 3);
    cr_expect_str_eq(last_headers(), "Authorization: Bearer t1\n");
    /* metadata services are never behind a proxy; the cloud is where the settings say so */
    cr_expect_null(world.requests[0].proxy_url);
    cr_expect_str_eq(world.requests[1].proxy_url, "http://proxy:3128");
    deinit_ops();
}

Test(account, credentials_are_kept)
{
    start(0);
    answer_token("t1");
    answer_group(200);
    world_run(&world);
    world_advance(&world, AS_US_PER_DAY);
    start(0);
    answer_group(200);
    world_run(&world);
    cr_expect_eq(begun, 1, "credentials that do not expire are looked for once");
    deinit_ops();
}

Test(account, renewed_before_they_expire_while_the_old_ones_are_used)
{
    expires = (as_maybe_time){true, {world.wall.us + 20 * AS_US_PER_MIN}};
    start(0);
    answer_token("t1");
    answer_group(200);
    world_run(&world);
    world_advance(&world, 15 * AS_US_PER_MIN);
    expires.at.us = world.wall.us + AS_US_PER_H;
    const struct as_cloud_op *op = start(0);
    answer_group(200);
    answer_token("t2");
    world_run(&world);
    cr_expect_eq(op->fault, AS_CLOUD_OP_OK);
    cr_expect_eq(begun, 2);
    start(0);
    answer_group(200);
    world_run(&world);
    cr_expect_str_eq(last_headers(), "Authorization: Bearer t2\n");
    deinit_ops();
}

Test(account, old_ones_are_used_to_their_end_when_new_ones_cannot_be_had)
{
    expires = (as_maybe_time){true, {world.wall.us + 20 * AS_US_PER_MIN}};
    start(0);
    answer_token("t1");
    answer_group(200);
    world_run(&world);
    world_advance(&world, 15 * AS_US_PER_MIN);
    start(0);
    answer_group(200);
    world_answer(&world, (struct world_answer){"GET", "/token", .status = 500, .body = ""});
    world_run(&world);
    const struct as_cloud_op *op = start(0); /* and they are not searched again at once */
    answer_group(200);
    world_run(&world);
    cr_expect_eq(op->fault, AS_CLOUD_OP_OK);
    cr_expect_eq(begun, 2);

    world_advance(&world, 6 * AS_US_PER_MIN); /* now they have expired */
    start(0);
    world_answer(&world, (struct world_answer){"GET", "/token", .status = 500, .body = ""});
    world_run(&world);
    cr_expect_eq(op->fault, AS_CLOUD_OP_RETRY);
    cr_expect_str_eq(op->message, "no credentials: service: get_token: HTTP 500");
    cr_expect_eq(begun, 3);
    deinit_ops();
}

Test(account, new_ones_after_a_refusal_and_the_same_request_again)
{
    start(0);
    answer_token("t1");
    answer_group(401);
    answer_token("t2");
    answer_group(200);
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_OK);
    cr_expect_eq(ops[0].op.sent, 2);
    cr_expect_str_eq(last_headers(), "Authorization: Bearer t2\n");

    start(0); /* once only */
    answer_group(401);
    answer_token("t3");
    answer_group(401);
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_UNAUTHORIZED);
    cr_expect_eq(begun, 3);
    deinit_ops();
}

static enum as_permit permit;

static enum as_permit get_permit(void *context)
{
    return permit;
}

Test(account, what_may_not_be_changed_now_is_not_sent)
{
    env.get_permit = get_permit;
    permit = AS_PERMIT_NONE;
    start(0); /* what only asks is sent */
    answer_token("t");
    answer_group(200);
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_OK);
    is_changing = true;
    permit = AS_PERMIT_FINISH; /* what has begun is finished */
    start(0);
    world_answer(&world, (struct world_answer){"PUT", URL, .status = 200, .body = "{}"});
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_OK);
    for (permit = AS_PERMIT_UNDO; permit <= AS_PERMIT_NONE; permit++) {
        const size_t before = world.request_count;
        start(0);
        world_run(&world);
        cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_STOPPED);
        cr_expect_not(ops[0].op.is_ambiguous, "it was not sent");
        cr_expect_not_null(strstr(ops[0].op.message, "given up: "));
        cr_expect_eq(world.request_count, before);
    }
    is_changing = false;
    env.get_permit = NULL;
    deinit_ops();
}

/* The login of http_config takes time: whether a change may be made is asked again. */
Test(account, a_change_that_waited_for_its_login_is_not_sent_if_it_may_not_be_made)
{
    static const struct as_group_provider plain = {.type = "test", .begin = begin};
    char secret[] = "/tmp/as-account-XXXXXX";
    const int fd = mkstemp(secret);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "s", 1), 1);
    close(fd);
    as_account_free(account);
    settings.http = (struct as_http_settings){.login = AS_LOGIN_OAUTH2,
                                              .oauth2 = {.client_id = "c",
                                                         .client_secret_file = secret,
                                                         .token_url = "https://login/token"}};
    env.get_permit = get_permit;
    permit = AS_PERMIT_ALL;
    account = as_account_new(&plain, &settings, &env, NULL);
    is_changing = true;
    start(0);
    while (world_expire(&world)) /* it waits for the answer of the token server */
        continue;
    permit = AS_PERMIT_NONE;
    world_answer(&world, (struct world_answer){"POST", "/token", .status = 200,
                                               .body = "{\"access_token\":\"t\"}"});
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_STOPPED);
    cr_expect_not(ops[0].op.is_ambiguous, "it was not sent");
    cr_expect_eq(ops[0].op.sent, 0);
    cr_expect_not_null(strstr(ops[0].op.message, "given up: "));
    cr_expect_eq(world.request_count, 1);
    permit = AS_PERMIT_ALL;
    start(0);
    world_answer(&world, (struct world_answer){"PUT", URL, .status = 200, .body = "{}"});
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_OK);
    cr_expect_eq(ops[0].op.sent, 1);
    is_changing = false;
    env.get_permit = NULL;
    unlink(secret);
    deinit_ops();
}

/* ---- logins of http_config ---- */

static char login_secret[32];

static void open_login(const struct as_group_provider *of)
{
    snprintf(login_secret, sizeof(login_secret), "/tmp/as-account-XXXXXX");
    const int fd = mkstemp(login_secret);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "s", 1), 1);
    close(fd);
    as_account_free(account);
    settings.http = (struct as_http_settings){.login = AS_LOGIN_OAUTH2,
                                              .oauth2 = {.client_id = "c",
                                                         .client_secret_file = login_secret,
                                                         .token_url = "https://login/token"}};
    account = as_account_new(of, &settings, &env, NULL);
}

static void answer_login(int status, const char *body)
{
    world_answer(&world, (struct world_answer){"POST", "/token", .status = status, .body = body});
}

Test(account, a_login_that_fails_for_now_is_tried_again_and_a_wrong_one_is_not)
{
    static const struct as_group_provider plain = {.type = "test", .begin = begin};
    static const struct {
        int status;
        const char *body;
        enum as_cloud_op_fault fault;
    } rows[] = {{503, "", AS_CLOUD_OP_RETRY},
                {429, "", AS_CLOUD_OP_RETRY},
                {400, "{\"error\":\"invalid_scope\"}", AS_CLOUD_OP_CONFIGURATION}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        open_login(&plain);
        start(0);
        answer_login(rows[i].status, rows[i].body);
        world_run(&world);
        cr_expect_eq(ops[0].op.fault, rows[i].fault, "%zu: %s", i, ops[0].op.message);
        cr_expect_not(ops[0].op.is_ambiguous);
        cr_expect_eq(ops[0].op.sent, 0);
        unlink(login_secret);
    }
    deinit_ops();
}

static void on_driver(struct as_cloud_op *op)
{
    if (!as_cloud_op_is_good(op))
        return;
    if (strcmp(op->answer->body, "refused") == 0)
        as_cloud_op_fail(op, AS_CLOUD_OP_UNAUTHORIZED, "refused");
    else
        as_cloud_op_end(op);
}

/* As gRPC does it: the status is 200. */
static void begin_driver(struct as_group_op *op)
{
    as_cloud_op_ask(&op->op, "GET", "https://cloud" URL);
    as_cloud_op_send(&op->op, "get_group", on_driver);
}

static void answer_driver(const char *body)
{
    world_answer(&world, (struct world_answer){"GET", URL, .status = 200, .body = body});
}

static void expect_driver(enum as_cloud_op_fault fault, unsigned sent, size_t requests)
{
    start(0);
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, fault, "%s", ops[0].op.message);
    cr_expect_eq(ops[0].op.sent, sent);
    cr_expect_eq(world.request_count, requests);
}

Test(account, a_login_that_is_refused_in_a_good_answer_is_renewed_once)
{
    static const struct as_group_provider driver = {.type = "test", .begin = begin_driver};
    open_login(&driver);
    answer_login(200, "{\"access_token\":\"t1\"}");
    answer_driver("refused");
    answer_login(200, "{\"access_token\":\"t2\"}");
    answer_driver("good");
    expect_driver(AS_CLOUD_OP_OK, 2, 4);
    cr_expect_str_eq(last_headers(), "Authorization: Bearer t2\n");
    answer_driver("refused"); /* not again within a minute */
    expect_driver(AS_CLOUD_OP_UNAUTHORIZED, 1, 5);
    world_advance(&world, AS_US_PER_MIN);
    answer_driver("refused");
    answer_login(200, "{\"access_token\":\"t3\"}");
    answer_driver("refused");
    expect_driver(AS_CLOUD_OP_UNAUTHORIZED, 2, 8);
    world_advance(&world, AS_US_PER_MIN);
    answer_driver("refused");
    answer_login(503, "");
    expect_driver(AS_CLOUD_OP_RETRY, 1, 10);
    answer_driver("good"); /* with the old token */
    expect_driver(AS_CLOUD_OP_OK, 1, 11);
    cr_expect_str_eq(last_headers(), "Authorization: Bearer t3\n");
    world_advance(&world, AS_US_PER_MIN);
    answer_driver("refused");
    world_answer(&world, (struct world_answer){"POST", "/token", .status = 503, .body = "",
                                               .retry_after = "300"});
    expect_driver(AS_CLOUD_OP_RETRY, 1, 13);
    world_advance(&world, 2 * AS_US_PER_MIN);
    answer_driver("refused"); /* no other token in the pause of the token server */
    answer_driver("refused");
    expect_driver(AS_CLOUD_OP_UNAUTHORIZED, 2, 15);
    unlink(login_secret);
    deinit_ops();
}

Test(account, many_that_are_refused_in_good_answers_share_one_new_token)
{
    static const struct as_group_provider driver = {.type = "test", .begin = begin_driver};
    open_login(&driver);
    answer_login(200, "{\"access_token\":\"t1\"}");
    for (size_t i = 0; i < 3; i++) {
        start(i);
        answer_driver("refused");
    }
    answer_login(200, "{\"access_token\":\"t2\"}");
    for (size_t i = 0; i < 3; i++)
        answer_driver("good");
    world_run(&world);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(ops[i].op.fault, AS_CLOUD_OP_OK);
    cr_expect_eq(world.request_count, 8);
    unlink(login_secret);
    deinit_ops();
}

Test(account, a_login_that_is_refused_by_status_is_not_renewed_twice)
{
    static const struct as_group_provider driver = {.type = "test", .begin = begin_driver};
    open_login(&driver);
    answer_login(200, "{\"access_token\":\"t1\"}");
    answer_group(401);
    answer_login(200, "{\"access_token\":\"t2\"}");
    answer_group(401);
    expect_driver(AS_CLOUD_OP_UNAUTHORIZED, 1, 4);
    unlink(login_secret);
    deinit_ops();
}

static const char *find_rival(void *context, const char *target)
{
    (void)target;
    return context ? NULL : "node_group/p/web";
}

Test(account, what_is_another_targets_group_since_a_reload_is_not_changed)
{
    env.find_rival = find_rival;
    start(0); /* what only asks is sent */
    answer_token("t");
    answer_group(200);
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_OK);
    is_changing = true;
    const size_t before = world.request_count;
    start(0);
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_NOT_ALLOWED);
    cr_expect_not(ops[0].op.is_ambiguous, "it was not sent");
    cr_expect_not_null(strstr(ops[0].op.message, "node_group/p/web"));
    cr_expect_eq(world.request_count, before);
    is_changing = false;
    env.find_rival = NULL;
    deinit_ops();
}

static void refuse(const char *path, const char *date)
{
    char fields[64] = "date";
    snprintf(fields + 5, sizeof(fields) - 5, "%s", date);
    world_answer(&world,
                 (struct world_answer){"GET", path, .status = 403, .body = "{}", .fields = fields});
}

static void refuse_at(const char *date)
{
    refuse(URL, date);
}

Test(account, a_clock_that_is_off_is_found_out_and_signed_around)
{
    const int64_t now = env.clock->get_wall(env.clock).us; /* 10:00 */
    start(0);
    answer_token("t");
    refuse_at("Sat, 21 Nov 2026 10:20:00 GMT");
    answer_group(200);
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_OK);
    cr_expect_eq(signed_at.us, now + 20 * AS_US_PER_MIN);
    cr_expect_eq(ops[0].op.sent, 2);

    start(0); /* it is remembered, and a refusal by the same clock is one */
    refuse_at("Sat, 21 Nov 2026 10:20:10 GMT");
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_PERMISSION);
    cr_expect_eq(signed_at.us, now + 20 * AS_US_PER_MIN);

    start(0); /* the clock is set right */
    refuse_at("Sat, 21 Nov 2026 10:00:00 GMT");
    answer_group(200);
    world_run(&world);
    cr_expect_eq(signed_at.us, now);
    deinit_ops();
}

Test(account, a_date_that_is_none_or_too_close_changes_nothing)
{
    static const char *const dates[] = {"soon", "", "Sat, 21 Nov 2026 10:01:59 GMT",
                                        "Sat, 21 Nov 2026 09:58:01 GMT"};
    answer_token("t");
    for (size_t i = 0; i < AS_ARRAY_SIZE(dates); i++) {
        start(0);
        refuse_at(dates[i]);
        world_run(&world);
        cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_PERMISSION, "row %zu", i);
        cr_expect_eq(ops[0].op.sent, 1, "row %zu", i);
    }
    deinit_ops();
}

/* A role that is taken on with a signature, an assertion with the time in it. */
Test(account, a_search_that_is_refused_for_the_time_begins_anew_by_the_others_clock)
{
    const int64_t now = env.clock->get_wall(env.clock).us; /* 10:00 */
    is_timed = true;
    start(0);
    refuse("/token", "Sat, 21 Nov 2026 10:20:00 GMT");
    answer_token("t");
    answer_group(200);
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_OK, "%s", ops[0].op.message);
    cr_expect_eq(begun, 2);
    cr_expect_eq(searched_at.us, now + 20 * AS_US_PER_MIN);
    cr_expect_eq(signed_at.us, now + 20 * AS_US_PER_MIN);
    deinit_ops();
}

Test(account, a_search_begins_anew_once)
{
    is_timed = true;
    start(0);
    refuse("/token", "Sat, 21 Nov 2026 10:20:00 GMT");
    refuse("/token", "Sat, 21 Nov 2026 10:40:00 GMT");
    world_run(&world);
    cr_expect_str_eq(ops[0].op.message, "no credentials: service: get_token: HTTP 403");
    cr_expect_eq(begun, 2);
    deinit_ops();
}

/* A metadata service's clock is its own. */
Test(account, a_search_without_the_time_in_it_learns_none)
{
    start(0);
    refuse("/token", "Sat, 21 Nov 2026 10:20:00 GMT");
    world_run(&world);
    cr_expect_str_eq(ops[0].op.message, "no credentials: service: get_token: HTTP 403");
    cr_expect_eq(begun, 1);
    deinit_ops();
}

Test(account, credentials_expire_by_the_others_clock)
{
    expires = (as_maybe_time){true, {world.wall.us + 25 * AS_US_PER_MIN}};
    start(0);
    answer_token("t1");
    refuse_at("Sat, 21 Nov 2026 10:20:00 GMT");
    answer_group(200);
    world_run(&world);
    expires.at.us += AS_US_PER_H;
    start(0); /* five minutes are left */
    answer_group(200);
    answer_token("t2");
    world_run(&world);
    cr_expect_eq(ops[0].op.fault, AS_CLOUD_OP_OK);
    cr_expect_eq(begun, 2);
    cr_expect_eq(searched_at.us, world.wall.us + 20 * AS_US_PER_MIN);
    deinit_ops();
}

Test(account, nothing_is_set_up)
{
    is_missing = true;
    const struct as_cloud_op *op = start(0);
    world_run(&world);
    cr_expect_eq(op->fault, AS_CLOUD_OP_CONFIGURATION);
    cr_expect_str_eq(op->message, "no credentials: none are set up in any of the places where "
                                  "they are looked for");
    start(0); /* not searched again at once, but told */
    world_run(&world);
    cr_expect_eq(op->fault, AS_CLOUD_OP_CONFIGURATION);
    cr_expect_eq(world.request_count, 0);
    deinit_ops();
}

/* What is set up and broken is not passed over: other credentials would be somebody else's. */
Test(account, a_broken_source_ends_the_chain)
{
    is_broken = true;
    const struct as_cloud_op *op = start(0);
    world_run(&world);
    cr_expect_str_eq(op->message, "no credentials: file: the file is no file");
    cr_expect_eq(begun, 0);
    deinit_ops();
}

Test(account, a_cancelled_call_is_not_told_and_the_others_go_on)
{
    start(0);
    const struct as_cloud_op *second = start(1);
    as_account_cancel(calls[0]);
    answer_token("t1");
    answer_group(200);
    world_run(&world);
    cr_expect_eq(ended_count, 1);
    cr_expect_eq(second->fault, AS_CLOUD_OP_OK);

    start(0); /* while its request is under way */
    as_account_cancel(calls[0]);
    world_run(&world);
    cr_expect_eq(ended_count, 1);
    deinit_ops();
}

/* The world fails the test where a timer or a request is left. */
Test(account, freed_with_a_search_and_calls_under_way)
{
    start(0);
    account = as_account_free(account);
    world_run(&world);
    cr_expect_eq(ended_count, 0);

    account = as_account_new(&provider, &settings, &env, NULL);
    is_missing = true; /* at the end of the chain */
    start(0);
    account = as_account_free(account);
    world_run(&world);
    cr_expect_eq(ended_count, 0);
    deinit_ops();
}
