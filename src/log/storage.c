/*
 * The queue before the journal. Completions are created by the worker and delivered by
 * as_storage_deliver in the loop's thread, in the order of submission. After a failure the waiting
 * batches are completed all at once under the mutex.
 */
#include <alertscaler/log/storage.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>

#include "storage_private.h"

#define TRANSACTION_BYTES (UINT64_C(16) << 20)
#define LAG_US            (50 * AS_US_PER_MS)

const struct as_storage_config as_storage_config_default = {
    .sync_interval_us = AS_US_PER_S,
    .sync_bytes = UINT64_C(8) << 20,
    .max_batches = 10000,
    .max_bytes = UINT64_C(256) << 20,
};

static void complete(struct as_storage *storage, const struct completion *completion)
{
    struct completions *list = &storage->completions;

    list->items = as_xgrow(list->items, list->count, &list->capacity, sizeof(*list->items));
    list->items[list->count++] = *completion;
}

static void complete_hashes(struct as_storage *storage, const struct as_storage_batch *batch)
{
    for (size_t i = 0; i < batch->change_count; i++) {
        if (!batch->changes[i].of_record)
            continue;
        struct completion done = {.kind = COMPLETION_HASHED, .ticket = batch->changes[i].number};
        memcpy(done.hash, as_storage_batch_get_hash(batch, i), sizeof(done.hash) - 1);
        complete(storage, &done);
    }
}

/* Answers and frees every batch of a list. Under the mutex. */
static void complete_batches(struct as_storage *storage, struct as_storage_batches *batches,
                             int status)
{
    struct as_storage_batch *batch;

    while ((batch = STAILQ_FIRST(batches))) {
        STAILQ_REMOVE_HEAD(batches, link);
        if (!status)
            complete_hashes(storage, batch);
        complete(storage, &(struct completion){
                              .kind = COMPLETION_BATCH, .ticket = batch->ticket, .status = status});
        as_storage_batch_free(batch);
    }
}

/* Final failure; `taken` are the batches of the failed commit. */
static void fail(struct as_storage *storage, struct as_storage_batches *taken, int status,
                 const struct as_error *error)
{
    pthread_mutex_lock(&storage->mutex);
    storage->failed = status;
    storage->failure = *error;
    complete(storage, &(struct completion){.kind = COMPLETION_FAILED, .status = status});
    complete_batches(storage, taken, status);
    complete_batches(storage, &storage->waiting, status);
    storage->counts.waiting_batches = 0;
    storage->counts.waiting_bytes = 0;
    pthread_cond_broadcast(&storage->done);
    pthread_mutex_unlock(&storage->mutex);
    storage_thread_notify(storage);
}

/* Takes the oldest batches, as many as fit one transaction. After the first, batches that may not
 * fit the present log file are left: their file was promised. With a thread, none during the loop's
 * turn. False: none. */
static bool take(struct as_storage *storage, struct as_storage_batches *taken_out)
{
    struct as_storage_batch *batch;
    uint64_t bytes = 0, lines = 0;

    pthread_mutex_lock(&storage->mutex);
    const bool is_over = !storage->has_thread || storage->is_direct || storage->wants_commit ||
                         storage->wants_flush || storage->wants_reopen;
    while (is_over && bytes < TRANSACTION_BYTES && (batch = STAILQ_FIRST(&storage->waiting))) {
        lines += as_storage_batch_bound_lines(batch);
        if (!STAILQ_EMPTY(taken_out) && lines > storage->place.room)
            break;
        STAILQ_REMOVE_HEAD(&storage->waiting, link);
        STAILQ_INSERT_TAIL(taken_out, batch, link);
        bytes += batch->bytes.size;
        storage->counts.waiting_batches--;
        storage->waiting_firm -= !batch->may_lag;
        storage->before_reopen -= storage->before_reopen > 0;
    }
    storage->counts.waiting_bytes -= bytes;
    storage->wants_commit = !STAILQ_EMPTY(&storage->waiting);
    pthread_mutex_unlock(&storage->mutex);
    return !STAILQ_EMPTY(taken_out);
}

static size_t count_batches(const struct as_storage_batches *batches)
{
    const struct as_storage_batch *batch;
    size_t count = 0;

    STAILQ_FOREACH (batch, batches, link)
        count++;
    return count;
}

static uint64_t bound_all_lines(const struct as_storage_batches *batches)
{
    const struct as_storage_batch *batch;
    uint64_t bytes = 0;

    STAILQ_FOREACH (batch, batches, link)
        bytes += as_storage_batch_bound_lines(batch);
    return bytes;
}

static as_mono_time find_deadline(const struct as_storage *storage)
{
    const struct journal *journal = &storage->journal;

    if (!journal->unsynced_bytes)
        return AS_MONO_NEVER;
    const int64_t due = as_time_add(journal->unsynced_since.us, storage->config.sync_interval_us);
    const int64_t lag = journal->lags ? as_time_add(journal->lags_since.us, LAG_US) : due;
    return (as_mono_time){lag < due ? lag : due};
}

/* Publishes the journal's state; `lines` bytes have reached the log's file. */
static void publish(struct as_storage *storage, uint64_t lines)
{
    struct as_audit *audit = storage->journal.audit;
    const as_mono_time deadline = find_deadline(storage);

    pthread_mutex_lock(&storage->mutex);
    storage->unplaced -= lines;
    storage->place = audit->get_place(audit);
    if (storage->is_direct && deadline.us < storage->deadline.us)
        pthread_cond_signal(&storage->work); /* the thread must sync */
    storage->deadline = deadline;
    pthread_mutex_unlock(&storage->mutex);
}

static int commit(struct as_storage *storage, struct as_storage_batches *taken,
                  struct as_error *error)
{
    const struct as_clock *clock = storage->config.clock;
    struct journal *journal = &storage->journal;
    const uint64_t lines = bound_all_lines(taken);
    as_mono_time start = clock->get_mono(clock);
    int status = journal_commit(journal, taken, error);

    if (status)
        return status;
    struct completion done = {.kind = COMPLETION_COMMIT,
                              .duration_us = clock->get_mono(clock).us - start.us,
                              .batches = count_batches(taken),
                              .records = journal->line_count,
                              .log_bytes = journal->line_bytes};
    pthread_mutex_lock(&storage->mutex);
    complete_batches(storage, taken, 0);
    complete(storage, &done);
    storage->counts.commits++;
    storage->counts.records += done.records;
    storage->counts.log_bytes += done.log_bytes;
    storage->counts.head = journal->head;
    pthread_mutex_unlock(&storage->mutex);
    storage_thread_notify(storage);
    status = journal_append(journal, error);
    if (!status)
        publish(storage, lines);
    return status;
}

static bool is_sync_due(const struct as_storage *storage)
{
    const struct as_clock *clock = storage->config.clock;

    return storage->journal.unsynced_bytes >= storage->config.sync_bytes ||
           clock->get_mono(clock).us >= find_deadline(storage).us;
}

/* Flush and reopen, when nothing waits. True if one was requested. */
static bool serve_requests(struct as_storage *storage, int *status_out, struct as_error *error)
{
    pthread_mutex_lock(&storage->mutex);
    bool idle = STAILQ_EMPTY(&storage->waiting);
    bool reopen = storage->wants_reopen && !storage->before_reopen;
    bool flush = reopen || (idle && storage->wants_flush);
    pthread_mutex_unlock(&storage->mutex);
    if (!flush)
        return false;

    *status_out = journal_flush(&storage->journal, error);
    if (!*status_out && reopen)
        *status_out = storage->journal.audit->reopen(storage->journal.audit, error);
    if (*status_out)
        return true;
    pthread_mutex_lock(&storage->mutex);
    if (reopen) {
        storage->wants_reopen = false;
        storage->place = storage->journal.audit->get_place(storage->journal.audit);
    }
    if (idle && STAILQ_EMPTY(&storage->waiting)) {
        storage->wants_flush = false;
        pthread_cond_broadcast(&storage->done);
    }
    pthread_mutex_unlock(&storage->mutex);
    return true;
}

/* After work, if nothing waits. */
static void tidy(struct as_storage *storage)
{
    struct as_store *store = storage->journal.store;

    pthread_mutex_lock(&storage->mutex);
    bool idle = STAILQ_EMPTY(&storage->waiting);
    pthread_mutex_unlock(&storage->mutex);
    if (idle && store->tidy)
        store->tidy(store);
}

static bool work(struct as_storage *storage)
{
    struct as_storage_batches taken = STAILQ_HEAD_INITIALIZER(taken);
    struct as_error error = AS_ERROR_INIT;
    bool worked = false;
    int status = 0;

    if (storage->failed)
        return false;
    if (take(storage, &taken)) {
        status = commit(storage, &taken, &error);
        worked = true;
    }
    if (!status && serve_requests(storage, &status, &error))
        worked = true;
    if (!status && is_sync_due(storage)) {
        status = journal_sync(&storage->journal, &error);
        worked = true;
    }
    if (status)
        fail(storage, &taken, status, &error);
    else if (worked)
        publish(storage, 0);
    if (!status && worked)
        tidy(storage);
    return worked;
}

bool as_storage_step(struct as_storage *storage)
{
    pthread_mutex_lock(&storage->working);
    const bool worked = work(storage);
    pthread_mutex_unlock(&storage->working);
    return worked;
}

static bool may_write_lagging(struct as_storage *storage)
{
    pthread_mutex_lock(&storage->mutex);
    const bool may = !storage->failed && !storage->waiting_firm && !storage->wants_flush &&
                     !storage->wants_reopen && !storage->journal.store->is_shared &&
                     storage->unplaced <= storage->place.room; /* a rotation syncs */
    pthread_mutex_unlock(&storage->mutex);
    return may;
}

bool storage_write_lagging(struct as_storage *storage)
{
    struct as_storage_batches taken = STAILQ_HEAD_INITIALIZER(taken);
    struct as_error error = AS_ERROR_INIT;

    if (pthread_mutex_trylock(&storage->working) != 0)
        return false;
    const bool may = may_write_lagging(storage);
    if (may) {
        int status = 0;
        storage->is_direct = true;
        while (!status && take(storage, &taken))
            status = commit(storage, &taken, &error);
        if (status)
            fail(storage, &taken, status, &error);
        storage->is_direct = false;
    }
    pthread_mutex_unlock(&storage->working);
    return may;
}

as_mono_time as_storage_get_next_deadline(struct as_storage *storage)
{
    pthread_mutex_lock(&storage->mutex);
    const as_mono_time deadline = storage->failed ? AS_MONO_NEVER : storage->deadline;
    pthread_mutex_unlock(&storage->mutex);
    return deadline;
}

uint64_t as_storage_find_log_file(struct as_storage *storage, size_t size)
{
    pthread_mutex_lock(&storage->mutex);
    const bool is_sure = !storage->failed && !storage->wants_reopen &&
                         storage->unplaced + size + AS_STORAGE_SEAL_BYTES <= storage->place.room;
    const uint64_t file = is_sure ? storage->place.file : 0;
    pthread_mutex_unlock(&storage->mutex);
    return file;
}

static void deliver(struct as_storage *storage, const struct completion *completion)
{
    const struct as_storage_callbacks *callbacks = &storage->config.callbacks;

    switch (completion->kind) {
    case COMPLETION_HASHED:
        callbacks->hashed(callbacks->context, completion->ticket, completion->hash);
        break;
    case COMPLETION_BATCH:
        callbacks->durable(callbacks->context, completion->ticket, completion->status,
                           completion->status ? storage->failure.text : "");
        break;
    case COMPLETION_FAILED:
        callbacks->failed(callbacks->context, completion->status, storage->failure.text);
        break;
    case COMPLETION_COMMIT:
        if (callbacks->committed)
            callbacks->committed(callbacks->context, completion->duration_us, completion->batches,
                                 completion->records, completion->log_bytes);
        break;
    }
}

void as_storage_deliver(struct as_storage *storage)
{
    pthread_mutex_lock(&storage->mutex);
    struct completions list = storage->completions;
    storage->completions = (struct completions){0};
    pthread_mutex_unlock(&storage->mutex);

    for (size_t i = 0; i < list.count; i++)
        deliver(storage, &list.items[i]);
    free(list.items);
}

void as_storage_submit(struct as_storage *storage, struct as_storage_batch *batch)
{
    pthread_mutex_lock(&storage->mutex);
    bool failed = storage->failed, was_empty = STAILQ_EMPTY(&storage->waiting);
    if (failed) {
        complete(storage, &(struct completion){.kind = COMPLETION_BATCH,
                                               .ticket = batch->ticket,
                                               .status = storage->failed});
    } else {
        STAILQ_INSERT_TAIL(&storage->waiting, batch, link);
        storage->counts.waiting_batches++;
        storage->counts.waiting_bytes += batch->bytes.size;
        storage->waiting_firm += !batch->may_lag;
        storage->unplaced += as_storage_batch_bound_lines(batch);
    }
    pthread_mutex_unlock(&storage->mutex);
    if (!failed && was_empty)
        storage_thread_kick(storage);
    if (failed) {
        as_storage_batch_free(batch);
        storage_thread_notify(storage);
    }
}

bool as_storage_has_room(struct as_storage *storage)
{
    pthread_mutex_lock(&storage->mutex);
    bool has_room = !storage->failed &&
                    storage->counts.waiting_batches < storage->config.max_batches &&
                    storage->counts.waiting_bytes < storage->config.max_bytes;
    pthread_mutex_unlock(&storage->mutex);
    return has_room;
}

struct as_storage_counts as_storage_get_counts(struct as_storage *storage)
{
    pthread_mutex_lock(&storage->mutex);
    struct as_storage_counts counts = storage->counts;
    pthread_mutex_unlock(&storage->mutex);
    return counts;
}

void as_storage_reopen_log(struct as_storage *storage)
{
    pthread_mutex_lock(&storage->mutex);
    storage->wants_reopen = true;
    storage->before_reopen = storage->counts.waiting_batches;
    pthread_cond_signal(&storage->work);
    pthread_mutex_unlock(&storage->mutex);
}

/* Until nothing waits and all is flushed, or the storage fails. */
static void flush(struct as_storage *storage)
{
    pthread_mutex_lock(&storage->mutex);
    storage->wants_flush = true;
    pthread_cond_signal(&storage->work);
    while (storage->wants_flush && !storage->failed) {
        if (storage->has_thread) {
            pthread_cond_wait(&storage->done, &storage->mutex);
        } else {
            pthread_mutex_unlock(&storage->mutex);
            as_storage_step(storage);
            pthread_mutex_lock(&storage->mutex);
        }
    }
    pthread_mutex_unlock(&storage->mutex);
}

int as_storage_drain(struct as_storage *storage, struct as_error *error)
{
    do {
        flush(storage);
        as_storage_deliver(storage);
    } while (as_storage_get_counts(storage).waiting_batches);
    pthread_mutex_lock(&storage->mutex);
    int status = storage->failed;
    if (status)
        as_error_set(error, "%s", storage->failure.text);
    pthread_mutex_unlock(&storage->mutex);
    return status;
}

int as_storage_new(const struct as_storage_config *config, struct as_storage **storage_out,
                   struct as_error *error)
{
    struct as_storage *storage = as_xcalloc(1, sizeof(*storage));
    pthread_condattr_t attributes;

    storage->config = *config;
    storage->event_fd = -1;
    STAILQ_INIT(&storage->waiting);
    pthread_mutex_init(&storage->working, NULL);
    pthread_mutex_init(&storage->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&storage->work, &attributes);
    pthread_cond_init(&storage->done, &attributes);
    pthread_condattr_destroy(&attributes);

    int status =
        journal_open(&storage->journal, config->store, config->audit, config->clock, error);
    if (status) {
        storage->failed = status;
        as_storage_free(storage);
        return status;
    }
    storage->counts.head = storage->journal.head;
    publish(storage, 0);
    *storage_out = storage;
    return 0;
}

struct as_storage *as_storage_free(struct as_storage *storage)
{
    if (!storage)
        return NULL;
    flush(storage);
    storage_thread_stop(storage);
    journal_close(&storage->journal);
    free(storage->completions.items);
    pthread_cond_destroy(&storage->work);
    pthread_cond_destroy(&storage->done);
    pthread_mutex_destroy(&storage->mutex);
    pthread_mutex_destroy(&storage->working);
    free(storage);
    return NULL;
}
