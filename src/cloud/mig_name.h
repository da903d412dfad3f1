/*
 * Names in the addresses of managed instance groups and their instances. They are put into requests
 * unescaped, so the check is strict.
 */
#ifndef ALERTSCALER_SRC_CLOUD_MIG_NAME_H
#define ALERTSCALER_SRC_CLOUD_MIG_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>

/* The length of the name of a zone, group or instance; 0 if there is none. */
size_t mig_name_measure(const char *text) AS_MUST_USE;

/* Returns `text` behind a name and `between`, or NULL; size_out: the name's length. */
const char *mig_name_skip(const char *text, const char *between, size_t *size_out) AS_MUST_USE;

/* The project in an address, with its domain if it has one; or NULL. */
const char *mig_name_find_project(const char *url, size_t *size_out) AS_MUST_USE;

struct mig_instance_name { /* parts of an id, ZONE/GROUP/NAME; the name is NUL-terminated */
    const char *zone, *mig, *name;
    size_t zone_size, mig_size;
};

bool mig_name_parse_id(const char *id, struct mig_instance_name *name_out) AS_MUST_USE;

#endif
