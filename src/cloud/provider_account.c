/*
 * Accounts of providers: their credentials, and the operations with their APIs, carried out over
 * the ports: requests, files, programs, time.
 *
 * Invariants: one search for credentials at a time; calls wait for it in a list. Every want of an
 * operation is started from a separate turn of the loop, so that no callback comes from inside a
 * call.
 *
 * Not here: what an operation wants (cloud_op.h), the sources of credentials
 * (provider_credentials.h).
 */
#include "provider_account.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/random.h>
#include <alertscaler/base/str.h>
#include <alertscaler/http/client.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/login/cloud_op.h>
#include <alertscaler/login/http_auth.h>

struct op_call;

struct op_call_callbacks {
    /* Adds what its sender must add (a signature). False: the op has been failed. */
    bool (*authorize)(void *context, struct as_cloud_op *op);
    /* The op has ended with AS_CLOUD_OP_UNAUTHORIZED at an answer. True: the owner will repeat the
     * request with op_call_repeat, and the op receives the new answer in place of the old one. */
    bool (*refused)(void *context, struct op_call *call);
    /* A request that is_timed was refused, and the other side's clock is known now: the owner
     * begins the op again. */
    void (*mistimed)(void *context);
    void (*ended)(void *context); /* once, in a later turn than start */
    void *context;
};

struct op_call { /* embedded in its owner; all private */
    const struct as_access_env *env;
    struct as_cloud_op *op;
    struct op_call_callbacks callbacks;
    int64_t timeout_us; /* default of requests without a timeout */
    const char *client; /* for metrics; valid as long as the call */
    const struct as_http_tls *tls;
    const char *proxy_url;
    struct as_http_auth *auth;      /* sets tls, proxy_url and more headers; NULL: none */
    struct as_kube_client *cluster; /* the API server for URLs that are paths; NULL: none */
    struct as_flow flow;            /* borrowed, of its requests */
    int64_t *skew_us;               /* how far the other side's clock is ahead; NULL: irrelevant */
    struct as_kube_request *question;
    struct as_http_call *transfer;
    struct as_timer *timer;
    struct as_process *process;
    as_cloud_op_response_fn *on_response; /* of the last request */
    size_t plain_headers;                 /* of the last request, before it was authorized */
    bool is_repeated;                     /* at most once; then an op begun anew starts with it */
};

static void op_call_repeat(struct op_call *call);

/* Calls: an operation over the ports */

#define SKEW_MIN_US (2 * AS_US_PER_MIN) /* clouds accept five minutes and more */

static void call_turn(void *context);

static void call_later(struct op_call *call, int64_t us)
{
    call->timer = call->env->loop->start_timer(call->env->loop, us, call_turn, call);
}

/* The time of the other side's clock. */
static as_wall_time call_get_now(const struct op_call *call)
{
    const as_wall_time now = call->env->clock->get_wall(call->env->clock);
    return (as_wall_time){as_time_add(now.us, call->skew_us ? *call->skew_us : 0)};
}

/* ---- requests ---- */

/* A signature contains the time. Whether a refusal may come from a wrong clock of ours: judged by
 * the answer's own time, and only if this was not known before. Then the same request is signed
 * once more, with the other side's time; the refused request was not carried out. A request for
 * credentials is started anew. */
static bool learns_time(struct op_call *call, const struct as_http_response *response)
{
    as_wall_time theirs;
    const struct as_cloud_op_request *request = &call->op->request;
    if (!call->skew_us || call->cluster || call->is_repeated ||
        (request->is_plain && !request->is_timed) || response->outcome != AS_HTTP_ANSWERED ||
        response->status < 400 || response->status > 403 ||
        as_http_date_parse(as_http_response_find(response, "Date"), &theirs) < 0)
        return false;
    const int64_t news = theirs.us - call_get_now(call).us;
    if (news > -SKEW_MIN_US && news < SKEW_MIN_US)
        return false;
    *call->skew_us += news;
    as_log(AS_LOG_WARN, "the clock of this machine is off, or the provider's",
           AS_F("provider", call->client), AS_FI("seconds_behind", *call->skew_us / AS_US_PER_S));
    return true;
}

static void call_answered(void *context, const struct as_http_response *response)
{
    struct op_call *call = context;
    struct as_cloud_op *op = call->op;
    call->transfer = NULL;
    if (learns_time(call, response)) {
        call->is_repeated = true;
        if (op->request.is_plain)
            call->callbacks.mistimed(call->callbacks.context);
        else
            op_call_repeat(call);
        return;
    }
    as_cloud_op_on_response(op, call_get_now(call), response);
    if (op->want == AS_CLOUD_OP_END && op->fault == AS_CLOUD_OP_UNAUTHORIZED &&
        !call->is_repeated && call->callbacks.refused(call->callbacks.context, call)) {
        call->is_repeated = true;
        return;
    }
    call_later(call, 0);
}

static void cluster_answered(void *context, const struct as_http_response *response,
                             unsigned attempts)
{
    struct op_call *call = context;
    call->question = NULL;
    call->op->sent += attempts;
    call_answered(call, response);
}

static void ask_cluster(struct op_call *call)
{
    static const char type[] = "Content-Type: ";
    const struct as_cloud_op_request *wanted = &call->op->request;
    struct as_kube_request_spec spec = {
        .method = wanted->method,
        .path = wanted->url,
        .operation = wanted->operation,
        .body = wanted->body.size > 0 ? wanted->body.data : NULL,
        .body_size = wanted->body.size,
        .max_response = AS_CLOUD_OP_ANSWER_MAX,
        .timeout_us = call->timeout_us,
        .flow = call->flow,
    };
    for (size_t i = 0; i < wanted->header_count; i++) {
        if (as_str_starts_with(wanted->headers[i], type))
            spec.content_type = wanted->headers[i] + strlen(type);
    }
    call->question = as_kube_request_start(call->cluster, &spec, cluster_answered, call);
}

/* A change that must not be made now fails without a request. */
static bool call_stops(struct op_call *call)
{
    const enum as_permit permit = as_access_get_permit(call->env);
    const char *rival = as_access_find_rival(call->env, call->flow.target);
    if (permit > AS_PERMIT_FINISH)
        as_cloud_op_fail(call->op, AS_CLOUD_OP_STOPPED, "%s", as_permit_explain(permit));
    else if (rival)
        as_cloud_op_fail(call->op, AS_CLOUD_OP_NOT_ALLOWED, AS_RIVAL_FORMAT, rival);
    else
        return false;
    call_later(call, 0);
    return true;
}

static void call_send(struct op_call *call)
{
    struct as_cloud_op *op = call->op;
    const struct as_cloud_op_request *wanted = &op->request;
    if (wanted->is_change && call_stops(call))
        return;
    if (call->cluster) {
        ask_cluster(call);
        return;
    }
    call->on_response = op->on_response;
    call->plain_headers = wanted->header_count;
    if (!wanted->is_plain && !call->callbacks.authorize(call->callbacks.context, op)) {
        call_later(call, 0);
        return;
    }
    struct as_http_request request = {
        .method = wanted->method,
        .url = wanted->url,
        .headers = wanted->headers,
        .body = wanted->body.size > 0 ? wanted->body.data : NULL,
        .body_size = wanted->body.size,
        .timeout_us = wanted->timeout_us ? wanted->timeout_us : call->timeout_us,
        .max_response = wanted->max_response ? wanted->max_response : AS_CLOUD_OP_ANSWER_MAX,
        .flow = call->flow,
        .is_http2 = wanted->is_http2,
        .proxy_url = wanted->without_proxy ? NULL : call->proxy_url,
        .client_name = call->client,
        .operation = wanted->operation,
    };
    struct as_error error = AS_ERROR_INIT;
    if (call->tls)
        request.tls = *call->tls;
    if (call->auth && as_http_auth_apply(call->auth, wanted->headers, &request, &error) < 0) {
        as_cloud_op_on_unsent(op, call_get_now(call), error.text);
        call_later(call, 0);
        return;
    }
    op->sent++;
    call->transfer = call->env->http->start(call->env->http, &request, call_answered, call);
}

static void op_call_repeat(struct op_call *call)
{
    struct as_cloud_op *op = call->op;
    while (op->request.header_count > call->plain_headers)
        op->request.headers[--op->request.header_count] = NULL;
    op->want = AS_CLOUD_OP_SEND;
    op->on_response = call->on_response;
    call_later(call, 0);
}

/* ---- files, programs, time ---- */

static void call_read_file(struct op_call *call)
{
    struct as_cloud_op *op = call->op;
    char *text = NULL;
    size_t size = 0;
    const int status = as_file_read(op->path, AS_CLOUD_OP_FILE_MAX, &text, &size);
    as_cloud_op_on_content(op, call_get_now(call), status == 0 ? text : NULL, size, -status);
    if (text)
        explicit_bzero(text, size); /* it may be a secret */
    free(text);
    call_later(call, 0);
}

static void call_ran(void *context, const struct as_process_result *result)
{
    struct op_call *call = context;
    static const int errors[] = {
        [AS_PROCESS_EXITED] = EIO,         [AS_PROCESS_KILLED] = EINTR,
        [AS_PROCESS_NOT_STARTED] = ENOENT, [AS_PROCESS_TIMEOUT] = ETIMEDOUT,
        [AS_PROCESS_TOO_LARGE] = EFBIG,
    };
    const bool is_good = result->outcome == AS_PROCESS_EXITED && result->status == 0;
    call->process = NULL;
    as_cloud_op_on_content(call->op, call_get_now(call), is_good ? result->output : NULL,
                           result->output_size, is_good ? 0 : errors[result->outcome]);
    call_later(call, 0);
}

static void call_run(struct op_call *call)
{
    const struct as_process_request request = {
        .argv = (const char *const *)call->op->argv,
        .env = (const char *const[]){NULL},
        .timeout_us = call->timeout_us,
        .max_output = AS_CLOUD_OP_FILE_MAX,
    };
    call->process = call->env->runner->start(call->env->runner, &request, call_ran, call);
}

static void call_waited(void *context)
{
    struct op_call *call = context;
    call->timer = NULL;
    as_cloud_op_on_time(call->op, call_get_now(call));
    call_later(call, 0);
}

/* ---- the op's turns ---- */

static void call_turn(void *context)
{
    struct op_call *call = context;
    call->timer = NULL;
    switch (call->op->want) {
    case AS_CLOUD_OP_SEND: call_send(call); break;
    case AS_CLOUD_OP_READ: call_read_file(call); break;
    case AS_CLOUD_OP_RUN: call_run(call); break;
    case AS_CLOUD_OP_WAIT:
        call->timer =
            call->env->loop->start_timer(call->env->loop, call->op->wait_us, call_waited, call);
        break;
    case AS_CLOUD_OP_END: call->callbacks.ended(call->callbacks.context); break;
    }
}

/* The op has begun: its first want is carried out in a later turn. */
static void op_call_start(struct op_call *call)
{
    call_later(call, 0);
}

/* no callbacks afterwards */
static void op_call_cancel(struct op_call *call)
{
    const struct as_access_env *env = call->env;
    if (call->transfer)
        env->http->cancel(env->http, call->transfer);
    if (call->question)
        as_kube_request_cancel(call->question);
    if (call->process)
        env->runner->cancel(env->runner, call->process);
    if (call->timer)
        env->loop->cancel_timer(env->loop, call->timer);
    call->transfer = NULL;
    call->question = NULL;
    call->process = NULL;
    call->timer = NULL;
}

/* The account */

/* Credentials are renewed RENEW_BEFORE_US before they expire; meanwhile the old ones are used, but
 * not for ops that begin in the last EXPIRED_BEFORE_US. (AWS has 15 and 10 minutes, Google 5 and
 * 4.) */
#define RENEW_BEFORE_US   (10 * AS_US_PER_MIN)
#define EXPIRED_BEFORE_US (1 * AS_US_PER_MIN)
#define TRY_AGAIN_US      (30 * AS_US_PER_S) /* after a failed search */

struct as_account_call {
    LIST_ENTRY(as_account_call) entry;
    struct as_account *account;
    struct as_group_op *op;
    struct op_call runner;
    as_account_done_fn *done;
    void *context;
    bool is_waiting; /* for credentials */
    bool is_begun;
    unsigned generation; /* of the credentials of its last request */
};

struct as_account {
    const struct as_group_provider *provider;
    const struct as_provider_settings *settings;
    const struct as_access_env *env;
    struct as_http_auth *auth; /* of http_config, if the provider has no credentials of its own */
    struct as_kube_client *cluster; /* NULL: not a cluster's */
    struct as_http_tls tls;
    LIST_HEAD(, as_account_call) calls;
    struct as_random nonces;
    int64_t skew_us; /* how far the provider's clock is ahead of ours, if known */

    struct as_provider_credentials credentials; /* when has_credentials */
    bool has_credentials;
    unsigned generation; /* counts the credentials that were found */
    /* the search: */
    bool is_searching;
    size_t source;
    struct as_credentials_op search;
    struct op_call searcher;
    struct as_timer *timer;                 /* reports that nothing was found */
    as_mono_time search_again;              /* after a failure: not before */
    char problem[AS_CLOUD_OP_MESSAGE_SIZE]; /* of the last search */
    enum as_cloud_op_fault problem_fault;
};

/* The time of the provider's clock, which decides on signatures and on the expiry of
 * credentials. */
static as_wall_time account_get_wall(const struct as_account *account)
{
    const as_wall_time now = account->env->clock->get_wall(account->env->clock);
    return (as_wall_time){as_time_add(now.us, account->skew_us)};
}

static as_mono_time account_get_mono(const struct as_account *account)
{
    return account->env->clock->get_mono(account->env->clock);
}

/* ---- credentials ---- */

static bool is_good_for(const struct as_account *account, int64_t margin_us)
{
    const as_wall_time now = account_get_wall(account);
    const struct as_provider_credentials *credentials = &account->credentials;
    return !account->provider->credentials ||
           (account->has_credentials &&
            (!credentials->expires.set ||
             credentials->expires.at.us > as_time_add(now.us, margin_us)));
}

static void init_runner(struct as_account *account, struct op_call *runner, struct as_cloud_op *op,
                        struct op_call_callbacks callbacks)
{
    *runner = (struct op_call){
        .env = account->env,
        .op = op,
        .callbacks = callbacks,
        .timeout_us = account->settings->timeout_us,
        .client = account->provider->type,
        .tls = &account->tls,
        .proxy_url = account->settings->http.proxy_url,
        .auth = account->auth,
        .cluster = account->cluster,
        .skew_us = &account->skew_us,
    };
}

static void account_begin(struct as_account_call *call)
{
    call->is_begun = true;
    call->op->credentials = &call->account->credentials;
    call->op->op.now = account_get_wall(call->account);
    call->account->provider->begin(call->op);
}

/* Every waiting call continues: with credentials, or with the search's failure. */
static void release_waiting(struct as_account *account)
{
    struct as_account_call *call;
    LIST_FOREACH (call, &account->calls, entry) {
        if (!call->is_waiting)
            continue;
        call->is_waiting = false;
        if (call->is_begun && account->has_credentials) {
            op_call_repeat(&call->runner);
            continue;
        }
        if (!account->has_credentials)
            as_cloud_op_fail(&call->op->op, account->problem_fault, "no credentials: %s",
                             account->problem);
        else
            account_begin(call);
        op_call_start(&call->runner);
    }
}

static void take_found(struct as_account *account)
{
    as_credentials_deinit(&account->credentials);
    account->credentials = account->search.found;
    account->search.found = (struct as_provider_credentials){0};
    account->has_credentials = true;
    account->generation++;
}

/* Old credentials are kept while they are valid; else the next call searches again. */
static void account_note_failure(struct as_account *account, enum as_cloud_op_fault fault,
                                 const char *source, const char *message)
{
    snprintf(account->problem, sizeof(account->problem), "%s%s%s", source, *source ? ": " : "",
             message);
    account->problem_fault = fault;
    account->search_again.us = as_time_add(account_get_mono(account).us, TRY_AGAIN_US);
    if (!is_good_for(account, 0)) {
        as_credentials_deinit(&account->credentials);
        account->has_credentials = false;
    }
    as_log(account->has_credentials ? AS_LOG_WARN : AS_LOG_ERROR,
           "no new credentials for a provider", AS_F("provider", account->settings->name),
           AS_F("reason", account->problem),
           AS_F("old", account->has_credentials ? "still used" : "none"));
}

static void search_next(struct as_account *account);
static void end_search(struct as_account *account);

static void search_ended(void *context)
{
    struct as_account *account = context;
    struct as_credentials_op *search = &account->search;
    const char *source = account->provider->credentials[account->source].name;
    const enum as_cloud_op_fault fault = search->op.fault;
    const bool is_not_here = search->is_not_here;
    if (fault == AS_CLOUD_OP_OK && !is_not_here)
        take_found(account);
    else if (fault != AS_CLOUD_OP_OK)
        account_note_failure(account, fault, source, search->op.message);
    end_search(account);
    account->source++;
    if (fault == AS_CLOUD_OP_OK && is_not_here) {
        search_next(account);
        return;
    }
    account->is_searching = false;
    release_waiting(account);
}

static void nothing_found(void *context)
{
    struct as_account *account = context;
    account_note_failure(account, AS_CLOUD_OP_CONFIGURATION, "",
                         "none are set up in any of the places where they are looked for");
    account->timer = NULL;
    account->is_searching = false;
    release_waiting(account);
}

static bool authorize_nothing(void *context, struct as_cloud_op *op)
{
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "credentials cannot need credentials");
    return false;
}

static bool refuse_nothing(void *context, struct op_call *call)
{
    return false;
}

static void mistimed_nothing(void *context)
{
}

static void search_anew(void *context);

static void begin_search(struct as_account *account)
{
    account->search = (struct as_credentials_op){.account = account->settings};
    as_cloud_op_init(&account->search.op, account->env->get_variable);
    account->search.op.now = account_get_wall(account);
    init_runner(account, &account->searcher, &account->search.op,
                (struct op_call_callbacks){authorize_nothing, refuse_nothing, search_anew,
                                           search_ended, account});
    account->provider->credentials[account->source].begin(&account->search);
    op_call_start(&account->searcher);
}

static void end_search(struct as_account *account)
{
    as_credentials_deinit(&account->search.found);
    as_cloud_op_deinit(&account->search.op);
}

/* The provider's clock is known now: searches again. */
static void search_anew(void *context)
{
    struct as_account *account = context;
    end_search(account);
    begin_search(account);
    account->searcher.is_repeated = true;
}

static void search_next(struct as_account *account)
{
    if (account->provider->credentials[account->source].name)
        begin_search(account);
    else
        account->timer =
            account->env->loop->start_timer(account->env->loop, 0, nothing_found, account);
}

static void account_search(struct as_account *account)
{
    if (account->is_searching)
        return;
    account->is_searching = true;
    account->source = 0;
    search_next(account);
}

/* ---- calls ---- */

static bool account_authorize(void *context, struct as_cloud_op *op)
{
    struct as_account_call *call = context;
    struct as_account *account = call->account;
    if (!account->provider->credentials)
        return true;
    struct as_error error = AS_ERROR_INIT;
    char nonce[AS_ULID_SIZE];
    const as_wall_time now = account_get_wall(account);
    as_ulid_print(now, &account->nonces, nonce);
    const char *region = as_account_get(account->settings, "region");
    const struct as_sign_scope scope = {
        .region = region ? region : account->credentials.region,
        .service = op->request.service ? op->request.service : account->provider->service,
        .now = now,
        .nonce = nonce,
    };
    call->generation = account->generation;
    if (account->has_credentials &&
        account->provider->sign(op, &account->credentials, &scope, &error) == 0)
        return true;
    as_cloud_op_fail(op, AS_CLOUD_OP_CONFIGURATION, "%s: %s", op->request.operation,
                     account->has_credentials ? error.text : "the credentials have expired");
    return false;
}

static bool account_refused(void *context, struct op_call *runner)
{
    struct as_account_call *call = context;
    struct as_account *account = call->account;
    if (!account->provider->credentials)
        return false;
    if (call->generation != account->generation) { /* newer credentials came meanwhile */
        op_call_repeat(runner);
        return true;
    }
    call->is_waiting = true;
    account_search(account);
    return true;
}

static void account_ended(void *context)
{
    struct as_account_call *call = context;
    as_account_done_fn *const done = call->done;
    void *const whose = call->context;
    as_account_cancel(call);
    done(whose);
}

struct as_account_call *as_account_start(struct as_account *account, struct as_group_op *op,
                                         as_account_done_fn *done, void *context)
{
    struct as_account_call *call = as_xcalloc(1, sizeof(*call));
    call->account = account;
    call->op = op;
    call->done = done;
    call->context = context;
    init_runner(account, &call->runner, &op->op,
                (struct op_call_callbacks){account_authorize, account_refused, mistimed_nothing,
                                           account_ended, call});
    call->runner.flow = (struct as_flow){op->group->id, op->credential};
    LIST_INSERT_HEAD(&account->calls, call, entry);
    const bool may_search = account->search_again.us <= account_get_mono(account).us;
    if (is_good_for(account, EXPIRED_BEFORE_US)) {
        account_begin(call);
        op_call_start(&call->runner);
        if (!is_good_for(account, RENEW_BEFORE_US) && may_search)
            account_search(account);
    } else if (account->is_searching || may_search || account->has_credentials) {
        call->is_waiting = true;
        account_search(account);
    } else {
        as_cloud_op_fail(&op->op, account->problem_fault, "no credentials: %s", account->problem);
        op_call_start(&call->runner);
    }
    return call;
}

void as_account_cancel(struct as_account_call *call)
{
    op_call_cancel(&call->runner);
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
    account->cluster = cluster;
    if (!provider->credentials && !provider->is_kubernetes)
        account->auth = as_http_auth_new(&settings->http, env->clock);
    account->search_again.us = INT64_MIN;
    account->tls = (struct as_http_tls){
        .ca_file = settings->http.tls.ca_file,
        .cert_file = settings->http.tls.cert_file,
        .key_file = settings->http.tls.key_file,
        .server_name = settings->http.tls.server_name,
        .insecure_skip_verify = settings->http.tls.insecure_skip_verify,
    };
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
    if (account->is_searching && account->timer) {
        account->env->loop->cancel_timer(account->env->loop, account->timer);
    } else if (account->is_searching) {
        op_call_cancel(&account->searcher);
        end_search(account);
    }
    as_credentials_deinit(&account->credentials);
    as_http_auth_free(account->auth);
    free(account);
    return NULL;
}
