/*
 * Pods: see the header. What of a pod decides whether it may be evicted is as in kube_node_pods.c;
 * a unit test holds both together.
 */
#include "kube_facts_private.h"

#include "kubernetes/kube_annotations.h"
#include <string.h>

/* The kind of what controls it; "": nothing does. */
static const char *find_controller(struct spot *metadata)
{
    static const char list[] = "ownerReferences";
    size_t count;
    const struct tree_value *item = spot_get_list(metadata, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct spot owner;
        spot_enter_item(&owner, metadata, list, item, i);
        if (spot_get_bool(&owner, "controller"))
            return spot_get_text(&owner, "kind");
    }
    return "";
}

/* Data that would be lost with the node; memory is no disk. */
static bool is_local(struct spot *volume)
{
    struct spot empty;

    spot_enter(&empty, volume, "emptyDir");
    return spot_has(volume, "hostPath") ||
           (empty.object && !spot_is_text(&empty, "medium", "Memory"));
}

static bool has_local_volume(struct spot *spec, const char *safe)
{
    static const char list[] = "volumes";
    size_t count;
    const struct tree_value *item = spot_get_list(spec, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct spot volume;
        spot_enter_item(&volume, spec, list, item, i);
        const char *name = spot_get_text(&volume, "name");
        if (*name && is_local(&volume) && !annotation_has_name(safe, name))
            return true;
    }
    return false;
}

static enum as_eviction_class get_eviction(struct spot *metadata, struct spot *spec,
                                           const char *namespace_)
{
    const char *controller = find_controller(metadata);
    struct spot annotations;

    spot_enter(&annotations, metadata, "annotations");
    if (spot_has(&annotations, MIRROR_POD) || strcmp(controller, "Node") == 0)
        return AS_EVICTION_MIRROR;
    if (strcmp(controller, "DaemonSet") == 0 || spot_is_text(&annotations, DAEMONSET_POD, "true"))
        return AS_EVICTION_DAEMON;
    if (spot_is_text(&annotations, SAFE_TO_EVICT, "true"))
        return AS_EVICTION_ALLOWED;
    if (spot_is_text(&annotations, SAFE_TO_EVICT, "false"))
        return AS_EVICTION_REFUSED;
    if (!*controller)
        return AS_EVICTION_UNREPLICATED;
    if (has_local_volume(spec, spot_get_text(&annotations, SAFE_LOCAL_VOLUMES)))
        return AS_EVICTION_LOCAL_STORAGE;
    return strcmp(namespace_, "kube-system") == 0 ? AS_EVICTION_SYSTEM : AS_EVICTION_ALLOWED;
}

static bool is_unschedulable(struct spot *status)
{
    static const char list[] = "conditions";
    size_t count;
    const struct tree_value *item = spot_get_list(status, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct spot condition;
        spot_enter_item(&condition, status, list, item, i);
        if (spot_is_text(&condition, "type", "PodScheduled"))
            return spot_is_text(&condition, "status", "False") &&
                   spot_is_text(&condition, "reason", "Unschedulable");
    }
    return false;
}

static const char *read_node_name(struct spot *spot, const char *key)
{
    return *spot_get_text(spot, key) ? fact_read_name(spot, key) : NULL;
}

bool fact_read_pod(struct fact_reader *reader, struct spot *root, struct as_pod_shape *shape_out,
                   struct as_pod_put *pod_out)
{
    static const struct as_labels no_labels = {.count = 0};
    struct spot metadata, spec, status;

    spot_enter(&metadata, root, "metadata");
    spot_enter(&spec, root, "spec");
    spot_enter(&status, root, "status");
    struct as_pod_fact *fact = &pod_out->fact;
    *pod_out = (struct as_pod_put){.fact.shape = shape_out};
    fact->namespace_ = fact_read_name(&metadata, "namespace");
    fact->name = fact_read_name(&metadata, "name");
    if (spot_is_text(&status, "phase", "Succeeded") || spot_is_text(&status, "phase", "Failed"))
        return false;
    fact->gone_at = spot_get_time(&metadata, "deletionTimestamp");
    fact->is_leaving = fact->gone_at.set;
    fact->created = spot_get_time(&metadata, "creationTimestamp").at;
    pod_out->node = read_node_name(&spec, "nodeName");
    pod_out->nominated = read_node_name(&status, "nominatedNodeName");
    fact->is_unschedulable = is_unschedulable(&status);

    const struct as_labels *labels = fact_read_labels(reader, &metadata, "labels");
    *shape_out = (struct as_pod_shape){
        .namespace_ = fact->namespace_,
        .labels = labels ? labels : &no_labels,
        .priority = (int32_t)spot_get_i64(&spec, "priority", INT32_MIN, INT32_MAX),
        .eviction = get_eviction(&metadata, &spec, fact->namespace_),
    };
    fact_read_requests(reader, &spec, shape_out);
    fact_read_placing(reader, &spec, shape_out);
    return true;
}
