/*
 * Port: who may act. Of several replicas one leads, by a lease that it has to renew; the others
 * answer 503 and wait.
 *
 * A term of leadership ends at `until` by this machine's monotonic clock, which counts from before
 * the request that renewed it: another replica cannot have begun before that. Whoever acts looks at
 * it right before.
 */
#ifndef ALERTSCALER_PORT_LEADER_H
#define ALERTSCALER_PORT_LEADER_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>

struct as_leader_view {
    bool is_leader;
    as_mono_time until;  /* while it leads: may act before it; moves on with each renewal */
    const char *holder;  /* who leads, as far as is known; "" where nobody does; borrowed until
                            the next callback */
    const char *problem; /* why nothing is known, in a few words; NULL: none */
    const char *paused;  /* the kill switch on the lease: its reason; NULL: not set */
};

struct as_leader_callbacks {
    void (*changed)(void *context); /* is_leader, holder, problem or paused; in a turn of its own */
    void *context;
};

struct as_leader {
    void (*start)(struct as_leader *self, const struct as_leader_callbacks *callbacks); /* once */
    struct as_leader_view (*look)(struct as_leader *self);
    /* Gives the lease back, so that another need not wait; `done` comes once, whatever becomes of
     * it, within some seconds. Nothing may act any more when it is called. */
    void (*release)(struct as_leader *self, void (*done)(void *context), void *context);
    void (*close)(struct as_leader *self); /* frees it too */
};

#endif
