/*
 * The pool that a decision carries out, operators' orders, and what became of the decision.
 */
#include <inttypes.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/unit.h>
#include <alertscaler/tools/record_text.h>

#include "explain_private.h"

/* The time, and the target where it is not the one that is explained. */
static void put_start(const struct as_explanation *told, const json_t *record, FILE *out)
{
    const char *id = as_record_get_text(record, "target"),
               *name = as_record_get_text(record, "target_name");

    explain_put(out, "  ", as_record_get_text(record, "time"), ": ");
    if (strcmp(id, as_record_get_text(told->decision, "target")) != 0)
        explain_put(out, "", *name ? name : id, ": ");
}

/* What became of nodes that it chose. */
static void print_nodes(const struct as_explanation *told, const json_t *record, FILE *out)
{
    const json_t *nodes = json_object_get(record, "nodes"), *node;
    size_t i;

    put_start(told, record, out);
    explain_put(out, "", as_record_get_text(record, "event"), "");
    json_array_foreach(nodes, i, node)
        explain_put(out, i ? ", " : " ", json_is_string(node) ? json_string_value(node) : "?", "");
    if (*as_record_get_text(record, "message"))
        explain_put(out, ": ", as_record_get_text(record, "message"), "");
    fputs(".\n", out);
}

static void put_seconds(FILE *out, const char *before, const json_t *seconds, const char *after)
{
    char text[AS_DURATION_SIZE];
    const double us = json_number_value(seconds) * (double)AS_US_PER_S;
    as_duration_print(us < 0 ? 0 : (int64_t)us / AS_US_PER_MS * AS_US_PER_MS, text);
    explain_put(out, before, text, after);
}

/* Whether the action helped. */
static void print_effect(const struct as_explanation *told, const json_t *record, FILE *out)
{
    const json_t *ready = json_object_get(record, "ready_after");
    const json_t *resolved = json_object_get(record, "resolved_after");
    const char *until = as_record_get_text(record, "held_until");

    put_start(told, record, out);
    if (json_is_number(ready))
        put_seconds(out, "as many were ready after ", ready, "; ");
    if (json_is_number(resolved))
        put_seconds(out, "its alert was resolved after ", resolved, "");
    else if (strcmp(as_record_get_text(record, "ended"), "not_resolved") == 0)
        fputs("its alert was not resolved within an hour", out);
    else
        fputs("nobody knows whether it helped: its alert expired, or the rules have changed", out);
    fputs(".\n", out);
    if (!*until)
        return;
    fprintf(out, "  The last %" JSON_INTEGER_FORMAT " actions of the rule did not help",
            json_integer_value(json_object_get(record, "in_vain")));
    explain_put(out, ": it is ineffective and held until ", until, ", or until resume.\n");
}

/* "from 10 (10Gi) to 12 (12Gi): ", in the record's unit. */
static void put_sizes(const json_t *record, int32_t from, int32_t to, FILE *out)
{
    const char *unit = as_record_get_text(record, "unit");
    char before[AS_SIZE_TEXT_SIZE], after[AS_SIZE_TEXT_SIZE];
    fprintf(out, "from %s to %s: ", as_unit_print_size(unit, from, before),
            as_unit_print_size(unit, to, after));
}

/* What a person was asked, and what became of it. */
static void print_request(const struct as_explanation *told, const json_t *record, FILE *out)
{
    int32_t from, to;

    put_start(told, record, out);
    if (as_record_get_size(record, "from", &from) && as_record_get_size(record, "to", &to))
        put_sizes(record, from, to, out);
    explain_put(out, "", as_record_get_text(record, "event"), "");
    if (*as_record_get_text(record, "command"))
        explain_put(out, " by ", as_record_get_text(record, "who"), "");
    explain_put(out, ", request ", as_record_get_text(record, "id"), "");
    if (*as_record_get_text(record, "message"))
        explain_put(out, ": ", as_record_get_text(record, "message"), "");
    fputs(".\n", out);
}

static void print_change(const struct as_explanation *told, const json_t *action, FILE *out)
{
    int32_t from, to;
    json_int_t http = json_integer_value(json_object_get(action, "http_status"));

    put_start(told, action, out);
    if (as_record_get_size(action, "from", &from) && as_record_get_size(action, "to", &to))
        put_sizes(action, from, to, out);
    else if (*as_record_get_text(action, "command"))
        fputs("a size by hand: ", out);
    else
        fputs("the size could not be read: ", out);
    explain_put(out, "", as_record_get_text(action, "outcome"), "");
    if (http > 0)
        fprintf(out, ", HTTP %" JSON_INTEGER_FORMAT, http);
    if (*as_record_get_text(action, "message"))
        explain_put(out, ", ", as_record_get_text(action, "message"), "");
    explain_put(out, ". ", explain_get_meaning(action, "outcome"), "");
    if (*as_record_get_text(action, "command"))
        explain_put(out, " Not by this decision, but by an operator's command ",
                    as_record_get_text(action, "command"), ".");
    fputc('\n', out);
}

static void print_action(const struct as_explanation *told, const json_t *record, FILE *out)
{
    static const struct {
        const char *kind;
        void (*print)(const struct as_explanation *told, const json_t *record, FILE *out);
    } kinds[] = {{"nodes", print_nodes}, {"effect", print_effect}, {"approval", print_request}};
    const char *kind = as_record_get_text(record, "kind");
    size_t i = 0;
    while (i < AS_ARRAY_SIZE(kinds) && strcmp(kinds[i].kind, kind) != 0)
        i++;
    if (i < AS_ARRAY_SIZE(kinds))
        kinds[i].print(told, record, out);
    else
        print_change(told, record, out);
}

/* The operator, the order and the reason. */
static void print_command(const json_t *command, FILE *out)
{
    int32_t size;
    explain_put(out, "  ", as_record_get_text(command, "time"), ": ");
    explain_put(out, "", as_record_get_text(command, "command"), "");
    if (as_record_get_size(command, "replicas", &size))
        fprintf(out, " to %" PRId32, size);
    if (*as_record_get_text(command, "who"))
        explain_put(out, " by ", as_record_get_text(command, "who"), "");
    if (*as_record_get_text(command, "until"))
        explain_put(out, " until ", as_record_get_text(command, "until"), "");
    explain_put(out, ": ", as_record_get_text(command, "reason"), "");
    if (strcmp(as_record_get_text(command, "outcome"), "done") != 0)
        explain_put(out, ". Nothing was done: ", as_record_get_text(command, "message"), "");
    explain_put(out, " (command ", as_record_get_text(command, "id"), ")\n");
}

void explain_print_commands(const struct explained *explained, FILE *out)
{
    const struct as_explanation *told = explained->told;
    json_t *command;
    size_t i;
    json_array_foreach(told->commands, i, command) print_command(command, out);
}

/* What a group made of its share, and of its nodes. */
static void print_share(const struct as_explanation *told, json_t *record, FILE *out)
{
    const json_t *output = json_object_get(record, "output");
    int32_t from, to;

    if (strcmp(as_record_get_text(record, "kind"), "decision") != 0) {
        print_action(told, record, out);
        return;
    }
    put_start(told, record, out);
    if (as_record_get_size(output, "replicas", &from) && as_record_get_size(output, "desired", &to))
        fprintf(out, "decided from %" PRId32 " to %" PRId32 ": ", from, to);
    explain_put(out, "", as_record_get_text(output, "reason"), "");
    explain_put(out, " (decision ", as_record_get_text(record, "id"), ")\n");
}

/* Where the size comes from. */
void explain_print_pool_decision(const struct explained *explained, FILE *out)
{
    const struct as_explanation *told = explained->told;
    const char *id = as_record_get_text(told->decision, "pool_decision");
    const json_t *output = json_object_get(told->pool, "output");
    const char *time = as_record_get_text(told->pool, "time");
    const char *name = as_record_get_text(told->pool, "target_name");
    int32_t from, to;

    if (!*id)
        return;
    explain_put(out, "  this carries out decision ", id, "");
    if (!told->pool) {
        fputs(", which is not in these files\n", out);
        return;
    }
    explain_put(out, " of ", name, "");
    if (as_record_get_size(output, "replicas", &from) && as_record_get_size(output, "desired", &to))
        fprintf(out, ", from %" PRId32 " to %" PRId32, from, to);
    explain_put(out, ": ", as_record_get_text(output, "reason"), "");
    explain_put(out, ", rule ", as_record_get_text(output, "rule"), "");
    explain_put(out, "\n  alertscaler explain --target ", name, "");
    explain_put(out, " --at ", time, " says why\n");
}

void explain_print_what_followed(const struct explained *explained, FILE *out)
{
    const struct as_explanation *told = explained->told;
    const json_t *output = json_object_get(told->decision, "output");
    const char *next = as_record_get_text(output, "next_evaluation");
    json_t *action;
    size_t i;

    json_array_foreach(told->actions, i, action) print_action(told, action, out);
    json_array_foreach(told->shares, i, action) print_share(told, action, out);
    if (json_array_size(told->actions) + json_array_size(told->shares) == 0)
        fputs("  no action\n", out);
    if (told->repeats > 0)
        fprintf(out, "  decided the same %lld more time%s\n", told->repeats,
                told->repeats == 1 ? "" : "s");
    if (*next)
        explain_put(out, "  the same input would be decided otherwise from ", next, " on\n");
    if (told->until.set) {
        fputs("  the next decision came at ", out);
        explain_put_time(out, told->until.at);
        fputc('\n', out);
    }
}
