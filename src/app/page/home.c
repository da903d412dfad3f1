/*
 * The first page: the most important facts first.
 */
#include <inttypes.h>
#include <string.h>

#include <alertscaler/base/str.h>

#include "page.h"
#include "page_answers.h"

#define PAGE_TARGETS_MAX   500
#define PAGE_DECISIONS_MAX 30

static void print_size(struct as_buf *out, const struct as_target_view *target)
{
    if (!target->has_size) {
        as_buf_append_str(out, "<td class=\"dim\">unknown");
    } else {
        as_buf_printf(out, "<td class=\"n\">%" PRId32, target->replicas);
        if (target->desired != target->replicas)
            as_buf_printf(out, " → %" PRId32, target->desired);
        if (target->status_replicas != target->replicas)
            as_buf_printf(out, " <small>%" PRId32 " there</small>", target->status_replicas);
    }
    if (target->last_failure != AS_REASON_APPLIED) {
        as_buf_append_str(out, " <span class=\"bad\">");
        page_print_reason(out, target->last_failure);
        as_buf_append_str(out, "</span>");
    }
    as_buf_append_str(out, "</td>");
}

static void print_bounds(struct as_buf *out, const struct as_target_view *target)
{
    const struct as_bounds_config *bounds = target->config ? &target->config->bounds : NULL;
    if (bounds)
        as_buf_printf(out, "<td class=\"n\">%" PRId32 " to %" PRId32 "</td>", bounds->min,
                      bounds->max);
    else
        as_buf_append_str(out, "<td class=\"dim\">no rule</td>");
}

static void print_lock(struct as_buf *out, const char *word, struct as_moment until,
                       as_mono_time now)
{
    if (!as_moment_is_set(until))
        return;
    as_buf_printf(out, "%s: ", word);
    page_print_span(out, until.mono.us - now.us);
    as_buf_append_str(out, "<br>");
}

static void print_ago(struct as_buf *out, const struct as_view *view, as_wall_time at)
{
    as_buf_append_str(out, " <small>");
    page_print_span(out, view->wall.us - at.us);
    as_buf_append_str(out, " ago</small>");
}

struct target_rows {
    const struct api_request *request;
    size_t count;
};

static void print_target(void *context, const struct as_target_view *target)
{
    struct target_rows *rows = context;
    const struct as_view *view = &rows->request->view;
    struct as_buf *out = &rows->request->api->body;
    if (rows->count++ >= PAGE_TARGETS_MAX)
        return;
    as_buf_append_str(out, "<tr><td>");
    html_text(out, target->name);
    as_buf_append_str(out, "<br><small>");
    html_text(out, target->id);
    as_buf_append_str(out, "</small></td>");
    print_size(out, target);
    print_bounds(out, target);
    as_buf_append_str(out, "<td>");
    print_lock(out, "up", target->up_locked_until, view->mono);
    print_lock(out, "down", target->down_locked_until, view->mono);
    if (target->pause.is_set)
        page_print_pause(rows->request, &target->pause);
    as_buf_printf(out, "</td><td class=\"n\">%zu</td><td>", target->open_incidents);
    if (target->last_decision) {
        page_print_reason(out, target->last_reason);
        if (target->last_rule) {
            as_buf_append_str(out, " by ");
            html_text(out, target->last_rule);
        }
        print_ago(out, view, target->last_at);
    }
    as_buf_append_str(out, "</td></tr>\n");
}

static void print_targets(const struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = &request->api->body;
    struct target_rows rows = {.request = request};
    as_buf_append_str(out, "<h2>Targets</h2>\n<table><tr><th>Target</th><th>Size</th>"
                           "<th>Bounds</th><th>Locked</th><th>Open incidents</th>"
                           "<th>Last decision</th></tr>\n");
    if (view->engine)
        as_engine_visit_targets(view->engine, view->mono, view->wall, print_target, &rows);
    as_buf_append_str(out, "</table>\n");
    if (rows.count > PAGE_TARGETS_MAX)
        as_buf_printf(out, "<p class=\"dim\">%zu more are in the API.</p>\n",
                      rows.count - PAGE_TARGETS_MAX);
}

static void print_decision(const struct api_request *request, const struct kept_decision *decision)
{
    struct as_buf *out = &request->api->body;
    const char *name = *decision->target_name ? decision->target_name : decision->target;
    char time[AS_RFC3339_SIZE];
    as_wall_time_print(decision->at, time);
    as_buf_printf(out, "<tr><td class=\"n\"><a href=\"/api/v1/decisions/%s\">%s</a></td><td>",
                  decision->id, time);
    html_text(out, name);
    as_buf_printf(out, "</td><td class=\"n\">%" PRId32, decision->replicas);
    if (decision->desired != decision->replicas)
        as_buf_printf(out, " → %" PRId32, decision->desired);
    if (decision->has_would)
        as_buf_printf(out, " <small>would be %" PRId32 "</small>", decision->would);
    as_buf_append_str(out, "</td><td>");
    page_print_reason(out, decision->reason);
    as_buf_append_str(out, "</td><td>");
    html_text(out, decision->rule ? decision->rule : "");
    as_buf_append_str(out, "</td></tr>\n");
}

void page_answer_home(struct api_request *request)
{
    struct as_buf *out = &request->api->body;
    page_begin(request, &(struct page_head){.title = "Targets", .place = PAGE_TARGETS});
    print_targets(request);
    as_buf_append_str(out, "<h2>Decisions</h2>\n<table><tr><th>Time</th><th>Target</th>"
                           "<th>Size</th><th>Reason</th><th>Rule</th></tr>\n");
    size_t count = 0;
    const struct kept_decision *decision;
    TAILQ_FOREACH (decision, &request->api->decisions, next) {
        if (count++ == PAGE_DECISIONS_MAX)
            break;
        print_decision(request, decision);
    }
    as_buf_append_str(out, "</table>\n");
    page_end(request, 200);
}
