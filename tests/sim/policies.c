/*
 * Scaling policies: in some worlds the targets with plain addresses are of objects that come, go,
 * break, are paused by an annotation, and return. Promised is what is promised of new rules, and:
 * in a direction that a policy forbids, no size is set. What is stored of a policy that is broken
 * at a start waits for it.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

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
    world->awaited_count = 0;
    for (size_t i = 0; i < SPEC_MAX; i++)
        if (world->policies[i].name && world->policies[i].is_awaited)
            world->awaited[world->awaited_count++] = world->policies[i].name;
    qsort(world->awaited, world->awaited_count, sizeof(*world->awaited), policy_compare_names);
    ruleset->awaited = world->awaited;
    ruleset->awaited_count = world->awaited_count;
    for (size_t i = 0; i < ruleset->target_count; i++) {
        struct as_target_config *config = &ruleset->targets[i];
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
        if (world->daemon.shell && !world->daemon.failed && !world->daemon.stopping)
            daemon_set_rules(world, &world->daemon.spec);
    }
    later(world, between(world, 5, 300) * SECOND, on_policy, NULL, 0);
}

void policies_start(struct world *world)
{
    if (world->has_policies)
        later(world, between(world, 5, 300) * SECOND, on_policy, NULL, 0);
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
