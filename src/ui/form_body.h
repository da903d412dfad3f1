/*
 * The body of a form, application/x-www-form-urlencoded, read strictly: what one of our pages did
 * not send is an error. Each field has a name that the caller gives, and comes at most once.
 */
#ifndef ALERTSCALER_SRC_UI_FORM_BODY_H
#define ALERTSCALER_SRC_UI_FORM_BODY_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

#define AS_FORM_FIELDS_MAX 8

struct as_form_body {
    const char *names[AS_FORM_FIELDS_MAX]; /* by the caller; NULL: unused */
    char *values[AS_FORM_FIELDS_MAX];      /* UTF-8 without NUL; NULL: not sent; "" is sent */
};

/* Fills `values`. 0; -EBADMSG with an error for the sender that quotes no value, and no values. */
int as_form_body_decode(const char *text, size_t size, struct as_form_body *body,
                        struct as_error *error) AS_MUST_USE;
void as_form_body_deinit(struct as_form_body *body); /* wipes the values */

/* The value of a field; NULL: not sent, or empty. */
const char *as_form_body_find(const struct as_form_body *body, const char *name);

#endif
