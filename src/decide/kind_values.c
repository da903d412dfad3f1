/*
 * Checks of address values that several kinds use.
 */
#include "kind_values.h"

#include <string.h>

#include <alertscaler/base/str.h>

bool is_without_controls(const char *value)
{
    for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
        if (*c < 0x20 || *c == 0x7F || (*c == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0))
            return false;
    }
    return *value && as_str_is_utf8(value, strlen(value));
}

bool is_configured_name(const char *value)
{
    return is_without_controls(value) && !strchr(value, '/');
}
