/*
 * Rules without an alert: they act from the start, never end, and are evaluated at fixed times.
 */
#include <string.h>

#include "engine_harness.h"

#define TRACK_WEB                                                                                  \
    {                                                                                              \
        .name = "load", .always = true, .target = "web", .every = 15, .source = {.query = "load"}, \
        .track_average = 10                                                                        \
    }

static const struct spec spec = {
    .targets = {{.name = "web", .min = 1, .max = 50}},
    .rules = {TRACK_WEB},
};

static int32_t get_size(struct harness *harness)
{
    return harness_target(harness, "web")->size;
}

static void give(struct harness *harness, double value)
{
    harness->queries[0] = (struct query_script){"load", {.value = value}};
}

static void start(struct harness *harness, const struct spec *of, double value)
{
    give(harness, value);
    harness_start(harness, of);
}

Test(engine_always, it_acts_without_an_alert)
{
    struct harness h = {0};
    start(&h, &spec, 80);
    cr_assert_eq(get_size(&h), 8);
    give(&h, 120);
    tick(&h, 14);
    cr_assert_eq(get_size(&h), 8);
    tick(&h, 1);
    cr_assert_eq(get_size(&h), 12);
    give(&h, 20);
    tick(&h, 15);
    cr_assert_eq(get_size(&h), 2, "the answer to its own query is the proof: %d", get_size(&h));
    harness_stop(&h);
}

Test(engine_always, a_missing_value_lowers_nothing)
{
    struct harness h = {0};
    start(&h, &spec, 80);
    h.queries[0].text = NULL;
    tick(&h, 600);
    cr_assert_eq(get_size(&h), 8);
    cr_assert(has(said(&h), "metric_unavailable"));
    give(&h, 30);
    tick(&h, 15);
    cr_assert_eq(get_size(&h), 3);
    harness_stop(&h);
}

Test(engine_always, no_alert_touches_it)
{
    struct harness h = {0};
    start(&h, &spec, 80);
    (void)said(&h);
    fire(&h, "Busy", 990);
    cr_assert(has(said(&h), "no_rule"));
    resolve(&h, "Busy", 990);
    tick(&h, (int64_t)100 * 3600); /* longer than an incident lasts */
    give(&h, 90);
    tick(&h, 15);
    cr_assert_eq(get_size(&h), 9);
    cr_assert_eq(as_engine_get_counts(h.engine).incidents_open, 0);
    harness_stop(&h);
}

Test(engine_always, a_disabled_rule_does_nothing)
{
    static const struct spec off = {
        .targets = {{.name = "web", .min = 1, .max = 50}},
        .rules = {{.name = "load",
                   .always = true,
                   .disabled = true,
                   .target = "web",
                   .every = 15,
                   .source = {.query = "load"},
                   .track_average = 10}},
    };
    struct harness h = {0};
    start(&h, &off, 80);
    tick(&h, 100);
    cr_assert_eq(get_size(&h), 4);
    harness_reload(&h, &spec);
    tick(&h, 1);
    cr_assert_eq(get_size(&h), 8, "new rules begin at once");
    give(&h, 120);
    harness_reload(&h, &off);
    tick(&h, 100);
    cr_assert_eq(get_size(&h), 8);
    harness_stop(&h);
}

/* Steps by a value, without a cooldown: `every` alone limits them. */
static const struct spec stepwise = {
    .targets = {{.name = "web", .min = 1, .max = 50}},
    .rules = {{.name = "queue",
               .always = true,
               .target = "web",
               .every = 300,
               .source = {.query = "load"},
               .up_steps = {{.is_above = true, .bound = 10, .amount = {.size = 1}}}}},
};

Test(engine_always, it_steps_once_every_time)
{
    struct harness h = {0};
    start(&h, &stepwise, 80);
    cr_assert_eq(get_size(&h), 5);
    tick(&h, 299);
    cr_assert_eq(get_size(&h), 5);
    tick(&h, 1);
    cr_assert_eq(get_size(&h), 6);
    tick(&h, 3000);
    cr_assert_eq(get_size(&h), 16);
    harness_stop(&h);
}

Test(engine_always, a_reload_does_not_step_again)
{
    struct harness h = {0};
    start(&h, &stepwise, 80);
    for (int i = 0; i < 5; i++) {
        tick(&h, 50);
        harness_reload(&h, &stepwise);
    }
    cr_assert_eq(get_size(&h), 5);
    tick(&h, 50);
    cr_assert_eq(get_size(&h), 6);
    harness_stop(&h);
}

Test(engine_always, a_crash_does_not_step_again)
{
    struct harness h = {0};
    start(&h, &stepwise, 80);
    for (int i = 0; i < 5; i++) {
        tick(&h, 50);
        harness_crash(&h, 1);
    }
    cr_assert_eq(get_size(&h), 5);
    tick(&h, 600);
    cr_assert_geq(get_size(&h), 6);
    cr_assert_leq(get_size(&h), 7);
    harness_stop(&h);
}

Test(engine_always, a_hold_of_an_alert_stops_it)
{
    static const struct spec held = {
        .targets = {{.name = "web", .min = 1, .max = 50}},
        .rules =
            {TRACK_WEB,
             {.name = "stop", .match = {"alertname=Stop"}, .target = "web", .hold = AS_WAYS_BOTH}},
    };
    struct harness h = {0};
    start(&h, &held, 40);
    fire(&h, "Stop", 990);
    give(&h, 80);
    tick(&h, 100);
    cr_assert_eq(get_size(&h), 4);
    cr_assert(has(said(&h), "held"));
    resolve(&h, "Stop", 990);
    tick(&h, 15);
    cr_assert_eq(get_size(&h), 8);
    harness_stop(&h);
}

Test(engine_always, the_highest_of_an_alert_and_a_value_wins)
{
    static const struct spec both = {
        .targets = {{.name = "web", .min = 1, .max = 50}},
        .rules = {TRACK_WEB,
                  {.name = "surge", .match = {"alertname=Surge"}, .target = "web", .up_to = 20}},
    };
    struct harness h = {0};
    start(&h, &both, 80);
    fire(&h, "Surge", 990);
    cr_assert_eq(get_size(&h), 20);
    tick(&h, 100);
    cr_assert_eq(get_size(&h), 20, "the alert keeps the size: %d", get_size(&h));
    resolve(&h, "Surge", 990);
    tick(&h, 15);
    cr_assert_eq(get_size(&h), 8);
    harness_stop(&h);
}

Test(engine_always, a_pause_stops_it)
{
    struct harness h = {0};
    start(&h, &spec, 80);
    harness_order(&h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_PAUSE});
    give(&h, 120);
    tick(&h, 100);
    cr_assert_eq(get_size(&h), 8);
    harness_order(&h, (struct as_operator_command){.kind = AS_OPERATOR_COMMAND_RESUME});
    tick(&h, 15);
    cr_assert_eq(get_size(&h), 12);
    harness_stop(&h);
}

Test(engine_always, an_evaluation_that_takes_long_skips_the_next_ones)
{
    struct harness h = {0};
    start(&h, &spec, 80);
    tick(&h, 1);
    const uint64_t before = as_engine_get_counts(h.engine).evaluations_skipped;
    h.hold_queries = true;
    tick(&h, 14); /* the evaluation at 15 s begins */
    tick(&h, 35); /* those at 30 s and 45 s cannot */
    h.hold_queries = false;
    harness_settle(&h);
    cr_assert_eq(as_engine_get_counts(h.engine).evaluations_skipped, before + 2);
    harness_stop(&h);
}

/* Two targets have the same rule. */
static const struct spec two = {
    .targets = {{.name = "web", .min = 1, .max = 50}, {.name = "shop", .min = 1, .max = 50}},
    .rules = {TRACK_WEB,
              {.name = "load of shop",
               .always = true,
               .target = "shop",
               .every = 15,
               .source = {.query = "load"},
               .track_average = 10}},
};

Test(engine_always, targets_are_spread_over_the_time)
{
    struct harness h = {.config = {.spreads_evaluations = true}};
    int64_t web = 0, shop = 0;
    start(&h, &two, 80);
    cr_assert_eq(get_size(&h), 4, "nothing is sent at the start");
    for (int64_t second = 1; second <= 15; second++) {
        tick(&h, 1);
        web = web == 0 && get_size(&h) == 8 ? second : web;
        shop = shop == 0 && harness_target(&h, "shop")->size == 8 ? second : shop;
    }
    cr_assert(web > 0 && shop > 0, "within the first `every`");
    cr_assert_neq(web, shop);
    give(&h, 120);
    harness_reload(&h, &two);
    cr_assert_eq(get_size(&h), 8, "new rules keep the times");
    tick(&h, 15);
    cr_assert_eq(get_size(&h), 12);
    cr_assert_eq(harness_target(&h, "shop")->size, 12);
    harness_stop(&h);
}

Test(engine_always, new_rules_keep_the_time_of_the_next_try)
{
    struct harness h = {.config = {.spreads_evaluations = true}};
    start(&h, &spec, 80);
    h.observation = AS_REASON_UNREACHABLE;
    h.observation_retry_after_us = 40 * AS_US_PER_S;
    tick(&h, 15); /* fails, and is tried again 40 s later */
    cr_assert_eq(get_size(&h), 4);
    h.observation = AS_REASON_APPLIED;
    harness_reload(&h, &spec);
    tick(&h, 41);
    cr_assert_eq(get_size(&h), 8);
    harness_stop(&h);
}

Test(engine_always, a_value_that_moves_within_the_tolerance_is_one_record)
{
    struct harness h = {0};
    start(&h, &spec, 40);
    tick(&h, 60);
    (void)said(&h);
    for (int i = 0; i < 20; i++) {
        give(&h, i % 2 ? 35 : 41); /* no_change, within_tolerance */
        tick(&h, 15);
    }
    cr_assert_leq(count(said(&h), "decided"), 1);
    harness_stop(&h);
}

/* As HPA: a window of five minutes before a scale-down. */
static const struct as_behavior of_hpa = {
    .up = {.policies = {{.type = AS_POLICY_PERCENT, .value = 100, .period_us = 15 * AS_US_PER_S}},
           .policy_count = 1},
    .down = {.window_us = 300 * AS_US_PER_S,
             .policies = {{.type = AS_POLICY_PERCENT, .value = 100, .period_us = 15 * AS_US_PER_S}},
             .policy_count = 1},
};

static const struct spec windowed = {
    .targets = {{.name = "web", .min = 1, .max = 50, .behavior = &of_hpa}},
    .rules = {TRACK_WEB},
};

Test(engine_always, a_recommendation_that_changes_no_window_is_not_stored)
{
    struct harness h = {0};
    start(&h, &windowed, 40);
    tick(&h, 60);
    const unsigned before = h.target_puts;
    tick(&h, 3600); /* 240 evaluations */
    cr_expect_eq(h.target_puts, before);
    give(&h, 20);
    tick(&h, 120); /* the window holds the size */
    cr_expect_eq(get_size(&h), 4);
    cr_expect_eq(h.target_puts, before, "%u", h.target_puts - before);
    harness_stop(&h);
}

Test(engine_always, a_crash_ends_no_window_early)
{
    struct harness h = {0};
    start(&h, &windowed, 40);
    tick(&h, 3600);
    give(&h, 20);
    for (int i = 0; i < 4; i++) {
        tick(&h, 70);
        harness_crash(&h, 1);
        cr_assert_eq(get_size(&h), 4);
    }
    tick(&h, 300);
    cr_assert_eq(get_size(&h), 2);
    harness_stop(&h);
}

/* A recommendation above the size that a policy does not let through: it must be stored. */
Test(engine_always, the_recommendations_of_all_targets_are_stored_together)
{
    static const struct as_behavior slow = {
        .up = {.window_us = 60 * AS_US_PER_S,
               .policies = {{.type = AS_POLICY_PERCENT, .value = 100, .period_us = AS_US_PER_S}},
               .policy_count = 1},
        .down = {.window_us = 300 * AS_US_PER_S,
                 .policies = {{.type = AS_POLICY_PERCENT, .value = 100, .period_us = AS_US_PER_S}},
                 .policy_count = 1},
    };
    static const struct spec busy = {
        .targets = {{.name = "web", .min = 1, .max = 1000, .behavior = &slow}},
        .rules = {{.name = "load",
                   .always = true,
                   .target = "web",
                   .every = 1,
                   .source = {.query = "load"},
                   .track_average = 10}},
    };
    struct harness h = {0};
    start(&h, &busy, 40);
    tick(&h, 120);
    const unsigned before = h.target_puts;
    for (int i = 1; i <= 30; i++) { /* within the window for scale-ups, each higher */
        give(&h, 40 + 10 * i);
        tick(&h, 1);
    }
    cr_expect_eq(get_size(&h), 4);
    cr_expect_leq(h.target_puts - before, 3, "%u", h.target_puts - before);
    cr_expect_geq(h.target_puts - before, 2, "%u", h.target_puts - before);
    harness_stop(&h);
}
