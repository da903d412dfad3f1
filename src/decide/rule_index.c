/*
 * The rule index: name -> value -> rules, two hash tables. Each rule is stored under one of its
 * matchers, the key: an equality, or a regular expression that is a plain alternation; then the
 * rule is stored under each of its words. A key never matches the empty string: otherwise the rule
 * could match an alert without the label, which a lookup would not find.
 *
 * A lookup costs the alert's labels and the rules found under them; rules without a key are tried
 * for every alert. A rule is found at most once, because an alert has one value per name.
 */
#include <alertscaler/decide/rule_index.h>

#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>

struct rule_list {
    uint32_t *items;
    size_t count, capacity;
};

struct value_entry {
    char *value;
    uint32_t sharers; /* rules that could use it as key */
    struct rule_list rules;
    UT_hash_handle hh;
};

struct name_entry {
    const char *name; /* owned by the matcher */
    struct value_entry *values;
    UT_hash_handle hh;
};

struct as_rule_index {
    const struct as_ruleset *ruleset;
    struct name_entry *names;
    struct rule_list keyless;
    struct rule_list matches; /* the last answer */
};

static void append(struct rule_list *list, uint32_t rule)
{
    list->items = as_xgrow(list->items, list->count, &list->capacity, sizeof(*list->items));
    list->items[list->count++] = rule;
}

/* A matcher's values, if it can be a key. */
static bool find_key(const struct as_matcher *matcher, struct as_matcher_values *values_out)
{
    if (!as_matcher_find_values(matcher, values_out))
        return false;
    if (*values_out->items[0]) /* sorted: an empty one would be first */
        return true;
    as_matcher_values_deinit(values_out);
    return false;
}

static struct value_entry *take_entry(struct as_rule_index *index, const char *name,
                                      const char *value)
{
    struct name_entry *by_name;
    struct value_entry *by_value;

    HASH_FIND_STR(index->names, name, by_name);
    if (!by_name) {
        by_name = as_xcalloc(1, sizeof(*by_name));
        by_name->name = name;
        HASH_ADD_KEYPTR(hh, index->names, by_name->name, strlen(name), by_name);
    }
    HASH_FIND_STR(by_name->values, value, by_value);
    if (!by_value) {
        by_value = as_xcalloc(1, sizeof(*by_value));
        by_value->value = as_xstrdup(value);
        HASH_ADD_KEYPTR(hh, by_name->values, by_value->value, strlen(value), by_value);
    }
    return by_value;
}

static void count_sharers(struct as_rule_index *index, const struct as_rule *rule)
{
    for (size_t i = 0; i < rule->matcher_count; i++) {
        AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values words = {NULL};
        if (!find_key(&rule->matchers[i], &words))
            continue;
        for (size_t k = 0; k < words.count; k++)
            take_entry(index, rule->matchers[i].name, words.items[k])->sharers++;
    }
}

/* Stores the rule under the matcher whose most common word has the fewest rules. */
static void insert(struct as_rule_index *index, uint32_t number)
{
    const struct as_rule *rule = &index->ruleset->rules[number];
    struct as_matcher_values best = {.text = NULL};
    const char *best_name = NULL;
    uint32_t best_cost = UINT32_MAX;

    for (size_t i = 0; i < rule->matcher_count; i++) {
        struct as_matcher_values words = {.text = NULL};
        uint32_t cost = 0;
        if (!find_key(&rule->matchers[i], &words))
            continue;
        for (size_t k = 0; k < words.count; k++) {
            uint32_t sharers = take_entry(index, rule->matchers[i].name, words.items[k])->sharers;
            cost = sharers > cost ? sharers : cost;
        }
        if (cost < best_cost) {
            struct as_matcher_values worse = best;
            best = words;
            words = worse;
            best_name = rule->matchers[i].name;
            best_cost = cost;
        }
        as_matcher_values_deinit(&words);
    }
    for (size_t k = 0; k < best.count; k++)
        append(&take_entry(index, best_name, best.items[k])->rules, number);
    if (!best.text)
        append(&index->keyless, number);
    as_matcher_values_deinit(&best);
}

static void free_value(struct name_entry *name, struct value_entry *value)
{
    HASH_DEL(name->values, value);
    free(value->rules.items);
    free(value->value);
    free(value);
}

static void free_name(struct as_rule_index *index, struct name_entry *name)
{
    struct value_entry *value, *next;

    HASH_ITER (hh, name->values, value, next)
        free_value(name, value);
    HASH_DEL(index->names, name);
    free(name);
}

/* Removes words without rules: they would cost every alert a lookup. */
static void prune(struct as_rule_index *index)
{
    struct name_entry *name, *next_name;
    struct value_entry *value, *next_value;

    HASH_ITER (hh, index->names, name, next_name) {
        HASH_ITER (hh, name->values, value, next_value) {
            if (value->rules.count == 0)
                free_value(name, value);
        }
        if (!name->values)
            free_name(index, name);
    }
}

struct as_rule_index *as_rule_index_new(const struct as_ruleset *ruleset)
{
    struct as_rule_index *index = as_xcalloc(1, sizeof(*index));

    index->ruleset = ruleset;
    for (size_t i = 0; i < ruleset->rule_count; i++)
        count_sharers(index, &ruleset->rules[i]);
    for (size_t i = 0; i < ruleset->rule_count; i++)
        insert(index, (uint32_t)i);
    prune(index);
    return index;
}

struct as_rule_index *as_rule_index_free(struct as_rule_index *index)
{
    if (!index)
        return NULL;

    struct name_entry *name, *next;
    HASH_ITER (hh, index->names, name, next)
        free_name(index, name);
    free(index->keyless.items);
    free(index->matches.items);
    free(index);
    return NULL;
}

struct wanted { /* what a search compares with */
    const struct as_labels *labels;
    const char *const *receivers;
    size_t receiver_count;
};

static bool includes_receiver(const struct as_rule *rule, const struct wanted *wanted)
{
    if (!wanted->receivers)
        return true;
    for (size_t i = 0; i < rule->receiver_count; i++) {
        for (size_t k = 0; k < wanted->receiver_count; k++) {
            if (strcmp(rule->receivers[i], wanted->receivers[k]) == 0)
                return true;
        }
    }
    return rule->receiver_count == 0;
}

static void try_rules(struct as_rule_index *index, const struct rule_list *candidates,
                      const struct wanted *wanted)
{
    for (size_t i = 0; i < candidates->count; i++) {
        const struct as_rule *rule = &index->ruleset->rules[candidates->items[i]];
        bool matches = includes_receiver(rule, wanted);
        for (size_t k = 0; k < rule->matcher_count && matches; k++)
            matches = as_matcher_match(&rule->matchers[k], wanted->labels);
        if (matches)
            append(&index->matches, candidates->items[i]);
    }
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

size_t as_rule_index_match(struct as_rule_index *index, const struct as_labels *labels,
                           const char *const *receivers, size_t receiver_count,
                           const uint32_t **rules_out)
{
    const struct wanted wanted = {labels, receivers, receiver_count};
    struct rule_list *matches = &index->matches;

    matches->count = 0;
    try_rules(index, &index->keyless, &wanted);
    for (uint32_t i = 0; i < labels->count; i++) {
        struct name_entry *name;
        struct value_entry *value = NULL;
        HASH_FIND_STR(index->names, labels->items[i].name, name);
        if (name)
            HASH_FIND_STR(name->values, labels->items[i].value, value);
        if (value)
            try_rules(index, &value->rules, &wanted);
    }
    if (matches->count > 1)
        qsort(matches->items, matches->count, sizeof(*matches->items), compare_numbers);
    *rules_out = matches->items;
    return matches->count;
}
