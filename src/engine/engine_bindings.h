/*
 * Which open incident proposes something on which target; reload.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_BINDINGS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_BINDINGS_H

#include "engine_state.h"

enum bind_result { BIND_OK, BIND_NO_RULE, BIND_DISABLED, BIND_NOT_ALLOWED, BIND_FORBIDDEN };

enum bind_result bindings_check(struct as_engine *engine, const struct as_labels *labels,
                                const char *receiver);
enum bind_result bindings_make(struct as_engine *engine, struct incident *incident,
                               const struct as_labels *labels, const struct as_labels *annotations);
void bindings_forget_sizes(struct as_engine *engine, struct target *target);
void bindings_drop(struct as_engine *engine, struct incident *incident);
void bindings_remake(struct as_engine *engine, struct incident *incident);
void bindings_remake_all(struct as_engine *engine); /* after new rules */

#endif
