/*
 * gRPC: see the header. Status codes:
 * https://github.com/grpc/grpc/blob/master/doc/statuscodes.md
 */
#include "grpc.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>

#define PREFIX_SIZE  5 /* before a message: whether it is compressed, and its size */
#define TIMEOUT_MAX  INT64_C(99999999) /* in ms; eight digits */
#define STATUS_COUNT AS_ARRAY_SIZE(statuses)

static const struct {
    const char *name;
    enum as_talk_fault fault;
    bool is_ambiguous; /* a change may have been made in spite of the error */
} statuses[] = {
    {"OK", AS_TALK_OK, false},
    {"CANCELLED", AS_TALK_RETRY, true},
    {"UNKNOWN", AS_TALK_RETRY, true}, /* the status of errors without a status of their own */
    {"INVALID_ARGUMENT", AS_TALK_CONFIGURATION, false},
    {"DEADLINE_EXCEEDED", AS_TALK_TIMEOUT, true},
    {"NOT_FOUND", AS_TALK_GONE, false},
    {"ALREADY_EXISTS", AS_TALK_BUSY, false},
    {"PERMISSION_DENIED", AS_TALK_PERMISSION, false},
    {"RESOURCE_EXHAUSTED", AS_TALK_THROTTLED, false},
    {"FAILED_PRECONDITION", AS_TALK_CONFIGURATION, false},
    {"ABORTED", AS_TALK_BUSY, false},
    {"OUT_OF_RANGE", AS_TALK_CONFIGURATION, false},
    {"UNIMPLEMENTED", AS_TALK_CONFIGURATION, false},
    {"INTERNAL", AS_TALK_RETRY, true},
    {"UNAVAILABLE", AS_TALK_RETRY, true},
    {"DATA_LOSS", AS_TALK_RETRY, true},
    {"UNAUTHENTICATED", AS_TALK_UNAUTHORIZED, false},
};

#define UNKNOWN 2

void grpc_ask(struct as_talk *talk, const char *base, const char *method,
              const struct as_buf *message, int64_t timeout_us)
{
    struct as_buf *body = &talk->request.body;
    as_talk_ask(talk, "POST", "%s%s", base, method);
    as_talk_header(talk, "Content-Type: application/grpc");
    as_talk_header(talk, "TE: trailers");
    if (timeout_us > 0) {
        const int64_t ms = timeout_us / AS_US_PER_MS;
        as_talk_header(talk, "grpc-timeout: %lldm",
                       (long long)(ms < TIMEOUT_MAX ? ms : TIMEOUT_MAX));
    }
    talk->request.is_http2 = true;
    as_buf_append_char(body, 0); /* not compressed */
    for (int shift = 24; shift >= 0; shift -= 8)
        as_buf_append_char(body, (char)(message->size >> shift & 0xff));
    as_buf_append(body, message->data ? message->data : "", message->size);
    body->failed = body->failed || message->failed;
}

/* ---- answers ---- */

/* Decodes percent-encoded text; invalid sequences stay as they are. */
static void decode_message(const char *text, char message_out[AS_TALK_MESSAGE_SIZE])
{
    size_t size = 0;
    for (; *text && size + 1 < AS_TALK_MESSAGE_SIZE; text++) {
        uint64_t byte = 0;
        const bool is_encoded =
            *text == '%' && as_number_parse_u64_hex(text + 1, strnlen(text + 1, 2), &byte) == 0 &&
            text[2] && byte > 0;
        message_out[size++] = is_encoded ? (char)byte : *text;
        text += is_encoded ? 2 : 0;
    }
    message_out[size] = '\0';
}

static void fail_in_doubt(struct as_talk *talk, enum as_talk_fault fault, const char *why)
{
    as_talk_fail(talk, fault, "%s: %s", talk->request.operation, why);
    talk->is_ambiguous = talk->request.is_change;
}

void grpc_fail_message(struct as_talk *talk, const char *why)
{
    fail_in_doubt(talk, AS_TALK_CONFIGURATION, why);
}

/* Whether it is an answer of gRPC. False after failing the talk. */
static bool is_grpc(struct as_talk *talk)
{
    const struct as_http_response *answer = talk->answer;
    if (answer->outcome == AS_HTTP_ANSWERED && (answer->status == 404 || answer->status == 405)) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: HTTP %d: gRPC is not spoken at this address",
                     talk->request.operation, answer->status);
        return false;
    }
    if (!as_talk_is_good(talk))
        return false;
    if (strncasecmp(answer->content_type, "application/grpc", strlen("application/grpc")) == 0)
        return true;
    fail_in_doubt(talk, AS_TALK_CONFIGURATION,
                  as_talk_print(talk, "this is not gRPC, but of the type %s",
                                *answer->content_type ? answer->content_type : "(none)"));
    return false;
}

/* Unknown statuses count as UNKNOWN, as the protocol says. */
static size_t parse_status(const char *text)
{
    char *end;
    const unsigned long status = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && status < STATUS_COUNT ? (size_t)status
                                                                          : UNKNOWN;
}

/* Whether the call succeeded. False after failing the talk. */
static bool check_status(struct as_talk *talk)
{
    char message[AS_TALK_MESSAGE_SIZE];
    const char *text = as_http_response_find(talk->answer, "grpc-status");
    if (!*text) {
        fail_in_doubt(talk, AS_TALK_RETRY, "the answer was cut off: it has no grpc-status");
        return false;
    }
    const size_t status = parse_status(text);
    if (status == 0)
        return true;
    decode_message(as_http_response_find(talk->answer, "grpc-message"), message);
    as_talk_fail(talk, statuses[status].fault, "%s: %s%s%s", talk->request.operation,
                 statuses[status].name, *message ? ": " : "", message);
    talk->is_ambiguous = talk->request.is_change && statuses[status].is_ambiguous;
    return false;
}

bool grpc_take_message(struct as_talk *talk, struct as_protobuf_reader *message_out)
{
    if (!is_grpc(talk) || !check_status(talk))
        return false;
    const struct as_http_response *answer = talk->answer;
    const unsigned char *body = (const unsigned char *)answer->body;
    size_t size = 0;
    for (size_t i = 1; answer->body_size >= PREFIX_SIZE && i < PREFIX_SIZE; i++)
        size = size << 8 | body[i];
    if (answer->body_size < PREFIX_SIZE || size != answer->body_size - PREFIX_SIZE) {
        grpc_fail_message(talk, "the answer is not one message");
        return false;
    }
    if (body[0] != 0) {
        grpc_fail_message(talk, "the answer is compressed, which was not asked for");
        return false;
    }
    as_protobuf_reader_init(message_out, body + PREFIX_SIZE, size);
    return true;
}
