/*
 * bcrypt, off the event loop: one thread, two bounded queues, and a bounded memory of passwords
 * that were right, so that only a client's first request waits. Guesses from where others were
 * wrong lately have a queue of their own, and the thread takes from both in turn: many addresses
 * that guess, each within its limit, do not hold up one that comes for the first time.
 *
 * What is remembered is an HMAC of user, hash and password under a random key that lives as long as
 * the process, never a password; a changed hash is therefore another entry. A user that there is
 * not takes as long as the one whose hash is given in its place.
 */
#ifndef ALERTSCALER_SRC_APP_AUTH_AUTH_PASSWORDS_H
#define ALERTSCALER_SRC_APP_AUTH_AUTH_PASSWORDS_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>

struct event_base;
struct as_passwords;
struct as_password_wait; /* for one answer */

#define AS_PASSWORD_MAX       1024 /* bytes; bcrypt itself looks at 72 */
#define AS_PASSWORDS_QUEUED   32   /* different ones that wait for the thread, in each queue */
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
    const char *hash; /* NULL: there is no such user, and it is never right */
    const char *like; /* without a hash: one whose cost is to be paid all the same */
    const char *password;
    bool is_suspect; /* somebody was wrong lately where it comes from */
};

typedef void as_password_fn(void *context, bool is_right);

struct as_passwords *as_passwords_new(struct event_base *base) AS_MUST_USE;
/* Those who wait are not told any more. */
struct as_passwords *as_passwords_free(struct as_passwords *passwords);

/* RIGHT where it is remembered, and false else; never waits. */
bool as_passwords_remember(const struct as_passwords *passwords, const char *user, const char *hash,
                           const char *password) AS_MUST_USE;

/*
 * Is it the password of the hash? PENDING: `done` comes once, in a later turn of the loop, unless
 * as_password_wait_cancel comes first; `wait_out` is set.
 */
enum as_password_outcome as_passwords_check(struct as_passwords *passwords,
                                            const struct as_password_guess *guess,
                                            as_password_fn *done, void *context,
                                            struct as_password_wait **wait_out) AS_MUST_USE;
void as_password_wait_cancel(struct as_password_wait *wait);

/* Whether the check is made for it; false: it joined another that asks for the same. */
bool as_password_wait_is_first(const struct as_password_wait *wait);

AS_DEFINE_CLEANUP(struct as_passwords *, as_passwords_free)

#endif
