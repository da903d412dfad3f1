/*
 * TLS of the server, shared by tls_server.c and server.c.
 *
 * A context serves the connections of one period. It comes from one reading of the files, does not
 * change, and is reference-counted.
 */
#ifndef ALERTSCALER_SRC_HTTP_TLS_H
#define ALERTSCALER_SRC_HTTP_TLS_H

#include <stdint.h>

#include <openssl/ssl.h>

#include <alertscaler/http/tls_server.h>

struct as_tls_context {
    unsigned references;
    SSL_CTX *ssl;
    enum as_tls_client_auth client_auth;
    char **allowed_sans;
    size_t allowed_san_count;
};

/* Returns the present context, to be released. Checks the files, at most once a second. */
struct as_tls_context *as_tls_server_take_context(struct as_tls_server *tls, int64_t now_us);
struct as_tls_context *as_tls_context_release(struct as_tls_context *context);

/* As as_http_exchange_find_client_name; memory for free(); valid after the handshake. */
char *as_tls_context_find_name(const struct as_tls_context *context, const SSL *ssl);
/* Why the handshake failed, as one line; `code` is OpenSSL's. */
void as_tls_explain(const SSL *ssl, unsigned long code, char *line_out, size_t size);

#endif
