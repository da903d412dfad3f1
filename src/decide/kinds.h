/*
 * Checks of address values that the rows of kinds (kinds.c) and addresses (target.c) share.
 */
#ifndef ALERTSCALER_SRC_DECIDE_KINDS_H
#define ALERTSCALER_SRC_DECIDE_KINDS_H

#include <stdbool.h>

bool is_without_controls(const char *value); /* not empty; neither C0, DEL nor C1 */

#endif
