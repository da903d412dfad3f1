/*
 * Queries on one node of a YAML tree.
 */
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/doc/yaml_tree.h>

const struct as_yaml_node *as_yaml_find(const struct as_yaml_node *node, const char *key)
{
    for (uint32_t i = 0; node && node->kind == AS_YAML_MAP && i < node->count; i++) {
        if (strcmp(node->pairs[i].key->text, key) == 0)
            return node->pairs[i].value;
    }
    return NULL;
}

bool as_yaml_is_null(const struct as_yaml_node *node)
{
    return node->kind == AS_YAML_SCALAR && node->is_plain &&
           (node->size == 0 || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

const char *as_yaml_describe(const struct as_yaml_node *node, char text_out[AS_YAML_FOUND_SIZE])
{
    if (node->kind != AS_YAML_SCALAR)
        return node->kind == AS_YAML_LIST ? "a list" : "a map";
    if (as_yaml_is_null(node))
        return "nothing";
    size_t shown = as_str_cut_utf8(node->text, node->size, 60);
    char quote = node->is_plain ? '`' : '"';
    snprintf(text_out, AS_YAML_FOUND_SIZE, "%c%.*s%s%c", quote, (int)shown, node->text,
             shown < node->size ? "..." : "", quote);
    return text_out;
}
