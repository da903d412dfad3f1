/*
 * Port: where the locks of targets are shown to people who look at something other than us. It is a
 * mirror and never the truth: nothing is read from it, nothing waits for it, and its failures are
 * its own.
 */
#ifndef ALERTSCALER_PORT_LOCK_MIRROR_H
#define ALERTSCALER_PORT_LOCK_MIRROR_H

#include <stddef.h>

#include <alertscaler/core/lock.h>

struct as_lock_mirror {
    /* All that is locked now, in any order; to be told as often as once a second, whether or not
     * anything has changed. */
    void (*show)(struct as_lock_mirror *self, const struct as_lock *locks, size_t count);
    size_t (*count_behind)(const struct as_lock_mirror *self); /* not shown as they are */
    void (*close)(struct as_lock_mirror *self); /* leaves what is shown; frees it too */
};

#endif
