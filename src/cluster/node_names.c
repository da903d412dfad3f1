/*
 * Names of nodes in a hash table: see the header.
 */
#include "node_names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/cluster/cluster.h>

struct node_name {
    UT_hash_handle hh;
    size_t holders;
    uint32_t slot;
    char text[];
};

static size_t measure(const struct node_name *name)
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

uint32_t node_names_take(struct node_names *names, const char *text)
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
        names->bytes += measure(name);
    }
    name->holders++;
    return name->slot;
}

void node_names_release(struct node_names *names, uint32_t slot)
{
    struct node_name *name = slot == 0 ? NULL : names->slots[slot];

    if (!name || --name->holders > 0)
        return;
    names->slots[slot] = NULL;
    names->ranks[slot] = AS_NO_NODE;
    names->free_slots = as_xgrow(names->free_slots, names->free_count, &names->free_capacity,
                                 sizeof(*names->free_slots));
    names->free_slots[names->free_count++] = slot;
    names->bytes -= measure(name);
    HASH_DEL(names->all, name);
    free(name);
}

void node_names_deinit(struct node_names *names)
{
    assert(!names->all);
    free(names->slots);
    free(names->ranks);
    free(names->free_slots);
    *names = (struct node_names){.all = NULL};
}

/* HASH_OVERHEAD counts the handles, which are part of the names. */
size_t node_names_measure(const struct node_names *names)
{
    return names->bytes + names->slot_capacity * sizeof(struct node_name *) +
           (names->rank_capacity + names->free_capacity) * sizeof(uint32_t) +
           HASH_OVERHEAD(hh, names->all) - HASH_COUNT(names->all) * sizeof(UT_hash_handle);
}
