/*
 * The watchdog: an alert that always fires.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_WATCHDOG_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_WATCHDOG_H

#include "engine_state.h"

bool watchdog_matches(const struct as_engine *engine, const struct as_labels *labels);
void watchdog_see(struct as_engine *engine, const struct as_labels *labels);
bool watchdog_is_alive(const struct as_engine *engine, as_mono_time now);
bool watchdog_proves(const struct as_engine *engine, struct as_moment moment);
bool watchdog_is_same(const struct as_engine_config *a, const struct as_engine_config *b);

#endif
