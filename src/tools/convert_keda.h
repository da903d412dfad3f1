/*
 * KEDA's triggers.
 */
#ifndef ALERTSCALER_SRC_TOOLS_CONVERT_KEDA_H
#define ALERTSCALER_SRC_TOOLS_CONVERT_KEDA_H

#include "convert_plan.h"

struct raw_trigger_data { /* `metadata` of prometheus, cpu and memory; all values are texts */
    const char *query, *server, *ignore_null, *type, *container;
    const struct as_yaml_node *threshold, *activation, *value;
};

struct raw_trigger {
    const char *type, *name;
    const char *metric_type; /* NULL: not given */
    const struct as_yaml_node *node, *metadata;
};

extern const struct schema keda_trigger;

bool keda_trigger_is_resource(const struct raw_trigger *trigger); /* cpu or memory */

/* What becomes of a trigger's value when there is little work. */
struct keda_floor {
    bool is_zero; /* the size may be 0: `activationThreshold` counts */
    int32_t min;  /* with `idleReplicaCount`: the least size above it; 0: none */
};

/* Adds the rule of a trigger, or reports why not. */
void keda_add_trigger(struct convert *convert, struct plan_target *target,
                      const struct raw_trigger *trigger, const struct keda_floor *floor);

/* Gives the rules of triggers with queries KEDA's `fallback` (`node`; NULL: none), or reports what
 * is not carried over. Call it after the triggers. */
void keda_add_fallback(struct convert *convert, struct plan_target *target,
                       const struct as_yaml_node *node, int32_t polling_s);

/* Adds the schedule of a cron trigger, or reports why not. */
void keda_add_cron(struct convert *convert, struct plan_target *target,
                   const struct raw_trigger *trigger);

#endif
