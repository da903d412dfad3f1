/*
 * Durable changes per second: many clients, each of which submits its next batch after its last is
 * acknowledged, as connections with one request at a time do. Real files, in the folder given as
 * the first argument.
 */
#include <alertscaler/log/storage.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/log/log_file.h>
#include <alertscaler/log/sqlite.h>

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

static const struct as_clock bench_clock = {.get_mono = get_mono, .get_wall = get_wall};

/* A record of about the size of a one-alert notification's. */
static const char record_start[] =
    "{\"alerts\":[{\"fingerprint\":\"7be9cc40aa9853c5\",\"labels\":{\"alertname\":\"HighCPU\","
    "\"deployment\":\"web\",\"namespace\":\"prod\",\"severity\":\"critical\"},\"outcome\":"
    "\"duplicate\",\"rules\":[\"slow\"],\"startsAt\":\"2026-11-20T10:00:00Z\",\"status\":"
    "\"firing\"}],"
    "\"body_sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\","
    "\"body_size\":812,\"credential\":\"alertmanager\",\"groupKey\":\"{}:{alertname="
    "\\\"HighCPU\\\"}\",";
static const char record_middle[] = "\"id\":\"01KAG9V7Q0W6Z0Q2C3T5Y8N4M1\",\"instance\":"
                                    "\"alertscaler-0\",\"kind\":\"notification\","
                                    "\"notification_reason\":\"\",";
static const char record_end[] =
    "\"receiver\":\"alertscaler\",\"remote\":\"10.1.2.3:41234\",\"time\":"
    "\"2026-11-20T10:00:00.000000Z\",\"traceparent\":\"\",\"truncated\":0}";

struct bench {
    struct event_base *base;
    struct as_storage *storage;
    bool is_new; /* incidents; else repeats */
    uint64_t next, done, commits;
    int64_t until_us;
    bool over;
};

static void submit(struct bench *bench)
{
    static char json[2048];
    static struct as_audit_record record;
    struct as_storage_batch *batch = as_storage_batch_new(bench->next++);

    if (!record.json) {
        snprintf(json, sizeof(json), "%s%s%s", record_start, record_middle, record_end);
        record = (struct as_audit_record){
            .json = json,
            .size = strlen(json),
            .at_hash = strlen(record_start),
            .at_prev = strlen(record_start) + strlen(record_middle),
            .at_seq = (size_t)(strstr(json, "\"time\"") - json),
        };
    }
    as_storage_batch_append(batch, &record);
    if (bench->is_new) {
        uint64_t fingerprint = bench->next * UINT64_C(0x9e3779b97f4a7c15); /* scattered */
        char value[320];
        memset(value, (int)('a' + bench->next % 26), sizeof(value));
        as_storage_batch_append(batch, &record); /* "opened" */
        as_storage_batch_put(batch, AS_STORE_INCIDENT, &fingerprint, 8, value, sizeof(value));
    }
    as_storage_submit(bench->storage, batch);
}

static void on_durable(void *context, uint64_t call_id, int status, const char *error)
{
    struct bench *bench = context;

    if (status) {
        fprintf(stderr, "bench_storage: %s\n", error);
        exit(1);
    }
    bench->done++;
    if (!bench->over && get_mono(NULL).us >= bench->until_us) {
        bench->over = true;
        event_base_loopbreak(bench->base);
    }
    if (!bench->over)
        submit(bench);
}

static void on_failed(void *context, int status, const char *error)
{
    fprintf(stderr, "bench_storage: %s\n", error);
    exit(1);
}

static void on_committed(void *context, int64_t duration_us, size_t batches, size_t records,
                         size_t log_bytes)
{
    ((struct bench *)context)->commits++;
}

static struct as_storage *open_storage(const char *directory, struct bench *bench)
{
    AS_CLEANUP(as_free_p) char *state = as_xasprintf("%s/state.db", directory);
    AS_CLEANUP(as_free_p) char *log = as_xasprintf("%s/actions.jsonl", directory);
    struct as_audit_file_config audit = {.path = log, .max_size = 100 << 20, .keep = 2};
    struct as_storage_config config = as_storage_config_default;
    struct as_error error = AS_ERROR_INIT;
    struct as_storage *storage = NULL;

    config.clock = &bench_clock;
    config.callbacks = (struct as_storage_callbacks){
        .durable = on_durable, .failed = on_failed, .committed = on_committed, .context = bench};
    if (as_store_sqlite_open(state, true, &config.store, &error) ||
        as_audit_file_open(&audit, &config.audit, &error) ||
        as_storage_new(&config, &storage, &error) ||
        as_storage_start(storage, bench->base, &error)) {
        fprintf(stderr, "bench_storage: %s\n", error.text);
        exit(1);
    }
    return storage;
}

static double cpu_seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void run(const char *directory, bool is_new, unsigned clients, double seconds)
{
    struct bench bench = {.base = event_base_new(), .is_new = is_new, .next = 1};
    double loop_start, all_start;

    bench.storage = open_storage(directory, &bench);
    int64_t start = get_mono(NULL).us;
    bench.until_us = start + (int64_t)(seconds * 1e6);
    loop_start = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    all_start = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (unsigned i = 0; i < clients; i++)
        submit(&bench);
    event_base_dispatch(bench.base);
    double passed = (double)(get_mono(NULL).us - start) / 1e6;
    double loop = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - loop_start;
    double worker = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - all_start - loop;
    printf("%-13s %4u clients: %8.0f durable/s, %6.0f commits/s, %5.1f in a commit; per batch loop "
           "%.1f us, storage thread %.1f us\n",
           is_new ? "new incidents" : "repeats", clients, (double)bench.done / passed,
           (double)bench.commits / passed, (double)bench.done / (double)bench.commits,
           loop / (double)bench.done * 1e6, worker / (double)bench.done * 1e6);
    as_storage_free(bench.storage);
    event_base_free(bench.base);
}

static int count_record(void *context, const void *key, size_t key_size, const void *value,
                        size_t value_size)
{
    ++*(size_t *)context;
    return 0;
}

static void load(const char *directory)
{
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/state.db", directory);
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = NULL;
    size_t count = 0;
    int64_t start = get_mono(NULL).us;

    if (as_store_sqlite_open(path, true, &store, &error)) {
        fprintf(stderr, "bench_storage: %s\n", error.text);
        exit(1);
    }
    int64_t opened = get_mono(NULL).us;
    if (store->visit(store, AS_STORE_INCIDENT, count_record, &count, &error))
        exit(1);
    printf("start with %zu incidents: open and check %.0f ms, read %.0f ms\n", count,
           (double)(opened - start) / 1e3, (double)(get_mono(NULL).us - opened) / 1e3);
    store->close(store);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    return remove(path);
}

int main(int argc, char **argv)
{
    static const unsigned clients[] = {1, 16, 64, 256};
    AS_CLEANUP(as_free_p)
    char *directory = as_xasprintf("%s/bench-storage-XXXXXX", argc > 1 ? argv[1] : ".");
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;

    if (!mkdtemp(directory)) {
        perror(directory);
        return 1;
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(clients); i++)
        run(directory, false, clients[i], seconds);
    for (size_t i = 0; i < AS_ARRAY_SIZE(clients); i++)
        run(directory, true, clients[i], seconds);
    load(directory);
    return nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS) != 0;
}
