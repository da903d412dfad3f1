/*
 * The locks of targets as Leases in the state's namespace, for kubectl: one Lease per locked
 * target, written by the leader. docs/high-availability.md describes them.
 *
 * The limits below bound its cost. While writing fails, it retries with growing pauses, logs this
 * once per AS_LOCK_LEASES_LOG_US, and later continues from the locks of that time.
 */
#ifndef ALERTSCALER_KUBE_LOCK_LEASES_H
#define ALERTSCALER_KUBE_LOCK_LEASES_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/port/leader.h>
#include <alertscaler/port/lock_mirror.h>

#define AS_LOCK_LEASES_PER_S     20
#define AS_LOCK_LEASES_BURST     20
#define AS_LOCK_LEASES_IN_FLIGHT 4
#define AS_LOCK_LEASES_PAGE      200 /* Leases per list request */
/* All Leases are listed when a term begins, and at this interval, to repair foreign changes. */
#define AS_LOCK_LEASES_LIST_US (10 * AS_US_PER_MIN)
/* Pause after a failure: doubles each time up to the maximum, and respects Retry-After. */
#define AS_LOCK_LEASES_PAUSE_US     (1 * AS_US_PER_S)
#define AS_LOCK_LEASES_PAUSE_MAX_US (60 * AS_US_PER_S)
#define AS_LOCK_LEASES_LOG_US       (10 * AS_US_PER_MIN)

/* Takes over `access`; borrows `env` and `leader`. Writes only while `leader` may act. */
struct as_lock_mirror *as_lock_leases_new(const char *namespace_, struct as_leader *leader,
                                          struct as_kube_access *access,
                                          const struct as_access_env *env) AS_MUST_USE;

#endif
