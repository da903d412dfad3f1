/*
 * Feeds tried rules with the log's values: each source and guard of the rule set is replaced by a
 * query of our own, answered with the last logged value for a rule of the same name and the same
 * incident.
 */
#ifndef ALERTSCALER_SRC_CLI_REPLAY_VALUES_H
#define ALERTSCALER_SRC_CLI_REPLAY_VALUES_H

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/tools/rehearsal.h>

struct replay_values;

/* Changes the rule set, which must outlive the result; values from labels stay unchanged. */
struct replay_values *replay_values_new(struct as_ruleset *ruleset) AS_MUST_USE;
struct replay_values *replay_values_free(struct replay_values *values);

/* Guards allow everything until a decision says otherwise. */
void replay_values_begin(struct replay_values *values, struct as_rehearsal *rehearsal);

/* Takes values, pods and the guards' results from a logged decision. */
void replay_values_take(struct replay_values *values, struct as_rehearsal *rehearsal,
                        const json_t *decision);

/* The annotations of a replayed alert, which the log lacks. */
struct as_labels *replay_values_make_annotations(const char *incident) AS_MUST_USE;

/* Calls `warn` for each rule whose values the log lacks. */
void replay_values_visit_missing(const struct replay_values *values,
                                 void (*warn)(void *context, const char *text), void *context);

AS_DEFINE_CLEANUP(struct replay_values *, replay_values_free)

#endif
