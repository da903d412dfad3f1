/*
 * Targets that are evaluated once a step is committed.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_CAUSES_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_CAUSES_H

#include "engine_state.h"

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

#endif
