/*
 * Every limit of the source adapters, in one place.
 */
#ifndef ALERTSCALER_SOURCE_LIMITS_H
#define ALERTSCALER_SOURCE_LIMITS_H

#include <alertscaler/base/time.h>

/* Size of an answer, in bytes. */
#define AS_QUERY_RESPONSE_MAX      ((size_t)16 * 1024 * 1024)
#define AS_ALERT_LIST_RESPONSE_MAX ((size_t)64 * 1024 * 1024)

/* Time for one list. The time of a query is configured. */
#define AS_ALERT_LIST_TIMEOUT_US (10 * AS_US_PER_S)

/* A message to a receiver of `notify`: its time, and how much of the answer is read. */
#define AS_MESSAGE_TIMEOUT_US   (10 * AS_US_PER_S)
#define AS_MESSAGE_RESPONSE_MAX ((size_t)64 * 1024)

#endif
