/*
 * The firing alerts of all Alertmanagers.
 */
#ifndef ALERTSCALER_SRC_MONITORING_ALERTMANAGER_H
#define ALERTSCALER_SRC_MONITORING_ALERTMANAGER_H

#include <alertscaler/monitoring/monitoring.h>

struct as_alertmanager_source;

/* Borrows both arguments. */
struct as_alertmanager_source *as_alertmanager_source_new(
    const struct as_alertmanager_settings *settings, const struct as_source_env *env) AS_MUST_USE;
/* Cancels all requests. */
struct as_alertmanager_source *as_alertmanager_source_free(struct as_alertmanager_source *source);

/* As as_source_port.list_alerts. */
void as_alertmanager_source_list(struct as_alertmanager_source *source, uint64_t ticket,
                                 as_source_listed_fn *done, void *context);

#endif
