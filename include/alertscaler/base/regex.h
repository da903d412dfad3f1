/*
 * Regular expressions as in the matchers of Prometheus and Alertmanager: anchored at both ends, `.`
 * also matches newlines, UTF-8. Built on PCRE2, with limits on match steps and memory, because the
 * text comes from outside. A match that exceeds a limit counts as "no match" and is counted.
 */
#ifndef ALERTSCALER_BASE_REGEX_H
#define ALERTSCALER_BASE_REGEX_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

struct as_regex;

#define AS_REGEX_PATTERN_MAX 4096 /* bytes */

/* 0; or -EINVAL with an error that names the offset and the reason. Back-references and look-around
 * are errors, because RE2 has neither: a rule must mean the same here and in Alertmanager. */
int as_regex_new(const char *pattern, struct as_regex **regex_out,
                 struct as_error *error) AS_MUST_USE;
struct as_regex *as_regex_free(struct as_regex *regex);
bool as_regex_match(const struct as_regex *regex, const char *text);

/* As as_regex_match, for callers that need "does not match". A match is given up at a limit,
 * without memory, or if the text is not UTF-8; then the outcome is neither NO nor YES. */
enum as_regex_outcome { AS_REGEX_NO, AS_REGEX_YES, AS_REGEX_GIVEN_UP };
enum as_regex_outcome as_regex_try(const struct as_regex *regex, const char *text);

/* Matches given up at a limit, since start (the metric alertscaler_regex_limit_exceeded_total). */
uint64_t as_regex_get_exceeded(void);

AS_DEFINE_CLEANUP(struct as_regex *, as_regex_free)

#endif
