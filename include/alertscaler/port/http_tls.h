/*
 * How an HTTP request's connection is secured.
 */
#ifndef ALERTSCALER_PORT_HTTP_TLS_H
#define ALERTSCALER_PORT_HTTP_TLS_H

#include <stdbool.h>

struct as_http_tls { /* files are read by the client at each new connection; NULL: not set */
    const char *ca_file, *cert_file, *key_file, *server_name;
    const char *ca_pem, *cert_pem, *key_pem; /* the same as text, from memory */
    bool insecure_skip_verify;
};

#endif
