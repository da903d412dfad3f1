/*
 * Reading documents of alerts (the webhook's and the API's), with errors that name the place by the
 * path of members that leads there: "alerts[3].labels.severity: expected a string, got a number".
 * All of them are -EINVAL. An alert that cannot be read is no reason to refuse the others.
 */
#ifndef ALERTSCALER_SRC_WIRE_JSON_PLACE_H
#define ALERTSCALER_SRC_WIRE_JSON_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/labels.h>
#include <alertscaler/wire/labels_digest.h>

#include "json_tree.h"

/* Where in the document the walk stands, for errors; and what it works with. */
struct place {
    struct as_error *error;
    bool in_alert;
    bool has_nuls; /* they stand in the document as TREE_NUL */
    size_t alert, given_up;
    struct as_labels_hasher *hasher;
    struct as_label *pairs; /* room for AS_PAYLOAD_LABELS_MAX, of the set that is being read */
};

/* The document, in the pool that the caller has entered; with room for `pairs`. A NUL, which no
 * text of ours can hold, refuses only the alert that it is in. */
int place_load(struct place *place, const char *json, size_t size,
               const struct tree_value **root_out) AS_MUST_USE;

const char *place_get_type_word(const struct tree_value *value); /* "an object", ... */

/* Begins with the next alert of the document. */
void place_enter(struct place *place, size_t alert);
/* The alert in hand cannot be read, as place->error says, which is cleared. 0 and that text;
 * -EINVAL where there are too many of them. */
int place_give_up(struct place *place, char **problem_out) AS_MUST_USE;

/* `member` and, where it is a label or an annotation, `name` (else NULL). */
int place_fail(const struct place *place, const char *member, const char *name, const char *format,
               ...) AS_PRINTF(4, 5);
int place_fail_with_text(const struct place *place, const char *member, const char *expected,
                         const char *text);

/* NULL where absent or null. */
const struct tree_value *place_find(const struct tree_value *object, const char *member);

/* Borrowed from the tree; NULL where absent. */
int place_read_text(const struct place *place, const struct tree_value *object, const char *member,
                    size_t max, const char **text_out) AS_MUST_USE;
int place_read_labels(const struct place *place, const struct tree_value *alert, const char *member,
                      struct as_labels **labels_out) AS_MUST_USE;
int place_read_time(const struct place *place, const struct tree_value *alert, const char *member,
                    bool is_needed, as_wall_time *time_out) AS_MUST_USE;
/* The digest is that of the labels; the fingerprint 16 hex digits as they stand there, else the
 * labels' own. */
int place_read_identity(const struct place *place, const struct tree_value *object,
                        const struct as_labels *labels, struct as_digest *digest_out,
                        uint64_t *fingerprint_out) AS_MUST_USE;

#endif
