/*
 * Access to a Kubernetes cluster: its address, and credentials that rotate. A pod's service account
 * is treated as a kubeconfig with a tokenFile, so both use the same code. A credential plugin of a
 * kubeconfig runs without blocking the loop.
 */
#include <alertscaler/kube/kube_access.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/access_limits.h>
#include <alertscaler/http/secret_file.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_documents.h>

#include "kubeconfig.h"

/*
 * Credential plugin. It runs when there is no credential, when the present credential expires
 * soon, and when the server refused it. At most one run is active; after a failure the next run
 * waits for a delay. If the plugin fails, its standard error goes into the log of alertscaler,
 * because plugins write there what they need.
 */

struct as_kube_exec {
    const struct as_kubeconfig *config;
    const struct as_access_env *env;
    struct as_process *running;
    struct as_kube_waiters waiters;
    struct as_kube_exec_credential credential;
    bool has_credential;
    uint64_t generation;   /* counts the runs that gave a credential */
    as_mono_time retry_at; /* not run again before */
    struct as_error failure;
};

/* Borrows both arguments. */
static struct as_kube_exec *exec_new(const struct as_kubeconfig *config,
                                     const struct as_access_env *env)
{
    struct as_kube_exec *exec = as_xcalloc(1, sizeof(*exec));
    exec->config = config;
    exec->env = env;
    exec->retry_at.us = INT64_MIN;
    LIST_INIT(&exec->waiters);
    return exec;
}

static struct as_kube_exec *exec_free(struct as_kube_exec *exec)
{
    if (!exec)
        return NULL;
    if (exec->running)
        exec->env->runner->cancel(exec->env->runner, exec->running);
    as_kube_exec_credential_deinit(&exec->credential);
    free(exec);
    return NULL;
}

static void exec_fail(struct as_kube_exec *exec, const struct as_process_result *result)
{
    const char *command = exec->config->exec.command;
    switch (result->outcome) {
    case AS_PROCESS_EXITED:
        as_error_set(&exec->failure, "credential plugin %s: exit status %d", command,
                     result->status);
        break;
    case AS_PROCESS_KILLED:
        as_error_set(&exec->failure, "credential plugin %s: killed by signal %d", command,
                     result->status);
        break;
    case AS_PROCESS_NOT_STARTED:
        as_error_set_errno(&exec->failure, result->status, "credential plugin %s", command);
        break;
    case AS_PROCESS_TIMEOUT:
        as_error_set(&exec->failure, "credential plugin %s: no answer in %d s", command,
                     (int)(AS_KUBE_EXEC_TIMEOUT_US / AS_US_PER_S));
        break;
    case AS_PROCESS_TOO_LARGE:
        as_error_set(&exec->failure, "credential plugin %s: too much output", command);
        break;
    }
}

static void exec_accept_output(struct as_kube_exec *exec, const struct as_process_result *result)
{
    struct as_kube_exec_credential credential;
    const char *version = exec->config->exec.api_version;
    int status = as_kube_exec_credential_decode(result->output, result->output_size, version,
                                                &credential, &exec->failure);
    if (status) {
        as_error_wrap(&exec->failure, "credential plugin %s", exec->config->exec.command);
        return;
    }
    as_kube_exec_credential_deinit(&exec->credential);
    exec->credential = credential;
    exec->has_credential = true;
    exec->generation++;
}

static void exec_notify(struct as_kube_exec *exec)
{
    struct as_kube_waiters due = LIST_HEAD_INITIALIZER(due);
    struct as_kube_waiter *waiter;
    LIST_SWAP(&due, &exec->waiters, as_kube_waiter, entry);
    while ((waiter = LIST_FIRST(&due)) != NULL) {
        as_kube_waiter_cancel(waiter);
        waiter->ready(waiter->context);
    }
}

static void exec_on_end(void *context, const struct as_process_result *result)
{
    struct as_kube_exec *exec = context;
    as_mono_time now = exec->env->clock->get_mono(exec->env->clock);
    exec->running = NULL;
    exec->retry_at.us = as_time_add(now.us, AS_KUBE_EXEC_RETRY_US);
    exec->failure.text[0] = '\0';
    if (result->outcome == AS_PROCESS_EXITED && result->status == 0)
        exec_accept_output(exec, result);
    else
        exec_fail(exec, result);
    if (exec->failure.text[0])
        as_log(AS_LOG_WARN, "credential plugin failed", AS_F("error", exec->failure.text),
               AS_F("output", result->error_output), AS_F("hint", exec->config->exec.install_hint));
    exec_notify(exec);
}

static void exec_start(struct as_kube_exec *exec)
{
    const struct as_kubeconfig *config = exec->config;
    struct as_kube_exec_info info = {.api_version = config->exec.api_version};
    if (config->exec.provide_cluster_info) {
        info.server = config->server;
        info.tls_server_name = config->tls_server_name;
        info.ca_base64 = config->ca_base64;
        info.proxy_url = config->proxy_url;
        info.insecure_skip_verify = config->insecure_skip_verify;
    }
    AS_CLEANUP(as_buf_deinit) struct as_buf variable = AS_BUF_INIT(AS_KUBECONFIG_MAX);
    as_buf_append_str(&variable, "KUBERNETES_EXEC_INFO=");
    as_kube_exec_info_encode(&info, &variable);

    size_t count = 0;
    while (config->exec.env[count])
        count++;
    AS_CLEANUP(as_free_p) const char **env = as_xcalloc(count + 2, sizeof(*env));
    memcpy(env, config->exec.env, count * sizeof(*env));
    env[count] = variable.data;
    struct as_process_request request = {
        .argv = (const char *const *)config->exec.argv,
        .env = env,
        .timeout_us = AS_KUBE_EXEC_TIMEOUT_US,
        .max_output = AS_KUBE_EXEC_OUTPUT_MAX,
    };
    exec->running = exec->env->runner->start(exec->env->runner, &request, exec_on_end, exec);
}

static bool exec_is_good(const struct as_kube_exec *exec)
{
    if (!exec->has_credential)
        return false;
    as_wall_time now = exec->env->clock->get_wall(exec->env->clock);
    return !exec->credential.expires.set ||
           exec->credential.expires.at.us - AS_KUBE_EXEC_EARLY_US > now.us;
}

/* As as_kube_access_get; *generation_out changes with the credential. */
static int exec_get(struct as_kube_exec *exec,
                    const struct as_kube_exec_credential **credential_out, uint64_t *generation_out,
                    struct as_error *error)
{
    if (!exec->running && !exec_is_good(exec)) {
        as_mono_time now = exec->env->clock->get_mono(exec->env->clock);
        if (now.us >= exec->retry_at.us) {
            exec_start(exec);
        } else if (exec->failure.text[0] || !exec->has_credential) {
            as_error_set(error, "%s", exec->failure.text);
            return -EAGAIN;
        }
    }
    if (exec->running)
        return AS_KUBE_ACCESS_PENDING;
    *credential_out = &exec->credential;
    *generation_out = exec->generation;
    return AS_KUBE_ACCESS_READY;
}

static void exec_wait(struct as_kube_exec *exec, struct as_kube_waiter *waiter)
{
    LIST_INSERT_HEAD(&exec->waiters, waiter, entry);
}

/* Do not use the credential of this generation any more. */
static void exec_expire(struct as_kube_exec *exec, uint64_t generation)
{
    if (exec->has_credential && exec->generation == generation && !exec->running) {
        exec->has_credential = false;
        as_error_set(&exec->failure, "credential plugin %s: the server did not accept what it gave",
                     exec->config->exec.command);
    }
}

/* Access, with or without a plugin. */

#define AUTHORIZATION_MAX (AS_SECRET_FILE_MAX + 64)

struct as_kube_access {
    const struct as_access_env *env;
    struct as_kubeconfig *config;
    struct as_secret_file token_file;
    struct as_kube_exec *exec; /* NULL: no plugin */
    struct as_buf authorization;
    uint64_t generation;
};

static const char *access_get_variable(const struct as_access_env *env, const char *name)
{
    const char *value = env->get_variable ? env->get_variable(name) : NULL;
    return as_str_is_empty(value) ? NULL : value;
}

/* The environment gives a pod its API server's address; an IPv6 address has no brackets there. */
static struct as_kubeconfig *make_in_cluster(const struct as_access_env *env)
{
    const char *host = access_get_variable(env, "KUBERNETES_SERVICE_HOST");
    const char *port = access_get_variable(env, "KUBERNETES_SERVICE_PORT");
    if (!host || !port)
        return NULL;
    const char *dir = env->service_account_dir ? env->service_account_dir : AS_SERVICE_ACCOUNT_DIR;
    struct as_kubeconfig *config = as_xcalloc(1, sizeof(*config));
    config->server =
        as_xasprintf(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
    config->ca_file = as_xasprintf("%s/ca.crt", dir);
    config->token_file = as_xasprintf("%s/token", dir);
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/namespace", dir);
    size_t size;
    if (as_file_read(path, 4096, &config->namespace_, &size) == 0)
        config->namespace_[strcspn(config->namespace_, "\r\n")] = '\0';
    return config;
}

static int access_load_config(const struct as_kube_access_config *config,
                              const struct as_access_env *env, struct as_kubeconfig **config_out,
                              struct as_error *error)
{
    if (config->kubeconfig)
        return as_kubeconfig_load(config->kubeconfig, config->context, config_out, error);
    struct as_kubeconfig *in_cluster = config->context ? NULL : make_in_cluster(env);
    if (in_cluster) {
        *config_out = in_cluster;
        return 0;
    }
    const char *paths = access_get_variable(env, "KUBECONFIG");
    if (paths)
        return as_kubeconfig_load_list(paths, config->context, config_out, error);
    const char *home = access_get_variable(env, "HOME");
    if (!home) {
        as_error_set(error, "no cluster: not in a pod, and neither KUBECONFIG nor HOME is set");
        return -ENOENT;
    }
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/.kube/config", home);
    int status = as_kubeconfig_load(path, config->context, config_out, error);
    if (status == -ENOENT)
        as_error_wrap(error, "no cluster: not in a pod, KUBECONFIG is not set");
    return status;
}

static void access_visit(const char *path, bool is_program, as_kube_file_fn *fn, void *context)
{
    if (path)
        fn(context, path, is_program);
}

/* Visits the kubeconfig files in `paths`, which has ':' between them. */
static void visit_list(const char *paths, as_kube_file_fn *fn, void *context)
{
    for (const char *from = paths; *from != '\0';) {
        const size_t size = strcspn(from, ":");
        AS_CLEANUP(as_free_p) char *path = as_xstrndup(from, size);
        if (size > 0)
            fn(context, path, false);
        from += size + (from[size] == ':');
    }
}

void as_kube_access_visit_files(const struct as_kube_access_config *config,
                                const struct as_access_env *env, as_kube_file_fn *fn, void *context)
{
    AS_CLEANUP(as_kubeconfig_free_p) struct as_kubeconfig *found = NULL;
    const char *list = access_get_variable(env, "KUBECONFIG"),
               *home = access_get_variable(env, "HOME");
    AS_CLEANUP(as_free_p) char *usual = as_xasprintf("%s/.kube/config", home ? home : "");
    const bool is_in_pod = !config->kubeconfig && !config->context &&
                           access_get_variable(env, "KUBERNETES_SERVICE_HOST") &&
                           access_get_variable(env, "KUBERNETES_SERVICE_PORT");
    if (config->kubeconfig)
        fn(context, config->kubeconfig, false);
    else if (!is_in_pod)
        visit_list(list ? list : usual, fn, context);
    struct as_error ignored = AS_ERROR_INIT;
    if (access_load_config(config, env, &found, &ignored) != 0)
        return; /* reported when it is needed */
    const char *const files[] = {found->ca_file, found->cert_file, found->key_file,
                                 found->token_file};
    for (size_t i = 0; i < AS_ARRAY_SIZE(files); i++)
        access_visit(files[i], false, fn, context);
    access_visit(found->exec.command, true, fn, context);
}

static void set_basic(struct as_buf *line, const char *username, const char *password)
{
    char *pair = as_xasprintf("%s:%s", username, password ? password : "");
    size_t size = strlen(pair);
    char *base64 = as_xmalloc(4 * ((size + 2) / 3) + 1);
    EVP_EncodeBlock((unsigned char *)base64, (const unsigned char *)pair, (int)size);
    as_buf_wipe(line);
    as_buf_printf(line, "Authorization: Basic %s", base64);
    as_wipe_free(pair);
    as_wipe_free(base64);
}

static void set_bearer(struct as_buf *line, const char *token)
{
    as_buf_wipe(line);
    as_buf_append_str(line, "Authorization: Bearer ");
    as_buf_append_str(line, token);
}

int as_kube_access_new(const struct as_kube_access_config *config, const struct as_access_env *env,
                       struct as_kube_access **access_out, struct as_error *error)
{
    AS_CLEANUP(as_kube_access_free_p)
    struct as_kube_access *access = as_xcalloc(1, sizeof(*access));
    access->env = env;
    access->authorization = AS_BUF_INIT(AUTHORIZATION_MAX);
    int status = access_load_config(config, env, &access->config, error);
    if (status)
        return status;
    const struct as_kubeconfig *user = access->config;
    if (user->token_file)
        as_secret_file_init(&access->token_file, user->token_file);
    else if (user->token)
        set_bearer(&access->authorization, user->token);
    else if (user->username)
        set_basic(&access->authorization, user->username, user->password);
    else if (user->exec.command)
        access->exec = exec_new(user, env);
    *access_out = access;
    access = NULL;
    return 0;
}

struct as_kube_access *as_kube_access_free(struct as_kube_access *access)
{
    if (!access)
        return NULL;
    access->exec = exec_free(access->exec);
    as_secret_file_deinit(&access->token_file);
    as_buf_wipe(&access->authorization);
    as_kubeconfig_free(access->config);
    free(access);
    return NULL;
}

const char *as_kube_access_get_namespace(const struct as_kube_access *access)
{
    const char *namespace_ = access->config->namespace_;
    return as_str_is_empty(namespace_) ? "default" : namespace_;
}

static int use_token_file(struct as_kube_access *access, struct as_error *error)
{
    const char *token;
    as_mono_time now = access->env->clock->get_mono(access->env->clock);
    int status =
        as_secret_file_get(&access->token_file, now, AS_SECRET_FILE_CHECK_US, &token, error);
    if (status) {
        as_error_wrap(error, "token");
        return status;
    }
    const char *line = access->authorization.data;
    if (!line || strcmp(line + strlen("Authorization: Bearer "), token) != 0) {
        set_bearer(&access->authorization, token);
        access->generation++;
    }
    return 0;
}

static int use_plugin(struct as_kube_access *access, struct as_kube_connection *connection,
                      struct as_error *error)
{
    const struct as_kube_exec_credential *credential;
    int status = exec_get(access->exec, &credential, &access->generation, error);
    if (status)
        return status;
    if (credential->token)
        set_bearer(&access->authorization, credential->token);
    else
        as_buf_wipe(&access->authorization);
    if (credential->cert_pem) {
        connection->tls.cert_file = connection->tls.key_file = NULL;
        connection->tls.cert_pem = credential->cert_pem;
        connection->tls.key_pem = credential->key_pem;
    }
    return 0;
}

int as_kube_access_get(struct as_kube_access *access, struct as_kube_connection *connection_out,
                       struct as_error *error)
{
    const struct as_kubeconfig *config = access->config;
    struct as_kube_connection connection = {
        .server = config->server,
        .proxy_url = config->proxy_url,
        .tls = {.ca_file = config->ca_file,
                .ca_pem = config->ca_pem,
                .cert_file = config->cert_file,
                .cert_pem = config->cert_pem,
                .key_file = config->key_file,
                .key_pem = config->key_pem,
                .server_name = config->tls_server_name,
                .insecure_skip_verify = config->insecure_skip_verify},
    };
    int status = 0;
    if (access->token_file.path)
        status = use_token_file(access, error);
    else if (access->exec)
        status = use_plugin(access, &connection, error);
    if (status)
        return status;
    if (access->authorization.size > 0)
        connection.authorization = access->authorization.data;
    connection.generation = access->generation;
    *connection_out = connection;
    return AS_KUBE_ACCESS_READY;
}

void as_kube_access_wait(struct as_kube_access *access, struct as_kube_waiter *waiter)
{
    exec_wait(access->exec, waiter);
}

void as_kube_waiter_cancel(struct as_kube_waiter *waiter)
{
    LIST_REMOVE(waiter, entry);
}

bool as_kube_access_renew(struct as_kube_access *access, uint64_t generation)
{
    if (generation != access->generation)
        return true; /* there are newer credentials already */
    if (access->token_file.path)
        as_secret_file_expire(&access->token_file);
    else if (access->exec)
        exec_expire(access->exec, generation);
    else
        return false;
    return true;
}

/* alertscaler's own namespace. Kubernetes mounts the pod's beside its token. */

#define NAMESPACE_MAX 63 /* a DNS label */

static bool is_label(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const size_t size = strlen(text);
    return size > 0 && size <= NAMESPACE_MAX && strspn(text, allowed) == size;
}

static int namespace_check(char *name, const char *where, char **namespace_out,
                           struct as_error *error)
{
    if (!is_label(name)) {
        as_error_set(error, "%s: `%.100s` is not the name of a namespace", where, name);
        free(name);
        return -EINVAL;
    }
    *namespace_out = name;
    return 0;
}

int as_kube_namespace_find(const char *configured, const struct as_access_env *env,
                           char **namespace_out, struct as_error *error)
{
    char *text;
    size_t size;
    if (configured)
        return namespace_check(as_xstrdup(configured), "state.namespace", namespace_out, error);
    const char *dir = env->service_account_dir ? env->service_account_dir : AS_SERVICE_ACCOUNT_DIR;
    AS_CLEANUP(as_free_p) char *path = as_xasprintf("%s/namespace", dir);
    if (as_file_read(path, 4096, &text, &size) != 0) {
        as_error_set(error, "state.namespace is needed: this is no pod that could tell its own");
        return -ENOENT;
    }
    text[strcspn(text, "\r\n")] = '\0';
    return namespace_check(text, path, namespace_out, error);
}
