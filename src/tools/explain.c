/*
 * Uses only the records, so that decisions of the log and of a rehearsal look the same. Members
 * missing in other versions are left out.
 *
 * Long because the text of one decision is read from top to bottom.
 */
#include <alertscaler/tools/explain.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/safe_text.h>
#include <alertscaler/base/unit.h>
#include <alertscaler/decide/decide.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/model/reason.h>
#include <alertscaler/tools/record_text.h>

#include "explain_pool.h"
#include "explain_private.h"

void explain_put(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    as_safe_text_put(out, text);
    fputs(after, out);
}

const char *explain_get_meaning(const json_t *object, const char *key)
{
    enum as_reason reason;

    return as_reason_find(as_record_get_text(object, key), &reason) ? as_reason_get_meaning(reason)
                                                                    : "";
}

void explain_put_time(FILE *out, as_wall_time time)
{
    char text[AS_RFC3339_SIZE];

    as_wall_time_print_short(time, text);
    fputs(text, out);
}

static void put_value(FILE *out, const json_t *value)
{
    if (json_is_string(value)) {
        as_safe_text_put(out, json_string_value(value));
        return;
    }
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    as_safe_text_put(out, text ? text : "?");
    free(text);
}

/* by 50%, at_least 2 */
static void put_members(FILE *out, json_t *object)
{
    const char *key, *separator = " ";
    json_t *value;

    json_object_foreach(object, key, value)
    {
        explain_put(out, separator, key, " ");
        put_value(out, value);
        separator = ", ";
    }
}

void as_explain_print_action(json_t *action, FILE *out)
{
    const char *kind;
    json_t *value;

    json_object_foreach(action, kind, value)
    {
        as_safe_text_put(out, kind);
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

static void print_head(const struct explained *explained, FILE *out)
{
    const struct as_explanation *told = explained->told;
    const char *name = as_record_get_text(told->decision, "target_name");
    const char *id = as_record_get_text(told->decision, "target");
    json_int_t seq = json_integer_value(json_object_get(told->decision, "seq"));
    as_wall_time decided = {0};

    explain_put(out, "", *name ? name : id, "");
    if (*name)
        explain_put(out, " (", id, ")");
    fputc('\n', out);
    if (told->at.set) {
        fputs("at ", out);
        explain_put_time(out, told->at.at);
        fputs(", by ", out);
    }
    fputs("the decision of ", out);
    if (as_record_get_time(told->decision, &decided, NULL) == 0)
        explain_put_time(out, decided);
    if (told->at.set && decided.us < told->at.at.us) {
        fputs(", ", out);
        put_span(out, told->at.at.us - decided.us);
        fputs(" before", out);
    }
    if (seq > 0)
        fprintf(out, " (record %" JSON_INTEGER_FORMAT ")", seq);
    fputc('\n', out);
}

/* Who forbids the direction; `held_by` may be absent. */
static void print_holder(FILE *out, const json_t *held_by)
{
    const char *by = as_record_get_text(held_by, "by"), *name = as_record_get_text(held_by, "name");

    if (!*by)
        return;
    explain_put(out, "It is held by: ", by, "");
    if (*name)
        explain_put(out, " ", name, "");
    fputc('\n', out);
}

static void print_result(const struct explained *explained, FILE *out)
{
    const struct as_explanation *told = explained->told;
    const json_t *output = json_object_get(told->decision, "output");
    const char *rule = as_record_get_text(output, "rule");
    const char *waits_for = as_record_get_text(told->decision, "waits_for");
    int32_t from = 0, to = 0, would = 0;
    bool has_sizes =
        as_record_get_size(output, "replicas", &from) && as_record_get_size(output, "desired", &to);

    char text[AS_SIZE_TEXT_SIZE], other[AS_SIZE_TEXT_SIZE];
    const char *unit = as_record_get_text(told->decision, "unit");

    if (has_sizes && from == to)
        fprintf(out, "The size stays at %s: ", as_unit_print_size(unit, from, text));
    else if (has_sizes)
        fprintf(out, "The size goes from %s to %s: ", as_unit_print_size(unit, from, text),
                as_unit_print_size(unit, to, other));
    explain_put(out, "", as_record_get_text(output, "reason"), ".\n");
    explain_put(out, "", explain_get_meaning(output, "reason"), "\n");
    print_holder(out, json_object_get(output, "held_by"));
    if (as_record_get_size(output, "would", &would))
        fprintf(out, "It would go to %s.\n", as_unit_print_size(unit, would, text));
    if (*rule)
        explain_put(out, "The rule that counts is ", rule, ".\n");
    if (*waits_for)
        explain_put(out, "By `after`, it waits until ", waits_for,
                    " is decreased, 30 seconds at most.\n");
}

static void print_incidents(const struct explained *explained, FILE *out)
{
    const struct as_explanation *told = explained->told;
    const json_t *list = json_object_get(told->decision, "incidents"), *item;
    size_t i, j;

    json_array_foreach(list, i, item)
    {
        const char *incident = json_string_value(item);
        json_t *opened = NULL, *each;
        json_array_foreach(told->incidents, j, each)
        {
            if (incident && strcmp(as_record_get_incident(each), incident) == 0)
                opened = each;
        }
        fputs("  ", out);
        if (opened) {
            as_record_print_labels(json_object_get(opened, "labels"), out);
            explain_put(out, ", firing since ", as_record_get_text(opened, "startsAt"), "");
        } else {
            explain_put(out, "", incident ? incident : "?", "");
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
        explain_put(out, reported ? ", last reported at " : "",
                    as_record_get_text(proposal, "reported"), "");
}

/* NULL: of an unknown version. */
static struct as_decide_document *decode_input(const struct as_explanation *told)
{
    struct as_decide_document *document = NULL;
    struct as_error error = AS_ERROR_INIT;
    json_t *input = json_object_get(told->decision, "input");
    if (!input || as_decision_decode_input_value(input, &document, &error) != 0)
        return NULL;
    return document;
}

/* No value was used, as no node is open. */
static bool is_made_up(const struct as_decide_input *input, size_t i)
{
    return as_decide_has_exact_nodes(input) && input->nodes &&
           as_nodes_seen_is_made_up(input->nodes, input->proposals[i].nodes);
}

/* The step of a table that applies, and its result. */
static void put_step(FILE *out, const struct as_decide_input *input, size_t i)
{
    if (!input || i >= input->proposal_count || input->proposals[i].action.step_count == 0 ||
        is_made_up(input, i))
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
static void put_nodes(FILE *out, const struct as_decide_input *input, size_t i)
{
    if (!input || i >= input->proposal_count || !input->proposals[i].nodes)
        return;
    struct as_error error = AS_ERROR_INIT;
    double value;
    explain_put(out, ", the nodes' ", as_nodes_word_get_text(input->proposals[i].nodes), "");
    if (!input->nodes)
        fputs(" is not known", out);
    else if (is_made_up(input, i))
        fprintf(out,
                " has no value, as no node is open: %" PRId64 " pods wait, %" PRId64
                " nodes are on their way",
                input->nodes->waiting, input->nodes->coming);
    else if (as_nodes_seen_get(input->nodes, input->proposals[i].nodes, &value, &error) == 0)
        fprintf(out, " is %g", value);
    else
        explain_put(out, " is not known: ", error.text, "");
}

static void print_proposals(const struct explained *explained, FILE *out)
{
    const struct as_explanation *told = explained->told;
    const json_t *asked = json_object_get(json_object_get(told->decision, "input"), "proposals");
    const json_t *results = json_object_get(json_object_get(told->decision, "output"), "proposals");
    json_t *item;
    size_t i;

    json_array_foreach(asked, i, item)
    {
        const json_t *result = json_array_get(results, i);
        const char *rule = as_record_get_text(item, "rule"),
                   *reason = as_record_get_text(result, "reason");
        const char *error = as_record_get_text(item, "error");
        const bool is_floor = strcmp(reason, "floor") == 0;
        const bool is_hold = strcmp(reason, "hold") == 0;
        char text[AS_SIZE_TEXT_SIZE];
        int32_t size;
        explain_put(out, "  ", *rule ? rule : "?", "");
        if (as_record_get_size(result, "desired", &size))
            fprintf(out, is_floor ? " keeps at least %s" : " wants %s",
                    as_unit_print_size(as_record_get_text(told->decision, "unit"), size, text));
        else
            fputs(is_hold ? " forbids a direction" : " wants no size", out);
        if (*reason && strcmp(reason, "ok") != 0 && !is_floor && !is_hold)
            explain_put(out, ", ", reason, "");
        fputs(": ", out);
        as_explain_print_action(json_object_get(item, "action"), out);
        if (json_is_number(json_object_get(item, "value")))
            fprintf(out, ", the value is %g", json_number_value(json_object_get(item, "value")));
        put_nodes(out, explained->input, i);
        put_step(out, explained->input, i);
        if (json_array_size(json_object_get(item, "samples")) > 0)
            fprintf(out, ", from %zu pods", json_array_size(json_object_get(item, "samples")));
        if (*error)
            explain_put(out, ", ", error, "");
        explain_put(out,
                    *as_record_get_text(item, "unavailable_since") ? ", unavailable since " : "",
                    as_record_get_text(item, "unavailable_since"), "");
        put_report(out, item);
        explain_print_approval(item, result, as_record_get_text(told->decision, "unit"), out);
        fputc('\n', out);
    }
}

static void put_lock(FILE *out, const json_t *input)
{
    const json_t *cooldown = json_object_get(json_object_get(input, "target"), "cooldown");
    const json_t *history = json_object_get(input, "history");
    const char *up = as_record_get_text(history, "last_up"),
               *down = as_record_get_text(history, "last_down");

    fprintf(out, ": up %g s, down %g s", json_number_value(json_object_get(cooldown, "up")),
            json_number_value(json_object_get(cooldown, "down")));
    if (*up)
        explain_put(out, ", last scale-up ", up, "");
    if (*down)
        explain_put(out, ", last scale-down ", down, "");
}

static void put_flags(FILE *out, const json_t *input)
{
    const char *step = as_record_get_text(json_object_get(input, "history"), "last_step_down");
    const char *key;
    json_t *flags = json_object_get(input, "flags"), *value;

    json_object_foreach(flags, key, value)
    {
        if (json_is_true(value))
            explain_put(out, ": ", key, "");
    }
    if (*step)
        explain_put(out, ", last step down at ", step, "");
}

/* What the bounds may come from. */
static void put_bounds_causes(FILE *out, const json_t *target)
{
    const json_t *schedules = json_object_get(target, "schedules"), *name;
    int32_t floor;
    size_t i;

    if (as_record_get_size(target, "floor", &floor))
        fprintf(out, ", with a floor of %" PRId32, floor);
    json_array_foreach(schedules, i, name)
    {
        explain_put(out, i == 0 ? ", with schedule " : ", ", json_string_value(name), "");
    }
}

/* The input that made the gate act. */
static void put_gate_detail(FILE *out, enum as_gate gate, const json_t *input)
{
    const json_t *target = json_object_get(input, "target");
    int32_t min = 0, max = 0;

    switch (gate) {
    case AS_GATE_OUT_OF_BOUNDS:
    case AS_GATE_BOUNDS:
        if (as_record_get_size(target, "min", &min) && as_record_get_size(target, "max", &max))
            fprintf(out, ": min %" PRId32 ", max %" PRId32, min, max);
        put_bounds_causes(out, target);
        break;
    case AS_GATE_COOLDOWN: put_lock(out, input); break;
    case AS_GATE_HOLDS: put_flags(out, input); break;
    case AS_GATE_SWITCHED_OFF:
    case AS_GATE_COMBINE:
    case AS_GATE_STABILIZE:
    case AS_GATE_POLICIES:
    case AS_GATE_APPROVAL:
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
    explain_put(out, *as_record_get_text(pause, "who") ? ", by " : "",
                as_record_get_text(pause, "who"), "");
    if (*as_record_get_text(pause, "until"))
        explain_put(out, ", until ", as_record_get_text(pause, "until"), "");
    explain_put(out, ": ", as_record_get_text(pause, "reason"), "");
}

/* Who has set the size back, and until when it is left alone. */
static void put_contended(FILE *out, const json_t *contended)
{
    const json_t *each;
    int32_t to, found;
    size_t i;
    if (!contended)
        return;
    explain_put(out, "; left alone until ", as_record_get_text(contended, "until"), "");
    json_array_foreach(json_object_get(contended, "set_backs"), i, each)
    {
        const char *by = as_record_get_text(each, "by");
        explain_put(out, "; at ", as_record_get_text(each, "at"), " ");
        explain_put(out, "", *by ? by : "somebody", " set ");
        if (as_record_get_size(each, "to", &to) && as_record_get_size(each, "found", &found))
            fprintf(out, "%" PRId32 " back to %" PRId32, to, found);
    }
}

/* A text for free(). */
static char *make_gate_text(const struct as_explanation *told, enum as_gate gate)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        abort(); /* only without memory */
    if (gate < AS_GATE_COUNT) {
        fputs(as_gate_get_meaning(gate), out);
        put_gate_detail(out, gate, json_object_get(told->decision, "input"));
    }
    if (gate == AS_GATE_HOLDS) {
        put_pause(out, json_object_get(told->decision, "pause"));
        put_contended(out, json_object_get(told->decision, "contended"));
    }
    if (fclose(out) != 0)
        abort();
    return text;
}

void as_explain_visit_gates(const struct as_explanation *told, as_explain_gate_fn *visit,
                            void *context)
{
    const json_t *output = json_object_get(told->decision, "output"), *item;
    const bool is_other = *as_record_get_text(told->decision, "former_uid");
    int32_t size;
    size_t i;

    if (as_record_get_size(output, "replicas", &size))
        visit(context, "observed", size,
              is_other ? "the size that was found, of another object than before: nothing locks it "
                         "yet"
                       : "the size that was found");
    json_array_foreach(json_object_get(output, "trail"), i, item)
    {
        const char *word = as_record_get_text(item, "gate");
        enum as_gate gate = 0;
        while (gate < AS_GATE_COUNT && strcmp(as_gate_get_word(gate), word) != 0)
            gate++;
        if (!as_record_get_size(item, "desired", &size))
            size = -1;
        char *text = make_gate_text(told, gate);
        visit(context, word, size, text);
        free(text);
    }
}

static void print_gate(void *context, const char *gate, int32_t size, const char *text)
{
    FILE *out = context;
    fputs("  ", out);
    as_safe_text_put(out, gate);
    fprintf(out, "%*s", strlen(gate) < 13 ? (int)(13 - strlen(gate)) : 1, "");
    if (size >= 0)
        fprintf(out, " %6" PRId32, size);
    fprintf(out, *text ? "  %s\n" : "%s\n", text);
}

static void print_gates(const struct explained *explained, FILE *out)
{
    const struct as_explanation *told = explained->told;
    const json_t *output = json_object_get(told->decision, "output");
    const json_t *limits = json_object_get(output, "limited_by"), *item;
    size_t i;

    as_explain_visit_gates(told, print_gate, out);
    json_array_foreach(limits, i, item) explain_put(
        out, i ? ", " : "  limited by ", json_is_string(item) ? json_string_value(item) : "?", "");
    if (json_array_size(limits) > 0)
        fputc('\n', out);
}

static void print_groups_error(const struct explained *explained, FILE *out)
{
    explain_pool_print_error(explained->told->decision, out);
}

static void print_pods(const struct explained *explained, FILE *out)
{
    explain_pool_print_pods(explained->told->decision, explained->decided, out);
}

static void print_groups(const struct explained *explained, FILE *out)
{
    explain_pool_print_groups(explained->told->decision, explained->decided, out);
}

static void print_unneeded(const struct explained *explained, FILE *out)
{
    explain_pool_print_nodes(explained->told->decision, explained->decided, out);
}

static const struct part {
    const char *title;
    void (*print)(const struct explained *explained, FILE *out);
} parts[] = {
    {"", print_head},
    {"Result", print_result},
    {"Its pool", explain_print_pool_decision},
    {"Incidents", print_incidents},
    {"Rules", print_proposals},
    {"Nodes", print_groups_error},
    {"Pods that wait", print_pods},
    {"Node groups", print_groups},
    {"Nodes", print_unneeded},
    {AS_EXPLAIN_GATES, print_gates},
    {"Operators", explain_print_commands},
    {"What followed", explain_print_what_followed},
};

void as_explain_visit_parts(const struct as_explanation *told, as_explain_part_fn *visit,
                            void *context)
{
    AS_CLEANUP(as_decide_document_free_p)
    struct as_decide_document *document = decode_input(told);
    AS_CLEANUP(as_decide_document_free_p)
    struct as_decide_document *pool =
        document && document->input.survey ? decode_input(told) : NULL;
    const struct explained explained = {
        .told = told,
        .input = document ? &document->input : NULL,
        .decided = pool ? explain_pool_decide(pool) : NULL,
    };

    for (size_t i = 0; i < AS_ARRAY_SIZE(parts); i++) {
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        if (!out)
            abort(); /* only without memory */
        parts[i].print(&explained, out);
        if (fclose(out) != 0)
            abort();
        if (*text)
            visit(context, parts[i].title, text);
        free(text);
    }
}

static void print_part(void *context, const char *title, const char *text)
{
    FILE *out = context;
    if (strcmp(title, "Result") == 0)
        fputc('\n', out);
    else if (*title)
        fprintf(out, "\n%s\n", title);
    fputs(text, out);
}

void as_explain_print(const struct as_explanation *told, FILE *out)
{
    as_explain_visit_parts(told, print_part, out);
}

static json_t *make_time(as_maybe_time time)
{
    char text[AS_RFC3339_SIZE];

    if (!time.set)
        return json_null();
    as_wall_time_print_short(time.at, text);
    return json_string(text);
}

json_t *as_explain_make_json(const struct as_explanation *told)
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
        json_string(explain_get_meaning(json_object_get(told->decision, "output"), "reason")));
    json_object_set_new(json, "next_decision", make_time(told->until));
    if (told->pool)
        json_object_set_new(json, "pool_decision", json_incref(told->pool));
    json_object_set_new(json, "repeats", json_integer(told->repeats));
    if (json_array_size(told->shares) > 0)
        json_object_set_new(json, "shares", json_incref(told->shares));
    return json;
}
