/*
 * Figures about a size, weighted by time.
 */
#include <criterion/criterion.h>

#include <alertscaler/base/time.h>

#include "cli/comparison.h"

/* 4 for an hour, 8 for half an hour at a max of 8, 2 for half an hour. */
Test(size_figures, figures_are_weighted_by_time)
{
    struct size_figures figures = {0};
    size_figures_set(&figures, 0, 4, 8);
    size_figures_set(&figures, AS_US_PER_H, 8, 8);
    size_figures_set(&figures, AS_US_PER_H + AS_US_PER_H / 2, 2, 8);
    size_figures_end(&figures, 2 * AS_US_PER_H);
    size_figures_end(&figures, 2 * AS_US_PER_H);
    cr_expect_eq(figures.min, 2);
    cr_expect_eq(figures.max, 8);
    cr_expect_float_eq(size_figures_get_replica_hours(&figures), 9, 1e-9);
    cr_expect_float_eq(size_figures_get_mean(&figures), 4.5, 1e-9);
    cr_expect_eq(figures.at_limit_us, AS_US_PER_H / 2);
}

Test(size_figures, figures_of_no_time_at_all)
{
    struct size_figures figures = {0};
    size_figures_end(&figures, 5);
    size_figures_set(&figures, 10, 3, 8);
    size_figures_end(&figures, 10);
    cr_expect_float_eq(size_figures_get_mean(&figures), 3, 1e-9);
    cr_expect_float_eq(size_figures_get_replica_hours(&figures), 0, 1e-9);
}
