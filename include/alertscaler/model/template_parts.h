/*
 * A template's parts, for template.c and for target.c, which must know which
 * part of a result came from an alert.
 */
#ifndef ALERTSCALER_MODEL_TEMPLATE_PARTS_H
#define ALERTSCALER_MODEL_TEMPLATE_PARTS_H

#include <stddef.h>

#include <alertscaler/model/template.h>

enum template_part_kind { TEMPLATE_TEXT, TEMPLATE_LABEL, TEMPLATE_ANNOTATION };

struct template_part {
    enum template_part_kind kind;
    char *text;    /* the plain text, or the name of the label or annotation */
    size_t offset; /* in the template's text */
};

struct as_template {
    char *text; /* as written */
    struct template_part *parts;
    size_t part_count;
};

/* What a part contributes: its text, or the alert's value ("" if absent). */
const char *template_part_get(const struct template_part *part, const struct as_labels *labels,
                              const struct as_labels *annotations);

#endif
