/*
 * The storage's work without its queue: store, outbox and action log, one caller at a time.
 *
 * An outbox row holds the lines of one commit under the number of their first record. Life of a
 * row: committed -> appended to the log -> synced there -> deleted in a later commit. The rows in
 * the store are always `rows`, oldest first, of which the first `synced_rows` may be deleted.
 */
#ifndef ALERTSCALER_SRC_LOG_JOURNAL_H
#define ALERTSCALER_SRC_LOG_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/log/storage.h>

/*
 * The content of a batch: one block of bytes, with the offsets of changes and records.
 */

struct batch_change {
    enum as_store_kind kind;
    bool is_delete;
    size_t at, key_size, value_size; /* the value follows the key */
    size_t of_record;                /* 1 + index of the record whose hash it holds; 0: none */
    size_t at_hash;                  /* where, in the value */
    uint64_t number;                 /* for the owner */
};

struct batch_record {
    size_t at, size, at_hash, at_prev, at_seq; /* the last three are relative to `at` */
};

struct as_storage_batch {
    STAILQ_ENTRY(as_storage_batch) link;
    uint64_t call_id;
    bool may_lag;
    struct as_buf bytes; /* failed: too large, so the commit will fail too */
    struct batch_change *changes;
    size_t change_count, change_capacity;
    struct batch_record *records;
    size_t record_count, record_capacity;
};

STAILQ_HEAD(as_storage_batches, as_storage_batch);

/* Maximum bytes of its records in the log. */
static inline size_t as_storage_batch_bound_lines(const struct as_storage_batch *batch)
{
    return batch->record_count ? batch->bytes.size + batch->record_count * AS_STORAGE_SEAL_BYTES
                               : 0;
}

static inline struct as_store_change as_storage_batch_get_change(
    const struct as_storage_batch *batch, size_t i)
{
    const struct batch_change *change = &batch->changes[i];
    const char *key = batch->bytes.data + change->at;

    return (struct as_store_change){.kind = change->kind,
                                    .key = key,
                                    .key_size = change->key_size,
                                    .value = change->is_delete ? NULL : key + change->key_size,
                                    .value_size = change->value_size};
}

/* Where a change holds a record's hash. */
static inline char *as_storage_batch_get_hash(const struct as_storage_batch *batch, size_t i)
{
    const struct batch_change *change = &batch->changes[i];

    return batch->bytes.data + change->at + change->key_size + change->at_hash;
}

static inline struct as_audit_record as_storage_batch_get_record(
    const struct as_storage_batch *batch, size_t i)
{
    const struct batch_record *record = &batch->records[i];

    return (struct as_audit_record){.json = batch->bytes.data + record->at,
                                    .size = record->size,
                                    .at_hash = record->at_hash,
                                    .at_prev = record->at_prev,
                                    .at_seq = record->at_seq};
}

/*
 * The journal.
 */

struct journal {
    struct as_store *store;
    struct as_audit *audit;
    const struct as_clock *clock;
    struct as_chain *chain;
    struct as_audit_head head;       /* of the last commit */
    struct as_buf lines;             /* of the last commit, not yet appended */
    size_t line_count, line_bytes;   /* of the last commit */
    uint64_t stored_seq;             /* of the store's head */
    struct as_store_change *changes; /* scratch */
    size_t change_count, change_capacity;
    uint64_t *rows;
    size_t row_count, row_capacity, synced_rows;
    uint64_t unsynced_bytes;
    as_mono_time unsynced_since;
    bool lags; /* the log has unsynced lines that are not in the outbox */
    as_mono_time lags_since;
};

/* Takes over store and audit; reads the head, appends missing lines to the log, empties the
 * outbox. */
int journal_open(struct journal *journal, struct as_store *store, struct as_audit *audit,
                 const struct as_clock *clock, struct as_error *error) AS_MUST_USE;
void journal_close(struct journal *journal);

/* One transaction: the batches' changes and records, the head, deletion of finished rows. Without
 * changes it only appends to the log, and syncs unless all batches may lag. */
int journal_commit(struct journal *journal, const struct as_storage_batches *batches,
                   struct as_error *error) AS_MUST_USE;

/* Appends the last commit's lines to the log. */
int journal_append(struct journal *journal, struct as_error *error) AS_MUST_USE;

int journal_sync(struct journal *journal, struct as_error *error) AS_MUST_USE;

/* Syncs, and deletes all rows in a separate commit. */
int journal_flush(struct journal *journal, struct as_error *error) AS_MUST_USE;

#endif
