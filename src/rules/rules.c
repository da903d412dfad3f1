/*
 * The tables of a rule file and of `rules[]`.
 */

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>

#include "rule_parts.h"

#define IN_RULE(member) offsetof(struct raw_rule, member)
#define IN_FILE(member) offsetof(struct raw_rule_file, member)

const struct schema_field schema_matcher_list[] = {
    SCHEMA_FORM(STRINGS, .when_empty = "expected at least one matcher, found an empty list"), {0}};

bool check_matcher_list(struct loader *loader, const struct as_yaml_node *value)
{
    return schema_is_kind(loader, value, AS_YAML_LIST) &&
           schema_check_count(loader, schema_matcher_list, value) && value->count > 0;
}

static void parse_match(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    if (check_matcher_list(loader, value))
        rule->match = value;
}

static const struct schema_field fallback_fields[] = {
    SCHEMA_FIELD("after", DURATION, as_fallback, after_us, .is_required = true),
    SCHEMA_FIELD("at_least", INT, as_fallback, at_least, .is_required = true, .min = 1,
                 .max = AS_SIZE_MAX),
    {0},
};

const struct schema rule_fallback = SCHEMA("fallback", as_fallback, fallback_fields);

/* In the order of enum as_ways. */
static const char *const ways_words[] = {"down", "up", "both", NULL};

static const struct schema_field rule_fields[] = {
    SCHEMA_FIELD("name", NAME, raw_rule, name, .is_required = true),
    {.key = "match",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_match,
     .forms = schema_matcher_list,
     .expected = "list of matchers"},
    SCHEMA_FIELD("receivers", STRINGS, raw_rule, receivers,
                 .count_offset = IN_RULE(receiver_count)),
    SCHEMA_FIELD("target", STRING, raw_rule, target, .is_required = true),
    {.key = "scale_up",
     .type = SCHEMA_CUSTOM,
     .parse = parse_scale_up,
     .forms = schema_scale_forms,
     .expected = "map"},
    {.key = "scale_down",
     .type = SCHEMA_CUSTOM,
     .parse = parse_scale_down,
     .forms = schema_scale_forms,
     .expected = "map"},
    {.key = "scale_to",
     .type = SCHEMA_CUSTOM,
     .parse = parse_scale_to,
     .forms = schema_scale_to_forms,
     .expected = "integer or map"},
    {.key = "track",
     .type = SCHEMA_CUSTOM,
     .parse = parse_track,
     .forms = schema_track_forms,
     .expected = "map"},
    {.key = "pass_through",
     .type = SCHEMA_CUSTOM,
     .parse = parse_pass_through,
     .forms = schema_pass_through_forms,
     .expected = "map"},
    SCHEMA_FIELD("hold", WORD, raw_rule, hold, .words = ways_words),
    SCHEMA_FIELD("fallback", MAP, raw_rule, fallback, .map = &rule_fallback),
    {.key = "on_resolved",
     .type = SCHEMA_CUSTOM,
     .parse = parse_on_resolved,
     .forms = schema_on_resolved_forms,
     .expected = "word or map",
     .fallback = "nothing"},
    SCHEMA_FIELD("every", DURATION, raw_rule, every_us, .min = AS_US_PER_S),
    SCHEMA_FIELD("max_steps", INT, raw_rule, max_steps, .min = 1, .max = AS_SIZE_MAX),
    SCHEMA_FIELD("once", BOOL, raw_rule, once, .fallback = "false"),
    SCHEMA_FIELD("ineffective_after", INT, raw_rule, ineffective_after, .min = 1,
                 .max = AS_SIZE_MAX),
    {.key = "guard",
     .type = SCHEMA_CUSTOM,
     .parse = parse_guard,
     .forms = schema_guard_forms,
     .expected = "map or `none`"},
    {.key = "approval",
     .type = SCHEMA_CUSTOM,
     .parse = parse_rule_approval,
     .forms = schema_approval_forms,
     .expected = "map or `none`"},
    SCHEMA_FIELD("dry_run", BOOL, raw_rule, dry_run, .fallback = "false"),
    SCHEMA_FIELD("enabled", BOOL, raw_rule, enabled, .fallback = "true"),
    {0},
};

/* Of a rule that only scales up. */
static void check_guard(struct loader *loader, const struct as_yaml_node *node,
                        const struct raw_rule *rule)
{
    const struct as_yaml_node *guard = schema_find_key(node, "guard");
    if (guard && as_yaml_find(node, "scale_up") && !rule->has_ending)
        loader_report(loader, guard,
                      "`guard` is a condition for scaling down, which this rule never does: it "
                      "has `scale_up`, and no `on_resolved`");
}

/* A rule with `hold` does nothing that could be repeated, counted or proven. */
static void finish_hold(struct loader *loader, const struct as_yaml_node *node,
                        struct raw_rule *rule)
{
    static const char *const others[] = {"on_resolved", "every", "max_steps",
                                         "once",        "guard", "ineffective_after"};
    if (!as_yaml_find(node, "hold"))
        return;
    rule->action =
        (struct as_action){.kind = AS_ACTION_HOLD, .hold = (enum as_ways)(rule->hold + 1)};
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++) {
        const struct as_yaml_node *key = schema_find_key(node, others[i]);
        if (key)
            loader_report(loader, key,
                          "`%s` goes with a rule that changes the size: `hold` lasts while its "
                          "alert fires",
                          others[i]);
    }
}

static void check_fallback(struct loader *loader, const struct as_yaml_node *node,
                           const struct raw_rule *rule)
{
    const struct as_yaml_node *key = schema_find_key(node, "fallback");
    const struct raw_source *source = &rule->source;
    if (!key)
        return;
    if (as_yaml_find(node, "scale_down"))
        loader_report(loader, key, "`fallback` raises the size, which `scale_down` must not do");
    else if (!source->query && !source->annotation && !source->label && !source->nodes)
        loader_report(loader, key,
                      "`fallback` is for a value that is unavailable, and this rule has none");
}

static void finish_rule(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    struct raw_rule *rule = object;
    rule->tree = loader->tree;
    rule->node = node;
    if (rule->once && rule->max_steps > 1)
        loader_report(loader, schema_find_key(node, "once"),
                      "`once` is the same as `max_steps: 1`, but `max_steps` is %d",
                      rule->max_steps);
    if (rule->once)
        rule->max_steps = 1;
    if (!rule->every_us && (rule->source.query || rule->source.nodes || rule->action.is_fit ||
                            rule->action.is_take || as_yaml_find(node, "track")))
        rule->every_us = 15 * AS_US_PER_S;
    check_guard(loader, node, rule);
    finish_hold(loader, node, rule);
    check_fallback(loader, node, rule);
}

static const struct schema_choice rule_choices[] = {
    {SCHEMA_ONE_OF("scale_up", "scale_down", "scale_to", "track", "pass_through", "hold"), false},
    {0}};

const struct schema schema_rule =
    SCHEMA("rule", raw_rule, rule_fields, .choices = rule_choices, .finish = finish_rule);

static const struct schema_field file_fields[] = {
    SCHEMA_FIELD("targets", NAMED, raw_rule_file, targets, .count_offset = IN_FILE(target_count),
                 .map = &schema_target),
    SCHEMA_FIELD("rules", MAPS, raw_rule_file, rules, .count_offset = IN_FILE(rule_count),
                 .map = &schema_rule),
    {0},
};

const struct schema schema_rule_file = {
    .name = "rule file",
    .size = sizeof(struct raw_rule_file),
    .fields = file_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"groups",
             "this looks like a file of Prometheus' alerting rules; a rule file has "
             "`targets` and `rules`. To compare it with them: check --prometheus-rules FILE",
             false},
            {"tests", "this is a file of tests: run it with `alertscaler test`", false},
            {"route",
             "this looks like Alertmanager's configuration. To compare rules with it: "
             "check --alertmanager FILE",
             false},
            {0},
        },
};
