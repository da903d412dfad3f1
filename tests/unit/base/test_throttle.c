/*
 * Promises: the first event is reported at once; those of an interval are summed up at its end,
 * even if no other comes, and at the final call; unreported events stay; the sum of the counts is
 * the number of events.
 */
#include <alertscaler/base/throttle.h>

#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

static unsigned told;
static uint64_t sum, last;
static bool is_deaf;
static char said[2 * AS_ERROR_SIZE];

static bool tell(const void *context, const struct as_throttle *throttle)
{
    cr_expect_eq(context, &told);
    if (is_deaf)
        return false;
    told++;
    last = throttle->count;
    sum += throttle->count;
    (void)snprintf(said, sizeof(said), "%s %s", throttle->remote, throttle->error);
    return true;
}

#define AT(seconds) ((as_mono_time){INT64_C(seconds) * AS_US_PER_S})

static struct as_throttle make(void)
{
    return AS_THROTTLE_INIT(AS_THROTTLE_EVERY_US, tell, &told);
}

Test(throttle, what_came_within_the_interval_is_told_when_it_is_over_although_no_other_comes)
{
    struct as_throttle throttle = make();
    for (int i = 0; i < 300; i++)
        as_throttle_add(&throttle, i == 0 ? "first" : "later", "wrong", AT(0));
    cr_expect_eq(told, 1, "told %u times", told);
    cr_expect_str_eq(said, "first wrong");
    as_throttle_refill(&throttle, (as_mono_time){AS_THROTTLE_EVERY_US - 1});
    cr_expect_eq(told, 1);
    as_throttle_refill(&throttle, AT(60));
    cr_expect_eq(told, 2);
    cr_expect_eq(last, 299);
    cr_expect_str_eq(said, "later wrong");
    as_throttle_refill(&throttle, AT(600));
    cr_expect_eq(told, 2, "nothing is left");
}

Test(throttle, a_stream_is_told_once_an_interval)
{
    struct as_throttle throttle = make();
    for (int64_t second = 0; second < 600; second++)
        as_throttle_add(&throttle, "", "", (as_mono_time){second * AS_US_PER_S});
    cr_expect_eq(told, 10);
    as_throttle_end(&throttle, AT(600));
    cr_expect_eq(sum, 600);
}

Test(throttle, the_end_tells_what_is_left_and_nothing_where_nothing_is)
{
    struct as_throttle throttle = make();
    as_throttle_end(&throttle, AT(0));
    cr_expect_eq(told, 0);
    as_throttle_add(&throttle, "", "", AT(0));
    as_throttle_add(&throttle, "", "", AT(1));
    as_throttle_end(&throttle, AT(2));
    as_throttle_end(&throttle, AT(2));
    cr_expect_eq(told, 2);
    cr_expect_eq(sum, 2);
}

Test(throttle, what_could_not_be_told_stays)
{
    struct as_throttle throttle = make();
    is_deaf = true;
    as_throttle_add(&throttle, "", "", AT(0));
    as_throttle_add(&throttle, "", "", AT(1));
    as_throttle_refill(&throttle, AT(100));
    as_throttle_end(&throttle, AT(101));
    is_deaf = false;
    as_throttle_refill(&throttle, AT(102));
    cr_expect_eq(told, 1);
    cr_expect_eq(last, 2);
}

Test(throttle, says_how_long_to_wait)
{
    struct as_throttle throttle = make();
    cr_expect_eq(as_throttle_get_wait(&throttle, AT(0)), -1);
    as_throttle_add(&throttle, "", "", AT(0));
    cr_expect_eq(as_throttle_get_wait(&throttle, AT(1)), -1);
    as_throttle_add(&throttle, "", "", AT(10));
    cr_expect_eq(as_throttle_get_wait(&throttle, AT(20)), 40 * AS_US_PER_S);
    cr_expect_eq(as_throttle_get_wait(&throttle, AT(60)), 0);
    cr_expect_eq(as_throttle_get_wait(&throttle, AT(90)), 0);
}

Test(throttle, long_texts_are_cut)
{
    struct as_throttle throttle = make();
    char text[2 * AS_ERROR_SIZE];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    as_throttle_add(&throttle, text, text, AT(0));
    cr_expect_eq(strlen(throttle.remote), AS_THROTTLE_REMOTE_SIZE - 1);
    cr_expect_eq(strlen(throttle.error), AS_ERROR_SIZE - 1);
}
