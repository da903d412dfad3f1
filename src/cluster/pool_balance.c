/*
 * Caps of a pool, similar groups and their shares: see the header.
 */
#include <alertscaler/cluster/pool_choice.h>

#include <string.h>

#include <alertscaler/model/labels.h>

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

static bool is_within(int64_t a, int64_t b, double tolerance)
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
        if (!is_within(a->capacity.amount[i], b->capacity.amount[i], tolerance) ||
            !is_within(a->allocatable.amount[i], b->allocatable.amount[i], OTHER_TOLERANCE) ||
            (i != AS_RES_PODS && !is_within(a->shape.allocatable.amount[i],
                                            b->shape.allocatable.amount[i], OTHER_TOLERANCE)))
            return false;
    }
    return are_equal_but_for(a->shape.labels, b->shape.labels, ignored, ignored_count);
}

bool as_pool_has_similar_pods(const struct as_node_template *a, const struct as_node_template *b)
{
    return is_within(a->shape.allocatable.amount[AS_RES_PODS],
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
