/*
 * Values from outside: queries, annotations, labels, pods; and guards. Unknown values never scale
 * down.
 */
#include <math.h>
#include <stdio.h>

#include <alertscaler/base/attr.h>

#include "engine_harness.h"

#define PER_POD_QUERY "sum by (pod) (rps)"

static const struct spec tracking = {
    .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
    .rules = {{.name = "rps",
               .match = {"alertname=Busy"},
               .target = "web",
               .source = {.query = "sum(rps)"},
               .track_average = 100,
               .every = 15},
              {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
};

static void answer(struct harness *harness, size_t at, const char *text, double value)
{
    harness->queries[at] = (struct query_script){text, {.value = value}};
}

static void fail(struct harness *harness, size_t at, const char *text, const char *error)
{
    harness->queries[at] = (struct query_script){text, {.error = error}};
}

static void fire_annotated(struct harness *harness, const char *labels, const char *annotation)
{
    harness_notify(harness, "scaler",
                   &(struct test_alert){.labels = labels, .starts = 990, .annotation = annotation},
                   1);
}

Test(engine_sources, a_query_is_asked_with_the_size_and_decides)
{
    WITH(h, tracking);
    answer(&h, 0, "sum(rps)", 730);
    fire(&h, "Busy", 990);
    cr_said(&h, "said queued; opened; answered; observe web; query sum(rps); "
                "decided web 4>8 scaled by rps; scale web 4>8; acted web 4>8 applied");
    harness_stop(&h);
}

/* The target is read in milliseconds, a query may take seconds: nothing is decided before. */
Test(engine_sources, nothing_is_decided_before_the_answer)
{
    WITH(h, tracking);
    answer(&h, 0, "sum(rps)", 730);
    h.hold_calls = true;
    fire(&h, "Busy", 990);
    (void)said(&h);
    cr_assert_eq(h.call_count, 2);
    const struct queued_call query = h.calls[1];
    h.call_count = 1;
    h.hold_calls = false;
    harness_settle(&h);
    cr_said(&h, "");
    h.calls[h.call_count++] = query;
    harness_settle(&h);
    cr_said(&h, "decided web 4>8 scaled by rps; scale web 4>8; acted web 4>8 applied");
    harness_stop(&h);
}

Test(engine_sources, a_query_is_asked_again_every_interval)
{
    WITH(h, tracking);
    answer(&h, 0, "sum(rps)", 390);
    fire(&h, "Busy", 990);
    cr_said(&h, "said queued; opened; answered; observe web; query sum(rps); "
                "decided web 4 within_tolerance by rps");
    tick(&h, 14);
    cr_said(&h, "");
    answer(&h, 0, "sum(rps)", 610);
    tick(&h, 1);
    cr_said(&h, "observe web; query sum(rps); decided web 4>7 scaled by rps; scale web 4>7; "
                "acted web 4>7 applied");
    harness_stop(&h);
}

Test(engine_sources, what_fails_never_scales_down)
{
    WITH(h, tracking);
    fail(&h, 0, "sum(rps)", "query returned no data");
    fire(&h, "Busy", 990);
    cr_said(&h, "said queued; opened; answered; observe web; query sum(rps); "
                "decided web 4 metric_unavailable");
    fire(&h, "Idle", 990);
    cr_said(&h, "said queued; opened; answered; observe web; query sum(rps); "
                "decided web 4 metric_unavailable");
    answer(&h, 0, "sum(rps)", 100);
    tick(&h, 15);
    cr_said(&h, "observe web; query sum(rps); decided web 4>3 scaled by idle; scale web 4>3; "
                "acted web 4>3 applied");
    harness_stop(&h);
}

/* Two incidents with the same labels in the query share an answer; with other labels they do not,
 * and the highest value counts. */
Test(engine_sources, templates_ask_once_for_each_text)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "rps",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = "sum(rps{zone=\"{{ .Labels.zone }}\"})"},
                   .track_average = 100}},
    };
    WITH(h, spec);
    answer(&h, 0, "sum(rps{zone=\"a\"})", 500);
    answer(&h, 1, "sum(rps{zone=\"\\\"b\"})", 900);
    h.hold_commits = true;
    fire(&h, "Busy,zone=a,pod=1", 990);
    fire(&h, "Busy,zone=a,pod=2", 990);
    fire(&h, "Busy,zone=\"b,pod=3", 990);
    (void)said(&h);
    h.hold_commits = false;
    harness_settle(&h);
    cr_said(&h,
            "answered; observe web; query sum(rps{zone=\"a\"}); query sum(rps{zone=\"\\\"b\"}); "
            "answered; answered; decided web 4>9 scaled by rps; scale web 4>9; "
            "acted web 4>9 applied");
    harness_stop(&h);
}

Test(engine_sources, a_query_whose_label_is_missing_forbids_a_scale_down)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50}},
        .rules = {{.name = "rps",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = "sum(rps{zone=\"{{ .Labels.zone }}\"})"},
                   .track_average = 100},
                  {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
    };
    WITH(h, spec);
    fire(&h, "Busy", 990);
    cr_said(&h, "said queued; opened; answered; observe web; "
                "decided web 4 metric_unavailable");
    fire(&h, "Idle", 990);
    cr_said(&h, "said queued; opened; answered; observe web; "
                "decided web 4 metric_unavailable");
    harness_stop(&h);
}

Test(engine_sources, annotations_give_values)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "wanted",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.annotation = "summary"},
                   .pass_through = true}},
    };
    static const struct {
        const char *annotation, *said;
    } rows[] = {
        {"6.2", "decided web 4>7 scaled by wanted; scale web 4>7; acted web 4>7 applied"},
        {"1.2e+01", "decided web 4>12 scaled by wanted; scale web 4>12; acted web 4>12 applied"},
        {"4", "decided web 4 no_change by wanted"},
        {"95.5%", "decided web 4 metric_unavailable"},
        {"NaN", "decided web 4 metric_unavailable"},
        {"+Inf", "decided web 4 metric_unavailable"},
        {"-3", "decided web 4 metric_unavailable"},
        {"-1e-300", "decided web 4 metric_unavailable"},
        {"-0", "decided web 4>1 scaled by wanted; scale web 4>1; acted web 4>1 applied"},
        {NULL, "decided web 4 metric_unavailable"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        WITH(h, spec);
        fire_annotated(&h, "Busy", rows[i].annotation);
        const char *text = said(&h);
        const char *decided = strstr(text, "decided");
        cr_expect_str_eq(decided ? decided : text, rows[i].said);
        harness_stop(&h);
    }
}

/* Three are ready, the fourth is not. */
static const struct as_pod_seen four_pods[] = {
    {.name = "web-1", .phase = AS_POD_RUNNING, .ready = AS_TRUE},
    {.name = "web-2", .phase = AS_POD_RUNNING, .ready = AS_TRUE},
    {.name = "web-3", .phase = AS_POD_RUNNING, .ready = AS_TRUE},
    {.name = "web-4", .phase = AS_POD_RUNNING, .ready = AS_FALSE},
};

static void have_four_pods(struct harness *harness)
{
    harness->pods = four_pods;
    harness->pod_count = AS_ARRAY_SIZE(four_pods);
}

Test(engine_sources, steps_to_a_value_count_the_ready_pods)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "full",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = "use"},
                   .up_steps = {{.is_above = true, .bound = 70, .to = 70}},
                   .every = 15}},
    };
    WITH(h, spec);
    have_four_pods(&h);
    answer(&h, 0, "use", 140);
    fire(&h, "Busy", 990);
    cr_said(&h, "said queued; opened; answered; observe web with pods; query use; "
                "decided web 4>7 scaled by full; scale web 4>7; acted web 4>7 applied");
    harness_stop(&h);
}

/* A negative share of the load is a mistake; a table of sizes may stand on both sides of zero. */
Test(engine_sources, a_negative_value_is_none_for_a_step_to_a_value)
{
    static const struct spec steps = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "idle",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.annotation = "summary"},
                   .down_steps = {{.bound = 40, .to = 60}}}},
    };
    static const struct spec table = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "cold",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.annotation = "summary"},
                   .to_steps = {{.bound = -10, .amount = {.size = 6}},
                                {.bound = 0, .amount = {.size = 2}}}}},
    };
    static const struct {
        const struct spec *spec;
        const char *annotation, *said;
    } rows[] = {
        {&steps, "30", "decided web 4>3 scaled by idle; scale web 4>3; acted web 4>3 applied"},
        {&steps, "-30", "decided web 4 metric_unavailable"},
        {&table, "1", "decided web 4>2 scaled by cold; scale web 4>2; acted web 4>2 applied"},
        {&table, "-5", "decided web 4>6 scaled by cold; scale web 4>6; acted web 4>6 applied"},
        {&table, "-50", "decided web 4>6 scaled by cold; scale web 4>6; acted web 4>6 applied"},
        {&table, NULL, "decided web 4 metric_unavailable"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        WITH(h, *rows[i].spec);
        have_four_pods(&h);
        fire_annotated(&h, "Busy", rows[i].annotation);
        const char *text = said(&h);
        const char *decided = strstr(text, "decided");
        cr_expect_str_eq(decided ? decided : text, rows[i].said);
        harness_stop(&h);
    }
}

/* While it may not act, a table of sizes could want up: nobody goes down. */
Test(engine_sources, a_table_of_sizes_that_may_not_act_wants_to_stay)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50}},
        .rules = {{.name = "table",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = "nodes"},
                   .to_steps = {{.bound = 1, .amount = {.size = 6}}},
                   .max_steps = 1,
                   .every = 15},
                  {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
    };
    WITH(h, spec);
    answer(&h, 0, "nodes", 3);
    fire(&h, "Busy", 990);
    (void)said(&h);
    fire(&h, "Idle", 990);
    cr_said(&h, "said queued; opened; answered; observe web; decided web 6 vetoed by table");
    harness_stop(&h);
}

Test(engine_sources, a_repeat_with_another_value_counts_at_the_next_look)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 30, .down = 60}},
        .rules = {{.name = "wanted",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.annotation = "summary"},
                   .pass_through = true}},
    };
    WITH(h, spec);
    fire_annotated(&h, "Busy", "6");
    (void)said(&h);
    fire_annotated(&h, "Busy", "9");
    cr_said(&h, "said duplicate; answered");
    tick(&h, 30);
    cr_said(&h, "observe web; decided web 6>9 scaled by wanted; scale web 6>9; "
                "acted web 6>9 applied");
    harness_stop(&h);
}

Test(engine_sources, samples_are_joined_with_pods)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "memory",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = PER_POD_QUERY, .per_pod = true},
                   .track_utilization = 50,
                   .resource = AS_RESOURCE_MEMORY,
                   .of_limits = true}},
    };
    static const struct as_pod_seen pods[] = {
        {.name = "web-1",
         .phase = AS_POD_RUNNING,
         .ready = AS_TRUE,
         .requests = {1, 1},
         .limits = {1, 1000}},
        {.name = "web-2",
         .phase = AS_POD_RUNNING,
         .ready = AS_TRUE,
         .requests = {1, 1},
         .limits = {1, 1000}},
        {.name = "web-3",
         .phase = AS_POD_RUNNING,
         .ready = AS_TRUE,
         .requests = {1, 1},
         .limits = {1, 1000}},
        {.name = "web-4",
         .phase = AS_POD_RUNNING,
         .ready = AS_TRUE,
         .requests = {1, 1},
         .limits = {1, 1000}},
    };
    static const struct as_sample samples[] = {{.pod = "web-1", .value = 900},
                                               {.pod = "web-2", .value = 900},
                                               {.pod = "web-3", .value = 1200}};
    WITH(h, spec);
    h.pods = pods;
    h.pod_count = AS_ARRAY_SIZE(pods);
    h.queries[0] = (struct query_script){PER_POD_QUERY, {.samples = samples, .sample_count = 3}};
    fire(&h, "Busy", 990);
    /* 100 % of 50 %: twice as many; the missing pod counts as idle: 75 / 50 x 4 */
    cr_said(&h, "said queued; opened; answered; observe web with pods; query " PER_POD_QUERY "; "
                "decided web 4>6 scaled by memory; scale web 4>6; acted web 4>6 applied");
    harness_stop(&h);
}

/* The requests of one container of each pod; another rule of the target has the whole pods'. */
Test(engine_sources, a_container_has_its_own_requests)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "app",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = PER_POD_QUERY, .per_pod = true},
                   .track_utilization = 50,
                   .resource = AS_RESOURCE_CPU,
                   .container = "app"},
                  {.name = "whole",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = PER_POD_QUERY, .per_pod = true},
                   .track_utilization = 50,
                   .resource = AS_RESOURCE_CPU}},
    };
    static const struct as_container_seen both[] = {
        {"log", {.9, NAN}, {NAN, NAN}},
        {"app", {.1, NAN}, {NAN, NAN}},
    };
    static const struct as_sample samples[] = {{.pod = "web-1", .value = .2},
                                               {.pod = "web-2", .value = .2}};
    static const struct {
        size_t first, count;
        const char *said, *error;
    } rows[] = {
        /* 200 % of the container in 2 pods, at a goal of 50 %; 20 % of the whole pods */
        {0, 2, "decided web 4>8 scaled by app", NULL},
        {0, 1, "decided web 4 metric_unavailable", "pod web-1 has no container app"},
        {1, 0, "decided web 4 metric_unavailable", "pod web-1 has no container app"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_pod_seen pods[] = {
            {.name = "web-1",
             .phase = AS_POD_RUNNING,
             .ready = AS_TRUE,
             .start_time = {.set = true},
             .ready_since = {.set = true},
             .requests = {1, NAN},
             .limits = {NAN, NAN},
             .containers = both + rows[i].first,
             .container_count = rows[i].count},
            {.name = "web-2",
             .phase = AS_POD_RUNNING,
             .ready = AS_TRUE,
             .start_time = {.set = true},
             .ready_since = {.set = true},
             .requests = {1, NAN},
             .limits = {NAN, NAN},
             .containers = both,
             .container_count = 2},
        };
        WITH(h, spec);
        h.pods = pods;
        h.pod_count = AS_ARRAY_SIZE(pods);
        h.queries[0] =
            (struct query_script){PER_POD_QUERY, {.samples = samples, .sample_count = 2}};
        fire(&h, "Busy", 990);
        const char *text = said(&h);
        cr_expect_not_null(strstr(text, rows[i].said), "row %zu: %s", i, text);
        cr_expect_str_eq(h.last_error, rows[i].error ? rows[i].error : "", "row %zu", i);
        harness_stop(&h);
    }
}

/* Pods of a Job with the same labels do not count for a rule by owner. A pod whose owner is gone
 * forbids a decrease. The observation is with owners only if a rule needs them. */
Test(engine_sources, pods_of_other_owners_do_not_count)
{
    static const struct spec by_owner = {
        .targets = {{.name = "web", .min = 1, .max = 50}},
        .rules = {{.name = "load",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = PER_POD_QUERY, .per_pod = true},
                   .track_average = 100,
                   .by_owner = true}},
    };
    static const struct spec by_labels = {
        .targets = {{.name = "web", .min = 1, .max = 50}},
        .rules = {{.name = "load",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = PER_POD_QUERY, .per_pod = true},
                   .track_average = 100}},
    };
    static const struct as_sample samples[] = {{.pod = "job-1", .value = 800},
                                               {.pod = "web-1", .value = 20},
                                               {.pod = "web-2", .value = 20}};
    static const struct {
        const struct spec *spec;
        enum as_pod_owner second;
        const char *failure;
        size_t kept;
        const char *said, *error;
    } rows[] = {
        {&by_owner, AS_POD_OF_TARGET, NULL, 2,
         "observe web with pods with owners; query " PER_POD_QUERY "; decided web 4>1 scaled", ""},
        {&by_owner, AS_POD_OF_GONE, NULL, 2, "decided web 4 metric_unavailable",
         "the owner of pod web-2, ReplicaSet web-1f, is gone"},
        {&by_owner, AS_POD_OF_GONE, "no right", 2, "decided web 4 metric_unavailable",
         "the owner of pod web-2, ReplicaSet web-1f, cannot be read: no right"},
        {&by_owner, AS_POD_OF_OTHER, NULL, 1, "decided web 4>1 scaled", ""},
        {&by_labels, AS_POD_OF_GONE, NULL, 3,
         "observe web with pods; query " PER_POD_QUERY "; decided web 4>9 scaled", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_pod_seen pods[] = {
            {.name = "job-1", .phase = AS_POD_RUNNING, .ready = AS_TRUE, .owner = AS_POD_OF_OTHER},
            {.name = "web-1", .phase = AS_POD_RUNNING, .ready = AS_TRUE},
            {.name = "web-2",
             .phase = AS_POD_RUNNING,
             .ready = AS_TRUE,
             .owner = rows[i].second,
             .owner_name = "ReplicaSet web-1f",
             .owner_error = rows[i].failure},
        };
        WITH(h, *rows[i].spec);
        h.pods = pods;
        h.pod_count = AS_ARRAY_SIZE(pods);
        h.queries[0] =
            (struct query_script){PER_POD_QUERY, {.samples = samples, .sample_count = 3}};
        fire(&h, "Busy", 990);
        const char *text = said(&h);
        cr_expect_not_null(strstr(text, rows[i].said), "row %zu: %s", i, text);
        cr_expect_str_eq(h.last_error, rows[i].error, "row %zu", i);
        cr_expect_eq(h.last_sample_count, rows[i].kept, "row %zu", i);
        harness_stop(&h);
    }
}

Test(engine_sources, a_guard_has_to_return_data_for_a_scale_down)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "idle",
                   .match = {"alertname=Idle"},
                   .target = "web",
                   .down = 1,
                   .guard = "up{job=\"{{ .Labels.job }}\"} == 1"},
                  {.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 1}},
    };
    WITH(h, spec);
    fire(&h, "Idle,job=web", 990);
    cr_said(&h, "said queued; opened; answered; observe web; query up{job=\"web\"} == 1; "
                "decided web 4 guarded (3) by idle");
    tick(&h, 15); /* the proof may come at any time: asked for as often as a value */
    cr_said(&h, "observe web; query up{job=\"web\"} == 1");
    answer(&h, 0, "up{job=\"web\"} == 1", 1);
    tick(&h, 15);
    cr_said(&h, "observe web; query up{job=\"web\"} == 1; decided web 4>3 scaled by idle after 1; "
                "scale web 4>3; acted web 4>3 applied");
    h.queries[0].text = NULL;
    fire(&h, "Slow", 990);
    cr_said(&h, "said queued; opened; answered; observe web; query up{job=\"web\"} == 1; "
                "decided web 3>4 scaled by slow; scale web 3>4; acted web 3>4 applied");
    harness_stop(&h);
}

static const struct spec doubled = {
    .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
    .rules = {{.name = "rps",
               .match = {"alertname=Busy"},
               .target = "web",
               .source = {.query = "sum(rps) * 2"},
               .track_average = 100}},
};

Test(engine_sources, new_rules_ask_their_own_questions)
{
    WITH(h, tracking);
    answer(&h, 0, "sum(rps)", 730);
    answer(&h, 1, "sum(rps) * 2", 1460);
    h.hold_calls = true;
    fire(&h, "Busy", 990);
    (void)said(&h);
    harness_reload(&h, &doubled);
    cr_said(&h, "reloaded; query sum(rps) * 2");
    h.hold_calls = false;
    harness_settle(&h);
    cr_said(&h, "decided web 4>15 scaled by rps; scale web 4>15; acted web 4>15 applied");
    harness_stop(&h);
}

static void hold_the_query(struct harness *harness)
{
    harness->hold_calls = true;
    fire(harness, "Busy", 990);
    const struct queued_call query = harness->calls[1];
    harness->call_count = 1;
    harness->hold_calls = false;
    harness_settle(harness);
    harness->calls[harness->call_count++] = query;
    harness->hold_calls = true;
    (void)said(harness);
}

/* A query may hang for as long as its time-out: neither new rules nor the end wait for it. */
Test(engine_sources, new_rules_do_not_wait_for_old_answers)
{
    WITH(h, tracking);
    answer(&h, 0, "sum(rps)", 730);
    answer(&h, 1, "sum(rps) * 2", 1460);
    hold_the_query(&h);
    harness_reload(&h, &doubled);
    cr_said(&h, "reloaded; query sum(rps) * 2");
    h.calls[0] = h.calls[--h.call_count]; /* the old answer does not come */
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert(strstr(said(&h), "decided web 4>15 scaled by rps; scale web 4>15; acted web 4>15"));
    harness_stop(&h);
}

/* A value that takes longer than the time between two reloads. */
Test(engine_sources, a_query_that_new_rules_ask_too_is_not_asked_again)
{
    WITH(h, tracking);
    answer(&h, 0, "sum(rps)", 730);
    hold_the_query(&h);
    for (int i = 0; i < 3; i++) {
        harness_reload(&h, &tracking);
        cr_said(&h, "reloaded");
    }
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert(
        strstr(said(&h), "decided web 4>8 scaled by rps; scale web 4>8; acted web 4>8 applied"));
    harness_stop(&h);
}

Test(engine_sources, without_a_query_new_rules_observe_anew)
{
    static const struct spec plain = {
        .targets = {{.name = "web", .min = 1, .max = 50, .up = 60, .down = 60}},
        .rules = {{.name = "rps", .match = {"alertname=Busy"}, .target = "web", .up = 2}},
    };
    WITH(h, tracking);
    hold_the_query(&h);
    harness_reload(&h, &plain);
    cr_said(&h, "reloaded; observe web");
    h.hold_calls = false;
    harness_settle(&h);
    cr_said(&h, "decided web 4>6 scaled by rps; scale web 4>6; acted web 4>6 applied");
    harness_stop(&h);
}

Test(engine_sources, the_end_does_not_wait_for_answers)
{
    WITH(h, tracking);
    answer(&h, 0, "sum(rps)", 730);
    hold_the_query(&h);
    cr_assert_not(as_engine_is_idle(h.engine));
    harness_send_stop(&h);
    cr_assert(as_engine_is_idle(h.engine));
    h.hold_calls = false;
    harness_settle(&h);
    cr_said(&h, "stopping");
    harness_stop(&h);
}

static const struct as_behavior behavior = {
    .up = {.window_us = 0,
           .policy_count = 1,
           .policies = {{AS_POLICY_PERCENT, 100, 15 * AS_US_PER_S}}},
    .down = {.window_us = 300 * AS_US_PER_S,
             .policy_count = 1,
             .policies = {{AS_POLICY_PERCENT, 100, 15 * AS_US_PER_S}}},
};

/* What a target has at first sight counts as wanted then, as in an HPA. */
Test(engine_sources, the_stabilization_window_holds_from_the_first_look)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50, .behavior = &behavior}},
        .rules = {{.name = "rps",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = "sum(rps)"},
                   .track_average = 100,
                   .every = 15}},
    };
    WITH(h, spec);
    answer(&h, 0, "sum(rps)", 100);
    fire(&h, "Busy", 990);
    cr_assert_not_null(strstr(said(&h), "decided web 4 stabilized by rps"));
    tick(&h, 299);
    cr_assert_null(strstr(said(&h), "scaled"));
    tick(&h, 1);
    cr_assert_not_null(strstr(said(&h), "decided web 4>1 scaled by rps"));
    harness_stop(&h);
}

/* HPA's stabilization window holds over a restart. */
Test(engine_sources, recommendations_are_kept_over_a_restart)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50, .behavior = &behavior}},
        .rules = {{.name = "rps",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = "sum(rps)"},
                   .track_average = 100,
                   .every = 15}},
    };
    WITH(h, spec);
    answer(&h, 0, "sum(rps)", 400);
    fire(&h, "Busy", 990);
    (void)said(&h);
    answer(&h, 0, "sum(rps)", 100);
    tick(&h, 100);
    cr_said(&h, "observe web; query sum(rps); decided web 4 stabilized by rps; "
                "observe web; query sum(rps); observe web; query sum(rps); observe web; "
                "query sum(rps); observe web; query sum(rps); observe web; query sum(rps)");
    harness_crash(&h, 1);
    (void)said(&h);
    tick(&h, 180);
    cr_assert_null(strstr(said(&h), "scaled"));
    tick(&h, 30);
    cr_assert_not_null(strstr(said(&h), "decided web 4>1 scaled by rps"));
    harness_stop(&h);
}

/* An alert that comes while the target is being observed is part of the decision: so is what its
 * rule asks. Without its value the target would be scaled down while it is busy. */
Test(engine_sources, what_comes_up_while_a_target_is_observed_is_asked_too)
{
    WITH(h, tracking);
    answer(&h, 0, "sum(rps)", 730);
    h.hold_calls = true;
    fire(&h, "Idle", 990);
    fire(&h, "Busy", 990);
    cr_said(&h, "said queued; opened; answered; observe web; said queued; opened; answered");
    h.hold_calls = false;
    harness_settle(&h);
    cr_said(&h, "query sum(rps); decided web 4>8 scaled by rps; scale web 4>8; "
                "acted web 4>8 applied");
    harness_stop(&h);
}

/* Ready pods count, not all: a rule that needs them is not decided without. */
Test(engine_sources, pods_are_asked_for_when_a_rule_comes_to_need_them)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50}},
        .rules = {{.name = "load",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = PER_POD_QUERY, .per_pod = true},
                   .track_average = 100,
                   .every = 15},
                  {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
    };
    WITH(h, spec);
    fail(&h, 0, PER_POD_QUERY, "query returned no data");
    h.hold_calls = true;
    fire(&h, "Idle", 990);
    fire(&h, "Busy", 990);
    (void)said(&h);
    h.hold_calls = false;
    harness_settle(&h);
    cr_said(&h, "observe web with pods; query " PER_POD_QUERY "; "
                "decided web 4 metric_unavailable");
    harness_stop(&h);
}

/* `guarded` says that there was no proof, not that nobody asked for it. */
Test(engine_sources, the_guard_of_a_late_alert_is_asked_before_it_is_decided)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50}},
        .rules = {{.name = "idle",
                   .match = {"alertname=Idle"},
                   .target = "web",
                   .down = 1,
                   .guard = "up == 1"},
                  {.name = "odd", .match = {"alertname=Odd"}, .target = "web", .down = 1}},
    };
    WITH(h, spec);
    answer(&h, 0, "up == 1", 1);
    h.hold_calls = true;
    fire(&h, "Odd", 990);
    fire(&h, "Idle", 990);
    (void)said(&h);
    h.hold_calls = false;
    harness_settle(&h);
    cr_assert_null(strstr(said(&h), "guarded"));
    harness_stop(&h);
}

/* A query that names no workload returns the pods of a whole cluster: they are none of the target's
 * business, and would fill the log. */
Test(engine_sources, samples_of_other_pods_are_not_recorded)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50}},
        .rules = {{.name = "load",
                   .match = {"alertname=Busy"},
                   .target = "web",
                   .source = {.query = PER_POD_QUERY, .per_pod = true},
                   .track_average = 100}},
    };
    static const struct as_pod_seen pods[] = {{.name = "web-1", .phase = AS_POD_RUNNING},
                                              {.name = "web-3", .phase = AS_POD_RUNNING}};
    static const struct as_sample samples[] = {{.pod = "db-1", .value = 1},
                                               {.pod = "web-1", .value = 100},
                                               {.pod = "web-2", .value = 1},
                                               {.pod = "web-3", .value = 100},
                                               {.pod = "zoo-1", .value = 1}};
    static const struct {
        size_t first, count, kept;
        const char *decided;
    } rows[] = {
        {0, 5, 2, "decided web 4 within_tolerance by load"},
        {2, 1, 0, "decided web 4 metric_unavailable"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        WITH(h, spec);
        h.pods = pods;
        h.pod_count = AS_ARRAY_SIZE(pods);
        h.queries[0] = (struct query_script){
            PER_POD_QUERY, {.samples = samples + rows[i].first, .sample_count = rows[i].count}};
        fire(&h, "Busy", 990);
        cr_expect_not_null(strstr(said(&h), rows[i].decided), "row %zu", i);
        cr_expect_eq(h.last_sample_count, rows[i].kept, "row %zu", i);
        harness_stop(&h);
    }
}

/* What a rule would do that is only being tried leaves no trace in what the others do. */
Test(engine_sources, a_dry_rule_does_not_begin_the_windows_of_the_others)
{
    static const struct spec spec = {
        .targets = {{.name = "web", .min = 1, .max = 50, .behavior = &behavior}},
        .rules = {{.name = "try",
                   .match = {"alertname=Tried"},
                   .target = "web",
                   .down = 1,
                   .dry_run = true},
                  {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1}},
    };
    WITH(h, spec);
    fire(&h, "Tried", 990);
    tick(&h, 400);
    (void)said(&h);
    fire(&h, "Idle", 990);
    cr_assert_not_null(strstr(said(&h), "decided web 4 stabilized by idle"));
    harness_stop(&h);
}

/* A rule that asks something else for each of many alerts leaves room for the others; one in dry
 * run takes what they leave. */
Test(engine_sources, a_rule_with_many_questions_does_not_silence_the_others)
{
    for (int is_dry = 0; is_dry < 2; is_dry++) {
        const struct spec spec = {
            .targets = {{.name = "web", .min = 1, .max = 50}},
            .rules = {{.name = "each",
                       .match = {"alertname=Each"},
                       .target = "web",
                       .source = {.query = "rps{pod=\"{{ .Labels.pod }}\"}"},
                       .track_average = 100,
                       .dry_run = is_dry},
                      {.name = "rps",
                       .match = {"alertname=Busy"},
                       .target = "web",
                       .source = {.query = "sum(rps)"},
                       .track_average = 100}},
        };
        WITH(h, spec);
        answer(&h, 0, "sum(rps)", 730);
        for (int i = 0; i < 70; i++) {
            char labels[32];
            (void)snprintf(labels, sizeof(labels), "Each,pod=%d", i);
            fire(&h, labels, 990);
        }
        (void)said(&h);
        fire(&h, "Busy", 990);
        cr_expect_not_null(strstr(said(&h), "decided web 4>8 scaled by rps"), "dry: %d", is_dry);
        harness_stop(&h);
    }
}
