/*
 * What surrounds a page: head, menu, what concerns all targets, foot.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/runtime/version.h>

#include "page.h"
#include "page_style.h"
#include <alertscaler/auth/auth.h>
#include <alertscaler/auth/browser.h>

#define PAGE_TYPE     "text/html; charset=utf-8"
#define HEADERS_MAX   ((size_t)1024)
#define SENTENCE_SIZE 1024
#define REFRESH_S     15
#define REFRESH_MAX_S 3600

/* Seconds that the reader has asked for; 0: the page stays as it is. */
static int64_t get_refresh(const struct api_request *request)
{
    const char *text = api_parameter_find(request, "refresh");
    int64_t seconds = 0;
    if (request->has_form || !text || as_number_parse_i64(text, strlen(text), &seconds) != 0)
        return 0;
    return seconds < 5 ? 0 : seconds > REFRESH_MAX_S ? REFRESH_MAX_S : seconds;
}

static void print_menu(const struct api_request *request, enum page_place place)
{
    static const struct {
        enum page_place place;
        const char *path, *title;
    } rows[] = {
        {PAGE_TARGETS, "/", "Targets"},
        {PAGE_INCIDENTS, "/incidents", "Incidents"},
        {PAGE_RULES, "/rules", "Rules"},
    };
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<nav aria-label=\"Pages\"><ul>");
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        as_buf_printf(out, "<li><a href=\"%s%s\"%s>%s</a></li>", page_root(request), rows[i].path,
                      rows[i].place == place ? " aria-current=\"page\"" : "", rows[i].title);
    as_buf_append_str(out, "</ul></nav>");
}

/* Who reads this page, or how to log in. */
static void print_login(const struct api_request *request)
{
    const struct as_view *view = &request->view;
    if (as_auth_has_session(request->exchange))
        page_link(request, page_get_out(request), "/account", "", request->who);
    else if ((view->has_passwords || view->has_tokens) &&
             as_browser_may_log_in(request->exchange, view->external_url))
        page_link(request, page_get_out(request), "/login", "", "Log in");
}

static void print_bar(const struct api_request *request, const struct page_head *head)
{
    struct as_buf *out = page_get_out(request);
    as_buf_printf(out, "<div class=\"bar\"><header><a class=\"brand\" href=\"%s/\">alertscaler</a>",
                  page_root(request));
    if (!head->is_open) {
        print_menu(request, head->place);
        as_buf_append_str(out, "<span class=\"where\">");
        html_text(out, request->api->instance);
        as_buf_append_str(out, "</span>");
        print_login(request);
    }
    as_buf_append_str(out, "</header></div>\n");
}

static void begin_note(struct as_buf *out, const char *class)
{
    as_buf_printf(out, "<p class=\"note %s\">", class);
}

static void print_pause_of_all(const struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    if (!view->engine)
        return;
    const struct as_pause_view pause = as_engine_get_pause(view->engine, view->mono, view->wall);
    if (!pause.is_set)
        return;
    begin_note(out, "warn");
    as_buf_append_str(out,
                      pause.is_halt ? "The kill switch is set: everything is " : "Everything is ");
    page_print_pause(request, &pause);
    as_buf_append_str(out, "</p>\n");
}

static void print_notes(const struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    if (view->not_ready) {
        begin_note(out, "bad");
        as_buf_append_str(out, "Not ready: ");
        html_text(out, view->not_ready);
        as_buf_append_str(out, "</p>\n");
    }
    print_pause_of_all(request);
    if (view->dry_run) {
        begin_note(out, "warn");
        as_buf_append_str(out, "Dry run: everything is decided and recorded, nothing is "
                               "changed.</p>\n");
    }
}

void page_begin(struct api_request *request, const struct page_head *head)
{
    struct as_buf *out = page_get_out(request);
    request->has_form = head->has_form || head->is_open;
    request->is_open = head->is_open;
    request->stays = head->stays;
    const int64_t refresh = get_refresh(request);
    as_buf_append_str(out,
                      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, "
                      "initial-scale=1\">\n<meta name=\"referrer\" content=\"same-origin\">\n");
    if (refresh > 0)
        as_buf_printf(out, "<meta http-equiv=\"refresh\" content=\"%d\">\n", (int)refresh);
    if (head->leads_to) {
        as_buf_append_str(out, "<meta http-equiv=\"refresh\" content=\"0;url=");
        html_text(out, head->leads_to);
        as_buf_append_str(out, "\">\n");
    }
    as_buf_append_str(out, "<title>");
    html_text(out, head->title);
    as_buf_append_str(out, " \u00b7 alertscaler</title>\n");
    style_print(out);
    as_buf_append_str(out, "</head>\n<body>\n");
    print_bar(request, head);
    as_buf_append_str(out, "<main>\n");
    html_element(out, "h1", NULL, head->title);
    as_buf_append_char(out, '\n');
    if (head->is_open)
        return;
    print_notes(request);
    page_print_result(request);
}

/* The reader turns refreshing on: a page that reloads by itself would interrupt a screen reader. */
static void print_refresh(const struct api_request *request)
{
    struct as_buf *out = page_get_out(request);
    AS_CLEANUP(as_buf_deinit) struct as_buf url = AS_BUF_INIT(PAGE_URL_MAX);
    if (request->stays)
        return;
    as_buf_append_char(&url, '?');
    page_append_query(request, "refresh", &url);
    const bool is_on = get_refresh(request) > 0;
    if (!is_on)
        as_buf_printf(&url, "refresh=%d", REFRESH_S);
    if (as_buf_check(&url) != 0)
        return;
    html_link(out, url.data, "",
              is_on               ? "Stop refreshing"
              : request->has_form ? "Refresh every 15 seconds, without forms"
                                  : "Refresh every 15 seconds");
}

static void print_foot(const struct api_request *request)
{
    static const char *const documents[][2] = {
        {"/api/v1/status", "status"},
        {"/api/v1/targets", "targets"},
        {"/api/v1/incidents", "incidents"},
        {"/api/v1/rules", "rules"},
        {"/api/v1/decisions", "decisions"},
        {"/api/v1/approvals", "approvals"},
        {"/metrics", "metrics"},
    };
    struct as_buf *out = page_get_out(request);
    if (request->is_open) {
        as_buf_append_str(out, "</main>\n</body></html>\n");
        return;
    }
    as_buf_append_str(out, "</main>\n<footer><p><span>");
    html_text(out, as_version_get());
    as_buf_append_str(out, "</span><span>up for ");
    page_print_span(out, request->view.wall.us - request->view.started.us);
    as_buf_append_str(out, "</span><span>all times are UTC</span>");
    print_refresh(request);
    as_buf_append_str(out, "</p>\n<p>");
    for (size_t i = 0; i < AS_ARRAY_SIZE(documents); i++)
        page_link(request, out, documents[i][0], "", documents[i][1]);
    as_buf_append_str(out, " <span>as the API has them</span></p></footer>\n</body></html>\n");
}

void page_end(struct api_request *request, int status)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf headers = AS_BUF_INIT(HEADERS_MAX);
    print_foot(request);
    as_buf_append_str(&headers,
                      status == 503 ? AS_REPLY_LATER AS_REPLY_NO_STORE : AS_REPLY_NO_STORE);
    style_print_policy(&headers);
    api_reply_body(request, status, PAGE_TYPE, headers.data);
}

void page_part(const struct api_request *request, const char *title)
{
    html_element(page_get_out(request), "h2", NULL, title);
    as_buf_append_char(page_get_out(request), '\n');
}

void page_refuse(struct api_request *request, int status, const char *title, const char *format,
                 ...)
{
    char sentence[SENTENCE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(sentence, sizeof(sentence), format, arguments) < 0)
        sentence[0] = '\0';
    va_end(arguments);
    page_begin(request, &(struct page_head){.title = title, .place = PAGE_ELSEWHERE});
    html_element(page_get_out(request), "p", NULL, sentence);
    page_end(request, status);
}

bool page_has_engine(struct api_request *request)
{
    const struct as_view *view = &request->view;
    if (view->engine)
        return true;
    if (*view->leader.holder && !view->leader.is_leader)
        page_refuse(request, 503, "This replica does not lead",
                    "Only the leader knows targets, incidents and decisions: ask %s.",
                    view->leader.holder);
    else
        page_refuse(request, 503, "Nothing to show yet",
                    "The state is not open, so there are no targets, incidents and decisions.");
    return false;
}

bool page_may_see_target(const struct api_request *request, const char *name, const char *id)
{
    const struct as_view *view = &request->view;
    return as_scope_allows_target(view->scopes, view->scope_count, request->who, name, id);
}

bool page_may_see_rule(const struct api_request *request, const char *rule, const char *target_name,
                       const char *target_id)
{
    const struct as_view *view = &request->view;
    return as_scope_allows(view->scopes, view->scope_count, request->who, rule, target_name,
                           target_id);
}
