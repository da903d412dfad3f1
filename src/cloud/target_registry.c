/*
 * All targets behind one port: see the header. Each cluster or provider is a row. A missing
 * cluster, or a cluster or provider that the settings do not have (their check excludes this), is a
 * row that only answers with an error.
 */
#include <alertscaler/cloud/target_registry.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/kube/cluster_watch.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/kube/target_outcome.h>

#include "node_group.h"
#include "pool_target.h"

struct row {
    const struct as_target_kind *kind;
    const char *name;            /* of the cluster or provider */
    struct as_target_port *port; /* NULL: `missing` says why */
    bool is_group;               /* `port` is a provider's */
    struct as_error missing;
};

struct registry {
    struct as_target_port port;
    const struct as_access_env *env;
    struct as_clusters clusters; /* whose nodes are watched and drained */
    struct as_target_port *pools;
    char *own_namespace; /* of alertscaler; NULL: not known */
    size_t row_count;
    struct row *rows;
    LIST_HEAD(, refusal) refusals;
    LIST_HEAD(, seeing) seeings;
};

/* A call that no adapter can take: answered in the next turn. */
struct refusal {
    LIST_ENTRY(refusal) entry;
    struct registry *owner;
    struct as_timer *timer;
    uint64_t call_id;
    as_target_observed_fn *observed;
    as_target_scaled_fn *scaled;
    as_objects_listed_fn *listed;
    void *context;
    struct as_outcome outcome;
};

/* An observation with the nodes of the whole cluster: these first, then the size. */
struct seeing {
    LIST_ENTRY(seeing) entry;
    struct registry *owner;
    struct as_cluster_link *cluster;
    struct as_target_port *port; /* which reads the size */
    struct as_cluster_ask *ask;  /* NULL: the size is read */
    struct as_target_ref *ref;
    char *credential; /* as in as_observe_request, like what follows */
    bool with_pods, with_rollout, with_owners;
    bool has_own_size;
    int32_t own_size;
    uint64_t call_id;
    as_target_observed_fn *observed;
    void *context;
    struct as_arena texts;
    struct as_nodes_seen seen;
};

static struct row *find_row_of(const struct registry *registry, const struct as_target_kind *kind,
                               const char *name)
{
    for (size_t i = 0; i < registry->row_count; i++) {
        struct row *row = &registry->rows[i];
        if (row->kind == kind && strcmp(row->name, name) == 0)
            return row;
    }
    return NULL;
}

static struct row *find_row(const struct registry *registry, const struct as_target_ref *ref)
{
    return find_row_of(registry, ref->kind, as_target_ref_get(ref, ref->kind->owner));
}

static void registry_report(void *context)
{
    struct refusal refusal = *(struct refusal *)context;
    LIST_REMOVE((struct refusal *)context, entry);
    free(context);
    if (refusal.scaled) {
        struct as_scale_result result = {.method = ""};
        as_outcome_fill_result(&refusal.outcome, &result);
        refusal.scaled(refusal.context, refusal.call_id, &result);
    } else if (refusal.listed) {
        refusal.listed(refusal.context, refusal.call_id,
                       &(struct as_object_list){.error = refusal.outcome.message});
    } else {
        struct as_observation observation = {.min = -1, .max = -1};
        as_outcome_fill_observation(&refusal.outcome, &observation);
        refusal.observed(refusal.context, refusal.call_id, &observation);
    }
}

static void registry_refuse(struct registry *registry, const struct row *row, struct refusal how)
{
    struct refusal *refusal = as_xmalloc(sizeof(*refusal));
    *refusal = how;
    refusal->owner = registry;
    as_outcome_init_local(&refusal->outcome, row ? AS_REASON_UNREACHABLE : AS_REASON_REJECTED,
                          row ? row->missing.text : "no such cluster or provider is configured");
    LIST_INSERT_HEAD(&registry->refusals, refusal, entry);
    refusal->timer =
        registry->env->loop->start_timer(registry->env->loop, 0, registry_report, refusal);
}

static void free_seeing(struct seeing *seeing)
{
    if (seeing->ask)
        as_cluster_watch_cancel(seeing->ask);
    as_target_ref_free(seeing->ref);
    free(seeing->credential);
    as_arena_deinit(&seeing->texts);
    LIST_REMOVE(seeing, entry);
    free(seeing);
}

static void size_read(void *context, uint64_t call_id, const struct as_observation *result)
{
    struct seeing *seeing = context;
    struct as_observation observation = *result;
    observation.nodes = &seeing->seen;
    seeing->observed(seeing->context, call_id, &observation);
    free_seeing(seeing);
}

static void nodes_known(void *context, const struct as_cluster *cluster,
                        const struct as_error *error)
{
    struct seeing *seeing = context;
    const struct as_clock *clock = seeing->owner->env->clock;
    const struct as_observe_request request = {.credential = seeing->credential,
                                               .with_pods = seeing->with_pods,
                                               .with_rollout = seeing->with_rollout,
                                               .with_owners = seeing->with_owners,
                                               .has_own_size = seeing->has_own_size,
                                               .own_size = seeing->own_size};
    seeing->ask = NULL;
    if (cluster)
        as_nodes_see(seeing->cluster->seer,
                     &(struct as_nodes_see_request){.cluster = cluster,
                                                    .now = clock->get_wall(clock),
                                                    .texts = &seeing->texts},
                     &seeing->seen);
    else
        seeing->seen.error = error->text;
    /* The facts may change before the size is there. */
    seeing->seen.error = as_arena_strdup(&seeing->texts, seeing->seen.error);
    for (size_t i = 0; i < AS_RESOURCE_COUNT; i++)
        seeing->seen.lacking[i] = as_arena_strdup(&seeing->texts, seeing->seen.lacking[i]);
    seeing->port->observe(seeing->port, seeing->call_id, seeing->ref, &request, size_read, seeing);
}

static void registry_see(struct registry *registry, struct as_cluster_link *cluster,
                         struct seeing how)
{
    struct seeing *seeing = as_xmalloc(sizeof(*seeing));
    *seeing = how;
    seeing->owner = registry;
    seeing->cluster = cluster;
    seeing->texts = AS_ARENA_INIT;
    LIST_INSERT_HEAD(&registry->seeings, seeing, entry);
    seeing->ask = as_cluster_watch_ask(cluster->watch, nodes_known, seeing);
}

static void registry_observe(struct as_target_port *self, uint64_t call_id,
                             const struct as_target_ref *ref,
                             const struct as_observe_request *request, as_target_observed_fn *done,
                             void *context)
{
    struct registry *registry = (struct registry *)self;
    const struct row *row = find_row(registry, ref);
    struct as_target_port *port = row ? row->port : NULL;
    struct as_cluster_link *cluster = request->with_nodes && row && !row->kind->has_nodes
                                          ? as_clusters_find(&registry->clusters, row->name)
                                          : NULL;
    if (request->pool)
        registry->pools->observe(registry->pools, call_id, ref, request, done, context);
    else if (port && cluster && cluster->access)
        registry_see(registry, cluster,
                     (struct seeing){
                         .port = port,
                         .ref = as_target_ref_copy(ref),
                         .credential = request->credential ? as_xstrdup(request->credential) : NULL,
                         .with_pods = request->with_pods,
                         .with_rollout = request->with_rollout,
                         .with_owners = request->with_owners,
                         .has_own_size = request->has_own_size,
                         .own_size = request->own_size,
                         .call_id = call_id,
                         .observed = done,
                         .context = context});
    else if (port)
        port->observe(port, call_id, ref, request, done, context);
    else
        registry_refuse(registry, row,
                        (struct refusal){.call_id = call_id, .observed = done, .context = context});
}

static void registry_scale(struct as_target_port *self, uint64_t call_id,
                           const struct as_target_ref *ref, const struct as_scale_request *request,
                           as_target_scaled_fn *done, void *context)
{
    struct registry *registry = (struct registry *)self;
    const struct row *row = find_row(registry, ref);
    struct as_target_port *port = row ? row->port : NULL;
    if (port)
        port->scale(port, call_id, ref, request, done, context);
    else
        registry_refuse(registry, row,
                        (struct refusal){.call_id = call_id, .scaled = done, .context = context});
}

static void registry_warn(struct as_target_port *self, const struct as_target_ref *ref,
                          const struct as_late_warning *warning)
{
    const struct row *row = find_row((struct registry *)self, ref);
    if (row && row->port && row->port->warn)
        row->port->warn(row->port, ref, warning);
}

static void registry_list(struct as_target_port *self, uint64_t call_id,
                          const struct as_object_list_request *request, as_objects_listed_fn *done,
                          void *context)
{
    struct registry *registry = (struct registry *)self;
    const struct as_target_config *entry = request->entry;
    const struct row *row =
        find_row_of(registry, entry->kind, as_target_config_find_plain(entry, entry->kind->owner));
    struct as_object_list_request own = *request;
    own.own_namespace = registry->own_namespace;
    if (row && row->port && row->port->list)
        row->port->list(row->port, call_id, &own, done, context);
    else
        registry_refuse(registry, row,
                        (struct refusal){.call_id = call_id, .listed = done, .context = context});
}

static bool registry_is_idle(const struct as_target_port *self)
{
    const struct registry *registry = (const struct registry *)self;
    bool is_any_busy = !LIST_EMPTY(&registry->refusals) || !LIST_EMPTY(&registry->seeings) ||
                       !registry->pools->is_idle(registry->pools);
    for (size_t i = 0; i < registry->row_count; i++) {
        const struct row *row = &registry->rows[i];
        is_any_busy = is_any_busy || (row->port && !row->port->is_idle(row->port));
    }
    for (size_t i = 0; i < registry->clusters.count; i++) {
        const struct as_drains *drains = registry->clusters.items[i].drains;
        is_any_busy = is_any_busy || (drains && !as_drains_is_idle(drains));
    }
    return !is_any_busy;
}

static void registry_close_port(struct as_target_port *self)
{
    struct registry *registry = (struct registry *)self;
    struct refusal *refusal;
    while ((refusal = LIST_FIRST(&registry->refusals)) != NULL) {
        registry->env->loop->cancel_timer(registry->env->loop, refusal->timer);
        LIST_REMOVE(refusal, entry);
        free(refusal);
    }
    struct seeing *seeing;
    while ((seeing = LIST_FIRST(&registry->seeings)))
        free_seeing(seeing);
    for (size_t i = 0; i < registry->row_count; i++) {
        const struct row *row = &registry->rows[i];
        if (row->port)
            row->port->close(row->port);
    }
    registry->pools->close(registry->pools);
    as_clusters_deinit(&registry->clusters);
    free(registry->own_namespace);
    free(registry->rows);
    free(registry);
}

/* A cluster that the settings do not mention: it may be missing. */
static bool is_implied(const struct as_cluster_settings *cluster)
{
    return strcmp(cluster->name, "default") == 0 && !cluster->kubeconfig && !cluster->context;
}

static int open_kind(struct row *row, const struct as_target_adapter *adapter,
                     const struct as_cluster_settings *cluster, const struct as_access_env *env)
{
    struct as_kube_access_config config = {cluster->kubeconfig, cluster->context};
    struct as_kube_access *access;
    row->kind = adapter->kind;
    row->name = cluster->name;
    int status = as_kube_access_new(&config, env, &access, &row->missing);
    if (status == 0)
        row->port = adapter->open(access, env);
    return status;
}

static int open_cluster(struct registry *registry, const struct as_cluster_settings *cluster,
                        struct as_error *error)
{
    for (const struct as_target_adapter *adapter = as_target_adapters; adapter->kind; adapter++) {
        struct row *row = &registry->rows[registry->row_count++];
        int status = open_kind(row, adapter, cluster, registry->env);
        if (status == 0)
            continue;
        if (!is_implied(cluster)) {
            as_error_set(error, "%s", row->missing.text);
            as_error_wrap(error, "cluster %s", cluster->name);
            return status;
        }
        if (adapter == as_target_adapters) /* once for all kinds */
            as_log(status == -ENOENT ? AS_LOG_INFO : AS_LOG_WARN, "no Kubernetes cluster",
                   AS_F("reason", row->missing.text));
    }
    return 0;
}

/* The row has no port if its cluster is missing: `missing` says why. */
static void open_node_groups(struct registry *registry, struct row *row,
                             const struct as_group_provider *provider,
                             const struct as_provider_settings *settings)
{
    const char *name = as_account_get(settings, "cluster");
    struct as_cluster_link *cluster = NULL;
    if (provider->is_kubernetes) {
        name = name ? name : "default";
        cluster = as_clusters_find(&registry->clusters, name);
        if (!cluster || !cluster->access) {
            as_error_set(&row->missing, "%s",
                         cluster ? cluster->missing.text : "there is no such one");
            as_error_wrap(&row->missing, "cluster %s", name);
            return;
        }
    }
    row->is_group = true;
    row->port = as_node_group_new(provider, settings, registry->env, &registry->clusters, cluster);
}

int as_target_registry_new(const struct as_settings *settings, const struct as_access_env *env,
                           struct as_target_port **port_out, struct as_error *error)
{
    struct registry *registry = as_xcalloc(1, sizeof(*registry));
    struct as_error unknown = AS_ERROR_INIT;
    registry->port = (struct as_target_port){registry_observe,    registry_scale, registry_is_idle,
                                             registry_close_port, registry_warn,  registry_list};
    registry->env = env;
    if (as_kube_namespace_find(settings->state.namespace, env, &registry->own_namespace,
                               &unknown) != 0)
        registry->own_namespace = NULL; /* outside of a pod there may be none */
    registry->rows =
        as_xcalloc(AS_TARGET_KINDS_MAX * settings->cluster_count + settings->provider_count,
                   sizeof(*registry->rows));
    LIST_INIT(&registry->refusals);
    LIST_INIT(&registry->seeings);
    as_clusters_init(&registry->clusters, settings, env);
    registry->pools = as_pool_new(&registry->port, &registry->clusters, env);
    for (size_t i = 0; i < settings->cluster_count; i++) {
        int status = open_cluster(registry, &settings->clusters[i], error);
        if (status) {
            registry_close_port(&registry->port);
            return status;
        }
    }
    for (size_t i = 0; i < settings->provider_count; i++) {
        const struct as_provider_settings *provider = &settings->providers[i];
        struct row *row = &registry->rows[registry->row_count++];
        row->kind = &as_target_kind_node_group;
        row->name = provider->name;
        /* The settings allow only types of the table. */
        open_node_groups(registry, row, as_group_provider_find(provider->type), provider);
    }
    *port_out = &registry->port;
    return 0;
}

void as_target_registry_retire(struct as_target_port *port)
{
    struct registry *registry = (struct registry *)port;
    registry->clusters.is_retired = true;
    for (size_t i = 0; i < registry->row_count; i++) {
        struct row *row = &registry->rows[i];
        if (row->port && row->is_group)
            as_node_group_retire(row->port);
    }
}

/* A cluster that was not listed yet is not clean. */
static bool are_clean(const struct as_clusters *clusters)
{
    bool are = !clusters->is_retired;
    for (size_t i = 0; i < clusters->count; i++)
        are = are && (!clusters->items[i].drains || clusters->items[i].is_clean);
    return are;
}

static void recovered(void *context, const struct as_outcome *outcome, unsigned undone,
                      bool is_any_marked)
{
    struct as_cluster_link *cluster = context;
    const struct as_access_env *env = cluster->client.env;
    cluster->is_clean = !is_any_marked;
    if (env->nodes_recovered)
        env->nodes_recovered(env->permit_context,
                             &(struct as_nodes_recovery){.cluster = cluster->name,
                                                         .reason = outcome->reason,
                                                         .error = outcome->message,
                                                         .undone = undone,
                                                         .is_clean = are_clean(cluster->owner)});
}

void as_target_registry_recover(struct as_target_port *port)
{
    struct registry *registry = (struct registry *)port;
    for (size_t i = 0; i < registry->clusters.count; i++) {
        struct as_cluster_link *cluster = &registry->clusters.items[i];
        if (cluster->drains)
            as_drain_recover(cluster->drains, recovered, cluster);
    }
}

void as_target_registry_visit_facts(const struct as_target_port *port, as_facts_visit_fn *visit,
                                    void *context)
{
    const struct registry *registry = (const struct registry *)port;
    struct as_facts_view view;
    for (size_t i = 0; i < registry->clusters.count; i++) {
        const struct as_cluster_link *cluster = &registry->clusters.items[i];
        if (!cluster->watch || !as_cluster_watch_read(cluster->watch, &view))
            continue;
        view.cluster = cluster->name;
        visit(context, &view);
    }
}
