/*
 * Secrets and their mask: see the header. The secrets stand one after the other, each with a NUL
 * behind it. A secret is found as it was sent, and without the percent-encoding of a form; another
 * encoding of the server is not found.
 */
#include "mask.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>

#define SECRET_MIN 6 /* bytes */

void as_secrets_add(struct as_buf *secrets, const char *text, size_t size)
{
    if (size < SECRET_MIN || memchr(text, '\0', size))
        return;
    as_buf_append(secrets, text, size);
    as_buf_append_char(secrets, '\0');
}

/* Behind the first word of `Authorization` is the secret. */
void as_secrets_add_header(struct as_buf *secrets, const char *line)
{
    static const char *const names[] = {
        "authorization:",        "x-amz-security-token:", "x-aws-ec2-metadata-token:",
        "x-acs-security-token:", "x-bce-security-token:", "x-auth-token:",
        "x-identity-header:",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++) {
        const size_t name_size = strlen(names[i]);
        if (strncasecmp(line, names[i], name_size) != 0)
            continue;
        const char *value = line + name_size + strspn(line + name_size, " ");
        const char *space = i == 0 ? strchr(value, ' ') : NULL;
        value = space ? space + 1 : value;
        as_secrets_add(secrets, value, strlen(value));
    }
}

/* Returns the size. */
static size_t mask_decode_percent(const char *text, size_t size, char *out)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        char digits[2];
        unsigned char byte;
        if (text[i] == '%' && size - i > 2) {
            digits[0] = (char)(text[i + 1] | (text[i + 1] >= 'A' ? 0x20 : 0));
            digits[1] = (char)(text[i + 2] | (text[i + 2] >= 'A' ? 0x20 : 0));
            if (as_decode_hex(digits, 2, &byte)) {
                out[count++] = (char)byte;
                i += 2;
                continue;
            }
        }
        out[count++] = text[i];
    }
    return count;
}

static void secrets_add_parameter(struct as_buf *secrets, const char *value, size_t size)
{
    char *plain = as_xmalloc(size + 1);
    const size_t plain_size = mask_decode_percent(value, size, plain);
    as_secrets_add(secrets, value, size);
    if (plain_size < size)
        as_secrets_add(secrets, plain, plain_size);
    explicit_bzero(plain, size + 1);
    free(plain);
}

void as_secrets_add_form(struct as_buf *secrets, const char *form, size_t size)
{
    static const char *const names[] = {
        "client_secret",    "client_assertion", "refresh_token", "assertion", "subject_token",
        "WebIdentityToken", "SAMLAssertion",    "SecurityToken", "password",  "OIDCToken",
    };
    const char *const end = form + size;
    while (form < end) {
        const char *next = memchr(form, '&', (size_t)(end - form));
        const char *stop = next ? next : end;
        const char *equals = memchr(form, '=', (size_t)(stop - form));
        for (size_t i = 0; equals && i < AS_ARRAY_SIZE(names); i++)
            if (strlen(names[i]) == (size_t)(equals - form) &&
                memcmp(names[i], form, (size_t)(equals - form)) == 0)
                secrets_add_parameter(secrets, equals + 1, (size_t)(stop - equals - 1));
        form = next ? next + 1 : end;
    }
}

char *as_secrets_mask(const struct as_buf *secrets, const struct as_http_response *response)
{
    char *masked = NULL;
    if (response->outcome != AS_HTTP_ANSWERED || response->status / 100 == 2)
        return NULL;
    for (size_t i = 0; i < secrets->size; i += strlen(secrets->data + i) + 1) {
        const char *secret = secrets->data + i, *at;
        const size_t size = strlen(secret);
        size_t place = 0;
        while ((at = memmem((masked ? masked : response->body) + place, response->body_size - place,
                            secret, size))) {
            place = (size_t)(at - (masked ? masked : response->body));
            if (!masked) {
                masked = as_xmalloc(response->body_size + 1);
                memcpy(masked, response->body, response->body_size + 1);
            }
            memset(masked + place, '*', size);
            place += size;
        }
    }
    return masked;
}
