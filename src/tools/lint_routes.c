/*
 * Checks of the way of notifications to alertscaler: the receiver's credentials, and Alertmanager's
 * configuration: whether notifications reach the receiver, complete and in time, and whether alerts
 * still reach people.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/notice.h>
#include <alertscaler/doc/schema.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/model/template.h>
#include <alertscaler/rules/alertmanager_routes.h>
#include <alertscaler/rules/web_config.h>

#include "lint_run.h"

/* --- the receiver's credentials, with the web configuration if given --- */

static bool has_user(const struct as_web_settings *web, const char *name)
{
    for (size_t i = 0; i < web->user_count; i++) {
        if (strcmp(web->users[i].name, name) == 0)
            return true;
    }
    return false;
}

static void check_users(struct lint_run *run, const struct as_yaml_node *receiver)
{
    const struct as_lint_sources *sources = &run->lint->sources;
    const struct as_receiver_settings *settings = &run->config->settings.receiver;
    const struct as_yaml_node *users = as_yaml_find(receiver, "users");
    for (size_t i = 0; i < settings->user_count && users && i < users->count; i++) {
        if (!has_user(sources->web, settings->users[i].name))
            lint_warn(run, run->settings_tree, as_yaml_find(users->items[i], "name"),
                      "%s has no user `%s` under basic_auth_users", sources->web_config_file,
                      settings->users[i].name);
    }
}

/* Without a web configuration, `users` implies that one exists and has users. */
static bool lint_routes_is_open(const struct lint_run *run)
{
    static const struct as_web_settings none = {0};
    const struct as_lint_sources *sources = &run->lint->sources;
    const struct as_receiver_settings *settings = &run->config->settings.receiver;
    if (!sources->web && (sources->web_config_file || settings->user_count > 0))
        return false;
    return as_web_is_open(sources->web ? sources->web : &none, settings);
}

/* Whether it is certain that alertscaler asks senders for a credential. */
static bool lint_asks_for_credential(const struct lint_run *run)
{
    static const struct as_web_settings none = {0};
    const struct as_web_settings *web = run->lint->sources.web;
    return !as_web_is_open(web ? web : &none, &run->config->settings.receiver);
}

static void warn_open(struct lint_run *run, const struct as_yaml_node *root)
{
    const bool has_web = run->lint->sources.web;
    const struct as_yaml_node *key = schema_find_key(root, "receiver");
    char message[AS_ERROR_SIZE];
    (void)snprintf(message, sizeof(message),
                   "no credentials are configured%s: everyone who can connect may send alerts and "
                   "read; give `receiver.tokens`%s",
                   has_web ? ", nor users in the web configuration" : "",
                   has_web
                       ? ""
                       : ", or name the web configuration that asks for users or certificates with "
                         "--web.config.file");
    if (key)
        lint_warn(run, run->settings_tree, key, "%s", message);
    else
        as_diagnostics_add(run->diagnostics,
                           &(struct as_diagnostic){.severity = AS_SEVERITY_WARNING,
                                                   .file = run->config->path,
                                                   .message = message});
}

/* An address is not a proof: each client there can report any person. */
static void check_proxy(struct lint_run *run, const struct as_yaml_node *receiver)
{
    const struct as_proxy_settings *settings = &run->config->settings.receiver.proxy;
    const struct as_web_settings *web = run->lint->sources.web;
    const struct as_yaml_node *proxy = as_yaml_find(receiver, "proxy");
    if (settings->address_count > 0 && !settings->certificate)
        lint_warn(run, run->settings_tree, schema_find_key(proxy, "addresses"),
                  "an address proves no proxy: every client at these addresses can send %s, and is "
                  "then that person; add `certificate`, or run the proxy beside alertscaler, "
                  "without `addresses`",
                  settings->header);
    if (settings->certificate && web && !web->tls.client_ca_file)
        lint_warn(run, run->settings_tree, as_yaml_find(proxy, "certificate"),
                  "%s has no client_ca_file: alertscaler verifies no certificate of the proxy",
                  run->lint->sources.web_config_file);
}

void lint_check_credentials(struct lint_run *run)
{
    if (!run->settings_tree)
        return;
    const struct as_yaml_node *root = as_yaml_get_root(run->settings_tree);
    if (run->lint->sources.web)
        check_users(run, as_yaml_find(root, "receiver"));
    if (run->config->settings.receiver.proxy.group_count > 0)
        check_proxy(run, as_yaml_find(root, "receiver"));
    if (lint_routes_is_open(run))
        warn_open(run, root);
}

/* --- webhooks to us: whether their notifications arrive complete --- */

static bool lint_routes_is_word(const struct as_yaml_node *node, const char *const *words)
{
    for (; node && node->kind == AS_YAML_SCALAR && *words; words++) {
        if (strcmp(node->text, *words) == 0)
            return true;
    }
    return false;
}

/* The first rule that acts when its alert is resolved; NULL: none. */
static const struct lint_rule *find_ending(const struct lint_run *run, const char *receiver)
{
    for (size_t i = 0; i < run->rule_count; i++) {
        const struct lint_rule *rule = &run->rules[i];
        const struct as_yaml_node *ending = as_yaml_find(rule->node, "on_resolved");
        if (ending && !lint_routes_is_word(ending, (const char *const[]){"nothing", NULL}) &&
            lint_takes_receiver(rule, receiver))
            return rule;
    }
    return NULL;
}

static void check_send_resolved(struct lint_run *run, const struct lint_receiver *receiver,
                                const struct as_yaml_node *webhook)
{
    static const char *const no[] = {"false", "False", "FALSE", "no", "No", "NO",
                                     "off",   "Off",   "OFF",   "n",  "N",  NULL};
    const struct as_yaml_node *value = lint_find(run->lint->alertmanager, webhook, "send_resolved");
    const struct lint_rule *rule = find_ending(run, receiver->name);
    const char *resync = run->config->settings.alertmanager.url_count > 0
                             ? ", and finds out only by `alertmanager.urls`"
                             : "";
    char place[LINT_PLACE_SIZE];
    if (!lint_routes_is_word(value, no))
        return;
    if (rule)
        lint_warn_alertmanager(run, value,
                               "alertscaler is not told that an alert has ended%s: `on_resolved` "
                               "of rule `%s` (%s) needs `send_resolved: true`",
                               resync, rule->rule->name,
                               lint_print_place(rule->tree, rule->node, place));
    else
        lint_warn_alertmanager(run, value,
                               "alertscaler is not told that an alert has ended%s%s: remove this "
                               "line",
                               resync, *resync ? "" : ", and rules go on until incidents expire");
}

/* A number that is 0, which Alertmanager takes as absent; or an empty value. */
static bool lint_is_zero(const struct as_yaml_node *node)
{
    int64_t number = 1;
    return !node || node->kind != AS_YAML_SCALAR || as_yaml_is_null(node) ||
           as_number_parse_i64(node->text, node->size, &number) < 0 || number == 0;
}

/* Compares the webhook's scheme with the web configuration's TLS. */
static void check_scheme(struct lint_run *run, const struct as_yaml_node *webhook)
{
    const struct as_lint_sources *sources = &run->lint->sources;
    const struct as_yaml_node *url = as_yaml_find(webhook, "url");
    if (sources->web && sources->web->tls.is_set && as_str_starts_with(url->text, "http://"))
        lint_warn_alertmanager(run, url,
                               "alertscaler answers TLS only, as %s has `tls_server_config`: write "
                               "https://",
                               sources->web_config_file);
}

/* Whether an http_config sends a credential. */
static bool has_credential(const struct lint_alertmanager *alertmanager,
                           const struct as_yaml_node *http)
{
    static const char *const keys[] = {
        "authorization", "basic_auth",        "bearer_token",       "oauth2",
        "http_headers",  "bearer_token_file", "bearer_token_secret"};
    const struct as_yaml_node *tls = lint_find(alertmanager, http, "tls_config");
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        if (lint_find(alertmanager, http, keys[i]))
            return true;
    }
    return as_yaml_find(tls, "cert_file") || as_yaml_find(tls, "cert");
}

static void check_authorization(struct lint_run *run, const struct as_yaml_node *webhook)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    const struct as_yaml_node *root = as_yaml_get_root(alertmanager->tree);
    const struct as_yaml_node *http = lint_find(alertmanager, webhook, "http_config");
    const struct as_yaml_node *url = as_yaml_find(webhook, "url");
    if (!http)
        http = as_yaml_find(as_yaml_find(root, "global"), "http_config");
    if (lint_asks_for_credential(run) && !has_credential(alertmanager, http) &&
        !strchr(url->text, '@'))
        lint_warn_alertmanager(
            run, url,
            "this shows no credential, and alertscaler asks for one and answers "
            "401: add `%s`",
            alertmanager->object_name
                ? "httpConfig: {authorization: {credentials: {name: ..., key: ...}}}"
                : "http_config: {authorization: {credentials_file: ...}}");
}

static void check_webhook(struct lint_run *run, const struct lint_receiver *receiver,
                          const struct as_yaml_node *webhook)
{
    const struct as_yaml_node *max_alerts =
        lint_find(run->lint->alertmanager, webhook, "max_alerts");
    const struct as_yaml_node *payload = as_yaml_find(webhook, "payload");
    check_send_resolved(run, receiver, webhook);
    check_scheme(run, webhook);
    check_authorization(run, webhook);
    if (!lint_is_zero(max_alerts))
        lint_warn_alertmanager(run, max_alerts,
                               "of a group of more than %s alerts alertscaler never sees the "
                               "rest: remove `max_alerts`",
                               max_alerts->text);
    if (payload && !as_yaml_is_null(payload))
        lint_warn_alertmanager(run, schema_find_key(webhook, "payload"),
                               "alertscaler understands Alertmanager's own payload only and "
                               "answers 400 to this: remove `payload`");
}

static void lint_check_webhooks(struct lint_run *run)
{
    const struct lint_receiver *receiver = run->lint->alertmanager->receivers;
    for (; receiver; receiver = receiver->hh.next) {
        for (size_t i = 0; i < receiver->webhook_count; i++)
            check_webhook(run, receiver, receiver->webhooks[i]);
    }
}

/* --- routes that keep alerts from people --- */

/*
 * An alert that enters a child route does not go to the receiver of the parent route; `continue:
 * true` only lets it go to the routes that follow.
 */

/* It notifies alertscaler and nobody else. */
static bool is_only_ours(const struct lint_receiver *receiver)
{
    return receiver && lint_is_ours(receiver) && !receiver->has_others;
}

/* Only the watchdog reaches this route; people need no notification of it. */
static bool is_watchdog(const struct lint_run *run, const struct matcher_list *list)
{
    const struct as_rule *rule = run->watchdog.rule;
    for (size_t i = 0; rule && i < rule->matcher_count; i++) {
        if (!matcher_list_implies(list, &rule->matchers[i]))
            return false;
    }
    return rule != NULL;
}

/* Whether an alert of our route may also reach another receiver. */
static bool may_reach_others(struct lint_run *run, const struct matcher_list *list)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    struct as_matcher *flat = as_xcalloc(list->count + 1, sizeof(*flat));
    bool is_reached = false;
    for (size_t i = 0; i < list->count; i++)
        flat[i] = *list->items[i];
    for (size_t i = 0; i < alertmanager->route_count && !is_reached; i++) {
        const struct lint_route *route = alertmanager->routes[i];
        struct lint_way way;
        if (is_only_ours(route->receiver))
            continue;
        is_reached = !lint_spend(run, LINT_DEAR) ||
                     lint_find_way(route, flat, list->count, &way) == LINT_REACHED;
    }
    free(flat);
    return is_reached;
}

/* The receiver that would get the alerts without our route; NULL: none. */
static const struct lint_receiver *find_people(const struct lint_route *route)
{
    while (route && is_only_ours(route->receiver))
        route = route->parent;
    return route ? route->receiver : NULL;
}

/* An Alertmanager that notifies nobody else. */
static bool is_dedicated(const struct lint_alertmanager *alertmanager)
{
    const struct lint_receiver *receiver = alertmanager->receivers;
    while (receiver && is_only_ours(receiver))
        receiver = receiver->hh.next;
    return !receiver && is_only_ours(alertmanager->routes[0]->receiver);
}

/* A route that brings alerts to us and to nobody else. */
static void lint_check_people(struct lint_run *run, const struct lint_route *route)
{
    AS_CLEANUP(matcher_list_deinit) struct matcher_list list = {.items = NULL};
    const struct lint_receiver *people = find_people(route);
    const char *name = people ? people->name : "people";
    /* Around an AlertmanagerConfig there are routes that are not known. */
    if (!is_only_ours(route->receiver) || is_dedicated(run->lint->alertmanager) ||
        run->lint->alertmanager->object_name)
        return;
    for (const struct lint_route *at = route; at; at = at->parent)
        matcher_list_add(&list, at->matchers, at->matcher_count);
    if (is_watchdog(run, &list) || may_reach_others(run, &list))
        return;
    if (route->continues)
        lint_warn_alertmanager(run, route->place,
                               "nobody but alertscaler gets the alerts that come here: `continue: "
                               "true` leads to the routes behind this one, never to the receiver "
                               "of the one above; add a route behind it with `receiver: %s`",
                               name);
    else
        lint_warn_alertmanager(run, route->place,
                               "nobody but alertscaler gets the alerts that come here: add %sa "
                               "route %s with `receiver: %s`",
                               route->parent ? "`continue: true` and " : "",
                               route->parent ? "behind this one" : "below this one", name);
}

/* --- routes that bring alertscaler's own alerts back to it --- */

/* It answers them `own_alert`, so there is no loop; but each is a notification for nothing. */

struct own_alert { /* what is known of its labels */
    struct as_matcher *matchers;
    size_t count, capacity;
};

/* Borrows both texts, which are never changed. */
static void lint_routes_add(struct own_alert *alert, const char *name, enum as_matcher_op op,
                            const char *value)
{
    alert->matchers =
        as_xgrow(alert->matchers, alert->count, &alert->capacity, sizeof(*alert->matchers));
    alert->matchers[alert->count++] = (struct as_matcher){
        .name = (char *)(uintptr_t)name, .value = (char *)(uintptr_t)value, .op = op};
}

static bool may_have(const struct own_alert *alert, const char *name)
{
    static const char *const others[] = {"alertname", "reason", "rule", "target"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++) {
        if (strcmp(others[i], name) == 0)
            return true;
    }
    for (size_t i = 0; i < alert->count; i++) {
        if (strcmp(alert->matchers[i].name, name) == 0)
            return true; /* it is known */
    }
    return false;
}

/* It has no label but its own ones. */
static void add_absent(struct own_alert *alert, const struct lint_route *route)
{
    for (size_t i = 0; i < route->matcher_count; i++) {
        if (!may_have(alert, route->matchers[i].name))
            lint_routes_add(alert, route->matchers[i].name, AS_MATCHER_EQUAL, "");
    }
}

/* The default is the host's name, which this machine need not have. */
static const char *lint_routes_find_instance(const struct as_settings *settings)
{
    if (settings->instance)
        return settings->instance;
    return settings->state.store == AS_STORE_KUBERNETES ? settings->state.lease.name : NULL;
}

static void lint_routes_add_instance(const struct lint_run *run, struct own_alert *alert)
{
    const char *instance = lint_routes_find_instance(&run->config->settings);
    if (instance)
        lint_routes_add(alert, AS_OWN_ALERT_LABEL, AS_MATCHER_EQUAL, instance);
    else
        lint_routes_add(alert, AS_OWN_ALERT_LABEL, AS_MATCHER_NOT_EQUAL, "");
}

/* Of the alerts that one of our receivers asks for, one that comes here; NULL: none does. */
static const char *find_own_alert(struct lint_run *run, const struct lint_route *route,
                                  unsigned kinds)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    const char *found = NULL;
    for (int kind = 0; kind < AS_NOTICE_TEST && !found; kind++) {
        struct own_alert alert = {.matchers = NULL};
        struct lint_way way;
        if (!(kinds & 1U << kind))
            continue;
        const char *name = as_notice_kind_get_row((enum as_notice_kind)kind)->alertname;
        lint_routes_add(&alert, "alertname", AS_MATCHER_EQUAL, name);
        lint_routes_add_instance(run, &alert);
        for (size_t i = 0; i < alertmanager->route_count; i++)
            add_absent(&alert, alertmanager->routes[i]);
        if (lint_spend(run, LINT_DEAR) &&
            lint_find_way(route, alert.matchers, alert.count, &way) == LINT_REACHED)
            found = name;
        free(alert.matchers);
    }
    return found;
}

/* A route that brings us what we have sent ourselves. */
static void lint_check_own_alerts(struct lint_run *run, const struct lint_route *route)
{
    const struct as_settings *settings = &run->config->settings;
    unsigned kinds = 0;
    for (size_t i = 0; i < settings->notify_count; i++)
        kinds |= settings->notify[i].is_webhook ? 0 : settings->notify[i].on;
    const char *name = kinds ? find_own_alert(run, route, kinds) : NULL;
    if (name)
        lint_warn_alertmanager(run, route->place,
                               "alertscaler's own alerts, like %s, come back to it here, and are "
                               "answered `own_alert`: add the matcher " AS_OWN_ALERT_LABEL
                               "=\"\" to this route",
                               name);
}

/* --- rules against Alertmanager's configuration --- */

/* The receivers that a rule names */

static void check_receiver_name(struct lint_run *run, const struct as_yaml_tree *tree,
                                const struct as_yaml_node *node)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    const char *file = as_yaml_get_file(alertmanager->tree);
    const struct lint_receiver *receiver = lint_find_receiver(alertmanager, node->text);
    char hint[SUGGESTION_SIZE], found[AS_YAML_FOUND_SIZE];
    if (lint_may_be_ours(receiver))
        return;
    as_yaml_describe(node, found);
    if (receiver) {
        lint_warn(run, tree, node,
                  "receiver %s (%s:%u) has no webhook to alertscaler: none of its webhook_configs "
                  "has a url with the path /webhook",
                  found, file, receiver->name_node->place.line);
        return;
    }
    struct suggestion suggestion = suggestion_start(node->text);
    for (const struct lint_receiver *at = alertmanager->receivers;
         at && lint_spend(run, LINT_CHEAP); at = at->hh.next)
        suggestion_offer(&suggestion, at->name);
    lint_warn(run, tree, node, "there is no receiver %s in %s%s", found, file,
              suggestion_print(&suggestion, hint));
}

static void check_receiver_names(struct lint_run *run)
{
    for (size_t i = 0; i < run->rule_count; i++) {
        const struct as_yaml_node *list = as_yaml_find(run->rules[i].node, "receivers");
        for (uint32_t k = 0; list && list->kind == AS_YAML_LIST && k < list->count; k++)
            check_receiver_name(run, run->rules[i].tree, list->items[k]);
    }
}

/* Receivers whose alerts a list may open incidents of. An AlertmanagerConfig is not the whole
 * configuration. */
static void check_listed_receivers(struct lint_run *run)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    const struct as_yaml_node *root =
        run->settings_tree ? as_yaml_get_root(run->settings_tree) : NULL;
    const struct as_yaml_node *list = as_yaml_find(as_yaml_find(root, "alertmanager"), "receivers");
    for (uint32_t i = 0;
         list && list->kind == AS_YAML_LIST && i < list->count && !alertmanager->object_name; i++)
        check_receiver_name(run, run->settings_tree, list->items[i]);
}

/* Lists and time intervals: docs/receiver.md#muted-by-time-intervals. */
static void check_intervals(struct lint_run *run, const struct lint_route *route)
{
    const struct as_yaml_node *intervals = as_alertmanager_route_find_intervals(route->node);
    if (intervals && run->config->settings.alertmanager.url_count > 0)
        lint_hint(run, run->lint->alertmanager->tree, intervals,
                  "Alertmanager before 0.28 does not say what time intervals mute: its list "
                  "(`alertmanager.urls`) opens no incidents of receiver `%s`",
                  route->receiver->name);
}

/* Routes to us */

static void print_route(const struct lint_route *route, char text_out[LINT_PLACE_SIZE])
{
    snprintf(text_out, LINT_PLACE_SIZE, "line %u", route->place->place.line);
}

static void report_unreached(struct lint_run *run, const struct lint_route *route,
                             const struct lint_way *way)
{
    char line[LINT_PLACE_SIZE], text[MATCHER_TEXT_SIZE];
    if (way->taker) {
        print_route(way->taker, line);
        lint_warn_alertmanager(run, route->place,
                               "no alert comes to this route: the route on %s takes all of them%s",
                               line,
                               way->taker->parent == route ? ""
                                                           : "; move it below this one, "
                                                             "or add `continue: true`");
    } else if (way->refuser) {
        lint_warn_alertmanager(run, route->place,
                               "no alert comes to this route: `%s` contradicts a matcher on the "
                               "way to it",
                               matcher_print(way->refuser, text));
    } else {
        lint_warn_alertmanager(run, route->place,
                               "no alert comes to this route: matchers on the way to it "
                               "contradict each other");
    }
}

/* No receiver is known as ours. */
static void report_no_webhook(struct lint_run *run)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    const struct lint_receiver *receiver = alertmanager->receivers;
    bool is_unknown = false;
    for (; receiver; receiver = receiver->hh.next) {
        if (!receiver->unknown)
            continue;
        is_unknown = true;
        lint_warn_alertmanager(run, receiver->unknown,
                               "cannot check whether this is the webhook to alertscaler: the url "
                               "does not stand here");
    }
    if (!is_unknown)
        lint_warn_alertmanager(run, alertmanager->receivers_key,
                               "no receiver has a webhook to alertscaler: add one with a "
                               "webhook_configs url such as http://alertscaler:9096/webhook, and a "
                               "route to it");
}

/* There is a receiver of ours, but no route to it. */
static void report_no_route(struct lint_run *run)
{
    const struct lint_receiver *receiver = run->lint->alertmanager->receivers;
    for (; receiver; receiver = receiver->hh.next) {
        if (lint_is_ours(receiver))
            lint_warn_alertmanager(run, receiver->name_node,
                                   "no route leads to this receiver, so alertscaler gets no "
                                   "alerts: add one with `receiver: %s`",
                                   receiver->name);
    }
}

/* False: all rules are `always` rules, and there is no watchdog. */
static bool needs_alerts(const struct lint_run *run)
{
    for (size_t i = 0; i < run->rule_count; i++) {
        if (!run->rules[i].rule->is_always)
            return true;
    }
    return run->rule_count == 0 || run->watchdog.rule;
}

/* The routes that can bring us alerts. If none can, others are reported. */
struct ways {
    const struct lint_route **routes;
    size_t count;
};

static void find_ways(struct lint_run *run, struct as_arena *arena, struct ways *ways)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    size_t unreached = 0;
    bool has_ours = false;
    ways->routes = as_arena_alloc(arena, alertmanager->route_count, sizeof(*ways->routes));
    for (size_t i = 0; i < alertmanager->route_count; i++) {
        const struct lint_route *route = alertmanager->routes[i];
        struct lint_way way;
        if (!lint_may_be_ours(route->receiver) || !lint_spend(run, LINT_DEAR))
            continue;
        if (lint_find_way(route, NULL, 0, &way) == LINT_REACHED)
            ways->routes[ways->count++] = route;
        else
            unreached++;
    }
    for (size_t i = 0; ways->count == 0 && i < alertmanager->route_count; i++) {
        const struct lint_route *route = alertmanager->routes[i];
        struct lint_way way;
        if (lint_may_be_ours(route->receiver) &&
            lint_find_way(route, NULL, 0, &way) != LINT_REACHED)
            report_unreached(run, route, &way);
    }
    const struct lint_receiver *receiver = alertmanager->receivers;
    for (; receiver; receiver = receiver->hh.next)
        has_ours = has_ours || lint_is_ours(receiver);
    if (!needs_alerts(run))
        return;
    if (!has_ours)
        report_no_webhook(run);
    else if (ways->count == 0 && unreached == 0)
        report_no_route(run);
}

static void check_repeat(struct lint_run *run, const struct lint_route *route)
{
    const struct as_settings *settings = &run->config->settings;
    int64_t expiry = settings->receiver.incident_expiry_us, repeat = lint_get_repeat(route);
    char repeat_text[AS_DURATION_SIZE], expiry_text[AS_DURATION_SIZE];
    const struct lint_interval *written = &route->repeat_interval;
    if (repeat < expiry)
        return;
    as_duration_print(repeat, repeat_text);
    as_duration_print(expiry, expiry_text);
    lint_warn_alertmanager(
        run, written->node ? written->node : route->place,
        "a repeat every %s%s is not within `receiver.incident_expiry` (%s): %s; shorten "
        "repeat_interval",
        repeat_text, written->node ? "" : " (the default)", expiry_text,
        settings->alertmanager.url_count > 0
            ? "between repeats only `alertmanager.urls` keep the incident of a firing alert open"
            : "the incident of an alert that goes on firing expires in between");
}

/* Matchers that all alerts in question satisfy: the rule's, and those known of an alert. */
struct known {
    struct as_matcher *matchers; /* flat copies */
    size_t count;
};

static struct known make_known(struct as_arena *arena, const struct as_rule *rule,
                               const struct lint_alert *alert)
{
    size_t labels = alert ? alert->label_count : 0;
    struct known known = {.count = rule->matcher_count};
    known.matchers = as_arena_alloc(arena, rule->matcher_count + labels, sizeof(*known.matchers));
    memcpy(known.matchers, rule->matchers, rule->matcher_count * sizeof(*known.matchers));
    for (size_t i = 0; i < labels; i++) {
        const struct lint_label *label = &alert->labels[i];
        if (!label->value)
            continue;
        struct as_matcher *matcher = &known.matchers[known.count++];
        *matcher = (struct as_matcher){.op = AS_MATCHER_EQUAL};
        matcher->name = as_arena_strdup(arena, label->name);
        matcher->value = as_arena_strdup(arena, label->value);
    }
    return known;
}

/* The last route that does not bring the alerts. */
struct obstacle {
    const struct lint_route *route; /* NULL: no route has a receiver that the rule takes */
    struct lint_way way;
    const struct as_matcher *unset; /* the only obstacle: a label that nothing in the files sets */
};

/* A rule's author who matches a label knows that alerts have it. */
static bool knows_label(const struct lint_rule *rule, const char *label)
{
    const struct as_target_config *target = rule->target;
    for (size_t i = 0; i < rule->rule->matcher_count; i++) {
        if (strcmp(rule->rule->matchers[i].name, label) == 0)
            return true;
    }
    for (size_t i = 0; target && i < target->address_count; i++) {
        enum as_template_map map = AS_TEMPLATE_ANNOTATIONS;
        const char *name = NULL;
        size_t at = 0;
        while ((name = as_template_find_next(target->address[i].value, &at, &map))) {
            if (map == AS_TEMPLATE_LABELS && strcmp(name, label) == 0)
                return true;
        }
    }
    return false;
}

/* NULL: it needs no such label. */
static const struct as_matcher *find_unset(const struct lint_route *route,
                                           const struct lint_rule *rule,
                                           const struct lint_alert *alert)
{
    for (const struct lint_route *at = route; at; at = at->parent) {
        for (size_t i = 0; i < at->matcher_count; i++) {
            const struct as_matcher *matcher = &at->matchers[i];
            if (!matcher_may_match(matcher, "") && !lint_alert_mentions(alert, matcher->name) &&
                !knows_label(rule, matcher->name))
                return matcher;
        }
    }
    return NULL;
}

/* Whether a route brings such alerts; those of `alert`, unless NULL. */
static bool is_reached(struct lint_run *run, const struct ways *ways, const struct lint_rule *rule,
                       const struct known *known, const struct lint_alert *alert,
                       struct obstacle *obstacle_out)
{
    *obstacle_out = (struct obstacle){.route = NULL};
    for (size_t i = 0; i < ways->count; i++) {
        const struct lint_route *route = ways->routes[i];
        struct lint_way way;
        if (!lint_takes_receiver(rule, route->receiver->name))
            continue;
        if (!lint_spend(run, LINT_DEAR))
            return true;
        const bool is_open =
            lint_find_way(route, known->matchers, known->count, &way) == LINT_REACHED;
        const struct as_matcher *unset = is_open && alert ? find_unset(route, rule, alert) : NULL;
        if (is_open && !unset)
            return true;
        if (unset || !obstacle_out->unset)
            *obstacle_out = (struct obstacle){route, way, unset};
    }
    return false;
}

/* `what` does not arrive: "such alerts", or one by its name. */
static void report_obstacle(struct lint_run *run, const struct lint_rule *rule, const char *what,
                            const struct obstacle *obstacle)
{
    const char *file = as_yaml_get_file(run->lint->alertmanager->tree);
    const struct lint_route *route = obstacle->route;
    const struct lint_way *way = &obstacle->way;
    char text[MATCHER_TEXT_SIZE];
    if (way->taker)
        lint_warn(run, rule->tree, lint_get_match(rule),
                  "no route brings %s to alertscaler: the route at %s:%u takes them before the one "
                  "at line %u%s",
                  what, file, way->taker->place->place.line, route->place->place.line,
                  way->taker->parent == route ? "" : " (move it below, or add `continue: true`)");
    else if (way->refuser)
        lint_warn(run, rule->tree, lint_get_match(rule),
                  "no route brings %s to alertscaler: the one at %s:%u takes only those with `%s`",
                  what, file, route->place->place.line, matcher_print(way->refuser, text));
}

static void report_unset(struct lint_run *run, const struct lint_rule *rule,
                         const struct lint_alert *alert, const struct obstacle *obstacle)
{
    char place[LINT_PLACE_SIZE], text[MATCHER_TEXT_SIZE];
    lint_hint(run, rule->tree, lint_get_match(rule),
              "the route at %s:%u takes only alerts with `%s`, and `%s` (%s) does not set this "
              "label: add it to the alerting rule's `labels`, unless the series or external_labels "
              "have it",
              as_yaml_get_file(run->lint->alertmanager->tree), obstacle->route->place->place.line,
              matcher_print(obstacle->unset, text), alert->name,
              lint_print_place(alert->tree, alert->node, place));
}

/* At least one of the alerting rules that certainly match must make alerts that arrive. */
static void check_alerts_reached(struct lint_run *run, struct as_arena *arena,
                                 const struct ways *ways, const struct lint_rule *rule)
{
    const struct lint_prometheus *prometheus = &run->lint->prometheus;
    const struct as_rule *match = rule->rule;
    const struct lint_alert *first = NULL;
    struct obstacle obstacle = {.route = NULL}, last;
    bool may_come = false;
    for (size_t i = 0; i < prometheus->alert_count && lint_spend(run, LINT_CHEAP); i++) {
        const struct lint_alert *alert = &prometheus->alerts[i];
        enum lint_fit fit = lint_alert_fit(alert, match->matchers, match->matcher_count);
        if (fit == LINT_FIT_NO)
            continue;
        struct known known = make_known(arena, match, alert);
        if (is_reached(run, ways, rule, &known, alert, &last))
            return;
        may_come = may_come || last.unset;
        if (fit == LINT_FIT_YES && (!first || (last.unset && !obstacle.unset))) {
            first = alert;
            obstacle = last;
        }
    }
    if (first && obstacle.unset) {
        report_unset(run, rule, first, &obstacle);
    } else if (first && !may_come) {
        char place[LINT_PLACE_SIZE], what[2 * LINT_PLACE_SIZE];
        snprintf(what, sizeof(what), "alert `%s` (%s)", first->name,
                 lint_print_place(first->tree, first->node, place));
        report_obstacle(run, rule, what, &obstacle);
    }
}

static void check_rule_reached(struct lint_run *run, const struct ways *ways,
                               const struct lint_rule *rule)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct obstacle obstacle;
    struct known known = make_known(&arena, rule->rule, NULL);
    if (is_reached(run, ways, rule, &known, NULL, &obstacle))
        check_alerts_reached(run, &arena, ways, rule);
    else if (obstacle.route) /* NULL: its receivers are wrong, which was reported already */
        report_obstacle(run, rule, "such alerts", &obstacle);
    as_arena_deinit(&arena);
}

/* The route that repeats the rule's alerts most often: of those that certainly bring them; if none,
 * of those that may. */
static const struct lint_route *find_fastest(struct lint_run *run, const struct ways *ways,
                                             const struct lint_rule *of)
{
    const struct as_rule *rule = of->rule;
    const struct lint_route *best = NULL;
    bool is_best_sure = false;
    for (size_t i = 0; i < ways->count; i++) {
        const struct lint_route *route = ways->routes[i];
        struct lint_way way;
        if (!lint_takes_receiver(of, route->receiver->name) || !lint_spend(run, LINT_DEAR) ||
            lint_find_way(route, rule->matchers, rule->matcher_count, &way) != LINT_REACHED)
            continue;
        bool is_sure = lint_takes_all(route, rule->matchers, rule->matcher_count);
        if (!best || (is_sure && !is_best_sure) ||
            (is_sure == is_best_sure && lint_get_repeat(route) < lint_get_repeat(best))) {
            best = route;
            is_best_sure = is_sure;
        }
    }
    return best;
}

/* A Watchdog usually is `vector(1)`, without the label that the operator asks for. With Prometheus'
 * files it is known whether it has the label: check_rule_reached. */
static void check_watchdog_namespace(struct lint_run *run)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    if (!alertmanager->object_name || run->lint->prometheus.alert_count > 0 ||
        knows_label(&run->watchdog, "namespace"))
        return;
    lint_hint(run, run->watchdog.tree, lint_get_match(&run->watchdog),
              "the operator lets only alerts with namespace=\"%s\" into the route of %s: give the "
              "watchdog this label, unless Alertmanager's object says "
              "`alertmanagerConfigMatcherStrategy: {type: None}`",
              alertmanager->object_namespace, as_yaml_get_file(alertmanager->tree));
}

/* The watchdog must reach us, and be repeated in time. */
static void check_watchdog(struct lint_run *run, const struct ways *ways)
{
    const struct as_settings *settings = &run->config->settings;
    const struct lint_route *route = find_fastest(run, ways, &run->watchdog);
    char repeat[AS_DURATION_SIZE], within[AS_DURATION_SIZE];
    check_rule_reached(run, ways, &run->watchdog);
    check_watchdog_namespace(run);
    if (!route || settings->alertmanager.url_count > 0 || !lint_is_ours(route->receiver) ||
        lint_get_repeat(route) < settings->receiver.watchdog_within_us)
        return;
    as_duration_print(lint_get_repeat(route), repeat);
    as_duration_print(settings->receiver.watchdog_within_us, within);
    const struct as_yaml_node *written = route->repeat_interval.node;
    lint_warn_alertmanager(run, written ? written : route->place,
                           "the watchdog is repeated every %s%s, which is not within "
                           "`receiver.watchdog.within` (%s): shorten repeat_interval",
                           repeat, written ? "" : " (the default)", within);
}

/* The shortest time between steps down by the rule, for its alert alone; 0: at most one step, or by
 * another value. */
static int64_t get_pace(const struct lint_rule *rule)
{
    const struct as_rule *what = rule->rule;
    const int64_t lock = rule->target->bounds.cooldown.down_us;
    if (what->action.kind != AS_ACTION_SCALE_DOWN || what->action.is_to ||
        as_source_is_asked(&what->source) || what->max_steps == 1)
        return 0;
    return what->every_us > lock ? what->every_us : lock;
}

/* Each further step down waits for a new report of the alert. */
static void check_pace(struct lint_run *run, const struct ways *ways, const struct lint_rule *rule)
{
    const int64_t pace = get_pace(rule);
    const struct lint_route *route = pace > 0 ? find_fastest(run, ways, rule) : NULL;
    char repeat_text[AS_DURATION_SIZE], pace_text[AS_DURATION_SIZE];
    if (!route || run->config->settings.alertmanager.url_count > 0 ||
        !lint_is_ours(route->receiver) || lint_get_repeat(route) <= pace)
        return;
    const struct as_yaml_node *written = route->repeat_interval.node;
    as_duration_print(lint_get_repeat(route), repeat_text);
    as_duration_print(pace, pace_text);
    lint_warn(run, rule->tree, schema_find_key(rule->node, "scale_down"),
              "could step down every %s, but its alert is repeated every %s%s (%s:%u), and each "
              "further step waits for that (`unconfirmed`): shorten repeat_interval, or set "
              "`alertmanager.urls`",
              pace_text, repeat_text, written ? "" : ", the default",
              as_yaml_get_file(run->lint->alertmanager->tree),
              (written ? written : route->place)->place.line);
}

/* group_by and templated targets */

struct grouping {
    struct lint_run *run;
    const struct lint_route *route;
    const char *missing; /* the first label that selects a target but is not in group_by */
    const struct lint_rule *rule;
};

static void check_group_label(struct grouping *grouping, const struct lint_rule *rule,
                              const char *label)
{
    AS_CLEANUP(matcher_list_deinit) struct matcher_list list = {.items = NULL};
    if (grouping->missing || lint_groups_by(grouping->route, label))
        return;
    matcher_list_add(&list, rule->rule->matchers, rule->rule->matcher_count);
    for (const struct lint_route *at = grouping->route; at; at = at->parent)
        matcher_list_add(&list, at->matchers, at->matcher_count);
    if (matcher_list_fixes(&list, label))
        return;
    grouping->missing = label;
    grouping->rule = rule;
}

static void lint_routes_find_missing(struct grouping *grouping, const struct lint_rule *rule)
{
    const struct as_target_config *target = rule->target;
    for (size_t i = 0; i < target->address_count; i++) {
        enum as_template_map map = AS_TEMPLATE_ANNOTATIONS;
        const char *name = NULL;
        size_t at = 0;
        while ((name = as_template_find_next(target->address[i].value, &at, &map))) {
            if (map == AS_TEMPLATE_LABELS)
                check_group_label(grouping, rule, name);
        }
    }
}

static void report_grouping(const struct grouping *grouping)
{
    const struct lint_route *route = grouping->route;
    const struct lint_receiver *receiver = route->receiver;
    const struct as_yaml_node *max_alerts = NULL;
    char place[LINT_PLACE_SIZE], interval[AS_DURATION_SIZE];
    for (size_t i = 0; i < receiver->webhook_count && lint_is_zero(max_alerts); i++)
        max_alerts =
            lint_find(grouping->run->lint->alertmanager, receiver->webhooks[i], "max_alerts");
    as_duration_print(route->group_interval.us, interval);
    lint_warn_alertmanager(
        grouping->run, route->group_key ? route->group_key : route->place,
        "alerts for different targets come as one group: label `%s`, which selects the target of "
        "rule `%s` (%s), is not in group_by%s, so that an alert that joins a group waits for up to "
        "%s (group_interval)%s; use group_by: ['...']",
        grouping->missing, grouping->rule->rule->name,
        lint_print_place(grouping->rule->tree, grouping->rule->node, place),
        route->group_key ? "" : " (there is none)", interval,
        lint_is_zero(max_alerts) ? "" : " and is cut off where max_alerts is reached");
}

static void check_grouping(struct lint_run *run, const struct lint_route *route)
{
    struct grouping grouping = {.run = run, .route = route};
    if (lint_groups_all(route))
        return;
    for (size_t i = 0; i < run->rule_count && !grouping.missing; i++) {
        const struct lint_rule *rule = &run->rules[i];
        struct lint_way way;
        if (!rule->is_dead && rule->target->is_templated &&
            lint_takes_receiver(rule, route->receiver->name) && lint_spend(run, LINT_DEAR) &&
            lint_find_way(route, rule->rule->matchers, rule->rule->matcher_count, &way) ==
                LINT_REACHED)
            lint_routes_find_missing(&grouping, rule);
    }
    if (grouping.missing)
        report_grouping(&grouping);
}

void lint_check_routes(struct lint_run *run)
{
    struct as_arena arena = AS_ARENA_INIT;
    struct ways ways = {.routes = NULL};
    if (!run->lint->alertmanager)
        return;
    check_receiver_names(run);
    check_listed_receivers(run);
    lint_check_webhooks(run);
    find_ways(run, &arena, &ways);
    for (size_t i = 0; i < ways.count; i++) {
        if (!lint_is_ours(ways.routes[i]->receiver))
            continue;
        check_repeat(run, ways.routes[i]);
        check_intervals(run, ways.routes[i]);
        check_grouping(run, ways.routes[i]);
        lint_check_people(run, ways.routes[i]);
        lint_check_own_alerts(run, ways.routes[i]);
    }
    for (size_t i = 0; i < run->rule_count && ways.count > 0; i++) {
        if (run->rules[i].is_dead)
            continue;
        check_rule_reached(run, &ways, &run->rules[i]);
        check_pace(run, &ways, &run->rules[i]);
    }
    if (run->watchdog.rule && ways.count > 0)
        check_watchdog(run, &ways);
    as_arena_deinit(&arena);
}
