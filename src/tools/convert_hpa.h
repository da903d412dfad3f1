/*
 * HPA's rules that other readers make too.
 */
#ifndef ALERTSCALER_SRC_TOOLS_CONVERT_HPA_H
#define ALERTSCALER_SRC_TOOLS_CONVERT_HPA_H

#include "convert_plan.h"

/* The rule of a utilization of cpu or memory, or of an average of it: also of a ScaledObject.
 * `container` NULL: of whole pods. */
void hpa_add_resource(struct convert *convert, struct plan_target *target,
                      const struct as_yaml_node *node, const char *resource, const char *container,
                      enum as_goal goal, int64_t milli);

/* For comments: "hpa.yaml:12". */
const char *convert_origin(struct convert *convert, const struct as_yaml_node *node);

#endif
