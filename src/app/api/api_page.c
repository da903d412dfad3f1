/*
 * The status page: the most important facts first. One document without scripts or external
 * resources; outside text is escaped.
 */
#include <inttypes.h>
#include <string.h>

#include <alertscaler/app/version.h>
#include <alertscaler/base/str.h>

#include "api_private.h"

#define PAGE_TARGETS_MAX   500
#define PAGE_DECISIONS_MAX 30
#define PAGE_TYPE          "text/html; charset=utf-8"
#define PAGE_HEADERS                                                                               \
    "Cache-Control: no-store\r\n"                                                                  \
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "                     \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width\">"
    "<meta http-equiv=\"refresh\" content=\"15\"><title>alertscaler</title>\n<style>"
    ":root{color-scheme:light dark}"
    "body{font:15px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:75rem;padding:0 1rem}"
    "h1{font-size:1.4rem;margin:0}h2{font-size:1.1rem;margin:1.8rem 0 .4rem}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #8884;"
    "vertical-align:top}th{font-weight:600}td.n{font-variant-numeric:tabular-nums}"
    "small,.dim{color:#888}.bad{color:#c33;font-weight:600}.on{color:#b70;font-weight:600}"
    "</style></head>\n<body>\n";

static void print_text(struct as_buf *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&': as_buf_append_str(out, "&amp;"); break;
        case '<': as_buf_append_str(out, "&lt;"); break;
        case '>': as_buf_append_str(out, "&gt;"); break;
        case '"': as_buf_append_str(out, "&quot;"); break;
        case '\'': as_buf_append_str(out, "&#39;"); break;
        default: as_buf_append_char(out, *text);
        }
    }
}

/* "12s", "5m": whole seconds up to two minutes, then minutes, hours, days. */
static void print_span(struct as_buf *out, int64_t us)
{
    const int64_t seconds = us > 0 ? us / AS_US_PER_S : 0;
    if (seconds < 120)
        as_buf_printf(out, "%" PRId64 "s", seconds);
    else if (seconds < 2 * 60 * 60)
        as_buf_printf(out, "%" PRId64 "m", seconds / 60);
    else if (seconds < 2 * 24 * 60 * 60)
        as_buf_printf(out, "%" PRId64 "h", seconds / (60 * 60));
    else
        as_buf_printf(out, "%" PRId64 "d", seconds / (24 * 60 * 60));
}

static void print_reason(struct as_buf *out, enum as_reason reason)
{
    as_buf_printf(out, "<span title=\"%s\">%s</span>", as_reason_get_meaning(reason),
                  as_reason_get_word(reason));
}

static void print_pause(const struct api_request *request, const struct as_pause_view *pause)
{
    struct as_buf *out = &request->api->body;
    if (!pause->is_set)
        return;
    as_buf_append_str(out, "<span class=\"on\">paused</span>");
    if (*pause->who) {
        as_buf_append_str(out, " by ");
        print_text(out, pause->who);
    }
    if (as_moment_is_set(pause->until)) {
        as_buf_append_str(out, " for ");
        print_span(out, pause->until.mono.us - request->view.mono.us);
    }
    as_buf_append_str(out, ": ");
    print_text(out, pause->reason);
}

static void print_pause_of_all(const struct api_request *request)
{
    const struct as_view *view = &request->view;
    if (!view->engine)
        return;
    const struct as_pause_view pause = as_engine_get_pause(view->engine, view->mono, view->wall);
    if (!pause.is_set)
        return;
    as_buf_append_str(&request->api->body, "<p>everything is ");
    print_pause(request, &pause);
    as_buf_append_str(&request->api->body, "</p>\n");
}

static void print_head(const struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = &request->api->body;
    as_buf_append_str(out, page_head);
    as_buf_append_str(out, "<h1>alertscaler</h1>\n<p>");
    print_text(out, as_version_get());
    as_buf_append_str(out, " <small>on ");
    print_text(out, request->api->instance);
    as_buf_append_str(out, ", up for ");
    print_span(out, view->wall.us - view->started.us);
    as_buf_append_str(out, "</small> · ");
    if (view->not_ready) {
        as_buf_append_str(out, "<span class=\"bad\">not ready: ");
        print_text(out, view->not_ready);
        as_buf_append_str(out, "</span>");
    } else {
        as_buf_append_str(out, "ready");
    }
    if (view->dry_run)
        as_buf_append_str(out, " · <span class=\"on\">dry run: nothing is changed</span>");
    if (view->engine)
        as_buf_printf(out, " · open incidents: %zu",
                      as_engine_get_counts(view->engine).incidents_open);
    as_buf_append_str(out, "</p>\n");
    print_pause_of_all(request);
}

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
        print_reason(out, target->last_failure);
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
    print_span(out, until.mono.us - now.us);
    as_buf_append_str(out, "<br>");
}

static void print_ago(struct as_buf *out, const struct as_view *view, as_wall_time at)
{
    as_buf_append_str(out, " <small>");
    print_span(out, view->wall.us - at.us);
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
    print_text(out, target->name);
    as_buf_append_str(out, "<br><small>");
    print_text(out, target->id);
    as_buf_append_str(out, "</small></td>");
    print_size(out, target);
    print_bounds(out, target);
    as_buf_append_str(out, "<td>");
    print_lock(out, "up", target->up_locked_until, view->mono);
    print_lock(out, "down", target->down_locked_until, view->mono);
    print_pause(rows->request, &target->pause);
    as_buf_printf(out, "</td><td class=\"n\">%zu</td><td>", target->open_incidents);
    if (target->last_decision) {
        print_reason(out, target->last_reason);
        if (target->last_rule) {
            as_buf_append_str(out, " by ");
            print_text(out, target->last_rule);
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
    print_text(out, name);
    as_buf_printf(out, "</td><td class=\"n\">%" PRId32, decision->replicas);
    if (decision->desired != decision->replicas)
        as_buf_printf(out, " → %" PRId32, decision->desired);
    if (decision->has_would)
        as_buf_printf(out, " <small>would be %" PRId32 "</small>", decision->would);
    as_buf_append_str(out, "</td><td>");
    print_reason(out, decision->reason);
    as_buf_append_str(out, "</td><td>");
    print_text(out, decision->rule ? decision->rule : "");
    as_buf_append_str(out, "</td></tr>\n");
}

void api_answer_page(struct api_request *request)
{
    struct as_buf *out = &request->api->body;
    print_head(request);
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
    as_buf_append_str(out, "</table>\n<p class=\"dim\"><a href=\"/api/v1/status\">status</a> · "
                           "<a href=\"/api/v1/targets\">targets</a> · "
                           "<a href=\"/api/v1/incidents\">incidents</a> · "
                           "<a href=\"/api/v1/rules\">rules</a> · "
                           "<a href=\"/api/v1/decisions\">decisions</a> · "
                           "<a href=\"/metrics\">metrics</a></p>\n</body></html>\n");
    api_reply_body(request, PAGE_TYPE, PAGE_HEADERS);
}
