/*
 * The program's entry, and the only place that knows the concrete adapters.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <jansson.h>
#include <openssl/crypto.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/cloud/target_registry.h>
#include <alertscaler/daemon/adapters.h>
#include <alertscaler/daemon/daemon_process.h>
#include <alertscaler/http/client.h>
#include <alertscaler/http/loop.h>
#include <alertscaler/http/server.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/kube/kube_store.h>
#include <alertscaler/kube/leader_lease.h>
#include <alertscaler/log/log_file.h>
#include <alertscaler/log/sqlite.h>
#include <alertscaler/monitoring/monitoring.h>
#include <alertscaler/notify/notifier.h>
#include <alertscaler/port/clock.h>

#include "cli.h"

struct as_outside {
    struct event_base *base;
    as_transfer_fn *observer;
    void *observer_context;
    struct as_http_client *client;
    struct as_event_loop *loop;
    struct as_event_processes *processes;
    struct as_access_env env;
    struct as_http_client *leader_client; /* NULL: no lease */
    struct as_access_env leader_env;
};

static const char *get_variable(const char *name)
{
    return getenv(name);
}

static struct as_outside *new_outside(struct event_base *base, const struct as_clock *clock,
                                      as_transfer_fn *observer, void *context)
{
    struct as_outside *outside = as_xcalloc(1, sizeof(*outside));
    outside->base = base;
    outside->observer = observer;
    outside->observer_context = context;
    outside->client = as_http_client_new(base, observer, context);
    outside->loop = as_event_loop_new(base);
    outside->processes = as_event_processes_new(base);
    outside->env = (struct as_access_env){
        .http = as_http_client_get_port(outside->client),
        .loop = as_event_loop_get_port(outside->loop),
        .runner = as_event_processes_get_port(outside->processes),
        .clock = clock,
        .get_variable = get_variable,
    };
    return outside;
}

static void free_outside(struct as_outside *outside)
{
    as_event_processes_free(outside->processes);
    as_event_loop_free(outside->loop);
    as_http_client_free(outside->client);
    as_http_client_free(outside->leader_client);
    free(outside);
}

static struct as_http *get_http(struct as_outside *outside)
{
    return outside->env.http;
}

static const struct as_access_env *get_env(struct as_outside *outside)
{
    return &outside->env;
}

static void visit_files(struct as_outside *outside, const struct as_settings *settings,
                        as_file_visitor_fn *visit, void *context)
{
    for (size_t i = 0; i < settings->cluster_count; i++) {
        const struct as_cluster_settings *cluster = &settings->clusters[i];
        as_kube_access_visit_files(
            &(struct as_kube_access_config){cluster->kubeconfig, cluster->context}, &outside->env,
            visit, context);
    }
}

static int new_targets(struct as_outside *outside, const struct as_settings *settings,
                       struct as_target_port **targets_out, struct as_error *error)
{
    return as_target_registry_new(settings, &outside->env, targets_out, error);
}

static void set_permit(struct as_outside *outside, as_permit_fn *get_permit,
                       as_terminate_permit_fn *get_terminate_permit, as_rival_fn *find_rival,
                       as_nodes_record_fn *record_nodes, as_others_found_fn *others_found,
                       as_nodes_recovered_fn *nodes_recovered, void *context)
{
    outside->env.get_permit = get_permit;
    outside->env.get_terminate_permit = get_terminate_permit;
    outside->env.find_rival = find_rival;
    outside->env.record_nodes = record_nodes;
    outside->env.others_found = others_found;
    outside->env.nodes_recovered = nodes_recovered;
    outside->env.permit_context = context;
}

static struct as_source_port *new_source(struct as_outside *outside,
                                         const struct as_settings *settings,
                                         as_source_answer_fn *observer, as_query_judged_fn *judged,
                                         void *context)
{
    const struct as_source_env env = {
        .http = outside->env.http,
        .loop = outside->env.loop,
        .clock = outside->env.clock,
        .observer = observer,
        .judged = judged,
        .observer_context = context,
        .runner = outside->env.runner,
        .get_variable = outside->env.get_variable,
    };
    return as_monitoring_new(settings, &env);
}

static struct as_messenger *new_messenger(struct as_outside *outside,
                                          const struct as_settings *settings)
{
    const struct as_source_env env = {
        .http = outside->env.http,
        .loop = outside->env.loop,
        .clock = outside->env.clock,
        .runner = outside->env.runner,
        .get_variable = outside->env.get_variable,
    };
    return as_receivers_new(settings, &env);
}

/* Runs the store in an API server: an event loop that nothing else runs. */
struct store_outside {
    struct event_base *base;
    struct event *tick; /* bounds the time of a turn */
    struct as_outside *outside;
};

static void ignore_transfer(void *context, const char *client_name, const char *operation,
                            const char *code, int64_t duration_us)
{
}

static void turn_store(void *context)
{
    struct store_outside *own = context;
    if (event_base_loop(own->base, EVLOOP_ONCE) < 0)
        abort(); /* epoll does not fail */
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
}

static struct store_outside *open_store_outside(void)
{
    static const struct timeval every = {0, 100000};
    struct store_outside *own = as_xcalloc(1, sizeof(*own));
    own->base = event_base_new();
    if (!own->base)
        abort();
    own->tick = event_new(own->base, -1, EV_PERSIST, on_tick, NULL);
    if (!own->tick || event_add(own->tick, &every) != 0)
        abort(); /* only without memory */
    own->outside = new_outside(own->base, &as_system_clock, ignore_transfer, NULL);
    return own;
}

static void close_store_outside(void *context)
{
    struct store_outside *own = context;
    event_free(own->tick);
    free_outside(own->outside);
    event_base_free(own->base);
    free(own);
}

/* Targets of the cluster `default` are in the cluster of the state. */
static struct as_kube_access_config get_default_cluster(const struct as_settings *settings)
{
    for (size_t i = 0; i < settings->cluster_count; i++)
        if (strcmp(settings->clusters[i].name, "default") == 0)
            return (struct as_kube_access_config){settings->clusters[i].kubeconfig,
                                                  settings->clusters[i].context};
    return (struct as_kube_access_config){0};
}

static int open_kubernetes(const struct as_settings *settings,
                           const struct as_store_deadline *deadline, struct as_store **store_out,
                           struct as_error *error)
{
    AS_CLEANUP(as_free_p) char *namespace_ = NULL;
    const struct as_kube_access_config cluster = get_default_cluster(settings);
    char holder[AS_INSTANCE_SIZE];
    struct store_outside *own = open_store_outside();
    as_instance_print(holder);
    struct as_store_kubernetes_config config = {
        .holder = holder,
        .env = &own->outside->env,
        .turn = turn_store,
        .closed = close_store_outside,
        .context = own,
        .deadline = deadline,
    };
    (void)!getentropy(&config.seed, sizeof(config.seed));
    int status = as_kube_namespace_find(settings->state.namespace, config.env, &namespace_, error);
    if (status == 0)
        status = as_kube_access_new(&cluster, config.env, &config.access, error);
    if (status) {
        as_error_wrap(error, "state");
        close_store_outside(own);
        return status;
    }
    config.namespace_ = namespace_;
    return as_store_kubernetes_open(&config, store_out, error);
}

static int open_store(const struct as_settings *settings, bool may_create,
                      const struct as_store_deadline *deadline, struct as_store **store_out,
                      struct as_error *error)
{
    switch (settings->state.store) {
    case AS_STORE_SQLITE:
        return as_store_sqlite_open(settings->state.path, may_create, store_out, error);
    case AS_STORE_KUBERNETES: return open_kubernetes(settings, deadline, store_out, error);
    }
    abort(); /* no other values */
}

static int open_audit(const struct as_action_log_settings *settings, struct as_audit **audit_out,
                      struct as_error *error)
{
    const struct as_audit_file_config config = {
        .path = settings->path, .max_size = settings->max_size, .keep = settings->keep};
    return as_audit_file_open(&config, audit_out, error);
}

static uint64_t draw(void)
{
    uint64_t number;
    if (getentropy(&number, sizeof(number)) != 0)
        abort();
    return number;
}

static int new_lease_leader(struct as_outside *outside, const struct as_settings *settings,
                            const char *instance, struct as_leader **leader_out,
                            struct as_error *error)
{
    const struct as_lease_settings *lease = &settings->state.lease;
    const struct as_cluster_settings *cluster = as_settings_find_cluster(settings, "default");
    AS_CLEANUP(as_free_p) char *namespace_ = NULL;
    struct as_kube_access *access;
    int status =
        as_kube_namespace_find(settings->state.namespace, &outside->env, &namespace_, error);
    if (status != 0)
        return status;
    /* its own client: a renewal must not queue behind other requests */
    outside->leader_client =
        as_http_client_new(outside->base, outside->observer, outside->observer_context);
    outside->leader_env = outside->env;
    outside->leader_env.http = as_http_client_get_port(outside->leader_client);
    const struct as_kube_access_config as_whom = {cluster->kubeconfig, cluster->context};
    status = as_kube_access_new(&as_whom, &outside->leader_env, &access, error);
    if (status != 0) {
        as_error_wrap(error, "state");
        return status;
    }
    AS_CLEANUP(as_free_p)
    char *identity = as_xasprintf("%.200s_%016" PRIx64, instance, draw());
    const struct as_lease_leader_config config = {
        .namespace_ = namespace_,
        .name = lease->name,
        .identity = identity,
        .duration_us = lease->duration_us,
        .renew_deadline_us = lease->renew_deadline_us,
        .retry_us = lease->retry_period_us,
        .seed = draw(),
    };
    *leader_out = as_lease_leader_new(&config, access, &outside->leader_env);
    return 0;
}

static int new_leader(struct as_outside *outside, const struct as_settings *settings,
                      const char *instance, struct as_leader **leader_out, struct as_error *error)
{
    switch (settings->state.store) {
    case AS_STORE_SQLITE: *leader_out = as_always_leader_new(instance, outside->env.loop); return 0;
    case AS_STORE_KUBERNETES:
        return new_lease_leader(outside, settings, instance, leader_out, error);
    }
    abort(); /* no other values */
}

static const struct as_adapters adapters = {
    .open_store = open_store,
    .open_audit = open_audit,
    .new_outside = new_outside,
    .free_outside = free_outside,
    .get_http = get_http,
    .get_env = get_env,
    .visit_files = visit_files,
    .new_targets = new_targets,
    .recover_targets = as_target_registry_recover,
    .visit_facts = as_target_registry_visit_facts,
    .retire_targets = as_target_registry_retire,
    .set_permit = set_permit,
    .new_source = new_source,
    .new_messenger = new_messenger,
    .new_leader = new_leader,
    .new_server = as_http_server_new,
};

static void *crypto_malloc(size_t size, const char *file, int line)
{
    return size > 0 ? as_library_malloc(size) : NULL;
}

static void *crypto_realloc(void *old, size_t size, const char *file, int line)
{
    if (size > 0)
        return as_library_realloc(old, size);
    free(old);
    return NULL;
}

static void crypto_free(void *memory, const char *file, int line)
{
    free(memory);
}

/* Before any other call of them. curl gets the same from http/client.c. */
static void give_libraries_memory(void)
{
    event_set_mem_functions(as_library_malloc, as_library_realloc, free);
    json_set_alloc_funcs(as_library_malloc, free);
    (void)CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free);
}

int main(int argc, char **argv)
{
    give_libraries_memory();
    /* one heap for both threads: a second one would keep memory that the first could use */
    (void)mallopt(M_ARENA_MAX, 1);
    /* OpenSSL does not check the allocation of its own context, and crashes without it */
    if (!OSSL_LIB_CTX_get0_global_default())
        abort();
    return as_cli_main(argc, argv, &adapters);
}
