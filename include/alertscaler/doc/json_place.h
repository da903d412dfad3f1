/*
 * A place in a document, and how an error names it: "observed.pods[3].phase: expected ...". All
 * readers of JSON say their errors through place_fail. Only the first error of a document counts.
 */
#ifndef ALERTSCALER_DOC_JSON_PLACE_H
#define ALERTSCALER_DOC_JSON_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

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

#endif
