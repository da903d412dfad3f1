/*
 * What a new node of a group would be like (docs/nodes.md). Pure, and equal inputs give equal
 * templates.
 */
#ifndef ALERTSCALER_CORE_NODE_TEMPLATE_H
#define ALERTSCALER_CORE_NODE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/cluster.h>
#include <alertscaler/core/node_fit.h>
#include <alertscaler/core/node_pods.h>

enum as_node_template_source {
    AS_NODE_TEMPLATE_NONE,       /* not known: the group is closed for growth */
    AS_NODE_TEMPLATE_NODE,       /* made of a node of the group */
    AS_NODE_TEMPLATE_LAST,       /* made of one that is gone, and stored */
    AS_NODE_TEMPLATE_CONFIGURED, /* `nodes.template` */
    AS_NODE_TEMPLATE_SOURCE_COUNT
};
const char *as_node_template_source_get_word(enum as_node_template_source source); /* "none", ... */

struct as_node_template {
    enum as_node_template_source source;
    const char *node;           /* of source NODE: its name; else NULL */
    struct as_node_shape shape; /* name NULL; allocatable: what is left after what the DaemonSet and
                                   mirror pods ask for, at least 0; taints ascending by key, value,
                                   effect */
    struct as_resources capacity, allocatable; /* of the node as a whole */
};

/* A node must have been Ready for this long to be a template. */
#define AS_NODE_TEMPLATE_READY_US AS_US_PER_MIN

struct as_node_template_request {
    const struct as_cluster *cluster;
    const struct as_node_pods *pods; /* of the cluster */
    const uint32_t *nodes;           /* indices of the group's nodes */
    size_t node_count;
    const char *const *startup_taints; /* keys */
    size_t startup_taint_count;
    const struct as_node_template *last, *configured; /* NULL: none */
    as_wall_time now;
};

/*
 * The newest node (of equal ages the first by name) that is open, Ready for a minute (since it was
 * created, where it does not say since when), without a startup taint, and says its cpu and memory;
 * else `last`; else `configured`; else source NONE. Of labels and taints the template has those
 * that belong to the group and not to one node or a moment of its life.
 *
 * Labels and taints are memory of the arena; texts of taints, `node`, and what is taken from `last`
 * or `configured` are borrowed.
 */
void as_node_template_init(struct as_node_template *template_out,
                           const struct as_node_template_request *request, struct as_arena *arena);

/* The node is still starting: it has one of these taints, or one that Cluster Autoscaler takes for
 * a startup taint by its name. */
bool as_node_has_startup_taint(const struct as_node_fact *node, const char *const *keys,
                               size_t key_count) AS_MUST_USE;

/* Whether two nodes would take the same pods; names are not compared. `names` are those of both. */
bool as_node_shape_equal(const struct as_node_shape *a, const struct as_node_shape *b,
                         const struct as_res_names *names) AS_MUST_USE;

#endif
