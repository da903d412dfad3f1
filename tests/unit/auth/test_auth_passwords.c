/*
 * Passwords: checked in the thread, reported in the loop, remembered when right, bounded when many
 * come at once, and safe to cancel at any time. The hashes were made by another program.
 */
#include <alertscaler/auth/auth_passwords.h>

#include <criterion/criterion.h>
#include <event2/event.h>
#include <stdio.h>

/* Both of "sesame": of bcrypt's three prefixes two that are the same. */
#define HASH       "$2b$04$ABpxdbZS3aRuCeVrPHD29.h35Bh9KqToLEkb0Fty3MlWusHsMbV.G"
#define HASH_AGAIN "$2y$04$ABpxdbZS3aRuCeVrPHD29.h35Bh9KqToLEkb0Fty3MlWusHsMbV.G"

static struct event_base *base;
static struct as_passwords *passwords;
static unsigned told, right;

static void setup(void)
{
    base = event_base_new();
    passwords = as_passwords_new(base);
    told = right = 0;
}

static void teardown(void)
{
    as_passwords_free(passwords);
    event_base_free(base);
}

TestSuite(auth_passwords, .init = setup, .fini = teardown, .timeout = 60);

static void on_done(void *context, bool is_right)
{
    (void)context;
    told++;
    right += is_right;
}

static bool is_suspect; /* where what is asked comes from */

static enum as_password_outcome ask(const char *user, const char *hash, const char *password)
{
    struct as_password_wait *wait;
    return as_passwords_check(passwords,
                              &(struct as_password_guess){.user = user,
                                                          .hash = hash,
                                                          .like = HASH,
                                                          .password = password,
                                                          .is_suspect = is_suspect},
                              on_done, NULL, &wait);
}

static void wait_for(unsigned count)
{
    while (told < count)
        cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
    cr_assert_eq(told, count);
}

Test(auth_passwords, a_right_one_is_remembered_and_a_wrong_one_is_not)
{
    cr_expect_eq(ask("reader", HASH, "sesame"), AS_PASSWORD_PENDING);
    cr_expect_eq(ask("reader", HASH, "Sesame"), AS_PASSWORD_PENDING);
    cr_expect_eq(told, 0); /* never from within */
    wait_for(2);
    cr_expect_eq(right, 1);
    cr_expect_eq(ask("reader", HASH, "sesame"), AS_PASSWORD_RIGHT);
    cr_expect(as_passwords_remember(passwords, "reader", HASH, "sesame"));
    cr_expect_not(as_passwords_remember(passwords, "reader", HASH, "Sesame"));
    cr_expect_eq(ask("reader", HASH, "Sesame"), AS_PASSWORD_PENDING);
    wait_for(3);
    cr_expect_eq(right, 1);
}

Test(auth_passwords, what_is_remembered_is_of_this_user_and_this_hash)
{
    cr_expect_eq(ask("reader", HASH, "sesame"), AS_PASSWORD_PENDING);
    wait_for(1);
    cr_expect_not(as_passwords_remember(passwords, "reade", HASH, "rsesame"));
    cr_expect_not(as_passwords_remember(passwords, "other", HASH, "sesame"));
    cr_expect_eq(ask("reader", HASH_AGAIN, "sesame"), AS_PASSWORD_PENDING);
    wait_for(2);
    cr_expect_eq(right, 2);
}

Test(auth_passwords, nobodys_password_is_never_right_and_costs_as_much)
{
    cr_expect_eq(ask("nobody", NULL, "sesame"), AS_PASSWORD_PENDING);
    wait_for(1);
    cr_expect_eq(right, 0);
    cr_expect_eq(ask("nobody", NULL, "sesame"), AS_PASSWORD_PENDING);
    wait_for(2);
    cr_expect_eq(right, 0);
}

Test(auth_passwords, the_same_one_waits_once_for_all_who_ask)
{
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(ask("reader", HASH, "sesame"), AS_PASSWORD_PENDING);
    wait_for(1000);
    cr_expect_eq(right, 1000);
}

Test(auth_passwords, a_flood_finds_an_end)
{
    unsigned pending = 0, busy = 0;
    for (int i = 0; i < 1000; i++) {
        char password[32];
        (void)snprintf(password, sizeof(password), "wrong-%d", i);
        switch (ask("reader", HASH, password)) {
        case AS_PASSWORD_PENDING: pending++; break;
        case AS_PASSWORD_BUSY: busy++; break;
        case AS_PASSWORD_RIGHT:
        case AS_PASSWORD_WRONG: cr_assert(false, "a wrong one cannot be known yet");
        }
    }
    cr_expect_eq(pending, AS_PASSWORDS_QUEUED);
    cr_expect_eq(busy, 1000 - AS_PASSWORDS_QUEUED);
    wait_for(pending);
    cr_expect_eq(ask("reader", HASH, "sesame"), AS_PASSWORD_PENDING); /* there is room again */
}

/* Of cost 8, so that the flood takes longer than to ask for all of it. */
#define DEAR_HASH "$2b$08$ABpxdbZS3aRuCeVrPHD29.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static unsigned told_before;

static void on_first(void *context, bool is_right)
{
    told_before = told;
    on_done(context, is_right);
}

/* Many addresses that guess, each within its own limit. */
Test(auth_passwords, who_comes_for_the_first_time_is_not_behind_all_who_were_wrong)
{
    struct as_password_wait *wait;
    unsigned pending = 0;
    is_suspect = true;
    for (int i = 0; i < 1000; i++) {
        char password[32];
        (void)snprintf(password, sizeof(password), "wrong-%d", i);
        pending += ask("reader", DEAR_HASH, password) == AS_PASSWORD_PENDING;
    }
    cr_expect_eq(pending, AS_PASSWORDS_QUEUED);
    cr_assert_eq(as_passwords_check(passwords,
                                    &(struct as_password_guess){
                                        .user = "reader", .hash = HASH, .password = "sesame"},
                                    on_first, NULL, &wait),
                 AS_PASSWORD_PENDING);
    wait_for(pending + 1);
    cr_expect_eq(right, 1);
    cr_expect_lt(told_before, pending - 1);
}

/* Else who shares an address with a guesser would never be checked. */
Test(auth_passwords, those_who_were_wrong_have_their_turn_too)
{
    struct as_password_wait *wait;
    for (int i = 0; i < 1000; i++) {
        char password[32];
        (void)snprintf(password, sizeof(password), "wrong-%d", i);
        (void)ask("reader", DEAR_HASH, password);
    }
    cr_assert_eq(as_passwords_check(
                     passwords,
                     &(struct as_password_guess){
                         .user = "reader", .hash = HASH, .password = "sesame", .is_suspect = true},
                     on_first, NULL, &wait),
                 AS_PASSWORD_PENDING);
    wait_for(AS_PASSWORDS_QUEUED + 1);
    cr_expect_lt(told_before, AS_PASSWORDS_QUEUED - 1);
}

Test(auth_passwords, one_that_is_too_long_is_wrong_at_once)
{
    char password[AS_PASSWORD_MAX + 2];
    memset(password, 'x', sizeof(password) - 1);
    password[sizeof(password) - 1] = '\0';
    cr_expect_eq(ask("reader", HASH, password), AS_PASSWORD_WRONG);
}

Test(auth_passwords, who_gives_up_is_not_told)
{
    struct as_password_wait *wait;
    cr_assert_eq(as_passwords_check(passwords,
                                    &(struct as_password_guess){
                                        .user = "reader", .hash = HASH, .password = "sesame"},
                                    on_done, NULL, &wait),
                 AS_PASSWORD_PENDING);
    as_password_wait_cancel(wait);
    cr_assert_eq(ask("reader", HASH, "another"), AS_PASSWORD_PENDING);
    wait_for(1);
    cr_expect_eq(right, 0);
}

Test(auth_passwords, the_end_may_come_while_many_wait)
{
    for (int i = 0; i < AS_PASSWORDS_QUEUED; i++) {
        char password[32];
        (void)snprintf(password, sizeof(password), "wrong-%d", i);
        cr_assert_eq(ask("reader", HASH, password), AS_PASSWORD_PENDING);
    }
    cr_expect_eq(told, 0);
}
