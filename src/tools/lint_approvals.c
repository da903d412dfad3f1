/*
 * Rules that wait for a person, in a configuration that tells nobody.
 */
#include "lint_run.h"

#include <alertscaler/decide/notice.h>

static bool is_told(const struct as_settings *settings)
{
    for (size_t i = 0; i < settings->notify_count; i++) {
        if (settings->notify[i].on & 1U << AS_NOTICE_NEEDS_APPROVAL)
            return true;
    }
    return false;
}

void lint_check_approvals(struct lint_run *run)
{
    if (!run->settings_tree || is_told(&run->config->settings))
        return;
    for (size_t i = 0; i < run->rule_count; i++) {
        const struct lint_rule *rule = &run->rules[i];
        if (!lint_spend(run, LINT_CHEAP))
            return;
        if (!rule->rule->approval.is_set)
            continue;
        lint_hint(run, rule->tree, rule->node,
                  "nobody is told when rule `%s` waits for an approval: add `needs_approval` under "
                  "`on` of a receiver of `notify`, or watch AlertscalerApprovalWaits "
                  "(docs/rules.md#approval)",
                  rule->rule->name);
        return;
    }
}
