/*
 * kube/lock_table.h: which writes follow from the locks and the existing Leases; in the end every
 * lock is shown once, and nothing else.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/random.h>

#include "kube/lock_table.h"

#define AT  (INT64_C(1795600000) * AS_US_PER_S)
#define S   AS_US_PER_S
#define WEB "kubernetes/default/apps/v1/Deployment/shop/web"
#define API "kubernetes/default/apps/v1/Deployment/shop/api"

static struct lock_table table;

static void setup(void)
{
    lock_table_init(&table, "me");
}

static void teardown(void)
{
    lock_table_deinit(&table);
}

TestSuite(lock_table, .init = setup, .fini = teardown);

static struct as_lock cooldown(const char *target, int64_t until_s)
{
    return (struct as_lock){
        .target = target,
        .since = {AT},
        .up_until = {true, {AT + until_s * S}},
        .down_until = {true, {AT + 2 * until_s * S}},
        .rule = "slow",
        .decision = "01D",
    };
}

static struct as_lock in_flight(const char *target)
{
    return (struct as_lock){
        .target = target, .is_in_flight = true, .since = {AT}, .rule = "slow", .decision = "01D"};
}

static void show(const struct as_lock *locks, size_t count)
{
    lock_table_show(&table, locks, count);
}

#define SHOW(...)                                                                                  \
    show((struct as_lock[]){__VA_ARGS__},                                                          \
         sizeof((struct as_lock[]){__VA_ARGS__}) / sizeof(struct as_lock))

/* As it is there after a list: the Leases of others, by their names. */
static void list(const struct as_lock *locks, const char *const *holders, size_t count)
{
    lock_table_list_begin(&table);
    for (size_t i = 0; i < count; i++) {
        char name[AS_LOCK_LEASE_NAME_SIZE];
        as_lock_lease_print_name(locks[i].target, name);
        const struct as_lock_lease lease = {name, "5", holders[i], locks[i]};
        lock_table_list_see(&table, &lease);
    }
    lock_table_list_end(&table);
}

static struct lock_write take(enum lock_order order, const char *target)
{
    struct lock_write write;
    char name[AS_LOCK_LEASE_NAME_SIZE];
    as_lock_lease_print_name(target, name);
    cr_assert(lock_table_take(&table, &write), "nothing to be written about %s", target);
    cr_assert_str_eq(write.lease.name, name);
    cr_assert_eq(write.order, order, "%d instead of %d", write.order, order);
    return write;
}

static void expect_nothing(void)
{
    struct lock_write write;
    cr_assert_not(lock_table_take(&table, &write), "%d %s", write.order, write.lease.name);
    cr_assert_eq(lock_table_count_behind(&table), 0);
}

/* The other side has it as it was sent, under another version. */
static void found(const struct lock_write *write, const char *version)
{
    struct as_lock_lease lease = write->lease;
    lease.version = version;
    lock_table_on_found(&table, write->entry, &lease);
}

Test(lock_table, a_lock_is_made_and_deleted_when_it_ends)
{
    SHOW(cooldown(WEB, 60));
    cr_expect_eq(lock_table_count_behind(&table), 1);
    struct lock_write write = take(LOCK_CREATE, WEB);
    cr_expect_str_eq(write.lease.holder, "me");
    cr_expect_str_eq(write.lease.version, "");
    cr_expect_str_eq(write.lease.lock.decision, "01D");
    cr_expect_eq(lock_table_count_behind(&table), 1, "until it is answered");
    found(&write, "1");
    SHOW(cooldown(WEB, 60));
    expect_nothing();

    show(NULL, 0);
    write = take(LOCK_DELETE, WEB);
    cr_expect_str_eq(write.lease.version, "1");
    lock_table_on_gone(&table, write.entry);
    expect_nothing();
}

Test(lock_table, a_request_becomes_a_cooldown)
{
    SHOW(in_flight(WEB));
    struct lock_write write = take(LOCK_CREATE, WEB);
    found(&write, "1");
    SHOW(cooldown(WEB, 60));
    write = take(LOCK_UPDATE, WEB);
    cr_expect_str_eq(write.lease.version, "1");
    cr_expect_not(write.lease.lock.is_in_flight);
    found(&write, "2");
    expect_nothing();
}

Test(lock_table, an_end_that_wanders_with_the_clock_is_no_news)
{
    SHOW(cooldown(WEB, 60));
    struct lock_write write = take(LOCK_CREATE, WEB);
    found(&write, "1");
    struct as_lock lock = cooldown(WEB, 60);
    for (int i = 0; i < 1000; i++) {
        lock.up_until.at.us += i % 2 ? 900000 : -900000;
        show(&lock, 1);
        expect_nothing();
    }
    lock.up_until.at.us += 3 * S;
    show(&lock, 1);
    (void)take(LOCK_UPDATE, WEB);
}

Test(lock_table, another_direction_and_another_cause_are_news)
{
    SHOW(cooldown(WEB, 60));
    struct lock_write write = take(LOCK_CREATE, WEB);
    found(&write, "1");
    struct as_lock lock = cooldown(WEB, 60);
    lock.up_until.set = false; /* it ended before the other */
    show(&lock, 1);
    write = take(LOCK_UPDATE, WEB);
    found(&write, "2");
    lock.decision = NULL;
    lock.command = "01C";
    show(&lock, 1);
    write = take(LOCK_UPDATE, WEB);
    cr_expect_str_eq(write.lease.lock.command, "01C");
    cr_expect_null(write.lease.lock.decision);
}

Test(lock_table, a_new_leader_takes_over_what_is_true_and_removes_the_rest)
{
    const struct as_lock there[] = {cooldown(WEB, 60), cooldown(API, 60), cooldown("gone", 60)};
    static const char *const holders[] = {"former", "me", "former"};
    struct as_lock web = cooldown(WEB, 60);
    web.decision = web.rule = NULL; /* the state does not say */
    SHOW(web, cooldown(API, 60));
    list(there, holders, AS_ARRAY_SIZE(there));

    struct lock_write write = take(LOCK_UPDATE, WEB);
    cr_expect_str_eq(write.lease.holder, "me");
    cr_expect_str_eq(write.lease.version, "5");
    cr_expect_str_eq(write.lease.lock.decision, "01D", "what was known is kept");
    cr_expect_str_eq(write.lease.lock.rule, "slow");
    found(&write, "6");
    write = take(LOCK_DELETE, "gone");
    lock_table_on_gone(&table, write.entry);
    expect_nothing();
}

Test(lock_table, what_another_lock_went_back_to_is_not_kept)
{
    const struct as_lock there[] = {cooldown(WEB, 60)};
    static const char *const holders[] = {"former"};
    struct as_lock web = cooldown(WEB, 600);
    web.decision = web.rule = NULL;
    show(&web, 1);
    list(there, holders, 1);
    struct lock_write write = take(LOCK_UPDATE, WEB);
    cr_expect_null(write.lease.lock.decision);
    cr_expect_null(write.lease.lock.rule);
}

Test(lock_table, others_with_our_labels_are_let_alone)
{
    lock_table_list_begin(&table);
    lock_table_list_see(&table, &(struct as_lock_lease){"mine", "1", "x", {.target = ""}});
    lock_table_list_see(&table, &(struct as_lock_lease){AS_LOCK_LEASE_PREFIX
                                                        "0123456789012345678901234567890123456789"
                                                        "0123456789",
                                                        "1",
                                                        "x",
                                                        {.target = ""}});
    lock_table_list_end(&table);
    show(NULL, 0);
    expect_nothing();
}

Test(lock_table, what_was_deleted_by_hand_comes_again_with_the_next_list)
{
    SHOW(cooldown(WEB, 60));
    struct lock_write write = take(LOCK_CREATE, WEB);
    found(&write, "1");
    expect_nothing();
    list(NULL, NULL, 0);
    write = take(LOCK_CREATE, WEB);
    found(&write, "3");
    expect_nothing();
}

Test(lock_table, where_an_answer_was_lost_it_is_read_again)
{
    SHOW(cooldown(WEB, 60));
    struct lock_write write = take(LOCK_CREATE, WEB);
    lock_table_on_failed(&table, write.entry);
    cr_expect_eq(lock_table_count_behind(&table), 1);
    write = take(LOCK_GET, WEB);
    write.lease.holder = "me"; /* it had been carried out */
    write.lease.lock = cooldown(WEB, 60);
    found(&write, "1");
    expect_nothing();

    show(NULL, 0);
    write = take(LOCK_DELETE, WEB);
    lock_table_on_failed(&table, write.entry);
    write = take(LOCK_GET, WEB);
    lock_table_on_gone(&table, write.entry);
    expect_nothing();
}

Test(lock_table, what_changes_while_a_write_is_under_way_is_written_after_it)
{
    SHOW(cooldown(WEB, 60));
    struct lock_write write = take(LOCK_CREATE, WEB);
    show(NULL, 0);
    struct lock_write other;
    cr_assert_not(lock_table_take(&table, &other), "one at a time");
    const struct as_lock lock = cooldown(WEB, 60);
    const struct as_lock_lease lease = {write.lease.name, "1", "me", lock};
    lock_table_on_found(&table, write.entry, &lease);
    write = take(LOCK_DELETE, WEB);
    SHOW(cooldown(WEB, 90));
    lock_table_on_gone(&table, write.entry);
    write = take(LOCK_CREATE, WEB);
    cr_expect_eq(write.lease.lock.up_until.at.us, AT + 90 * S);
    found(&write, "4");
    expect_nothing();
}

Test(lock_table, what_the_other_side_makes_of_it_is_not_fought_over)
{
    SHOW(cooldown(WEB, 60));
    struct lock_write write = take(LOCK_CREATE, WEB);
    struct as_lock_lease lease = write.lease;
    lease.version = "1";
    lease.holder = "somebody-else"; /* an admission webhook's hand */
    lock_table_on_found(&table, write.entry, &lease);
    SHOW(cooldown(WEB, 60));
    expect_nothing();
}

Test(lock_table, of_two_targets_with_one_name_the_first_is_shown)
{
    SHOW(cooldown(WEB, 60), cooldown(WEB, 90));
    struct lock_write write = take(LOCK_CREATE, WEB);
    cr_expect_eq(write.lease.lock.up_until.at.us, AT + 60 * S);
    found(&write, "1");
    SHOW(cooldown(WEB, 60), cooldown(WEB, 90));
    expect_nothing();
}

/* Any order of events, with another side that loses answers and has hands of its own: when they
 * rest, it has exactly what is locked. */

#define TARGETS 12
#define NAMES   (TARGETS + 4) /* the others' leftovers */

struct there {
    bool is_there;
    char holder[16];
    struct as_lock lock;
    unsigned version;
};

static char names[NAMES][AS_LOCK_LEASE_NAME_SIZE], targets[NAMES][40];
static struct there there[NAMES];
static unsigned versions;

static struct there *find(const char *name)
{
    for (size_t i = 0; i < NAMES; i++)
        if (strcmp(names[i], name) == 0)
            return &there[i];
    cr_assert_fail("%s", name);
    abort();
}

static struct as_lock_lease describe(const struct there *object, char version[16])
{
    snprintf(version, 16, "%u", object->version);
    return (struct as_lock_lease){names[object - there], version, object->holder, object->lock};
}

static struct as_lock choose_lock(struct as_random *random, size_t target)
{
    struct as_lock lock =
        as_random_get_below(random, 4) == 0
            ? in_flight(targets[target])
            : cooldown(targets[target], 10 + 10 * (int64_t)as_random_get_below(random, 3));
    if (as_random_get_below(random, 3) == 0)
        lock.rule = lock.decision = NULL;
    return lock;
}

static void carry_out(struct there *object, const struct lock_write *write)
{
    if (write->order == LOCK_GET)
        return;
    object->is_there = write->order != LOCK_DELETE;
    object->version = ++versions;
    snprintf(object->holder, sizeof(object->holder), "%s", write->lease.holder);
    object->lock = write->lease.lock;
    object->lock.target = targets[object - there];
    object->lock.rule = write->lease.lock.rule ? "slow" : NULL;
    object->lock.decision = write->lease.lock.decision ? "01D" : NULL;
}

static void answer(struct as_random *random, bool is_calm)
{
    struct lock_write write;
    char version[16];
    if (!lock_table_take(&table, &write))
        return;
    struct there *object = find(write.lease.name);
    const bool is_refused = write.order == LOCK_CREATE
                                ? object->is_there
                                : write.order != LOCK_GET && object->is_there &&
                                      strtoul(write.lease.version, NULL, 10) != object->version;
    const uint64_t chance = is_calm ? 9 : as_random_get_below(random, 10);
    const bool is_missing =
        !object->is_there && (write.order == LOCK_UPDATE || write.order == LOCK_DELETE);
    if (!is_refused && !is_missing && chance != 0)
        carry_out(object, &write);
    if (is_refused || chance <= 1) { /* lost before or after it was carried out */
        lock_table_on_failed(&table, write.entry);
    } else if (!object->is_there) {
        lock_table_on_gone(&table, write.entry);
    } else {
        const struct as_lock_lease lease = describe(object, version);
        lock_table_on_found(&table, write.entry, &lease);
    }
}

static void list_all(void)
{
    char version[16];
    lock_table_list_begin(&table);
    for (size_t i = 0; i < NAMES; i++) {
        if (!there[i].is_there)
            continue;
        const struct as_lock_lease lease = describe(&there[i], version);
        lock_table_list_see(&table, &lease);
    }
    lock_table_list_end(&table);
}

static void meddle(struct as_random *random)
{
    struct there *object = &there[as_random_get_below(random, NAMES)];
    object->is_there = as_random_get_below(random, 2) == 0;
    object->version = ++versions;
    snprintf(object->holder, sizeof(object->holder), "%s", "former");
    object->lock = cooldown(targets[object - there], 30);
}

static void check_rest(struct as_random *random, const struct as_lock *locks, size_t count)
{
    for (int i = 0; i < 10 * NAMES; i++)
        answer(random, true);
    list_all();
    for (int i = 0; i < 10 * NAMES; i++)
        answer(random, true);
    cr_assert_eq(lock_table_count_behind(&table), 0);
    size_t seen = 0;
    for (size_t i = 0; i < NAMES; i++)
        seen += there[i].is_there;
    cr_assert_eq(seen, count);
    for (size_t i = 0; i < count; i++) {
        char name[AS_LOCK_LEASE_NAME_SIZE];
        as_lock_lease_print_name(locks[i].target, name);
        const struct there *object = find(name);
        cr_assert(object->is_there);
        cr_assert_str_eq(object->holder, "me");
        cr_assert_eq(object->lock.is_in_flight, locks[i].is_in_flight);
        cr_assert_eq(object->lock.up_until.set, locks[i].up_until.set);
        cr_assert_eq(object->lock.up_until.at.us, locks[i].up_until.at.us);
        cr_assert(!locks[i].decision || object->lock.decision);
    }
}

Test(lock_table, in_the_end_it_shows_what_is_locked)
{
    struct as_random random;
    for (size_t i = 0; i < NAMES; i++) {
        snprintf(targets[i], sizeof(targets[i]), "node_group/mine/pool-%zu", i);
        as_lock_lease_print_name(targets[i], names[i]);
    }
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct as_lock locks[TARGETS];
        size_t count = 0;
        as_random_init(&random, seed);
        lock_table_deinit(&table);
        lock_table_init(&table, "me");
        for (int i = 0; i < 200; i++) {
            switch (as_random_get_below(&random, 8)) {
            case 0:
                count = 0;
                for (size_t t = 0; t < TARGETS; t++)
                    if (as_random_get_below(&random, 2) == 0)
                        locks[count++] = choose_lock(&random, t);
                lock_table_show(&table, locks, count);
                break;
            case 1: meddle(&random); break;
            case 2: list_all(); break;
            default: answer(&random, false);
            }
        }
        lock_table_show(&table, locks, count);
        check_rest(&random, locks, count);
    }
}
