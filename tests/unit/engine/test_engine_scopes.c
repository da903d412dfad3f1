/*
 * Scopes of credentials: a rule acts on an alert only if it came through a credential that may
 * trigger it; a credential may not touch or end what it may not trigger; restarts and reloads
 * change nothing of this.
 */
#include "engine_harness.h"

#include <stdio.h>

static const struct spec two_rules = {
    .targets = {{.name = "web", .min = 1, .up = 60}, {.name = "db", .min = 1, .up = 60}},
    .rules =
        {{.name = "web-slow",
          .match = {"alertname=Slow"},
          .target = "web",
          .up = 2,
          .max_steps = 1},
         {.name = "db-slow", .match = {"alertname=Slow"}, .target = "db", .up = 2, .max_steps = 1},
         {.name = "db-full", .match = {"alertname=Full"}, .target = "db", .up = 3, .max_steps = 1}},
};

static const char *const web[] = {"web-*"};
static const char *const db[] = {"db-*"};
static const char *const db_targets[] = {"db"};
static const struct as_scope scopes[] = {
    {.credential = "all"},
    {.credential = "web", .rules = web, .rule_count = 1},
    {.credential = "db", .rules = db, .rule_count = 1, .targets = db_targets, .target_count = 1},
};

#define START(name)                                                                                \
    struct harness name = {.config = {.scopes = scopes, .scope_count = AS_ARRAY_SIZE(scopes)}};    \
    harness_start(&(name), &two_rules)

static void send(struct harness *harness, const char *credential, const struct test_alert *alert)
{
    harness->credential = credential;
    harness_notify(harness, "scaler", alert, 1);
}

static const struct test_alert slow = {.labels = "Slow", .starts = 990};
static const struct test_alert full = {.labels = "Full", .starts = 990};
static const struct test_alert slow_ended = {.labels = "Slow", .starts = 990, .is_resolved = true};

Test(engine_scopes, a_rule_acts_only_for_a_credential_that_may_trigger_it)
{
    START(h);
    send(&h, "web", &slow);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 4>6 scaled by web-slow; "
                "scale web 4>6; acted web 4>6 applied");
    harness_stop(&h);
}

static char requested_by[16];

static void note_credential(struct harness *harness, const struct queued_call *call, bool is_done)
{
    (void)snprintf(requested_by, sizeof(requested_by), "%s",
                   call->request.credential ? call->request.credential : "");
}

static const char *find_sender(struct harness *harness, const char *target)
{
    return as_engine_find_sender(harness->engine, harness_target(harness, target)->id);
}

Test(engine_scopes, work_is_of_the_narrowed_credential_whose_alerts_alone_cause_it)
{
    START(h);
    h.on_request = note_credential;
    cr_assert_null(find_sender(&h, "web"));
    send(&h, "web", &slow);
    cr_assert_str_eq(requested_by, "web");
    cr_assert_str_eq(find_sender(&h, "web"), "web");
    cr_assert_null(find_sender(&h, "db"));
    harness_crash(&h, 1);
    cr_assert_str_eq(find_sender(&h, "web"), "web");
    send(&h, "web", &slow_ended);
    send(&h, "db", &full);
    cr_assert_str_eq(requested_by, "db");
    send(&h, "all", &slow);
    cr_assert_null(find_sender(&h, "web"));
    cr_assert_null(find_sender(&h, "db"), "also an unnarrowed credential has sent alerts for it");
    harness_stop(&h);
}

static void pause(struct harness *harness, const char *who, const char *target)
{
    harness_order(harness, (struct as_operator_command){
                               .kind = AS_OPERATOR_COMMAND_PAUSE, .target = target, .who = who});
}

Test(engine_scopes, an_order_beyond_its_reach_is_refused)
{
    START(h);
    pause(&h, "db", "db");
    cr_said(&h, "pause db done for db; answered");
    pause(&h, "db", "web");
    cr_said(&h, "pause web refused for db; answered");
    pause(&h, "web", "web"); /* it is narrowed to rules, and an order goes by none */
    cr_said(&h, "pause web done for web; answered");
    pause(&h, "web", NULL);
    pause(&h, "db", NULL);
    pause(&h, "removed", NULL);
    cr_said(&h, "pause all refused for web; answered; pause all refused for db; answered; "
                "pause all refused for removed; answered");
    pause(&h, "all", NULL);
    cr_said(&h, "pause all done for all; answered");
    harness_stop(&h);
}

static void scale(struct harness *harness, const char *who, int32_t replicas)
{
    harness_order(harness, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_SCALE,
                                                        .target = "db",
                                                        .who = who,
                                                        .replicas = replicas});
}

Test(engine_scopes, the_work_of_an_order_is_of_its_narrowed_credential)
{
    START(h);
    h.on_request = note_credential;
    scale(&h, "db", 6);
    cr_assert_str_eq(requested_by, "db");
    cr_assert_str_eq(find_sender(&h, "db"), "db");
    cr_assert_str_eq(h.last_sender, "db", "so is what is told of it");
    scale(&h, "all", 7);
    cr_assert_str_eq(requested_by, "");
    cr_assert_str_eq(h.last_sender, "");
    send(&h, "db", &full);
    cr_assert_str_eq(find_sender(&h, "db"), "db");
    scale(&h, "all", 5);
    cr_assert_str_eq(requested_by, "", "an operator does not wait with the alerts");
    cr_assert_str_eq(h.last_sender, "");
    harness_stop(&h);
}

/* The order waits; then the process starts anew. */
Test(engine_scopes, a_waiting_order_stays_the_work_of_its_narrowed_credential_over_a_restart)
{
    START(h);
    h.on_request = note_credential;
    harness_target(&h, "db")->failure = AS_REASON_UNREACHABLE;
    scale(&h, "db", 6);
    harness_target(&h, "db")->failure = 0;
    harness_crash(&h, 1);
    tick(&h, 60);
    cr_expect_str_eq(requested_by, "db");
    cr_expect_str_eq(h.last_sender, "db");
    harness_stop(&h);
}

Test(engine_scopes, an_alert_beyond_its_reach_is_forbidden_and_changes_nothing)
{
    START(h);
    send(&h, "web", &full);
    cr_said(&h, "said forbidden; answered");
    send(&h, "removed", &slow);
    cr_said(&h, "said forbidden; answered");
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INCIDENT), 0);
    send(&h, "web", &(struct test_alert){.labels = "Nobody", .starts = 990});
    cr_said(&h, "said no_rule; answered");
    harness_stop(&h);
}

Test(engine_scopes, the_same_alert_from_someone_who_may_more_serves_the_other_rule_too)
{
    START(h);
    send(&h, "web", &slow);
    (void)said(&h);
    send(&h, "db", &slow);
    cr_said(&h, "said queued; opened; answered; observe db; decided db 4>6 scaled by db-slow; "
                "scale db 4>6; acted db 4>6 applied");
    send(&h, "web", &slow);
    cr_said(&h, "said max_steps; answered");
    harness_stop(&h);
}

Test(engine_scopes, an_incident_cannot_be_ended_or_begun_anew_by_who_may_not_trigger_all_of_it)
{
    START(h);
    send(&h, "all", &slow);
    (void)said(&h);
    send(&h, "web", &slow_ended);
    cr_said(&h, "said forbidden; answered");
    send(&h, "removed", &slow_ended);
    cr_said(&h, "said forbidden; answered");
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 1);
    send(&h, "all", &slow_ended);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 0);
    harness_stop(&h);
}

/* What it says is an incident of its own, for its own rules; what these have done, they have done.
 */
Test(engine_scopes, who_may_not_trigger_all_of_an_alert_has_an_incident_of_its_own)
{
    static const struct test_alert newer = {.labels = "Slow", .starts = 995};
    static const struct test_alert newer_ended = {
        .labels = "Slow", .starts = 995, .is_resolved = true};
    START(h);
    send(&h, "all", &slow);
    (void)said(&h);
    send(&h, "web", &newer);
    const char *text = said(&h);
    cr_assert(strstr(text, "opened") && !strstr(text, "scale"), "%s", text);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 2);
    harness_crash(&h, 1);
    harness_reload(&h, &two_rules);
    tick(&h, 120);
    cr_assert(!strstr(said(&h), "scale db"));
    send(&h, "all", &slow_ended);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 1);
    send(&h, "web", &newer_ended);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 0);
    harness_stop(&h);
}

/* What one sender began, and never ended, is no part of a later stretch that another tells. */
Test(engine_scopes, a_stretch_that_was_left_open_takes_no_step_from_a_later_one)
{
    static const struct test_alert again = {.labels = "Slow", .starts = 1500};
    START(h);
    send(&h, "web", &slow);
    send(&h, "all", &slow);
    send(&h, "all", &slow_ended);
    tick(&h, 600);
    (void)said(&h);
    send(&h, "all", &again);
    tick(&h, 120);
    const char *text = said(&h);
    cr_assert(strstr(text, "scale web 6>8"), "%s", text);
    harness_stop(&h);
}

/* Their rule acts once for the alert, whoever tells it. */
Test(engine_scopes, a_step_under_way_counts_for_who_comes_meanwhile)
{
    START(h);
    h.hold_calls = true;
    send(&h, "web", &slow);
    harness_settle_to_request(&h);
    send(&h, "all", &slow);
    h.hold_calls = false;
    harness_settle(&h);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    cr_assert_eq(harness_target(&h, "db")->size, 6);
    harness_crash(&h, 1);
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

/* A token that is replaced under another name speaks about what it began. */
Test(engine_scopes, a_renamed_credential_goes_on_with_its_incidents)
{
    static const struct as_scope renamed[] = {
        {.credential = "everything"},
        {.credential = "web", .rules = web, .rule_count = 1},
    };
    static const struct test_alert begun = {.labels = "Full", .starts = 990};
    START(h);
    send(&h, "all", &slow);
    send(&h, "all", &begun);
    h.config.scopes = renamed;
    h.config.scope_count = AS_ARRAY_SIZE(renamed);
    harness_reload(&h, &two_rules);
    (void)said(&h);
    send(&h, "everything", &slow);
    cr_assert(!strstr(said(&h), "opened"));
    tick(&h, 600);
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    send(&h, "everything", &slow_ended);
    send(&h, "everything",
         &(struct test_alert){.labels = "Full", .starts = 990, .is_resolved = true});
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 0);
    h.config.scopes = scopes;
    h.config.scope_count = AS_ARRAY_SIZE(scopes);
    harness_reload(&h, &two_rules);
    tick(&h, 600);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 0, "nor does a way back revive it");
    cr_assert_eq(harness_target(&h, "web")->size, 6);
    harness_stop(&h);
}

/* Rules may come and go: an incident is its sender's own as long as there are rules beyond it. */
Test(engine_scopes, new_rules_and_credentials_say_whose_an_incident_is)
{
    static const struct spec web_only = {
        .targets = {{.name = "web", .min = 1, .up = 60}},
        .rules = {{.name = "web-slow",
                   .match = {"alertname=Slow"},
                   .target = "web",
                   .up = 2,
                   .max_steps = 1}},
    };
    START(h);
    send(&h, "web", &slow);
    send(&h, "all", &slow);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 2);
    harness_reload(&h, &web_only);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 1);
    send(&h, "web", &slow_ended);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 0);
    send(&h, "web", &(struct test_alert){.labels = "Slow", .starts = 999});
    harness_reload(&h, &two_rules);
    (void)said(&h);
    send(&h, "db", &slow);
    const char *text = said(&h);
    cr_assert(strstr(text, "opened"), "%s", text);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 2);
    harness_crash(&h, 1);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 2);
    cr_assert_eq(as_store_memory_get_count(h.memory, AS_STORE_INCIDENT), 2);
    harness_stop(&h);
}

/* An alert is its labels: whose fingerprint it claims makes no difference. */
Test(engine_scopes, a_claimed_fingerprint_reaches_no_other_alert)
{
    static const struct test_alert in_disguise = {
        .labels = "Slow,team=web", .starts = 990, .fingerprint = 7};
    static const struct test_alert victim = {.labels = "Full", .starts = 990, .fingerprint = 7};
    static const struct test_alert victim_ended = {
        .labels = "Full", .starts = 990, .is_resolved = true, .fingerprint = 7};
    START(h);
    send(&h, "web", &in_disguise);
    (void)said(&h);
    send(&h, "db", &victim);
    cr_said(&h, "said queued; opened; answered; observe db; decided db 4>7 scaled by db-full; "
                "scale db 4>7; acted db 4>7 applied");
    send(&h, "db", &victim);
    cr_said(&h, "said max_steps; answered");
    send(&h, "web", &victim_ended);
    cr_said(&h, "said forbidden; answered");
    tick(&h, 120);
    const char *text = said(&h);
    cr_assert(!strstr(text, "db-slow"), "%s", text);
    harness_stop(&h);
}

Test(engine_scopes, two_alerts_under_one_fingerprint_are_two)
{
    static const struct test_alert both[] = {{.labels = "Slow", .starts = 990, .fingerprint = 7},
                                             {.labels = "Full", .starts = 990, .fingerprint = 7}};
    START(h);
    harness_notify(&h, "scaler", both, 2);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 2, "%s", said(&h));
    harness_stop(&h);
}

/* Else a firing of the right sender that is on its way would be taken for an old one. */
Test(engine_scopes, an_end_beyond_its_reach_is_not_remembered)
{
    START(h);
    send(&h, "web", &(struct test_alert){.labels = "Full", .starts = 990, .is_resolved = true});
    cr_said(&h, "said forbidden; answered");
    send(&h, "db", &full);
    cr_assert(as_engine_get_counts(h.engine).incidents_open == 1, "%s", said(&h));
    harness_stop(&h);
}

/* A receiver that no rule names must not be a way around. */
Test(engine_scopes, an_incident_is_not_touched_through_another_receiver)
{
    static const struct spec spec = {
        .targets = {{.name = "db", .min = 1, .up = 60}},
        .rules = {{.name = "db-full",
                   .match = {"alertname=Full"},
                   .target = "db",
                   .receiver = "dba",
                   .up = 2}},
    };
    struct harness h = {.config = {.scopes = scopes, .scope_count = AS_ARRAY_SIZE(scopes)}};
    harness_start(&h, &spec);
    h.credential = "db";
    harness_notify(&h, "dba", &full, 1);
    (void)said(&h);
    h.credential = "web";
    harness_notify(&h, "another", &full, 1);
    cr_said(&h, "said forbidden; answered");
    harness_stop(&h);
}

Test(engine_scopes, what_alertmanager_lists_is_trusted)
{
    struct harness h = {.config = {.scopes = scopes,
                                   .scope_count = AS_ARRAY_SIZE(scopes),
                                   .resync_us = AS_US_PER_MIN}};
    static const struct test_listed listed[] = {{.labels = "Full", .starts = 990}};
    harness_start(&h, &two_rules);
    (void)said(&h);
    harness_list(&h, listed, 1);
    tick(&h, 61);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 1, "%s", said(&h));
    harness_stop(&h);
}

Test(engine_scopes, a_restart_and_a_reload_bind_as_before)
{
    START(h);
    send(&h, "web", &slow);
    (void)said(&h);
    harness_crash(&h, 1);
    harness_reload(&h, &two_rules);
    tick(&h, 120);
    const char *text = said(&h);
    cr_assert(!strstr(text, "decided db") && !strstr(text, "scale"), "%s", text);
    send(&h, "web", &slow_ended);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 0, "%s", said(&h));
    harness_stop(&h);
}

Test(engine_scopes, a_credential_that_is_taken_away_acts_no_more)
{
    static const struct spec again = {
        .targets = {{.name = "web", .min = 1, .up = 60}},
        .rules = {{.name = "web-slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
    };
    struct harness h = {.config = {.scopes = scopes, .scope_count = AS_ARRAY_SIZE(scopes)}};
    harness_start(&h, &again);
    send(&h, "web", &slow);
    tick(&h, 61);
    cr_assert(strstr(said(&h), "scale web 6>8"));
    h.config.scope_count = 1;
    harness_reload(&h, &again);
    tick(&h, 600);
    cr_assert(!strstr(said(&h), "scale web"));
    harness_stop(&h);
}

static const struct spec of_a_policy = {
    .targets = {{.name = "shop/web", .address = "web", .min = 1, .up = 60}},
    .rules = {{.name = "shop/web/slow",
               .match = {"alertname=Slow"},
               .target = "shop/web",
               .up = 2,
               .max_steps = 1}},
};

/* Alerts and orders. A target whose policy is gone has no name. */
Test(engine_scopes, a_pattern_without_a_slash_does_not_reach_a_policy)
{
    static const char *const star[] = {"*"}, *const shop[] = {"shop/*"};
    static const struct as_scope reach[] = {
        {.credential = "star-rules", .rules = star, .rule_count = 1},
        {.credential = "star", .targets = star, .target_count = 1},
        {.credential = "shop", .rules = shop, .rule_count = 1, .targets = shop, .target_count = 1},
        {.credential = "whole"},
    };
    static const char *const narrow[] = {"star-rules", "star"};
    struct harness h = {.config = {.scopes = reach, .scope_count = AS_ARRAY_SIZE(reach)}};
    harness_start(&h, &of_a_policy);
    for (size_t i = 0; i < AS_ARRAY_SIZE(narrow); i++) {
        send(&h, narrow[i], &slow);
        cr_said(&h, "said forbidden; answered");
    }
    pause(&h, "star", "shop/web");
    cr_said(&h, "pause web refused for star; answered");
    pause(&h, "shop", "shop/web");
    cr_said(&h, "pause web done for shop; answered");
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_RESUME, .target = "shop/web", .who = "star"});
    cr_said(&h, "resume web refused for star; answered");
    harness_order(&h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME,
                                                   .target = "shop/web",
                                                   .who = "whole"});
    cr_said(&h, "resume web done for whole; answered; observe web");
    send(&h, "shop", &slow);
    cr_said(&h, "said queued; opened; answered; observe web; "
                "decided web 4>6 scaled by shop/web/slow; scale web 4>6; "
                "acted web 4>6 applied");
    harness_stop(&h);
}
