/*
 * Charts of targets over time as SVG, and the lines and intervals that they show.
 */
#ifndef ALERTSCALER_UI_CHART_H
#define ALERTSCALER_UI_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/decide/ruleset.h>

/*
 * A size over time, and when alerts fired, in bounded memory. Times are in microseconds of wall
 * time and only increase.
 */

#define AS_TIMELINE_MAX       4096 /* points of a line, and intervals of a band */
#define AS_TIMELINE_BANDS_MAX 12   /* per chart; further ones share the last */

#define AS_TIMELINE_UNKNOWN (-1)

/* A step line: the size is `size` from `at` on; or AS_TIMELINE_UNKNOWN. */
struct as_timeline_point {
    int64_t at;
    int32_t size;
};

/* Beyond AS_TIMELINE_MAX points the line is thinned out to what a chart can show: the first,
 * smallest, largest and last point of each stretch of time. */
struct as_timeline {
    struct as_timeline_point *points;
    size_t count, capacity;
};

void as_timeline_add(struct as_timeline *line, int64_t at, int32_t size);
void as_timeline_deinit(struct as_timeline *line);

struct as_timeline_interval {
    int64_t from, to;
};

/* When at least one alert of this name fired. */
struct as_timeline_band {
    char *name;
    size_t open; /* number of firing alerts */
    int64_t since;
    struct as_timeline_interval *intervals; /* ascending, disjoint */
    size_t count, capacity;
};

void as_timeline_band_begin(struct as_timeline_band *band, int64_t at);
void as_timeline_band_end(struct as_timeline_band *band, int64_t at);
void as_timeline_band_close(struct as_timeline_band *band,
                            int64_t at); /* ends all firing alerts, at the end */
void as_timeline_band_deinit(struct as_timeline_band *band);

/*
 * A chart of one target as SVG: its size (before and under tried rules), its bounds and what was
 * done, and below, when alerts fired and locks held. Without style sheets it is light; a browser
 * that prefers dark shows it dark.
 */

struct as_chart_mark { /* an action */
    int64_t at;
    int32_t size; /* that it set; of one that failed: that stayed */
    bool is_failed;
    const char *text; /* what was done, and why */
};

struct as_chart_value { /* of a rule, and its goal, on an axis of their own */
    int64_t at;
    double value, goal;
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
    const struct as_chart_value *values; /* ascending by time, finite */
    size_t value_count;
};

/* The colors on a dark page. */
extern const char as_chart_dark_style[];

/* Appends an <svg>; a whole document, unless it is a part. Texts may contain anything. */
void as_chart_print_svg(const struct as_chart *chart, struct as_buf *out);

#endif
