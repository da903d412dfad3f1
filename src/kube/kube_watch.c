/*
 * A watch of one resource: see the header. It waits for exactly one thing: a request (a page of the
 * list, or the watch), or the timer before the next one.
 *
 * `version` is always the one up to which everything has been told; "" while there is a list to be
 * told first. So what is asked next follows from it alone.
 */
#include "kube_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/access_limits.h>
#include <alertscaler/http/client.h>

#include <alertscaler/kube/kube_client.h>

#define JSON          "application/json"
#define PROTOBUF      "application/vnd.kubernetes.protobuf"
#define UNAUTHORIZED  401
#define FORBIDDEN     403
#define GONE          410
#define TOO_MANY      429
#define SERVER_ERRORS 5 /* 500 to 599 */

struct as_kube_watch {
    struct as_kube_client *client;
    const struct as_kube_watch_listener *listener;
    void *context;
    char *path, *field_selector, *label_selector;
    const char *list_operation, *watch_operation;
    bool wants_protobuf;
    struct as_random random;

    struct as_kube_request *request;
    struct as_timer *timer;
    struct as_kube_stream *stream; /* of the answer that is being read */
    as_mono_time asked_at;         /* the request */

    char version[AS_VERSION_SIZE];
    bool is_synced;
    as_mono_time fresh_at, confirmed_at;

    /* The list, while there is one to be told: */
    char *next;                         /* token of the next page; NULL: the first page */
    char list_version[AS_VERSION_SIZE]; /* of its first page */
    as_mono_time listed_at;             /* its first page was asked for */
    unsigned pages;

    unsigned failures;       /* in a row, without an event of a watch between them */
    bool was_gone;           /* one of them was a 410, so that the list began anew at once */
    struct as_error refusal; /* why the answer was not read to its end */
    bool is_refused;
    struct as_kube_status status; /* of an ERROR event */
    bool is_over;                 /* there was one */
    bool has_event;               /* an event of this watch */
    bool is_forbidden;            /* the last answer was a 403 */
};

static as_mono_time kube_watch_get_now(const struct as_kube_watch *watch)
{
    const struct as_clock *clock = watch->client->env->clock;
    return clock->get_mono(clock);
}

static bool is_listing(const struct as_kube_watch *watch)
{
    return !*watch->version;
}

static void recover(struct as_kube_watch *watch)
{
    watch->failures = 0;
    watch->was_gone = false;
}

static void kube_watch_begin_anew(struct as_kube_watch *watch)
{
    watch->version[0] = '\0';
    free(watch->next);
    watch->next = NULL;
    watch->pages = 0;
}

/* ---- asking ---- */

static int kube_watch_write_path(const struct as_kube_watch *watch, struct as_buf *path)
{
    char number[AS_NUMBER_SIZE];
    as_buf_append_str(path, watch->path);
    if (watch->field_selector)
        as_kube_path_append_parameter(path, "fieldSelector", watch->field_selector);
    if (watch->label_selector)
        as_kube_path_append_parameter(path, "labelSelector", watch->label_selector);
    if (is_listing(watch)) {
        as_number_print_i64(AS_KUBE_LIST_PAGE, number);
        as_kube_path_append_parameter(path, "limit", number);
        if (watch->next)
            as_kube_path_append_parameter(path, "continue", watch->next);
        return as_buf_check(path);
    }
    as_number_print_i64(AS_KUBE_WATCH_S, number);
    as_kube_path_append_parameter(path, "watch", "true");
    as_kube_path_append_parameter(path, "allowWatchBookmarks", "true");
    as_kube_path_append_parameter(path, "timeoutSeconds", number);
    as_kube_path_append_parameter(path, "resourceVersion", watch->version);
    return as_buf_check(path);
}

static bool read_part(void *context, const char *content_type, const char *bytes, size_t size);
static void kube_watch_answered(void *context, const struct as_http_response *response,
                                unsigned attempts);

static const char *get_accept(const struct as_kube_watch *watch)
{
    if (!watch->wants_protobuf)
        return JSON;
    return is_listing(watch) ? PROTOBUF ", " JSON ";q=0.9"
                             : PROTOBUF ";stream=watch, " JSON ";q=0.9";
}

static void kube_watch_ask(void *context)
{
    struct as_kube_watch *watch = context;
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_KUBE_WATCH_PATH_MAX);
    const bool is_list = is_listing(watch);
    watch->timer = NULL;
    if (kube_watch_write_path(watch, &path) < 0)
        abort(); /* its parts are limited */
    struct as_kube_request_spec spec = {
        .method = "GET",
        .path = path.data,
        .operation = is_list ? watch->list_operation : watch->watch_operation,
        .accept = get_accept(watch),
        .max_response = AS_KUBE_WATCH_ERROR_MAX,
        .timeout_us = is_list ? AS_KUBE_LIST_TIMEOUT_US : AS_KUBE_WATCH_TIMEOUT_US,
        .idle_us = is_list ? AS_KUBE_LIST_IDLE_US : 0,
        .class = AS_HTTP_WATCH,
        .on_body = read_part,
    };
    watch->asked_at = kube_watch_get_now(watch);
    if (is_list && !watch->next)
        watch->listed_at = watch->asked_at;
    watch->is_refused = watch->is_over = watch->has_event = false;
    watch->request = as_kube_request_start(watch->client, &spec, kube_watch_answered, watch);
}

static void ask_later(struct as_kube_watch *watch, int64_t delay_us)
{
    struct as_loop *loop = watch->client->env->loop;
    if (delay_us > 0)
        watch->timer = loop->start_timer(loop, delay_us, kube_watch_ask, watch);
    else
        kube_watch_ask(watch);
}

/* ---- reading ---- */

/* The versions of built-in resources are numbers that grow. Of another kind only equality is known.
 */
static bool goes_back(const char *from, const char *to)
{
    int64_t older, newer;
    return as_number_parse_i64(from, strlen(from), &older) == 0 &&
           as_number_parse_i64(to, strlen(to), &newer) == 0 && newer < older;
}

static int kube_watch_take_event(struct as_kube_watch *watch,
                                 const struct as_kube_stream_event *event, struct as_error *error)
{
    int status = 0;
    if (goes_back(watch->version, event->resource_version)) {
        as_error_set(error, "resourceVersion goes back from %s to %s", watch->version,
                     event->resource_version);
        return -EBADMSG;
    }
    if (event->verb != AS_KUBE_BOOKMARK)
        status = watch->listener->object(watch->context, event->verb, event->form, event->object,
                                         event->size, error);
    if (status)
        return status;
    snprintf(watch->version, sizeof(watch->version), "%s", event->resource_version);
    watch->fresh_at = watch->confirmed_at = kube_watch_get_now(watch);
    watch->has_event = true;
    recover(watch);
    return 0;
}

static int kube_watch_take(void *context, const struct as_kube_stream_event *event,
                           struct as_error *error)
{
    struct as_kube_watch *watch = context;
    switch (event->verb) {
    case AS_KUBE_LISTED:
        return watch->listener->object(watch->context, event->verb, event->form, event->object,
                                       event->size, error);
    case AS_KUBE_ADDED:
    case AS_KUBE_MODIFIED:
    case AS_KUBE_DELETED:
    case AS_KUBE_BOOKMARK: return kube_watch_take_event(watch, event, error);
    case AS_KUBE_ERROR: break;
    }
    watch->is_over = true;
    watch->status = *event->status;
    as_error_set(error, "%d %s: %s", event->status->code, event->status->reason,
                 event->status->message);
    return -ECANCELED;
}

static bool has_type(const char *content_type, const char *type)
{
    const size_t size = strlen(type);
    return strncasecmp(content_type, type, size) == 0 &&
           (!content_type[size] || strchr("; \t", content_type[size]) != NULL);
}

/* The head of the answer is there. */
static int begin_answer(struct as_kube_watch *watch, const char *content_type)
{
    const bool is_protobuf = has_type(content_type, PROTOBUF);
    watch->is_forbidden = false;
    const bool is_list = is_listing(watch);
    if (!is_protobuf && !has_type(content_type, JSON)) {
        as_error_set(&watch->refusal, "Content-Type: expected " JSON " or " PROTOBUF);
        return -EBADMSG;
    }
    watch->stream =
        as_kube_stream_new(is_list ? AS_KUBE_STREAM_LIST : AS_KUBE_STREAM_WATCH,
                           is_protobuf ? AS_KUBE_PROTOBUF : AS_KUBE_JSON, kube_watch_take, watch);
    if (!is_list)
        watch->fresh_at = kube_watch_get_now(watch);
    if (is_list && !watch->next) {
        watch->is_synced = false;
        watch->listener->list_begin(watch->context);
    }
    return 0;
}

static bool read_part(void *context, const char *content_type, const char *bytes, size_t size)
{
    struct as_kube_watch *watch = context;
    int status = watch->stream ? 0 : begin_answer(watch, content_type);
    if (status == 0)
        status = as_kube_stream_feed(watch->stream, bytes, size, &watch->refusal);
    watch->is_refused = status < 0;
    return status == 0;
}

/* ---- failures ---- */

static int64_t get_backoff(struct as_kube_watch *watch)
{
    int64_t us = AS_KUBE_WATCH_RETRY_US;
    for (unsigned i = 1; i < watch->failures && us < AS_KUBE_WATCH_RETRY_MAX_US; i++)
        us *= 2;
    us = us < AS_KUBE_WATCH_RETRY_MAX_US ? us : AS_KUBE_WATCH_RETRY_MAX_US;
    return us / 2 + (int64_t)as_random_get_below(&watch->random, (uint64_t)us / 2 + 1);
}

/* Retries not before `retry_after_us`, and says why. The last call in a callback. */
static void kube_watch_fail(struct as_kube_watch *watch, bool was_list, int64_t retry_after_us,
                            const char *what)
{
    struct as_error error = AS_ERROR_INIT;
    as_error_set(&error, "%s %s: %s", was_list ? "list" : "watch", watch->path, what);
    watch->failures++;
    const int64_t backoff_us = get_backoff(watch);
    ask_later(watch, backoff_us > retry_after_us ? backoff_us : retry_after_us);
    watch->listener->failed(watch->context, error.text);
}

/* The server no longer knows the version: no failure, unless it comes again and again. After an
 * outage it is what the first answer says, and must not wait for another back-off. */
static void fail_gone(struct as_kube_watch *watch, bool was_list, const char *what)
{
    kube_watch_begin_anew(watch);
    if (watch->was_gone) {
        kube_watch_fail(watch, was_list, 0, what);
        return;
    }
    watch->was_gone = true;
    watch->failures++;
    kube_watch_ask(watch);
}

/* The server never reaches the version by itself: its state was restored from a backup, say. By its
 * words, as the official client does it: the cause is not in the answer of every version. */
static bool is_from_the_future(const struct as_kube_status *status)
{
    return strstr(status->message, "Too large resource version") != NULL;
}

/* An answer that is an error. Some pass by themselves: the watch then goes on where it was. */
static void fail_status(struct as_kube_watch *watch, const struct as_http_response *response)
{
    const struct as_clock *clock = watch->client->env->clock;
    const int http = response->status;
    const bool was_list = is_listing(watch);
    struct as_kube_status status = {.code = 0};
    struct as_error what = AS_ERROR_INIT;
    int code = as_kube_stream_read_status(response->body, response->body_size, &status, NULL);
    const char *words = code == 0 ? status.message : "";
    as_error_set(&what, "HTTP %d%s%s", http, *words ? ": " : "", words);
    watch->is_forbidden = http == FORBIDDEN;
    if (http == GONE) {
        fail_gone(watch, was_list, what.text);
        return;
    }
    int64_t wait_us = as_retry_after_parse(response->retry_after, clock->get_wall(clock));
    wait_us = wait_us > status.retry_after_us ? wait_us : status.retry_after_us;
    const bool passes = http == UNAUTHORIZED || http == FORBIDDEN || http == TOO_MANY ||
                        http / 100 == SERVER_ERRORS;
    if (was_list || !passes || is_from_the_future(&status))
        kube_watch_begin_anew(watch);
    kube_watch_fail(watch, was_list, wait_us, what.text);
}

/* What was read of the answer is not to be trusted, or says that the watch is over. */
static void fail_refused(struct as_kube_watch *watch)
{
    const bool was_list = is_listing(watch);
    const struct as_error what = watch->refusal;
    if (watch->is_over && watch->status.code == GONE) {
        fail_gone(watch, was_list, what.text);
        return;
    }
    const int64_t wait_us = watch->is_over ? watch->status.retry_after_us : 0;
    kube_watch_begin_anew(watch);
    kube_watch_fail(watch, was_list, wait_us, what.text);
}

/* ---- answers ---- */

static void end_page(struct as_kube_watch *watch, const struct as_kube_stream *page)
{
    const char *version = as_kube_stream_get_version(page);
    const char *next = as_kube_stream_get_continue(page);
    if (!watch->next)
        snprintf(watch->list_version, sizeof(watch->list_version), "%s", version);
    free(watch->next);
    watch->next = *next ? as_xstrdup(next) : NULL;
    watch->pages++;
    if (watch->next && watch->pages >= AS_KUBE_LIST_PAGES_MAX) {
        kube_watch_begin_anew(watch);
        kube_watch_fail(watch, true, 0, "the list is too long");
        return;
    }
    if (!watch->next) {
        snprintf(watch->version, sizeof(watch->version), "%s", watch->list_version);
        watch->pages = 0;
        watch->is_synced = true;
        watch->fresh_at = watch->confirmed_at = watch->listed_at;
    }
    kube_watch_ask(watch);
    if (!is_listing(watch))
        watch->listener->list_end(watch->context, watch->list_version);
}

/* The server has ended the watch, as it was asked to. */
static void end_watch(struct as_kube_watch *watch)
{
    const int64_t lasted_us = kube_watch_get_now(watch).us - watch->asked_at.us;
    if (lasted_us < AS_KUBE_WATCH_RETRY_US && !watch->has_event) {
        kube_watch_fail(watch, false, 0, "the server ends the watch at once");
        return;
    }
    recover(watch);
    ask_later(watch, AS_KUBE_WATCH_RETRY_US - lasted_us);
}

static void end_answer(struct as_kube_watch *watch, struct as_kube_stream *stream)
{
    const bool was_list = is_listing(watch);
    struct as_error what = AS_ERROR_INIT;
    int status = as_kube_stream_finish(stream, &what);
    if (status == 0 && was_list) {
        end_page(watch, stream);
    } else if (status == 0) {
        end_watch(watch);
    } else {
        if (was_list)
            kube_watch_begin_anew(watch);
        kube_watch_fail(watch, was_list, 0, what.text);
    }
}

static void kube_watch_answered(void *context, const struct as_http_response *response,
                                unsigned attempts)
{
    struct as_kube_watch *watch = context;
    AS_CLEANUP(as_kube_stream_free_p) struct as_kube_stream *stream = watch->stream;
    const bool was_list = is_listing(watch);
    watch->request = NULL;
    watch->stream = NULL;
    if (watch->is_refused) {
        fail_refused(watch);
    } else if (response->outcome != AS_HTTP_ANSWERED) {
        if (was_list)
            kube_watch_begin_anew(watch);
        kube_watch_fail(watch, was_list, 0, response->error);
    } else if (stream) {
        end_answer(watch, stream);
    } else {
        fail_status(watch, response);
    }
}

/* ---- the watch ---- */

struct as_kube_watch *as_kube_watch_start(struct as_kube_client *client,
                                          const struct as_kube_watch_spec *spec,
                                          const struct as_kube_watch_listener *listener,
                                          void *context)
{
    struct as_kube_watch *watch = as_xcalloc(1, sizeof(*watch));
    watch->client = client;
    watch->listener = listener;
    watch->context = context;
    watch->path = as_xstrdup(spec->path);
    watch->field_selector = spec->field_selector ? as_xstrdup(spec->field_selector) : NULL;
    watch->label_selector = spec->label_selector ? as_xstrdup(spec->label_selector) : NULL;
    watch->list_operation = spec->list_operation;
    watch->watch_operation = spec->watch_operation;
    watch->wants_protobuf = spec->wants_protobuf;
    as_random_init(&watch->random, spec->seed);
    kube_watch_ask(watch);
    return watch;
}

struct as_kube_watch *as_kube_watch_stop(struct as_kube_watch *watch)
{
    if (!watch)
        return NULL;
    if (watch->request)
        as_kube_request_cancel(watch->request);
    if (watch->timer)
        watch->client->env->loop->cancel_timer(watch->client->env->loop, watch->timer);
    as_kube_stream_free(watch->stream);
    free(watch->path);
    free(watch->field_selector);
    free(watch->label_selector);
    free(watch->next);
    free(watch);
    return NULL;
}

bool as_kube_watch_is_synced(const struct as_kube_watch *watch)
{
    return watch->is_synced;
}

as_mono_time as_kube_watch_get_fresh_at(const struct as_kube_watch *watch)
{
    return watch->fresh_at;
}

as_mono_time as_kube_watch_get_confirmed_at(const struct as_kube_watch *watch)
{
    return watch->confirmed_at;
}

bool as_kube_watch_is_forbidden(const struct as_kube_watch *watch)
{
    return watch->is_forbidden;
}
