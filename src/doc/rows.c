/*
 * The row engine: objects of JSON and structs, by the rows of a table. Each type of rows reads,
 * writes and describes its values.
 *
 * Texts and memory: what is read is in the arena of the input, or in the tree.
 */
#include <alertscaler/doc/rows.h>

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/rows_schema.h>

#define WORDS_MAX  32 /* of an enum */
#define HEX_DIGITS 16

#define HEX_PATTERN    "^[0-9a-fA-F]{16}$"
#define DIGEST_PATTERN "^[0-9a-f]{64}$"
#define TIME_PATTERN                                                                               \
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?"                        \
    "([Zz]|[+-][0-9]{2}:[0-9]{2})$"

static const void *row_get_pointer(const struct as_row *row, const void *base)
{
    const void *pointer;
    memcpy(&pointer, as_row_at(row, base), sizeof(pointer));
    return pointer;
}

/* Allocates items; the member and its count are set. */
static void *row_add_items(struct as_rows_input *input, const struct as_row *row, void *base,
                           size_t count, size_t size)
{
    void *items = as_arena_alloc(input->arena, count, size);
    memcpy(as_row_to(row, base), &items, sizeof(items));
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
    memcpy(as_row_to(row, base), &text, sizeof(text));
}

/* `size` counts bytes with the NUL, and a character has at least one byte. */
static void text_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_write_type(schema, "string");
    if (row->size > 0)
        as_json_write_member_i64(&schema->json, "maxLength", (int64_t)row->size - 1);
}

const struct as_row_type as_row_text = {
    .write = text_write, .read = text_read, .is_unset = text_is_unset, .describe = text_describe};

static void maybe_text_write(struct as_json_writer *json, const struct as_row *row,
                             const void *base)
{
    if (row_get_pointer(row, base))
        text_write(json, row, base);
    else
        as_json_write_null(json);
}

const struct as_row_type as_row_maybe_text = {.is_nullable = true,
                                              .write = maybe_text_write,
                                              .read = text_read,
                                              .is_unset = row_has_no_pointer,
                                              .describe = text_describe};

static bool chars_are_unset(const struct as_row *row, const void *base)
{
    return !*(const char *)as_row_at(row, base);
}

static void chars_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_string(json, as_row_at(row, base));
}

static void chars_read(struct as_rows_input *input, struct as_reader *object,
                       const struct as_row *row, void *base)
{
    (void)input;
    as_read_copy(object, row->name, as_row_to(row, base), row->size);
}

const struct as_row_type as_row_chars = {.write = chars_write,
                                         .read = chars_read,
                                         .is_unset = chars_are_unset,
                                         .describe = text_describe};

static void texts_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const char *const *texts = row_get_pointer(row, base);
    as_json_begin_array(json);
    for (size_t i = 0; i < as_row_get_count(row, base); i++)
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

static void texts_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_begin_items(schema, row->min, row->max);
    as_rows_schema_write_type(schema, "string");
    as_rows_schema_end_items(schema);
}

const struct as_row_type as_row_texts = {.write = texts_write,
                                         .read = texts_read,
                                         .is_unset = row_has_no_pointer,
                                         .describe = texts_describe};

/* ---- numbers ---- */

static bool i32_is_unset(const struct as_row *row, const void *base)
{
    return *(const int32_t *)as_row_at(row, base) == 0;
}

static void i32_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_i64(json, *(const int32_t *)as_row_at(row, base));
}

static void i32_read(struct as_rows_input *input, struct as_reader *object,
                     const struct as_row *row, void *base)
{
    (void)input;
    int64_t number = 0;
    as_read_i64(object, row->name, row->min, row->max ? row->max : INT32_MAX, &number);
    *(int32_t *)as_row_to(row, base) = (int32_t)number;
}

static void i32_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_write_integer(schema, row->min, row->max ? row->max : INT32_MAX);
}

const struct as_row_type as_row_i32 = {
    .write = i32_write, .read = i32_read, .is_unset = i32_is_unset, .describe = i32_describe};

static bool size_is_unset(const struct as_row *row, const void *base)
{
    return *(const int32_t *)as_row_at(row, base) < 0;
}

static void size_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    if (size_is_unset(row, base))
        as_json_write_null(json);
    else
        i32_write(json, row, base);
}

static void size_row_read(struct as_rows_input *input, struct as_reader *object,
                          const struct as_row *row, void *base)
{
    if (as_read_has(object, row->name))
        i32_read(input, object, row, base);
    else
        (void)as_read_any(object, row->name);
}

const struct as_row_type as_row_size = {.is_nullable = true,
                                        .write = size_write,
                                        .read = size_row_read,
                                        .is_unset = size_is_unset,
                                        .describe = i32_describe};

static void u32_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_i64(json, *(const uint32_t *)as_row_at(row, base));
}

static void u32_read(struct as_rows_input *input, struct as_reader *object,
                     const struct as_row *row, void *base)
{
    (void)input;
    int64_t number = 0;
    as_read_i64(object, row->name, row->min, row->max ? row->max : UINT32_MAX, &number);
    *(uint32_t *)as_row_to(row, base) = (uint32_t)number;
}

static void u32_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_write_integer(schema, row->min, row->max ? row->max : UINT32_MAX);
}

const struct as_row_type as_row_u32 = {
    .write = u32_write, .read = u32_read, .is_unset = i32_is_unset, .describe = u32_describe};

static bool i64_is_unset(const struct as_row *row, const void *base)
{
    return *(const int64_t *)as_row_at(row, base) == 0;
}

static void i64_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_i64(json, *(const int64_t *)as_row_at(row, base));
}

static void i64_read(struct as_rows_input *input, struct as_reader *object,
                     const struct as_row *row, void *base)
{
    (void)input;
    as_read_i64(object, row->name, row->min, row->max, as_row_to(row, base));
}

/* A row that is only written has no limit. */
static void i64_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_write_integer(schema, row->min, row->max ? row->max : INT64_MAX);
}

const struct as_row_type as_row_i64 = {
    .write = i64_write, .read = i64_read, .is_unset = i64_is_unset, .describe = i64_describe};

static void u64_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_i64(json, (int64_t) * (const uint64_t *)as_row_at(row, base));
}

static void u64_read(struct as_rows_input *input, struct as_reader *object,
                     const struct as_row *row, void *base)
{
    (void)input;
    int64_t number = 0;
    as_read_i64(object, row->name, row->min, row->max, &number);
    *(uint64_t *)as_row_to(row, base) = (uint64_t)number;
}

const struct as_row_type as_row_u64 = {
    .write = u64_write, .read = u64_read, .is_unset = i64_is_unset, .describe = i64_describe};

static void hex_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_hex(json, *(const uint64_t *)as_row_at(row, base));
}

static void hex_read(struct as_rows_input *input, struct as_reader *object,
                     const struct as_row *row, void *base)
{
    (void)input;
    const char *text = as_read_string(object, row->name);
    if (as_read_has(object, row->name) &&
        (strlen(text) != HEX_DIGITS ||
         as_number_parse_u64_hex(text, HEX_DIGITS, as_row_to(row, base)) != 0))
        as_read_fail(object, row->name, "expected %d hex digits", HEX_DIGITS);
}

static void hex_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_text(schema, HEX_PATTERN);
}

const struct as_row_type as_row_hex = {
    .write = hex_write, .read = hex_read, .is_unset = i64_is_unset, .describe = hex_describe};

static void digest_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    char text[AS_DIGEST_TEXT_SIZE];
    as_digest_print(as_row_at(row, base), text);
    as_json_write_string_size(json, text, sizeof(text) - 1);
}

static void digest_read(struct as_rows_input *input, struct as_reader *object,
                        const struct as_row *row, void *base)
{
    (void)input;
    const char *text = as_read_string(object, row->name);
    if (!as_digest_parse(text, strlen(text), as_row_to(row, base)))
        as_read_fail(object, row->name, "expected a digest");
}

static void digest_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_text(schema, DIGEST_PATTERN);
}

const struct as_row_type as_row_digest = {
    .write = digest_write, .read = digest_read, .describe = digest_describe};

static bool number_is_unset(const struct as_row *row, const void *base)
{
    return !isfinite(*(const double *)as_row_at(row, base));
}

static void number_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_double(json, *(const double *)as_row_at(row, base));
}

static void number_read(struct as_rows_input *input, struct as_reader *object,
                        const struct as_row *row, void *base)
{
    (void)input;
    as_read_double(object, row->name, as_row_to(row, base));
}

static void number_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_type(schema, "number");
}

const struct as_row_type as_row_number = {.write = number_write,
                                          .read = number_read,
                                          .is_unset = number_is_unset,
                                          .describe = number_describe};

static void positive_read(struct as_rows_input *input, struct as_reader *object,
                          const struct as_row *row, void *base)
{
    (void)input;
    as_read_positive(object, row->name, as_row_to(row, base));
}

static void positive_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_type(schema, "number");
    as_json_write_member_i64(&schema->json, "minimum", 0);
}

const struct as_row_type as_row_positive = {.write = number_write,
                                            .read = positive_read,
                                            .is_unset = number_is_unset,
                                            .describe = positive_describe};

static bool flag_is_unset(const struct as_row *row, const void *base)
{
    return !*(const bool *)as_row_at(row, base);
}

static void flag_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_bool(json, *(const bool *)as_row_at(row, base));
}

static void flag_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    (void)input;
    as_read_bool(object, row->name, as_row_to(row, base));
}

static void flag_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_type(schema, "boolean");
}

const struct as_row_type as_row_flag = {
    .write = flag_write, .read = flag_read, .is_unset = flag_is_unset, .describe = flag_describe};

static const char *is_up_get_word(unsigned is_up)
{
    static const char *const words[] = {"down", "up"};
    return is_up < AS_ARRAY_SIZE(words) ? words[is_up] : NULL;
}

static void is_up_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_string(json, is_up_get_word(*(const bool *)as_row_at(row, base)));
}

static void is_up_read(struct as_rows_input *input, struct as_reader *object,
                       const struct as_row *row, void *base)
{
    static const struct as_read_word words[] = {{"up", true}, {"down", false}, {0}};
    (void)input;
    *(bool *)as_row_to(row, base) = as_read_enum(object, row->name, words, true);
}

static void is_up_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_words(schema, is_up_get_word, 0);
}

const struct as_row_type as_row_is_up = {
    .write = is_up_write, .read = is_up_read, .describe = is_up_describe};

/* ---- words ---- */

static bool word_is_unset(const struct as_row *row, const void *base)
{
    return !row->get_word(*(const unsigned *)as_row_at(row, base));
}

static void word_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_string(json, row->get_word(*(const unsigned *)as_row_at(row, base)));
}

static void word_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    (void)input;
    struct as_read_word words[WORDS_MAX + 1] = {{.text = NULL}};
    unsigned *value = as_row_to(row, base);
    const char *word;
    for (unsigned i = 0; (word = row->get_word((unsigned)row->min + i)) != NULL; i++) {
        assert(i < WORDS_MAX);
        words[i] = (struct as_read_word){word, (int)row->min + (int)i};
    }
    *value = (unsigned)as_read_enum(object, row->name, words, (int)*value);
}

static void word_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_write_words(schema, row->get_word, (unsigned)row->min);
}

const struct as_row_type as_row_word = {
    .write = word_write, .read = word_read, .is_unset = word_is_unset, .describe = word_describe};

static void bits_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const unsigned bits = *(const unsigned *)as_row_at(row, base);
    as_json_begin_array(json);
    for (unsigned i = 0; bits >> i; i++)
        if (bits >> i & 1)
            as_json_write_string(json, row->get_word(i));
    as_json_end_array(json);
}

static void bits_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    (void)input;
    size_t count;
    const struct tree_value *item = as_read_list(object, row->name, &count);
    unsigned *bits = as_row_to(row, base);
    for (size_t i = 0; item; i++, item = item->next) {
        const char *text = tree_get_text(item), *word = NULL;
        unsigned bit = 0;
        while (text && (word = row->get_word(bit)) != NULL && strcmp(word, text) != 0)
            bit++;
        if (word)
            *bits |= 1U << bit;
        else
            as_read_fail(object, row->name, "[%zu]: no such word", i);
    }
}

static void bits_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_begin_items(schema, 0, 0);
    as_rows_schema_write_words(schema, row->get_word, 0);
    as_rows_schema_end_items(schema);
}

const struct as_row_type as_row_bits = {
    .write = bits_write, .read = bits_read, .is_unset = i32_is_unset, .describe = bits_describe};

/* ---- times ---- */

static void wall_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_i64(json, ((const as_wall_time *)as_row_at(row, base))->us);
}

static void wall_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    (void)input;
    as_read_i64(object, row->name, AS_ROW_TIME_MIN_US, AS_ROW_TIME_MAX_US,
                &((as_wall_time *)as_row_to(row, base))->us);
}

static void wall_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_integer(schema, AS_ROW_TIME_MIN_US, AS_ROW_TIME_MAX_US);
}

const struct as_row_type as_row_wall = {
    .write = wall_write, .read = wall_read, .describe = wall_describe};

static void time_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print_short(*(const as_wall_time *)as_row_at(row, base), text);
    as_json_write_string(json, text);
}

static void time_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    (void)input;
    as_maybe_time time = {.set = false};
    as_read_time(object, row->name, &time);
    if (time.set)
        *(as_wall_time *)as_row_to(row, base) = time.at;
}

static void time_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_text(schema, TIME_PATTERN);
}

const struct as_row_type as_row_time = {
    .write = time_write, .read = time_read, .describe = time_describe};

static void exact_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(*(const as_wall_time *)as_row_at(row, base), text);
    as_json_write_string(json, text);
}

const struct as_row_type as_row_exact = {
    .write = exact_write, .read = time_read, .describe = time_describe};

static bool maybe_time_is_unset(const struct as_row *row, const void *base)
{
    return !((const as_maybe_time *)as_row_at(row, base))->set;
}

static void maybe_time_write(struct as_json_writer *json, const struct as_row *row,
                             const void *base)
{
    char text[AS_RFC3339_SIZE];
    if (maybe_time_is_unset(row, base)) {
        as_json_write_null(json);
        return;
    }
    as_wall_time_print_short(((const as_maybe_time *)as_row_at(row, base))->at, text);
    as_json_write_string(json, text);
}

static void maybe_time_read(struct as_rows_input *input, struct as_reader *object,
                            const struct as_row *row, void *base)
{
    (void)input;
    as_read_time(object, row->name, as_row_to(row, base));
}

const struct as_row_type as_row_maybe_time = {.is_nullable = true,
                                              .write = maybe_time_write,
                                              .read = maybe_time_read,
                                              .is_unset = maybe_time_is_unset,
                                              .describe = time_describe};

static void seconds_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_json_write_double(json, (double)*(const int64_t *)as_row_at(row, base) / AS_US_PER_S);
}

static void seconds_read(struct as_rows_input *input, struct as_reader *object,
                         const struct as_row *row, void *base)
{
    (void)input;
    as_read_seconds(object, row->name, as_row_to(row, base));
}

const struct as_row_type as_row_seconds = {.write = seconds_write,
                                           .read = seconds_read,
                                           .is_unset = i64_is_unset,
                                           .describe = positive_describe};

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
    memcpy(as_row_to(row, base), &item, sizeof(item));
    if (row->defaults)
        memcpy(item, row->defaults, row->size);
    as_rows_read(input, &reader, row->rows, item);
}

static void object_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_write_rows(schema, row->rows);
}

const struct as_row_type as_row_object = {.write = object_write,
                                          .read = object_read,
                                          .is_unset = row_has_no_pointer,
                                          .describe = object_describe};

static void list_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const char *items = row_get_pointer(row, base);
    as_json_begin_array(json);
    for (size_t i = 0; i < as_row_get_count(row, base); i++)
        as_rows_write(json, row->rows, items + i * row->size);
    as_json_end_array(json);
}

static bool list_has_size(struct as_reader *object, const struct as_row *row, size_t count)
{
    if (row->max == 0 || (count >= (size_t)row->min && count <= (size_t)row->max))
        return true;
    if (row->min > 0)
        as_read_fail(object, row->name, "expected %" PRId64 " to %" PRId64 " items", row->min,
                     row->max);
    else
        as_read_fail(object, row->name, "more than %" PRId64, row->max);
    return false;
}

static void list_read(struct as_rows_input *input, struct as_reader *object,
                      const struct as_row *row, void *base)
{
    size_t count;
    const struct tree_value *item = as_read_list(object, row->name, &count);
    if (!as_read_has(object, row->name))
        return;
    if (!list_has_size(object, row, count))
        return;
    char *items = row_add_items(input, row, base, count, row->size);
    for (size_t i = 0; item; i++, item = item->next) {
        struct as_reader reader;
        if (row->defaults)
            memcpy(items + i * row->size, row->defaults, row->size);
        as_read_item(&reader, object, row->name, item, i);
        as_rows_read(input, &reader, row->rows, items + i * row->size);
    }
}

static void list_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_begin_items(schema, row->max > 0 ? row->min : 0, row->max);
    as_rows_schema_write_rows(schema, row->rows);
    as_rows_schema_end_items(schema);
}

const struct as_row_type as_row_list = {.write = list_write,
                                        .read = list_read,
                                        .is_unset = row_has_no_pointer,
                                        .describe = list_describe};

static void part_row_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    as_rows_write(json, row->rows, as_row_at(row, base));
}

static void part_row_read(struct as_rows_input *input, struct as_reader *object,
                          const struct as_row *row, void *base)
{
    struct as_reader reader;
    as_read_object(&reader, object, row->name);
    if (reader.object)
        as_rows_read(input, &reader, row->rows, as_row_to(row, base));
}

/* ---- tables ---- */

/* The struct that has the member; NULL: there is none. */
static const void *row_get_base(const struct as_row *row, const void *from)
{
    const void *base = from;
    if (row->via > 0)
        memcpy(&base, (const char *)from + row->via - 1, sizeof(base));
    return base;
}

static bool row_has_member(const struct as_row *row, const void *base)
{
    return row->has_at == 0 || *(const bool *)(const void *)((const char *)base + row->has_at - 1);
}

static bool row_is_unset(const struct as_row *row, const void *base)
{
    if (!row_has_member(row, base))
        return true;
    if (row->is_unset)
        return row->is_unset(base);
    return row->type->is_unset && row->type->is_unset(row, base);
}

static bool row_is_left_out(const struct as_row *row, const void *base)
{
    switch (row->presence) {
    case AS_ROW_OPTIONAL: return row_is_unset(row, base);
    case AS_ROW_FILLED: return as_row_get_count(row, base) == 0;
    case AS_ROW_DEFAULT: return !row_has_member(row, base);
    case AS_ROW_REQUIRED:
    case AS_ROW_NULLABLE: break;
    }
    return false;
}

static bool row_is_null(const struct as_row *row, const void *base)
{
    return row->presence == AS_ROW_NULLABLE ? row_is_unset(row, base) : !row_has_member(row, base);
}

static bool part_is_unset(const struct as_row *row, const void *from)
{
    for (const struct as_row *member = row->rows; member->name; member++) {
        const void *base = row_get_base(member, as_row_at(row, from));
        if (base && !row_is_left_out(member, base))
            return false;
    }
    return true;
}

const struct as_row_type as_row_part = {.write = part_row_write,
                                        .read = part_row_read,
                                        .is_unset = part_is_unset,
                                        .describe = object_describe};

void as_rows_write(struct as_json_writer *json, const struct as_row *rows, const void *from)
{
    as_json_begin_object(json);
    for (const struct as_row *row = rows; row->name; row++) {
        const void *base = row_get_base(row, from);
        if (!base || row_is_left_out(row, base))
            continue;
        if (!row->type->has_own_key)
            as_json_write_key(json, row->name);
        if (row_is_null(row, base))
            as_json_write_null(json);
        else
            row->type->write(json, row, base);
    }
    as_json_end_object(json);
}

static void row_read(struct as_rows_input *input, struct as_reader *object,
                     const struct as_row *row, void *base)
{
    const struct tree_value *value = tree_find(object->object, row->name);
    const bool is_null = tree_is(value, TREE_NULL) && !row->type->is_nullable;
    if (row->presence == AS_ROW_REQUIRED && (!value || (is_null && row->has_at == 0)))
        as_read_fail(object, row->name, "missing");
    if (row->has_at > 0) {
        *(bool *)(void *)((char *)base + row->has_at - 1) = value && !is_null;
        if (!value || is_null) {
            (void)as_read_any(object, row->name);
            return;
        }
    }
    if (is_null && row->presence == AS_ROW_NULLABLE)
        (void)as_read_any(object, row->name);
    else if (value)
        row->type->read(input, object, row, base);
}

void as_rows_read(struct as_rows_input *input, struct as_reader *object, const struct as_row *rows,
                  void *to)
{
    const struct as_row *row = rows;
    for (unsigned pass = 0, last = 0; pass <= last; pass++) {
        for (row = rows; row->name; row++) {
            const void *base = row_get_base(row, to);
            last = row->pass > last ? row->pass : last;
            if (row->pass == pass && base && row->since <= input->version)
                row_read(input, object, row, (void *)(uintptr_t)base);
        }
    }
    if (row->check && as_read_result(object) == 0)
        row->check(input, object, to);
    if (!object->is_lenient)
        as_read_end(object);
}

/* ---- copies ---- */

static void row_set_text(const struct as_row *row, void *item, const char *text)
{
    memcpy(as_row_to(row, item), &text, sizeof(text));
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
