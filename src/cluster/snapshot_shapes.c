/*
 * Shapes of pods: keys as bytes, and the shapes of a snapshot. Two pods of one shape are equal for
 * placing and evicting.
 *
 * A shape's key is what placing reads, then what evicting reads. Its digest is over the first part.
 * Equal shapes have equal keys on every machine, as decision documents name shapes by their digest.
 * The module places no pod.
 */
#include "snapshot_shapes.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/str.h>

void shape_key_add_number(struct as_buf *key, uint64_t number)
{
    const uint64_t bytes = htole64(number);

    as_buf_append(key, &bytes, sizeof(bytes));
}

void shape_key_add_text(struct as_buf *key, const char *text)
{
    as_buf_append_char(key, text ? 't' : 'n');
    as_buf_append(key, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void shapes_add_requirement(struct as_buf *key,
                                   const struct as_node_requirement *requirement)
{
    shape_key_add_text(key, requirement->key);
    shape_key_add_number(key, requirement->operator_);
    shape_key_add_number(key, requirement->is_field);
    shape_key_add_number(key, requirement->value_count);
    for (size_t i = 0; i < requirement->value_count; i++)
        shape_key_add_text(key, requirement->values[i]);
}

void shape_key_add_affinity(struct as_buf *key, const struct as_pod_shape *shape)
{
    shape_key_add_number(key, shape->has_affinity);
    shape_key_add_number(key, shape->term_count);
    for (size_t i = 0; i < shape->term_count; i++) {
        shape_key_add_number(key, shape->terms[i].count);
        for (size_t k = 0; k < shape->terms[i].count; k++)
            shapes_add_requirement(key, &shape->terms[i].requirements[k]);
    }
}

void shape_key_add_tolerations(struct as_buf *key, const struct as_pod_shape *shape)
{
    shape_key_add_number(key, shape->toleration_count);
    for (size_t i = 0; i < shape->toleration_count; i++) {
        shape_key_add_text(key, shape->tolerations[i].key);
        shape_key_add_text(key, shape->tolerations[i].value);
        shape_key_add_number(key, shape->tolerations[i].is_exists);
        shape_key_add_number(key, shape->tolerations[i].effects);
    }
}

void shape_key_add_ports(struct as_buf *key, const struct as_pod_shape *shape)
{
    shape_key_add_number(key, shape->port_count);
    for (size_t i = 0; i < shape->port_count; i++) {
        shape_key_add_text(key, shape->ports[i].ip);
        shape_key_add_text(key, shape->ports[i].protocol);
        shape_key_add_number(key, shape->ports[i].port);
    }
}

/* Shapes of a snapshot */

#define SLOTS_FIRST    1024
#define NEVER_PREEMPTS (1U << 16) /* beside `unchecked`: other shapes keep their digests */
#define SHAPE_COST     8          /* fits of making a shape, without its budgets */

uint64_t snapshot_digest(const void *key, size_t size)
{
    const unsigned char *bytes = key;
    uint64_t state = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        state = (state ^ bytes[i]) * UINT64_C(0x100000001b3);
    return state;
}

/* Tables */

typedef bool is_wanted_fn(const void *item, const void *wanted);

static struct snapshot_slot *find_slot(const struct snapshot_table *table, uint64_t hash,
                                       is_wanted_fn *is_wanted, const void *wanted)
{
    const size_t mask = table->slot_count - 1;
    size_t at = (size_t)(hash ^ hash >> 32) & mask;

    while (table->slots[at].item && (table->slots[at].hash != hash || !is_wanted ||
                                     !is_wanted(table->slots[at].item, wanted)))
        at = (at + 1) & mask;
    return &table->slots[at];
}

static void shapes_resize(struct snapshot_table *table, size_t slot_count, struct as_arena *arena)
{
    struct snapshot_table larger = {
        .slots = as_arena_alloc(arena, slot_count, sizeof(*larger.slots)),
        .slot_count = slot_count,
        .count = table->count,
    };

    for (size_t i = 0; i < table->slot_count; i++)
        if (table->slots[i].item)
            *find_slot(&larger, table->slots[i].hash, NULL, NULL) = table->slots[i];
    *table = larger;
}

static void shapes_put(struct snapshot_table *table, uint64_t hash, void *item,
                       struct as_arena *arena)
{
    *find_slot(table, hash, NULL, NULL) = (struct snapshot_slot){hash, item};
    if (2 * ++table->count > table->slot_count)
        shapes_resize(table, 2 * table->slot_count, arena);
}

/* Budgets */

static int compare_budgets(const void *a, const void *b)
{
    const struct as_budget_fact *const *left = a, *const *right = b;
    const int order = strcmp((*left)->namespace_, (*right)->namespace_);

    return order ? order : strcmp((*left)->name, (*right)->name);
}

void snapshot_shapes_init(struct snapshot_shapes *shapes, const struct as_cluster *cluster,
                          struct as_arena *arena)
{
    *shapes = (struct snapshot_shapes){.cluster = cluster, .arena = arena};
    shapes->last = &shapes->first;
    shapes_resize(&shapes->by_source, SLOTS_FIRST, arena);
    shapes_resize(&shapes->by_key, SLOTS_FIRST, arena);
    shapes->budgets = as_arena_alloc(arena, cluster->budget_count, sizeof(*shapes->budgets));
    for (size_t i = 0; i < cluster->budget_count; i++)
        shapes->budgets[i] = &cluster->budgets[i];
    if (cluster->budget_count > 1)
        qsort(shapes->budgets, cluster->budget_count, sizeof(*shapes->budgets), compare_budgets);
}

/* The first budget of the namespace, or of a later one. */
static size_t find_budget(const struct snapshot_shapes *shapes, const char *namespace_)
{
    size_t from = 0, to = shapes->cluster->budget_count;

    while (from < to) {
        const size_t middle = from + (to - from) / 2;

        if (strcmp(shapes->budgets[middle]->namespace_, namespace_) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* A budget selects labels as a term of a node affinity does, but without requirements it selects
 * all pods of its namespace. */
static bool selects(const struct as_budget_fact *budget, const struct as_labels *labels)
{
    const struct as_node_term term = {.requirements = budget->requirements, .count = budget->count};
    const struct as_pod_shape wanted = {.has_affinity = true, .terms = &term, .term_count = 1};
    const struct as_node_shape pod = {.labels = labels};

    if (budget->is_nothing)
        return false;
    return budget->count == 0 || as_node_admits(&pod, &wanted) == AS_FITS;
}

static void find_budgets(struct snapshot_shapes *shapes, const struct as_pod_shape *source,
                         struct as_snapshot_shape *shape)
{
    const size_t total = shapes->cluster->budget_count;
    const size_t from =
        source->namespace_ && source->labels ? find_budget(shapes, source->namespace_) : total;
    size_t end = from;

    while (end < total && strcmp(shapes->budgets[end]->namespace_, source->namespace_) == 0)
        end++;
    uint32_t *found = as_arena_alloc(shapes->arena, end - from, sizeof(*found));
    for (size_t i = from; i < end; i++)
        if (selects(shapes->budgets[i], source->labels))
            found[shape->budget_count++] = (uint32_t)i;
    shape->budgets = found;
    shapes->cost += end - from;
}

/* Keys */

/* By name: an index means something in one process only. */
static void shapes_add_requests(struct as_buf *key, const struct as_resources *requests,
                                const struct as_res_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        if (requests->amount[i] == 0)
            continue;
        shape_key_add_number(key, i < AS_RES_NAMED ? i : AS_RES_NAMED);
        if (i >= AS_RES_NAMED)
            shape_key_add_text(key, names->name[i]);
        shape_key_add_number(key, (uint64_t)requests->amount[i]);
    }
    shape_key_add_number(key, AS_RES_MAX);
}

static void add_selector(struct as_buf *key, const struct as_labels *selector)
{
    const uint32_t count = selector ? selector->count : 0;

    shape_key_add_number(key, count);
    for (uint32_t i = 0; i < count; i++) {
        shape_key_add_text(key, selector->items[i].name);
        shape_key_add_text(key, selector->items[i].value);
    }
}

static void add_placing(struct as_buf *key, const struct as_pod_shape *pod,
                        const struct as_res_names *names)
{
    shapes_add_requests(key, &pod->requests, names);
    add_selector(key, pod->selector);
    shape_key_add_affinity(key, pod);
    shape_key_add_tolerations(key, pod);
    shape_key_add_ports(key, pod);
    shape_key_add_number(key, pod->loner);
    shape_key_add_text(key, pod->zone);
    shape_key_add_number(key, pod->unchecked | (pod->never_preempts ? NEVER_PREEMPTS : 0));
}

static void add_evicting(struct as_buf *key, const struct as_snapshot_shape *shape)
{
    shape_key_add_number(key, (uint64_t)(int64_t)shape->pod.priority);
    shape_key_add_number(key, shape->pod.eviction);
    for (size_t i = 0; i < shape->budget_count; i++)
        shape_key_add_number(key, shape->budgets[i]);
}

/* Shapes */

struct source { /* whose shape is known */
    const struct as_pod_shape *pod;
    const char *zone;
    struct snapshot_shape *shape;
};

static bool is_source(const void *item, const void *wanted)
{
    const struct source *a = item, *b = wanted;

    return a->pod == b->pod && as_str_equal(a->zone ? a->zone : "", b->zone ? b->zone : "");
}

static bool has_key(const void *item, const void *wanted)
{
    const struct snapshot_shape *shape = item;
    const struct as_buf *key = wanted;

    return shape->key_size == key->size && memcmp(shape->key, key->data, key->size) == 0;
}

static struct snapshot_shape *add_shape(struct snapshot_shapes *shapes,
                                        const struct as_snapshot_shape *shape)
{
    struct snapshot_shape *added = as_arena_alloc(shapes->arena, 1, sizeof(*added));

    *added = (struct snapshot_shape){.shape = *shape, .number = SNAPSHOT_NO_NUMBER};
    *shapes->last = added;
    shapes->last = &added->next;
    shapes->count++;
    return added;
}

static struct snapshot_shape *find_or_add(struct snapshot_shapes *shapes,
                                          struct as_snapshot_shape *shape)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf key = AS_BUF_INIT_OPEN(SNAPSHOT_SHAPE_BYTES_MAX);

    add_placing(&key, &shape->pod, &shapes->cluster->resources);
    shape->digest = snapshot_digest(key.data, key.size);
    add_evicting(&key, shape);
    shapes->cost += SHAPE_COST + key.size / 64;
    if (key.failed)
        return add_shape(shapes, shape);
    const uint64_t hash = snapshot_digest(key.data, key.size);
    const struct snapshot_slot *slot = find_slot(&shapes->by_key, hash, has_key, &key);
    if (slot->item)
        return slot->item;
    struct snapshot_shape *added = add_shape(shapes, shape);
    added->key = memcpy(as_arena_alloc_raw(shapes->arena, key.size), key.data, key.size);
    added->key_size = key.size;
    shapes_put(&shapes->by_key, hash, added, shapes->arena);
    return added;
}

struct snapshot_shape *snapshot_shapes_take(struct snapshot_shapes *shapes,
                                            const struct as_pod_shape *source, const char *zone)
{
    const struct source wanted = {.pod = source, .zone = zone};
    const uint64_t hash =
        snapshot_digest(&source, sizeof(source)) ^ (zone ? snapshot_digest(zone, strlen(zone)) : 0);
    const struct snapshot_slot *slot = find_slot(&shapes->by_source, hash, is_source, &wanted);

    if (slot->item)
        return ((struct source *)slot->item)->shape;
    struct as_snapshot_shape shape = {.pod = *source};
    shape.pod.labels = NULL;
    shape.pod.namespace_ = NULL;
    shape.pod.zone = zone ? zone : source->zone;
    find_budgets(shapes, source, &shape);
    struct source *added = as_arena_alloc(shapes->arena, 1, sizeof(*added));
    *added = wanted;
    added->shape = find_or_add(shapes, &shape);
    shapes_put(&shapes->by_source, hash, added, shapes->arena);
    return added->shape;
}
