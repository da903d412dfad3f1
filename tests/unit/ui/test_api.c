/*
 * The API's read side: its paths, the documented forms of its answers, errors for wrong requests,
 * and limits on answers. On a real engine; the exchange is simulated.
 */
#include <criterion/criterion.h>
#include <jansson.h>

#include <alertscaler/base/str.h>
#include <alertscaler/ui/route.h>

#include "../http/exchange.h"
#include "ui/api_private.h"
#include "world.h"

static struct world world;
static struct as_http_exchange exchange; /* the last one */
static json_t *json;                     /* its body, where it is JSON */
static const char *not_ready;
static bool has_engine;

static void look(void *context, struct as_view *view_out)
{
    *view_out = world_look(context);
    view_out->not_ready = not_ready;
    if (!has_engine)
        view_out->engine = NULL;
}

static void forget(void)
{
    json_decref(json);
    json = NULL;
    exchange_forget(&exchange);
}

static const char *who = "";

static void setup(void)
{
    world_open(&world);
    not_ready = NULL;
    has_engine = true;
    world.api = as_api_new(&(struct as_api_config){
        .instance = "host-1", .metrics = world.metrics, .view = look, .context = &world});
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
}

static void teardown(void)
{
    forget();
    world_close(&world);
}

TestSuite(api, .init = setup, .fini = teardown);

/* With the row of those who read. */
static void ask_exchange(void)
{
    struct as_routes routes = {.api = world.api, .prefix = ""};
    as_route_answer(as_route_find("GET", exchange.path), &routes, &exchange, who);
}

static void ask(const char *method, const char *path, const char *query, int status)
{
    forget();
    exchange = (struct as_http_exchange){.method = method, .path = path, .query = query};
    ask_exchange();
    cr_assert_eq(exchange.replies, 1);
    cr_assert_eq(exchange.status, status, "%s?%s: %d %s", path, query, exchange.status,
                 exchange.body);
    if (strcmp(exchange.content_type, "application/json") == 0) {
        json = json_loadb(exchange.body, exchange.body_size, JSON_REJECT_DUPLICATES, NULL);
        cr_assert(json, "not JSON: %s", exchange.body);
        cr_assert_eq(strcmp(json_string_value(json_object_get(json, "status")),
                            status == 200 ? "success" : "error"),
                     0);
    }
}

/* The `data` of an answer of 200. */
static json_t *get(const char *path, const char *query)
{
    ask("GET", path, query, 200);
    cr_assert(json, "%s", path);
    json_t *data = json_object_get(json, "data");
    cr_assert(data);
    return data;
}

static void expect_error(const char *path, const char *query, int status, const char *type,
                         const char *part)
{
    ask("GET", path, query, status);
    const char *actual = json_string_value(json_object_get(json, "errorType"));
    cr_assert(as_str_equal(actual, type), "%s: %s", path, actual);
    const char *text = json_string_value(json_object_get(json, "error"));
    cr_assert(text && strstr(text, part), "%s: %s", path, text);
}

/* What is at a path of keys and indices: "0.last_decision.reason". */
static const json_t *at(const json_t *value, const char *keys)
{
    char key[64];
    while (*keys) {
        const size_t size = strcspn(keys, ".");
        (void)snprintf(key, sizeof(key), "%.*s", (int)size, keys);
        value = json_is_array(value) ? json_array_get(value, (size_t)strtoul(key, NULL, 10))
                                     : json_object_get(value, key);
        keys += size + (keys[size] == '.');
    }
    return value;
}

static void expect_text(const json_t *value, const char *keys, const char *text)
{
    const char *actual = json_string_value(at(value, keys));
    cr_assert(as_str_equal(actual, text), "%s is %s, not %s", keys, actual, text);
}

static void expect_number(const json_t *value, const char *keys, json_int_t number)
{
    const json_t *actual = at(value, keys);
    cr_assert(json_is_integer(actual) && json_integer_value(actual) == number, "%s", keys);
}

static void expect_null(const json_t *value, const char *keys)
{
    cr_assert(json_is_null(at(value, keys)), "%s", keys);
}

Test(api, knows_its_own_paths)
{
    static const struct {
        const char *path, *handler;
    } cases[] = {
        {"/", "page"},
        {"/-/healthy", "healthy"},
        {"/-/ready", "ready"},
        {"/metrics", "metrics"},
        {"/api/v1/status", "api"},
        {"/api/v1/targets", "api"},
        {"/api/v1/targets/checkout", "api"},
        {"/api/v1/nothing", "api"},
        {"/api/", "api"},
        {"/api", "unknown"},
        {"/webhook", "webhook"},
        {"/-/reload", "reload"},
        {"/-/ready/", "unknown"},
        {"/index.html", "unknown"},
        {"", "unknown"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        const struct as_route *route = as_route_find("GET", cases[i].path);
        cr_assert_str_eq(route->handler, cases[i].handler, "%s", cases[i].path);
        exchange = (struct as_http_exchange){.method = "GET", .path = cases[i].path, .query = ""};
        if (route->api.answer)
            ask_exchange();
        cr_assert_eq(exchange.replies, route->api.answer ? 1 : 0);
        cr_assert_eq(route->api.answer == NULL,
                     strcmp(route->handler, "unknown") == 0 || route->refusal);
        forget();
    }
}

Test(api, can_only_be_read)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "get"};
    static const char *const paths[] = {"/", "/-/ready", "/metrics", "/api/v1/targets",
                                        "/api/v1/targets/checkout"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(methods); i++) {
        for (size_t k = 0; k < AS_ARRAY_SIZE(paths); k++) {
            ask(methods[i], paths[k], "", 405);
            expect_text(json, "errorType", "method_not_allowed");
            cr_assert(strstr(exchange.headers, "Allow: GET, HEAD\r\n"));
        }
    }
    ask("HEAD", "/api/v1/targets", "", 200);
}

Test(api, says_whether_it_is_healthy_and_ready)
{
    ask("GET", "/-/healthy", "", 200);
    ask("GET", "/-/ready", "", 200);
    not_ready = "starting";
    ask("GET", "/-/healthy", "", 200);
    ask("GET", "/-/ready", "", 503);
    cr_assert(as_str_equal(exchange.body, "not ready: starting\n"));
    expect_number(get("/api/v1/status", ""), "rules", 2);
    expect_text(at(json, "data"), "not_ready", "starting");
}

Test(api, answers_metrics_in_the_format_asked_for)
{
    ask("GET", "/metrics", "", 200);
    cr_assert(as_str_equal(exchange.content_type, "text/plain; version=0.0.4; charset=utf-8"));
    cr_assert(strstr(exchange.body, "\nalertscaler_leader 1\n"));
    forget();
    exchange = (struct as_http_exchange){
        .method = "GET", .path = "/metrics", .query = "", .accept = "application/openmetrics-text"};
    ask_exchange();
    cr_assert(as_str_starts_with(exchange.content_type, "application/openmetrics-text;"));
    cr_assert(strstr(exchange.body, "# EOF\n"));
}

Test(api, shows_the_status)
{
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    const json_t *status = get("/api/v1/status", "");
    cr_assert_not_null(json_string_value(at(status, "version")));
    cr_assert_not_null(json_string_value(at(status, "libraries.libevent")));
    expect_text(status, "instance", "host-1");
    expect_text(status, "started", "2026-11-25T09:46:40.000000Z");
    cr_assert(json_is_true(at(status, "ready")));
    expect_null(status, "not_ready");
    cr_assert(json_is_true(at(status, "leader")));
    expect_text(status, "config_digest", "c0ffee");
    expect_text(status, "rules_digest",
                "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd");
    expect_number(status, "rules", 2);
    expect_number(status, "targets", 1);
    expect_number(status, "incidents_open", 1);
    expect_number(status, "queues.notifications", 5);
    expect_number(status, "connections", 7);
}

Test(api, shows_targets)
{
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    const json_t *targets = get("/api/v1/targets", "");
    cr_assert_eq(json_array_size(targets), 2);
    expect_text(targets, "0.id", "kubernetes/default/apps/v1/Deployment/shop/cart");
    expect_text(targets, "0.name", "any-shop");
    expect_text(targets, "1.name", "checkout");
    expect_text(targets, "1.kind", "kubernetes");
    expect_text(targets, "1.address.namespace", "shop");
    expect_number(targets, "1.replicas", 6);
    expect_number(targets, "1.desired", 6);
    expect_number(targets, "1.min", 2);
    expect_number(targets, "1.max", 20);
    expect_number(targets, "1.open_incidents", 1);
    expect_text(targets, "1.last_decision.reason", "scaled");
    expect_text(targets, "1.last_decision.rule", "slow");
    expect_null(targets, "1.failure");
    const char *until = json_string_value(at(targets, "1.locked_until.up"));
    cr_assert(until && as_str_starts_with(until, "2026-11-25T09:47:40."), "%s", until);
    world.mono.us += AS_US_PER_H;
    expect_null(get("/api/v1/targets", "limit=1"), "0.locked_until.up");
    cr_assert_eq(json_array_size(at(json, "data")), 1);
    expect_text(json, "warnings.0", "results truncated due to limit");
}

Test(api, shows_schedules)
{
    struct as_target_config *target = world.ruleset->targets[0];
    target->schedules = as_xcalloc(2, sizeof(*target->schedules));
    target->schedule_count = 2;
    target->schedules[0] = (struct as_schedule){.name = as_xstrdup("sale"),
                                                .begin = {WORLD_START_US - AS_US_PER_H},
                                                .end = {WORLD_START_US + AS_US_PER_H},
                                                .has_min = true,
                                                .min = 5};
    target->schedules[1] = (struct as_schedule){.name = as_xstrdup("past"),
                                                .begin = {WORLD_START_US - AS_US_PER_H},
                                                .end = {WORLD_START_US - AS_US_PER_MIN},
                                                .hold = AS_WAYS_DOWN};
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    const json_t *shown = get("/api/v1/targets/checkout", "");
    expect_text(shown, "schedules.0.name", "sale");
    cr_assert(json_is_true(at(shown, "schedules.0.in_force")));
    expect_number(shown, "schedules.0.min", 5);
    expect_null(shown, "schedules.0.max");
    expect_text(shown, "schedules.0.changes", "2026-11-25T10:46:40.000000Z");
    cr_assert(json_is_false(at(shown, "schedules.1.in_force")));
    expect_null(shown, "schedules.1.changes");
    cr_assert_null(at(shown, "unit"));
}

Test(api, shows_requests_for_approvals)
{
    world.ruleset->rules[0]->approval =
        (struct as_approval_config){.is_set = true, .above = 1, .for_us = 15 * AS_US_PER_MIN};
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    const json_t *approvals = get("/api/v1/approvals", "");
    cr_assert_eq(json_array_size(approvals), 1);
    expect_text(approvals, "0.answer", "waiting");
    expect_text(approvals, "0.target_name", "checkout");
    expect_text(approvals, "0.rule", "slow");
    expect_text(approvals, "0.direction", "up");
    expect_number(approvals, "0.from", 4);
    expect_number(approvals, "0.to", 6);
    expect_null(approvals, "0.answered");
    cr_assert_null(at(approvals, "0.unit"));
    const char *id = json_string_value(at(approvals, "0.id"));
    const struct as_operator_command order = {.kind = AS_OPERATOR_COMMAND_DENY,
                                              .request = id,
                                              .who = "whole",
                                              .remote = "",
                                              .reason = "no"};
    world_step(&world, (struct as_event){.kind = AS_EVENT_ORDER, .call_id = 99, .order = &order});
    approvals = get("/api/v1/approvals", "");
    expect_text(approvals, "0.answer", "denied");
    expect_text(approvals, "0.who", "whole");
    cr_assert_not_null(json_string_value(at(approvals, "0.answered")));
}

/* The end of a lock is where it was said to be, however long the clocks take to be read; after a
 * jump of the wall clock it is as far ahead as before. */
Test(api, keeps_to_the_end_of_a_lock)
{
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    char first[AS_RFC3339_SIZE];
    (void)snprintf(first, sizeof(first), "%s",
                   json_string_value(at(get("/api/v1/targets/checkout", ""), "locked_until.up")));
    world.mono.us += 10 * AS_US_PER_S;
    world.skew_us = 137;
    expect_text(get("/api/v1/targets/checkout", ""), "locked_until.up", first);
    world.skew_us = -AS_US_PER_H;
    const char *jumped =
        json_string_value(at(get("/api/v1/targets/checkout", ""), "locked_until.up"));
    cr_assert(as_str_starts_with(first, "2026-11-25T09:47:40."), "%s", first);
    cr_assert(as_str_starts_with(jumped, "2026-11-25T08:47:40."), "%s", jumped);
}

Test(api, finds_a_target_by_name_or_id)
{
    static const char *const paths[] = {
        "/api/v1/targets/checkout",
        "/api/v1/targets/kubernetes/default/apps/v1/Deployment/shop/checkout",
        "/api/v1/targets/kubernetes%2Fdefault%2Fapps%2fv1%2FDeployment%2Fshop%2Fcheckout",
        "/api/v1/targets/check%6Fut",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++)
        expect_text(get(paths[i], ""), "id", "kubernetes/default/apps/v1/Deployment/shop/checkout");
    expect_error("/api/v1/targets/", "", 400, "bad_data", "name or id");
    expect_error("/api/v1/targets/nobody", "", 404, "not_found", "nobody");
    expect_error("/api/v1/targets/checkout%00x", "", 400, "bad_data", "name or id");
    expect_error("/api/v1/targets/any-shop", "", 404, "not_found", "any-shop");
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    expect_error("/api/v1/targets/any-shop", "", 404, "not_found", "any-shop");
}

Test(api, shows_a_target_that_fails)
{
    world.scale_result = AS_REASON_FORBIDDEN;
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    expect_text(get("/api/v1/targets/checkout", ""), "failure", "forbidden");
    expect_number(at(json, "data"), "replicas", 4);
    expect_number(at(json, "data"), "tries", 1);
    cr_expect_not_null(json_string_value(at(at(json, "data"), "failing_since")));
    cr_expect_not_null(json_string_value(at(at(json, "data"), "next_try")));
}

Test(api, says_what_happens_after_an_incident)
{
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    cr_expect_eq(json_array_size(at(get("/api/v1/targets/checkout", ""), "next")), 0);
    world_notify(&world, AS_ALERT_RESOLVED, "Slow", NULL);
    const json_t *target = get("/api/v1/targets/checkout", "");
    cr_assert_eq(json_array_size(at(target, "next")), 1);
    expect_text(target, "next.0.effect", "stays");
    expect_text(target, "next.0.rule", "slow");
    expect_number(target, "next.0.size", 6);
    expect_null(target, "next.0.waits_for");
    expect_null(target, "next.0.from");
    expect_text(target, "next.0.text", "stays at 6: the rule has no on_resolved");
    expect_null(target, "next_try");
    expect_number(target, "tries", 0);
}

Test(api, shows_open_incidents)
{
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    world.generator_url = "http://prometheus/graph?g0.expr=slow";
    world.external_url = "http://alertmanager";
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    const json_t *incidents = get("/api/v1/incidents", "");
    cr_assert_eq(json_array_size(incidents), 2);
    const size_t cart = at(incidents, "0.labels.app") ? 0 : 1;
    const json_t *incident = json_array_get(incidents, cart);
    cr_assert_eq(strlen(json_string_value(at(incident, "fingerprint"))), 16);
    expect_text(incident, "startsAt", "2026-11-25T09:46:10.000000Z");
    expect_text(incident, "receivers.0", "scaler");
    expect_text(incident, "labels.app", "cart");
    expect_text(incident, "annotations.summary", "<b>too slow</b>");
    expect_text(incident, "generatorURL", world.generator_url);
    expect_text(incident, "externalURL", world.external_url);
    expect_null(json_array_get(incidents, 1 - cart), "generatorURL");
    expect_null(json_array_get(incidents, 1 - cart), "externalURL");
    expect_text(incident, "targets.0.target", "kubernetes/default/apps/v1/Deployment/shop/cart");
    expect_text(incident, "targets.0.rule", "each");
    expect_number(incident, "targets.0.replicas", 8);
    cr_assert_null(json_object_get(json, "warnings"));
    world_notify(&world, AS_ALERT_RESOLVED, "Each", "cart");
    cr_assert_eq(json_array_size(get("/api/v1/incidents", "")), 1);
}

/* Names of credentials, as "a,b"; of the only incident, or "" if the asker sees none. */
static const char *get_credentials(const char *asker)
{
    static char names[100];
    size_t i, size = 0;
    const json_t *name;
    who = asker;
    const json_t *incidents = get("/api/v1/incidents", "");
    cr_assert_eq(json_array_size(incidents), strcmp(asker, "removed") != 0);
    names[0] = '\0';
    json_array_foreach(at(incidents, "0.credentials"), i, name) size += (size_t)snprintf(
        names + size, sizeof(names) - size, i > 0 ? ",%s" : "%s", json_string_value(name));
    return names;
}

Test(api, shows_through_which_credentials_an_incident_came_to_those_who_may_know)
{
    world.credential = "narrow";
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    cr_expect_str_eq(get_credentials("whole"), "narrow");
    world.credential = "whole";
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    cr_expect_str_eq(get_credentials("whole"), "narrow,whole");
    cr_expect_str_eq(get_credentials(""), "narrow,whole");
    cr_expect_str_eq(get_credentials("narrow"), "narrow", "it learns of no other");
    cr_expect_str_eq(get_credentials("removed"), "");
}

/* Orders of `credential` on the target `checkout`. */
static void order_as(const char *credential, enum as_operator_command_kind kind, enum as_ways ways)
{
    const struct as_operator_command order = {.kind = kind,
                                              .target = "checkout",
                                              .who = credential,
                                              .remote = "",
                                              .reason = "maintenance",
                                              .ways = ways,
                                              .replicas = 3,
                                              .for_us = AS_US_PER_H};
    world_step(&world, (struct as_event){
                           .kind = AS_EVENT_ORDER, .call_id = ++world.requests, .order = &order});
}

static void expect_names(const char *asker, const char *shown)
{
    who = asker;
    const json_t *target = get("/api/v1/targets/checkout", "");
    expect_text(target, "paused.who", shown);
    expect_text(target, "floor.who", shown);
    forget();
}

/* Everything that an asker can read. */
static bool reads(const char *asker, const char *path, const char *text)
{
    who = asker;
    ask("GET", path, "", 200);
    const bool is_there = memmem(exchange.body, exchange.body_size, text, strlen(text)) != NULL;
    forget();
    return is_there;
}

Test(api, a_narrowed_credential_sees_no_other_name)
{
    char path[100];
    order_as("whole", AS_OPERATOR_COMMAND_FLOOR, AS_WAYS_NONE);
    order_as("whole", AS_OPERATOR_COMMAND_PAUSE, AS_WAYS_UP);
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    expect_names("whole", "whole");
    expect_names("", "whole");
    expect_names("narrow", "another credential");            /* by rules */
    static const char *const others[] = {"shop", "removed"}; /* by targets */
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++) {
        who = others[i];
        ask("GET", "/api/v1/targets/checkout", "", 404);
        forget();
        cr_expect_not(reads(others[i], "/api/v1/targets", "checkout"));
        cr_expect_not(reads(others[i], "/api/v1/decisions", "checkout"));
        cr_expect_not(reads(others[i], "/api/v1/rules", "checkout"));
    }

    who = "whole";
    const char *id = json_string_value(at(get("/api/v1/decisions", "target=checkout"), "0.id"));
    (void)snprintf(path, sizeof(path), "/api/v1/decisions/%s", id);
    cr_expect(reads("whole", path, "\"name\":\"whole\""));
    cr_expect_not(reads("narrow", path, "\"whole\""));
    cr_expect(reads("narrow", path, "\"another credential\""));

    order_as("narrow", AS_OPERATOR_COMMAND_PAUSE, AS_WAYS_BOTH);
    order_as("whole", AS_OPERATOR_COMMAND_PAUSE, AS_WAYS_BOTH);
    static const char *const paths[] = {"/api/v1/status",
                                        "/api/v1/targets",
                                        "/api/v1/approvals",
                                        "/api/v1/decisions",
                                        "/api/v1/rules",
                                        "/metrics",
                                        "/"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++)
        cr_expect_not(reads("shop", paths[i], "whole"), "%s", paths[i]);
    cr_expect(reads("whole", "/api/v1/targets", "\"who\":\"whole\""));
}

Test(api, a_narrowed_credential_sees_its_own_name)
{
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    const struct as_operator_command order = {.kind = AS_OPERATOR_COMMAND_PAUSE,
                                              .target =
                                                  "kubernetes/default/apps/v1/Deployment/shop/cart",
                                              .who = "shop",
                                              .remote = "",
                                              .reason = "maintenance"};
    world_step(&world, (struct as_event){
                           .kind = AS_EVENT_ORDER, .call_id = ++world.requests, .order = &order});
    cr_expect(reads("shop", "/api/v1/targets", "\"who\":\"shop\""));
    cr_expect(reads("whole", "/api/v1/targets", "\"who\":\"shop\""));
    cr_expect_not(reads("narrow", "/api/v1/targets", "\"who\":\"shop\""));
}

Test(api, the_kill_switch_is_no_credential)
{
    const struct as_halt halt = {"kill switch file", "stop"};
    world_step(&world, (struct as_event){.kind = AS_EVENT_HALT, .halt = &halt});
    who = "narrow";
    expect_text(get("/api/v1/status", ""), "paused.who", "kill switch file");
}

Test(api, shows_rules_whose_queries_fail)
{
    cr_assert_eq(json_array_size(at(get("/api/v1/status", ""), "query_errors")), 0);
    expect_null(get("/api/v1/rules", ""), "0.query_error");
    world_refuse_query(&world, 0, "sun(x)", "unknown \"sun\"");
    const json_t *errors = at(get("/api/v1/status", ""), "query_errors");
    cr_assert_eq(json_array_size(errors), 1);
    expect_text(errors, "0.rule", "slow");
    expect_text(errors, "0.target", "checkout");
    expect_text(errors, "0.error", "unknown \"sun\"");
    expect_text(get("/api/v1/rules", ""), "0.query_error", "unknown \"sun\"");
    expect_null(at(json, "data"), "1.query_error");
}

Test(api, shows_rules_as_they_are_written)
{
    struct as_rule *rule = world.ruleset->rules[0];
    rule->every_us = 90 * AS_US_PER_S;
    rule->max_steps = 3;
    const json_t *rules = get("/api/v1/rules", "");
    cr_assert_eq(json_array_size(rules), 2);
    expect_text(rules, "0.name", "slow");
    expect_text(rules, "0.match.0", "alertname=\"Slow\"");
    expect_text(rules, "0.target", "checkout");
    expect_number(rules, "0.action.scale_up.by", 2);
    expect_text(rules, "0.every", "1m30s");
    expect_number(rules, "0.max_steps", 3);
    cr_assert(json_is_true(at(rules, "0.enabled")));
    expect_text(rules, "1.match.0", "alertname=~\"Each|Every\"");
    expect_null(rules, "1.every");
    expect_null(rules, "1.max_steps");
    rule->action =
        (struct as_action){.kind = AS_ACTION_SCALE_DOWN,
                           .amount = {.is_percent = true, .milli_percent = 12500, .at_least = 2}};
    expect_text(get("/api/v1/rules", ""), "0.action.scale_down.by", "12.5%");
    expect_number(at(json, "data"), "0.action.scale_down.at_least", 2);
    rule->action = (struct as_action){.kind = AS_ACTION_SCALE_TO, .size = 9};
    expect_number(get("/api/v1/rules", ""), "0.action.scale_to", 9);
    rule->action = (struct as_action){.kind = AS_ACTION_SCALE_UP, .is_to = true, .size = 8};
    expect_number(get("/api/v1/rules", ""), "0.action.scale_up.to", 8);
}

static struct as_template *make_query(const char *text)
{
    struct as_template *query = NULL;
    cr_assert_eq(as_template_new(text, &query, NULL), 0);
    return query;
}

static void expect_rule(const char *key, const char *expected)
{
    const json_t *value = at(get("/api/v1/rules", ""), key);
    AS_CLEANUP(as_free_p) char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    cr_assert_str_eq(text, expected);
}

Test(api, shows_where_a_rules_value_comes_from)
{
    static const struct as_step steps[] = {
        {.is_above = true, .bound = 1.5, .amount = {.size = 1, .at_least = 1}},
        {.bound = 0, .amount = {.is_percent = true, .milli_percent = 50000, .at_least = 4}},
        {.is_above = true, .bound = 70, .to = 62.5},
    };
    static const struct as_step rungs[] = {{.bound = 0.5, .amount = {.size = 3}}};
    struct as_rule *rule = world.ruleset->rules[0];
    rule->source = (struct as_source){.kind = AS_SOURCE_QUERY, .query = make_query("x{a=\"b\"}")};
    rule->action = (struct as_action){.kind = AS_ACTION_SCALE_UP, .steps = steps, .step_count = 3};
    expect_rule("0.action", "{\"scale_up\":{\"value\":{\"query\":\"x{a=\\\"b\\\"}\"},\"steps\":["
                            "{\"above\":1.5,\"by\":1},{\"below\":0,\"by\":\"50%\",\"at_least\":4},"
                            "{\"above\":70,\"to\":62.5}]}}");
    rule->action = (struct as_action){.kind = AS_ACTION_SCALE_TO, .steps = rungs, .step_count = 1};
    expect_rule("0.action", "{\"scale_to\":{\"value\":{\"query\":\"x{a=\\\"b\\\"}\"},\"steps\":["
                            "{\"from\":0.5,\"size\":3}]}}");
    rule->action = (struct as_action){.kind = AS_ACTION_TRACK,
                                      .track = {.goal = AS_GOAL_AVERAGE_VALUE, .value = 2.5}};
    expect_rule("0.action", "{\"track\":{\"average_value\":2.5,\"query\":\"x{a=\\\"b\\\"}\"}}");
    rule->source.per_pod = true;
    rule->source.pod_label = as_xstrdup("pod");
    rule->action.track.is_resource = true; /* the first one: cpu */
    expect_rule("0.action", "{\"track\":{\"average_value\":2.5,\"resource\":\"cpu\",\"query\":"
                            "\"x{a=\\\"b\\\"}\",\"per_pod\":true,\"pod_label\":\"pod\"}}");
    rule->action.track = (struct as_track){.goal = AS_GOAL_UTILIZATION,
                                           .value = 62.5,
                                           .resource = AS_RESOURCE_MEMORY,
                                           .of_limits = true};
    expect_rule("0.action",
                "{\"track\":{\"utilization\":\"62.5%\",\"of\":\"memory_limits\",\"query\":"
                "\"x{a=\\\"b\\\"}\",\"per_pod\":true,\"pod_label\":\"pod\"}}");
    rule = world.ruleset->rules[1];
    rule->source = (struct as_source){.kind = AS_SOURCE_ANNOTATION, .name = as_xstrdup("size")};
    rule->action = (struct as_action){.kind = AS_ACTION_PASS_THROUGH};
    expect_rule("1.action", "{\"pass_through\":{\"annotation\":\"size\"}}");
    rule->source.kind = AS_SOURCE_LABEL;
    rule->action =
        (struct as_action){.kind = AS_ACTION_TRACK, .track = {.goal = AS_GOAL_VALUE, .value = 3}};
    expect_rule("1.action", "{\"track\":{\"value\":3,\"label\":\"size\"}}");
}

Test(api, an_always_rule_has_no_matchers)
{
    struct as_rule *rule = world.ruleset->rules[1];
    rule->is_always = true;
    rule->matcher_count = 0;
    expect_rule("0.always", "false");
    expect_rule("1.always", "true");
    expect_rule("1.match", "[]");
    rule->matcher_count = 1;
}

Test(api, shows_what_a_rule_does_at_the_end)
{
    struct as_rule *rule = world.ruleset->rules[0];
    expect_rule("0.on_resolved", "\"nothing\"");
    expect_rule("0.guard", "null");
    rule->on_resolved = (struct as_ending){
        .kind = AS_ENDING_GIVE_BACK, .after_us = 10 * AS_US_PER_MIN, .step_milli_percent = 25000};
    rule->guard_kind = AS_GUARD_WAIVED;
    expect_rule("0.on_resolved", "{\"give_back\":{\"after\":\"10m\",\"step\":\"25%\"}}");
    expect_rule("0.guard", "\"none\"");
    rule->on_resolved = (struct as_ending){
        .kind = AS_ENDING_SCALE,
        .action = {.kind = AS_ACTION_SCALE_DOWN, .amount = {.size = 3, .at_least = 1}}};
    rule->guard_kind = AS_GUARD_QUERY;
    rule->guard = make_query("up == 1");
    expect_rule("0.on_resolved", "{\"scale_down\":{\"by\":3}}");
    expect_rule("0.guard", "{\"query\":\"up == 1\"}");
    rule->on_resolved.action = (struct as_action){.kind = AS_ACTION_SCALE_TO, .size = 2};
    expect_rule("0.on_resolved", "{\"scale_to\":2}");
}

Test(api, quotes_matchers)
{
    static const struct {
        const char *name, *value, *text;
    } cases[] = {
        {"a", "x\"y\\z\n", "a=\"x\\\"y\\\\z\\n\""},
        {"k8s.io/app", "", "\"k8s.io/app\"=\"\""},
        {"a:b_1", "ä", "a:b_1=\"ä\""},
        {"1a", "b", "\"1a\"=\"b\""},
    };
    struct as_matcher *matcher = &world.ruleset->rules[0]->matchers[0];
    const struct as_matcher before = *matcher;
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++) {
        matcher->name = (char *)(uintptr_t)cases[i].name;
        matcher->value = (char *)(uintptr_t)cases[i].value;
        expect_text(get("/api/v1/rules", ""), "0.match.0", cases[i].text);
    }
    *matcher = before;
}

Test(api, checks_requests_for_the_log)
{
    static const char *const cases[][2] = {
        {"limit=x", "limit: expected a number from 1 to 10000"},
        {"limit=10001", "limit: expected a number from 1 to 10000"},
        {"after=-1", "after: expected a number from 0"},
        {"kind=decision,x", "kind: expected kinds of records, as decision,action"},
        {"since=x", "since: expected a time"},
        {"until=x", "until: expected a time"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++)
        expect_error("/api/v1/log", cases[i][0], 400, "bad_data", cases[i][1]);
    expect_error("/api/v1/log", "", 503, "unavailable", "the action log cannot be read now");
}

/* Three decisions: scaled for checkout, scaled for cart, cooldown for checkout. */
static void decide_thrice(void)
{
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    world_notify(&world, AS_ALERT_RESOLVED, "Slow", NULL);
    world_notify(&world, AS_ALERT_FIRING, "Slow", "other");
}

Test(api, shows_decisions_newest_first_and_filtered)
{
    decide_thrice();
    const json_t *decisions = get("/api/v1/decisions", "");
    cr_assert_eq(json_array_size(decisions), 3, "%s", exchange.body);
    expect_text(decisions, "0.reason", "cooldown");
    expect_text(decisions, "1.target", "kubernetes/default/apps/v1/Deployment/shop/cart");
    expect_text(decisions, "2.target_name", "checkout");
    expect_text(decisions, "2.rule", "slow");
    expect_text(decisions, "2.direction", "up");
    expect_number(decisions, "2.replicas", 4);
    expect_number(decisions, "2.desired", 6);
    char before[64], since[64], seconds[64];
    (void)snprintf(before, sizeof(before), "before=%s", json_string_value(at(decisions, "0.id")));
    (void)snprintf(since, sizeof(since), "since=%s", json_string_value(at(decisions, "1.time")));
    (void)snprintf(seconds, sizeof(seconds), "since=%lld", (long long)WORLD_START_US / 1000000 + 1);
    const struct {
        const char *query;
        size_t count;
    } cases[] = {
        {"target=checkout", 2},
        {"target=kubernetes%2Fdefault%2Fapps%2Fv1%2FDeployment%2Fshop%2Fcart", 1},
        {"target=cart", 0},
        {"rule=slow", 2},
        {"rule=each&reason=scaled", 1},
        {"reason=vetoed", 0},
        {"reason=", 3},
        {"limit=2", 2},
        {before, 2},
        {"before=01ARZ3NDEKTSV4RRFFQ69G5FAV", 0},
        {since, 2},
        {"since=1970-01-01T00:00:00Z", 3},
        {"since=9999-12-31T23:59:59Z", 0},
        {"since=0", 3},
        {seconds, 0},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++)
        cr_assert_eq(json_array_size(get("/api/v1/decisions", cases[i].query)), cases[i].count,
                     "%s: %s", cases[i].query, exchange.body);
}

Test(api, shows_a_decision_as_it_is_in_the_action_log)
{
    decide_thrice();
    char path[64];
    (void)snprintf(path, sizeof(path), "/api/v1/decisions/%s",
                   json_string_value(at(get("/api/v1/decisions", ""), "2.id")));
    const json_t *record = get(path, "");
    expect_text(record, "kind", "decision");
    expect_text(record, "instance", "host-1");
    expect_text(record, "output.reason", "scaled");
    cr_assert(json_is_object(at(record, "input")));
    expect_error("/api/v1/decisions/01ARZ3NDEKTSV4RRFFQ69G5FAV", "", 404, "not_found",
                 "action log");
    expect_error("/api/v1/decisions/", "", 404, "not_found", "action log");
}

/* As many decisions as wanted, of one alert that ends and begins again. */
static void decide_often(size_t count)
{
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    for (size_t i = 1; i < count; i++) {
        char app[32];
        (void)snprintf(app, sizeof(app), "app-%zu", i);
        world_notify(&world, AS_ALERT_FIRING, "Slow", app);
    }
}

Test(api, keeps_the_last_thousand_decisions)
{
    decide_often(DECISIONS_MAX + 20);
    cr_assert_eq(json_array_size(get("/api/v1/decisions", "limit=5000")), DECISIONS_MAX);
    cr_assert_eq(world.api->decision_count, DECISIONS_MAX);
    cr_assert_eq(json_array_size(get("/api/v1/decisions", "")), 100);
    size_t bytes = 0;
    const struct kept_decision *decision;
    TAILQ_FOREACH (decision, &world.api->decisions, next)
        bytes += decision->record_size;
    cr_assert_eq(world.api->decision_bytes, bytes);
}

Test(api, keeps_long_decisions_without_their_record)
{
    static char incident[DECISION_BYTES_MAX];
    memset(incident, 'i', sizeof(incident) - 1);
    const struct as_proposal proposal = {.rule = "slow", .incident = incident};
    const struct as_proposal_result result = {0};
    const struct as_decide_input input = {.version = AS_DECIDE_VERSION,
                                          .now = {WORLD_START_US},
                                          .target = "t",
                                          .proposals = &proposal,
                                          .proposal_count = 1};
    const struct as_decision output = {.reason = AS_REASON_AT_MAX, .rule = "slow"};
    const struct as_decision_record record = {.id = "01ARZ3NDEKTSV4RRFFQ69G5FAV",
                                              .target = "t",
                                              .target_name = "",
                                              .input = &input,
                                              .results = &result,
                                              .output = &output,
                                              .rules_digest = ""};
    world_tell_api(world.api,
                   &(struct as_effect){.kind = AS_EFFECT_RECORD_DECISION, .decision = &record},
                   (as_wall_time){WORLD_START_US});
    expect_text(get("/api/v1/decisions/01ARZ3NDEKTSV4RRFFQ69G5FAV", ""), "reason", "at_max");
    cr_assert_lt(exchange.body_size, 1000);
}

Test(api, refuses_wrong_parameters)
{
    static const struct {
        const char *path, *query, *part;
    } cases[] = {
        {"/api/v1/decisions", "limit=0", "limit"},
        {"/api/v1/decisions", "limit=-1", "limit"},
        {"/api/v1/decisions", "limit=10x", "limit"},
        {"/api/v1/decisions", "limit=99999999999999999999", "limit"},
        {"/api/v1/incidents", "limit=many", "limit"},
        {"/api/v1/targets", "limit=0x10", "limit"},
        {"/api/v1/rules", "limit=1.5", "limit"},
        {"/api/v1/decisions", "reason=because", "reason code because"},
        {"/api/v1/decisions", "since=yesterday", "since"},
        {"/api/v1/decisions", "since=-5", "since"},
        {"/api/v1/decisions", "since=1e300", "since"},
        {"/api/v1/decisions", "limit", "query string"},
        {"/api/v1/decisions", "&&", "query string"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++)
        expect_error(cases[i].path, cases[i].query, 400, "bad_data", cases[i].part);
    expect_error("/api/v1/nothing", "", 404, "not_found", "/api/v1/nothing");
}

Test(api, has_long_texts_of_the_client_cut)
{
    static char path[100000] = "/api/";
    memset(path + 5, '"', sizeof(path) - 6);
    ask("GET", path, "", 404);
    cr_assert_lt(exchange.body_size, 16384);
}

Test(api, ends_answers_that_would_be_too_long)
{
    static char long_text[600 * 1024];
    memset(long_text, '\x01', sizeof(long_text) - 1); /* six bytes each in JSON */
    const size_t rules = world.ruleset->rule_count;
    char *name = world.ruleset->rules[1]->name;
    struct as_rule many[10], *table[10], **few = world.ruleset->rules;
    for (size_t i = 0; i < 10; i++) {
        many[i] = *few[1];
        many[i].name = i == 5 ? name : long_text;
        table[i] = &many[i];
    }
    world.ruleset->rules = table;
    world.ruleset->rule_count = 10;
    const json_t *list = get("/api/v1/rules", "");
    cr_assert_eq(json_array_size(list), 4, "%zu", json_array_size(list));
    expect_text(json, "warnings.0", "results truncated due to limit");
    cr_assert_leq(exchange.body_size, API_BODY_MAX + 4096);
    cr_assert_eq(world.api->body.capacity, 0);
    world.ruleset->rules = few;
    world.ruleset->rule_count = rules;
    cr_assert_eq(json_array_size(get("/api/v1/rules", "")), 2);
}

Test(api, answers_while_there_is_no_engine)
{
    has_engine = false;
    not_ready = "the state or the action log cannot be written";
    static const char *const paths[] = {"/api/v1/status", "/api/v1/targets", "/api/v1/incidents",
                                        "/api/v1/rules", "/api/v1/decisions"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++)
        (void)get(paths[i], "");
    ask("GET", "/metrics", "", 200);
    ask("GET", "/", "", 200);
    cr_assert(strstr(exchange.body, "cannot be written"));
    expect_error("/api/v1/targets/checkout", "", 404, "not_found", "checkout");
}
