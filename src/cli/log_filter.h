/*
 * Selects records of the action log.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_FILTER_H
#define ALERTSCALER_SRC_CLI_LOG_FILTER_H

#include <stdbool.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/record.h>

#include "cli.h"

struct log_filter {
    const char *target, *rule, *reason; /* NULL: any; target may be a glob */
    bool kinds[AS_RECORD_KIND_COUNT];
    as_maybe_time since, until;
};

/* From --target, --rule, --reason, --kind, --since, --until. 0; -EINVAL with an error. */
int log_filter_init(struct log_filter *filter, const struct as_args *args, as_wall_time now,
                    struct as_error *error) AS_MUST_USE;
/* `details`: the record itself; for a `repeat` its full record, or NULL: then no filter for a rule
 * matches. */
bool log_filter_match(const struct log_filter *filter, const json_t *record, const json_t *details);

/* For the table of a command. */
#define LOG_FILTER_OPTIONS                                                                         \
    {.name = "target",                                                                             \
     .value = "NAME",                                                                              \
     .help = "Records of this target: its name in the rules or its id; * and ? are wildcards"},    \
        {.name = "rule", .value = "NAME", .help = "Records that involve this rule"},               \
        {.name = "reason", .value = "CODE", .help = "Records with this reason code or outcome"},   \
        {.name = "kind",                                                                           \
         .value = "KIND,...",                                                                      \
         .help = "Records of these kinds: notification, repeat, decision, action, ..."},           \
        {.name = "since",                                                                          \
         .value = "TIME",                                                                          \
         .help = "From this time on: 2026-11-20T14:00:00Z, or 2h for two hours ago"},              \
    {                                                                                              \
        .name = "until", .value = "TIME", .help = "Up to this time, as --since"                    \
    }

#endif
