/*
 * The storage on its real files, in a process that dies: at every single call of store and log, and
 * by SIGKILL at any moment. Every acknowledged record is in the log, once, and the chain is whole.
 */
#include <alertscaler/log/storage.h>

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/log/log_file.h>
#include <alertscaler/log/sqlite.h>

#include "../records.h"

#define TICKETS_MAX 400000

static char directory[40];

static int remove_entry(const char *entry, const struct stat *info, int type, struct FTW *at)
{
    return remove(entry);
}

static void setup(void)
{
    snprintf(directory, sizeof(directory), "/tmp/as-crash-XXXXXX");
    cr_assert(mkdtemp(directory));
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static void teardown(void)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(storage_crash, .init = setup, .fini = teardown);

static as_mono_time get_mono(const struct as_clock *self)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (as_mono_time){now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static as_wall_time get_wall(const struct as_clock *self)
{
    return (as_wall_time){get_mono(self).us};
}

static const struct as_clock test_clock = {.get_mono = get_mono, .get_wall = get_wall};

/* --- ports that end the process at their k-th call, before or after doing it --- */

struct crash {
    unsigned calls_left; /* 0: never */
    bool after;
};

struct crash_store {
    struct as_store port;
    struct as_store *real;
    struct crash *crash;
};

struct crash_audit {
    struct as_audit port;
    struct as_audit *real;
    struct crash *crash;
};

static bool is_last(struct crash *crash)
{
    if (!crash->calls_left || --crash->calls_left)
        return false;
    if (!crash->after)
        _exit(42);
    return true;
}

static int end_after(bool last, int status)
{
    if (last)
        _exit(42);
    return status;
}

static int crash_commit(struct as_store *self, const struct as_store_change *changes, size_t count,
                        struct as_error *error)
{
    struct crash_store *store = (struct crash_store *)self;
    bool last = is_last(store->crash);

    return end_after(last, store->real->commit(store->real, changes, count, error));
}

static int crash_visit(struct as_store *self, enum as_store_kind kind, as_store_visit_fn *visit,
                       void *context, struct as_error *error)
{
    struct crash_store *store = (struct crash_store *)self;

    return store->real->visit(store->real, kind, visit, context, error);
}

static void crash_store_close(struct as_store *self)
{
    struct crash_store *store = (struct crash_store *)self;
    bool last = is_last(store->crash);

    store->real->close(store->real);
    (void)end_after(last, 0);
}

static struct as_audit_head crash_get_head(const struct as_audit *self)
{
    const struct crash_audit *audit = (const struct crash_audit *)self;

    return audit->real->get_head(audit->real);
}

static int crash_append(struct as_audit *self, const char *lines, size_t size,
                        const struct as_audit_head *head, struct as_error *error)
{
    struct crash_audit *audit = (struct crash_audit *)self;
    bool last = is_last(audit->crash);

    return end_after(last, audit->real->append(audit->real, lines, size, head, error));
}

static int crash_sync(struct as_audit *self, struct as_error *error)
{
    struct crash_audit *audit = (struct crash_audit *)self;
    bool last = is_last(audit->crash);

    return end_after(last, audit->real->sync(audit->real, error));
}

static int crash_reopen(struct as_audit *self, struct as_error *error)
{
    struct crash_audit *audit = (struct crash_audit *)self;
    bool last = is_last(audit->crash);

    return end_after(last, audit->real->reopen(audit->real, error));
}

static struct as_audit_place crash_get_place(const struct as_audit *self)
{
    const struct crash_audit *audit = (const struct crash_audit *)self;

    return audit->real->get_place(audit->real);
}

static void crash_audit_close(struct as_audit *self)
{
    struct crash_audit *audit = (struct crash_audit *)self;

    audit->real->close(audit->real);
}

/* --- the process under test --- */

struct heard {
    int fd; /* every acknowledged ticket is written here */
    uint64_t done;
};

static void on_durable(void *context, uint64_t call_id, int status, const char *error)
{
    struct heard *heard = context;

    if (status || write(heard->fd, &call_id, sizeof(call_id)) != sizeof(call_id))
        _exit(1);
    heard->done++;
}

static void on_failed(void *context, int status, const char *error)
{
    _exit(1);
}

static struct as_storage *open_storage(struct heard *heard, struct crash_store *store,
                                       struct crash_audit *audit, struct crash *crash)
{
    AS_CLEANUP(as_free_p) char *state = as_xasprintf("%s/state.db", directory);
    AS_CLEANUP(as_free_p) char *log = as_xasprintf("%s/actions.jsonl", directory);
    struct as_audit_file_config file = {.path = log, .max_size = 4000, .keep = 100000};
    struct as_storage_config config = as_storage_config_default;
    struct as_error error = AS_ERROR_INIT;
    struct as_storage *storage = NULL;

    config.clock = &test_clock;
    config.callbacks =
        (struct as_storage_callbacks){.durable = on_durable, .failed = on_failed, .context = heard};
    config.sync_interval_us = 3 * AS_US_PER_MS;
    if (as_store_sqlite_open(state, true, &config.store, &error) ||
        as_audit_file_open(&file, &config.audit, &error))
        cr_assert_fail("%s", error.text);
    if (crash) {
        *store = (struct crash_store){
            {.commit = crash_commit, .visit = crash_visit, .close = crash_store_close},
            config.store,
            crash};
        *audit = (struct crash_audit){{.get_head = crash_get_head,
                                       .append = crash_append,
                                       .sync = crash_sync,
                                       .reopen = crash_reopen,
                                       .get_place = crash_get_place,
                                       .close = crash_audit_close},
                                      config.audit,
                                      crash};
        config.store = &store->port;
        config.audit = &audit->port;
    }
    cr_assert(!as_storage_new(&config, &storage, &error), "%s", error.text);
    return storage;
}

static struct as_storage_batch *make_batch(uint64_t call_id)
{
    struct as_storage_batch *batch = as_storage_batch_new(call_id);
    struct test_record made;

    as_storage_batch_put(batch, AS_STORE_TARGET, &call_id, sizeof(call_id), "value", 5);
    as_storage_batch_append(batch, test_record_make(&made, 2 * call_id));
    as_storage_batch_append(batch, test_record_make(&made, 2 * call_id + 1));
    return batch;
}

/* --- afterwards --- */

static int mark_ticket(void *context, const void *key, size_t key_size, const void *value,
                       size_t value_size)
{
    uint64_t call_id;

    memcpy(&call_id, key, sizeof(call_id));
    ((bool *)context)[call_id] = true;
    return 0;
}

static void verify_file(const char *name, struct as_chain_verify *verify, uint64_t *last_id,
                        const bool *in_store)
{
    struct as_error error = AS_ERROR_INIT;
    size_t size;
    AS_CLEANUP(as_free_p) char *data = NULL;

    cr_assert(!as_file_read(name, 1 << 26, &data, &size), "%s", name);
    for (const char *at = data, *end = data + size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        cr_assert(newline, "%s", name);
        cr_assert(!as_chain_verify_line(verify, at, (size_t)(newline - at), &error), "%s: %s", name,
                  error.text);
        uint64_t id = strtoull(strstr(at, "\"id\":") + 5, NULL, 10);
        cr_assert(id > *last_id && in_store[id / 2]);
        *last_id = id;
        at = newline + 1;
    }
}

/* Opens everything once more and goes through all files of the log. The next free ticket. */
static uint64_t check_files(const bool *said)
{
    static bool in_store[TICKETS_MAX];
    AS_CLEANUP(as_free_p) char *state = as_xasprintf("%s/state.db", directory);
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = NULL;
    uint64_t last_id = 0, changes = 0, next = 1;
    unsigned files = 0;

    as_storage_free(open_storage(NULL, NULL, NULL, NULL));
    memset(in_store, 0, sizeof(in_store));
    cr_assert(!as_store_sqlite_open(state, true, &store, &error), "%s", error.text);
    cr_assert(!store->visit(store, AS_STORE_TARGET, mark_ticket, in_store, &error));
    store->close(store);
    for (;; files++) {
        AS_CLEANUP(as_free_p)
        char *name = as_xasprintf("%s/actions.jsonl.%u", directory, files + 1);
        if (access(name, F_OK))
            break;
    }
    for (; files; files--) {
        AS_CLEANUP(as_free_p) char *name = as_xasprintf("%s/actions.jsonl.%u", directory, files);
        verify_file(name, &verify, &last_id, in_store);
    }
    AS_CLEANUP(as_free_p) char *name = as_xasprintf("%s/actions.jsonl", directory);
    verify_file(name, &verify, &last_id, in_store);
    for (uint64_t i = 0; i < TICKETS_MAX; i++) {
        cr_assert(!said[i] || in_store[i], "acknowledged ticket %llu is lost",
                  (unsigned long long)i);
        changes += in_store[i];
        if (in_store[i])
            next = i + 1;
    }
    cr_assert_eq(verify.head.seq, 2 * changes);
    return next;
}

static uint64_t read_said(int fd, bool *said)
{
    uint64_t call_id, count = 0;

    while (read(fd, &call_id, sizeof(call_id)) == sizeof(call_id)) {
        said[call_id] = true;
        count++;
    }
    return count;
}

/* Some rounds of work with everything in it that has an order: commits, appends, syncs, rotation,
 * a reopening, the end. */
static void work(int fd, uint64_t call_id, struct crash *crash)
{
    struct heard heard = {.fd = fd};
    struct crash_store store;
    struct crash_audit audit;
    struct as_storage *storage = open_storage(&heard, &store, &audit, crash);

    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 5; i++)
            as_storage_submit(storage, make_batch(call_id++));
        if (round == 2)
            as_storage_reopen_log(storage);
        as_storage_step(storage);
        as_storage_deliver(storage);
        if (round % 2)
            usleep(4000); /* a sync is due */
    }
    as_storage_free(storage);
}

Test(storage_crash, at_every_call_of_store_and_log)
{
    static bool said[TICKETS_MAX];
    uint64_t call_id = 1;
    unsigned crashes = 0;

    for (int after = 0; after < 2; after++) {
        for (unsigned k = 1;; k++) {
            int fds[2], status;
            fflush(stdout);
            cr_assert(!pipe(fds));
            pid_t child = fork();
            if (child == 0) {
                work(fds[1], call_id, &(struct crash){.calls_left = k, .after = after});
                _exit(0);
            }
            close(fds[1]);
            cr_assert_eq(waitpid(child, &status, 0), child);
            read_said(fds[0], said);
            close(fds[0]);
            cr_assert(WIFEXITED(status));
            cr_assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 42, "%d",
                      WEXITSTATUS(status));
            call_id = check_files(said);
            if (WEXITSTATUS(status) == 0)
                break;
            crashes++;
        }
    }
    cr_assert(crashes > 20, "%u", crashes);
}

/* With its thread, as fast as it goes; clients that wait for their answer. */
static _Noreturn void work_for_ever(int fd, uint64_t call_id)
{
    struct event_base *base = event_base_new();
    struct heard heard = {.fd = fd};
    struct as_storage *storage = open_storage(&heard, NULL, NULL, NULL);
    uint64_t first = call_id;

    if (as_storage_start(storage, base, NULL))
        _exit(1);
    for (;;) {
        while (call_id < first + heard.done + 8)
            as_storage_submit(storage, make_batch(call_id++));
        event_base_loop(base, EVLOOP_ONCE);
    }
}

Test(storage_crash, by_sigkill_at_any_moment)
{
    static bool said[TICKETS_MAX];
    uint64_t call_id = 1, total = 0;

    for (int round = 0; round < 30; round++) {
        int fds[2], status;
        fflush(stdout);
        cr_assert(!pipe(fds));
        pid_t child = fork();
        if (child == 0)
            work_for_ever(fds[1], call_id);
        close(fds[1]);
        uint64_t first;
        cr_assert_eq(read(fds[0], &first, sizeof(first)), (ssize_t)sizeof(first));
        said[first] = true;
        usleep((useconds_t)(round * 397 % 5000));
        kill(child, SIGKILL);
        cr_assert_eq(waitpid(child, &status, 0), child);
        cr_assert(WIFSIGNALED(status));
        total += read_said(fds[0], said) + 1;
        close(fds[0]);
        call_id = check_files(said);
    }
    cr_assert(total > 100, "%llu", (unsigned long long)total);
}
