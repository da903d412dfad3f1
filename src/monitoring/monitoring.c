/*
 * The source port: see the header. The parts for Prometheus and Alertmanager are independent.
 */
#include <alertscaler/monitoring/monitoring.h>

#include <stdlib.h>

#include <alertscaler/base/alloc.h>

#include "alertmanager.h"
#include "prometheus.h"

struct monitoring {
    struct as_source_port port;
    struct as_source_env env;
    struct as_prometheus_source *prometheus;
    struct as_alertmanager_source *alertmanager;
};

static void run_query(struct as_source_port *self, uint64_t ticket, const struct as_query *query,
                      as_source_queried_fn *done, void *context)
{
    as_prometheus_source_query(((struct monitoring *)self)->prometheus, ticket, query, done,
                               context);
}

static void list_alerts(struct as_source_port *self, uint64_t ticket, as_source_listed_fn *done,
                        void *context)
{
    as_alertmanager_source_list(((struct monitoring *)self)->alertmanager, ticket, done, context);
}

static void close_port(struct as_source_port *self)
{
    struct monitoring *monitoring = (struct monitoring *)self;
    as_prometheus_source_free(monitoring->prometheus);
    as_alertmanager_source_free(monitoring->alertmanager);
    free(monitoring);
}

struct as_source_port *as_monitoring_new(const struct as_settings *settings,
                                         const struct as_source_env *env)
{
    struct monitoring *monitoring = as_xcalloc(1, sizeof(*monitoring));
    monitoring->port = (struct as_source_port){run_query, list_alerts, close_port};
    monitoring->env = *env;
    monitoring->prometheus = as_prometheus_source_new(&settings->prometheus, &monitoring->env);
    monitoring->alertmanager =
        as_alertmanager_source_new(&settings->alertmanager, &monitoring->env);
    return &monitoring->port;
}
