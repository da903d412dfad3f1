/*
 * Trusted tokens: their number and time are limited, and trust ends as soon as a token is wrong.
 */
#include "auth/auth_limit.h"

#include <criterion/criterion.h>
#include <stdio.h>

static struct as_auth_digest number(unsigned i)
{
    char token[16];
    (void)snprintf(token, sizeof(token), "t%u", i);
    return as_auth_trust_digest(token);
}

static bool has(const struct as_auth_trust *trust, unsigned i, int64_t us)
{
    const struct as_auth_digest digest = number(i);
    return as_auth_trust_has(trust, &digest, (as_mono_time){us});
}

static void add(struct as_auth_trust *trust, unsigned i, int64_t us)
{
    const struct as_auth_digest digest = number(i);
    as_auth_trust_add(trust, &digest, (as_mono_time){us});
}

Test(auth_trust, a_token_is_known_for_so_long_since_it_was_right_the_last_time)
{
    AS_CLEANUP(as_auth_trust_free_p) struct as_auth_trust *trust = as_auth_trust_new();
    cr_expect_not(has(trust, 0, 1));
    add(trust, 0, 1);
    cr_expect(has(trust, 0, AS_AUTH_TRUST_US));
    cr_expect_not(has(trust, 1, 1));
    cr_expect_not(has(trust, 0, AS_AUTH_TRUST_US + 1));
    add(trust, 0, 10);
    cr_expect(has(trust, 0, AS_AUTH_TRUST_US + 1));
    const struct as_auth_digest digest = number(0);
    as_auth_trust_remove(trust, &digest);
    cr_expect_not(has(trust, 0, 11));
    as_auth_trust_remove(trust, &digest);
}

Test(auth_trust, so_many_are_known_and_the_one_that_was_right_for_longest_ago_goes)
{
    AS_CLEANUP(as_auth_trust_free_p) struct as_auth_trust *trust = as_auth_trust_new();
    for (unsigned i = 0; i < AS_AUTH_TRUSTED; i++)
        add(trust, i, i);
    add(trust, 0, 1000);
    add(trust, AS_AUTH_TRUSTED, 1001);
    cr_expect(has(trust, 0, 1002));
    cr_expect_not(has(trust, 1, 1002));
    cr_expect(has(trust, 2, 1002));
    cr_expect(has(trust, AS_AUTH_TRUSTED, 1002));
}
