/*
 * Alerts that a policy's rule does not match because of the namespace alone: how many, and the last
 * one. For the policy's status, because the author does not see the matcher that was added.
 *
 * In memory alone: the numbers begin anew with each generation of the policy, and after a restart.
 * Nothing here changes a decision.
 */
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/model/labels.h>

#include "engine_concerns.h"
#include "engine_registry.h"

#define NAME_SIZE 200 /* of an alert's name, which may have any characters */

struct unmatched {
    int64_t generation; /* of the policy */
    int64_t alerts;
    char *alert, *rule; /* the last one's `alertname`, and the rule; NULL: none */
};

static struct unmatched *get_unmatched(const struct target *target)
{
    return target->parts[CONCERN_UNMATCHED];
}

static void unmatched_clear(struct unmatched *unmatched)
{
    free(unmatched->alert);
    free(unmatched->rule);
    *unmatched = (struct unmatched){.alert = NULL};
}

static void unmatched_deinit(struct target *target)
{
    unmatched_clear(get_unmatched(target));
}

static void unmatched_add(struct target *target, const struct as_rule *rule, const char *alert)
{
    char name[NAME_SIZE];
    as_str_copy_line(alert, name, sizeof(name));
    struct unmatched *unmatched = get_unmatched(target);
    const int64_t generation = target->config->policy->generation;
    const int64_t alerts = unmatched->generation == generation ? unmatched->alerts : 0;
    unmatched_clear(unmatched);
    *unmatched = (struct unmatched){
        .generation = generation,
        .alerts = alerts + 1,
        .alert = as_xstrdup(name),
        .rule = as_xstrdup(rule->name),
    };
}

void unmatched_note(struct as_engine *engine, const struct as_labels *labels,
                    const char *const *receivers, size_t receiver_count)
{
    const struct as_rule *const *rules;
    const size_t count =
        as_rule_index_match_confined(engine->index, labels, receivers, receiver_count, &rules);
    for (size_t i = 0; i < count; i++) {
        struct target *target = LIST_FIRST(target_get_members(engine, rules[i]->target));
        if (target && target->config->policy)
            unmatched_add(target, rules[i], as_labels_get(labels, "alertname"));
    }
}

static void unmatched_fill_view(const struct target *target, as_mono_time now, as_wall_time wall,
                                struct as_target_view *view)
{
    const struct unmatched *unmatched = get_unmatched(target);
    const struct as_policy_terms *policy = target->config ? target->config->policy : NULL;
    (void)now, (void)wall;
    if (!policy || unmatched->generation != policy->generation)
        return;
    view->unmatched.alerts = unmatched->alerts;
    view->unmatched.last_alert = unmatched->alert;
    view->unmatched.rule = unmatched->rule;
}

const struct concern concern_unmatched = {
    .name = "unmatched",
    .size = sizeof(struct unmatched),
    .deinit = unmatched_deinit,
    .fill_view = unmatched_fill_view,
};
