/*
 * Requests for decisions: answers from memory, and from the action log for what memory does not
 * have any more. There, a request becomes a job of the history's thread (log/log_history.h), which
 * writes the whole answer; the loop only sends it.
 *
 * An answer that comes from the log, or has a part from there, is narrowed as pages are: a
 * credential with `targets` sees its targets only. The job has copies of all that it uses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/json_scan.h>
#include <alertscaler/doc/rows.h>
#include <alertscaler/log/log_absences.h>
#include <alertscaler/log/log_history.h>
#include <alertscaler/model/scope.h>
#include <alertscaler/port/clock.h>

#include "api_private.h"

#define DECISIONS_DEFAULT   100
#define HISTORY_MAX         10000 /* records of an answer that has some from the action log */
#define HISTORY_BODY_MAX    ((size_t)4 << 20) /* of a list; the loop copies it */
#define HISTORY_TAIL_MAX    ((size_t)16384)
#define HISTORY_DEADLINE_US (10 * AS_US_PER_S)
#define HISTORY_ID_MAX      64
#define NARROWED_BYTES_MAX  ((size_t)1 << 20) /* of a record in which names are hidden */
#define FOLLOWED_US         AS_US_PER_DAY     /* where the next decision and actions are searched */
#define ACTIONS_MAX         64

/* Which decisions are wanted, of those that the reader may see. All is borrowed. */
struct api_filter {
    const struct api_request *reader;
    const char *target, *rule, *before;
    bool has_reason;
    enum as_reason reason;
    as_maybe_time since, until;
};

AS_ROW_WORDS(reason_get_word, enum as_reason, AS_REASON_COUNT, as_reason_get_word)
AS_ROW_WORDS(direction_get_word, enum as_direction, AS_DIRECTION_DOWN + 1, as_direction_get_word)

static const struct as_row decision_rows[] = {
    {AS_ROW_CHARS("id", kept_decision, id, REQUIRED)},
    {AS_ROW("time", exact, kept_decision, at, REQUIRED)},
    {AS_ROW("target", own_text, kept_decision, target, REQUIRED)},
    {AS_ROW("target_name", own_text, kept_decision, target_name, REQUIRED)},
    {AS_ROW("rule", own_maybe_text, kept_decision, rule, NULLABLE)},
    {AS_ROW("reason", word, kept_decision, reason, REQUIRED), .get_word = reason_get_word},
    {AS_ROW("direction", word, kept_decision, direction, REQUIRED), .get_word = direction_get_word},
    {AS_ROW("replicas", i32, kept_decision, replicas, REQUIRED)},
    {AS_ROW("desired", i32, kept_decision, desired, REQUIRED)},
    {AS_ROW("would", i32, kept_decision, would, DEFAULT),
     .has_at = AS_ROW_HAS(kept_decision, has_would)},
    {AS_ROW("repeats", u64, kept_decision, repeats, REQUIRED)},
    {.name = NULL},
};

struct api_history {
    struct as_log_history_job job; /* the first member */
    struct as_log_history *history;
    const char *instance; /* of this replica; the API's */
    struct as_http_exchange *exchange;
    struct api_reader reader;
    int status; /* of HTTP */
    struct as_error error;
    struct as_buf body;
    struct as_json_writer json;

    /* A list: */
    char *target, *rule, *reason, *before;
    as_maybe_time since, until, before_at;
    size_t limit, count;
    bool is_cut;
    as_wall_time oldest; /* of the records from the action log */

    /* One decision: */
    char *id;

    /* For a page: */
    struct as_api *api;
    const struct as_api_endpoint *endpoint;
    const char *rest;
    struct kept_decision found, next;
    bool has_found, has_next;
    struct as_log_absences absences;
    char previous[AS_ULID_SIZE];
    char action_ids[ACTIONS_MAX][AS_ULID_SIZE]; /* the first ones on the target after it */
    size_t action_count;
};

static char **copy_patterns(const char *const *patterns, size_t count)
{
    char **copy = as_xcalloc(count + 1, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = as_xstrdup(patterns[i]);
    return copy;
}

static void free_patterns(const char *const *patterns, size_t count)
{
    for (size_t i = 0; patterns && i < count; i++)
        free((char *)(uintptr_t)patterns[i]);
    free((void *)(uintptr_t)patterns);
}

void api_reader_init(struct api_reader *reader, const struct api_request *request)
{
    const struct as_view *view = &request->view;
    const bool is_proxied = as_str_starts_with(request->who, AS_SCOPE_PROXIED);
    const char *name = is_proxied ? AS_SCOPE_ALL_PROXIED : request->who;
    reader->is_whole = as_scope_is_whole(view->scopes, view->scope_count, request->who);
    reader->request.who = as_xstrdup(request->who);
    reader->request.view.scopes = &reader->scope;
    for (size_t i = 0; i < view->scope_count; i++) {
        const struct as_scope *scope = &view->scopes[i];
        if (strcmp(scope->credential, name) != 0)
            continue;
        reader->request.view.scope_count = 1;
        reader->scope = (struct as_scope){
            .credential = is_proxied ? AS_SCOPE_ALL_PROXIED : reader->request.who,
            .rules = (const char *const *)copy_patterns(scope->rules, scope->rule_count),
            .rule_count = scope->rule_count,
            .targets = (const char *const *)copy_patterns(scope->targets, scope->target_count),
            .target_count = scope->target_count,
        };
        return;
    }
}

void api_reader_deinit(struct api_reader *reader)
{
    free_patterns(reader->scope.rules, reader->scope.rule_count);
    free_patterns(reader->scope.targets, reader->scope.target_count);
    free((char *)(uintptr_t)reader->request.who);
}

bool api_reader_may_see(const struct api_reader *reader, const char *target_name,
                        const char *target)
{
    const struct as_view *view = &reader->request.view;
    return as_scope_allows_target(view->scopes, view->scope_count, reader->request.who, target_name,
                                  target);
}

static void found_decision_deinit(struct kept_decision *decision)
{
    free(decision->target);
    free(decision->target_name);
    free(decision->rule);
    free(decision->record);
    as_buf_deinit(&decision->actions);
}

static struct api_history *api_history_free(struct api_history *answer)
{
    api_reader_deinit(&answer->reader);
    free(answer->target);
    free(answer->rule);
    free(answer->reason);
    free(answer->before);
    free(answer->id);
    found_decision_deinit(&answer->found);
    found_decision_deinit(&answer->next);
    as_buf_deinit(&answer->body);
    free(answer);
    return NULL;
}

static void history_drop(struct as_log_history_job *job)
{
    api_history_free((struct api_history *)job);
}

static void history_send(struct as_log_history_job *job)
{
    struct api_history *answer = (struct api_history *)job;
    if (answer->status != 200)
        as_reply_error(answer->exchange, answer->status,
                       answer->status == 503 ? AS_REPLY_LATER : NULL, "%s", answer->error.text);
    else
        as_reply_json(answer->exchange, 200, AS_REPLY_NO_STORE, &answer->body);
    api_history_free(answer);
}

static struct api_history *api_history_new(struct api_request *request, size_t body_max)
{
    struct api_history *answer = as_xcalloc(1, sizeof(*answer));
    answer->job.done = history_send;
    answer->job.drop = history_drop;
    answer->history = request->api->history_log;
    answer->instance = request->api->instance;
    answer->exchange = request->exchange;
    answer->status = 200;
    answer->body = AS_BUF_INIT_OPEN(body_max);
    api_reader_init(&answer->reader, request);
    answer->job.is_narrowed = !answer->reader.is_whole;
    as_json_init(&answer->json, &answer->body, AS_JSON_ANY_ORDER);
    as_json_begin_object(&answer->json);
    as_json_write_member(&answer->json, "status", "success");
    as_json_write_key(&answer->json, "data");
    return answer;
}

/* Takes over the answer. */
static void api_history_submit(struct api_history *answer)
{
    if (as_log_history_submit(answer->history, &answer->job))
        return;
    answer->status = 503;
    as_error_set(&answer->error,
                 "too many requests for the history of the action log wait: try again");
    answer->job.done(&answer->job);
}

/* In the thread and in the loop. */
static bool history_may_see(void *context, const char *target_name, const char *target)
{
    const struct api_history *answer = context;
    return api_reader_may_see(&answer->reader, target_name, target);
}

static void history_fail(struct api_history *answer, int status, const struct as_error *error)
{
    answer->status = status == -ENOENT ? 404 : 503;
    if (status == -ETIMEDOUT)
        as_error_set(&answer->error,
                     "the query takes too long: give a target, and a time with since and until");
    else if (status != -ENOENT && status != -EAGAIN && !answer->reader.is_whole)
        as_error_set(&answer->error, "the history of the action log cannot be read");
    else
        answer->error = *error;
}

static as_mono_time history_get_deadline(void)
{
    return (as_mono_time){
        as_time_add(as_system_clock.get_mono(&as_system_clock).us, HISTORY_DEADLINE_US)};
}

/*
 * A list of decisions.
 */

static const struct as_row history_rows[] = {
    {AS_ROW("id", text, as_log_row, id, REQUIRED)},
    {AS_ROW("time", exact, as_log_row, time, REQUIRED)},
    {AS_ROW("target", text, as_log_row, target, REQUIRED)},
    {AS_ROW("target_name", text, as_log_row, target_name, REQUIRED)},
    {AS_ROW("rule", maybe_text, as_log_row, rule, NULLABLE)},
    {AS_ROW("reason", text, as_log_row, reason, REQUIRED)},
    {AS_ROW("direction", text, as_log_row, direction, REQUIRED)},
    {AS_ROW("replicas", i32, as_log_row, from, REQUIRED)},
    {AS_ROW("desired", i32, as_log_row, to, REQUIRED)},
    {AS_ROW("would", i32, as_log_row, would, DEFAULT), .has_at = AS_ROW_HAS(as_log_row, has_would)},
    {AS_ROW("repeats", u64, as_log_row, repeats, REQUIRED)},
    {.name = NULL},
};

/* False: the list is at its limit. */
static bool decisions_add(struct api_history *list, const struct as_row *rows, const void *item)
{
    const struct as_json_writer before = list->json;
    const size_t size_before = list->body.size;
    list->is_cut = list->is_cut || list->count == list->limit;
    if (list->is_cut)
        return false;
    as_rows_write(&list->json, rows, item);
    if (as_buf_check(&list->body) == 0) {
        list->count++;
        return true;
    }
    list->is_cut = true;
    list->json = before;
    list->body.size = size_before;
    list->body.failed = false;
    return false;
}

static bool history_on_row(void *context, const struct as_log_row *row)
{
    struct api_history *list = context;
    list->oldest = row->time;
    return decisions_add(context, history_rows, row);
}

static void history_explain_partial(const struct as_log_history_view *view, const char *effect,
                                    struct as_error *out)
{
    as_error_set(out, "the action log is being indexed (%llu of %llu kB): %s",
                 (unsigned long long)(view->state.indexed_bytes / 1000),
                 (unsigned long long)(view->state.log_bytes / 1000), effect);
}

/* Finds when another replica led, in the time of the list. */
static void history_find_absences(struct api_history *answer,
                                  const struct as_log_history_view *view, as_maybe_time since,
                                  as_maybe_time until)
{
    const struct as_log_absences_query query = {
        .instance = answer->instance,
        .since = since,
        .until = until,
        .deadline = history_get_deadline(),
    };
    as_log_absences_find(view, &query, &answer->absences);
}

static void history_write_absences(struct as_json_writer *json,
                                   const struct as_log_absences *absences)
{
    for (size_t i = 0; i < absences->count; i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(1024);
        as_log_absence_print(&absences->items[i], &text);
        if (as_buf_check(&text) == 0)
            as_json_write_string_size(json, text.data, text.size);
    }
    if (absences->has_more)
        as_json_write_string(json, "other replicas led at further times: give since and until");
}

static void history_end_list(struct api_history *list, const struct as_log_history_view *view)
{
    const bool is_partial = !view->state.is_current;
    const bool is_short = list->is_cut && list->oldest.us != INT64_MAX;
    struct as_json_writer *json = &list->json;
    list->body.max += HISTORY_TAIL_MAX;
    history_find_absences(list, view, is_short ? (as_maybe_time){true, list->oldest} : list->since,
                          list->until);
    as_json_end_array(json);
    if (list->is_cut || *view->problem || is_partial || list->absences.count > 0) {
        as_json_write_key(json, "warnings");
        as_json_begin_array(json);
        if (list->is_cut)
            as_json_write_string(json, "results truncated due to limit");
        if (is_partial) {
            struct as_error error = AS_ERROR_INIT;
            history_explain_partial(view, "decisions may be missing", &error);
            as_json_write_string(json, error.text);
        }
        if (*view->problem)
            as_json_write_string(json, list->reader.is_whole
                                           ? view->problem
                                           : "the history of the action log is not complete");
        history_write_absences(json, &list->absences);
        as_json_end_array(json);
    }
    as_json_end_object(json);
    as_buf_append_char(&list->body, '\n');
}

static void history_run_list(struct as_log_history_job *job, const struct as_log_history_view *view)
{
    struct api_history *list = (struct api_history *)job;
    struct as_error error = AS_ERROR_INIT;
    const struct as_log_query query = {
        .kinds = 1U << AS_RECORD_DECISION,
        .target = list->target,
        .rule = list->rule,
        .reason = list->reason,
        .since = list->since,
        .until = list->until,
        .before_id = list->before,
        .before_at = list->before_at,
        .may_see = list->reader.is_whole ? NULL : history_may_see,
        .on_row = history_on_row,
        .context = list,
        .deadline = history_get_deadline(),
    };
    const int status = view->index ? as_log_index_find(view->index, &query, &error) : 0;
    if (status == 0 || status == -ENOENT)
        history_end_list(list, view);
    else
        history_fail(list, status, &error);
}

static struct api_history *history_begin_list(struct api_request *request, size_t limit)
{
    struct api_history *list = api_history_new(request, HISTORY_BODY_MAX);
    list->job.run = history_run_list;
    list->limit = limit < HISTORY_MAX ? limit : HISTORY_MAX;
    list->oldest.us = INT64_MAX;
    as_json_begin_array(&list->json);
    return list;
}

static char *copy_if_set(const char *text)
{
    return text ? as_xstrdup(text) : NULL;
}

static void history_submit_list(struct api_history *list, const struct api_filter *filter,
                                const char *before, as_maybe_time before_at)
{
    list->target = copy_if_set(filter->target);
    list->rule = copy_if_set(filter->rule);
    list->reason = copy_if_set(filter->has_reason ? as_reason_get_word(filter->reason) : NULL);
    list->before = copy_if_set(before);
    list->since = filter->since;
    list->until = filter->until;
    list->before_at = before_at;
    api_history_submit(list);
}

/*
 * One decision.
 */

/* Appends the document without the members of the chain, which memory does not have either. */
static void append_without_chain(const char *line, size_t size, struct as_buf *out)
{
    static const char *const names[] = {"hash", "prev", "seq"};
    struct json_scan scan;
    enum json_token token;
    const char *from = line;
    json_scan_init(&scan, 1);
    json_scan_feed(&scan, line, size);
    bool is_cut = false;
    while ((token = json_scan_next(&scan)) != JSON_TOKEN_MORE && token != JSON_TOKEN_ERROR) {
        if (token != JSON_TOKEN_NAME)
            continue;
        const char *name = scan.at - scan.text_size - 2; /* these names have no escapes */
        bool is_chain = false;
        for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
            is_chain = is_chain || (scan.text_size == strlen(names[i]) &&
                                    memcmp(scan.text, names[i], scan.text_size) == 0);
        if (is_chain && !is_cut)
            as_buf_append(out, from, (size_t)(name - from));
        if (!is_chain && is_cut)
            from = name;
        is_cut = is_chain;
    }
    as_buf_append(out, from, (size_t)(line + size - from));
    json_scan_deinit(&scan);
}

/* When a decision was made: ids begin with their milliseconds. Unset: the text is no id. */
static as_maybe_time history_get_id_time(const char *id)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    int64_t ms = 0;
    for (size_t i = 0; i < 10; i++) {
        const char *digit = id[i] ? strchr(digits, id[i]) : NULL;
        if (!digit || strlen(id) != AS_ULID_SIZE - 1)
            return (as_maybe_time){.set = false};
        ms = ms << 5 | (digit - digits);
    }
    return (as_maybe_time){ms < INT64_MAX / AS_US_PER_MS, {ms * AS_US_PER_MS}};
}

void api_append_absence(const struct as_log_absences *absences, struct as_buf *out)
{
    if (!absences || absences->count == 0)
        return;
    as_buf_append_str(out, ": ");
    as_log_absence_print(&absences->items[0], out);
}

/* No file has the decision: says who led when it was made. */
static void history_explain_absent(struct api_history *answer,
                                   const struct as_log_history_view *view, struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_ERROR_SIZE);
    const as_maybe_time at = history_get_id_time(answer->id);
    if (at.set)
        history_find_absences(answer, view, at, at);
    api_append_absence(&answer->absences, &text);
    as_buf_append_char(&text, '\0');
    as_error_set(error, "neither memory nor the action log of this replica has this decision%s",
                 as_buf_check(&text) == 0 ? text.data : "");
}

/* The record of the decision. -EAGAIN: it may be in a part of the log that is not indexed yet. */
static int history_read_record(struct api_history *answer, const struct as_log_history_view *view,
                               const struct as_log_query *query, struct as_buf *line_out,
                               struct as_error *error)
{
    if (!view->index) {
        as_error_set(error, "%s", view->problem);
        return -EIO;
    }
    const int status = as_log_index_read(view->index, query, answer->id, line_out, error);
    if (status != -ENOENT)
        return status;
    if (!view->state.is_current) {
        history_explain_partial(view, "try again", error);
        return -EAGAIN;
    }
    history_explain_absent(answer, view, error);
    return status;
}

static void history_run_decision(struct as_log_history_job *job,
                                 const struct as_log_history_view *view)
{
    struct api_history *answer = (struct api_history *)job;
    AS_CLEANUP(as_buf_deinit) struct as_buf line = AS_BUF_INIT_OPEN(AS_LOG_INDEX_LINE_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf document = AS_BUF_INIT_OPEN(AS_LOG_INDEX_LINE_MAX);
    struct as_error error = AS_ERROR_INIT;
    const struct as_log_query query = {
        .kinds = 1U << AS_RECORD_DECISION,
        .may_see = answer->reader.is_whole ? NULL : history_may_see,
        .context = answer,
        .deadline = history_get_deadline(),
    };
    const int status = history_read_record(answer, view, &query, &line, &error);
    if (status != 0) {
        history_fail(answer, status, &error);
        return;
    }
    append_without_chain(line.data, line.size, &document);
    const bool is_too_long = !answer->reader.is_whole && document.size > NARROWED_BYTES_MAX;
    AS_CLEANUP(as_free_p)
    char *text = is_too_long
                     ? NULL
                     : api_copy_document(&answer->reader.request, document.data, document.size);
    if (text)
        as_json_write_raw(&answer->json, text, strlen(text));
    as_json_end_object(&answer->json);
    as_buf_append_char(&answer->body, '\n');
    if (!text || as_buf_check(&answer->body) != 0) {
        as_error_set(&answer->error, "the record is too long, or is no JSON");
        answer->status = 500;
    }
}

static void history_answer_decision(struct api_request *request, const char *id)
{
    struct api_history *answer = api_history_new(request, AS_LOG_INDEX_LINE_MAX + HISTORY_TAIL_MAX);
    answer->job.run = history_run_decision;
    answer->id = as_xasprintf("%.*s", HISTORY_ID_MAX, id);
    api_history_submit(answer);
}

/*
 * One decision for its page, with what followed.
 */

/* Keeps the decision's row. */
static void found_keep_row(struct kept_decision *found, const struct as_log_row *row)
{
    (void)snprintf(found->id, sizeof(found->id), "%s", row->id);
    found->at = row->time;
    found->target = as_xstrdup(row->target);
    found->target_name = as_xstrdup(row->target_name);
    found->rule = row->rule ? as_xstrdup(row->rule) : NULL;
    found->actions = AS_BUF_INIT(DECISION_ACTIONS_MAX);
}

static void found_keep_record(struct kept_decision *found, const struct as_buf *line)
{
    struct as_buf document = AS_BUF_INIT_OPEN(DECISION_BYTES_MAX);
    append_without_chain(line->data, line->size, &document);
    if (as_buf_check(&document) == 0)
        found->record = as_buf_take(&document, &found->record_size);
    as_buf_deinit(&document);
}

static bool found_on_row(void *context, const struct as_log_row *row)
{
    struct api_history *answer = context;
    found_keep_row(&answer->found, row);
    answer->has_found = true;
    return false;
}

/* The newest first: what is kept in the end is the next decision, and the first actions. */
static bool found_on_later_row(void *context, const struct as_log_row *row)
{
    struct api_history *answer = context;
    if (strcmp(row->id, answer->found.id) == 0)
        return false;
    if (row->kind == AS_RECORD_DECISION) {
        found_decision_deinit(&answer->next);
        answer->next = (struct kept_decision){.at = row->time};
        found_keep_row(&answer->next, row);
        answer->has_next = true;
        return true;
    }
    memmove(answer->action_ids[1], answer->action_ids[0],
            (ACTIONS_MAX - 1) * sizeof(answer->action_ids[0]));
    (void)snprintf(answer->action_ids[0], sizeof(answer->action_ids[0]), "%s", row->id);
    answer->action_count += answer->action_count < ACTIONS_MAX;
    return true;
}

static bool is_of_decision(const char *line, size_t size, const char *id)
{
    json_t *record = json_loadb(line, size, 0, NULL);
    const bool is_its = as_str_equal(json_string_value(json_object_get(record, "decision")), id);
    json_decref(record);
    return is_its;
}

static void found_read_later(struct api_history *answer, struct as_log_index *index,
                             const struct as_log_query *query)
{
    struct as_error error;
    struct as_buf line = AS_BUF_INIT_OPEN(DECISION_BYTES_MAX);
    struct as_log_query one = *query;
    one.on_row = NULL;
    if (answer->has_next && as_log_index_read(index, &one, answer->next.id, &line, &error) == 0)
        found_keep_record(&answer->next, &line);
    one.kinds = 1U << AS_RECORD_ACTION;
    for (size_t i = 0; i < answer->action_count; i++) {
        struct as_buf *actions = &answer->found.actions;
        as_buf_clear(&line);
        if (as_log_index_read(index, &one, answer->action_ids[i], &line, &error) != 0 ||
            line.size + 1 > DECISION_ACTIONS_MAX - actions->size ||
            !is_of_decision(line.data, line.size, answer->found.id))
            continue;
        as_buf_append(actions, line.data, line.size);
        as_buf_append_char(actions, '\n');
    }
    as_buf_deinit(&line);
}

static bool found_on_previous_row(void *context, const struct as_log_row *row)
{
    struct api_history *answer = context;
    (void)snprintf(answer->previous, sizeof(answer->previous), "%s", row->id);
    return false;
}

/* Fills `previous`: the id of the newest decision on the target before this one; "": the index has
 * none. */
static int found_read_previous(struct api_history *answer, struct as_log_index *index,
                               const char *target, const char *id, as_maybe_time at,
                               struct as_error *error)
{
    const struct as_log_query query = {
        .kinds = 1U << AS_RECORD_DECISION,
        .target = target,
        .before_id = id,
        .before_at = at,
        .may_see = answer->reader.is_whole ? NULL : history_may_see,
        .on_row = found_on_previous_row,
        .context = answer,
        .deadline = history_get_deadline(),
    };
    return as_log_index_find(index, &query, error);
}

static void history_run_page(struct as_log_history_job *job, const struct as_log_history_view *view)
{
    struct api_history *answer = (struct api_history *)job;
    AS_CLEANUP(as_buf_deinit) struct as_buf line = AS_BUF_INIT_OPEN(AS_LOG_INDEX_LINE_MAX);
    struct as_error error = AS_ERROR_INIT;
    struct as_log_query query = {
        .kinds = 1U << AS_RECORD_DECISION,
        .may_see = answer->reader.is_whole ? NULL : history_may_see,
        .on_row = found_on_row,
        .context = answer,
        .deadline = history_get_deadline(),
    };
    int status = history_read_record(answer, view, &query, &line, &error);
    if (status == 0) {
        found_keep_record(&answer->found, &line);
        query.kinds |= 1U << AS_RECORD_ACTION;
        query.target = answer->found.target;
        query.since = (as_maybe_time){true, answer->found.at};
        query.until = (as_maybe_time){true, {answer->found.at.us + FOLLOWED_US}};
        query.on_row = found_on_later_row;
        status = as_log_index_find(view->index, &query, &error);
    }
    if (status == 0) {
        found_read_later(answer, view->index, &query);
        status = found_read_previous(answer, view->index, answer->found.target, answer->found.id,
                                     (as_maybe_time){.set = false}, &error);
    }
    if (status != 0 && status != -ENOENT)
        history_fail(answer, status, &error);
}

static void history_run_previous(struct as_log_history_job *job,
                                 const struct as_log_history_view *view)
{
    struct api_history *answer = (struct api_history *)job;
    struct as_error error = AS_ERROR_INIT;
    int status = -EIO;
    if (view->index)
        status = found_read_previous(answer, view->index, answer->target, answer->id,
                                     answer->before_at, &error);
    else
        as_error_set(&error, "%s", view->problem);
    if (status == 0 && !*answer->previous && !view->state.is_current) {
        history_explain_partial(view, "try again", &error);
        status = -EAGAIN;
    }
    if (status == 0 && !*answer->previous)
        history_find_absences(answer, view, (as_maybe_time){.set = false}, answer->before_at);
    if (status != 0) {
        history_fail(answer, status, &error);
    } else if (*answer->previous) {
        free(answer->id);
        answer->id = as_xstrdup(answer->previous);
        answer->previous[0] = '\0';
        history_run_page(job, view);
    }
}

static void history_show_page(struct as_log_history_job *job)
{
    struct api_history *answer = (struct api_history *)job;
    const struct api_found found = {
        .decision = answer->has_found && answer->status == 200 ? &answer->found : NULL,
        .next = answer->has_next ? &answer->next : NULL,
        .previous = answer->previous,
        .problem = answer->error.text,
        .absences = &answer->absences,
    };
    answer->api->found = &found;
    as_api_answer(answer->api, answer->exchange, answer->endpoint, answer->rest,
                  answer->reader.request.who, NULL);
    answer->api->found = NULL;
    api_history_free(answer);
}

static struct api_history *history_begin_page(struct api_request *request, const char *id,
                                              const struct as_api_endpoint *endpoint)
{
    struct api_history *answer = api_history_new(request, HISTORY_TAIL_MAX);
    answer->job.run = history_run_page;
    answer->job.done = history_show_page;
    answer->id = as_xasprintf("%.*s", HISTORY_ID_MAX, id);
    answer->api = request->api;
    answer->endpoint = endpoint;
    answer->rest = request->rest; /* of the exchange's path */
    answer->error = AS_ERROR_INIT;
    return answer;
}

void api_read_decision(struct api_request *request, const char *id,
                       const struct as_api_endpoint *endpoint)
{
    api_history_submit(history_begin_page(request, id, endpoint));
}

void api_read_previous_decision(struct api_request *request, const struct kept_decision *decision,
                                const struct as_api_endpoint *endpoint)
{
    struct api_history *answer = history_begin_page(request, decision->id, endpoint);
    answer->job.run = history_run_previous;
    answer->target = as_xstrdup(decision->target);
    answer->before_at = (as_maybe_time){true, decision->at};
    api_history_submit(answer);
}

/*
 * Requests.
 */

int api_parameter_get_time(const struct api_request *request, const char *name,
                           as_maybe_time *time_out, struct as_error *error)
{
    const char *text = api_parameter_find(request, name);
    as_maybe_time time = {.set = text != NULL};
    double seconds;
    if (!text || as_wall_time_parse(text, strlen(text), &time.at) == 0) {
        *time_out = time;
        return 0;
    }
    if (as_number_parse_double(text, strlen(text), &seconds) == 0 && seconds >= 0 &&
        seconds < 253402300800.0) { /* the year 10000 */
        time.at.us = (int64_t)(seconds * (double)AS_US_PER_S);
        *time_out = time;
        return 0;
    }
    as_error_set(error, "%s: expected a time as 2026-11-20T10:00:00Z, or seconds since 1970", name);
    return -EINVAL;
}

static int read_filter(const struct api_request *request, struct api_filter *filter,
                       struct as_error *error)
{
    const char *reason = api_parameter_find(request, "reason");
    *filter = (struct api_filter){
        .reader = request,
        .target = api_parameter_find(request, "target"),
        .rule = api_parameter_find(request, "rule"),
        .before = api_parameter_find(request, "before"),
        .has_reason = reason != NULL,
    };
    if (reason && !as_reason_find(reason, &filter->reason)) {
        as_error_set(error, "reason: there is no reason code %s", reason);
        return -EINVAL;
    }
    const int status = api_parameter_get_time(request, "since", &filter->since, error);
    return status != 0 ? status : api_parameter_get_time(request, "until", &filter->until, error);
}

static bool api_may_see_decision(const struct api_request *request,
                                 const struct kept_decision *decision)
{
    return api_may_see_target(request, decision->target_name, decision->target);
}

/* NULL also for a decision that the reader may not see. */
static const struct kept_decision *api_find_seen_decision(const struct api_request *request,
                                                          const char *id)
{
    const struct kept_decision *decision = api_find_decision(request->api, id);
    return decision && api_may_see_decision(request, decision) ? decision : NULL;
}

static bool api_is_wanted(const struct api_filter *filter, const struct kept_decision *decision)
{
    return api_may_see_decision(filter->reader, decision) &&
           (!filter->target || as_target_is_same(filter->target, decision->target) ||
            strcmp(filter->target, decision->target_name) == 0) &&
           (!filter->rule || as_str_equal(filter->rule, decision->rule)) &&
           (!filter->has_reason || filter->reason == decision->reason) &&
           (!filter->since.set || decision->at.us >= filter->since.at.us) &&
           (!filter->until.set || decision->at.us <= filter->until.at.us);
}

/* `before` a decision that is not kept any more: an empty list. */
static const struct kept_decision *get_first(const struct as_api *api,
                                             const struct api_filter *filter)
{
    if (!filter->before)
        return TAILQ_FIRST(&api->decisions);
    const struct kept_decision *last_seen = api_find_seen_decision(filter->reader, filter->before);
    return last_seen ? TAILQ_NEXT(last_seen, next) : NULL;
}

/* Whether memory lacks decisions that the list may need: it has fewer than `limit`, or as many and
 * cannot say whether there are more. */
static bool api_is_beyond_memory(const struct as_api *api, const struct api_filter *filter,
                                 size_t limit)
{
    const struct kept_decision *oldest = TAILQ_LAST(&api->decisions, kept_decision_list);
    size_t count = 0;
    if (filter->before && !api_find_seen_decision(filter->reader, filter->before))
        return true;
    if (oldest && filter->since.set && oldest->at.us < filter->since.at.us)
        return false;
    const struct kept_decision *decision = get_first(api, filter);
    for (; decision && count <= limit; decision = TAILQ_NEXT(decision, next))
        count += api_is_wanted(filter, decision);
    return count <= limit;
}

static void api_answer_older_decisions(struct api_request *request, const struct api_filter *filter,
                                       size_t limit)
{
    const struct as_api *api = request->api;
    const struct kept_decision *oldest = TAILQ_LAST(&api->decisions, kept_decision_list);
    struct api_history *list = history_begin_list(request, limit);
    const bool is_in_memory = !filter->before || api_find_seen_decision(request, filter->before);
    const struct kept_decision *decision = get_first(api, filter);
    for (; decision; decision = TAILQ_NEXT(decision, next)) {
        if (api_is_wanted(filter, decision))
            (void)decisions_add(list, decision_rows, decision);
    }
    if (is_in_memory && oldest)
        history_submit_list(list, filter, oldest->id, (as_maybe_time){true, oldest->at});
    else
        history_submit_list(list, filter, filter->before, (as_maybe_time){.set = false});
}

void api_answer_decisions(struct api_request *request)
{
    struct as_error error = AS_ERROR_INIT;
    struct api_list list;
    struct api_filter filter;
    if (read_filter(request, &filter, &error) != 0) {
        as_reply_error(request->exchange, 400, NULL, "%s", error.text);
        return;
    }
    if (!api_list_begin(&list, request, DECISIONS_DEFAULT))
        return;
    if (request->api->history_log && api_is_beyond_memory(request->api, &filter, list.limit)) {
        as_buf_clear(&request->api->body);
        api_answer_older_decisions(request, &filter, list.limit);
        return;
    }
    const struct kept_decision *decision = get_first(request->api, &filter);
    for (; decision && !list.is_cut; decision = TAILQ_NEXT(decision, next)) {
        if (api_is_wanted(&filter, decision))
            api_list_add(&list, decision_rows, decision);
    }
    api_list_end(&list);
}

void api_answer_decision(struct api_request *request)
{
    AS_CLEANUP(as_free_p) char *id = api_decode_rest(request);
    const struct kept_decision *decision = id ? api_find_seen_decision(request, id) : NULL;
    if (!decision && id && request->api->history_log) {
        history_answer_decision(request, id);
        return;
    }
    if (!decision) {
        as_reply_error(request->exchange, 404, NULL,
                       "not among the last %d decisions; the action log has them all",
                       DECISIONS_MAX);
        return;
    }
    api_begin(request);
    /* A narrowed reader gets a record without names of credentials that are not its own. */
    if (!decision->record || !api_write_document(request, decision->record, decision->record_size))
        as_rows_write(&request->json, decision_rows, decision);
    api_end(request);
}
