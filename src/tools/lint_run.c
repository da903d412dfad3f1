/*
 * One run of the checks on one configuration: its budget, its reports, and where rules and matchers
 * stand in their files.
 */
#include "lint_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/doc/schema.h>

bool lint_spend(struct lint_run *run, enum lint_cost cost)
{
    if (run->work == 0)
        return false;
    if (run->work > (size_t)cost) {
        run->work -= (size_t)cost;
        return true;
    }
    run->work = 0;
    as_diagnostics_add(
        run->diagnostics,
        &(struct as_diagnostic){
            .severity = AS_SEVERITY_WARNING,
            .file = run->tree_count > 0 ? as_yaml_get_file(run->trees[0]) : run->config->path,
            .message = "there are too many rules to compare all of them with each "
                       "other and with all else: not everything was checked",
        });
    return false;
}

const struct as_yaml_node *lint_get_match(const struct lint_rule *rule)
{
    const struct as_yaml_node *key = schema_find_key(rule->node, "match");
    return key ? key : rule->node;
}

/* A rule's matchers are in the order of its list. */
const struct as_yaml_node *lint_get_matcher(const struct lint_rule *rule, size_t index)
{
    const struct as_yaml_node *list = as_yaml_find(rule->node, "match");
    bool is_there = list && list->kind == AS_YAML_LIST && index < list->count;
    return is_there ? list->items[index] : rule->node;
}

bool lint_takes_receiver(const struct lint_rule *rule, const char *receiver)
{
    for (size_t i = 0; i < rule->rule->receiver_count; i++) {
        if (strcmp(rule->rule->receivers[i], receiver) == 0)
            return true;
    }
    return rule->rule->receiver_count == 0;
}

const char *lint_print_place(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                             char text_out[LINT_PLACE_SIZE])
{
    snprintf(text_out, LINT_PLACE_SIZE, "%s:%u", as_yaml_get_file(tree), node->place.line);
    return text_out;
}

void lint_warn(struct lint_run *run, const struct as_yaml_tree *tree,
               const struct as_yaml_node *node, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    as_yaml_vreport(tree, node, AS_SEVERITY_WARNING, AS_YAML_SHOW, run->diagnostics, format,
                    arguments);
    va_end(arguments);
}

void lint_hint(struct lint_run *run, const struct as_yaml_tree *tree,
               const struct as_yaml_node *node, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    as_yaml_vreport(tree, node, AS_SEVERITY_HINT, AS_YAML_SHOW, run->diagnostics, format,
                    arguments);
    va_end(arguments);
}

static int compare_lines(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

void lint_warn_alertmanager(struct lint_run *run, const struct as_yaml_node *node,
                            const char *format, ...)
{
    const struct lint_alertmanager *alertmanager = run->lint->alertmanager;
    bool is_secret = alertmanager->secret_count > 0 &&
                     bsearch(&node->place.line, alertmanager->secret_lines,
                             alertmanager->secret_count, sizeof(uint32_t), compare_lines);
    va_list arguments;
    va_start(arguments, format);
    as_yaml_vreport(alertmanager->tree, node, AS_SEVERITY_WARNING,
                    is_secret ? AS_YAML_HIDE : AS_YAML_SHOW, run->diagnostics, format, arguments);
    va_end(arguments);
}
