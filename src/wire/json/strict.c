/*
 * Strict reading of JSON objects: see the header.
 */
#include "strict.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/buf.h>

#define PATH_MAX_SIZE 256
#define SECONDS_MAX   3153600000 /* 100 years */

static void append_path(struct as_buf *path, const struct as_strict *reader)
{
    if (!reader->parent)
        return;
    append_path(path, reader->parent);
    as_buf_printf(path, "%s%s", path->size ? "." : "", reader->name);
    if (reader->index >= 0)
        as_buf_printf(path, "[%td]", reader->index);
}

int as_strict_fail(const struct as_strict *reader, const char *name, const char *format, ...)
{
    struct as_buf text = AS_BUF_INIT(AS_ERROR_SIZE + PATH_MAX_SIZE);
    char message[AS_ERROR_SIZE];
    va_list list;

    va_start(list, format);
    vsnprintf(message, sizeof(message), format, list);
    va_end(list);
    append_path(&text, reader);
    if (name)
        as_buf_printf(&text, "%s%s", text.size ? "." : "", name);
    as_error_set(reader->error, "%s%s%s", text.size ? text.data : "", text.size ? ": " : "",
                 message);
    as_buf_deinit(&text);
    return -EBADMSG;
}

static int init(struct as_strict *reader)
{
    if (json_is_object(reader->object))
        return 0;
    return as_strict_fail(reader, NULL, "expected an object");
}

int as_strict_init(struct as_strict *reader, json_t *document, struct as_error *error)
{
    *reader = (struct as_strict){.index = -1, .object = document, .error = error};
    return init(reader);
}

int as_strict_init_object(struct as_strict *reader, struct as_strict *parent, const char *name)
{
    *reader =
        (struct as_strict){.parent = parent, .name = name, .index = -1, .error = parent->error};
    reader->object = as_strict_take(parent, name);
    if (json_is_null(reader->object))
        reader->object = NULL;
    return reader->object ? init(reader) : 0;
}

int as_strict_init_item(struct as_strict *reader, const struct as_strict *parent, const char *name,
                        json_t *list, size_t index)
{
    *reader = (struct as_strict){.parent = parent,
                                 .name = name,
                                 .index = (ptrdiff_t)index,
                                 .object = json_array_get(list, index),
                                 .error = parent->error};
    return init(reader);
}

static bool is_known(const struct as_strict *reader, const char *key)
{
    for (size_t i = 0; i < reader->known_count; i++) {
        if (strcmp(reader->known[i], key) == 0)
            return true;
    }
    return false;
}

int as_strict_finish(const struct as_strict *reader)
{
    const char *key;
    json_t *value;

    if (reader->taken == json_object_size(reader->object))
        return 0;
    json_object_foreach(reader->object, key, value)
    {
        if (!is_known(reader, key))
            return as_strict_fail(reader, key, "unknown field");
    }
    return 0;
}

bool as_strict_has(const struct as_strict *reader, const char *name)
{
    const json_t *value = json_object_get(reader->object, name);
    return value && !json_is_null(value);
}

int as_strict_require(const struct as_strict *reader, const char *name)
{
    return as_strict_has(reader, name) ? 0 : as_strict_fail(reader, name, "missing");
}

json_t *as_strict_take(struct as_strict *reader, const char *name)
{
    json_t *value = json_object_get(reader->object, name);

    assert(reader->known_count < AS_STRICT_FIELDS_MAX);
    reader->known[reader->known_count++] = name;
    if (value)
        reader->taken++;
    return value;
}

int as_strict_take_list(struct as_strict *reader, const char *name, size_t *count_out,
                        json_t **list_out)
{
    json_t *value = as_strict_take(reader, name);

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_array(value))
        return as_strict_fail(reader, name, "expected a list");
    *count_out = json_array_size(value);
    *list_out = value;
    return 0;
}

int as_strict_take_i64(struct as_strict *reader, const char *name, int64_t low, int64_t high,
                       int64_t *number_out)
{
    json_t *value = as_strict_take(reader, name);

    if (!value)
        return 0;
    int64_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < low || number > high)
        return as_strict_fail(reader, name, "expected an integer from %" PRId64 " to %" PRId64, low,
                              high);
    *number_out = number;
    return 0;
}

int as_strict_take_i32(struct as_strict *reader, const char *name, int32_t low, int32_t *number_out)
{
    int64_t number = *number_out;
    int error = as_strict_take_i64(reader, name, low, INT32_MAX, &number);

    *number_out = (int32_t)number;
    return error;
}

int as_strict_take_double(struct as_strict *reader, const char *name, double *number_out)
{
    json_t *value = as_strict_take(reader, name);

    if (!value)
        return 0;
    if (!json_is_number(value))
        return as_strict_fail(reader, name, "expected a number");
    *number_out = json_number_value(value);
    return 0;
}

int as_strict_take_positive(struct as_strict *reader, const char *name, double *number_out)
{
    double number = *number_out;
    int error = as_strict_take_double(reader, name, &number);

    if (!error && number < 0)
        return as_strict_fail(reader, name, "expected a number that is not negative");
    *number_out = number;
    return error;
}

int as_strict_take_seconds(struct as_strict *reader, const char *name, int64_t *us_out)
{
    double seconds = -1;
    int error = as_strict_take_double(reader, name, &seconds);

    if (error || !as_strict_has(reader, name))
        return error;
    if (seconds < 0 || seconds > SECONDS_MAX)
        return as_strict_fail(reader, name, "expected seconds from 0 to %" PRId64 " (100 years)",
                              (int64_t)SECONDS_MAX);
    /* In two parts, so that every number of microseconds can be written and read back. */
    double whole = floor(seconds);
    *us_out = (int64_t)whole * AS_US_PER_S + (int64_t)round((seconds - whole) * AS_US_PER_S);
    return 0;
}

int as_strict_take_bool(struct as_strict *reader, const char *name, bool *value_out)
{
    json_t *value = as_strict_take(reader, name);

    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return as_strict_fail(reader, name, "expected true or false");
    *value_out = json_is_true(value);
    return 0;
}

int as_strict_take_word(struct as_strict *reader, const char *name,
                        const struct as_strict_word *words, int *value_out)
{
    json_t *value = as_strict_take(reader, name);
    const char *text = json_string_value(value);

    if (!value)
        return 0;
    for (size_t i = 0; text && words[i].text; i++) {
        if (strcmp(words[i].text, text) == 0) {
            *value_out = words[i].value;
            return 0;
        }
    }
    struct as_buf list = AS_BUF_INIT(AS_ERROR_SIZE);
    for (size_t i = 0; words[i].text; i++)
        as_buf_printf(&list, "%s%s",
                      i == 0               ? ""
                      : !words[i + 1].text ? " or "
                                           : ", ",
                      words[i].text);
    int error = as_strict_fail(reader, name, "expected %s", list.data);
    as_buf_deinit(&list);
    return error;
}

int as_strict_take_string(struct as_strict *reader, const char *name, const char **text_out)
{
    json_t *value = as_strict_take(reader, name);

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return as_strict_fail(reader, name, "expected a string");
    *text_out = json_string_value(value);
    return 0;
}

int as_strict_take_time(struct as_strict *reader, const char *name, as_maybe_time *time_out)
{
    const char *text = NULL;
    as_wall_time time;
    int error = as_strict_take_string(reader, name, &text);

    if (error || !text)
        return error;
    if (as_wall_time_parse(text, strlen(text), &time) != 0)
        return as_strict_fail(reader, name,
                              "expected a time as \"2026-11-20T10:00:00Z\" (RFC 3339)");
    *time_out = (as_maybe_time){.set = true, .at = time};
    return 0;
}
