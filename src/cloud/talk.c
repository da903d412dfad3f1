/*
 * Talks: see the header.
 */
#include <alertscaler/cloud/talk.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/client.h>

void as_talk_init(struct as_talk *talk, const char *(*get_variable)(const char *name))
{
    *talk = (struct as_talk){.arena = AS_ARENA_INIT, .get_variable = get_variable};
    talk->request.body = AS_BUF_INIT(AS_TALK_BODY_MAX);
}

void as_talk_deinit(struct as_talk *talk)
{
    as_buf_wipe(&talk->request.body);
    json_decref(talk->document);
    as_arena_deinit(&talk->arena);
    *talk = (struct as_talk){0};
}

static char *print(struct as_talk *talk, const char *format, va_list list)
    __attribute__((format(printf, 2, 0)));
static char *print(struct as_talk *talk, const char *format, va_list list)
{
    char *made = NULL;
    if (vasprintf(&made, format, list) < 0)
        abort();
    char *text = as_arena_strdup(&talk->arena, made);
    free(made);
    return text;
}

const char *as_talk_print(struct as_talk *talk, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const char *text = print(talk, format, list);
    va_end(list);
    return text;
}

void as_talk_ask(struct as_talk *talk, const char *method, const char *url_format, ...)
{
    struct as_buf body = talk->request.body;
    va_list list;
    va_start(list, url_format);
    as_buf_clear(&body);
    talk->request = (struct as_talk_request){
        .method = method,
        .url = print(talk, url_format, list),
        .body = body,
        .is_change = strcmp(method, "GET") != 0,
    };
    va_end(list);
}

void as_talk_header(struct as_talk *talk, const char *format, ...)
{
    struct as_talk_request *request = &talk->request;
    va_list list;
    if (request->header_count == AS_TALK_HEADERS_MAX)
        abort(); /* a provider's own lines are few */
    va_start(list, format);
    request->headers[request->header_count++] = print(talk, format, list);
    va_end(list);
}

static void want(struct as_talk *talk, enum as_talk_want what, as_talk_hear_fn *hear)
{
    talk->want = what;
    talk->hear = hear;
}

static int op_append(const char *text, size_t size, void *buf)
{
    as_buf_append(buf, text, size);
    return 0;
}

/* 15 digits: 0.98765 is written unchanged. */
void as_talk_write_json(struct as_talk *talk, json_t *document)
{
    as_talk_header(talk, "Content-Type: application/json");
    if (json_dump_callback(document, op_append, &talk->request.body,
                           JSON_COMPACT | JSON_REAL_PRECISION(15)) != 0)
        talk->request.is_unprintable = true;
    json_decref(document);
}

void as_talk_add_parameter(struct as_talk *talk, const char *name, const char *value)
{
    struct as_buf *body = &talk->request.body;
    if (!value)
        return;
    as_buf_printf(body, "%s%s=", body->size > 0 ? "&" : "", name);
    as_encode_percent(body, value, strlen(value), ""); /* never in memory that is not wiped */
}

void as_talk_send(struct as_talk *talk, const char *operation, as_talk_hear_fn *hear)
{
    talk->request.operation = operation;
    if (as_buf_check(&talk->request.body) != 0)
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: the request is larger than %zu bytes",
                     operation, AS_TALK_BODY_MAX);
    else if (talk->request.is_unprintable)
        as_talk_fail(talk, AS_TALK_CONFIGURATION, "%s: a text in the request is not UTF-8",
                     operation);
    else
        want(talk, AS_TALK_SEND, hear);
}

void as_talk_send_question(struct as_talk *talk, const char *operation, as_talk_hear_fn *hear)
{
    talk->request.is_change = false;
    as_talk_send(talk, operation, hear);
}

void as_talk_read(struct as_talk *talk, const char *path, as_talk_hear_fn *hear)
{
    talk->path = path;
    want(talk, AS_TALK_READ, hear);
}

void as_talk_run(struct as_talk *talk, const char **argv, as_talk_hear_fn *hear)
{
    talk->argv = argv;
    want(talk, AS_TALK_RUN, hear);
}

void as_talk_wait(struct as_talk *talk, int64_t us, as_talk_hear_fn *hear)
{
    talk->wait_us = us;
    want(talk, AS_TALK_WAIT, hear);
}

void as_talk_end(struct as_talk *talk)
{
    talk->fault = AS_TALK_OK;
    talk->message[0] = '\0';
    want(talk, AS_TALK_END, NULL);
}

void as_talk_fail(struct as_talk *talk, enum as_talk_fault fault, const char *format, ...)
{
    char text[AS_TALK_MESSAGE_SIZE * 2];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    as_str_copy_line(text, talk->message, sizeof(talk->message));
    talk->fault = fault;
    want(talk, AS_TALK_END, NULL);
}

/* ---- turns ---- */

/* The pause is long, because asking again at once would lead nowhere. */
static void fail_endless(struct as_talk *talk, const char *what, unsigned count)
{
    as_talk_fail(talk, AS_TALK_CONFIGURATION, "given up after %u %s: it never ends", count, what);
    talk->retry_after_us = AS_TALK_ENDLESS_US;
}

void as_talk_begin_list(struct as_talk *talk)
{
    talk->mark_count = 0;
}

bool as_talk_turn_page(struct as_talk *talk, const char *mark)
{
    bool is_known = false;
    if (!talk->marks)
        talk->marks = as_arena_alloc(&talk->arena, AS_TALK_PAGES_MAX, sizeof(*talk->marks));
    for (unsigned i = 0; i < talk->mark_count; i++)
        is_known = is_known || strcmp(talk->marks[i], mark) == 0;
    if (is_known || talk->mark_count == AS_TALK_PAGES_MAX - 1) {
        fail_endless(talk, "pages", talk->mark_count + 1);
        return false;
    }
    talk->marks[talk->mark_count++] = as_arena_strdup(&talk->arena, mark);
    return true;
}

static void hear(struct as_talk *talk, as_wall_time now)
{
    as_talk_hear_fn *const hears = talk->hear;
    talk->now = now;
    if (++talk->turns > AS_TALK_TURNS_MAX)
        fail_endless(talk, "answers", AS_TALK_TURNS_MAX);
    else
        hears(talk);
    talk->answer = NULL;
    talk->content = NULL;
    talk->content_size = 0;
}

static void take_request_id(struct as_talk *talk, const struct as_http_response *answer)
{
    static const char *const names[] = {
        "x-request-id",     "x-amzn-requestid", "x-ms-request-id", "x-openstack-request-id",
        "x-acs-request-id", "x-bce-request-id", "audit-id",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        as_talk_take_request_id(talk, as_http_response_find(answer, names[i]));
}

void as_talk_hear_answer(struct as_talk *talk, as_wall_time now,
                         const struct as_http_response *answer)
{
    talk->answer = answer;
    talk->http_status = answer->outcome == AS_HTTP_ANSWERED ? answer->status : 0;
    talk->retry_after_us = as_retry_after_parse(answer->retry_after, now);
    take_request_id(talk, answer);
    hear(talk, now);
}

void as_talk_hear_content(struct as_talk *talk, as_wall_time now, const char *content, size_t size,
                          int error_number)
{
    talk->content = content;
    talk->content_size = size;
    talk->error_number = error_number;
    hear(talk, now);
}

void as_talk_hear_time(struct as_talk *talk, as_wall_time now)
{
    hear(talk, now);
}

/* ---- answers ---- */

static enum as_talk_fault judge_status(int status)
{
    switch (status) {
    case 401: return AS_TALK_UNAUTHORIZED;
    case 403: return AS_TALK_PERMISSION;
    case 404:
    case 410: return AS_TALK_GONE;
    case 408: return AS_TALK_TIMEOUT;
    case 409:
    case 412: return AS_TALK_BUSY;
    case 429: return AS_TALK_THROTTLED;
    default: return status >= 500 ? AS_TALK_RETRY : AS_TALK_CONFIGURATION;
    }
}

static void judge_transport(struct as_talk *talk)
{
    static const enum as_talk_fault faults[] = {
        [AS_HTTP_UNREACHABLE] = AS_TALK_RETRY,
        [AS_HTTP_BROKEN] = AS_TALK_RETRY,
        [AS_HTTP_TIMEOUT] = AS_TALK_TIMEOUT,
        [AS_HTTP_TOO_LARGE] = AS_TALK_CONFIGURATION,
    };
    const struct as_http_response *answer = talk->answer;
    as_talk_fail(talk, faults[answer->outcome], "%s: %s", talk->request.operation, answer->error);
    talk->is_ambiguous = talk->request.is_change && answer->outcome != AS_HTTP_UNREACHABLE;
}

void as_talk_take_request_id(struct as_talk *talk, const char *id)
{
    if (!as_str_is_empty(id))
        as_str_copy_line(id, talk->request_id, sizeof(talk->request_id));
}

bool as_talk_is_good(struct as_talk *talk)
{
    const struct as_http_response *answer = talk->answer;
    if (answer->outcome != AS_HTTP_ANSWERED) {
        judge_transport(talk);
        return false;
    }
    if (answer->status >= 200 && answer->status < 300)
        return true;
    as_talk_fail(talk, judge_status(answer->status), "%s: HTTP %d", talk->request.operation,
                 answer->status);
    talk->is_ambiguous = talk->request.is_change && answer->status >= 500;
    return false;
}

/* ---- texts ---- */

const char *as_talk_escaped(struct as_talk *talk, const char *text)
{
    const size_t size = strlen(text);
    AS_CLEANUP(as_buf_deinit) struct as_buf buf = AS_BUF_INIT(size * 3);
    as_encode_percent(&buf, text, size, "");
    return as_arena_strdup(&talk->arena, buf.data ? buf.data : "");
}
