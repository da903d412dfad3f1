/*
 * TLS for the HTTP server: OpenSSL behind libevent's bufferevent.
 *
 * Certificate, key and client CAs are files. When a connection comes, they are checked for changes,
 * at most once a second. Changed files that fit together are used for new connections. If the
 * changed files cannot be used, the old content stays in use, and this is logged once.
 */
#ifndef ALERTSCALER_HTTP_TLS_SERVER_H
#define ALERTSCALER_HTTP_TLS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

enum as_tls_client_auth { /* Go's names, in their order, as exporter-toolkit has them */
                          AS_TLS_CLIENT_NONE,
                          AS_TLS_CLIENT_REQUEST,     /* ask for a certificate, accept anything */
                          AS_TLS_CLIENT_REQUIRE_ANY, /* require a certificate, do not verify it */
                          AS_TLS_CLIENT_VERIFY_IF_GIVEN, /* none, or one that a client CA signed */
                          AS_TLS_CLIENT_REQUIRE_AND_VERIFY
};

enum as_tls_version { AS_TLS_ANY, AS_TLS_1_0, AS_TLS_1_1, AS_TLS_1_2, AS_TLS_1_3 };

struct as_tls_server_config { /* texts are copied */
    const char *cert_file, *key_file;
    const char *cert_pem, *key_pem; /* the same as text, in place of files; not kept */
    const char *client_ca_file;     /* NULL: not set */
    enum as_tls_client_auth client_auth;
    const char *const *allowed_sans; /* one must be in the client's certificate; count 0: any */
    size_t allowed_san_count;
    enum as_tls_version min_version, max_version; /* ANY: min 1.2, max OpenSSL's newest */
    const char *ciphers; /* OpenSSL's names, with ':' between, for TLS up to 1.2; NULL: default */
    const char *curves;  /* OpenSSL's names; NULL: default */
    bool prefer_server_ciphers;
};

struct as_tls_server;

/* 0; or a negative errno with an error that names the file and the problem. */
int as_tls_server_new(const struct as_tls_server_config *config, struct as_tls_server **tls_out,
                      struct as_error *error) AS_MUST_USE;
struct as_tls_server *as_tls_server_free(struct as_tls_server *tls);

/* The end of the certificate's life, in seconds since the epoch; 0: it has none that can be read.
 */
int64_t as_tls_server_get_expiry(const struct as_tls_server *tls);

AS_DEFINE_CLEANUP(struct as_tls_server *, as_tls_server_free)

#endif
