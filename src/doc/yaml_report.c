/*
 * Reports about a node of a tree, with its place.
 */
#include <stdarg.h>
#include <stdio.h>

#include "yaml_source.h"

#define MESSAGE_SIZE 1024

void as_yaml_vreport(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                     enum as_severity severity, enum as_yaml_show show,
                     struct as_diagnostics *diagnostics, const char *format, va_list arguments)
{
    char message[MESSAGE_SIZE];
    vsnprintf(message, sizeof(message), format, arguments);
    yaml_source_report(yaml_tree_get_source(tree), node->place, severity, show, diagnostics,
                       message);
}

void as_yaml_report(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                    enum as_yaml_show show, struct as_diagnostics *diagnostics, const char *format,
                    ...)
{
    va_list arguments;
    if (node->is_flawed)
        return;
    va_start(arguments, format);
    as_yaml_vreport(tree, node, AS_SEVERITY_ERROR, show, diagnostics, format, arguments);
    va_end(arguments);
}

void as_yaml_warn(const struct as_yaml_tree *tree, const struct as_yaml_node *node,
                  enum as_yaml_show show, struct as_diagnostics *diagnostics, const char *format,
                  ...)
{
    va_list arguments;
    va_start(arguments, format);
    as_yaml_vreport(tree, node, AS_SEVERITY_WARNING, show, diagnostics, format, arguments);
    va_end(arguments);
}
