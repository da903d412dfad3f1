/*
 * What cannot work together: rules that are right each by itself, against each other, against
 * Alertmanager's configuration and against Prometheus' alerting rules; and a receiver that is open
 * to everyone. All of it is warnings.
 *
 * Warns of what is certain by the files alone. What depends on labels that only an expression or a
 * server gives is taken to be possible. The files of Alertmanager and Prometheus are not checked
 * for anything else: amtool and promtool do that.
 */
#ifndef ALERTSCALER_CONFIG_LINT_H
#define ALERTSCALER_CONFIG_LINT_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/config/config.h>
#include <alertscaler/config/diagnostics.h>
#include <alertscaler/config/web_config.h>

#define AS_LINT_FILES_MAX 10000 /* of Prometheus */

struct as_lint_sources {
    const char *alertmanager;            /* a path; NULL: not compared with */
    const char *const *prometheus_rules; /* paths and globs; of the files that a glob finds, those
                                             without `groups` are passed over */
    size_t prometheus_rule_count;
    const char *web_config_file;       /* NULL: none is given, which says nothing of the daemon's */
    const struct as_web_settings *web; /* what it says, borrowed; NULL: also where it is wrong */
};

struct as_lint;

/*
 * Reads the files. AS_LINT_INVALID: one of them is not what it should be; a negative errno: one
 * cannot be read. Both with at least one error in `diagnostics`.
 */
enum as_lint_outcome { AS_LINT_OK, AS_LINT_INVALID };
int as_lint_new(const struct as_lint_sources *sources, struct as_diagnostics *diagnostics,
                struct as_lint **lint_out) AS_MUST_USE;
struct as_lint *as_lint_free(struct as_lint *lint);

/* Adds the warnings about one configuration (or set of rule files) that loaded without error; its
 * rule files are read once more, for the places. May be called for several. */
void as_lint_check(const struct as_lint *lint, const struct as_config *config,
                   struct as_diagnostics *diagnostics);

size_t as_lint_get_file_count(const struct as_lint *lint);  /* of Prometheus' rules */
size_t as_lint_get_alert_count(const struct as_lint *lint); /* alerting rules in them */

AS_DEFINE_CLEANUP(struct as_lint *, as_lint_free)

#endif
