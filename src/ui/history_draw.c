/*
 * What was so at the chart's beginning is drawn from its beginning on.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "history_private.h"

static const struct history_line *find_line(const struct as_history *history, const char *target)
{
    const struct history_line *line;
    HASH_FIND_STR(history->lines, target, line);
    return line;
}

static int64_t cut(int64_t at, as_wall_time from, as_wall_time to)
{
    return at < from.us ? from.us : at > to.us ? to.us : at;
}

static void trace(const struct history_line *line, as_wall_time from, as_wall_time to,
                  struct as_timeline *line_out)
{
    as_timeline_add(line_out, from.us, AS_TIMELINE_UNKNOWN);
    for (size_t i = 0; line && i < line->count; i++) {
        const struct history_event *event = &line->events[i];
        if (event->kind == HISTORY_SIZE)
            as_timeline_add(line_out, cut(event->at, from, to), event->value);
    }
}

void as_history_trace(const struct as_history *history, const char *target, as_wall_time from,
                      as_wall_time to, struct as_timeline *line_out)
{
    *line_out = (struct as_timeline){0};
    trace(find_line(history, target), from, to, line_out);
}

/* Beyond the last band, names share it. */
static struct as_timeline_band *get_band(struct as_history_chart *chart, const char *name)
{
    for (size_t i = 0; i < chart->alert_count; i++) {
        if (strcmp(chart->alerts[i].name, name) == 0)
            return &chart->alerts[i];
    }
    if (chart->alert_count == AS_TIMELINE_BANDS_MAX)
        return &chart->alerts[AS_TIMELINE_BANDS_MAX - 1];
    struct as_timeline_band *band = &chart->alerts[chart->alert_count++];
    band->name = as_xstrdup(chart->alert_count == AS_TIMELINE_BANDS_MAX ? "further alerts" : name);
    return band;
}

static void draw_alert(struct as_history_chart *chart, const char *name, int32_t change, int64_t at)
{
    struct as_timeline_band *band = get_band(chart, *name ? name : "alerts without a name");
    for (; change > 0; change--)
        as_timeline_band_begin(band, at);
    for (; change < 0; change++)
        as_timeline_band_end(band, at);
}

/* Bands that ended before the chart begins are not shown. */
static void end_bands(struct as_history_chart *chart, as_wall_time from, as_wall_time to)
{
    size_t kept = 0;
    for (size_t i = 0; i < chart->alert_count; i++) {
        struct as_timeline_band *band = &chart->alerts[i];
        as_timeline_band_close(band, to.us);
        if (band->count > 0 && band->intervals[band->count - 1].to > from.us)
            chart->alerts[kept++] = *band;
        else
            as_timeline_band_deinit(band);
    }
    chart->alert_count = kept;
}

static void draw_mark(const struct as_history *history, struct as_history_chart *chart,
                      const struct history_event *event)
{
    const enum as_reason outcome = (enum as_reason)event->reason;
    const char *rule = history->texts[event->name];
    const bool is_failed = outcome != AS_REASON_APPLIED;
    char time[AS_RFC3339_SIZE];
    as_wall_time_print((as_wall_time){event->at}, time);
    if (chart->mark_count == AS_HISTORY_MARKS_MAX) {
        free((char *)chart->marks[0].text);
        memmove(chart->marks, chart->marks + 1, --chart->mark_count * sizeof(*chart->marks));
    }
    chart->marks[chart->mark_count++] = (struct as_chart_mark){
        .at = event->at,
        .size = is_failed && event->other >= 0 ? event->other : event->value,
        .is_failed = is_failed,
        .text =
            as_xasprintf("%.8s: %" PRId32 " to %" PRId32 ": %s%s%s", time + 11, event->other,
                         event->value, as_reason_get_word(outcome), *rule ? ", rule " : "", rule),
    };
}

static void draw_locks(struct as_history_chart *chart, const struct history_line *line,
                       enum history_kind kind, const char *name, as_wall_time from, as_wall_time to)
{
    struct as_timeline_band *band = &chart->locks[chart->lock_count];
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < line->count; i++) {
        const struct history_event *event = &line->events[i];
        if (event->kind != kind)
            continue;
        if (band->open > 0)
            as_timeline_band_end(band, cut(end < event->at ? end : event->at, from, to));
        end = event->at + event->value * AS_US_PER_S;
        if (event->value > 0 && end > from.us)
            as_timeline_band_begin(band, cut(event->at, from, to));
    }
    if (band->open > 0)
        as_timeline_band_end(band, cut(end, from, to));
    if (band->count == 0)
        return;
    band->name = as_xstrdup(name);
    chart->lock_count++;
}

void as_history_draw(const struct as_history *history, const char *target, as_wall_time from,
                     as_wall_time to, struct as_history_chart *chart_out)
{
    const struct history_line *line = find_line(history, target);
    *chart_out = (struct as_history_chart){0};
    trace(line, from, to, &chart_out->line);
    if (!line)
        return;
    chart_out->marks = as_xcalloc(AS_HISTORY_MARKS_MAX, sizeof(*chart_out->marks));
    for (size_t i = 0; i < line->count; i++) {
        const struct history_event *event = &line->events[i];
        if (event->kind == HISTORY_ALERT)
            draw_alert(chart_out, history->texts[event->name], event->value,
                       cut(event->at, from, to));
        else if (event->kind == HISTORY_ACTION && event->at >= from.us && event->at <= to.us)
            draw_mark(history, chart_out, event);
    }
    end_bands(chart_out, from, to);
    draw_locks(chart_out, line, HISTORY_UP_LOCK, "locked against growing", from, to);
    draw_locks(chart_out, line, HISTORY_DOWN_LOCK, "locked against shrinking", from, to);
}

void as_history_chart_deinit(struct as_history_chart *chart)
{
    as_timeline_deinit(&chart->line);
    for (size_t i = 0; i < chart->alert_count; i++)
        as_timeline_band_deinit(&chart->alerts[i]);
    for (size_t i = 0; i < chart->lock_count; i++)
        as_timeline_band_deinit(&chart->locks[i]);
    for (size_t i = 0; i < chart->mark_count; i++)
        free((char *)chart->marks[i].text);
    free(chart->marks);
    *chart = (struct as_history_chart){0};
}

void as_history_visit_actions(const struct as_history *history, as_history_action_fn *visit,
                              void *context)
{
    for (const struct history_line *line = history->lines; line; line = line->hh.next) {
        for (size_t i = 0; i < line->count; i++) {
            const struct history_event *event = &line->events[i];
            if (event->kind != HISTORY_ACTION)
                continue;
            visit(context, &(struct as_history_action){
                               .target = line->id,
                               .rule = history->texts[event->name],
                               .at = {event->at},
                               .from = event->other,
                               .to = event->value,
                               .outcome = (enum as_reason)event->reason,
                           });
        }
    }
}
