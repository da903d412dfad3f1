/*
 * Promises: narrowed credentials together have at most half of the places, and equal parts of it;
 * all other work may have all places; targets take turns; the work for one target keeps its order.
 */
#include <alertscaler/base/fair_queue.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>

struct work {
    struct as_fair_item item; /* the first member: it is cast to the work */
    char credential[8], target[16];
    unsigned number;
};

static unsigned next_number;

static struct work *add(struct as_fair_queue *queue, const char *credential, const char *target)
{
    struct work *work = as_xcalloc(1, sizeof(*work));
    (void)snprintf(work->credential, sizeof(work->credential), "%s", credential ? credential : "");
    (void)snprintf(work->target, sizeof(work->target), "%s", target ? target : "");
    work->number = next_number++;
    as_fair_queue_add(queue, &work->item, &(struct as_flow){target, credential});
    return work;
}

static void add_many(struct as_fair_queue *queue, const char *credential, unsigned count)
{
    char target[16];
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(target, sizeof(target), "t%u", i);
        (void)add(queue, credential, target);
    }
}

static struct work *take(struct as_fair_queue *queue)
{
    return (struct work *)(void *)as_fair_queue_take(queue);
}

static void end(struct as_fair_queue *queue, struct work *work)
{
    as_fair_queue_remove(queue, &work->item);
    free(work);
}

/* Takes until nothing may have a place, and counts what is of this credential. */
static unsigned fill(struct as_fair_queue *queue, struct work **taken_out, size_t *count,
                     const char *credential)
{
    struct work *work;
    unsigned own = 0;
    while ((work = take(queue)))
        taken_out[(*count)++] = work;
    for (size_t i = 0; i < *count; i++)
        own += strcmp(taken_out[i]->credential, credential) == 0;
    return own;
}

static void drain(struct as_fair_queue *queue, struct work **taken, size_t count)
{
    struct work *work;
    while (count > 0)
        end(queue, taken[--count]);
    while ((work = take(queue)))
        end(queue, work);
    cr_assert(as_fair_queue_is_empty(queue));
}

Test(fair_queue, narrowed_credentials_have_half_of_the_places)
{
    struct as_fair_queue queue;
    struct work *taken[64];
    size_t count = 0;
    as_fair_queue_init(&queue, 64);
    cr_assert(as_fair_queue_is_empty(&queue));
    cr_assert_null(take(&queue));
    add_many(&queue, "team", 6000);
    cr_expect_eq(fill(&queue, taken, &count, "team"), 32, "also while nobody else has work");
    for (unsigned i = 0; i < 32; i++) {
        (void)add(&queue, NULL, "other");
        struct work *next = take(&queue);
        cr_assert_not_null(next, "the work of others has a place at once");
        cr_assert_str_eq(next->target, "other");
        taken[count++] = next;
    }
    (void)add(&queue, NULL, "late");
    cr_assert_null(take(&queue), "all places are taken");
    end(&queue, taken[--count]);
    struct work *next = take(&queue);
    cr_assert_str_eq(next->target, "late");
    taken[count++] = next;
    drain(&queue, taken, count);
}

Test(fair_queue, others_may_have_all_places)
{
    struct as_fair_queue queue;
    struct work *taken[64];
    size_t count = 0;
    as_fair_queue_init(&queue, 64);
    add_many(&queue, NULL, 100);
    cr_expect_eq(fill(&queue, taken, &count, ""), 64);
    (void)add(&queue, "team", "own");
    end(&queue, taken[--count]);
    struct work *next = take(&queue);
    cr_assert_str_eq(next->credential, "team", "its side has fewer places");
    taken[count++] = next;
    drain(&queue, taken, count);
}

Test(fair_queue, the_half_is_divided_equally)
{
    struct as_fair_queue queue;
    struct work *taken[64];
    size_t count = 0;
    as_fair_queue_init(&queue, 64);
    add_many(&queue, "a", 1000);
    cr_expect_eq(fill(&queue, taken, &count, "a"), 32);
    add_many(&queue, "b", 1000);
    add_many(&queue, "c", 30);
    add_many(&queue, "d", 8);
    for (size_t i = 0; i < 32; i++) { /* those of `a` end, the oldest first */
        end(&queue, taken[i]);
        taken[i] = take(&queue);
    }
    const char *const names[] = {"a", "b", "c", "d"};
    for (size_t k = 0; k < 4; k++)
        cr_expect_eq(fill(&queue, taken, &count, names[k]), 8, "of %s", names[k]);
    drain(&queue, taken, count);
}

Test(fair_queue, a_credential_that_comes_late_is_next)
{
    struct as_fair_queue queue;
    struct work *taken[4];
    size_t count = 0;
    as_fair_queue_init(&queue, 4);
    add_many(&queue, "flood", 6000);
    (void)fill(&queue, taken, &count, "flood");
    (void)add(&queue, "quiet", "one");
    end(&queue, taken[--count]);
    struct work *next = take(&queue);
    cr_assert_str_eq(next->credential, "quiet");
    taken[count++] = next;
    drain(&queue, taken, count);
}

Test(fair_queue, targets_take_turns_and_each_keeps_its_order)
{
    struct as_fair_queue queue;
    char order[256] = "";
    as_fair_queue_init(&queue, 2);
    next_number = 0;
    for (unsigned i = 0; i < 4; i++)
        (void)add(&queue, NULL, "busy");
    (void)add(&queue, NULL, "b");
    (void)add(&queue, NULL, "c");
    (void)add(&queue, NULL, "b");
    (void)add(&queue, NULL, NULL);
    for (struct work *work = take(&queue); work; work = take(&queue)) {
        const size_t size = strlen(order);
        (void)snprintf(order + size, sizeof(order) - size, "%s%u ", work->target, work->number);
        end(&queue, work);
    }
    cr_expect_str_eq(order, "busy0 b4 c5 7 busy1 b6 busy2 busy3 ");
    cr_assert(as_fair_queue_is_empty(&queue));
}

Test(fair_queue, work_may_leave_before_it_has_a_place)
{
    struct as_fair_queue queue;
    as_fair_queue_init(&queue, 2);
    struct work *first = add(&queue, "team", "a"), *second = add(&queue, "team", "a"),
                *third = add(&queue, "team", "b"), *other = add(&queue, NULL, "a");
    cr_assert_eq(take(&queue), other);
    cr_assert_eq(take(&queue), first);
    end(&queue, second);
    end(&queue, first);
    cr_assert_eq(take(&queue), third);
    end(&queue, third);
    end(&queue, other);
    cr_assert(as_fair_queue_is_empty(&queue));
}

Test(fair_queue, a_copy_of_a_flow_is_its_own)
{
    char target[] = "target", credential[] = "team";
    struct as_flow copy = as_flow_copy(&(struct as_flow){target, credential});
    target[0] = credential[0] = '-';
    cr_expect_str_eq(copy.target, "target");
    cr_expect_str_eq(copy.credential, "team");
    as_flow_deinit(&copy);
    copy = as_flow_copy(&(struct as_flow){0});
    cr_expect_null(copy.target);
    cr_expect_null(copy.credential);
    as_flow_deinit(&copy);
}
