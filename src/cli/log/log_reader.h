/*
 * Reading action log files line by line, oldest record first, and on as they grow.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_LOG_READER_H
#define ALERTSCALER_SRC_CLI_LOG_LOG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>

#include "cli.h"

struct log_reader {
    char *path; /* "-": standard input */
    int fd;
    struct as_buf buf;
    size_t at, searched; /* the present line's start; up to where there is no line end */
    uint64_t line;       /* number of the line that was last returned, from 1 */
};

/* 0, or a negative errno with an error that names the file. */
int log_reader_open(struct log_reader *reader, const char *path,
                    struct as_error *error) AS_MUST_USE;
void log_reader_close(struct log_reader *reader);

/* 1: *line_out, without its end, good until the next call; 0: there is no (whole) line as yet; or a
 * negative errno. */
int log_reader_next(struct log_reader *reader, const char **line_out, size_t *size_out,
                    struct as_error *error) AS_MUST_USE;

/* Bytes behind the last line end: a line that is not there in full. */
size_t log_reader_get_rest(const struct log_reader *reader);

/* Goes on with the file that now has the name, if that is another one (rotation). */
int log_reader_follow(struct log_reader *reader, struct as_error *error) AS_MUST_USE;

/* The number of a record by its line, 0 where it has none. Whether the line is sound is for others
 * to say. */
int64_t log_line_find_seq(const char *line, size_t size);

/* Files of several replicas overlap: what one had not yet written for certain when it ended, the
 * next one has at its beginning too. Set `at_beginning` with each file. */
struct log_overlap {
    int64_t last; /* number of the last record */
    bool at_beginning;
};

/* Whether the record was in a file before. */
bool log_overlap_has(struct log_overlap *overlap, const char *line, size_t size);

struct log_files {
    char **paths; /* ascending by the number of their first record */
    size_t count;
};

/* The operands; or, where there are none, the files of the configuration's action_log. */
int log_files_find(const struct as_args *args, struct log_files *files_out,
                   struct as_error *error) AS_MUST_USE;
void log_files_deinit(struct log_files *files);

/* Standard input among them is copied into a file of its own, so that all of them can be read
 * twice. */
int log_files_keep(struct log_files *files, struct as_error *error) AS_MUST_USE;

#endif
