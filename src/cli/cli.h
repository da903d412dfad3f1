/*
 * Commands: one file per command, one row in the table of commands.c. Parsing, --help and shell
 * completion all use its const table of options. Below stand the kinds of values that several
 * commands take.
 */
#ifndef ALERTSCALER_SRC_CLI_CLI_H
#define ALERTSCALER_SRC_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/model/labels.h>

struct as_adapters;
struct as_args;
struct as_config;
struct as_simulation;
struct as_ruleset;
struct log_files;

#define AS_OPTIONS_MAX 32

enum as_exit {
    AS_EXIT_OK,
    AS_EXIT_NO,
    AS_EXIT_USAGE,
    AS_EXIT_LINT /* only check --lint-fatal; promtool's number for it */
};

struct as_option {
    const char *name;           /* without "--"; may have dots */
    char letter;                /* 'o' for -o; 0: none */
    const char *value;          /* name of its value, for help: "FILE"; NULL: takes no value */
    const char *fallback;       /* default value; NULL: none */
    const char *const *choices; /* all allowed values, ends with NULL; NULL: any */
    bool repeats;               /* may be given several times: as_args_find_next */
    const char *names;          /* for completion: "targets", of `completion`; NULL: files */
    const char *help;
};

struct as_command {
    const char *name;                /* one word, or two: "log verify" */
    const char *operands;            /* for help: "[FILE...]"; "" for none */
    const char *summary;             /* one line */
    const char *help;                /* the rest of --help; "" for nothing */
    const struct as_option *options; /* ends with one without name; without --help */
    size_t operands_min, operands_max;
    /* For completion: the words of the first operand, as "a b"; NULL: any. And what the operands
     * are names of, as for an option; "": of the kind that the first operand says. */
    const char *first_words, *names;
    int (*run)(const struct as_args *args); /* returns the exit status */
};

struct as_given { /* one value of an option that repeats */
    const struct as_option *option;
    const char *value;
};

struct as_args {
    const struct as_adapters *adapters; /* for the daemon and its ports */
    const struct as_command *command;
    bool wants_help;
    const char *values[AS_OPTIONS_MAX]; /* by table row; NULL: not given; "" for a flag */
    const char **operands;
    size_t operand_count;
    struct as_given *given; /* in order */
    size_t given_count;
};

/* Parses the arguments after the command's name. Borrows argv. 0; -EINVAL with an error. */
int as_args_parse(const struct as_command *command, int argc, char *const *argv,
                  struct as_args *args_out, struct as_error *error) AS_MUST_USE;
void as_args_deinit(struct as_args *args);

/* The given value, or the option's default; NULL if there is neither. The option must be in the
 * command's table. */
const char *as_args_get(const struct as_args *args, const char *name);
bool as_args_has(const struct as_args *args, const char *name); /* given */

/* The next value of an option that repeats; *at_io starts with 0. NULL: no more. */
const char *as_args_find_next(const struct as_args *args, const char *name, size_t *at_io);

bool as_args_wants_json(const struct as_args *args); /* of AS_OPTION_OUTPUT */
/* One document and a newline. Characters that a terminal might obey are \\uXXXX. */
void as_cli_print_json(const json_t *json, size_t flags, FILE *out);

/* Prints the problem on standard error in the program's form, and returns AS_EXIT_USAGE. */
int as_cli_fail(const struct as_args *args, const char *format, ...) AS_PRINTF(2, 3);

/* The name that is most similar to a wrong one. */
struct as_spelling {
    const char *asked;
    char *nearest; /* for free(); NULL: none is near */
    unsigned distance;
};

struct as_spelling as_spelling_begin(const char *asked);
void as_spelling_offer(struct as_spelling *spelling, const char *name);
/* `; did you mean "NAME"?`, or "" if no name is near: for free(). Frees the name. */
char *as_spelling_end(struct as_spelling *spelling) AS_MUST_USE;

size_t as_command_get_all(const struct as_command *const **commands_out);
const struct as_command *as_command_find(const char *name); /* or NULL */

extern const struct as_command as_command_backtest;
extern const struct as_command as_command_check;
extern const struct as_command as_command_convert;
extern const struct as_command as_command_convert_cluster_autoscaler;
extern const struct as_command as_command_decide;
extern const struct as_command as_command_diff;
extern const struct as_command as_command_effects;
extern const struct as_command as_command_explain;
extern const struct as_command as_command_fire;
extern const struct as_command as_command_init;
extern const struct as_command as_command_log;
extern const struct as_command as_command_log_verify;
extern const struct as_command as_command_notify_test;
extern const struct as_command as_command_replay;
extern const struct as_command as_command_serve;
extern const struct as_command as_command_status;
extern const struct as_command as_command_test;

/* The rows of the commands by which an operator acts on a daemon. */
enum as_operator_row {
    AS_OPERATOR_PAUSE,
    AS_OPERATOR_RESUME,
    AS_OPERATOR_SCALE,
    AS_OPERATOR_FLOOR,
    AS_OPERATOR_UNLOCK,
    AS_OPERATOR_APPROVE,
    AS_OPERATOR_DENY,
    AS_OPERATOR_RELOAD,
    AS_OPERATOR_KILL_SWITCH
};
extern const struct as_command as_commands_of_operators[];

/* The rows of the commands that show what a daemon knows. */
enum as_reader_row { AS_READER_GET, AS_READER_DESCRIBE };
extern const struct as_command as_commands_of_readers[];

extern const char *const as_output_choices[]; /* text, json */

/* For the table of a command that prints results. */
#define AS_OPTION_OUTPUT                                                                           \
    {                                                                                              \
        .name = "output", .letter = 'o', .value = "FORMAT", .fallback = "text",                    \
        .choices = as_output_choices, .help = "text for people or json for programs",              \
    }

/* The configuration that a command reads: that of --config.file, else the one in the present
 * folder, else the machine's. */

#define CONFIG_HERE    "alertscaler.yaml"
#define CONFIG_MACHINE "/etc/alertscaler/alertscaler.yaml"

/* Prints nothing. */
const char *config_option_find(const struct as_args *args);

/* If it is the machine's without being named, says so on standard error. */
const char *config_option_report(const struct as_args *args);

#define AS_OPTION_CONFIG_FILE(TEXT)                                                                \
    {                                                                                              \
        .name = "config.file", .value = "FILE",                                                    \
        .help = TEXT " (default: " CONFIG_HERE ", else " CONFIG_MACHINE ")",                       \
    }

/* A time on the command line: RFC 3339, also without seconds (2026-11-20T14:03Z) or as a day
 * (2026-11-20: its start in UTC), `now`, or a duration ago (2h30m). */

as_wall_time moment_get_now(void);

/* 0; or -EINVAL with an error that names the option. */
int moment_parse(const char *option, const char *text, as_wall_time now, as_wall_time *time_out,
                 struct as_error *error) AS_MUST_USE;

/* Labels and annotations as arguments: NAME=VALUE. */

#define LABEL_ARGUMENTS_MAX 1000

/* `what` is "label" or "annotation". A value may be empty or contain '='. 0; or a negative errno
 * with an error. */
int label_arguments_parse(const char *const *texts, size_t count, const char *what,
                          struct as_labels **labels_out, struct as_error *error) AS_MUST_USE;

/* The command line: finds the command in the table, reads its options, runs it. Returns the exit
 * status: 0 success; 1 the answer is no; 2 wrong usage, unreadable input or unwritable output. */
int as_cli_main(int argc, char **argv, const struct as_adapters *adapters);

/* Options of the commands that try rules: --rules, and sizes by --replicas. */

/*
 * Loads `path`: a folder (its *.yaml and *.yml) or a rule file, with the settings of --config.file
 * if given; or a configuration with its rule files. 0; or AS_EXIT_NO or AS_EXIT_USAGE after
 * printing all problems.
 */
int rules_load(const struct as_args *args, const char *path,
               struct as_config **config_out) AS_MUST_USE;

/* The same for a file that is one http_config: see as_config_load_http. */
int rules_load_http(const struct as_args *args, const char *path,
                    struct as_config **config_out) AS_MUST_USE;

/* As in the daemon, but with a fixed seed. */
struct as_engine_config rules_get_engine_config(const struct as_config *config);

/* Sets the sizes of --replicas NAME=N. 0; -EINVAL with an error. */
int rules_set_replicas(const struct as_args *args, const struct as_ruleset *ruleset,
                       struct as_simulation *simulation, struct as_error *error) AS_MUST_USE;

#define AS_OPTION_REPLICAS                                                                         \
    {                                                                                              \
        .name = "replicas", .value = "NAME=N", .repeats = true,                                    \
        .help = "A target's initial size; NAME is its name in the rules, or its id",               \
    }

/* `alertscaler replay --rules`: replays the notifications under other rules (--rules). Returns the
 * exit status. */
int replay_rules(const struct as_args *args, const struct log_files *files);

#endif
