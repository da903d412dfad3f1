/*
 * A chart of one target as SVG: its size before and under the tried rules, and below, when alerts
 * fired. Self-contained; light, or dark if the viewer's browser prefers that.
 */
#ifndef ALERTSCALER_SRC_CLI_BACKTEST_TIMELINE_SVG_H
#define ALERTSCALER_SRC_CLI_BACKTEST_TIMELINE_SVG_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/buf.h>

#include "timeline.h"

struct timeline_chart {
    const char *title, *subtitle;
    const char *unit; /* of the sizes: "replicas", "nodes" */
    int64_t from, to; /* of the time axis */
    const struct timeline *before, *after;
    int32_t min, max; /* the target's bounds; max 0: not shown */
    const struct timeline_band *bands;
    size_t band_count;
};

/* Appends a whole document. Texts may contain anything. */
void timeline_print_svg(const struct timeline_chart *chart, struct as_buf *out);

#endif
