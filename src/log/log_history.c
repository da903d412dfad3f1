/*
 * The loop owns everything but what is under the lock: jobs go to the thread through `queued`, and
 * come back through `ended` and the eventfd. Only the thread uses the index.
 *
 * Before a job runs, the thread reads what the log has got since, but not longer than CATCH_UP_US:
 * while a large log is indexed for the first time, a job sees a part of it.
 */
#include <alertscaler/log/log_history.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/port/clock.h>

#define FREE_MIN    (UINT64_C(64) << 20) /* bytes of the disk */
#define CATCH_UP_US (100 * AS_US_PER_MS)
#define POLL_S      10 /* between two looks at an idle log */
#define RETRY_S     60 /* after a problem */

STAILQ_HEAD(history_jobs, as_log_history_job);

struct as_log_history {
    struct as_log_index_config config;
    char *log_path;
    size_t job_count, narrowed_count; /* the loop's: queued, running or ended */
    struct event *event;
    int fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct history_jobs queued, ended;
    atomic_bool stop;

    /* The thread's: */
    struct as_log_index *index;
    struct as_error problem;
    struct as_log_index_state state;
};

static void history_set_problem(struct as_log_history *history, int status,
                                const struct as_error *error)
{
    if (status != 0 && status != -ECANCELED && !as_str_equal(error->text, history->problem.text))
        as_log(AS_LOG_WARN, "the history of the action log is not complete",
               AS_F("error", error->text));
    if (status == 0)
        history->problem = AS_ERROR_INIT;
    else if (status != -ECANCELED)
        history->problem = *error;
}

static void history_step(struct as_log_history *history, bool finds_files)
{
    struct as_error error = AS_ERROR_INIT;
    int status = 0;
    if (!history->index) {
        finds_files = true;
        status = as_log_index_open(&history->config, &history->index, &error);
    }
    if (status == 0)
        status = as_log_index_step(history->index, finds_files, &history->state, &error);
    if (status != 0)
        history->state.is_current = true; /* for now: it is tried again later */
    if (history->state.is_current)
        history_set_problem(history, status, &error);
}

static void history_catch_up(struct as_log_history *history)
{
    const int64_t until = as_system_clock.get_mono(&as_system_clock).us + CATCH_UP_US;
    history_step(history, true);
    while (!history->state.is_current && !atomic_load(&history->stop) &&
           as_system_clock.get_mono(&as_system_clock).us < until)
        history_step(history, false);
}

static void history_run_job(struct as_log_history *history, struct as_log_history_job *job)
{
    history_catch_up(history);
    const struct as_log_history_view view = {
        .index = history->index, .problem = history->problem.text, .state = history->state};
    job->run(job, &view);
}

/* Under the lock. */
static void history_wait(struct as_log_history *history)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += *history->problem.text ? RETRY_S : POLL_S;
    (void)pthread_cond_timedwait(&history->wake, &history->lock, &until);
}

static void *history_run(void *context)
{
    struct as_log_history *history = context;
    pthread_mutex_lock(&history->lock);
    while (!atomic_load(&history->stop)) {
        struct as_log_history_job *job = STAILQ_FIRST(&history->queued);
        const bool was_current = history->state.is_current;
        if (job) {
            STAILQ_REMOVE_HEAD(&history->queued, link);
            pthread_mutex_unlock(&history->lock);
            history_run_job(history, job);
            pthread_mutex_lock(&history->lock);
            STAILQ_INSERT_TAIL(&history->ended, job, link);
            (void)eventfd_write(history->fd, 1); /* fails only if it is set already */
            continue;
        }
        if (was_current)
            history_wait(history);
        if (was_current && (!STAILQ_EMPTY(&history->queued) || atomic_load(&history->stop)))
            continue;
        pthread_mutex_unlock(&history->lock);
        history_step(history, was_current);
        pthread_mutex_lock(&history->lock);
    }
    pthread_mutex_unlock(&history->lock);
    history->index = as_log_index_close(history->index);
    return NULL;
}

/*
 * The loop's side.
 */

static void history_on_ended(evutil_socket_t fd, short what, void *context)
{
    struct as_log_history *history = context;
    struct history_jobs ended = STAILQ_HEAD_INITIALIZER(ended);
    struct as_log_history_job *job;
    eventfd_t count;
    (void)eventfd_read(fd, &count);
    pthread_mutex_lock(&history->lock);
    STAILQ_CONCAT(&ended, &history->ended);
    pthread_mutex_unlock(&history->lock);
    while ((job = STAILQ_FIRST(&ended))) {
        STAILQ_REMOVE_HEAD(&ended, link);
        history->job_count--;
        history->narrowed_count -= job->is_narrowed;
        job->done(job);
    }
}

const char *as_log_history_get_path(const struct as_log_history *history)
{
    return history->log_path;
}

bool as_log_history_submit(struct as_log_history *history, struct as_log_history_job *job)
{
    if (history->job_count == AS_LOG_HISTORY_JOBS_MAX ||
        (job->is_narrowed && history->narrowed_count == AS_LOG_HISTORY_JOBS_MAX / 2))
        return false;
    history->job_count++;
    history->narrowed_count += job->is_narrowed;
    pthread_mutex_lock(&history->lock);
    STAILQ_INSERT_TAIL(&history->queued, job, link);
    pthread_cond_signal(&history->wake);
    pthread_mutex_unlock(&history->lock);
    return true;
}

static int history_start(struct as_log_history *history, struct event_base *base)
{
    pthread_condattr_t attributes;
    sigset_t all, before;
    pthread_mutex_init(&history->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&history->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    history->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (history->fd < 0)
        return -errno;
    history->event = event_new(base, history->fd, EV_READ | EV_PERSIST, history_on_ended, history);
    if (!history->event || event_add(history->event, NULL) != 0)
        return -ENOMEM;
    sigfillset(&all); /* only the loop handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = pthread_create(&history->thread, NULL, history_run, history);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -code;
}

static void history_release(struct as_log_history *history)
{
    if (history->event)
        event_free(history->event);
    if (history->fd >= 0)
        close(history->fd);
    pthread_cond_destroy(&history->wake);
    pthread_mutex_destroy(&history->lock);
    free(history->log_path);
    free(history);
}

int as_log_history_new(struct event_base *base, const char *log_path,
                       struct as_log_history **history_out, struct as_error *error)
{
    struct as_log_history *history = as_xcalloc(1, sizeof(*history));
    history->log_path = as_xstrdup(log_path);
    history->config = (struct as_log_index_config){
        .log_path = history->log_path, .free_min = FREE_MIN, .stop = &history->stop};
    STAILQ_INIT(&history->queued);
    STAILQ_INIT(&history->ended);
    const int status = history_start(history, base);
    if (status != 0) {
        as_error_set_errno(error, status, "thread of the action log's history");
        history_release(history);
        return status;
    }
    *history_out = history;
    return 0;
}

struct as_log_history *as_log_history_free(struct as_log_history *history)
{
    struct as_log_history_job *job;
    if (!history)
        return NULL;
    pthread_mutex_lock(&history->lock);
    atomic_store(&history->stop, true);
    pthread_cond_signal(&history->wake);
    pthread_mutex_unlock(&history->lock);
    pthread_join(history->thread, NULL);
    STAILQ_CONCAT(&history->queued, &history->ended);
    while ((job = STAILQ_FIRST(&history->queued))) {
        STAILQ_REMOVE_HEAD(&history->queued, link);
        job->drop(job);
    }
    history_release(history);
    return NULL;
}
