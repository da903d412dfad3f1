/*
 * The file of --web.config.file, in the format of Prometheus' exporter-toolkit: TLS of the server,
 * headers of answers, users with bcrypt hashes. Relative paths are relative to the file's folder.
 * docs/configuration.md describes each key for users.
 */
#ifndef ALERTSCALER_RULES_WEB_CONFIG_H
#define ALERTSCALER_RULES_WEB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/doc/diagnostics.h>
#include <alertscaler/rules/settings.h>

/* The words of exporter-toolkit (Go's), each list up to a NULL. */
extern const char *const as_web_client_auth_words[]; /* "NoClientCert", ... */
extern const char *const as_web_version_words[];     /* "TLS10" to "TLS13" */
extern const char *const as_web_cipher_words[];      /* "TLS_AES_128_GCM_SHA256", ... */
extern const char *const as_web_curve_words[];       /* "CurveP256", ... */

struct as_web_tls_settings {
    bool is_set; /* there is a tls_server_config */
    const char *cert_file, *key_file;
    const char *client_ca_file; /* NULL: none */
    unsigned client_auth;       /* index into as_web_client_auth_words */
    const char **client_allowed_sans;
    size_t client_allowed_san_count;
    unsigned min_version, max_version; /* index into as_web_version_words */
    const char **cipher_suites;        /* Go's names, from as_web_cipher_words */
    size_t cipher_suite_count;
    const char **curve_preferences; /* from as_web_curve_words */
    size_t curve_preference_count;
    bool prefer_server_cipher_suites;
};

#define AS_WEB_HEADERS_MAX ((size_t)16 * 1024) /* of all, as lines of an answer */

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
    struct as_web_user *users; /* count 0: no basic authentication */
    size_t user_count;
};

struct as_web_config;

/* 0; or a negative errno after all errors were added to the diagnostics. */
int as_web_config_load(const char *path, struct as_web_config **config_out,
                       struct as_diagnostics *diagnostics) AS_MUST_USE;
struct as_web_config *as_web_config_free(struct as_web_config *config); /* wipes the hashes */
const struct as_web_settings *as_web_config_get(const struct as_web_config *config);

/* Whether neither these settings nor the receiver's ask for a credential: everyone who can connect
 * may send and read. */
bool as_web_is_open(const struct as_web_settings *settings,
                    const struct as_receiver_settings *receiver) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_web_config *, as_web_config_free)

#endif
