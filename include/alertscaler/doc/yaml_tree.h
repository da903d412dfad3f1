/*
 * A YAML document as a tree in which every key and value has its place.
 *
 * Plain YAML only: no aliases, anchors, tags, merge keys, further documents, duplicate keys, or
 * keys that are not scalars. Bounded: AS_YAML_SIZE_MAX bytes, AS_YAML_DEPTH_MAX levels,
 * AS_YAML_NODES_MAX nodes.
 */
#ifndef ALERTSCALER_DOC_YAML_TREE_H
#define ALERTSCALER_DOC_YAML_TREE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/doc/diagnostics.h>

#define AS_YAML_SIZE_MAX  ((size_t)16 * 1024 * 1024)
#define AS_YAML_DEPTH_MAX 32
#define AS_YAML_NODES_MAX 1000000

struct as_yaml_place {
    uint32_t line, column, end_column; /* as in struct as_diagnostic */
};

enum as_yaml_kind { AS_YAML_SCALAR, AS_YAML_LIST, AS_YAML_MAP };

struct as_yaml_node {
    enum as_yaml_kind kind;
    bool is_plain;  /* a scalar without quotes: may be a number, true, or null */
    bool is_flawed; /* an error was reported for it; further errors are not */
    struct as_yaml_place place;
    uint32_t count; /* of items or pairs */
    union {
        struct {
            const char *text; /* NUL-terminated, valid UTF-8 without NUL */
            size_t size;
        };
        const struct as_yaml_node *const *items;
        const struct as_yaml_pair *pairs; /* in the order of the file */
    };
};

struct as_yaml_pair {
    const struct as_yaml_node *key; /* a scalar */
    const struct as_yaml_node *value;
};

struct as_yaml_tree;

/*
 * Parses a whole text. `file` is its name for diagnostics, copied. AS_YAML_FLAWED: there is a tree,
 * in which to find more errors, but something in it is not allowed. -EINVAL: there is no tree. Both
 * add at least one diagnostic. A text without a document (empty, or only comments) is -EINVAL.
 */
enum as_yaml_outcome { AS_YAML_OK, AS_YAML_FLAWED };
int as_yaml_parse(const char *file, const char *text, size_t size,
                  struct as_diagnostics *diagnostics, struct as_yaml_tree **tree_out) AS_MUST_USE;

/* Reads and parses a file. As above; also the negative errno of reading, with a diagnostic. */
int as_yaml_load(const char *path, struct as_diagnostics *diagnostics,
                 struct as_yaml_tree **tree_out) AS_MUST_USE;

/*
 * The same for files of other programs. Anchors, aliases, merge keys and tags are allowed: an alias
 * is the same node as its anchor, with that node's place; tags are ignored (except !!str). Expanded
 * aliases count against the bounds, so that a walk over the tree is bounded. A text without a
 * document gives an empty scalar.
 */
int as_yaml_parse_foreign(const char *file, const char *text, size_t size,
                          struct as_diagnostics *diagnostics,
                          struct as_yaml_tree **tree_out) AS_MUST_USE;
int as_yaml_load_foreign(const char *path, struct as_diagnostics *diagnostics,
                         struct as_yaml_tree **tree_out) AS_MUST_USE;

/* The same for a stream of documents: the root is a list of them. Anchors end with their document;
 * the bounds hold for the whole file. */
int as_yaml_load_documents(const char *path, struct as_diagnostics *diagnostics,
                           struct as_yaml_tree **tree_out) AS_MUST_USE;
struct as_yaml_tree *as_yaml_free(struct as_yaml_tree *tree);

/*
 * A tree in another form, made of nodes with the places of the first one: the new root takes the
 * place of the old one. Its nodes and texts are in the memory of as_yaml_get_arena. `respell`
 * changes a message's words, in place, to those that stand in the file. `size` is the room of the
 * message, with its NUL.
 */
typedef void as_yaml_respell_fn(char *message, size_t size);
struct as_arena *as_yaml_get_arena(struct as_yaml_tree *tree);
void as_yaml_rewrite(struct as_yaml_tree *tree, const struct as_yaml_node *root,
                     as_yaml_respell_fn *respell);
bool as_yaml_is_rewritten(const struct as_yaml_tree *tree);

/* Appends the path of the key or value that begins at this place of the file, as Kubernetes writes
 * it: spec.rules[0].scaleUp. Nothing, if no node begins there. */
void as_yaml_append_path(const struct as_yaml_tree *tree, uint32_t line, uint32_t column,
                         struct as_buf *out);

const struct as_yaml_node *as_yaml_get_root(const struct as_yaml_tree *tree);
const char *as_yaml_get_file(const struct as_yaml_tree *tree);
const char *as_yaml_get_text(const struct as_yaml_tree *tree, size_t *size_out);

/* The value of a key; NULL if the key is absent or `node` (may be NULL) is no map. */
const struct as_yaml_node *as_yaml_find(const struct as_yaml_node *node, const char *key);

/* A plain scalar that is empty, `~` or `null`. */
bool as_yaml_is_null(const struct as_yaml_node *node);

/* "a list", "a map", "text in quotes", "nothing", "`abc`": for "expected ..., found %s". */
#define AS_YAML_FOUND_SIZE 80
const char *as_yaml_describe(const struct as_yaml_node *node, char text_out[AS_YAML_FOUND_SIZE]);

/* The place of a byte of a scalar's text. False if the text differs from the file: escapes, or
 * folding. */
bool as_yaml_find_inside(const struct as_yaml_tree *tree, const struct as_yaml_node *scalar,
                         size_t offset, struct as_yaml_place *place_out);

enum as_yaml_show { AS_YAML_SHOW, AS_YAML_HIDE }; /* hide: the line may hold a secret */

/* Adds an error at a node of the tree, unless the node is flawed. */
void as_yaml_report(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                    enum as_yaml_show show, struct as_diagnostics *diagnostics, const char *format,
                    ...) AS_PRINTF(5, 6);

/* The same for a warning, also if the node is flawed. */
void as_yaml_warn(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                  enum as_yaml_show show, struct as_diagnostics *diagnostics, const char *format,
                  ...) AS_PRINTF(5, 6);

/* The same for any severity. */
void as_yaml_vreport(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                     enum as_severity severity, enum as_yaml_show show,
                     struct as_diagnostics *diagnostics, const char *format, va_list arguments)
    AS_PRINTF(6, 0);

AS_DEFINE_CLEANUP(struct as_yaml_tree *, as_yaml_free)

/*
 * The YAML that a person names for one command: unlike a configured file it may be a pipe, as the
 * <(...) of a shell makes, or standard input.
 */

/* As as_yaml_load and as_yaml_load_foreign. */
int as_yaml_input_load(const char *path, struct as_diagnostics *diagnostics,
                       struct as_yaml_tree **tree_out) AS_MUST_USE;
int as_yaml_input_load_foreign(const char *path, struct as_diagnostics *diagnostics,
                               struct as_yaml_tree **tree_out) AS_MUST_USE;

#endif
