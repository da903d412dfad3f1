/*
 * Clusters to decision documents, line by line, for pool_property.py. Each line of the input is an
 * object:
 *
 *   budgets, nodes, pods   objects of the Kubernetes API
 *   groups                 node groups: name, size, min, max, nodes (names, ascending), closed,
 *                          priority, price, ignore (enum as_node_ignore), last (a template as text)
 *   balance                of the pool
 *   unneeded               nodes that are unneeded: name, since (seconds before now); ascending
 *
 * Each line of the output is a decision document without a target and proposals.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/cluster/node_sums.h>
#include <alertscaler/cluster/node_template.h>
#include <alertscaler/cluster/snapshot.h>
#include <alertscaler/decide/decision.h>
#include <alertscaler/kube/kube_facts.h>

#define NOW ((as_wall_time){INT64_C(1795168800) * AS_US_PER_S})

static struct as_error error = AS_ERROR_INIT;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, error.text);
    exit(2);
}

static int64_t get_int(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static struct as_cluster_facts *read_facts(const json_t *request)
{
    static const struct {
        enum as_cluster_kind kind;
        const char *key;
    } kinds[] = {
        {AS_CLUSTER_BUDGETS, "budgets"}, {AS_CLUSTER_NODES, "nodes"}, {AS_CLUSTER_PODS, "pods"}};
    struct as_cluster_facts *facts =
        as_cluster_facts_new(&(struct as_cluster_facts_limits){AS_CLUSTER_FACTS_BYTES});
    struct as_arena scratch = AS_ARENA_INIT;

    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        size_t index;
        json_t *object;
        as_cluster_facts_begin_list(facts, kinds[i].kind);
        json_array_foreach(json_object_get(request, kinds[i].key), index, object)
        {
            AS_CLEANUP(as_free_p) char *text = json_dumps(object, JSON_COMPACT);
            const struct as_kube_bytes bytes = {AS_KUBE_JSON, text, strlen(text)};
            if (as_kube_fact_put(facts, kinds[i].kind, &bytes, &scratch, &error) != 0)
                fail(text);
        }
        as_cluster_facts_end_list(facts, kinds[i].kind);
    }
    as_arena_deinit(&scratch);
    return facts;
}

static const struct as_node_template *read_template(const json_t *text,
                                                    const struct as_cluster *cluster,
                                                    struct as_arena *arena)
{
    struct as_node_template *template_ = as_arena_alloc(arena, 1, sizeof(*template_));

    if (!text)
        return NULL;
    if (as_node_template_decode(json_string_value(text), &cluster->resources, arena, template_,
                                &error) != 0)
        fail("template");
    return template_;
}

static void read_group(const json_t *group, const struct as_cluster *cluster,
                       struct as_arena *arena, struct as_snapshot_member *member_out)
{
    const json_t *nodes = json_object_get(group, "nodes");
    const char **names = as_arena_alloc(arena, json_array_size(nodes), sizeof(*names));

    for (size_t i = 0; i < json_array_size(nodes); i++)
        names[i] = json_string_value(json_array_get(nodes, i));
    *member_out = (struct as_snapshot_member){
        .name = json_string_value(json_object_get(group, "name")),
        .id = json_string_value(json_object_get(group, "name")),
        .is_member = true,
        .size = (int32_t)get_int(group, "size"),
        .min = (int32_t)get_int(group, "min"),
        .max = (int32_t)get_int(group, "max"),
        .closed =
            json_is_true(json_object_get(group, "closed")) ? AS_REASON_COOLDOWN : AS_REASON_SCALED,
        .nodes = names,
        .node_count = json_array_size(nodes),
        .ready_timeout_us = 15 * AS_US_PER_MIN,
        .last = read_template(json_object_get(group, "last"), cluster, arena),
        .has_priority = json_object_get(group, "priority") != NULL,
        .priority = (int32_t)get_int(group, "priority"),
        .has_price = true,
        .price = json_number_value(json_object_get(group, "price")),
        .unneeded = as_unneeded_config_default,
    };
    member_out->unneeded.ignore = (unsigned)get_int(group, "ignore");
    member_out->unneeded.keep = AS_KEEP_SYSTEM_PODS | AS_KEEP_LOCAL_STORAGE | AS_KEEP_UNREPLICATED;
}

static void read_unneeded(const json_t *list, struct as_arena *arena,
                          struct as_snapshot_request *request)
{
    struct as_unneeded *unneeded = as_arena_alloc(arena, json_array_size(list), sizeof(*unneeded));

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *node = json_array_get(list, i);
        unneeded[i] = (struct as_unneeded){
            .node = json_string_value(json_object_get(node, "name")),
            .since = {true, {NOW.us - get_int(node, "since") * AS_US_PER_S}},
            .seen = {true, {NOW.us - 15 * AS_US_PER_S}},
        };
    }
    request->unneeded = unneeded;
    request->unneeded_count = json_array_size(list);
}

static void print_document(const json_t *line)
{
    struct as_cluster_facts *facts = read_facts(line);
    const struct as_cluster *cluster = as_cluster_facts_view(facts, &error);
    const json_t *groups = json_object_get(line, "groups");
    struct as_pool_config config = as_pool_config_default;
    struct as_arena arena = AS_ARENA_INIT;
    struct as_snapshot_member *members =
        as_arena_alloc(&arena, json_array_size(groups), sizeof(*members));
    struct as_snapshot snapshot = {0};
    struct as_buf out = AS_BUF_INIT(AS_SNAPSHOT_BYTES_MAX * 2);

    if (!cluster)
        fail("facts");
    for (size_t i = 0; i < json_array_size(groups); i++)
        read_group(json_array_get(groups, i), cluster, &arena, &members[i]);
    config.balance = json_is_true(json_object_get(line, "balance"));
    struct as_snapshot_request request = {.cluster = cluster,
                                          .members = members,
                                          .member_count = json_array_size(groups),
                                          .config = &config,
                                          .now = NOW};
    read_unneeded(json_object_get(line, "unneeded"), &arena, &request);
    struct as_snapshot_work *work = as_snapshot_begin(&request, &arena);
    while (!as_snapshot_step(work, UINT64_MAX, &snapshot))
        ;
    as_decision_encode_input(
        &(struct as_decide_input){
            .version = AS_DECIDE_VERSION, .now = NOW, .snapshot = &snapshot, .pool = &config},
        &out);
    printf("%.*s\n", (int)out.size, out.data);
    as_buf_deinit(&out);
    as_arena_deinit(&arena);
    as_cluster_facts_free(facts);
}

int main(void)
{
    json_t *line;

    while ((line = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        print_document(line);
        json_decref(line);
    }
    return 0;
}
