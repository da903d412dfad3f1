/*
 * From a rule as written to the engine's rule: compiles matchers and queries, and checks the rule
 * against its target and the configuration.
 */
#include "resolve.h"

#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/str.h>
#include <alertscaler/model/query.h>

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
    if (count == 0)
        return;
    rule->steps = as_xcalloc(count, sizeof(*rule->steps));
    memcpy(rule->steps, raw->action.steps, count * sizeof(*rule->steps));
    rule->action.steps = rule->steps;
}

static void check_proof(struct resolver *resolver, const struct raw_rule *raw)
{
    const struct as_settings *settings = resolver->settings;
    if (!settings || raw->guard_kind != AS_GUARD_ABSENT || settings->receiver.watchdog_count > 0)
        return;
    if (raw->has_ending)
        loader_report(&resolver->loader, schema_find_key(raw->node, "on_resolved"),
                      "an alert that ends is no proof that the load is gone: this needs a `guard` "
                      "(or `guard: none`), or a `watchdog` under `receiver`");
    if (raw->source.nodes && raw->action.kind != AS_ACTION_SCALE_UP)
        loader_report(&resolver->loader, raw->node,
                      "the nodes' requests do not tell whether monitoring lives, and it may be "
                      "what has failed: scaling down by `nodes` needs a `guard` (or `guard: "
                      "none`), or a `watchdog` under `receiver`");
    if (raw->action.is_take)
        loader_report(
            &resolver->loader, raw->node,
            "that nodes are unneeded does not tell whether monitoring lives: `take` needs "
            "a `guard` (or `guard: none`), or a `watchdog` under `receiver`");
}

/* Only Kubernetes has pods; and a decision has one number per resource and pod. */
static void check_track(struct resolver *resolver, const struct raw_rule *raw,
                        struct raw_target *target)
{
    const struct as_track *track = &raw->action.track;
    const char *lack = find_lack_of_pods(target);
    if (raw->source.per_pod && lack)
        loader_report(&resolver->loader,
                      schema_find_key(as_yaml_find(raw->node, "track"), "per_pod"),
                      "target `%s` is %s, which has no pods", target->name, lack);
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

const char *find_lack_of_nodes(const struct resolver *resolver, const struct raw_target *target)
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
    return provider && as_str_equal(provider->type, "http") && !target->nodes.select
               ? "a provider of type http knows no instances, and no `nodes.select` tells its nodes"
               : NULL;
}

static void check_nodes(struct resolver *resolver, const struct raw_rule *raw,
                        const struct raw_target *target)
{
    const char *lack = raw->source.nodes ? find_lack_of_nodes(resolver, target) : NULL;
    if (lack)
        loader_report(&resolver->loader, as_yaml_find(raw->node, "target"),
                      "target `%s` has no nodes in a cluster: %s", target->name, lack);
}

static void resolve_target_name(struct resolver *resolver, const struct raw_rule *raw,
                                struct as_rule *rule)
{
    struct raw_target *target = raw->target ? find_target(resolver, raw->target) : NULL;
    if (target) {
        rule->target = target->number;
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

void resolve_rule(struct resolver *resolver, const struct raw_rule *raw, struct as_rule *rule)
{
    resolver->loader.tree = raw->tree;
    rule->name = as_xstrdup(raw->name ? raw->name : "");
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
    if (raw->match)
        resolve_matchers(resolver, raw->match, rule);
    check_proof(resolver, raw);
    resolve_target_name(resolver, raw, rule);
}
