/* Any bytes as alertscaler.yaml, and as a file that is one http_config: loaded with everything that
 * the daemon relies on, or refused with errors that have places. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <alertscaler/base/url.h>
#include <alertscaler/rules/config.h>

#include "fuzz.h"

static void check_azuread(const struct as_azuread_settings *azuread)
{
    FUZZ_CHECK(azuread->managed_identity.is_set + azuread->workload_identity.is_set +
                   azuread->oauth.is_set ==
               1);
    FUZZ_CHECK(azuread->cloud);
    FUZZ_CHECK(!azuread->oauth.is_set || (azuread->oauth.client_id && azuread->oauth.tenant_id &&
                                          azuread->oauth.client_secret_file));
}

static void check_login(const struct as_http_settings *http)
{
    const struct as_oauth2_settings *oauth2 = &http->oauth2;
    FUZZ_CHECK(http->login == AS_LOGIN_NONE ||
               (!http->basic_auth.password_file && !http->authorization.credentials_file));
    switch (http->login) {
    case AS_LOGIN_NONE:
    case AS_LOGIN_GOOGLE_IAM: break;
    case AS_LOGIN_SIGV4: FUZZ_CHECK(!http->sigv4.external_id || http->sigv4.role_arn); break;
    case AS_LOGIN_AZUREAD: check_azuread(&http->azuread); break;
    case AS_LOGIN_OAUTH2:
        FUZZ_CHECK(oauth2->client_id && oauth2->client_secret_file && oauth2->token_url);
        FUZZ_CHECK(as_url_is_private(oauth2->token_url));
        FUZZ_CHECK(!oauth2->tls.cert_file == !oauth2->tls.key_file);
        for (size_t i = 0; i < oauth2->scope_count; i++)
            FUZZ_CHECK(*oauth2->scopes[i]);
        for (size_t i = 0; i < oauth2->endpoint_param_count; i++)
            FUZZ_CHECK(oauth2->endpoint_params[i].name && *oauth2->endpoint_params[i].value);
        break;
    }
}

static void check_http(const struct as_http_settings *http)
{
    check_login(http);
    FUZZ_CHECK(!http->tls.cert_file == !http->tls.key_file);
    FUZZ_CHECK(!http->basic_auth.password_file || !http->authorization.credentials_file);
    for (size_t i = 0; i < http->header_count; i++) {
        FUZZ_CHECK(*http->headers[i].name && !strpbrk(http->headers[i].name, ": \r\n"));
        FUZZ_CHECK(http->headers[i].value_count + http->headers[i].file_count > 0);
        for (size_t k = 0; k < http->headers[i].value_count; k++)
            FUZZ_CHECK(!strpbrk(http->headers[i].values[k], "\r\n"));
    }
}

static void check_receiver(const struct as_receiver_settings *receiver)
{
    FUZZ_CHECK(receiver->max_body >= 1024 && receiver->max_body <= (uint64_t)1 << 30);
    FUZZ_CHECK(receiver->max_connections > 0 && receiver->incident_expiry_us > 0);
    FUZZ_CHECK(receiver->stale_window_us >= 0 && receiver->watchdog_within_us > 0);
    for (size_t i = 0; i < receiver->token_count; i++) {
        FUZZ_CHECK(*receiver->tokens[i].name && *receiver->tokens[i].file);
        for (size_t k = 0; k < i; k++)
            FUZZ_CHECK(strcmp(receiver->tokens[i].name, receiver->tokens[k].name) != 0);
    }
}

static void check_settings(const struct as_settings *settings)
{
    bool has_default = false;

    for (size_t i = 0; i < settings->cluster_count; i++)
        has_default |= strcmp(settings->clusters[i].name, "default") == 0;
    FUZZ_CHECK(has_default);
    FUZZ_CHECK(settings->alertmanager.resync_interval_us >= AS_US_PER_S);
    FUZZ_CHECK(settings->prometheus.timeout_us > 0);
    FUZZ_CHECK(*settings->state.path && *settings->action_log.path);
    FUZZ_CHECK(settings->action_log.max_size >= 1024);
    FUZZ_CHECK(settings->limits.actions_max == 0 || settings->limits.actions_per_us > 0);
    FUZZ_CHECK(settings->limits.scale_down_milli_percent == 0 ||
               settings->limits.scale_down_per_us > 0);
    check_http(&settings->prometheus.http);
    check_http(&settings->alertmanager.http);
    for (size_t i = 0; i < settings->provider_count; i++) {
        FUZZ_CHECK(settings->providers[i].type && settings->providers[i].timeout_us > 0);
        check_http(&settings->providers[i].http);
    }
    check_receiver(&settings->receiver);
}

static void check_loaded(int result, struct as_config *config, struct as_diagnostics *diagnostics)
{
    FUZZ_CHECK((result == AS_CONFIG_OK) == !diagnostics->has_error);
    FUZZ_CHECK((result == AS_CONFIG_OK) == (config != NULL));
    for (size_t i = 0; i < diagnostics->count; i++)
        FUZZ_CHECK(*diagnostics->items[i].message);
    if (config)
        check_settings(&config->settings);
    as_config_free(config);
    as_diagnostics_deinit(diagnostics);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_diagnostics diagnostics = AS_DIAGNOSTICS_INIT;
    struct as_config *config = NULL;
    char path[64];
    const int fd = memfd_create("settings", MFD_CLOEXEC);

    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (!memmem(data, size, "rule_f", 6)) { /* they would be files of this machine */
        const int r = as_config_load(path, &config, &diagnostics);
        check_loaded(r, config, &diagnostics);
        config = NULL;
    }
    const int r = as_config_load_http(path, &config, &diagnostics);
    check_loaded(r, config, &diagnostics);
    close(fd);
    return 0;
}
