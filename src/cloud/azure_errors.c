/*
 * Azure's errors: {"error": {"code", "message", "details": [...]}}, or, from AKS, the same without
 * the outer member:
 * https://github.com/microsoft/api-guidelines/blob/vNext/azure/Guidelines.md#handling-errors
 *
 * A code in `details` says more than the outer code ("Conflict").
 */
#include "azure.h"

#include <string.h>
#include <strings.h>

#include <alertscaler/base/str.h>

#include "provider_answer.h"

#define DETAILS_MAX 16 /* only this many are read */

static const struct {
    const char *code;    /* a glob */
    const char *message; /* a glob, in lower case; NULL: any */
    enum as_talk_fault fault;
} errors[] = {
    {"AllocationFailed", NULL, AS_TALK_CAPACITY},
    {"ZonalAllocationFailed", NULL, AS_TALK_CAPACITY},
    {"Overconstrained*", NULL, AS_TALK_CAPACITY},
    {"SkuNotAvailable", NULL, AS_TALK_CAPACITY},
    {"*Quota*", NULL, AS_TALK_CAPACITY},
    {"SubnetIsFull", NULL, AS_TALK_CAPACITY},
    {"InsufficientSubnetSize", NULL, AS_TALK_CAPACITY},
    {"OperationNotAllowed", "*quota*", AS_TALK_CAPACITY},
    {"OperationNotAllowed", "*in progress*", AS_TALK_BUSY},
    {"OperationNotAllowed", NULL, AS_TALK_CONFIGURATION},
    {"OperationPreempted", NULL, AS_TALK_BUSY},
    {"*SupersededDueToAnotherOperation", NULL, AS_TALK_BUSY},
    {"*InProgress", NULL, AS_TALK_BUSY},
    {"RetryableError", NULL, AS_TALK_BUSY},
    {"Conflict", NULL, AS_TALK_BUSY},
    {"PreconditionFailed", NULL, AS_TALK_BUSY},
    {"*ConditionNotMet", NULL, AS_TALK_BUSY},
    {"E?agMismatch", NULL, AS_TALK_BUSY},
    {"TooManyRequests*", NULL, AS_TALK_THROTTLED},
    {"*RequestsThrottled", NULL, AS_TALK_THROTTLED},
    {"*AuthenticationToken*", NULL, AS_TALK_UNAUTHORIZED},
    {"AuthenticationFailed*", NULL, AS_TALK_UNAUTHORIZED},
    {"*AuthorizationFailed", NULL, AS_TALK_PERMISSION},
    {"RequestDisallowedByPolicy", NULL, AS_TALK_PERMISSION},
    {"ScopeLocked", NULL, AS_TALK_PERMISSION},
    {"SubscriptionNotFound", NULL, AS_TALK_CONFIGURATION},
    {"ReadOnlyDisabledSubscription", NULL, AS_TALK_CONFIGURATION},
    {"MissingSubscriptionRegistration", NULL, AS_TALK_CONFIGURATION},
    {"NoRegisteredProviderFound", NULL, AS_TALK_CONFIGURATION},
    {"Invalid*", NULL, AS_TALK_CONFIGURATION},
    {"*NotFound", NULL, AS_TALK_GONE},
    {"Internal*Error", NULL, AS_TALK_RETRY},
    {"Server*", NULL, AS_TALK_RETRY},
    {"*Timeout", NULL, AS_TALK_RETRY},
    {"*TimedOut", NULL, AS_TALK_RETRY},
};

/* as_str_glob on a text in lower case. */
static bool has_words(const char *glob, const char *message)
{
    char line[AS_TALK_MESSAGE_SIZE * 2];
    as_str_copy_line(message, line, sizeof(line));
    for (char *c = line; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
    return as_str_glob(glob, line);
}

enum as_talk_fault azure_judge(const char *code, const char *message, enum as_talk_fault absent)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(errors) && *code; i++) {
        if (as_str_glob(errors[i].code, code) &&
            (!errors[i].message || has_words(errors[i].message, message)))
            return errors[i].fault;
    }
    return absent;
}

void azure_fail(struct as_talk *talk, const json_t *error, const char *what,
                enum as_talk_fault absent)
{
    const json_t *said = error;
    const char *code = answer_text(error, "code");
    enum as_talk_fault fault = azure_judge(code, answer_text(error, "message"), absent);
    for (size_t i = 0; i < answer_count(error, "details") && i < DETAILS_MAX; i++) {
        const json_t *detail = answer_at(error, "details", i);
        const char *inner = answer_text(detail, "code");
        const enum as_talk_fault known =
            azure_judge(inner, answer_text(detail, "message"), AS_TALK_OK);
        if (known == AS_TALK_OK)
            continue;
        fault = known;
        said = detail;
        code = inner;
        break;
    }
    as_talk_fail(talk, fault, "%s: %s%s%s", talk->request.operation, *code ? code : what,
                 *code ? ": " : "", *code ? answer_text(said, "message") : "");
}

/* The error in an answer; NULL if it is not readable. */
static const json_t *peek_error(struct as_talk *talk)
{
    const json_t *document = answer_peek_json(talk);
    const json_t *inner = answer_find(document, "error");
    return json_is_object(inner) ? inner : document;
}

const char *azure_peek_code(struct as_talk *talk)
{
    return answer_text(peek_error(talk), "code");
}

/* The empty token bucket, if the answer names it. */
static const char *find_bucket(struct as_talk *talk)
{
    const char *bucket = as_http_response_find(talk->answer, "x-ms-ratelimit-remaining-resource");
    return *bucket ? as_talk_print(talk, " (%s)", bucket) : "";
}

bool azure_is_good(struct as_talk *talk)
{
    if (as_talk_is_good(talk))
        return true;
    if (talk->http_status == 0)
        return false;
    if (talk->fault == AS_TALK_THROTTLED) {
        as_talk_fail(talk, AS_TALK_THROTTLED, "%s: too many requests%s: %s",
                     talk->request.operation, find_bucket(talk),
                     answer_text(peek_error(talk), "message"));
        return false;
    }
    azure_fail(talk, peek_error(talk), as_talk_print(talk, "HTTP %d", talk->http_status),
               talk->fault);
    return false;
}

const json_t *azure_take_json(struct as_talk *talk)
{
    return azure_is_good(talk) ? answer_json(talk) : NULL;
}

bool azure_take_version(struct as_talk *talk, const char *etag)
{
    char *version = as_group_get(talk)->view.version;
    if (strlen(etag) >= AS_VERSION_SIZE || strpbrk(etag, "\r\n")) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: the answer's etag cannot be used",
                     talk->request.operation);
        return false;
    }
    memcpy(version, etag, strlen(etag) + 1);
    return true;
}
