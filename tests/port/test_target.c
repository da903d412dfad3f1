/*
 * The promises that every implementation of port/target.h keeps: here the Kubernetes adapter and
 * the HTTP node group's, alone and behind the registry, each with a small server of its kind.
 */
#include <alertscaler/port/target.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <jansson.h>

#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/cloud/target_registry.h>
#include <alertscaler/kube/kube_target.h>

#include "cloud/node_group.h"
#include "world.h"

enum fault { NONE, BREAK_BEFORE, BREAK_AFTER, TIME_OUT_AFTER };

struct medium {
    const char *name;
    bool is_kubernetes, is_behind_registry;
    struct world world;
    struct as_access_env env;
    struct as_target_port *port;
    struct as_target_ref *ref;
    struct as_cluster_settings cluster;
    struct as_provider_settings provider;
    struct as_settings settings;
    char kubeconfig[64];
    /* The other side. */
    int32_t size;
    unsigned version;
    bool is_gone;
    enum fault fault; /* of the next change */
    char body[512];
};

static struct medium media[] = {
    {.name = "kubernetes", .is_kubernetes = true},
    {.name = "http_group"},
    {.name = "kubernetes behind the registry", .is_kubernetes = true, .is_behind_registry = true},
    {.name = "http_group behind the registry", .is_behind_registry = true},
};

/* The other side */

static const char discovery[] =
    "{\"groupVersion\":\"apps/v1\",\"resources\":[{\"name\":\"deployments\",\"kind\":"
    "\"Deployment\",\"namespaced\":true},{\"name\":\"deployments/scale\",\"kind\":\"Scale\","
    "\"group\":\"autoscaling\",\"version\":\"v1\"}]}";

static struct world_answer show(struct medium *medium)
{
    if (medium->is_kubernetes)
        snprintf(
            medium->body, sizeof(medium->body),
            "{\"kind\":\"Scale\",\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"%u\"},"
            "\"spec\":{\"replicas\":%d},\"status\":{\"replicas\":%d,\"selector\":\"app=web\"}}",
            medium->version, medium->size, medium->size);
    else
        snprintf(medium->body, sizeof(medium->body), "{\"size\":%d,\"etag\":\"%u\"}", medium->size,
                 medium->version);
    return (struct world_answer){.status = 200, .body = medium->body};
}

/* As many pods as the size says, the last one first. */
static struct world_answer show_pods(struct medium *medium)
{
    struct as_buf list = AS_BUF_INIT(sizeof(medium->body) - 1);
    as_buf_append_str(&list, "{\"kind\":\"PodList\",\"items\":[");
    for (int32_t i = medium->size; i > 0; i--)
        as_buf_printf(&list, "{\"metadata\":{\"name\":\"web-%d\"}}%s", i, i > 1 ? "," : "");
    as_buf_append_str(&list, "]}");
    cr_assert_eq(as_buf_check(&list), 0);
    memcpy(medium->body, list.data, list.size + 1);
    as_buf_deinit(&list);
    return (struct world_answer){.status = 200, .body = medium->body};
}

static struct world_answer refuse(struct medium *medium, int status)
{
    snprintf(medium->body, sizeof(medium->body),
             "{\"kind\":\"Status\",\"message\":\"m\",\"details\":{\"name\":\"web\"}}");
    return (struct world_answer){.status = status, .body = medium->body};
}

static bool is_current(const struct medium *medium, const struct world_request *request,
                       const json_t *asked)
{
    char want[64];
    snprintf(want, sizeof(want), "%u", medium->version);
    if (medium->is_kubernetes) {
        const json_t *metadata = json_object_get(asked, "metadata");
        return !strcmp(json_string_value(json_object_get(metadata, "resourceVersion")), want);
    }
    const char *tag = strstr(request->headers, "If-Match: ");
    cr_assert_not_null(tag);
    tag += strlen("If-Match: ");
    return strncmp(tag, want, strlen(want)) == 0 && tag[strlen(want)] == '\n';
}

static int32_t get_asked_size(const struct medium *medium, const json_t *asked)
{
    const json_t *spec = medium->is_kubernetes ? json_object_get(asked, "spec") : asked;
    return (int32_t)json_integer_value(
        json_object_get(spec, medium->is_kubernetes ? "replicas" : "size"));
}

static struct world_answer change(struct medium *medium, const struct world_request *request)
{
    enum fault fault = medium->fault;
    medium->fault = NONE;
    if (fault == BREAK_BEFORE)
        return (struct world_answer){.outcome = AS_HTTP_UNREACHABLE, .error = "e"};
    json_t *asked = json_loads(request->body, 0, NULL);
    cr_assert_not_null(asked);
    bool fits = is_current(medium, request, asked);
    if (fits) {
        medium->size = get_asked_size(medium, asked);
        medium->version++;
    }
    json_decref(asked);
    if (fault == BREAK_AFTER)
        return (struct world_answer){.outcome = AS_HTTP_BROKEN, .error = "e"};
    if (fault == TIME_OUT_AFTER)
        return (struct world_answer){.outcome = AS_HTTP_TIMEOUT, .error = "e"};
    return fits ? show(medium) : refuse(medium, medium->is_kubernetes ? 409 : 412);
}

static struct world_answer serve(void *context, const struct world_request *request)
{
    struct medium *medium = context;
    if (strcmp(request->method, "POST") == 0)
        return (struct world_answer){.status = 201, .body = "{}"};
    if (strstr(request->url, "/apis/apps/v1") && !strstr(request->url, "/scale"))
        return (struct world_answer){.status = 200, .body = discovery};
    if (strstr(request->url, "/pods?"))
        return show_pods(medium);
    if (medium->is_gone)
        return refuse(medium, 404);
    return strcmp(request->method, "PUT") == 0 ? change(medium, request) : show(medium);
}

/* A medium's life */

static const char *get_variable(const char *name)
{
    return NULL;
}

static void write_kubeconfig(struct medium *medium)
{
    snprintf(medium->kubeconfig, sizeof(medium->kubeconfig), "/tmp/as-port-XXXXXX");
    int fd = mkstemp(medium->kubeconfig);
    cr_assert(fd >= 0);
    FILE *file = fdopen(fd, "w");
    fputs("current-context: c\n"
          "clusters: [{name: c, cluster: {server: 'https://k'}}]\n"
          "contexts: [{name: c, context: {cluster: c}}]\n",
          file);
    fclose(file);
}

static struct as_target_ref *make_ref(const struct medium *medium)
{
    const struct as_target_field kubernetes[] = {{"cluster", "default"},
                                                 {"apiVersion", "apps/v1"},
                                                 {"kind", "Deployment"},
                                                 {"namespace", "shop"},
                                                 {"name", "web"}};
    const struct as_target_field group[] = {{"provider", "mine"}, {"url", "http://pool/a"}};
    return medium->is_kubernetes
               ? as_target_ref_make(&as_target_kind_kubernetes, "kubernetes/x", kubernetes, 5)
               : as_target_ref_make(&as_target_kind_node_group, "node_group/x", group, 2);
}

static void open_port(struct medium *medium)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_kube_access *access;
    if (medium->is_behind_registry) {
        cr_assert_eq(as_target_registry_new(&medium->settings, &medium->env, &medium->port, &error),
                     0);
    } else if (medium->is_kubernetes) {
        struct as_kube_access_config config = {medium->kubeconfig, NULL};
        cr_assert_eq(as_kube_access_new(&config, &medium->env, &access, &error), 0);
        medium->port = as_kubernetes_new(access, &medium->env);
    } else {
        medium->port = as_node_group_new(as_group_provider_find("http"), &medium->provider,
                                         &medium->env, NULL, NULL);
    }
}

static void setup(struct medium *medium)
{
    world_init(&medium->world);
    medium->world.serve = serve;
    medium->world.serve_context = medium;
    medium->env = (struct as_access_env){.http = &medium->world.http,
                                         .loop = &medium->world.loop,
                                         .runner = &medium->world.runner,
                                         .clock = &medium->world.clock,
                                         .get_variable = get_variable};
    write_kubeconfig(medium);
    medium->cluster = (struct as_cluster_settings){"default", medium->kubeconfig, NULL};
    medium->provider =
        (struct as_provider_settings){.name = "mine", .type = "http", .timeout_us = AS_US_PER_S};
    medium->settings = (struct as_settings){.clusters = &medium->cluster,
                                            .cluster_count = 1,
                                            .providers = &medium->provider,
                                            .provider_count = 1};
    medium->size = 4;
    medium->version = 100;
    medium->ref = make_ref(medium);
    open_port(medium);
}

static void teardown(struct medium *medium)
{
    if (medium->port)
        medium->port->close(medium->port);
    as_target_ref_free(medium->ref);
    unlink(medium->kubeconfig);
    world_deinit(&medium->world);
}

#define PORT_TEST(test_name)                                                                       \
    static void test_name(struct medium *medium);                                                  \
    ParameterizedTestParameters(port_target, test_name)                                            \
    {                                                                                              \
        return cr_make_param_array(struct medium, media, AS_ARRAY_SIZE(media));                    \
    }                                                                                              \
    ParameterizedTest(struct medium *medium, port_target, test_name)                               \
    {                                                                                              \
        setup(medium);                                                                             \
        test_name(medium);                                                                         \
        teardown(medium);                                                                          \
    }                                                                                              \
    static void test_name(struct medium *medium)

/* What is told */

static unsigned told;
static uint64_t call_ids; /* a bit each */
static struct as_observation observation;
static struct as_scale_result result;

static void keep_observation(void *context, uint64_t call_id, const struct as_observation *o)
{
    told++;
    call_ids |= UINT64_C(1) << call_id;
    observation = *o;
    cr_expect(o->has_pods || o->pod_count == 0);
    for (size_t i = 0; i < o->pod_count; i++) /* good during the callback, and in order */
        cr_expect(i == 0 || strcmp(o->pods[i - 1].name, o->pods[i].name) < 0);
}

static void keep_result(void *context, uint64_t call_id, const struct as_scale_result *r)
{
    told++;
    call_ids |= UINT64_C(1) << call_id;
    result = *r;
}

static void observe(struct medium *medium)
{
    unsigned before = told;
    medium->port->observe(medium->port, 1, medium->ref, &(struct as_observe_request){0},
                          keep_observation, NULL);
    cr_assert_eq(told, before, "told in the caller's own turn");
    world_run(&medium->world);
    cr_assert_eq(told, before + 1);
}

static void start_scale(struct medium *medium, uint64_t call_id, int32_t to)
{
    struct as_scale_request request = {
        .from = observation.replicas, .to = to, .decision_id = "d", .rule = "r", .alert = ""};
    memcpy(request.version, observation.version, sizeof(request.version));
    medium->port->scale(medium->port, call_id, medium->ref, &request, keep_result, NULL);
}

static void scale(struct medium *medium, int32_t to)
{
    unsigned before = told;
    start_scale(medium, 2, to);
    cr_assert_eq(told, before, "told in the caller's own turn");
    world_run(&medium->world);
    cr_assert_eq(told, before + 1);
}

PORT_TEST(what_is_set_is_observed)
{
    observe(medium);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED);
    cr_expect_eq(observation.replicas, 4);
    cr_expect_eq(observation.status_replicas, 4);
    cr_expect_eq(observation.http_status, 200);
    static const int32_t sizes[] = {6, 0, INT32_MAX, 1};
    for (size_t i = 0; i < AS_ARRAY_SIZE(sizes); i++) {
        struct as_observation before = observation;
        scale(medium, sizes[i]);
        cr_expect_eq(result.outcome, AS_REASON_APPLIED, "%s", result.message);
        cr_expect_not(result.is_ambiguous);
        cr_expect_eq(result.attempts, 1);
        cr_expect_str_eq(result.method, "PUT");
        cr_expect_neq(result.path[0], '\0');
        observe(medium);
        cr_expect_eq(observation.replicas, sizes[i]);
        cr_expect_str_neq(observation.version, before.version);
    }
}

PORT_TEST(who_was_overtaken_changes_nothing)
{
    observe(medium);
    medium->size = 9;
    medium->version++;
    scale(medium, 6);
    cr_expect_eq(result.outcome, AS_REASON_CONFLICT);
    cr_expect_not(result.is_ambiguous);
    cr_expect_eq(medium->size, 9);
    observe(medium);
    scale(medium, 6);
    cr_expect_eq(result.outcome, AS_REASON_APPLIED);
}

/* Of two that rest on the same observation one wins. */
PORT_TEST(only_one_of_two_wins)
{
    observe(medium);
    start_scale(medium, 1, 6);
    start_scale(medium, 2, 7);
    world_run(&medium->world);
    cr_expect_eq(told, 3);
    cr_expect_eq(result.outcome, AS_REASON_CONFLICT);
    cr_expect_eq(medium->size, 6);
}

PORT_TEST(what_is_gone_is_not_found)
{
    observe(medium);
    medium->is_gone = true;
    scale(medium, 6);
    cr_expect_eq(result.outcome, AS_REASON_TARGET_NOT_FOUND);
    cr_expect_not(result.is_ambiguous);
    observe(medium);
    cr_expect_eq(observation.outcome, AS_REASON_TARGET_NOT_FOUND);
    medium->is_gone = false;
    observe(medium);
    cr_expect_eq(observation.outcome, AS_REASON_APPLIED);
}

PORT_TEST(what_may_have_been_done_is_ambiguous)
{
    static const struct {
        enum fault fault;
        enum as_reason outcome;
        bool is_ambiguous;
        int32_t size;
    } rows[] = {
        {BREAK_BEFORE, AS_REASON_UNREACHABLE, false, 4},
        {BREAK_AFTER, AS_REASON_UNREACHABLE, true, 5},
        {TIME_OUT_AFTER, AS_REASON_TIMEOUT, true, 6},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        observe(medium);
        medium->fault = rows[i].fault;
        scale(medium, observation.replicas + 1);
        cr_expect_eq(result.outcome, rows[i].outcome, "row %zu", i);
        cr_expect_eq(result.is_ambiguous, rows[i].is_ambiguous, "row %zu", i);
        cr_expect_eq(medium->size, rows[i].size, "row %zu", i);
        /* The same change again does no harm: it is done, or it conflicts. */
        start_scale(medium, 3, rows[i].size);
        world_run(&medium->world);
        cr_expect_eq(medium->size, rows[i].size, "row %zu", i);
    }
}

PORT_TEST(pods_are_told_where_there_are_such_things)
{
    static const int32_t sizes[] = {4, 9, 0};
    for (size_t i = 0; i < AS_ARRAY_SIZE(sizes); i++) {
        medium->size = sizes[i];
        medium->port->observe(medium->port, 1, medium->ref,
                              &(struct as_observe_request){.with_pods = true}, keep_observation,
                              NULL);
        world_run(&medium->world);
        cr_expect_eq(told, i + 1);
        cr_expect_eq(observation.outcome, AS_REASON_APPLIED, "%s", observation.message);
        cr_expect_eq(observation.replicas, sizes[i]);
        cr_expect_eq(observation.has_pods, medium->is_kubernetes);
        cr_expect_eq(observation.pod_count, medium->is_kubernetes ? (size_t)sizes[i] : 0);
    }
    observe(medium);
    cr_expect_not(observation.has_pods, "not asked for");
}

PORT_TEST(each_of_many_is_told_once)
{
    for (uint64_t call_id = 0; call_id < 64; call_id++)
        medium->port->observe(medium->port, call_id, medium->ref,
                              &(struct as_observe_request){.with_pods = call_id % 2},
                              keep_observation, NULL);
    world_run(&medium->world);
    cr_expect_eq(told, 64);
    cr_expect_eq(call_ids, UINT64_MAX);
}

PORT_TEST(nothing_is_told_after_close)
{
    medium->port->observe(medium->port, 1, medium->ref,
                          &(struct as_observe_request){.with_pods = true}, keep_observation, NULL);
    start_scale(medium, 2, 6);
    medium->port->close(medium->port);
    medium->port = NULL;
    world_run(&medium->world);
    cr_expect_eq(told, 0);
}
