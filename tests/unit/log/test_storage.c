/*
 * The storage: an acknowledged record is in the store and, once, in the log, whatever call of store
 * or log fails and wherever the process ends.
 */
#include <alertscaler/log/storage.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>

#include "../../support/audit_memory.h"
#include "../../support/store_memory.h"
#include "../records.h"
#include "log/storage_private.h"

static as_mono_time test_now;

static as_mono_time get_mono(const struct as_clock *self)
{
    return test_now;
}

static as_wall_time get_wall(const struct as_clock *self)
{
    return (as_wall_time){test_now.us};
}

static const struct as_clock test_clock = {.get_mono = get_mono, .get_wall = get_wall};

/* What the callbacks said. */
struct heard {
    uint64_t call_ids[20000];
    size_t good, bad; /* tickets: the good ones first */
    size_t failures, commits, committed_batches;
    int status;
    char error[AS_ERROR_SIZE];
    bool out_of_order;
};

static void on_durable(void *context, uint64_t call_id, int status, const char *error)
{
    struct heard *heard = context;

    if (heard->good + heard->bad && heard->call_ids[heard->good + heard->bad - 1] + 1 != call_id)
        heard->out_of_order = true;
    if (!status && heard->bad)
        heard->out_of_order = true;
    heard->call_ids[heard->good + heard->bad] = call_id;
    *(status ? &heard->bad : &heard->good) += 1;
    if (status && !heard->failures)
        heard->out_of_order = true;
}

static void on_failed(void *context, int status, const char *error)
{
    struct heard *heard = context;

    heard->failures++;
    heard->status = status;
    snprintf(heard->error, sizeof(heard->error), "%s", error);
}

static void on_committed(void *context, int64_t duration_us, size_t batches, size_t records,
                         size_t log_bytes)
{
    struct heard *heard = context;

    heard->commits++;
    heard->committed_batches += batches;
}

struct world {
    struct as_store_memory *state;
    struct as_audit_memory *log;
    struct heard heard;
};

static void setup(struct world *world)
{
    *world = (struct world){.state = as_store_memory_new(), .log = as_audit_memory_new()};
    test_now.us = 0;
}

static void teardown(struct world *world)
{
    as_store_memory_free(world->state);
    as_audit_memory_free(world->log);
}

static struct as_storage_config make_config(struct world *world)
{
    struct as_storage_config config = as_storage_config_default;

    config.clock = &test_clock;
    config.store = as_store_memory_attach(world->state);
    config.audit = as_audit_memory_attach(world->log);
    config.callbacks = (struct as_storage_callbacks){.durable = on_durable,
                                                     .failed = on_failed,
                                                     .committed = on_committed,
                                                     .context = &world->heard};
    return config;
}

static struct as_storage *open_storage(struct world *world)
{
    struct as_storage_config config = make_config(world);
    struct as_error error = AS_ERROR_INIT;
    struct as_storage *storage = NULL;

    memset(&world->heard, 0, sizeof(world->heard));
    cr_assert(!as_storage_new(&config, &storage, &error), "%s", error.text);
    return storage;
}

/* One change and two records, all naming the ticket. */
static struct as_storage_batch *make_batch(uint64_t call_id)
{
    struct as_storage_batch *batch = as_storage_batch_new(call_id);
    struct test_record made;
    char key[32];
    int size = snprintf(key, sizeof(key), "%08llu", (unsigned long long)call_id);

    as_storage_batch_put(batch, AS_STORE_TARGET, key, (size_t)size, "value", 5);
    as_storage_batch_append(batch, test_record_make(&made, 2 * call_id));
    as_storage_batch_append(batch, test_record_make(&made, 2 * call_id + 1));
    return batch;
}

static int collect_key(void *context, const void *key, size_t key_size, const void *value,
                       size_t value_size)
{
    char text[32] = "";
    bool *there = context;

    memcpy(text, key, key_size);
    there[strtoul(text, NULL, 10)] = true;
    return 0;
}

/* The log is a whole chain of the pairs of records of some tickets, in order, each once: exactly of
 * those whose change is in the store. `there_out` says which. */
static void check_world(struct world *world, bool *there_out, size_t count)
{
    AS_CLEANUP(as_chain_free_p) struct as_chain *chain = as_chain_new();
    struct as_chain_verify verify = AS_CHAIN_VERIFY_INIT(chain);
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = as_store_memory_attach(world->state);
    uint64_t last = 0;
    size_t size;
    const char *at = as_audit_memory_get_lines(world->log, &size), *end = at + size;

    memset(there_out, 0, count * sizeof(*there_out));
    cr_assert(!store->visit(store, AS_STORE_TARGET, collect_key, there_out, &error));
    store->close(store);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        cr_assert(newline);
        cr_assert(!as_chain_verify_line(&verify, at, (size_t)(newline - at), &error), "%s",
                  error.text);
        uint64_t id = strtoull(strstr(at, "\"id\":") + 5, NULL, 10);
        cr_assert(id > last);
        cr_assert(there_out[id / 2], "record of ticket %llu, which is not in the store",
                  (unsigned long long)(id / 2));
        if (id % 2)
            cr_assert_eq(last, id - 1);
        last = id;
        at = newline + 1;
    }
    size_t changes = 0;
    for (size_t i = 0; i < count; i++)
        changes += there_out[i];
    cr_assert_eq(verify.head.seq, 2 * changes);
    cr_assert_eq(as_store_memory_get_count(world->state, AS_STORE_OUTBOX), 0);
}

Test(storage, what_waits_together_shares_one_commit)
{
    struct world world;
    bool there[200];

    setup(&world);
    struct as_storage *storage = open_storage(&world);
    for (uint64_t i = 1; i <= 100; i++)
        as_storage_submit(storage, make_batch(i));
    cr_assert_eq(world.heard.good, 0, "nothing is said before it is durable");
    cr_assert(as_storage_step(storage));
    cr_assert_eq(world.heard.good, 0, "nothing is said but in the loop's turn");
    as_storage_deliver(storage);
    cr_assert_eq(world.heard.good, 100);
    cr_assert(!world.heard.out_of_order);
    cr_assert_eq(world.heard.commits, 1);
    cr_assert_eq(world.heard.committed_batches, 100);
    cr_assert_eq(as_store_memory_get_commits(world.state), 2, "one to open it");
    cr_assert(!as_storage_step(storage));
    struct as_storage_counts counts = as_storage_get_counts(storage);
    cr_assert_eq(counts.records, 200);
    cr_assert_eq(counts.head.seq, 200);
    cr_assert_eq(counts.waiting_batches, 0);
    cr_assert_eq(counts.waiting_bytes, 0);
    as_storage_free(storage);
    check_world(&world, there, 200);
    teardown(&world);
}

Test(storage, the_log_is_synced_after_its_interval_and_then_the_outbox_empties)
{
    struct world world;
    size_t size;

    setup(&world);
    struct as_storage *storage = open_storage(&world);
    cr_assert_eq(as_storage_get_next_deadline(storage).us, AS_MONO_NEVER.us);
    as_storage_submit(storage, make_batch(1));
    cr_assert(as_storage_step(storage));
    as_audit_memory_get_lines(world.log, &size);
    cr_assert(size > 0, "the line is in the log at once");
    cr_assert_eq(as_audit_memory_get_synced(world.log), 0);
    cr_assert_eq(as_store_memory_get_count(world.state, AS_STORE_OUTBOX), 1);
    cr_assert_eq(as_storage_get_next_deadline(storage).us, AS_US_PER_S);
    test_now.us = AS_US_PER_S - 1;
    cr_assert(!as_storage_step(storage));
    test_now.us = AS_US_PER_S;
    cr_assert(as_storage_step(storage));
    cr_assert_eq(as_audit_memory_get_synced(world.log), size);
    cr_assert_eq(as_store_memory_get_count(world.state, AS_STORE_OUTBOX), 1);
    as_storage_submit(storage, make_batch(2));
    cr_assert(as_storage_step(storage));
    cr_assert_eq(as_store_memory_get_count(world.state, AS_STORE_OUTBOX), 1,
                 "the synced row went with the next commit");
    as_storage_free(storage);
    teardown(&world);
}

/* Records alone, with the ids of a batch. */
static struct as_storage_batch *make_repeat(uint64_t call_id)
{
    struct as_storage_batch *batch = as_storage_batch_new(call_id);
    struct test_record made;

    as_storage_batch_append(batch, test_record_make(&made, 2 * call_id));
    as_storage_batch_let_lag(batch);
    return batch;
}

Test(storage, what_may_lag_is_written_when_it_is_answered_and_synced_50_ms_later)
{
    struct world world;
    size_t size, more;

    setup(&world);
    struct as_storage *storage = open_storage(&world);
    for (uint64_t call_id = 1; call_id <= 2; call_id++) {
        as_storage_submit(storage, make_repeat(call_id));
        cr_assert(as_storage_step(storage));
        as_storage_deliver(storage);
        test_now.us += 20 * AS_US_PER_MS;
    }
    cr_assert_eq(world.heard.good, 2);
    as_audit_memory_get_lines(world.log, &size);
    cr_assert(size > 0, "what is killed loses none");
    cr_assert_eq(as_audit_memory_get_synced(world.log), 0);
    cr_assert_eq(as_storage_get_next_deadline(storage).us, 50 * AS_US_PER_MS);
    test_now.us = 50 * AS_US_PER_MS;
    cr_assert(as_storage_step(storage));
    cr_assert_eq(as_audit_memory_get_synced(world.log), size);
    cr_assert_eq(as_storage_get_next_deadline(storage).us, AS_MONO_NEVER.us);

    struct as_storage_batch *other = make_repeat(3), *record = as_storage_batch_new(4);
    struct test_record made;
    as_storage_submit(storage, other);
    as_storage_batch_append(record, test_record_make(&made, 8));
    as_storage_submit(storage, record); /* one that may not lag, in the same commit */
    cr_assert(as_storage_step(storage));
    as_audit_memory_get_lines(world.log, &more);
    cr_assert(more > size);
    cr_assert_eq(as_audit_memory_get_synced(world.log), more);
    as_storage_free(storage);
    teardown(&world);
}

/* The store has the number and hash of what comes after them. */
Test(storage, what_lags_is_synced_before_a_change_is_committed)
{
    for (size_t keep = 0;; keep++) {
        struct world world;
        size_t size;
        setup(&world);
        struct as_storage *storage = open_storage(&world);
        as_storage_submit(storage, make_batch(1));
        as_storage_step(storage);
        as_storage_submit(storage, make_repeat(2));
        as_storage_step(storage);
        as_audit_memory_get_lines(world.log, &size);
        as_storage_submit(storage, make_batch(3));
        as_storage_step(storage);
        const size_t synced = as_audit_memory_get_synced(world.log);
        cr_assert_eq(synced, size);
        as_audit_memory_get_lines(world.log, &size);
        as_store_memory_fail(world.state, 0, -EIO, false); /* no tidy end */
        as_storage_free(storage);
        const bool last = synced + keep >= size;
        as_audit_memory_cut(world.log, last ? size : synced + keep);
        storage = open_storage(&world);
        cr_assert_eq(as_storage_get_counts(storage).head.seq, 5);
        as_storage_free(storage);
        teardown(&world);
        if (last)
            break;
    }
}

Test(storage, the_chain_goes_on_over_restarts)
{
    struct world world;
    bool there[64];

    setup(&world);
    for (uint64_t i = 1; i <= 20; i++) {
        struct as_storage *storage = open_storage(&world);
        cr_assert_eq(as_storage_get_counts(storage).head.seq, 2 * (i - 1));
        as_storage_submit(storage, make_batch(i));
        as_storage_free(storage); /* drains */
    }
    check_world(&world, there, 64);
    cr_assert(there[20]);
    teardown(&world);
}

Test(storage, a_batch_of_nothing_is_acknowledged_without_a_commit)
{
    struct world world;

    setup(&world);
    struct as_storage *storage = open_storage(&world);
    struct as_storage_batch *batch = as_storage_batch_new(7);
    as_storage_submit(storage, batch);
    as_storage_step(storage);
    as_storage_deliver(storage);
    cr_assert_eq(world.heard.good, 1);
    cr_assert_eq(as_store_memory_get_commits(world.state), 1, "only that of opening it");
    as_storage_free(storage);
    teardown(&world);
}

Test(storage, there_is_no_room_when_too_much_waits)
{
    struct world world;

    setup(&world);
    struct as_storage_config config = make_config(&world);
    struct as_storage *storage = NULL;
    config.max_batches = 3;
    cr_assert(!as_storage_new(&config, &storage, NULL));
    for (uint64_t i = 1; i <= 3; i++) {
        cr_assert(as_storage_has_room(storage));
        as_storage_submit(storage, make_batch(i));
    }
    cr_assert(!as_storage_has_room(storage));
    as_storage_submit(storage, make_batch(4)); /* an outcome that must not be refused */
    as_storage_step(storage);
    as_storage_deliver(storage);
    cr_assert(as_storage_has_room(storage));
    cr_assert_eq(world.heard.good, 4);
    as_storage_free(storage);
    teardown(&world);
}

/* Three rounds of submit, step, deliver; then a sync. Good tickets into `said`. */
static void run_rounds(struct world *world, struct as_storage *storage, uint64_t *call_id,
                       bool *said)
{
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++)
            as_storage_submit(storage, make_batch(++*call_id));
        as_storage_step(storage);
        as_storage_deliver(storage);
        test_now.us += AS_US_PER_S / 2;
    }
    cr_assert(!world->heard.out_of_order);
    for (size_t i = 0; i < world->heard.good; i++)
        said[world->heard.call_ids[i]] = true;
    memset(&world->heard, 0, sizeof(world->heard));
}

static void check_promise(struct world *world, const bool *said, size_t count)
{
    bool there[64];

    as_storage_free(open_storage(world));
    check_world(world, there, 64);
    for (size_t i = 0; i < count; i++)
        cr_assert(!said[i] || there[i], "acknowledged ticket %zu is lost", i);
}

Test(storage, whichever_commit_fails_nothing_acknowledged_is_lost)
{
    for (int applied = 0; applied < 2; applied++) {
        for (uint64_t fail_at = 0; fail_at < 6; fail_at++) {
            struct world world;
            bool said[64] = {false};
            uint64_t call_id = 0;
            setup(&world);
            for (int life = 0; life < 3; life++) {
                struct as_storage *storage = open_storage(&world);
                as_store_memory_fail(world.state, fail_at, -ENOSPC, applied);
                run_rounds(&world, storage, &call_id, said);
                if (fail_at < 3)
                    cr_assert(!as_storage_has_room(storage));
                as_storage_free(storage);
            }
            check_promise(&world, said, 64);
            teardown(&world);
        }
    }
}

Test(storage, whichever_append_or_sync_fails_nothing_acknowledged_is_lost)
{
    static const size_t torn[] = {0, 1, 100, 217, 300, 100000};

    for (size_t i = 0; i < AS_ARRAY_SIZE(torn); i++) {
        for (uint64_t fail_at = 0; fail_at < 6; fail_at++) {
            struct world world;
            bool said[64] = {false};
            uint64_t call_id = 0;
            setup(&world);
            for (int life = 0; life < 3; life++) {
                struct as_storage *storage = open_storage(&world);
                as_audit_memory_fail(world.log, fail_at, -EIO, torn[i]);
                run_rounds(&world, storage, &call_id, said);
                as_storage_free(storage);
            }
            check_promise(&world, said, 64);
            teardown(&world);
        }
    }
}

Test(storage, a_power_loss_takes_what_was_not_synced_and_the_outbox_gives_it_back)
{
    /* Every length that the file may have after it. */
    for (size_t keep = 0;; keep++) {
        struct world world;
        bool said[64] = {false};
        uint64_t call_id = 0;
        size_t size;
        setup(&world);
        struct as_storage *storage = open_storage(&world);
        run_rounds(&world, storage, &call_id, said); /* ends with a sync */
        for (int i = 0; i < 2; i++) {
            as_storage_submit(storage, make_batch(++call_id));
            as_storage_step(storage);
            said[call_id] = true;
        }
        as_audit_memory_get_lines(world.log, &size);
        size_t synced = as_audit_memory_get_synced(world.log);
        cr_assert(synced > 0 && synced < size);
        as_store_memory_fail(world.state, 0, -EIO, false); /* no tidy end */
        as_storage_free(storage);
        bool last = synced + keep >= size;
        as_audit_memory_cut(world.log, last ? size : synced + keep);
        check_promise(&world, said, 64);
        teardown(&world);
        if (last)
            break;
    }
}

Test(storage, after_a_failure_everything_is_answered_with_it)
{
    struct world world;

    setup(&world);
    struct as_storage *storage = open_storage(&world);
    as_store_memory_fail(world.state, 1, -ENOSPC, false);
    as_storage_submit(storage, make_batch(1));
    as_storage_step(storage);
    as_storage_submit(storage, make_batch(2));
    as_storage_step(storage);
    as_storage_submit(storage, make_batch(3));
    as_storage_deliver(storage);
    cr_assert_eq(world.heard.good, 1);
    cr_assert_eq(world.heard.bad, 2);
    cr_assert_eq(world.heard.failures, 1);
    cr_assert_eq(world.heard.status, -ENOSPC);
    cr_assert_str_eq(world.heard.error, "state in memory: No space left on device");
    cr_assert(!world.heard.out_of_order);
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(as_storage_drain(storage, &error), -ENOSPC);
    cr_assert_str_eq(error.text, world.heard.error);
    as_storage_free(storage);
    teardown(&world);
}

Test(storage, a_store_that_cannot_be_written_does_not_open)
{
    struct world world;
    struct as_error error = AS_ERROR_INIT;
    struct as_storage *storage = NULL;

    setup(&world);
    struct as_storage_config config = make_config(&world);
    as_store_memory_fail(world.state, 0, -ENOSPC, false);
    cr_assert_eq(as_storage_new(&config, &storage, &error), -ENOSPC);
    cr_assert_str_eq(error.text, "state in memory: No space left on device");
    teardown(&world);
}

Test(storage, a_state_that_is_older_than_the_log_never_uses_a_number_twice)
{
    struct world world;
    size_t size;

    setup(&world);
    struct as_storage *storage = open_storage(&world);
    as_storage_submit(storage, make_batch(1));
    as_storage_free(storage);
    as_store_memory_free(world.state);
    world.state = as_store_memory_new(); /* moved away */
    storage = open_storage(&world);
    cr_assert_eq(as_storage_get_counts(storage).head.seq, 2);
    as_storage_submit(storage, make_batch(2));
    as_storage_free(storage);
    const char *lines = as_audit_memory_get_lines(world.log, &size);
    cr_assert(strstr(lines, "\"seq\":3,"));
    cr_assert(strstr(lines, "\"seq\":4,"));
    teardown(&world);
}

Test(storage, a_log_that_was_moved_away_goes_on_with_the_next_number)
{
    struct world world;
    size_t size;

    setup(&world);
    struct as_storage *storage = open_storage(&world);
    as_storage_submit(storage, make_batch(1));
    as_storage_free(storage);
    as_audit_memory_cut(world.log, 0);
    storage = open_storage(&world);
    as_storage_submit(storage, make_batch(2));
    as_storage_free(storage);
    const char *lines = as_audit_memory_get_lines(world.log, &size);
    cr_assert(strstr(lines, "\"seq\":3,"));
    cr_assert(!strstr(lines, "\"seq\":1,"));
    teardown(&world);
}

Test(storage, a_damaged_outbox_is_refused)
{
    static const struct {
        const char *key, *value;
        size_t key_size;
    } rows[] = {
        {"12345678", "no line end", 8},
        {"12345678", "no record\n", 8},
        {"1234567", "{}\n", 7},
        {"12345678", "", 8},
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct world world;
        struct as_error error = AS_ERROR_INIT;
        struct as_storage *storage = NULL;
        setup(&world);
        struct as_store *store = as_store_memory_attach(world.state);
        struct as_store_change change = {.kind = AS_STORE_OUTBOX,
                                         .key = rows[i].key,
                                         .key_size = rows[i].key_size,
                                         .value = rows[i].value,
                                         .value_size = strlen(rows[i].value)};
        cr_assert(!store->commit(store, &change, 1, NULL));
        store->close(store);
        struct as_storage_config config = make_config(&world);
        cr_assert_eq(as_storage_new(&config, &storage, &error), -EBADMSG);
        cr_assert(strstr(error.text, "outbox"));
        teardown(&world);
    }
}

/* --- with its thread --- */

static as_mono_time get_real_mono(const struct as_clock *self)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (as_mono_time){now.tv_sec * AS_US_PER_S + now.tv_nsec / 1000};
}

static const struct as_clock real_clock = {.get_mono = get_real_mono, .get_wall = get_wall};

/* A log that stands where the test says. */
struct place_audit {
    struct as_audit port;
    struct as_audit_place place;
};

static struct as_audit_head place_get_head(const struct as_audit *self)
{
    return AS_AUDIT_HEAD_INIT;
}

static int place_append(struct as_audit *self, const char *lines, size_t size,
                        const struct as_audit_head *head, struct as_error *error)
{
    return 0;
}

static int place_sync(struct as_audit *self, struct as_error *error)
{
    return 0;
}

static struct as_audit_place place_get_place(const struct as_audit *self)
{
    return ((const struct place_audit *)self)->place;
}

static void place_close(struct as_audit *self)
{
}

static struct as_storage *open_in_place(struct world *world, struct place_audit *audit)
{
    struct as_storage_config config = make_config(world);
    struct as_storage *storage;
    struct as_error error = AS_ERROR_INIT;

    config.audit->close(config.audit);
    *audit = (struct place_audit){.port = {.get_head = place_get_head,
                                           .append = place_append,
                                           .sync = place_sync,
                                           .reopen = place_sync,
                                           .get_place = place_get_place,
                                           .close = place_close}};
    config.audit = &audit->port;
    cr_assert(!as_storage_new(&config, &storage, &error), "%s", error.text);
    return storage;
}

static struct as_storage *open_with_thread(struct world *world, struct event_base *base)
{
    struct as_storage_config config = make_config(world);
    struct as_error error = AS_ERROR_INIT;
    struct as_storage *storage = NULL;

    config.clock = &real_clock;
    config.sync_interval_us = AS_US_PER_MS;
    cr_assert(!as_storage_new(&config, &storage, &error), "%s", error.text);
    cr_assert(!as_storage_start(storage, base, &error), "%s", error.text);
    return storage;
}

Test(storage, the_thread_answers_all_in_order)
{
    struct event_base *base = event_base_new();
    struct world world;
    static bool there[20001];

    setup(&world);
    struct as_storage *storage = open_with_thread(&world, base);
    for (uint64_t i = 1; i <= 5000; i++) {
        as_storage_submit(storage, make_batch(i));
        if (i % 16 == 0)
            event_base_loop(base, EVLOOP_NONBLOCK);
        if (i % 1000 == 0)
            as_storage_reopen_log(storage);
    }
    while (world.heard.good < 5000)
        cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
    cr_assert(!world.heard.out_of_order);
    cr_assert_eq(world.heard.committed_batches, 5000);
    for (uint64_t i = 5001; i <= 5010; i++)
        as_storage_submit(storage, make_batch(i));
    cr_assert_eq(as_storage_drain(storage, NULL), 0);
    cr_assert_eq(world.heard.good, 5010);
    cr_assert_eq(as_store_memory_get_count(world.state, AS_STORE_OUTBOX), 0);
    as_storage_submit(storage, make_batch(5011)); /* free drains too */
    as_storage_free(storage);
    check_world(&world, there, 20001);
    cr_assert(there[5011]);
    event_base_free(base);
    teardown(&world);
}

/* A pass of the loop, without waiting for the other thread. */
Test(storage, what_may_lag_needs_no_other_thread)
{
    struct world world;
    size_t size;

    setup(&world);
    struct event_base *base = event_base_new();
    struct as_storage *storage = open_with_thread(&world, base);
    event_base_loop(base, EVLOOP_NONBLOCK);
    for (uint64_t call_id = 1; call_id <= 3; call_id++)
        as_storage_submit(storage, make_repeat(call_id));
    cr_assert_eq(world.heard.good, 0);
    event_base_loop(base, EVLOOP_NONBLOCK);
    cr_assert_eq(world.heard.good, 3);
    cr_assert_eq(world.heard.commits, 1, "they share a write");
    as_audit_memory_get_lines(world.log, &size);
    cr_assert(size > 0);
    as_storage_free(storage);
    event_base_free(base);
    teardown(&world);
}

/* It syncs and renames. */
Test(storage, a_rotation_is_not_the_loops)
{
    struct world world;
    struct place_audit audit;

    setup(&world);
    struct as_storage *storage = open_in_place(&world, &audit);
    audit.place = (struct as_audit_place){1, 10000};
    as_storage_submit(storage, make_repeat(1));
    as_storage_step(storage); /* looks where the log stands */
    as_storage_submit(storage, make_repeat(2));
    audit.place.room = 100;
    cr_assert(storage_write_lagging(storage), "there was room when it looked last");
    as_storage_submit(storage, make_repeat(3));
    cr_assert(!storage_write_lagging(storage));
    cr_assert(as_storage_step(storage), "it is the thread's");
    as_storage_deliver(storage);
    cr_assert_eq(world.heard.good, 3);
    as_storage_free(storage);
    teardown(&world);
}

Test(storage, the_file_of_what_is_submitted_is_said_only_where_it_is_sure)
{
    struct world world;
    struct place_audit audit;

    setup(&world);
    struct as_storage *storage = open_in_place(&world, &audit);
    audit.place = (struct as_audit_place){3, 10000};
    as_storage_submit(storage, make_repeat(1));
    as_storage_step(storage); /* looks where the log stands */
    cr_assert_eq(as_storage_find_log_file(storage, 9000), 3);
    cr_assert_eq(as_storage_find_log_file(storage, 9999), 0, "what sealing adds counts too");
    for (uint64_t call_id = 2; as_storage_find_log_file(storage, 100); call_id++) {
        as_storage_submit(storage, make_repeat(call_id));
        cr_assert(call_id < 100, "what waits counts");
    }
    as_storage_step(storage);
    cr_assert_eq(as_storage_find_log_file(storage, 9000), 3, "what is written was told");
    as_storage_reopen_log(storage);
    cr_assert_eq(as_storage_find_log_file(storage, 1), 0, "it is to be opened again");
    as_storage_step(storage);
    cr_assert_eq(as_storage_find_log_file(storage, 1), 3);
    as_storage_free(storage);
    teardown(&world);
}

/* A log of files of 1,000 bytes: which of them the first record of each ticket went to. */
struct full_audit {
    struct place_audit in_place; /* first */
    struct as_storage *storage;
    uint64_t files[16];
    size_t appends;
    bool is_busy; /* with the append of the first: others come meanwhile */
    uint64_t said;
};

static int full_append(struct as_audit *self, const char *lines, size_t size,
                       const struct as_audit_head *head, struct as_error *error)
{
    struct full_audit *audit = (struct full_audit *)self;
    struct as_audit_place *place = &audit->in_place.place;

    if (size > place->room)
        *place = (struct as_audit_place){place->file + 1, 1000};
    place->room -= size < place->room ? size : place->room;
    audit->files[audit->appends++] = place->file;
    if (audit->is_busy) {
        audit->is_busy = false;
        audit->said = as_storage_find_log_file(audit->storage, 300);
        as_storage_submit(audit->storage, make_repeat(2));
        as_storage_reopen_log(audit->storage);
        as_storage_submit(audit->storage, make_repeat(3));
    }
    return 0;
}

static int full_reopen(struct as_audit *self, struct as_error *error)
{
    ((struct full_audit *)self)->in_place.place.file++;
    return 0;
}

static void open_full(struct world *world, struct full_audit *audit, uint64_t room)
{
    audit->storage = open_in_place(world, &audit->in_place);
    audit->in_place.port.append = full_append;
    audit->in_place.port.reopen = full_reopen;
    audit->in_place.place = (struct as_audit_place){1, room};
    as_storage_reopen_log(audit->storage); /* looks where the log stands: in file 2 */
    as_storage_step(audit->storage);
}

/* What comes behind it in the same commit may not take it over to the next file. */
Test(storage, what_is_sure_stays_in_its_file_whatever_is_committed_with_it)
{
    struct world world;
    struct full_audit audit = {0};

    setup(&world);
    open_full(&world, &audit, 800);
    cr_assert_eq(as_storage_find_log_file(audit.storage, 300), 2);
    as_storage_submit(audit.storage, make_repeat(1));
    cr_assert_eq(as_storage_find_log_file(audit.storage, 600), 0);
    for (uint64_t call_id = 2; call_id <= 4; call_id++)
        as_storage_submit(audit.storage, make_repeat(call_id));
    while (as_storage_step(audit.storage))
        ;
    as_storage_deliver(audit.storage);
    cr_assert_eq(world.heard.good, 4);
    cr_assert_eq(audit.files[0], 2);
    as_storage_free(audit.storage);
    teardown(&world);
}

/* logrotate's signal counts from when it came. */
Test(storage, what_was_sure_before_the_log_is_to_be_opened_again_stays_in_its_file)
{
    struct world world;
    struct full_audit audit = {0};

    setup(&world);
    open_full(&world, &audit, 100000);
    as_storage_submit(audit.storage, make_repeat(1));
    audit.is_busy = true;
    while (as_storage_step(audit.storage))
        ;
    as_storage_deliver(audit.storage);
    cr_assert_eq(world.heard.good, 3);
    cr_assert_eq(audit.said, 2);
    cr_assert_eq(audit.files[1], 2, "it waited already");
    cr_assert_eq(audit.in_place.place.file, 3);
    as_storage_free(audit.storage);
    teardown(&world);
}

Test(storage, the_thread_tells_a_failure_and_goes_on_answering)
{
    struct event_base *base = event_base_new();
    struct world world;

    setup(&world);
    as_audit_memory_free(world.log);
    world.log = as_audit_memory_new();
    struct as_storage *storage = open_with_thread(&world, base);
    as_store_memory_fail(world.state, 0, -ENOSPC, false);
    for (uint64_t i = 1; i <= 100; i++)
        as_storage_submit(storage, make_batch(i));
    while (world.heard.good + world.heard.bad < 100)
        cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
    cr_assert_eq(world.heard.bad, 100);
    cr_assert_eq(world.heard.failures, 1);
    as_storage_submit(storage, make_batch(101));
    while (world.heard.bad < 101)
        cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
    cr_assert_eq(as_storage_drain(storage, NULL), -ENOSPC);
    as_storage_free(storage);
    event_base_free(base);
    teardown(&world);
}

/* A former leader's: whatever it submits after another has opened the state is refused, and neither
 * state nor log know of it. */
Test(storage, what_another_has_opened_is_not_written_any_more)
{
    struct world world;
    bool there[3];
    setup(&world);
    struct as_storage *former = open_storage(&world);
    struct as_error error = AS_ERROR_INIT;
    as_storage_submit(former, make_batch(1));
    cr_assert(!as_storage_drain(former, &error));
    struct as_storage *leader = open_storage(&world);
    as_storage_submit(former, make_batch(2));
    cr_assert_eq(as_storage_drain(former, &error), -ESTALE);
    cr_assert(!as_storage_has_room(former));
    as_storage_free(former);
    as_storage_free(leader);
    check_world(&world, there, AS_ARRAY_SIZE(there));
    cr_assert(there[1] && !there[2]);
    teardown(&world);
}

/* A disk without room: no start on it, and afterwards all goes on. */
Test(storage, a_full_disk_refuses_the_start)
{
    struct world world;
    struct as_error error = AS_ERROR_INIT;
    for (int i = 0; i < 2; i++) {
        struct as_storage *storage = NULL;
        setup(&world);
        if (i == 0)
            as_store_memory_break(world.state, -ENOSPC);
        else
            as_audit_memory_break(world.log, -ENOSPC);
        const struct as_storage_config config = make_config(&world);
        cr_assert_eq(as_storage_new(&config, &storage, &error), -ENOSPC);
        as_store_memory_break(world.state, 0);
        as_audit_memory_break(world.log, 0);
        storage = open_storage(&world);
        as_storage_free(storage);
        teardown(&world);
    }
}
