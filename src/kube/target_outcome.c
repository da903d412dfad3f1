/*
 * The meaning of an HTTP answer for a target: see the header. Every failure has exactly one reason.
 * The rule for ambiguity: unless the other side has refused, the request may have been carried out.
 */
#include <alertscaler/kube/target_outcome.h>

#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/http/retry_after.h>

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
