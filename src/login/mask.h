/*
 * Secrets that a request shows to its server, and their mask in the answer. A server may put what
 * it refuses into its words, and these words are logged, recorded and reported.
 */
#ifndef ALERTSCALER_SRC_LOGIN_MASK_H
#define ALERTSCALER_SRC_LOGIN_MASK_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/port/http.h>

#define AS_SECRETS_INIT AS_BUF_INIT((size_t)16 * 1024 * 1024)

/* Adds a secret. A text shorter than 6 bytes is left out: its mask would show its places in other
 * words. */
void as_secrets_add(struct as_buf *secrets, const char *text, size_t size);
/* Adds the secrets of header lines and of a form: credentials, tokens and passwords, by the names
 * that clouds and OAuth 2.0 give them. */
void as_secrets_add_header(struct as_buf *secrets, const char *line);
void as_secrets_add_form(struct as_buf *secrets, const char *form, size_t size);

/* A copy of the body with `*` in place of each byte of the secrets. NULL: the answer is good, or
 * has none of them. For as_wipe_free. */
char *as_secrets_mask(const struct as_buf *secrets,
                      const struct as_http_response *response) AS_MUST_USE;

#endif
