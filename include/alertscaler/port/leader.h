/*
 * Port: who may act. Of several replicas one leads, by a lease that it has to renew; the others
 * answer 503 and wait. Where there is one replica, it always leads (leader/always.h).
 *
 * A term of leadership that is not renewed ends by this machine's clocks, which count from before
 * the request that renewed it: another replica cannot have begun before that. Whoever acts asks
 * may_act right before, because a process can be stopped between any two of its steps.
 */
#ifndef ALERTSCALER_PORT_LEADER_H
#define ALERTSCALER_PORT_LEADER_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>

struct as_leader_view {   /* texts are borrowed until the next turn of the loop */
    bool is_leader;       /* as of the last answer; for acting, may_act decides */
    const char *identity; /* ours, as others see it in `holder` */
    const char *holder;   /* who leads, as far as is known; "" where nobody does */
    const char *problem;  /* why nothing is known or renewed, in a few words; NULL: none */
    const char *paused;   /* the kill switch on the lease: its reason, may be ""; NULL: not set */
};

struct as_leader_callbacks {
    void (*changed)(void *context); /* something in the view; in a turn of its own */
    void *context;
};

struct as_leader {
    void (*start)(struct as_leader *self, const struct as_leader_callbacks *callbacks); /* once */
    struct as_leader_view (*look)(const struct as_leader *self);
    bool (*may_act)(const struct as_leader *self); /* reads the clocks */
    /* There are signs that somebody else leads (the store was taken over): ends the term at once,
     * and begins another only when the lease is seen to be ours. One replica has no doubts. */
    void (*doubt)(struct as_leader *self);
    /* We cannot do what a leader has to: ends the term at once, gives the lease back, and leaves it
     * to others for as long as it lasts; then we are a candidate like them. One replica goes on. */
    void (*yield)(struct as_leader *self);
    /* Gives the lease back, so that another need not wait; `done` comes once, in a later turn,
     * whatever becomes of it, within some seconds. Nothing may act any more when it is called. */
    void (*release)(struct as_leader *self, void (*done)(void *context), void *context);
    void (*close)(struct as_leader *self); /* frees it too; nothing is called back any more */
};

#endif
