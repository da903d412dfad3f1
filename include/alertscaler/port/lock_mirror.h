/*
 * Port: shows the locks of targets in another system (Leases in the cluster). The copy is for
 * people only: alertscaler never reads it, never waits for it, and its failures affect nothing
 * else.
 */
#ifndef ALERTSCALER_PORT_LOCK_MIRROR_H
#define ALERTSCALER_PORT_LOCK_MIRROR_H

#include <stddef.h>

#include <alertscaler/model/lock.h>

struct as_lock_mirror {
    /* All locks of now, in any order. Called up to once a second, even if nothing has changed. */
    void (*show)(struct as_lock_mirror *self, const struct as_lock *locks, size_t count);
    size_t (*count_behind)(const struct as_lock_mirror *self); /* not yet shown correctly */
    void (*close)(struct as_lock_mirror *self); /* what is shown stays; frees it too */
};

#endif
