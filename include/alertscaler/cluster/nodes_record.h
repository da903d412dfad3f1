/*
 * The record of the action log about nodes that leave their group. Pointers are borrowed for the
 * call.
 */
#ifndef ALERTSCALER_CLUSTER_NODES_RECORD_H
#define ALERTSCALER_CLUSTER_NODES_RECORD_H

#include <stddef.h>

/* What happened to nodes of a group that were chosen to leave. */
enum as_nodes_event {
    AS_NODES_MARKED,  /* cordoned and marked: they count no more */
    AS_NODES_REMOVED, /* their instances are gone */
    AS_NODES_KEPT     /* they are back in service, or another process has marked them */
};
const char *as_nodes_event_get_word(enum as_nodes_event event);

#define AS_RECORD_NODES_MAX 100 /* in one record; more are several records */

struct as_nodes_record {
    enum as_nodes_event event;
    const char *target;       /* id */
    const char *target_name;  /* as in the rule file; "": unknown */
    const char *decision;     /* id of the decision or command that chose them; "": unknown */
    const char *const *nodes; /* names; of an instance without a node its id */
    size_t node_count;
    const char *message; /* why; "": none */
};

#endif
