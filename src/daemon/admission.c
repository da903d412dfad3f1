/*
 * The admission webhook: its listener, its limits, and its certificate.
 *
 * A review is judged as soon as its body has arrived, in one turn of the loop. So requests wait
 * only for their own bodies. If too many do, the one that has been read for longest is answered
 * 503: slow senders cannot keep the API server's requests away.
 *
 * The configuration in force judges: it is read at each request.
 */
#include "admission.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/auth/reply.h>
#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/base/throttle.h>
#include <alertscaler/base/time.h>
#include <alertscaler/http/self_signed.h>
#include <alertscaler/kube/webhook_certificate.h>
#include <alertscaler/tools/admission_review.h>

#include "daemon_private.h"

#define PATH            "/admission"
#define REQUESTS_MAX    8
#define CONNECTIONS_MAX 64 /* most of them idle: each API server keeps some */
#define REQUEST_US      (2 * AS_US_PER_S)
#define IDLE_US         (2 * AS_US_PER_MIN) /* API servers close theirs after 90 s */
#define HEAD_MAX        ((size_t)16 * 1024)

struct admission_request { /* its body is being read */
    TAILQ_ENTRY(admission_request) link;
    struct daemon_admission *admission; /* NULL: not on the list any more */
    struct as_http_exchange *exchange;
};
TAILQ_HEAD(admission_requests, admission_request);

struct daemon_admission {
    struct daemon *daemon;
    struct as_http_server *server; /* NULL: no listener */
    struct as_tls_server *tls;
    struct as_webhook_certificate *certificate; /* NULL: the certificate is in files */
    char *address, *cert_file, *key_file;       /* in use; NULL: none */
    bool is_outdated;                           /* the address is another one; this was logged */
    bool is_untrusted;                          /* the certificate: by no client */
    struct as_error error;              /* why changed files are not in use (logged); or "" */
    struct admission_requests requests; /* the oldest first */
    size_t request_count;
};

static void request_leave(struct admission_request *request)
{
    struct daemon_admission *admission = request->admission;
    if (!admission)
        return;
    TAILQ_REMOVE(&admission->requests, request, link);
    admission->request_count--;
    request->admission = NULL;
}

static void request_free(void *data)
{
    struct admission_request *request = data;
    request_leave(request);
    free(request);
}

/* The oldest request makes room for a new one. */
static void admission_make_room(struct daemon_admission *admission)
{
    struct admission_request *oldest = TAILQ_FIRST(&admission->requests);
    if (admission->request_count < REQUESTS_MAX || !oldest)
        return;
    request_leave(oldest);
    as_reply_text(oldest->exchange, 503, AS_REPLY_LATER,
                  "%d later requests came before this one was complete", REQUESTS_MAX);
}

static enum as_http_admission admission_admit(void *context, struct as_http_exchange *exchange)
{
    struct daemon_admission *admission = context;
    as_http_exchange_set_route(exchange, NULL, "admission");
    if (strcmp(as_http_exchange_get_path(exchange), PATH) != 0) {
        as_reply_text(exchange, 404, NULL, "not found: this listener has only " PATH);
        return AS_HTTP_REPLIED;
    }
    if (strcmp(as_http_exchange_get_method(exchange), "POST") != 0) {
        as_reply_text(exchange, 405, "Allow: POST\r\n", "send an AdmissionReview with POST");
        return AS_HTTP_REPLIED;
    }
    admission_make_room(admission);
    struct admission_request *request = as_xcalloc(1, sizeof(*request));
    *request = (struct admission_request){.admission = admission, .exchange = exchange};
    TAILQ_INSERT_TAIL(&admission->requests, request, link);
    admission->request_count++;
    as_http_exchange_set_data(exchange, request, request_free);
    return AS_HTTP_ADMITTED;
}

static void admission_handle(void *context, struct as_http_exchange *exchange)
{
    const struct daemon_admission *admission = context;
    const struct as_config *config = admission->daemon->config;
    AS_CLEANUP(as_buf_deinit) struct as_buf answer = AS_BUF_INIT(AS_ADMISSION_ANSWER_MAX);
    struct as_error error = AS_ERROR_INIT;
    size_t size;
    const char *body = as_http_exchange_get_body(exchange, &size);
    const enum as_admission_outcome outcome =
        as_admission_review(&config->settings, body, size, &answer, &error);
    as_metrics_on_admission(admission->daemon->metrics, as_admission_outcome_get_word(outcome), 1);
    request_leave(as_http_exchange_get_data(exchange));
    if (outcome == AS_ADMISSION_INVALID)
        as_reply_text(exchange, 400, NULL, "%s", error.text);
    else
        as_reply_json(exchange, 200, NULL, &answer);
}

static void admission_on_answered(void *context, const char *handler, int status,
                                  int64_t duration_us)
{
    const struct daemon_admission *admission = context;
    as_metrics_on_http(admission->daemon->metrics, handler, status, duration_us);
}

static void admission_on_dropped(void *context, const char *reason)
{
    const struct daemon_admission *admission = context;
    as_metrics_on_http_drop(admission->daemon->metrics, reason);
}

/* NULL: no listener. */
static const struct as_admission_settings *admission_find_settings(const struct daemon *daemon)
{
    const struct as_object_settings *objects = &daemon->config->settings.objects;
    return objects->is_enabled && objects->admission.address ? &objects->admission : NULL;
}

static char *copy_path(const char *path)
{
    return path ? as_xstrdup(path) : NULL;
}

/* For new connections. */
static int admission_use_tls(struct daemon_admission *admission,
                             const struct as_tls_server_config *config, struct as_error *error)
{
    struct as_tls_server *tls;
    const int status = as_tls_server_new(config, &tls, error);
    if (status != 0)
        return status;
    if (admission->server)
        as_http_server_set_tls(admission->server, tls);
    as_tls_server_free(admission->tls);
    admission->tls = tls;
    admission->is_untrusted = false;
    return 0;
}

static bool admission_may_write(void *context)
{
    const struct daemon_admission *admission = context;
    struct as_leader *leader = admission->daemon->leader;
    return leader->look(leader).is_leader && leader->may_act(leader);
}

static void admission_on_certificate(void *context, const char *certificate, const char *key)
{
    struct as_error error = AS_ERROR_INIT;
    const struct as_tls_server_config config = {.cert_pem = certificate, .key_pem = key};
    if (admission_use_tls(context, &config, &error) != 0)
        as_log(AS_LOG_ERROR, "the certificate of the Secret " AS_WEBHOOK_SECRET " cannot be used",
               AS_F("error", error.text));
}

/* A certificate that no client trusts: until the Secret was read. */
static int admission_use_nobodys(struct daemon_admission *admission, struct as_error *error)
{
    static const char *const names[] = {"localhost"};
    struct as_self_signed made =
        as_self_signed_make(names, AS_ARRAY_SIZE(names), as_system_clock.get_wall(&as_system_clock),
                            AS_SELF_SIGNED_LIFE_US);
    const struct as_tls_server_config config = {.cert_pem = made.certificate, .key_pem = made.key};
    const int status = admission_use_tls(admission, &config, error);
    admission->is_untrusted = true;
    as_self_signed_deinit(&made);
    return status;
}

/* Begins to look after the certificate. */
static int admission_keep_certificate(struct daemon_admission *admission, struct as_error *error)
{
    const struct daemon *daemon = admission->daemon;
    const struct as_settings *settings = &daemon->config->settings;
    const struct as_access_env *env = daemon->options->adapters->get_env(daemon->outside);
    const struct as_cluster_settings *cluster = as_settings_find_cluster(settings, "default");
    AS_CLEANUP(as_free_p) char *namespace_ = NULL;
    struct as_kube_access *access;
    int status = as_kube_namespace_find(settings->state.namespace, env, &namespace_, error);
    if (status == 0)
        status = as_kube_access_new(
            &(struct as_kube_access_config){cluster->kubeconfig, cluster->context}, env, &access,
            error);
    if (status != 0) {
        as_error_wrap(error, "without cert_file and key_file, the certificate is in the cluster");
        return status;
    }
    const struct as_webhook_certificate_config config = {.namespace_ = namespace_,
                                                         .is_leader = admission_may_write,
                                                         .changed = admission_on_certificate,
                                                         .context = admission};
    admission->certificate = as_webhook_certificate_free(admission->certificate);
    admission->certificate = as_webhook_certificate_new(&config, access, env);
    return admission->tls ? 0 : admission_use_nobodys(admission, error);
}

/* Uses the certificate that the configuration says. A failure changes nothing. */
static int admission_use_certificate(struct daemon_admission *admission,
                                     const struct as_admission_settings *settings,
                                     struct as_error *error)
{
    const struct as_tls_server_config files = {.cert_file = settings->cert_file,
                                               .key_file = settings->key_file};
    const int status = settings->cert_file ? admission_use_tls(admission, &files, error)
                                           : admission_keep_certificate(admission, error);
    if (status != 0) {
        as_error_wrap(error, "objects.admission");
        return status;
    }
    if (settings->cert_file)
        admission->certificate = as_webhook_certificate_free(admission->certificate);
    free(admission->cert_file);
    free(admission->key_file);
    admission->cert_file = copy_path(settings->cert_file);
    admission->key_file = copy_path(settings->key_file);
    return 0;
}

static int admission_listen(struct daemon_admission *admission, struct as_error *error)
{
    const struct daemon *daemon = admission->daemon;
    const struct as_http_server_config config = {
        .listen_address = admission->address,
        .max_connections = CONNECTIONS_MAX,
        .max_head = HEAD_MAX,
        .max_body = AS_ADMISSION_BODY_MAX,
        .max_bodies = REQUESTS_MAX * AS_ADMISSION_BODY_MAX,
        .max_unsent = REQUESTS_MAX * AS_ADMISSION_ANSWER_MAX,
        .head_timeout_us = REQUEST_US,
        .body_timeout_us = REQUEST_US,
        .write_timeout_us = REQUEST_US,
        .idle_timeout_us = IDLE_US,
        .losses_every_us = AS_THROTTLE_EVERY_US,
        .tls = admission->tls,
    };
    const struct as_http_handler handler = {.admit = admission_admit,
                                            .handle = admission_handle,
                                            .answered = admission_on_answered,
                                            .dropped = admission_on_dropped,
                                            .context = admission};
    const int status = daemon->options->adapters->new_server(daemon->base, &config, &handler,
                                                             &admission->server, error);
    if (status != 0)
        as_error_wrap(error, "objects.admission.address");
    return status;
}

int daemon_admission_open(struct daemon *daemon, struct as_error *error)
{
    const struct as_admission_settings *settings = admission_find_settings(daemon);
    struct daemon_admission *admission = as_xcalloc(1, sizeof(*admission));
    admission->daemon = daemon;
    TAILQ_INIT(&admission->requests);
    daemon->admission = admission;
    if (!settings)
        return 0;
    admission->address = as_xstrdup(settings->address);
    int status = admission_use_certificate(admission, settings, error);
    if (status == 0)
        status = admission_listen(admission, error);
    if (status != 0)
        return status;
    for (int i = 0; i < AS_ADMISSION_OUTCOME_COUNT; i++)
        as_metrics_on_admission(daemon->metrics,
                                as_admission_outcome_get_word((enum as_admission_outcome)i), 0);
    as_log(AS_LOG_INFO, "listening for admission reviews", AS_F("address", admission->address),
           AS_FI("port", as_http_server_get_port(admission->server)));
    return 0;
}

static void admission_check_address(struct daemon_admission *admission, const char *address)
{
    const bool is_outdated = !as_str_equal(address, admission->address);
    if (is_outdated && !admission->is_outdated)
        as_log(AS_LOG_WARN, "changes of objects.admission.address take effect at the next start");
    admission->is_outdated = is_outdated;
}

void daemon_admission_poll(struct daemon *daemon)
{
    struct daemon_admission *admission = daemon->admission;
    const struct as_admission_settings *settings = admission_find_settings(daemon);
    struct as_error error = AS_ERROR_INIT;
    admission_check_address(admission, settings ? settings->address : NULL);
    if (admission->tls && !admission->is_untrusted)
        as_metrics_on_admission_certificate(daemon->metrics,
                                            as_tls_server_get_expiry(admission->tls));
    if (!admission->server || !settings ||
        (as_str_equal(settings->cert_file, admission->cert_file) &&
         as_str_equal(settings->key_file, admission->key_file)))
        return;
    const int status = admission_use_certificate(admission, settings, &error);
    if (status != 0 && strcmp(error.text, admission->error.text) != 0)
        as_log(AS_LOG_ERROR, "the changed certificate cannot be used, going on with the old one",
               AS_F("error", error.text));
    admission->error = error;
}

void daemon_admission_close(struct daemon *daemon)
{
    struct daemon_admission *admission = daemon->admission;
    if (!admission)
        return;
    as_webhook_certificate_free(admission->certificate);
    as_http_server_free(admission->server);
    as_tls_server_free(admission->tls);
    free(admission->address);
    free(admission->cert_file);
    free(admission->key_file);
    free(admission);
    daemon->admission = NULL;
}
