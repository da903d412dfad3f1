/*
 * Operators' orders.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_ORDERS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_ORDERS_H

#include "engine_state.h"

bool orders_is_of(const struct target *target, const struct intent *intent); /* that waits now */
/* The kill switch was set. To be committed. */
void orders_on_halt(struct as_engine *engine);
/* Returns the target to settle if it is idle; or NULL. */
struct target *orders_handle(struct as_engine *engine, const struct as_order *order,
                             uint64_t request);
/* The target was observed. True: begin the ordered change; false: nothing to do now. */
bool orders_begin(struct as_engine *engine, struct target *target,
                  const struct as_observation *observation);
/* The observation failed, or a request (`is_told`: recorded already). True: given up, and the
 * target is to be stored. */
bool orders_on_failure(struct as_engine *engine, struct target *target, enum as_reason outcome,
                       bool is_told);
bool orders_remake(struct as_engine *engine, struct target *target); /* true: to be stored */
void orders_supersede(struct as_engine *engine, struct target *target, const char *why);
void orders_on_applied(struct target *target, const struct intent *intent);

/* Ends a floor whose time is over, and records that. True: the target is to be stored. */
bool orders_end_floor(struct as_engine *engine, struct target *target);

#endif
