/*
 * Port: durable state. Keys and values are bytes that the store does not interpret.
 *
 * All calls are synchronous; only one thread calls at a time. A failed commit keeps none of its
 * changes; then the caller closes the store and opens it again.
 */
#ifndef ALERTSCALER_PORT_STORE_H
#define ALERTSCALER_PORT_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

enum as_store_kind {
    AS_STORE_META,     /* few and small: head of the action log, digests */
    AS_STORE_INCIDENT, /* key: the digest's 32 bytes, then the owner */
    AS_STORE_TARGET,   /* key: target id */
    AS_STORE_INTENT,   /* key: target id */
    AS_STORE_OUTBOX,   /* key: first seq of the lines, 8 bytes big-endian */
    AS_STORE_KIND_COUNT
};

struct as_store_change {
    enum as_store_kind kind;
    const void *key;
    size_t key_size;
    const void *value; /* NULL: delete; deleting a missing key is no error */
    size_t value_size;
};

/* Called for each record. A result other than 0 ends the visit, and visit() returns it. */
typedef int as_store_visit_fn(void *context, const void *key, size_t key_size, const void *value,
                              size_t value_size);

/* How long a store may wait for another system: after `until_us` every call fails with -ECANCELED.
 * The owner may change it from any thread. */
struct as_store_deadline {
    _Atomic int64_t until_us; /* monotonic; INT64_MAX: no limit */
};

struct as_store {
    /* Another replica may take the state over, so everything that others rely on must be in it. */
    bool is_shared;
    /* All changes, in order, or no change; durable when it returns 0. Else a negative errno. */
    int (*commit)(struct as_store *self, const struct as_store_change *changes, size_t count,
                  struct as_error *error) AS_MUST_USE;
    /* Every record of a kind in ascending order of keys. */
    int (*visit)(struct as_store *self, enum as_store_kind kind, as_store_visit_fn *visit,
                 void *context, struct as_error *error) AS_MUST_USE;
    /* Housekeeping, called when no commit is waiting. NULL: not needed. */
    void (*tidy)(struct as_store *self);
    void (*close)(struct as_store *self); /* frees it too */
};

#endif
