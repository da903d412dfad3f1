/*
 * The storage behind its header. The holder of `working` owns `journal`: the thread, the caller of
 * as_storage_step, or the loop when it writes lagging batches; `working` is taken before `mutex`.
 * Everything under `mutex` belongs to both sides; the rest is set once.
 */
#ifndef ALERTSCALER_SRC_LOG_STORAGE_PRIVATE_H
#define ALERTSCALER_SRC_LOG_STORAGE_PRIVATE_H

#include <pthread.h>

#include "journal.h"

struct completion {
    enum { COMPLETION_HASHED, COMPLETION_BATCH, COMPLETION_FAILED, COMPLETION_COMMIT } kind;
    uint64_t call_id; /* hashed: its number */
    char hash[AS_AUDIT_HASH_SIZE];
    int status;
    int64_t duration_us;
    size_t batches, records, log_bytes;
};

struct completions {
    struct completion *items;
    size_t count, capacity;
};

struct event;

/* The journal has two writers: the thread, and the loop for batches that may lag (repeats). With
 * the thread alone, repeats had 0.62 of their rate (one alert) and 0.87 (groups of 100), because
 * each batch waits for a change of threads: 7 rounds in turns on two cores, 2026-11-27. */
struct as_storage {
    struct as_storage_config config;
    pthread_mutex_t working;
    struct journal journal;
    bool is_direct; /* the loop does the work and needs no wake-up */

    pthread_mutex_t mutex;
    pthread_cond_t work; /* the worker has work */
    pthread_cond_t done; /* a flush has ended */
    struct as_storage_batches waiting;
    size_t waiting_firm; /* of these, batches that may not lag */
    uint64_t unplaced;   /* maximum bytes of records not yet in the log's file */
    struct as_audit_place place;
    as_mono_time deadline; /* of the next sync */
    struct completions completions;
    struct as_storage_counts counts;
    bool wants_commit; /* the loop's turn has ended: commit what waits in one transaction */
    bool wants_flush, wants_reopen, wants_stop;
    size_t before_reopen; /* number of waiting batches that expect the present log file */
    int failed;           /* 0, or the negative errno; set once, with `failure` */
    struct as_error failure;

    bool has_thread;
    pthread_t thread;
    int event_fd; /* -1 without a thread */
    struct event *event;
    struct event *kick; /* activated by the first waiting batch */
};

/* In the loop's thread: writes the waiting batches if all may lag and nobody else is working.
 * False: the thread must do it. */
bool storage_write_lagging(struct as_storage *storage);

#endif
