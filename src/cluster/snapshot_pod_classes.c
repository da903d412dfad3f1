/*
 * Pod classes: keys as bytes, and the pod classes of a snapshot. Two pods of one pod class are
 * equal for placing and evicting.
 *
 * A pod class's key is what placing reads, then what evicting reads. Its digest is over the first
 * part. Equal pod classes have equal keys on every machine, as decision documents name pod classes
 * by their digest. The module places no pod.
 */
#include "snapshot_pod_classes.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/str.h>

void class_key_add_number(struct as_buf *key, uint64_t number)
{
    const uint64_t bytes = htole64(number);

    as_buf_append(key, &bytes, sizeof(bytes));
}

void class_key_add_text(struct as_buf *key, const char *text)
{
    as_buf_append_char(key, text ? 't' : 'n');
    as_buf_append(key, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void pod_classes_add_requirement(struct as_buf *key,
                                        const struct as_node_requirement *requirement)
{
    class_key_add_text(key, requirement->key);
    class_key_add_number(key, requirement->operator_);
    class_key_add_number(key, requirement->is_field);
    class_key_add_number(key, requirement->value_count);
    for (size_t i = 0; i < requirement->value_count; i++)
        class_key_add_text(key, requirement->values[i]);
}

void class_key_add_affinity(struct as_buf *key, const struct as_pod_class *pod_class)
{
    class_key_add_number(key, pod_class->has_affinity);
    class_key_add_number(key, pod_class->term_count);
    for (size_t i = 0; i < pod_class->term_count; i++) {
        class_key_add_number(key, pod_class->terms[i].count);
        for (size_t k = 0; k < pod_class->terms[i].count; k++)
            pod_classes_add_requirement(key, &pod_class->terms[i].requirements[k]);
    }
}

void class_key_add_tolerations(struct as_buf *key, const struct as_pod_class *pod_class)
{
    class_key_add_number(key, pod_class->toleration_count);
    for (size_t i = 0; i < pod_class->toleration_count; i++) {
        class_key_add_text(key, pod_class->tolerations[i].key);
        class_key_add_text(key, pod_class->tolerations[i].value);
        class_key_add_number(key, pod_class->tolerations[i].is_exists);
        class_key_add_number(key, pod_class->tolerations[i].effects);
    }
}

void class_key_add_ports(struct as_buf *key, const struct as_pod_class *pod_class)
{
    class_key_add_number(key, pod_class->port_count);
    for (size_t i = 0; i < pod_class->port_count; i++) {
        class_key_add_text(key, pod_class->ports[i].ip);
        class_key_add_text(key, pod_class->ports[i].protocol);
        class_key_add_number(key, pod_class->ports[i].port);
    }
}

/* Pod classes of a snapshot */

#define SLOTS_FIRST    1024
#define NEVER_PREEMPTS (1U << 16) /* beside `unchecked`: other pod classes keep their digests */
#define POD_CLASS_COST 8          /* fits of making a pod class, without its budgets */

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

static void pod_classes_resize(struct snapshot_table *table, size_t slot_count,
                               struct as_arena *arena)
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

static void pod_classes_put(struct snapshot_table *table, uint64_t hash, void *item,
                            struct as_arena *arena)
{
    *find_slot(table, hash, NULL, NULL) = (struct snapshot_slot){hash, item};
    if (2 * ++table->count > table->slot_count)
        pod_classes_resize(table, 2 * table->slot_count, arena);
}

/* Budgets */

static int compare_budgets(const void *a, const void *b)
{
    const struct as_budget_fact *const *left = a, *const *right = b;
    const int order = strcmp((*left)->namespace_, (*right)->namespace_);

    return order ? order : strcmp((*left)->name, (*right)->name);
}

void snapshot_pod_classes_init(struct snapshot_pod_classes *pod_classes,
                               const struct as_cluster *cluster, struct as_arena *arena)
{
    *pod_classes = (struct snapshot_pod_classes){.cluster = cluster, .arena = arena};
    pod_classes->last = &pod_classes->first;
    pod_classes_resize(&pod_classes->by_source, SLOTS_FIRST, arena);
    pod_classes_resize(&pod_classes->by_key, SLOTS_FIRST, arena);
    pod_classes->budgets =
        as_arena_alloc(arena, cluster->budget_count, sizeof(*pod_classes->budgets));
    for (size_t i = 0; i < cluster->budget_count; i++)
        pod_classes->budgets[i] = &cluster->budgets[i];
    if (cluster->budget_count > 1)
        qsort(pod_classes->budgets, cluster->budget_count, sizeof(*pod_classes->budgets),
              compare_budgets);
}

/* The first budget of the namespace, or of a later one. */
static size_t find_budget(const struct snapshot_pod_classes *pod_classes, const char *namespace_)
{
    size_t from = 0, to = pod_classes->cluster->budget_count;

    while (from < to) {
        const size_t middle = from + (to - from) / 2;

        if (strcmp(pod_classes->budgets[middle]->namespace_, namespace_) < 0)
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
    const struct as_pod_class wanted = {.has_affinity = true, .terms = &term, .term_count = 1};
    const struct as_node_shape pod = {.labels = labels};

    if (budget->is_nothing)
        return false;
    return budget->count == 0 || as_node_admits(&pod, &wanted) == AS_FITS;
}

static void find_budgets(struct snapshot_pod_classes *pod_classes,
                         const struct as_pod_class *source, struct as_snapshot_pod_class *pod_class)
{
    const size_t total = pod_classes->cluster->budget_count;
    const size_t from =
        source->namespace_ && source->labels ? find_budget(pod_classes, source->namespace_) : total;
    size_t end = from;

    while (end < total && strcmp(pod_classes->budgets[end]->namespace_, source->namespace_) == 0)
        end++;
    uint32_t *found = as_arena_alloc(pod_classes->arena, end - from, sizeof(*found));
    for (size_t i = from; i < end; i++)
        if (selects(pod_classes->budgets[i], source->labels))
            found[pod_class->budget_count++] = (uint32_t)i;
    pod_class->budgets = found;
    pod_classes->cost += end - from;
}

/* Keys */

/* By name: an index means something in one process only. */
static void pod_classes_add_requests(struct as_buf *key, const struct as_resources *requests,
                                     const struct as_res_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        if (requests->amount[i] == 0)
            continue;
        class_key_add_number(key, i < AS_RES_NAMED ? i : AS_RES_NAMED);
        if (i >= AS_RES_NAMED)
            class_key_add_text(key, names->name[i]);
        class_key_add_number(key, (uint64_t)requests->amount[i]);
    }
    class_key_add_number(key, AS_RES_MAX);
}

static void add_selector(struct as_buf *key, const struct as_labels *selector)
{
    const uint32_t count = selector ? selector->count : 0;

    class_key_add_number(key, count);
    for (uint32_t i = 0; i < count; i++) {
        class_key_add_text(key, selector->items[i].name);
        class_key_add_text(key, selector->items[i].value);
    }
}

static void add_placing(struct as_buf *key, const struct as_pod_class *pod,
                        const struct as_res_names *names)
{
    pod_classes_add_requests(key, &pod->requests, names);
    add_selector(key, pod->selector);
    class_key_add_affinity(key, pod);
    class_key_add_tolerations(key, pod);
    class_key_add_ports(key, pod);
    class_key_add_number(key, pod->loner);
    class_key_add_text(key, pod->zone);
    class_key_add_number(key, pod->unchecked | (pod->never_preempts ? NEVER_PREEMPTS : 0));
}

static void add_evicting(struct as_buf *key, const struct as_snapshot_pod_class *pod_class)
{
    class_key_add_number(key, (uint64_t)(int64_t)pod_class->pod.priority);
    class_key_add_number(key, pod_class->pod.eviction);
    for (size_t i = 0; i < pod_class->budget_count; i++)
        class_key_add_number(key, pod_class->budgets[i]);
}

/* Pod classes */

struct source { /* whose pod class is known */
    const struct as_pod_class *pod;
    const char *zone;
    struct snapshot_pod_class *pod_class;
};

static bool is_source(const void *item, const void *wanted)
{
    const struct source *a = item, *b = wanted;

    return a->pod == b->pod && as_str_equal(a->zone ? a->zone : "", b->zone ? b->zone : "");
}

static bool has_key(const void *item, const void *wanted)
{
    const struct snapshot_pod_class *pod_class = item;
    const struct as_buf *key = wanted;

    return pod_class->key_size == key->size && memcmp(pod_class->key, key->data, key->size) == 0;
}

static struct snapshot_pod_class *add_pod_class(struct snapshot_pod_classes *pod_classes,
                                                const struct as_snapshot_pod_class *pod_class)
{
    struct snapshot_pod_class *added = as_arena_alloc(pod_classes->arena, 1, sizeof(*added));

    *added = (struct snapshot_pod_class){.pod_class = *pod_class, .number = SNAPSHOT_NO_NUMBER};
    *pod_classes->last = added;
    pod_classes->last = &added->next;
    pod_classes->count++;
    return added;
}

static struct snapshot_pod_class *find_or_add(struct snapshot_pod_classes *pod_classes,
                                              struct as_snapshot_pod_class *pod_class)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf key = AS_BUF_INIT_OPEN(SNAPSHOT_POD_CLASS_BYTES_MAX);

    add_placing(&key, &pod_class->pod, &pod_classes->cluster->resources);
    pod_class->digest = snapshot_digest(key.data, key.size);
    add_evicting(&key, pod_class);
    pod_classes->cost += POD_CLASS_COST + key.size / 64;
    if (key.failed)
        return add_pod_class(pod_classes, pod_class);
    const uint64_t hash = snapshot_digest(key.data, key.size);
    const struct snapshot_slot *slot = find_slot(&pod_classes->by_key, hash, has_key, &key);
    if (slot->item)
        return slot->item;
    struct snapshot_pod_class *added = add_pod_class(pod_classes, pod_class);
    added->key = memcpy(as_arena_alloc_raw(pod_classes->arena, key.size), key.data, key.size);
    added->key_size = key.size;
    pod_classes_put(&pod_classes->by_key, hash, added, pod_classes->arena);
    return added;
}

struct snapshot_pod_class *snapshot_pod_classes_take(struct snapshot_pod_classes *pod_classes,
                                                     const struct as_pod_class *source,
                                                     const char *zone)
{
    const struct source wanted = {.pod = source, .zone = zone};
    const uint64_t hash =
        snapshot_digest(&source, sizeof(source)) ^ (zone ? snapshot_digest(zone, strlen(zone)) : 0);
    const struct snapshot_slot *slot = find_slot(&pod_classes->by_source, hash, is_source, &wanted);

    if (slot->item)
        return ((struct source *)slot->item)->pod_class;
    struct as_snapshot_pod_class pod_class = {.pod = *source};
    pod_class.pod.labels = NULL;
    pod_class.pod.namespace_ = NULL;
    pod_class.pod.zone = zone ? zone : source->zone;
    find_budgets(pod_classes, source, &pod_class);
    struct source *added = as_arena_alloc(pod_classes->arena, 1, sizeof(*added));
    *added = wanted;
    added->pod_class = find_or_add(pod_classes, &pod_class);
    pod_classes_put(&pod_classes->by_source, hash, added, pod_classes->arena);
    return added->pod_class;
}
