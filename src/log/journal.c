/*
 * See journal.h. A failed commit leaves `head` and `rows` unchanged, so no number is ever used for
 * two records. What the failed transaction left in the store is determined when it is opened again,
 * not here.
 */
#include "journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/number.h>

#define LINES_MAX  (UINT64_C(900) << 20) /* SQLite's limit for a value is 10^9 bytes */
#define LINES_KEEP (UINT64_C(256) << 10) /* scratch memory kept between commits */
#define HEAD_KEY   "action_log_head"
#define OPENED_KEY "opened" /* the time, RFC 3339; for people who read the file */
#define HEAD_SIZE  (20 + 1 + AS_AUDIT_HASH_SIZE) /* "1234 <hash>" */

static void encode_seq(uint64_t seq, unsigned char bytes_out[8])
{
    for (int i = 0; i < 8; i++)
        bytes_out[i] = (unsigned char)(seq >> (56 - 8 * i));
}

static uint64_t decode_seq(const unsigned char bytes[8])
{
    uint64_t seq = 0;

    for (int i = 0; i < 8; i++)
        seq = seq << 8 | bytes[i];
    return seq;
}

static void add_change(struct journal *journal, const struct as_store_change *change)
{
    journal->changes = as_xgrow(journal->changes, journal->change_count, &journal->change_capacity,
                                sizeof(*journal->changes));
    journal->changes[journal->change_count++] = *change;
}

static void add_head(struct journal *journal, const struct as_audit_head *head,
                     char text_out[HEAD_SIZE])
{
    int size = snprintf(text_out, HEAD_SIZE, "%" PRIu64 " %s", head->seq, head->hash);

    add_change(journal, &(struct as_store_change){.kind = AS_STORE_META,
                                                  .key = HEAD_KEY,
                                                  .key_size = strlen(HEAD_KEY),
                                                  .value = text_out,
                                                  .value_size = (size_t)size});
}

static int commit_changes(struct journal *journal, size_t done_rows, struct as_error *error)
{
    int status = 0;

    if (journal->change_count)
        status =
            journal->store->commit(journal->store, journal->changes, journal->change_count, error);
    if (!status && done_rows) {
        journal->row_count -= done_rows;
        journal->synced_rows -= done_rows;
        memmove(journal->rows, journal->rows + done_rows,
                journal->row_count * sizeof(*journal->rows));
    }
    return status;
}

/* Begins a transaction with the deletion of finished rows; `keys` holds their keys until the
 * commit. */
static unsigned char *begin_with_done_rows(struct journal *journal)
{
    unsigned char *keys = as_xmalloc(journal->synced_rows * 8 + 1);

    journal->change_count = 0;
    for (size_t i = 0; i < journal->synced_rows; i++) {
        encode_seq(journal->rows[i], keys + 8 * i);
        add_change(journal, &(struct as_store_change){
                                .kind = AS_STORE_OUTBOX, .key = keys + 8 * i, .key_size = 8});
    }
    return keys;
}

/* Writes the hash of the record that was sealed last into the changes that tell of it. */
static void report_hash(const struct as_storage_batch *batch, size_t record, const char *hash)
{
    for (size_t i = 0; i < batch->change_count; i++) {
        if (batch->changes[i].of_record == record + 1)
            memcpy(as_storage_batch_get_hash(batch, i), hash, AS_AUDIT_HASH_SIZE - 1);
    }
}

static int seal(struct journal *journal, const struct as_storage_batches *batches,
                struct as_audit_head *head, struct as_error *error)
{
    const struct as_storage_batch *batch;
    size_t size = 0;

    as_buf_clear(&journal->lines);
    journal->line_count = 0;
    STAILQ_FOREACH (batch, batches, link)
        size += as_storage_batch_bound_lines(batch);
    (void)as_buf_reserve(&journal->lines, size); /* at once, instead of in steps */
    STAILQ_FOREACH (batch, batches, link) {
        if (batch->bytes.failed) {
            as_error_set(error, "a change of more than 256 MiB");
            return -EMSGSIZE;
        }
        for (size_t i = 0; i < batch->change_count; i++) {
            struct as_store_change change = as_storage_batch_get_change(batch, i);
            add_change(journal, &change);
        }
        for (size_t i = 0; i < batch->record_count; i++) {
            struct as_audit_record record = as_storage_batch_get_record(batch, i);
            as_chain_seal(journal->chain, &record, head, &journal->lines);
            report_hash(batch, i, head->hash);
            journal->line_count++;
        }
    }
    if (journal->lines.failed)
        as_error_set(error, "records of more than 900 MiB in one commit");
    return as_buf_check(&journal->lines);
}

static void clear_lines(struct journal *journal)
{
    if (journal->lines.capacity > LINES_KEEP)
        as_buf_deinit(&journal->lines);
    as_buf_clear(&journal->lines);
}

static void note_unsynced(struct journal *journal, size_t size)
{
    if (!journal->unsynced_bytes)
        journal->unsynced_since = journal->clock->get_mono(journal->clock);
    journal->unsynced_bytes += size;
}

static bool have_changes(const struct as_storage_batches *batches)
{
    const struct as_storage_batch *batch;

    STAILQ_FOREACH (batch, batches, link) {
        if (batch->change_count > 0)
            return true;
    }
    return false;
}

static bool may_all_lag(const struct as_storage_batches *batches)
{
    const struct as_storage_batch *batch;

    STAILQ_FOREACH (batch, batches, link) {
        if (!batch->may_lag)
            return false;
    }
    return true;
}

/* Records alone need no transaction: synced in the log they are durable. The store's head stays
 * behind; after a restart the log's head counts. Not so if another replica, with its own log file,
 * may continue from the store. */
static int write_through(struct journal *journal, const struct as_audit_head *head, bool may_lag,
                         struct as_error *error)
{
    int status = journal->audit->append(journal->audit, journal->lines.data, journal->lines.size,
                                        head, error);

    if (!status)
        note_unsynced(journal, journal->lines.size);
    clear_lines(journal);
    if (!status && may_lag && !journal->lags) {
        journal->lags = true;
        journal->lags_since = journal->clock->get_mono(journal->clock);
    }
    if (!status && !may_lag)
        status = journal_sync(journal, error);
    if (!status)
        journal->head = *head;
    return status;
}

int journal_commit(struct journal *journal, const struct as_storage_batches *batches,
                   struct as_error *error)
{
    /* these lines precede those in the store */
    int status = journal->lags && have_changes(batches) ? journal_sync(journal, error) : 0;
    if (status)
        return status;
    size_t done_rows = journal->synced_rows;
    AS_CLEANUP(as_free_p) unsigned char *keys = begin_with_done_rows(journal);
    struct as_audit_head head = journal->head;
    char text[HEAD_SIZE];
    unsigned char row[8];

    status = seal(journal, batches, &head, error);
    journal->line_bytes = journal->lines.size;
    if (!status && journal->line_count && journal->change_count == done_rows &&
        !journal->store->is_shared)
        return write_through(journal, &head, may_all_lag(batches), error);
    if (!status && journal->line_count) {
        encode_seq(journal->head.seq + 1, row);
        add_change(journal, &(struct as_store_change){.kind = AS_STORE_OUTBOX,
                                                      .key = row,
                                                      .key_size = sizeof(row),
                                                      .value = journal->lines.data,
                                                      .value_size = journal->lines.size});
        add_head(journal, &head, text);
    }
    if (!status)
        status = commit_changes(journal, done_rows, error);
    if (status) {
        as_buf_clear(&journal->lines);
        journal->line_count = 0;
        return status;
    }
    if (journal->line_count) {
        journal->rows = as_xgrow(journal->rows, journal->row_count, &journal->row_capacity,
                                 sizeof(*journal->rows));
        journal->rows[journal->row_count++] = journal->head.seq + 1;
        journal->head = head;
        journal->stored_seq = head.seq;
    }
    return 0;
}

int journal_append(struct journal *journal, struct as_error *error)
{
    size_t size = journal->lines.size;
    int status;

    if (!size)
        return 0;
    status =
        journal->audit->append(journal->audit, journal->lines.data, size, &journal->head, error);
    if (status)
        return status;
    note_unsynced(journal, size);
    clear_lines(journal);
    return 0;
}

int journal_sync(struct journal *journal, struct as_error *error)
{
    int status = journal->audit->sync(journal->audit, error);

    if (!status) {
        journal->unsynced_bytes = 0;
        journal->lags = false;
        journal->synced_rows = journal->row_count;
    }
    return status;
}

int journal_flush(struct journal *journal, struct as_error *error)
{
    int status = journal->unsynced_bytes ? journal_sync(journal, error) : 0;

    if (status)
        return status;
    AS_CLEANUP(as_free_p) unsigned char *keys = begin_with_done_rows(journal);
    char text[HEAD_SIZE];
    if (journal->head.seq != journal->stored_seq)
        add_head(journal, &journal->head, text);
    status = commit_changes(journal, journal->synced_rows, error);
    if (!status)
        journal->stored_seq = journal->head.seq;
    return status;
}

static int read_head(void *context, const void *key, size_t key_size, const void *value,
                     size_t value_size)
{
    struct as_audit_head *head = context;
    const char *space = memchr(value, ' ', value_size);
    int64_t seq;

    if (key_size != strlen(HEAD_KEY) || memcmp(key, HEAD_KEY, key_size) != 0)
        return 0;
    if (!space)
        return -EBADMSG;
    size_t digits = (size_t)(space - (const char *)value);
    if (as_number_parse_i64(value, digits, &seq) || seq < 1 ||
        value_size - digits - 1 != AS_AUDIT_HASH_SIZE - 1)
        return -EBADMSG;
    head->seq = (uint64_t)seq;
    memcpy(head->hash, space + 1, AS_AUDIT_HASH_SIZE - 1);
    return 0;
}

int as_storage_read_head(struct as_store *store, struct as_audit_head *head_out,
                         struct as_error *error)
{
    struct as_audit_head head = AS_AUDIT_HEAD_INIT;
    int status = store->visit(store, AS_STORE_META, read_head, &head, error);

    if (status == -EBADMSG)
        as_error_set(error, "the state file does not say where the action log stands: restore it "
                            "from a backup, or move it away");
    if (!status)
        *head_out = head;
    return status;
}

struct replay {
    struct journal *journal;
    struct as_audit_head log; /* the log's head */
    struct as_error *error;
};

/* The lines of a row, during the walk. */
struct row {
    uint64_t first, last;      /* numbers of its lines */
    const char *end, *at_last; /* at_last: its last line */
    const char *rest;          /* lines that the log lacks */
    uint64_t rest_seq;
};

static struct row read_row(const struct replay *replay, uint64_t first, const char *lines,
                           size_t size)
{
    struct row row = {first, first, lines + size, lines, lines, first};

    for (uint64_t seq = first; row.at_last < row.end; seq++) { /* seq: of the line at at_last */
        const char *next =
            (const char *)memchr(row.at_last, '\n', (size_t)(row.end - row.at_last)) + 1;
        if (seq <= replay->log.seq) {
            row.rest = next;
            row.rest_seq = seq + 1;
        }
        row.last = seq;
        if (next == row.end)
            break;
        row.at_last = next;
    }
    return row;
}

static int check_line(struct replay *replay, const char *line, const char *end,
                      struct as_audit_head *head_out, char prev_out[AS_AUDIT_HASH_SIZE])
{
    const char *newline = memchr(line, '\n', (size_t)(end - line));

    return as_chain_check_line(replay->journal->chain, line, (size_t)(newline - line), head_out,
                               prev_out, replay->error)
               ? -EBADMSG
               : 0;
}

/* If replicas share the store and the log does not end right before these lines, another replica
 * wrote the lines between: begins a new part. */
static int begin_part(struct replay *replay, const struct as_audit_head *before)
{
    struct as_audit *audit = replay->journal->audit;
    const bool follows =
        replay->log.seq == before->seq && strcmp(replay->log.hash, before->hash) == 0;

    if (!replay->journal->store->is_shared || follows)
        return 0;
    if (replay->log.seq)
        as_log(AS_LOG_INFO, "another replica went on with the action log: beginning a new part",
               AS_FI("log_seq", replay->log.seq), AS_FI("from", before->seq + 1));
    replay->log = *before;
    return audit->begin_part(audit, before, replay->error);
}

/* Appends the lines of a row that the log lacks. */
static int replay_row(void *context, const void *key, size_t key_size, const void *value,
                      size_t value_size)
{
    struct replay *replay = context;
    struct journal *journal = replay->journal;
    char prev[AS_AUDIT_HASH_SIZE];
    struct as_audit_head head, first, before;
    int status = 0;

    if (key_size != 8 || !value_size || ((const char *)value)[value_size - 1] != '\n')
        return -EBADMSG;
    const struct row row = read_row(replay, decode_seq(key), value, value_size);
    journal->rows =
        as_xgrow(journal->rows, journal->row_count, &journal->row_capacity, sizeof(*journal->rows));
    journal->rows[journal->row_count++] = row.first;
    if (row.rest == row.end)
        return 0;
    if (check_line(replay, row.at_last, row.end, &head, prev) || head.seq != row.last)
        return -EBADMSG;
    if (row.first > replay->log.seq + 1 && !journal->store->is_shared)
        as_log(AS_LOG_ERROR, "the action log lacks records that are gone from the outbox",
               AS_FI("from", replay->log.seq + 1), AS_FI("to", row.first - 1));
    if (journal->store->is_shared) {
        if (check_line(replay, row.rest, row.end, &first, before.hash))
            return -EBADMSG;
        before.seq = row.rest_seq - 1;
        status = begin_part(replay, &before);
    }
    if (!status)
        status = journal->audit->append(journal->audit, row.rest, (size_t)(row.end - row.rest),
                                        &head, replay->error);
    if (!status) {
        replay->log = head;
        journal->unsynced_bytes += (uint64_t)(row.end - row.rest);
    }
    return status;
}

/* After the replay the heads of log and state must be equal; logs a difference. */
static void compare_heads(struct journal *journal, const struct as_audit_head *log)
{
    if (log->seq > 0 && journal->head.seq == 0) {
        as_log(AS_LOG_WARN,
               "the state is new and the action log is not: the state was lost, and with it all "
               "locks, open incidents and pauses; what fires now may scale at once",
               AS_FI("log_seq", log->seq));
        journal->head = *log;
    } else if (log->seq > journal->head.seq) {
        /* the last records did not change the state, or the state is an old copy */
        as_log(AS_LOG_INFO, "the action log is ahead of the state: going on from the log",
               AS_FI("log_seq", log->seq), AS_FI("state_seq", journal->head.seq));
        journal->head = *log;
    } else if (log->seq < journal->head.seq && log->seq) {
        as_log(AS_LOG_ERROR, "the action log ends before the state: records are missing in it",
               AS_FI("log_seq", log->seq), AS_FI("state_seq", journal->head.seq));
    } else if (log->seq && memcmp(log->hash, journal->head.hash, sizeof(log->hash)) != 0) {
        as_log(AS_LOG_ERROR, "the action log's last record is not the one of the state",
               AS_FI("seq", log->seq));
    }
}

/* Empties the outbox. It always writes, so that an unwritable store is detected. */
static int commit_opening(struct journal *journal, struct as_error *error)
{
    AS_CLEANUP(as_free_p) unsigned char *keys = begin_with_done_rows(journal);
    char now[AS_RFC3339_SIZE];

    as_wall_time_print(journal->clock->get_wall(journal->clock), now);
    add_change(journal, &(struct as_store_change){.kind = AS_STORE_META,
                                                  .key = OPENED_KEY,
                                                  .key_size = strlen(OPENED_KEY),
                                                  .value = now,
                                                  .value_size = strlen(now)});
    return commit_changes(journal, journal->synced_rows, error);
}

int journal_open(struct journal *journal, struct as_store *store, struct as_audit *audit,
                 const struct as_clock *clock, struct as_error *error)
{
    *journal = (struct journal){.store = store,
                                .audit = audit,
                                .clock = clock,
                                .chain = as_chain_new(),
                                .head = AS_AUDIT_HEAD_INIT,
                                .lines = AS_BUF_INIT_OPEN(LINES_MAX)};
    struct replay replay = {.journal = journal, .log = audit->get_head(audit), .error = error};
    uint64_t before = replay.log.seq;

    int status = as_storage_read_head(store, &journal->head, error);
    if (status)
        return status;
    status = store->visit(store, AS_STORE_OUTBOX, replay_row, &replay, error);
    if (status == -EBADMSG) {
        as_error_set(error, "the outbox of the action log in the state file is damaged: restore "
                            "the state file from a backup, or move it away");
        return status;
    }
    if (status)
        return status;
    if (replay.log.seq > before && before)
        as_log(AS_LOG_INFO, "the action log was brought up to the state", AS_FI("from", before + 1),
               AS_FI("to", replay.log.seq));
    journal->stored_seq = journal->head.seq;
    if (replay.log.seq <= journal->head.seq)
        status = begin_part(&replay, &journal->head);
    if (status)
        return status;
    compare_heads(journal, &replay.log);
    status = journal_sync(journal, error);
    return status ? status : commit_opening(journal, error);
}

void journal_close(struct journal *journal)
{
    journal->store->close(journal->store);
    journal->audit->close(journal->audit);
    as_chain_free(journal->chain);
    as_buf_deinit(&journal->lines);
    free(journal->changes);
    free(journal->rows);
}
