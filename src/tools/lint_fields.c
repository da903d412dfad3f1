/*
 * Targets that are fields of objects, or resources of containers: the rights that they need reach
 * further than those of a scale.
 */
#include "lint_run.h"

#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/decide/sized.h>

#define NAMES_MAX ((size_t)200) /* bytes of the targets' names in the hint */

/* The first key of a row of as_sized_kinds says so. */
static bool is_sized_otherwise(const struct as_target_config *target)
{
    for (size_t i = 0; i < target->address_count; i++) {
        for (const struct as_sized_kind *kind = as_sized_kinds; kind->word; kind++) {
            if (strcmp(target->address[i].key, kind->keys[0]) == 0)
                return true;
        }
    }
    return false;
}

/* Each target once, in the order of its first rule. */
static bool is_new(const struct lint_run *run, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (run->rules[i].target == run->rules[index].target)
            return false;
    }
    return true;
}

void lint_check_fields(struct lint_run *run)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf names = AS_BUF_INIT(NAMES_MAX);
    const struct lint_rule *first = NULL;
    for (size_t i = 0; i < run->rule_count; i++) {
        const struct lint_rule *rule = &run->rules[i];
        if (!is_sized_otherwise(rule->target) || !lint_spend(run, LINT_CHEAP) || !is_new(run, i))
            continue;
        if (strlen(rule->target->name) + names.size + 8 < NAMES_MAX)
            as_buf_printf(&names, "%s`%s`", first ? ", " : "", rule->target->name);
        first = first ? first : rule;
    }
    if (first)
        lint_hint(run, first->target_tree, first->target_node,
                  "fields and resources need rights on the objects themselves, which reach further "
                  "than `scale`: name the objects in the role's `resourceNames` (targets %s; "
                  "docs/fields.md, docs/from-vpa.md)",
                  names.data);
}
