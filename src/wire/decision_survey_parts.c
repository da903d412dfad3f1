/*
 * Reads nodes and shapes of surveys, and the parts that they share with groups: see the header.
 */
#include "decision_survey.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/encode.h>

#define HEX_DIGITS 16

/* Shared parts */

/* What is missing at the end is 0. */
void decision_read_amounts(struct as_reader *reader, const char *name,
                           const struct survey_reader *survey, struct as_resources *amounts_out)
{
    size_t count;
    const json_t *list = as_read_list(reader, name, &count);

    if (count > survey->survey->resources.count) {
        as_read_fail(reader, name, "more amounts than resources");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        const json_int_t amount = json_integer_value(item);

        if (!json_is_integer(item) || amount < -AS_RES_AMOUNT_MAX || amount > AS_RES_AMOUNT_MAX) {
            as_read_fail(reader, name, "[%zu]: expected an integer from -2^62 to 2^62", i);
            return;
        }
        amounts_out->amount[i] = amount;
    }
}

void decision_read_text(struct as_reader *reader, const char *name, struct as_arena *arena,
                        const char **text_out)
{
    const char *text = NULL;

    as_read_text(reader, name, &text);
    if (text)
        *text_out = as_arena_strdup(arena, text);
}

const char *const *decision_read_texts(struct as_reader *reader, const char *name,
                                       struct as_arena *arena, size_t *count_out)
{
    size_t count;
    const json_t *list = as_read_list(reader, name, &count);
    const char **texts = as_arena_alloc(arena, count, sizeof(*texts));

    *count_out = 0;
    for (size_t i = 0; i < count; i++) {
        texts[i] = as_arena_strdup(arena, json_string_value(json_array_get(list, i)));
        if (!texts[i]) {
            as_read_fail(reader, name, "[%zu]: expected a string", i);
            return texts;
        }
    }
    *count_out = count;
    return texts;
}

const struct as_labels *decision_read_labels(struct as_reader *reader, const char *name,
                                             struct as_arena *arena)
{
    static const struct as_labels none = {.count = 0};
    struct as_reader object;
    const struct as_labels *labels = &none;
    const char *key;
    json_t *value;
    size_t count = 0;

    as_read_object(&object, reader, name);
    struct as_label *pairs = as_arena_alloc(arena, json_object_size(object.object), sizeof(*pairs));
    json_object_foreach((json_t *)object.object, key, value)
    {
        pairs[count] = (struct as_label){.name = key, .value = json_string_value(value)};
        if (!pairs[count++].value) {
            as_read_fail(&object, key, "expected a string");
            return &none;
        }
    }
    if (count > 0 && as_labels_new_in(arena, pairs, count, &labels) != 0)
        as_read_fail(reader, name, "too large");
    return labels;
}

const struct as_taint *decision_read_taints(struct as_reader *reader, struct as_arena *arena,
                                            size_t *count_out)
{
    const json_t *list = as_read_list(reader, "taints", count_out);
    struct as_taint *taints = as_arena_alloc(arena, *count_out, sizeof(*taints));

    for (size_t i = 0; i < *count_out; i++) {
        struct as_reader item;

        taints[i] = (struct as_taint){.key = "", .value = ""};
        as_read_item(&item, reader, "taints", list, i);
        as_read_require(&item, "key");
        as_read_require(&item, "effect");
        decision_read_text(&item, "key", arena, &taints[i].key);
        decision_read_text(&item, "value", arena, &taints[i].value);
        taints[i].effect = (enum as_taint_effect)as_read_enum(&item, "effect", decision_effects,
                                                              AS_TAINT_NO_SCHEDULE);
        as_read_end(&item);
    }
    return taints;
}

/* False: it is no pair of an index and a count. */
static bool read_pair(const json_t *pair, size_t shape_count, struct as_survey_pods *pods)
{
    const json_t *shape = json_array_get(pair, 0), *count = json_array_get(pair, 1);
    const json_int_t index = json_integer_value(shape), number = json_integer_value(count);

    if (json_array_size(pair) != 2 || !json_is_integer(shape) || !json_is_integer(count) ||
        index < 0 || (uint64_t)index >= shape_count || number < 1 || number > UINT32_MAX)
        return false;
    *pods = (struct as_survey_pods){.shape = (uint32_t)index, .count = (uint32_t)number};
    return true;
}

const struct as_survey_pods *decision_read_pods(struct as_reader *reader, const char *name,
                                                const struct survey_reader *survey,
                                                size_t *count_out)
{
    size_t count;
    const json_t *list = as_read_list(reader, name, &count);
    struct as_survey_pods *pods = as_arena_alloc(survey->arena, count, sizeof(*pods));
    bool *is_seen = as_arena_alloc(survey->arena, survey->survey->shape_count, sizeof(*is_seen));

    *count_out = 0;
    for (size_t i = 0; i < count; i++) {
        if (!read_pair(json_array_get(list, i), survey->survey->shape_count, &pods[i])) {
            as_read_fail(reader, name,
                         "[%zu]: expected [shape, count], a shape below %zu and a count from 1", i,
                         survey->survey->shape_count);
            return pods;
        }
        if (is_seen[pods[i].shape]) {
            as_read_fail(reader, name, "[%zu]: the shape is there twice", i);
            return pods;
        }
        is_seen[pods[i].shape] = true;
    }
    *count_out = count;
    return pods;
}

uint64_t decision_read_hex(struct as_reader *reader, const char *name)
{
    const char *text = NULL;
    unsigned char bytes[HEX_DIGITS / 2];
    uint64_t number = 0;

    as_read_text(reader, name, &text);
    if (!text)
        return 0;
    if (strlen(text) != HEX_DIGITS || !as_decode_hex(text, HEX_DIGITS, bytes)) {
        as_read_fail(reader, name, "expected %d hex digits", HEX_DIGITS);
        return 0;
    }
    for (size_t i = 0; i < sizeof(bytes); i++)
        number = number << 8 | bytes[i];
    return number;
}

unsigned decision_read_bits(struct as_reader *reader, const char *name,
                            const struct as_read_word *words)
{
    size_t count;
    const json_t *list = as_read_list(reader, name, &count);
    unsigned bits = 0;

    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        size_t word = 0;

        while (text && words[word].text && strcmp(words[word].text, text) != 0)
            word++;
        if (!text || !words[word].text) {
            as_read_fail(reader, name, "[%zu]: no such word", i);
            return bits;
        }
        bits |= (unsigned)words[word].value;
    }
    return bits;
}

/* Shapes */

static void read_requirement(struct as_reader *shape, const json_t *term, size_t index,
                             struct survey_reader *survey, struct as_node_requirement *requirement)
{
    struct as_reader reader;

    as_read_item(&reader, shape, "affinity", term, index);
    as_read_require(&reader, "key");
    as_read_require(&reader, "operator");
    decision_read_text(&reader, "key", survey->arena, &requirement->key);
    requirement->operator_ = (enum as_node_operator)as_read_enum(
        &reader, "operator", decision_operators, AS_NODE_EXISTS);
    as_read_bool(&reader, "field", &requirement->is_field);
    requirement->values =
        decision_read_texts(&reader, "values", survey->arena, &requirement->value_count);
    as_read_end(&reader);
}

static void read_affinity(struct as_reader *reader, struct survey_reader *survey,
                          struct as_pod_shape *pod)
{
    const json_t *list = as_read_list(reader, "affinity", &pod->term_count);
    struct as_node_term *terms = as_arena_alloc(survey->arena, pod->term_count, sizeof(*terms));

    pod->has_affinity = list != NULL;
    pod->terms = terms;
    for (size_t i = 0; i < pod->term_count; i++) {
        const json_t *term = json_array_get(list, i);

        if (!json_is_array(term)) {
            as_read_fail(reader, "affinity", "[%zu]: expected a list", i);
            return;
        }
        terms[i].count = json_array_size(term);
        struct as_node_requirement *requirements =
            as_arena_alloc(survey->arena, terms[i].count, sizeof(*requirements));
        for (size_t k = 0; k < terms[i].count; k++)
            read_requirement(reader, term, k, survey, &requirements[k]);
        terms[i].requirements = requirements;
    }
}

static void read_tolerations(struct as_reader *reader, struct survey_reader *survey,
                             struct as_pod_shape *pod)
{
    const json_t *list = as_read_list(reader, "tolerations", &pod->toleration_count);
    struct as_toleration *tolerations =
        as_arena_alloc(survey->arena, pod->toleration_count, sizeof(*tolerations));

    for (size_t i = 0; i < pod->toleration_count; i++) {
        struct as_reader item;

        tolerations[i] = (struct as_toleration){.key = "", .value = ""};
        as_read_item(&item, reader, "tolerations", list, i);
        decision_read_text(&item, "key", survey->arena, &tolerations[i].key);
        decision_read_text(&item, "value", survey->arena, &tolerations[i].value);
        as_read_bool(&item, "exists", &tolerations[i].is_exists);
        tolerations[i].effects = decision_read_bits(&item, "effects", decision_effects);
        as_read_end(&item);
    }
    pod->tolerations = tolerations;
}

static void read_ports(struct as_reader *reader, struct survey_reader *survey,
                       struct as_pod_shape *pod)
{
    const json_t *list = as_read_list(reader, "ports", &pod->port_count);
    struct as_host_port *ports = as_arena_alloc(survey->arena, pod->port_count, sizeof(*ports));

    for (size_t i = 0; i < pod->port_count; i++) {
        struct as_reader item;
        int64_t port = 0;

        ports[i] = (struct as_host_port){.ip = "0.0.0.0", .protocol = "TCP"};
        as_read_item(&item, reader, "ports", list, i);
        decision_read_text(&item, "ip", survey->arena, &ports[i].ip);
        decision_read_text(&item, "protocol", survey->arena, &ports[i].protocol);
        as_read_require(&item, "port");
        as_read_i64(&item, "port", 0, UINT16_MAX, &port);
        ports[i].port = (uint16_t)port;
        as_read_end(&item);
    }
    pod->ports = ports;
}

static void read_shape_budgets(struct as_reader *reader, struct survey_reader *survey,
                               struct as_survey_shape *shape)
{
    const json_t *list = as_read_list(reader, "budgets", &shape->budget_count);
    uint32_t *budgets = as_arena_alloc(survey->arena, shape->budget_count, sizeof(*budgets));

    for (size_t i = 0; i < shape->budget_count; i++) {
        const json_t *item = json_array_get(list, i);
        const json_int_t index = json_integer_value(item);

        if (!json_is_integer(item) || index < 0 ||
            (uint64_t)index >= survey->survey->budget_count ||
            (i > 0 && (uint32_t)index <= budgets[i - 1])) {
            as_read_fail(reader, "budgets", "[%zu]: expected ascending indices of budgets", i);
            return;
        }
        budgets[i] = (uint32_t)index;
    }
    shape->budgets = budgets;
}

static void read_shape(struct as_reader *reader, struct survey_reader *survey,
                       struct as_survey_shape *shape)
{
    struct as_pod_shape *pod = &shape->pod;
    int64_t waiting = 0;

    decision_read_amounts(reader, "requests", survey, &pod->requests);
    for (size_t i = 0; i < AS_RES_MAX; i++)
        if (pod->requests.amount[i] < 0)
            as_read_fail(reader, "requests", "[%zu]: below 0", i);
    pod->selector = decision_read_labels(reader, "selector", survey->arena);
    read_affinity(reader, survey, pod);
    read_tolerations(reader, survey, pod);
    read_ports(reader, survey, pod);
    pod->loner = decision_read_hex(reader, "loner");
    decision_read_text(reader, "zone", survey->arena, &pod->zone);
    as_read_i32(reader, "priority", INT32_MIN, &pod->priority);
    pod->unchecked = decision_read_bits(reader, "unchecked", decision_unchecked);
    pod->eviction = (enum as_eviction_class)as_read_enum(reader, "eviction", decision_evictions,
                                                         AS_EVICTION_ALLOWED);
    as_read_i64(reader, "waiting", 0, AS_RES_AMOUNT_MAX, &waiting);
    shape->waiting = (uint64_t)waiting;
    shape->digest = decision_read_hex(reader, "digest");
    read_shape_budgets(reader, survey, shape);
    as_read_end(reader);
}

void decision_read_shapes(struct as_reader *observed, struct survey_reader *survey)
{
    size_t count;
    const json_t *list = as_read_list(observed, "shapes", &count);

    if (count > AS_SURVEY_SHAPES_MAX) {
        as_read_fail(observed, "shapes", "more than %d", AS_SURVEY_SHAPES_MAX);
        return;
    }
    struct as_survey_shape *shapes = as_arena_alloc(survey->arena, count, sizeof(*shapes));
    for (size_t i = 0; i < count; i++) {
        struct as_reader item;

        as_read_item(&item, observed, "shapes", list, i);
        read_shape(&item, survey, &shapes[i]);
    }
    survey->survey->shapes = shapes;
    survey->survey->shape_count = count;
}

/* Nodes */

static void read_stay(struct as_reader *reader, struct as_survey_node *node)
{
    const char *word = NULL;
    enum as_stay stay = 0;

    as_read_text(reader, "stays", &word);
    node->is_candidate = word == NULL;
    while (word && stay < AS_STAY_COUNT && strcmp(as_stay_get_word(stay), word) != 0)
        stay++;
    if (stay == AS_STAY_COUNT)
        as_read_fail(reader, "stays", "\"%s\" is no reason to stay", word);
    else
        node->stay = stay;
}

static void read_place(struct as_reader *reader, struct survey_reader *survey,
                       struct as_survey_node *node)
{
    const size_t count = survey->survey->group_count;
    int64_t group = AS_SURVEY_NO_GROUP;

    if (as_read_has(reader, "group") && count == 0)
        as_read_fail(reader, "group", "there are no groups");
    as_read_i64(reader, "group", 0, (int64_t)count - 1, &group);
    node->group = (uint32_t)group;
    if (node->is_candidate && node->group == AS_SURVEY_NO_GROUP)
        as_read_fail(reader, "group", "missing: without a group a node \"stays\"");
}

static void read_node(struct as_reader *reader, struct survey_reader *survey,
                      struct as_survey_node *node)
{
    node->node.name = "";
    node->is_ready = true;
    as_read_require(reader, "name");
    decision_read_text(reader, "name", survey->arena, &node->node.name);
    read_stay(reader, node);
    read_place(reader, survey, node);
    decision_read_amounts(reader, "allocatable", survey, &node->node.allocatable);
    decision_read_amounts(reader, "left", survey, &node->left);
    node->node.labels = decision_read_labels(reader, "labels", survey->arena);
    node->node.taints = decision_read_taints(reader, survey->arena, &node->node.taint_count);
    node->guests = decision_read_pods(reader, "guests", survey, &node->guest_count);
    node->pods = decision_read_pods(reader, "pods", survey, &node->pod_count);
    as_read_bool(reader, "ready", &node->is_ready);
    as_read_positive(reader, "utilization", &node->utilization);
    as_read_end(reader);
}

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct as_survey_node *)a)->node.name,
                  ((const struct as_survey_node *)b)->node.name);
}

void decision_read_nodes(struct as_reader *observed, struct survey_reader *survey)
{
    size_t count;
    const json_t *list = as_read_list(observed, "pool_nodes", &count);

    if (count > DECISION_NODES_MAX) {
        as_read_fail(observed, "pool_nodes", "more than %d", DECISION_NODES_MAX);
        return;
    }
    struct as_survey_node *nodes = as_arena_alloc(survey->arena, count, sizeof(*nodes));
    for (size_t i = 0; i < count; i++) {
        struct as_reader item;

        as_read_item(&item, observed, "pool_nodes", list, i);
        read_node(&item, survey, &nodes[i]);
    }
    if (count > 1)
        qsort(nodes, count, sizeof(*nodes), compare_nodes);
    for (size_t i = 1; i < count; i++)
        if (strcmp(nodes[i - 1].node.name, nodes[i].node.name) == 0)
            as_read_fail(observed, "pool_nodes", "\"%s\" is there twice", nodes[i].node.name);
    survey->survey->nodes = nodes;
    survey->survey->node_count = count;
}
