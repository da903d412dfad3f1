/*
 * The text of a YAML tree: maps places to lines and back, for diagnostics. Line ends are libyaml's:
 * LF, CR, CR LF, NEL, LS and PS.
 */
#ifndef ALERTSCALER_SRC_DOC_YAML_SOURCE_H
#define ALERTSCALER_SRC_DOC_YAML_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/doc/yaml_tree.h>

/* The longest prefix that is valid UTF-8. */
size_t yaml_source_measure_utf8(const char *text, size_t size);

struct yaml_source {
    char *file;
    char *text; /* a copy, NUL-terminated */
    size_t size;
    uint32_t *lines; /* offset of each line */
    size_t line_count;
};

void yaml_source_init(struct yaml_source *source, const char *file, const char *text, size_t size);
void yaml_source_deinit(struct yaml_source *source);

struct as_yaml_place yaml_source_find_place(const struct yaml_source *source, size_t offset);

/* The text from a place on; NULL: no such place, or too far right. */
const char *yaml_source_find_text(const struct yaml_source *source, struct as_yaml_place place);

/* As as_yaml_find_inside. */
bool yaml_source_find_inside(const struct yaml_source *source, const struct as_yaml_node *scalar,
                             size_t offset, struct as_yaml_place *place_out);

void yaml_source_report(const struct yaml_source *source, struct as_yaml_place place,
                        enum as_severity severity, enum as_yaml_show show,
                        struct as_diagnostics *diagnostics, const char *message);

const struct yaml_source *yaml_tree_get_source(const struct as_yaml_tree *tree);

#endif
