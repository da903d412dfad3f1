/*
 * Queries in the trees of rule files: each `query` below `rules`.
 */
#include <alertscaler/rules/rule_queries.h>

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/model/promql.h>

struct query_visit {
    as_rule_query_fn *visit;
    void *context;
    struct as_rule_query query;
};

static void rule_queries_visit_node(struct query_visit *visit, const struct as_yaml_node *node)
{
    for (uint32_t i = 0; node->kind == AS_YAML_LIST && i < node->count; i++)
        rule_queries_visit_node(visit, node->items[i]);
    for (uint32_t i = 0; node->kind == AS_YAML_MAP && i < node->count; i++) {
        const struct as_yaml_pair *pair = &node->pairs[i];
        if (pair->value->kind != AS_YAML_SCALAR) {
            rule_queries_visit_node(visit, pair->value);
        } else if (strcmp(pair->key->text, "query") == 0) {
            visit->query.map = node;
            visit->query.text = pair->value;
            visit->visit(visit->context, &visit->query);
        }
    }
}

void as_rule_queries_visit(const struct as_yaml_tree *tree, as_rule_query_fn *visit, void *context)
{
    const struct as_yaml_node *rules = as_yaml_find(as_yaml_get_root(tree), "rules");
    for (uint32_t i = 0; rules && rules->kind == AS_YAML_LIST && i < rules->count; i++) {
        struct query_visit one = {.visit = visit, .context = context, .query = {.tree = tree}};
        one.query.rule = rules->items[i];
        rule_queries_visit_node(&one, rules->items[i]);
    }
}

struct as_yaml_node as_rule_query_locate(const struct as_rule_query *query, const char *error,
                                         const char **message_out)
{
    struct as_yaml_node inside = *query->text;
    size_t offset;
    if (as_promql_find_place(query->text->text, error, &offset, message_out))
        (void)as_yaml_find_inside(query->tree, query->text, offset, &inside.place);
    return inside;
}
