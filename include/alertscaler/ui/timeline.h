/*
 * A size over time, and when alerts fired, in bounded memory. Times are in microseconds of wall
 * time and only increase.
 */
#ifndef ALERTSCALER_UI_TIMELINE_H
#define ALERTSCALER_UI_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
