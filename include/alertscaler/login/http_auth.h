/*
 * Prometheus' `http_config`: connection and authentication settings of an HTTP service. Secrets are
 * in files, which are checked before each request and read again when they have changed.
 */
#ifndef ALERTSCALER_LOGIN_HTTP_AUTH_H
#define ALERTSCALER_LOGIN_HTTP_AUTH_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/port/clock.h>
#include <alertscaler/port/http.h>
#include <alertscaler/rules/settings.h>

struct as_http_auth;

/* Borrows both arguments. Does not read any file yet. */
struct as_http_auth *as_http_auth_new(const struct as_http_settings *settings,
                                      const struct as_clock *clock) AS_MUST_USE;
struct as_http_auth *as_http_auth_free(struct as_http_auth *auth);

/*
 * Fills tls, proxy_url and headers of `request`: first `extra` (header lines, NULL at the end; or
 * NULL), then the headers of the settings. The filled-in values are valid until the next call. 0;
 * or a negative errno with an error that names key and file of a secret that cannot be read.
 */
int as_http_auth_apply(struct as_http_auth *auth, const char *const *extra,
                       struct as_http_request *request, struct as_error *error) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_http_auth *, as_http_auth_free)

#endif
