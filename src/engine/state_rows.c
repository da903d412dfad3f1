/*
 * Structs as JSON objects and back: see the header.
 */
#include "state_rows.h"

#include <string.h>

#include <alertscaler/base/number.h>

static const void *get_pointer(const void *at)
{
    const void *pointer;
    memcpy(&pointer, at, sizeof(pointer));
    return pointer;
}

/* ---- writing ---- */

static void write_digest(struct as_json_writer *json, const struct as_digest *digest)
{
    char text[AS_DIGEST_TEXT_SIZE];
    as_digest_print(digest, text);
    as_json_write_string(json, text);
}

static void write_moment(struct as_json_writer *json, const struct as_moment *moment)
{
    if (!as_moment_is_set(*moment)) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_array(json);
    as_json_write_i64(json, moment->mono.us);
    as_json_write_i64(json, moment->wall.us);
    as_json_end_array(json);
}

static void write_labels(struct as_json_writer *json, const struct as_labels *labels)
{
    as_json_begin_object(json);
    for (uint32_t i = 0; labels && i < labels->count; i++)
        as_json_write_member(json, labels->items[i].name, labels->items[i].value);
    as_json_end_object(json);
}

static void write_texts(struct as_json_writer *json, const char *const *texts, size_t count)
{
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++)
        as_json_write_string(json, texts[i]);
    as_json_end_array(json);
}

static void write_pairs(struct as_json_writer *json, const struct state_pairs *pairs)
{
    if (!pairs->fields) {
        as_json_write_null(json);
        return;
    }
    as_json_begin_array(json);
    for (size_t i = 0; i < pairs->count; i++)
        write_texts(json, (const char *[]){pairs->fields[i].key, pairs->fields[i].value}, 2);
    as_json_end_array(json);
}

static void write_list(struct as_json_writer *json, const struct state_row *row, const char *items,
                       size_t count)
{
    as_json_begin_array(json);
    for (size_t i = 0; i < count; i++)
        state_rows_write(json, row->rows, items + i * row->size);
    as_json_end_array(json);
}

static void write_value(struct as_json_writer *json, const struct state_row *row, const void *at,
                        const size_t *count)
{
    switch (row->kind) {
    case STATE_TEXT: as_json_write_string(json, get_pointer(at)); break;
    case STATE_I32: as_json_write_i64(json, *(const int32_t *)at); break;
    case STATE_U32: as_json_write_i64(json, *(const uint32_t *)at); break;
    case STATE_I64: as_json_write_i64(json, *(const int64_t *)at); break;
    case STATE_BOOL: as_json_write_bool(json, *(const bool *)at); break;
    case STATE_HEX: as_json_write_hex(json, *(const uint64_t *)at); break;
    case STATE_DIGEST: write_digest(json, at); break;
    case STATE_MOMENT: write_moment(json, at); break;
    case STATE_LABELS: write_labels(json, get_pointer(at)); break;
    case STATE_TEXTS: write_texts(json, get_pointer(at), *count); break;
    case STATE_PAIRS: write_pairs(json, at); break;
    case STATE_LIST: write_list(json, row, get_pointer(at), *count); break;
    case STATE_OBJECT: state_rows_write(json, row->rows, get_pointer(at)); break;
    case STATE_WORD: as_json_write_string(json, row->get_word(*(const unsigned *)at)); break;
    }
}

static bool is_left_out(const struct state_row *row, const void *at)
{
    if (!row->is_optional || row->kind == STATE_DIGEST)
        return false;
    return row->kind == STATE_BOOL     ? !*(const bool *)at
           : row->kind == STATE_I32    ? *(const int32_t *)at == 0
           : row->kind == STATE_MOMENT ? !as_moment_is_set(*(const struct as_moment *)at)
                                       : !get_pointer(at);
}

void state_rows_write(struct as_json_writer *json, const struct state_row *rows, const void *from)
{
    as_json_begin_object(json);
    for (const struct state_row *row = rows; row->name; row++) {
        const void *at = (const char *)from + row->at;
        if (is_left_out(row, at))
            continue;
        as_json_write_key(json, row->name);
        write_value(json, row, at, (const void *)((const char *)from + row->count_at));
    }
    as_json_end_object(json);
}

/* ---- reading ---- */

void state_reader_damage(struct state_reader *reader, const char *name)
{
    if (!reader->damaged)
        as_error_set(reader->error, "state document: \"%s\" is missing or of the wrong kind", name);
    reader->damaged = true;
}

static size_t count_items(const struct tree_value *list)
{
    return tree_is(list, TREE_ARRAY) ? list->size : 0;
}

/* Allocates items; the pointer at `pointer_at` is set to them. */
static void *add_items(struct state_reader *reader, void *pointer_at, size_t count, size_t size)
{
    void *items = as_arena_alloc(&reader->tree.arena, count, size);
    memcpy(pointer_at, &items, sizeof(items));
    return items;
}

static bool read_text(const struct tree_value *value, size_t size, const char **text_out)
{
    const char *text = tree_get_text(value);
    if (!text || (size > 0 && strlen(text) >= size))
        return false;
    *text_out = text;
    return true;
}

static bool read_i32(const struct tree_value *value, int64_t min, int32_t *number_out)
{
    int64_t number = 0;
    const bool is_good = tree_get_i64(value, min, INT32_MAX, &number);
    *number_out = (int32_t)number;
    return is_good;
}

static bool read_u32(const struct tree_value *value, uint32_t *number_out)
{
    int64_t number = 0;
    const bool is_good = tree_get_i64(value, 0, UINT32_MAX, &number);
    *number_out = (uint32_t)number;
    return is_good;
}

static bool read_bool(const struct tree_value *value, bool *value_out)
{
    const bool is_good = tree_is(value, TREE_BOOLEAN);
    *value_out = is_good && value->boolean;
    return is_good;
}

/* Within these limits differences of times cannot overflow. */
static bool read_time(const struct tree_value *value, int64_t *us_out)
{
    return tree_get_i64(value, INT64_MIN / 4 + 1, INT64_MAX / 4 - 1, us_out);
}

static bool read_moment(const struct state_reader *reader, const struct tree_value *value,
                        bool is_needed, struct as_moment *moment_out)
{
    const struct as_state_clock *clock = reader->clock;
    struct as_moment moment;
    if (tree_is(value, TREE_NULL)) {
        *moment_out = AS_MOMENT_NEVER;
        return !is_needed;
    }
    if (!tree_is(value, TREE_ARRAY) || value->size != 2 ||
        !read_time(value->first, &moment.mono.us) ||
        !read_time(value->first->next, &moment.wall.us))
        return false;
    if (!reader->same_boot) {
        const int64_t age = clock->wall.us - moment.wall.us;
        moment.mono.us = clock->mono.us - (age > 0 ? age : 0);
    }
    if (moment.mono.us > clock->mono.us)
        moment.mono = clock->mono;
    *moment_out = moment;
    return true;
}

static bool read_labels(struct state_reader *reader, const struct tree_value *object,
                        const struct as_labels **labels_out)
{
    struct as_labels **labels = &reader->labels[reader->label_count];
    size_t count = 0;
    if (!tree_is(object, TREE_OBJECT))
        return false;
    struct as_label *pairs = as_arena_alloc(&reader->tree.arena, object->size, sizeof(*pairs));
    for (const struct tree_value *value = object->first; value; value = value->next) {
        pairs[count].name = value->name;
        if (!read_text(value, 0, &pairs[count++].value))
            return false;
    }
    if (as_labels_new(pairs, count, labels) != 0)
        return false;
    reader->label_count++;
    *labels_out = *labels;
    return true;
}

static bool read_texts(struct state_reader *reader, const struct tree_value *list, void *at,
                       size_t *count_out)
{
    const struct tree_value *item = tree_get_first(list);
    *count_out = count_items(list);
    const char **texts = add_items(reader, at, *count_out, sizeof(*texts));
    for (size_t i = 0; item; i++, item = item->next) {
        if (!read_text(item, 0, &texts[i]))
            return false;
    }
    return tree_is(list, TREE_ARRAY);
}

static bool read_pairs(struct state_reader *reader, const struct tree_value *list,
                       struct state_pairs *out)
{
    if (tree_is(list, TREE_NULL))
        return true;
    const struct tree_value *pair = tree_get_first(list);
    out->count = count_items(list);
    struct as_target_field *fields = add_items(reader, &out->fields, out->count, sizeof(*fields));
    for (size_t i = 0; i < out->count; i++, pair = pair->next) {
        const struct tree_value *key = tree_get_first(pair);
        if (!read_text(key, 0, &fields[i].key) || !read_text(key->next, 0, &fields[i].value))
            return false;
    }
    return tree_is(list, TREE_ARRAY);
}

static bool read_object(struct state_reader *reader, const struct state_row *row,
                        const struct tree_value *object, void *to)
{
    if (tree_is(object, TREE_OBJECT))
        state_rows_read(reader, row->rows, object, to);
    return tree_is(object, TREE_OBJECT);
}

static bool read_list(struct state_reader *reader, const struct state_row *row,
                      const struct tree_value *list, void *at, size_t *count_out)
{
    const struct tree_value *item = tree_get_first(list);
    *count_out = count_items(list);
    char *items = add_items(reader, at, *count_out, row->size);
    for (size_t i = 0; i < *count_out; i++, item = item->next) {
        if (!read_object(reader, row, item, items + i * row->size))
            return false;
    }
    return tree_is(list, TREE_ARRAY);
}

static bool read_word(const struct state_row *row, const char *text, unsigned *value_out)
{
    for (unsigned i = 0; text && i <= (unsigned)row->max; i++) {
        if (strcmp(row->get_word(i), text) == 0) {
            *value_out = i;
            return true;
        }
    }
    return false;
}

static bool read_value(struct state_reader *reader, const struct state_row *row,
                       const struct tree_value *value, void *at, size_t *count)
{
    const char *text = tree_get_text(value);
    switch (row->kind) {
    case STATE_TEXT: return read_text(value, row->size, at);
    case STATE_I32: return read_i32(value, row->min, at);
    case STATE_U32: return read_u32(value, at);
    case STATE_I64: return tree_get_i64(value, row->min, row->max, at);
    case STATE_BOOL: return read_bool(value, at);
    case STATE_HEX: return text && as_number_parse_u64_hex(text, strlen(text), at) == 0;
    case STATE_DIGEST: return text && as_digest_parse(text, strlen(text), at);
    case STATE_MOMENT: return read_moment(reader, value, row->is_needed, at);
    case STATE_LABELS: return read_labels(reader, value, at);
    case STATE_TEXTS: return read_texts(reader, value, at, count);
    case STATE_PAIRS: return read_pairs(reader, value, at);
    case STATE_LIST: return read_list(reader, row, value, at, count);
    case STATE_OBJECT: return read_object(reader, row, value, add_items(reader, at, 1, row->size));
    case STATE_WORD: return read_word(row, text, at);
    }
    return false;
}

void state_rows_read(struct state_reader *reader, const struct state_row *rows,
                     const struct tree_value *object, void *to)
{
    for (const struct state_row *row = rows; row->name; row++) {
        const char *name = row->name;
        const struct tree_value *value = tree_find(object, name);
        if (!value && row->former)
            value = tree_find(object, name = row->former);
        if ((value || !row->is_optional) && !read_value(reader, row, value, (char *)to + row->at,
                                                        (void *)((char *)to + row->count_at)))
            state_reader_damage(reader, name);
    }
}
