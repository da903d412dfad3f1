/*
 * Figures about a size over time. Times are in microseconds of wall time and only increase.
 */
#ifndef ALERTSCALER_SRC_CLI_SIZE_FIGURES_H
#define ALERTSCALER_SRC_CLI_SIZE_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

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
