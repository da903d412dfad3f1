/*
 * Storage of batches: a queue before the journal, a thread that does the work, and completions.
 * Completions are created by the worker and delivered by as_storage_deliver in the loop's
 * thread, in the order of submission. After a failure the waiting batches are completed all at
 * once under the mutex.
 *
 * The thread ends on request, after its present step; as_storage_free flushes before. A commit
 * begins after the loop has handled all ready events of its turn, not at the first batch: under
 * load one sync serves many notifications, and a single notification does not wait.
 *
 * A batch is one buffer of bytes, which moves as it grows: so it holds offsets instead of
 * pointers.
 */
#include <alertscaler/log/storage.h>

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>

#include "journal.h"
#include "storage_private.h"

/* Content of a batch. */

#define BATCH_MAX (UINT64_C(256) << 20)

struct as_storage_batch *as_storage_batch_new(uint64_t call_id)
{
    struct as_storage_batch *batch = as_xcalloc(1, sizeof(*batch));

    batch->call_id = call_id;
    batch->bytes = AS_BUF_INIT_OPEN(BATCH_MAX);
    as_buf_append(&batch->bytes, "", 0); /* data is never NULL */
    return batch;
}

struct as_storage_batch *as_storage_batch_free(struct as_storage_batch *batch)
{
    if (batch) {
        as_buf_deinit(&batch->bytes);
        as_release(batch->changes);
        as_release(batch->records);
        as_release(batch);
    }
    return NULL;
}

void as_storage_batch_let_lag(struct as_storage_batch *batch)
{
    batch->may_lag = true;
}

static struct batch_change *batch_add_change(struct as_storage_batch *batch,
                                             enum as_store_kind kind, const void *key,
                                             size_t key_size)
{
    batch->changes = as_xgrow(batch->changes, batch->change_count, &batch->change_capacity,
                              sizeof(*batch->changes));
    struct batch_change *change = &batch->changes[batch->change_count++];
    *change = (struct batch_change){.kind = kind, .at = batch->bytes.size, .key_size = key_size};
    as_buf_append(&batch->bytes, key, key_size);
    return change;
}

void as_storage_batch_put(struct as_storage_batch *batch, enum as_store_kind kind, const void *key,
                          size_t key_size, const void *value, size_t value_size)
{
    struct batch_change *change = batch_add_change(batch, kind, key, key_size);

    change->value_size = value_size;
    as_buf_append(&batch->bytes, value, value_size);
}

void as_storage_batch_put_hashed(struct as_storage_batch *batch, enum as_store_kind kind,
                                 const void *key, size_t key_size, const void *value,
                                 size_t value_size, size_t at_hash, uint64_t number)
{
    assert(batch->record_count > 0 && at_hash + AS_AUDIT_HASH_SIZE - 1 <= value_size);
    as_storage_batch_put(batch, kind, key, key_size, value, value_size);
    struct batch_change *change = &batch->changes[batch->change_count - 1];
    change->of_record = batch->record_count;
    change->at_hash = at_hash;
    change->number = number;
}

void as_storage_batch_delete(struct as_storage_batch *batch, enum as_store_kind kind,
                             const void *key, size_t key_size)
{
    batch_add_change(batch, kind, key, key_size)->is_delete = true;
}

void as_storage_batch_append(struct as_storage_batch *batch, const struct as_audit_record *record)
{
    batch->records = as_xgrow(batch->records, batch->record_count, &batch->record_capacity,
                              sizeof(*batch->records));
    batch->records[batch->record_count++] = (struct batch_record){.at = batch->bytes.size,
                                                                  .size = record->size,
                                                                  .at_hash = record->at_hash,
                                                                  .at_prev = record->at_prev,
                                                                  .at_seq = record->at_seq};
    as_buf_append(&batch->bytes, record->json, record->size);
}

/* Thread and eventfd that wakes the loop. */

/* Wakes the loop for completions. */
static void thread_notify(struct as_storage *storage)
{
    if (storage->event_fd >= 0 && !storage->is_direct)
        (void)eventfd_write(storage->event_fd, 1); /* fails only if it is set already */
}

/* Time until a sync is due; INT64_MAX: none is. Under the mutex. */
static int64_t thread_get_rest(const struct as_storage *storage)
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

static void *thread_run(void *context)
{
    struct as_storage *storage = context;

    pthread_mutex_lock(&storage->mutex);
    while (!storage->wants_stop) {
        const int64_t rest = has_work(storage) ? 0 : thread_get_rest(storage);
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

/* The first batch waits: commit it when the loop's turn ends. */
static void thread_kick(struct as_storage *storage)
{
    if (storage->kick)
        event_active(storage->kick, EV_TIMEOUT, 0); /* after all that is ready now */
}

static void thread_on_kick(evutil_socket_t fd, short what, void *context)
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

static void thread_on_event(evutil_socket_t fd, short what, void *context)
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
    storage->event =
        event_new(base, storage->event_fd, EV_READ | EV_PERSIST, thread_on_event, storage);
    storage->kick = event_new(base, -1, 0, thread_on_kick, storage);
    if (!storage->event || !storage->kick || event_add(storage->event, NULL)) {
        as_error_set(error, "storage thread: cannot add its event to the loop");
        return -ENOMEM;
    }
    sigfillset(&all); /* only the loop handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&storage->thread, NULL, thread_run, storage);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code) {
        as_error_set_errno(error, code, "storage thread");
        return -code;
    }
    storage->has_thread = true;
    thread_kick(storage); /* for batches submitted before */
    return 0;
}

static void thread_stop(struct as_storage *storage)
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

/* Queue, work and completions. */

#define TRANSACTION_BYTES (UINT64_C(16) << 20)
#define LAG_US            (50 * AS_US_PER_MS)

const struct as_storage_config as_storage_config_default = {
    .sync_interval_us = AS_US_PER_S,
    .sync_bytes = UINT64_C(8) << 20,
    .max_batches = 10000,
    .max_bytes = UINT64_C(256) << 20,
};

static void storage_complete(struct as_storage *storage, const struct completion *completion)
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
        struct completion done = {.kind = COMPLETION_HASHED, .call_id = batch->changes[i].number};
        memcpy(done.hash, as_storage_batch_get_hash(batch, i), sizeof(done.hash) - 1);
        storage_complete(storage, &done);
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
        storage_complete(storage, &(struct completion){.kind = COMPLETION_BATCH,
                                                       .call_id = batch->call_id,
                                                       .status = status});
        as_storage_batch_free(batch);
    }
}

/* Final failure; `taken` are the batches of the failed commit. */
static void storage_fail(struct as_storage *storage, struct as_storage_batches *taken, int status,
                         const struct as_error *error)
{
    pthread_mutex_lock(&storage->mutex);
    storage->failed = status;
    storage->failure = *error;
    storage_complete(storage, &(struct completion){.kind = COMPLETION_FAILED, .status = status});
    complete_batches(storage, taken, status);
    complete_batches(storage, &storage->waiting, status);
    storage->counts.waiting_batches = 0;
    storage->counts.waiting_bytes = 0;
    pthread_cond_broadcast(&storage->done);
    pthread_mutex_unlock(&storage->mutex);
    thread_notify(storage);
}

/* Takes the oldest batches, as many as fit one transaction. After the first, batches that may not
 * fit the present log file are left: their file was promised. With a thread, none during the loop's
 * turn. False: none. */
static bool storage_dequeue(struct as_storage *storage, struct as_storage_batches *taken_out)
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
static void storage_publish(struct as_storage *storage, uint64_t lines)
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

static int storage_commit(struct as_storage *storage, struct as_storage_batches *taken,
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
    storage_complete(storage, &done);
    storage->counts.commits++;
    storage->counts.records += done.records;
    storage->counts.log_bytes += done.log_bytes;
    storage->counts.head = journal->head;
    pthread_mutex_unlock(&storage->mutex);
    thread_notify(storage);
    status = journal_append(journal, error);
    if (!status)
        storage_publish(storage, lines);
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
static void storage_tidy(struct as_storage *storage)
{
    struct as_store *store = storage->journal.store;

    pthread_mutex_lock(&storage->mutex);
    bool idle = STAILQ_EMPTY(&storage->waiting);
    pthread_mutex_unlock(&storage->mutex);
    if (idle && store->tidy)
        store->tidy(store);
}

static bool storage_work(struct as_storage *storage)
{
    struct as_storage_batches taken = STAILQ_HEAD_INITIALIZER(taken);
    struct as_error error = AS_ERROR_INIT;
    bool worked = false;
    int status = 0;

    if (storage->failed)
        return false;
    if (storage_dequeue(storage, &taken)) {
        status = storage_commit(storage, &taken, &error);
        worked = true;
    }
    if (!status && serve_requests(storage, &status, &error))
        worked = true;
    if (!status && is_sync_due(storage)) {
        status = journal_sync(&storage->journal, &error);
        worked = true;
    }
    if (status)
        storage_fail(storage, &taken, status, &error);
    else if (worked)
        storage_publish(storage, 0);
    if (!status && worked)
        storage_tidy(storage);
    return worked;
}

bool as_storage_step(struct as_storage *storage)
{
    pthread_mutex_lock(&storage->working);
    const bool worked = storage_work(storage);
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
        while (!status && storage_dequeue(storage, &taken))
            status = storage_commit(storage, &taken, &error);
        if (status)
            storage_fail(storage, &taken, status, &error);
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

static void storage_deliver_one(struct as_storage *storage, const struct completion *completion)
{
    const struct as_storage_callbacks *callbacks = &storage->config.callbacks;

    switch (completion->kind) {
    case COMPLETION_HASHED:
        callbacks->hashed(callbacks->context, completion->call_id, completion->hash);
        break;
    case COMPLETION_BATCH:
        callbacks->durable(callbacks->context, completion->call_id, completion->status,
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
        storage_deliver_one(storage, &list.items[i]);
    free(list.items);
}

void as_storage_submit(struct as_storage *storage, struct as_storage_batch *batch)
{
    pthread_mutex_lock(&storage->mutex);
    bool failed = storage->failed, was_empty = STAILQ_EMPTY(&storage->waiting);
    if (failed) {
        storage_complete(storage, &(struct completion){.kind = COMPLETION_BATCH,
                                                       .call_id = batch->call_id,
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
        thread_kick(storage);
    if (failed) {
        as_storage_batch_free(batch);
        thread_notify(storage);
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
static void storage_flush(struct as_storage *storage)
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
        storage_flush(storage);
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
    storage_publish(storage, 0);
    *storage_out = storage;
    return 0;
}

struct as_storage *as_storage_free(struct as_storage *storage)
{
    if (!storage)
        return NULL;
    storage_flush(storage);
    thread_stop(storage);
    journal_close(&storage->journal);
    free(storage->completions.items);
    pthread_cond_destroy(&storage->work);
    pthread_cond_destroy(&storage->done);
    pthread_mutex_destroy(&storage->mutex);
    pthread_mutex_destroy(&storage->working);
    free(storage);
    return NULL;
}
