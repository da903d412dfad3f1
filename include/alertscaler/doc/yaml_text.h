/*
 * Writes YAML: texts, whatever is in them, and maps of a tree.
 */
#ifndef ALERTSCALER_DOC_YAML_TEXT_H
#define ALERTSCALER_DOC_YAML_TEXT_H

#include <alertscaler/base/buf.h>

void yaml_append_text(struct as_buf *out, const char *text); /* plain, or in quotes */
void yaml_append_query(struct as_buf *out, const char *text, unsigned indent); /* or a block */
void yaml_append_comment(struct as_buf *out, const char *text); /* what is not ASCII becomes `?` */

/* The map as lines of YAML, without comments. Decoding them gives the same map. */
struct as_yaml_node;
void yaml_append_map(struct as_buf *out, const struct as_yaml_node *map);

#endif
