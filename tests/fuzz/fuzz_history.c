/*
 * Any lines as the end of an action log: the history stays within its memory, and what it knows can
 * be drawn. The first byte is the number of KiB it has.
 */
#include <string.h>

#include <alertscaler/tools/record_text.h>
#include <alertscaler/ui/history.h>

#include "fuzz.h"

#define TARGETS_MAX 16

struct seen {
    char *targets[TARGETS_MAX];
    size_t count;
};

static void take_target(void *context, const struct as_history_action *action)
{
    struct seen *seen = context;
    if (seen->count < TARGETS_MAX)
        seen->targets[seen->count++] = strdup(action->target);
}

static void draw(const struct as_history *history, const char *target)
{
    struct as_history_chart chart;
    struct as_buf out = AS_BUF_INIT_OPEN((size_t)1024 * 1024);
    const as_wall_time to = {INT64_C(1800000000000000)}, from = {to.us - AS_HISTORY_SPAN_US};
    as_history_draw(history, target, from, to, &chart);
    as_chart_print_svg(&(struct as_chart){.title = target,
                                          .unit = "nodes",
                                          .is_part = true,
                                          .from = from.us,
                                          .to = to.us,
                                          .after = &chart.line,
                                          .bands = chart.alerts,
                                          .band_count = chart.alert_count,
                                          .locks = chart.locks,
                                          .lock_count = chart.lock_count,
                                          .marks = chart.marks,
                                          .mark_count = chart.mark_count},
                       &out);
    as_history_chart_deinit(&chart);
    as_buf_deinit(&out);
}

static void take_line(struct as_history *history, const char *line, size_t size,
                      as_wall_time *previous)
{
    struct as_error error;
    as_wall_time at;
    json_t *record = json_loadb(line, size, 0, NULL);
    if (record && as_record_get_time(record, &at, &error) == 0) {
        as_history_add_record(history, record, at, *previous);
        *previous = at;
    }
    json_decref(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data + 1;
    struct seen seen = {0};
    as_wall_time previous = {0};
    if (size < 1)
        return 0;
    const size_t bytes_max = ((size_t)data[0] + 16) * 1024;
    struct as_history *history = as_history_new(bytes_max);
    for (const char *end = (const char *)data + size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        take_line(history, at, (size_t)((newline ? newline : end) - at), &previous);
        at = newline ? newline + 1 : end;
    }
    as_history_visit_actions(history, take_target, &seen);
    for (size_t i = 0; i < seen.count; i++) {
        draw(history, seen.targets[i]);
        free(seen.targets[i]);
    }
    as_history_free(history);
    return 0;
}
