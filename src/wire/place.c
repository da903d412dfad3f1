/*
 * Reading documents of alerts: see the header.
 */
#include "place.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/wire/json_writer.h>
#include <alertscaler/wire/limits.h>

#include "json_pool.h"

#define SHOWN_MAX   64 /* bytes of a refused text in an error */
#define NUL_IN_COPY "\xEF\xBF\xBF"

/* jansson quotes the place from the body, and cuts where it likes. */
static void set_syntax_error(struct as_error *error, const json_error_t *syntax)
{
    char text[JSON_ERROR_TEXT_LENGTH];

    as_str_copy_line(syntax->text, text, sizeof(text));
    as_error_set(error, "not JSON: line %d, column %d: %s", syntax->line, syntax->column, text);
}

/* JSON's escape for a NUL, replaced by that for U+FFFF in a copy of the document. */
static char *copy_without_nuls(const char *json, size_t size)
{
    char *copy = malloc(size);
    if (!copy)
        return NULL;
    memcpy(copy, json, size);
    for (char *at = copy; (at = memchr(at, '\\', size - (size_t)(at - copy)));) {
        const size_t left = size - (size_t)(at - copy);
        if (left >= 6 && memcmp(at, "\\u0000", 6) == 0)
            memcpy(at, "\\uffff", 6);
        at += left < 2 ? left : 2;
    }
    return copy;
}

static int load(const char *json, size_t size, size_t flags, const json_t **root_out,
                bool *has_nuls_out, struct as_error *error)
{
    json_error_t syntax = {.line = 0};
    const json_t *root = json_loadb(json, size, JSON_REJECT_DUPLICATES | flags, &syntax);
    const enum json_error_code code = json_error_code(&syntax);

    *has_nuls_out =
        !root && (code == json_error_null_character || code == json_error_null_byte_in_key);
    if (*has_nuls_out)
        return -EINVAL;
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

int place_load(const char *json, size_t size, const json_t **root_out, struct as_error *error)
{
    bool has_nuls;
    int r = load(json, size, 0, root_out, &has_nuls, error);
    if (r < 0 && has_nuls)
        as_error_set(error, "not JSON that can be read: a NUL in a text");
    return r;
}

int place_load_alerts(struct place *place, const char *json, size_t size, const json_t **root_out)
{
    /* Grafana's `values` may be beyond 64 bits, as whole numbers of Go are printed */
    const size_t flags = JSON_DECODE_INT_AS_REAL;
    bool has_more;
    int r = load(json, size, flags, root_out, &place->has_nuls, place->error);
    if (r == 0 || !place->has_nuls)
        return r;
    AS_CLEANUP(as_free_p) char *copy = copy_without_nuls(json, size);
    if (!copy)
        return -ENOMEM;
    json_pool_leave();
    json_pool_enter(place->memory_max);
    return load(copy, size, flags, root_out, &has_more, place->error);
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

void place_enter(struct place *place, size_t alert)
{
    place->in_alert = true;
    place->alert = alert;
}

int place_give_up(struct place *place, char **problem_out)
{
    if (++place->given_up > AS_PAYLOAD_INVALID_MAX) {
        as_error_wrap(place->error, "more than %d alerts that cannot be read; the last",
                      AS_PAYLOAD_INVALID_MAX);
        return -EINVAL;
    }
    *problem_out = as_xstrdup(place->error->text);
    *place->error = (struct as_error)AS_ERROR_INIT;
    return 0;
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

static bool has_nul(const struct place *place, const char *text)
{
    return place->has_nuls && text && strstr(text, NUL_IN_COPY);
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
    if (has_nul(place, json_string_value(value)))
        return place_fail(place, member, NULL, "a NUL in it");
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
        if (has_nul(place, name) || has_nul(place, json_string_value(value)))
            return place_fail(place, member, name, "a NUL in it");
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

int place_read_identity(const struct place *place, const json_t *object,
                        const struct as_labels *labels, struct as_digest *digest_out,
                        uint64_t *fingerprint_out)
{
    const char *text = NULL;
    int r = place_read_text(place, object, "fingerprint", AS_PAYLOAD_TEXT_MAX, &text);

    if (r < 0)
        return r;
    if (!text || strlen(text) != 16 || as_number_parse_u64_hex(text, 16, fingerprint_out) < 0)
        *fingerprint_out = as_labels_get_fingerprint(labels);
    *digest_out = as_labels_hasher_get(place->hasher, labels);
    return 0;
}
