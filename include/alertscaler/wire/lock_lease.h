/*
 * Codec for a target's lock as a Lease (coordination.k8s.io/v1), which is there for people to see:
 * kubectl get leases -l AS_LOCK_LEASE_SELECTOR. Pure.
 *
 * acquireTime + leaseDurationSeconds is the end of the lock; one without an end, because a request
 * is under way, has no leaseDurationSeconds. Seconds are whole there, so that acquireTime may be up
 * to a second before the change of the size.
 */
#ifndef ALERTSCALER_WIRE_LOCK_LEASE_H
#define ALERTSCALER_WIRE_LOCK_LEASE_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/core/lock.h>

#define AS_LOCK_LEASE_SELECTOR                                                                     \
    "app.kubernetes.io/managed-by=alertscaler,app.kubernetes.io/component=lock"
#define AS_LOCK_LEASE_PREFIX    "alertscaler-lock-"
#define AS_LOCK_LEASE_NAME_SIZE 64 /* a DNS label and its NUL */

struct as_lock_lease {
    const char *name;    /* begins with the prefix where it is one of ours */
    const char *version; /* resourceVersion; "": not made yet */
    const char *holder;
    /* As it stands there: what cannot be read is absent, also the target (""). `since` is
     * acquireTime. */
    struct as_lock lock;
};

/* The end of the lock as a whole: the later of both directions. Not set while it is in flight. */
as_maybe_time as_lock_get_end(const struct as_lock *lock);

/* The prefix, the end of the target's key (core/target.h) as far as it can be in a name, and a hash
 * of the whole key: the same for the same target, however its id is spelled. */
void as_lock_lease_print_name(const char *target, char name_out[AS_LOCK_LEASE_NAME_SIZE]);

/* Append one document; `out` is `failed` where it does not fit. With a version it replaces that one
 * and no other. */
void as_lock_lease_encode(const struct as_lock_lease *lease, const char *namespace_,
                          struct as_buf *out);
/* The body of a DELETE of that version and no other. */
void as_lock_lease_encode_delete(const char *version, struct as_buf *out);

typedef void as_lock_lease_fn(void *context, const struct as_lock_lease *lease);

/* 0, and `use` once; or -EBADMSG with an error that names the field. */
int as_lock_lease_decode(const char *json, size_t size, as_lock_lease_fn *use, void *context,
                         struct as_error *error) AS_MUST_USE;
/* One page of a list, `use` for each; *next_out: where the next page begins, for free(); NULL: this
 * was the last. */
int as_lock_lease_list_decode(const char *json, size_t size, char **next_out, as_lock_lease_fn *use,
                              void *context, struct as_error *error) AS_MUST_USE;

#endif
