/*
 * The path of a field in an object:
 *
 *   spec.minReplicas
 *   metadata.annotations['example.com/workers']
 *   spec.template.spec.containers[name=app].env[name=WORKERS].value
 *
 * Members stand between dots, names that are no plain words in ['...']. An element of a list is
 * selected by the value of one of its members, [name=app] or [name='a b'], never by its number. A
 * path ends with a member.
 */
#ifndef ALERTSCALER_MODEL_FIELD_PATH_H
#define ALERTSCALER_MODEL_FIELD_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>

#define AS_FIELD_PATH_MAX  256 /* bytes */
#define AS_FIELD_STEPS_MAX 32

struct as_field_step {
    const char *name;  /* of the member */
    const char *value; /* NULL: the member is the next object or value; else the step is to the
                          element of a list whose member has this value */
};

struct as_field_path {
    size_t count; /* 1 or more */
    struct as_field_step steps[AS_FIELD_STEPS_MAX];
    char texts[2 * AS_FIELD_PATH_MAX]; /* the steps point here: do not copy the struct */
};

/* 0, or -EINVAL with "offset 5: expected ...", or without an offset. */
int as_field_path_parse(const char *text, struct as_field_path *path_out,
                        struct as_error *error) AS_MUST_USE;

/* Appends the first `count` steps in the one form that equal paths share. */
void as_field_path_print(const struct as_field_path *path, size_t count, struct as_buf *out);

#endif
