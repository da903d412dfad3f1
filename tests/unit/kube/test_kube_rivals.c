/*
 * app/others: what is news about who aims at a target, and its limit.
 */
#include <criterion/criterion.h>

#include <stdio.h>

#include <alertscaler/kube/kube_rivals.h>

static struct as_others *others;

static void setup(void)
{
    others = as_others_new();
}

static void teardown(void)
{
    others = as_others_free(others);
}

TestSuite(others, .init = setup, .fini = teardown);

Test(others, only_a_change_is_news)
{
    struct as_other found[] = {{"ScaledObject", "so", 0, 9, false},
                               {"HorizontalPodAutoscaler", "web", 2, 2, false}};
    size_t count;
    cr_expect_not(as_others_take(others, "web", NULL, 0), "nobody, as before");
    cr_expect(as_others_take(others, "web", found, 2));
    cr_expect_not(as_others_take(others, "web", found, 2));
    found[0].is_paused = true;
    cr_expect(as_others_take(others, "web", found, 2));
    found[1].max = 3;
    cr_expect(as_others_take(others, "web", found, 2));
    found[1].name = "gone"; /* the caller's memory */
    const struct as_other *known = as_others_find(others, "web", &count);
    cr_assert_eq(count, 2);
    cr_expect_str_eq(known[1].name, "web");
    cr_expect(known[0].is_paused);
    cr_expect(as_others_take(others, "web", found, 1));
    cr_expect(as_others_take(others, "web", NULL, 0));
    cr_expect_null(as_others_find(others, "web", &count));
    cr_expect_null(as_others_find(NULL, "web", &count));
    cr_expect_eq(count, 0);
}

Test(others, ever_new_targets_do_not_hide_later_ones)
{
    const struct as_other hpa = {"HorizontalPodAutoscaler", "web", 2, 2, false};
    char target[32];
    size_t count;
    for (unsigned i = 0; i <= OTHERS_TARGETS_MAX; i++) {
        snprintf(target, sizeof(target), "target-%u", i);
        cr_assert(as_others_take(others, target, &hpa, 1), "%s", target);
    }
    cr_expect_not_null(as_others_find(others, target, &count), "the newest is known");
    cr_expect_null(as_others_find(others, "target-0", &count), "the oldest is not");
    cr_expect_not_null(as_others_find(others, "target-1", &count));
}
