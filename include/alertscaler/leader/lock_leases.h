/*
 * The locks of targets as Leases of the state's namespace, for kubectl: one a locked target, kept
 * by the leader. docs/high-availability.md describes them.
 *
 * What it may cost is bounded by the limits below. While nothing can be written, it tries with
 * growing pauses, says so in the log once in AS_LOCK_LEASES_LOG_US, and goes on from what is locked
 * then.
 */
#ifndef ALERTSCALER_LEADER_LOCK_LEASES_H
#define ALERTSCALER_LEADER_LOCK_LEASES_H

#include <alertscaler/access/env.h>
#include <alertscaler/access/kube_access.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/port/leader.h>
#include <alertscaler/port/lock_mirror.h>

#define AS_LOCK_LEASES_PER_S     20
#define AS_LOCK_LEASES_BURST     20
#define AS_LOCK_LEASES_IN_FLIGHT 4
#define AS_LOCK_LEASES_PAGE      200 /* of a list; each page is a request */
/* All of them are listed when a term begins, and again to mend what others have done to them. */
#define AS_LOCK_LEASES_LIST_US (10 * AS_US_PER_MIN)
/* After a failure; doubles with each up to the second, and heeds Retry-After. */
#define AS_LOCK_LEASES_PAUSE_US     (1 * AS_US_PER_S)
#define AS_LOCK_LEASES_PAUSE_MAX_US (60 * AS_US_PER_S)
#define AS_LOCK_LEASES_LOG_US       (10 * AS_US_PER_MIN)

/* Takes `access`; borrows `env` and `leader`: nothing is written but while it may act. */
struct as_lock_mirror *as_lock_leases_new(const char *namespace_, struct as_leader *leader,
                                          struct as_kube_access *access,
                                          const struct as_access_env *env) AS_MUST_USE;

#endif
