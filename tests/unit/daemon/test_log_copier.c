/*
 * The loop's side of copying the records of other replicas: who is asked for what, and when. The
 * thread of the history is a real one, and so are the files.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/log.h>
#include <alertscaler/log/log_chain.h>

#include "../records.h"
#include "daemon/log_copier.h"
#include "world.h"

#define COUNT 5000
#define FIRST 11   /* of the records that are missing */
#define LAST  4990 /* of them */

static char directory[40], path[80], log_path[80];
static struct event_base *base;
static struct as_log_history *history;
static struct log_copier *copier;
static struct world world;
static bool is_leading;
static char *lines[COUNT + 1]; /* of the records 1, 2, ...; with '\n' */
static const char *urls[3] = {"http://one:9096/", "http://two:9096/prefix", "http://three:9096"};
static struct as_action_log_settings settings;

/* How the replicas answer. */
enum way { HONEST, EMPTY, WRONG, SHORT, REFUSED, REDIRECT, DOWN };
static enum way ways[3];
static struct as_buf body;

static int remove_entry(const char *entry, const struct stat *info, int type, struct FTW *at)
{
    return remove(entry);
}

static void append(const char *name, int first, int last)
{
    FILE *file = fopen(name, "ae");
    cr_assert(file);
    for (int i = first; i <= last; i++)
        fputs(lines[i], file);
    cr_assert_eq(fclose(file), 0);
}

static struct world_answer serve(void *context, const struct world_request *request)
{
    size_t peer = strstr(request->url, "//one") ? 0 : strstr(request->url, "//two") ? 1 : 2;
    long after = -1, limit = -1;
    const char *query = strchr(request->url, '?');
    cr_assert(query && sscanf(query, "?after=%ld&limit=%ld", &after, &limit) == 2, "%s",
              request->url);
    cr_assert(after >= FIRST - 1 && limit >= 1 && after + limit <= LAST, "%s", request->url);
    as_buf_clear(&body);
    const enum way way = ways[peer];
    long count = way == SHORT ? (limit < 100 ? limit : 100) : limit;
    for (long i = 1; i <= count && way != EMPTY; i++)
        as_buf_append_str(&body, lines[way == WRONG ? i : after + i]);
    return (struct world_answer){.outcome = way == DOWN ? AS_HTTP_UNREACHABLE : AS_HTTP_ANSWERED,
                                 .status = way == REFUSED    ? 401
                                           : way == REDIRECT ? 302
                                                             : 200,
                                 .body = body.size > 0 ? body.data : "",
                                 .body_size = body.size,
                                 .error = "connection refused",
                                 .location = "http://elsewhere/",
                                 .fields = way == SHORT ? "alertscaler-log-more\0yes\0"
                                                        : "alertscaler-log-more\0no\0"};
}

static bool leads(void *context)
{
    return is_leading;
}

static const char *no_variable(const char *name)
{
    return NULL;
}

static bool is_current, is_done;

static void look(struct as_log_history_job *job, const struct as_log_history_view *view)
{
    is_current = view->state.is_current;
}

static void end_look(struct as_log_history_job *job)
{
    is_done = true;
}

/* A job reads the log for a short time only. */
static void read_log(void)
{
    struct as_log_history_job job = {.run = look, .done = end_look, .drop = end_look};
    for (is_current = false; !is_current;) {
        is_done = false;
        cr_assert(as_log_history_submit(history, &job));
        while (!is_done)
            (void)event_base_loop(base, EVLOOP_ONCE);
    }
}

static void begin(size_t url_count)
{
    struct as_error error = AS_ERROR_INIT;
    settings.replicas.url_count = url_count;
    cr_assert_eq(as_log_history_new(base, path, &history, &error), 0, "%s", error.text);
    read_log();
    copier = log_copier_new(&(struct log_copier_config){
        .settings = &settings,
        .history = history,
        .env = {&world.http, &world.loop, &world.runner, &world.clock, no_variable},
        .instance = "me",
        .is_leading = leads,
    });
    cr_assert(copier);
}

static void setup(void)
{
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    struct as_audit_head head = AS_AUDIT_HEAD_INIT;
    snprintf(directory, sizeof(directory), "/tmp/as-copier-XXXXXX");
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/actions.jsonl", directory);
    snprintf(log_path, sizeof(log_path), "%s/daemon.log", directory);
    as_log_configure(AS_LOG_INFO, AS_LOG_LOGFMT,
                     open(log_path, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0600));
    for (unsigned i = 1; i <= COUNT; i++) {
        struct as_buf line = AS_BUF_INIT(1 << 20);
        struct test_record made;
        as_chain_seal(chain, test_record_make(&made, i), &head, &line);
        lines[i] = as_buf_take(&line, &(size_t){0});
    }
    AS_CLEANUP(as_free_p) char *rotated = as_xasprintf("%s.1", path);
    append(rotated, 1, FIRST - 1);
    append(path, LAST + 1, COUNT);
    base = event_base_new();
    world_init(&world);
    world.serve = serve;
    body = AS_BUF_INIT(1 << 24);
    memset(ways, 0, sizeof(ways));
    is_leading = true;
    settings = (struct as_action_log_settings){
        .path = path, .max_size = 1 << 24, .keep = 2, .replicas = {.urls = urls}};
}

static void teardown(void)
{
    log_copier_free(copier);
    as_log_history_free(history);
    world_deinit(&world);
    event_base_free(base);
    as_buf_deinit(&body);
    for (size_t i = 1; i <= COUNT; i++)
        free(lines[i]);
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(log_copier, .init = setup, .fini = teardown);

/* Until it waits for a timer. */
static void settle(void)
{
    world_run(&world);
    for (int i = 0; TAILQ_EMPTY(&world.timers); i++) {
        cr_assert_lt(i, 20000, "it does not come to rest");
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
        world_run(&world);
        usleep(1000);
    }
}

static void advance(int64_t us)
{
    world_advance(&world, us);
    settle();
}

/* Through the pauses of one sweep. */
static void sweep(void)
{
    advance(LOG_COPIER_EVERY_US);
    for (int i = 0; i < 100; i++)
        advance(AS_US_PER_S / 20);
}

static size_t count_requests(const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < world.request_count; i++)
        count += strstr(world.requests[i].url, part) != NULL;
    return count;
}

static size_t count_logged(const char *part)
{
    char line[2048];
    size_t count = 0;
    FILE *file = fopen(log_path, "re");
    while (fgets(line, sizeof(line), file))
        count += strstr(line, part) != NULL;
    fclose(file);
    return count;
}

#define COMPLAINT "cannot be copied"
#define COPIED    "copied records that other replicas wrote"

Test(log_copier, without_replicas_there_is_none)
{
    cr_assert_null(log_copier_new(&(struct log_copier_config){.settings = &settings}));
}

Test(log_copier, the_gap_is_asked_for_from_its_end)
{
    begin(1);
    sweep();
    cr_assert_eq(world.request_count, 3);
    cr_assert_str_eq(world.requests[0].url, "http://one:9096/api/v1/log?after=3990&limit=1000");
    cr_assert_str_eq(world.requests[1].url, "http://one:9096/api/v1/log?after=1990&limit=2000");
    cr_assert_str_eq(world.requests[2].url, "http://one:9096/api/v1/log?after=10&limit=1980");
    cr_assert_gt(world.requests[0].timeout_us, 0);
    cr_assert_gt(world.requests[0].idle_us, 0);
    cr_assert_eq(count_logged(COPIED), 1);
    cr_assert_eq(count_logged("records=4980"), 1);
    sweep();
    cr_assert_eq(world.request_count, 3, "nothing is missing");
    cr_assert_eq(count_logged(COMPLAINT), 0);
}

Test(log_copier, a_follower_asks_nobody)
{
    is_leading = false;
    begin(1);
    sweep();
    cr_assert_eq(world.request_count, 0);
    is_leading = true;
    sweep();
    cr_assert_eq(world.request_count, 3);
}

Test(log_copier, short_answers_are_asked_for_again)
{
    ways[0] = SHORT;
    begin(1);
    for (int i = 0; i < 3; i++)
        sweep();
    cr_assert_eq(count_logged("records=4980"), 1);
    cr_assert_eq(count_logged(COMPLAINT), 0);
    cr_assert_lt(world.request_count, 200);
}

Test(log_copier, the_next_replica_is_asked)
{
    ways[0] = EMPTY;
    ways[1] = DOWN;
    begin(3);
    sweep();
    cr_assert_eq(count_requests("//one"), 1);
    cr_assert_eq(count_requests("//two:9096/prefix/api/v1/log?"), 1);
    cr_assert_eq(count_requests("//three"), 3, "the one that has them is asked first from then on");
    cr_assert_eq(count_logged(COPIED), 1);
    cr_assert_eq(count_logged("connection refused"), 1);
}

Test(log_copier, a_replica_without_good_answers_is_asked_once_a_minute)
{
    static const enum way bad[] = {WRONG, REFUSED, REDIRECT, DOWN};
    begin(1);
    for (size_t i = 0; i < AS_ARRAY_SIZE(bad); i++) {
        ways[0] = bad[i];
        const size_t before = world.request_count;
        advance(LOG_COPIER_RETRY_US);
        cr_assert_eq(world.request_count, before + 1);
        for (int k = 0; k < 5; k++)
            advance(LOG_COPIER_EVERY_US);
        cr_assert_eq(world.request_count, before + 1);
        cr_assert_eq(count_logged(COMPLAINT), i + 1);
    }
    cr_assert_eq(count_logged(COPIED), 0);
    ways[0] = HONEST;
    advance(LOG_COPIER_RETRY_US);
    sweep();
    cr_assert_eq(count_logged(COPIED), 1);
}

Test(log_copier, the_same_problem_is_logged_once_an_hour)
{
    ways[0] = DOWN;
    begin(1);
    for (int i = 0; i < 60; i++)
        advance(AS_US_PER_MIN);
    cr_assert_eq(count_logged(COMPLAINT), 1);
    for (int i = 0; i < 5; i++)
        advance(AS_US_PER_MIN);
    cr_assert_eq(count_logged(COMPLAINT), 2);
}

Test(log_copier, different_problems_are_one_line_a_minute)
{
    ways[0] = WRONG;
    ways[1] = DOWN;
    ways[2] = REFUSED;
    begin(3);
    sweep();
    cr_assert_eq(world.request_count, 3);
    cr_assert_eq(count_logged(COMPLAINT), 1);
}

Test(log_copier, when_nobody_has_the_records_it_waits_for_the_next_sweep)
{
    ways[0] = ways[1] = ways[2] = EMPTY;
    begin(3);
    sweep();
    cr_assert_eq(world.request_count, 3);
    sweep();
    cr_assert_eq(world.request_count, 6);
    cr_assert_eq(count_logged(COMPLAINT), 0);
}

Test(log_copier, what_has_no_room_is_not_fetched_again)
{
    settings.max_size = 200000; /* some 1,000 records */
    settings.keep = 1;
    begin(1);
    for (int i = 0; i < 5; i++)
        sweep();
    const size_t before = world.request_count;
    cr_assert_gt(before, 0);
    for (int i = 0; i < 5; i++)
        sweep();
    cr_assert_eq(world.request_count, before);
    cr_assert_eq(count_logged(COMPLAINT), 0);
}

/* One request is under way, whose answer has begun and does not end. */
static void begin_answer_that_stays(void)
{
    begin(1);
    world.serve = NULL;
    world_answer(&world, (struct world_answer){.method = "GET",
                                               .path = "limit=1000",
                                               .outcome = AS_HTTP_ANSWERED,
                                               .status = 200,
                                               .body = "{",
                                               .stays = true});
    world_advance(&world, LOG_COPIER_EVERY_US);
    while (TAILQ_EMPTY(&world.staying)) {
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
        world_run(&world);
    }
}

Test(log_copier, an_answer_without_end_is_cut)
{
    begin_answer_that_stays();
    AS_CLEANUP(as_free_p) char *spaces = as_xmalloc(LOG_COPIER_ANSWER_MAX);
    memset(spaces, ' ', LOG_COPIER_ANSWER_MAX);
    world_feed(&world, spaces, LOG_COPIER_ANSWER_MAX);
    settle();
    cr_assert_eq(count_logged("the answer is larger than 16 MiB"), 1);
}

Test(log_copier, it_ends_while_a_request_is_under_way)
{
    begin_answer_that_stays();
    copier = log_copier_free(copier);
    cr_assert(world.requests[0].is_cancelled);
}

Test(log_copier, it_ends_while_a_job_runs)
{
    begin(1);
    world_advance(&world, LOG_COPIER_EVERY_US);
    copier = log_copier_free(copier);
    for (int i = 0; i < 200; i++) {
        (void)event_base_loop(base, EVLOOP_NONBLOCK);
        usleep(1000);
    }
    cr_assert_eq(world.request_count, 0);
}

Test(log_copier, the_history_ends_before_it)
{
    begin(1);
    world_advance(&world, LOG_COPIER_EVERY_US);
    history = as_log_history_free(history);
    copier = log_copier_free(copier);
    cr_assert_eq(world.request_count, 0);
}
