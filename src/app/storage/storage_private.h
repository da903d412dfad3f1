/*
 * The storage behind its header. `journal` belongs to whoever holds `working`: the thread, the
 * caller of as_storage_step, or the loop where it writes what may lag; `working` is taken before
 * `mutex`. Everything under `mutex` belongs to both sides; the rest is set once.
 */
#ifndef ALERTSCALER_SRC_APP_STORAGE_STORAGE_PRIVATE_H
#define ALERTSCALER_SRC_APP_STORAGE_STORAGE_PRIVATE_H

#include <pthread.h>

#include "journal.h"

struct completion {
    enum { COMPLETION_BATCH, COMPLETION_FAILED, COMPLETION_COMMIT } kind;
    uint64_t ticket;
    int status;
    int64_t duration_us;
    size_t batches, records, log_bytes;
};

struct completions {
    struct completion *items;
    size_t count, capacity;
};

struct event;

struct as_storage {
    struct as_storage_config config;
    pthread_mutex_t working;
    struct journal journal;
    bool is_direct; /* the loop works: it needs no waking */

    pthread_mutex_t mutex;
    pthread_cond_t work; /* something for the worker to do */
    pthread_cond_t done; /* a flush has ended */
    struct as_storage_batches waiting;
    size_t waiting_firm; /* of these, what may not lag */
    uint64_t unplaced;   /* bytes of records that are not in the log's file yet, at most */
    struct as_audit_place place;
    as_mono_time deadline; /* of the next sync */
    struct completions completions;
    struct as_storage_counts counts;
    bool wants_commit; /* the loop's turn is over: what waits goes into one transaction */
    bool wants_flush, wants_reopen, wants_stop;
    size_t before_reopen; /* of what waits, so many were told of the file that is open now */
    int failed;           /* 0, or the negative errno; set once, and failure with it */
    struct as_error failure;

    bool has_thread;
    pthread_t thread;
    int event_fd; /* -1 without a thread */
    struct event *event;
    struct event *kick; /* activated by the first batch that waits */
};

/* In the loop's thread: writes what waits, where all of it may lag and nobody else is at work.
 * False: it is the thread's. */
bool storage_write_lagging(struct as_storage *storage);

/* A first batch waits: has it committed when the loop's turn is over. */
void storage_thread_kick(struct as_storage *storage);
/* The loop is told that there are completions. */
void storage_thread_notify(struct as_storage *storage);
void storage_thread_stop(struct as_storage *storage);

#endif
