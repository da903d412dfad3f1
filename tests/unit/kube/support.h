/*
 * Shared by the tests of the target adapters: an environment in a fake world, references, and
 * callbacks that store their results.
 */
#ifndef ALERTSCALER_TESTS_UNIT_TARGET_SUPPORT_H
#define ALERTSCALER_TESTS_UNIT_TARGET_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <alertscaler/kube/kube_access.h>
#include <alertscaler/port/target.h>

#include "access_env.h"
#include "files.h"

static inline struct as_target_ref *make_ref(const char *api_version, const char *kind,
                                             const char *namespace_, const char *name)
{
    char id[AS_TARGET_ID_MAX];
    const struct as_target_field fields[] = {{"cluster", "default"},
                                             {"apiVersion", api_version},
                                             {"kind", kind},
                                             {"namespace", namespace_},
                                             {"name", name}};
    snprintf(id, sizeof(id), "kubernetes/default/%s/%s/%s/%s", api_version, kind, namespace_, name);
    return as_target_ref_make(&as_target_kind_kubernetes, id, fields, 5);
}

/* Of a cluster at https://k:6443, with a token. */
static inline struct as_kube_access *open_access(void)
{
    char kubeconfig[] = "/tmp/as-access-XXXXXX";
    struct as_error error = AS_ERROR_INIT;
    struct as_kube_access *access = NULL;
    close(mkstemp(kubeconfig));
    write_file(kubeconfig, "current-context: c\n"
                           "clusters: [{name: c, cluster: {server: 'https://k:6443'}}]\n"
                           "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
                           "users: [{name: u, user: {token: secret}}]\n");
    const struct as_kube_access_config config = {kubeconfig, NULL};
    cr_assert_eq(as_kube_access_new(&config, &env, &access, &error), 0, "%s", error.text);
    unlink(kubeconfig);
    return access;
}

/* What callbacks were told last. */
static unsigned observed_count, scaled_count;
static uint64_t told_call_id;
static struct as_observation observation;
static struct as_scale_result result;

static inline void keep_observation(void *context, uint64_t call_id,
                                    const struct as_observation *told)
{
    observed_count++;
    told_call_id = call_id;
    observation = *told;
}

static inline void keep_result(void *context, uint64_t call_id, const struct as_scale_result *told)
{
    scaled_count++;
    told_call_id = call_id;
    result = *told;
}

static inline void observe(struct as_target_port *port, const struct as_target_ref *ref)
{
    unsigned before = observed_count;
    port->observe(port, 7, ref, &(struct as_observe_request){0}, keep_observation, NULL);
    cr_assert_eq(observed_count, before, "told in the same turn");
    world_run(&world);
    cr_assert_eq(observed_count, before + 1);
    cr_assert_eq(told_call_id, 7);
}

static inline void send_scale(struct as_target_port *port, const struct as_target_ref *ref,
                              struct as_scale_request request, const char *version)
{
    unsigned before = scaled_count;
    snprintf(request.version, sizeof(request.version), "%s", version);
    port->scale(port, 8, ref, &request, keep_result, NULL);
    cr_assert_eq(scaled_count, before, "told in the same turn");
    world_run(&world);
    cr_assert_eq(scaled_count, before + 1);
    cr_assert_eq(told_call_id, 8);
}

static inline void scale(struct as_target_port *port, const struct as_target_ref *ref, int32_t from,
                         int32_t to, const char *version)
{
    const struct as_scale_request request = {
        .from = from, .to = to, .decision_id = "01HD", .rule = "slow", .alert = "Latency"};
    send_scale(port, ref, request, version);
}

#endif
