/*
 * How many wrong credentials an address may give: after AS_AUTH_FAILURES of them what costs
 * something to check is not checked any more for that address until some have been forgotten, one
 * every AS_AUTH_FORGET_US. What is cheap to check (a token in a file, a password that is
 * remembered) is always checked and never counts, and so is a token that was right lately
 * (auth_trust.h): whoever shares the address with an attacker goes on being served. Only who comes
 * for the first time since the start, or with a new password or token, may have to wait until the
 * attack has ended.
 *
 * Addresses are IPv4 addresses and IPv6 /64 networks. The table is bounded; beyond it the address
 * with the oldest failure is forgotten.
 */
#ifndef ALERTSCALER_SRC_APP_AUTH_AUTH_LIMIT_H
#define ALERTSCALER_SRC_APP_AUTH_AUTH_LIMIT_H

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

/* `remote` as "192.0.2.1:4711" or "[2001:db8::1]:4711". Microseconds until something may be checked
 * for this address; 0: now. */
int64_t as_auth_limit_get_wait(const struct as_auth_limit *limit, const char *remote,
                               as_mono_time now);
/* Some have not been forgotten yet. */
bool as_auth_limit_has_failures(const struct as_auth_limit *limit, const char *remote,
                                as_mono_time now);
void as_auth_limit_add_failure(struct as_auth_limit *limit, const char *remote, as_mono_time now);
/* One that was added before it was known was none. */
void as_auth_limit_take_back(struct as_auth_limit *limit, const char *remote);

AS_DEFINE_CLEANUP(struct as_auth_limit *, as_auth_limit_free)

#endif
