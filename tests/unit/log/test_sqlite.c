/* The state file: its owner, its damages, and the messages to the operator. */
#include <alertscaler/log/sqlite.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include <alertscaler/base/alloc.h>

static char directory[64], path[80];

static int remove_entry(const char *entry, const struct stat *info, int type, struct FTW *at)
{
    return remove(entry);
}

static void setup(void)
{
    snprintf(directory, sizeof(directory), "/tmp/as-sqlite-XXXXXX");
    cr_assert(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/state.db", directory);
}

static void teardown(void)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(sqlite, .init = setup, .fini = teardown);

static struct as_store *open_store(void)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = NULL;

    cr_assert(!as_store_sqlite_open(path, true, &store, &error), "%s", error.text);
    return store;
}

Test(sqlite, does_not_take_a_missing_file_for_an_empty_state)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = NULL;

    cr_assert_eq(as_store_sqlite_open(path, false, &store, &error), -ENOENT);
    cr_assert(strstr(error.text, "it is gone"), "%s", error.text);
    cr_assert_neq(access(path, F_OK), 0, "made all the same");
    store = open_store();
    store->close(store);
    cr_assert(!as_store_sqlite_open(path, false, &store, &error), "%s", error.text);
    store->close(store);
}

static int put(struct as_store *store, unsigned key, size_t size, struct as_error *error)
{
    static int filling; /* SQLite does not write what is there already */
    AS_CLEANUP(as_free_p) char *value = as_xmalloc(size + 1);
    struct as_store_change change = {.kind = AS_STORE_INCIDENT,
                                     .key = &key,
                                     .key_size = sizeof(key),
                                     .value = value,
                                     .value_size = size};

    memset(value, ++filling, size + 1);
    return store->commit(store, &change, 1, error);
}

static int count_record(void *context, const void *key, size_t key_size, const void *value,
                        size_t value_size)
{
    ++*(size_t *)context;
    return 0;
}

static size_t count(struct as_store *store)
{
    size_t records = 0;

    cr_assert(!store->visit(store, AS_STORE_INCIDENT, count_record, &records, NULL));
    return records;
}

static void expect_refusal(int status, const char *words)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = NULL;

    cr_assert_eq(as_store_sqlite_open(path, true, &store, &error), status, "%s", error.text);
    cr_assert_null(store);
    cr_assert(strstr(error.text, words), "%s", error.text);
    cr_assert(strstr(error.text, path), "%s", error.text);
}

static void run_sql(const char *sql)
{
    sqlite3 *db;

    cr_assert(!sqlite3_open(path, &db));
    cr_assert(!sqlite3_exec(db, sql, NULL, NULL, NULL), "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void fill(const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, text, size), (ssize_t)size);
    close(fd);
}

Test(sqlite, the_file_is_for_its_owner_alone)
{
    struct stat info;

    umask(0);
    struct as_store *store = open_store();
    cr_assert(!put(store, 1, 10, NULL));
    cr_assert(!stat(path, &info));
    cr_assert_eq(info.st_mode & 0777, 0600);
    char wal[96];
    snprintf(wal, sizeof(wal), "%s-wal", path);
    cr_assert(!stat(wal, &info));
    cr_assert_eq(info.st_mode & 0777, 0600);
    store->close(store);
    cr_assert(stat(wal, &info), "nothing is left beside it after a clean end");
}

Test(sqlite, a_newer_file_is_refused)
{
    struct as_store *store = open_store();

    store->close(store);
    run_sql("PRAGMA user_version=3");
    expect_refusal(-EPROTO, "is from a newer alertscaler (schema 3, this one knows 2): use that "
                            "version or move the file away");
    run_sql("PRAGMA user_version=2");
    store = open_store();
    store->close(store);
}

Test(sqlite, a_file_of_an_unreleased_schema_is_refused_and_left_as_it_is)
{
    struct as_store *store = open_store();

    store->close(store);
    run_sql("PRAGMA user_version=1");
    for (int i = 0; i < 2; i++)
        expect_refusal(-EPROTO, "is from an older alertscaler (schema 1, this one reads schema 2): "
                                "move it and its -wal file away to start without the open "
                                "incidents, locks and pauses in it");
}

Test(sqlite, somebody_elses_database_is_refused)
{
    run_sql("CREATE TABLE accounts(id)");
    expect_refusal(-EBADMSG, "is a database of another program");
}

Test(sqlite, what_is_no_database_is_refused)
{
    char text[4096];

    memset(text, 'x', sizeof(text));
    fill(text, sizeof(text));
    expect_refusal(-EBADMSG, "is not a state file of alertscaler");
    fill(text, 20);
    expect_refusal(-EBADMSG, "is not a state file of alertscaler");
}

Test(sqlite, an_empty_file_is_a_new_one)
{
    fill("", 0);
    struct as_store *store = open_store();
    cr_assert(!put(store, 1, 10, NULL));
    store->close(store);
}

Test(sqlite, a_damaged_file_is_refused_with_advice)
{
    struct as_store *store = open_store();
    struct stat info;

    for (unsigned i = 0; i < 200; i++)
        cr_assert(!put(store, i, 1000, NULL));
    store->close(store);
    cr_assert(!stat(path, &info));
    /* Pages of noise, one after the other; the first is the header's. */
    char noise[4096];
    memset(noise, 0x5a, sizeof(noise));
    unsigned refused = 0;
    for (off_t at = 4096; at < info.st_size; at += 4096) {
        char before[4096];
        int fd = open(path, O_RDWR);
        cr_assert_eq(pread(fd, before, sizeof(before), at), (ssize_t)sizeof(before));
        cr_assert_eq(pwrite(fd, noise, sizeof(noise), at), (ssize_t)sizeof(noise));
        struct as_error error = AS_ERROR_INIT;
        int status = as_store_sqlite_open(path, true, &store, &error);
        cr_assert_eq(status, -EBADMSG, "page %d: %d %s", (int)(at / 4096), status, error.text);
        cr_assert(strstr(error.text, "restore it from a backup, or move it and its -wal file away"),
                  "%s", error.text);
        refused++;
        cr_assert_eq(pwrite(fd, before, sizeof(before), at), (ssize_t)sizeof(before));
        close(fd);
    }
    cr_assert(refused > 50);
    store = open_store();
    cr_assert_eq(count(store), 200);
    store->close(store);
    cr_assert(!truncate(path, info.st_size / 2));
    expect_refusal(-EBADMSG, "restore it from a backup");
}

Test(sqlite, one_process_at_a_time)
{
    struct as_store *store = open_store();
    int status;

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct as_error error = AS_ERROR_INIT;
        struct as_store *second = NULL;
        int code = as_store_sqlite_open(path, true, &second, &error);
        _exit(code == -EBUSY && strstr(error.text, "another alertscaler") ? 42 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 42);
    cr_assert(!put(store, 1, 10, NULL), "the first one goes on");
    store->close(store);
    store = open_store();
    store->close(store);
}

Test(sqlite, wrong_places_are_named)
{
    snprintf(path, sizeof(path), "%s/no/state.db", directory);
    expect_refusal(-ENOENT, "No such file or directory");
    snprintf(path, sizeof(path), "%s", directory);
    expect_refusal(-EISDIR, "Is a directory");
    snprintf(path, sizeof(path), "/dev/null");
    expect_refusal(-EMEDIUMTYPE, "not a regular file");
    snprintf(path, sizeof(path), "/proc/state.db");
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = NULL;
    cr_assert_lt(as_store_sqlite_open(path, true, &store, &error), 0);
}

/* Another user than root, for whom file modes count. True in the child. */
static bool fork_as_nobody(void)
{
    int status;
    pid_t child;

    fflush(stdout);
    cr_assert(!chmod(directory, 0755));
    child = fork();
    if (child == 0)
        return getuid() != 0 || (!setgid(65534) && !setuid(65534));
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 42);
    return false;
}

Test(sqlite, a_read_only_file_or_directory_is_refused)
{
    struct as_store *store = open_store();
    struct as_error error = AS_ERROR_INIT;

    store->close(store);
    cr_assert(!chmod(path, 0444));
    if (fork_as_nobody()) {
        int code = as_store_sqlite_open(path, true, &store, &error);
        _exit(code == -EACCES && strstr(error.text, "Permission denied") ? 42 : 1);
    }
    cr_assert(!unlink(path));
    cr_assert(!chmod(directory, 0555));
    if (fork_as_nobody()) {
        int code = as_store_sqlite_open(path, true, &store, &error);
        _exit(code == -EACCES && strstr(error.text, path) ? 42 : 1);
    }
}

/* A disk without space, played by a limit on the size of files. */
Test(sqlite, a_full_disk_fails_the_commit_and_loses_nothing)
{
    struct as_store *store = open_store();
    struct as_error error = AS_ERROR_INIT;
    struct rlimit before, limit;
    unsigned good = 0;
    int status;

    signal(SIGXFSZ, SIG_IGN);
    cr_assert(!getrlimit(RLIMIT_FSIZE, &before));
    limit = (struct rlimit){.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
    cr_assert(!setrlimit(RLIMIT_FSIZE, &limit));
    while (!(status = put(store, good, 50000, &error)))
        good++;
    cr_assert(good > 5 && good < 25, "%u", good);
    cr_assert(status == -EFBIG || status == -ENOSPC || status == -EIO, "%d %s", status, error.text);
    cr_assert(strstr(error.text, path));
    cr_assert(!setrlimit(RLIMIT_FSIZE, &before));
    cr_assert_eq(put(store, 99, 10, &error), status, "it stays failed until it is opened anew");
    store->close(store);
    store = open_store();
    cr_assert_eq(count(store), good);
    cr_assert(!put(store, 99, 10, &error), "%s", error.text);
    store->close(store);
}

Test(sqlite, a_killed_process_leaves_exactly_what_it_had_committed)
{
    /* Killed at moments spread over its work; it says after each commit that it is done. */
    for (unsigned round = 0; round < 20; round++) {
        int pipe_fds[2], status;
        char said;
        size_t commits = 0;
        fflush(stdout);
        cr_assert(!pipe(pipe_fds));
        pid_t child = fork();
        if (child == 0) {
            struct as_store *store = open_store();
            for (unsigned i = 0;; i++)
                if (put(store, i, 3000, NULL) || write(pipe_fds[1], "x", 1) != 1)
                    _exit(1);
        }
        close(pipe_fds[1]);
        while (commits < 7 * round + 1 && read(pipe_fds[0], &said, 1) == 1)
            commits++;
        kill(child, SIGKILL);
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFSIGNALED(status));
        while (read(pipe_fds[0], &said, 1) == 1)
            commits++;
        close(pipe_fds[0]);
        struct as_store *store = open_store();
        size_t there = count(store);
        cr_assert(there == commits || there == commits + 1, "%zu of %zu", there, commits);
        store->close(store);
        cr_assert(!unlink(path));
    }
}

Test(sqlite, the_write_ahead_log_stays_small)
{
    struct as_store *store = open_store();
    char wal[96];
    struct stat info;
    off_t largest = 0;

    snprintf(wal, sizeof(wal), "%s-wal", path);
    for (unsigned i = 0; i < 3000; i++) {
        cr_assert(!put(store, i % 10, 20000, NULL));
        cr_assert(!stat(wal, &info));
        if (info.st_size > largest)
            largest = info.st_size;
    }
    cr_assert(largest > (1 << 20) && largest < (20 << 20), "%jd", (intmax_t)largest);
    off_t quiet = 0;
    for (unsigned i = 0; i < 1000; i++) {
        store->tidy(store);
        cr_assert(!put(store, i % 10, 20000, NULL));
        cr_assert(!stat(wal, &info));
        if (i == 500) /* it has been cut down since */
            quiet = info.st_size;
    }
    cr_assert_eq(info.st_size, quiet, "it does not grow where there are quiet moments");
    store->close(store);
    cr_assert(!stat(path, &info));
    cr_assert(info.st_size < (2 << 20), "space is used again: %jd", (intmax_t)info.st_size);
}

/* The folder may be behind a link, the file may not. */
Test(sqlite, a_link_is_not_followed)
{
    char target[192], folder[192];
    snprintf(target, sizeof(target), "%s/target.db", directory);
    snprintf(path, sizeof(path), "%s/link.db", directory);
    cr_assert_eq(symlink("target.db", path), 0);
    expect_refusal(-ELOOP, "a symbolic link");
    cr_expect_eq(access(target, F_OK), -1, "nor created through it");
    unlink(path);
    snprintf(folder, sizeof(folder), "%s/folder", directory);
    cr_assert_eq(symlink(".", folder), 0);
    snprintf(path, sizeof(path), "%s/folder/state.db", directory);
    struct as_store *store = open_store();
    store->close(store);
    unlink(folder);
    snprintf(path, sizeof(path), "%s/state.db", directory);
}
