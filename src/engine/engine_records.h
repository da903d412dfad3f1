/*
 * Records of actions, for the action log.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_RECORDS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_RECORDS_H

#include "engine_state.h"

/* Adds the record of an intent to the step's effects. Its answer (message, method, path, attempts)
 * is the caller's to fill in. */
struct as_action_record *record_action(struct as_engine *engine, const struct target *target,
                                       const struct intent *intent, enum as_reason outcome);

#endif
