/*
 * Routing: one table (route.c), a row for each path and its methods. A request is routed once,
 * after its head, and keeps its row.
 *
 * To add an endpoint, add a row and a function that answers.
 */
#ifndef ALERTSCALER_UI_ROUTE_H
#define ALERTSCALER_UI_ROUTE_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/operator_command.h>
#include <alertscaler/http/server.h>
#include <alertscaler/rules/external_url.h>
#include <alertscaler/rules/settings.h>
#include <alertscaler/ui/api.h>

struct as_auth;
struct as_forms;
struct as_operators_request;
struct as_receiver;
struct as_route;

struct as_routes { /* all borrowed */
    struct as_auth *auth;
    struct as_receiver *receiver;
    struct as_api *api;
    const char *prefix; /* before all paths; "": none */
    struct as_forms *forms;
    const struct as_external_url *external_url; /* whose pages may send requests */
    /* Answers an order. */
    void (*order)(void *context, const struct as_operators_request *request);
    /* Answers a request for a reload, now or later. */
    void (*reload)(void *context, struct as_http_exchange *exchange, const char *who);
    void *context;
};

struct as_route_methods;

struct as_route {
    const char *path; /* `*` matches anything, even nothing */
    const struct as_route_methods *methods;
    const char *handler;           /* the name in metrics and logs */
    enum as_permission permission; /* AS_PERMISSION_COUNT: none needed, answered after the head */
    void (*answer)(struct as_routes *routes, struct as_http_exchange *exchange,
                   const struct as_route *route, const char *who);
    /* Before the body is read. False: already answered. NULL: no check. */
    bool (*check)(struct as_routes *routes, struct as_http_exchange *exchange);
    bool is_form;                        /* of a page: as_forms_check; a session counts */
    struct as_api_endpoint api;          /* if the API answers */
    enum as_operator_command_kind order; /* if it is an order */
    /* The 405 for other methods, sent before credentials are checked. NULL: see route.c. */
    const char *refusal;
};

/* The first fitting row; one always fits. */
const struct as_route *as_route_find(const char *method, const char *path) AS_MUST_USE;

/* Answers by the row, for the credential `who` ("": none needed). */
void as_route_answer(const struct as_route *route, struct as_routes *routes,
                     struct as_http_exchange *exchange, const char *who);

/* For as_http_handler; the context is a struct as_routes. */
enum as_http_admission as_routes_admit(void *context, struct as_http_exchange *exchange);
void as_routes_handle(void *context, struct as_http_exchange *exchange);

#endif
