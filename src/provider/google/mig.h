/*
 * Managed instance groups of Compute Engine: one of them, or several that make up one node group.
 * The verbs of node groups over them:
 * https://cloud.google.com/compute/docs/reference/rest/v1/instanceGroupManagers
 * https://cloud.google.com/compute/docs/reference/rest/v1/regionInstanceGroupManagers
 *
 * An instance's id is ZONE/GROUP/NAME, an operation is projects/P/PLACE/operations/NAME, several of
 * them with spaces between.
 */
#ifndef ALERTSCALER_SRC_PROVIDER_MIG_H
#define ALERTSCALER_SRC_PROVIDER_MIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/provider/group.h>

struct mig {           /* texts: memory of the talk, percent-encoded where they have to be */
    const char *place; /* "projects/p/zones/z", "projects/p/regions/r" */
    const char *name;
    int32_t size, wanted;
};

struct mig_work {         /* a group talk's state */
    const char *endpoint; /* without a slash at its end */
    const char *project;  /* percent-encoded; where there are several groups */
    struct mig *migs;     /* the whole of the node group */
    size_t count;
    /* private */
    size_t at;
    bool with_instances, has_standby, has_begun;
    unsigned tries;      /* of the present request of a change */
    struct mig *emptied; /* whose instances are being removed */
    unsigned *rounds;    /* in which each instance was removed; 0: not yet */
    unsigned round;
    size_t remaining, asked;
    as_talk_hear_fn *then;
};

/* Goes on with the talk's verb; its state is a mig_work. */
void mig_begin(struct as_group_talk *talk);

/* ".../projects/P/zones/Z/instanceGroupManagers/M" -> place and name. False where it is none. */
bool mig_parse_url(struct as_talk *talk, const char *url, struct mig *mig_out) AS_MUST_USE;

/* Fails a change where something else sets the group's size, or is at work on it. */
bool mig_may_change(struct as_group_talk *talk) AS_MUST_USE;

#endif
