/*
 * `alertscaler status`: a running daemon's targets as a table, below what holds all of them; once,
 * or repeated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/safe_text.h>

#include "cli.h"
#include "http_call.h"
#include "table.h"
#include "target_text.h"
#include "watch.h"

/* --- the table --- */

enum {
    COLUMN_TARGET,
    COLUMN_SIZE,
    COLUMN_BOUNDS,
    COLUMN_LOCKED,
    COLUMN_PAUSED,
    COLUMN_OPEN,
    COLUMN_LAST,
    COLUMNS
};

static const char *const titles[COLUMNS] = {
    [COLUMN_TARGET] = "TARGET",      [COLUMN_SIZE] = "SIZE",     [COLUMN_BOUNDS] = "BOUNDS",
    [COLUMN_LOCKED] = "LOCKED",      [COLUMN_PAUSED] = "PAUSED", [COLUMN_OPEN] = "INCIDENTS",
    [COLUMN_LAST] = "LAST DECISION",
};

static void status_make_row(const json_t *target, int64_t now_us, char *cells[COLUMNS])
{
    const char *name = target_text_get(target, "name");
    const bool has_own_name = *name && !json_is_true(json_object_get(target, "templated"));
    const json_t *open = json_object_get(target, "open_incidents");
    cells[COLUMN_TARGET] = as_xstrdup(has_own_name ? name : target_text_get(target, "id"));
    cells[COLUMN_SIZE] = target_text_make_size(target);
    cells[COLUMN_BOUNDS] = target_text_make_bounds(target, now_us);
    cells[COLUMN_LOCKED] = target_text_make_locks(target, now_us);
    cells[COLUMN_PAUSED] = target_text_make_pause(target, now_us);
    cells[COLUMN_OPEN] = as_xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(open));
    cells[COLUMN_LAST] = target_text_make_last(target, now_us);
}

static void status_print_table(const json_t *targets, FILE *out)
{
    const size_t count = json_array_size(targets);
    const int64_t now_us = target_text_get_now();
    char **cells = as_xcalloc(count * COLUMNS + 1, sizeof(char *));
    for (size_t k = 0; k < count; k++)
        status_make_row(json_array_get(targets, k), now_us, cells + k * COLUMNS);
    table_print(titles, COLUMNS, cells, count, out);
    free(cells);
}

/* What holds all targets, and which replica leads. */
static void print_above(const json_t *status, FILE *out)
{
    const json_t *pause = json_object_get(status, "paused");
    const char *who = target_text_get(pause, "who");
    const char *leader = target_text_get(json_object_get(status, "leadership"), "holder");
    char left[64];
    if (*leader) {
        fputs("Leader: ", out);
        as_safe_text_put(out, leader);
        fputc('\n', out);
    }
    if (json_is_true(json_object_get(status, "dry_run")))
        fputs("Dry run: nothing is changed.\n", out);
    if (!json_is_object(pause))
        return;
    if (json_is_true(json_object_get(pause, "kill_switch")))
        fputs("The kill switch is set: nothing is scaled", out);
    else
        fputs("Everything is paused", out);
    fprintf(out, "%s", *who ? ", by " : "");
    as_safe_text_put(out, who);
    if (target_text_print_span(pause, "until", false, target_text_get_now(), left, sizeof(left)))
        fprintf(out, ", for another %s", left);
    fputs(": ", out);
    as_safe_text_put(out, target_text_get(pause, "reason"));
    fputc('\n', out);
}

static char *status_make_path(const struct as_args *args)
{
    if (args->operand_count == 0)
        return as_xstrdup("/api/v1/targets");
    char *escaped = curl_easy_escape(NULL, args->operands[0], 0);
    char *path = as_xasprintf("/api/v1/targets/%s", escaped ? escaped : "");
    curl_free(escaped);
    return path;
}

/* "5 tries since 3m, next in 40s" */
static void status_print_tries(const json_t *target, FILE *out)
{
    const json_int_t tries = json_integer_value(json_object_get(target, "tries"));
    const int64_t now_us = target_text_get_now();
    char span[64];
    if (tries <= 0)
        return;
    fprintf(out, " (%" JSON_INTEGER_FORMAT " %s", tries, tries == 1 ? "try" : "tries");
    if (target_text_print_span(target, "failing_since", true, now_us, span, sizeof(span)))
        fprintf(out, " for %s", span);
    if (target_text_print_span(target, "next_try", false, now_us, span, sizeof(span)))
        fprintf(out, ", next in %s", span);
    fputc(')', out);
}

/* Why targets failed: too long for the table. */
static void print_failures(const json_t *targets, FILE *out)
{
    const json_t *target;
    size_t i;
    json_array_foreach(targets, i, target)
    {
        const char *failure = target_text_get(target, "failure");
        const char *text = target_text_get(target, "failure_text");
        if (!*failure)
            continue;
        as_safe_text_put(out, target_text_get(target, "name"));
        fprintf(out, ": %s%s", failure, *text ? ": " : "");
        as_safe_text_put(out, text);
        status_print_tries(target, out);
        fputc('\n', out);
    }
}

/* What happens after an incident. */
static void status_print_next(const json_t *targets, FILE *out)
{
    const json_t *target;
    size_t i;
    json_array_foreach(targets, i, target) http_print_next(target, out);
}

/* HPAs and ScaledObjects that aim at targets. */
static void status_print_others(const json_t *targets, FILE *out)
{
    const json_t *target, *other;
    size_t i, k;
    json_array_foreach(targets, i, target)
    {
        json_array_foreach(json_object_get(target, "others"), k, other)
        {
            as_safe_text_put(out, target_text_get(target, "name"));
            fprintf(out, ": the %s ", target_text_get(other, "kind"));
            as_safe_text_put(out, target_text_get(other, "name"));
            fputs(json_is_true(json_object_get(other, "paused")) ? " sizes it too (paused)\n"
                                                                 : " sizes it too\n",
                  out);
        }
    }
}

/* Rules that did not help. */
static void status_print_ineffective(const json_t *targets, FILE *out)
{
    const json_t *target, *rule;
    size_t i, k;
    json_array_foreach(targets, i, target)
    {
        json_array_foreach(json_object_get(target, "ineffective"), k, rule)
        {
            char left[64] = "0s";
            (void)target_text_print_span(rule, "until", false, target_text_get_now(), left,
                                         sizeof(left));
            as_safe_text_put(out, target_text_get(target, "name"));
            fputs(": the rule ", out);
            as_safe_text_put(out, target_text_get(rule, "rule"));
            fprintf(out, " did not help: held for another %s, or until resume\n", left);
        }
    }
}

/* Rules with queries that the server refuses, of the targets shown; all of them if all targets are
 * shown, since a rule may have no target yet. */
static void status_print_query_errors(const json_t *status, const json_t *targets, bool is_all,
                                      FILE *out)
{
    const json_t *rule, *target;
    size_t i, k;
    json_array_foreach(json_object_get(json_object_get(status, "data"), "query_errors"), i, rule)
    {
        bool is_shown = is_all;
        json_array_foreach(targets, k, target) is_shown =
            is_shown ||
            strcmp(target_text_get(target, "name"), target_text_get(rule, "target")) == 0;
        if (!is_shown)
            continue;
        as_safe_text_put(out, target_text_get(rule, "target"));
        fputs(": the server refuses a query of the rule ", out);
        as_safe_text_put(out, target_text_get(rule, "rule"));
        fputs(": ", out);
        as_safe_text_put(out, target_text_get(rule, "error"));
        fputc('\n', out);
    }
}

static bool status_has_target(const json_t *targets, const char *id)
{
    const json_t *target;
    size_t i;
    json_array_foreach(targets, i, target)
    {
        if (strcmp(target_text_get(target, "id"), id) == 0)
            return true;
    }
    return false;
}

static void status_print_request(const json_t *request, FILE *out)
{
    const char *name = target_text_get(request, "target_name");
    const bool is_approved = strcmp(target_text_get(request, "answer"), "approved") == 0;
    char left[64] = "0s", from[AS_SIZE_TEXT_SIZE], to[AS_SIZE_TEXT_SIZE];
    (void)target_text_print_span(request, "until", false, target_text_get_now(), left,
                                 sizeof(left));
    as_safe_text_put(out, *name ? name : target_text_get(request, "target"));
    fputs(is_approved ? ": approved: " : ": needs an approval: ", out);
    as_safe_text_put(out, target_text_get(request, "rule"));
    fprintf(
        out, " from %s to %s",
        target_text_print_size(request, json_integer_value(json_object_get(request, "from")), from),
        target_text_print_size(request, json_integer_value(json_object_get(request, "to")), to));
    fprintf(out, ", for another %s: alertscaler %s ", left, is_approved ? "deny" : "approve");
    as_safe_text_put(out, target_text_get(request, "id"));
    fputc('\n', out);
}

/* What people are asked, of the targets shown. */
static void print_requests(const struct as_args *args, const json_t *targets, FILE *out)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    int unused;
    json_t *json = http_call_ask(args, "/api/v1/approvals", &problem, &unused);
    const json_t *request;
    size_t i;
    if (!json) { /* silence would say that nothing waits */
        fputs("It is not known what waits for an approval: ", out);
        as_safe_text_put(out, problem);
        fputc('\n', out);
    }
    json_array_foreach(json_object_get(json, "data"), i, request)
    {
        const char *answer = target_text_get(request, "answer");
        if ((strcmp(answer, "waiting") == 0 || strcmp(answer, "approved") == 0) &&
            status_has_target(targets, target_text_get(request, "target")))
            status_print_request(request, out);
    }
    json_decref(json);
}

static void status_print_text(const struct as_args *args, json_t *data, FILE *out)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    int unused;
    json_t *status = http_call_ask(args, "/api/v1/status", &problem, &unused);
    print_above(json_object_get(status, "data"), out); /* the table is printed in any case */
    json_t *targets = json_is_array(data) ? json_incref(data) : json_pack("[O]", data);
    status_print_table(targets, out);
    print_failures(targets, out);
    status_print_next(targets, out);
    status_print_others(targets, out);
    status_print_ineffective(targets, out);
    status_print_query_errors(status, targets, json_is_array(data), out);
    json_decref(status);
    print_requests(args, targets, out);
    json_decref(targets);
}

/* Prints the status once. Returns the exit status, with the problem, for free(); with 0 the problem
 * is only a warning, or NULL. */
static int status_print(const struct as_args *args, FILE *out, char **problem_out)
{
    AS_CLEANUP(as_free_p) char *path = status_make_path(args);
    int status;
    json_t *json = http_call_ask(args, path, problem_out, &status);
    if (!json)
        return status;
    json_t *data = json_object_get(json, "data");
    const char *warning = json_string_value(json_array_get(json_object_get(json, "warnings"), 0));
    if (as_args_wants_json(args)) {
        as_cli_print_json(data, JSON_INDENT(2), out);
    } else {
        status_print_text(args, data, out);
    }
    if (warning)
        *problem_out = as_safe_text_take(as_xstrdup(warning));
    json_decref(json);
    return AS_EXIT_OK;
}

/* --- the command --- */

static int status_run(const struct as_args *args)
{
    AS_CLEANUP(as_free_p) char *problem = NULL;
    if (as_args_has(args, "watch"))
        return watch_run(args, status_print);
    const int status = status_print(args, stdout, &problem);
    if (problem)
        (void)as_cli_fail(args, "%s", problem);
    if (status == AS_EXIT_NO && args->operand_count > 0)
        http_suggest_target(args, args->operands[0]);
    return status;
}

static const struct as_option status_options[] = {
    WATCH_OPTIONS, AS_OPTION_URL, AS_OPTION_TOKEN_FILE, AS_OPTION_CA_FILE, AS_OPTION_OUTPUT, {0},
};

const struct as_command as_command_status = {
    .name = "status",
    .operands = "[TARGET]",
    .summary = "Shows a running daemon's targets: size, bounds, locks, pauses, last decision.",
    .help = "TARGET is a name in the rule files, or an id. What holds all targets, such as a pause "
            "of all,\n"
            "is shown above the table.",
    .options = status_options,
    .operands_max = 1,
    .names = "targets",
    .run = status_run,
};
