/*
 * What credentials reach. An incident stores the credentials that sent it. A rule acts on it if one
 * of them may trigger that rule on that target. What a credential may not trigger it may not
 * influence either: for an alert with rules beyond its reach it has its own incident, and cannot
 * change or end the shared one.
 *
 * Alertmanager's list and time have the credential "", which reaches everything.
 */
#include "engine_scopes.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#define CREDENTIALS_MAX 64 /* per incident */

bool scope_is_whole(const struct as_engine *engine, const char *credential)
{
    return as_scope_is_whole(engine->config.scopes, engine->config.scope_count, credential);
}

bool scope_lets(const struct as_engine *engine, const char *credential, const struct as_rule *rule,
                const struct as_target_ref *ref)
{
    return as_scope_allows(engine->config.scopes, engine->config.scope_count, credential,
                           rule->name, engine->ruleset->targets[rule->target].name, ref->id);
}

bool scope_allows(const struct as_engine *engine, const struct incident *incident,
                  const struct as_rule *rule, const struct as_target_ref *ref)
{
    for (uint32_t i = 0; i < incident->credential_count; i++) {
        if (scope_lets(engine, incident->credentials[i], rule, ref))
            return true;
    }
    return false;
}

/* An order has no rule. Orders to all targets need an unrestricted credential. */
bool scope_allows_order(const struct as_engine *engine, const char *credential,
                        const struct target *target)
{
    if (!target)
        return scope_is_whole(engine, credential);
    return as_scope_allows_target(engine->config.scopes, engine->config.scope_count, credential,
                                  target->config ? target->config->name : NULL, target->ref->id);
}

const char *scope_find_narrowed(const struct as_engine *engine, const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->credential_count; i++) {
        if (scope_is_whole(engine, incident->credentials[i]))
            return NULL;
    }
    return incident->credential_count > 0 ? incident->credentials[0] : NULL;
}

const char *scope_find_sender(const struct as_engine *engine, const struct target *target)
{
    struct group_tree *groups = (struct group_tree *)(uintptr_t)&target->groups;
    const char *first = NULL;
    struct group *group;
    struct binding *binding;
    if (engine->config.scope_count == 0 || target->ordered.is_set)
        return NULL;
    if (target->open_bindings == 0)
        return target->sender;
    RB_FOREACH (group, group_tree, groups) {
        TAILQ_FOREACH (binding, &group->bindings, in_group) {
            const char *credential = scope_find_narrowed(engine, binding->incident);
            if (!credential)
                return NULL;
            first = first ? first : credential;
        }
    }
    return first;
}

const char *target_note_sender(const struct as_engine *engine, struct target *target)
{
    const char *sender = scope_find_sender(engine, target);
    if (!as_str_equal(sender, target->sender)) {
        char *former = target->sender;
        target->sender = sender ? as_xstrdup(sender) : NULL;
        free(former);
    }
    return target->sender;
}

static bool reaches_bound(const struct as_engine *engine, const char *credential,
                          const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct group *group = incident->bindings[i].group;
        if (scope_lets(engine, credential, group->rule, group->target->ref))
            return true;
    }
    return false;
}

/* True also if no rule matches: then the outcome says so. */
bool scope_reaches(struct as_engine *engine, const char *credential,
                   const struct incident *incident, const struct as_listed_alert *alert)
{
    if (scope_is_whole(engine, credential))
        return true;
    const uint32_t *rules;
    const size_t count = as_rule_index_match(engine->index, alert->labels, alert->receivers,
                                             alert->receiver_count, &rules);
    size_t beyond = 0;
    for (size_t i = 0; i < count; i++) {
        const struct as_rule *rule = &engine->ruleset->rules[rules[i]];
        const struct as_target_config *config = &engine->ruleset->targets[rule->target];
        AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
        if (!rule->enabled ||
            as_target_ref_new(config, alert->labels, alert->annotations, &ref, NULL) != 0)
            continue;
        if (scope_lets(engine, credential, rule, ref))
            return true;
        beyond++;
    }
    if (incident && incident->binding_count > 0) /* its rules may name other receivers */
        return reaches_bound(engine, credential, incident);
    return beyond == 0;
}

static bool is_by_annotations(const struct as_target_config *config)
{
    for (size_t i = 0; i < config->address_count; i++) {
        enum as_template_map map;
        size_t at = 0;
        while (as_template_find_next(config->address[i].value, &at, &map)) {
            if (map == AS_TEMPLATE_ANNOTATIONS)
                return true;
        }
    }
    return false;
}

static bool spans_rule(const struct as_engine *engine, const char *credential,
                       const struct as_rule *rule, const struct as_labels *labels)
{
    static const struct as_labels no_annotations = {0};
    const struct as_target_config *config = &engine->ruleset->targets[rule->target];
    if (as_scope_allows(engine->config.scopes, engine->config.scope_count, credential, rule->name,
                        config->name, "")) /* by the entry's name: any address */
        return true;
    AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
    if (is_by_annotations(config))
        return false;
    return as_target_ref_new(config, labels, &no_annotations, &ref, NULL) != 0 ||
           scope_lets(engine, credential, rule, ref);
}

bool scope_spans(const struct as_engine *engine, const char *credential,
                 const struct as_labels *labels)
{
    if (scope_is_whole(engine, credential))
        return true;
    const uint32_t *rules;
    const size_t count = as_rule_index_match(engine->index, labels, NULL, 0, &rules);
    for (size_t i = 0; i < count; i++) {
        const struct as_rule *rule = &engine->ruleset->rules[rules[i]];
        if (rule->enabled && !spans_rule(engine, credential, rule, labels))
            return false;
    }
    return true;
}

const char *scope_get_owner(const struct as_engine *engine, const char *credential,
                            const struct as_labels *labels)
{
    return scope_spans(engine, credential, labels) ? "" : credential;
}

bool scope_covers(const struct as_engine *engine, const char *credential,
                  const struct incident *incident)
{
    for (uint32_t i = 0; i < incident->binding_count; i++) {
        const struct group *group = incident->bindings[i].group;
        if (!scope_lets(engine, credential, group->rule, group->target->ref))
            return false;
    }
    return true;
}

bool incident_add_credential(struct incident *incident, const char *credential)
{
    for (uint32_t i = 0; i < incident->credential_count; i++) {
        if (strcmp(incident->credentials[i], credential) == 0)
            return false;
    }
    if (incident->credential_count == CREDENTIALS_MAX)
        return false;
    incident->credentials = as_xrealloc_array(incident->credentials, incident->credential_count + 1,
                                              sizeof(*incident->credentials));
    incident->reported = as_xrealloc_array(incident->reported, incident->credential_count + 1,
                                           sizeof(*incident->reported));
    incident->reported[incident->credential_count].us = INT64_MIN;
    incident->credentials[incident->credential_count++] = as_xstrdup(credential);
    return true;
}
