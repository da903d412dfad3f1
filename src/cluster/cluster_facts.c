/*
 * The facts of one cluster, and the view of them.
 *
 * Pods stand in an array without gaps, in no order, and are found by hash tables; the last pod
 * fills the place of a deleted one. There are several tables because one that grows moves all that
 * it has: in a table of all pods that takes longer than a turn of the event loop may last. Nodes
 * and budgets are sorted.
 *
 * A pod holds the slot of its node's name, and the slot knows the node's rank: so a change of a
 * pod touches nothing else. A change of the set of nodes makes the ranks stale; the next view
 * renews them, in all pods.
 */
#include <alertscaler/cluster/cluster_facts.h>

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/model/labels.h>

#include "snapshot_pod_classes.h"

/*
 * Pod classes, and sets of labels, which pod classes share. Each is kept once: equal pods hold the
 * same pod class. A pod class lives as long as a pod holds it.
 */

struct pod_classes {
    struct pod_class_entry *pod_classes;
    struct label_entry *labels;
    struct as_buf key; /* of the pod class in hand */
    size_t bytes;      /* of memory, without the tables */
};

#define POD_CLASSES_INIT ((struct pod_classes){.key = AS_BUF_INIT_OPEN((size_t)64 << 20)})

/*
 * Nodes or budgets: an array of facts, sorted by their keys, and beside it what keeps each of them.
 */

struct fact_row {
    const char *key; /* in the block */
    void *block;     /* what the fact points to */
    size_t block_size;
    struct as_labels *labels; /* NULL: it has none */
    uint32_t slot;            /* of a node's name */
    uint32_t list;            /* that named it last */
};

struct fact_rows {
    size_t size; /* of a fact */
    size_t count, capacity, row_capacity;
    char *facts;
    struct fact_row *rows;
    size_t bytes; /* of what rows keep */
};

/*
 * Copies what facts have into one block each. The same functions measure and copy: with `base` NULL
 * they only count, and return NULL.
 */

struct fact_block {
    char *base;
    size_t used;
};

/*
 * Names of nodes, each kept once, in numbered slots: pods hold the slot of their node, whether the
 * node is known or not. Slot 0 is no name.
 */

struct node_names {
    struct node_name *all;
    struct node_name **slots; /* NULL: free */
    uint32_t *ranks; /* by slot: the node's place among all nodes; AS_NO_NODE: it is not known */
    size_t count, slot_capacity, rank_capacity;
    uint32_t *free_slots;
    size_t free_count, free_capacity;
    size_t bytes; /* of names */
};

/*
 * By which labels of pods budgets select: these are the labels that pod classes keep. Others, which
 * may differ from pod to pod, would make a pod class of each pod.
 */

struct label_keys {
    char **keys;
    size_t count, capacity;
    size_t bytes; /* of keys */
    struct as_arena scratch;
};

static void label_keys_deinit(struct label_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        free(keys->keys[i]);
    free(keys->keys);
    as_arena_deinit(&keys->scratch);
    *keys = (struct label_keys){.scratch = AS_ARENA_INIT};
}

static size_t label_keys_measure(const struct label_keys *keys)
{
    return keys->bytes + keys->capacity * sizeof(*keys->keys);
}

/* There are few: most budgets select by the same one or two. */
static bool label_keys_have(const struct label_keys *keys, const char *key)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->keys[i], key) == 0)
            return true;
    }
    return false;
}

/* Whether there was one that is new. */
static bool label_keys_add(struct label_keys *keys, const struct as_budget_fact *budget)
{
    const size_t before = keys->count;

    for (size_t i = 0; i < budget->count; i++) {
        const char *key = budget->requirements[i].key;
        if (label_keys_have(keys, key))
            continue;
        keys->keys = as_xgrow(keys->keys, keys->count, &keys->capacity, sizeof(*keys->keys));
        keys->keys[keys->count++] = as_xstrdup(key);
        keys->bytes += strlen(key) + 1 + AS_ALLOC_EXTRA;
    }
    return keys->count > before;
}

/* Those of the labels that have one of the keys; good until the next call. NULL stays NULL. */
static const struct as_labels *label_keys_filter(struct label_keys *keys,
                                                 const struct as_labels *labels)
{
    const struct as_labels *kept;
    size_t count = 0;

    if (!labels)
        return NULL;
    as_arena_reset(&keys->scratch);
    struct as_label *pairs = as_arena_alloc(&keys->scratch, labels->count, sizeof(*pairs));
    for (uint32_t i = 0; i < labels->count; i++) {
        if (label_keys_have(keys, labels->items[i].name))
            pairs[count++] = labels->items[i];
    }
    if (as_labels_new_in(&keys->scratch, pairs, count, &kept) < 0)
        abort(); /* part of a set of labels is one */
    return kept;
}

struct node_name {
    UT_hash_handle hh;
    size_t holders;
    uint32_t slot;
    char text[];
};

static size_t node_name_measure(const struct node_name *name)
{
    return sizeof(*name) + strlen(name->text) + 1 + AS_ALLOC_EXTRA;
}

static uint32_t append_slot(struct node_names *names)
{
    names->slots =
        as_xgrow(names->slots, names->count, &names->slot_capacity, sizeof(struct node_name *));
    names->ranks = as_xgrow(names->ranks, names->count, &names->rank_capacity, sizeof(uint32_t));
    names->slots[names->count] = NULL;
    names->ranks[names->count] = AS_NO_NODE;
    return (uint32_t)names->count++;
}

static uint32_t take_slot(struct node_names *names)
{
    if (names->count == 0 && append_slot(names) != 0)
        abort(); /* slot 0 is no name */
    return names->free_count > 0 ? names->free_slots[--names->free_count] : append_slot(names);
}

/* One more holds it. NULL: slot 0. */
static uint32_t node_names_take(struct node_names *names, const char *text)
{
    struct node_name *name;

    if (!text)
        return 0;
    const size_t size = strlen(text);
    HASH_FIND(hh, names->all, text, size, name);
    if (!name) {
        name = as_xcalloc(1, sizeof(*name) + size + 1);
        memcpy(name->text, text, size);
        name->slot = take_slot(names);
        names->slots[name->slot] = name;
        HASH_ADD_KEYPTR(hh, names->all, name->text, size, name);
        names->bytes += node_name_measure(name);
    }
    name->holders++;
    return name->slot;
}

static void node_names_release(struct node_names *names, uint32_t slot)
{
    struct node_name *name = slot == 0 ? NULL : names->slots[slot];

    if (!name || --name->holders > 0)
        return;
    names->slots[slot] = NULL;
    names->ranks[slot] = AS_NO_NODE;
    names->free_slots = as_xgrow(names->free_slots, names->free_count, &names->free_capacity,
                                 sizeof(*names->free_slots));
    names->free_slots[names->free_count++] = slot;
    names->bytes -= node_name_measure(name);
    HASH_DEL(names->all, name);
    free(name);
}

/* of which nothing is taken */
static void node_names_deinit(struct node_names *names)
{
    assert(!names->all);
    free(names->slots);
    free(names->ranks);
    free(names->free_slots);
    *names = (struct node_names){.all = NULL};
}

/* HASH_OVERHEAD counts the handles, which are part of the names. */
static size_t node_names_measure(const struct node_names *names)
{
    return names->bytes + names->slot_capacity * sizeof(struct node_name *) +
           (names->rank_capacity + names->free_capacity) * sizeof(uint32_t) +
           HASH_OVERHEAD(hh, names->all) - HASH_COUNT(names->all) * sizeof(UT_hash_handle);
}

/* aligned for pointers */
static void *fact_block_take(struct fact_block *block, size_t count, size_t size)
{
    const size_t align = alignof(int64_t);
    const size_t at = (block->used + align - 1) / align * align;

    block->used = at + count * size;
    return block->base ? block->base + at : NULL;
}

/* NULL stays NULL */
static const char *fact_block_text(struct fact_block *block, const char *text)
{
    if (!text)
        return NULL;
    const size_t size = strlen(text) + 1;
    char *copy = block->base ? block->base + block->used : NULL;
    block->used += size;
    return copy ? memcpy(copy, text, size) : NULL;
}

static const struct as_taint *fact_block_taints(struct fact_block *block,
                                                const struct as_taint *taints, size_t count)
{
    struct as_taint *copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_taint copy = taints[i];
        copy.key = fact_block_text(block, copy.key);
        copy.value = fact_block_text(block, copy.value);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

static const struct as_toleration *fact_block_tolerations(struct fact_block *block,
                                                          const struct as_toleration *tolerations,
                                                          size_t count)
{
    struct as_toleration *copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_toleration copy = tolerations[i];
        copy.key = fact_block_text(block, copy.key);
        copy.value = fact_block_text(block, copy.value);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

static const struct as_host_port *fact_block_ports(struct fact_block *block,
                                                   const struct as_host_port *ports, size_t count)
{
    struct as_host_port *copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_host_port copy = ports[i];
        copy.ip = fact_block_text(block, copy.ip);
        copy.protocol = fact_block_text(block, copy.protocol);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

static const char *const *fact_block_texts(struct fact_block *block, const char *const *texts,
                                           size_t count)
{
    const char **copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        const char *copy = fact_block_text(block, texts[i]);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

static const struct as_node_requirement *fact_block_requirements(
    struct fact_block *block, const struct as_node_requirement *requirements, size_t count)
{
    struct as_node_requirement *copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_node_requirement copy = requirements[i];
        copy.key = fact_block_text(block, copy.key);
        copy.values = fact_block_texts(block, copy.values, copy.value_count);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

static const struct as_node_term *fact_block_terms(struct fact_block *block,
                                                   const struct as_node_term *terms, size_t count)
{
    struct as_node_term *copies = fact_block_take(block, count, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        struct as_node_term copy = terms[i];
        copy.requirements = fact_block_requirements(block, copy.requirements, copy.count);
        if (copies)
            copies[i] = copy;
    }
    return copies;
}

static size_t measure_row(const struct fact_row *row)
{
    return row->block_size + AS_ALLOC_EXTRA + as_labels_measure(row->labels);
}

static size_t fact_rows_measure(const struct fact_rows *rows)
{
    return rows->bytes + rows->capacity * rows->size + rows->row_capacity * sizeof(struct fact_row);
}

/* Lists come sorted: the end is looked at first. */
static bool fact_rows_find(const struct fact_rows *rows, const char *key, size_t *place_out)
{
    size_t low = 0, high = rows->count;

    if (high > 0 && strcmp(rows->rows[high - 1].key, key) < 0)
        low = high;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(rows->rows[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *place_out = low;
    return low < rows->count && strcmp(rows->rows[low].key, key) == 0;
}

static void fact_rows_set(struct fact_rows *rows, size_t place, const struct fact_row *row,
                          const void *fact)
{
    rows->rows[place] = *row;
    memcpy(rows->facts + place * rows->size, fact, rows->size);
    rows->bytes += measure_row(row);
}

/* Frees what the row has, but for its slot. Compact the rows before anything else. */
static void fact_rows_drop(struct fact_rows *rows, size_t place)
{
    struct fact_row *row = &rows->rows[place];

    rows->bytes -= measure_row(row);
    free(row->block);
    as_labels_free(row->labels);
    row->key = NULL;
}

/* Row and fact are copied, and what the row has is taken over. */
static void fact_rows_insert(struct fact_rows *rows, size_t place, const struct fact_row *row,
                             const void *fact)
{
    rows->facts = as_xgrow(rows->facts, rows->count, &rows->capacity, rows->size);
    rows->rows = as_xgrow(rows->rows, rows->count, &rows->row_capacity, sizeof(rows->rows[0]));
    char *at = rows->facts + place * rows->size;
    memmove(at + rows->size, at, (rows->count - place) * rows->size);
    memmove(&rows->rows[place + 1], &rows->rows[place],
            (rows->count - place) * sizeof(rows->rows[0]));
    rows->count++;
    fact_rows_set(rows, place, row, fact);
}

/* Frees what the row that stood there had, but for its slot. */
static void fact_rows_replace(struct fact_rows *rows, size_t place, const struct fact_row *row,
                              const void *fact)
{
    fact_rows_drop(rows, place);
    fact_rows_set(rows, place, row, fact);
}

static void fact_rows_compact(struct fact_rows *rows)
{
    size_t kept = 0;

    for (size_t i = 0; i < rows->count; i++) {
        if (!rows->rows[i].key)
            continue;
        if (kept != i) {
            rows->rows[kept] = rows->rows[i];
            memcpy(rows->facts + kept * rows->size, rows->facts + i * rows->size, rows->size);
        }
        kept++;
    }
    rows->count = kept;
}

/* that are empty */
static void fact_rows_deinit(struct fact_rows *rows)
{
    assert(rows->count == 0);
    free(rows->facts);
    free(rows->rows);
    *rows = (struct fact_rows){.size = rows->size};
}

struct label_entry {
    UT_hash_handle hh; /* the key is the texts of the set */
    size_t holders;
    struct as_labels *labels;
};

struct pod_class_entry {
    struct as_pod_class pod_class; /* first: who has the pod class has the entry */
    UT_hash_handle hh;
    size_t holders, size; /* of the block */
};

/* Sets of labels */

static const void *get_texts(const struct as_labels *labels)
{
    return &labels->items[labels->count];
}

static size_t measure_labels(const struct label_entry *entry)
{
    return sizeof(*entry) + AS_ALLOC_EXTRA + as_labels_measure(entry->labels);
}

static const struct as_labels *take_labels(struct pod_classes *pod_classes,
                                           const struct as_labels *labels)
{
    struct label_entry *entry;

    if (!labels)
        return NULL;
    HASH_FIND(hh, pod_classes->labels, get_texts(labels), labels->bytes, entry);
    if (!entry) {
        entry = as_xcalloc(1, sizeof(*entry));
        entry->labels = as_labels_copy(labels);
        HASH_ADD_KEYPTR(hh, pod_classes->labels, get_texts(entry->labels), labels->bytes, entry);
        pod_classes->bytes += measure_labels(entry);
    }
    entry->holders++;
    return entry->labels;
}

static void release_labels(struct pod_classes *pod_classes, const struct as_labels *labels)
{
    struct label_entry *entry;

    if (!labels)
        return;
    HASH_FIND(hh, pod_classes->labels, get_texts(labels), labels->bytes, entry);
    assert(entry && entry->labels == labels);
    if (--entry->holders > 0)
        return;
    pod_classes->bytes -= measure_labels(entry);
    HASH_DEL(pod_classes->labels, entry);
    as_labels_free(entry->labels);
    free(entry);
}

/* Keys */

static void facts_add_requests(struct as_buf *key, const struct as_resources *requests)
{
    for (unsigned i = 0; i < AS_RES_MAX; i++) {
        if (requests->amount[i] == 0)
            continue;
        class_key_add_number(key, i);
        class_key_add_number(key, (uint64_t)requests->amount[i]);
    }
    class_key_add_number(key, AS_RES_MAX);
}

/* The pod class's labels are those of `pod_classes`. */
static void pod_class_make_key(struct as_buf *key, const struct as_pod_class *pod_class)
{
    as_buf_clear(key);
    facts_add_requests(key, &pod_class->requests);
    class_key_add_number(key, (uintptr_t)pod_class->selector);
    class_key_add_number(key, (uintptr_t)pod_class->labels);
    class_key_add_affinity(key, pod_class);
    class_key_add_tolerations(key, pod_class);
    class_key_add_ports(key, pod_class);
    class_key_add_number(key, pod_class->loner);
    class_key_add_text(key, pod_class->namespace_);
    class_key_add_text(key, pod_class->zone);
    class_key_add_number(key, (uint64_t)pod_class->priority);
    class_key_add_number(key, pod_class->never_preempts);
    class_key_add_number(key, pod_class->unchecked);
    class_key_add_number(key, pod_class->eviction);
    if (key->failed)
        abort(); /* no memory for it; its size is bounded by that of the pod's document */
}

/* Pod classes */

static void copy_pod_class(struct fact_block *block, struct as_pod_class *pod_class)
{
    pod_class->terms = fact_block_terms(block, pod_class->terms, pod_class->term_count);
    pod_class->tolerations =
        fact_block_tolerations(block, pod_class->tolerations, pod_class->toleration_count);
    pod_class->ports = fact_block_ports(block, pod_class->ports, pod_class->port_count);
    pod_class->namespace_ = fact_block_text(block, pod_class->namespace_);
    pod_class->zone = fact_block_text(block, pod_class->zone);
}

/* An entry, what its pod class points to, and its key, in one block. */
static struct pod_class_entry *make_entry(struct pod_classes *pod_classes,
                                          const struct as_pod_class *pod_class)
{
    struct as_pod_class copy = *pod_class;
    struct fact_block block = {.used = sizeof(struct pod_class_entry)};

    copy_pod_class(&block, &copy);
    const size_t size = block.used + pod_classes->key.size;
    struct pod_class_entry *entry = as_xcalloc(1, size);
    block = (struct fact_block){.base = (char *)entry, .used = sizeof(*entry)};
    *entry = (struct pod_class_entry){.pod_class = *pod_class, .size = size};
    copy_pod_class(&block, &entry->pod_class);
    char *key = memcpy(block.base + block.used, pod_classes->key.data, pod_classes->key.size);
    HASH_ADD_KEYPTR(hh, pod_classes->pod_classes, key, pod_classes->key.size, entry);
    pod_classes->bytes += size + AS_ALLOC_EXTRA;
    return entry;
}

/* The one that equals `pod_class`, which is borrowed; one more holds it. */
static const struct as_pod_class *pod_classes_take(struct pod_classes *pod_classes,
                                                   const struct as_pod_class *pod_class)
{
    struct as_pod_class wanted = *pod_class;
    struct pod_class_entry *entry;

    wanted.selector = take_labels(pod_classes, pod_class->selector);
    wanted.labels = take_labels(pod_classes, pod_class->labels);
    pod_class_make_key(&pod_classes->key, &wanted);
    HASH_FIND(hh, pod_classes->pod_classes, pod_classes->key.data, pod_classes->key.size, entry);
    if (entry) {
        release_labels(pod_classes, wanted.selector);
        release_labels(pod_classes, wanted.labels);
    } else {
        entry = make_entry(pod_classes, &wanted);
    }
    entry->holders++;
    return &entry->pod_class;
}

static void pod_classes_release(struct pod_classes *pod_classes,
                                const struct as_pod_class *pod_class)
{
    struct pod_class_entry *entry = (struct pod_class_entry *)pod_class;

    if (--entry->holders > 0)
        return;
    HASH_DEL(pod_classes->pod_classes, entry);
    release_labels(pod_classes, pod_class->selector);
    release_labels(pod_classes, pod_class->labels);
    pod_classes->bytes -= entry->size + AS_ALLOC_EXTRA;
    free(entry);
}

/* of which nothing is taken */
static void pod_classes_deinit(struct pod_classes *pod_classes)
{
    assert(!pod_classes->pod_classes && !pod_classes->labels);
    as_buf_deinit(&pod_classes->key);
}

/* HASH_OVERHEAD counts the handles, which are part of the entries. */
static size_t pod_classes_measure(const struct pod_classes *pod_classes)
{
    return pod_classes->bytes + pod_classes->key.capacity +
           HASH_OVERHEAD(hh, pod_classes->pod_classes) -
           HASH_COUNT(pod_classes->pod_classes) * sizeof(UT_hash_handle) +
           HASH_OVERHEAD(hh, pod_classes->labels) -
           HASH_COUNT(pod_classes->labels) * sizeof(UT_hash_handle);
}

#define KEY_SIZE   (2 * AS_CLUSTER_NAME_MAX + 2)
#define TABLE_BITS 5 /* of a hash, the highest: its table */
#define TABLES     (1 << TABLE_BITS)

struct pod {
    UT_hash_handle hh;
    uint32_t place; /* among all */
    uint32_t list;  /* that named it last */
    char key[];     /* "namespace/name" */
};

struct place { /* beside a pod's fact */
    struct pod *pod;
    uint32_t node, nominated; /* slots */
};

struct as_cluster_facts {
    size_t bytes_max;
    struct as_cluster view;
    struct fact_rows nodes, budgets;
    struct as_pod_fact *pods;
    struct place *places;
    size_t pod_count, pod_capacity, place_capacity;
    struct pod *tables[TABLES];
    size_t pod_bytes; /* of struct pod */
    struct node_names names;
    struct pod_classes pod_classes;
    struct label_keys keys; /* of the pods' labels that are kept */
    bool lacks_labels;
    char *resource_names[AS_RES_MAX];
    uint32_t list[AS_CLUSTER_KIND_COUNT]; /* its number */
    bool is_known[AS_CLUSTER_KIND_COUNT];
    bool is_stale; /* ranks */
    bool is_full;  /* the limit was reached */
};

static const char *const kinds[] = {"nodes", "pods", "budgets"};

static size_t measure_tables(const struct as_cluster_facts *facts)
{
    size_t bytes = 0;

    for (size_t i = 0; i < TABLES; i++)
        bytes += HASH_OVERHEAD(hh, facts->tables[i]);
    return bytes - facts->pod_count * sizeof(UT_hash_handle); /* which are part of the pods */
}

size_t as_cluster_facts_measure(const struct as_cluster_facts *facts)
{
    return sizeof(*facts) + fact_rows_measure(&facts->nodes) + fact_rows_measure(&facts->budgets) +
           facts->pod_capacity * sizeof(struct as_pod_fact) +
           facts->place_capacity * sizeof(struct place) + facts->pod_bytes + measure_tables(facts) +
           node_names_measure(&facts->names) + pod_classes_measure(&facts->pod_classes) +
           label_keys_measure(&facts->keys);
}

/* "namespace/name" */
static size_t facts_make_key(char key[KEY_SIZE], const char *namespace_, const char *name)
{
    const size_t namespace_size = strlen(namespace_), name_size = strlen(name);

    assert(namespace_size <= AS_CLUSTER_NAME_MAX && name_size <= AS_CLUSTER_NAME_MAX);
    memcpy(key, namespace_, namespace_size);
    key[namespace_size] = '/';
    memcpy(key + namespace_size + 1, name, name_size + 1);
    return namespace_size + 1 + name_size;
}

/* Pods */

static struct pod **get_table(struct as_cluster_facts *facts, unsigned hash)
{
    return &facts->tables[hash >> (32 - TABLE_BITS)];
}

static struct pod *find_pod(struct as_cluster_facts *facts, const char *key, size_t size)
{
    struct pod *pod;
    unsigned hash;

    HASH_VALUE(key, size, hash);
    HASH_FIND_BYHASHVALUE(hh, *get_table(facts, hash), key, size, hash, pod);
    return pod;
}

static size_t measure_pod(const struct pod *pod)
{
    return sizeof(*pod) + strlen(pod->key) + 1 + AS_ALLOC_EXTRA;
}

static struct pod *add_pod(struct as_cluster_facts *facts, const char *key, size_t size)
{
    struct pod *pod = as_xcalloc(1, sizeof(*pod) + size + 1);
    unsigned hash;

    memcpy(pod->key, key, size);
    facts->pods =
        as_xgrow(facts->pods, facts->pod_count, &facts->pod_capacity, sizeof(*facts->pods));
    facts->places =
        as_xgrow(facts->places, facts->pod_count, &facts->place_capacity, sizeof(*facts->places));
    pod->place = (uint32_t)facts->pod_count++;
    facts->places[pod->place] = (struct place){.pod = pod};
    HASH_VALUE(key, size, hash);
    struct pod **table = get_table(facts, hash);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, *table, pod->key, size, hash, pod);
    facts->pod_bytes += measure_pod(pod);
    return pod;
}

/* What the place held before is released after the new one is taken: mostly they are the same. */
static void set_pod(struct as_cluster_facts *facts, struct pod *pod, const struct as_pod_put *put,
                    const struct as_pod_class *former)
{
    struct place *place = &facts->places[pod->place];
    struct as_pod_fact *fact = &facts->pods[pod->place];
    const struct place before = *place;
    struct as_pod_class pod_class = *put->fact.pod_class;

    pod_class.labels = label_keys_filter(&facts->keys, pod_class.labels);
    *fact = put->fact;
    fact->pod_class = pod_classes_take(&facts->pod_classes, &pod_class);
    fact->namespace_ = fact->pod_class->namespace_;
    fact->name = strchr(pod->key, '/') + 1;
    fact->is_bound = put->node != NULL;
    place->node = node_names_take(&facts->names, put->node);
    place->nominated = node_names_take(&facts->names, put->nominated);
    fact->node = facts->names.ranks ? facts->names.ranks[place->node] : AS_NO_NODE;
    fact->nominated = facts->names.ranks ? facts->names.ranks[place->nominated] : AS_NO_NODE;
    node_names_release(&facts->names, before.node);
    node_names_release(&facts->names, before.nominated);
    if (former)
        pod_classes_release(&facts->pod_classes, former);
}

static void delete_pod(struct as_cluster_facts *facts, struct pod *pod)
{
    const size_t last = --facts->pod_count;
    struct pod **table = get_table(facts, pod->hh.hashv);

    node_names_release(&facts->names, facts->places[pod->place].node);
    node_names_release(&facts->names, facts->places[pod->place].nominated);
    pod_classes_release(&facts->pod_classes, facts->pods[pod->place].pod_class);
    facts->pods[pod->place] = facts->pods[last];
    facts->places[pod->place] = facts->places[last];
    facts->places[pod->place].pod->place = pod->place;
    facts->pod_bytes -= measure_pod(pod);
    HASH_DEL(*table, pod);
    free(pod);
}

/* Nodes and budgets */

static void copy_node(struct fact_block *block, struct as_node_fact *node)
{
    node->taints = fact_block_taints(block, node->taints, node->taint_count);
    node->name = fact_block_text(block, node->name);
    node->provider_id = fact_block_text(block, node->provider_id);
    node->keep = fact_block_text(block, node->keep);
}

static void put_node(struct as_cluster_facts *facts, const struct as_node_fact *node)
{
    struct as_node_fact copy = *node;
    struct fact_block block = {.base = NULL};
    struct fact_row row = {.list = facts->list[AS_CLUSTER_NODES]};
    size_t place;

    copy_node(&block, &copy);
    copy = *node;
    row.block_size = block.used;
    row.block = as_xmalloc(row.block_size);
    block = (struct fact_block){.base = row.block};
    copy_node(&block, &copy);
    row.key = copy.name;
    copy.labels = row.labels = as_labels_copy(node->labels);
    if (fact_rows_find(&facts->nodes, copy.name, &place)) {
        row.slot = facts->nodes.rows[place].slot;
        fact_rows_replace(&facts->nodes, place, &row, &copy);
    } else {
        row.slot = node_names_take(&facts->names, copy.name);
        fact_rows_insert(&facts->nodes, place, &row, &copy);
        facts->is_stale = true;
    }
}

/* The rows are to be compacted. */
static void drop_node(struct as_cluster_facts *facts, size_t place)
{
    const uint32_t slot = facts->nodes.rows[place].slot;

    fact_rows_drop(&facts->nodes, place);
    facts->names.ranks[slot] = AS_NO_NODE;
    node_names_release(&facts->names, slot);
    facts->is_stale = true;
}

static const char *copy_budget(struct fact_block *block, struct as_budget_fact *budget,
                               const char *key)
{
    budget->requirements = fact_block_requirements(block, budget->requirements, budget->count);
    budget->namespace_ = fact_block_text(block, budget->namespace_);
    budget->name = fact_block_text(block, budget->name);
    return fact_block_text(block, key);
}

static void put_budget(struct as_cluster_facts *facts, const struct as_budget_fact *budget)
{
    struct as_budget_fact copy = *budget;
    struct fact_block block = {.base = NULL};
    struct fact_row row = {.list = facts->list[AS_CLUSTER_BUDGETS]};
    char key[KEY_SIZE];
    size_t place;

    facts_make_key(key, budget->namespace_, budget->name);
    copy_budget(&block, &copy, key);
    copy = *budget;
    row.block_size = block.used;
    row.block = as_xmalloc(row.block_size);
    block = (struct fact_block){.base = row.block};
    row.key = copy_budget(&block, &copy, key);
    if (label_keys_add(&facts->keys, budget) && facts->pod_count > 0)
        facts->lacks_labels = true;
    if (fact_rows_find(&facts->budgets, key, &place))
        fact_rows_replace(&facts->budgets, place, &row, &copy);
    else
        fact_rows_insert(&facts->budgets, place, &row, &copy);
}

/* Life */

struct as_cluster_facts *as_cluster_facts_new(const struct as_cluster_facts_limits *limits)
{
    struct as_cluster_facts *facts = as_xcalloc(1, sizeof(*facts));

    facts->bytes_max = limits->bytes;
    facts->nodes.size = sizeof(struct as_node_fact);
    facts->budgets.size = sizeof(struct as_budget_fact);
    facts->pod_classes = POD_CLASSES_INIT;
    facts->keys = (struct label_keys){.scratch = AS_ARENA_INIT};
    facts->view.resources.count = AS_RES_NAMED;
    return facts;
}

static void forget_all(struct as_cluster_facts *facts)
{
    while (as_cluster_facts_forget_pods(facts, SIZE_MAX))
        ;
    for (size_t i = 0; i < facts->nodes.count; i++)
        drop_node(facts, i);
    for (size_t i = 0; i < facts->budgets.count; i++)
        fact_rows_drop(&facts->budgets, i);
    fact_rows_compact(&facts->nodes);
    fact_rows_compact(&facts->budgets);
    fact_rows_deinit(&facts->nodes);
    fact_rows_deinit(&facts->budgets);
    node_names_deinit(&facts->names);
    pod_classes_deinit(&facts->pod_classes);
    label_keys_deinit(&facts->keys);
    facts->pod_classes = POD_CLASSES_INIT;
    facts->lacks_labels = false;
    free(facts->pods);
    free(facts->places);
    facts->pods = NULL;
    facts->places = NULL;
    facts->pod_capacity = facts->place_capacity = 0;
}

bool as_cluster_facts_forget_pods(struct as_cluster_facts *facts, size_t most)
{
    for (; most > 0 && facts->pod_count > 0; most--)
        delete_pod(facts, facts->places[facts->pod_count - 1].pod);
    return facts->pod_count > 0;
}

void as_cluster_facts_clear(struct as_cluster_facts *facts)
{
    forget_all(facts);
    for (size_t i = AS_RES_NAMED; i < facts->view.resources.count; i++)
        free(facts->resource_names[i]);
    facts->view = (struct as_cluster){.resources = {.count = AS_RES_NAMED}};
    memset(facts->is_known, 0, sizeof(facts->is_known));
    facts->is_full = false;
}

struct as_cluster_facts *as_cluster_facts_free(struct as_cluster_facts *facts)
{
    if (facts)
        as_cluster_facts_clear(facts);
    free(facts);
    return NULL;
}

int as_cluster_facts_name_resource(struct as_cluster_facts *facts, const char *name)
{
    struct as_res_names *names = &facts->view.resources;

    for (size_t i = AS_RES_NAMED; i < names->count; i++) {
        if (strcmp(names->name[i], name) == 0)
            return (int)i;
    }
    if (names->count == AS_RES_MAX)
        return -1;
    facts->resource_names[names->count] = as_xstrdup(name);
    names->name[names->count] = facts->resource_names[names->count];
    return (int)names->count++;
}

/* Changes */

void as_cluster_facts_begin_list(struct as_cluster_facts *facts, enum as_cluster_kind kind)
{
    facts->list[kind]++;
    if (kind == AS_CLUSTER_PODS)
        facts->lacks_labels = false;
}

bool as_cluster_facts_lacks_labels(const struct as_cluster_facts *facts)
{
    return facts->lacks_labels;
}

static void end_list_of_nodes(struct as_cluster_facts *facts)
{
    for (size_t i = 0; i < facts->nodes.count; i++) {
        if (facts->nodes.rows[i].list != facts->list[AS_CLUSTER_NODES])
            drop_node(facts, i);
    }
    fact_rows_compact(&facts->nodes);
}

/* From the end: the last pod, which fills a place, is one that stays. */
static void end_list_of_pods(struct as_cluster_facts *facts)
{
    for (size_t i = facts->pod_count; i-- > 0;) {
        if (facts->places[i].pod->list != facts->list[AS_CLUSTER_PODS])
            delete_pod(facts, facts->places[i].pod);
    }
}

static void end_list_of_budgets(struct as_cluster_facts *facts)
{
    for (size_t i = 0; i < facts->budgets.count; i++) {
        if (facts->budgets.rows[i].list != facts->list[AS_CLUSTER_BUDGETS])
            fact_rows_drop(&facts->budgets, i);
    }
    fact_rows_compact(&facts->budgets);
}

void as_cluster_facts_end_list(struct as_cluster_facts *facts, enum as_cluster_kind kind)
{
    static void (*const end[])(struct as_cluster_facts *) = {
        [AS_CLUSTER_NODES] = end_list_of_nodes,
        [AS_CLUSTER_PODS] = end_list_of_pods,
        [AS_CLUSTER_BUDGETS] = end_list_of_budgets,
    };

    end[kind](facts);
    facts->is_known[kind] = true;
}

static int facts_refuse(const struct as_cluster_facts *facts, struct as_error *error)
{
    as_error_set(error, "the cluster's nodes, pods and budgets need more than %zu bytes of memory",
                 facts->bytes_max);
    return -E2BIG;
}

static int check_room(struct as_cluster_facts *facts, struct as_error *error)
{
    if (as_cluster_facts_measure(facts) <= facts->bytes_max)
        return 0;
    facts->is_full = true;
    return facts_refuse(facts, error);
}

int as_cluster_facts_put_node(struct as_cluster_facts *facts, const struct as_node_fact *node,
                              struct as_error *error)
{
    if (facts->is_full)
        return facts_refuse(facts, error);
    put_node(facts, node);
    return check_room(facts, error);
}

int as_cluster_facts_put_pod(struct as_cluster_facts *facts, const struct as_pod_put *put,
                             struct as_error *error)
{
    char key[KEY_SIZE];

    if (facts->is_full)
        return facts_refuse(facts, error);
    const size_t size = facts_make_key(key, put->fact.namespace_, put->fact.name);
    struct pod *pod = find_pod(facts, key, size);
    const struct as_pod_class *former = pod ? facts->pods[pod->place].pod_class : NULL;
    if (!pod)
        pod = add_pod(facts, key, size);
    pod->list = facts->list[AS_CLUSTER_PODS];
    set_pod(facts, pod, put, former);
    return check_room(facts, error);
}

int as_cluster_facts_put_budget(struct as_cluster_facts *facts, const struct as_budget_fact *budget,
                                struct as_error *error)
{
    if (facts->is_full)
        return facts_refuse(facts, error);
    put_budget(facts, budget);
    return check_room(facts, error);
}

void as_cluster_facts_delete(struct as_cluster_facts *facts, enum as_cluster_kind kind,
                             const char *namespace_, const char *name)
{
    char key[KEY_SIZE];
    size_t place;

    if (kind == AS_CLUSTER_NODES) {
        if (fact_rows_find(&facts->nodes, name, &place))
            drop_node(facts, place);
        fact_rows_compact(&facts->nodes);
        return;
    }
    const size_t size = facts_make_key(key, namespace_, name);
    if (kind == AS_CLUSTER_BUDGETS) {
        if (fact_rows_find(&facts->budgets, key, &place))
            fact_rows_drop(&facts->budgets, place);
        fact_rows_compact(&facts->budgets);
        return;
    }
    struct pod *pod = find_pod(facts, key, size);
    if (pod)
        delete_pod(facts, pod);
}

/* The view */

static void renew_ranks(struct as_cluster_facts *facts)
{
    const uint32_t *ranks = facts->names.ranks;

    for (size_t i = 0; i < facts->nodes.count; i++)
        facts->names.ranks[facts->nodes.rows[i].slot] = (uint32_t)i;
    for (size_t i = 0; ranks && i < facts->pod_count; i++) {
        facts->pods[i].node = ranks[facts->places[i].node];
        facts->pods[i].nominated = ranks[facts->places[i].nominated];
    }
    facts->is_stale = false;
}

const struct as_cluster *as_cluster_facts_view(struct as_cluster_facts *facts,
                                               struct as_error *error)
{
    if (facts->is_full && facts_refuse(facts, error) < 0)
        return NULL;
    for (size_t i = 0; i < AS_CLUSTER_KIND_COUNT; i++) {
        if (facts->is_known[i])
            continue;
        as_error_set(error, "the cluster's %s have not been listed yet", kinds[i]);
        return NULL;
    }
    if (facts->is_stale)
        renew_ranks(facts);
    facts->view.nodes = (const struct as_node_fact *)facts->nodes.facts;
    facts->view.node_count = facts->nodes.count;
    facts->view.pods = facts->pods;
    facts->view.pod_count = facts->pod_count;
    facts->view.budgets = (const struct as_budget_fact *)facts->budgets.facts;
    facts->view.budget_count = facts->budgets.count;
    return &facts->view;
}
