/*
 * What a survey asks of single pods.
 */
#include "survey_work.h"

bool survey_must_move(const struct as_survey_work *work, const struct as_pod_fact *pod)
{
    const enum as_eviction_class class = pod->shape->eviction;
    const bool is_gone = pod->is_leaving && pod->gone_at.set &&
                         as_time_add(pod->gone_at.at.us, AS_POD_LATE_US) < work->request->now.us;

    return class != AS_EVICTION_DAEMON && class != AS_EVICTION_MIRROR && !is_gone;
}

const char *survey_find_zone(const struct as_node_fact *node, const struct as_pod_shape *shape)
{
    if (!(shape->unchecked & AS_UNCHECKED_VOLUMES))
        return NULL;
    const char *zone = as_labels_find(node->labels, "topology.kubernetes.io/zone");
    return zone ? zone : as_labels_find(node->labels, "failure-domain.beta.kubernetes.io/zone");
}
