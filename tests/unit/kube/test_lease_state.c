/*
 * The steps of leader election, one at a time: when a lease is taken, renewed, left alone, lost and
 * released, and what is written.
 */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/leader_lease.h>

#define S AS_US_PER_S

static const struct lease_times times = {15 * S, 10 * S, 2 * S};
static struct lease_state state;
static struct lease_now now;

static void begin(void)
{
    now = (struct lease_now){{1000 * S}, {2000000 * S}};
    lease_state_init(&state, "me", &times, 7, now);
}

TestSuite(lease_state, .init = begin);

static void pass(int64_t us)
{
    now.mono.us += us;
    now.wall.us += us;
}

static struct as_lease held_by(const char *holder, int64_t renewed)
{
    struct as_lease lease = {.duration_s = 15, .transitions = 3, .renewed = {true, {renewed}}};
    snprintf(lease.holder, sizeof(lease.holder), "%s", holder);
    return lease;
}

static void expect_order(enum lease_order got, enum lease_order want)
{
    cr_assert_eq(got, want, "order %d, want %d", (int)got, (int)want);
}

static enum lease_order read_lease(struct as_lease lease)
{
    return lease_state_on_read(&state, now, &lease);
}

static enum lease_order written(void)
{
    struct as_lease lease = state.want;
    return lease_state_on_written(&state, now, &lease);
}

/* What is due next, at the moment when it is due. */
static enum lease_order wake(void)
{
    as_mono_time at = lease_state_get_wake(&state);
    if (at.us > now.mono.us)
        pass(at.us - now.mono.us);
    return lease_state_wake(&state, now);
}

static void lead(void)
{
    expect_order(wake(), LEASE_GET);
    expect_order(lease_state_on_read(&state, now, NULL), LEASE_CREATE);
    expect_order(written(), LEASE_WAIT);
    cr_assert(lease_state_may_act(&state, now));
}

Test(lease_state, what_is_not_there_is_made)
{
    expect_order(wake(), LEASE_GET);
    expect_order(lease_state_on_read(&state, now, NULL), LEASE_CREATE);
    cr_expect_str_eq(state.want.holder, "me");
    cr_expect_eq(state.want.duration_s, 15);
    cr_expect_eq(state.want.transitions, 0);
    cr_expect_eq(state.want.acquired.at.us, now.wall.us);
    cr_expect_eq(state.want.renewed.at.us, now.wall.us);
    cr_expect_not(lease_state_may_act(&state, now), "not before the answer");
    pass(S / 2);
    expect_order(written(), LEASE_WAIT);
    cr_expect(lease_state_may_act(&state, now));
}

Test(lease_state, a_term_counts_from_before_the_request)
{
    expect_order(wake(), LEASE_GET);
    expect_order(lease_state_on_read(&state, now, NULL), LEASE_CREATE);
    int64_t sent = now.mono.us;
    pass(3 * S);
    expect_order(written(), LEASE_WAIT);
    cr_expect_eq(state.until.us, sent + 10 * S);
}

Test(lease_state, an_answer_after_the_deadline_gives_no_term)
{
    expect_order(wake(), LEASE_GET);
    expect_order(lease_state_on_read(&state, now, NULL), LEASE_CREATE);
    pass(11 * S);
    expect_order(written(), LEASE_WAIT);
    cr_expect_not(lease_state_may_act(&state, now));
    expect_order(wake(), LEASE_GET);
}

Test(lease_state, renewing_keeps_the_time_of_acquiring_and_the_count)
{
    lead();
    int64_t acquired = state.want.acquired.at.us, sent = now.mono.us;
    expect_order(wake(), LEASE_UPDATE);
    cr_expect_eq(now.mono.us, sent + 2 * S, "every retry period");
    cr_expect_eq(state.want.acquired.at.us, acquired);
    cr_expect_eq(state.want.renewed.at.us, now.wall.us);
    cr_expect_eq(state.want.transitions, 0);
    expect_order(written(), LEASE_WAIT);
    cr_expect_eq(state.until.us, sent + 12 * S);
}

Test(lease_state, anothers_lease_is_taken_when_it_was_not_seen_to_change_for_its_length)
{
    struct as_lease lease = held_by("other", 1); /* renewed long ago by its wall clock */
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(lease), LEASE_WAIT);
    int64_t seen = now.mono.us;
    enum lease_order order;
    do {
        cr_assert_lt(now.mono.us, seen + 16 * S);
        expect_order(wake(), LEASE_GET);
        order = read_lease(lease);
    } while (order == LEASE_WAIT);
    expect_order(order, LEASE_UPDATE);
    cr_expect_geq(now.mono.us, seen + 15 * S);
    cr_expect_lt(now.mono.us, seen + 15 * S + S / 5, "right when it runs out");
    cr_expect_eq(state.want.transitions, 4);
    cr_expect_eq(state.want.acquired.at.us, now.wall.us);
}

Test(lease_state, a_lease_that_changes_is_left_alone_whatever_times_it_names)
{
    expect_order(wake(), LEASE_GET);
    for (int i = 0; i < 50; i++) {
        expect_order(read_lease(held_by("other", i % 2 ? -1 : INT64_C(1) << 60)), LEASE_WAIT);
        expect_order(wake(), LEASE_GET);
    }
    cr_expect_geq(now.mono.us, 1000 * S + 30 * S);
    expect_order(read_lease(held_by("third", 1)), LEASE_WAIT);
}

Test(lease_state, the_wall_clock_is_not_asked_about_others)
{
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("other", now.wall.us)), LEASE_WAIT);
    now.wall.us += 3600 * S;
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("other", now.wall.us - 3600 * S)), LEASE_WAIT);
}

Test(lease_state, the_length_is_what_the_record_says)
{
    struct as_lease lease = held_by("other", 1);
    lease.duration_s = 60;
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(lease), LEASE_WAIT);
    pass(59 * S);
    expect_order(lease_state_wake(&state, now), LEASE_GET);
    expect_order(read_lease(lease), LEASE_WAIT);
    pass(S + 1);
    expect_order(lease_state_wake(&state, now), LEASE_GET);
    expect_order(read_lease(lease), LEASE_UPDATE);
}

Test(lease_state, one_that_was_given_back_is_taken_at_once)
{
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("other", 1)), LEASE_WAIT);
    expect_order(wake(), LEASE_GET);
    struct as_lease lease = held_by("", 2);
    lease.duration_s = 1;
    expect_order(read_lease(lease), LEASE_UPDATE);
    cr_expect_eq(state.want.duration_s, 15);
    cr_expect_eq(state.want.transitions, 4);
}

Test(lease_state, one_that_was_deleted_is_not_taken_before_its_holder_has_stopped)
{
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("other", 1)), LEASE_WAIT);
    expect_order(wake(), LEASE_GET);
    expect_order(lease_state_on_read(&state, now, NULL), LEASE_WAIT);
    pass(15 * S);
    expect_order(lease_state_wake(&state, now), LEASE_GET);
    expect_order(lease_state_on_read(&state, now, NULL), LEASE_CREATE);
}

Test(lease_state, losing_a_race_is_no_term)
{
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("", 1)), LEASE_UPDATE);
    expect_order(lease_state_on_failed(&state, now), LEASE_WAIT);
    cr_expect_not(lease_state_may_act(&state, now));
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("other", 2)), LEASE_WAIT);
}

Test(lease_state, a_lost_answer_is_read_before_it_is_written_again)
{
    lead();
    expect_order(wake(), LEASE_UPDATE);
    struct as_lease applied = state.want;
    pass(5 * S);
    expect_order(lease_state_on_failed(&state, now), LEASE_WAIT);
    cr_expect(lease_state_may_act(&state, now), "until the first one's deadline");
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(applied), LEASE_UPDATE);
    cr_expect_eq(state.want.transitions, 0, "it is ours: a renewal");
    expect_order(written(), LEASE_WAIT);
    cr_expect(lease_state_may_act(&state, now));
}

Test(lease_state, a_lost_answer_to_the_first_write_is_no_term)
{
    expect_order(wake(), LEASE_GET);
    expect_order(lease_state_on_read(&state, now, NULL), LEASE_CREATE);
    struct as_lease applied = state.want;
    expect_order(lease_state_on_failed(&state, now), LEASE_WAIT);
    expect_order(wake(), LEASE_GET);
    cr_expect_not(lease_state_may_act(&state, now));
    expect_order(read_lease(applied), LEASE_UPDATE);
    cr_expect_not(lease_state_may_act(&state, now));
    expect_order(written(), LEASE_WAIT);
    cr_expect(lease_state_may_act(&state, now));
}

Test(lease_state, a_term_that_is_not_renewed_ends_at_its_deadline)
{
    lead();
    int64_t until = state.until.us;
    int tries = 0;
    while (state.leads) {
        enum lease_order order = wake();
        if (order == LEASE_WAIT)
            continue;
        tries++;
        pass(S / 10);
        expect_order(lease_state_on_failed(&state, now), LEASE_WAIT);
    }
    cr_expect_geq(tries, 5);
    cr_expect_eq(now.mono.us, until, "told in time, not at the next try");
    cr_expect_not(lease_state_may_act(&state, now));
}

Test(lease_state, the_deadline_comes_in_the_middle_of_a_request_too)
{
    lead();
    expect_order(wake(), LEASE_UPDATE);
    cr_expect_eq(lease_state_get_wake(&state).us, state.until.us);
    expect_order(wake(), LEASE_WAIT);
    cr_expect_not(state.leads);
    cr_expect_eq(lease_state_get_wake(&state).us, INT64_MAX);
}

Test(lease_state, who_slept_does_not_lead)
{
    lead();
    pass(11 * S); /* stopped, or suspended: nothing was asked of the machine meanwhile */
    cr_expect_not(lease_state_may_act(&state, now));
}

/* A virtual machine may be stopped together with its monotonic clock. */
Test(lease_state, who_slept_with_its_clock_stopped_does_not_lead_when_the_wall_clock_is_set)
{
    lead();
    now.wall.us += 11 * S;
    cr_expect_not(lease_state_may_act(&state, now));
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("other", 1)), LEASE_WAIT);
    cr_expect_not(state.leads);
}

Test(lease_state, a_wall_clock_set_back_changes_nothing)
{
    lead();
    now.wall.us -= 3600 * S;
    cr_expect(lease_state_may_act(&state, now));
    pass(10 * S);
    cr_expect_not(lease_state_may_act(&state, now), "the monotonic clock goes on");
}

Test(lease_state, anothers_name_in_the_record_ends_the_term_at_once)
{
    lead();
    expect_order(wake(), LEASE_UPDATE);
    expect_order(lease_state_on_failed(&state, now), LEASE_WAIT); /* 409 */
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("other", 5)), LEASE_WAIT);
    cr_expect_not(lease_state_may_act(&state, now));
}

Test(lease_state, an_answer_that_names_another_gives_no_term)
{
    expect_order(wake(), LEASE_GET);
    expect_order(lease_state_on_read(&state, now, NULL), LEASE_CREATE);
    struct as_lease lease = held_by("a webhook's choice", 1);
    expect_order(lease_state_on_written(&state, now, &lease), LEASE_WAIT);
    cr_expect_not(lease_state_may_act(&state, now));
}

Test(lease_state, a_deleted_lease_of_ours_ends_the_term_and_is_made_again)
{
    lead();
    expect_order(wake(), LEASE_UPDATE);
    expect_order(lease_state_on_failed(&state, now), LEASE_WAIT); /* 404 */
    expect_order(wake(), LEASE_GET);
    expect_order(lease_state_on_read(&state, now, NULL), LEASE_CREATE);
    cr_expect_not(lease_state_may_act(&state, now));
    cr_expect_eq(state.want.acquired.at.us, now.wall.us);
    expect_order(written(), LEASE_WAIT);
    cr_expect(lease_state_may_act(&state, now));
}

/* The store was taken over: somebody else leads, or did. */
Test(lease_state, doubt_ends_the_term_until_the_record_was_read_and_written_again)
{
    lead();
    lease_state_doubt(&state, now);
    cr_expect_not(lease_state_may_act(&state, now));
    cr_expect_eq(lease_state_get_wake(&state).us, now.mono.us);
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("me", 1)), LEASE_UPDATE);
    cr_expect_not(lease_state_may_act(&state, now));
    expect_order(written(), LEASE_WAIT);
    cr_expect(lease_state_may_act(&state, now));
}

Test(lease_state, a_renewal_from_before_the_doubt_gives_no_term)
{
    lead();
    expect_order(wake(), LEASE_UPDATE);
    lease_state_doubt(&state, now);
    expect_order(written(), LEASE_GET);
    cr_expect_not(lease_state_may_act(&state, now));
    expect_order(read_lease(held_by("other", 5)), LEASE_WAIT);
    cr_expect_not(lease_state_may_act(&state, now));
}

Test(lease_state, who_yields_gives_it_back_and_leaves_it_to_others)
{
    lead();
    lease_state_yield(&state, now);
    cr_expect_not(lease_state_may_act(&state, now));
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("me", 1)), LEASE_UPDATE);
    cr_expect_str_eq(state.want.holder, "");
    expect_order(written(), LEASE_WAIT);
    pass(5 * S);
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("", 2)), LEASE_WAIT);
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("other", 3)), LEASE_WAIT);
    cr_expect_not(lease_state_may_act(&state, now));
}

Test(lease_state, where_nobody_takes_it_who_yielded_leads_again)
{
    lead();
    const int64_t yielded = now.mono.us;
    lease_state_yield(&state, now);
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("me", 1)), LEASE_UPDATE);
    expect_order(written(), LEASE_WAIT);
    enum lease_order order = LEASE_WAIT;
    while (order == LEASE_WAIT) {
        expect_order(wake(), LEASE_GET);
        order = read_lease(held_by("", 2));
    }
    expect_order(order, LEASE_UPDATE);
    cr_expect_str_eq(state.want.holder, "me");
    cr_expect_geq(now.mono.us, yielded + 15 * S);
    cr_expect_leq(now.mono.us, yielded + 16 * S);
    expect_order(written(), LEASE_WAIT);
    cr_expect(lease_state_may_act(&state, now));
}

Test(lease_state, a_renewal_from_before_it_yielded_is_given_back_too)
{
    lead();
    expect_order(wake(), LEASE_UPDATE);
    lease_state_yield(&state, now);
    expect_order(written(), LEASE_GET);
    expect_order(read_lease(state.want), LEASE_UPDATE);
    cr_expect_str_eq(state.want.holder, "");
    expect_order(lease_state_on_failed(&state, now), LEASE_WAIT);
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("me", 1)), LEASE_UPDATE);
    cr_expect_str_eq(state.want.holder, "", "tried again");
}

Test(lease_state, giving_back_empties_the_holder)
{
    lead();
    expect_order(lease_state_release(&state, now), LEASE_UPDATE);
    cr_expect_not(lease_state_may_act(&state, now));
    cr_expect_str_eq(state.want.holder, "");
    cr_expect_eq(state.want.duration_s, 1);
    cr_expect_eq(state.want.transitions, 0);
    expect_order(written(), LEASE_DONE);
    cr_expect_eq(lease_state_get_wake(&state).us, INT64_MAX);
}

Test(lease_state, giving_back_in_the_middle_of_a_write_reads_first)
{
    lead();
    expect_order(wake(), LEASE_UPDATE);
    struct as_lease applied = state.want;
    expect_order(lease_state_release(&state, now), LEASE_GET);
    expect_order(read_lease(applied), LEASE_UPDATE);
    cr_expect_str_eq(state.want.holder, "");
    expect_order(written(), LEASE_DONE);
}

Test(lease_state, giving_back_is_tried_again)
{
    lead();
    expect_order(lease_state_release(&state, now), LEASE_UPDATE);
    expect_order(lease_state_on_failed(&state, now), LEASE_WAIT);
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("me", 1)), LEASE_UPDATE);
    expect_order(written(), LEASE_DONE);
}

Test(lease_state, what_is_not_ours_is_not_given_back)
{
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("other", 1)), LEASE_WAIT);
    expect_order(lease_state_release(&state, now), LEASE_DONE);
    begin();
    expect_order(wake(), LEASE_GET);
    expect_order(lease_state_release(&state, now), LEASE_DONE);
    begin();
    expect_order(wake(), LEASE_GET);
    expect_order(read_lease(held_by("", 1)), LEASE_UPDATE);
    expect_order(lease_state_release(&state, now), LEASE_GET); /* the write may have come through */
    expect_order(read_lease(held_by("other", 1)), LEASE_DONE);
}

Test(lease_state, an_api_server_that_fails_is_asked_again_and_again)
{
    int64_t begun = now.mono.us;
    for (int i = 0; i < 100; i++) {
        expect_order(wake(), LEASE_GET);
        expect_order(lease_state_on_failed(&state, now), LEASE_WAIT);
    }
    cr_expect_geq(now.mono.us - begun, 70 * S);
    cr_expect_leq(now.mono.us - begun, 100 * S);
}

static struct as_lease led_by(const char *holder, int64_t acquired, int64_t renewed)
{
    struct as_lease lease = held_by(holder, renewed);
    lease.acquired = (as_maybe_time){true, {acquired}};
    return lease;
}

static void see(struct as_lease lease)
{
    pass(S);
    (void)wake();
    (void)read_lease(lease);
}

Test(lease_state, the_terms_of_others_are_noted)
{
    see(led_by("two_11", 100, 200));
    see(led_by("two_11", 100, 300));
    see(led_by("two_12", 400, 500)); /* another process of the replica */
    see(led_by("three", 600, 700));
    cr_assert_eq(state.term_count, 3);
    cr_expect_str_eq(state.terms[0].replica, "two");
    cr_expect_eq(state.terms[0].since.at.us, 100);
    cr_expect_eq(state.terms[0].until.us, 300);
    cr_expect_str_eq(state.terms[1].replica, "two");
    cr_expect_str_eq(state.terms[2].replica, "three");
    cr_expect_eq(state.terms[2].until.us, 700);
    see(led_by("", 800, 800)); /* given back: that is until when it led */
    cr_expect_eq(state.terms[2].until.us, 800);
    expect_order(written(), LEASE_WAIT); /* taken */
    cr_assert(lease_state_may_act(&state, now));
    cr_expect_eq(state.term_count, 3, "our own term is none");
    cr_expect_eq(state.terms[2].until.us, 800);
}

Test(lease_state, the_oldest_terms_are_dropped)
{
    for (int i = 0; i < 10; i++) {
        char holder[16];
        snprintf(holder, sizeof(holder), "r%d_7", i);
        see(led_by(holder, 10 * i, 10 * i + 5));
    }
    cr_expect_eq(state.terms_seen, 10);
    cr_assert_eq(state.term_count, AS_LEADER_TERMS_MAX);
    cr_expect_str_eq(state.terms[0].replica, "r2");
    cr_expect_str_eq(state.terms[AS_LEADER_TERMS_MAX - 1].replica, "r9");
}
