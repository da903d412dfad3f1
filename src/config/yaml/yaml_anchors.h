/*
 * The anchors of a YAML document: names for nodes that aliases stand for. A name that is given
 * again means the new node from there on.
 */
#ifndef ALERTSCALER_SRC_CONFIG_YAML_YAML_ANCHORS_H
#define ALERTSCALER_SRC_CONFIG_YAML_YAML_ANCHORS_H

#include <stddef.h>

#include <alertscaler/config/yaml_tree.h>

struct yaml_anchor {
    const struct as_yaml_node *node; /* NULL while what it holds is being read */
    size_t weight;                   /* nodes that it stands for, aliases written out */
    unsigned height;                 /* levels of lists and maps in it */
};

struct yaml_anchors {
    struct yaml_anchor_entry *table;
};

void yaml_anchors_deinit(struct yaml_anchors *anchors);
void yaml_anchors_put(struct yaml_anchors *anchors, const char *name,
                      const struct yaml_anchor *anchor);

/* NULL where there is none of this name (yet). */
const struct yaml_anchor *yaml_anchors_find(const struct yaml_anchors *anchors, const char *name);

/* The pairs of maps under a map's merge keys, which are to be had where the map itself does not say
 * otherwise; a `<<` is a plain key. */
bool yaml_is_merge_key(const struct as_yaml_node *key);
size_t yaml_count_merged(const struct as_yaml_node *value); /* SIZE_MAX: not a map or maps */
size_t yaml_copy_merged(const struct as_yaml_node *value, struct as_yaml_pair *pairs_out);

#endif
