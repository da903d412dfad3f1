/*
 * Grafana's annotation `grafana_state_reason`: the alert fires, or was resolved, for another reason
 * than its query. Such an alert lowers no size, and nothing is given back after it.
 */
#include <stdio.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

#define NO_DATA "grafana_state_reason=NoData"
#define WEB                                                                                        \
    {                                                                                              \
        .name = "web", .min = 1, .max = 20                                                         \
    }

static const struct spec rules = {
    .targets = {WEB},
    .rules = {{.name = "slow",
               .match = {"alertname=Slow"},
               .target = "web",
               .up = 2,
               .max_steps = 1,
               .guard = "none",
               .on_resolved = {.give_back = true}},
              {.name = "idle",
               .match = {"alertname=Idle"},
               .target = "web",
               .down = 1,
               .max_steps = 1,
               .guard = "none"},
              {.name = "size",
               .match = {"alertname=Size"},
               .target = "web",
               .source = {.query = "load"},
               .track_average = 10,
               .guard = "none"}},
};

static int32_t size_of(struct harness *harness)
{
    return harness_target(harness, "web")->size;
}

static void notify(struct harness *harness, const char *labels, bool is_resolved,
                   const char *annotation)
{
    const struct test_alert alert = {
        .labels = labels, .starts = 990, .is_resolved = is_resolved, .annotation = annotation};
    harness_notify(harness, "scaler", &alert, 1);
    harness_settle(harness);
}

Test(engine_state_reason, an_alert_without_data_lowers_no_size)
{
    WITH(h, rules);
    notify(&h, "Idle", false, NO_DATA);
    cr_assert(has(said(&h), "guarded"), "%s", said(&h));
    tick(&h, 3600);
    cr_assert_eq(size_of(&h), 4);
    notify(&h, "Idle", false, "summary=now it has data");
    cr_assert_eq(size_of(&h), 3);
    harness_stop(&h);
}

Test(engine_state_reason, an_alert_without_data_still_raises_the_size)
{
    WITH(h, rules);
    notify(&h, "Slow", false, NO_DATA);
    cr_assert_eq(size_of(&h), 6);
    harness_stop(&h);
}

/* One alert of the rule has data: that is enough. */
Test(engine_state_reason, another_alert_of_the_rule_lowers_the_size)
{
    WITH(h, rules);
    notify(&h, "Idle,shard=1", false, NO_DATA);
    cr_assert_eq(size_of(&h), 4);
    notify(&h, "Idle,shard=2", false, NULL);
    cr_assert_eq(size_of(&h), 3);
    harness_stop(&h);
}

Test(engine_state_reason, a_value_that_is_asked_for_an_alert_without_data_lowers_nothing)
{
    struct harness h = {.queries = {{"load", {.value = 20}}}};
    harness_start(&h, &rules);
    notify(&h, "Size", false, NO_DATA);
    tick(&h, 60);
    cr_assert_eq(size_of(&h), 4);
    h.queries[0] = (struct query_script){"load", {.value = 60}};
    tick(&h, 60);
    cr_assert_eq(size_of(&h), 6);
    harness_stop(&h);
}

Test(engine_state_reason, nothing_is_given_back_after_an_end_that_is_none)
{
    static const char *const reasons[] = {"MissingSeries", "Paused", "RuleDeleted",     "Updated",
                                          "NoData",        "Error",  "NoData, KeepLast"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(reasons); i++) {
        struct harness h = {0};
        char annotation[64];
        (void)snprintf(annotation, sizeof(annotation), "grafana_state_reason=%s", reasons[i]);
        harness_start(&h, &rules);
        notify(&h, "Slow", false, NULL);
        cr_assert_eq(size_of(&h), 6);
        notify(&h, "Slow", true, annotation);
        tick(&h, 3600);
        cr_assert_eq(size_of(&h), 6, "%s", reasons[i]);
        harness_stop(&h);
    }
}

Test(engine_state_reason, a_real_end_gives_back)
{
    WITH(h, rules);
    notify(&h, "Slow", false, NO_DATA);
    cr_assert_eq(size_of(&h), 6);
    notify(&h, "Slow", true, NULL);
    tick(&h, 600);
    cr_assert_eq(size_of(&h), 4);
    harness_stop(&h);
}
