/*
 * Error text for a person, built from the inside out: set "HTTP 409", wrap "patch", wrap "scale
 * shop/checkout" reads "scale shop/checkout: patch: HTTP 409". The size is fixed; a longer text is
 * cut at the end. Every function accepts a NULL error and ignores it.
 */
#ifndef ALERTSCALER_BASE_ERROR_H
#define ALERTSCALER_BASE_ERROR_H

#include <alertscaler/base/attr.h>

#define AS_ERROR_SIZE 512

struct as_error {
    char text[AS_ERROR_SIZE];
};

#define AS_ERROR_INIT ((struct as_error){.text = ""})

void as_error_set(struct as_error *error, const char *format, ...) AS_PRINTF(2, 3);
void as_error_wrap(struct as_error *error, const char *format, ...) AS_PRINTF(2, 3);

/* As as_error_set, followed by ": " and the text of the errno value `code` (positive or
 * negative). */
void as_error_set_errno(struct as_error *error, int code, const char *format, ...) AS_PRINTF(3, 4);

/*
 * The text of an errno value: strerror's, or a better one.
 */

const char *as_errno_get_text(int code); /* positive or negative */

#endif
