/*
 * A credential plugin of a kubeconfig: see the header. If it fails, its standard error goes into
 * our log: there such programs say what they need.
 */
#include "kube_exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/access_limits.h>

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

struct as_kube_exec *as_kube_exec_new(const struct as_kubeconfig *config,
                                      const struct as_access_env *env)
{
    struct as_kube_exec *exec = as_xcalloc(1, sizeof(*exec));
    exec->config = config;
    exec->env = env;
    exec->retry_at.us = INT64_MIN;
    LIST_INIT(&exec->waiters);
    return exec;
}

struct as_kube_exec *as_kube_exec_free(struct as_kube_exec *exec)
{
    if (!exec)
        return NULL;
    if (exec->running)
        exec->env->runner->cancel(exec->env->runner, exec->running);
    as_kube_exec_credential_deinit(&exec->credential);
    free(exec);
    return NULL;
}

static void fail(struct as_kube_exec *exec, const struct as_process_result *result)
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

static void take_output(struct as_kube_exec *exec, const struct as_process_result *result)
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

static void tell(struct as_kube_exec *exec)
{
    struct as_kube_waiters told = LIST_HEAD_INITIALIZER(told);
    struct as_kube_waiter *waiter;
    LIST_SWAP(&told, &exec->waiters, as_kube_waiter, entry);
    while ((waiter = LIST_FIRST(&told)) != NULL) {
        as_kube_waiter_cancel(waiter);
        waiter->ready(waiter->context);
    }
}

static void ended(void *context, const struct as_process_result *result)
{
    struct as_kube_exec *exec = context;
    as_mono_time now = exec->env->clock->get_mono(exec->env->clock);
    exec->running = NULL;
    exec->retry_at.us = as_time_add(now.us, AS_KUBE_EXEC_RETRY_US);
    exec->failure.text[0] = '\0';
    if (result->outcome == AS_PROCESS_EXITED && result->status == 0)
        take_output(exec, result);
    else
        fail(exec, result);
    if (exec->failure.text[0])
        as_log(AS_LOG_WARN, "credential plugin failed", AS_F("error", exec->failure.text),
               AS_F("output", result->error_output), AS_F("hint", exec->config->exec.install_hint));
    tell(exec);
}

static void start(struct as_kube_exec *exec)
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
    exec->running = exec->env->runner->start(exec->env->runner, &request, ended, exec);
}

static bool is_good(const struct as_kube_exec *exec)
{
    if (!exec->has_credential)
        return false;
    as_wall_time now = exec->env->clock->get_wall(exec->env->clock);
    return !exec->credential.expires.set ||
           exec->credential.expires.at.us - AS_KUBE_EXEC_EARLY_US > now.us;
}

int as_kube_exec_get(struct as_kube_exec *exec,
                     const struct as_kube_exec_credential **credential_out,
                     uint64_t *generation_out, struct as_error *error)
{
    if (!exec->running && !is_good(exec)) {
        as_mono_time now = exec->env->clock->get_mono(exec->env->clock);
        if (now.us >= exec->retry_at.us) {
            start(exec);
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

void as_kube_exec_wait(struct as_kube_exec *exec, struct as_kube_waiter *waiter)
{
    LIST_INSERT_HEAD(&exec->waiters, waiter, entry);
}

void as_kube_exec_expire(struct as_kube_exec *exec, uint64_t generation)
{
    if (exec->has_credential && exec->generation == generation && !exec->running) {
        exec->has_credential = false;
        as_error_set(&exec->failure, "credential plugin %s: the server did not accept what it gave",
                     exec->config->exec.command);
    }
}
