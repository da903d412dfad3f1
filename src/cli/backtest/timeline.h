/*
 * How a size went over time, and when alerts fired, in bounded memory; and figures over a size.
 * Times are in microseconds of wall time and only go forward.
 */
#ifndef ALERTSCALER_SRC_CLI_BACKTEST_TIMELINE_H
#define ALERTSCALER_SRC_CLI_BACKTEST_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIMELINE_MAX       4096 /* points of a line, and intervals of a band */
#define TIMELINE_BANDS_MAX 12   /* of one chart; what comes besides shares the last */

/* A step line: the size is `size` from `at` on. */
struct timeline_point {
    int64_t at;
    int32_t size;
};

/* Beyond TIMELINE_MAX points the line is thinned out to what a chart can show: of each stretch of
 * time the first, the least, the largest and the last point. */
struct timeline {
    struct timeline_point *points;
    size_t count, capacity;
};

void timeline_add(struct timeline *line, int64_t at, int32_t size);
void timeline_deinit(struct timeline *line);

struct timeline_interval {
    int64_t from, to;
};

/* When alerts of one name fired: any of them. */
struct timeline_band {
    char *name;
    size_t open; /* alerts that fire now */
    int64_t since;
    struct timeline_interval *intervals; /* ascending, apart from each other */
    size_t count, capacity;
};

void timeline_band_begin(struct timeline_band *band, int64_t at);
void timeline_band_end(struct timeline_band *band, int64_t at);
void timeline_band_close(struct timeline_band *band,
                         int64_t at); /* all that fire, at the very end */
void timeline_band_deinit(struct timeline_band *band);

/* Weighted by time. */
struct size_figures {
    bool is_set;
    int32_t size, limit; /* the present size; the target's max */
    int32_t min, max;
    int64_t from, at;    /* up to where it is counted */
    double replica_us;   /* size x time */
    int64_t at_limit_us; /* while the size was at or above the limit */
    uint64_t ups, downs; /* actions */
};

void size_figures_set(struct size_figures *figures, int64_t at, int32_t size, int32_t limit);
void size_figures_end(struct size_figures *figures, int64_t at); /* may be called again */
double size_figures_get_mean(const struct size_figures *figures);
double size_figures_get_replica_hours(const struct size_figures *figures);

#endif
