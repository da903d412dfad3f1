/*
 * The table of targets: size, bounds and states in words, a small line of the size; its form and
 * its links. All targets are looked at once; only the rows of one page are printed. So a page of
 * 10,000 targets costs a pass and a sort.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/monitoring/query_checks.h>
#include <alertscaler/ui/chart.h>

#include "api_private.h"
#include "page.h"

/*
 * The line has a point for each pixel at most. It is lifted where the size is not known.
 */

#define WIDTH  120
#define HEIGHT 28
#define MARGIN 3

struct range {
    int32_t least, largest;
    bool is_known;
};

static struct range find_range(const struct as_timeline *line)
{
    struct range range = {.least = INT32_MAX};
    for (size_t i = 0; i < line->count; i++) {
        const int32_t size = line->points[i].size;
        if (size == AS_TIMELINE_UNKNOWN)
            continue;
        range.is_known = true;
        range.least = size < range.least ? size : range.least;
        range.largest = size > range.largest ? size : range.largest;
    }
    return range;
}

static int get_x(int64_t at, const struct page_range *shown)
{
    return (int)((at - shown->from.us) * WIDTH / (shown->to.us - shown->from.us));
}

static int get_y(int32_t size, const struct range *range)
{
    const int64_t span = (int64_t)range->largest - range->least;
    if (span == 0)
        return HEIGHT / 2;
    return HEIGHT - MARGIN - (int)((int64_t)(size - range->least) * (HEIGHT - 2 * MARGIN) / span);
}

static void page_draw(struct as_buf *out, const struct as_timeline *line,
                      const struct page_range *shown, const struct range *range)
{
    bool is_down = false;
    for (size_t i = 0; i < line->count; i++) {
        const struct as_timeline_point *point = &line->points[i];
        const int x = get_x(point->at, shown);
        if (i + 1 < line->count && get_x(line->points[i + 1].at, shown) == x)
            continue;
        if (point->size == AS_TIMELINE_UNKNOWN) {
            if (is_down)
                as_buf_printf(out, "H%d", x);
            is_down = false;
        } else {
            as_buf_printf(out, is_down ? "H%dV%d" : "M%d %d", x, get_y(point->size, range));
            is_down = true;
        }
    }
    if (is_down)
        as_buf_printf(out, "H%d", WIDTH);
}

/* A small picture of a target's size. */
static void page_print_spark(const struct api_request *request, const char *target,
                             const struct page_range *shown)
{
    struct as_buf *out = page_get_out(request);
    struct as_timeline line;
    as_history_trace(request->api->history, target, shown->from, shown->to, &line);
    const struct range range = find_range(&line);
    if (range.is_known) {
        as_buf_append_str(out, "<svg class=\"spark\" role=\"img\" viewBox=\"0 0 120 28\"");
        as_buf_printf(out, " aria-label=\"from %" PRId32 " to %" PRId32 " in the %s%s\">",
                      range.least, range.largest, shown->last ? "last " : "chosen time",
                      shown->last ? shown->last : "");
        as_buf_append_str(out, "<path d=\"");
        page_draw(out, &line, shown, &range);
        as_buf_append_str(out, "\"/></svg>");
    } else {
        html_element(out, "span", "dim", "not known");
    }
    as_timeline_deinit(&line);
}

#define TARGET_ROWS_SHOWN 100
#define SIGNS_SHOWN       3 /* in a row of the table */

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
    if (target->ready >= 0 && target->ready != target->replicas)
        as_buf_printf(out, "<small>, %s ready</small>",
                      as_unit_print_size(unit, target->ready, text));
    else if (target->status_replicas != target->replicas)
        as_buf_printf(out, "<small>, %s running</small>",
                      as_unit_print_size(unit, target->status_replicas, text));
}

void target_print_bounds(struct as_buf *out, const struct as_target_view *target)
{
    const char *unit = as_sized_get_unit(target->ref);
    char min[AS_SIZE_TEXT_SIZE], max[AS_SIZE_TEXT_SIZE];
    as_buf_printf(out, "%s to %s", as_unit_print_size(unit, target->bounds.min, min),
                  as_unit_print_size(unit, target->bounds.max, max));
}

static bool page_is_dry(const struct api_request *request, const struct as_target_view *target)
{
    return !request->view.dry_run && target->config && target->config->dry_run;
}

struct failing_search {
    const struct api_request *request;
    const struct as_target_view *target;
    bool is_found;
};

static void page_match_failing(void *context, const struct as_rule *rule, const char *error)
{
    struct failing_search *search = context;
    const struct as_target_config *config = rule->target;
    search->is_found =
        search->is_found ||
        (config == search->target->config &&
         page_may_see_rule(search->request, rule->name, search->target->name, search->target->id));
}

/* The server refuses a query of a rule that leads to the target. */
static bool page_has_failing_rule(const struct api_request *request,
                                  const struct as_target_view *target)
{
    struct failing_search search = {.request = request, .target = target};
    as_query_checks_visit_failing(request->view.query_checks, request->view.ruleset,
                                  page_match_failing, &search);
    return search.is_found;
}

static void note_missing_value(void *context, const struct as_rule_view *rule)
{
    struct failing_search *search = context;
    search->is_found =
        search->is_found || (as_moment_is_set(rule->missing_since) &&
                             page_may_see_rule(search->request, rule->rule->name,
                                               search->target->name, search->target->id));
}

/* A rule with an open incident needs a value that is not there. */
static bool page_lacks_value(const struct api_request *request, const struct as_target_view *target)
{
    struct failing_search search = {.request = request, .target = target};
    as_engine_visit_target_rules(request->view.engine, target->id, note_missing_value, &search);
    return search.is_found;
}

static bool is_at_max(const struct as_target_view *target)
{
    return target->config && target->has_size && target->replicas >= target->bounds.max;
}

static bool is_at_min(const struct as_target_view *target)
{
    return target->config && target->has_size && target->replicas <= target->bounds.min;
}

/* The states of a target in words, the most important ones first. A row has room for a few. */
struct signs {
    const struct api_request *request;
    const struct as_target_view *target;
    size_t shown, limit, left_out;
};

/* False: there is no room for it. */
static bool begin_sign(struct signs *signs, const char *class)
{
    if (signs->shown == signs->limit) {
        signs->left_out++;
        return false;
    }
    signs->shown++;
    as_buf_printf(page_get_out(signs->request), "<span class=\"pill %s\">", class);
    return true;
}

static void end_sign(const struct signs *signs)
{
    as_buf_append_str(page_get_out(signs->request), "</span> ");
}

static void print_sign(struct signs *signs, const char *class, const char *text)
{
    if (!begin_sign(signs, class))
        return;
    html_text(page_get_out(signs->request), text);
    end_sign(signs);
}

static void print_lock_sign(struct signs *signs, const char *way, struct as_moment until)
{
    const struct api_request *request = signs->request;
    if (!as_moment_is_set(until) || until.mono.us <= request->view.mono.us ||
        !begin_sign(signs, ""))
        return;
    as_buf_printf(page_get_out(request), "%s locked for ", way);
    page_print_distance(request, page_get_out(request), page_get_wall(request, until.mono));
    end_sign(signs);
}

/* "gives back 4 in 30 s" */
static void print_next_sign(void *context, const struct as_next_view *next)
{
    struct signs *signs = context;
    const struct api_request *request = signs->request;
    const struct as_target_view *target = signs->target;
    struct as_buf *out = page_get_out(request);
    char size[AS_SIZE_TEXT_SIZE];
    if (next->effect != AS_NEXT_GIVES_BACK ||
        !page_may_see_rule(request, next->rule, target->name, target->id) || !begin_sign(signs, ""))
        return;
    as_buf_append_str(out, "gives back ");
    if (next->amount > 0)
        as_buf_append_str(out,
                          as_unit_print_size(as_sized_get_unit(target->ref), next->amount, size));
    if (as_moment_is_set(next->from) && next->from.mono.us > request->view.mono.us) {
        as_buf_append_str(out, " in ");
        page_print_distance(request, out, page_get_wall(request, next->from.mono));
    }
    end_sign(signs);
}

static void note_block(void *context, const struct as_hold_view *hold)
{
    *(bool *)context = true;
}

static bool has_block(const struct api_request *request, const struct as_target_view *target)
{
    const struct as_view *view = &request->view;
    bool has = false;
    as_engine_visit_holds(view->engine, target->ref, view->mono, view->wall, note_block, &has);
    return has;
}

static void print_pause_sign(struct signs *signs)
{
    const struct as_pause_view *pause = &signs->target->pause;
    struct as_buf *out = page_get_out(signs->request);
    if (!begin_sign(signs, "warn"))
        return;
    as_buf_append_str(out, "paused");
    if (pause->ways != AS_WAYS_BOTH)
        as_buf_printf(out, " (%s)", as_ways_get_word(pause->ways));
    if (*pause->who) {
        as_buf_append_str(out, " by ");
        html_text(out, api_show_credential(signs->request, pause->who));
    }
    end_sign(signs);
}

static void print_states(struct signs *signs)
{
    const struct api_request *request = signs->request;
    const struct as_target_view *target = signs->target;
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    if (target->last_failure != AS_REASON_APPLIED)
        print_sign(signs, "bad",
                   target->last_failure == AS_REASON_UNREACHABLE
                       ? "not reachable"
                       : as_reason_get_word(target->last_failure));
    if (page_has_failing_rule(request, target))
        print_sign(signs, "bad", "query error");
    if (page_lacks_value(request, target))
        print_sign(signs, "bad", "no value");
    if (target->pause.is_set)
        print_pause_sign(signs);
    if (as_moment_is_set(target->contended_until))
        print_sign(signs, "warn", "contended");
    if (target->did_not_come)
        print_sign(signs, "bad", "increase did not come");
    if (!target->config)
        print_sign(signs, "warn", "no rule");
    if (is_at_max(target))
        print_sign(signs, "warn", "at max");
    if (target->has_order && begin_sign(signs, "warn")) {
        as_buf_printf(out, "set to %" PRId32 " by an operator", target->ordered);
        end_sign(signs);
    }
    if (has_block(request, target))
        print_sign(signs, "warn", "blocked");
    if (page_is_dry(request, target))
        print_sign(signs, "warn", "dry run");
    as_engine_visit_next(view->engine, target->ref, view->mono, view->wall, print_next_sign, signs);
    print_lock_sign(signs, "up", target->up_locked_until);
    print_lock_sign(signs, "down", target->down_locked_until);
    if (target->waits_for && begin_sign(signs, "")) {
        as_buf_append_str(out, "waits for ");
        html_text(out, api_show_target(request, target->waits_for));
        end_sign(signs);
    }
    if (is_at_min(target) && !is_at_max(target))
        print_sign(signs, "", "at min");
}

void target_print_signs(const struct api_request *request, const struct as_target_view *target,
                        size_t limit)
{
    struct as_buf *out = page_get_out(request);
    struct signs signs = {.request = request, .target = target, .limit = limit};
    if (target->open_incidents > 0) {
        as_buf_printf(out, "<a class=\"pill warn\" href=\"%s/targets/", page_root(request));
        as_encode_percent(out, target->id, strlen(target->id), "");
        as_buf_printf(out, "#incidents\">%zu firing</a> ", target->open_incidents);
    }
    print_states(&signs);
    if (signs.left_out > 0)
        as_buf_printf(out, "<small>+%zu</small>", signs.left_out);
}

/* --- which, and in what order --- */

static bool is_any(const struct as_target_view *target)
{
    return true;
}

static bool is_none(const struct as_target_view *target)
{
    return false;
}

static bool is_firing(const struct as_target_view *target)
{
    return target->open_incidents > 0;
}

static bool page_is_locked(const struct as_target_view *target)
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

typedef bool rule_state_fn(const struct api_request *request, const struct as_target_view *target);

static const struct state {
    const char *word, *title;
    bool (*has)(const struct as_target_view *target);
    rule_state_fn *has_rule; /* also targets of rules in this state; NULL: none */
} states[] = {
    {"", "all", is_any, NULL},
    {"firing", "firing", is_firing, NULL},
    {"locked", "locked", page_is_locked, NULL},
    {"paused", "paused", is_paused, NULL},
    {"failing", "failing", is_failing, page_has_failing_rule},
    {"no_value", "no value", is_none, page_lacks_value},
    {"at_max", "at max", is_at_max, NULL},
};

static const char *get_label(const struct as_target_view *target)
{
    return *target->name ? target->name : target->id;
}

static int page_compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_name(const struct as_target_view *a, const struct as_target_view *b)
{
    const int names = strcasecmp(get_label(a), get_label(b));
    return names ? names : strcmp(a->id, b->id);
}

static int64_t page_get_size(const struct as_target_view *target)
{
    return target->has_size ? target->replicas : -1;
}

static int by_size(const struct as_target_view *a, const struct as_target_view *b)
{
    return page_compare_numbers(page_get_size(a), page_get_size(b));
}

static int by_incidents(const struct as_target_view *a, const struct as_target_view *b)
{
    return page_compare_numbers((int64_t)a->open_incidents, (int64_t)b->open_incidents);
}

static int64_t get_decided(const struct as_target_view *target)
{
    return target->last_decision ? target->last_at.us : INT64_MIN;
}

static int by_decision(const struct as_target_view *a, const struct as_target_view *b)
{
    return page_compare_numbers(get_decided(a), get_decided(b));
}

struct wanted {
    struct api_request *request;
    const struct page_range *range;
    const char *text; /* NULL: any */
    const struct state *state;
    const struct sorting *sorting;
    bool is_descending;
    struct as_target_view *rows; /* valid until the engine's next step */
    size_t count, capacity;
};

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

static int page_compare(const void *left, const void *right, void *context)
{
    const struct wanted *wanted = context;
    const struct as_target_view *a = left, *b = right;
    const int order = wanted->sorting->compare(a, b);
    if (order == 0)
        return by_name(a, b);
    return wanted->is_descending ? -order : order;
}

static struct wanted read_wanted(struct api_request *request)
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

static void page_collect(void *context, const struct as_target_view *target)
{
    struct wanted *wanted = context;
    wanted->request->contended += as_moment_is_set(target->contended_until);
    const bool has_state =
        wanted->state->has(target) ||
        (wanted->state->has_rule && wanted->state->has_rule(wanted->request, target));
    if (!has_state ||
        (wanted->text && !strcasestr(target->name, wanted->text) &&
         !strcasestr(target->id, wanted->text)) ||
        !page_may_see_target(wanted->request, target->name, target->id))
        return;
    wanted->rows = as_xgrow(wanted->rows, wanted->count, &wanted->capacity, sizeof(*wanted->rows));
    wanted->rows[wanted->count++] = *target;
}

/* --- the form and the table --- */

static const char *const range_names[] = {PAGE_RANGE, "from", "to"};

static void print_hidden(struct as_buf *out, const char *name, const char *value)
{
    as_buf_printf(out, "<input type=\"hidden\" name=\"%s\"", name);
    html_attribute(out, "value", value);
    as_buf_append_char(out, '>');
}

static void target_rows_print_form(const struct wanted *wanted)
{
    struct as_buf *out = page_get_out(wanted->request);
    as_buf_printf(out,
                  "<form class=\"filter\" method=\"get\" action=\"%s/\">"
                  "<label>Name or id<input name=\"q\" type=\"search\"",
                  page_root(wanted->request));
    html_attribute(out, "value", wanted->text ? wanted->text : "");
    as_buf_append_str(out, "></label>");
    if (*wanted->state->word)
        print_hidden(out, "state", wanted->state->word);
    for (size_t i = 0; i < AS_ARRAY_SIZE(range_names); i++) {
        const char *value = api_parameter_find(wanted->request, range_names[i]);
        if (value)
            print_hidden(out, range_names[i], value);
    }
    as_buf_append_str(out, "<label>Order<select name=\"sort\">");
    for (size_t i = 0; i < AS_ARRAY_SIZE(sortings); i++)
        as_buf_printf(out, "<option%s>%s</option>",
                      &sortings[i] == wanted->sorting ? " selected" : "", sortings[i].word);
    as_buf_printf(out,
                  "</select></label><label>Direction<select name=\"order\">"
                  "<option value=\"asc\">up</option><option value=\"desc\"%s>down</option></select>"
                  "</label><button>Show</button></form>\n",
                  wanted->is_descending ? " selected" : "");
}

/* Each state is a link, which can be shared. */
static void print_state_links(const struct wanted *wanted)
{
    const struct api_request *request = wanted->request;
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<nav class=\"states\" aria-label=\"States\">");
    for (size_t i = 0; i < AS_ARRAY_SIZE(states); i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf url = AS_BUF_INIT(PAGE_URL_MAX);
        as_buf_printf(&url, "%s/?", page_root(request));
        page_append_query(request, "state", &url);
        if (as_buf_check(&url) != 0)
            continue;
        as_buf_append_str(out, "<a href=\"");
        html_text(out, url.data);
        as_buf_printf(out, "state=%s\"%s>%s</a>", states[i].word,
                      &states[i] == wanted->state ? " aria-current=\"true\"" : "", states[i].title);
    }
    as_buf_append_str(out, "</nav>\n");
}

static void page_print_row(struct html_table *table, const struct wanted *wanted,
                           const struct as_target_view *target)
{
    const struct api_request *request = wanted->request;
    struct as_buf *out = table->out;
    html_row_begin(table);
    html_cell(table);
    as_buf_append_str(out, "<span class=\"name\"");
    html_attribute(out, "title", target->id);
    as_buf_append_char(out, '>');
    page_link_target(request, out, target->id, target->name);
    as_buf_append_str(out, "</span>");
    html_cell(table);
    target_print_size(out, target);
    html_cell(table);
    if (target->config)
        target_print_bounds(out, target);
    html_cell(table);
    page_print_spark(request, target->id, wanted->range);
    html_cell(table);
    target_print_signs(request, target, SIGNS_SHOWN);
    html_cell(table);
    if (target->last_decision) {
        as_buf_printf(out, "<a href=\"%s/decisions/%s\">", page_root(request),
                      target->last_decision);
        page_print_ago(request, target->last_at);
        as_buf_append_str(out, "</a> ");
        const enum as_reason reason = page_get_reason(target->last_reason, target->last_failure);
        html_element(out, "code", NULL, as_reason_get_word(reason));
    }
    html_row_end(table);
}

#define COLUMNS 6

static void page_print_rows(struct wanted *wanted, const struct page_slice *slice)
{
    const char *last = wanted->range->last;
    AS_CLEANUP(as_free_p)
    char *title = last ? as_xasprintf("Last %s", last) : as_xstrdup("Chosen time");
    struct html_column columns[COLUMNS] = {
        {.title = "Target"}, {.title = "Size", .is_number = true},
        {.title = "Bounds"}, {.title = title},
        {.title = "State"},  {.title = "Last decision"},
    };
    struct as_buf urls[AS_ARRAY_SIZE(sortings)];
    struct html_table table;
    for (size_t i = 0; i < AS_ARRAY_SIZE(sortings); i++) {
        struct html_column *column = &columns[sortings[i].column];
        const bool is_sorted = &sortings[i] == wanted->sorting;
        urls[i] = AS_BUF_INIT(PAGE_URL_MAX);
        as_buf_printf(&urls[i], "%s/?", page_root(wanted->request));
        for (size_t k = 0; k < AS_ARRAY_SIZE(range_names); k++) {
            const char *value = api_parameter_find(wanted->request, range_names[k]);
            if (value)
                html_query(&urls[i], range_names[k], value);
        }
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
        page_print_row(&table, wanted, &wanted->rows[i]);
    html_table_end(&table);
    for (size_t i = 0; i < AS_ARRAY_SIZE(sortings); i++)
        as_buf_deinit(&urls[i]);
}

void target_rows_print(struct api_request *request, const struct page_range *range)
{
    const struct as_view *view = &request->view;
    struct wanted wanted = read_wanted(request);
    wanted.range = range;
    as_engine_visit_targets(view->engine, view->mono, view->wall, page_collect, &wanted);
    if (wanted.count > 1)
        qsort_r(wanted.rows, wanted.count, sizeof(*wanted.rows), page_compare, &wanted);
    const struct page_slice slice = page_slice_get(request, wanted.count, TARGET_ROWS_SHOWN);
    target_rows_print_form(&wanted);
    print_state_links(&wanted);
    page_range_print_links(request, range);
    if (wanted.count > 0)
        page_print_rows(&wanted, &slice);
    else
        html_element(page_get_out(request), "p", "dim",
                     wanted.text || wanted.state != &states[0]
                         ? "No target fits."
                         : "No target yet: one appears with the first alert that a rule binds to "
                           "it.");
    page_slice_print(request, &slice, "/");
    free(wanted.rows);
}
