/*
 * The thread that does the storage's work, and the eventfd that wakes the loop. The thread ends on
 * request, after its present step; as_storage_free flushes before.
 *
 * A commit begins after the loop has handled all ready events of its turn, not at the first batch:
 * under load one sync serves many notifications, and a single one waits for nobody.
 */
#include <alertscaler/log/storage.h>

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "storage_private.h"

void storage_thread_notify(struct as_storage *storage)
{
    if (storage->event_fd >= 0 && !storage->is_direct)
        (void)eventfd_write(storage->event_fd, 1); /* fails only if it is set already */
}

/* Time until a sync is due; INT64_MAX: none is. Under the mutex. */
static int64_t get_rest(const struct as_storage *storage)
{
    const struct as_clock *clock = storage->config.clock;

    if (storage->failed || storage->deadline.us == AS_MONO_NEVER.us)
        return INT64_MAX;
    return storage->deadline.us - clock->get_mono(clock).us;
}

/* Under the mutex. */
static void wait_for_work(struct as_storage *storage, int64_t rest)
{
    struct timespec until;

    if (rest == INT64_MAX) {
        pthread_cond_wait(&storage->work, &storage->mutex);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t us = until.tv_nsec / 1000 + rest;
    until.tv_sec += us / AS_US_PER_S;
    until.tv_nsec = us % AS_US_PER_S * 1000;
    pthread_cond_timedwait(&storage->work, &storage->mutex, &until);
}

static bool has_work(const struct as_storage *storage)
{
    return !storage->failed &&
           (storage->wants_commit || storage->wants_flush || storage->wants_reopen);
}

static void *run(void *context)
{
    struct as_storage *storage = context;

    pthread_mutex_lock(&storage->mutex);
    while (!storage->wants_stop) {
        const int64_t rest = has_work(storage) ? 0 : get_rest(storage);
        if (rest > 0) {
            wait_for_work(storage, rest);
            continue;
        }
        pthread_mutex_unlock(&storage->mutex);
        as_storage_step(storage);
        pthread_mutex_lock(&storage->mutex);
    }
    pthread_mutex_unlock(&storage->mutex);
    return NULL;
}

void storage_thread_kick(struct as_storage *storage)
{
    if (storage->kick)
        event_active(storage->kick, EV_TIMEOUT, 0); /* after all that is ready now */
}

static void on_kick(evutil_socket_t fd, short what, void *context)
{
    struct as_storage *storage = context;

    if (storage_write_lagging(storage)) {
        as_storage_deliver(storage);
        return;
    }
    pthread_mutex_lock(&storage->mutex);
    storage->wants_commit = !STAILQ_EMPTY(&storage->waiting);
    pthread_cond_signal(&storage->work);
    pthread_mutex_unlock(&storage->mutex);
}

static void on_event(evutil_socket_t fd, short what, void *context)
{
    eventfd_t count;

    (void)eventfd_read(fd, &count);
    as_storage_deliver(context);
}

int as_storage_start(struct as_storage *storage, struct event_base *base, struct as_error *error)
{
    sigset_t all, before;

    storage->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (storage->event_fd < 0) {
        int code = errno;
        as_error_set_errno(error, code, "storage thread: eventfd");
        return -code;
    }
    storage->event = event_new(base, storage->event_fd, EV_READ | EV_PERSIST, on_event, storage);
    storage->kick = event_new(base, -1, 0, on_kick, storage);
    if (!storage->event || !storage->kick || event_add(storage->event, NULL)) {
        as_error_set(error, "storage thread: cannot add its event to the loop");
        return -ENOMEM;
    }
    sigfillset(&all); /* only the loop handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&storage->thread, NULL, run, storage);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code) {
        as_error_set_errno(error, code, "storage thread");
        return -code;
    }
    storage->has_thread = true;
    storage_thread_kick(storage); /* for batches submitted before */
    return 0;
}

void storage_thread_stop(struct as_storage *storage)
{
    if (storage->has_thread) {
        pthread_mutex_lock(&storage->mutex);
        storage->wants_stop = true;
        pthread_cond_signal(&storage->work);
        pthread_mutex_unlock(&storage->mutex);
        pthread_join(storage->thread, NULL);
        storage->has_thread = false;
    }
    if (storage->event)
        event_free(storage->event);
    if (storage->kick)
        event_free(storage->kick);
    if (storage->event_fd >= 0)
        close(storage->event_fd);
}
