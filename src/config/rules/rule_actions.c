/*
 * The five actions of a rule, what it does when its incident ends, and its guard.
 */
#include <string.h>

#include "yaml/tables.h"

/* `by`, with `at_least` beside it; stands first in whatever has it */

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
     .expected = "integer or percentage"},                                                         \
    {                                                                                              \
        .key = "at_least", .type = SCHEMA_INT, .offset = offsetof(struct raw_amount, at_least),    \
        .min = 1, .max = AS_SIZE_MAX, .fallback = "1"                                              \
    }

/* SOURCE */

static const struct schema_field source_fields[] = {
    {.key = "annotation", .type = SCHEMA_STRING, .offset = offsetof(struct raw_source, annotation)},
    {.key = "label", .type = SCHEMA_STRING, .offset = offsetof(struct raw_source, label)},
    {.key = "query", .type = SCHEMA_QUERY, .offset = offsetof(struct raw_source, query)},
    {0},
};

static const char *const source_keys[] = {"annotation", "label", "query", NULL};

static void finish_source(struct loader *loader, const struct as_yaml_node *node,
                          const struct as_yaml_node *at, void *object)
{
    schema_check_one_of(loader, node, at, source_keys, true);
}

static const struct schema source = {
    .name = "source",
    .size = sizeof(struct raw_source),
    .fields = source_fields,
    .finish = finish_source,
};

/* `scale_up`, `scale_down` */

struct raw_step {
    struct raw_amount amount;
    bool is_above;
    double bound;
};

struct raw_scale {
    struct raw_amount amount;
    struct raw_source value;
    struct raw_step *steps;
    size_t step_count;
    int32_t to;
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

static const struct schema_field step_fields[] = {
    {.key = "above", .type = SCHEMA_CUSTOM, .parse = parse_above, .expected = "number"},
    {.key = "below", .type = SCHEMA_CUSTOM, .parse = parse_below, .expected = "number"},
    AMOUNT_FIELDS(true),
    {0},
};

static void finish_step(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    struct raw_step *step = object;
    schema_check_one_of(loader, node, at, (const char *const[]){"above", "below", NULL}, true);
    finish_amount(loader, node, &step->amount);
}

static const struct schema steps = {
    .name = "steps",
    .size = sizeof(struct raw_step),
    .fields = step_fields,
    .finish = finish_step,
};

static const struct schema_field scale_fields[] = {
    AMOUNT_FIELDS(false),
    {.key = "value",
     .type = SCHEMA_MAP,
     .offset = offsetof(struct raw_scale, value),
     .map = &source},
    {.key = "steps",
     .type = SCHEMA_MAPS,
     .offset = offsetof(struct raw_scale, steps),
     .count_offset = offsetof(struct raw_scale, step_count),
     .map = &steps},
    {.key = "to",
     .type = SCHEMA_INT,
     .offset = offsetof(struct raw_scale, to),
     .min = 0,
     .max = AS_SIZE_MAX},
    {0},
};

/* The last step that is crossed counts, so one that always has a crossed one behind it is dead. */
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
    schema_check_one_of(loader, node, at, (const char *const[]){"by", "to", "value", NULL}, true);
    finish_amount(loader, node, &scale->amount);
    if (as_yaml_find(node, "value") && !list)
        loader_report(loader, at, "key `steps` is missing");
    if (!list)
        return;
    if (!as_yaml_find(node, "value"))
        loader_report(loader, schema_find_key(node, "steps"), "`steps` go with a `value`");
    if (list->kind == AS_YAML_LIST && list->count == 0)
        loader_report(loader, list, "expected at least one step, found an empty list");
    if (scale->step_count > AS_STEPS_MAX)
        loader_report(loader, list, "at most %d steps are possible", AS_STEPS_MAX);
    check_step_order(loader, list, scale);
}

static const struct schema scale = {
    .name = "scale",
    .size = sizeof(struct raw_scale),
    .fields = scale_fields,
    .finish = finish_scale,
};

static const struct as_step *convert_steps(struct loader *loader, const struct raw_scale *raw)
{
    if (raw->step_count == 0)
        return NULL;
    struct as_step *list = as_arena_alloc(loader->arena, raw->step_count, sizeof(*list));
    for (size_t i = 0; i < raw->step_count; i++)
        list[i] = (struct as_step){.is_above = raw->steps[i].is_above,
                                   .bound = raw->steps[i].bound,
                                   .amount = raw->steps[i].amount.by};
    return list;
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
        .size = raw.to,
        .steps = convert_steps(loader, &raw),
        .step_count = raw.step_count,
    };
    rule->source = raw.value;
    if (kind != AS_ACTION_SCALE_DOWN || value->kind != AS_YAML_MAP)
        return;
    const struct as_yaml_node *list = as_yaml_find(value, "steps");
    check_at_most_all(loader, value, &raw.amount.by);
    for (size_t i = 0; i < raw.step_count; i++)
        check_at_most_all(loader, list->items[i], &raw.steps[i].amount.by);
}

void parse_scale_up(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_scale(loader, value, AS_ACTION_SCALE_UP, object);
}

void parse_scale_down(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_scale(loader, value, AS_ACTION_SCALE_DOWN, object);
}

void parse_scale_to(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    rule->action.kind = AS_ACTION_SCALE_TO;
    schema_parse_i64(loader, value, 0, AS_SIZE_MAX, &rule->action.size);
}

/* `pass_through` */

void parse_pass_through(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    rule->action.kind = AS_ACTION_PASS_THROUGH;
    rule->source = (struct raw_source){.query = NULL};
    schema_parse(loader, &source, value, value, &rule->source);
}

/* `track` */

struct raw_track {
    struct raw_source source;
    double value, average_value;
    int64_t utilization;
    unsigned of, resource;
};

static void parse_goal(struct loader *loader, const struct as_yaml_node *value, double *out)
{
    const double milli = 0.001; /* HPA's unit: what is smaller counts as zero */
    if (schema_parse_number(loader, value, out) && *out < milli)
        loader_report(loader, value, "expected a number of at least 0.001");
}

static void parse_value(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_goal(loader, value, &((struct raw_track *)object)->value);
}

static void parse_average_value(struct loader *loader, const struct as_yaml_node *value,
                                void *object)
{
    parse_goal(loader, value, &((struct raw_track *)object)->average_value);
}

/* As parse_track takes them apart. */
static const char *const of_words[] = {"cpu_requests", "memory_requests", "cpu_limits",
                                       "memory_limits", NULL};

static const char *const resource_words[] = {
    [AS_RESOURCE_CPU] = "cpu", [AS_RESOURCE_MEMORY] = "memory", [AS_RESOURCE_COUNT] = NULL};

static const struct schema_field track_fields[] = {
    {.key = "value", .type = SCHEMA_CUSTOM, .parse = parse_value, .expected = "number"},
    {.key = "average_value",
     .type = SCHEMA_CUSTOM,
     .parse = parse_average_value,
     .expected = "number"},
    {.key = "utilization",
     .type = SCHEMA_PERCENT,
     .offset = offsetof(struct raw_track, utilization),
     .min = 1000,
     .max = INT64_C(1000000) * 1000},
    {.key = "of", .type = SCHEMA_WORD, .offset = offsetof(struct raw_track, of), .words = of_words},
    {.key = "resource",
     .type = SCHEMA_WORD,
     .offset = offsetof(struct raw_track, resource),
     .words = resource_words},
    {.key = "per_pod",
     .type = SCHEMA_BOOL,
     .offset = offsetof(struct raw_track, source.per_pod),
     .fallback = "false"},
    {.key = "pod_label",
     .type = SCHEMA_STRING,
     .offset = offsetof(struct raw_track, source.pod_label),
     .fallback = "pod"},
    {0},
};

static void finish_track(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    bool is_per_pod = ((const struct raw_track *)object)->source.per_pod;
    const struct as_yaml_node *of = schema_find_key(node, "of");
    const struct as_yaml_node *resource = schema_find_key(node, "resource");
    const struct as_yaml_node *utilization = schema_find_key(node, "utilization");
    const struct as_yaml_node *per_pod = schema_find_key(node, "per_pod");
    const struct as_yaml_node *pod_label = schema_find_key(node, "pod_label");
    schema_check_one_of(loader, node, at,
                        (const char *const[]){"value", "average_value", "utilization", NULL}, true);
    schema_check_one_of(loader, node, at, source_keys, true);
    if (utilization && !of)
        loader_report(loader, utilization, "`utilization` needs `of`, such as `of: cpu_requests`");
    if (of && !utilization)
        loader_report(loader, of, "`of` goes with `utilization`");
    if (resource && !(is_per_pod && as_yaml_find(node, "average_value")))
        loader_report(loader, resource, "`resource` goes with `average_value` and `per_pod: true`");
    if (utilization && !is_per_pod)
        loader_report(loader, utilization, "`utilization` needs a `query` with `per_pod: true`");
    if (is_per_pod && as_yaml_find(node, "value"))
        loader_report(loader, per_pod, "`value` takes one number, not one for each pod");
    if (is_per_pod && !as_yaml_find(node, "query"))
        loader_report(loader, per_pod, "`per_pod` goes with a `query`");
    if (pod_label && !is_per_pod)
        loader_report(loader, pod_label, "`pod_label` goes with `per_pod: true`");
}

static const struct schema track = {
    .name = "track",
    .size = sizeof(struct raw_track),
    .fields = track_fields,
    .base = &source,
    .base_offset = offsetof(struct raw_track, source),
    .finish = finish_track,
};

static enum as_goal get_goal(const struct raw_track *raw)
{
    return raw->utilization > 0     ? AS_GOAL_UTILIZATION
           : raw->average_value > 0 ? AS_GOAL_AVERAGE_VALUE
                                    : AS_GOAL_VALUE;
}

void parse_track(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    struct raw_track raw = {.of = 0};
    rule->action.kind = AS_ACTION_TRACK;
    schema_fill_defaults(loader, &track, &raw);
    schema_parse(loader, &track, value, value, &raw);
    enum as_goal goal = get_goal(&raw);
    const double goals[] = {
        [AS_GOAL_VALUE] = raw.value,
        [AS_GOAL_AVERAGE_VALUE] = raw.average_value,
        [AS_GOAL_UTILIZATION] = (double)raw.utilization / 1000,
    };
    rule->action.track = (struct as_track){
        .goal = goal,
        .value = goals[goal],
        .resource = goal != AS_GOAL_UTILIZATION ? (enum as_resource)raw.resource
                    : raw.of % 2                ? AS_RESOURCE_MEMORY
                                                : AS_RESOURCE_CPU,
        .of_limits = raw.of >= 2,
        .is_resource = goal == AS_GOAL_UTILIZATION || as_yaml_find(value, "resource"),
    };
    rule->source = raw.source;
    const struct as_yaml_node *of = as_yaml_find(value, "of");
    if (goal == AS_GOAL_UTILIZATION && of && of->kind == AS_YAML_SCALAR &&
        strcmp(of->text, of_words[raw.of]) == 0)
        rule->resource = of;
}

/* `on_resolved` */

static const struct schema_field give_back_fields[] = {
    {.key = "after",
     .type = SCHEMA_DURATION,
     .offset = offsetof(struct as_ending, after_us),
     .fallback = "0s"},
    {.key = "step",
     .type = SCHEMA_PERCENT,
     .offset = offsetof(struct as_ending, step_milli_percent),
     .min = 1,
     .max = 100000,
     .fallback = "100%"},
    {0},
};

static const struct schema give_back = {
    .name = "give_back",
    .size = sizeof(struct as_ending),
    .fields = give_back_fields,
};

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
    (void)at;
    finish_amount(loader, node, amount);
    check_at_most_all(loader, node, &amount->by);
}

static const struct schema ending_down = {
    .name = "on_resolved.scale_down",
    .size = sizeof(struct raw_amount),
    .fields = ending_down_fields,
    .refusals = ending_down_refusals,
    .finish = finish_ending_down,
};

struct raw_ending {
    struct as_ending give_back;
    struct raw_amount scale_down;
    int32_t scale_to;
};

static const struct schema_field on_resolved_fields[] = {
    {.key = "give_back",
     .type = SCHEMA_MAP,
     .offset = offsetof(struct raw_ending, give_back),
     .map = &give_back},
    {.key = "scale_down",
     .type = SCHEMA_MAP,
     .offset = offsetof(struct raw_ending, scale_down),
     .map = &ending_down},
    {.key = "scale_to",
     .type = SCHEMA_INT,
     .offset = offsetof(struct raw_ending, scale_to),
     .min = 0,
     .max = AS_SIZE_MAX},
    {0},
};

static void finish_on_resolved(struct loader *loader, const struct as_yaml_node *node,
                               const struct as_yaml_node *at, void *object)
{
    schema_check_one_of(loader, node, at,
                        (const char *const[]){"give_back", "scale_down", "scale_to", NULL}, true);
}

static const struct schema on_resolved = {
    .name = "on_resolved",
    .size = sizeof(struct raw_ending),
    .fields = on_resolved_fields,
    .finish = finish_on_resolved,
};

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

/* The word `give_back` is the map with its defaults. */
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
    {.key = "query",
     .type = SCHEMA_QUERY,
     .is_required = true,
     .offset = offsetof(struct raw_rule, guard)},
    {0},
};

static const struct schema guard = {
    .name = "guard",
    .size = sizeof(struct raw_rule),
    .fields = guard_fields,
};

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
    &scale, &steps, &source, &track, &on_resolved, &give_back, &ending_down, &guard, NULL,
};
