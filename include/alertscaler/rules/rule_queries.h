/*
 * The queries of rule files, with their places.
 */
#ifndef ALERTSCALER_RULES_RULE_QUERIES_H
#define ALERTSCALER_RULES_RULE_QUERIES_H

#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/doc/yaml_tree.h>

struct as_rule_query { /* valid as long as the tree */
    const struct as_yaml_tree *tree;
    const struct as_yaml_node *rule; /* that has the query */
    const struct as_yaml_node *map;  /* that the query stands in */
    const struct as_yaml_node *text; /* the query as written */
};

typedef void as_rule_query_fn(void *context, const struct as_rule_query *query);

/* Visits the queries of one rule file, in its order. */
void as_rule_queries_visit(const struct as_yaml_tree *tree, as_rule_query_fn *visit, void *context);

/* The place of a server's error about a query: the character in plain, quoted and literal scalars,
 * else the first line of the scalar. `message_out` points into the error. */
struct as_yaml_node as_rule_query_locate(const struct as_rule_query *query, const char *error,
                                         const char **message_out);

#endif
