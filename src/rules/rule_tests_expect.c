/*
 * The table of what a rule test expects.
 */
#include <string.h>

#include "rule_tests_schema.h"

const char *const test_outcomes[] = {
    "queued",    "no_rule",       "duplicate", "stale", "silenced", "target_not_allowed",
    "max_steps", "rule_disabled", "own_alert", NULL,
};

static void parse_reason(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_expect *expect = object;
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    const bool is_scalar = value->kind == AS_YAML_SCALAR;
    expect->expected.has_reason = true;
    if (is_scalar && as_reason_find(value->text, &expect->expected.reason))
        return;
    struct suggestion suggestion = suggestion_start(is_scalar ? value->text : "");
    for (int i = 0; i < AS_REASON_COUNT; i++)
        suggestion_offer(&suggestion, as_reason_get_word((enum as_reason)i));
    loader_report(loader, value, "expected a reason code, found %s%s",
                  as_yaml_describe(value, found), suggestion_print(&suggestion, hint));
}

/* A size, or `none`: nobody is asked. */
static void parse_asked(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_rule_test_expected *expected = &((struct raw_expect *)object)->expected;
    int64_t size = -1;
    expected->has_asked = true;
    expected->asked = -1;
    if (value->kind == AS_YAML_SCALAR && strcmp(value->text, "none") == 0)
        return;
    if (schema_parse_i64(loader, value, 0, AS_SIZE_MAX, &size))
        expected->asked = (int32_t)size;
}

static void parse_alert(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_test_parse_labels(loader, value, &((struct raw_expect *)object)->alert);
}

static const struct schema_field asked_forms[] = {
    SCHEMA_FORM(WORD, .words = (const char *const[]){"none", NULL}),
    SCHEMA_FORM(INT, .min = 0, .max = AS_SIZE_MAX),
    {0},
};

static const struct schema_field expect_fields[] = {
    RULE_TEST_AT(raw_expect),
    SCHEMA_FIELD("target", STRING, raw_expect, target),
    SCHEMA_FIELD("replicas", INT, raw_expect, expected.replicas, .min = 0, .max = AS_SIZE_MAX),
    {.key = "reason",
     .type = SCHEMA_CUSTOM,
     .parse = parse_reason,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(REASON)),
     .expected = "reason code"},
    SCHEMA_FIELD("rule", STRING, raw_expect, expected.rule),
    SCHEMA_FIELD("desired", INT, raw_expect, expected.desired, .min = 0, .max = AS_SIZE_MAX),
    {.key = "asked",
     .type = SCHEMA_CUSTOM,
     .parse = parse_asked,
     .forms = asked_forms,
     .expected = "integer or none"},
    {.key = "alert",
     .type = SCHEMA_CUSTOM,
     .parse = parse_alert,
     .forms = rule_test_label_forms,
     .expected = "map of labels"},
    SCHEMA_FIELD("outcome", WORD, raw_expect, outcome, .words = test_outcomes),
    {0},
};

static void init_expect(struct loader *loader, void *object)
{
    struct raw_expect *expect = object;
    expect->expected.replicas = expect->expected.desired = -1;
}

static const struct schema_choice expect_choices[] = {{SCHEMA_ONE_OF("target", "alert"), false},
                                                      {0}};

static void finish_expect(struct loader *loader, const struct as_yaml_node *node,
                          const struct as_yaml_node *at, void *object)
{
    static const char *const of_targets[] = {"replicas", "reason", "rule",
                                             "desired",  "asked",  NULL};
    static const char *const of_alerts[] = {"outcome", NULL};
    struct raw_expect *expect = object;
    const bool is_target = as_yaml_find(node, "target") != NULL;
    expect->node = node;
    if (!schema_has_one_of(node, expect_choices->keys))
        return;
    rule_test_check_companions(loader, node, of_targets, is_target, "`target`");
    rule_test_check_companions(loader, node, of_alerts, !is_target, "`alert`");
    bool says_something = false;
    for (const char *const *key = is_target ? of_targets : of_alerts; *key; key++)
        says_something = says_something || schema_find_key(node, *key);
    if (!says_something)
        loader_report(loader, at, "%s is needed",
                      is_target ? "one of `replicas`, `reason`, `rule`, `desired` and `asked`"
                                : "`outcome`");
}

const struct schema schema_test_expect =
    SCHEMA("tests.expect", raw_expect, expect_fields, .choices = expect_choices,
           .init = init_expect, .finish = finish_expect);
