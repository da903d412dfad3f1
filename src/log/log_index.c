/*
 * The index of the action log. A row of `file` says up to where a file is indexed; its rows and
 * this place change in one transaction, so a crash leaves no gap and no record twice.
 *
 * A file is known by its inode, and by its first and its last indexed bytes, not by its name or its
 * device: rotation renames files, and a volume may have another device after a restart. A file that
 * is shorter than indexed, or has other bytes there, is another file: what was indexed is
 * forgotten.
 *
 * Records are in the order of `seq`. Times may go back by some seconds when the clock is set, so a
 * query by time begins and ends TIME_MARGIN records further out, and checks each time.
 *
 * Charts of long times read sums: a row of `minute` has what the decisions and actions in one file
 * say of one target in one minute. It is made of the rows that are added, and goes with its file.
 *
 * The index may be lost at any time: it is written without a sync of each commit, and emptied when
 * SQLite finds damage.
 *
 * The file is long because its parts share one schema and its statements: the database, the log's
 * files, one record, queries.
 */
#include <alertscaler/log/log_index.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <jansson.h>
#include <sqlite3.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/file.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/json_scan.h>
#include <alertscaler/log/log_file.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/port/clock.h>

#include "sqlite_memory.h"

#define INDEX_APPLICATION 1098081129 /* "Asci" */
#define INDEX_VERSION     5
#define READ_SIZE         ((size_t)256 << 10) /* of one step, unless a line is longer */
#define STEP_US           (100 * AS_US_PER_MS)
#define STEP_MIN          ((uint64_t)8 << 20) /* bytes of a step: each writes pages of all targets */
#define MARK_SIZE         1024                /* first and last bytes that identify a file */
#define FORGET_RECORDS    2000                /* in one step */
#define FILES_MAX         20000
#define TARGETS_MAX       100 /* of one incident */
#define STREAMS_MAX       256 /* of one query */
#define STREAMS_FEW       4
#define STREAMS_PART      16 /* a small part of all targets */
#define TIME_MARGIN       5000
#define PROGRESS_STEPS    2000 /* of SQLite's machine, between checks of the deadline */
#define TEXTS_MAX         ((size_t)64 << 10) /* of one record */
#define PROPOSALS_MAX     ((size_t)64 << 10) /* of a longer list, the index has no value */

/* Numbers of kinds in the file. They never change; 0 is none. */
static const unsigned char stored_kinds[AS_RECORD_KIND_COUNT] = {
    [AS_RECORD_DECISION] = 1, [AS_RECORD_ACTION] = 2,   [AS_RECORD_EFFECT] = 3,
    [AS_RECORD_COMMAND] = 4,  [AS_RECORD_APPROVAL] = 5, [AS_RECORD_INCIDENT] = 6,
    [AS_RECORD_START] = 7,    [AS_RECORD_STOP] = 8,     [AS_RECORD_RELOAD] = 9,
};

static const char index_schema[] =
    "BEGIN EXCLUSIVE;"
    "CREATE TABLE file(number INTEGER PRIMARY KEY, inode INTEGER NOT NULL, done INTEGER NOT NULL,"
    " head BLOB NOT NULL, tail BLOB NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,"
    " since INTEGER NOT NULL, until INTEGER NOT NULL, is_gone INTEGER NOT NULL);"
    "CREATE TABLE target(number INTEGER PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL,"
    " UNIQUE(id,name));"
    "CREATE TABLE word(number INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    "CREATE TABLE record(seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " id TEXT NOT NULL, id_key INTEGER, target INTEGER, rule INTEGER, reason INTEGER,"
    " direction INTEGER, before INTEGER, after INTEGER, would INTEGER, repeats INTEGER NOT NULL,"
    " file INTEGER NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL);"
    "CREATE INDEX record_kind ON record(kind) WHERE kind<>1;" /* few are no decisions */
    "CREATE INDEX record_id ON record(id_key) WHERE id_key IS NOT NULL;"
    "CREATE INDEX record_reason ON record(reason) WHERE reason IS NOT NULL;"
    "CREATE TABLE place(target INTEGER NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, id TEXT NOT NULL, rule INTEGER, reason INTEGER, direction INTEGER,"
    " before INTEGER, after INTEGER, would INTEGER, repeats INTEGER NOT NULL,"
    " file INTEGER NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL,"
    " PRIMARY KEY(target,seq)) WITHOUT ROWID;"
    "CREATE INDEX place_kind ON place(target,seq) WHERE kind<>1;"
    "CREATE INDEX place_rule ON place(rule,target,seq) WHERE rule IS NOT NULL;"
    "CREATE TABLE minute(target INTEGER NOT NULL, minute INTEGER NOT NULL, file INTEGER NOT NULL,"
    " first_at INTEGER, last_at INTEGER, first INTEGER, last INTEGER, least INTEGER, most INTEGER,"
    " value_at INTEGER, rule INTEGER, value REAL, goal REAL, actions INTEGER NOT NULL,"
    " failures INTEGER NOT NULL, PRIMARY KEY(target,minute,file)) WITHOUT ROWID;"
    "CREATE TABLE rule_target(rule INTEGER NOT NULL, target INTEGER NOT NULL,"
    " PRIMARY KEY(rule,target)) WITHOUT ROWID;";

enum statement {
    INDEX_BEGIN,
    INDEX_COMMIT,
    INDEX_ROLLBACK,
    FILE_FIND,
    FILE_INSERT,
    FILE_UPDATE,
    FILE_ALL,
    FILE_MARK_GONE,
    FILE_READ_AGAIN,
    FILE_DONE,
    FILE_FIND_GONE,
    FILE_DELETE,
    FILE_SHRINK,
    FILE_RANGES,
    TARGET_FIND,
    TARGET_FIND_ID,
    TARGET_INSERT,
    TARGET_ALL,
    TARGET_PRUNE,
    WORD_FIND,
    WORD_INSERT,
    WORD_PRUNE,
    RECORD_INSERT,
    RECORD_FORGET,
    RECORD_LAST,
    PLACE_INSERT,
    PLACE_FORGET,
    MINUTE_ADD,
    MINUTE_FORGET,
    MINUTE_FIND,
    RULE_TARGET_INSERT,
    RULE_TARGET_HAS,
    RULE_TARGET_PRUNE,
    SEQ_OF_ID,
    SEQ_FIRST,
    SEQ_LAST,
    TIME_FROM_SEQ,
    TIME_FIRST,
    TIME_LAST,
    WORD_TEXT,
    TARGET_OF_SEQ,
    STATEMENT_COUNT
};

static const char *const statements[STATEMENT_COUNT] = {
    [INDEX_BEGIN] = "BEGIN IMMEDIATE",
    [INDEX_COMMIT] = "COMMIT",
    [INDEX_ROLLBACK] = "ROLLBACK",
    [FILE_FIND] = "SELECT number,done,head,tail FROM file WHERE inode=?1 AND NOT is_gone",
    [FILE_INSERT] = "INSERT INTO file(inode,done,head,tail,first,last,since,until,is_gone)"
                    " VALUES(?1,0,x'',x'',0,0,0,0,0)",
    [FILE_UPDATE] = "UPDATE file SET done=?2,head=?3,tail=?4,"
                    "since=CASE WHEN first=0 OR ?5<first THEN ?7 ELSE since END,"
                    "first=CASE WHEN first=0 OR ?5<first THEN ?5 ELSE first END,"
                    "until=CASE WHEN ?6>last THEN ?8 ELSE until END,"
                    "last=CASE WHEN ?6>last THEN ?6 ELSE last END WHERE number=?1",
    [FILE_ALL] = "SELECT number FROM file WHERE NOT is_gone",
    [FILE_MARK_GONE] = "UPDATE file SET is_gone=1 WHERE number=?1",
    [FILE_READ_AGAIN] = "UPDATE file SET done=0,head=x'',tail=x'' WHERE last>0 AND NOT is_gone"
                        " AND first<=(SELECT last FROM file WHERE number=?1)"
                        " AND last>=(SELECT first FROM file WHERE number=?1)",
    [FILE_DONE] = "SELECT done FROM file WHERE number=?1",
    [FILE_FIND_GONE] = "SELECT number,first,last FROM file WHERE is_gone LIMIT 1",
    [FILE_DELETE] = "DELETE FROM file WHERE number=?1",
    [FILE_SHRINK] = "UPDATE file SET first=?2 WHERE number=?1",
    [FILE_RANGES] = "SELECT first,last,since,until FROM file WHERE last>0 AND NOT is_gone"
                    " ORDER BY first",
    [TARGET_FIND] = "SELECT number FROM target WHERE id=?1 AND name=?2",
    [TARGET_FIND_ID] = "SELECT number FROM target WHERE id=?1 ORDER BY name DESC LIMIT 1",
    [TARGET_INSERT] = "INSERT INTO target(id,name) VALUES(?1,?2)",
    [TARGET_ALL] = "SELECT number,id,name FROM target ORDER BY number",
    [TARGET_PRUNE] = "DELETE FROM target WHERE NOT EXISTS"
                     "(SELECT 1 FROM place WHERE place.target=target.number)",
    [WORD_FIND] = "SELECT number FROM word WHERE text=?1",
    [WORD_INSERT] = "INSERT INTO word(text) VALUES(?1)",
    [WORD_PRUNE] = "DELETE FROM word WHERE text NOT IN('up','down','none') AND NOT EXISTS"
                   "(SELECT 1 FROM rule_target WHERE rule_target.rule=word.number) AND NOT EXISTS"
                   "(SELECT 1 FROM record WHERE record.reason=word.number)",
    [RECORD_INSERT] = "INSERT OR IGNORE INTO record(seq,time,kind,id,id_key,target,rule,reason,"
                      "direction,before,after,would,file,at,size,repeats)"
                      " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)",
    [RECORD_FORGET] = "DELETE FROM record WHERE seq BETWEEN ?1 AND ?2 AND file=?3",
    [RECORD_LAST] = "SELECT seq FROM record WHERE seq>=?1 AND file=?2 ORDER BY seq LIMIT 1 OFFSET "
                    "?3",
    [PLACE_INSERT] = "INSERT OR IGNORE INTO place(target,seq,time,kind,id,rule,reason,direction,"
                     "before,after,would,repeats,file,at,size) SELECT ?1,seq,time,kind,id,rule,"
                     "reason,direction,before,after,would,repeats,file,at,size FROM record"
                     " WHERE seq=?2",
    [PLACE_FORGET] = "DELETE FROM place WHERE target=?1 AND seq BETWEEN ?2 AND ?3 AND file=?4",
    /* Times are distances from the begin of the minute; their order decides, not that of lines. */
    [MINUTE_ADD] =
        "INSERT INTO minute(target,minute,file,first_at,last_at,first,last,least,most,value_at,"
        "rule,value,goal,actions,failures) VALUES(?1,?2,?3,?4,?4,?5,?5,?5,?5,?6,?7,?8,?9,?10,?11)"
        " ON CONFLICT(target,minute,file) DO UPDATE SET"
        " first=CASE WHEN first_at IS NULL OR excluded.first_at<first_at THEN excluded.first"
        " ELSE first END,"
        "last=CASE WHEN last_at IS NULL OR excluded.last_at>=last_at THEN excluded.last"
        " ELSE last END,"
        "least=coalesce(min(least,excluded.least),least,excluded.least),"
        "most=coalesce(max(most,excluded.most),most,excluded.most),"
        "first_at=coalesce(min(first_at,excluded.first_at),first_at,excluded.first_at),"
        "last_at=coalesce(max(last_at,excluded.last_at),last_at,excluded.last_at),"
        "rule=CASE WHEN value_at IS NULL OR excluded.value_at>=value_at THEN excluded.rule"
        " ELSE rule END,"
        "value=CASE WHEN value_at IS NULL OR excluded.value_at>=value_at THEN excluded.value"
        " ELSE value END,"
        "goal=CASE WHEN value_at IS NULL OR excluded.value_at>=value_at THEN excluded.goal"
        " ELSE goal END,"
        "value_at=coalesce(max(value_at,excluded.value_at),value_at,excluded.value_at),"
        "actions=actions+excluded.actions,failures=failures+excluded.failures",
    [MINUTE_FORGET] = "DELETE FROM minute WHERE target=?1 AND minute BETWEEN ?2 AND ?3 AND file=?4",
    [MINUTE_FIND] = "SELECT minute,first_at,last_at,first,last,least,most,value_at,rule,value,goal,"
                    "actions,failures FROM minute WHERE target=?1 AND minute<=?2"
                    " ORDER BY minute DESC",
    [RULE_TARGET_INSERT] = "INSERT OR IGNORE INTO rule_target(rule,target) VALUES(?1,?2)",
    [RULE_TARGET_HAS] = "SELECT 1 FROM rule_target WHERE rule=?1 AND target=?2",
    [RULE_TARGET_PRUNE] = "DELETE FROM rule_target WHERE NOT EXISTS(SELECT 1 FROM place WHERE "
                          "place.target=rule_target.target AND place.rule=rule_target.rule)",
    [SEQ_OF_ID] = "SELECT seq FROM record WHERE id_key=?1 AND id=?2 AND ((?3>>kind)&1)"
                  " ORDER BY seq DESC LIMIT 1",
    [SEQ_FIRST] = "SELECT min(seq) FROM record",
    [SEQ_LAST] = "SELECT max(seq) FROM record",
    [TIME_FROM_SEQ] = "SELECT time FROM record WHERE seq>=?1 ORDER BY seq LIMIT 1",
    [TIME_FIRST] = "SELECT min(time) FROM record WHERE seq BETWEEN ?1 AND ?2 AND file=?3",
    [TIME_LAST] = "SELECT max(time) FROM record WHERE seq BETWEEN ?1 AND ?2 AND file=?3",
    [WORD_TEXT] = "SELECT text FROM word WHERE number=?1",
    [TARGET_OF_SEQ] = "SELECT t.id,t.name FROM record r JOIN target t ON t.number=r.target"
                      " WHERE r.seq=?1",
};

struct log_part { /* a file of the log, as last scanned */
    char *path;
    ino_t inode;
    uint64_t size;
    int64_t modified; /* ns */
    bool is_newest;   /* the file that the log is written to */
    int64_t number;   /* of its row */
    uint64_t done;    /* bytes that are indexed, up to the end of a line */
    uint64_t read;    /* bytes that were read in vain: no end of a line is behind `done` */
    bool skips;       /* the line is too long: up to its end */
};

struct as_log_index {
    char *path, *log_path, *directory;
    const char *log_name; /* in log_path */
    uint64_t free_min;
    const atomic_bool *stop;
    as_mono_time deadline; /* of the present query */
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    struct log_part *parts;
    size_t part_count, part_capacity;
    bool has_gone;
    bool reads_again; /* perhaps: what is done of the parts is to be read from their rows */
    struct as_buf block, texts;
    struct json_scan scan;
    uint64_t unreadable, rebuilt;
};

char *as_log_index_make_path(const char *log_path)
{
    const char *slash = strrchr(log_path, '/');
    const size_t size = slash ? (size_t)(slash + 1 - log_path) : 0;
    return as_xasprintf("%.*shistory-%s.db", (int)size, log_path, log_path + size);
}

/*
 * The database.
 */

static int index_fail(const struct as_log_index *index, const char *what, struct as_error *error)
{
    static const struct {
        int sqlite, code;
    } codes[] = {
        {SQLITE_BUSY, EBUSY},          {SQLITE_LOCKED, EBUSY}, {SQLITE_CORRUPT, EBADMSG},
        {SQLITE_NOTADB, EBADMSG},      {SQLITE_FULL, ENOSPC},  {SQLITE_READONLY, EROFS},
        {SQLITE_INTERRUPT, ETIMEDOUT}, {SQLITE_PERM, EACCES},
    };
    const int sqlite = index->db ? sqlite3_errcode(index->db) : SQLITE_NOMEM;
    int code = EIO;
    for (size_t i = 0; i < AS_ARRAY_SIZE(codes); i++) {
        if (codes[i].sqlite == (sqlite & 0xff))
            code = codes[i].code;
    }
    if (index->db && sqlite3_extended_errcode(index->db) == SQLITE_IOERR_SHORT_READ)
        code = EBADMSG; /* the file became shorter while it was in use */
    if (code == ETIMEDOUT && index->stop && atomic_load(index->stop))
        code = ECANCELED;
    as_error_set(error, "index of the action log %s: %s: %s", index->path, what,
                 code == ETIMEDOUT ? "it takes too long"
                                   : (index->db ? sqlite3_errmsg(index->db) : "no memory"));
    return -code;
}

static int index_on_progress(void *context)
{
    const struct as_log_index *index = context;
    return (index->stop && atomic_load(index->stop)) ||
           (index->deadline.us != AS_MONO_NEVER.us &&
            as_system_clock.get_mono(&as_system_clock).us > index->deadline.us);
}

static void index_close_db(struct as_log_index *index)
{
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        sqlite3_finalize(index->statements[i]);
        index->statements[i] = NULL;
    }
    sqlite3_close(index->db);
    index->db = NULL;
}

static void index_forget_parts(struct as_log_index *index)
{
    for (size_t i = 0; i < index->part_count; i++)
        free(index->parts[i].path);
    index->part_count = 0;
}

static int index_read_number(struct as_log_index *index, const char *sql, int64_t *number_out,
                             struct as_error *error)
{
    sqlite3_stmt *statement = NULL;
    int status = 0;
    if (sqlite3_prepare_v2(index->db, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        status = index_fail(index, "open", error);
    else
        *number_out = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return status;
}

static int index_execute(struct as_log_index *index, const char *sql, const char *what,
                         struct as_error *error)
{
    return sqlite3_exec(index->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : index_fail(index, what, error);
}

/* 0 and `is_empty_out`; -EEXIST: it belongs to another program; -EBADMSG: it must be built anew. */
static int index_check_owner(struct as_log_index *index, bool *is_empty_out, struct as_error *error)
{
    int64_t application = 0, version = 0, tables = 0;
    int status = index_read_number(index, "PRAGMA application_id", &application, error);
    if (status == 0)
        status = index_read_number(index, "PRAGMA user_version", &version, error);
    if (status == 0)
        status = index_read_number(index, "SELECT count(*) FROM sqlite_schema", &tables, error);
    if (status != 0)
        return status;
    *is_empty_out = tables == 0;
    if (tables > 0 && application != INDEX_APPLICATION) {
        as_error_set(error,
                     "index of the action log %s: this is a database of another program: move it "
                     "away",
                     index->path);
        return -EEXIST;
    }
    if (tables > 0 && version != INDEX_VERSION) {
        as_error_set(error, "index of the action log %s: another version wrote it", index->path);
        return -EBADMSG;
    }
    return 0;
}

static int index_create(struct as_log_index *index, struct as_error *error)
{
    char sql[160];
    int status = index_execute(index, index_schema, "create", error);
    (void)snprintf(sql, sizeof(sql), "PRAGMA application_id=%d;PRAGMA user_version=%d;COMMIT;",
                   INDEX_APPLICATION, INDEX_VERSION);
    return status != 0 ? status : index_execute(index, sql, "create", error);
}

static int index_prepare_all(struct as_log_index *index, struct as_error *error)
{
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        if (sqlite3_prepare_v3(index->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &index->statements[i], NULL) != SQLITE_OK)
            return index_fail(index, "prepare", error);
    }
    return 0;
}

static int check_free(const struct as_log_index *index, struct as_error *error)
{
    struct statvfs info;
    if (index->free_min == 0 || statvfs(index->directory, &info) != 0 ||
        (uint64_t)info.f_bavail * info.f_frsize >= index->free_min)
        return 0;
    as_error_set(error,
                 "index of the action log %s: the disk has less than %llu bytes free, which the "
                 "action log and the state may need: make room",
                 index->path, (unsigned long long)index->free_min);
    return -ENOSPC;
}

static int index_open_file(struct as_log_index *index, struct as_error *error)
{
    /* Records of a target are on pages far from each other: larger pages are fewer reads. A mapped
     * file would end the process with SIGBUS when the disk fails, so that mmap_size stays 0. */
    static const char settings[] = "PRAGMA page_size=8192;" /* of a new file */
                                   "PRAGMA locking_mode=EXCLUSIVE;"
                                   "PRAGMA trusted_schema=OFF;"
                                   "PRAGMA cell_size_check=ON;"
                                   "PRAGMA temp_store=MEMORY;"
                                   "PRAGMA cache_size=-16384;"
                                   "PRAGMA synchronous=NORMAL;";
    static const char journal[] = "PRAGMA journal_mode=WAL;"
                                  "PRAGMA wal_autocheckpoint=4000;"
                                  "PRAGMA journal_size_limit=16777216;";
    bool is_empty = false;
    int fd;
    int status = as_file_open(index->path, AS_FILE_OWN, O_RDWR, &fd, NULL);
    if (status == -ENOENT) {
        status = check_free(index, error);
        if (status != 0)
            return status;
        status = as_file_create(AT_FDCWD, index->path, O_RDWR, 0640, &fd);
    }
    if (status != 0) {
        as_error_set_errno(error, status, "index of the action log %s", index->path);
        return status;
    }
    close(fd);
    as_sqlite_set_memory();
    if (sqlite3_open_v2(index->path, &index->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return index_fail(index, "open", error);
    sqlite3_progress_handler(index->db, PROGRESS_STEPS, index_on_progress, index);
    status = index_execute(index, settings, "open", error);
    if (status == 0)
        status = index_check_owner(index, &is_empty, error);
    if (status == 0)
        status = index_execute(index, journal, "open", error);
    if (status == 0)
        status = is_empty ? index_create(index, error)
                          : index_execute(index, "BEGIN IMMEDIATE; ROLLBACK;", "lock", error);
    return status != 0 ? status : index_prepare_all(index, error);
}

/* After a failure there is no database: the next call opens it again. */
static int index_open_db(struct as_log_index *index, struct as_error *error)
{
    const int status = index_open_file(index, error);
    if (status != 0)
        index_close_db(index);
    return status;
}

static int index_delete(const struct as_log_index *index, struct as_error *error)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(ends); i++) {
        AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s%s", index->path, ends[i]);
        if (unlink(path) != 0 && errno != ENOENT) {
            const int code = errno;
            as_error_set_errno(error, code, "index of the action log %s: delete", path);
            return -code;
        }
    }
    return 0;
}

/* If the database is damaged, begins with an empty one. `error` says why. */
static int index_rebuild_if_damaged(struct as_log_index *index, int status, struct as_error *error)
{
    if (status != -EBADMSG)
        return status;
    as_log(AS_LOG_WARN, "the index of the action log is built again", AS_F("file", index->path),
           AS_F("error", error->text));
    index->rebuilt++;
    index_close_db(index);
    index_forget_parts(index);
    status = index_delete(index, error);
    return status != 0 ? status : index_open_db(index, error);
}

int as_log_index_open(const struct as_log_index_config *config, struct as_log_index **index_out,
                      struct as_error *error)
{
    struct as_log_index *index = as_xcalloc(1, sizeof(*index));
    const char *slash = strrchr(config->log_path, '/');
    index->path = as_log_index_make_path(config->log_path);
    index->log_path = as_xstrdup(config->log_path);
    index->directory = slash ? as_xstrndup(config->log_path, (size_t)(slash - config->log_path) +
                                                                 (slash == config->log_path))
                             : as_xstrdup(".");
    index->log_name = index->log_path + (slash ? (size_t)(slash + 1 - config->log_path) : 0);
    index->free_min = config->free_min;
    index->stop = config->stop;
    index->deadline = AS_MONO_NEVER;
    index->has_gone = true; /* perhaps, from the last process */
    index->block = AS_BUF_INIT_OPEN(AS_LOG_INDEX_LINE_MAX + READ_SIZE);
    index->texts = AS_BUF_INIT_OPEN(TEXTS_MAX);
    json_scan_init(&index->scan, 3);
    const int status = index_rebuild_if_damaged(index, index_open_db(index, error), error);
    if (status != 0)
        as_log_index_close(index);
    else
        *index_out = index;
    return status;
}

struct as_log_index *as_log_index_close(struct as_log_index *index)
{
    if (!index)
        return NULL;
    index_close_db(index);
    index_forget_parts(index);
    free(index->parts);
    as_buf_deinit(&index->block);
    as_buf_deinit(&index->texts);
    json_scan_deinit(&index->scan);
    free(index->path);
    free(index->log_path);
    free(index->directory);
    free(index);
    return NULL;
}

/* Runs a statement without rows. */
static int index_run(struct as_log_index *index, enum statement number, struct as_error *error)
{
    sqlite3_stmt *statement = index->statements[number];
    const bool is_done = sqlite3_step(statement) == SQLITE_DONE;
    const int status = is_done ? 0 : index_fail(index, "write", error);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

/* The first column of the first row: 0; 1: there is no row. */
static int index_get(struct as_log_index *index, enum statement number, int64_t *value_out,
                     struct as_error *error)
{
    sqlite3_stmt *statement = index->statements[number];
    const int code = sqlite3_step(statement);
    int status = code == SQLITE_DONE ? 1 : 0;
    if (code == SQLITE_ROW)
        *value_out = sqlite3_column_int64(statement, 0);
    else if (code != SQLITE_DONE)
        status = index_fail(index, "read", error);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

static void index_bind(struct as_log_index *index, enum statement number, int at, int64_t value)
{
    (void)sqlite3_bind_int64(index->statements[number], at, value);
}

static void index_bind_text(struct as_log_index *index, enum statement number, int at,
                            const char *text)
{
    (void)sqlite3_bind_text(index->statements[number], at, text, -1, SQLITE_STATIC);
}

static void index_bind_bytes(struct as_log_index *index, enum statement number, int at,
                             const void *bytes, size_t size)
{
    (void)sqlite3_bind_blob64(index->statements[number], at, bytes, size, SQLITE_STATIC);
}

static void index_roll_back(struct as_log_index *index)
{
    if (index->db && !sqlite3_get_autocommit(index->db)) {
        (void)sqlite3_step(index->statements[INDEX_ROLLBACK]);
        (void)sqlite3_reset(index->statements[INDEX_ROLLBACK]);
    }
}

/*
 * The log's files.
 */

static bool pread_all(int fd, void *bytes, size_t size, uint64_t at)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t n = pread(fd, (char *)bytes + done, size - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* Opens the part, if it is still the scanned file. */
static int part_open(const struct log_part *part, int *fd_out)
{
    struct stat info;
    int fd = -1;
    const int status = as_file_open(part->path, AS_FILE_OWN, O_RDONLY, &fd, &info);
    if (status != 0)
        return status;
    if (info.st_ino != part->inode) {
        close(fd);
        return -ENOENT;
    }
    *fd_out = fd;
    return 0;
}

/* Whether the file has these bytes at this place. */
static bool part_has(int fd, uint64_t at, const void *bytes, size_t size)
{
    char found[MARK_SIZE];
    return size <= sizeof(found) && pread_all(fd, found, size, at) &&
           memcmp(found, bytes, size) == 0;
}

/* Whether the row of FILE_FIND is about this file. */
static bool part_is_indexed(const struct log_part *part, sqlite3_stmt *row)
{
    const uint64_t done = (uint64_t)sqlite3_column_int64(row, 1);
    const size_t head = (size_t)sqlite3_column_bytes(row, 2);
    const size_t tail = (size_t)sqlite3_column_bytes(row, 3);
    int fd;
    if (done > part->size || tail > done || part_open(part, &fd) != 0)
        return false;
    const bool is_same =
        (head == 0 || part_has(fd, 0, sqlite3_column_blob(row, 2), head)) &&
        (tail == 0 || part_has(fd, done - tail, sqlite3_column_blob(row, 3), tail));
    close(fd);
    return is_same;
}

/* Files that have some of its records too are read again: a record is in the index once. */
static int index_mark_gone(struct as_log_index *index, int64_t number, struct as_error *error)
{
    index->has_gone = index->reads_again = true;
    index_bind(index, FILE_MARK_GONE, 1, number);
    const int status = index_run(index, FILE_MARK_GONE, error);
    if (status != 0)
        return status;
    index_bind(index, FILE_READ_AGAIN, 1, number);
    return index_run(index, FILE_READ_AGAIN, error);
}

/* Finds or makes the row of a part. */
static int part_find_row(struct as_log_index *index, struct log_part *part, struct as_error *error)
{
    int64_t others[8]; /* files that had the inode before; further ones are found next time */
    size_t other_count = 0;
    sqlite3_stmt *find = index->statements[FILE_FIND];
    int code, status = 0;
    index_bind(index, FILE_FIND, 1, (int64_t)part->inode);
    while ((code = sqlite3_step(find)) == SQLITE_ROW) {
        if (part->number == 0 && part_is_indexed(part, find)) {
            part->number = sqlite3_column_int64(find, 0);
            part->done = (uint64_t)sqlite3_column_int64(find, 1);
        } else if (other_count < AS_ARRAY_SIZE(others)) {
            others[other_count++] = sqlite3_column_int64(find, 0);
        }
    }
    if (code != SQLITE_DONE)
        status = index_fail(index, "read", error);
    sqlite3_reset(find);
    for (size_t i = 0; status == 0 && i < other_count; i++)
        status = index_mark_gone(index, others[i], error);
    if (status != 0 || part->number != 0)
        return status;
    index_bind(index, FILE_INSERT, 1, (int64_t)part->inode);
    status = index_run(index, FILE_INSERT, error);
    part->number = sqlite3_last_insert_rowid(index->db);
    return status;
}

static struct log_part *index_find_part(const struct as_log_index *index, int64_t number)
{
    for (size_t i = 0; i < index->part_count; i++) {
        if (index->parts[i].number == number)
            return &index->parts[i];
    }
    return NULL;
}

/* The files of rows that no part has are gone. */
static int index_find_gone(struct as_log_index *index, struct as_error *error)
{
    int64_t gone[64]; /* further ones are found by the next scan */
    size_t count = 0;
    sqlite3_stmt *all = index->statements[FILE_ALL];
    int code, status = 0;
    while ((code = sqlite3_step(all)) == SQLITE_ROW) {
        const int64_t number = sqlite3_column_int64(all, 0);
        if (!index_find_part(index, number) && count < AS_ARRAY_SIZE(gone))
            gone[count++] = number;
    }
    if (code != SQLITE_DONE)
        status = index_fail(index, "read", error);
    sqlite3_reset(all);
    for (size_t i = 0; status == 0 && i < count; i++)
        status = index_mark_gone(index, gone[i], error);
    return status;
}

static bool part_stat(const struct as_log_index *index, const char *name, struct log_part *part_out)
{
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/%s", index->directory, name);
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    *part_out = (struct log_part){
        .path = path,
        .inode = info.st_ino,
        .size = (uint64_t)info.st_size,
        .modified = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec,
        .is_newest = strcmp(name, index->log_name) == 0,
    };
    path = NULL;
    return true;
}

/* Carries over what the last scan knew of a file that did not get another name. */
static void part_carry_over(const struct as_log_index *index, struct log_part *part)
{
    for (size_t i = 0; i < index->part_count; i++) {
        const struct log_part *old = &index->parts[i];
        if (old->inode != part->inode || strcmp(old->path, part->path) != 0 ||
            (old->size != part->size && !(old->number && part->size > old->size)))
            continue;
        if (old->size == part->size) {
            part->number = old->number;
            part->done = old->done;
        }
        part->read = old->read;
        part->skips = old->skips;
        return;
    }
}

static int part_compare(const void *left, const void *right)
{
    const struct log_part *a = left, *b = right;
    if (a->is_newest != b->is_newest)
        return a->is_newest ? -1 : 1;
    return (a->modified < b->modified) - (a->modified > b->modified);
}

static int index_list(struct as_log_index *index, struct log_part **parts_out, size_t *count_out,
                      size_t *capacity_out, struct as_error *error)
{
    struct log_part *parts = NULL;
    size_t count = 0, capacity = 0;
    DIR *directory = opendir(index->directory);
    if (!directory) {
        const int code = errno;
        as_error_set_errno(error, code, "action log: read the folder %s", index->directory);
        return -code;
    }
    for (struct dirent *entry; count < FILES_MAX && (entry = readdir(directory));) {
        struct log_part part;
        if (!as_audit_file_is_history(index->log_name, entry->d_name) ||
            !part_stat(index, entry->d_name, &part))
            continue;
        part_carry_over(index, &part);
        parts = as_xgrow(parts, count, &capacity, sizeof(*parts));
        parts[count++] = part;
    }
    closedir(directory);
    if (count > 0)
        qsort(parts, count, sizeof(*parts), part_compare);
    *parts_out = parts;
    *count_out = count;
    *capacity_out = capacity;
    return 0;
}

static int index_update_done(struct as_log_index *index, struct as_error *error)
{
    int status = 0;
    for (size_t i = 0; status == 0 && index->reads_again && i < index->part_count; i++) {
        struct log_part *part = &index->parts[i];
        int64_t done = 0;
        index_bind(index, FILE_DONE, 1, part->number);
        status = index_get(index, FILE_DONE, &done, error);
        if (status == 0 && (uint64_t)done < part->done)
            part->read = part->done = (uint64_t)done;
    }
    index->reads_again = index->reads_again && status != 0;
    return status > 0 ? 0 : status;
}

static int index_scan(struct as_log_index *index, struct as_error *error)
{
    struct log_part *parts = NULL;
    size_t count = 0, capacity = 0;
    int status = index_list(index, &parts, &count, &capacity, error);
    if (status != 0)
        return status;
    index_forget_parts(index);
    free(index->parts);
    index->parts = parts;
    index->part_count = count;
    index->part_capacity = capacity;
    status = index_run(index, INDEX_BEGIN, error);
    for (size_t i = 0; status == 0 && i < count; i++) {
        if (parts[i].number == 0)
            status = part_find_row(index, &parts[i], error);
    }
    if (status == 0)
        status = index_find_gone(index, error);
    if (status == 0)
        status = index_update_done(index, error);
    if (status == 0)
        status = index_run(index, INDEX_COMMIT, error);
    if (status != 0) {
        index_roll_back(index);
        index_forget_parts(index); /* their rows may be gone */
    }
    return status;
}

/*
 * One record.
 */

enum record_text {
    TEXT_ID,
    TEXT_KIND,
    TEXT_TIME,
    TEXT_TARGET,
    TEXT_TARGET_NAME,
    TEXT_RULE,
    TEXT_OUTCOME,
    TEXT_EVENT,
    TEXT_OUTPUT_RULE,
    TEXT_OUTPUT_REASON,
    TEXT_OUTPUT_DIRECTION,
    TEXT_COUNT
};
enum record_number {
    NUMBER_SEQ,
    NUMBER_FROM,
    NUMBER_TO,
    NUMBER_REPEATS,
    NUMBER_OUTPUT_REPLICAS,
    NUMBER_OUTPUT_DESIRED,
    NUMBER_OUTPUT_WOULD,
    NUMBER_COUNT
};

struct record_member {
    bool is_of_output; /* of a decision's output; else of the record itself */
    const char *name;
    int text, number; /* one of the two; the other is -1 */
};

static const struct record_member record_members[] = {
    {false, "id", TEXT_ID, -1},
    {false, "kind", TEXT_KIND, -1},
    {false, "time", TEXT_TIME, -1},
    {false, "target", TEXT_TARGET, -1},
    {false, "target_name", TEXT_TARGET_NAME, -1},
    {false, "rule", TEXT_RULE, -1},
    {false, "outcome", TEXT_OUTCOME, -1},
    {false, "ended", TEXT_OUTCOME, -1},
    {false, "event", TEXT_EVENT, -1},
    {false, "seq", -1, NUMBER_SEQ},
    {false, "from", -1, NUMBER_FROM},
    {false, "to", -1, NUMBER_TO},
    {false, "repeats", -1, NUMBER_REPEATS},
    {true, "rule", TEXT_OUTPUT_RULE, -1},
    {true, "reason", TEXT_OUTPUT_REASON, -1},
    {true, "direction", TEXT_OUTPUT_DIRECTION, -1},
    {true, "replicas", -1, NUMBER_OUTPUT_REPLICAS},
    {true, "desired", -1, NUMBER_OUTPUT_DESIRED},
    {true, "would", -1, NUMBER_OUTPUT_WOULD},
};

struct parsed_record {
    struct as_buf *texts; /* NUL-terminated */
    size_t at[TEXT_COUNT];
    bool has_text[TEXT_COUNT], has_number[NUMBER_COUNT];
    int64_t numbers[NUMBER_COUNT];
    size_t targets_at[TARGETS_MAX]; /* ids of an incident's targets */
    size_t target_count;
    struct json_part { /* of the line */
        const char *bytes;
        size_t size;
    } proposals, results; /* lists of a decision: `input.proposals` and `output.proposals` */
};

static const char *parsed_find(const struct parsed_record *parsed, enum record_text text)
{
    return parsed->has_text[text] ? parsed->texts->data + parsed->at[text] : NULL;
}

static size_t parsed_keep(struct parsed_record *parsed, const struct json_scan *scan)
{
    const size_t at = parsed->texts->size;
    const char *nul = memchr(scan->text, '\0', scan->text_size);
    as_buf_append(parsed->texts, scan->text, nul ? (size_t)(nul - scan->text) : scan->text_size);
    as_buf_append_char(parsed->texts, '\0');
    return at;
}

static const struct record_member *find_record_member(bool is_of_output, const char *name,
                                                      size_t size)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(record_members); i++) {
        const struct record_member *member = &record_members[i];
        if (member->is_of_output == is_of_output && strlen(member->name) == size &&
            memcmp(member->name, name, size) == 0)
            return member;
    }
    return NULL;
}

static bool scan_has_name(const struct json_scan *scan, const char *name)
{
    return scan->text_size == strlen(name) && memcmp(scan->text, name, scan->text_size) == 0;
}

enum record_part { IN_OTHER, IN_INPUT, IN_OUTPUT, IN_TARGETS };

static struct json_part *parsed_get_list(struct parsed_record *parsed, enum record_part parent)
{
    return parent == IN_INPUT ? &parsed->proposals : parent == IN_OUTPUT ? &parsed->results : NULL;
}

/* Reads the members of one line. False: it is no record. */
static bool record_parse(struct json_scan *scan, const char *line, size_t size,
                         struct parsed_record *parsed)
{
    enum record_part parent = IN_OTHER;
    const struct record_member *member = NULL;
    struct json_part *list = NULL; /* which is open, or begins with the next token */
    const char *name_end = line;
    bool is_target = false;
    enum json_token token;
    json_scan_deinit(scan);
    json_scan_init(scan, 3);
    json_scan_feed(scan, line, size);
    while ((token = json_scan_next(scan)) != JSON_TOKEN_MORE && token != JSON_TOKEN_ERROR) {
        const struct record_member *known = member;
        const bool was_target = is_target;
        member = NULL;
        is_target = false;
        if (token == JSON_TOKEN_NAME) {
            name_end = scan->at;
            if (scan->depth == 1)
                parent = scan_has_name(scan, "input")     ? IN_INPUT
                         : scan_has_name(scan, "output")  ? IN_OUTPUT
                         : scan_has_name(scan, "targets") ? IN_TARGETS
                                                          : IN_OTHER;
            if (scan->depth == 1 || (scan->depth == 2 && parent == IN_OUTPUT))
                member = find_record_member(scan->depth == 2, scan->text, scan->text_size);
            if (scan->depth <= 2)
                list = scan->depth == 2 && scan_has_name(scan, "proposals")
                           ? parsed_get_list(parsed, parent)
                           : NULL;
            is_target = scan->depth == 3 && parent == IN_TARGETS && scan_has_name(scan, "target");
            scan->wants_text = (member && member->text >= 0) || is_target;
        } else if (token == JSON_TOKEN_STRING && known && known->text >= 0) {
            parsed->has_text[known->text] = true;
            parsed->at[known->text] = parsed_keep(parsed, scan);
        } else if (token == JSON_TOKEN_STRING && was_target && parsed->target_count < TARGETS_MAX) {
            parsed->targets_at[parsed->target_count++] = parsed_keep(parsed, scan);
        } else if (token == JSON_TOKEN_ARRAY && list && scan->depth == 3) {
            list->bytes = scan->at - 1;
        } else if (token == JSON_TOKEN_CLOSE && list && list->bytes && scan->depth == 2) {
            list->size = (size_t)(scan->at - list->bytes);
            list = NULL;
        } else if (token == JSON_TOKEN_OTHER && known && known->number >= 0) {
            /* canonical: a colon and no white space */
            parsed->has_number[known->number] =
                as_number_parse_i64(name_end + 1, (size_t)(scan->at - name_end - 1),
                                    &parsed->numbers[known->number]) == 0;
        }
    }
    return token == JSON_TOKEN_MORE && !json_scan_is_inside(scan) &&
           as_buf_check(parsed->texts) == 0;
}

/* Its first twelve characters. Ids begin with their time, so that new keys are near each other. */
static int64_t make_id_key(const char *id)
{
    uint64_t key = 0;
    for (int i = 0; i < 12 && id[i]; i++)
        key = key << 5 | ((unsigned char)id[i] & 31U);
    return (int64_t)key;
}

/* The number of a word; NULL and 0: none. Makes it if it is new. */
static int index_get_word(struct as_log_index *index, const char *text, int64_t *number_out,
                          struct as_error *error)
{
    *number_out = 0;
    if (as_str_is_empty(text))
        return 0;
    index_bind_text(index, WORD_FIND, 1, text);
    int status = index_get(index, WORD_FIND, number_out, error);
    if (status != 1)
        return status;
    index_bind_text(index, WORD_INSERT, 1, text);
    status = index_run(index, WORD_INSERT, error);
    *number_out = sqlite3_last_insert_rowid(index->db);
    return status;
}

/* `name` NULL: not known. Then a known name of the target is used. */
static int index_get_target(struct as_log_index *index, const char *id, const char *name,
                            int64_t *number_out, struct as_error *error)
{
    const enum statement find = name ? TARGET_FIND : TARGET_FIND_ID;
    *number_out = 0;
    if (as_str_is_empty(id))
        return 0;
    index_bind_text(index, find, 1, id);
    if (name)
        index_bind_text(index, find, 2, name);
    int status = index_get(index, find, number_out, error);
    if (status != 1)
        return status;
    index_bind_text(index, TARGET_INSERT, 1, id);
    index_bind_text(index, TARGET_INSERT, 2, name ? name : "");
    status = index_run(index, TARGET_INSERT, error);
    *number_out = sqlite3_last_insert_rowid(index->db);
    return status;
}

/* Of a record that was added before. */
static int index_add_place(struct as_log_index *index, int64_t target, int64_t seq, int64_t rule,
                           struct as_error *error)
{
    index_bind(index, PLACE_INSERT, 1, target);
    index_bind(index, PLACE_INSERT, 2, seq);
    const int status = index_run(index, PLACE_INSERT, error);
    if (status != 0 || rule == 0)
        return status;
    index_bind(index, RULE_TARGET_INSERT, 1, rule);
    index_bind(index, RULE_TARGET_INSERT, 2, target);
    return index_run(index, RULE_TARGET_INSERT, error);
}

static void bind_size(struct as_log_index *index, int at, const struct parsed_record *parsed,
                      enum record_number number)
{
    if (parsed->has_number[number])
        index_bind(index, RECORD_INSERT, at, parsed->numbers[number]);
}

static void bind_number(struct as_log_index *index, int at, int64_t number)
{
    if (number != 0)
        index_bind(index, RECORD_INSERT, at, number);
}

struct line_place {
    int64_t file;
    uint64_t at, size;
};

bool as_log_find_value(const json_t *proposals, const json_t *results, const char *rule,
                       double *value_out, double *goal_out)
{
    const json_t *proposal;
    size_t i;
    json_array_foreach(proposals, i, proposal)
    {
        const json_t *goals = json_object_get(json_object_get(proposal, "action"), "track");
        const json_t *goal = json_object_get(goals, "value");
        const json_t *value = json_object_get(json_array_get(results, i), "value");
        goal = goal ? goal : json_object_get(goals, "average_value");
        value = value ? value : json_object_get(proposal, "value");
        if (!as_str_equal(json_string_value(json_object_get(proposal, "rule")), rule) ||
            !json_is_number(goal) || !json_is_number(value))
            continue;
        *value_out = json_number_value(value);
        *goal_out = json_number_value(goal);
        return true;
    }
    return false;
}

static bool parsed_find_value(const struct parsed_record *parsed, const char *rule,
                              double *value_out, double *goal_out)
{
    static const char track[] = "\"track\":";
    const struct json_part *part = &parsed->proposals;
    if (as_str_is_empty(rule) || part->size == 0 || part->size > PROPOSALS_MAX ||
        parsed->results.size > PROPOSALS_MAX ||
        !memmem(part->bytes, part->size, track, sizeof(track) - 1))
        return false;
    json_t *proposals = json_loadb(part->bytes, part->size, 0, NULL);
    json_t *results = json_loadb(parsed->results.bytes, parsed->results.size, 0, NULL);
    const bool is_found = as_log_find_value(proposals, results, rule, value_out, goal_out);
    json_decref(results);
    json_decref(proposals);
    return is_found;
}

static int64_t get_minute(int64_t time)
{
    return time / AS_US_PER_MIN - (time % AS_US_PER_MIN < 0);
}

/* A decision or an action that was added before. */
static int index_add_minute(struct as_log_index *index, const struct parsed_record *parsed,
                            enum as_record_kind kind, as_wall_time time, int64_t target,
                            int64_t rule, int64_t file, struct as_error *error)
{
    const bool is_action = kind == AS_RECORD_ACTION;
    const int64_t minute = get_minute(time.us), at = time.us - minute * AS_US_PER_MIN;
    const enum record_number size = is_action ? NUMBER_TO : NUMBER_OUTPUT_REPLICAS;
    const bool is_applied = is_action && as_str_equal(parsed_find(parsed, TEXT_OUTCOME),
                                                      as_reason_get_word(AS_REASON_APPLIED));
    sqlite3_stmt *add = index->statements[MINUTE_ADD];
    double value, goal;
    index_bind(index, MINUTE_ADD, 1, target);
    index_bind(index, MINUTE_ADD, 2, minute);
    index_bind(index, MINUTE_ADD, 3, file);
    if (parsed->has_number[size] && (is_applied || !is_action)) {
        index_bind(index, MINUTE_ADD, 4, at);
        index_bind(index, MINUTE_ADD, 5, parsed->numbers[size]);
    }
    if (!is_action &&
        parsed_find_value(parsed, parsed_find(parsed, TEXT_OUTPUT_RULE), &value, &goal)) {
        index_bind(index, MINUTE_ADD, 6, at);
        index_bind(index, MINUTE_ADD, 7, rule);
        (void)sqlite3_bind_double(add, 8, value);
        (void)sqlite3_bind_double(add, 9, goal);
    }
    index_bind(index, MINUTE_ADD, 10, is_action);
    index_bind(index, MINUTE_ADD, 11, is_action && !is_applied);
    return index_run(index, MINUTE_ADD, error);
}

static int index_add_parsed(struct as_log_index *index, const struct parsed_record *parsed,
                            enum as_record_kind kind, as_wall_time time,
                            const struct line_place *place, struct as_error *error)
{
    const bool is_decision = kind == AS_RECORD_DECISION;
    const char *id = parsed_find(parsed, TEXT_ID);
    const char *reason =
        is_decision ? parsed_find(parsed, TEXT_OUTPUT_REASON) : parsed_find(parsed, TEXT_OUTCOME);
    const int64_t seq = parsed->numbers[NUMBER_SEQ];
    int64_t targets[TARGETS_MAX + 1], rule = 0, why = 0, direction = 0;
    size_t target_count = 0;
    int status = 0;
    if (!reason && !is_decision)
        reason = parsed_find(parsed, TEXT_EVENT);
    if (!as_str_is_empty(parsed_find(parsed, TEXT_TARGET))) {
        const char *name = parsed_find(parsed, TEXT_TARGET_NAME);
        status = index_get_target(index, parsed_find(parsed, TEXT_TARGET), name ? name : "",
                                  &targets[target_count++], error);
    }
    for (size_t i = 0; status == 0 && i < parsed->target_count; i++) {
        const char *other = parsed->texts->data + parsed->targets_at[i];
        if (*other)
            status = index_get_target(index, other, NULL, &targets[target_count++], error);
    }
    if (status == 0)
        status = index_get_word(
            index, parsed_find(parsed, is_decision ? TEXT_OUTPUT_RULE : TEXT_RULE), &rule, error);
    if (status == 0)
        status = index_get_word(index, reason, &why, error);
    if (status == 0)
        status =
            index_get_word(index, parsed_find(parsed, TEXT_OUTPUT_DIRECTION), &direction, error);
    if (status != 0)
        return status;
    index_bind(index, RECORD_INSERT, 1, seq);
    index_bind(index, RECORD_INSERT, 2, time.us);
    index_bind(index, RECORD_INSERT, 3, stored_kinds[kind]);
    index_bind_text(index, RECORD_INSERT, 4, id ? id : "");
    if (!as_str_is_empty(id))
        index_bind(index, RECORD_INSERT, 5, make_id_key(id));
    bind_number(index, 6, target_count > 0 ? targets[0] : 0);
    bind_number(index, 7, rule);
    bind_number(index, 8, why);
    bind_number(index, 9, direction);
    bind_size(index, 10, parsed, is_decision ? NUMBER_OUTPUT_REPLICAS : NUMBER_FROM);
    bind_size(index, 11, parsed, is_decision ? NUMBER_OUTPUT_DESIRED : NUMBER_TO);
    bind_size(index, 12, parsed, NUMBER_OUTPUT_WOULD);
    index_bind(index, RECORD_INSERT, 13, place->file);
    index_bind(index, RECORD_INSERT, 14, (int64_t)place->at);
    index_bind(index, RECORD_INSERT, 15, (int64_t)place->size);
    index_bind(index, RECORD_INSERT, 16, parsed->numbers[NUMBER_REPEATS]); /* 0: none */
    status = index_run(index, RECORD_INSERT, error);
    const bool is_new = status == 0 && sqlite3_changes(index->db) > 0; /* not in two files */
    for (size_t i = 0; status == 0 && i < target_count; i++)
        status = index_add_place(index, targets[i], seq, rule, error);
    if (is_new && status == 0 && target_count > 0 && (is_decision || kind == AS_RECORD_ACTION))
        status = index_add_minute(index, parsed, kind, time, targets[0], rule, place->file, error);
    return status;
}

static bool find_stored_kind(const char *word, enum as_record_kind *kind_out)
{
    for (int kind = 0; word && kind < AS_RECORD_KIND_COUNT; kind++) {
        if (strcmp(word, as_record_kind_get_word((enum as_record_kind)kind)) == 0) {
            *kind_out = (enum as_record_kind)kind;
            return stored_kinds[kind] != 0;
        }
    }
    return false;
}

/* Whether a glance shows that the line is a repeat: the kind stands in the record itself
 * if no other object begins before it. Most lines of a busy log are repeats. */
static bool line_is_repeat(const char *line, size_t size)
{
    static const char kind[] = ",\"kind\":\"repeat\",";
    const char *at = memmem(line, size, kind, sizeof(kind) - 1);
    return at && !memchr(line + 1, '{', (size_t)(at - line) - 1);
}

struct record_moment { /* of a record; seq 0: none */
    int64_t seq;
    as_wall_time time;
};

/* A line's members, until the next call. False: it is no record. */
static bool index_parse_line(struct as_log_index *index, const char *line, size_t size,
                             struct parsed_record *parsed_out, struct record_moment *moment_out)
{
    as_wall_time time;
    *parsed_out = (struct parsed_record){.texts = &index->texts};
    as_buf_clear(&index->texts);
    if (!record_parse(&index->scan, line, size, parsed_out))
        return false;
    const char *at = parsed_find(parsed_out, TEXT_TIME);
    const int64_t seq = parsed_out->numbers[NUMBER_SEQ];
    if (!at || as_wall_time_parse(at, strlen(at), &time) != 0 ||
        !parsed_out->has_number[NUMBER_SEQ] || seq < 1 || seq == INT64_MAX)
        return false;
    *moment_out = (struct record_moment){seq, time};
    return true;
}

/* `moment_out` is not set for most repeats. */
static int index_add_line(struct as_log_index *index, const char *line,
                          const struct line_place *place, struct record_moment *moment_out,
                          struct as_error *error)
{
    struct parsed_record parsed;
    enum as_record_kind kind;
    *moment_out = (struct record_moment){0};
    if (line_is_repeat(line, (size_t)place->size))
        return 0;
    if (!index_parse_line(index, line, (size_t)place->size, &parsed, moment_out)) {
        index->unreadable++;
        return 0;
    }
    if (!find_stored_kind(parsed_find(&parsed, TEXT_KIND), &kind))
        return 0;
    return index_add_parsed(index, &parsed, kind, moment_out->time, place, error);
}

/*
 * One step.
 */

struct moment_range {
    struct record_moment first, last; /* by number; seq 0: empty */
};

static void range_add(struct moment_range *range, const struct record_moment *moment)
{
    if (moment->seq > 0 && (range->first.seq == 0 || moment->seq < range->first.seq))
        range->first = *moment;
    if (moment->seq > range->last.seq)
        range->last = *moment;
}

/* Stores how far the part is indexed, with its first and last bytes. */
static int part_store(struct as_log_index *index, const struct log_part *part, int fd,
                      uint64_t done, const struct moment_range *range, struct as_error *error)
{
    char head[MARK_SIZE], tail[MARK_SIZE];
    const size_t size = done < MARK_SIZE ? (size_t)done : MARK_SIZE;
    if (!pread_all(fd, head, size, 0) || !pread_all(fd, tail, size, done - size)) {
        as_error_set(error, "%s: it became shorter", part->path);
        return -EAGAIN;
    }
    index_bind(index, FILE_UPDATE, 1, part->number);
    index_bind(index, FILE_UPDATE, 2, (int64_t)done);
    index_bind_bytes(index, FILE_UPDATE, 3, head, size);
    index_bind_bytes(index, FILE_UPDATE, 4, tail, size);
    index_bind(index, FILE_UPDATE, 5, range->last.seq > 0 ? range->first.seq : INT64_MAX);
    index_bind(index, FILE_UPDATE, 6, range->last.seq);
    index_bind(index, FILE_UPDATE, 7, range->first.time.us);
    index_bind(index, FILE_UPDATE, 8, range->last.time.us);
    return index_run(index, FILE_UPDATE, error);
}

/* Adds the whole lines of the block, which begins at `done` in the file. */
static int index_add_lines(struct as_log_index *index, const struct log_part *part, uint64_t done,
                           size_t whole, struct moment_range *range, struct as_error *error)
{
    const char *block = index->block.data, *at = block;
    int status = 0;
    while (status == 0 && at < block + whole) {
        const char *newline = memchr(at, '\n', (size_t)(block + whole - at));
        const size_t size = (size_t)(newline - at);
        const struct line_place place = {part->number, done + (uint64_t)(at - block), size};
        const bool is_outer = at == block || newline + 1 == block + whole;
        struct record_moment moment;
        struct parsed_record parsed;
        status = index_add_line(index, at, &place, &moment, error);
        if (status == 0 && moment.seq == 0 && is_outer) /* a repeat, perhaps */
            (void)index_parse_line(index, at, size, &parsed, &moment);
        range_add(range, &moment);
        at = newline + 1;
    }
    return status;
}

/* Reads a block of the file. False: the file has become shorter. */
static bool index_read_block(struct as_log_index *index, int fd, uint64_t from, size_t size)
{
    as_buf_clear(&index->block);
    char *bytes = as_buf_reserve(&index->block, size);
    if (!bytes || !pread_all(fd, bytes, size, from))
        return false;
    index->block.size = size;
    return true;
}

/* In one transaction, block after block, as long as each has a whole line. */
static int part_add_blocks(struct as_log_index *index, struct log_part *part, int fd, size_t size,
                           struct as_error *error)
{
    const int64_t until = as_system_clock.get_mono(&as_system_clock).us + STEP_US;
    struct moment_range range = {0};
    uint64_t done = part->done, read = part->done;
    int status = index_run(index, INDEX_BEGIN, error);
    while (status == 0 && read < part->size) {
        const uint64_t rest = part->size - done;
        const size_t wanted = rest < size ? (size_t)rest : size;
        if (!index_read_block(index, fd, done, wanted)) {
            part->size = done;
            break;
        }
        read = done + wanted;
        const char *newline = memrchr(index->block.data, '\n', wanted);
        if (!newline)
            break;
        const size_t whole = (size_t)(newline + 1 - index->block.data);
        status = index_add_lines(index, part, done, whole, &range, error);
        done += whole;
        if (done - part->done >= STEP_MIN && as_system_clock.get_mono(&as_system_clock).us >= until)
            break;
    }
    if (status == 0 && done > part->done)
        status = part_store(index, part, fd, done, &range, error);
    if (status == 0)
        status = index_run(index, INDEX_COMMIT, error);
    if (status != 0) {
        index_roll_back(index);
        return status;
    }
    part->skips = done == part->done && size == AS_LOG_INDEX_LINE_MAX && read < part->size;
    part->read = done == part->done ? read : done;
    part->done = done;
    return 0;
}

/* A line that is longer than the limit: passes over it, piece by piece. */
static int part_skip(struct as_log_index *index, struct log_part *part, int fd,
                     struct as_error *error)
{
    const char *newline = memchr(index->block.data, '\n', index->block.size);
    part->read += newline ? (uint64_t)(newline + 1 - index->block.data) : index->block.size;
    if (!newline)
        return 0;
    const struct moment_range none = {0};
    int status = part_store(index, part, fd, part->read, &none, error);
    if (status != 0)
        return status;
    index->unreadable++;
    part->done = part->read;
    part->skips = false;
    return 0;
}

static int part_step(struct as_log_index *index, struct log_part *part, struct as_error *error)
{
    int fd;
    int status = part_open(part, &fd);
    if (status == -ENOENT) {
        part->size = part->done; /* renamed or deleted: the next scan finds it */
        return 0;
    }
    if (status != 0) {
        as_error_set_errno(error, status, "action log %s", part->path);
        return status;
    }
    size_t size = READ_SIZE;
    if (part->skips) {
        const uint64_t rest = part->size - part->read;
        if (index_read_block(index, fd, part->read, rest < size ? (size_t)rest : size))
            status = part_skip(index, part, fd, error);
        else
            part->size = part->done;
    } else {
        if (part->read > part->done) /* a long line: with twice as much */
            size = (size_t)(part->read - part->done) * 2;
        status = part_add_blocks(
            index, part, fd,
            size < READ_SIZE ? READ_SIZE
                             : (size > AS_LOG_INDEX_LINE_MAX ? AS_LOG_INDEX_LINE_MAX : size),
            error);
    }
    close(fd);
    return status;
}

/* Something of the part was not read yet. */
static bool part_has_more(const struct log_part *part)
{
    return part->done < part->size && part->read < part->size;
}

/* The earliest and the latest time of records of a file; unchanged: there are none. */
static int index_find_times(struct as_log_index *index, int64_t file, int64_t first, int64_t last,
                            int64_t times_out[2], struct as_error *error)
{
    const enum statement finds[] = {TIME_FIRST, TIME_LAST};
    int status = 0;
    for (size_t i = 0; status == 0 && i < AS_ARRAY_SIZE(finds); i++) {
        sqlite3_stmt *find = index->statements[finds[i]];
        index_bind(index, finds[i], 1, first);
        index_bind(index, finds[i], 2, last);
        index_bind(index, finds[i], 3, file);
        if (sqlite3_step(find) != SQLITE_ROW)
            status = index_fail(index, "read", error);
        else if (sqlite3_column_type(find, 0) != SQLITE_NULL)
            times_out[i] = sqlite3_column_int64(find, 0);
        sqlite3_reset(find);
        sqlite3_clear_bindings(find);
    }
    return status;
}

/* Forgets some records of a file that is gone. `is_done_out`: there is no such file. */
static int index_forget(struct as_log_index *index, bool *is_done_out, struct as_error *error)
{
    sqlite3_stmt *find = index->statements[FILE_FIND_GONE];
    int64_t number = 0, first = 0, last = 0, end = 0;
    const int code = sqlite3_step(find);
    if (code == SQLITE_ROW) {
        number = sqlite3_column_int64(find, 0);
        first = sqlite3_column_int64(find, 1);
        last = sqlite3_column_int64(find, 2);
    }
    sqlite3_reset(find);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return index_fail(index, "read", error);
    *is_done_out = code == SQLITE_DONE;
    if (code == SQLITE_DONE)
        return 0;
    int status = index_run(index, INDEX_BEGIN, error);
    index_bind(index, RECORD_LAST, 1, first);
    index_bind(index, RECORD_LAST, 2, number);
    index_bind(index, RECORD_LAST, 3, FORGET_RECORDS);
    if (status == 0)
        status = index_get(index, RECORD_LAST, &end, error);
    const bool is_last = status == 1;
    end = is_last ? last : end - 1;
    status = status == 1 ? 0 : status;
    int64_t times[2] = {0, -AS_US_PER_MIN}; /* of no minute */
    if (status == 0)
        status = index_find_times(index, number, first, end, times, error);
    sqlite3_stmt *targets = index->statements[TARGET_ALL];
    int step = SQLITE_DONE;
    while (status == 0 && (step = sqlite3_step(targets)) == SQLITE_ROW) {
        index_bind(index, PLACE_FORGET, 1, sqlite3_column_int64(targets, 0));
        index_bind(index, PLACE_FORGET, 2, first);
        index_bind(index, PLACE_FORGET, 3, end);
        index_bind(index, PLACE_FORGET, 4, number);
        status = index_run(index, PLACE_FORGET, error);
        index_bind(index, MINUTE_FORGET, 1, sqlite3_column_int64(targets, 0));
        index_bind(index, MINUTE_FORGET, 2, get_minute(times[0]));
        index_bind(index, MINUTE_FORGET, 3, get_minute(times[1]));
        index_bind(index, MINUTE_FORGET, 4, number);
        if (status == 0)
            status = index_run(index, MINUTE_FORGET, error);
    }
    if (status == 0 && step != SQLITE_DONE)
        status = index_fail(index, "read", error);
    sqlite3_reset(targets);
    index_bind(index, RECORD_FORGET, 1, first);
    index_bind(index, RECORD_FORGET, 2, end);
    index_bind(index, RECORD_FORGET, 3, number);
    if (status == 0)
        status = index_run(index, RECORD_FORGET, error);
    index_bind(index, FILE_DELETE, 1, number);
    index_bind(index, FILE_SHRINK, 1, number);
    index_bind(index, FILE_SHRINK, 2, end + 1);
    if (status == 0)
        status = index_run(index, is_last ? FILE_DELETE : FILE_SHRINK, error);
    if (status == 0 && is_last)
        status = index_run(index, TARGET_PRUNE, error);
    if (status == 0 && is_last)
        status = index_run(index, RULE_TARGET_PRUNE, error);
    if (status == 0 && is_last)
        status = index_run(index, WORD_PRUNE, error);
    if (status == 0)
        status = index_run(index, INDEX_COMMIT, error);
    if (status != 0)
        index_roll_back(index);
    return status;
}

/* Forgets first: a file that was replaced may have records with the same numbers. */
static int index_step(struct as_log_index *index, bool *is_current_out, struct as_error *error)
{
    struct log_part *part = NULL;
    *is_current_out = false;
    if (index->has_gone) {
        bool is_done = false;
        const int status = index_forget(index, &is_done, error);
        index->has_gone = !is_done;
        return status;
    }
    for (size_t i = 0; !part && i < index->part_count; i++)
        part = part_has_more(&index->parts[i]) ? &index->parts[i] : NULL;
    *is_current_out = !part;
    if (!part) {
        as_buf_deinit(&index->block);
        (void)sqlite3_db_release_memory(index->db);
        return 0;
    }
    const int status = check_free(index, error);
    return status != 0 ? status : part_step(index, part, error);
}

int as_log_index_step(struct as_log_index *index, bool finds_files,
                      struct as_log_index_state *state_out, struct as_error *error)
{
    struct as_log_index_state state = {.is_current = false};
    int status = index->db ? 0 : index_open_db(index, error);
    if (status == 0 && finds_files)
        status = index_scan(index, error);
    if (status == 0)
        status = index_step(index, &state.is_current, error);
    if (status == -EBADMSG) {
        state.is_current = false;
        status = index_rebuild_if_damaged(index, status, error);
    }
    state.unreadable = index->unreadable;
    state.rebuilt = index->rebuilt;
    for (size_t i = 0; i < index->part_count; i++) {
        state.log_bytes += index->parts[i].size;
        state.indexed_bytes += index->parts[i].done;
    }
    *state_out = state;
    return status;
}

/*
 * Queries. A query has one or more streams of records in descending order; it merges them. A query
 * for some targets has a stream for each target.
 */

#define STREAM_COLUMNS                                                                             \
    "SELECT r.seq,r.time,r.kind,r.id,r.target,t.id,t.name,"                                        \
    "(SELECT text FROM word WHERE number=r.rule),"                                                 \
    "(SELECT text FROM word WHERE number=r.reason),"                                               \
    "(SELECT text FROM word WHERE number=r.direction),"                                            \
    "r.before,r.after,r.would,r.file,r.at,r.size,r.repeats FROM "
#define STREAM_JOIN " LEFT JOIN target t ON t.number=r.target WHERE "
#define STREAM_FILTER                                                                              \
    " AND r.seq BETWEEN ?2 AND ?3 AND ((?4>>r.kind)&1) AND (?5=0 OR r.rule=?5)"                    \
    " AND (?6=0 OR r.reason=?6) AND r.time BETWEEN ?7 AND ?8 ORDER BY r.seq DESC"

enum stream_kind {
    STREAM_ALL,
    STREAM_KIND,
    STREAM_REASON,
    STREAM_TARGET,
    STREAM_TARGET_KIND,
    STREAM_TARGET_RULE
};

static const char *const stream_texts[] = {
    [STREAM_ALL] = STREAM_COLUMNS "record r" STREAM_JOIN "?1=?1" STREAM_FILTER,
    [STREAM_KIND] = STREAM_COLUMNS "record r INDEXED BY record_kind" STREAM_JOIN
                                   "r.kind=?1 AND r.kind<>1" STREAM_FILTER,
    [STREAM_REASON] =
        STREAM_COLUMNS "record r INDEXED BY record_reason" STREAM_JOIN "r.reason=?1" STREAM_FILTER,
    [STREAM_TARGET] = STREAM_COLUMNS "place r" STREAM_JOIN "r.target=?1" STREAM_FILTER,
    [STREAM_TARGET_KIND] = STREAM_COLUMNS "place r INDEXED BY place_kind" STREAM_JOIN
                                          "r.target=?1 AND r.kind<>1" STREAM_FILTER,
    [STREAM_TARGET_RULE] = STREAM_COLUMNS "place r INDEXED BY place_rule" STREAM_JOIN
                                          "r.target=?1 AND r.rule=?5" STREAM_FILTER,
};

struct stream {
    sqlite3_stmt *statement;
    int64_t seq; /* of its present row; 0: it has ended */
};

struct search {
    struct as_log_index *index;
    const struct as_log_query *query;
    int64_t low, high, kinds, rule, reason, since, until;
    int64_t *targets; /* numbers of the wanted ones, ascending; only with has_targets */
    size_t target_count, target_capacity, all_count;
    bool has_targets;
    bool must_check; /* whether a record is about a wanted target: the streams have others too */
    struct stream streams[STREAMS_MAX];
    size_t stream_count;
};

static void search_deinit(struct search *search)
{
    for (size_t i = 0; i < search->stream_count; i++)
        sqlite3_finalize(search->streams[i].statement);
    search->stream_count = 0;
    free(search->targets);
}

static int64_t pack_kinds(unsigned kinds)
{
    int64_t packed = 0;
    for (int kind = 0; kind < AS_RECORD_KIND_COUNT; kind++) {
        if ((kinds >> kind) & 1U && stored_kinds[kind])
            packed |= INT64_C(1) << stored_kinds[kind];
    }
    return packed;
}

static bool query_wants_target(const struct as_log_query *query, const char *id, const char *name)
{
    const char *wanted = query->target;
    if (query->may_see && !query->may_see(query->context, name, id))
        return false;
    return !wanted || strcmp(wanted, id) == 0 || strcmp(wanted, name) == 0 ||
           (strchr(wanted, '/') && as_target_is_same(wanted, id));
}

static int search_find_targets(struct search *search, struct as_error *error)
{
    struct as_log_index *index = search->index;
    sqlite3_stmt *all = index->statements[TARGET_ALL];
    int code = SQLITE_DONE, status = 0;
    search->has_targets = search->query->target || search->query->may_see || search->rule > 0;
    if (!search->has_targets)
        return 0;
    while (status == 0 && (code = sqlite3_step(all)) == SQLITE_ROW) {
        search->all_count++;
        bool is_wanted =
            query_wants_target(search->query, (const char *)sqlite3_column_text(all, 1),
                               (const char *)sqlite3_column_text(all, 2));
        if (is_wanted && search->rule > 0) {
            int64_t one;
            index_bind(index, RULE_TARGET_HAS, 1, search->rule);
            index_bind(index, RULE_TARGET_HAS, 2, sqlite3_column_int64(all, 0));
            status = index_get(index, RULE_TARGET_HAS, &one, error);
            is_wanted = status == 0;
            status = status == 1 ? 0 : status;
        }
        if (!is_wanted)
            continue;
        search->targets = as_xgrow(search->targets, search->target_count, &search->target_capacity,
                                   sizeof(*search->targets));
        search->targets[search->target_count++] = sqlite3_column_int64(all, 0);
    }
    if (status == 0 && code != SQLITE_DONE)
        status = index_fail(index, "read", error);
    sqlite3_reset(all);
    return status;
}

/* The number of a word of the query; -1: no record has it. */
static int search_find_word(struct search *search, const char *text, int64_t *number_out,
                            struct as_error *error)
{
    *number_out = 0;
    if (!text)
        return 0;
    index_bind_text(search->index, WORD_FIND, 1, text);
    const int status = index_get(search->index, WORD_FIND, number_out, error);
    if (status == 1)
        *number_out = -1;
    return status == 1 ? 0 : status;
}

/* The first record at or after a time, as if times never went back; behind the last record: there
 * is none. */
static int search_find_seq(struct search *search, int64_t time, int64_t *seq_out,
                           struct as_error *error)
{
    int64_t low = 0, high = 0;
    int status = index_get(search->index, SEQ_FIRST, &low, error);
    if (status == 0)
        status = index_get(search->index, SEQ_LAST, &high, error);
    high++;
    while (status == 0 && low < high) {
        const int64_t middle = low + (high - low) / 2;
        int64_t at = 0;
        index_bind(search->index, TIME_FROM_SEQ, 1, middle);
        status = index_get(search->index, TIME_FROM_SEQ, &at, error);
        if (status == 0 && at < time)
            low = middle + 1;
        else
            high = middle;
    }
    *seq_out = low;
    return status == 1 ? 0 : status; /* no record behind: it was deleted meanwhile */
}

static int index_find_id(struct as_log_index *index, const char *id, int64_t kinds,
                         int64_t *seq_out, struct as_error *error)
{
    index_bind(index, SEQ_OF_ID, 1, make_id_key(id));
    index_bind_text(index, SEQ_OF_ID, 2, id);
    index_bind(index, SEQ_OF_ID, 3, kinds);
    const int status = index_get(index, SEQ_OF_ID, seq_out, error);
    if (status == 1)
        as_error_set(error, "the action log has no such record: %s", id);
    return status == 1 ? -ENOENT : status;
}

/* -ENOENT: the reader may not see the record. */
static int search_check_seen(struct search *search, int64_t seq, struct as_error *error)
{
    struct as_log_index *index = search->index;
    const struct as_log_query *query = search->query;
    sqlite3_stmt *find = index->statements[TARGET_OF_SEQ];
    index_bind(index, TARGET_OF_SEQ, 1, seq);
    const int code = sqlite3_step(find);
    const bool is_seen = code == SQLITE_ROW &&
                         query->may_see(query->context, (const char *)sqlite3_column_text(find, 1),
                                        (const char *)sqlite3_column_text(find, 0));
    const int status =
        code == SQLITE_ROW || code == SQLITE_DONE ? 0 : index_fail(index, "read", error);
    sqlite3_reset(find);
    return status == 0 && !is_seen ? -ENOENT : status;
}

static int search_set_bounds(struct search *search, int64_t only_seq, struct as_error *error)
{
    const struct as_log_query *query = search->query;
    int64_t seq = 0;
    int status = 0;
    search->low = only_seq ? only_seq : 1;
    search->high = only_seq ? only_seq : INT64_MAX;
    search->since = query->since.set ? query->since.at.us : INT64_MIN;
    search->until = query->until.set ? query->until.at.us : INT64_MAX;
    if (query->before_id) {
        status = index_find_id(search->index, query->before_id, search->kinds, &seq, error);
        if (status == 0 && query->may_see && !query->before_at.set)
            status = search_check_seen(search, seq, error);
        if (status == 0)
            search->high = seq - 1;
        else if (status == -ENOENT && query->before_at.set)
            status = 0;
        else
            return status;
        if (seq == 0 && query->before_at.at.us - 1 < search->until)
            search->until = query->before_at.at.us - 1;
    }
    if (status == 0 && search->since != INT64_MIN) {
        status = search_find_seq(search, search->since, &seq, error);
        search->low = seq > TIME_MARGIN ? seq - TIME_MARGIN : 1;
    }
    if (status == 0 && search->until != INT64_MAX) {
        status = search_find_seq(search, search->until, &seq, error);
        if (seq + TIME_MARGIN < search->high)
            search->high = seq + TIME_MARGIN;
    }
    return status;
}

static int stream_next(struct as_log_index *index, struct stream *stream, struct as_error *error)
{
    const int code = sqlite3_step(stream->statement);
    stream->seq = code == SQLITE_ROW ? sqlite3_column_int64(stream->statement, 0) : 0;
    return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : index_fail(index, "read", error);
}

static int search_add_stream(struct search *search, enum stream_kind kind, int64_t number,
                             struct as_error *error)
{
    struct stream *stream = &search->streams[search->stream_count];
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(search->index->db, stream_texts[kind], -1, &statement, NULL) !=
        SQLITE_OK)
        return index_fail(search->index, "prepare", error);
    const int64_t values[] = {number,       search->low,    search->high,  search->kinds,
                              search->rule, search->reason, search->since, search->until};
    for (size_t i = 0; i < AS_ARRAY_SIZE(values); i++)
        (void)sqlite3_bind_int64(statement, (int)i + 1, values[i]);
    search->stream_count++;
    stream->statement = statement;
    return stream_next(search->index, stream, error);
}

/*
 * The few streams that have all wanted records. A stream for each wanted target reads nothing about
 * others. But with a reason, many such streams would each read all records of their target: if the
 * wanted targets are no small part of all, the stream of the reason is shorter. It does not know
 * the further targets of an incident.
 */
static int search_open_streams(struct search *search, struct as_error *error)
{
    const bool has_decisions = (search->kinds >> stored_kinds[AS_RECORD_DECISION]) & 1;
    const bool has_incidents = (search->kinds >> stored_kinds[AS_RECORD_INCIDENT]) & 1;
    const bool is_part = search->target_count <= STREAMS_FEW ||
                         search->target_count < search->all_count / STREAMS_PART;
    int status = 0;
    if (search->has_targets && search->target_count <= STREAMS_MAX &&
        (search->reason == 0 || search->rule > 0 || is_part || has_incidents)) {
        const enum stream_kind kind = search->rule > 0 ? STREAM_TARGET_RULE
                                      : has_decisions  ? STREAM_TARGET
                                                       : STREAM_TARGET_KIND;
        for (size_t i = 0; status == 0 && i < search->target_count; i++)
            status = search_add_stream(search, kind, search->targets[i], error);
        return status;
    }
    search->must_check = search->has_targets;
    if (search->reason > 0)
        return search_add_stream(search, STREAM_REASON, search->reason, error);
    if (has_decisions)
        return search_add_stream(search, STREAM_ALL, 0, error);
    for (int number = 1; status == 0 && number < 63; number++) {
        if ((search->kinds >> number) & 1)
            status = search_add_stream(search, STREAM_KIND, number, error);
    }
    return status;
}

static bool search_has_target(const struct search *search, int64_t target)
{
    size_t low = 0, high = search->target_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (search->targets[middle] < target)
            low = middle + 1;
        else
            high = middle;
    }
    return low < search->target_count && search->targets[low] == target;
}

static const char *column_text(sqlite3_stmt *statement, int column)
{
    return (const char *)sqlite3_column_text(statement, column);
}

static void row_fill(sqlite3_stmt *from, struct as_log_row *row_out)
{
    const int64_t stored = sqlite3_column_int64(from, 2);
    const char *id = column_text(from, 3), *target = column_text(from, 5),
               *name = column_text(from, 6);
    *row_out = (struct as_log_row){
        .seq = sqlite3_column_int64(from, 0),
        .time = {sqlite3_column_int64(from, 1)},
        .id = id ? id : "",
        .target = target ? target : "",
        .target_name = name ? name : "",
        .rule = column_text(from, 7),
        .reason = column_text(from, 8),
        .direction = column_text(from, 9),
        .has_from = sqlite3_column_type(from, 10) != SQLITE_NULL,
        .from = sqlite3_column_int(from, 10),
        .has_to = sqlite3_column_type(from, 11) != SQLITE_NULL,
        .to = sqlite3_column_int(from, 11),
        .has_would = sqlite3_column_type(from, 12) != SQLITE_NULL,
        .would = sqlite3_column_int(from, 12),
        .file = sqlite3_column_int64(from, 13),
        .at = (uint64_t)sqlite3_column_int64(from, 14),
        .size = (uint64_t)sqlite3_column_int64(from, 15),
        .repeats = (uint64_t)sqlite3_column_int64(from, 16),
    };
    for (int kind = 0; kind < AS_RECORD_KIND_COUNT; kind++) {
        if (stored_kinds[kind] == stored)
            row_out->kind = (enum as_record_kind)kind;
    }
}

static struct stream *search_find_newest(struct search *search)
{
    struct stream *newest = &search->streams[0];
    for (size_t i = 1; i < search->stream_count; i++) {
        if (search->streams[i].seq > newest->seq)
            newest = &search->streams[i];
    }
    return newest;
}

static int search_merge(struct search *search, struct as_error *error)
{
    int64_t last = INT64_MAX;
    int status = 0;
    while (status == 0 && search->stream_count > 0) {
        struct stream *stream = search_find_newest(search);
        if (stream->seq == 0)
            break;
        /* An incident of several targets is in several streams. */
        if (stream->seq < last &&
            (!search->must_check ||
             search_has_target(search, sqlite3_column_int64(stream->statement, 4)))) {
            struct as_log_row row;
            row_fill(stream->statement, &row);
            if (!search->query->on_row(search->query->context, &row))
                break;
        }
        last = stream->seq;
        status = stream_next(search->index, stream, error);
    }
    return status;
}

/* `only_seq`: of the one record that is wanted; 0: all. */
static int index_find(struct as_log_index *index, const struct as_log_query *query,
                      int64_t only_seq, struct as_error *error)
{
    struct search *search = as_xcalloc(1, sizeof(*search));
    search->index = index;
    search->query = query;
    search->kinds = pack_kinds(query->kinds);
    int status = search_find_word(search, query->rule, &search->rule, error);
    if (status == 0)
        status = search_find_word(search, query->reason, &search->reason, error);
    if (status == 0)
        status = search_find_targets(search, error);
    if (status == 0)
        status = search_set_bounds(search, only_seq, error);
    const bool is_empty =
        search->rule < 0 || search->reason < 0 || (search->has_targets && !search->target_count);
    if (status == 0 && !is_empty)
        status = search_open_streams(search, error);
    if (status == 0)
        status = search_merge(search, error);
    search_deinit(search);
    free(search);
    return status;
}

/* Returns the status; -EBADMSG: the index is empty now, and is built again. */
static int index_rebuild_after_query(struct as_log_index *index, int status, struct as_error *error)
{
    if (status == -EBADMSG && index_rebuild_if_damaged(index, status, error) == 0)
        as_error_set(error, "the index of the action log was damaged and is built again");
    return status;
}

static int index_find_safely(struct as_log_index *index, const struct as_log_query *query,
                             int64_t only_seq, struct as_error *error)
{
    int status = index->db ? 0 : index_open_db(index, error);
    index->deadline = query->deadline;
    if (status == 0)
        status = index_find(index, query, only_seq, error);
    index->deadline = AS_MONO_NEVER;
    return index_rebuild_after_query(index, status, error);
}

int as_log_index_find(struct as_log_index *index, const struct as_log_query *query,
                      struct as_error *error)
{
    return index_find_safely(index, query, 0, error);
}

/* Reads a number's word, unless it is the present one. "": none. */
static int index_read_word(struct as_log_index *index, int64_t number, int64_t *present,
                           struct as_buf *text, struct as_error *error)
{
    sqlite3_stmt *find = index->statements[WORD_TEXT];
    if (number == *present)
        return 0;
    index_bind(index, WORD_TEXT, 1, number);
    const int code = sqlite3_step(find);
    as_buf_clear(text);
    as_buf_append_str(text, code == SQLITE_ROW ? column_text(find, 0) : "");
    sqlite3_reset(find);
    *present = number;
    return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : index_fail(index, "read", error);
}

static void minute_fill(sqlite3_stmt *from, const char *rule, struct as_log_minute *minute_out)
{
    const int64_t begin = sqlite3_column_int64(from, 0) * AS_US_PER_MIN;
    *minute_out = (struct as_log_minute){
        .has_size = sqlite3_column_type(from, 1) != SQLITE_NULL,
        .first_at = {begin + sqlite3_column_int64(from, 1)},
        .last_at = {begin + sqlite3_column_int64(from, 2)},
        .first = sqlite3_column_int(from, 3),
        .last = sqlite3_column_int(from, 4),
        .least = sqlite3_column_int(from, 5),
        .most = sqlite3_column_int(from, 6),
        .has_value = sqlite3_column_type(from, 7) != SQLITE_NULL,
        .value_at = {begin + sqlite3_column_int64(from, 7)},
        .rule = rule,
        .value = sqlite3_column_double(from, 9),
        .goal = sqlite3_column_double(from, 10),
        .actions = (uint32_t)sqlite3_column_int64(from, 11),
        .failures = (uint32_t)sqlite3_column_int64(from, 12),
    };
}

static int index_visit_minutes(struct as_log_index *index, const struct as_log_minutes *query,
                               int64_t target, struct as_error *error)
{
    sqlite3_stmt *find = index->statements[MINUTE_FIND];
    struct as_buf rule = AS_BUF_INIT_OPEN(TEXTS_MAX);
    int64_t present = -1;
    int code = SQLITE_DONE, status = 0;
    index_bind(index, MINUTE_FIND, 1, target);
    index_bind(index, MINUTE_FIND, 2, get_minute(query->until.us));
    while (status == 0 && (code = sqlite3_step(find)) == SQLITE_ROW) {
        struct as_log_minute minute;
        status = index_read_word(index, sqlite3_column_int64(find, 8), &present, &rule, error);
        minute_fill(find, rule.size > 0 ? rule.data : "", &minute);
        if (status == 0 && !query->on_minute(query->context, &minute))
            break;
    }
    if (status == 0 && code != SQLITE_DONE && code != SQLITE_ROW)
        status = index_fail(index, "read", error);
    sqlite3_reset(find);
    as_buf_deinit(&rule);
    return status;
}

int as_log_index_visit_minutes(struct as_log_index *index, const struct as_log_minutes *query,
                               struct as_error *error)
{
    const struct as_log_query wanted = {.target = query->target};
    struct search *search = as_xcalloc(1, sizeof(*search));
    int status = index->db ? 0 : index_open_db(index, error);
    index->deadline = query->deadline;
    search->index = index;
    search->query = &wanted;
    if (status == 0)
        status = search_find_targets(search, error);
    for (size_t i = 0; status == 0 && i < search->target_count; i++)
        status = index_visit_minutes(index, query, search->targets[i], error);
    index->deadline = AS_MONO_NEVER;
    search_deinit(search);
    free(search);
    return index_rebuild_after_query(index, status, error);
}

int as_log_index_visit_targets(struct as_log_index *index,
                               void (*visit)(void *context, const char *id, const char *name),
                               void *context, struct as_error *error)
{
    int code, status = index->db ? 0 : index_open_db(index, error);
    if (status != 0)
        return status;
    sqlite3_stmt *all = index->statements[TARGET_ALL];
    while ((code = sqlite3_step(all)) == SQLITE_ROW)
        visit(context, column_text(all, 1), column_text(all, 2));
    if (code != SQLITE_DONE)
        status = index_fail(index, "read", error);
    sqlite3_reset(all);
    return status;
}

int as_log_index_read_row(struct as_log_index *index, const struct as_log_row *row,
                          struct as_buf *line_out, struct as_error *error)
{
    const struct log_part *part = index_find_part(index, row->file);
    int fd;
    if (!part || part_open(part, &fd) != 0) {
        as_error_set(error, "the file of the record was rotated just now");
        return -ENOENT;
    }
    char *bytes = row->size <= AS_LOG_INDEX_LINE_MAX ? as_buf_reserve(line_out, row->size) : NULL;
    char seq[48];
    (void)snprintf(seq, sizeof(seq), "\"seq\":%lld,", (long long)row->seq);
    const bool is_read = bytes && pread_all(fd, bytes, row->size, row->at);
    close(fd);
    if (!is_read || row->size < 2 || bytes[0] != '{' || bytes[row->size - 1] != '}' ||
        !memmem(bytes, row->size, seq, strlen(seq))) {
        as_error_set(error, "%s: record %lld is not where it was", part->path, (long long)row->seq);
        return -ENOENT;
    }
    line_out->size += row->size;
    bytes[row->size] = '\0';
    return 0;
}

int as_log_index_find_gaps(struct as_log_index *index,
                           bool (*on_gap)(void *context, const struct as_log_gap *gap),
                           void *context, struct as_error *error)
{
    struct as_log_gap *gaps = NULL;
    size_t count = 0, capacity = 0;
    struct record_moment last = {0};
    int code = SQLITE_DONE, status = index->db ? 0 : index_open_db(index, error);
    sqlite3_stmt *ranges = index->statements[FILE_RANGES];
    while (status == 0 && (code = sqlite3_step(ranges)) == SQLITE_ROW) {
        const int64_t first = sqlite3_column_int64(ranges, 0);
        if (first > last.seq + 1) {
            gaps = as_xgrow(gaps, count, &capacity, sizeof(*gaps));
            gaps[count++] = (struct as_log_gap){
                .first = last.seq + 1,
                .last = first - 1,
                .from = {last.seq > 0, last.time},
                .to = {sqlite3_column_int64(ranges, 2)},
            };
        }
        if (sqlite3_column_int64(ranges, 1) > last.seq)
            last = (struct record_moment){sqlite3_column_int64(ranges, 1),
                                          {sqlite3_column_int64(ranges, 3)}};
    }
    if (status == 0 && code != SQLITE_DONE)
        status = index_fail(index, "read", error);
    if (ranges)
        sqlite3_reset(ranges);
    for (size_t i = count; status == 0 && i > 0 && on_gap(context, &gaps[i - 1]);)
        i--;
    free(gaps);
    return status;
}

struct read_search {
    const struct as_log_query *query;
    struct as_log_index *index;
    struct as_buf *line;
    struct as_error *error;
    int64_t seq;
    int status;
};

static bool read_may_see(void *context, const char *target_name, const char *target)
{
    const struct as_log_query *query = ((struct read_search *)context)->query;
    return query->may_see(query->context, target_name, target);
}

static bool read_on_row(void *context, const struct as_log_row *row)
{
    struct read_search *search = context;
    if (row->seq == search->seq)
        search->status = as_log_index_read_row(search->index, row, search->line, search->error);
    if (row->seq == search->seq && search->status == 0 && search->query->on_row)
        (void)search->query->on_row(search->query->context, row);
    return false;
}

int as_log_index_read(struct as_log_index *index, const struct as_log_query *query, const char *id,
                      struct as_buf *line_out, struct as_error *error)
{
    struct read_search search = {query, index, line_out, error, 0, -ENOENT};
    int status = index->db ? 0 : index_open_db(index, error);
    if (status == 0)
        status = index_find_id(index, id, pack_kinds(query->kinds), &search.seq, error);
    if (status != 0)
        return status;
    as_error_set(error, "the action log has no such record: %s", id);
    const struct as_log_query one = {
        .kinds = query->kinds,
        .may_see = query->may_see ? read_may_see : NULL,
        .on_row = read_on_row,
        .context = &search,
        .deadline = query->deadline,
    };
    status = index_find_safely(index, &one, search.seq, error);
    return status != 0 ? status : search.status;
}
