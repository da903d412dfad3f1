/*
 * The storage with its thread, for ThreadSanitizer (which does not work in Criterion's sandbox):
 * every function that the loop may call, while the thread works. Ends with 0 if all was answered in
 * order.
 */
#include <alertscaler/log/storage.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <event2/event.h>

#include <alertscaler/base/log.h>

#include "../support/audit_memory.h"
#include "../support/store_memory.h"
#include "../unit/records.h"

#define BATCHES 4000

static void expect(bool fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "not as promised: %s\n", what);
        exit(1);
    }
}

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

struct heard {
    uint64_t good, bad, failures, commits;
};

static void on_durable(void *context, uint64_t call_id, int status, const char *error)
{
    struct heard *heard = context;

    expect(call_id == heard->good + heard->bad + 1, "in order");
    expect(!status || (*error && heard->failures), "the failure is told first");
    *(status ? &heard->bad : &heard->good) += 1;
}

static void on_failed(void *context, int status, const char *error)
{
    ((struct heard *)context)->failures++;
}

static void on_committed(void *context, int64_t duration_us, size_t batches, size_t records,
                         size_t log_bytes)
{
    ((struct heard *)context)->commits++;
}

static struct as_storage_batch *make_batch(uint64_t call_id)
{
    struct as_storage_batch *batch = as_storage_batch_new(call_id);
    struct test_record made;

    as_storage_batch_put(batch, AS_STORE_TARGET, &call_id, sizeof(call_id), "value", 5);
    as_storage_batch_append(batch, test_record_make(&made, call_id));
    return batch;
}

/* In runs, so that the loop writes some of them itself. */
static bool is_repeat(uint64_t call_id)
{
    return call_id / 64 % 2 == 1;
}

/* No change of the state, and its record may lag. */
static struct as_storage_batch *make_repeat(uint64_t call_id)
{
    struct as_storage_batch *batch = as_storage_batch_new(call_id);
    struct test_record made;

    as_storage_batch_append(batch, test_record_make(&made, call_id));
    as_storage_batch_let_lag(batch);
    return batch;
}

/* One life; `commits`: that many are good before they fail, UINT64_MAX: all. */
static struct heard live(uint64_t commits)
{
    AS_CLEANUP(as_store_memory_free_p) struct as_store_memory *state = as_store_memory_new();
    AS_CLEANUP(as_audit_memory_free_p) struct as_audit_memory *log = as_audit_memory_new();
    struct event_base *base = event_base_new();
    struct as_storage_config config = as_storage_config_default;
    struct as_storage *storage = NULL;
    struct heard heard = {0};
    uint64_t refused = 0;

    config.store = as_store_memory_attach(state);
    config.audit = as_audit_memory_attach(log);
    config.clock = &test_clock;
    config.callbacks = (struct as_storage_callbacks){
        .durable = on_durable, .failed = on_failed, .committed = on_committed, .context = &heard};
    config.sync_interval_us = 200;
    config.max_batches = 50;
    expect(!as_storage_new(&config, &storage, NULL), "it opens");
    as_store_memory_fail(state, commits, -ENOSPC, false);
    expect(!as_storage_start(storage, base, NULL), "it starts");
    for (uint64_t call_id = 1; call_id <= BATCHES;) {
        if (as_storage_has_room(storage) || commits != UINT64_MAX) {
            as_storage_submit(storage,
                              is_repeat(call_id) ? make_repeat(call_id) : make_batch(call_id));
            call_id++;
        } else {
            refused++;
        }
        expect(as_storage_find_log_file(storage, 100) <= 1, "one file");
        if (call_id % 8 == 0)
            event_base_loop(base, EVLOOP_NONBLOCK);
        if (call_id % 500 == 0)
            as_storage_reopen_log(storage);
        if (call_id % 1000 == 0)
            expect(!as_storage_drain(storage, NULL) || commits != UINT64_MAX, "drain");
        expect(as_storage_get_counts(storage).commits <= BATCHES, "counts");
    }
    expect((as_storage_drain(storage, NULL) == 0) == (commits == UINT64_MAX), "drain");
    as_storage_free(storage);
    event_base_free(base);
    printf("good %llu, bad %llu, commits %llu, no room %llu times\n",
           (unsigned long long)heard.good, (unsigned long long)heard.bad,
           (unsigned long long)heard.commits, (unsigned long long)refused);
    return heard;
}

int main(void)
{
    struct heard heard = live(UINT64_MAX);

    expect(heard.good == BATCHES && !heard.bad && !heard.failures, "all is durable");
    heard = live(7);
    expect(heard.good && heard.bad && heard.failures == 1, "then all fails");
    expect(heard.good + heard.bad == BATCHES, "all is answered");
    return 0;
}
