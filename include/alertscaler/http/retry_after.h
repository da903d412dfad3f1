/*
 * Times in the headers of an answer (RFC 9110): Retry-After is seconds or a date.
 */
#ifndef ALERTSCALER_HTTP_RETRY_AFTER_H
#define ALERTSCALER_HTTP_RETRY_AFTER_H

#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>

/* Microseconds from `now`, at most AS_RETRY_AFTER_MAX_US; 0 if it is invalid or in the past. */
int64_t as_retry_after_parse(const char *text, as_wall_time now) AS_MUST_USE;

/* The preferred form of a date, "Sun, 06 Nov 1994 08:49:37 GMT"; servers send no other form today.
 * 0 or -EINVAL. */
int as_http_date_parse(const char *text, as_wall_time *time_out) AS_MUST_USE;

#endif
