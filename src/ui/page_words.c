/*
 * Times, sizes, reasons and pauses, in the words of people.
 */
#include <inttypes.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/unit.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/rules/external_url.h>

#include "api_names.h"
#include "page.h"

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
    if (pause->ways != AS_WAYS_BOTH)
        as_buf_printf(out, " (%s)", as_ways_get_word(pause->ways));
    if (*pause->who) {
        as_buf_append_str(out, " by ");
        html_text(out, api_show_credential(request, pause->who));
    }
    if (as_moment_is_set(pause->until)) {
        as_buf_append_str(out, " for another ");
        page_print_span(out, pause->until.mono.us - request->view.mono.us);
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
    while (i < ruleset->target_count && strcmp(ruleset->targets[i].name, name) != 0)
        i++;
    return i < ruleset->target_count && ruleset->targets[i].is_templated;
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
    page_link(request, out, "/rules?q=", rule, rule);
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

void page_append_query(const struct api_request *request, const char *without, struct as_buf *url)
{
    const struct evkeyval *parameter;
    TAILQ_FOREACH (parameter, &request->parameters, next) {
        if (strcmp(parameter->key, without) != 0 && strcmp(parameter->key, "page") != 0 &&
            as_str_is_visible(parameter->key, strlen(parameter->key)))
            html_query(url, parameter->key, parameter->value);
    }
}

/* --- decisions in words --- */

void page_print_change(struct as_buf *out, const char *unit, int32_t from, int32_t to)
{
    char before[AS_SIZE_TEXT_SIZE], after[AS_SIZE_TEXT_SIZE];
    as_buf_printf(out, "%s \u2192 %s", as_unit_print_size(unit, from, before),
                  as_unit_print_size(unit, to, after));
}

static void print_change(struct as_buf *out, const struct kept_decision *decision)
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

void page_print_decisions(const struct api_request *request, const char *target, size_t limit)
{
    static const struct html_column columns[] = {
        {.title = "When"}, {.title = "Target"}, {.title = "Size"}, {.title = "Why"}};
    static const struct html_column own_columns[] = {
        {.title = "When"}, {.title = "Size"}, {.title = "Why"}};
    struct as_buf *out = page_get_out(request);
    const struct kept_decision *decision;
    struct html_table table;
    size_t count = 0;
    TAILQ_FOREACH (decision, &request->api->decisions, next) {
        if ((target && !as_target_is_same(target, decision->target)) ||
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
        print_change(out, decision);
        html_cell(&table);
        page_print_reason(out, decision->reason);
        if (decision->rule) {
            as_buf_append_str(out, " Rule ");
            page_link_rule(request, out, decision->rule);
        }
        html_row_end(&table);
    }
    if (count > 0)
        html_table_end(&table);
    else
        html_element(out, "p", "dim", "No decision since this replica began to lead.");
}
