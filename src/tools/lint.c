/*
 * Runs all checks. A loaded rule set has no places, and only lint needs them: so each rule file is
 * read again for them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/rules/policy.h>

#include "lint_run.h"

#define WORK_MAX        ((size_t)100 * 1000 * 1000) /* in units of lint_cost: about ten seconds */
#define POLICY_WORK_MAX ((size_t)1000 * 1000) /* about 0.1 s; 50 rules of 16 matchers take less */

int as_lint_new(const struct as_lint_sources *sources, struct as_diagnostics *diagnostics,
                struct as_lint **lint_out)
{
    AS_CLEANUP(as_lint_free_p) struct as_lint *lint = as_xcalloc(1, sizeof(*lint));
    int alertmanager = 0;
    lint->sources.web_config_file = sources->web_config_file;
    lint->sources.web = sources->web;
    if (sources->alertmanager) {
        lint->alertmanager = &lint->memory;
        alertmanager = lint_alertmanager_load(sources->alertmanager, sources->route_prefix,
                                              diagnostics, &lint->memory);
    }
    int prometheus = lint_prometheus_load(sources->prometheus_rules, sources->prometheus_rule_count,
                                          diagnostics, &lint->prometheus);
    int results[] = {alertmanager, prometheus};
    for (size_t i = 0; i < AS_ARRAY_SIZE(results); i++) {
        if (results[i] < 0 && results[i] != -EINVAL && results[i] != -EFBIG)
            return results[i];
    }
    if (alertmanager < 0 || prometheus < 0)
        return AS_LINT_INVALID;
    *lint_out = lint;
    lint = NULL;
    return AS_LINT_OK;
}

struct as_lint *as_lint_free(struct as_lint *lint)
{
    if (!lint)
        return NULL;
    lint_alertmanager_deinit(&lint->memory);
    lint_prometheus_deinit(&lint->prometheus);
    free(lint);
    return NULL;
}

size_t as_lint_get_file_count(const struct as_lint *lint)
{
    return lint->prometheus.tree_count;
}

size_t as_lint_get_alert_count(const struct as_lint *lint)
{
    return lint->prometheus.alert_count;
}

struct place {
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *node, *key; /* key: of a target; NULL: a rule */
};

struct places { /* in the order of the rule set */
    struct place *targets, *rules;
    size_t target_count, target_capacity, rule_count, rule_capacity;
};

static void find_places(const struct as_yaml_tree *tree, struct places *places)
{
    const struct as_yaml_node *root = as_yaml_get_root(tree);
    const struct as_yaml_node *targets = as_yaml_find(root, "targets");
    const struct as_yaml_node *rules = as_yaml_find(root, "rules");
    for (uint32_t i = 0; targets && targets->kind == AS_YAML_MAP && i < targets->count; i++) {
        places->targets = as_xgrow(places->targets, places->target_count, &places->target_capacity,
                                   sizeof(*places->targets));
        places->targets[places->target_count++] =
            (struct place){tree, targets->pairs[i].value, targets->pairs[i].key};
    }
    for (uint32_t i = 0; rules && rules->kind == AS_YAML_LIST && i < rules->count; i++) {
        places->rules = as_xgrow(places->rules, places->rule_count, &places->rule_capacity,
                                 sizeof(*places->rules));
        places->rules[places->rule_count++] = (struct place){tree, rules->items[i], NULL};
    }
}

/* Whether the files are unchanged since loading. */
static bool lint_is_unchanged(const struct as_ruleset *ruleset, const struct places *places)
{
    bool is_same =
        places->target_count == ruleset->target_count && places->rule_count == ruleset->rule_count;
    for (size_t i = 0; is_same && i < ruleset->rule_count; i++) {
        const struct as_yaml_node *name = as_yaml_find(places->rules[i].node, "name");
        is_same = name && name->kind == AS_YAML_SCALAR &&
                  strcmp(name->text, ruleset->rules[i]->name) == 0;
    }
    return is_same;
}

static void add_rules(struct lint_run *run, const struct places *places)
{
    const struct as_ruleset *ruleset = run->config->ruleset;
    run->rules = as_xcalloc(places->rule_count + 1, sizeof(*run->rules));
    for (size_t i = 0; i < places->rule_count; i++) {
        const struct as_rule *rule = ruleset->rules[i];
        if (!rule->enabled)
            continue;
        run->rules[run->rule_count++] = (struct lint_rule){
            .rule = rule,
            .target = rule->target,
            .tree = places->rules[i].tree,
            .node = places->rules[i].node,
            .target_tree = places->targets[rule->target->number].tree,
            .target_node = places->targets[rule->target->number].node,
            .is_dead = rule->is_always,
        };
    }
}

/* A target that no rule changes, nor its schedules, bounds or pool. Another target may wait for it.
 * Files without rules are a part of something else. */
static void check_unused(struct lint_run *run, const struct places *places)
{
    const struct as_ruleset *ruleset = run->config->ruleset;
    AS_CLEANUP(as_free_p) bool *is_used = as_xcalloc(ruleset->target_count + 1, sizeof(*is_used));
    for (size_t i = 0; i < ruleset->rule_count; i++)
        is_used[ruleset->rules[i]->target->number] = true;
    for (size_t i = 0; i < ruleset->target_count; i++) {
        const struct as_target_config *target = ruleset->targets[i];
        if (target->schedule_count > 0 || target->bounds.enforce_bounds ||
            target->of_pool != AS_NO_TARGET)
            is_used[i] = true;
        for (size_t k = 0; k < target->after_count; k++)
            is_used[target->after[k]] = true;
    }
    for (size_t i = 0; i < ruleset->target_count && ruleset->rule_count > 0; i++) {
        if (!is_used[i])
            lint_warn(run, places->targets[i].tree, places->targets[i].key,
                      "no rule has `target: %s`: no alert changes this target",
                      ruleset->targets[i]->name);
    }
}

static bool may_lower(const struct as_rule *rule)
{
    const struct as_ending *ending = &rule->on_resolved;
    return rule->enabled &&
           ((rule->action.kind != AS_ACTION_SCALE_UP && rule->action.kind != AS_ACTION_HOLD) ||
            (ending->kind == AS_ENDING_SCALE && ending->action.kind != AS_ACTION_SCALE_UP));
}

/* Whether something else than its `end` lowers the size that the schedule has set. */
static bool comes_down(const struct as_ruleset *ruleset, const struct as_target_config *config,
                       int32_t min)
{
    bool is_lowered = config->bounds.enforce_bounds && config->bounds.max < min;
    for (size_t i = 0; i < config->schedule_count; i++) {
        const struct as_schedule *schedule = &config->schedules[i];
        is_lowered |= as_schedule_is_zero(schedule) ||
                      (config->bounds.enforce_bounds && schedule->has_max && schedule->max < min);
    }
    for (size_t i = 0; i < ruleset->rule_count && !is_lowered; i++)
        is_lowered = ruleset->rules[i]->target == config && may_lower(ruleset->rules[i]);
    return is_lowered;
}

/* A schedule whose `min` never comes down again. Files without the key `rules` are a part of
 * something else. */
static void check_schedules(struct lint_run *run, const struct places *places)
{
    const struct as_ruleset *ruleset = run->config->ruleset;
    bool has_rules = false;
    for (size_t i = 0; i < run->tree_count; i++)
        has_rules |= as_yaml_find(as_yaml_get_root(run->trees[i]), "rules") != NULL;
    for (size_t i = 0; i < ruleset->target_count && has_rules; i++) {
        const struct as_target_config *target = ruleset->targets[i];
        const struct as_yaml_node *list = as_yaml_find(places->targets[i].node, "schedules");
        for (size_t k = 0; k < target->schedule_count && list && k < list->count; k++) {
            const struct as_schedule *schedule = &target->schedules[k];
            if (schedule->min <= target->bounds.min || as_yaml_find(list->items[k], "end") ||
                comes_down(ruleset, ruleset->targets[i], schedule->min))
                continue;
            lint_warn(run, places->targets[i].tree, as_yaml_find(list->items[k], "min"),
                      "the size stays at %d after schedule `%s`, because no rule lowers it: add "
                      "`end: before`, `end: min` or `end: keep`",
                      schedule->min, schedule->name);
        }
    }
}

/* The watchdog's alert must reach us like the alerts of rules. */
static void add_watchdog(struct lint_run *run)
{
    const struct as_receiver_settings *settings = &run->config->settings.receiver;
    const struct as_yaml_node *root =
        run->settings_tree ? as_yaml_get_root(run->settings_tree) : NULL;
    const struct as_yaml_node *node = as_yaml_find(as_yaml_find(root, "receiver"), "watchdog");
    if (settings->watchdog_count == 0 || !node)
        return;
    run->watchdog_rule = (struct as_rule){
        .matchers = settings->watchdog,
        .matcher_count = settings->watchdog_count,
    };
    run->watchdog = (struct lint_rule){
        .rule = &run->watchdog_rule,
        .tree = run->settings_tree,
        .node = node,
    };
}

static bool load_trees(struct lint_run *run)
{
    const struct as_config *config = run->config;
    run->trees = as_xcalloc(config->rule_file_count + 1, sizeof(struct as_yaml_tree *));
    for (size_t i = 0; i < config->rule_file_count; i++) {
        struct as_diagnostics known = AS_DIAGNOSTICS_INIT; /* by the load of the configuration */
        const int status = as_rule_file_load(config->rule_files[i], &known, &run->trees[i]);
        for (size_t k = 0; status < 0 && k < known.count; k++)
            as_diagnostics_add(run->diagnostics, &known.items[k]);
        as_diagnostics_deinit(&known);
        if (status < 0)
            return false;
        run->tree_count++;
    }
    if (*config->path)
        return as_yaml_load(config->path, run->diagnostics, &run->settings_tree) >= 0;
    return true;
}

/* What the rules and targets show by themselves. */
static void check_rule_set(struct lint_run *run, const struct places *places)
{
    lint_check_rules(run);
    check_unused(run, places);
    check_schedules(run, places);
    lint_check_fields(run);
    lint_check_cooldowns(run);
    lint_check_approvals(run);
}

void as_lint_check(const struct as_lint *lint, const struct as_config *config,
                   struct as_diagnostics *diagnostics)
{
    struct lint_run run = {
        .lint = lint,
        .config = config,
        .diagnostics = diagnostics,
        .work = WORK_MAX,
    };
    struct places places = {.targets = NULL};
    bool is_loaded = load_trees(&run);
    for (size_t i = 0; i < run.tree_count; i++)
        find_places(run.trees[i], &places);
    if (is_loaded && lint_is_unchanged(config->ruleset, &places)) {
        add_rules(&run, &places);
        add_watchdog(&run);
        lint_check_credentials(&run);
        lint_check_servers(&run);
        check_rule_set(&run, &places);
        lint_check_alerts(&run);
        lint_check_routes(&run);
    } else if (is_loaded) {
        as_diagnostics_add(diagnostics,
                           &(struct as_diagnostic){
                               .file = run.tree_count > 0 ? as_yaml_get_file(run.trees[0]) : "",
                               .message = "the rule files have changed while they were checked",
                           });
    }
    for (size_t i = 0; i < run.tree_count; i++)
        as_yaml_free(run.trees[i]);
    as_yaml_free(run.settings_tree);
    free(run.trees);
    free(run.rules);
    free(places.targets);
    free(places.rules);
}

void as_lint_check_policy(const struct as_settings *settings, struct as_ruleset *ruleset,
                          const char *text, size_t size, struct as_diagnostics *diagnostics)
{
    static const struct as_lint nothing = {.alertmanager = NULL};
    char no_path[] = "";
    const struct as_config config = {.path = no_path, .settings = *settings, .ruleset = ruleset};
    AS_CLEANUP(as_diagnostics_deinit) struct as_diagnostics found = AS_DIAGNOSTICS_INIT;
    AS_CLEANUP(as_yaml_free_p) struct as_yaml_tree *tree = NULL;
    struct places places = {.targets = NULL};
    struct lint_run run = {.lint = &nothing,
                           .config = &config,
                           .diagnostics = &found,
                           .trees = &tree,
                           .work = POLICY_WORK_MAX};
    if (as_policy_parse(text, size, &found, &tree) != AS_YAML_OK)
        return; /* it compiled: this does not happen */
    run.tree_count = 1;
    find_places(tree, &places);
    if (lint_is_unchanged(ruleset, &places)) {
        add_rules(&run, &places);
        check_rule_set(&run, &places);
    }
    as_diagnostics_sort(&found);
    as_policy_add_with_paths(&found, tree, diagnostics);
    free(run.rules);
    free(places.targets);
    free(places.rules);
}
