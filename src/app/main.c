/*
 * Where the program begins, and the only place that knows the concrete adapters.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include <alertscaler/access/kube_access.h>
#include <alertscaler/app/adapters.h>
#include <alertscaler/audit/file.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/cli/main.h>
#include <alertscaler/net/client.h>
#include <alertscaler/net/loop.h>
#include <alertscaler/net/server.h>
#include <alertscaler/source/monitoring.h>
#include <alertscaler/store/sqlite.h>
#include <alertscaler/target/registry.h>

struct as_outside {
    struct as_http_client *client;
    struct as_event_loop *loop;
    struct as_event_processes *processes;
    struct as_access_env env;
};

static const char *get_variable(const char *name)
{
    return getenv(name);
}

static struct as_outside *new_outside(struct event_base *base, const struct as_clock *clock,
                                      as_transfer_fn *observer, void *context)
{
    struct as_outside *outside = as_xcalloc(1, sizeof(*outside));
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
    free(outside);
}

static struct as_http *get_http(struct as_outside *outside)
{
    return outside->env.http;
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

static struct as_source_port *new_source(struct as_outside *outside,
                                         const struct as_settings *settings,
                                         as_source_answer_fn *observer, void *context)
{
    const struct as_source_env env = {
        .http = outside->env.http,
        .loop = outside->env.loop,
        .clock = outside->env.clock,
        .observer = observer,
        .observer_context = context,
    };
    return as_monitoring_new(settings, &env);
}

static int open_store(const struct as_state_settings *settings, struct as_store **store_out,
                      struct as_error *error)
{
    switch (settings->store) {
    case AS_STORE_SQLITE: return as_store_sqlite_open(settings->path, store_out, error);
    case AS_STORE_KUBERNETES: break;
    }
    as_error_set(error, "state.store: kubernetes is not supported yet");
    return -ENOTSUP;
}

static int open_audit(const struct as_action_log_settings *settings, struct as_audit **audit_out,
                      struct as_error *error)
{
    const struct as_audit_file_config config = {
        .path = settings->path, .max_size = settings->max_size, .keep = settings->keep};
    return as_audit_file_open(&config, audit_out, error);
}

static const struct as_adapters adapters = {
    .open_store = open_store,
    .open_audit = open_audit,
    .new_outside = new_outside,
    .free_outside = free_outside,
    .get_http = get_http,
    .visit_files = visit_files,
    .new_targets = new_targets,
    .new_source = new_source,
    .new_server = as_http_server_new,
};

int main(int argc, char **argv)
{
    /* one heap for both threads: a second one would hold what the first could use */
    (void)mallopt(M_ARENA_MAX, 1);
    return as_cli_main(argc, argv, &adapters);
}
