/*
 * Seals of this process for one browser: an HMAC of a text and of who may use it, under a random
 * key. The token of a form is the seal of a fixed text: another site's page cannot have it. The
 * seal of a message shows that the message is ours.
 */
#ifndef ALERTSCALER_AUTH_FORM_TOKEN_H
#define ALERTSCALER_AUTH_FORM_TOKEN_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>

#define AS_FORM_TOKEN_SIZE 44 /* 32 bytes in base64url, with NUL */

struct as_form_key {
    unsigned char bytes[32];
};

void as_form_key_init(struct as_form_key *key); /* random */

/* `identity`: of the session, or of the credential. */
void as_form_token_print(const struct as_form_key *key, const struct as_digest *identity,
                         const char *text, char token_out[AS_FORM_TOKEN_SIZE]);
/* In constant time. `given` NULL: none, which is wrong. */
bool as_form_token_check(const struct as_form_key *key, const struct as_digest *identity,
                         const char *text, const char *given) AS_MUST_USE;

#endif
