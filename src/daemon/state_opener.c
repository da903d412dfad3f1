/*
 * See the header. If there can be no thread (or no eventfd), the loop does the work.
 */
#include "state_opener.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>

struct state_opener {
    struct state_opening opening;
    struct state_opened opened; /* owned by the thread until it ends */
    state_opened_fn *done;
    void *context;
    pthread_t thread;
    bool has_thread;
    int event_fd; /* written by the thread at its end; -1: not available */
    struct event *event;
};

static void open_all(struct state_opener *opener)
{
    const struct state_opening *opening = &opener->opening;
    const struct as_adapters *adapters = opening->adapters;
    const struct as_settings *settings = opening->settings;
    struct as_storage_config config = opening->storage;
    struct state_opened *opened = &opener->opened;
    opened->path = settings->state.path;
    opened->code = adapters->open_store(settings, opening->may_create, opening->patience,
                                        &config.store, &opened->error);
    if (opened->code != 0)
        return;
    opened->path = settings->action_log.path;
    opened->code = adapters->open_audit(&settings->action_log, &config.audit, &opened->error);
    if (opened->code != 0) {
        config.store->close(config.store);
        return;
    }
    opened->path = NULL;
    opened->store = config.store;
    opened->code = as_storage_new(&config, &opened->storage, &opened->error);
}

static void *run(void *context)
{
    struct state_opener *opener = context;
    open_all(opener);
    (void)eventfd_write(opener->event_fd, 1);
    return NULL;
}

static void on_event(evutil_socket_t fd, short what, void *context)
{
    struct state_opener *opener = context;
    if (opener->has_thread)
        pthread_join(opener->thread, NULL);
    event_free(opener->event);
    if (opener->event_fd >= 0)
        close(opener->event_fd);
    const struct state_opened opened = opener->opened;
    state_opened_fn *done = opener->done;
    void *done_context = opener->context;
    free(opener);
    done(done_context, &opened);
}

struct state_opener *state_opener_start(const struct state_opening *opening,
                                        struct event_base *base, state_opened_fn *done,
                                        void *context)
{
    sigset_t all, before;
    struct state_opener *opener = as_xcalloc(1, sizeof(*opener));
    opener->opening = *opening;
    opener->done = done;
    opener->context = context;
    opener->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    opener->event = event_new(base, opener->event_fd, EV_READ, on_event, opener);
    if (!opener->event || (opener->event_fd >= 0 && event_add(opener->event, NULL) != 0))
        abort();      /* only without memory */
    sigfillset(&all); /* only the loop handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    opener->has_thread =
        opener->event_fd >= 0 && pthread_create(&opener->thread, NULL, run, opener) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!opener->has_thread) {
        open_all(opener);
        event_active(opener->event, EV_READ, 0);
    }
    return opener;
}
