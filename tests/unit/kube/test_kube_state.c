/*
 * kube/kube_state.h: written state is readable for people and can be read
 * back; changes by hand are refused, not guessed at.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/str.h>

#include "kube/kube_state.h"

static struct as_error error;

static struct as_buf print(const char *key, size_t key_size, const char *value, size_t value_size,
                           uint32_t index, uint32_t count)
{
    struct as_buf text = AS_BUF_INIT(1 << 20);
    const struct as_kube_state_piece piece = {
        .index = index,
        .count = count,
        .key = key,
        .key_size = key_size,
        .value = value,
        .value_size = value_size,
    };
    as_kube_state_print_record(&piece, &text);
    return text;
}

Test(kube_state, records_as_a_person_sees_them)
{
    static const struct {
        const char *key;
        size_t key_size;
        const char *value;
        size_t value_size;
        uint32_t index, count;
        const char *text;
    } rows[] = {
        {"shop/checkout", 13, "{\"a\":1}", 7, 0, 1, "shop/checkout\n{\"a\":1}"},
        {"k", 1, "", 0, 0, 1, "k\n"},
        {"k", 1, "two\nlines\n", 10, 0, 1, "k\ntwo\nlines\n"},
        {"k", 1, "a", 1, 1, 3, "k part 2/3\na"},
        {"k", 1, "\x00\xff", 2, 0, 2, "k part 1/2 hex\n00ff"},
        {"\x01\x02", 2, "\xc3", 1, 0, 1, "0x0102 hex\nc3"},
        {"a b", 3, "\xc3\xa4", 2, 0, 1, "0x612062\n\xc3\xa4"},
        {"0xab", 4, "\r", 1, 0, 1, "0x30786162 hex\n0d"},
        {"", 0, "\x7f", 1, 0, 1, "0x hex\n7f"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
        AS_CLEANUP(as_buf_deinit)
        struct as_buf text = print(rows[i].key, rows[i].key_size, rows[i].value, rows[i].value_size,
                                   rows[i].index, rows[i].count);
        struct as_kube_state_piece piece;
        cr_expect_str_eq(text.data, rows[i].text);
        cr_assert_eq(
            as_kube_state_parse_record("intent-7", 8, text.data, text.size, &arena, &piece, &error),
            0, "%s: %s", rows[i].text, error.text);
        cr_expect_eq(piece.kind, 3);
        cr_expect_eq(piece.id, 7);
        cr_expect_eq(piece.index, rows[i].index);
        cr_expect_eq(piece.count, rows[i].count);
        cr_expect(piece.key_size == rows[i].key_size &&
                  memcmp(piece.key, rows[i].key, piece.key_size) == 0);
        cr_expect(piece.value_size == rows[i].value_size &&
                  memcmp(piece.value, rows[i].value, piece.value_size) == 0);
    }
}

Test(kube_state, what_is_no_record_is_refused_by_name)
{
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"intent", "k\n"},
        {"intent-", "k\n"},
        {"intent-07", "k\n"},
        {"intent--7", "k\n"},
        {"other-7", "k\n"},
        {"intent-7", "no line end"},
        {"intent-7", "\n"},
        {"intent-7", "0xzz\n"},
        {"intent-7", "0x1\n"},
        {"intent-7", "k hex\nabc"},
        {"intent-7", "k hex\nzz"},
        {"intent-7", "k more\n"},
        {"intent-7", "k part 0/2\n"},
        {"intent-7", "k part 3/2\n"},
        {"intent-7", "k part 1/1\n"},
        {"intent-7", "k part 1\n"},
        {"intent-7", "k\n\r"},
        {"intent-7", "k\n\xff"},
        {"intent-7", "k hex \n"},
        {"intent-7", "k part 1/70000\n"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
        struct as_kube_state_piece piece;
        cr_expect_eq(as_kube_state_parse_record(rows[i].name, strlen(rows[i].name), rows[i].text,
                                                strlen(rows[i].text), &arena, &piece, &error),
                     -EBADMSG, "%s: %s", rows[i].name, rows[i].text);
        cr_expect(strstr(error.text, rows[i].name), "%s", error.text);
    }
}

struct told {
    char text[512];
};

static void tell_commit(void *context, uint64_t sequence)
{
    struct told *told = context;
    snprintf(told->text + strlen(told->text), 100, "#%d ", (int)sequence);
}

static void tell_put(void *context, const struct as_kube_state_piece *piece, size_t text_size)
{
    struct told *told = context;
    snprintf(told->text + strlen(told->text), 100, "+%d@%d:%.*s=%.*s(%d) ", (int)piece->id,
             (int)piece->shard, (int)piece->key_size, piece->key, (int)piece->value_size,
             piece->value, (int)text_size);
}

static void tell_drop(void *context, uint64_t id, uint32_t shard)
{
    struct told *told = context;
    snprintf(told->text + strlen(told->text), 100, "-%d@%d ", (int)id, (int)shard);
}

Test(kube_state, a_journal_is_carried_out_in_order)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf journal = AS_BUF_INIT(1 << 20);
    AS_CLEANUP(as_buf_deinit) struct as_buf text = print("k", 1, "put x-1 0 1\n", 12, 0, 1);
    struct as_kube_state_piece piece = {.kind = 4, .id = 12, .shard = 3};
    struct told told = {""};
    const struct as_kube_state_visitor visitor = {tell_commit, tell_put, tell_drop, &told};
    as_kube_state_print_commit(6, 2, &journal);
    as_kube_state_print_put(&piece, text.data, text.size, &journal);
    as_kube_state_print_drop(0, 9, 0, &journal);
    as_kube_state_print_commit(7, 0, &journal);
    cr_expect_str_eq(journal.data, "commit 6 2\nput outbox-12 3 14\nk\nput x-1 0 1\n\n"
                                   "drop meta-9 0\ncommit 7 0\n");
    cr_assert_eq(as_kube_state_parse_journal(journal.data, journal.size, &visitor, &error), 0, "%s",
                 error.text);
    cr_expect_str_eq(told.text, "#6 +12@3:k=put x-1 0 1\n(14) -9@0 #7 ");
    for (size_t size = 1; size < journal.size; size++) { /* cut short at any byte */
        told.text[0] = '\0';
        if (journal.data + size == strstr(journal.data, "commit 7"))
            continue; /* whole as well */
        cr_expect_eq(as_kube_state_parse_journal(journal.data, size, &visitor, &error), -EBADMSG,
                     "%d", (int)size);
    }
}

static int take_head(void *context, const struct as_kube_config_map *map, struct as_error *why)
{
    cr_expect_str_eq(map->name, "alertscaler-state");
    cr_expect_str_eq(map->version, "77");
    return as_kube_state_head_decode(map, context, why);
}

Test(kube_state, a_head_goes_through_a_config_map)
{
    AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
    AS_CLEANUP(as_buf_deinit) struct as_buf json = AS_BUF_INIT(1 << 20);
    struct as_kube_config_item items[AS_KUBE_STATE_HEAD_ITEMS];
    struct as_kube_state_head head = {
        .holder = "pod-1",
        .write = "w-1",
        .epoch = 3,
        .sequence = 12,
        .serial = 9,
        .segments = {{5, 7}, {0, 9}},
        .segment_count = 2,
        .journal = "commit 12 0\n",
        .journal_size = 12,
    };
    struct as_kube_state_head back;
    static const struct as_kube_label labels[] = {{"a", "b"}};
    as_kube_state_head_encode(&head, &arena, items);
    const struct as_kube_config_map map = {"alertscaler-state", "77", items,
                                           AS_KUBE_STATE_HEAD_ITEMS};
    as_kube_config_map_encode(&map, "ns", labels, 1, &json);
    cr_assert_eq(as_kube_config_map_decode(json.data, json.size, take_head, &back, &error), 0, "%s",
                 error.text);
    cr_expect_str_eq(back.holder, "pod-1");
    cr_expect_str_eq(back.write, "w-1");
    cr_expect(back.epoch == 3 && back.sequence == 12 && back.serial == 9);
    cr_expect(back.segment_count == 2 && back.segments[0].slot == 5 &&
              back.segments[1].serial == 9);
    cr_expect_eq(back.journal_size, 12);
}

Test(kube_state, a_head_that_was_changed_is_refused_by_item)
{
    static const struct {
        const char *key, *text;
        int code;
    } rows[] = {
        {"format", "3", -EPROTO},           {"format", "x", -EBADMSG},
        {"epoch", "-1", -EBADMSG},          {"sequence", "", -EBADMSG},
        {"serial", "1.5", -EBADMSG},        {"segments", "1:2 1:3", -EBADMSG},
        {"segments", "128:1", -EBADMSG},    {"segments", "1:10", -EBADMSG},
        {"segments", "1:3 2:2", -EBADMSG},  {"segments", "1", -EBADMSG},
        {"segments", "1:2  2:3", -EBADMSG},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_arena_deinit) struct as_arena arena = AS_ARENA_INIT;
        struct as_kube_config_item items[AS_KUBE_STATE_HEAD_ITEMS];
        struct as_kube_state_head head = {.serial = 9}, back;
        as_kube_state_head_encode(&head, &arena, items);
        for (size_t j = 0; j < AS_KUBE_STATE_HEAD_ITEMS; j++)
            if (strcmp(items[j].key, rows[i].key) == 0)
                items[j] =
                    (struct as_kube_config_item){rows[i].key, rows[i].text, strlen(rows[i].text)};
        const struct as_kube_config_map map = {"n", "1", items, AS_KUBE_STATE_HEAD_ITEMS};
        cr_expect_eq(as_kube_state_head_decode(&map, &back, &error), rows[i].code, "%s: %s",
                     rows[i].key, rows[i].text);
        cr_expect(rows[i].code == -EPROTO || strstr(error.text, rows[i].key), "%s", error.text);
    }
}

static int count_maps(void *context, const struct as_kube_config_map *map, struct as_error *why)
{
    ++*(int *)context;
    return strcmp(map->name, "stop") == 0 ? 77 : 0;
}

Test(kube_state, a_page_of_a_list)
{
    static const char page[] =
        "{\"kind\":\"ConfigMapList\",\"metadata\":{\"continue\":\"abc\"},\"items\":["
        "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"data\":null},"
        "{\"metadata\":{\"name\":\"stop\",\"resourceVersion\":\"2\"},\"data\":{\"k\":\"v\"}}]}";
    static const char last[] = "{\"kind\":\"ConfigMapList\",\"metadata\":{},\"items\":null}";
    char *next = NULL;
    int count = 0;
    cr_expect_eq(
        as_kube_config_map_list_decode(page, strlen(page), &next, count_maps, &count, &error), 77);
    cr_expect_eq(count, 2);
    cr_expect_null(next, "ended by the caller");
    cr_expect_eq(
        as_kube_config_map_list_decode(last, strlen(last), &next, count_maps, &count, &error), 0);
    cr_expect_null(next);
}

Test(kube_state, the_version_of_a_write_is_read_from_metadata_alone)
{
    static const char metadata[] = "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":"
                                   "\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"a\","
                                   "\"resourceVersion\":\"17\"}}";
    static const char whole[] = "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\","
                                "\"resourceVersion\":\"18\"},\"data\":{\"k\":\"v\"}}";
    static const char *const rows[] = {
        "", "[]", "{\"kind\":\"Status\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}",
        "{\"kind\":\"PartialObjectMetadata\",\"metadata\":{\"name\":\"a\"}}"};
    char version[AS_KUBE_VERSION_SIZE] = "before";
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        cr_expect_eq(as_kube_config_map_decode_version(rows[i], strlen(rows[i]), version, &error),
                     -EBADMSG, "%s", rows[i]);
    cr_expect_str_eq(version, "before");
    cr_expect_eq(as_kube_config_map_decode_version(metadata, strlen(metadata), version, &error), 0);
    cr_expect_str_eq(version, "17");
    cr_expect_eq(as_kube_config_map_decode_version(whole, strlen(whole), version, &error), 0);
    cr_expect_str_eq(version, "18");
}

Test(kube_state, objects_of_another_shape_are_refused)
{
    static const char *const rows[] = {
        "",
        "[]",
        "{\"kind\":\"Status\"}",
        "{\"kind\":\"ConfigMap\"}",
        "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}",
        "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},"
        "\"data\":[]}",
        "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},"
        "\"data\":{\"k\":1}}",
        "{\"kind\":\"ConfigMapList\",\"items\":{}}",
        "{\"kind\":\"ConfigMapList\",\"items\":[1]}",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char *next = NULL;
        int count = 0;
        error = AS_ERROR_INIT;
        cr_expect_eq(
            as_kube_config_map_decode(rows[i], strlen(rows[i]), count_maps, &count, &error),
            -EBADMSG, "%s", rows[i]);
        cr_expect_eq(as_kube_config_map_list_decode(rows[i], strlen(rows[i]), &next, count_maps,
                                                    &count, &error),
                     -EBADMSG, "%s", rows[i]);
        cr_expect(*error.text && count == 0, "%s", rows[i]);
    }
}
