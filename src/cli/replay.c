/*
 * `alertscaler replay`: runs the action log again: by this program's arithmetic, or under other
 * rules (replay_rules.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/safe_text.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/tools/recompute.h>
#include <alertscaler/tools/record_text.h>

#include "cli.h"
#include "log_reader.h"

/* --- replay without --rules --- */

/*
 * Each logged decision is computed again (tools/recompute.h). Holds one record at a time.
 */

struct check {
    const struct as_args *args;
    bool is_json;
    uint64_t decisions, different, unreadable;
};

static void replay_put_value(const char *before, const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

    fputs(before, stdout);
    as_safe_text_put(stdout, text ? text : "nothing");
    free(text);
}

static void print_field(void *context, const char *key, const json_t *logged,
                        const json_t *computed)
{
    fputs("  ", stdout);
    as_safe_text_put(stdout, key);
    replay_put_value(": logged ", logged);
    replay_put_value(", computed ", computed);
    putchar('\n');
}

static json_int_t get_seq(const json_t *record)
{
    return json_integer_value(json_object_get(record, "seq"));
}

static void replay_print_text(const struct log_line *line, json_t *record, json_t *computed)
{
    const char *name = as_record_get_text(record, "target_name"),
               *id = as_record_get_text(record, "target");

    printf("%s:%llu: record %" JSON_INTEGER_FORMAT " of ", line->path, line->number,
           get_seq(record));
    as_safe_text_put(stdout, as_record_get_text(record, "time"));
    fputs(", target ", stdout);
    as_safe_text_put(stdout, *name ? name : id);
    fputs(" differs:\n", stdout);
    as_recompute_visit_differences(json_object_get(record, "output"), computed, print_field, NULL);
}

static void replay_print_json(const struct log_line *line, json_t *record, json_t *computed)
{
    json_t *json = json_object();

    json_object_set_new(json, "computed", json_incref(computed));
    json_object_set_new(json, "file", json_string(line->path));
    json_object_set_new(json, "line", json_integer((json_int_t)line->number));
    json_object_set_new(json, "logged", json_incref(json_object_get(record, "output")));
    json_object_set_new(json, "seq", json_integer(get_seq(record)));
    json_object_set(json, "target", json_object_get(record, "target"));
    json_object_set(json, "target_name", json_object_get(record, "target_name"));
    json_object_set(json, "time", json_object_get(record, "time"));
    as_cli_print_json(json, JSON_COMPACT | JSON_SORT_KEYS, stdout);
    json_decref(json);
}

static void replay_print_difference(struct check *check, const struct log_line *line,
                                    json_t *record, json_t *computed)
{
    check->different++;
    if (check->is_json)
        replay_print_json(line, record, computed);
    else
        replay_print_text(line, record, computed);
}

/* An unreadable decision is reported, and the others are still checked. */
static int replay_read_record(void *context, const struct log_line *line, json_t *record,
                              struct as_error *unused)
{
    struct check *check = context;
    struct as_error error = AS_ERROR_INIT;
    json_t *computed = NULL;

    if (strcmp(as_record_get_text(record, "kind"), "decision") != 0)
        return 0;
    check->decisions++;
    const int status =
        as_recompute(line->text, line->size, record, AS_RECOMPUTE_FIND_TERMS, &computed, &error);
    if (status < 0) {
        check->unreadable++;
        (void)as_cli_fail(check->args, "%s:%llu: %s", line->path, line->number, error.text);
    } else if (status != AS_RECOMPUTE_EQUAL) {
        replay_print_difference(check, line, record, computed);
    }
    json_decref(computed);
    return 0;
}

static void replay_print_summary(const struct check *check)
{
    if (check->is_json)
        return;
    printf("%" PRIu64 " decision%s computed again, %" PRIu64 " differ%s", check->decisions,
           check->decisions == 1 ? "" : "s", check->different, check->different == 1 ? "s" : "");
    if (check->unreadable > 0)
        printf(", %" PRIu64 " cannot be read", check->unreadable);
    putchar('\n');
}

static int replay_check(const struct as_args *args, const struct log_files *files)
{
    struct check check = {.args = args, .is_json = as_args_wants_json(args)};
    const struct log_visitor visitor = {
        .on_record = replay_read_record, .context = &check, .must_be_whole = true};
    struct as_error error = AS_ERROR_INIT;

    int status = log_walk(files, &visitor, &error);
    if (status)
        return as_cli_fail(args, "%s", error.text);
    replay_print_summary(&check);
    if (check.unreadable > 0)
        return AS_EXIT_USAGE;
    return check.different > 0 ? AS_EXIT_NO : AS_EXIT_OK;
}

/* --- the command --- */

static int replay_run(const struct as_args *args)
{
    struct as_error error = AS_ERROR_INIT;
    struct log_files files;

    if (!as_args_has(args, "rules") && (as_args_has(args, "svg") || as_args_has(args, "replicas") ||
                                        as_args_has(args, "approvals")))
        return as_cli_fail(args, "--svg, --replicas and --approvals need --rules");
    if (log_files_find(args, &files, &error))
        return as_cli_fail(args, "%s", error.text);
    int status = 0;
    if (!as_args_has(args, "rules"))
        status = replay_check(args, &files);
    else if (log_files_keep(&files, &error))
        status = as_cli_fail(args, "%s", error.text);
    else
        status = replay_rules(args, &files);
    log_files_deinit(&files);
    return status;
}

static const struct as_option replay_options[] = {
    {.name = "rules",
     .value = "PATH",
     .help = "Replays the notifications under these rules: a folder, a file, or a configuration"},
    AS_OPTION_REPLICAS,
    {.name = "approvals",
     .value = "WORD",
     .fallback = "logged",
     .choices = (const char *const[]){"logged", "given", "none", NULL},
     .help = "With --rules: changes that wait for a person are answered as in the log, or are "
             "approved at once (given), or never (none)"},
    {.name = "svg",
     .value = "DIR",
     .help = "With --rules: draws a chart of each target into this folder"},
    AS_OPTION_CONFIG_FILE("Names the log if no FILE is given"),
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_replay = {
    .name = "replay",
    .operands = "[FILE...]",
    .summary = "Computes the decisions of an action log again, or under other rules.",
    .help =
        "Without --rules: computes every logged decision again from its input, and prints each "
        "that\n"
        "differs. Exit status: 0 none differs; 1 some differ; 2 something cannot be read.\n"
        "With --rules: shows what would have happened, as a table of sizes and actions before and\n"
        "under the new rules.",
    .options = replay_options,
    .operands_max = 100000,
    .run = replay_run,
};
