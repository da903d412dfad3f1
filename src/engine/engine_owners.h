/*
 * Several incidents of one alert.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_OWNERS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_OWNERS_H

#include "engine_state.h"

/* What rules have done for `from` counts for `incident` too. Neither is bound now. */
void owners_share_progress(struct incident *incident, const struct incident *from);
/* The same for one binding, from the alert's other incidents. */
void owners_inherit(const struct as_engine *engine, struct binding *binding);
/* After new rules or credentials, while no incident is bound: finds each owner. */
void owners_find(struct as_engine *engine);

#endif
