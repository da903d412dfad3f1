/*
 * The read API: its answers about the replica, approvals and incidents, its memory of decisions,
 * and what the other files of the API use: the query string, JSON answers, lists with a limit,
 * types of rows. Rules and targets are in api_rules.c and api_targets.c, older decisions in
 * api_decisions.c. All other requests are answered at once, from memory. The API changes nothing
 * and checks no credentials.
 */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/http.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cluster/node_template.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/rows.h>
#include <alertscaler/log/record.h>
#include <alertscaler/model/forbidden.h>
#include <alertscaler/model/scope.h>

#include "api_private.h"

/*
 * Names of credentials in answers. The sources of the kill switch are no credentials.
 */

#define OTHER        "another credential"
#define OTHER_TARGET "another target"
#define KILL_SWITCH  "kill switch " /* "file" or "annotation": no credential */

static bool api_is_whole(const struct api_request *request)
{
    return as_scope_is_whole(request->view.scopes, request->view.scope_count, request->who);
}

static bool api_may_see(const struct api_request *request, const char *name)
{
    return *name == '\0' || strcmp(name, request->who) == 0 || api_is_whole(request);
}

const char *api_show_credential(const struct api_request *request, const char *name)
{
    return as_str_starts_with(name, KILL_SWITCH) || api_may_see(request, name) ? name : OTHER;
}

bool api_may_see_target(const struct api_request *request, const char *name, const char *id)
{
    const struct as_view *view = &request->view;
    return as_scope_allows_target(view->scopes, view->scope_count, request->who, name, id);
}

bool api_may_see_rule(const struct api_request *request, const char *rule, const char *target_name,
                      const char *target_id)
{
    const struct as_view *view = &request->view;
    return as_scope_allows(view->scopes, view->scope_count, request->who, rule, target_name,
                           target_id);
}

const char *api_show_target(const struct api_request *request, const char *name)
{
    return !name || api_may_see_target(request, name, "") ? name : OTHER_TARGET;
}

static void hide_member(const struct api_request *request, json_t *object, const char *key)
{
    const char *name = json_string_value(json_object_get(object, key));
    const char *shown = name ? api_show_credential(request, name) : NULL;
    if (shown != name)
        json_object_set_new(object, key, json_string(shown));
}

/* "who": of pauses, commands and approvals. A pause of one direction holds by the name of its
 * credential. */
void api_hide_credentials(const struct api_request *request, json_t *record)
{
    const char *key;
    json_t *value;
    size_t i;
    if (as_str_equal(json_string_value(json_object_get(record, "by")),
                     as_holder_get_word(AS_HOLDER_PAUSE)))
        hide_member(request, record, "name");
    hide_member(request, record, "who");
    json_object_foreach(record, key, value) api_hide_credentials(request, value);
    json_array_foreach(record, i, value) api_hide_credentials(request, value);
}

char *api_copy_document(const struct api_request *request, const char *json, size_t size)
{
    if (api_is_whole(request))
        return as_xstrndup(json, size);
    json_t *document = json_loadb(json, size, 0, NULL);
    api_hide_credentials(request, document);
    char *text = json_dumps(document, JSON_COMPACT);
    json_decref(document);
    return text;
}

bool api_write_document(struct api_request *request, const char *json, size_t size)
{
    AS_CLEANUP(as_free_p) char *text = api_copy_document(request, json, size);
    if (text)
        as_json_write_raw(&request->json, text, strlen(text));
    return text != NULL;
}

/*
 * The query string, read by libevent's parser, and the limits of its parameters.
 */

static int api_parameters_parse(struct api_request *request, struct as_error *error)
{
    TAILQ_INIT(&request->parameters);
    TAILQ_INIT(&request->typed);
    const char *query = as_http_exchange_get_query(request->exchange);
    if (*query && evhttp_parse_query_str(query, &request->parameters) != 0) {
        as_error_set(error, "the query string is not of the form name=value&...");
        return -EINVAL;
    }
    return 0;
}

static void api_parameters_deinit(struct api_request *request)
{
    evhttp_clear_headers(&request->parameters);
    evhttp_clear_headers(&request->typed);
}

const char *api_parameter_find(const struct api_request *request, const char *name)
{
    const char *value = evhttp_find_header(&request->parameters, name);
    return as_str_is_empty(value) ? NULL : value;
}

char *api_decode_rest(const struct api_request *request)
{
    size_t size;
    char *text = evhttp_uridecode(request->rest, 0, &size);
    if (text && strlen(text) == size)
        return text;
    free(text);
    return NULL;
}

/*
 * Answers in the form of Prometheus' API: {"status":"success","data":...,"warnings":[...]}. Errors
 * are in auth/reply.h.
 */

#define KEPT_BODY ((size_t)1024 * 1024)
#define TAIL_MAX  ((size_t)4096) /* reserved for the end of the answer after a truncated list */
#define JSON_TYPE "application/json"

void api_reply_body(struct api_request *request, int status, const char *content_type,
                    const char *headers)
{
    struct as_buf *body = &request->api->body;
    if (as_buf_check(body) != 0)
        as_reply_error(request->exchange, 500, NULL, "the answer would be above %zu bytes",
                       API_BODY_MAX);
    else
        as_http_exchange_reply(request->exchange, &(struct as_http_answer){
                                                      .status = status,
                                                      .content_type = content_type,
                                                      .headers = headers,
                                                      .body = body->data,
                                                      .body_size = body->size,
                                                  });
    if (body->capacity > KEPT_BODY)
        as_buf_deinit(body);
    as_buf_clear(body);
    body->max = API_BODY_MAX;
}

void api_begin(struct api_request *request)
{
    struct as_json_writer *json = &request->json;
    as_json_init(json, &request->api->body, AS_JSON_ANY_ORDER);
    as_json_begin_object(json);
    as_json_write_member(json, "status", "success");
    as_json_write_key(json, "data");
}

void api_end(struct api_request *request)
{
    as_json_end_object(&request->json);
    as_buf_append_char(&request->api->body, '\n');
    api_reply_body(request, 200, JSON_TYPE, AS_REPLY_NO_STORE);
}

bool api_list_begin(struct api_list *list, struct api_request *request, size_t fallback)
{
    const char *text = api_parameter_find(request, "limit");
    int64_t limit = (int64_t)fallback;
    if (text && (as_number_parse_i64(text, strlen(text), &limit) != 0 || limit < 1 ||
                 limit > API_LIMIT_MAX)) {
        as_reply_error(request->exchange, 400, NULL, "limit: expected a number from 1 to %d",
                       API_LIMIT_MAX);
        return false;
    }
    *list = (struct api_list){.request = request, .limit = (size_t)limit};
    api_begin(request);
    as_json_begin_array(&request->json);
    return true;
}

void api_list_add(struct api_list *list, const struct as_row *rows, const void *item)
{
    struct as_buf *body = &list->request->api->body;
    const struct as_json_writer before = list->request->json;
    const size_t size_before = body->size;
    list->is_cut = list->is_cut || list->count == list->limit;
    if (list->is_cut)
        return;
    list->count++;
    as_rows_write(&list->request->json, rows, item);
    if (as_buf_check(body) == 0)
        return;
    list->is_cut = true;
    list->request->json = before;
    body->size = size_before;
    body->failed = false;
}

void api_list_end(struct api_list *list)
{
    struct as_json_writer *json = &list->request->json;
    list->request->api->body.max = API_BODY_MAX + TAIL_MAX;
    as_json_end_array(json);
    if (list->is_cut) {
        as_json_write_key(json, "warnings");
        as_json_begin_array(json);
        as_json_write_string(json, "results truncated due to limit");
        as_json_end_array(json);
    }
    api_end(list->request);
}

/*
 * Types of rows.
 */

struct api_request *api_get_request(struct as_json_writer *json)
{
    return (struct api_request *)(void *)((char *)json - offsetof(struct api_request, json));
}

static void api_credential_write(struct as_json_writer *json, const struct as_row *row,
                                 const void *base)
{
    const char *const *name = as_row_at(row, base);
    as_json_write_string(json, api_show_credential(api_get_request(json), *name));
}

static bool api_moment_is_unset(const struct as_row *row, const void *base)
{
    return !as_moment_is_set(*(const struct as_moment *)as_row_at(row, base));
}

/* Its wall time. */
static void api_moment_write(struct as_json_writer *json, const struct as_row *row,
                             const void *base)
{
    as_row_exact.write(json, row, (const char *)base + offsetof(struct as_moment, wall));
}

const struct as_row_type as_row_credential = {.write = api_credential_write};
const struct as_row_type as_row_moment = {.write = api_moment_write,
                                          .is_unset = api_moment_is_unset};

/*
 * Why the last attempt to read or set a target failed, as text: the last failure per target, for at
 * most 1,000 targets. In memory only: the action log has all.
 */

static void api_forget(struct as_api *api, struct kept_failure *failure)
{
    HASH_DEL(api->failures, failure);
    free(failure->target);
    free(failure->text);
    free(failure);
}

static void api_keep_failure(struct as_api *api, const struct as_action_record *record)
{
    struct kept_failure *failure = NULL;
    HASH_FIND_STR(api->failures, record->target, failure);
    if (failure)
        api_forget(api, failure);
    if (record->outcome == AS_REASON_APPLIED || as_str_is_empty(record->message))
        return;
    if (HASH_COUNT(api->failures) >= FAILURES_MAX)
        api_forget(api, api->failures); /* the oldest: uthash keeps insertion order */
    failure = as_xcalloc(1, sizeof(*failure));
    failure->target = as_xstrdup(record->target);
    const size_t size = strlen(record->message);
    failure->text =
        as_xstrndup(record->message, as_str_cut_utf8(record->message, size, FAILURE_BYTES_MAX));
    HASH_ADD_KEYPTR(hh, api->failures, failure->target, strlen(failure->target), failure);
}

const char *api_find_failure(const struct as_api *api, const char *target)
{
    const struct kept_failure *failure = NULL;
    HASH_FIND_STR(api->failures, target, failure);
    return failure ? failure->text : NULL;
}

static void api_free_failures(struct as_api *api)
{
    while (api->failures)
        api_forget(api, api->failures);
}

/*
 * The latest decisions. api_decisions.c answers requests for them.
 */

struct kept_decision *api_decision_free(struct kept_decision *decision)
{
    if (!decision)
        return NULL;
    free(decision->target);
    free(decision->target_name);
    free(decision->rule);
    free(decision->record);
    as_buf_deinit(&decision->actions);
    free(decision->incidents);
    free(decision);
    return NULL;
}

/* One that is too long is not kept: the action log has it. */
static void keep_record(struct kept_decision *decision, const struct as_buf *record)
{
    if (as_buf_check(record) != 0 || record->size > DECISION_BYTES_MAX)
        return;
    decision->record = as_xstrndup(record->data, record->size);
    decision->record_size = record->size;
}

/* Of the proposals of the rule that won, the one with the highest size. */
static const char *api_find_cause(const struct as_decision_record *record)
{
    const struct as_decide_input *input = record->input;
    const char *cause = NULL;
    int32_t highest = -1;
    for (size_t i = 0; record->output->rule && i < input->proposal_count; i++) {
        const struct as_proposal_result *result = &record->results[i];
        if (!as_str_equal(input->proposals[i].rule, record->output->rule) || !result->has_size ||
            result->desired <= highest)
            continue;
        highest = result->desired;
        cause = input->proposals[i].incident;
    }
    return cause ? cause : "";
}

static void keep_incidents(struct kept_decision *decision, const struct as_decision_record *record)
{
    (void)snprintf(decision->cause, sizeof(decision->cause), "%s", api_find_cause(record));
    decision->incident_count = record->incident_count;
    decision->incidents = as_xcalloc(record->incident_count + 1, sizeof(*decision->incidents));
    for (size_t i = 0; i < record->incident_count; i++)
        decision->incidents[i] = record->incidents[i];
}

static void forget_oldest(struct as_api *api)
{
    struct kept_decision *oldest = TAILQ_LAST(&api->decisions, kept_decision_list);
    TAILQ_REMOVE(&api->decisions, oldest, next);
    api->decision_count--;
    api->decision_bytes -= oldest->record_size + oldest->actions.size;
    api_decision_free(oldest);
}

static void keep_rule_value(struct kept_decision *decision, const struct as_decision_record *record)
{
    for (size_t i = 0; i < record->input->proposal_count; i++) {
        const struct as_proposal *proposal = &record->input->proposals[i];
        const struct as_proposal_result *result = &record->results[i];
        const double value = result->has_value ? result->value : proposal->value;
        if (!as_str_equal(decision->rule, proposal->rule) ||
            proposal->action.kind != AS_ACTION_TRACK ||
            proposal->action.track.goal == AS_GOAL_UTILIZATION ||
            !(result->has_value || proposal->has_value) || !isfinite(value))
            continue;
        decision->has_value = true;
        decision->value = value;
        decision->goal = proposal->action.track.value;
        return;
    }
}

static void api_keep_decision(struct as_api *api, const struct as_decision_record *record,
                              const struct as_buf *json)
{
    const struct as_decision *output = record->output;
    struct kept_decision *decision = as_xcalloc(1, sizeof(*decision));
    (void)snprintf(decision->id, sizeof(decision->id), "%s", record->id);
    decision->at = record->input->now;
    decision->target = as_xstrdup(record->target);
    decision->target_name = as_xstrdup(record->target_name);
    decision->rule = output->rule ? as_xstrdup(output->rule) : NULL;
    decision->reason = output->reason;
    decision->direction = output->direction;
    decision->replicas = output->replicas;
    decision->desired = output->desired;
    decision->repeats = record->repeats;
    decision->has_would = output->has_would;
    snprintf(decision->unit, sizeof(decision->unit), "%s", record->unit ? record->unit : "");
    decision->would = output->would;
    (void)snprintf(decision->pool_decision, sizeof(decision->pool_decision), "%s",
                   record->pool_decision ? record->pool_decision : "");
    decision->actions = AS_BUF_INIT(DECISION_ACTIONS_MAX);
    decision->failure = AS_REASON_APPLIED;
    if (decision->rule)
        keep_rule_value(decision, record);
    keep_record(decision, json);
    keep_incidents(decision, record);
    TAILQ_INSERT_HEAD(&api->decisions, decision, next);
    api->decision_count++;
    api->decision_bytes += decision->record_size;
    while (api->decision_count > DECISIONS_MAX || api->decision_bytes > DECISIONS_BYTES_MAX)
        forget_oldest(api);
}

static void api_keep_action(struct as_api *api, const struct as_action_record *record,
                            const struct as_buf *json)
{
    struct kept_decision *decision = TAILQ_FIRST(&api->decisions);
    while (decision && !as_str_equal(decision->id, record->decision))
        decision = TAILQ_NEXT(decision, next);
    if (decision && record->to >= 0)
        decision->failure = record->outcome;
    if (!decision || as_buf_check(json) != 0 ||
        json->size + 1 > DECISION_ACTIONS_MAX - decision->actions.size)
        return;
    as_buf_append(&decision->actions, json->data, json->size);
    as_buf_append_char(&decision->actions, '\n');
    api->decision_bytes += json->size + 1;
}

const struct kept_decision *api_find_decision(const struct as_api *api, const char *id)
{
    const struct kept_decision *decision;
    TAILQ_FOREACH (decision, &api->decisions, next) {
        if (strcmp(decision->id, id) == 0)
            return decision;
    }
    return NULL;
}

/*
 * Incidents that have ended, for the pages; in memory only.
 */

struct ended_incident *api_ended_free(struct ended_incident *ended)
{
    if (!ended)
        return NULL;
    as_labels_free(ended->annotations);
    free(ended->generator_url);
    free(ended->external_url);
    for (size_t i = 0; i < ended->target_count; i++) {
        free((char *)(uintptr_t)ended->targets[i].target);
        free((char *)(uintptr_t)ended->targets[i].rule);
    }
    free(ended->targets);
    as_labels_free(ended->labels);
    free(ended);
    return NULL;
}

static void forget_oldest_ended(struct as_api *api)
{
    struct ended_incident *ended = TAILQ_LAST(&api->ended, ended_incident_list);
    TAILQ_REMOVE(&api->ended, ended, next);
    api->ended_count--;
    api->ended_bytes -= ended->size;
    api_ended_free(ended);
}

static char *api_copy_url(const char *url, size_t *size_io)
{
    *size_io += url ? strlen(url) + 1 : 0;
    return url ? as_xstrdup(url) : NULL;
}

static void api_keep_ended(struct as_api *api, const struct as_incident_record *record,
                           as_wall_time now)
{
    if (record->event != AS_INCIDENT_CLOSED && record->event != AS_INCIDENT_EXPIRED)
        return;
    const struct as_incident_state *incident = record->incident;
    struct ended_incident *ended = as_xcalloc(1, sizeof(*ended));
    ended->digest = record->digest;
    ended->has_expired = record->event == AS_INCIDENT_EXPIRED;
    ended->opened = incident ? incident->opened.wall : record->starts_at;
    ended->starts_at = record->starts_at;
    ended->at = now;
    ended->labels = as_labels_copy(record->labels);
    ended->targets = as_xcalloc(record->target_count + 1, sizeof(*ended->targets));
    ended->target_count = record->target_count;
    ended->size = sizeof(*ended) + as_labels_measure(record->labels);
    if (incident && incident->annotations) {
        ended->annotations = as_labels_copy(incident->annotations);
        ended->size += as_labels_measure(incident->annotations);
    }
    if (incident) {
        ended->generator_url = api_copy_url(incident->generator_url, &ended->size);
        ended->external_url = api_copy_url(incident->external_url, &ended->size);
    }
    for (size_t i = 0; i < record->target_count; i++) {
        ended->targets[i].target = as_xstrdup(record->targets[i].target);
        ended->targets[i].rule = as_xstrdup(record->targets[i].rule);
        ended->size += sizeof(*ended->targets) + strlen(ended->targets[i].target) +
                       strlen(ended->targets[i].rule);
    }
    TAILQ_INSERT_HEAD(&api->ended, ended, next);
    api->ended_count++;
    api->ended_bytes += ended->size;
    while (api->ended_count > ENDED_MAX || api->ended_bytes > ENDED_BYTES_MAX)
        forget_oldest_ended(api);
}

/*
 * Requests for approvals.
 */

#define APPROVALS_DEFAULT 1000

AS_ROW_WORDS(approval_answer_get_word, enum as_approval_answer, AS_APPROVAL_ANSWER_COUNT,
             as_approval_answer_get_word)

static const struct as_row approval_rows[] = {
    {AS_ROW("id", text, as_approval_view, state.id, REQUIRED)},
    {AS_ROW("answer", word, as_approval_view, state.answer, REQUIRED),
     .get_word = approval_answer_get_word},
    {AS_ROW("target", text, as_approval_view, target, REQUIRED)},
    {AS_ROW("target_name", text, as_approval_view, name, REQUIRED)},
    {AS_ROW("rule", text, as_approval_view, state.rule, REQUIRED)},
    {AS_ROW("incident", text, as_approval_view, state.incident, REQUIRED)},
    {AS_ROW("direction", is_up, as_approval_view, state.is_up, REQUIRED)},
    {AS_ROW("from", i32, as_approval_view, state.from, REQUIRED)},
    {AS_ROW("to", i32, as_approval_view, state.to, REQUIRED)},
    {AS_ROW("unit", text, as_approval_view, unit, OPTIONAL)},
    {AS_ROW("decision", text, as_approval_view, state.decision, REQUIRED)},
    {AS_ROW("asked", exact, as_approval_view, state.asked.wall, REQUIRED)},
    {AS_ROW("answered", moment, as_approval_view, state.answered, NULLABLE)},
    {AS_ROW("until", exact, as_approval_view, until, REQUIRED)},
    {AS_ROW("who", credential, as_approval_view, state.who, REQUIRED)},
    {.name = NULL},
};

static void list_approval(void *context, const struct as_approval_view *view)
{
    struct api_list *list = context;
    if (api_may_see_rule(list->request, view->state.rule, view->name, view->target))
        api_list_add(list, approval_rows, view);
}

void api_answer_approvals(struct api_request *request)
{
    const struct as_view *view = &request->view;
    struct api_list list;
    if (!api_list_begin(&list, request, APPROVALS_DEFAULT))
        return;
    if (view->engine)
        as_engine_visit_approvals(view->engine, view->mono, view->wall, list_approval, &list);
    api_list_end(&list);
}

/*
 * Open incidents.
 */

#define INCIDENTS_DEFAULT 1000

struct incident_answer {
    const struct as_incident_state *state;
    const struct as_incident_target *targets;
    size_t target_count;
    bool is_silenced;
};

/* First who opened it, then who else reported it. */
static void api_credentials_write(struct as_json_writer *json, const struct as_row *row,
                                  const void *base)
{
    const struct api_request *request = api_get_request(json);
    const struct as_incident_state *state = base;
    as_json_begin_array(json);
    for (size_t i = 0; i < state->credential_count; i++) {
        const char *name = state->credentials[i];
        if (api_may_see(request, name))
            as_json_write_string(json, name);
    }
    as_json_end_array(json);
}

static const struct as_row incident_target_rows[] = {
    {AS_ROW("target", text, as_incident_target, target, REQUIRED)},
    {AS_ROW("rule", text, as_incident_target, rule, REQUIRED)},
    {AS_ROW("replicas", size, as_incident_target, replicas, NULLABLE)},
    {.name = NULL},
};

#define STATE .via = AS_ROW_VIA(incident_answer, state)

static const struct as_row incident_rows[] = {
    {AS_ROW("digest", digest, as_incident_state, key.digest, REQUIRED), STATE},
    {AS_ROW("fingerprint", hex, as_incident_state, fingerprint, REQUIRED), STATE},
    {AS_ROW("startsAt", exact, as_incident_state, starts_at, REQUIRED), STATE},
    {AS_ROW("opened", moment, as_incident_state, opened, NULLABLE), STATE},
    {AS_ROW("seen", moment, as_incident_state, seen, NULLABLE), STATE},
    {AS_ROW("receivers", texts, as_incident_state, receivers, REQUIRED), STATE,
     .count_at = AS_ROW_COUNT(as_incident_state, receiver_count)},
    {API_HOOK("credentials", api_credentials_write), STATE},
    {AS_ROW("silenced", flag, incident_answer, is_silenced, REQUIRED)},
    {AS_ROW("labels", label_map, as_incident_state, labels, REQUIRED), STATE},
    {AS_ROW("annotations", label_map, as_incident_state, annotations, REQUIRED), STATE},
    {AS_ROW("generatorURL", maybe_text, as_incident_state, generator_url, NULLABLE), STATE},
    {AS_ROW("externalURL", maybe_text, as_incident_state, external_url, NULLABLE), STATE},
    {AS_ROW_OF("targets", list, incident_answer, targets, REQUIRED, incident_target_rows),
     .count_at = AS_ROW_COUNT(incident_answer, target_count)},
    {.name = NULL},
};

/* Without the targets of others. */
static void list_incident(void *context, const struct as_incident_state *state,
                          const struct as_incident_target *targets, size_t target_count)
{
    struct api_list *list = context;
    const struct api_request *request = list->request;
    const bool is_whole = api_is_whole(request);
    if (!state->is_open)
        return;
    struct as_incident_target *seen = as_xcalloc(target_count + 1, sizeof(*seen));
    struct incident_answer answer = {
        .state = state, .targets = seen, .is_silenced = as_moment_is_set(state->silenced)};
    for (size_t i = 0; i < target_count; i++) {
        const char *id = targets[i].target;
        if (is_whole || api_may_see_rule(request, targets[i].rule,
                                         as_engine_find_name(request->view.engine, id), id))
            seen[answer.target_count++] = targets[i];
    }
    if (is_whole || answer.target_count > 0)
        api_list_add(list, incident_rows, &answer);
    free(seen);
}

void api_answer_incidents(struct api_request *request)
{
    struct api_list list;
    if (!api_list_begin(&list, request, INCIDENTS_DEFAULT))
        return;
    if (request->view.engine)
        as_engine_visit_incidents(request->view.engine, list_incident, &list);
    api_list_end(&list);
}

void api_answer_healthy(struct api_request *request)
{
    as_reply_text(request->exchange, 200, NULL, "healthy");
}

void api_answer_ready(struct api_request *request)
{
    const char *why_not = request->view.not_ready;
    if (why_not)
        as_reply_text(request->exchange, 503, NULL, "not ready: %s", why_not);
    else
        as_reply_text(request->exchange, 200, NULL, "ready");
}

void api_answer_metrics(struct api_request *request)
{
    const enum as_metrics_format format =
        as_metrics_choose_format(as_http_exchange_find_header(request->exchange, "Accept"));
    as_metrics_print(request->api->config.metrics, &request->view, format, &request->api->body);
    api_reply_body(request, 200, as_metrics_get_content_type(format), NULL);
}

void api_answer_unknown(struct api_request *request)
{
    as_reply_error(request->exchange, 404, NULL, "the API has no such path: %s",
                   as_http_exchange_get_path(request->exchange));
}

/* False after answering that another replica must be asked. */
static bool check_leader(const struct api_request *request, const struct as_api_endpoint *endpoint)
{
    const struct as_view *view = &request->view;
    if (!endpoint->needs_leader || view->leader.is_leader)
        return true;
    as_reply_error(request->exchange, 503, AS_REPLY_LATER, "%s: ask that one",
                   view->not_ready ? view->not_ready : "not the leader");
    return false;
}

struct as_api *as_api_new(const struct as_api_config *config)
{
    struct as_api *api = as_xcalloc(1, sizeof(*api));
    api->config = *config;
    api->config.instance = api->instance = as_xstrdup(config->instance);
    api->body = AS_BUF_INIT_OPEN(API_BODY_MAX);
    api->history = as_history_new(AS_HISTORY_BYTES_MAX);
    TAILQ_INIT(&api->decisions);
    TAILQ_INIT(&api->ended);
    return api;
}

struct as_api *as_api_free(struct as_api *api)
{
    if (!api)
        return NULL;
    struct kept_decision *decision;
    while ((decision = TAILQ_FIRST(&api->decisions))) {
        TAILQ_REMOVE(&api->decisions, decision, next);
        api_decision_free(decision);
    }
    while (!TAILQ_EMPTY(&api->ended))
        forget_oldest_ended(api);
    api_free_failures(api);
    as_history_free(api->history);
    as_buf_deinit(&api->body);
    free(api->instance);
    free(api);
    return NULL;
}

void as_api_set_history_log(struct as_api *api, struct as_log_history *history)
{
    api->history_log = history;
}

void as_api_on_end(struct as_api *api, as_wall_time now)
{
    as_history_interrupt(api->history, now);
}

void as_api_on_return(struct as_api *api, as_wall_time now)
{
    while (!TAILQ_EMPTY(&api->decisions))
        forget_oldest(api);
    as_history_clear(api->history);
    api->returned = (as_maybe_time){true, now};
}

struct as_history *as_api_get_history(struct as_api *api)
{
    return api->history;
}

void as_api_on_effect(struct as_api *api, const struct as_effect *effect,
                      const struct as_buf *record, as_wall_time now)
{
    as_history_on_effect(api->history, effect, now);
    if (effect->kind == AS_EFFECT_RECORD_DECISION)
        api_keep_decision(api, effect->decision, record);
    if (effect->kind == AS_EFFECT_RECORD_INCIDENT)
        api_keep_ended(api, effect->incident_record, now);
    if (effect->kind != AS_EFFECT_RECORD_ACTION)
        return;
    api_keep_failure(api, effect->action);
    api_keep_action(api, effect->action, record);
}

void as_api_answer(struct as_api *api, struct as_http_exchange *exchange,
                   const struct as_api_endpoint *endpoint, const char *rest, const char *who,
                   const struct as_api_note *note)
{
    struct api_request request = {
        .api = api, .exchange = exchange, .who = who, .rest = rest, .note = note};
    struct as_error error = AS_ERROR_INIT;
    const bool is_wrong = api_parameters_parse(&request, &error) != 0;
    const struct as_api_note wrong = {.status = 400, .text = error.text};
    const bool is_page = endpoint->answer_unchanged != NULL;
    if (is_wrong && is_page)
        request.note = &wrong; /* the page says it */
    if (!is_wrong || is_page) {
        api->config.view(api->config.context, &request.view);
        if (!(is_page && endpoint->answer_unchanged(&request)) && check_leader(&request, endpoint))
            endpoint->answer(&request);
    } else {
        as_reply_error(exchange, 400, NULL, "%s", error.text);
    }
    api_parameters_deinit(&request);
}
