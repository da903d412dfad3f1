/*
 * The world of a rehearsal: see the header.
 *
 * Default pods are created when the engine asks for them, and kept until the size changes. An
 * answer whose form does not fit the query is an error, as with Prometheus.
 */
#include "rehearsal_world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/target.h>

/* Removes white space outside of quotes: a query's layout does not matter. Returns the size of
 * world->packed, which holds the result. */
static size_t pack(struct world *world, const char *text)
{
    const size_t most = strlen(text) + 1;
    size_t size = 0;
    char quote = '\0';
    if (world->packed_capacity < most) {
        world->packed = as_xrealloc_array(world->packed, most, 1);
        world->packed_capacity = most;
    }
    for (; *text; text++) {
        if (!quote && strchr(" \t\r\n", *text))
            continue;
        const bool is_escape = quote && quote != '`' && *text == '\\' && text[1];
        if (is_escape)
            world->packed[size++] = *text++;
        else if (*text == quote)
            quote = '\0';
        else if (!quote && strchr("\"'`", *text))
            quote = *text;
        world->packed[size++] = *text;
    }
    world->packed[size] = '\0';
    return size;
}

static struct world_target *add_target(struct world *world, const char *id)
{
    struct world_target *target = as_xcalloc(1, sizeof(*target));
    target->id = as_xstrdup(id);
    target->key = as_target_key_make(id);
    target->name = as_target_id_get_end(target->id);
    target->size = -1;
    target->nodes.error = as_xstrdup("nothing is said of its nodes");
    HASH_ADD_KEYPTR(by_key, world->targets, target->key, strlen(target->key), target);
    return target;
}

void world_init(struct world *world, const struct as_ruleset *ruleset, as_wall_time start)
{
    *world = (struct world){.ruleset = ruleset, .old = {start.us - AS_US_PER_DAY}};
    for (size_t i = 0; i < ruleset->target_count; i++) {
        const struct as_target_config *config = &ruleset->targets[i];
        AS_CLEANUP(as_target_ref_free_p) struct as_target_ref *ref = NULL;
        if (config->is_templated || as_target_ref_new(config, NULL, NULL, &ref, NULL) != 0)
            continue;
        struct world_target *target = add_target(world, ref->id);
        target->name = config->name;
        target->pool = config->pool;
        HASH_ADD_KEYPTR(by_name, world->named, target->name, strlen(target->name), target);
    }
}

static void free_pods(struct world_target *target)
{
    for (size_t i = 0; i < target->pod_count; i++)
        free((char *)(uintptr_t)target->pods[i].name);
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

static void free_nodes(struct as_nodes_seen *nodes)
{
    free((char *)(uintptr_t)nodes->error);
    for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++)
        free((char *)(uintptr_t)nodes->lacking[i]);
}

void world_deinit(struct world *world)
{
    struct world_target *target, *next_target;
    HASH_CLEAR(by_name, world->named);
    HASH_ITER (by_key, world->targets, target, next_target) {
        HASH_DELETE(by_key, world->targets, target);
        free_pods(target);
        free_nodes(&target->nodes);
        free(target->id);
        free(target->key);
        free(target);
    }
    struct world_query *query, *next_query;
    HASH_ITER (by_text, world->queries, query, next_query) {
        HASH_DELETE(by_text, world->queries, query);
        free_samples(&query->result);
        free(query->text);
        free(query);
    }
    free(world->packed);
}

struct world_target *world_find_target(const struct world *world, const char *name_or_id)
{
    AS_CLEANUP(as_free_p) char *key = as_target_key_make(name_or_id);
    struct world_target *target;
    HASH_FIND(by_key, world->targets, key, strlen(key), target);
    if (!target)
        HASH_FIND(by_name, world->named, name_or_id, strlen(name_or_id), target);
    return target;
}

struct world_target *world_get_target(struct world *world, const char *name_or_id)
{
    struct world_target *target = world_find_target(world, name_or_id);
    return target ? target : add_target(world, name_or_id);
}

int32_t world_get_size(const struct world *world, const char *name_or_id)
{
    const struct world_target *target = world_find_target(world, name_or_id);
    const struct as_pool_config *pool = target ? target->pool : NULL;
    int64_t size = -1;
    if (!pool)
        return target ? target->size : -1;
    for (size_t i = 0; i < pool->group_count; i++) {
        const char *group = world->ruleset->targets[pool->groups[i]].name;
        const int32_t more = world_find_target(world, group)->size;
        if (more >= 0)
            size = (size < 0 ? 0 : size) + more;
    }
    return size < AS_SIZE_MAX ? (int32_t)size : AS_SIZE_MAX;
}

static int compare_pods(const void *a, const void *b)
{
    return strcmp(((const struct as_pod_seen *)a)->name, ((const struct as_pod_seen *)b)->name);
}

static void sort_pods(struct world_target *target)
{
    if (target->pod_count > 1)
        qsort(target->pods, target->pod_count, sizeof(*target->pods), compare_pods);
}

void world_set_pods(struct world_target *target, const struct as_pod_seen *pods, size_t count)
{
    free_pods(target);
    target->is_told = true;
    target->pods = as_xcalloc(count, sizeof(*target->pods));
    target->pod_count = count;
    for (size_t i = 0; i < count; i++) {
        target->pods[i] = pods[i];
        target->pods[i].name = as_xstrdup(pods[i].name);
    }
    sort_pods(target);
}

static char *copy_or_null(const char *text)
{
    return text ? as_xstrdup(text) : NULL;
}

void world_set_nodes(struct world_target *target, const struct as_nodes_seen *nodes)
{
    free_nodes(&target->nodes);
    target->nodes = *nodes;
    target->nodes.error = copy_or_null(nodes->error);
    for (enum as_resource i = 0; i < AS_RESOURCE_COUNT; i++)
        target->nodes.lacking[i] = copy_or_null(nodes->lacking[i]);
}

static void make_pods(const struct world *world, struct world_target *target)
{
    const size_t count = (size_t)target->size;
    if (target->is_told || target->pod_count == count)
        return;
    free_pods(target);
    target->pods = as_xcalloc(count, sizeof(*target->pods));
    target->pod_count = count;
    for (size_t i = 0; i < count; i++)
        target->pods[i] = (struct as_pod_seen){
            .name = as_xasprintf("%s-%zu", target->name, i + 1),
            .phase = AS_POD_RUNNING,
            .ready = AS_TRUE,
            .start_time = {true, world->old},
            .ready_since = {true, world->old},
            .requests = {(double)NAN, (double)NAN},
            .limits = {(double)NAN, (double)NAN},
        };
    sort_pods(target);
}

struct world_query *world_find_query(struct world *world, const char *text)
{
    struct world_query *query;
    const size_t size = pack(world, text);
    HASH_FIND(by_text, world->queries, world->packed, size, query);
    return query;
}

static int compare_samples(const void *a, const void *b)
{
    return strcmp(((const struct as_sample *)a)->pod, ((const struct as_sample *)b)->pod);
}

void world_set_query(struct world *world, const char *text, const struct as_query_result *result)
{
    struct world_query *query = world_find_query(world, text);
    if (!query) {
        query = as_xcalloc(1, sizeof(*query));
        query->text = as_xstrdup(world->packed); /* packed by the search */
        HASH_ADD_KEYPTR(by_text, world->queries, query->text, strlen(query->text), query);
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
        qsort(samples, result->sample_count, sizeof(*samples), compare_samples);
    copy.samples = samples;
    free_samples(&query->result);
    query->result = copy;
}

static struct as_observation fail(enum as_reason outcome, const char *message)
{
    struct as_observation observation = {.outcome = outcome, .min = -1, .max = -1};
    (void)snprintf(observation.message, sizeof(observation.message), "%s", message);
    return observation;
}

struct as_observation world_observe(const struct world *world, struct world_target *target,
                                    const struct as_observe_request *request)
{
    if (!target || target->size < 0) {
        struct as_observation observation =
            fail(AS_REASON_TARGET_NOT_FOUND, "the rehearsal has no such target");
        observation.http_status = 404;
        return observation;
    }
    if (request->with_pods && !target->is_told && target->size > AS_SAMPLES_MAX)
        return fail(AS_REASON_REJECTED, "more pods than are read");
    struct as_observation observation = {
        .outcome = AS_REASON_APPLIED,
        .replicas = target->size,
        .status_replicas = target->size,
        .min = -1,
        .max = -1,
        .has_pods = request->with_pods,
        .nodes = request->with_nodes ? &target->nodes : NULL,
        .http_status = 200,
    };
    if (request->with_pods) {
        make_pods(world, target);
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

struct as_query_result world_answer(const struct world_query *query, enum as_query_form form)
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
