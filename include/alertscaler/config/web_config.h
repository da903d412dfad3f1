/*
 * The file of --web.config.file, in the format of Prometheus' exporter-toolkit: TLS of the server,
 * headers of answers, users with bcrypt hashes. Paths relative in the file are relative to its
 * folder. docs/security.md describes each key for users.
 */
#ifndef ALERTSCALER_CONFIG_WEB_CONFIG_H
#define ALERTSCALER_CONFIG_WEB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/config/diagnostics.h>

struct as_web_tls_settings {
    bool is_set; /* there is a tls_server_config */
    const char *cert_file, *key_file;
    const char *client_ca_file; /* NULL: none */
    const char
        *client_auth_type; /* one of exporter-toolkit's words; "NoClientCert" where not given */
    const char **client_allowed_sans;
    size_t client_allowed_san_count;
    const char *min_version, *max_version; /* "TLS12", ...; NULL: not given */
    const char **cipher_suites;            /* Go's names */
    size_t cipher_suite_count;
    const char **curve_preferences; /* Go's names: "CurveP256", "X25519", ... */
    size_t curve_preference_count;
    bool prefer_server_cipher_suites;
};

struct as_web_header { /* of http_server_config.headers */
    const char *name, *value;
};

struct as_web_user {
    const char *name;
    const char *hash; /* bcrypt: "$2y$10$..." */
};

struct as_web_settings {
    struct as_web_tls_settings tls;
    struct as_web_header *headers;
    size_t header_count;
    struct as_web_user *users; /* none: no basic authentication */
    size_t user_count;
};

struct as_web_config;

/* 0; or a negative errno after all that is wrong has been added to the diagnostics. */
int as_web_config_load(const char *path, struct as_web_config **config_out,
                       struct as_diagnostics *diagnostics) AS_MUST_USE;
struct as_web_config *as_web_config_free(struct as_web_config *config); /* wipes the hashes */
const struct as_web_settings *as_web_config_get(const struct as_web_config *config);

AS_DEFINE_CLEANUP(struct as_web_config *, as_web_config_free)

#endif
