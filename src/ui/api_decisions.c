/*
 * The latest decisions, in memory only: the action log has all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/log/record.h>

#include "api_names.h"
#include "api_private.h"

#define DECISIONS_DEFAULT 100

struct kept_decision *api_decision_free(struct kept_decision *decision)
{
    if (!decision)
        return NULL;
    free(decision->target);
    free(decision->target_name);
    free(decision->rule);
    free(decision->record);
    as_buf_deinit(&decision->actions);
    free(decision);
    return NULL;
}

static void keep_record(struct as_api *api, struct kept_decision *decision,
                        const struct as_decision_record *record)
{
    struct as_record_places places;
    AS_CLEANUP(as_buf_deinit) struct as_buf json = AS_BUF_INIT(DECISION_BYTES_MAX);
    as_record_encode_decision(&(struct as_record_header){record->input->now, api->instance}, record,
                              &json, &places);
    if (as_buf_check(&json) != 0)
        return;
    decision->record = as_xstrndup(json.data, json.size);
    decision->record_size = json.size;
}

static void forget_oldest(struct as_api *api)
{
    struct kept_decision *oldest = TAILQ_LAST(&api->decisions, kept_decision_list);
    TAILQ_REMOVE(&api->decisions, oldest, next);
    api->decision_count--;
    api->decision_bytes -= oldest->record_size + oldest->actions.size;
    api_decision_free(oldest);
}

void api_keep_decision(struct as_api *api, const struct as_decision_record *record)
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
    decision->has_would = output->has_would;
    snprintf(decision->unit, sizeof(decision->unit), "%s", record->unit ? record->unit : "");
    decision->would = output->would;
    (void)snprintf(decision->pool_decision, sizeof(decision->pool_decision), "%s",
                   record->pool_decision ? record->pool_decision : "");
    decision->actions = AS_BUF_INIT(DECISION_ACTIONS_MAX);
    keep_record(api, decision, record);
    TAILQ_INSERT_HEAD(&api->decisions, decision, next);
    api->decision_count++;
    api->decision_bytes += decision->record_size;
    while (api->decision_count > DECISIONS_MAX || api->decision_bytes > DECISIONS_BYTES_MAX)
        forget_oldest(api);
}

void api_keep_action(struct as_api *api, const struct as_action_record *record, as_wall_time now)
{
    struct kept_decision *decision = TAILQ_FIRST(&api->decisions);
    struct as_record_places places;
    AS_CLEANUP(as_buf_deinit) struct as_buf json = AS_BUF_INIT(DECISION_ACTIONS_MAX);
    while (decision && !as_str_equal(decision->id, record->decision))
        decision = TAILQ_NEXT(decision, next);
    if (!decision)
        return;
    as_record_encode_action(&(struct as_record_header){now, api->instance}, record, &json, &places);
    as_buf_append_char(&json, '\n');
    if (as_buf_check(&json) != 0 || json.size > DECISION_ACTIONS_MAX - decision->actions.size)
        return;
    as_buf_append(&decision->actions, json.data, json.size);
    api->decision_bytes += json.size;
}

static void write_decision(struct api_request *request, const struct kept_decision *decision)
{
    struct as_json_writer *json = &request->json;
    as_json_begin_object(json);
    as_json_write_member(json, "id", decision->id);
    api_write_time(request, "time", decision->at);
    as_json_write_member(json, "target", decision->target);
    as_json_write_member(json, "target_name", decision->target_name);
    api_write_text(request, "rule", decision->rule);
    as_json_write_member(json, "reason", as_reason_get_word(decision->reason));
    as_json_write_member(json, "direction", as_direction_get_word(decision->direction));
    as_json_write_member_i64(json, "replicas", decision->replicas);
    as_json_write_member_i64(json, "desired", decision->desired);
    if (decision->has_would)
        as_json_write_member_i64(json, "would", decision->would);
    as_json_end_object(json);
}

struct filter {
    const char *target, *rule, *before;
    bool has_reason;
    enum as_reason reason;
    as_maybe_time since;
    size_t limit;
};

static int read_filter(const struct api_request *request, struct filter *filter,
                       struct as_error *error)
{
    const char *reason = api_parameter_find(request, "reason");
    *filter = (struct filter){
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
    return status != 0 ? status
                       : api_parameter_get_limit(request, DECISIONS_DEFAULT, &filter->limit, error);
}

static bool is_wanted(const struct filter *filter, const struct kept_decision *decision)
{
    return (!filter->target || as_target_is_same(filter->target, decision->target) ||
            strcmp(filter->target, decision->target_name) == 0) &&
           (!filter->rule || as_str_equal(filter->rule, decision->rule)) &&
           (!filter->has_reason || filter->reason == decision->reason) &&
           (!filter->since.set || decision->at.us >= filter->since.at.us);
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

/* `before` a decision that is not kept any more: an empty list. */
static const struct kept_decision *get_first(const struct as_api *api, const struct filter *filter)
{
    if (!filter->before)
        return TAILQ_FIRST(&api->decisions);
    const struct kept_decision *last_seen = api_find_decision(api, filter->before);
    return last_seen ? TAILQ_NEXT(last_seen, next) : NULL;
}

void api_answer_decisions(struct api_request *request)
{
    struct as_error error = AS_ERROR_INIT;
    struct api_list list;
    struct filter filter;
    if (read_filter(request, &filter, &error) != 0) {
        as_reply_error(request->exchange, 400, NULL, "%s", error.text);
        return;
    }
    api_list_begin(&list, request, filter.limit);
    const struct kept_decision *decision = get_first(request->api, &filter);
    for (; decision; decision = TAILQ_NEXT(decision, next)) {
        if (!is_wanted(&filter, decision))
            continue;
        if (!api_list_begin_item(&list))
            break;
        write_decision(request, decision);
        api_list_end_item(&list);
    }
    api_list_end(&list);
}

/* A narrowed reader gets a record without names of credentials that are not its own. */
static void write_record(struct api_request *request, const struct kept_decision *decision)
{
    const struct as_view *view = &request->view;
    if (as_scope_is_whole(view->scopes, view->scope_count, request->who)) {
        as_json_write_raw(&request->json, decision->record, decision->record_size);
        return;
    }
    json_t *record = json_loadb(decision->record, decision->record_size, 0, NULL);
    api_hide_credentials(request, record);
    AS_CLEANUP(as_free_p) char *text = json_dumps(record, JSON_COMPACT);
    json_decref(record);
    if (text)
        as_json_write_raw(&request->json, text, strlen(text));
    else
        write_decision(request, decision);
}

void api_answer_decision(struct api_request *request)
{
    AS_CLEANUP(as_free_p) char *id = api_decode_rest(request);
    const struct kept_decision *decision = id ? api_find_decision(request->api, id) : NULL;
    if (!decision) {
        as_reply_error(request->exchange, 404, NULL,
                       "not among the last %d decisions; the action log has them all",
                       DECISIONS_MAX);
        return;
    }
    api_begin(request);
    if (decision->record)
        write_record(request, decision);
    else
        write_decision(request, decision);
    api_end(request);
}
