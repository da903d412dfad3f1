/*
 * Pods: see the header. What of a pod decides whether it may be evicted is as in kube_node_pods.c.
 */
#include "kube_facts_private.h"

#include <string.h>

#include <alertscaler/base/str.h>

#include "kube_annotations.h"

static enum as_eviction_class get_eviction(struct as_reader *metadata, struct as_reader *spec,
                                           const char *namespace_)
{
    const char *controller = kube_find_controller(metadata->object);
    struct as_reader annotations;

    as_read_object(&annotations, metadata, "annotations");
    if (as_read_has(&annotations, MIRROR_POD) || as_str_equal(controller, "Node"))
        return AS_EVICTION_MIRROR;
    if (as_str_equal(controller, "DaemonSet") || as_read_is(&annotations, DAEMONSET_POD, "true"))
        return AS_EVICTION_DAEMON;
    if (as_read_is(&annotations, SAFE_TO_EVICT, "true"))
        return AS_EVICTION_ALLOWED;
    if (as_read_is(&annotations, SAFE_TO_EVICT, "false"))
        return AS_EVICTION_REFUSED;
    if (!kube_is_replicated(controller))
        return AS_EVICTION_UNREPLICATED;
    if (kube_find_local_volume(spec->object, annotations.object))
        return AS_EVICTION_LOCAL_STORAGE;
    return strcmp(namespace_, "kube-system") == 0 ? AS_EVICTION_SYSTEM : AS_EVICTION_ALLOWED;
}

static bool is_unschedulable(struct as_reader *status)
{
    static const char list[] = "conditions";
    size_t count;
    const struct tree_value *item = fact_read_list(status, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader condition;
        as_read_item(&condition, status, list, item, i);
        if (as_read_is(&condition, "type", "PodScheduled"))
            return as_read_is(&condition, "status", "False") &&
                   as_read_is(&condition, "reason", "Unschedulable");
    }
    return false;
}

static const char *read_node_name(struct as_reader *parent, const char *key)
{
    return *as_read_string(parent, key) ? fact_read_name(parent, key) : NULL;
}

bool fact_read_pod(struct fact_reader *reader, struct as_reader *root,
                   struct as_pod_shape *shape_out, struct as_pod_put *pod_out)
{
    static const struct as_labels no_labels = {.count = 0};
    struct as_reader metadata, spec, status;

    as_read_object(&metadata, root, "metadata");
    as_read_object(&spec, root, "spec");
    as_read_object(&status, root, "status");
    struct as_pod_fact *fact = &pod_out->fact;
    *pod_out = (struct as_pod_put){.fact.shape = shape_out};
    fact->namespace_ = fact_read_name(&metadata, "namespace");
    fact->name = fact_read_name(&metadata, "name");
    if (as_read_is(&status, "phase", "Succeeded") || as_read_is(&status, "phase", "Failed"))
        return false;
    fact->gone_at = fact_get_time(&metadata, "deletionTimestamp");
    fact->is_leaving = fact->gone_at.set;
    fact->created = fact_get_time(&metadata, "creationTimestamp").at;
    pod_out->node = read_node_name(&spec, "nodeName");
    pod_out->nominated = read_node_name(&status, "nominatedNodeName");
    fact->is_unschedulable = is_unschedulable(&status);

    const struct as_labels *labels = fact_read_labels(reader, &metadata, "labels");
    *shape_out = (struct as_pod_shape){
        .namespace_ = fact->namespace_,
        .labels = labels ? labels : &no_labels,
        .priority = (int32_t)fact_get_i64(&spec, "priority", INT32_MIN, INT32_MAX),
        .never_preempts = as_read_is(&spec, "preemptionPolicy", "Never"),
        .eviction = get_eviction(&metadata, &spec, fact->namespace_),
    };
    fact_read_requests(reader, &spec, shape_out);
    fact_read_placing(reader, &spec, shape_out);
    return true;
}
