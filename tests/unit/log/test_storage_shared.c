/*
 * A state that replicas share, each with its own action log: each leader continues the chain of the
 * one before. Each file is valid alone, and all together are the chain from its first record to the
 * head in the state, with every acknowledged record.
 */
#include <alertscaler/log/storage.h>

#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/random.h>
#include <alertscaler/log/log_file.h>

#include "../../support/store_memory.h"
#include "../records.h"

#define PODS        3
#define RECORDS_MAX 4096

static as_mono_time now;

static as_mono_time get_mono(const struct as_clock *self)
{
    return now;
}

static as_wall_time get_wall(const struct as_clock *self)
{
    return (as_wall_time){now.us};
}

static const struct as_clock clock_ = {.get_mono = get_mono, .get_wall = get_wall};

static uint64_t acknowledged; /* batches: their records are numbered alike */

static void on_durable(void *context, uint64_t call_id, int status, const char *error)
{
    if (status == 0)
        acknowledged++;
}

static void on_failed(void *context, int status, const char *error)
{
}

static char directory[] = "/tmp/as-shared-XXXXXX";
static struct as_store_memory *state;
static struct as_storage *pods[PODS];

static void setup(void)
{
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, STDERR_FILENO);
    cr_assert(mkdtemp(directory));
    state = as_store_memory_new();
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    return remove(path);
}

static void teardown(void)
{
    for (int i = 0; i < PODS; i++)
        pods[i] = as_storage_free(pods[i]);
    state = as_store_memory_free(state);
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(storage_shared, .init = setup, .fini = teardown);

/* The pod leads from now on; whoever did before gets to know it with its next commit. */
static void lead(int pod)
{
    struct as_error error = AS_ERROR_INIT;
    char path[64];
    pods[pod] = as_storage_free(pods[pod]);
    snprintf(path, sizeof(path), "%s/pod-%d.jsonl", directory, pod);
    const struct as_audit_file_config file = {.path = path, .max_size = 1 << 20, .keep = 1};
    struct as_storage_config config = as_storage_config_default;
    config.clock = &clock_;
    config.callbacks = (struct as_storage_callbacks){.durable = on_durable, .failed = on_failed};
    config.store = as_store_memory_attach(state);
    config.store->is_shared = true;
    cr_assert_eq(as_audit_file_open(&file, &config.audit, &error), 0, "%s", error.text);
    cr_assert_eq(as_storage_new(&config, &pods[pod], &error), 0, "%s", error.text);
}

/* One batch of two records; without a change of the state where `is_repeat`. */
static void submit(int pod, uint64_t id, bool is_repeat)
{
    struct as_storage_batch *batch = as_storage_batch_new(id);
    struct test_record made;
    if (!is_repeat)
        as_storage_batch_put(batch, AS_STORE_TARGET, "t", 1, &id, sizeof(id));
    as_storage_batch_append(batch, test_record_make(&made, 2 * id));
    as_storage_batch_append(batch, test_record_make(&made, 2 * id + 1));
    as_storage_submit(pods[pod], batch);
}

static char hashes[RECORDS_MAX][AS_AUDIT_HASH_SIZE]; /* of all files together, by number */
static uint64_t last_seq;

static void read_file(const char *path)
{
    struct as_chain *chain = as_chain_new();
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);
    struct as_error error = AS_ERROR_INIT;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    FILE *file = fopen(path, "r");
    cr_assert(file);
    while ((size = getline(&line, &capacity, file)) > 0) {
        cr_assert_eq(as_chain_verify_line(&verify, line, (size_t)size - 1, &error), AS_CHAIN_OK,
                     "%s: %s", path, error.text);
        const struct as_audit_head *head = &verify.head;
        cr_assert_lt(head->seq, RECORDS_MAX);
        if (*hashes[head->seq])
            cr_assert_str_eq(hashes[head->seq], head->hash, "two records %d", (int)head->seq);
        memcpy(hashes[head->seq], head->hash, AS_AUDIT_HASH_SIZE);
        if (head->seq > last_seq)
            last_seq = head->seq;
    }
    free(line);
    fclose(file);
    as_chain_free(chain);
}

static int read_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    if (type == FTW_F)
        read_file(path);
    return 0;
}

/* Every file is a chain (read_file), and all of them are one without gaps, up to the state's. */
static void check_all(void)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_audit_head head;
    memset(hashes, 0, sizeof(hashes));
    last_seq = 0;
    cr_assert_eq(nftw(directory, read_entry, 8, FTW_PHYS), 0);
    struct as_store *store = as_store_memory_attach(state);
    cr_assert_eq(as_storage_read_head(store, &head, &error), 0);
    store->close(store);
    cr_expect_eq(last_seq, head.seq);
    for (uint64_t seq = 1; seq <= head.seq; seq++)
        cr_assert(*hashes[seq], "record %d of %d is in no file", (int)seq, (int)head.seq);
    cr_expect_str_eq(hashes[head.seq], head.hash);
    cr_expect_geq(head.seq, 2 * acknowledged, "acknowledged records are missing");
}

Test(storage_shared, one_after_the_other_makes_one_chain)
{
    static const int order[] = {0, 1, 0, 0, 2, 1, 0};
    struct as_error error = AS_ERROR_INIT;
    uint64_t id = 0;
    for (size_t i = 0; i < AS_ARRAY_SIZE(order); i++) {
        lead(order[i]);
        for (int j = 0; j < 3; j++)
            submit(order[i], id++, j == 2);
        cr_assert_eq(as_storage_drain(pods[order[i]], &error), 0, "%s", error.text);
    }
    cr_expect_eq(acknowledged, id);
    check_all();
    char path[64];
    snprintf(path, sizeof(path), "%s/pod-0.jsonl.2", directory);
    cr_expect_eq(access(path, F_OK), 0, "each stretch of pod 0 is a file of its own");
}

Test(storage_shared, records_alone_do_not_pass_the_state_by)
{
    lead(0);
    submit(0, 0, true);
    as_storage_step(pods[0]);
    as_storage_deliver(pods[0]);
    cr_expect_eq(acknowledged, 1);
    lead(1); /* pod 0 never gets to say more */
    submit(1, 1, true);
    as_storage_step(pods[1]);
    as_storage_deliver(pods[1]);
    check_all();
}

/* Leads change at any moment: with lines in the outbox that one file has, both, or none. */
Test(storage_shared, whatever_the_moment_nothing_is_missing_and_nothing_is_twice)
{
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct as_random random;
        uint64_t id = 0;
        as_random_init(&random, seed);
        acknowledged = 0;
        for (int turn = 0; turn < 12; turn++) {
            int pod = (int)as_random_get_below(&random, PODS);
            lead(pod);
            uint64_t batches = as_random_get_below(&random, 5);
            while (batches-- > 0) {
                submit(pod, id++, as_random_get_below(&random, 3) == 0);
                if (as_random_get_below(&random, 4)) {
                    now.us += (int64_t)as_random_get_below(&random, 2 * AS_US_PER_S);
                    as_storage_step(pods[pod]);
                }
                as_storage_deliver(pods[pod]);
            }
        }
        lead(0);
        check_all();
        teardown();
        snprintf(directory, sizeof(directory), "/tmp/as-shared-XXXXXX");
        setup();
    }
}
