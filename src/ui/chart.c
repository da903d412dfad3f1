/*
 * Charts as SVG, and the lines over time that they show. Coordinates have one decimal: a chart is
 * 1200 wide, and equal input gives equal bytes. Every element has its colors as attributes, for
 * viewers without style sheets (librsvg, Inkscape, mail); the style sheet only has the colors for
 * dark pages.
 */
#include <alertscaler/ui/chart.h>

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

/*
 * Thinning out bounds the memory: when it is full, points closer than a chart can show are merged.
 * Until then all points are exact.
 */

#define STRETCHES (AS_TIMELINE_MAX / 8) /* each keeps at most four points: half of the room */

struct stretch { /* indices of points */
    size_t first, least, largest, last;
};

static size_t keep_stretch(struct as_timeline *line, size_t kept, const struct stretch *stretch)
{
    /* ascending: least and largest are between first and last */
    const bool least_first = stretch->least < stretch->largest;
    const size_t order[] = {stretch->first, least_first ? stretch->least : stretch->largest,
                            least_first ? stretch->largest : stretch->least, stretch->last};
    for (size_t i = 0; i < AS_ARRAY_SIZE(order); i++) {
        if (i == 0 || order[i] > order[i - 1])
            line->points[kept++] = line->points[order[i]];
    }
    return kept;
}

static void thin_out(struct as_timeline *line)
{
    assert(line->points);
    const int64_t start = line->points[0].at;
    const int64_t width = (line->points[line->count - 1].at - start) / STRETCHES + 1;
    struct stretch stretch = {0};
    size_t kept = 0;

    for (size_t i = 1; i < line->count; i++) {
        const struct as_timeline_point *points = line->points;
        if ((points[i].at - start) / width != (points[stretch.first].at - start) / width) {
            kept = keep_stretch(line, kept, &stretch); /* never writes beyond `last` */
            stretch = (struct stretch){i, i, i, i};
            continue;
        }
        stretch.last = i;
        if (points[i].size < points[stretch.least].size)
            stretch.least = i;
        if (points[i].size > points[stretch.largest].size)
            stretch.largest = i;
    }
    line->count = keep_stretch(line, kept, &stretch);
}

void as_timeline_add(struct as_timeline *line, int64_t at, int32_t size)
{
    struct as_timeline_point *last = line->count > 0 ? &line->points[line->count - 1] : NULL;

    if (last && last->size == size)
        return;
    if (last && last->at >= at) {
        last->size = size;
        return;
    }
    if (line->count == AS_TIMELINE_MAX)
        thin_out(line);
    line->points = as_xgrow(line->points, line->count, &line->capacity, sizeof(*line->points));
    line->points[line->count++] = (struct as_timeline_point){at, size};
}

void as_timeline_deinit(struct as_timeline *line)
{
    free(line->points);
    *line = (struct as_timeline){0};
}

/* Merges neighbours with gaps up to `width`. */
static size_t chart_join(struct as_timeline_band *band, int64_t width)
{
    size_t kept = 0;

    for (size_t i = 1; i < band->count; i++) {
        if (band->intervals[i].from - band->intervals[kept].to <= width)
            band->intervals[kept].to = band->intervals[i].to;
        else
            band->intervals[++kept] = band->intervals[i];
    }
    return kept + 1;
}

static void add_interval(struct as_timeline_band *band, int64_t from, int64_t to)
{
    if (band->count == AS_TIMELINE_MAX) {
        int64_t width = (to - band->intervals[0].from) / AS_TIMELINE_MAX + 1;
        while (band->count > AS_TIMELINE_MAX / 2) {
            band->count = chart_join(band, width);
            width *= 2;
        }
    }
    band->intervals =
        as_xgrow(band->intervals, band->count, &band->capacity, sizeof(*band->intervals));
    band->intervals[band->count++] = (struct as_timeline_interval){from, to};
}

void as_timeline_band_begin(struct as_timeline_band *band, int64_t at)
{
    if (band->open++ == 0)
        band->since = at;
}

void as_timeline_band_end(struct as_timeline_band *band, int64_t at)
{
    if (band->open > 0 && --band->open == 0)
        add_interval(band, band->since, at);
}

void as_timeline_band_close(struct as_timeline_band *band, int64_t at)
{
    if (band->open > 0)
        add_interval(band, band->since, at);
    band->open = 0;
}

void as_timeline_band_deinit(struct as_timeline_band *band)
{
    free(band->name);
    free(band->intervals);
    *band = (struct as_timeline_band){0};
}

/*
 * The bounds of a chart over time: each change, but no more than a chart can show.
 */

#define BOUNDS_MAX    2400
#define LOOK_AHEAD_US (14 * AS_US_PER_DAY) /* as_schedule_state looks so far for a change */

void as_chart_bounds_fill(struct as_chart_bounds *bounds, const struct as_target_config *config,
                          int64_t from, int64_t to)
{
    const int64_t step = (to - from) / BOUNDS_MAX; /* changes within less are not told apart */
    *bounds = (struct as_chart_bounds){0};
    for (int64_t at = from; at < to;) {
        const struct as_schedule_bounds now =
            as_target_config_get_bounds(config, (as_wall_time){at});
        as_timeline_add(&bounds->min, at, now.min);
        as_timeline_add(&bounds->max, at, now.max);
        const int64_t change = now.change.set ? now.change.at.us : at + LOOK_AHEAD_US;
        at = change > at + step ? change : at + step + 1;
    }
}

void as_chart_bounds_deinit(struct as_chart_bounds *bounds)
{
    as_timeline_deinit(&bounds->min);
    as_timeline_deinit(&bounds->max);
}

#define WIDTH       1200 /* of a chart of its own */
#define NARROW      700  /* below: less margin */
#define HEAD        60.0 /* title and subtitle */
#define LEGEND      20.0 /* a row of it */
#define LEGEND_ITEM 220.0
#define PLOT_HEIGHT 280.0
#define BAND_TOP    36.0 /* from the plot's bottom to the first band */
#define BAND_HEIGHT 34.0 /* a name, and its bar below it */
#define BAR_TOP     16.0
#define BAR_HEIGHT  12.0
#define TICKS_MAX   10
#define TICK_WIDTH  80  /* of the text at a tick */
#define ZONE_WIDTH  40  /* of "UTC" and its margins */
#define VALUE_WIDTH 40  /* of the axis of values */
#define NAME_SHOWN  120 /* bytes of a text */

const char as_chart_dark_style[] = "@media (prefers-color-scheme: dark) {\n"
                                   "  .page { fill: #0d1117; }\n"
                                   "  .text, .title { fill: #e6edf3; }\n"
                                   "  .dim { fill: #8d96a0; }\n"
                                   "  .grid { stroke: #30363d; }\n"
                                   "  .bound { stroke: #f0883e; }\n"
                                   "  .before { stroke: #bc8cff; }\n"
                                   "  .after { stroke: #58a6ff; }\n"
                                   "  .alert { fill: #ff7b72; }\n"
                                   "  .lane, .unknown { fill: #30363d; }\n"
                                   "  .lock { fill: #8d96a0; }\n"
                                   "  .done { fill: #58a6ff; stroke: #0d1117; }\n"
                                   "  .failed { stroke: #ff7b72; }\n"
                                   "}\n";

/* The style of each class on a light page. */
static const struct chart_style {
    const char *class, *attributes;
} chart_styles[] = {
    {"page", "fill=\"#ffffff\""},
    {"text", "fill=\"#1f2328\""},
    {"title", "fill=\"#1f2328\" font-size=\"16\" font-weight=\"600\""},
    {"dim", "fill=\"#656d76\""},
    {"dim end", "fill=\"#656d76\" text-anchor=\"end\""},
    {"dim middle", "fill=\"#656d76\" text-anchor=\"middle\""},
    {"grid", "stroke=\"#d8dee4\" stroke-width=\"1\""},
    {"bound", "stroke=\"#bc4c00\" stroke-width=\"1\" stroke-dasharray=\"2 4\""},
    {"bound steps", "fill=\"none\" stroke=\"#bc4c00\" stroke-width=\"1\" stroke-dasharray=\"2 4\""},
    {"before", "fill=\"none\" stroke=\"#8250df\" stroke-width=\"2\" stroke-dasharray=\"6 3\""},
    {"before value", "fill=\"none\" stroke=\"#8250df\" stroke-width=\"2\""},
    {"after", "fill=\"none\" stroke=\"#0969da\" stroke-width=\"2\""},
    {"alert", "fill=\"#cf222e\" fill-opacity=\"0.65\""},
    {"lane", "fill=\"#d8dee4\" fill-opacity=\"0.4\""},
    {"lock", "fill=\"#656d76\" fill-opacity=\"0.65\""},
    {"unknown", "fill=\"#d8dee4\" fill-opacity=\"0.6\""},
    {"done", "fill=\"#0969da\" stroke=\"#ffffff\" stroke-width=\"1\""},
    {"failed", "fill=\"none\" stroke=\"#cf222e\" stroke-width=\"2\""},
};

static const char *get_chart_style(const char *class)
{
    const struct chart_style *chart_style = chart_styles;
    while (strcmp(chart_style->class, class) != 0)
        chart_style++;
    return chart_style->attributes;
}

struct drawing {
    const struct as_chart *chart;
    struct as_buf *out;
    double left, right, top, bottom; /* of the plot */
    int64_t highest;                 /* largest size on the axis */
};

static double get_width(const struct as_chart *chart)
{
    return chart->width > 0 ? chart->width : WIDTH;
}

/* Unsafe characters, and with them all that XML 1.0 forbids, become U+FFFD. */
static void chart_put_text(struct as_buf *out, const char *text)
{
    const size_t size = strlen(text);
    const size_t shown = as_str_cut_utf8(text, size, NAME_SHOWN);
    struct as_safe_char read;

    for (size_t i = 0; i < shown; i += read.size) {
        read = as_safe_char_read(text + i, shown - i);
        if (read.is_unsafe && text[i] != '\t' && text[i] != '\n')
            as_buf_append_str(out, "\xef\xbf\xbd");
        else if (text[i] == '&')
            as_buf_append_str(out, "&amp;");
        else if (text[i] == '<')
            as_buf_append_str(out, "&lt;");
        else if (text[i] == '>')
            as_buf_append_str(out, "&gt;");
        else if (text[i] == '"')
            as_buf_append_str(out, "&quot;");
        else
            as_buf_append(out, text + i, read.size);
    }
    if (shown < size)
        as_buf_append_str(out, "...");
}

static double chart_get_x(const struct drawing *drawing, int64_t at)
{
    const struct as_chart *chart = drawing->chart;
    const double span = (double)(chart->to - chart->from);
    double part = span > 0 ? (double)(at - chart->from) / span : 0;

    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return drawing->left + part * (drawing->right - drawing->left);
}

static double chart_get_y(const struct drawing *drawing, int64_t size)
{
    return drawing->bottom - PLOT_HEIGHT * (double)size / (double)drawing->highest;
}

static void put_line(struct as_buf *out, const char *class, double x1, double y1, double x2,
                     double y2)
{
    as_buf_printf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n",
                  class, x1, y1, x2, y2, get_chart_style(class));
}

static void put_rect(struct as_buf *out, const char *class, double x, double y, double width,
                     double height)
{
    as_buf_printf(out,
                  "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" %s/>\n",
                  class, x, y, width, height, get_chart_style(class));
}

static void put_label(struct as_buf *out, const char *class, double x, double y, const char *text)
{
    as_buf_printf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" %s>", class, x, y,
                  get_chart_style(class));
    chart_put_text(out, text);
    as_buf_append_str(out, "</text>\n");
}

/* --- axes --- */

/* 1, 2 or 5 times a power of ten, for at most TICKS_MAX ticks. */
static int64_t choose_size_step(int64_t highest)
{
    static const int64_t factors[] = {1, 2, 5};
    for (int64_t power = 1;; power *= 10) {
        for (size_t i = 0; i < AS_ARRAY_SIZE(factors); i++) {
            if (highest / (factors[i] * power) <= TICKS_MAX / 2)
                return factors[i] * power;
        }
    }
}

static int64_t find_highest(const struct as_chart *chart)
{
    const struct as_timeline *lines[] = {chart->before, chart->after};
    int64_t highest = chart->max > 0 ? chart->max : 1;
    int64_t seen = 1;

    for (size_t i = 0; chart->bounds && i < chart->bounds->max.count; i++)
        highest = chart->bounds->max.points[i].size > highest ? chart->bounds->max.points[i].size
                                                              : highest;

    for (size_t k = 0; k < AS_ARRAY_SIZE(lines); k++) {
        for (size_t i = 0; lines[k] && i < lines[k]->count; i++)
            seen = lines[k]->points[i].size > seen ? lines[k]->points[i].size : seen;
    }
    /* a max far above all sizes would flatten the line */
    if (highest > 3 * seen || highest < seen)
        highest = seen;
    const int64_t step = choose_size_step(highest);
    return (highest / step + 1) * step;
}

static void draw_sizes(const struct drawing *drawing)
{
    const int64_t step = choose_size_step(drawing->highest);
    char text[32];

    for (int64_t size = 0; size <= drawing->highest; size += step) {
        const double y = chart_get_y(drawing, size);
        put_line(drawing->out, "grid", drawing->left, y, drawing->right, y);
        snprintf(text, sizeof(text), "%" PRId64, size);
        put_label(drawing->out, "dim end", drawing->left - 8, y + 4, text);
    }
    put_label(drawing->out, "dim", 8, drawing->top - 14, drawing->chart->unit);
}

static int64_t choose_time_step(int64_t span, int64_t ticks_max)
{
    static const int64_t steps[] = {
        AS_US_PER_S,        5 * AS_US_PER_S,    15 * AS_US_PER_S,   30 * AS_US_PER_S,
        AS_US_PER_MIN,      5 * AS_US_PER_MIN,  15 * AS_US_PER_MIN, 30 * AS_US_PER_MIN,
        AS_US_PER_H,        3 * AS_US_PER_H,    6 * AS_US_PER_H,    12 * AS_US_PER_H,
        AS_US_PER_DAY,      2 * AS_US_PER_DAY,  7 * AS_US_PER_DAY,  14 * AS_US_PER_DAY,
        30 * AS_US_PER_DAY, 90 * AS_US_PER_DAY, 365 * AS_US_PER_DAY};
    size_t i = 0;
    while (i + 1 < AS_ARRAY_SIZE(steps) && span / steps[i] > ticks_max)
        i++;
    int64_t step = steps[i];
    while (span / step > ticks_max)
        step *= 2;
    return step;
}

static void print_time(char *text, size_t size, int64_t at, int64_t step, bool with_day)
{
    const time_t seconds = (time_t)(at / AS_US_PER_S);
    struct tm parts;

    gmtime_r(&seconds, &parts);
    if (step >= AS_US_PER_DAY)
        strftime(text, size, "%Y-%m-%d", &parts);
    else if (step >= AS_US_PER_MIN && with_day)
        strftime(text, size, "%m-%d %H:%M", &parts);
    else if (step >= AS_US_PER_MIN)
        strftime(text, size, "%H:%M", &parts);
    else if (with_day)
        strftime(text, size, "%m-%d %H:%M:%S", &parts);
    else
        strftime(text, size, "%H:%M:%S", &parts);
}

static void draw_times(const struct drawing *drawing)
{
    const struct as_chart *chart = drawing->chart;
    const int64_t ticks = (int64_t)(drawing->right - drawing->left) / TICK_WIDTH;
    const int64_t step =
        choose_time_step(chart->to - chart->from, ticks < TICKS_MAX ? ticks : TICKS_MAX);
    int64_t day = -1;
    char text[64];

    for (int64_t at = (chart->from + step - 1) / step * step; at <= chart->to; at += step) {
        const double x = chart_get_x(drawing, at);
        put_line(drawing->out, "grid", x, drawing->top, x, drawing->bottom + 5);
        print_time(text, sizeof(text), at, step, at / AS_US_PER_DAY != day);
        day = at / AS_US_PER_DAY;
        if (x + TICK_WIDTH / 2.0 <= get_width(chart) - ZONE_WIDTH)
            put_label(drawing->out, "dim middle", x, drawing->bottom + 20, text);
    }
    put_label(drawing->out, "dim end", get_width(drawing->chart) - 8, drawing->bottom + 20, "UTC");
}

/* --- what went on --- */

/* An unknown size lifts the pen. */
static void draw_line(const struct drawing *drawing, const struct as_timeline *line,
                      const char *class)
{
    bool is_down = false;
    if (!line || line->count == 0)
        return;
    as_buf_printf(drawing->out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < line->count; i++) {
        const double x = chart_get_x(drawing, line->points[i].at);
        const bool is_known = line->points[i].size != AS_TIMELINE_UNKNOWN;
        const double y = chart_get_y(drawing, is_known ? line->points[i].size : 0);
        if (!is_known && is_down)
            as_buf_printf(drawing->out, "H%.1f", x);
        else if (is_known && is_down)
            as_buf_printf(drawing->out, "H%.1fV%.1f", x, y);
        else if (is_known)
            as_buf_printf(drawing->out, "M%.1f %.1f", x, y);
        is_down = is_known;
    }
    if (is_down)
        as_buf_printf(drawing->out, "H%.1f", chart_get_x(drawing, drawing->chart->to));
    as_buf_printf(drawing->out, "\" %s/>\n", get_chart_style(class));
}

/* Above the plot a bound is not shown. */
static void draw_bound_steps(const struct drawing *drawing, const struct as_timeline *line,
                             const char *name)
{
    struct as_timeline shown = {0};
    for (size_t i = 0; i < line->count; i++)
        as_timeline_add(&shown, line->points[i].at,
                        line->points[i].size > drawing->highest ? AS_TIMELINE_UNKNOWN
                                                                : line->points[i].size);
    draw_line(drawing, &shown, "bound steps");
    if (shown.count > 0 && shown.points[shown.count - 1].size != AS_TIMELINE_UNKNOWN)
        put_label(drawing->out, "dim", drawing->right + 6,
                  chart_get_y(drawing, shown.points[shown.count - 1].size) + 4, name);
    as_timeline_deinit(&shown);
}

static void draw_bounds(const struct drawing *drawing)
{
    const int32_t bounds[] = {drawing->chart->min, drawing->chart->max};

    if (drawing->chart->bounds) {
        draw_bound_steps(drawing, &drawing->chart->bounds->min, "min");
        draw_bound_steps(drawing, &drawing->chart->bounds->max, "max");
        return;
    }
    if (drawing->chart->max <= 0)
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(bounds); i++) {
        const double y = chart_get_y(drawing, bounds[i]);
        if (bounds[i] > drawing->highest)
            continue;
        put_line(drawing->out, "bound", drawing->left, y, drawing->right, y);
        put_label(drawing->out, "dim", drawing->right + 6, y + 4, i == 0 ? "min" : "max");
    }
}

/* Where a line is not known. */
static void draw_gaps(const struct drawing *drawing, const struct as_timeline *line)
{
    for (size_t i = 0; line && i < line->count; i++) {
        if (line->points[i].size != AS_TIMELINE_UNKNOWN)
            continue;
        const double x = chart_get_x(drawing, line->points[i].at);
        const double end =
            chart_get_x(drawing, i + 1 < line->count ? line->points[i + 1].at : drawing->chart->to);
        if (end > x)
            put_rect(drawing->out, "unknown", x, drawing->top, end - x, PLOT_HEIGHT);
    }
}

static void draw_marks(const struct drawing *drawing)
{
    struct as_buf *out = drawing->out;
    for (size_t i = 0; i < drawing->chart->mark_count; i++) {
        const struct as_chart_mark *mark = &drawing->chart->marks[i];
        const char *class = mark->is_failed ? "failed" : "done";
        const double x = chart_get_x(drawing, mark->at), y = chart_get_y(drawing, mark->size);
        as_buf_append_str(out, "<g><title>");
        chart_put_text(out, mark->text);
        as_buf_append_str(out, "</title>");
        if (mark->is_failed)
            as_buf_printf(out, "<path class=\"%s\" d=\"M%.1f %.1fl8 8m0 -8l-8 8\" %s/>", class,
                          x - 4, y - 4, get_chart_style(class));
        else
            as_buf_printf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\" %s/>", class,
                          x, y, get_chart_style(class));
        as_buf_append_str(out, "</g>\n");
    }
}

/* --- values and goals --- */

/* 1, 2 or 5 times a power of ten. */
static double find_highest_value(const struct as_chart *chart)
{
    static const double factors[] = {1, 2, 5, 10};
    double highest = 0;
    size_t i = 0;
    for (size_t k = 0; k < chart->value_count; k++)
        highest = fmax(highest, fmax(chart->values[k].value, chart->values[k].goal));
    if (highest <= 0)
        return 1;
    const double power = pow(10, floor(log10(highest)));
    while (i + 1 < AS_ARRAY_SIZE(factors) && factors[i] * power < highest)
        i++;
    return factors[i] * power;
}

/* Below 0 is on the axis. */
static double get_value_y(const struct drawing *drawing, double value, double highest)
{
    return drawing->bottom - PLOT_HEIGHT * fmin(fmax(value / highest, 0), 1);
}

static void draw_values(const struct drawing *drawing)
{
    const struct as_chart *chart = drawing->chart;
    const double highest = find_highest_value(chart);
    struct as_buf *out = drawing->out;
    char text[AS_RFC3339_SIZE];
    if (chart->value_count == 0)
        return;
    for (int part = 0; part <= 2; part++) {
        const double value = highest * part / 2;
        snprintf(text, sizeof(text), "%.4g", value);
        put_label(out, "dim end", get_width(chart) - 8, get_value_y(drawing, value, highest) + 4,
                  text);
    }
    for (size_t i = 0; i < chart->value_count; i++)
        as_buf_printf(out, i == 0 ? "<path class=\"before\" d=\"M%.1f %.1f" : "H%.1fV%.1f",
                      chart_get_x(drawing, chart->values[i].at),
                      get_value_y(drawing, chart->values[i].goal, highest));
    as_buf_printf(out, "H%.1f\" %s/>\n", drawing->right, get_chart_style("before"));
    for (size_t i = 0; i < chart->value_count; i++) {
        const struct as_chart_value *value = &chart->values[i];
        as_wall_time_print((as_wall_time){value->at}, text);
        as_buf_printf(out,
                      "<g><title>%.8s: %.4g, the goal %.4g</title><circle class=\"before value\" "
                      "cx=\"%.1f\" cy=\"%.1f\" r=\"3\" %s/></g>\n",
                      text + 11, value->value, value->goal, chart_get_x(drawing, value->at),
                      get_value_y(drawing, value->value, highest), get_chart_style("before value"));
    }
}

static void draw_bands(const struct drawing *drawing, const struct as_timeline_band *bands,
                       size_t count, double top, const char *class)
{
    struct as_buf *out = drawing->out;

    for (size_t i = 0; i < count; i++) {
        const struct as_timeline_band *band = &bands[i];
        const double y = top + (double)i * BAND_HEIGHT;
        put_label(out, "text", drawing->left, y + BAR_TOP - 4, band->name);
        put_rect(out, "lane", drawing->left, y + BAR_TOP, drawing->right - drawing->left,
                 BAR_HEIGHT);
        as_buf_append_str(out, "<g><title>");
        chart_put_text(out, band->name);
        as_buf_append_str(out, "</title>\n");
        for (size_t k = 0; k < band->count; k++) {
            const double x = chart_get_x(drawing, band->intervals[k].from);
            const double width = chart_get_x(drawing, band->intervals[k].to) - x;
            put_rect(out, class, x, y + BAR_TOP, width < 1 ? 1 : width, BAR_HEIGHT);
        }
        as_buf_append_str(out, "</g>\n");
    }
}

/* --- legend --- */

static bool has_gap(const struct as_timeline *line)
{
    size_t i = 0;
    while (i < line->count && line->points[i].size != AS_TIMELINE_UNKNOWN)
        i++;
    return i < line->count;
}

enum sign { SIGN_LINE, SIGN_BAR, SIGN_POINT };

struct item {
    bool is_wanted;
    enum sign sign;
    const char *class, *text;
};
#define ITEMS 8

static void list_items(const struct as_chart *chart, struct item items_out[ITEMS])
{
    const struct item items[ITEMS] = {
        {chart->before != NULL, SIGN_LINE, "before", "size before"},
        {true, SIGN_LINE, "after", chart->before ? "size under the new rules" : "size"},
        {chart->mark_count > 0, SIGN_POINT, "done", "actions"},
        {chart->band_count > 0, SIGN_BAR, "alert", "alerts, while they fire"},
        {chart->lock_count > 0, SIGN_BAR, "lock", "locks"},
        {has_gap(chart->after), SIGN_BAR, "unknown", "not known"},
        {chart->value_count > 0, SIGN_POINT, "before value", "value (axis on the right)"},
        {chart->value_count > 0, SIGN_LINE, "before", "goal of the value"},
    };
    memcpy(items_out, items, sizeof(items));
}

/* Draws the items in rows; with `out` NULL it only counts the rows. */
static int lay_legend(const struct drawing *drawing, struct as_buf *out)
{
    struct item items[ITEMS];
    double x = drawing->left, y = drawing->top - 14;
    int rows = 1;
    list_items(drawing->chart, items);
    for (size_t i = 0; i < ITEMS; i++) {
        if (!items[i].is_wanted)
            continue;
        if (x > drawing->left && x + LEGEND_ITEM - 40 > get_width(drawing->chart)) {
            x = drawing->left;
            y += LEGEND;
            rows++;
        }
        if (out && items[i].sign == SIGN_LINE)
            put_line(out, items[i].class, x, y - 4, x + 28, y - 4);
        else if (out && items[i].sign == SIGN_BAR)
            put_rect(out, items[i].class, x, y - 9, 28, 10);
        else if (out)
            as_buf_printf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\" %s/>\n",
                          items[i].class, x + 14, y - 4, get_chart_style(items[i].class));
        if (out)
            put_label(out, "text", x + 36, y, items[i].text);
        x += LEGEND_ITEM;
    }
    return rows;
}

void as_chart_print_svg(const struct as_chart *chart, struct as_buf *out)
{
    const double width = get_width(chart);
    const bool is_narrow = width < NARROW;
    struct drawing drawing = {
        .chart = chart,
        .out = out,
        .left = is_narrow ? 40 : 64,
        .right = width - (is_narrow ? 36 : 90) - (chart->value_count > 0 ? VALUE_WIDTH : 0),
        .highest = find_highest(chart),
    };
    const double head = chart->is_part ? 0 : HEAD;
    drawing.top = head + 24;
    const double legend_top = drawing.top;
    drawing.top += (lay_legend(&drawing, NULL) - 1) * LEGEND + (is_narrow ? LEGEND : 0);
    drawing.bottom = drawing.top + PLOT_HEIGHT;
    const double bands = drawing.bottom + BAND_TOP;
    const double locks = bands + (double)chart->band_count * BAND_HEIGHT;
    const double height = locks + (double)chart->lock_count * BAND_HEIGHT + 8;

    if (!chart->is_part)
        as_buf_append_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    as_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%.0f\" "
                  "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" font-family=\"system-ui, sans-serif\" "
                  "font-size=\"12\">\n<title>",
                  width, height, width, height);
    chart_put_text(out, chart->title);
    as_buf_append_str(out, "</title>\n");
    if (!chart->is_part) {
        as_buf_printf(out, "<style>\n%s</style>\n", as_chart_dark_style);
        put_rect(out, "page", 0, 0, width, height);
        put_label(out, "title", drawing.left, 26, chart->title);
        put_label(out, "dim", drawing.left, 46, chart->subtitle);
    }
    struct drawing legend = drawing;
    legend.top = legend_top;
    (void)lay_legend(&legend, out);
    draw_gaps(&drawing, chart->after);
    draw_sizes(&drawing);
    draw_times(&drawing);
    draw_bounds(&drawing);
    draw_bands(&drawing, chart->bands, chart->band_count, bands, "alert");
    draw_bands(&drawing, chart->locks, chart->lock_count, locks, "lock");
    draw_line(&drawing, chart->before, "before");
    draw_line(&drawing, chart->after, "after");
    draw_values(&drawing);
    draw_marks(&drawing);
    as_buf_append_str(out, "</svg>\n");
}
