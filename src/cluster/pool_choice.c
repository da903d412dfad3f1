/*
 * Filters over options: see the header. All but `random` give each option a score and keep those
 * with the best one.
 */
#include <alertscaler/cluster/pool_choice.h>

#include <assert.h>
#include <math.h>

#include <alertscaler/base/random.h>

#define CORE 1000.0 /* millicores */
#define GIB  (1024.0 * 1024 * 1024)
#define MIB  (1024.0 * 1024)

/* Their price is added to both sides of the quotient, so that tiny pods do not rule it. */
#define STABLE_CPU    (0.5 * CORE)
#define STABLE_MEMORY (500 * MIB)

#define GPU_UNFITNESS 1000.0
#define CALMING_NODES 15.0 /* the more new nodes, the less the preferred size matters */

/* Returns false for an option that has no score. */
typedef bool score_fn(const struct as_pool_choice *choice, const struct as_pool_option *option,
                      double *score_out);

/* Scores */

/* The part of what there is that is not used. */
static double get_waste(int64_t node, uint64_t nodes, int64_t used)
{
    const double all = (double)node * (double)nodes;
    return all > 0 ? (all - (double)used) / all : 0;
}

static bool score_waste(const struct as_pool_choice *choice, const struct as_pool_option *option,
                        double *score_out)
{
    *score_out = get_waste(option->node_cpu, option->nodes, option->pods_cpu) +
                 get_waste(option->node_memory, option->nodes, option->pods_memory);
    return true;
}

static bool score_pods(const struct as_pool_choice *choice, const struct as_pool_option *option,
                       double *score_out)
{
    *score_out = (double)option->pods;
    return true;
}

static bool score_nodes(const struct as_pool_choice *choice, const struct as_pool_option *option,
                        double *score_out)
{
    *score_out = (double)option->nodes;
    return true;
}

static bool score_priority(const struct as_pool_choice *choice, const struct as_pool_option *option,
                           double *score_out)
{
    *score_out = option->priority;
    return option->has_priority;
}

/* The larger the cluster, the larger the nodes that it prefers. Millicores. */
static double get_preferred_cpu(uint64_t nodes)
{
    static const struct {
        uint64_t nodes; /* up to */
        double cores;
    } rows[] = {{2, 1}, {6, 2}, {20, 4}, {60, 8}, {200, 16}, {UINT64_MAX, 32}};
    size_t row = 0;
    while (nodes > rows[row].nodes)
        row++;
    return rows[row].cores * CORE;
}

/* How far the node's size is from the preferred one: at least 1; lower if many nodes are added. */
static double get_unfitness(const struct as_pool_choice *choice,
                            const struct as_pool_option *option)
{
    const double preferred = get_preferred_cpu(choice->cluster_nodes);
    const double cpu = option->node_cpu > 0 ? (double)option->node_cpu : 1;
    const double unfitness = cpu > preferred ? cpu / preferred : preferred / cpu;
    if (option->has_gpu)
        return GPU_UNFITNESS;
    return (unfitness - 1) * (1 - tanh((double)(option->nodes - 1) / CALMING_NODES)) + 1;
}

static double get_pods_price(const struct as_pool_choice *choice, double cpu, double memory)
{
    return cpu / CORE * choice->cpu_price + memory / GIB * choice->memory_price;
}

/* If pods have no price, only the nodes' price counts. */
static bool score_price(const struct as_pool_choice *choice, const struct as_pool_option *option,
                        double *score_out)
{
    const double stable = get_pods_price(choice, STABLE_CPU, STABLE_MEMORY);
    const double paid = option->price * (double)option->nodes + stable;
    const double used =
        get_pods_price(choice, (double)option->pods_cpu, (double)option->pods_memory) + stable;
    *score_out = get_unfitness(choice, option) * (used > 0 ? paid / used : paid);
    return option->has_price;
}

static const struct {
    const char *word;
    score_fn *score;
    bool is_highest_best;
    bool keeps_all_without; /* where no option has a score */
} filters[AS_POOL_FILTER_COUNT] = {
    [AS_POOL_LEAST_WASTE] = {"least_waste", score_waste, false, false},
    [AS_POOL_MOST_PODS] = {"most_pods", score_pods, true, false},
    [AS_POOL_LEAST_NODES] = {"least_nodes", score_nodes, false, false},
    [AS_POOL_PRIORITY] = {"priority", score_priority, true, true},
    [AS_POOL_PRICE] = {"price", score_price, false, false},
    [AS_POOL_RANDOM] = {"random", NULL, false, false},
};

const char *as_pool_filter_get_word(enum as_pool_filter filter)
{
    assert((size_t)filter < AS_POOL_FILTER_COUNT);
    return filters[filter].word;
}

/* Filters */

static size_t count_left(const struct as_pool_option *options, size_t count)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        left += !options[i].is_out;
    return left;
}

static void drop(struct as_pool_option *option, enum as_pool_filter filter)
{
    option->is_out = true;
    option->out_by = filter;
}

static bool is_better(enum as_pool_filter filter, double score, double than)
{
    return filters[filter].is_highest_best ? score > than : score < than;
}

static void keep_best(const struct as_pool_choice *choice, enum as_pool_filter filter,
                      struct as_pool_option *options, size_t count)
{
    const unsigned bit = 1U << filter;
    const struct as_pool_option *best = NULL;
    for (size_t i = 0; i < count; i++) {
        struct as_pool_option *option = &options[i];
        double *score = &option->scores[filter];
        if (option->is_out || !filters[filter].score(choice, option, score))
            continue;
        option->scored |= bit;
        if (!best || is_better(filter, *score, best->scores[filter]))
            best = option;
    }
    if (!best && filters[filter].keeps_all_without)
        return;
    for (size_t i = 0; i < count; i++)
        if (!options[i].is_out && (!best || !(options[i].scored & bit) ||
                                   options[i].scores[filter] != best->scores[filter]))
            drop(&options[i], filter);
}

static void keep_random(const struct as_pool_choice *choice, struct as_pool_option *options,
                        size_t count)
{
    const size_t left = count_left(options, count);
    struct as_random random;
    if (left == 0)
        return;
    as_random_init(&random, choice->seed);
    uint64_t kept = as_random_get_below(&random, left);
    for (size_t i = 0; i < count; i++)
        if (!options[i].is_out && kept-- != 0)
            drop(&options[i], AS_POOL_RANDOM);
}

size_t as_pool_choose(const struct as_pool_choice *choice, struct as_pool_option *options,
                      size_t count)
{
    static const enum as_pool_filter by_default[] = {AS_POOL_LEAST_WASTE};
    const bool has_filters = choice->filter_count > 0;
    const enum as_pool_filter *asked = has_filters ? choice->filters : by_default;
    const size_t asked_count = has_filters ? choice->filter_count : 1;

    for (size_t i = 0; i < count; i++) {
        options[i].is_out = options[i].nodes == 0 || options[i].pods == 0;
        options[i].out_by = AS_POOL_FILTER_COUNT;
        options[i].scored = 0;
    }
    for (size_t i = 0; i < asked_count && (i == 0 || count_left(options, count) > 1); i++) {
        if (asked[i] == AS_POOL_RANDOM)
            keep_random(choice, options, count);
        else
            keep_best(choice, asked[i], options, count);
    }
    for (size_t i = 0; i < count; i++)
        if (!options[i].is_out)
            return i;
    return AS_POOL_NO_OPTION;
}
