/*
 * Uses only the records, so that decisions of the log and of a rehearsal look the same. Members
 * missing in other versions are left out.
 */
#include "explain_print.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/core/decide.h>
#include <alertscaler/core/reason.h>
#include <alertscaler/wire/decision.h>

#include "explain_pool.h"
#include "log_filter.h"
#include "log_print.h"
#include "log_walk.h"
#include "safe_text.h"

static void put(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    safe_text_put(out, text);
    fputs(after, out);
}

static void put_value(FILE *out, const json_t *value)
{
    if (json_is_string(value)) {
        safe_text_put(out, json_string_value(value));
        return;
    }
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    safe_text_put(out, text ? text : "?");
    free(text);
}

/* by 50%, at_least 2 */
static void put_members(FILE *out, json_t *object)
{
    const char *key, *separator = " ";
    json_t *value;

    json_object_foreach(object, key, value)
    {
        put(out, separator, key, " ");
        put_value(out, value);
        separator = ", ";
    }
}

static void put_action(FILE *out, json_t *action)
{
    const char *kind;
    json_t *value;

    json_object_foreach(action, kind, value)
    {
        safe_text_put(out, kind);
        if (json_is_object(value)) {
            put_members(out, value);
        } else {
            fputc(' ', out);
            put_value(out, value);
        }
    }
}

static void put_span(FILE *out, int64_t us)
{
    char text[AS_DURATION_SIZE];

    as_duration_print(
        us < AS_US_PER_S ? us / AS_US_PER_MS * AS_US_PER_MS : us / AS_US_PER_S * AS_US_PER_S, text);
    fputs(text, out);
}

static const char *get_meaning(const json_t *object, const char *key)
{
    enum as_reason reason;

    return as_reason_find(log_get_text(object, key), &reason) ? as_reason_get_meaning(reason) : "";
}

static void put_time(FILE *out, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];

    as_wall_time_print_short(time, text);
    fputs(text, out);
}

static void print_head(const struct explanation *told, FILE *out)
{
    const char *name = log_get_text(told->decision, "target_name");
    const char *id = log_get_text(told->decision, "target");
    json_int_t seq = json_integer_value(json_object_get(told->decision, "seq"));
    as_wall_time decided = {0};

    put(out, "", *name ? name : id, "");
    if (*name)
        put(out, " (", id, ")");
    fputc('\n', out);
    if (told->at.set) {
        fputs("at ", out);
        put_time(out, told->at.at);
        fputs(", by ", out);
    }
    fputs("the decision of ", out);
    if (log_get_time(told->decision, &decided, NULL) == 0)
        put_time(out, decided);
    if (told->at.set && decided.us < told->at.at.us) {
        fputs(", ", out);
        put_span(out, told->at.at.us - decided.us);
        fputs(" before", out);
    }
    if (seq > 0)
        fprintf(out, " (record %" JSON_INTEGER_FORMAT ")", seq);
    fputs("\n\n", out);
}

static void print_result(const struct explanation *told, FILE *out)
{
    const json_t *output = json_object_get(told->decision, "output");
    const char *rule = log_get_text(output, "rule");
    const char *waits_for = log_get_text(told->decision, "waits_for");
    int32_t from = 0, to = 0, would = 0;
    bool has_sizes =
        log_get_size(output, "replicas", &from) && log_get_size(output, "desired", &to);

    if (has_sizes && from == to)
        fprintf(out, "The size stays at %" PRId32 ": ", from);
    else if (has_sizes)
        fprintf(out, "The size goes from %" PRId32 " to %" PRId32 ": ", from, to);
    put(out, "", log_get_text(output, "reason"), ".\n");
    put(out, "", get_meaning(output, "reason"), "\n");
    if (log_get_size(output, "would", &would))
        fprintf(out, "It would go to %" PRId32 ".\n", would);
    if (*rule)
        put(out, "The rule that counts is ", rule, ".\n");
    if (*waits_for)
        put(out, "By `after`, it waits until ", waits_for, " is decreased, 30 seconds at most.\n");
}

static void print_incidents(const struct explanation *told, FILE *out)
{
    const json_t *list = json_object_get(told->decision, "incidents"), *item;
    size_t i, j;

    if (json_array_size(list) > 0)
        fputs("\nIncidents\n", out);
    json_array_foreach(list, i, item)
    {
        const char *incident = json_string_value(item);
        json_t *opened = NULL, *each;
        json_array_foreach(told->incidents, j, each)
        {
            if (incident && strcmp(log_get_incident(each), incident) == 0)
                opened = each;
        }
        fputs("  ", out);
        if (opened) {
            log_print_labels(json_object_get(opened, "labels"), out);
            put(out, ", firing since ", log_get_text(opened, "startsAt"), "");
        } else {
            put(out, "", incident ? incident : "?", "");
        }
        fputc('\n', out);
    }
}

/* When the alert was last reported, if that matters. */
static void put_report(FILE *out, const json_t *proposal)
{
    const json_t *reported = json_object_get(proposal, "reported");
    if (json_is_null(reported))
        fputs(", not reported since alertscaler was started", out);
    else
        put(out, reported ? ", last reported at " : "", log_get_text(proposal, "reported"), "");
}

/* NULL: of an unknown version. */
static struct as_decide_document *decode_input(const struct explanation *told)
{
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;
    json_t *input = json_object_get(told->decision, "input");
    if (!input || as_decision_decode_input_value(input, &document, &error) != 0)
        return NULL;
    return document;
}

/* The step of a table that applies, and its result. */
static void put_step(FILE *out, const struct as_decide_document *document, size_t i)
{
    const struct as_decide_input *input = document ? &document->input : NULL;
    if (!input || i >= input->proposal_count || input->proposals[i].action.step_count == 0)
        return;
    struct as_proposal valued = input->proposals[i];
    const struct as_proposal *proposal = &valued;
    struct as_error error;
    if (valued.nodes && input->nodes)
        valued.has_value =
            as_nodes_seen_get(input->nodes, valued.nodes, &valued.value, &error) == 0;
    const struct as_step *step =
        proposal->has_value ? as_action_find_step(&proposal->action, proposal->value) : NULL;
    const bool is_table = proposal->action.kind == AS_ACTION_SCALE_TO;
    const int64_t count =
        valued.nodes && input->nodes ? input->nodes->open : as_decide_count_ready(input);
    if (!step && proposal->has_value)
        fputs(", no step is crossed", out);
    if (!step)
        return;
    fprintf(out, ", %s %g counts",
            is_table         ? "from"
            : step->is_above ? "above"
                             : "below",
            step->bound);
    if (step->to > 0 && count > 0)
        fprintf(out, ": %" PRId64 " x %g / %g, rounded up", count, proposal->value, step->to);
    else if (step->to > 0)
        fprintf(out, ": %g / %g, rounded up", proposal->value, step->to);
}

/* The value that the source `nodes` gave, or why there is none. */
static void put_nodes(FILE *out, const struct as_decide_document *document, size_t i)
{
    const struct as_decide_input *input = document ? &document->input : NULL;
    if (!input || i >= input->proposal_count || !input->proposals[i].nodes)
        return;
    struct as_error error = AS_ERROR_INIT;
    double value;
    put(out, ", the nodes' ", as_nodes_word_get_text(input->proposals[i].nodes), "");
    if (!input->nodes)
        fputs(" is not known", out);
    else if (as_nodes_seen_get(input->nodes, input->proposals[i].nodes, &value, &error) == 0)
        fprintf(out, " is %g", value);
    else
        put(out, " is not known: ", error.text, "");
}

static void print_proposals(const struct explanation *told,
                            const struct as_decide_document *document, FILE *out)
{
    const json_t *asked = json_object_get(json_object_get(told->decision, "input"), "proposals");
    const json_t *results = json_object_get(json_object_get(told->decision, "output"), "proposals");
    json_t *item;
    size_t i;

    if (json_array_size(asked) > 0)
        fputs("\nRules\n", out);
    json_array_foreach(asked, i, item)
    {
        const json_t *result = json_array_get(results, i);
        const char *rule = log_get_text(item, "rule"), *reason = log_get_text(result, "reason");
        const char *error = log_get_text(item, "error");
        const bool is_floor = strcmp(reason, "floor") == 0;
        int32_t size;
        put(out, "  ", *rule ? rule : "?", "");
        if (log_get_size(result, "desired", &size))
            fprintf(out, is_floor ? " keeps at least %" PRId32 : " wants %" PRId32, size);
        else
            fputs(" wants no size", out);
        if (*reason && strcmp(reason, "ok") != 0 && !is_floor)
            put(out, ", ", reason, "");
        fputs(": ", out);
        put_action(out, json_object_get(item, "action"));
        if (json_is_number(json_object_get(item, "value")))
            fprintf(out, ", the value is %g", json_number_value(json_object_get(item, "value")));
        put_nodes(out, document, i);
        put_step(out, document, i);
        if (json_array_size(json_object_get(item, "samples")) > 0)
            fprintf(out, ", from %zu pods", json_array_size(json_object_get(item, "samples")));
        if (*error)
            put(out, ", ", error, "");
        put_report(out, item);
        fputc('\n', out);
    }
}

static void put_lock(FILE *out, const json_t *input)
{
    const json_t *cooldown = json_object_get(json_object_get(input, "target"), "cooldown");
    const json_t *history = json_object_get(input, "history");
    const char *up = log_get_text(history, "last_up"), *down = log_get_text(history, "last_down");

    fprintf(out, ": up %g s, down %g s", json_number_value(json_object_get(cooldown, "up")),
            json_number_value(json_object_get(cooldown, "down")));
    if (*up)
        put(out, ", last scale-up ", up, "");
    if (*down)
        put(out, ", last scale-down ", down, "");
}

static void put_flags(FILE *out, const json_t *input)
{
    const char *step = log_get_text(json_object_get(input, "history"), "last_step_down");
    const char *key;
    json_t *flags = json_object_get(input, "flags"), *value;

    json_object_foreach(flags, key, value)
    {
        if (json_is_true(value))
            put(out, ": ", key, "");
    }
    if (*step)
        put(out, ", last step down at ", step, "");
}

/* The input that made the gate act. */
static void put_gate_detail(FILE *out, enum as_gate gate, const json_t *input)
{
    const json_t *target = json_object_get(input, "target");
    int32_t min = 0, max = 0;

    switch (gate) {
    case AS_GATE_OUT_OF_BOUNDS:
    case AS_GATE_BOUNDS:
        if (log_get_size(target, "min", &min) && log_get_size(target, "max", &max))
            fprintf(out, ": min %" PRId32 ", max %" PRId32, min, max);
        break;
    case AS_GATE_COOLDOWN: put_lock(out, input); break;
    case AS_GATE_HOLDS: put_flags(out, input); break;
    case AS_GATE_SWITCHED_OFF:
    case AS_GATE_COMBINE:
    case AS_GATE_STABILIZE:
    case AS_GATE_POLICIES:
    case AS_GATE_DRY_RUN:
    case AS_GATE_COUNT: break;
    }
}

/* What paused the target. */
static void put_pause(FILE *out, const json_t *pause)
{
    if (!pause)
        return;
    fputs(json_is_true(json_object_get(pause, "all")) ? "; all targets" : "; the target", out);
    put(out, *log_get_text(pause, "who") ? ", by " : "", log_get_text(pause, "who"), "");
    if (*log_get_text(pause, "until"))
        put(out, ", until ", log_get_text(pause, "until"), "");
    put(out, ": ", log_get_text(pause, "reason"), "");
}

static void print_gates(const struct explanation *told, FILE *out)
{
    const json_t *input = json_object_get(told->decision, "input");
    const json_t *output = json_object_get(told->decision, "output");
    const json_t *limits = json_object_get(output, "limited_by"), *item;
    int32_t size;
    size_t i;

    fputs("\nGates\n", out);
    if (log_get_size(output, "replicas", &size))
        fprintf(out, "  %-13s %6" PRId32 "  the size that was found%s\n", "observed", size,
                *log_get_text(told->decision, "former_uid")
                    ? ", of another object than before: nothing locks it yet"
                    : "");
    json_array_foreach(json_object_get(output, "trail"), i, item)
    {
        const char *word = log_get_text(item, "gate");
        fputs("  ", out);
        safe_text_put(out, word);
        fprintf(out, "%*s", strlen(word) < 13 ? (int)(13 - strlen(word)) : 1, "");
        if (log_get_size(item, "desired", &size))
            fprintf(out, " %6" PRId32, size);
        for (int gate = 0; gate < AS_GATE_COUNT; gate++) {
            if (strcmp(as_gate_get_word((enum as_gate)gate), word) == 0) {
                fprintf(out, "  %s", as_gate_get_meaning((enum as_gate)gate));
                put_gate_detail(out, (enum as_gate)gate, input);
                if (gate == AS_GATE_HOLDS)
                    put_pause(out, json_object_get(told->decision, "pause"));
            }
        }
        fputc('\n', out);
    }
    json_array_foreach(limits, i, item) put(
        out, i ? ", " : "  limited by ", json_is_string(item) ? json_string_value(item) : "?", "");
    if (json_array_size(limits) > 0)
        fputc('\n', out);
}

/* The time, and the target where it is not the one that is explained. */
static void put_start(const struct explanation *told, const json_t *record, FILE *out)
{
    const char *id = log_get_text(record, "target"), *name = log_get_text(record, "target_name");

    put(out, "  ", log_get_text(record, "time"), ": ");
    if (strcmp(id, log_get_text(told->decision, "target")) != 0)
        put(out, "", *name ? name : id, ": ");
}

/* What became of nodes that it chose. */
static void print_nodes(const struct explanation *told, const json_t *record, FILE *out)
{
    const json_t *nodes = json_object_get(record, "nodes"), *node;
    size_t i;

    put_start(told, record, out);
    put(out, "", log_get_text(record, "event"), "");
    json_array_foreach(nodes, i, node)
        put(out, i ? ", " : " ", json_is_string(node) ? json_string_value(node) : "?", "");
    if (*log_get_text(record, "message"))
        put(out, ": ", log_get_text(record, "message"), "");
    fputs(".\n", out);
}

static void print_action(const struct explanation *told, json_t *action, FILE *out)
{
    int32_t from, to;
    json_int_t http = json_integer_value(json_object_get(action, "http_status"));

    if (strcmp(log_get_text(action, "kind"), "nodes") == 0) {
        print_nodes(told, action, out);
        return;
    }
    put_start(told, action, out);
    if (log_get_size(action, "from", &from) && log_get_size(action, "to", &to))
        fprintf(out, "from %" PRId32 " to %" PRId32 ": ", from, to);
    else if (*log_get_text(action, "command"))
        fputs("a size by hand: ", out);
    else
        fputs("the size could not be read: ", out);
    put(out, "", log_get_text(action, "outcome"), "");
    if (http > 0)
        fprintf(out, ", HTTP %" JSON_INTEGER_FORMAT, http);
    if (*log_get_text(action, "message"))
        put(out, ", ", log_get_text(action, "message"), "");
    put(out, ". ", get_meaning(action, "outcome"), "");
    if (*log_get_text(action, "command"))
        put(out, " Not by this decision, but by an operator's command ",
            log_get_text(action, "command"), ".");
    fputc('\n', out);
}

/* The operator, the order and the reason. */
static void print_command(const json_t *command, FILE *out)
{
    int32_t size;
    put(out, "  ", log_get_text(command, "time"), ": ");
    put(out, "", log_get_text(command, "command"), "");
    if (log_get_size(command, "replicas", &size))
        fprintf(out, " to %" PRId32, size);
    if (*log_get_text(command, "who"))
        put(out, " by ", log_get_text(command, "who"), "");
    if (*log_get_text(command, "until"))
        put(out, " until ", log_get_text(command, "until"), "");
    put(out, ": ", log_get_text(command, "reason"), "");
    if (strcmp(log_get_text(command, "outcome"), "done") != 0)
        put(out, ". Nothing was done: ", log_get_text(command, "message"), "");
    put(out, " (command ", log_get_text(command, "id"), ")\n");
}

static void print_commands(const struct explanation *told, FILE *out)
{
    json_t *command;
    size_t i;
    if (json_array_size(told->commands) == 0)
        return;
    fputs("\nOperators\n", out);
    json_array_foreach(told->commands, i, command) print_command(command, out);
}

/* What a group made of its share, and of its nodes. */
static void print_share(const struct explanation *told, json_t *record, FILE *out)
{
    const json_t *output = json_object_get(record, "output");
    int32_t from, to;

    if (strcmp(log_get_text(record, "kind"), "decision") != 0) {
        print_action(told, record, out);
        return;
    }
    put_start(told, record, out);
    if (log_get_size(output, "replicas", &from) && log_get_size(output, "desired", &to))
        fprintf(out, "decided from %" PRId32 " to %" PRId32 ": ", from, to);
    put(out, "", log_get_text(output, "reason"), "");
    put(out, " (decision ", log_get_text(record, "id"), ")\n");
}

/* Where the size comes from. */
static void print_pool_decision(const struct explanation *told, FILE *out)
{
    const char *id = log_get_text(told->decision, "pool_decision");
    const json_t *output = json_object_get(told->pool, "output");
    const char *time = log_get_text(told->pool, "time");
    const char *name = log_get_text(told->pool, "target_name");
    int32_t from, to;

    if (!*id)
        return;
    put(out, "\nIts pool\n  this carries out decision ", id, "");
    if (!told->pool) {
        fputs(", which is not in these files\n", out);
        return;
    }
    put(out, " of ", name, "");
    if (log_get_size(output, "replicas", &from) && log_get_size(output, "desired", &to))
        fprintf(out, ", from %" PRId32 " to %" PRId32, from, to);
    put(out, ": ", log_get_text(output, "reason"), "");
    put(out, ", rule ", log_get_text(output, "rule"), "");
    put(out, "\n  alertscaler explain --target ", name, "");
    put(out, " --at ", time, " says why\n");
}

static void print_what_followed(const struct explanation *told, FILE *out)
{
    const json_t *output = json_object_get(told->decision, "output");
    const char *next = log_get_text(output, "next_evaluation");
    json_t *action;
    size_t i;

    fputs("\nWhat followed\n", out);
    json_array_foreach(told->actions, i, action) print_action(told, action, out);
    json_array_foreach(told->shares, i, action) print_share(told, action, out);
    if (json_array_size(told->actions) + json_array_size(told->shares) == 0)
        fputs("  no action\n", out);
    if (told->repeats > 0)
        fprintf(out, "  decided the same %lld more time%s\n", told->repeats,
                told->repeats == 1 ? "" : "s");
    if (*next)
        put(out, "  the same input would be decided otherwise from ", next, " on\n");
    if (told->until.set) {
        fputs("  the next decision came at ", out);
        put_time(out, told->until.at);
        fputc('\n', out);
    }
}

void explain_print_text(const struct explanation *told, FILE *out)
{
    AS_CLEANUP(as_decide_document_free_p)
    struct as_decide_document *document = decode_input(told);

    print_head(told, out);
    print_result(told, out);
    print_pool_decision(told, out);
    print_incidents(told, out);
    print_proposals(told, document, out);
    explain_pool_print(told->decision, document, out);
    print_gates(told, out);
    print_commands(told, out);
    print_what_followed(told, out);
}

static json_t *make_time(as_maybe_time time)
{
    char text[AS_RFC3339_SIZE];

    if (!time.set)
        return json_null();
    as_wall_time_print_short(time.at, text);
    return json_string(text);
}

json_t *explain_make_json(const struct explanation *told)
{
    json_t *json = json_object();

    json_object_set_new(json, "actions", json_incref(told->actions));
    json_object_set_new(json, "at", make_time(told->at));
    if (told->commands)
        json_object_set_new(json, "commands", json_incref(told->commands));
    json_object_set_new(json, "decision", json_incref(told->decision));
    json_object_set_new(json, "incidents", json_incref(told->incidents));
    json_object_set_new(
        json, "meaning",
        json_string(get_meaning(json_object_get(told->decision, "output"), "reason")));
    json_object_set_new(json, "next_decision", make_time(told->until));
    if (told->pool)
        json_object_set_new(json, "pool_decision", json_incref(told->pool));
    json_object_set_new(json, "repeats", json_integer(told->repeats));
    if (json_array_size(told->shares) > 0)
        json_object_set_new(json, "shares", json_incref(told->shares));
    return json;
}
