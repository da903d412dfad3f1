/*
 * Talks over the ports: see the header. Every want is started from a separate turn of the loop, so
 * that no callback comes from inside a call.
 */
#include "talk_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/retry_after.h>

#define SKEW_MIN_US (2 * AS_US_PER_MIN) /* clouds accept five minutes and more */

static void turn(void *context);

static void later(struct talk_call *call, int64_t us)
{
    call->timer = call->env->loop->start_timer(call->env->loop, us, turn, call);
}

/* The time of the other side's clock. */
static as_wall_time get_now(const struct talk_call *call)
{
    const as_wall_time now = call->env->clock->get_wall(call->env->clock);
    return (as_wall_time){as_time_add(now.us, call->skew_us ? *call->skew_us : 0)};
}

/* ---- requests ---- */

/* A signature contains the time. Whether a refusal may come from a wrong clock of ours: judged by
 * the answer's own time, and only if this was not known before. Then the same request is signed
 * once more, with the other side's time; the refused request was not carried out. A request for
 * credentials is started anew. */
static bool learns_time(struct talk_call *call, const struct as_http_response *response)
{
    as_wall_time theirs;
    const struct as_talk_request *request = &call->talk->request;
    if (!call->skew_us || call->cluster || call->is_repeated ||
        (request->is_plain && !request->is_timed) || response->outcome != AS_HTTP_ANSWERED ||
        response->status < 400 || response->status > 403 ||
        as_http_date_parse(as_http_response_find(response, "Date"), &theirs) < 0)
        return false;
    const int64_t news = theirs.us - get_now(call).us;
    if (news > -SKEW_MIN_US && news < SKEW_MIN_US)
        return false;
    *call->skew_us += news;
    as_log(AS_LOG_WARN, "the clock of this machine is off, or the provider's",
           AS_F("provider", call->client), AS_FI("seconds_behind", *call->skew_us / AS_US_PER_S));
    return true;
}

static void answered(void *context, const struct as_http_response *response)
{
    struct talk_call *call = context;
    struct as_talk *talk = call->talk;
    call->transfer = NULL;
    if (learns_time(call, response)) {
        call->is_repeated = true;
        if (talk->request.is_plain)
            call->callbacks.mistimed(call->callbacks.context);
        else
            talk_call_repeat(call);
        return;
    }
    as_talk_hear_answer(talk, get_now(call), response);
    if (talk->want == AS_TALK_END && talk->fault == AS_TALK_UNAUTHORIZED && !call->is_repeated &&
        call->callbacks.refused(call->callbacks.context, call)) {
        call->is_repeated = true;
        return;
    }
    later(call, 0);
}

static void cluster_answered(void *context, const struct as_http_response *response,
                             unsigned attempts)
{
    struct talk_call *call = context;
    call->question = NULL;
    call->talk->sent += attempts;
    answered(call, response);
}

static void ask_cluster(struct talk_call *call)
{
    static const char type[] = "Content-Type: ";
    const struct as_talk_request *wanted = &call->talk->request;
    struct as_kube_request_spec spec = {
        .method = wanted->method,
        .path = wanted->url,
        .operation = wanted->operation,
        .body = wanted->body.size > 0 ? wanted->body.data : NULL,
        .body_size = wanted->body.size,
        .max_response = AS_TALK_ANSWER_MAX,
        .timeout_us = call->timeout_us,
        .flow = call->flow,
    };
    for (size_t i = 0; i < wanted->header_count; i++) {
        if (as_str_starts_with(wanted->headers[i], type))
            spec.content_type = wanted->headers[i] + strlen(type);
    }
    call->question = as_kube_request_start(call->cluster, &spec, cluster_answered, call);
}

/* A change that must not be made now fails without a request. */
static bool stops(struct talk_call *call)
{
    const enum as_permit permit = as_access_get_permit(call->env);
    const char *rival = as_access_find_rival(call->env, call->flow.target);
    if (permit > AS_PERMIT_FINISH)
        as_talk_fail(call->talk, AS_TALK_STOPPED, "%s", as_permit_explain(permit));
    else if (rival)
        as_talk_fail(call->talk, AS_TALK_NOT_ALLOWED, AS_RIVAL_FORMAT, rival);
    else
        return false;
    later(call, 0);
    return true;
}

static void send(struct talk_call *call)
{
    struct as_talk *talk = call->talk;
    const struct as_talk_request *wanted = &talk->request;
    if (wanted->is_change && stops(call))
        return;
    if (call->cluster) {
        ask_cluster(call);
        return;
    }
    call->hear = talk->hear;
    call->plain_headers = wanted->header_count;
    if (!wanted->is_plain && !call->callbacks.authorize(call->callbacks.context, talk)) {
        later(call, 0);
        return;
    }
    struct as_http_request request = {
        .method = wanted->method,
        .url = wanted->url,
        .headers = wanted->headers,
        .body = wanted->body.size > 0 ? wanted->body.data : NULL,
        .body_size = wanted->body.size,
        .timeout_us = wanted->timeout_us ? wanted->timeout_us : call->timeout_us,
        .max_response = AS_TALK_ANSWER_MAX,
        .flow = call->flow,
        .is_http2 = wanted->is_http2,
        .proxy_url = wanted->without_proxy ? NULL : call->proxy_url,
        .client_name = call->client,
        .operation = wanted->operation,
    };
    struct as_error error = AS_ERROR_INIT;
    if (call->tls)
        request.tls = *call->tls;
    if (call->auth && as_http_auth_apply(call->auth, wanted->headers, &request, &error) < 0) {
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: %s", wanted->operation, error.text);
        later(call, 0);
        return;
    }
    talk->sent++;
    call->transfer = call->env->http->start(call->env->http, &request, answered, call);
}

void talk_call_repeat(struct talk_call *call)
{
    struct as_talk *talk = call->talk;
    while (talk->request.header_count > call->plain_headers)
        talk->request.headers[--talk->request.header_count] = NULL;
    talk->want = AS_TALK_SEND;
    talk->hear = call->hear;
    later(call, 0);
}

/* ---- files, programs, time ---- */

static void read_file(struct talk_call *call)
{
    struct as_talk *talk = call->talk;
    char *text = NULL;
    size_t size = 0;
    const int status = as_file_read(talk->path, AS_TALK_FILE_MAX, &text, &size);
    as_talk_hear_content(talk, get_now(call), status == 0 ? text : NULL, size, -status);
    if (text)
        explicit_bzero(text, size); /* it may be a secret */
    free(text);
    later(call, 0);
}

static void ran(void *context, const struct as_process_result *result)
{
    struct talk_call *call = context;
    static const int errors[] = {
        [AS_PROCESS_EXITED] = EIO,         [AS_PROCESS_KILLED] = EINTR,
        [AS_PROCESS_NOT_STARTED] = ENOENT, [AS_PROCESS_TIMEOUT] = ETIMEDOUT,
        [AS_PROCESS_TOO_LARGE] = EFBIG,
    };
    const bool is_good = result->outcome == AS_PROCESS_EXITED && result->status == 0;
    call->process = NULL;
    as_talk_hear_content(call->talk, get_now(call), is_good ? result->output : NULL,
                         result->output_size, is_good ? 0 : errors[result->outcome]);
    later(call, 0);
}

static void run(struct talk_call *call)
{
    const struct as_process_request request = {
        .argv = (const char *const *)call->talk->argv,
        .env = (const char *const[]){NULL},
        .timeout_us = call->timeout_us,
        .max_output = AS_TALK_FILE_MAX,
    };
    call->process = call->env->runner->start(call->env->runner, &request, ran, call);
}

static void waited(void *context)
{
    struct talk_call *call = context;
    call->timer = NULL;
    as_talk_hear_time(call->talk, get_now(call));
    later(call, 0);
}

/* ---- the talk's turns ---- */

static void turn(void *context)
{
    struct talk_call *call = context;
    call->timer = NULL;
    switch (call->talk->want) {
    case AS_TALK_SEND: send(call); break;
    case AS_TALK_READ: read_file(call); break;
    case AS_TALK_RUN: run(call); break;
    case AS_TALK_WAIT:
        call->timer =
            call->env->loop->start_timer(call->env->loop, call->talk->wait_us, waited, call);
        break;
    case AS_TALK_END: call->callbacks.ended(call->callbacks.context); break;
    }
}

void talk_call_start(struct talk_call *call)
{
    later(call, 0);
}

void talk_call_cancel(struct talk_call *call)
{
    const struct as_access_env *env = call->env;
    if (call->transfer)
        env->http->cancel(env->http, call->transfer);
    if (call->question)
        as_kube_request_cancel(call->question);
    if (call->process)
        env->runner->cancel(env->runner, call->process);
    if (call->timer)
        env->loop->cancel_timer(env->loop, call->timer);
    call->transfer = NULL;
    call->question = NULL;
    call->process = NULL;
    call->timer = NULL;
}
