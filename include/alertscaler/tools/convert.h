/*
 * Objects of other autoscalers as rule files: HorizontalPodAutoscaler with prometheus-adapter's
 * configuration, KEDA's ScaledObject, Escalator's nodegroups.yaml, Cluster Autoscaler's flags.
 * docs/convert.md has what becomes of each key.
 *
 * The input is hostile: it has the bounds of rule files, names of files are made of names that were
 * checked, and every text of an object stands in quotes. Nothing is written and nothing is asked.
 */
#ifndef ALERTSCALER_TOOLS_CONVERT_H
#define ALERTSCALER_TOOLS_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/doc/diagnostics.h>

#define AS_CONVERT_OBJECTS_MAX 10000 /* as many as there are rule files: AS_RULE_FILES_MAX */

/* A file of the result. */
struct as_converted_file {
    const char *name; /* "rules/shop.web.yaml", "policies/shop.web.yaml": of letters, digits, `.`,
                         `_`, `-` and one `/` */
    const char *text;
    size_t size;
};

/* What the result says of an object, at its place. */
struct as_conversion_item {
    bool is_carried; /* a hint: it is carried over, and something about it differs */
    const char *file;
    uint32_t line, column;
    const char *object; /* "HorizontalPodAutoscaler shop/web" */
    const char *text;   /* what, why and what to do; one line of visible ASCII */
};

/* Immutable. */
struct as_conversion {
    struct as_converted_file *files; /* in the order of the input */
    size_t file_count, file_capacity;
    struct as_conversion_item *items;
    size_t item_count, item_capacity;
    size_t target_count, rule_count;
    size_t lost_count;    /* items that are not carried over */
    size_t skipped_count; /* objects of kinds that have nothing to do with scaling */
    void *memory;         /* of all texts */
};

struct as_convert_input {
    const char
        *name; /* a path; with `text` a name for places: "horizontalpodautoscalers/shop/web" */
    const char *text; /* of one object; NULL: the file is read */
    size_t size;
};

/* What the inputs of a conversion are. */
enum as_convert_from {
    AS_CONVERT_OBJECTS,     /* files and objects */
    AS_CONVERT_TO_POLICIES, /* the same; the result is scaling policies in place of rule files */
    AS_CONVERT_AUTOSCALER,  /* files with the manifest of Cluster Autoscaler's Deployment */
    AS_CONVERT_FLAGS        /* Cluster Autoscaler's flags, at least one: the names */
};

/*
 * Converts all inputs together. `name_space` is that of objects that name none. AS_CONVERT_OK;
 * AS_CONVERT_INVALID, with errors in `diagnostics`, if something in a file is wrong: then there is
 * no conversion; or the negative errno of reading a file, with a diagnostic.
 */
enum as_convert_outcome { AS_CONVERT_OK, AS_CONVERT_INVALID };
int as_convert(enum as_convert_from from, const struct as_convert_input *inputs, size_t count,
               const char *name_space, struct as_diagnostics *diagnostics,
               struct as_conversion **conversion_out) AS_MUST_USE;
struct as_conversion *as_conversion_free(struct as_conversion *conversion);

/* Whether the text can be the name of a namespace. */
bool as_convert_is_namespace(const char *text);

AS_DEFINE_CLEANUP(struct as_conversion *, as_conversion_free)

#endif
