/*
 * The page of one incident, open or ended: its alert with links to Prometheus and Alertmanager,
 * when what happened, what its rules decided, and what was added and given back. What memory lacks
 * comes from the action log: its index has no digests, so the lines of incidents are read until the
 * one is found.
 */
#include <errno.h>
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
#include <alertscaler/log/log_history.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/tools/record_text.h>

#include "api_private.h"
#include "page.h"
#include "page_log.h"

#define TEXTS_SHOWN     100  /* labels; annotations */
#define TEXT_SHOWN      2000 /* bytes of one */
#define MOMENTS_SHOWN   100
#define DECISIONS_SHOWN 20
#define EARLIER_SHOWN   20
#define URL_MAX         ((size_t)8192) /* of a link with a filter */
#define ENDED           "ended" /* the parameter: the end of one of several incidents of an alert */
#define SAME_END_US     AS_US_PER_MS /* between memory and the log */

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

void page_link_ended(const struct api_request *request, struct as_buf *out,
                     const struct ended_incident *ended)
{
    char digest[AS_DIGEST_TEXT_SIZE], time[AS_RFC3339_SIZE];
    as_digest_print(&ended->digest, digest);
    as_wall_time_print(ended->at, time);
    as_buf_printf(out, "<b><a href=\"%s/incidents/%s?" ENDED "=%s\">", page_root(request), digest,
                  time);
    html_text(out, incident_get_name(ended->labels));
    as_buf_append_str(out, "</a></b>");
}

/*
 * An incident as its record in the action log has it.
 */

static struct as_labels *incident_read_labels(const json_t *record)
{
    json_t *object = json_object_get(record, "labels"), *value;
    struct as_label *pairs = as_xcalloc(json_object_size(object) + 1, sizeof(*pairs));
    struct as_labels *labels = NULL;
    const char *name;
    size_t count = 0;
    json_object_foreach(object, name, value)
    {
        if (json_is_string(value))
            pairs[count++] = (struct as_label){name, json_string_value(value)};
    }
    if (as_labels_new(pairs, count, &labels) != 0)
        labels = NULL;
    free(pairs);
    return labels;
}

struct ended_incident *page_incident_read(const json_t *record, as_wall_time at)
{
    const char *digest = as_record_get_text(record, "digest");
    const char *starts_at = as_record_get_text(record, "startsAt");
    const json_t *targets = json_object_get(record, "targets"), *target;
    struct ended_incident *ended = as_xcalloc(1, sizeof(*ended));
    size_t i;
    if (!as_digest_parse(digest, strlen(digest), &ended->digest) ||
        as_wall_time_parse(starts_at, strlen(starts_at), &ended->starts_at) != 0) {
        free(ended);
        return NULL;
    }
    ended->has_expired = strcmp(as_record_get_text(record, "event"),
                                as_incident_event_get_word(AS_INCIDENT_EXPIRED)) == 0;
    ended->opened = ended->starts_at;
    ended->at = at;
    ended->labels = incident_read_labels(record);
    ended->targets = as_xcalloc(json_array_size(targets) + 1, sizeof(*ended->targets));
    json_array_foreach(targets, i, target)
    {
        ended->targets[ended->target_count++] =
            (struct as_incident_target){.target = as_xstrdup(as_record_get_text(target, "target")),
                                        .rule = as_xstrdup(as_record_get_text(target, "rule")),
                                        .replicas = -1};
    }
    return ended;
}

/* An incident of the engine, or one that has ended; borrowed. */
struct shown_incident {
    const struct api_request *request;
    char digest[AS_DIGEST_TEXT_SIZE];
    as_wall_time starts_at, opened;
    as_maybe_time seen, silenced, ended;
    bool has_expired;
    bool is_lost;        /* neither open, nor is its end in the log */
    as_maybe_time later; /* the alert fired again */
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
 * What the action log has of an incident: its records, and the decisions of its rules before those
 * of memory. A job of the history's thread reads them, while the page waits; it has copies of all
 * that it uses. The index finds the newest records first, so what is missing in the end is old.
 */

#define INCIDENT_DEADLINE_US   (2 * AS_US_PER_S)
#define INCIDENT_LINE_MAX      ((size_t)1024 * 1024)
#define INCIDENT_TARGETS_MAX   20
#define INCIDENT_DECISIONS_MAX 500
#define INCIDENT_ACTIONS_MAX   1000              /* of a target */
#define INCIDENT_AFTER_US      AS_US_PER_DAY     /* when sizes are given back */
#define INCIDENT_BEFORE_US     (5 * AS_US_PER_S) /* a decision may have the time of the alert */

struct later_action { /* than the decision that is read next */
    char *line;
    json_t *record;
};

struct page_incident {
    struct as_log_history_job job; /* the first member */
    struct as_api *api;
    struct as_http_exchange *exchange;
    const char *rest; /* of the exchange's path */
    struct api_reader reader;
    char digest[AS_DIGEST_TEXT_SIZE];
    as_maybe_time wanted;                /* the end of the wanted incident */
    bool is_of_memory;                   /* the incident; else the log has to have it */
    struct ended_incident *incident;     /* NULL: not found */
    bool has_end;                        /* else it has not ended, or nothing is known of its end */
    as_maybe_time later;                 /* the next opening after the end */
    struct kept_decision_list decisions; /* the newest first; in the end without those of memory */
    size_t decision_count;
    bool is_partial; /* records may be missing: the index is not complete */
    bool is_broken;  /* the index cannot be read */
    bool is_slow;    /* older records were not read */

    /* Of the thread: */
    struct as_log_index *index;
    struct page_log_targets targets;
    const char *target;                                /* whose records are read */
    struct later_action actions[INCIDENT_ACTIONS_MAX]; /* the newest first */
    size_t action_count;
    struct as_buf line;
    as_mono_time deadline;
};

static void incident_forget_actions(struct page_incident *job)
{
    for (size_t i = 0; i < job->action_count; i++) {
        json_decref(job->actions[i].record);
        free(job->actions[i].line);
    }
    job->action_count = 0;
}

static void incident_free(struct page_incident *job)
{
    struct kept_decision *decision;
    while ((decision = TAILQ_FIRST(&job->decisions))) {
        TAILQ_REMOVE(&job->decisions, decision, next);
        api_decision_free(decision);
    }
    incident_forget_actions(job);
    api_ended_free(job->incident);
    api_reader_deinit(&job->reader);
    as_buf_deinit(&job->line);
    free(job);
}

static void incident_drop(struct as_log_history_job *self)
{
    incident_free((struct page_incident *)self);
}

/* --- in the thread --- */

static bool incident_may_see(void *context, const char *name, const char *target)
{
    const struct page_incident *job = context;
    return page_log_targets_have(&job->targets, name, target);
}

/* False: the time is over. */
static bool incident_has_time(struct page_incident *job)
{
    job->is_slow = job->is_slow || as_system_clock.get_mono(&as_system_clock).us > job->deadline.us;
    return !job->is_slow;
}

/* NULL: the line is too long, or is gone. */
static json_t *incident_read_row(struct page_incident *job, const struct as_log_row *row,
                                 const char *part)
{
    struct as_error error;
    as_buf_clear(&job->line);
    if (row->size > INCIDENT_LINE_MAX ||
        as_log_index_read_row(job->index, row, &job->line, &error) != 0 ||
        (part && !memmem(job->line.data, job->line.size, part, strlen(part))))
        return NULL;
    return json_loadb(job->line.data, job->line.size, 0, NULL);
}

static bool is_event(const struct as_log_row *row, enum as_incident_event event)
{
    return as_str_equal(row->reason, as_incident_event_get_word(event));
}

/* The newest record of the wanted incident, then its opening. */
static bool incident_on_record(void *context, const struct as_log_row *row)
{
    struct page_incident *job = context;
    const bool is_end = is_event(row, AS_INCIDENT_CLOSED) || is_event(row, AS_INCIDENT_EXPIRED);
    const bool is_opening = is_event(row, AS_INCIDENT_OPENED);
    if (!incident_has_time(job))
        return false;
    if (is_event(row, AS_INCIDENT_SUPERSEDED) || (job->incident && !is_opening) ||
        (!job->incident && job->wanted.set &&
         (!is_end || llabs(row->time.us - job->wanted.at.us) > SAME_END_US)))
        return true;
    json_t *record = incident_read_row(job, row, job->digest);
    const bool is_its = strcmp(as_record_get_text(record, "digest"), job->digest) == 0;
    if (is_its && !job->incident) {
        job->incident = page_incident_read(record, row->time);
        job->has_end = job->incident && is_end;
    }
    if (is_its && job->incident && is_opening)
        job->incident->opened = row->time;
    json_decref(record);
    return !(is_its && job->incident && is_opening);
}

/* The newest first: what is kept in the end is the next opening. */
static bool incident_on_later(void *context, const struct as_log_row *row)
{
    struct page_incident *job = context;
    if (!incident_has_time(job))
        return false;
    if (!is_event(row, AS_INCIDENT_OPENED) || row->time.us <= job->incident->at.us)
        return true;
    json_t *record = incident_read_row(job, row, job->digest);
    if (strcmp(as_record_get_text(record, "digest"), job->digest) == 0)
        job->later = (as_maybe_time){true, row->time};
    json_decref(record);
    return true;
}

static int incident_find_later(struct page_incident *job, struct as_log_query *query,
                               struct as_error *error)
{
    const struct ended_incident *incident = job->incident;
    if (!job->has_end || incident->target_count == 0)
        return 0;
    query->kinds = 1U << AS_RECORD_INCIDENT;
    query->target = incident->targets[0].target;
    query->since = (as_maybe_time){true, incident->at};
    query->until = (as_maybe_time){true, {incident->at.us + INCIDENT_AFTER_US}};
    query->on_row = incident_on_later;
    return as_log_index_find(job->index, query, error);
}

static bool incident_leads_to(const struct page_incident *job, const char *rule)
{
    for (size_t i = 0; rule && i < job->incident->target_count; i++) {
        const struct as_incident_target *target = &job->incident->targets[i];
        if (strcmp(target->target, job->target) == 0 && strcmp(target->rule, rule) == 0)
            return true;
    }
    return false;
}

/* What followed the decision, the oldest first. */
static void incident_add_actions(struct page_incident *job, struct kept_decision *decision)
{
    decision->actions = AS_BUF_INIT(DECISION_ACTIONS_MAX);
    for (size_t i = job->action_count; i > 0; i--) {
        const struct later_action *action = &job->actions[i - 1];
        enum as_reason outcome;
        if (strcmp(as_record_get_text(action->record, "decision"), decision->id) != 0 ||
            strlen(action->line) + 1 > DECISION_ACTIONS_MAX - decision->actions.size)
            continue;
        as_buf_append_str(&decision->actions, action->line);
        as_buf_append_char(&decision->actions, '\n');
        if (as_reason_find(as_record_get_text(action->record, "outcome"), &outcome))
            decision->failure = outcome;
    }
}

static void incident_add_incidents(struct kept_decision *decision, const json_t *record)
{
    const json_t *list = json_object_get(record, "incidents"), *item;
    size_t i;
    decision->incidents = as_xcalloc(json_array_size(list) + 1, sizeof(*decision->incidents));
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);
        if (text &&
            as_digest_parse(text, strlen(text), &decision->incidents[decision->incident_count]))
            decision->incident_count++;
    }
}

/* Decisions of one target come after those of another: they are put in the order of time. */
static void incident_insert(struct page_incident *job, struct kept_decision *decision)
{
    struct kept_decision *earlier = TAILQ_FIRST(&job->decisions);
    while (earlier && earlier->at.us >= decision->at.us)
        earlier = TAILQ_NEXT(earlier, next);
    if (earlier)
        TAILQ_INSERT_BEFORE(earlier, decision, next);
    else
        TAILQ_INSERT_TAIL(&job->decisions, decision, next);
    job->decision_count++;
}

static void incident_add_decision(struct page_incident *job, const struct as_log_row *row,
                                  const json_t *record)
{
    enum as_reason reason;
    if (!page_log_is_id(row->id) || !as_reason_find(row->reason ? row->reason : "", &reason))
        return; /* altered, or of a later version */
    struct kept_decision *decision = as_xcalloc(1, sizeof(*decision));
    as_str_copy_line(row->id, decision->id, sizeof(decision->id));
    as_str_copy_line(as_record_get_text(record, "unit"), decision->unit, sizeof(decision->unit));
    as_str_copy_line(page_log_find_cause(record), decision->cause, sizeof(decision->cause));
    decision->at = row->time;
    decision->target = as_xstrdup(row->target);
    decision->target_name = as_xstrdup(row->target_name);
    decision->rule = as_xstrdup(row->rule);
    decision->replicas = row->from;
    decision->desired = row->to;
    decision->has_would = row->has_would;
    decision->would = row->would;
    decision->failure = AS_REASON_APPLIED;
    decision->reason = reason;
    incident_add_incidents(decision, record);
    incident_add_actions(job, decision);
    incident_insert(job, decision);
}

static bool incident_on_row(void *context, const struct as_log_row *row)
{
    struct page_incident *job = context;
    if (!incident_has_time(job))
        return false;
    if (!incident_leads_to(job, row->rule))
        return true;
    if (row->kind == AS_RECORD_ACTION) {
        if (row->has_to && job->action_count < INCIDENT_ACTIONS_MAX) {
            json_t *record = incident_read_row(job, row, NULL);
            if (record)
                job->actions[job->action_count++] =
                    (struct later_action){as_xstrndup(job->line.data, job->line.size), record};
        }
        return true;
    }
    json_t *record = incident_read_row(job, row, job->digest);
    if (record && job->decision_count == INCIDENT_DECISIONS_MAX)
        job->is_slow = true;
    else if (record)
        incident_add_decision(job, row, record);
    json_decref(record);
    return !job->is_slow;
}

static int incident_read_decisions(struct page_incident *job, struct as_log_query *query,
                                   struct as_error *error)
{
    const struct ended_incident *incident = job->incident;
    int status = 0;
    query->kinds = 1U << AS_RECORD_DECISION | 1U << AS_RECORD_ACTION;
    query->since = (as_maybe_time){true, {incident->opened.us - INCIDENT_BEFORE_US}};
    query->until = (as_maybe_time){job->has_end, {incident->at.us + INCIDENT_AFTER_US}};
    query->on_row = incident_on_row;
    for (size_t i = 0; status == 0 && i < incident->target_count && i < INCIDENT_TARGETS_MAX; i++) {
        bool is_again = false; /* several rules lead to one target */
        for (size_t k = 0; k < i; k++)
            is_again =
                is_again || strcmp(incident->targets[k].target, incident->targets[i].target) == 0;
        if (is_again)
            continue;
        job->target = query->target = incident->targets[i].target;
        status = as_log_index_find(job->index, query, error);
        incident_forget_actions(job);
    }
    job->is_slow = job->is_slow || incident->target_count > INCIDENT_TARGETS_MAX;
    return status;
}

static void incident_run(struct as_log_history_job *self, const struct as_log_history_view *view)
{
    struct page_incident *job = (struct page_incident *)self;
    struct as_error error;
    job->index = view->index;
    job->deadline.us =
        as_time_add(as_system_clock.get_mono(&as_system_clock).us, INCIDENT_DEADLINE_US);
    struct as_log_query query = {
        .kinds = 1U << AS_RECORD_INCIDENT,
        .until = {job->wanted.set, {job->wanted.at.us + SAME_END_US}},
        .may_see = job->reader.is_whole ? NULL : incident_may_see,
        .on_row = incident_on_record,
        .context = job,
        .deadline = job->deadline,
    };
    int status = view->index ? 0 : -EIO;
    if (status == 0 && !job->reader.is_whole)
        status = page_log_targets_init(&job->targets, &job->reader, NULL, view->index, &error);
    if (status == 0 && !job->is_of_memory)
        status = as_log_index_find(view->index, &query, &error);
    if (status == 0 && job->incident)
        status = incident_find_later(job, &query, &error);
    if (status == 0 && job->incident)
        status = incident_read_decisions(job, &query, &error);
    page_log_targets_deinit(&job->targets);
    job->is_slow = job->is_slow || status == -ETIMEDOUT;
    job->is_broken = status != 0 && status != -ETIMEDOUT;
    job->is_partial = !view->state.is_current || *view->problem;
}

/* --- in the loop --- */

static void incident_show(struct as_log_history_job *self)
{
    static const struct as_api_endpoint endpoint = {page_answer_incident, false,
                                                    page_answer_unchanged};
    struct page_incident *job = (struct page_incident *)self;
    struct kept_decision *decision = TAILQ_FIRST(&job->decisions);
    while (decision) {
        struct kept_decision *next = TAILQ_NEXT(decision, next);
        if (api_find_decision(job->api, decision->id)) {
            TAILQ_REMOVE(&job->decisions, decision, next);
            api_decision_free(decision);
        }
        decision = next;
    }
    job->api->incident = job;
    as_api_answer(job->api, job->exchange, &endpoint, job->rest, job->reader.request.who, NULL);
    job->api->incident = NULL;
    incident_free(job);
}

static struct page_incident *incident_job_new(struct api_request *request,
                                              const struct as_digest *digest, as_maybe_time wanted)
{
    struct page_incident *job = as_xcalloc(1, sizeof(*job));
    api_reader_init(&job->reader, request);
    job->job = (struct as_log_history_job){.is_narrowed = !job->reader.is_whole,
                                           .run = incident_run,
                                           .done = incident_show,
                                           .drop = incident_drop};
    job->api = request->api;
    job->exchange = request->exchange;
    job->rest = request->rest;
    job->wanted = wanted;
    job->line = AS_BUF_INIT_OPEN(INCIDENT_LINE_MAX);
    TAILQ_INIT(&job->decisions);
    as_digest_print(digest, job->digest);
    return job;
}

/* The decisions of the action log, behind those of memory; NULL: not read. */
static const struct kept_decision_list *find_older(const struct api_request *request)
{
    return request->api->incident ? &request->api->incident->decisions : NULL;
}

/* The newest decision, then one after another; NULL: there is no earlier one. */
static const struct kept_decision *find_earlier(const struct api_request *request,
                                                const struct kept_decision *decision)
{
    const struct kept_decision_list *kept = &request->api->decisions, *older = find_older(request);
    const bool was_last_of_memory =
        decision ? decision == TAILQ_LAST(kept, kept_decision_list) : TAILQ_EMPTY(kept);
    if (was_last_of_memory)
        return older ? TAILQ_FIRST(older) : NULL;
    return decision ? TAILQ_NEXT(decision, next) : TAILQ_FIRST(kept);
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
    if (!decision->rule || decision->at.us < incident->opened.us ||
        (incident->later.set && decision->at.us >= incident->later.at.us))
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
    const struct kept_decision *decision = NULL;
    while ((decision = find_earlier(incident->request, decision))) {
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

/* What of its decisions is missing. */
static void print_lacks(const struct shown_incident *incident)
{
    const struct api_request *request = incident->request;
    const struct page_incident *found = request->api->incident;
    struct as_buf *out = page_get_out(request);
    if (!found && incident->opened.us < api_get_memory_begin(request).us)
        html_element(out, "p", "dim",
                     "Only since the start of this replica. The action log has all that was "
                     "changed before.");
    if (!found || !(found->is_broken || found->is_partial || found->is_slow))
        return;
    as_buf_append_str(out, "<p class=\"note warn\">");
    as_buf_append_str(out, found->is_broken ? "The action log could not be read to the end"
                           : found->is_partial
                               ? "The action log is not indexed to the end"
                               : "The incident has more decisions than this page can read");
    as_buf_append_str(out, ": older changes may be missing.</p>\n");
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
    print_lacks(incident);
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
    const struct kept_decision *decision = NULL;
    if (incident->starts_at.us < incident->opened.us)
        timeline_add(&timeline, (struct happening){.at = incident->starts_at,
                                                   .text = "The alert began to fire."});
    timeline_add(&timeline,
                 (struct happening){.at = incident->opened, .text = "The incident was opened."});
    while ((decision = find_earlier(incident->request, decision))) {
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
    if (incident->is_lost)
        page_print_pill(out, "warn", "not open");
    else if (!incident->ended.set)
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
    page_fact_begin(out, incident->ended.set || incident->is_lost ? "Fired since" : "Fires since");
    page_print_time(request, incident->starts_at);
    page_fact_end(out);
    if (incident->ended.set) {
        page_fact_begin(out, "Ended");
        page_print_time(request, incident->ended.at);
        page_fact_end(out);
        page_fact_begin(out, "Was open for");
        page_print_span(out, incident->ended.at.us - incident->opened.us);
    } else if (incident->is_lost) {
        page_fact_begin(out, "Ended");
        as_buf_append_str(out, "not known");
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
    page_print_decisions(incident->request, NULL, find_older(incident->request), has_caused,
                         incident, DECISIONS_SHOWN);
    print_texts(incident, "Labels", incident->labels);
    print_texts(incident, "Annotations", incident->annotations);
}

struct finding {
    struct api_request *request;
    struct as_digest digest;
    as_maybe_time wanted;      /* the end of the wanted incident */
    struct page_incident *job; /* while memory is searched for what the log has to have */
    size_t count; /* incidents of the alert that are open, and that the reader may see */
};

static void begin_page(struct finding *finding, const struct as_labels *labels)
{
    if (finding->count++ == 0)
        page_begin(finding->request, &(struct page_head){.title = incident_get_name(labels),
                                                         .place = PAGE_INCIDENTS,
                                                         .document = "page.md#an-incident",
                                                         .lasts_us = finding->request->api->incident
                                                                         ? PAGE_LOG_LASTS_US
                                                                         : 0});
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

static void incident_print_last(struct finding *finding, const struct ended_incident *ended,
                                bool has_end)
{
    const struct page_incident *found = finding->request->api->incident;
    struct shown_incident incident = {
        .request = finding->request,
        .starts_at = ended->starts_at,
        .opened = ended->opened,
        .ended = {has_end, ended->at},
        .is_lost = !has_end,
        .later = found ? found->later : (as_maybe_time){.set = false},
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

static bool is_wanted_end(const struct finding *finding, const struct ended_incident *ended)
{
    return as_digest_compare(&ended->digest, &finding->digest) == 0 &&
           (!finding->wanted.set || llabs(ended->at.us - finding->wanted.at.us) <= SAME_END_US) &&
           page_may_see_incident(finding->request, ended->targets, ended->target_count);
}

/* Those that have ended: the last one, if none is open, and a table of the others. */
static void find_ended(struct finding *finding)
{
    const struct api_request *request = finding->request;
    const struct ended_incident *ended;
    struct html_table table;
    size_t earlier = 0;
    TAILQ_FOREACH (ended, &request->api->ended, next) {
        if (!is_wanted_end(finding, ended) || earlier == EARLIER_SHOWN)
            continue;
        if (finding->count == 0)
            incident_print_last(finding, ended, true);
        else
            print_earlier(&table, request, ended, earlier++);
    }
    if (earlier > 0)
        html_table_end(&table);
}

/*
 * Whether the page needs the action log: memory lacks the incident, or its first decisions.
 */

/* Its targets, and the time of the decisions: that of all incidents that the page shows. */
static void finding_note(struct finding *finding, const struct as_incident_target *targets,
                         size_t count, as_wall_time opened, as_maybe_time ended)
{
    struct page_incident *job = finding->job;
    struct ended_incident *noted = job->incident;
    if (!noted) {
        noted = job->incident = as_xcalloc(1, sizeof(*noted));
        noted->opened = opened;
    }
    noted->opened = opened.us < noted->opened.us ? opened : noted->opened;
    noted->at = ended.at;
    job->has_end = ended.set;
    job->is_of_memory = true;
    noted->targets =
        as_xrealloc_array(noted->targets, noted->target_count + count + 1, sizeof(*noted->targets));
    for (size_t i = 0; i < count; i++)
        noted->targets[noted->target_count++] = (struct as_incident_target){
            .target = as_xstrdup(targets[i].target), .rule = as_xstrdup(targets[i].rule)};
}

static void note_open(void *context, const struct as_incident_state *state,
                      const struct as_incident_target *targets, size_t count)
{
    struct finding *finding = context;
    if (state->is_open && as_digest_compare(&state->key.digest, &finding->digest) == 0 &&
        page_may_see_incident(finding->request, targets, count))
        finding_note(finding, targets, count, state->opened.wall, (as_maybe_time){.set = false});
}

/* True: the page waits for the action log. */
static bool page_waits_for_log(struct finding *finding)
{
    struct api_request *request = finding->request;
    const struct ended_incident *ended;
    if (request->api->incident || !request->api->history_log)
        return false;
    struct page_incident *job = incident_job_new(request, &finding->digest, finding->wanted);
    finding->job = job;
    if (!finding->wanted.set)
        as_engine_visit_incidents(request->view.engine, note_open, finding);
    ended = TAILQ_FIRST(&request->api->ended);
    for (; ended && !job->incident; ended = TAILQ_NEXT(ended, next)) {
        if (is_wanted_end(finding, ended))
            finding_note(finding, ended->targets, ended->target_count, ended->opened,
                         (as_maybe_time){true, ended->at});
    }
    const bool is_needed = !job->incident || finding->wanted.set ||
                           job->incident->opened.us < page_log_get_memory_begin(request).us;
    if (is_needed && as_log_history_submit(request->api->history_log, &job->job))
        return true;
    incident_free(job);
    return false;
}

/* Why there is no page. */
static void refuse_incident(struct api_request *request)
{
    const struct page_incident *found = request->api->incident;
    if (!found)
        page_refuse(request, 404, "No such incident",
                    "No such incident is open or among the last %d that have ended. The action log "
                    "has them all: alertscaler log --kind incident.",
                    ENDED_MAX);
    else if (found->is_broken || found->is_partial || found->is_slow)
        page_refuse(request, 503, "The incident was not found",
                    found->is_slow ? "The search in the action log takes too long. The list of "
                                     "incidents leads to each."
                                   : "The action log cannot be searched to the end: try again.");
    else
        page_refuse(request, 404, "No such incident",
                    "Neither memory nor the action log of this replica has this incident.");
}

void page_answer_incident(struct api_request *request)
{
    AS_CLEANUP(as_free_p) char *wanted = api_decode_rest(request);
    struct finding finding = {.request = request};
    struct as_error error = AS_ERROR_INIT;
    if (!page_has_engine(request))
        return;
    if (api_parameter_get_time(request, ENDED, &finding.wanted, &error) != 0) {
        page_refuse(request, 400, "Wrong time", "%s.", error.text);
        return;
    }
    if (wanted && as_digest_parse(wanted, strlen(wanted), &finding.digest)) {
        const struct page_incident *found = request->api->incident;
        if (page_waits_for_log(&finding))
            return;
        if (!finding.wanted.set)
            as_engine_visit_incidents(request->view.engine, find_open, &finding);
        find_ended(&finding);
        if (finding.count == 0 && found && found->incident && !found->is_of_memory &&
            page_may_see_incident(request, found->incident->targets, found->incident->target_count))
            incident_print_last(&finding, found->incident, found->has_end);
    }
    if (finding.count > 0)
        page_end(request, 200);
    else
        refuse_incident(request);
}
