/*
 * Every limit of the source adapters, in one place.
 */
#ifndef ALERTSCALER_MONITORING_SOURCE_LIMITS_H
#define ALERTSCALER_MONITORING_SOURCE_LIMITS_H

#include <alertscaler/base/time.h>

/* Size of an answer, in bytes. */
#define AS_QUERY_RESPONSE_MAX        ((size_t)16 * 1024 * 1024)
#define AS_ALERT_LIST_RESPONSE_MAX   ((size_t)64 * 1024 * 1024)
#define AS_ALERT_STATUS_RESPONSE_MAX ((size_t)4 * 1024 * 1024) /* with the configuration */

/* Time for one list, and as much for the status of its Alertmanager. The time of a query is
 * configured. */
#define AS_ALERT_LIST_TIMEOUT_US (10 * AS_US_PER_S)

/* How long an alert must have been unmuted until it is certain that Alertmanager sends it:
 * group_wait + group_interval of its route, and as much more; or if they are not known. */
#define AS_ALERT_WAIT_MARGIN_US  AS_US_PER_MIN
#define AS_ALERT_WAIT_UNKNOWN_US (6 * AS_US_PER_MIN)

/* A message to a receiver of `notify`: its time, and how much of the answer is read. */
#define AS_MESSAGE_TIMEOUT_US   (10 * AS_US_PER_S)
#define AS_MESSAGE_RESPONSE_MAX ((size_t)64 * 1024)

#endif
