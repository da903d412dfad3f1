/*
 * Pieces of the loader of configurations that its checks use too.
 */
#ifndef ALERTSCALER_SRC_RULES_CONFIG_PRIVATE_H
#define ALERTSCALER_SRC_RULES_CONFIG_PRIVATE_H

#include <stddef.h>

#include <openssl/types.h>

#include <alertscaler/base/encode.h>
#include <alertscaler/doc/schema.h>
#include <alertscaler/rules/policy_set.h>

struct as_yaml_node;

/*
 * Expands `rule_files`: from names and patterns, relative to the folder of the file that has them,
 * to a list of files.
 */

struct rule_files {
    char **names;
    size_t count, capacity;
};

void rule_files_deinit(struct rule_files *files);

/* Adds the files of one list element; reports its errors. */
void rule_files_expand(struct rule_files *files, struct loader *loader,
                       const struct as_yaml_node *node);

/* The folder of a file, for a loader: "" for the working directory. Caller's memory. */
char *rule_files_copy_folder(const char *path);

/*
 * SHA-256 over several texts, one after the other, as hex digits: whether files are still those
 * that were loaded. Begin, add, end; it can only fail if OpenSSL itself is broken, and then aborts.
 */

struct content_hash {
    EVP_MD_CTX *context;
};

struct content_hash content_hash_begin(void);
void content_hash_add(struct content_hash *hash, const char *text, size_t size);
/* A part of a YAML file: its content without comments and places. */
void content_hash_add_node(struct content_hash *hash, const struct as_yaml_node *node);
struct as_digest content_hash_end_digest(struct content_hash *hash);
void content_hash_end(struct content_hash *hash, char text_out[AS_DIGEST_TEXT_SIZE]);

/* Makes the tree of a policy that of the rule file that it means (rules/policy.h). */
void policy_rewrite(struct as_yaml_tree *tree, struct as_diagnostics *diagnostics);

/* Compiles a policy and judges it alone. The rule set, which is the caller's, is NULL unless the
 * policy is valid and allowed, or Shadow. */
enum as_policy_reason policy_judge(const struct as_settings *settings, const char *namespace,
                                   const char *text, size_t size, struct as_ruleset **ruleset_out,
                                   struct as_diagnostics *diagnostics);

#endif
