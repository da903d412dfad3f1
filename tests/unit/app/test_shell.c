/*
 * The shell's fence: what others see of us (a size that is set, a 200) needs that we lead at that
 * very moment. Where we do not, nothing is carried out any more, the owner is told once, and what
 * was committed is there for whoever leads next.
 */
#include <alertscaler/app/shell.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include <alertscaler/audit/memory.h>
#include <alertscaler/base/log.h>
#include <alertscaler/store/memory.h>
#include <alertscaler/wire/labels_digest.h>

#include "../../support/rule_spec.h"

static const struct spec slow = {
    .targets = {{.name = "web", .min = 1, .max = 20, .up = 3600, .down = 3600}},
    .rules = {{.name = "slow", .match = {"alertname=Slow"}, .target = "web", .up = 2}},
};

static as_mono_time now = {1000 * AS_US_PER_S};
static bool leads = true;
static uint64_t asked_at; /* the question that is answered no, and all after it; 0: none */
static uint64_t questions;
static unsigned scales, answers, observes, fences, deadlines;
static int32_t set_to;

static struct { /* what the targets were asked last */
    uint64_t ticket;
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
    return (as_wall_time){INT64_C(1795600000000000) + now.us};
}

static const struct as_clock clock_ = {get_mono, get_wall};

static void observe(struct as_target_port *self, uint64_t ticket, const struct as_target_ref *ref,
                    const struct as_observe_request *request, as_target_observed_fn *done,
                    void *context)
{
    observes++;
    asked.ticket = ticket;
    asked.observed = done;
    asked.context = context;
}

static void scale(struct as_target_port *self, uint64_t ticket, const struct as_target_ref *ref,
                  const struct as_scale_request *request, as_target_scaled_fn *done, void *context)
{
    scales++;
    set_to = request->to;
    asked.ticket = ticket;
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

static void on_outcome(void *context, uint64_t request, const struct as_notification_record *record)
{
}

static void on_answer(void *context, uint64_t request)
{
    answers++;
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

static void on_durable(void *context, uint64_t ticket, int status, const char *error)
{
    cr_assert_eq(status, 0, "%s", error);
    as_shell_on_durable(shell, ticket);
}

static void on_failed(void *context, int status, const char *error)
{
    cr_assert_fail("%s", error);
}

static void open_shell(void)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_storage_config storage_config = as_storage_config_default;
    struct as_store *store = as_store_memory_attach(state);
    storage_config.store = store;
    storage_config.audit = as_audit_memory_attach(log_);
    storage_config.clock = &clock_;
    storage_config.callbacks =
        (struct as_storage_callbacks){.durable = on_durable, .failed = on_failed};
    cr_assert_eq(as_storage_new(&storage_config, &storage, &error), 0, "%s", error.text);
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
                   .seed = 1},
        .ruleset = ruleset,
        .callbacks = {.outcome = on_outcome,
                      .answer = on_answer,
                      .deadline = on_deadline,
                      .may_act = may_act,
                      .fenced = on_fenced},
    };
    cr_assert_eq(as_shell_new(&config, store, &shell, &error), 0, "%s", error.text);
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
    asked.observed(asked.context, asked.ticket, &seen);
}

static void notify(void)
{
    const struct as_label pairs[] = {{"alertname", "Slow"}};
    struct as_labels *labels, *none;
    cr_assert_eq(as_labels_new(pairs, 1, &labels), 0);
    cr_assert_eq(as_labels_new(NULL, 0, &none), 0);
    struct as_alert alert = {
        .status = AS_ALERT_FIRING,
        .digest = as_labels_get_digest(labels),
        .fingerprint = as_labels_get_fingerprint(labels),
        .starts_at = get_wall(&clock_),
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
        .credential = (char[]){""},
        .traceparent = (char[]){""},
    };
    (void)snprintf(notification.id, sizeof(notification.id), "%s", "N0000000000000000000000001");
    as_shell_notify(shell, &notification, 1);
    as_labels_free(labels);
    as_labels_free(none);
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
