/*
 * The actions of a rule (`track` is in rule_track.c), what it does when its incident ends, and its
 * guard.
 */
#include <string.h>

#include "rule_parts.h"

/* `by`, with `at_least` beside it; the first member where used */

struct raw_amount {
    struct as_amount by;
    int32_t at_least;
};

static void parse_by(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_amount *amount = &((struct raw_amount *)object)->by;
    char found[AS_YAML_FOUND_SIZE];
    if (value->kind == AS_YAML_SCALAR && strchr(value->text, '%')) {
        amount->is_percent =
            schema_parse_percent(loader, value, 1, INT64_C(1000000) * 1000, &amount->milli_percent);
    } else if (value->kind != AS_YAML_SCALAR || !value->is_plain ||
               strspn(value->text, "-0123456789") != value->size || value->size == 0) {
        loader_report(loader, value, "expected an integer or a percentage like 50%%, found %s",
                      as_yaml_describe(value, found));
    } else {
        schema_parse_i64(loader, value, 1, AS_SIZE_MAX, &amount->size);
    }
}

static void finish_amount(struct loader *loader, const struct as_yaml_node *node,
                          struct raw_amount *amount)
{
    const struct as_yaml_node *by = as_yaml_find(node, "by");
    const struct as_yaml_node *key = schema_find_key(node, "at_least");
    bool is_number = by && by->kind == AS_YAML_SCALAR && !strchr(by->text, '%');
    amount->by.at_least = amount->at_least;
    if (key && (is_number || !by))
        loader_report(loader, key, "`at_least` goes with a percentage in `by`");
}

static void check_at_most_all(struct loader *loader, const struct as_yaml_node *map,
                              const struct as_amount *amount)
{
    if (amount->is_percent && amount->milli_percent > 100000)
        loader_report(loader, as_yaml_find(map, "by"),
                      "expected at most 100%%: nothing can lose more");
}

#define AMOUNT_FIELDS(is_needed)                                                                   \
    {.key = "by",                                                                                  \
     .type = SCHEMA_CUSTOM,                                                                        \
     .is_required = (is_needed),                                                                   \
     .parse = parse_by,                                                                            \
     .forms = SCHEMA_FORMS(SCHEMA_FORM(INT, .min = 1, .max = AS_SIZE_MAX), SCHEMA_FORM(PERCENT)),  \
     .expected = "integer or percentage"},                                                         \
    {                                                                                              \
        .key = "at_least", .type = SCHEMA_INT, .offset = offsetof(struct raw_amount, at_least),    \
        .min = 1, .max = AS_SIZE_MAX, .fallback = "1"                                              \
    }

/* SOURCE */

static void parse_nodes(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    const struct schema_field field = {.type = SCHEMA_WORD, .words = as_nodes_words};
    unsigned word = 0;
    if (schema_parse_scalar(loader, &field, value, &word))
        ((struct raw_source *)object)->nodes = (enum as_nodes_word)(AS_NODES_UTILIZATION + word);
}

static const struct schema_field source_fields[] = {
    SCHEMA_FIELD("annotation", STRING, raw_source, annotation),
    SCHEMA_FIELD("label", STRING, raw_source, label),
    {.key = "nodes",
     .type = SCHEMA_CUSTOM,
     .parse = parse_nodes,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(WORD, .words = as_nodes_words)),
     .expected = "utilization, count or cores"},
    SCHEMA_FIELD("query", QUERY, raw_source, query),
    {0},
};

const char *const rule_source_keys[] = {"annotation", "label", "nodes", "query", NULL};

static const struct schema_choice source_choices[] = {{rule_source_keys, false}, {0}};

const struct schema rule_source =
    SCHEMA("source", raw_source, source_fields, .choices = source_choices);

/* `scale_up`, `scale_down` */

struct raw_step {
    struct raw_amount amount;
    bool is_above;
    double bound, to;
    int32_t size; /* of scale_to */
};

struct raw_scale {
    struct raw_amount amount;
    struct raw_source value;
    struct raw_step *steps;
    size_t step_count;
    int32_t to;
    unsigned fit, take; /* one word each */
};

static void parse_above(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_step *step = object;
    step->is_above = true;
    schema_parse_number(loader, value, &step->bound);
}

static void parse_below(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    schema_parse_number(loader, value, &((struct raw_step *)object)->bound);
}

static void parse_step_to(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_parse_goal(loader, value, &((struct raw_step *)object)->to);
}

static const struct schema_field step_fields[] = {
    {.key = "above",
     .type = SCHEMA_CUSTOM,
     .parse = parse_above,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(NUMBER)),
     .expected = "number"},
    {.key = "below",
     .type = SCHEMA_CUSTOM,
     .parse = parse_below,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(NUMBER)),
     .expected = "number"},
    AMOUNT_FIELDS(false),
    {.key = "to",
     .type = SCHEMA_CUSTOM,
     .parse = parse_step_to,
     .forms = RULE_GOAL_FORMS,
     .expected = "number"},
    {0},
};

static void finish_step(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    struct raw_step *step = object;
    finish_amount(loader, node, &step->amount);
}

static const struct schema_choice step_choices[] = {
    {SCHEMA_ONE_OF("above", "below"), false}, {SCHEMA_ONE_OF("by", "to"), false}, {0}};

static const struct schema steps =
    SCHEMA("steps", raw_step, step_fields, .choices = step_choices, .finish = finish_step);

#define STEP_COUNT                                                                                 \
    .max = AS_STEPS_MAX, .when_empty = "expected at least one step, found an empty list"

static const struct schema_field scale_fields[] = {
    AMOUNT_FIELDS(false),
    SCHEMA_FIELD("value", MAP, raw_scale, value, .map = &rule_source),
    SCHEMA_FIELD("steps", MAPS, raw_scale, steps,
                 .count_offset = offsetof(struct raw_scale, step_count), .map = &steps, STEP_COUNT),
    SCHEMA_FIELD("to", INT, raw_scale, to, .min = 0, .max = AS_SIZE_MAX),
    SCHEMA_FIELD("fit", WORD, raw_scale, fit, .words = (const char *const[]){"pending_pods", NULL}),
    SCHEMA_FIELD("take", WORD, raw_scale, take,
                 .words = (const char *const[]){"unneeded_nodes", NULL}),
    {0},
};

/* The last crossed step counts: a step is dead if a later step is always crossed with it. */
static void check_step_order(struct loader *loader, const struct as_yaml_node *list,
                             const struct raw_scale *scale)
{
    const struct raw_step *last[2] = {NULL, NULL}; /* below, above */
    for (size_t i = 0; i < scale->step_count; i++) {
        const struct raw_step *step = &scale->steps[i], *before = last[step->is_above];
        const struct as_yaml_node *node = list->items[i];
        if (!as_yaml_find(node, "above") && !as_yaml_find(node, "below"))
            continue;
        last[step->is_above] = step;
        if (before &&
            (step->is_above ? step->bound <= before->bound : step->bound >= before->bound))
            loader_report(loader, node,
                          "the `%s` before this one never counts: list `above` in rising and "
                          "`below` in falling order",
                          step->is_above ? "above" : "below");
    }
}

static void finish_scale(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    struct raw_scale *scale = object;
    const struct as_yaml_node *list = as_yaml_find(node, "steps");
    finish_amount(loader, node, &scale->amount);
    if (as_yaml_find(node, "value") && !list)
        loader_report(loader, at, "key `steps` is missing");
    if (!list)
        return;
    if (!as_yaml_find(node, "value"))
        loader_report(loader, schema_find_key(node, "steps"), "`steps` go with a `value`");
    check_step_order(loader, list, scale);
}

static const struct schema_choice scale_choices[] = {
    {SCHEMA_ONE_OF("by", "to", "value", "fit", "take"), false}, {0}};

static const struct schema scale =
    SCHEMA("scale", raw_scale, scale_fields, .choices = scale_choices, .finish = finish_scale);

static const struct as_step *convert_steps(struct loader *loader, const struct raw_scale *raw)
{
    if (raw->step_count == 0)
        return NULL;
    struct as_step *list = as_arena_alloc(loader->arena, raw->step_count, sizeof(*list));
    for (size_t i = 0; i < raw->step_count; i++)
        list[i] = (struct as_step){.is_above = raw->steps[i].is_above,
                                   .bound = raw->steps[i].bound,
                                   .amount = raw->steps[i].amount.by,
                                   .to = raw->steps[i].to};
    return list;
}

/* The formula needs a value that falls when the size grows. A goal beyond the bound would be
 * reached before the step begins. */
static void check_goal(struct loader *loader, const struct as_yaml_node *node,
                       const struct raw_step *step, bool is_up)
{
    const struct as_yaml_node *to = as_yaml_find(node, "to");
    if (!to || (as_yaml_find(node, "above") != NULL) == (as_yaml_find(node, "below") != NULL))
        return;
    if (step->is_above != is_up)
        loader_report(loader, schema_find_key(node, "to"), "in `%s` a `to` goes with `%s`",
                      is_up ? "scale_up" : "scale_down", is_up ? "above" : "below");
    else if (step->to > 0 && (is_up ? step->to > step->bound : step->to < step->bound))
        loader_report(loader, to, "expected at %s the bound `%s`", is_up ? "most" : "least",
                      is_up ? "above" : "below");
}

static void parse_scale(struct loader *loader, const struct as_yaml_node *value,
                        enum as_action_kind kind, struct raw_rule *rule)
{
    struct raw_scale raw = {.steps = NULL};
    schema_fill_defaults(loader, &scale, &raw);
    schema_parse(loader, &scale, value, value, &raw);
    rule->action = (struct as_action){
        .kind = kind,
        .amount = raw.amount.by,
        .is_to = as_yaml_find(value, "to") != NULL,
        .is_fit = as_yaml_find(value, "fit") != NULL,
        .is_take = as_yaml_find(value, "take") != NULL,
        .size = raw.to,
        .steps = convert_steps(loader, &raw),
        .step_count = raw.step_count,
    };
    rule->source = raw.value;
    if (value->kind != AS_YAML_MAP)
        return;
    const bool is_up = kind == AS_ACTION_SCALE_UP;
    if (is_up ? rule->action.is_take : rule->action.is_fit)
        loader_report(loader, schema_find_key(value, is_up ? "take" : "fit"),
                      is_up ? "nodes are taken by `scale_down: {take: unneeded_nodes}`"
                            : "pods are fitted by `scale_up: {fit: pending_pods}`");
    const struct as_yaml_node *list = as_yaml_find(value, "steps");
    if (!is_up)
        check_at_most_all(loader, value, &raw.amount.by);
    for (size_t i = 0; i < raw.step_count; i++) {
        check_goal(loader, list->items[i], &raw.steps[i], is_up);
        if (!is_up)
            check_at_most_all(loader, list->items[i], &raw.steps[i].amount.by);
    }
}

const struct schema_field schema_scale_forms[] = {SCHEMA_FORM(MAP, .map = &scale), {0}};

void parse_scale_up(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_scale(loader, value, AS_ACTION_SCALE_UP, object);
}

void parse_scale_down(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_scale(loader, value, AS_ACTION_SCALE_DOWN, object);
}

/* `scale_to`: a size, or a table of sizes */

static void parse_from(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    schema_parse_number(loader, value, &((struct raw_step *)object)->bound);
}

static const struct schema_field rung_fields[] = {
    {.key = "from",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_from,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(NUMBER)),
     .expected = "number"},
    SCHEMA_FIELD("size", INT, raw_step, size, .is_required = true, .min = 0, .max = AS_SIZE_MAX),
    {0},
};

static const struct schema rungs = SCHEMA("scale_to.steps", raw_step, rung_fields);

static const struct schema_field ladder_fields[] = {
    SCHEMA_FIELD("value", MAP, raw_scale, value, .is_required = true, .map = &rule_source),
    SCHEMA_FIELD("steps", MAPS, raw_scale, steps, .is_required = true,
                 .count_offset = offsetof(struct raw_scale, step_count), .map = &rungs, STEP_COUNT),
    {0},
};

static void finish_ladder(struct loader *loader, const struct as_yaml_node *node,
                          const struct as_yaml_node *at, void *object)
{
    struct raw_scale *ladder = object;
    const struct as_yaml_node *list = as_yaml_find(node, "steps");
    if (!list)
        return;
    for (size_t i = 1; i < ladder->step_count; i++) {
        if (as_yaml_find(list->items[i], "from") && as_yaml_find(list->items[i - 1], "from") &&
            ladder->steps[i].bound <= ladder->steps[i - 1].bound)
            loader_report(loader, list->items[i],
                          "the step before this one never counts: list `from` in rising order");
    }
}

static const struct schema ladder =
    SCHEMA("scale_to", raw_scale, ladder_fields, .finish = finish_ladder);

const struct schema_field schema_scale_to_forms[] = {
    SCHEMA_FORM(INT, .min = 0, .max = AS_SIZE_MAX), SCHEMA_FORM(MAP, .map = &ladder), {0}};

void parse_scale_to(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    rule->action.kind = AS_ACTION_SCALE_TO;
    if (value->kind != AS_YAML_MAP) {
        schema_parse_i64(loader, value, 0, AS_SIZE_MAX, &rule->action.size);
        return;
    }
    struct raw_scale raw = {.steps = NULL};
    schema_parse(loader, &ladder, value, value, &raw);
    for (size_t i = 0; i < raw.step_count; i++)
        raw.steps[i].amount.by.size = raw.steps[i].size;
    rule->action.steps = convert_steps(loader, &raw);
    rule->action.step_count = raw.step_count;
    rule->source = raw.value;
}

/* `pass_through` */

const struct schema_field schema_pass_through_forms[] = {SCHEMA_FORM(MAP, .map = &rule_source),
                                                         {0}};

void parse_pass_through(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    rule->action.kind = AS_ACTION_PASS_THROUGH;
    rule->source = (struct raw_source){.query = NULL};
    schema_parse(loader, &rule_source, value, value, &rule->source);
}

/* `on_resolved` */

static const struct schema_field give_back_fields[] = {
    SCHEMA_FIELD("after", DURATION, as_ending, after_us, .fallback = "0s"),
    SCHEMA_FIELD("step", PERCENT, as_ending, step_milli_percent, .min = 1, .max = 100000,
                 .fallback = "100%"),
    {0},
};

static const struct schema give_back = SCHEMA("give_back", as_ending, give_back_fields);

static const struct schema_field ending_down_fields[] = {AMOUNT_FIELDS(true), {0}};

static const struct schema_refusal ending_down_refusals[] = {
    {"value", "when an incident ends there is no value to go by: use `by`", false},
    {"steps", "when an incident ends there is no value for steps: use `by`", false},
    {0},
};

static void finish_ending_down(struct loader *loader, const struct as_yaml_node *node,
                               const struct as_yaml_node *at, void *object)
{
    struct raw_amount *amount = object;
    finish_amount(loader, node, amount);
    check_at_most_all(loader, node, &amount->by);
}

static const struct schema ending_down =
    SCHEMA("on_resolved.scale_down", raw_amount, ending_down_fields,
           .refusals = ending_down_refusals, .finish = finish_ending_down);

struct raw_ending {
    struct as_ending give_back;
    struct raw_amount scale_down;
    int32_t scale_to;
};

static const struct schema_field on_resolved_fields[] = {
    SCHEMA_FIELD("give_back", MAP, raw_ending, give_back, .map = &give_back),
    SCHEMA_FIELD("scale_down", MAP, raw_ending, scale_down, .map = &ending_down),
    SCHEMA_FIELD("scale_to", INT, raw_ending, scale_to, .min = 0, .max = AS_SIZE_MAX),
    {0},
};

static const struct schema_choice ending_choices[] = {
    {SCHEMA_ONE_OF("give_back", "scale_down", "scale_to"), false}, {0}};

static const struct schema on_resolved =
    SCHEMA("on_resolved", raw_ending, on_resolved_fields, .choices = ending_choices);

static struct as_ending convert_ending(const struct as_yaml_node *map, const struct raw_ending *raw)
{
    struct as_ending ending = {.kind = AS_ENDING_SCALE};
    if (as_yaml_find(map, "scale_down")) {
        ending.action =
            (struct as_action){.kind = AS_ACTION_SCALE_DOWN, .amount = raw->scale_down.by};
    } else if (as_yaml_find(map, "scale_to")) {
        ending.action = (struct as_action){.kind = AS_ACTION_SCALE_TO, .size = raw->scale_to};
    } else {
        ending = raw->give_back;
        ending.kind = AS_ENDING_GIVE_BACK;
    }
    return ending;
}

const struct schema_field schema_on_resolved_forms[] = {
    SCHEMA_FORM(WORD, .words = (const char *const[]){"nothing", "give_back", NULL}),
    SCHEMA_FORM(MAP, .map = &on_resolved),
    {0}};

/* The word `give_back` means the map with its defaults. */
void parse_on_resolved(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    struct raw_ending raw = {.scale_to = 0};
    char found[AS_YAML_FOUND_SIZE];
    bool is_word = value->kind == AS_YAML_SCALAR;
    rule->has_ending = !is_word || strcmp(value->text, "nothing") != 0;
    if (!rule->has_ending)
        return;
    schema_fill_defaults(loader, &on_resolved, &raw);
    if (value->kind == AS_YAML_MAP)
        schema_parse(loader, &on_resolved, value, value, &raw);
    else if (!is_word || strcmp(value->text, "give_back") != 0)
        loader_report(loader, value, "expected `nothing`, `give_back` or a map, found %s",
                      as_yaml_describe(value, found));
    rule->ending = convert_ending(value, &raw);
}

/* `guard` */

static const struct schema_field guard_fields[] = {
    SCHEMA_FIELD("query", QUERY, raw_rule, guard, .is_required = true),
    {0},
};

static const struct schema guard = SCHEMA("guard", raw_rule, guard_fields);

const struct schema_field schema_guard_forms[] = {
    SCHEMA_FORM(WORD, .words = (const char *const[]){"none", NULL}),
    SCHEMA_FORM(MAP, .map = &guard),
    {0}};

void parse_guard(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    char found[AS_YAML_FOUND_SIZE];
    bool is_none = value->kind == AS_YAML_SCALAR && strcmp(value->text, "none") == 0;
    rule->guard_kind = is_none ? AS_GUARD_WAIVED : AS_GUARD_QUERY;
    if (value->kind == AS_YAML_MAP)
        schema_parse(loader, &guard, value, value, rule);
    else if (!is_none)
        loader_report(loader, value, "expected a map with a `query`, or `none`, found %s",
                      as_yaml_describe(value, found));
}

const struct schema *const schema_rule_parts[] = {
    &scale,       &steps,     &ladder,      &rungs, &rule_source,   &rule_track,
    &on_resolved, &give_back, &ending_down, &guard, &rule_fallback, NULL,
};
