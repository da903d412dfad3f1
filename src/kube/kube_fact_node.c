/*
 * Nodes: see the header.
 */
#include "kube_facts_private.h"

#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/kube/kube_facts.h>
#include <alertscaler/kube/kube_nodes.h>

#include "kube_annotations.h"

static void read_readiness(struct as_reader *status, struct as_node_fact *node)
{
    static const char list[] = "conditions";
    size_t count;
    const struct tree_value *item = fact_read_list(status, list, &count);

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader condition;
        as_read_item(&condition, status, list, item, i);
        if (!as_read_is(&condition, "type", "Ready"))
            continue;
        node->is_ready = as_read_is(&condition, "status", "True");
        node->ready_since = fact_get_time(&condition, "lastTransitionTime");
        return;
    }
}

/* False for an effect that no scheduler knows, and so ignores. */
static bool read_taint(struct as_reader *parent, struct as_taint *taint)
{
    static const struct {
        const char *word;
        enum as_taint_effect effect;
    } effects[] = {
        {"NoSchedule", AS_TAINT_NO_SCHEDULE},
        {"PreferNoSchedule", AS_TAINT_PREFER_NO_SCHEDULE},
        {"NoExecute", AS_TAINT_NO_EXECUTE},
    };
    bool is_known = false;
    *taint = (struct as_taint){.key = as_read_string(parent, "key"),
                               .value = as_read_string(parent, "value")};
    if (!*taint->key)
        as_read_fail(parent, "key", "missing");
    for (size_t i = 0; i < AS_ARRAY_SIZE(effects); i++) {
        if (!as_read_is(parent, "effect", effects[i].word))
            continue;
        taint->effect = effects[i].effect;
        is_known = true;
    }
    return is_known;
}

static unsigned get_leaving(const char *key)
{
    static const struct {
        const char *key;
        enum as_node_leaving leaving;
    } taints[] = {
        {AS_NODE_TAINT, AS_NODE_LEAVING_OURS},
        {AS_NODE_TAINT_CLUSTER_AUTOSCALER, AS_NODE_LEAVING_CLUSTER_AUTOSCALER},
        {AS_NODE_TAINT_ESCALATOR, AS_NODE_LEAVING_ESCALATOR},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(taints); i++) {
        if (strcmp(taints[i].key, key) == 0)
            return taints[i].leaving;
    }
    return 0;
}

static void read_taints(struct fact_reader *reader, struct as_reader *spec,
                        struct as_node_fact *node)
{
    static const char list[] = "taints";
    size_t count;
    const struct tree_value *item = fact_read_list(spec, list, &count);
    struct as_taint *taints = as_arena_alloc(reader->arena, count, sizeof(*taints));

    for (size_t i = 0; i < count; i++, item = item->next) {
        struct as_reader item_reader;
        struct as_taint *taint = &taints[node->taint_count];
        as_read_item(&item_reader, spec, list, item, i);
        node->taint_count += read_taint(&item_reader, taint);
        node->leaving |= get_leaving(taint->key);
    }
    node->taints = taints;
}

void fact_read_node(struct fact_reader *reader, struct as_reader *root,
                    struct as_node_fact *node_out)
{
    static const struct as_labels no_labels = {.count = 0};
    struct as_reader metadata, spec, status, annotations;
    struct as_kube_node_mark mark;
    bool are_left_out = false; /* whether no pod can ask for what has no index */

    as_read_object(&metadata, root, "metadata");
    as_read_object(&spec, root, "spec");
    as_read_object(&status, root, "status");
    as_read_object(&annotations, &metadata, "annotations");
    const struct as_labels *labels = fact_read_labels(reader, &metadata, "labels");
    *node_out = (struct as_node_fact){
        .name = fact_read_name(&metadata, "name"),
        .provider_id = as_read_string(&spec, "providerID"),
        .labels = labels ? labels : &no_labels,
        .is_cordoned = fact_get_bool(&spec, "unschedulable"),
        .keep = kube_find_keep(annotations.object, reader->arena),
        .created = fact_get_time(&metadata, "creationTimestamp").at,
    };
    read_taints(reader, &spec, node_out);
    if (kube_read_mark(annotations.object, reader->arena, &mark)) {
        node_out->marked_at = (as_maybe_time){.set = true, .at = mark.at};
        node_out->leaving |= AS_NODE_LEAVING_OURS;
    }
    read_readiness(&status, node_out);
    fact_add_amounts(reader, &status, "allocatable", false, &node_out->allocatable, &are_left_out);
    fact_add_amounts(reader, &status, "capacity", false, &node_out->capacity, &are_left_out);
    node_out->has_cpu = node_out->allocatable.amount[AS_RES_CPU] > 0;
    node_out->has_memory = node_out->allocatable.amount[AS_RES_MEMORY] > 0;
}
