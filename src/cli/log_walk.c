/*
 * Holds one line at a time. A record in two files is passed on once. A daemon may be writing the
 * last line: waits a moment for its end.
 */
#include "log_walk.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "log_filter.h"
#include "log_repeats.h"

#define WAIT_MS 500

struct walk {
    const struct log_visitor *visitor;
    struct log_overlap overlap;
    struct log_repeats *repeats; /* NULL: repeats are not resolved */
};

static int take_record(const struct walk *walk, const struct log_line *line, json_t *record,
                       struct as_error *error)
{
    const struct log_visitor *visitor = walk->visitor;
    if (walk->repeats)
        log_repeats_note(walk->repeats, record, line->text, line->size);
    if (!walk->repeats || !log_repeats_is_repeat(record))
        return visitor->take(visitor->context, line, record, error);
    json_t *details = log_repeats_resolve(walk->repeats, record);
    const int status = details ? visitor->take(visitor->context, line, details, error) : 0;
    *visitor->unknown_repeats += !details;
    json_decref(details);
    return status;
}

static int take_line(const struct walk *walk, const struct log_line *line, struct as_error *error)
{
    const struct log_visitor *visitor = walk->visitor;
    json_error_t problem;

    if (visitor->wants && !visitor->wants(visitor->context, line))
        return 0;
    json_t *record = json_loadb(line->text, line->size, JSON_REJECT_DUPLICATES, &problem);
    int status = -EBADMSG;
    if (json_is_object(record))
        status = take_record(walk, line, record, error);
    else
        as_error_set(error, "not a record: %s", record ? "not an object" : problem.text);
    json_decref(record);
    if (status < 0)
        as_error_wrap(error, "%s:%llu", line->path, line->number);
    return status;
}

static int take_lines(struct log_reader *reader, struct walk *walk, struct as_error *error)
{
    struct log_line line = {.path = reader->path};
    int status;

    while ((status = log_reader_next(reader, &line.text, &line.size, error)) > 0) {
        line.number = reader->line;
        if (log_overlap_has(&walk->overlap, line.text, line.size))
            continue;
        status = take_line(walk, &line, error);
        if (status)
            return status;
    }
    return status;
}

static int take_file(const char *path, struct walk *walk, struct as_error *error)
{
    struct log_reader reader;
    int status = log_reader_open(&reader, path, error);

    if (status)
        return status;
    status = take_lines(&reader, walk, error);
    if (!status && walk->visitor->must_be_whole && log_reader_get_rest(&reader)) {
        nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
        status = take_lines(&reader, walk, error);
        if (!status && log_reader_get_rest(&reader)) {
            as_error_set(error, "%s:%llu: the file ends in the middle of a line", path,
                         (unsigned long long)reader.line + 1);
            status = -EBADMSG;
        }
    }
    log_reader_close(&reader);
    return status;
}

int log_walk(const struct log_files *files, const struct log_visitor *visitor,
             struct as_error *error)
{
    AS_CLEANUP(log_repeats_free_p)
    struct log_repeats *repeats = visitor->unknown_repeats ? log_repeats_new() : NULL;
    struct walk walk = {.visitor = visitor, .repeats = repeats};
    int status = 0;

    for (size_t i = 0; !status && i < files->count; i++) {
        walk.overlap.at_beginning = true;
        status = take_file(files->paths[i], &walk, error);
    }
    return status;
}

bool log_line_has(const struct log_line *line, const char *text)
{
    return memmem(line->text, line->size, text, strlen(text)) != NULL;
}
