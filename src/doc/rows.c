/*
 * The row engine: objects of JSON and structs, by the rows of a table.
 *
 * Texts and memory: what is read is in the arena of the input, or in the tree.
 */
#include <alertscaler/doc/rows.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#define WORDS_MAX 32 /* of an enum */

static const void *row_at(const struct as_row *row, const void *base)
{
    return (const char *)base + row->at;
}

static void *row_to(const struct as_row *row, void *base)
{
    return (char *)base + row->at;
}

static const void *row_get_pointer(const struct as_row *row, const void *base)
{
    const void *pointer;
    memcpy(&pointer, row_at(row, base), sizeof(pointer));
    return pointer;
}

static size_t row_get_count(const struct as_row *row, const void *base)
{
    return *(const size_t *)(const void *)((const char *)base + row->count_at);
}

/* Allocates items; the member and its count are set. */
static void *row_add_items(struct as_rows_input *input, const struct as_row *row, void *base,
                           size_t count, size_t size)
{
    void *items = as_arena_alloc(input->arena, count, size);
    memcpy(row_to(row, base), &items, sizeof(items));
    *(size_t *)(void *)((char *)base + row->count_at) = count;
    return items;
}

static bool row_has_no_pointer(const struct as_row *row, const void *base)
{
    return !row_get_pointer(row, base);
}

/* ---- texts ---- */

static bool text_is_unset(const struct as_row *row, const void *base)
{
    return as_str_is_empty(row_get_pointer(row, base));
}

/* A text of more than `max` bytes is cut between two characters. */
static void text_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const char *text = row_get_pointer(row, base);
    const size_t size = strlen(text);
    as_json_write_string_size(json, text,
                              row->max > 0 ? as_str_cut_utf8(text, size, (size_t)row->max) : size);
}

static void text_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    const char *text = NULL;
    as_read_text(object, row->name, &text);
    if (!text)
        return;
    if (row->size > 0 && strlen(text) >= row->size)
        as_read_fail(object, row->name, "longer than %zu bytes", row->size - 1);
    if (input->copies_texts)
        text = as_arena_strdup(input->arena, text);
    memcpy(row_to(row, base), &text, sizeof(text));
}

const struct as_row_type as_row_text = {
    .write = text_write, .read = text_read, .is_unset = text_is_unset};

static bool chars_are_unset(const struct as_row *row, const void *base)
{
    return !*(const char *)row_at(row, base);
}

static void chars_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_string(json, row_at(row, base));
}

static void chars_read(struct as_rows_input *input, struct as_reader *object,
                       const struct as_row *row, void *base)
{
    (void)input;
    as_read_copy(object, row->name, row_to(row, base), row->size);
}

const struct as_row_type as_row_chars = {
    .write = chars_write, .read = chars_read, .is_unset = chars_are_unset};

static void texts_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const char *const *texts = row_get_pointer(row, base);
    as_json_begin_array(json);
    for (size_t i = 0; i < row_get_count(row, base); i++)
        as_json_write_string(json, texts[i]);
    as_json_end_array(json);
}

static void texts_read(struct as_rows_input *input, struct as_reader *object,
                       const struct as_row *row, void *base)
{
    size_t count;
    const struct tree_value *item = as_read_list(object, row->name, &count);
    if (!as_read_has(object, row->name))
        return;
    const char **texts = row_add_items(input, row, base, count, sizeof(*texts));
    for (size_t i = 0; item; i++, item = item->next) {
        texts[i] = tree_get_text(item);
        if (!texts[i])
            as_read_fail(object, row->name, "expected a list of strings");
        else if (input->copies_texts)
            texts[i] = as_arena_strdup(input->arena, texts[i]);
    }
}

const struct as_row_type as_row_texts = {
    .write = texts_write, .read = texts_read, .is_unset = row_has_no_pointer};

/* ---- numbers ---- */

static bool i32_is_unset(const struct as_row *row, const void *base)
{
    return *(const int32_t *)row_at(row, base) == 0;
}

static void i32_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_i64(json, *(const int32_t *)row_at(row, base));
}

static void i32_read(struct as_rows_input *input, struct as_reader *object,
                     const struct as_row *row, void *base)
{
    (void)input;
    int64_t number = 0;
    as_read_i64(object, row->name, row->min, row->max ? row->max : INT32_MAX, &number);
    *(int32_t *)row_to(row, base) = (int32_t)number;
}

const struct as_row_type as_row_i32 = {
    .write = i32_write, .read = i32_read, .is_unset = i32_is_unset};

static void u32_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_i64(json, *(const uint32_t *)row_at(row, base));
}

static void u32_read(struct as_rows_input *input, struct as_reader *object,
                     const struct as_row *row, void *base)
{
    (void)input;
    int64_t number = 0;
    as_read_i64(object, row->name, row->min, row->max ? row->max : UINT32_MAX, &number);
    *(uint32_t *)row_to(row, base) = (uint32_t)number;
}

const struct as_row_type as_row_u32 = {
    .write = u32_write, .read = u32_read, .is_unset = i32_is_unset};

static bool i64_is_unset(const struct as_row *row, const void *base)
{
    return *(const int64_t *)row_at(row, base) == 0;
}

static void i64_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_i64(json, *(const int64_t *)row_at(row, base));
}

static void i64_read(struct as_rows_input *input, struct as_reader *object,
                     const struct as_row *row, void *base)
{
    (void)input;
    as_read_i64(object, row->name, row->min, row->max, row_to(row, base));
}

const struct as_row_type as_row_i64 = {
    .write = i64_write, .read = i64_read, .is_unset = i64_is_unset};

static void hex_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_hex(json, *(const uint64_t *)row_at(row, base));
}

static void hex_read(struct as_rows_input *input, struct as_reader *object,
                     const struct as_row *row, void *base)
{
    (void)input;
    const char *text = as_read_string(object, row->name);
    if (as_read_has(object, row->name) &&
        as_number_parse_u64_hex(text, strlen(text), row_to(row, base)) != 0)
        as_read_fail(object, row->name, "expected hexadecimal digits");
}

const struct as_row_type as_row_hex = {.write = hex_write, .read = hex_read};

static bool flag_is_unset(const struct as_row *row, const void *base)
{
    return !*(const bool *)row_at(row, base);
}

static void flag_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_bool(json, *(const bool *)row_at(row, base));
}

static void flag_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    (void)input;
    as_read_bool(object, row->name, row_to(row, base));
}

const struct as_row_type as_row_flag = {
    .write = flag_write, .read = flag_read, .is_unset = flag_is_unset};

/* ---- words ---- */

static void word_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_string(json, row->get_word(*(const unsigned *)row_at(row, base)));
}

static void word_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    (void)input;
    struct as_read_word words[WORDS_MAX + 1] = {{.text = NULL}};
    unsigned *value = row_to(row, base);
    const char *word;
    for (unsigned i = 0; (word = row->get_word(i)) != NULL; i++) {
        assert(i < WORDS_MAX);
        words[i] = (struct as_read_word){word, (int)i};
    }
    *value = (unsigned)as_read_enum(object, row->name, words, (int)*value);
}

const struct as_row_type as_row_word = {.write = word_write, .read = word_read};

/* ---- times ---- */

static void wall_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_i64(json, ((const as_wall_time *)row_at(row, base))->us);
}

static void wall_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    (void)input;
    as_read_i64(object, row->name, AS_ROW_TIME_MIN_US, AS_ROW_TIME_MAX_US,
                &((as_wall_time *)row_to(row, base))->us);
}

const struct as_row_type as_row_wall = {.write = wall_write, .read = wall_read};

/* ---- objects ---- */

static void object_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_rows_write(json, row->rows, row_get_pointer(row, base));
}

static void object_read(struct as_rows_input *input, struct as_reader *object,
                        const struct as_row *row, void *base)
{
    struct as_reader reader;
    as_read_object(&reader, object, row->name);
    if (!reader.object)
        return;
    void *item = as_arena_alloc(input->arena, 1, row->size);
    memcpy(row_to(row, base), &item, sizeof(item));
    as_rows_read(input, &reader, row->rows, item);
}

const struct as_row_type as_row_object = {
    .write = object_write, .read = object_read, .is_unset = row_has_no_pointer};

static void list_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const char *items = row_get_pointer(row, base);
    as_json_begin_array(json);
    for (size_t i = 0; i < row_get_count(row, base); i++)
        as_rows_write(json, row->rows, items + i * row->size);
    as_json_end_array(json);
}

static void list_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    size_t count;
    const struct tree_value *item = as_read_list(object, row->name, &count);
    if (!as_read_has(object, row->name))
        return;
    char *items = row_add_items(input, row, base, count, row->size);
    for (size_t i = 0; item; i++, item = item->next) {
        struct as_reader reader;
        as_read_item(&reader, object, row->name, item, i);
        as_rows_read(input, &reader, row->rows, items + i * row->size);
    }
}

const struct as_row_type as_row_list = {
    .write = list_write, .read = list_read, .is_unset = row_has_no_pointer};

/* ---- tables ---- */

static bool row_is_left_out(const struct as_row *row, const void *base)
{
    if (row->has_at > 0)
        return !*(const bool *)(const void *)((const char *)base + row->has_at - 1);
    return row->presence == AS_ROW_OPTIONAL && row->type->is_unset &&
           row->type->is_unset(row, base);
}

void as_rows_write(struct as_json_writer *json, const struct as_row *rows, const void *from)
{
    as_json_begin_object(json);
    for (const struct as_row *row = rows; row->name; row++) {
        if (row_is_left_out(row, from))
            continue;
        as_json_write_key(json, row->name);
        row->type->write(json, row, from);
    }
    as_json_end_object(json);
}

void as_rows_read(struct as_rows_input *input, struct as_reader *object, const struct as_row *rows,
                  void *to)
{
    for (const struct as_row *row = rows; row->name; row++) {
        if (row->since > input->version)
            continue;
        const struct tree_value *value = tree_find(object->object, row->name);
        const bool is_set = value && (row->type->is_nullable || !tree_is(value, TREE_NULL));
        if (row->has_at > 0)
            *(bool *)(void *)((char *)to + row->has_at - 1) = is_set;
        if (!is_set && row->presence == AS_ROW_REQUIRED)
            as_read_fail(object, row->name, "missing");
        if (value)
            row->type->read(input, object, row, to);
    }
    if (!object->is_lenient)
        as_read_end(object);
}

/* ---- copies ---- */

static void row_set_text(const struct as_row *row, void *item, const char *text)
{
    memcpy(row_to(row, item), &text, sizeof(text));
}

void *as_rows_copy(struct as_arena *arena, const struct as_row *rows, const void *items,
                   size_t count, size_t size)
{
    if (count == 0)
        return NULL;
    char *copies = as_arena_alloc(arena, count, size);
    memcpy(copies, items, count * size);
    for (size_t i = 0; i < count; i++) {
        for (const struct as_row *row = rows; row->name; row++) {
            void *copy = copies + i * size;
            assert(!row->rows);
            if (row->type == &as_row_text)
                row_set_text(row, copy, as_arena_strdup(arena, row_get_pointer(row, copy)));
        }
    }
    return copies;
}

void as_rows_own_texts(const struct as_row *rows, void *item)
{
    for (const struct as_row *row = rows; row->name; row++) {
        const char *text = row->type == &as_row_text ? row_get_pointer(row, item) : NULL;
        if (text)
            row_set_text(row, item, as_xstrdup(text));
    }
}

void as_rows_free_texts(const struct as_row *rows, void *item)
{
    for (const struct as_row *row = rows; row->name; row++) {
        if (row->type != &as_row_text)
            continue;
        free((void *)(uintptr_t)row_get_pointer(row, item));
        row_set_text(row, item, NULL);
    }
}
