/*
 * Uses the daemon's own matchers, for the same result.
 */
#include "explain_match.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#define SPELLING_MAX 2 /* differing letters */

static const char *get_operator(enum as_matcher_op op)
{
    switch (op) {
    case AS_MATCHER_EQUAL: return "=";
    case AS_MATCHER_NOT_EQUAL: return "!=";
    case AS_MATCHER_REGEX: return "=~";
    case AS_MATCHER_NOT_REGEX: return "!~";
    }
    return "";
}

char *explain_print_matcher(const struct as_matcher *matcher)
{
    return as_xasprintf("%s%s\"%s\"", matcher->name, get_operator(matcher->op), matcher->value);
}

static bool takes_receiver(const struct as_rule *rule, const char *receiver)
{
    for (size_t i = 0; i < rule->receiver_count; i++) {
        if (strcmp(rule->receivers[i], receiver) == 0)
            return true;
    }
    return rule->receiver_count == 0;
}

static char *copy_in_case(const char *text, int (*convert)(int c))
{
    char *copy = as_xstrdup(text);
    for (char *at = copy; *at; at++)
        *at = (char)convert((unsigned char)*at);
    return copy;
}

/* Ignores case. */
static bool takes_loosely(const struct as_matcher *matcher, const char *value)
{
    if (matcher->op == AS_MATCHER_EQUAL)
        return strcasecmp(matcher->value, value) == 0;
    AS_CLEANUP(as_free_p) char *lower = copy_in_case(value, tolower);
    AS_CLEANUP(as_free_p) char *upper = copy_in_case(value, toupper);
    return matcher->op == AS_MATCHER_REGEX &&
           (as_matcher_match_value(matcher, value) || as_matcher_match_value(matcher, lower) ||
            as_matcher_match_value(matcher, upper));
}

/* The label that fails to match only by the case of its name or value; NULL: none. */
static const struct as_label *find_other_case(const struct as_matcher *matcher,
                                              const struct as_labels *labels)
{
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct as_label *label = &labels->items[i];
        if (strcasecmp(label->name, matcher->name) == 0 && *label->value &&
            takes_loosely(matcher, label->value))
            return label;
    }
    return NULL;
}

static char *print_obstacle(const struct as_matcher *matcher, const struct as_labels *labels)
{
    AS_CLEANUP(as_free_p) char *text = explain_print_matcher(matcher);
    const char *value = as_labels_get(labels, matcher->name);
    const struct as_label *other = find_other_case(matcher, labels);
    if (other && !*value)
        return as_xasprintf(
            "%s does not match: there is no such label, but \"%s\": upper and lower "
            "case count",
            text, other->name);
    return as_xasprintf("%s does not match: %s%s%s%s", text,
                        *value ? "it is \"" : "there is no such label", value, *value ? "\"" : "",
                        other ? ": upper and lower case count" : "");
}

char *explain_find_obstacle(const struct as_rule *rule, const struct as_labels *labels,
                            const char *receiver)
{
    for (size_t i = 0; i < rule->matcher_count; i++) {
        if (!as_matcher_match(&rule->matchers[i], labels))
            return print_obstacle(&rule->matchers[i], labels);
    }
    if (receiver && !takes_receiver(rule, receiver))
        return as_xasprintf("the receiver \"%s\" is none of its receivers", receiver);
    return rule->enabled ? NULL : as_xstrdup("it has enabled: false");
}

char *explain_list_obstacles(const struct as_rule *rule, const struct as_labels *labels)
{
    char *list = explain_find_obstacle(rule, labels, NULL);
    size_t count = 0;
    for (size_t i = 0; i < rule->matcher_count; i++) {
        if (as_matcher_match(&rule->matchers[i], labels) || count++ == 0)
            continue;
        AS_CLEANUP(as_free_p) char *before = list;
        AS_CLEANUP(as_free_p) char *text = print_obstacle(&rule->matchers[i], labels);
        list = as_xasprintf("%s; %s", before, text);
    }
    return list;
}

size_t explain_count_obstacles(const struct as_rule *rule, const struct as_labels *labels)
{
    size_t count = 0;
    for (size_t i = 0; i < rule->matcher_count; i++)
        count += !as_matcher_match(&rule->matchers[i], labels);
    return count;
}

static bool is_spelt_alike(const struct as_matcher *matcher, const char *value)
{
    return matcher->op == AS_MATCHER_EQUAL && *value &&
           as_str_distance(matcher->value, value) <= SPELLING_MAX;
}

bool explain_is_near(const struct as_rule *rule, const struct as_labels *labels)
{
    bool has_match = false, is_alike = false;
    size_t others = 0;
    for (size_t i = 0; i < rule->matcher_count; i++) {
        const struct as_matcher *matcher = &rule->matchers[i];
        const bool is_matched = as_matcher_match(matcher, labels);
        if (is_matched || find_other_case(matcher, labels)) {
            has_match = has_match || !is_matched || matcher->op == AS_MATCHER_EQUAL ||
                        matcher->op == AS_MATCHER_REGEX;
        } else {
            others++;
            is_alike = is_spelt_alike(matcher, as_labels_get(labels, matcher->name));
        }
    }
    return others <= 1 && (has_match || is_alike);
}
