/*
 * Requests to a cluster's API server: their paths, one request with the cluster's credentials, and
 * complete lists read page by page. Only a 401 is tried again here, once, and a list whose moment
 * the API server no longer knows.
 */
#include <alertscaler/kube/kube_client.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/access_limits.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/target_outcome.h>

/* Paths. Segments escape their question marks and slashes. */

static int path_append(struct as_buf *path, const char *segment, size_t size)
{
    if (size == 0 || (size == 1 && segment[0] == '.') || (size == 2 && !memcmp(segment, "..", 2)))
        return -EINVAL;
    as_buf_append_char(path, '/');
    as_encode_percent(path, segment, size, ":");
    return 0;
}

int as_kube_path_append(struct as_buf *path, const char *segment)
{
    return path_append(path, segment, strlen(segment));
}

void as_kube_path_append_parameter(struct as_buf *path, const char *name, const char *value)
{
    bool is_first = !path->data || !strchr(path->data, '?'); /* segments escape theirs */
    as_buf_append_char(path, is_first ? '?' : '&');
    as_buf_append_str(path, name);
    as_buf_append_char(path, '=');
    as_encode_percent(path, value, strlen(value), ":");
}

int as_kube_path_append_version(struct as_buf *path, const char *api_version)
{
    const char *slash = strchr(api_version, '/');
    if (!slash) {
        as_buf_append_str(path, "/api");
        return as_kube_path_append(path, api_version);
    }
    if (strchr(slash + 1, '/'))
        return -EINVAL;
    as_buf_append_str(path, "/apis");
    int status = path_append(path, api_version, (size_t)(slash - api_version));
    return status ? status : as_kube_path_append(path, slash + 1);
}

/*
 * One request. It is always in exactly one of three states, and waits for exactly one thing: its
 * transfer, the credential plugin, or the turn of the loop that reports that it could not start.
 */

#define UNAUTHORIZED 401

struct as_kube_request {
    LIST_ENTRY(as_kube_request) entry;
    struct as_kube_client *client;
    as_kube_request_done_fn *done;
    void *context;

    const char *method, *operation, *accept, *content_type;
    char *path;
    char *body;
    size_t body_size, max_response;
    int64_t timeout_us, idle_us;
    enum as_http_class class;
    struct as_flow flow; /* owned */
    as_http_body_fn *on_body;

    struct as_http_call *call; /* running */
    struct as_timer *timer;    /* could not start: `failure` says why */
    bool is_waiting;           /* waiting for the plugin */
    struct as_kube_waiter waiter;
    struct as_error failure;
    unsigned attempts;
    uint64_t generation;
};

void as_kube_client_init(struct as_kube_client *client, const struct as_access_env *env,
                         struct as_kube_access *access)
{
    client->env = env;
    client->access = access;
    LIST_INIT(&client->requests);
}

void as_kube_client_deinit(struct as_kube_client *client)
{
    struct as_kube_request *request;
    while ((request = LIST_FIRST(&client->requests)) != NULL)
        as_kube_request_cancel(request);
}

static void free_request(struct as_kube_request *request)
{
    LIST_REMOVE(request, entry);
    as_flow_deinit(&request->flow);
    free(request->path);
    free(request->body);
    free(request);
}

void as_kube_request_cancel(struct as_kube_request *request)
{
    const struct as_access_env *env = request->client->env;
    if (request->call)
        env->http->cancel(env->http, request->call);
    if (request->timer)
        env->loop->cancel_timer(env->loop, request->timer);
    if (request->is_waiting)
        as_kube_waiter_cancel(&request->waiter);
    free_request(request);
}

static void kube_client_finish(struct as_kube_request *request,
                               const struct as_http_response *response)
{
    as_kube_request_done_fn *done = request->done;
    void *context = request->context;
    unsigned attempts = request->attempts;
    free_request(request);
    done(context, response, attempts);
}

static void kube_client_fail(void *context)
{
    struct as_kube_request *request = context;
    struct as_error failure = request->failure;
    struct as_http_response response = {
        .outcome = AS_HTTP_UNREACHABLE,
        .body = "",
        .etag = "",
        .retry_after = "",
        .content_type = "",
        .error = failure.text,
    };
    request->timer = NULL;
    kube_client_finish(request, &response);
}

static int try_start(struct as_kube_request *request);

static void kube_client_answered(void *context, const struct as_http_response *response)
{
    struct as_kube_request *request = context;
    request->call = NULL;
    bool is_refused = response->outcome == AS_HTTP_ANSWERED && response->status == UNAUTHORIZED;
    if (is_refused && request->attempts == 1 &&
        as_kube_access_renew(request->client->access, request->generation) &&
        try_start(request) == 0)
        return;
    kube_client_finish(request, response);
}

static bool kube_client_read_body(void *context, const char *content_type, const char *bytes,
                                  size_t size)
{
    struct as_kube_request *request = context;
    return request->on_body(request->context, content_type, bytes, size);
}

static void start_transfer(struct as_kube_request *request,
                           const struct as_kube_connection *connection)
{
    const struct as_access_env *env = request->client->env;
    AS_CLEANUP(as_free_p) char *url = as_xasprintf("%s%s", connection->server, request->path);
    AS_CLEANUP(as_free_p)
    char *content_type = as_xasprintf("Content-Type: %s", request->content_type);
    AS_CLEANUP(as_free_p) char *accept = as_xasprintf("Accept: %s", request->accept);
    const char *headers[4] = {accept};
    size_t count = 1;
    if (request->body)
        headers[count++] = content_type;
    if (connection->authorization)
        headers[count++] = connection->authorization;
    headers[count] = NULL;
    struct as_http_request http = {
        .method = request->method,
        .url = url,
        .headers = headers,
        .body = request->body,
        .body_size = request->body_size,
        .timeout_us = request->timeout_us,
        .idle_us = request->idle_us,
        .max_response = request->max_response,
        .on_body = request->on_body ? kube_client_read_body : NULL,
        .class = request->class,
        .flow = request->flow,
        .tls = connection->tls,
        .proxy_url = connection->proxy_url,
        .client_name = "kubernetes",
        .operation = request->operation,
    };
    request->generation = connection->generation;
    request->attempts++;
    request->call = env->http->start(env->http, &http, kube_client_answered, request);
}

static void start_or_fail(void *context)
{
    struct as_kube_request *request = context;
    const struct as_access_env *env = request->client->env;
    request->is_waiting = false;
    if (try_start(request) < 0)
        request->timer = env->loop->start_timer(env->loop, 0, kube_client_fail, request);
}

/* 0: it runs, or waits for the plugin. */
static int try_start(struct as_kube_request *request)
{
    struct as_kube_connection connection;
    int status = as_kube_access_get(request->client->access, &connection, &request->failure);
    if (status < 0)
        return status;
    if (status == AS_KUBE_ACCESS_PENDING) {
        request->waiter = (struct as_kube_waiter){.ready = start_or_fail, .context = request};
        request->is_waiting = true;
        as_kube_access_wait(request->client->access, &request->waiter);
    } else {
        start_transfer(request, &connection);
    }
    return 0;
}

struct as_kube_request *as_kube_request_start(struct as_kube_client *client,
                                              const struct as_kube_request_spec *spec,
                                              as_kube_request_done_fn *done, void *context)
{
    struct as_kube_request *request = as_xcalloc(1, sizeof(*request));
    request->client = client;
    request->done = done;
    request->context = context;
    request->method = spec->method;
    request->operation = spec->operation;
    request->accept = spec->accept ? spec->accept : "application/json";
    request->content_type = spec->content_type ? spec->content_type : "application/json";
    request->timeout_us = spec->timeout_us > 0 ? spec->timeout_us : AS_KUBE_TIMEOUT_US;
    request->idle_us = spec->idle_us;
    request->class = spec->class;
    request->flow = as_flow_copy(&spec->flow);
    request->on_body = spec->on_body;
    request->path = as_xstrdup(spec->path);
    request->body = spec->body ? as_xstrndup(spec->body, spec->body_size) : NULL;
    request->body_size = spec->body_size;
    request->max_response = spec->max_response;
    LIST_INSERT_HEAD(&client->requests, request, entry);
    start_or_fail(request);
    return request;
}

void as_kube_outcome_init(struct as_outcome *outcome, const struct as_http_response *response,
                          bool is_change, as_wall_time now, struct as_kube_status *status_out)
{
    struct as_kube_status status = {0};
    as_outcome_init(outcome, response, is_change, now);
    if (outcome->reason != AS_REASON_APPLIED && outcome->http_status > 0 &&
        as_kube_status_decode(response->body, response->body_size, &status, NULL) == 0) {
        as_outcome_set_message(outcome, status.message);
        if (outcome->retry_after_us == 0)
            outcome->retry_after_us = status.retry_after_us;
    }
    if (status_out)
        *status_out = status;
}

/*
 * A list, page by page. Each page begins where the one before it ended, so that all show the
 * cluster at one moment. If the API server no longer knows that moment (410), the list is
 * restarted, once.
 *
 * All or nothing: a list that ends early is a failure, because what is missing would seem not to
 * exist. Limits: see target_outcome.h.
 */

#define FORBIDDEN 403
#define NOT_FOUND 404
#define GONE      410

/* Waits for exactly one of: request, timer. */
struct as_kube_pages {
    struct as_kube_client *client;
    struct as_kube_pages_spec spec;
    char *path;
    char *next; /* token of the next page; NULL: the first */
    struct as_kube_request *request;
    struct as_timer *timer; /* could not start: the outcome says why */
    struct as_outcome outcome;
    as_mono_time started_at;
    unsigned count;
    size_t bytes;
    bool is_second_try;
};

static void free_pages(struct as_kube_pages *pages)
{
    as_flow_deinit(&pages->spec.flow);
    free(pages->path);
    free(pages->next);
    free(pages);
}

void as_kube_pages_cancel(struct as_kube_pages *pages)
{
    const struct as_access_env *env = pages->client->env;
    if (pages->request)
        as_kube_request_cancel(pages->request);
    if (pages->timer)
        env->loop->cancel_timer(env->loop, pages->timer);
    free_pages(pages);
}

static void pages_finish(void *context)
{
    struct as_kube_pages *pages = context;
    pages->timer = NULL;
    if (pages->outcome.reason != AS_REASON_APPLIED)
        pages->spec.clear(pages->spec.into);
    pages->spec.done(pages->spec.context, &pages->outcome);
    free_pages(pages);
}

/* `what` is our own text or the other side's. */
static void set_failure(struct as_kube_pages *pages, enum as_reason reason, const char *what)
{
    char message[2 * AS_MESSAGE_SIZE];
    snprintf(message, sizeof(message), "%s: %s", pages->spec.what, what);
    pages->outcome.reason = reason;
    as_outcome_set_message(&pages->outcome, message);
}

static int pages_write_path(const struct as_kube_pages *pages, struct as_buf *path)
{
    char limit[16];
    if (!pages->path)
        return -1;
    as_buf_append_str(path, pages->path);
    snprintf(limit, sizeof(limit), "%d", AS_KUBE_PODS_PAGE);
    as_kube_path_append_parameter(path, "limit", limit);
    if (pages->next)
        as_kube_path_append_parameter(path, "continue", pages->next);
    return as_buf_check(path);
}

static void pages_answered(void *context, const struct as_http_response *response,
                           unsigned attempts);

static void pages_ask(struct as_kube_pages *pages)
{
    const struct as_access_env *env = pages->client->env;
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    if (pages_write_path(pages, &path) < 0) {
        set_failure(pages, AS_REASON_REJECTED, pages->spec.trouble);
        pages->timer = env->loop->start_timer(env->loop, 0, pages_finish, pages);
        return;
    }
    struct as_kube_request_spec spec = {
        .method = "GET",
        .path = path.data,
        .operation = pages->spec.operation,
        .accept = pages->spec.accept,
        .max_response = AS_KUBE_PODS_PAGE_BYTES_MAX,
        .flow = pages->spec.flow,
    };
    pages->request = as_kube_request_start(pages->client, &spec, pages_answered, pages);
}

/* Explains with the API server's words. A 404 that names no object of ours is not "not found"; for
 * a 403 the missing right is named. */
static void pages_explain(struct as_kube_pages *pages)
{
    const struct as_outcome *outcome = &pages->outcome;
    char what[AS_MESSAGE_SIZE + 128], right[128] = "";
    if (outcome->http_status == FORBIDDEN)
        snprintf(right, sizeof(right), "the right \"%s\" is missing: ", pages->spec.right);
    snprintf(what, sizeof(what), "%s%s", right, outcome->message);
    enum as_reason reason = outcome->reason;
    if (outcome->http_status == NOT_FOUND)
        reason = AS_REASON_REJECTED;
    if (outcome->http_status == GONE)
        reason = AS_REASON_UNREACHABLE;
    set_failure(pages, reason, what);
}

static void pages_begin_anew(struct as_kube_pages *pages)
{
    free(pages->next);
    pages->next = NULL;
    pages->is_second_try = true;
    pages->spec.clear(pages->spec.into);
    pages_ask(pages);
}

static void take_page(struct as_kube_pages *pages, const struct as_http_response *response)
{
    struct as_error error = AS_ERROR_INIT;
    char *next = NULL;
    int status =
        pages->spec.take(pages->spec.into, response->body, response->body_size, &next, &error);
    free(pages->next);
    pages->next = next;
    if (status)
        set_failure(pages, AS_REASON_REJECTED, error.text);
}

/* Whether the limits allow another page. */
static void check_limits(struct as_kube_pages *pages)
{
    const struct as_clock *clock = pages->client->env->clock;
    if (pages->bytes >= AS_KUBE_PODS_BYTES_MAX || pages->count >= AS_KUBE_PODS_PAGES_MAX)
        set_failure(pages, AS_REASON_REJECTED, "the list is too long");
    else if (clock->get_mono(clock).us - pages->started_at.us >= AS_KUBE_PODS_TIMEOUT_US)
        set_failure(pages, AS_REASON_TIMEOUT, "the list takes too long");
}

static void pages_answered(void *context, const struct as_http_response *response,
                           unsigned attempts)
{
    struct as_kube_pages *pages = context;
    const struct as_clock *clock = pages->client->env->clock;
    pages->request = NULL;
    pages->count++;
    pages->bytes += response->body_size;
    as_kube_outcome_init(&pages->outcome, response, false, clock->get_wall(clock), NULL);
    if (pages->outcome.http_status == GONE && pages->next && !pages->is_second_try) {
        pages_begin_anew(pages);
        return;
    }
    if (pages->outcome.reason == AS_REASON_APPLIED)
        take_page(pages, response);
    else
        pages_explain(pages);
    if (pages->outcome.reason == AS_REASON_APPLIED && pages->next)
        check_limits(pages);
    if (pages->outcome.reason == AS_REASON_APPLIED && pages->next)
        pages_ask(pages);
    else
        pages_finish(pages);
}

struct as_kube_pages *as_kube_pages_start(struct as_kube_client *client,
                                          const struct as_kube_pages_spec *spec)
{
    struct as_kube_pages *pages = as_xcalloc(1, sizeof(*pages));
    pages->client = client;
    pages->spec = *spec;
    if (!spec->into)
        pages->spec.into = spec->context;
    pages->spec.flow = as_flow_copy(&spec->flow);
    pages->path = spec->path ? as_xstrdup(spec->path) : NULL;
    pages->started_at = client->env->clock->get_mono(client->env->clock);
    pages_ask(pages);
    return pages;
}
