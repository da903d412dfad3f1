/*
 * The shell's fence: what others see of us (a size that is set, a 200) needs that we lead at that
 * very moment. Where we do not, nothing is carried out any more, the owner is told once, and what
 * was committed is there for whoever leads next.
 *
 * And what it records of a notification that comes again: little, where a record before says the
 * rest.
 */
#include <alertscaler/runtime/shell.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <alertscaler/base/log.h>
#include <alertscaler/model/labels.h>

#include "../../support/audit_memory.h"
#include "../../support/rule_spec.h"
#include "../../support/store_memory.h"

#define WALL_START_US INT64_C(1795600000000000)

static const struct spec slow = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 3600, .down = 3600}},
    .rules =
        {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2, .max_steps = 1}},
};

static const struct as_scope other = {.credential = "other"}; /* beside "", which may all */

static as_mono_time now = {1000 * AS_US_PER_S};
static bool leads = true;
static uint64_t asked_at; /* the question that is answered no, and all after it; 0: none */
static uint64_t questions;
static uint64_t seed;
static unsigned scales, answers, observes, fences, deadlines;
static int32_t set_to;

static struct { /* what the targets were asked last */
    uint64_t call_id;
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled;
    void *context;
} asked;

static as_mono_time get_mono(const struct as_clock *self)
{
    return now;
}

static as_wall_time get_wall(const struct as_clock *self)
{
    return (as_wall_time){WALL_START_US + now.us};
}

static const struct as_clock clock_ = {get_mono, get_wall};

static void observe(struct as_target_port *self, uint64_t call_id, const struct as_target_ref *ref,
                    const struct as_observe_request *request, as_target_observed_fn *done,
                    void *context)
{
    observes++;
    asked.call_id = call_id;
    asked.observed = done;
    asked.context = context;
}

static void scale(struct as_target_port *self, uint64_t call_id, const struct as_target_ref *ref,
                  const struct as_scale_request *request, as_target_scaled_fn *done, void *context)
{
    scales++;
    set_to = request->to;
    asked.call_id = call_id;
    asked.scaled = done;
    asked.context = context;
}

static void close_targets(struct as_target_port *self)
{
}

static struct as_target_port targets = {.observe = observe, .scale = scale, .close = close_targets};
static struct as_ruleset *ruleset;
static struct as_store_memory *state;
static struct as_audit_memory *log_;
static struct as_storage *storage;
static struct as_shell *shell;

static void on_effect(void *context, const struct as_effect *effect, const struct as_buf *record)
{
    (void)record;
    answers += effect->kind == AS_EFFECT_ANSWER;
}

static void on_deadline(void *context, as_mono_time deadline)
{
    deadlines++;
}

static bool may_act(void *context)
{
    questions++;
    return leads && (asked_at == 0 || questions < asked_at);
}

static void on_fenced(void *context)
{
    fences++;
}

static void on_durable(void *context, uint64_t call_id, int status, const char *error)
{
    cr_assert_eq(status, 0, "%s", error);
    as_shell_on_durable(shell, call_id);
}

static void on_hashed(void *context, uint64_t number, const char *hash)
{
    as_shell_on_hashed(shell, number, hash);
}

static void on_failed(void *context, int status, const char *error)
{
    cr_assert_fail("%s", error);
}

static int try_open_shell(struct as_error *error)
{
    struct as_storage_config storage_config = as_storage_config_default;
    struct as_store *store = as_store_memory_attach(state);
    storage_config.store = store;
    storage_config.audit = as_audit_memory_attach(log_);
    storage_config.clock = &clock_;
    storage_config.callbacks = (struct as_storage_callbacks){
        .durable = on_durable, .hashed = on_hashed, .failed = on_failed};
    cr_assert_eq(as_storage_new(&storage_config, &storage, error), 0, "%s", error->text);
    const struct as_shell_config config = {
        .clock = &clock_,
        .targets = &targets,
        .storage = storage,
        .instance = "one",
        .boot = "boot",
        .version = "0",
        .config_digest = "d",
        .engine = {.incident_expiry_us = AS_US_PER_DAY,
                   .stale_window_us = AS_US_PER_MIN,
                   .seed = ++seed,
                   .scopes = &other,
                   .scope_count = 1},
        .ruleset = ruleset,
        .callbacks = {.effect = on_effect,
                      .deadline = on_deadline,
                      .may_act = may_act,
                      .fenced = on_fenced},
    };
    return as_shell_new(&config, store, &shell, error);
}

static void open_shell(void)
{
    struct as_error error = AS_ERROR_INIT;
    cr_assert_eq(try_open_shell(&error), 0, "%s", error.text);
}

static void close_shell(void)
{
    shell = as_shell_free(shell);
    storage = as_storage_free(storage);
}

static void setup(void)
{
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, STDERR_FILENO);
    ruleset = spec_make_ruleset(&slow);
    state = as_store_memory_new();
    log_ = as_audit_memory_new();
    open_shell();
}

static void teardown(void)
{
    close_shell();
    as_store_memory_free(state);
    as_audit_memory_free(log_);
    as_ruleset_free(ruleset);
}

TestSuite(shell, .init = setup, .fini = teardown);

static void commit(void)
{
    while (as_storage_step(storage))
        as_storage_deliver(storage);
}

static void see(int32_t replicas)
{
    const struct as_observation seen = {.outcome = AS_REASON_APPLIED,
                                        .replicas = replicas,
                                        .status_replicas = replicas,
                                        .min = -1,
                                        .max = -1,
                                        .version = "1"};
    asked.observed(asked.context, asked.call_id, &seen);
}

/* The same alert each time; `base` is what is remembered of its body. */
static void notify_as(const char *credential, struct as_record_base *base)
{
    static unsigned number;
    const struct as_label pairs[] = {{"alertname", "Slow"}};
    struct as_labels *labels, *none;
    cr_assert_eq(as_labels_new(pairs, 1, &labels), 0);
    cr_assert_eq(as_labels_new(NULL, 0, &none), 0);
    struct as_alert alert = {
        .status = AS_ALERT_FIRING,
        .digest = as_labels_get_digest(labels),
        .fingerprint = as_labels_get_fingerprint(labels),
        .starts_at = {WALL_START_US},
        .labels = labels,
        .annotations = none,
    };
    struct as_notification notification = {
        .receiver = (char[]){"scaler"},
        .group_key = (char[]){""},
        .reason = (char[]){""},
        .alerts = &alert,
        .alert_count = 1,
        .remote = (char[]){""},
        .credential = (char *)(uintptr_t)credential,
        .traceparent = (char[]){""},
        .base = base,
    };
    (void)snprintf(notification.id, sizeof(notification.id), "N%025u", ++number);
    as_shell_notify(shell, &notification, 1);
    as_labels_free(labels);
    as_labels_free(none);
}

static void notify(void)
{
    notify_as("", NULL);
}

/* Until the intent "web from 4 to 6" is in the state's queue, and nothing else is under way. */
static void decide(void)
{
    commit();
    cr_assert(as_shell_is_ready(shell));
    if (observes == 1) /* its first look at a named target */
        see(4);
    notify();
    commit();
    cr_assert_eq(answers, 1);
    see(4);
    cr_assert_eq(as_storage_get_counts(storage).waiting_batches, 1, "the intent");
}

Test(shell, a_leader_sets_the_size_once_its_intent_is_committed)
{
    decide();
    cr_expect_eq(scales, 0, "not before it is committed");
    commit();
    cr_expect_eq(scales, 1);
    cr_expect_eq(set_to, 6);
    cr_expect_eq(fences, 0);
}

Test(shell, an_intent_is_not_sent_where_the_term_has_ended)
{
    decide();
    leads = false;
    commit();
    cr_expect_eq(scales, 0, "the fence said no");
    cr_expect_eq(fences, 1);
    cr_expect_eq(as_store_memory_get_count(state, AS_STORE_INTENT), 1, "it is there for the next");
}

Test(shell, after_the_fence_nothing_is_done_even_if_it_would_open_again)
{
    decide();
    leads = false;
    commit();
    const unsigned before = deadlines + observes + answers;
    const uint64_t asked_before = questions;
    leads = true;
    now.us += 2 * AS_US_PER_H;
    as_shell_wake(shell);
    notify();
    as_shell_halt(shell, &(struct as_halt){"somebody", "why not"});
    commit();
    cr_expect_eq(scales, 0);
    cr_expect_eq(deadlines + observes + answers, before);
    cr_expect_eq(questions, asked_before, "it is not even asked");
    cr_expect_eq(fences, 1, "told once");
}

Test(shell, a_notification_is_not_answered_where_the_term_has_ended)
{
    commit();
    notify();
    leads = false;
    commit();
    cr_expect_eq(answers, 0);
    cr_expect_eq(fences, 1);
    cr_expect_eq(as_store_memory_get_count(state, AS_STORE_INCIDENT), 1, "its repeat is no news");
}

Test(shell, the_fence_is_asked_for_each_effect_of_one_step)
{
    commit();
    notify();
    asked_at = questions + 2; /* yes to the answer, no to what comes with it or after */
    commit();
    cr_expect_eq(answers, 1);
    see(4);
    commit();
    cr_expect_eq(scales, 0);
    cr_expect_eq(fences, 1);
}

Test(shell, whoever_leads_next_looks_first_and_then_does_it)
{
    decide();
    leads = false;
    commit();
    close_shell();
    leads = true;
    const unsigned before = observes;
    open_shell();
    commit();
    cr_assert_eq(scales, 0, "the size may be set already: it is looked at");
    cr_assert_gt(observes, before);
    see(4);
    commit();
    if (scales == 0) { /* the intent's outcome is recorded, and it is decided anew */
        see(4);
        commit();
    }
    cr_expect_eq(scales, 1);
    cr_expect_eq(set_to, 6);
}

/* --- repeats --- */

static struct as_record_base base;

/* Sends the body once more, some time later. */
static void repeat_as(const char *credential)
{
    now.us += AS_US_PER_S;
    notify_as(credential, &base);
    commit();
}

static void repeat(void)
{
    repeat_as("");
}

/* The last record of a notification, small or whole; in static memory. */
static const char *get_last(void)
{
    static char last[4096];
    size_t size;
    const char *line = as_audit_memory_get_lines(log_, &size), *end;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        char text[4096];
        (void)snprintf(text, sizeof(text), "%.*s", (int)(end - line), line);
        if (strstr(text, "\"kind\":\"notification\"") || strstr(text, "\"kind\":\"repeat\""))
            memcpy(last, text, sizeof(text));
    }
    return last;
}

static bool is_small(void)
{
    return strstr(get_last(), "\"kind\":\"repeat\"") != NULL;
}

/* An open incident whose alert is known, and the first whole record of its repeats. */
static void make_base(void)
{
    commit();
    base = (struct as_record_base){0};
    repeat();
    cr_assert(!is_small(), "it opens an incident");
    cr_assert_eq(base.epoch, 0, "so its record is not that of a repeat");
    repeat();
    cr_assert(!is_small(), "no record before it says `duplicate`");
    cr_assert_neq(base.epoch, 0);
}

Test(shell, a_repeat_names_the_record_with_its_details)
{
    make_base();
    const struct as_record_base first = base;
    for (int i = 0; i < 3; i++) {
        repeat();
        cr_expect(is_small());
        cr_expect(strstr(get_last(), first.id), "%s", get_last());
        cr_expect(strstr(get_last(), "\"outcomes\":{\"duplicate\":1}"), "%s", get_last());
    }
    cr_expect_eq(memcmp(&base, &first, sizeof(base)), 0);
}

Test(shell, a_repeat_of_a_body_that_nobody_remembers_is_whole)
{
    make_base();
    notify_as("", NULL);
    commit();
    cr_expect(!is_small());
}

Test(shell, a_repeat_of_another_credential_is_whole)
{
    make_base();
    repeat_as("other"); /* which is stored */
    repeat_as("other");
    cr_expect(!is_small());
    repeat_as("other");
    cr_expect(is_small());
    repeat();
    cr_expect(!is_small());
}

Test(shell, a_repeat_with_other_outcomes_is_whole)
{
    make_base();
    see(4); /* its first look at a named target */
    commit();
    see(4);
    commit();
    cr_assert_eq(scales, 1);
    const struct as_scale_result done = {.outcome = AS_REASON_APPLIED, .attempts = 1};
    asked.scaled(asked.context, asked.call_id, &done);
    commit();
    repeat();
    cr_expect(!is_small(), "its steps are used up now");
    repeat();
    cr_expect(is_small());
    cr_expect(strstr(get_last(), "\"outcomes\":{\"max_steps\":1}"), "%s", get_last());
}

Test(shell, a_repeat_reaches_ten_minutes_back)
{
    make_base();
    now.us += 10 * AS_US_PER_MIN - AS_US_PER_S;
    repeat();
    cr_expect(is_small());
    now.us -= AS_US_PER_S - 1;
    repeat();
    cr_expect(!is_small());
    repeat();
    cr_expect(is_small());
    now.us -= AS_US_PER_H; /* the wall clock may be set back: this one's is made of `now` */
    repeat();
    cr_expect(!is_small());
}

Test(shell, a_repeat_reaches_ten_thousand_records_back)
{
    make_base();
    for (unsigned i = 0; i < 9999; i++)
        as_shell_record_denied(shell, &(struct as_denied_record){"", "webhook", "", 401, 1});
    repeat();
    cr_expect(is_small(), "it is the ten thousandth after it");
    repeat();
    cr_expect(!is_small());
}

Test(shell, a_repeat_and_its_details_are_in_one_file)
{
    make_base();
    repeat();
    cr_assert(is_small());
    as_storage_reopen_log(storage);
    notify_as("", &base); /* before it is opened: in which file it will be is not known */
    commit();
    cr_expect(!is_small());
    cr_expect_eq(base.epoch, 0);
    repeat();
    cr_expect(!is_small());
    repeat();
    cr_expect(is_small());
}

Test(shell, a_repeat_reaches_back_over_no_new_rules)
{
    const struct as_engine_config engine = {.incident_expiry_us = AS_US_PER_DAY,
                                            .stale_window_us = AS_US_PER_MIN};
    make_base();
    struct as_ruleset *next = spec_make_ruleset(&slow);
    as_shell_reload(shell, next, &engine, "d", &targets, NULL, NULL, "");
    as_ruleset_free(ruleset);
    ruleset = next;
    commit();
    repeat();
    cr_expect(!is_small());
    repeat();
    cr_expect(is_small());
}

Test(shell, a_repeat_reaches_back_over_no_reload_that_failed)
{
    make_base();
    as_shell_record_failed_reload(shell, "", "why");
    commit();
    repeat();
    cr_expect(!is_small());
    repeat();
    cr_expect(is_small());
}

Test(shell, a_repeat_reaches_back_over_no_start)
{
    make_base();
    close_shell();
    open_shell();
    commit();
    repeat();
    cr_expect(!is_small());
    repeat();
    cr_expect(is_small());
}

/* --- marks of nodes --- */

static const struct spec drained = {
    .targets = {{.name = "web", .is_group = true, .max = 20, .up = 3600, .down = 1}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .down = 1}},
};
static const struct spec grown = {
    .targets = {{.name = "web", .is_group = true, .max = 20, .up = 3600, .down = 1}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 1}},
};
static const struct spec deleted = {
    .targets = {{.name = "web", .url = "http://pool/web", .max = 20, .up = 3600, .down = 1}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .down = 1}},
};

static int find_marks(void *context, const void *key, size_t key_size, const void *value,
                      size_t value_size)
{
    bool *is_found = context;
    *is_found = *is_found ||
                (key_size == strlen("marked_nodes") && memcmp(key, "marked_nodes", key_size) == 0);
    return 0;
}

static bool has_row(void)
{
    struct as_error error = AS_ERROR_INIT;
    bool is_found = false;
    struct as_store *store = as_store_memory_attach(state);
    cr_assert_eq(store->visit(store, AS_STORE_META, find_marks, &is_found, &error), 0);
    store->close(store);
    return is_found;
}

static void begin_with(const struct spec *spec)
{
    close_shell();
    as_ruleset_free(ruleset);
    ruleset = spec_make_ruleset(spec);
    observes = 0;
    open_shell();
}

/* The action's answer: everything that it changes is done. */
static void end_action(int32_t to)
{
    const struct as_scale_result done = {
        .outcome = AS_REASON_APPLIED, .method = "PUT", .reached = to};
    cr_assert_eq(scales, 1);
    asked.scaled(asked.context, asked.call_id, &done);
    commit();
}

Test(shell, marks_are_stored_with_the_intent_before_anything_is_asked_for)
{
    begin_with(&drained);
    cr_expect_not(as_shell_may_have_marks(shell));
    decide();
    cr_expect_eq(scales, 0, "the intent is not durable yet");
    leads = false; /* so nothing is sent, as after a crash */
    commit();
    close_shell();
    cr_expect(has_row());
    cr_expect_eq(scales, 0);
}

Test(shell, marks_are_remembered_without_their_rule_until_no_node_has_one)
{
    begin_with(&drained);
    decide();
    commit();
    end_action(3);
    as_shell_forget_marks(shell); /* ignored: this process may have marked a node since */
    commit();
    cr_expect(as_shell_may_have_marks(shell));

    begin_with(&slow);
    cr_expect(as_shell_may_have_marks(shell));
    as_shell_forget_marks(shell);
    commit();
    close_shell();
    cr_expect_not(has_row());
    open_shell();
}

Test(shell, an_open_intent_may_still_mark_nodes)
{
    begin_with(&drained);
    decide();
    leads = false;
    commit();
    leads = true;
    begin_with(&slow);
    commit();
    as_shell_forget_marks(shell);
    commit();
    close_shell();
    cr_expect(has_row());
    open_shell();
}

static void expect_no_row(const struct spec *spec)
{
    begin_with(spec);
    decide();
    commit();
    cr_expect_eq(scales, 1);
    close_shell();
    cr_expect_not(has_row());
    open_shell();
}

Test(shell, a_workload_stores_no_marks)
{
    expect_no_row(&slow);
}

Test(shell, a_growth_stores_no_marks)
{
    expect_no_row(&grown);
}

Test(shell, instances_that_are_no_nodes_store_no_marks)
{
    expect_no_row(&deleted);
}

/* A version before 0.2.0 stored no marks: its state knows the group by its lock. */
Test(shell, a_state_that_knows_a_node_group_may_have_marks)
{
    begin_with(&grown);
    decide();
    commit();
    end_action(5);
    cr_expect_not(as_shell_may_have_marks(shell), "a growth marks nothing");
    begin_with(&slow);
    cr_expect(as_shell_may_have_marks(shell), "the lock of a group without a rule");
    begin_with(&grown);
    cr_expect(as_shell_may_have_marks(shell));
}

Test(shell, a_state_with_groups_whose_instances_are_no_nodes_has_no_marks)
{
    begin_with(&deleted);
    decide();
    commit();
    end_action(3);
    begin_with(&deleted);
    cr_expect_not(as_shell_may_have_marks(shell));
}

/* --- rows --- */

struct row {
    char key[512], value[4096];
    size_t key_size, value_size;
};

static int take_row(void *context, const void *key, size_t key_size, const void *value,
                    size_t value_size)
{
    struct row *row = context;
    cr_assert_lt(key_size, sizeof(row->key));
    cr_assert_leq(value_size, sizeof(row->value));
    memcpy(row->key, key, row->key_size = key_size);
    memcpy(row->value, value, row->value_size = value_size);
    return 0;
}

/* Such a row would stay when its target or incident is stored anew or forgotten. The next start
 * would find two rows of one target, or an incident that ended long ago. */
static void expect_no_start_with_another_key(enum as_store_kind kind)
{
    struct as_error error = AS_ERROR_INIT;
    close_shell();
    struct row row = {.key_size = 0};
    struct as_store *store = as_store_memory_attach(state);
    cr_assert_eq(store->visit(store, kind, take_row, &row, &error), 0);
    cr_assert_gt(row.key_size, 0, "there is such a row");
    row.key[row.key_size] = 'x';
    const struct as_store_change changes[] = {
        {.kind = kind, .key = row.key, .key_size = row.key_size},
        {.kind = kind,
         .key = row.key,
         .key_size = row.key_size + 1,
         .value = row.value,
         .value_size = row.value_size},
    };
    cr_assert_eq(store->commit(store, changes, 2, &error), 0);
    store->close(store);
    cr_expect_eq(try_open_shell(&error), -EBADMSG);
    cr_expect(strstr(error.text, "its key is not the one of its content"), "%s", error.text);
}

Test(shell, an_incident_under_another_key_is_refused)
{
    decide();
    commit();
    expect_no_start_with_another_key(AS_STORE_INCIDENT);
}

Test(shell, a_target_under_another_key_is_refused)
{
    begin_with(&grown);
    decide();
    commit();
    end_action(5);
    expect_no_start_with_another_key(AS_STORE_TARGET);
}

Test(shell, an_intent_under_another_key_is_refused)
{
    decide();
    commit();
    expect_no_start_with_another_key(AS_STORE_INTENT);
}
