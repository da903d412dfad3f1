/*
 * `after`: a target waits for those before it, no longer than necessary, and is never forgotten.
 */
#include <alertscaler/base/attr.h>

#include "engine_harness.h"

/* `front` comes first in every order but the one that is asked for. */
static const struct spec shop = {
    .targets = {{.name = "a-front", .min = 1, .max = 20, .after = {"db"}},
                {.name = "db", .min = 1, .max = 20}},
    .rules =
        {{.name = "front", .match = {"alertname=~\"Slow|Front\""}, .target = "a-front", .up = 2},
         {.name = "db", .match = {"alertname=~\"Slow|Db\""}, .target = "db", .up = 2},
         {.name = "idle", .match = {"alertname=Idle"}, .target = "a-front", .down = 1},
         {.name = "idle-db", .match = {"alertname=Idle"}, .target = "db", .down = 1}},
};

#define OPENED "said queued; opened; answered; "

Test(engine_after, those_named_are_scaled_first)
{
    WITH(h, shop);
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "observe db; decided db 4>6 scaled by db; scale db 4>6; "
                       "acted db 4>6 applied; observe a-front; "
                       "decided a-front 4>6 scaled by front; scale a-front 4>6; "
                       "acted a-front 4>6 applied");
    harness_stop(&h);
}

Test(engine_after, nobody_waits_for_one_that_is_not_wanted)
{
    WITH(h, shop);
    harness_target(&h, "db")->is_hanging = true;
    tick(&h, 60); /* db is being looked at, for nobody */
    (void)said(&h);
    fire(&h, "Front", 990);
    cr_said(&h, OPENED "observe a-front; decided a-front 4>6 scaled by front; scale a-front 4>6; "
                       "acted a-front 4>6 applied");
    harness_stop(&h);
}

/* Not from the cooldown of one, nor from its bounds. */
Test(engine_after, one_that_stays_where_it_is_is_settled)
{
    struct spec locked = shop;
    locked.targets[1].up = 600;
    WITH(h, locked);
    fire(&h, "Db", 990);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "observe db; decided db 6 cooldown (8) by db; observe a-front; "
                       "decided a-front 4>6 scaled by front; scale a-front 4>6; "
                       "acted a-front 4>6 applied");
    harness_stop(&h);
}

Test(engine_after, one_that_waits_for_a_budget_is_settled)
{
    struct harness h = {.config.limits = {1, 600 * AS_US_PER_S, 0, 0}};
    struct spec three = shop;
    three.targets[2] = (struct target_spec){.name = "other", .min = 1, .max = 20};
    three.rules[4] = (struct rule_spec){
        .name = "other", .match = {"alertname=Other"}, .target = "other", .up = 1};
    harness_start(&h, &three);
    fire(&h, "Other", 990);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "observe db; decided db 4 budget (6) by db; observe a-front; "
                       "decided a-front 4 budget (6) by front");
    harness_stop(&h);
}

Test(engine_after, nobody_waits_for_one_that_failed)
{
    WITH(h, shop);
    harness_target(&h, "db")->failure = AS_REASON_UNREACHABLE;
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "observe db; failed db unreachable; observe a-front; "
                       "decided a-front 4>6 scaled by front; scale a-front 4>6; "
                       "acted a-front 4>6 applied");
    harness_stop(&h);
}

/* It has an alert that it has not looked at, and will not before its wait is over. */
Test(engine_after, nobody_waits_for_one_that_waits_to_be_tried_again)
{
    WITH(h, shop);
    harness_target(&h, "db")->failure = AS_REASON_REJECTED;
    fire(&h, "Slow", 990);
    (void)said(&h);
    fire(&h, "Slow,pod=1", 990);
    const char *text = said(&h);
    cr_assert(strstr(text, "acted a-front 6>8 applied"), "%s", text);
    harness_stop(&h);
}

Test(engine_after, a_request_that_failed_is_waited_for_once)
{
    WITH(h, shop);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_REJECTED});
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "observe db; decided db 4>6 scaled by db; scale db 4>6; "
                       "acted db 4>6 rejected; observe a-front; "
                       "decided a-front 4>6 scaled by front; scale a-front 4>6; "
                       "acted a-front 4>6 applied");
    harness_stop(&h);
}

/* A conflict is decided again at once: it is still at work. */
Test(engine_after, a_conflict_is_waited_for_to_its_end)
{
    WITH(h, shop);
    harness_script(&h, (struct scale_script){.outcome = AS_REASON_CONFLICT});
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "observe db; decided db 4>6 scaled by db; scale db 4>6; "
                       "acted db 4>6 conflict; observe db; scale db 4>6; "
                       "acted db 4>6 applied; observe a-front; "
                       "decided a-front 4>6 scaled by front; scale a-front 4>6; "
                       "acted a-front 4>6 applied");
    harness_stop(&h);
}

Test(engine_after, nobody_waits_longer_than_thirty_seconds)
{
    WITH(h, shop);
    harness_target(&h, "db")->is_hanging = true;
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "observe db");
    tick(&h, 10);
    fire(&h, "Front", 990); /* does not make it longer */
    (void)said(&h);
    tick(&h, 19);
    cr_said(&h, "");
    tick(&h, 1);
    cr_said(&h, "observe a-front; decided a-front 4>6 scaled by front; scale a-front 4>6; "
                "acted a-front 4>6 applied");
    harness_target(&h, "db")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "decided db 4>6 scaled by db; scale db 4>6; acted db 4>6 applied");
    harness_stop(&h);
}

/* The next evaluation has thirty seconds of its own. */
Test(engine_after, the_bound_is_for_each_evaluation)
{
    WITH(h, shop);
    harness_target(&h, "db")->is_hanging = true;
    fire(&h, "Slow", 990);
    tick(&h, 30);
    (void)said(&h);
    fire(&h, "Front,pod=1", 990);
    tick(&h, 29);
    cr_said(&h, "said queued; opened; answered");
    tick(&h, 1);
    cr_assert(strstr(said(&h), "decided a-front 6>8 scaled"));
    harness_stop(&h);
}

/* The alert for the one comes while the other is already being observed. */
Test(engine_after, it_holds_when_the_alert_comes_late)
{
    WITH(h, shop);
    harness_target(&h, "a-front")->is_hanging = true;
    fire(&h, "Front", 990);
    harness_target(&h, "db")->is_hanging = true;
    fire(&h, "Db", 990);
    (void)said(&h);
    harness_target(&h, "a-front")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "");
    harness_target(&h, "db")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "decided db 4>6 scaled by db; scale db 4>6; acted db 4>6 applied; "
                "observe a-front; decided a-front 4>6 scaled by front; scale a-front 4>6; "
                "acted a-front 4>6 applied");
    harness_stop(&h);
}

Test(engine_after, one_that_is_resolved_while_it_waits_does_nothing)
{
    WITH(h, shop);
    harness_target(&h, "db")->is_hanging = true;
    fire(&h, "Db", 990);
    fire(&h, "Front", 990);
    (void)said(&h);
    resolve(&h, "Front", 990);
    cr_said(&h, "said queued; closed; answered; observe a-front");
    harness_target(&h, "db")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "decided db 4>6 scaled by db; scale db 4>6; acted db 4>6 applied");
    harness_stop(&h);
}

Test(engine_after, one_whose_incident_ends_is_not_waited_for_longer_than_it_works)
{
    WITH(h, shop);
    h.hold_commits = true;
    harness_notify(
        &h, "scaler",
        (const struct test_alert[]){{.labels = "Db", .starts = 990},
                                    {.labels = "Front", .starts = 990},
                                    {.labels = "Db", .starts = 990, .is_resolved = true}},
        3);
    h.hold_commits = false;
    harness_settle(&h);
    cr_assert(strstr(said(&h), "acted a-front 4>6 applied"));
    harness_stop(&h);
}

/* ---- chains, templates */

static const struct spec chain = {
    .targets = {{.name = "a-front", .min = 1, .max = 20, .after = {"b-api"}},
                {.name = "b-api", .min = 1, .max = 20, .after = {"c-db"}},
                {.name = "c-db", .min = 1, .max = 20}},
    .rules = {{.name = "front", .match = {"alertname=Slow"}, .target = "a-front", .up = 2},
              {.name = "api", .match = {"alertname=Slow"}, .target = "b-api", .up = 2},
              {.name = "db", .match = {"alertname=Slow"}, .target = "c-db", .up = 2}},
};

Test(engine_after, a_chain_goes_from_its_end)
{
    WITH(h, chain);
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "observe c-db; decided c-db 4>6 scaled by db; scale c-db 4>6; "
                       "acted c-db 4>6 applied; "
                       "observe b-api; decided b-api 4>6 scaled by api; scale b-api 4>6; "
                       "acted b-api 4>6 applied; "
                       "observe a-front; decided a-front 4>6 scaled by front; "
                       "scale a-front 4>6; acted a-front 4>6 applied");
    harness_stop(&h);
}

Test(engine_after, a_chain_that_hangs_is_let_go_after_thirty_seconds)
{
    WITH(h, chain);
    harness_target(&h, "c-db")->is_hanging = true;
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "observe c-db");
    tick(&h, 29);
    cr_said(&h, "");
    tick(&h, 1);
    const char *text = said(&h);
    cr_assert(strstr(text, "acted b-api 4>6 applied"), "%s", text);
    cr_assert(strstr(text, "acted a-front 4>6 applied"), "%s", text);
    harness_stop(&h);
}

/* The one in the middle has nothing new to look at, but is to look again, and is held itself. */
Test(engine_after, one_that_is_held_holds_others)
{
    struct spec apart = chain;
    apart.rules[0].match[0] = "alertname=Front";
    apart.rules[1].match[0] = "alertname=Api";
    apart.targets[1].up = 60;
    WITH(h, apart);
    fire(&h, "Api", 990);
    tick(&h, 59);
    harness_target(&h, "c-db")->is_hanging = true;
    fire(&h, "Slow", 990);
    tick(&h, 1);
    (void)said(&h);
    fire(&h, "Front", 990);
    cr_said(&h, "said queued; opened; answered");
    harness_target(&h, "c-db")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "decided c-db 4>6 scaled by db; scale c-db 4>6; acted c-db 4>6 applied; "
                "observe b-api; decided b-api 6>8 scaled by api; scale b-api 6>8; "
                "acted b-api 6>8 applied; observe a-front; "
                "decided a-front 4>6 scaled by front; scale a-front 4>6; "
                "acted a-front 4>6 applied");
    harness_stop(&h);
}

static const struct spec templated = {
    .targets = {{.name = "shard",
                 .address = "{{ .Labels.shard }}",
                 .allow = "shard-*",
                 .min = 1,
                 .max = 20},
                {.name = "a-front", .min = 1, .max = 20, .after = {"shard"}}},
    .rules = {{.name = "front", .match = {"alertname=Slow"}, .target = "a-front", .up = 2},
              {.name = "shards",
               .match = {"alertname=Slow", "shard!=\"\""},
               .target = "shard",
               .up = 2}},
};

Test(engine_after, a_templated_name_stands_for_all_its_targets)
{
    WITH(h, templated);
    h.hold_calls = true;
    fire(&h, "Slow,shard=shard-1", 990);
    fire(&h, "Slow,shard=shard-2", 990);
    h.hold_calls = false;
    harness_target(&h, "shard-1")->is_hanging = true;
    harness_target(&h, "shard-2")->is_hanging = true;
    harness_settle(&h);
    (void)said(&h);
    harness_target(&h, "shard-2")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "decided shard-2 4>6 scaled by shards; scale shard-2 4>6; "
                "acted shard-2 4>6 applied");
    harness_target(&h, "shard-1")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "decided shard-1 4>6 scaled by shards; scale shard-1 4>6; "
                "acted shard-1 4>6 applied; observe a-front; "
                "decided a-front 4>6 scaled by front; scale a-front 4>6; "
                "acted a-front 4>6 applied");
    harness_stop(&h);
}

/* ---- decreases: the other way round */

#define DB_WAITS "decided db 4 in_progress (3) by idle-db waits for a-front"
#define DB_GOES  "decided db 4>3 scaled by idle-db; scale db 4>3; acted db 4>3 applied"
#define FRONT_GOES                                                                                 \
    "decided a-front 4>3 scaled by idle; scale a-front 4>3; acted a-front 4>3 applied"

Test(engine_after, those_named_are_decreased_last)
{
    WITH(h, shop);
    fire(&h, "Idle", 990);
    cr_said(&h, OPENED "observe db; " DB_WAITS "; observe a-front; " FRONT_GOES "; observe db; "
                       "" DB_GOES);
    cr_expect_eq(h.last_in_progress_by, AS_IN_PROGRESS_AFTER);
    harness_stop(&h);
}

static const char *waited_for; /* by `db` */

static void take_view(void *context, const struct as_target_view *view)
{
    (void)context;
    if (strcmp(view->name, "db") == 0)
        waited_for = view->waits_for;
}

Test(engine_after, a_held_target_tells_for_whom_it_waits)
{
    WITH(h, shop);
    harness_target(&h, "a-front")->is_hanging = true;
    fire(&h, "Idle", 990);
    as_engine_visit_targets(h.engine, h.mono, h.wall, take_view, NULL);
    cr_expect_str_eq(waited_for, "a-front");
    tick(&h, 30);
    as_engine_visit_targets(h.engine, h.mono, h.wall, take_view, NULL);
    cr_expect_null(waited_for);
    harness_stop(&h);
}

Test(engine_after, a_decrease_waits_for_no_longer_than_thirty_seconds)
{
    WITH(h, shop);
    harness_target(&h, "a-front")->is_hanging = true;
    fire(&h, "Idle", 990);
    cr_said(&h, OPENED "observe db; " DB_WAITS "; observe a-front");
    tick(&h, 10);
    fire(&h, "Idle,pod=1", 990); /* does not make it longer */
    cr_expect(strstr(said(&h), DB_WAITS));
    tick(&h, 19);
    cr_said(&h, "");
    tick(&h, 1);
    cr_said(&h, "observe db; " DB_GOES);
    harness_stop(&h);
}

/* With the next one it begins anew. */
Test(engine_after, the_bound_is_for_each_decrease)
{
    struct spec often = shop;
    often.rules[3].every = 40;
    WITH(h, often);
    harness_target(&h, "a-front")->is_hanging = true;
    fire(&h, "Idle", 990);
    tick(&h, 30);
    tick(&h, 1);
    fire(&h, "Idle", 990); /* still so */
    (void)said(&h);
    tick(&h, 39);
    cr_said(&h, "observe db; decided db 3 in_progress (2) by idle-db waits for a-front");
    tick(&h, 29);
    cr_said(&h, "");
    tick(&h, 1);
    cr_assert(strstr(said(&h), "acted db 3>2 applied"));
    harness_stop(&h);
}

/* `db` goes down again 40 seconds after 1000, while the request for `a-front` is under way. */
static void begin_request(struct harness *h, const char *alert)
{
    struct spec often = shop;
    often.rules[1].match[0] = "alertname=Db";
    often.rules[2].match[0] = "alertname=Less";
    often.rules[3].every = 40;
    harness_start(h, &often);
    fire(h, "Idle", 990);
    tick(h, 1);
    fire(h, "Idle", 990); /* still so */
    harness_target(h, "a-front")->is_hanging = true;
    fire(h, alert, 990);
    (void)said(h);
    h->hold_commits = true;
    harness_target(h, "a-front")->is_hanging = false;
    harness_settle(h);
    tick(h, 39);
}

Test(engine_after, a_decrease_waits_until_the_other_ones_is_done)
{
    struct harness h = {0};
    begin_request(&h, "Less");
    cr_said(&h, "decided a-front 4>3 scaled by idle; observe db; "
                "decided db 3 in_progress (2) by idle-db waits for a-front");
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h, "scale a-front 4>3; acted a-front 4>3 applied; observe db; "
                "decided db 3>2 scaled by idle-db; scale db 3>2; acted db 3>2 applied");
    harness_stop(&h);
}

Test(engine_after, a_decrease_waits_for_no_increase)
{
    struct harness h = {0};
    begin_request(&h, "Slow");
    cr_said(&h, "decided a-front 4>6 scaled by front; observe db; "
                "decided db 3>2 scaled by idle-db");
    h.hold_commits = false;
    harness_settle(&h);
    harness_stop(&h);
}

/* Until then it might have decided to decrease. */
Test(engine_after, a_decrease_waits_no_longer_once_the_other_one_has_decided_to_grow)
{
    struct spec mixed = shop;
    mixed.rules[1].match[0] = "alertname=Db";
    mixed.rules[2].match[0] = "alertname=Less";
    WITH(h, mixed);
    harness_target(&h, "a-front")->is_hanging = true;
    fire(&h, "Slow", 990);
    fire(&h, "Idle", 990);
    cr_expect(strstr(said(&h), DB_WAITS));
    h.hold_commits = true;
    harness_target(&h, "a-front")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "decided a-front 4>6 scaled by front; observe db; "
                "decided db 4>3 scaled by idle-db");
    h.hold_commits = false;
    harness_settle(&h);
    harness_stop(&h);
}

Test(engine_after, a_decrease_waits_for_one_that_gives_back)
{
    struct spec giving = shop;
    giving.rules[0].match[0] = "alertname=Front";
    giving.rules[0].on_resolved = (struct ending_spec){.give_back = true};
    giving.rules[0].guard = "none";
    giving.rules[2].match[0] = "alertname=Less";
    WITH(h, giving);
    fire(&h, "Front", 990);
    harness_target(&h, "a-front")->is_hanging = true;
    resolve(&h, "Front", 990);
    fire(&h, "Idle", 995);
    cr_expect(strstr(said(&h), DB_WAITS));
    harness_target(&h, "a-front")->is_hanging = false;
    harness_settle(&h);
    const char *text = said(&h), *front = strstr(text, "acted a-front 6>4 applied");
    cr_assert(front && strstr(front, DB_GOES), "%s", text);
    harness_stop(&h);
}

Test(engine_after, a_decrease_waits_for_nobody_that_has_nothing_to_decide)
{
    struct spec apart = shop;
    apart.rules[2].match[0] = "alertname=Less";
    WITH(h, apart);
    harness_target(&h, "a-front")->is_hanging = true;
    tick(&h, 60); /* it is being looked at, for nobody */
    (void)said(&h);
    fire(&h, "Idle", 990);
    cr_said(&h, OPENED "observe db; " DB_GOES);
    harness_stop(&h);
}

Test(engine_after, a_decrease_waits_for_nobody_that_failed)
{
    WITH(h, shop);
    harness_target(&h, "a-front")->failure = AS_REASON_UNREACHABLE;
    fire(&h, "Idle", 990);
    cr_said(&h, OPENED "observe db; " DB_WAITS "; observe a-front; failed a-front unreachable; "
                       "observe db; " DB_GOES);
    harness_stop(&h);
}

Test(engine_after, a_decrease_waits_for_nobody_that_is_paused)
{
    WITH(h, shop);
    harness_order(
        &h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE, .target = "a-front"});
    (void)said(&h);
    fire(&h, "Idle", 990);
    cr_said(&h, OPENED "observe db; " DB_GOES "; observe a-front; "
                       "decided a-front 4 paused (3) by idle");
    harness_stop(&h);
}

Test(engine_after, a_decrease_waits_for_nobody_in_a_dry_run)
{
    struct spec dry = shop;
    dry.targets[0].dry_run = true;
    WITH(h, dry);
    fire(&h, "Idle", 990);
    cr_said(&h, OPENED "observe db; " DB_GOES "; observe a-front; "
                       "decided a-front 4 dry_run (3) by idle");
    harness_stop(&h);
}

Test(engine_after, one_that_is_not_to_be_decreased_does_not_wait)
{
    struct spec dry = shop;
    dry.targets[1].dry_run = true;
    WITH(h, dry);
    harness_target(&h, "a-front")->is_hanging = true;
    fire(&h, "Idle", 990);
    const char *text = said(&h);
    cr_expect(strstr(text, "decided db 4 dry_run (3) by idle-db"), "%s", text);
    cr_expect_not(strstr(text, "waits for"), "%s", text);
    harness_stop(&h);
}

Test(engine_after, an_order_does_not_wait)
{
    WITH(h, shop);
    harness_target(&h, "a-front")->is_hanging = true;
    fire(&h, "Idle", 990);
    (void)said(&h);
    harness_order(&h, (struct as_operator_command){
                          .kind = AS_OPERATOR_COMMAND_SCALE, .target = "db", .replicas = 2});
    cr_expect(strstr(said(&h), "ordered db 4>2 applied"));
    harness_stop(&h);
}

static const struct spec chain_down = {
    .targets = {{.name = "a-front", .min = 1, .max = 20, .after = {"b-api"}},
                {.name = "b-api", .min = 1, .max = 20, .after = {"c-db"}},
                {.name = "c-db", .min = 1, .max = 20}},
    .rules = {{.name = "front", .match = {"alertname=Idle"}, .target = "a-front", .down = 1},
              {.name = "api", .match = {"alertname=Idle"}, .target = "b-api", .down = 1},
              {.name = "db", .match = {"alertname=Idle"}, .target = "c-db", .down = 1}},
};

/* Thus nobody waits longer than for one other target. */
Test(engine_after, one_whose_decrease_is_held_holds_nobody)
{
    WITH(h, chain_down);
    harness_target(&h, "a-front")->is_hanging = true;
    fire(&h, "Idle", 990);
    cr_said(&h, OPENED "observe c-db; decided c-db 4 in_progress (3) by db waits for b-api; "
                       "observe b-api; decided b-api 4 in_progress (3) by api waits for a-front; "
                       "observe a-front; observe c-db; decided c-db 4>3 scaled by db; "
                       "scale c-db 4>3; acted c-db 4>3 applied");
    harness_target(&h, "a-front")->is_hanging = false;
    harness_settle(&h);
    cr_said(&h, "decided a-front 4>3 scaled by front; scale a-front 4>3; "
                "acted a-front 4>3 applied; observe b-api; decided b-api 4>3 scaled by api; "
                "scale b-api 4>3; acted b-api 4>3 applied");
    harness_stop(&h);
}

/* `check` refuses a cycle. */
Test(engine_after, even_a_cycle_ends)
{
    struct spec cycle = shop;
    cycle.targets[1].after[0] = "a-front";
    WITH(h, cycle);
    fire(&h, "Idle", 990);
    tick(&h, 60);
    const char *text = said(&h);
    cr_expect(strstr(text, "acted db 4>3 applied"), "%s", text);
    cr_expect(strstr(text, "acted a-front 4>3 applied"), "%s", text);
    harness_stop(&h);
}

Test(engine_after, after_a_crash_a_held_decrease_is_decided_anew)
{
    WITH(h, shop);
    harness_target(&h, "a-front")->is_hanging = true;
    fire(&h, "Idle", 990);
    cr_expect(strstr(said(&h), DB_WAITS));
    harness_target(&h, "a-front")->is_hanging = false;
    harness_crash(&h, 1);
    cr_said(&h, "restarted; observe db; " DB_WAITS "; observe a-front; " FRONT_GOES
                "; observe db; " DB_GOES);
    harness_stop(&h);
}

Test(engine_after, new_rules_without_an_order_let_a_decrease_go)
{
    struct spec free_of_order = shop;
    free_of_order.targets[0].after[0] = NULL;
    WITH(h, shop);
    harness_target(&h, "a-front")->is_hanging = true;
    fire(&h, "Idle", 990);
    (void)said(&h);
    harness_reload(&h, &free_of_order);
    cr_said(&h, "reloaded; observe db; " DB_GOES);
    harness_stop(&h);
}

/* ---- restarts and reloads */

Test(engine_after, a_restart_keeps_the_order)
{
    WITH(h, shop);
    harness_target(&h, "db")->is_hanging = true;
    fire(&h, "Slow", 990);
    (void)said(&h);
    harness_target(&h, "db")->is_hanging = false;
    harness_crash(&h, 1);
    cr_said(&h, "restarted; observe db; decided db 4>6 scaled by db; scale db 4>6; "
                "acted db 4>6 applied; observe a-front; decided a-front 4>6 scaled by front; "
                "scale a-front 4>6; acted a-front 4>6 applied");
    harness_stop(&h);
}

Test(engine_after, new_rules_without_an_order_let_go)
{
    struct spec free_of_order = shop;
    free_of_order.targets[0].after[0] = NULL;
    WITH(h, shop);
    harness_target(&h, "db")->is_hanging = true;
    fire(&h, "Slow", 990);
    (void)said(&h);
    harness_reload(&h, &free_of_order);
    cr_said(&h, "reloaded; observe a-front; decided a-front 4>6 scaled by front; "
                "scale a-front 4>6; acted a-front 4>6 applied");
    harness_stop(&h);
}

Test(engine_after, new_rules_with_another_order_are_followed)
{
    struct spec turned = shop;
    turned.targets[0].after[0] = NULL;
    turned.targets[1].after[0] = "a-front";
    WITH(h, turned);
    harness_target(&h, "a-front")->is_hanging = true;
    fire(&h, "Slow", 990);
    cr_said(&h, OPENED "observe a-front");
    harness_reload(&h, &shop);
    cr_assert(strstr(said(&h), "observe db"));
    harness_target(&h, "a-front")->is_hanging = false;
    harness_settle(&h);
    const char *text = said(&h);
    cr_assert(strstr(text, "acted a-front 4>6 applied"), "%s", text);
    harness_stop(&h);
}

/* The one that is waited for is forgotten: its rule is gone, it has no locks. */
Test(engine_after, one_that_is_gone_holds_nobody)
{
    struct spec without = templated;
    memset(&without.rules[1], 0, sizeof(without.rules[1]));
    WITH(h, templated);
    harness_target(&h, "shard-1")->is_hanging = true;
    fire(&h, "Slow,shard=shard-1", 990);
    (void)said(&h);
    harness_reload(&h, &without);
    cr_assert(strstr(said(&h), "acted a-front 4>6 applied"));
    harness_target(&h, "shard-1")->is_hanging = false;
    harness_settle(&h);
    tick(&h, 600);
    harness_stop(&h);
}
