/*
 * Shapes by what they say: see the header. A shape's key is all its values in a row, in which a set
 * of labels stands by its address: equal sets are one.
 */
#include "pod_shapes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>

#include "fact_block.h"
#include "shape_key.h"

struct label_entry {
    UT_hash_handle hh; /* the key is the texts of the set */
    size_t holders;
    struct as_labels *labels;
};

struct shape_entry {
    struct as_pod_shape shape; /* first: who has the shape has the entry */
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

static const struct as_labels *take_labels(struct pod_shapes *shapes,
                                           const struct as_labels *labels)
{
    struct label_entry *entry;

    if (!labels)
        return NULL;
    HASH_FIND(hh, shapes->labels, get_texts(labels), labels->bytes, entry);
    if (!entry) {
        entry = as_xcalloc(1, sizeof(*entry));
        entry->labels = as_labels_copy(labels);
        HASH_ADD_KEYPTR(hh, shapes->labels, get_texts(entry->labels), labels->bytes, entry);
        shapes->bytes += measure_labels(entry);
    }
    entry->holders++;
    return entry->labels;
}

static void release_labels(struct pod_shapes *shapes, const struct as_labels *labels)
{
    struct label_entry *entry;

    if (!labels)
        return;
    HASH_FIND(hh, shapes->labels, get_texts(labels), labels->bytes, entry);
    assert(entry && entry->labels == labels);
    if (--entry->holders > 0)
        return;
    shapes->bytes -= measure_labels(entry);
    HASH_DEL(shapes->labels, entry);
    as_labels_free(entry->labels);
    free(entry);
}

/* Keys */

static void add_requests(struct as_buf *key, const struct as_resources *requests)
{
    for (unsigned i = 0; i < AS_RES_MAX; i++) {
        if (requests->amount[i] == 0)
            continue;
        shape_key_add_number(key, i);
        shape_key_add_number(key, (uint64_t)requests->amount[i]);
    }
    shape_key_add_number(key, AS_RES_MAX);
}

/* The shape's labels are those of `shapes`. */
static void make_key(struct as_buf *key, const struct as_pod_shape *shape)
{
    as_buf_clear(key);
    add_requests(key, &shape->requests);
    shape_key_add_number(key, (uintptr_t)shape->selector);
    shape_key_add_number(key, (uintptr_t)shape->labels);
    shape_key_add_affinity(key, shape);
    shape_key_add_tolerations(key, shape);
    shape_key_add_ports(key, shape);
    shape_key_add_number(key, shape->loner);
    shape_key_add_text(key, shape->namespace_);
    shape_key_add_text(key, shape->zone);
    shape_key_add_number(key, (uint64_t)shape->priority);
    shape_key_add_number(key, shape->never_preempts);
    shape_key_add_number(key, shape->unchecked);
    shape_key_add_number(key, shape->eviction);
    if (key->failed)
        abort(); /* no memory for it; its size is bounded by that of the pod's document */
}

/* Shapes */

static void copy_shape(struct fact_block *block, struct as_pod_shape *shape)
{
    shape->terms = fact_block_terms(block, shape->terms, shape->term_count);
    shape->tolerations = fact_block_tolerations(block, shape->tolerations, shape->toleration_count);
    shape->ports = fact_block_ports(block, shape->ports, shape->port_count);
    shape->namespace_ = fact_block_text(block, shape->namespace_);
    shape->zone = fact_block_text(block, shape->zone);
}

/* An entry, what its shape points to, and its key, in one block. */
static struct shape_entry *make_entry(struct pod_shapes *shapes, const struct as_pod_shape *shape)
{
    struct as_pod_shape copy = *shape;
    struct fact_block block = {.used = sizeof(struct shape_entry)};

    copy_shape(&block, &copy);
    const size_t size = block.used + shapes->key.size;
    struct shape_entry *entry = as_xcalloc(1, size);
    block = (struct fact_block){.base = (char *)entry, .used = sizeof(*entry)};
    *entry = (struct shape_entry){.shape = *shape, .size = size};
    copy_shape(&block, &entry->shape);
    char *key = memcpy(block.base + block.used, shapes->key.data, shapes->key.size);
    HASH_ADD_KEYPTR(hh, shapes->shapes, key, shapes->key.size, entry);
    shapes->bytes += size + AS_ALLOC_EXTRA;
    return entry;
}

const struct as_pod_shape *pod_shapes_take(struct pod_shapes *shapes,
                                           const struct as_pod_shape *shape)
{
    struct as_pod_shape wanted = *shape;
    struct shape_entry *entry;

    wanted.selector = take_labels(shapes, shape->selector);
    wanted.labels = take_labels(shapes, shape->labels);
    make_key(&shapes->key, &wanted);
    HASH_FIND(hh, shapes->shapes, shapes->key.data, shapes->key.size, entry);
    if (entry) {
        release_labels(shapes, wanted.selector);
        release_labels(shapes, wanted.labels);
    } else {
        entry = make_entry(shapes, &wanted);
    }
    entry->holders++;
    return &entry->shape;
}

void pod_shapes_release(struct pod_shapes *shapes, const struct as_pod_shape *shape)
{
    struct shape_entry *entry = (struct shape_entry *)shape;

    if (--entry->holders > 0)
        return;
    HASH_DEL(shapes->shapes, entry);
    release_labels(shapes, shape->selector);
    release_labels(shapes, shape->labels);
    shapes->bytes -= entry->size + AS_ALLOC_EXTRA;
    free(entry);
}

void pod_shapes_deinit(struct pod_shapes *shapes)
{
    assert(!shapes->shapes && !shapes->labels);
    as_buf_deinit(&shapes->key);
}

/* HASH_OVERHEAD counts the handles, which are part of the entries. */
size_t pod_shapes_measure(const struct pod_shapes *shapes)
{
    return shapes->bytes + shapes->key.capacity + HASH_OVERHEAD(hh, shapes->shapes) -
           HASH_COUNT(shapes->shapes) * sizeof(UT_hash_handle) + HASH_OVERHEAD(hh, shapes->labels) -
           HASH_COUNT(shapes->labels) * sizeof(UT_hash_handle);
}
