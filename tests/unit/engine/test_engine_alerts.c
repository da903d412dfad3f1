/*
 * The engine and Alertmanager's list: alerts missing in notifications open incidents, alerts that
 * are gone close them, silenced alerts are held; and the watchdog. The list is read every 30 s
 * here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>

#include "engine/engine_concerns.h"
#include "engine_harness.h"

#define RESYNC 30

static const struct spec slow_and_full = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 600, .down = 600}},
    .rules =
        {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
         {.name = "full", .match = {"alertname=Full"}, .target = "web", .up = 1},
         {.name = "off", .match = {"alertname=Off"}, .target = "web", .up = 1, .disabled = true}},
};

static const struct test_listed slow[] = {{.labels = "Slow", .starts = 990}};
static const struct test_listed slow_later[] = {{.labels = "Slow", .starts = 1005}};
static const struct test_listed slow_silenced[] = {
    {.labels = "Slow", .starts = 990, .is_suppressed = true}};

#define LIST(harness, alerts) harness_list(harness, alerts, AS_ARRAY_SIZE(alerts))
#define LIST_NOTHING(harness) harness_list(harness, NULL, 0)

/* A started harness that resyncs; the list is empty. */
#define WITH_LISTS(name, spec)                                                                     \
    struct harness name = {.config = {.resync_us = RESYNC * AS_US_PER_S}};                         \
    harness_start(&(name), &(spec))

static size_t open_count(const struct harness *harness)
{
    return as_engine_get_counts(harness->engine).incidents_open;
}

static void count_held(void *context, const struct as_incident_state *state,
                       const struct as_incident_target *targets, size_t target_count)
{
    size_t *count = context;
    (void)targets;
    (void)target_count;
    *count += as_moment_is_set(state->silenced);
}

static size_t held_count(const struct harness *harness)
{
    size_t count = 0;
    as_engine_visit_incidents(harness->engine, count_held, &count);
    return count;
}

/* What was said of incidents since the last call, without the targets' looks and decisions. */
static const char *told(struct harness *harness)
{
    static const char *const words[] = {"said",       "opened",   "closed",     "expired",
                                        "superseded", "silenced", "unsilenced", "list"};
    static char text[1024];
    char *rest = (char *)(uintptr_t)said(harness), *phrase;
    text[0] = '\0';
    while ((phrase = strsep(&rest, ";"))) {
        phrase += *phrase == ' ';
        for (size_t i = 0; i < AS_ARRAY_SIZE(words); i++) {
            if (strncmp(phrase, words[i], strlen(words[i])) != 0)
                continue;
            const size_t size = strlen(text);
            (void)snprintf(text + size, sizeof(text) - size, "%s%s", size ? "; " : "", phrase);
            break;
        }
    }
    return text;
}

#define cr_told(harness, text) cr_assert_str_eq(told(harness), text)

Test(engine_alerts, the_list_is_asked_for_at_start_and_then_again_and_again)
{
    struct harness h = {.config = {.resync_us = RESYNC * AS_US_PER_S}, .hold_lists = true};
    harness_start(&h, &slow_and_full);
    cr_assert_neq(h.list_call_id, 0);
    h.hold_lists = false;
    harness_settle(&h);
    tick(&h, RESYNC - 1);
    cr_told(&h, "");
    tick(&h, 1);
    cr_told(&h, "list");
    tick(&h, 10 * RESYNC);
    cr_told(&h, "list; list; list; list; list; list; list; list; list; list");
    harness_stop(&h);
}

Test(engine_alerts, without_an_interval_it_is_never_asked_for)
{
    WITH(h, slow_and_full);
    tick(&h, 3600);
    cr_told(&h, "");
    harness_stop(&h);
}

Test(engine_alerts, one_list_at_a_time)
{
    WITH_LISTS(h, slow_and_full);
    h.hold_lists = true;
    tick(&h, 100 * RESYNC); /* the harness fails where there are two */
    cr_told(&h, "list");
    h.hold_lists = false;
    harness_settle(&h);
    tick(&h, RESYNC);
    cr_told(&h, "list");
    harness_stop(&h);
}

Test(engine_alerts, after_an_error_it_is_asked_for_sooner_and_then_less_and_less_so)
{
    static const int64_t waits[] = {5, 10, 20, RESYNC, RESYNC};
    WITH_LISTS(h, slow_and_full);
    h.list_error = "refused";
    tick(&h, RESYNC);
    (void)said(&h);
    for (size_t i = 0; i < AS_ARRAY_SIZE(waits); i++) {
        tick(&h, waits[i] - 1);
        cr_told(&h, "");
        tick(&h, 1);
        cr_told(&h, "list");
    }
    h.list_error = NULL;
    tick(&h, RESYNC);
    cr_told(&h, "list");
    h.list_error = "refused again";
    tick(&h, RESYNC);
    tick(&h, waits[0]);
    cr_told(&h, "list; list");
    harness_stop(&h);
}

Test(engine_alerts, a_wait_after_an_error_is_never_longer_than_the_interval)
{
    struct harness h = {.config = {.resync_us = 2 * AS_US_PER_S}, .list_error = "refused"};
    harness_start(&h, &slow_and_full);
    tick(&h, 6);
    cr_told(&h, "list; list; list");
    harness_stop(&h);
}

Test(engine_alerts, an_error_changes_nothing_but_expiry_still_applies)
{
    struct harness h = {.config = {.resync_us = RESYNC * AS_US_PER_S}};
    harness_start(&h, &slow_and_full);
    h.config.incident_expiry_us = 3600 * AS_US_PER_S;
    harness_reload(&h, &slow_and_full);
    fire(&h, "Slow", 990);
    h.list_error = "refused";
    (void)said(&h);
    tick(&h, 3599);
    cr_assert_eq(open_count(&h), 1);
    cr_assert_null(strpbrk(told(&h), "cdop")); /* only lists */
    tick(&h, 1);
    cr_told(&h, "expired");
    cr_assert_eq(open_count(&h), 0);
    harness_stop(&h);
}

Test(engine_alerts, what_no_notification_told_is_opened_stored_and_then_decided)
{
    WITH_LISTS(h, slow_and_full);
    LIST(&h, slow);
    h.hold_commits = true;
    tick(&h, RESYNC);
    cr_said(&h, "list; opened");
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h, "observe web; decided web 4>6 scaled by slow; scale web 4>6; "
                "acted web 4>6 applied");
    cr_assert_eq(h.last_notification_total, 0);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INCIDENT), 1);
    fire(&h, "Slow", 990);
    cr_said(&h, "said duplicate; answered");
    harness_stop(&h);
}

Test(engine_alerts, two_alerts_of_one_target_are_one_decision)
{
    static const struct test_listed both[] = {{.labels = "Slow", .starts = 990},
                                              {.labels = "Full", .starts = 991}};
    WITH_LISTS(h, slow_and_full);
    LIST(&h, both);
    tick(&h, RESYNC);
    cr_said(&h, "list; opened; opened; observe web; decided web 4>6 scaled by slow; "
                "scale web 4>6; acted web 4>6 applied");
    harness_stop(&h);
}

Test(engine_alerts, what_no_rule_wants_is_left_alone)
{
    static const struct spec spec = {
        .targets = {{.name = "any", .address = "{{ .Labels.app }}", .allow = "web-*", .min = 1}},
        .rules = {{.name = "slow",
                   .match = {"alertname=Slow"},
                   .target = "any",
                   .receiver = "scaler",
                   .up = 2},
                  {.name = "off",
                   .match = {"alertname=Off"},
                   .target = "any",
                   .up = 1,
                   .disabled = true}},
    };
    static const struct test_listed others[] = {
        {.labels = "Other", .starts = 990},
        {.labels = "Off,app=web-a", .starts = 990},
        {.labels = "Slow,app=db", .starts = 990},
        {.labels = "Slow,app=web-a", .starts = 990, .receivers = "pager,mail"},
        {.labels = "Slow,app=web-b", .starts = 990, .is_suppressed = true},
    };
    WITH_LISTS(h, spec);
    LIST(&h, others);
    tick(&h, 3 * RESYNC);
    cr_said(&h, "list; list; list");
    cr_assert_eq(as_store_memory_get_commits(h.memory), 0);
    harness_stop(&h);
}

Test(engine_alerts, a_rule_for_a_receiver_takes_what_is_routed_to_it_among_others)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .up = 60}, {.name = "api", .min = 1, .up = 60}},
        .rules = {{.name = "slow",
                   .match = {"alertname=Slow"},
                   .target = "web",
                   .receiver = "first",
                   .up = 2,
                   .max_steps = 1},
                  {.name = "also",
                   .match = {"alertname=Slow"},
                   .target = "api",
                   .receiver = "second",
                   .up = 2,
                   .max_steps = 1}},
    };
    static const struct test_listed first[] = {
        {.labels = "Slow", .starts = 990, .receivers = "mail,first"}};
    static const struct test_listed both[] = {
        {.labels = "Slow", .starts = 990, .receivers = "first,second"}};
    WITH_LISTS(h, spec);
    LIST(&h, first);
    tick(&h, RESYNC);
    cr_said(&h, "list; opened; observe web; decided web 4>6 scaled by slow; scale web 4>6; "
                "acted web 4>6 applied");
    LIST(&h, both);
    tick(&h, RESYNC - 1);
    (void)said(&h);
    tick(&h, 1);
    cr_assert(strstr(said(&h), "scale api 4>6"));
    tick(&h, 10 * RESYNC);
    cr_assert_eq(harness_target(&h, "api")->size, 6);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

Test(engine_alerts, of_many_receivers_some_are_remembered)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1}},
        .rules = {{.name = "r63", .match = {"alertname=A"}, .target = "web", .receiver = "r63"},
                  {.name = "r64", .match = {"alertname=B"}, .target = "web", .receiver = "r64"}},
    };
    char receivers[1024] = "r0";
    for (int i = 1; i < 100; i++) {
        const size_t size = strlen(receivers);
        (void)snprintf(receivers + size, sizeof(receivers) - size, ",r%d", i);
    }
    const struct test_listed alerts[] = {{.labels = "A", .starts = 990, .receivers = receivers},
                                         {.labels = "B", .starts = 990, .receivers = receivers}};
    char texts[1024];
    const char *names[100];
    memcpy(texts, receivers, sizeof(texts));
    char *rest = texts;
    for (size_t i = 0; i < AS_ARRAY_SIZE(names); i++)
        names[i] = strsep(&rest, ",");
    struct harness h = {.config = {.resync_us = RESYNC * AS_US_PER_S}};
    harness_start(&h, &spec);
    h.config.receivers = names;
    h.config.receiver_count = AS_ARRAY_SIZE(names);
    harness_reload(&h, &spec);
    (void)said(&h);
    LIST(&h, alerts);
    tick(&h, RESYNC);
    cr_told(&h, "list; opened");
    const uint64_t commits = as_store_memory_get_commits(h.memory);
    tick(&h, 3 * RESYNC);
    cr_assert_eq(as_store_memory_get_commits(h.memory), commits);
    harness_stop(&h);
}

Test(engine_alerts, what_is_named_is_seen)
{
    struct harness h = {.config = {.resync_us = RESYNC * AS_US_PER_S}};
    harness_start(&h, &slow_and_full);
    h.config.incident_expiry_us = 3600 * AS_US_PER_S;
    harness_reload(&h, &slow_and_full);
    fire(&h, "Slow", 990);
    LIST(&h, slow);
    tick(&h, 3 * 3600);
    cr_assert_eq(open_count(&h), 1);
    h.list_error = "refused";
    tick(&h, 3600 - RESYNC);
    cr_assert_eq(open_count(&h), 1);
    tick(&h, RESYNC);
    cr_assert_eq(open_count(&h), 0);
    harness_stop(&h);
}

Test(engine_alerts, changed_annotations_are_stored_once)
{
    static const struct test_listed worse[] = {
        {.labels = "Slow", .starts = 990, .annotation = "worse"}};
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    LIST(&h, worse);
    (void)said(&h);
    const uint64_t commits = as_store_memory_get_commits(h.memory);
    tick(&h, RESYNC);
    cr_said(&h, "list");
    tick(&h, 2 * RESYNC);
    cr_assert_eq(as_store_memory_get_commits(h.memory), commits + 1);
    harness_stop(&h);
}

Test(engine_alerts, what_was_just_resolved_and_is_still_named_is_stale)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    tick(&h, RESYNC - 1);
    resolve(&h, "Slow", 990);
    LIST(&h, slow);
    (void)said(&h);
    tick(&h, 120);
    cr_told(&h, "list; list; list; list");
    tick(&h, RESYNC); /* it fires indeed */
    cr_told(&h, "list; opened");
    harness_stop(&h);
}

Test(engine_alerts, what_was_resolved_and_began_anew_is_opened)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    tick(&h, 10);
    resolve(&h, "Slow", 990);
    LIST(&h, slow_later);
    (void)said(&h);
    tick(&h, RESYNC);
    cr_told(&h, "list; opened");
    harness_stop(&h);
}

Test(engine_alerts, an_open_incident_with_an_older_start_is_superseded)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    LIST(&h, slow_later);
    (void)said(&h);
    tick(&h, RESYNC);
    cr_told(&h, "list; superseded; opened");
    tick(&h, RESYNC);
    cr_told(&h, "list");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INCIDENT), 1);
    harness_stop(&h);
}

Test(engine_alerts, the_start_is_compared_in_milliseconds)
{
    WITH_LISTS(h, slow_and_full);
    LIST(&h, slow);
    tick(&h, RESYNC);
    (void)said(&h);
    const struct test_alert exact = {.labels = "Slow", .starts = 990, .starts_us = 999};
    harness_notify(&h, "scaler", &exact, 1);
    cr_said(&h, "said duplicate; answered");
    const struct test_alert next = {.labels = "Slow", .starts = 990, .starts_us = 1000};
    harness_notify(&h, "scaler", &next, 1);
    cr_told(&h, "said queued; superseded; opened");
    harness_stop(&h);
}

Test(engine_alerts, what_two_lists_in_a_row_do_not_name_is_closed)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    (void)said(&h);
    tick(&h, RESYNC);
    cr_told(&h, "list");
    cr_assert_eq(open_count(&h), 1);
    h.hold_commits = true;
    tick(&h, RESYNC - 1);
    (void)said(&h);
    tick(&h, 1);
    cr_assert(strstr(said(&h), "list; closed"));
    cr_assert_eq(open_count(&h), 0);
    h.hold_commits = false;
    harness_settle(&h);
    fire(&h, "Slow", 990); /* as after a notification that it was resolved */
    cr_assert(strstr(said(&h), "said stale"));
    harness_stop(&h);
}

Test(engine_alerts, one_list_that_names_it_begins_the_count_anew)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    (void)said(&h);
    for (int i = 0; i < 5; i++) {
        LIST_NOTHING(&h);
        tick(&h, RESYNC);
        LIST(&h, slow);
        tick(&h, RESYNC);
        cr_told(&h, "list; list");
    }
    harness_stop(&h);
}

Test(engine_alerts, a_notification_begins_the_count_anew)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    tick(&h, RESYNC + 1);
    fire(&h, "Slow", 990);
    (void)said(&h);
    tick(&h, RESYNC);
    cr_told(&h, "list");
    tick(&h, RESYNC);
    cr_told(&h, "list; closed");
    harness_stop(&h);
}

Test(engine_alerts, an_error_between_two_lists_counts_as_none)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    tick(&h, RESYNC);
    h.list_error = "refused";
    tick(&h, RESYNC + 5 + 10);
    cr_assert_eq(open_count(&h), 1);
    h.list_error = NULL;
    tick(&h, RESYNC);
    cr_assert_eq(open_count(&h), 0);
    harness_stop(&h);
}

Test(engine_alerts, a_restart_between_two_lists_begins_the_count_anew)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    tick(&h, RESYNC);
    (void)said(&h);
    harness_crash(&h, 5);
    cr_told(&h, "list");
    cr_assert_eq(open_count(&h), 1);
    tick(&h, RESYNC);
    cr_told(&h, "list; closed");
    harness_stop(&h);
}

Test(engine_alerts, after_a_restart_what_was_missed_is_opened_at_once)
{
    WITH_LISTS(h, slow_and_full);
    LIST(&h, slow);
    harness_crash(&h, 5);
    cr_said(&h, "restarted; observe web; list; opened; observe web; "
                "decided web 4>6 scaled by slow; scale web 4>6; acted web 4>6 applied");
    harness_stop(&h);
}

/* The request goes out, something is told, then the answer comes, older than that. */
static void ask(struct harness *harness)
{
    harness->hold_lists = true;
    tick(harness, RESYNC);
    cr_assert_neq(harness->list_call_id, 0);
}

static void answer(struct harness *harness)
{
    (void)said(harness);
    harness->hold_lists = false;
    harness_settle(harness);
}

Test(engine_alerts, an_incident_that_is_younger_than_the_request_is_not_missed_in_its_answer)
{
    WITH_LISTS(h, slow_and_full);
    ask(&h);
    fire(&h, "Slow", 990); /* at the very time of the request */
    answer(&h);
    cr_told(&h, "");
    tick(&h, RESYNC);
    cr_told(&h, "list");
    tick(&h, RESYNC);
    cr_told(&h, "list; closed");
    harness_stop(&h);
}

Test(engine_alerts, what_was_resolved_after_the_request_is_not_opened_by_its_answer)
{
    WITH_LISTS(h, slow_and_full);
    h.config.stale_window_us = 1;
    harness_reload(&h, &slow_and_full);
    fire(&h, "Slow", 990);
    ask(&h);
    resolve(&h, "Slow", 990);
    h.mono.us += 10; /* the window has passed */
    LIST(&h, slow);
    answer(&h);
    cr_told(&h, "");
    harness_stop(&h);
}

Test(engine_alerts, what_was_notified_after_the_request_is_not_held_by_its_answer)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    ask(&h);
    fire(&h, "Slow", 990);
    LIST(&h, slow_silenced);
    answer(&h);
    cr_told(&h, "");
    cr_assert_eq(held_count(&h), 0);
    tick(&h, RESYNC);
    cr_told(&h, "list; silenced");
    harness_stop(&h);
}

Test(engine_alerts, annotations_from_after_the_request_are_not_put_back_by_its_answer)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    ask(&h);
    const struct test_alert changed = {.labels = "Slow", .starts = 990, .annotation = "worse"};
    harness_notify(&h, "scaler", &changed, 1);
    const uint64_t commits = as_store_memory_get_commits(h.memory);
    LIST(&h, slow);
    answer(&h);
    cr_assert_eq(as_store_memory_get_commits(h.memory), commits);
    harness_stop(&h);
}

Test(engine_alerts, a_later_start_in_an_older_list_is_still_a_new_incident)
{
    WITH_LISTS(h, slow_and_full);
    ask(&h);
    fire(&h, "Slow", 990); /* a peer of Alertmanager retries */
    LIST(&h, slow_later);
    answer(&h);
    cr_told(&h, "superseded; opened");
    harness_stop(&h);
}

Test(engine_alerts, a_silenced_alert_is_held_until_it_is_silenced_no_more)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    LIST(&h, slow_silenced);
    (void)said(&h);
    tick(&h, RESYNC);
    cr_assert(strstr(said(&h), "list; silenced; observe web"));
    cr_assert_eq(held_count(&h), 1);
    tick(&h, RESYNC - 1);
    cr_told(&h, "");
    tick(&h, 10 * RESYNC); /* said once; and what is held is not missed */
    cr_assert_null(strstr(said(&h), "silenced"));
    cr_assert_eq(open_count(&h), 1);
    LIST(&h, slow);
    tick(&h, RESYNC);
    cr_told(&h, "list; unsilenced");
    cr_assert_eq(held_count(&h), 0);
    harness_stop(&h);
}

static const struct spec quick = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
              {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
};

Test(engine_alerts, what_is_held_moves_nothing_until_it_is_held_no_more)
{
    WITH_LISTS(h, quick);
    fire(&h, "Slow", 990);
    LIST(&h, slow_silenced);
    tick(&h, 3600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    LIST(&h, slow);
    (void)said(&h);
    tick(&h, RESYNC);
    cr_assert(strstr(said(&h), "unsilenced; observe web; decided web 6>8 scaled by slow"));
    harness_stop(&h);
}

Test(engine_alerts, what_is_held_and_wanted_up_still_forbids_a_scale_down)
{
    static const struct test_listed idle_and_held[] = {
        {.labels = "Slow", .starts = 990, .is_suppressed = true},
        {.labels = "Idle", .starts = 990}};
    WITH_LISTS(h, quick);
    fire(&h, "Slow", 990);
    LIST(&h, slow_silenced);
    tick(&h, RESYNC);
    LIST(&h, idle_and_held);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    cr_assert(strstr(said(&h), "vetoed"));
    harness_stop(&h);
}

Test(engine_alerts, what_is_held_and_wanted_down_neither_goes_down_nor_forbids_to)
{
    static const struct test_listed held[] = {
        {.labels = "Idle", .starts = 990, .is_suppressed = true}};
    static const struct test_listed other[] = {
        {.labels = "Idle", .starts = 990, .is_suppressed = true},
        {.labels = "Idle,pod=b", .starts = 990}};
    WITH_LISTS(h, quick);
    LIST(&h, held);
    fire(&h, "Idle", 990);
    cr_assert_eq(harness_target(&h, "web")->size, 3);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 3);
    LIST(&h, other);
    tick(&h, 2 * RESYNC); /* the second list shows that it is news */
    cr_assert_eq(harness_target(&h, "web")->size, 2);
    harness_stop(&h);
}

Test(engine_alerts, a_hold_survives_a_restart_and_a_dead_alertmanager)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    LIST(&h, slow_silenced);
    tick(&h, RESYNC);
    h.list_error = "refused";
    harness_crash(&h, 5);
    tick(&h, 3600);
    cr_assert_eq(held_count(&h), 1);
    h.list_error = NULL;
    LIST(&h, slow);
    (void)said(&h);
    tick(&h, RESYNC);
    cr_told(&h, "list; unsilenced");
    harness_crash(&h, 5);
    cr_assert_eq(held_count(&h), 0);
    harness_stop(&h);
}

Test(engine_alerts, a_suppressed_alert_opens_nothing)
{
    WITH_LISTS(h, slow_and_full);
    LIST(&h, slow_silenced);
    tick(&h, RESYNC);
    cr_said(&h, "list");
    cr_assert_eq(as_store_memory_get_commits(h.memory), 0);
    LIST(&h, slow);
    tick(&h, RESYNC);
    cr_told(&h, "list; opened");
    harness_stop(&h);
}

Test(engine_alerts, what_began_anew_while_it_was_silenced_is_opened_after_the_silence)
{
    static const struct test_listed later_silenced[] = {
        {.labels = "Slow", .starts = 1005, .is_suppressed = true}};
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    LIST(&h, later_silenced);
    (void)said(&h);
    tick(&h, RESYNC);
    cr_told(&h, "list; silenced");
    LIST(&h, slow_later);
    tick(&h, RESYNC);
    cr_told(&h, "list; superseded; opened");
    cr_assert_eq(held_count(&h), 0);
    harness_stop(&h);
}

Test(engine_alerts, a_firing_shortly_after_the_silence_is_older_than_that)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    LIST(&h, slow_silenced);
    tick(&h, RESYNC);
    (void)said(&h);
    const uint64_t commits = as_store_memory_get_commits(h.memory);
    fire(&h, "Slow", 990);
    cr_said(&h, "said silenced; answered");
    cr_assert_eq(as_store_memory_get_commits(h.memory), commits + 1); /* the notification */
    h.list_error = "refused";
    tick(&h, 119);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, "said silenced; answered");
    tick(&h, 1);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_told(&h, "said queued; unsilenced");
    cr_assert_eq(held_count(&h), 0);
    harness_stop(&h);
}

Test(engine_alerts, the_list_ends_a_hold_however_young)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    LIST(&h, slow_silenced);
    tick(&h, RESYNC);
    LIST(&h, slow);
    (void)said(&h);
    tick(&h, RESYNC);
    cr_told(&h, "list; unsilenced");
    harness_stop(&h);
}

Test(engine_alerts, a_firing_after_a_restart_ends_a_hold)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    LIST(&h, slow_silenced);
    tick(&h, RESYNC);
    h.list_error = "refused";
    harness_crash(&h, 5);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_told(&h, "said queued; unsilenced");
    harness_stop(&h);
}

Test(engine_alerts, what_is_held_is_closed_like_others)
{
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    LIST(&h, slow_silenced);
    tick(&h, RESYNC);
    (void)said(&h);
    resolve(&h, "Slow", 990);
    cr_told(&h, "said queued; closed");
    cr_assert_eq(held_count(&h), 0);
    tick(&h, 5); /* its resolved under a silence never comes */
    fire(&h, "Slow", 1020);
    tick(&h, RESYNC - 5);
    LIST_NOTHING(&h);
    (void)said(&h);
    tick(&h, 2 * RESYNC);
    cr_told(&h, "list; list; closed");
    harness_stop(&h);
}

Test(engine_alerts, nothing_is_listed_or_learnt_while_stopping)
{
    WITH_LISTS(h, slow_and_full);
    ask(&h);
    harness_send_stop(&h);
    LIST(&h, slow);
    answer(&h);
    tick(&h, 100 * RESYNC);
    cr_said(&h, "");
    cr_assert_eq(open_count(&h), 0);
    harness_stop(&h);
}

Test(engine_alerts, an_answer_that_nobody_asked_for_is_ignored)
{
    WITH_LISTS(h, slow_and_full);
    const struct as_alert_list nothing = {0};
    fire(&h, "Slow", 990);
    for (uint64_t call_id = 0; call_id < 100; call_id++) {
        const struct as_event event = {.kind = AS_EVENT_LISTED,
                                       .mono = h.mono,
                                       .wall = h.wall,
                                       .call_id = call_id,
                                       .list = &nothing};
        struct as_effects effects;
        as_engine_step(h.engine, &event, &effects);
        cr_assert_eq(effects.count, 0);
    }
    cr_assert_eq(open_count(&h), 1);
    harness_stop(&h);
}

Test(engine_alerts, new_rules_change_the_interval)
{
    WITH_LISTS(h, slow_and_full);
    h.config.resync_us = 10 * AS_US_PER_S;
    harness_reload(&h, &slow_and_full);
    tick(&h, 20);
    cr_told(&h, "list; list");
    h.config.resync_us = 0;
    harness_reload(&h, &slow_and_full);
    tick(&h, 600);
    cr_told(&h, "");
    h.config.resync_us = 60 * AS_US_PER_S;
    harness_reload(&h, &slow_and_full);
    cr_told(&h, "list");
    tick(&h, 60);
    cr_told(&h, "list");
    harness_stop(&h);
}

Test(engine_alerts, a_list_under_way_when_lists_are_switched_off_teaches_nothing)
{
    WITH_LISTS(h, slow_and_full);
    ask(&h);
    h.config.resync_us = 0;
    harness_reload(&h, &slow_and_full);
    LIST(&h, slow);
    answer(&h);
    tick(&h, 600);
    cr_told(&h, "");
    h.config.resync_us = 60 * AS_US_PER_S;
    harness_reload(&h, &slow_and_full);
    cr_told(&h, "list; opened");
    harness_stop(&h);
}

Test(engine_alerts, new_rules_take_what_already_fires)
{
    static const struct spec nothing = {0};
    WITH_LISTS(h, nothing);
    LIST(&h, slow);
    tick(&h, RESYNC);
    cr_told(&h, "list");
    harness_reload(&h, &slow_and_full);
    tick(&h, RESYNC);
    cr_told(&h, "list; opened");
    harness_stop(&h);
}

/* A harness with `Watchdog` of severity none as the watchdog, within 60 s. */
struct guarded {
    struct harness h;
    struct as_matcher matchers[2];
};

static void guarded_start_with(struct guarded *guarded, const struct spec *spec)
{
    static const char *const texts[] = {"alertname=Watchdog", "severity=none"};
    *guarded = (struct guarded){0};
    struct as_error error = AS_ERROR_INIT;
    for (size_t i = 0; i < AS_ARRAY_SIZE(texts); i++)
        cr_assert_eq(as_matcher_init(&guarded->matchers[i], texts[i], &error), 0);
    guarded->h.config = (struct as_engine_config){
        .resync_us = RESYNC * AS_US_PER_S,
        .watchdog = guarded->matchers,
        .watchdog_count = 2,
        .watchdog_within_us = 60 * AS_US_PER_S,
    };
    harness_start(&guarded->h, spec);
}

static void guarded_start(struct guarded *guarded)
{
    guarded_start_with(guarded, &slow_and_full);
}

static void guarded_stop(struct guarded *guarded)
{
    harness_stop(&guarded->h);
    for (size_t i = 0; i < AS_ARRAY_SIZE(guarded->matchers); i++)
        as_matcher_deinit(&guarded->matchers[i]);
}

Test(engine_watchdog, one_that_is_not_configured_is_not_alive)
{
    WITH(h, slow_and_full);
    fire(&h, "Slow", 990);
    cr_assert_not(watchdog_is_alive(h.engine, h.mono));
    harness_stop(&h);
}

Test(engine_watchdog, a_notification_shows_that_it_lives_until_its_time_has_passed)
{
    struct guarded guarded;
    guarded_start(&guarded);
    struct harness *h = &guarded.h;
    cr_assert_not(watchdog_is_alive(h->engine, h->mono));
    fire(h, "Watchdog,severity=none", 100);
    cr_told(h, "said no_rule"); /* it need not be an alert that scales */
    cr_assert(watchdog_is_alive(h->engine, h->mono));
    tick(h, 60);
    fire(h, "Slow", 990);
    cr_assert(watchdog_is_alive(h->engine, h->mono));
    tick(h, 1);
    fire(h, "Slow", 990);
    cr_assert_not(watchdog_is_alive(h->engine, h->mono));
    fire(h, "Watchdog,severity=none", 100);
    cr_assert(watchdog_is_alive(h->engine, h->mono));
    guarded_stop(&guarded);
}

Test(engine_watchdog, what_is_not_quite_it_shows_nothing)
{
    static const struct test_listed silenced[] = {
        {.labels = "Watchdog,severity=none", .starts = 100, .is_suppressed = true},
        {.labels = "Watchdog", .starts = 100}};
    struct guarded guarded;
    guarded_start(&guarded);
    struct harness *h = &guarded.h;
    fire(h, "Watchdog", 100);
    fire(h, "Other,severity=none", 100);
    resolve(h, "Watchdog,severity=none", 100);
    LIST(h, silenced);
    tick(h, RESYNC);
    cr_assert_not(watchdog_is_alive(h->engine, h->mono));
    guarded_stop(&guarded);
}

Test(engine_watchdog, own_alerts_in_a_list_open_nothing_and_prove_nothing)
{
    static const struct test_listed own[] = {
        {.labels = "Slow,alertscaler_instance=here", .starts = 990},
        {.labels = "Watchdog,alertscaler_instance=here,severity=none", .starts = 100}};
    struct guarded guarded;
    guarded_start(&guarded);
    struct harness *h = &guarded.h;
    LIST(h, own);
    tick(h, RESYNC);
    cr_assert_not(watchdog_is_alive(h->engine, h->mono));
    cr_assert_eq(open_count(h), 0);
    guarded_stop(&guarded);
}

Test(engine_watchdog, lists_show_that_it_lives)
{
    static const struct test_listed lives[] = {{.labels = "Watchdog,severity=none", .starts = 100}};
    struct guarded guarded;
    guarded_start(&guarded);
    struct harness *h = &guarded.h;
    LIST(h, lives);
    tick(h, RESYNC);
    cr_assert(watchdog_is_alive(h->engine, h->mono));
    cr_assert_eq(open_count(h), 0);
    h->list_error = "refused";
    tick(h, RESYNC + 60);
    cr_assert_not(watchdog_is_alive(h->engine, h->mono));
    guarded_stop(&guarded);
}

Test(engine_alerts, a_listed_start_to_come_begins_nothing_anew)
{
    static const struct test_listed ahead[] = {{.labels = "Slow", .starts = 5000000}};
    WITH_LISTS(h, slow_and_full);
    LIST(&h, ahead);
    tick(&h, 3 * RESYNC);
    cr_assert_eq(open_count(&h), 1);
    cr_assert(!strstr(said(&h), "superseded"));
    fire(&h, "Slow", 990);
    cr_assert(strstr(said(&h), "said duplicate"));
    tick(&h, 3 * RESYNC);
    cr_assert(!strstr(said(&h), "superseded"));
    resolve(&h, "Slow", 990);
    cr_assert_eq(open_count(&h), 0);
    harness_stop(&h);
}

/* What could not be read may be what the list does not name; what it names counts. */
Test(engine_alerts, a_list_with_an_alert_that_cannot_be_read_closes_nothing)
{
    static const struct test_listed full[] = {{.labels = "Full", .starts = 990}};
    WITH_LISTS(h, slow_and_full);
    fire(&h, "Slow", 990);
    h.list_unread = 1;
    LIST(&h, full);
    tick(&h, 10 * RESYNC);
    cr_assert_eq(open_count(&h), 2);
    h.list_unread = 0;
    tick(&h, 3 * RESYNC);
    cr_assert_eq(open_count(&h), 1);
    harness_stop(&h);
}

/* An Alertmanager without its alerts is known by the watchdog's absence, silenced or not. */
Test(engine_watchdog, a_list_without_it_closes_nothing)
{
    static const struct test_listed silenced[] = {
        {.labels = "Watchdog,severity=none", .starts = 100, .is_suppressed = true}};
    struct guarded guarded;
    guarded_start(&guarded);
    struct harness *h = &guarded.h;
    fire(h, "Slow", 990);
    tick(h, 10 * RESYNC);
    cr_assert_eq(open_count(h), 1);
    LIST(h, silenced);
    tick(h, RESYNC);
    cr_assert_eq(open_count(h), 1);
    tick(h, RESYNC);
    cr_assert_eq(open_count(h), 0);
    guarded_stop(&guarded);
}

Test(engine_watchdog, after_a_restart_it_must_be_seen_again)
{
    struct guarded guarded;
    guarded_start(&guarded);
    struct harness *h = &guarded.h;
    fire(h, "Watchdog,severity=none", 100);
    harness_crash(h, 1);
    cr_assert_not(watchdog_is_alive(h->engine, h->mono));
    guarded_stop(&guarded);
}

Test(engine_watchdog, new_rules_keep_it_unless_it_is_another)
{
    struct guarded guarded;
    guarded_start(&guarded);
    struct harness *h = &guarded.h;
    fire(h, "Watchdog,severity=none", 100);
    harness_reload(h, &slow_and_full);
    cr_assert(watchdog_is_alive(h->engine, h->mono));
    h->config.watchdog_count = 1;
    harness_reload(h, &slow_and_full);
    cr_assert_not(watchdog_is_alive(h->engine, h->mono));
    fire(h, "Watchdog", 100);
    cr_assert(watchdog_is_alive(h->engine, h->mono));
    h->config.watchdog = &guarded.matchers[1];
    harness_reload(h, &slow_and_full);
    cr_assert_not(watchdog_is_alive(h->engine, h->mono));
    guarded_stop(&guarded);
}

/* Nodes that leave ask before each step. */
Test(engine_watchdog, without_a_sign_of_life_no_nodes_leave)
{
    static const struct spec pool = {
        .targets = {{.name = "pool", .is_group = true, .min = 1, .max = 20}},
        .rules = {{.name = "idle", .match = {"alertname=Idle"}, .target = "pool", .down = 1},
                  {.name = "busy", .match = {"alertname=Busy"}, .target = "pool", .up = 1}},
    };
    struct guarded guarded;
    guarded_start_with(&guarded, &pool);
    struct harness *h = &guarded.h;
    const char *id = harness_target(h, "pool")->id;
    cr_expect_str_eq(as_engine_find_terminate_obstacle(h->engine, id, h->mono),
                     "guarded: the watchdog is not heard of");
    fire(h, "Watchdog,severity=none", 999);
    cr_expect_null(as_engine_find_terminate_obstacle(h->engine, id, h->mono));
    const as_mono_time later = {h->mono.us + 61 * AS_US_PER_S};
    cr_expect_str_eq(as_engine_find_terminate_obstacle(h->engine, id, later),
                     "guarded: the watchdog is not heard of");
    guarded_stop(&guarded);
}
