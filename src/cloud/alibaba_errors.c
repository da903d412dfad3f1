/*
 * Errors of Alibaba Cloud's Auto Scaling: see the header.
 * https://www.alibabacloud.com/help/en/auto-scaling/developer-reference/common-error-codes
 */
#include "alibaba_errors.h"

#include <string.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#include "provider_answer.h"

/* Codes of answers and of activities, as globs; the first match counts. */
static const struct answer_word codes[] = {
    {"Throttling*", AS_TALK_THROTTLED},
    {"ServiceUnavailable*", AS_TALK_RETRY},
    {"InternalError*", AS_TALK_RETRY},
    {"SignatureNonceUsed", AS_TALK_RETRY}, /* the next request has another nonce */
    {"ScalingActivityInProgress*", AS_TALK_BUSY},
    {"IncorrectScalingGroupStatus*", AS_TALK_BUSY},
    {"*NoStock*", AS_TALK_CAPACITY},
    {"*NotOnSale*", AS_TALK_CAPACITY},
    {"*OutOfStock*", AS_TALK_CAPACITY},
    {"*Quota*", AS_TALK_CAPACITY},
    {"*IpNotEnough*", AS_TALK_CAPACITY},
    {"*LackResource*", AS_TALK_CAPACITY},
    {"*NotEnoughBalance*", AS_TALK_CAPACITY},
    {"*InsufficientBalance*", AS_TALK_CAPACITY},
    {"InvalidSecurityToken*", AS_TALK_UNAUTHORIZED},
    {"InvalidAccessKeyId*", AS_TALK_UNAUTHORIZED},
    {"SignatureDoesNotMatch", AS_TALK_UNAUTHORIZED},
    {"IncompleteSignature", AS_TALK_UNAUTHORIZED},
    {"Forbidden*", AS_TALK_PERMISSION},
    {"NoPermission*", AS_TALK_PERMISSION},
    {"InvalidScalingGroupId.NotFound", AS_TALK_GONE},
    {"IncorrectCapacity*", AS_TALK_CONFIGURATION},
    {"Invalid*", AS_TALK_CONFIGURATION},
    {"Missing*", AS_TALK_CONFIGURATION},
    {NULL, 0},
};

enum as_talk_fault alibaba_judge(const char *code, enum as_talk_fault fallback)
{
    return answer_judge(codes, code, fallback);
}

/* "Limit:10,Remain:0,Window:1000,TimeLeft:320": milliseconds; 0 if absent. */
static int64_t find_time_left(const struct as_talk *talk)
{
    static const char name[] = "TimeLeft:";
    const char *field = as_http_response_find(talk->answer, "x-ratelimit-user-api");
    const char *at = strstr(field, name);
    int64_t ms = 0;
    if (!at)
        return 0;
    at += strlen(name);
    return as_number_parse_i64(at, strspn(at, "0123456789"), &ms) == 0 && ms < 3600 * 1000
               ? ms * AS_US_PER_MS
               : 0;
}

/* {"RequestId": ..., "Code": "IncorrectCapacity.MaxSize", "Message": ...} */
static bool is_good(struct as_talk *talk)
{
    if (as_talk_is_good(talk))
        return true;
    const json_t *error = talk->http_status ? answer_peek_json(talk) : NULL;
    const char *code = answer_text(error, "Code");
    as_talk_take_request_id(talk, answer_text(error, "RequestId"));
    if (!*code)
        return false;
    as_talk_fail(talk, alibaba_judge(code, talk->fault), "%s: %s: %s", talk->request.operation,
                 code, answer_text(error, "Message"));
    if (talk->fault == AS_TALK_THROTTLED && talk->retry_after_us <= 0)
        talk->retry_after_us = find_time_left(talk);
    return false;
}

const json_t *alibaba_take_answer(struct as_talk *talk)
{
    const json_t *document = is_good(talk) ? answer_json(talk) : NULL;
    as_talk_take_request_id(talk, answer_text(document, "RequestId"));
    return document;
}
