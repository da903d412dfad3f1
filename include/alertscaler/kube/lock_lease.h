/*
 * Codec for a target's lock as a Lease (coordination.k8s.io/v1), which only shows the lock to
 * people: kubectl get leases -l AS_LOCK_LEASE_SELECTOR. Pure.
 *
 * acquireTime + leaseDurationSeconds is the end of the lock. A lock without an end, because a
 * request is running, has no leaseDurationSeconds. Durations are whole seconds, so acquireTime may
 * be up to a second before the change of the size.
 */
#ifndef ALERTSCALER_KUBE_LOCK_LEASE_H
#define ALERTSCALER_KUBE_LOCK_LEASE_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/model/lock.h>

#define AS_LOCK_LEASE_SELECTOR                                                                     \
    "app.kubernetes.io/managed-by=alertscaler,app.kubernetes.io/component=lock"
#define AS_LOCK_LEASE_PREFIX    "alertscaler-lock-"
#define AS_LOCK_LEASE_NAME_SIZE 64 /* a DNS label and its NUL */

struct as_lock_lease {
    const char *name;    /* our own Leases begin with the prefix */
    const char *version; /* resourceVersion; "": not created yet */
    const char *holder;
    /* As read; an unreadable field is absent, also the target (""). `since` is acquireTime. */
    struct as_lock lock;
};

/* The end of the lock: the later of both directions. Unset while a request is running. */
as_maybe_time as_lock_get_end(const struct as_lock *lock);

/* The prefix, the end of the target's key (decide/target.h) with the characters a name allows, and
 * a hash of the whole key: the same for each spelling of a target's id. */
void as_lock_lease_print_name(const char *target, char name_out[AS_LOCK_LEASE_NAME_SIZE]);

/* Append one document; `out` is `failed` if it does not fit. With a version it replaces only that
 * version. */
void as_lock_lease_encode(const struct as_lock_lease *lease, const char *namespace_,
                          struct as_buf *out);
/* The body of a DELETE of only that version. */
void as_lock_lease_encode_delete(const char *version, struct as_buf *out);

typedef void as_lock_lease_fn(void *context, const struct as_lock_lease *lease);

/* 0, and `use` once; or -EBADMSG with an error that names the field. */
int as_lock_lease_decode(const char *json, size_t size, as_lock_lease_fn *use, void *context,
                         struct as_error *error) AS_MUST_USE;
/* One page of a list, `use` for each; *next_out: token of the next page, for free(); NULL: this was
 * the last page. */
int as_lock_lease_list_decode(const char *json, size_t size, char **next_out, as_lock_lease_fn *use,
                              void *context, struct as_error *error) AS_MUST_USE;

#endif
