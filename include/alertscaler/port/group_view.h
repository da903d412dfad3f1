/*
 * A node group as its provider reports it: its size and bounds, and its instances.
 */
#ifndef ALERTSCALER_PORT_GROUP_VIEW_H
#define ALERTSCALER_PORT_GROUP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/time.h>
#include <alertscaler/decide/observation.h>

#define AS_GROUP_INSTANCES_MAX 20000 /* in one group; more is an error */

enum as_instance_state {
    AS_INSTANCE_PENDING, /* not yet running */
    AS_INSTANCE_RUNNING,
    AS_INSTANCE_LEAVING, /* being removed: never chosen, not counted */
    AS_INSTANCE_FAILED   /* it will never run */
};

struct as_instance {
    const char *id;          /* the id in the provider's calls */
    const char *provider_id; /* the end of the Kubernetes node's spec.providerID; "": as id */
    const char *zone;        /* "" if unknown */
    enum as_instance_state state;
    bool is_unhealthy, is_protected;
    as_maybe_time created;
};

struct as_group_view {
    int32_t size;                  /* the desired size */
    int32_t min, max;              /* the provider's own bounds; -1: none */
    bool in_progress;              /* the provider is still working on the last change */
    char version[AS_VERSION_SIZE]; /* for a conditional change; "": not supported */
    const char *controller; /* what else sets the size ("its own autoscaler"); NULL: nothing */
    const char *shortage;   /* why instances do not come, in the provider's words; NULL */
    as_maybe_time shortage_since;         /* not set: since now */
    const char *no_increase, *no_removal; /* why it cannot grow or shrink now; NULL: it can */
    /* "key=value,...": the provider does not name its instances. They are the nodes with these
     * labels, each identified by the end of its providerID, or with `knows_nodes` by the node's
     * name; `instances` only counts them. NULL: `instances` is the list. */
    const char *node_label;
    bool knows_nodes;
    const char *chooses;  /* why it chooses itself which instances leave; NULL: it is told */
    const char **backing; /* as in as_observation */
    size_t backing_count;
    struct as_instance *instances; /* in the provider's order */
    size_t instance_count, instance_room;
};

#endif
