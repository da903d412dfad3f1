/*
 * What fuzz_kube_facts.c and fuzz_kube_protobuf.c share: the checks do not depend on the encoding.
 */
#ifndef ALERTSCALER_TESTS_FUZZ_FUZZ_KUBE_FACTS_H
#define ALERTSCALER_TESTS_FUZZ_FUZZ_KUBE_FACTS_H

#include <errno.h>
#include <string.h>

#include <alertscaler/kube/kube_facts.h>

#include "fuzz.h"

static void check_amounts(const struct as_resources *resources)
{
    for (int i = 0; i < AS_RES_MAX; i++)
        FUZZ_CHECK(resources->amount[i] >= 0 && resources->amount[i] <= AS_RES_AMOUNT_MAX);
}

static void check_name(const char *name)
{
    FUZZ_CHECK(*name && strlen(name) <= AS_CLUSTER_NAME_MAX && !strpbrk(name, "/ %\n"));
}

static void check_cluster(const struct as_cluster *cluster)
{
    for (size_t i = 0; i < cluster->node_count; i++) {
        check_name(cluster->nodes[i].name);
        check_amounts(&cluster->nodes[i].allocatable);
        check_amounts(&cluster->nodes[i].capacity);
        FUZZ_CHECK(cluster->nodes[i].taint_count <= 1024);
    }
    for (size_t i = 0; i < cluster->pod_count; i++) {
        check_name(cluster->pods[i].name);
        check_name(cluster->pods[i].namespace_);
        check_amounts(&cluster->pods[i].pod_class->requests);
        FUZZ_CHECK(cluster->pods[i].pod_class->requests.amount[AS_RES_PODS] == 1);
        FUZZ_CHECK(cluster->pods[i].pod_class->labels->count <= 1024);
    }
    for (size_t i = 0; i < cluster->budget_count; i++)
        check_name(cluster->budgets[i].name);
}

static void fuzz_objects(enum as_kube_form encoding, const uint8_t *data, size_t size)
{
    struct as_cluster_facts *facts =
        as_cluster_facts_new(&(struct as_cluster_facts_limits){(size_t)8 << 20});
    const struct as_kube_bytes bytes = {encoding, data, size};
    struct as_arena scratch = AS_ARENA_INIT;

    for (enum as_cluster_kind kind = 0; kind < AS_CLUSTER_KIND_COUNT; kind++) {
        struct as_error error = AS_ERROR_INIT;
        as_cluster_facts_end_list(facts, kind);
        int status = as_kube_fact_put(facts, kind, &bytes, &scratch, &error);
        FUZZ_CHECK(status == 0 || (status == -EBADMSG && *error.text));
    }
    const struct as_cluster *cluster = as_cluster_facts_view(facts, NULL);
    FUZZ_CHECK(cluster);
    check_cluster(cluster);
    for (enum as_cluster_kind kind = 0; kind < AS_CLUSTER_KIND_COUNT; kind++) {
        struct as_error error = AS_ERROR_INIT;
        int status = as_kube_fact_delete(facts, kind, &bytes, &error);
        FUZZ_CHECK(status == 0 || (status == -EBADMSG && *error.text));
    }
    cluster = as_cluster_facts_view(facts, NULL);
    FUZZ_CHECK(cluster && cluster->node_count + cluster->pod_count + cluster->budget_count == 0);
    as_cluster_facts_free(facts);
    as_arena_deinit(&scratch);
}

#endif
