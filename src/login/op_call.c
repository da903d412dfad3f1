/*
 * Cloud operations over the ports: see the header. A file is read at once, the other wants in
 * further turns of the loop.
 */
#include <alertscaler/login/op_call.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/http/client.h>

#define SKEW_MIN_US (2 * AS_US_PER_MIN) /* clouds accept five minutes and more */

static void call_turn(void *context);

static void call_later(struct as_op_call *call, int64_t us)
{
    call->timer = call->env->loop->start_timer(call->env->loop, us, call_turn, call);
}

/* The time of the other side's clock. */
static as_wall_time call_get_now(const struct as_op_call *call)
{
    const as_wall_time now = call->env->clock->get_wall(call->env->clock);
    return (as_wall_time){as_time_add(now.us, call->skew_us ? *call->skew_us : 0)};
}

/* ---- requests ---- */

bool as_skew_learn(int64_t *skew_us, as_wall_time now, const struct as_http_response *response,
                   const char *client)
{
    as_wall_time theirs;
    if (response->outcome != AS_HTTP_ANSWERED || response->status < 400 || response->status > 403 ||
        as_http_date_parse(as_http_response_find(response, "Date"), &theirs) < 0)
        return false;
    const int64_t news = theirs.us - now.us;
    if (news > -SKEW_MIN_US && news < SKEW_MIN_US)
        return false;
    *skew_us += news;
    as_log(AS_LOG_WARN, "the clock of this machine is off, or the provider's",
           AS_F("provider", client), AS_FI("seconds_behind", *skew_us / AS_US_PER_S));
    return true;
}

/* Only if this was not known before. Then the same request is signed once more, with the other
 * side's time; the refused request was not carried out. A request for credentials is started
 * anew. */
static bool learns_time(struct as_op_call *call, const struct as_http_response *response)
{
    const struct as_cloud_op_request *request = &call->op->request;
    return call->skew_us && !call->callbacks.send && !call->is_repeated &&
           (!request->is_plain || request->is_timed) &&
           as_skew_learn(call->skew_us, call_get_now(call), response, call->client);
}

void as_op_call_on_response(struct as_op_call *call, const struct as_http_response *response)
{
    struct as_cloud_op *op = call->op;
    if (response->outcome == AS_HTTP_UNSENT && op->want == AS_CLOUD_OP_END) {
        call_later(call, 0); /* call_permits has failed the op */
        return;
    }
    if (learns_time(call, response)) {
        call->is_repeated = true;
        if (op->request.is_plain)
            call->callbacks.mistimed(call->callbacks.context);
        else
            as_op_call_repeat(call);
        return;
    }
    as_cloud_op_on_response(op, call_get_now(call), response);
    if (op->want == AS_CLOUD_OP_END && op->fault == AS_CLOUD_OP_UNAUTHORIZED &&
        !call->is_repeated && call->callbacks.refused(call->callbacks.context, call)) {
        call->is_repeated = true;
        return;
    }
    call_later(call, 0);
}

static void call_answered(void *context, const struct as_http_response *response)
{
    struct as_op_call *call = context;
    call->transfer = NULL;
    call->op->sent += response->outcome != AS_HTTP_UNSENT;
    as_op_call_on_response(call, response);
}

static bool call_permits(void *context)
{
    struct as_op_call *call = context;
    return !call->callbacks.permit || call->callbacks.permit(call->callbacks.context, call->op);
}

/* A proxy could read the secrets of a request without TLS to this machine, and does not reach it.
 */
static bool call_needs_no_proxy(const struct as_cloud_op_request *request)
{
    return request->without_proxy ||
           (as_str_starts_with(request->url, "http://") && as_url_is_near(request->url));
}

static void call_send(struct as_op_call *call)
{
    struct as_cloud_op *op = call->op;
    const struct as_cloud_op_request *wanted = &op->request;
    struct as_http *http = call->http ? call->http : call->env->http;
    if (wanted->is_change && !call_permits(call)) {
        call_later(call, 0);
        return;
    }
    if (call->callbacks.send) {
        call->callbacks.send(call->callbacks.context, op);
        return;
    }
    call->on_response = op->on_response;
    call->plain_headers = wanted->header_count;
    if (!wanted->is_plain && !call->callbacks.authorize(call->callbacks.context, op)) {
        call_later(call, 0);
        return;
    }
    struct as_http_request request = {
        .method = wanted->method,
        .url = wanted->url,
        .headers = wanted->headers,
        .body = wanted->body.size > 0 ? wanted->body.data : NULL,
        .body_size = wanted->body.size,
        .timeout_us = wanted->timeout_us ? wanted->timeout_us : call->timeout_us,
        .max_response = wanted->max_response ? wanted->max_response : AS_CLOUD_OP_ANSWER_MAX,
        .permit = wanted->is_change ? call_permits : NULL,
        .flow = call->flow,
        .is_http2 = wanted->is_http2,
        .proxy_url = call_needs_no_proxy(wanted) ? NULL : call->proxy_url,
        .client_name = call->client,
        .operation = wanted->operation,
    };
    if (call->tls)
        request.tls = *call->tls;
    call->transfer = http->start(http, &request, call_answered, call);
}

void as_op_call_repeat(struct as_op_call *call)
{
    struct as_cloud_op *op = call->op;
    while (op->request.header_count > call->plain_headers)
        op->request.headers[--op->request.header_count] = NULL;
    op->want = AS_CLOUD_OP_SEND;
    op->on_response = call->on_response;
    call_later(call, 0);
}

/* ---- files, programs, time ---- */

static void call_read_file(struct as_op_call *call)
{
    struct as_cloud_op *op = call->op;
    char *text = NULL;
    size_t size = 0;
    const int status = as_file_read(op->path, AS_CLOUD_OP_FILE_MAX, &text, &size);
    as_cloud_op_on_content(op, call_get_now(call), status == 0 ? text : NULL, size, -status);
    if (text)
        explicit_bzero(text, size); /* it may be a secret */
    free(text);
    call_later(call, 0);
}

static void call_ran(void *context, const struct as_process_result *result)
{
    struct as_op_call *call = context;
    static const int errors[] = {
        [AS_PROCESS_EXITED] = EIO,         [AS_PROCESS_KILLED] = EINTR,
        [AS_PROCESS_NOT_STARTED] = ENOENT, [AS_PROCESS_TIMEOUT] = ETIMEDOUT,
        [AS_PROCESS_TOO_LARGE] = EFBIG,
    };
    const bool is_good = result->outcome == AS_PROCESS_EXITED && result->status == 0;
    call->process = NULL;
    as_cloud_op_on_content(call->op, call_get_now(call), is_good ? result->output : NULL,
                           result->output_size, is_good ? 0 : errors[result->outcome]);
    call_later(call, 0);
}

static void call_run(struct as_op_call *call)
{
    const struct as_process_request request = {
        .argv = (const char *const *)call->op->argv,
        .env = (const char *const[]){NULL},
        .timeout_us = call->timeout_us,
        .max_output = AS_CLOUD_OP_FILE_MAX,
    };
    call->process = call->env->runner->start(call->env->runner, &request, call_ran, call);
}

static void call_waited(void *context)
{
    struct as_op_call *call = context;
    call->timer = NULL;
    as_cloud_op_on_time(call->op, call_get_now(call));
    call_later(call, 0);
}

/* ---- the op's turns ---- */

static void call_turn(void *context)
{
    struct as_op_call *call = context;
    call->timer = NULL;
    switch (call->op->want) {
    case AS_CLOUD_OP_SEND: call_send(call); break;
    case AS_CLOUD_OP_READ: call_read_file(call); break;
    case AS_CLOUD_OP_RUN: call_run(call); break;
    case AS_CLOUD_OP_WAIT:
        call->timer =
            call->env->loop->start_timer(call->env->loop, call->op->wait_us, call_waited, call);
        break;
    case AS_CLOUD_OP_END: call->callbacks.ended(call->callbacks.context); break;
    }
}

void as_op_call_start(struct as_op_call *call)
{
    call_later(call, 0);
}

void as_op_call_cancel(struct as_op_call *call)
{
    const struct as_login_env *env = call->env;
    struct as_http *http = call->http ? call->http : env->http;
    if (call->transfer)
        http->cancel(http, call->transfer);
    if (call->process)
        env->runner->cancel(env->runner, call->process);
    if (call->timer)
        env->loop->cancel_timer(env->loop, call->timer);
    call->transfer = NULL;
    call->process = NULL;
    call->timer = NULL;
}
