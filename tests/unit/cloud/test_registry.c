/*
 * target_registry.h: each reference reaches the adapter of its cluster or provider; an unreachable
 * adapter says why; an unusable configured cluster is an error at once.
 */
#include <errno.h>

#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/cloud/target_registry.h>
#include <alertscaler/kube/target_outcome.h>
#include <alertscaler/rules/provider_kind.h>

#include "../kube/support.h"

static char directory[] = "/tmp/as-registry-XXXXXX", paths[2][64];
static struct as_target_port *port;
static struct as_error error;

static void setup(void)
{
    setup_world();
    cr_assert_not_null(mkdtemp(directory));
    for (int i = 0; i < 2; i++) {
        char text[256];
        snprintf(paths[i], sizeof(paths[i]), "%s/%d", directory, i);
        snprintf(text, sizeof(text),
                 "current-context: c\n"
                 "clusters: [{name: c, cluster: {server: 'https://k%d'}}]\n"
                 "contexts: [{name: c, context: {cluster: c}}]\n",
                 i);
        write_file(paths[i], text);
    }
}

static void teardown(void)
{
    if (port)
        port->close(port);
    unlink(paths[0]);
    unlink(paths[1]);
    rmdir(directory);
    teardown_world();
}

TestSuite(registry, .init = setup, .fini = teardown);

static struct as_target_ref *make(const struct as_target_kind *kind, const char *owner)
{
    const struct as_target_field fields[] = {
        {kind == &as_target_kind_kubernetes ? "cluster" : "provider", owner},
        {"apiVersion", "v1"},
        {"kind", "A"},
        {"namespace", "n"},
        {"name", "x"},
        {"url", "http://pool/a"}};
    return as_target_ref_make(kind, "id", fields, 6);
}

/* A configuration may have each type that has keys. */
Test(registry, each_kind_of_provider_has_its_calls)
{
    size_t count = 0;
    for (; as_provider_kinds[count]; count++) {
        const char *type = as_provider_kinds[count]->type;
        const struct as_group_provider *provider = as_group_provider_find(type);
        cr_assert_not_null(provider, "%s", type);
        cr_expect_str_eq(provider->type, type);
        cr_expect_not_null(provider->begin, "%s", type);
    }
    cr_expect_eq(count, 12);
    cr_expect_not_null(as_group_provider_find("http"));
    cr_expect_null(as_group_provider_find("awss"));
}

Test(registry, each_reference_reaches_its_own_adapter)
{
    struct as_cluster_settings clusters[] = {{"default", paths[0], NULL}, {"edge", paths[1], "c"}};
    struct as_provider_settings providers[] = {
        {.name = "default", .type = "http", .timeout_us = AS_US_PER_S}};
    struct as_settings settings = {
        .clusters = clusters, .cluster_count = 2, .providers = providers, .provider_count = 1};
    cr_assert_eq(as_target_registry_new(&settings, &env, &port, &error), 0, "%s", error.text);
    static const struct {
        const struct as_target_kind *kind;
        const char *owner, *url;
    } rows[] = {{&as_target_kind_kubernetes, "default", "https://k0/api/v1"},
                {&as_target_kind_kubernetes, "edge", "https://k1/api/v1"},
                {&as_target_kind_node_group, "default", "http://pool/a"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_target_ref *ref = make(rows[i].kind, rows[i].owner);
        world_answer(&world, (struct world_answer){"GET", rows[i].url, .status = 403});
        observe(port, ref);
        cr_expect_eq(observation.outcome, AS_REASON_FORBIDDEN);
        cr_expect_str_eq(world.requests[i].url, rows[i].url);
        as_target_ref_free(ref);
    }
    struct as_target_ref *group = make(&as_target_kind_node_group, "default");
    world_answer(&world, (struct world_answer){"PUT", "http://pool/a", .status = 200});
    scale(port, group, 1, 2, "");
    cr_expect_eq(result.outcome, AS_REASON_APPLIED);
    as_target_ref_free(group);
}

Test(registry, without_a_cluster_only_its_targets_fail)
{
    struct as_cluster_settings cluster = {"default", NULL, NULL};
    struct as_settings settings = {.clusters = &cluster, .cluster_count = 1};
    cr_assert_eq(as_target_registry_new(&settings, &env, &port, &error), 0, "%s", error.text);
    static const struct {
        const struct as_target_kind *kind;
        const char *owner;
        enum as_reason reason;
        const char *message;
    } rows[] = {
        {&as_target_kind_kubernetes, "default", AS_REASON_UNREACHABLE,
         "no cluster: not in a pod, and neither KUBECONFIG nor HOME is set"},
        {&as_target_kind_kubernetes, "nope", AS_REASON_REJECTED,
         "no such cluster or provider is configured"},
        {&as_target_kind_node_group, "default", AS_REASON_REJECTED,
         "no such cluster or provider is configured"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct as_target_ref *ref = make(rows[i].kind, rows[i].owner);
        observe(port, ref);
        cr_expect_eq(observation.outcome, rows[i].reason, "row %zu", i);
        cr_expect_str_eq(observation.message, rows[i].message);
        scale(port, ref, 1, 2, "");
        cr_expect_eq(result.outcome, rows[i].reason, "row %zu", i);
        cr_expect_not(result.is_ambiguous);
        cr_expect_eq(result.attempts, 0);
        as_target_ref_free(ref);
    }
}

Test(registry, a_configured_cluster_must_be_usable)
{
    struct as_cluster_settings clusters[] = {{"default", NULL, NULL},
                                             {"edge", "/nonexistent/config", NULL}};
    struct as_settings settings = {.clusters = clusters, .cluster_count = 2};
    cr_expect_eq(as_target_registry_new(&settings, &env, &port, &error), -ENOENT);
    cr_expect_str_eq(error.text, "cluster edge: /nonexistent/config: No such file or directory");
    cr_expect_null(port);
    clusters[1] = (struct as_cluster_settings){"edge", paths[0], "nope"};
    cr_expect_eq(as_target_registry_new(&settings, &env, &port, &error), -EINVAL);
    cr_expect_not_null(strstr(error.text, "there is no context \"nope\""));
}

Test(registry, is_idle_when_all_is_told)
{
    struct as_settings settings = {0};
    struct as_target_ref *ref = make(&as_target_kind_kubernetes, "x");
    cr_assert_eq(as_target_registry_new(&settings, &env, &port, &error), 0);
    cr_expect(port->is_idle(port));
    port->observe(port, 1, ref, &(struct as_observe_request){0}, keep_observation, NULL);
    cr_expect_not(port->is_idle(port));
    world_run(&world);
    cr_expect(port->is_idle(port));
    as_target_ref_free(ref);
}

Test(registry, nothing_is_told_after_close)
{
    struct as_settings settings = {0};
    struct as_target_ref *ref = make(&as_target_kind_kubernetes, "x");
    cr_assert_eq(as_target_registry_new(&settings, &env, &port, &error), 0);
    port->observe(port, 1, ref, &(struct as_observe_request){0}, keep_observation, NULL);
    port->close(port);
    port = NULL;
    world_run(&world);
    cr_expect_eq(observed_count, 0);
    as_target_ref_free(ref);
}

static struct as_target_ref *make_machines(void)
{
    const struct as_target_field fields[] = {
        {"provider", "machines"}, {"namespace", "n"}, {"name", "x"}};
    return as_target_ref_make(&as_target_kind_node_group, "id", fields, 3);
}

Test(registry, a_provider_of_a_cluster_asks_its_api_server)
{
    struct as_cluster_settings clusters[] = {{"default", paths[0], NULL}, {"edge", paths[1], "c"}};
    struct as_provider_option option = {"cluster", "edge"};
    struct as_provider_settings provider = {.name = "machines",
                                            .type = "clusterapi",
                                            .timeout_us = AS_US_PER_S,
                                            .options = &option,
                                            .option_count = 1};
    struct as_settings settings = {
        .clusters = clusters, .cluster_count = 2, .providers = &provider, .provider_count = 1};
    struct as_target_ref *ref = make_machines();
    cr_assert_eq(as_target_registry_new(&settings, &env, &port, &error), 0, "%s", error.text);
    const char *url = "https://k1/apis/cluster.x-k8s.io";
    world_answer(&world, (struct world_answer){"GET", url, .status = 403});
    observe(port, ref);
    cr_expect_eq(observation.outcome, AS_REASON_FORBIDDEN);
    cr_expect_str_eq(world.requests[0].url, url);
    cr_expect_eq(world.requests[0].timeout_us, AS_US_PER_S);
    /* Closed while one is under way. */
    port->observe(port, 1, ref, &(struct as_observe_request){0}, keep_observation, NULL);
    while (world.request_count < 2)
        cr_assert(world_expire(&world));
    port->close(port);
    port = NULL;
    cr_expect(world.requests[1].is_cancelled);
    world_run(&world);
    cr_expect_eq(observed_count, 1);
    as_target_ref_free(ref);
}

Test(registry, a_provider_of_a_cluster_that_is_not_there_says_so)
{
    struct as_provider_option option = {"cluster", "edge"};
    struct as_provider_settings provider = {
        .name = "machines", .type = "clusterapi", .options = &option};
    struct as_cluster_settings cluster = {"default", NULL, NULL};
    struct as_settings settings = {
        .clusters = &cluster, .cluster_count = 1, .providers = &provider, .provider_count = 1};
    struct as_target_ref *ref = make_machines();
    for (size_t count = 0; count < 2; count++) {
        provider.option_count = count;
        cr_assert_eq(as_target_registry_new(&settings, &env, &port, &error), 0, "%s", error.text);
        observe(port, ref);
        cr_expect_eq(observation.outcome, AS_REASON_UNREACHABLE);
        cr_expect_str_eq(observation.message,
                         count ? "cluster edge: there is no such one"
                               : "cluster default: no cluster: not in a pod, and neither "
                                 "KUBECONFIG nor HOME is set");
        port->close(port);
        port = NULL;
    }
    as_target_ref_free(ref);
}

/* --- nodes with our marks --- */

static struct as_nodes_recovery recovery;
static unsigned recoveries;
static char recovery_error[AS_MESSAGE_SIZE];

static void keep_recovery(void *context, const struct as_nodes_recovery *found)
{
    recoveries++;
    recovery = *found;
    snprintf(recovery_error, sizeof(recovery_error), "%s", found->error);
}

#define NODES(i) "https://k" i "/api/v1/nodes?limit=500"

static void answer_nodes(const char *url, int status, const char *body)
{
    world_answer(&world, (struct world_answer){"GET", url, .status = status, .body = body});
}

Test(registry, marks_are_gone_once_no_cluster_has_one)
{
    static const char none[] = "{\"kind\":\"NodeList\",\"metadata\":{},\"items\":[]}";
    struct as_cluster_settings clusters[] = {{"default", paths[0], NULL}, {"edge", paths[1], "c"}};
    struct as_settings settings = {.clusters = clusters, .cluster_count = 2};
    env.nodes_recovered = keep_recovery;
    cr_assert_eq(as_target_registry_new(&settings, &env, &port, &error), 0, "%s", error.text);
    answer_nodes(NODES("0"), 200, none);
    answer_nodes(NODES("1"), 403, "{\"kind\":\"Status\",\"message\":\"no\"}");
    as_target_registry_recover(port);
    world_run(&world);
    cr_assert_eq(recoveries, 2);
    cr_expect_not(recovery.is_clean, "the nodes of the other cluster are not known");
    cr_expect_eq(recovery.reason, AS_REASON_FORBIDDEN);
    cr_expect_str_eq(recovery_error, "list nodes: the right \"nodes: list\" is missing: no");

    answer_nodes(NODES("1"), 200, none);
    world_advance(&world, AS_DRAIN_RECOVER_US);
    cr_assert_eq(recoveries, 3);
    cr_expect(recovery.is_clean);
    cr_expect_str_eq(recovery.cluster, "edge");

    answer_nodes(NODES("0"), 200, none);
    answer_nodes(NODES("1"), 200, none);
    as_target_registry_recover(port);
    as_target_registry_retire(port);
    world_run(&world);
    cr_assert_eq(recoveries, 5);
    cr_expect_not(recovery.is_clean, "others have taken over");
}
