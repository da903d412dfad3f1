/*
 * All records of action log files, oldest first, one at a time.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_LOG_WALK_H
#define ALERTSCALER_SRC_CLI_LOG_LOG_WALK_H

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
    const char *text; /* without its end, not NUL-terminated */
    size_t size;
};

struct log_visitor {
    /* Whether the record is wanted: lines that are not are not parsed. NULL: all are. */
    bool (*wants)(void *context, const struct log_line *line);
    /* `record` is an object. 0: go on; > 0: that is enough; or a negative errno with an error. */
    int (*take)(void *context, const struct log_line *line, json_t *record, struct as_error *error);
    void *context;
    /* NULL: a `repeat` comes as it is. Else as the `notification` that it stands for, or is counted
     * here and left out: the record with the details was not read before (or not wanted). */
    uint64_t *unknown_repeats;
    bool must_be_whole; /* the last line too: else one that is not there in full is passed over */
};

/* 0, or what `take` ended it with; or a negative errno with an error that names file and line. */
int log_walk(const struct log_files *files, const struct log_visitor *visitor,
             struct as_error *error) AS_MUST_USE;

bool log_line_has(const struct log_line *line, const char *text);

/* The record's time. -EBADMSG with an error where it has none. */
int log_get_time(const json_t *record, as_wall_time *time_out, struct as_error *error) AS_MUST_USE;

/* A number that is a size. */
bool log_get_size(const json_t *object, const char *key, int32_t *size_out) AS_MUST_USE;

#endif
