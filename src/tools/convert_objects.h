/*
 * Which objects there are in a file: documents, lists of objects, configurations without a kind.
 */
#ifndef ALERTSCALER_SRC_TOOLS_CONVERT_OBJECTS_H
#define ALERTSCALER_SRC_TOOLS_CONVERT_OBJECTS_H

#include "convert_plan.h"

/* prometheus-adapter's configuration is read first, from all files; then all else. */
enum objects_turn { OBJECTS_ADAPTER, OBJECTS_SCALED };
void objects_walk(struct convert *convert, const struct as_yaml_tree *tree, enum objects_turn turn);

#endif
