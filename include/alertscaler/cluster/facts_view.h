/*
 * How much is known of a cluster's nodes and pods, and how old it is: for metrics.
 */
#ifndef ALERTSCALER_CLUSTER_FACTS_VIEW_H
#define ALERTSCALER_CLUSTER_FACTS_VIEW_H

#include <stddef.h>

#include <alertscaler/base/time.h>
#include <alertscaler/cluster/cluster_facts.h>

struct as_facts_view {
    const char *cluster; /* its name in the configuration */
    size_t objects[AS_CLUSTER_KIND_COUNT];
    as_mono_time fresh_at; /* until when everything is known, of every kind */
};

/* The view is good for the call. */
typedef void as_facts_visit_fn(void *context, const struct as_facts_view *view);

#endif
