/*
 * The queries of the rules that the server refuses: found when the rules are loaded, or at run
 * time.
 *
 * The server parses each query once. A query that is in an earlier configuration too is not sent
 * again, unless the address of the server changes. An answer that is no verdict is tried again
 * later. At run time, a query fails if the server refuses it three times in a row. A query that the
 * server then evaluates fails no more.
 */
#ifndef ALERTSCALER_MONITORING_QUERY_CHECKS_H
#define ALERTSCALER_MONITORING_QUERY_CHECKS_H

#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/model/source.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/source.h>
#include <alertscaler/rules/config.h>

struct as_query_checks;

struct as_query_checks *as_query_checks_new(struct as_loop *loop) AS_MUST_USE; /* borrows it */
struct as_query_checks *as_query_checks_free(struct as_query_checks *checks);

/* Checks the queries of the rule set in force: of the configuration's files, and of policies. All
 * are borrowed until the next call, or until as_query_checks_stop. */
void as_query_checks_start(struct as_query_checks *checks, const struct as_config *config,
                           const struct as_ruleset *ruleset, struct as_source_port *source);
/* Sends nothing more, and keeps the verdicts. */
void as_query_checks_stop(struct as_query_checks *checks);

/* An answer at run time has this verdict, as `judged` of monitoring.h. */
void as_query_checks_note(struct as_query_checks *checks, const char *written,
                          enum as_query_verdict verdict, const char *error);

/* The server's text about a query of the rule that fails; NULL: no query fails. */
const char *as_query_checks_find_error(const struct as_query_checks *checks,
                                       const struct as_rule *rule);

/* A rule that fails, in the order of the rules. The rule set is that of the last start. */
typedef void as_failing_rule_fn(void *context, const struct as_rule *rule, const char *error);
void as_query_checks_visit_failing(const struct as_query_checks *checks,
                                   const struct as_ruleset *ruleset, as_failing_rule_fn *visit,
                                   void *context);

/* Equal numbers mean equal verdicts. `checks` NULL: 0. */
uint64_t as_query_checks_count_changes(const struct as_query_checks *checks);

AS_DEFINE_CLEANUP(struct as_query_checks *, as_query_checks_free)

/*
 * Limits.
 */

#define AS_QUERY_CHECKS_UNDER_WAY 2 /* requests */
#define AS_QUERY_REFUSALS         3 /* in a row, at run time */

/* Until the next try after an answer that is no verdict: doubles each time. */
#define AS_QUERY_RETRY_MIN_US (15 * AS_US_PER_S)
#define AS_QUERY_RETRY_MAX_US (10 * AS_US_PER_MIN)

/* Failures of this time are logged together: the rule files are read for their places. */
#define AS_QUERY_LOG_US (1 * AS_US_PER_S)

#endif
