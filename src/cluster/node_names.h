/*
 * Names of nodes, each kept once, in numbered slots: pods hold the slot of their node, whether the
 * node is known or not. Slot 0 is no name.
 */
#ifndef ALERTSCALER_SRC_CLUSTER_NODE_NAMES_H
#define ALERTSCALER_SRC_CLUSTER_NODE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

struct node_names {
    struct node_name *all;
    struct node_name **slots; /* NULL: free */
    uint32_t *ranks; /* by slot: the node's place among all nodes; AS_NO_NODE: it is not known */
    size_t count, slot_capacity, rank_capacity;
    uint32_t *free_slots;
    size_t free_count, free_capacity;
    size_t bytes; /* of names */
};

void node_names_deinit(struct node_names *names); /* of which nothing is taken */
size_t node_names_measure(const struct node_names *names);

/* One more holds it. NULL: slot 0. */
uint32_t node_names_take(struct node_names *names, const char *text) AS_MUST_USE;
void node_names_release(struct node_names *names, uint32_t slot);

#endif
