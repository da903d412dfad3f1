/*
 * The pages of decisions: the page of one decision (how it was made, and its document), and the
 * page of a pool or node group as its last decision saw it. Both show what the process remembers;
 * the action log has everything.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cluster/snapshot.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/doc/json_scan.h>
#include <alertscaler/log/log_index.h>
#include <alertscaler/log/record.h>
#include <alertscaler/tools/explain.h>
#include <alertscaler/tools/recompute.h>
#include <alertscaler/tools/record_text.h>

#include "api_private.h"
#include "page.h"

/*
 * A kept decision, explained as `alertscaler explain` does. The action log has everything; here is
 * what the process remembers of it: decisions, what followed them, and the incidents that are still
 * open.
 */

static json_t *page_decision_load(const char *text, size_t size)
{
    return text ? json_loadb(text, size, 0, NULL) : NULL;
}

void page_add_actions(json_t *list, const struct kept_decision *decision)
{
    const char *at = decision->actions.data;
    const char *end = at ? at + decision->actions.size : NULL;
    while (at && at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline)
            break;
        json_t *action = page_decision_load(at, (size_t)(newline - at));
        if (action)
            json_array_append_new(list, action);
        at = newline + 1;
    }
}

/* Of a pool: the decisions that carry it out, oldest first, each with what followed. */
static void add_assignments(const struct api_request *request, const struct kept_decision *decision,
                            json_t *list)
{
    const struct kept_decision *assignment;
    TAILQ_FOREACH_REVERSE(assignment, &request->api->decisions, kept_decision_list, next)
    {
        if (strcmp(assignment->pool_decision, decision->id) != 0 ||
            !page_may_see_target(request, assignment->target_name, assignment->target))
            continue;
        json_t *record = page_decision_load(assignment->record, assignment->record_size);
        if (record)
            json_array_append_new(list, record);
        page_add_actions(list, assignment);
    }
}

/* --- open incidents, in the form of their opening records --- */

struct opening {
    const json_t *wanted; /* digests */
    json_t *list;
};

static void add_opening(void *context, const struct as_incident_state *state,
                        const struct as_incident_target *targets, size_t count)
{
    struct opening *opening = context;
    char digest[AS_DIGEST_TEXT_SIZE], starts_at[AS_RFC3339_SIZE];
    const json_t *wanted;
    size_t i;
    as_digest_print(&state->key.digest, digest);
    json_array_foreach(opening->wanted, i, wanted)
    {
        if (!as_str_equal(json_string_value(wanted), digest))
            continue;
        json_t *labels = json_object();
        for (uint32_t k = 0; state->labels && k < state->labels->count; k++)
            json_object_set_new(labels, state->labels->items[k].name,
                                json_string(state->labels->items[k].value));
        as_wall_time_print_short(state->starts_at, starts_at);
        json_array_append_new(opening->list, json_pack("{s:s, s:o, s:s}", "digest", digest,
                                                       "labels", labels, "startsAt", starts_at));
        return;
    }
}

static const struct kept_decision *find_next(const struct api_request *request,
                                             const struct kept_decision *decision)
{
    const struct api_found *found = request->api->found;
    const struct kept_decision *next = decision;
    if (found && found->decision == decision)
        return found->next;
    do
        next = TAILQ_PREV(next, kept_decision_list, next);
    while (next && !as_target_is_same(next->target, decision->target));
    return next;
}

/* In memory. */
static const struct kept_decision *find_previous(const struct kept_decision *decision)
{
    const struct kept_decision *previous = decision;
    do
        previous = TAILQ_NEXT(previous, next);
    while (previous && !as_target_is_same(previous->target, decision->target));
    return previous;
}

struct shown { /* an explanation, and what it borrows and JSON values do not own */
    struct as_explanation explanation;
    char *line;
};

/* The decision's record is there. Fills from what is kept; free it with shown_deinit. False: the
 * record cannot be read. */
static bool shown_init(const struct api_request *request, const struct kept_decision *decision,
                       struct shown *shown_out)
{
    struct as_explanation *explanation = &shown_out->explanation;
    char *line = api_copy_document(request, decision->record, decision->record_size);
    json_t *record = line ? page_decision_load(line, strlen(line)) : NULL;
    const struct kept_decision *next = find_next(request, decision);
    const struct kept_decision *pool = api_find_decision(request->api, decision->pool_decision);
    if (pool && !page_may_see_target(request, pool->target_name, pool->target))
        pool = NULL;
    if (!record) {
        free(line);
        return false;
    }
    shown_out->line = line;
    *explanation = (struct as_explanation){
        .decision = record,
        .line = line,
        .line_size = strlen(line),
        .actions = json_array(),
        .incidents = json_array(),
        .assignments = json_array(),
        .pool = pool ? page_decision_load(pool->record, pool->record_size) : NULL,
        .until = {.set = next != NULL, .at = next ? next->at : (as_wall_time){0}},
    };
    page_add_actions(explanation->actions, decision);
    add_assignments(request, decision, explanation->assignments);
    api_hide_credentials(request, explanation->actions);
    api_hide_credentials(request, explanation->assignments);
    api_hide_credentials(request, explanation->pool);
    struct opening opening = {json_object_get(record, "incidents"), explanation->incidents};
    as_engine_visit_incidents(request->view.engine, add_opening, &opening);
    json_t *later = next ? page_decision_load(next->record, next->record_size) : NULL;
    explanation->repeats = json_integer_value(json_object_get(later, "repeats"));
    json_decref(later);
    return true;
}

static void shown_deinit(struct shown *shown)
{
    json_decref(shown->explanation.decision);
    json_decref(shown->explanation.actions);
    json_decref(shown->explanation.incidents);
    json_decref(shown->explanation.assignments);
    json_decref(shown->explanation.pool);
    free(shown->line);
}

/* --- parts --- */

struct printing {
    const struct api_request *request;
    const struct as_explanation *explanation;
    const char *const *titles;
    struct html_table table;
    size_t gate, deciding; /* numbers of gates */
};

struct deciding {
    size_t count, last; /* `last`: the gate that changed the size last */
    int32_t size;
};

static void note_gate(void *context, const char *gate, int32_t size, const char *text)
{
    struct deciding *deciding = context;
    if (deciding->count > 0 && size >= 0 && size != deciding->size)
        deciding->last = deciding->count;
    if (size >= 0)
        deciding->size = size;
    deciding->count++;
}

static void print_gate(void *context, const char *gate, int32_t size, const char *text)
{
    struct printing *printing = context;
    struct html_table *table = &printing->table;
    html_row_begin(table);
    html_cell(table);
    html_element(table->out, "code", NULL, gate);
    if (printing->gate++ == printing->deciding) {
        as_buf_append_char(table->out, ' ');
        page_print_pill(table->out, "good", "decides");
    }
    html_cell(table);
    if (size >= 0)
        as_buf_printf(table->out, "%" PRId32, size);
    html_cell(table);
    html_text(table->out, text);
    html_row_end(table);
}

static void print_gates(struct printing *printing)
{
    static const struct html_column columns[] = {
        {.title = "Gate"}, {.title = "Size after it", .is_number = true}, {.title = "Effect"}};
    struct deciding deciding = {0};
    as_explain_visit_gates(printing->explanation, note_gate, &deciding);
    printing->deciding = deciding.last;
    html_table_begin(&printing->table, page_get_out(printing->request), "Gates", columns,
                     AS_ARRAY_SIZE(columns));
    as_explain_visit_gates(printing->explanation, print_gate, printing);
    html_table_end(&printing->table);
}

/* A text whose times in RFC 3339 are shown as all times of a page. */
static void print_timed_text(const struct api_request *request, const char *text)
{
    struct as_buf *out = page_get_out(request);
    while (*text) {
        as_wall_time at;
        const size_t size = strspn(text, "0123456789-:.TZ");
        const size_t end = size > 0 && text[size - 1] == ':' ? size - 1 : size; /* "...Z: from" */
        const size_t other = strcspn(text + size, "0123456789");
        if (end >= strlen("2026-11-20T10:00:00Z") && as_wall_time_parse(text, end, &at) == 0)
            page_print_time(request, at);
        else
            html_text_part(out, text, end);
        html_text_part(out, text + end, size + other - end);
        text += size + other;
    }
}

/* Each line is an item; one that belongs to the line before is set in. */
static void print_lines(const struct api_request *request, const char *text)
{
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<ul class=\"plain\">\n");
    while (*text) {
        const size_t size = strcspn(text, "\n");
        const size_t blanks = strspn(text, " ");
        AS_CLEANUP(as_free_p)
        char *line = as_xstrndup(text + (blanks < size ? blanks : size),
                                 size - (blanks < size ? blanks : size));
        if (*line) {
            as_buf_append_str(out, blanks >= 4 ? "<li class=\"set-in\">" : "<li>");
            print_timed_text(request, line);
            as_buf_append_str(out, "</li>");
        }
        text += size + (text[size] == '\n');
    }
    as_buf_append_str(out, "</ul>\n");
}

/* Without a list all but the beginning, which the page's head says. */
static bool page_decision_is_wanted(const char *const *titles, const char *title)
{
    if (!titles)
        return *title != '\0';
    while (*titles && strcmp(*titles, title) != 0)
        titles++;
    return *titles != NULL;
}

static void print_part(void *context, const char *title, const char *text)
{
    struct printing *printing = context;
    if (!page_decision_is_wanted(printing->titles, title))
        return;
    page_part(printing->request, title);
    if (strcmp(title, AS_EXPLAIN_GATES) == 0)
        print_gates(printing);
    else
        print_lines(printing->request, text);
}

/* Prints the parts; `titles` ends with NULL: those of these titles; NULL: all. */
static void explanation_print(const struct api_request *request,
                              const struct as_explanation *explanation, const char *const *titles)
{
    struct printing printing = {.request = request, .explanation = explanation, .titles = titles};
    as_explain_visit_parts(explanation, print_part, &printing);
}

#define DOCUMENT_MAX ((size_t)256 * 1024) /* a longer one is only linked */

/* What `alertscaler decide` reads. */
static void print_document(const struct api_request *request,
                           const struct as_explanation *explanation, const char *id)
{
    struct as_buf *out = page_get_out(request);
    const char *document = NULL;
    size_t size = 0;

    page_part(request, "Input");
    as_buf_append_str(out, "<p>The input of the decision. <code>alertscaler decide</code> computes "
                           "the decision again. The whole record: ");
    page_link(request, out, "/api/v1/decisions/", id, "as JSON");
    as_buf_append_str(out, ".</p>\n");
    if (json_scan_find_member(explanation->line, explanation->line_size, "input", &document,
                              &size) &&
        size <= DOCUMENT_MAX) {
        AS_CLEANUP(as_free_p) char *text = as_xstrndup(document, size);
        as_buf_append_str(out, "<textarea readonly rows=\"8\" aria-label=\"Input\">");
        html_text(out, text);
        as_buf_append_str(out, "</textarea>\n");
    }
}

/* --- the decision, computed again --- */

/*
 * By a link, for a person who asks whether this program still decides so. The page with the result
 * is computed once: its script gets the answer that nothing has changed.
 */

#define COMPUTE           "compute" /* the parameter */
#define DIFFERENCES_SHOWN 50
#define DIFFERENCE_MAX    ((size_t)300) /* bytes of a value */

bool page_answer_unchanged_decision(struct api_request *request)
{
    if (!api_parameter_find(request, COMPUTE) || !api_parameter_find(request, PAGE_SINCE))
        return page_answer_unchanged(request);
    api_reply_body(request, 304, NULL, AS_REPLY_NO_STORE);
    return true;
}

struct differences {
    struct html_table table;
    struct as_buf *out;
    size_t count;
};

static void print_computed_value(struct as_buf *out, const json_t *value)
{
    AS_CLEANUP(as_free_p)
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS)
                       : as_xstrdup("nothing");
    const size_t size = text ? strlen(text) : 0;
    const size_t shown = text ? as_str_cut_utf8(text, size, DIFFERENCE_MAX) : 0;
    AS_CLEANUP(as_free_p) char *start = text ? as_xstrndup(text, shown) : as_xstrdup("?");
    html_element(out, "code", NULL, start);
    as_buf_append_str(out, shown < size ? "..." : "");
}

static void print_computed_difference(void *context, const char *key, const json_t *logged,
                                      const json_t *computed)
{
    static const struct html_column columns[] = {
        {.title = "Member"}, {.title = "Recorded"}, {.title = "Computed"}};
    struct differences *differences = context;
    struct html_table *table = &differences->table;
    if (differences->count++ >= DIFFERENCES_SHOWN)
        return;
    if (differences->count == 1)
        html_table_begin(table, differences->out, "Differences", columns, AS_ARRAY_SIZE(columns));
    html_row_begin(table);
    html_cell(table);
    html_element(table->out, "code", NULL, key);
    html_cell(table);
    print_computed_value(table->out, logged);
    html_cell(table);
    print_computed_value(table->out, computed);
    html_row_end(table);
}

static void print_computed_differences(const struct api_request *request, json_t *record,
                                       json_t *computed)
{
    struct differences differences = {.out = page_get_out(request)};
    api_hide_credentials(request, record);
    api_hide_credentials(request, computed);
    as_recompute_visit_differences(json_object_get(record, "output"), computed,
                                   print_computed_difference, &differences);
    if (differences.count > 0)
        html_table_end(&differences.table);
    if (differences.count > DIFFERENCES_SHOWN)
        as_buf_printf(differences.out, "<p class=\"dim\">and %zu more</p>\n",
                      differences.count - DIFFERENCES_SHOWN);
}

static void print_computed(const struct api_request *request, const struct kept_decision *decision)
{
    struct as_buf *out = page_get_out(request);
    struct as_error error = AS_ERROR_INIT;
    json_t *record = page_decision_load(decision->record, decision->record_size), *computed = NULL;
    const int status = as_recompute(decision->record, decision->record_size, record,
                                    AS_RECOMPUTE_ONCE, &computed, &error);
    page_part(request, "Computed again");
    if (status < 0) {
        as_buf_append_str(out, "<p class=\"note warn\">This version cannot read the recorded "
                               "input: ");
        html_text(out, error.text);
        as_buf_append_str(out, "</p>\n");
    } else if (status == AS_RECOMPUTE_EQUAL) {
        as_buf_append_str(out, "<p class=\"note good\">The outcome is equal to the recorded "
                               "outcome.</p>\n");
    } else if (status == AS_RECOMPUTE_UNKNOWN) {
        as_buf_append_str(out, "<p class=\"note warn\">The record is of an older version, and "
                               "lacks the terms of the plan. <code>alertscaler replay</code> "
                               "computes it again.</p>\n");
    } else {
        as_buf_append_str(out, "<p class=\"note bad\">The outcome differs from the recorded "
                               "outcome.</p>\n");
        print_computed_differences(request, record, computed);
    }
    json_decref(record);
    json_decref(computed);
}

/* --- what the decision leads to --- */

#define EARLIER        "earlier" /* the parameter: the decision before this one, from the log */
#define INCIDENT_LINKS 5
#define ABSENCE_MAX    ((size_t)1024)

/* Open incidents by the names of their alerts; if none is open any more, those of the target. */
static void print_incident_links(const struct api_request *request, const char *target,
                                 const struct as_explanation *explanation)
{
    struct as_buf *out = page_get_out(request);
    const size_t count = json_array_size(explanation->incidents);
    if (json_array_size(json_object_get(explanation->decision, "incidents")) == 0)
        return;
    as_buf_append_str(out, " \u00b7 ");
    for (size_t i = 0; i < count && i < INCIDENT_LINKS; i++) {
        const json_t *incident = json_array_get(explanation->incidents, i);
        const char *alert = as_record_get_text(json_object_get(incident, "labels"), "alertname");
        as_buf_append_str(out, i > 0 ? ", " : "");
        page_link(request, out, "/incidents/", as_record_get_text(incident, "digest"),
                  *alert ? alert : "an alert without a name");
    }
    if (count > 0)
        return;
    as_buf_printf(out, "<a href=\"%s/targets/", page_root(request));
    as_encode_percent(out, target, strlen(target), "");
    as_buf_append_str(out, "#incidents\">incidents of the target</a>");
}

static void print_decision_link(const struct api_request *request, const char *id,
                                const char *query, const char *text)
{
    struct as_buf *out = page_get_out(request);
    as_buf_printf(out, "<a href=\"%s/decisions/%s%s\">%s</a>", page_root(request), id, query, text);
}

static void print_no_earlier(const struct api_request *request)
{
    const struct api_found *found = request->api->found;
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(ABSENCE_MAX);
    as_buf_append_str(&text, "no earlier decision in the log");
    if (found)
        api_append_absence(found->absences, &text);
    as_buf_append_char(&text, '\0');
    html_element(page_get_out(request), "span", NULL,
                 as_buf_check(&text) == 0 ? text.data : "no earlier decision in the log");
}

static void print_neighbours(const struct api_request *request,
                             const struct kept_decision *decision)
{
    const struct api_found *found = request->api->found;
    const bool is_found = found && found->decision == decision;
    const struct kept_decision *previous = is_found ? NULL : find_previous(decision);
    const struct kept_decision *next = find_next(request, decision);
    const char *id = is_found ? found->previous : previous ? previous->id : "";
    as_buf_append_str(page_get_out(request),
                      "<nav class=\"pages\" aria-label=\"Decisions on the target\">");
    if (*id)
        print_decision_link(request, id, "", "Previous decision");
    else if (is_found || api_parameter_find(request, EARLIER))
        print_no_earlier(request);
    else if (request->api->history_log)
        print_decision_link(request, decision->id, "?" EARLIER "=1", "Previous decision");
    if (next)
        print_decision_link(request, next->id, "", "Next decision");
    print_decision_link(request, decision->id, "?" COMPUTE "=1", "Compute again");
    as_buf_append_str(page_get_out(request), "</nav>\n");
}

/* "Goes 4 → 6: the rule slow. The value is 47.1, the goal 40." */
static void print_summary(const struct api_request *request, const json_t *record)
{
    const json_t *output = json_object_get(record, "output");
    const char *unit = as_record_get_text(record, "unit");
    const char *rule = as_record_get_text(output, "rule");
    struct as_buf *out = page_get_out(request);
    char size[AS_SIZE_TEXT_SIZE];
    enum as_reason reason;
    int32_t replicas, desired;
    double value, goal;
    if (!as_record_get_size(output, "replicas", &replicas) ||
        !as_record_get_size(output, "desired", &desired) ||
        !as_reason_find(as_record_get_text(output, "reason"), &reason))
        return;
    as_buf_append_str(out, "<p class=\"now\">");
    if (desired == replicas) {
        as_buf_printf(out, "Stays at %s: ", as_unit_print_size(unit, desired, size));
        html_text(out, as_reason_get_meaning(reason));
    } else {
        as_buf_append_str(out, "Goes ");
        page_print_change(out, unit, replicas, desired);
        if (*rule) {
            as_buf_append_str(out, ": the rule ");
            page_link_rule(request, out, rule);
        }
        as_buf_append_char(out, '.');
    }
    if (*rule && as_log_find_value(json_object_get(json_object_get(record, "input"), "proposals"),
                                   json_object_get(output, "proposals"), rule, &value, &goal))
        as_buf_printf(out, " The value is %.4g, the goal %.4g.", value, goal);
    as_buf_append_str(out, "</p>\n");
}

static void page_decision_print_decision(struct api_request *request,
                                         const struct kept_decision *decision,
                                         const struct as_explanation *explanation)
{
    const char *name = *decision->target_name ? decision->target_name : decision->target;
    AS_CLEANUP(as_free_p) char *title = as_xasprintf("Decision on %s", name);
    struct as_buf *out = page_get_out(request);
    const bool computes = api_parameter_find(request, COMPUTE);
    page_begin(request, &(struct page_head){.title = title,
                                            .place = PAGE_ELSEWHERE,
                                            .stays = computes,
                                            .document = "decision.md"});
    as_buf_append_str(out, "<p>");
    page_print_time(request, decision->at);
    as_buf_append_str(out, " \u00b7 ");
    page_link_target(request, out, decision->target, decision->target);
    if (decision->rule) {
        as_buf_append_str(out, " \u00b7 rule ");
        page_link_rule(request, out, decision->rule);
    }
    print_incident_links(request, decision->target, explanation);
    as_buf_append_str(out, "</p>\n");
    print_summary(request, explanation->decision);
    print_neighbours(request, decision);
    if (computes)
        print_computed(request, decision);
    explanation_print(request, explanation, NULL);
    print_document(request, explanation, decision->id);
    page_end(request, 200);
}

/* The action log was searched in vain. */
static void refuse_absent(struct api_request *request)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf absence = AS_BUF_INIT(ABSENCE_MAX);
    api_append_absence(request->api->found->absences, &absence);
    as_buf_append_char(&absence, '\0');
    page_refuse(request, 404, "No such decision",
                "Neither memory nor the action log of this replica has this decision%s.",
                as_buf_check(&absence) == 0 ? absence.data : "");
}

void page_answer_decision(struct api_request *request)
{
    static const struct as_api_endpoint endpoint = {page_answer_decision, false,
                                                    page_answer_unchanged_decision};
    const bool is_earlier = api_parameter_find(request, EARLIER);
    AS_CLEANUP(as_free_p) char *id = api_decode_rest(request);
    const struct api_found *found = request->api->found;
    struct shown shown;
    if (!page_has_engine(request))
        return;
    const struct kept_decision *decision = found ? found->decision : NULL;
    if (id && (!found || (!decision && is_earlier))) /* no earlier one: this page says so */
        decision = api_find_decision(request->api, id);
    if (decision && !page_may_see_target(request, decision->target_name, decision->target))
        decision = NULL; /* also the log is searched for it, as for one that does not exist */
    if (!found && id && !decision && request->api->history_log) {
        api_read_decision(request, id, &endpoint);
        return;
    }
    if (!found && decision && is_earlier && request->api->history_log) {
        api_read_previous_decision(request, decision, &endpoint);
        return;
    }
    if (found && *found->problem) {
        page_refuse(request, 503, "The history cannot be read", "%s.", found->problem);
        return;
    }
    if (found && !decision) {
        refuse_absent(request);
        return;
    }
    if (!decision) {
        page_refuse(request, 404, "No such decision",
                    "It is not among the last %d decisions. The action log has them all: "
                    "alertscaler explain --target NAME --at TIME.",
                    DECISIONS_MAX);
        return;
    }
    if (!decision->record || !shown_init(request, decision, &shown)) {
        page_refuse(request, 404, "The decision is too long",
                    "Its record is too long to be kept in memory. The action log has it: "
                    "alertscaler explain --target NAME --at TIME.");
        return;
    }
    page_decision_print_decision(request, decision, &shown.explanation);
    shown_deinit(&shown);
}

/*
 * The page of a pool, or of a node group that is one of itself: its groups and nodes, and pods that
 * wait, as its last decision saw them.
 */

#define NODES_SHOWN 200

static void page_decision_print_groups(const struct api_request *request,
                                       const struct as_snapshot *snapshot)
{
    static const struct html_column columns[] = {{.title = "Group"},
                                                 {.title = "Size", .is_number = true},
                                                 {.title = "Bounds", .is_number = true},
                                                 {.title = "Nodes", .is_number = true},
                                                 {.title = "On their way", .is_number = true},
                                                 {.title = "Overdue", .is_number = true},
                                                 {.title = "Growth"}};
    struct as_buf *out = page_get_out(request);
    struct html_table table;
    html_table_begin(&table, out, "Node groups", columns, AS_ARRAY_SIZE(columns));
    for (size_t i = 0; i < snapshot->group_count; i++) {
        const struct as_snapshot_group *group = &snapshot->groups[i];
        if (!group->is_member)
            continue;
        html_row_begin(&table);
        html_cell(&table);
        page_link(request, page_get_out(request), "/targets/", group->name, group->name);
        html_cell(&table);
        if (group->size >= 0)
            as_buf_printf(out, "%" PRId32, group->size);
        else
            as_buf_append_str(out, "not known");
        html_cell(&table);
        as_buf_printf(out, "%" PRId32 " to %" PRId32, group->min, group->max);
        html_cell(&table);
        as_buf_printf(out, "%" PRId64, group->nodes);
        html_cell(&table);
        as_buf_printf(out, "%" PRId32, group->coming);
        html_cell(&table);
        as_buf_printf(out, "%" PRId32, group->overdue);
        html_cell(&table);
        if (group->closed == AS_REASON_SCALED)
            as_buf_append_str(out, "open");
        else
            page_print_reason(out, group->closed);
        html_row_end(&table);
    }
    html_table_end(&table);
}

static void print_node(struct html_table *table, const struct as_snapshot *snapshot,
                       const struct as_snapshot_node *node)
{
    struct as_buf *out = table->out;
    html_row_begin(table);
    html_cell(table);
    html_text(out, node->node.name);
    html_cell(table);
    if (node->group < snapshot->group_count)
        html_text(out, snapshot->groups[node->group].name);
    html_cell(table);
    page_print_pill(out, node->is_ready ? "good" : "bad", node->is_ready ? "ready" : "not ready");
    html_cell(table);
    if (node->is_candidate)
        as_buf_append_str(out, "may leave, if its pods fit elsewhere");
    else
        html_element(out, "code", NULL, as_stay_get_word(node->stay));
    html_cell(table);
    if (node->is_candidate)
        as_buf_printf(out, "%.0f %%", node->utilization);
    html_row_end(table);
}

static void page_decision_print_nodes(const struct api_request *request,
                                      const struct as_snapshot *snapshot)
{
    static const struct html_column columns[] = {{.title = "Node"},
                                                 {.title = "Group"},
                                                 {.title = "State"},
                                                 {.title = "Why it stays"},
                                                 {.title = "Requested", .is_number = true}};
    struct as_buf *out = page_get_out(request);
    struct html_table table;
    const struct page_slice slice = page_slice_get(request, snapshot->node_count, NODES_SHOWN);
    if (snapshot->node_count == 0)
        return;
    page_part(request, "Each node");
    html_table_begin(&table, out, "Nodes", columns, AS_ARRAY_SIZE(columns));
    for (size_t i = slice.from; i < slice.to; i++)
        print_node(&table, snapshot, &snapshot->nodes[i]);
    html_table_end(&table);
    page_slice_print(request, &slice, as_http_exchange_get_path(request->exchange));
}

static const struct kept_decision *find_last(const struct api_request *request, const char *target)
{
    const struct kept_decision *decision;
    TAILQ_FOREACH (decision, &request->api->decisions, next) {
        if (decision->record && as_target_is_same(target, decision->target))
            return decision;
    }
    return NULL;
}

static void print_seen(struct api_request *request, const struct kept_decision *decision,
                       const struct as_explanation *explanation)
{
    static const char *const titles[] = {"Pods that wait", "Node groups", "Nodes", NULL};
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;
    struct as_buf *out = page_get_out(request);
    as_buf_printf(out, "<p>As the <a href=\"%s/decisions/%s\">decision of ", page_root(request),
                  decision->id);
    page_print_time(request, decision->at);
    as_buf_append_str(out, "</a> saw it.</p>\n");
    const int status =
        as_decision_decode_record(explanation->line, explanation->line_size, &document, &error);
    const struct as_snapshot *snapshot = status == 0 ? document->input.snapshot : NULL;
    if (snapshot && !snapshot->error)
        page_decision_print_groups(request, snapshot);
    explanation_print(request, explanation, titles);
    if (snapshot && !snapshot->error)
        page_decision_print_nodes(request, snapshot);
    if (!snapshot)
        html_element(out, "p", "dim",
                     "It asked for no pods and nodes: no rule with fit or take had an open "
                     "incident.");
    as_decide_document_free(document);
}

static void page_decision_print_group(void *context, const struct as_target_view *target)
{
    struct api_request *request = context;
    struct shown shown;
    AS_CLEANUP(as_free_p)
    char *title = as_xasprintf("Nodes of %s", *target->name ? target->name : target->id);
    if (!page_may_see_target(request, target->name, target->id)) {
        page_refuse(request, 404, "No such group", "There is no pool or group of this name or id.");
        return;
    }
    const struct kept_decision *decision = find_last(request, target->id);
    page_begin(request,
               &(struct page_head){.title = title, .place = PAGE_TARGETS, .document = "pools.md"});
    as_buf_append_str(page_get_out(request), "<p>");
    page_link_target(request, page_get_out(request), target->id, target->id);
    as_buf_append_str(page_get_out(request), "</p>\n");
    if (decision && shown_init(request, decision, &shown)) {
        print_seen(request, decision, &shown.explanation);
        shown_deinit(&shown);
    } else {
        html_element(page_get_out(request), "p", "dim",
                     "No decision about it since this replica began to lead.");
    }
    page_end(request, 200);
}

void page_answer_group(struct api_request *request)
{
    AS_CLEANUP(as_free_p) char *wanted = api_decode_rest(request);
    if (!page_has_engine(request))
        return;
    if (as_str_is_empty(wanted) ||
        !api_visit_target(request, wanted, page_decision_print_group, request))
        page_refuse(request, 404, "No such group", "There is no pool or group of this name or id.");
}
