/*
 * All records of action log files, oldest first, one at a time.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_WALK_H
#define ALERTSCALER_SRC_CLI_LOG_WALK_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>

#include "log_reader.h"

struct log_line {
    const char *path;
    unsigned long long number;
    const char *text; /* without newline, not NUL-terminated */
    size_t size;
};

struct log_visitor {
    /* Whether the record is wanted: other lines are not parsed. NULL: all are wanted. */
    bool (*wants)(void *context, const struct log_line *line);
    /* `record` is an object. 0: continue; > 0: stop; or a negative errno with an error. */
    int (*take)(void *context, const struct log_line *line, json_t *record, struct as_error *error);
    void *context;
    /* NULL: `repeat` records come unchanged. Else each comes as its full `notification`, or is
     * counted here and left out if the record with the details was not read before (or not
     * wanted). */
    uint64_t *unknown_repeats;
    bool must_be_whole; /* an incomplete last line is an error; else it is skipped */
};

/* 0, or the result of `take` that ended it; or a negative errno with an error that names file and
 * line. */
int log_walk(const struct log_files *files, const struct log_visitor *visitor,
             struct as_error *error) AS_MUST_USE;

bool log_line_has(const struct log_line *line, const char *text);

#endif
