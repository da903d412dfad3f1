/*
 * Checks of address values, for the rows of kinds.
 */
#ifndef ALERTSCALER_SRC_DECIDE_KIND_VALUES_H
#define ALERTSCALER_SRC_DECIDE_KIND_VALUES_H

#include <stdbool.h>

bool is_without_controls(const char *value); /* not empty; neither C0, DEL nor C1 */

/* A name in the configuration; without '/', because it is part of an id. */
bool is_configured_name(const char *value);

#endif
