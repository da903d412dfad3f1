/*
 * The tables of `targets.<name>` and of `defaults`: both have the keys of a target's policy.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>
#include <alertscaler/base/zone.h>
#include <alertscaler/cluster/node_sums.h>
#include <alertscaler/rules/provider_kind.h>
#include <alertscaler/rules/tables.h>

#include "resolve.h"
#include "schema_writer.h"

struct rule_amount_range {
    const char *expected;
    int scale; /* 3: counted in thousandths */
    int64_t min, max;
    bool is_whole; /* not to be had in parts; else rounded down */
};

/*
 * The table of `targets.<name>.schedules[]`: bounds that hold at certain times.
 */

#define WALL_TIME "([01][0-9]|2[0-3]):[0-5][0-9]"
#define DAYS      "(mon|tue|wed|thu|fri|sat|sun)"

/* "07:30"; as the end of a day "24:00". */
static bool parse_wall_time(const char *text, bool is_end, int32_t *seconds_out)
{
    unsigned hours = 0, minutes = 0;
    if (strlen(text) != 5 || strspn(text, "0123456789") != 2 || text[2] != ':' ||
        strspn(text + 3, "0123456789") != 2)
        return false;
    hours = (unsigned)(text[0] - '0') * 10 + (unsigned)(text[1] - '0');
    minutes = (unsigned)(text[3] - '0') * 10 + (unsigned)(text[4] - '0');
    if (minutes > 59 || (hours > 23 && !(is_end && hours == 24 && minutes == 0)))
        return false;
    *seconds_out = (int32_t)(hours * 3600 + minutes * 60);
    return true;
}

static void parse_end(struct loader *loader, const struct as_yaml_node *value, bool is_end,
                      struct raw_schedule *schedule)
{
    char found[AS_YAML_FOUND_SIZE];
    struct as_schedule *of = &schedule->of;
    enum raw_schedule_time *form = is_end ? &schedule->to : &schedule->from;
    if (value->kind == AS_YAML_SCALAR &&
        as_wall_time_parse(value->text, value->size, is_end ? &of->end : &of->begin) == 0)
        *form = RAW_SCHEDULE_MOMENT;
    else if (value->kind == AS_YAML_SCALAR &&
             parse_wall_time(value->text, is_end, is_end ? &of->to_s : &of->from_s))
        *form = RAW_SCHEDULE_WALL_TIME;
    else
        loader_report(loader, value,
                      "expected a time of the day like '07:30'%s, or a moment with its offset like "
                      "2026-11-27T00:00:00+01:00, found %s",
                      is_end ? " (at most '24:00')" : "", as_yaml_describe(value, found));
}

static void parse_from(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_end(loader, value, false, object);
}

static void parse_to(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_end(loader, value, true, object);
}

/* 0 to 6; 7: no day */
static unsigned find_day(const char *text, size_t size)
{
    static const char days[] = "montuewedthufrisatsun";
    unsigned day = 0;
    while (day < 7 && !(size == 3 && memcmp(days + (size_t)day * 3, text, 3) == 0))
        day++;
    return day;
}

/* "mon", "mon-fri", "sat-mon" */
static bool add_days(const char *text, unsigned *days)
{
    const size_t first = strcspn(text, "-");
    const char *last = text[first] ? text + first + 1 : text;
    unsigned day = find_day(text, first);
    const unsigned end = find_day(last, strlen(last));
    if (day > 6 || end > 6)
        return false;
    *days |= 1U << day;
    for (; day != end; *days |= 1U << day)
        day = (day + 1) % 7;
    return true;
}

static void parse_days(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_schedule *schedule = object;
    char found[AS_YAML_FOUND_SIZE];
    if (!schema_is_kind(loader, value, AS_YAML_LIST))
        return;
    if (value->count == 0)
        loader_report(loader, value, "expected at least one day, found an empty list");
    for (uint32_t i = 0; i < value->count; i++) {
        const struct as_yaml_node *item = value->items[i];
        if (item->kind != AS_YAML_SCALAR || !add_days(item->text, &schedule->of.days))
            loader_report(loader, item,
                          "expected mon, tue, wed, thu, fri, sat, sun, or a range like mon-fri, "
                          "found %s",
                          as_yaml_describe(item, found));
    }
}

static void parse_bound(struct loader *loader, const struct as_yaml_node *value, int64_t least,
                        bool *has_out, int32_t *bound_out)
{
    const struct schema_field field = {
        .type = SCHEMA_INT, .min = least, .max = AS_SIZE_MAX, .is_count = true};
    *has_out = schema_parse_scalar(loader, &field, value, bound_out);
}

static void parse_min(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_schedule *of = &((struct raw_schedule *)object)->of;
    parse_bound(loader, value, 0, &of->has_min, &of->min);
}

static void parse_max(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_schedule *of = &((struct raw_schedule *)object)->of;
    parse_bound(loader, value, 0, &of->has_max, &of->max);
}

/* In the order of enum as_ways, from DOWN. */
static const char *const ways[] = {"down", "up", "both", NULL};

static void parse_hold(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    const struct schema_field field = {.type = SCHEMA_WORD, .words = ways};
    unsigned index = 0;
    if (schema_parse_scalar(loader, &field, value, &index))
        ((struct raw_schedule *)object)->of.hold = (enum as_ways)(index + 1);
}

#define WORD(enumerator, word) [enumerator] = (word),
static const char *const rollouts[] = {AS_ROLLOUTS(WORD)[AS_ROLLOUT_COUNT] = NULL};
static const char *const schedule_ends[] = {AS_SCHEDULE_ENDS(WORD)[AS_SCHEDULE_END_COUNT] = NULL};
#undef WORD

static const struct schema_field schedule_fields[] = {
    SCHEMA_FIELD("name", NAME, raw_schedule, name, .is_required = true,
                 .about = "The name of the schedule, for logs and decisions."),
    SCHEMA_FIELD("timezone", STRING, raw_schedule, timezone,
                 .about = "The time zone by its name, like Europe/Berlin."),
    {.key = "days",
     .type = SCHEMA_CUSTOM,
     .parse = parse_days,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(STRINGS, .pattern = "^" DAYS "(-" DAYS ")?$",
                                       .when_empty = "expected at least one day")),
     .expected = "list of days",
     .about = "Days of the week and ranges of days, like Mon-Fri; without it, all days."},
    {.key = "from",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_from,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(SCALAR, .pattern = "^" WALL_TIME "$"), SCHEMA_FORM(TIME)),
     .expected = "time",
     .about = "When the schedule begins: a time of day, or a moment."},
    {.key = "to",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_to,
     .forms =
         SCHEMA_FORMS(SCHEMA_FORM(SCALAR, .pattern = "^(" WALL_TIME "|24:00)$"), SCHEMA_FORM(TIME)),
     .expected = "time",
     .about = "When the schedule ends: a time of day, or a moment."},
    {.key = "min",
     .type = SCHEMA_CUSTOM,
     .parse = parse_min,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(INT, .min = 0, .max = AS_SIZE_MAX, .is_count = true)),
     .expected = "integer",
     .about = "The smallest size while the schedule is in force."},
    {.key = "max",
     .type = SCHEMA_CUSTOM,
     .parse = parse_max,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(INT, .min = 0, .max = AS_SIZE_MAX, .is_count = true)),
     .expected = "integer",
     .about = "The largest size while the schedule is in force."},
    SCHEMA_FIELD("end", WORD, raw_schedule, of.at_end, .words = schedule_ends, .fallback = "keep",
                 .about =
                     "The size after the schedule's end: kept, or back to `min` of the target."),
    {.key = "hold",
     .type = SCHEMA_CUSTOM,
     .parse = parse_hold,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(WORD, .words = ways)),
     .expected = "down, up or both",
     .about = "While the schedule is in force, the target is not scaled in this direction."},
    {0},
};

static void check_moments(struct loader *loader, const struct as_yaml_node *node,
                          const struct raw_schedule *schedule)
{
    static const char *const keys[] = {"timezone", "days"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        const struct as_yaml_node *key = schema_find_key(node, keys[i]);
        if (key)
            loader_report(loader, key, "`%s` is for times of the day: moments have their offset",
                          keys[i]);
    }
    if (schedule->of.end.us <= schedule->of.begin.us)
        loader_report(loader, as_yaml_find(node, "to"), "`to` is not after `from`");
}

static void check_wall_times(struct loader *loader, const struct as_yaml_node *node,
                             const struct as_yaml_node *at, const struct raw_schedule *schedule)
{
    if (schedule->of.from_s == schedule->of.to_s)
        loader_report(loader, as_yaml_find(node, "to"),
                      "`to` equals `from`; a whole day is from '00:00' to '24:00'");
    if (!as_yaml_find(node, "timezone"))
        loader_report(loader, at, "key `timezone` is missing: times of the day need it");
}

static void check_zero_and_end(struct loader *loader, const struct as_yaml_node *node,
                               const struct as_schedule *of)
{
    const struct as_yaml_node *end = schema_find_key(node, "end");
    if (as_schedule_is_zero(of) && !of->has_min)
        loader_report(loader, as_yaml_find(node, "max"),
                      "`max: 0` needs `min: 0` beside it: `min: 0, max: 0` sets the size to 0 at "
                      "the begin of the schedule");
    else if (as_schedule_is_zero(of) && end)
        loader_report(loader, end,
                      "`end` has no effect beside `max: 0`: the size from before the schedule "
                      "returns at its end");
    else if (end && of->at_end != AS_SCHEDULE_KEEP && (!of->has_min || of->min == 0))
        loader_report(loader, end, "`end: %s` needs a `min` above 0 in the schedule",
                      as_schedule_end_get_word(of->at_end));
}

static void finish_schedule(struct loader *loader, const struct as_yaml_node *node,
                            const struct as_yaml_node *at, void *object)
{
    struct raw_schedule *schedule = object;
    const struct as_schedule *of = &schedule->of;
    schedule->node = node;
    if (!as_yaml_find(node, "min") && !as_yaml_find(node, "max") && !as_yaml_find(node, "hold"))
        loader_report(loader, at,
                      "the schedule changes nothing: it has no `min`, no `max` and no `hold`");
    if (of->has_min && of->has_max && of->min > of->max)
        loader_report(loader, as_yaml_find(node, "max"), "`max` %d is below `min` %d", of->max,
                      of->min);
    check_zero_and_end(loader, node, of);
    if (schedule->from == RAW_SCHEDULE_NONE || schedule->to == RAW_SCHEDULE_NONE)
        return;
    if (schedule->from != schedule->to)
        loader_report(loader, as_yaml_find(node, "to"),
                      "`from` and `to` are both times of the day, or both moments");
    else if (schedule->from == RAW_SCHEDULE_MOMENT)
        check_moments(loader, node, schedule);
    else
        check_wall_times(loader, node, at, schedule);
    if (schedule->of.days == 0)
        schedule->of.days = AS_SCHEDULE_ALL_DAYS;
}

static const struct schema target_schedules = SCHEMA(
    "schedules", raw_schedule, schedule_fields,
    .example = "{name: morning, timezone: Europe/Berlin, from: '07:00', to: '19:00', min: 4}",
    .finish = finish_schedule);

/*
 * `nodes.select`: the labels of a group's nodes, for providers that do not name instances.
 */

static int compare_labels(const void *a, const void *b)
{
    return strcmp(((const struct as_label *)a)->name, ((const struct as_label *)b)->name);
}

static const char *print_select(struct as_arena *arena, struct as_label *labels, size_t count)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT_OPEN((size_t)64 * 1024);
    qsort(labels, count, sizeof(*labels), compare_labels);
    for (size_t i = 0; i < count; i++)
        as_buf_printf(&text, "%s%s=%s", i > 0 ? "," : "", labels[i].name, labels[i].value);
    return as_arena_strdup(arena, text.data ? text.data : "");
}

/* Kubernetes' keys and values of labels; false after a report. The value is memory of the loader's
 * arena. */
static bool rule_check_label_key(struct loader *loader, const struct as_yaml_node *node)
{
    char found[AS_YAML_FOUND_SIZE];
    if (node->kind == AS_YAML_SCALAR && as_label_is_kubernetes_key(node->text))
        return true;
    loader_report(loader, node,
                  "expected a Kubernetes key (at most 63 letters, digits, `-`, `_` and `.`, a "
                  "letter or digit at both ends; a DNS name and `/` may stand before), found %s",
                  as_yaml_describe(node, found));
    return false;
}

static bool rule_parse_label_value(struct loader *loader, const struct as_yaml_node *node,
                                   const char **value_out)
{
    char found[AS_YAML_FOUND_SIZE];
    if (!schema_is_kind(loader, node, AS_YAML_SCALAR))
        return false;
    if (!as_label_is_kubernetes_value(node->text)) {
        loader_report(loader, node,
                      "expected a Kubernetes value (at most 63 letters, digits, `-`, `_` and "
                      "`.`, a letter or digit at both ends), found %s",
                      as_yaml_describe(node, found));
        return false;
    }
    *value_out = as_arena_strdup(loader->arena, node->text);
    return true;
}

const char *parse_label_map(struct loader *loader, const struct as_yaml_node *value)
{
    struct as_label labels[LABEL_MAP_MAX];
    size_t count = 0;
    if (!schema_is_map(loader, value, "{team: checkout}"))
        return NULL;
    if (value->count == 0 || value->count > LABEL_MAP_MAX) {
        loader_report(loader, value, "expected 1 to %d labels", LABEL_MAP_MAX);
        return NULL;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        const struct as_yaml_pair *pair = &value->pairs[i];
        labels[count].name = pair->key->text;
        if (!rule_check_label_key(loader, pair->key) ||
            !rule_parse_label_value(loader, pair->value, &labels[count].value))
            return NULL;
        count++;
    }
    return print_select(loader->arena, labels, count);
}

static void parse_nodes_select(struct loader *loader, const struct as_yaml_node *value,
                               void *object)
{
    ((struct raw_nodes *)object)->select = parse_label_map(loader, value);
}

static void parse_list_selector(struct loader *loader, const struct as_yaml_node *value,
                                void *object)
{
    ((struct raw_list *)object)->selector = parse_label_map(loader, value);
}

/* Whether whoever has the labels of `wide` also has those of `narrow`: "k=v,..." ascending. */
static bool is_part_of(const char *narrow, const char *wide)
{
    for (size_t size = 0; *narrow; narrow += size + (narrow[size] == ',')) {
        size = strcspn(narrow, ",");
        const char *at = wide;
        while (*at && (strncmp(at, narrow, size) != 0 || (at[size] != ',' && at[size] != '\0'))) {
            at += strcspn(at, ",");
            at += *at == ',';
        }
        if (!*at)
            return false;
    }
    return true;
}

static void targets_check_pair(struct resolver *resolver, const struct raw_target *first,
                               const struct raw_target *second)
{
    if (!first->nodes.select || !second->nodes.select ||
        strcmp(first->nodes.cluster, second->nodes.cluster) != 0 ||
        (!is_part_of(first->nodes.select, second->nodes.select) &&
         !is_part_of(second->nodes.select, first->nodes.select)))
        return;
    resolver->loader.tree = second->tree;
    loader_report(&resolver->loader, schema_find_key(as_yaml_find(second->node, "nodes"), "select"),
                  "a node may have these labels and those of target `%s` at %s:%u: a node belongs "
                  "to one group",
                  first->name, as_yaml_get_file(first->tree), first->key->place.line);
}

void check_selects(struct resolver *resolver)
{
    for (size_t i = 0; i < resolver->target_count; i++)
        for (size_t j = i + 1; resolver->targets[i]->nodes.select && j < resolver->target_count;
             j++)
            targets_check_pair(resolver, resolver->targets[i], resolver->targets[j]);
}

/*
 * The tables of `targets.<name>.pool`, and of what `nodes` says of a group for pools.
 */

#define NODES_MAX 1000000 /* of what leaves at a time */
#define PRICE_MAX 1000000000

static const struct schema_field schema_price_forms[] = {
    SCHEMA_FORM(NUMBER, .max = INT64_C(1000) * PRICE_MAX), {0}};

/* Words in a list, each once */

/* Returns how many there are; `indices_out` has room for all words, which end with a NULL. */
static size_t targets_parse_words(struct loader *loader, const struct as_yaml_node *list,
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
    const size_t count = targets_parse_words(loader, list, words, indices);
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

static const struct schema nodes_unneeded =
    SCHEMA("nodes.unneeded", raw_unneeded, unneeded_fields, .example = "{below: 50%, for: 10m}");

static const struct schema_field schema_keep_forms[] = {SCHEMA_FORM(WORDS, .words = kept), {0}};

static void parse_nodes_keep(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    ((struct raw_nodes *)object)->unneeded.of.keep = parse_bits(loader, value, kept);
}

static void parse_nodes_price(struct loader *loader, const struct as_yaml_node *value, void *object)
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
    pool->choose_count = targets_parse_words(loader, value, filters, indices);
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

static void rule_parse_amount(struct loader *loader, const struct as_yaml_node *value,
                              const struct rule_amount_range *range, int64_t *amount_out)
{
    char found[AS_YAML_FOUND_SIZE];
    int64_t down = 0, up = 0;
    if (value->kind != AS_YAML_SCALAR ||
        as_quantity_parse_scaled(value->text, value->size, range->scale, false, &down) < 0 ||
        as_quantity_parse_scaled(value->text, value->size, range->scale, true, &up) < 0)
        loader_report(loader, value, "expected a quantity like 7.9, 500m or 30Gi, found %s",
                      as_yaml_describe(value, found));
    else if (down < range->min || up > range->max || (range->is_whole && down != up))
        loader_report(loader, value, "expected %s, found %s", range->expected,
                      as_yaml_describe(value, found));
    else
        *amount_out = down;
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

static const struct schema pool_cpu =
    SCHEMA("pool.cpu", as_pool_range, cpu_fields, .example = "{max: 100}", .finish = finish_range);
static const struct schema pool_memory = SCHEMA("pool.memory", as_pool_range, memory_fields,
                                                .example = "{max: 400Gi}", .finish = finish_range);

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

static const struct schema pool_pod_price =
    SCHEMA("pool.pod_price", raw_pod_price, price_fields, .example = "{cpu: 0.04, memory: 0.005}");

static const struct schema_field at_once_fields[] = {
    SCHEMA_FIELD("empty", INT, raw_at_once, empty, .min = 1, .max = NODES_MAX, .fallback = "10"),
    SCHEMA_FIELD("drain", INT, raw_at_once, drain, .min = 1, .max = NODES_MAX, .fallback = "1"),
    {0},
};

static const struct schema pool_at_once =
    SCHEMA("pool.at_once", raw_at_once, at_once_fields, .example = "{empty: 10, drain: 1}");

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

static const struct schema target_pool =
    SCHEMA("pool", raw_pool, pool_fields, .example = "{groups: [small, large]}", .init = init_pool);

/*
 * The tables of `targets.<name>.nodes`: how instances of a node group are nodes of a cluster, and
 * what a new node is like.
 */

#define TAINTS_MAX 64
#define LABELS_MAX 256

/* Quantities */

/* From what is no mistake to beyond the largest machines. */
static const struct rule_amount_range ranges[AS_RES_NAMED] = {
    [AS_RES_CPU] = {"cores from 1m to 10000", 3, 1, 10000000, false},
    [AS_RES_MEMORY] = {"bytes from 1Mi to 1Pi", 0, INT64_C(1) << 20, INT64_C(1) << 50, false},
    [AS_RES_EPHEMERAL] = {"bytes from 0 to 1Ei", 0, 0, INT64_C(1) << 60, false},
    [AS_RES_PODS] = {"a whole number from 1 to 10000", 0, 1, 10000, true},
};
static const struct rule_amount_range range_of_others = {"a whole number from 0 to 1Ei", 0, 0,
                                                         INT64_C(1) << 60, true};

static void parse_resource(struct loader *loader, const struct as_yaml_node *value,
                           enum as_res resource, void *object)
{
    struct as_node_template_config *config = object;
    rule_parse_amount(loader, value, &ranges[resource], &config->amount[resource]);
}

static void parse_cpu(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_resource(loader, value, AS_RES_CPU, object);
}

static void parse_memory(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_resource(loader, value, AS_RES_MEMORY, object);
}

static void parse_ephemeral(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_resource(loader, value, AS_RES_EPHEMERAL, object);
}

static void parse_pods(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_resource(loader, value, AS_RES_PODS, object);
}

/* Keys and values of labels and taints */

/* `template.labels` */

static void parse_labels(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_node_template_config *config = object;
    struct as_label pairs[LABELS_MAX];
    size_t count = 0;
    if (!schema_is_kind(loader, value, AS_YAML_MAP))
        return;
    if (value->count > LABELS_MAX) {
        loader_report(loader, value, "at most %d labels are possible", LABELS_MAX);
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        const struct as_yaml_pair *pair = &value->pairs[i];
        const bool is_key = rule_check_label_key(loader, pair->key);
        pairs[count].name = pair->key->text;
        count += rule_parse_label_value(loader, pair->value, &pairs[count].value) && is_key;
    }
    const int status = as_labels_new_in(loader->arena, pairs, count, &config->labels);
    (void)status; /* equal keys: the file's reader has reported them */
}

/* `template.taints` */

static void parse_taint_key(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    if (rule_check_label_key(loader, value))
        ((struct as_taint *)object)->key = as_arena_strdup(loader->arena, value->text);
}

static void parse_taint_value(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_parse_label_value(loader, value, &((struct as_taint *)object)->value);
}

static const char *const effect_words[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};

static void parse_effect(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    static const enum as_taint_effect effects[] = {
        AS_TAINT_NO_SCHEDULE, AS_TAINT_PREFER_NO_SCHEDULE, AS_TAINT_NO_EXECUTE};
    const struct schema_field field = {.type = SCHEMA_WORD, .words = effect_words};
    unsigned word = 0;
    if (schema_parse_scalar(loader, &field, value, &word))
        ((struct as_taint *)object)->effect = effects[word];
}

static const struct schema_field taint_fields[] = {
    {.key = "key",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_taint_key,
     .forms = SCHEMA_FORMS(SCHEMA_LABEL_KEY),
     .expected = "text"},
    {.key = "value",
     .type = SCHEMA_CUSTOM,
     .parse = parse_taint_value,
     .forms = SCHEMA_FORMS(SCHEMA_LABEL_VALUE),
     .expected = "text"},
    {.key = "effect",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_effect,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(WORD, .words = effect_words)),
     .expected = "NoSchedule, PreferNoSchedule or NoExecute"},
    {0},
};

static void init_taint(struct loader *loader, void *object)
{
    struct as_taint *taint = object;
    taint->key = taint->value = "";
}

static const struct schema nodes_taints =
    SCHEMA("nodes.template.taints", as_taint, taint_fields, .init = init_taint);

/* `template` */

static const struct schema_field template_fields[] = {
    {.key = "cpu",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_cpu,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {.key = "memory",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_memory,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {.key = "ephemeral-storage",
     .type = SCHEMA_CUSTOM,
     .parse = parse_ephemeral,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {.key = "pods",
     .type = SCHEMA_CUSTOM,
     .parse = parse_pods,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity",
     .fallback = "110"},
    {.key = "labels",
     .type = SCHEMA_CUSTOM,
     .parse = parse_labels,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(
         TABLE, .max = LABELS_MAX, .forms = SCHEMA_FORMS(SCHEMA_LABEL_VALUE, SCHEMA_LABEL_KEY))),
     .expected = "map"},
    {.key = "taints",
     .type = SCHEMA_MAPS,
     .offset = offsetof(struct as_node_template_config, taints),
     .count_offset = offsetof(struct as_node_template_config, taint_count),
     .max = TAINTS_MAX,
     .map = &nodes_taints},
    {0},
};

/* Extended resources and huge pages, under their names. */
static bool targets_take_named(struct loader *loader, const struct as_yaml_node *node,
                               const struct as_yaml_pair *pair, void *object)
{
    struct as_node_template_config *config = object;
    const char *name = pair->key->text;
    if (!strchr(name, '/') && !as_str_starts_with(name, "hugepages-"))
        return false;
    if (!rule_check_label_key(loader, pair->key))
        return true;
    if (config->named_count == AS_ARRAY_SIZE(config->named)) {
        loader_report(loader, pair->key, "at most %zu other resources are possible",
                      AS_ARRAY_SIZE(config->named));
        return true;
    }
    struct as_node_amount *named = &config->named[config->named_count++];
    named->name = as_arena_strdup(loader->arena, name);
    rule_parse_amount(loader, pair->value, &range_of_others, &named->amount);
    return true;
}

static void init_template(struct loader *loader, void *object)
{
    struct as_node_template_config *config = object;
    const int status = as_labels_new_in(loader->arena, NULL, 0, &config->labels);
    assert(status == 0);
    (void)status;
}

/* Kubernetes allows one taint for each key and effect. */
static void finish_template(struct loader *loader, const struct as_yaml_node *node,
                            const struct as_yaml_node *at, void *object)
{
    const struct as_node_template_config *config = object;
    const struct as_yaml_node *list = as_yaml_find(node, "taints");
    for (size_t i = 1; i < config->taint_count; i++) {
        const struct as_taint *taint = &config->taints[i];
        for (size_t j = 0; j < i; j++) {
            if (!*taint->key || taint->effect != config->taints[j].effect ||
                strcmp(taint->key, config->taints[j].key) != 0)
                continue;
            loader_report(loader, list->items[i],
                          "a taint with this key and effect is already in the list");
            break;
        }
    }
}

static const struct schema nodes_template = SCHEMA(
    "nodes.template", as_node_template_config, template_fields, .example = "{cpu: 4, memory: 16Gi}",
    .other = targets_take_named, .describe_map = json_schema_describe_resources,
    .init = init_template, .finish = finish_template);

/* `health` */

static const struct schema_field health_fields[] = {
    SCHEMA_FIELD("grace", DURATION, as_node_health_config, grace_us, .is_required = true,
                 .min = AS_US_PER_S),
    SCHEMA_FIELD("newest", PERCENT, as_node_health_config, newest, .is_required = true, .min = 1000,
                 .max = 100000),
    SCHEMA_FIELD("most", PERCENT, as_node_health_config, most, .max = 100000, .fallback = "0%"),
    {0},
};

static const struct schema nodes_health = SCHEMA(
    "nodes.health", as_node_health_config, health_fields, .example = "{grace: 15m, newest: 50%}");

/* `nodes` */

static const struct schema_field nodes_fields[] = {
    SCHEMA_FIELD("cluster", STRING, raw_nodes, cluster, .fallback = "default"),
    {.key = "select",
     .type = SCHEMA_CUSTOM,
     .parse = parse_nodes_select,
     .forms = LABEL_MAP_FORMS,
     .expected = "map"},
    SCHEMA_FIELD("choose", WORD, raw_nodes, choose,
                 .words = (const char *const[]){[AS_CHOOSE_EMPTY_FIRST] = "empty_first",
                                                [AS_CHOOSE_OLDEST] = "oldest",
                                                [AS_CHOOSE_NEWEST] = "newest",
                                                [AS_CHOOSE_LEAST_UTILIZED] = "least_utilized",
                                                [AS_CHOOSE_STRATEGY_COUNT] = NULL},
                 .fallback = "empty_first"),
    SCHEMA_FIELD("drain", WORD, raw_nodes, drain,
                 .words = (const char *const[]){[AS_NODES_DRAIN_FALSE] = "false",
                                                [AS_NODES_DRAIN_TRUE] = "true",
                                                [AS_NODES_DRAIN_WAIT] = "wait",
                                                NULL},
                 .fallback = "true"),
    SCHEMA_FIELD("drain_after", DURATION, raw_nodes, drain_after_us, .fallback = "5m"),
    SCHEMA_FIELD("drain_timeout", DURATION, raw_nodes, drain_timeout_us, .min = AS_US_PER_S,
                 .fallback = "10m"),
    SCHEMA_FIELD("grace_period", DURATION, raw_nodes, grace_us),
    SCHEMA_FIELD("ready_timeout", DURATION, raw_nodes, ready_timeout_us, .min = AS_US_PER_S,
                 .fallback = "15m"),
    SCHEMA_FIELD("template", MAP, raw_nodes, template_, .map = &nodes_template),
    SCHEMA_FIELD("startup_taints", STRINGS, raw_nodes, startup_taints,
                 .count_offset = offsetof(struct raw_nodes, startup_taint_count),
                 .max = TAINTS_MAX),
    SCHEMA_FIELD(
        "pending", WORD, raw_nodes, pending,
        .words =
            (const char *const[]){
                [AS_NODES_PENDING_SELECTING] = "selecting", [AS_NODES_PENDING_ANY] = "any", NULL},
        .fallback = "selecting"),
    SCHEMA_FIELD("priority", INT, raw_nodes, priority, .min = INT32_MIN, .max = INT32_MAX),
    {.key = "price",
     .type = SCHEMA_CUSTOM,
     .parse = parse_nodes_price,
     .forms = schema_price_forms,
     .expected = "number"},
    SCHEMA_FIELD("unneeded", MAP, raw_nodes, unneeded, .map = &nodes_unneeded),
    {.key = "keep",
     .type = SCHEMA_CUSTOM,
     .parse = parse_nodes_keep,
     .forms = schema_keep_forms,
     .expected = "list of system_pods, local_storage and unreplicated"},
    SCHEMA_FIELD("health", MAP, raw_nodes, health, .map = &nodes_health),
    {0},
};

static void init_nodes(struct loader *loader, void *object)
{
    struct raw_nodes *raw = object;
    raw->grace_us = -1; /* each pod's own */
    raw->price = -1;
    raw->unneeded.of.keep = AS_KEEP_DEFAULT;
}

static void finish_nodes(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    const struct as_yaml_node *list = as_yaml_find(node, "startup_taints");
    if (!list || list->kind != AS_YAML_LIST)
        return;
    for (uint32_t i = 0; i < list->count && list->count <= TAINTS_MAX; i++)
        if (list->items[i]->kind == AS_YAML_SCALAR && list->items[i]->size > 0 &&
            !as_yaml_is_null(list->items[i]))
            rule_check_label_key(loader, list->items[i]);
}

static const struct schema target_nodes =
    SCHEMA("nodes", raw_nodes, nodes_fields, .example = "{cluster: default}", .init = init_nodes,
           .finish = finish_nodes);

#define IN_TARGET(member) offsetof(struct raw_target, member)

static void parse_down_after_down(struct loader *loader, const struct as_yaml_node *value,
                                  void *object)
{
    const struct schema_field field = {.type = SCHEMA_DURATION};
    struct as_cooldown *cooldown = object;
    cooldown->has_down_after_down =
        schema_parse_scalar(loader, &field, value, &cooldown->down_after_down_us);
}

static const struct schema_field cooldown_fields[] = {
    SCHEMA_FIELD("up", DURATION, as_cooldown, up_us, .fallback = "3m",
                 .about = "How long the target is not scaled up again after it was scaled up."),
    SCHEMA_FIELD("down", DURATION, as_cooldown, down_us, .fallback = "5m",
                 .about = "How long the target is not scaled down after it was scaled."),
    SCHEMA_FIELD("up_after_down", DURATION, as_cooldown, up_after_down_us, .fallback = "0s",
                 .about = "How long the target is not scaled up after it was scaled down."),
    {.key = "down_after_down",
     .type = SCHEMA_CUSTOM,
     .parse = parse_down_after_down,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(DURATION)),
     .expected = "duration",
     .about = "How long the target is not scaled down again after it was scaled down; without it, "
              "as `down`."},
    {0},
};

static const struct schema cooldown =
    SCHEMA("cooldown", as_cooldown, cooldown_fields, .example = "{up: 3m, down: 5m}");

/* HPA's `behavior` */

struct raw_policy {
    unsigned type;
    int32_t value, period_s;
};

static const struct schema_field policy_fields[] = {
    SCHEMA_FIELD("type", WORD, raw_policy, type, .is_required = true,
                 .words = (const char *const[]){"Pods", "Percent", NULL},
                 .about = "The unit of `value`."),
    SCHEMA_FIELD("value", INT, raw_policy, value, .is_required = true, .min = 1, .max = AS_SIZE_MAX,
                 .about =
                     "How many pods, or what percentage of the size, a period may add or remove."),
    SCHEMA_FIELD("periodSeconds", INT, raw_policy, period_s, .is_required = true, .min = 1,
                 .max = 1800, .about = "The length of the period."),
    {0},
};

static const struct schema policies = SCHEMA("behavior.policies", raw_policy, policy_fields);

struct raw_direction {
    int32_t window_s;
    unsigned select;
    struct raw_policy *policies;
    size_t policy_count;
};

struct raw_behavior {
    struct raw_direction up, down;
};

#define DIRECTION_FIELDS(window)                                                                   \
    {                                                                                              \
        {.key = "stabilizationWindowSeconds",                                                      \
         .type = SCHEMA_INT,                                                                       \
         .offset = offsetof(struct raw_direction, window_s),                                       \
         .min = 0,                                                                                 \
         .max = 3600,                                                                              \
         .fallback = (window),                                                                     \
         .about = "How long past proposals count, in seconds."},                                   \
            {.key = "selectPolicy",                                                                \
             .type = SCHEMA_WORD,                                                                  \
             .offset = offsetof(struct raw_direction, select),                                     \
             .words = (const char *const[]){"Max", "Min", "Disabled", NULL},                       \
             .fallback = "Max",                                                                    \
             .about = "Which of the policies counts; Disabled forbids the direction."},            \
            {.key = "policies",                                                                    \
             .type = SCHEMA_MAPS,                                                                  \
             .offset = offsetof(struct raw_direction, policies),                                   \
             .count_offset = offsetof(struct raw_direction, policy_count),                         \
             .max = AS_POLICIES_MAX,                                                               \
             .when_empty = "expected at least one policy, found an empty list",                    \
             .map = &policies,                                                                     \
             .about = "How much the size may change within a period."},                            \
            {0},                                                                                   \
    }

static const struct schema_refusal direction_refusals[] = {
    {"tolerance", "the target's own key `tolerance` takes the place of this one", false},
    {0},
};

static const struct schema_field up_fields[] = DIRECTION_FIELDS("0");
static const struct schema_field down_fields[] = DIRECTION_FIELDS("300");

static const struct schema scale_up =
    SCHEMA("behavior.scaleUp", raw_direction, up_fields,
           .example = "{stabilizationWindowSeconds: 0}", .refusals = direction_refusals);

static const struct schema scale_down =
    SCHEMA("behavior.scaleDown", raw_direction, down_fields,
           .example = "{stabilizationWindowSeconds: 300}", .refusals = direction_refusals);

static const struct schema_field behavior_fields[] = {
    SCHEMA_FIELD("scaleUp", MAP, raw_behavior, up, .map = &scale_up,
                 .about = "How fast the target is scaled up."),
    SCHEMA_FIELD("scaleDown", MAP, raw_behavior, down, .map = &scale_down,
                 .about = "How fast the target is scaled down."),
    {0},
};

static const struct schema behavior =
    SCHEMA("behavior", raw_behavior, behavior_fields,
           .example = "{scaleDown: {stabilizationWindowSeconds: 300}}");

static void convert_direction(const struct raw_direction *raw, struct as_scaling_rules *rules)
{
    rules->window_us = raw->window_s * AS_US_PER_S;
    rules->select = (enum as_select_policy)raw->select;
    if (!raw->policies)
        return; /* keeps the default list */
    rules->policy_count = (uint32_t)raw->policy_count;
    for (size_t i = 0; i < raw->policy_count; i++)
        rules->policies[i] = (struct as_policy){
            .type = (enum as_policy_type)raw->policies[i].type,
            .value = raw->policies[i].value,
            .period_us = raw->policies[i].period_s * AS_US_PER_S,
        };
}

static void parse_behavior(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_target_defaults *policy = object;
    struct raw_behavior raw = {0};
    schema_fill_defaults(loader, &behavior, &raw);
    schema_parse(loader, &behavior, value, value, &raw);
    policy->bounds.has_behavior = true;
    policy->bounds.behavior = as_behavior_default;
    convert_direction(&raw.up, &policy->bounds.behavior.up);
    convert_direction(&raw.down, &policy->bounds.behavior.down);
}

/* `tolerance`: a percentage, or one for each direction */

struct raw_tolerance {
    int64_t up, down; /* thousandths of a percent */
};

static const struct schema_field tolerance_fields[] = {
    SCHEMA_FIELD("up", PERCENT, raw_tolerance, up, .max = 100000, .fallback = "10%",
                 .about = "How far the value may be above the goal."),
    SCHEMA_FIELD("down", PERCENT, raw_tolerance, down, .max = 100000, .fallback = "10%",
                 .about = "How far the value may be below the goal."),
    {0},
};

static const struct schema tolerance =
    SCHEMA("tolerance", raw_tolerance, tolerance_fields, .example = "{up: 10%, down: 10%}");

static void parse_tolerance(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_target_defaults *policy = object;
    const double unit = 100000;
    if (value->kind == AS_YAML_MAP) {
        struct raw_tolerance raw = {0};
        schema_parse(loader, &tolerance, value, value, &raw);
        if (as_yaml_find(value, "up"))
            policy->bounds.tolerance_up = (double)raw.up / unit;
        if (as_yaml_find(value, "down"))
            policy->bounds.tolerance_down = (double)raw.down / unit;
        return;
    }
    int64_t milli_percent = 0;
    if (schema_parse_percent(loader, value, 0, 100000, &milli_percent))
        policy->bounds.tolerance_up = policy->bounds.tolerance_down = (double)milli_percent / unit;
}

static const struct schema_field shared_fields[] = {
    SCHEMA_FIELD("min", INT, as_target_defaults, bounds.min, .is_count = true, .min = 0,
                 .max = AS_SIZE_MAX, .fallback = "1",
                 .about =
                     "The smallest size that a rule may set; 0 allows scaling to zero and back."),
    SCHEMA_FIELD("cooldown", MAP, as_target_defaults, bounds.cooldown, .map = &cooldown,
                 .about = "How long the target is locked after a change."),
    {.key = "behavior",
     .type = SCHEMA_CUSTOM,
     .parse = parse_behavior,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(MAP, .map = &behavior)),
     .expected = "map",
     .about = "Windows and policies of scaling, as in a HorizontalPodAutoscaler."},
    SCHEMA_FIELD(
        "enforce_bounds", BOOL, as_target_defaults, bounds.enforce_bounds, .fallback = "false",
        .about =
            "Brings back a size outside of `min` and `max`, as a HorizontalPodAutoscaler does."),
    {.key = "tolerance",
     .type = SCHEMA_CUSTOM,
     .parse = parse_tolerance,
     .forms =
         SCHEMA_FORMS(SCHEMA_FORM(PERCENT, .max = 100000), SCHEMA_FORM(MAP, .map = &tolerance)),
     .expected = "percentage or map",
     .fallback = "10%",
     .about = "How far a tracked value may be off its goal before the size changes."},
    SCHEMA_FIELD("cpu_initialization", DURATION, as_target_defaults, bounds.cpu_initialization_us,
                 .fallback = "5m",
                 .about = "How long after a pod's start its cpu samples do not count, unless the "
                          "pod has been ready."),
    SCHEMA_FIELD("initial_readiness_delay", DURATION, as_target_defaults,
                 bounds.initial_readiness_delay_us, .fallback = "30s",
                 .about = "How long a pod may take to become ready for the first time."),
    {.key = "approval",
     .type = SCHEMA_CUSTOM,
     .parse = parse_target_approval,
     .forms = schema_approval_forms,
     .expected = "map or `none`",
     .about = "A larger change waits until a person approves it."},
    SCHEMA_FIELD("dry_run", BOOL, as_target_defaults, dry_run, .fallback = "false",
                 .about = "The target is decided and recorded, but not changed."),
    SCHEMA_FIELD("ready_timeout", DURATION, as_target_defaults, ready_timeout_us,
                 .min = AS_US_PER_S,
                 .about = "How long new pods may take to be ready; until then, the target is not "
                          "scaled up further."),
    {0},
};

const struct schema schema_policy = {
    .name = "defaults",
    .example = "{cooldown: {up: 3m, down: 5m}}",
    .size = sizeof(struct as_target_defaults),
    .fields = shared_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"max", "every target names its own `max`", false},
            {0},
        },
};

/* What alerts may select of an address */

#define ALLOW_FIELD(word, list)                                                                    \
    SCHEMA_FIELD(word, STRINGS, raw_allow, lists[list],                                            \
                 .count_offset = offsetof(struct raw_allow, counts[list]))

static const struct schema_field allow_list_fields[] = {
    {.key = "selector",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_list_selector,
     .forms = LABEL_MAP_FORMS,
     .expected = "map"},
    {0},
};

static const struct schema allow_list =
    SCHEMA("allow.list", raw_list, allow_list_fields, .example = "{selector: {sleeps: nightly}}");

static const struct schema_field allow_fields[] = {
    ALLOW_FIELD("clusters", AS_ALLOW_CLUSTERS),
    ALLOW_FIELD("apiVersions", AS_ALLOW_API_VERSIONS),
    ALLOW_FIELD("kinds", AS_ALLOW_KINDS),
    ALLOW_FIELD("namespaces", AS_ALLOW_NAMESPACES),
    ALLOW_FIELD("names", AS_ALLOW_NAMES),
    ALLOW_FIELD("urls", AS_ALLOW_URLS),
    SCHEMA_FIELD("list", MAP, raw_allow, list, .map = &allow_list),
    {0},
};

static const struct schema allow =
    SCHEMA("allow", raw_allow, allow_fields, .example = "{names: [web]}");

static const struct schema_field target_fields[] = {
    SCHEMA_FIELD("nodes", MAP, raw_target, nodes, .map = &target_nodes),
    SCHEMA_FIELD("pool", MAP, raw_target, pool, .map = &target_pool),
    SCHEMA_FIELD("max", INT, raw_target, policy.bounds.max, .is_required = true, .is_count = true,
                 .min = 1, .max = AS_SIZE_MAX, .about = "The largest size that a rule may set."),
    SCHEMA_FIELD("rollout", WORD, raw_target, policy.bounds.rollout, .words = rollouts,
                 .fallback = "as_hpa",
                 .about = "How the size is decided during a rollout: as a HorizontalPodAutoscaler "
                          "does, by the size in the spec, or after the rollout."),
    SCHEMA_FIELD("allow", MAP, raw_target, allow, .map = &allow),
    SCHEMA_FIELD("after", STRINGS, raw_target, after, .count_offset = IN_TARGET(after_count)),
    SCHEMA_FIELD("schedules", MAPS, raw_target, schedules,
                 .count_offset = IN_TARGET(schedule_count), .max = AS_SCHEDULES_MAX,
                 .map = &target_schedules, .about = "Bounds that hold at certain times."),
    {0},
};

const struct as_yaml_node *find_unit(const struct as_yaml_node *target)
{
    const struct as_yaml_node *unit =
        as_yaml_find(as_yaml_find(target, as_target_kind_kubernetes.word), "unit");
    return unit && unit->kind == AS_YAML_SCALAR ? unit : NULL;
}

/* A unit that is no quantity is reported with the address. */
static void set_target_unit(struct loader *loader, const struct as_yaml_node *node)
{
    const struct as_yaml_node *unit = find_unit(node);
    struct as_unit read;
    if (unit && as_unit_parse(unit->text, &read, NULL) == 0)
        loader->unit = read;
}

static void init_target(struct loader *loader, void *object)
{
    struct raw_target *target = object;
    if (loader->defaults)
        target->policy = *loader->defaults;
}

static void finish_target(struct loader *loader, const struct as_yaml_node *node,
                          const struct as_yaml_node *at, void *object)
{
    struct raw_target *target = object;
    const struct as_bounds_config *bounds = &target->policy.bounds;
    target->tree = loader->tree;
    target->key = at;
    target->node = node;
    const char *words[AS_TARGET_KINDS_MAX + 1] = {NULL};
    for (size_t i = 0; as_target_kinds[i]; i++)
        words[i] = as_target_kinds[i]->word;
    (void)schema_check_choice(loader, node, at, &(struct schema_choice){words, false});
    if (!target->kind && as_yaml_find(node, "pool"))
        target->kind = &as_target_kind_pool;
    if (!as_target_kind_has_groups(target->kind) && bounds->max > 0 && bounds->min > bounds->max)
        loader_report(loader, as_yaml_find(node, "max"), "`max` %d is below `min` %d", bounds->max,
                      bounds->min);
    const struct as_yaml_node *rollout = schema_find_key(node, "rollout");
    if (rollout && target->kind && !target->kind->has_pods)
        loader_report(loader, rollout, "`rollout` is about the pods of a workload, and %s has none",
                      target->kind->title);
    const struct as_yaml_node *timeout = schema_find_key(node, "ready_timeout");
    if (timeout && target->kind && !target->kind->has_pods)
        loader_report(loader, timeout, "`ready_timeout` waits for pods, and %s has none%s",
                      target->kind->title,
                      target->kind->has_nodes ? ": its instances have `nodes.ready_timeout`" : "");
}

/* The address, under the word of its kind */

static void report_unknown_key(struct loader *loader, const struct as_target_kind *kind,
                               const struct as_yaml_node *key)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    struct suggestion suggestion = suggestion_start(key->text);
    for (const struct as_address_key *row = kind->keys; row->is_valid; row++)
        suggestion_offer(&suggestion, row->key); /* a row for all others knows every key */
    loader_report(loader, key, "unknown key %s%s", as_yaml_describe(key, found),
                  suggestion_print(&suggestion, hint));
}

static bool parse_value(struct loader *loader, const struct as_address_key *row,
                        const struct as_yaml_node *value, const char **text_out)
{
    int64_t number;
    return (!row->is_number || schema_parse_i64(loader, value, 0, AS_SIZE_MAX, &number)) &&
           schema_parse_string(loader, value, text_out);
}

/* Texts only: their values are checked once the configuration is known. Keys without a row are read
 * from the map then, so the map is unusable if a value is no text. */
static void parse_address(struct loader *loader, const struct as_target_kind *kind,
                          const struct as_yaml_node *map, struct raw_target *target)
{
    bool is_readable = true;
    target->kind = kind;
    if (!schema_is_map(loader, map, kind->example))
        return;
    for (size_t i = 0; kind->keys[i].is_valid; i++)
        target->values[i] = kind->keys[i].fallback;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_pair *pair = &map->pairs[i];
        const struct as_address_key *row = as_target_kind_find_key(kind, pair->key->text);
        if (!row)
            report_unknown_key(loader, kind, pair->key);
        else if (!parse_value(loader, row, pair->value, &target->values[row - kind->keys]))
            is_readable = is_readable && row->key;
    }
    for (const struct as_address_key *row = kind->keys; row->is_valid; row++) {
        if (row->is_required && !as_yaml_find(map, row->key))
            loader_report(loader, map, "key `%s` is missing", row->key);
    }
    const struct as_address_key *owner = as_target_kind_find_key(kind, kind->owner);
    if (is_readable && target->values[owner - kind->keys])
        target->address = map;
}

/* The first of two addresses counts; two are an error. */
static bool take_address(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_pair *pair, void *object)
{
    struct raw_target *target = object, other = {0};
    const struct as_target_kind *kind = as_target_kind_find(pair->key->text);
    if (kind)
        parse_address(loader, kind, pair->value, target->kind ? &other : target);
    return kind;
}

static void offer_kinds(struct suggestion *suggestion)
{
    for (size_t i = 0; as_target_kinds[i]; i++)
        suggestion_offer(suggestion, as_target_kinds[i]->word);
}

/* Other programs' names for these keys. */
static const struct schema_refusal target_refusals[] = {
    {"coolDown", "it is called `cooldown` here: `cooldown: {up: 3m, down: 5m}`", false},
    {"cooldownPeriod", "it is called `cooldown` here: `cooldown: {up: 3m, down: 5m}`", false},
    {"maxReplicas", "it is called `max` here", false},
    {"maxReplicaCount", "it is called `max` here", false},
    {"max_size", "it is called `max` here", false},
    {"maxSize", "it is called `max` here", false},
    {"minReplicas", "it is called `min` here", false},
    {"minReplicaCount", "it is called `min` here", false},
    {"min_size", "it is called `min` here", false},
    {"minSize", "it is called `min` here", false},
    {"scaleTargetRef",
     "it is called `kubernetes` here: `kubernetes: {kind: Deployment, namespace: shop, name: web}`",
     false},
    {0},
};

const struct schema schema_target =
    SCHEMA("target", raw_target, target_fields,
           .example = "{kubernetes: {kind: Deployment, namespace: shop, name: web}, max: 10}",
           .base = &schema_policy, .base_offset = IN_TARGET(policy), .refusals = target_refusals,
           .other = take_address, .describe_keys = json_schema_describe_addresses,
           .describe_map = json_schema_describe_address_choice, .offer_other = offer_kinds,
           .init = init_target, .set_unit = set_target_unit, .finish = finish_target);

const struct schema *const schema_target_parts[] = {
    &cooldown,         &behavior,       &scale_up,     &scale_down,     &policies,    &tolerance,
    &target_nodes,     &nodes_template, &nodes_taints, &nodes_unneeded, &target_pool, &pool_cpu,
    &pool_memory,      &pool_pod_price, &pool_at_once, &nodes_health,   &allow,       &allow_list,
    &target_schedules, &rule_approval,  NULL,
};
