/*
 * The header fields of an answer, followed by its trailer fields: "name\0value\0...", ended by an
 * empty name. Fields that contain a NUL are left out.
 */
#ifndef ALERTSCALER_PORT_HTTP_FIELDS_H
#define ALERTSCALER_PORT_HTTP_FIELDS_H

#include <string.h>
#include <strings.h>

#include <alertscaler/port/http.h>

/* The value of the first field of this name, ignoring case; "" if there is no such field. */
static inline const char *as_http_response_find(const struct as_http_response *response,
                                                const char *name)
{
    const char *at = response->fields ? response->fields : "";
    while (*at) {
        const char *value = at + strlen(at) + 1;
        if (strcasecmp(at, name) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return "";
}

#endif
