/*
 * Sums over nodes, and the values made of them: the values of the source `nodes`, and the pods of
 * each node.
 */
#include <alertscaler/cluster/node_sums.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/nodes_seen.h>
#include <alertscaler/cluster/pool.h>

void as_node_pods_init(struct as_node_pods *pods, const struct as_cluster *cluster,
                       struct as_arena *arena)
{
    /* While pods are placed, ends[n + 1] is the place of the next pod of node n. Afterwards that is
     * the end of node n, so ends[n] is its start. */
    uint32_t *ends = as_arena_alloc(arena, cluster->node_count + 2, sizeof(*ends));
    uint32_t *order = as_arena_alloc(arena, cluster->pod_count, sizeof(*order));

    assert(cluster->pod_count < UINT32_MAX && cluster->node_count < AS_NO_NODE);
    for (size_t i = 0; i < cluster->pod_count; i++) {
        const uint32_t node = cluster->pods[i].node;

        assert(node == AS_NO_NODE || node < cluster->node_count);
        if (node != AS_NO_NODE)
            ends[node + 2]++;
    }
    for (size_t i = 2; i < cluster->node_count + 2; i++)
        ends[i] += ends[i - 1];
    for (size_t i = 0; i < cluster->pod_count; i++)
        if (cluster->pods[i].node != AS_NO_NODE)
            order[ends[cluster->pods[i].node + 1]++] = (uint32_t)i;
    pods->pods = order;
    pods->starts = ends;
}

#define GET_WORD(enumerator, word) word,
const char *const as_nodes_words[] = {AS_NODES_WORDS(GET_WORD) NULL};

const char *as_nodes_word_get_text(enum as_nodes_word word)
{
    return word == AS_NODES_NONE ? NULL : as_nodes_words[word - 1];
}

/* Whether every open node, or the new node where there is none, says this resource. */
static bool sums_is_known(const struct as_nodes_seen *seen, enum as_resource resource,
                          struct as_error *error)
{
    static const char *const words[AS_RESOURCE_COUNT] = {"cpu", "memory"};

    if (seen->lacking[resource])
        as_error_set(error, "node %s: allocatable %s is missing or 0", seen->lacking[resource],
                     words[resource]);
    else if (seen->allocatable[resource] <= 0)
        as_error_set(error,
                     seen->is_template ? "no node is open, and a new node would have no %s"
                                       : "the nodes have no allocatable %s",
                     words[resource]);
    else
        return true;
    return false;
}

/* The larger of cpu's and memory's, as Escalator has it. */
static int sums_get_utilization(const struct as_nodes_seen *seen, double *value_out,
                                struct as_error *error)
{
    const bool is_none = seen->open == 0 && !seen->is_template;

    double largest = 0;
    for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++) {
        if (!is_none && !sums_is_known(seen, i, error))
            return -ENODATA;
        const double percent =
            !is_none ? 100.0 * (double)seen->requests[i] / (double)seen->allocatable[i]
            : seen->requests[i] > 0 ? AS_NODES_UTILIZATION_MAX
                                    : 0;
        if (percent > largest)
            largest = percent;
    }
    *value_out = largest;
    return 0;
}

bool as_nodes_seen_is_made_up(const struct as_nodes_seen *seen, enum as_nodes_word word)
{
    return word == AS_NODES_UTILIZATION && !seen->error && seen->open == 0;
}

int as_nodes_seen_get(const struct as_nodes_seen *seen, enum as_nodes_word word, double *value_out,
                      struct as_error *error)
{
    if (seen->error) {
        as_error_set(error, "%s", seen->error);
        return -ENODATA;
    }
    switch (word) {
    case AS_NODES_UTILIZATION: return sums_get_utilization(seen, value_out, error);
    case AS_NODES_COUNT: *value_out = (double)seen->open; return 0;
    case AS_NODES_CORES:
        if (seen->open > 0 && !sums_is_known(seen, AS_RESOURCE_CPU, error))
            return -ENODATA;
        *value_out = seen->open > 0 ? (double)seen->allocatable[AS_RESOURCE_CPU] / 1000 : 0;
        return 0;
    case AS_NODES_NONE:
    case AS_NODES_WORD_COUNT: break;
    }
    as_error_set(error, "no such value of nodes");
    return -ENODATA;
}

#define MISSING_FORMAT "node %s: allocatable %s is missing or 0"

static const char *const resource_words[AS_RESOURCE_COUNT] = {
    [AS_RES_CPU] = "cpu",
    [AS_RES_MEMORY] = "memory",
};

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

/* Targets with this source have no pool, and its default for expendable pods. */
bool as_pod_needs_nodes(const struct as_pod_class *pod_class)
{
    return pod_class->eviction != AS_EVICTION_DAEMON && pod_class->eviction != AS_EVICTION_MIRROR &&
           pod_class->priority >= as_pool_config_default.expendable_below;
}

static void sums_add_requests(struct as_nodes_seen *seen, const struct as_pod_class *pod_class,
                              uint64_t count)
{
    for (size_t i = 0; i < AS_RESOURCE_COUNT && as_pod_needs_nodes(pod_class); i++)
        seen->requests[i] = as_amount_add(seen->requests[i], pod_class->requests.amount[i], count);
}

static void add_allocatable(struct as_nodes_seen *seen, const struct as_node_fact *node)
{
    seen->open++;
    for (size_t i = 0; i < AS_RESOURCE_COUNT; i++) {
        if (!has_allocatable(node, i) && !seen->lacking[i])
            seen->lacking[i] = node->name;
        seen->allocatable[i] = as_amount_add(seen->allocatable[i], node->allocatable.amount[i], 1);
    }
}

void as_nodes_seen_init(struct as_nodes_seen *seen, const struct as_node_sums_request *request)
{
    const struct as_cluster *cluster = request->cluster;
    const size_t count = request->nodes ? request->node_count : cluster->node_count;

    *seen = (struct as_nodes_seen){.open = 0};
    for (size_t i = 0; i < count; i++) {
        const uint32_t node = request->nodes ? request->nodes[i] : (uint32_t)i;
        size_t pod_count;
        const uint32_t *pods = as_node_pods_get(request->pods, node, &pod_count);

        for (size_t j = 0; j < pod_count; j++)
            sums_add_requests(seen, cluster->pods[pods[j]].pod_class, 1);
        if (as_node_is_open(&cluster->nodes[node]))
            add_allocatable(seen, &cluster->nodes[node]);
    }
    for (size_t i = 0; i < request->pending_count; i++)
        sums_add_requests(seen, request->pending[i].pod_class, request->pending[i].count);
    seen->is_template = seen->open == 0 && request->template_;
    for (size_t i = 0; i < AS_RESOURCE_COUNT && seen->is_template; i++)
        seen->allocatable[i] = request->template_->amount[i];
}

bool as_pod_has_selector(const struct as_pod_class *pod_class)
{
    return pod_class->has_affinity || (pod_class->selector && pod_class->selector->count > 0);
}

/* as_node_admits checks labels before taints. */
static bool sums_is_selected(const struct as_node_shape *template_,
                             const struct as_pod_class *pod_class)
{
    return as_node_admits(template_, pod_class) != AS_MISFIT_SELECTOR;
}

bool as_pod_selects(const struct as_pod_class *pod_class, const struct as_node_shape *template_,
                    const struct as_node_shape *const *others, size_t other_count)
{
    if (!as_pod_has_selector(pod_class) || !sums_is_selected(template_, pod_class))
        return false;
    for (size_t i = 0; i < other_count; i++)
        if (others[i] && sums_is_selected(others[i], pod_class))
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

static bool sums_is_late(const struct as_pod_fact *pod, as_wall_time now)
{
    return pod->is_leaving && pod->gone_at.set &&
           as_time_add(pod->gone_at.at.us, AS_POD_LATE_US) < now.us;
}

static bool is_ignored(const struct as_pod_class *pod_class, unsigned ignore)
{
    return (pod_class->eviction == AS_EVICTION_DAEMON && (ignore & AS_NODE_IGNORE_DAEMONSETS)) ||
           (pod_class->eviction == AS_EVICTION_MIRROR && (ignore & AS_NODE_IGNORE_MIRROR));
}

struct look { /* at one node */
    const struct as_cluster *cluster;
    const uint32_t *pods;
    size_t pod_count;
    unsigned ignore;
    const struct as_resources *placed; /* NULL: nothing */
    int32_t expendable_below;
    as_wall_time now;
};

/* Requests for a resource in percent of what is allocatable, which is above 0. */
static double get_percent(const struct look *look, size_t resource, int64_t allocatable)
{
    int64_t requested = look->placed ? look->placed->amount[resource] : 0;

    for (size_t i = 0; i < look->pod_count; i++) {
        const struct as_pod_fact *pod = &look->cluster->pods[look->pods[i]];
        const int64_t request = pod->pod_class->requests.amount[resource];

        if (is_ignored(pod->pod_class, look->ignore))
            allocatable = as_amount_add(allocatable, -request, 1);
        else if (!sums_is_late(pod, look->now) &&
                 pod->pod_class->priority >= look->expendable_below)
            requested = as_amount_add(requested, request, 1);
    }
    if (requested <= 0)
        return 0;
    return allocatable > 0 ? 100.0 * (double)requested / (double)allocatable
                           : AS_NODES_UTILIZATION_MAX;
}

int as_node_get_utilization(const struct as_cluster *cluster, const struct as_node_pods *pods,
                            uint32_t node, unsigned ignore, int32_t expendable_below,
                            const struct as_resources *placed, as_wall_time now,
                            double *percent_out, struct as_error *error)
{
    const struct as_node_fact *fact = &cluster->nodes[node];
    struct look look = {.cluster = cluster,
                        .ignore = ignore,
                        .placed = placed,
                        .expendable_below = expendable_below,
                        .now = now};
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
    for (size_t i = 0; i < AS_RESOURCE_COUNT && !has_accelerator; i++) {
        if (!has_allocatable(fact, i)) {
            as_error_set(error, MISSING_FORMAT, fact->name, resource_words[i]);
            return -ENODATA;
        }
        largest = get_larger(largest, get_percent(&look, i, fact->allocatable.amount[i]));
    }
    *percent_out = largest;
    return 0;
}
