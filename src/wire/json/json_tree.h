/*
 * A JSON document (RFC 8259) as a tree: for documents of alerts, of which some thousand come a
 * second. Memory is the pool's (json_pool.h): one copy of the document, in which the texts stay
 * where they stand, and one block a value.
 *
 * Stricter than the RFC: the root is an object or an array, names come once, texts are UTF-8
 * without halves of surrogate pairs, numbers fit into a double. A NUL, which no text of ours can
 * hold, stands as U+FFFF, which is no character.
 */
#ifndef ALERTSCALER_SRC_WIRE_JSON_JSON_TREE_H
#define ALERTSCALER_SRC_WIRE_JSON_JSON_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

#define TREE_NUL "\xEF\xBF\xBF"

enum tree_kind {
    TREE_NULL,
    TREE_BOOLEAN,
    TREE_NUMBER,
    TREE_TEXT,
    TREE_ARRAY,
    TREE_OBJECT,
};

struct tree_value {
    enum tree_kind kind;
    uint32_t size; /* bytes of the text; values in the array or object */
    uint32_t name_size;
    const char *name; /* in an object; else NULL */
    union {
        bool boolean;
        double number;
        const char *text;
        struct tree_value *first; /* the others are its `next`, in the document's order */
    };
    struct tree_value *next;
};

/* 0; -EINVAL and "not JSON: line 2, column 11: ...", or that there are too many values for the
 * pool. Goes 2,048 levels down. */
int tree_parse(const char *json, size_t size, const struct tree_value **root_out,
               bool *has_nuls_out, struct as_error *error) AS_MUST_USE;

/* The member of that name; NULL where there is none, or no object. */
const struct tree_value *tree_find(const struct tree_value *object, const char *name);

/* NULL where the value is no text, or none. */
const char *tree_get_text(const struct tree_value *value);

#endif
