/*
 * Retry-After, as a server says it in a header: seconds or an HTTP date (RFC 9110).
 */
#ifndef ALERTSCALER_ACCESS_RETRY_AFTER_H
#define ALERTSCALER_ACCESS_RETRY_AFTER_H

#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>

/* Microseconds from `now`, at most AS_RETRY_AFTER_MAX_US; 0 where it is neither or in the past. */
int64_t as_retry_after_parse(const char *text, as_wall_time now) AS_MUST_USE;

#endif
