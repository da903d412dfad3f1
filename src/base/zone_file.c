/*
 * Zones by their names. Separate from zone.c, so that its users (the core) do not depend on input
 * and output.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "zone_private.h"

static bool is_name_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-';
}

bool as_zone_is_name(const char *name)
{
    const size_t size = strlen(name);
    if (size == 0 || size > AS_ZONE_NAME_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        const bool is_slash = name[i] == '/' && i > 0 && name[i - 1] != '/' && i + 1 < size;
        if (!is_slash && !is_name_char(name[i]))
            return false;
    }
    return true;
}

static int fail_to_read(const char *name, int status, struct as_error *error)
{
    if (access(AS_ZONE_FOLDER, R_OK) != 0)
        as_error_set_errno(error, errno, "cannot read %s (install the package tzdata)",
                           AS_ZONE_FOLDER);
    else if (status == -ENOENT || status == -ENOTDIR || status == -EISDIR)
        as_error_set(error,
                     "there is no time zone \"%s\" in %s; expected a name such as Europe/Berlin or "
                     "UTC",
                     name, AS_ZONE_FOLDER);
    else
        as_error_set_errno(error, status, "cannot read %s/%s", AS_ZONE_FOLDER, name);
    return status;
}

int as_zone_open(const char *name, struct as_zone **zone_out, struct as_error *error)
{
    if (!as_zone_is_name(name)) {
        as_error_set(error, "\"%s\" is no name of a time zone; expected one such as Europe/Berlin",
                     name);
        return -EINVAL;
    }
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/%s", AS_ZONE_FOLDER, name);
    AS_CLEANUP(as_free_p) char *bytes = NULL;
    size_t size = 0;
    int status = as_file_read(path, AS_ZONE_FILE_MAX, &bytes, &size);
    if (status != 0)
        return fail_to_read(name, status, error);
    struct as_zone *zone;
    status = as_zone_parse(bytes, size, &zone, error);
    if (status != 0) {
        as_error_wrap(error, "%s", path);
        return status;
    }
    memcpy(zone->name, name, strlen(name) + 1);
    *zone_out = zone;
    return 0;
}
