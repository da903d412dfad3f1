/*
 * The limits of TokenReview: size and groups of an answer, the cache and its duration, the number
 * of reviews at once; and everybody is answered exactly once, whatever the API server and the
 * waiting requests do meanwhile.
 */
#include <alertscaler/auth/auth_review.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>

#include "pod.h"

#define PATH "/apis/authentication.k8s.io/v1/tokenreviews"

static struct as_reviewer *reviewer;

struct asker {
    struct as_review_wait *wait;
    unsigned told;
    bool is_asked; /* false: the API server could not be asked */
    bool is_somebody;
    char user[64];
    size_t group_count;
    bool frees; /* lets the reviewer go when told, as a reload does */
};

static void setup(void)
{
    static const char *audiences[] = {"alertscaler"};
    const struct as_token_review_settings settings = {.audiences = audiences, .audience_count = 1};
    const struct as_cluster_settings cluster = {.name = "default"};
    struct as_error error = AS_ERROR_INIT;
    setup_pod("ours");
    cr_assert_eq(as_reviewer_new(&settings, &cluster, &env, &reviewer, &error), 0, "%s",
                 error.text);
}

static void teardown(void)
{
    as_reviewer_free(reviewer);
    teardown_pod();
}

TestSuite(auth_review, .init = setup, .fini = teardown);

static void on_reviewed(void *context, const struct as_reviewed *reviewed)
{
    struct asker *asker = context;
    asker->told++;
    asker->wait = NULL;
    asker->is_asked = reviewed != NULL;
    asker->is_somebody = reviewed && reviewed->authenticated;
    asker->group_count = reviewed ? reviewed->group_count : 0;
    snprintf(asker->user, sizeof(asker->user), "%s",
             asker->is_somebody ? reviewed->user : "nobody");
    if (asker->frees)
        reviewer = as_reviewer_free(reviewer);
}

static bool ask(struct asker *asker, const char *token)
{
    asker->wait = as_reviewer_ask(reviewer, token, true, on_reviewed, asker);
    cr_assert_eq(asker->told, 0, "told in the same turn");
    return asker->wait;
}

/* What the API server says of a token whose user has so many groups, each of this many bytes. */
static char *make_answer(const char *user, size_t group_count, size_t group_size)
{
    char *group = as_xcalloc(1, group_size + 1), *text;
    struct as_buf out = AS_BUF_INIT(16 * 1024 * 1024);
    memset(group, 'g', group_size);
    as_buf_printf(&out,
                  "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"audiences\":["
                  "\"alertscaler\"],\"user\":{\"username\":\"%s\",\"groups\":[",
                  user);
    for (size_t i = 0; i < group_count; i++) {
        as_buf_append_str(&out, i > 0 ? ",\"" : "\"");
        as_buf_append(&out, group, group_size);
        as_buf_append_char(&out, '"');
    }
    as_buf_append_str(&out, "]}}}");
    as_buf_append_char(&out, '\0');
    text = as_buf_take(&out, NULL);
    free(group);
    return text;
}

static void answer(const char *body)
{
    world_answer(
        &world, (struct world_answer){.method = "POST", .path = PATH, .status = 201, .body = body});
}

static void answer_user(const char *user, size_t group_count, size_t group_size)
{
    char *text = make_answer(user, group_count, group_size);
    answer(text);
    free(text);
}

#define NOBODY "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":false}}"

Test(auth_review, one_request_with_a_time_limit_and_a_cap)
{
    struct asker asker = {0};
    answer_user("alice", 2, 10);
    cr_assert(ask(&asker, "a.b.c"));
    world_run(&world);
    cr_assert_eq(world.request_count, 1);
    const struct world_request *request = &world.requests[0];
    cr_expect_str_eq(request->url, "https://k:443" PATH);
    cr_expect_eq(request->timeout_us, AS_REVIEW_TIMEOUT_US);
    cr_expect_eq(request->max_response, AS_REVIEW_RESPONSE_MAX);
    cr_expect_eq(request->class, AS_HTTP_REVIEW);
    cr_expect(strstr(request->body, "\"token\":\"a.b.c\""), "%s", request->body);
    cr_expect(strstr(request->body, "\"audiences\":[\"alertscaler\"]"), "%s", request->body);
    cr_expect_eq(asker.told, 1);
    cr_expect_str_eq(asker.user, "alice");
    cr_expect_eq(asker.group_count, 2);
}

Test(auth_review, groups_have_a_limit_that_is_reached)
{
    struct asker askers[2] = {{0}};
    answer_user("alice", AS_REVIEW_GROUPS_MAX, 1);
    cr_assert(ask(&askers[0], "a"));
    world_run(&world);
    cr_expect_str_eq(askers[0].user, "alice");
    cr_expect_eq(askers[0].group_count, AS_REVIEW_GROUPS_MAX);
    answer_user("bob", AS_REVIEW_GROUPS_MAX + 1, 1);
    cr_assert(ask(&askers[1], "b"));
    world_run(&world);
    cr_expect_eq(askers[1].told, 1);
    cr_expect_not(askers[1].is_asked);
    cr_expect_null(as_reviewer_find(reviewer, "b"));
}

/* The client cuts it off at the cap; what the outcome is called does not matter. */
Test(auth_review, an_answer_that_is_too_large_or_late_or_wrong_lets_nobody_in)
{
    const struct world_answer rows[] = {
        {.outcome = AS_HTTP_TOO_LARGE, .error = "larger than 256 KiB"},
        {.outcome = AS_HTTP_TIMEOUT, .error = "timed out"},
        {.outcome = AS_HTTP_UNREACHABLE, .error = "refused"},
        {.outcome = AS_HTTP_BROKEN, .error = "reset"},
        {.status = 200, .body = "no"},
        {.status = 403},
        {.status = 500, .body = NOBODY},
        {.status = 302, .location = "https://elsewhere/"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct asker asker = {0};
        struct world_answer row = rows[i];
        row.method = "POST";
        row.path = PATH;
        world_answer(&world, row);
        cr_assert(ask(&asker, "a"));
        world_run(&world);
        cr_expect_eq(asker.told, 1, "row %zu", i);
        cr_expect_not(asker.is_asked, "row %zu", i);
        cr_expect_null(as_reviewer_find(reviewer, "a"), "row %zu", i);
    }
}

Test(auth_review, what_is_somebodys_is_remembered_for_ten_seconds_and_what_is_nobodys_not_at_all)
{
    struct asker askers[3] = {{0}};
    answer_user("alice", 3, 10);
    answer(NOBODY);
    cr_assert(ask(&askers[0], "a"));
    cr_assert(ask(&askers[1], "b"));
    world_run(&world);
    cr_assert_str_eq(askers[0].user, "alice");
    cr_expect_null(as_reviewer_find(reviewer, "b"));
    cr_expect_null(as_reviewer_find(reviewer, "A"));
    world_advance(&world, AS_REVIEW_REMEMBER_US - 1);
    const struct as_reviewed *known = as_reviewer_find(reviewer, "a");
    cr_assert_not_null(known);
    cr_expect_str_eq(known->user, "alice");
    cr_expect_eq(known->group_count, 3);
    world_advance(&world, 1);
    cr_expect_null(as_reviewer_find(reviewer, "a"));
    answer(NOBODY); /* the account was deleted meanwhile */
    cr_assert(ask(&askers[2], "a"));
    world_run(&world);
    cr_expect_str_eq(askers[2].user, "nobody");
}

static struct world_answer serve_alice(void *context, const struct world_request *request)
{
    return (struct world_answer){.status = 201, .body = context};
}

Test(auth_review, so_many_are_remembered_and_the_oldest_is_forgotten)
{
    char token[16], *text = make_answer("alice", 1, 1);
    world.serve = serve_alice;
    world.serve_context = text;
    for (unsigned i = 0; i <= AS_REVIEWS_REMEMBER; i++) {
        struct asker asker = {0};
        snprintf(token, sizeof(token), "t%u", i);
        cr_assert(ask(&asker, token));
        world_run(&world);
        cr_assert(asker.is_somebody);
    }
    cr_expect_null(as_reviewer_find(reviewer, "t0"));
    cr_expect_not_null(as_reviewer_find(reviewer, "t1"));
    cr_expect_not_null(as_reviewer_find(reviewer, token));
    free(text);
}

/* Else whoever may make tokens for an account with many groups could fill 64 MiB. */
Test(auth_review, what_takes_much_memory_is_not_remembered)
{
    struct asker askers[2] = {{0}};
    answer_user("alice", 100, AS_REVIEW_REMEMBER_MAX / 100 - 20);
    cr_assert(ask(&askers[0], "a"));
    world_run(&world);
    cr_expect_not_null(as_reviewer_find(reviewer, "a"));
    answer_user("bob", 100, AS_REVIEW_REMEMBER_MAX / 100 + 1);
    cr_assert(ask(&askers[1], "b"));
    world_run(&world);
    cr_expect_str_eq(askers[1].user, "bob");
    cr_expect_null(as_reviewer_find(reviewer, "b"));
}

Test(auth_review, so_many_at_once_and_those_of_one_token_share_a_request)
{
    struct asker askers[AS_REVIEWS_UNDER_WAY] = {{0}}, second = {0}, more = {0};
    char token[16];
    for (unsigned i = 0; i < AS_REVIEWS_UNDER_WAY; i++) {
        snprintf(token, sizeof(token), "t%u", i);
        cr_assert(ask(&askers[i], token));
        cr_expect(as_review_wait_is_first(askers[i].wait));
        answer(NOBODY);
    }
    cr_expect_not(ask(&more, "one more"));
    cr_assert(ask(&second, token));
    cr_expect_not(as_review_wait_is_first(second.wait));
    world_run(&world);
    cr_expect_eq(world.request_count, AS_REVIEWS_UNDER_WAY);
    cr_expect_eq(second.told, 1);
    for (unsigned i = 0; i < AS_REVIEWS_UNDER_WAY; i++)
        cr_expect_eq(askers[i].told, 1, "%u", i);
    answer(NOBODY);
    cr_assert(ask(&more, "one more"));
    world_run(&world);
    cr_expect_eq(more.told, 1);
}

/* Else guesses from many addresses would take all of them while the API server is slow. */
Test(auth_review, some_places_are_kept_for_tokens_that_were_right_lately)
{
    static struct asker askers[AS_REVIEWS_WAITING];
    unsigned under_way = 0, waiting = 0;
    char token[16];
    world.serve = serve_alice;
    world.serve_context = (void *)(uintptr_t)NOBODY;
    for (unsigned i = 0; i < AS_REVIEWS_UNDER_WAY; i++) {
        snprintf(token, sizeof(token), "t%u", i);
        askers[i].wait = as_reviewer_ask(reviewer, token, false, on_reviewed, &askers[i]);
        under_way += askers[i].wait != NULL;
    }
    cr_expect_eq(under_way, AS_REVIEWS_UNDER_WAY - AS_REVIEWS_UNDER_WAY / AS_REVIEWS_KEPT);
    for (unsigned i = under_way; i < AS_REVIEWS_WAITING; i++) {
        snprintf(token, sizeof(token), "t%u", i % under_way);
        askers[i].wait = as_reviewer_ask(reviewer, token, false, on_reviewed, &askers[i]);
        waiting += askers[i].wait != NULL;
    }
    cr_expect_eq(under_way + waiting, AS_REVIEWS_WAITING - AS_REVIEWS_WAITING / AS_REVIEWS_KEPT);
    struct asker trusted = {0};
    cr_expect(ask(&trusted, "lately"));
    world_run(&world);
    cr_expect_eq(trusted.told, 1);
}

/* Each of them is a connection that waits, and while the API server hangs all of them do. */
Test(auth_review, so_many_wait_whatever_token_they_show)
{
    static struct asker askers[AS_REVIEWS_WAITING];
    struct asker more[3] = {{0}};
    answer(NOBODY);
    answer(NOBODY);
    for (unsigned i = 0; i < AS_REVIEWS_WAITING; i++)
        cr_assert(ask(&askers[i], i % 2 ? "a" : "b"), "%u", i);
    cr_expect_not(ask(&more[0], "a"));
    cr_expect_not(ask(&more[0], "c"));
    as_review_wait_cancel(askers[7].wait);
    cr_expect(ask(&more[1], "a"), "who has gone has left its place");
    cr_expect_not(ask(&more[0], "a"));
    world_run(&world);
    for (unsigned i = 0; i < AS_REVIEWS_WAITING; i++)
        cr_expect_eq(askers[i].told, i != 7, "%u", i);
    cr_expect_eq(more[1].told, 1);
    answer(NOBODY);
    answer(NOBODY);
    for (unsigned i = 0; i < AS_REVIEWS_WAITING; i++) {
        askers[i] = (struct asker){0};
        cr_assert(ask(&askers[i], i % 2 ? "d" : "e"), "%u", i);
    }
    cr_expect_not(ask(&more[0], "d"));
    world_run(&world);
}

Test(auth_review, one_token_has_half_of_the_waiting_requests)
{
    static struct asker askers[AS_REVIEWS_OF_TOKEN];
    struct asker more = {0}, other = {0};
    answer(NOBODY);
    answer(NOBODY);
    for (unsigned i = 0; i < AS_REVIEWS_OF_TOKEN; i++)
        cr_assert(ask(&askers[i], "a"), "%u", i);
    cr_expect_not(ask(&more, "a"));
    cr_expect(ask(&other, "b"));
    world_run(&world);
    cr_expect_eq(other.told, 1);
}

/* The API server accepts and is silent, and the HTTP client is stuck too. */
Test(auth_review, a_review_that_never_ends_ends)
{
    struct asker askers[2] = {{0}};
    cr_assert(ask(&askers[0], "a"));
    cr_assert(ask(&askers[1], "a"));
    world.mono.us += AS_REVIEW_TIMEOUT_US - 1;
    cr_expect_not(world_expire(&world));
    world.mono.us += 1;
    cr_expect(world_expire(&world));
    cr_expect(world.requests[0].is_cancelled);
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(askers[i].told, 1);
        cr_expect_not(askers[i].is_asked);
    }
    struct asker more[AS_REVIEWS_UNDER_WAY] = {{0}};
    char token[16];
    for (unsigned i = 0; i < AS_REVIEWS_UNDER_WAY; i++) { /* and its place is free */
        snprintf(token, sizeof(token), "t%u", i);
        answer(NOBODY);
        cr_expect(ask(&more[i], token));
    }
    world_run(&world);
}

Test(auth_review, who_has_gone_is_not_told)
{
    struct asker askers[2] = {{0}};
    answer_user("alice", 1, 1);
    cr_assert(ask(&askers[0], "a"));
    cr_assert(ask(&askers[1], "a"));
    as_review_wait_cancel(askers[0].wait);
    world_run(&world);
    cr_expect_eq(askers[0].told, 0);
    cr_expect_eq(askers[1].told, 1);
    cr_expect_not_null(as_reviewer_find(reviewer, "a"));
}

/* Whoever is let in may ask for a reload, which lets go the reviewer that has just told it. */
Test(auth_review, the_reviewer_may_go_while_it_tells)
{
    struct asker askers[3] = {{0}}, other = {0};
    answer_user("alice", 1, 1);
    for (size_t i = 0; i < 3; i++)
        cr_assert(ask(&askers[i], "a"));
    cr_assert(ask(&other, "b"));
    askers[1].frees = true;
    world_run(&world);
    cr_expect_null(reviewer);
    for (size_t i = 0; i < 3; i++)
        cr_expect_str_eq(askers[i].user, "alice", "%zu", i);
    cr_expect_eq(other.told, 1);
    cr_expect_not(other.is_asked);
}

Test(auth_review, at_the_end_those_who_wait_are_told)
{
    struct asker asker = {0};
    cr_assert(ask(&asker, "a"));
    reviewer = as_reviewer_free(reviewer);
    cr_expect_eq(asker.told, 1);
    cr_expect_not(asker.is_asked);
    cr_expect(world.requests[0].is_cancelled);
}

static size_t count_lines(int fd)
{
    char text[16384];
    const ssize_t size = pread(fd, text, sizeof(text), 0);
    size_t lines = 0;
    for (ssize_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Anybody can show tokens while the API server is down. */
Test(auth_review, failures_are_logged_once_in_a_while_with_their_count)
{
    char name[] = "/tmp/test-review-log-XXXXXX";
    const int fd = mkstemp(name);
    cr_assert_geq(fd, 0);
    as_log_configure(AS_LOG_WARN, AS_LOG_LOGFMT, fd);
    for (unsigned i = 0; i < 200; i++) {
        struct asker asker = {0};
        world_answer(&world, (struct world_answer){
                                 .method = "POST", .path = PATH, .outcome = AS_HTTP_UNREACHABLE});
        cr_assert(ask(&asker, "a"));
        world_run(&world);
        world_advance(&world, AS_US_PER_S);
    }
    cr_expect_eq(count_lines(fd), 4); /* at 0, 60, 120 and 180 s */
    world_advance(&world, 39 * AS_US_PER_S);
    as_reviewer_poll(reviewer);
    cr_expect_eq(count_lines(fd), 4);
    world_advance(&world, AS_US_PER_S);
    as_reviewer_poll(reviewer); /* no other has failed since */
    as_log_configure(AS_LOG_WARN, AS_LOG_LOGFMT, STDERR_FILENO);
    cr_expect_eq(count_lines(fd), 5);
    close(fd);
    unlink(name);
}

Test(auth_review, audiences_that_no_request_holds_are_refused)
{
    static char audience[70000];
    memset(audience, 'a', sizeof(audience) - 1);
    const char *audiences[] = {audience};
    const struct as_token_review_settings settings = {.audiences = audiences, .audience_count = 1};
    const struct as_cluster_settings cluster = {.name = "default"};
    struct as_reviewer *other = NULL;
    struct as_error error = AS_ERROR_INIT;
    cr_expect_lt(as_reviewer_new(&settings, &cluster, &env, &other, &error), 0);
    cr_expect(strstr(error.text, "receiver.token_review.audiences"), "%s", error.text);
    cr_expect_null(other);
}
