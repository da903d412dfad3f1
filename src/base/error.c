/*
 * Error text of fixed size: never allocates, so it also works when memory has run out. Each text is
 * built in a separate buffer first, because the arguments may point into the error itself.
 */
#include <alertscaler/base/error.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>

/*
 * Texts of errno values. Those that as_file_open gives another meaning have a text of ours.
 */

const char *as_errno_get_text(int code)
{
    const int number = code < 0 ? -code : code;
    switch (number) {
    case EMEDIUMTYPE: return "not a regular file";
    case ELOOP: return "a symbolic link that is not followed, or too many of them";
    default: return strerror(number);
    }
}

/* Appends to `text`, which holds *size_io bytes of AS_ERROR_SIZE; cuts between characters. */
static void error_append(char *text, size_t *size_io, const char *more)
{
    size_t size = as_str_cut_utf8(more, strlen(more), AS_ERROR_SIZE - 1 - *size_io);
    memcpy(text + *size_io, more, size);
    *size_io += size;
    text[*size_io] = '\0';
}

AS_PRINTF(2, 0)
static void error_build(struct as_error *error, const char *format, va_list arguments,
                        const char *rest)
{
    char head[AS_ERROR_SIZE + 1] = "", text[AS_ERROR_SIZE];
    size_t size = 0;
    if (vsnprintf(head, sizeof(head), format, arguments) < 0)
        head[0] = '\0';
    error_append(text, &size, head);
    if (!as_str_is_empty(rest)) {
        error_append(text, &size, ": ");
        error_append(text, &size, rest);
    }
    memcpy(error->text, text, size + 1);
}

void as_error_set(struct as_error *error, const char *format, ...)
{
    if (!error)
        return;
    va_list arguments;
    va_start(arguments, format);
    error_build(error, format, arguments, NULL);
    va_end(arguments);
}

void as_error_wrap(struct as_error *error, const char *format, ...)
{
    if (!error)
        return;
    va_list arguments;
    va_start(arguments, format);
    error_build(error, format, arguments, error->text);
    va_end(arguments);
}

void as_error_set_errno(struct as_error *error, int code, const char *format, ...)
{
    if (!error)
        return;
    va_list arguments;
    va_start(arguments, format);
    error_build(error, format, arguments, as_errno_get_text(code));
    va_end(arguments);
}
