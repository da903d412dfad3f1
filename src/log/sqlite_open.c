/*
 * Opens, checks and creates the state file. Each step has its own error: the file (SQLite's own
 * words for a missing directory do not help), the lock, the owner of the file, its version, its
 * integrity.
 */
#include "sqlite_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/log/sqlite.h>

#include "sqlite_memory.h"

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

int as_sqlite_fail(sqlite3 *db, const char *path, const char *what, struct as_error *error)
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

static int fail_errno(const char *path, int code, struct as_error *error)
{
    as_error_set_errno(error, code, "state file %s", path);
    return -code;
}

/* Checks that the file exists and is writable; creates it with mode 0600 if allowed. */
static int make_file(const char *path, bool may_create, struct as_error *error)
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
        return fail_errno(path, -status, error);
    close(fd);
    return 0;
}

static bool was_closed_cleanly(const char *path)
{
    AS_CLEANUP(as_free_p) char *wal = as_xasprintf("%s-wal", path);
    struct stat info;

    return stat(wal, &info) || info.st_size == 0;
}

static int execute(sqlite3 *db, const char *path, const char *sql, const char *what,
                   struct as_error *error)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) ? as_sqlite_fail(db, path, what, error) : 0;
}

/* Reads the number in the first row of a query's result. */
static int ask_number(sqlite3 *db, const char *path, const char *sql, int64_t *number_out,
                      struct as_error *error)
{
    sqlite3_stmt *statement = NULL;
    int status = 0;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) || sqlite3_step(statement) != SQLITE_ROW)
        status = as_sqlite_fail(db, path, "open", error);
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
        status = as_sqlite_fail(db, path, "check", error);
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
static int check_owner(sqlite3 *db, const char *path, int64_t *version_out, struct as_error *error)
{
    int64_t application = 0, version = 0, tables = 0;
    int status = ask_number(db, path, "PRAGMA application_id", &application, error);

    if (!status)
        status = ask_number(db, path, "PRAGMA user_version", &version, error);
    if (!status)
        status = ask_number(db, path, "SELECT count(*) FROM sqlite_schema", &tables, error);
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
/* Earlier versions have the same tables; the content of records changes as they are written. An
 * earlier version cannot read the new records, so the file's version must rise now. */
static const char upgrade[] = "PRAGMA user_version=" TO_TEXT(AS_STORE_SQLITE_SCHEMA) ";";
static const char journal[] = "PRAGMA journal_mode=WAL;"
                              "PRAGMA journal_size_limit=16777216;";

int as_sqlite_open(const char *path, bool may_create, sqlite3 **db_out, struct as_error *error)
{
    const bool is_clean = was_closed_cleanly(path);
    int64_t version = 0; /* a new file */
    struct stat info;
    int status = make_file(path, may_create, error);

    if (status)
        return status;
    as_sqlite_set_memory();
    if (sqlite3_open_v2(path, db_out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL))
        return as_sqlite_fail(*db_out, path, "open", error);
    sqlite3_extended_result_codes(*db_out, 1);
    status = execute(*db_out, path, settings, "open", error);
    if (!status)
        status = check_owner(*db_out, path, &version, error);
    if (!status && version > 0 && (!is_clean || stat(path, &info) || info.st_size < ALWAYS_CHECKED))
        status = quick_check(*db_out, path, error);
    if (!status)
        status = execute(*db_out, path, journal, "open", error);
    if (!status && version == 0)
        status = execute(*db_out, path, schema, "create", error);
    else if (!status && version < AS_STORE_SQLITE_SCHEMA)
        status = execute(*db_out, path, upgrade, "upgrade", error);
    else if (!status)
        status = execute(*db_out, path, "BEGIN IMMEDIATE; ROLLBACK;", "lock", error);
    return status;
}
