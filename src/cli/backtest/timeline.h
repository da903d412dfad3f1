/*
 * A size over time, and when alerts fired, in bounded memory; and figures about a size. Times are
 * in microseconds of wall time and only increase.
 */
#ifndef ALERTSCALER_SRC_CLI_BACKTEST_TIMELINE_H
#define ALERTSCALER_SRC_CLI_BACKTEST_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMELINE_MAX       4096 /* points of a line, and intervals of a band */
#define TIMELINE_BANDS_MAX 12   /* per chart; further ones share the last */

/* A step line: the size is `size` from `at` on. */
struct timeline_point {
    int64_t at;
    int32_t size;
};

/* Beyond TIMELINE_MAX points the line is thinned out to what a chart can show: the first, smallest,
 * largest and last point of each stretch of time. */
struct timeline {
    struct timeline_point *points;
    size_t count, capacity;
};

void timeline_add(struct timeline *line, int64_t at, int32_t size);
void timeline_deinit(struct timeline *line);

struct timeline_interval {
    int64_t from, to;
};

/* When at least one alert of this name fired. */
struct timeline_band {
    char *name;
    size_t open; /* number of firing alerts */
    int64_t since;
    struct timeline_interval *intervals; /* ascending, disjoint */
    size_t count, capacity;
};

void timeline_band_begin(struct timeline_band *band, int64_t at);
void timeline_band_end(struct timeline_band *band, int64_t at);
void timeline_band_close(struct timeline_band *band,
                         int64_t at); /* ends all firing alerts, at the end */
void timeline_band_deinit(struct timeline_band *band);

/* Weighted by time. */
struct size_figures {
    bool is_set;
    int32_t size, limit; /* the present size; the target's max */
    int32_t min, max;
    int64_t from, at;    /* start; counted up to `at` */
    double replica_us;   /* size x time */
    int64_t at_limit_us; /* time with the size at or above the limit */
    uint64_t ups, downs; /* actions */
};

void size_figures_set(struct size_figures *figures, int64_t at, int32_t size, int32_t limit);
void size_figures_end(struct size_figures *figures, int64_t at); /* repeatable */
double size_figures_get_mean(const struct size_figures *figures);
double size_figures_get_replica_hours(const struct size_figures *figures);

#endif
