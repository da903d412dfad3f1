/*
 * Pods by node: a counting sort.
 */
#include <alertscaler/cluster/node_pods.h>

#include <assert.h>

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
