/*
 * The first page and the page of incidents: how this replica is, all targets, open incidents,
 * requests for approvals, the latest decisions. The rows of approvals are for the page of a target
 * too.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/log/log_index.h>
#include <alertscaler/monitoring/query_checks.h>

#include "api_private.h"
#include "page.h"
#include "page_log.h"

/*
 * Changes that wait for a person, and the forms that answer them. Who may see the rule and the
 * target sees what it asks; who may order the target has the forms.
 */

#define ROWS_SHOWN 50
#define TITLE_MAX  ((size_t)1024)
#define BACK_MAX   ((size_t)4096)

struct rows {
    const struct api_request *request;
    const char *target; /* id; NULL: of all */
    size_t count;       /* that the reader may see */
    bool has_form;
};

static bool is_shown(const struct rows *rows, const struct as_approval_view *view)
{
    const enum as_approval_answer answer = view->state.answer;
    return (answer == AS_APPROVAL_WAITING || answer == AS_APPROVAL_APPROVED) &&
           (!rows->target || strcmp(rows->target, view->target) == 0) &&
           page_may_see_rule(rows->request, view->state.rule, view->name, view->target);
}

static bool has_form(const struct rows *rows, const struct as_approval_view *view)
{
    return page_has_orders(rows->request,
                           &(struct as_target_view){.id = view->target, .name = view->name});
}

static void print_sentence(const struct api_request *request, const struct as_approval_view *view)
{
    struct as_buf *out = page_get_out(request);
    const struct as_approval_state *state = &view->state;
    as_buf_append_str(out, "<p>");
    page_link_target(request, out, view->target, view->name);
    as_buf_append_str(out, ": ");
    page_link_rule(request, out, state->rule);
    as_buf_append_str(out, " wants ");
    page_print_change(out, view->unit, state->from, state->to);
    as_buf_append_str(out, ". Asked ");
    page_print_ago(request, state->asked.wall);
    if (state->answer == AS_APPROVAL_APPROVED) {
        as_buf_append_str(out, ", approved");
        if (*state->who) {
            as_buf_append_str(out, " by ");
            html_text(out, api_show_credential(request, state->who));
        }
        as_buf_append_str(out, ". It can be used for another ");
    } else {
        as_buf_append_str(out, ". It waits for another ");
    }
    page_print_distance(request, out, view->until);
    as_buf_append_str(out, ". ");
    page_link(request, out, "/decisions/", state->decision, "Why");
    as_buf_append_str(out, "</p>\n");
}

/* The title says what is answered: a page may have several. Its answer leads back to this page. */
static void print_form(const struct rows *rows, const struct as_approval_view *view,
                       const char *word, const char *verb)
{
    const struct api_request *request = rows->request;
    const struct as_approval_state *state = &view->state;
    AS_CLEANUP(as_buf_deinit) struct as_buf back = AS_BUF_INIT(BACK_MAX);
    char from[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];
    AS_CLEANUP(as_free_p) char *place = as_xasprintf("/approvals/%s", state->id);
    AS_CLEANUP(as_buf_deinit) struct as_buf title = AS_BUF_INIT(TITLE_MAX);
    as_buf_printf(&title, "%s %.200s: %s \u2192 %s", verb, *view->name ? view->name : view->target,
                  as_unit_print_size(view->unit, state->from, from),
                  as_unit_print_size(view->unit, state->to, to));
    if (rows->target) {
        as_buf_append_str(&back, "<input type=\"hidden\" name=\"to\" value=\"/targets/");
        as_encode_percent(&back, rows->target, strlen(rows->target), "");
        as_buf_append_str(&back, "\">\n");
    }
    page_print_order(
        request,
        &(struct page_order){.place = place,
                             .word = word,
                             .title = as_buf_check(&title) == 0 ? title.data : verb,
                             .fields = back.size > 0 && as_buf_check(&back) == 0 ? back.data : ""});
}

static void count_row(void *context, const struct as_approval_view *view)
{
    struct rows *rows = context;
    if (!is_shown(rows, view))
        return;
    rows->count++;
    rows->has_form = rows->has_form || has_form(rows, view);
}

static void approval_rows_print_row(void *context, const struct as_approval_view *view)
{
    struct rows *rows = context;
    struct as_buf *out = page_get_out(rows->request);
    const bool is_waiting = view->state.answer == AS_APPROVAL_WAITING;
    if (!is_shown(rows, view) || rows->count++ >= ROWS_SHOWN)
        return;
    as_buf_append_str(out, "<div class=\"note warn\">\n");
    print_sentence(rows->request, view);
    if (has_form(rows, view)) {
        if (is_waiting)
            print_form(rows, view, "approve", "Approve");
        print_form(rows, view, "deny", is_waiting ? "Deny" : "Take back");
    }
    as_buf_append_str(out, "</div>\n");
}

static struct rows approval_rows_count(const struct api_request *request, const char *target)
{
    const struct as_view *view = &request->view;
    struct rows rows = {.request = request, .target = target};
    if (view->engine)
        as_engine_visit_approvals(view->engine, view->mono, view->wall, count_row, &rows);
    return rows;
}

void page_print_approvals(const struct api_request *request, const struct as_target_view *target)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    const char *id = target ? target->id : NULL;
    struct rows rows = {.request = request, .target = id};
    const size_t count = approval_rows_count(request, id).count;
    if (count == 0)
        return;
    page_part(request, "Waiting for a person");
    as_engine_visit_approvals(view->engine, view->mono, view->wall, approval_rows_print_row, &rows);
    if (count > ROWS_SHOWN)
        as_buf_printf(out, "<p>And %zu more: each is on the page of its target.</p>\n",
                      count - ROWS_SHOWN);
}

/*
 * The table of open incidents, the newest first. One pass over the engine's incidents finds the
 * order. Then the rows of the page are printed, each into a text of its own.
 */

#define INCIDENT_ROWS_SHOWN 50
#define ROW_BYTES_MAX       ((size_t)64 * 1024)
#define LABELS_SHOWN        12
#define VALUE_SHOWN         160 /* bytes of a label's value */
#define TARGETS_SHOWN       5

struct place {
    int64_t opened;
    size_t number; /* in the engine's order */
    const struct as_incident_state *state;
};

struct listing {
    struct api_request *request;
    const char *target; /* id; NULL: of all */
    const char *rule;   /* its name; NULL: of all */
    struct place *places;
    size_t count, capacity;
    bool sees_all; /* the asking credential */
    bool is_old;   /* of records: an id may have another spelling */
    struct page_slice slice;
};

static const char *page_home_find_name(const struct api_request *request, const char *target)
{
    return as_engine_find_name(request->view.engine, target);
}

static bool may_see(const struct listing *listing, const struct as_incident_target *targets,
                    size_t count)
{
    return listing->sees_all || page_may_see_incident(listing->request, targets, count);
}

/* A comparison of spellings takes microseconds: too long for each of many open incidents. */
static bool is_of_target(const struct listing *listing, const char *id)
{
    return strcmp(listing->target, id) == 0 ||
           (listing->is_old && as_target_is_same(listing->target, id));
}

static bool page_home_lists(const struct listing *listing, const struct as_incident_target *targets,
                            size_t count)
{
    bool is_wanted = !listing->target && !listing->rule;
    for (size_t i = 0; i < count && !is_wanted; i++)
        is_wanted = (!listing->target || is_of_target(listing, targets[i].target)) &&
                    (!listing->rule || strcmp(listing->rule, targets[i].rule) == 0);
    return is_wanted && may_see(listing, targets, count);
}

static void page_home_find_place(void *context, const struct as_incident_state *state,
                                 const struct as_incident_target *targets, size_t count)
{
    struct listing *listing = context;
    if (!state->is_open || !page_home_lists(listing, targets, count))
        return;
    listing->places =
        as_xgrow(listing->places, listing->count, &listing->capacity, sizeof(*listing->places));
    listing->places[listing->count] = (struct place){state->opened.wall.us, listing->count, state};
    listing->count++;
}

static int page_home_compare_places(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    if (a->opened != b->opened)
        return a->opened > b->opened ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

static void print_cut(struct as_buf *out, const char *text)
{
    const size_t size = strlen(text);
    const size_t shown = as_str_cut_utf8(text, size, VALUE_SHOWN);
    AS_CLEANUP(as_free_p) char *start = as_xstrndup(text, shown);
    html_text(out, start);
    as_buf_append_str(out, shown < size ? "..." : "");
}

static void print_labels(struct as_buf *out, const struct as_labels *labels)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; labels && i < labels->count; i++) {
        if (strcmp(labels->items[i].name, "alertname") == 0)
            continue;
        if (shown++ == LABELS_SHOWN) {
            as_buf_printf(out, " <span class=\"dim\">and %u more</span>",
                          (unsigned)(labels->count - i));
            break;
        }
        as_buf_append_str(out, "<code>");
        html_text(out, labels->items[i].name);
        as_buf_append_str(out, "=");
        print_cut(out, labels->items[i].value);
        as_buf_append_str(out, "</code> ");
    }
}

/* What Prometheus' users write for people, and a link to what is to be done. */
static void print_annotations(struct as_buf *out, const struct as_labels *annotations)
{
    static const char *const texts[] = {"summary", "description"};
    static const char *const links[][2] = {{"runbook_url", "runbook"},
                                           {"dashboard_url", "dashboard"}};
    for (size_t i = 0; annotations && i < AS_ARRAY_SIZE(texts); i++) {
        const char *text = as_labels_find(annotations, texts[i]);
        if (!text)
            continue;
        html_element(out, "p", NULL, text);
        break;
    }
    for (size_t i = 0; annotations && i < AS_ARRAY_SIZE(links); i++) {
        const char *url = as_labels_find(annotations, links[i][0]);
        if (!url)
            continue;
        as_buf_append_str(out, "<p>");
        html_outside_link(out, url, links[i][1]);
        as_buf_append_str(out, "</p>");
    }
}

static void page_home_print_targets(const struct api_request *request, struct as_buf *out,
                                    const struct as_incident_target *targets, size_t count)
{
    size_t shown = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = page_home_find_name(request, targets[i].target);
        if (!page_may_see_rule(request, targets[i].rule, name, targets[i].target))
            continue;
        if (shown++ >= TARGETS_SHOWN)
            continue;
        as_buf_append_str(out, "<p>");
        page_link_target(request, out, targets[i].target, name);
        as_buf_append_str(out, " by ");
        page_link_rule(request, out, targets[i].rule);
        as_buf_append_str(out, "</p>");
    }
    if (shown > TARGETS_SHOWN)
        as_buf_printf(out, "<p class=\"dim\">and %zu more</p>", shown - TARGETS_SHOWN);
}

static const struct html_column columns[] = {
    {.title = "Alert"}, {.title = "Open for"}, {.title = "Last report"}, {.title = "Targets"}};
static const struct html_column ended_columns[] = {
    {.title = "Alert"}, {.title = "Was open for"}, {.title = "Ended"}, {.title = "Targets"}};

static void incident_rows_print_row(void *context, const struct as_incident_state *state,
                                    const struct as_incident_target *targets, size_t count)
{
    const struct listing *listing = context;
    const struct api_request *request = listing->request;
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT_OPEN(ROW_BYTES_MAX);
    struct as_buf *row = &buf, *out = page_get_out(request);
    struct html_table table = {.out = row, .columns = columns, .count = AS_ARRAY_SIZE(columns)};
    html_row_begin(&table);
    html_cell(&table);
    page_link_incident(request, row, &state->key.digest, state->labels);
    as_buf_append_char(row, ' ');
    if (as_moment_is_set(state->silenced))
        page_print_pill(row, "warn", "silenced");
    print_labels(row, state->labels);
    print_annotations(row, state->annotations);
    html_cell(&table);
    page_print_distance(request, row, state->opened.wall);
    html_cell(&table);
    page_print_distance(request, row, state->seen.wall);
    as_buf_append_str(row, " ago");
    html_cell(&table);
    page_home_print_targets(request, row, targets, count);
    html_row_end(&table);
    if (as_buf_check(row) == 0)
        as_buf_append(out, row->data, row->size);
    else
        as_buf_append_str(out, "<tr role=\"row\"><td role=\"cell\">An incident with very long "
                               "texts: the API has it.</td></tr>");
}

static void page_home_print_rows(struct listing *listing)
{
    struct as_buf *out = page_get_out(listing->request);
    struct html_table table;
    html_table_begin(&table, out, "Open incidents", columns, AS_ARRAY_SIZE(columns));
    for (size_t i = listing->slice.from; i < listing->slice.to; i++)
        as_engine_visit_incident(listing->request->view.engine, listing->places[i].state,
                                 incident_rows_print_row, listing);
    html_table_end(&table);
}

/* Of those that the asking credential may see, prints `size` rows, and returns how many there are.
 * `path`: of the page, which then has links to the other rows; NULL: the first rows only. The
 * engine must be there. */
static size_t incident_rows_print(struct api_request *request, const char *target, const char *rule,
                                  size_t size, const char *path)
{
    const struct as_view *view = &request->view;
    struct listing listing = {
        .request = request,
        .target = target,
        .rule = rule,
        .sees_all = as_scope_is_whole(view->scopes, view->scope_count, request->who),
    };
    as_engine_visit_incidents(view->engine, page_home_find_place, &listing);
    if (listing.count > 1)
        qsort(listing.places, listing.count, sizeof(*listing.places), page_home_compare_places);
    listing.slice = path ? page_slice_get(request, listing.count, size)
                         : (struct page_slice){.to = listing.count < size ? listing.count : size};
    if (listing.count > 0)
        page_home_print_rows(&listing);
    else
        html_element(page_get_out(request), "p", "dim", "No alert that a rule matches is firing.");
    if (path)
        page_slice_print(request, &listing.slice, path);
    free(listing.places);
    return listing.count;
}

/* A row, and the table before the first one. */
static void print_ended_row(const struct api_request *request, struct html_table *table,
                            const struct ended_incident *ended, bool is_first, bool is_of_log)
{
    struct as_buf *out = page_get_out(request);
    if (is_first)
        html_table_begin(table, out, "Ended incidents", ended_columns,
                         AS_ARRAY_SIZE(ended_columns));
    html_row_begin(table);
    html_cell(table);
    if (is_of_log)
        page_link_ended(request, out, ended);
    else
        page_link_incident(request, out, &ended->digest, ended->labels);
    as_buf_append_char(out, ' ');
    print_labels(out, ended->labels);
    html_cell(table);
    page_print_span(out, ended->at.us - ended->opened.us);
    html_cell(table);
    page_print_time(request, ended->at);
    html_cell(table);
    page_home_print_targets(request, out, ended->targets, ended->target_count);
    html_row_end(table);
}

/* Incidents that have ended: what the process remembers of them. */
static void print_ended(struct api_request *request, const char *target, const char *rule)
{
    const struct as_view *view = &request->view;
    const struct listing listing = {
        .request = request,
        .target = target,
        .rule = rule,
        .sees_all = as_scope_is_whole(view->scopes, view->scope_count, request->who),
        .is_old = true,
    };
    const struct ended_incident *ended;
    struct html_table table;
    size_t count = 0;
    TAILQ_FOREACH (ended, &request->api->ended, next) {
        if (!page_home_lists(&listing, ended->targets, ended->target_count) ||
            count == INCIDENT_ROWS_SHOWN)
            continue;
        if (count == 0)
            page_part(request, "Ended incidents");
        print_ended_row(request, &table, ended, count++ == 0, false);
    }
    if (count > 0)
        html_table_end(&table);
}

static void print_incidents_of(struct api_request *request, const char *target, const char *rule)
{
    as_buf_append_str(page_get_out(request), "<h2 id=\"incidents\">Open incidents</h2>\n");
    if (incident_rows_print(request, target, rule, INCIDENT_ROWS_SHOWN, NULL) >
        INCIDENT_ROWS_SHOWN) {
        as_buf_append_str(page_get_out(request), "<p>");
        page_link(request, page_get_out(request), "/incidents", "", "All open incidents");
        as_buf_append_str(page_get_out(request), "</p>\n");
    }
    print_ended(request, target, rule);
}

void page_print_incidents(struct api_request *request, const char *target)
{
    print_incidents_of(request, target, NULL);
}

void page_print_incidents_of_rule(struct api_request *request, const char *rule)
{
    print_incidents_of(request, NULL, rule);
}

/*
 * Incidents that have ended in a time range. Memory has those since the start; the action log has
 * all.
 */

static bool is_end_of_incident(const struct as_log_row *row)
{
    return as_str_equal(row->reason, as_incident_event_get_word(AS_INCIDENT_CLOSED)) ||
           as_str_equal(row->reason, as_incident_event_get_word(AS_INCIDENT_EXPIRED));
}

/* Memory has all that have ended in the range, and they fit on the page. */
static bool memory_has_range(const struct api_request *request, const struct page_range *range)
{
    const struct as_api *api = request->api;
    const struct ended_incident *oldest = TAILQ_LAST(&api->ended, ended_incident_list);
    const bool is_full = api->ended_count == ENDED_MAX || api->ended_bytes > ENDED_BYTES_MAX / 2;
    size_t count = 0;
    for (const struct ended_incident *ended = TAILQ_FIRST(&api->ended);
         ended && ended->at.us >= range->from.us; ended = TAILQ_NEXT(ended, next))
        count++;
    return count <= INCIDENT_ROWS_SHOWN && range->from.us >= api_get_memory_begin(request).us &&
           (!is_full || oldest->at.us < range->from.us);
}

static void print_ended_of_log(struct api_request *request)
{
    const struct page_log *log = request->api->log;
    struct html_table table;
    size_t count = 0;
    for (size_t i = 0; i < log->count; i++) {
        struct ended_incident *ended =
            page_incident_read(log->records[i].document, log->records[i].time);
        if (ended && page_may_see_incident(request, ended->targets, ended->target_count))
            print_ended_row(request, &table, ended, count++ == 0, true);
        api_ended_free(ended);
    }
    if (count > 0)
        html_table_end(&table);
    else
        html_element(page_get_out(request), "p", "dim", "None has ended in this time.");
    page_log_print_older(request, "/incidents");
}

static void print_ended_of_memory(struct api_request *request, const struct page_range *range)
{
    const struct ended_incident *ended;
    struct html_table table;
    size_t count = 0;
    TAILQ_FOREACH (ended, &request->api->ended, next) {
        if (ended->at.us < range->from.us || ended->at.us > range->to.us ||
            count == INCIDENT_ROWS_SHOWN ||
            !page_may_see_incident(request, ended->targets, ended->target_count))
            continue;
        print_ended_row(request, &table, ended, count++ == 0, false);
    }
    if (count > 0)
        html_table_end(&table);
    else
        html_element(page_get_out(request), "p", "dim", "None has ended in this time.");
}

void page_answer_incidents(struct api_request *request)
{
    static const struct as_api_endpoint endpoint = {page_answer_incidents, false,
                                                    page_answer_unchanged};
    struct page_range range;
    struct page_log_query query = {.kinds = 1U << AS_RECORD_INCIDENT,
                                   .limit = INCIDENT_ROWS_SHOWN,
                                   .wants = is_end_of_incident};
    if (!page_has_engine(request) || !page_range_get(request, "1d", &range))
        return;
    if (!page_log_get_before(request, &query.before)) {
        page_refuse(request, 400, "Wrong place", PAGE_LOG_WRONG_BEFORE);
        return;
    }
    query.from = range.from;
    query.to = range.to;
    const bool needs_log = query.before.is_set || !memory_has_range(request, &range);
    if (needs_log && page_log_wait(request, &query, &endpoint))
        return;
    page_begin(request, &(struct page_head){.title = "Open incidents",
                                            .place = PAGE_INCIDENTS,
                                            .document = "receiver.md#incidents",
                                            .lasts_us = request->api->log ? PAGE_LOG_LASTS_US : 0});
    (void)incident_rows_print(request, NULL, NULL, INCIDENT_ROWS_SHOWN, "/incidents");
    page_part(request, "Ended incidents");
    page_range_print_links(request, &range);
    if (request->api->log) {
        page_log_print_notes(request);
        print_ended_of_log(request);
    } else {
        if (needs_log)
            page_log_print_absence(request);
        print_ended_of_memory(request, &range);
    }
    page_end(request, 200);
}

#define DECISIONS_SHOWN 20
#define INCIDENTS_SHOWN 10

static void page_home_print_leader(const struct api_request *request)
{
    const struct as_leader_view *leader = &request->view.leader;
    struct as_buf *out = page_get_out(request);
    page_fact_begin(out, "Leader");
    html_text(out, leader->is_leader ? "this replica"
                   : *leader->holder ? leader->holder
                                     : "nobody");
    page_fact_end(out);
    if (!leader->problem)
        return;
    page_fact_begin(out, "Lease");
    html_text(out, leader->problem);
    page_fact_end(out);
}

static void page_home_print_state(const struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<dl class=\"facts\">");
    page_fact_begin(out, "State");
    page_print_pill(out, view->not_ready ? "bad" : "good", view->not_ready ? "not ready" : "ready");
    page_fact_end(out);
    page_home_print_leader(request);
    page_fact_begin(out, "Mode");
    page_print_pill(out, view->dry_run ? "warn" : "good", view->dry_run ? "dry run" : "live");
    page_fact_end(out);
    if (*request->who == '\0') {
        page_fact_begin(out, "Access");
        page_print_pill(out, "warn", "no credential is asked for");
        page_fact_end(out);
    }
    /* of all, so not for a credential that sees a part */
    const bool sees_all = as_scope_is_whole(view->scopes, view->scope_count, request->who);
    if (view->engine && sees_all) {
        const struct as_engine_counts counts = as_engine_get_counts(view->engine);
        page_fact_begin(out, "Targets");
        as_buf_printf(out, "%zu", counts.targets);
        page_fact_end(out);
        page_fact_begin(out, "Open incidents");
        as_buf_printf(out, "%zu", counts.incidents_open);
        page_fact_end(out);
    }
    if (sees_all) {
        page_fact_begin(out, "Rules");
        as_buf_printf(out, "%zu", view->ruleset->rule_count);
        page_fact_end(out);
    }
    as_buf_append_str(out, "</dl>\n");
}

#define FAILING_SHOWN 100

struct failing_rows {
    struct api_request *request;
    struct html_table table;
    size_t count;
};

static void page_home_print_failing_rule(void *context, const struct as_rule *rule,
                                         const char *error)
{
    static const struct html_column titles[] = {
        {.title = "Rule"}, {.title = "Target"}, {.title = "Answer of the server"}};
    struct failing_rows *rows = context;
    struct api_request *request = rows->request;
    struct as_buf *out = page_get_out(request);
    const char *target = rule->target->name;
    if (!page_may_see_rule(request, rule->name, target, "") || rows->count++ >= FAILING_SHOWN)
        return;
    if (rows->count == 1) {
        page_part(request, "Rules with queries that fail");
        html_table_begin(&rows->table, out, "Rules with queries that fail", titles,
                         AS_ARRAY_SIZE(titles));
    }
    html_row_begin(&rows->table);
    html_cell(&rows->table);
    page_link_rule(request, out, rule->name);
    html_cell(&rows->table);
    page_link(request, out, "/?q=", target, target);
    html_cell(&rows->table);
    html_text(out, error);
    html_row_end(&rows->table);
}

/* Nothing if there are none. */
static void page_home_print_failing_rules(struct api_request *request)
{
    struct failing_rows rows = {.request = request};
    as_query_checks_visit_failing(request->view.query_checks, request->view.ruleset,
                                  page_home_print_failing_rule, &rows);
    if (rows.count > 0)
        html_table_end(&rows.table);
    if (rows.count > FAILING_SHOWN)
        as_buf_printf(page_get_out(request), "<p class=\"dim\">and %zu more</p>\n",
                      rows.count - FAILING_SHOWN);
}

void page_answer_home(struct api_request *request)
{
    struct as_buf *out = page_get_out(request);
    struct page_range range;
    if (!page_range_get(request, "1h", &range))
        return;
    const struct rows approvals = approval_rows_count(request, NULL);
    page_begin(request, &(struct page_head){.title = "Targets",
                                            .place = PAGE_TARGETS,
                                            .document = "page.md#the-list-of-targets",
                                            .has_form = page_has_orders(request, NULL) ||
                                                        approvals.has_form});
    page_home_print_state(request);
    if (!request->view.engine) {
        html_element(out, "p", NULL,
                     "Only the leader knows targets, incidents and decisions, while its state is "
                     "open.");
        page_end(request, 200);
        return;
    }
    if (approvals.count > 0)
        page_print_approvals(request, NULL);
    target_rows_print(request, &range);
    page_home_print_failing_rules(request);
    page_print_blocked(request);
    page_part(request, "Open incidents");
    if (incident_rows_print(request, NULL, NULL, INCIDENTS_SHOWN, NULL) > INCIDENTS_SHOWN) {
        as_buf_append_str(page_get_out(request), "<p>");
        page_link(request, page_get_out(request), "/incidents", "", "All open incidents");
        as_buf_append_str(page_get_out(request), "</p>\n");
    }
    page_part(request, "Latest decisions");
    page_print_decisions(request, NULL, NULL, NULL, NULL, DECISIONS_SHOWN);
    page_print_orders(request, NULL);
    page_end(request, 200);
}
