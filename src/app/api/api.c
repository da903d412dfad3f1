/*
 * Which path is answered by what. Everything here is answered at once, from memory.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "api_private.h"

static void answer_healthy(struct api_request *request)
{
    api_reply_text(request, 200, "healthy\n");
}

static void answer_ready(struct api_request *request)
{
    if (!request->view.not_ready) {
        api_reply_text(request, 200, "ready\n");
        return;
    }
    AS_CLEANUP(as_free_p) char *text = as_xasprintf("not ready: %s\n", request->view.not_ready);
    api_reply_text(request, 503, text);
}

static void answer_metrics(struct api_request *request)
{
    const enum as_metrics_format format =
        as_metrics_choose_format(as_http_exchange_find_header(request->exchange, "Accept"));
    as_metrics_print(request->api->config.metrics, &request->view, format, &request->api->body);
    api_reply_body(request, as_metrics_get_content_type(format), NULL);
}

static void answer_unknown(struct api_request *request)
{
    as_api_reply_error(request->exchange, 404, NULL, "the API has no such path: %s",
                       as_http_exchange_get_path(request->exchange));
}

/* A path that ends in '/' stands for all below it, but not for itself, except for the first. */
static const struct route {
    const char *path, *handler;
    void (*answer)(struct api_request *request);
    bool needs_leader; /* what a follower does not know */
} routes[] = {
    {"/", "page", api_answer_page, false},
    {"/-/healthy", "healthy", answer_healthy, false},
    {"/-/ready", "ready", answer_ready, false},
    {"/metrics", "metrics", answer_metrics, false},
    {"/api/v1/status", "api", api_answer_status, false},
    {"/api/v1/targets", "api", api_answer_targets, true},
    {"/api/v1/targets/", "api", api_answer_target, true},
    {"/api/v1/incidents", "api", api_answer_incidents, true},
    {"/api/v1/rules", "api", api_answer_rules, false},
    {"/api/v1/decisions", "api", api_answer_decisions, true},
    {"/api/v1/decisions/", "api", api_answer_decision, true},
    {"/api/", "api", answer_unknown, false},
};

/* False, after the answer, where another one has to be asked. */
static bool check_leader(struct api_request *request, const struct route *route)
{
    const struct as_view *view = &request->view;
    if (!route->needs_leader || view->leader.is_leader)
        return true;
    as_api_reply_error(request->exchange, 503, "Retry-After: 5\r\n", "%s: ask that one",
                       view->not_ready ? view->not_ready : "not the leader");
    return false;
}

static const struct route *find_route(const char *path)
{
    for (size_t i = 0; i < AS_ARRAY_SIZE(routes); i++) {
        const char *own = routes[i].path;
        const size_t size = strlen(own);
        const bool is_prefix = size > 1 && own[size - 1] == '/';
        if (is_prefix ? as_str_starts_with(path, own) : strcmp(path, own) == 0)
            return &routes[i];
    }
    return NULL;
}

const char *as_api_find_handler(const char *path)
{
    const struct route *route = find_route(path);
    return route ? route->handler : NULL;
}

struct as_api *as_api_new(const struct as_api_config *config)
{
    struct as_api *api = as_xcalloc(1, sizeof(*api));
    api->config = *config;
    api->config.instance = api->instance = as_xstrdup(config->instance);
    api->body = AS_BUF_INIT_OPEN(API_BODY_MAX);
    TAILQ_INIT(&api->decisions);
    return api;
}

struct as_api *as_api_free(struct as_api *api)
{
    if (!api)
        return NULL;
    struct kept_decision *decision;
    while ((decision = TAILQ_FIRST(&api->decisions))) {
        TAILQ_REMOVE(&api->decisions, decision, next);
        api_decision_free(decision);
    }
    api_free_failures(api);
    as_buf_deinit(&api->body);
    free(api->instance);
    free(api);
    return NULL;
}

void as_api_on_effect(struct as_api *api, const struct as_effect *effect)
{
    if (effect->kind == AS_EFFECT_RECORD_DECISION)
        api_keep_decision(api, effect->decision);
    else if (effect->kind == AS_EFFECT_RECORD_ACTION)
        api_keep_failure(api, effect->action);
}

static bool is_read(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

bool as_api_handle(struct as_api *api, struct as_http_exchange *exchange, const char *who)
{
    const char *path = as_http_exchange_get_path(exchange);
    const struct route *route = find_route(path);
    if (!route)
        return false;
    as_http_exchange_set_handler_name(exchange, route->handler);
    if (!is_read(as_http_exchange_get_method(exchange))) {
        as_api_reply_error(exchange, 405, "Allow: GET, HEAD\r\n", "%s can only be read (GET, HEAD)",
                           path);
        return true;
    }
    struct api_request request = {
        .api = api, .exchange = exchange, .who = who, .rest = path + strlen(route->path)};
    struct as_error error = AS_ERROR_INIT;
    if (api_parameters_parse(&request, &error) == 0) {
        api->config.view(api->config.context, &request.view);
        if (check_leader(&request, route))
            route->answer(&request);
    } else {
        as_api_reply_error(exchange, 400, NULL, "%s", error.text);
    }
    api_parameters_deinit(&request);
    return true;
}
