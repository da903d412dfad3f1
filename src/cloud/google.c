/*
 * What Google's APIs have in common: see the header. Errors are described in
 * https://cloud.google.com/apis/design/errors and
 * https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability.
 */
#include "google.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>

#include "provider_answer.h"

/* By reason (of HTTP answers) and by code (of operations, and of attempts to add an instance). */
static const struct answer_word reasons[] = {
    /* in lower case */
    {"ratelimitexceeded", AS_TALK_THROTTLED},
    {"userratelimitexceeded", AS_TALK_THROTTLED},
    {"rate_limit_exceeded", AS_TALK_THROTTLED},
    {"*resource_pool_exhausted*", AS_TALK_CAPACITY},
    {"*resourcepoolexhausted*", AS_TALK_CAPACITY},
    {"*insufficient_capacity*", AS_TALK_CAPACITY},
    {"stockout", AS_TALK_CAPACITY},
    {"ip_space_exhausted*", AS_TALK_CAPACITY},
    {"*quota*", AS_TALK_CAPACITY},
    {"conditionnotmet", AS_TALK_BUSY},
    {"*resourcenotready", AS_TALK_BUSY},
    {"*resource_not_ready", AS_TALK_BUSY},
    {"resourceinusebyanotherresource", AS_TALK_BUSY},
    {"resource_in_use_by_another_resource", AS_TALK_BUSY},
    {"cluster_already_has_operation", AS_TALK_BUSY},
    {"autherror", AS_TALK_UNAUTHORIZED},
    {"accessnotconfigured", AS_TALK_CONFIGURATION},
    {"service_disabled", AS_TALK_CONFIGURATION},
    {"permissions_error", AS_TALK_PERMISSION},
    {"access_token_scope_insufficient", AS_TALK_PERMISSION},
    {"backenderror", AS_TALK_RETRY},
    {"internalerror", AS_TALK_RETRY},
    {"internal_error", AS_TALK_RETRY},
    {"resource_not_found", AS_TALK_GONE},
    {NULL, 0},
};

/* A quota of requests over time, not of machines: "Quota exceeded for quota metric 'Queries'". */
static bool is_rate(const char *message)
{
    return strstr(message, "quota metric") || strstr(message, "per minute") ||
           strstr(message, "per second") || strstr(message, "Rate Limit");
}

enum as_talk_fault google_judge(const char *reason, const char *message,
                                enum as_talk_fault fallback)
{
    char lower[64];
    size_t size = 0;
    for (; reason[size] && size < sizeof(lower) - 1; size++)
        lower[size] =
            reason[size] >= 'A' && reason[size] <= 'Z' ? (char)(reason[size] + 32) : reason[size];
    lower[size] = '\0';
    return strstr(lower, "quota") && is_rate(message) ? AS_TALK_THROTTLED
                                                      : answer_judge(reasons, lower, fallback);
}

/* Finds a value in the details: "reason" of google.rpc.ErrorInfo, "requestId" of
 * google.rpc.RequestInfo. */
static const char *find_detail(const json_t *error, const char *key)
{
    for (size_t i = 0; i < answer_count(error, "details"); i++) {
        const char *text = answer_text(answer_at(error, "details", i), key);
        if (*text)
            return text;
    }
    return "";
}

/* The container API reports a running operation only in words. */
static bool is_busy(const json_t *error, const char *message)
{
    return strcmp(answer_text(error, "status"), "FAILED_PRECONDITION") == 0 &&
           (strstr(message, "incompatible operation") || strstr(message, "try again") ||
            strstr(message, "is currently"));
}

bool google_is_good(struct as_talk *talk)
{
    if (as_talk_is_good(talk))
        return true;
    if (talk->http_status == 0)
        return false;
    const json_t *error = answer_find(answer_peek_json(talk), "error");
    const char *message = answer_text(error, "message");
    const char *detail = find_detail(error, "reason");
    const char *reason = answer_text(answer_at(error, "errors", 0), "reason");
    const char *word = *detail ? detail : *reason ? reason : answer_text(error, "status");
    as_talk_take_request_id(talk, find_detail(error, "requestId"));
    enum as_talk_fault fault = google_judge(detail, message, talk->fault);
    if (fault == talk->fault)
        fault = google_judge(reason, message, fault);
    if (is_busy(error, message))
        fault = AS_TALK_BUSY;
    if (*message)
        as_talk_fail(talk, fault, "%s: HTTP %d%s%s: %s", talk->request.operation, talk->http_status,
                     *word ? " " : "", word, message);
    return false;
}

const json_t *google_take_answer(struct as_talk *talk)
{
    return google_is_good(talk) ? answer_json(talk) : NULL;
}

const char *google_find_project(struct as_group_talk *talk)
{
    const char *variable = talk->talk.get_variable("GOOGLE_CLOUD_PROJECT");
    const char *const places[] = {as_target_ref_get(talk->group, "project"),
                                  as_account_get(talk->account, "project"), variable,
                                  talk->credentials->project};
    for (size_t i = 0; i < AS_ARRAY_SIZE(places); i++) {
        if (!as_str_is_empty(places[i]))
            return places[i];
    }
    as_talk_fail(&talk->talk, AS_TALK_CONFIGURATION,
                 "the project is not known: set `project` of the provider");
    return NULL;
}

const char *google_make_request_id(struct as_group_talk *talk, const char *what)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    const char *text = as_talk_print(&talk->talk, "%s\n%s", talk->idempotency, what);
    if (EVP_Digest(text, strlen(text), digest, &size, EVP_sha256(), NULL) != 1)
        abort();
    digest[6] = (unsigned char)((digest[6] & 0x0F) | 0x40); /* in the form of a random UUID */
    digest[8] = (unsigned char)((digest[8] & 0x3F) | 0x80);
    AS_CLEANUP(as_buf_deinit) struct as_buf hex = AS_BUF_INIT(32);
    as_encode_hex(&hex, digest, 16);
    return as_talk_print(&talk->talk, "requestId=%.8s-%.4s-%.4s-%.4s-%.12s", hex.data, hex.data + 8,
                         hex.data + 12, hex.data + 16, hex.data + 20);
}
