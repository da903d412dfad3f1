/*
 * Port: durable state. Keys and values are bytes that the store does not understand.
 *
 * All calls are synchronous and come from one thread at a time. After a failed commit nothing of it
 * is kept; the caller closes the store and opens it again.
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
    AS_STORE_META,     /* few, small: head of the action log, digests */
    AS_STORE_INCIDENT, /* key: the 32 bytes of the digest, and the owner behind them */
    AS_STORE_TARGET,   /* key: target id */
    AS_STORE_INTENT,   /* key: target id */
    AS_STORE_OUTBOX,   /* key: first seq of the lines, 8 bytes big-endian */
    AS_STORE_KIND_COUNT
};

struct as_store_change {
    enum as_store_kind kind;
    const void *key;
    size_t key_size;
    const void *value; /* NULL: delete (also where it is not there) */
    size_t value_size;
};

/* Called for each record; a result other than 0 ends the visit and becomes its result. */
typedef int as_store_visit_fn(void *context, const void *key, size_t key_size, const void *value,
                              size_t value_size);

/* Until when a store that waits for somebody else goes on waiting: after that everything fails,
 * with -ECANCELED. Changed by whoever it belongs to, from any thread. */
struct as_store_patience {
    _Atomic int64_t until_us; /* monotonic; INT64_MAX: as long as it takes */
};

struct as_store {
    /* Another replica may go on with it: nothing that others rely on may pass it by. */
    bool is_shared;
    /* All of the changes, in order, or none; on the disk when it returns 0. Else negative errno. */
    int (*commit)(struct as_store *self, const struct as_store_change *changes, size_t count,
                  struct as_error *error) AS_MUST_USE;
    /* Every record of a kind in ascending order of keys. */
    int (*visit)(struct as_store *self, enum as_store_kind kind, as_store_visit_fn *visit,
                 void *context, struct as_error *error) AS_MUST_USE;
    /* Housekeeping that can wait until nobody waits for a commit. NULL: there is none. */
    void (*tidy)(struct as_store *self);
    void (*close)(struct as_store *self); /* frees it too */
};

#endif
