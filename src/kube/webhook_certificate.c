/*
 * The certificate of the admission webhook: one round of requests after the other, each from the
 * objects as they are.
 *
 *   read the Secret          every replica; a certificate that works is in use from now on
 *   read the configuration   the leader, and so on
 *   write `caBundle`         if it is not as it must be; with a new authority, before the Secret
 *   write the Secret         if the certificate is due, or does not fit
 *
 * A new certificate is kept until it is written, so that a failing request does not make another
 * one. Without a certificate, or after a failure, the next round begins sooner.
 */
#include <alertscaler/kube/webhook_certificate.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/encode.h>
#include <alertscaler/base/log.h>
#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_tree.h>
#include <alertscaler/doc/json_writer.h>
#include <alertscaler/http/self_signed.h>
#include <alertscaler/kube/kube_client.h>

#include "kubeconfig.h"

#define OBJECT_MAX     ((size_t)1536 * 1024) /* as etcd limits it */
#define BODY_MAX       ((size_t)512 * 1024)
#define PATH_SIZE      512
#define HOOKS_MAX      8
#define NAMES_MAX      (2 * HOOKS_MAX)
#define EVERY_US       AS_US_PER_MIN
#define SOON_US        (5 * AS_US_PER_S) /* without a certificate, or after a failure */
#define CONFIGURATIONS "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
#define MANAGER        "alertscaler"

struct webhook_secret { /* as last read */
    bool is_there;
    char *version, *type;
    struct as_self_signed pair;
};

struct webhook_hooks { /* the configuration as last read */
    char *version;
    char *names[NAMES_MAX];
    size_t name_count, count; /* count: of webhooks */
};

struct as_webhook_certificate {
    const struct as_access_env *env;
    struct as_kube_access *access;
    struct as_kube_client client;
    struct as_webhook_certificate_config config;
    char *namespace_;
    struct as_kube_request *request;
    struct as_timer *timer;
    struct webhook_secret secret;
    struct webhook_hooks hooks;
    struct as_self_signed made; /* not yet written; empty: none */
    char *in_use;               /* the certificate that was reported last; NULL: none */
    int64_t wait_us;            /* before this round; 0: the last one succeeded */
    struct as_error error;      /* of the last round; logged */
};

static void webhook_on_timer(void *context);

static as_wall_time webhook_get_now(const struct as_webhook_certificate *self)
{
    return self->env->clock->get_wall(self->env->clock);
}

static void webhook_rest(struct as_webhook_certificate *self, int64_t us)
{
    self->timer = self->env->loop->start_timer(self->env->loop, us, webhook_on_timer, self);
}

/* Soon, and less and less often. */
static void webhook_rest_again(struct as_webhook_certificate *self)
{
    const int64_t us = self->wait_us > 0 ? 2 * self->wait_us : SOON_US;
    self->wait_us = us < EVERY_US ? us : EVERY_US;
    webhook_rest(self, self->wait_us);
}

/* Ends the round. */
static void webhook_end_round(struct as_webhook_certificate *self)
{
    self->error = (struct as_error)AS_ERROR_INIT;
    if (!self->in_use) {
        webhook_rest_again(self);
        return;
    }
    self->wait_us = 0;
    webhook_rest(self, EVERY_US);
}

/* Ends the round; the same error is logged once. */
static void webhook_fail(struct as_webhook_certificate *self, const struct as_error *error)
{
    if (strcmp(self->error.text, error->text) != 0)
        as_log(AS_LOG_WARN, "the certificate of the admission webhook cannot be made or renewed",
               AS_F("error", error->text));
    self->error = *error;
    webhook_rest_again(self);
}

static void webhook_fail_response(struct as_webhook_certificate *self, const char *what,
                                  const struct as_http_response *response)
{
    struct as_error error = AS_ERROR_INIT;
    struct as_kube_status status = {.message = ""};
    if (response->outcome != AS_HTTP_ANSWERED) {
        as_error_set(&error, "%s: %s", what, response->error);
    } else {
        if (as_kube_status_decode(response->body, response->body_size, &status, NULL) != 0)
            status.message[0] = '\0';
        as_error_set(&error, "%s: HTTP %d%s%s", what, response->status, *status.message ? ": " : "",
                     status.message);
    }
    webhook_fail(self, &error);
}

static bool webhook_has_status(const struct as_http_response *response, int status)
{
    return response->outcome == AS_HTTP_ANSWERED && response->status == status;
}

static void webhook_request(struct as_webhook_certificate *self,
                            const struct as_kube_request_spec *spec, as_kube_request_done_fn *done)
{
    struct as_kube_request_spec full = *spec;
    full.max_response = OBJECT_MAX;
    self->request = as_kube_request_start(&self->client, &full, done, self);
}

static void print_secret_path(const struct as_webhook_certificate *self, char path_out[PATH_SIZE])
{
    (void)snprintf(path_out, PATH_SIZE, "/api/v1/namespaces/%s/secrets/" AS_WEBHOOK_SECRET,
                   self->namespace_);
}

/*
 * The Secret.
 */

static void secret_deinit(struct webhook_secret *secret)
{
    free(secret->version);
    free(secret->type);
    as_self_signed_deinit(&secret->pair);
    *secret = (struct webhook_secret){0};
}

static char *secret_decode(const struct tree_value *data, const char *name)
{
    const char *text = tree_find_text(data, name);
    return text ? kubeconfig_decode_base64(text) : NULL;
}

static int secret_read(struct webhook_secret *secret, const struct as_http_response *response,
                       struct as_error *error)
{
    struct tree tree = TREE_INIT(4 * OBJECT_MAX);
    secret_deinit(secret);
    const int status = tree_load_object(&tree, response->body, response->body_size, error);
    if (status == 0) {
        const struct tree_value *data = tree_find(tree.root, "data");
        const char *version = tree_find_text(tree_find(tree.root, "metadata"), "resourceVersion");
        const char *type = tree_find_text(tree.root, "type");
        *secret = (struct webhook_secret){
            .is_there = true,
            .version = as_xstrdup(version ? version : ""),
            .type = as_xstrdup(type ? type : "Opaque"),
            .pair = {.ca = secret_decode(data, "ca.crt"),
                     .certificate = secret_decode(data, "tls.crt"),
                     .key = secret_decode(data, "tls.key")},
        };
    }
    tree_deinit(&tree); /* wipes its memory */
    return status;
}

/* Reports a pair that works, whatever its names. */
static void webhook_report(struct as_webhook_certificate *self, const struct as_self_signed *pair)
{
    if (as_str_equal(self->in_use, pair->certificate) ||
        as_self_signed_check(pair, NULL, 0, webhook_get_now(self)) == AS_SELF_SIGNED_BAD)
        return;
    free(self->in_use);
    self->in_use = as_xstrdup(pair->certificate);
    self->config.changed(self->config.context, pair->certificate, pair->key);
}

static void webhook_write_data(struct as_json_writer *json, const char *name, const char *pem)
{
    AS_CLEANUP(as_buf_wipe) struct as_buf text = AS_BUF_INIT(BODY_MAX);
    as_encode_base64(&text, pem, strlen(pem));
    as_json_write_key(json, name);
    as_json_write_string_size(json, text.data, text.size);
}

static void webhook_on_secret_written(void *context, const struct as_http_response *response,
                                      unsigned attempts)
{
    struct as_webhook_certificate *self = context;
    self->request = NULL;
    if (webhook_has_status(response, 409)) { /* another replica was faster */
        as_self_signed_deinit(&self->made);
        webhook_rest(self, SOON_US);
        return;
    }
    if (!webhook_has_status(response, 200) && !webhook_has_status(response, 201)) {
        webhook_fail_response(self, "writing the Secret " AS_WEBHOOK_SECRET, response);
        return;
    }
    as_log(AS_LOG_INFO, "the admission webhook has a new certificate",
           AS_F("secret", AS_WEBHOOK_SECRET));
    webhook_report(self, &self->made);
    as_self_signed_deinit(&self->made);
    webhook_end_round(self);
}

/* By server-side apply: it creates the Secret too, with a right by name. */
static void webhook_write_secret(struct as_webhook_certificate *self)
{
    const struct webhook_secret *secret = &self->secret;
    char path[PATH_SIZE], query[PATH_SIZE + 64];
    AS_CLEANUP(as_buf_wipe) struct as_buf body = AS_BUF_INIT(BODY_MAX);
    struct as_json_writer json;
    print_secret_path(self, path);
    (void)snprintf(query, sizeof(query), "%s?fieldManager=" MANAGER "&force=true", path);
    as_json_init(&json, &body, AS_JSON_ANY_ORDER);
    as_json_begin_object(&json);
    as_json_write_member(&json, "apiVersion", "v1");
    as_json_write_member(&json, "kind", "Secret");
    as_json_write_key(&json, "metadata");
    as_json_begin_object(&json);
    as_json_write_member(&json, "name", AS_WEBHOOK_SECRET);
    as_json_write_member(&json, "namespace", self->namespace_);
    if (secret->is_there)
        as_json_write_member(&json, "resourceVersion", secret->version);
    as_json_end_object(&json);
    as_json_write_member(&json, "type", secret->is_there ? secret->type : "kubernetes.io/tls");
    as_json_write_key(&json, "data");
    as_json_begin_object(&json);
    webhook_write_data(&json, "ca.crt", self->made.ca);
    webhook_write_data(&json, "tls.crt", self->made.certificate);
    webhook_write_data(&json, "tls.key", self->made.key);
    as_json_end_object(&json);
    as_json_end_object(&json);
    webhook_request(self,
                    &(struct as_kube_request_spec){.method = "PATCH",
                                                   .path = query,
                                                   .operation = "apply_secret",
                                                   .content_type = "application/apply-patch+yaml",
                                                   .body = body.data,
                                                   .body_size = body.size},
                    webhook_on_secret_written);
}

/*
 * The configuration of the webhook.
 */

static void hooks_deinit(struct webhook_hooks *hooks)
{
    free(hooks->version);
    for (size_t i = 0; i < hooks->name_count; i++)
        free(hooks->names[i]);
    *hooks = (struct webhook_hooks){0};
}

static void hooks_add_name(struct webhook_hooks *hooks, char *name)
{
    for (size_t i = 0; i < hooks->name_count; i++) {
        if (strcmp(hooks->names[i], name) == 0) {
            free(name);
            return;
        }
    }
    hooks->names[hooks->name_count++] = name;
}

/* The host of "https://HOST:PORT/PATH", without brackets. NULL: there is none. */
static char *copy_host(const char *url)
{
    static const char scheme[] = "https://";
    if (strncmp(url, scheme, strlen(scheme)) != 0)
        return NULL;
    const char *host = url + strlen(scheme);
    const bool is_bracketed = *host == '[';
    host += is_bracketed;
    const size_t size = strcspn(host, is_bracketed ? "]" : ":/?#");
    return size > 0 ? as_xstrndup(host, size) : NULL;
}

/* A name is part of another text here: DNS labels and addresses only. */
static bool is_host(const char *text)
{
    return *text && strlen(text) < 254 &&
           !text[strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ.:-")];
}

static void hooks_add_host(struct webhook_hooks *hooks, char *host)
{
    if (host && is_host(host))
        hooks_add_name(hooks, host);
    else
        free(host);
}

static void hooks_add(struct webhook_hooks *hooks, const struct tree_value *client)
{
    const struct tree_value *service = tree_find(client, "service");
    const char *name = tree_find_text(service, "name");
    const char *namespace_ = tree_find_text(service, "namespace");
    const char *url = tree_find_text(client, "url");
    if (name && namespace_) {
        hooks_add_host(hooks, as_xasprintf("%s.%s.svc", name, namespace_));
        hooks_add_host(hooks, as_xasprintf("%s.%s.svc.cluster.local", name, namespace_));
    } else if (url) {
        hooks_add_host(hooks, copy_host(url));
    }
}

static int hooks_read(struct webhook_hooks *hooks, const struct tree_value *object,
                      struct as_error *error)
{
    const struct tree_value *list = tree_find(object, "webhooks");
    const char *version = tree_find_text(tree_find(object, "metadata"), "resourceVersion");
    hooks_deinit(hooks);
    hooks->version = as_xstrdup(version ? version : "");
    for (const struct tree_value *hook = tree_get_first(list); hook; hook = hook->next) {
        if (++hooks->count <= HOOKS_MAX)
            hooks_add(hooks, tree_find(hook, "clientConfig"));
    }
    if (hooks->count <= HOOKS_MAX && hooks->name_count > 0)
        return 0;
    as_error_set(error,
                 "the ValidatingWebhookConfiguration " AS_WEBHOOK_CONFIGURATION
                 " has no `service` and no `url`, or more than %d webhooks",
                 HOOKS_MAX);
    return -EINVAL;
}

static bool hooks_are_current(const struct tree_value *object, const char *bundle)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(BODY_MAX);
    as_encode_base64(&text, bundle, strlen(bundle));
    as_buf_append_char(&text, '\0');
    for (const struct tree_value *hook = tree_get_first(tree_find(object, "webhooks")); hook;
         hook = hook->next)
        if (!as_str_equal(tree_find_text(tree_find(hook, "clientConfig"), "caBundle"), text.data))
            return false;
    return true;
}

/* Makes a new pair if the Secret's is not as it must be. Its authority comes first in a bundle with
 * the one that signed the pair in use. */
static void webhook_prepare(struct as_webhook_certificate *self)
{
    const struct webhook_hooks *hooks = &self->hooks;
    const char *const *names = (const char *const *)hooks->names;
    const as_wall_time now = webhook_get_now(self);
    const struct as_self_signed *pair = &self->secret.pair;
    if (as_self_signed_check(pair, names, hooks->name_count, now) == AS_SELF_SIGNED_GOOD) {
        as_self_signed_deinit(&self->made);
        return;
    }
    if (as_self_signed_check(&self->made, names, hooks->name_count, now) == AS_SELF_SIGNED_GOOD)
        return; /* not written yet */
    as_self_signed_deinit(&self->made);
    self->made = as_self_signed_make(names, hooks->name_count, now, AS_SELF_SIGNED_LIFE_US);
    if (as_self_signed_check(pair, NULL, 0, now) == AS_SELF_SIGNED_BAD)
        return;
    AS_CLEANUP(as_free_p) char *first = as_self_signed_copy_first(pair->ca);
    AS_CLEANUP(as_free_p) char *own = self->made.ca;
    self->made.ca = as_xasprintf("%s%s", own, first);
}

static void webhook_go_on(struct as_webhook_certificate *self)
{
    if (self->made.certificate)
        webhook_write_secret(self);
    else
        webhook_end_round(self);
}

static void webhook_on_bundle_written(void *context, const struct as_http_response *response,
                                      unsigned attempts)
{
    struct as_webhook_certificate *self = context;
    self->request = NULL;
    if (!webhook_has_status(response, 200)) {
        webhook_fail_response(
            self, "writing the ValidatingWebhookConfiguration " AS_WEBHOOK_CONFIGURATION, response);
        return;
    }
    as_log(AS_LOG_INFO, "the API server trusts the certificate of the admission webhook",
           AS_F("configuration", AS_WEBHOOK_CONFIGURATION));
    webhook_go_on(self);
}

static void webhook_write_patch(struct as_json_writer *json, const char *operation,
                                const char *path, const char *value, size_t size)
{
    as_json_begin_object(json);
    as_json_write_member(json, "op", operation);
    as_json_write_member(json, "path", path);
    as_json_write_key(json, "value");
    as_json_write_string_size(json, value, size);
    as_json_end_object(json);
}

/* Only if the configuration is as it was read: the indices are those of its list. */
static void webhook_write_bundle(struct as_webhook_certificate *self, const char *bundle)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf body = AS_BUF_INIT(BODY_MAX);
    AS_CLEANUP(as_buf_deinit) struct as_buf text = AS_BUF_INIT(BODY_MAX);
    struct as_json_writer json;
    as_encode_base64(&text, bundle, strlen(bundle));
    as_json_init(&json, &body, AS_JSON_ANY_ORDER);
    as_json_begin_array(&json);
    webhook_write_patch(&json, "test", "/metadata/resourceVersion", self->hooks.version,
                        strlen(self->hooks.version));
    for (size_t i = 0; i < self->hooks.count; i++) {
        char path[64];
        (void)snprintf(path, sizeof(path), "/webhooks/%zu/clientConfig/caBundle", i);
        webhook_write_patch(&json, "add", path, text.data, text.size);
    }
    as_json_end_array(&json);
    webhook_request(self,
                    &(struct as_kube_request_spec){.method = "PATCH",
                                                   .path = CONFIGURATIONS AS_WEBHOOK_CONFIGURATION
                                                   "?fieldManager=" MANAGER,
                                                   .operation = "patch_webhook",
                                                   .content_type = "application/json-patch+json",
                                                   .body = body.data,
                                                   .body_size = body.size},
                    webhook_on_bundle_written);
}

static void webhook_on_configuration(void *context, const struct as_http_response *response,
                                     unsigned attempts)
{
    struct as_webhook_certificate *self = context;
    struct as_error error = AS_ERROR_INIT;
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(4 * OBJECT_MAX);
    self->request = NULL;
    if (!webhook_has_status(response, 200)) {
        webhook_fail_response(
            self, "reading the ValidatingWebhookConfiguration " AS_WEBHOOK_CONFIGURATION, response);
        return;
    }
    if (tree_load_object(&tree, response->body, response->body_size, &error) != 0 ||
        hooks_read(&self->hooks, tree.root, &error) != 0) {
        webhook_fail(self, &error);
        return;
    }
    if (!self->config.is_leader(self->config.context)) {
        webhook_end_round(self);
        return;
    }
    webhook_prepare(self);
    const char *bundle = self->made.certificate ? self->made.ca : self->secret.pair.ca;
    if (hooks_are_current(tree.root, bundle))
        webhook_go_on(self);
    else
        webhook_write_bundle(self, bundle);
}

/*
 * The round.
 */

static void webhook_on_secret(void *context, const struct as_http_response *response,
                              unsigned attempts)
{
    struct as_webhook_certificate *self = context;
    struct as_error error = AS_ERROR_INIT;
    self->request = NULL;
    if (webhook_has_status(response, 404)) {
        secret_deinit(&self->secret);
    } else if (!webhook_has_status(response, 200)) {
        webhook_fail_response(self, "reading the Secret " AS_WEBHOOK_SECRET, response);
        return;
    } else if (secret_read(&self->secret, response, &error) != 0) {
        webhook_fail(self, &error);
        return;
    }
    webhook_report(self, &self->secret.pair);
    if (!self->config.is_leader(self->config.context)) {
        webhook_end_round(self);
        return;
    }
    webhook_request(self,
                    &(struct as_kube_request_spec){.method = "GET",
                                                   .path = CONFIGURATIONS AS_WEBHOOK_CONFIGURATION,
                                                   .operation = "get_webhook"},
                    webhook_on_configuration);
}

static void webhook_on_timer(void *context)
{
    struct as_webhook_certificate *self = context;
    char path[PATH_SIZE];
    self->timer = NULL;
    print_secret_path(self, path);
    webhook_request(
        self,
        &(struct as_kube_request_spec){.method = "GET", .path = path, .operation = "get_secret"},
        webhook_on_secret);
}

struct as_webhook_certificate *as_webhook_certificate_new(
    const struct as_webhook_certificate_config *config, struct as_kube_access *access,
    const struct as_access_env *env)
{
    struct as_webhook_certificate *self = as_xcalloc(1, sizeof(*self));
    self->env = env;
    self->access = access;
    self->config = *config;
    self->namespace_ = as_xstrdup(config->namespace_);
    as_kube_client_init(&self->client, env, access);
    webhook_rest(self, 0);
    return self;
}

struct as_webhook_certificate *as_webhook_certificate_free(struct as_webhook_certificate *self)
{
    if (!self)
        return NULL;
    self->env->loop->cancel_timer(self->env->loop, self->timer);
    as_kube_client_deinit(&self->client);
    as_kube_access_free(self->access);
    secret_deinit(&self->secret);
    hooks_deinit(&self->hooks);
    as_self_signed_deinit(&self->made);
    free(self->in_use);
    free(self->namespace_);
    free(self);
    return NULL;
}
