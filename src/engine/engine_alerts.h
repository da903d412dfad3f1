/*
 * The list of firing alerts.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_ALERTS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_ALERTS_H

#include "engine_state.h"

void alerts_resume(struct as_engine *engine);
void alerts_on_deadline(struct as_engine *engine);
as_mono_time alerts_get_deadline(const struct as_engine *engine);
void alerts_on_listed(struct as_engine *engine, uint64_t ticket, const struct as_alert_list *list);

#endif
