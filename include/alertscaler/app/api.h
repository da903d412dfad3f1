/*
 * What can be read over HTTP: /-/healthy, /-/ready, /metrics, /api/v1/..., and the status page at
 * /. docs/api.md describes it for users. It changes nothing, and knows nothing of credentials:
 * those are checked before.
 *
 * The last 1,000 decisions are kept in memory, as they stand in the action log.
 */
#ifndef ALERTSCALER_APP_API_H
#define ALERTSCALER_APP_API_H

#include <stdbool.h>

#include <alertscaler/app/metrics.h>
#include <alertscaler/app/view.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/core/engine.h>
#include <alertscaler/net/server.h>

struct as_api;

struct as_api_config {
    const char *instance;       /* as in the action log; copied */
    struct as_metrics *metrics; /* borrowed */
    as_view_fn *view;           /* called for each request */
    void *context;
};

struct as_api *as_api_new(const struct as_api_config *config) AS_MUST_USE;
struct as_api *as_api_free(struct as_api *api);

/* For as_shell_callbacks.effect: keeps decisions, and why targets failed. */
void as_api_on_effect(struct as_api *api, const struct as_effect *effect);

/* The handler's name for metrics ("healthy", "ready", "metrics", "api", "page"), static memory, if
 * the path is one of the API's; else NULL. */
const char *as_api_find_handler(const char *path);

/*
 * Answers a request, at once, and names its handler. Anything but GET and HEAD is answered 405. Not
 * its own is, and is left alone: a path for which as_api_find_handler has no name; then false.
 * `who` asks, by the name of a credential ("": none is needed): one with `rules` or `targets` does
 * not see the names of others.
 */
bool as_api_handle(struct as_api *api, struct as_http_exchange *exchange,
                   const char *who) AS_MUST_USE;

/*
 * Answers with {"status":"error","errorType":TYPE,"error":TEXT}. `headers` as in as_http_answer.
 * Types: bad_data (400), unauthorized (401), forbidden (403), not_found (404), method_not_allowed
 * (405), conflict (409), out_of_bounds (422), unavailable (503), internal (500).
 */
void as_api_reply_error(struct as_http_exchange *exchange, int status, const char *headers,
                        const char *format, ...) AS_PRINTF(4, 5);

AS_DEFINE_CLEANUP(struct as_api *, as_api_free)

#endif
