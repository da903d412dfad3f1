/*
 * Bindings: which open incident proposes something on which target.
 *
 * Bindings are made when an incident opens, and again for all incidents when the rules change. What
 * a rule has done for an incident (steps, time of the last) is then carried over by the names of
 * rule and target.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"

#define KEPT_MAX 1000 /* of an incident, beside its bindings */

/* The rule does not exist any more, and its policy is not awaited. */
static bool is_gone(const struct as_engine *engine, const char *rule)
{
    char policy[AS_TARGET_ID_MAX];
    const char *end = strrchr(rule, '/');
    if (as_ruleset_find_rule(engine->ruleset, rule))
        return false;
    if (!end || (size_t)(end - rule) >= sizeof(policy))
        return true;
    memcpy(policy, rule, (size_t)(end - rule));
    policy[end - rule] = '\0';
    return !as_ruleset_awaits(engine->ruleset, policy);
}

static bool is_kept_for(const struct as_progress *progress, const struct group *group)
{
    return as_target_ref_has_id(group->target->ref, progress->target) &&
           strcmp(progress->rule, group->rule->name) == 0;
}

/* Between a rule file and a policy a target may change its owner: the new rule of an alert goes on
 * where a former one has ended. */
static bool succeeds(const struct as_engine *engine, const struct group *group,
                     const struct as_progress *progress)
{
    return (group->target->config->policy || strchr(progress->rule, '/')) &&
           as_target_ref_has_id(group->target->ref, progress->target) &&
           is_gone(engine, progress->rule);
}

/* What this rule has done for the incident, or the one that it succeeds; NULL: nothing. */
static struct as_progress *find_progress(const struct as_engine *engine, struct incident *incident,
                                         const struct group *group)
{
    for (uint32_t i = 0; i < incident->kept_count; i++)
        if (is_kept_for(&incident->kept[i], group))
            return &incident->kept[i];
    for (uint32_t i = 0; i < incident->kept_count; i++)
        if (succeeds(engine, group, &incident->kept[i]))
            return &incident->kept[i];
    return NULL;
}

static void bind(const struct as_engine *engine, struct binding *binding, struct incident *incident,
                 struct group *group)
{
    *binding = (struct binding){
        .incident = incident, .group = group, .applied = AS_MOMENT_NEVER, .origin = -1};
    struct binding *before = TAILQ_LAST(&group->bindings, binding_list);
    while (before && before->incident->serial > incident->serial) /* bound again */
        before = TAILQ_PREV(before, binding_list, in_group);
    if (before)
        TAILQ_INSERT_AFTER(&group->bindings, before, binding, in_group);
    else
        TAILQ_INSERT_HEAD(&group->bindings, binding, in_group);
    group->count++;
    group->target->open_bindings++;

    struct as_progress *progress = find_progress(engine, incident, group);
    if (progress) {
        binding->steps = progress->steps;
        binding->applied = progress->applied;
        binding->origin = progress->origin;
    }
    if (progress && is_kept_for(progress, group)) { /* a rule that is gone may come back */
        progress_deinit(progress);
        *progress = incident->kept[--incident->kept_count];
    }
    owners_inherit(engine, binding);
}

/* The target that a rule leads to. NULL: the labels give no allowed target, the target belongs to
 * another entry of the rule files, or no credential of the incident may trigger the rule there. */
static struct target *resolve(struct as_engine *engine, const struct incident *incident,
                              const struct as_rule *rule, const struct as_labels *labels,
                              const struct as_labels *annotations, bool *is_forbidden)
{
    const struct as_target_config *config = rule->target;
    /* with a plain address, labels do not matter: its only target always exists */
    struct target *named =
        config->is_templated ? NULL : LIST_FIRST(target_get_members(engine, rule->target));
    struct as_target_ref *ref = NULL;
    if (!named && as_target_ref_new(config, labels, annotations, &ref, NULL) != 0)
        return NULL;
    if (!scope_allows(engine, incident, rule, named ? named->ref : ref)) {
        as_target_ref_free(ref);
        *is_forbidden = true;
        return NULL;
    }
    return named ? named : target_claim(engine, config, ref);
}

static size_t count_enabled(const struct as_rule *const *rules, size_t count)
{
    size_t enabled = 0;
    for (size_t i = 0; i < count; i++)
        enabled += rules[i]->enabled;
    return enabled;
}

enum bind_result bindings_check(struct as_engine *engine, const struct as_labels *labels,
                                const char *receiver)
{
    const struct as_rule *const *rules;
    const size_t count = as_rule_index_match(engine->index, labels, &receiver, 1, &rules);
    if (count == 0)
        return BIND_NO_RULE;
    return count_enabled(rules, count) ? BIND_OK : BIND_DISABLED;
}

enum bind_result bindings_make(struct as_engine *engine, struct incident *incident,
                               const struct as_labels *labels, const struct as_labels *annotations)
{
    const struct as_rule *const *rules;
    if (as_labels_are_own(labels)) /* of an incident that an earlier version has opened */
        return BIND_NO_RULE;
    const size_t count =
        as_rule_index_match(engine->index, labels, (const char *const *)incident->state.receivers,
                            incident->state.receiver_count, &rules);
    if (count == 0)
        return BIND_NO_RULE;
    const size_t enabled = count_enabled(rules, count);
    if (enabled == 0)
        return BIND_DISABLED;

    bool is_forbidden = false;
    incident->bindings = as_xcalloc(enabled, sizeof(*incident->bindings));
    for (size_t i = 0; i < count; i++) {
        const struct as_rule *rule = rules[i];
        if (!rule->enabled)
            continue;
        struct target *target = resolve(engine, incident, rule, labels, annotations, &is_forbidden);
        if (!target)
            continue;
        bind(engine, &incident->bindings[incident->binding_count++], incident,
             group_get(target, rule));
    }
    if (incident->binding_count > 0)
        return BIND_OK;
    free(incident->bindings);
    incident->bindings = NULL;
    return is_forbidden ? BIND_FORBIDDEN : BIND_NOT_ALLOWED;
}

static bool binding_forget_sizes(struct incident *incident, const struct target *target)
{
    bool changed = false;
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        struct binding *binding = &incident->bindings[i];
        changed = changed || (binding->group->target == target && binding->origin >= 0);
        if (binding->group->target == target)
            binding->origin = -1;
    }
    for (uint32_t i = 0; i < incident->kept_count; i++) {
        struct as_progress *progress = &incident->kept[i];
        if (progress->origin < 0 || !as_target_ref_has_id(target->ref, progress->target))
            continue;
        progress->origin = -1;
        changed = true;
    }
    return changed;
}

/* The sizes before the first steps were another object's. To be committed. */
static void bindings_forget_sizes(struct as_engine *engine, struct target *target,
                                  const struct other_object *why)
{
    (void)why;
    struct incident *incident;
    TAILQ_FOREACH (incident, &engine->open, in_order) {
        if (binding_forget_sizes(incident, target))
            effect_put_incident(engine, incident);
    }
}

void bindings_drop(struct as_engine *engine, struct incident *incident)
{
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        struct binding *binding = &incident->bindings[i];
        struct group *group = binding->group;
        TAILQ_REMOVE(&group->bindings, binding, in_group);
        group->target->open_bindings--;
        if (--group->count == 0) {
            RB_REMOVE(group_tree, &group->target->groups, group);
            free(group);
        }
    }
    incident->binding_count = 0;
    free(incident->bindings);
    incident->bindings = NULL;
}

/* A size change by this rule is under way: it may become a step of the incident. */
static bool binding_is_awaited(const struct binding *binding)
{
    const struct target *target = binding->group->target;
    const struct intent *const intents[] = {target->in_doubt, target->intent};
    for (size_t i = 0; i < AS_ARRAY_SIZE(intents); i++) {
        if (intents[i] && strcmp(intents[i]->state.rule, binding->group->rule->name) == 0)
            return true;
    }
    return false;
}

/* Of rules that are gone: a rule whose name changes again and again must not use up the memory. */
static void limit_kept(struct incident *incident)
{
    const uint32_t excess = incident->kept_count > KEPT_MAX ? incident->kept_count - KEPT_MAX : 0;
    if (excess == 0)
        return;
    for (uint32_t i = 0; i < excess; i++)
        progress_deinit(&incident->kept[i]);
    incident->kept_count = KEPT_MAX;
    memmove(incident->kept, incident->kept + excess, KEPT_MAX * sizeof(*incident->kept));
}

/* Saves by name what rules have done for an incident, then unbinds it. */
static void set_aside(struct as_engine *engine, struct incident *incident)
{
    limit_kept(incident);
    if (incident->binding_count > 0)
        incident->kept =
            as_xrealloc_array(incident->kept, incident->kept_count + incident->binding_count,
                              sizeof(*incident->kept));
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct binding *binding = &incident->bindings[i];
        if (binding->steps == 0 && !binding_is_awaited(binding))
            continue;
        incident->kept[incident->kept_count++] = (struct as_progress){
            .rule = as_xstrdup(binding->group->rule->name),
            .target = as_xstrdup(binding->group->target->ref->id),
            .steps = binding->steps,
            .applied = binding->applied,
            .origin = binding->origin,
        };
    }
    bindings_drop(engine, incident);
}

static void make_anew(struct as_engine *engine, struct incident *incident)
{
    (void)bindings_make(engine, incident, incident->state.labels, incident->state.annotations);
    room_account(engine, incident);
}

/* Call it after a change of what rules are matched with. */
void bindings_remake(struct as_engine *engine, struct incident *incident)
{
    set_aside(engine, incident);
    make_anew(engine, incident);
}

static int compare_serials(const void *a, const void *b)
{
    const struct incident *const *left = a, *const *right = b;
    return ((*left)->serial > (*right)->serial) - ((*left)->serial < (*right)->serial);
}

static void remake_in_order(struct as_engine *engine, struct incident **incidents, size_t count)
{
    qsort(incidents, count, sizeof(struct incident *), compare_serials);
    for (size_t i = 0; i < count; i++)
        make_anew(engine, incidents[i]);
}

static void remake_open(struct as_engine *engine)
{
    struct incident **incidents = as_xcalloc(engine->open_count + 1, sizeof(struct incident *));
    struct incident *incident;
    size_t count = 0;
    TAILQ_FOREACH (incident, &engine->open, in_order)
        incidents[count++] = incident;
    remake_in_order(engine, incidents, count);
    free(incidents);
}

/*
 * The incidents of `always` rules. They never end, and are not stored. No alert, list or time
 * touches them: they are in a list of their own. New rules find them by the rule's name.
 *
 * After a restart the earlier changes of such a rule are not known. Then the last change of the
 * target counts, whatever made it, and the rule waits for `every`.
 */

/* It was opened before all times: each change of the target may be a step of the rule. */
static struct incident *incident_new_always(const char *rule)
{
    static const struct as_labels none = {0};
    struct incident *incident = as_xcalloc(1, sizeof(*incident));
    incident->always = as_xstrdup(rule);
    incident->state.key.owner = as_xstrdup("");
    incident->state.is_open = true;
    incident->state.opened = (struct as_moment){.mono = {INT64_MIN / 2}};
    incident->state.seen = incident->state.opened;
    incident->state.resolved = incident->state.silenced = AS_MOMENT_NEVER;
    incident->state.labels = as_labels_copy(&none);
    incident->state.annotations = as_labels_copy(&none);
    return incident;
}

static void assume_step(struct incident *incident)
{
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        struct binding *binding = &incident->bindings[i];
        const struct as_lock_state *locks = &binding->group->target->locks;
        binding->applied = moment_get_later(locks->last_up, locks->last_down);
        if (!as_moment_is_set(binding->applied))
            continue;
        binding->steps = 1;
        binding->applied.mono.us =
            as_time_add(binding->applied.mono.us, binding->group->rule->every_us - 1);
    }
}

/* Its incident is in `former`, or it gets a new one. */
static struct incident *remake_always_rule(struct as_engine *engine, const struct as_rule *rule,
                                           struct incident_list *former)
{
    struct incident *incident;
    TAILQ_FOREACH (incident, former, in_order) {
        if (strcmp(incident->always, rule->name) == 0)
            break;
    }
    if (incident)
        TAILQ_REMOVE(former, incident, in_order);
    else
        incident = incident_new_always(rule->name);
    TAILQ_INSERT_TAIL(&engine->always, incident, in_order);
    incident->bindings = as_xcalloc(1, sizeof(*incident->bindings));
    struct target *target =
        LIST_FIRST(target_get_members(engine, rule->target)); /* its address is plain */
    if (target)
        bind(engine, &incident->bindings[incident->binding_count++], incident,
             group_get(target, rule));
    return incident;
}

static void remake_always(struct as_engine *engine)
{
    struct incident_list former = TAILQ_HEAD_INITIALIZER(former);
    TAILQ_CONCAT(&former, &engine->always, in_order);
    for (size_t i = 0; i < engine->ruleset->rule_count; i++) {
        const struct as_rule *rule = engine->ruleset->rules[i];
        if (!rule->is_always || !rule->enabled)
            continue;
        struct incident *incident = remake_always_rule(engine, rule, &former);
        if (engine->generation == 0) /* the start */
            assume_step(incident);
    }
    TAILQ_CONCAT(&engine->graveyard, &former, in_order);
}

static void remake_of_target(struct as_engine *engine, struct target *target)
{
    bool is_changed = false;
    if (target_is_awaited(engine, target)) {
        endings_sleep(target);
        return;
    }
    FOR_CONCERNS (engine, concern)
        if (concern->remake && concern->remake(engine, target))
            is_changed = true;
    if (is_changed)
        effect_put_target(engine, target);
}

/* What outlasts incidents. */
static void remake_concerns(struct as_engine *engine)
{
    struct target *target;
    const size_t effects = engine->effect_count;
    RB_FOREACH (target, target_tree, &engine->targets)
        remake_of_target(engine, target);
    RB_FOREACH (target, target_tree, &engine->targets)
        evaluations_remake(engine, target); /* when the pools of all targets are known */
    if (engine->effect_count > effects)
        effect_commit(engine);
}

void bindings_remake_all(struct as_engine *engine)
{
    struct incident *incident;
    TAILQ_FOREACH (incident, &engine->open, in_order)
        set_aside(engine, incident);
    TAILQ_FOREACH (incident, &engine->always, in_order)
        set_aside(engine, incident);
    owners_find(engine);
    targets_reset_entries(engine);
    remake_always(engine);
    remake_open(engine);
    remake_concerns(engine);
}

/*
 * A change of a few policies: only the incidents that their rules match are bound again, and only
 * their targets get other rules. The outcome is that of bindings_remake_all.
 */

static bool matches_some(const struct as_ruleset *const *policies, size_t count,
                         const struct incident *incident)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < policies[i]->rule_count; k++)
            if (!policies[i]->rules[k]->is_always &&
                as_rule_matches(policies[i]->rules[k], incident->state.labels))
                return true;
    return false;
}

static size_t set_aside_some(struct as_engine *engine, const struct as_ruleset *next,
                             struct incident **incidents)
{
    struct incident *incident;
    size_t count = 0;
    TAILQ_FOREACH (incident, &engine->open, in_order) {
        if (!matches_some(next->removed, next->removed_count, incident) &&
            !matches_some(next->added, next->added_count, incident))
            continue;
        for (uint32_t i = 0; i < incident->binding_count; i++) /* also those of other rules */
            target_outdate_intents(incident->bindings[i].group->target);
        set_aside(engine, incident);
        incidents[count++] = incident;
    }
    return count;
}

static void add_changed(struct target_array *targets, struct target *target)
{
    for (size_t i = 0; i < targets->count; i++)
        if (targets->items[i] == target)
            return;
    targets->items[targets->count++] = target;
}

/* Takes the policy's rules from its target. Their `always` incidents go to `former`. */
static void rules_leave(struct as_engine *engine, const struct as_ruleset *policy,
                        struct incident_list *former, struct target_array *targets)
{
    struct target *target = LIST_FIRST(target_get_members(engine, policy->targets[0]));
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct as_rule *rule = policy->rules[i];
        const struct group *group =
            target && rule->is_always ? group_find(target, rule->name) : NULL;
        as_rule_index_remove(engine->index, rule);
        if (!group)
            continue;
        struct incident *incident = TAILQ_FIRST(&group->bindings)->incident;
        set_aside(engine, incident);
        TAILQ_REMOVE(&engine->always, incident, in_order);
        TAILQ_INSERT_TAIL(former, incident, in_order);
    }
    if (!target)
        return;
    target_set_config(engine, target, NULL);
    engine->named_count--;
    add_changed(targets, target);
}

static void rules_come(struct as_engine *engine, const struct as_ruleset *policy,
                       struct target_array *targets)
{
    for (size_t i = 0; i < policy->rule_count; i++)
        as_rule_index_add(engine->index, policy->rules[i]);
    struct target *target = target_make_named(engine, policy->targets[0]);
    if (target)
        add_changed(targets, target);
}

bool bindings_remake_some(struct as_engine *engine, const struct as_ruleset *next,
                          struct target_array *targets)
{
    struct incident **incidents =
        as_arena_alloc(&engine->arena, engine->open_count + 1, sizeof(struct incident *));
    struct incident_list former = TAILQ_HEAD_INITIALIZER(former);
    const size_t count = set_aside_some(engine, next, incidents);
    for (size_t i = 0; i < next->removed_count; i++)
        rules_leave(engine, next->removed[i], &former, targets);
    targets_forget_members(engine, next);
    engine->ruleset = next;
    for (size_t i = 0; i < next->added_count; i++)
        rules_come(engine, next->added[i], targets);
    for (size_t i = 0; i < count; i++) {
        if (!owners_are_right(engine, incidents[i])) {
            TAILQ_CONCAT(&engine->always, &former, in_order);
            return false;
        }
    }
    for (size_t i = 0; i < next->added_count; i++)
        for (size_t k = 0; k < next->added[i]->rule_count; k++) {
            const struct as_rule *rule = next->added[i]->rules[k];
            if (rule->is_always && rule->enabled)
                (void)remake_always_rule(engine, rule, &former);
        }
    TAILQ_CONCAT(&engine->graveyard, &former, in_order);
    remake_in_order(engine, incidents, count);
    const size_t effects = engine->effect_count;
    for (size_t i = 0; i < targets->count; i++)
        remake_of_target(engine, targets->items[i]);
    for (size_t i = 0; i < targets->count; i++)
        evaluations_remake(engine, targets->items[i]);
    if (engine->effect_count > effects)
        effect_commit(engine);
    return true;
}

/*
 * Which incidents a size change was a step of: those that took part in its decision. `once`,
 * max_steps, `every` and give_back use this.
 */

/* The winner's rule took part; in a scale-up also all rules that wanted up and had not to wait for
 * an approval: the highest size answers them too. They are known only while the rules are the
 * same. */
static bool group_took_part(const struct as_engine *engine, struct target *target,
                            const struct group *group, const struct intent *intent)
{
    if (group->rule->dry_run || intent->state.rule[0] == '\0') /* enforced bounds have no rule */
        return false;
    if (strcmp(group->rule->name, intent->state.rule) == 0)
        return true;
    if (intent->state.to < intent->state.from || intent->generation != engine->generation ||
        approvals_sets_aside(target, group->rule))
        return false;
    const struct as_action *action = &group->rule->action;
    if (group->rule->source.kind != AS_SOURCE_NONE)
        return group->wants_up; /* by its value at the decision; unknown after a restart */
    if (action->kind == AS_ACTION_SCALE_TO || action->is_to)
        return action->kind != AS_ACTION_SCALE_DOWN && action->size > intent->state.from;
    return action->kind == AS_ACTION_SCALE_UP;
}

static bool incident_took_part(const struct incident *incident, const struct intent *intent)
{
    return incident->serial <= intent->serial &&
           incident->state.opened.mono.us <= intent->state.at.mono.us;
}

/* Whether the incident was due at the decision. After a change of rules this is unknown: then it
 * was. */
static bool binding_was_due(const struct as_engine *engine, const struct binding *binding,
                            const struct intent *intent)
{
    if (incident_is_held(binding->incident) &&
        binding->incident->state.silenced.mono.us <= intent->state.at.mono.us)
        return false;
    return intent->generation != engine->generation ||
           binding_get_due_unheld(binding).us <= intent->state.at.mono.us;
}

/* The rule is gone, but may come back: counts the step for its incidents. */
static void count_kept_step(struct as_engine *engine, const struct target *target,
                            const struct intent *intent)
{
    struct incident *incident;
    TAILQ_FOREACH (incident, &engine->open, in_order) {
        for (uint32_t i = 0; i < incident->kept_count; i++) {
            struct as_progress *kept = &incident->kept[i];
            if (strcmp(kept->rule, intent->state.rule) != 0 ||
                !as_target_ref_has_id(target->ref, kept->target) ||
                !incident_took_part(incident, intent))
                continue;
            if (kept->steps++ == 0)
                kept->origin = intent->state.from;
            kept->applied = moment_now(engine);
            effect_put_incident(engine, incident);
        }
    }
}

void steps_count(struct as_engine *engine, struct target *target, const struct intent *intent)
{
    struct group *group;
    struct binding *binding;
    RB_FOREACH (group, group_tree, &target->groups) {
        if (!group_took_part(engine, target, group, intent) ||
            !rule_keeps_progress(group->rule, target->config))
            continue;
        TAILQ_FOREACH (binding, &group->bindings, in_group) {
            if (!incident_took_part(binding->incident, intent) ||
                !binding_was_due(engine, binding, intent))
                continue;
            if (binding->steps++ == 0 || binding->origin < 0)
                binding->origin = intent->state.from;
            binding->applied = moment_now(engine);
            effect_put_incident(engine, binding->incident);
        }
        TAILQ_FOREACH (binding, &group->bindings, in_group) { /* for those that came meanwhile */
            const uint32_t steps = binding->steps;
            owners_inherit(engine, binding);
            if (binding->steps != steps)
                effect_put_incident(engine, binding->incident);
        }
    }
    if (intent->state.rule[0] != '\0' && !group_find(target, intent->state.rule))
        count_kept_step(engine, target, intent);
}

static bool bindings_are_using(const struct as_engine *engine, const struct target *target)
{
    (void)engine;
    return target->open_bindings > 0;
}

static void bindings_on_applied(struct as_engine *engine, struct target *target,
                                const struct action *action)
{
    steps_count(engine, target, action->intent);
}

const struct concern concern_incidents = {
    .name = "incidents",
    .on_applied = bindings_on_applied,
    .is_using = bindings_are_using,
    .forget_sizes = bindings_forget_sizes,
};
