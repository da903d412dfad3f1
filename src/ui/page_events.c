/*
 * The page of events: decisions, actions and their effects, incidents, operator commands,
 * approvals, configuration loads, starts and stops, in one table from the action log. Each filter
 * is a parameter of the URL. A replica that does not lead shows the events of its own log.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/tools/record_text.h>

#include "page.h"
#include "page_log.h"

#define EVENTS_SHOWN  100
#define TARGETS_SHOWN 5 /* of an incident */

struct events { /* texts are borrowed from the request */
    struct api_request *request;
    struct page_range range;
    struct page_log_query query;
    const char *kind; /* as given; NULL: all */
};

/*
 * What happened, in words. Members may be missing: the log may be of another version.
 */

static int32_t event_get_number(const json_t *object, const char *member)
{
    return (int32_t)json_integer_value(json_object_get(object, member));
}

static void event_print_word(struct as_buf *out, const char *word)
{
    enum as_reason reason;
    if (as_reason_find(word, &reason))
        page_print_reason(out, reason);
    else
        html_element(out, "code", NULL, word);
}

/* " until 2026-11-20 14:03:12"; nothing if the member is no time. */
static void event_print_until(const struct api_request *request, const json_t *document,
                              const char *member)
{
    const char *text = as_record_get_text(document, member);
    as_wall_time until;
    if (as_wall_time_parse(text, strlen(text), &until) != 0)
        return;
    as_buf_append_str(page_get_out(request), " until ");
    page_print_time(request, until);
}

static void event_print_after(struct as_buf *out, const char *before, const char *text)
{
    if (!*text)
        return;
    as_buf_append_str(out, before);
    html_text(out, text);
}

static void event_print_who(const struct api_request *request, const char *who)
{
    if (!*who)
        return;
    as_buf_append_str(page_get_out(request), " by ");
    html_element(page_get_out(request), "b", NULL, api_show_credential(request, who));
}

static void event_print_change(struct as_buf *out, const struct page_log_record *record)
{
    const char *unit = as_record_get_text(record->document, "unit");
    char size[AS_SIZE_TEXT_SIZE];
    as_buf_append_char(out, ' ');
    if (record->has_from && record->has_to)
        page_print_change(out, unit, record->from, record->to);
    else if (record->has_to)
        as_buf_printf(out, "to %s", as_unit_print_size(unit, record->to, size));
}

/* The beginning of a sentence, as a link to the decision. */
static void event_print_title(const struct api_request *request, const char *title,
                              const char *decision)
{
    struct as_buf *out = page_get_out(request);
    if (*decision)
        page_link(request, out, "/decisions/", decision, title);
    else
        as_buf_append_str(out, title);
}

static void event_print_decision(const struct api_request *request,
                                 const struct page_log_record *record)
{
    struct as_buf *out = page_get_out(request);
    struct kept_decision decision = {.replicas = record->from,
                                     .desired = record->to,
                                     .has_would = record->has_would,
                                     .would = record->would};
    as_str_copy_line(as_record_get_text(record->document, "unit"), decision.unit,
                     sizeof(decision.unit));
    event_print_title(request, "Decision", record->id);
    as_buf_append_str(out, ": ");
    page_print_outcome(out, &decision);
    as_buf_append_str(out, ". ");
    event_print_word(out, record->reason);
    if (strlen(record->cause) != AS_DIGEST_TEXT_SIZE - 1)
        return;
    as_buf_append_char(out, ' ');
    page_link(request, out, "/incidents/", record->cause, "Its incident");
}

static void event_print_action(const struct api_request *request,
                               const struct page_log_record *record)
{
    struct as_buf *out = page_get_out(request);
    event_print_title(request, "Action", as_record_get_text(record->document, "decision"));
    if (record->has_to)
        event_print_change(out, record);
    else
        as_buf_append_str(out, ": the size could not be read");
    if (*as_record_get_text(record->document, "command"))
        as_buf_append_str(out, ", by an operator command");
    as_buf_append_str(out, ". ");
    event_print_word(out, record->reason);
    event_print_after(out, " ", as_record_get_text(record->document, "message"));
}

static void event_print_seconds(struct as_buf *out, const char *before, const json_t *document,
                                const char *member)
{
    const json_t *seconds = json_object_get(document, member);
    if (!json_is_number(seconds))
        return;
    as_buf_append_str(out, before);
    page_print_span(out, (int64_t)(json_number_value(seconds) * (double)AS_US_PER_S));
}

static void event_print_effect(const struct api_request *request,
                               const struct page_log_record *record)
{
    static const char *const ends[][2] = {
        {"resolved", "the alert was resolved"},
        {"not_resolved", "the alert was not resolved within an hour"},
        {"unknown", "the end of the alert is not known"},
    };
    struct as_buf *out = page_get_out(request);
    event_print_title(request, "Effect of", as_record_get_text(record->document, "decision"));
    event_print_change(out, record);
    as_buf_append_str(out, ": ");
    size_t i = 0;
    while (i < AS_ARRAY_SIZE(ends) && strcmp(ends[i][0], record->reason) != 0)
        i++;
    html_text(out, i < AS_ARRAY_SIZE(ends) ? ends[i][1] : record->reason);
    event_print_seconds(out, " after ", record->document, "resolved_after");
    event_print_seconds(out, ", ready after ", record->document, "ready_after");
    if (!*as_record_get_text(record->document, "held_until"))
        return;
    as_buf_append_str(out, ". The rule is ineffective");
    event_print_until(request, record->document, "held_until");
}

static void event_print_command(const struct api_request *request,
                                const struct page_log_record *record)
{
    struct as_buf *out = page_get_out(request);
    const json_t *document = record->document;
    const char *command = as_record_get_text(document, "command");
    as_buf_append_str(out, "Command ");
    html_element(out, "code", NULL, command);
    if (json_is_integer(json_object_get(document, "replicas")))
        as_buf_printf(out, " to %" PRId32, event_get_number(document, "replicas"));
    if (json_is_true(json_object_get(document, "force")))
        as_buf_append_str(out, " beyond the bounds");
    event_print_who(request, as_record_get_text(document, "who"));
    event_print_until(request, document, "until");
    event_print_after(out, ": ", as_record_get_text(document, "reason"));
    if (!*record->reason || strcmp(record->reason, "done") == 0)
        return;
    as_buf_append_char(out, ' ');
    page_print_pill(out, "bad", record->reason);
    html_text(out, as_record_get_text(document, "message"));
}

static void event_print_approval(const struct api_request *request,
                                 const struct page_log_record *record)
{
    struct as_buf *out = page_get_out(request);
    const json_t *document = record->document;
    event_print_title(request, "Approval of", as_record_get_text(document, "decision"));
    event_print_change(out, record);
    as_buf_append_str(out, ": ");
    html_element(out, "code", NULL, record->reason);
    if (*as_record_get_text(document, "command"))
        event_print_who(request, as_record_get_text(document, "who"));
    event_print_until(request, document, "until");
    event_print_after(out, ": ", as_record_get_text(document, "message"));
}

static void event_print_incident(const struct api_request *request,
                                 const struct page_log_record *record)
{
    static const char *const events[][2] = {
        {"opened", "opened"},
        {"closed", "the alert was resolved"},
        {"expired", "expired"},
        {"superseded", "superseded by a later one"},
        {"silenced", "the alert is silenced in Alertmanager"},
        {"unsilenced", "the alert is not silenced any more"},
    };
    struct as_buf *out = page_get_out(request);
    const json_t *document = record->document;
    const char *name = as_record_get_text(json_object_get(document, "labels"), "alertname");
    const char *digest = as_record_get_text(document, "digest");
    name = *name ? name : "an alert without a name";
    const bool is_end =
        strcmp(record->reason, as_incident_event_get_word(AS_INCIDENT_CLOSED)) == 0 ||
        strcmp(record->reason, as_incident_event_get_word(AS_INCIDENT_EXPIRED)) == 0;
    struct ended_incident *ended = is_end ? page_incident_read(document, record->time) : NULL;
    as_buf_append_str(out, "Incident ");
    if (ended)
        page_link_ended(request, out, ended);
    else if (*digest)
        page_link(request, out, "/incidents/", digest, name);
    else
        html_text(out, name);
    api_ended_free(ended);
    as_buf_append_str(out, ": ");
    size_t i = 0;
    while (i < AS_ARRAY_SIZE(events) && strcmp(events[i][0], record->reason) != 0)
        i++;
    html_text(out, i < AS_ARRAY_SIZE(events) ? events[i][1] : record->reason);
}

static void event_print_start(const struct api_request *request,
                              const struct page_log_record *record)
{
    static const struct {
        const char *member, *one;
    } counts[] = {{"rules", "rule"},
                  {"targets", "target"},
                  {"incidents", "open incident"},
                  {"intents", "unfinished action"}};
    struct as_buf *out = page_get_out(request);
    html_element(out, "b", NULL, as_record_get_text(record->document, "instance"));
    if (record->kind == AS_RECORD_STOP) {
        as_buf_append_str(out, " stopped");
        return;
    }
    as_buf_append_str(out, " started, and leads from now on. Version ");
    html_text(out, as_record_get_text(record->document, "version"));
    for (size_t i = 0; i < AS_ARRAY_SIZE(counts); i++) {
        const int32_t count = event_get_number(record->document, counts[i].member);
        as_buf_printf(out, ", %" PRId32 " %s%s", count, counts[i].one, count == 1 ? "" : "s");
    }
}

static void event_print_reload(const struct api_request *request,
                               const struct page_log_record *record)
{
    struct as_buf *out = page_get_out(request);
    const json_t *document = record->document;
    const char *error = as_record_get_text(document, "error");
    const char *who = as_record_get_text(document, "credential");
    as_buf_append_str(out, *error ? "Configuration load" : "Configuration loaded");
    event_print_who(request, who);
    if (!*who)
        as_buf_append_str(out, " after a signal or a change of the files");
    if (*error) {
        as_buf_append_str(out, " ");
        page_print_pill(out, "bad", "failed");
        html_text(out, error);
        return;
    }
    as_buf_append_str(out, ": rules ");
    AS_CLEANUP(as_free_p)
    char *digest = as_xasprintf("%.12s", as_record_get_text(document, "rules_digest"));
    html_text(out, digest);
    if (strcmp(as_record_get_text(document, "rules_digest"),
               as_record_get_text(document, "old_rules_digest")) == 0)
        as_buf_append_str(out, " (as before)");
}

static const struct event_kind {
    const char *words, *title; /* in the form */
    unsigned kinds;
    void (*print)(const struct api_request *request, const struct page_log_record *record);
} event_kinds[] = {
    {"decision", "decisions", 1U << AS_RECORD_DECISION, event_print_decision},
    {"action", "actions", 1U << AS_RECORD_ACTION, event_print_action},
    {"effect", "effects", 1U << AS_RECORD_EFFECT, event_print_effect},
    {"incident", "incidents", 1U << AS_RECORD_INCIDENT, event_print_incident},
    {"command", "commands", 1U << AS_RECORD_COMMAND, event_print_command},
    {"approval", "approvals", 1U << AS_RECORD_APPROVAL, event_print_approval},
    {"reload", "configuration loads", 1U << AS_RECORD_RELOAD, event_print_reload},
    {"start,stop", "starts and stops", 1U << AS_RECORD_START | 1U << AS_RECORD_STOP,
     event_print_start},
};

/* --- the table --- */

static const char *event_find_name(const struct api_request *request, const char *target)
{
    return request->view.engine ? as_engine_find_name(request->view.engine, target) : "";
}

/* An incident has the targets of several credentials: prints those that the reader may see, and
 * returns how many. */
static size_t event_print_targets(const struct api_request *request, const json_t *document,
                                  bool is_printed)
{
    struct as_buf *out = page_get_out(request);
    const json_t *each;
    size_t i, count = 0;
    json_array_foreach(json_object_get(document, "targets"), i, each)
    {
        const char *target = as_record_get_text(each, "target");
        const char *rule = as_record_get_text(each, "rule");
        const char *name = event_find_name(request, target);
        if (!page_may_see_rule(request, rule, name, target) || count++ >= TARGETS_SHOWN ||
            !is_printed)
            continue;
        as_buf_append_str(out, "<p>");
        page_link_target(request, out, target, name);
        as_buf_append_str(out, " by ");
        page_link_rule(request, out, rule);
        as_buf_append_str(out, "</p>");
    }
    if (is_printed && count > TARGETS_SHOWN)
        as_buf_printf(out, "<p class=\"dim\">and %zu more</p>", count - TARGETS_SHOWN);
    return count;
}

static void event_print(const struct api_request *request, struct html_table *table,
                        const struct page_log_record *record)
{
    struct as_buf *out = page_get_out(request);
    const bool is_incident = record->kind == AS_RECORD_INCIDENT;
    const struct as_view *view = &request->view;
    if (is_incident && !as_scope_is_whole(view->scopes, view->scope_count, request->who) &&
        event_print_targets(request, record->document, false) == 0)
        return;
    html_row_begin(table);
    html_cell(table);
    page_print_time(request, record->time);
    html_cell(table);
    for (size_t i = 0; i < AS_ARRAY_SIZE(event_kinds); i++) {
        if (event_kinds[i].kinds & 1U << record->kind)
            event_kinds[i].print(request, record);
    }
    html_cell(table);
    if (is_incident)
        (void)event_print_targets(request, record->document, true);
    else if (*record->target)
        page_link_target(request, out, record->target, record->target_name);
    else if (record->kind == AS_RECORD_COMMAND && !*as_record_get_text(record->document, "request"))
        as_buf_append_str(out, "all targets");
    html_cell(table);
    if (*record->rule)
        page_link_rule(request, out, record->rule);
    html_row_end(table);
}

static void events_print_rows(const struct events *events)
{
    static const struct html_column columns[] = {
        {.title = "When"}, {.title = "What"}, {.title = "Target"}, {.title = "Rule"}};
    const struct api_request *request = events->request;
    const struct page_log *log = request->api->log;
    struct as_buf *out = page_get_out(request);
    struct html_table table;
    if (log->count > 0) {
        html_table_begin(&table, out, "Events", columns, AS_ARRAY_SIZE(columns));
        for (size_t i = 0; i < log->count; i++)
            event_print(request, &table, &log->records[i]);
        html_table_end(&table);
    } else {
        html_element(out, "p", "dim", "No event fits.");
    }
    page_log_print_older(request, "/events");
}

/* --- the forms --- */

static void events_print_field(const struct events *events, const char *label, const char *name,
                               const char *attributes, const char *value)
{
    struct as_buf *out = page_get_out(events->request);
    as_buf_printf(out, "<label>%s<input name=\"%s\" autocomplete=\"off\" %s", label, name,
                  attributes);
    if (value)
        html_attribute(out, "value", value);
    as_buf_append_str(out, "></label>\n");
}

static void print_hidden_field(const struct events *events, const char *name)
{
    struct as_buf *out = page_get_out(events->request);
    const char *value = api_parameter_find(events->request, name);
    if (!value)
        return;
    as_buf_printf(out, "<input type=\"hidden\" name=\"%s\"", name);
    html_attribute(out, "value", value);
    as_buf_append_char(out, '>');
}

static void events_link_kind(const struct events *events, const char *words, const char *title)
{
    const struct api_request *request = events->request;
    struct as_buf *out = page_get_out(request);
    AS_CLEANUP(as_buf_deinit) struct as_buf url = AS_BUF_INIT(PAGE_URL_MAX);
    as_buf_printf(&url, "%s/events?", page_root(request));
    page_append_query(request, "kind", &url);
    if (as_buf_check(&url) != 0)
        return;
    as_buf_append_str(out, "<a href=\"");
    html_text(out, url.data);
    as_buf_printf(out, "kind=%s\"%s>%s</a>", words,
                  strcmp(events->kind ? events->kind : "", words) == 0 ? " aria-current=\"true\""
                                                                       : "",
                  title);
}

/* Each kind is a link, which can be shared. */
static void events_link_kinds(const struct events *events)
{
    struct as_buf *out = page_get_out(events->request);
    as_buf_append_str(out, "<nav class=\"states\" aria-label=\"Kinds\">");
    events_link_kind(events, "", "all");
    for (size_t i = 0; i < AS_ARRAY_SIZE(event_kinds); i++)
        events_link_kind(events, event_kinds[i].words, event_kinds[i].title);
    as_buf_append_str(out, "</nav>\n");
}

static void print_reasons(struct as_buf *out)
{
    as_buf_append_str(out, "<datalist id=\"reasons\">");
    for (int reason = 0; reason < AS_REASON_COUNT; reason++)
        as_buf_printf(out, "<option value=\"%s\"></option>",
                      as_reason_get_word((enum as_reason)reason));
    as_buf_append_str(out, "</datalist>\n");
}

static void events_begin_form(const struct events *events)
{
    as_buf_printf(page_get_out(events->request),
                  "<form class=\"filter\" method=\"get\" action=\"%s/events\">\n",
                  page_root(events->request));
}

/* One end of the time range, to the second. */
static void print_end_field(const struct events *events, const char *label, const char *name,
                            as_wall_time at)
{
    char text[AS_RFC3339_SIZE];
    as_wall_time_print_short((as_wall_time){at.us - at.us % AS_US_PER_S}, text);
    events_print_field(events, label, name, "size=\"22\"", text);
}

/* Two forms, because a range has either a word or ends. Each keeps what the other one sets. */
static void events_print_forms(const struct events *events)
{
    static const char *const filters[] = {"target", "rule", "reason", "who", "kind"};
    struct as_buf *out = page_get_out(events->request);
    events_begin_form(events);
    events_print_field(events, "Target", "target", "type=\"search\" placeholder=\"checkout*\"",
                       events->query.target);
    events_print_field(events, "Rule", "rule", "size=\"16\"", events->query.rule);
    events_print_field(events, "Reason", "reason", "size=\"16\" list=\"reasons\"",
                       events->query.reason);
    print_reasons(out);
    events_print_field(events, "Person", "who", "size=\"12\"", events->query.who);
    print_hidden_field(events, "kind");
    print_hidden_field(events, PAGE_RANGE);
    print_hidden_field(events, "from");
    print_hidden_field(events, "to");
    as_buf_append_str(out, "<button>Search</button></form>\n");
    events_link_kinds(events);
    page_range_print_links(events->request, &events->range);
    as_buf_append_str(out, "<details data-key=\"time\"><summary>Another time</summary>\n");
    events_begin_form(events);
    print_end_field(events, "From", "from", events->range.from);
    print_end_field(events, "To", "to", events->range.to);
    for (size_t i = 0; i < AS_ARRAY_SIZE(filters); i++)
        print_hidden_field(events, filters[i]);
    as_buf_append_str(out, "<button>Show</button></form></details>\n");
}

/* --- the page --- */

static bool events_find_kind(const char *word, size_t size, unsigned *kinds_io)
{
    for (int kind = 0; kind < AS_RECORD_KIND_COUNT; kind++) {
        const char *known = as_record_kind_get_word((enum as_record_kind)kind);
        if (strlen(known) != size || memcmp(known, word, size) != 0)
            continue;
        for (size_t i = 0; i < AS_ARRAY_SIZE(event_kinds); i++) {
            if (event_kinds[i].kinds & 1U << kind) {
                *kinds_io |= 1U << kind;
                return true;
            }
        }
    }
    return false;
}

/* False: one of them is no kind of an event. */
static bool events_read_kinds(struct events *events)
{
    const char *text = events->kind;
    unsigned kinds = 0;
    for (size_t i = 0; !text && i < AS_ARRAY_SIZE(event_kinds); i++)
        kinds |= event_kinds[i].kinds;
    while (text) {
        const size_t size = strcspn(text, ",");
        if (!events_find_kind(text, size, &kinds))
            return false;
        text = text[size] ? text + size + 1 : NULL;
    }
    events->query.kinds = kinds;
    return true;
}

/* False after answering that a parameter is wrong. */
static bool events_read(struct events *events)
{
    struct api_request *request = events->request;
    if (!page_range_get(request, "1d", &events->range))
        return false;
    events->kind = api_parameter_find(request, "kind");
    events->query = (struct page_log_query){
        .target = api_parameter_find(request, "target"),
        .rule = api_parameter_find(request, "rule"),
        .reason = api_parameter_find(request, "reason"),
        .who = api_parameter_find(request, "who"),
        .from = events->range.from,
        .to = events->range.to,
        .limit = EVENTS_SHOWN,
    };
    if (!events_read_kinds(events)) {
        page_refuse(request, 400, "Wrong kind",
                    "kind: expected decision, action, effect, incident, command, approval, reload, "
                    "start or stop, as in kind=decision,action.");
        return false;
    }
    if (!page_log_get_before(request, &events->query.before)) {
        page_refuse(request, 400, "Wrong place", PAGE_LOG_WRONG_BEFORE);
        return false;
    }
    return true;
}

void page_answer_events(struct api_request *request)
{
    static const struct as_api_endpoint endpoint = {page_answer_events, false,
                                                    page_answer_unchanged};
    struct events events = {.request = request};
    if (!events_read(&events) || page_log_wait(request, &events.query, &endpoint))
        return;
    const struct page_log *log = request->api->log;
    if (!log) {
        page_refuse(request, 503, "The events cannot be read",
                    "The action log cannot be read now, or too many requests wait for it: try "
                    "again.");
        return;
    }
    const bool is_fixed = events.range.is_fixed && !log->is_partial && !log->is_broken;
    page_begin(request,
               &(struct page_head){.title = "Events",
                                   .place = PAGE_EVENTS,
                                   .document = "page.md#events",
                                   .lasts_us = is_fixed ? page_range_get_lasts(&events.range)
                                                        : PAGE_LOG_LASTS_US});
    if (!request->view.leader.is_leader)
        html_element(page_get_out(request), "p", "note warn",
                     "This replica does not lead: its action log has only the time of its lead.");
    events_print_forms(&events);
    page_log_print_notes(request);
    events_print_rows(&events);
    page_end(request, 200);
}
