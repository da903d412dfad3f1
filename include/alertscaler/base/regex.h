/*
 * Regular expressions as Prometheus and Alertmanager use them in matchers: anchored at both ends,
 * `.` matches newlines too, UTF-8. PCRE2 with limits on match steps and memory, because the text
 * comes from outside: a match that would exceed them is no match, and is counted.
 */
#ifndef ALERTSCALER_BASE_REGEX_H
#define ALERTSCALER_BASE_REGEX_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

struct as_regex;

#define AS_REGEX_PATTERN_MAX 4096 /* bytes */

/* 0; -EINVAL with an error that names the offset and the reason (also for what RE2 does not have:
 * back-references and look-around, so that a rule means the same here and in Alertmanager). */
int as_regex_new(const char *pattern, struct as_regex **regex_out,
                 struct as_error *error) AS_MUST_USE;
struct as_regex *as_regex_free(struct as_regex *regex);
bool as_regex_match(const struct as_regex *regex, const char *text);

/* The same, for whoever asks for "does not match": a match that was given up (at a limit, for want
 * of memory, on a text that is not UTF-8) is neither. */
enum as_regex_outcome { AS_REGEX_NO, AS_REGEX_YES, AS_REGEX_GIVEN_UP };
enum as_regex_outcome as_regex_try(const struct as_regex *regex, const char *text);

/* Matches given up at a limit, since start (the metric alertscaler_regex_limit_exceeded_total). */
uint64_t as_regex_get_exceeded(void);

AS_DEFINE_CLEANUP(struct as_regex *, as_regex_free)

#endif
