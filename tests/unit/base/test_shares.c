/*
 * Promises: each credential's amount and their sum are exact; a share exists while it holds
 * something; what has no name is not counted.
 */
#include <alertscaler/base/shares.h>

#include <criterion/criterion.h>

Test(shares, what_is_taken_is_held_until_it_is_given_back)
{
    struct as_shares shares;
    as_shares_init(&shares);
    cr_expect_null(as_shares_find_largest(&shares));
    struct as_share *a = as_shares_take(&shares, "a", 3), *b = as_shares_take(&shares, "b", 4);
    cr_expect_eq(as_shares_take(&shares, "a", 2), a, "one share a credential");
    cr_expect_eq(shares.held, 9);
    cr_expect_eq(shares.count, 2);
    cr_expect_eq(as_shares_get(&shares, "a"), 5);
    cr_expect_eq(as_shares_find_largest(&shares), a);
    as_shares_give(&shares, a, 2);
    cr_expect_eq(as_shares_find_largest(&shares), b);
    as_shares_give(&shares, a, 3);
    cr_expect_eq(as_shares_get(&shares, "a"), 0);
    cr_expect_eq(shares.count, 1);
    cr_expect_eq(shares.held, 4);
    as_shares_deinit(&shares);
}

Test(shares, what_has_no_name_is_not_counted)
{
    struct as_shares shares;
    as_shares_init(&shares);
    cr_expect_null(as_shares_take(&shares, NULL, 3));
    as_shares_give(&shares, NULL, 3);
    cr_expect_eq(shares.held, 0);
    as_shares_deinit(&shares);
}
