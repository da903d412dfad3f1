/*
 * The resolver of rule files: one rule set from all of them. It resolves names over all files, and
 * checks whatever needs more than one key. resolve_address.c resolves the addresses of targets.
 */
#include "resolve.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/number.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cluster/pool.h>
#include <alertscaler/doc/yaml_text.h>
#include <alertscaler/model/source.h>

#include "config_private.h"

/*
 * The digests of targets' entries. What is observed of a target depends on its entry, on the
 * entries of a pool's groups, and on the parts of the configuration that say where targets and
 * metrics are.
 */

static void add_part(struct content_hash *hash, const struct as_yaml_node *node)
{
    if (node)
        content_hash_add_node(hash, node);
    content_hash_add(hash, "", 1); /* the end of the part */
}

static struct as_digest hash_places(const struct as_yaml_node *root)
{
    static const char *const keys[] = {"clusters", "providers", "prometheus"};
    struct content_hash hash = content_hash_begin();
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++)
        add_part(&hash, root ? as_yaml_find(root, keys[i]) : NULL);
    return content_hash_end_digest(&hash);
}

static struct as_digest hash_entry(const struct resolver *resolver, uint32_t number,
                                   const struct as_digest *places)
{
    const struct as_pool_config *pool = resolver->ruleset->targets[number]->pool;
    struct content_hash hash = content_hash_begin();
    content_hash_add(&hash, (const char *)places->bytes, sizeof(places->bytes));
    add_part(&hash, resolver->targets[number]->node);
    for (size_t i = 0; pool && i < pool->group_count; i++)
        add_part(&hash, resolver->targets[pool->groups[i]]->node);
    return content_hash_end_digest(&hash);
}

/* The digests of entries. After pools. */
static void resolve_entries(struct resolver *resolver)
{
    const struct as_digest places = hash_places(resolver->settings_root);
    for (uint32_t i = 0; i < resolver->target_count; i++)
        resolver->ruleset->targets[i]->digest = hash_entry(resolver, i, &places);
}

/*
 * `after`: from names to indices. Cycles are errors.
 */

#define CYCLE_TEXT_MAX 600

#define COMPARED_MAX 200000 /* names, per run */

static void report_unknown_target(struct resolver *resolver, const struct as_yaml_node *node)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    struct suggestion suggestion = suggestion_start(node->text);
    for (size_t i = 0; i < resolver->target_count && resolver->compared < COMPARED_MAX; i++) {
        resolver->compared++;
        suggestion_offer(&suggestion, resolver->targets[i]->name);
    }
    loader_report(&resolver->loader, node, "there is no target %s%s", as_yaml_describe(node, found),
                  suggestion_print(&suggestion, hint));
}

static void resolve_names(struct resolver *resolver, const struct raw_target *raw,
                          struct as_target_config *config)
{
    const struct as_yaml_node *list = raw->node ? as_yaml_find(raw->node, "after") : NULL;
    if (!list || list->kind != AS_YAML_LIST || list->count == 0)
        return;
    config->after = as_xcalloc(list->count, sizeof(*config->after));
    resolver->loader.tree = raw->tree;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct as_yaml_node *item = list->items[i];
        if (item->kind != AS_YAML_SCALAR)
            continue;
        const struct raw_target *other = find_target(resolver, item->text);
        if (other)
            config->after[config->after_count++] = other->number;
        else
            report_unknown_target(resolver, item);
    }
}

/* Kahn's algorithm: counts[i] is the number of targets that wait for i. Targets that nobody waits
 * for are removed one by one. The rest is on a cycle, or waits for one. */
static void reduce(const struct as_ruleset *ruleset, uint32_t *counts)
{
    size_t count = ruleset->target_count, ready_count = 0;
    uint32_t *ready = as_xcalloc(count + 1, sizeof(*ready));
    for (uint32_t i = 0; i < count; i++) {
        if (counts[i] == 0)
            ready[ready_count++] = i;
    }
    while (ready_count > 0) {
        const struct as_target_config *config = ruleset->targets[ready[--ready_count]];
        for (size_t i = 0; i < config->after_count; i++) {
            if (--counts[config->after[i]] == 0)
                ready[ready_count++] = config->after[i];
        }
    }
    free(ready);
}

/* The first of a target's `after` that is not removed. */
static uint32_t resolve_find_next(const struct as_ruleset *ruleset, const uint32_t *counts,
                                  uint32_t at)
{
    const struct as_target_config *config = ruleset->targets[at];
    for (size_t i = 0; i < config->after_count; i++) {
        if (counts[config->after[i]] > 0)
            return config->after[i];
    }
    return UINT32_MAX;
}

static void report_cycle(struct resolver *resolver, uint32_t *counts, uint32_t start)
{
    const struct as_ruleset *ruleset = resolver->ruleset;
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(CYCLE_TEXT_MAX);
    uint32_t at = start;
    do {
        as_buf_printf(&text, "`%s` after ", ruleset->targets[at]->name);
        uint32_t next = resolve_find_next(ruleset, counts, at);
        counts[at] = 0; /* reported */
        at = next;
    } while (at != start && at != UINT32_MAX);
    const struct raw_target *raw = resolver->targets[start];
    resolver->loader.tree = raw->tree;
    loader_report(&resolver->loader, schema_find_key(raw->node, "after"),
                  "this goes round in a circle: %s`%s`", text.size > 0 ? text.data : "",
                  ruleset->targets[start]->name);
}

/* Follows `after` from `start` until a target comes twice: it is on a cycle. */
static void find_cycle(struct resolver *resolver, uint32_t *counts, uint32_t start, uint32_t *seen)
{
    uint32_t at = start;
    while (at != UINT32_MAX && seen[at] == 0) {
        seen[at] = start + 1;
        at = resolve_find_next(resolver->ruleset, counts, at);
    }
    if (at != UINT32_MAX && seen[at] == start + 1)
        report_cycle(resolver, counts, at);
}

/* Resolves `after`; cycles are errors. */
static void resolve_after(struct resolver *resolver)
{
    const struct as_ruleset *ruleset = resolver->ruleset;
    size_t count = ruleset->target_count;
    uint32_t *counts = as_xcalloc(count + 1, sizeof(*counts));
    uint32_t *seen = as_xcalloc(count + 1, sizeof(*seen));
    for (size_t i = 0; i < count; i++)
        resolve_names(resolver, resolver->targets[i], ruleset->targets[i]);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < ruleset->targets[i]->after_count; j++)
            counts[ruleset->targets[i]->after[j]]++;
    }
    reduce(ruleset, counts);
    for (uint32_t i = 0; i < count; i++) {
        if (counts[i] > 0 && seen[i] == 0)
            find_cycle(resolver, counts, i, seen);
    }
    free(counts);
    free(seen);
}

/*
 * Pools: from names of groups to indices, and what pools, their groups, and rules with `fit` and
 * `take` may have.
 */

/* Keys that a target must not have, and why. */
static void refuse_keys(struct resolver *resolver, const struct raw_target *raw,
                        const char *const *keys, const char *why)
{
    resolver->loader.tree = raw->tree;
    for (; *keys; keys++) {
        const struct as_yaml_node *key = schema_find_key(raw->node, *keys);
        if (key)
            loader_report(&resolver->loader, key, "`%s` %s", *keys, why);
    }
}

/* Why the target has no nodes in a cluster; NULL: it has. */
static const char *find_nodes_requirement(const struct resolver *resolver,
                                          const struct raw_target *target)
{
    if (!target->kind || !target->kind->has_nodes)
        return NULL; /* its nodes are those of its cluster */
    if (strcmp(target->nodes.cluster, "none") == 0)
        return "its `nodes` say `cluster: none`";
    const struct as_yaml_node *name = as_yaml_find(target->address, "provider");
    const struct as_provider_settings *provider =
        resolver->settings && name && name->kind == AS_YAML_SCALAR
            ? as_settings_find_provider(resolver->settings, name->text)
            : NULL;
    const struct as_provider_kind *kind =
        provider && provider->type ? as_provider_kind_find(provider->type) : NULL;
    return kind && kind->has_url_groups && !target->nodes.select
               ? "a provider of type http knows no instances, and no `nodes.select` tells its nodes"
               : NULL;
}

/* Why a target is no group of a pool; NULL: it may be one. */
static const char *resolve_find_obstacle(const struct resolver *resolver,
                                         const struct raw_target *group,
                                         const struct as_target_config *config)
{
    if (!group->kind || !group->kind->has_nodes)
        return "is not a node group";
    if (find_nodes_requirement(resolver, group))
        return "has no nodes in a cluster";
    return config->is_templated ? "has a template in its address" : NULL;
}

static void resolve_group(struct resolver *resolver, uint32_t pool, const struct as_yaml_node *item)
{
    static const char *const keys[] = {"cooldown", "behavior", "enforce_bounds", "after", NULL};
    struct as_target_config *const *targets = resolver->ruleset->targets;
    struct as_pool_config *config = targets[pool]->pool;
    const struct raw_target *raw = resolver->targets[pool];
    const struct raw_target *group = find_target(resolver, item->text);
    resolver->loader.tree = raw->tree;
    if (!group) {
        report_unknown_target(resolver, item);
        return;
    }
    struct as_target_config *of = targets[group->number];
    const char *obstacle = resolve_find_obstacle(resolver, group, of);
    const struct raw_target *first =
        config->group_count > 0 ? resolver->targets[config->groups[0]] : group;
    if (obstacle) {
        loader_report(&resolver->loader, item, "target `%s` %s", group->name, obstacle);
    } else if (of->of_pool != AS_NO_TARGET) {
        loader_report(&resolver->loader, item, "target `%s` is a group of pool `%s` already",
                      group->name, targets[of->of_pool]->name);
    } else if (strcmp(first->nodes.cluster, group->nodes.cluster) != 0) {
        loader_report(&resolver->loader, item,
                      "the groups of a pool are in one cluster: `%s` is in cluster %s, those "
                      "before it in %s",
                      group->name, group->nodes.cluster, first->nodes.cluster);
    } else {
        of->of_pool = pool;
        of->bounds.cooldown = (struct as_cooldown){0};
        of->bounds.has_behavior = of->bounds.enforce_bounds = false;
        config->groups[config->group_count++] = group->number;
        refuse_keys(resolver, group, keys, "stands at the pool: this group belongs to one");
        if (!group->rule)
            return;
        resolver->loader.tree = group->rule->tree;
        loader_report(&resolver->loader, as_yaml_find(group->rule->node, "target"),
                      "target `%s` belongs to pool `%s`: rules name the pool", group->name,
                      targets[pool]->name);
    }
}

static void copy_pool(const struct raw_pool *raw, struct as_pool_config *config)
{
    *config = raw->of;
    config->cpu_price = raw->pod_price.cpu;
    config->memory_price = raw->pod_price.memory;
    config->at_once_empty = (uint32_t)raw->at_once.empty;
    config->at_once_drain = (uint32_t)raw->at_once.drain;
    config->ignore_labels = copy_strings(raw->ignore_labels, raw->ignore_label_count);
    config->ignore_label_count = raw->ignore_label_count;
}

static void resolve_pool(struct resolver *resolver, uint32_t number)
{
    static const char *const keys[] = {"min",       "enforce_bounds", "behavior", "allow",
                                       "tolerance", "nodes",          NULL};
    struct as_ruleset *ruleset = resolver->ruleset;
    struct as_target_config *pool = ruleset->targets[number];
    const struct raw_target *raw = resolver->targets[number];
    const struct as_yaml_node *list = as_yaml_find(as_yaml_find(raw->node, "pool"), "groups");
    const struct as_yaml_node *max = as_yaml_find(raw->node, "max");
    int64_t min = 0;
    pool->pool = as_xcalloc(1, sizeof(*pool->pool));
    copy_pool(&raw->pool, pool->pool);
    refuse_keys(resolver, raw, keys, "is not a key of a pool: its groups decide that");
    pool->bounds.has_behavior = pool->bounds.enforce_bounds = false;
    if (!list || list->kind != AS_YAML_LIST)
        return;
    pool->pool->groups = as_xcalloc(list->count + 1, sizeof(*pool->pool->groups));
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i]->kind == AS_YAML_SCALAR)
            resolve_group(resolver, number, list->items[i]);
    }
    for (size_t i = 0; i < pool->pool->group_count; i++)
        min += ruleset->targets[pool->pool->groups[i]]->bounds.min;
    resolver->loader.tree = raw->tree;
    if (max && min > pool->bounds.max)
        loader_report(&resolver->loader, max,
                      "`max` %d is below the sum of the groups' minima, %lld", pool->bounds.max,
                      (long long)min);
    else
        pool->bounds.min = (int32_t)min;
}

/* The rule, its action or its end. */
static void resolve_check_rule(struct resolver *resolver, const struct raw_rule *raw,
                               const struct as_rule *rule)
{
    const struct as_ruleset *ruleset = resolver->ruleset;
    const struct raw_target *target = raw->target ? find_target(resolver, raw->target) : NULL;
    const bool is_of_pool = rule->action.is_fit || rule->action.is_take;
    const struct as_yaml_node *at = as_yaml_find(raw->node, "target");
    resolver->loader.tree = raw->tree;
    if (!target)
        return;
    if (raw->is_always && ruleset->targets[target->number]->is_templated)
        loader_report(
            &resolver->loader, at,
            "target `%s` has a template in its address, and an `always` rule has no alert "
            "whose labels the template could name",
            target->name);
    if (as_target_kind_has_groups(target->kind) && (!is_of_pool || raw->has_ending))
        loader_report(&resolver->loader, at,
                      "target `%s` is a pool, which only has `scale_up: {fit: pending_pods}` and "
                      "`scale_down: {take: unneeded_nodes}`, without `on_resolved`",
                      target->name);
    if (!is_of_pool || as_target_kind_has_groups(target->kind))
        return;
    const char *obstacle =
        resolve_find_obstacle(resolver, target, ruleset->targets[target->number]);
    if (obstacle)
        loader_report(&resolver->loader, at,
                      "`fit` and `take` are for pools and node groups, but target `%s` %s",
                      target->name, obstacle);
}

/* Resolves the groups of pools, and checks what pools and their groups may have. */
static void resolve_pools(struct resolver *resolver)
{
    struct as_ruleset *ruleset = resolver->ruleset;
    for (size_t i = 0; i < ruleset->target_count; i++)
        ruleset->targets[i]->of_pool = AS_NO_TARGET;
    for (uint32_t i = 0; i < ruleset->target_count; i++) {
        if (as_target_kind_has_groups(ruleset->targets[i]->kind))
            resolve_pool(resolver, i);
    }
    for (size_t i = 0; i < resolver->rule_count; i++)
        resolve_check_rule(resolver, resolver->rules[i], ruleset->rules[i]);
}

/*
 * From a rule as written to the engine's rule: compiles matchers and queries, and checks the rule
 * against its target and the configuration.
 */

static void resolve_matchers(struct resolver *resolver, const struct as_yaml_node *list,
                             struct as_rule *rule)
{
    rule->matchers = as_xcalloc(list->count, sizeof(*rule->matchers));
    for (uint32_t i = 0; i < list->count; i++)
        rule->matcher_count += compile_matcher(&resolver->loader, list->items[i],
                                               &rule->matchers[rule->matcher_count]);
}

/* NULL: invalid; errors are reported. */
static struct as_template *compile_query(struct resolver *resolver, const struct as_yaml_node *node)
{
    AS_CLEANUP(as_template_free_p) struct as_template *template = NULL;
    struct loader *loader = &resolver->loader;
    struct as_error error = AS_ERROR_INIT;
    if (resolver->settings && !resolver->settings->prometheus.url)
        loader_report(loader, node, "a query needs `prometheus` in the configuration");
    if (node->size > AS_QUERY_MAX) {
        loader_report(loader, node, "a query has at most %d bytes", AS_QUERY_MAX);
        return NULL;
    }
    if (as_template_new(node->text, &template, &error) < 0 ||
        as_template_check_promql(template, &error) < 0) {
        report_in_text(loader, node, error.text);
        return NULL;
    }
    struct as_template *query = template;
    template = NULL;
    return query;
}

static void resolve_source(struct resolver *resolver, const struct raw_source *raw,
                           struct as_source *source)
{
    const char *name = raw->annotation ? raw->annotation
                       : raw->label    ? raw->label
                                       : as_nodes_word_get_text(raw->nodes);
    if (raw->query) {
        source->kind = AS_SOURCE_QUERY;
        source->query = compile_query(resolver, raw->query);
        source->per_pod = raw->per_pod;
        source->pod_label = raw->per_pod ? as_xstrdup(raw->pod_label) : NULL;
    } else if (name) {
        source->kind = raw->annotation ? AS_SOURCE_ANNOTATION
                       : raw->label    ? AS_SOURCE_LABEL
                                       : AS_SOURCE_NODES;
        source->nodes = raw->nodes;
        source->name = as_xstrdup(name);
    }
}

static void resolve_action(const struct raw_rule *raw, struct as_rule *rule)
{
    size_t count = raw->action.step_count;
    rule->action = raw->action;
    if (raw->action.kind == AS_ACTION_TRACK && raw->action.track.container)
        rule->action.track.container = rule->container = as_xstrdup(raw->action.track.container);
    if (count == 0)
        return;
    rule->steps = as_xcalloc(count, sizeof(*rule->steps));
    memcpy(rule->steps, raw->action.steps, count * sizeof(*rule->steps));
    rule->action.steps = rule->steps;
}

static void check_proof(struct resolver *resolver, const struct raw_rule *raw)
{
    const struct as_settings *settings = resolver->settings;
    if (!settings || raw->guard_kind != AS_GUARD_ABSENT || raw->is_always ||
        settings->receiver.watchdog_count > 0)
        return;
    if (raw->has_ending)
        loader_report(&resolver->loader, schema_find_key(raw->node, "on_resolved"),
                      "an alert that ends is no proof that the load is gone: this needs a `guard` "
                      "(or `guard: none`), or a `watchdog` under `receiver`");
    if (raw->action.is_take || (raw->source.nodes && raw->action.kind != AS_ACTION_SCALE_UP))
        loader_report(&resolver->loader, raw->node,
                      "scaling down needs proof that monitoring works: add `receiver.watchdog` to "
                      "the configuration, or `guard: {query: ...}` or `guard: none` to the rule");
}

/* An `always` rule has no labels. */
static void refuse_templates(struct resolver *resolver, const struct raw_rule *raw,
                             const struct as_rule *rule)
{
    const struct {
        const struct as_yaml_node *node;
        const struct as_template *query;
    } queries[] = {{raw->source.query, rule->source.query}, {raw->guard, rule->guard}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(queries) && raw->is_always; i++) {
        if (queries[i].query && !as_template_is_plain(queries[i].query))
            loader_report(&resolver->loader, queries[i].node,
                          "an `always` rule has no alert whose labels a `{{ }}` could name");
    }
}

/* Only Kubernetes has pods; and a decision has one number per resource and pod. */
static void check_track(struct resolver *resolver, const struct raw_rule *raw,
                        struct raw_target *target)
{
    const struct as_track *track = &raw->action.track;
    const char *requirement = find_pods_requirement(target);
    const char *key = raw->source.per_pod ? "per_pod" : track->by_owner ? "pods" : NULL;
    if (key && requirement)
        loader_report(&resolver->loader, schema_find_key(as_yaml_find(raw->node, "track"), key),
                      "target `%s` is %s, which has no pods", target->name, requirement);
    if (!raw->resource || !raw->enabled)
        return;
    const struct raw_rule *other = target->measured[track->resource];
    if (!other)
        target->measured[track->resource] = raw;
    else if (other->action.track.of_limits != track->of_limits)
        loader_report(&resolver->loader, raw->resource,
                      "one decision cannot use both: rule `%s` at %s:%u measures target `%s` "
                      "against `%s`",
                      other->name, as_yaml_get_file(other->tree), other->resource->place.line,
                      target->name, other->resource->text);
}

static void check_nodes(struct resolver *resolver, const struct raw_rule *raw,
                        const struct raw_target *target)
{
    const char *requirement = raw->source.nodes ? find_nodes_requirement(resolver, target) : NULL;
    if (requirement)
        loader_report(&resolver->loader, as_yaml_find(raw->node, "target"),
                      "target `%s` has no nodes in a cluster: %s", target->name, requirement);
}

static void resolve_target_name(struct resolver *resolver, const struct raw_rule *raw,
                                struct as_rule *rule)
{
    struct raw_target *target = raw->target ? find_target(resolver, raw->target) : NULL;
    if (target) {
        rule->target = resolver->ruleset->targets[target->number];
        check_track(resolver, raw, target);
        check_nodes(resolver, raw, target);
        check_only_up(resolver, raw, target);
        resolve_approval(raw, target, rule);
        if (!target->rule)
            target->rule = raw;
    } else if (raw->target) {
        report_unknown_target(resolver, as_yaml_find(raw->node, "target"));
    }
}

/* Where a rule or a target is, and its text: for people. */
static void keep_text(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                      char **file_out, uint32_t *line_out, char **text_out)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(AS_RULE_TEXT_MAX);
    if (!tree || !node) /* the entry is no map: an error was reported */
        return;
    *file_out = as_xstrdup(as_yaml_get_file(tree));
    *line_out = node->place.line;
    if (node->kind == AS_YAML_MAP)
        yaml_append_map(&text, node);
    if (as_buf_check(&text) == 0 && text.data)
        *text_out = as_xstrdup(text.data);
}

/* One rule: its references, its queries, and its checks against target and configuration. */
static void resolve_rule(struct resolver *resolver, const struct raw_rule *raw,
                         struct as_rule *rule)
{
    resolver->loader.tree = raw->tree;
    rule->name = as_xstrdup(raw->name ? raw->name : "");
    keep_text(raw->tree, raw->node, &rule->file, &rule->line, &rule->text);
    rule->is_always = raw->is_always;
    rule->receivers = copy_strings(raw->receivers, raw->receiver_count);
    rule->receiver_count = raw->receiver_count;
    rule->every_us = raw->every_us;
    rule->max_steps = (uint32_t)raw->max_steps;
    rule->fallback = raw->fallback;
    rule->ineffective_after = (uint32_t)raw->ineffective_after;
    rule->dry_run = raw->dry_run;
    rule->enabled = raw->enabled;
    rule->on_resolved = raw->ending;
    rule->guard_kind = raw->guard_kind;
    rule->guard = raw->guard ? compile_query(resolver, raw->guard) : NULL;
    resolve_action(raw, rule);
    resolve_source(resolver, &raw->source, &rule->source);
    refuse_templates(resolver, raw, rule);
    if (raw->match)
        resolve_matchers(resolver, raw->match, rule);
    check_proof(resolver, raw);
    resolve_target_name(resolver, raw, rule);
}

/*
 * Schedules: their time zones, and bounds that contradict each other.
 */

/* Schedules by the week are looked at for a year from then. The result must not depend on when
 * files are read; changes of a zone's offset come every year. */
#define AROUND "2026-01-01T00:00:00Z"

/* NULL: unknown, which is reported. */
static const struct as_zone *get_zone(struct resolver *resolver,
                                      const struct raw_schedule *schedule)
{
    struct as_ruleset *ruleset = resolver->ruleset;
    struct as_error error = AS_ERROR_INIT;
    struct as_zone *zone;
    for (size_t i = 0; i < ruleset->zone_count; i++) {
        if (strcmp(as_zone_get_name(ruleset->zones[i]), schedule->timezone) == 0)
            return ruleset->zones[i];
    }
    if (as_zone_open(schedule->timezone, &zone, &error) != 0) {
        loader_report(&resolver->loader, as_yaml_find(schedule->node, "timezone"), "%s",
                      error.text);
        return NULL;
    }
    ruleset->zones =
        as_xrealloc_array(ruleset->zones, ruleset->zone_count + 1, sizeof(*ruleset->zones));
    return ruleset->zones[ruleset->zone_count++] = zone;
}

static void resolve_check_names(struct resolver *resolver, const struct raw_target *raw)
{
    for (size_t i = 1; i < raw->schedule_count; i++) {
        const char *name = raw->schedules[i].name;
        for (size_t k = 0; name && k < i; k++) {
            if (raw->schedules[k].name && strcmp(raw->schedules[k].name, name) == 0) {
                loader_report(&resolver->loader, as_yaml_find(raw->schedules[i].node, "name"),
                              "schedule `%s` is given twice, also at line %u", name,
                              raw->schedules[k].node->place.line);
                break;
            }
        }
    }
}

static void check_bounds(struct resolver *resolver, const struct raw_target *raw,
                         const struct as_target_config *config)
{
    struct as_schedule_conflict conflict;
    char at[AS_RFC3339_SIZE];
    as_wall_time around;
    const struct as_bounds_config *bounds = &config->bounds;
    if (bounds->min > bounds->max || as_wall_time_parse(AROUND, strlen(AROUND), &around) != 0 ||
        !as_schedules_find_conflict(config->schedules, config->schedule_count, bounds->min,
                                    bounds->max, around, &conflict))
        return;
    const struct raw_schedule *low =
        conflict.max_of < AS_SCHEDULES_MAX ? &raw->schedules[conflict.max_of] : NULL;
    const struct raw_schedule *high =
        conflict.min_of < AS_SCHEDULES_MAX ? &raw->schedules[conflict.min_of] : NULL;
    assert(high || low); /* the target's own are no conflict */
    as_wall_time_print_short(conflict.at, at);
    if (high && low)
        loader_report(&resolver->loader, as_yaml_find(high->node, "min"),
                      "`min` %" PRId32 " is above `max` %" PRId32
                      " of schedule `%s` at line %u: both are in force at %s",
                      conflict.min, conflict.max, low->name, low->node->place.line, at);
    else if (high)
        loader_report(&resolver->loader, as_yaml_find(high->node, "min"),
                      "`min` %" PRId32 " is above `max` %" PRId32 " of the target", conflict.min,
                      conflict.max);
    else
        loader_report(&resolver->loader, as_yaml_find(low->node, "max"),
                      "`max` %" PRId32 " is below `min` %" PRId32 " of the target", conflict.max,
                      conflict.min);
}

/* False: something was reported. */
static bool resolve_fill(struct resolver *resolver, const struct raw_schedule *raw,
                         struct as_schedule *schedule)
{
    const bool needs_zone = raw->from != RAW_SCHEDULE_MOMENT || raw->to != RAW_SCHEDULE_MOMENT;
    *schedule = raw->of;
    schedule->name = as_xstrdup(raw->name ? raw->name : "");
    schedule->zone = needs_zone && raw->timezone ? get_zone(resolver, raw) : NULL;
    return raw->from != RAW_SCHEDULE_NONE && raw->from == raw->to &&
           !(raw->of.has_min && raw->of.has_max && raw->of.min > raw->of.max) &&
           (schedule->zone || !needs_zone);
}

static void resolve_target(struct resolver *resolver, const struct raw_target *raw,
                           struct as_target_config *config)
{
    bool is_complete = true;
    resolver->loader.tree = raw->tree;
    if (raw->schedule_count > 0 &&
        (as_target_kind_has_groups(config->kind) || config->of_pool != AS_NO_TARGET))
        loader_report(&resolver->loader, schema_find_key(raw->node, "schedules"),
                      "pools and their groups have no schedules");
    resolve_check_names(resolver, raw);
    config->schedules = as_xcalloc(raw->schedule_count + 1, sizeof(*config->schedules));
    for (size_t i = 0; i < raw->schedule_count; i++)
        is_complete &= resolve_fill(resolver, &raw->schedules[i], &config->schedules[i]);
    config->schedule_count = raw->schedule_count;
    if (is_complete && raw->schedule_count > 0)
        check_bounds(resolver, raw, config);
}

/* Opens the time zones of schedules, and looks for a `min` above `max` at any time. After pools. */
static void resolve_schedules(struct resolver *resolver)
{
    for (size_t i = 0; i < resolver->target_count; i++)
        resolve_target(resolver, resolver->targets[i], resolver->ruleset->targets[i]);
}

/*
 * Finds two ways that undo each other: one scales down until the value is X, the other scales up
 * from below X, on the same target by the same source.
 */

/* A rule with steps by a value. */
struct way {
    const struct raw_rule *rule;
    const struct as_rule *resolved;
    const char *source;           /* its text; its kind counts too */
    const struct as_step *lowest; /* a way up: its lowest step; NULL: none */
};

static struct way make_way(const struct raw_rule *raw, const struct as_rule *rule)
{
    const struct as_source *source = &rule->source;
    struct way way = {.rule = raw, .resolved = rule};
    way.source =
        source->kind == AS_SOURCE_QUERY ? as_template_get_text(source->query) : source->name;
    for (size_t i = 0; rule->action.kind == AS_ACTION_SCALE_UP && i < rule->action.step_count;
         i++) {
        const struct as_step *step = &rule->action.steps[i];
        if (step->is_above && (!way.lowest || step->bound < way.lowest->bound))
            way.lowest = step;
    }
    return way;
}

/* By target and source; ways up first, the lowest step first of all. */
static int compare_ways(const void *left, const void *right)
{
    const struct way *a = left, *b = right;
    if (a->resolved->target != b->resolved->target)
        return a->resolved->target < b->resolved->target ? -1 : 1;
    if (a->resolved->source.kind != b->resolved->source.kind)
        return a->resolved->source.kind < b->resolved->source.kind ? -1 : 1;
    const int status = strcmp(a->source, b->source);
    if (status != 0)
        return status;
    if (!a->lowest != !b->lowest)
        return a->lowest ? -1 : 1;
    if (a->lowest && a->lowest->bound != b->lowest->bound)
        return a->lowest->bound < b->lowest->bound ? -1 : 1;
    return (a->resolved > b->resolved) - (a->resolved < b->resolved); /* in file order */
}

static bool shares_value(const struct way *a, const struct way *b)
{
    return a->resolved->target == b->resolved->target &&
           a->resolved->source.kind == b->resolved->source.kind &&
           strcmp(a->source, b->source) == 0;
}

static void check_way(struct resolver *resolver, const struct way *up, const struct way *down)
{
    const struct as_action *action = &down->resolved->action;
    const struct as_yaml_node *body = as_yaml_find(down->rule->node, "scale_down");
    const struct as_yaml_node *steps = as_yaml_find(body, "steps");
    char bound[AS_NUMBER_SIZE];
    as_number_print_double(up->lowest->bound, bound);
    for (size_t i = 0; i < action->step_count; i++) {
        const struct as_yaml_node *to = as_yaml_find(steps->items[i], "to");
        if (!to || !(action->steps[i].to > up->lowest->bound))
            continue;
        resolver->loader.tree = down->rule->tree;
        loader_report(&resolver->loader, to,
                      "the size would swing: rule `%s` at %s:%u scales target `%s` up again above "
                      "%s, by the same value",
                      up->rule->name, as_yaml_get_file(up->rule->tree), up->rule->node->place.line,
                      down->rule->target, bound);
    }
}

/* Reports ways down that end where a way up by the same value begins. */
static void check_swings(struct resolver *resolver)
{
    AS_CLEANUP(as_free_p) struct way *ways = as_xcalloc(resolver->rule_count + 1, sizeof(*ways));
    size_t count = 0;
    for (size_t i = 0; i < resolver->rule_count; i++) {
        const struct raw_rule *raw = resolver->rules[i];
        const struct as_rule *rule = resolver->ruleset->rules[i];
        const bool has_source = rule->source.name || rule->source.query;
        if (raw->enabled && raw->name && raw->target && find_target(resolver, raw->target) &&
            has_source && rule->action.step_count > 0)
            ways[count++] = make_way(raw, rule);
    }
    qsort(ways, count, sizeof(*ways), compare_ways);
    const struct way *up = NULL; /* the lowest way up by this value */
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !shares_value(&ways[i - 1], &ways[i]))
            up = ways[i].lowest ? &ways[i] : NULL;
        if (up && ways[i].resolved->action.kind == AS_ACTION_SCALE_DOWN)
            check_way(resolver, up, &ways[i]);
    }
}

static int compare_targets(const void *left, const void *right)
{
    const struct raw_target *a = *(struct raw_target *const *)left;
    const struct raw_target *b = *(struct raw_target *const *)right;
    int status = strcmp(a->name, b->name);
    return status ? status : (a->number > b->number) - (a->number < b->number);
}

static void sort_targets(struct resolver *resolver)
{
    size_t count = resolver->target_count;
    resolver->by_name = as_arena_alloc(resolver->loader.arena, count, sizeof(*resolver->by_name));
    for (size_t i = 0; i < count; i++) {
        resolver->by_name[i] = resolver->targets[i];
        resolver->by_name[i]->number = (uint32_t)i;
    }
    if (count > 0)
        qsort(resolver->by_name, count, sizeof(*resolver->by_name), compare_targets);
    for (size_t i = 1; i < count; i++) {
        const struct raw_target *first = resolver->by_name[i - 1], *second = resolver->by_name[i];
        if (strcmp(first->name, second->name) != 0 || !first->node || !second->node)
            continue;
        resolver->loader.tree = second->tree;
        loader_report(&resolver->loader, second->key, "target `%s` is given twice, also at %s:%u",
                      second->name, as_yaml_get_file(first->tree), first->key->place.line);
    }
}

struct raw_target *find_target(const struct resolver *resolver, const char *name)
{
    size_t low = 0, high = resolver->target_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int status = strcmp(resolver->by_name[middle]->name, name);
        if (status == 0)
            return resolver->by_name[middle];
        if (status < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static int resolve_compare_rules(const void *left, const void *right)
{
    const struct raw_rule *a = *(struct raw_rule *const *)left;
    const struct raw_rule *b = *(struct raw_rule *const *)right;
    int status = strcmp(a->name, b->name);
    if (status == 0)
        status = strcmp(as_yaml_get_file(a->tree), as_yaml_get_file(b->tree));
    return status ? status
                  : (a->node->place.line > b->node->place.line) -
                        (a->node->place.line < b->node->place.line);
}

static void check_rule_names(struct resolver *resolver)
{
    struct raw_rule **named = as_xcalloc(resolver->rule_count + 1, sizeof(struct raw_rule *));
    size_t count = 0;
    for (size_t i = 0; i < resolver->rule_count; i++) {
        if (resolver->rules[i]->name)
            named[count++] = resolver->rules[i];
    }
    qsort(named, count, sizeof(struct raw_rule *), resolve_compare_rules);
    for (size_t i = 1; i < count; i++) {
        const struct raw_rule *first = named[i - 1], *second = named[i];
        if (strcmp(first->name, second->name) != 0)
            continue;
        resolver->loader.tree = second->tree;
        loader_report(&resolver->loader, as_yaml_find(second->node, "name"),
                      "rule `%s` is given twice, also at %s:%u", second->name,
                      as_yaml_get_file(first->tree), first->node->place.line);
    }
    free(named);
}

static void resolve_one_target(struct resolver *resolver, struct raw_target *raw,
                               struct as_target_config *config)
{
    resolver->loader.tree = raw->tree;
    config->name = as_xstrdup(raw->name);
    keep_text(raw->tree, raw->node, &config->file, &config->line, &config->text);
    config->bounds = raw->policy.bounds;
    config->dry_run = raw->policy.dry_run;
    config->ready_timeout_us = raw->policy.ready_timeout_us;
    for (enum as_allow i = 0; i < AS_ALLOW_COUNT; i++)
        config->allowed[i] = (struct as_allowed){
            copy_strings(raw->allow.lists[i], raw->allow.counts[i]), raw->allow.counts[i]};
    if (raw->allow.list.selector)
        config->list_selector = as_xstrdup(raw->allow.list.selector);
    if (raw->node)
        resolve_address(resolver, raw, config);
}

void resolve_rules(struct resolver *resolver)
{
    struct as_ruleset *ruleset = resolver->ruleset;
    sort_targets(resolver);
    check_rule_names(resolver);
    as_ruleset_make_room(ruleset, resolver->target_count, resolver->rule_count);
    for (size_t i = 0; i < resolver->rule_count; i++)
        resolve_rule(resolver, resolver->rules[i], ruleset->rules[i]);
    for (size_t i = 0; i < resolver->target_count; i++)
        resolve_one_target(resolver, resolver->targets[i], ruleset->targets[i]);
    resolve_pools(resolver);
    resolve_schedules(resolver);
    check_swings(resolver);
    check_selects(resolver);
    check_addresses(resolver);
    resolve_after(resolver);
    resolve_entries(resolver);
}
