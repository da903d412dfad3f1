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

struct as_json_writer;
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

/*
 * A policy for the API: what its status says, now. On a replica without an engine it says what the
 * API server shows.
 */

struct as_policy_condition { /* borrowed */
    bool is_true;
    const char *reason, *message;
};

struct as_policy_view { /* borrowed for the call; the columns of `kubectl get` */
    const struct as_scaling_policy *policy;
    const char *target;               /* "Deployment/web"; NULL: the policy has none */
    const char *target_id;            /* the same as an id of a target */
    int32_t size, desired, min, max;  /* negative: not known */
    const char *value, *goal;         /* of the rule that decided; NULL: none */
    const char *locked;               /* NULL: not locked */
    const char *decision;             /* id of the last one; NULL: not known */
    const char *decided_at;           /* RFC 3339; NULL: not known */
    const char *reason, *rule;        /* of the last decision; NULL: none */
    bool is_judged;                   /* false: no join has judged this generation; then: */
    struct as_policy_condition ready; /* says nothing */
    struct as_policy_condition active, limited, blocked;
    bool is_paused; /* by an annotation, an operator or the kill switch */
};
typedef void as_policy_visit_fn(void *context, const struct as_policy_view *view);

struct as_policy_reader { /* of the names of credentials in messages */
    const char *(*show_name)(const void *context, const char *name);
    const void *context;
};

/* Calls `visit` once; not for a policy that as_policy_reports_on_object has ignored. */
void as_policy_reports_show(const struct as_policy_reports *reports,
                            const struct as_scaling_policy *policy, const struct as_view *view,
                            const struct as_policy_reader *reader, as_policy_visit_fn *visit,
                            void *context);
/* Writes the member `status` of the object; null: it is not known. */
void as_policy_reports_write(const struct as_policy_reports *reports,
                             const struct as_scaling_policy *policy, const struct as_view *view,
                             const struct as_policy_reader *reader, struct as_json_writer *json);

AS_DEFINE_CLEANUP(struct as_policy_reports *, as_policy_reports_free)

#endif
