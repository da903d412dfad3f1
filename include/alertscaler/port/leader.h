/*
 * Port: who may act. One of several replicas leads: the holder of a lease that must be renewed. The
 * others answer 503 and wait. A single replica always leads (kube/leader_lease.h).
 *
 * A term ends unless its lease is renewed in time. Its length counts from before the request that
 * renewed the lease, by this machine's clocks, so no other replica can have begun its term before
 * that. Call may_act right before each action: a process may be suspended between any two steps.
 */
#ifndef ALERTSCALER_PORT_LEADER_H
#define ALERTSCALER_PORT_LEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>

#define AS_LEADER_TERMS_MAX    8
#define AS_LEADER_REPLICA_SIZE 128 /* with NUL; a longer name is cut */

struct as_leader_term {                   /* of another process */
    char replica[AS_LEADER_REPLICA_SIZE]; /* its name, without the number of its start */
    as_maybe_time since;
    as_wall_time until; /* when the lease was last renewed, or given back */
};

struct as_leader_view {   /* texts are valid until the next turn of the loop */
    bool is_leader;       /* as of the last answer; before acting, ask may_act */
    const char *identity; /* our name, as others see it in `holder` */
    const char *holder;   /* who leads, as far as known; "" if nobody */
    const char *problem;  /* why the lease is not read or renewed; NULL: no problem */
    const char *paused;   /* the reason of the kill switch on the lease, may be ""; NULL: not set */
    const struct as_leader_term *terms; /* as far as seen, the oldest first; the last may go on */
    size_t term_count;
    uint64_t terms_seen; /* since the start: more than `term_count` if the oldest were dropped */
};

struct as_leader_callbacks {
    void (*changed)(void *context); /* the view has changed; called in a separate turn */
    void *context;
};

struct as_leader {
    void (*start)(struct as_leader *self, const struct as_leader_callbacks *callbacks); /* once */
    struct as_leader_view (*look)(const struct as_leader *self);
    bool (*may_act)(const struct as_leader *self); /* reads the clocks, so the answer is current */
    /* Another replica seems to lead (it has taken the store over). Ends the term at once; the next
     * term begins only when the lease is read and is ours. A single replica ignores this. */
    void (*doubt)(struct as_leader *self);
    /* We cannot do a leader's work. Ends the term at once, gives the lease back and leaves it to
     * others for one lease duration; then we are a candidate again. A single replica ignores it. */
    void (*yield)(struct as_leader *self);
    /* Gives the lease back, so that another replica need not wait. Call it when all acting has
     * ended. `done` is called once, in a later turn, within some seconds, even if this fails. */
    void (*release)(struct as_leader *self, void (*done)(void *context), void *context);
    void (*close)(struct as_leader *self); /* frees it too; no callbacks afterwards */
};

#endif
