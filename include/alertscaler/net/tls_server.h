/*
 * TLS for the HTTP server: OpenSSL behind libevent's bufferevent.
 *
 * Certificate, key and client CAs are files that are looked at again at most once a second, when a
 * connection comes; once they have changed and fit together, new connections use them. While the
 * new ones cannot be used the old ones stay, which is logged once.
 */
#ifndef ALERTSCALER_NET_TLS_SERVER_H
#define ALERTSCALER_NET_TLS_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>

enum as_tls_client_auth { /* Go's names, in their order, as exporter-toolkit has them */
                          AS_TLS_CLIENT_NONE,
                          AS_TLS_CLIENT_REQUEST,         /* ask, take anything */
                          AS_TLS_CLIENT_REQUIRE_ANY,     /* a certificate, whatever it is worth */
                          AS_TLS_CLIENT_VERIFY_IF_GIVEN, /* none, or one of the CAs' */
                          AS_TLS_CLIENT_REQUIRE_AND_VERIFY
};

enum as_tls_version { AS_TLS_ANY, AS_TLS_1_0, AS_TLS_1_1, AS_TLS_1_2, AS_TLS_1_3 };

struct as_tls_server_config { /* texts are copied */
    const char *cert_file, *key_file;
    const char *client_ca_file; /* NULL: none */
    enum as_tls_client_auth client_auth;
    const char *const
        *allowed_sans; /* one of them must be in the client's certificate; count 0: any */
    size_t allowed_san_count;
    enum as_tls_version min_version, max_version; /* ANY: 1.2; what OpenSSL has */
    const char
        *ciphers; /* OpenSSL's names with ':' between, for TLS 1.2 and older; NULL: its default */
    const char *curves; /* likewise */
    bool prefer_server_ciphers;
};

struct as_tls_server;

/* 0; or a negative errno with an error that names file and problem. */
int as_tls_server_new(const struct as_tls_server_config *config, struct as_tls_server **tls_out,
                      struct as_error *error) AS_MUST_USE;
struct as_tls_server *as_tls_server_free(struct as_tls_server *tls);

AS_DEFINE_CLEANUP(struct as_tls_server *, as_tls_server_free)

#endif
