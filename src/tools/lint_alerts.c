/*
 * Rules against Prometheus' alerting rules: whether any of these can make a matching alert, and
 * whether these set the annotations that the rule reads. Labels are not checked: an alert may have
 * more labels than its alerting rule sets.
 */
#include <string.h>

#include <alertscaler/model/template.h>

#include "lint_run.h"
#include <alertscaler/doc/schema.h>

/* The closest alerting rule: its name fits, and the fewest matchers refuse it. */
static const struct lint_alert *find_nearest(struct lint_run *run, const struct as_rule *rule)
{
    const struct lint_prometheus *prometheus = &run->lint->prometheus;
    const struct lint_alert *nearest = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < prometheus->alert_count && lint_spend(run, LINT_CHEAP); i++) {
        const struct lint_alert *alert = &prometheus->alerts[i];
        size_t cost = 0;
        for (size_t k = 0; k < rule->matcher_count; k++) {
            const struct as_matcher *matcher = &rule->matchers[k];
            if (lint_alert_refuses(alert, matcher))
                cost += strcmp(matcher->name, "alertname") == 0 ? rule->matcher_count : 1;
        }
        if (cost < least) {
            least = cost;
            nearest = alert;
        }
    }
    return nearest;
}

static void report_unknown_name(struct lint_run *run, const struct lint_rule *rule, size_t index)
{
    const struct lint_prometheus *prometheus = &run->lint->prometheus;
    const struct as_matcher *matcher = &rule->rule->matchers[index];
    struct suggestion suggestion = suggestion_start(matcher->value);
    char hint[SUGGESTION_SIZE];
    for (size_t i = 0; i < prometheus->alert_count && lint_spend(run, LINT_CHEAP); i++)
        suggestion_offer(&suggestion, prometheus->alerts[i].name);
    lint_warn(run, rule->tree, lint_get_matcher(rule, index),
              "no alerting rule in the files of --prometheus-rules has this name%s",
              suggestion_print(&suggestion, hint));
}

static void report_no_alert(struct lint_run *run, const struct lint_rule *rule)
{
    const struct lint_alert *alert = find_nearest(run, rule->rule);
    char place[LINT_PLACE_SIZE];
    for (size_t i = 0; alert && i < rule->rule->matcher_count; i++) {
        const struct as_matcher *matcher = &rule->rule->matchers[i];
        if (!lint_alert_refuses(alert, matcher))
            continue;
        if (strcmp(matcher->name, "alertname") == 0)
            report_unknown_name(run, rule, i);
        else
            lint_warn(run, rule->tree, lint_get_matcher(rule, i),
                      "no alerting rule in the files of --prometheus-rules makes an alert that "
                      "matches: `%s` (%s) sets %s=\"%s\"",
                      alert->name, lint_print_place(alert->tree, alert->node, place), matcher->name,
                      lint_alert_find(alert, matcher->name));
        return;
    }
}

/* Alerting rules that may cause a rule's alerts. */
struct candidates {
    const struct lint_alert *first; /* of those that certainly match */
    size_t possible;                /* not refused */
};

static struct candidates find_candidates(struct lint_run *run, const struct as_rule *rule)
{
    const struct lint_prometheus *prometheus = &run->lint->prometheus;
    struct candidates found = {.first = NULL};
    for (size_t i = 0; i < prometheus->alert_count; i++) {
        const struct lint_alert *alert = &prometheus->alerts[i];
        /* Over the limit, each alert that was not checked is possible. */
        enum lint_fit fit = lint_spend(run, LINT_CHEAP)
                                ? lint_alert_fit(alert, rule->matchers, rule->matcher_count)
                                : LINT_FIT_UNKNOWN;
        found.possible += fit != LINT_FIT_NO;
        if (fit == LINT_FIT_YES && !found.first)
            found.first = alert;
    }
    return found;
}

/* Whether an alerting rule that is not refused sets an annotation. */
static bool is_set(struct lint_run *run, const struct as_rule *rule, const char *annotation)
{
    const struct lint_prometheus *prometheus = &run->lint->prometheus;
    for (size_t i = 0; i < prometheus->alert_count; i++) {
        const struct lint_alert *alert = &prometheus->alerts[i];
        if (!lint_spend(run, LINT_CHEAP) ||
            (as_yaml_find(alert->annotations, annotation) &&
             lint_alert_fit(alert, rule->matchers, rule->matcher_count)))
            return true;
    }
    return false;
}

/* A place that reads annotations: in a rule or in its target. */
struct reader {
    struct lint_run *run;
    const struct lint_rule *rule;
    const struct lint_alert *example; /* an alerting rule that matches */
    const struct as_yaml_tree *tree;
};

static void check_annotation(const struct reader *reader, const struct as_yaml_node *node,
                             const char *annotation)
{
    char place[LINT_PLACE_SIZE];
    if (is_set(reader->run, reader->rule->rule, annotation))
        return;
    lint_warn(reader->run, reader->tree, node,
              "no alerting rule whose alerts match rule `%s` sets the annotation `%s`: add it to "
              "`%s` (%s)",
              reader->rule->rule->name, annotation, reader->example->name,
              lint_print_place(reader->example->tree, reader->example->node, place));
}

/* The n-th template of a text as a node of its own, if the text stands unchanged in the file. */
static struct as_yaml_node cut_template(const struct reader *reader,
                                        const struct as_yaml_node *node, size_t n)
{
    struct as_yaml_node part = *node;
    const char *start = strstr(node->text, "{{");
    for (; start && n > 0; n--)
        start = strstr(start + 2, "{{");
    const char *end = start ? strstr(start, "}}") : NULL;
    struct as_yaml_place first, last;
    if (!end || !as_yaml_find_inside(reader->tree, node, (size_t)(start - node->text), &first) ||
        !as_yaml_find_inside(reader->tree, node, (size_t)(end + 1 - node->text), &last))
        return part;
    part.place = first;
    if (last.line == first.line)
        part.place.end_column = last.column + 1;
    return part;
}

static void check_template(const struct reader *reader, const struct as_yaml_node *node)
{
    AS_CLEANUP(as_template_free_p) struct as_template *template = NULL;
    enum as_template_map map = AS_TEMPLATE_LABELS;
    const char *name = NULL;
    size_t at = 0;
    if (!node || node->kind != AS_YAML_SCALAR || as_template_new(node->text, &template, NULL) < 0)
        return;
    for (size_t n = 0; (name = as_template_find_next(template, &at, &map)); n++) {
        struct as_yaml_node part = cut_template(reader, node, n);
        if (map == AS_TEMPLATE_ANNOTATIONS)
            check_annotation(reader, &part, name);
    }
}

/* SOURCE: an annotation, or a query with templates. */
static void check_source(const struct reader *reader, const struct as_yaml_node *source)
{
    const struct as_yaml_node *annotation = as_yaml_find(source, "annotation");
    if (annotation && annotation->kind == AS_YAML_SCALAR)
        check_annotation(reader, annotation, annotation->text);
    check_template(reader, as_yaml_find(source, "query"));
}

static void check_rule_readers(const struct reader *reader)
{
    const struct as_yaml_node *rule = reader->rule->node;
    const struct as_yaml_node *sources[] = {
        as_yaml_find(rule, "track"),
        as_yaml_find(rule, "pass_through"),
        as_yaml_find(as_yaml_find(rule, "scale_up"), "value"),
        as_yaml_find(as_yaml_find(rule, "scale_down"), "value"),
        as_yaml_find(rule, "guard"),
    };
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++)
        check_source(reader, sources[i]);
}

static void check_address_readers(const struct reader *reader)
{
    for (size_t i = 0; as_target_kinds[i]; i++) {
        const struct as_yaml_node *map =
            as_yaml_find(reader->rule->target_node, as_target_kinds[i]->word);
        for (uint32_t k = 0; map && map->kind == AS_YAML_MAP && k < map->count; k++)
            check_template(reader, map->pairs[k].value);
    }
}

static void check_rule(struct lint_run *run, const struct lint_rule *rule)
{
    struct candidates found = find_candidates(run, rule->rule);
    if (found.possible == 0) {
        report_no_alert(run, rule);
    } else if (found.first) {
        struct reader reader = {run, rule, found.first, rule->tree};
        check_rule_readers(&reader);
        reader.tree = rule->target_tree;
        check_address_readers(&reader);
    }
}

void lint_check_alerts(struct lint_run *run)
{
    if (run->lint->prometheus.alert_count == 0)
        return;
    for (size_t i = 0; i < run->rule_count; i++) {
        if (!run->rules[i].is_dead)
            check_rule(run, &run->rules[i]);
    }
    if (run->watchdog.rule)
        check_rule(run, &run->watchdog);
}
