/*
 * The judgement of one policy alone, without other owners of its object: whether it is valid, and
 * whether `objects` of the configuration allows what it says. A policy that is allowed gets the
 * terms that hold for all policies.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/rules/policy.h>
#include <alertscaler/rules/policy_set.h>

#include "config_private.h"

static bool policy_has_query(const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < ruleset->rule_count; i++)
        if (ruleset->rules[i]->source.query || ruleset->rules[i]->guard)
            return true;
    return false;
}

/* Text that `check` prints; NULL: not in the address. */
static const char *find_address(const struct as_target_config *target, const char *key)
{
    return as_target_config_find_plain(target, key);
}

static bool is_built_in(const char *api_version, const char *kind)
{
    static const char *const rows[][2] = {{"apps/v1", "Deployment"},
                                          {"apps/v1", "StatefulSet"},
                                          {"apps/v1", "ReplicaSet"},
                                          {"v1", "ReplicationController"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        if (strcmp(rows[i][0], api_version) == 0 && strcmp(rows[i][1], kind) == 0)
            return true;
    return false;
}

/* Whether the admin lets policies scale the object's kind, by this field. */
static bool is_kind_allowed(const struct as_object_settings *objects,
                            const struct as_target_config *target)
{
    const char *api_version = find_address(target, "apiVersion");
    const char *kind = find_address(target, "kind");
    const char *field = find_address(target, "field");
    api_version = api_version ? api_version : "";
    if (find_address(target, "container"))
        return false; /* a resize changes the pods or their template, beyond `scale` */
    if (!field && is_built_in(api_version, kind))
        return true;
    for (size_t i = 0; i < objects->kind_count; i++) {
        const struct as_object_kind_settings *row = &objects->kinds[i];
        if (strcmp(row->kind, kind) == 0 && strcmp(row->api_version, api_version) == 0 &&
            as_str_equal(row->field, field))
            return true;
    }
    return false;
}

static bool matches_one(const char *const *patterns, size_t count, const char *text)
{
    for (size_t i = 0; text && i < count; i++)
        if (as_str_glob(patterns[i], text))
            return true;
    return false;
}

static bool is_group_allowed(const struct as_object_settings *objects, const char *namespace,
                             const struct as_target_config *target)
{
    const char *provider = find_address(target, "provider"), *name = find_address(target, "name");
    for (size_t i = 0; i < objects->node_group_count; i++) {
        const struct as_object_group_settings *row = &objects->node_groups[i];
        if (provider && strcmp(row->provider, provider) == 0 &&
            matches_one(row->namespaces, row->namespace_count, namespace) &&
            matches_one(row->names, row->name_count, name))
            return !find_address(target, "url");
    }
    return false;
}

struct judging {
    const struct as_settings *settings;
    const char *namespace;
    const struct as_ruleset *ruleset;
    struct as_diagnostics *diagnostics;
};

static enum as_policy_reason policies_refuse(const struct judging *judging,
                                             enum as_policy_reason reason, const char *path,
                                             const char *format, ...) AS_PRINTF(4, 5);

static enum as_policy_reason policies_refuse(const struct judging *judging,
                                             enum as_policy_reason reason, const char *path,
                                             const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    as_diagnostics_add(judging->diagnostics,
                       &(struct as_diagnostic){.file = path, .message = message});
    return reason;
}

/* The `max` of a schedule replaces that of the target, and may be above it. */
static enum as_policy_reason judge_schedules(const struct judging *judging)
{
    const struct as_target_config *target = judging->ruleset->targets[0];
    const int32_t most = judging->settings->objects.max_size;
    for (size_t i = 0; most > 0 && i < target->schedule_count; i++) {
        const struct as_schedule *schedule = &target->schedules[i];
        char path[64];
        if (!schedule->has_max || schedule->max <= most)
            continue;
        (void)snprintf(path, sizeof(path), "spec.target.schedules[%zu].max", i);
        return policies_refuse(judging, AS_POLICY_LIMIT_EXCEEDED, path,
                               "%" PRId32 " is above %" PRId32
                               ", the largest size that the administrator "
                               "allows (`objects.max_size`)",
                               schedule->max, most);
    }
    return AS_POLICY_READY;
}

static enum as_policy_reason judge_address(const struct judging *judging)
{
    const struct as_target_config *target = judging->ruleset->targets[0];
    const struct as_object_settings *objects = &judging->settings->objects;
    if (target->kind == &as_target_kind_kubernetes && !is_kind_allowed(objects, target))
        return policies_refuse(
            judging, AS_POLICY_KIND_NOT_ALLOWED, "spec.target.kubernetes",
            "policies may scale Deployment, StatefulSet, ReplicaSet and "
            "ReplicationController by `scale`; the administrator allows other kinds and "
            "fields by `objects.kinds`");
    if (target->kind != &as_target_kind_kubernetes &&
        !is_group_allowed(objects, judging->namespace, target))
        return policies_refuse(
            judging, AS_POLICY_GROUP_NOT_ALLOWED, "spec.target.nodeGroup",
            "policies of namespace %s may not scale this node group; the administrator "
            "allows node groups by `objects.node_groups`",
            judging->namespace);
    if (objects->max_size > 0 && target->bounds.max > objects->max_size)
        return policies_refuse(judging, AS_POLICY_LIMIT_EXCEEDED, "spec.target.max",
                               "%" PRId32 " is above %" PRId32
                               ", the largest size that the administrator "
                               "allows (`objects.max_size`)",
                               target->bounds.max, objects->max_size);
    return judge_schedules(judging);
}

static enum as_policy_reason judge_rules(const struct judging *judging)
{
    const struct as_object_settings *objects = &judging->settings->objects;
    const struct as_ruleset *ruleset = judging->ruleset;
    if (ruleset->rule_count > objects->rules_per_policy)
        return policies_refuse(judging, AS_POLICY_LIMIT_EXCEEDED, "spec.rules",
                               "%zu rules; the administrator allows %" PRIu32 " in a policy "
                               "(`objects.rules_per_policy`)",
                               ruleset->rule_count, objects->rules_per_policy);
    if (policy_has_query(ruleset) && !objects->prometheus.url &&
        !objects->allows_unrestricted_queries)
        return policies_refuse(
            judging, AS_POLICY_QUERIES_NOT_ALLOWED, "spec.rules",
            "policies may not query: the administrator has not set "
            "`objects.prometheus`, which limits queries to the policy's namespace");
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        const struct as_rule *rule = ruleset->rules[i];
        char path[64];
        if (rule->every_us == 0 || rule->every_us >= objects->min_every_us)
            continue;
        (void)snprintf(path, sizeof(path), "spec.rules[%zu].every", i);
        return policies_refuse(judging, AS_POLICY_LIMIT_EXCEEDED, path,
                               "shorter than %" PRId64
                               "s, the shortest time that the administrator allows "
                               "(`objects.min_every`)",
                               objects->min_every_us / AS_US_PER_S);
    }
    return AS_POLICY_READY;
}

/*
 * What holds for all policies, whatever they say: they may be stricter than `defaults`, and not
 * less strict. Alerts must have the label of the policy's namespace.
 */

static void tighten_approval(const struct as_approval_config *least, struct as_rule *rule)
{
    struct content_hash hash;
    if (!least->is_set || (rule->approval.is_set && rule->approval.above <= least->above &&
                           rule->approval.for_us <= least->for_us))
        return;
    if (!rule->approval.is_set || rule->approval.above > least->above)
        rule->approval.above = least->above;
    if (!rule->approval.is_set || rule->approval.for_us > least->for_us)
        rule->approval.for_us = least->for_us;
    rule->approval.is_set = true;
    hash = content_hash_begin(); /* an approval is bound to its terms */
    content_hash_add(&hash, (const char *)rule->digest.bytes, sizeof(rule->digest.bytes));
    content_hash_add(&hash, (const char *)&rule->approval.above, sizeof(rule->approval.above));
    content_hash_add(&hash, (const char *)&rule->approval.for_us, sizeof(rule->approval.for_us));
    rule->digest = content_hash_end_digest(&hash);
}

static void add_namespace_matcher(const char *label, const char *namespace, struct as_rule *rule)
{
    rule->matchers =
        as_xrealloc_array(rule->matchers, rule->matcher_count + 1, sizeof(*rule->matchers));
    rule->matchers[rule->matcher_count++] = (struct as_matcher){
        .name = as_xstrdup(label), .value = as_xstrdup(namespace), .op = AS_MATCHER_EQUAL};
    rule->is_confined = true;
}

static void tighten(const struct as_settings *settings, const char *namespace,
                    struct as_ruleset *ruleset)
{
    const struct as_object_settings *objects = &settings->objects;
    ruleset->targets[0]->dry_run = ruleset->targets[0]->dry_run || settings->defaults.dry_run;
    for (size_t i = 0; i < ruleset->rule_count; i++) {
        struct as_rule *rule = ruleset->rules[i];
        tighten_approval(&settings->defaults.approval, rule);
        if (objects->enforces_namespace_label && !rule->is_always)
            add_namespace_matcher(objects->namespace_label, namespace, rule);
    }
}

static bool policy_is_shadow(const char *text, size_t size)
{
    static const struct tree_part mode[] = {{.name = "mode"}, {0}};
    static const struct tree_part parts[] = {{.name = "spec", .parts = mode}, {0}};
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_error ignored = AS_ERROR_INIT;
    if (tree_parse(&tree, text, size, parts, &ignored) != 0)
        return false;
    const char *word = tree_find_text(tree_find(tree.root, "spec"), "mode");
    return word && strcmp(word, "Shadow") == 0;
}

enum as_policy_reason policy_judge(const struct as_settings *settings, const char *namespace,
                                   const char *text, size_t size, struct as_ruleset **ruleset_out,
                                   struct as_diagnostics *diagnostics)
{
    struct as_settings own = *settings; /* whether a policy may query is judged later */
    const struct as_object_settings *objects = &settings->objects;
    if (objects->prometheus.url || !objects->allows_unrestricted_queries)
        own.prometheus.url = "of tenants";
    *ruleset_out = NULL;
    if (as_policy_compile(&own, text, size, ruleset_out, diagnostics) != 0)
        return AS_POLICY_INVALID;
    const struct judging judging = {settings, namespace, *ruleset_out, diagnostics};
    enum as_policy_reason reason = judge_address(&judging);
    if (reason == AS_POLICY_READY)
        reason = judge_rules(&judging);
    if (reason != AS_POLICY_READY) {
        *ruleset_out = as_ruleset_free(*ruleset_out);
        return reason;
    }
    tighten(settings, namespace, *ruleset_out);
    return policy_is_shadow(text, size) ? AS_POLICY_SHADOW : AS_POLICY_READY;
}

enum as_policy_reason as_policy_judge(const struct as_settings *settings, const char *text,
                                      size_t size, struct as_diagnostics *diagnostics)
{
    static const struct tree_part names[] = {{.name = "namespace"}, {0}};
    static const struct tree_part parts[] = {{.name = "metadata", .parts = names}, {0}};
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    AS_CLEANUP(as_ruleset_free_p) struct as_ruleset *ruleset = NULL;
    struct as_error error = AS_ERROR_INIT;
    if (tree_parse(&tree, text, size, parts, &error) != 0) {
        as_diagnostics_add(diagnostics, &(struct as_diagnostic){.file = "", .message = error.text});
        return AS_POLICY_INVALID;
    }
    const char *namespace = tree_find_text(tree_find(tree.root, "metadata"), "namespace");
    return policy_judge(settings, namespace ? namespace : "default", text, size, &ruleset,
                        diagnostics);
}
