/*
 * The status of scaling policies: a real set of policies, the real engine with their rules, and
 * answers to its queries that each test chooses. The API server is a text: what was written last.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/model/labels.h>
#include <alertscaler/monitoring/query_checks.h>
#include <alertscaler/runtime/policy_report.h>

#define START_US INT64_C(1795600000000000) /* 2026-11-25T09:46:40Z */

static const struct as_ruleset no_files = {.digest = "files"};
static const struct as_settings settings = {
    .prometheus.url = "http://prometheus",
    .defaults.bounds = {.tolerance_up = 0.1, .tolerance_down = 0.1},
    .objects = {.is_enabled = true,
                .max_policies = 10000,
                .rules_per_policy = 10,
                .allows_unrestricted_queries = true,
                .namespace_label = "namespace",
                .min_every_us = 15 * AS_US_PER_S},
};

static struct as_settings own_settings;
static const struct as_settings *used_settings;
static struct as_policy_set *set;
static const struct as_ruleset *ruleset;
static struct as_engine *engine;
static struct as_policy_reports *reports;
static as_mono_time mono;
static int32_t replicas;
static double load;         /* the answer to queries */
static const char *failure; /* instead of an answer; NULL: none */
static enum as_reason scale_result;
static bool is_dry_run;
static uint32_t space_actions; /* the limit of a namespace, in 4 minutes; 0: none */
static struct as_query_checks *query_checks;

static char written[64 * 1024]; /* the last status */
static unsigned writes, urgent_writes;
static char
    last_block[64]; /* of the last write: why it is blocked, "-": not any more, "": as before */
static unsigned successor; /* in the UIDs of objects */
static struct tree shown;

static void setup(void)
{
    used_settings = &settings;
    set = as_policy_set_new();
    reports = as_policy_reports_new();
    engine = NULL;
    mono.us = 0;
    replicas = 4;
    load = 20;
    failure = NULL;
    scale_result = AS_REASON_APPLIED;
    is_dry_run = false;
    space_actions = 0;
    query_checks = NULL;
    writes = urgent_writes = successor = 0;
    shown = TREE_INIT(TREE_NO_LIMIT);
}

static void teardown(void)
{
    as_policy_reports_free(reports);
    as_query_checks_free(query_checks);
    if (engine)
        as_engine_free(engine);
    as_policy_set_free(set);
    tree_deinit(&shown);
}

TestSuite(policy_report, .init = setup, .fini = teardown);

/* ---- the world ---- */

static as_wall_time get_wall(void)
{
    return (as_wall_time){START_US + mono.us};
}

static bool carry_out(const struct as_effect *effect, struct as_event *event_out)
{
    static struct as_observation observation;
    static struct as_scale_result result;
    static struct as_query_result answer;
    *event_out = (struct as_event){.call_id = effect->call_id};
    if (effect->kind == AS_EFFECT_COMMIT) {
        event_out->kind = AS_EVENT_COMMITTED;
        return effect->call_id != 0;
    }
    if (effect->kind == AS_EFFECT_OBSERVE) {
        observation = (struct as_observation){.outcome = AS_REASON_APPLIED,
                                              .replicas = replicas,
                                              .status_replicas = replicas,
                                              .min = -1,
                                              .max = -1,
                                              .version = "1"};
        event_out->kind = AS_EVENT_OBSERVED;
        event_out->observation = &observation;
    } else if (effect->kind == AS_EFFECT_QUERY) {
        answer = (struct as_query_result){.value = load, .error = failure};
        event_out->kind = AS_EVENT_QUERIED;
        event_out->answer = &answer;
    } else if (effect->kind == AS_EFFECT_SCALE) {
        cr_expect_str_eq(effect->call.request->policy.name, "web");
        cr_expect_str_eq(effect->call.request->policy.uid, "web-0");
        result = (struct as_scale_result){.outcome = scale_result, .attempts = 1};
        if (scale_result == AS_REASON_APPLIED)
            replicas = effect->call.request->to;
        event_out->kind = AS_EVENT_SCALED;
        event_out->result = &result;
    } else {
        return false;
    }
    return true;
}

#define QUEUE_MAX 65536 /* of all policies at a time, in the test of an outage */

static void step(struct as_event first)
{
    static struct as_event queue[QUEUE_MAX];
    size_t count = 1;
    queue[0] = first;
    for (size_t i = 0; i < count; i++) {
        struct as_effects effects;
        queue[i].mono = mono;
        queue[i].wall = get_wall();
        as_engine_step(engine, &queue[i], &effects);
        for (size_t k = 0; k < effects.count; k++) {
            as_policy_reports_on_effect(reports, &effects.items[k], get_wall());
            cr_assert_lt(count, AS_ARRAY_SIZE(queue));
            count += carry_out(&effects.items[k], &queue[count]);
        }
    }
}

static void put_text(const char *text)
{
    struct as_error error = AS_ERROR_INIT;
    bool is_changed;
    cr_assert_eq(as_policy_set_put(set, text, strlen(text), (as_mono_time){0}, &is_changed, &error),
                 0, "%s", error.text);
    as_policy_reports_on_object(reports, text, strlen(text));
}

static void put_object(const char *name, int generation, const char *annotations, const char *rules,
                       const char *status)
{
    AS_CLEANUP(as_free_p)
    char *text = as_xasprintf(
        "{\"apiVersion\":\"alertscaler.io/v1alpha1\",\"kind\":\"ScalingPolicy\",\"metadata\":{"
        "\"namespace\":\"shop\",\"name\":\"%s\",\"uid\":\"%s-%u\",\"generation\":%d,"
        "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"annotations\":{%s}},\"spec\":{"
        "\"target\":{\"kubernetes\":{\"kind\":\"Deployment\",\"name\":\"%s\"},\"min\":2,"
        "\"max\":9,\"cooldown\":{\"up\":\"1m\",\"down\":\"10m\"}},\"rules\":[%s]},\"status\":%s}",
        name, name, successor, generation, annotations, name, rules, status);
    put_text(text);
}

#define ALERT_RULE "{\"name\":\"up\",\"match\":[\"alertname=\\\"Up\\\"\"],\"scaleUp\":{\"by\":2}}"
#define QUERY_RULE                                                                                 \
    "{\"name\":\"load\",\"always\":true,\"track\":{\"averageValue\":\"5\",\"query\":\"load\"}}"
#define NEW "{\"observedGeneration\":-1}"

static void join(void)
{
    ruleset = as_policy_set_join(
        set, &(struct as_policy_join){
                 .settings = used_settings, .files = &no_files, .now = mono, .is_complete = true});
    const struct as_engine_config config = {
        .incident_expiry_us = AS_US_PER_DAY,
        .stale_window_us = AS_US_PER_MIN,
        .seed = 1,
        .limits = {.namespace_actions_max = space_actions,
                   .namespace_actions_per_us = 4 * AS_US_PER_MIN}};
    if (engine) {
        step((struct as_event){.kind = AS_EVENT_RULES, .ruleset = ruleset, .config = config});
        return;
    }
    engine = as_engine_new(&config, ruleset);
    step((struct as_event){.kind = AS_EVENT_START});
}

static void take_write(void *context, const struct as_scaling_policy *policy, const char *json,
                       size_t size, bool is_urgent, const struct as_policy_block *block)
{
    cr_assert_lt(size, sizeof(written));
    memcpy(written, json, size);
    written[size] = '\0';
    writes++;
    urgent_writes += is_urgent;
    (void)snprintf(last_block, sizeof(last_block), "%s",
                   block ? block->is_blocked ? block->reason : "-" : "");
    tree_deinit(&shown);
    shown = TREE_INIT(TREE_NO_LIMIT);
    cr_assert_eq(tree_load_object(&shown, written, size, NULL), 0, "%s", written);
}

static void look(void)
{
    const struct as_view view = {.mono = mono,
                                 .wall = get_wall(),
                                 .engine = engine,
                                 .ruleset = ruleset,
                                 .query_checks = query_checks,
                                 .dry_run = is_dry_run};
    as_policy_reports_step(reports, set, &view, take_write, NULL);
}

/* Time passes; the engine does what is due. */
static void advance(int64_t us)
{
    const int64_t end = mono.us + us;
    while (as_engine_get_next_deadline(engine).us <= end) {
        const as_mono_time due = as_engine_get_next_deadline(engine);
        mono.us = due.us > mono.us ? due.us : mono.us;
        step((struct as_event){.kind = AS_EVENT_DEADLINE});
    }
    mono.us = end;
}

static void notify_of(const char *alertname, const char *namespace)
{
    const struct as_label pairs[] = {{"alertname", alertname}, {"namespace", namespace}};
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;
    AS_CLEANUP(as_labels_free_p) struct as_labels *annotations = NULL;
    cr_assert_eq(as_labels_new(pairs, namespace ? 2 : 1, &labels), 0);
    cr_assert_eq(as_labels_new(NULL, 0, &annotations), 0);
    struct as_alert alert = {.status = AS_ALERT_FIRING,
                             .digest = as_labels_get_digest(labels),
                             .fingerprint = as_labels_get_fingerprint(labels),
                             .starts_at = get_wall(),
                             .ends_at = get_wall(),
                             .labels = labels,
                             .annotations = annotations};
    struct as_notification notification = {.receiver = (char[]){"scaler"},
                                           .group_key = (char[]){""},
                                           .reason = (char[]){""},
                                           .alerts = &alert,
                                           .alert_count = 1,
                                           .remote = (char[]){""},
                                           .credential = (char[]){""},
                                           .traceparent = (char[]){""},
                                           .id = "N0000000000000000000000001"};
    step((struct as_event){
        .kind = AS_EVENT_NOTIFICATION, .call_id = 1, .notification = &notification});
}

static void notify(const char *alertname)
{
    notify_of(alertname, "shop");
}

/* The API server has what was written. */
static void show(const char *name, int generation, const char *annotations, const char *rules)
{
    put_object(name, generation, annotations, rules, written);
    AS_CLEANUP(as_free_p) char *uid = as_xasprintf("%s-%u", name, successor);
    as_policy_reports_on_written(reports, "shop", name, uid);
}

/* ---- what was written ---- */

static const char *get_text(const char *key)
{
    const char *text = tree_find_text(shown.root, key);
    return text ? text : "";
}

static int64_t get_number(const char *key)
{
    int64_t number = -99;
    (void)tree_get_i64(tree_find(shown.root, key), INT64_MIN, INT64_MAX, &number);
    return number;
}

static const struct tree_value *find_condition(const char *type)
{
    const struct tree_value *item = tree_get_first(tree_find(shown.root, "conditions"));
    while (item && strcmp(tree_find_text(item, "type"), type) != 0)
        item = item->next;
    cr_assert(item, "no condition %s in %s", type, written);
    return item;
}

static void expect_condition(const char *type, const char *status, const char *reason,
                             const char *message)
{
    const struct tree_value *item = find_condition(type);
    cr_expect_str_eq(tree_find_text(item, "status"), status, "%s: %s", type, written);
    cr_expect_str_eq(tree_find_text(item, "reason"), reason, "%s: %s", type, written);
    cr_expect(strstr(tree_find_text(item, "message"), message), "%s: %s", type,
              tree_find_text(item, "message"));
}

static void start(const char *annotations, const char *rules)
{
    put_object("web", 3, annotations, rules, NEW);
    join();
    look();
    cr_assert_eq(writes, 1);
}

Test(policy_report, says_what_is_known_of_a_policy_in_force)
{
    start("", ALERT_RULE "," QUERY_RULE);
    cr_expect_eq(get_number("observedGeneration"), 3);
    cr_expect_str_eq(get_text("target"), "Deployment/web");
    cr_expect_eq(get_number("size"), 4);
    cr_expect_eq(get_number("desired"), 4);
    cr_expect_eq(get_number("min"), 2);
    cr_expect_eq(get_number("max"), 9);
    cr_expect_str_eq(get_text("value"), "5");
    cr_expect_str_eq(get_text("goal"), "5");
    cr_expect_str_eq(get_text("locked"), "");
    cr_expect_null(tree_find(shown.root, "lockedUntil"));
    cr_expect_null(tree_find(shown.root, "lastScaleTime"));
    const struct tree_value *decision = tree_find(shown.root, "lastDecision");
    cr_expect_str_eq(tree_find_text(decision, "reason"), "WithinTolerance");
    cr_expect_str_eq(tree_find_text(decision, "time"), "2026-11-25T09:46:40Z");
    cr_expect(tree_find_text(decision, "id") && tree_find_text(decision, "message"));
    const struct tree_value *rule = tree_get_first(tree_find(shown.root, "rules"));
    cr_expect_str_eq(tree_find_text(rule, "name"), "up");
    cr_expect_null(tree_find(rule, "reason"));
    cr_expect_null(tree_find(rule, "desired"));
    cr_expect_str_eq(tree_find_text(rule->next, "name"), "load");
    cr_expect_str_eq(tree_find_text(rule->next, "value"), "5");
    cr_expect_str_eq(tree_find_text(rule->next, "goal"), "5");
    cr_expect_str_eq(tree_find_text(rule->next, "reason"), "WithinTolerance");
    expect_condition("Ready", "True", "Ready", "");
    expect_condition("Stalled", "False", "Ready", "");
    expect_condition("ScalingActive", "True", "Active", "");
    expect_condition("ScalingLimited", "False", "NotLimited", "");
    expect_condition("Blocked", "False", "NotBlocked", "");
    cr_expect_str_eq(tree_find_text(find_condition("Ready"), "lastTransitionTime"),
                     "2026-11-25T09:46:40Z");
    cr_expect_eq(urgent_writes, 1);
}

Test(policy_report, says_what_an_alert_has_done)
{
    start("", ALERT_RULE);
    cr_expect_eq(get_number("size"), 4);
    show("web", 3, "", ALERT_RULE);
    advance(AS_US_PER_S);
    notify("Up");
    look();
    cr_assert_eq(writes, 2);
    cr_expect_eq(urgent_writes, 1, "no condition has changed");
    cr_expect_eq(get_number("size"), 6);
    cr_expect_eq(get_number("desired"), 6);
    cr_expect_str_eq(get_text("lastScaleTime"), "2026-11-25T09:46:41Z");
    cr_expect_str_eq(get_text("locked"), "up until 09:47:41Z, down until 09:56:41Z");
    const struct tree_value *locks = tree_find(shown.root, "lockedUntil");
    cr_expect_str_eq(tree_find_text(locks, "up"), "2026-11-25T09:47:41Z");
    cr_expect_str_eq(tree_find_text(locks, "down"), "2026-11-25T09:56:41Z");
    const struct tree_value *rule = tree_get_first(tree_find(shown.root, "rules"));
    int64_t alerts = 0, desired = 0;
    cr_expect(tree_get_i64(tree_find(rule, "alerts"), 0, 9, &alerts) && alerts == 1);
    cr_expect(tree_get_i64(tree_find(rule, "desired"), 0, 9, &desired) && desired == 6);
    cr_expect_str_eq(tree_find_text(tree_find(shown.root, "lastDecision"), "rule"), "up");
    cr_expect_str_eq(tree_find_text(tree_find(shown.root, "lastDecision"), "reason"), "Scaled");
}

Test(policy_report, says_why_a_policy_is_not_in_force)
{
    put_object("web", 3, "", "{\"name\":\"up\",\"always\":true,\"scaleUp\":{\"bye\":1}}", NEW);
    join();
    look();
    cr_assert_eq(writes, 1);
    cr_expect_eq(get_number("observedGeneration"), 3);
    expect_condition("Ready", "False", "Invalid", "spec.rules[0].scaleUp.bye");
    expect_condition("Stalled", "True", "Invalid", "spec.rules[0].scaleUp.bye");
    expect_condition("ScalingActive", "False", "Invalid", "not in force");
}

Test(policy_report, says_nothing_of_a_generation_before_it_is_judged)
{
    start("", QUERY_RULE);
    show("web", 3, "", QUERY_RULE);
    put_object("web", 4, "", "{\"name\":\"up\"}", written);
    look();
    cr_expect_eq(writes, 1);
    join();
    look();
    cr_expect_eq(writes, 2);
    cr_expect_eq(get_number("observedGeneration"), 4);
    expect_condition("Ready", "False", "Invalid", "spec.rules[0]");
}

Test(policy_report, says_that_a_size_is_limited)
{
    load = 500;
    start("", QUERY_RULE);
    expect_condition("ScalingLimited", "False", "NotLimited", "");
    cr_expect_eq(get_number("size"), 9);
    show("web", 3, "", QUERY_RULE);
    advance(5 * AS_US_PER_MIN);
    look();
    expect_condition("ScalingLimited", "True", "AtMax", "More was wanted");
}

Test(policy_report, a_missing_value_is_said_after_a_minute)
{
    start("", QUERY_RULE);
    show("web", 3, "", QUERY_RULE);
    failure = "connection refused";
    advance(30 * AS_US_PER_S);
    look();
    const int64_t gap = mono.us;
    expect_condition("ScalingActive", "True", "Active", "");
    cr_expect_str_eq(tree_find_text(tree_find(shown.root, "lastDecision"), "reason"),
                     "MetricUnavailable");
    cr_expect_eq(get_number("size"), 4);
    show("web", 3, "", QUERY_RULE);
    advance(40 * AS_US_PER_S);
    look();
    advance(AS_POLICY_ROUND_US);
    look();
    cr_assert_gt(mono.us - gap, 59 * AS_US_PER_S);
    expect_condition("ScalingActive", "False", "MetricUnavailable", "rule load");
    expect_condition("Ready", "True", "Ready", "");
    cr_expect_eq(urgent_writes, 2);
    show("web", 3, "", QUERY_RULE);
    failure = NULL;
    advance(AS_US_PER_MIN);
    look();
    expect_condition("ScalingActive", "True", "Active", "");
}

static struct as_timer *start_no_timer(struct as_loop *self, int64_t delay_us, as_timer_fn *expired,
                                       void *context)
{
    return NULL;
}

static void cancel_no_timer(struct as_loop *self, struct as_timer *timer)
{
}

Test(policy_report, a_refused_query_is_said_at_once)
{
    static struct as_loop loop = {start_no_timer, cancel_no_timer};
    static struct as_source_port source;
    put_object("web", 3, "", QUERY_RULE, NEW);
    join();
    const struct as_config config = {.ruleset = (struct as_ruleset *)(uintptr_t)&no_files};
    query_checks = as_query_checks_new(&loop);
    as_query_checks_start(query_checks, &config, ruleset, &source);
    for (int i = 0; i < AS_QUERY_REFUSALS; i++)
        as_query_checks_note(query_checks, "load", AS_QUERY_REFUSED, "1:1: parse error");
    look();
    expect_condition("ScalingActive", "False", "QueryRefused", "rule load: 1:1: parse error");
    const struct tree_value *rule = tree_get_first(tree_find(shown.root, "rules"));
    cr_expect_str_eq(tree_find_text(rule, "reason"), "QueryRefused");
}

Test(policy_report, says_what_blocks_a_policy)
{
    start("\"alertscaler.io/paused\":\"release\"", QUERY_RULE);
    expect_condition("Blocked", "True", "Paused", "annotation alertscaler.io/paused: release");
    cr_expect_str_eq(last_block, "Paused");
    show("web", 3, "\"alertscaler.io/paused-up\":\"load test\"", QUERY_RULE);
    join();
    advance(AS_POLICY_MINOR_US); /* the reason is the same */
    look();
    expect_condition("Blocked", "True", "Paused", "annotation alertscaler.io/paused-up: load test");
    cr_expect_str_eq(last_block, "", "it was blocked before");
    show("web", 3, "", QUERY_RULE);
    cr_expect(as_policy_set_note_rival(set, "shop/web", "HorizontalPodAutoscaler web"));
    join();
    look();
    expect_condition("Blocked", "True", "HPAFound", "HorizontalPodAutoscaler web");
    show("web", 3, "\"alertscaler.io/allow-hpa\":\"true\"", QUERY_RULE);
    join();
    look();
    expect_condition("Blocked", "False", "NotBlocked", "");
    cr_expect_str_eq(last_block, "-");
    show("web", 3, "", QUERY_RULE);
    is_dry_run = true;
    (void)as_policy_set_note_rival(set, "shop/web", NULL);
    join();
    look();
    expect_condition("Blocked", "True", "DryRun", "");
    cr_expect_str_eq(last_block, "DryRun");
    step((struct as_event){.kind = AS_EVENT_HALT,
                           .halt = &(struct as_halt){.reason = "stop everything"}});
    show("web", 3, "", QUERY_RULE);
    look();
    expect_condition("Blocked", "True", "KillSwitch", "stop everything");
}

/* ---- when it is written ---- */

Test(policy_report, writes_a_change_of_the_value_once_a_minute)
{
    start("", QUERY_RULE);
    show("web", 3, "", QUERY_RULE);
    look();
    cr_expect_eq(writes, 1, "it is as the API server has it");
    load = 20.4;
    advance(30 * AS_US_PER_S);
    look();
    cr_expect_eq(writes, 1, "%s", written);
    advance(31 * AS_US_PER_S);
    look();
    cr_expect_eq(writes, 2);
    cr_expect_eq(urgent_writes, 1);
    cr_expect_str_eq(get_text("value"), "5.1");
    show("web", 3, "", QUERY_RULE);
    advance(10 * AS_US_PER_MIN);
    look();
    cr_expect_eq(writes, 2, "%s", written);
}

/* The object has a time of its conditions, which stays. */
Test(policy_report, a_new_leader_writes_only_what_differs)
{
    start("", QUERY_RULE);
    as_policy_reports_free(reports);
    reports = as_policy_reports_new();
    show("web", 3, "", QUERY_RULE);
    as_policy_reports_begin_term(reports, mono);
    look();
    cr_expect_eq(writes, 1, "%s", written);
    put_object("web", 4, "", QUERY_RULE, written);
    advance(AS_US_PER_H);
    join();
    look();
    cr_expect_eq(writes, 2);
    cr_expect_eq(urgent_writes, 1);
    cr_expect_eq(get_number("observedGeneration"), 4);
    cr_expect_str_eq(tree_find_text(find_condition("Ready"), "lastTransitionTime"),
                     "2026-11-25T09:46:40Z");
}

/* Another process begins without the state of the former one. */
static void restart(const char *rules)
{
    show("web", 3, "", rules);
    as_policy_reports_free(reports);
    as_engine_free(engine);
    reports = as_policy_reports_new();
    engine = NULL;
    put_object("web", 3, "", rules, written);
    join();
    as_policy_reports_begin_term(reports, mono);
    writes = urgent_writes = 0;
}

/* It has not decided about the target, and will not as long as nothing fires. */
Test(policy_report, a_new_leader_keeps_the_last_decision_that_is_shown)
{
    start("", ALERT_RULE);
    notify("Up");
    look();
    restart(ALERT_RULE); /* the alert is forgotten, too */
    look();
    cr_expect_eq(writes, 0, "%s", written);
    advance(AS_US_PER_H);
    look();
    cr_expect_eq(writes, 1, "the rule has no alert any more");
    cr_expect_eq(urgent_writes, 0);
    const struct tree_value *decision = tree_find(shown.root, "lastDecision");
    cr_expect_str_eq(tree_find_text(decision, "rule"), "up", "%s", written);
    cr_expect_str_eq(tree_find_text(decision, "reason"), "Scaled");
    cr_expect_eq(get_number("desired"), 6);
}

Test(policy_report, writes_again_if_the_answer_is_not_known)
{
    start("", QUERY_RULE);
    advance(AS_POLICY_MINOR_US - 1);
    look();
    cr_expect_eq(writes, 1);
    advance(1);
    look();
    advance(AS_POLICY_ROUND_US);
    look();
    cr_expect_eq(writes, 2);
}

/* An older definition prunes a member, say. */
Test(policy_report, rarely_repeats_a_status_that_the_server_does_not_show)
{
    start("", QUERY_RULE);
    put_object("web", 3, "", QUERY_RULE, NEW);
    as_policy_reports_on_written(reports, "shop", "web", "web-0");
    for (int64_t at = 0; at < AS_POLICY_UNSHOWN_US - AS_US_PER_MIN; at += AS_US_PER_MIN) {
        advance(AS_US_PER_MIN);
        look();
    }
    cr_expect_eq(writes, 1, "%s", written);
    advance(2 * AS_US_PER_MIN);
    look();
    cr_expect_eq(writes, 2);
}

Test(policy_report, forgets_removed_policies_and_their_successors_begin_anew)
{
    start("", QUERY_RULE);
    cr_expect(as_policy_set_remove(set, "shop", "web"));
    as_policy_reports_on_removed(reports, "shop/web");
    as_policy_reports_on_removed(reports, "shop/other"); /* not known */
    join();
    look();
    successor++;
    put_object("web", 1, "", QUERY_RULE, NEW);
    join();
    look();
    cr_expect_eq(writes, 2);
    cr_expect_eq(urgent_writes, 2);
}

/*
 * Prometheus goes away: all policies have ScalingActive=False after a minute. A step looks at a
 * bounded number of policies, so that decisions do not wait, and all are reported a round later.
 */
Test(policy_report, an_outage_of_all_policies_is_reported_in_small_steps, .timeout = 300)
{
    enum { POLICIES = 10000, EVERY_MS = 250 };
    char name[32];
    for (int i = 0; i < POLICIES; i++) {
        (void)snprintf(name, sizeof(name), "p%d", i);
        put_object(name, 1, "", QUERY_RULE, NEW);
    }
    join();
    for (int i = 0; i < 80; i++) {
        advance(EVERY_MS * AS_US_PER_MS);
        look();
    }
    cr_assert_eq(urgent_writes, POLICIES, "the first status of each: %u", urgent_writes);
    failure = "connection refused";
    urgent_writes = 0;
    const int64_t begun = mono.us;
    unsigned most = 0;
    int64_t first = 0;
    while (urgent_writes < POLICIES && mono.us - begun < 200 * AS_US_PER_S) {
        const unsigned before = writes;
        advance(EVERY_MS * AS_US_PER_MS);
        look();
        most = writes - before > most ? writes - before : most;
        first = first == 0 && urgent_writes > 0 ? mono.us : first;
    }
    cr_expect_eq(urgent_writes, POLICIES, "%u", urgent_writes);
    cr_expect_leq(most, AS_POLICY_REPORTS_A_STEP, "%u in a step", most);
    cr_expect_geq(first - begun, AS_POLICY_METRIC_GAP_US);
    cr_expect_leq(mono.us - first, 2 * AS_POLICY_ROUND_US, "%lld us", (long long)(mono.us - first));
}

/* An alert with another label of the namespace, or without it. */
Test(policy_report, names_an_alert_that_the_namespace_alone_keeps_from_a_rule)
{
    own_settings = settings;
    own_settings.objects.enforces_namespace_label = true;
    used_settings = &own_settings;
    start("", ALERT_RULE);
    show("web", 3, "", ALERT_RULE);
    cr_expect_null(tree_find(shown.root, "unmatched"));
    notify_of("Up", "bank");
    notify_of("Up", NULL);
    notify_of("Down", "bank");
    cr_expect_eq(replicas, 4);
    advance(AS_US_PER_MIN + AS_POLICY_ROUND_US);
    look();
    cr_assert_eq(writes, 2);
    cr_expect_eq(urgent_writes, 1);
    const struct tree_value *unmatched = tree_find(shown.root, "unmatched");
    int64_t alerts = 0;
    cr_assert(unmatched, "%s", written);
    cr_expect(tree_get_i64(tree_find(unmatched, "alerts"), 0, 9, &alerts) && alerts == 2, "%s",
              written);
    cr_expect_str_eq(tree_find_text(unmatched, "lastAlert"), "Up");
    cr_expect_str_eq(tree_find_text(unmatched, "rule"), "up");
    put_object("web", 4, "", ALERT_RULE, written);
    join();
    look();
    cr_expect_null(tree_find(shown.root, "unmatched"), "a new generation: %s", written);
    notify_of("Up", "shop");
    cr_expect_eq(replicas, 6);
}

Test(policy_report, a_used_up_limit_of_the_namespace_is_named)
{
    static const char text[] =
        "The limit of namespace shop is used up: 1 action in 4m (`objects.limits`).";
    space_actions = 1;
    start("", ALERT_RULE);
    show("web", 3, "", ALERT_RULE);
    notify("Up");
    look();
    cr_expect_null(strstr(written, "used up"), "%s", written);
    show("web", 3, "", ALERT_RULE);
    advance(2 * AS_US_PER_MIN);
    look();
    cr_expect_eq(get_number("size"), 6);
    expect_condition("ScalingLimited", "True", "Budget", text);
    cr_expect_str_eq(tree_find_text(tree_find(shown.root, "lastDecision"), "message"), text);
    cr_expect_str_eq(tree_find_text(tree_get_first(tree_find(shown.root, "rules")), "message"),
                     text);
    show("web", 3, "", ALERT_RULE);
    advance(3 * AS_US_PER_MIN);
    look();
    cr_expect_eq(get_number("size"), 8, "the window is over");
}

/* The other policy has the same object, and is older. */
Test(policy_report, another_judgement_is_written_in_the_next_step)
{
    const char *const older =
        "{\"apiVersion\":\"alertscaler.io/v1alpha1\",\"kind\":\"ScalingPolicy\",\"metadata\":{"
        "\"namespace\":\"shop\",\"name\":\"older\",\"uid\":\"older-0\",\"generation\":1,"
        "\"creationTimestamp\":\"2025-01-01T00:00:00Z\"},\"spec\":{\"target\":{\"kubernetes\":{"
        "\"kind\":\"Deployment\",\"name\":\"web\"},\"max\":9},\"rules\":[" ALERT_RULE "]}}";
    put_text(older);
    put_object("web", 3, "", ALERT_RULE, NEW);
    join();
    look();
    expect_condition("Ready", "False", "TargetTaken", "shop/older");
    show("web", 3, "", ALERT_RULE);
    look();
    writes = 0;
    cr_assert(as_policy_set_remove(set, "shop", "older"));
    join();
    look();
    cr_assert_eq(writes, 0, "it has its turn in the round");
    as_policy_reports_on_judged(reports, "shop/web");
    as_policy_reports_on_judged(reports, "shop/unknown");
    look();
    cr_assert_eq(writes, 1);
    expect_condition("Ready", "True", "Ready", "in force");
}
