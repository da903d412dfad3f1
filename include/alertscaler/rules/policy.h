/*
 * ScalingPolicy (alertscaler.io/v1alpha1): scaling rules as objects of Kubernetes. A policy has one
 * target in its own namespace, and the rules of this target, with the keys of rule files in the
 * spelling of Kubernetes: `scale_up` is `scaleUp`, the word `memory_limits` is `MemoryLimits`.
 *
 * Field types and validation: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/
 * custom-resource-definitions/. The oldest Kubernetes that takes the definition is 1.25.
 */
#ifndef ALERTSCALER_RULES_POLICY_H
#define ALERTSCALER_RULES_POLICY_H

#include <stdbool.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/doc/yaml_tree.h>

#define AS_POLICY_GROUP    "alertscaler.io"
#define AS_POLICY_VERSION  "v1alpha1"
#define AS_POLICY_KIND     "ScalingPolicy"
#define AS_POLICY_PLURAL   "scalingpolicies"
#define AS_POLICY_CRD_NAME AS_POLICY_PLURAL "." AS_POLICY_GROUP

/* The number of the schema, in the definition's annotation `alertscaler.io/schema`. It grows with
 * each change, so that a program finds a definition that would prune its keys. */
#define AS_POLICY_SCHEMA            1
#define AS_POLICY_SCHEMA_ANNOTATION AS_POLICY_GROUP "/schema"

/* Appends the CustomResourceDefinition: compact JSON in one line, made from the tables that rule
 * files are read by. */
void as_policy_append_crd(struct as_buf *out);

/*
 * As as_yaml_load, for a rule file or a file of manifests. The tree of policies is that of the rule
 * file that the policies mean: `targets` with NAMESPACE/POLICY, and `rules` with
 * NAMESPACE/POLICY/RULE. Its nodes have the places of the policies' nodes, and messages have the
 * spelling of policies. A key that no policy has is an error: AS_YAML_FLAWED. A file of manifests
 * may have several documents; other objects than policies are passed over. A file with other
 * objects only is AS_YAML_FLAWED.
 */
int as_rule_file_load(const char *path, struct as_diagnostics *diagnostics,
                      struct as_yaml_tree **tree_out) AS_MUST_USE;

/* Whether the file has objects of Kubernetes, and no policy. */
bool as_rule_file_is_other(const char *path);

/* As as_yaml_parse, for the text of one policy: its tree is that of as_rule_file_load. */
int as_policy_parse(const char *text, size_t size, struct as_diagnostics *diagnostics,
                    struct as_yaml_tree **tree_out) AS_MUST_USE;
/* Adds what was found in the tree of a policy (may be NULL). The file of a diagnostic becomes its
 * path in the object: spec.rules[0].scaleUp.by. */
void as_policy_add_with_paths(const struct as_diagnostics *found, const struct as_yaml_tree *tree,
                              struct as_diagnostics *diagnostics);

/* A word of rule files, or a reason code, in the spelling of Kubernetes: `at_max` is `AtMax`. At
 * most 63 bytes. */
#define AS_POLICY_WORD_SIZE 64
const char *as_policy_spell(const char *word, char text_out[AS_POLICY_WORD_SIZE]);

struct as_settings;
struct as_ruleset;

/*
 * The rule set of one policy: its target and its rules, compiled alone. `text` is the object as the
 * API server sends it, `name` its name for errors. 0; or -EINVAL with at least one error. The file
 * of an error is its path in the object: spec.rules[0].scaleUp.by.
 */
int as_policy_compile(const struct as_settings *settings, const char *text, size_t size,
                      struct as_ruleset **ruleset_out,
                      struct as_diagnostics *diagnostics) AS_MUST_USE;

#endif
