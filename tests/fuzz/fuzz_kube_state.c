/*
 * Any bytes as state in API objects: as a ConfigMap or a list of them, as a journal, as a record.
 * Each is accepted, or refused with a text; an accepted record or journal is written the same way
 * again. And any bytes as key and value: what is written can be read back.
 */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "fuzz.h"
#include "kube/kube_state.h"

#define MAX ((size_t)16 << 20)

static int check_map(void *context, const struct as_kube_config_map *map, struct as_error *error)
{
    struct as_kube_state_head head;
    struct as_error why = AS_ERROR_INIT;
    FUZZ_CHECK(*map->name && *map->version && strlen(map->version) < AS_KUBE_VERSION_SIZE);
    for (size_t i = 0; i < map->count; i++)
        FUZZ_CHECK(as_kube_config_map_find(map, map->items[i].key) == &map->items[i]);
    int code = as_kube_state_head_decode(map, &head, &why);
    FUZZ_CHECK(code == 0 || ((code == -EBADMSG || code == -EPROTO) && *why.text));
    if (code == 0) {
        struct as_arena arena = AS_ARENA_INIT;
        struct as_kube_config_item items[AS_KUBE_STATE_HEAD_ITEMS];
        struct as_kube_state_head again;
        as_kube_state_head_encode(&head, &arena, items);
        const struct as_kube_config_map copy = {"n", "1", items, AS_KUBE_STATE_HEAD_ITEMS};
        FUZZ_CHECK(as_kube_state_head_decode(&copy, &again, NULL) == 0);
        FUZZ_CHECK(again.sequence == head.sequence && again.segment_count == head.segment_count);
        as_arena_deinit(&arena);
    }
    ++*(unsigned *)context;
    return 0;
}

static void check_objects(const char *data, size_t size)
{
    struct as_error error = AS_ERROR_INIT;
    unsigned seen = 0;
    char *next = NULL;
    int code = as_kube_config_map_decode(data, size, check_map, &seen, &error);
    FUZZ_CHECK(code == 0 ? seen == 1 : code == -EBADMSG && *error.text);
    error = AS_ERROR_INIT;
    code = as_kube_config_map_list_decode(data, size, &next, check_map, &seen, &error);
    FUZZ_CHECK(code == 0 || (code == -EBADMSG && *error.text && !next));
    free(next);
    char version[AS_KUBE_VERSION_SIZE];
    error = AS_ERROR_INIT;
    code = as_kube_config_map_decode_version(data, size, version, &error);
    FUZZ_CHECK(code == 0 ? *version : code == -EBADMSG && *error.text);
}

struct journal {
    struct as_buf text, record;
    uint64_t changes;
};

static void on_commit(void *context, uint64_t sequence)
{
    (void)context;
    FUZZ_CHECK(sequence <= INT64_MAX);
}

static void on_put(void *context, const struct as_kube_state_piece *piece, size_t text_size)
{
    struct journal *journal = context;
    FUZZ_CHECK(piece->kind < AS_KUBE_STATE_KINDS && piece->index < piece->count);
    FUZZ_CHECK(piece->shard < AS_KUBE_STATE_SHARDS_MAX);
    as_buf_clear(&journal->record);
    as_kube_state_print_record(piece, &journal->record);
    /* a text in hex is longer than it would be written */
    FUZZ_CHECK(journal->record.size <= text_size);
    journal->changes++;
}

static void on_drop(void *context, uint64_t id, uint32_t shard)
{
    (void)id;
    FUZZ_CHECK(shard < AS_KUBE_STATE_SHARDS_MAX);
    ((struct journal *)context)->changes++;
}

static void check_journal(const char *data, size_t size)
{
    struct journal journal = {AS_BUF_INIT(MAX), AS_BUF_INIT(MAX), 0};
    const struct as_kube_state_visitor visitor = {on_commit, on_put, on_drop, &journal};
    struct as_error error = AS_ERROR_INIT;
    int code = as_kube_state_parse_journal(data, size, &visitor, &error);
    FUZZ_CHECK(code == 0 || (code == -EBADMSG && *error.text));
    as_buf_deinit(&journal.text);
    as_buf_deinit(&journal.record);
}

/* The bytes up to the first zero as key, the rest as value. */
static void check_record(const char *data, size_t size)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct as_buf text = AS_BUF_INIT(MAX);
    struct as_kube_state_piece back;
    char name[AS_KUBE_STATE_NAME_SIZE];
    size_t key_size = strnlen(data, size);
    struct as_kube_state_piece piece = {
        .kind = (unsigned)(size % AS_KUBE_STATE_KINDS),
        .id = size,
        .index = (uint32_t)(size % 3),
        .count = 3,
        .key = data,
        .key_size = key_size,
        .value = data + (key_size < size ? key_size + 1 : size),
        .value_size = size - (key_size < size ? key_size + 1 : size),
    };
    as_kube_state_print_record(&piece, &text);
    as_kube_state_print_name(piece.kind, piece.id, name);
    FUZZ_CHECK(as_str_is_utf8(text.data, text.size));
    FUZZ_CHECK(as_kube_state_parse_record(name, strlen(name), text.data, text.size, &arena, &back,
                                          NULL) == 0);
    FUZZ_CHECK(back.kind == piece.kind && back.id == piece.id && back.index == piece.index &&
               back.count == 3);
    FUZZ_CHECK(back.key_size == key_size && memcmp(back.key, data, key_size) == 0);
    FUZZ_CHECK(back.value_size == piece.value_size &&
               memcmp(back.value, piece.value, piece.value_size) == 0);
    as_buf_deinit(&text);
    as_arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_objects((const char *)data, size);
    check_journal((const char *)data, size);
    check_record((const char *)data, size);
    return 0;
}
