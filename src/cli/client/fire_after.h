/*
 * What `fire` leaves behind: an open incident, and the decisions that follow it.
 */
#ifndef ALERTSCALER_SRC_CLI_CLIENT_FIRE_AFTER_H
#define ALERTSCALER_SRC_CLI_CLIENT_FIRE_AFTER_H

#include "http_call.h"

struct fire_after {
    const struct as_args *args;
    char *since;      /* the daemon's time before the alert was sent; NULL: it may not be read */
    int64_t expiry_s; /* of the open incident; 0: not known */
    json_t *targets;  /* ids of what the incident acts on */
    json_t *locked;   /* targets that a lock kept from scaling: "up" or "down" by their ids */
    json_t *told;     /* ids of the decisions that were printed, as the keys of an object */
};

/* Before the alert is sent. An exit status after saying why, where the decisions that follow were
 * asked for and the daemon does not tell them. */
int fire_after_begin(const struct as_args *args, struct fire_after *after_out);
void fire_after_deinit(struct fire_after *after);

/* Says how long the incident stays open, and how to end it. */
void fire_after_print(const struct fire_after *after);

/*
 * Prints the decisions that follow until all targets of the incident are settled, for 30 s at most.
 * AS_EXIT_NO where one could not be read or set, or nothing was decided.
 */
int fire_after_wait(struct fire_after *after, const char *digest);

/* Waits so long, or until an interrupt, and prints meanwhile the decisions that follow where
 * --wait is given. */
void fire_after_hold(struct fire_after *after, int64_t us);

#endif
