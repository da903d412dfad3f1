/*
 * Which open incident proposes something on which target.
 *
 * A binding is made when an incident opens, and made again for all incidents when the rules change;
 * what a rule has already done for an incident (steps, time of the last) is carried over by the
 * names of rule and target.
 */
#include "engine_private.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

bool rule_keeps_progress(const struct as_rule *rule, const struct as_target_config *config)
{
    if (rule->max_steps || rule->every_us || rule->on_resolved.kind == AS_ENDING_GIVE_BACK)
        return true;
    /* without a lock whose end would repeat it, a rule acts once for an incident */
    if (as_action_is_absolute(&rule->action))
        return false;
    return rule->action.kind == AS_ACTION_SCALE_UP ? config->bounds.cooldown.up_us == 0
                                                   : config->bounds.cooldown.down_us == 0;
}

bool binding_is_used_up(const struct binding *binding)
{
    const struct as_rule *rule = binding->group->rule;
    return rule->max_steps && binding->steps >= rule->max_steps;
}

/* When the rule may act for this incident (again), as far as the incident goes and were it not
 * held; the target's lock is a matter of its own. */
as_mono_time binding_get_due_unheld(const struct binding *binding)
{
    const struct as_rule *rule = binding->group->rule;
    if (binding_is_used_up(binding))
        return AS_MONO_NEVER;
    if (binding->steps == 0 || !rule_keeps_progress(rule, binding->group->target->config))
        return (as_mono_time){INT64_MIN};
    if (rule->every_us)
        return (as_mono_time){as_time_add(binding->applied.mono.us, rule->every_us)};
    const struct as_cooldown *cooldown = &binding->group->target->config->bounds.cooldown;
    const bool has_lock =
        rule->action.kind == AS_ACTION_SCALE_DOWN ? cooldown->down_us > 0 : cooldown->up_us > 0;
    return has_lock || as_action_is_absolute(&rule->action) ? (as_mono_time){INT64_MIN}
                                                            : AS_MONO_NEVER;
}

as_mono_time binding_get_due(const struct binding *binding)
{
    return incident_is_held(binding->incident) ? AS_MONO_NEVER : binding_get_due_unheld(binding);
}

/* The earliest time at which one that is not due now will be. */
as_mono_time bindings_get_next_due(const struct as_engine *engine, struct target *target)
{
    as_mono_time next = AS_MONO_NEVER;
    struct group *group;
    const struct binding *binding;
    RB_FOREACH (group, group_tree, &target->groups) {
        if (!rule_keeps_progress(group->rule, target->config))
            continue;
        TAILQ_FOREACH (binding, &group->bindings, in_group) {
            const as_mono_time due = binding_get_due(binding);
            if (due.us > engine->mono.us && due.us < next.us)
                next = due;
        }
    }
    return next;
}

struct group *group_find(struct target *target, const char *rule)
{
    struct group *group;
    RB_FOREACH (group, group_tree, &target->groups) {
        if (strcmp(group->rule->name, rule) == 0)
            return group;
    }
    return NULL;
}

static struct group *group_get(struct target *target, const struct as_rule *rule)
{
    struct group key = {.rule = rule};
    struct group *group = RB_FIND(group_tree, &target->groups, &key);
    if (group)
        return group;
    group = as_xcalloc(1, sizeof(*group));
    group->target = target;
    group->rule = rule;
    TAILQ_INIT(&group->bindings);
    RB_INSERT(group_tree, &target->groups, group);
    return group;
}

static void progress_deinit(struct as_progress *progress)
{
    free((char *)(uintptr_t)progress->rule);
    free((char *)(uintptr_t)progress->target);
}

static void bind(const struct as_engine *engine, struct binding *binding, struct incident *incident,
                 struct group *group)
{
    *binding = (struct binding){
        .incident = incident, .group = group, .applied = AS_MOMENT_NEVER, .origin = -1};
    struct binding *before = TAILQ_LAST(&group->bindings, binding_list);
    while (before && before->incident->serial > incident->serial) /* bound anew */
        before = TAILQ_PREV(before, binding_list, in_group);
    if (before)
        TAILQ_INSERT_AFTER(&group->bindings, before, binding, in_group);
    else
        TAILQ_INSERT_HEAD(&group->bindings, binding, in_group);
    group->count++;
    group->target->open_bindings++;

    for (uint32_t i = 0; i < incident->kept_count; i++) {
        struct as_progress *progress = &incident->kept[i];
        if (strcmp(progress->rule, group->rule->name) == 0 &&
            as_target_is_same(progress->target, group->target->ref->id)) {
            binding->steps = progress->steps;
            binding->applied = progress->applied;
            binding->origin = progress->origin;
            progress_deinit(progress);
            *progress = incident->kept[--incident->kept_count];
            break;
        }
    }
    owners_inherit(engine, binding);
}

/* The target that a rule leads to; NULL where the labels give none that is allowed, where it
 * belongs to another entry of the rule files, or where no credential of the incident may trigger
 * the rule there. */
static struct target *resolve(struct as_engine *engine, const struct incident *incident,
                              const struct as_rule *rule, const struct as_labels *labels,
                              const struct as_labels *annotations, bool *is_forbidden)
{
    const struct as_target_config *config = &engine->ruleset->targets[rule->target];
    /* whatever the labels, a plain address leads to the one target that is there from the start */
    struct target *named = config->is_templated ? NULL : LIST_FIRST(&engine->members[rule->target]);
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

static size_t count_enabled(const struct as_engine *engine, const uint32_t *rules, size_t count)
{
    size_t enabled = 0;
    for (size_t i = 0; i < count; i++)
        enabled += engine->ruleset->rules[rules[i]].enabled;
    return enabled;
}

enum bind_result bindings_check(struct as_engine *engine, const struct as_labels *labels,
                                const char *receiver)
{
    const uint32_t *rules;
    const size_t count = as_rule_index_match(engine->index, labels, &receiver, 1, &rules);
    if (count == 0)
        return BIND_NO_RULE;
    return count_enabled(engine, rules, count) ? BIND_OK : BIND_DISABLED;
}

enum bind_result bindings_make(struct as_engine *engine, struct incident *incident,
                               const struct as_labels *labels, const struct as_labels *annotations)
{
    const uint32_t *rules;
    const size_t count =
        as_rule_index_match(engine->index, labels, (const char *const *)incident->receivers,
                            incident->receiver_count, &rules);
    if (count == 0)
        return BIND_NO_RULE;
    const size_t enabled = count_enabled(engine, rules, count);
    if (enabled == 0)
        return BIND_DISABLED;

    bool is_forbidden = false;
    incident->bindings = as_xcalloc(enabled, sizeof(*incident->bindings));
    for (size_t i = 0; i < count; i++) {
        const struct as_rule *rule = &engine->ruleset->rules[rules[i]];
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

static bool forget_sizes(struct incident *incident, const struct target *target)
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
        if (progress->origin < 0 || !as_target_is_same(progress->target, target->ref->id))
            continue;
        progress->origin = -1;
        changed = true;
    }
    return changed;
}

/* The sizes before the first steps were those of another object. To be committed. */
void bindings_forget_sizes(struct as_engine *engine, struct target *target)
{
    struct incident *incident;
    TAILQ_FOREACH (incident, &engine->open, in_order) {
        if (forget_sizes(incident, target))
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

/* A change of the size by this rule is under way: it may become a step of the incident. */
static bool is_awaited(const struct binding *binding)
{
    const struct target *target = binding->group->target;
    const struct intent *const intents[] = {target->maybe, target->intent};
    for (size_t i = 0; i < AS_ARRAY_SIZE(intents); i++) {
        if (intents[i] && strcmp(intents[i]->rule, binding->group->rule->name) == 0)
            return true;
    }
    return false;
}

/* Keeps by name what rules have done for an incident, then unbinds it. */
static void set_aside(struct as_engine *engine, struct incident *incident)
{
    if (incident->binding_count > 0)
        incident->kept =
            as_xrealloc_array(incident->kept, incident->kept_count + incident->binding_count,
                              sizeof(*incident->kept));
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct binding *binding = &incident->bindings[i];
        if (binding->steps == 0 && !is_awaited(binding))
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

void incident_free(struct incident *incident)
{
    for (uint32_t i = 0; i < incident->kept_count; i++)
        progress_deinit(&incident->kept[i]);
    free(incident->kept);
    free((char *)(uintptr_t)incident->key.owner);
    for (uint32_t i = 0; i < incident->receiver_count; i++)
        free(incident->receivers[i]);
    free(incident->receivers);
    for (uint32_t i = 0; i < incident->credential_count; i++)
        free(incident->credentials[i]);
    free(incident->credentials);
    free(incident->reported);
    free(incident->bindings);
    as_labels_free(incident->labels);
    as_labels_free(incident->annotations);
    free(incident);
}

static void make_anew(struct as_engine *engine, struct incident *incident)
{
    (void)bindings_make(engine, incident, incident->labels, incident->annotations);
    room_account(engine, incident);
}

/* After something that the incident is matched by has changed. */
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

static void remake_in_order(struct as_engine *engine)
{
    struct incident **incidents = as_xcalloc(engine->open_count + 1, sizeof(struct incident *));
    struct incident *incident;
    size_t count = 0;
    TAILQ_FOREACH (incident, &engine->open, in_order)
        incidents[count++] = incident;
    qsort(incidents, count, sizeof(struct incident *), compare_serials);
    for (size_t i = 0; i < count; i++)
        make_anew(engine, incidents[i]);
    free(incidents);
}

/* What outlasts the incidents: endings, what operators ordered, increases under way. */
static void remake_rest(struct as_engine *engine)
{
    struct target *target;
    const size_t effects = engine->effect_count;
    RB_FOREACH (target, target_tree, &engine->targets) {
        bool is_changed = endings_remake(engine, target);
        is_changed = orders_remake(engine, target) || is_changed;
        if (growth_remake(engine, target) || is_changed)
            effect_put_target(engine, target);
    }
    if (engine->effect_count > effects)
        effect_commit(engine);
}

void bindings_remake_all(struct as_engine *engine)
{
    struct incident *incident;
    TAILQ_FOREACH (incident, &engine->open, in_order)
        set_aside(engine, incident);
    owners_find(engine);
    struct target *target, *next;
    RB_FOREACH (target, target_tree, &engine->targets)
        target_set_config(engine, target, NULL);
    after_reset(engine);

    /* a plain address belongs to its entry, whatever a template elsewhere may give */
    targets_make_named(engine);
    remake_in_order(engine);
    remake_rest(engine);
    RB_FOREACH_SAFE (target, target_tree, &engine->targets, next) {
        target->dirty = target->dirty || target->open_bindings > 0;
        if (target->phase == PHASE_IDLE)
            target_settle_down(engine, target);
    }
}
