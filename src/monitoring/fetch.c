/*
 * One request to a monitoring server: see the header. A redirect is an error that names its target:
 * following it could send the query, with credentials, to somebody else's server.
 */
#include <alertscaler/monitoring/fetch.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/monitoring/prometheus.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

void as_server_set_url(struct as_server *server, const char *base, const char *path)
{
    size_t size = base ? strlen(base) : 0;
    while (size > 0 && base[size - 1] == '/')
        size--;
    server->url = base ? as_xasprintf("%.*s%s", (int)size, base, path) : NULL;
}

void as_server_deinit(struct as_server *server)
{
    free(server->name);
    free(server->url);
    *server = (struct as_server){0};
}

static void set_error_of_status(struct as_fetch *fetch, const struct as_http_response *response)
{
    char text[AS_QUERY_ERROR_MAX];
    bool leads_away = response->status >= 300 && response->status < 400;
    fetch->server->read_error(response->body, response->body_size, text);
    if (leads_away && *response->location)
        as_error_set(&fetch->error, "HTTP %d leads to %s, and redirects are not followed",
                     response->status, response->location);
    else if (response->status == 404 && fetch->server->missing)
        as_error_set(&fetch->error, "HTTP 404: %s", fetch->server->missing);
    else if ((fetch->has_message = *text != '\0'))
        as_error_set(&fetch->error, "HTTP %d: %s", response->status, text);
    else
        as_prometheus_explain_status(response->status, response->body, &fetch->error);
}

static enum as_fetch_outcome judge(struct as_fetch *fetch, const struct as_http_response *response)
{
    const struct as_server *server = fetch->server;
    const bool is_small = server->max_response < MIB;
    char timeout[AS_DURATION_SIZE];
    if (fetch->is_accepted) /* whatever became of the rest */
        return AS_FETCH_OK;
    switch (response->outcome) {
    case AS_HTTP_ANSWERED:
        if (response->status >= 200 && response->status < 300)
            return AS_FETCH_OK;
        set_error_of_status(fetch, response);
        return AS_FETCH_REFUSED;
    case AS_HTTP_TOO_LARGE:
        as_error_set(&fetch->error, "the answer is larger than %zu %s",
                     server->max_response / (is_small ? KIB : MIB), is_small ? "KiB" : "MiB");
        return AS_FETCH_TOO_LARGE;
    case AS_HTTP_TIMEOUT:
        as_duration_print(server->timeout_us, timeout);
        as_error_set(&fetch->error, "no answer within %s", timeout);
        return AS_FETCH_TIMEOUT;
    case AS_HTTP_UNREACHABLE:
        as_error_set(&fetch->error, "unreachable: %s", response->error);
        break;
    case AS_HTTP_BROKEN: as_error_set(&fetch->error, "broke off: %s", response->error); break;
    case AS_HTTP_UNSENT: as_error_set(&fetch->error, "%s", response->error); break;
    }
    return AS_FETCH_UNREACHABLE;
}

/* A peer that lies may send a body without end. */
static bool ignore_body(void *context, const char *content_type, const char *bytes, size_t size)
{
    struct as_fetch *fetch = context;
    fetch->is_accepted = true;
    fetch->ignored += size;
    return fetch->ignored <= fetch->server->max_response;
}

static void on_answer(void *context, const struct as_http_response *response)
{
    struct as_fetch *fetch = context;
    fetch->transfer = NULL;
    fetch->status = response->outcome == AS_HTTP_ANSWERED ? response->status : 0;
    fetch->outcome = judge(fetch, response);
    if (fetch->outcome == AS_FETCH_OK ||
        (fetch->outcome == AS_FETCH_REFUSED && fetch->server->reads_errors)) {
        fetch->done(fetch->context, response->body, response->body_size);
    } else {
        as_error_wrap(&fetch->error, "%s", fetch->server->name);
        fetch->done(fetch->context, NULL, 0);
    }
}

static void begin(struct as_fetch *fetch, const struct as_server *server, as_fetch_done_fn *done,
                  void *context)
{
    *fetch = (struct as_fetch){
        .server = server,
        .done = done,
        .context = context,
        .started = server->env->clock->get_mono(server->env->clock),
    };
}

static void on_failed(void *context)
{
    struct as_fetch *fetch = context;
    fetch->timer = NULL;
    fetch->done(fetch->context, NULL, 0);
}

void as_fetch_fail(struct as_fetch *fetch, const struct as_server *server, const char *why,
                   as_fetch_done_fn *done, void *context)
{
    struct as_loop *loop = server->env->loop;
    begin(fetch, server, done, context);
    fetch->outcome = AS_FETCH_UNREACHABLE;
    as_error_set(&fetch->error, "%s: %s", server->name, why);
    fetch->timer = loop->start_timer(loop, 0, on_failed, fetch);
}

void as_fetch_start(struct as_fetch *fetch, const struct as_server *server,
                    const struct as_flow *flow, const struct as_fetch_body *body,
                    as_fetch_done_fn *done, void *context)
{
    AS_CLEANUP(as_free_p)
    char *type = body ? as_xasprintf("Content-Type: %s", body->content_type) : NULL;
    const char *const headers[] = {"Accept: application/json", type, NULL};
    struct as_http_request request = {
        .method = body ? "POST" : "GET",
        .url = server->url,
        .body = body ? body->data : NULL,
        .body_size = body ? body->size : 0,
        .headers = headers,
        .timeout_us = server->timeout_us,
        .max_response = server->max_response,
        .flow = flow ? *flow : (struct as_flow){0},
        .on_body = server->ignores_body ? ignore_body : NULL,
    };
    if (!server->url) {
        as_fetch_fail(fetch, server, "none is configured", done, context);
    } else {
        struct as_http *http = as_http_auth_get_port(server->auth);
        begin(fetch, server, done, context);
        fetch->transfer = http->start(http, &request, on_answer, fetch);
    }
}

void as_fetch_cancel(struct as_fetch *fetch)
{
    if (!fetch->server)
        return;
    const struct as_source_env *env = fetch->server->env;
    if (fetch->transfer) {
        struct as_http *http = as_http_auth_get_port(fetch->server->auth);
        http->cancel(http, fetch->transfer);
    }
    if (fetch->timer)
        env->loop->cancel_timer(env->loop, fetch->timer);
    fetch->transfer = NULL;
    fetch->timer = NULL;
}

void as_fetch_count(const struct as_fetch *fetch, enum as_fetch_outcome outcome)
{
    static const char *const words[] = {
        [AS_FETCH_OK] = "ok",
        [AS_FETCH_NO_DATA] = "no_data",
        [AS_FETCH_UNUSABLE] = "unusable",
        [AS_FETCH_REFUSED] = "refused",
        [AS_FETCH_INVALID] = "invalid",
        [AS_FETCH_TOO_LARGE] = "too_large",
        [AS_FETCH_TIMEOUT] = "timeout",
        [AS_FETCH_UNREACHABLE] = "unreachable",
    };
    const struct as_source_env *env = fetch->server->env;
    if (env->observer)
        env->observer(env->observer_context, fetch->server->word, words[outcome],
                      env->clock->get_mono(env->clock).us - fetch->started.us);
}
