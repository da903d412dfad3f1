/*
 * Checks of rules by themselves, against each other, against the settings of their configuration,
 * and against Prometheus' alerting rules.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/decide/notice.h>
#include <alertscaler/decide/sized.h>
#include <alertscaler/doc/schema.h>
#include <alertscaler/model/template.h>

#include "lint_run.h"

/* --- sizes that a rule asks for beyond the bounds of its target: they are never reached --- */

static void lint_rules_check_size(struct lint_run *run, const struct lint_rule *rule, int64_t size,
                                  const struct as_yaml_node *node)
{
    const struct as_bounds_config *bounds = &rule->target->bounds;
    const bool is_above = size > bounds->max;
    if (size >= bounds->min && !is_above)
        return;
    lint_warn(run, rule->tree, node,
              "%" PRId64 " is %s of target `%s` (%" PRId32 "), and the size never comes to it",
              size, is_above ? "above `max`" : "below `min`", rule->target->name,
              is_above ? bounds->max : bounds->min);
}

/* A step larger than the distance between the bounds always ends at a bound. */
static void check_step(struct lint_run *run, const struct lint_rule *rule,
                       const struct as_amount *amount, const struct as_yaml_node *map, bool is_up)
{
    const struct as_bounds_config *bounds = &rule->target->bounds;
    const struct as_yaml_node *by = as_yaml_find(map, "by");
    if (!by || amount->is_percent || bounds->min == bounds->max ||
        amount->size <= bounds->max - bounds->min)
        return;
    lint_warn(run, rule->tree, by,
              "every step goes to `%s`: this is more than lies between `min` (%" PRId32
              ") and `max` (%" PRId32 ") of target `%s`; a percentage is written `%" PRId64 "%%`",
              is_up ? "max" : "min", bounds->min, bounds->max, rule->target->name, amount->size);
}

static void check_action(struct lint_run *run, const struct lint_rule *rule,
                         const struct as_action *action, const struct as_yaml_node *map)
{
    const struct as_yaml_node *body = as_yaml_find(map, as_action_kind_get_word(action->kind));
    const struct as_yaml_node *steps = as_yaml_find(body, "steps");
    const bool is_up = action->kind == AS_ACTION_SCALE_UP;
    if (action->kind == AS_ACTION_SCALE_TO && !steps)
        lint_rules_check_size(run, rule, action->size, body);
    for (size_t i = 0; steps && action->kind == AS_ACTION_SCALE_TO && i < action->step_count; i++)
        lint_rules_check_size(run, rule, action->steps[i].amount.size,
                              as_yaml_find(steps->items[i], "size"));
    if (!is_up && action->kind != AS_ACTION_SCALE_DOWN)
        return;
    if (!steps)
        check_step(run, rule, &action->amount, body, is_up);
    for (size_t i = 0; steps && i < action->step_count; i++)
        check_step(run, rule, &action->steps[i].amount, steps->items[i], is_up);
}

static void lint_check_bounds(struct lint_run *run, const struct lint_rule *rule)
{
    const struct as_ending *ending = &rule->rule->on_resolved;
    check_action(run, rule, &rule->rule->action, rule->node);
    if (ending->kind == AS_ENDING_SCALE)
        check_action(run, rule, &ending->action, as_yaml_find(rule->node, "on_resolved"));
}

/* --- matchers --- */

/*
 * Rules alone: matchers that contradict each other. Pairs of rules: one that scales up a target,
 * and one that scales it down on the same alert.
 */

static void check_matchers(struct lint_run *run, struct lint_rule *rule)
{
    AS_CLEANUP(matcher_list_deinit) struct matcher_list list = {.items = NULL};
    char text[MATCHER_TEXT_SIZE];
    size_t pair[2];
    matcher_list_add(&list, rule->rule->matchers, rule->rule->matcher_count);
    if (!matcher_list_find_conflict(&list, pair))
        return;
    rule->is_dead = true;
    if (pair[0] == pair[1])
        lint_warn(run, rule->tree, lint_get_matcher(rule, pair[1]),
                  "no alert can satisfy this: it refuses every value, and no value");
    else
        lint_warn(run, rule->tree, lint_get_matcher(rule, pair[1]),
                  "no alert can satisfy this and `%s` too: the rule never applies",
                  matcher_print(list.items[pair[0]], text));
}

#define PATTERN_MAX ((size_t)300) /* bytes of a pattern that a message shows */

/* The regular expression of a pattern with `*`. */
static void print_pattern(struct as_buf *out, const char *value)
{
    for (; *value; value++) {
        if (*value == '*')
            as_buf_append_str(out, ".*");
        else if (strchr(".+?()", *value))
            as_buf_printf(out, "[%c]", *value);
        else
            as_buf_append_char(out, *value);
    }
}

/* A value may have a `*`, as a domain of a certificate has: this is a warning only for names of
 * alerts. */
static void check_star(struct lint_run *run, const struct lint_rule *rule, size_t index)
{
    const struct as_matcher *matcher = &rule->rule->matchers[index];
    const bool is_name = strcmp(matcher->name, "alertname") == 0;
    const char *op = matcher->op == AS_MATCHER_EQUAL ? "=" : "!=";
    AS_CLEANUP(as_buf_deinit) struct as_buf pattern = AS_BUF_INIT(PATTERN_MAX);
    if (!strchr(matcher->value, '*') || strpbrk(matcher->value, "\"\\[]{}^$"))
        return;
    print_pattern(&pattern, matcher->value);
    if (as_buf_check(&pattern) == 0)
        (is_name ? lint_warn : lint_hint)(
            run, rule->tree, lint_get_matcher(rule, index),
            "`*` is a plain character after `%s`: a pattern is `%s%s\"%s\"`", op, matcher->name,
            matcher->op == AS_MATCHER_EQUAL ? "=~" : "!~", pattern.data);
}

/* `=` with a pattern never matches, and nothing else reports it. */
static void check_patterns(struct lint_run *run, const struct lint_rule *rule)
{
    char text[MATCHER_TEXT_SIZE];
    for (size_t i = 0; i < rule->rule->matcher_count; i++) {
        const struct as_matcher *matcher = &rule->rule->matchers[i];
        const bool is_negative = matcher->op == AS_MATCHER_NOT_EQUAL;
        if ((matcher->op == AS_MATCHER_EQUAL || is_negative) &&
            (strstr(matcher->value, ".*") || strstr(matcher->value, ".+") ||
             strchr(matcher->value, '|')))
            lint_warn(run, rule->tree, lint_get_matcher(rule, i),
                      "`%s` compares the value as it is written: a pattern needs `%s`",
                      matcher_print(matcher, text), is_negative ? "!~" : "=~");
        else if (matcher->op == AS_MATCHER_EQUAL || is_negative)
            check_star(run, rule, i);
    }
}

/* Receivers through which the same alert may come: any, or a common one. */
static bool shares_receiver(const struct as_rule *a, const struct as_rule *b)
{
    for (size_t i = 0; i < a->receiver_count; i++) {
        for (size_t k = 0; k < b->receiver_count; k++) {
            if (strcmp(a->receivers[i], b->receivers[k]) == 0)
                return true;
        }
    }
    return a->receiver_count == 0 || b->receiver_count == 0;
}

static bool can_match_one_alert(struct lint_run *run, const struct as_rule *a,
                                const struct as_rule *b)
{
    AS_CLEANUP(matcher_list_deinit) struct matcher_list list = {.items = NULL};
    const struct lint_prometheus *prometheus = &run->lint->prometheus;
    size_t pair[2];
    matcher_list_add(&list, a->matchers, a->matcher_count);
    matcher_list_add(&list, b->matchers, b->matcher_count);
    if (matcher_list_find_conflict(&list, pair))
        return false;
    for (size_t i = 0; i < prometheus->alert_count && lint_spend(run, LINT_CHEAP); i++) {
        const struct lint_alert *alert = &prometheus->alerts[i];
        if (lint_alert_fit(alert, a->matchers, a->matcher_count) != LINT_FIT_NO &&
            lint_alert_fit(alert, b->matchers, b->matcher_count) != LINT_FIT_NO)
            return true;
    }
    return prometheus->alert_count == 0;
}

/* The first two alerts, one of each rule, whose expressions can be true together. */
static bool find_overlap(struct lint_run *run, const struct as_rule *up, const struct as_rule *down,
                         const struct lint_alert *pair_out[2])
{
    const struct lint_prometheus *prometheus = &run->lint->prometheus;
    for (size_t i = 0; i < prometheus->alert_count; i++) {
        const struct lint_alert *a = &prometheus->alerts[i];
        if (!lint_spend(run, LINT_CHEAP))
            return false;
        if (!a->threshold.subject ||
            lint_alert_fit(a, up->matchers, up->matcher_count) != LINT_FIT_YES)
            continue;
        for (size_t k = 0; k < prometheus->alert_count && lint_spend(run, LINT_CHEAP); k++) {
            const struct lint_alert *b = &prometheus->alerts[k];
            if (k == i || !threshold_overlaps(&a->threshold, &b->threshold) ||
                lint_alert_fit(b, down->matchers, down->matcher_count) != LINT_FIT_YES)
                continue;
            pair_out[0] = a;
            pair_out[1] = b;
            return true;
        }
    }
    return false;
}

/* False: nothing to report. */
static bool lint_rules_check_pair(struct lint_run *run, const struct lint_rule *up,
                                  const struct lint_rule *down)
{
    const struct lint_alert *pair[2];
    char place[LINT_PLACE_SIZE], first[LINT_PLACE_SIZE], second[LINT_PLACE_SIZE];
    if (!shares_receiver(up->rule, down->rule))
        return false;
    lint_print_place(up->tree, up->node, place);
    if (can_match_one_alert(run, up->rule, down->rule))
        lint_warn(run, down->tree, lint_get_match(down),
                  "one alert can match this and rule `%s` (%s), which scales target `%s` up: while "
                  "it fires nothing is scaled down (`vetoed`)",
                  up->rule->name, place, up->target->name);
    else if (find_overlap(run, up->rule, down->rule, pair))
        lint_warn(run, down->tree, lint_get_match(down),
                  "alert `%s` (%s) can fire together with `%s` (%s) of rule `%s`, which scales "
                  "target `%s` up: their thresholds overlap, and while both hold nothing is scaled "
                  "down (`vetoed`)",
                  pair[1]->name, lint_print_place(pair[1]->tree, pair[1]->node, second),
                  pair[0]->name, lint_print_place(pair[0]->tree, pair[0]->node, first),
                  up->rule->name, up->target->name);
    else
        return false;
    return true;
}

/* It wants up while its alert fires. Steps may have none for the value; `to` does not veto rules
 * that stay above it; `fit` wants nothing while no pod waits. */
static bool always_wants_up(const struct lint_rule *rule)
{
    return !rule->is_dead && rule->rule->action.kind == AS_ACTION_SCALE_UP &&
           rule->rule->source.kind == AS_SOURCE_NONE && !rule->rule->action.is_to &&
           !rule->rule->action.is_fit;
}

static int compare_by_target(const void *left, const void *right)
{
    const struct lint_rule *a = *(const struct lint_rule *const *)left;
    const struct lint_rule *b = *(const struct lint_rule *const *)right;
    if (a->rule->target != b->rule->target)
        return a->rule->target < b->rule->target ? -1 : 1;
    return (a > b) - (a < b);
}

static void lint_rules_check_target(struct lint_run *run, struct lint_rule *const *rules,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rules[i]->is_dead || rules[i]->rule->action.kind != AS_ACTION_SCALE_DOWN)
            continue;
        bool is_said = false;
        for (size_t k = 0; k < count && !is_said && lint_spend(run, LINT_DEAR); k++)
            is_said = always_wants_up(rules[k]) && lint_rules_check_pair(run, rules[k], rules[i]);
    }
}

static void lint_rules_check_pairs(struct lint_run *run)
{
    AS_CLEANUP(as_free_p)
    struct lint_rule **sorted = as_xcalloc(run->rule_count + 1, sizeof(struct lint_rule *));
    for (size_t i = 0; i < run->rule_count; i++)
        sorted[i] = &run->rules[i];
    qsort(sorted, run->rule_count, sizeof(struct lint_rule *), compare_by_target);
    for (size_t start = 0, end = 0; start < run->rule_count; start = end) {
        for (end = start + 1; end < run->rule_count; end++) {
            if (sorted[end]->rule->target != sorted[start]->rule->target)
                break;
        }
        lint_rules_check_target(run, sorted + start, end - start);
    }
}

/* --- equal rules: the same but for their names --- */

#define RULE_TEXT_MAX ((size_t)64 * 1024) /* larger rules are not compared */

static int compare_matcher_nodes(const void *left, const void *right)
{
    const struct as_yaml_node *a = *(const struct as_yaml_node *const *)left;
    const struct as_yaml_node *b = *(const struct as_yaml_node *const *)right;
    return strcmp(a->kind == AS_YAML_SCALAR ? a->text : "",
                  b->kind == AS_YAML_SCALAR ? b->text : "");
}

static int compare_pairs(const void *left, const void *right)
{
    return strcmp(((const struct as_yaml_pair *)left)->key->text,
                  ((const struct as_yaml_pair *)right)->key->text);
}

/* A text that equal nodes share: keys in order, and matchers, whose order has no meaning.
 * `skipped`: a key of the map that is left out; NULL: none. The depth of a tree is limited. */
static void lint_rules_print_node(struct as_buf *out, const struct as_yaml_node *node,
                                  bool is_sorted, const char *skipped)
{
    if (node->kind == AS_YAML_SCALAR) {
        as_buf_printf(out, "%zu:%s", node->size, node->text);
    } else if (node->kind == AS_YAML_LIST) {
        AS_CLEANUP(as_free_p)
        const struct as_yaml_node **items = as_xcalloc(node->count + 1, sizeof(*items));
        for (uint32_t i = 0; i < node->count; i++)
            items[i] = node->items[i];
        if (is_sorted)
            qsort(items, node->count, sizeof(*items), compare_matcher_nodes);
        as_buf_append_char(out, '[');
        for (uint32_t i = 0; i < node->count; i++)
            lint_rules_print_node(out, items[i], false, NULL);
        as_buf_append_char(out, ']');
    } else {
        AS_CLEANUP(as_free_p)
        struct as_yaml_pair *pairs = as_xcalloc(node->count + 1, sizeof(*pairs));
        if (node->count > 0)
            memcpy(pairs, node->pairs, node->count * sizeof(*pairs));
        qsort(pairs, node->count, sizeof(*pairs), compare_pairs);
        as_buf_append_char(out, '{');
        for (uint32_t i = 0; i < node->count; i++) {
            if (skipped && strcmp(pairs[i].key->text, skipped) == 0)
                continue;
            lint_rules_print_node(out, pairs[i].key, false, NULL);
            lint_rules_print_node(out, pairs[i].value, strcmp(pairs[i].key->text, "match") == 0,
                                  NULL);
        }
        as_buf_append_char(out, '}');
    }
}

struct rule_text {
    char *text;
    const struct lint_rule *rule;
};

static int compare_rule_texts(const void *left, const void *right)
{
    const struct rule_text *a = left, *b = right;
    const int status = strcmp(a->text, b->text);
    return status ? status : (a->rule > b->rule) - (a->rule < b->rule);
}

static void check_equal_rules(struct lint_run *run)
{
    AS_CLEANUP(as_free_p)
    struct rule_text *texts = as_xcalloc(run->rule_count + 1, sizeof(*texts));
    size_t count = 0;
    for (size_t i = 0; i < run->rule_count && lint_spend(run, LINT_CHEAP); i++) {
        struct as_buf text = AS_BUF_INIT(RULE_TEXT_MAX);
        lint_rules_print_node(&text, run->rules[i].node, false, "name");
        if (as_buf_check(&text) == 0)
            texts[count++] = (struct rule_text){as_buf_take(&text, NULL), &run->rules[i]};
        as_buf_deinit(&text);
    }
    qsort(texts, count, sizeof(*texts), compare_rule_texts);
    for (size_t i = 1, first = 0; i < count; i++) {
        char place[LINT_PLACE_SIZE];
        const struct lint_rule *rule = texts[i].rule, *other = texts[first].rule;
        if (strcmp(texts[i].text, texts[first].text) != 0)
            first = i;
        else
            lint_warn(run, rule->tree, as_yaml_find(rule->node, "name"),
                      "rule `%s` is equal to rule `%s` (%s): remove one of them", rule->rule->name,
                      other->rule->name, lint_print_place(other->tree, other->node, place));
    }
    for (size_t i = 0; i < count; i++)
        free(texts[i].text);
}

void lint_check_rules(struct lint_run *run)
{
    for (size_t i = 0; i < run->rule_count; i++) {
        check_matchers(run, &run->rules[i]);
        check_patterns(run, &run->rules[i]);
        lint_check_bounds(run, &run->rules[i]);
    }
    if (run->watchdog.rule)
        check_patterns(run, &run->watchdog);
    lint_rules_check_pairs(run);
    check_equal_rules(run);
}

/* --- targets that are fields of objects, or resources of containers --- */

/* The rights that they need reach further than those of a scale. */

#define NAMES_MAX ((size_t)200) /* bytes of the targets' names in the hint */

/* The first key of a row of as_sized_kinds says so. */
static bool is_sized_otherwise(const struct as_target_config *target)
{
    for (size_t i = 0; i < target->address_count; i++) {
        for (const struct as_sized_kind *kind = as_sized_kinds; kind->word; kind++) {
            if (strcmp(target->address[i].key, kind->keys[0]) == 0)
                return true;
        }
    }
    return false;
}

/* Each target once, in the order of its first rule. */
static bool lint_rules_is_new(const struct lint_run *run, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (run->rules[i].target == run->rules[index].target)
            return false;
    }
    return true;
}

void lint_check_fields(struct lint_run *run)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf names = AS_BUF_INIT(NAMES_MAX);
    const struct lint_rule *first = NULL;
    for (size_t i = 0; i < run->rule_count; i++) {
        const struct lint_rule *rule = &run->rules[i];
        if (!is_sized_otherwise(rule->target) || !lint_spend(run, LINT_CHEAP) ||
            !lint_rules_is_new(run, i))
            continue;
        if (strlen(rule->target->name) + names.size + 8 < NAMES_MAX)
            as_buf_printf(&names, "%s`%s`", first ? ", " : "", rule->target->name);
        first = first ? first : rule;
    }
    if (first)
        lint_hint(run, first->target_tree, first->target_node,
                  "fields and resources need rights on the objects themselves, which reach further "
                  "than `scale`: `check --cluster` prints a missing role as YAML, ready to apply "
                  "(targets %s; docs/fields.md, docs/from-vpa.md)",
                  names.data);
}

/* --- targets of `always` rules whose default cooldown slows `behavior` down --- */

/* The target's own key, or that of `defaults`. */
static bool lint_has_key(const struct lint_run *run, const struct lint_rule *rule, const char *key)
{
    const struct as_yaml_node *root =
        run->settings_tree ? as_yaml_get_root(run->settings_tree) : NULL;
    return as_yaml_find(rule->target_node, key) ||
           as_yaml_find(as_yaml_find(root, "defaults"), key);
}

void lint_check_cooldowns(struct lint_run *run)
{
    AS_CLEANUP(as_free_p)
    bool *is_hinted = as_xcalloc(run->config->ruleset->target_count + 1, sizeof(*is_hinted));
    for (size_t i = 0; i < run->rule_count; i++) {
        const struct lint_rule *rule = &run->rules[i];
        if (!rule->rule->is_always || is_hinted[rule->target->number] ||
            rule->target->kind->has_nodes || as_target_kind_has_groups(rule->target->kind) ||
            lint_has_key(run, rule, "cooldown") || !lint_has_key(run, rule, "behavior"))
            continue;
        is_hinted[rule->target->number] = true;
        const struct as_yaml_node *own = schema_find_key(rule->target_node, "behavior");
        lint_hint(run, own ? rule->target_tree : rule->tree, own ? own : rule->node,
                  "rule `%s` is an `always` rule, and `behavior` limits the changes of target "
                  "`%s`; the default cooldown (up 3m, down 5m) slows them down further: write "
                  "`cooldown: {up: 0s, down: 0s}` (docs/lint.md)",
                  rule->rule->name, rule->target->name);
    }
}

/* --- rules that wait for a person, in a configuration that notifies no receiver --- */

static bool notifies_approvals(const struct as_settings *settings)
{
    for (size_t i = 0; i < settings->notify_count; i++) {
        if (settings->notify[i].on & 1U << AS_NOTICE_NEEDS_APPROVAL)
            return true;
    }
    return false;
}

void lint_check_approvals(struct lint_run *run)
{
    if (!run->settings_tree || notifies_approvals(&run->config->settings))
        return;
    for (size_t i = 0; i < run->rule_count; i++) {
        const struct lint_rule *rule = &run->rules[i];
        if (!lint_spend(run, LINT_CHEAP))
            return;
        if (!rule->rule->approval.is_set)
            continue;
        lint_hint(run, rule->tree, rule->node,
                  "nobody is told when rule `%s` waits for an approval: add `needs_approval` under "
                  "`on` of a receiver of `notify`, or watch AlertscalerApprovalWaits "
                  "(docs/rules.md#approval)",
                  rule->rule->name);
        return;
    }
}

/* --- Prometheus' alerting rules --- */

/*
 * Whether any of these can make a matching alert, and whether these set the annotations that the
 * rule reads. Labels are not checked: an alert may have more labels than its alerting rule sets.
 */

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

static void lint_rules_check_template(const struct reader *reader, const struct as_yaml_node *node)
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
static void lint_rules_check_source(const struct reader *reader, const struct as_yaml_node *source)
{
    const struct as_yaml_node *annotation = as_yaml_find(source, "annotation");
    if (annotation && annotation->kind == AS_YAML_SCALAR)
        check_annotation(reader, annotation, annotation->text);
    lint_rules_check_template(reader, as_yaml_find(source, "query"));
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
        lint_rules_check_source(reader, sources[i]);
}

static void check_address_readers(const struct reader *reader)
{
    for (size_t i = 0; as_target_kinds[i]; i++) {
        const struct as_yaml_node *map =
            as_yaml_find(reader->rule->target_node, as_target_kinds[i]->word);
        for (uint32_t k = 0; map && map->kind == AS_YAML_MAP && k < map->count; k++)
            lint_rules_check_template(reader, map->pairs[k].value);
    }
}

static void lint_rules_check_rule(struct lint_run *run, const struct lint_rule *rule)
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
            lint_rules_check_rule(run, &run->rules[i]);
    }
    if (run->watchdog.rule)
        lint_rules_check_rule(run, &run->watchdog);
}
