/*
 * The templates of target addresses, a subset of Alertmanager's syntax: {{ .Labels.name }}, {{
 * .Annotations.name }}, {{ index .Labels "k8s.io/app" }}, {{ index .Annotations "x" }}, mixed with
 * plain text. Everything else is an error, also `$labels`, pipes and functions.
 */
#ifndef ALERTSCALER_MODEL_TEMPLATE_H
#define ALERTSCALER_MODEL_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/model/labels.h>

struct as_template;

/* 0; -EINVAL with an error that names the offset in the text and what is expected. */
int as_template_new(const char *text, struct as_template **template_out,
                    struct as_error *error) AS_MUST_USE;
struct as_template *as_template_free(struct as_template *template);

bool as_template_is_plain(const struct as_template *template);        /* no {{ }} in it */
const char *as_template_get_text(const struct as_template *template); /* as written */

/* The labels and annotations that it names, one per call, as written; *at_io begins with 0. NULL:
 * no more. */
enum as_template_map { AS_TEMPLATE_LABELS, AS_TEMPLATE_ANNOTATIONS };
const char *as_template_find_next(const struct as_template *template, size_t *at_io,
                                  enum as_template_map *map_out);

/* Appends the result. 0; -ENOENT with an error if a label or annotation is missing or empty;
 * -EMSGSIZE at the buffer's maximum. */
int as_template_expand(const struct as_template *template, const struct as_labels *labels,
                       const struct as_labels *annotations, struct as_buf *out,
                       struct as_error *error) AS_MUST_USE;

/* The same for PromQL: values are filled in only inside string literals of the template ("..." or
 * '...'), with escapes. as_template_check_promql ensures this beforehand: -EINVAL with an error if
 * a template stands outside a literal, or in a literal between backticks, which has no escapes. */
int as_template_expand_promql(const struct as_template *template, const struct as_labels *labels,
                              const struct as_labels *annotations, struct as_buf *out,
                              struct as_error *error) AS_MUST_USE;
int as_template_check_promql(const struct as_template *template,
                             struct as_error *error) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_template *, as_template_free)

/*
 * A template's parts, for callers that must know which part of a result came from an alert
 * (decide/target.c).
 */
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
