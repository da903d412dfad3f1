/*
 * Random rule sets over a fixed vocabulary, so that what one of them began another one may go on
 * with.
 */
#include "sim.h"

#include <string.h>

#define NAMED 3

static const char *const names[] = {"web", "db", "pool"};
static const char *const rule_names[SPEC_MAX] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"};
static const char *const matches[] = {
    "alertname=A0", "alertname=A1",         "alertname=A2",         "alertname=A3",
    "alertname=A4", "alertname=~\"A0|A2\"", "alertname=~\"A[1-4]\""};
static const struct as_behavior behaviors[] = {
    {.up = {.window_us = 0, .policy_count = 1, .policies = {{AS_POLICY_PODS, 2, 30 * AS_US_PER_S}}},
     .down = {.window_us = 120 * AS_US_PER_S,
              .policy_count = 1,
              .policies = {{AS_POLICY_PERCENT, 50, 60 * AS_US_PER_S}}}},
    {.up = {.window_us = 20 * AS_US_PER_S,
            .policy_count = 1,
            .policies = {{AS_POLICY_PERCENT, 100, 15 * AS_US_PER_S}}},
     .down = {.select = AS_SELECT_DISABLED,
              .policy_count = 1,
              .policies = {{AS_POLICY_PERCENT, 100, 15 * AS_US_PER_S}}}},
};
static const int64_t locks[] = {0, 5, 30, 60, 60, 300};

static int64_t pick_lock(struct world *world)
{
    return locks[between(world, 0, (int64_t)AS_ARRAY_SIZE(locks) - 1)];
}

static void randomize_target(struct world *world, struct target_spec *target)
{
    target->min = (int32_t)between(world, 0, 3);
    target->max = target->min + (int32_t)between(world, 1, 16);
    target->up = pick_lock(world);
    target->down = pick_lock(world);
    target->up_after_down = chance(world, 300) ? pick_lock(world) : 0;
    target->has_down_after_down = chance(world, 300);
    target->down_after_down = pick_lock(world);
    target->enforce_bounds = chance(world, 150);
    target->dry_run = chance(world, 100);
    target->ready_timeout = chance(world, 300) ? between(world, 5, 200) : 0;
    if (chance(world, 250))
        target->behavior = &behaviors[between(world, 0, (int64_t)AS_ARRAY_SIZE(behaviors) - 1)];
    if (chance(world, 250))
        schedules_randomize(world, target);
    if (world->has_approvals && chance(world, 400))
        target->approval = approvals_randomize(world);
}

/* A value at which the rule goes up or down, to another one or by some; or a table of sizes. */
static void randomize_steps(struct world *world, struct rule_spec *rule)
{
    const double goal = (double)between(world, 1, 12) / 2,
                 beyond = (double)between(world, 0, 6) / 2;
    switch (between(world, 0, 2)) {
    case 0:
        rule->up_steps[0] = (struct as_step){.is_above = true, .bound = goal + beyond, .to = goal};
        if (chance(world, 300))
            rule->up_steps[1] = (struct as_step){
                .is_above = true, .bound = goal + beyond + 1, .amount = {.size = 1}};
        break;
    case 1:
        rule->down_steps[0] =
            (struct as_step){.bound = beyond < goal ? goal - beyond : goal, .to = goal};
        break;
    default:
        for (int64_t i = 0; i < between(world, 1, SPEC_STEPS_MAX); i++)
            rule->to_steps[i] = (struct as_step){.bound = goal + (double)(2 * i),
                                                 .amount = {.size = between(world, 1, 12)}};
        break;
    }
}

/* Instead of a step: a value that the rule follows. */
static void randomize_source(struct world *world, struct rule_spec *rule)
{
    rule->up = rule->up_percent = rule->down = rule->down_percent = 0;
    rule->up_to = rule->down_to = 0;
    rule->has_to = false;
    rule->source.query = source_queries[between(world, 0, GUARD - 1)];
    if (chance(world, 400))
        randomize_steps(world, rule);
    else if (chance(world, 500))
        rule->pass_through = true;
    else
        rule->track_average = 1;
}

static void randomize_ending(struct world *world, struct rule_spec *rule)
{
    struct ending_spec *ending = &rule->on_resolved;
    if (!rule->guard)
        rule->guard = "none";
    switch (between(world, 0, 2)) {
    case 0:
        ending->give_back = true;
        ending->after = between(world, 0, 120);
        ending->step_percent = between(world, 10, 100);
        break;
    case 1: ending->down = between(world, 1, 4); break;
    default:
        ending->has_to = true;
        ending->to = between(world, 0, 6);
        break;
    }
}

static void randomize_rule(struct world *world, const struct spec *spec, size_t targets, size_t i,
                           struct rule_spec *rule)
{
    rule->name = rule_names[i];
    rule->match[0] = matches[between(world, 0, (int64_t)AS_ARRAY_SIZE(matches) - 1)];
    rule->target = spec->targets[between(world, 0, (int64_t)targets - 1)].name;
    switch (between(world, 0, 8)) {
    case 7: rule->up_to = between(world, 1, 12); break;
    case 8: rule->down_to = between(world, 1, 12); break;
    case 0:
    case 1: rule->up = between(world, 1, 3); break;
    case 2: rule->up_percent = between(world, 1, 100); break;
    case 3: rule->down = between(world, 1, 2); break;
    case 4: rule->down_percent = between(world, 1, 50); break;
    default:
        rule->has_to = true;
        rule->to = between(world, 0, 12);
        break;
    }
    rule->every = chance(world, 250) ? between(world, 1, 200) : 0;
    rule->max_steps = chance(world, 350) ? (uint32_t)between(world, 1, 4) : 0;
    rule->ineffective_after = chance(world, 300) ? (uint32_t)between(world, 1, 4) : 0;
    if (chance(world, 200))
        randomize_source(world, rule);
    if (chance(world, 200))
        rule->guard = source_queries[GUARD];
    if (chance(world, 250))
        randomize_ending(world, rule);
    rule->dry_run = chance(world, 100);
    rule->disabled = chance(world, 80);
    if (world->has_approvals && chance(world, 300))
        rule->approval = approvals_randomize(world);
}

/* A value alone decides, as with an HPA. Its target has a plain address. */
static void randomize_always(struct world *world, const struct spec *spec, size_t named,
                             struct rule_spec *rule)
{
    *rule = (struct rule_spec){.name = "always", .always = true};
    rule->target = spec->targets[between(world, 0, (int64_t)named - 1)].name;
    rule->every = between(world, 1, 120);
    randomize_source(world, rule);
    if (chance(world, 200))
        rule->guard = source_queries[GUARD];
    rule->dry_run = chance(world, 100);
    rule->disabled = chance(world, 100);
    if (world->has_approvals && chance(world, 300))
        rule->approval = approvals_randomize(world);
}

void rules_randomize(struct world *world, struct spec *spec)
{
    size_t targets = 0;
    if (world->pools) {
        pools_randomize(world, spec);
        return;
    }
    *spec = (struct spec){0};
    for (size_t i = 0; i < NAMED; i++) {
        if (i > 0 && chance(world, 300))
            continue;
        struct target_spec *target = &spec->targets[targets++];
        target->name = names[i];
        target->is_group = i == 2;
        randomize_target(world, target);
    }
    const size_t named = targets;
    if (targets > 1 && chance(world, 300))
        spec->targets[1].after[0] = spec->targets[0].name;
    if (chance(world, 700)) {
        struct target_spec *target = &spec->targets[targets++];
        target->name = "any";
        target->address = "{{ .Labels.app }}";
        target->allow = "app-*";
        randomize_target(world, target);
    }
    if (world->has_fields) {
        struct target_spec *target = &spec->targets[targets++];
        target->name = "memory";
        fields_randomize(world, target);
        randomize_target(world, target);
    }
    size_t rules = 0;
    for (size_t i = 0; i < SPEC_MAX; i++) {
        if (i == 0 || chance(world, 600))
            randomize_rule(world, spec, targets, i, &spec->rules[rules++]);
    }
    if (world->has_always)
        randomize_always(world, spec, named, &spec->rules[rules < SPEC_MAX ? rules : SPEC_MAX - 1]);
}

/* Of an entry that stories.c has renamed, the object's name. */
static const char *object_of(const struct as_target_config *config)
{
    static const char renamed[] = "renamed-";
    const size_t size = sizeof(renamed) - 1;
    return strncmp(config->name, renamed, size) == 0 ? config->name + size : config->name;
}

static const char *last_part(const char *id)
{
    const char *slash = strrchr(id, '/');
    return slash ? slash + 1 : id;
}

const struct as_target_config *rules_find_target(const struct world *world, const char *id)
{
    const struct as_ruleset *ruleset = world->daemon.ruleset;
    const char *name = fields_is(id) ? "memory" : last_part(id);
    if (strncmp(name, "app-", 4) == 0)
        name = "any";
    if (strncmp(name, "moved-", 6) == 0) /* by stories.c, too */
        name += 6;
    for (size_t i = 0; i < ruleset->target_count; i++) {
        if (strcmp(object_of(ruleset->targets[i]), name) == 0)
            return ruleset->targets[i];
    }
    return NULL;
}

const struct as_rule *rules_find_rule(const struct world *world, const char *name)
{
    const struct as_ruleset *ruleset = world->daemon.ruleset;
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        if (strcmp(ruleset->rules[i]->name, name) == 0)
            return ruleset->rules[i];
    }
    return NULL;
}
