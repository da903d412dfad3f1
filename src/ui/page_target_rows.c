/*
 * All targets are looked at once; only the rows of one page are printed. So a page of 10,000
 * targets costs a pass and a sort.
 */
#include "page_target_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>

#include "page.h"

#define ROWS_SHOWN 100

void target_print_size(struct as_buf *out, const struct as_target_view *target)
{
    if (!target->has_size) {
        html_element(out, "span", "dim", "not known");
        return;
    }
    const char *unit = as_sized_get_unit(target->ref);
    char text[AS_SIZE_TEXT_SIZE];
    as_buf_printf(out, "<b>%s</b>", as_unit_print_size(unit, target->replicas, text));
    if (target->desired != target->replicas)
        as_buf_printf(out, " \u2192 <b>%s</b>", as_unit_print_size(unit, target->desired, text));
    if (target->status_replicas != target->replicas)
        as_buf_printf(out, " <small>%s there</small>",
                      as_unit_print_size(unit, target->status_replicas, text));
}

void target_print_bounds(struct as_buf *out, const struct as_target_view *target)
{
    const char *unit = as_sized_get_unit(target->ref);
    char min[AS_SIZE_TEXT_SIZE], max[AS_SIZE_TEXT_SIZE];
    as_buf_printf(out, "%s to %s", as_unit_print_size(unit, target->bounds.min, min),
                  as_unit_print_size(unit, target->bounds.max, max));
}

static void print_lock(const struct api_request *request, const char *what, struct as_moment until)
{
    struct as_buf *out = page_get_out(request);
    if (!as_moment_is_set(until) || until.mono.us <= request->view.mono.us)
        return;
    as_buf_printf(out, "<span class=\"pill\">%s locked for ", what);
    page_print_span(out, until.mono.us - request->view.mono.us);
    as_buf_append_str(out, "</span> ");
}

static bool is_dry(const struct api_request *request, const struct as_target_view *target)
{
    return !request->view.dry_run && target->config && target->config->dry_run;
}

void target_print_signs(const struct api_request *request, const struct as_target_view *target)
{
    struct as_buf *out = page_get_out(request);
    if (target->last_failure != AS_REASON_APPLIED)
        page_print_pill(out, "bad", as_reason_get_word(target->last_failure));
    if (target->open_incidents > 0)
        as_buf_printf(out, "<span class=\"pill warn\">%zu firing</span> ", target->open_incidents);
    if (target->pause.is_set)
        page_print_pill(out, "warn", "paused");
    if (as_moment_is_set(target->contended_until))
        page_print_pill(out, "warn", "contended");
    if (target->did_not_come)
        page_print_pill(out, "bad", "did not come");
    if (is_dry(request, target))
        page_print_pill(out, "warn", "dry run");
    if (!target->config)
        page_print_pill(out, "warn", "no rule");
    if (target->has_order)
        as_buf_printf(out, "<span class=\"pill warn\">ordered: %" PRId32 "</span> ",
                      target->ordered);
    print_lock(request, "up", target->up_locked_until);
    print_lock(request, "down", target->down_locked_until);
    if (target->waits_for) {
        as_buf_append_str(out, "<span class=\"pill\">waits for ");
        html_text(out, target->waits_for);
        as_buf_append_str(out, "</span> ");
    }
}

/* --- which, and in what order --- */

static bool is_any(const struct as_target_view *target)
{
    return true;
}

static bool is_firing(const struct as_target_view *target)
{
    return target->open_incidents > 0;
}

static bool is_locked(const struct as_target_view *target)
{
    return as_moment_is_set(target->up_locked_until) || as_moment_is_set(target->down_locked_until);
}

static bool is_paused(const struct as_target_view *target)
{
    return target->pause.is_set;
}

static bool is_failing(const struct as_target_view *target)
{
    return target->last_failure != AS_REASON_APPLIED;
}

static const struct state {
    const char *word, *title;
    bool (*has)(const struct as_target_view *target);
} states[] = {
    {"", "all", is_any},
    {"firing", "firing", is_firing},
    {"locked", "locked", is_locked},
    {"paused", "paused", is_paused},
    {"failing", "failing", is_failing},
};

static const char *get_label(const struct as_target_view *target)
{
    return *target->name ? target->name : target->id;
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_name(const struct as_target_view *a, const struct as_target_view *b)
{
    const int names = strcasecmp(get_label(a), get_label(b));
    return names ? names : strcmp(a->id, b->id);
}

static int64_t get_size(const struct as_target_view *target)
{
    return target->has_size ? target->replicas : -1;
}

static int by_size(const struct as_target_view *a, const struct as_target_view *b)
{
    return compare_numbers(get_size(a), get_size(b));
}

static int by_incidents(const struct as_target_view *a, const struct as_target_view *b)
{
    return compare_numbers((int64_t)a->open_incidents, (int64_t)b->open_incidents);
}

static int64_t get_decided(const struct as_target_view *target)
{
    return target->last_decision ? target->last_at.us : INT64_MIN;
}

static int by_decision(const struct as_target_view *a, const struct as_target_view *b)
{
    return compare_numbers(get_decided(a), get_decided(b));
}

static const struct sorting {
    const char *word;
    size_t column;
    int (*compare)(const struct as_target_view *a, const struct as_target_view *b);
} sortings[] = {
    {"name", 0, by_name},
    {"size", 1, by_size},
    {"incidents", 4, by_incidents},
    {"decided", 5, by_decision},
};

struct wanted {
    const struct api_request *request;
    const char *text; /* NULL: any */
    const struct state *state;
    const struct sorting *sorting;
    bool is_descending;
    struct as_target_view *rows; /* valid until the engine's next step */
    size_t count, capacity;
};

static struct wanted read_wanted(const struct api_request *request)
{
    const char *state = api_parameter_find(request, "state");
    const char *sort = api_parameter_find(request, "sort");
    struct wanted wanted = {
        .request = request,
        .text = api_parameter_find(request, "q"),
        .state = &states[0],
        .sorting = &sortings[0],
        .is_descending = as_str_equal(api_parameter_find(request, "order"), "desc"),
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(states); i++) {
        if (as_str_equal(state, states[i].word))
            wanted.state = &states[i];
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(sortings); i++) {
        if (as_str_equal(sort, sortings[i].word))
            wanted.sorting = &sortings[i];
    }
    return wanted;
}

static void collect(void *context, const struct as_target_view *target)
{
    struct wanted *wanted = context;
    if (!wanted->state->has(target) ||
        (wanted->text && !strcasestr(target->name, wanted->text) &&
         !strcasestr(target->id, wanted->text)) ||
        !page_may_see_target(wanted->request, target->name, target->id))
        return;
    wanted->rows = as_xgrow(wanted->rows, wanted->count, &wanted->capacity, sizeof(*wanted->rows));
    wanted->rows[wanted->count++] = *target;
}

static int compare(const void *left, const void *right, void *context)
{
    const struct wanted *wanted = context;
    const struct as_target_view *a = left, *b = right;
    const int order = wanted->sorting->compare(a, b);
    if (order == 0)
        return by_name(a, b);
    return wanted->is_descending ? -order : order;
}

/* --- the form and the table --- */

static void print_form(const struct wanted *wanted)
{
    struct as_buf *out = page_get_out(wanted->request);
    as_buf_printf(out,
                  "<form class=\"filter\" method=\"get\" action=\"%s/\">"
                  "<label>Name or id<input name=\"q\" type=\"search\"",
                  page_root(wanted->request));
    html_attribute(out, "value", wanted->text ? wanted->text : "");
    as_buf_append_str(out, "></label><label>State<select name=\"state\">");
    for (size_t i = 0; i < AS_ARRAY_SIZE(states); i++)
        as_buf_printf(out, "<option value=\"%s\"%s>%s</option>", states[i].word,
                      &states[i] == wanted->state ? " selected" : "", states[i].title);
    as_buf_append_str(out, "</select></label><label>Order<select name=\"sort\">");
    for (size_t i = 0; i < AS_ARRAY_SIZE(sortings); i++)
        as_buf_printf(out, "<option%s>%s</option>",
                      &sortings[i] == wanted->sorting ? " selected" : "", sortings[i].word);
    as_buf_printf(out,
                  "</select></label><label>Direction<select name=\"order\">"
                  "<option value=\"asc\">up</option><option value=\"desc\"%s>down</option></select>"
                  "</label><button>Show</button></form>\n",
                  wanted->is_descending ? " selected" : "");
}

static void print_row(struct html_table *table, const struct api_request *request,
                      const struct as_target_view *target)
{
    struct as_buf *out = table->out;
    html_row_begin(table);
    html_cell(table);
    page_link_target(request, out, target->id, target->name);
    as_buf_append_str(out, "<br>");
    html_element(out, "span", "id", target->id);
    html_cell(table);
    target_print_size(out, target);
    html_cell(table);
    if (target->config)
        target_print_bounds(out, target);
    html_cell(table);
    page_print_spark(request, target->id);
    html_cell(table);
    target_print_signs(request, target);
    html_cell(table);
    if (target->last_decision) {
        as_buf_printf(out, "<a href=\"%s/decisions/%s\">", page_root(request),
                      target->last_decision);
        page_print_ago(request, target->last_at);
        as_buf_append_str(out, "</a> ");
        html_element(out, "code", NULL, as_reason_get_word(target->last_reason));
    }
    html_row_end(table);
}

#define COLUMNS 6

static void print_rows(struct wanted *wanted, const struct page_slice *slice)
{
    struct html_column columns[COLUMNS] = {
        {.title = "Target"}, {.title = "Size", .is_number = true},
        {.title = "Bounds"}, {.title = "Last hour"},
        {.title = "Now"},    {.title = "Last decision"},
    };
    struct as_buf urls[AS_ARRAY_SIZE(sortings)];
    struct html_table table;
    for (size_t i = 0; i < AS_ARRAY_SIZE(sortings); i++) {
        struct html_column *column = &columns[sortings[i].column];
        const bool is_sorted = &sortings[i] == wanted->sorting;
        urls[i] = AS_BUF_INIT(PAGE_URL_MAX);
        as_buf_printf(&urls[i], "%s/?", page_root(wanted->request));
        if (wanted->text)
            html_query(&urls[i], "q", wanted->text);
        html_query(&urls[i], "state", wanted->state->word);
        html_query(&urls[i], "sort", sortings[i].word);
        as_buf_append_str(&urls[i],
                          is_sorted && !wanted->is_descending ? "order=desc" : "order=asc");
        column->href = as_buf_check(&urls[i]) == 0 ? urls[i].data : NULL;
        column->sorted = !is_sorted              ? HTML_UNSORTED
                         : wanted->is_descending ? HTML_DESCENDING
                                                 : HTML_ASCENDING;
    }
    html_table_begin(&table, page_get_out(wanted->request), "Targets", columns, COLUMNS);
    for (size_t i = slice->from; i < slice->to; i++)
        print_row(&table, wanted->request, &wanted->rows[i]);
    html_table_end(&table);
    for (size_t i = 0; i < AS_ARRAY_SIZE(sortings); i++)
        as_buf_deinit(&urls[i]);
}

void target_rows_print(struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct wanted wanted = read_wanted(request);
    as_engine_visit_targets(view->engine, view->mono, view->wall, collect, &wanted);
    if (wanted.count > 1)
        qsort_r(wanted.rows, wanted.count, sizeof(*wanted.rows), compare, &wanted);
    const struct page_slice slice = page_slice_get(request, wanted.count, ROWS_SHOWN);
    print_form(&wanted);
    if (wanted.count > 0)
        print_rows(&wanted, &slice);
    else
        html_element(page_get_out(request), "p", "dim",
                     wanted.text || wanted.state != &states[0]
                         ? "No target fits."
                         : "No target yet: one appears with the first alert that a rule binds to "
                           "it.");
    page_slice_print(request, &slice, "/");
    free(wanted.rows);
}
