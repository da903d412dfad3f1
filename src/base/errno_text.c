/*
 * Texts of errno values. Those that as_file_open gives another meaning have a text of ours.
 */
#include <alertscaler/base/errno_text.h>

#include <errno.h>
#include <string.h>

const char *as_errno_get_text(int code)
{
    const int number = code < 0 ? -code : code;
    switch (number) {
    case EMEDIUMTYPE: return "not a regular file";
    case ELOOP: return "a symbolic link that is not followed, or too many of them";
    default: return strerror(number);
    }
}
