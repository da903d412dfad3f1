/*
 * `alertscaler replay`: runs the action log again: by this program's arithmetic, or under other
 * rules (replay_rules.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/decide/decide.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/rules/config.h>
#include <alertscaler/tools/record_text.h>

#include "cli.h"
#include "log_reader.h"

/* --- replay without --rules --- */

/*
 * Each logged decision's input is decided again and compared with its logged output. Holds one
 * record at a time.
 */

#define OUTPUT_MAX ((size_t)1 << 30)
#define KEY        "\"output\":"

struct check {
    const struct as_args *args;
    bool is_json;
    uint64_t decisions, different, unreadable;
    struct as_buf output; /* the value of KEY, as in the log if nothing differs */
};

static void replay_put_value(const char *before, const json_t *value)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

    fputs(before, stdout);
    as_safe_text_put(stdout, text ? text : "nothing");
    free(text);
}

static void print_field(const char *key, const json_t *logged, const json_t *computed)
{
    fputs("  ", stdout);
    as_safe_text_put(stdout, key);
    replay_put_value(": logged ", logged);
    replay_put_value(", computed ", computed);
    putchar('\n');
}

/* Prints every member that differs. */
static void print_fields(json_t *logged, json_t *computed)
{
    const char *key;
    json_t *value;

    json_object_foreach(computed, key, value)
    {
        const json_t *other = json_object_get(logged, key);
        if (!other || !json_equal(value, other))
            print_field(key, other, value);
    }
    json_object_foreach(logged, key, value)
    {
        if (!json_object_get(computed, key))
            print_field(key, value, NULL);
    }
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
    print_fields(json_object_get(record, "output"), computed);
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

static json_t *load_output(const struct check *check)
{
    const size_t skip = strlen(KEY);

    return json_loadb(check->output.data + skip, check->output.size - skip, 0, NULL);
}

/* The content may be equal where the bytes differ: the log may have another form. */
static bool is_as_logged(const struct check *check, const struct log_line *line,
                         const json_t *record)
{
    if (memmem(line->text, line->size, check->output.data, check->output.size))
        return true;
    json_t *computed = load_output(check);
    const bool is_equal = computed && json_equal(computed, json_object_get(record, "output"));

    json_decref(computed);
    return is_equal;
}

static void replay_print_difference(struct check *check, const struct log_line *line,
                                    json_t *record)
{
    json_t *computed = load_output(check);

    check->different++;
    if (check->is_json)
        replay_print_json(line, record, computed);
    else
        replay_print_text(line, record, computed);
    json_decref(computed);
}

static void replay_decide(struct check *check, struct as_decide_document *document)
{
    struct as_decision decision;

    as_decide_document_decide(document, &decision);
    as_buf_clear(&check->output);
    as_buf_append_str(&check->output, KEY);
    as_decision_encode_output(&document->input, document->results, &decision, &check->output);
}

/*
 * The terms of a pool's plan, which documents before version 3 do not have. The plan was made a
 * little before its decision, perhaps by another clock, for all rules of the pool. Some of these
 * rules are no proposals of the decision: a dry run's are decided apart. So the logged answer is
 * right if a plan at a time that the answer contains, with or without `fit` and `take`, gives this
 * answer to the byte.
 */
#define PLAN_TERMS_VERSION 3
#define PLAN_TIMES_MAX     4

struct plan_times {
    as_wall_time at[PLAN_TIMES_MAX];
    size_t count;
};

static void replay_add_time(struct plan_times *times, const json_t *value)
{
    const char *text = json_string_value(value);
    as_wall_time at;

    if (!text || times->count == PLAN_TIMES_MAX || as_wall_time_parse(text, strlen(text), &at) != 0)
        return;
    for (size_t i = 0; i < times->count; i++) {
        if (times->at[i].us == at.us)
            return;
    }
    times->at[times->count++] = at;
}

/* The likeliest first. */
static struct plan_times list_times(const struct as_decide_document *document, const json_t *record)
{
    const json_t *output = json_object_get(record, "output"), *item;
    struct plan_times times = {.count = 0};
    size_t i;

    json_array_foreach(json_object_get(output, "unneeded"), i, item)
        replay_add_time(&times, json_object_get(item, "seen"));
    if (times.count < PLAN_TIMES_MAX)
        times.at[times.count++] = document->input.now;
    json_array_foreach(json_object_get(output, "asked"), i, item)
        replay_add_time(&times, json_object_get(item, "at"));
    return times;
}

static void decide_by(struct check *check, struct as_decide_document *document,
                      const struct as_pool_plan_terms *terms)
{
    document->input.plan = NULL;
    document->input.plan_terms = terms;
    replay_decide(check, document);
    document->input.plan_terms = NULL;
}

/* If no terms give the logged answer, `output` is by the likeliest ones. */
static void find_terms(struct check *check, const struct log_line *line, json_t *record,
                       struct as_decide_document *document)
{
    const struct plan_times times = list_times(document, record);
    const struct as_pool_plan_terms of_document = document->input.plan->terms;
    struct as_pool_plan_terms terms = of_document;

    for (size_t rules = 0; rules < 4; rules++) {
        for (size_t i = 0; i < times.count; i++) {
            terms.now = times.at[i];
            terms.with_fit = of_document.with_fit != (rules % 2 == 1);
            terms.with_take = of_document.with_take != (rules / 2 == 1);
            decide_by(check, document, &terms);
            if (is_as_logged(check, line, record))
                return;
        }
    }
    terms = of_document;
    terms.now = times.at[0];
    decide_by(check, document, &terms);
}

static int decide_again(struct check *check, const struct log_line *line, json_t *record,
                        struct as_error *error)
{
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = NULL;

    int status = as_decision_decode_record(line->text, line->size, &document, error);
    if (status)
        return status;
    replay_decide(check, document);
    if (!is_as_logged(check, line, record) && document->input.plan &&
        document->input.version < PLAN_TERMS_VERSION)
        find_terms(check, line, record, document);
    return as_buf_check(&check->output);
}

/* An unreadable decision is reported, and the others are still checked. */
static int replay_read_record(void *context, const struct log_line *line, json_t *record,
                              struct as_error *unused)
{
    struct check *check = context;
    struct as_error error = AS_ERROR_INIT;

    if (strcmp(as_record_get_text(record, "kind"), "decision") != 0)
        return 0;
    check->decisions++;
    if (decide_again(check, line, record, &error)) {
        check->unreadable++;
        (void)as_cli_fail(check->args, "%s:%llu: %s", line->path, line->number, error.text);
        return 0;
    }
    if (!is_as_logged(check, line, record))
        replay_print_difference(check, line, record);
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
    struct check check = {
        .args = args, .is_json = as_args_wants_json(args), .output = AS_BUF_INIT(OUTPUT_MAX)};
    const struct log_visitor visitor = {
        .on_record = replay_read_record, .context = &check, .must_be_whole = true};
    struct as_error error = AS_ERROR_INIT;

    int status = log_walk(files, &visitor, &error);
    as_buf_deinit(&check.output);
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
