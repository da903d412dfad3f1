/*
 * Compares sizes before with those under other rules, target by target: figures, the first
 * differences, charts. Memory depends only on the number of targets.
 *
 * Times only increase (an earlier time counts as the last one).
 */
#ifndef ALERTSCALER_SRC_CLI_COMPARISON_H
#define ALERTSCALER_SRC_CLI_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/record.h>
#include <alertscaler/decide/ruleset.h>

#include "cli.h"

struct comparison;

/* Figures about a size over time, weighted by time. */
struct size_figures {
    bool is_set;
    int32_t size, limit; /* the present size; the target's max */
    int32_t min, max;
    int64_t from, at;    /* start; counted up to `at` */
    double replica_us;   /* size x time */
    int64_t at_limit_us; /* time with the size at or above the limit */
    uint64_t ups, downs; /* actions */
};

void size_figures_set(struct size_figures *figures, int64_t at, int32_t size, int32_t limit);
void size_figures_end(struct size_figures *figures, int64_t at); /* repeatable */
double size_figures_get_mean(const struct size_figures *figures);
double size_figures_get_replica_hours(const struct size_figures *figures);

enum comparison_side { COMPARISON_BEFORE, COMPARISON_AFTER, COMPARISON_SIDES };

/* Borrows the tried rule set, to show its targets' bounds. `with_charts`: keeps data for charts. */
struct comparison *comparison_new(const struct as_ruleset *ruleset, bool with_charts) AS_MUST_USE;
struct comparison *comparison_free(struct comparison *comparison);

#define COMPARISON_LIMIT_OF_RULES (-1) /* the max of the tried rules, by their schedules */

/* The size from `at` on; `name` as in the rule files; `limit`: the max in that side's rules. */
void comparison_set_size(struct comparison *comparison, enum comparison_side side, const char *id,
                         const char *name, as_wall_time at, int32_t size, int32_t limit);
void comparison_count_action(struct comparison *comparison, enum comparison_side side,
                             const char *id, const char *name, bool is_up);
void comparison_set_alert(struct comparison *comparison, const char *id, const char *alert,
                          as_wall_time at, bool fires);

/* The unit of a target with a size; NULL or "": none. */
void comparison_set_unit(struct comparison *comparison, const char *id, const char *unit);

/* A request for an approval under the tried rules; other events are ignored. */
void comparison_note_request(struct comparison *comparison, as_wall_time at,
                             const struct as_approval_record *record);

/* Ends the comparison: add nothing afterwards. */
void comparison_end(struct comparison *comparison, as_wall_time at);

struct comparison_report {      /* the context of the figures; all borrowed */
    const struct as_args *args; /* --output; --svg: the folder of the charts; the command's name */
    const char *rules;          /* the tried rules, as named by the user */
    as_wall_time from, to;
    uint64_t notifications;
    json_t *warnings;      /* texts */
    const char *approvals; /* who answers requests: "given", "none", "logged" */
};

/* Prints the warnings on standard error and the figures as a table or JSON; writes a chart per
 * target if requested. 0; or a negative errno with an error. */
int comparison_print(const struct comparison *comparison, const struct comparison_report *report,
                     struct as_error *error) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct comparison *, comparison_free)

#endif
