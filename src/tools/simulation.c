/*
 * The simulation of an engine in virtual time. Where the shell uses ports, the simulation answers
 * at once from a scenario: the simulated targets, pods, nodes and answers to queries.
 *
 * The engine's requests are answered in order, each in a step of its own, until none is left; only
 * then time advances. Only the scenario grows: writes to the store are dropped.
 */
#include <alertscaler/tools/simulation.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define uthash_fatal(msg) abort() /* as for each small allocation of ours */
#include <uthash.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cluster/cluster_facts.h>
#include <alertscaler/cluster/node_pack.h>
#include <alertscaler/cluster/snapshot.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/decide/decide.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/decide/ruleset.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/model/source.h>
#include <alertscaler/rules/rule_tests.h>

struct scenario_target {
    UT_hash_handle by_key, by_name;
    char *id, *key;                    /* key: decide/target.h */
    const char *name;                  /* from the rule set; else the last part of the id */
    int32_t size;                      /* -1: not found */
    const struct as_pool_config *pool; /* its size is that of its groups; NULL: no pool */
    bool are_pods_set;                 /* its pods were set; else `size` default pods */
    struct as_pod_seen *pods;
    size_t pod_count;
    struct as_nodes_seen nodes; /* its error is owned */
    enum as_rollout_progress rollout;
};

struct scenario_query {
    UT_hash_handle by_text;
    char *text; /* packed */
    struct as_query_result result;
};

struct scenario {
    const struct as_ruleset *ruleset;
    struct scenario_target *targets, *named;
    struct scenario_query *queries;
    char *packed; /* the last text looked up */
    size_t packed_capacity;
    as_wall_time old;                           /* start time of default pods and nodes */
    const struct as_rule_test_cluster *cluster; /* NULL: nothing is said of it */
};

struct scenario_pool; /* one observation of a pool */

/* --- the scenario --- */

/*
 * Default pods are created when the engine asks for them, and kept until the size changes. An
 * answer whose form does not fit the query is an error, as with Prometheus.
 */

/* Removes white space outside of quotes: a query's layout does not matter. Returns the size of
 * scenario->packed, which holds the result. */
static size_t pack(struct scenario *scenario, const char *text)
{
    const size_t most = strlen(text) + 1;
    size_t size = 0;
    char quote = '\0';
    if (scenario->packed_capacity < most) {
        scenario->packed = as_xrealloc_array(scenario->packed, most, 1);
        scenario->packed_capacity = most;
    }
    for (; *text; text++) {
        if (!quote && strchr(" \t\r\n", *text))
            continue;
        const bool is_escape = quote && quote != '`' && *text == '\\' && text[1];
        if (is_escape)
            scenario->packed[size++] = *text++;
        else if (*text == quote)
            quote = '\0';
        else if (!quote && strchr("\"'`", *text))
            quote = *text;
        scenario->packed[size++] = *text;
    }
    scenario->packed[size] = '\0';
    return size;
}

static struct scenario_target *add_target(struct scenario *scenario, const char *id)
{
    struct scenario_target *target = as_xcalloc(1, sizeof(*target));
    target->id = as_xstrdup(id);
    target->key = as_target_key_make(id);
    target->name = as_target_id_get_end(target->id);
    target->size = -1;
    target->nodes.error = as_xstrdup("nothing is said of its nodes");
    target->rollout = AS_PROGRESS_NONE;
    HASH_ADD_KEYPTR(by_key, scenario->targets, target->key, strlen(target->key), target);
    return target;
}

static void scenario_init(struct scenario *scenario, const struct as_ruleset *ruleset,
                          as_wall_time start)
{
    *scenario = (struct scenario){.ruleset = ruleset, .old = {start.us - AS_US_PER_DAY}};
    for (size_t i = 0; i < ruleset->target_count; i++) {
        const struct as_target_config *config = ruleset->targets[i];
        AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
        if (config->is_templated || as_target_ref_new(config, NULL, NULL, &ref, NULL) != 0)
            continue;
        struct scenario_target *target = add_target(scenario, ref->id);
        target->name = config->name;
        target->pool = config->pool;
        HASH_ADD_KEYPTR(by_name, scenario->named, target->name, strlen(target->name), target);
    }
}

static void free_pods(struct scenario_target *target)
{
    for (size_t i = 0; i < target->pod_count; i++) {
        free((char *)(uintptr_t)target->pods[i].name);
        free((void *)(uintptr_t)target->pods[i].containers);
    }
    free(target->pods);
    target->pods = NULL;
    target->pod_count = 0;
}

static void free_samples(struct as_query_result *result)
{
    struct as_sample *samples = (struct as_sample *)(uintptr_t)result->samples;
    for (size_t i = 0; i < result->sample_count; i++)
        free((char *)(uintptr_t)samples[i].pod);
    free(samples);
    free((char *)(uintptr_t)result->error);
    *result = (struct as_query_result){0};
}

static void simulation_free_nodes(struct as_nodes_seen *nodes)
{
    free((char *)(uintptr_t)nodes->error);
    for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++)
        free((char *)(uintptr_t)nodes->lacking[i]);
}

static void scenario_deinit(struct scenario *scenario)
{
    struct scenario_target *target, *next_target;
    HASH_CLEAR(by_name, scenario->named);
    HASH_ITER (by_key, scenario->targets, target, next_target) {
        HASH_DELETE(by_key, scenario->targets, target);
        free_pods(target);
        simulation_free_nodes(&target->nodes);
        free(target->id);
        free(target->key);
        free(target);
    }
    struct scenario_query *query, *next_query;
    HASH_ITER (by_text, scenario->queries, query, next_query) {
        HASH_DELETE(by_text, scenario->queries, query);
        free_samples(&query->result);
        free(query->text);
        free(query);
    }
    free(scenario->packed);
}

static struct scenario_target *scenario_find_target(const struct scenario *scenario,
                                                    const char *name_or_id)
{
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(name_or_id);
    struct scenario_target *target;
    HASH_FIND(by_key, scenario->targets, key, strlen(key), target);
    if (!target)
        HASH_FIND(by_name, scenario->named, name_or_id, strlen(name_or_id), target);
    return target;
}

/* creates */
static struct scenario_target *scenario_get_target(struct scenario *scenario,
                                                   const char *name_or_id)
{
    struct scenario_target *target = scenario_find_target(scenario, name_or_id);
    return target ? target : add_target(scenario, name_or_id);
}

/* Of a pool: of its groups that are found. -1: not found. */
static int32_t scenario_get_size(const struct scenario *scenario, const char *name_or_id)
{
    const struct scenario_target *target = scenario_find_target(scenario, name_or_id);
    const struct as_pool_config *pool = target ? target->pool : NULL;
    int64_t size = -1;
    if (!pool)
        return target ? target->size : -1;
    for (size_t i = 0; i < pool->group_count; i++) {
        const char *group = scenario->ruleset->targets[pool->groups[i]]->name;
        const int32_t more = scenario_find_target(scenario, group)->size;
        if (more >= 0)
            size = (size < 0 ? 0 : size) + more;
    }
    return size < AS_SIZE_MAX ? (int32_t)size : AS_SIZE_MAX;
}

static int simulation_compare_pods(const void *a, const void *b)
{
    return strcmp(((const struct as_pod_seen *)a)->name, ((const struct as_pod_seen *)b)->name);
}

static void simulation_sort_pods(struct scenario_target *target)
{
    if (target->pod_count > 1)
        qsort(target->pods, target->pod_count, sizeof(*target->pods), simulation_compare_pods);
}

static void scenario_set_pods(struct scenario_target *target, const struct as_pod_seen *pods,
                              size_t count)
{
    free_pods(target);
    target->are_pods_set = true;
    target->pods = as_xcalloc(count, sizeof(*target->pods));
    target->pod_count = count;
    for (size_t i = 0; i < count; i++) {
        target->pods[i] = pods[i];
        target->pods[i].name = as_xstrdup(pods[i].name);
        target->pods[i].containers =
            pods[i].container_count > 0
                ? as_containers_copy(&pods[i], as_xmalloc(as_containers_get_size(&pods[i])))
                : NULL;
    }
    simulation_sort_pods(target);
}

static char *copy_or_null(const char *text)
{
    return text ? as_xstrdup(text) : NULL;
}

static void scenario_set_nodes(struct scenario_target *target, const struct as_nodes_seen *nodes)
{
    simulation_free_nodes(&target->nodes);
    target->nodes = *nodes;
    target->nodes.error = copy_or_null(nodes->error);
    for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++)
        target->nodes.lacking[i] = copy_or_null(nodes->lacking[i]);
}

static void make_pods(const struct scenario *scenario, struct scenario_target *target)
{
    const size_t count = (size_t)target->size;
    if (target->are_pods_set || target->pod_count == count)
        return;
    free_pods(target);
    target->pods = as_xcalloc(count, sizeof(*target->pods));
    target->pod_count = count;
    for (size_t i = 0; i < count; i++)
        target->pods[i] = (struct as_pod_seen){
            .name = as_xasprintf("%s-%zu", target->name, i + 1),
            .phase = AS_POD_RUNNING,
            .ready = AS_TRUE,
            .start_time = {true, scenario->old},
            .ready_since = {true, scenario->old},
            .requests = {(double)NAN, (double)NAN},
            .limits = {(double)NAN, (double)NAN},
        };
    simulation_sort_pods(target);
}

/* White space in `text` is ignored, except in quotes. */
static struct scenario_query *scenario_find_query(struct scenario *scenario, const char *text)
{
    struct scenario_query *query;
    const size_t size = pack(scenario, text);
    HASH_FIND(by_text, scenario->queries, scenario->packed, size, query);
    return query;
}

static int simulation_compare_samples(const void *a, const void *b)
{
    return strcmp(((const struct as_sample *)a)->pod, ((const struct as_sample *)b)->pod);
}

static void scenario_set_query(struct scenario *scenario, const char *text,
                               const struct as_query_result *result)
{
    struct scenario_query *query = scenario_find_query(scenario, text);
    if (!query) {
        query = as_xcalloc(1, sizeof(*query));
        query->text = as_xstrdup(scenario->packed); /* packed by the search */
        HASH_ADD_KEYPTR(by_text, scenario->queries, query->text, strlen(query->text), query);
    }
    struct as_query_result copy = {.value = result->value, .sample_count = result->sample_count};
    if (result->error)
        copy.error = as_xstrdup(result->error);
    struct as_sample *samples = as_xcalloc(result->sample_count, sizeof(*samples));
    for (size_t i = 0; i < result->sample_count; i++) {
        samples[i] = result->samples[i];
        samples[i].pod = as_xstrdup(result->samples[i].pod);
    }
    if (result->sample_count > 1)
        qsort(samples, result->sample_count, sizeof(*samples), simulation_compare_samples);
    copy.samples = samples;
    free_samples(&query->result);
    query->result = copy;
}

static struct as_observation simulation_fail(enum as_reason outcome, const char *message)
{
    struct as_observation observation = {.outcome = outcome, .min = -1, .max = -1};
    (void)snprintf(observation.message, sizeof(observation.message), "%s", message);
    return observation;
}

/* The engine's observation. `target` and `query` may be NULL: not found. Valid until the scenario
 * is changed or observed again. */
static struct as_observation scenario_observe(const struct scenario *scenario,
                                              struct scenario_target *target,
                                              const struct as_observe_request *request)
{
    if (!target || target->size < 0) {
        struct as_observation observation =
            simulation_fail(AS_REASON_TARGET_NOT_FOUND, "the rehearsal has no such target");
        observation.http_status = 404;
        return observation;
    }
    if (request->with_pods && !target->are_pods_set && target->size > AS_SAMPLES_MAX)
        return simulation_fail(AS_REASON_REJECTED, "more pods than are read");
    struct as_observation observation = {
        .outcome = AS_REASON_APPLIED,
        .replicas = target->size,
        .status_replicas = target->size,
        .min = -1,
        .max = -1,
        .has_pods = request->with_pods,
        .nodes = request->with_nodes ? &target->nodes : NULL,
        .rollout = {.progress = target->rollout},
        .http_status = 200,
    };
    if (target->rollout == AS_PROGRESS_UNDER_WAY && target->are_pods_set)
        observation.status_replicas = (int32_t)target->pod_count;
    if (request->with_pods) {
        make_pods(scenario, target);
        observation.pods = target->pods;
        observation.pod_count = target->pod_count;
    }
    return observation;
}

static bool is_finite(const struct as_query_result *result)
{
    for (size_t i = 0; i < result->sample_count; i++) {
        if (!isfinite(result->samples[i].value))
            return false;
    }
    return isfinite(result->value);
}

static struct as_query_result scenario_answer(const struct scenario_query *query,
                                              enum as_query_form form)
{
    if (!query)
        return (struct as_query_result){.error = "query returned no data"};
    const struct as_query_result *result = &query->result;
    if (result->error || form == AS_QUERY_ANY)
        return *result;
    if (form == AS_QUERY_NUMBER && result->sample_count > 0)
        return (struct as_query_result){.error = "query returned samples of pods, not one number"};
    if (form == AS_QUERY_PER_POD && result->sample_count == 0)
        return (struct as_query_result){.error = "query returned one number, not samples of pods"};
    if (!is_finite(result))
        return (struct as_query_result){.error = "query returned a value that is not finite"};
    return *result;
}

/* --- nodes and pods of pools --- */

/*
 * Nodes are named <group>-1 and so on, and are old. Pods are placed anew each time, in the order of
 * the test: first on the group that they name, one node after the other; all others on the first
 * node with room.
 */

struct placing {
    const struct scenario *scenario;
    const struct as_pool_request *request;
    struct as_arena *arena;
    struct as_cluster cluster;
    struct as_node_fact *nodes;
    struct as_node_shape *shapes; /* of the nodes */
    struct as_node_room *rooms;
    struct as_pod_fact *pods;
};

static int32_t simulation_get_size(const struct placing *placing, size_t member)
{
    const struct scenario_target *target =
        scenario_find_target(placing->scenario, placing->request->members[member].ref->id);
    return target ? target->size : -1;
}

static int32_t get_ready(const struct placing *placing, const char *group, int32_t size)
{
    const struct as_rule_test_cluster *cluster = placing->scenario->cluster;
    for (size_t i = 0; i < cluster->ready_count; i++) {
        if (strcmp(cluster->ready[i].group, group) == 0)
            return cluster->ready[i].ready < size ? cluster->ready[i].ready : size;
    }
    return size;
}

static void simulation_add_node(struct placing *placing, const struct as_pool_member *member,
                                int32_t number, const struct as_node_template *template)
{
    char name[AS_CLUSTER_NAME_MAX + 1];
    const size_t index = placing->cluster.node_count++;
    snprintf(name, sizeof(name), "%s-%d", member->name, number);
    placing->nodes[index] = (struct as_node_fact){
        .name = as_arena_strdup(placing->arena, name),
        .provider_id = "",
        .labels = template->shape.labels,
        .taints = template->shape.taints,
        .taint_count = template->shape.taint_count,
        .allocatable = template->allocatable,
        .capacity = template->capacity,
        .has_cpu = true,
        .has_memory = true,
        .is_ready = true,
        .created = placing->scenario->old,
        .ready_since = {true, placing->scenario->old},
    };
}

static int simulation_compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct as_node_fact *)a)->name, ((const struct as_node_fact *)b)->name);
}

static int simulation_compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A group without a template has no nodes. */
static void add_group(struct placing *placing, size_t index, struct as_snapshot_member *member_out)
{
    const struct as_pool_member *member = &placing->request->members[index];
    const struct as_nodes_config *config = member->nodes;
    const int32_t size = simulation_get_size(placing, index);
    struct as_node_template *template = as_arena_alloc(placing->arena, 1, sizeof(*template));
    const size_t before = placing->cluster.node_count;
    *member_out = (struct as_snapshot_member){
        .name = member->name,
        .id = member->ref->id,
        .is_member = member->is_member,
        .size = size,
        .min = member->min,
        .max = member->max,
        .message = size < 0 ? "the test does not say its size" : NULL,
        .closed = member->closed,
        .has_pending_scaleup = member->has_pending_scaleup,
        .refused = member->refused,
        .ready_timeout_us = config->ready_timeout_us,
        .has_priority = config->has_priority,
        .has_price = config->has_price,
        .priority = config->priority,
        .price = config->price,
        .unneeded = config->unneeded,
    };
    if (!config->template_ || size < 0)
        return;
    as_node_template_init_configured(template, config->template_, &placing->cluster.resources,
                                     placing->arena);
    const int32_t ready = get_ready(placing, member->name, size);
    for (int32_t i = 1; i <= ready; i++)
        simulation_add_node(placing, member, i, template);
    const char **names = as_arena_alloc(placing->arena, (size_t)ready, sizeof(*names));
    for (size_t i = before; i < placing->cluster.node_count; i++)
        names[i - before] = placing->nodes[i].name;
    qsort(names, (size_t)ready, sizeof(*names), simulation_compare_names);
    member_out->nodes = names;
    member_out->node_count = (size_t)ready;
    member_out->young = size - ready;
    member_out->configured = template;
}

/* ---- pods ---- */

static bool simulation_fits(struct placing *placing, size_t node,
                            const struct as_pod_class *pod_class)
{
    if (as_node_admits(&placing->shapes[node], pod_class) != AS_FITS ||
        as_node_room_count(&placing->rooms[node], &placing->cluster.resources, pod_class, 1,
                           NULL) == 0)
        return false;
    as_node_room_take(&placing->rooms[node], &placing->cluster.resources, pod_class, 1,
                      placing->arena);
    return true;
}

static bool simulation_is_of(const struct placing *placing, size_t node, const char *group)
{
    const char *name = placing->nodes[node].name;
    const size_t size = strlen(group);
    return strncmp(name, group, size) == 0 && name[size] == '-' && !strchr(name + size + 1, '-');
}

/* From `next` on, and round; AS_NO_NODE: nowhere. */
static uint32_t find_node(struct placing *placing, const struct as_rule_test_pods *pods,
                          size_t *next)
{
    for (size_t i = 0; i < placing->cluster.node_count; i++) {
        const size_t node = (*next + i) % placing->cluster.node_count;
        if ((pods->on && !simulation_is_of(placing, node, pods->on)) ||
            !simulation_fits(placing, node, &pods->pod_class))
            continue;
        *next = pods->on ? node + 1 : node;
        return (uint32_t)node;
    }
    return AS_NO_NODE;
}

static void simulation_add_pods(struct placing *placing, const struct as_rule_test_pods *pods)
{
    size_t next = 0;
    for (uint32_t i = 0; i < pods->count; i++) {
        const uint32_t node = find_node(placing, pods, &next);
        placing->pods[placing->cluster.pod_count++] = (struct as_pod_fact){
            .namespace_ = "default",
            .name = "pod",
            .pod_class = &pods->pod_class,
            .node = node,
            .nominated = AS_NO_NODE,
            .is_bound = node != AS_NO_NODE,
            .is_unschedulable = node == AS_NO_NODE,
            .created = placing->scenario->old,
        };
    }
}

static void place_pods(struct placing *placing)
{
    const struct as_rule_test_cluster *cluster = placing->scenario->cluster;
    const size_t node_count = placing->cluster.node_count;
    size_t count = 0;
    placing->shapes = as_arena_alloc(placing->arena, node_count, sizeof(*placing->shapes));
    placing->rooms = as_arena_alloc(placing->arena, node_count, sizeof(*placing->rooms));
    for (size_t i = 0; i < node_count; i++) {
        const struct as_node_fact *node = &placing->nodes[i];
        placing->shapes[i] = (struct as_node_shape){.name = node->name,
                                                    .labels = node->labels,
                                                    .taints = node->taints,
                                                    .taint_count = node->taint_count,
                                                    .allocatable = node->allocatable};
        placing->rooms[i].left = node->allocatable;
    }
    for (size_t i = 0; i < cluster->pod_count; i++)
        count += cluster->pods[i].count;
    placing->pods = as_arena_alloc(placing->arena, count, sizeof(*placing->pods));
    placing->cluster.pods = placing->pods;
    for (size_t i = 0; i < cluster->pod_count; i++)
        if (cluster->pods[i].on)
            simulation_add_pods(placing, &cluster->pods[i]);
    for (size_t i = 0; i < cluster->pod_count; i++)
        if (!cluster->pods[i].on)
            simulation_add_pods(placing, &cluster->pods[i]);
}

/* ---- the snapshot ---- */

static int64_t add_members(struct placing *placing, struct as_snapshot_member *members)
{
    const struct as_pool_request *request = placing->request;
    int64_t size = 0, nodes = 0;
    for (size_t i = 0; i < request->member_count; i++) {
        const int32_t of = simulation_get_size(placing, i);
        nodes += of > 0 ? of : 0;
        size += of > 0 && request->members[i].is_member ? of : 0;
    }
    placing->nodes = as_arena_alloc(placing->arena, (size_t)nodes, sizeof(*placing->nodes));
    placing->cluster.nodes = placing->nodes;
    for (size_t i = 0; i < request->member_count; i++)
        add_group(placing, i, &members[i]);
    qsort(placing->nodes, placing->cluster.node_count, sizeof(*placing->nodes),
          simulation_compare_nodes);
    return size;
}

struct scenario_pool {
    struct as_arena arena;
    struct as_pool_request request;
    struct as_cluster cluster;
    struct as_snapshot_request asked;
    struct as_snapshot snapshot;
    struct as_pool_plan plan;
    bool has_plan;
    int64_t size;
};

static void simulation_make_plan(struct scenario_pool *pool,
                                 const struct as_snapshot_member *members, as_wall_time now)
{
    const struct as_pool_request *request = &pool->request;
    pool->asked = (struct as_snapshot_request){
        .cluster = &pool->cluster,
        .members = members,
        .member_count = request->member_count,
        .config = request->config,
        .unneeded = request->unneeded,
        .unneeded_count = request->unneeded_count,
        .asked = request->asked,
        .asked_count = request->asked_count,
        .seed = request->seed,
        .now = now,
    };
    struct as_snapshot_work *work = as_snapshot_begin(&pool->asked, &pool->arena);
    while (!as_snapshot_step(work, AS_PACK_FITS_MAX, &pool->snapshot)) {
    }
    const struct as_pool_plan_request wanted = {
        .version = AS_DECIDE_VERSION,
        .snapshot = &pool->snapshot,
        .config = request->config,
        .terms = {.now = now,
                  .min = request->min,
                  .max = request->max,
                  .with_fit = request->with_fit,
                  .with_take = request->with_take},
    };
    struct as_pool_work *planning = as_pool_begin(&wanted, &pool->arena);
    while (!as_pool_step(planning, AS_PACK_FITS_MAX, &pool->plan)) {
    }
    pool->has_plan = true;
}

/* Each group has as many nodes as its size, as `nodes.template` says, and the pods are placed on
 * them. */
static struct scenario_pool *scenario_pool_new(const struct scenario *scenario,
                                               const struct as_pool_request *request,
                                               as_wall_time now)
{
    struct scenario_pool *pool = as_xcalloc(1, sizeof(*pool));
    pool->arena = AS_ARENA_INIT;
    as_pool_request_copy(request, &pool->arena, &pool->request);
    struct placing placing = {
        .scenario = scenario, .request = &pool->request, .arena = &pool->arena};
    if (!scenario->cluster) {
        pool->snapshot.error = "nothing is said of the cluster";
        return pool;
    }
    struct as_snapshot_member *members =
        as_arena_alloc(&pool->arena, request->member_count, sizeof(*members));
    placing.cluster.resources.count = AS_RES_NAMED;
    pool->size = add_members(&placing, members);
    place_pods(&placing);
    pool->cluster = placing.cluster;
    simulation_make_plan(pool, members, now);
    return pool;
}

/* NULL is allowed */
static struct scenario_pool *scenario_pool_free(struct scenario_pool *pool)
{
    if (!pool)
        return NULL;
    as_pool_request_deinit(&pool->request);
    as_arena_deinit(&pool->arena);
    free(pool);
    return NULL;
}

/* Fills in the size of a pool, its snapshot and its plan, which are the pool's. */
static void scenario_pool_report(const struct scenario_pool *pool,
                                 struct as_observation *observation)
{
    observation->outcome = AS_REASON_APPLIED;
    observation->replicas = observation->status_replicas =
        pool->size < AS_SIZE_MAX ? (int32_t)pool->size : AS_SIZE_MAX;
    observation->snapshot = &pool->snapshot;
    observation->plan = pool->has_plan ? &pool->plan : NULL;
}

/* --- the engine --- */

#define MONO_START (1000 * AS_US_PER_S) /* arbitrary; moments may be before it */

enum call { CALL_COMMIT, CALL_OBSERVE, CALL_QUERY, CALL_LIST, CALL_SCALE, CALL_APPROVE };

struct pending { /* an effect to be answered */
    enum call call;
    uint64_t call_id;
    struct scenario_target *target;    /* NULL: not found */
    struct as_observe_request observe; /* without its pool: */
    struct scenario_pool *pool;        /* as seen when it was asked for; NULL: no pool */
    int32_t size;
    const struct scenario_query *query; /* NULL: not found */
    enum as_query_form form;
    const struct as_target_config *entry; /* with `allow.list` */
    char request[AS_ULID_SIZE];           /* that a person approves */
};

struct as_simulation {
    struct as_simulation_callbacks callbacks;
    struct as_engine *engine;
    struct scenario scenario;
    as_wall_time start, now;
    bool approves, started;
    struct pending *pending; /* from `head` on; the memory is reused */
    size_t head, count, capacity;
    uint64_t requests;
};

struct as_simulation *as_simulation_new(const struct as_simulation_config *config)
{
    struct as_simulation *simulation = as_xcalloc(1, sizeof(*simulation));
    struct as_engine_config engine = config->engine;
    engine.resync_us = 0;
    simulation->callbacks = config->callbacks;
    simulation->approves = config->approves;
    simulation->engine = as_engine_new(&engine, config->ruleset);
    simulation->start = simulation->now = config->start;
    scenario_init(&simulation->scenario, config->ruleset, config->start);
    return simulation;
}

struct as_simulation *as_simulation_free(struct as_simulation *simulation)
{
    if (!simulation)
        return NULL;
    as_engine_free(simulation->engine);
    for (size_t i = simulation->head; i < simulation->count; i++)
        scenario_pool_free(simulation->pending[i].pool);
    scenario_deinit(&simulation->scenario);
    free(simulation->pending);
    free(simulation);
    return NULL;
}

void as_simulation_set_size(struct as_simulation *simulation, const char *target, int32_t replicas)
{
    scenario_get_target(&simulation->scenario, target)->size = replicas < 0 ? -1 : replicas;
}

int32_t as_simulation_get_size(const struct as_simulation *simulation, const char *target)
{
    return scenario_get_size(&simulation->scenario, target);
}

void as_simulation_set_pods(struct as_simulation *simulation, const char *target,
                            const struct as_pod_seen *pods, size_t count)
{
    scenario_set_pods(scenario_get_target(&simulation->scenario, target), pods, count);
}

void as_simulation_set_nodes(struct as_simulation *simulation, const char *target,
                             const struct as_nodes_seen *nodes)
{
    scenario_set_nodes(scenario_get_target(&simulation->scenario, target), nodes);
}

void as_simulation_set_rollout(struct as_simulation *simulation, const char *target,
                               enum as_rollout_progress progress)
{
    scenario_get_target(&simulation->scenario, target)->rollout = progress;
}

void as_simulation_set_cluster(struct as_simulation *simulation,
                               const struct as_rule_test_cluster *cluster)
{
    simulation->scenario.cluster = cluster;
}

void as_simulation_set_query(struct as_simulation *simulation, const char *text,
                             const struct as_query_result *result)
{
    scenario_set_query(&simulation->scenario, text, result);
}

static void simulation_ask(struct as_simulation *simulation, struct pending pending)
{
    simulation->pending = as_xgrow(simulation->pending, simulation->count, &simulation->capacity,
                                   sizeof(*simulation->pending));
    simulation->pending[simulation->count++] = pending;
}

static void ask_target(struct as_simulation *simulation, enum call call,
                       const struct as_effect *effect)
{
    const struct as_pool_request *pool = effect->call.observe ? effect->call.observe->pool : NULL;
    simulation_ask(
        simulation,
        (struct pending){
            .call = call,
            .call_id = effect->call_id,
            .pool = pool ? scenario_pool_new(&simulation->scenario, pool, simulation->now) : NULL,
            .target = scenario_find_target(&simulation->scenario, effect->call.ref->id),
            .observe =
                effect->call.observe ? *effect->call.observe : (struct as_observe_request){0},
            .size = effect->call.request ? effect->call.request->to : 0,
        });
}

static void ask_query(struct as_simulation *simulation, const struct as_effect *effect)
{
    const struct as_simulation_callbacks *callbacks = &simulation->callbacks;
    const struct scenario_query *query =
        scenario_find_query(&simulation->scenario, effect->query->text);
    if (!query && callbacks->no_data)
        callbacks->no_data(callbacks->context, simulation->now, effect->query);
    simulation_ask(simulation, (struct pending){
                                   .call = CALL_QUERY,
                                   .call_id = effect->call_id,
                                   .query = query,
                                   .form = effect->query->form,
                               });
}

static void simulation_report(const struct as_simulation *simulation,
                              const struct as_effect *effect)
{
    const struct as_simulation_callbacks *to = &simulation->callbacks;
    const as_wall_time now = simulation->now;
    if (effect->kind == AS_EFFECT_RECORD_NOTIFICATION && to->notification)
        to->notification(to->context, now, effect->notification);
    else if (effect->kind == AS_EFFECT_RECORD_DECISION && to->decision)
        to->decision(to->context, now, effect->decision);
    else if (effect->kind == AS_EFFECT_RECORD_ACTION && to->action)
        to->action(to->context, now, effect->action);
    else if (effect->kind == AS_EFFECT_RECORD_INCIDENT && to->incident)
        to->incident(to->context, now, effect->incident_record);
    else if (effect->kind == AS_EFFECT_RECORD_APPROVAL && to->approval)
        to->approval(to->context, now, effect->approval);
}

static void ask_person(struct as_simulation *simulation, const struct as_approval_record *record)
{
    struct pending pending = {.call = CALL_APPROVE};
    if (!simulation->approves || record->event != AS_APPROVAL_ON_ASKED)
        return;
    memcpy(pending.request, record->request->id, strlen(record->request->id) + 1);
    simulation_ask(simulation, pending);
}

static void simulation_carry_out(struct as_simulation *simulation, const struct as_effect *effect)
{
    if (effect->kind == AS_EFFECT_OBSERVE)
        ask_target(simulation, CALL_OBSERVE, effect);
    else if (effect->kind == AS_EFFECT_SCALE)
        ask_target(simulation, CALL_SCALE, effect);
    else if (effect->kind == AS_EFFECT_QUERY)
        ask_query(simulation, effect);
    else if (effect->kind == AS_EFFECT_LIST_OBJECTS)
        simulation_ask(simulation, (struct pending){.call = CALL_LIST,
                                                    .call_id = effect->call_id,
                                                    .entry = effect->entry});
    else if (effect->kind == AS_EFFECT_COMMIT && effect->call_id != 0)
        simulation_ask(simulation,
                       (struct pending){.call = CALL_COMMIT, .call_id = effect->call_id});
    else
        simulation_report(simulation, effect);
    if (effect->kind == AS_EFFECT_RECORD_APPROVAL)
        ask_person(simulation, effect->approval);
}

static as_mono_time simulation_get_mono(const struct as_simulation *simulation)
{
    return (as_mono_time){MONO_START + simulation->now.us - simulation->start.us};
}

static void simulation_step(struct as_simulation *simulation, struct as_event event)
{
    struct as_effects effects;
    event.mono = simulation_get_mono(simulation);
    event.wall = simulation->now;
    as_engine_step(simulation->engine, &event, &effects);
    for (size_t i = 0; i < effects.count; i++)
        simulation_carry_out(simulation, &effects.items[i]);
}

static struct as_scale_result simulation_set_size(const struct pending *pending)
{
    struct as_scale_result result = {.outcome = AS_REASON_TARGET_NOT_FOUND, .attempts = 1};
    if (pending->target && pending->target->size >= 0) {
        pending->target->size = pending->size;
        result.outcome = AS_REASON_APPLIED;
    }
    return result;
}

/* The namespace and the name in the id of a Kubernetes object; false: it has none. */
static bool simulation_read_object(struct as_arena *texts, const char *id,
                                   struct as_listed_object *object_out)
{
    const char *name = as_target_id_get_end(id);
    const char *end = name - 1, *begin = end;
    if (!as_str_starts_with(id, "kubernetes/") || name - id < 2)
        return false;
    while (begin > id && begin[-1] != '/')
        begin--;
    char *namespace_ = as_arena_strdup(texts, begin), *own_name = as_arena_strdup(texts, name);
    namespace_[end - begin] = '\0';
    own_name[strcspn(own_name, ":")] = '\0'; /* what is sized */
    *object_out = (struct as_listed_object){namespace_, own_name};
    return true;
}

/* Each target of the scenario that exists and that the entry may lead to: labels are not
 * simulated. */
static void simulation_list(struct as_simulation *simulation, const struct pending *pending)
{
    struct as_arena texts = AS_ARENA_INIT;
    struct scenario_target *target, *next;
    struct as_object_list list = {.count = 0};
    struct as_listed_object *items =
        as_arena_alloc(&texts, HASH_CNT(by_key, simulation->scenario.targets) + 1, sizeof(*items));
    HASH_ITER (by_key, simulation->scenario.targets, target, next) {
        if (target->size >= 0 && as_target_may_have_id(pending->entry, target->id))
            list.count += simulation_read_object(&texts, target->id, &items[list.count]);
    }
    list.items = items;
    simulation_step(
        simulation,
        (struct as_event){.kind = AS_EVENT_OBJECTS, .call_id = pending->call_id, .objects = &list});
    as_arena_deinit(&texts);
}

static struct as_event make_order(struct as_simulation *simulation,
                                  const struct as_operator_command *order)
{
    return (struct as_event){
        .kind = AS_EVENT_ORDER, .call_id = ++simulation->requests, .order = order};
}

static struct as_operator_command make_answer(const char *request, bool approves)
{
    return (struct as_operator_command){
        .kind = approves ? AS_OPERATOR_COMMAND_APPROVE : AS_OPERATOR_COMMAND_DENY,
        .request = request,
        .who = "",
        .remote = "",
        .reason = "a rehearsal",
    };
}

static void simulation_answer(struct as_simulation *simulation, const struct pending *pending)
{
    const uint64_t call_id = pending->call_id;
    switch (pending->call) {
    case CALL_OBSERVE: {
        struct as_observation seen =
            scenario_observe(&simulation->scenario, pending->target, &pending->observe);
        if (pending->pool)
            scenario_pool_report(pending->pool, &seen);
        simulation_step(
            simulation,
            (struct as_event){.kind = AS_EVENT_OBSERVED, .call_id = call_id, .observation = &seen});
        scenario_pool_free(pending->pool);
        break;
    }
    case CALL_QUERY: {
        const struct as_query_result result = scenario_answer(pending->query, pending->form);
        simulation_step(
            simulation,
            (struct as_event){.kind = AS_EVENT_QUERIED, .call_id = call_id, .answer = &result});
        break;
    }
    case CALL_SCALE: {
        const struct as_scale_result result = simulation_set_size(pending);
        simulation_step(
            simulation,
            (struct as_event){.kind = AS_EVENT_SCALED, .call_id = call_id, .result = &result});
        break;
    }
    case CALL_LIST: simulation_list(simulation, pending); break;
    case CALL_COMMIT:
        simulation_step(simulation,
                        (struct as_event){.kind = AS_EVENT_COMMITTED, .call_id = call_id});
        break;
    case CALL_APPROVE: {
        const struct as_operator_command order = make_answer(pending->request, true);
        simulation_step(simulation, make_order(simulation, &order));
        break;
    }
    }
}

/* One step, and the answers to all its effects. */
static void simulation_run(struct as_simulation *simulation, struct as_event event)
{
    simulation_step(simulation, event);
    while (simulation->head < simulation->count) {
        const struct pending pending = simulation->pending[simulation->head++];
        if (simulation->head == simulation->count)
            simulation->head = simulation->count = 0;
        simulation_answer(simulation, &pending);
    }
}

/* As late as possible, when sizes are known. */
static void simulation_start(struct as_simulation *simulation)
{
    if (simulation->started)
        return;
    simulation->started = true;
    simulation_run(simulation, (struct as_event){.kind = AS_EVENT_START});
}

static as_wall_time get_next_deadline(const struct as_simulation *simulation)
{
    const as_mono_time deadline = as_engine_get_next_deadline(simulation->engine);
    if (deadline.us == AS_MONO_NEVER.us)
        return (as_wall_time){INT64_MAX};
    return (as_wall_time){as_time_add(deadline.us - MONO_START, simulation->start.us)};
}

/* Runs every deadline before `end`. */
static void go(struct as_simulation *simulation, int64_t end)
{
    simulation_start(simulation);
    for (;;) {
        const as_wall_time deadline = get_next_deadline(simulation);
        if (deadline.us >= end)
            return;
        if (deadline.us > simulation->now.us)
            simulation->now = deadline;
        simulation_run(simulation, (struct as_event){.kind = AS_EVENT_DEADLINE});
    }
}

void as_simulation_approach(struct as_simulation *simulation, as_wall_time to)
{
    go(simulation, to.us);
    if (to.us > simulation->now.us)
        simulation->now = to;
}

void as_simulation_advance(struct as_simulation *simulation, as_wall_time to)
{
    go(simulation, as_time_add(to.us, 1));
    if (to.us > simulation->now.us)
        simulation->now = to;
}

void as_simulation_notify(struct as_simulation *simulation,
                          const struct as_notification *notification)
{
    simulation_start(simulation);
    simulation_run(simulation, (struct as_event){
                                   .kind = AS_EVENT_NOTIFICATION,
                                   .call_id = ++simulation->requests,
                                   .notification = notification,
                               });
}

struct waiting { /* the request that waits on a target */
    const struct as_simulation *simulation;
    const struct scenario_target *target;
    const char *rule; /* NULL: any */
    int32_t size;     /* -1: none */
    char id[AS_ULID_SIZE];
};

static void find_waiting(void *context, const struct as_approval_view *view)
{
    struct waiting *waiting = context;
    const struct as_approval_state *state = &view->state;
    if (state->answer != AS_APPROVAL_WAITING ||
        (waiting->rule && strcmp(waiting->rule, state->rule) != 0) || !waiting->target ||
        scenario_find_target(&waiting->simulation->scenario, view->target) != waiting->target)
        return;
    waiting->size = state->to;
    memcpy(waiting->id, state->id, strlen(state->id) + 1);
}

static struct waiting simulation_find_waiting(const struct as_simulation *simulation,
                                              const char *target, const char *rule)
{
    struct waiting waiting = {.simulation = simulation,
                              .target = scenario_find_target(&simulation->scenario, target),
                              .rule = rule,
                              .size = -1};
    as_engine_visit_approvals(simulation->engine, simulation_get_mono(simulation), simulation->now,
                              find_waiting, &waiting);
    return waiting;
}

int32_t as_simulation_get_asked(const struct as_simulation *simulation, const char *target)
{
    return simulation_find_waiting(simulation, target, NULL).size;
}

bool as_simulation_answer(struct as_simulation *simulation, const char *target, const char *rule,
                          bool approves)
{
    const struct waiting waiting = simulation_find_waiting(simulation, target, rule);
    const struct as_operator_command order = make_answer(waiting.id, approves);
    if (waiting.size < 0)
        return false;
    simulation_run(simulation, make_order(simulation, &order));
    return true;
}

as_wall_time as_simulation_get_now(const struct as_simulation *simulation)
{
    return simulation->now;
}
