/*
 * Reading documents of alerts: see the header.
 */
#include "place.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/wire/json_writer.h>
#include <alertscaler/wire/limits.h>

#include "json_pool.h"

#define SHOWN_MAX 64 /* bytes of a refused text in an error */

/* jansson quotes the place from the body, and cuts where it likes. */
static void set_syntax_error(struct as_error *error, const json_error_t *syntax)
{
    char text[JSON_ERROR_TEXT_LENGTH];

    as_str_copy_line(syntax->text, text, sizeof(text));
    as_error_set(error, "not JSON: line %d, column %d: %s", syntax->line, syntax->column, text);
}

int place_load(const char *json, size_t size, const json_t **root_out, struct as_error *error)
{
    json_error_t syntax = {.line = 0};
    const json_t *root = json_loadb(json, size, JSON_REJECT_DUPLICATES, &syntax);

    if (!root && json_pool_is_exhausted()) {
        as_error_set(error, "too many values for a document of this size");
        return -EINVAL;
    }
    if (!root) {
        set_syntax_error(error, &syntax);
        return -EINVAL;
    }
    *root_out = root;
    return 0;
}

const char *place_get_type_word(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: break;
    }
    return "null";
}

/* A text from outside as a JSON string, cut. */
static void show(struct as_buf *out, const char *text)
{
    size_t size = strlen(text), shown = as_str_cut_utf8(text, size, SHOWN_MAX);
    struct as_json_writer json;

    as_json_init(&json, out, 0);
    as_json_write_string_size(&json, text, shown);
    if (shown < size)
        as_buf_append_str(out, "...");
}

static bool is_simple(const char *name)
{
    return *name && name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                      "0123456789")] == '\0';
}

int place_fail(const struct place *place, const char *member, const char *name, const char *format,
               ...)
{
    struct as_buf path = AS_BUF_INIT(AS_ERROR_SIZE * 2);
    char message[AS_ERROR_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    if (place->in_alert)
        as_buf_printf(&path, "alerts[%zu]%s", place->alert, *member ? "." : "");
    as_buf_append_str(&path, member);
    if (name && is_simple(name) && strlen(name) <= SHOWN_MAX) {
        as_buf_printf(&path, ".%s", name);
    } else if (name) {
        as_buf_append_char(&path, '[');
        show(&path, name);
        as_buf_append_char(&path, ']');
    }
    as_error_set(place->error, "%s: %s", path.data, message);
    as_buf_deinit(&path);
    return -EINVAL;
}

int place_fail_with_text(const struct place *place, const char *member, const char *expected,
                         const char *text)
{
    struct as_buf shown = AS_BUF_INIT(AS_ERROR_SIZE);

    show(&shown, text);
    int r = place_fail(place, member, NULL, "expected %s, got %s", expected, shown.data);
    as_buf_deinit(&shown);
    return r;
}

const json_t *place_find(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);

    return json_is_null(value) ? NULL : value;
}

int place_read_text(const struct place *place, const json_t *object, const char *member, size_t max,
                    const char **text_out)
{
    const json_t *value = place_find(object, member);

    if (value && !json_is_string(value))
        return place_fail(place, member, NULL, "expected a string, got %s",
                          place_get_type_word(value));
    if (value && json_string_length(value) > max)
        return place_fail(place, member, NULL, "longer than %zu bytes", max);
    *text_out = value ? json_string_value(value) : NULL;
    return 0;
}

int place_read_labels(const struct place *place, const json_t *alert, const char *member,
                      struct as_labels **labels_out)
{
    const json_t *object = place_find(alert, member);
    size_t count = 0;

    if (object && !json_is_object(object))
        return place_fail(place, member, NULL, "expected an object, got %s",
                          place_get_type_word(object));
    if (json_object_size(object) > AS_PAYLOAD_LABELS_MAX)
        return place_fail(place, member, NULL, "more than %d", AS_PAYLOAD_LABELS_MAX);

    /* jansson's iteration takes no const object, and does not change it. */
    json_t *iterated = (json_t *)(uintptr_t)object;
    for (void *i = json_object_iter(iterated); i; i = json_object_iter_next(iterated, i)) {
        const char *name = json_object_iter_key(i);
        const json_t *value = json_object_iter_value(i);
        if (!*name)
            return place_fail(place, member, name, "a name cannot be empty");
        if (strnlen(name, AS_PAYLOAD_LABEL_NAME_MAX + 1) > AS_PAYLOAD_LABEL_NAME_MAX)
            return place_fail(place, member, name, "a name longer than %d bytes",
                              AS_PAYLOAD_LABEL_NAME_MAX);
        if (!json_is_string(value))
            return place_fail(place, member, name, "expected a string, got %s",
                              place_get_type_word(value));
        if (json_string_length(value) > AS_PAYLOAD_LABEL_VALUE_MAX)
            return place_fail(place, member, name, "longer than %d bytes",
                              AS_PAYLOAD_LABEL_VALUE_MAX);
        place->pairs[count++] = (struct as_label){name, json_string_value(value)};
    }
    int r = as_labels_new(place->pairs, count, labels_out);
    if (r < 0) /* -EEXIST cannot be: the parser refuses duplicate names */
        return place_fail(place, member, NULL, "more than 16 MiB");
    return 0;
}

int place_read_time(const struct place *place, const json_t *alert, const char *member,
                    bool is_needed, as_wall_time *time_out)
{
    const char *text = NULL;
    int r = place_read_text(place, alert, member, AS_PAYLOAD_TIME_MAX, &text);

    if (r < 0)
        return r;
    if (!text && is_needed)
        return place_fail(place, member, NULL, "missing");
    if (text && as_wall_time_parse(text, strlen(text), time_out) < 0)
        return place_fail_with_text(place, member, "a time like 2026-11-20T10:00:00Z", text);
    return 0;
}

int place_read_fingerprint(const struct place *place, const json_t *object,
                           const struct as_labels *labels, uint64_t *fingerprint_out)
{
    const char *text = NULL;
    int r = place_read_text(place, object, "fingerprint", AS_PAYLOAD_TEXT_MAX, &text);

    if (r < 0)
        return r;
    if (!text || strlen(text) != 16 || as_number_parse_u64_hex(text, 16, fingerprint_out) < 0)
        *fingerprint_out = as_labels_get_fingerprint(labels);
    return 0;
}
