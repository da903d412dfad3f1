/*
 * What the engine remembers, as JSON documents for the store.
 *
 * A moment is stored in both clocks, with its boot. Within the same boot the monotonic time is
 * exact, even if the wall clock jumped. After a reboot only the wall clock is left, and a future
 * time counts as now.
 */
#ifndef ALERTSCALER_ENGINE_STATE_H
#define ALERTSCALER_ENGINE_STATE_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/incident.h>
#include <alertscaler/doc/rows.h>

struct as_state_clock {
    const char *boot; /* identifies this run of the machine */
    as_mono_time mono;
    as_wall_time wall;
};

/* The stored members of what a target keeps (decide/incident.h). */
extern const struct as_row as_approval_rows[], as_asked_rows[], as_ending_rows[],
    as_evaluation_rows[], as_floor_rows[], as_free_step_rows[], as_metric_gap_rows[],
    as_ordered_rows[], as_own_size_rows[], as_pause_rows[], as_reverted_change_rows[],
    as_rule_effect_rows[], as_schedule_size_rows[], as_rollout_rows[];

void as_state_encode_incident(const struct as_incident_state *state, const char *boot,
                              struct as_buf *out);
void as_state_encode_target(const struct as_target_state *state, const char *boot,
                            struct as_buf *out);
void as_state_encode_intent(const struct as_intent_state *state, const char *boot,
                            struct as_buf *out);
void as_state_encode_pause(const struct as_pause_state *state, const char *boot,
                           struct as_buf *out);

/*
 * Decode one document and pass it to `use`; it is valid for that call. Return the result of `use`,
 * or -EBADMSG with an error for a document of another form.
 */
typedef int as_state_incident_fn(void *context, const struct as_incident_state *state);
typedef int as_state_target_fn(void *context, const struct as_target_state *state);
typedef int as_state_intent_fn(void *context, const struct as_intent_state *state);
typedef int as_state_pause_fn(void *context, const struct as_pause_state *state);

int as_state_decode_incident(const char *json, size_t size, const struct as_state_clock *clock,
                             as_state_incident_fn *use, void *context,
                             struct as_error *error) AS_MUST_USE;
int as_state_decode_target(const char *json, size_t size, const struct as_state_clock *clock,
                           as_state_target_fn *use, void *context,
                           struct as_error *error) AS_MUST_USE;
int as_state_decode_intent(const char *json, size_t size, const struct as_state_clock *clock,
                           as_state_intent_fn *use, void *context,
                           struct as_error *error) AS_MUST_USE;
int as_state_decode_pause(const char *json, size_t size, const struct as_state_clock *clock,
                          as_state_pause_fn *use, void *context,
                          struct as_error *error) AS_MUST_USE;

#endif
