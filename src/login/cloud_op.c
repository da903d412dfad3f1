/*
 * Cloud operations: see the header.
 */
#include <alertscaler/login/cloud_op.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/client.h>

#include "mask.h"

void as_cloud_op_init(struct as_cloud_op *op, const char *(*get_variable)(const char *name))
{
    *op = (struct as_cloud_op){.arena = AS_ARENA_INIT, .get_variable = get_variable};
    op->request.body = AS_BUF_INIT(AS_CLOUD_OP_BODY_MAX);
}

void as_cloud_op_deinit(struct as_cloud_op *op)
{
    as_buf_wipe(&op->request.body);
    json_decref(op->document);
    as_arena_deinit(&op->arena);
    *op = (struct as_cloud_op){0};
}

static char *print(struct as_cloud_op *op, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));
static char *print(struct as_cloud_op *op, const char *format, va_list list)
{
    char *made = NULL;
    if (vasprintf(&made, format, list) < 0)
        abort();
    char *text = as_arena_strdup(&op->arena, made);
    free(made);
    return text;
}

const char *as_cloud_op_print(struct as_cloud_op *op, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *text = print(op, format, list);
    va_end(list);
    return text;
}

void as_cloud_op_ask(struct as_cloud_op *op, const char *method, const char *url_format, ...)
{
    struct as_buf body = op->request.body;
    va_list list;
    va_start(list, url_format);
    as_buf_clear(&body);
    op->request = (struct as_cloud_op_request){
        .method = method,
        .url = print(op, url_format, list),
        .body = body,
        .is_change = strcmp(method, "GET") != 0,
    };
    va_end(list);
}

void as_cloud_op_header(struct as_cloud_op *op, const char *format, ...)
{
    struct as_cloud_op_request *request = &op->request;
    va_list list;
    if (request->header_count == AS_CLOUD_OP_HEADERS_MAX)
        abort(); /* a provider's own lines are few */
    va_start(list, format);
    request->headers[request->header_count++] = print(op, format, list);
    va_end(list);
}

static void want(struct as_cloud_op *op, enum as_cloud_op_want what,
                 as_cloud_op_response_fn *on_response)
{
    op->want = what;
    op->on_response = on_response;
}

static int op_append(const char *text, size_t size, void *buf)
{
    as_buf_append(buf, text, size);
    return 0;
}

/* 15 digits: 0.98765 is written unchanged. */
void as_cloud_op_write_json(struct as_cloud_op *op, json_t *document)
{
    as_cloud_op_header(op, "Content-Type: application/json");
    if (json_dump_callback(document, op_append, &op->request.body,
                           JSON_COMPACT | JSON_REAL_PRECISION(15)) != 0)
        op->request.is_unprintable = true;
    json_decref(document);
}

void as_cloud_op_add_parameter(struct as_cloud_op *op, const char *name, const char *value)
{
    struct as_buf *body = &op->request.body;
    if (!value)
        return;
    as_buf_printf(body, "%s%s=", body->size > 0 ? "&" : "", name);
    as_encode_percent(body, value, strlen(value), ""); /* never in memory that is not wiped */
}

void as_cloud_op_send(struct as_cloud_op *op, const char *operation,
                      as_cloud_op_response_fn *on_response)
{
    op->request.operation = operation;
    if (as_buf_check(&op->request.body) != 0)
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: the request is larger than %zu bytes",
                         operation, AS_CLOUD_OP_BODY_MAX);
    else if (op->request.is_unprintable)
        as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: a text in the request is not UTF-8",
                         operation);
    else
        want(op, AS_CLOUD_OP_SEND, on_response);
}

void as_cloud_op_send_question(struct as_cloud_op *op, const char *operation,
                               as_cloud_op_response_fn *on_response)
{
    op->request.is_change = false;
    as_cloud_op_send(op, operation, on_response);
}

void as_cloud_op_read(struct as_cloud_op *op, const char *path,
                      as_cloud_op_response_fn *on_response)
{
    op->path = path;
    want(op, AS_CLOUD_OP_READ, on_response);
}

void as_cloud_op_run(struct as_cloud_op *op, const char **argv,
                     as_cloud_op_response_fn *on_response)
{
    op->argv = argv;
    want(op, AS_CLOUD_OP_RUN, on_response);
}

void as_cloud_op_wait(struct as_cloud_op *op, int64_t us, as_cloud_op_response_fn *on_response)
{
    op->wait_us = us;
    want(op, AS_CLOUD_OP_WAIT, on_response);
}

void as_cloud_op_end(struct as_cloud_op *op)
{
    op->fault = AS_CLOUD_OP_OK;
    op->message[0] = '\0';
    want(op, AS_CLOUD_OP_END, NULL);
}

void as_cloud_op_fail(struct as_cloud_op *op, enum as_cloud_op_fault fault, const char *format, ...)
{
    char text[AS_CLOUD_OP_MESSAGE_SIZE * 2];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    as_str_copy_line(text, op->message, sizeof(op->message));
    op->fault = fault;
    want(op, AS_CLOUD_OP_END, NULL);
}

/* ---- turns ---- */

/* The pause is long, because asking again at once would lead nowhere. */
static void fail_endless(struct as_cloud_op *op, const char *what, unsigned count)
{
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "given up after %u %s: it never ends", count,
                     what);
    op->retry_after_us = AS_CLOUD_OP_ENDLESS_US;
}

void as_cloud_op_begin_list(struct as_cloud_op *op)
{
    op->mark_count = 0;
}

bool as_cloud_op_turn_page(struct as_cloud_op *op, const char *mark)
{
    bool is_known = false;
    if (!op->marks)
        op->marks = as_arena_alloc(&op->arena, AS_CLOUD_OP_PAGES_MAX, sizeof(*op->marks));
    for (unsigned i = 0; i < op->mark_count; i++)
        is_known = is_known || strcmp(op->marks[i], mark) == 0;
    if (is_known || op->mark_count == AS_CLOUD_OP_PAGES_MAX - 1) {
        fail_endless(op, "pages", op->mark_count + 1);
        return false;
    }
    op->marks[op->mark_count++] = as_arena_strdup(&op->arena, mark);
    return true;
}

static void cloud_op_respond(struct as_cloud_op *op, as_wall_time now)
{
    as_cloud_op_response_fn *const on_response = op->on_response;
    op->now = now;
    if (++op->turns > AS_CLOUD_OP_TURNS_MAX)
        fail_endless(op, "answers", AS_CLOUD_OP_TURNS_MAX);
    else
        on_response(op);
    op->answer = NULL;
    op->content = NULL;
    op->content_size = 0;
}

static void take_request_id(struct as_cloud_op *op, const struct as_http_response *answer)
{
    static const char *const names[] = {
        "x-request-id",     "x-amzn-requestid", "x-ms-request-id", "x-openstack-request-id",
        "x-acs-request-id", "x-bce-request-id", "audit-id",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        as_cloud_op_take_request_id(op, as_http_response_find(answer, names[i]));
}

/* Without the secrets of the request, if it is a refusal. */
static char *cloud_op_mask(const struct as_cloud_op *op, const struct as_http_response *answer)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf secrets = AS_SECRETS_INIT;
    if (answer->outcome != AS_HTTP_ANSWERED || answer->status / 100 == 2)
        return NULL;
    for (size_t i = 0; i < op->request.header_count; i++)
        as_secrets_add_header(&secrets, op->request.headers[i]);
    if (op->request.body.size > 0)
        as_secrets_add_form(&secrets, op->request.body.data, op->request.body.size);
    return as_secrets_mask(&secrets, answer);
}

void as_cloud_op_on_response(struct as_cloud_op *op, as_wall_time now,
                             const struct as_http_response *answer)
{
    char *masked = cloud_op_mask(op, answer);
    struct as_http_response shown = *answer;
    if (masked)
        shown.body = masked;
    op->answer = &shown;
    op->http_status = answer->outcome == AS_HTTP_ANSWERED ? answer->status : 0;
    op->retry_after_us = as_retry_after_parse(answer->retry_after, now);
    take_request_id(op, answer);
    cloud_op_respond(op, now);
    as_wipe_free(masked);
}

void as_cloud_op_on_content(struct as_cloud_op *op, as_wall_time now, const char *content,
                            size_t size, int error_number)
{
    op->content = content;
    op->content_size = size;
    op->error_number = error_number;
    cloud_op_respond(op, now);
}

void as_cloud_op_on_time(struct as_cloud_op *op, as_wall_time now)
{
    cloud_op_respond(op, now);
}

/* ---- answers ---- */

static enum as_cloud_op_fault judge_status(int status)
{
    switch (status) {
    case 401: return AS_CLOUD_OP_UNAUTHORIZED;
    case 403: return AS_CLOUD_OP_PERMISSION;
    case 404:
    case 410: return AS_CLOUD_OP_GONE;
    case 408: return AS_CLOUD_OP_TIMEOUT;
    case 409:
    case 412: return AS_CLOUD_OP_BUSY;
    case 429: return AS_CLOUD_OP_THROTTLED;
    default: return status >= 500 ? AS_CLOUD_OP_RETRY : AS_CLOUD_OP_CONFIGURATION;
    }
}

static void judge_transport(struct as_cloud_op *op)
{
    static const enum as_cloud_op_fault faults[] = {
        [AS_HTTP_UNREACHABLE] = AS_CLOUD_OP_RETRY,
        [AS_HTTP_BROKEN] = AS_CLOUD_OP_RETRY,
        [AS_HTTP_TIMEOUT] = AS_CLOUD_OP_TIMEOUT,
        [AS_HTTP_TOO_LARGE] = AS_CLOUD_OP_CONFIGURATION,
        [AS_HTTP_UNSENT] = AS_CLOUD_OP_CONFIGURATION,
    };
    const struct as_http_response *answer = op->answer;
    const enum as_cloud_op_fault fault =
        answer->may_pass ? AS_CLOUD_OP_RETRY : faults[answer->outcome];
    as_cloud_op_fail(op, fault, "%s: %s", op->request.operation, answer->error);
    op->is_ambiguous = op->request.is_change && answer->outcome != AS_HTTP_UNREACHABLE &&
                       answer->outcome != AS_HTTP_UNSENT;
}

void as_cloud_op_take_request_id(struct as_cloud_op *op, const char *id)
{
    if (!as_str_is_empty(id))
        as_str_copy_line(id, op->request_id, sizeof(op->request_id));
}

bool as_cloud_op_is_good(struct as_cloud_op *op)
{
    const struct as_http_response *answer = op->answer;
    if (answer->outcome != AS_HTTP_ANSWERED) {
        judge_transport(op);
        return false;
    }
    if (answer->status >= 200 && answer->status < 300)
        return true;
    as_cloud_op_fail(op, judge_status(answer->status), "%s: HTTP %d", op->request.operation,
                     answer->status);
    op->is_ambiguous = op->request.is_change && answer->status >= 500;
    return false;
}

/* ---- texts ---- */

const char *as_cloud_op_escaped(struct as_cloud_op *op, const char *text)
{
    const size_t size = strlen(text);
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(size * 3);
    as_encode_percent(&buf, text, size, "");
    return as_arena_strdup(&op->arena, buf.data ? buf.data : "");
}
