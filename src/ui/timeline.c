/*
 * Thinning out bounds the memory: when it is full, points closer than a chart can show are merged.
 * Until then all points are exact.
 */
#include <alertscaler/ui/timeline.h>

#include <assert.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/time.h>

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
static size_t join(struct as_timeline_band *band, int64_t width)
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
            band->count = join(band, width);
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
