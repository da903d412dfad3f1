/*
 * Certificates of a server that nobody else signs: a certificate authority for one certificate.
 * Its key is forgotten as soon as it has signed, so that it can never sign another one.
 *
 * ECDSA P-256, with SHA-256. Clients trust the authority's certificate.
 */
#ifndef ALERTSCALER_HTTP_SELF_SIGNED_H
#define ALERTSCALER_HTTP_SELF_SIGNED_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>

#define AS_SELF_SIGNED_LIFE_US (365 * AS_US_PER_DAY)

struct as_self_signed { /* PEM; NULL: none */
    char *ca;           /* of the authority; may have those of earlier authorities behind it */
    char *certificate, *key;
};

/* A new one for these DNS names and IP addresses, from an hour before `now` (for clocks that are
 * behind). Aborts without random numbers. */
struct as_self_signed as_self_signed_make(const char *const *names, size_t count, as_wall_time now,
                                          int64_t life_us) AS_MUST_USE;
void as_self_signed_deinit(struct as_self_signed *self_signed); /* wipes the key */

enum as_self_signed_state {
    AS_SELF_SIGNED_GOOD,
    AS_SELF_SIGNED_DUE, /* works, and two thirds of its time are over */
    AS_SELF_SIGNED_BAD  /* expired or not yet valid, for other names, or its parts do not fit */
};
enum as_self_signed_state as_self_signed_check(const struct as_self_signed *self_signed,
                                               const char *const *names, size_t count,
                                               as_wall_time now);

/* The first certificate of a PEM text, for free(); NULL: there is none. */
char *as_self_signed_copy_first(const char *pem) AS_MUST_USE;

#endif
