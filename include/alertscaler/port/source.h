/*
 * Port: what monitoring knows: results of PromQL queries, and the list of firing alerts. Read-only;
 * one attempt per call.
 */
#ifndef ALERTSCALER_PORT_SOURCE_H
#define ALERTSCALER_PORT_SOURCE_H

#include <stdint.h>

#include <alertscaler/model/source.h>

/* Each is called exactly once per call, in a later turn of the loop. The result is valid during the
 * callback. */
typedef void as_source_queried_fn(void *context, uint64_t call_id,
                                  const struct as_query_result *result);
/* `error`: the server's text if the query is refused, or why it is unchecked; else "". */
typedef void as_source_parsed_fn(void *context, uint64_t call_id, enum as_query_verdict verdict,
                                 const char *error);
typedef void as_source_listed_fn(void *context, uint64_t call_id, const struct as_alert_list *list);

struct as_source_port {
    /* Evaluates a query now. `query` is borrowed for the call. */
    void (*query)(struct as_source_port *self, uint64_t call_id, const struct as_query *query,
                  as_source_queried_fn *done, void *context);
    /* Reads all firing alerts, silenced, inhibited and muted ones too, from every Alertmanager. */
    void (*list_alerts)(struct as_source_port *self, uint64_t call_id, as_source_listed_fn *done,
                        void *context);
    /* Lets the server parse a query, which reads no data. All other queries go first. NULL: this
     * source cannot. */
    void (*parse)(struct as_source_port *self, uint64_t call_id, const char *text,
                  as_source_parsed_fn *done, void *context);
    void (*close)(struct as_source_port *self); /* no callbacks afterwards; frees it too */
};

#endif
