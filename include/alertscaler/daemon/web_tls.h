/*
 * Translates the web configuration's TLS settings, in Go's words, for the TLS server, in OpenSSL's.
 */
#ifndef ALERTSCALER_DAEMON_WEB_TLS_H
#define ALERTSCALER_DAEMON_WEB_TLS_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/http/tls_server.h>
#include <alertscaler/rules/web_config.h>

/* `tls_out` is NULL if there is no tls_server_config. 0; or a negative errno with an error. */
int as_web_tls_new(const struct as_web_tls_settings *settings, struct as_tls_server **tls_out,
                   struct as_error *error) AS_MUST_USE;

/* OpenSSL's name of a cipher suite; NULL: a suite of TLS 1.3, which cannot be chosen. */
const char *as_web_tls_find_cipher(const char *go_name);
const char *as_web_tls_find_curve(const char *go_name);

#endif
