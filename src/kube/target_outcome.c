/*
 * The meaning of an HTTP answer for a target, and copies of scale requests. Every failure has
 * exactly one reason. The rule for ambiguity: unless the other side has refused, the request may
 * have been carried out.
 */
#include <alertscaler/kube/target_outcome.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/http/client.h>

static const struct {
    int status;
    enum as_reason reason;
} statuses[] = {
    {401, AS_REASON_FORBIDDEN},        {403, AS_REASON_FORBIDDEN},
    {404, AS_REASON_TARGET_NOT_FOUND}, {409, AS_REASON_CONFLICT},
    {410, AS_REASON_TARGET_NOT_FOUND}, {412, AS_REASON_CONFLICT},
    {429, AS_REASON_THROTTLED},
};

static enum as_reason outcome_get_reason(int status)
{
    if (status >= 200 && status < 300)
        return AS_REASON_APPLIED;
    if (status >= 500)
        return AS_REASON_UNREACHABLE;
    for (size_t i = 0; i < AS_ARRAY_SIZE(statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].reason;
    return AS_REASON_REJECTED; /* the other 4xx, and redirects, which are not followed */
}

void as_outcome_set_message(struct as_outcome *outcome, const char *message)
{
    if (as_str_is_empty(message))
        return;
    size_t size = as_str_cut_utf8(message, strlen(message), AS_MESSAGE_SIZE - 1);
    for (size_t i = 0; i < size; i++)
        outcome->message[i] =
            (unsigned char)message[i] < ' ' || message[i] == 0x7f ? ' ' : message[i];
    outcome->message[size] = '\0';
}

void as_outcome_init_local(struct as_outcome *outcome, enum as_reason reason, const char *message)
{
    *outcome = (struct as_outcome){.reason = reason};
    as_outcome_set_message(outcome, message);
}

void as_outcome_reject(struct as_outcome *outcome, bool is_change, const char *message)
{
    outcome->reason = AS_REASON_REJECTED;
    outcome->is_ambiguous = is_change;
    as_outcome_set_message(outcome, message);
}

static void init_answered(struct as_outcome *outcome, const struct as_http_response *response,
                          as_wall_time now)
{
    outcome->http_status = response->status;
    outcome->reason = outcome_get_reason(response->status);
    outcome->is_ambiguous = response->status >= 500;
    outcome->retry_after_us = as_retry_after_parse(response->retry_after, now);
    if (outcome->reason != AS_REASON_APPLIED)
        snprintf(outcome->message, sizeof(outcome->message), "HTTP %d", response->status);
}

void as_outcome_init(struct as_outcome *outcome, const struct as_http_response *response,
                     bool is_change, as_wall_time now)
{
    *outcome = (struct as_outcome){.is_ambiguous = true};
    switch (response->outcome) {
    case AS_HTTP_ANSWERED: init_answered(outcome, response, now); break;
    case AS_HTTP_UNREACHABLE:
    case AS_HTTP_UNSENT:
        outcome->reason = AS_REASON_UNREACHABLE;
        outcome->is_ambiguous = false;
        break;
    case AS_HTTP_BROKEN: outcome->reason = AS_REASON_UNREACHABLE; break;
    case AS_HTTP_TIMEOUT: outcome->reason = AS_REASON_TIMEOUT; break;
    case AS_HTTP_TOO_LARGE: outcome->reason = AS_REASON_REJECTED; break;
    }
    if (!is_change) {
        outcome->is_ambiguous = false;
        if (outcome->reason == AS_REASON_CONFLICT)
            outcome->reason = AS_REASON_REJECTED; /* a read cannot conflict */
    }
    if (response->outcome != AS_HTTP_ANSWERED)
        as_outcome_set_message(outcome, response->error);
}

void as_outcome_fill_observation(const struct as_outcome *outcome,
                                 struct as_observation *observation)
{
    observation->outcome = outcome->reason;
    observation->http_status = outcome->http_status;
    observation->retry_after_us = outcome->retry_after_us;
    memcpy(observation->request_id, outcome->request_id, sizeof(observation->request_id));
    memcpy(observation->message, outcome->message, sizeof(observation->message));
}

void as_outcome_fill_result(const struct as_outcome *outcome, struct as_scale_result *result)
{
    result->outcome = outcome->reason;
    result->is_ambiguous = outcome->is_ambiguous;
    result->is_shortage = outcome->is_shortage;
    result->is_accepted = outcome->is_accepted;
    result->http_status = outcome->http_status;
    result->retry_after_us = outcome->retry_after_us;
    memcpy(result->request_id, outcome->request_id, sizeof(result->request_id));
    memcpy(result->message, outcome->message, sizeof(result->message));
}

/* A copy of a scale request. */

static char *scale_request_copy_text(const char *text)
{
    return as_xstrdup(text ? text : "");
}

static const char *const *scale_request_copy_names(const char *const *names, size_t count)
{
    const char **copy = as_xcalloc(count, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = as_xstrdup(names[i]);
    return copy;
}

static void scale_request_free_names(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)names[i]);
    free((void *)(uintptr_t)names);
}

static struct as_nodes_config *copy_nodes(const struct as_nodes_config *nodes)
{
    struct as_nodes_config *copy = NULL;
    if (nodes) {
        copy = as_xcalloc(1, sizeof(*copy));
        as_nodes_config_copy(nodes, copy);
    }
    return copy;
}

static void free_nodes(struct as_nodes_config *nodes)
{
    if (nodes)
        as_nodes_config_deinit(nodes);
    free(nodes);
}

static struct as_policy_ref copy_policy(const struct as_policy_ref *policy)
{
    if (!policy->name)
        return (struct as_policy_ref){.name = NULL};
    return (struct as_policy_ref){as_xstrdup(policy->namespace), as_xstrdup(policy->name),
                                  as_xstrdup(policy->uid)};
}

void as_scale_request_copy(const struct as_scale_request *request,
                           struct as_scale_request *copy_out)
{
    *copy_out = *request;
    copy_out->is_ordered = request->is_ordered;
    copy_out->credential = request->credential ? as_xstrdup(request->credential) : NULL;
    copy_out->decision_id = scale_request_copy_text(request->decision_id);
    copy_out->rule = scale_request_copy_text(request->rule);
    copy_out->alert = scale_request_copy_text(request->alert);
    copy_out->nodes = copy_nodes(request->nodes);
    copy_out->take = scale_request_copy_names(request->take, request->take_count);
    copy_out->backing = scale_request_copy_names(request->backing, request->backing_count);
    copy_out->policy = copy_policy(&request->policy);
}

void as_scale_request_deinit(struct as_scale_request *copy)
{
    free((char *)(uintptr_t)copy->credential);
    free((char *)copy->decision_id);
    free((char *)copy->rule);
    free((char *)copy->alert);
    free_nodes((struct as_nodes_config *)copy->nodes);
    scale_request_free_names(copy->take, copy->take_count);
    scale_request_free_names(copy->backing, copy->backing_count);
    free((char *)(uintptr_t)copy->policy.namespace);
    free((char *)(uintptr_t)copy->policy.name);
    free((char *)(uintptr_t)copy->policy.uid);
    *copy = (struct as_scale_request){0};
}
