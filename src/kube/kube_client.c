/*
 * One request to a cluster's API server: see the header. A request is always in exactly one of
 * three states, and waits for exactly one thing: its transfer, the credential plugin, or the turn
 * of the loop that reports that it could not start.
 */
#include <alertscaler/kube/kube_client.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/http/access_limits.h>

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
