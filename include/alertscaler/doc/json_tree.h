/*
 * A JSON document (RFC 8259) as a tree. Memory is the tree's, and freed all at once: one copy of
 * the document, in which the texts stay, and one block per value.
 *
 * Stricter than the RFC: the root is an object or an array, names are unique, texts are UTF-8
 * without lone surrogates, numbers fit into a double. A NUL, which our texts cannot hold, becomes
 * the noncharacter U+FFFF.
 */
#ifndef ALERTSCALER_DOC_JSON_TREE_H
#define ALERTSCALER_DOC_JSON_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

#define TREE_NUL "\xEF\xBF\xBF"

enum tree_kind {
    TREE_NULL,
    TREE_BOOLEAN,
    TREE_INTEGER, /* a number without fraction and exponent, of 64 bits */
    TREE_REAL,    /* any other number */
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
        int64_t integer;
        double real;
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

struct tree {
    const struct tree_value *root;
    bool is_any;   /* the root may be neither an object nor an array */
    bool has_nuls; /* NULs of the document are TREE_NUL */
    size_t left;   /* bytes of memory that it may still take */
    struct as_arena arena;
};

#define TREE_INIT(max) ((struct tree){.left = (max), .arena = AS_ARENA_INIT})
#define TREE_NO_LIMIT  SIZE_MAX /* where the size of the document is limited */

void tree_deinit(struct tree *tree);
void *tree_alloc(struct tree *tree, size_t size) AS_MUST_USE; /* not zeroed; NULL beyond `left` */

/* Sets the root: with all members, or only with those that `parts` names. All others are not read:
 * of them only brackets and quotes are followed. 0; -EINVAL and "not JSON: line 2, column 11: ...",
 * or too many values for `left`. At most 2,048 levels. */
int tree_parse(struct tree *tree, const char *json, size_t size, const struct tree_part *parts,
               struct as_error *error) AS_MUST_USE;
/* The same of a text without a NUL: 0 or -EBADMSG. */
int tree_load(struct tree *tree, const char *json, size_t size, struct as_error *error) AS_MUST_USE;
/* The same of an object and nothing else. */
int tree_load_object(struct tree *tree, const char *json, size_t size,
                     struct as_error *error) AS_MUST_USE;

/* The second member of a name; NULL where all names differ. 0, or -ENOMEM. */
int tree_find_duplicate(const struct tree_value *object, const struct tree_value **second_out,
                        struct as_error *error) AS_MUST_USE;

/* NULL if there is no such member, or no object. */
const struct tree_value *tree_find(const struct tree_value *object, const char *name);

/* NULL if the value is NULL or not a text. */
const char *tree_get_text(const struct tree_value *value);
/* The text of a member; NULL if it is absent or not a text. */
const char *tree_find_text(const struct tree_value *object, const char *name);

/* The value is an integer from `low` to `high`. */
bool tree_get_i64(const struct tree_value *value, int64_t low, int64_t high, int64_t *number_out);
/* The value is a number. */
bool tree_get_double(const struct tree_value *value, double *number_out);

static inline bool tree_is(const struct tree_value *value, enum tree_kind kind)
{
    return value && value->kind == kind;
}

static inline bool tree_is_true(const struct tree_value *value)
{
    return tree_is(value, TREE_BOOLEAN) && value->boolean;
}

/* The first item; NULL: none, or no array. */
static inline const struct tree_value *tree_get_first(const struct tree_value *value)
{
    return tree_is(value, TREE_ARRAY) ? value->first : NULL;
}

#endif
