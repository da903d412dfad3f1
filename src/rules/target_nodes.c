/*
 * The tables of `targets.<name>.nodes`: how instances of a node group are nodes of a cluster, and
 * what a new node is like.
 */
#include <assert.h>
#include <string.h>

#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/time.h>

#include "rule_parts.h"
#include "schema_writer.h"

#define TAINTS_MAX 64
#define LABELS_MAX 256

/* Quantities */

/* From what is no mistake to beyond the largest machines. */
static const struct rule_amount_range ranges[AS_RES_NAMED] = {
    [AS_RES_CPU] = {"cores from 1m to 10000", 3, 1, 10000000, false},
    [AS_RES_MEMORY] = {"bytes from 1Mi to 1Pi", 0, INT64_C(1) << 20, INT64_C(1) << 50, false},
    [AS_RES_EPHEMERAL] = {"bytes from 0 to 1Ei", 0, 0, INT64_C(1) << 60, false},
    [AS_RES_PODS] = {"a whole number from 1 to 10000", 0, 1, 10000, true},
};
static const struct rule_amount_range range_of_others = {"a whole number from 0 to 1Ei", 0, 0,
                                                         INT64_C(1) << 60, true};

void rule_parse_amount(struct loader *loader, const struct as_yaml_node *value,
                       const struct rule_amount_range *range, int64_t *amount_out)
{
    char found[AS_YAML_FOUND_SIZE];
    int64_t down = 0, up = 0;
    if (value->kind != AS_YAML_SCALAR ||
        as_quantity_parse_scaled(value->text, value->size, range->scale, false, &down) < 0 ||
        as_quantity_parse_scaled(value->text, value->size, range->scale, true, &up) < 0)
        loader_report(loader, value, "expected a quantity like 7.9, 500m or 30Gi, found %s",
                      as_yaml_describe(value, found));
    else if (down < range->min || up > range->max || (range->is_whole && down != up))
        loader_report(loader, value, "expected %s, found %s", range->expected,
                      as_yaml_describe(value, found));
    else
        *amount_out = down;
}

static void parse_resource(struct loader *loader, const struct as_yaml_node *value,
                           enum as_res resource, void *object)
{
    struct as_node_template_config *config = object;
    rule_parse_amount(loader, value, &ranges[resource], &config->amount[resource]);
}

static void parse_cpu(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_resource(loader, value, AS_RES_CPU, object);
}

static void parse_memory(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_resource(loader, value, AS_RES_MEMORY, object);
}

static void parse_ephemeral(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_resource(loader, value, AS_RES_EPHEMERAL, object);
}

static void parse_pods(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_resource(loader, value, AS_RES_PODS, object);
}

/* Keys and values of labels and taints */

bool rule_check_label_key(struct loader *loader, const struct as_yaml_node *node)
{
    char found[AS_YAML_FOUND_SIZE];
    if (node->kind == AS_YAML_SCALAR && as_label_is_kubernetes_key(node->text))
        return true;
    loader_report(loader, node,
                  "expected a Kubernetes key (at most 63 letters, digits, `-`, `_` and `.`, a "
                  "letter or digit at both ends; a DNS name and `/` may stand before), found %s",
                  as_yaml_describe(node, found));
    return false;
}

bool rule_parse_label_value(struct loader *loader, const struct as_yaml_node *node,
                            const char **value_out)
{
    char found[AS_YAML_FOUND_SIZE];
    if (!schema_is_kind(loader, node, AS_YAML_SCALAR))
        return false;
    if (!as_label_is_kubernetes_value(node->text)) {
        loader_report(loader, node,
                      "expected a Kubernetes value (at most 63 letters, digits, `-`, `_` and "
                      "`.`, a letter or digit at both ends), found %s",
                      as_yaml_describe(node, found));
        return false;
    }
    *value_out = as_arena_strdup(loader->arena, node->text);
    return true;
}

/* `template.labels` */

static void parse_labels(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct as_node_template_config *config = object;
    struct as_label pairs[LABELS_MAX];
    size_t count = 0;
    if (!schema_is_kind(loader, value, AS_YAML_MAP))
        return;
    if (value->count > LABELS_MAX) {
        loader_report(loader, value, "at most %d labels are possible", LABELS_MAX);
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        const struct as_yaml_pair *pair = &value->pairs[i];
        const bool is_key = rule_check_label_key(loader, pair->key);
        pairs[count].name = pair->key->text;
        count += rule_parse_label_value(loader, pair->value, &pairs[count].value) && is_key;
    }
    const int status = as_labels_new_in(loader->arena, pairs, count, &config->labels);
    (void)status; /* equal keys: the file's reader has reported them */
}

/* `template.taints` */

static void parse_taint_key(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    if (rule_check_label_key(loader, value))
        ((struct as_taint *)object)->key = as_arena_strdup(loader->arena, value->text);
}

static void parse_taint_value(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    rule_parse_label_value(loader, value, &((struct as_taint *)object)->value);
}

static const char *const effect_words[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};

static void parse_effect(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    static const enum as_taint_effect effects[] = {
        AS_TAINT_NO_SCHEDULE, AS_TAINT_PREFER_NO_SCHEDULE, AS_TAINT_NO_EXECUTE};
    const struct schema_field field = {.type = SCHEMA_WORD, .words = effect_words};
    unsigned word = 0;
    if (schema_parse_scalar(loader, &field, value, &word))
        ((struct as_taint *)object)->effect = effects[word];
}

static const struct schema_field taint_fields[] = {
    {.key = "key",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_taint_key,
     .forms = SCHEMA_FORMS(SCHEMA_LABEL_KEY),
     .expected = "text"},
    {.key = "value",
     .type = SCHEMA_CUSTOM,
     .parse = parse_taint_value,
     .forms = SCHEMA_FORMS(SCHEMA_LABEL_VALUE),
     .expected = "text"},
    {.key = "effect",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_effect,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(WORD, .words = effect_words)),
     .expected = "NoSchedule, PreferNoSchedule or NoExecute"},
    {0},
};

static void init_taint(struct loader *loader, void *object)
{
    struct as_taint *taint = object;
    taint->key = taint->value = "";
}

const struct schema nodes_taints =
    SCHEMA("nodes.template.taints", as_taint, taint_fields, .init = init_taint);

/* `template` */

static const struct schema_field template_fields[] = {
    {.key = "cpu",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_cpu,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {.key = "memory",
     .type = SCHEMA_CUSTOM,
     .is_required = true,
     .parse = parse_memory,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {.key = "ephemeral-storage",
     .type = SCHEMA_CUSTOM,
     .parse = parse_ephemeral,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity"},
    {.key = "pods",
     .type = SCHEMA_CUSTOM,
     .parse = parse_pods,
     .forms = SCHEMA_QUANTITY_FORMS,
     .expected = "quantity",
     .fallback = "110"},
    {.key = "labels",
     .type = SCHEMA_CUSTOM,
     .parse = parse_labels,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(
         TABLE, .max = LABELS_MAX, .forms = SCHEMA_FORMS(SCHEMA_LABEL_VALUE, SCHEMA_LABEL_KEY))),
     .expected = "map"},
    {.key = "taints",
     .type = SCHEMA_MAPS,
     .offset = offsetof(struct as_node_template_config, taints),
     .count_offset = offsetof(struct as_node_template_config, taint_count),
     .max = TAINTS_MAX,
     .map = &nodes_taints},
    {0},
};

/* Extended resources and huge pages, under their names. */
static bool take_named(struct loader *loader, const struct as_yaml_node *node,
                       const struct as_yaml_pair *pair, void *object)
{
    struct as_node_template_config *config = object;
    const char *name = pair->key->text;
    if (!strchr(name, '/') && !as_str_starts_with(name, "hugepages-"))
        return false;
    if (!rule_check_label_key(loader, pair->key))
        return true;
    if (config->named_count == AS_ARRAY_SIZE(config->named)) {
        loader_report(loader, pair->key, "at most %zu other resources are possible",
                      AS_ARRAY_SIZE(config->named));
        return true;
    }
    struct as_node_amount *named = &config->named[config->named_count++];
    named->name = as_arena_strdup(loader->arena, name);
    rule_parse_amount(loader, pair->value, &range_of_others, &named->amount);
    return true;
}

static void init_template(struct loader *loader, void *object)
{
    struct as_node_template_config *config = object;
    const int status = as_labels_new_in(loader->arena, NULL, 0, &config->labels);
    assert(status == 0);
    (void)status;
}

/* Kubernetes allows one taint for each key and effect. */
static void finish_template(struct loader *loader, const struct as_yaml_node *node,
                            const struct as_yaml_node *at, void *object)
{
    const struct as_node_template_config *config = object;
    const struct as_yaml_node *list = as_yaml_find(node, "taints");
    for (size_t i = 1; i < config->taint_count; i++) {
        const struct as_taint *taint = &config->taints[i];
        for (size_t j = 0; j < i; j++) {
            if (!*taint->key || taint->effect != config->taints[j].effect ||
                strcmp(taint->key, config->taints[j].key) != 0)
                continue;
            loader_report(loader, list->items[i],
                          "a taint with this key and effect is already in the list");
            break;
        }
    }
}

const struct schema nodes_template =
    SCHEMA("nodes.template", as_node_template_config, template_fields, .other = take_named,
           .describe_map = json_schema_describe_resources, .init = init_template,
           .finish = finish_template);

/* `health` */

static const struct schema_field health_fields[] = {
    SCHEMA_FIELD("grace", DURATION, as_node_health_config, grace_us, .is_required = true,
                 .min = AS_US_PER_S),
    SCHEMA_FIELD("newest", PERCENT, as_node_health_config, newest, .is_required = true, .min = 1000,
                 .max = 100000),
    SCHEMA_FIELD("most", PERCENT, as_node_health_config, most, .max = 100000, .fallback = "0%"),
    {0},
};

const struct schema nodes_health = SCHEMA("nodes.health", as_node_health_config, health_fields);

/* `nodes` */

static const struct schema_field nodes_fields[] = {
    SCHEMA_FIELD("cluster", STRING, raw_nodes, cluster, .fallback = "default"),
    {.key = "select",
     .type = SCHEMA_CUSTOM,
     .parse = parse_nodes_select,
     .forms =
         SCHEMA_FORMS(SCHEMA_FORM(TABLE, .max = NODES_SELECT_MAX,
                                  .forms = SCHEMA_FORMS(SCHEMA_LABEL_VALUE, SCHEMA_LABEL_KEY))),
     .expected = "map"},
    SCHEMA_FIELD("choose", WORD, raw_nodes, choose,
                 .words = (const char *const[]){[AS_CHOOSE_EMPTY_FIRST] = "empty_first",
                                                [AS_CHOOSE_OLDEST] = "oldest",
                                                [AS_CHOOSE_NEWEST] = "newest",
                                                [AS_CHOOSE_LEAST_UTILIZED] = "least_utilized",
                                                [AS_CHOOSE_STRATEGY_COUNT] = NULL},
                 .fallback = "empty_first"),
    SCHEMA_FIELD("drain", WORD, raw_nodes, drain,
                 .words = (const char *const[]){[AS_NODES_DRAIN_FALSE] = "false",
                                                [AS_NODES_DRAIN_TRUE] = "true",
                                                [AS_NODES_DRAIN_WAIT] = "wait",
                                                NULL},
                 .fallback = "true"),
    SCHEMA_FIELD("drain_after", DURATION, raw_nodes, drain_after_us, .fallback = "5m"),
    SCHEMA_FIELD("drain_timeout", DURATION, raw_nodes, drain_timeout_us, .min = AS_US_PER_S,
                 .fallback = "10m"),
    SCHEMA_FIELD("grace_period", DURATION, raw_nodes, grace_us),
    SCHEMA_FIELD("ready_timeout", DURATION, raw_nodes, ready_timeout_us, .min = AS_US_PER_S,
                 .fallback = "15m"),
    SCHEMA_FIELD("template", MAP, raw_nodes, template_, .map = &nodes_template),
    SCHEMA_FIELD("startup_taints", STRINGS, raw_nodes, startup_taints,
                 .count_offset = offsetof(struct raw_nodes, startup_taint_count),
                 .max = TAINTS_MAX),
    SCHEMA_FIELD(
        "pending", WORD, raw_nodes, pending,
        .words =
            (const char *const[]){
                [AS_NODES_PENDING_SELECTING] = "selecting", [AS_NODES_PENDING_ANY] = "any", NULL},
        .fallback = "selecting"),
    SCHEMA_FIELD("priority", INT, raw_nodes, priority, .min = INT32_MIN, .max = INT32_MAX),
    {.key = "price",
     .type = SCHEMA_CUSTOM,
     .parse = parse_nodes_price,
     .forms = schema_price_forms,
     .expected = "number"},
    SCHEMA_FIELD("unneeded", MAP, raw_nodes, unneeded, .map = &nodes_unneeded),
    {.key = "keep",
     .type = SCHEMA_CUSTOM,
     .parse = parse_nodes_keep,
     .forms = schema_keep_forms,
     .expected = "list of system_pods, local_storage and unreplicated"},
    SCHEMA_FIELD("health", MAP, raw_nodes, health, .map = &nodes_health),
    {0},
};

static void init_nodes(struct loader *loader, void *object)
{
    struct raw_nodes *raw = object;
    raw->grace_us = -1; /* each pod's own */
    raw->price = -1;
    raw->unneeded.of.keep = AS_KEEP_DEFAULT;
}

static void finish_nodes(struct loader *loader, const struct as_yaml_node *node,
                         const struct as_yaml_node *at, void *object)
{
    const struct as_yaml_node *list = as_yaml_find(node, "startup_taints");
    if (!list || list->kind != AS_YAML_LIST)
        return;
    for (uint32_t i = 0; i < list->count && list->count <= TAINTS_MAX; i++)
        if (list->items[i]->kind == AS_YAML_SCALAR && list->items[i]->size > 0 &&
            !as_yaml_is_null(list->items[i]))
            rule_check_label_key(loader, list->items[i]);
}

const struct schema target_nodes =
    SCHEMA("nodes", raw_nodes, nodes_fields, .init = init_nodes, .finish = finish_nodes);
