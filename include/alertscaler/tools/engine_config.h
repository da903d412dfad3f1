/*
 * The engine's part of a configuration: the same for the daemon and for commands that try rules
 * without it.
 */
#ifndef ALERTSCALER_TOOLS_ENGINE_CONFIG_H
#define ALERTSCALER_TOOLS_ENGINE_CONFIG_H

#include <stdint.h>

#include <alertscaler/engine/engine.h>
#include <alertscaler/rules/settings.h>

/* Borrows the watchdog's matchers. */
struct as_engine_config as_engine_config_make(const struct as_settings *settings, uint64_t seed);

#endif
