/*
 * The line has a point for each pixel at most. It is lifted where the size is not known.
 */
#include <inttypes.h>

#include <alertscaler/ui/timeline.h>

#include "page.h"

#define SPAN_US AS_US_PER_H
#define WIDTH   120
#define HEIGHT  28
#define MARGIN  3

struct range {
    int32_t least, largest;
    bool is_known;
};

static struct range find_range(const struct as_timeline *line)
{
    struct range range = {.least = INT32_MAX};
    for (size_t i = 0; i < line->count; i++) {
        const int32_t size = line->points[i].size;
        if (size == AS_TIMELINE_UNKNOWN)
            continue;
        range.is_known = true;
        range.least = size < range.least ? size : range.least;
        range.largest = size > range.largest ? size : range.largest;
    }
    return range;
}

static int get_x(int64_t at, int64_t from)
{
    return (int)((at - from) * WIDTH / SPAN_US);
}

static int get_y(int32_t size, const struct range *range)
{
    const int64_t span = (int64_t)range->largest - range->least;
    if (span == 0)
        return HEIGHT / 2;
    return HEIGHT - MARGIN - (int)((int64_t)(size - range->least) * (HEIGHT - 2 * MARGIN) / span);
}

static void draw(struct as_buf *out, const struct as_timeline *line, int64_t from,
                 const struct range *range)
{
    bool is_down = false;
    for (size_t i = 0; i < line->count; i++) {
        const struct as_timeline_point *point = &line->points[i];
        const int x = get_x(point->at, from);
        if (i + 1 < line->count && get_x(line->points[i + 1].at, from) == x)
            continue;
        if (point->size == AS_TIMELINE_UNKNOWN) {
            if (is_down)
                as_buf_printf(out, "H%d", x);
            is_down = false;
        } else {
            as_buf_printf(out, is_down ? "H%dV%d" : "M%d %d", x, get_y(point->size, range));
            is_down = true;
        }
    }
    if (is_down)
        as_buf_printf(out, "H%d", WIDTH);
}

void page_print_spark(const struct api_request *request, const char *target)
{
    struct as_buf *out = page_get_out(request);
    const as_wall_time from = {request->view.wall.us - SPAN_US};
    struct as_timeline line;
    as_history_trace(request->api->history, target, from, request->view.wall, &line);
    const struct range range = find_range(&line);
    if (range.is_known) {
        as_buf_append_str(out, "<svg class=\"spark\" role=\"img\" viewBox=\"0 0 120 28\"");
        as_buf_printf(out, " aria-label=\"from %" PRId32 " to %" PRId32 " in the last hour\">",
                      range.least, range.largest);
        as_buf_append_str(out, "<path d=\"");
        draw(out, &line, from.us, &range);
        as_buf_append_str(out, "\"/></svg>");
    } else {
        html_element(out, "span", "dim", "not known");
    }
    as_timeline_deinit(&line);
}
