/*
 * Reads a JSON object strictly: each member by its name, with its type and range, and at the end
 * none may be left over. Errors name the place: "observed.pods[3].phase: expected ...".
 *
 * A member that is absent leaves the output alone: its default stands there before. null counts as
 * absent for strings, times, objects and lists, and is a wrong type for all else.
 *
 * What returns int returns 0, or -EBADMSG with an error.
 */
#ifndef ALERTSCALER_WIRE_STRICT_H
#define ALERTSCALER_WIRE_STRICT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>

#define AS_STRICT_FIELDS_MAX 16 /* members that one object may have; more is a bug, asserted */

struct as_strict {
    const struct as_strict *parent; /* NULL: the document itself */
    const char *name;               /* in the parent */
    ptrdiff_t index;                /* in the list `name`; -1: `name` is no list */
    json_t *object;                 /* NULL: absent, and without members */
    struct as_error *error;
    size_t taken;                            /* members that are there and were asked for */
    const char *known[AS_STRICT_FIELDS_MAX]; /* all that were asked for */
    size_t known_count;
};

struct as_strict_word { /* a row of a closed list of words, which ends with a NULL */
    const char *text;
    int value;
};

int as_strict_init(struct as_strict *reader, json_t *document, struct as_error *error) AS_MUST_USE;
int as_strict_init_object(struct as_strict *reader, struct as_strict *parent,
                          const char *name) AS_MUST_USE;
int as_strict_init_item(struct as_strict *reader, const struct as_strict *parent, const char *name,
                        json_t *list, size_t index) AS_MUST_USE;
int as_strict_finish(const struct as_strict *reader) AS_MUST_USE; /* is one left over? */

int as_strict_fail(const struct as_strict *reader, const char *name, const char *format,
                   ...) AS_MUST_USE AS_PRINTF(3, 4); /* `name` may be NULL: the object itself */
bool as_strict_has(const struct as_strict *reader, const char *name); /* and it is not null */
int as_strict_require(const struct as_strict *reader, const char *name) AS_MUST_USE;
json_t *as_strict_take(struct as_strict *reader, const char *name); /* of any type; NULL: absent */

int as_strict_take_list(struct as_strict *reader, const char *name, size_t *count_out,
                        json_t **list_out) AS_MUST_USE;
int as_strict_take_i64(struct as_strict *reader, const char *name, int64_t low, int64_t high,
                       int64_t *number_out) AS_MUST_USE;
int as_strict_take_i32(struct as_strict *reader, const char *name, int32_t low,
                       int32_t *number_out) AS_MUST_USE;
int as_strict_take_double(struct as_strict *reader, const char *name,
                          double *number_out) AS_MUST_USE;
int as_strict_take_positive(struct as_strict *reader, const char *name,
                            double *number_out) AS_MUST_USE; /* or 0 */
int as_strict_take_seconds(struct as_strict *reader, const char *name,
                           int64_t *us_out) AS_MUST_USE; /* with fractions; 0 .. 100 years */
int as_strict_take_bool(struct as_strict *reader, const char *name, bool *value_out) AS_MUST_USE;
int as_strict_take_word(struct as_strict *reader, const char *name,
                        const struct as_strict_word *words, int *value_out) AS_MUST_USE;
int as_strict_take_string(struct as_strict *reader, const char *name,
                          const char **text_out) AS_MUST_USE; /* borrowed from the document */
int as_strict_take_time(struct as_strict *reader, const char *name,
                        as_maybe_time *time_out) AS_MUST_USE;

#endif
