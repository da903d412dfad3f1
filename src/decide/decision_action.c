/*
 * The action of a proposal in decision documents, read and written: as in rule files, but without
 * the source of its value, which is in the proposal. Its forms depend on its kind, so that a table
 * of rows does not read and write them: the tables here are for the JSON Schema alone.
 */
#include <math.h>
#include <stdio.h>

#include <alertscaler/base/number.h>
#include <alertscaler/doc/rows_schema.h>
#include <alertscaler/model/action.h>

#include "decision_private.h"

static const struct as_read_word resource_words[] = {
    {"cpu", AS_RESOURCE_CPU}, {"memory", AS_RESOURCE_MEMORY}, {0}};

#define WAYS_WORD(enumerator, word) {word, enumerator},
static const struct as_read_word ways_words[] = {AS_WAYS_WORDS(WAYS_WORD){0}};

/* ---- reading ---- */

/* `by: N`, or `by: P%` with `at_least` */
static void action_read_amount(struct as_reader *reader, int64_t milli_percent_max,
                               struct as_amount *amount)
{
    const struct tree_value *by = tree_find(reader->object, "by");

    amount->at_least = 1;
    if (!tree_is(by, TREE_TEXT)) {
        as_read_require(reader, "by");
        if (!tree_is(by, TREE_INTEGER))
            as_read_fail(reader, "by", "expected an integer or a percentage as \"50%%\"");
        as_read_i64(reader, "by", 0, INT64_MAX, &amount->size);
        return;
    }
    (void)as_read_any(reader, "by");
    amount->is_percent = true;
    if (as_number_parse_percent(by->text, &amount->milli_percent) != 0 || amount->milli_percent < 0)
        as_read_fail(reader, "by", "expected an integer or a percentage as \"50%%\"");
    if (amount->milli_percent > milli_percent_max)
        as_read_fail(reader, "by", "expected at most 100%%: nothing can lose more");
    as_read_i64(reader, "at_least", 0, INT64_MAX, &amount->at_least);
}

/* Limits for the steps of an action. */
struct step_rules {
    enum as_action_kind kind;
    int64_t milli_percent_max;
    bool has_goals;
};

/* `to: X` of a step, since v: 2. It must not lie beyond the bound: the direction would be wrong. */
static void action_read_goal(struct as_reader *reader, bool is_up, struct as_step *step)
{
    as_read_positive(reader, "to", &step->to);
    if (step->is_above != is_up)
        as_read_fail(reader, "to", "expected \"%s\" beside it", is_up ? "above" : "below");
    if (!(step->to > 0))
        as_read_fail(reader, "to", "expected a number above 0");
    if (is_up ? step->to > step->bound : step->to < step->bound)
        as_read_fail(reader, "to", "expected at %s \"%s\"", is_up ? "most" : "least",
                     is_up ? "above" : "below");
}

static void read_change(struct as_reader *reader, const struct step_rules *rules,
                        struct as_step *step)
{
    step->is_above = as_read_has(reader, "above");
    if (step->is_above == as_read_has(reader, "below"))
        as_read_fail(reader, NULL, "expected either \"above\" or \"below\"");
    as_read_double(reader, step->is_above ? "above" : "below", &step->bound);
    if (rules->has_goals && as_read_has(reader, "to"))
        action_read_goal(reader, rules->kind == AS_ACTION_SCALE_UP, step);
    else
        action_read_amount(reader, rules->milli_percent_max, &step->amount);
}

static void read_rung(struct as_reader *reader, struct as_step *step)
{
    as_read_require(reader, "from");
    as_read_require(reader, "size");
    as_read_double(reader, "from", &step->bound);
    as_read_i64(reader, "size", 0, INT64_MAX, &step->amount.size);
}

static void read_step(struct as_reader *reader, const struct step_rules *rules,
                      struct as_step *step)
{
    if (rules->kind == AS_ACTION_SCALE_TO)
        read_rung(reader, step);
    else
        read_change(reader, rules, step);
    as_read_end(reader);
}

static void read_steps(struct as_reader *reader, struct as_arena *arena,
                       const struct step_rules *rules, struct as_action *action)
{
    size_t count;
    const struct tree_value *at = as_read_list(reader, "steps", &count);

    if (count == 0 || count > AS_STEPS_MAX) {
        as_read_fail(reader, "steps", "expected 1 to %d steps", AS_STEPS_MAX);
        return;
    }
    struct as_step *steps = as_arena_alloc(arena, count, sizeof(*steps));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;
        as_read_item(&item, reader, "steps", at, i);
        read_step(&item, rules, &steps[i]);
    }
    action->steps = steps;
    action->step_count = count;
}

/* `fit` or `take`, whose value is one word; since v: 2. */
static bool read_only_word(struct as_reader *reader, const char *name, const char *word)
{
    const struct as_read_word words[] = {{.text = word}, {.text = NULL}};

    if (!as_read_has(reader, name))
        return false;
    (void)as_read_enum(reader, name, words, 0);
    return true;
}

/* scale_up and scale_down. Since v: 2, scale_down by more than 100 % is refused, as in rule files,
 * and `to: N`, `fit` and `take` are allowed. */
static void read_step_action(struct as_reader *reader, struct as_arena *arena, int32_t version,
                             struct as_action *action)
{
    const bool is_bounded = action->kind == AS_ACTION_SCALE_DOWN && version >= 2;
    const struct step_rules rules = {.kind = action->kind,
                                     .milli_percent_max = is_bounded ? 100000 : INT64_MAX,
                                     .has_goals = version >= 2};

    const bool is_up = action->kind == AS_ACTION_SCALE_UP;

    if (version >= 2 && is_up)
        action->is_fit = read_only_word(reader, "fit", "pending_pods");
    else if (version >= 2)
        action->is_take = read_only_word(reader, "take", "unneeded_nodes");
    action->is_to = version >= 2 && as_read_has(reader, "to");
    if (action->is_fit || action->is_take)
        action->is_to = false; /* `to` beside them is an unknown field */
    else if (action->is_to)
        as_read_i64(reader, "to", 0, INT64_MAX, &action->size);
    else if (as_read_has(reader, "steps"))
        read_steps(reader, arena, &rules, action);
    else
        action_read_amount(reader, rules.milli_percent_max, &action->amount);
    as_read_end(reader);
}

/* scale_to: a size, or since v: 2 `steps` */
static void read_scale_to(struct as_reader *reader, struct as_arena *arena, int32_t version,
                          struct as_action *action)
{
    static const struct step_rules rules = {.kind = AS_ACTION_SCALE_TO};
    const char *name = as_action_kind_get_word(action->kind);
    struct as_reader body;

    if (version < 2 || !tree_is(tree_find(reader->object, name), TREE_OBJECT)) {
        as_read_i64(reader, name, 0, INT64_MAX, &action->size);
        return;
    }
    as_read_object(&body, reader, name);
    as_read_require(&body, "steps");
    read_steps(&body, arena, &rules, action);
    as_read_end(&body);
}

/* hold: a direction; since v: 2 */
static void read_hold(struct as_reader *reader, int32_t version, struct as_action *action)
{
    const char *name = as_action_kind_get_word(action->kind);

    if (version < 2)
        as_read_fail(reader, name, "unknown field");
    action->hold = (enum as_ways)as_read_enum(reader, name, ways_words, 0);
}

static void read_utilization(struct as_reader *reader, struct as_track *track)
{
    const char *text = "";
    int64_t milli_percent = 0;

    as_read_text(reader, "utilization", &text);
    as_read_require(reader, "resource");
    if (as_number_parse_percent(text, &milli_percent) != 0 || milli_percent < 0)
        as_read_fail(reader, "utilization", "expected a percentage as \"70%%\"");
    track->value = (double)milli_percent / 1000;
}

static void read_track(struct as_reader *reader, struct as_arena *arena, int32_t version,
                       struct as_track *track)
{
    static const struct {
        const char *name;
        enum as_goal goal;
    } goals[] = {{"value", AS_GOAL_VALUE},
                 {"average_value", AS_GOAL_AVERAGE_VALUE},
                 {"utilization", AS_GOAL_UTILIZATION}};
    const char *name = NULL;

    for (size_t i = 0; i < AS_ARRAY_SIZE(goals); i++) {
        if (!as_read_has(reader, goals[i].name))
            continue;
        if (name)
            as_read_fail(reader, NULL, "expected one goal, not both \"%s\" and \"%s\"", name,
                         goals[i].name);
        name = goals[i].name;
        track->goal = goals[i].goal;
    }
    if (!name)
        as_read_fail(reader, NULL, "expected \"value\", \"average_value\" or \"utilization\"");
    else if (track->goal == AS_GOAL_UTILIZATION)
        read_utilization(reader, track);
    else
        as_read_positive(reader, name, &track->value);
    if (track->goal != AS_GOAL_VALUE) {
        track->is_resource = as_read_has(reader, "resource");
        track->resource =
            (enum as_resource)as_read_enum(reader, "resource", resource_words, AS_RESOURCE_CPU);
    }
    if (version >= 3 && track->goal == AS_GOAL_UTILIZATION && as_read_has(reader, "container"))
        track->container = as_arena_strdup(arena, as_read_string(reader, "container"));
    if (version >= 3)
        track->by_owner = read_only_word(reader, "pods", "owned");
    as_read_end(reader);
}

/* The kind of an action, from its only key. */
static enum as_action_kind find_kind(struct as_reader *reader)
{
    enum as_action_kind found = AS_ACTION_KIND_COUNT;
    unsigned count = 0;

    for (enum as_action_kind kind = 0; kind < AS_ACTION_KIND_COUNT; kind++) {
        if (as_read_has(reader, as_action_kind_get_word(kind))) {
            found = kind;
            count++;
        }
    }
    if (count != 1)
        as_read_fail(reader, NULL,
                     "expected one of scale_up, scale_down, scale_to, track, pass_through, hold");
    return found;
}

static void action_read(struct as_rows_input *input, struct as_reader *object,
                        const struct as_row *row, void *base)
{
    struct as_action *action = as_row_to(row, base);
    struct as_reader reader, body;

    as_read_object(&reader, object, row->name);
    action->kind = find_kind(&reader);
    if (as_read_result(&reader) != 0)
        return;
    const char *name = as_action_kind_get_word(action->kind);
    switch (action->kind) {
    case AS_ACTION_SCALE_UP:
    case AS_ACTION_SCALE_DOWN:
        as_read_object(&body, &reader, name);
        read_step_action(&body, input->arena, input->version, action);
        break;
    case AS_ACTION_SCALE_TO: read_scale_to(&reader, input->arena, input->version, action); break;
    case AS_ACTION_TRACK:
        as_read_object(&body, &reader, name);
        read_track(&body, input->arena, input->version, &action->track);
        break;
    case AS_ACTION_PASS_THROUGH:
        as_read_object(&body, &reader, name);
        as_read_end(&body);
        break;
    case AS_ACTION_HOLD: read_hold(&reader, input->version, action); break;
    case AS_ACTION_KIND_COUNT: break;
    }
    as_read_end(&reader);
}

/* ---- writing ---- */

/* "50%", "12.5%" */
static void write_percent(struct as_json_writer *json, const char *key, int64_t milli_percent)
{
    char number[AS_NUMBER_SIZE], text[AS_NUMBER_SIZE + 1];

    as_number_print_double((double)milli_percent / 1000, number);
    snprintf(text, sizeof(text), "%s%%", number);
    as_json_write_member(json, key, text);
}

static void action_write_number(struct as_json_writer *json, const char *key, double number)
{
    as_json_write_key(json, key);
    as_json_write_double(json, number);
}

/* `at_least` and `by`; "below" sorts between the two. */
static void write_amount(struct as_json_writer *json, const struct as_amount *amount,
                         const struct as_step *step)
{
    if (step && step->is_above)
        action_write_number(json, "above", step->bound);
    if (amount->is_percent)
        as_json_write_member_i64(json, "at_least", amount->at_least);
    if (step && !step->is_above)
        action_write_number(json, "below", step->bound);
    if (amount->is_percent)
        write_percent(json, "by", amount->milli_percent);
    else
        as_json_write_member_i64(json, "by", amount->size);
}

static void write_step(struct as_json_writer *json, const struct as_action *action,
                       const struct as_step *step)
{
    as_json_begin_object(json);
    if (action->kind == AS_ACTION_SCALE_TO) {
        action_write_number(json, "from", step->bound);
        as_json_write_member_i64(json, "size", step->amount.size);
    } else if (step->to > 0) {
        action_write_number(json, step->is_above ? "above" : "below", step->bound);
        action_write_number(json, "to", step->to);
    } else {
        write_amount(json, &step->amount, step);
    }
    as_json_end_object(json);
}

/* scale_up, scale_down; scale_to with steps */
static void write_step_action(struct as_json_writer *json, const struct as_action *action)
{
    as_json_begin_object(json);
    if (action->is_fit) {
        as_json_write_member(json, "fit", "pending_pods");
    } else if (action->is_take) {
        as_json_write_member(json, "take", "unneeded_nodes");
    } else if (action->is_to) {
        as_json_write_member_i64(json, "to", action->size);
    } else if (action->steps) {
        as_json_write_key(json, "steps");
        as_json_begin_array(json);
        for (size_t i = 0; i < action->step_count; i++)
            write_step(json, action, &action->steps[i]);
        as_json_end_array(json);
    } else {
        write_amount(json, &action->amount, NULL);
    }
    as_json_end_object(json);
}

static void write_track(struct as_json_writer *json, const struct as_track *track)
{
    bool is_utilization = track->goal == AS_GOAL_UTILIZATION;
    as_json_begin_object(json);
    if (track->goal == AS_GOAL_AVERAGE_VALUE)
        action_write_number(json, "average_value", track->value);
    if (track->container)
        as_json_write_member(json, "container", track->container);
    if (track->by_owner)
        as_json_write_member(json, "pods", "owned");
    if (is_utilization || (track->is_resource && track->goal == AS_GOAL_AVERAGE_VALUE))
        as_json_write_member(json, "resource", resource_words[track->resource].text);
    if (is_utilization)
        write_percent(json, "utilization", llround(track->value * 1000));
    if (track->goal == AS_GOAL_VALUE)
        action_write_number(json, "value", track->value);
    as_json_end_object(json);
}

static void action_write(struct as_json_writer *json, const struct as_row *row, const void *base)
{
    const struct as_action *action = as_row_at(row, base);

    as_json_begin_object(json);
    as_json_write_key(json, as_action_kind_get_word(action->kind));
    switch (action->kind) {
    case AS_ACTION_SCALE_UP:
    case AS_ACTION_SCALE_DOWN: write_step_action(json, action); break;
    case AS_ACTION_SCALE_TO:
        if (action->steps)
            write_step_action(json, action);
        else
            as_json_write_i64(json, action->size);
        break;
    case AS_ACTION_TRACK: write_track(json, &action->track); break;
    case AS_ACTION_HOLD: as_json_write_string(json, as_ways_get_word(action->hold)); break;
    case AS_ACTION_PASS_THROUGH:
    case AS_ACTION_KIND_COUNT:
        as_json_begin_object(json);
        as_json_end_object(json);
        break;
    }
    as_json_end_object(json);
}

/* ---- the JSON Schema: the members of each object, without conditions between them ---- */

#define ACTION_PERCENT "^[0-9]+(\\.[0-9]{1,3})?%$"
#define ACTION_ROW(WORD, TYPE)                                                                     \
    {                                                                                              \
        .name = (WORD), .type = &(TYPE)                                                            \
    }

DECISION_WORDS(get_fit, "pending_pods")
DECISION_WORDS(get_take, "unneeded_nodes")
DECISION_WORDS(get_resource, "cpu", "memory")
DECISION_WORDS(get_pods, "owned")
AS_ROW_WORDS(get_hold, enum as_ways, AS_WAYS_BOTH + 1, as_ways_get_word)

static void percent_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_text(schema, ACTION_PERCENT);
}

static void by_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_begin_forms(schema);
    as_rows_schema_begin_form(schema);
    as_rows_schema_write_integer(schema, 0, INT64_MAX);
    as_rows_schema_end_form(schema);
    as_rows_schema_begin_form(schema);
    percent_describe(schema, row);
    as_rows_schema_end_form(schema);
    as_rows_schema_end_forms(schema);
}

static void scale_to_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    as_rows_schema_begin_forms(schema);
    as_rows_schema_begin_form(schema);
    as_rows_schema_write_integer(schema, 0, INT64_MAX);
    as_rows_schema_end_form(schema);
    as_rows_schema_begin_form(schema);
    as_rows_schema_write_rows(schema, row->rows);
    as_rows_schema_end_form(schema);
    as_rows_schema_end_forms(schema);
}

static const struct as_row_type percent_type = {.describe = percent_describe};
static const struct as_row_type by_type = {.describe = by_describe};
static const struct as_row_type scale_to_type = {.describe = scale_to_describe};

static const struct as_row change_rows[] = {
    ACTION_ROW("above", as_row_number), ACTION_ROW("at_least", as_row_i64),
    ACTION_ROW("below", as_row_number), ACTION_ROW("by", by_type),
    ACTION_ROW("to", as_row_positive),  {.name = NULL},
};

static const struct as_row rung_rows[] = {
    {.name = "from", .type = &as_row_number, .presence = AS_ROW_REQUIRED},
    {.name = "size", .type = &as_row_i64, .presence = AS_ROW_REQUIRED},
    {.name = NULL},
};

static const struct as_row rungs_rows[] = {
    {.name = "steps",
     .type = &as_row_list,
     .presence = AS_ROW_REQUIRED,
     .rows = rung_rows,
     .min = 1,
     .max = AS_STEPS_MAX},
    {.name = NULL},
};

#define STEPS                                                                                      \
    {                                                                                              \
        .name = "steps", .type = &as_row_list, .rows = change_rows, .min = 1, .max = AS_STEPS_MAX  \
    }

static const struct as_row down_rows[] = {
    ACTION_ROW("at_least", as_row_i64),
    ACTION_ROW("by", by_type),
    STEPS,
    {.name = "take", .type = &as_row_word, .get_word = get_take},
    ACTION_ROW("to", as_row_i64),
    {.name = NULL},
};

static const struct as_row up_rows[] = {
    ACTION_ROW("at_least", as_row_i64),
    ACTION_ROW("by", by_type),
    {.name = "fit", .type = &as_row_word, .get_word = get_fit},
    STEPS,
    ACTION_ROW("to", as_row_i64),
    {.name = NULL},
};

static const struct as_row track_rows[] = {
    ACTION_ROW("average_value", as_row_positive),
    {.name = "container", .type = &as_row_text, .since = 3},
    {.name = "pods", .type = &as_row_word, .since = 3, .get_word = get_pods},
    {.name = "resource", .type = &as_row_word, .get_word = get_resource},
    ACTION_ROW("utilization", percent_type),
    ACTION_ROW("value", as_row_positive),
    {.name = NULL},
};

static const struct as_row no_rows[] = {
    {.name = NULL},
};

static const struct as_row kind_rows[] = {
    {.name = "hold", .type = &as_row_word, .get_word = get_hold, .min = AS_WAYS_DOWN},
    {.name = "pass_through", .type = &as_row_part, .rows = no_rows},
    {.name = "scale_down", .type = &as_row_part, .rows = down_rows},
    {.name = "scale_to", .type = &scale_to_type, .rows = rungs_rows},
    {.name = "scale_up", .type = &as_row_part, .rows = up_rows},
    {.name = "track", .type = &as_row_part, .rows = track_rows},
    {.name = NULL, .definition = "proposed_action", .about = "One action, as in rule files"},
};

static void action_describe(struct as_rows_schema *schema, const struct as_row *row)
{
    (void)row;
    as_rows_schema_write_reference(schema, kind_rows);
    as_json_write_member_i64(&schema->json, "minProperties", 1);
    as_json_write_member_i64(&schema->json, "maxProperties", 1);
}

const struct as_row_type as_row_action = {
    .write = action_write, .read = action_read, .describe = action_describe};
