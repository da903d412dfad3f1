/*
 * Asked of the matchers themselves, so that it is as in the daemon.
 */
#include "explain_match.h"

#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#define SPELLING_MAX 2 /* letters that differ */

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

char *explain_find_obstacle(const struct as_rule *rule, const struct as_labels *labels,
                            const char *receiver)
{
    for (size_t i = 0; i < rule->matcher_count; i++) {
        const struct as_matcher *matcher = &rule->matchers[i];
        const char *value = as_labels_get(labels, matcher->name);
        if (as_matcher_match(matcher, labels))
            continue;
        AS_CLEANUP(as_free_p) char *text = explain_print_matcher(matcher);
        return as_xasprintf("%s does not match: %s%s%s", text,
                            *value ? "it is \"" : "there is no such label", value,
                            *value ? "\"" : "");
    }
    if (receiver && !takes_receiver(rule, receiver))
        return as_xasprintf("the receiver \"%s\" is none of its receivers", receiver);
    return rule->enabled ? NULL : as_xstrdup("it has enabled: false");
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
    if (explain_count_obstacles(rule, labels) != 1)
        return false;
    for (size_t i = 0; i < rule->matcher_count; i++) {
        const struct as_matcher *matcher = &rule->matchers[i];
        const char *value = as_labels_get(labels, matcher->name);
        if (!as_matcher_match(matcher, labels))
            is_alike = is_spelt_alike(matcher, value);
        else if (matcher->op == AS_MATCHER_EQUAL || matcher->op == AS_MATCHER_REGEX)
            has_match = true;
    }
    return has_match || is_alike;
}
