/*
 * Queries to one Prometheus.
 */
#ifndef ALERTSCALER_SRC_MONITORING_PROMETHEUS_H
#define ALERTSCALER_SRC_MONITORING_PROMETHEUS_H

#include <alertscaler/monitoring/monitoring.h>

struct as_prometheus_source;

/* Borrows both arguments. */
struct as_prometheus_source *as_prometheus_source_new(const struct as_prometheus_settings *settings,
                                                      const struct as_source_env *env) AS_MUST_USE;
/* Cancels all requests. */
struct as_prometheus_source *as_prometheus_source_free(struct as_prometheus_source *source);

/* As as_source_port.query. */
void as_prometheus_source_query(struct as_prometheus_source *source, uint64_t ticket,
                                const struct as_query *query, as_source_queried_fn *done,
                                void *context);

#endif
