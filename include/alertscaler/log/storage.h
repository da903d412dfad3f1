/*
 * Durable state and action log together. The loop submits batches. All waiting batches are
 * committed in one transaction of the store, with the sealed lines of their records in the outbox.
 * Then the loop is told. Then the lines are appended to the log file, which is synced at intervals;
 * after the sync they leave the outbox. Records without a change of the state (repeats) are instead
 * appended to the log and synced there before the loop is told. So the log misses no acknowledged
 * record and has none twice.
 *
 * Everything fails together: after a failed commit, append or sync all waiting and later batches
 * fail. The owner then frees the storage, opens store and log again and reads its state from the
 * store: it may or may not contain the failed commit.
 *
 * The work is done either by an own thread (as_storage_start), or by the owner's calls of
 * as_storage_step and as_storage_deliver (the simulator, tests).
 */
#ifndef ALERTSCALER_LOG_STORAGE_H
#define ALERTSCALER_LOG_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/log/log_chain.h>
#include <alertscaler/port/audit.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/store.h>

#define AS_STORAGE_SEAL_BYTES                                                                      \
    256 /* bytes that `hash`, `prev`, `seq` and the newline add to a record, at most */

struct event_base;
struct as_storage;
struct as_storage_batch;

/* One atomic change: all of it becomes durable, or nothing. Content is copied. 0 is a valid
 * ticket. */
struct as_storage_batch *as_storage_batch_new(uint64_t call_id) AS_MUST_USE;
struct as_storage_batch *as_storage_batch_free(struct as_storage_batch *batch);
void as_storage_batch_put(struct as_storage_batch *batch, enum as_store_kind kind, const void *key,
                          size_t key_size, const void *value, size_t value_size);
/* The same, for a value that tells of the batch's last record: when that is sealed, its hash (64
 * digits) replaces the bytes at `at_hash`. The owner hears it under `number`. */
void as_storage_batch_put_hashed(struct as_storage_batch *batch, enum as_store_kind kind,
                                 const void *key, size_t key_size, const void *value,
                                 size_t value_size, size_t at_hash, uint64_t number);
void as_storage_batch_delete(struct as_storage_batch *batch, enum as_store_kind kind,
                             const void *key, size_t key_size);
void as_storage_batch_append(struct as_storage_batch *batch, const struct as_audit_record *record);
/* For batches whose loss in a crash costs only their records: answered after the append, synced at
 * most 50 ms later. If its commit also changes the state, or the store is shared, the batch is as
 * durable as others. */
void as_storage_batch_let_lag(struct as_storage_batch *batch);

/* Called in the loop's thread (from as_storage_deliver). They may submit, but must not free the
 * storage. */
struct as_storage_callbacks {
    /* Once per batch, in the order of submission. `status` 0: it is on the disk (a batch that may
     * lag: in the log); else a negative errno and a text. */
    void (*durable)(void *context, uint64_t call_id, int status, const char *error);
    /* For each put_hashed of a batch that is on the disk, in order, before its `durable`. NULL if
     * there are none. */
    void (*hashed)(void *context, uint64_t number, const char *hash);
    /* Once, before the batches that fail because of it (if any). */
    void (*failed)(void *context, int status, const char *error);
    /* After each commit, for metrics; may be NULL. */
    void (*committed)(void *context, int64_t duration_us, size_t batches, size_t records,
                      size_t log_bytes);
    void *context;
};

struct as_storage_config {
    struct as_store *store;       /* owned by the storage after as_storage_new, */
    struct as_audit *audit;       /* even if that fails */
    const struct as_clock *clock; /* borrowed; read in the storage thread too */
    struct as_storage_callbacks callbacks;
    int64_t sync_interval_us; /* maximum time between syncs of the log file, */
    uint64_t sync_bytes;      /* and maximum bytes */
    size_t max_batches;       /* as_storage_has_room is false above this */
    uint64_t max_bytes;
};

/* 1 s, 8 MiB, 10,000 batches, 256 MiB; the rest is NULL. */
extern const struct as_storage_config as_storage_config_default;

/* Appends missing lines of the outbox to the log file, syncs it and empties the outbox. It always
 * writes, to detect a full disk. 0 or a negative errno. */
int as_storage_new(const struct as_storage_config *config, struct as_storage **storage_out,
                   struct as_error *error) AS_MUST_USE;

/* Commits waiting batches, syncs the log, empties the outbox (unless failed), closes store and log.
 * No callbacks: for these call as_storage_drain first. */
struct as_storage *as_storage_free(struct as_storage *storage);

/* Starts the thread; completions come through an event on `base`. Batches that may lag are written
 * by the loop's thread at the end of its turn, unless the other thread is working or the log may
 * need a rotation. 0 or a negative errno. */
int as_storage_start(struct as_storage *storage, struct event_base *base,
                     struct as_error *error) AS_MUST_USE;

/* Takes over the batch. Never refuses: check as_storage_has_room before refusable work. */
void as_storage_submit(struct as_storage *storage, struct as_storage_batch *batch);

/* False while too much waits, and forever after a failure: answer 503. */
bool as_storage_has_room(struct as_storage *storage);

/* Number (1, 2, ...) of the action log's file that will contain records of `size` bytes in all, if
 * submitted now; 0: unknown, because the log may be rotated before or will be reopened. */
uint64_t as_storage_find_log_file(struct as_storage *storage, size_t size);

/* Waits until all submitted batches are committed and synced and the outbox is empty, or the
 * storage has failed; delivers the callbacks. 0 or the failure. */
int as_storage_drain(struct as_storage *storage, struct as_error *error) AS_MUST_USE;

/* SIGUSR1: sync, empty the outbox, reopen the log file by its name. */
void as_storage_reopen_log(struct as_storage *storage);

/* Without a thread: one transaction for waiting batches (up to 16 MiB), append, a sync if due. True
 * if it did anything. Then as_storage_deliver calls the callbacks. */
bool as_storage_step(struct as_storage *storage);
void as_storage_deliver(struct as_storage *storage);

/* When as_storage_step must sync; AS_MONO_NEVER: nothing is unsynced. */
as_mono_time as_storage_get_next_deadline(struct as_storage *storage);

struct as_storage_counts {
    size_t waiting_batches;
    uint64_t waiting_bytes;
    uint64_t commits, records, log_bytes; /* since it was opened */
    struct as_audit_head head;            /* of the last commit */
};
struct as_storage_counts as_storage_get_counts(struct as_storage *storage);

/* The action log's head as the store knows it, even if the file lacks these lines. */
int as_storage_read_head(struct as_store *store, struct as_audit_head *head_out,
                         struct as_error *error) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_storage *, as_storage_free)
AS_DEFINE_CLEANUP(struct as_storage_batch *, as_storage_batch_free)

#endif
