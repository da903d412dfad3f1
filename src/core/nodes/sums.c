/*
 * Sums over nodes, and the values made of them: see the header.
 */
#include <alertscaler/core/node_sums.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#define MISSING_FORMAT "node %s: allocatable %s is missing or 0"

static const char *const resource_words[AS_NODE_SUMS] = {
    [AS_RES_CPU] = "cpu",
    [AS_RES_MEMORY] = "memory",
};

const char *as_nodes_value_get_word(enum as_nodes_value value)
{
    static const char *const words[AS_NODES_VALUE_COUNT] = {
        [AS_NODES_UTILIZATION] = "utilization",
        [AS_NODES_COUNT] = "count",
        [AS_NODES_CORES] = "cores",
    };

    assert((size_t)value < AS_NODES_VALUE_COUNT);
    return words[value];
}

static bool has_allocatable(const struct as_node_fact *node, size_t resource)
{
    const bool has = resource == AS_RES_CPU ? node->has_cpu : node->has_memory;

    return has && node->allocatable.amount[resource] > 0;
}

static double get_larger(double a, double b)
{
    return a > b ? a : b;
}

/* The source `nodes` */

static bool goes_with_its_node(const struct as_pod_shape *shape)
{
    return shape->eviction == AS_EVICTION_DAEMON || shape->eviction == AS_EVICTION_MIRROR;
}

static void add_requests(struct as_node_sums *sums, const struct as_pod_shape *shape,
                         uint64_t count)
{
    for (size_t i = 0; i < AS_NODE_SUMS && !goes_with_its_node(shape); i++)
        sums->requested[i] = as_amount_add(sums->requested[i], shape->requests.amount[i], count);
}

static void add_allocatable(struct as_node_sums *sums, const struct as_node_fact *node)
{
    sums->open++;
    for (size_t i = 0; i < AS_NODE_SUMS; i++) {
        sums->allocatable[i] = as_amount_add(sums->allocatable[i], node->allocatable.amount[i], 1);
        if (!has_allocatable(node, i) && !sums->lacking[i])
            sums->lacking[i] = node->name;
    }
}

void as_node_sums_init(struct as_node_sums *sums, const struct as_node_sums_request *request)
{
    const struct as_cluster *cluster = request->cluster;
    const size_t count = request->nodes ? request->node_count : cluster->node_count;

    *sums = (struct as_node_sums){.has_template = request->template_ != NULL};
    for (size_t i = 0; i < count; i++) {
        const uint32_t node = request->nodes ? request->nodes[i] : (uint32_t)i;
        size_t pod_count;
        const uint32_t *pods = as_node_pods_get(request->pods, node, &pod_count);

        for (size_t j = 0; j < pod_count; j++)
            add_requests(sums, cluster->pods[pods[j]].shape, 1);
        if (as_node_is_open(&cluster->nodes[node]))
            add_allocatable(sums, &cluster->nodes[node]);
    }
    for (size_t i = 0; i < request->pending_count; i++)
        add_requests(sums, request->pending[i].shape, request->pending[i].count);
    for (size_t i = 0; i < AS_NODE_SUMS && request->template_; i++)
        sums->template_[i] = request->template_->amount[i];
}

/* Whether every open node has this resource; if no node is open, whether the new node has it. */
static bool is_known(const struct as_node_sums *sums, size_t resource, struct as_error *error)
{
    const char *word = resource_words[resource];

    if (sums->lacking[resource])
        as_error_set(error, MISSING_FORMAT, sums->lacking[resource], word);
    else if (sums->open == 0 && sums->template_[resource] <= 0)
        as_error_set(error, "no node is open, and a new node would have no %s", word);
    else
        return true;
    return false;
}

static int get_utilization(const struct as_node_sums *sums, double *value_out,
                           struct as_error *error)
{
    const int64_t *allocatable = sums->open ? sums->allocatable : sums->template_;
    double largest = 0;

    if (sums->open == 0 && !sums->has_template) {
        for (size_t i = 0; i < AS_NODE_SUMS; i++)
            largest = sums->requested[i] > 0 ? AS_NODES_UTILIZATION_MAX : largest;
        *value_out = largest;
        return 0;
    }
    for (size_t i = 0; i < AS_NODE_SUMS; i++) {
        if (!is_known(sums, i, error))
            return -ENODATA;
        largest = get_larger(largest, 100.0 * (double)sums->requested[i] / (double)allocatable[i]);
    }
    *value_out = largest;
    return 0;
}

int as_node_sums_get_value(const struct as_node_sums *sums, enum as_nodes_value value,
                           double *value_out, struct as_error *error)
{
    assert((size_t)value < AS_NODES_VALUE_COUNT);
    if (value == AS_NODES_UTILIZATION)
        return get_utilization(sums, value_out, error);
    if (value == AS_NODES_COUNT) {
        *value_out = (double)sums->open;
        return 0;
    }
    if (sums->open > 0 && !is_known(sums, AS_RES_CPU, error))
        return -ENODATA;
    *value_out = (double)sums->allocatable[AS_RES_CPU] / 1000;
    return 0;
}

/* Which group a pending pod counts for */

bool as_pod_has_selector(const struct as_pod_shape *shape)
{
    return shape->has_affinity || (shape->selector && shape->selector->count > 0);
}

/* as_node_admits checks labels before taints. */
static bool is_selected(const struct as_node_shape *template_, const struct as_pod_shape *shape)
{
    return as_node_admits(template_, shape) != AS_MISFIT_SELECTOR;
}

bool as_pod_selects(const struct as_pod_shape *shape, const struct as_node_shape *template_,
                    const struct as_node_shape *const *others, size_t other_count)
{
    if (!as_pod_has_selector(shape) || !is_selected(template_, shape))
        return false;
    for (size_t i = 0; i < other_count; i++)
        if (others[i] && is_selected(others[i], shape))
            return false;
    return true;
}

/* One node */

bool as_resource_is_accelerator(const char *name)
{
    static const char *const names[] = {
        "nvidia.com/gpu",        "amd.com/gpu",     "gpu.intel.com/xe", "gpu.intel.com/i915",
        "microsoft.com/directx", "habana.ai/gaudi", "google.com/tpu",
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_late(const struct as_pod_fact *pod, as_wall_time now)
{
    return pod->is_leaving && pod->gone_at.set &&
           as_time_add(pod->gone_at.at.us, AS_POD_LATE_US) < now.us;
}

static bool is_ignored(const struct as_pod_shape *shape, unsigned ignore)
{
    return (shape->eviction == AS_EVICTION_DAEMON && (ignore & AS_NODE_IGNORE_DAEMONSETS)) ||
           (shape->eviction == AS_EVICTION_MIRROR && (ignore & AS_NODE_IGNORE_MIRROR));
}

struct look { /* at one node */
    const struct as_cluster *cluster;
    const uint32_t *pods;
    size_t pod_count;
    unsigned ignore;
    as_wall_time now;
};

/* Requests for a resource in percent of what is allocatable, which is above 0. */
static double get_percent(const struct look *look, size_t resource, int64_t allocatable)
{
    int64_t requested = 0;

    for (size_t i = 0; i < look->pod_count; i++) {
        const struct as_pod_fact *pod = &look->cluster->pods[look->pods[i]];
        const int64_t request = pod->shape->requests.amount[resource];

        if (is_ignored(pod->shape, look->ignore))
            allocatable = as_amount_add(allocatable, -request, 1);
        else if (!is_late(pod, look->now))
            requested = as_amount_add(requested, request, 1);
    }
    if (requested <= 0)
        return 0;
    return allocatable > 0 ? 100.0 * (double)requested / (double)allocatable
                           : AS_NODES_UTILIZATION_MAX;
}

int as_node_get_utilization(const struct as_cluster *cluster, const struct as_node_pods *pods,
                            uint32_t node, unsigned ignore, as_wall_time now, double *percent_out,
                            struct as_error *error)
{
    const struct as_node_fact *fact = &cluster->nodes[node];
    struct look look = {.cluster = cluster, .ignore = ignore, .now = now};
    bool has_accelerator = false;
    double largest = 0;

    look.pods = as_node_pods_get(pods, node, &look.pod_count);
    for (size_t i = AS_RES_NAMED; i < cluster->resources.count; i++) {
        const int64_t allocatable = fact->allocatable.amount[i];

        if (allocatable > 0 && as_resource_is_accelerator(cluster->resources.name[i])) {
            has_accelerator = true;
            largest = get_larger(largest, get_percent(&look, i, allocatable));
        }
    }
    for (size_t i = 0; i < AS_NODE_SUMS && !has_accelerator; i++) {
        if (!has_allocatable(fact, i)) {
            as_error_set(error, MISSING_FORMAT, fact->name, resource_words[i]);
            return -ENODATA;
        }
        largest = get_larger(largest, get_percent(&look, i, fact->allocatable.amount[i]));
    }
    *percent_out = largest;
    return 0;
}
