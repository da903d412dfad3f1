/*
 * A JSON document (RFC 8259) as a tree: for documents of alerts, some thousand per second. Memory
 * is the pool's (json_pool.h): one copy of the document, in which the texts stay, and one block per
 * value.
 *
 * Stricter than the RFC: the root is an object or an array, names are unique, texts are UTF-8
 * without lone surrogates, numbers fit into a double. A NUL, which our texts cannot hold, becomes
 * the noncharacter U+FFFF.
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
    uint32_t size; /* bytes of the text; number of values in the array or object */
    uint32_t name_size;
    const char *name; /* NULL: not in an object */
    union {
        bool boolean;
        double number;
        const char *text;
        struct tree_value *first; /* the first child; `next` leads to the others in order */
    };
    struct tree_value *next;
};

/* What is wanted of an object, by names; the last row has none. Where other formats are read into
 * the same tree, their readers have use for number and kind. */
struct tree_part {
    const char *name;
    unsigned number;
    unsigned kind;                 /* TREE_PART_INLINE, or of the other format */
    const struct tree_part *parts; /* of the object, or of each object in the list; NULL: all */
};

/* In JSON the parts of this one stand in the object itself. */
#define TREE_PART_INLINE 1000

/* 0; -EINVAL and "not JSON: line 2, column 11: ...", or too many values for the pool. At most 2,048
 * levels. */
int tree_parse(const char *json, size_t size, const struct tree_value **root_out,
               bool *has_nuls_out, struct as_error *error) AS_MUST_USE;

/* The same with only the members that `parts` names. All others are not read: of them only brackets
 * and quotes are followed. */
int tree_parse_parts(const char *json, size_t size, const struct tree_part *parts,
                     const struct tree_value **root_out, bool *has_nuls_out,
                     struct as_error *error) AS_MUST_USE;

/* The second member of a name; NULL where all names differ. 0, or -ENOMEM. */
int tree_find_duplicate(const struct tree_value *object, const struct tree_value **second_out,
                        struct as_error *error) AS_MUST_USE;

/* NULL if there is no such member, or no object. */
const struct tree_value *tree_find(const struct tree_value *object, const char *name);

/* NULL if the value is NULL or not a text. */
const char *tree_get_text(const struct tree_value *value);

#endif
