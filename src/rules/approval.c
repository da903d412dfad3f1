/*
 * `approval` of rules, targets and defaults, and the digest of what an approval is bound to.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/rules/tables.h>

#include "config_private.h"
#include "resolve.h"

static const struct schema_field approval_fields[] = {
    SCHEMA_FIELD("above", INT, as_approval_config, above, .is_required = true, .is_count = true,
                 .min = 0, .max = AS_SIZE_MAX,
                 .about = "A change by more than this needs an approval; 0 means every change."),
    SCHEMA_FIELD(
        "for", DURATION, as_approval_config, for_us, .min = AS_APPROVAL_FOR_MIN_US,
        .max = AS_APPROVAL_FOR_MAX_US, .fallback = "15m",
        .about = "How long a request waits for its answer, and how long an approval can be used."),
    {0},
};

const struct schema rule_approval = SCHEMA("approval", as_approval_config, approval_fields);

const struct schema_field schema_approval_forms[] = {
    SCHEMA_FORM(WORD, .words = (const char *const[]){"none", NULL}),
    SCHEMA_FORM(MAP, .map = &rule_approval),
    {0},
};

static void parse(struct loader *loader, const struct as_yaml_node *value,
                  struct as_approval_config *config)
{
    *config = (struct as_approval_config){0};
    if (value->kind == AS_YAML_SCALAR && strcmp(value->text, "none") == 0)
        return;
    if (value->kind == AS_YAML_SCALAR) {
        char found[AS_YAML_FOUND_SIZE];
        loader_report(loader, value,
                      "expected a map, `approval: {above: 10, for: 15m}`, or `none`, found %s",
                      as_yaml_describe(value, found));
        return;
    }
    schema_fill_defaults(loader, &rule_approval, config);
    schema_parse(loader, &rule_approval, value, value, config);
    config->is_set = true;
}

void parse_target_approval(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse(loader, value, &((struct as_target_defaults *)object)->approval);
}

void parse_rule_approval(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    rule->has_approval = true;
    parse(loader, value, &rule->approval);
}

/* The approval may stand in `defaults`, and in neither of the two. */
static struct as_digest make_digest(const struct as_yaml_node *rule,
                                    const struct as_yaml_node *target,
                                    const struct as_approval_config *approval)
{
    char terms[64];
    struct content_hash hash = content_hash_begin();
    content_hash_add_node(&hash, rule);
    content_hash_add_node(&hash, target);
    snprintf(terms, sizeof(terms), "%" PRId32 " %" PRId64, approval->above, approval->for_us);
    content_hash_add(&hash, terms, strlen(terms));
    return content_hash_end_digest(&hash);
}

void resolve_approval(const struct raw_rule *raw, const struct raw_target *target,
                      struct as_rule *rule)
{
    rule->approval = raw->has_approval ? raw->approval : target->policy.approval;
    if (rule->approval.is_set && target->node)
        rule->digest = make_digest(raw->node, target->node, &rule->approval);
}
