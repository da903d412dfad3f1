/*
 * Timelines: bounded memory that keeps what a chart shows, figures weighted by time, and charts
 * that are XML for all texts.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/time.h>
#include <alertscaler/base/zone.h>

#include <alertscaler/ui/chart.h>

Test(timeline, keeps_steps_as_they_are)
{
    struct as_timeline line = {0};
    as_timeline_add(&line, 10, 3);
    as_timeline_add(&line, 20, 3); /* no step */
    as_timeline_add(&line, 30, 5);
    as_timeline_add(&line, 30, 6); /* at the same time: the last counts */
    cr_assert_eq(line.count, 2);
    cr_expect_eq(line.points[0].at, 10);
    cr_expect_eq(line.points[1].at, 30);
    cr_expect_eq(line.points[1].size, 6);
    as_timeline_deinit(&line);
}

/* However many there are: never more than the room, in order, with the extremes and both ends. */
Test(timeline, thins_out_and_keeps_extremes)
{
    struct as_timeline line = {0};
    const int64_t count = 1000000;
    for (int64_t i = 0; i < count; i++)
        as_timeline_add(&line, i * AS_US_PER_S,
                        i == 123457   ? 100
                        : i == 654321 ? 0
                                      : (int32_t)(10 + i % 7));
    cr_assert_leq(line.count, (size_t)AS_TIMELINE_MAX);
    cr_assert_geq(line.count, (size_t)AS_TIMELINE_MAX / 8);
    int32_t least = INT32_MAX, largest = 0;
    for (size_t i = 0; i < line.count; i++) {
        const struct as_timeline_point *point = &line.points[i];
        least = point->size < least ? point->size : least;
        largest = point->size > largest ? point->size : largest;
        if (point->size == 100)
            cr_expect_eq(point->at, 123457 * AS_US_PER_S);
        if (i > 0)
            cr_assert_lt(line.points[i - 1].at, point->at);
    }
    cr_expect_eq(least, 0);
    cr_expect_eq(largest, 100);
    cr_expect_eq(line.points[0].at, 0);
    cr_expect_eq(line.points[line.count - 1].at, (count - 1) * AS_US_PER_S);
    as_timeline_deinit(&line);
}

Test(timeline, a_band_is_when_any_alert_fires)
{
    struct as_timeline_band band = {0};
    as_timeline_band_begin(&band, 10);
    as_timeline_band_begin(&band, 20);
    as_timeline_band_end(&band, 30);
    cr_expect_eq(band.count, 0);
    as_timeline_band_end(&band, 40);
    as_timeline_band_end(&band, 45); /* one that nobody saw begin */
    as_timeline_band_begin(&band, 50);
    as_timeline_band_close(&band, 60);
    cr_assert_eq(band.count, 2);
    cr_expect_eq(band.intervals[0].from, 10);
    cr_expect_eq(band.intervals[0].to, 40);
    cr_expect_eq(band.intervals[1].from, 50);
    cr_expect_eq(band.intervals[1].to, 60);
    as_timeline_band_deinit(&band);
}

Test(timeline, bands_are_bounded_and_stay_in_order)
{
    struct as_timeline_band band = {0};
    for (int64_t i = 0; i < 100000; i++) {
        as_timeline_band_begin(&band, i * 10);
        as_timeline_band_end(&band, i * 10 + 5);
    }
    cr_assert_leq(band.count, (size_t)AS_TIMELINE_MAX);
    cr_expect_eq(band.intervals[0].from, 0);
    cr_expect_eq(band.intervals[band.count - 1].to, 999995);
    for (size_t i = 1; i < band.count; i++)
        cr_assert_lt(band.intervals[i - 1].to, band.intervals[i].from);
    as_timeline_band_deinit(&band);
}

static char *draw(const struct as_chart *chart)
{
    struct as_buf out = AS_BUF_INIT((size_t)1024 * 1024);
    size_t size;
    as_chart_print_svg(chart, &out);
    cr_assert_eq(as_buf_check(&out), 0);
    return as_buf_take(&out, &size);
}

Test(timeline, a_chart_has_both_lines_the_bounds_and_the_alerts)
{
    struct as_timeline before = {0}, after = {0};
    struct as_timeline_band band = {.name = (char[]){"Slow"}};
    as_timeline_add(&before, 0, 3);
    as_timeline_add(&after, 0, 3);
    as_timeline_add(&after, AS_US_PER_H, 5);
    as_timeline_band_begin(&band, AS_US_PER_H);
    as_timeline_band_close(&band, 2 * AS_US_PER_H);
    const struct as_chart chart = {.title = "checkout",
                                   .subtitle = "",
                                   .unit = "replicas",
                                   .to = 2 * AS_US_PER_H,
                                   .before = &before,
                                   .after = &after,
                                   .min = 1,
                                   .max = 6,
                                   .bands = &band,
                                   .band_count = 1};
    char *svg = draw(&chart);
    cr_expect(strstr(svg, "<path class=\"before\" d=\"M64.0 "));
    cr_expect(strstr(svg, "H587.0V")); /* halfway */
    cr_expect(strstr(svg, ">Slow</text>"));
    cr_expect(strstr(svg, ">max</text>"));
    cr_expect(strstr(svg, "prefers-color-scheme: dark"));
    cr_expect(strstr(svg, ">01:00</text>"));
    cr_expect(strstr(svg, ">UTC</text>"));
    cr_expect(strstr(svg, ">replicas</text>"));
    cr_expect_eq(strncmp(svg + strlen(svg) - 7, "</svg>\n", 7), 0);
    free(svg);
    free(band.intervals);
    as_timeline_deinit(&before);
    as_timeline_deinit(&after);
}

/* The last tick stands where the zone's name does: its label gives way. */
Test(timeline, no_time_is_written_over_the_zone)
{
    struct as_timeline size = {0};
    as_timeline_add(&size, 0, 3);
    const struct as_chart chart = {.title = "checkout",
                                   .unit = "replicas",
                                   .width = 360,
                                   .is_part = true,
                                   .to = 24 * AS_US_PER_H,
                                   .after = &size};
    char *svg = draw(&chart);
    const char *label = svg;
    size_t count = 0;
    while ((label = strstr(label, "<text class=\"dim middle\" x=\""))) {
        label += strlen("<text class=\"dim middle\" x=\"");
        cr_expect_leq(strtod(label, NULL), 360.0 - 40 - 40);
        count++;
    }
    cr_expect_geq(count, 2);
    free(svg);
    as_timeline_deinit(&size);
}

/* A part of a page: no heading and style of its own, any width, one line with its gaps. */
Test(timeline, a_part_shows_actions_locks_and_gaps)
{
    struct as_timeline size = {0};
    as_timeline_add(&size, 0, AS_TIMELINE_UNKNOWN);
    as_timeline_add(&size, AS_US_PER_H, 4);
    as_timeline_add(&size, 2 * AS_US_PER_H, AS_TIMELINE_UNKNOWN);
    as_timeline_add(&size, 3 * AS_US_PER_H, 6);
    struct as_timeline_interval interval = {AS_US_PER_H, 2 * AS_US_PER_H};
    struct as_timeline_band lock = {.name = (char[]){"locked"}, .intervals = &interval, .count = 1};
    const struct as_chart_mark marks[] = {
        {.at = AS_US_PER_H, .size = 4, .text = "2 to 4: applied"},
        {.at = 3 * AS_US_PER_H, .size = 6, .is_failed = true, .text = "<6> to 9: timeout"},
    };
    const struct as_chart chart = {.title = "t",
                                   .unit = "nodes",
                                   .width = 400,
                                   .is_part = true,
                                   .to = 4 * AS_US_PER_H,
                                   .after = &size,
                                   .locks = &lock,
                                   .lock_count = 1,
                                   .marks = marks,
                                   .mark_count = 2};
    char *svg = draw(&chart);
    cr_expect_eq(strncmp(svg, "<svg ", 5), 0);
    cr_expect_null(strstr(svg, "<style"));
    cr_expect_null(strstr(svg, "size before"));
    cr_expect(strstr(svg, "viewBox=\"0 0 400 "));
    /* from 40 to 364: an hour is 81 wide; the pen is lifted between */
    cr_expect(strstr(svg, "<path class=\"after\" d=\"M121.0 "));
    cr_expect(strstr(svg, "H202.0M283.0 "));
    cr_expect(strstr(svg, "<rect class=\"unknown\" x=\"202.0\""));
    cr_expect(strstr(svg, "<rect class=\"lock\" x=\"121.0\""));
    cr_expect(strstr(svg, "<title>2 to 4: applied</title><circle class=\"done\" cx=\"121.0\""));
    cr_expect(strstr(svg, "<title>&lt;6&gt; to 9: timeout</title><path class=\"failed\""));
    free(svg);
    as_timeline_deinit(&size);
}

/* Ticks below a minute apart show seconds, also where the day stands before the time. */
Test(timeline, times_of_a_short_chart_have_seconds)
{
    const struct as_timeline none = {0};
    const struct as_chart chart = {.title = "t",
                                   .subtitle = "",
                                   .unit = "nodes",
                                   .to = 20 * AS_US_PER_S,
                                   .before = &none,
                                   .after = &none};
    char *svg = draw(&chart);
    cr_expect(strstr(svg, ">01-01 00:00:00</text>"));
    cr_expect(strstr(svg, ">00:00:05</text>"));
    free(svg);
}

Test(timeline, texts_cannot_break_out_of_a_chart)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"a<b>&\"c", "a&lt;b&gt;&amp;&quot;c"},
        {"\x01\x1b\x7f", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"x\xef\xbf\xbfy", "x\xef\xbf\xbdy"},
        {"\xff", "\xef\xbf\xbd"},
        {"gr\xc3\xb6\xc3\x9f"
         "e",
         "gr\xc3\xb6\xc3\x9f"
         "e"},
    };
    const struct as_timeline none = {0};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_chart chart = {
            .title = rows[i].text, .subtitle = "", .unit = "", .before = &none, .after = &none};
        char *svg = draw(&chart), expected[256];
        snprintf(expected, sizeof(expected), "<title>%s</title>", rows[i].shown);
        cr_expect(strstr(svg, expected), "%zu: %s", i, svg);
        free(svg);
    }
}

/* Values have an axis of their own, on the right; what is below 0 is on the axis. */
Test(timeline, values_and_goals_are_on_a_second_axis)
{
    struct as_timeline size = {0};
    as_timeline_add(&size, 0, 4);
    const struct as_chart_value values[] = {
        {0, 47.125, 40}, {AS_US_PER_H, -3, 40}, {2 * AS_US_PER_H, 30, 30}};
    struct as_chart chart = {.title = "t",
                             .unit = "replicas",
                             .is_part = true,
                             .to = 2 * AS_US_PER_H,
                             .after = &size,
                             .values = values,
                             .value_count = AS_ARRAY_SIZE(values)};
    char *svg = draw(&chart);
    cr_expect(strstr(svg, ">50</text>"));
    cr_expect(strstr(svg, ">25</text>"));
    cr_expect(strstr(svg, "<title>00:00:00: 47.12, the goal 40</title>"));
    cr_expect(strstr(svg, "cx=\"567.0\" cy=\"304.0\" r=\"3\""), "%s", svg);
    cr_expect(strstr(svg, "<path class=\"before\" d=\"M64.0 80.0H567.0V80.0H1070.0V136.0H1070.0\""),
              "%s", svg);
    cr_expect(strstr(svg, ">value (axis on the right)</text>"));
    free(svg);
    static const double extremes[] = {0, -1, 1e-300, 1e300};
    for (size_t i = 0; i < AS_ARRAY_SIZE(extremes); i++) {
        const struct as_chart_value value = {0, extremes[i], extremes[i]};
        chart.values = &value;
        chart.value_count = 1;
        svg = draw(&chart);
        cr_expect_not(strstr(svg, "nan"));
        cr_expect_not(strstr(svg, "inf"));
        free(svg);
    }
    chart.value_count = 0;
    svg = draw(&chart);
    cr_expect_null(strstr(svg, "value"));
    free(svg);
    as_timeline_deinit(&size);
}

/* The axis says what fits the span: seconds, minutes, hours, days. */
Test(timeline, times_fit_the_span)
{
    static const struct {
        int64_t span;
        const char *first, *second;
    } rows[] = {
        {AS_US_PER_MIN, ">01-01 00:00:15</text>", ">00:00:30</text>"},
        {15 * AS_US_PER_MIN, ">01-01 00:05</text>", ">00:10</text>"},
        {AS_US_PER_H, ">01-01 00:15</text>", ">00:30</text>"},
        {6 * AS_US_PER_H, ">01-01 01:00</text>", ">02:00</text>"},
        {AS_US_PER_DAY, ">01-01 03:00</text>", ">06:00</text>"},
        {7 * AS_US_PER_DAY, ">1970-01-02</text>", ">1970-01-03</text>"},
    };
    const struct as_timeline none = {0};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_chart chart = {.title = "t",
                                       .subtitle = "",
                                       .unit = "",
                                       .from = 1,
                                       .to = rows[i].span,
                                       .after = &none};
        char *svg = draw(&chart);
        cr_expect(strstr(svg, rows[i].first), "%zu: %s", i, svg);
        cr_expect(strstr(svg, rows[i].second), "%zu: %s", i, svg);
        free(svg);
    }
}

/* Many changes cost no more than a chart can show; few are exact, however far apart. */
Test(timeline, bounds_over_a_long_time_are_samples)
{
    struct as_schedule schedules[AS_SCHEDULES_MAX];
    struct as_target_config config = {
        .bounds = {.min = 1, .max = 9}, .schedules = schedules, .schedule_count = AS_SCHEDULES_MAX};
    struct as_chart_bounds bounds;
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(as_zone_free_p) struct as_zone *zone = NULL;
    cr_assert_eq(as_zone_open("UTC", &zone, &error), 0, "%s", error.text);
    for (int32_t i = 0; i < AS_SCHEDULES_MAX; i++)
        schedules[i] = (struct as_schedule){.name = (char[]){"often"},
                                            .zone = zone,
                                            .days = 0x7f,
                                            .from_s = i * 5000,
                                            .to_s = i * 5000 + 2500,
                                            .has_min = true,
                                            .min = 4};
    as_chart_bounds_fill(&bounds, &config, 0, 366 * AS_US_PER_DAY);
    cr_expect_gt(bounds.min.count, 100);
    cr_expect_leq(bounds.min.count, (size_t)2500);
    as_chart_bounds_deinit(&bounds);
    as_chart_bounds_fill(&bounds, &config, 0, AS_US_PER_DAY);
    cr_expect_eq(bounds.min.count, 2 * AS_SCHEDULES_MAX);
    cr_expect_eq(bounds.min.points[1].at, 2500 * AS_US_PER_S);
    as_chart_bounds_deinit(&bounds);
    config.schedule_count = 1;
    schedules[0] = (struct as_schedule){.name = (char[]){"once"},
                                        .begin = {100 * AS_US_PER_DAY},
                                        .end = {101 * AS_US_PER_DAY},
                                        .has_min = true,
                                        .min = 4};
    as_chart_bounds_fill(&bounds, &config, 0, 366 * AS_US_PER_DAY);
    cr_assert_eq(bounds.min.count, 3);
    cr_expect_eq(bounds.min.points[1].at, 100 * AS_US_PER_DAY);
    as_chart_bounds_deinit(&bounds);
}

/* Sizes and times at their ends. */
Test(timeline, charts_of_extremes_are_drawn)
{
    struct as_timeline line = {0};
    as_timeline_add(&line, 0, INT32_MAX);
    as_timeline_add(&line, 1, 0);
    const int64_t ends[] = {0, 1, AS_US_PER_S, 400 * AS_US_PER_DAY, 36500 * AS_US_PER_DAY};
    for (size_t i = 0; i < AS_ARRAY_SIZE(ends); i++) {
        const struct as_chart chart = {.title = "t",
                                       .subtitle = "",
                                       .unit = "nodes",
                                       .to = ends[i],
                                       .before = &line,
                                       .after = &line,
                                       .max = INT32_MAX};
        char *svg = draw(&chart);
        cr_expect_lt(strlen(svg), (size_t)20000);
        cr_expect_not(strstr(svg, "nan"));
        cr_expect_not(strstr(svg, "inf"));
        free(svg);
    }
    as_timeline_deinit(&line);
}
