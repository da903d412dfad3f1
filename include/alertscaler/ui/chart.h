/*
 * A chart of one target as SVG: its size (before and under tried rules), its bounds and what was
 * done, and below, when alerts fired and locks held. Without style sheets it is light; a browser
 * that prefers dark shows it dark.
 */
#ifndef ALERTSCALER_UI_CHART_H
#define ALERTSCALER_UI_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/ui/timeline.h>

struct as_chart_mark { /* an action */
    int64_t at;
    int32_t size; /* that it set; of one that failed: that stayed */
    bool is_failed;
    const char *text; /* what was done, and why */
};

struct as_chart_bounds { /* over time */
    struct as_timeline min, max;
};

/* Those that the target's configuration of now puts in force between two times. */
void as_chart_bounds_fill(struct as_chart_bounds *bounds, const struct as_target_config *config,
                          int64_t from, int64_t to);
void as_chart_bounds_deinit(struct as_chart_bounds *bounds);

struct as_chart {
    const char *title, *subtitle;     /* of a part of a page the title is only spoken */
    const char *unit;                 /* of the sizes: "replicas", "nodes" */
    int width;                        /* in pixels; 0: 1200 */
    bool is_part;                     /* of a page, which has a heading and as_chart_dark_style */
    int64_t from, to;                 /* of the time axis */
    const struct as_timeline *before; /* NULL: there is one line only */
    const struct as_timeline *after;
    int32_t min, max; /* the target's bounds; max 0: not shown */
    const struct as_chart_bounds
        *bounds; /* instead of these, where schedules change them; or NULL */
    const struct as_timeline_band *bands;
    size_t band_count;
    const struct as_timeline_band *locks;
    size_t lock_count;
    const struct as_chart_mark *marks;
    size_t mark_count;
};

/* The colors on a dark page. */
extern const char as_chart_dark_style[];

/* Appends an <svg>; a whole document, unless it is a part. Texts may contain anything. */
void as_chart_print_svg(const struct as_chart *chart, struct as_buf *out);

#endif
