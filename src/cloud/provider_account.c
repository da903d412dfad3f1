/*
 * Accounts of providers: operations with their APIs, over HTTP or through the API server of a
 * cluster, with credentials that stay fresh.
 *
 * Not here: what an operation wants (login/cloud_op.h), how it is carried out (login/op_call.h),
 * the credentials (login/credentials_cache.h).
 */
#include "provider_account.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/login/cloud_op.h>
#include <alertscaler/login/credentials_cache.h>
#include <alertscaler/login/http_auth.h>
#include <alertscaler/login/op_call.h>

#define TRY_AGAIN_US (30 * AS_US_PER_S) /* after a failed search */

struct as_account_call {
    LIST_ENTRY(as_account_call) entry;
    struct as_account *account;
    struct as_group_op *op;
    struct as_op_call runner;
    struct as_kube_request *question; /* to the API server */
    as_account_done_fn *done;
    void *context;
    struct as_credentials_waiter waiter;
    bool is_begun;
    unsigned generation; /* of the credentials of its last request */
};

struct as_account {
    const struct as_group_provider *provider;
    const struct as_provider_settings *settings;
    const struct as_access_env *env;
    struct as_login_env login_env;
    struct as_credentials_cache *credentials; /* NULL: the provider has none of its own */
    struct as_http_auth *auth;                /* of http_config, in place of credentials; NULL */
    struct as_kube_client *cluster;           /* the API server for URLs that are paths; NULL */
    struct as_http_tls tls;
    LIST_HEAD(, as_account_call) calls;
    struct as_random nonces;
};

/* The time of the provider's clock. */
static as_wall_time account_get_wall(const struct as_account *account)
{
    return account->credentials ? as_credentials_cache_get_wall(account->credentials)
                                : account->env->clock->get_wall(account->env->clock);
}

/* ---- requests ---- */

/* A change that must not be made now fails without a request. */
static bool account_permit(void *context, struct as_cloud_op *op)
{
    const struct as_account_call *call = context;
    const struct as_access_env *env = call->account->env;
    const enum as_permit permit = as_access_get_permit(env);
    const char *rival = as_access_find_rival(env, call->runner.flow.target);
    if (permit > AS_PERMIT_FINISH)
        as_cloud_op_fail(op, AS_CLOUD_OP_STOPPED, "%s", as_permit_explain(permit));
    else if (rival)
        as_cloud_op_fail(op, AS_CLOUD_OP_NOT_ALLOWED, AS_RIVAL_FORMAT, rival);
    else
        return true;
    return false;
}

static void cluster_answered(void *context, const struct as_http_response *response,
                             unsigned attempts)
{
    struct as_account_call *call = context;
    call->question = NULL;
    call->op->op.sent += attempts;
    as_op_call_on_response(&call->runner, response);
}

static void ask_cluster(void *context, struct as_cloud_op *op)
{
    static const char type[] = "Content-Type: ";
    struct as_account_call *call = context;
    const struct as_cloud_op_request *wanted = &op->request;
    struct as_kube_request_spec spec = {
        .method = wanted->method,
        .path = wanted->url,
        .operation = wanted->operation,
        .body = wanted->body.size > 0 ? wanted->body.data : NULL,
        .body_size = wanted->body.size,
        .max_response = AS_CLOUD_OP_ANSWER_MAX,
        .timeout_us = call->runner.timeout_us,
        .flow = call->runner.flow,
    };
    for (size_t i = 0; i < wanted->header_count; i++) {
        if (as_str_starts_with(wanted->headers[i], type))
            spec.content_type = wanted->headers[i] + strlen(type);
    }
    call->question = as_kube_request_start(call->account->cluster, &spec, cluster_answered, call);
}

static bool account_authorize(void *context, struct as_cloud_op *op)
{
    struct as_account_call *call = context;
    struct as_account *account = call->account;
    if (!account->credentials)
        return true;
    struct as_error error = AS_ERROR_INIT;
    char nonce[AS_ULID_SIZE];
    const as_wall_time now = account_get_wall(account);
    const struct as_provider_credentials *credentials =
        as_credentials_cache_find(account->credentials);
    as_ulid_print(now, &account->nonces, nonce);
    const char *region = as_account_get(account->settings, "region");
    const struct as_sign_scope scope = {
        .region = region || !credentials ? region : credentials->region,
        .service = op->request.service ? op->request.service : account->provider->service,
        .now = now,
        .nonce = nonce,
    };
    call->generation = as_credentials_cache_get_generation(account->credentials);
    if (credentials && account->provider->sign(op, credentials, &scope, &error) == 0)
        return true;
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: %s", op->request.operation,
                     credentials ? error.text : "the credentials have expired");
    return false;
}

/* ---- calls ---- */

static void call_fail_without_credentials(struct as_account_call *call)
{
    enum as_cloud_op_fault fault;
    const char *problem = as_credentials_cache_get_problem(call->account->credentials, &fault);
    as_cloud_op_fail(&call->op->op, fault, "no credentials: %s", problem);
    as_op_call_start(&call->runner);
}

static void call_begin(struct as_account_call *call)
{
    static const struct as_provider_credentials none;
    struct as_account *account = call->account;
    call->is_begun = true;
    call->op->credentials =
        account->credentials ? as_credentials_cache_find(account->credentials) : &none;
    call->op->op.now = account_get_wall(account);
    account->provider->begin(call->op);
    as_op_call_start(&call->runner);
}

/* The search has ended: with credentials, or with a failure. */
static void call_continue(void *context)
{
    struct as_account_call *call = context;
    if (!as_credentials_cache_find(call->account->credentials))
        call_fail_without_credentials(call);
    else if (call->is_begun)
        as_op_call_repeat(&call->runner);
    else
        call_begin(call);
}

static bool account_refused(void *context, struct as_op_call *runner)
{
    struct as_account_call *call = context;
    struct as_account *account = call->account;
    if (account->auth && as_http_auth_refuse(account->auth)) {
        as_op_call_repeat(runner);
        return true;
    }
    if (!account->credentials)
        return false;
    const enum as_credentials_state state = as_credentials_cache_renew(
        account->credentials, call->generation, &call->waiter, call_continue, call);
    if (state == AS_CREDENTIALS_READY)
        as_op_call_repeat(runner);
    return state != AS_CREDENTIALS_FAILED;
}

static void mistimed_nothing(void *context)
{
}

static void account_ended(void *context)
{
    struct as_account_call *call = context;
    as_account_done_fn *const done = call->done;
    void *const whose = call->context;
    as_account_cancel(call);
    done(whose);
}

static void call_init_runner(struct as_account_call *call)
{
    struct as_account *account = call->account;
    call->runner = (struct as_op_call){
        .env = &account->login_env,
        .http = account->auth ? as_http_auth_get_port(account->auth) : NULL,
        .op = &call->op->op,
        .callbacks = {.authorize = account_authorize,
                      .permit = account_permit,
                      .send = account->cluster ? ask_cluster : NULL,
                      .refused = account_refused,
                      .mistimed = mistimed_nothing,
                      .ended = account_ended,
                      .context = call},
        .timeout_us = account->settings->timeout_us,
        .client = account->provider->type,
        .tls = &account->tls,
        .proxy_url = account->settings->http.proxy_url,
        .flow = {call->op->group->id, call->op->credential},
        .skew_us =
            account->credentials ? as_credentials_cache_get_skew(account->credentials) : NULL,
    };
}

struct as_account_call *as_account_start(struct as_account *account, struct as_group_op *op,
                                         as_account_done_fn *done, void *context)
{
    struct as_account_call *call = as_xcalloc(1, sizeof(*call));
    call->account = account;
    call->op = op;
    call->done = done;
    call->context = context;
    call_init_runner(call);
    LIST_INSERT_HEAD(&account->calls, call, entry);
    const enum as_credentials_state state =
        account->credentials
            ? as_credentials_cache_request(account->credentials, &call->waiter, call_continue, call)
            : AS_CREDENTIALS_READY;
    switch (state) {
    case AS_CREDENTIALS_READY: call_begin(call); break;
    case AS_CREDENTIALS_AWAITED: break;
    case AS_CREDENTIALS_FAILED: call_fail_without_credentials(call); break;
    }
    return call;
}

void as_account_cancel(struct as_account_call *call)
{
    if (call->question)
        as_kube_request_cancel(call->question);
    as_credentials_cache_leave(&call->waiter);
    as_op_call_cancel(&call->runner);
    LIST_REMOVE(call, entry);
    free(call);
}

void as_account_init_op(const struct as_account *account, struct as_group_op *op)
{
    *op = (struct as_group_op){.account = account->settings, .view = {.min = -1, .max = -1}};
    as_cloud_op_init(&op->op, account->env->get_variable);
}

struct as_account *as_account_new(const struct as_group_provider *provider,
                                  const struct as_provider_settings *settings,
                                  const struct as_access_env *env, struct as_kube_client *cluster)
{
    struct as_account *account = as_xcalloc(1, sizeof(*account));
    const as_wall_time now = env->clock->get_wall(env->clock);
    account->provider = provider;
    account->settings = settings;
    account->env = env;
    account->login_env =
        (struct as_login_env){env->http, env->loop, env->runner, env->clock, env->get_variable};
    account->cluster = cluster;
    account->tls = as_tls_settings_get(&settings->http.tls);
    if (provider->credentials)
        account->credentials = as_credentials_cache_new(&(struct as_credentials_config){
            .env = &account->login_env,
            .sources = provider->credentials,
            .account = settings,
            .client = provider->type,
            .kind = "provider",
            .name = settings->name,
            .tls = account->tls,
            .proxy_url = settings->http.proxy_url,
            .timeout_us = settings->timeout_us,
            .try_again_us = TRY_AGAIN_US,
        });
    else if (!provider->is_kubernetes)
        account->auth = as_http_auth_new(&settings->http, &account->login_env);
    as_random_init(&account->nonces, (uint64_t)now.us);
    LIST_INIT(&account->calls);
    return account;
}

struct as_account *as_account_free(struct as_account *account)
{
    struct as_account_call *call;
    if (!account)
        return NULL;
    while ((call = LIST_FIRST(&account->calls)))
        as_account_cancel(call);
    as_credentials_cache_free(account->credentials);
    as_http_auth_free(account->auth);
    free(account);
    return NULL;
}
