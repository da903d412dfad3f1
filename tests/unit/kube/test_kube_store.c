/*
 * kube/kube_store.h against a fake API server, beyond the promises of every store (tests/port):
 * the caller never sees the fault of one request, a crash between any two requests loses nothing
 * acknowledged and leaves nothing half-written, and an earlier holder of the state is locked out,
 * whatever it was doing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/log.h>
#include <alertscaler/kube/kube_store.h>

#include "../../support/store_memory.h"
#include "kube/kube_state.h"
#include "kube_api.h"

static struct kube_api api;

static void setup(void)
{
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, STDERR_FILENO);
    kube_api_init(&api);
}

static void teardown(void)
{
    kube_api_deinit(&api);
}

TestSuite(kube_store, .init = setup, .fini = teardown, .timeout = 300);

static struct as_store *must_open(const char *holder)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = NULL;
    cr_assert_eq(kube_api_open(&api, holder, &store, &error), 0, "%s", error.text);
    return store;
}

/* A scenario: commits of some changes each, large enough that the journal becomes objects and
 * shards are written. */

#define STEPS      14
#define VALUE_SIZE 12000

struct step {
    struct as_store_change changes[5];
    size_t count;
    char keys[5][16], values[2][VALUE_SIZE];
};

static void make_step(struct step *step, unsigned number, char salt)
{
    *step = (struct step){.count = 5};
    for (size_t i = 0; i < 2; i++) {
        memset(step->values[i], 'a' + (char)((number + i) % 26), VALUE_SIZE);
        memcpy(step->values[i], "{\"\xc3\xa4\":\"", 7);
        step->values[i][7] = salt;
    }
    snprintf(step->keys[0], 16, "target/%u", number % 5);
    snprintf(step->keys[1], 16, "incident%u", number);
    snprintf(step->keys[2], 16, "out%u", number);
    snprintf(step->keys[3], 16, "out%u", number - 1);
    snprintf(step->keys[4], 16, "incident%u", number - 3);
    const struct as_store_change changes[5] = {
        {AS_STORE_TARGET, step->keys[0], strlen(step->keys[0]), step->values[0], VALUE_SIZE},
        {AS_STORE_INCIDENT, step->keys[1], strlen(step->keys[1]), step->values[1], VALUE_SIZE / 2},
        {AS_STORE_OUTBOX, step->keys[2], strlen(step->keys[2]), "{}\n{}\n", 6},
        {AS_STORE_OUTBOX, step->keys[3], strlen(step->keys[3]), NULL, 0},
        {AS_STORE_INCIDENT, step->keys[4], strlen(step->keys[4]), NULL, 0},
    };
    memcpy(step->changes, changes, sizeof(changes));
}

/* 0 or the commit's failure. */
static int take_step(struct as_store *store, unsigned number, char salt)
{
    struct step step;
    struct as_error error = AS_ERROR_INIT;
    make_step(&step, number, salt);
    int code = store->commit(store, step.changes, step.count, &error);
    cr_assert(code == 0 || *error.text, "a failure without words");
    if (code == 0 && store->tidy)
        store->tidy(store);
    return code;
}

/* Everything in a store, as text. */

static int dump_record(void *context, const void *key, size_t key_size, const void *value,
                       size_t value_size)
{
    struct as_buf *text = context;
    as_buf_append(text, key, key_size);
    as_buf_append_char(text, '=');
    as_buf_append(text, value, value_size);
    as_buf_append_char(text, '\n');
    return 0;
}

static char *dump(struct as_store *store)
{
    struct as_buf text = AS_BUF_INIT(64 << 20);
    as_buf_append_str(&text, "");
    for (int kind = 0; kind < AS_STORE_KIND_COUNT; kind++) {
        as_buf_append_str(&text, "--\n");
        cr_assert_eq(store->visit(store, (enum as_store_kind)kind, dump_record, &text, NULL), 0);
    }
    cr_assert_eq(as_buf_check(&text), 0);
    return as_buf_take(&text, NULL);
}

/* What a store must hold after so many steps. */
static char *wanted[STEPS + 1];

static void make_wanted(void)
{
    struct as_store_memory *memory = as_store_memory_new();
    struct as_store *store = as_store_memory_attach(memory);
    wanted[0] = dump(store);
    for (unsigned i = 0; i < STEPS; i++) {
        cr_assert_eq(take_step(store, i, '-'), 0);
        wanted[i + 1] = dump(store);
    }
    store->close(store);
    as_store_memory_free(memory);
}

static void free_wanted(void)
{
    for (unsigned i = 0; i <= STEPS; i++)
        free(wanted[i]);
}

static bool holds(struct as_store *store, const char *text)
{
    AS_CLEANUP(as_free_p) char *got = dump(store);
    return strcmp(got, text) == 0;
}

/* Also after it was opened again. */
static void expect_durable(const char *text, const char *when)
{
    struct as_store *store = must_open("reader");
    cr_expect(holds(store, text), "%s", when);
    store->close(store);
}

static uint64_t count_requests(void)
{
    struct as_store *store = must_open("a");
    for (unsigned i = 0; i < STEPS; i++)
        cr_assert_eq(take_step(store, i, '-'), 0);
    store->close(store);
    cr_assert_str_eq(kube_api_get(&api, "alertscaler-state", "holder"), "a");
    cr_assert_not_null(kube_api_get(&api, "alertscaler-state-0", "sequence"), "no shard");
    cr_assert_not_null(kube_api_get(&api, "alertscaler-state-journal-7", "serial"), "no segment");
    return api.requests;
}

static void start_anew(void)
{
    kube_api_deinit(&api);
    kube_api_init(&api);
}

/* Faults of single requests */

struct plan {
    uint64_t from, count; /* which requests */
    enum kube_api_fault fault;
};

static enum kube_api_fault follow_plan(void *context, uint64_t number, const char *method,
                                       const char *name)
{
    const struct plan *plan = context;
    return number >= plan->from && number - plan->from < plan->count ? plan->fault : KUBE_API_NONE;
}

Test(kube_store, no_fault_of_one_request_is_seen)
{
    make_wanted();
    uint64_t requests = count_requests();
    cr_assert_gt(requests, STEPS);
    for (uint64_t k = 0; k < requests; k++) {
        for (int fault = KUBE_API_LOST_BEFORE; fault < KUBE_API_FORBIDDEN; fault++) {
            struct plan plan = {k, 1 + k % 2, (enum kube_api_fault)fault};
            char when[64];
            if ((k + (uint64_t)fault) % 3 != 0)
                continue; /* every request and every fault, but not each with each */
            start_anew();
            api.fault = follow_plan;
            api.fault_context = &plan;
            struct as_store *store = must_open("a");
            snprintf(when, sizeof(when), "request %d, fault %d", (int)k, fault);
            for (unsigned i = 0; i < STEPS; i++)
                cr_assert_eq(take_step(store, i, '-'), 0, "%s, step %u", when, i);
            cr_expect(holds(store, wanted[STEPS]), "%s", when);
            store->close(store);
            api.fault = NULL;
            expect_durable(wanted[STEPS], when);
        }
    }
    free_wanted();
}

/* The process dies at request k, which is carried out or not. For the store that looks as if the
 * network were gone for good, so that the same test shows that it gives up in time. */
static enum kube_api_fault die(void *context, uint64_t number, const char *method, const char *name)
{
    const struct plan *plan = context;
    if (number > plan->from)
        return KUBE_API_UNREACHABLE;
    return number == plan->from ? plan->fault : KUBE_API_NONE;
}

/* How many steps were acknowledged. */
static unsigned live_until_death(struct plan *plan)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store;
    unsigned done = 0;
    int code = 0;
    api.fault = die;
    api.fault_context = plan;
    if (kube_api_open(&api, "a", &store, &error) < 0) {
        api.fault = NULL;
        return 0;
    }
    int64_t before = api.world.mono.us;
    while (done < STEPS && (code = take_step(store, done, '-')) == 0) {
        before = api.world.mono.us;
        done++;
    }
    if (done < STEPS) {
        cr_expect(code == -EIO || code == -ETIMEDOUT, "%d", code);
        cr_expect_leq(api.world.mono.us - before,
                      AS_STORE_KUBE_TRYING_US + AS_STORE_KUBE_TIMEOUT_US);
        cr_expect_eq(take_step(store, done, '-'), code, "it must be opened again");
    }
    store->close(store);
    api.fault = NULL;
    return done;
}

Test(kube_store, a_crash_at_any_step_loses_nothing_and_keeps_nothing_half)
{
    make_wanted();
    uint64_t requests = count_requests();
    for (uint64_t k = 0; k < requests; k++) {
        for (int fault = KUBE_API_LOST_BEFORE; fault <= KUBE_API_LOST_AFTER; fault++) {
            struct plan plan = {k, 1, (enum kube_api_fault)fault};
            start_anew();
            unsigned done = live_until_death(&plan);
            struct as_store *store = must_open("b");
            if (done < STEPS && holds(store, wanted[done + 1]))
                done++; /* durable, and nobody was told */
            cr_assert(holds(store, wanted[done]), "request %d, fault %d: %u steps", (int)k, fault,
                      done);
            for (; done < STEPS; done++)
                cr_assert_eq(take_step(store, done, '-'), 0);
            cr_expect(holds(store, wanted[STEPS]));
            store->close(store);
            expect_durable(wanted[STEPS], "went on after the crash");
        }
    }
    free_wanted();
}

/* Two holders */

struct takeover {
    uint64_t at;
    bool is_done, acts_at_once;
    struct as_store *second;
};

/* Before request `at` of the first holder is carried out, a second one takes over. */
static enum kube_api_fault let_second_in(void *context, uint64_t number, const char *method,
                                         const char *name)
{
    struct takeover *takeover = context;
    if (number >= takeover->at && !takeover->is_done) {
        takeover->is_done = true;
        takeover->second = must_open("second");
        for (unsigned i = 0; takeover->acts_at_once && i < STEPS; i++)
            cr_assert_eq(take_step(takeover->second, 100 + i, '+'), 0);
    }
    return KUBE_API_NONE;
}

/* The first holder's state after `done` steps, and then the second's steps. */
static char *make_wanted_of_both(unsigned done)
{
    struct as_store_memory *memory = as_store_memory_new();
    struct as_store *store = as_store_memory_attach(memory);
    for (unsigned i = 0; i < done; i++)
        cr_assert_eq(take_step(store, i, '-'), 0);
    for (unsigned i = 0; i < STEPS; i++)
        cr_assert_eq(take_step(store, 100 + i, '+'), 0);
    char *text = dump(store);
    store->close(store);
    as_store_memory_free(memory);
    return text;
}

static void take_over_at(uint64_t k, bool acts_at_once)
{
    struct takeover takeover = {.at = k, .acts_at_once = acts_at_once};
    char when[64];
    unsigned done = 0;
    int code = 0;
    snprintf(when, sizeof(when), "request %d, at once %d", (int)k, acts_at_once);
    start_anew();
    struct as_store *first = must_open("first");
    api.fault = let_second_in;
    api.fault_context = &takeover;
    while (done < STEPS && (code = take_step(first, done, '-')) == 0)
        done++;
    cr_assert(takeover.is_done && (code == -ESTALE || done == STEPS), "%s: %d", when, code);
    if (done == STEPS) /* the takeover was within the last tidy */
        cr_expect_eq(take_step(first, done, '-'), -ESTALE, "%s", when);
    struct as_store *second = takeover.second;
    cr_expect_eq(take_step(first, STEPS, '-'), -ESTALE, "%s: it is for good", when);
    for (unsigned i = 0; !acts_at_once && i < STEPS; i++)
        cr_assert_eq(take_step(second, 100 + i, '+'), 0, "%s", when);
    AS_CLEANUP(as_free_p) char *text = make_wanted_of_both(done);
    cr_expect(holds(second, text), "%s", when);
    first->close(first);
    second->close(second);
    api.fault = NULL;
    expect_durable(text, when);
}

Test(kube_store, who_held_it_before_is_kept_out_whatever_it_was_doing)
{
    make_wanted();
    uint64_t requests = count_requests();
    for (uint64_t k = 3; k < requests; k++) {
        take_over_at(k, k % 2 == 0);
    }
    free_wanted();
}

Test(kube_store, it_says_who_has_taken_over)
{
    struct as_error error = AS_ERROR_INIT;
    struct step step;
    struct as_store *first = must_open("pod-1"), *second = must_open("pod-2");
    make_step(&step, 1, '-');
    cr_assert_eq(first->commit(first, step.changes, step.count, &error), -ESTALE);
    cr_expect_str_eq(error.text, "state in namespace alertscaler: configmap alertscaler-state: "
                                 "another replica has taken over: pod-2");
    first->close(first);
    second->close(second);
}

/* Hands */

Test(kube_store, an_object_that_was_touched_by_hand_is_written_all_the_same)
{
    make_wanted();
    struct as_store *store = must_open("a");
    for (unsigned i = 0; i < STEPS; i++) {
        kube_api_touch(&api, "alertscaler-state");
        if (kube_api_get(&api, "alertscaler-state-0", "write"))
            kube_api_touch(&api, "alertscaler-state-0");
        if (kube_api_get(&api, "alertscaler-state-journal-2", "write"))
            kube_api_touch(&api, "alertscaler-state-journal-2");
        cr_assert_eq(take_step(store, i, '-'), 0);
    }
    store->close(store);
    expect_durable(wanted[STEPS], "touched");
    free_wanted();
}

static void expect_damage(const char *what, const char *word)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store;
    cr_assert_eq(kube_api_open(&api, "b", &store, &error), -EBADMSG, "%s", what);
    cr_expect(strstr(error.text, "does not hold together") && strstr(error.text, word), "%s: %s",
              what, error.text);
}

Test(kube_store, what_does_not_belong_together_is_refused)
{
    (void)count_requests();
    kube_api_set(&api, "alertscaler-state-0", "sequence", "999");
    expect_damage("a shard from later", "do not belong together");
    kube_api_set(&api, "alertscaler-state-0", "sequence", "x");
    expect_damage("a shard without its number", "configmap alertscaler-state-0");
    start_anew();
    (void)count_requests();
    kube_api_delete(&api, "alertscaler-state");
    expect_damage("the head is gone", "configmap alertscaler-state is missing");
    start_anew();
    (void)count_requests();
    const char *segments = kube_api_get(&api, "alertscaler-state", "segments");
    char name[64];
    snprintf(name, sizeof(name), "alertscaler-state-journal-%d", atoi(segments));
    kube_api_set(&api, name, "serial", "3000");
    expect_damage("another segment", "not the one that belongs");
    kube_api_delete(&api, name);
    expect_damage("no segment", "missing");
    start_anew();
    (void)count_requests();
    kube_api_set(&api, "alertscaler-state", "journal", "commit 1 1\n");
    expect_damage("half a journal", "journal is damaged");
}

Test(kube_store, a_newer_format_is_refused)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store;
    (void)count_requests();
    kube_api_set(&api, "alertscaler-state", "format", "3");
    cr_expect_eq(kube_api_open(&api, "b", &store, &error), -EPROTO);
    cr_expect(strstr(error.text, "newer alertscaler"), "%s", error.text);
}

Test(kube_store, an_unreleased_format_is_refused_and_left_as_it_is)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store;
    (void)count_requests();
    kube_api_set(&api, "alertscaler-state", "format", "1");
    cr_assert_eq(kube_api_open(&api, "b", &store, &error), -EPROTO);
    cr_expect(strstr(error.text, "from an older alertscaler (format 1, this one reads format 2): "
                                 "delete the ConfigMaps with the label "
                                 "app.kubernetes.io/component=state"),
              "%s", error.text);
    cr_expect_str_eq(kube_api_get(&api, "alertscaler-state", "format"), "1");
}

/* Limits and refusals */

Test(kube_store, large_values_and_many_records_stay_within_kubernetes_limits)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = must_open("a");
    size_t size = 3 << 20;
    AS_CLEANUP(as_free_p) char *value = as_xmalloc(size);
    for (size_t i = 0; i < size; i++)
        value[i] = i % 3 ? '"' : '\n'; /* doubled in JSON */
    const struct as_store_change large = {AS_STORE_OUTBOX, "l", 1, value, size};
    cr_assert_eq(store->commit(store, &large, 1, &error), 0, "%s", error.text);
    for (int i = 0; i < 60; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        const struct as_store_change change = {AS_STORE_TARGET, key, strlen(key), value, 150000};
        cr_assert_eq(store->commit(store, &change, 1, &error), 0, "%s", error.text);
        store->tidy(store);
    }
    const struct as_store_change gone = {AS_STORE_OUTBOX, "l", 1, NULL, 0};
    cr_assert_eq(store->commit(store, &gone, 1, &error), 0, "%s", error.text);
    AS_CLEANUP(as_free_p) char *text = dump(store);
    store->close(store);
    cr_expect_leq(api.largest, AS_STORE_KUBE_OBJECT_MAX);
    expect_durable(text, "large");
}

/* Alone it is one write; of many, the head holds none of which the bytes must be moved. */
Test(kube_store, large_commits_are_not_written_twice)
{
    static char value[40000];
    const struct as_store_change change = {AS_STORE_META, "k", 1, value, sizeof(value)};
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = must_open("a");
    memset(value, 'v', sizeof(value));
    for (int i = 0; i < 4; i++) {
        const uint64_t before = api.writes;
        cr_assert_eq(store->commit(store, &change, 1, &error), 0, "%s", error.text);
        cr_expect_eq(api.writes - before, i % 2 ? 2 : 1);
        const char *journal = kube_api_get(&api, "alertscaler-state", "journal");
        cr_expect_eq(strlen(journal) > sizeof(value), i % 2 == 0, "commit %d", i);
    }
    AS_CLEANUP(as_free_p) char *text = dump(store);
    store->close(store);
    expect_durable(text, "large commits");
}

Test(kube_store, without_room_in_the_journal_the_shards_are_written_first)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = must_open("a");
    AS_CLEANUP(as_free_p) char *value = as_xmalloc(AS_STORE_KUBE_TAIL_FILL);
    memset(value, 'v', AS_STORE_KUBE_TAIL_FILL);
    for (int i = 0; i < 3 * AS_KUBE_STATE_SLOTS_MAX; i++) { /* never tidied; two a slot */
        const struct as_store_change change = {AS_STORE_META, "k", 1, value,
                                               AS_STORE_KUBE_TAIL_FILL};
        value[0] = (char)('a' + i % 26);
        cr_assert_eq(store->commit(store, &change, 1, &error), 0, "%s", error.text);
    }
    AS_CLEANUP(as_free_p) char *text = dump(store);
    store->close(store);
    cr_expect_not_null(kube_api_get(&api, "alertscaler-state-0", "meta-1"));
    expect_durable(text, "folded");
}

Test(kube_store, a_commit_beyond_all_limits_is_refused_with_a_reason)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = must_open("a");
    size_t size = (size_t)100 << 20;
    AS_CLEANUP(as_free_p) char *value = as_xmalloc(size);
    memset(value, 'v', size);
    const struct as_store_change large = {AS_STORE_META, "l", 1, value, size};
    cr_expect_eq(store->commit(store, &large, 1, &error), -EMSGSIZE);
    cr_expect(strstr(error.text, "96 MiB"), "%s", error.text);
    store->close(store);
    store = must_open("b");
    AS_CLEANUP(as_free_p) char *text = dump(store);
    cr_expect_null(strstr(text, "="), "nothing of it is kept");
    store->close(store);
}

Test(kube_store, missing_rights_and_namespaces_are_said)
{
    struct plan plan = {0, 1000, KUBE_API_FORBIDDEN};
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store;
    api.fault = follow_plan;
    api.fault_context = &plan;
    cr_expect_eq(kube_api_open(&api, "a", &store, &error), -EACCES);
    cr_expect(strstr(error.text, "get, list, create and update on configmaps"), "%s", error.text);
    api.fault = NULL;
    api.has_no_namespace = true;
    cr_expect_eq(kube_api_open(&api, "a", &store, &error), -ENOENT);
    cr_expect(strstr(error.text, "namespace does not exist"), "%s", error.text);
}

Test(kube_store, a_person_can_read_it)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = must_open("pod-1");
    const struct as_store_change changes[] = {
        {AS_STORE_TARGET, "shop/checkout", 13, "{\"lock\":1}", 10},
        {AS_STORE_INCIDENT, "\x01\x02\xff", 3, "{}", 2},
    };
    cr_assert_eq(store->commit(store, changes, 2, &error), 0, "%s", error.text);
    store->close(store);
    cr_expect_str_eq(kube_api_get(&api, "alertscaler-state", "journal"),
                     "commit 1 2\n"
                     "put target-1 0 24\nshop/checkout\n{\"lock\":1}\n"
                     "put incident-2 0 11\n0x0102ff\n{}\n");
    cr_expect_str_eq(kube_api_get(&api, "alertscaler-state", "holder"), "pod-1");
    cr_expect_str_eq(kube_api_get(&api, "alertscaler-state", "epoch"), "1");
}

/* The deadline of the store passes in the middle of an outage. */
static struct as_store_deadline deadline;
static int64_t gives_up_at_us;

static enum kube_api_fault lose_all(void *context, uint64_t number, const char *method,
                                    const char *name)
{
    if (api.world.mono.us >= gives_up_at_us)
        atomic_store(&deadline.until_us, 0);
    return KUBE_API_UNREACHABLE;
}

Test(kube_store, after_the_deadline_the_store_does_not_wait)
{
    static const struct as_store_change change = {AS_STORE_META, "k", 1, "v", 1};
    struct as_error error = AS_ERROR_INIT;
    atomic_store(&deadline.until_us, INT64_MAX);
    api.deadline = &deadline;
    struct as_store *store = must_open("pod-1");
    cr_assert_eq(store->commit(store, &change, 1, &error), 0, "%s", error.text);
    const int64_t begun = api.world.mono.us;
    gives_up_at_us = begun + AS_US_PER_S;
    api.fault = lose_all;
    cr_expect_lt(store->commit(store, &change, 1, &error), 0);
    cr_expect_leq(api.world.mono.us - begun, 5 * AS_US_PER_S, "not the 20 s of an outage");
    const uint64_t requests = api.requests;
    cr_expect_lt(store->commit(store, &change, 1, &error), 0);
    store->close(store);
    cr_expect_eq(api.requests, requests, "nothing is asked any more");
    cr_expect_eq(kube_api_open(&api, "pod-1", &store, &error), -ECANCELED);
    cr_expect(strstr(error.text, "given up"), "%s", error.text);
    api.fault = NULL;
    atomic_store(&deadline.until_us, INT64_MAX);
    store = must_open("pod-1");
    store->close(store);
}
