/*
 * The status of scaling policies: what their objects show in `kubectl get`, and when it is written.
 * No input, no output, no clock.
 *
 * A write is due when `desired`, a condition's status or reason, the reason of the last decision or
 * the generation has changed; everything else within AS_POLICY_MINOR_US. The status that the API
 * server has is known from the watch: a new leader writes only what differs.
 */
#ifndef ALERTSCALER_RUNTIME_POLICY_REPORT_H
#define ALERTSCALER_RUNTIME_POLICY_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/rules/policy_set.h>
#include <alertscaler/runtime/view.h>

#define AS_POLICY_STATUS_MAX    ((size_t)128 * 1024) /* bytes of a status */
#define AS_POLICY_METRIC_GAP_US (60 * AS_US_PER_S)   /* until ScalingActive is False */
#define AS_POLICY_MINOR_US      (60 * AS_US_PER_S)   /* between writes of value and size alone */
#define AS_POLICY_UNSHOWN_US                                                                       \
    (10 * AS_US_PER_MIN)                            /* until it is written again, if the server    \
                                                       does not show what it accepted */
#define AS_POLICY_ROUND_US       (20 * AS_US_PER_S) /* each policy is looked at once */
#define AS_POLICY_REPORTS_A_STEP 200                /* at most; each takes some 50 us */

struct as_policy_reports;

struct as_policy_reports *as_policy_reports_new(void) AS_MUST_USE;
struct as_policy_reports *as_policy_reports_free(struct as_policy_reports *reports);

/* Each object of the watch, on each replica: remembers the status that it has. A text without name
 * and UID is ignored. */
void as_policy_reports_on_object(struct as_policy_reports *reports, const char *text, size_t size);

/* The object is gone. */
void as_policy_reports_on_removed(struct as_policy_reports *reports, const char *id);

/* Of a decision, an action or a change of a target's state: the policy is looked at in the next
 * step. Other effects are ignored. */
void as_policy_reports_on_effect(struct as_policy_reports *reports, const struct as_effect *effect,
                                 as_wall_time now);

/* A join has given the policy another reason or message, or something else scales its target: it is
 * looked at in the next step. */
void as_policy_reports_on_judged(struct as_policy_reports *reports, const char *id);

/* We lead from now on: another leader may have written what differs. */
void as_policy_reports_begin_term(struct as_policy_reports *reports, as_mono_time now);

/* The API server has accepted the last status of the object with this UID. */
void as_policy_reports_on_written(struct as_policy_reports *reports, const char *namespace,
                                  const char *name, const char *uid);

struct as_policy_block { /* the condition `Blocked`; borrowed */
    bool is_blocked;
    const char *reason, *message;
};

/* A status to be written: JSON of the object's member `status`, borrowed for the call. `is_urgent`:
 * a condition has changed. `block`: NULL if the status of `Blocked` is as before. */
typedef void as_policy_report_fn(void *context, const struct as_scaling_policy *policy,
                                 const char *json, size_t size, bool is_urgent,
                                 const struct as_policy_block *block);

/* Looks at the policies that had an effect, and at others in turn. To be called several times a
 * second while we lead. */
void as_policy_reports_step(struct as_policy_reports *reports, const struct as_policy_set *set,
                            const struct as_view *view, as_policy_report_fn *write, void *context);

AS_DEFINE_CLEANUP(struct as_policy_reports *, as_policy_reports_free)

#endif
