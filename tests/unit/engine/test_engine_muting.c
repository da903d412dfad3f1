/*
 * The engine and time intervals of Alertmanager: a list opens an incident only of an alert that was
 * unmuted for the whole wait of its route, and a muted group holds its incident. The list is read
 * every 30 s here, and the wait is 90 s.
 */
#include <string.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

#define RESYNC 30
#define WAIT   90

static const struct spec slow = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
};

static const struct test_listed unmuted[] = {{.labels = "Slow", .starts = 990, .wait = WAIT}};
static const struct test_listed muted[] = {
    {.labels = "Slow", .starts = 990, .wait = WAIT, .muted = "scaler"}};
static const struct test_listed silenced[] = {
    {.labels = "Slow", .starts = 990, .wait = WAIT, .is_suppressed = true}};
static const struct test_listed inhibited[] = {
    {.labels = "Slow", .starts = 990, .wait = WAIT, .is_suppressed = true, .is_inhibited = true}};
static const struct test_listed later[] = {{.labels = "Slow", .starts = 1050, .wait = WAIT}};
static const struct test_listed never[] = {{.labels = "Slow", .starts = 990, .wait = -1}};

#define LIST(harness, alerts) harness_list(harness, alerts, AS_ARRAY_SIZE(alerts))

#define WITH_LISTS(name, spec)                                                                     \
    struct harness name = {.config = {.resync_us = RESYNC * AS_US_PER_S}};                         \
    harness_start(&(name), &(spec))

static size_t open_count(const struct harness *harness)
{
    return as_engine_get_counts(harness->engine).incidents_open;
}

Test(engine_muting, a_muted_alert_opens_no_incident)
{
    WITH_LISTS(h, slow);
    LIST(&h, muted);
    tick(&h, 600);
    cr_assert_eq(open_count(&h), 0);
    cr_assert_not(has(said(&h), "opened"));
    cr_assert_eq(as_store_memory_get_commits(h.memory), 0);
    harness_stop(&h);
}

/* Alertmanager says that a group is muted only after the group's first flush. */
Test(engine_muting, a_fresh_group_opens_none_until_the_wait_is_over)
{
    WITH_LISTS(h, slow);
    LIST(&h, unmuted);
    tick(&h, RESYNC + WAIT - 1);
    cr_assert_eq(open_count(&h), 0, "%s", said(&h));
    tick(&h, 1);
    cr_assert_eq(open_count(&h), 1, "%s", said(&h));
    harness_stop(&h);
}

Test(engine_muting, a_group_that_is_muted_at_its_first_flush_opens_none)
{
    WITH_LISTS(h, slow);
    LIST(&h, unmuted);
    tick(&h, RESYNC + WAIT - 1);
    LIST(&h, muted);
    tick(&h, 3600);
    cr_assert_eq(open_count(&h), 0, "%s", said(&h));
    harness_stop(&h);
}

/* Each of these comes with one list, at 60 s. */
Test(engine_muting, a_break_begins_the_wait_anew)
{
    static const struct {
        const char *what;
        const struct test_listed *list, *then;
        const char *error;
        bool is_anew;
    } rows[] = {
        {"muted", muted, unmuted, NULL, false},
        {"inhibited", inhibited, unmuted, NULL, false},
        {"gone", NULL, unmuted, NULL, false},
        {"a list that fails", unmuted, unmuted, "refused", false},
        {"Alertmanager is restarted", unmuted, unmuted, NULL, true},
        {"a later start", later, later, NULL, false},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        WITH_LISTS(h, slow);
        LIST(&h, unmuted);
        tick(&h, 2 * RESYNC - 1);
        harness_list(&h, rows[i].list, rows[i].list ? 1 : 0);
        h.list_error = rows[i].error;
        h.list_is_anew = rows[i].is_anew;
        tick(&h, 1);
        h.list_error = NULL;
        h.list_is_anew = false;
        harness_list(&h, rows[i].then, 1);
        tick(&h, WAIT - 1);
        cr_expect_eq(open_count(&h), 0, "%s: %s", rows[i].what, said(&h));
        tick(&h, 1 + RESYNC);
        cr_expect_eq(open_count(&h), 1, "%s: %s", rows[i].what, said(&h));
        harness_stop(&h);
    }
}

/* Alertmanager checks time intervals of silenced alerts too. */
Test(engine_muting, a_silence_is_no_break)
{
    WITH_LISTS(h, slow);
    LIST(&h, silenced);
    tick(&h, RESYNC + WAIT - 1);
    LIST(&h, unmuted);
    tick(&h, 1);
    cr_assert_eq(open_count(&h), 1, "%s", said(&h));
    harness_stop(&h);
}

Test(engine_muting, after_a_restart_the_wait_begins_anew)
{
    WITH_LISTS(h, slow);
    LIST(&h, unmuted);
    tick(&h, RESYNC + WAIT - 1);
    harness_crash(&h, 1); /* and a list at once */
    tick(&h, WAIT - 1);
    cr_assert_eq(open_count(&h), 0, "%s", said(&h));
    tick(&h, 1);
    cr_assert_eq(open_count(&h), 1, "%s", said(&h));
    harness_stop(&h);
}

Test(engine_muting, an_interval_that_begins_holds_the_open_incident)
{
    WITH_LISTS(h, slow);
    LIST(&h, unmuted);
    fire(&h, "Slow", 990);
    tick(&h, 29); /* before the next step up */
    (void)said(&h);
    LIST(&h, muted);
    tick(&h, 600);
    const char *text = said(&h);
    cr_assert(has(text, "silenced") && !has(text, "unsilenced") && !has(text, "scale web"), "%s",
              text);
    cr_assert_eq(open_count(&h), 1);

    LIST(&h, unmuted); /* the interval ends, or the group is a new one */
    tick(&h, WAIT);
    cr_assert_not(has(said(&h), "unsilenced"));
    tick(&h, RESYNC);
    text = said(&h);
    cr_assert(has(text, "unsilenced") && has(text, "scale web"), "%s", text);
    harness_stop(&h);
}

Test(engine_muting, a_notification_ends_the_hold_at_once)
{
    WITH_LISTS(h, slow);
    fire(&h, "Slow", 990);
    LIST(&h, muted);
    tick(&h, 600);
    LIST(&h, unmuted);
    (void)said(&h);
    fire(&h, "Slow", 990);
    cr_assert(has(said(&h), "unsilenced"));
    harness_stop(&h);
}

/* What Alertmanager sends is not muted: during the wait its incident goes on. */
Test(engine_muting, during_the_wait_an_open_incident_goes_on)
{
    WITH_LISTS(h, slow);
    fire(&h, "Slow", 990);
    LIST(&h, unmuted);
    tick(&h, RESYNC + WAIT - 1);
    const char *text = said(&h);
    cr_assert(!has(text, "silenced") && !has(text, "closed"), "%s", text);
    cr_assert_eq(count(text, "scale web"), 2, "%s", text);
    harness_stop(&h);
}

Test(engine_muting, a_later_start_supersedes_only_after_the_wait)
{
    WITH_LISTS(h, slow);
    fire(&h, "Slow", 990);
    LIST(&h, later);
    tick(&h, RESYNC + WAIT - 1);
    cr_assert_not(has(said(&h), "superseded"));
    tick(&h, 1);
    cr_assert(has(said(&h), "superseded"));
    harness_stop(&h);
}

Test(engine_muting, a_silence_that_ends_in_a_muted_group_ends_no_hold)
{
    WITH_LISTS(h, slow);
    fire(&h, "Slow", 990);
    LIST(&h, silenced);
    tick(&h, RESYNC);
    LIST(&h, muted);
    tick(&h, 600);
    cr_assert_not(has(said(&h), "unsilenced"));
    harness_stop(&h);
}

/* An Alertmanager before 0.28, whose route has intervals. */
Test(engine_muting, what_is_never_certain_opens_nothing_and_closes_nothing)
{
    WITH_LISTS(h, slow);
    LIST(&h, never);
    tick(&h, 3600);
    cr_assert_eq(open_count(&h), 0);
    fire(&h, "Slow", 990);
    (void)said(&h);
    tick(&h, 600);
    const char *text = said(&h);
    cr_assert(has(text, "scale web") && !has(text, "silenced") && !has(text, "closed"), "%s", text);
    harness_stop(&h);
}

/* `continue: true`: one unmuted group is enough, but only for the rules of its receiver. */
Test(engine_muting, an_alert_in_several_groups)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .up = 60}, {.name = "api", .min = 1, .up = 60}},
        .rules = {{.name = "slow",
                   .match = {"alertname=Slow"},
                   .target = "web",
                   .receiver = "first",
                   .up = 2},
                  {.name = "also",
                   .match = {"alertname=Slow"},
                   .target = "api",
                   .receiver = "second",
                   .up = 2}},
    };
    static const struct test_listed one_muted[] = {
        {.labels = "Slow", .starts = 990, .receivers = "first,second", .muted = "second"}};
    static const struct test_listed both_muted[] = {
        {.labels = "Slow", .starts = 990, .receivers = "first,second", .muted = "first,second"}};
    WITH_LISTS(h, spec);
    LIST(&h, both_muted);
    tick(&h, 5 * RESYNC);
    cr_assert_eq(open_count(&h), 0);
    LIST(&h, one_muted);
    tick(&h, 10 * RESYNC);
    const char *text = said(&h);
    cr_assert(has(text, "scale web") && !has(text, "scale api") && !has(text, "silenced"), "%s",
              text);
    LIST(&h, both_muted);
    tick(&h, RESYNC);
    cr_assert(has(said(&h), "silenced"));
    harness_stop(&h);
}

/* An incident counts the receivers that sent it, too. */
Test(engine_muting, another_receiver_does_not_count)
{
    static const struct test_listed mail[] = {
        {.labels = "Slow", .starts = 990, .receivers = "mail"}};
    static const struct test_listed ours_muted[] = {
        {.labels = "Slow", .starts = 990, .receivers = "extra,mail", .muted = "extra"}};
    WITH_LISTS(h, slow);
    LIST(&h, mail);
    tick(&h, 600);
    cr_assert_eq(open_count(&h), 0);
    const struct test_alert alert = {.labels = "Slow", .starts = 990};
    harness_notify(&h, "extra", &alert, 1);
    cr_assert_eq(open_count(&h), 1);
    LIST(&h, ours_muted);
    tick(&h, RESYNC);
    cr_assert(has(said(&h), "silenced"));
    harness_stop(&h);
}

Test(engine_muting, without_the_key_the_receivers_that_notified_us_count)
{
    static const struct test_listed listed[] = {{.labels = "Slow", .starts = 990}};
    static const struct test_listed mail[] = {
        {.labels = "Slow", .starts = 990, .receivers = "mail"}};
    const struct test_alert other = {.labels = "Other", .starts = 990};
    struct harness h = {.config = {.resync_us = RESYNC * AS_US_PER_S}, .learns_receivers = true};
    harness_start(&h, &slow);
    LIST(&h, listed);
    tick(&h, 600);
    cr_assert_eq(open_count(&h), 0);
    harness_notify(&h, "scaler", &other, 1);
    LIST(&h, mail);
    tick(&h, RESYNC);
    cr_assert_eq(open_count(&h), 0);
    LIST(&h, listed);
    tick(&h, RESYNC);
    cr_assert_eq(open_count(&h), 1);
    harness_stop(&h);
}

/* After a restart no notification has come yet, but the incident has its receivers. */
Test(engine_muting, a_restored_incident_counts_its_receivers)
{
    struct harness h = {.config = {.resync_us = RESYNC * AS_US_PER_S}, .learns_receivers = true};
    harness_start(&h, &slow);
    fire(&h, "Slow", 990);
    LIST(&h, muted);
    tick(&h, RESYNC);
    harness_crash(&h, 1);
    cr_assert_not(has(said(&h), "unsilenced"));
    LIST(&h, unmuted);
    tick(&h, RESYNC + WAIT - 1);
    cr_assert_not(has(said(&h), "unsilenced"));
    tick(&h, 1);
    cr_assert(has(said(&h), "unsilenced"));
    harness_stop(&h);
}

/* It could name a receiver of other alerts. */
Test(engine_muting, what_a_narrowed_credential_names_does_not_count)
{
    static const char *const rules[] = {"slow"};
    static const struct as_scope scopes[] = {
        {.credential = "narrow", .rules = rules, .rule_count = 1}};
    static const struct test_listed listed[] = {{.labels = "Slow", .starts = 990}};
    const struct test_alert other = {.labels = "Other", .starts = 990};
    struct harness h = {.config = {.resync_us = RESYNC * AS_US_PER_S,
                                   .scopes = scopes,
                                   .scope_count = AS_ARRAY_SIZE(scopes)},
                        .learns_receivers = true};
    harness_start(&h, &slow);
    h.credential = "narrow";
    harness_notify(&h, "scaler", &other, 1);
    LIST(&h, listed);
    tick(&h, 600);
    cr_assert_eq(open_count(&h), 0);
    harness_stop(&h);
}
