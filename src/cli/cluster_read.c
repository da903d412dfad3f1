/*
 * Reads of a cluster: an event loop that runs only during a read, over the client that the daemon
 * uses (kube/kube_client.h). A list is read page by page, as of one moment. Nothing is tried again,
 * and nothing is changed.
 */
#include "cluster_read.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/tools/convert.h>

#include "http_call.h"

#define OBJECT_MAX ((size_t)8 * 1024 * 1024)
#define FORBIDDEN  403
#define NOT_FOUND  404

struct cluster_read {
    const struct as_adapters *adapters;
    char *namespace_; /* NULL: all */
    struct event_base *base;
    struct as_outside *outside;
    struct as_kube_access *access;
    struct as_kube_client client;
    /* the present read */
    const struct cluster_resource *resource;
    bool is_done;
    json_t *items; /* of a list, or the one object; owned */
    struct as_outcome outcome;
};

int cluster_read_check_options(const struct as_args *args)
{
    static const char *const others[] = {"all-namespaces", "kubeconfig", "context"};
    if (as_args_has(args, "from-cluster")) {
        if (as_args_has(args, "all-namespaces") && as_args_has(args, "namespace"))
            return as_cli_fail(args, "give --namespace or --all-namespaces, and not both");
        const char *namespace_ = as_args_get(args, "namespace");
        if (as_args_has(args, "namespace") && !as_convert_is_namespace(namespace_))
            return as_cli_fail(args, "--namespace: not the name of a namespace");
        return AS_EXIT_OK;
    }
    for (size_t i = 0; i < AS_ARRAY_SIZE(others); i++)
        if (as_args_has(args, others[i]))
            return as_cli_fail(args, "--%s needs --from-cluster", others[i]);
    return AS_EXIT_OK;
}

int cluster_read_open(const struct as_args *args, const struct as_kube_access_config *fallback,
                      struct cluster_read **read_out, struct as_error *error)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    AS_CLEANUP(cluster_read_close_p) struct cluster_read *read = as_xcalloc(1, sizeof(*read));
    struct as_kube_access_config config = {as_args_get(args, "kubeconfig"),
                                           as_args_get(args, "context")};
    if (!config.kubeconfig && !config.context)
        config = *fallback;
    (void)sigaction(SIGPIPE, &ignore, NULL);
    read->adapters = args->adapters;
    read->base = event_base_new();
    if (!read->base)
        abort();
    read->outside =
        read->adapters->new_outside(read->base, &session_clock, session_ignore_transfer, NULL);
    const struct as_access_env *env = read->adapters->get_env(read->outside);
    const int status = as_kube_access_new(&config, env, &read->access, error);
    if (status != 0)
        return status;
    as_kube_client_init(&read->client, env, read->access);
    if (!as_args_has(args, "all-namespaces")) {
        const char *given = as_args_has(args, "namespace") ? as_args_get(args, "namespace") : NULL;
        read->namespace_ = as_xstrdup(given ? given : as_kube_access_get_namespace(read->access));
    }
    *read_out = read;
    read = NULL;
    return 0;
}

struct cluster_read *cluster_read_close(struct cluster_read *read)
{
    if (!read)
        return NULL;
    if (read->access)
        as_kube_client_deinit(&read->client);
    as_kube_access_free(read->access);
    read->adapters->free_outside(read->outside);
    event_base_free(read->base);
    free(read->namespace_);
    free(read);
    return NULL;
}

const char *cluster_read_get_namespace(const struct cluster_read *read)
{
    return read->namespace_;
}

/* The path of the resource. False: it cannot be one. */
static bool cluster_append_path(const struct cluster_resource *resource, const char *namespace_,
                                const char *name, struct as_buf *path)
{
    return as_kube_path_append_version(path, resource->version) == 0 &&
           (!namespace_ || (as_kube_path_append(path, "namespaces") == 0 &&
                            as_kube_path_append(path, namespace_) == 0)) &&
           as_kube_path_append(path, resource->plural) == 0 &&
           (!name || as_kube_path_append(path, name) == 0) && as_buf_check(path) == 0;
}

/* The right as a Role has it: "scalingpolicies.alertscaler.io: list". */
static char *cluster_print_right(const struct cluster_resource *resource, const char *verb)
{
    const char *slash = strchr(resource->version, '/');
    return slash ? as_xasprintf("%s.%.*s: %s", resource->plural, (int)(slash - resource->version),
                                resource->version, verb)
                 : as_xasprintf("%s: %s", resource->plural, verb);
}

/* An item of a built-in resource's list names neither its version nor its kind. */
static void complete_item(const struct cluster_resource *resource, json_t *item)
{
    if (!json_object_get(item, "apiVersion"))
        json_object_set_new(item, "apiVersion", json_string(resource->version));
    if (!json_object_get(item, "kind"))
        json_object_set_new(item, "kind", json_string(resource->kind));
}

static int cluster_take_page(void *into, const char *json, size_t size, char **next_out,
                             struct as_error *error)
{
    struct cluster_read *read = into;
    json_error_t wrong;
    json_t *page = json_loadb(json, size, JSON_ALLOW_NUL, &wrong);
    const json_t *items = json_object_get(page, "items");
    const char *next =
        json_string_value(json_object_get(json_object_get(page, "metadata"), "continue"));
    size_t i;
    json_t *item;
    if (!json_is_array(items)) {
        as_error_set(error, "no list of the Kubernetes API");
        json_decref(page);
        return -EBADMSG;
    }
    json_array_foreach(items, i, item)
    {
        if (!json_is_object(item))
            continue;
        complete_item(read->resource, item);
        json_array_append(read->items, item);
    }
    *next_out = as_str_is_empty(next) ? NULL : as_xstrdup(next);
    json_decref(page);
    return 0;
}

static void cluster_clear_items(void *into)
{
    struct cluster_read *read = into;
    json_array_clear(read->items);
}

static void cluster_on_list(void *context, const struct as_outcome *outcome)
{
    struct cluster_read *read = context;
    read->outcome = *outcome;
    read->is_done = true;
}

static void cluster_await(struct cluster_read *read)
{
    while (!read->is_done) {
        if (event_base_loop(read->base, EVLOOP_ONCE) != 0)
            abort(); /* a request is running: there is always an event to wait for */
    }
}

/* The result of a read that has ended, with the server's address in the error. */
static int cluster_end(struct cluster_read *read, json_t **out, struct as_error *error)
{
    struct as_kube_connection connection;
    struct as_error ignored = AS_ERROR_INIT;
    json_t *items = read->items;
    read->items = NULL;
    if (read->outcome.reason == AS_REASON_APPLIED) {
        *out = items;
        return CLUSTER_READ_OK;
    }
    json_decref(items);
    as_error_set(error, "%s", read->outcome.message);
    if (as_kube_access_get(read->access, &connection, &ignored) == AS_KUBE_ACCESS_READY)
        as_error_wrap(error, "%s", connection.server);
    return read->outcome.http_status == NOT_FOUND   ? CLUSTER_READ_MISSING
           : read->outcome.http_status == FORBIDDEN ? CLUSTER_READ_FORBIDDEN
                                                    : -EIO;
}

int cluster_read_list(struct cluster_read *read, const struct cluster_resource *resource,
                      json_t **items_out, struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    AS_CLEANUP(as_free_p) char *right = cluster_print_right(resource, "list");
    AS_CLEANUP(as_free_p) char *what = as_xasprintf("list %s", resource->plural);
    const bool is_path = cluster_append_path(resource, read->namespace_, NULL, &path);
    const struct as_kube_pages_spec spec = {
        .path = is_path ? path.data : NULL,
        .trouble = "not the name of a namespace",
        .operation = "list",
        .what = what,
        .right = right,
        .take = cluster_take_page,
        .clear = cluster_clear_items,
        .done = cluster_on_list,
        .context = read,
    };
    read->resource = resource;
    read->is_done = false;
    read->items = json_array();
    (void)!as_kube_pages_start(&read->client, &spec);
    cluster_await(read);
    return cluster_end(read, items_out, error);
}

static void cluster_on_object(void *context, const struct as_http_response *response,
                              unsigned attempts)
{
    struct cluster_read *read = context;
    json_error_t wrong;
    (void)attempts;
    as_kube_outcome_init(&read->outcome, response, false, session_clock.get_wall(&session_clock),
                         NULL);
    if (read->outcome.reason == AS_REASON_APPLIED) {
        read->items = json_loadb(response->body, response->body_size, JSON_ALLOW_NUL, &wrong);
        if (!json_is_object(read->items))
            as_outcome_reject(&read->outcome, false, "no object of the Kubernetes API");
    }
    read->is_done = true;
}

int cluster_read_object(struct cluster_read *read, const struct cluster_resource *resource,
                        const char *name, json_t **object_out, struct as_error *error)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    AS_CLEANUP(as_free_p) char *right = cluster_print_right(resource, "get");
    if (!cluster_append_path(resource, NULL, name, &path)) {
        as_error_set(error, "not the name of an object");
        return -EINVAL;
    }
    const struct as_kube_request_spec spec = {
        .method = "GET", .path = path.data, .operation = "get", .max_response = OBJECT_MAX};
    read->is_done = false;
    read->items = NULL;
    (void)!as_kube_request_start(&read->client, &spec, cluster_on_object, read);
    cluster_await(read);
    const int status = cluster_end(read, object_out, error);
    if (status == CLUSTER_READ_FORBIDDEN)
        as_error_wrap(error, "the right \"%s\" is missing", right);
    return status;
}
