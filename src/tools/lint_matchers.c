/*
 * Conjunctions of matchers, label by label: if one matcher allows only a few values, the others are
 * checked against each of them.
 */
#include "lint_matchers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

void matcher_list_deinit(struct matcher_list *list)
{
    free(list->items);
    *list = (struct matcher_list){.items = NULL};
}

void matcher_list_add(struct matcher_list *list, const struct as_matcher *matchers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        list->items = as_xgrow(list->items, list->count, &list->capacity, sizeof(*list->items));
        list->items[list->count++] = &matchers[i];
    }
}

bool matcher_may_match(const struct as_matcher *matcher, const char *value)
{
    switch (matcher->op) {
    case AS_MATCHER_EQUAL: return strcmp(matcher->value, value) == 0;
    case AS_MATCHER_NOT_EQUAL: return strcmp(matcher->value, value) != 0;
    case AS_MATCHER_REGEX: return as_regex_try(matcher->regex, value) != AS_REGEX_NO;
    case AS_MATCHER_NOT_REGEX: return as_regex_try(matcher->regex, value) != AS_REGEX_YES;
    }
    return true;
}

/* As as_matcher_find_values; also `!~".+"`, which allows only the empty value. */
static bool find_values(const struct as_matcher *matcher, struct as_matcher_values *values_out)
{
    if (matcher->op != AS_MATCHER_NOT_REGEX || strcmp(matcher->value, ".+") != 0)
        return as_matcher_find_values(matcher, values_out);
    *values_out = (struct as_matcher_values){.text = as_xstrdup(""), .count = 1};
    values_out->items = as_xcalloc(1, sizeof(*values_out->items));
    values_out->items[0] = values_out->text;
    return true;
}

struct ranked {
    const struct as_matcher *matcher;
    size_t index;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int status = strcmp(a->matcher->name, b->matcher->name);
    return status ? status : (a->index > b->index) - (a->index < b->index);
}

static bool set_pair(size_t a, size_t b, size_t pair_out[2])
{
    pair_out[0] = a < b ? a : b;
    pair_out[1] = a < b ? b : a;
    return true;
}

/* Whether the others refuse all values that `base` allows. pair_out: `base` and the matcher that
 * refuses the last value. */
static bool refuse_values(const struct ranked *group, size_t count, size_t base, size_t pair_out[2])
{
    AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values values = {.text = NULL};
    size_t refuser = count;
    if (!find_values(group[base].matcher, &values))
        return false;
    for (size_t i = 0; i < count && values.count > 0; i++) {
        size_t kept = 0;
        for (size_t k = 0; k < values.count; k++) {
            if (matcher_may_match(group[i].matcher, values.items[k]))
                values.items[kept++] = values.items[k];
        }
        if (kept < values.count)
            refuser = i;
        values.count = kept;
    }
    return values.count == 0 && set_pair(group[base].index, group[refuser].index, pair_out);
}

/* Values without limit: compares only the texts of the matchers. */
static bool refuse_texts(const struct ranked *group, size_t count, size_t pair_out[2])
{
    const struct ranked *regex = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct as_matcher *matcher = group[i].matcher;
        if (matcher->op == AS_MATCHER_NOT_REGEX && strcmp(matcher->value, ".*") == 0)
            return set_pair(group[i].index, group[i].index, pair_out);
        if (matcher->op == AS_MATCHER_REGEX)
            regex = &group[i];
    }
    for (size_t i = 0; regex && i < count; i++) {
        const struct as_matcher *matcher = group[i].matcher;
        if (matcher->op == AS_MATCHER_NOT_REGEX &&
            strcmp(matcher->value, regex->matcher->value) == 0)
            return set_pair(group[i].index, regex->index, pair_out);
    }
    return false;
}

/* The matchers of one label. The base is the matcher with the fewest values: an equality before an
 * alternation. */
static bool find_group_conflict(const struct ranked *group, size_t count, size_t pair_out[2])
{
    size_t base = count;
    for (size_t i = 0; i < count; i++) {
        if (group[i].matcher->op == AS_MATCHER_EQUAL)
            return refuse_values(group, count, i, pair_out);
        AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values values = {.text = NULL};
        if (base == count && find_values(group[i].matcher, &values))
            base = i;
    }
    if (base < count && refuse_values(group, count, base, pair_out))
        return true;
    return refuse_texts(group, count, pair_out);
}

bool matcher_list_find_conflict(const struct matcher_list *list, size_t pair_out[2])
{
    AS_CLEANUP(as_free_p) struct ranked *ranked = as_xcalloc(list->count + 1, sizeof(*ranked));
    for (size_t i = 0; i < list->count; i++)
        ranked[i] = (struct ranked){list->items[i], i};
    qsort(ranked, list->count, sizeof(*ranked), compare_ranked);
    for (size_t start = 0, end = 0; start < list->count; start = end) {
        for (end = start + 1; end < list->count; end++) {
            if (strcmp(ranked[end].matcher->name, ranked[start].matcher->name) != 0)
                break;
        }
        if (find_group_conflict(ranked + start, end - start, pair_out))
            return true;
    }
    return false;
}

static bool matches_all(const struct as_matcher *matcher, const struct as_matcher_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        if (!as_matcher_match_value(matcher, values->items[i]))
            return false;
    }
    return true;
}

bool matcher_list_implies(const struct matcher_list *list, const struct as_matcher *matcher)
{
    if (matcher->op == AS_MATCHER_REGEX && strcmp(matcher->value, ".*") == 0)
        return true;
    for (size_t i = 0; i < list->count; i++) {
        const struct as_matcher *item = list->items[i];
        AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values values = {.text = NULL};
        if (strcmp(item->name, matcher->name) != 0)
            continue;
        if (item->op == matcher->op && strcmp(item->value, matcher->value) == 0)
            return true;
        if (find_values(item, &values) && matches_all(matcher, &values))
            return true;
    }
    return false;
}

bool matcher_list_fixes(const struct matcher_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        AS_CLEANUP(as_matcher_values_deinit) struct as_matcher_values values = {.text = NULL};
        if (strcmp(list->items[i]->name, name) == 0 && find_values(list->items[i], &values) &&
            values.count == 1)
            return true;
    }
    return false;
}

const char *matcher_print(const struct as_matcher *matcher, char text_out[MATCHER_TEXT_SIZE])
{
    static const char *const ops[] = {
        [AS_MATCHER_EQUAL] = "=",
        [AS_MATCHER_NOT_EQUAL] = "!=",
        [AS_MATCHER_REGEX] = "=~",
        [AS_MATCHER_NOT_REGEX] = "!~",
    };
    const size_t name_max = 50, value_max = 50;
    size_t name = as_str_cut_utf8(matcher->name, strlen(matcher->name), name_max);
    size_t value = as_str_cut_utf8(matcher->value, strlen(matcher->value), value_max);
    snprintf(text_out, MATCHER_TEXT_SIZE, "%.*s%s%s\"%.*s%s\"", (int)name, matcher->name,
             matcher->name[name] ? "..." : "", ops[matcher->op], (int)value, matcher->value,
             matcher->value[value] ? "..." : "");
    return text_out;
}
