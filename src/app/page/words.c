/*
 * Times, reasons and pauses, in the words of people.
 */
#include <inttypes.h>

#include "page.h"

void page_print_span(struct as_buf *out, int64_t us)
{
    const int64_t seconds = us > 0 ? us / AS_US_PER_S : 0;
    if (seconds < 120)
        as_buf_printf(out, "%" PRId64 " s", seconds);
    else if (seconds < 2 * 60 * 60)
        as_buf_printf(out, "%" PRId64 " min", seconds / 60);
    else if (seconds < 2 * 24 * 60 * 60)
        as_buf_printf(out, "%" PRId64 " h", seconds / (60 * 60));
    else
        as_buf_printf(out, "%" PRId64 " d", seconds / (24 * 60 * 60));
}

void page_print_time(const struct api_request *request, as_wall_time at)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(at, text);
    as_buf_printf(page_get_out(request), "<time datetime=\"%s\">%.10s %.8s</time>", text, text,
                  text + 11);
}

void page_print_ago(const struct api_request *request, as_wall_time at)
{
    struct as_buf *out = page_get_out(request);
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(at, text);
    as_buf_printf(out, "<time datetime=\"%s\" title=\"%s\">", text, text);
    page_print_span(out, request->view.wall.us - at.us);
    as_buf_append_str(out, " ago</time>");
}

void page_print_reason(struct as_buf *out, enum as_reason reason)
{
    html_element(out, "code", NULL, as_reason_get_word(reason));
    as_buf_append_str(out, ": ");
    html_text(out, as_reason_get_meaning(reason));
}

void page_print_pause(const struct api_request *request, const struct as_pause_view *pause)
{
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "paused");
    if (*pause->who) {
        as_buf_append_str(out, " by ");
        html_text(out, pause->who);
    }
    if (as_moment_is_set(pause->until)) {
        as_buf_append_str(out, " for another ");
        page_print_span(out, pause->until.mono.us - request->view.mono.us);
    }
    as_buf_append_str(out, ": ");
    html_text(out, pause->reason);
}
