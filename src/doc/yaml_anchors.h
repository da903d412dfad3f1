/*
 * The anchors of a YAML document: names that aliases refer to. A repeated name replaces the node
 * from there on.
 */
#ifndef ALERTSCALER_SRC_DOC_YAML_ANCHORS_H
#define ALERTSCALER_SRC_DOC_YAML_ANCHORS_H

#include <stddef.h>

#include <alertscaler/doc/yaml_tree.h>

struct yaml_anchor {
    const struct as_yaml_node *node; /* NULL while its content is being read */
    size_t weight;                   /* nodes in it, aliases expanded */
    unsigned height;                 /* its levels of lists and maps */
};

struct yaml_anchors {
    struct yaml_anchor_entry *table;
};

/* Leaves an empty table. */
void yaml_anchors_deinit(struct yaml_anchors *anchors);
void yaml_anchors_put(struct yaml_anchors *anchors, const char *name,
                      const struct yaml_anchor *anchor);

/* NULL: no such name (yet). */
const struct yaml_anchor *yaml_anchors_find(const struct yaml_anchors *anchors, const char *name);

/* Merge keys: their maps' pairs are added to a map, which overrides them; a `<<` is a plain key. */
bool yaml_is_merge_key(const struct as_yaml_node *key);
size_t yaml_count_merged(const struct as_yaml_node *value); /* SIZE_MAX: not a map or maps */
size_t yaml_copy_merged(const struct as_yaml_node *value, struct as_yaml_pair *pairs_out);

#endif
