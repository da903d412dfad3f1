/*
 * Coordinates have one digit behind the point: a chart is 1200 wide and the same input gives the
 * same bytes. Colors are variables of the style sheet, which has a second set for dark pages.
 */
#include "timeline_svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#define WIDTH       1200
#define LEFT        64.0
#define RIGHT       1176.0
#define TOP         84.0
#define PLOT_HEIGHT 280.0
#define BAND_TOP    36.0 /* from the plot's bottom to the first band */
#define BAND_HEIGHT 22.0
#define TICKS_MAX   10
#define NAME_SHOWN  120 /* bytes of a text */

static const char style[] =
    "<style>\n"
    "svg { --page: #ffffff; --ink: #1f2328; --dim: #656d76; --grid: #d8dee4; --before: #8250df; "
    "--after: #0969da; --bound: #bc4c00; --alert: #cf222e;\n"
    "  font-family: system-ui, sans-serif; font-size: 12px; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  svg { --page: #0d1117; --ink: #e6edf3; --dim: #8d96a0; --grid: #30363d; --before: #bc8cff; "
    "--after: #58a6ff; --bound: #f0883e; --alert: #ff7b72; }\n"
    "}\n"
    ".page { fill: var(--page); }\n"
    "text { fill: var(--ink); }\n"
    ".dim { fill: var(--dim); }\n"
    ".title { font-size: 16px; font-weight: 600; }\n"
    ".grid { stroke: var(--grid); stroke-width: 1; }\n"
    ".bound { stroke: var(--bound); stroke-width: 1; stroke-dasharray: 2 4; }\n"
    ".before { fill: none; stroke: var(--before); stroke-width: 2; stroke-dasharray: 6 3; }\n"
    ".after { fill: none; stroke: var(--after); stroke-width: 2; }\n"
    ".alert { fill: var(--alert); fill-opacity: 0.65; }\n"
    ".lane { fill: var(--grid); fill-opacity: 0.4; }\n"
    ".end { text-anchor: end; }\n"
    ".middle { text-anchor: middle; }\n"
    "</style>\n";

struct drawing {
    const struct timeline_chart *chart;
    struct as_buf *out;
    double bottom;   /* of the plot */
    int64_t highest; /* size at its top */
};

/* What XML 1.0 cannot hold becomes U+FFFD. */
static void put_text(struct as_buf *out, const char *text)
{
    const size_t size = strlen(text);
    const size_t shown = as_str_cut_utf8(text, size, NAME_SHOWN);
    const bool is_utf8 = as_str_is_utf8(text, size);

    for (size_t i = 0; i < shown; i++) {
        const unsigned char byte = (unsigned char)text[i];
        const bool is_end = is_utf8 && byte == 0xef && (unsigned char)text[i + 1] == 0xbf &&
                            (unsigned char)text[i + 2] >= 0xbe; /* U+FFFE, U+FFFF */
        if (is_end)
            i += 2;
        if (is_end || (byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7f ||
            (byte >= 0x80 && !is_utf8))
            as_buf_append_str(out, "\xef\xbf\xbd");
        else if (byte == '&')
            as_buf_append_str(out, "&amp;");
        else if (byte == '<')
            as_buf_append_str(out, "&lt;");
        else if (byte == '>')
            as_buf_append_str(out, "&gt;");
        else if (byte == '"')
            as_buf_append_str(out, "&quot;");
        else
            as_buf_append_char(out, (char)byte);
    }
    if (shown < size)
        as_buf_append_str(out, "...");
}

static double get_x(const struct drawing *drawing, int64_t at)
{
    const struct timeline_chart *chart = drawing->chart;
    const double span = (double)(chart->to - chart->from);
    double part = span > 0 ? (double)(at - chart->from) / span : 0;

    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return LEFT + part * (RIGHT - LEFT);
}

static double get_y(const struct drawing *drawing, int64_t size)
{
    return drawing->bottom - PLOT_HEIGHT * (double)size / (double)drawing->highest;
}

static void put_line(struct as_buf *out, const char *class, double x1, double y1, double x2,
                     double y2)
{
    as_buf_printf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                  class, x1, y1, x2, y2);
}

static void put_label(struct as_buf *out, const char *class, double x, double y, const char *text)
{
    as_buf_printf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    put_text(out, text);
    as_buf_append_str(out, "</text>\n");
}

/* --- axes --- */

/* 1, 2 or 5 times a power of ten, so that there are no more than TICKS_MAX. */
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

static int64_t find_highest(const struct timeline_chart *chart)
{
    const struct timeline *lines[] = {chart->before, chart->after};
    int64_t highest = chart->max > 0 ? chart->max : 1;
    int64_t seen = 1;

    for (size_t k = 0; k < AS_ARRAY_SIZE(lines); k++) {
        for (size_t i = 0; i < lines[k]->count; i++)
            seen = lines[k]->points[i].size > seen ? lines[k]->points[i].size : seen;
    }
    /* a max far above all sizes would press them to the ground */
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
        const double y = get_y(drawing, size);
        put_line(drawing->out, "grid", LEFT, y, RIGHT, y);
        snprintf(text, sizeof(text), "%" PRId64, size);
        put_label(drawing->out, "dim end", LEFT - 8, y + 4, text);
    }
}

static int64_t choose_time_step(int64_t span)
{
    static const int64_t steps[] = {
        AS_US_PER_S,        5 * AS_US_PER_S,    15 * AS_US_PER_S,   30 * AS_US_PER_S,
        AS_US_PER_MIN,      5 * AS_US_PER_MIN,  15 * AS_US_PER_MIN, 30 * AS_US_PER_MIN,
        AS_US_PER_H,        3 * AS_US_PER_H,    6 * AS_US_PER_H,    12 * AS_US_PER_H,
        AS_US_PER_DAY,      2 * AS_US_PER_DAY,  7 * AS_US_PER_DAY,  14 * AS_US_PER_DAY,
        30 * AS_US_PER_DAY, 90 * AS_US_PER_DAY, 365 * AS_US_PER_DAY};
    size_t i = 0;
    while (i + 1 < AS_ARRAY_SIZE(steps) && span / steps[i] > TICKS_MAX)
        i++;
    int64_t step = steps[i];
    while (span / step > TICKS_MAX)
        step *= 2;
    return step;
}

static void print_time(char *text, size_t size, int64_t at, int64_t step, bool with_day)
{
    const time_t seconds = (time_t)(at / AS_US_PER_S);
    struct tm parts;

    gmtime_r(&seconds, &parts);
    const int month = parts.tm_mon + 1;
    if (step >= AS_US_PER_DAY)
        snprintf(text, size, "%d-%02d-%02d", parts.tm_year + 1900, month, parts.tm_mday);
    else if (with_day)
        snprintf(text, size, "%02d-%02d %02d:%02d", month, parts.tm_mday, parts.tm_hour,
                 parts.tm_min);
    else if (step >= AS_US_PER_MIN)
        snprintf(text, size, "%02d:%02d", parts.tm_hour, parts.tm_min);
    else
        snprintf(text, size, "%02d:%02d:%02d", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

static void draw_times(const struct drawing *drawing)
{
    const struct timeline_chart *chart = drawing->chart;
    const int64_t step = choose_time_step(chart->to - chart->from);
    int64_t day = -1;
    char text[64];

    for (int64_t at = (chart->from + step - 1) / step * step; at <= chart->to; at += step) {
        const double x = get_x(drawing, at);
        put_line(drawing->out, "grid", x, TOP, x, drawing->bottom + 5);
        print_time(text, sizeof(text), at, step, at / AS_US_PER_DAY != day);
        day = at / AS_US_PER_DAY;
        put_label(drawing->out, "dim middle", x, drawing->bottom + 20, text);
    }
}

/* --- what went on --- */

static void draw_bounds(const struct drawing *drawing)
{
    const int32_t bounds[] = {drawing->chart->min, drawing->chart->max};

    if (drawing->chart->max <= 0)
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(bounds); i++) {
        const double y = get_y(drawing, bounds[i]);
        if (bounds[i] > drawing->highest)
            continue;
        put_line(drawing->out, "bound", LEFT, y, RIGHT, y);
        put_label(drawing->out, "dim", LEFT + 4, y - 4, i == 0 ? "min" : "max");
    }
}

static void draw_line(const struct drawing *drawing, const struct timeline *line, const char *class)
{
    if (line->count == 0)
        return;
    as_buf_printf(drawing->out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < line->count; i++) {
        const double x = get_x(drawing, line->points[i].at);
        const double y = get_y(drawing, line->points[i].size);
        if (i == 0)
            as_buf_printf(drawing->out, "M%.1f %.1f", x, y);
        else
            as_buf_printf(drawing->out, "H%.1fV%.1f", x, y);
    }
    as_buf_printf(drawing->out, "H%.1f\"/>\n", get_x(drawing, drawing->chart->to));
}

static void draw_bands(const struct drawing *drawing)
{
    struct as_buf *out = drawing->out;

    for (size_t i = 0; i < drawing->chart->band_count; i++) {
        const struct timeline_band *band = &drawing->chart->bands[i];
        const double y = drawing->bottom + BAND_TOP + (double)i * BAND_HEIGHT;
        as_buf_printf(
            out, "<rect class=\"lane\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
            LEFT, y, RIGHT - LEFT, BAND_HEIGHT - 4);
        as_buf_append_str(out, "<g class=\"alert\"><title>");
        put_text(out, band->name);
        as_buf_append_str(out, "</title>\n");
        for (size_t k = 0; k < band->count; k++) {
            const double x = get_x(drawing, band->intervals[k].from);
            const double width = get_x(drawing, band->intervals[k].to) - x;
            as_buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", x,
                          y, width < 1 ? 1 : width, BAND_HEIGHT - 4);
        }
        as_buf_append_str(out, "</g>\n");
        put_label(out, "", LEFT + 4, y + 13, band->name);
    }
}

static void draw_legend(const struct drawing *drawing)
{
    static const struct {
        const char *class, *text;
    } rows[] = {{"before", "size before"}, {"after", "size under the new rules"}};
    double x = LEFT;

    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        put_line(drawing->out, rows[i].class, x, TOP - 18, x + 28, TOP - 18);
        put_label(drawing->out, "", x + 36, TOP - 14, rows[i].text);
        x += 220;
    }
    if (drawing->chart->band_count == 0)
        return;
    as_buf_printf(drawing->out,
                  "<rect class=\"alert\" x=\"%.1f\" y=\"%.1f\" width=\"28\" height=\"10\"/>\n", x,
                  TOP - 23);
    put_label(drawing->out, "", x + 36, TOP - 14, "alerts, while they fire");
}

void timeline_print_svg(const struct timeline_chart *chart, struct as_buf *out)
{
    const struct drawing drawing = {
        .chart = chart, .out = out, .bottom = TOP + PLOT_HEIGHT, .highest = find_highest(chart)};
    const double height = drawing.bottom + BAND_TOP + (double)chart->band_count * BAND_HEIGHT + 8;

    as_buf_printf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" "
                  "height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n<title>",
                  WIDTH, height, WIDTH, height);
    put_text(out, chart->title);
    as_buf_append_str(out, "</title>\n");
    as_buf_append_str(out, style);
    as_buf_printf(out, "<rect class=\"page\" width=\"%d\" height=\"%.0f\"/>\n", WIDTH, height);
    put_label(out, "title", LEFT, 26, chart->title);
    put_label(out, "dim", LEFT, 46, chart->subtitle);
    draw_legend(&drawing);
    draw_sizes(&drawing);
    draw_times(&drawing);
    draw_bounds(&drawing);
    draw_bands(&drawing);
    draw_line(&drawing, chart->before, "before");
    draw_line(&drawing, chart->after, "after");
    as_buf_append_str(out, "</svg>\n");
}
