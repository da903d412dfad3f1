/*
 * The table. Order matters: the first row with a fitting path and method gets the request. For
 * other methods, a path that is only read answers 405, and so does a row with `refusal`; otherwise
 * rows below are tried.
 */
#include <alertscaler/ui/route.h>

#include <stdio.h>
#include <string.h>

#include <alertscaler/auth/auth.h>
#include <alertscaler/auth/browser.h>
#include <alertscaler/auth/reply.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/runtime/requests.h>
#include <alertscaler/ui/forms.h>

#include "api_private.h"
#include "page.h"

#define TEXT_MAX 1024 /* of an error page, which may quote a part of a path */

struct as_route_methods {
    const char *names[3]; /* ends with NULL; empty: all */
    const char *allow;    /* header of the 405 */
};

static const struct as_route_methods any = {.allow = NULL};
static const struct as_route_methods reading = {{"GET", "HEAD"}, "Allow: GET, HEAD\r\n"};
static const struct as_route_methods sending = {{"POST"}, "Allow: POST\r\n"};
static const struct as_route_methods notifying = {{"POST", "PUT"}, "Allow: POST\r\n"}; /* Grafana */

static void notify(struct as_routes *routes, struct as_http_exchange *exchange,
                   const struct as_route *route, const char *who)
{
    as_receiver_handle(routes->receiver, exchange);
}

static bool check_notification(struct as_routes *routes, struct as_http_exchange *exchange)
{
    return as_receiver_check(routes->receiver, exchange);
}

static void reload(struct as_routes *routes, struct as_http_exchange *exchange,
                   const struct as_route *route, const char *who)
{
    struct as_error error = AS_ERROR_INIT;
    if (as_auth_check_whole(routes->auth, exchange, &error) == 0)
        routes->reload(routes->context, exchange, who);
    else
        as_auth_refuse(routes->auth, exchange, route->handler, 403, error.text);
}

/* The path's part that matched `*`; "" without a `*`. */
static const char *find_rest(const struct as_route *route, const struct as_http_exchange *exchange)
{
    return as_http_exchange_get_path(exchange) + strcspn(route->path, "*");
}

static void order(struct as_routes *routes, struct as_http_exchange *exchange,
                  const struct as_route *route, const char *who)
{
    const char *rest = find_rest(route, exchange);
    const char *star = strchr(route->path, '*');
    AS_CLEANUP(as_free_p)
    char *what = star ? as_xstrndup(rest, strlen(rest) - strlen(star + 1)) : NULL;
    if (route->is_form) {
        as_forms_order(routes->forms, exchange, who, route->order, what);
        return;
    }
    struct as_operators_request request = {
        .exchange = exchange, .who = who, .kind = route->order, .encoded_what = what};
    request.body = as_http_exchange_get_body(exchange, &request.body_size);
    routes->order(routes->context, &request);
}

static void log_in(struct as_routes *routes, struct as_http_exchange *exchange,
                   const struct as_route *route, const char *who)
{
    as_forms_log_in(routes->forms, exchange);
}

static void log_out(struct as_routes *routes, struct as_http_exchange *exchange,
                    const struct as_route *route, const char *who)
{
    as_forms_log_out(routes->forms, exchange);
}

static void show_login(struct as_routes *routes, struct as_http_exchange *exchange,
                       const struct as_route *route, const char *who)
{
    as_forms_show_login(routes->forms, exchange);
}

static void route_answer(struct as_routes *routes, struct as_http_exchange *exchange,
                         const struct as_route *route, const char *who)
{
    as_api_answer(routes->api, exchange, &route->api, find_rest(route, exchange), who, NULL);
}

/* Probably a notification with a `url` that lacks our path, or Prometheus that takes us for an
 * Alertmanager. */
static void misdirect(struct as_routes *routes, struct as_http_exchange *exchange,
                      const struct as_route *route, const char *who)
{
    as_receiver_refuse_path(routes->receiver, exchange, routes->prefix);
}

static void miss(struct as_routes *routes, struct as_http_exchange *exchange,
                 const struct as_route *route, const char *who)
{
    char text[TEXT_MAX];
    const struct as_api_note note = {.status = 404, .text = text};
    const struct as_api_endpoint endpoint = {.answer = page_answer_refused};
    (void)snprintf(text, sizeof(text), "There is nothing at %s.",
                   as_http_exchange_get_path(exchange));
    if (as_browser_wants_page(exchange))
        as_api_answer(routes->api, exchange, &endpoint, "", who, &note);
    else
        as_reply_error(exchange, 404, NULL, "there is nothing at %s",
                       as_http_exchange_get_path(exchange));
}

extern const char page_script[]; /* page.js */

static void send_script(struct as_routes *routes, struct as_http_exchange *exchange,
                        const struct as_route *route, const char *who)
{
    as_http_exchange_reply(
        exchange, &(struct as_http_answer){.status = 200,
                                           .content_type = "text/javascript; charset=utf-8",
                                           .headers = AS_REPLY_NO_STORE,
                                           .body = page_script,
                                           .body_size = strlen(page_script)});
}

#define NOTIFY AS_PERMISSION_NOTIFY
#define READ   AS_PERMISSION_READ
#define ADMIN  AS_PERMISSION_ADMIN
#define NONE   AS_PERMISSION_COUNT

#define NO_NOTIFICATION "notifications are sent with POST"
#define NO_RELOAD       "reload is asked for with POST"

/* clang-format off */
static const struct as_route table[] = {
    {"/webhook", &notifying, AS_RECEIVER_HANDLER, NOTIFY, notify,
     .check = check_notification, .refusal = NO_NOTIFICATION},
    {"/webhook/*", &notifying, AS_RECEIVER_HANDLER, NOTIFY, notify,
     .check = check_notification, .refusal = NO_NOTIFICATION},
    {"/-/reload", &sending, "reload", ADMIN, reload, .refusal = NO_RELOAD},

    /* For load balancers and kubelets, which have no credential. The body is not read, to save the
     * room for requests with a credential. It costs the connection. */
    {"/-/healthy", &reading, "healthy", NONE, route_answer, .api = {api_answer_healthy, false, NULL}},
    {"/-/ready", &reading, "ready", NONE, route_answer, .api = {api_answer_ready, false, NULL}},

    {"/api/v1/targets/*/pause", &sending, "command", ADMIN, order, .order = AS_OPERATOR_COMMAND_PAUSE},
    {"/api/v1/targets/*/resume", &sending, "command", ADMIN, order, .order = AS_OPERATOR_COMMAND_RESUME},
    {"/api/v1/targets/*/scale", &sending, "command", ADMIN, order, .order = AS_OPERATOR_COMMAND_SCALE},
    {"/api/v1/targets/*/floor", &sending, "command", ADMIN, order, .order = AS_OPERATOR_COMMAND_FLOOR},
    {"/api/v1/targets/*/unlock", &sending, "command", ADMIN, order, .order = AS_OPERATOR_COMMAND_UNLOCK},
    {"/api/v1/approvals/*/approve", &sending, "command", ADMIN, order, .order = AS_OPERATOR_COMMAND_APPROVE},
    {"/api/v1/approvals/*/deny", &sending, "command", ADMIN, order, .order = AS_OPERATOR_COMMAND_DENY},
    {"/api/v1/pause", &sending, "command", ADMIN, order, .order = AS_OPERATOR_COMMAND_PAUSE},
    {"/api/v1/resume", &sending, "command", ADMIN, order, .order = AS_OPERATOR_COMMAND_RESUME},

    /* Of pages. A session counts, and the head has the marks of a form of ours. */
    {"/targets/*/pause", &sending, "form", ADMIN, order, .order = AS_OPERATOR_COMMAND_PAUSE, .is_form = true},
    {"/targets/*/resume", &sending, "form", ADMIN, order, .order = AS_OPERATOR_COMMAND_RESUME, .is_form = true},
    {"/targets/*/scale", &sending, "form", ADMIN, order, .order = AS_OPERATOR_COMMAND_SCALE, .is_form = true},
    {"/targets/*/floor", &sending, "form", ADMIN, order, .order = AS_OPERATOR_COMMAND_FLOOR, .is_form = true},
    {"/targets/*/unlock", &sending, "form", ADMIN, order, .order = AS_OPERATOR_COMMAND_UNLOCK, .is_form = true},
    {"/approvals/*/approve", &sending, "form", ADMIN, order, .order = AS_OPERATOR_COMMAND_APPROVE, .is_form = true},
    {"/approvals/*/deny", &sending, "form", ADMIN, order, .order = AS_OPERATOR_COMMAND_DENY, .is_form = true},
    {"/pause", &sending, "form", ADMIN, order, .order = AS_OPERATOR_COMMAND_PAUSE, .is_form = true},
    {"/resume", &sending, "form", ADMIN, order, .order = AS_OPERATOR_COMMAND_RESUME, .is_form = true},
    {"/login", &sending, "login", NONE, log_in, .is_form = true},
    {"/login", &reading, "login", NONE, .answer = show_login},
    {"/logout", &sending, "login", READ, log_out, .is_form = true},

    {"/", &sending, "unknown", NOTIFY, .answer = misdirect},
    {"/api/v1/alerts", &sending, "unknown", NOTIFY, .answer = misdirect},
    {"/api/v2/alerts", &sending, "unknown", NOTIFY, .answer = misdirect},

    /* true: a follower cannot answer it */
    {"/", &reading, "page", READ, route_answer, .api = {page_answer_home, false, page_answer_unchanged}},
    {"/account", &reading, "page", READ, route_answer, .api = {page_answer_account, false, page_answer_unchanged}},
    {"/targets/*", &reading, "page", READ, route_answer, .api = {page_answer_target, false, page_answer_unchanged}},
    {"/decisions/*", &reading, "page", READ, route_answer, .api = {page_answer_decision, false, page_answer_unchanged_decision}},
    {"/groups/*", &reading, "page", READ, route_answer, .api = {page_answer_group, false, page_answer_unchanged}},
    {PAGE_SCRIPT_PATH, &reading, "page", READ, .answer = send_script},
    {"/events", &reading, "page", READ, route_answer, .api = {page_answer_events, false, page_answer_unchanged}},
    {"/incidents", &reading, "page", READ, route_answer, .api = {page_answer_incidents, false, page_answer_unchanged}},
    {"/incidents/*", &reading, "page", READ, route_answer, .api = {page_answer_incident, false, page_answer_unchanged}},
    {"/rules", &reading, "page", READ, route_answer, .api = {page_answer_rules, false, page_answer_unchanged}},
    {"/rules/*", &reading, "page", READ, route_answer, .api = {page_answer_rule, false, page_answer_unchanged}},
    {"/reload", &reading, "page", READ, route_answer, .api = {page_answer_reload, false, page_answer_unchanged_reload}},
    {"/metrics", &reading, "metrics", READ, route_answer, .api = {api_answer_metrics, false, NULL}},
    {"/api/v1/status", &reading, "api", READ, route_answer, .api = {api_answer_status, false, NULL}},
    {"/api/v1/targets", &reading, "api", READ, route_answer, .api = {api_answer_targets, true, NULL}},
    {"/api/v1/targets/*", &reading, "api", READ, route_answer, .api = {api_answer_target, true, NULL}},
    {"/api/v1/debug/targets/*", &reading, "api", ADMIN, route_answer, .api = {api_answer_debug_target, true, NULL}},
    {"/api/v1/approvals", &reading, "api", READ, route_answer, .api = {api_answer_approvals, true, NULL}},
    {"/api/v1/incidents", &reading, "api", READ, route_answer, .api = {api_answer_incidents, true, NULL}},
    {"/api/v1/rules", &reading, "api", READ, route_answer, .api = {api_answer_rules, false, NULL}},
    {"/api/v1/policies", &reading, "api", READ, route_answer, .api = {api_answer_policies, true, NULL}},
    {"/api/v1/policies/*", &reading, "api", READ, route_answer, .api = {api_answer_policy, true, NULL}},
    {"/api/v1/decisions", &reading, "api", READ, route_answer, .api = {api_answer_decisions, true, NULL}},
    {"/api/v1/decisions/*", &reading, "api", READ, route_answer, .api = {api_answer_decision, true, NULL}},
    {"/api/v1/log", &reading, "api", READ, route_answer, .api = {api_answer_log, false, NULL}},
    {"/api/*", &reading, "api", READ, route_answer, .api = {api_answer_unknown, false, NULL}},

    {"*", &sending, "unknown", NOTIFY, .answer = misdirect},
    {"*", &any, "unknown", READ, .answer = miss},
};
/* clang-format on */

static bool takes_path(const struct as_route *route, const char *path)
{
    const size_t before = strcspn(route->path, "*");
    if (route->path[before] == '\0')
        return strcmp(path, route->path) == 0;
    const char *behind = route->path + before + 1;
    const size_t size = strlen(path);
    return size >= before + strlen(behind) && strncmp(path, route->path, before) == 0 &&
           strcmp(path + size - strlen(behind), behind) == 0;
}

static bool has_method(const struct as_route_methods *methods, const char *method)
{
    const char *const *name = methods->names;
    while (*name && strcmp(*name, method) != 0)
        name++;
    return *name;
}

static bool takes_method(const struct as_route *route, const char *method)
{
    return !route->methods->names[0] || has_method(route->methods, method);
}

const struct as_route *as_route_find(const char *method, const char *path)
{
    const struct as_route *route = table;
    while (!takes_path(route, path) ||
           !(takes_method(route, method) || route->refusal || route->methods == &reading))
        route++;
    return route;
}

void as_route_answer(const struct as_route *route, struct as_routes *routes,
                     struct as_http_exchange *exchange, const char *who)
{
    if (takes_method(route, as_http_exchange_get_method(exchange)))
        route->answer(routes, exchange, route, who);
    else
        as_reply_error(exchange, 405, route->methods->allow, "%s can only be read (GET, HEAD)",
                       as_http_exchange_get_path(exchange));
}

/* A path without the prefix gets the row of a path that is not there. */
static const struct as_route *route_find(const struct as_routes *routes,
                                         struct as_http_exchange *exchange)
{
    const char *method = as_http_exchange_get_method(exchange);
    const char *path = as_http_exchange_get_path(exchange);
    const size_t size = strlen(routes->prefix);
    if (strncmp(path, routes->prefix, size) != 0 || (path[size] != '/' && path[size] != '\0'))
        return as_route_find(method, "");
    as_http_exchange_cut_path(exchange, size);
    return as_route_find(method, as_http_exchange_get_path(exchange));
}

/* A browser adds its certificate or password to the requests of any page. So no page of another
 * site may send a request of any row, unless it only reads. False: already answered. */
static bool check_sender(struct as_routes *routes, struct as_http_exchange *exchange,
                         const struct as_route *route)
{
    struct as_error error = AS_ERROR_INIT;
    if (has_method(&reading, as_http_exchange_get_method(exchange)))
        return true;
    if (route->is_form)
        return as_forms_check(routes->forms, exchange, route->handler);
    const int status = as_browser_check_sender(exchange, routes->external_url, &error);
    if (status != 0)
        as_auth_refuse(routes->auth, exchange, route->handler, status, error.text);
    return status == 0;
}

/* Whether the script of a page sends this request. */
static bool is_repeat(const char *query)
{
    static const char name[] = PAGE_SINCE "=";
    for (const char *at = query; at; at = strchr(at, '&')) {
        at += *at == '&';
        if (as_str_starts_with(at, name))
            return true;
    }
    return false;
}

enum as_http_admission as_routes_admit(void *context, struct as_http_exchange *exchange)
{
    struct as_routes *routes = context;
    const char *method = as_http_exchange_get_method(exchange);
    const struct as_route *route = route_find(routes, exchange);
    as_http_exchange_set_route(exchange, route, route->handler);
    if (!check_sender(routes, exchange, route))
        return AS_HTTP_REPLIED;
    if (route->refusal && !takes_method(route, method)) {
        as_reply_text(exchange, 405, route->methods->allow, "%s", route->refusal);
        return AS_HTTP_REPLIED;
    }
    if (route->permission == NONE && route->is_form)
        return AS_HTTP_ADMITTED;
    if (route->permission == NONE) {
        as_route_answer(route, routes, exchange, "");
        return AS_HTTP_REPLIED;
    }
    const enum as_http_admission admission =
        route->is_form
            ? as_auth_admit_form(routes->auth, exchange, route->handler, route->permission)
        : route->api.answer_unchanged && is_repeat(as_http_exchange_get_query(exchange))
            ? as_auth_admit_repeat(routes->auth, exchange, route->handler)
            : as_auth_admit(routes->auth, exchange, route->handler, route->permission);
    if (admission == AS_HTTP_ADMITTED && route->check && !route->check(routes, exchange))
        return AS_HTTP_REPLIED;
    return admission;
}

void as_routes_handle(void *context, struct as_http_exchange *exchange)
{
    as_route_answer(as_http_exchange_get_route(exchange), context, exchange,
                    as_auth_get_credential(exchange));
}
