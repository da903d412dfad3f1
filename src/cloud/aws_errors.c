/*
 * Errors of AWS: see the header.
 * https://docs.aws.amazon.com/autoscaling/ec2/APIReference/CommonErrors.html
 */
#include "aws_errors.h"

#include <string.h>

#include <alertscaler/base/str.h>

#include "provider_answer.h"

static const struct {
    const char *code, *message; /* globs */
    enum as_talk_fault fault;
} errors[] = {
    {"Throttling*", "*", AS_TALK_THROTTLED},
    {"RequestLimitExceeded*", "*", AS_TALK_THROTTLED},
    {"RequestThrottled*", "*", AS_TALK_THROTTLED},
    {"TooManyRequests*", "*", AS_TALK_THROTTLED},
    {"ResourceContention*", "*", AS_TALK_RETRY},
    {"RequestTimeout*", "*", AS_TALK_RETRY},
    {"IDPCommunicationError*", "*", AS_TALK_RETRY},
    {"ScalingActivityInProgress*", "*", AS_TALK_BUSY},
    {"ResourceInUse*", "*", AS_TALK_BUSY},
    {"ExpiredToken*", "*", AS_TALK_UNAUTHORIZED},
    {"InvalidClientTokenId*", "*", AS_TALK_UNAUTHORIZED},
    {"UnrecognizedClient*", "*", AS_TALK_UNAUTHORIZED},
    {"InvalidAccessKeyId*", "*", AS_TALK_UNAUTHORIZED},
    {"AuthFailure*", "*", AS_TALK_UNAUTHORIZED},
    {"SignatureDoesNotMatch*", "*", AS_TALK_UNAUTHORIZED},
    {"InvalidSignature*", "*", AS_TALK_UNAUTHORIZED},
    {"RequestTimeTooSkewed*", "*", AS_TALK_UNAUTHORIZED},
    {"RequestExpired*", "*", AS_TALK_UNAUTHORIZED},
    {"InvalidIdentityToken*", "*", AS_TALK_UNAUTHORIZED},
    {"AccessDenied*", "*", AS_TALK_PERMISSION},
    {"UnauthorizedOperation*", "*", AS_TALK_PERMISSION},
    {"OptInRequired*", "*", AS_TALK_PERMISSION},
    {"RegionDisabled*", "*", AS_TALK_PERMISSION},
    {"LimitExceeded*", "*", AS_TALK_CAPACITY},
    {"ResourceNotFound*", "*", AS_TALK_GONE},
    {"ValidationError", "AutoScalingGroup name not found*", AS_TALK_GONE},
    {"ValidationError", "*", AS_TALK_CONFIGURATION},
};

/* Only an error of the service itself, or an unknown error, leaves a change ambiguous. */
static void take_error(struct as_talk *talk, const char *code, const char *message)
{
    enum as_talk_fault fault = talk->fault;
    if (!*code)
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(errors); i++) {
        if (as_str_glob(errors[i].code, code) && as_str_glob(errors[i].message, message)) {
            fault = errors[i].fault;
            talk->is_ambiguous = false;
            break;
        }
    }
    as_talk_fail(talk, fault, "%s: %s%s%s", talk->request.operation, code, *message ? ": " : "",
                 message);
}

bool aws_is_good_xml(struct as_talk *talk, const char **code_out)
{
    *code_out = "";
    if (as_talk_is_good(talk))
        return true;
    if (talk->http_status == 0)
        return false;
    const json_t *document = answer_find(answer_peek_xml(talk), "ErrorResponse");
    const char *code = answer_text(document, "Error.Code");
    *code_out = as_arena_strdup(&talk->arena, code);
    as_talk_take_request_id(talk, answer_text(document, "RequestId"));
    take_error(talk, code, answer_text(document, "Error.Message"));
    return false;
}

/* The code is in a header, "Code:http://..."; some front ends put it into the body. */
bool aws_is_good_json(struct as_talk *talk)
{
    if (as_talk_is_good(talk))
        return true;
    if (talk->http_status == 0)
        return false;
    const json_t *document = answer_peek_json(talk);
    const char *code = as_http_response_find(talk->answer, "x-amzn-errortype");
    const char *message = answer_text(document, "message");
    if (!*code)
        code = answer_text(document, "__type");
    take_error(talk, as_talk_print(talk, "%.*s", (int)strcspn(code, ":"), code),
               *message ? message : answer_text(document, "Message"));
    return false;
}
