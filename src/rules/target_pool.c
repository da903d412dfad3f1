/*
 * The tables of `targets.<name>.pool`, and of what `nodes` says of a group for pools.
 */
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/node_sums.h>

#include "rule_parts.h"

#define NODES_MAX 1000000 /* of what leaves at a time */
#define PRICE_MAX 1000000000

const struct schema_field schema_price_forms[] = {
    SCHEMA_FORM(NUMBER, .max = INT64_C(1000) * PRICE_MAX), {0}};

/* Words in a list, each once */

/* Returns how many there are; `indices_out` has room for all words, which end with a NULL. */
static size_t parse_words(struct loader *loader, const struct as_yaml_node *list,
                          const char *const *words, unsigned *indices_out)
{
    size_t count = 0;
    unsigned seen = 0;
    if (!schema_is_kind(loader, list, AS_YAML_LIST))
        return 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct schema_field field = {.type = SCHEMA_WORD, .words = words};
        unsigned index = 0;
        if (!schema_parse_scalar(loader, &field, list->items[i], &index))
            continue;
        if (seen & (1U << index)) {
            loader_report(loader, list->items[i], "`%s` is in the list already", words[index]);
            continue;
        }
        seen |= 1U << index;
        indices_out[count++] = index;
    }
    return count;
}

static unsigned parse_bits(struct loader *loader, const struct as_yaml_node *list,
                           const char *const *words)
{
    unsigned indices[8], bits = 0;
    const size_t count = parse_words(loader, list, words, indices);
    for (size_t i = 0; i < count; i++)
        bits |= 1U << indices[i];
    return bits;
}

static void parse_price(struct loader *loader, const struct as_yaml_node *value, double *price_out)
{
    char found[AS_YAML_FOUND_SIZE];
    double price = 0;
    if (!schema_parse_number(loader, value, &price))
        return;
    if (price < 0 || price > PRICE_MAX)
        loader_report(loader, value, "expected a price from 0 to 1e9, found %s",
                      as_yaml_describe(value, found));
    else
        *price_out = price;
}

/* ---- `nodes.unneeded`, `nodes.keep`, `nodes.price` ---- */

/* In the order of their bits (enum as_node_ignore, enum as_keep). */
static const char *const ignored[] = {"daemonsets", "mirror", NULL};
static const char *const kept[] = {"system_pods", "local_storage", "unreplicated", NULL};

static void parse_unready_for(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_unneeded *unneeded = object;
    const struct schema_field field = {.type = SCHEMA_DURATION};
    if (value->kind == AS_YAML_SCALAR && strcmp(value->text, "never") == 0)
        unneeded->of.unready_for_us = AS_UNREADY_NEVER;
    else
        (void)schema_parse_scalar(loader, &field, value, &unneeded->of.unready_for_us);
}

static void parse_ignore(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    ((struct raw_unneeded *)object)->of.ignore = parse_bits(loader, value, ignored);
}

static const struct schema_field unneeded_fields[] = {
    SCHEMA_FIELD("below", PERCENT, raw_unneeded, below, .max = 100000, .fallback = "50%"),
    SCHEMA_FIELD("for", DURATION, raw_unneeded, of.for_us, .fallback = "10m"),
    {.key = "unready_for",
     .type = SCHEMA_CUSTOM,
     .parse = parse_unready_for,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(DURATION),
                           SCHEMA_FORM(WORD, .words = (const char *const[]){"never", NULL})),
     .expected = "duration or never",
     .fallback = "20m"},
    {.key = "ignore",
     .type = SCHEMA_CUSTOM,
     .parse = parse_ignore,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(WORDS, .words = ignored)),
     .expected = "list of daemonsets and mirror"},
    {0},
};

const struct schema nodes_unneeded = SCHEMA("nodes.unneeded", raw_unneeded, unneeded_fields);

const struct schema_field schema_keep_forms[] = {SCHEMA_FORM(WORDS, .words = kept), {0}};

void parse_nodes_keep(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    ((struct raw_nodes *)object)->unneeded.of.keep = parse_bits(loader, value, kept);
}

void parse_nodes_price(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_price(loader, value, &((struct raw_nodes *)object)->price);
}

/* ---- `pool` ---- */

static const char *const filters[] = {
    [AS_POOL_LEAST_WASTE] = "least_waste",
    [AS_POOL_MOST_PODS] = "most_pods",
    [AS_POOL_LEAST_NODES] = "least_nodes",
    [AS_POOL_PRIORITY] = "priority",
    [AS_POOL_PRICE] = "price",
    [AS_POOL_RANDOM] = "random",
    [AS_POOL_FILTER_COUNT] = NULL,
};

static void parse_choose(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_pool_config *pool = &((struct raw_pool *)object)->of;
    unsigned indices[AS_POOL_FILTER_COUNT];
    pool->choose_count = parse_words(loader, value, filters, indices);
    for (size_t i = 0; i < pool->choose_count; i++)
        pool->choose[i] = (enum as_pool_filter)indices[i];
}

static const struct rule_amount_range cpu_range = {"cores from 0 to 1000000", 3, 0,
                                                   INT64_C(1000000000), false};
static const struct rule_amount_range memory_range = {"bytes from 0 to 1Ei", 0, 0, INT64_C(1) << 60,
                                                      false};

#define PARSE_RANGE(name, member, range)                                                           \
    static void parse_##name(struct loader *loader, const struct as_yaml_node *value,              \
                             void *object)                                                         \
    {                                                                                              \
        rule_parse_amount(loader, value, &(range), &((struct as_pool_range *)object)->member);     \
    }
PARSE_RANGE(min_cpu, min, cpu_range)
PARSE_RANGE(max_cpu, max, cpu_range)
PARSE_RANGE(min_memory, min, memory_range)
PARSE_RANGE(max_memory, max, memory_range)

#define RANGE_FIELDS(word)                                                                         \
    {                                                                                              \
        {.key = "min",                                                                             \
         .type = SCHEMA_CUSTOM,                                                                    \
         .parse = parse_min_##word,                                                                \
         .forms = SCHEMA_QUANTITY_FORMS,                                                           \
         .expected = "quantity"},                                                                  \
            {.key = "max",                                                                         \
             .type = SCHEMA_CUSTOM,                                                                \
             .parse = parse_max_##word,                                                            \
             .forms = SCHEMA_QUANTITY_FORMS,                                                       \
             .expected = "quantity"},                                                              \
            {0},                                                                                   \
    }

static const struct schema_field cpu_fields[] = RANGE_FIELDS(cpu);
static const struct schema_field memory_fields[] = RANGE_FIELDS(memory);

static void finish_range(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    const struct as_pool_range *range = object;
    if (range->min > range->max)
        loader_report(loader, as_yaml_find(node, "max"), "`max` is below `min`");
}

const struct schema pool_cpu =
    SCHEMA("pool.cpu", as_pool_range, cpu_fields, .finish = finish_range);
const struct schema pool_memory =
    SCHEMA("pool.memory", as_pool_range, memory_fields, .finish = finish_range);

static void parse_cpu_price(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_price(loader, value, &((struct raw_pod_price *)object)->cpu);
}

static void parse_memory_price(struct loader *loader, const struct as_yaml_node *value,
                               void *object)
{
    parse_price(loader, value, &((struct raw_pod_price *)object)->memory);
}

static const struct schema_field price_fields[] = {
    {.key = "cpu",
     .type = SCHEMA_CUSTOM,
     .parse = parse_cpu_price,
     .forms = schema_price_forms,
     .expected = "number"},
    {.key = "memory",
     .type = SCHEMA_CUSTOM,
     .parse = parse_memory_price,
     .forms = schema_price_forms,
     .expected = "number"},
    {0},
};

const struct schema pool_pod_price = SCHEMA("pool.pod_price", raw_pod_price, price_fields);

static const struct schema_field at_once_fields[] = {
    SCHEMA_FIELD("empty", INT, raw_at_once, empty, .min = 1, .max = NODES_MAX, .fallback = "10"),
    SCHEMA_FIELD("drain", INT, raw_at_once, drain, .min = 1, .max = NODES_MAX, .fallback = "1"),
    {0},
};

const struct schema pool_at_once = SCHEMA("pool.at_once", raw_at_once, at_once_fields);

static const struct schema_field pool_fields[] = {
    SCHEMA_FIELD("groups", STRINGS, raw_pool, groups, .is_required = true,
                 .count_offset = offsetof(struct raw_pool, group_count), .max = AS_POOL_GROUPS_MAX,
                 .when_empty = "expected at least one node group"),
    {.key = "choose",
     .type = SCHEMA_CUSTOM,
     .parse = parse_choose,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(WORDS, .words = filters)),
     .expected = "list of least_waste, most_pods, least_nodes, priority, price and random"},
    SCHEMA_FIELD("balance", BOOL, raw_pool, of.balance, .fallback = "false"),
    SCHEMA_FIELD("ignore_labels", STRINGS, raw_pool, ignore_labels,
                 .count_offset = offsetof(struct raw_pool, ignore_label_count),
                 .max = AS_POOL_LABELS_MAX),
    SCHEMA_FIELD("cpu", MAP, raw_pool, of.cpu, .map = &pool_cpu),
    SCHEMA_FIELD("memory", MAP, raw_pool, of.memory, .map = &pool_memory),
    SCHEMA_FIELD("pod_price", MAP, raw_pool, pod_price, .map = &pool_pod_price),
    SCHEMA_FIELD("at_once", MAP, raw_pool, at_once, .map = &pool_at_once),
    SCHEMA_FIELD("expendable_below", INT, raw_pool, of.expendable_below, .min = INT32_MIN,
                 .max = INT32_MAX, .fallback = "-10"),
    {0},
};

static void init_pool(struct loader *loader, void *object)
{
    ((struct raw_pool *)object)->of = as_pool_config_default;
}

const struct schema target_pool = SCHEMA("pool", raw_pool, pool_fields, .init = init_pool);
