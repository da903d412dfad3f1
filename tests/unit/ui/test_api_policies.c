/*
 * Scaling policies in the API: the columns of `kubectl get`, what keeps a target from scaling, and
 * what credentials may see. With a real set of policies, and the engine with their rules.
 */
#include <criterion/criterion.h>
#include <jansson.h>

#include <alertscaler/base/str.h>
#include <alertscaler/rules/policy_set.h>
#include <alertscaler/rules/settings.h>
#include <alertscaler/runtime/policy_report.h>
#include <alertscaler/ui/route.h>

#include "../http/exchange.h"
#include "world.h"

static const struct as_settings settings = {
    .defaults.bounds = {.tolerance_up = 0.1, .tolerance_down = 0.1},
    .objects = {.is_enabled = true,
                .max_policies = 10000,
                .rules_per_policy = 10,
                .namespace_label = "namespace",
                .min_every_us = 15 * AS_US_PER_S},
};

static const char *const shop_patterns[] = {"shop/*"}, *const file_patterns[] = {"checkout"};
static const struct as_scope scopes[] = {
    {.credential = "whole"},
    {.credential = "tenant", .targets = shop_patterns, .target_count = 1},
    {.credential = "files", .targets = file_patterns, .target_count = 1},
};

static struct world world;
static struct as_policy_set *set;
static struct as_policy_reports *reports;
static const struct as_ruleset *joined;
static struct as_http_exchange exchange;
static json_t *document;
static const char *who = "";
static bool leads = true;

static void look(void *context, struct as_view *view_out)
{
    *view_out = world_look(context);
    view_out->policies = set;
    view_out->policy_reports = reports;
    view_out->scopes = scopes;
    view_out->scope_count = AS_ARRAY_SIZE(scopes);
    view_out->leader.is_leader = leads;
    if (joined)
        view_out->ruleset = joined;
}

static void forget(void)
{
    json_decref(document);
    document = NULL;
    exchange_forget(&exchange);
}

static void setup(void)
{
    world_open(&world);
    set = as_policy_set_new();
    reports = as_policy_reports_new();
    joined = NULL;
    who = "";
    leads = true;
    world.api = as_api_new(&(struct as_api_config){
        .instance = "host-1", .metrics = world.metrics, .view = look, .context = &world});
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
}

static void teardown(void)
{
    forget();
    world_close(&world);
    as_policy_reports_free(reports);
    as_policy_set_free(set);
}

TestSuite(api_policies, .init = setup, .fini = teardown);

/* ---- the policies ---- */

static void put(const char *namespace, const char *name, const char *annotations, const char *spec)
{
    struct as_error error = AS_ERROR_INIT;
    bool is_changed;
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(
        "{\"apiVersion\":\"alertscaler.io/v1alpha1\",\"kind\":\"ScalingPolicy\",\"metadata\":{"
        "\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"uid-%s\",\"generation\":3,"
        "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"annotations\":{%s}},\"spec\":%s,"
        "\"status\":{\"observedGeneration\":-1}}",
        namespace, name, name, annotations, spec);
    cr_assert_eq(as_policy_set_put(set, text, strlen(text), (as_mono_time){0}, &is_changed, &error),
                 0, "%s", error.text);
    as_policy_reports_on_object(reports, text, strlen(text));
}

static char *make_spec(const char *object, int min, const char *mode)
{
    return as_xasprintf(
        "{%s\"target\":{\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"%s\"},\"min\":%d,"
        "\"max\":5,\"cooldown\":{\"up\":\"1m\",\"down\":\"10m\"}},\"rules\":[{\"name\":\"up\","
        "\"match\":[\"alertname=\\\"Up\\\"\"],\"scaleUp\":{\"by\":2}}]}",
        mode, object, min);
}

static void put_policy(const char *namespace, const char *name, const char *annotations)
{
    AS_CLEANUP(as_free_p) char *spec = make_spec(name, 2, "");
    put(namespace, name, annotations, spec);
}

static void join(void)
{
    joined = as_policy_set_join(set, &(struct as_policy_join){.settings = &settings,
                                                              .files = world.ruleset,
                                                              .now = world.mono,
                                                              .is_complete = true});
    world_step(&world, (struct as_event){.kind = AS_EVENT_RULES,
                                         .ruleset = joined,
                                         .config = {.incident_expiry_us = AS_US_PER_DAY,
                                                    .stale_window_us = 2 * AS_US_PER_MIN,
                                                    .seed = 1,
                                                    .scopes = scopes,
                                                    .scope_count = AS_ARRAY_SIZE(scopes)}});
}

/* An alert of the namespace shop. */
static void alert(const char *alertname)
{
    const struct as_label pairs[] = {{"alertname", alertname}, {"namespace", "shop"}};
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
    AS_CLEANUP(as_labels_free_p) struct as_labels *annotations = NULL;
    cr_assert_eq(as_labels_new(pairs, 2, &labels), 0);
    cr_assert_eq(as_labels_new(NULL, 0, &annotations), 0);
    const as_wall_time now = {WORLD_START_US + world.mono.us};
    struct as_alert one = {.status = AS_ALERT_FIRING,
                           .digest = as_labels_get_digest(labels),
                           .fingerprint = as_labels_get_fingerprint(labels),
                           .starts_at = now,
                           .ends_at = now,
                           .labels = labels,
                           .annotations = annotations};
    struct as_notification notification = {.receiver = (char[]){"scaler"},
                                           .group_key = (char[]){""},
                                           .reason = (char[]){""},
                                           .alerts = &one,
                                           .alert_count = 1,
                                           .remote = (char[]){""},
                                           .credential = (char[]){""},
                                           .traceparent = (char[]){""},
                                           .id = "N0000000000000000000000001"};
    world_step(&world, (struct as_event){.kind = AS_EVENT_NOTIFICATION,
                                         .call_id = ++world.requests,
                                         .notification = &notification});
}

static void pause_by(const char *credential, const char *target)
{
    const struct as_operator_command order = {.kind = AS_OPERATOR_COMMAND_PAUSE,
                                              .target = target,
                                              .who = credential,
                                              .remote = "",
                                              .reason = "a test",
                                              .ways = AS_WAYS_BOTH};
    world_step(&world, (struct as_event){
                           .kind = AS_EVENT_ORDER, .call_id = ++world.requests, .order = &order});
}

/* ---- answers ---- */

static const json_t *ask(const char *path, const char *query, int status)
{
    forget();
    exchange = (struct as_http_exchange){.method = "GET", .path = path, .query = query};
    struct as_routes routes = {.api = world.api, .prefix = ""};
    as_route_answer(as_route_find("GET", exchange.path), &routes, &exchange, who);
    cr_assert_eq(exchange.status, status, "%s?%s: %d %s", path, query, exchange.status,
                 exchange.body);
    document = json_loadb(exchange.body, exchange.body_size, JSON_REJECT_DUPLICATES, NULL);
    cr_assert(document, "not JSON: %s", exchange.body);
    return json_object_get(document, status == 200 ? "data" : "error");
}

static const json_t *get_list(size_t count)
{
    const json_t *list = ask("/api/v1/policies", "", 200);
    cr_assert_eq(json_array_size(list), count, "%s", exchange.body);
    return list;
}

static const json_t *find(const json_t *policy, const char *key, const char *inner)
{
    const json_t *member = json_object_get(policy, key);
    cr_assert(member, "no %s in %s", key, exchange.body);
    return inner ? json_object_get(member, inner) : member;
}

static void expect_text(const json_t *policy, const char *key, const char *inner, const char *text)
{
    const char *actual = json_string_value(find(policy, key, inner));
    cr_expect(as_str_equal(actual, text), "%s is %s, not %s", key, actual, text);
}

static void expect_number(const json_t *policy, const char *key, json_int_t number)
{
    const json_t *actual = find(policy, key, NULL);
    cr_expect(json_is_integer(actual) && json_integer_value(actual) == number, "%s: %s", key,
              exchange.body);
}

static void expect_null(const json_t *policy, const char *key)
{
    cr_expect(json_is_null(find(policy, key, NULL)), "%s: %s", key, exchange.body);
}

static void expect_obstacle(const json_t *policy, const char *condition, const char *reason)
{
    if (!condition) {
        expect_null(policy, "obstacle");
        return;
    }
    expect_text(policy, "obstacle", "condition", condition);
    expect_text(policy, "obstacle", "reason", reason);
    cr_expect_gt(json_string_length(find(policy, "obstacle", "message")), 5);
}

Test(api_policies, without_objects_the_list_is_empty)
{
    set = as_policy_set_free(set);
    reports = as_policy_reports_free(reports);
    (void)get_list(0);
    ask("/api/v1/policies/shop/web", "", 404);
}

Test(api_policies, shows_the_columns_of_kubectl)
{
    put_policy("shop", "web", "");
    join();
    const json_t *policy = json_array_get(get_list(1), 0);
    expect_text(policy, "id", NULL, "shop/web");
    expect_text(policy, "namespace", NULL, "shop");
    expect_text(policy, "name", NULL, "web");
    expect_text(policy, "uid", NULL, "uid-web");
    expect_number(policy, "generation", 3);
    expect_text(policy, "created", NULL, "2026-01-01T00:00:00.000000Z");
    expect_text(policy, "target", NULL, "Deployment/web");
    expect_text(policy, "target_id", NULL, "kubernetes/default/apps/v1/Deployment/shop/web");
    expect_number(policy, "min", 2);
    expect_number(policy, "max", 5);
    expect_number(policy, "size", 4);
    expect_number(policy, "desired", 4);
    static const char *const unknown[] = {"value",    "goal",    "locked", "reason",
                                          "decision", "decided", "rule"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(unknown); i++)
        expect_null(policy, unknown[i]);
    cr_expect(json_is_true(find(policy, "ready", NULL)));
    expect_text(policy, "ready_reason", NULL, "Ready");
    expect_text(policy, "message", NULL, "the policy is in force");
    cr_expect(json_is_false(find(policy, "paused", NULL)));
    expect_obstacle(policy, NULL, NULL);
    cr_expect_null(json_object_get(policy, "status"));

    alert("Up");
    policy = json_array_get(get_list(1), 0);
    expect_number(policy, "size", 5);
    expect_number(policy, "desired", 5);
    expect_text(policy, "rule", NULL, "up");
    cr_expect_gt(json_string_length(find(policy, "reason", NULL)), 2);
    cr_expect_eq(json_string_length(find(policy, "decision", NULL)), 26);
    cr_expect(as_str_starts_with(json_string_value(find(policy, "decided", NULL)), "2026-11-25T"));
    cr_expect(as_str_starts_with(json_string_value(find(policy, "locked", NULL)), "up until "));
}

Test(api_policies, says_what_keeps_a_target_from_scaling)
{
    AS_CLEANUP(as_free_p) char *broken = make_spec("broken", 9, "");
    AS_CLEANUP(as_free_p) char *shadow = make_spec("shadow", 2, "\"mode\":\"Shadow\",");
    put("shop", "broken", "", broken);
    put_policy("shop", "paused", "\"alertscaler.io/paused-up\":\"sale\"");
    put("shop", "shadow", "", shadow);
    put_policy("shop", "web", "");
    join();
    const json_t *list = get_list(4);
    const json_t *policy = json_array_get(list, 0);
    cr_expect(json_is_false(find(policy, "ready", NULL)));
    expect_text(policy, "ready_reason", NULL, "Invalid");
    cr_expect(strstr(json_string_value(find(policy, "message", NULL)), "min"));
    expect_obstacle(policy, "Ready", "Invalid");
    expect_null(policy, "target");
    expect_null(policy, "min");
    policy = json_array_get(list, 1);
    expect_obstacle(policy, "Blocked", "Paused");
    cr_expect(json_is_true(find(policy, "paused", NULL)));
    policy = json_array_get(list, 2);
    cr_expect(json_is_true(find(policy, "ready", NULL)));
    expect_obstacle(policy, "Ready", "Shadow");
    expect_obstacle(json_array_get(list, 3), NULL, NULL);

    world.replicas = 5;
    alert("Up");
    policy = ask("/api/v1/policies/shop/web", "", 200);
    expect_obstacle(policy, "ScalingLimited", "AtMax");
}

Test(api_policies, a_generation_that_is_not_checked_yet)
{
    put_policy("shop", "web", "");
    const json_t *policy = json_array_get(get_list(1), 0);
    static const char *const unknown[] = {"ready", "ready_reason", "message", "obstacle"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(unknown); i++)
        expect_null(policy, unknown[i]);
    expect_null(ask("/api/v1/policies/shop/web", "", 200), "status");
}

Test(api_policies, one_policy_has_the_status_of_its_object)
{
    put_policy("shop", "web", "");
    put_policy("shop", "other", "");
    join();
    alert("Up");
    static const char *const paths[] = {"/api/v1/policies/shop/web", "/api/v1/policies/shop%2Fweb"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++) {
        const json_t *policy = ask(paths[i], "", 200);
        expect_text(policy, "id", NULL, "shop/web");
        const json_t *status = find(policy, "status", NULL);
        expect_text(status, "target", NULL, "Deployment/web");
        expect_text(status, "lastDecision", "reason",
                    json_string_value(find(policy, "reason", NULL)));
        expect_number(status, "observedGeneration", 3);
        cr_expect_eq(json_array_size(find(status, "conditions", NULL)), 5);
        cr_expect_eq(json_array_size(find(status, "rules", NULL)), 1);
    }
    cr_expect(strstr(json_string_value(ask("/api/v1/policies/shop/none", "", 404)), "shop/none"));
    ask("/api/v1/policies/shop", "", 400);
    ask("/api/v1/policies/", "", 400);
    ask("/api/v1/policies/%zz", "", 400);
    ask("/api/v1/policies/shop/web/up", "", 404);
}

Test(api_policies, a_credential_sees_the_policies_of_its_targets)
{
    put_policy("other", "web", "");
    put_policy("shop", "cart", "");
    put_policy("shop", "web", "");
    join();
    who = "whole";
    (void)get_list(3);
    who = "tenant";
    expect_text(json_array_get(get_list(2), 0), "id", NULL, "shop/cart");
    ask("/api/v1/policies/other/web", "", 404);
    ask("/api/v1/policies/shop/web", "", 200);
    who = "files"; /* a pattern without a slash reaches no policy */
    (void)get_list(0);
    who = "removed";
    (void)get_list(0);
    ask("/api/v1/policies/shop/web", "", 404);
}

Test(api_policies, a_narrowed_credential_sees_no_other_name)
{
    put_policy("shop", "web", "");
    join();
    alert("Up");
    pause_by("whole", "shop/web");
    static const char *const paths[] = {"/api/v1/policies", "/api/v1/policies/shop/web"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++) {
        who = "whole";
        ask(paths[i], "", 200);
        cr_expect(strstr(exchange.body, "the target is paused by whole: a test"), "%s",
                  exchange.body);
        who = "tenant";
        ask(paths[i], "", 200);
        cr_expect_not(strstr(exchange.body, "whole"), "%s", exchange.body);
        cr_expect(strstr(exchange.body, "the target is paused by another credential: a test"));
    }
}

Test(api_policies, the_list_has_a_limit)
{
    put_policy("shop", "cart", "");
    put_policy("shop", "web", "");
    join();
    cr_expect_eq(json_array_size(ask("/api/v1/policies", "limit=1", 200)), 1);
    cr_expect_eq(json_array_size(json_object_get(document, "warnings")), 1);
    cr_expect_eq(json_array_size(ask("/api/v1/policies", "limit=2", 200)), 2);
    cr_expect_null(json_object_get(document, "warnings"));
    ask("/api/v1/policies", "limit=0", 400);
}

Test(api_policies, a_replica_that_does_not_lead_names_the_leader)
{
    put_policy("shop", "web", "");
    leads = false;
    ask("/api/v1/policies", "", 503);
    ask("/api/v1/policies/shop/web", "", 503);
}

Test(api_policies, a_new_object_with_the_name_is_another_policy)
{
    put_policy("shop", "web", "");
    join();
    const char *text = "{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web\",\"uid\":\"new\"}}";
    as_policy_reports_on_object(reports, text, strlen(text));
    (void)get_list(0); /* until the set has it too */
    ask("/api/v1/policies/shop/web", "", 404);
}
