/*
 * Reads action log files line by line, oldest record first, and follows their growth.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_READER_H
#define ALERTSCALER_SRC_CLI_LOG_READER_H

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
    size_t at, searched; /* start of the present line; end of the part without a newline */
    uint64_t line;       /* number of the last returned line, from 1 */
};

/* 0, or a negative errno with an error that names the file. */
int log_reader_open(struct log_reader *reader, const char *path,
                    struct as_error *error) AS_MUST_USE;
void log_reader_close(struct log_reader *reader);

/* 1: *line_out, without newline, valid until the next call; 0: no complete line yet; or a negative
 * errno. */
int log_reader_next(struct log_reader *reader, const char **line_out, size_t *size_out,
                    struct as_error *error) AS_MUST_USE;

/* Bytes after the last newline: an incomplete line. */
size_t log_reader_get_rest(const struct log_reader *reader);

/* Continues with the file that now has the name, if it is another one (rotation). */
int log_reader_follow(struct log_reader *reader, struct as_error *error) AS_MUST_USE;

/* The record number in a line, 0 if absent. Does not check the rest of the line. */
int64_t log_line_find_seq(const char *line, size_t size);

/* Files of several replicas overlap: records that one replica had perhaps not written when it ended
 * are repeated at the beginning of the next file. Set `at_beginning` for each file. */
struct log_overlap {
    int64_t last; /* number of the last record */
    bool at_beginning;
};

/* Whether an earlier file had the record. */
bool log_overlap_has(struct log_overlap *overlap, const char *line, size_t size);

struct log_files {
    char **paths; /* ascending by the number of their first record */
    size_t count;
};

/* The operands, or else the files of the configuration's action_log. */
int log_files_find(const struct as_args *args, struct log_files *files_out,
                   struct as_error *error) AS_MUST_USE;
void log_files_deinit(struct log_files *files);

/* Copies standard input, if it is among them, to a temporary file, so that all can be read
 * twice. */
int log_files_keep(struct log_files *files, struct as_error *error) AS_MUST_USE;

#endif
