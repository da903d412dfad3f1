/*
 * A simulation: the engine in virtual time, with simulated targets, pods and queries. `alertscaler
 * test`, `replay --rules` and `backtest` run rules in it. Nothing is stored and nothing outside is
 * touched; commits, observations and scalings succeed at once.
 *
 * A size that was set is the observed size from then on. Times are wall-clock times that only move
 * forward.
 */
#ifndef ALERTSCALER_TOOLS_SIMULATION_H
#define ALERTSCALER_TOOLS_SIMULATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/engine/engine.h>
#include <alertscaler/rules/rule_tests.h>

struct as_simulation;

/* Called during as_simulation_notify and _advance, at the virtual time of the record; records are
 * valid for the call. Each may be NULL. */
struct as_simulation_callbacks {
    void (*decision)(void *context, as_wall_time at, const struct as_decision_record *record);
    void (*action)(void *context, as_wall_time at, const struct as_action_record *record);
    void (*notification)(void *context, as_wall_time at,
                         const struct as_notification_record *record);
    void (*incident)(void *context, as_wall_time at, const struct as_incident_record *record);
    void (*approval)(void *context, as_wall_time at, const struct as_approval_record *record);
    /* The engine asked for a query that was never set. */
    void (*no_data)(void *context, as_wall_time at, const struct as_query *query);
    void *context;
};

struct as_simulation_config {
    const struct as_ruleset *ruleset; /* borrowed, like what `engine` points to */
    struct as_engine_config engine;   /* its resync_us is ignored: 0 */
    as_wall_time start;
    bool approves; /* what waits for an approval has it at once */
    struct as_simulation_callbacks callbacks;
};

struct as_simulation *as_simulation_new(const struct as_simulation_config *config) AS_MUST_USE;
struct as_simulation *as_simulation_free(struct as_simulation *simulation);

/*
 * Sets the scenario from now on. `target` is a target's name in the rule files or its id;
 * size -1: not found (404), the initial state of targets. Copied.
 */
void as_simulation_set_size(struct as_simulation *simulation, const char *target, int32_t replicas);
int32_t as_simulation_get_size(const struct as_simulation *simulation,
                               const char *target); /* -1: none */
/* By default a target has as many pods as replicas: Running, ready for long, named <target>-1 and
 * so on, requesting nothing. */
void as_simulation_set_pods(struct as_simulation *simulation, const char *target,
                            const struct as_pod_seen *pods, size_t count);
/* Sets what the source `nodes` reads. Without a call nothing is known. */
void as_simulation_set_nodes(struct as_simulation *simulation, const char *target,
                             const struct as_nodes_seen *nodes);
/* Whether the target's pods are being replaced: by default they are not. Meanwhile the target has
 * as many pods as were set. */
void as_simulation_set_rollout(struct as_simulation *simulation, const char *target,
                               enum as_rollout_progress progress);
/* Sets what pools see: the pods, and which nodes are Ready. Without a call nothing is known.
 * Borrowed. */
void as_simulation_set_cluster(struct as_simulation *simulation,
                               const struct as_rule_test_cluster *cluster);
/* Sets the answer to a query; white space outside of quotes is ignored. Without an answer a query
 * has no data. */
void as_simulation_set_query(struct as_simulation *simulation, const char *text,
                             const struct as_query_result *result);

/* Advances to `to`, running all deadlines up to and including it. */
void as_simulation_advance(struct as_simulation *simulation, as_wall_time to);
/* The same, but deadlines at `to` itself run in the next call: what is set and notified now comes
 * before them. */
void as_simulation_approach(struct as_simulation *simulation, as_wall_time to);

/* Delivers a notification now, and carries out its effects. */
void as_simulation_notify(struct as_simulation *simulation,
                          const struct as_notification *notification);

/* The size that waits for an approval on the target; -1: none waits. */
int32_t as_simulation_get_asked(const struct as_simulation *simulation, const char *target);
/* Answers what waits, of this rule (NULL: of any), as a person would. False: nothing waits. */
bool as_simulation_answer(struct as_simulation *simulation, const char *target, const char *rule,
                          bool approves) AS_MUST_USE;

as_wall_time as_simulation_get_now(const struct as_simulation *simulation);

AS_DEFINE_CLEANUP(struct as_simulation *, as_simulation_free)

#endif
