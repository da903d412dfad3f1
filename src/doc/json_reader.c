/*
 * The reader of JSON objects: each value is checked as it is read, and an error names its place.
 */
#include <alertscaler/doc/json_reader.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/buf.h>

#define PATH_MAX_SIZE (AS_ERROR_SIZE + 256) /* what is longer would be cut anyway */

void place_init(struct place *place, struct as_error *error)
{
    *place = (struct place){.root = place, .index = -1, .error = error};
}

void place_enter(struct place *place, struct place *parent, const char *name, ptrdiff_t index)
{
    *place = (struct place){.root = parent->root, .parent = parent, .name = name, .index = index};
}

static void reader_append_path(struct as_buf *path, const struct place *place)
{
    if (!place->parent)
        return;
    reader_append_path(path, place->parent);
    as_buf_printf(path, "%s%s", path->size ? "." : "", place->name);
    if (place->index >= 0)
        as_buf_printf(path, "[%td]", place->index);
}

void place_fail(struct place *place, const char *name, const char *format, ...)
{
    struct as_buf path = AS_BUF_INIT(PATH_MAX_SIZE);
    char message[AS_ERROR_SIZE];
    va_list list;

    if (place->root->has_failed)
        return;
    place->root->has_failed = true;
    va_start(list, format);
    vsnprintf(message, sizeof(message), format, list);
    va_end(list);
    reader_append_path(&path, place);
    if (name)
        as_buf_printf(&path, "%s%s", path.size ? "." : "", name);
    as_error_set(place->root->error, "%s%s%s", path.size ? path.data : "", path.size ? ": " : "",
                 message);
    as_buf_deinit(&path);
}

int place_result(const struct place *place)
{
    return place->root->has_failed ? -EBADMSG : 0;
}

#define SECONDS_MAX 3153600000 /* 100 years */

/* Does not zero `known`, which is large. */
static void reader_init(struct as_reader *reader, const struct tree_value *object, bool is_lenient)
{
    reader->object = object;
    reader->is_lenient = is_lenient;
    reader->taken = reader->known_count = 0;
}

static void check_object(struct as_reader *reader)
{
    if (tree_is(reader->object, TREE_OBJECT))
        return;
    as_read_fail(reader, NULL, "expected an object");
    reader->object = NULL;
}

void as_read_document(struct as_reader *reader, const struct tree_value *document,
                      struct as_error *error)
{
    place_init(&reader->place, error);
    reader_init(reader, document, false);
    check_object(reader);
}

void as_read_lenient(struct as_reader *reader, const struct tree_value *document,
                     struct as_error *error)
{
    place_init(&reader->place, error);
    reader_init(reader, document, true);
    if (document)
        check_object(reader);
}

void as_read_object(struct as_reader *reader, struct as_reader *parent, const char *name)
{
    const struct tree_value *object = as_read_any(parent, name);

    place_enter(&reader->place, &parent->place, name, -1);
    reader_init(reader, tree_is(object, TREE_NULL) ? NULL : object, parent->is_lenient);
    if (reader->object)
        check_object(reader);
}

void as_read_item(struct as_reader *reader, struct as_reader *parent, const char *name,
                  const struct tree_value *item, size_t index)
{
    place_enter(&reader->place, &parent->place, name, (ptrdiff_t)index);
    reader_init(reader, item, parent->is_lenient);
    check_object(reader);
}

static bool reader_is_known(const struct as_reader *reader, const char *key)
{
    for (size_t i = 0; i < reader->known_count; i++) {
        if (strcmp(reader->known[i], key) == 0)
            return true;
    }
    return false;
}

void as_read_end(struct as_reader *reader)
{
    if (!reader->object || reader->taken == reader->object->size)
        return;
    for (const struct tree_value *member = reader->object->first; member; member = member->next) {
        if (!reader_is_known(reader, member->name))
            as_read_fail(reader, member->name, "unknown field");
    }
}

bool as_read_has(const struct as_reader *reader, const char *name)
{
    const struct tree_value *value = tree_find(reader->object, name);
    return value && value->kind != TREE_NULL;
}

void as_read_require(struct as_reader *reader, const char *name)
{
    if (!as_read_has(reader, name))
        as_read_fail(reader, name, "missing");
}

const struct tree_value *as_read_any(struct as_reader *reader, const char *name)
{
    const struct tree_value *value = tree_find(reader->object, name);

    if (reader->is_lenient)
        return tree_is(value, TREE_NULL) ? NULL : value;
    assert(reader->known_count < AS_READ_FIELDS_MAX);
    reader->known[reader->known_count++] = name;
    if (value)
        reader->taken++;
    return value;
}

static const struct tree_value *reader_read_values(struct as_reader *reader, const char *name,
                                                   enum tree_kind kind, size_t *count_out)
{
    const struct tree_value *value = as_read_any(reader, name);

    *count_out = 0;
    if (tree_is(value, kind)) {
        *count_out = value->size;
        return value->first;
    }
    if (value && value->kind != TREE_NULL)
        as_read_fail(reader, name, "expected %s", kind == TREE_ARRAY ? "a list" : "an object");
    return NULL;
}

const struct tree_value *as_read_list(struct as_reader *reader, const char *name, size_t *count_out)
{
    return reader_read_values(reader, name, TREE_ARRAY, count_out);
}

const struct tree_value *as_read_map(struct as_reader *reader, const char *name, size_t *count_out)
{
    return reader_read_values(reader, name, TREE_OBJECT, count_out);
}

void as_read_i64(struct as_reader *reader, const char *name, int64_t low, int64_t high,
                 int64_t *number_out)
{
    const struct tree_value *value = as_read_any(reader, name);

    if (value && !tree_get_i64(value, low, high, number_out))
        as_read_fail(reader, name, "expected an integer from %" PRId64 " to %" PRId64, low, high);
}

void as_read_i32(struct as_reader *reader, const char *name, int32_t low, int32_t *number_out)
{
    int64_t number = *number_out;

    as_read_i64(reader, name, low, INT32_MAX, &number);
    *number_out = (int32_t)number;
}

void as_read_double(struct as_reader *reader, const char *name, double *number_out)
{
    const struct tree_value *value = as_read_any(reader, name);

    if (value && !tree_get_double(value, number_out))
        as_read_fail(reader, name, "expected a number");
}

void as_read_positive(struct as_reader *reader, const char *name, double *number_out)
{
    double number = 0;

    as_read_double(reader, name, &number);
    if (number < 0)
        as_read_fail(reader, name, "expected a number that is not negative");
    else if (as_read_has(reader, name))
        *number_out = number;
}

void as_read_seconds(struct as_reader *reader, const char *name, int64_t *us_out)
{
    double seconds = 0;

    as_read_double(reader, name, &seconds);
    if (seconds < 0 || seconds > SECONDS_MAX)
        as_read_fail(reader, name, "expected seconds from 0 to %" PRId64 " (100 years)",
                     (int64_t)SECONDS_MAX);
    else if (as_read_has(reader, name))
        /* In two parts, so that every number of microseconds survives writing and reading. */
        *us_out = (int64_t)floor(seconds) * AS_US_PER_S +
                  (int64_t)round((seconds - floor(seconds)) * AS_US_PER_S);
}

void as_read_bool(struct as_reader *reader, const char *name, bool *value_out)
{
    const struct tree_value *value = as_read_any(reader, name);

    if (tree_is(value, TREE_BOOLEAN))
        *value_out = value->boolean;
    else if (value)
        as_read_fail(reader, name, "expected true or false");
}

int as_read_enum(struct as_reader *reader, const char *name, const struct as_read_word *words,
                 int absent)
{
    const struct tree_value *value = as_read_any(reader, name);
    const char *text = tree_get_text(value);

    for (size_t i = 0; text && words[i].text; i++) {
        if (strcmp(words[i].text, text) == 0)
            return words[i].value;
    }
    if (!value)
        return absent;
    struct as_buf list = AS_BUF_INIT(AS_ERROR_SIZE);
    for (size_t i = 0; words[i].text; i++)
        as_buf_printf(&list, "%s%s",
                      i == 0               ? ""
                      : !words[i + 1].text ? " or "
                                           : ", ",
                      words[i].text);
    as_read_fail(reader, name, "expected %s", list.data);
    as_buf_deinit(&list);
    return absent;
}

void as_read_text(struct as_reader *reader, const char *name, const char **text_out)
{
    const struct tree_value *value = as_read_any(reader, name);

    if (tree_is(value, TREE_TEXT))
        *text_out = value->text;
    else if (value && value->kind != TREE_NULL)
        as_read_fail(reader, name, "expected a string");
}

const char *as_read_string(struct as_reader *reader, const char *name)
{
    const char *text = "";

    as_read_text(reader, name, &text);
    return text;
}

bool as_read_is(struct as_reader *reader, const char *name, const char *text)
{
    return strcmp(as_read_string(reader, name), text) == 0;
}

void as_read_copy(struct as_reader *reader, const char *name, char *text_out, size_t size)
{
    const char *text = NULL;

    as_read_text(reader, name, &text);
    if (text && strlen(text) >= size)
        as_read_fail(reader, name, "longer than %zu bytes", size - 1);
    else if (text)
        memcpy(text_out, text, strlen(text) + 1);
}

void as_read_time(struct as_reader *reader, const char *name, as_maybe_time *time_out)
{
    const char *text = NULL;
    as_wall_time time;

    as_read_text(reader, name, &text);
    if (text && as_wall_time_parse(text, strlen(text), &time) != 0)
        as_read_fail(reader, name, "expected a time as \"2026-11-20T10:00:00Z\" (RFC 3339)");
    else if (text)
        *time_out = (as_maybe_time){.set = true, .at = time};
}
