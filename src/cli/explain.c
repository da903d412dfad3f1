/*
 * `alertscaler explain`: a target's decision in force at a moment, from the action log. The log is
 * read twice: for the decision and what followed, then for what it names: its incidents, decisions
 * of its pool or of the pool's groups, and nodes that it chose, which leave in the background.
 */
#include "explain.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/tools/explain.h>
#include <alertscaler/tools/record_text.h>

#include "cli.h"
#include "log_filter.h"
#include "log_walk.h"
#include "rules_option.h"

/* The effect of an action is recorded an hour after it, at the latest. */
#define EFFECT_SEARCH_US (2 * AS_FOLLOW_US)

struct search {
    const char *target;
    bool has_plain_name; /* the name is in the log without escapes */
    as_wall_time at;
    json_t *decision;  /* the last one until `at` */
    json_t *actions;   /* of this decision, so far */
    json_t *commands;  /* operators' orders on the target until the next decision */
    json_t *incidents; /* the last opening record of each */
    json_t *pool;      /* the decision of the pool that it carries out */
    json_t *shares;    /* of a pool: decisions that carry it out, and what became of them */
    as_maybe_time until;
    long long repeats;
    as_maybe_time first; /* time of the target's first decision */
};

static bool is_decision(const json_t *record)
{
    return strcmp(as_record_get_text(record, "kind"), "decision") == 0;
}

static bool is_of_target(const struct search *search, const json_t *record)
{
    return strcmp(as_record_get_text(record, "target"), search->target) == 0 ||
           strcmp(as_record_get_text(record, "target_name"), search->target) == 0;
}

static bool wants_line(void *context, const struct log_line *line)
{
    const struct search *search = context;

    return !search->has_plain_name || log_line_has(line, search->target);
}

/* A later decision on the same target id (a name may stand for several). */
static int take_next(struct search *search, const json_t *record, as_wall_time time)
{
    if (strcmp(as_record_get_text(record, "target"),
               as_record_get_text(search->decision, "target")) != 0)
        return 0;
    search->until = (as_maybe_time){.set = true, .at = time};
    search->repeats = json_integer_value(json_object_get(record, "repeats"));
    return 1;
}

/* Of the orders before the decision, only the last may have caused it. */
static void keep_last_command(json_t *commands)
{
    while (json_array_size(commands) > 1)
        json_array_remove(commands, 0);
}

static int take_decision(struct search *search, json_t *record, struct as_error *error)
{
    as_wall_time time;
    int status = as_record_get_time(record, &time, error);

    if (status)
        return status;
    if (!search->first.set)
        search->first = (as_maybe_time){.set = true, .at = time};
    if (time.us > search->at.us)
        return search->decision ? take_next(search, record, time) : 1;
    json_decref(search->decision);
    search->decision = json_incref(record);
    json_array_clear(search->actions);
    keep_last_command(search->commands);
    return 0;
}

static int take_record(void *context, const struct log_line *line, json_t *record,
                       struct as_error *error)
{
    struct search *search = context;

    if (!is_of_target(search, record))
        return 0;
    if (is_decision(record))
        return take_decision(search, record, error);
    if (strcmp(as_record_get_text(record, "kind"), "command") == 0)
        json_array_append(search->commands, record);
    /* An action without a decision: since then the size could not be read. */
    const char *decision = as_record_get_text(record, "decision"),
               *kind = as_record_get_text(record, "kind");
    const bool is_effect = strcmp(kind, "action") == 0 || strcmp(kind, "nodes") == 0 ||
                           strcmp(kind, "effect") == 0 || strcmp(kind, "approval") == 0;
    if (search->decision && is_effect &&
        (!*decision || strcmp(decision, as_record_get_text(search->decision, "id")) == 0))
        json_array_append(search->actions, record);
    return 0;
}

/* --- what it names --- */

static bool is_of_kind(const json_t *record, const char *kind)
{
    return strcmp(as_record_get_text(record, "kind"), kind) == 0;
}

static bool has_id(const json_t *record, const char *key, const json_t *decision)
{
    const char *id = as_record_get_text(decision, "id");
    return *id && strcmp(as_record_get_text(record, key), id) == 0;
}

static bool is_node_group(const json_t *decision)
{
    const char *target = as_record_get_text(decision, "target");
    return as_str_starts_with(target, "node_group/") || as_str_starts_with(target, "pool/");
}

static bool wants_named(void *context, const struct log_line *line)
{
    const struct search *search = context;

    return log_line_has(line, "\"kind\":\"incident\"") ||
           log_line_has(line, "\"kind\":\"effect\"") ||
           (is_node_group(search->decision) && (log_line_has(line, "\"kind\":\"decision\"") ||
                                                log_line_has(line, "\"kind\":\"action\"") ||
                                                log_line_has(line, "\"kind\":\"nodes\"")));
}

static void take_incident(struct search *search, json_t *record)
{
    const char *incident = as_record_get_incident(record);
    const json_t *item;
    size_t i;

    if (strcmp(as_record_get_text(record, "event"), "opened") != 0)
        return;
    json_array_foreach(json_object_get(search->decision, "incidents"), i, item)
    {
        if (!json_is_string(item) || strcmp(json_string_value(item), incident) != 0)
            continue;
        size_t j;
        const json_t *known;
        json_array_foreach(search->incidents, j, known)
        {
            if (strcmp(as_record_get_incident(known), incident) == 0)
                break;
        }
        if (j < json_array_size(search->incidents))
            json_array_set(search->incidents, j, record);
        else
            json_array_append(search->incidents, record);
    }
}

/* An action of a share, its effect, or nodes that one has chosen. */
static bool is_of_share(const struct search *search, const json_t *record)
{
    const json_t *share;
    size_t i;

    json_array_foreach(search->shares, i, share)
    {
        if (is_decision(share) && has_id(record, "decision", share))
            return true;
    }
    return false;
}

static int take_named(void *context, const struct log_line *line, json_t *record,
                      struct as_error *error)
{
    struct search *search = context;
    const bool is_nodes = is_of_kind(record, "nodes"), is_effect = is_of_kind(record, "effect");
    as_wall_time time;

    if (as_record_get_time(record, &time, error) != 0)
        return 1;
    if (is_of_kind(record, "incident")) {
        if (time.us <= search->at.us)
            take_incident(search, record);
        return time.us > as_time_add(search->at.us, EFFECT_SEARCH_US) &&
               !is_node_group(search->decision);
    }
    if (is_decision(record) && has_id(search->decision, "pool_decision", record)) {
        json_decref(search->pool);
        search->pool = json_incref(record);
    } else if ((is_decision(record) && has_id(record, "pool_decision", search->decision)) ||
               ((is_nodes || is_effect || is_of_kind(record, "action")) &&
                is_of_share(search, record))) {
        json_array_append(search->shares, record);
    } else if ((is_nodes || is_effect) && search->until.set && time.us > search->until.at.us &&
               has_id(record, "decision", search->decision)) {
        json_array_append(search->actions, record);
    }
    return 0;
}

static int find(struct search *search, const struct log_files *files, struct as_error *error)
{
    struct log_visitor visitor = {.wants = wants_line, .take = take_record, .context = search};
    int status = log_walk(files, &visitor, error);

    if (status < 0 || !search->decision)
        return status;
    visitor.wants = wants_named;
    visitor.take = take_named;
    return log_walk(files, &visitor, error);
}

/* --- a name that is not in the log --- */

struct spelling {
    const char *asked;
    char *nearest; /* NULL: none is near */
    unsigned distance;
};

static bool wants_decision(void *context, const struct log_line *line)
{
    return log_line_has(line, "\"kind\":\"decision\"");
}

static void offer_name(struct spelling *spelling, const char *name)
{
    const size_t asked = strlen(spelling->asked), size = strlen(name);
    const size_t difference = asked > size ? asked - size : size - asked;
    if (difference >= spelling->distance)
        return;
    const unsigned distance =
        strcasecmp(spelling->asked, name) == 0 ? 0 : as_str_distance(spelling->asked, name);
    if (distance >= spelling->distance)
        return;
    as_free_p(&spelling->nearest);
    spelling->nearest = as_xstrdup(name);
    spelling->distance = distance;
}

static int take_name(void *context, const struct log_line *line, json_t *record,
                     struct as_error *error)
{
    if (is_decision(record)) {
        offer_name(context, as_record_get_text(record, "target_name"));
        offer_name(context, as_record_get_text(record, "target"));
    }
    return 0;
}

/* For free(); NULL: no name is similar. */
static char *find_nearest(const char *asked, const struct log_files *files)
{
    struct as_error ignored = AS_ERROR_INIT;
    struct spelling spelling = {.asked = asked, .distance = 2 + (unsigned)strlen(asked) / 4};
    const struct log_visitor visitor = {
        .wants = wants_decision, .take = take_name, .context = &spelling};
    if (log_walk(files, &visitor, &ignored) < 0)
        as_free_p(&spelling.nearest);
    return spelling.nearest;
}

static int fail_to_find(const struct as_args *args, const struct search *search,
                        const struct log_files *files)
{
    char text[AS_RFC3339_SIZE];

    as_wall_time_print_short(search->first.set ? search->first.at : search->at, text);
    const json_t *command = json_array_get(search->commands, json_array_size(search->commands) - 1);
    AS_CLEANUP(as_free_p)
    char *nearest = command || search->first.set ? NULL : find_nearest(search->target, files);
    if (command && !search->first.set)
        (void)as_cli_fail(args,
                          "nothing was decided on \"%s\" up to %s; an operator ordered: %s, at %s",
                          search->target, text, as_record_get_text(command, "command"),
                          as_record_get_text(command, "time"));
    else if (search->first.set)
        (void)as_cli_fail(args, "the first decision on \"%s\" in the log is of %s", search->target,
                          text);
    else if (nearest)
        (void)as_cli_fail(args, "the log has no decision on \"%s\" up to %s; did you mean \"%s\"?",
                          search->target, text, nearest);
    else
        (void)as_cli_fail(args,
                          "the log has no decision on \"%s\" up to %s: `alertscaler log --target "
                          "'*%s*'` shows what it has",
                          search->target, text, search->target);
    return AS_EXIT_NO;
}

static int print(const struct as_args *args, const struct search *search)
{
    const struct as_explanation told = {
        .decision = search->decision,
        .actions = search->actions,
        .commands = search->commands,
        .incidents = search->incidents,
        .pool = search->pool,
        .shares = search->shares,
        .at = {.set = true, .at = search->at},
        .until = search->until,
        .repeats = search->repeats,
    };

    if (as_args_wants_json(args)) {
        json_t *json = as_explain_make_json(&told);
        as_cli_print_json(json, JSON_INDENT(2) | JSON_SORT_KEYS, stdout);
        json_decref(json);
    } else {
        as_explain_print(&told, stdout);
    }
    return AS_EXIT_OK;
}

static int explain_log(const struct as_args *args)
{
    struct as_error error = AS_ERROR_INIT;
    struct search search = {.target = as_args_get(args, "target")};
    struct log_files files;

    if (!search.target)
        return as_cli_fail(
            args, "--target=NAME is needed, or --payload=FILE, or an alert's labels as NAME=VALUE");
    search.has_plain_name = !strpbrk(search.target, "\"\\");
    if (moment_parse("at", as_args_get(args, "at"), moment_get_now(), &search.at, &error) ||
        log_files_find(args, &files, &error))
        return as_cli_fail(args, "%s", error.text);
    if (log_files_keep(&files, &error)) {
        log_files_deinit(&files);
        return as_cli_fail(args, "%s", error.text);
    }
    search.actions = json_array();
    search.commands = json_array();
    search.incidents = json_array();
    search.shares = json_array();
    int status = find(&search, &files, &error);
    if (status < 0)
        status = as_cli_fail(args, "%s", error.text);
    else
        status = search.decision ? print(args, &search) : fail_to_find(args, &search, &files);
    log_files_deinit(&files);
    json_decref(search.decision);
    json_decref(search.actions);
    json_decref(search.commands);
    json_decref(search.incidents);
    json_decref(search.pool);
    json_decref(search.shares);
    return status;
}

/* Operands are labels, unless an option makes them files. */
static bool is_about_labels(const struct as_args *args)
{
    return !as_args_has(args, "payload") && !as_args_has(args, "target") &&
           args->operand_count > 0 && strchr(args->operands[0], '=');
}

static int run(const struct as_args *args)
{
    if (is_about_labels(args))
        return as_args_has(args, "replicas") ? as_cli_fail(args, "--replicas needs --payload")
                                             : explain_labels(args);
    if (as_args_has(args, "payload") && (as_args_has(args, "target") || args->operand_count > 0))
        return as_cli_fail(args,
                           "--payload is about no log: neither --target nor a FILE goes with it");
    if (!as_args_has(args, "payload") &&
        (as_args_has(args, "rules") || as_args_has(args, "replicas")))
        return as_cli_fail(args, "--rules and --replicas need --payload");
    return as_args_has(args, "payload") ? explain_payload(args) : explain_log(args);
}

static const struct as_option options[] = {
    {.name = "target", .value = "NAME", .help = "The target: its name in the rules, or its id"},
    {.name = "at",
     .value = "TIME",
     .fallback = "now",
     .help = "The moment: 2026-11-20T14:03Z, now, or 10m for ten minutes ago"},
    {.name = "payload",
     .value = "FILE",
     .help = "Explains a notification without sending it: Alertmanager's JSON"},
    {.name = "rules",
     .value = "PATH",
     .help = "With --payload or labels: a folder of rule files, a file, or a configuration"},
    AS_OPTION_REPLICAS,
    AS_OPTION_CONFIG_FILE("Names the log if no FILE is given; with --payload or labels, the rules"),
    AS_OPTION_OUTPUT,
    {0},
};

const struct as_command as_command_explain = {
    .name = "explain",
    .operands = "[FILE...|LABEL=VALUE...]",
    .summary = "Says why a target has, or had, its size; or which rules match an alert.",
    .help =
        "With --target: prints the decision in force on a target at a moment, and how it was made, "
        "from\n"
        "the action log: FILEs in any order, '-' for standard input, or without FILE those of the\n"
        "configuration. Exit status 1 if there was no decision.\n"
        "With an alert's labels, as alertname=CheckoutLatencyHigh severity=page: which rules "
        "match, on\n"
        "which target, through which receivers and credentials, and which almost match. Exit "
        "status 1 if\n"
        "none matches.\n"
        "With --payload: which rules match its alerts, which do not and why, and what would be "
        "decided.",
    .options = options,
    .operands_max = 100000,
    .run = run,
};
