/*
 * Creates and frees the API; the short answers. Everything is answered at once, from memory.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "api_private.h"

void api_answer_healthy(struct api_request *request)
{
    as_reply_text(request->exchange, 200, NULL, "healthy");
}

void api_answer_ready(struct api_request *request)
{
    const char *why_not = request->view.not_ready;
    if (why_not)
        as_reply_text(request->exchange, 503, NULL, "not ready: %s", why_not);
    else
        as_reply_text(request->exchange, 200, NULL, "ready");
}

void api_answer_metrics(struct api_request *request)
{
    const enum as_metrics_format format =
        as_metrics_choose_format(as_http_exchange_find_header(request->exchange, "Accept"));
    as_metrics_print(request->api->config.metrics, &request->view, format, &request->api->body);
    api_reply_body(request, 200, as_metrics_get_content_type(format), NULL);
}

void api_answer_unknown(struct api_request *request)
{
    as_reply_error(request->exchange, 404, NULL, "the API has no such path: %s",
                   as_http_exchange_get_path(request->exchange));
}

/* False after answering that another replica must be asked. */
static bool check_leader(const struct api_request *request, const struct as_api_endpoint *endpoint)
{
    const struct as_view *view = &request->view;
    if (!endpoint->needs_leader || view->leader.is_leader)
        return true;
    as_reply_error(request->exchange, 503, AS_REPLY_LATER, "%s: ask that one",
                   view->not_ready ? view->not_ready : "not the leader");
    return false;
}

struct as_api *as_api_new(const struct as_api_config *config)
{
    struct as_api *api = as_xcalloc(1, sizeof(*api));
    api->config = *config;
    api->config.instance = api->instance = as_xstrdup(config->instance);
    api->body = AS_BUF_INIT_OPEN(API_BODY_MAX);
    api->history = as_history_new(AS_HISTORY_BYTES_MAX);
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
    as_history_free(api->history);
    as_buf_deinit(&api->body);
    free(api->instance);
    free(api);
    return NULL;
}

void as_api_on_end(struct as_api *api, as_wall_time now)
{
    as_history_interrupt(api->history, now);
}

struct as_history *as_api_get_history(struct as_api *api)
{
    return api->history;
}

void as_api_on_effect(struct as_api *api, const struct as_effect *effect, as_wall_time now)
{
    as_history_on_effect(api->history, effect, now);
    if (effect->kind == AS_EFFECT_RECORD_DECISION)
        api_keep_decision(api, effect->decision);
    if (effect->kind != AS_EFFECT_RECORD_ACTION)
        return;
    api_keep_failure(api, effect->action);
    api_keep_action(api, effect->action, now);
}

void as_api_answer(struct as_api *api, struct as_http_exchange *exchange,
                   const struct as_api_endpoint *endpoint, const char *rest, const char *who)
{
    as_api_answer_with(api, exchange, endpoint, rest, who, NULL);
}

void as_api_answer_with(struct as_api *api, struct as_http_exchange *exchange,
                        const struct as_api_endpoint *endpoint, const char *rest, const char *who,
                        const struct as_api_note *note)
{
    struct api_request request = {
        .api = api, .exchange = exchange, .who = who, .rest = rest, .note = note};
    struct as_error error = AS_ERROR_INIT;
    if (api_parameters_parse(&request, &error) == 0) {
        api->config.view(api->config.context, &request.view);
        if (check_leader(&request, endpoint))
            endpoint->answer(&request);
    } else {
        as_reply_error(exchange, 400, NULL, "%s", error.text);
    }
    api_parameters_deinit(&request);
}
