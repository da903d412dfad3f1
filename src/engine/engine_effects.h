/*
 * The effects of one step: added in order, with the commits that store them.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_EFFECTS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_EFFECTS_H

#include "engine_state.h"

struct as_effect *effect_add(struct as_engine *engine, enum as_effect_kind kind);
struct waiter *effect_commit_awaited(struct as_engine *engine);
void effect_commit(struct as_engine *engine); /* nobody waits */
/* A copy of a state without texts, in the step's memory. */
const void *effect_copy(struct as_engine *engine, const void *from, size_t size);
void effect_put_incident(struct as_engine *engine, struct incident *incident);
void effect_delete_incident(struct as_engine *engine, const struct incident *incident);
void effect_put_target(struct as_engine *engine, struct target *target);
/* Stores the target, and then warns its readers. Copies the warning. */
/* Its policy is filled in. */
void effect_warn(struct as_engine *engine, struct target *target,
                 const struct as_late_warning *warning);
void effect_put_pause(struct as_engine *engine); /* the pause of all targets */
void effect_delete_target(struct as_engine *engine, struct target *target);
void effect_put_intent(struct as_engine *engine, struct target *target, const struct intent *intent,
                       bool in_doubt);
void effect_delete_intent(struct as_engine *engine, struct target *target);
struct as_incident_record *effect_incident_record(struct as_engine *engine,
                                                  const struct incident *incident,
                                                  enum as_incident_event event,
                                                  const char *notification);
/* `bounds`: in force on the target; NULL: not known. */
struct as_operator_command_record *effect_order_record(struct as_engine *engine,
                                                       const struct as_operator_command *order,
                                                       const struct target *target,
                                                       const struct as_schedule_bounds *bounds,
                                                       uint64_t request);

/*
 * Targets that are evaluated once a step is committed.
 */

/* What opens or closes incidents: a notification, the list of alerts, or time alone. */
struct cause {
    const char *notification; /* its id; NULL: another cause */
    const char *credential;   /* "": no credential, trusted */
    struct target **touched;  /* evaluated after the commit; may repeat */
    size_t touched_count, touched_capacity;
};

/* Evaluates the target after the waiter's commit. */
void target_touch(struct target *target, struct waiter *waiter);
/* The target is evaluated after the cause's commit. */
void cause_touch(struct as_engine *engine, struct cause *cause, const struct incident *incident,
                 struct target *target);
struct waiter *cause_commit(struct as_engine *engine, struct cause *cause);

/*
 * Records of actions, for the action log.
 */

/* Adds the record of an intent to the step's effects. Its answer (message, method, path, attempts)
 * is the caller's to fill in. */
struct as_action_record *record_action(struct as_engine *engine, const struct target *target,
                                       const struct intent *intent, enum as_reason outcome);

#endif
