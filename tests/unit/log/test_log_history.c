/* The thread of the action log's history: jobs run in it one after another, and end with it. */
#include <alertscaler/log/log_history.h>

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>

static char directory[40], path[80];
static struct event_base *base;
static pthread_t loop;

static int remove_entry(const char *entry, const struct stat *info, int type, struct FTW *at)
{
    return remove(entry);
}

static void setup(void)
{
    snprintf(directory, sizeof(directory), "/tmp/as-history-XXXXXX");
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/actions.jsonl", directory);
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, open("/dev/null", O_WRONLY | O_CLOEXEC));
    base = event_base_new();
    loop = pthread_self();
}

static void teardown(void)
{
    event_base_free(base);
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(log_history, .init = setup, .fini = teardown);

struct test_job {
    struct as_log_history_job job;
    size_t count, *done, *dropped;
    bool has_index, is_current;
    atomic_bool *gate; /* waits for it */
};

static bool count_row(void *context, const struct as_log_row *row)
{
    ((struct test_job *)context)->count++;
    return true;
}

static void run_job(struct as_log_history_job *self, const struct as_log_history_view *view)
{
    struct test_job *job = (struct test_job *)self;
    struct as_error error = AS_ERROR_INIT;
    const struct as_log_query query = {
        .kinds = ~0U, .on_row = count_row, .context = job, .deadline = AS_MONO_NEVER};
    cr_assert_not(pthread_equal(pthread_self(), loop));
    while (job->gate && !atomic_load(job->gate))
        usleep(1000);
    job->has_index = view->index != NULL;
    job->is_current = view->state.is_current;
    if (view->index)
        cr_assert_eq(as_log_index_find(view->index, &query, &error), 0, "%s", error.text);
    else
        cr_assert_str_not_empty(view->problem);
}

static void end_job(struct as_log_history_job *self)
{
    struct test_job *job = (struct test_job *)self;
    cr_assert(pthread_equal(pthread_self(), loop));
    (*job->done)++;
}

static void drop_job(struct as_log_history_job *self)
{
    struct test_job *job = (struct test_job *)self;
    (*job->dropped)++;
}

static struct as_log_history *start(void)
{
    struct as_log_history *history = NULL;
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(as_log_history_new(base, path, &history, &error), 0, "%s", error.text);
    return history;
}

static void append_start(int seq)
{
    FILE *file = fopen(path, "ae");
    fprintf(file, "{\"kind\":\"start\",\"seq\":%d,\"time\":\"2026-11-20T10:00:00Z\"}\n", seq);
    fclose(file);
}

/* Until the view has the whole log: a job reads it for a short time only. */
static void run_until_current(struct as_log_history *history, struct test_job *job)
{
    do {
        const size_t done = *job->done;
        job->count = 0;
        cr_assert(as_log_history_submit(history, &job->job));
        while (*job->done == done)
            event_base_loop(base, EVLOOP_ONCE);
    } while (!job->is_current);
}

Test(log_history, a_job_sees_what_was_written_before_it)
{
    size_t done = 0, dropped = 0;
    struct as_log_history *history = start();
    for (int i = 1; i <= 5; i++) {
        struct test_job job = {.job = {.run = run_job, .done = end_job, .drop = drop_job},
                               .done = &done,
                               .dropped = &dropped};
        append_start(i);
        run_until_current(history, &job);
        cr_assert_eq(job.count, (size_t)i);
    }
    as_log_history_free(history);
    cr_assert_eq(dropped, 0);
}

Test(log_history, the_queue_has_a_limit_and_ends_with_the_history)
{
    atomic_bool gate = false;
    size_t done = 0, dropped = 0;
    struct test_job jobs[AS_LOG_HISTORY_JOBS_MAX + 1];
    struct as_log_history *history = start();
    append_start(1);
    for (size_t i = 0; i <= AS_LOG_HISTORY_JOBS_MAX; i++) {
        jobs[i] = (struct test_job){.job = {.run = run_job, .done = end_job, .drop = drop_job},
                                    .done = &done,
                                    .dropped = &dropped,
                                    .gate = &gate};
        cr_assert_eq(as_log_history_submit(history, &jobs[i].job), i < AS_LOG_HISTORY_JOBS_MAX);
    }
    atomic_store(&gate, true);
    while (done == 0)
        event_base_loop(base, EVLOOP_ONCE);
    cr_assert(as_log_history_submit(history, &jobs[AS_LOG_HISTORY_JOBS_MAX].job));
    while (done < 3)
        event_base_loop(base, EVLOOP_ONCE);
    as_log_history_free(history);
    cr_assert_eq(done + dropped, AS_LOG_HISTORY_JOBS_MAX + 1);
}

Test(log_history, narrowed_credentials_have_half_of_the_queue)
{
    atomic_bool gate = false;
    size_t done = 0, dropped = 0;
    struct test_job jobs[AS_LOG_HISTORY_JOBS_MAX];
    struct as_log_history *history = start();
    for (size_t i = 0; i < AS_LOG_HISTORY_JOBS_MAX; i++) {
        jobs[i] = (struct test_job){.job = {.is_narrowed = i < AS_LOG_HISTORY_JOBS_MAX / 2 + 1,
                                            .run = run_job,
                                            .done = end_job,
                                            .drop = drop_job},
                                    .done = &done,
                                    .dropped = &dropped,
                                    .gate = &gate};
        cr_assert_eq(as_log_history_submit(history, &jobs[i].job),
                     i != AS_LOG_HISTORY_JOBS_MAX / 2);
    }
    atomic_store(&gate, true);
    while (done == 0)
        event_base_loop(base, EVLOOP_ONCE);
    cr_assert(as_log_history_submit(history, &jobs[AS_LOG_HISTORY_JOBS_MAX / 2].job));
    as_log_history_free(history);
    cr_assert_eq(done + dropped, AS_LOG_HISTORY_JOBS_MAX);
}

Test(log_history, without_an_index_jobs_still_run)
{
    AS_CLEANUP(as_free_p) char *database = as_log_index_make_path(path);
    size_t done = 0, dropped = 0;
    struct test_job job = {.job = {.run = run_job, .done = end_job, .drop = drop_job},
                           .done = &done,
                           .dropped = &dropped};
    cr_assert_eq(mkdir(database, 0700), 0);
    struct as_log_history *history = start();
    run_until_current(history, &job);
    cr_assert_not(job.has_index);
    /* Once it can be opened, it is. */
    cr_assert_eq(rmdir(database), 0);
    append_start(1);
    run_until_current(history, &job);
    cr_assert(job.has_index && job.count == 1);
    as_log_history_free(history);
}
