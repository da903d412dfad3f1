/*
 * Prometheus' `http_config`: connection and authentication settings of an HTTP service, as an HTTP
 * client that adds them to each request. Secrets are in files, which are checked before each
 * request and read again when they have changed.
 *
 * With a login (oauth2, sigv4, azuread, google_iam), a request waits for credentials, within its
 * own time. If the server answers 401 or 403, the request is sent once more with new credentials.
 */
#ifndef ALERTSCALER_LOGIN_HTTP_AUTH_H
#define ALERTSCALER_LOGIN_HTTP_AUTH_H

#include <alertscaler/base/attr.h>
#include <alertscaler/login/login_env.h>
#include <alertscaler/port/http.h>
#include <alertscaler/rules/settings.h>

struct as_http_auth;

/* Borrows the settings, copies env. Does not read any file yet. */
struct as_http_auth *as_http_auth_new(const struct as_http_settings *settings,
                                      const struct as_login_env *env) AS_MUST_USE;
/* Cancels all requests. */
struct as_http_auth *as_http_auth_free(struct as_http_auth *auth);

/*
 * The client. It sets tls and proxy_url of a request, and adds header lines behind those of the
 * request. If a secret cannot be read, or there are no credentials, the outcome is AS_HTTP_UNSENT
 * with an error that names the key, and the file or the server; `may_pass` if the token server is
 * down, busy or slow.
 */
struct as_http *as_http_auth_get_port(struct as_http_auth *auth) AS_MUST_USE;

/*
 * For protocols that refuse credentials in an answer of status 200 (gRPC); called while `done` of
 * that answer runs. True: the next request waits for new credentials, and may succeed. False: there
 * is no login, or new credentials were refused within the last minute.
 */
bool as_http_auth_refuse(struct as_http_auth *auth) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_http_auth *, as_http_auth_free)

static inline struct as_http_tls as_tls_settings_get(const struct as_tls_settings *settings)
{
    return (struct as_http_tls){
        .ca_file = settings->ca_file,
        .cert_file = settings->cert_file,
        .key_file = settings->key_file,
        .server_name = settings->server_name,
        .insecure_skip_verify = settings->insecure_skip_verify,
    };
}

#endif
