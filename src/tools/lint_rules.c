/*
 * Rules alone: matchers that contradict each other. Pairs of rules: one that scales up a target,
 * and one that scales it down on the same alert.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include "lint_run.h"

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
static bool check_pair(struct lint_run *run, const struct lint_rule *up,
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

static void check_target(struct lint_run *run, struct lint_rule *const *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rules[i]->is_dead || rules[i]->rule->action.kind != AS_ACTION_SCALE_DOWN)
            continue;
        bool is_said = false;
        for (size_t k = 0; k < count && !is_said && lint_spend(run, LINT_DEAR); k++)
            is_said = always_wants_up(rules[k]) && check_pair(run, rules[k], rules[i]);
    }
}

static void check_pairs(struct lint_run *run)
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
        check_target(run, sorted + start, end - start);
    }
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
    check_pairs(run);
}
