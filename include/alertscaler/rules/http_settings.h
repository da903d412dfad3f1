/*
 * Prometheus' `http_config`, as in settings.h.
 */
#ifndef ALERTSCALER_RULES_HTTP_SETTINGS_H
#define ALERTSCALER_RULES_HTTP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

struct as_header_settings { /* one row of http_headers */
    const char *name;
    const char **values;
    size_t value_count;
    const char **files; /* files of secret values, re-read when they change */
    size_t file_count;
};

struct as_http_settings {
    struct {
        const char *username, *username_file, *password_file;
    } basic_auth;
    struct {
        const char *type; /* "Bearer" if only the file is given */
        const char *credentials_file;
    } authorization;
    struct {
        const char *ca_file, *cert_file, *key_file, *server_name;
        bool insecure_skip_verify;
    } tls;
    struct as_header_settings *headers;
    size_t header_count;
    const char *proxy_url;
};

#endif
