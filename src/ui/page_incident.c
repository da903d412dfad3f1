/*
 * The page of one incident, open or ended: its alert with links to Prometheus and Alertmanager,
 * when what happened, what its rules decided, and what was added and given back. An ended incident
 * is shown as far as the process remembers it; the action log has everything.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/json_writer.h>

#include "api_private.h"
#include "page.h"

#define TEXTS_SHOWN     100  /* labels; annotations */
#define TEXT_SHOWN      2000 /* bytes of one */
#define MOMENTS_SHOWN   100
#define DECISIONS_SHOWN 20
#define EARLIER_SHOWN   20
#define URL_MAX         ((size_t)8192) /* of a link with a filter */

bool page_may_see_incident(const struct api_request *request,
                           const struct as_incident_target *targets, size_t count)
{
    const struct as_view *view = &request->view;
    if (as_scope_is_whole(view->scopes, view->scope_count, request->who))
        return true;
    for (size_t i = 0; i < count; i++) {
        if (page_may_see_rule(request, targets[i].rule,
                              as_engine_find_name(view->engine, targets[i].target),
                              targets[i].target))
            return true;
    }
    return false;
}

static const char *incident_get_name(const struct as_labels *labels)
{
    const char *name = labels ? as_labels_get(labels, "alertname") : "";
    return *name ? name : "an alert without a name";
}

void page_link_incident(const struct api_request *request, struct as_buf *out,
                        const struct as_digest *digest, const struct as_labels *labels)
{
    char text[AS_DIGEST_TEXT_SIZE];
    as_digest_print(digest, text);
    as_buf_append_str(out, "<b>");
    page_link(request, out, "/incidents/", text, incident_get_name(labels));
    as_buf_append_str(out, "</b>");
}

/* An incident of the engine, or one that has ended; borrowed. */
struct shown_incident {
    const struct api_request *request;
    char digest[AS_DIGEST_TEXT_SIZE];
    as_wall_time starts_at, opened;
    as_maybe_time seen, silenced, ended;
    bool has_expired;
    const struct as_labels *labels, *annotations;
    const char *generator_url, *external_url; /* NULL: not given */
    const struct as_incident_target *targets;
    size_t target_count;
};

/*
 * Links to where the alert comes from. A matcher has the syntax of Alertmanager's page: the name as
 * it is, the value as a JSON string. A label that this cannot express is left out, and so is one
 * that would make the link too long: without it, the filter still shows the alert.
 */

static bool matcher_may_name(const char *name)
{
    for (const char *c = name; *c; c++) {
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f || strchr("{}!=~,\\\"'`", *c))
            return false;
    }
    return true;
}

static bool matcher_has_control(const char *value)
{
    for (const char *c = value; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return true;
    }
    return false;
}

static void append_matcher(struct as_buf *url, const struct as_label *label, bool is_first)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf matcher = AS_BUF_INIT(URL_MAX);
    const size_t before = url->size;
    struct as_json_writer json;
    if (!matcher_may_name(label->name) || matcher_has_control(label->value))
        return;
    as_buf_printf(&matcher, "%s%s=", is_first ? "" : ",", label->name);
    as_json_init(&json, &matcher, 0);
    as_json_write_string(&json, label->value);
    if (as_buf_check(&matcher) != 0)
        return;
    as_encode_percent(url, matcher.data, matcher.size, "");
    if (as_buf_check(url) == 0)
        return;
    url->size = before;
    url->failed = false;
}

/* Appends the page of Alertmanager that shows the alert, whatever its state. */
static void append_filter(struct as_buf *url, const char *external_url,
                          const struct as_labels *labels)
{
    static const char end[] = "%7D&silenced=true&inhibited=true&muted=true&active=true";
    size_t size = strlen(external_url);
    while (size > 0 && external_url[size - 1] == '/')
        size--;
    as_buf_append(url, external_url, size);
    as_buf_append_str(url, "/#/alerts?filter=%7B");
    const size_t begin = url->size;
    url->max -= sizeof(end);
    for (uint32_t i = 0; labels && i < labels->count; i++)
        append_matcher(url, &labels->items[i], url->size == begin);
    url->max += sizeof(end);
    as_buf_append_str(url, end);
}

static void print_link(struct as_buf *out, const char *url, const char *text)
{
    if (!url || !html_may_link(url))
        return;
    as_buf_append_str(out, "<p>");
    html_outside_link(out, url, text);
    as_buf_append_str(out, "</p>\n");
}

static void print_links(const struct shown_incident *incident)
{
    static const char *const links[][2] = {{"runbook_url", "Runbook"},
                                           {"dashboard_url", "Dashboard"}};
    struct as_buf *out = page_get_out(incident->request);
    const char *external_url = incident->external_url;
    print_link(out, incident->generator_url, "The alert's query in Prometheus");
    if (external_url && !strpbrk(external_url, "?#")) {
        AS_CLEANUP(as_buf_deinit) struct as_buf url = AS_BUF_INIT(URL_MAX);
        append_filter(&url, external_url, incident->labels);
        print_link(out, as_buf_check(&url) == 0 ? url.data : external_url,
                   "The alert in Alertmanager");
    }
    for (size_t i = 0; incident->annotations && i < AS_ARRAY_SIZE(links); i++)
        print_link(out, as_labels_find(incident->annotations, links[i][0]), links[i][1]);
}

/* --- labels and annotations --- */

static void incident_print_value(struct as_buf *out, const char *value)
{
    const size_t size = strlen(value);
    const size_t shown = as_str_cut_utf8(value, size, TEXT_SHOWN);
    AS_CLEANUP(as_free_p)
    char *start = as_xasprintf("%.*s%s", (int)shown, value, shown < size ? "..." : "");
    html_outside_link(out, value, start);
}

static void print_texts(const struct shown_incident *incident, const char *title,
                        const struct as_labels *texts)
{
    static const struct html_column columns[] = {{.title = "Name"}, {.title = "Value"}};
    struct as_buf *out = page_get_out(incident->request);
    struct html_table table;
    if (!texts || texts->count == 0)
        return;
    page_part(incident->request, title);
    html_table_begin(&table, out, title, columns, AS_ARRAY_SIZE(columns));
    for (uint32_t i = 0; i < texts->count && i < TEXTS_SHOWN; i++) {
        html_row_begin(&table);
        html_cell(&table);
        html_element(out, "code", NULL, texts->items[i].name);
        html_cell(&table);
        incident_print_value(out, texts->items[i].value);
        html_row_end(&table);
    }
    html_table_end(&table);
    if (texts->count > TEXTS_SHOWN)
        as_buf_printf(out, "<p class=\"dim\">and %" PRIu32 " more</p>\n",
                      texts->count - TEXTS_SHOWN);
}

/*
 * Which decisions an incident has caused. All alerts of a rule act together on a target: the
 * decision names the oldest one, but each of them is a cause.
 */

static bool incident_has_rule(const struct shown_incident *incident,
                              const struct kept_decision *decision)
{
    for (size_t i = 0; i < incident->target_count; i++) {
        if (as_str_equal(incident->targets[i].rule, decision->rule) &&
            as_target_is_same(incident->targets[i].target, decision->target))
            return true;
    }
    return false;
}

static bool was_open(const struct kept_decision *decision, const char *digest)
{
    char text[AS_DIGEST_TEXT_SIZE];
    for (size_t i = 0; i < decision->incident_count; i++) {
        as_digest_print(&decision->incidents[i], text);
        if (strcmp(text, digest) == 0)
            return true;
    }
    return false;
}

static bool has_caused(const void *context, const struct kept_decision *decision)
{
    const struct shown_incident *incident = context;
    if (!decision->rule || decision->at.us < incident->opened.us)
        return false;
    if (strcmp(decision->cause, incident->digest) == 0)
        return true;
    return incident_has_rule(incident, decision) && was_open(decision, incident->digest) &&
           was_open(decision, decision->cause);
}

static bool shows(const struct shown_incident *incident, const struct kept_decision *decision)
{
    return has_caused(incident, decision) &&
           page_may_see_target(incident->request, decision->target_name, decision->target);
}

/* --- what its rules have changed --- */

struct amounts {
    int64_t added, removed, given_back;
    const char *unit;
};

static int32_t action_get_number(const json_t *object, const char *member)
{
    return (int32_t)json_integer_value(json_object_get(object, member));
}

static void add_amount(struct amounts *amounts, const json_t *action, bool is_after)
{
    const int64_t change =
        (int64_t)action_get_number(action, "to") - action_get_number(action, "from");
    if (!as_str_equal(json_string_value(json_object_get(action, "outcome")),
                      as_reason_get_word(AS_REASON_APPLIED)))
        return;
    if (change > 0)
        amounts->added += change;
    else if (is_after)
        amounts->given_back -= change;
    else
        amounts->removed -= change;
}

static struct amounts sum_up(const struct shown_incident *incident,
                             const struct as_incident_target *target)
{
    struct amounts amounts = {.unit = ""};
    const struct kept_decision *decision;
    TAILQ_FOREACH (decision, &incident->request->api->decisions, next) {
        if (!has_caused(incident, decision) || !as_str_equal(decision->rule, target->rule) ||
            !as_target_is_same(decision->target, target->target))
            continue;
        json_t *actions = json_array(), *action;
        size_t i;
        page_add_actions(actions, decision);
        json_array_foreach(actions, i, action) add_amount(
            &amounts, action, incident->ended.set && decision->at.us >= incident->ended.at.us);
        json_decref(actions);
        amounts.unit = decision->unit;
    }
    return amounts;
}

static void print_amount(struct html_table *table, const struct amounts *amounts, int64_t amount)
{
    char text[AS_SIZE_TEXT_SIZE];
    const int32_t size = amount < INT32_MAX ? (int32_t)amount : INT32_MAX;
    html_cell(table);
    as_buf_append_str(table->out, as_unit_print_size(amounts->unit, size, text));
}

static void print_amounts(const struct shown_incident *incident)
{
    static const struct html_column columns[] = {{.title = "Target"},
                                                 {.title = "Rule"},
                                                 {.title = "Added", .is_number = true},
                                                 {.title = "Removed", .is_number = true},
                                                 {.title = "Given back", .is_number = true}};
    const struct api_request *request = incident->request;
    struct as_buf *out = page_get_out(request);
    struct html_table table;
    page_part(request, "Size changes");
    html_table_begin(&table, out, "Size changes", columns, AS_ARRAY_SIZE(columns));
    for (size_t i = 0; i < incident->target_count; i++) {
        const struct as_incident_target *target = &incident->targets[i];
        const char *name = as_engine_find_name(request->view.engine, target->target);
        if (!page_may_see_rule(request, target->rule, name, target->target))
            continue;
        const struct amounts amounts = sum_up(incident, target);
        html_row_begin(&table);
        html_cell(&table);
        page_link_target(request, out, target->target, name);
        html_cell(&table);
        page_link_rule(request, out, target->rule);
        print_amount(&table, &amounts, amounts.added);
        print_amount(&table, &amounts, amounts.removed);
        print_amount(&table, &amounts, amounts.given_back);
        html_row_end(&table);
    }
    html_table_end(&table);
    if (incident->opened.us < request->view.started.us)
        html_element(out, "p", "dim",
                     "Only since the start of this replica. The action log has all that was "
                     "changed before.");
}

/* --- the timeline --- */

struct happening {
    as_wall_time at;
    size_t number;    /* of those at the same time, the order */
    const char *text; /* NULL: a decision, or what followed it */
    const struct kept_decision *decision;
    json_t *action; /* NULL: the decision itself */
};

struct timeline {
    struct happening *items;
    size_t count, capacity;
};

static void timeline_add(struct timeline *timeline, struct happening happening)
{
    timeline->items =
        as_xgrow(timeline->items, timeline->count, &timeline->capacity, sizeof(*timeline->items));
    happening.number = timeline->count;
    timeline->items[timeline->count++] = happening;
}

static void timeline_add_actions(struct timeline *timeline, const struct kept_decision *decision)
{
    json_t *actions = json_array(), *action;
    size_t i;
    page_add_actions(actions, decision);
    json_array_foreach(actions, i, action)
    {
        const char *time = json_string_value(json_object_get(action, "time"));
        as_wall_time at = decision->at;
        if (time && as_wall_time_parse(time, strlen(time), &at) == 0 &&
            action_get_number(action, "to") >= 0)
            timeline_add(
                timeline,
                (struct happening){.at = at, .decision = decision, .action = json_incref(action)});
    }
    json_decref(actions);
}

static int compare_happenings(const void *left, const void *right)
{
    const struct happening *a = left, *b = right;
    if (a->at.us != b->at.us)
        return a->at.us < b->at.us ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

static struct timeline timeline_new(const struct shown_incident *incident)
{
    struct timeline timeline = {0};
    const struct kept_decision *decision;
    if (incident->starts_at.us < incident->opened.us)
        timeline_add(&timeline, (struct happening){.at = incident->starts_at,
                                                   .text = "The alert began to fire."});
    timeline_add(&timeline,
                 (struct happening){.at = incident->opened, .text = "The incident was opened."});
    TAILQ_FOREACH_REVERSE(decision, &incident->request->api->decisions, kept_decision_list, next)
    {
        if (!shows(incident, decision))
            continue;
        timeline_add(&timeline, (struct happening){.at = decision->at, .decision = decision});
        timeline_add_actions(&timeline, decision);
    }
    if (incident->silenced.set)
        timeline_add(&timeline,
                     (struct happening){.at = incident->silenced.at,
                                        .text = "The alert is silenced in Alertmanager."});
    if (incident->ended.set)
        timeline_add(&timeline,
                     (struct happening){.at = incident->ended.at,
                                        .text = incident->has_expired ? "The incident expired."
                                                                      : "The alert was resolved."});
    qsort(timeline.items, timeline.count, sizeof(*timeline.items), compare_happenings);
    return timeline;
}

static void timeline_deinit(struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->count; i++)
        json_decref(timeline->items[i].action);
    free(timeline->items);
}

/* "checkout: action 4 -> 6, applied, rule slow" */
static void print_happening(const struct api_request *request, const struct happening *happening)
{
    struct as_buf *out = page_get_out(request);
    const struct kept_decision *decision = happening->decision;
    const json_t *action = happening->action;
    char size[AS_SIZE_TEXT_SIZE];
    if (happening->text) {
        html_text(out, happening->text);
        return;
    }
    page_link_target(request, out, decision->target, decision->target_name);
    as_buf_append_str(out, ": ");
    page_link(request, out, "/decisions/", decision->id, action ? "action" : "decision");
    as_buf_append_char(out, ' ');
    const int32_t from = action ? action_get_number(action, "from") : decision->replicas;
    const int32_t to = action ? action_get_number(action, "to") : decision->desired;
    if (from != to)
        page_print_change(out, decision->unit, from, to);
    else
        as_buf_printf(out, "stays at %s", as_unit_print_size(decision->unit, to, size));
    as_buf_append_str(out, ", ");
    const char *outcome = json_string_value(json_object_get(action, "outcome"));
    html_element(out, "code", NULL, outcome ? outcome : as_reason_get_word(decision->reason));
    as_buf_append_str(out, ", rule ");
    page_link_rule(request, out, decision->rule);
}

static void print_timeline(const struct shown_incident *incident)
{
    static const struct html_column columns[] = {{.title = "When"}, {.title = "What"}};
    const struct api_request *request = incident->request;
    struct timeline timeline = timeline_new(incident);
    const size_t from = timeline.count > MOMENTS_SHOWN ? timeline.count - MOMENTS_SHOWN : 0;
    struct html_table table;
    page_part(request, "Timeline");
    if (from > 0)
        as_buf_printf(page_get_out(request), "<p class=\"dim\">%zu earlier are not shown.</p>\n",
                      from);
    html_table_begin(&table, page_get_out(request), "Timeline", columns, AS_ARRAY_SIZE(columns));
    for (size_t i = from; i < timeline.count; i++) {
        html_row_begin(&table);
        html_cell(&table);
        page_print_time(request, timeline.items[i].at);
        html_cell(&table);
        print_happening(request, &timeline.items[i]);
        html_row_end(&table);
    }
    html_table_end(&table);
    timeline_deinit(&timeline);
}

/* --- one incident --- */

static void incident_print_state(const struct shown_incident *incident)
{
    struct as_buf *out = page_get_out(incident->request);
    if (!incident->ended.set)
        page_print_pill(out, incident->silenced.set ? "warn" : "bad",
                        incident->silenced.set ? "silenced" : "open");
    else
        page_print_pill(out, incident->has_expired ? "warn" : "good",
                        incident->has_expired ? "expired" : "resolved");
}

static void incident_print_facts(const struct shown_incident *incident)
{
    const struct api_request *request = incident->request;
    struct as_buf *out = page_get_out(request);
    as_buf_append_str(out, "<dl class=\"facts\">");
    page_fact_begin(out, "State");
    incident_print_state(incident);
    page_fact_end(out);
    page_fact_begin(out, incident->ended.set ? "Fired since" : "Fires since");
    page_print_time(request, incident->starts_at);
    page_fact_end(out);
    if (incident->ended.set) {
        page_fact_begin(out, "Ended");
        page_print_time(request, incident->ended.at);
        page_fact_end(out);
        page_fact_begin(out, "Was open for");
        page_print_span(out, incident->ended.at.us - incident->opened.us);
    } else {
        page_fact_begin(out, "Open for");
        page_print_distance(request, out, incident->opened);
    }
    page_fact_end(out);
    if (incident->seen.set) {
        page_fact_begin(out, "Last report");
        page_print_ago(request, incident->seen.at);
        page_fact_end(out);
    }
    as_buf_append_str(out, "</dl>\n");
}

static void incident_print(const struct shown_incident *incident)
{
    struct as_buf *out = page_get_out(incident->request);
    const char *texts[] = {"summary", "description"};
    for (size_t i = 0; incident->annotations && i < AS_ARRAY_SIZE(texts); i++) {
        const char *text = as_labels_find(incident->annotations, texts[i]);
        if (text)
            html_element(out, "p", i == 0 ? "now" : NULL, text);
    }
    incident_print_facts(incident);
    print_links(incident);
    print_amounts(incident);
    print_timeline(incident);
    page_part(incident->request, "Decisions");
    page_print_decisions_of(incident->request, has_caused, incident, DECISIONS_SHOWN);
    print_texts(incident, "Labels", incident->labels);
    print_texts(incident, "Annotations", incident->annotations);
}

struct finding {
    struct api_request *request;
    struct as_digest digest;
    size_t count; /* incidents of the alert that are open, and that the reader may see */
};

static void begin_page(struct finding *finding, const struct as_labels *labels)
{
    if (finding->count++ == 0)
        page_begin(finding->request, &(struct page_head){.title = incident_get_name(labels),
                                                         .place = PAGE_INCIDENTS,
                                                         .document = "page.md#an-incident"});
    else
        page_part(finding->request, "The same alert, from another credential");
}

static as_maybe_time incident_get_time(struct as_moment moment)
{
    return (as_maybe_time){as_moment_is_set(moment), moment.wall};
}

static void find_open(void *context, const struct as_incident_state *state,
                      const struct as_incident_target *targets, size_t count)
{
    struct finding *finding = context;
    if (!state->is_open || as_digest_compare(&state->key.digest, &finding->digest) != 0 ||
        !page_may_see_incident(finding->request, targets, count))
        return;
    struct shown_incident incident = {
        .request = finding->request,
        .starts_at = state->starts_at,
        .opened = state->opened.wall,
        .seen = incident_get_time(state->seen),
        .silenced = incident_get_time(state->silenced),
        .labels = state->labels,
        .annotations = state->annotations,
        .generator_url = state->generator_url,
        .external_url = state->external_url,
        .targets = targets,
        .target_count = count,
    };
    as_digest_print(&state->key.digest, incident.digest);
    begin_page(finding, state->labels);
    incident_print(&incident);
}

static void incident_print_last(struct finding *finding, const struct ended_incident *ended)
{
    struct shown_incident incident = {
        .request = finding->request,
        .starts_at = ended->starts_at,
        .opened = ended->opened,
        .ended = {true, ended->at},
        .has_expired = ended->has_expired,
        .labels = ended->labels,
        .annotations = ended->annotations,
        .generator_url = ended->generator_url,
        .external_url = ended->external_url,
        .targets = ended->targets,
        .target_count = ended->target_count,
    };
    as_digest_print(&ended->digest, incident.digest);
    begin_page(finding, ended->labels);
    incident_print(&incident);
}

static void print_earlier(struct html_table *table, const struct api_request *request,
                          const struct ended_incident *ended, size_t number)
{
    static const struct html_column columns[] = {
        {.title = "Fired since"}, {.title = "Was open for"}, {.title = "Ended"}};
    struct as_buf *out = page_get_out(request);
    if (number == 0) {
        page_part(request, "Earlier");
        html_table_begin(table, out, "Earlier", columns, AS_ARRAY_SIZE(columns));
    }
    html_row_begin(table);
    html_cell(table);
    page_print_time(request, ended->starts_at);
    html_cell(table);
    page_print_span(out, ended->at.us - ended->opened.us);
    html_cell(table);
    page_print_time(request, ended->at);
    html_row_end(table);
}

/* Those that have ended: the last one, if none is open, and a table of the others. */
static void find_ended(struct finding *finding)
{
    const struct api_request *request = finding->request;
    const struct ended_incident *ended;
    struct html_table table;
    size_t earlier = 0;
    TAILQ_FOREACH (ended, &request->api->ended, next) {
        if (as_digest_compare(&ended->digest, &finding->digest) != 0 ||
            !page_may_see_incident(request, ended->targets, ended->target_count) ||
            earlier == EARLIER_SHOWN)
            continue;
        if (finding->count == 0)
            incident_print_last(finding, ended);
        else
            print_earlier(&table, request, ended, earlier++);
    }
    if (earlier > 0)
        html_table_end(&table);
}

void page_answer_incident(struct api_request *request)
{
    AS_CLEANUP(as_free_p) char *wanted = api_decode_rest(request);
    struct finding finding = {.request = request};
    if (!page_has_engine(request))
        return;
    if (wanted && strlen(wanted) == 2 * sizeof(finding.digest.bytes) &&
        as_decode_hex(wanted, strlen(wanted), finding.digest.bytes)) {
        as_engine_visit_incidents(request->view.engine, find_open, &finding);
        find_ended(&finding);
    }
    if (finding.count > 0)
        page_end(request, 200);
    else
        page_refuse(request, 404, "No such incident",
                    "No such incident is open or among the last %d that have ended. The action log "
                    "has them all: alertscaler log --kind incident.",
                    ENDED_MAX);
}
