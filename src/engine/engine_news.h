/*
 * When the alerts of incidents were last reported as firing.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_NEWS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_NEWS_H

#include "engine_effects.h"

void news_note(struct as_engine *engine, struct cause *cause, struct incident *incident);
void news_note_listed(struct as_engine *engine, struct cause *cause, struct incident *incident,
                      const struct as_listed_alert *alert);
/* When a credential that may trigger the rule last reported the alert as firing; INT64_MIN: never
 * since the start. */
as_mono_time news_get(const struct as_engine *engine, const struct binding *binding);

#endif
