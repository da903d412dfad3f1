/*
 * Tokens that were right lately, as SHA-256 digests. They grant no access; they only have priority
 * where checks are limited per address or in total. So an attacker without a token cannot block
 * valid tokens at the same address.
 *
 * The table is bounded; when it is full, the token that was right longest ago is forgotten.
 */
#ifndef ALERTSCALER_SRC_AUTH_AUTH_TRUST_H
#define ALERTSCALER_SRC_AUTH_AUTH_TRUST_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>

/* A service account's token is renewed about as often. */
#define AS_AUTH_TRUST_US (1 * AS_US_PER_H)
#define AS_AUTH_TRUSTED  256

struct as_auth_trust;

struct as_auth_trust *as_auth_trust_new(void) AS_MUST_USE;
struct as_auth_trust *as_auth_trust_free(struct as_auth_trust *trust);

struct as_auth_digest {
    unsigned char bytes[32];
};

/* The digest that identifies a token here. */
struct as_auth_digest as_auth_trust_digest(const char *token);
bool as_auth_trust_has(const struct as_auth_trust *trust, const struct as_auth_digest *digest,
                       as_mono_time now);
/* The token was found right */
void as_auth_trust_add(struct as_auth_trust *trust, const struct as_auth_digest *digest,
                       as_mono_time now);
/* or wrong. */
void as_auth_trust_remove(struct as_auth_trust *trust, const struct as_auth_digest *digest);

AS_DEFINE_CLEANUP(struct as_auth_trust *, as_auth_trust_free)

#endif
