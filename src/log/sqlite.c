/*
 * State store in an SQLite file. One process owns the file: locking_mode=EXCLUSIVE. So neither a
 * second alertscaler nor an operator's sqlite3 can hold a lock during a commit, and the WAL
 * needs no shared memory. Statements are prepared once.
 *
 * After a failed commit the store refuses every call: only opening the file again shows what a
 * failed fsync left on the disk.
 */
#include <alertscaler/log/sqlite.h>

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/log.h>

#include "sqlite_memory.h"

/*
 * Memory of SQLite. It comes from the general allocator, but is freed with as_release: it holds
 * pages and statements of the state, which is not secret. So it is not wiped.
 */

static void *memory_allocate(int size)
{
    return malloc((size_t)size);
}

static int memory_get_size(void *memory)
{
    return memory ? (int)malloc_usable_size(memory) : 0;
}

static void *memory_resize(void *memory, int size)
{
    const size_t room = malloc_usable_size(memory), wanted = (size_t)size;
    if (wanted <= room && wanted >= room / 2)
        return memory;
    void *moved = malloc(wanted);
    if (moved) {
        memcpy(moved, memory, wanted < room ? wanted : room);
        as_release(memory);
    }
    return moved;
}

static int memory_round_up(int size)
{
    return (size + 7) & ~7;
}

static int memory_begin(void *context)
{
    return SQLITE_OK;
}

static void memory_end(void *context)
{
}

static void memory_configure(void)
{
    static const sqlite3_mem_methods methods = {
        .xMalloc = memory_allocate,
        .xFree = as_release,
        .xRealloc = memory_resize,
        .xSize = memory_get_size,
        .xRoundup = memory_round_up,
        .xInit = memory_begin,
        .xShutdown = memory_end,
    };
    (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &methods); /* too late if SQLite is in use */
}

void as_sqlite_set_memory(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, memory_configure);
}

/*
 * Opening: the state file is opened, checked and created. Each step has its own error: the file
 * (SQLite's own words for a missing directory do not help), the lock, the owner of the file, its
 * version, its integrity.
 */

#define APPLICATION_ID 1098081121 /* "Asca" */
#define ALWAYS_CHECKED (INT64_C(64) << 20)
#define TO_TEXT(x)     TO_TEXT_(x)
#define TO_TEXT_(x)    #x

/*
 * Incidents come in the random order of their digests: in a rowid table their values are appended,
 * and only the small index is written in random places. The other tables are small.
 */
static const char schema[] =
    "BEGIN EXCLUSIVE;"
    "CREATE TABLE meta(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE incident(key BLOB PRIMARY KEY NOT NULL, value BLOB NOT NULL);"
    "CREATE TABLE target(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE intent(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE outbox(key INTEGER PRIMARY KEY, value BLOB NOT NULL);"
    "PRAGMA application_id=" TO_TEXT(APPLICATION_ID) ";"
                                                     "PRAGMA user_version=" TO_TEXT(
                                                         AS_STORE_SQLITE_SCHEMA) ";"
                                                                                 "COMMIT;";

struct fault {
    int sqlite, code; /* SQLite's primary result code; our errno, 0: the system's */
    const char *advice;
};

static const struct fault faults[] = {
    {SQLITE_BUSY, EBUSY, "another alertscaler (or sqlite3) has it open"},
    {SQLITE_LOCKED, EBUSY, "another alertscaler (or sqlite3) has it open"},
    {SQLITE_CORRUPT, EBADMSG,
     "it is damaged: restore it from a backup, or move it and its -wal file away to start without "
     "the open incidents and locks in it"},
    {SQLITE_NOTADB, EBADMSG,
     "it is not a state file of alertscaler: move it away or use another path"},
    {SQLITE_FULL, ENOSPC, "the disk is full"},
    {SQLITE_READONLY, EROFS, "it cannot be written"},
    {SQLITE_NOMEM, ENOMEM, "out of memory"},
    {SQLITE_TOOBIG, EFBIG, "a value is too large"},
    {SQLITE_CANTOPEN, 0, "it or its -wal file cannot be opened"},
    {SQLITE_PERM, EACCES, "no permission"},
    {SQLITE_IOERR, 0, "reading or writing failed"},
};

/* The negative errno of the connection's last error, never 0, with a text that says what to do. */
static int sqlite_fail(sqlite3 *db, const char *path, const char *what, struct as_error *error)
{
    int sqlite = db ? sqlite3_extended_errcode(db) : SQLITE_NOMEM;
    const char *said = db ? sqlite3_errmsg(db) : "no connection";

    for (size_t i = 0; i < AS_ARRAY_SIZE(faults); i++) {
        if (faults[i].sqlite != (sqlite & 0xff))
            continue;
        int code = faults[i].code ? faults[i].code : sqlite3_system_errno(db);
        if (!code)
            code = EIO;
        as_error_set(error, "state file %s: %s: %s (SQLite: %s)", path, what, faults[i].advice,
                     faults[i].code ? said : strerror(code));
        return -code;
    }
    as_error_set(error, "state file %s: %s: SQLite: %s", path, what, said);
    return -EIO;
}

static int open_fail_errno(const char *path, int code, struct as_error *error)
{
    as_error_set_errno(error, code, "state file %s", path);
    return -code;
}

/* Checks that the file exists and is writable; creates it with mode 0600 if allowed. */
static int open_make_file(const char *path, bool may_create, struct as_error *error)
{
    int fd;
    int status = as_file_open(path, AS_FILE_OWN, O_RDWR, &fd, NULL);

    if (status == -ENOENT && may_create)
        status = as_file_create(AT_FDCWD, path, O_RDWR, 0600, &fd);
    if (status == -ENOENT && !may_create) {
        as_error_set(error,
                     "state file %s: it is gone: bring it back (is its file system mounted?), or "
                     "restart to begin without the open incidents and locks in it",
                     path);
        return -ENOENT;
    }
    if (status)
        return open_fail_errno(path, -status, error);
    close(fd);
    return 0;
}

static bool was_closed_cleanly(const char *path)
{
    AS_CLEANUP(as_free_p) char *wal = as_xasprintf("%s-wal", path);
    struct stat info;

    return stat(wal, &info) || info.st_size == 0;
}

static int open_execute(sqlite3 *db, const char *path, const char *sql, const char *what,
                        struct as_error *error)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) ? sqlite_fail(db, path, what, error) : 0;
}

/* Reads the number in the first row of a query's result. */
static int open_query_number(sqlite3 *db, const char *path, const char *sql, int64_t *number_out,
                             struct as_error *error)
{
    sqlite3_stmt *statement = NULL;
    int status = 0;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) || sqlite3_step(statement) != SQLITE_ROW)
        status = sqlite_fail(db, path, "open", error);
    else
        *number_out = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return status;
}

static int quick_check(sqlite3 *db, const char *path, struct as_error *error)
{
    sqlite3_stmt *statement = NULL;
    int status = 0;

    if (sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL) ||
        sqlite3_step(statement) != SQLITE_ROW) {
        status = sqlite_fail(db, path, "check", error);
    } else if (strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0) {
        as_error_set(error,
                     "state file %s is damaged (%s): restore it from a backup, or move it and its "
                     "-wal file away to start without the open incidents and locks in it",
                     path, (const char *)sqlite3_column_text(statement, 0));
        status = -EBADMSG;
    }
    sqlite3_finalize(statement);
    return status;
}

/* Checks that the file is ours, and reads its version. 0 and version_out 0: no tables yet. */
static int open_check_owner(sqlite3 *db, const char *path, int64_t *version_out,
                            struct as_error *error)
{
    int64_t application = 0, version = 0, tables = 0;
    int status = open_query_number(db, path, "PRAGMA application_id", &application, error);

    if (!status)
        status = open_query_number(db, path, "PRAGMA user_version", &version, error);
    if (!status)
        status = open_query_number(db, path, "SELECT count(*) FROM sqlite_schema", &tables, error);
    if (status)
        return status;
    *version_out = version;
    if (application == 0 && version == 0 && tables == 0)
        return 0;
    if (application != APPLICATION_ID) {
        as_error_set(error, "state file %s is a database of another program: use another path",
                     path);
        return -EBADMSG;
    }
    if (version > AS_STORE_SQLITE_SCHEMA) {
        as_error_set(error,
                     "state file %s is from a newer alertscaler (schema %d, this one knows %d): "
                     "use that version or move the file away",
                     path, (int)version, AS_STORE_SQLITE_SCHEMA);
        return -EPROTO;
    }
    if (version == 1) {
        as_error_set(error,
                     "state file %s is from an older alertscaler (schema 1, this one reads schema "
                     "%d): move it and its -wal file away to start without the open incidents, "
                     "locks and pauses in it",
                     path, AS_STORE_SQLITE_SCHEMA);
        return -EPROTO;
    }
    if (version < 1) {
        as_error_set(error, "state file %s is damaged (schema %d): move it away", path,
                     (int)version);
        return -EBADMSG;
    }
    return 0;
}

/* EXCLUSIVE: the first access takes the file's lock, and the connection keeps it. */
static const char settings[] = "PRAGMA locking_mode=EXCLUSIVE;"
                               "PRAGMA trusted_schema=OFF;"
                               "PRAGMA cell_size_check=ON;"
                               "PRAGMA temp_store=MEMORY;"
                               "PRAGMA cache_size=-1024;"
                               "PRAGMA synchronous=FULL;";
static const char journal[] = "PRAGMA journal_mode=WAL;"
                              "PRAGMA journal_size_limit=16777216;";

/* A connection to a file with its tables, locked for this process. *db_out may be set on failure
 * too (close it). */
static int sqlite_open(const char *path, bool may_create, sqlite3 **db_out, struct as_error *error)
{
    const bool is_clean = was_closed_cleanly(path);
    int64_t version = 0; /* a new file */
    struct stat info;
    int status = open_make_file(path, may_create, error);

    if (status)
        return status;
    as_sqlite_set_memory();
    if (sqlite3_open_v2(path, db_out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL))
        return sqlite_fail(*db_out, path, "open", error);
    sqlite3_extended_result_codes(*db_out, 1);
    status = open_execute(*db_out, path, settings, "open", error);
    if (!status)
        status = open_check_owner(*db_out, path, &version, error);
    if (!status && version > 0 && (!is_clean || stat(path, &info) || info.st_size < ALWAYS_CHECKED))
        status = quick_check(*db_out, path, error);
    if (!status)
        status = open_execute(*db_out, path, journal, "open", error);
    if (!status && version == 0)
        status = open_execute(*db_out, path, schema, "create", error);
    else if (!status)
        status = open_execute(*db_out, path, "BEGIN IMMEDIATE; ROLLBACK;", "lock", error);
    return status;
}

/* Store. */

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

static int sqlite_fail_store(struct sqlite_store *store, const char *what, struct as_error *error)
{
    return sqlite_fail(store->db, store->path, what, error);
}

static int sqlite_prepare(struct sqlite_store *store, const char *sql, sqlite3_stmt **statement_out,
                          struct as_error *error)
{
    if (sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement_out, NULL))
        return sqlite_fail_store(store, "prepare", error);
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

static int sqlite_run(sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);

    sqlite3_reset(statement);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Returns an SQLite result code. */
static int sqlite_apply(struct sqlite_store *store, const struct as_store_change *change)
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
        code = sqlite_run(statement);
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
    code = sqlite_run(store->control[BEGIN]);
    for (size_t i = 0; !code && i < count; i++)
        code = sqlite_apply(store, &changes[i]);
    if (!code)
        code = sqlite_run(store->control[COMMIT]);
    if (code) {
        store->failed = sqlite_fail_store(store, "commit", error);
        if (!sqlite3_get_autocommit(store->db))
            (void)sqlite_run(store->control[ROLLBACK]);
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
    int code, status = sqlite_prepare(store, kinds[kind].visit, &statement, error);

    if (status)
        return status;
    while (!status && (code = sqlite3_step(statement)) != SQLITE_DONE) {
        unsigned char number[8];
        const void *key = number;
        size_t key_size = sizeof(number);
        if (code != SQLITE_ROW) {
            status = sqlite_fail_store(store, "read", error);
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
    status = sqlite_open(path, may_create, &store->db, error);
    for (int i = 0; !status && i < AS_STORE_KIND_COUNT; i++) {
        status = sqlite_prepare(store, kinds[i].put, &store->put[i], error);
        if (!status)
            status = sqlite_prepare(store, kinds[i].delete, &store->delete[i], error);
    }
    for (int i = 0; !status && i < CONTROL_COUNT; i++)
        status = sqlite_prepare(store, controls[i], &store->control[i], error);
    if (status) {
        sqlite_close(&store->port);
        return status;
    }
    sqlite3_wal_hook(store->db, on_commit, store); /* replaces SQLite's own checkpoints */
    *store_out = &store->port;
    return 0;
}
