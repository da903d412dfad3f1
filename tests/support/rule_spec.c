/*
 * Builds what the configuration's loader would build from the same rules.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "rule_spec.h"

static void give_up(const char *what, const char *which)
{
    (void)fprintf(stderr, "rule_spec: %s: %s\n", what, which);
    abort();
}

static struct as_address_field make_field(const char *key, const char *text)
{
    struct as_error error;
    struct as_address_field field = {.key = as_xstrdup(key)};
    if (as_template_new(text, &field.value, &error) != 0)
        give_up("template", error.text);
    return field;
}

static void make_address(struct as_target_config *target, const struct target_spec *spec)
{
    const char *name = spec->address ? spec->address : spec->name;
    const char *const kubernetes[][2] = {
        {"cluster", spec->cluster ? spec->cluster : "default"},
        {"apiVersion", spec->version ? spec->version : "apps/v1"},
        {"kind", "Deployment"},
        {"namespace", spec->namespace ? spec->namespace : "shop"},
        {"name", name},
        {"field", spec->field},
        {"unit", spec->container || spec->field ? "64Mi" : NULL},
        {"absent", spec->absent},
        {"container", spec->container},
        {"resource", spec->container ? "memory" : NULL},
        {"apply", spec->container && spec->by_pods ? "pods" : NULL},
    };
    const char *const group[][2] = {
        {"provider", "mine"}, {"url", spec->url}, {"name", spec->url ? spec->group_name : name}};
    const bool is_group = spec->is_group || spec->url;
    if (spec->pool[0]) {
        target->kind = &as_target_kind_pool;
        target->address_count = 1;
        target->address = as_xcalloc(1, sizeof(*target->address));
        target->address[0] = make_field("name", spec->name);
        return;
    }
    target->kind = is_group ? &as_target_kind_node_group : &as_target_kind_kubernetes;
    const size_t count = is_group ? AS_ARRAY_SIZE(group) : AS_ARRAY_SIZE(kubernetes);
    target->address = as_xcalloc(count, sizeof(*target->address));
    for (size_t i = 0; i < count; i++) {
        const char *const *row = is_group ? group[i] : kubernetes[i];
        if (!row[1])
            continue;
        target->address[target->address_count++] = make_field(row[0], row[1]);
        target->is_templated = target->is_templated || strstr(row[1], "{{");
    }
}

static void allow(struct as_target_config *target, enum as_allow list, const char *glob)
{
    target->allowed[list].items = as_xcalloc(1, sizeof(char *));
    target->allowed[list].items[0] = as_xstrdup(glob);
    target->allowed[list].count = 1;
}

/* Equal specifications have equal digests. A digest is never zero. */
static struct as_digest make_entry_digest(const struct target_spec *spec)
{
    const unsigned char *bytes = (const unsigned char *)spec;
    struct as_digest digest = {{1}};
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < sizeof(*spec); i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    memcpy(digest.bytes + 1, &hash, sizeof(hash));
    return digest;
}

static struct as_target_config make_target(const struct target_spec *spec)
{
    struct as_target_config target = {
        .digest = make_entry_digest(spec),
        .name = as_xstrdup(spec->name),
        .bounds = {.min = spec->min,
                   .max = spec->max ? spec->max : 10,
                   .cooldown = {spec->up * AS_US_PER_S, spec->down * AS_US_PER_S,
                                spec->up_after_down * AS_US_PER_S, spec->has_down_after_down,
                                spec->down_after_down * AS_US_PER_S},
                   .tolerance_up = 0.1,
                   .tolerance_down = 0.1,
                   .enforce_bounds = spec->enforce_bounds,
                   .rollout = spec->rollout},
        .nodes = {.grace_us = -1,
                  .ready_timeout_us = 10 * AS_US_PER_MIN,
                  .unneeded = as_unneeded_config_default},
        .of_pool = AS_NO_TARGET,
        .family = spec->family,
        .dry_run = spec->dry_run,
    };
    if (spec->behavior) {
        target.bounds.has_behavior = true;
        target.bounds.behavior = *spec->behavior;
    }
    if (spec->ready_timeout)
        target.nodes.ready_timeout_us = spec->ready_timeout * AS_US_PER_S;
    target.ready_timeout_us = spec->ready_timeout * AS_US_PER_S;
    if (spec->unneeded_for)
        target.nodes.unneeded.for_us = spec->unneeded_for * AS_US_PER_S;
    if (spec->is_group)
        target.nodes.cluster = as_xstrdup(spec->cluster ? spec->cluster : "default");
    make_address(&target, spec);
    if (spec->allow)
        allow(&target, AS_ALLOW_NAMES, spec->allow);
    if (spec->list)
        target.list_selector = as_xstrdup(spec->list);
    for (size_t i = 0; i < target.address_count; i++) {
        const struct as_address_field *field = &target.address[i];
        const enum as_allow list = as_target_kind_find_allow(target.kind, field->key);
        if (!as_template_is_plain(field->value) && list < AS_ALLOW_NAMES)
            allow(&target, list, "*");
    }
    return target;
}

static struct as_template *make_query(const char *text)
{
    struct as_template *template = NULL;
    struct as_error error;
    if (as_template_new(text, &template, &error) != 0 ||
        as_template_check_promql(template, &error) != 0)
        give_up("query", error.text);
    return template;
}

static struct as_source make_source(const struct source_spec *spec)
{
    if (spec->query)
        return (struct as_source){
            .kind = AS_SOURCE_QUERY,
            .query = make_query(spec->query),
            .per_pod = spec->per_pod,
            .pod_label = spec->per_pod ? as_xstrdup("pod") : NULL,
        };
    if (spec->nodes != AS_NODES_NONE)
        return (struct as_source){.kind = AS_SOURCE_NODES,
                                  .name = as_xstrdup(as_nodes_word_get_text(spec->nodes)),
                                  .nodes = spec->nodes};
    const char *name = spec->annotation ? spec->annotation : spec->label;
    enum as_source_kind kind = spec->annotation ? AS_SOURCE_ANNOTATION : AS_SOURCE_LABEL;
    return name ? (struct as_source){.kind = kind, .name = as_xstrdup(name)}
                : (struct as_source){0};
}

static struct as_amount make_amount(int64_t size, int64_t percent, int64_t at_least)
{
    return (struct as_amount){.is_percent = percent > 0,
                              .size = size,
                              .milli_percent = percent * 1000,
                              .at_least = at_least ? at_least : 1};
}

static bool is_step(const struct as_step *step)
{
    return step->amount.size > 0 || step->amount.is_percent || step->to > 0;
}

/* Returns what the action's steps point to. */
static struct as_step *make_steps(const struct as_step *specs, struct as_action *action)
{
    struct as_step *steps = as_xcalloc(SPEC_STEPS_MAX, sizeof(*steps));
    action->steps = steps;
    for (; action->step_count < SPEC_STEPS_MAX && is_step(&specs[action->step_count]);
         action->step_count++) {
        struct as_step *step = &steps[action->step_count];
        *step = specs[action->step_count];
        step->amount.at_least = step->amount.at_least ? step->amount.at_least : 1;
    }
    return steps;
}

static bool make_track(const struct rule_spec *spec, struct as_track *track)
{
    if (spec->track_value > 0)
        *track = (struct as_track){.goal = AS_GOAL_VALUE, .value = spec->track_value};
    else if (spec->track_average > 0)
        *track = (struct as_track){.goal = AS_GOAL_AVERAGE_VALUE, .value = spec->track_average};
    else if (spec->track_utilization > 0)
        *track = (struct as_track){.goal = AS_GOAL_UTILIZATION,
                                   .value = spec->track_utilization,
                                   .resource = spec->resource,
                                   .of_limits = spec->of_limits,
                                   .container = spec->container,
                                   .is_resource = true};
    track->by_owner = spec->by_owner;
    return track->value > 0;
}

static void make_action(const struct rule_spec *spec, struct as_rule *rule)
{
    struct as_action *action = &rule->action;
    if (spec->has_to) {
        *action = (struct as_action){.kind = AS_ACTION_SCALE_TO, .size = spec->to};
    } else if (is_step(&spec->to_steps[0])) {
        action->kind = AS_ACTION_SCALE_TO;
        rule->steps = make_steps(spec->to_steps, action);
    } else if (spec->pass_through) {
        action->kind = AS_ACTION_PASS_THROUGH;
    } else if (spec->hold) {
        *action = (struct as_action){.kind = AS_ACTION_HOLD, .hold = spec->hold};
    } else if (make_track(spec, &action->track)) {
        action->kind = AS_ACTION_TRACK;
    } else {
        bool is_up =
            spec->fit || spec->up_to || spec->up || spec->up_percent || is_step(&spec->up_steps[0]);
        action->kind = is_up ? AS_ACTION_SCALE_UP : AS_ACTION_SCALE_DOWN;
        action->amount = make_amount(is_up ? spec->up : spec->down,
                                     is_up ? spec->up_percent : spec->down_percent, spec->at_least);
        action->is_fit = spec->fit;
        action->is_take = spec->take;
        action->is_to = spec->up_to || spec->down_to;
        action->size = is_up ? spec->up_to : spec->down_to;
        const struct as_step *steps = is_up ? spec->up_steps : spec->down_steps;
        if (is_step(&steps[0]))
            rule->steps = make_steps(steps, action);
    }
}

static struct as_ending make_ending(const struct ending_spec *spec)
{
    struct as_ending ending = {.kind = AS_ENDING_NOTHING};
    if (spec->give_back) {
        ending.kind = AS_ENDING_GIVE_BACK;
        ending.after_us = spec->after * AS_US_PER_S;
        ending.step_milli_percent = (spec->step_percent ? spec->step_percent : 100) * 1000;
    } else if (spec->has_to) {
        ending.kind = AS_ENDING_SCALE;
        ending.action = (struct as_action){.kind = AS_ACTION_SCALE_TO, .size = spec->to};
    } else if (spec->down || spec->down_percent) {
        ending.kind = AS_ENDING_SCALE;
        ending.action = (struct as_action){
            .kind = AS_ACTION_SCALE_DOWN, .amount = make_amount(spec->down, spec->down_percent, 0)};
    }
    return ending;
}

static uint32_t find_target(const struct spec *spec, const char *name)
{
    for (uint32_t i = 0; i < SPEC_MAX && spec->targets[i].name; i++) {
        if (strcmp(spec->targets[i].name, name) == 0)
            return i;
    }
    give_up("no such target", name);
    return 0;
}

/* Of what tests change: another digest for other numbers, by FNV-1a. */
static struct as_digest make_digest(const struct target_spec *target, const struct rule_spec *spec)
{
    const int64_t numbers[] = {spec->up,
                               spec->down,
                               spec->up_percent,
                               spec->down_percent,
                               spec->at_least,
                               spec->up_to,
                               spec->down_to,
                               spec->to,
                               spec->every,
                               spec->max_steps,
                               spec->approval.above,
                               spec->approval.for_us,
                               target->min,
                               target->max,
                               target->up,
                               target->down,
                               target->ready_timeout,
                               target->dry_run,
                               target->enforce_bounds,
                               target->approval.above,
                               target->approval.for_us};
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < AS_ARRAY_SIZE(numbers); i++)
        hash = (hash ^ (uint64_t)numbers[i]) * UINT64_C(1099511628211);
    for (const char *at = spec->match[0] ? spec->match[0] : ""; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    struct as_digest digest = {0};
    memcpy(digest.bytes, &hash, sizeof(hash));
    return digest;
}

static struct as_rule make_rule(const struct spec *all, const struct as_ruleset *ruleset,
                                const struct rule_spec *spec)
{
    const uint32_t number = find_target(all, spec->target);
    struct as_rule rule = {
        .name = as_xstrdup(spec->name),
        .target = ruleset->targets[number],
        .source = make_source(&spec->source),
        .on_resolved = make_ending(&spec->on_resolved),
        .every_us = spec->every * AS_US_PER_S,
        .max_steps = spec->max_steps,
        .fallback = spec->fallback,
        .ineffective_after = spec->ineffective_after,
        .dry_run = spec->dry_run,
        .enabled = !spec->disabled,
        .is_always = spec->always,
    };
    make_action(spec, &rule);
    const struct target_spec *target = &all->targets[number];
    rule.approval = spec->approval.is_set ? spec->approval : target->approval;
    rule.digest = make_digest(target, spec);
    if (spec->guard) {
        bool is_waived = strcmp(spec->guard, "none") == 0;
        rule.guard_kind = is_waived ? AS_GUARD_WAIVED : AS_GUARD_QUERY;
        rule.guard = is_waived ? NULL : make_query(spec->guard);
    }
    rule.matchers = as_xcalloc(AS_ARRAY_SIZE(spec->match), sizeof(*rule.matchers));
    for (size_t i = 0; i < AS_ARRAY_SIZE(spec->match) && spec->match[i]; i++) {
        struct as_error error;
        if (as_matcher_init(&rule.matchers[rule.matcher_count++], spec->match[i], &error) != 0)
            give_up("matcher", error.text);
    }
    if (spec->receiver) {
        rule.receivers = as_xcalloc(1, sizeof(char *));
        rule.receivers[rule.receiver_count++] = as_xstrdup(spec->receiver);
    }
    return rule;
}

static void make_after(const struct spec *all, const struct target_spec *spec,
                       struct as_target_config *target)
{
    target->after = as_xcalloc(AS_ARRAY_SIZE(spec->after), sizeof(*target->after));
    for (size_t i = 0; i < AS_ARRAY_SIZE(spec->after) && spec->after[i]; i++)
        target->after[target->after_count++] = find_target(all, spec->after[i]);
}

static const struct as_zone *open_zone(struct as_ruleset *ruleset, const char *name)
{
    struct as_error error = AS_ERROR_INIT;
    ruleset->zones =
        as_xrealloc_array(ruleset->zones, ruleset->zone_count + 1, sizeof(*ruleset->zones));
    if (as_zone_open(name, &ruleset->zones[ruleset->zone_count], &error) != 0)
        give_up(name, error.text);
    return ruleset->zones[ruleset->zone_count++];
}

static void make_schedules(const struct target_spec *spec, struct as_ruleset *ruleset,
                           struct as_target_config *target)
{
    target->schedules = as_xcalloc(AS_ARRAY_SIZE(spec->schedules), sizeof(*target->schedules));
    for (size_t i = 0; i < AS_ARRAY_SIZE(spec->schedules) && spec->schedules[i].name; i++) {
        const struct schedule_spec *from = &spec->schedules[i];
        target->schedules[target->schedule_count++] = (struct as_schedule){
            .name = as_xstrdup(from->name),
            .zone = from->zone ? open_zone(ruleset, from->zone) : NULL,
            .days = from->days ? from->days : AS_SCHEDULE_ALL_DAYS,
            .from_s = from->zone ? (int32_t)from->from : 0,
            .to_s = from->zone ? (int32_t)from->to : 0,
            .begin = {from->zone ? 0 : from->from * AS_US_PER_S},
            .end = {from->zone ? 0 : from->to * AS_US_PER_S},
            .has_min = from->min > 0 || from->is_zero,
            .min = from->min,
            .has_max = from->max > 0 || from->is_zero,
            .max = from->max,
            .at_end = from->end,
        };
    }
}

static void make_pool(const struct target_spec *spec, struct as_ruleset *ruleset, uint32_t pool)
{
    struct as_target_config *target = ruleset->targets[pool];
    if (!spec->pool[0])
        return;
    target->pool = as_xcalloc(1, sizeof(*target->pool));
    *target->pool = as_pool_config_default;
    target->pool->choose[0] = spec->choose;
    target->pool->choose_count = 1;
    target->pool->balance = spec->balance;
    target->pool->groups = as_xcalloc(AS_ARRAY_SIZE(spec->pool), sizeof(uint32_t));
    for (size_t i = 0; i < AS_ARRAY_SIZE(spec->pool) && spec->pool[i]; i++) {
        for (uint32_t j = 0; j < ruleset->target_count; j++) {
            struct as_target_config *group = ruleset->targets[j];
            if (strcmp(group->name, spec->pool[i]) != 0)
                continue;
            target->pool->groups[target->pool->group_count++] = j;
            target->bounds.min += group->bounds.min;
            group->of_pool = pool;
            group->bounds.cooldown = (struct as_cooldown){0};
        }
    }
}

struct as_ruleset *spec_make_ruleset(const struct spec *spec)
{
    struct as_ruleset *ruleset = as_xcalloc(1, sizeof(*ruleset));
    size_t targets = 0, rules = 0;
    while (targets < SPEC_MAX && spec->targets[targets].name)
        targets++;
    while (rules < SPEC_MAX && spec->rules[rules].name)
        rules++;
    as_ruleset_make_room(ruleset, targets, rules);
    for (uint32_t i = 0; i < targets; i++) {
        *ruleset->targets[i] = make_target(&spec->targets[i]);
        ruleset->targets[i]->number = i;
    }
    for (size_t i = 0; i < ruleset->target_count; i++)
        make_after(spec, &spec->targets[i], ruleset->targets[i]);
    for (size_t i = 0; i < ruleset->target_count; i++)
        make_schedules(&spec->targets[i], ruleset, ruleset->targets[i]);
    for (size_t i = 0; i < ruleset->target_count; i++)
        make_pool(&spec->targets[i], ruleset, (uint32_t)i);
    for (uint32_t i = 0; i < rules; i++) {
        *ruleset->rules[i] = make_rule(spec, ruleset, &spec->rules[i]);
        ruleset->rules[i]->number = i;
    }
    memset(ruleset->digest, 'd', sizeof(ruleset->digest) - 1);
    return ruleset;
}
