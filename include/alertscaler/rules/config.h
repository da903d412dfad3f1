/*
 * A configuration with all its rule files: read, checked and accepted or refused as a whole.
 */
#ifndef ALERTSCALER_RULES_CONFIG_H
#define ALERTSCALER_RULES_CONFIG_H

#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/rules/settings.h>

#define AS_RULE_FILES_MAX 10000
#define AS_RULES_MAX      100000 /* and as many targets */

/* Immutable. The texts of `settings` belong to it. */
struct as_config {
    char *path; /* as given to as_config_load */
    struct as_settings settings;
    struct as_ruleset *ruleset; /* never NULL */
    char digest[65];            /* hex SHA-256 of the configuration's bytes */
    const char **rule_files;    /* the files read, in the order of the rule set */
    size_t rule_file_count;
    struct as_arena arena;
};

enum as_config_outcome {
    AS_CONFIG_OK,
    AS_CONFIG_INVALID /* the files contain an error, or a rule file cannot be read */
};

/*
 * Loads a configuration and its rule files. Errors are added to `diagnostics` (at least one unless
 * AS_CONFIG_OK), unsorted. A negative errno: `path` itself cannot be read.
 */
int as_config_load(const char *path, struct as_config **config_out,
                   struct as_diagnostics *diagnostics) AS_MUST_USE;

/*
 * Loads rule files alone, as one set, with the settings of an empty configuration. References to
 * its clusters and providers are not checked. `path` is "". A folder stands for its rule files and
 * policies: *.yaml and *.yml, but for manifests of other objects.
 */
int as_config_load_rules(const char *const *paths, size_t count, struct as_config **config_out,
                         struct as_diagnostics *diagnostics) AS_MUST_USE;
/* Loads a configuration with these rule files in place of its own. */
int as_config_load_with_rules(const char *path, const char *const *rules, size_t count,
                              struct as_config **config_out,
                              struct as_diagnostics *diagnostics) AS_MUST_USE;

/* Loads a file that is one `http_config`, like promtool's --http.config.file: it becomes
 * `settings.prometheus.http` of an empty configuration. Otherwise as as_config_load. */
int as_config_load_http(const char *path, struct as_config **config_out,
                        struct as_diagnostics *diagnostics) AS_MUST_USE;
struct as_config *as_config_free(struct as_config *config);

struct as_config_digests { /* as `digest` of a configuration and of its rule set */
    char config[AS_DIGEST_TEXT_SIZE], rules[AS_DIGEST_TEXT_SIZE];
};

/* The digests of the files now, by the names and patterns of this configuration; "" where a file
 * cannot be read. Nothing is parsed. */
void as_config_hash_files(const struct as_config *config, struct as_config_digests *digests_out);

/* Decided by the top-level keys; a file that cannot be parsed counts as a configuration, a folder
 * as rules. */
enum as_config_kind { AS_CONFIG_SETTINGS, AS_CONFIG_RULES };
enum as_config_kind as_config_find_kind(const char *path);

AS_DEFINE_CLEANUP(struct as_config *, as_config_free)

/*
 * Whether another process may be writing the files of a configuration: two stamps that are the
 * same, taken at some distance, say that the files were not changed in between.
 */

struct as_config_stamps {
    char text[AS_DIGEST_TEXT_SIZE]; /* of the names, inodes, sizes and times of the files */
    char newest[256];               /* the file that was changed last */
};

/* The files are found by the names and patterns of this configuration. Take the stamps before the
 * files are read. */
void as_config_stamp_files(const struct as_config *config, struct as_config_stamps *stamps_out);

#endif
