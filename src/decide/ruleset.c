/*
 * Frees a rule set; config makes it from the rule files. Also frees a partial one (zeroed memory
 * elsewhere), for a loader that gives up halfway.
 */
#include <alertscaler/decide/ruleset.h>

#include <stdlib.h>
#include <string.h>

static void free_strings(char **strings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(strings[i]);
    free(strings);
}

bool as_target_config_has_nodes(const struct as_target_config *config)
{
    bool has_url = false;
    for (size_t i = 0; i < config->address_count; i++)
        has_url = has_url || strcmp(config->address[i].key, "url") == 0;
    return config->kind->has_nodes && config->nodes.cluster && (config->nodes.select || !has_url);
}

static void deinit_target(struct as_target_config *target)
{
    for (size_t i = 0; i < target->address_count; i++) {
        free(target->address[i].key);
        as_template_free(target->address[i].value);
    }
    free(target->address);
    free(target->name);
    for (enum as_allow i = 0; i < AS_ALLOW_COUNT; i++)
        free_strings(target->allowed[i].items, target->allowed[i].count);
    free(target->after);
    as_nodes_config_deinit(&target->nodes);
    if (target->pool) {
        free(target->pool->groups);
        free_strings(target->pool->ignore_labels, target->pool->ignore_label_count);
    }
    free(target->pool);
    for (size_t i = 0; i < target->schedule_count; i++)
        free(target->schedules[i].name);
    free(target->schedules);
}

static void deinit_source(struct as_source *source)
{
    free(source->name);
    as_template_free(source->query);
    free(source->pod_label);
}

static void deinit_rule(struct as_rule *rule)
{
    for (size_t i = 0; i < rule->matcher_count; i++)
        as_matcher_deinit(&rule->matchers[i]);
    free(rule->matchers);
    free(rule->name);
    free_strings(rule->receivers, rule->receiver_count);
    free(rule->steps);
    deinit_source(&rule->source);
    as_template_free(rule->guard);
}

const struct as_rule *as_ruleset_find_rule(const struct as_ruleset *ruleset, const char *name)
{
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        if (strcmp(ruleset->rules[i].name, name) == 0)
            return &ruleset->rules[i];
    }
    return NULL;
}

struct as_ruleset *as_ruleset_free(struct as_ruleset *ruleset)
{
    if (!ruleset)
        return NULL;
    for (size_t i = 0; i < ruleset->target_count; i++)
        deinit_target(&ruleset->targets[i]);
    for (size_t i = 0; i < ruleset->rule_count; i++)
        deinit_rule(&ruleset->rules[i]);
    free(ruleset->targets);
    for (size_t i = 0; i < ruleset->zone_count; i++)
        as_zone_free(ruleset->zones[i]);
    free(ruleset->zones);
    free(ruleset->rules);
    free(ruleset);
    return NULL;
}

struct as_schedule_bounds as_target_config_get_bounds(const struct as_target_config *config,
                                                      as_wall_time now)
{
    return as_schedules_get_bounds(config->schedules, config->schedule_count, config->bounds.min,
                                   config->bounds.max, now);
}

bool as_source_is_asked(const struct as_source *source)
{
    return source->kind == AS_SOURCE_QUERY || source->kind == AS_SOURCE_NODES;
}
