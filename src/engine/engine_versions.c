/*
 * Versions of objects: see the header.
 */
#include "engine_versions.h"

#include <string.h>

#include <alertscaler/decide/sized.h>

/* Numbers; the unit may stand behind (decide/sized.h). */
static bool is_older(const char *version, const char *other)
{
    const size_t size = strspn(version, "0123456789"), other_size = strspn(other, "0123456789");
    if ((version[size] != '\0' && version[size] != AS_SIZED_UNIT_MARK) ||
        strcmp(version + size, other + other_size) != 0)
        return false;
    return size != other_size ? size < other_size : memcmp(version, other, size) < 0;
}

bool version_is_set(const char *version)
{
    return *version && *version != AS_SIZED_UNIT_MARK;
}

bool version_is_newer(const char *version, const char *than)
{
    return *version && *than && strcmp(version, than) != 0 && !is_older(version, than);
}
