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
    const struct tree_value *at = as_read_list(reader, name, &count);

    if (count > survey->survey->resources.count) {
        as_read_fail(reader, name, "more amounts than resources");
        return;
    }
    for (size_t i = 0; i < count; i++, at = at->next) {
        if (!tree_get_i64(at, -AS_RES_AMOUNT_MAX, AS_RES_AMOUNT_MAX, &amounts_out->amount[i])) {
            as_read_fail(reader, name, "[%zu]: expected an integer from -2^62 to 2^62", i);
            return;
        }
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
    const struct tree_value *at = as_read_list(reader, name, &count);
    const char **texts = as_arena_alloc(arena, count, sizeof(*texts));

    *count_out = 0;
    for (size_t i = 0; i < count; i++, at = at->next) {
        texts[i] = as_arena_strdup(arena, tree_get_text(at));
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
    size_t count = 0;

    as_read_object(&object, reader, name);
    struct as_label *pairs =
        as_arena_alloc(arena, object.object ? object.object->size : 0, sizeof(*pairs));
    for (const struct tree_value *member = object.object ? object.object->first : NULL; member;
         member = member->next) {
        pairs[count] = (struct as_label){.name = member->name, .value = tree_get_text(member)};
        if (!pairs[count++].value) {
            as_read_fail(&object, member->name, "expected a string");
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
    const struct tree_value *at = as_read_list(reader, "taints", count_out);
    struct as_taint *taints = as_arena_alloc(arena, *count_out, sizeof(*taints));

    for (size_t i = 0; i < *count_out; i++, at = at->next) {
        struct as_reader item;

        taints[i] = (struct as_taint){.key = "", .value = ""};
        as_read_item(&item, reader, "taints", at, i);
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

const struct as_host_port *decision_read_ports(struct as_reader *reader, struct as_arena *arena,
                                               size_t *count_out)
{
    const struct tree_value *at = as_read_list(reader, "ports", count_out);
    struct as_host_port *ports = as_arena_alloc(arena, *count_out, sizeof(*ports));

    for (size_t i = 0; i < *count_out; i++, at = at->next) {
        struct as_reader item;
        int64_t port = 0;

        ports[i] = (struct as_host_port){.ip = "0.0.0.0", .protocol = "TCP"};
        as_read_item(&item, reader, "ports", at, i);
        decision_read_text(&item, "ip", arena, &ports[i].ip);
        decision_read_text(&item, "protocol", arena, &ports[i].protocol);
        as_read_require(&item, "port");
        as_read_i64(&item, "port", 0, UINT16_MAX, &port);
        ports[i].port = (uint16_t)port;
        as_read_end(&item);
    }
    return ports;
}

/* False: it is no pair of an index and a count. */
static bool read_pair(const struct tree_value *pair, size_t shape_count,
                      struct as_survey_pods *pods)
{
    const struct tree_value *shape = tree_get_first(pair);
    int64_t index, number;

    if (!tree_is(pair, TREE_ARRAY) || pair->size != 2 ||
        !tree_get_i64(shape, 0, (int64_t)shape_count - 1, &index) ||
        !tree_get_i64(shape->next, 1, UINT32_MAX, &number))
        return false;
    *pods = (struct as_survey_pods){.shape = (uint32_t)index, .count = (uint32_t)number};
    return true;
}

const struct as_survey_pods *decision_read_pods(struct as_reader *reader, const char *name,
                                                const struct survey_reader *survey,
                                                size_t *count_out)
{
    size_t count;
    const struct tree_value *at = as_read_list(reader, name, &count);
    struct as_survey_pods *pods = as_arena_alloc(survey->arena, count, sizeof(*pods));
    bool *is_seen = as_arena_alloc(survey->arena, survey->survey->shape_count, sizeof(*is_seen));

    *count_out = 0;
    for (size_t i = 0; i < count; i++, at = at->next) {
        if (!read_pair(at, survey->survey->shape_count, &pods[i])) {
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
    const struct tree_value *at = as_read_list(reader, name, &count);
    unsigned bits = 0;

    for (size_t i = 0; i < count; i++, at = at->next) {
        const char *text = tree_get_text(at);
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

static void read_requirement(struct as_reader *shape, const struct tree_value *item, size_t index,
                             struct survey_reader *survey, struct as_node_requirement *requirement)
{
    struct as_reader reader;

    as_read_item(&reader, shape, "affinity", item, index);
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
    const struct tree_value *at = as_read_list(reader, "affinity", &pod->term_count);
    struct as_node_term *terms = as_arena_alloc(survey->arena, pod->term_count, sizeof(*terms));

    pod->has_affinity = as_read_has(reader, "affinity");
    pod->terms = terms;
    for (size_t i = 0; i < pod->term_count; i++, at = at->next) {
        if (!tree_is(at, TREE_ARRAY)) {
            as_read_fail(reader, "affinity", "[%zu]: expected a list", i);
            return;
        }
        const struct tree_value *item = at->first;
        terms[i].count = at->size;
        struct as_node_requirement *requirements =
            as_arena_alloc(survey->arena, terms[i].count, sizeof(*requirements));
        for (size_t k = 0; k < terms[i].count; k++, item = item->next)
            read_requirement(reader, item, k, survey, &requirements[k]);
        terms[i].requirements = requirements;
    }
}

static void read_tolerations(struct as_reader *reader, struct survey_reader *survey,
                             struct as_pod_shape *pod)
{
    const struct tree_value *at = as_read_list(reader, "tolerations", &pod->toleration_count);
    struct as_toleration *tolerations =
        as_arena_alloc(survey->arena, pod->toleration_count, sizeof(*tolerations));

    for (size_t i = 0; i < pod->toleration_count; i++, at = at->next) {
        struct as_reader item;

        tolerations[i] = (struct as_toleration){.key = "", .value = ""};
        as_read_item(&item, reader, "tolerations", at, i);
        decision_read_text(&item, "key", survey->arena, &tolerations[i].key);
        decision_read_text(&item, "value", survey->arena, &tolerations[i].value);
        as_read_bool(&item, "exists", &tolerations[i].is_exists);
        tolerations[i].effects = decision_read_bits(&item, "effects", decision_effects);
        as_read_end(&item);
    }
    pod->tolerations = tolerations;
}

static void read_shape_budgets(struct as_reader *reader, struct survey_reader *survey,
                               struct as_survey_shape *shape)
{
    const struct tree_value *at = as_read_list(reader, "budgets", &shape->budget_count);
    uint32_t *budgets = as_arena_alloc(survey->arena, shape->budget_count, sizeof(*budgets));

    for (size_t i = 0; i < shape->budget_count; i++, at = at->next) {
        const int64_t low = i > 0 ? (int64_t)budgets[i - 1] + 1 : 0;
        int64_t index;

        if (!tree_get_i64(at, low, (int64_t)survey->survey->budget_count - 1, &index)) {
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
    pod->ports = decision_read_ports(reader, survey->arena, &pod->port_count);
    pod->loner = decision_read_hex(reader, "loner");
    decision_read_text(reader, "zone", survey->arena, &pod->zone);
    as_read_i32(reader, "priority", INT32_MIN, &pod->priority);
    if (survey->has_v3)
        as_read_bool(reader, "never_preempts", &pod->never_preempts);
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
    const struct tree_value *at = as_read_list(observed, "shapes", &count);

    if (count > AS_SURVEY_SHAPES_MAX) {
        as_read_fail(observed, "shapes", "more than %d", AS_SURVEY_SHAPES_MAX);
        return;
    }
    struct as_survey_shape *shapes = as_arena_alloc(survey->arena, count, sizeof(*shapes));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;

        as_read_item(&item, observed, "shapes", at, i);
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

static void read_expendable(struct as_reader *reader, struct survey_reader *survey,
                            struct as_survey_node *node)
{
    struct as_resources *expendable = as_arena_alloc(survey->arena, 1, sizeof(*expendable));

    decision_read_amounts(reader, "expendable", survey, expendable);
    for (size_t i = 0; i < AS_RES_MAX; i++) {
        if (expendable->amount[i] < 0)
            as_read_fail(reader, "expendable", "[%zu]: below 0", i);
        if (expendable->amount[i] != 0)
            node->expendable = expendable;
    }
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
    if (survey->has_v3)
        read_expendable(reader, survey, node);
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
    const struct tree_value *at = as_read_list(observed, "pool_nodes", &count);

    if (count > DECISION_NODES_MAX) {
        as_read_fail(observed, "pool_nodes", "more than %d", DECISION_NODES_MAX);
        return;
    }
    struct as_survey_node *nodes = as_arena_alloc(survey->arena, count, sizeof(*nodes));
    for (size_t i = 0; i < count; i++, at = at->next) {
        struct as_reader item;

        as_read_item(&item, observed, "pool_nodes", at, i);
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
