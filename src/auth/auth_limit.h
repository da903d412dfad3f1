/*
 * Limits wrong credentials per address: after AS_AUTH_FAILURES of them expensive checks stop for
 * that address until some are forgotten, one every AS_AUTH_FORGET_US. Cheap checks (a token in a
 * file, a remembered password) are always done and never count; neither does a token that was right
 * lately (see below). So known clients that share an attacker's address are still served. Only a
 * client that is new since the start, or has a new password or token, may have to wait until the
 * attack ends.
 *
 * Addresses are IPv4 addresses and IPv6 /64 networks. The table is bounded; when it is full, the
 * address with the oldest failure is forgotten.
 */
#ifndef ALERTSCALER_SRC_AUTH_AUTH_LIMIT_H
#define ALERTSCALER_SRC_AUTH_AUTH_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>

#define AS_AUTH_FAILURES  10
#define AS_AUTH_FORGET_US (5 * AS_US_PER_S)
#define AS_AUTH_ADDRESSES 1024

struct as_auth_limit;

struct as_auth_limit *as_auth_limit_new(void) AS_MUST_USE;
struct as_auth_limit *as_auth_limit_free(struct as_auth_limit *limit);

/* `remote` as "192.0.2.1:4711" or "[2001:db8::1]:4711". Microseconds until this address may have a
 * check; 0: now. */
int64_t as_auth_limit_get_wait(const struct as_auth_limit *limit, const char *remote,
                               as_mono_time now);
/* Whether some failures are not forgotten yet. */
bool as_auth_limit_has_failures(const struct as_auth_limit *limit, const char *remote,
                                as_mono_time now);
void as_auth_limit_add_failure(struct as_auth_limit *limit, const char *remote, as_mono_time now);
/* Removes a failure that was added before the result was known. */
void as_auth_limit_take_back(struct as_auth_limit *limit, const char *remote);

AS_DEFINE_CLEANUP(struct as_auth_limit *, as_auth_limit_free)

/*
 * Tokens that were right lately, as SHA-256 digests. They grant no access; they only have priority
 * where checks are limited per address or in total. So an attacker without a token cannot block
 * valid tokens at the same address.
 *
 * The table is bounded; when it is full, the token that was right longest ago is forgotten.
 */

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
