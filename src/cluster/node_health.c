/*
 * Health of clusters and node groups, by the numbers of their nodes that are not Ready. The module
 * decides nothing: its callers leave an unwell cluster or group alone.
 */
#include <alertscaler/cluster/node_health.h>

#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/cluster/node_template.h>

#define WHOLE 100000 /* thousandths of a percent */

static bool is_starting(const struct as_node_fact *node, const struct as_node_starting *starting,
                        as_wall_time now)
{
    return now.us - node->created.us < starting->ready_timeout_us ||
           as_node_has_startup_taint(node, starting->startup_taints, starting->startup_taint_count);
}

bool as_cluster_is_unwell(const struct as_cluster *cluster, const struct as_node_starting *starting,
                          as_wall_time now, struct as_error *error)
{
    size_t unready = 0;
    for (size_t i = 0; i < cluster->node_count; i++) {
        const struct as_node_fact *node = &cluster->nodes[i];
        unready += !node->is_ready && node->leaving == 0 && !is_starting(node, starting, now);
    }
    if (unready <= AS_UNREADY_COUNT_OK ||
        unready * 100 <= cluster->node_count * AS_UNREADY_PERCENT_OK)
        return false;
    as_error_set(error,
                 "%zu of %zu nodes of the cluster are not Ready: nothing is decided by nodes until "
                 "at most %d %% or at most %d nodes are",
                 unready, cluster->node_count, AS_UNREADY_PERCENT_OK, AS_UNREADY_COUNT_OK);
    return true;
}

/* The newest first; of the same age the first by name, as facts are sorted. */
static int compare_age(const void *a, const void *b)
{
    const struct as_node_fact *left = *(const struct as_node_fact *const *)a;
    const struct as_node_fact *right = *(const struct as_node_fact *const *)b;
    if (left->created.us != right->created.us)
        return left->created.us > right->created.us ? -1 : 1;
    return (left > right) - (left < right);
}

bool as_group_is_unwell(const struct as_cluster *cluster, const uint32_t *nodes, size_t node_count,
                        const struct as_node_health_config *health, as_wall_time now,
                        struct as_error *error)
{
    if (health->grace_us == 0)
        return false;
    const struct as_node_fact **old = as_xcalloc(node_count + 1, sizeof(*old));
    size_t count = 0, unready = 0;
    for (size_t i = 0; i < node_count; i++) {
        const struct as_node_fact *node = &cluster->nodes[nodes[i]];
        if (now.us - node->created.us > health->grace_us)
            old[count++] = node;
    }
    qsort(old, count, sizeof(*old), compare_age);
    count = (count * (size_t)health->newest + WHOLE - 1) / WHOLE;
    for (size_t i = 0; i < count; i++)
        unready += !old[i]->is_ready && !old[i]->is_cordoned;
    free(old);
    const size_t percent = count > 0 ? unready * 100 / count : 0;
    if (percent * 1000 <= (size_t)health->most)
        return false;
    as_error_set(error,
                 "%zu of the newest %zu nodes of the group are not Ready, %zu %%: nothing is "
                 "decided by its nodes until at most %g %% are",
                 unready, count, percent, (double)health->most / 1000);
    return true;
}
