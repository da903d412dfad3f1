/*
 * Prometheus' `http_config`: see the header. Header lines are built for each request, because each
 * file may have changed; they are wiped before they are freed.
 *
 * A server may put what it refuses into its answer, and the words of a refusal are logged, recorded
 * and reported. So a call remembers the secrets that it showed, and masks them in such an answer.
 *
 * A call with a login keeps a copy of its request: it waits for credentials, and may be sent twice.
 * Its phases are: awaiting credentials (the waiter, and the timer of its time), sent (transfer),
 * failed (the timer, with an error).
 */
#include <alertscaler/login/http_auth.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>
#include <openssl/evp.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/url.h>
#include <alertscaler/http/secret_file.h>
#include <alertscaler/login/cloud_credentials.h>
#include <alertscaler/login/credentials_cache.h>
#include <alertscaler/login/op_call.h>
#include <alertscaler/login/sign.h>

#include "mask.h"

#define LOGIN_TIMEOUT_US   (10 * AS_US_PER_S) /* of one request for credentials */
#define LOGIN_TRY_AGAIN_US (5 * AS_US_PER_S)  /* after a failed search */
/* After new credentials were refused too, a refusal is not answered with yet newer ones. */
#define LOGIN_REFUSED_US (1 * AS_US_PER_MIN)
#define LOGIN_OPTIONS    8
#define SIGN_LINES       4 /* header lines of a signature, or of a login by files */

struct auth_call { /* also an as_http_call */
    LIST_ENTRY(auth_call) entry;
    struct as_http_auth *auth;
    as_http_done_fn *done;
    as_http_body_fn *on_body;
    void *context;
    struct as_http_call *transfer;
    struct as_timer *timer;
    bool may_pass; /* the failure */
    struct as_error error;
    struct as_buf secrets; /* that were shown to the server */
    /* with a login: */
    struct as_http_request request; /* a copy; its flow too */
    char *method, *url, *headers, *body;
    const char **lines; /* into `headers` */
    as_mono_time deadline;
    struct as_credentials_waiter waiter;
    unsigned generation; /* of the credentials that were sent */
    bool is_repeated;
};

struct as_http_auth {
    struct as_http port; /* the first member */
    const struct as_http_settings *settings;
    struct as_login_env env;
    struct as_secret_file username, password, credentials;
    struct as_secret_file *header_files; /* of all headers, one after the other */
    size_t header_file_count;
    LIST_HEAD(, auth_call) calls;

    char **lines; /* of the present request */
    size_t line_count;
    const char **all;      /* the request's own and ours, NULL at the end */
    struct as_buf secrets; /* in these lines */

    /* with a login: */
    const struct login *login;
    struct as_credentials_cache *cache;
    struct as_provider_settings account; /* what the sources of credentials read */
    struct as_provider_option options[LOGIN_OPTIONS];
    struct as_oauth2_ask oauth2;
    as_mono_time renew_again; /* a refusal is answered with new credentials from then on */
    /* by as_http_auth_refuse; generations of credentials, 0: none */
    unsigned answered; /* in the answer that is reported now */
    unsigned refused;  /* must be renewed */
    as_mono_time refuse_again;
};

/* ---- logins ---- */

struct login {
    const char *key;
    as_sign_fn *sign;
    const char *service; /* for a signature; NULL: it is a token */
    /* Fills the options of the account, and what else the config of the cache needs. */
    void (*configure)(struct as_http_auth *auth, struct as_credentials_config *config);
};

static void login_add(struct as_http_auth *auth, const char *key, const char *value)
{
    struct as_provider_option *option = &auth->options[auth->account.option_count];
    if (!value)
        return;
    if (auth->account.option_count++ == LOGIN_OPTIONS)
        abort(); /* our own keys are few */
    option->key = as_xstrdup(key);
    option->value = as_xstrdup(value);
}

static void oauth2_configure(struct as_http_auth *auth, struct as_credentials_config *config)
{
    auth->oauth2.settings = &auth->settings->oauth2;
    config->sources = oauth2_credentials;
    config->oauth2 = &auth->oauth2;
    config->tls = as_tls_settings_get(&auth->settings->oauth2.tls);
}

/* AWS' own variable for another address of the service that gives roles. */
static void sigv4_configure(struct as_http_auth *auth, struct as_credentials_config *config)
{
    const struct as_sigv4_settings *settings = &auth->settings->sigv4;
    const char *sts = auth->env.get_variable("AWS_ENDPOINT_URL_STS");
    config->sources = aws_credentials;
    login_add(auth, "region", settings->region);
    login_add(auth, "profile", settings->profile);
    login_add(auth, "role_arn", settings->role_arn);
    login_add(auth, "external_id", settings->external_id);
    login_add(auth, "AWS_ENDPOINT_URL_STS", as_str_is_empty(sts) ? NULL : sts);
}

/* The audiences of queries. Those of `remote_write` (https://monitor.azure.com) are for writing. */
static const struct {
    const char *name, *cloud, *audience;
} azure_clouds[] = {
    {"AzurePublic", "public", "https://prometheus.monitor.azure.com"},
    {"AzureChina", "china", "https://prometheus.monitor.azure.cn"},
    {"AzureGovernment", "usgovernment", "https://prometheus.monitor.azure.us"},
};

/* An empty option keeps a source from the variable of the environment. */
static void azuread_configure(struct as_http_auth *auth, struct as_credentials_config *config)
{
    const struct as_azuread_settings *settings = &auth->settings->azuread;
    size_t i = 0;
    while (settings->cloud && i < AS_ARRAY_SIZE(azure_clouds) - 1 &&
           strcmp(azure_clouds[i].name, settings->cloud) != 0)
        i++;
    config->scope = azure_clouds[i].audience;
    login_add(auth, "cloud", azure_clouds[i].cloud);
    if (settings->managed_identity.is_set) {
        const char *client = settings->managed_identity.client_id;
        config->sources = azure_managed_identity;
        login_add(auth, "client_id", client ? client : "");
    } else if (settings->workload_identity.is_set) {
        config->sources = azure_workload_identity;
        login_add(auth, "client_id", settings->workload_identity.client_id);
        login_add(auth, "tenant_id", settings->workload_identity.tenant_id);
        login_add(auth, "federated_token_file", settings->workload_identity.token_file_path);
    } else {
        config->sources = azure_client_secret;
        login_add(auth, "client_id", settings->oauth.client_id);
        login_add(auth, "tenant_id", settings->oauth.tenant_id);
        login_add(auth, "client_secret_file", settings->oauth.client_secret_file);
    }
}

static void google_iam_configure(struct as_http_auth *auth, struct as_credentials_config *config)
{
    config->sources = google_credentials;
    config->scope = "https://www.googleapis.com/auth/monitoring.read";
    login_add(auth, "credentials_file", auth->settings->google_iam.credentials_file);
}

static const struct login logins[] = {
    [AS_LOGIN_OAUTH2] = {"oauth2", as_sign_bearer, NULL, oauth2_configure},
    [AS_LOGIN_SIGV4] = {"sigv4", as_sign_aws, "aps", sigv4_configure},
    [AS_LOGIN_AZUREAD] = {"azuread", as_sign_bearer, NULL, azuread_configure},
    [AS_LOGIN_GOOGLE_IAM] = {"google_iam", as_sign_bearer, NULL, google_iam_configure},
};

static void login_open(struct as_http_auth *auth)
{
    struct as_credentials_config config = {
        .env = &auth->env,
        .account = &auth->account,
        .kind = "login",
        .proxy_url = auth->settings->proxy_url,
        .timeout_us = LOGIN_TIMEOUT_US,
        .try_again_us = LOGIN_TRY_AGAIN_US,
    };
    auth->login = &logins[auth->settings->login];
    auth->account.options = auth->options;
    auth->renew_again.us = auth->refuse_again.us = INT64_MIN;
    config.client = config.name = auth->login->key;
    auth->login->configure(auth, &config);
    auth->cache = as_credentials_cache_new(&config);
}

static void login_close(struct as_http_auth *auth)
{
    as_credentials_cache_free(auth->cache);
    for (size_t i = 0; i < auth->account.option_count; i++) {
        free((char *)(uintptr_t)auth->options[i].key);
        free((char *)(uintptr_t)auth->options[i].value);
    }
}

/* ---- header lines ---- */

static int get_secret(struct as_http_auth *auth, struct as_secret_file *file, const char *key,
                      const char **text_out, struct as_error *error)
{
    int status =
        as_secret_file_get(file, auth->env.clock->get_mono(auth->env.clock), 0, text_out, error);
    if (status)
        as_error_wrap(error, "%s", key);
    return status;
}

static void auth_note_secret(struct as_http_auth *auth, const char *text)
{
    if (text)
        as_secrets_add(&auth->secrets, text, strlen(text));
}

static void add_basic(struct as_http_auth *auth, const char *username, const char *password)
{
    char *pair = as_xasprintf("%s:%s", username, password);
    size_t size = strlen(pair);
    char *base64 = as_xmalloc(4 * ((size + 2) / 3) + 1);
    EVP_EncodeBlock((unsigned char *)base64, (const unsigned char *)pair, (int)size);
    auth->lines[auth->line_count++] = as_xasprintf("Authorization: Basic %s", base64);
    auth_note_secret(auth, password);
    auth_note_secret(auth, base64);
    as_wipe_free(pair);
    as_wipe_free(base64);
}

static int add_authorization(struct as_http_auth *auth, struct as_error *error)
{
    const struct as_http_settings *settings = auth->settings;
    const char *secret = "", *username = settings->basic_auth.username;
    int status = 0;
    if (auth->credentials.path) {
        status = get_secret(auth, &auth->credentials, "credentials_file", &secret, error);
        if (status)
            return status;
        auth->lines[auth->line_count++] =
            as_xasprintf("Authorization: %s %s", settings->authorization.type, secret);
        auth_note_secret(auth, secret);
        return 0;
    }
    if (auth->username.path)
        status = get_secret(auth, &auth->username, "username_file", &username, error);
    if (!status && auth->password.path)
        status = get_secret(auth, &auth->password, "password_file", &secret, error);
    if (!status && username)
        add_basic(auth, username, secret);
    return status;
}

static int add_headers(struct as_http_auth *auth, struct as_error *error)
{
    struct as_secret_file *file = auth->header_files;
    for (size_t i = 0; i < auth->settings->header_count; i++) {
        const struct as_header_settings *header = &auth->settings->headers[i];
        for (size_t k = 0; k < header->value_count; k++)
            auth->lines[auth->line_count++] =
                as_xasprintf("%s: %s", header->name, header->values[k]);
        for (size_t k = 0; k < header->file_count; k++) {
            const char *value;
            int status = get_secret(auth, file++, header->name, &value, error);
            if (status)
                return status;
            auth->lines[auth->line_count++] = as_xasprintf("%s: %s", header->name, value);
            auth_note_secret(auth, value);
        }
    }
    return 0;
}

static const char *request_find_type(const struct as_http_request *request)
{
    static const char type[] = "Content-Type:";
    for (size_t i = 0; request->headers && request->headers[i]; i++)
        if (strncasecmp(request->headers[i], type, strlen(type)) == 0)
            return request->headers[i];
    return NULL;
}

/* The signature covers address, body and content type. */
static int add_login(struct as_http_auth *auth, const struct as_http_request *request,
                     struct as_error *error)
{
    const struct as_provider_credentials *credentials = as_credentials_cache_find(auth->cache);
    const char *type = request_find_type(request);
    const char *region = as_account_get(&auth->account, "region");
    const struct as_sign_scope scope = {
        .region = region || !credentials ? region : credentials->region,
        .service = auth->login->service,
        .now = as_credentials_cache_get_wall(auth->cache),
        .nonce = "",
    };
    struct as_cloud_op op;
    size_t given = 0;
    int status = 0;
    if (auth->login->service && !scope.region) {
        as_error_set(error, "the region is not known: set `region`, or AWS_REGION");
        return -EINVAL;
    }
    as_cloud_op_init(&op, auth->env.get_variable);
    as_cloud_op_ask(&op, request->method, "%s", request->url);
    if (auth->login->service && type) {
        as_cloud_op_header(&op, "%s", type);
        given++;
    }
    if (auth->login->service && request->body_size > 0)
        as_buf_append(&op.request.body, request->body, request->body_size);
    if (as_buf_check(&op.request.body) != 0) {
        as_error_set(error, "the request is too large to be signed");
        status = -EMSGSIZE;
    } else {
        status = auth->login->sign(&op, credentials, &scope, error);
    }
    for (size_t i = given; status == 0 && i < op.request.header_count; i++)
        auth->lines[auth->line_count++] = as_xstrdup(op.request.headers[i]);
    if (status == 0 && credentials)
        auth_note_secret(auth, credentials->token);
    as_cloud_op_deinit(&op);
    return status;
}

static void forget_lines(struct as_http_auth *auth)
{
    while (auth->line_count > 0)
        as_wipe_free(auth->lines[--auth->line_count]);
    as_buf_wipe(&auth->secrets);
}

/* Fills tls, proxy_url and headers of `request`. The filled-in values are valid until the next
 * call. */
static int auth_apply(struct as_http_auth *auth, struct as_http_request *request,
                      struct as_error *error)
{
    const struct as_http_settings *settings = auth->settings;
    size_t count = 0;
    forget_lines(auth);
    int status = auth->login ? add_login(auth, request, error) : add_authorization(auth, error);
    if (status || (status = add_headers(auth, error))) {
        forget_lines(auth);
        return status;
    }
    while (request->headers && request->headers[count])
        count++;
    auth->all = as_xrealloc_array(auth->all, count + auth->line_count + 1, sizeof(*auth->all));
    if (count > 0)
        memcpy(auth->all, request->headers, count * sizeof(*auth->all));
    memcpy(auth->all + count, auth->lines, auth->line_count * sizeof(*auth->all));
    auth->all[count + auth->line_count] = NULL;
    request->headers = auth->all;
    request->proxy_url = settings->proxy_url;
    request->tls = as_tls_settings_get(&settings->tls);
    return 0;
}

/* ---- calls ---- */

static void auth_call_free(struct auth_call *call)
{
    LIST_REMOVE(call, entry);
    as_credentials_cache_leave(&call->waiter);
    as_flow_deinit(&call->request.flow);
    as_buf_wipe(&call->secrets);
    free(call->method);
    free(call->url);
    as_wipe_free(call->headers);
    free(call->body);
    free(call->lines);
    free(call);
}

static void auth_call_stop_timer(struct auth_call *call)
{
    if (call->timer)
        call->auth->env.loop->cancel_timer(call->auth->env.loop, call->timer);
    call->timer = NULL;
}

static void auth_call_end(struct auth_call *call, const struct as_http_response *response)
{
    as_http_done_fn *const done = call->done;
    void *const context = call->context;
    auth_call_stop_timer(call);
    auth_call_free(call);
    done(context, response);
}

static void auth_on_failure(void *context)
{
    struct auth_call *call = context;
    const struct as_error error = call->error;
    call->timer = NULL;
    auth_call_end(call, &(struct as_http_response){.outcome = AS_HTTP_UNSENT,
                                                   .may_pass = call->may_pass,
                                                   .body = "",
                                                   .etag = "",
                                                   .retry_after = "",
                                                   .content_type = "",
                                                   .location = "",
                                                   .error = error.text});
}

/* In a later turn. */
static void auth_call_fail(struct auth_call *call)
{
    struct as_loop *loop = call->auth->env.loop;
    auth_call_stop_timer(call);
    as_credentials_cache_leave(&call->waiter);
    call->timer = loop->start_timer(loop, 0, auth_on_failure, call);
}

static void auth_call_fail_late(struct auth_call *call)
{
    char timeout[AS_DURATION_SIZE];
    as_duration_print(call->request.timeout_us, timeout);
    as_error_set(&call->error, "%s: no credentials within %s", call->auth->login->key, timeout);
    call->may_pass = true;
    auth_call_fail(call);
}

static void auth_on_late(void *context)
{
    struct auth_call *call = context;
    call->timer = NULL;
    auth_call_fail_late(call);
}

static int64_t auth_call_get_left(const struct auth_call *call)
{
    const struct as_clock *clock = call->auth->env.clock;
    return call->deadline.us - clock->get_mono(clock).us;
}

static void auth_call_await(struct auth_call *call)
{
    struct as_loop *loop = call->auth->env.loop;
    if (!call->timer)
        call->timer = loop->start_timer(loop, auth_call_get_left(call), auth_on_late, call);
}

static void auth_call_fail_without(struct auth_call *call, const char *what)
{
    enum as_cloud_op_fault fault;
    as_error_set(&call->error, "%s: %s%s", call->auth->login->key, what,
                 as_credentials_cache_get_problem(call->auth->cache, &fault));
    call->may_pass = fault == AS_CLOUD_OP_RETRY || fault == AS_CLOUD_OP_TIMEOUT ||
                     fault == AS_CLOUD_OP_THROTTLED;
    auth_call_fail(call);
}

static bool auth_on_body(void *context, const char *content_type, const char *bytes, size_t size)
{
    const struct auth_call *call = context;
    return call->on_body(call->context, content_type, bytes, size);
}

static void auth_on_answer(void *context, const struct as_http_response *response);

/* The request without a login, or the copy. */
static void auth_call_send(struct auth_call *call, const struct as_http_request *given)
{
    struct as_http_auth *auth = call->auth;
    struct as_http_request request = *given;
    if (auth->login && !as_credentials_cache_find(auth->cache)) { /* a renewal failed meanwhile */
        auth_call_fail_without(call, "");
        return;
    }
    if (auth->login && given->permit && !given->permit(call->context)) {
        as_error_set(&call->error, "%s: the request is not permitted any more", auth->login->key);
        auth_call_fail(call);
        return;
    }
    if (auth->login) {
        auth_call_stop_timer(call);
        request.timeout_us = auth_call_get_left(call);
        call->generation = as_credentials_cache_get_generation(auth->cache);
        if (request.timeout_us <= 0) {
            auth_call_fail_late(call);
            return;
        }
    }
    if (auth_apply(auth, &request, &call->error) != 0) {
        if (auth->login)
            as_error_wrap(&call->error, "%s", auth->login->key);
        auth_call_fail(call);
        return;
    }
    if (given->on_body)
        request.on_body = auth_on_body;
    as_buf_wipe(&call->secrets);
    call->secrets = auth->secrets;
    auth->secrets = AS_SECRETS_INIT;
    call->transfer = auth->env.http->start(auth->env.http, &request, auth_on_answer, call);
    forget_lines(auth);
}

static void auth_on_credentials(void *context)
{
    struct auth_call *call = context;
    struct as_http_auth *auth = call->auth;
    const bool is_old = call->generation == as_credentials_cache_get_generation(auth->cache);
    if (call->is_repeated && is_old)
        auth->refused = 0; /* it could not be renewed */
    if (!as_credentials_cache_find(auth->cache)) {
        auth_call_fail_without(call, "");
    } else if (call->is_repeated && is_old) {
        auth_call_fail_without(call,
                               "the server refused the credentials, and there are no new ones: ");
    } else {
        auth_call_send(call, &call->request);
    }
}

/* Whether the call goes on with other credentials, or by the server's clock. */
static bool auth_call_repeats(struct auth_call *call, const struct as_http_response *response)
{
    struct as_http_auth *auth = call->auth;
    const as_mono_time now = auth->env.clock->get_mono(auth->env.clock);
    if (response->outcome != AS_HTTP_ANSWERED)
        return false;
    if (response->status != 401 && response->status != 403) {
        if (call->is_repeated) /* new credentials help */
            auth->renew_again.us = INT64_MIN;
        return false;
    }
    if (call->is_repeated) {
        auth->renew_again.us = as_time_add(now.us, LOGIN_REFUSED_US);
        return false;
    }
    if (auth->login->service &&
        as_skew_learn(as_credentials_cache_get_skew(auth->cache),
                      as_credentials_cache_get_wall(auth->cache), response, auth->login->key)) {
        call->is_repeated = true;
        auth_call_send(call, &call->request);
        return true;
    }
    if (now.us < auth->renew_again.us)
        return false;
    call->is_repeated = true;
    switch (as_credentials_cache_renew(auth->cache, call->generation, &call->waiter,
                                       auth_on_credentials, call)) {
    case AS_CREDENTIALS_READY: auth_call_send(call, &call->request); break;
    case AS_CREDENTIALS_AWAITED: auth_call_await(call); break;
    case AS_CREDENTIALS_FAILED: return false;
    }
    return true;
}

static void auth_on_answer(void *context, const struct as_http_response *response)
{
    struct auth_call *call = context;
    struct as_http_auth *auth = call->auth;
    call->transfer = NULL;
    if (auth->login && auth_call_repeats(call, response))
        return;
    const bool is_accepted = response->outcome == AS_HTTP_ANSWERED && response->status == 200;
    auth->answered = is_accepted ? call->generation : 0;
    struct as_http_response shown = *response;
    char *masked = as_secrets_mask(&call->secrets, response);
    if (masked)
        shown.body = masked;
    auth_call_end(call, &shown);
    as_wipe_free(masked);
}

bool as_http_auth_refuse(struct as_http_auth *auth)
{
    const as_mono_time now = auth->env.clock->get_mono(auth->env.clock);
    if (!auth->login || auth->answered == 0)
        return false;
    if (auth->answered == auth->refused) /* it is being renewed, or has been */
        return true;
    if (now.us < auth->refuse_again.us)
        return false;
    auth->refuse_again.us = as_time_add(now.us, LOGIN_REFUSED_US);
    auth->refused = auth->answered;
    return true;
}

/* Credentials that were refused in an answer are renewed first. */
static enum as_credentials_state auth_call_request(struct auth_call *call)
{
    struct as_http_auth *auth = call->auth;
    if (auth->refused && auth->refused == as_credentials_cache_get_generation(auth->cache)) {
        call->generation = auth->refused;
        call->is_repeated =
            as_credentials_cache_renew(auth->cache, call->generation, &call->waiter,
                                       auth_on_credentials, call) == AS_CREDENTIALS_AWAITED;
        if (call->is_repeated)
            return AS_CREDENTIALS_AWAITED;
        auth->refused = 0; /* a search has failed just now */
    }
    return as_credentials_cache_request(auth->cache, &call->waiter, auth_on_credentials, call);
}

static void auth_call_copy_headers(struct auth_call *call, const char *const *headers)
{
    size_t count = 0, size = 1;
    for (; headers && headers[count]; count++)
        size += strlen(headers[count]) + 1;
    char *at = call->headers = as_xcalloc(size, 1);
    call->lines = as_xcalloc(count + 1, sizeof(*call->lines));
    for (size_t i = 0; i < count; i++) {
        const size_t line_size = strlen(headers[i]) + 1;
        call->lines[i] = memcpy(at, headers[i], line_size);
        at += line_size;
    }
    call->request.headers = call->lines;
}

static void auth_call_copy(struct auth_call *call, const struct as_http_request *request)
{
    call->request = *request;
    call->request.method = call->method = as_xstrdup(request->method);
    call->request.url = call->url = as_xstrdup(request->url);
    call->request.flow = as_flow_copy(&request->flow);
    auth_call_copy_headers(call, request->headers);
    if (request->body_size > 0) {
        call->request.body = call->body = as_xmalloc(request->body_size);
        memcpy(call->body, request->body, request->body_size);
    }
    call->deadline = call->auth->env.clock->get_mono(call->auth->env.clock);
    call->deadline.us = as_time_add(call->deadline.us, request->timeout_us);
}

static struct as_http_call *auth_start(struct as_http *self, const struct as_http_request *request,
                                       as_http_done_fn *done, void *context)
{
    struct as_http_auth *auth = (struct as_http_auth *)self;
    struct auth_call *call = as_xcalloc(1, sizeof(*call));
    call->auth = auth;
    call->done = done;
    call->on_body = request->on_body;
    call->context = context;
    LIST_INSERT_HEAD(&auth->calls, call, entry);
    if (!auth->login) {
        auth_call_send(call, request);
        return (struct as_http_call *)call;
    }
    auth_call_copy(call, request);
    switch (auth_call_request(call)) {
    case AS_CREDENTIALS_READY: auth_call_send(call, &call->request); break;
    case AS_CREDENTIALS_AWAITED: auth_call_await(call); break;
    case AS_CREDENTIALS_FAILED: auth_call_fail_without(call, ""); break;
    }
    return (struct as_http_call *)call;
}

static void auth_cancel(struct as_http *self, struct as_http_call *given)
{
    struct as_http_auth *auth = (struct as_http_auth *)self;
    struct auth_call *call = (struct auth_call *)given;
    if (call->transfer)
        auth->env.http->cancel(auth->env.http, call->transfer);
    auth_call_stop_timer(call);
    auth_call_free(call);
}

/* ---- the client ---- */

struct as_http *as_http_auth_get_port(struct as_http_auth *auth)
{
    return &auth->port;
}

static void open_file(struct as_secret_file *file, const char *path)
{
    if (path)
        as_secret_file_init(file, path);
}

struct as_http_auth *as_http_auth_new(const struct as_http_settings *settings,
                                      const struct as_login_env *env)
{
    struct as_http_auth *auth = as_xcalloc(1, sizeof(*auth));
    size_t values = 0, files = 0;
    auth->settings = settings;
    auth->port = (struct as_http){.start = auth_start, .cancel = auth_cancel};
    auth->env = *env;
    auth->secrets = AS_SECRETS_INIT;
    LIST_INIT(&auth->calls);
    open_file(&auth->username, settings->basic_auth.username_file);
    open_file(&auth->password, settings->basic_auth.password_file);
    open_file(&auth->credentials, settings->authorization.credentials_file);
    for (size_t i = 0; i < settings->header_count; i++) {
        values += settings->headers[i].value_count;
        files += settings->headers[i].file_count;
    }
    auth->lines = as_xcalloc(SIGN_LINES + values + files, sizeof(*auth->lines));
    auth->header_files = as_xcalloc(files, sizeof(*auth->header_files));
    for (size_t i = 0; i < settings->header_count; i++)
        for (size_t k = 0; k < settings->headers[i].file_count; k++)
            open_file(&auth->header_files[auth->header_file_count++],
                      settings->headers[i].files[k]);
    if (settings->login != AS_LOGIN_NONE)
        login_open(auth);
    return auth;
}

struct as_http_auth *as_http_auth_free(struct as_http_auth *auth)
{
    struct auth_call *call;
    if (!auth)
        return NULL;
    while ((call = LIST_FIRST(&auth->calls)))
        auth_cancel(&auth->port, (struct as_http_call *)call);
    login_close(auth);
    forget_lines(auth);
    for (size_t i = 0; i < auth->header_file_count; i++)
        as_secret_file_deinit(&auth->header_files[i]);
    as_secret_file_deinit(&auth->username);
    as_secret_file_deinit(&auth->password);
    as_secret_file_deinit(&auth->credentials);
    free(auth->header_files);
    free(auth->lines);
    free(auth->all);
    free(auth);
    return NULL;
}
