/*
 * The metrics: events are counted under the documented labels, Prometheus can read both formats,
 * and nothing from outside makes their number grow without end.
 */
#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/str.h>

#include "../ui/world.h"
#include "runtime/metrics_private.h"
#include "source_root.h"

extern char **environ;

static struct world world;
static struct as_buf out;

static void setup(void)
{
    world_open(&world);
    out = AS_BUF_INIT(64 * 1024 * 1024);
}

static void teardown(void)
{
    as_buf_deinit(&out);
    world_close(&world);
}

TestSuite(metrics, .init = setup, .fini = teardown);

static void print(enum as_metrics_format format)
{
    const struct as_view view = world_look(&world);
    as_buf_clear(&out);
    as_metrics_print(world.metrics, &view, format, &out);
    cr_assert_eq(as_buf_check(&out), 0);
}

/* A whole line is there, once. */
static void expect_line(const char *line)
{
    AS_CLEANUP(as_free_p) char *whole = as_xasprintf("\n%s\n", line);
    const char *at = strstr(out.data, whole);
    cr_assert(at, "no line %s in:\n%s", line, out.data);
    cr_assert_not(strstr(at + 1, whole), "twice: %s", line);
}

static void expect_none(const char *part)
{
    cr_assert_not(strstr(out.data, part), "%s is in:\n%s", part, out.data);
}

Test(metrics, count_what_the_engine_does)
{
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    world_notify(&world, AS_ALERT_FIRING, "Nobody", NULL);
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    world_notify(&world, AS_ALERT_RESOLVED, "Slow", NULL);
    print(AS_METRICS_TEXT);
    static const char *const lines[] = {
        "alertscaler_alerts_total{status=\"firing\",outcome=\"queued\"} 2",
        "alertscaler_alerts_total{status=\"firing\",outcome=\"duplicate\"} 1",
        "alertscaler_alerts_total{status=\"firing\",outcome=\"no_rule\"} 1",
        "alertscaler_alerts_total{status=\"resolved\",outcome=\"queued\"} 1",
        "alertscaler_truncated_alerts_total{receiver=\"scaler\"} 3",
        "alertscaler_incidents_open 1",
        "alertscaler_decisions_total{rule=\"slow\",reason=\"scaled\"} 1",
        "alertscaler_decisions_total{rule=\"each\",reason=\"scaled\"} 1",
        ("alertscaler_actions_total{target_kind=\"kubernetes\",direction=\"up\","
         "outcome=\"applied\"} 2"),
        "alertscaler_action_duration_seconds_count{target_kind=\"kubernetes\"} 2",
        "alertscaler_notification_to_action_seconds_count 2",
        "alertscaler_alert_to_action_seconds_count 2",
        /* 30 s and a few steps of a millisecond: beyond 30, within 60 */
        "alertscaler_alert_to_action_seconds_bucket{le=\"30.0\"} 0",
        "alertscaler_alert_to_action_seconds_bucket{le=\"60.0\"} 2",
        "alertscaler_alert_to_action_seconds_bucket{le=\"+Inf\"} 2",
        "alertscaler_queue_length{queue=\"notifications\"} 5",
        "alertscaler_queue_length{queue=\"targets\"} 0",
        "alertscaler_http_connections 7",
        "alertscaler_leader 1",
        "alertscaler_paused 0",
        "alertscaler_targets_paused 0",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(lines); i++)
        expect_line(lines[i]);
}

/* The engine's configuration in force is that of the world, and these members. */
static void reload(const struct as_matcher *watchdog, size_t count, uint64_t incident_bytes_max)
{
    world_step(&world, (struct as_event){.kind = AS_EVENT_RULES,
                                         .ruleset = world.ruleset,
                                         .config = {.incident_expiry_us = AS_US_PER_DAY,
                                                    .stale_window_us = 2 * AS_US_PER_MIN,
                                                    .seed = 1,
                                                    .scopes = world_scopes,
                                                    .scope_count = AS_ARRAY_SIZE(world_scopes),
                                                    .incident_bytes_max = incident_bytes_max,
                                                    .watchdog = watchdog,
                                                    .watchdog_count = count,
                                                    .watchdog_within_us = AS_US_PER_MIN}});
}

Test(metrics, do_not_count_the_watchdog_as_an_alert_without_a_rule)
{
    struct as_matcher watchdog;
    cr_assert_eq(as_matcher_init(&watchdog, "alertname=\"Watchdog\"", NULL), 0);
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    reload(&watchdog, 1, 0);
    world_notify(&world, AS_ALERT_FIRING, "Watchdog", NULL);
    world_notify(&world, AS_ALERT_FIRING, "Watchdog", NULL);
    world_notify(&world, AS_ALERT_FIRING, "Nobody", NULL);
    world.credential = "narrow"; /* its watchdog proves nothing */
    world_notify(&world, AS_ALERT_FIRING, "Watchdog", NULL);
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_alerts_total{status=\"firing\",outcome=\"watchdog\"} 2");
    expect_line("alertscaler_alerts_total{status=\"firing\",outcome=\"no_rule\"} 2");
    reload(NULL, 0, 0);
    as_matcher_deinit(&watchdog);
}

Test(metrics, show_the_limit_of_incident_memory)
{
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    print(AS_METRICS_TEXT);
    expect_none("alertscaler_incident_memory_limit_bytes"); /* no limit */
    reload(NULL, 0, 1 << 20);
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_incident_memory_limit_bytes 1048576");
}

Test(metrics, show_whether_a_cluster_is_reachable)
{
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_cluster_reachable{cluster=\"default\"} 1");
    world.scale_result = AS_REASON_UNREACHABLE;
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_cluster_reachable{cluster=\"default\"} 0");
}

static void order(enum as_operator_command_kind kind, const char *target)
{
    const struct as_operator_command order = {
        .kind = kind, .target = target, .who = "", .remote = "", .reason = "test"};
    world_step(&world, (struct as_event){
                           .kind = AS_EVENT_ORDER, .call_id = ++world.requests, .order = &order});
}

Test(metrics, tell_a_pause_of_all_from_pauses_of_single_targets)
{
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    order(AS_OPERATOR_COMMAND_PAUSE, "checkout");
    order(AS_OPERATOR_COMMAND_PAUSE, "kubernetes/default/apps/v1/Deployment/shop/cart");
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_paused 0");
    expect_line("alertscaler_targets_paused 2");
    order(AS_OPERATOR_COMMAND_RESUME, "checkout");
    order(AS_OPERATOR_COMMAND_PAUSE, NULL);
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_paused 1");
    expect_line("alertscaler_targets_paused 1");
}

/* One who follows does not know which targets are paused, and does not say "none". */
Test(metrics, of_pauses_of_targets_come_from_the_leader)
{
    struct as_view view = world_look(&world);
    view.engine = NULL;
    as_metrics_print(world.metrics, &view, AS_METRICS_TEXT, &out);
    cr_assert_eq(as_buf_check(&out), 0);
    expect_none("alertscaler_targets_paused");
}

Test(metrics, count_actions_that_failed)
{
    world.scale_result = AS_REASON_FORBIDDEN;
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_actions_total{target_kind=\"kubernetes\",direction=\"up\","
                "outcome=\"forbidden\"} 1");
    expect_line("alertscaler_notification_to_action_seconds_count 0");
}

Test(metrics, show_targets_by_name_and_templated_ones_by_id)
{
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_target_replicas{target=\"checkout\"} 6");
    expect_line("alertscaler_target_desired_replicas{target=\"checkout\"} 6");
    expect_line("alertscaler_target_min_replicas{target=\"checkout\"} 2");
    expect_line("alertscaler_target_max_replicas{target=\"checkout\"} 20");
    expect_line("alertscaler_target_replicas{target=\"kubernetes/default/apps/v1/Deployment/shop/"
                "cart\"} 8");
    expect_none("target=\"any-shop\"");
    const char *lock = strstr(
        out.data,
        "alertscaler_target_locked_until_timestamp_seconds{target=\"checkout\",direction=\"up\"} ");
    cr_assert(lock);
    const double until = strtod(strchr(lock, ' ') + 1, NULL);
    const double start = (double)WORLD_START_US / 1e6;
    cr_assert(until > start + 60 && until < start + 61, "%f", until - start);
    world.mono.us += AS_US_PER_H;
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_target_locked_until_timestamp_seconds{target=\"checkout\","
                "direction=\"up\"} 0");
}

Test(metrics, show_at_most_a_hundred_templated_targets)
{
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    for (int i = 0; i < 150; i++) {
        char app[16];
        (void)snprintf(app, sizeof(app), "app-%03d", i);
        world_notify(&world, AS_ALERT_FIRING, "Every", app);
    }
    print(AS_METRICS_TEXT);
    size_t count = 0;
    for (const char *at = out.data;
         (at = strstr(at, "\nalertscaler_target_max_replicas{target=\"kubernetes/")); at++)
        count++;
    cr_assert_eq(count, 100);
    expect_line("alertscaler_target_max_replicas{target=\"checkout\"} 20");
}

static void count_truncated(const char *receiver)
{
    const struct as_notification notification = {.receiver = (char *)(uintptr_t)receiver,
                                                 .truncated = 1};
    const struct as_notification_record record = {.notification = &notification};
    as_metrics_on_effect(world.metrics, &(struct as_effect){.kind = AS_EFFECT_RECORD_NOTIFICATION,
                                                            .notification = &record});
}

Test(metrics, bound_the_receivers)
{
    for (int i = 0; i < 250; i++) {
        char receiver[32];
        (void)snprintf(receiver, sizeof(receiver), "receiver-%d", i);
        count_truncated(receiver);
    }
    count_truncated("receiver-0");
    print(AS_METRICS_TEXT);
    cr_assert_eq(world.metrics->families[METRIC_TRUNCATED_ALERTS].count, 101);
    expect_line("alertscaler_truncated_alerts_total{receiver=\"receiver-0\"} 2");
    expect_line("alertscaler_truncated_alerts_total{receiver=\"receiver-99\"} 1");
    expect_line("alertscaler_truncated_alerts_total{receiver=\"other\"} 150");
}

Test(metrics, escape_label_values_and_cut_long_ones)
{
    char longer[1000];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    memcpy(longer + METRIC_VALUE_MAX - 1, "\xc3\xa4", 2); /* one letter over the edge */
    count_truncated("a\\b\"c\nd{}=,");
    count_truncated("Straße");
    count_truncated(longer);
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_truncated_alerts_total{receiver=\"a\\\\b\\\"c\\nd{}=,\"} 1");
    expect_line("alertscaler_truncated_alerts_total{receiver=\"Straße\"} 1");
    longer[METRIC_VALUE_MAX - 1] = '\0';
    AS_CLEANUP(as_free_p)
    char *line = as_xasprintf("alertscaler_truncated_alerts_total{receiver=\"%s\"} 1", longer);
    expect_line(line);
}

/* Else a page has a series twice, and Prometheus refuses the page. */
Test(metrics, two_values_never_have_the_same_text)
{
    static const struct {
        const char *value, *text;
    } rows[] = {
        {"\xc2\x9b", "\\\\u009b"}, {"\\u009b", "\\\\u005cu009b"},   {"\x9b", "\\\\x9b"},
        {"\\x9b", "\\\\u005cx9b"}, {"\\u005c", "\\\\u005cu005c"},   {"\\", "\\\\"},
        {"\\user", "\\\\user"},    {"\\\xc2\x9b", "\\\\\\\\u009b"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        count_truncated(rows[i].value);
    print(AS_METRICS_TEXT);
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        AS_CLEANUP(as_free_p)
        char *line =
            as_xasprintf("alertscaler_truncated_alerts_total{receiver=\"%s\"} 1", rows[i].text);
        expect_line(line);
    }
}

Test(metrics, sort_observations_into_cumulated_buckets)
{
    static const int64_t durations_us[] = {-5, 0, 500, 501, 1000, 10000000, 10000001};
    for (size_t i = 0; i < AS_ARRAY_SIZE(durations_us); i++)
        as_metrics_on_http(world.metrics, "webhook", i < 5 ? 200 : 503, durations_us[i]);
    print(AS_METRICS_TEXT);
    static const char *const lines[] = {
        "alertscaler_http_requests_total{handler=\"webhook\",code=\"200\"} 5",
        "alertscaler_http_requests_total{handler=\"webhook\",code=\"503\"} 2",
        "alertscaler_http_request_duration_seconds_bucket{handler=\"webhook\",le=\"0.0005\"} 3",
        "alertscaler_http_request_duration_seconds_bucket{handler=\"webhook\",le=\"0.001\"} 5",
        "alertscaler_http_request_duration_seconds_bucket{handler=\"webhook\",le=\"5.0\"} 5",
        "alertscaler_http_request_duration_seconds_bucket{handler=\"webhook\",le=\"10.0\"} 6",
        "alertscaler_http_request_duration_seconds_bucket{handler=\"webhook\",le=\"+Inf\"} 7",
        "alertscaler_http_request_duration_seconds_sum{handler=\"webhook\"} 20.002002",
        "alertscaler_http_request_duration_seconds_count{handler=\"webhook\"} 7",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(lines); i++)
        expect_line(lines[i]);
}

static void follow(const char *rule, enum as_effect_end end, int64_t ready_us, int64_t resolved_us)
{
    const struct as_effect_record record = {
        .rule = rule, .end = end, .ready_us = ready_us, .resolved_us = resolved_us};
    as_metrics_on_effect(world.metrics, &(struct as_effect){.kind = AS_EFFECT_RECORD_EVALUATION,
                                                            .evaluation = &record});
}

Test(metrics, tell_by_rule_whether_actions_helped)
{
    follow("slow", AS_EVALUATION_RESOLVED, 12 * AS_US_PER_S, 90 * AS_US_PER_S);
    follow("slow", AS_EVALUATION_RESOLVED, -1, 3600 * AS_US_PER_S);
    follow("slow", AS_EVALUATION_NOT_RESOLVED, 61 * AS_US_PER_S, -1);
    follow("each", AS_EVALUATION_UNKNOWN, -1, -1);
    print(AS_METRICS_TEXT);
    static const char *const lines[] = {
        "alertscaler_effects_total{rule=\"slow\",ended=\"resolved\"} 2",
        "alertscaler_effects_total{rule=\"slow\",ended=\"not_resolved\"} 1",
        "alertscaler_effects_total{rule=\"each\",ended=\"unknown\"} 1",
        "alertscaler_time_to_ready_seconds_bucket{rule=\"slow\",le=\"10.0\"} 0",
        "alertscaler_time_to_ready_seconds_bucket{rule=\"slow\",le=\"15.0\"} 1",
        "alertscaler_time_to_ready_seconds_bucket{rule=\"slow\",le=\"120.0\"} 2",
        "alertscaler_time_to_ready_seconds_count{rule=\"slow\"} 2",
        "alertscaler_time_to_ready_seconds_sum{rule=\"slow\"} 73",
        "alertscaler_time_to_resolve_seconds_bucket{rule=\"slow\",le=\"1800.0\"} 1",
        "alertscaler_time_to_resolve_seconds_bucket{rule=\"slow\",le=\"3600.0\"} 2",
        "alertscaler_time_to_resolve_seconds_count{rule=\"slow\"} 2",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(lines); i++)
        expect_line(lines[i]);
    expect_none("time_to_ready_seconds_count{rule=\"each\"}");
}

/* Many more handlers and codes than the cache has places: none is counted for another. */
Test(metrics, keep_handlers_and_codes_apart)
{
    static const char names[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l";
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof(names) - 1; i += 2) {
            for (int status = 200; status < 216; status++)
                as_metrics_on_http(world.metrics, names + i, status, 1);
        }
    }
    as_metrics_on_http(world.metrics, "", 404, 1);
    print(AS_METRICS_TEXT);
    for (size_t i = 0; i < sizeof(names) - 1; i += 2) {
        for (int status = 200; status < 216; status++) {
            AS_CLEANUP(as_free_p)
            char *line = as_xasprintf(
                "alertscaler_http_requests_total{handler=\"%c\",code=\"%d\"} 3", names[i], status);
            expect_line(line);
        }
    }
    expect_line("alertscaler_http_requests_total{handler=\"other\",code=\"404\"} 1");
}

Test(metrics, count_clients_commits_and_reloads)
{
    as_metrics_on_client(world.metrics, "kubernetes", "get_scale", "200", 20000);
    as_metrics_on_client(world.metrics, "kubernetes", "get_scale", "timeout", 5000000);
    as_metrics_on_source(world.metrics, "prometheus", "ok", 10000);
    as_metrics_on_source(world.metrics, "prometheus", "no_data", 10000);
    as_metrics_on_source(world.metrics, "alertmanager", "timeout", 10000000);
    as_metrics_on_commit(world.metrics, 3000, 10, 12, 4096, (as_wall_time){500000});
    as_metrics_on_commit(world.metrics, 3000, 1, 2, 512, (as_wall_time){3500000});
    as_metrics_on_commit(world.metrics, 3000, 1, 0, 512, (as_wall_time){4500000});
    as_metrics_on_reload(world.metrics, true, (as_wall_time){1500000});
    as_metrics_on_reload(world.metrics, false, (as_wall_time){2500000});
    as_metrics_on_notification(world.metrics, AS_NOTIFICATION_DENIED);
    print(AS_METRICS_TEXT);
    static const char *const lines[] = {
        "alertscaler_provider_requests_total{provider=\"kubernetes\",operation=\"get_scale\","
        "code=\"200\"} 1",
        "alertscaler_provider_duration_seconds_bucket{provider=\"kubernetes\","
        "operation=\"get_scale\",code=\"timeout\",le=\"5.0\"} 1",
        "alertscaler_source_requests_total{source=\"prometheus\",outcome=\"ok\"} 1",
        "alertscaler_source_requests_total{source=\"alertmanager\",outcome=\"timeout\"} 1",
        "alertscaler_source_duration_seconds_count{source=\"prometheus\"} 2",
        "alertscaler_source_duration_seconds_sum{source=\"alertmanager\"} 10",
        "alertscaler_store_commits_total 3",
        "alertscaler_store_commit_duration_seconds_sum 0.009",
        "alertscaler_action_log_records_total 14",
        "alertscaler_action_log_last_record_timestamp_seconds 3.5",
        "alertscaler_config_last_reload_successful 0",
        "alertscaler_config_last_reload_success_timestamp_seconds 1.5",
        "alertscaler_notifications_total{result=\"denied\"} 1",
        "alertscaler_notifications_total{result=\"ok\"} 0",
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(lines); i++)
        expect_line(lines[i]);
}

Test(metrics, write_openmetrics)
{
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    print(AS_METRICS_OPENMETRICS);
    expect_line("# TYPE alertscaler_alerts counter");
    expect_line("alertscaler_alerts_total{status=\"firing\",outcome=\"queued\"} 1");
    expect_line("# TYPE process_cpu_seconds counter");
    expect_line("# TYPE alertscaler_alert_to_action_seconds histogram");
    expect_none("# TYPE alertscaler_alerts_total");
    cr_assert(out.size > 6 && strcmp(out.data + out.size - 6, "# EOF\n") == 0);
    print(AS_METRICS_TEXT);
    expect_line("# TYPE alertscaler_alerts_total counter");
    expect_none("# EOF");
}

/* Every series belongs to the family above it, and no family comes twice. */
static void expect_contiguous_families(void)
{
    char family[128] = "";
    size_t families = 0;
    AS_CLEANUP(as_free_p) char *text = as_xstrdup(out.data);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (as_str_starts_with(line, "# TYPE ")) {
            const char *name = line + strlen("# TYPE ");
            (void)snprintf(family, sizeof(family), "%.*s", (int)strcspn(name, " "), name);
            AS_CLEANUP(as_free_p) char *type = as_xasprintf("# TYPE %s ", family);
            const char *first = strstr(out.data, type);
            cr_assert(first && !strstr(first + 1, type), "%s twice", family);
            families++;
        } else if (line[0] != '#') {
            cr_assert(as_str_starts_with(line, family), "%s under %s", line, family);
        }
    }
    cr_assert_gt(families, 20);
}

Test(metrics, keep_families_together)
{
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    print(AS_METRICS_TEXT);
    expect_contiguous_families();
    print(AS_METRICS_OPENMETRICS);
    expect_contiguous_families();
}

/* The exit status of `promtool check metrics` for what is in `out`; its words go to standard error.
 */
static int run_promtool(void)
{
    int pipe_fds[2];
    pid_t pid;
    int status;
    cr_assert_eq(pipe(pipe_fds), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fds[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipe_fds[1]);
    char *const arguments[] = {(char[]){"promtool"}, (char[]){"check"}, (char[]){"metrics"}, NULL};
    const int r = posix_spawnp(&pid, "promtool", &actions, NULL, arguments, environ);
    cr_assert_eq(r, 0, "promtool (Debian's package prometheus): %s", strerror(r));
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_fds[0]);
    for (size_t at = 0; at < out.size;) {
        const ssize_t put = write(pipe_fds[1], out.data + at, out.size - at);
        if (put <= 0)
            break;
        at += (size_t)put;
    }
    close(pipe_fds[1]);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(metrics, satisfy_promtool)
{
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    world_notify(&world, AS_ALERT_RESOLVED, "Slow", NULL);
    as_metrics_on_client(world.metrics, "kubernetes", "get_scale", "200", 20000);
    as_metrics_on_commit(world.metrics, 3000, 10, 12, 4096, (as_wall_time){500000});
    as_metrics_on_reload(world.metrics, true, (as_wall_time){1500000});
    as_metrics_on_http(world.metrics, "webhook", 200, 100);
    count_truncated("a\\b\"c\nd{}=,");
    print(AS_METRICS_TEXT);
    cr_assert_eq(run_promtool(), 0);
    as_buf_append_str(&out, "# TYPE alertscaler_leader counter\n"); /* would it notice? */
    cr_assert_neq(run_promtool(), 0);
}

Test(metrics, choose_the_format_by_accept)
{
    static const struct {
        const char *accept;
        enum as_metrics_format format;
    } cases[] = {
        {NULL, AS_METRICS_TEXT},
        {"", AS_METRICS_TEXT},
        {"*/*", AS_METRICS_TEXT},
        {"text/html,application/xhtml+xml,*/*;q=0.8", AS_METRICS_TEXT},
        {"application/openmetrics-text", AS_METRICS_OPENMETRICS},
        {"application/openmetrics-text; version=1.0.0; charset=utf-8", AS_METRICS_OPENMETRICS},
        /* Prometheus 2.x, 3.x */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         AS_METRICS_OPENMETRICS},
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;"
         "version=1.0.0;q=0.4,*/*;q=0.2",
         AS_METRICS_OPENMETRICS},
        {"application/openmetrics-text;version=0.0.1,text/plain;q=0.5", AS_METRICS_TEXT},
        {"application/openmetrics-text;q=0.2, text/plain;q=0.9", AS_METRICS_TEXT},
        {"application/openmetrics-text;q=0", AS_METRICS_TEXT},
        {"application/openmetrics-text;q=high", AS_METRICS_TEXT},
        {" ,;,;q=, APPLICATION/OpenMetrics-Text ;Q=1", AS_METRICS_OPENMETRICS},
        {";;;,,,", AS_METRICS_TEXT},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(cases); i++)
        cr_assert_eq(as_metrics_choose_format(cases[i].accept), cases[i].format, "%s",
                     cases[i].accept);
}

/* HELP needs no escaping then, in either format. */
Test(metrics, have_plain_help)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct metric_family *family = &metric_families[i];
        cr_assert(family->name && family->help, "%zu", i);
        cr_assert_null(strpbrk(family->help, "\\\"\n"), "%s", family->name);
        cr_assert_leq(family->bucket_count, METRIC_BUCKETS_MAX, "%s", family->name);
        for (size_t bucket = 1; bucket < family->bucket_count; bucket++)
            cr_assert_lt(family->buckets[bucket - 1], family->buckets[bucket], "%s", family->name);
    }
}

static const char *find_row(const char *page, const char *name, char *row_out, size_t size)
{
    AS_CLEANUP(as_free_p) char *key = as_xasprintf("| `%s` |", name);
    const char *at = strstr(page, key);
    if (at)
        (void)snprintf(row_out, size, "%.*s", (int)strcspn(at, "\n"), at);
    return at;
}

/* docs/metrics.md has a row for each metric, with its type and labels, and for none that is not. */
Test(metrics, are_documented)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    AS_CLEANUP(as_free_p) char *page = NULL;
    size_t size, rows = 0;
    cr_assert_eq(as_file_read(TEST_SOURCE_ROOT "/docs/metrics.md", 1024 * 1024, &page, &size), 0);
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct metric_family *family = &metric_families[i];
        char row[1024];
        cr_assert(find_row(page, family->name, row, sizeof(row)), "no row for %s", family->name);
        cr_assert(strstr(row, types[family->type]), "%s", row);
        for (size_t label = 0; family->labels[label]; label++) {
            AS_CLEANUP(as_free_p) char *quoted = as_xasprintf("`%s`", family->labels[label]);
            cr_assert(strstr(row, quoted), "%s: no %s", row, quoted);
        }
    }
    for (const char *at = page; (at = strstr(at, "\n| `")); at++)
        rows++;
    cr_assert_eq(rows, METRIC_COUNT);
}

/* Counting what was counted before does not allocate. */
Test(metrics, count_without_new_series)
{
    for (int i = 0; i < 100000; i++) {
        as_metrics_on_http(world.metrics, "webhook", 200, 100);
        as_metrics_on_notification(world.metrics, AS_NOTIFICATION_OK);
    }
    cr_assert_eq(world.metrics->families[METRIC_HTTP_REQUESTS].count, 1);
    cr_assert_eq(world.metrics->families[METRIC_NOTIFICATIONS].count, AS_NOTIFICATION_RESULT_COUNT);
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_notifications_total{result=\"ok\"} 100000");
}

/* `each` reads its value from the label that also names the object. */
static void track_label(enum as_goal goal)
{
    struct as_rule *rule = world.ruleset->rules[1];
    rule->source.kind = AS_SOURCE_LABEL;
    rule->source.name = as_xstrdup("app");
    rule->action = (struct as_action){.kind = AS_ACTION_TRACK, .track = {goal, .value = 30}};
}

Test(metrics, show_value_and_goal_of_a_rule_while_its_alert_fires)
{
    track_label(AS_GOAL_VALUE);
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    print(AS_METRICS_TEXT);
    expect_none("alertscaler_rule_");
    world_notify(&world, AS_ALERT_FIRING, "Each", "31");
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL); /* needs no value */
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_rule_value{rule=\"each\","
                "target=\"kubernetes/default/apps/v1/Deployment/shop/31\"} 31");
    expect_line("alertscaler_rule_goal{rule=\"each\","
                "target=\"kubernetes/default/apps/v1/Deployment/shop/31\"} 30");
    expect_none("rule=\"slow\",target");
    world_notify(&world, AS_ALERT_RESOLVED, "Each", "31");
    print(AS_METRICS_TEXT);
    expect_none("alertscaler_rule_");
}

Test(metrics, show_the_value_per_pod_where_the_goal_is_per_pod)
{
    track_label(AS_GOAL_AVERAGE_VALUE);
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world_notify(&world, AS_ALERT_FIRING, "Each", "124"); /* 4 replicas */
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_rule_value{rule=\"each\","
                "target=\"kubernetes/default/apps/v1/Deployment/shop/124\"} 31");
}

Test(metrics, show_the_goal_without_a_value_where_there_is_none)
{
    track_label(AS_GOAL_VALUE);
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    print(AS_METRICS_TEXT);
    expect_none("alertscaler_rule_value");
    expect_line("alertscaler_rule_goal{rule=\"each\","
                "target=\"kubernetes/default/apps/v1/Deployment/shop/cart\"} 30");
}

Test(metrics, bound_the_rules_of_templates)
{
    track_label(AS_GOAL_VALUE);
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    for (int i = 1000; i < 1150; i++) {
        AS_CLEANUP(as_free_p) char *name = as_xasprintf("%d", i);
        world_notify(&world, AS_ALERT_FIRING, "Each", name);
    }
    print(AS_METRICS_TEXT);
    size_t count = 0;
    for (const char *at = out.data; (at = strstr(at, "\nalertscaler_rule_goal{")); at++)
        count++;
    cr_assert_eq(count, 100, "%zu", count);
}

/* The first increase of a counter is visible as one; who waits is shown while it waits. */
Test(metrics, show_rules_whose_queries_fail)
{
    print(AS_METRICS_TEXT);
    expect_none("alertscaler_rule_query_error{");
    world_refuse_query(&world, 0, "sun(x)", "unknown function");
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_rule_query_error{rule=\"slow\"} 1");
    expect_none("alertscaler_rule_query_error{rule=\"each\"}"); /* it has no query */
    as_query_checks_note(world.query_checks, "sun(x)", AS_QUERY_ACCEPTED, "");
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_rule_query_error{rule=\"slow\"} 0");
}

/* The target `checkout` with its rule `slow`, as a policy of namespace `shop`. */
static void name_policy(void)
{
    struct as_target_config *target = world.ruleset->targets[0];
    struct as_rule *rule = world.ruleset->rules[0];
    free((char *)(uintptr_t)target->name);
    free((char *)(uintptr_t)rule->name);
    target->name = as_xstrdup("shop/checkout");
    rule->name = as_xstrdup("shop/checkout/slow");
}

#define OF_CHECKOUT ",namespace=\"shop\",policy=\"checkout\"}"

Test(metrics, of_policies_have_their_namespace_and_no_series_of_single_rules)
{
    static const char *const lines[] = {
        "alertscaler_target_replicas{target=\"shop/checkout\"" OF_CHECKOUT " 6",
        "alertscaler_target_max_replicas{target=\"shop/checkout\"" OF_CHECKOUT " 20",
        "alertscaler_target_contended{target=\"shop/checkout\"" OF_CHECKOUT " 0",
        "alertscaler_decisions_total{rule=\"shop/checkout\",reason=\"scaled\"" OF_CHECKOUT " 1",
        "alertscaler_effects_total{rule=\"shop/checkout\",ended=\"resolved\"" OF_CHECKOUT " 1",
        "alertscaler_time_to_ready_seconds_count{rule=\"shop/checkout\"" OF_CHECKOUT " 1",
        "alertscaler_target_replicas{target=\"kubernetes/default/apps/v1/Deployment/shop/cart\"} 8",
        "alertscaler_effects_total{rule=\"each\",ended=\"unknown\"} 1",
    };
    name_policy();
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    world_notify(&world, AS_ALERT_FIRING, "Each", "cart");
    follow("shop/checkout/slow", AS_EVALUATION_RESOLVED, 12 * AS_US_PER_S, 90 * AS_US_PER_S);
    follow("each", AS_EVALUATION_UNKNOWN, -1, -1);
    print(AS_METRICS_TEXT);
    for (size_t i = 0; i < AS_ARRAY_SIZE(lines); i++)
        expect_line(lines[i]);
    expect_none("alertscaler_rule_");
    expect_none("shop/checkout/slow");
    cr_assert_eq(run_promtool(), 0);
}

Test(metrics, of_a_policy_show_a_single_rule_while_its_query_fails)
{
    name_policy();
    world_refuse_query(&world, 0, "sun(x)", "unknown function");
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_rule_query_error{rule=\"shop/checkout/slow\"" OF_CHECKOUT " 1");
    as_query_checks_note(world.query_checks, "sun(x)", AS_QUERY_ACCEPTED, "");
    print(AS_METRICS_TEXT);
    expect_none("alertscaler_rule_query_error{");
}

Test(metrics, count_reviews_of_policies)
{
    print(AS_METRICS_TEXT);
    expect_none("alertscaler_admission_reviews_total{");
    as_metrics_on_admission(world.metrics, "denied", 0);
    as_metrics_on_admission(world.metrics, "allowed", 1);
    as_metrics_on_admission(world.metrics, "allowed", 1);
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_admission_reviews_total{outcome=\"denied\"} 0");
    expect_line("alertscaler_admission_reviews_total{outcome=\"allowed\"} 2");
}

Test(metrics, show_what_waits_for_a_person)
{
    world.ruleset->rules[0]->approval =
        (struct as_approval_config){.is_set = true, .above = 1, .for_us = 15 * AS_US_PER_MIN};
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_approvals_total{event=\"expired\"} 0");
    expect_none("alertscaler_approval_waits_until_timestamp_seconds");
    world_step(&world, (struct as_event){.kind = AS_EVENT_START});
    world_notify(&world, AS_ALERT_FIRING, "Slow", NULL);
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_approvals_total{event=\"asked\"} 1");
    cr_expect(strstr(out.data, "alertscaler_approval_waits_until_timestamp_seconds{rule=\"slow\","
                               "target=\"checkout\"} 17956009"));
    world_notify(&world, AS_ALERT_RESOLVED, "Slow", NULL);
    print(AS_METRICS_TEXT);
    expect_line("alertscaler_approvals_total{event=\"void\"} 1");
    expect_none("alertscaler_approval_waits_until_timestamp_seconds");
}
