/*
 * Warnings about what cannot work together: rules that are correct alone, against each other,
 * against Alertmanager's configuration and against Prometheus' alerting rules; and a receiver that
 * is open to everyone.
 *
 * Warns only of what is certain from the files. Labels that only an expression or a server sets are
 * assumed possible. The files of Alertmanager and Prometheus are not checked for anything else:
 * amtool and promtool do that.
 */
#ifndef ALERTSCALER_TOOLS_LINT_H
#define ALERTSCALER_TOOLS_LINT_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/rules/web_config.h>

#define AS_LINT_FILES_MAX 10000 /* of Prometheus */

struct as_lint_sources {
    const char *alertmanager;            /* a path; NULL: no comparison */
    const char *const *prometheus_rules; /* paths and globs; files found by a glob are skipped if
                                            they have no `groups` */
    size_t prometheus_rule_count;
    const char *route_prefix;          /* before the path /webhook; NULL: none; borrowed */
    const char *web_config_file;       /* NULL: not given; the daemon may still use one */
    const struct as_web_settings *web; /* its content, borrowed; NULL: none, or invalid */
};

struct as_lint;

/*
 * Reads the files. AS_LINT_INVALID: a file is not of the expected kind; a negative errno: a file
 * cannot be read. Both add at least one error to `diagnostics`.
 */
enum as_lint_outcome { AS_LINT_OK, AS_LINT_INVALID };
int as_lint_new(const struct as_lint_sources *sources, struct as_diagnostics *diagnostics,
                struct as_lint **lint_out) AS_MUST_USE;
struct as_lint *as_lint_free(struct as_lint *lint);

/* Adds the warnings about a configuration (or set of rule files) that loaded without error. Its
 * rule files are read again, for the places. May be called for several configurations. */
void as_lint_check(const struct as_lint *lint, const struct as_config *config,
                   struct as_diagnostics *diagnostics);

/* The same for the rule set of one policy, which was compiled from this text without error: it is
 * compared with no other rule. The file of a diagnostic is its path in the object. */
void as_lint_check_policy(const struct as_settings *settings, struct as_ruleset *ruleset,
                          const char *text, size_t size, struct as_diagnostics *diagnostics);

size_t as_lint_get_file_count(const struct as_lint *lint);  /* files of Prometheus' rules */
size_t as_lint_get_alert_count(const struct as_lint *lint); /* alerting rules in these files */

AS_DEFINE_CLEANUP(struct as_lint *, as_lint_free)

#endif
