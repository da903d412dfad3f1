/*
 * `alertscaler log`: prints the action log for people, or unchanged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/safe_text.h>

#include "cli.h"
#include "log_filter.h"
#include "log_print.h"
#include "log_reader.h"

#define FOLLOW_INTERVAL_MS 200

struct log_run {
    const struct as_args *args;
    struct log_filter filter;
    bool json, colors, follow, is_terminal;
    json_t *ids; /* the last printed id of each target name */
    struct log_repeats *repeats;
    bool is_bad; /* a line was not a record */
    uint64_t printed;
    uint64_t unknown; /* repeats that the filter cannot judge */
    struct log_overlap overlap;
};

static void take_record(struct log_run *run, json_t *record, const char *line, size_t size)
{
    log_repeats_note(run->repeats, record, line, size);
    const bool is_repeat = log_repeats_is_repeat(record);
    json_t *details = is_repeat ? log_repeats_resolve(run->repeats, record) : json_incref(record);
    struct log_filter others = run->filter;
    others.rule = NULL;
    if (!log_filter_match(&run->filter, record, details)) {
        run->unknown += !details && log_filter_match(&others, record, details);
    } else {
        run->printed++;
        if (run->json) {
            if (run->is_terminal)
                as_safe_json_put(stdout, line, size);
            else
                fwrite(line, 1, size, stdout); /* whose hashes can be verified */
            putchar('\n');
        } else {
            log_print(record, details, run->colors, run->ids, stdout);
        }
    }
    json_decref(details);
}

static void take_line(struct log_run *run, const struct log_reader *reader, const char *line,
                      size_t size)
{
    json_error_t error;
    json_t *record = json_loadb(line, size, JSON_REJECT_DUPLICATES, &error);

    if (!json_is_object(record)) {
        run->is_bad = true;
        as_cli_fail(run->args, "%s:%llu: not a record: %s", reader->path,
                    (unsigned long long)reader->line, record ? "not an object" : error.text);
    } else {
        take_record(run, record, line, size);
    }
    json_decref(record);
}

/* All complete lines so far. */
static int take_lines(struct log_run *run, struct log_reader *reader, struct as_error *error)
{
    const char *line;
    size_t size;
    int status;

    while ((status = log_reader_next(reader, &line, &size, error)) > 0 && !ferror(stdout))
        if (!log_overlap_has(&run->overlap, line, size))
            take_line(run, reader, line, size);
    return status < 0 ? status : 0;
}

/* Until it is interrupted, or its output is closed. */
static int follow(struct log_run *run, struct log_reader *reader, struct as_error *error)
{
    int status = 0;

    while (!status && !fflush(stdout)) {
        nanosleep(&(struct timespec){.tv_nsec = FOLLOW_INTERVAL_MS * 1000000L}, NULL);
        status = take_lines(run, reader, error);
        if (!status)
            status = log_reader_follow(reader, error);
    }
    return status;
}

static int take_file(struct log_run *run, const char *path, bool is_last, struct as_error *error)
{
    struct log_reader reader;
    int status = log_reader_open(&reader, path, error);

    if (status)
        return status;
    status = take_lines(run, &reader, error);
    if (!status && is_last && run->follow)
        status = follow(run, &reader, error);
    log_reader_close(&reader);
    return status;
}

static bool wants_colors(const struct as_args *args)
{
    const char *wanted = as_args_get(args, "color"), *terminal = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");

    if (strcmp(wanted, "auto") != 0)
        return strcmp(wanted, "always") == 0;
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

static int run(const struct as_args *args)
{
    struct log_run log = {.args = args,
                          .json = as_args_wants_json(args),
                          .is_terminal = isatty(STDOUT_FILENO) == 1,
                          .colors = wants_colors(args),
                          .follow = as_args_has(args, "follow")};
    struct as_error error = AS_ERROR_INIT;
    struct log_files files;

    if (log_filter_init(&log.filter, args, moment_get_now(), &error) ||
        log_files_find(args, &files, &error))
        return as_cli_fail(args, "%s", error.text);
    int status = 0;
    log.ids = json_object();
    log.repeats = log_repeats_new();
    for (size_t i = 0; !status && i < files.count; i++) {
        log.overlap.at_beginning = true;
        status = take_file(&log, files.paths[i], i + 1 == files.count, &error);
    }
    log_files_deinit(&files);
    json_decref(log.ids);
    log_repeats_free(log.repeats);
    if (status)
        return as_cli_fail(args, "%s", error.text);
    if (log.unknown > 0)
        (void)as_cli_fail(
            args,
            "%llu repeats were left out: the records with their details, and so their "
            "rules, are not in these files",
            (unsigned long long)log.unknown);
    if (log.is_bad)
        return AS_EXIT_USAGE;
    return log.printed ? AS_EXIT_OK : AS_EXIT_NO;
}

static const char *const color_choices[] = {"auto", "always", "never", NULL};

static const struct as_option options[] = {
    LOG_FILTER_OPTIONS,
    {.name = "follow", .letter = 'f', .help = "Waits for new records and prints them, as tail -f"},
    AS_OPTION_CONFIG_FILE("Names the log if no FILE is given"),
    {.name = "color",
     .value = "WHEN",
     .fallback = "auto",
     .choices = color_choices,
     .help = "auto: on a terminal, unless NO_COLOR is set"},
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_log = {
    .name = "log",
    .operands = "[FILE...]",
    .summary = "Prints the action log: what happened, and why.",
    .help = "Without FILE, the log of the configuration with its rotated files. FILEs may come in "
            "any order; '-' is\nstandard input. Exit status 1 if no record matches.",
    .options = options,
    .operands_max = 100000,
    .run = run,
};
