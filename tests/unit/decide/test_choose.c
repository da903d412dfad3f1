/*
 * Which instances leave, by tables and by what must hold of every choice.
 *
 * An instance is written as id/zone/age in minutes/what else is known of it:
 *   F failed, P on its way, L leaving, X protected, A ambiguous; n no node, r not ready, K kept by
 * an annotation, B with a pod that may not be evicted; c50 and m50: percent of CPU and memory
 *   requested; p3: three pods to evict; a?: of unknown age; z?: of unknown allocatable
 */
#include <alertscaler/decide/choose.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#define INSTANCES_MAX 32
#define NOW           (INT64_C(1000) * AS_US_PER_H)
#define READY_TIMEOUT (15 * AS_US_PER_MIN)

static struct as_candidate candidates[INSTANCES_MAX];
static struct as_candidate_node nodes[INSTANCES_MAX];
static char texts[INSTANCES_MAX][64];
static char zones[INSTANCES_MAX][16];
static struct as_arena arena;

static void clean(void)
{
    as_arena_deinit(&arena);
}

TestSuite(choose, .fini = clean);

static void read_facts(const char *facts, struct as_candidate *candidate,
                       struct as_candidate_node *node)
{
    char *end;
    for (; *facts; facts++)
        switch (*facts) {
        case 'F': candidate->is_failed = true; break;
        case 'P': candidate->is_pending = true; break;
        case 'L': candidate->is_leaving = true; break;
        case 'X': candidate->is_protected = true; break;
        case 'A': candidate->is_ambiguous = true; break;
        case 'n': candidate->node = NULL; break;
        case 'r': node->is_ready = false; break;
        case 'K': node->keep = "annotated"; break;
        case 'B': node->blocking_pod = "shop/db-0 stays"; break;
        case '?': candidate->created.set = false; break;
        case 'z': node->allocatable[AS_RESOURCE_MEMORY] = NAN; break;
        case 'c':
        case 'm':
            node->requests[*facts == 'c' ? AS_RESOURCE_CPU : AS_RESOURCE_MEMORY] =
                (double)strtol(facts + 1, &end, 10);
            facts = end - 1;
            break;
        case 'p':
            node->pod_count = (size_t)strtol(facts + 1, &end, 10);
            facts = end - 1;
            break;
        default: cr_assert_fail("no such fact: %c", *facts);
        }
}

/* How many. */
static size_t read_instances(const char *text)
{
    size_t count = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        char token[128], facts[32] = "";
        int age;
        struct as_candidate *candidate = &candidates[count];
        struct as_candidate_node *node = &nodes[count];
        const size_t size = strcspn(text, " ");
        cr_assert(count < INSTANCES_MAX && size < sizeof(token));
        snprintf(token, sizeof(token), "%.*s", (int)size, text);
        cr_assert_geq(
            sscanf(token, "%63[^/]/%15[^/]/%d/%31s", texts[count], zones[count], &age, facts), 3,
            "%s", token);
        *node = (struct as_candidate_node){
            .name = texts[count], .is_ready = true, .allocatable = {100, 100}};
        *candidate = (struct as_candidate){
            .id = texts[count],
            .zone = zones[count],
            .created = {true, {NOW - age * AS_US_PER_MIN}},
            .node = node,
        };
        read_facts(facts, candidate, node);
        text += size;
        count++;
    }
    return count;
}

static void print_chosen(const struct as_choice *choice, char text[512])
{
    *text = '\0';
    for (size_t i = 0; i < choice->chosen_count; i++)
        snprintf(text + strlen(text), 512 - strlen(text), "%s%s", i ? " " : "",
                 candidates[choice->chosen[i]].id);
}

struct row {
    enum as_choose_strategy strategy;
    int32_t size, min, wanted;
    const char *instances, *chosen, *shortfall; /* shortfall NULL: none */
};

static struct as_choice choose(const struct row *row, bool has_nodes)
{
    struct as_choice choice;
    const struct as_choose_request request = {
        .strategy = row->strategy,
        .has_nodes = has_nodes,
        .ready_timeout_us = READY_TIMEOUT,
        .now = {NOW},
        .candidates = candidates,
        .count = read_instances(row->instances),
        .size = row->size,
        .min = row->min,
        .wanted = row->wanted,
    };
    as_choose(&request, &arena, &choice);
    return choice;
}

static void check_rows(const struct row *rows, size_t count, bool has_nodes)
{
    char chosen[512];
    for (size_t i = 0; i < count; i++) {
        struct as_choice choice = choose(&rows[i], has_nodes);
        print_chosen(&choice, chosen);
        cr_expect_str_eq(chosen, rows[i].chosen, "row %zu: %s", i, chosen);
        if (rows[i].shortfall)
            cr_expect_str_eq(choice.shortfall ? choice.shortfall : "", rows[i].shortfall,
                             "row %zu: %s", i, choice.shortfall);
        else
            cr_expect_null(choice.shortfall, "row %zu: %s", i, choice.shortfall);
    }
}

Test(choose, by_strategy)
{
    static const struct row rows[] = {
        {AS_CHOOSE_OLDEST, 3, 0, 2, "a/z/20/c1 b/z/40/c90p9 c/z/30/c1", "b c", NULL},
        {AS_CHOOSE_NEWEST, 3, 0, 2, "a/z/20/c1 b/z/40/c90p9 c/z/30/c1", "a c", NULL},
        {AS_CHOOSE_LEAST_UTILIZED, 3, 0, 2, "a/z/20/c20 b/z/40/c10m80 c/z/30/c30m30", "a c", NULL},
        /* empty: without pods to evict, whatever is requested by pods that stay */
        {AS_CHOOSE_EMPTY_FIRST, 3, 0, 2, "a/z/20/c20p1 b/z/40/c80 c/z/30/c10p1", "b c", NULL},
        {AS_CHOOSE_LEAST_UTILIZED, 3, 0, 2, "a/z/20/c20p1 b/z/40/c80 c/z/30/c10p1", "c a", NULL},
        /* equal: fewer pods, then the older, then the smaller id */
        {AS_CHOOSE_LEAST_UTILIZED, 3, 0, 1, "a/z/20/c20p3 b/z/20/c20p1 c/z/90/c20p2", "b", NULL},
        {AS_CHOOSE_LEAST_UTILIZED, 3, 0, 1, "a/z/20/c20 b/z/20/c20 c/z/90/c20", "c", NULL},
        {AS_CHOOSE_OLDEST, 3, 0, 3, "c/z/20/ a/z/20/ b/z/20/", "a b c", NULL},
        /* of unknown age: last, whatever is asked for */
        {AS_CHOOSE_OLDEST, 3, 0, 3, "a/z/0/? b/z/20/ c/z/30/", "c b a", NULL},
        {AS_CHOOSE_NEWEST, 3, 0, 3, "a/z/0/? b/z/20/ c/z/30/", "b c a", NULL},
        /* of unknown size: as if full */
        {AS_CHOOSE_LEAST_UTILIZED, 2, 0, 2, "a/z/20/z b/z/20/c99", "b a", NULL},
        {AS_CHOOSE_OLDEST, 3, 0, 0, "a/z/20/", "", NULL},
        {AS_CHOOSE_OLDEST, 3, 0, -1, "a/z/20/", "", NULL},
    };
    check_rows(rows, AS_ARRAY_SIZE(rows), true);
}

Test(choose, what_does_not_serve_goes_first)
{
    static const struct row rows[] = {
        {AS_CHOOSE_OLDEST, 6, 0, 6, "e/z/99/ d/z/98/r c/z/10/n b/z/20/n a/z/9/F p/z/11/P",
         "a b p c d e", NULL},
        /* just started: it may still become a node; with an unknown age too */
        {AS_CHOOSE_OLDEST, 3, 0, 3, "a/z/15/n b/z/14/n c/z/99/n?", "a b c", NULL},
        {AS_CHOOSE_NEWEST, 2, 0, 2, "a/z/15/n b/z/14/n", "a b", NULL},
        /* one that was on its way for so long will not come */
        {AS_CHOOSE_OLDEST, 2, 0, 2, "a/z/90/P b/z/16/Pn", "b a", NULL},
    };
    check_rows(rows, AS_ARRAY_SIZE(rows), true);
}

Test(choose, groups_without_nodes_by_the_providers_facts)
{
    static const struct row rows[] = {
        {AS_CHOOSE_EMPTY_FIRST, 4, 0, 4, "a/z/20/n b/z/40/n c/z/30/nF d/z/99/nP", "c d b a", NULL},
        {AS_CHOOSE_LEAST_UTILIZED, 3, 0, 3, "a/z/20/n b/z/40/n c/z/30/n", "b c a", NULL},
        {AS_CHOOSE_NEWEST, 3, 0, 2, "a/z/20/n b/z/40/n c/z/30/n", "a c", NULL},
    };
    check_rows(rows, AS_ARRAY_SIZE(rows), false);
}

Test(choose, zones_stay_balanced)
{
    static const struct row rows[] = {
        {AS_CHOOSE_OLDEST, 4, 0, 3, "a/x/90/ b/y/10/ c/y/20/ d/y/30/", "d c a", NULL},
        /* equally full: the strategy decides */
        {AS_CHOOSE_NEWEST, 4, 0, 4, "a/x/90/ b/x/10/ c/y/20/ d/y/30/", "b c d a", NULL},
        /* before the strategy: an empty node of an emptier zone stays */
        {AS_CHOOSE_EMPTY_FIRST, 3, 0, 1, "a/x/10/ b/y/10/p3 c/y/10/p2c1", "b", NULL},
        /* those that may not leave keep their zone full, those that leave do not */
        {AS_CHOOSE_OLDEST, 5, 0, 1, "a/x/90/ b/y/10/X c/y/20/", "c", NULL},
        {AS_CHOOSE_OLDEST, 5, 0, 1, "a/x/90/ b/y/10/L c/y/20/", "a", NULL},
        {AS_CHOOSE_OLDEST, 5, 0, 1, "a/x/90/ b/y/10/F? c/y/20/", "b", NULL},
        {AS_CHOOSE_OLDEST, 5, 0, 2, "a/x/90/ b/y/10/F c/y/20/", "b a", NULL},
        /* the fullest zone may have none to give */
        {AS_CHOOSE_OLDEST, 5, 0, 1, "a/x/90/ b/y/10/X c/y/20/X", "a", NULL},
    };
    check_rows(rows, AS_ARRAY_SIZE(rows), true);
}

Test(choose, says_who_was_passed_over_and_why)
{
    static const struct row row = {
        AS_CHOOSE_OLDEST,
        9,
        0,
        9,
        "f/z/1/ a/z/1/X b/z/2/K c/z/3/B d/z/4/A e/z/5/L g/z/6/KB h/z/6/FX i/z/7/ i/z/8/",
        "f",
        NULL};
    static const char *const passed[][2] = {
        {"a", "it is protected at the provider"},
        {"b", "node b: annotated"},
        {"c", "node c: pod shop/db-0 stays"},
        {"d", "it is not clear which node it is: another node or instance says the same"},
        {"g", "node g: annotated"},
        {"h", "it is protected at the provider"},
        {"i", "the provider lists it twice"},
        {"i", "the provider lists it twice"},
    };
    struct as_choice choice = choose(&row, true);
    char chosen[512];
    print_chosen(&choice, chosen);
    cr_expect_str_eq(chosen, "f");
    cr_assert_eq(choice.passed_count, AS_ARRAY_SIZE(passed));
    for (size_t i = 0; i < choice.passed_count; i++) {
        cr_expect_str_eq(candidates[choice.passed[i].candidate].id, passed[i][0]);
        cr_expect_str_eq(choice.passed[i].why, passed[i][1]);
    }
    cr_expect_str_eq(choice.shortfall,
                     "1 of 9 can leave; 8 may not: a: it is protected at the provider");
}

Test(choose, never_below_the_minimum)
{
    static const struct row rows[] = {
        {AS_CHOOSE_OLDEST, 3, 2, 3, "a/z/1/ b/z/2/ c/z/3/", "c",
         "1 of 3 may leave: the group has 3, and its minimum is 2"},
        {AS_CHOOSE_OLDEST, 2, 2, 1, "a/z/1/ b/z/2/F", "",
         "0 of 1 may leave: the group has 2, and its minimum is 2"},
        {AS_CHOOSE_OLDEST, 1, 2, 1, "a/z/1/", "",
         "0 of 1 may leave: the group has 1, and its minimum is 2"},
        {AS_CHOOSE_OLDEST, INT32_MAX, 0, INT32_MAX, "a/z/1/", "a",
         "1 of 2147483647 can leave: there are no more instances"},
        {AS_CHOOSE_OLDEST, 3, 0, 3, "", "", "0 of 3 can leave: there are no more instances"},
        {AS_CHOOSE_OLDEST, 3, 0, 2, "a/z/1/ b/z/1/L c/z/1/B", "a",
         "1 of 2 can leave; 1 may not: c: node c: pod shop/db-0 stays"},
    };
    check_rows(rows, AS_ARRAY_SIZE(rows), true);
}

/* What holds of every choice */

static bool may_leave(const struct as_candidate *candidate)
{
    const struct as_candidate_node *node = candidate->node;
    return !candidate->is_leaving && !candidate->is_protected && !candidate->is_ambiguous &&
           !(node && (node->keep || node->blocking_pod));
}

static unsigned state = 1;

static unsigned roll(unsigned sides)
{
    state = state * 1103515245 + 12345;
    return (state >> 16) % sides;
}

static size_t make_group(void)
{
    static const char *const flags[] = {"F", "P", "L", "X", "A", "n", "r", "K", "B"};
    const size_t count = roll(16);
    char text[16 * 48] = "";
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " i%02zu/z%u/%u/%sp%uc%u", i,
                 roll(3), roll(40), roll(3) == 0 ? flags[roll(AS_ARRAY_SIZE(flags))] : "", roll(3),
                 roll(100));
    return read_instances(text);
}

static size_t count_zone(const char *zone, const bool *gone, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += !gone[i] && !candidates[i].is_leaving && !candidates[i].is_failed &&
                 strcmp(candidates[i].zone, zone) == 0;
    return found;
}

/* Nothing that is left would have been the better one to take. */
static void check_step(size_t taken, const bool *gone, size_t count)
{
    const struct as_candidate *one = &candidates[taken];
    for (size_t i = 0; i < count; i++) {
        const struct as_candidate *other = &candidates[i];
        if (i == taken || gone[i] || !may_leave(other))
            continue;
        cr_assert(one->is_failed || !other->is_failed);
        if (one->is_failed || one->is_pending || other->is_pending || !one->node ||
            !one->node->is_ready || !other->node || !other->node->is_ready)
            continue;
        size_t own = count_zone(one->zone, gone, count);
        size_t others = count_zone(other->zone, gone, count);
        cr_assert_geq(own, others, "%s of %s before %s of %s", one->id, one->zone, other->id,
                      other->zone);
        if (own == others)
            cr_assert_leq(one->created.at.us, other->created.at.us);
    }
}

static void check_choice(const struct as_choice *choice, size_t count, size_t most, int32_t wanted)
{
    bool gone[INSTANCES_MAX] = {false};
    size_t free_to_go = 0;
    for (size_t i = 0; i < count; i++)
        free_to_go += may_leave(&candidates[i]);
    cr_assert_eq(choice->chosen_count, free_to_go < most ? free_to_go : most);
    cr_assert_eq(choice->shortfall != NULL, choice->chosen_count < (size_t)wanted);
    for (size_t i = 0; i < choice->chosen_count; i++) {
        size_t taken = choice->chosen[i];
        cr_assert_lt(taken, count);
        cr_assert_not(gone[taken]);
        cr_assert(may_leave(&candidates[taken]));
        check_step(taken, gone, count);
        gone[taken] = true;
    }
}

Test(choose, holds_of_every_group)
{
    for (int run = 0; run < 3000; run++) {
        const size_t count = make_group();
        const int32_t size = (int32_t)roll(16), min = (int32_t)roll(8);
        const int32_t wanted = (int32_t)roll(8);
        struct as_choice choice, more;
        struct as_choose_request request = {
            .strategy = AS_CHOOSE_OLDEST,
            .has_nodes = true,
            .ready_timeout_us = READY_TIMEOUT,
            .now = {NOW},
            .candidates = candidates,
            .count = count,
            .size = size,
            .min = min,
            .wanted = wanted,
        };
        const int32_t above = size > min ? size - min : 0;
        const size_t most = (size_t)(wanted < above ? wanted : above);
        as_choose(&request, &arena, &choice);
        check_choice(&choice, count, most, wanted);

        /* who asks for more gets the same ones first */
        request.wanted++;
        as_choose(&request, &arena, &more);
        cr_assert_geq(more.chosen_count, choice.chosen_count);
        for (size_t i = 0; i < choice.chosen_count; i++)
            cr_assert_eq(more.chosen[i], choice.chosen[i]);

        /* the order in which the provider lists them does not matter */
        struct as_candidate turned[INSTANCES_MAX];
        for (size_t i = 0; i < count; i++)
            turned[i] = candidates[count - 1 - i];
        request.wanted = wanted;
        request.candidates = turned;
        as_choose(&request, &arena, &more);
        cr_assert_eq(more.chosen_count, choice.chosen_count);
        for (size_t i = 0; i < choice.chosen_count; i++)
            cr_assert_str_eq(turned[more.chosen[i]].id, candidates[choice.chosen[i]].id);
        as_arena_reset(&arena);
    }
}
