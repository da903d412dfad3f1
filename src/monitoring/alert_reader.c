/*
 * Reading documents of alerts: see the header.
 */
#include "alert_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/doc/json_writer.h>

#define SHOWN_MAX 64 /* bytes of a refused text in an error */

const char *alert_get_type_word(const struct tree_value *value)
{
    switch (value->kind) {
    case TREE_OBJECT: return "an object";
    case TREE_ARRAY: return "an array";
    case TREE_TEXT: return "a string";
    case TREE_INTEGER:
    case TREE_REAL: return "a number";
    case TREE_BOOLEAN: return "a boolean";
    case TREE_NULL: break;
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

int alert_load(struct alert_reader *reader, struct tree *tree, struct as_labels_hasher *hasher,
               const char *json, size_t size, struct as_error *error)
{
    *reader = (struct alert_reader){
        .hasher = hasher,
        .pairs = tree_alloc(tree, AS_PAYLOAD_LABELS_MAX * sizeof(*reader->pairs)),
    };
    place_init(&reader->root, error);
    if (!reader->pairs)
        return -ENOMEM;
    int status = tree_parse(tree, json, size, NULL, error);
    reader->has_nuls = tree->has_nuls;
    return status;
}

void alert_enter(struct alert_reader *reader, size_t index)
{
    reader->in_alert = true;
    place_enter(&reader->alert, &reader->root, "alerts", (ptrdiff_t)index);
}

int alert_give_up(struct alert_reader *reader, char **problem_out)
{
    if (++reader->given_up > AS_PAYLOAD_INVALID_MAX) {
        as_error_wrap(reader->root.error, "more than %d alerts that cannot be read; the last",
                      AS_PAYLOAD_INVALID_MAX);
        return -EINVAL;
    }
    *problem_out = as_xstrdup(reader->root.error->text);
    place_init(&reader->root, reader->root.error);
    *reader->root.error = AS_ERROR_INIT;
    return 0;
}

int alert_fail(struct alert_reader *reader, const char *member, const char *name,
               const char *format, ...)
{
    struct as_buf key = AS_BUF_INIT(AS_ERROR_SIZE * 2);
    char message[AS_ERROR_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    as_buf_append_str(&key, member);
    if (name && is_simple(name) && strlen(name) <= SHOWN_MAX) {
        as_buf_printf(&key, ".%s", name);
    } else if (name) {
        as_buf_append_char(&key, '[');
        show(&key, name);
        as_buf_append_char(&key, ']');
    }
    place_fail(reader->in_alert ? &reader->alert : &reader->root, key.size ? key.data : NULL, "%s",
               message);
    as_buf_deinit(&key);
    return -EINVAL;
}

int alert_fail_with_text(struct alert_reader *reader, const char *member, const char *expected,
                         const char *text)
{
    struct as_buf shown = AS_BUF_INIT(AS_ERROR_SIZE);

    show(&shown, text);
    int status = alert_fail(reader, member, NULL, "expected %s, got %s", expected, shown.data);
    as_buf_deinit(&shown);
    return status;
}

const struct tree_value *alert_find(const struct tree_value *object, const char *member)
{
    const struct tree_value *value = tree_find(object, member);

    return value && value->kind != TREE_NULL ? value : NULL;
}

static bool has_nul(struct alert_reader *reader, const char *text)
{
    return reader->has_nuls && strstr(text, TREE_NUL);
}

int alert_read_text(struct alert_reader *reader, const struct tree_value *object,
                    const char *member, size_t max, const char **text_out)
{
    const struct tree_value *value = alert_find(object, member);

    if (value && value->kind != TREE_TEXT)
        return alert_fail(reader, member, NULL, "expected a string, got %s",
                          alert_get_type_word(value));
    if (value && value->size > max)
        return alert_fail(reader, member, NULL, "longer than %zu bytes", max);
    if (value && has_nul(reader, value->text))
        return alert_fail(reader, member, NULL, "a NUL in it");
    *text_out = value ? value->text : NULL;
    return 0;
}

const char *alert_find_url(const struct tree_value *object, const char *member)
{
    const struct tree_value *value = alert_find(object, member);
    const char *text = tree_get_text(value);
    char host[AS_URL_HOST_SIZE];

    return text && value->size <= AS_PAYLOAD_URL_MAX && as_str_is_visible(text, value->size) &&
                   as_url_take_host(text, host)
               ? text
               : NULL;
}

static int check_label(struct alert_reader *reader, const char *member,
                       const struct tree_value *value)
{
    const char *name = value->name;

    if (!*name)
        return alert_fail(reader, member, name, "a name cannot be empty");
    if (value->name_size > AS_PAYLOAD_LABEL_NAME_MAX)
        return alert_fail(reader, member, name, "a name longer than %d bytes",
                          AS_PAYLOAD_LABEL_NAME_MAX);
    if (value->kind != TREE_TEXT)
        return alert_fail(reader, member, name, "expected a string, got %s",
                          alert_get_type_word(value));
    if (value->size > AS_PAYLOAD_LABEL_VALUE_MAX)
        return alert_fail(reader, member, name, "longer than %d bytes", AS_PAYLOAD_LABEL_VALUE_MAX);
    if (has_nul(reader, name) || has_nul(reader, value->text))
        return alert_fail(reader, member, name, "a NUL in it");
    return 0;
}

int alert_read_labels(struct alert_reader *reader, const struct tree_value *alert,
                      const char *member, struct as_labels **labels_out)
{
    const struct tree_value *object = alert_find(alert, member);
    size_t count = 0;

    if (object && object->kind != TREE_OBJECT)
        return alert_fail(reader, member, NULL, "expected an object, got %s",
                          alert_get_type_word(object));
    if (object && object->size > AS_PAYLOAD_LABELS_MAX)
        return alert_fail(reader, member, NULL, "more than %d", AS_PAYLOAD_LABELS_MAX);

    for (const struct tree_value *value = object ? object->first : NULL; value;
         value = value->next) {
        int status = check_label(reader, member, value);
        if (status < 0)
            return status;
        reader->pairs[count++] = (struct as_label){value->name, value->text};
    }
    int status = as_labels_new(reader->pairs, count, labels_out);
    if (status < 0) /* not -EEXIST: the parser refuses duplicate names */
        return alert_fail(reader, member, NULL, "more than 16 MiB");
    return 0;
}

int alert_read_time(struct alert_reader *reader, const struct tree_value *alert, const char *member,
                    bool is_needed, as_wall_time *time_out)
{
    const char *text = NULL;
    int status = alert_read_text(reader, alert, member, AS_PAYLOAD_TIME_MAX, &text);

    if (status < 0)
        return status;
    if (!text && is_needed)
        return alert_fail(reader, member, NULL, "missing");
    if (text && as_wall_time_parse(text, strlen(text), time_out) < 0)
        return alert_fail_with_text(reader, member, "a time like 2026-11-20T10:00:00Z", text);
    return 0;
}

int alert_read_identity(struct alert_reader *reader, const struct tree_value *object,
                        const struct as_labels *labels, struct as_digest *digest_out,
                        uint64_t *fingerprint_out)
{
    const char *text = NULL;
    int status = alert_read_text(reader, object, "fingerprint", AS_PAYLOAD_TEXT_MAX, &text);

    if (status < 0)
        return status;
    if (!text || strlen(text) != 16 || as_number_parse_u64_hex(text, 16, fingerprint_out) < 0)
        *fingerprint_out = as_labels_get_fingerprint(labels);
    *digest_out = as_labels_hasher_get(reader->hasher, labels);
    return 0;
}
