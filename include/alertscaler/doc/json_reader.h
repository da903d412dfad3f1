/*
 * Reads the objects of a tree (json_tree.h): each member by its name, with type and range. The
 * first problem is the error of the document, with its place; as_read_result returns
 * it.
 *
 * An absent member leaves the output unchanged: set the default before. A strict reader refuses
 * members that were never requested; null counts as absent only for strings, times, objects and
 * lists. A lenient reader (of other programs' documents) ignores unknown members; null counts as
 * absent.
 */
#ifndef ALERTSCALER_DOC_JSON_READER_H
#define ALERTSCALER_DOC_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>

#include <alertscaler/doc/json_tree.h>

/*
 * A place in a document, and how an error names it: "observed.pods[3].phase: expected ...". All
 * readers of JSON say their errors through place_fail. Only the first error of a document counts.
 */

struct place {
    struct place *root;         /* of the document; the root's own is itself */
    const struct place *parent; /* NULL: the root */
    const char *name;           /* in the parent */
    ptrdiff_t index;            /* in the list `name`; -1: `name` is no list */
    struct as_error *error;     /* of the root; may be NULL */
    bool has_failed;            /* of the root */
};

void place_init(struct place *place, struct as_error *error);
/* The parent must stay where it is. */
void place_enter(struct place *place, struct place *parent, const char *name, ptrdiff_t index);

/* `name` may be NULL: the place itself. */
void place_fail(struct place *place, const char *name, const char *format, ...) AS_PRINTF(3, 4);
int place_result(const struct place *place) AS_MUST_USE; /* 0, or -EBADMSG with an error */

#define AS_READ_FIELDS_MAX 24 /* members of a strict object; more is a bug, asserted */

struct as_reader {
    struct place place;
    const struct tree_value *object; /* NULL: absent; has no members */
    bool is_lenient;
    size_t taken; /* requested members that exist */
    size_t known_count;
    const char *known[AS_READ_FIELDS_MAX]; /* all requested names */
};

struct as_read_word { /* a row of a list of words, which ends with a NULL */
    const char *text;
    int value;
};

/* Documents. `error` may be NULL. So may a lenient document: it has no members. */
void as_read_document(struct as_reader *reader, const struct tree_value *document,
                      struct as_error *error);
void as_read_lenient(struct as_reader *reader, const struct tree_value *document,
                     struct as_error *error);
static inline int AS_MUST_USE as_read_result(const struct as_reader *reader)
{
    return place_result(&reader->place);
}

/* Members that are objects, or lists of them. The parent must stay where it is. */
void as_read_object(struct as_reader *reader, struct as_reader *parent, const char *name);
void as_read_item(struct as_reader *reader, struct as_reader *parent, const char *name,
                  const struct tree_value *item, size_t index);
void as_read_end(struct as_reader *reader); /* of a strict object: unknown members are errors */

/* `name` may be NULL: the object itself. */
#define as_read_fail(reader, ...) place_fail(&(reader)->place, __VA_ARGS__)
bool as_read_has(const struct as_reader *reader, const char *name); /* present and not null */
void as_read_require(struct as_reader *reader, const char *name);

/* Members. Texts are borrowed from the tree. */
const struct tree_value *as_read_any(struct as_reader *reader, const char *name); /* NULL: absent */
/* The first item of a list, or member of an object; NULL: none. */
const struct tree_value *as_read_list(struct as_reader *reader, const char *name,
                                      size_t *count_out);
const struct tree_value *as_read_map(struct as_reader *reader, const char *name, size_t *count_out);
void as_read_i64(struct as_reader *reader, const char *name, int64_t low, int64_t high,
                 int64_t *number_out);
void as_read_i32(struct as_reader *reader, const char *name, int32_t low, int32_t *number_out);
void as_read_double(struct as_reader *reader, const char *name, double *number_out);
void as_read_positive(struct as_reader *reader, const char *name, double *number_out); /* or 0 */
void as_read_seconds(struct as_reader *reader, const char *name,
                     int64_t *us_out); /* fractions allowed; 0 .. 100 years */
void as_read_bool(struct as_reader *reader, const char *name, bool *value_out);
int as_read_enum(struct as_reader *reader, const char *name, const struct as_read_word *words,
                 int absent);
void as_read_text(struct as_reader *reader, const char *name, const char **text_out);
const char *as_read_string(struct as_reader *reader, const char *name); /* "" where absent */
bool as_read_is(struct as_reader *reader, const char *name, const char *text);
void as_read_copy(struct as_reader *reader, const char *name, char *text_out,
                  size_t size); /* less than `size` bytes */
void as_read_time(struct as_reader *reader, const char *name, as_maybe_time *time_out);

#endif
