/*
 * Clusters with nodes: see the header.
 */
#include <alertscaler/kube/clusters.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/model/labels.h>

#define OWNER_SIZE 32

/* Our name among those that drain nodes: the same after a restart and on every replica; different
 * for another state. */
static void print_owner(const struct as_state_settings *state, char owner[OWNER_SIZE])
{
    const bool is_shared = state->store == AS_STORE_KUBERNETES;
    const char *place = is_shared ? state->namespace : state->path;
    const struct as_label pairs[] = {{"lease", is_shared ? state->lease.name : ""},
                                     {"place", place ? place : ""}};
    struct as_labels *labels = NULL;
    const int status = as_labels_new(pairs, AS_ARRAY_SIZE(pairs), &labels);
    assert(status == 0); /* the names differ, and paths are short */
    (void)status;
    snprintf(owner, OWNER_SIZE, "alertscaler-%016" PRIx64, as_labels_get_fingerprint(labels));
    as_labels_free(labels);
}

void as_clusters_init(struct as_clusters *clusters, const struct as_settings *settings,
                      const struct as_access_env *env)
{
    char owner[OWNER_SIZE];
    print_owner(&settings->state, owner);
    clusters->count = settings->cluster_count;
    clusters->items = as_xcalloc(clusters->count + 1, sizeof(*clusters->items));
    for (size_t i = 0; i < clusters->count; i++) {
        const struct as_cluster_settings *given = &settings->clusters[i];
        const struct as_kube_access_config config = {given->kubeconfig, given->context};
        struct as_cluster_link *cluster = &clusters->items[i];
        cluster->owner = clusters;
        cluster->name = given->name;
        if (as_kube_access_new(&config, env, &cluster->access, &cluster->missing) != 0) {
            cluster->access = NULL;
            continue;
        }
        as_kube_client_init(&cluster->client, env, cluster->access);
        cluster->drains = as_drains_new(&cluster->client, owner);
        cluster->watch = as_cluster_watch_new(&cluster->client);
        cluster->seer = as_nodes_seer_new();
    }
}

void as_clusters_deinit(struct as_clusters *clusters)
{
    for (size_t i = 0; i < clusters->count; i++) {
        struct as_cluster_link *cluster = &clusters->items[i];
        if (!cluster->access)
            continue;
        as_drains_free(cluster->drains);
        as_cluster_watch_free(cluster->watch);
        as_nodes_seer_free(cluster->seer);
        as_kube_client_deinit(&cluster->client);
        as_kube_access_free(cluster->access);
    }
    free(clusters->items);
    *clusters = (struct as_clusters){0};
}

struct as_cluster_link *as_clusters_find(const struct as_clusters *clusters, const char *name)
{
    for (size_t i = 0; i < clusters->count; i++) {
        if (strcmp(clusters->items[i].name, name) == 0)
            return &clusters->items[i];
    }
    return NULL;
}
