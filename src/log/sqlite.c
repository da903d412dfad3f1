/*
 * The SQLite store. One process owns the file: locking_mode=EXCLUSIVE. So neither a second
 * alertscaler nor an operator's sqlite3 can hold a lock during a commit, and the WAL needs no
 * shared memory. Statements are prepared once.
 *
 * After a failed commit the store refuses everything: only opening the file again shows what a
 * failed fsync left on the disk.
 */
#include <alertscaler/log/sqlite.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>

#include "sqlite_open.h"

/* Moving the WAL into the file takes two syncs. From TIDY pages on it happens when no caller waits;
 * from MAX pages on within a commit. */
#define WAL_PAGES_TIDY 500
#define WAL_PAGES_MAX  4000

struct kind {
    const char *put, *delete, *visit;
    bool is_number; /* the key is 8 bytes big-endian, stored as an integer */
};

#define KIND(table, number)                                                                        \
    {                                                                                              \
        .put = "INSERT INTO " table "(key,value) VALUES(?1,?2) "                                   \
               "ON CONFLICT(key) DO UPDATE SET value=excluded.value",                              \
        .delete = "DELETE FROM " table " WHERE key=?1",                                            \
        .visit = "SELECT key,value FROM " table " ORDER BY key", .is_number = (number)             \
    }

static const struct kind kinds[AS_STORE_KIND_COUNT] = {
    [AS_STORE_META] = KIND("meta", false),     [AS_STORE_INCIDENT] = KIND("incident", false),
    [AS_STORE_TARGET] = KIND("target", false), [AS_STORE_INTENT] = KIND("intent", false),
    [AS_STORE_OUTBOX] = KIND("outbox", true),
};

enum control { BEGIN, COMMIT, ROLLBACK, CONTROL_COUNT };
static const char *const controls[CONTROL_COUNT] = {"BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"};

struct sqlite_store {
    struct as_store port;
    sqlite3 *db;
    char *path;
    sqlite3_stmt *put[AS_STORE_KIND_COUNT], *delete[AS_STORE_KIND_COUNT];
    sqlite3_stmt *control[CONTROL_COUNT];
    int failed;    /* 0, or the negative errno of the failed commit */
    int wal_pages; /* in the WAL after the last commit */
    bool cannot_tidy;
};

static int fail(struct sqlite_store *store, const char *what, struct as_error *error)
{
    return as_sqlite_fail(store->db, store->path, what, error);
}

static int prepare(struct sqlite_store *store, const char *sql, sqlite3_stmt **statement_out,
                   struct as_error *error)
{
    if (sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement_out, NULL))
        return fail(store, "prepare", error);
    return 0;
}

static int64_t decode_number(const unsigned char *key)
{
    uint64_t number = 0;

    for (int i = 0; i < 8; i++)
        number = number << 8 | key[i];
    return (int64_t)number;
}

static void encode_number(int64_t number, unsigned char key_out[8])
{
    for (int i = 0; i < 8; i++)
        key_out[i] = (unsigned char)((uint64_t)number >> (56 - 8 * i));
}

static int bind_blob(sqlite3_stmt *statement, int at, const void *data, size_t size)
{
    return size ? sqlite3_bind_blob64(statement, at, data, size, SQLITE_STATIC)
                : sqlite3_bind_zeroblob(statement, at, 0);
}

static int run(sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);

    sqlite3_reset(statement);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Returns an SQLite result code. */
static int apply(struct sqlite_store *store, const struct as_store_change *change)
{
    sqlite3_stmt *statement =
        change->value ? store->put[change->kind] : store->delete[change->kind];
    int code;

    if (kinds[change->kind].is_number)
        code = change->key_size == 8 ? sqlite3_bind_int64(statement, 1, decode_number(change->key))
                                     : SQLITE_MISUSE;
    else
        code = bind_blob(statement, 1, change->key, change->key_size);
    if (!code && change->value)
        code = bind_blob(statement, 2, change->value, change->value_size);
    if (!code)
        code = run(statement);
    sqlite3_clear_bindings(statement);
    return code;
}

static int sqlite_commit(struct as_store *self, const struct as_store_change *changes, size_t count,
                         struct as_error *error)
{
    struct sqlite_store *store = (struct sqlite_store *)self;
    int code;

    if (store->failed) {
        as_error_set_errno(error, store->failed, "state file %s: failed before", store->path);
        return store->failed;
    }
    code = run(store->control[BEGIN]);
    for (size_t i = 0; !code && i < count; i++)
        code = apply(store, &changes[i]);
    if (!code)
        code = run(store->control[COMMIT]);
    if (code) {
        store->failed = fail(store, "commit", error);
        if (!sqlite3_get_autocommit(store->db))
            (void)run(store->control[ROLLBACK]);
        return store->failed;
    }
    return 0;
}

static int on_commit(void *context, sqlite3 *db, const char *name, int pages)
{
    struct sqlite_store *store = context;

    store->wal_pages = pages;
    if (pages >= WAL_PAGES_MAX)
        (void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

/* Moves the WAL into the file. A failure loses nothing: the WAL has everything, and grows until a
 * commit fails. */
static void sqlite_tidy(struct as_store *self)
{
    struct sqlite_store *store = (struct sqlite_store *)self;

    if (store->wal_pages < WAL_PAGES_TIDY || store->failed)
        return;
    bool failed = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (failed && !store->cannot_tidy)
        as_log(AS_LOG_WARN, "the state's write-ahead log cannot be moved into the file",
               AS_F("file", store->path), AS_F("error", sqlite3_errmsg(store->db)));
    store->cannot_tidy = failed;
    store->wal_pages = 0;
}

static int sqlite_visit(struct as_store *self, enum as_store_kind kind, as_store_visit_fn *visit,
                        void *context, struct as_error *error)
{
    struct sqlite_store *store = (struct sqlite_store *)self;
    sqlite3_stmt *statement = NULL;
    int code, status = prepare(store, kinds[kind].visit, &statement, error);

    if (status)
        return status;
    while (!status && (code = sqlite3_step(statement)) != SQLITE_DONE) {
        unsigned char number[8];
        const void *key = number;
        size_t key_size = sizeof(number);
        if (code != SQLITE_ROW) {
            status = fail(store, "read", error);
            break;
        }
        if (kinds[kind].is_number) {
            encode_number(sqlite3_column_int64(statement, 0), number);
        } else {
            key = sqlite3_column_blob(statement, 0);
            key_size = (size_t)sqlite3_column_bytes(statement, 0);
        }
        const void *value = sqlite3_column_blob(statement, 1);
        size_t value_size = (size_t)sqlite3_column_bytes(statement, 1);
        status = visit(context, key ? key : "", key_size, value ? value : "", value_size);
    }
    sqlite3_finalize(statement);
    return status;
}

static void sqlite_close(struct as_store *self)
{
    struct sqlite_store *store = (struct sqlite_store *)self;

    for (int i = 0; i < AS_STORE_KIND_COUNT; i++) {
        sqlite3_finalize(store->put[i]);
        sqlite3_finalize(store->delete[i]);
    }
    for (int i = 0; i < CONTROL_COUNT; i++)
        sqlite3_finalize(store->control[i]);
    sqlite3_close(store->db); /* the last connection: this moves the WAL into the file */
    free(store->path);
    free(store);
}

int as_store_sqlite_open(const char *path, bool may_create, struct as_store **store_out,
                         struct as_error *error)
{
    struct sqlite_store *store = as_xcalloc(1, sizeof(*store));
    int status;

    store->port = (struct as_store){
        .commit = sqlite_commit, .visit = sqlite_visit, .tidy = sqlite_tidy, .close = sqlite_close};
    store->path = as_xstrdup(path);
    status = as_sqlite_open(path, may_create, &store->db, error);
    for (int i = 0; !status && i < AS_STORE_KIND_COUNT; i++) {
        status = prepare(store, kinds[i].put, &store->put[i], error);
        if (!status)
            status = prepare(store, kinds[i].delete, &store->delete[i], error);
    }
    for (int i = 0; !status && i < CONTROL_COUNT; i++)
        status = prepare(store, controls[i], &store->control[i], error);
    if (status) {
        sqlite_close(&store->port);
        return status;
    }
    sqlite3_wal_hook(store->db, on_commit, store); /* replaces SQLite's own checkpoints */
    *store_out = &store->port;
    return 0;
}
