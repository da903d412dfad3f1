/*
 * Instances that never became nodes, whoever ordered them: a pool's decision says how many of each
 * group leave, and the group lets them go as soon as it can. They never served: the limit of
 * removals does not hold them. They are not stored: after a restart, and with new rules, the pool
 * decides anew. What an increase of alertscaler's lacks is taken back instead (engine_growth.h).
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_OVERDUE_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_OVERDUE_H

#include "engine_decisions.h"
#include "engine_state.h"

#define OVERDUE_US (30 * AS_US_PER_S) /* then the pool decides anew */

/* The target has decided: tells its groups, which are looked at next. */
void overdue_tell(struct as_engine *engine, struct target *target,
                  const struct as_observation *observation, const struct outcome *outcome);
/* The group was observed. Returns the size without what leaves now; -1: nothing does. */
int32_t overdue_review(struct as_engine *engine, struct target *target,
                       const struct as_observation *observation);
/* Of the action that was applied. Memory of the step. */
const char *overdue_explain(struct as_engine *engine, const struct intent *intent);

#endif
