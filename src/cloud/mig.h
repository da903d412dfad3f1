/*
 * Managed instance groups of Compute Engine: one, or several that form one node group. The verbs of
 * node groups:
 * https://cloud.google.com/compute/docs/reference/rest/v1/instanceGroupManagers
 * https://cloud.google.com/compute/docs/reference/rest/v1/regionInstanceGroupManagers
 *
 * An instance's id is ZONE/GROUP/NAME. An operation is projects/P/PLACE/operations/NAME; several
 * operations have spaces between them.
 */
#ifndef ALERTSCALER_SRC_CLOUD_MIG_H
#define ALERTSCALER_SRC_CLOUD_MIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/cloud/provider_group.h>

struct mig {           /* texts are memory of the talk, percent-encoded where needed */
    const char *place; /* "projects/p/zones/z", "projects/p/regions/r" */
    const char *name;
    int32_t size, wanted;
};

struct mig_work {         /* a group talk's state */
    const char *endpoint; /* without a slash at its end */
    const char *project;  /* percent-encoded; if there are several groups */
    struct mig *migs;     /* all groups of the node group */
    size_t count;
    /* private */
    size_t at;
    bool with_instances, has_standby, has_begun;
    unsigned tries;      /* of the present request of a change */
    struct mig *emptied; /* the group whose instances are being removed */
    unsigned *rounds;    /* the round that removed each instance; 0: not yet */
    unsigned round;
    size_t remaining, asked;
    as_talk_hear_fn *then;
};

/* Carries out the talk's verb; the talk's state is a mig_work. */
void mig_begin(struct as_group_talk *talk);

/* ".../projects/P/zones/Z/instanceGroupManagers/M" -> place and name. False for other texts. */
bool mig_parse_url(struct as_talk *talk, const char *url, struct mig *mig_out) AS_MUST_USE;

/* Fails a change if something else sets the group's size, or is working on it. */
bool mig_may_change(struct as_group_talk *talk) AS_MUST_USE;

#endif
