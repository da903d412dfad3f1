/*
 * Versions: ours, and our libraries'.
 */
#ifndef ALERTSCALER_RUNTIME_VERSION_H
#define ALERTSCALER_RUNTIME_VERSION_H

#include <stddef.h>

struct as_library {
    const char *name;
    const char *version; /* of the loaded library, not of its headers */
};

const char *as_version_get(void); /* "0.1.0" */
const char *as_version_get_revision(
    void); /* of the source: "f27d349", "f27d349-dirty", "unknown" */
size_t as_version_get_libraries(const struct as_library **libraries_out);

#endif
