/*
 * Decodes in one pass. Names are compared as they are sent: ours need no encoding.
 */
#include "form_body.h"

#include <errno.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

/* NULL: not a valid encoding, or not text. */
static char *form_decode(const char *text, size_t size)
{
    char *value = as_xmalloc(size + 1);
    size_t out = 0;
    value[0] = '\0';
    for (size_t i = 0; i < size; i++) {
        uint64_t byte = (unsigned char)text[i];
        if (text[i] == '+') {
            byte = ' ';
        } else if (text[i] == '%') {
            if (size - i < 3 || as_number_parse_u64_hex(text + i + 1, 2, &byte) != 0)
                byte = 0;
            i += 2;
        }
        if (byte == 0) {
            as_wipe_free(value);
            return NULL;
        }
        value[out++] = (char)byte;
        value[out] = '\0';
    }
    if (as_str_is_utf8(value, out))
        return value;
    as_wipe_free(value);
    return NULL;
}

static int form_read_field(const char *text, size_t size, struct as_form_body *body,
                           struct as_error *error)
{
    const char *equals = memchr(text, '=', size);
    const size_t name = equals ? (size_t)(equals - text) : size;
    for (size_t i = 0; equals && i < AS_FORM_FIELDS_MAX && body->names[i]; i++) {
        if (strlen(body->names[i]) != name || memcmp(body->names[i], text, name) != 0)
            continue;
        if (body->values[i]) {
            as_error_set(error, "the form has the field `%s` twice", body->names[i]);
            return -EBADMSG;
        }
        body->values[i] = form_decode(equals + 1, size - name - 1);
        if (body->values[i])
            return 0;
        as_error_set(error, "the field `%s` of the form is not encoded text", body->names[i]);
        return -EBADMSG;
    }
    as_error_set(error, "the form has a field that does not belong to it");
    return -EBADMSG;
}

int as_form_body_decode(const char *text, size_t size, struct as_form_body *body,
                        struct as_error *error)
{
    int status = size > 0 ? 0 : -EBADMSG;
    if (status != 0)
        as_error_set(error, "the form is empty");
    while (status == 0 && size > 0) {
        const char *end = memchr(text, '&', size);
        const size_t part = end ? (size_t)(end - text) : size;
        status = form_read_field(text, part, body, error);
        text += part + (end != NULL);
        size -= part + (end != NULL);
    }
    if (status != 0)
        as_form_body_deinit(body);
    return status;
}

void as_form_body_deinit(struct as_form_body *body)
{
    for (size_t i = 0; i < AS_FORM_FIELDS_MAX; i++) {
        as_wipe_free(body->values[i]);
        body->values[i] = NULL;
    }
}

const char *as_form_body_find(const struct as_form_body *body, const char *name)
{
    for (size_t i = 0; i < AS_FORM_FIELDS_MAX && body->names[i]; i++) {
        if (strcmp(body->names[i], name) == 0)
            return as_str_is_empty(body->values[i]) ? NULL : body->values[i];
    }
    return NULL;
}
