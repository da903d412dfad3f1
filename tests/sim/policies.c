/*
 * Scaling policies: in some worlds the targets with plain addresses are of objects that come, go,
 * break, are paused by an annotation, and return. Promised is what is promised of new rules, and:
 * in a direction that a policy forbids, no size is set. What is stored of a policy that is broken
 * at a start waits for it.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

static struct sim_policy *policy_find(struct world *world, const char *name)
{
    for (size_t i = 0; i < SPEC_MAX; i++) {
        struct sim_policy *policy = &world->policies[i];
        if (policy->name && strcmp(policy->name, name) == 0)
            return policy;
    }
    return NULL;
}

static bool policy_is_of(const struct target_spec *target)
{
    return target->name && !target->address && !target->pool[0];
}

static bool is_left_out(struct world *world, const char *target)
{
    const struct sim_policy *policy = target ? policy_find(world, target) : NULL;
    return policy && (policy->is_absent || policy->is_awaited);
}

static void add_policy(struct world *world, const char *name)
{
    for (size_t i = 0; i < SPEC_MAX; i++) {
        struct sim_policy *policy = &world->policies[i];
        if (policy->name)
            continue;
        policy->name = name;
        return;
    }
}

/* The targets and rules of the policies that are there. Rules keep their order. */
static struct spec choose_spec(struct world *world, const struct spec *spec)
{
    struct spec kept = {0};
    size_t targets = 0, rules = 0;
    for (size_t i = 0; i < SPEC_MAX && spec->targets[i].name; i++) {
        if (is_left_out(world, spec->targets[i].name))
            continue;
        kept.targets[targets] = spec->targets[i];
        if (is_left_out(world, spec->targets[i].after[0]))
            kept.targets[targets].after[0] = NULL;
        targets++;
    }
    for (size_t i = 0; i < SPEC_MAX && spec->rules[i].name; i++)
        if (!is_left_out(world, spec->rules[i].target))
            kept.rules[rules++] = spec->rules[i];
    return kept;
}

static int policy_compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

struct as_ruleset *policies_make_ruleset(struct world *world, const struct spec *spec)
{
    if (!world->has_policies)
        return spec_make_ruleset(spec);
    for (size_t i = 0; i < SPEC_MAX && spec->targets[i].name; i++)
        if (policy_is_of(&spec->targets[i]) && !policy_find(world, spec->targets[i].name))
            add_policy(world, spec->targets[i].name);
    const struct spec kept = choose_spec(world, spec);
    struct as_ruleset *ruleset = spec_make_ruleset(&kept);
    ruleset->serial = ++world->policy_change.serial;
    world->awaited_count = 0;
    for (size_t i = 0; i < SPEC_MAX; i++)
        if (world->policies[i].name && world->policies[i].is_awaited)
            world->awaited[world->awaited_count++] = world->policies[i].name;
    qsort(world->awaited, world->awaited_count, sizeof(*world->awaited), policy_compare_names);
    ruleset->awaited = world->awaited;
    ruleset->awaited_count = world->awaited_count;
    for (size_t i = 0; i < ruleset->target_count; i++) {
        struct as_target_config *config = ruleset->targets[i];
        struct sim_policy *policy = config->is_templated ? NULL : policy_find(world, config->name);
        if (!policy)
            continue;
        policy->terms = (struct as_policy_terms){
            .namespace = "sim",
            .name = policy->name,
            .uid = "uid",
            .paused = policy->is_broken ? AS_WAYS_BOTH : policy->paused,
            .pause_reason = policy->is_broken ? "broken" : "annotation",
        };
        config->policy = &policy->terms;
    }
    return ruleset;
}

static size_t find_place_of(const struct as_ruleset *ruleset, const char *name)
{
    size_t place = 0;
    while (place < ruleset->target_count && strcmp(ruleset->targets[place]->name, name) != 0)
        place++;
    return place;
}

/* Exchanges the rules of two rule sets for one target. */
static void exchange_rules(const struct as_ruleset *old, const struct as_ruleset *new, size_t was,
                           size_t is)
{
    struct as_target_config *const before = old->targets[was], *const after = new->targets[is];
    size_t at = 0;
    for (size_t i = 0; i < new->rule_count; i++) {
        struct as_rule *rule = new->rules[i];
        if (rule->target != after)
            continue;
        while (old->rules[at]->target != before)
            at++;
        new->rules[i] = old->rules[at];
        new->rules[i]->number = rule->number;
        old->rules[at++] = rule;
    }
    new->targets[is] = before;
    before->number = after->number;
    old->targets[was] = after;
}

/* The target of this place with its rules. */
static void list_policy(const struct as_ruleset *all, size_t place, struct as_ruleset *own)
{
    free(own->targets);
    free(own->rules);
    *own = (struct as_ruleset){.targets = as_xcalloc(1, sizeof(struct as_target_config *)),
                               .rules = as_xcalloc(all->rule_count + 1, sizeof(struct as_rule *))};
    own->targets[own->target_count++] = all->targets[place];
    for (size_t i = 0; i < all->rule_count; i++)
        if (all->rules[i]->target == all->targets[place])
            own->rules[own->rule_count++] = all->rules[i];
}

static bool are_targets_alone(const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < ruleset->target_count; i++)
        if (ruleset->targets[i]->after_count > 0 || ruleset->targets[i]->pool)
            return false;
    return ruleset->zone_count == 0; /* the rule set owns them */
}

void policies_relate(struct world *world, struct as_ruleset *old)
{
    struct sim_policy_change *change = &world->policy_change;
    struct as_ruleset *new = world->daemon.ruleset;
    if (!change->name || old->awaited_count > 0 || new->awaited_count > 0 ||
        !are_targets_alone(new) || !are_targets_alone(old))
        return;
    for (size_t i = 0; i < new->target_count; i++) {
        const size_t was = find_place_of(old, new->targets[i]->name);
        if (was < old->target_count && strcmp(new->targets[i]->name, change->name) != 0)
            exchange_rules(old, new, was, i);
    }
    const size_t was = find_place_of(old, change->name), is = find_place_of(new, change->name);
    new->base = old->serial;
    change->lists[0] = &change->removed;
    change->lists[1] = &change->added;
    new->removed = &change->lists[0];
    new->added = &change->lists[1];
    new->removed_count = was < old->target_count;
    new->added_count = is < new->target_count;
    if (new->removed_count > 0)
        list_policy(old, was, &change->removed);
    if (new->added_count > 0)
        list_policy(new, is, &change->added);
    trouble_note(world, TROUBLE_POLICY_ALONE);
}

enum as_ways policies_get_paused(const struct world *world, const struct server_target *target)
{
    const struct as_target_config *config = rules_find_target(world, target->id);
    return config && config->policy ? config->policy->paused : AS_WAYS_NONE;
}

/* After a start only the present generation of an object is known. */
void policies_on_start(struct world *world)
{
    for (size_t i = 0; i < SPEC_MAX; i++) {
        struct sim_policy *policy = &world->policies[i];
        if (!policy->is_broken)
            continue;
        policy->is_awaited = true;
        trouble_note(world, TROUBLE_POLICY_AWAITED);
    }
}

static void policy_return(struct sim_policy *policy)
{
    policy->is_absent = policy->is_broken = policy->is_awaited = false;
    policy->paused = AS_WAYS_NONE;
}

static void change(struct world *world, struct sim_policy *policy)
{
    const bool was_here = !policy->is_absent && !policy->is_awaited;
    switch (between(world, 0, 4)) {
    case 0:
        policy_return(policy);
        policy->is_absent = true;
        trouble_note(world, TROUBLE_POLICY_GONE);
        break;
    case 1:
        policy->is_broken = was_here;
        trouble_note(world, TROUBLE_POLICY_BROKEN);
        break;
    case 2:
        policy->paused = (enum as_ways)between(world, AS_WAYS_DOWN, AS_WAYS_BOTH);
        trouble_note(world, TROUBLE_POLICY_PAUSED);
        break;
    default:
        policy_return(policy);
        trouble_note(world, TROUBLE_POLICY_RETURNED);
        break;
    }
    trace(world, "policy %s:%s%s%s, paused %d", policy->name, policy->is_absent ? " gone" : "",
          policy->is_broken ? " broken" : "", policy->is_awaited ? " awaited" : "",
          (int)policy->paused);
}

static void on_policy(struct world *world, void *subject, uint64_t argument)
{
    (void)subject, (void)argument;
    struct sim_policy *policy = &world->policies[between(world, 0, SPEC_MAX - 1)];
    if (world->is_calm)
        return;
    if (policy->name) {
        change(world, policy);
        world->policy_change.name = policy->name;
        if (world->daemon.shell && !world->daemon.failed && !world->daemon.stopping)
            daemon_set_rules(world, &world->daemon.spec);
        world->policy_change.name = NULL;
    }
    later(world, between(world, 5, 300) * SECOND, on_policy, NULL, 0);
}

void policies_start(struct world *world)
{
    if (world->has_policies)
        later(world, between(world, 5, 300) * SECOND, on_policy, NULL, 0);
}

void policies_free(struct world *world)
{
    free(world->policy_change.removed.targets);
    free(world->policy_change.removed.rules);
    free(world->policy_change.added.targets);
    free(world->policy_change.added.rules);
}

/* All of them return. */
void policies_calm_down(struct world *world)
{
    if (!world->has_policies)
        return;
    for (size_t i = 0; i < SPEC_MAX; i++)
        policy_return(&world->policies[i]);
    if (world->daemon.shell && !world->daemon.failed)
        daemon_set_rules(world, &world->daemon.spec);
}
