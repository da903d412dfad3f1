/*
 * The files that a configuration names: a visit of each, and one digest of all. A file that cannot
 * be read has the error in place of its content.
 */
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/login/cloud_op.h>
#include <alertscaler/rules/provider_kind.h>
#include <alertscaler/rules/web_config.h>

#include "daemon_private.h"

#define CONTENT_MAX ((size_t)64 * 1024 * 1024)

struct visitor {
    as_file_visitor_fn *visit;
    void *context;
};

static void visit_file(const struct visitor *visitor, const char *path)
{
    visitor->visit(visitor->context, path, false);
}

static void visit_tls(const struct visitor *visitor, const struct as_tls_settings *tls)
{
    visit_file(visitor, tls->ca_file);
    visit_file(visitor, tls->cert_file);
    visit_file(visitor, tls->key_file);
}

/* A file that a type of provider reads, and the files named in it. */
static void visit_providers_file(const struct visitor *visitor,
                                 const struct as_group_provider *type, const char *path)
{
    char *content = NULL;
    size_t size = 0;
    visit_file(visitor, path);
    if (!type || !type->read_names || as_str_is_empty(path) ||
        as_file_read(path, AS_CLOUD_OP_FILE_MAX, &content, &size) != 0)
        return; /* its reader reports the problem */
    type->read_names(content, size, visitor->visit, visitor->context);
    as_wipe_free(content);
}

/* Expands an entry of `files`: $VARIABLE, $VARIABLE/name, ~/path. NULL: no such file. */
static char *find_providers_file(const char *file)
{
    const size_t size = strcspn(file, "/");
    AS_CLEANUP(as_free_p) char *name = as_xstrndup(file + (*file == '$'), size - (*file == '$'));
    const char *folder = getenv(*file == '$' ? name : "HOME");
    return as_str_is_empty(folder) ? NULL : as_xasprintf("%s%s", folder, file + size);
}

/* The files of the environment: those of a provider. */
static void visit_type_files(const struct visitor *visitor, const struct as_group_provider *type)
{
    for (size_t i = 0; type && type->files && type->files[i]; i++) {
        AS_CLEANUP(as_free_p) char *path = find_providers_file(type->files[i]);
        visit_providers_file(visitor, type, path);
    }
}

/* A login with a cloud reads the files that a provider of this cloud reads. */
static void visit_login(const struct visitor *visitor, const struct as_http_settings *http)
{
    static const char *const types[] = {
        [AS_LOGIN_SIGV4] = "aws", [AS_LOGIN_AZUREAD] = "azure", [AS_LOGIN_GOOGLE_IAM] = "gce"};
    const char *name = http->login < AS_ARRAY_SIZE(types) ? types[http->login] : NULL;
    const struct as_group_provider *type = name ? as_group_provider_find(name) : NULL;
    visit_providers_file(visitor, type, http->google_iam.credentials_file);
    visit_type_files(visitor, type);
}

static void visit_http(const struct visitor *visitor, const struct as_http_settings *http)
{
    visit_file(visitor, http->basic_auth.username_file);
    visit_file(visitor, http->basic_auth.password_file);
    visit_file(visitor, http->authorization.credentials_file);
    visit_file(visitor, http->oauth2.client_secret_file);
    visit_file(visitor, http->azuread.workload_identity.token_file_path);
    visit_file(visitor, http->azuread.oauth.client_secret_file);
    visit_tls(visitor, &http->oauth2.tls);
    visit_tls(visitor, &http->tls);
    for (size_t i = 0; i < http->header_count; i++)
        for (size_t k = 0; k < http->headers[i].file_count; k++)
            visit_file(visitor, http->headers[i].files[k]);
    visit_login(visitor, http);
}

static void visit_provider(const struct visitor *visitor,
                           const struct as_provider_settings *provider)
{
    const struct as_provider_kind *kind = as_provider_kind_find(provider->type);
    const struct as_group_provider *type = as_group_provider_find(provider->type);
    visit_http(visitor, &provider->http);
    if (!kind)
        return;
    for (size_t i = 0; i < provider->option_count; i++) {
        for (const struct as_provider_key *key = kind->account_keys; key->key; key++)
            if (key->is_file && strcmp(key->key, provider->options[i].key) == 0)
                visit_providers_file(visitor, type, provider->options[i].value);
    }
    visit_type_files(visitor, type);
}

static void visit_settings(const struct visitor *visitor, const struct as_settings *settings)
{
    visit_http(visitor, &settings->alertmanager.http);
    visit_http(visitor, &settings->prometheus.http);
    visit_http(visitor, &settings->action_log.replicas.http);
    visit_http(visitor, &settings->objects.prometheus.http);
    for (size_t i = 0; i < settings->notify_count; i++)
        visit_http(visitor, &settings->notify[i].http);
    for (size_t i = 0; i < settings->provider_count; i++)
        visit_provider(visitor, &settings->providers[i]);
    for (size_t i = 0; i < settings->receiver.token_count; i++)
        visit_file(visitor, settings->receiver.tokens[i].file);
    for (size_t i = 0; i < settings->receiver.hmac_count; i++)
        visit_file(visitor, settings->receiver.hmac[i].secret_file);
    visit_file(visitor, settings->objects.admission.cert_file);
    visit_file(visitor, settings->objects.admission.key_file);
}

void named_files_visit(const struct as_sandbox_config *config, as_file_visitor_fn *visit,
                       void *context)
{
    const struct visitor visitor = {visit, context};
    const struct as_config *loaded = config->config;
    visit_file(&visitor, loaded->path);
    visit_file(&visitor, config->web_config_file);
    if (config->web) {
        visit_file(&visitor, config->web->tls.cert_file);
        visit_file(&visitor, config->web->tls.key_file);
        visit_file(&visitor, config->web->tls.client_ca_file);
    }
    for (size_t i = 0; i < loaded->rule_file_count; i++)
        visit_file(&visitor, loaded->rule_files[i]);
    visit_settings(&visitor, &loaded->settings);
    config->adapters->visit_files(config->outside, &loaded->settings, visit, context);
}

/* The digest so far becomes that of itself, the name, and the content. */
static void hash_file(void *context, const char *path, bool is_program)
{
    struct as_digest *digest = context;
    char *content = NULL;
    size_t size = 0;
    if (as_str_is_empty(path))
        return;
    const int status = is_program ? 0 : as_file_read(path, CONTENT_MAX, &content, &size);
    AS_CLEANUP(as_buf_wipe) struct as_buf text = AS_BUF_INIT_OPEN(2 * CONTENT_MAX);
    as_buf_append(&text, (const char *)digest->bytes, sizeof(digest->bytes));
    as_buf_printf(&text, "%s %d ", path, status);
    as_buf_append(&text, content ? content : "", size);
    SHA256((const unsigned char *)text.data, text.size, digest->bytes);
    as_wipe_free(content);
}

struct as_digest named_files_hash(const struct as_sandbox_config *config)
{
    struct as_digest digest = {{0}};
    named_files_visit(config, hash_file, &digest);
    return digest;
}
