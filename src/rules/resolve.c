/*
 * Resolves names over all files.
 */
#include "resolve.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#define COMPARED_MAX 200000 /* names, per run */

static int compare_targets(const void *left, const void *right)
{
    const struct raw_target *a = *(struct raw_target *const *)left;
    const struct raw_target *b = *(struct raw_target *const *)right;
    int status = strcmp(a->name, b->name);
    return status ? status : (a->number > b->number) - (a->number < b->number);
}

static void sort_targets(struct resolver *resolver)
{
    size_t count = resolver->target_count;
    resolver->by_name = as_arena_alloc(resolver->loader.arena, count, sizeof(*resolver->by_name));
    for (size_t i = 0; i < count; i++) {
        resolver->by_name[i] = resolver->targets[i];
        resolver->by_name[i]->number = (uint32_t)i;
    }
    if (count > 0)
        qsort(resolver->by_name, count, sizeof(*resolver->by_name), compare_targets);
    for (size_t i = 1; i < count; i++) {
        const struct raw_target *first = resolver->by_name[i - 1], *second = resolver->by_name[i];
        if (strcmp(first->name, second->name) != 0 || !first->node || !second->node)
            continue;
        resolver->loader.tree = second->tree;
        loader_report(&resolver->loader, second->key, "target `%s` is given twice, also at %s:%u",
                      second->name, as_yaml_get_file(first->tree), first->key->place.line);
    }
}

struct raw_target *find_target(const struct resolver *resolver, const char *name)
{
    size_t low = 0, high = resolver->target_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int status = strcmp(resolver->by_name[middle]->name, name);
        if (status == 0)
            return resolver->by_name[middle];
        if (status < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void report_unknown_target(struct resolver *resolver, const struct as_yaml_node *node)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    struct suggestion suggestion = suggestion_start(node->text);
    for (size_t i = 0; i < resolver->target_count && resolver->compared < COMPARED_MAX; i++) {
        resolver->compared++;
        suggestion_offer(&suggestion, resolver->targets[i]->name);
    }
    loader_report(&resolver->loader, node, "there is no target %s%s", as_yaml_describe(node, found),
                  suggestion_print(&suggestion, hint));
}

static int compare_rules(const void *left, const void *right)
{
    const struct raw_rule *a = *(struct raw_rule *const *)left;
    const struct raw_rule *b = *(struct raw_rule *const *)right;
    int status = strcmp(a->name, b->name);
    if (status == 0)
        status = strcmp(as_yaml_get_file(a->tree), as_yaml_get_file(b->tree));
    return status ? status
                  : (a->node->place.line > b->node->place.line) -
                        (a->node->place.line < b->node->place.line);
}

static void check_rule_names(struct resolver *resolver)
{
    struct raw_rule **named = as_xcalloc(resolver->rule_count + 1, sizeof(struct raw_rule *));
    size_t count = 0;
    for (size_t i = 0; i < resolver->rule_count; i++) {
        if (resolver->rules[i]->name)
            named[count++] = resolver->rules[i];
    }
    qsort(named, count, sizeof(struct raw_rule *), compare_rules);
    for (size_t i = 1; i < count; i++) {
        const struct raw_rule *first = named[i - 1], *second = named[i];
        if (strcmp(first->name, second->name) != 0)
            continue;
        resolver->loader.tree = second->tree;
        loader_report(&resolver->loader, as_yaml_find(second->node, "name"),
                      "rule `%s` is given twice, also at %s:%u", second->name,
                      as_yaml_get_file(first->tree), first->node->place.line);
    }
    free(named);
}

char **copy_strings(const char *const *strings, size_t count)
{
    char **copy = count > 0 ? as_xcalloc(count, sizeof(char *)) : NULL;
    for (size_t i = 0; i < count; i++)
        copy[i] = as_xstrdup(strings[i]);
    return copy;
}

static void resolve_target(struct resolver *resolver, struct raw_target *raw,
                           struct as_target_config *config)
{
    resolver->loader.tree = raw->tree;
    config->name = as_xstrdup(raw->name);
    config->bounds = raw->policy.bounds;
    config->dry_run = raw->policy.dry_run;
    config->ready_timeout_us = raw->policy.ready_timeout_us;
    for (enum as_allow i = 0; i < AS_ALLOW_COUNT; i++)
        config->allowed[i] = (struct as_allowed){
            copy_strings(raw->allow.lists[i], raw->allow.counts[i]), raw->allow.counts[i]};
    if (raw->node)
        resolve_address(resolver, raw, config);
}

void resolve_rules(struct resolver *resolver)
{
    struct as_ruleset *ruleset = resolver->ruleset;
    sort_targets(resolver);
    check_rule_names(resolver);
    ruleset->rules = as_xcalloc(resolver->rule_count + 1, sizeof(*ruleset->rules));
    ruleset->rule_count = resolver->rule_count;
    for (size_t i = 0; i < resolver->rule_count; i++)
        resolve_rule(resolver, resolver->rules[i], &ruleset->rules[i]);
    ruleset->targets = as_xcalloc(resolver->target_count + 1, sizeof(*ruleset->targets));
    ruleset->target_count = resolver->target_count;
    for (size_t i = 0; i < resolver->target_count; i++)
        resolve_target(resolver, resolver->targets[i], &ruleset->targets[i]);
    resolve_pools(resolver);
    resolve_schedules(resolver);
    check_swings(resolver);
    check_selects(resolver);
    check_addresses(resolver);
    resolve_after(resolver);
    resolve_entries(resolver);
}
