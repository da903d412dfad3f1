/*
 * The limit on an address' wrong credentials, and the bound of the table of addresses.
 */
#include "auth/auth_limit.h"

#include <criterion/criterion.h>
#include <stdio.h>

static as_mono_time at(int64_t seconds)
{
    return (as_mono_time){seconds * AS_US_PER_S};
}

static void fail(struct as_auth_limit *limit, const char *remote, unsigned count, int64_t seconds)
{
    for (unsigned i = 0; i < count; i++)
        as_auth_limit_add_failure(limit, remote, at(seconds));
}

Test(auth_limit, after_ten_an_address_waits_and_no_other)
{
    struct as_auth_limit *limit = as_auth_limit_new();
    fail(limit, "192.0.2.1:1000", 9, 100);
    cr_expect_eq(as_auth_limit_get_wait(limit, "192.0.2.1:1001", at(100)), 0);
    fail(limit, "192.0.2.1:1001", 1, 100);
    cr_expect_eq(as_auth_limit_get_wait(limit, "192.0.2.1:2000", at(100)), AS_AUTH_FORGET_US);
    cr_expect_eq(as_auth_limit_get_wait(limit, "192.0.2.2:1000", at(100)), 0);
    cr_expect_eq(as_auth_limit_get_wait(limit, "192.0.2.1:2000", at(105)), 0);
    fail(limit, "192.0.2.1:1001", 1, 105);
    cr_expect_gt(as_auth_limit_get_wait(limit, "192.0.2.1:2000", at(105)), 0);
    as_auth_limit_free(limit);
}

Test(auth_limit, an_address_is_clean_again_when_all_are_forgotten)
{
    struct as_auth_limit *limit = as_auth_limit_new();
    cr_expect_not(as_auth_limit_has_failures(limit, "192.0.2.1:1000", at(100)));
    fail(limit, "192.0.2.1:1000", 2, 100);
    cr_expect(as_auth_limit_has_failures(limit, "192.0.2.1:2000", at(109)));
    cr_expect_not(as_auth_limit_has_failures(limit, "192.0.2.1:2000", at(110)));
    fail(limit, "192.0.2.1:1000", 1, 120);
    as_auth_limit_take_back(limit, "192.0.2.1:1000");
    cr_expect_not(as_auth_limit_has_failures(limit, "192.0.2.1:2000", at(120)));
    as_auth_limit_free(limit);
}

/* A million failures are forgotten as soon as ten. */
Test(auth_limit, nobody_waits_for_ever)
{
    struct as_auth_limit *limit = as_auth_limit_new();
    fail(limit, "192.0.2.1:1000", 100000, 100);
    cr_expect_leq(as_auth_limit_get_wait(limit, "192.0.2.1:1", at(100)), AS_AUTH_FORGET_US);
    cr_expect_eq(as_auth_limit_get_wait(limit, "192.0.2.1:1", at(106)), 0);
    as_auth_limit_free(limit);
}

Test(auth_limit, a_network_of_ipv6_counts_as_one_address)
{
    struct as_auth_limit *limit = as_auth_limit_new();
    fail(limit, "[2001:db8:1:2::1]:1000", 10, 100);
    cr_expect_gt(as_auth_limit_get_wait(limit, "[2001:db8:1:2:ffff::9]:7", at(100)), 0);
    cr_expect_eq(as_auth_limit_get_wait(limit, "[2001:db8:1:3::1]:7", at(100)), 0);
    fail(limit, "[::ffff:192.0.2.9]:1000", 10, 100);
    cr_expect_gt(as_auth_limit_get_wait(limit, "192.0.2.9:7", at(100)), 0);
    fail(limit, "[fe80::1%eth0]:1000", 10, 100);
    cr_expect_gt(as_auth_limit_get_wait(limit, "[fe80::2]:7", at(100)), 0);
    as_auth_limit_free(limit);
}

Test(auth_limit, beyond_its_end_the_oldest_is_forgotten)
{
    struct as_auth_limit *limit = as_auth_limit_new();
    char remote[32];
    fail(limit, "192.0.2.1:1", 10, 100);
    for (int i = 0; i < AS_AUTH_ADDRESSES - 1; i++) {
        (void)snprintf(remote, sizeof(remote), "10.0.%d.%d:1", i / 256, i % 256);
        fail(limit, remote, 1, 101);
    }
    cr_expect_gt(as_auth_limit_get_wait(limit, "192.0.2.1:1", at(101)), 0);
    fail(limit, "203.0.113.1:1", 10, 101); /* pushes out one of those with a single failure */
    cr_expect_gt(as_auth_limit_get_wait(limit, "192.0.2.1:1", at(101)), 0);
    cr_expect_gt(as_auth_limit_get_wait(limit, "203.0.113.1:1", at(101)), 0);
    as_auth_limit_free(limit);
}

Test(auth_limit, what_is_no_address_is_one_of_its_own)
{
    static const char *const odd[] = {"", ":", "[", "[]", "[]:1", "unix", "1.2.3:4", "999.1.1.1:1"};
    struct as_auth_limit *limit = as_auth_limit_new();
    for (size_t i = 0; i < AS_ARRAY_SIZE(odd); i++)
        fail(limit, odd[i], 10, 100);
    for (size_t i = 0; i < AS_ARRAY_SIZE(odd); i++)
        cr_expect_gt(as_auth_limit_get_wait(limit, odd[i], at(100)), 0, "%s", odd[i]);
    as_auth_limit_free(limit);
}

Test(auth_limit, what_was_none_is_taken_back)
{
    struct as_auth_limit *limit = as_auth_limit_new();
    for (int i = 0; i < 100; i++) {
        fail(limit, "192.0.2.1:1", 1, 100);
        as_auth_limit_take_back(limit, "192.0.2.1:2");
    }
    as_auth_limit_take_back(limit, "192.0.2.2:1"); /* of whom nothing is known */
    fail(limit, "192.0.2.1:1", 9, 100);
    cr_expect_eq(as_auth_limit_get_wait(limit, "192.0.2.1:1", at(100)), 0);
    fail(limit, "192.0.2.1:1", 1, 100);
    cr_expect_gt(as_auth_limit_get_wait(limit, "192.0.2.1:1", at(100)), 0);
    as_auth_limit_free(limit);
}
