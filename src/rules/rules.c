/*
 * The tables of a rule file and of its rules: actions, guards, and what a rule does when its
 * incident ends.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/sized.h>

#include <alertscaler/rules/tables.h>

/* A goal: a number to divide by. */
#define RULE_GOAL_FORMS SCHEMA_FORMS(SCHEMA_FORM(NUMBER, .min = 1))

/*
 * The action `track` of a rule.
 */

struct raw_track {
    struct raw_source source;
    double value, average_value;
    int64_t utilization;
    unsigned of, resource, pods;
    const char *container;
};

static void rule_parse_goal(struct loader *loader, const struct as_yaml_node *value, double *out)
{
    const double milli = 0.001; /* HPA's unit: smaller values count as zero */
    if (schema_parse_number(loader, value, out) && *out < milli)
        loader_report(loader, value, "expected a number of at least 0.001");
}

static void rules_parse_value(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_parse_goal(loader, value, &((struct raw_track *)object)->value);
}

static void parse_average_value(struct loader *loader, const struct as_yaml_node *value,
                                void *object)
{
    rule_parse_goal(loader, value, &((struct raw_track *)object)->average_value);
}

/* In parse_track's order. */
static const char *const of_words[] = {"cpu_requests", "memory_requests", "cpu_limits",
                                       "memory_limits", NULL};

static const char *const resource_words[] = {
    [AS_RESOURCE_CPU] = "cpu", [AS_RESOURCE_MEMORY] = "memory", [AS_RESOURCE_COUNT] = NULL};

enum { PODS_LABELS, PODS_OWNED };
static const char *const pods_words[] = {
    [PODS_LABELS] = "labels", [PODS_OWNED] = "owned", [PODS_OWNED + 1] = NULL};

static const struct schema_field track_fields[] = {
    {.key = "value",
     .type = SCHEMA_CUSTOM,
     .parse = rules_parse_value,
     .forms = RULE_GOAL_FORMS,
     .expected = "number",
     .about = "Goal: the size is the number of ready pods, times the value, divided by this."},
    {.key = "average_value",
     .type = SCHEMA_CUSTOM,
     .parse = parse_average_value,
     .forms = RULE_GOAL_FORMS,
     .expected = "number",
     .about = "Goal: the size is the sum of the values, divided by this."},
    SCHEMA_FIELD(
        "utilization", PERCENT, raw_track, utilization, .min = 1000, .max = INT64_C(1000000) * 1000,
        .about =
            "Goal: usage in percent of the pods' requests or limits; needs `of` and `per_pod`."),
    SCHEMA_FIELD("of", WORD, raw_track, of, .words = of_words,
                 .about = "What `utilization` is measured against."),
    SCHEMA_FIELD("container", STRING, raw_track, container,
                 .about = "With `utilization`: the container whose requests or limits count, "
                          "instead of the whole pod's."),
    SCHEMA_FIELD("resource", WORD, raw_track, resource, .words = resource_words,
                 .about =
                     "The resource that the samples of `average_value` with `per_pod` measure."),
    SCHEMA_FIELD("per_pod", BOOL, raw_track, source.per_pod, .fallback = "false",
                 .about = "The query returns one sample for each pod."),
    SCHEMA_FIELD("pod_label", STRING, raw_track, source.pod_label, .fallback = "pod",
                 .about = "The label of a sample that has the pod's name."),
    SCHEMA_FIELD("pods", WORD, raw_track, pods, .words = pods_words, .fallback = "labels",
                 .about = "Which pods count: those with the labels of the target's selector, or "
                          "only those that the target owns."),
    {0},
};

static void finish_track(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    const struct raw_track *track = object;
    bool is_per_pod = track->source.per_pod;
    const struct as_yaml_node *of = schema_find_key(node, "of");
    const struct as_yaml_node *resource = schema_find_key(node, "resource");
    const struct as_yaml_node *utilization = schema_find_key(node, "utilization");
    const struct as_yaml_node *per_pod = schema_find_key(node, "per_pod");
    const struct as_yaml_node *pod_label = schema_find_key(node, "pod_label");
    const struct as_yaml_node *container = schema_find_key(node, "container");
    const struct as_yaml_node *pods = schema_find_key(node, "pods");
    if (pods && !is_per_pod && !as_yaml_find(node, "value"))
        loader_report(loader, pods, "`pods` goes with `per_pod: true`, or with `value`");
    if (container && !utilization)
        loader_report(
            loader, container,
            "`container` goes with `utilization`: elsewhere the query selects containers");
    if (track->container && !as_sized_is_container(track->container))
        loader_report(loader, container, "expected a container's name");
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

static const char *const rule_source_keys[] = {"annotation", "label", "nodes", "query", NULL};

static const struct schema_choice track_choices[] = {
    {SCHEMA_ONE_OF("value", "average_value", "utilization"), false},
    {rule_source_keys, false},
    {0}};

static void parse_nodes(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    const struct schema_field field = {.type = SCHEMA_WORD, .words = as_nodes_words};
    unsigned word = 0;
    if (schema_parse_scalar(loader, &field, value, &word))
        ((struct raw_source *)object)->nodes = (enum as_nodes_word)(AS_NODES_UTILIZATION + word);
}

static const struct schema_field source_fields[] = {
    SCHEMA_FIELD("annotation", STRING, raw_source, annotation,
                 .about = "The annotation of the alert that has the number."),
    SCHEMA_FIELD("label", STRING, raw_source, label,
                 .about = "The label of the alert that has the number."),
    {.key = "nodes",
     .type = SCHEMA_CUSTOM,
     .parse = parse_nodes,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(WORD, .words = as_nodes_words)),
     .expected = "utilization, count or cores",
     .about = "A number about the nodes of a node group, or of the cluster."},
    SCHEMA_FIELD("query", QUERY, raw_source, query,
                 .about = "The PromQL query with the number as its result."),
    {0},
};

static const struct schema_choice source_choices[] = {{rule_source_keys, false}, {0}};

static const struct schema rule_source =
    SCHEMA("source", raw_source, source_fields, .example = "{annotation: replicas}",
           .choices = source_choices);

static const struct schema rule_track =
    SCHEMA("track", raw_track, track_fields, .example = "{query: 'sum(jobs)', value: 10}",
           .base = &rule_source, .base_offset = offsetof(struct raw_track, source),
           .choices = track_choices, .finish = finish_track);

static enum as_goal get_goal(const struct raw_track *raw)
{
    return raw->utilization > 0     ? AS_GOAL_UTILIZATION
           : raw->average_value > 0 ? AS_GOAL_AVERAGE_VALUE
                                    : AS_GOAL_VALUE;
}

static const struct schema_field schema_track_forms[] = {SCHEMA_FORM(MAP, .map = &rule_track), {0}};

static void parse_track(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    struct raw_track raw = {.of = 0};
    rule->action.kind = AS_ACTION_TRACK;
    schema_fill_defaults(loader, &rule_track, &raw);
    schema_parse(loader, &rule_track, value, value, &raw);
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
        .by_owner = raw.pods == PODS_OWNED,
        .container = raw.container,
    };
    rule->source = raw.source;
    const struct as_yaml_node *of = as_yaml_find(value, "of");
    if (goal == AS_GOAL_UTILIZATION && of && of->kind == AS_YAML_SCALAR &&
        strcmp(of->text, of_words[raw.of]) == 0)
        rule->resource = of;
}

/*
 * The actions of a rule (`track` is above), what it does when its incident ends, and its
 * guard.
 */

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
    } else if (schema_is_quantity(value)) {
        schema_parse_count(loader, value, 1, AS_SIZE_MAX, &amount->size);
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
     .forms = SCHEMA_FORMS(SCHEMA_FORM(INT, .min = 1, .max = AS_SIZE_MAX, .is_count = true),       \
                           SCHEMA_FORM(PERCENT)),                                                  \
     .expected = "integer or percentage",                                                          \
     .about = "The change: a number, or a percentage of the size."},                               \
    {                                                                                              \
        .key = "at_least", .type = SCHEMA_INT, .offset = offsetof(struct raw_amount, at_least),    \
        .min = 1, .max = AS_SIZE_MAX, .is_count = true, .fallback = "1",                           \
        .about = "With a percentage: the smallest change."                                         \
    }

/* SOURCE */

/* `scale_up`, `scale_down` */

struct raw_step {
    struct raw_amount amount;
    bool is_above;
    double bound, to;
    int32_t size; /* of scale_to */
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
     .expected = "number",
     .about = "The step counts while the value is above this."},
    {.key = "below",
     .type = SCHEMA_CUSTOM,
     .parse = parse_below,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(NUMBER)),
     .expected = "number",
     .about = "The step counts while the value is below this."},
    AMOUNT_FIELDS(false),
    {.key = "to",
     .type = SCHEMA_CUSTOM,
     .parse = parse_step_to,
     .forms = RULE_GOAL_FORMS,
     .expected = "number",
     .about = "The number that the value is brought to, instead of `by`."},
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

struct raw_scale {
    struct raw_amount amount;
    struct raw_source value;
    struct raw_step *steps;
    size_t step_count;
    int32_t to;
    unsigned fit, take; /* one word each */
};

#define STEP_COUNT                                                                                 \
    .max = AS_STEPS_MAX, .when_empty = "expected at least one step, found an empty list"

static const struct schema_field scale_fields[] = {
    AMOUNT_FIELDS(false),
    SCHEMA_FIELD("value", MAP, raw_scale, value, .map = &rule_source,
                 .about = "The number that `steps` compare."),
    SCHEMA_FIELD("steps", MAPS, raw_scale, steps,
                 .count_offset = offsetof(struct raw_scale, step_count), .map = &steps, STEP_COUNT,
                 .about = "Changes by the size of a number; the last crossed step counts."),
    SCHEMA_FIELD("to", INT, raw_scale, to, .min = 0, .max = AS_SIZE_MAX, .is_count = true,
                 .about = "The size to scale to, instead of `by`; in this direction only."),
    SCHEMA_FIELD("fit", WORD, raw_scale, fit, .words = (const char *const[]){"pending_pods", NULL},
                 .about = "The size at which these pods have a node."),
    SCHEMA_FIELD("take", WORD, raw_scale, take,
                 .words = (const char *const[]){"unneeded_nodes", NULL},
                 .about = "The nodes that leave."),
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

static const struct schema scale = SCHEMA("scale", raw_scale, scale_fields, .example = "{by: 50%}",
                                          .choices = scale_choices, .finish = finish_scale);

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

static const struct schema_field schema_scale_forms[] = {SCHEMA_FORM(MAP, .map = &scale), {0}};

static void parse_scale_up(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_scale(loader, value, AS_ACTION_SCALE_UP, object);
}

static void parse_scale_down(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_scale(loader, value, AS_ACTION_SCALE_DOWN, object);
}

/* `scale_to`: a size, or a table of sizes */

static void rules_parse_from(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    schema_parse_number(loader, value, &((struct raw_step *)object)->bound);
}

static const struct schema_field rung_fields[] = {
    {.key = "from",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = rules_parse_from,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(NUMBER)),
     .expected = "number",
     .about = "The step counts from this value on."},
    SCHEMA_FIELD("size", INT, raw_step, size, .is_required = true, .is_count = true, .min = 0,
                 .max = AS_SIZE_MAX, .about = "The size in this step."),
    {0},
};

static const struct schema rungs = SCHEMA("scale_to.steps", raw_step, rung_fields);

static const struct schema_field ladder_fields[] = {
    SCHEMA_FIELD("value", MAP, raw_scale, value, .is_required = true, .map = &rule_source,
                 .about = "The number that `steps` compare."),
    SCHEMA_FIELD(
        "steps", MAPS, raw_scale, steps, .is_required = true,
        .count_offset = offsetof(struct raw_scale, step_count), .map = &rungs, STEP_COUNT,
        .about = "Sizes by the size of a number, in rising order; the last reached step counts."),
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

static const struct schema_field schema_scale_to_forms[] = {
    SCHEMA_FORM(INT, .min = 0, .max = AS_SIZE_MAX, .is_count = true),
    SCHEMA_FORM(MAP, .map = &ladder),
    {0}};

static void parse_scale_to(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    rule->action.kind = AS_ACTION_SCALE_TO;
    if (value->kind != AS_YAML_MAP) {
        schema_parse_count(loader, value, 0, AS_SIZE_MAX, &rule->action.size);
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

static const struct schema_field schema_pass_through_forms[] = {
    SCHEMA_FORM(MAP, .map = &rule_source), {0}};

static void parse_pass_through(struct loader *loader, const struct as_yaml_node *value,
                               void *object)
{
    struct raw_rule *rule = object;
    rule->action.kind = AS_ACTION_PASS_THROUGH;
    rule->source = (struct raw_source){.query = NULL};
    schema_parse(loader, &rule_source, value, value, &rule->source);
}

/* `on_resolved` */

static const struct schema_field give_back_fields[] = {
    SCHEMA_FIELD("after", DURATION, as_ending, after_us, .fallback = "0s",
                 .about = "How long after the end of the alert the first step begins."),
    SCHEMA_FIELD("step", PERCENT, as_ending, step_milli_percent, .min = 1, .max = 100000,
                 .fallback = "100%",
                 .about = "How much of the added size is given back in one step."),
    {0},
};

static const struct schema give_back =
    SCHEMA("give_back", as_ending, give_back_fields, .example = "{after: 10m}");

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
    SCHEMA("on_resolved.scale_down", raw_amount, ending_down_fields, .example = "{by: 1}",
           .refusals = ending_down_refusals, .finish = finish_ending_down);

struct raw_ending {
    struct as_ending give_back;
    struct raw_amount scale_down;
    int32_t scale_to;
};

static const struct schema_field on_resolved_fields[] = {
    SCHEMA_FIELD("give_back", MAP, raw_ending, give_back, .map = &give_back,
                 .about = "Back to the size before the alert's first action."),
    SCHEMA_FIELD("scale_down", MAP, raw_ending, scale_down, .map = &ending_down,
                 .about = "Subtracts from the size, once."),
    SCHEMA_FIELD("scale_to", INT, raw_ending, scale_to, .min = 0, .max = AS_SIZE_MAX,
                 .is_count = true, .about = "Exactly this size."),
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

static const char *const ending_words[] = {"nothing", "give_back", NULL};

static const struct schema_field schema_on_resolved_forms[] = {
    SCHEMA_FORM(WORD, .words = ending_words), SCHEMA_FORM(MAP, .map = &on_resolved), {0}};

/* Another value than the words and a map. */
static void report_ending(struct loader *loader, const struct as_yaml_node *value)
{
    char found[AS_YAML_FOUND_SIZE], hint[SUGGESTION_SIZE];
    const bool is_word = value->kind == AS_YAML_SCALAR;
    struct suggestion suggestion = suggestion_start(is_word ? value->text : "");
    for (size_t i = 0; is_word && ending_words[i]; i++)
        suggestion_offer(&suggestion, ending_words[i]);
    if (suggestion.best)
        loader_report(loader, value, "expected `nothing`, `give_back` or a map, found %s%s",
                      as_yaml_describe(value, found), suggestion_print(&suggestion, hint));
    else
        loader_report(loader, value,
                      "expected `nothing`, `give_back` or a map like `{scale_down: {by: 1}}`, "
                      "found %s",
                      as_yaml_describe(value, found));
}

/* The word `give_back` means the map with its defaults. */
static void parse_on_resolved(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    struct raw_ending raw = {.scale_to = 0};
    bool is_word = value->kind == AS_YAML_SCALAR;
    rule->has_ending = !is_word || strcmp(value->text, "nothing") != 0;
    if (!rule->has_ending)
        return;
    schema_fill_defaults(loader, &on_resolved, &raw);
    if (value->kind == AS_YAML_MAP)
        schema_parse(loader, &on_resolved, value, value, &raw);
    else if (!is_word || strcmp(value->text, "give_back") != 0)
        report_ending(loader, value);
    rule->ending = convert_ending(value, &raw);
}

/* `guard` */

static const struct schema_field guard_fields[] = {
    SCHEMA_FIELD(
        "query", QUERY, raw_rule, guard, .is_required = true,
        .about =
            "A PromQL query; a scale-down of this rule needs at least one sample in the result."),
    {0},
};

static const struct schema rule_guard = SCHEMA("guard", raw_rule, guard_fields);

static const struct schema_field schema_guard_forms[] = {
    SCHEMA_FORM(WORD, .words = (const char *const[]){"none", NULL}),
    SCHEMA_FORM(MAP, .map = &rule_guard),
    {0}};

static void parse_guard(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    char found[AS_YAML_FOUND_SIZE];
    bool is_none = value->kind == AS_YAML_SCALAR && strcmp(value->text, "none") == 0;
    rule->guard_kind = is_none ? AS_GUARD_WAIVED : AS_GUARD_QUERY;
    if (value->kind == AS_YAML_MAP)
        schema_parse(loader, &rule_guard, value, value, rule);
    else if (!is_none)
        loader_report(loader, value, "expected a map with a `query`, or `none`, found %s",
                      as_yaml_describe(value, found));
}

static const struct schema_field fallback_fields[] = {
    SCHEMA_FIELD("after", DURATION, as_fallback, after_us, .is_required = true,
                 .about = "How long the value must have been unavailable."),
    SCHEMA_FIELD("at_least", INT, as_fallback, at_least, .is_required = true, .is_count = true,
                 .min = 1, .max = AS_SIZE_MAX,
                 .about = "The smallest size that the rule then wants."),
    {0},
};

static const struct schema rule_fallback =
    SCHEMA("fallback", as_fallback, fallback_fields, .example = "{after: 5m, at_least: 3}");

const struct schema *const schema_rule_parts[] = {
    &scale,       &steps,     &ladder,      &rungs,      &rule_source,   &rule_track,
    &on_resolved, &give_back, &ending_down, &rule_guard, &rule_fallback, NULL,
};

#define IN_RULE(member) offsetof(struct raw_rule, member)
#define IN_FILE(member) offsetof(struct raw_rule_file, member)

const struct schema_field schema_matcher_list[] = {
    SCHEMA_FORM(STRINGS, .when_empty = "expected at least one matcher, found an empty list"), {0}};

bool check_matcher_list(struct loader *loader, const struct as_yaml_node *value)
{
    if (value->kind != AS_YAML_LIST) {
        report_no_matcher_list(loader, value);
        return false;
    }
    return schema_check_count(loader, schema_matcher_list, value) && value->count > 0;
}

static void parse_match(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_rule *rule = object;
    if (check_matcher_list(loader, value))
        rule->match = value;
}

/* In the order of enum as_ways. */
static const char *const ways_words[] = {"down", "up", "both", NULL};

static const struct schema_field rule_fields[] = {
    SCHEMA_FIELD("name", NAME, raw_rule, name, .is_required = true,
                 .about = "The name of the rule, for logs, metrics and the status."),
    SCHEMA_FIELD("always", BOOL, raw_rule, is_always,
                 .about = "The rule needs no alert: it follows a value all the time, as a "
                          "HorizontalPodAutoscaler does."),
    {.key = "match",
     .type = SCHEMA_CUSTOM,
     .parse = parse_match,
     .forms = schema_matcher_list,
     .expected = "list of matchers",
     .about = "Matchers of Alertmanager; the rule applies to alerts that fit all of them."},
    SCHEMA_FIELD("receivers", STRINGS, raw_rule, receivers, .count_offset = IN_RULE(receiver_count),
                 .about = "Only alerts of these receivers of Alertmanager; without it, all."),
    SCHEMA_FIELD("target", STRING, raw_rule, target, .is_required = true,
                 .about = "The name of the target; may have templates."),
    {.key = "scale_up",
     .type = SCHEMA_CUSTOM,
     .parse = parse_scale_up,
     .forms = schema_scale_forms,
     .expected = "map",
     .about = "Adds to the size while the alert fires."},
    {.key = "scale_down",
     .type = SCHEMA_CUSTOM,
     .parse = parse_scale_down,
     .forms = schema_scale_forms,
     .expected = "map",
     .about = "Subtracts from the size while the alert fires."},
    {.key = "scale_to",
     .type = SCHEMA_CUSTOM,
     .parse = parse_scale_to,
     .forms = schema_scale_to_forms,
     .expected = "integer or map",
     .about = "Sets exactly this size, or a size by the value of a number."},
    {.key = "track",
     .type = SCHEMA_CUSTOM,
     .parse = parse_track,
     .forms = schema_track_forms,
     .expected = "map",
     .about = "Computes the size from a value and a goal, as a HorizontalPodAutoscaler does."},
    {.key = "pass_through",
     .type = SCHEMA_CUSTOM,
     .parse = parse_pass_through,
     .forms = schema_pass_through_forms,
     .expected = "map",
     .about = "The value of the source is the size."},
    SCHEMA_FIELD("hold", WORD, raw_rule, hold, .words = ways_words,
                 .about = "While the alert fires, the target is not scaled in this direction."),
    SCHEMA_FIELD("fallback", MAP, raw_rule, fallback, .map = &rule_fallback,
                 .about = "The size if the value has been unavailable for a while."),
    {.key = "on_resolved",
     .type = SCHEMA_CUSTOM,
     .parse = parse_on_resolved,
     .forms = schema_on_resolved_forms,
     .expected = "word or map",
     .fallback = "nothing",
     .about = "What happens at the end of the alert; without it, nothing."},
    SCHEMA_FIELD("every", DURATION, raw_rule, every_us, .min = AS_US_PER_S,
                 .about = "While the alert fires, the rule is applied again after this time."),
    SCHEMA_FIELD("max_steps", INT, raw_rule, max_steps, .min = 1, .max = AS_SIZE_MAX,
                 .about = "How many actions an alert may cause until it ends."),
    SCHEMA_FIELD("once", BOOL, raw_rule, once, .fallback = "false",
                 .about = "The alert causes one action until it ends."),
    SCHEMA_FIELD("ineffective_after", INT, raw_rule, ineffective_after, .min = 1,
                 .max = AS_SIZE_MAX,
                 .about = "After so many actions in a row without an effect, the rule is held."),
    {.key = "guard",
     .type = SCHEMA_CUSTOM,
     .parse = parse_guard,
     .forms = schema_guard_forms,
     .expected = "map or `none`",
     .about = "A proof that monitoring works, which a scale-down needs."},
    {.key = "approval",
     .type = SCHEMA_CUSTOM,
     .parse = parse_rule_approval,
     .forms = schema_approval_forms,
     .expected = "map or `none`",
     .about = "A larger change of this rule waits until a person approves it; replaces `approval` "
              "of the target."},
    SCHEMA_FIELD("dry_run", BOOL, raw_rule, dry_run, .fallback = "false",
                 .about = "The rule is decided and recorded, but changes nothing."),
    SCHEMA_FIELD("enabled", BOOL, raw_rule, enabled, .fallback = "true",
                 .about = "False switches the rule off."),
    {0},
};

/* Of a rule that only scales up. */
static void check_guard(struct loader *loader, const struct as_yaml_node *node,
                        const struct raw_rule *rule)
{
    const struct as_yaml_node *guard = schema_find_key(node, "guard");
    if (guard && as_yaml_find(node, "scale_up") && !rule->has_ending)
        loader_report(loader, guard,
                      "`guard` is a condition for scaling down, which this rule never does: it "
                      "has `scale_up`, and no `on_resolved`");
}

/* A rule with `hold` does nothing that could be repeated, counted or proven. */
static void finish_hold(struct loader *loader, const struct as_yaml_node *node,
                        struct raw_rule *rule)
{
    static const char *const others[] = {"on_resolved", "every", "max_steps",
                                         "once",        "guard", "ineffective_after"};
    if (!as_yaml_find(node, "hold"))
        return;
    rule->action =
        (struct as_action){.kind = AS_ACTION_HOLD, .hold = (enum as_ways)(rule->hold + 1)};
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++) {
        const struct as_yaml_node *key = schema_find_key(node, others[i]);
        if (key)
            loader_report(loader, key,
                          "`%s` goes with a rule that changes the size: `hold` lasts while its "
                          "alert fires",
                          others[i]);
    }
}

/* The keys of a rule with an alert, and what an `always` rule lacks for them. */
static const struct {
    const char *key, *why;
} alert_keys[] = {
    {"receivers", "it has no alert that a receiver gets"},
    {"hold", "it would never end"},
    {"once", "its incident never ends"},
    {"max_steps", "its incident never ends"},
    {"on_resolved", "its incident never ends"},
    {"ineffective_after", "it has no alert that shows whether a change helped"},
};

static void refuse_fixed_amount(struct loader *loader, const struct as_yaml_node *node,
                                const struct as_action *action)
{
    static const char *const keys[] = {"scale_up", "scale_down", "scale_to"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(keys); i++) {
        const struct as_yaml_node *key = schema_find_key(node, keys[i]);
        if (key && action->step_count == 0 && !action->is_fit && !action->is_take)
            loader_report(
                loader, key,
                "an `always` rule with a fixed amount would go to the bound: use `track`, "
                "`fit`, `take`, or `steps` by a `query` or `nodes`");
    }
}

static void refuse_alert_source(struct loader *loader, const struct as_yaml_node *node)
{
    static const char *const actions[] = {"scale_up", "scale_down", "scale_to", "track",
                                          "pass_through"};
    static const char *const sources[] = {"annotation", "label"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(actions); i++) {
        const struct as_yaml_node *action = as_yaml_find(node, actions[i]);
        const struct as_yaml_node *value = action ? as_yaml_find(action, "value") : NULL;
        const struct as_yaml_node *source =
            value && value->kind == AS_YAML_MAP ? value : action; /* of `track` a number */
        for (size_t k = 0; source && k < AS_ARRAY_SIZE(sources); k++) {
            const struct as_yaml_node *key = schema_find_key(source, sources[k]);
            if (key)
                loader_report(loader, key,
                              "an `always` rule has no alert with a%s `%s`: use `query` or `nodes`",
                              k == 0 ? "n" : "", sources[k]);
        }
    }
}

/* The size of an `always` rule comes from a value of the decision itself. */
static void finish_always(struct loader *loader, const struct as_yaml_node *node,
                          const struct raw_rule *rule)
{
    const struct as_yaml_node *always = as_yaml_find(node, "always");
    if (always && always->kind == AS_YAML_SCALAR && strcmp(always->text, "false") == 0)
        loader_report(loader, always, "write `always: true`, or `match` with the alert's labels");
    if (!rule->is_always)
        return;
    for (size_t i = 0; i < AS_ARRAY_SIZE(alert_keys); i++) {
        const struct as_yaml_node *key = schema_find_key(node, alert_keys[i].key);
        if (key)
            loader_report(loader, key, "an `always` rule has no `%s`: %s", alert_keys[i].key,
                          alert_keys[i].why);
    }
    refuse_fixed_amount(loader, node, &rule->action);
    refuse_alert_source(loader, node);
}

static void check_fallback(struct loader *loader, const struct as_yaml_node *node,
                           const struct raw_rule *rule)
{
    const struct as_yaml_node *key = schema_find_key(node, "fallback");
    const struct raw_source *source = &rule->source;
    if (!key)
        return;
    if (as_yaml_find(node, "scale_down"))
        loader_report(loader, key, "`fallback` raises the size, which `scale_down` must not do");
    else if (!source->query && !source->annotation && !source->label && !source->nodes)
        loader_report(loader, key,
                      "`fallback` is for a value that is unavailable, and this rule has none");
}

static void rules_finish_rule(struct loader *loader, const struct as_yaml_node *node,
                              const struct as_yaml_node *at, void *object)
{
    struct raw_rule *rule = object;
    rule->tree = loader->tree;
    rule->node = node;
    if (rule->once && rule->max_steps > 1)
        loader_report(loader, schema_find_key(node, "once"),
                      "`once` is the same as `max_steps: 1`, but `max_steps` is %d",
                      rule->max_steps);
    if (rule->once)
        rule->max_steps = 1;
    if (!rule->every_us && (rule->source.query || rule->source.nodes || rule->action.is_fit ||
                            rule->action.is_take || as_yaml_find(node, "track")))
        rule->every_us = 15 * AS_US_PER_S;
    check_guard(loader, node, rule);
    finish_hold(loader, node, rule);
    finish_always(loader, node, rule);
    check_fallback(loader, node, rule);
}

static int compare_units(const void *left, const void *right)
{
    return strcmp(((const struct loader_unit *)left)->target,
                  ((const struct loader_unit *)right)->target);
}

/* The unit of the rule's target, which another file may have. A unit that is no quantity is
 * reported at the target. */
static void set_rule_unit(struct loader *loader, const struct as_yaml_node *node)
{
    const struct as_yaml_node *target = as_yaml_find(node, "target");
    if (!target || target->kind != AS_YAML_SCALAR || loader->unit_count == 0)
        return;
    const struct loader_unit wanted = {.target = target->text};
    const struct loader_unit *unit =
        bsearch(&wanted, loader->units, loader->unit_count, sizeof(*loader->units), compare_units);
    struct as_unit read;
    if (unit && as_unit_parse(unit->text, &read, NULL) == 0)
        loader->unit = read;
}

void collect_units(struct loader *loader, const struct as_yaml_node *const *roots, size_t count)
{
    struct loader_unit *units = NULL;
    size_t used = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        const struct as_yaml_node *targets = as_yaml_find(roots[i], "targets");
        all += targets && targets->kind == AS_YAML_MAP ? targets->count : 0;
    }
    units = as_arena_alloc(loader->arena, all, sizeof(*units));
    for (size_t i = 0; i < count; i++) {
        const struct as_yaml_node *targets = as_yaml_find(roots[i], "targets");
        for (uint32_t k = 0; targets && targets->kind == AS_YAML_MAP && k < targets->count; k++) {
            const struct as_yaml_node *unit = find_unit(targets->pairs[k].value);
            if (unit)
                units[used++] = (struct loader_unit){targets->pairs[k].key->text, unit->text};
        }
    }
    if (used > 0)
        qsort(units, used, sizeof(*units), compare_units);
    loader->units = units;
    loader->unit_count = used;
}

static const struct schema_choice rule_choices[] = {
    {SCHEMA_ONE_OF("match", "always"), false},
    {SCHEMA_ONE_OF("scale_up", "scale_down", "scale_to", "track", "pass_through", "hold"), false},
    {0}};

const struct schema schema_rule = SCHEMA(
    "rule", raw_rule, rule_fields,
    .example = "{name: busy, match: ['alertname=\"Busy\"'], target: web, scale_up: {by: 50%}}",
    .choices = rule_choices, .set_unit = set_rule_unit, .finish = rules_finish_rule);

static const struct schema_field file_fields[] = {
    SCHEMA_FIELD("targets", NAMED, raw_rule_file, targets, .count_offset = IN_FILE(target_count),
                 .map = &schema_target),
    SCHEMA_FIELD("rules", MAPS, raw_rule_file, rules, .count_offset = IN_FILE(rule_count),
                 .map = &schema_rule),
    {0},
};

const struct schema schema_rule_file = {
    .name = "rule file",
    .size = sizeof(struct raw_rule_file),
    .fields = file_fields,
    .refusals =
        (const struct schema_refusal[]){
            {"groups",
             "this looks like a file of Prometheus' alerting rules; a rule file has "
             "`targets` and `rules`. To compare it with them: check --prometheus-rules FILE",
             false},
            {"tests", "this is a file of tests: run it with `alertscaler test`", false},
            {"route",
             "this looks like Alertmanager's configuration. To compare rules with it: "
             "check --alertmanager FILE",
             false},
            {0},
        },
};
