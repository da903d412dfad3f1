/*
 * The choice between groups of a pool: filters over options, caps, similar groups and their
 * shares, and the defaults of pools. All filters but `random` give each option a score and keep
 * those with the best one.
 */
#include <alertscaler/cluster/pool_choice.h>

#include <assert.h>
#include <math.h>
#include <string.h>

#include <alertscaler/base/random.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/pool.h>
#include <alertscaler/model/labels.h>

const struct as_pool_config as_pool_config_default = {
    .cpu = {0, AS_POOL_NO_CAP},
    .memory = {0, AS_POOL_NO_CAP},
    .at_once_empty = 10,
    .at_once_drain = 1,
    .expendable_below = -10,
};

const struct as_unneeded_config as_unneeded_config_default = {
    .below = 50,
    .for_us = 10 * AS_US_PER_MIN,
    .unready_for_us = 20 * AS_US_PER_MIN,
    .keep = AS_KEEP_DEFAULT,
};

/* How much two similar groups may differ, as a part of the larger amount. */
#define MEMORY_TOLERANCE 0.015
#define OTHER_TOLERANCE  0.05

/* Caps */

static uint64_t cap(uint64_t nodes, int64_t left, int64_t each)
{
    if (left == AS_POOL_NO_CAP || each <= 0)
        return nodes;
    const uint64_t most = left > 0 ? (uint64_t)(left / each) : 0;
    return nodes < most ? nodes : most;
}

uint64_t as_pool_cap(const struct as_pool_caps *caps, const struct as_resources *node,
                     uint64_t nodes)
{
    nodes = cap(nodes, caps->nodes, 1);
    nodes = cap(nodes, caps->cpu, node->amount[AS_RES_CPU]);
    return cap(nodes, caps->memory, node->amount[AS_RES_MEMORY]);
}

/* Similarity */

/* Labels that differ between similar groups: Cluster Autoscaler's lists for all clouds, without
 * `lifecycle` (spot or not), and the names of node groups of the providers that it has no list for.
 */
static const char *const differing_labels[] = {
    "agentpool",
    "aksEngineVersion",
    "alibabacloud.com/nodepool-id",
    "alpha.eksctl.io/instance-id",
    "alpha.eksctl.io/nodegroup-name",
    "beta.kubernetes.io/fluentd-ds-ready",
    "cloud.google.com/gke-nodepool",
    "creationSource",
    "doks.digitalocean.com/node-id",
    "doks.digitalocean.com/node-pool",
    "doks.digitalocean.com/node-pool-id",
    "eks.amazonaws.com/nodegroup",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "ibm-cloud.kubernetes.io/vpc-instance-id",
    "ibm-cloud.kubernetes.io/worker-id",
    "k8s.amazonaws.com/eniConfig",
    "kops.k8s.io/instancegroup",
    "kubernetes.azure.com/agentpool",
    "kubernetes.azure.com/consolidated-additional-properties",
    "kubernetes.azure.com/node-image-version",
    "kubernetes.io/hostname",
    "magnum.openstack.org/nodegroup",
    "poolName",
    "resourceNameSuffix",
    "topology.disk.csi.azure.com/zone",
    "topology.diskplugin.csi.alibabacloud.com/zone",
    "topology.ebs.csi.aws.com/zone",
    "topology.gke.io/zone",
    "topology.k8s.aws/zone-id",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "vpc-block-csi-driver-labels",
};

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

bool as_pool_label_counts(const char *name, const char *const *ignored, size_t ignored_count)
{
    return !is_among(name, differing_labels, AS_ARRAY_SIZE(differing_labels)) &&
           !is_among(name, ignored, ignored_count);
}

struct label_walk {
    const struct as_labels *labels;
    const char *const *ignored;
    size_t ignored_count;
    uint32_t at;
};

static const struct as_label *get_next(struct label_walk *walk)
{
    while (walk->at < walk->labels->count) {
        const struct as_label *label = &walk->labels->items[walk->at++];
        if (as_pool_label_counts(label->name, walk->ignored, walk->ignored_count))
            return label;
    }
    return NULL;
}

static bool are_equal_but_for(const struct as_labels *a, const struct as_labels *b,
                              const char *const *ignored, size_t ignored_count)
{
    struct label_walk left = {a, ignored, ignored_count, 0};
    struct label_walk right = {b, ignored, ignored_count, 0};
    for (;;) {
        const struct as_label *one = get_next(&left), *other = get_next(&right);
        if (!one || !other)
            return one == other;
        if (strcmp(one->name, other->name) != 0 || strcmp(one->value, other->value) != 0)
            return false;
    }
}

static bool choice_is_within(int64_t a, int64_t b, double tolerance)
{
    const double larger = (double)(a > b ? a : b), smaller = (double)(a > b ? b : a);
    return larger - smaller <= larger * tolerance;
}

bool as_pool_is_similar(const struct as_node_template *a, const struct as_node_template *b,
                        const struct as_res_names *names, const char *const *ignored,
                        size_t ignored_count)
{
    for (size_t i = 0; i < names->count; i++) {
        const double tolerance = i == AS_RES_MEMORY ? MEMORY_TOLERANCE : 0;
        if (!choice_is_within(a->capacity.amount[i], b->capacity.amount[i], tolerance) ||
            !choice_is_within(a->allocatable.amount[i], b->allocatable.amount[i],
                              OTHER_TOLERANCE) ||
            (i != AS_RES_PODS &&
             !choice_is_within(a->shape.allocatable.amount[i], b->shape.allocatable.amount[i],
                               OTHER_TOLERANCE)))
            return false;
    }
    return are_equal_but_for(a->shape.labels, b->shape.labels, ignored, ignored_count);
}

bool as_pool_has_similar_pods(const struct as_node_template *a, const struct as_node_template *b)
{
    return choice_is_within(a->shape.allocatable.amount[AS_RES_PODS],
                            b->shape.allocatable.amount[AS_RES_PODS], OTHER_TOLERANCE);
}

/* Balance */

static struct as_pool_share *find_smallest(struct as_pool_share *shares, size_t count)
{
    struct as_pool_share *smallest = NULL;
    for (size_t i = 0; i < count; i++) {
        struct as_pool_share *share = &shares[i];
        const int32_t size = share->size + share->added;
        if (size < share->max && (!smallest || size < smallest->size + smallest->added))
            smallest = share;
    }
    return smallest;
}

uint64_t as_pool_balance(struct as_pool_share *shares, size_t count, uint64_t nodes)
{
    struct as_pool_share *smallest;
    uint64_t shared = 0;
    for (size_t i = 0; i < count; i++)
        shares[i].added = 0;
    while (shared < nodes && (smallest = find_smallest(shares, count)) != NULL) {
        smallest->added++;
        shared++;
    }
    return shared;
}

#define CORE 1000.0 /* millicores */
#define GIB  (1024.0 * 1024 * 1024)
#define MIB  (1024.0 * 1024)

/* Their price is added to both sides of the quotient, so that tiny pods do not rule it. */
#define STABLE_CPU    (0.5 * CORE)
#define STABLE_MEMORY (500 * MIB)

#define GPU_UNFITNESS 1000.0
#define CALMING_NODES 15.0 /* the more new nodes, the less the preferred size matters */

/* Returns false for an option that has no score. */
typedef bool score_fn(const struct as_pool_choice *choice, const struct as_pool_option *option,
                      double *score_out);

/* Scores */

/* The part of what there is that is not used. */
static double get_waste(int64_t node, uint64_t nodes, int64_t used)
{
    const double all = (double)node * (double)nodes;
    return all > 0 ? (all - (double)used) / all : 0;
}

static bool score_waste(const struct as_pool_choice *choice, const struct as_pool_option *option,
                        double *score_out)
{
    *score_out = get_waste(option->node_cpu, option->nodes, option->pods_cpu) +
                 get_waste(option->node_memory, option->nodes, option->pods_memory);
    return true;
}

static bool score_pods(const struct as_pool_choice *choice, const struct as_pool_option *option,
                       double *score_out)
{
    *score_out = (double)option->pods;
    return true;
}

static bool score_nodes(const struct as_pool_choice *choice, const struct as_pool_option *option,
                        double *score_out)
{
    *score_out = (double)option->nodes;
    return true;
}

static bool score_priority(const struct as_pool_choice *choice, const struct as_pool_option *option,
                           double *score_out)
{
    *score_out = option->priority;
    return option->has_priority;
}

/* The larger the cluster, the larger the nodes that it prefers. Millicores. */
static double get_preferred_cpu(uint64_t nodes)
{
    static const struct {
        uint64_t nodes; /* up to */
        double cores;
    } rows[] = {{2, 1}, {6, 2}, {20, 4}, {60, 8}, {200, 16}, {UINT64_MAX, 32}};
    size_t row = 0;
    while (nodes > rows[row].nodes)
        row++;
    return rows[row].cores * CORE;
}

/* How far the node's size is from the preferred one: at least 1; lower if many nodes are added. */
static double get_unfitness(const struct as_pool_choice *choice,
                            const struct as_pool_option *option)
{
    const double preferred = get_preferred_cpu(choice->cluster_nodes);
    const double cpu = option->node_cpu > 0 ? (double)option->node_cpu : 1;
    const double unfitness = cpu > preferred ? cpu / preferred : preferred / cpu;
    if (option->has_gpu)
        return GPU_UNFITNESS;
    return (unfitness - 1) * (1 - tanh((double)(option->nodes - 1) / CALMING_NODES)) + 1;
}

static double get_pods_price(const struct as_pool_choice *choice, double cpu, double memory)
{
    return cpu / CORE * choice->cpu_price + memory / GIB * choice->memory_price;
}

/* If pods have no price, only the nodes' price counts. */
static bool score_price(const struct as_pool_choice *choice, const struct as_pool_option *option,
                        double *score_out)
{
    const double stable = get_pods_price(choice, STABLE_CPU, STABLE_MEMORY);
    const double paid = option->price * (double)option->nodes + stable;
    const double used =
        get_pods_price(choice, (double)option->pods_cpu, (double)option->pods_memory) + stable;
    *score_out = get_unfitness(choice, option) * (used > 0 ? paid / used : paid);
    return option->has_price;
}

static const struct {
    const char *word;
    score_fn *score;
    bool is_highest_best;
    bool keeps_all_without; /* where no option has a score */
} filters[AS_POOL_FILTER_COUNT] = {
    [AS_POOL_LEAST_WASTE] = {"least_waste", score_waste, false, false},
    [AS_POOL_MOST_PODS] = {"most_pods", score_pods, true, false},
    [AS_POOL_LEAST_NODES] = {"least_nodes", score_nodes, false, false},
    [AS_POOL_PRIORITY] = {"priority", score_priority, true, true},
    [AS_POOL_PRICE] = {"price", score_price, false, false},
    [AS_POOL_RANDOM] = {"random", NULL, false, false},
};

const char *as_pool_filter_get_word(enum as_pool_filter filter)
{
    assert((size_t)filter < AS_POOL_FILTER_COUNT);
    return filters[filter].word;
}

/* Filters */

static size_t choice_count_left(const struct as_pool_option *options, size_t count)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        left += !options[i].is_out;
    return left;
}

static void choice_drop(struct as_pool_option *option, enum as_pool_filter filter)
{
    option->is_out = true;
    option->out_by = filter;
}

static bool is_better(enum as_pool_filter filter, double score, double than)
{
    return filters[filter].is_highest_best ? score > than : score < than;
}

static void keep_best(const struct as_pool_choice *choice, enum as_pool_filter filter,
                      struct as_pool_option *options, size_t count)
{
    const unsigned bit = 1U << filter;
    const struct as_pool_option *best = NULL;
    for (size_t i = 0; i < count; i++) {
        struct as_pool_option *option = &options[i];
        double *score = &option->scores[filter];
        if (option->is_out || !filters[filter].score(choice, option, score))
            continue;
        option->scored |= bit;
        if (!best || is_better(filter, *score, best->scores[filter]))
            best = option;
    }
    if (!best && filters[filter].keeps_all_without)
        return;
    for (size_t i = 0; i < count; i++)
        if (!options[i].is_out && (!best || !(options[i].scored & bit) ||
                                   options[i].scores[filter] != best->scores[filter]))
            choice_drop(&options[i], filter);
}

static void keep_random(const struct as_pool_choice *choice, struct as_pool_option *options,
                        size_t count)
{
    const size_t left = choice_count_left(options, count);
    struct as_random random;
    if (left == 0)
        return;
    as_random_init(&random, choice->seed);
    uint64_t kept = as_random_get_below(&random, left);
    for (size_t i = 0; i < count; i++)
        if (!options[i].is_out && kept-- != 0)
            choice_drop(&options[i], AS_POOL_RANDOM);
}

size_t as_pool_choose(const struct as_pool_choice *choice, struct as_pool_option *options,
                      size_t count)
{
    static const enum as_pool_filter by_default[] = {AS_POOL_LEAST_WASTE};
    const bool has_filters = choice->filter_count > 0;
    const enum as_pool_filter *asked = has_filters ? choice->filters : by_default;
    const size_t asked_count = has_filters ? choice->filter_count : 1;

    for (size_t i = 0; i < count; i++) {
        options[i].is_out = options[i].nodes == 0 || options[i].pods == 0;
        options[i].out_by = AS_POOL_FILTER_COUNT;
        options[i].scored = 0;
    }
    for (size_t i = 0; i < asked_count && (i == 0 || choice_count_left(options, count) > 1); i++) {
        if (asked[i] == AS_POOL_RANDOM)
            keep_random(choice, options, count);
        else
            keep_best(choice, asked[i], options, count);
    }
    for (size_t i = 0; i < count; i++)
        if (!options[i].is_out)
            return i;
    return AS_POOL_NO_OPTION;
}
