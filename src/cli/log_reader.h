/*
 * Reads the action log line by line or record by record, oldest record first, and follows its
 * growth: files, or the log of a running daemon. Prints records for people.
 */
#ifndef ALERTSCALER_SRC_CLI_LOG_READER_H
#define ALERTSCALER_SRC_CLI_LOG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>

#include "cli.h"

/* What the daemon sends, at least. A file is read whole. */
struct log_selection {
    const char *target; /* an id or a name, with * and ?; NULL: all */
    const char *kinds;  /* "decision,action"; NULL: all */
    as_maybe_time since, until;
    bool follows; /* asks again after the end; if the daemon does not answer, tries again */
};

struct log_remote;
struct log_repeats;

struct log_reader {
    char *path; /* "-": standard input */
    int fd;     /* -1: of a daemon */
    struct log_remote *remote;
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

/* Continues with the file that now has the name, if it is another one (rotation); of a daemon, with
 * the records that it has added. */
int log_reader_follow(struct log_reader *reader, struct as_error *error) AS_MUST_USE;

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
    const struct as_args *daemon; /* of the command that reads from a daemon; NULL: files */
};

/* The operands, or else the files of the configuration's action_log. */
int log_files_find(const struct as_args *args, struct log_files *files_out,
                   struct as_error *error) AS_MUST_USE;
/* The same, or a daemon, which counts as one file: if --url or --context is given; or if there is
 * neither a FILE nor --config.file, and ALERTSCALER_URL or the client file names a daemon. Both
 * together are an error. The command's table has AS_OPTION_URL, AS_OPTION_TOKEN_FILE and
 * AS_OPTION_CA_FILE. */
int log_files_find_any(const struct as_args *args, struct log_files *files_out,
                       struct as_error *error) AS_MUST_USE;
void log_files_deinit(struct log_files *files);

/* Opens one of them: as log_reader_open. `selection`, borrowed: what a daemon must send; NULL:
 * all. */
int log_files_open(const struct log_files *files, size_t at, const struct log_selection *selection,
                   struct log_reader *reader, struct as_error *error) AS_MUST_USE;

/* Copies standard input, if it is among them, to a temporary file, so that all can be read
 * twice. */
int log_files_keep(struct log_files *files, struct as_error *error) AS_MUST_USE;

/* Finds the full records of the action log's `repeat` records: keeps the last notifications by id,
 * as far back as a repeat may refer. */

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

/* All records of action log files, oldest first, one at a time. */

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
    int (*on_record)(void *context, const struct log_line *line, json_t *record,
                     struct as_error *error);
    void *context;
    /* NULL: `repeat` records come unchanged. Else each comes as its full `notification`, or is
     * counted here and left out if the record with the details was not read before (or not
     * wanted). */
    uint64_t *unknown_repeats;
    const struct log_selection *selection; /* what a daemon must send; NULL: all */
    bool must_be_whole; /* an incomplete last line is an error; else it is skipped */
};

/* 0, or the result of `on_record` that ended it; or a negative errno with an error that names file
 * and line. */
int log_walk(const struct log_files *files, const struct log_visitor *visitor,
             struct as_error *error) AS_MUST_USE;

bool log_line_has(const struct log_line *line, const char *text);

/* Prints a record of the action log as one line for people.
 * `ids`: an object that the caller keeps between lines, so that an id is printed only if it is new
 * for its name; NULL: always. `details`: the record itself; for a `repeat` its full record, or
 * NULL. Control characters in texts from outside are printed as \xNN. */
void log_print(json_t *record, json_t *details, bool colors, json_t *ids, FILE *out);

#endif
