/*
 * Durable state and action log together. The loop submits batches; all that wait are committed in
 * one transaction of the store, with the sealed lines of their records in the outbox; then the loop
 * is told, then the lines are appended to the log file, which is synced now and then, and only
 * after that do they leave the outbox. Records that come without any change of the state (repeats)
 * are appended to the log and synced there instead, before the loop is told. So no acknowledged
 * record is ever missing from the log, and none is in it twice.
 *
 * Everything fails together: after a failed commit, append or sync all waiting and later batches
 * are answered with the failure. The owner then frees the storage, opens store and log anew and
 * reads its state again from the store: a failed commit may or may not be in it.
 *
 * Either a thread of its own does the work (as_storage_start), or the owner calls as_storage_step
 * and as_storage_deliver itself (the simulator, tests).
 */
#ifndef ALERTSCALER_APP_STORAGE_H
#define ALERTSCALER_APP_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/audit/chain.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/port/audit.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/store.h>

#define AS_STORAGE_SEAL_BYTES                                                                      \
    256 /* more than `hash`, `prev`, `seq` and a line's end add to a record */

struct event_base;
struct as_storage;
struct as_storage_batch;

/* One unit of change: all of it becomes durable, or nothing. What is put in is copied. A ticket of
 * 0 is as good as any. */
struct as_storage_batch *as_storage_batch_new(uint64_t ticket) AS_MUST_USE;
struct as_storage_batch *as_storage_batch_free(struct as_storage_batch *batch);
void as_storage_batch_put(struct as_storage_batch *batch, enum as_store_kind kind, const void *key,
                          size_t key_size, const void *value, size_t value_size);
void as_storage_batch_delete(struct as_storage_batch *batch, enum as_store_kind kind,
                             const void *key, size_t key_size);
void as_storage_batch_append(struct as_storage_batch *batch, const struct as_audit_record *record);
/* Nothing is lost with its records but themselves: they are written when the batch is answered, and
 * on the disk at most 50 ms later. A change in the same commit, or a shared store, makes that as
 * with any other batch. */
void as_storage_batch_let_lag(struct as_storage_batch *batch);
bool as_storage_batch_is_empty(const struct as_storage_batch *batch);

/* All are called in the loop's thread (from as_storage_deliver). They may submit, but must not free
 * the storage. */
struct as_storage_callbacks {
    /* Once for every batch, in the order of submission. `status` 0: it is on the disk (one that
     * may lag: in the log); else a negative errno and a text. */
    void (*durable)(void *context, uint64_t ticket, int status, const char *error);
    /* Once, before the batches that fail for it (there may be none). */
    void (*failed)(void *context, int status, const char *error);
    /* After each commit, for metrics; may be NULL. */
    void (*committed)(void *context, int64_t duration_us, size_t batches, size_t records,
                      size_t log_bytes);
    void *context;
};

struct as_storage_config {
    struct as_store *store;       /* owned by the storage once as_storage_new is called, */
    struct as_audit *audit;       /* whatever it returns */
    const struct as_clock *clock; /* borrowed; read in the storage thread too */
    struct as_storage_callbacks callbacks;
    int64_t sync_interval_us; /* the log file is synced at least so often, */
    uint64_t sync_bytes;      /* and after so many bytes */
    size_t max_batches;       /* what may wait before as_storage_has_room says no */
    uint64_t max_bytes;
};

/* 1 s, 8 MiB, 10,000 batches, 256 MiB; the rest is NULL. */
extern const struct as_storage_config as_storage_config_default;

/* Appends to the log file what the outbox has beyond it, syncs it and empties the outbox: it writes
 * in any case, so that a full disk is seen here. 0 or a negative errno. */
int as_storage_new(const struct as_storage_config *config, struct as_storage **storage_out,
                   struct as_error *error) AS_MUST_USE;

/* Commits what waits, syncs the log, empties the outbox (unless failed), closes store and log. No
 * callbacks: call as_storage_drain before it where they are wanted. */
struct as_storage *as_storage_free(struct as_storage *storage);

/* Starts the thread; completions come through an event on `base`. What may lag is written by the
 * loop's own thread at the end of its turn, unless the other one is at work or the log may have to
 * be rotated for it. 0 or a negative errno.
 */
int as_storage_start(struct as_storage *storage, struct event_base *base,
                     struct as_error *error) AS_MUST_USE;

/* Takes the batch over. Never refuses: ask as_storage_has_room before work that can be refused. */
void as_storage_submit(struct as_storage *storage, struct as_storage_batch *batch);

/* False while too much waits, and for good after a failure: answer 503. */
bool as_storage_has_room(struct as_storage *storage);

/* Number (1, 2, ...) of the action log's file in which records of `size` bytes in all, submitted
 * now, will surely be; 0 where that is not sure: it may be rotated before, or is to be opened
 * again. */
uint64_t as_storage_find_log_file(struct as_storage *storage, size_t size);

/* Waits until all that was submitted is committed and synced and the outbox is empty, or the
 * storage has failed; delivers the callbacks. 0 or the failure. */
int as_storage_drain(struct as_storage *storage, struct as_error *error) AS_MUST_USE;

/* SIGUSR1: sync, empty the outbox, open the log file again under its name. */
void as_storage_reopen_log(struct as_storage *storage);

/* Without a thread: one transaction for what waits (up to 16 MiB), append, a sync if one is due.
 * True if it did anything. Then as_storage_deliver calls the callbacks. */
bool as_storage_step(struct as_storage *storage);
void as_storage_deliver(struct as_storage *storage);

/* When as_storage_step has a sync to do; AS_MONO_NEVER where nothing is unsynced. */
as_mono_time as_storage_get_next_deadline(struct as_storage *storage);

struct as_storage_counts {
    size_t waiting_batches;
    uint64_t waiting_bytes;
    uint64_t commits, records, log_bytes; /* since it was opened */
    struct as_audit_head head;            /* of the last commit */
};
struct as_storage_counts as_storage_get_counts(struct as_storage *storage);

/* Where the action log stands by what the store says, whether or not the file has it already. */
int as_storage_read_head(struct as_store *store, struct as_audit_head *head_out,
                         struct as_error *error) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_storage *, as_storage_free)
AS_DEFINE_CLEANUP(struct as_storage_batch *, as_storage_batch_free)

#endif
