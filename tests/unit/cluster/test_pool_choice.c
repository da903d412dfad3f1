/*
 * Which of a pool's groups grows: the filters, alone and in a row. The cases are those of Cluster
 * Autoscaler's expanders.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include <alertscaler/cluster/pool_choice.h>

#define OPTIONS 8
#define MIB     (INT64_C(1) << 20)
#define GIB     (INT64_C(1) << 30)

/* What a filter leaves, as the indices of the options: "02"; and what is chosen. */
static size_t choose(const struct as_pool_choice *choice, struct as_pool_option *options,
                     size_t count, char kept_out[OPTIONS + 1])
{
    const size_t chosen = as_pool_choose(choice, options, count);
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        if (!options[i].is_out)
            kept_out[size++] = (char)('0' + i);
    kept_out[size] = '\0';
    cr_expect_eq(chosen, size > 0 ? (size_t)(kept_out[0] - '0') : AS_POOL_NO_OPTION);
    return chosen;
}

static void check_filter(enum as_pool_filter filter, struct as_pool_option *options, size_t count,
                         const char *wanted)
{
    const struct as_pool_choice choice = {.filters = &filter, .filter_count = 1};
    char kept[OPTIONS + 1];
    choose(&choice, options, count, kept);
    cr_expect_str_eq(kept, wanted, "%s: %s, not %s", as_pool_filter_get_word(filter), kept, wanted);
}

Test(pool_choice, filters_have_words)
{
    static const char *const words[] = {"least_waste", "most_pods", "least_nodes",
                                        "priority",    "price",     "random"};
    for (unsigned i = 0; i < AS_POOL_FILTER_COUNT; i++)
        cr_expect_str_eq(as_pool_filter_get_word((enum as_pool_filter)i), words[i]);
}

Test(pool_choice, nothing_to_choose_from)
{
    struct as_pool_option without[] = {{.nodes = 0, .pods = 3}, {.nodes = 2, .pods = 0}};
    const struct as_pool_choice choice = {.filter_count = 0};
    cr_expect_eq(as_pool_choose(&choice, NULL, 0), AS_POOL_NO_OPTION);
    cr_expect_eq(as_pool_choose(&choice, without, 2), AS_POOL_NO_OPTION);
    cr_expect(without[0].is_out && without[1].is_out);
    cr_expect_eq(without[0].out_by, AS_POOL_FILTER_COUNT);
    for (unsigned i = 0; i < AS_POOL_FILTER_COUNT; i++)
        check_filter((enum as_pool_filter)i, without, 2, "");
}

/* least_waste */

Test(pool_choice, least_waste)
{
    const int64_t cpu = 500, memory = 1000 * MIB;
    struct as_pool_option options[] = {
        {.nodes = 1,
         .pods = 1,
         .pods_cpu = cpu,
         .pods_memory = memory,
         .node_cpu = 16 * cpu,
         .node_memory = 16 * memory},
        {.nodes = 1,
         .pods = 1,
         .pods_cpu = cpu,
         .pods_memory = memory,
         .node_cpu = 16 * cpu,
         .node_memory = 32 * memory}, /* much memory */
        {.nodes = 1,
         .pods = 1,
         .pods_cpu = cpu,
         .pods_memory = memory,
         .node_cpu = 8 * cpu,
         .node_memory = 16 * memory}, /* little cpu */
    };
    check_filter(AS_POOL_LEAST_WASTE, options, 1, "0");
    check_filter(AS_POOL_LEAST_WASTE, options, 2, "0");
    check_filter(AS_POOL_LEAST_WASTE, options, 3, "2");
    cr_expect_float_eq(options[0].scores[AS_POOL_LEAST_WASTE], 15.0 / 16 + 15.0 / 16, 1e-12);
    cr_expect_float_eq(options[1].scores[AS_POOL_LEAST_WASTE], 15.0 / 16 + 31.0 / 32, 1e-12);
    cr_expect_float_eq(options[2].scores[AS_POOL_LEAST_WASTE], 7.0 / 8 + 15.0 / 16, 1e-12);
    cr_expect_eq(options[0].out_by, AS_POOL_LEAST_WASTE);
    cr_expect_eq(options[2].out_by, AS_POOL_FILTER_COUNT);
    cr_expect_eq(options[2].scored, 1U << AS_POOL_LEAST_WASTE);

    options[0] = options[2]; /* equal ones stay */
    check_filter(AS_POOL_LEAST_WASTE, options, 3, "02");
    options[0].nodes = 3; /* more nodes than need be */
    check_filter(AS_POOL_LEAST_WASTE, options, 3, "2");
    options[2].pods_cpu = options[2].pods_memory = 0; /* pods without requests */
    check_filter(AS_POOL_LEAST_WASTE, options, 3, "1");
    options[0].node_cpu = options[0].node_memory = 0; /* what is not there is not wasted */
    check_filter(AS_POOL_LEAST_WASTE, options, 3, "0");
}

Test(pool_choice, least_waste_is_what_happens_without_filters)
{
    struct as_pool_option options[] = {
        {.nodes = 1, .pods = 1, .pods_cpu = 100, .node_cpu = 1000},
        {.nodes = 1, .pods = 1, .pods_cpu = 100, .node_cpu = 500},
    };
    const struct as_pool_choice choice = {.filter_count = 0};
    cr_expect_eq(as_pool_choose(&choice, options, 2), 1);
}

/* most_pods, least_nodes */

Test(pool_choice, most_pods)
{
    struct as_pool_option options[] = {
        {.nodes = 1, .pods = 0}, {.nodes = 9, .pods = 1}, {.nodes = 1, .pods = 1}};
    check_filter(AS_POOL_MOST_PODS, options, 1, "");
    check_filter(AS_POOL_MOST_PODS, options, 2, "1");
    check_filter(AS_POOL_MOST_PODS, options, 3, "12");
    options[1].pods = 7;
    check_filter(AS_POOL_MOST_PODS, options, 3, "1");
}

Test(pool_choice, least_nodes)
{
    static const struct {
        uint64_t nodes[7];
        const char *wanted;
    } rows[] = {
        {{0}, ""},         {{2}, "0"},         {{2, 1}, "1"},
        {{6, 2, 2}, "12"}, {{8, 8, 8}, "012"}, {{23, 0, 5, 8, 5, 5, 22}, "245"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_pool_option options[AS_ARRAY_SIZE(rows[i].nodes)];
        for (size_t k = 0; k < AS_ARRAY_SIZE(options); k++)
            options[k] = (struct as_pool_option){.nodes = rows[i].nodes[k], .pods = 1};
        check_filter(AS_POOL_LEAST_NODES, options, AS_ARRAY_SIZE(options), rows[i].wanted);
    }
}

/* priority */

Test(pool_choice, priority)
{
    static const struct {
        const char *priorities; /* a digit an option; '-': none */
        const char *wanted;
    } rows[] = {
        {"1", "0"},     {"15", "1"},  {"55", "01"}, {"115", "2"}, {"22-", "01"},
        {"---", "012"}, {"--0", "2"}, {"0--", "0"}, {"-", "0"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_pool_option options[OPTIONS];
        const size_t count = strlen(rows[i].priorities);
        for (size_t k = 0; k < count; k++)
            options[k] = (struct as_pool_option){.nodes = 1,
                                                 .pods = 1,
                                                 .has_priority = rows[i].priorities[k] != '-',
                                                 .priority = rows[i].priorities[k] - '0'};
        check_filter(AS_POOL_PRIORITY, options, count, rows[i].wanted);
    }
    struct as_pool_option below[] = {{.nodes = 1, .pods = 1, .has_priority = true, .priority = -9},
                                     {.nodes = 1, .pods = 1}};
    check_filter(AS_POOL_PRIORITY, below, 2, "0");
    cr_expect_eq(below[1].scored, 0);
}

/* price */

/* Pods of 1000 and 500 millicores. A core costs 20: 20 and 10, and 10 for what steadies. */
static struct as_pool_option make_priced(uint64_t nodes, int64_t node_cpu, double price)
{
    return (struct as_pool_option){.nodes = nodes,
                                   .pods = 2,
                                   .pods_cpu = 1500,
                                   .node_cpu = node_cpu,
                                   .node_memory = GIB,
                                   .has_price = true,
                                   .price = price};
}

static double score_price(struct as_pool_option option, uint64_t cluster_nodes, double cpu_price,
                          double memory_price)
{
    static const enum as_pool_filter filter = AS_POOL_PRICE;
    const struct as_pool_choice choice = {.filters = &filter,
                                          .filter_count = 1,
                                          .cpu_price = cpu_price,
                                          .memory_price = memory_price,
                                          .cluster_nodes = cluster_nodes};
    cr_expect_eq(as_pool_choose(&choice, &option, 1), option.has_price ? 0 : AS_POOL_NO_OPTION);
    return option.scores[AS_POOL_PRICE];
}

Test(pool_choice, price_weighs_the_node_against_the_pods_and_the_preferred_size)
{
    static const enum as_pool_filter filter = AS_POOL_PRICE;
    static const struct {
        const char *what;
        uint64_t cluster_nodes; /* 5: prefers 2 cores, 15: prefers 4 */
        uint64_t nodes[2];
        int64_t node_cpu[2];
        double price[2];
        size_t wanted;
    } rows[] = {
        {"the cheaper one", 5, {2, 1}, {1000, 4000}, {20, 200}, 0},
        {"cheaper, but the other is preferred", 15, {2, 1}, {1000, 4000}, {50, 200}, 1},
        {"preferred, but many nodes come", 15, {80, 40}, {1000, 4000}, {20, 200}, 0},
        {"the second is cheaper", 5, {2, 1}, {1000, 4000}, {200, 100}, 1},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const struct as_pool_choice choice = {.filters = &filter,
                                              .filter_count = 1,
                                              .cpu_price = 20,
                                              .cluster_nodes = rows[i].cluster_nodes};
        struct as_pool_option options[2];
        for (size_t k = 0; k < 2; k++)
            options[k] = make_priced(rows[i].nodes[k], rows[i].node_cpu[k], rows[i].price[k]);
        cr_expect_eq(as_pool_choose(&choice, options, 2), rows[i].wanted, "%s", rows[i].what);
    }
}

Test(pool_choice, at_one_price_the_group_that_takes_more_pods)
{
    static const enum as_pool_filter filter = AS_POOL_PRICE;
    const struct as_pool_choice choice = {
        .filters = &filter, .filter_count = 1, .cpu_price = 20, .cluster_nodes = 5};
    struct as_pool_option options[] = {make_priced(2, 1000, 200), make_priced(1, 4000, 200),
                                       make_priced(1, 4000, 200)};
    options[0].pods = 1;
    options[0].pods_cpu = 1000;
    cr_expect_eq(as_pool_choose(&choice, options, 2), 1);
    cr_expect_eq(as_pool_choose(&choice, options, 3), 1, "of equal ones the first");
    cr_expect_not(options[2].is_out);
    options[2].price = 90;
    cr_expect_eq(as_pool_choose(&choice, options, 3), 2);
    options[2].has_price = false;
    cr_expect_eq(as_pool_choose(&choice, options, 3), 1);
    cr_expect_eq(options[2].out_by, AS_POOL_PRICE);
    options[0].has_price = options[1].has_price = false;
    cr_expect_eq(as_pool_choose(&choice, options, 3), AS_POOL_NO_OPTION);
}

Test(pool_choice, price_to_the_digit)
{
    /* 2 nodes of 1 core at 20 and 10 for what steadies, by 30 + 10; u = 2 of 2 preferred cores */
    const double calm = 1 - tanh(1.0 / 15);
    cr_expect_float_eq(score_price(make_priced(2, 1000, 20), 5, 20, 0),
                       (1 * calm + 1) * (2 * 20 + 10) / (30 + 10), 1e-12);
    cr_expect_float_eq(score_price(make_priced(1, 1000, 20), 5, 20, 0), 2 * 30.0 / 40, 1e-12);
    /* memory: 500 MiB of a GiB at 1024 are 500 */
    struct as_pool_option option = make_priced(1, 2000, 1000);
    option.pods_cpu = 0;
    option.pods_memory = 2 * GIB;
    cr_expect_float_eq(score_price(option, 5, 0, 1024), (1000.0 + 500) / (2048 + 500), 1e-12);
    /* pods without a price, nodes without a price */
    cr_expect_float_eq(score_price(make_priced(3, 2000, 7), 5, 0, 0), 21, 1e-12);
    cr_expect_float_eq(score_price(make_priced(3, 2000, 0), 5, 0, 0), 0, 1e-12);
    /* a GPU counts more than any size */
    option = make_priced(100, 2000, 20);
    option.has_gpu = true;
    cr_expect_float_eq(score_price(option, 5, 20, 0), 1000 * (2000.0 + 10) / 40, 1e-9);
    cr_expect(isfinite(score_price(make_priced(UINT64_MAX, 0, 20), 5, 20, 0)));
}

Test(pool_choice, the_larger_the_cluster_the_larger_the_preferred_node)
{
    static const struct {
        uint64_t cluster_nodes;
        int64_t cpu;
    } rows[] = {{0, 1},  {2, 1},   {3, 2},    {6, 2},    {7, 4},     {20, 4},         {21, 8},
                {60, 8}, {61, 16}, {200, 16}, {201, 32}, {5000, 32}, {UINT64_MAX, 32}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        const uint64_t nodes = rows[i].cluster_nodes;
        const int64_t cpu = rows[i].cpu * 1000;
        /* price and pods' price are equal: the score is u */
        cr_expect_float_eq(score_price(make_priced(1, cpu, 30), nodes, 20, 0), 1, 1e-12);
        cr_expect_float_eq(score_price(make_priced(1, 2 * cpu, 30), nodes, 20, 0), 2, 1e-12);
        cr_expect_float_eq(score_price(make_priced(1, cpu / 2, 30), nodes, 20, 0), 2, 1e-12);
    }
}

/* random */

Test(pool_choice, random_is_fair_and_the_seed_decides)
{
    static const enum as_pool_filter filter = AS_POOL_RANDOM;
    unsigned seen[3] = {0};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        const struct as_pool_choice choice = {.filters = &filter, .filter_count = 1, .seed = seed};
        struct as_pool_option options[] = {
            {.nodes = 1, .pods = 1}, {.nodes = 0, .pods = 1}, {.nodes = 1, .pods = 1}};
        char kept[OPTIONS + 1];
        const size_t chosen = choose(&choice, options, 3, kept);
        cr_assert_eq(strlen(kept), 1);
        cr_expect_eq(as_pool_choose(&choice, options, 3), chosen);
        seen[chosen]++;
    }
    cr_expect_eq(seen[1], 0);
    cr_expect(seen[0] > 1350 && seen[2] > 1350, "%u and %u", seen[0], seen[2]);
}

/* In a row */

Test(pool_choice, filters_in_a_row)
{
    static const enum as_pool_filter row[] = {AS_POOL_PRIORITY, AS_POOL_MOST_PODS,
                                              AS_POOL_LEAST_NODES};
    const struct as_pool_choice choice = {.filters = row, .filter_count = AS_ARRAY_SIZE(row)};
    struct as_pool_option options[] = {
        {.nodes = 1, .pods = 9, .has_priority = true, .priority = 10},
        {.nodes = 3, .pods = 5, .has_priority = true, .priority = 20},
        {.nodes = 2, .pods = 5, .has_priority = true, .priority = 20},
        {.nodes = 2, .pods = 5, .has_priority = true, .priority = 20},
        {.nodes = 1, .pods = 4, .has_priority = true, .priority = 20},
    };
    char kept[OPTIONS + 1];
    choose(&choice, options, AS_ARRAY_SIZE(options), kept);
    cr_expect_str_eq(kept, "23");
    cr_expect_eq(options[0].out_by, AS_POOL_PRIORITY);
    cr_expect_eq(options[0].scored, 1U << AS_POOL_PRIORITY);
    cr_expect_eq(options[1].out_by, AS_POOL_LEAST_NODES);
    cr_expect_eq(options[4].out_by, AS_POOL_MOST_PODS);
    cr_expect_eq(options[2].scores[AS_POOL_LEAST_NODES], 2);
}

Test(pool_choice, one_that_is_left_is_not_asked_further)
{
    static const enum as_pool_filter row[] = {AS_POOL_MOST_PODS, AS_POOL_PRICE};
    const struct as_pool_choice choice = {.filters = row, .filter_count = AS_ARRAY_SIZE(row)};
    struct as_pool_option options[] = {
        {.nodes = 1, .pods = 9}, /* without a price */
        {.nodes = 1, .pods = 5, .has_price = true, .price = 1},
    };
    cr_expect_eq(as_pool_choose(&choice, options, 2), 0);
    cr_expect_eq(options[0].scored, 1U << AS_POOL_MOST_PODS);
    options[1].pods = 9;
    cr_expect_eq(as_pool_choose(&choice, options, 2), 1);
}
