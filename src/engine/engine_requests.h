/*
 * Requests for approvals and free steps: their memory, and their stored form.
 */
#ifndef ALERTSCALER_SRC_ENGINE_ENGINE_REQUESTS_H
#define ALERTSCALER_SRC_ENGINE_ENGINE_REQUESTS_H

#include "engine_state.h"

/* Copies the state; it is in no list yet. */
struct request *request_new(const struct as_approval_state *state) AS_MUST_USE;
struct request *request_find(struct target *target, const char *rule); /* NULL: none */
void request_remove(struct target *target, struct request *request);   /* from the list */

void request_set_who(struct request *request, const char *who); /* copies */

/* When the present answer ends: it expires, or the rule may ask again. */
as_mono_time request_get_end(const struct request *request);
/* In the step's memory. */
struct as_approval_state request_copy_state(struct as_engine *engine,
                                            const struct request *request);

/* Adds a step; those older than AS_APPROVAL_SPAN_US go. */
void free_steps_add(struct target *target, as_mono_time now, const struct as_free_step *step);
/* What the rule has added (or taken) within the span. */
int32_t free_steps_sum(const struct target *target, as_mono_time now, const char *rule, bool is_up);

void requests_fill_state(struct as_engine *engine, const struct target *target,
                         struct as_target_state *state);
void requests_take_state(struct target *target, const struct as_target_state *state);

#endif
