/*
 * The reach of a repeat's small record: one step beyond, and the record is whole.
 */
#include <criterion/criterion.h>

#include "runtime/repeat.h"

static const struct repeat_log log_ = {.epoch = 7, .records = 50000, .bytes = UINT64_C(1) << 40};
static const as_wall_time now = {AS_US_PER_DAY};
static const uint64_t said = 9;

static struct as_record_base make_base(void)
{
    return (struct as_record_base){.epoch = 7,
                                   .file = 1,
                                   .records = 40000,
                                   .bytes = (UINT64_C(1) << 40) - AS_REPEAT_REACH_BYTES,
                                   .said = said,
                                   .time = {AS_US_PER_DAY - AS_REPEAT_REACH_US}};
}

static bool is_near(struct as_record_base base)
{
    return repeat_is_near(&log_, &base, said, now);
}

Test(repeat, reaches_as_far_as_is_said_and_no_further)
{
    cr_expect(is_near(make_base()));
    struct as_record_base base = make_base();
    base.time.us--;
    cr_expect(!is_near(base), "too old");
    base.time.us = now.us + 1;
    cr_expect(!is_near(base), "from the future");
    base = make_base();
    base.records--;
    cr_expect(!is_near(base), "too many records");
    base = make_base();
    base.bytes--;
    cr_expect(!is_near(base), "too many bytes");
    base = make_base();
    base.said++;
    cr_expect(!is_near(base), "it says something else");
    base = make_base();
    base.epoch++;
    cr_expect(!is_near(base), "of another shell");
    cr_expect(!is_near((struct as_record_base){0}), "nowhere");
}

static uint64_t digest(const struct repeat_log *log, const char *credential,
                       const struct as_alert_outcome *outcomes, size_t count)
{
    const struct as_notification notification = {.credential = (char *)(uintptr_t)credential,
                                                 .alert_count = count};
    uint64_t digest_out;
    (void)repeat_sum_up(
        log, &(struct as_notification_record){.notification = &notification, .outcomes = outcomes},
        &digest_out);
    return digest_out;
}

/* What may be another time than the one before, each alone. */
Test(repeat, whatever_a_whole_record_would_say_differently_counts)
{
    static const char *const rules[] = {"slow", "full"}, *const swapped[] = {"full", "slow"};
    const struct as_alert_outcome known = {.reason = AS_REASON_DUPLICATE};
    const struct as_alert_outcome used_up = {.reason = AS_REASON_MAX_STEPS};
    const struct as_alert_outcome one = {
        .reason = AS_REASON_DUPLICATE, .rules = rules, .rule_count = 1};
    const struct as_alert_outcome two = {
        .reason = AS_REASON_DUPLICATE, .rules = rules, .rule_count = 2};
    const struct as_alert_outcome other = {
        .reason = AS_REASON_DUPLICATE, .rules = swapped, .rule_count = 2};
    const struct as_alert_outcome lists[][2] = {
        {known, known}, {known, used_up}, {used_up, known}, {used_up, used_up},
        {one, known},   {known, one},     {two, known},     {other, known}};
    uint64_t digests[2 * AS_ARRAY_SIZE(lists)];
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++) {
        digests[2 * i] = digest(&log_, "am", lists[i], 2);
        digests[2 * i + 1] = digest(&log_, "an", lists[i], 2);
        cr_expect_eq(digests[2 * i], digest(&log_, "am", lists[i], 2));
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(digests); i++) {
        for (size_t j = 0; j < i; j++)
            cr_expect_neq(digests[i], digests[j], "%zu and %zu", i, j);
    }
}

Test(repeat, each_shell_and_each_rule_set_has_an_epoch_of_its_own)
{
    struct repeat_log one, other;
    repeat_log_init(&one, 1);
    repeat_log_init(&other, 2);
    cr_expect_neq(one.epoch, other.epoch);
    const uint64_t before = one.epoch;
    repeat_log_begin_epoch(&one);
    cr_expect_neq(one.epoch, before);
}
