/*
 * Classes of nodes: see node_class.h. A table with open addressing finds the class of a node.
 */
#include "node_class.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HOSTNAME_LABEL "kubernetes.io/hostname"

static const char *const zone_labels[] = {
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
};

static bool is_hostname(const char *key)
{
    return strcmp(key, HOSTNAME_LABEL) == 0;
}

/* Calls `hear` with each requirement of the shape's node affinity. */
typedef void hear_requirement_fn(const struct as_node_requirement *requirement, void *context);

static void each_requirement(const struct as_pod_shape *shape, hear_requirement_fn *hear,
                             void *context)
{
    for (size_t i = 0; i < shape->term_count; i++)
        for (size_t k = 0; k < shape->terms[i].count; k++)
            hear(&shape->terms[i].requirements[k], context);
}

static void note_name(const struct as_node_requirement *requirement, void *context)
{
    bool *reads_name = context;
    *reads_name |= requirement->is_field || is_hostname(requirement->key);
}

bool as_pod_shape_reads_name(const struct as_pod_shape *shape)
{
    bool reads_name = false;
    for (size_t i = 0; shape->selector && i < shape->selector->count; i++)
        reads_name |= is_hostname(shape->selector->items[i].name);
    each_requirement(shape, note_name, &reads_name);
    return reads_name;
}

/* Keys */

struct key_list {
    const char **keys; /* NULL: they are only counted */
    size_t count;
};

static void add_key(struct key_list *list, const char *key)
{
    if (is_hostname(key))
        return;
    if (list->keys)
        list->keys[list->count] = key;
    list->count++;
}

static void add_requirement(const struct as_node_requirement *requirement, void *context)
{
    if (!requirement->is_field)
        add_key(context, requirement->key);
}

static void list_keys(struct key_list *list, const struct as_pending *pending, size_t count)
{
    list->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct as_pod_shape *shape = pending[i].shape;
        for (size_t k = 0; shape->selector && k < shape->selector->count; k++)
            add_key(list, shape->selector->items[k].name);
        each_requirement(shape, add_requirement, list);
        for (size_t k = 0; shape->zone && k < AS_ARRAY_SIZE(zone_labels); k++)
            add_key(list, zone_labels[k]);
    }
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void as_node_classes_init(struct as_node_classes *classes, const struct as_pending *pending,
                          size_t count, size_t node_max, struct as_arena *arena)
{
    struct key_list list = {.keys = NULL};

    *classes = (struct as_node_classes){.arena = arena, .slot_count = 2};
    list_keys(&list, pending, count);
    list.keys = as_arena_alloc(arena, list.count, sizeof(*list.keys));
    list_keys(&list, pending, count);
    qsort(list.keys, list.count, sizeof(*list.keys), compare_texts);
    classes->keys = list.keys;
    for (size_t i = 0; i < list.count; i++)
        if (i == 0 || strcmp(list.keys[i], classes->keys[classes->key_count - 1]) != 0)
            classes->keys[classes->key_count++] = list.keys[i];

    while (classes->slot_count < 2 * node_max)
        classes->slot_count *= 2;
    classes->items = as_arena_alloc(arena, node_max, sizeof(*classes->items));
    classes->slots = as_arena_alloc(arena, classes->slot_count, sizeof(*classes->slots));
    classes->scratch = as_arena_alloc(arena, classes->key_count, sizeof(*classes->scratch));
}

/* Nodes */

/* FNV-1a 64 over the text and its NUL. NULL has a digest of its own. */
static uint64_t digest(uint64_t state, const char *text)
{
    const uint64_t prime = UINT64_C(0x100000001b3);
    if (!text)
        return (state ^ 0xff) * prime;
    do
        state = (state ^ (unsigned char)*text) * prime;
    while (*text++);
    return state;
}

static uint64_t digest_node(const struct as_node_shape *node, const char *const *values,
                            size_t count)
{
    uint64_t state = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++)
        state = digest(state, values[i]);
    for (size_t i = 0; i < node->taint_count; i++) {
        state = digest(state, node->taints[i].key);
        state = digest(state, node->taints[i].value);
        state ^= (uint64_t)node->taints[i].effect;
    }
    return state;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Equal taints in another order make another class: labels and taints are then read once more. */
static bool has_same_taints(const struct as_node_shape *a, const struct as_node_shape *b)
{
    if (a->taint_count != b->taint_count)
        return false;
    for (size_t i = 0; i < a->taint_count; i++)
        if (a->taints[i].effect != b->taints[i].effect ||
            strcmp(a->taints[i].key, b->taints[i].key) != 0 ||
            strcmp(a->taints[i].value, b->taints[i].value) != 0)
            return false;
    return true;
}

static bool is_of_class(const struct as_node_classes *classes, const struct as_node_class *class,
                        const struct as_node_shape *node, uint64_t node_digest)
{
    if (class->digest != node_digest || !has_same_taints(class->node, node))
        return false;
    for (size_t i = 0; i < classes->key_count; i++)
        if (!is_same_text(class->values[i], classes->scratch[i]))
            return false;
    return true;
}

static uint32_t add_class(struct as_node_classes *classes, const struct as_node_shape *node,
                          uint64_t node_digest)
{
    const size_t size = classes->key_count * sizeof(*classes->scratch);
    const char **values = as_arena_alloc_raw(classes->arena, size);
    if (size > 0)
        memcpy(values, classes->scratch, size);
    classes->items[classes->count] =
        (struct as_node_class){.digest = node_digest, .node = node, .values = values};
    return classes->count++;
}

uint32_t as_node_classes_take(struct as_node_classes *classes, const struct as_node_shape *node)
{
    for (size_t i = 0; i < classes->key_count; i++)
        classes->scratch[i] = as_labels_find(node->labels, classes->keys[i]);
    const uint64_t node_digest = digest_node(node, classes->scratch, classes->key_count);
    const size_t mask = classes->slot_count - 1;
    size_t slot = (size_t)(node_digest ^ node_digest >> 32) & mask;
    for (; classes->slots[slot] > 0; slot = (slot + 1) & mask)
        if (is_of_class(classes, &classes->items[classes->slots[slot] - 1], node, node_digest))
            return classes->slots[slot] - 1;
    const uint32_t added = add_class(classes, node, node_digest);
    classes->slots[slot] = added + 1;
    return added;
}
