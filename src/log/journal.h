/*
 * The storage's work without its queue: store, outbox and action log, one caller at a time.
 *
 * An outbox row holds the lines of one commit under the number of their first record. Life of a
 * row: committed -> appended to the log -> synced there -> deleted in a later commit. The rows in
 * the store are always `rows`, oldest first, of which the first `synced_rows` may be deleted.
 */
#ifndef ALERTSCALER_SRC_LOG_JOURNAL_H
#define ALERTSCALER_SRC_LOG_JOURNAL_H

#include <alertscaler/base/buf.h>

#include "storage_batch.h"

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
