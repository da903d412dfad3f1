/*
 * The part of Prometheus' answers that instant and range queries share: whether the data is
 * complete.
 */
#ifndef ALERTSCALER_SRC_MONITORING_PROMETHEUS_PRIVATE_H
#define ALERTSCALER_SRC_MONITORING_PROMETHEUS_PRIVATE_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/monitoring/prometheus_response.h>

#include <alertscaler/doc/json_tree.h>

/*
 * ANSWERED; UNUSABLE with an error for an answer that has warnings or is partial. `isPartial` of
 * any type but `false`, and `warnings` that are not an empty list, count as incomplete.
 */
enum as_prometheus_outcome prometheus_check_complete(const struct tree_value *root,
                                                     struct as_error *error) AS_MUST_USE;

#endif
