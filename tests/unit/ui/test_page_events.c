/*
 * The page of events with records that a test has made: of other versions, with texts from outside,
 * after a search that was stopped.
 */
#include <stdio.h>

#include <criterion/criterion.h>
#include <jansson.h>

#include <event2/event.h>

#include <alertscaler/base/str.h>
#include <alertscaler/log/log_history.h>
#include <alertscaler/ui/route.h>

#include "../http/exchange.h"
#include "ui/api_private.h"
#include "ui/page.h"
#include "ui/page_log.h"
#include "world.h"

#define CHECKOUT "kubernetes/default/apps/v1/Deployment/shop/checkout"
#define EVIL     "<script>\"'&"
#define ESCAPED  "&lt;script&gt;&quot;&#39;&amp;"

static struct world world;
static struct as_http_exchange exchange;
static struct page_log found;
static const char *who;
static bool is_follower;

static void look(void *context, struct as_view *view_out)
{
    *view_out = world_look(context);
    if (is_follower) {
        view_out->engine = NULL;
        view_out->leader = (struct as_leader_view){.identity = "two", .holder = "one"};
    }
}

static void setup(void)
{
    world_open(&world);
    who = "";
    is_follower = false;
    found = (struct page_log){.count = 0};
    world.api = as_api_new(&(struct as_api_config){
        .instance = "host-1", .metrics = world.metrics, .view = look, .context = &world});
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world.api->log = &found;
}

static void teardown(void)
{
    exchange_forget(&exchange);
    world_close(&world);
}

TestSuite(page_events, .init = setup, .fini = teardown);

static const char *ask_path(const char *path, const char *query, int status)
{
    struct as_routes routes = {.api = world.api, .prefix = ""};
    exchange_forget(&exchange);
    exchange = (struct as_http_exchange){.method = "GET", .path = path, .query = query};
    as_route_answer(as_route_find("GET", path), &routes, &exchange, who);
    cr_assert_eq(exchange.replies, 1);
    cr_assert_eq(exchange.status, status, "%s", exchange.body);
    return exchange.body;
}

static const char *ask(const char *query, int status)
{
    return ask_path("/events", query, status);
}

static void expect(const char *body, const char *part)
{
    cr_expect(strstr(body, part), "it lacks %s", part);
}

static void expect_none(const char *body, const char *part)
{
    cr_expect_null(strstr(body, part), "it has %s", part);
}

/* The page with one record. */
static const char *ask_for(struct page_log_record record, json_t *document)
{
    char empty[] = "";
    record.time.us = WORLD_START_US;
    record.id = record.id ? record.id : empty;
    record.target = record.target ? record.target : empty;
    record.target_name = record.target_name ? record.target_name : empty;
    record.rule = record.rule ? record.rule : empty;
    record.reason = record.reason ? record.reason : empty;
    record.document = document;
    found.records = &record;
    found.count = 1;
    const char *body = ask("", 200);
    json_decref(document);
    return body;
}

Test(page_events, a_search_that_was_stopped_goes_on_by_a_link)
{
    found = (struct page_log){.is_slow = true, .next = {true, {WORLD_START_US + 5}, 4711}};
    const char *body = ask("who=ada&range=7d", 200);
    expect(body, "The search takes too long. It has reached <time");
    expect(body,
           "/events?who=ada&amp;range=7d&amp;before=2026-11-25T09:46:40.000005Z,4711\">Older</a>");
    expect_none(body, "Newest");
    found = (struct page_log){.is_slow = true};
    body = ask("before=2026-11-25T09:46:40.000005Z,4711", 200);
    expect(body, "Choose a target, or a shorter time.");
    expect(body, "/events?\">Newest</a>");
    expect_none(body, "Older");
}

Test(page_events, what_the_index_lacks_is_said)
{
    found.is_partial = true;
    expect(ask("", 200), "The action log is not indexed to the end: events may be missing.");
    found.is_broken = true;
    expect(ask("", 200), "The action log could not be read to the end: events may be missing.");
    world.api->log = NULL;
    expect(ask("", 503), "The action log cannot be read now");
}

/* Records without members, with members of another kind, and with texts from outside. */
Test(page_events, a_record_of_another_version_is_a_row)
{
    char evil[] = EVIL, target[] = CHECKOUT;
    for (int kind = 0; kind < AS_RECORD_KIND_COUNT; kind++) {
        const struct page_log_record record = {.kind = (enum as_record_kind)kind};
        expect(ask_for(record, NULL), "aria-label=\"Events\"");
        expect(ask_for(record, json_array()), "aria-label=\"Events\"");
        const struct page_log_record texts = {.kind = (enum as_record_kind)kind,
                                              .reason = evil,
                                              .rule = evil,
                                              .target = target,
                                              .target_name = evil,
                                              .has_from = true,
                                              .from = -5};
        const char *body = ask_for(
            texts, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:{s:s},s:[{s:s,s:s}],s:s,s:f}",
                             "who", EVIL, "command", EVIL, "message", EVIL, "credential", EVIL,
                             "error", EVIL, "instance", EVIL, "version", EVIL, "digest", EVIL,
                             "rules_digest", EVIL, "labels", "alertname", EVIL, "targets", "target",
                             EVIL, "rule", EVIL, "until", EVIL, "resolved_after", 1e300));
        expect_none(strstr(body, "<table"), EVIL);
        expect_none(strstr(body, "<table"), "<script");
        expect(strstr(body, "<table"), ESCAPED);
    }
}

Test(page_events, an_incident_shows_the_targets_of_its_reader)
{
    const struct page_log_record record = {.kind = AS_RECORD_INCIDENT};
    json_t *document =
        json_pack("{s:{s:s},s:[{s:s,s:s},{s:s,s:s}]}", "labels", "alertname", "Each", "targets",
                  "target", CHECKOUT, "rule", "slow", "target", "x/any-shop", "rule", "each");
    const char *body = ask_for(record, json_incref(document));
    expect(body, ">slow</a>");
    expect(body, ">each</a>");
    who = "narrow";
    body = ask_for(record, json_incref(document));
    expect(body, ">each</a>");
    expect_none(body, "slow");
    who = "shop";
    expect_none(ask_for(record, document), "Each");
}

Test(page_events, a_replica_that_does_not_lead_shows_its_own_log)
{
    is_follower = true;
    const char *body = ask_for((struct page_log_record){.kind = AS_RECORD_START},
                               json_pack("{s:s}", "instance", "pod-2"));
    expect(body, "This replica does not lead: its action log has only the time of its lead.");
    expect(body, "<b>pod-2</b> started, and leads from now on.");
}

Test(page_events, names_of_others_are_hidden)
{
    const struct page_log_record record = {.kind = AS_RECORD_COMMAND};
    who = "shop";
    const char *body = ask_for(record, json_pack("{s:s,s:s}", "who", "ada", "command", "pause"));
    expect(body, "by <b>another credential</b>");
    expect_none(body, "ada<");
    expect(ask_for(record, json_pack("{s:s,s:s}", "who", "kill switch file", "command", "pause")),
           "by <b>kill switch file</b>");
}

static void run_nothing(struct as_log_history_job *job, const struct as_log_history_view *view)
{
}

static void end_nothing(struct as_log_history_job *job)
{
}

/* The pages are answered from memory, or refused: they wait for nothing. */
Test(page_events, a_log_that_too_many_wait_for_is_said)
{
    struct as_log_history_job jobs[AS_LOG_HISTORY_JOBS_MAX];
    struct as_error error = AS_ERROR_INIT;
    struct event_base *base = event_base_new();
    cr_assert_eq(
        as_log_history_new(base, "/nowhere/actions.jsonl", &world.api->history_log, &error), 0,
        "%s", error.text);
    for (size_t i = 0; i < AS_LOG_HISTORY_JOBS_MAX; i++) {
        jobs[i] = (struct as_log_history_job){
            .run = run_nothing, .done = end_nothing, .drop = end_nothing};
        cr_assert(as_log_history_submit(world.api->history_log, &jobs[i]));
    }
    world.api->log = NULL;
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    expect(ask("", 503), "too many requests wait for it");
    static const char absence[] = "The action log cannot be read now: older entries are missing.";
    expect(ask_path("/incidents", "", 200), absence);
    expect(ask_path("/targets/checkout", "", 200), absence);
    expect_none(ask_path("/incidents", "from=2026-11-25T09:46:40Z", 200), absence);
    world.api->history_log = as_log_history_free(world.api->history_log);
    event_base_free(base);
}
