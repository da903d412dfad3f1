/*
 * After `fire`: the open incident, and the decisions that follow.
 */
#ifndef ALERTSCALER_SRC_CLI_FIRE_AFTER_H
#define ALERTSCALER_SRC_CLI_FIRE_AFTER_H

#include "http_call.h"

struct fire_after {
    const struct as_args *args;
    char *since;      /* the daemon's time before the alert was sent; NULL: no permission to read */
    int64_t expiry_s; /* of the open incident; 0: unknown */
    json_t *targets;  /* ids of the incident's targets */
    json_t *locked;   /* targets whose lock prevented scaling: "up" or "down" by id */
    json_t *told;     /* ids of printed decisions, as keys of an object */
};

/* Call before the alert is sent. Returns an exit status after printing the problem, if decisions
 * were requested and the daemon does not show them. */
int fire_after_begin(const struct as_args *args, struct fire_after *after_out);
void fire_after_deinit(struct fire_after *after);

/* Prints how long the incident stays open, and how to end it. */
void fire_after_print(const struct fire_after *after);

/*
 * Prints the decisions that follow until all targets of the incident are settled, for at most 30 s.
 * AS_EXIT_NO if a target could not be read or set, or nothing was decided.
 */
int fire_after_wait(struct fire_after *after, const char *digest);

/* Waits this long, or until an interrupt. With --wait it prints the decisions meanwhile. */
void fire_after_hold(struct fire_after *after, int64_t us);

#endif
