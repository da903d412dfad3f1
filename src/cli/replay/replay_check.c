/*
 * `alertscaler replay` without --rules: each logged decision's input is decided again and compared
 * with its logged output. Holds one record at a time.
 */
#include "replay_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/app/record_text.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/core/decide.h>
#include <alertscaler/wire/decision.h>

#include "log/log_filter.h"
#include "log/log_walk.h"

#define OUTPUT_MAX ((size_t)1 << 30)
#define KEY        "\"output\":"

struct check {
    const struct as_args *args;
    bool is_json;
    uint64_t decisions, different, unreadable;
    struct as_buf output; /* the value of KEY, as in the log if nothing differs */
};

static void put_value(const char *before, const json_t *value)
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
    put_value(": logged ", logged);
    put_value(", computed ", computed);
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

static void print_text(const struct log_line *line, json_t *record, json_t *computed)
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

static void print_json(const struct log_line *line, json_t *record, json_t *computed)
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

/* The bytes differ from the log's. The content may still be equal, if the log has another form. */
static void compare_values(struct check *check, const struct log_line *line, json_t *record)
{
    const size_t skip = strlen(KEY);
    json_t *computed = json_loadb(check->output.data + skip, check->output.size - skip, 0, NULL);
    json_t *logged = json_object_get(record, "output");

    if (!computed || !logged || !json_equal(computed, logged)) {
        check->different++;
        if (check->is_json)
            print_json(line, record, computed);
        else
            print_text(line, record, computed);
    }
    json_decref(computed);
}

static int decide(struct check *check, json_t *record, struct as_error *error)
{
    AS_CLEANUP(as_decide_document_free_p) struct as_decide_document *document = NULL;
    json_t *input = json_object_get(record, "input");
    struct as_decision decision;

    if (!input) {
        as_error_set(error, "the decision has no `input`");
        return -EBADMSG;
    }
    int status = as_decision_decode_input_value(input, &document, error);
    if (status) {
        as_error_wrap(error, "input");
        return status;
    }
    as_decide_document_decide(document, &decision);
    as_buf_clear(&check->output);
    as_buf_append_str(&check->output, KEY);
    as_decision_encode_output(&document->input, document->results, &decision, &check->output);
    return as_buf_check(&check->output);
}

/* An unreadable decision is reported, and the others are still checked. */
static int take_record(void *context, const struct log_line *line, json_t *record,
                       struct as_error *unused)
{
    struct check *check = context;
    struct as_error error = AS_ERROR_INIT;

    if (strcmp(as_record_get_text(record, "kind"), "decision") != 0)
        return 0;
    check->decisions++;
    if (decide(check, record, &error)) {
        check->unreadable++;
        (void)as_cli_fail(check->args, "%s:%llu: %s", line->path, line->number, error.text);
        return 0;
    }
    if (!memmem(line->text, line->size, check->output.data, check->output.size))
        compare_values(check, line, record);
    return 0;
}

static void print_summary(const struct check *check)
{
    if (check->is_json)
        return;
    printf("%" PRIu64 " decision%s computed again, %" PRIu64 " differ%s", check->decisions,
           check->decisions == 1 ? "" : "s", check->different, check->different == 1 ? "s" : "");
    if (check->unreadable > 0)
        printf(", %" PRIu64 " cannot be read", check->unreadable);
    putchar('\n');
}

int replay_check(const struct as_args *args, const struct log_files *files)
{
    struct check check = {
        .args = args, .is_json = as_args_wants_json(args), .output = AS_BUF_INIT(OUTPUT_MAX)};
    const struct log_visitor visitor = {
        .take = take_record, .context = &check, .must_be_whole = true};
    struct as_error error = AS_ERROR_INIT;

    int status = log_walk(files, &visitor, &error);
    as_buf_deinit(&check.output);
    if (status)
        return as_cli_fail(args, "%s", error.text);
    print_summary(&check);
    if (check.unreadable > 0)
        return AS_EXIT_USAGE;
    return check.different > 0 ? AS_EXIT_NO : AS_EXIT_OK;
}
