/*
 * Nodes: see the header.
 */
#include "kube_facts_private.h"

#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/wire/kube_facts.h>
#include <alertscaler/wire/kube_nodes.h>

#include "kubernetes/kube_annotations.h"

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

/* When our mark was set; a text that is no mark is none, as in kube_nodes.c. */
static as_maybe_time read_mark(struct as_reader *annotations)
{
    static const struct tree_part parts[] = {
        {.name = "at"}, {.name = "decision"}, {.name = "owner"}, {.name = NULL}};
    const char *text = as_read_string(annotations, AS_NODE_MARK_ANNOTATION);
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_reader mark;

    if (!*text || tree_parse(&tree, text, strlen(text), parts, NULL) < 0 || tree.has_nuls)
        return (as_maybe_time){.set = false};
    as_read_lenient(&mark, tree.root, NULL);
    const as_maybe_time at = fact_get_time(&mark, "at");
    const bool is_whole = as_read_has(&mark, "decision") && as_read_has(&mark, "owner");
    as_read_string(&mark, "decision");
    as_read_string(&mark, "owner");
    return as_read_result(&mark) == 0 && is_whole ? at : (as_maybe_time){.set = false};
}

#define VALUE_SHOWN_MAX 64 /* bytes */

static const char *find_keep(struct fact_reader *reader, struct as_reader *annotations)
{
    static const char *const keys[] = {KEEP_CLUSTER_AUTOSCALER, KEEP_OURS, KEEP_ESCALATOR};
    char text[192];

    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        const char *value = as_read_string(annotations, keys[i]);
        if (strcmp(value, "true") != 0 && (!*value || strcmp(keys[i], KEEP_ESCALATOR) != 0))
            continue;
        snprintf(text, sizeof(text), "it is annotated %s: \"%.*s\"", keys[i],
                 (int)as_str_cut_utf8(value, strlen(value), VALUE_SHOWN_MAX), value);
        return as_arena_strdup(reader->arena, text);
    }
    return NULL;
}

void fact_read_node(struct fact_reader *reader, struct as_reader *root,
                    struct as_node_fact *node_out)
{
    static const struct as_labels no_labels = {.count = 0};
    struct as_reader metadata, spec, status, annotations;
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
        .keep = find_keep(reader, &annotations),
        .created = fact_get_time(&metadata, "creationTimestamp").at,
        .marked_at = read_mark(&annotations),
    };
    read_taints(reader, &spec, node_out);
    node_out->leaving |= node_out->marked_at.set ? AS_NODE_LEAVING_OURS : 0;
    read_readiness(&status, node_out);
    fact_add_amounts(reader, &status, "allocatable", false, &node_out->allocatable, &are_left_out);
    fact_add_amounts(reader, &status, "capacity", false, &node_out->capacity, &are_left_out);
    node_out->has_cpu = node_out->allocatable.amount[AS_RES_CPU] > 0;
    node_out->has_memory = node_out->allocatable.amount[AS_RES_MEMORY] > 0;
}
