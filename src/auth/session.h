/*
 * Sessions of browsers that have logged in: in memory only, at most AS_SESSIONS_MAX. A session ends
 * after AS_SESSION_MAX_US, or when it was not used for AS_SESSION_IDLE_US.
 *
 * The id is random and known to the browser alone: here is its SHA-256. A session is found by the
 * digest of what a request gives, in a time that does not depend on how much of it is right. What
 * is freed is wiped.
 *
 * If there are too many, the credential with the most sessions loses the one that was unused for
 * longest: nobody can log out others by logging in often.
 *
 * Deliberately not here: cookies, and whether the credential is still the same (auth.h).
 */
#ifndef ALERTSCALER_SRC_AUTH_SESSION_H
#define ALERTSCALER_SRC_AUTH_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/time.h>

#define AS_SESSIONS_MAX    100
#define AS_SESSION_MAX_US  (12 * AS_US_PER_H)
#define AS_SESSION_IDLE_US (30 * AS_US_PER_MIN)
#define AS_SESSION_ID_SIZE 44 /* 32 random bytes in base64url, with NUL */

struct as_sessions;

struct as_session_owner {
    const char *credential;  /* its name */
    struct as_digest secret; /* of the credential when it logged in */
    const char *token;       /* to be reviewed at each request; NULL: the credential is ours */
    bool is_local; /* from this machine, maybe without TLS: other requests cannot use it */
};

struct as_session {          /* valid until the next call that is not const */
    struct as_digest digest; /* of the id */
    struct as_session_owner owner;
};

struct as_sessions *as_sessions_new(void) AS_MUST_USE;
struct as_sessions *as_sessions_free(struct as_sessions *sessions);

/* The owner is copied. `id_out`: a secret, to be wiped by the caller. */
void as_sessions_begin(struct as_sessions *sessions, const struct as_session_owner *owner,
                       as_mono_time now, char id_out[AS_SESSION_ID_SIZE]);

/* The session with this id; NULL: none. Any text may be given. `is_use`: a person uses it, which
 * extends it. */
const struct as_session *as_sessions_find(struct as_sessions *sessions, const char *id,
                                          as_mono_time now, bool is_use);

void as_sessions_end(struct as_sessions *sessions, const struct as_digest *digest);

/* Ends those that are over, and those of which `keeps` says no. */
void as_sessions_expire(struct as_sessions *sessions, as_mono_time now,
                        bool (*keeps)(void *context, const struct as_session_owner *owner),
                        void *context);

size_t as_sessions_count(const struct as_sessions *sessions);

AS_DEFINE_CLEANUP(struct as_sessions *, as_sessions_free)

#endif
