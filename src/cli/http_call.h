/*
 * HTTP requests of commands. A command waits for each answer: there is one request at a time.
 */
#ifndef ALERTSCALER_SRC_CLI_HTTP_CALL_H
#define ALERTSCALER_SRC_CLI_HTTP_CALL_H

#include <stdio.h>

#include <jansson.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/daemon/adapters.h>
#include <alertscaler/rules/settings.h>

#include "cli.h"

/*
 * One synchronous HTTP request to a running daemon. Its address: --url, else --context, else
 * ALERTSCALER_URL, else the current context of the client file, else http://localhost:9096. With a
 * context, token and CA are those of the context, so that no other daemon gets a token; else those
 * of ALERTSCALER_TOKEN_FILE and ALERTSCALER_CA_FILE. --token-file and --ca-file replace both.
 */

#define HTTP_CALL_BODY_MAX ((size_t)64 * 1024 * 1024)

struct http_answer {
    int status;
    struct as_buf body, headers; /* a line for each header */
};

/*
 * `path`, which may have a query, is appended to the URL's own; `body` NULL: GET. 0 and an answer
 * of any status, to be freed with http_answer_deinit; or a negative errno with an error that names
 * the URL.
 */
int http_call_run(const struct as_args *args, const char *path, const struct as_buf *body,
                  struct http_answer *answer_out, struct as_error *error) AS_MUST_USE;
void http_answer_deinit(struct http_answer *answer);

/* The document for printing; NULL: it is not JSON. Without -o json or yaml, its texts are
 * safe for a terminal (base/safe_text.h). A new reference. */
json_t *http_answer_load(const struct as_args *args, const struct http_answer *answer) AS_MUST_USE;

/* The daemon's error text: one line that is safe for a terminal, for free(). */
char *http_answer_explain(const struct http_answer *answer) AS_MUST_USE;

/* Prints the daemon's error text on standard error; returns AS_EXIT_NO. */
int http_answer_refuse(const struct as_args *args, const struct http_answer *answer);

/* GETs a path of the API: the whole document as of http_answer_load, a new reference. NULL with a
 * text for free() and an exit status: AS_EXIT_NO if the daemon refused, AS_EXIT_USAGE if its answer
 * is invalid. */
json_t *http_call_ask(const struct as_args *args, const char *path, char **problem_out,
                      int *status_out) AS_MUST_USE;

/* Offers names and ids of the daemon's targets; none if it does not answer. */
void http_offer_targets(const struct as_args *args, struct as_spelling *spelling);

/* Prints the known target with the most similar name on standard error. Nothing if no name is near,
 * or if the daemon does not answer. */
void http_suggest_target(const struct as_args *args, const char *target);

/* Prints what follows an incident, by the API's document of a target: a line for each `next`. */
void http_print_next(const json_t *target, FILE *out);

/* Two rows. */
#define AS_OPTION_URL                                                                              \
    {.name = "context",                                                                            \
     .value = "NAME",                                                                              \
     .names = "contexts",                                                                          \
     .help = "the daemon: a context of ~/.config/alertscaler/config.yaml"},                        \
    {                                                                                              \
        .name = "url", .value = "URL",                                                             \
        .help = "the daemon's address (default: $ALERTSCALER_URL, the current context, or "        \
                "http://localhost:9096)",                                                          \
    }
#define AS_OPTION_TOKEN_FILE                                                                       \
    {                                                                                              \
        .name = "token-file", .value = "FILE",                                                     \
        .help = "file with the bearer token (default: $ALERTSCALER_TOKEN_FILE)",                   \
    }

#define AS_OPTION_CA_FILE                                                                          \
    {                                                                                              \
        .name = "ca-file", .value = "FILE",                                                        \
        .help = "CA certificates to verify the daemon's (default: $ALERTSCALER_CA_FILE, "          \
                "else the system's)"                                                               \
    }

/*
 * Synchronous requests to a monitoring server, one after the other, by the daemon's own HTTP client
 * with Prometheus' `http_config`.
 */

/* For commands that use the daemon's ports: the machine's clock, and an observer that counts
 * nothing. */
extern const struct as_clock session_clock;
void session_ignore_transfer(void *context, const char *client_name, const char *operation,
                             const char *code, int64_t duration_us);

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

/* The same with GET, without a form. */
int http_session_get(struct http_session *session, const char *path, size_t max,
                     struct as_buf *body_io, struct as_error *error) AS_MUST_USE;

/* The HTTP status of the last answer; 0: there was none. */
int http_session_get_status(const struct http_session *session);

AS_DEFINE_CLEANUP(struct http_session *, http_session_close)

#endif
