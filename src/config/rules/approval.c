/*
 * `approval` of rules, targets and defaults, and the digest of what an approval is bound to.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content_hash.h"
#include "resolve.h"
#include "rule_parts.h"

static const struct schema_field approval_fields[] = {
    SCHEMA_FIELD("above", INT, as_approval_config, above, .is_required = true, .min = 0,
                 .max = AS_SIZE_MAX),
    SCHEMA_FIELD("for", DURATION, as_approval_config, for_us, .min = AS_APPROVAL_FOR_MIN_US,
                 .max = AS_APPROVAL_FOR_MAX_US, .fallback = "15m"),
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

/* The kind, the size and the content of each node, so that no two trees give the same text. */
static void add_node(struct content_hash *hash, const struct as_yaml_node *node)
{
    const uint32_t size =
        node->kind == AS_YAML_SCALAR ? (uint32_t)node->size : (uint32_t)node->count;
    const unsigned char head[] = {(unsigned char)node->kind,   (unsigned char)node->is_plain,
                                  (unsigned char)(size >> 24), (unsigned char)(size >> 16),
                                  (unsigned char)(size >> 8),  (unsigned char)size};
    content_hash_add(hash, (const char *)head, sizeof(head));
    switch (node->kind) {
    case AS_YAML_SCALAR: content_hash_add(hash, node->text, node->size); break;
    case AS_YAML_LIST:
        for (uint32_t i = 0; i < node->count; i++)
            add_node(hash, node->items[i]);
        break;
    case AS_YAML_MAP:
        for (uint32_t i = 0; i < node->count; i++) {
            add_node(hash, node->pairs[i].key);
            add_node(hash, node->pairs[i].value);
        }
        break;
    }
}

/* The approval may stand in `defaults`, and in neither of the two. */
static struct as_digest make_digest(const struct as_yaml_node *rule,
                                    const struct as_yaml_node *target,
                                    const struct as_approval_config *approval)
{
    char terms[64];
    struct content_hash hash = content_hash_begin();
    char text[AS_DIGEST_TEXT_SIZE];
    struct as_digest digest = {0};
    add_node(&hash, rule);
    add_node(&hash, target);
    snprintf(terms, sizeof(terms), "%" PRId32 " %" PRId64, approval->above, approval->for_us);
    content_hash_add(&hash, terms, strlen(terms));
    content_hash_end(&hash, text);
    if (!as_digest_parse(text, strlen(text), &digest))
        abort(); /* it was printed by as_digest_print */
    return digest;
}

void resolve_approval(const struct raw_rule *raw, const struct raw_target *target,
                      struct as_rule *rule)
{
    rule->approval = raw->has_approval ? raw->approval : target->policy.approval;
    if (rule->approval.is_set && target->node)
        rule->digest = make_digest(raw->node, target->node, &rule->approval);
}
