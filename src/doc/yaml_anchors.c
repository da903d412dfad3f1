/*
 * Anchors in a hash table, and the pairs that merge keys add to a map. Copies no node: an alias is
 * the same node as its anchor.
 */
#include "yaml_anchors.h"

#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>

struct yaml_anchor_entry {
    char *name;
    struct yaml_anchor anchor;
    UT_hash_handle hh;
};

void yaml_anchors_deinit(struct yaml_anchors *anchors)
{
    struct yaml_anchor_entry *entry, *next;
    HASH_ITER (hh, anchors->table, entry, next) {
        HASH_DEL(anchors->table, entry);
        free(entry->name);
        free(entry);
    }
}

void yaml_anchors_put(struct yaml_anchors *anchors, const char *name,
                      const struct yaml_anchor *anchor)
{
    struct yaml_anchor_entry *entry;
    HASH_FIND_STR(anchors->table, name, entry);
    if (!entry) {
        entry = as_xcalloc(1, sizeof(*entry));
        entry->name = as_xstrdup(name);
        HASH_ADD_KEYPTR(hh, anchors->table, entry->name, strlen(entry->name), entry);
    }
    entry->anchor = *anchor;
}

const struct yaml_anchor *yaml_anchors_find(const struct yaml_anchors *anchors, const char *name)
{
    struct yaml_anchor_entry *entry;
    HASH_FIND_STR(anchors->table, name, entry);
    return entry ? &entry->anchor : NULL;
}

bool yaml_is_merge_key(const struct as_yaml_node *key)
{
    return key->kind == AS_YAML_SCALAR && key->is_plain && strcmp(key->text, "<<") == 0;
}

size_t yaml_count_merged(const struct as_yaml_node *value)
{
    if (value->kind == AS_YAML_MAP)
        return value->count;
    if (value->kind == AS_YAML_SCALAR)
        return SIZE_MAX;
    size_t count = 0;
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->items[i]->kind != AS_YAML_MAP)
            return SIZE_MAX;
        count += value->items[i]->count;
    }
    return count;
}

static size_t copy_pairs(const struct as_yaml_node *map, struct as_yaml_pair *pairs_out)
{
    if (map->count > 0)
        memcpy(pairs_out, map->pairs, map->count * sizeof(*pairs_out));
    return map->count;
}

size_t yaml_copy_merged(const struct as_yaml_node *value, struct as_yaml_pair *pairs_out)
{
    if (value->kind == AS_YAML_MAP)
        return copy_pairs(value, pairs_out);
    size_t count = 0;
    for (uint32_t i = 0; i < value->count; i++)
        count += copy_pairs(value->items[i], pairs_out + count);
    return count;
}
