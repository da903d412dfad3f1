/*
 * The gate under load: expensive checks are limited per address, valid credentials are not held up,
 * and malformed tokens are sent to nobody.
 */
#include <openssl/evp.h>

#include <alertscaler/auth/auth_review.h>

#include "access_env.h"
#include "auth/auth_limit.h"
#include "auth_gate.h"

TestSuite(auth_load, .init = setup, .fini = teardown);

/* Requests that wait at the same time, each from the one address. */
#define MANY 40
static struct as_http_exchange many[MANY];

static enum as_http_admission begin_one(size_t at, const char *authorization)
{
    many[at] = (struct as_http_exchange){.path = "/metrics", .authorization = authorization};
    return as_auth_admit(auth, &many[at], "tested", AS_PERMISSION_READ);
}

static void forget_many(void)
{
    for (size_t i = 0; i < MANY; i++) {
        free(many[i].headers);
        free(many[i].body);
        if (many[i].data)
            many[i].free_data(many[i].data);
        many[i] = (struct as_http_exchange){0};
    }
}

static const char *encode(const char *user, unsigned number)
{
    static char text[64];
    char plain[40];
    const int size = snprintf(plain, sizeof(plain), "%s:wrong%u", user, number);
    (void)snprintf(text, sizeof(text), "Basic ");
    EVP_EncodeBlock((unsigned char *)text + 6, (unsigned char *)plain, size);
    return text;
}

/* Else ten a while are as many as there are connections. */
Test(auth_load, guesses_at_the_same_time_are_counted_before_they_are_known_to_be_wrong)
{
    unsigned pending = 0;
    open_with(&reader_reads, &with_users);
    for (unsigned i = 0; i < MANY; i++)
        pending += begin_one(i, encode("reader", i)) == AS_HTTP_PENDING;
    cr_expect_eq(pending, AS_AUTH_FAILURES);
    for (size_t i = 0; i < AS_AUTH_FAILURES; i++) {
        while (many[i].replies == 0)
            cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
        cr_expect_eq(many[i].status, 401);
    }
    forget_many();
    now.us += AS_AUTH_FORGET_US;
    cr_expect_eq(begin_one(0, encode("reader", 100)), AS_HTTP_PENDING);
    cr_expect_eq(begin_one(1, encode("reader", 101)), AS_HTTP_REPLIED, "each counts once");
    forget_many();
}

/* An Alertmanager that sends all its groups at once, and one that begins anew with each. */
Test(auth_load, who_is_right_is_not_held_up)
{
    open_with(&reader_reads, &with_users);
    for (size_t i = 0; i < MANY; i++)
        cr_expect_eq(begin_one(i, i % 2 ? BASIC_READER : BASIC_WRITER), AS_HTTP_PENDING);
    for (size_t i = 0; i < MANY; i++) {
        while (many[i].admitted + many[i].replies == 0)
            cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
        cr_expect_eq(many[i].admitted, 1);
    }
    forget_many();
    unsigned pending = 0;
    for (unsigned i = 0; i < MANY; i++)
        pending += begin_one(i, encode("reader", i)) == AS_HTTP_PENDING;
    cr_expect_eq(pending, AS_AUTH_FAILURES, "what was right is not counted");
    forget_many();
}

static struct world_answer review_answer;

static struct world_answer serve_review(void *context, const struct world_request *request)
{
    return review_answer;
}

/* The gate with tokens that the API server knows, of which those of alice may read. */
static void open_with_reviews(void)
{
    static struct as_review_settings allow[] = {
        {.name = "alices", .user = "alice", .access.permissions = BIT(READ)}};
    static const struct as_receiver_settings settings = {
        .token_review = {.cluster = "default", .allow = allow, .allow_count = 1}};
    const struct as_cluster_settings cluster = {.name = "default"};
    struct as_reviewer *reviewer;
    struct as_error error = AS_ERROR_INIT;
    setup_world();
    write_token("token", "ours");
    env.service_account_dir = folder;
    variables[0][0] = "KUBERNETES_SERVICE_HOST";
    variables[0][1] = "k";
    variables[1][0] = "KUBERNETES_SERVICE_PORT";
    variables[1][1] = "443";
    world.serve = serve_review;
    open_with(&settings, NULL);
    cr_assert_eq(as_reviewer_new(&settings.token_review, &cluster, &env, &reviewer, &error), 0,
                 "%s", error.text);
    cr_assert_null(as_auth_swap_reviewer(auth, reviewer));
}

static void close_with_reviews(void)
{
    forget_many();
    auth = as_auth_free(auth);
    write_token("token", "ours");
    (void)unlink(path);
    teardown_world();
}

#define NOBODYS                                                                                    \
    ((struct world_answer){                                                                        \
        .status = 201, .body = "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":false}}"})
#define ALICES                                                                                     \
    ((struct world_answer){.status = 201,                                                          \
                           .body = "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true," \
                                   "\"user\":{\"username\":\"alice\"}}}"})

Test(auth_load, one_address_does_not_take_all_places_for_reviews)
{
    static char tokens[MANY][24];
    unsigned pending = 0;
    open_with_reviews();
    review_answer = NOBODYS;
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(tokens[i], sizeof(tokens[i]), "Bearer t%zu", i);
        pending += begin_one(i, tokens[i]) == AS_HTTP_PENDING;
    }
    cr_expect_eq(pending, AS_AUTH_FAILURES);
    cr_assert_lt(AS_AUTH_FAILURES, AS_REVIEWS_UNDER_WAY);
    world_run(&world);
    for (size_t i = 0; i < MANY; i++)
        cr_expect_eq(many[i].status, i < AS_AUTH_FAILURES ? 401 : 503, "%zu", i);
    close_with_reviews();
}

Test(auth_load, reviews_of_who_is_right_or_cannot_be_asked_about_are_not_held_against_anybody)
{
    open_with_reviews();
    const struct world_answer answers[] = {
        ALICES, {.outcome = AS_HTTP_UNREACHABLE, .error = "refused"}, ALICES};
    for (size_t k = 0; k < AS_ARRAY_SIZE(answers); k++) {
        review_answer = answers[k];
        for (size_t i = 0; i < MANY; i++) {
            cr_expect_eq(begin_one(0, "Bearer alices.token"), AS_HTTP_PENDING, "%zu %zu", k, i);
            world_run(&world);
            cr_expect_eq(many[0].admitted, answers[k].status == 201);
            cr_expect_eq(many[0].status, answers[k].status == 201 ? 0 : 503);
            world.mono.us += AS_REVIEW_REMEMBER_US;
            forget_many();
        }
    }
    close_with_reviews();
}

static int get_one(size_t at, const char *authorization)
{
    if (begin_one(at, authorization) == AS_HTTP_PENDING)
        world_run(&world);
    const int status = many[at].admitted ? 200 : many[at].status;
    return status != 0 ? status : 200; /* admitted at once */
}

static struct world_answer serve_some(void *context, const struct world_request *request)
{
    (void)context;
    return strstr(request->body, "alices.token") ? review_answer : NOBODYS;
}

static void advance(int64_t us)
{
    now.us += us;
    world.mono.us += us;
}

/* Who knows nothing, and shares the address of somebody who is right: an ingress, a proxy. */
Test(auth_load, who_was_right_lately_is_reviewed_however_many_are_wrong)
{
    static char token[32];
    open_with_reviews();
    world.serve = serve_some;
    review_answer = ALICES;
    cr_assert_eq(get_one(0, "Bearer alices.token"), 200);
    for (unsigned i = 0; i < 200; i++) { /* one a second */
        advance(AS_US_PER_S);
        (void)snprintf(token, sizeof(token), "Bearer bad%u", i);
        (void)get_one(1, token);
        (void)snprintf(token, sizeof(token), "Bearer worse%u", i);
        (void)get_one(2, token);
        cr_expect_eq(get_one(3, "Bearer alices.token"), 200, "after %u s", i);
        forget_many();
    }
    cr_expect_lt(world.request_count, 10 + 40 + 21 + 1, "and guesses are as limited as before");
    /* once it is not right any more, it is like all others */
    review_answer = NOBODYS;
    advance(AS_REVIEW_REMEMBER_US);
    cr_expect_eq(get_one(0, "Bearer alices.token"), 401);
    forget_many();
    for (unsigned i = 0; i < 2; i++) { /* what was forgotten meanwhile is used up */
        (void)snprintf(token, sizeof(token), "Bearer last%u", i);
        (void)get_one(i, token);
    }
    cr_expect_eq(get_one(3, "Bearer alices.token"), 503);
    forget_many();
    close_with_reviews();
}

/* What is only compared says nothing of who shares the address. */
Test(auth_load, what_costs_nothing_keeps_nobody_from_being_checked)
{
    struct as_credentials *both;
    open_with(&reader_reads, &with_users);
    write_token("am", "sesame");
    struct as_token_settings token = {.name = "am", .file = path, .access.permissions = 1};
    const struct as_receiver_settings settings = {
        .users = user_access, .user_count = 1, .tokens = &token, .token_count = 1};
    cr_assert_eq(as_credentials_new(&settings, &with_users, &both, NULL), 0);
    as_credentials_free(as_auth_swap_credentials(auth, both));
    static const char *const rows[] = {"Bearer wrong", "Basic ====", "Basic YQ=="};
    for (unsigned i = 0; i < 100; i++) {
        cr_assert_eq(begin_one(0, rows[i % AS_ARRAY_SIZE(rows)]), AS_HTTP_REPLIED);
        cr_assert_eq(many[0].status, 401);
        forget_many();
    }
    cr_expect_eq(begin_one(0, BASIC_READER), AS_HTTP_PENDING);
    forget_many();
}

/* Who joins a check costs none. */
Test(auth_load, the_same_wrong_password_many_times_at_once_counts_once)
{
    open_with(&reader_reads, &with_users);
    for (size_t i = 0; i < MANY; i++)
        cr_expect_eq(begin_one(i, BASIC_WRONG), AS_HTTP_PENDING);
    for (size_t i = 0; i < MANY; i++) {
        while (many[i].admitted + many[i].replies == 0)
            cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
        cr_expect_eq(many[i].status, 401);
    }
    forget_many();
    unsigned pending = 0;
    for (unsigned i = 0; i < AS_AUTH_FAILURES; i++)
        pending += begin_one(i, encode("reader", i)) == AS_HTTP_PENDING;
    cr_expect_eq(pending, AS_AUTH_FAILURES - 1);
    forget_many();
}

/* Anything else is no token (RFC 6750), and would make the API server say 400 of our request. */
Test(auth_load, only_what_can_be_a_token_is_shown_to_the_api_server)
{
    static const char *const rows[] = {
        "Bearer \xff\xfe",    "Bearer a b", "Bearer a\tb", "Bearer \"a\"",
        "Bearer caf\xc3\xa9", "Bearer a=b", "Bearer =",    "Bearer {}",
    };
    open_with_reviews();
    review_answer = NOBODYS;
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        cr_expect_eq(begin_one(i, rows[i]), AS_HTTP_REPLIED, "%s", rows[i]);
        cr_expect_eq(many[i].status, 401, "%s", rows[i]);
    }
    cr_expect_eq(world.request_count, 0);
    now.us += 60 * AS_US_PER_S;
    cr_expect_eq(begin_one(20, "Bearer aZ0-._~+/=="), AS_HTTP_PENDING);
    world_run(&world);
    cr_expect_eq(many[20].status, 401);
    close_with_reviews();
}
