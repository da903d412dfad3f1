/*
 * Rules in virtual time: sizes follow decisions, deadlines run in order, and a simulation is
 * reproducible.
 */
#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/tools/simulation.h>

#include "../../support/rule_spec.h"

#define START (INT64_C(1577836800) * AS_US_PER_S) /* 2020-01-01T00:00:00Z */

static const struct spec slow = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 60, .down = 120},
                {.name = "any",
                 .address = "{{ .Labels.app }}",
                 .allow = "*",
                 .min = 1,
                 .max = 20,
                 .up = 60}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2},
              {.name = "idle", .match = {"alertname=Idle"}, .target = "web", .down = 1},
              {.name = "busy", .match = {"alertname=Busy"}, .target = "any", .up = 1}},
};

struct stage {
    struct as_ruleset *ruleset;
    struct as_simulation *simulation;
    struct as_buf said; /* "60 web 4>6 scaled; " */
    uint64_t notifications;
};

static void say(struct stage *stage, as_wall_time at, const char *target, int32_t from, int32_t to,
                enum as_reason reason)
{
    const char *slash = strrchr(target, '/');
    as_buf_printf(&stage->said, "%s%g %s %d>%d %s", stage->said.size ? "; " : "",
                  (double)(at.us - START) / AS_US_PER_S, slash ? slash + 1 : target, from, to,
                  as_reason_get_word(reason));
}

static void on_decision(void *context, as_wall_time at, const struct as_decision_record *record)
{
    const struct as_decision *decision = record->output;
    say(context, at, record->target, decision->replicas, decision->desired, decision->reason);
}

static void on_action(void *context, as_wall_time at, const struct as_action_record *record)
{
    if (record->outcome != AS_REASON_APPLIED)
        say(context, at, record->target, 0, 0, record->outcome);
}

static void on_notification(void *context, as_wall_time at,
                            const struct as_notification_record *record)
{
    struct stage *stage = context;
    (void)at;
    if (!record->outcomes[0].is_queued)
        as_buf_printf(&stage->said, "%salert %s", stage->said.size ? "; " : "",
                      as_reason_get_word(record->outcomes[0].reason));
}

static void on_no_data(void *context, as_wall_time at, const struct as_query *query)
{
    struct stage *stage = context;
    (void)at;
    as_buf_printf(&stage->said, "%sno data: %s", stage->said.size ? "; " : "", query->text);
}

static void stage_init(struct stage *stage, const struct spec *spec)
{
    *stage = (struct stage){.ruleset = spec_make_ruleset(spec), .said = AS_BUF_INIT(1 << 20)};
    const struct as_simulation_config config = {
        .ruleset = stage->ruleset,
        .engine = {.incident_expiry_us = AS_US_PER_DAY,
                   .stale_window_us = 5 * AS_US_PER_MIN,
                   .seed = 1},
        .start = {START},
        .callbacks = {.decision = on_decision,
                      .action = on_action,
                      .notification = on_notification,
                      .no_data = on_no_data,
                      .context = stage},
    };
    stage->simulation = as_simulation_new(&config);
}

static void stage_deinit(struct stage *stage)
{
    as_simulation_free(stage->simulation);
    as_ruleset_free(stage->ruleset);
    as_buf_deinit(&stage->said);
}

static as_wall_time at(double seconds)
{
    return (as_wall_time){START + (int64_t)(seconds * AS_US_PER_S)};
}

static void notify(struct stage *stage, const char *name, const char *app, double starts,
                   bool is_resolved)
{
    const struct as_label labels[] = {{"alertname", name}, {"app", app}};
    struct as_alert alert = {.status = is_resolved ? AS_ALERT_RESOLVED : AS_ALERT_FIRING,
                             .starts_at = at(starts),
                             .ends_at = as_simulation_get_now(stage->simulation)};
    char receiver[] = "alertscaler", empty[] = "";
    struct as_notification notification = {
        .receiver = receiver,
        .group_key = empty,
        .reason = empty,
        .alerts = &alert,
        .alert_count = 1,
        .remote = empty,
        .credential = empty,
        .traceparent = empty,
    };
    (void)snprintf(notification.id, sizeof(notification.id), "%026llu",
                   (unsigned long long)++stage->notifications);
    cr_assert_eq(as_labels_new(labels, 2, &alert.labels), 0);
    cr_assert_eq(as_labels_new(NULL, 0, &alert.annotations), 0);
    alert.digest = as_labels_get_digest(alert.labels);
    alert.fingerprint = as_labels_get_fingerprint(alert.labels);
    as_simulation_notify(stage->simulation, &notification);
    as_labels_free(alert.labels);
    as_labels_free(alert.annotations);
}

#define cr_said(stage, text)                                                                       \
    cr_assert_str_eq((stage)->said.data ? (stage)->said.data : "", text, "%s", (stage)->said.data)

Test(simulation, a_size_that_was_set_is_the_size_from_then_on)
{
    struct stage stage;
    stage_init(&stage, &slow);
    as_simulation_set_size(stage.simulation, "web", 4);
    notify(&stage, "Slow", "", 0, false);
    cr_assert_eq(as_simulation_get_size(stage.simulation, "web"), 6);
    cr_assert_eq(
        as_simulation_get_size(stage.simulation, "kubernetes/default/apps/v1/Deployment/shop/web"),
        6);
    cr_said(&stage, "0 web 4>6 scaled");
    stage_deinit(&stage);
}

Test(simulation, time_goes_through_every_deadline)
{
    struct stage stage;
    stage_init(&stage, &slow);
    as_simulation_set_size(stage.simulation, "web", 4);
    notify(&stage, "Slow", "", 0, false);
    as_simulation_advance(stage.simulation, at(120));
    cr_said(&stage, "0 web 4>6 scaled; 60 web 6>8 scaled; 120 web 8>10 scaled");
    stage_deinit(&stage);
}

Test(simulation, approaching_a_time_leaves_its_deadlines_to_the_next_call)
{
    struct stage stage;
    stage_init(&stage, &slow);
    as_simulation_set_size(stage.simulation, "web", 4);
    notify(&stage, "Slow", "", 0, false);
    as_simulation_approach(stage.simulation, at(60));
    cr_assert_eq(as_simulation_get_now(stage.simulation).us, at(60).us);
    cr_assert_eq(as_simulation_get_size(stage.simulation, "web"), 6);
    as_simulation_set_size(stage.simulation, "web", 10);
    as_simulation_advance(stage.simulation, at(60));
    cr_assert_eq(as_simulation_get_size(stage.simulation, "web"), 12);
    stage_deinit(&stage);
}

Test(simulation, time_never_goes_back)
{
    struct stage stage;
    stage_init(&stage, &slow);
    as_simulation_advance(stage.simulation, at(60));
    as_simulation_advance(stage.simulation, at(30));
    as_simulation_approach(stage.simulation, at(20));
    cr_assert_eq(as_simulation_get_now(stage.simulation).us, at(60).us);
    stage_deinit(&stage);
}

Test(simulation, what_has_no_size_is_not_found)
{
    struct stage stage;
    stage_init(&stage, &slow);
    notify(&stage, "Slow", "", 0, false);
    cr_said(&stage, "0 web 0>0 target_not_found");
    cr_assert_eq(as_simulation_get_size(stage.simulation, "web"), -1);
    as_simulation_set_size(stage.simulation, "web", 4);
    as_simulation_advance(stage.simulation, at(60));
    cr_assert_eq(as_simulation_get_size(stage.simulation, "web"), 6);
    cr_assert_eq(as_simulation_get_size(stage.simulation, "nothing"), -1);
    stage_deinit(&stage);
}

Test(simulation, targets_of_a_template_are_set_by_their_ids)
{
    struct stage stage;
    stage_init(&stage, &slow);
    as_simulation_set_size(stage.simulation, "web", 4);
    as_simulation_set_size(stage.simulation, "kubernetes/default/apps/v1/Deployment/shop/one", 1);
    as_simulation_set_size(stage.simulation, "kubernetes/default/apps/v1/Deployment/shop/two", 2);
    notify(&stage, "Busy", "one", 0, false);
    notify(&stage, "Busy", "two", 0, false);
    cr_said(&stage, "0 one 1>2 scaled; 0 two 2>3 scaled");
    stage_deinit(&stage);
}

Test(simulation, an_alert_without_a_rule_says_so)
{
    struct stage stage;
    stage_init(&stage, &slow);
    as_simulation_set_size(stage.simulation, "web", 4);
    notify(&stage, "Other", "", 0, false);
    cr_said(&stage, "alert no_rule");
    stage_deinit(&stage);
}

/* --- queries and pods --- */

static const struct spec tracking = {
    .targets = {{.name = "web", .min = 1, .max = 1000000, .up = 15, .down = 15}},
    .rules = {{.name = "rps",
               .match = {"alertname=Busy"},
               .target = "web",
               .source = {.query = "sum(rate(rps{app=\"a b\"}[1m]))"},
               .track_average = 100,
               .every = 15},
              {.name = "cpu",
               .match = {"alertname=Hot"},
               .target = "web",
               .source = {.query = "sum by (pod) (cpu)", .per_pod = true},
               .track_utilization = 50,
               .every = 15},
              {.name = "full",
               .match = {"alertname=Full"},
               .target = "web",
               .source = {.nodes = AS_NODES_UTILIZATION},
               .track_value = 50,
               .every = 15}},
};

static void answer(struct stage *stage, const char *query, double value)
{
    as_simulation_set_query(stage->simulation, query, &(struct as_query_result){.value = value});
}

static void answer_pods(struct stage *stage, const struct as_sample *samples, size_t count)
{
    as_simulation_set_query(stage->simulation, "sum by (pod) (cpu)",
                            &(struct as_query_result){.samples = samples, .sample_count = count});
}

Test(simulation, a_query_is_found_however_it_is_laid_out)
{
    struct stage stage;
    stage_init(&stage, &tracking);
    as_simulation_set_size(stage.simulation, "web", 4);
    answer(&stage, "  sum (\n\trate( rps{ app=\"a b\" } [1m] ) )\n", 700);
    notify(&stage, "Busy", "", 0, false);
    cr_said(&stage, "0 web 4>7 scaled");
    answer(&stage, "sum(rate(rps{app=\"a b\"}[1m]))", 1100); /* the same one */
    as_simulation_advance(stage.simulation, at(15));
    cr_assert_eq(as_simulation_get_size(stage.simulation, "web"), 11);
    stage_deinit(&stage);
}

Test(simulation, white_space_in_quotes_counts)
{
    struct stage stage;
    stage_init(&stage, &tracking);
    as_simulation_set_size(stage.simulation, "web", 4);
    answer(&stage, "sum(rate(rps{app=\"ab\"}[1m]))", 700);
    notify(&stage, "Busy", "", 0, false);
    cr_said(&stage, "no data: sum(rate(rps{app=\"a b\"}[1m])); 0 web 4>4 metric_unavailable");
    stage_deinit(&stage);
}

Test(simulation, answers_that_are_none_say_why)
{
    static const struct as_sample sample = {.pod = "web-1", .value = 1};
    static const struct as_query_result rows[] = {
        {.error = "connection refused"},
        {.value = (double)NAN},
        {.value = (double)INFINITY},
        {.samples = &sample, .sample_count = 1},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct stage stage;
        stage_init(&stage, &tracking);
        as_simulation_set_size(stage.simulation, "web", 4);
        as_simulation_set_query(stage.simulation, "sum(rate(rps{app=\"a b\"}[1m]))", &rows[i]);
        notify(&stage, "Busy", "", 0, false);
        cr_said(&stage, "0 web 4>4 metric_unavailable");
        stage_deinit(&stage);
    }
}

static struct as_pod_seen make_pod(const char *name, double cpu)
{
    return (struct as_pod_seen){.name = name,
                                .phase = AS_POD_RUNNING,
                                .ready = AS_TRUE,
                                .start_time = {true, {START - AS_US_PER_H}},
                                .ready_since = {true, {START - AS_US_PER_H}},
                                .requests = {cpu, (double)NAN},
                                .limits = {(double)NAN, (double)NAN}};
}

Test(simulation, pods_that_were_told_are_those_that_are_seen)
{
    /* in no order, and the samples neither */
    const struct as_pod_seen pods[] = {make_pod("web-b", 0.5), make_pod("web-a", 0.5)};
    static const struct as_sample samples[] = {{.pod = "web-b", .value = 0.5},
                                               {.pod = "web-a", .value = 0.5}};
    struct stage stage;
    stage_init(&stage, &tracking);
    as_simulation_set_size(stage.simulation, "web", 2);
    as_simulation_set_pods(stage.simulation, "web", pods, AS_ARRAY_SIZE(pods));
    answer_pods(&stage, samples, AS_ARRAY_SIZE(samples));
    notify(&stage, "Hot", "", 0, false);
    cr_said(&stage, "0 web 2>4 scaled");
    stage_deinit(&stage);
}

Test(simulation, pods_that_nobody_told_are_as_many_as_the_size_and_ask_for_nothing)
{
    static const struct as_sample samples[] = {{.pod = "web-1", .value = 0.5},
                                               {.pod = "web-10", .value = 0.5}};
    struct stage stage;
    stage_init(&stage, &tracking);
    as_simulation_set_size(stage.simulation, "web", 10);
    answer_pods(&stage, samples, AS_ARRAY_SIZE(samples));
    notify(&stage, "Hot", "", 0, false);
    cr_said(&stage, "0 web 10>10 metric_unavailable");
    as_simulation_set_size(stage.simulation, "web", 0);
    as_simulation_advance(stage.simulation, at(60));
    as_simulation_set_size(stage.simulation, "web", 999999); /* more than anybody reads */
    as_simulation_advance(stage.simulation, at(120));
    cr_assert(strstr(stage.said.data, "rejected"), "%s", stage.said.data);
    stage_deinit(&stage);
}

static char *perform(uint64_t steps)
{
    struct stage stage;
    stage_init(&stage, &slow);
    as_simulation_set_size(stage.simulation, "web", 4);
    for (uint64_t i = 0; i < steps; i++) {
        as_simulation_approach(stage.simulation, at((double)i * 47));
        notify(&stage, i % 3 ? "Slow" : "Idle", i % 2 ? "a" : "b", (double)i * 47, i % 7 == 6);
    }
    size_t size;
    char *said = as_buf_take(&stage.said, &size);
    stage_deinit(&stage);
    return said;
}

Test(simulation, nodes_that_were_told_are_copied_with_their_texts)
{
    char *name = as_xstrdup("node-7");
    struct stage stage;
    stage_init(&stage, &tracking);
    as_simulation_set_size(stage.simulation, "web", 4);
    as_simulation_set_nodes(stage.simulation, "web",
                            &(struct as_nodes_seen){.open = 1, .lacking = {name, NULL}});
    free(name);
    notify(&stage, "Full", "", 0, false);
    cr_said(&stage, "0 web 4>4 metric_unavailable");
    stage_deinit(&stage);
}

Test(simulation, the_same_seed_says_the_same)
{
    AS_CLEANUP(as_free_p) char *first = perform(500);
    AS_CLEANUP(as_free_p) char *second = perform(500);
    cr_assert_gt(strlen(first), 1000);
    cr_assert_str_eq(first, second);
}
