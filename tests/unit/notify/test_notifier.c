/*
 * What people are told: one message at a time, in order for each target, until it is taken; over
 * restarts; and what becomes of it where it is never taken.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/base/log.h>
#include <alertscaler/decide/target_kind.h>
#include <alertscaler/log/record.h>
#include <alertscaler/notify/notice.h>
#include <alertscaler/notify/notifier.h>

#include "../../support/audit_memory.h"
#include "../../support/store_memory.h"

static as_mono_time now = {1000 * AS_US_PER_S};
static bool leads = true;
static uint64_t dropped, sent, failed;

static as_mono_time get_mono(const struct as_clock *self)
{
    return now;
}

static as_wall_time get_wall(const struct as_clock *self)
{
    return (as_wall_time){INT64_C(1795600000000000) + now.us};
}

static const struct as_clock clock_ = {get_mono, get_wall};

/* A messenger that keeps what it is to send until the test answers. */

static struct {
    uint64_t call_id;
    size_t receiver, url;
    char *body;
    as_message_done_fn *done;
    void *context;
} sendings[64];
static size_t sending_count;

static void send_message(struct as_messenger *self, uint64_t call_id,
                         const struct as_message *message, as_message_done_fn *done, void *context)
{
    cr_assert_lt(sending_count, AS_ARRAY_SIZE(sendings));
    sendings[sending_count].call_id = call_id;
    sendings[sending_count].receiver = message->receiver;
    sendings[sending_count].url = message->url;
    sendings[sending_count].body = strndup(message->body, message->size);
    sendings[sending_count].done = done;
    sendings[sending_count++].context = context;
}

static struct as_messenger messenger = {.send = send_message};

static void forget_sendings(void)
{
    while (sending_count > 0)
        free(sendings[--sending_count].body);
}

/* The world */

static const char *urls[] = {"http://a", "http://b"};
static struct as_notify_settings receivers[] = {
    {.name = "events",
     .is_webhook = true,
     .urls = urls,
     .url_count = 1,
     .on = 1U << AS_NOTICE_SCALED | 1U << AS_NOTICE_FAILED,
     .max_age_us = AS_US_PER_H},
    {.name = "on-call",
     .urls = urls,
     .url_count = 1,
     .on = 1U << AS_NOTICE_AT_MAX,
     .max_age_us = AS_US_PER_H},
};
static struct as_store_memory *state;
static struct as_audit_memory *log_;
static struct as_store *store;
static struct as_storage *storage;
static struct notifier *notifier;

static void on_durable(void *context, uint64_t call_id, int status, const char *error)
{
    cr_assert_eq(status, 0, "%s", error);
    if (call_id == NOTIFIER_TICKET)
        notifier_on_deleted(notifier);
}

static void on_hashed(void *context, uint64_t number, const char *hash)
{
    notifier_on_hashed(notifier, number, hash);
}

static void on_failed(void *context, int status, const char *error)
{
    cr_assert_fail("%s", error);
}

static void record(void *context, struct as_storage_batch *batch,
                   const struct as_notify_record *what)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(4096);
    struct as_record_places places;
    as_record_encode(&(struct as_record_header){get_wall(&clock_), "one"}, AS_RECORD_NOTIFY, what,
                     &text, &places);
    as_storage_batch_append(batch, &(struct as_audit_record){text.data, text.size, places.at_hash,
                                                             places.at_prev, places.at_seq});
}

static const char *sender; /* of what comes now */

static const char *find_sender(void *context, const char *target)
{
    return sender;
}

static as_mono_time observed = {INT64_MIN};   /* of every target */
static as_mono_time away_since = {INT64_MIN}; /* the cluster `default`; INT64_MIN: it answers */

static as_mono_time find_observed(void *context, const char *target, const char **cluster_out)
{
    *cluster_out = strncmp(target, "group", 5) == 0 ? "" : "default";
    return observed;
}

static void visit_clusters(void *context, as_cluster_visit_fn *visit, void *visit_context)
{
    const struct as_cluster_view views[] = {
        {"edge", AS_MOMENT_NEVER},
        {"default",
         away_since.us == INT64_MIN ? AS_MOMENT_NEVER : (struct as_moment){.mono = away_since}}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(views); i++)
        visit(visit_context, &views[i]);
}

static bool may_send(void *context)
{
    return leads;
}

static void moved(void *context)
{
}

static void counted(void *context, const char *receiver, enum as_notifier_count what,
                    uint64_t count)
{
    uint64_t *const counts[] = {[AS_NOTIFIER_SENT] = &sent,
                                [AS_NOTIFIER_FAILED] = &failed,
                                [AS_NOTIFIER_DROPPED] = &dropped};
    *counts[what] += count;
}

static const struct as_notifier_config config = {
    .receivers = receivers,
    .receiver_count = AS_ARRAY_SIZE(receivers),
    .messenger = &messenger,
    .instance = "here",
    .counted = counted,
};

static void start(void)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_storage_config storage_config = as_storage_config_default;
    store = as_store_memory_attach(state);
    storage_config.store = store;
    storage_config.audit = as_audit_memory_attach(log_);
    storage_config.clock = &clock_;
    storage_config.callbacks = (struct as_storage_callbacks){
        .durable = on_durable, .hashed = on_hashed, .failed = on_failed};
    cr_assert_eq(as_storage_new(&storage_config, &storage, &error), 0, "%s", error.text);
    notifier = notifier_new(&(struct notifier_callbacks){.record = record,
                                                         .find_sender = find_sender,
                                                         .find_observed = find_observed,
                                                         .visit_clusters = visit_clusters,
                                                         .may_send = may_send,
                                                         .moved = moved},
                            &clock_, storage);
    cr_assert_eq(notifier_restore(notifier, store, &error), 0, "%s", error.text);
    notifier_reload(notifier, &config);
}

static void stop(void)
{
    notifier = notifier_free(notifier);
    storage = as_storage_free(storage);
    forget_sendings();
}

static void setup(void)
{
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, STDERR_FILENO);
    state = as_store_memory_new();
    log_ = as_audit_memory_new();
    start();
}

static void teardown(void)
{
    stop();
    as_store_memory_free(state);
    as_audit_memory_free(log_);
}

/* Without sending. */
static void settle(void)
{
    while (as_storage_step(storage))
        as_storage_deliver(storage);
}

static void work(void)
{
    settle();
    notifier_work(notifier);
}

static void pass(int64_t us)
{
    now.us += us;
    work();
}

static const char *ordered_by; /* a narrowed credential; NULL: actions come from decisions */

static void act_with(const char *target, int32_t to, enum as_reason outcome)
{
    static const struct as_record_places none = {0};
    const struct as_target_kind kind = {.word = "kubernetes"};
    const struct as_action_record action = {.id = "A",
                                            .decision = ordered_by ? NULL : "D",
                                            .command = ordered_by ? "C" : NULL,
                                            .sender = ordered_by,
                                            .target = target,
                                            .target_name = target,
                                            .target_kind = &kind,
                                            .rule = "r",
                                            .from = to - 1,
                                            .to = to,
                                            .outcome = outcome,
                                            .message = "",
                                            .method = "",
                                            .path = "",
                                            .version = ""};
    const struct as_effect effect = {.kind = AS_EFFECT_RECORD_ACTION, .action = &action};
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(4096);
    struct as_record_places places = none;
    struct as_storage_batch *batch = as_storage_batch_new(0);
    as_record_encode(&(struct as_record_header){get_wall(&clock_), "one"}, AS_RECORD_ACTION,
                     &action, &text, &places);
    as_storage_batch_append(batch, &(struct as_audit_record){text.data, text.size, places.at_hash,
                                                             places.at_prev, places.at_seq});
    notifier_on_effect(notifier, NULL, &effect, batch);
    as_storage_submit(storage, batch);
}

static void act(const char *target, int32_t to)
{
    act_with(target, to, AS_REASON_APPLIED);
}

/* The one message on its way says this. */
static void expect_sending(const char *target, int32_t to)
{
    char what[64];
    cr_assert_eq(sending_count, 1, "%zu on their way", sending_count);
    snprintf(what, sizeof(what), "\"target\":\"%s\"", target);
    cr_assert(strstr(sendings[0].body, what), "not of %s: %s", target, sendings[0].body);
    snprintf(what, sizeof(what), "\"to\":%d", to);
    cr_assert(strstr(sendings[0].body, what), "not to %d: %s", to, sendings[0].body);
}

static void answer(const char *error)
{
    const uint64_t call_id = sendings[0].call_id;
    as_message_done_fn *done = sendings[0].done;
    void *context = sendings[0].context;
    cr_assert_eq(sending_count, 1);
    forget_sendings();
    done(context, call_id, error);
}

struct waiting {
    size_t entries;
    int64_t oldest_us;
};

static void note_waiting(void *context, const struct as_notifier_view *view)
{
    struct waiting *waiting = context;
    waiting->entries += view->entries;
    if (view->oldest_us > waiting->oldest_us)
        waiting->oldest_us = view->oldest_us;
}

static struct waiting look(void)
{
    struct waiting waiting = {0};
    notifier_visit(notifier, note_waiting, &waiting);
    return waiting;
}

static bool log_has(const char *text)
{
    size_t size;
    const char *lines = as_audit_memory_get_lines(log_, &size);
    return memmem(lines, size, text, strlen(text)) != NULL;
}

TestSuite(notifier, .init = setup, .fini = teardown);

Test(notifier, nothing_is_sent_before_it_is_durable)
{
    act("a", 2);
    notifier_work(notifier);
    cr_assert_eq(sending_count, 0);
    work();
    expect_sending("a", 2);
    answer(NULL);
    cr_assert_eq(look().entries, 1, "until its deletion is durable");
    work();
    cr_assert_eq(look().entries, 0);
    cr_assert_eq(sent, 1);
    cr_assert_eq(as_store_memory_get_count(state, AS_STORE_META), 2, "head and time of the state");
}

Test(notifier, what_had_nothing_to_do_is_not_told)
{
    act_with("a", 2, AS_REASON_NO_PODS);
    act_with("a", 2, AS_REASON_CONFLICT);
    work();
    cr_assert_eq(sending_count, 0);
    act_with("a", 2, AS_REASON_DID_NOT_COME);
    work();
    expect_sending("a", 2);
}

Test(notifier, an_event_has_the_hash_of_its_record)
{
    char id[128];
    act("a", 2);
    work();
    const char *at = strstr(sendings[0].body, "\"id\":\"");
    cr_assert(at && strncmp(at + 6, "0000", 4) != 0);
    snprintf(id, sizeof(id), "\"hash\":\"%.64s\"", at + 6);
    cr_assert(log_has(id));
    stop();
    start();
    work();
    cr_assert(strstr(sendings[0].body, at ? id + 8 : "?"), "the same after a restart");
}

Test(notifier, the_next_about_a_target_waits_for_the_deletion_of_the_one_before)
{
    act("a", 2);
    act("a", 3);
    work();
    expect_sending("a", 2);
    answer(NULL);
    notifier_work(notifier);
    cr_assert_eq(sending_count, 0);
    work();
    expect_sending("a", 3);
}

Test(notifier, one_that_is_refused_holds_up_its_target_and_no_other)
{
    act("a", 2);
    act("a", 3);
    act("b", 7);
    work();
    expect_sending("a", 2);
    answer("HTTP 500");
    cr_assert_eq(failed, 1);
    cr_assert_eq(sending_count, 0, "it rests");
    pass(AS_US_PER_S);
    expect_sending("b", 7);
    answer(NULL);
    work();
    expect_sending("a", 2);
    answer("HTTP 500");
    pass(AS_US_PER_S);
    cr_assert_eq(sending_count, 0, "the second failure of this one: two seconds");
    pass(AS_US_PER_S);
    expect_sending("a", 2);
    answer(NULL);
    work();
    expect_sending("a", 3);
}

Test(notifier, rests_get_longer_up_to_a_minute)
{
    act("a", 2);
    work();
    for (int i = 0; i < 12; i++) {
        const int64_t before = now.us;
        expect_sending("a", 2);
        answer("refused");
        const as_mono_time due = notifier_get_deadline(notifier);
        const int64_t rest = i < 6 ? AS_US_PER_S << i : AS_US_PER_MIN;
        cr_assert_leq(due.us - before, rest);
        pass(rest - 1);
        cr_assert_eq(sending_count, 0);
        pass(1);
    }
    expect_sending("a", 2);
}

Test(notifier, what_waits_survives_a_restart_in_order)
{
    act("a", 2);
    act("a", 3);
    work();
    expect_sending("a", 2); /* it may have arrived */
    stop();
    now.us += 10 * AS_US_PER_S;
    start();
    cr_assert_eq(look().entries, 2);
    cr_assert_geq(look().oldest_us, 10 * AS_US_PER_S);
    work();
    expect_sending("a", 2);
    answer(NULL);
    work();
    expect_sending("a", 3);
    act("a", 4);
    answer(NULL);
    work();
    expect_sending("a", 4);
}

Test(notifier, who_does_not_lead_sends_nothing)
{
    leads = false;
    act("a", 2);
    work();
    pass(AS_US_PER_S);
    cr_assert_eq(sending_count, 0);
    leads = true;
    pass(AS_US_PER_S);
    expect_sending("a", 2);
}

Test(notifier, after_the_stop_nothing_is_sent)
{
    notifier_stop(notifier);
    act("a", 2);
    work();
    cr_assert_eq(sending_count, 0);
    cr_assert_eq(notifier_get_deadline(notifier).us, AS_MONO_NEVER.us);
}

Test(notifier, what_is_older_than_max_age_is_dropped_and_nothing_younger)
{
    act("a", 2);
    act("b", 2);
    work();
    answer("gone");
    pass(AS_US_PER_H - 2 * AS_US_PER_MIN);
    act("c", 2);
    for (int i = 0; i < 4; i++) {
        pass(AS_US_PER_MIN);
        if (sending_count > 0)
            answer("gone");
    }
    cr_assert_eq(dropped, 2);
    settle();
    cr_assert_eq(look().entries, 1);
    cr_assert(log_has("\"cause\":\"too_old\",\"count\":2,\"event\":\"dropped\""));
}

Test(notifier, ten_thousand_and_one)
{
    char target[16];
    for (int i = 0; i < AS_NOTIFIER_ENTRIES_MAX + 1; i++) {
        snprintf(target, sizeof(target), "t%d", i);
        act(target, 2);
        if (i % 1000 == 0)
            settle();
    }
    settle();
    cr_assert_eq(look().entries, AS_NOTIFIER_ENTRIES_MAX - 99, "a hundred went for one");
    cr_assert_eq(dropped, 100);
    cr_assert(log_has("\"cause\":\"overflow\",\"count\":100,\"event\":\"dropped\""));
    work();
    expect_sending("t100", 2); /* the oldest went */
    stop();
    start();
    cr_assert_eq(look().entries, AS_NOTIFIER_ENTRIES_MAX - 99, "no more in the state");
}

/* About targets of its own, `count` of them. */
static void act_many(const char *of, int count)
{
    char target[32];
    sender = of;
    for (int i = 0; i < count; i++) {
        (void)snprintf(target, sizeof(target), "%s-%d", of ? of : "other", i);
        act(target, 2);
        settle();
    }
    sender = NULL;
}

struct counting {
    const char *text;
    size_t count;
};

static int count_value(void *context, const void *key, size_t key_size, const void *value,
                       size_t value_size)
{
    struct counting *counting = context;
    counting->count += memmem(value, value_size, counting->text, strlen(counting->text)) != NULL;
    return 0;
}

static size_t count_in_state(const char *text)
{
    struct counting counting = {.text = text};
    cr_assert_eq(store->visit(store, AS_STORE_META, count_value, &counting, NULL), 0);
    return counting.count;
}

Test(notifier, a_narrowed_credential_displaces_only_its_own_notices)
{
    act_many(NULL, 2000);
    act_many("flood", 8000);
    cr_assert_eq(look().entries, AS_NOTIFIER_ENTRIES_MAX, "nothing is dropped before it is full");
    cr_assert_eq(dropped, 0);
    act_many("flood", 2000);
    act_many(NULL, 1000);
    cr_assert_eq(dropped, 3000);
    cr_assert_eq(count_in_state("\"target\":\"other-"), 3000, "those of others are whole");
    cr_assert(log_has("\"cause\":\"overflow\",\"count\":100"));
    act_many(NULL, 2000);
    cr_assert_eq(count_in_state("\"target\":\"other-"), 5000);
    cr_assert_eq(count_in_state("\"target\":\"flood-"), 5000, "the half that it may have");
}

Test(notifier, the_notice_of_an_order_is_of_its_narrowed_credential)
{
    ordered_by = "flood";
    act("one", 2);
    settle();
    ordered_by = NULL;
    cr_assert_eq(count_in_state("\"credential\":\"flood\""), 1);
    stop();
    start();
    cr_assert_eq(look().entries, 1, "it is restored");
}

Test(notifier, a_narrowed_credential_at_its_half_displaces_only_its_own_notices)
{
    act_many(NULL, 5000);
    act_many("flood", 5001);
    cr_assert_eq(count_in_state("\"target\":\"other-"), 5000, "those of others are whole");
    cr_assert_eq(dropped, 100, "with one record");
    act_many("flood", 1000);
    act_many("quiet", 200);
    cr_assert_eq(count_in_state("\"target\":\"other-"), 5000);
    cr_assert_eq(count_in_state("\"target\":\"quiet-"), 200, "less than its half of the half");
    cr_assert_leq(count_in_state("\"credential\":"), 5000, "the half that they may have");
}

Test(notifier, narrowed_credentials_share_the_half_equally)
{
    act_many("quiet", 1000);
    act_many("a", 4500);
    act_many("b", 4500);
    act_many(NULL, 5000);
    cr_assert_eq(count_in_state("\"target\":\"other-"), 5000);
    cr_assert_eq(count_in_state("\"target\":\"quiet-"), 1000, "less than its third of the half");
    cr_assert_leq(count_in_state("\"target\":\"a-"), 2100);
    cr_assert_leq(count_in_state("\"target\":\"b-"), 2100);
    cr_assert_eq(count_in_state("\"credential\":\"a\"") + count_in_state("\"credential\":\"b\""),
                 4000);
}

Test(notifier, a_restart_knows_whose_notices_wait)
{
    act_many(NULL, 100);
    act_many("flood", 9900);
    stop();
    start();
    act_many(NULL, 100);
    cr_assert_eq(count_in_state("\"target\":\"other-"), 200);
    cr_assert_eq(dropped, 100);
}

Test(notifier, notices_of_narrowed_credentials_take_turns_with_others)
{
    static const char *const order[] = {"other-0", "flood-0", "other-1", "quiet-0", "flood-1"};
    act_many("flood", 50);
    act_many("quiet", 1);
    act_many(NULL, 2);
    for (size_t i = 0; i < AS_ARRAY_SIZE(order); i++) {
        work();
        expect_sending(order[i], 2);
        answer(NULL);
    }
}

Test(notifier, a_receiver_that_is_gone_loses_what_waits_for_it)
{
    const struct as_notifier_config other = {.receivers = receivers + 1,
                                             .receiver_count = 1,
                                             .messenger = &messenger,
                                             .instance = "here",
                                             .counted = counted};
    act("a", 2);
    act("b", 2);
    work();
    answer("down");
    notifier_reload(notifier, &other);
    settle();
    cr_assert_eq(look().entries, 0);
    cr_assert_eq(dropped, 2);
    cr_assert(log_has("\"cause\":\"removed\",\"count\":2"));
}

Test(notifier, a_receiver_that_is_gone_at_a_restart_too)
{
    act("a", 2);
    settle();
    stop();
    receivers[0].name = "others";
    start();
    settle();
    receivers[0].name = "events";
    cr_assert_eq(dropped, 1);
    cr_assert_eq(as_store_memory_get_count(state, AS_STORE_META), 2);
}

Test(notifier, a_reload_sends_again_what_was_on_its_way)
{
    act("a", 2);
    work();
    expect_sending("a", 2);
    const uint64_t call_id = sendings[0].call_id;
    as_message_done_fn *done = sendings[0].done;
    void *context = sendings[0].context;
    forget_sendings();
    notifier_reload(notifier, &config);
    notifier_work(notifier);
    expect_sending("a", 2);
    done(context, call_id, NULL); /* of the former messenger: it means nothing any more */
    cr_assert_eq(sent, 0);
    answer(NULL);
    cr_assert_eq(sent, 1);
}

Test(notifier, what_cannot_be_read_is_dropped_and_stops_nothing)
{
    static const char *const keys[] = {"notice/0000000000000001", "notice/x",
                                       "notice_state/at_max/t"};
    struct as_storage_batch *batch = as_storage_batch_new(0);
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++)
        as_storage_batch_put(batch, AS_STORE_META, keys[i], strlen(keys[i]),
                             "{\"kind\":\"contended\"}", 20);
    as_storage_submit(storage, batch);
    settle();
    stop();
    as_log_configure(AS_LOG_ERROR, AS_LOG_LOGFMT, STDERR_FILENO);
    start();
    settle();
    cr_assert(log_has("\"cause\":\"unreadable\",\"count\":3"));
    cr_assert_eq(as_store_memory_get_count(state, AS_STORE_META), 2);
    act("a", 2);
    work();
    expect_sending("a", 2);
}

static void plant(const char *key, size_t key_size, const char *text)
{
    struct as_storage_batch *batch = as_storage_batch_new(0);
    as_storage_batch_put(batch, AS_STORE_META, key, key_size, text, strlen(text));
    as_storage_submit(storage, batch);
    settle();
}

#define STATE(kind, more)                                                                          \
    "{\"at\":1795600000000000,\"hash\":\"9f\",\"kind\":\"" kind                                    \
    "\",\"phase\":\"begin\",\"target\":\"web\"" more "}"
#define ENTRY(kind, phase, more)                                                                   \
    "{\"at\":1795600000000000,\"hash\":\"9f\",\"kind\":\"" kind "\",\"phase\":\"" phase            \
    "\",\"receiver\":\"events\",\"target\":\"web\",\"url\":0" more "}"
#define LONG "01ARZ3NDEKTSV4RRFFQ69G5FAV"

/* Rows that alertscaler never writes: a key that is too short for its kind, of another kind, of
 * another target, with a NUL, with another number; content without what its kind names; times that
 * no clock has. */
Test(notifier, rows_that_nobody_writes_are_dropped_and_named)
{
    static const struct {
        const char *key, *text;
        size_t key_size; /* 0: up to the NUL */
    } rows[] = {
        {"notice_state/x", STATE("contended", ""), 0},
        {"notice_state/at_max", STATE("needs_approval", ",\"approval\":\"A\",\"rule\":\"r\""), 0},
        {"notice_state/ineffective/web", STATE("ineffective", ""), 0},
        {"notice_state/ineffective/r", STATE("ineffective", ",\"rule\":\"r\""), 0},
        {"notice_state/needs_approval/web", STATE("needs_approval", ",\"approval\":\"A\""), 0},
        {"notice_state/needs_approval/" LONG "/web",
         STATE("needs_approval", ",\"approval\":\"" LONG "\""), 0},
        {"notice_state/at_max/other", STATE("at_max", ""), 0},
        {"notice_state/at_max/web\0x", STATE("at_max", ""), 25},
        {"notice_state/scaled/web", STATE("scaled", ""), 0},
        {"notice/0000000000000001", ENTRY("needs_approval", "begin", ",\"approval\":\"A\""), 0},
        {"notice/0000000000000002", ENTRY("needs_approval", "begin", ",\"rule\":\"r\""), 0},
        {"notice/0000000000000003",
         ENTRY("needs_approval", "end", ",\"approval\":\"A\",\"rule\":\"r\""), 0},
        {"notice/0000000000000004", ENTRY("failed", "event", ""), 0},
        {"notice/0000000000000005", ENTRY("scaled", "event", ",\"ended\":-9223372036854775808"), 0},
        {"notice/000000000000000A", ENTRY("scaled", "event", ""), 0},
        {"notice/ 6", ENTRY("scaled", "event", ""), 0},
        {"notice/ffffffffffffffff", ENTRY("scaled", "event", ""), 0},
    };
    char count[64];
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        plant(rows[i].key, rows[i].key_size ? rows[i].key_size : strlen(rows[i].key), rows[i].text);
    stop();
    start();
    settle();
    (void)snprintf(count, sizeof(count), "\"cause\":\"unreadable\",\"count\":%zu",
                   AS_ARRAY_SIZE(rows));
    cr_expect(log_has(count), "all %zu", AS_ARRAY_SIZE(rows));
    cr_expect_eq(as_store_memory_get_count(state, AS_STORE_META), 2);
    act("a", 2);
    work();
    expect_sending("a", 2);
}

Test(notifier, a_row_that_is_too_long_is_dropped)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT_OPEN((size_t)1 << 20);
    as_buf_append_str(&text, "{\"target\":\"");
    while (text.size < (size_t)64 * 1024)
        as_buf_append_str(&text, "0123456789abcdef");
    as_buf_append_str(&text, "\",\"at\":0,\"hash\":\"\",\"kind\":\"scaled\",\"phase\":\"event\","
                             "\"receiver\":\"events\"}");
    plant("notice/0000000000000001", 23, text.data);
    stop();
    start();
    settle();
    cr_expect(log_has("\"cause\":\"unreadable\",\"count\":1"));
}

/* A row of a state, as an earlier process has left it. */
static void plant_state(const char *target)
{
    const struct as_notice notice = {.kind = AS_NOTICE_AT_MAX,
                                     .phase = AS_NOTICE_BEGIN,
                                     .target = target,
                                     .rule = "r",
                                     .reason = "at_max",
                                     .at = get_wall(&clock_)};
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(4096);
    struct as_storage_batch *batch = as_storage_batch_new(0);
    char key[64];
    size_t at_hash;
    snprintf(key, sizeof(key), "notice_state/at_max/%s", target);
    as_notice_encode(&notice, &text, &at_hash);
    as_storage_batch_put(batch, AS_STORE_META, key, strlen(key), text.data, text.size);
    as_storage_submit(storage, batch);
    settle();
}

Test(notifier, a_state_is_told_again_every_minute)
{
    char ends[128], wall[AS_RFC3339_SIZE];
    plant_state("web");
    stop();
    start();
    for (int i = 0; i < 3; i++) {
        work();
        cr_assert_eq(sending_count, 1);
        cr_assert_eq(sendings[0].receiver, 1, "only an Alertmanager that asks for it");
        as_wall_time_print((as_wall_time){get_wall(&clock_).us + 5 * AS_US_PER_MIN}, wall);
        snprintf(ends, sizeof(ends), "\"endsAt\":\"%s\"", wall);
        cr_assert(strstr(sendings[0].body, ends), "%s", sendings[0].body);
        answer(i == 1 ? "down" : NULL); /* a failure waits for the next minute */
        pass(AS_US_PER_MIN - 1);
        cr_assert_eq(sending_count, 0);
        pass(1);
    }
}

Test(notifier, many_states_are_told_in_parts)
{
    char target[16];
    size_t alerts = 0, messages = 0;
    for (int i = 0; i < 250; i++) {
        snprintf(target, sizeof(target), "t%d", i);
        plant_state(target);
    }
    stop();
    start();
    for (work(); sending_count > 0; work()) {
        for (const char *at = sendings[0].body; (at = strstr(at, "\"alertname\"")); at++)
            alerts++;
        messages++;
        answer(NULL);
    }
    cr_assert_eq(alerts, 250);
    cr_assert_eq(messages, 3);
}

/* Failed observations: reported if they last. */

static struct as_notifier_config patient(void)
{
    struct as_notifier_config other = config;
    other.unread_us = 30 * AS_US_PER_S;
    return other;
}

static struct as_notifier_config patient_config;

static void be_patient(void)
{
    patient_config = patient();
    observed.us = away_since.us = INT64_MIN;
    notifier_reload(notifier, &patient_config);
}

static void fail_to_read(const char *target, enum as_reason outcome)
{
    act_with(target, -1, outcome);
}

/* As the shell: at the deadline of the notifier. */
static void wait_for(int64_t us)
{
    const int64_t end = now.us + us;
    settle();
    while (notifier_get_deadline(notifier).us <= end) {
        if (notifier_get_deadline(notifier).us > now.us)
            now = notifier_get_deadline(notifier);
        if (notifier_must_check_states(notifier))
            notifier_check_states(notifier, NULL);
        work();
        if (sending_count > 0)
            break;
    }
    now.us = end;
    settle();
}

static bool says(const char *text)
{
    return strstr(sendings[0].body, text) != NULL;
}

Test(notifier, a_target_that_cannot_be_read_is_reported_after_half_a_minute)
{
    be_patient();
    fail_to_read("a", AS_REASON_FORBIDDEN);
    wait_for(29 * AS_US_PER_S);
    cr_assert_eq(sending_count, 0);
    wait_for(2 * AS_US_PER_S);
    cr_assert_eq(sending_count, 1);
    cr_assert(says("could not be read: forbidden") && says("\"subject\":\"a\""), "%s",
              sendings[0].body);
    answer(NULL);
    wait_for(AS_US_PER_MIN);
    cr_assert_eq(look().entries, 0);
    act_with("b", 3, AS_REASON_FORBIDDEN);
    work();
    expect_sending("b", 3); /* a size that could not be set: at once */
}

Test(notifier, a_target_that_is_read_again_is_not_reported)
{
    be_patient();
    fail_to_read("a", AS_REASON_TIMEOUT);
    wait_for(10 * AS_US_PER_S);
    observed = now;
    wait_for(AS_US_PER_MIN);
    cr_assert_eq(sending_count, 0);
    cr_assert_eq(look().entries, 0);
    cr_assert_eq(dropped, 0, "it is no loss");
    cr_assert_eq(as_store_memory_get_count(state, AS_STORE_META), 2, "head and time of the state");
}

Test(notifier, an_action_does_not_wait_behind_a_failure_that_is_over)
{
    be_patient();
    fail_to_read("a", AS_REASON_TIMEOUT);
    wait_for(AS_US_PER_S);
    act("a", 5);
    work();
    expect_sending("a", 5);
    answer(NULL);
    wait_for(AS_US_PER_MIN);
    cr_assert_eq(sending_count, 0);
    cr_assert_eq(look().entries, 0);
}

Test(notifier, a_cluster_that_is_away_is_one_notice)
{
    be_patient();
    away_since = now;
    fail_to_read("a", AS_REASON_UNREACHABLE);
    fail_to_read("group", AS_REASON_UNREACHABLE);
    fail_to_read("denied", AS_REASON_FORBIDDEN);
    wait_for(5 * AS_US_PER_S);
    fail_to_read("b", AS_REASON_TIMEOUT);
    wait_for(26 * AS_US_PER_S);
    cr_assert_eq(sending_count, 1);
    cr_assert(says("io.alertscaler.cluster_unreachable.v1") && says("\"cluster\":\"default\"") &&
                  says("\"subject\":\"kubernetes/default\"") && !says("\"target\""),
              "%s", sendings[0].body);
    answer(NULL);
    work();
    cr_assert(says("\"subject\":\"group\""), "%s", sendings[0].body);
    answer(NULL);
    work();
    cr_assert(says("\"subject\":\"denied\""), "%s", sendings[0].body);
    answer(NULL);
    wait_for(AS_US_PER_MIN);
    cr_assert_eq(sending_count, 0, "b is in the cluster");
    cr_assert_eq(look().entries, 0);

    away_since = now; /* another outage */
    fail_to_read("a", AS_REASON_UNREACHABLE);
    wait_for(31 * AS_US_PER_S);
    cr_assert(says("io.alertscaler.cluster_unreachable.v1"));
}

Test(notifier, a_failure_that_is_held_survives_a_restart)
{
    be_patient();
    fail_to_read("a", AS_REASON_UNREACHABLE);
    wait_for(10 * AS_US_PER_S);
    stop();
    start();
    notifier_reload(notifier, &patient_config);
    wait_for(15 * AS_US_PER_S);
    cr_assert_eq(sending_count, 0);
    wait_for(6 * AS_US_PER_S);
    cr_assert_eq(sending_count, 1);
    stop(); /* unanswered: it is sent again, although the target is read meanwhile */
    start();
    observed = now;
    notifier_reload(notifier, &patient_config);
    work();
    cr_assert_eq(sending_count, 1);
    cr_assert(says("could not be read: unreachable"));
}
