/*
 * x
 */
#ifndef ALERTSCALER_SRC_TOOLS_ADAPTER_PARTS_H
#define ALERTSCALER_SRC_TOOLS_ADAPTER_PARTS_H

#include "convert_adapter.h"

/* What a rule knows of a metric. */
struct adapter_trace {
    const char *series; /* the only one that the rule can make it of; NULL: none is known */
    const char *why;    /* then: why the rule may make it all the same; NULL: it does not */
    unsigned rank;      /* how certain it is that the rule makes it: the more the better */
};
#define ADAPTER_CERTAIN 2U /* from this rank on: the rule names the series, or the metric */
struct adapter_trace adapter_trace_series(struct convert *convert, const struct adapter_rule *rule,
                                          const char *label, const char *metric);

/* The label of a resource; NULL: the rule knows none. */
const char *adapter_find_label(struct convert *convert, const struct raw_resources *resources,
                               const char *group, const char *resource);

#endif
