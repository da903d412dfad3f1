/*
 * Versions of objects as API servers give them: growing numbers, opaque elsewhere.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_VERSIONS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_VERSIONS_H

#include <stdbool.h>

bool version_is_set(const char *version); /* not "", and not only a unit (decide/sized.h) */
/* Whether an object was changed between the two. False if either is "" (it has no version), and for
 * a smaller number: the server lacks the last changes, e.g. after a fail-over. */
bool version_is_newer(const char *version, const char *than);

#endif
