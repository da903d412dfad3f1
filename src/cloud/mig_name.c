/*
 * Names of managed instance groups: see the header.
 */
#include "mig_name.h"

#include <string.h>

#include <alertscaler/base/str.h>

size_t mig_name_measure(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
}

const char *mig_name_skip(const char *text, const char *between, size_t *size_out)
{
    *size_out = mig_name_measure(text);
    const char *behind = text + *size_out;
    return *size_out > 0 && as_str_starts_with(behind, between) ? behind + strlen(between) : NULL;
}

/* A project may have a domain name before it: "example.com:project". */
const char *mig_name_find_project(const char *url, size_t *size_out)
{
    const char *found = strstr(url, "/projects/");
    const char *project = found ? found + strlen("/projects/") : url;
    *size_out = mig_name_measure(project);
    if (found && project[*size_out] == ':')
        *size_out += 1 + mig_name_measure(project + *size_out + 1);
    return found && *size_out > 0 ? project : NULL;
}

bool mig_name_parse_id(const char *id, struct mig_instance_name *name_out)
{
    name_out->zone = id;
    name_out->mig = mig_name_skip(id, "/", &name_out->zone_size);
    name_out->name = name_out->mig ? mig_name_skip(name_out->mig, "/", &name_out->mig_size) : NULL;
    return name_out->name && *name_out->name && !name_out->name[mig_name_measure(name_out->name)];
}
