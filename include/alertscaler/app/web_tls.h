/*
 * From the web configuration's words, which are Go's, to what the TLS server is told, which is
 * OpenSSL's.
 */
#ifndef ALERTSCALER_APP_WEB_TLS_H
#define ALERTSCALER_APP_WEB_TLS_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/config/web_config.h>
#include <alertscaler/net/tls_server.h>

/* `tls_out` is NULL where there is no tls_server_config. 0; or a negative errno with an error. */
int as_web_tls_new(const struct as_web_tls_settings *settings, struct as_tls_server **tls_out,
                   struct as_error *error) AS_MUST_USE;

/* OpenSSL's name of a word; NULL: none is needed (a suite of TLS 1.3, which cannot be chosen). */
const char *as_web_tls_find_cipher(const char *go_name);
const char *as_web_tls_find_curve(const char *go_name);

#endif
