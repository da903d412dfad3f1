/*
 * What is evaluated once a step is committed.
 */
#ifndef ALERTSCALER_SRC_CORE_ENGINE_STATE_ENGINE_CAUSES_H
#define ALERTSCALER_SRC_CORE_ENGINE_STATE_ENGINE_CAUSES_H

#include "engine/state/engine_state.h"

/* What incidents begin and end by: a notification, the list of alerts, or time alone. */
struct cause {
    const char *notification; /* its id; NULL where it is none */
    const char *credential;   /* "": nobody's, and trusted */
    struct target **touched;  /* to be evaluated when it is committed; may repeat */
    size_t touched_count, touched_capacity;
};

/* Has the target evaluated once the waiter's commit is done. */
void target_touch(struct target *target, struct waiter *waiter);
/* The target is evaluated when the cause is committed. */
void cause_touch(struct as_engine *engine, struct cause *cause, const struct incident *incident,
                 struct target *target);
struct waiter *cause_commit(struct as_engine *engine, struct cause *cause);

#endif
