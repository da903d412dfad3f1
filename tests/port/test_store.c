/* The promises that every implementation of port/store.h keeps. */
#include <alertscaler/port/store.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/log/sqlite.h>

#include "../support/store_memory.h"
#include "kube_api.h"
#include "real_store.h"

/* A medium that can be opened again and again. "kubernetes" is a fake API server; a real one, with
 * an empty namespace for each test, where ALERTSCALER_TEST_KUBECONFIG names its kubeconfig. */
struct medium {
    const char *name;
    bool is_file, is_cluster;
    const char *test;
    char directory[64], path[80];
    struct as_store_memory *memory;
};

static struct medium media[] = {{.name = "sqlite", .is_file = true},
                                {.name = "memory"},
                                {.name = "kubernetes", .is_cluster = true}};
static struct kube_api api; /* each test has a process of its own */

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    return remove(path);
}

static void setup(struct medium *medium)
{
    if (medium->is_file) {
        snprintf(medium->directory, sizeof(medium->directory), "/tmp/as-store-XXXXXX");
        cr_assert(mkdtemp(medium->directory));
        snprintf(medium->path, sizeof(medium->path), "%s/state.db", medium->directory);
    } else if (medium->is_cluster && !getenv("ALERTSCALER_TEST_KUBECONFIG")) {
        kube_api_init(&api);
    } else {
        medium->memory = as_store_memory_new();
    }
}

static void teardown(struct medium *medium)
{
    if (medium->is_file)
        nftw(medium->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (medium->is_cluster && !getenv("ALERTSCALER_TEST_KUBECONFIG"))
        kube_api_deinit(&api);
    medium->memory = as_store_memory_free(medium->memory);
}

/* That of the test: "a-new-store-is-empty". */
static const char *get_namespace(struct medium *medium)
{
    snprintf(medium->path, sizeof(medium->path), "%s", medium->test);
    for (char *at = medium->path; *at; at++)
        if (*at == '_')
            *at = '-';
    return medium->path;
}

static struct as_store *open_store(struct medium *medium)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_store *store = NULL;

    if (medium->is_cluster) {
        const char *kubeconfig = getenv("ALERTSCALER_TEST_KUBECONFIG");
        cr_assert(!(kubeconfig
                        ? real_store_open(kubeconfig, get_namespace(medium), "test", &store, &error)
                        : kube_api_open(&api, "test", &store, &error)),
                  "%s", error.text);
        return store;
    }
    if (!medium->is_file)
        return as_store_memory_attach(medium->memory);
    cr_assert(!as_store_sqlite_open(medium->path, true, &store, &error), "%s", error.text);
    return store;
}

static struct as_store_change put(enum as_store_kind kind, const char *key, const char *value)
{
    return (struct as_store_change){.kind = kind,
                                    .key = key,
                                    .key_size = strlen(key),
                                    .value = value,
                                    .value_size = value ? strlen(value) : 0};
}

static void commit(struct as_store *store, const struct as_store_change *changes, size_t count)
{
    struct as_error error = AS_ERROR_INIT;

    cr_assert(!store->commit(store, changes, count, &error), "%s", error.text);
}

static int print_record(void *context, const void *key, size_t key_size, const void *value,
                        size_t value_size)
{
    struct as_buf *text = context;

    as_buf_append(text, key, key_size);
    as_buf_append_char(text, '=');
    as_buf_append(text, value, value_size);
    as_buf_append_char(text, ' ');
    return 0;
}

static void expect(struct as_store *store, enum as_store_kind kind, const char *content)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_buf text = AS_BUF_INIT(1 << 16);

    as_buf_append(&text, "", 0);
    cr_assert(!store->visit(store, kind, print_record, &text, &error), "%s", error.text);
    cr_assert_str_eq(text.data ? text.data : "", content);
    as_buf_deinit(&text);
}

/* All implementations, each test: a table row a medium. */
#define PORT_TEST(test_name)                                                                       \
    static void test_name(struct medium *medium);                                                  \
    ParameterizedTestParameters(port_store, test_name)                                             \
    {                                                                                              \
        return cr_make_param_array(struct medium, media, AS_ARRAY_SIZE(media));                    \
    }                                                                                              \
    ParameterizedTest(struct medium *medium, port_store, test_name)                                \
    {                                                                                              \
        medium->test = #test_name;                                                                 \
        setup(medium);                                                                             \
        test_name(medium);                                                                         \
        teardown(medium);                                                                          \
    }                                                                                              \
    static void test_name(struct medium *medium)

PORT_TEST(a_new_store_is_empty)
{
    struct as_store *store = open_store(medium);

    for (int kind = 0; kind < AS_STORE_KIND_COUNT; kind++)
        expect(store, (enum as_store_kind)kind, "");
    store->close(store);
}

PORT_TEST(what_was_committed_is_there_after_opening_it_again)
{
    struct as_store *store = open_store(medium);
    struct as_store_change changes[] = {
        put(AS_STORE_META, "a", "1"),
        put(AS_STORE_INCIDENT, "b", "2"),
        put(AS_STORE_TARGET, "c", "3"),
        put(AS_STORE_INTENT, "d", "4"),
        put(AS_STORE_OUTBOX, "12345678", "5\n"),
    };

    commit(store, changes, AS_ARRAY_SIZE(changes));
    for (int i = 0; i < 2; i++) {
        expect(store, AS_STORE_META, "a=1 ");
        expect(store, AS_STORE_INCIDENT, "b=2 ");
        expect(store, AS_STORE_TARGET, "c=3 ");
        expect(store, AS_STORE_INTENT, "d=4 ");
        expect(store, AS_STORE_OUTBOX, "12345678=5\n ");
        store->close(store);
        store = open_store(medium);
    }
    store->close(store);
}

PORT_TEST(changes_are_carried_out_in_order)
{
    struct as_store *store = open_store(medium);
    struct as_store_change changes[] = {
        put(AS_STORE_TARGET, "a", "1"),  put(AS_STORE_TARGET, "a", "2"),
        put(AS_STORE_TARGET, "b", "1"),  put(AS_STORE_TARGET, "b", NULL),
        put(AS_STORE_TARGET, "c", NULL), put(AS_STORE_TARGET, "c", "3"),
    };

    commit(store, changes, AS_ARRAY_SIZE(changes));
    expect(store, AS_STORE_TARGET, "a=2 c=3 ");
    struct as_store_change more[] = {
        put(AS_STORE_TARGET, "c", "4"),
        put(AS_STORE_TARGET, "a", NULL),
        put(AS_STORE_TARGET, "never there", NULL),
    };
    commit(store, more, AS_ARRAY_SIZE(more));
    expect(store, AS_STORE_TARGET, "c=4 ");
    commit(store, NULL, 0);
    expect(store, AS_STORE_TARGET, "c=4 ");
    store->close(store);
}

PORT_TEST(keys_come_in_the_order_of_their_bytes)
{
    static const char *const kinds_of_keys[] = {"b", "a", "ab", "\xff", "B", "\x01"};
    static const char *const numbers[] = {
        "\x01\x30\x30\x30\x30\x30\x30\x30", "\x00\x00\x00\x00\x00\x00\x01\x00",
        "\x00\x00\x00\x00\x00\x00\x00\xff", "\x00\x00\x00\x00\x00\x00\x00\x01",
        "\x7f\xff\xff\xff\xff\xff\xff\xff"};
    struct as_store *store = open_store(medium);

    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds_of_keys); i++) {
        struct as_store_change change = put(AS_STORE_INCIDENT, kinds_of_keys[i], "");
        commit(store, &change, 1);
    }
    expect(store, AS_STORE_INCIDENT, "\x01= B= a= ab= b= \xff= ");
    for (size_t i = 0; i < AS_ARRAY_SIZE(numbers); i++) {
        char value[2] = {(char)('a' + i), '\0'};
        struct as_store_change change = put(AS_STORE_OUTBOX, "", value);
        change.key = numbers[i];
        change.key_size = 8;
        commit(store, &change, 1);
    }
    struct as_buf text = AS_BUF_INIT(1024);
    cr_assert(!store->visit(store, AS_STORE_OUTBOX, print_record, &text, NULL));
    char order[6] = "";
    for (size_t i = 0; i < 5; i++)
        order[i] = text.data[i * 11 + 9];
    cr_assert_str_eq(order, "dcbae");
    as_buf_deinit(&text);
    store->close(store);
}

PORT_TEST(keys_and_values_are_any_bytes)
{
    struct as_store *store = open_store(medium);
    struct as_buf text = AS_BUF_INIT(16 << 20);
    size_t large = 10 << 20;
    AS_CLEANUP(as_free_p) char *value = as_xmalloc(large);
    struct as_store_change changes[] = {
        {.kind = AS_STORE_TARGET, .key = "\0\0", .key_size = 2, .value = "\0", .value_size = 1},
        {.kind = AS_STORE_TARGET, .key = "\0", .key_size = 1, .value = "", .value_size = 0},
        {.kind = AS_STORE_META, .key = "large", .key_size = 5, .value = value, .value_size = large},
    };

    for (size_t i = 0; i < large; i++)
        value[i] = (char)(i * 31);
    commit(store, changes, AS_ARRAY_SIZE(changes));
    cr_assert(!store->visit(store, AS_STORE_TARGET, print_record, &text, NULL));
    cr_assert_eq(text.size, 8);
    cr_assert_eq(memcmp(text.data, "\0= \0\0=\0 ", 8), 0);
    as_buf_clear(&text);
    cr_assert(!store->visit(store, AS_STORE_META, print_record, &text, NULL));
    cr_assert_eq(text.size, large + 7);
    cr_assert_eq(memcmp(text.data + 6, value, large), 0);
    as_buf_deinit(&text);
    store->close(store);
}

static int stop_at_second(void *context, const void *key, size_t key_size, const void *value,
                          size_t value_size)
{
    return ++*(int *)context == 2 ? 77 : 0;
}

PORT_TEST(a_visitor_can_end_the_visit)
{
    struct as_store *store = open_store(medium);
    struct as_store_change changes[] = {put(AS_STORE_TARGET, "a", "1"),
                                        put(AS_STORE_TARGET, "b", "2"),
                                        put(AS_STORE_TARGET, "c", "3")};
    int seen = 0;

    commit(store, changes, AS_ARRAY_SIZE(changes));
    cr_assert_eq(store->visit(store, AS_STORE_TARGET, stop_at_second, &seen, NULL), 77);
    cr_assert_eq(seen, 2);
    expect(store, AS_STORE_TARGET, "a=1 b=2 c=3 ");
    commit(store, changes, 1); /* nothing is left open */
    store->close(store);
}

PORT_TEST(many_records_are_kept)
{
    struct as_store *store = open_store(medium);
    struct as_buf text = AS_BUF_INIT(1 << 20);

    for (unsigned i = 0; i < 20; i++) {
        unsigned keys[500];
        struct as_store_change changes[500];
        for (unsigned j = 0; j < 500; j++) {
            keys[j] = (i * 500 + j) * 2654435761U; /* scattered */
            changes[j] = (struct as_store_change){.kind = AS_STORE_INCIDENT,
                                                  .key = &keys[j],
                                                  .key_size = sizeof(keys[j]),
                                                  .value = "x",
                                                  .value_size = 1};
        }
        commit(store, changes, AS_ARRAY_SIZE(changes));
    }
    if (store->tidy)
        store->tidy(store);
    cr_assert(!store->visit(store, AS_STORE_INCIDENT, print_record, &text, NULL));
    cr_assert_eq(text.size, 10000 * 7);
    as_buf_deinit(&text);
    store->close(store);
}

/* The digest of the store in memory: the simulator compares it with a list (tests/sim/digests). */

enum { KEPT, FAILED, FAILED_BUT_KEPT };

static uint64_t digest_commits(const struct as_store_change *changes, size_t count, size_t split,
                               int outcome)
{
    struct as_store_memory *memory = as_store_memory_new();
    struct as_store *store = as_store_memory_attach(memory);
    struct as_error error = AS_ERROR_INIT;
    if (outcome != KEPT)
        as_store_memory_fail(memory, 0, -EIO, outcome == FAILED_BUT_KEPT);
    const int expected = outcome == KEPT ? 0 : -EIO;
    cr_assert_eq(store->commit(store, changes, split, &error), expected);
    if (split < count)
        cr_assert_eq(store->commit(store, changes + split, count - split, &error), expected);
    const uint64_t digest = as_store_memory_get_digest(memory);
    store->close(store);
    as_store_memory_free(memory);
    return digest;
}

static uint64_t digest_one(enum as_store_kind kind, const char *key, const char *value)
{
    const struct as_store_change change = {kind, key, strlen(key), value,
                                           value ? strlen(value) : 0};
    return digest_commits(&change, 1, 1, KEPT);
}

Test(store_memory, digest_covers_every_kept_byte)
{
    const uint64_t digest = digest_one(AS_STORE_TARGET, "key", "value");
    cr_assert_eq(digest_one(AS_STORE_TARGET, "key", "value"), digest);
    cr_assert_neq(digest_one(AS_STORE_TARGET, "key", "valuf"), digest);
    cr_assert_neq(digest_one(AS_STORE_TARGET, "kez", "value"), digest);
    cr_assert_neq(digest_one(AS_STORE_TARGET, "keyv", "alue"), digest);
    cr_assert_neq(digest_one(AS_STORE_INTENT, "key", "value"), digest);
    cr_assert_neq(digest_one(AS_STORE_TARGET, "key", NULL), digest_one(AS_STORE_TARGET, "key", ""));
}

/* An overwritten value counts, and so do the order of changes and the boundaries of commits. */
Test(store_memory, digest_covers_the_history)
{
    const struct as_store_change changes[] = {{AS_STORE_META, "a", 1, "1", 1},
                                              {AS_STORE_META, "a", 1, "2", 1}};
    const struct as_store_change others[] = {{AS_STORE_META, "a", 1, "3", 1}, changes[1]};
    const struct as_store_change reversed[] = {changes[1], changes[0]};
    const uint64_t digest = digest_commits(changes, 2, 2, KEPT);
    cr_assert_neq(digest_commits(others, 2, 2, KEPT), digest);
    cr_assert_neq(digest_commits(reversed, 2, 2, KEPT), digest);
    cr_assert_neq(digest_commits(changes, 2, 1, KEPT), digest);
}

Test(store_memory, digest_leaves_out_what_a_failed_commit_lost)
{
    const struct as_store_change change = {AS_STORE_META, "a", 1, "1", 1};
    const uint64_t kept = digest_commits(&change, 1, 1, KEPT);
    const uint64_t lost = digest_commits(&change, 1, 1, FAILED);
    cr_assert_eq(digest_commits(&change, 1, 1, FAILED_BUT_KEPT), kept);
    cr_assert_neq(lost, kept);
    cr_assert_eq(
        digest_commits(&(struct as_store_change){AS_STORE_META, "b", 1, "1", 1}, 1, 1, FAILED),
        lost);
}
