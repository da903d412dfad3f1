/*
 * The YAML that a person names for one command: unlike a configured file it may be a pipe, as the
 * <(...) of a shell makes, or standard input.
 */
#ifndef ALERTSCALER_DOC_YAML_INPUT_H
#define ALERTSCALER_DOC_YAML_INPUT_H

#include <alertscaler/base/attr.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/doc/yaml_tree.h>

/* As as_yaml_load and as_yaml_load_foreign. */
int as_yaml_input_load(const char *path, struct as_diagnostics *diagnostics,
                       struct as_yaml_tree **tree_out) AS_MUST_USE;
int as_yaml_input_load_foreign(const char *path, struct as_diagnostics *diagnostics,
                               struct as_yaml_tree **tree_out) AS_MUST_USE;

#endif
