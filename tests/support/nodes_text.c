/*
 * Nodes and pods as lines of words: see the header.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/number.h>

#include "nodes_text.h"

#define WORDS_MAX 64 /* of a line; of labels, taints and so on */

static _Noreturn void fail(const char *what, const char *word)
{
    fprintf(stderr, "nodes_text: %s: '%s'\n", what, word);
    abort();
}

void nodes_text_init(struct nodes_text *texts)
{
    *texts = (struct nodes_text){
        .arena = AS_ARENA_INIT,
        .names = {.count = AS_RES_NAMED, .name = {"cpu", "memory", "disk", "pods"}},
    };
}

void nodes_text_deinit(struct nodes_text *texts)
{
    as_arena_deinit(&texts->arena);
}

/* The parts of a text between separators: an empty text has none, nor do spaces have empty ones. */
static size_t split(struct as_arena *arena, const char *text, char separator,
                    char *parts[WORDS_MAX])
{
    char *rest = as_arena_strdup(arena, text);
    size_t count = 0;

    while (rest && *text) {
        if (count == WORDS_MAX)
            fail("too many parts", text);
        parts[count++] = rest;
        rest = strchr(rest, separator);
        if (rest)
            *rest++ = '\0';
        if (separator == ' ' && *parts[count - 1] == '\0')
            count--;
    }
    return count;
}

static int64_t read_number(const char *text)
{
    int64_t number;

    if (as_number_parse_i64(text, strlen(text), &number) != 0)
        fail("not a number", text);
    return number;
}

static void read_amount(struct nodes_text *texts, char *word, struct as_resources *resources)
{
    char *number = strchr(word, ':');
    size_t i = 0;

    if (!number)
        fail("no such word", word);
    *number++ = '\0';
    while (i < texts->names.count && strcmp(texts->names.name[i], word) != 0)
        i++;
    if (i == AS_RES_MAX)
        fail("too many resources", word);
    if (i == texts->names.count)
        texts->names.name[texts->names.count++] = word;
    resources->amount[i] = read_number(number);
}

static unsigned read_effects(const char *text)
{
    unsigned effects = 0;

    for (; *text; text++)
        switch (*text) {
        case 'N': effects |= AS_TAINT_NO_SCHEDULE; break;
        case 'P': effects |= AS_TAINT_PREFER_NO_SCHEDULE; break;
        case 'X': effects |= AS_TAINT_NO_EXECUTE; break;
        default: fail("no such effect", text);
        }
    return effects;
}

/* Cuts the effects off the end of `key=value/effects`, then the value; NULL: no `=`. */
static char *cut_value(char *word, unsigned *effects_out)
{
    char *effects = strrchr(word, '/'), *value = strchr(word, '=');

    if (!effects)
        fail("no effects", word);
    *effects++ = '\0';
    *effects_out = read_effects(effects);
    if (value)
        *value++ = '\0';
    return value;
}

static struct as_label read_label(char *word)
{
    char *value = strchr(word, '=');

    *value++ = '\0';
    return (struct as_label){.name = word, .value = value};
}

static const struct as_labels *make_labels(struct nodes_text *texts, const struct as_label *pairs,
                                           size_t count)
{
    AS_CLEANUP(as_labels_free_p) struct as_labels *labels = NULL;

    if (as_labels_new(pairs, count, &labels) != 0)
        fail("labels", count ? pairs[0].name : "");
    return as_labels_copy_to(&texts->arena, labels);
}

static void *copy(struct nodes_text *texts, const void *items, size_t count, size_t size)
{
    void *all = as_arena_alloc(&texts->arena, count, size);

    if (count)
        memcpy(all, items, count * size);
    return all;
}

struct as_node_fact nodes_text_read_node(struct nodes_text *texts, const char *name,
                                         const char *text)
{
    struct as_node_fact node = {.name = as_arena_strdup(&texts->arena, name),
                                .provider_id = "",
                                .is_ready = true,
                                .allocatable.amount[AS_RES_PODS] = 110};
    struct as_label labels[WORDS_MAX];
    struct as_taint taints[WORDS_MAX];
    size_t label_count = 0;
    char *words[WORDS_MAX];
    const size_t count = split(&texts->arena, text, ' ', words);

    for (size_t i = 0; i < count; i++) {
        unsigned effect;
        char *word = words[i];

        if (*word == '!') {
            char *value = cut_value(word, &effect);
            taints[node.taint_count++] = (struct as_taint){.key = word + 1,
                                                           .value = value ? value : "",
                                                           .effect = (enum as_taint_effect)effect};
        } else if (strchr(word, '=')) {
            labels[label_count++] = read_label(word);
        } else if (strcmp(word, "cordoned") == 0) {
            node.is_cordoned = true;
        } else if (strcmp(word, "notready") == 0) {
            node.is_ready = false;
        } else if (strcmp(word, "ours") == 0) {
            node.leaving = AS_NODE_LEAVING_OURS;
        } else {
            read_amount(texts, word, &node.allocatable);
        }
    }
    node.capacity = node.allocatable;
    node.has_cpu = node.allocatable.amount[AS_RES_CPU] > 0;
    node.has_memory = node.allocatable.amount[AS_RES_MEMORY] > 0;
    node.labels = make_labels(texts, labels, label_count);
    node.taints = copy(texts, taints, node.taint_count, sizeof(*taints));
    return node;
}

/* key:operator:values */
static struct as_node_requirement read_requirement(struct nodes_text *texts, const char *text)
{
    static const char *const words[] = {
        [AS_NODE_IN] = "in",         [AS_NODE_NOT_IN] = "notin",
        [AS_NODE_EXISTS] = "exists", [AS_NODE_DOES_NOT_EXIST] = "absent",
        [AS_NODE_GT] = "gt",         [AS_NODE_LT] = "lt",
    };
    struct as_node_requirement requirement = {.is_field = *text == '='};
    char *parts[WORDS_MAX], *values[WORDS_MAX];
    const size_t count = split(&texts->arena, text + requirement.is_field, ':', parts);
    size_t operator_ = 0;

    if (count < 2 || count > 3)
        fail("no requirement", text);
    while (operator_ < AS_ARRAY_SIZE(words) && strcmp(words[operator_], parts[1]) != 0)
        operator_++;
    if (operator_ == AS_ARRAY_SIZE(words))
        fail("no such operator", parts[1]);
    requirement.key = parts[0];
    requirement.operator_ = (enum as_node_operator)operator_;
    requirement.value_count = count == 3 ? split(&texts->arena, parts[2], ',', values) : 0;
    if (count == 3 && requirement.value_count == 0)
        values[requirement.value_count++] = parts[2]; /* one value, which is empty */
    requirement.values = copy(texts, values, requirement.value_count, sizeof(*values));
    return requirement;
}

static struct as_node_term read_term(struct nodes_text *texts, const char *text)
{
    struct as_node_requirement requirements[WORDS_MAX];
    char *parts[WORDS_MAX];
    const size_t count = split(&texts->arena, text, '&', parts);

    for (size_t i = 0; i < count; i++)
        requirements[i] = read_requirement(texts, parts[i]);
    return (struct as_node_term){copy(texts, requirements, count, sizeof(*requirements)), count};
}

static struct as_toleration read_toleration(char *word)
{
    unsigned effects;
    const char *value = cut_value(word, &effects);

    return (struct as_toleration){
        .key = word, .value = value ? value : "", .is_exists = !value, .effects = effects};
}

static struct as_host_port read_port(struct nodes_text *texts, const char *text)
{
    char *parts[WORDS_MAX];

    if (split(&texts->arena, text, '/', parts) != 3)
        fail("no port", text);
    return (struct as_host_port){
        .protocol = parts[0], .ip = parts[1], .port = (uint16_t)read_number(parts[2])};
}

const struct as_pod_class *nodes_text_read_pod(struct nodes_text *texts, const char *text)
{
    struct as_pod_class *pod_class = as_arena_alloc(&texts->arena, 1, sizeof(*pod_class));
    struct as_label selector[WORDS_MAX];
    struct as_toleration tolerations[WORDS_MAX];
    struct as_node_term terms[WORDS_MAX];
    struct as_host_port ports[WORDS_MAX];
    size_t selector_count = 0;
    char *words[WORDS_MAX];
    const size_t count = split(&texts->arena, text, ' ', words);

    pod_class->requests.amount[AS_RES_PODS] = 1;
    pod_class->labels = make_labels(texts, NULL, 0);
    pod_class->namespace_ = "default";
    for (size_t i = 0; i < count; i++) {
        char *word = words[i];

        if (strcmp(word, "??") == 0) {
            pod_class->has_affinity = true;
        } else if (*word == '?') {
            pod_class->has_affinity = true;
            terms[pod_class->term_count++] = read_term(texts, word + 1);
        } else if (*word == '~') {
            tolerations[pod_class->toleration_count++] = read_toleration(word + 1);
        } else if (*word == '@') {
            ports[pod_class->port_count++] = read_port(texts, word + 1);
        } else if (*word == '#') {
            pod_class->loner = (uint64_t)read_number(word + 1);
        } else if (*word == '%') {
            pod_class->zone = word + 1;
        } else if (strchr(word, '=')) {
            selector[selector_count++] = read_label(word);
        } else if (strcmp(word, "daemon") == 0) {
            pod_class->eviction = AS_EVICTION_DAEMON;
        } else if (strcmp(word, "mirror") == 0) {
            pod_class->eviction = AS_EVICTION_MIRROR;
        } else if (strcmp(word, "low") == 0) {
            pod_class->priority = -20;
        } else if (strcmp(word, "never") == 0) {
            pod_class->never_preempts = true;
        } else {
            read_amount(texts, word, &pod_class->requests);
        }
    }
    if (selector_count)
        pod_class->selector = make_labels(texts, selector, selector_count);
    pod_class->terms = copy(texts, terms, pod_class->term_count, sizeof(*terms));
    pod_class->tolerations =
        copy(texts, tolerations, pod_class->toleration_count, sizeof(*tolerations));
    pod_class->ports = copy(texts, ports, pod_class->port_count, sizeof(*ports));
    return pod_class;
}

struct as_node_shape nodes_text_get_shape(const struct as_node_fact *node, const char *name)
{
    return (struct as_node_shape){
        .name = name,
        .labels = node->labels,
        .taints = node->taints,
        .taint_count = node->taint_count,
        .allocatable = node->allocatable,
    };
}
