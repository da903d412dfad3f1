/*
 * Reading documents of alerts (the webhook's and the API's), with errors that name the place by the
 * path of members that leads there: "alerts[3].labels.severity: expected a string, got a number".
 * All of them are -EINVAL.
 */
#ifndef ALERTSCALER_SRC_WIRE_PLACE_H
#define ALERTSCALER_SRC_WIRE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/core/labels.h>

/* Where in the document the walk stands, for errors; and what it works with. */
struct place {
    struct as_error *error;
    bool in_alert;
    size_t alert;
    struct as_label *pairs; /* room for AS_PAYLOAD_LABELS_MAX, of the set that is being read */
};

/* The document, of the pool that the caller has entered. */
int place_load(const char *json, size_t size, const json_t **root_out,
               struct as_error *error) AS_MUST_USE;

const char *place_get_type_word(const json_t *value); /* "an object", ... */

/* `member` and, where it is a label or an annotation, `name` (else NULL). */
int place_fail(const struct place *place, const char *member, const char *name, const char *format,
               ...) AS_PRINTF(4, 5);
int place_fail_with_text(const struct place *place, const char *member, const char *expected,
                         const char *text);

/* NULL where absent or null. */
const json_t *place_find(const json_t *object, const char *member);

/* Borrowed from the tree; NULL where absent. */
int place_read_text(const struct place *place, const json_t *object, const char *member, size_t max,
                    const char **text_out) AS_MUST_USE;
int place_read_labels(const struct place *place, const json_t *alert, const char *member,
                      struct as_labels **labels_out) AS_MUST_USE;
int place_read_time(const struct place *place, const json_t *alert, const char *member,
                    bool is_needed, as_wall_time *time_out) AS_MUST_USE;
/* 16 hex digits; else the labels' own. */
int place_read_fingerprint(const struct place *place, const json_t *object,
                           const struct as_labels *labels, uint64_t *fingerprint_out) AS_MUST_USE;

#endif
