/*
 * The size so far is weighted when the next one comes.
 */
#include "size_figures.h"

#include <alertscaler/base/time.h>

void size_figures_end(struct size_figures *figures, int64_t at)
{
    if (!figures->is_set || at <= figures->at)
        return;
    figures->replica_us += (double)figures->size * (double)(at - figures->at);
    if (figures->size >= figures->limit)
        figures->at_limit_us += at - figures->at;
    figures->at = at;
}

void size_figures_set(struct size_figures *figures, int64_t at, int32_t size, int32_t limit)
{
    size_figures_end(figures, at);
    if (!figures->is_set) {
        figures->is_set = true;
        figures->min = figures->max = size;
        figures->from = figures->at = at;
    }
    figures->size = size;
    figures->limit = limit;
    figures->min = size < figures->min ? size : figures->min;
    figures->max = size > figures->max ? size : figures->max;
}

double size_figures_get_mean(const struct size_figures *figures)
{
    const int64_t span = figures->at - figures->from;
    return span > 0 ? figures->replica_us / (double)span : figures->size;
}

double size_figures_get_replica_hours(const struct size_figures *figures)
{
    return figures->replica_us / (double)AS_US_PER_H;
}
