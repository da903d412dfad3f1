/*
 * bcrypt, off the event loop: one thread, two bounded queues, and a bounded cache of passwords that
 * were right, so that only a client's first request waits. Guesses from addresses with recent
 * failures have their own queue, and the thread alternates between both: many guessing addresses,
 * each within its limit, do not delay a new client.
 *
 * The cache holds an HMAC of user, hash and password under a random key of this process, never a
 * password; a changed hash is therefore another entry. The check of an unknown user takes as long
 * as the one of the hash given instead.
 */
#ifndef ALERTSCALER_AUTH_AUTH_PASSWORDS_H
#define ALERTSCALER_AUTH_AUTH_PASSWORDS_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>

struct event_base;
struct as_passwords;
struct as_password_wait; /* for one answer */

#define AS_PASSWORD_MAX       1024 /* in each queue, without duplicates */
#define AS_PASSWORDS_QUEUED   32   /* waiting requests */
#define AS_PASSWORDS_WAITING  4096 /* requests that wait for them */
#define AS_PASSWORDS_REMEMBER 256

enum as_password_outcome {
    AS_PASSWORD_RIGHT, /* remembered */
    AS_PASSWORD_WRONG, /* cannot be right */
    AS_PASSWORD_PENDING,
    AS_PASSWORD_BUSY /* its queue is full */
};

struct as_password_guess { /* borrowed for the call */
    const char *user;
    const char *hash; /* NULL: unknown user, never right */
    const char *like; /* without a hash: check this one anyway, for equal cost */
    const char *password;
    bool is_suspect; /* its address had a wrong credential lately */
};

typedef void as_password_fn(void *context, bool is_right);

struct as_passwords *as_passwords_new(struct event_base *base) AS_MUST_USE;
/* Waiting callbacks are not called. */
struct as_passwords *as_passwords_free(struct as_passwords *passwords);

/* True if the password is remembered as right; never waits. */
bool as_passwords_remember(const struct as_passwords *passwords, const char *user, const char *hash,
                           const char *password) AS_MUST_USE;

/*
 * Checks a password against the hash. PENDING: `wait_out` is set, and `done` comes once, in a later
 * turn of the loop, unless as_password_wait_cancel comes first.
 */
enum as_password_outcome as_passwords_check(struct as_passwords *passwords,
                                            const struct as_password_guess *guess,
                                            as_password_fn *done, void *context,
                                            struct as_password_wait **wait_out) AS_MUST_USE;
void as_password_wait_cancel(struct as_password_wait *wait);

/* Whether this wait started its check; false: it joined an equal one. */
bool as_password_wait_is_first(const struct as_password_wait *wait);

AS_DEFINE_CLEANUP(struct as_passwords *, as_passwords_free)

#endif
