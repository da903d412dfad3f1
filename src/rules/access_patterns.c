/*
 * The credentials' patterns (`rules` and `targets`) compared with the existing rules and targets: a
 * pattern that matches nothing is misspelt or out of date. This is only a warning, as the rule may
 * be added later.
 */
#include "access_patterns.h"

#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/model/scope.h>

#define COMPARED_MAX 2000000 /* name-pattern pairs: about a second */

struct search {
    struct loader *loader;
    const struct as_ruleset *ruleset;
    size_t compared;
};

static bool has_rule(struct search *search, const char *pattern)
{
    const struct as_ruleset *ruleset = search->ruleset;
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        search->compared++;
        if (as_scope_match(pattern, ruleset->rules[i].name))
            return true;
    }
    return false;
}

static bool has_target(struct search *search, const char *pattern)
{
    const struct as_ruleset *ruleset = search->ruleset;
    for (size_t i = 0; i < ruleset->target_count; i++) {
        search->compared++;
        if (as_scope_match(pattern, ruleset->targets[i].name) ||
            as_target_may_match_id(&ruleset->targets[i], pattern))
            return true;
    }
    return false;
}

static void suggest(const struct as_ruleset *ruleset, const char *pattern, bool is_rule,
                    char text_out[SUGGESTION_SIZE])
{
    struct suggestion suggestion = suggestion_start(pattern);
    const size_t count = is_rule ? ruleset->rule_count : ruleset->target_count;
    for (size_t i = 0; i < count; i++)
        suggestion_offer(&suggestion, is_rule ? ruleset->rules[i].name : ruleset->targets[i].name);
    (void)suggestion_print(&suggestion, text_out);
}

/* False if a pattern matches nothing, or the search was given up. */
static bool check_list(struct search *search, const struct as_yaml_node *list, bool is_rule)
{
    bool is_whole = true;
    for (uint32_t i = 0; list && i < list->count; i++) {
        const char *pattern = list->items[i]->text;
        char hint[SUGGESTION_SIZE] = "";
        if (search->compared > COMPARED_MAX)
            return false;
        if (is_rule ? has_rule(search, pattern) : has_target(search, pattern))
            continue;
        if (!strchr(pattern, '*'))
            suggest(search->ruleset, pattern, is_rule, hint);
        as_yaml_warn(search->loader->tree, list->items[i], AS_YAML_SHOW,
                     search->loader->diagnostics, "%s%s",
                     is_rule ? "no rule has a name that this matches"
                             : "no target has a name or an id that this matches",
                     hint);
        is_whole = false;
    }
    return is_whole;
}

static bool matches(const struct as_yaml_node *list, const char *text)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (as_scope_match(list->items[i]->text, text))
            return true;
    }
    return false;
}

static bool matches_target(const struct as_yaml_node *list, const struct as_target_config *target)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (as_target_may_match_id(target, list->items[i]->text))
            return true;
    }
    return matches(list, target->name);
}

/* Each pattern matches something: is there a rule that both lists match? */
static void check_together(struct search *search, const struct as_yaml_node *credential)
{
    const struct as_yaml_node *rules = as_yaml_find(credential, "rules");
    const struct as_yaml_node *targets = as_yaml_find(credential, "targets");
    const struct as_ruleset *ruleset = search->ruleset;
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        search->compared += rules->count;
        if (search->compared > COMPARED_MAX)
            return;
        if (!matches(rules, ruleset->rules[i].name))
            continue;
        search->compared += targets->count;
        if (matches_target(targets, &ruleset->targets[ruleset->rules[i].target]))
            return;
    }
    as_yaml_warn(search->loader->tree, schema_find_key(credential, "targets"), AS_YAML_SHOW,
                 search->loader->diagnostics,
                 "none of these is the target of one of `rules`: this credential may trigger "
                 "nothing");
}

static void check_credential(struct search *search, const struct as_yaml_node *credential)
{
    const struct as_yaml_node *rules = as_yaml_find(credential, "rules");
    const struct as_yaml_node *targets = as_yaml_find(credential, "targets");
    const bool has_rules = check_list(search, rules, true);
    const bool has_targets = check_list(search, targets, false);
    if (rules && targets && has_rules && has_targets)
        check_together(search, credential);
}

void check_access_patterns(struct loader *loader, const struct as_ruleset *ruleset)
{
    const struct as_yaml_node *receiver = as_yaml_find(as_yaml_get_root(loader->tree), "receiver");
    const struct as_yaml_node *lists[] = {
        as_yaml_find(receiver, "tokens"),
        as_yaml_find(receiver, "users"),
        as_yaml_find(receiver, "certificates"),
        as_yaml_find(receiver, "hmac"),
        as_yaml_find(as_yaml_find(receiver, "token_review"), "allow"),
    };
    struct search search = {.loader = loader, .ruleset = ruleset};
    for (size_t i = 0; i < AS_ARRAY_SIZE(lists); i++) {
        for (uint32_t k = 0; lists[i] && k < lists[i]->count; k++)
            check_credential(&search, lists[i]->items[k]);
    }
    if (search.compared > COMPARED_MAX)
        as_yaml_warn(loader->tree, receiver, AS_YAML_SHOW, loader->diagnostics,
                     "there are too many patterns of `rules` and `targets` to compare all of them "
                     "with all rules and targets: not every one was checked");
}
