/*
 * Finds the full records of the action log's `repeat` records: keeps the last notifications by id,
 * as far back as a repeat may refer.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_REPEATS_H
#define ALERTSCALER_SRC_CLI_LOG_REPEATS_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>

struct log_repeats;

struct log_repeats *log_repeats_new(void) AS_MUST_USE;
struct log_repeats *log_repeats_free(struct log_repeats *repeats);

/* Call it for each record of the log, with its line, in the log's order. */
void log_repeats_note(struct log_repeats *repeats, const json_t *record, const char *line,
                      size_t size);

bool log_repeats_is_repeat(const json_t *record);

/* The full record of a repeat, as a `notification`, owned by the caller. NULL if the record with
 * the details was not read before. */
json_t *log_repeats_resolve(struct log_repeats *repeats, const json_t *repeat) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct log_repeats *, log_repeats_free)

#endif
