/*
 * Matching with 10 rules and with 10,000, of which the same ones can match: the cost of an alert
 * must not depend on the other rules. Prints both and the ratio; the bound is 1.5.
 */
#include <stdio.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/ruleset.h>

#include "clock.h"

#define FEW    10
#define MANY   10000
#define ALERTS 64
#define ROUNDS 31
#define LOOPS  200

/* As people write them: an alert's name, a severity, sometimes a namespace. */
static struct as_ruleset *make_ruleset(size_t count)
{
    struct as_ruleset *ruleset = as_xcalloc(1, sizeof(*ruleset));

    ruleset->rules = as_xcalloc(count, sizeof(*ruleset->rules));
    ruleset->rule_count = count;
    for (size_t i = 0; i < count; i++) {
        struct as_rule *rule = ruleset->rules[i];
        const char *const formats[] = {"alertname=\"Service%zuSlow\"",
                                       "severity=~\"page|critical\"", "namespace!=\"test-%zu\""};
        rule->matchers = as_xcalloc(AS_ARRAY_SIZE(formats), sizeof(*rule->matchers));
        for (size_t k = 0; k < AS_ARRAY_SIZE(formats); k++) {
            char text[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
            snprintf(text, sizeof(text), formats[k], i);
#pragma GCC diagnostic pop
            if (as_matcher_init(&rule->matchers[rule->matcher_count++], text, NULL) < 0)
                abort();
        }
    }
    return ruleset;
}

/* Alerts for the first FEW rules and for none. */
static void make_alerts(struct as_labels *alerts[ALERTS])
{
    for (int i = 0; i < ALERTS; i++) {
        char name[32], pod[32];
        snprintf(name, sizeof(name), i % 2 ? "Service%dSlow" : "Other%d", i % FEW);
        snprintf(pod, sizeof(pod), "web-%d-x7f9c", i);
        const struct as_label labels[] = {
            {"alertname", name},  {"container", "app"},        {"deployment", "web"},
            {"instance", pod},    {"job", "kubelet"},          {"namespace", "shop"},
            {"pod", pod},         {"prometheus", "infra/k8s"}, {"severity", "page"},
            {"team", "payments"},
        };
        if (as_labels_new(labels, AS_ARRAY_SIZE(labels), &alerts[i]) < 0)
            abort();
    }
}

static size_t match_all(struct as_rule_index *index, struct as_labels *alerts[ALERTS])
{
    const struct as_rule *const *rules;
    size_t found = 0;

    for (int i = 0; i < ALERTS; i++)
        found +=
            as_rule_index_match(index, alerts[i], (const char *const[]){"alertscaler"}, 1, &rules);
    return found;
}

static double measure(struct as_rule_index *index, struct as_labels *alerts[ALERTS])
{
    double start = clock_get_seconds();
    size_t found = 0;

    for (int i = 0; i < LOOPS; i++)
        found += match_all(index, alerts);
    if (found != (size_t)LOOPS * ALERTS / 2)
        abort();
    return (clock_get_seconds() - start) / LOOPS / ALERTS;
}

int main(void)
{
    struct as_labels *alerts[ALERTS];
    double few = 1, many = 1;

    make_alerts(alerts);
    struct as_ruleset *few_rules = make_ruleset(FEW), *many_rules = make_ruleset(MANY);
    struct as_rule_index *few_index = as_rule_index_new(few_rules);
    double start = clock_get_seconds();
    struct as_rule_index *many_index = as_rule_index_new(many_rules);
    double build = clock_get_seconds() - start;
    for (int i = 0; i < ROUNDS; i++) { /* the quickest of rounds that take turns */
        double a = measure(few_index, alerts), b = measure(many_index, alerts);
        few = a < few ? a : few;
        many = b < many ? b : many;
    }
    printf("match: index of %d rules built in %.1f ms\n", MANY, build * 1e3);
    printf("match: %.0f ns an alert with %d rules, %.0f ns with %d: ratio %.2f (at most 1.5)\n",
           few * 1e9, FEW, many * 1e9, MANY, many / few);
    as_rule_index_free(few_index);
    as_rule_index_free(many_index);
    as_ruleset_free(few_rules);
    as_ruleset_free(many_rules);
    for (int i = 0; i < ALERTS; i++)
        as_labels_free(alerts[i]);
    return many / few > 1.5;
}
