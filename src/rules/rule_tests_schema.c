/*
 * The tables of a file of rule tests.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/time.h>

#include "rule_tests_schema.h"

/* --- resources and pods --- */

static void parse_quantity(struct loader *loader, const struct as_yaml_node *value, double *out)
{
    char found[AS_YAML_FOUND_SIZE];
    if (value->kind != AS_YAML_SCALAR || as_quantity_parse(value->text, value->size, out) != 0)
        loader_report(loader, value, "expected a quantity like 250m, 1.5 or 512Mi, found %s",
                      as_yaml_describe(value, found));
}

static void parse_cpu(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_quantity(loader, value, &((struct raw_resources *)object)->of[AS_RESOURCE_CPU]);
}

static void parse_memory(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_quantity(loader, value, &((struct raw_resources *)object)->of[AS_RESOURCE_MEMORY]);
}

static void init_resources(struct loader *loader, void *object)
{
    struct raw_resources *resources = object;
    for (size_t i = 0; i < AS_RESOURCE_COUNT; i++)
        resources->of[i] = (double)NAN;
}

static const struct schema_field resource_fields[] = {
    {.key = "cpu",
     .type = SCHEMA_CUSTOM,
     .parse = parse_cpu,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {.key = "memory",
     .type = SCHEMA_CUSTOM,
     .parse = parse_memory,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {0},
};

const struct schema schema_test_resources =
    SCHEMA("requests", raw_resources, resource_fields, .init = init_resources);

static const struct schema_field pod_fields[] = {
    SCHEMA_FIELD("name", STRING, raw_pod, name, .is_required = true),
    SCHEMA_FIELD("phase", WORD, raw_pod, phase,
                 .words = (const char *const[]){"Pending", "Running", "Succeeded", "Failed",
                                                "Unknown", NULL},
                 .fallback = "Running"),
    SCHEMA_FIELD("ready", WORD, raw_pod, ready,
                 .words = (const char *const[]){"false", "true", "unknown", NULL},
                 .fallback = "true"),
    SCHEMA_FIELD("deleting", BOOL, raw_pod, deleting, .fallback = "false"),
    SCHEMA_FIELD("age", DURATION, raw_pod, age_us, .fallback = "1d"),
    SCHEMA_FIELD("ready_for", DURATION, raw_pod, ready_for_us),
    SCHEMA_FIELD("requests", MAP, raw_pod, requests, .map = &schema_test_resources),
    SCHEMA_FIELD("limits", MAP, raw_pod, limits, .map = &schema_test_resources),
    {0},
};

static void init_pod(struct loader *loader, void *object)
{
    ((struct raw_pod *)object)->ready_for_us = -1;
}

static void finish_pod(struct loader *loader, const struct as_yaml_node *node,
                       const struct as_yaml_node *at, void *object)
{
    const struct raw_pod *pod = object;
    if (pod->ready_for_us > pod->age_us)
        loader_report(loader, as_yaml_find(node, "ready_for"), "longer than the pod's `age`");
}

const struct schema schema_test_pod =
    SCHEMA("pods", raw_pod, pod_fields, .init = init_pod, .finish = finish_pod);

/* --- the nodes behind a target --- */

#define IN_NODES(member) offsetof(struct raw_nodes_seen, member)

static const struct schema_field nodes_fields[] = {
    {.key = "open",
     .type = SCHEMA_INT,
     .offset = IN_NODES(open),
     .min = 0,
     .max = AS_SIZE_MAX,
     .fallback = "0"},
    {.key = "requests",
     .type = SCHEMA_MAP,
     .offset = IN_NODES(requests),
     .map = &schema_test_resources},
    {.key = "allocatable",
     .type = SCHEMA_MAP,
     .offset = IN_NODES(allocatable),
     .map = &schema_test_resources},
    {.key = "template", .type = SCHEMA_BOOL, .offset = IN_NODES(is_template), .fallback = "false"},
    {.key = "waiting",
     .type = SCHEMA_INT,
     .offset = IN_NODES(waiting),
     .min = 0,
     .max = AS_SIZE_MAX,
     .fallback = "0"},
    {.key = "coming",
     .type = SCHEMA_INT,
     .offset = IN_NODES(coming),
     .min = 0,
     .max = AS_SIZE_MAX,
     .fallback = "0"},
    {.key = "error", .type = SCHEMA_STRING, .offset = IN_NODES(error)},
    {0},
};

static void finish_nodes(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    struct raw_nodes_seen *nodes = object;
    struct raw_resources *const both[] = {&nodes->requests, &nodes->allocatable};
    for (size_t i = 0; i < AS_ARRAY_SIZE(both); i++)
        for (enum as_resource r = 0; r < AS_RESOURCE_COUNT; r++)
            if (isnan(both[i]->of[r]))
                both[i]->of[r] = 0;
    if (nodes->is_template && nodes->open > 0)
        loader_report(loader, as_yaml_find(node, "template"),
                      "a new node is only counted where none is `open`");
    if (nodes->open > 0 && (nodes->waiting > 0 || nodes->coming > 0))
        loader_report(loader, as_yaml_find(node, nodes->waiting > 0 ? "waiting" : "coming"),
                      "it only counts where no node is `open`");
}

const struct schema schema_test_nodes = {
    .name = "tests.nodes",
    .size = sizeof(struct raw_nodes_seen),
    .fields = nodes_fields,
    .finish = finish_nodes,
};

/* --- the state of a target --- */

#define STATE_FIELDS(start)                                                                        \
    {.key = "replicas",                                                                            \
     .type = SCHEMA_INT,                                                                           \
     .offset = (start) + offsetof(struct raw_state, replicas),                                     \
     .min = 0,                                                                                     \
     .max = AS_SIZE_MAX},                                                                          \
        {.key = "nodes",                                                                           \
         .type = SCHEMA_MAP,                                                                       \
         .offset = (start) + offsetof(struct raw_state, nodes),                                    \
         .map = &schema_test_nodes},                                                               \
    {                                                                                              \
        .key = "pods", .type = SCHEMA_MAPS, .offset = (start) + offsetof(struct raw_state, pods),  \
        .count_offset = (start) + offsetof(struct raw_state, pod_count), .map = &schema_test_pod,  \
        .max = AS_SAMPLES_MAX                                                                      \
    }

static const struct schema_field state_fields[] = {STATE_FIELDS(0), {0}};

static void init_state(struct loader *loader, void *object)
{
    ((struct raw_state *)object)->replicas = -1;
}

static int compare_names(const void *left, const void *right)
{
    const struct as_yaml_node *a = *(const struct as_yaml_node *const *)left;
    const struct as_yaml_node *b = *(const struct as_yaml_node *const *)right;
    int status = strcmp(a->text, b->text);
    return status ? status : (a->place.line > b->place.line) - (a->place.line < b->place.line);
}

/* Pods have unique names. */
static void check_pod_names(struct loader *loader, const struct as_yaml_node *list)
{
    if (!list || list->kind != AS_YAML_LIST)
        return;
    const struct as_yaml_node **names = as_xcalloc(list->count, sizeof(*names));
    size_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct as_yaml_node *name = as_yaml_find(list->items[i], "name");
        if (name && name->kind == AS_YAML_SCALAR)
            names[count++] = name;
    }
    if (count > 1)
        qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(names[i - 1]->text, names[i]->text) == 0)
            loader_report(loader, names[i], "another pod has this name");
    }
    free(names);
}

static void take_state(struct loader *loader, const struct as_yaml_node *node,
                       struct raw_state *state)
{
    const struct as_yaml_node *pods = as_yaml_find(node, "pods");
    state->has_pods = pods != NULL;
    state->has_nodes = as_yaml_find(node, "nodes") != NULL;
    check_pod_names(loader, pods);
}

static void finish_state(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    struct raw_state *state = object;
    state->key = at;
    take_state(loader, node, state);
    if (!schema_find_key(node, "replicas") && !state->has_pods)
        loader_report(loader, at, "`replicas` or `pods` is needed");
    if (state->replicas < 0)
        state->replicas = (int32_t)state->pod_count;
}

const struct schema schema_test_state =
    SCHEMA("tests.targets", raw_state, state_fields, .init = init_state, .finish = finish_state);

/* --- labels --- */

const struct schema_field rule_test_label_forms[] = {
    SCHEMA_FORM(TABLE, .forms = SCHEMA_FORMS(SCHEMA_FORM(TEXT))), {0}};

/* Values that look like numbers are still text. */
void rule_test_parse_labels(struct loader *loader, const struct as_yaml_node *map,
                            struct raw_labels *labels)
{
    if (!schema_is_kind(loader, map, AS_YAML_MAP))
        return;
    struct as_label *pairs = as_arena_alloc(loader->arena, map->count, sizeof(*pairs));
    size_t count = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct as_yaml_node *key = map->pairs[i].key, *value = map->pairs[i].value;
        char found[AS_YAML_FOUND_SIZE];
        if (key->size == 0)
            loader_report(loader, key, "a label needs a name");
        if (value->kind != AS_YAML_SCALAR || value->size == 0 || as_yaml_is_null(value)) {
            loader_report(loader, value, "expected the value of a label, found %s",
                          as_yaml_describe(value, found));
            continue;
        }
        pairs[count].name = as_arena_strdup(loader->arena, key->text);
        pairs[count++].value = as_arena_strdup(loader->arena, value->text);
    }
    *labels = (struct raw_labels){pairs, count};
}

static void parse_fire(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_test_parse_labels(loader, value, &((struct raw_input *)object)->fire);
}

static void parse_resolve(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_test_parse_labels(loader, value, &((struct raw_input *)object)->resolve);
}

static void parse_annotations(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_test_parse_labels(loader, value, &((struct raw_input *)object)->annotations);
}

/* --- input --- */

#define IN_INPUT(member) offsetof(struct raw_input, member)

static const struct schema_field input_fields[] = {
    RULE_TEST_AT(raw_input),
    {.key = "fire",
     .type = SCHEMA_CUSTOM,
     .parse = parse_fire,
     .forms = rule_test_label_forms,
     .expected = "map of labels"},
    {.key = "resolve",
     .type = SCHEMA_CUSTOM,
     .parse = parse_resolve,
     .forms = rule_test_label_forms,
     .expected = "map of labels"},
    {.key = "annotations",
     .type = SCHEMA_CUSTOM,
     .parse = parse_annotations,
     .forms = rule_test_label_forms,
     .expected = "map of annotations"},
    SCHEMA_FIELD("starts", DURATION, raw_input, starts_us, .max = AS_RULE_TEST_TIME_MAX),
    SCHEMA_FIELD("every", DURATION, raw_input, every_us, .min = AS_US_PER_S),
    SCHEMA_FIELD("until", DURATION, raw_input, until_us, .max = AS_RULE_TEST_TIME_MAX),
    SCHEMA_FIELD("receiver", STRING, raw_input, receiver, .fallback = "alertscaler"),
    SCHEMA_FIELD("target", STRING, raw_input, target),
    STATE_FIELDS(IN_INPUT(state)),
    SCHEMA_FIELD("cluster", MAP, raw_input, cluster, .map = &schema_test_cluster),
    SCHEMA_FIELD("approve", STRING, raw_input, approve),
    SCHEMA_FIELD("deny", STRING, raw_input, deny),
    {0},
};

static void init_input(struct loader *loader, void *object)
{
    struct raw_input *input = object;
    input->starts_us = -1;
    input->state.replicas = -1;
}

void rule_test_check_companions(struct loader *loader, const struct as_yaml_node *node,
                                const char *const *keys, bool is_allowed, const char *beside)
{
    for (; *keys && !is_allowed; keys++) {
        const struct as_yaml_node *key = schema_find_key(node, *keys);
        if (key)
            loader_report(loader, key, "`%s` goes only with %s", *keys, beside);
    }
}

/* `every` and `until` together say how often a firing alert is repeated. */
static void check_repeats(struct loader *loader, const struct as_yaml_node *node,
                          const struct raw_input *input)
{
    static const char *const keys[] = {"every", "until", NULL};
    const struct as_yaml_node *every = schema_find_key(node, "every");
    const struct as_yaml_node *until = schema_find_key(node, "until");
    rule_test_check_companions(loader, node, keys, schema_find_key(node, "fire") != NULL, "`fire`");
    if (!every != !until)
        loader_report(loader, every ? every : until, "`every` and `until` go together");
    else if (until && input->until_us < input->at_us)
        loader_report(loader, as_yaml_find(node, "until"), "earlier than `at`");
    else if (input->every_us > 0 &&
             (input->until_us - input->at_us) / input->every_us > REPEATS_MAX)
        loader_report(loader, as_yaml_find(node, "every"), "more than %d repeats", REPEATS_MAX);
}

static const struct schema_choice input_choices[] = {
    {SCHEMA_ONE_OF("fire", "resolve", "target", "cluster", "approve", "deny"), false}, {0}};

static void finish_input(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    static const char *const of_alerts[] = {"annotations", "starts", "receiver", NULL};
    static const char *const of_targets[] = {"replicas", "pods", "nodes", NULL};
    struct raw_input *input = object;
    const bool is_target = as_yaml_find(node, "target") != NULL;
    const bool is_alert = schema_find_key(node, "fire") || schema_find_key(node, "resolve");
    input->node = node;
    take_state(loader, node, &input->state);
    if (!schema_has_one_of(node, input_choices->keys))
        return;
    rule_test_check_companions(loader, node, of_alerts, is_alert, "`fire` or `resolve`");
    rule_test_check_companions(loader, node, of_targets, is_target, "`target`");
    check_repeats(loader, node, input);
    if (is_target && !input->state.has_pods && !input->state.has_nodes &&
        !schema_find_key(node, "replicas"))
        loader_report(loader, at, "`replicas`, `pods` or `nodes` is needed");
    if (input->starts_us > input->at_us)
        loader_report(loader, as_yaml_find(node, "starts"), "later than `at`");
}

const struct schema schema_test_input =
    SCHEMA("tests.input", raw_input, input_fields, .choices = input_choices, .init = init_input,
           .finish = finish_input);

/* --- queries --- */

static void parse_value(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    (void)schema_parse_number(loader, value, &((struct raw_query *)object)->value);
}

static const struct schema_field sample_forms[] = {
    SCHEMA_FORM(TABLE, .max = AS_SAMPLES_MAX, .when_empty = "expected at least one pod",
                .forms = SCHEMA_FORMS(SCHEMA_FORM(NUMBER))),
    {0}};

static void parse_samples(struct loader *loader, const struct as_yaml_node *map, void *object)
{
    struct raw_query *query = object;
    if (!schema_is_kind(loader, map, AS_YAML_MAP) || !schema_check_count(loader, sample_forms, map))
        return;
    struct as_sample *samples = as_arena_alloc(loader->arena, map->count, sizeof(*samples));
    for (uint32_t i = 0; i < map->count; i++) {
        samples[i].pod = as_arena_strdup(loader->arena, map->pairs[i].key->text);
        (void)schema_parse_number(loader, map->pairs[i].value, &samples[i].value);
    }
    query->samples = samples;
    query->sample_count = map->count;
}

static const struct schema_field query_fields[] = {
    SCHEMA_FIELD("query", TEXT, raw_query, query, .is_required = true),
    SCHEMA_FIELD("at", DURATION, raw_query, at_us, .max = AS_RULE_TEST_TIME_MAX, .fallback = "0s"),
    {.key = "value",
     .type = SCHEMA_CUSTOM,
     .parse = parse_value,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(NUMBER)),
     .expected = "number"},
    {.key = "pods",
     .type = SCHEMA_CUSTOM,
     .parse = parse_samples,
     .forms = sample_forms,
     .expected = "map of numbers"},
    SCHEMA_FIELD("error", STRING, raw_query, error),
    {0},
};

static void finish_query(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    ((struct raw_query *)object)->node = node;
}

static const struct schema_choice query_choices[] = {
    {SCHEMA_ONE_OF("value", "pods", "error"), false}, {0}};

const struct schema schema_test_query = SCHEMA("tests.queries", raw_query, query_fields,
                                               .choices = query_choices, .finish = finish_query);

/* --- tests and their file --- */

#define IN_TEST(member) offsetof(struct raw_test, member)
#define IN_FILE(member) offsetof(struct raw_test_file, member)

static void parse_start(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    char found[AS_YAML_FOUND_SIZE];
    if (value->kind != AS_YAML_SCALAR ||
        as_wall_time_parse(value->text, value->size, &((struct raw_test *)object)->start) != 0)
        loader_report(loader, value, "expected a time like 2020-01-01T00:00:00Z, found %s",
                      as_yaml_describe(value, found));
}

/* Names or ids of targets: ids have characters that names cannot have. */
static void parse_targets(struct loader *loader, const struct as_yaml_node *map, void *object)
{
    struct raw_test *test = object;
    if (!schema_is_kind(loader, map, AS_YAML_MAP))
        return;
    test->targets = as_arena_alloc(loader->arena, map->count, sizeof(*test->targets));
    test->target_count = map->count;
    for (uint32_t i = 0; i < map->count; i++) {
        struct raw_state *state = &test->targets[i];
        schema_fill_defaults(loader, &schema_test_state, state);
        state->key = map->pairs[i].key;
        schema_parse(loader, &schema_test_state, map->pairs[i].value, map->pairs[i].key, state);
    }
}

static const struct schema_field test_fields[] = {
    SCHEMA_FIELD("name", STRING, raw_test, name, .is_required = true),
    {.key = "start",
     .type = SCHEMA_CUSTOM,
     .parse = parse_start,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(TIME)),
     .expected = "time",
     .fallback = "2020-01-01T00:00:00Z"},
    {.key = "targets",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_targets,
     .forms = SCHEMA_FORMS(
         SCHEMA_FORM(TABLE, .forms = SCHEMA_FORMS(SCHEMA_FORM(MAP, .map = &schema_test_state)))),
     .expected = "map of targets"},
    SCHEMA_FIELD("cluster", MAP, raw_test, cluster, .map = &schema_test_cluster),
    SCHEMA_FIELD("input", MAPS, raw_test, input, .count_offset = IN_TEST(input_count),
                 .map = &schema_test_input),
    SCHEMA_FIELD("queries", MAPS, raw_test, queries, .count_offset = IN_TEST(query_count),
                 .map = &schema_test_query),
    SCHEMA_FIELD("expect", MAPS, raw_test, expect, .is_required = true,
                 .count_offset = IN_TEST(expect_count), .map = &schema_test_expect,
                 .when_empty = "a test that expects nothing cannot fail"),
    {0},
};

static void finish_test(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    struct raw_test *test = object;
    test->node = at;
}

const struct schema schema_test = SCHEMA("tests", raw_test, test_fields, .finish = finish_test);

static const struct schema_field file_fields[] = {
    SCHEMA_FIELD("rule_files", PATHS, raw_test_file, rule_files,
                 .count_offset = IN_FILE(rule_file_count),
                 .when_empty = "expected at least one file, found an empty list"),
    SCHEMA_FIELD("config_file", PATH, raw_test_file, config_file),
    SCHEMA_FIELD("tests", MAPS, raw_test_file, tests, .is_required = true,
                 .count_offset = IN_FILE(test_count), .map = &schema_test),
    {0},
};

static void finish_file(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    const struct as_yaml_node *files = as_yaml_find(node, "rule_files");
    if (!files && !as_yaml_find(node, "config_file"))
        loader_report(loader, at, "`rule_files` or `config_file` is needed");
}

const struct schema schema_test_file = {
    .name = "test file",
    .size = sizeof(struct raw_test_file),
    .fields = file_fields,
    .finish = finish_file,
    .refusals =
        (const struct schema_refusal[]){
            {"evaluation_interval", "time goes from one event to the next, not in intervals",
             false},
            {"group_eval_order", "all rules are applied together, in no order", false},
            {"rules", "a file of tests has none: rules stand in the files of `rule_files`", false},
            {"targets", "this looks like a rule file: `alertscaler check` reads those", false},
            {0},
        },
};
