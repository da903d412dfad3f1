/*
 * The time range of pages with charts: the parameter `range`, or `from` and `to`, and the links
 * that change it. A range without `to`, or with a later one, ends now and moves with the time.
 */
#include <errno.h>
#include <string.h>

#include <alertscaler/base/error.h>
#include <alertscaler/base/str.h>
#include <alertscaler/ui/chart.h>

#include "api_private.h"
#include "page.h"

#define SPAN_MAX_US      (366 * AS_US_PER_DAY)
#define FIXED_LASTS_US   (5 * AS_US_PER_MIN) /* the history of the time before a start is late */
#define MOVING_LASTS_MIN (5 * AS_US_PER_S)
#define MOVING_LASTS_MAX (30 * AS_US_PER_S)
#define MOVING_PARTS     200 /* a chart moves by one part of so many before it is drawn again */

static const struct range_word {
    const char *word, *last; /* "the last ..." */
    int64_t span;
} range_words[] = {
    {"15m", "15 minutes", 15 * AS_US_PER_MIN}, {"1h", "hour", AS_US_PER_H},
    {"6h", "6 hours", 6 * AS_US_PER_H},        {"1d", "day", AS_US_PER_DAY},
    {"7d", "7 days", 7 * AS_US_PER_DAY},
};

static const struct range_word *range_find_word(const char *word)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(range_words); i++) {
        if (strcmp(range_words[i].word, word) == 0)
            return &range_words[i];
    }
    return NULL;
}

/* `span`: of a range with one end. */
static int range_read_ends(const struct api_request *request, int64_t span,
                           struct page_range *range, struct as_error *error)
{
    const as_wall_time now = request->view.wall;
    as_maybe_time from, to;
    int status = api_parameter_get_time(request, "from", &from, error);
    if (status == 0)
        status = api_parameter_get_time(request, "to", &to, error);
    if (status != 0)
        return status;
    *range = (struct page_range){.to = now};
    if (to.set && to.at.us < now.us) {
        range->to = to.at;
        range->is_fixed = true;
    }
    range->from.us = from.set ? from.at.us : range->to.us - span;
    if (range->from.us >= range->to.us) {
        as_error_set(error, "from: expected a time before %s, as in from=1795600000&to=1795603600",
                     to.set ? "the time of to, and before now" : "now");
        return -EINVAL;
    }
    if (range->to.us - range->from.us > SPAN_MAX_US) {
        as_error_set(error, "from: expected a time at most 366 days before the end, as in "
                            "from=2026-11-20T10:00:00Z&to=2026-11-21T10:00:00Z");
        return -EINVAL;
    }
    return 0;
}

static int range_read(const struct api_request *request, const char *fallback,
                      struct page_range *range, struct as_error *error)
{
    const char *text = api_parameter_find(request, PAGE_RANGE);
    const bool has_ends = api_parameter_find(request, "from") || api_parameter_find(request, "to");
    const struct range_word *word = range_find_word(text ? text : fallback);
    if (!word) {
        as_error_set(error, "range: expected 15m, 1h, 6h, 1d or 7d, as in range=6h");
        return -EINVAL;
    }
    if (text && has_ends) {
        as_error_set(error, "range: expected either range, or from and to, as in range=6h or "
                            "from=2026-11-20T10:00:00Z&to=2026-11-20T11:00:00Z");
        return -EINVAL;
    }
    if (has_ends)
        return range_read_ends(request, word->span, range, error);
    *range = (struct page_range){
        .from = {request->view.wall.us - word->span},
        .to = request->view.wall,
        .last = word->last,
    };
    return 0;
}

bool page_range_get(struct api_request *request, const char *fallback, struct page_range *range_out)
{
    struct as_error error = AS_ERROR_INIT;
    if (range_read(request, fallback, range_out, &error) == 0)
        return true;
    page_refuse(request, 400, "Wrong time range", "%s.", error.text);
    return false;
}

int64_t page_range_get_lasts(const struct page_range *range)
{
    const int64_t part = (range->to.us - range->from.us) / MOVING_PARTS;
    if (range->is_fixed)
        return FIXED_LASTS_US;
    return part < MOVING_LASTS_MIN   ? MOVING_LASTS_MIN
           : part > MOVING_LASTS_MAX ? MOVING_LASTS_MAX
                                     : part;
}

void page_range_print_links(const struct api_request *request, const struct page_range *range)
{
    struct as_buf *out = page_get_out(request);
    AS_CLEANUP(as_buf_deinit) struct as_buf query = AS_BUF_INIT(PAGE_URL_MAX);
    page_append_query(request, PAGE_RANGE, &query);
    if (as_buf_check(&query) != 0)
        return;
    as_buf_append_str(out, "<nav class=\"states\" aria-label=\"Time range\">");
    for (size_t i = 0; i < AS_ARRAY_SIZE(range_words); i++) {
        as_buf_append_str(out, "<a href=\"?");
        html_text(out, query.size > 0 ? query.data : "");
        as_buf_printf(out, "range=%s\"%s>%s</a>", range_words[i].word,
                      as_str_equal(range->last, range_words[i].last) ? " aria-current=\"true\""
                                                                     : "",
                      range_words[i].word);
    }
    as_buf_append_str(out, "</nav>\n");
    if (range->last)
        return;
    as_buf_append_str(out, "<p class=\"dim\">From ");
    page_print_time(request, range->from);
    as_buf_append_str(out, " to ");
    if (range->is_fixed)
        page_print_time(request, range->to);
    else
        as_buf_append_str(out, "now");
    as_buf_append_str(out, "</p>\n");
}
