/*
 * Where pending pods find room: on nodes that are there or on their way, and on new nodes of a
 * group. Pure and deterministic.
 *
 * First-fit: a pod goes to the first node with room, in the order given. Equal pods are placed by
 * division. Equal nodes are one run with a count. The result is the same as if the pods were placed
 * one by one; the work grows with pod classes x runs. New nodes are estimated as Cluster
 * Autoscaler's BinpackingNodeEstimator with its DecreasingPodOrderer does:
 *
 * - pod classes with the highest cpu / node's cpu + memory / node's memory first; equal ones as
 * given;
 * - a pod goes to the first new node with room, else to another new node, up to the limit;
 * - a pod class that does not fit an empty new node is skipped; a node without a pod does not
 * count.
 */
#ifndef ALERTSCALER_CLUSTER_NODE_PACK_H
#define ALERTSCALER_CLUSTER_NODE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/node_fit.h>

#define AS_PACK_NODES_MAX 1000               /* new nodes of one estimate, where nothing is lower */
#define AS_PACK_FITS_MAX  UINT64_C(10000000) /* of one decision */

struct as_pending { /* equal pods that wait */
    const struct as_pod_class *pod_class;
    uint64_t count;
};

struct as_node_run { /* equal nodes with equal room, adjacent in the order */
    const struct as_node_shape *node;
    struct as_node_room room; /* of each node */
    uint64_t count;           /* of nodes, above 0 */
    uint64_t received;        /* pods that were placed on each node; counts on from what is given */
};

struct as_pack_request {
    const struct as_res_names *names;
    const struct as_pending *pending;
    size_t pending_count; /* at most UINT32_MAX */
    uint64_t fits;        /* the budget: see as_pack_step */
};

struct as_pack_work;

/* What was packed up to now; memory of the arena. */
struct as_pack {
    uint64_t *left;           /* pods without a place, by the index of their entry in `pending` */
    struct as_node_run *runs; /* the parts of a run that was split are not adjacent */
    size_t run_count;
    uint64_t nodes;   /* new ones, each with at least one pod */
    bool is_at_limit; /* the limit of nodes left pods without a place */
    bool is_cut;      /* the budget ended the work */
    uint64_t fits;    /* how many the work took */
    struct as_pack_work *work;
};

/*
 * There are two kinds of work. After the init, call as_pack_step until it returns true. What the
 * request points to, the nodes and the guests of rooms are borrowed as long as the pack is used.
 * Rooms given by the caller are not changed.
 *
 * On nodes: pod classes in the order of `pending`, nodes in the order of `runs`. Runs of one node
 * each keep their index in `runs` of the result.
 */
void as_pack_init_on_nodes(struct as_pack *pack, const struct as_pack_request *request,
                           const struct as_node_run *runs, size_t run_count,
                           struct as_arena *arena);
/* On new: on at most `limit` new nodes, which are like `node`. `empty` is what is free on a new
 * node, without what its DaemonSets take; NULL: all that is allocatable. */
void as_pack_init_on_new(struct as_pack *pack, const struct as_pack_request *request,
                         const struct as_node_shape *node, const struct as_node_room *empty,
                         uint64_t limit, struct as_arena *arena);

/*
 * Works for about `fits` (above 0). Returns true if all is done or the request's budget is used up.
 * A fit is one look at one pod class and one run of nodes. Each label, taint and guest that is
 * compared counts about one fit more. 100,000 fits take about 1 ms at worst. The size of the steps
 * changes nothing in the result.
 */
bool as_pack_step(struct as_pack *pack, uint64_t fits) AS_MUST_USE;

/* The pods that were placed, and the sum of their requests. */
uint64_t as_pack_get_placed(const struct as_pack *pack, struct as_resources *requests_out);

#endif
