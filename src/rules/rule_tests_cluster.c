/*
 * `cluster` of a test: the pods that are there, and which nodes of a group are Ready. What decides
 * about pools places the pods on the nodes.
 */
#include <string.h>

#include <alertscaler/base/quantity.h>

#include "rule_tests_schema.h"

#define PODS_MAX 1000000 /* of one row */

static void parse_request(struct loader *loader, const struct as_yaml_node *value,
                          enum as_res resource, void *object)
{
    struct raw_cluster_pods *pods = object;
    char found[AS_YAML_FOUND_SIZE];
    int64_t amount = 0;
    if (value->kind != AS_YAML_SCALAR ||
        as_quantity_parse_scaled(value->text, value->size, resource == AS_RES_CPU ? 3 : 0, true,
                                 &amount) < 0 ||
        amount < 0)
        loader_report(loader, value, "expected a quantity like 250m, 1.5 or 512Mi, found %s",
                      as_yaml_describe(value, found));
    pods->shape.requests.amount[resource] = amount;
}

static void parse_cpu(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_request(loader, value, AS_RES_CPU, object);
}

static void parse_memory(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    parse_request(loader, value, AS_RES_MEMORY, object);
}

static void parse_select(struct loader *loader, const struct as_yaml_node *value, void *object)
{
    struct raw_cluster_pods *pods = object;
    struct raw_labels raw = {0};
    rule_test_parse_labels(loader, value, &raw);
    if (as_labels_new_in(loader->arena, raw.pairs, raw.count, &pods->shape.selector) != 0)
        pods->shape.selector = NULL; /* equal keys: the file's reader has reported them */
}

static const struct schema_field pods_fields[] = {
    SCHEMA_FIELD("count", INT, raw_cluster_pods, count, .min = 1, .max = PODS_MAX, .fallback = "1"),
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
    {.key = "select",
     .type = SCHEMA_CUSTOM,
     .parse = parse_select,
     .forms = rule_test_label_forms,
     .expected = "map of labels"},
    SCHEMA_FIELD("on", STRING, raw_cluster_pods, on),
    SCHEMA_FIELD("keep", BOOL, raw_cluster_pods, keep, .fallback = "false"),
    {0},
};

static void finish_pods(struct loader *loader, const struct as_yaml_node *node,
                        const struct as_yaml_node *at, void *object)
{
    struct raw_cluster_pods *pods = object;
    pods->node = node;
    pods->shape.requests.amount[AS_RES_PODS] = 1;
    pods->shape.namespace_ = "default";
    pods->shape.eviction = pods->keep ? AS_EVICTION_REFUSED : AS_EVICTION_ALLOWED;
    const int status = as_labels_new_in(loader->arena, NULL, 0, &pods->shape.labels);
    (void)status; /* no label comes twice */
}

const struct schema schema_test_cluster_pods =
    SCHEMA("tests.cluster.pods", raw_cluster_pods, pods_fields, .finish = finish_pods);

static const struct schema_field node_fields[] = {
    SCHEMA_FIELD("ready", INT, raw_cluster_nodes, ready, .is_required = true, .min = 0,
                 .max = AS_SIZE_MAX),
    {0},
};

const struct schema schema_test_cluster_nodes =
    SCHEMA("tests.cluster.nodes", raw_cluster_nodes, node_fields);

static void parse_nodes(struct loader *loader, const struct as_yaml_node *map, void *object)
{
    struct raw_cluster *cluster = object;
    if (!schema_is_kind(loader, map, AS_YAML_MAP))
        return;
    cluster->nodes = as_arena_alloc(loader->arena, map->count, sizeof(*cluster->nodes));
    cluster->node_count = map->count;
    for (uint32_t i = 0; i < map->count; i++) {
        cluster->nodes[i].group = map->pairs[i].key;
        schema_parse(loader, &schema_test_cluster_nodes, map->pairs[i].value, map->pairs[i].key,
                     &cluster->nodes[i]);
    }
}

static const struct schema_field cluster_fields[] = {
    SCHEMA_FIELD("pods", MAPS, raw_cluster, pods,
                 .count_offset = offsetof(struct raw_cluster, pod_count),
                 .map = &schema_test_cluster_pods),
    {.key = "nodes",
     .type = SCHEMA_CUSTOM,
     .parse = parse_nodes,
     .forms = SCHEMA_FORMS(SCHEMA_FORM(
         TABLE, .forms = SCHEMA_FORMS(SCHEMA_FORM(MAP, .map = &schema_test_cluster_nodes)))),
     .expected = "map of node groups"},
    {0},
};

static void finish_cluster(struct loader *loader, const struct as_yaml_node *node,
                           const struct as_yaml_node *at, void *object)
{
    ((struct raw_cluster *)object)->node = node;
}

const struct schema schema_test_cluster =
    SCHEMA("tests.cluster", raw_cluster, cluster_fields, .finish = finish_cluster);

static void check_group(struct loader *loader, const struct as_yaml_node *at, const char *name,
                        const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < ruleset->target_count; i++) {
        const struct as_target_config *target = &ruleset->targets[i];
        if (strcmp(target->name, name) != 0)
            continue;
        if (!target->kind->has_nodes)
            loader_report(loader, at, "target `%s` is %s, not a node group", name,
                          target->kind->title);
        else if (!target->nodes.template_)
            loader_report(loader, at,
                          "target `%s` needs `nodes.template`: a test has to know what its nodes "
                          "have",
                          name);
        return;
    }
    loader_report(loader, at, "there is no target `%s`", name);
}

void rule_test_check_cluster(struct loader *loader, const struct raw_cluster *cluster,
                             const struct as_ruleset *ruleset)
{
    for (size_t i = 0; i < cluster->node_count; i++)
        check_group(loader, cluster->nodes[i].group, cluster->nodes[i].group->text, ruleset);
    for (size_t i = 0; i < cluster->pod_count; i++) {
        if (cluster->pods[i].on)
            check_group(loader, as_yaml_find(cluster->pods[i].node, "on"), cluster->pods[i].on,
                        ruleset);
    }
}

const struct as_rule_test_cluster *rule_test_make_cluster(struct as_arena *arena,
                                                          const struct raw_cluster *raw)
{
    struct as_rule_test_cluster *cluster = as_arena_alloc(arena, 1, sizeof(*cluster));
    struct as_rule_test_pods *pods = as_arena_alloc(arena, raw->pod_count, sizeof(*pods));
    struct as_rule_test_ready *ready = as_arena_alloc(arena, raw->node_count, sizeof(*ready));
    for (size_t i = 0; i < raw->pod_count; i++)
        pods[i] = (struct as_rule_test_pods){raw->pods[i].shape, (uint32_t)raw->pods[i].count,
                                             raw->pods[i].on};
    for (size_t i = 0; i < raw->node_count; i++)
        ready[i] = (struct as_rule_test_ready){as_arena_strdup(arena, raw->nodes[i].group->text),
                                               raw->nodes[i].ready};
    *cluster = (struct as_rule_test_cluster){pods, raw->pod_count, ready, raw->node_count};
    return cluster;
}
