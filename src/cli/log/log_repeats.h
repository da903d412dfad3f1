/*
 * What the action log's `repeat` records stand for: the last notifications by their id, for all
 * that read the log. As far back as a repeat may reach, and no further.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_LOG_REPEATS_H
#define ALERTSCALER_SRC_CLI_LOG_LOG_REPEATS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>

struct log_repeats;

struct log_repeats *log_repeats_new(void) AS_MUST_USE;
struct log_repeats *log_repeats_free(struct log_repeats *repeats);

/* To be told each record of the log, with its line, in the log's order. */
void log_repeats_note(struct log_repeats *repeats, const json_t *record, const char *line,
                      size_t size);

bool log_repeats_is_repeat(const json_t *record);

/* The record that would be there if the log wrote repeats in full: a `notification`, the caller's.
 * NULL where the one with the details was not read before. */
json_t *log_repeats_resolve(struct log_repeats *repeats, const json_t *repeat) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct log_repeats *, log_repeats_free)

#endif
