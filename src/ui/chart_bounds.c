/*
 * The bounds of a chart over time.
 */
#include <alertscaler/ui/chart.h>

void as_chart_bounds_fill(struct as_chart_bounds *bounds, const struct as_target_config *config,
                          int64_t from, int64_t to)
{
    *bounds = (struct as_chart_bounds){0};
    for (int64_t at = from; at < to;) {
        const struct as_schedule_bounds now =
            as_target_config_get_bounds(config, (as_wall_time){at});
        as_timeline_add(&bounds->min, at, now.min);
        as_timeline_add(&bounds->max, at, now.max);
        at = now.change.set ? now.change.at.us : to;
    }
}

void as_chart_bounds_deinit(struct as_chart_bounds *bounds)
{
    as_timeline_deinit(&bounds->min);
    as_timeline_deinit(&bounds->max);
}
