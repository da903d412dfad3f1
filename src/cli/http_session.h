/*
 * Synchronous requests to a monitoring server, one after the other, by the daemon's own HTTP client
 * with Prometheus' `http_config`.
 */
#ifndef ALERTSCALER_SRC_CLI_HTTP_SESSION_H
#define ALERTSCALER_SRC_CLI_HTTP_SESSION_H

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/daemon/adapters.h>
#include <alertscaler/rules/settings.h>

/* For commands that use the daemon's ports: the machine's clock, and an observer that counts
 * nothing. */
extern const struct as_clock session_clock;
void session_ignore_transfer(void *context, const char *client_name, const char *operation,
                             const char *code, int64_t duration_us);

struct http_session;

enum http_session_outcome {
    HTTP_SESSION_OK,       /* 2xx */
    HTTP_SESSION_REFUSED,  /* another status: the body may say why */
    HTTP_SESSION_TOO_LARGE /* the answer is larger than `max` */
};

/* Borrows `http`. `url` is the server's address without the API's path. */
struct http_session *http_session_open(const struct as_adapters *adapters, const char *url,
                                       const struct as_http_settings *http) AS_MUST_USE;
struct http_session *http_session_close(struct http_session *session);

/* POSTs a form to `path`; the body replaces the content of *body_io. Returns an outcome, all but OK
 * with an error; or a negative errno with an error: no answer. */
int http_session_post(struct http_session *session, const char *path, const struct as_buf *form,
                      size_t max, struct as_buf *body_io, struct as_error *error) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct http_session *, http_session_close)

#endif
