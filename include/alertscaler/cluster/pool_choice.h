/*
 * How a pool grows: which of its groups, by how many nodes, and which similar groups share them.
 * Pure. The filters are Cluster Autoscaler's expanders, `price` with its
 * SimplePreferredNodeProvider; caps, similarity and balance are its ApplyLimits,
 * IsCloudProviderNodeInfoSimilar and BalanceScaleUpBetweenGroups.
 */
#ifndef ALERTSCALER_CLUSTER_POOL_CHOICE_H
#define ALERTSCALER_CLUSTER_POOL_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/node_template.h>

/* The choice: filters, one after the other, over an option for each group that could take pods */

/*
 * C, M: cpu and memory of all new nodes of an option; c, m: what the pods on them ask for.
 *
 * `price` is s x (price of the new nodes + p) / (price of the placed pods + p). p is the price of
 * half a core and 500 MiB; where pods cost nothing, the divisor is 1.
 * s = (u - 1) x (1 - tanh((nodes - 1) / 15)) + 1. u is the larger quotient of the node's cpu and
 * the preferred cpu: 1, 2, 4, 8, 16, 32 cores in clusters of up to 2, 6, 20, 60, 200, more nodes.
 * For nodes with a GPU s is 1000.
 */
enum as_pool_filter {
    AS_POOL_LEAST_WASTE, /* lowest (C - c)/C + (M - m)/M; without any filter, this one */
    AS_POOL_MOST_PODS,
    AS_POOL_LEAST_NODES,
    AS_POOL_PRIORITY, /* highest; without one: out, unless no option has one */
    AS_POOL_PRICE,    /* lowest, below; groups without a price are out */
    AS_POOL_RANDOM,   /* one, by the seed */
    AS_POOL_FILTER_COUNT
};
const char *as_pool_filter_get_word(enum as_pool_filter filter); /* "least_waste", ... */

struct as_pool_option {
    uint64_t nodes, pods;          /* new nodes, and the pods that they take */
    int64_t pods_cpu, pods_memory; /* what these pods ask for in all: millicores, bytes */
    int64_t node_cpu, node_memory; /* what one new node has: millicores, bytes */
    bool has_gpu;                  /* the node */
    bool has_priority, has_price;
    int32_t priority;
    double price; /* of one node, in the unit of the pods' prices; not negative */

    /* Set by as_pool_choose */
    bool is_out;                /* the option lost, or has no node or no pod */
    enum as_pool_filter out_by; /* which filter dropped it; AS_POOL_FILTER_COUNT: none did */
    unsigned scored;            /* bits, 1 << filter: which scores are set */
    double scores[AS_POOL_FILTER_COUNT]; /* by filter; `random` has none */
};

struct as_pool_choice {
    const enum as_pool_filter *filters;
    size_t filter_count;
    double cpu_price;       /* of a core that a pod asks for */
    double memory_price;    /* of a GiB */
    uint64_t cluster_nodes; /* for the cpu that `price` prefers */
    uint64_t seed;          /* for `random` */
};

#define AS_POOL_NO_OPTION SIZE_MAX

/*
 * The index of the option that is chosen: the first of those that all filters keep.
 * AS_POOL_NO_OPTION: none is left. Options with equal scores are all kept. Once one option is left,
 * further filters are not asked, as in Cluster Autoscaler.
 */
size_t as_pool_choose(const struct as_pool_choice *choice, struct as_pool_option *options,
                      size_t count) AS_MUST_USE;

/* Caps, similarity, balance */

#define AS_POOL_NO_CAP INT64_MAX

struct as_pool_caps { /* what the pool may still get; below 0 like 0; AS_POOL_NO_CAP: no limit */
    int64_t nodes;    /* its `max` less its size */
    int64_t cpu;      /* millicores */
    int64_t memory;   /* bytes */
};

/* How many of the nodes the caps leave; 0: none (`at_max`). `node` is the capacity of one node. */
uint64_t as_pool_cap(const struct as_pool_caps *caps, const struct as_resources *node,
                     uint64_t nodes) AS_MUST_USE;

/*
 * Whether two groups are similar: equal capacity, memory within 1.5 %; allocatable, and what
 * DaemonSets leave of it, within 5 %, of the larger one, but the number of pods that they leave
 * does not count; equal labels. Some labels do not count:
 * hostname, zone, region, names of node groups and other labels that differ from group to group
 * (as_pool_label_counts), and those that are `ignored`. Similar groups may differ in their taints:
 * whether a group takes the pods of an option is the caller's question.
 */
bool as_pool_is_similar(const struct as_node_template *a, const struct as_node_template *b,
                        const struct as_res_names *names, const char *const *ignored,
                        size_t ignored_count) AS_MUST_USE;
/* Whether the numbers of pods that DaemonSets leave are within 5 %: documents before version 3. */
bool as_pool_has_similar_pods(const struct as_node_template *a,
                              const struct as_node_template *b) AS_MUST_USE;
bool as_pool_label_counts(const char *name, const char *const *ignored, size_t ignored_count);

struct as_pool_share { /* of one of similar groups */
    int32_t size, max;
    int32_t added; /* set by as_pool_balance */
};

/* Each node goes to the smallest group below its max; of equal ones to the first. Returns how many
 * nodes found a group. The work grows with nodes x groups. */
uint64_t as_pool_balance(struct as_pool_share *shares, size_t count, uint64_t nodes) AS_MUST_USE;

#endif
