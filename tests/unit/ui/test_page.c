/*
 * The pages for people, on a real engine: what they say, what they keep from whom, and that nothing
 * from outside changes them, however long or many it is.
 */
#include <stdio.h>
#include <time.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include <alertscaler/base/str.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/ui/route.h>

#include "../http/exchange.h"
#include "ui/api_private.h"
#include "ui/page.h"
#include "world.h"

#define CHECKOUT "kubernetes/default/apps/v1/Deployment/shop/checkout"

static struct world world;
static struct as_http_exchange exchange; /* the last one */
static struct as_view changed;           /* what differs from the world's */
static bool has_engine, is_follower;
static const char *who = "";

static void look(void *context, struct as_view *view_out)
{
    *view_out = world_look(context);
    view_out->changes = world.steps;
    view_out->not_ready = changed.not_ready;
    view_out->dry_run = changed.dry_run;
    if (!has_engine)
        view_out->engine = NULL;
    if (is_follower)
        view_out->leader =
            (struct as_leader_view){.identity = "two", .holder = "one<b>", .problem = NULL};
}

static void setup(void)
{
    world_open(&world);
    changed = (struct as_view){0};
    has_engine = true;
    is_follower = false;
    world.api = as_api_new(&(struct as_api_config){
        .instance = "host-1", .metrics = world.metrics, .view = look, .context = &world});
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
}

static void teardown(void)
{
    exchange_forget(&exchange);
    world_close(&world);
}

TestSuite(page, .init = setup, .fini = teardown);

static const char *ask(const char *path, const char *query, int status)
{
    struct as_routes routes = {.api = world.api, .prefix = ""};
    exchange_forget(&exchange);
    exchange = (struct as_http_exchange){.method = "GET", .path = path, .query = query};
    as_route_answer(as_route_find("GET", path), &routes, &exchange, who);
    cr_assert_eq(exchange.replies, 1);
    cr_assert_eq(exchange.status, status, "%s?%s: %d", path, query, exchange.status);
    cr_assert(as_str_equal(exchange.content_type, "text/html; charset=utf-8"));
    const char *script = strstr(exchange.body, "<script");
    cr_assert(!script || as_str_starts_with(script, "<script src=\"/page.js\" defer></script>"));
    cr_assert(!script || !strstr(script + 1, "<script"));
    cr_assert(strstr(exchange.body, "</html>"));
    return exchange.body;
}

static const char *ask_anything(const char *path, const char *query)
{
    struct as_routes routes = {.api = world.api, .prefix = ""};
    exchange_forget(&exchange);
    exchange = (struct as_http_exchange){.method = "GET", .path = path, .query = query};
    as_route_answer(as_route_find("GET", path), &routes, &exchange, who);
    cr_assert_eq(exchange.replies, 1);
    return exchange.body;
}

static void expect(const char *body, const char *part)
{
    cr_expect(strstr(body, part), "it lacks %s", part);
}

static void expect_none(const char *body, const char *part)
{
    cr_expect_null(strstr(body, part), "it has %s", part);
}

static void notify(const char *alertname, const char *app)
{
    world_notify(&world, AS_ALERT_FIRING, alertname, app);
}

static const char *get_last_decision(void)
{
    return TAILQ_FIRST(&world.api->decisions)->id;
}

static const char *ask_decision(const char *id, int status)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "/decisions/%s", id);
    return ask(path, "", status);
}

Test(page, the_first_page_says_what_matters)
{
    notify("Slow", NULL);
    const char *body = ask("/", "", 200);
    expect(body, ">ready<");
    expect(body, "<dt>Targets</dt><dd>1</dd>");
    expect(body, "this replica");
    expect(body, "no credential is asked for");
    expect(body, ">checkout</a>");
    expect(body, CHECKOUT);
    expect(body, "2 to 20");
    expect(body, "1 firing");
    expect(body, "up locked for <time class=\"left\"");
    expect(body, ">59 s</time>");
    expect(body, "aria-label=\"from 4 to 6 in the last hour\"");
    expect(body, "<b>4 \u2192 6</b>");
    expect(body, "<code>scaled</code>: Nothing stood against it.");
    expect(body, "&lt;b&gt;too slow&lt;/b&gt;");
    changed.dry_run = true;
    changed.not_ready = "the action log <cannot> be written";
    body = ask("/", "", 200);
    expect(body, "Not ready: the action log &lt;cannot&gt; be written");
    expect(body, "Dry run: everything is decided and recorded");
    who = "whole";
    expect_none(ask("/", "", 200), "no credential");
    who = "";
}

Test(page, decisions_and_actions_of_a_target_have_filters)
{
    notify("Slow", NULL);
    const char *body = ask("/targets/checkout", "range=6h", 200);
    expect(body, "href=\"?range=6h&amp;reason=scaled&amp;\">scaled</a>");
    expect(body, "href=\"?range=6h&amp;rule=slow&amp;\">slow</a>");
    expect(body, "aria-label=\"Decisions\"");
    expect(body, "&amp;range=6h&amp;\">All events of the target</a>");
    body = ask("/targets/checkout", "reason=scaled&rule=slow", 200);
    expect(body, "aria-label=\"Decisions\"");
    expect(body, "href=\"?rule=slow&amp;reason=scaled&amp;\" aria-current=\"true\">scaled</a>");
    expect(body, "href=\"?rule=slow&amp;\">all</a>");
    body = ask("/targets/checkout", "reason=at_max", 200);
    expect(body, "No decision fits.");
    expect(body, "None in the last day, as far as known.");
    expect(body, ">at_max</a>");
    expect(ask("/targets/checkout", "rule=each", 200), "No decision fits.");
    expect(ask("/targets/checkout", "reason=<b>", 400), "with the name &lt;b&gt;.");
    body = ask("/targets/checkout", "from=2026-11-20T10:00:00Z&to=2026-11-20T11:00:00Z", 200);
    expect(body, "No decision fits.");
}

Test(page, links_of_an_incident_stand_in_its_row)
{
    notify("Slow", NULL);
    const char *row = strstr(ask("/incidents", "", 200), "<tbody");
    cr_assert(row);
    const char *target = strstr(row, "/targets/");
    cr_assert(target, "%s", row);
    expect(target, "</a> by <a href=\"/rules/");
}

static void order_pause(const char *target, int64_t for_us)
{
    const struct as_operator_command order = {.kind = AS_OPERATOR_COMMAND_PAUSE,
                                              .target = target,
                                              .who = "whole",
                                              .remote = "",
                                              .reason = "load <test>",
                                              .for_us = for_us};
    world_step(&world, (struct as_event){
                           .kind = AS_EVENT_ORDER, .call_id = ++world.requests, .order = &order});
}

Test(page, pauses_are_said_with_who_and_why)
{
    order_pause("checkout", 0);
    expect(ask("/", "state=paused", 200), ">checkout</a>");
    expect(ask("/targets/checkout", "", 200), "This target is paused by whole: load &lt;test&gt;");
    expect_none(ask("/", "", 200), "Everything is paused");
    order_pause(NULL, AS_US_PER_H);
    expect(ask("/rules", "", 200),
           "Everything is paused by whole for another <time class=\"left\"");
    expect(exchange.body, ">59 min</time>: load &lt;test&gt;");
}

static void pass(int64_t us)
{
    world.mono.us += us;
    world_step(&world, (struct as_event){.kind = AS_EVENT_DEADLINE});
}

static void resume(void)
{
    const struct as_operator_command order = {.kind = AS_OPERATOR_COMMAND_RESUME,
                                              .target = "checkout",
                                              .who = "whole",
                                              .reason = "mended"};
    world_step(&world, (struct as_event){.kind = AS_EVENT_ORDER, .call_id = 99, .order = &order});
}

Test(page, a_rule_that_did_not_help_is_listed_until_it_is_resumed)
{
    world.ruleset->rules[0]->ineffective_after = 1;
    notify("Slow", NULL);
    pass(AS_US_PER_MIN);
    expect_none(ask("/", "", 200), "<h2>Held</h2>");
    pass(AS_US_PER_H);
    const char *body = ask("/", "", 200);
    expect(body, "<h2>Held</h2>");
    expect(body, ">slow</a> did not help");
    expect(body, ">2026-11-26 "); /* a day later */
    body = ask("/targets/checkout", "", 200);
    expect(body, ">slow</a> did not help: it is held here until ");
    who = "narrow"; /* sees another rule alone */
    expect_none(ask("/", "", 200), "</a> did not help");
    who = "";
    resume();
    expect_none(ask("/", "", 200), "<h2>Held</h2>");
    expect_none(ask("/targets/checkout", "", 200), "</a> did not help");
}

Test(page, what_a_rule_or_a_schedule_holds_is_said_on_the_page_of_the_target)
{
    struct as_target_config *target = world.ruleset->targets[0];
    world.ruleset->rules[0]->action =
        (struct as_action){.kind = AS_ACTION_HOLD, .hold = AS_WAYS_DOWN};
    expect_none(ask("/targets/checkout", "", 200), "Nothing goes");
    notify("Slow", NULL);
    expect(ask("/targets/checkout", "", 200), "Nothing goes down: the rule <code>slow</code> holds "
                                              "it while its alert fires.");
    who = "narrow"; /* sees another rule alone */
    expect_none(ask("/targets/checkout", "", 200), "Nothing goes");
    who = "";
    target->schedules = as_xcalloc(1, sizeof(*target->schedules));
    target->schedules[0] = (struct as_schedule){.name = as_xstrdup("<sale>"),
                                                .begin = {0},
                                                .end = {WORLD_START_US + AS_US_PER_H},
                                                .has_min = true,
                                                .min = 4,
                                                .hold = AS_WAYS_BOTH};
    target->schedule_count = 1;
    const char *body = ask("/targets/checkout", "", 200);
    expect(body, "Nothing goes up or down: the schedule <code>&lt;sale&gt;</code> holds it until ");
    expect(body, "<code>&lt;sale&gt;</code> in force, ends ");
}

Test(page, a_floor_is_said_with_who_why_and_until_when)
{
    const struct as_operator_command order = {.kind = AS_OPERATOR_COMMAND_FLOOR,
                                              .target = "checkout",
                                              .who = "whole",
                                              .remote = "",
                                              .reason = "the <sale>",
                                              .replicas = 9,
                                              .for_us = AS_US_PER_H};
    expect_none(ask("/targets/checkout", "", 200), "<dt>Floor</dt>");
    world_step(&world, (struct as_event){.kind = AS_EVENT_ORDER, .call_id = 98, .order = &order});
    const char *body = ask("/targets/checkout", "", 200);
    expect(body, "<dt>Floor</dt><dd>9, by whole, for another ");
    expect(body, ": the &lt;sale&gt;</dd>");
    pass(2 * AS_US_PER_H);
    expect_none(ask("/targets/checkout", "", 200), "<dt>Floor</dt>");
}

Test(page, a_contended_target_is_listed_with_who_and_until_when)
{
    static const char *const apps[] = {"a", "b", "c"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(apps); i++) {
        expect_none(ask("/", "", 200), "<h2>Held</h2>");
        notify("Slow", apps[i]);
        world.replicas = 4; /* somebody else */
        pass(61 * AS_US_PER_S);
    }
    const char *body = ask("/", "", 200);
    expect(body, "<h2>Held</h2>");
    expect(body, "Somebody else has set its size back to 4");
    expect(body, "contended");
    expect(ask("/targets/checkout", "", 200),
           "Somebody else has set its size back to 4: it is left alone until ");
    resume();
    expect_none(ask("/", "", 200), "<h2>Held</h2>");
}

/* No script, no style but ours by its digest, nothing from elsewhere, no frame. */
Test(page, the_browser_may_load_nothing)
{
    (void)ask("/", "", 200);
    expect(exchange.headers, "Cache-Control: no-store\r\n");
    const char *policy = strstr(exchange.headers, "Content-Security-Policy: ");
    cr_assert(policy);
    expect(policy, "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'sha256-");
    expect(policy, "base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n");
    expect_none(policy, "unsafe");
    expect_none(exchange.body, " style=\"");
    expect_none(exchange.body, " onclick");
}

Test(page, texts_from_outside_are_escaped)
{
    free(world.ruleset->targets[0]->name);
    world.ruleset->targets[0]->name = as_xstrdup("<script>alert('1\"&')</script>");
    notify("Slow", NULL);
    const char *const paths[] = {"/", "/incidents", "/rules", "/targets/" CHECKOUT,
                                 "/groups/" CHECKOUT};
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++)
        expect_none(ask(paths[i], "", 200), "<b>too slow");
    expect(ask("/", "", 200), "&lt;script&gt;alert(&#39;1&quot;&amp;&#39;)&lt;/script&gt;");
    expect(ask("/", "q=%22%3E%3Cscript%3E", 200), "value=\"&quot;&gt;&lt;script&gt;\"");
    expect(ask("/rules", "q=%3Cscript%3E", 200), "value=\"&lt;script&gt;\"");
    expect(ask("/", "%3Cscript%3E=1&q=zzz", 200), "No target fits.");
    (void)ask_decision(get_last_decision(), 200);
}

Test(page, a_target_shows_its_day)
{
    notify("Slow", NULL);
    notify("Slow", NULL);
    const char *body = ask("/targets/checkout", "", 200);
    expect(body, "<h1>checkout</h1>");
    expect(body, "<div class=\"wide\"><svg");
    expect(body, "<div class=\"narrow\"><svg");
    expect(body, ">Slow</text>");
    expect(body, "locked against growing");
    expect(body, "4 to 6: applied, rule slow");
    expect(body, "<code>applied</code>: The size was set.");
    expect(body, "alertname=&quot;Slow&quot;");
    expect(body, "scale_up by 2");
    expect(body, "1 action<");
    expect_none(body, "each");
    expect_none(body, "/groups/");
    expect(ask("/targets/kubernetes%2Fdefault%2Fapps%2Fv1%2FDeployment%2Fshop%2Fcheckout", "", 200),
           "<h1>checkout</h1>");
    expect(ask("/rules", "", 200), "4 \u2192 6, <code>applied</code> on ");
}

/* The chart covers the time that the URL names, and no more than is known. */
Test(page, a_time_range_is_in_the_url)
{
    notify("Slow", NULL);
    world.mono.us += 10 * AS_US_PER_MIN;
    const char *body = ask("/targets/checkout", "x=a%26b&range=6h", 200);
    expect(body, "<h2>The last 6 hours</h2>");
    expect(body, "<title>Size over the last 6 hours</title>");
    expect(body, "<a href=\"?x=a%26b&amp;range=15m\">15m</a>");
    expect(body, "<a href=\"?x=a%26b&amp;range=6h\" aria-current=\"true\">6h</a>");
    expect(body, "The size is known since <time");
    expect(body, "<path class=\"after\" d=\"M64.0 "); /* it begins at the first known moment */
    expect_none(body, "<rect class=\"unknown\" x=\"64.0\" y=\"24.0\"");
    body = ask("/targets/checkout", "", 200);
    expect(body, "<h2>The last day</h2>");
    expect(body, "range=1d\" aria-current=\"true\">1d</a>");
    world.mono.us += AS_US_PER_H;
    body = ask("/targets/checkout", "range=15m", 200);
    expect_none(body, "The size is known since");
    expect(body, "None in the last 15 minutes, as far as known.");
    expect(ask("/targets/checkout", "", 200), "<code>applied</code>");
    body = ask("/", "range=1d&q=check", 200);
    expect(body, "data-title=\"Last day\"");
    expect(body, "aria-label=\"from 4 to 6 in the last day\"");
    expect(body, "<input type=\"hidden\" name=\"range\" value=\"1d\">");
    expect(body, "href=\"/?range=1d&amp;q=check&amp;state=&amp;sort=size&amp;order=asc\"");
    expect(body, "<a href=\"/?range=1d&amp;q=check&amp;state=paused\"");
    expect(body, "<a href=\"?q=check&amp;range=15m\"");
}

/* Of the rule that has won last, at its decisions, for who may see the rule. */
Test(page, values_of_decisions_are_in_the_chart)
{
    struct kept_decision *decision;
    notify("Slow", NULL);
    world.mono.us += AS_US_PER_MIN;
    expect_none(ask("/targets/checkout", "", 200), "axis on the right");
    decision = TAILQ_FIRST(&world.api->decisions);
    cr_assert(as_str_equal(decision->rule, "slow"));
    decision->has_value = true;
    decision->value = 47.125;
    decision->goal = 40;
    const char *body = ask("/targets/checkout", "", 200);
    expect(body, ": 47.12, the goal 40</title>");
    expect(body, "The value is the one of <a href=\"/rules/slow\">slow</a> at its decisions");
    expect_none(ask("/targets/checkout", "from=1795500000&to=1795500100", 200), "the goal 40");
    who = "narrow"; /* sees another rule alone */
    expect_none(ask_anything("/targets/checkout", ""), "the goal 40");
    who = "";
}

Test(page, a_wrong_time_range_is_named)
{
    static const char *const rows[][2] = {
        {"range=2h", "range: expected 15m, 1h, 6h, 1d or 7d, as in range=6h."},
        {"range=%3Cscript%3E", "range: expected 15m"},
        {"range=1h&from=1795600000",
         "range: expected either range, or from and to, as in range=6h"},
        {"from=yesterday", "from: expected a time as 2026-11-20T10:00:00Z, or seconds since 1970."},
        {"to=-1", "to: expected a time as 2026-11-20T10:00:00Z"},
        {"to=1e99", "to: expected a time as 2026-11-20T10:00:00Z"},
        {"from=9999999999", "from: expected a time before now, as in from=1795600000"},
        {"from=1795590000&to=1795590000", "from: expected a time before the time of to"},
        {"from=1", "from: expected a time at most 366 days before the end, as in from=2026-"},
    };
    notify("Slow", NULL);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        expect(ask("/targets/checkout", rows[i][0], 400), rows[i][1]);
        expect(ask("/", rows[i][0], 400), rows[i][1]);
        expect_none(exchange.body, "<script>");
    }
    (void)ask("/targets/none", "range=2h", 404);
    expect(ask("/", "range=&from=", 200), "Last hour");
}

Test(page, a_failure_says_why)
{
    world.scale_result = AS_REASON_FORBIDDEN;
    notify("Slow", NULL);
    expect(ask("/targets/checkout", "", 200), "The credentials do not allow it.");
    expect(ask("/", "", 200), "<span class=\"pill bad\">forbidden</span>");
    expect(ask("/", "state=failing", 200), ">checkout</a>");
    expect(ask("/", "state=paused", 200), "No target fits.");
    expect(ask("/rules", "", 200), "<b>1 failed</b>");
    expect(ask("/targets/checkout", "", 200), " 1 try since ");
    /* an action that failed is not headed "scaled" */
    cr_expect_null(strstr(ask("/", "", 200), "scaled"));
    cr_expect_null(strstr(ask("/targets/checkout", "", 200), "scaled"));
}

Test(page, what_happens_after_an_incident_is_said)
{
    notify("Slow", NULL);
    cr_expect_null(strstr(ask("/targets/checkout", "", 200), "on_resolved"));
    world_notify(&world, AS_ALERT_RESOLVED, "Slow", NULL);
    expect(ask("/targets/checkout", "", 200),
           ": the target stays at 6: the rule has no on_resolved.</p>");
}

Test(page, a_query_that_fails_is_shown_with_its_rule_and_target)
{
    notify("Slow", NULL);
    notify("Each", "cart");
    expect(ask("/", "state=failing", 200), "No target fits.");
    expect_none(exchange.body, "query error");
    world_refuse_query(&world, 0, "sun(x)", "unknown <sun>");
    const char *body = ask("/", "state=failing", 200);
    expect(body, ">checkout</a>");
    expect_none(body, "/targets/kubernetes/default/apps/v1/Deployment/shop/cart\"");
    expect(body, "<span class=\"pill bad\">query error</span>");
    expect(body, "Rules with queries that fail");
    expect(body, "unknown &lt;sun&gt;");
    body = ask("/targets/checkout", "", 200);
    expect(body, "<p class=\"note bad\">The server refuses a query of the rule ");
    expect(body, ": unknown &lt;sun&gt;</p>");
    expect_none(ask("/targets/kubernetes/default/apps/v1/Deployment/shop/cart", "", 200),
                "query error");
    expect(ask("/rules", "q=slow", 200), "<span class=\"pill bad\">query error</span>");
    expect_none(ask("/rules", "q=each", 200), "query error");
    who = "narrow"; /* sees the other rule only */
    expect_none(ask("/", "", 200), "sun");
    who = "";
}

/* What the loader fills. */
static void set_text(struct as_rule *rule, const char *text)
{
    rule->file = as_xstrdup("rules/<a>.yaml");
    rule->line = 12;
    rule->text = text ? as_xstrdup(text) : NULL;
}

static void rename_rule(struct as_rule *rule, const char *name)
{
    free(rule->name);
    rule->name = as_xstrdup(name);
}

Test(page, a_rule_says_where_it_is_what_it_does_and_what_it_has_done)
{
    set_text(world.ruleset->rules[0], "name: slow\nmatch:\n  - '</pre><script>'\n");
    expect(ask("/rules/each", "", 200), "No target yet");
    notify("Slow", NULL);
    const char *body = ask("/rules/slow", "", 200);
    expect(body, "<dt>File</dt><dd>rules/&lt;a&gt;.yaml, line 12</dd>");
    expect(body, "<pre>name: slow\nmatch:\n  - &#39;&lt;/pre&gt;&lt;script&gt;&#39;\n</pre>");
    expect(body, "<code>alertname=&quot;Slow&quot;</code>");
    expect(body, ">checkout</a>");
    expect(body, "4 \u2192 6, <code>applied</code> on <a");
    expect(body, ">Slow</a></b>");
    expect(body, "/decisions/");
    expect_none(body, "Dry run");
    expect_none(body, "Ended incidents");
    world_notify(&world, AS_ALERT_RESOLVED, "Slow", NULL);
    body = ask("/rules/slow", "", 200);
    expect(body, "Ended incidents");
    expect(body, "No alert that a rule matches is firing.");
    notify("Each", "cart");
    expect_none(ask("/rules/slow", "", 200), "cart");
    body = ask("/rules/each", "", 200);
    expect(body, "Deployment%2Fshop%2Fcart\">any-shop</a>");
    expect(body, "<dt>File</dt><dd>not known</dd>");
    expect(body, "The rule is too long to be kept in memory");
    expect_none(body, "checkout");
}

/* Of a value, or without it. */
Test(page, a_rule_shows_its_state_and_its_failing_query)
{
    struct as_rule *rule = world.ruleset->rules[0];
    notify("Slow", NULL);
    world_refuse_query(&world, 0, "sun(x)", "unknown <sun>");
    rule->enabled = false;
    rule->dry_run = true;
    rule->approval = (struct as_approval_config){.is_set = true, .above = 4, .for_us = 900000000};
    const char *body = ask("/rules/slow", "", 200);
    expect(body, "The server refuses a query of this rule: unknown &lt;sun&gt;</p>");
    expect(body, "The rule is off");
    expect(body, "Dry run: decisions of this rule");
    expect(body, "for a change by more than 4, within 15m");
    rule->enabled = true;
}

/* The names of policies' rules have slashes. */
Test(page, a_rule_of_a_policy_is_found_by_its_name)
{
    struct as_target_config *target = world.ruleset->targets[0];
    const struct as_policy_terms policy = {.namespace = "test-1", .name = "checkout", .uid = "u"};
    rename_rule(world.ruleset->rules[0], "test-1/checkout/slow");
    target->policy = &policy;
    expect(ask("/rules", "", 200), "<a href=\"/rules/test-1%2Fcheckout%2Fslow\">");
    expect(ask("/rules/test-1%2Fcheckout%2Fslow", "", 200),
           "<dt>ScalingPolicy</dt><dd>test-1/checkout</dd>");
    expect(ask("/rules/test-1/checkout/slow", "", 200), "in the words of a rule file");
    rename_rule(world.ruleset->rules[0], "a%2Fb?\" 'c");
    expect(ask("/rules", "", 200), "<a href=\"/rules/a%252Fb%3F%22%20%27c\">");
    expect(ask("/rules/a%252Fb%3F%22%20%27c", "", 200), "<h1>a%2Fb?&quot; &#39;c</h1>");
}

Test(page, a_rule_that_is_not_there_is_an_error_page)
{
    static const char *const paths[] = {"/rules/", "/rules/none", "/rules/%zz", "/rules/slow%00",
                                        "/rules/SLOW"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++)
        expect(ask(paths[i], "", 404), "No rule in force has this name");
    who = "narrow"; /* sees the other rule only */
    const char *body = ask("/rules/slow", "", 404);
    expect(body, "No rule in force has this name");
    expect_none(body, "slow");
    who = "shop";
    expect(ask("/rules/slow", "", 404), "No rule in force has this name");
    expect(ask("/rules/each", "", 200), "<h1>each</h1>");
    who = "";
}

/* As `explain` says it, with what followed, and the document as `decide` takes it. */
Test(page, a_decision_is_explained)
{
    notify("Slow", NULL);
    const char *body = ask_decision(get_last_decision(), 200);
    expect(body, "The size goes from 4 to 6: scaled.");
    expect(body, "Slow, firing since ");
    expect(body, "slow wants 6: scale_up by 2");
    expect(body, "<code>combine</code>");
    expect(body, "the bound ahead: min 2, max 20");
    expect(body, "</time>: from 4 to 6: applied");
    expect(body, "firing since <time class=\"at\" datetime=\"");
    expect(body, "Goes 4 \u2192 6: the rule <a href=\"/rules/slow\">slow</a>.");
    expect(body, "<code>combine</code> <span class=\"pill good\">decides</span>");
    const char *input = strstr(body, "aria-label=\"Input\">");
    cr_assert(input);
    expect(input, "{&quot;flags&quot;:");
    expect(input, "&quot;up&quot;:0.1}");
    world.mono.us += AS_US_PER_S; /* the target is locked now */
    notify("Slow", "other");
    body = ask_decision(get_last_decision(), 200);
    expect(body, "Stays at 6: The target is locked");
    expect(body, "<code>cooldown</code> <span class=\"pill good\">decides</span>");
}

/* The newest decision on checkout; the one before `later`, if it is given. */
static struct kept_decision *get_decision(struct kept_decision *later)
{
    struct kept_decision *decision =
        later ? TAILQ_NEXT(later, next) : TAILQ_FIRST(&world.api->decisions);
    while (decision && !as_target_is_same(decision->target, CHECKOUT))
        decision = TAILQ_NEXT(decision, next);
    cr_assert(decision);
    return decision;
}

Test(page, a_decision_leads_to_its_rule_its_incidents_and_its_neighbours)
{
    char link[128];
    notify("Slow", NULL);
    const char *body = ask_decision(get_last_decision(), 200);
    expect(body, "rule <a href=\"/rules/slow\">slow</a>");
    expect(body, "<a href=\"/incidents/");
    expect(body, "\">Slow</a>");
    expect_none(body, "Previous decision");
    expect_none(body, "Next decision");
    notify("Each", "cart"); /* of another target */
    pass(AS_US_PER_H);
    body = ask_decision(get_decision(NULL)->id, 200);
    const struct kept_decision *previous = get_decision(get_decision(NULL));
    (void)snprintf(link, sizeof(link), "<a href=\"/decisions/%s\">Previous decision</a>",
                   previous->id);
    expect(body, link);
    expect_none(body, "Next decision");
    body = ask_decision(previous->id, 200);
    expect(body, ">Next decision</a>");
    world_notify(&world, AS_ALERT_RESOLVED, "Slow", NULL);
    pass(2 * AS_US_PER_DAY); /* the incident is forgotten */
    expect(ask_decision(previous->id, 200), "#incidents\">incidents of the target</a>");
}

static const char *compute(const char *id, const char *query)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "/decisions/%s", id);
    return ask(path, query, 200);
}

/* The record's output says other sizes than its input gives. */
static void change_output(struct kept_decision *decision)
{
    char *desired = strstr(strstr(decision->record, "\"output\":"), "\"desired\":6");
    cr_assert(desired);
    desired[strlen("\"desired\":")] = '9';
}

Test(page, a_decision_is_computed_again)
{
    notify("Slow", NULL);
    struct kept_decision *decision = get_decision(NULL);
    expect(ask_decision(decision->id, 200), "?compute=1\">Compute again</a>");
    expect_none(exchange.body, "Computed again");
    expect(compute(decision->id, "compute=1"), "The outcome is equal to the recorded outcome.");
    change_output(decision);
    const char *body = compute(decision->id, "compute=1");
    expect(body, "The outcome differs from the recorded outcome.");
    expect(body, "<code>desired</code></div></td><td role=\"cell\" data-title=\"Recorded\"><div>"
                 "<code>9</code></div></td><td role=\"cell\" data-title=\"Computed\"><div>"
                 "<code>6</code>");
    expect_none(body, "<code>reason</code>");
    expect_none(body, "Refresh every");
    char *version = strstr(decision->record, "\"v\":");
    cr_assert(version);
    version[strlen("\"v\":")] = '9';
    expect(compute(decision->id, "compute=1"), "This version cannot read the recorded input: ");
}

/* Its script asks again and again: it is not computed for it, and no header says what it sent. */
Test(page, the_script_does_not_repeat_a_computation)
{
    char path[128];
    notify("Slow", NULL);
    (void)snprintf(path, sizeof(path), "/decisions/%s", get_last_decision());
    ask_anything(path, "compute=1&since=a%0d%0aX-b:");
    cr_expect_eq(exchange.status, 304);
    cr_expect_eq(exchange.body_size, 0);
    expect_none(exchange.headers, "X-b");
    ask_anything(path, "since=a");
    cr_expect_eq(exchange.status, 200);
}

Test(page, what_is_not_there_is_said)
{
    notify("Slow", NULL);
    expect(ask("/targets/none", "", 404), "There is no target of this name or id.");
    expect(ask("/targets/", "", 404), "There is no target");
    expect(ask("/targets/%zz", "", 404), "There is no target");
    expect(ask("/targets/a%00b", "", 404), "There is no target");
    expect(ask("/groups/none", "", 404), "There is no pool or group");
    expect(ask("/decisions/01ARZ3NDEKTSV4RRFFQ69G5FAV", "", 404), "not among the last 1000");
    expect(ask("/groups/checkout", "", 200), "no rule with fit or take had an open incident");
}

Test(page, a_follower_says_who_leads)
{
    static const char *const paths[] = {"/targets/checkout", "/decisions/x", "/groups/x",
                                        "/incidents", "/incidents/x"};
    has_engine = false;
    is_follower = true;
    changed.not_ready = "one leads";
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++) {
        expect(ask(paths[i], "", 503), "ask one&lt;b&gt;.");
        expect(exchange.headers, "Retry-After: 5\r\n");
    }
    expect(ask("/", "", 200), "one&lt;b&gt;");
    expect(ask("/rules", "", 200), "alertname=&quot;Slow&quot;");
    expect(ask("/rules/slow", "", 200), "alertname=&quot;Slow&quot;");
    expect_none(exchange.body, "<h2>Targets</h2>");
}

Test(page, an_always_rule_is_shown_without_matchers)
{
    struct as_rule *rule = world.ruleset->rules[0];
    rule->is_always = true;
    rule->matcher_count = 0;
    expect(ask("/rules", "q=slow", 200), "<code>always</code>");
    rule->is_always = false;
    rule->matcher_count = 1;
    expect_none(ask("/rules", "q=slow", 200), "<code>always</code>");
}

Test(page, before_the_state_is_open_there_is_nothing_to_show)
{
    has_engine = false;
    changed.not_ready = "the state is being opened";
    expect(ask("/targets/checkout", "", 503), "The state is not open");
    expect(ask("/", "", 200), "Only the leader knows");
    expect(ask("/rules", "", 200), "none known");
}

/* `targets` and `rules` of a credential narrow all pages. */
Test(page, a_narrow_credential_sees_its_own)
{
    notify("Slow", NULL);
    const char *hidden = get_last_decision();
    notify("Each", "cart");
    who = "shop";
    const char *body = ask("/", "", 200);
    expect(body, "Deployment/shop/cart");
    expect_none(body, "<dt>Targets</dt>");
    expect_none(body, "checkout");
    expect_none(body, "Slow");
    body = ask("/incidents", "", 200);
    expect(body, "Each");
    expect_none(body, "Slow");
    expect(ask("/targets/checkout", "", 404), "There is no target of this name or id.");
    expect(ask("/groups/checkout", "", 404), "There is no pool or group");
    expect(ask_decision(hidden, 404), "not among");
    body = ask("/rules", "", 200);
    expect(body, ">each</a></b>");
    expect_none(body, "slow");
    who = "narrow";
    body = ask("/rules", "", 200);
    expect(body, ">each</a></b>");
    expect_none(body, "slow");
    who = "removed meanwhile";
    body = ask("/", "", 200);
    expect_none(body, "checkout");
    expect_none(body, "cart");
    who = "";
}

Test(page, refreshes_only_when_asked_to)
{
    expect_none(ask("/", "", 200), "http-equiv");
    expect(ask("/", "state=firing", 200), "href=\"?state=firing&amp;refresh=15\"");
    expect(ask("/", "refresh=15&state=firing", 200), "http-equiv=\"refresh\" content=\"15\"");
    expect(exchange.body, "href=\"?state=firing&amp;\">Stop refreshing");
    expect_none(ask("/", "refresh=0", 200), "http-equiv");
    expect_none(ask("/", "refresh=x", 200), "http-equiv");
    expect(ask("/", "refresh=99999999", 200), "content=\"3600\"");
}

Test(page, a_target_says_what_it_does_now_and_lists_its_incidents)
{
    notify("Slow", NULL);
    notify("Each", "cart");
    const char *body = ask("/targets/checkout", "", 200);
    expect(body, "<p class=\"now\">Stays at 6: locked against growing for another <time");
    expect(body, "<h2 id=\"incidents\">Open incidents</h2>");
    expect(body, "#incidents\">1 firing</a>");
    expect(body, ">Slow</a></b>");
    expect_none(body, "app=cart");
    expect_none(body, "Ended incidents");
    world_notify(&world, AS_ALERT_RESOLVED, "Slow", NULL);
    body = ask("/targets/checkout", "", 200);
    expect(body, "No alert that a rule matches is firing.");
    expect(body, "Ended incidents");
    expect(body, ">Slow</a></b>");
    body = ask("/incidents", "", 200);
    expect(body, "app=cart");
    expect(strstr(body, "Ended incidents"), ">Slow</a></b>");
    who = "narrow";
    expect_none(ask("/incidents", "", 200), "Slow");
    who = "";
    order_pause("checkout", 0);
    notify("Slow", "x");
    expect(ask("/targets/checkout", "", 200), "Stays at 8: paused by whole: load &lt;test&gt;.");
}

/* The path of the incident with these labels; `app` may be NULL. */
static const char *get_incident_path(const char *alertname, const char *app)
{
    static char path[128];
    const struct as_label pairs[] = {{"alertname", alertname}, {"app", app ? app : ""}};
    struct as_labels *labels;
    char text[AS_DIGEST_TEXT_SIZE];
    cr_assert_eq(as_labels_new(pairs, app ? 2 : 1, &labels), 0);
    const struct as_digest digest = as_labels_get_digest(labels);
    as_digest_print(&digest, text);
    (void)snprintf(path, sizeof(path), "/incidents/%s", text);
    as_labels_free(labels);
    return path;
}

static const char *ask_incident(const char *alertname, const char *app, int status)
{
    return ask(get_incident_path(alertname, app), "", status);
}

Test(page, an_incident_says_what_it_led_to)
{
    world.generator_url = "http://prometheus/graph?g0.expr=up&g0.tab=1";
    world.external_url = "https://alertmanager/base/";
    notify("Slow", NULL);
    notify("Each", "cart");
    const char *const paths[] = {"/", "/incidents", "/targets/checkout"};
    char link[160];
    (void)snprintf(link, sizeof(link), "<b><a href=\"%s\">Slow</a></b>",
                   get_incident_path("Slow", NULL));
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++)
        expect(ask(paths[i], "", 200), link);
    const char *body = ask_incident("Slow", NULL, 200);
    expect(body, "<h1>Slow</h1>");
    expect(body, "<span class=\"pill bad\">open</span>");
    expect(body, "href=\"http://prometheus/graph?g0.expr=up&amp;g0.tab=1\">");
    expect(body,
           "href=\"https://alertmanager/base/#/alerts?filter=%7Balertname%3D%22Slow%22%7D&amp;"
           "silenced=true&amp;inhibited=true&amp;muted=true&amp;active=true\">");
    expect(body, "The incident was opened.");
    expect(body, ">decision</a> 4 \u2192 6, <code>scaled</code>, rule <a href=\"/rules/slow\">");
    expect(body, ">action</a> 4 \u2192 6, <code>applied</code>, rule <a href=\"/rules/slow\">");
    expect(strstr(body, "aria-label=\"Size changes\""), ">2</div>");
    expect(strstr(body, "aria-label=\"Decisions\""), "<b>4 \u2192 6</b>");
    expect(strstr(body, "aria-label=\"Labels\""), "<code>alertname</code>");
    expect(strstr(body, "aria-label=\"Annotations\""), "&lt;b&gt;too slow&lt;/b&gt;");
    expect_none(body, "cart");
    expect_none(body, "Was open for");
    world_notify(&world, AS_ALERT_RESOLVED, "Slow", NULL);
    body = ask_incident("Slow", NULL, 200);
    expect(body, "<span class=\"pill good\">resolved</span>");
    expect(body, "<dt>Was open for</dt>");
    expect(body, "The alert was resolved.");
    expect(body, ">action</a> 4 \u2192 6, <code>applied</code>");
    expect(body, "href=\"http://prometheus/graph");
    expect(body, "&lt;b&gt;too slow&lt;/b&gt;");
    expect(ask("/incidents", "", 200), link);
    expect_none(ask_incident("Slow", NULL, 200), "aria-label=\"Earlier\"");
}

/* All alerts of a rule act together: the decision names the oldest, and each shows it. */
Test(page, each_alert_of_a_rule_shows_its_decisions)
{
    notify("Slow", "a");
    notify("Slow", "b");
    world.mono.us += 10 * AS_US_PER_MIN;
    world_step(&world, (struct as_event){.kind = AS_EVENT_DEADLINE});
    expect(ask_incident("Slow", "a", 200), ">decision</a> 6 \u2192 8");
    const char *body = ask_incident("Slow", "b", 200);
    expect(body, ">decision</a> 6 \u2192 8");
    expect_none(body, ">decision</a> 4 \u2192 6");
}

Test(page, texts_of_an_incident_attack_nobody)
{
    static const char *const urls[] = {"javascript:alert(1)", "data:text/html,x",
                                       "http://user:secret@p/", "http://p/ onclick=alert(1)"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(urls); i++) {
        world.generator_url = world.external_url = urls[i];
        notify("Slow", urls[i]); /* a label too */
        const char *body = ask_incident("Slow", urls[i], 200);
        expect_none(body, "href=\"javascript");
        expect_none(body, "href=\"data");
        expect_none(body, "href=\"http:");
        expect_none(body, "<b>too");
        expect_none(body, "in Prometheus");
        expect_none(body, "in Alertmanager");
    }
    world.generator_url = "http://p/\"><script>";
    world.external_url = "http://alertmanager";
    notify("Slow", "x");
    expect(ask_incident("Slow", "x", 200), "href=\"http://p/&quot;&gt;&lt;script&gt;\">");
    world.generator_url = NULL;
    const char *quoted = "a\"b\\c,{}&<script>";
    notify("Slow", quoted);
    const char *body = ask_incident("Slow", quoted, 200);
    expect(body, "filter=%7Balertname%3D%22Slow%22%2Capp%3D%22a%5C%22b%5C%5Cc%2C%7B%7D%26%3Cscript%"
                 "3E%22%7D&amp;");
    expect(body, "a&quot;b\\c,{}&amp;&lt;script&gt;");
    expect_none(body, "Prometheus");
    /* what the filter cannot say, or what is too long, is not in it */
    notify("Slow", "two\nlines");
    expect(ask_incident("Slow", "two\nlines", 200), "filter=%7Balertname%3D%22Slow%22%7D&amp;");
    char *huge = as_xcalloc(1, 60001);
    memset(huge, 'v', 60000);
    notify("Slow", huge);
    body = ask_incident("Slow", huge, 200);
    expect(body, "filter=%7Balertname%3D%22Slow%22%7D&amp;");
    cr_expect_lt(exchange.body_size, (size_t)100 * 1024);
    free(huge);
    world.external_url = "http://alertmanager/?x#y"; /* no path can be added to it */
    notify("Slow", "z");
    expect_none(ask_incident("Slow", "z", 200), "in Alertmanager");
}

Test(page, an_incident_that_is_not_there)
{
    static const char *const paths[] = {
        "/incidents/",
        "/incidents/none",
        "/incidents/%zz",
        "/incidents/00000000000000000000000000000000000000000000000000000000000000",
        "/incidents/0000000000000000000000000000000000000000000000000000000000000000",
        "/incidents/ZZ00000000000000000000000000000000000000000000000000000000000000"};
    notify("Slow", NULL);
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++)
        expect(ask(paths[i], "", 404), "No such incident is open");
}

/* A credential that sees nothing of an incident gets the answer for one that is not there. */
Test(page, a_narrow_credential_sees_its_own_incidents)
{
    notify("Slow", NULL);
    notify("Each", "cart");
    who = "shop";
    (void)ask_incident("Each", "cart", 200);
    for (int is_over = 0; is_over < 2; is_over++) {
        const char *body = ask_incident("Slow", NULL, 404);
        expect(body, "No such incident is open");
        expect_none(body, "Slow");
        world_notify(&world, AS_ALERT_RESOLVED, "Slow", NULL);
    }
    who = "";
    expect(ask_incident("Slow", NULL, 200), "resolved");
}

Test(page, states_of_a_target_are_words)
{
    world.replicas = 20;
    notify("Slow", NULL);
    const char *body = ask("/", "state=at_max", 200);
    expect(body, "<span class=\"pill warn\">at max</span>");
    expect(body, "<a href=\"/?state=firing\">firing</a>");
    expect(body, "state=at_max\" aria-current=\"true\">at max</a>");
    expect(body, "<dt>Mode</dt><dd><span class=\"pill good\">live</span>");
    expect(ask("/", "q=check&sort=size", 200), "?q=check&amp;sort=size&amp;state=paused\"");
    order_pause("checkout", 0);
    body = ask("/", "state=paused", 200);
    expect(body, "<span class=\"pill warn\">paused by whole</span>");
    expect(ask("/", "state=at_max&q=cart", 200), "No target fits.");
    expect(ask("/targets/checkout", "", 200), "<p class=\"id\">kubernetes/<wbr>default/<wbr>");
}

/* --- the script --- */

/* The query string with which the script requests the page that was answered last. */
static const char *get_since(char since_out[128])
{
    const char *at = strstr(exchange.body, "data-version=\"");
    cr_assert(at, "%s", exchange.body);
    at += strlen("data-version=\"");
    (void)snprintf(since_out, 128, "since=%.*s", (int)strcspn(at, "\""), at);
    return since_out;
}

static int ask_since(const char *path, const char *since)
{
    (void)ask_anything(path, since);
    return exchange.status;
}

Test(page, an_unchanged_page_is_not_printed_again)
{
    char since[128];
    notify("Slow", NULL);
    (void)ask("/", "", 200);
    cr_assert_eq(ask_since("/", get_since(since)), 304);
    cr_expect_eq(exchange.body_size, 0);
    cr_expect(strstr(exchange.headers, since + strlen("since=")), "%s", exchange.headers);
    notify("Other", NULL);
    cr_expect_eq(ask_since("/", since), 200);
    cr_expect_eq(ask_since("/", get_since(since)), 304);
    changed.dry_run = true;
    cr_expect_eq(ask_since("/", since), 200);
    cr_expect_eq(ask_since("/", get_since(since)), 304);
    changed.not_ready = "the log";
    cr_expect_eq(ask_since("/", since), 200);
    cr_expect_eq(ask_since("/", get_since(since)), 304);
    who = "narrow";
    cr_expect_eq(ask_since("/", since), 200);
    who = "";
}

Test(page, a_page_changes_when_a_time_on_it_comes)
{
    char since[128];
    notify("Slow", NULL);
    (void)ask("/", "", 200);
    (void)get_since(since);
    world.mono.us += 20 * AS_US_PER_S;
    cr_expect_eq(ask_since("/", since), 304);
    world.mono.us += 11 * AS_US_PER_S; /* half a minute: the charts have moved */
    cr_expect_eq(ask_since("/", since), 200);
    (void)get_since(since);
    world.mono.us += 27 * AS_US_PER_S;
    cr_expect_eq(ask_since("/", since), 304);
    world.mono.us += 3 * AS_US_PER_S; /* the lock for 60 s has ended */
    cr_expect_eq(ask_since("/", since), 200);
    expect_none(exchange.body, "up locked");
}

/* 1795600000: the world's start */
Test(page, a_range_in_the_past_does_not_move)
{
    char since[128];
    notify("Slow", NULL);
    world.mono.us += AS_US_PER_H;
    notify("Other", "cart");
    world.mono.us += AS_US_PER_H;
    static const char past[] = "from=1795599000&to=2026-11-25T10:06:40Z";
    const char *body = ask("/targets/checkout", past, 200);
    expect(body, "<h2>Chosen time</h2>");
    expect(body, "<title>Size over the chosen time</title>");
    expect(body,
           "<p class=\"dim\">From <time class=\"at\" datetime=\"2026-11-25T09:30:00.000000Z\">");
    expect(body, "datetime=\"2026-11-25T10:06:40.000000Z\">2026-11-25 10:06:40</time></p>");
    expect(body, "<a href=\"?range=1h\">");
    expect_none(body, "h\" aria-current=\"true\"");
    expect_none(body, "d\" aria-current=\"true\"");
    char query[256];
    (void)snprintf(query, sizeof(query), "%s&%s", past, get_since(since));
    world.mono.us += 4 * AS_US_PER_MIN;
    cr_expect_eq(ask_since("/targets/checkout", query), 304);
    world.mono.us += 2 * AS_US_PER_MIN; /* what a start reads later is shown in the end */
    cr_expect_eq(ask_since("/targets/checkout", query), 200);
    (void)ask("/targets/checkout", "range=15m", 200);
    (void)snprintf(query, sizeof(query), "range=15m&%s", get_since(since));
    world.mono.us += 4 * AS_US_PER_S;
    cr_expect_eq(ask_since("/targets/checkout", query), 304);
    world.mono.us += AS_US_PER_S; /* a short chart moves fast */
    cr_expect_eq(ask_since("/targets/checkout", query), 200);
    expect(ask("/targets/checkout", "from=1795500000&to=1795500100", 200),
           "No size is known of this time.");
    expect(ask("/targets/checkout", "from=1795599000&to=9999999999", 200), " to now</p>");
    expect(ask("/", "from=1795599000", 200), "data-title=\"Chosen time\"");
}

Test(page, a_wrong_version_is_an_old_one)
{
    char since[128];
    (void)ask("/", "", 200);
    (void)get_since(since);
    static const char *const wrong[] = {"since=", "since=x", "since=0123456789abcdef-",
                                        "since=0123456789abcdef-7fffffffffffffff"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(wrong); i++)
        cr_expect_eq(ask_since("/", wrong[i]), 200, "%s", wrong[i]);
    since[strlen(since) - 1] = 'x';
    cr_expect_eq(ask_since("/", since), 200);
    expect_none(exchange.body, "since=");
    cr_expect_eq(ask_since("/targets/nothing", "since=x"), 404);
}

Test(page, only_known_readers_have_the_script)
{
    const char *script = ask_anything("/page.js", "");
    cr_expect_eq(exchange.status, 200);
    cr_expect_str_eq(exchange.content_type, "text/javascript; charset=utf-8");
    cr_expect_lt(strlen(script), 10 * 1024);
    expect(script, "textContent");
    expect_none(script, "innerHTML");
    expect_none(script, "eval");
    exchange_forget(&exchange);
    exchange = (struct as_http_exchange){.method = "GET", .path = "/login", .query = ""};
    as_api_answer(world.api, &exchange, &(struct as_api_endpoint){.answer = page_answer_refused},
                  "", "", &(struct as_api_note){.status = 403, .text = "no"});
    expect_none(exchange.body, "<script");
    expect_none(exchange.headers, "script-src");
    expect(ask("/", "", 200), "<script");
    expect(exchange.headers, "script-src 'self'; connect-src 'self'; ");
}

/* --- many, and long --- */

static size_t count(const char *body, const char *part)
{
    size_t found = 0;
    for (const char *at = strstr(body, part); at; at = strstr(at + 1, part))
        found++;
    return found;
}

static void make_targets(int number)
{
    char app[32];
    for (int i = 0; i < number; i++) {
        (void)snprintf(app, sizeof(app), "web-%05d", i);
        world.replicas = 2 + i % 9;
        notify("Each", app);
    }
}

Test(page, targets_are_filtered_sorted_and_paged)
{
    make_targets(250);
    const char *body = ask("/", "", 200);
    cr_expect_eq(count(body, "<td role=\"cell\" data-title=\"Bounds\""), 100);
    expect(body, "1 to 100 of 251");
    expect(body, "1 to 100 of 251");
    expect(body, "href=\"/?page=2\">Next");
    body = ask("/", "page=3&q=web", 200);
    cr_expect_eq(count(body, "<td role=\"cell\" data-title=\"Bounds\""), 50);
    expect(body, "href=\"/?q=web&amp;page=2\">Previous");
    body = ask("/", "q=WEB-0024", 200);
    cr_expect_eq(count(body, "<td role=\"cell\" data-title=\"Bounds\""), 10);
    body = ask("/", "sort=size&order=desc&q=web-0001", 200);
    const char *largest = strstr(body, "shop%2Fweb-00017\""), *least = strstr(body, "web-00018\"");
    cr_assert(largest && least);
    cr_expect_lt((size_t)(largest - body), (size_t)(least - body));
    expect(body, "aria-sort=\"descending\"");
    expect(ask("/", "page=99999", 200), "201 to 251 of 251");
    expect(ask("/", "page=-1&sort=nothing&order=x&state=y", 200), "1 to 100 of 251");
    body = ask("/incidents", "page=2", 200);
    expect(body, "51 to 100 of 250");
    cr_expect_eq(count(body, "data-title=\"Alert\""), 50);
    expect(ask("/incidents", "", 200), "app=web-00249");
}

static double now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* The page stays small. How long it holds the loop goes to standard error: standard output is for
 * TAP. */
Test(page, ten_thousand_targets_are_one_small_page)
{
    make_targets(10000);
    static const char *const pages[][2] = {
        {"/", ""},          {"/", "sort=size&order=desc"},
        {"/", "q=no+such"}, {"/incidents", ""},
        {"/rules", ""},     {"/targets/kubernetes/default/apps/v1/Deployment/shop/web-09999", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(pages); i++) {
        const double start = now_ms();
        (void)ask(pages[i][0], pages[i][1], 200);
        fprintf(stderr, "%s?%s: %.1f ms, %zu bytes\n", pages[i][0], pages[i][1], now_ms() - start,
                exchange.body_size);
        cr_expect_lt(exchange.body_size, (size_t)300 * 1024);
    }
    cr_expect_leq(as_history_get_bytes(world.api->history), AS_HISTORY_BYTES_MAX);
}

Test(page, very_long_texts_stay_on_the_page)
{
    char *name = as_xcalloc(1, 100001);
    memset(name, 'n', 100000);
    free(world.ruleset->targets[0]->name);
    world.ruleset->targets[0]->name = as_xstrdup(name);
    notify("Slow", NULL);
    const char *const paths[] = {"/", "/incidents", "/rules", ("/targets/" CHECKOUT)};
    for (size_t i = 0; i < AS_ARRAY_SIZE(paths); i++) {
        (void)ask(paths[i], "", 200);
        cr_expect_lt(exchange.body_size, (size_t)2 * 1024 * 1024, "%s", paths[i]);
    }
    free(name);
}

/* --- pools --- */

/* A decision on the target, of a document as the action log has it. */
static void decide(const char *json)
{
    struct as_decide_document *document;
    struct as_error error = AS_ERROR_INIT;
    struct as_decision output;
    cr_assert_eq(as_decision_decode_input(json, strlen(json), &document, &error), 0, "%s",
                 error.text);
    as_decide_document_decide(document, &output);
    const struct as_decision_record record = {.id = "01ARZ3NDEKTSV4RRFFQ69G5FAV",
                                              .target = CHECKOUT,
                                              .target_name = "checkout",
                                              .input = &document->input,
                                              .results = document->results,
                                              .output = &output,
                                              .rules_digest = ""};
    world_tell_api(world.api,
                   &(struct as_effect){.kind = AS_EFFECT_RECORD_DECISION, .decision = &record},
                   (as_wall_time){WORLD_START_US});
    as_decide_document_free(document);
}

#define GIB "1073741824"
#define GROUP(name, size, more)                                                                    \
    "{\"name\":\"" name "\",\"size\":" size ",\"max\":5,\"nodes\":{\"count\":" size                \
    ",\"cpu\":8000,\"memory\":" GIB "},\"template\":{\"source\":\"node\",\"node\":\"n\","          \
    "\"capacity\":[8000," GIB ",0,110],\"allocatable\":[8000," GIB ",0,110],"                      \
    "\"free\":[7000," GIB ",0,100]}" more "}"

Test(page, a_pool_shows_pods_that_wait_and_who_could_take_them)
{
    notify("Slow", NULL);
    decide(
        "{\"v\":2,\"now\":\"2026-11-20T10:00:00Z\",\"target\":{\"min\":1,\"max\":60,\"pool\":{}},"
        "\"proposals\":[{\"rule\":\"pods-wait\",\"action\":{\"scale_up\":{\"fit\":"
        "\"pending_pods\"}}}],\"observed\":{\"replicas\":3,\"cluster_nodes\":3,\"groups\":[" GROUP(
            "spot", "1",
            "") "," GROUP("big", "2",
                          ",\"closed\":\"at_max\"") "],\"pending\":[[0,6],[1,1]],\"pending_pods\":"
                                                    "8,\"shapes\":["
                                                    "{\"requests\":[2000,1024,0,1],\"digest\":"
                                                    "\"00000000000000a1\"},"
                                                    "{\"requests\":[64000,1024,0,1],\"digest\":"
                                                    "\"00000000000000a3\"}]}}");
    const char *body = ask("/groups/checkout", "", 200);
    expect(body, "8 wait, 7 found no room on nodes that are there");
    expect(body, "could take them: spot");
    expect(body, "could take them, but do not grow: big (at_max)");
    expect(body, "not enough cpu");
    expect(body, "<code>at_max</code>");
    expect(body, "href=\"/decisions/01ARZ3NDEKTSV4RRFFQ69G5FAV\"");
    expect(ask_decision("01ARZ3NDEKTSV4RRFFQ69G5FAV", 200), "Pods that wait");
}

Test(page, a_pool_shows_why_nodes_stay)
{
    notify("Slow", NULL);
    decide(
        "{\"v\":2,\"now\":\"2026-11-20T11:00:00Z\",\"target\":{\"min\":1,\"max\":60,\"pool\":{}},"
        "\"proposals\":[{\"rule\":\"unneeded\",\"action\":{\"scale_down\":{\"take\":"
        "\"unneeded_nodes\"}}}],\"observed\":{\"replicas\":2,\"cluster_nodes\":2,\"groups\":"
        "[" GROUP("spot", "2", "") "],\"kept\":{\"unevictable\":1},\"pool_nodes\":["
                                   "{\"name\":\"spot-1\",\"group\":0,\"left\":[1000,1024,0,80],"
                                   "\"stays\":\"unevictable\"},"
                                   "{\"name\":\"spot-2\",\"group\":0,\"left\":[7000,1024,0,100],"
                                   "\"allocatable\":[7000,1024,0,110],\"pods\":[]}]},"
                                   "\"history\":{\"unneeded\":[{\"node\":\"spot-2\",\"since\":"
                                   "\"2026-11-20T10:59:00Z\","
                                   "\"seen\":\"2026-11-20T10:59:45Z\"}]}}");
    const char *body = ask("/groups/checkout", "", 200);
    expect(body,
           "spot-2 is unneeded since <time class=\"at\" datetime=\"2026-11-20T10:59:00.000000Z\">");
    expect(body, "a pod may not be evicted");
    expect(body, "<code>unevictable</code>");
    expect(body, "may leave, if its pods fit elsewhere");
}

/* 60 targets of a template wait: the page stays short, and a narrow credential sees its own. */
Test(page, what_waits_for_a_person)
{
    const struct as_approval_config config = {
        .is_set = true, .above = 1, .for_us = 15 * AS_US_PER_MIN};
    world.ruleset->rules[0]->approval = world.ruleset->rules[1]->approval = config;
    expect_none(ask("/", "", 200), "Waiting for a person");
    notify("Slow", NULL);
    const char *body = ask("/targets/checkout", "", 200);
    expect(body, "Waiting for a person");
    expect(body, " wants 4 \u2192 6. Asked ");
    expect(body, "It waits for another <time class=\"left\"");
    expect_none(body, "<form class=\"order\"");
    for (int i = 0; i < 60; i++) {
        char app[24];
        (void)snprintf(app, sizeof(app), "cart-%d", i);
        notify("Each", app);
    }
    body = ask("/", "", 200);
    expect(body, "And 11 more: each is on the page of its target.");
    who = "narrow";
    expect(ask("/", "", 200), "And 10 more");
    who = "shop";
    expect_none(ask("/", "", 200), ">slow</a> wants");
    who = "";
    ask("/targets/" CHECKOUT, "", 200);
}
