/*
 * What all pages share: the style sheet, head, menu and foot; times, sizes and reasons in words;
 * results of operator commands; the version of a page.
 * It decides nothing and changes nothing.
 */
#include "page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <event2/http.h>
#include <openssl/sha.h>

#include <alertscaler/auth/auth.h>
#include <alertscaler/auth/browser.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/monitoring/query_checks.h>
#include <alertscaler/rules/external_url.h>
#include <alertscaler/runtime/version.h>

#include "api_private.h"

/*
 * The style sheet of all pages. Colors stand in variables: once for light, once for dark. Each pair
 * of text and background has a contrast of 4.5 or more. Up to 720 pixels, a row of a table is a
 * card.
 */

#define STYLE_MAX ((size_t)64 * 1024)

static const char sheet[] =
    ":root{color-scheme:light dark;--page:#fff;--soft:#f6f8fa;--line:#d1d9e0;--text:#1f2328;"
    "--dim:#59636e;--link:#0757b5;--good:#1a6e2e;--good-back:#dafbe1;--warn:#7d4e00;"
    "--warn-back:#fff4d1;--bad:#b3131f;--bad-back:#ffebe9}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#0d1117;--soft:#161b22;--line:#30363d;"
    "--text:#e6edf3;--dim:#9da7b3;--link:#6cb0ff;--good:#4cc763;--good-back:#12261a;"
    "--warn:#e0aa3e;--warn-back:#2b2111;--bad:#ff8b82;--bad-back:#301517}}\n"
    "*{box-sizing:border-box}"
    "body{margin:0;background:var(--page);color:var(--text);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;overflow-wrap:anywhere}"
    "header,main,footer{max-width:76rem;margin:0 auto;padding:0 1rem}"
    ".bar{background:var(--soft);border-bottom:1px solid var(--line)}"
    ".bar header{display:flex;flex-wrap:wrap;align-items:center;gap:.2rem 1.4rem;"
    "padding-top:.6rem;padding-bottom:.6rem}"
    ".brand{font-weight:700;color:var(--text);text-decoration:none}"
    "nav ul{display:flex;gap:1.2rem;list-style:none;margin:0;padding:0}"
    "nav a[aria-current]{color:var(--text);font-weight:600;text-decoration:none}"
    ".where{margin-left:auto;color:var(--dim);font-size:13px}"
    "a{color:var(--link)}a:focus-visible,:focus-visible{outline:2px solid var(--link);"
    "outline-offset:2px}"
    "h1{font-size:1.5rem;line-height:1.25;margin:1.4rem 0 .3rem}"
    "h2{font-size:1.1rem;margin:2rem 0 .6rem}h3{font-size:.95rem;margin:1.2rem 0 .3rem}"
    "p{margin:.4rem 0}small,.dim{color:var(--dim)}small{font-size:13px}"
    "code,pre,.id{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace}"
    ".id{color:var(--dim)}"
    "pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:.7rem .9rem;"
    "margin:.4rem 0;white-space:pre-wrap}"
    ".pill{display:inline-block;border-radius:1em;padding:0 .65em;font-size:13px;font-weight:600;"
    "background:var(--soft);border:1px solid var(--line);white-space:nowrap}"
    ".good{color:var(--good);background:var(--good-back);border-color:currentColor}"
    ".warn{color:var(--warn);background:var(--warn-back);border-color:currentColor}"
    ".bad{color:var(--bad);background:var(--bad-back);border-color:currentColor}"
    ".note{border-left:3px solid;border-radius:4px;padding:.45rem .8rem;margin:.6rem 0}"
    ".note.warn,.note.bad,.note.good{border-color:currentColor}"
    ".now{font-size:1.1rem;margin:.6rem 0}"
    ".facts{display:flex;flex-wrap:wrap;gap:.4rem 2rem;margin:.6rem 0}"
    ".facts div{min-width:5rem}.facts dt{color:var(--dim);font-size:13px}"
    ".facts dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;padding:.4rem 1.2rem .4rem 0;border-bottom:1px solid var(--line);"
    "vertical-align:top}th{font-size:13px;font-weight:600;color:var(--dim);white-space:nowrap}"
    "th.number,td.number{text-align:right;font-variant-numeric:tabular-nums}"
    "tbody tr:hover{background:var(--soft)}"
    "ul.plain{list-style:none;margin:0;padding:0}ul.plain li{padding:.15rem 0}"
    "li.set-in{margin-left:1.4rem;color:var(--dim)}"
    "form.filter{display:flex;flex-wrap:wrap;gap:.5rem;align-items:end;margin:.6rem 0}"
    "form.filter label{font-size:13px;color:var(--dim)}"
    "input,select,button,textarea{font:inherit;color:var(--text);background:var(--page);"
    "border:1px solid var(--dim);border-radius:6px;padding:.25rem .6rem;max-width:100%}"
    "textarea{width:100%;font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace}"
    "time{white-space:nowrap}td>div{min-width:4.5rem}"
    "label input,label select{display:block;margin-top:.1rem}"
    "button{background:var(--soft);cursor:pointer}"
    "form.order{max-width:26rem;margin:.6rem 0}form.order label{display:block;margin:.5rem 0}"
    "form.order label:not(.check) input{width:100%}"
    "[aria-invalid=true]{border:2px solid var(--bad)}"
    "form.order .check input{display:inline;width:auto;margin:0 .4rem 0 0}"
    "form.order button{margin-top:.3rem;font-weight:600}"
    "details.order{border:1px solid var(--line);border-radius:6px;padding:.4rem .9rem;"
    "margin:.5rem 0;max-width:30rem}details.order summary{cursor:pointer;font-weight:600}"
    ".pages{display:flex;gap:1.2rem;margin:.8rem 0}"
    "svg{display:block;max-width:100%;height:auto}"
    ".spark{width:120px;height:28px}"
    ".spark path{fill:none;stroke:var(--link);stroke-width:1.5}"
    ".spark line{stroke:var(--dim)}"
    ".narrow{display:none}"
    "nav.states{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:.6rem 0}"
    "nav.states a[aria-current]{color:var(--text);font-weight:600;text-decoration:none}"
    "#zone{font:inherit;color:var(--link);background:none;border:0;padding:0}"
    "button#zone{cursor:pointer;text-decoration:underline}"
    "@media(min-width:721px){[aria-label=Targets] td{white-space:nowrap;padding-right:.8rem}"
    ".name{display:block;max-width:19rem;overflow:hidden;text-overflow:ellipsis}"
    "[aria-label=Targets] td:nth-child(5){white-space:normal}"
    "[aria-label=Targets] .pill{font-size:12px;padding:0 .5em}}"
    ".pill{max-width:100%;overflow:hidden;text-overflow:ellipsis;vertical-align:bottom}"
    "#live{position:sticky;bottom:0;margin:0;padding:.6rem 1rem}"
    "footer{color:var(--dim);font-size:13px;padding-top:1.6rem;padding-bottom:2rem}"
    "footer p{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}"
    "@media(max-width:720px){.wide{display:none}.narrow{display:block}.where{margin-left:0}"
    "table,tbody,tr,td{display:block;width:100%}"
    "thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}"
    "tr{border:1px solid var(--line);border-radius:6px;padding:.4rem .8rem;margin:.6rem 0}"
    "td,td.number{display:flex;gap:.8rem;border:0;padding:.15rem 0;text-align:left}"
    "td::before{content:attr(data-title);flex:0 0 6.5rem;color:var(--dim);font-size:13px}"
    "td>div{flex:1;min-width:0}td:has(>div:empty){display:none}}\n";

static void print_sheet(struct as_buf *out)
{
    as_buf_append_str(out, sheet);
    as_buf_append_str(out, as_chart_dark_style);
}

/* Appends `<style>...</style>`. */
static void style_print(struct as_buf *out)
{
    as_buf_append_str(out, "<style>");
    print_sheet(out);
    as_buf_append_str(out, "</style>");
}

/* Appends the header `Content-Security-Policy`: no script but ours, and requests to us alone (an
 * open page has no script), no style but this one (by its digest), nothing from elsewhere, forms to
 * ourselves, no frame around it. */
static void style_print_policy(bool has_script, struct as_buf *headers)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    AS_CLEANUP(as_buf_deinit) struct as_buf style = AS_BUF_INIT(STYLE_MAX);
    print_sheet(&style);
    SHA256((const unsigned char *)style.data, style.size, digest);
    as_buf_append_str(headers, "Content-Security-Policy: default-src 'none'; ");
    if (has_script)
        as_buf_append_str(headers, "script-src 'self'; connect-src 'self'; ");
    as_buf_append_str(headers, "style-src 'sha256-");
    as_encode_base64(headers, digest, sizeof(digest));
    as_buf_append_str(headers,
                      "'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n");
}

/*
 * Times, sizes, reasons and pauses, in the words of people.
 */

#define PAGES_SHOWN 1000000

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

/* The page is another when `at` comes. */
static void note_time(const struct api_request *request, as_wall_time at)
{
    as_wall_time *until = &request->api->shown_until;
    if (at.us > request->view.wall.us && at.us < until->us)
        *until = at;
}

void page_print_time(const struct api_request *request, as_wall_time at)
{
    char text[AS_RFC3339_SIZE];
    note_time(request, at);
    as_wall_time_print(at, text);
    as_buf_printf(page_get_out(request), "<time class=\"at\" datetime=\"%s\">%.10s %.8s</time>",
                  text, text, text + 11);
}

/* `class`: how page.js prints it. */
static void begin_moving_time(struct as_buf *out, const char *class, as_wall_time at)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print(at, text);
    as_buf_printf(out, "<time class=\"%s\" datetime=\"%s\" title=\"%s\">", class, text, text);
}

void page_print_ago(const struct api_request *request, as_wall_time at)
{
    struct as_buf *out = page_get_out(request);
    begin_moving_time(out, "ago", at);
    page_print_span(out, request->view.wall.us - at.us);
    as_buf_append_str(out, " ago</time>");
}

void page_print_distance(const struct api_request *request, struct as_buf *out, as_wall_time at)
{
    const int64_t left_us = at.us - request->view.wall.us;
    note_time(request, at);
    begin_moving_time(out, left_us > 0 ? "left" : "for", at);
    page_print_span(out, left_us > 0 ? left_us : -left_us);
    as_buf_append_str(out, "</time>");
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
    if (pause->ways != AS_WAYS_BOTH)
        as_buf_printf(out, " (%s)", as_ways_get_word(pause->ways));
    if (*pause->who) {
        as_buf_append_str(out, " by ");
        html_text(out, api_show_credential(request, pause->who));
    }
    if (as_moment_is_set(pause->until)) {
        as_buf_append_str(out, " for another ");
        page_print_distance(request, out, page_get_wall(request, pause->until.mono));
    }
    as_buf_append_str(out, ": ");
    html_text(out, pause->reason);
}

void page_fact_begin(struct as_buf *out, const char *title)
{
    as_buf_append_str(out, "<div>");
    html_element(out, "dt", NULL, title);
    as_buf_append_str(out, "<dd>");
}

void page_fact_end(struct as_buf *out)
{
    as_buf_append_str(out, "</dd></div>\n");
}

void page_print_pill(struct as_buf *out, const char *class, const char *text)
{
    as_buf_printf(out, "<span class=\"pill %s\">", class);
    html_text(out, text);
    as_buf_append_str(out, "</span> ");
}

const char *page_root(const struct api_request *request)
{
    const struct as_external_url *url = request->view.external_url;
    return url ? as_external_url_get_path(url) : "";
}

void page_link(const struct api_request *request, struct as_buf *out, const char *path,
               const char *rest, const char *text)
{
    AS_CLEANUP(as_free_p) char *base = as_xasprintf("%s%s", page_root(request), path);
    html_link(out, base, rest, text);
}

/* Whether several targets may have this name. */
static bool is_shared(const struct api_request *request, const char *name)
{
    const struct as_ruleset *ruleset = request->view.ruleset;
    size_t i = 0;
    while (i < ruleset->target_count && strcmp(ruleset->targets[i]->name, name) != 0)
        i++;
    return i < ruleset->target_count && ruleset->targets[i]->is_templated;
}

void page_link_target(const struct api_request *request, struct as_buf *out, const char *id,
                      const char *name)
{
    page_link(request, out, "/targets/", id, *name ? name : id);
    if (!is_shared(request, name))
        return;
    as_buf_append_char(out, ' ');
    html_element(out, "span", "id", as_target_id_get_end(id));
}

void page_link_rule(const struct api_request *request, struct as_buf *out, const char *rule)
{
    page_link(request, out, "/rules/", rule, rule);
}

/* --- lists in pages --- */

struct page_slice page_slice_get(const struct api_request *request, size_t total, size_t size)
{
    const char *text = api_parameter_find(request, "page");
    int64_t page = 1;
    if (text &&
        (as_number_parse_i64(text, strlen(text), &page) != 0 || page < 1 || page > PAGES_SHOWN))
        page = 1;
    const size_t last = total > 0 ? (total - 1) / size : 0;
    const size_t number = (size_t)(page - 1) > last ? last : (size_t)(page - 1);
    const size_t from = number * size;
    return (struct page_slice){.from = from,
                               .to = total - from > size ? from + size : total,
                               .total = total,
                               .size = size};
}

static bool is_without(const char *key, const char *without)
{
    const bool is_range = strcmp(without, PAGE_RANGE) == 0;
    return strcmp(key, without) == 0 ||
           (is_range && (strcmp(key, "from") == 0 || strcmp(key, "to") == 0)) ||
           (strcmp(key, PAGE_BEFORE) == 0 && strcmp(without, "refresh") != 0);
}

void page_append_query(const struct api_request *request, const char *without, struct as_buf *url)
{
    const struct evkeyval *parameter;
    TAILQ_FOREACH (parameter, &request->parameters, next) {
        if (!is_without(parameter->key, without) && strcmp(parameter->key, "page") != 0 &&
            strcmp(parameter->key, PAGE_SINCE) != 0 &&
            as_str_is_visible(parameter->key, strlen(parameter->key)))
            html_query(url, parameter->key, parameter->value);
    }
}

static void link_to(const struct api_request *request, const char *path, size_t page,
                    const char *title)
{
    struct as_buf *out = page_get_out(request);
    AS_CLEANUP(as_buf_deinit) struct as_buf url = AS_BUF_INIT(PAGE_URL_MAX);
    as_buf_printf(&url, "%s%s?", page_root(request), path);
    page_append_query(request, "page", &url);
    as_buf_printf(&url, "page=%zu", page);
    if (as_buf_check(&url) == 0)
        html_link(out, url.data, "", title);
}

void page_slice_print(const struct api_request *request, const struct page_slice *slice,
                      const char *path)
{
    struct as_buf *out = page_get_out(request);
    const size_t number = slice->from / slice->size + 1;
    if (slice->total <= slice->size)
        return;
    as_buf_append_str(out, "<nav class=\"pages\" aria-label=\"More rows\">");
    if (number > 1)
        link_to(request, path, number - 1, "Previous");
    as_buf_printf(out, "<span>%zu to %zu of %zu</span>", slice->from + 1, slice->to, slice->total);
    if (slice->to < slice->total)
        link_to(request, path, number + 1, "Next");
    as_buf_append_str(out, "</nav>\n");
}

/* --- decisions in words --- */

void page_print_change(struct as_buf *out, const char *unit, int32_t from, int32_t to)
{
    char before[AS_SIZE_TEXT_SIZE], after[AS_SIZE_TEXT_SIZE];
    as_buf_printf(out, "%s \u2192 %s", as_unit_print_size(unit, from, before),
                  as_unit_print_size(unit, to, after));
}

void page_print_outcome(struct as_buf *out, const struct kept_decision *decision)
{
    char text[AS_SIZE_TEXT_SIZE];
    if (decision->desired != decision->replicas) {
        as_buf_append_str(out, "<b>");
        page_print_change(out, decision->unit, decision->replicas, decision->desired);
        as_buf_append_str(out, "</b>");
    } else {
        as_buf_printf(out, "stays at %s",
                      as_unit_print_size(decision->unit, decision->desired, text));
    }
    if (decision->has_would)
        as_buf_printf(out, ", would be %s",
                      as_unit_print_size(decision->unit, decision->would, text));
}

void page_print_decisions(const struct api_request *request, const char *target,
                          const struct kept_decision_list *older, page_decision_fn *is_wanted,
                          const void *context, size_t limit)
{
    static const struct html_column columns[] = {
        {.title = "When"}, {.title = "Target"}, {.title = "Size"}, {.title = "Why"}};
    static const struct html_column own_columns[] = {
        {.title = "When"}, {.title = "Size"}, {.title = "Why"}};
    struct as_buf *out = page_get_out(request);
    const struct kept_decision *decision = TAILQ_FIRST(&request->api->decisions);
    struct html_table table;
    size_t count = 0;
    bool is_older = false;
    for (;; decision = TAILQ_NEXT(decision, next)) {
        if (!decision && older && !is_older) {
            is_older = true;
            decision = TAILQ_FIRST(older);
        }
        if (!decision)
            break;
        if ((target && !as_target_is_same(target, decision->target)) ||
            (is_wanted && !is_wanted(context, decision)) ||
            !page_may_see_target(request, decision->target_name, decision->target))
            continue;
        if (count++ == limit)
            break;
        if (count == 1)
            html_table_begin(&table, out, "Decisions", target ? own_columns : columns,
                             target ? AS_ARRAY_SIZE(own_columns) : AS_ARRAY_SIZE(columns));
        html_row_begin(&table);
        html_cell(&table);
        as_buf_printf(out, "<a href=\"%s/decisions/%s\">", page_root(request), decision->id);
        page_print_time(request, decision->at);
        as_buf_append_str(out, "</a>");
        if (!target) {
            html_cell(&table);
            page_link_target(request, out, decision->target, decision->target_name);
        }
        html_cell(&table);
        page_print_outcome(out, decision);
        html_cell(&table);
        page_print_reason(out, page_get_reason(decision->reason, decision->failure));
        if (decision->rule) {
            as_buf_append_str(out, " Rule ");
            page_link_rule(request, out, decision->rule);
        }
        html_row_end(&table);
    }
    if (count > 0)
        html_table_end(&table);
    else
        html_element(out, "p", "dim",
                     target && is_wanted ? "No decision fits."
                                         : "No decision since this replica began to lead.");
}

/*
 * The results of operator commands. The program that reads the forms is forms.c.
 */

#define RESULT_MAX ((size_t)600) /* bytes of a result's text */
#define SEALED_MAX ((size_t)64 * 1024)

static const char *const result_names[] = {[false] = PAGE_REFUSED, [true] = "done"};

/* The seal covers what the page says, whether it was done, and what the page fills into a form. */
static void print_sealed(struct as_buf *out, const char *name, const char *text, const char *form,
                         const char *field, const char *typed)
{
    as_buf_printf(out, "%s:%s\n%s\n%s\n%s", name, text, form ? form : "", field ? field : "",
                  typed ? typed : "");
}

void page_append_result(const struct as_http_exchange *exchange, bool is_done, const char *text,
                        const struct page_refused *refused, struct as_buf *url)
{
    char line[RESULT_MAX], seal[AS_FORM_TOKEN_SIZE];
    AS_CLEANUP(as_buf_deinit) struct as_buf sealed = AS_BUF_INIT(SEALED_MAX);
    as_str_copy_line(text, line, sizeof(line));
    print_sealed(&sealed, result_names[is_done], line, refused->form, refused->field,
                 refused->typed);
    as_auth_seal(exchange, sealed.data, seal);
    as_buf_append_char(url, '?');
    html_query(url, result_names[is_done], line);
    if (refused->form)
        html_query(url, "form", refused->form);
    if (refused->field)
        html_query(url, "field", refused->field);
    if (refused->typed)
        html_query(url, "typed", refused->typed);
    as_buf_printf(url, "seal=%s", seal);
}

/* What was typed into a form that was refused goes into the form again. */
static void keep_typed(struct api_request *request)
{
    const char *typed = api_parameter_find(request, "typed");
    request->refused_form = api_parameter_find(request, "form");
    request->refused_field = api_parameter_find(request, "field");
    if (typed && evhttp_parse_query_str(typed, &request->typed) != 0)
        TAILQ_INIT(&request->typed);
}

static void page_print_result(struct api_request *request)
{
    struct as_buf *out = page_get_out(request);
    for (size_t i = 0; i < AS_ARRAY_SIZE(result_names); i++) {
        const char *text = api_parameter_find(request, result_names[i]);
        AS_CLEANUP(as_buf_deinit) struct as_buf sealed = AS_BUF_INIT(SEALED_MAX);
        if (!text)
            continue;
        print_sealed(&sealed, result_names[i], text, api_parameter_find(request, "form"),
                     api_parameter_find(request, "field"), api_parameter_find(request, "typed"));
        if (as_buf_check(&sealed) != 0 || !as_auth_check_seal(request->exchange, sealed.data,
                                                              api_parameter_find(request, "seal")))
            continue; /* somebody else wrote it */
        as_buf_printf(out, "<p class=\"note %s\" role=\"status\">", i ? "good" : "bad");
        html_text(out, text);
        as_buf_append_str(out, "</p>\n");
        if (!i)
            keep_typed(request);
    }
}

/*
 * The version of a page. It says what the page
 * was made of, and until when it holds: then a lock on it ends, or its chart has moved. So an
 * unchanged page is recognized without printing it. Nothing of a version is trusted: a wrong one
 * costs its sender a page that is not current.
 */

#define PAGE_VERSION_SIZE 48

#define STATE_MAX  ((size_t)16 * 1024)
#define STATE_SIZE 17 /* in a version, with NUL */

/* The digest of all that pages are made of, for this reader. */
static void page_print_state(const struct api_request *request, char state_out[STATE_SIZE])
{
    const struct as_view *view = &request->view;
    unsigned char digest[SHA256_DIGEST_LENGTH];
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(STATE_MAX);
    as_buf_printf(&text, "%" PRId64 " %" PRIu64 " %" PRIu64 " %d %d %d %d %d\n", view->started.us,
                  view->changes, as_query_checks_count_changes(view->query_checks),
                  view->engine != NULL, view->dry_run, view->leader.is_leader,
                  as_auth_has_session(request->exchange), as_auth_may_order(request->exchange));
    const char *const texts[] = {view->config_digest, view->not_ready, view->leader.holder,
                                 view->leader.problem, request->who};
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        as_buf_printf(&text, "%s\n", texts[i] ? texts[i] : "");
    SHA256((const unsigned char *)text.data, text.size, digest);
    for (size_t i = 0; i < STATE_SIZE / 2; i++)
        (void)snprintf(state_out + 2 * i, 3, "%02x", digest[i]);
}

static void page_print_version(const struct api_request *request,
                               char version_out[PAGE_VERSION_SIZE])
{
    char state[STATE_SIZE];
    page_print_state(request, state);
    (void)snprintf(version_out, PAGE_VERSION_SIZE, "%s-%" PRIx64, state,
                   (uint64_t)request->api->shown_until.us);
}

static bool has_present_version(const struct api_request *request)
{
    const char *version = api_parameter_find(request, PAGE_SINCE);
    uint64_t until = 0;
    char state[STATE_SIZE];
    if (!version || strlen(version) <= STATE_SIZE || version[STATE_SIZE - 1] != '-' ||
        as_number_parse_u64_hex(version + STATE_SIZE, strlen(version) - STATE_SIZE, &until) != 0 ||
        until <= (uint64_t)request->view.wall.us)
        return false;
    page_print_state(request, state);
    return strncmp(version, state, STATE_SIZE - 1) == 0;
}

bool page_answer_unchanged(struct api_request *request)
{
    char headers[128];
    if (!has_present_version(request))
        return false;
    (void)snprintf(headers, sizeof(headers), AS_REPLY_NO_STORE "ETag: \"%s\"\r\n",
                   api_parameter_find(request, PAGE_SINCE));
    api_reply_body(request, 304, NULL, headers);
    return true;
}

/*
 * What surrounds a page: head, menu, what concerns all targets, foot.
 */

#define PAGE_TYPE     "text/html; charset=utf-8"
#define HEADERS_MAX   ((size_t)1024)
#define SENTENCE_SIZE 1024
#define REFRESH_S     15
#define SHOWN_MAX_US  (30 * AS_US_PER_S) /* then a page is printed anew */
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
        {PAGE_EVENTS, "/events", "Events"},
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
    else if (as_str_starts_with(request->who, AS_SCOPE_PROXIED)) /* the proxy signs off */
        html_element(page_get_out(request), "span", "where", request->who);
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

/* The query string cannot be read: the page is as without it. */
static bool has_wrong_query(const struct api_request *request)
{
    return request->note && request->note->status == 400;
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

static void page_print_notes(const struct api_request *request)
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
    request->document = head->document ? head->document : "page.md";
    request->api->shown_until.us =
        request->view.wall.us + (head->lasts_us > 0 ? head->lasts_us : SHOWN_MAX_US);
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
    if (!head->is_open)
        as_buf_printf(out, "<script src=\"%s" PAGE_SCRIPT_PATH "\" defer></script>\n",
                      page_root(request));
    style_print(out);
    as_buf_append_str(out, "</head>\n<body>\n");
    print_bar(request, head);
    as_buf_append_str(out, "<main>\n");
    html_element(out, "h1", NULL, head->title);
    as_buf_append_char(out, '\n');
    if (head->is_open)
        return;
    if (has_wrong_query(request)) {
        begin_note(out, "bad");
        html_text(out, request->note->text);
        as_buf_append_str(out, "</p>\n");
    }
    page_print_notes(request);
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
    as_buf_append_str(out, is_on ? "" : "<noscript>");
    html_link(out, url.data, "",
              is_on               ? "Stop refreshing"
              : request->has_form ? "Refresh every 15 seconds, without forms"
                                  : "Refresh every 15 seconds");
    as_buf_append_str(out, is_on ? "" : "</noscript>");
}

/* What the script needs, and where it says that the page is not current. */
static void print_live(const struct api_request *request)
{
    char version[PAGE_VERSION_SIZE];
    page_print_version(request, version);
    as_buf_printf(
        page_get_out(request),
        "<p id=\"live\" class=\"note bad\" aria-live=\"polite\" hidden data-version=\"%s\" "
        "data-now=\"%" PRId64 "\"></p>\n",
        version, request->view.wall.us / 1000);
}

#define DOCUMENTS "https://alertscaler.io/docs/" /* as in the alerts' runbook_url */

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
    page_print_distance(request, out, request->view.started);
    as_buf_append_str(out, "</span><span>Times are in <span id=\"zone\">UTC</span></span>");
    print_refresh(request);
    as_buf_append_str(out, "</p>\n<p>");
    for (size_t i = 0; i < AS_ARRAY_SIZE(documents); i++)
        page_link(request, out, documents[i][0], "", documents[i][1]);
    as_buf_append_str(out, " <span>as the API has them</span>");
    as_buf_printf(out, "<a rel=\"help\" href=\"" DOCUMENTS "%s\">Documentation</a></p></footer>\n",
                  request->document);
    print_live(request);
    as_buf_append_str(out, "</body></html>\n");
}

void page_end(struct api_request *request, int status)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf headers = AS_BUF_INIT(HEADERS_MAX);
    print_foot(request);
    as_buf_append_str(&headers,
                      status == 503 ? AS_REPLY_LATER AS_REPLY_NO_STORE : AS_REPLY_NO_STORE);
    if (!request->is_open) {
        char version[PAGE_VERSION_SIZE];
        page_print_version(request, version);
        as_buf_printf(&headers, "ETag: \"%s\"\r\n", version);
    }
    if (request->note && request->note->headers)
        as_buf_append_str(&headers, request->note->headers);
    style_print_policy(!request->is_open, &headers);
    api_reply_body(request, has_wrong_query(request) ? 400 : status, PAGE_TYPE, headers.data);
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
