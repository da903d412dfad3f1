/*
 * Which nodes and pods stay: see the header.
 */
#include "kube_annotations.h"

#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>

#define VALUE_SHOWN_MAX 64 /* bytes */

const char *kube_find_keep(const struct tree_value *annotations, struct as_arena *arena)
{
    static const char *const keys[] = {KEEP_CLUSTER_AUTOSCALER, KEEP_OURS, KEEP_ESCALATOR};
    char text[192];

    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        const char *value = tree_find_text(annotations, keys[i]);
        if (as_str_is_empty(value) ||
            (strcmp(value, "true") != 0 && strcmp(keys[i], KEEP_ESCALATOR) != 0))
            continue;
        snprintf(text, sizeof(text), "it is annotated %s: \"%.*s\"", keys[i],
                 (int)as_str_cut_utf8(value, strlen(value), VALUE_SHOWN_MAX), value);
        return as_arena_strdup(arena, text);
    }
    return NULL;
}

bool kube_read_mark(const struct tree_value *annotations, struct as_arena *arena,
                    struct as_kube_node_mark *mark)
{
    const char *text = tree_find_text(annotations, AS_NODE_MARK_ANNOTATION);
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    if (!text || tree_load(&tree, text, strlen(text), NULL) < 0)
        return false;
    const char *owner = tree_find_text(tree.root, "owner");
    const char *decision = tree_find_text(tree.root, "decision");
    const char *at = tree_find_text(tree.root, "at");
    if (!owner || !decision || !at || as_wall_time_parse(at, strlen(at), &mark->at) < 0)
        return false;
    mark->owner = as_arena_strdup(arena, owner);
    mark->decision = as_arena_strdup(arena, decision);
    const char *target = tree_find_text(tree.root, "target");
    mark->target = as_arena_strdup(arena, target ? target : "");
    mark->has_cordoned = tree_is_true(tree_find(tree.root, "cordoned"));
    return true;
}

const char *kube_find_controller(const struct tree_value *metadata)
{
    const struct tree_value *owner = tree_get_first(tree_find(metadata, "ownerReferences"));

    while (owner && !tree_is_true(tree_find(owner, "controller")))
        owner = owner->next;
    return tree_find_text(owner, "kind");
}

bool kube_is_replicated(const char *controller)
{
    static const char *const kinds[] = {"ReplicaSet", "StatefulSet", "Job",
                                        "ReplicationController"};

    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        if (as_str_equal(controller, kinds[i]))
            return true;
    }
    return false;
}

/* Memory does not count. */
static bool is_local(const struct tree_value *volume)
{
    const struct tree_value *empty = tree_find(volume, "emptyDir");

    return tree_is(tree_find(volume, "hostPath"), TREE_OBJECT) ||
           (tree_is(empty, TREE_OBJECT) &&
            !as_str_equal(tree_find_text(empty, "medium"), "Memory"));
}

/* Whether a list with commas has a name. `list` may be NULL. */
static bool annotations_has_name(const char *list, const char *name)
{
    const size_t size = strlen(name);

    while (list && *list) {
        list += strspn(list, ", ");
        const size_t part = strcspn(list, ", ");
        if (part == size && part > 0 && strncmp(list, name, size) == 0)
            return true;
        list += part;
    }
    return false;
}

const char *kube_find_local_volume(const struct tree_value *spec,
                                   const struct tree_value *annotations)
{
    const char *safe = tree_find_text(annotations, SAFE_LOCAL_VOLUMES);
    const struct tree_value *volume = tree_get_first(tree_find(spec, "volumes"));

    for (; volume; volume = volume->next) {
        const char *name = tree_find_text(volume, "name");
        if (!as_str_is_empty(name) && is_local(volume) && !annotations_has_name(safe, name))
            return name;
    }
    return NULL;
}
