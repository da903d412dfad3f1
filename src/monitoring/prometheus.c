/*
 * Queries to one Prometheus: see the header. One call is one POST: with GET, proxies would truncate
 * long queries and write them into their logs.
 */
#include "prometheus.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/monitoring/prometheus_response.h>
#include <alertscaler/monitoring/source_limits.h>

#include <alertscaler/monitoring/fetch.h>

#define FORM_MAX (3 * (size_t)AS_QUERY_MAX + 128) /* every byte escaped, and the time-out */

struct as_prometheus_source {
    struct as_server server;
    LIST_HEAD(, call) calls;
};

struct call {
    LIST_ENTRY(call) entry;
    struct as_prometheus_source *owner;
    uint64_t ticket;
    enum as_query_form form;
    char *pod_label;
    as_source_queried_fn *done;
    void *context;
    struct as_fetch fetch;
};

struct as_prometheus_source *as_prometheus_source_new(const struct as_prometheus_settings *settings,
                                                      const struct as_source_env *env)
{
    struct as_prometheus_source *source = as_xcalloc(1, sizeof(*source));
    source->server = (struct as_server){
        .env = env,
        .word = "prometheus",
        .name = as_xstrdup("Prometheus"),
        .auth = as_http_auth_new(&settings->http, env->clock),
        .timeout_us = settings->timeout_us,
        .max_response = AS_QUERY_RESPONSE_MAX,
        .read_error = as_prometheus_decode_error,
    };
    as_server_set_url(&source->server, settings->url, AS_PROMETHEUS_QUERY_PATH);
    LIST_INIT(&source->calls);
    return source;
}

static void free_call(struct call *call)
{
    as_fetch_cancel(&call->fetch);
    LIST_REMOVE(call, entry);
    free(call->pod_label);
    free(call);
}

struct as_prometheus_source *as_prometheus_source_free(struct as_prometheus_source *source)
{
    struct call *call;
    if (!source)
        return NULL;
    while ((call = LIST_FIRST(&source->calls)) != NULL)
        free_call(call);
    as_http_auth_free(source->server.auth);
    as_server_deinit(&source->server);
    free(source);
    return NULL;
}

static enum as_fetch_outcome decode(const struct call *call, const char *body, size_t size,
                                    struct as_arena *arena, struct as_query_result *result_out)
{
    static const enum as_fetch_outcome outcomes[] = {
        [AS_PROMETHEUS_ANSWERED] = AS_FETCH_OK,       [AS_PROMETHEUS_NO_DATA] = AS_FETCH_NO_DATA,
        [AS_PROMETHEUS_UNUSABLE] = AS_FETCH_UNUSABLE, [AS_PROMETHEUS_REFUSED] = AS_FETCH_REFUSED,
        [AS_PROMETHEUS_INVALID] = AS_FETCH_INVALID,
    };
    const struct as_query query = {.form = call->form, .pod_label = call->pod_label};
    return outcomes[as_prometheus_decode_query(body, size, &query, arena, result_out)];
}

static void on_fetched(void *context, const char *body, size_t size)
{
    struct call *call = context;
    struct as_arena arena = AS_ARENA_INIT;
    struct as_query_result result = {0};
    char error[AS_QUERY_ERROR_MAX];
    enum as_fetch_outcome outcome = call->fetch.outcome;
    if (body) {
        outcome = decode(call, body, size, &arena, &result);
    } else {
        as_str_copy_line(call->fetch.error.text, error, sizeof(error));
        result.error = error;
    }
    as_fetch_count(&call->fetch, outcome);
    call->done(call->context, call->ticket, &result);
    as_arena_deinit(&arena);
    free_call(call);
}

void as_prometheus_source_query(struct as_prometheus_source *source, uint64_t ticket,
                                const struct as_query *query, as_source_queried_fn *done,
                                void *context)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf form = AS_BUF_INIT(FORM_MAX);
    struct call *call = as_xcalloc(1, sizeof(*call));
    *call = (struct call){
        .owner = source,
        .ticket = ticket,
        .form = query->form,
        .pod_label = query->pod_label ? as_xstrdup(query->pod_label) : NULL,
        .done = done,
        .context = context,
    };
    LIST_INSERT_HEAD(&source->calls, call, entry);
    as_prometheus_encode_query(query->text, source->server.timeout_us, &form);
    if (strlen(query->text) > AS_QUERY_MAX || as_buf_check(&form) < 0)
        as_fetch_fail(&call->fetch, &source->server, "the query is longer than 16 KiB", on_fetched,
                      call);
    else
        as_fetch_start(
            &call->fetch, &source->server, &query->flow,
            &(struct as_fetch_body){"application/x-www-form-urlencoded", form.data, form.size},
            on_fetched, call);
}
