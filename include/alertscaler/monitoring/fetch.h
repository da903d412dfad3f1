/*
 * One request to a monitoring server. Everything that can go wrong before there is a body to read
 * is reported in one line that begins with the server's name.
 */
#ifndef ALERTSCALER_MONITORING_FETCH_H
#define ALERTSCALER_MONITORING_FETCH_H

#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/error.h>
#include <alertscaler/login/http_auth.h>
#include <alertscaler/model/source.h>
#include <alertscaler/monitoring/monitoring.h>

/* Finds the server's message in the body of an error; "" if there is none. */
typedef void as_server_read_error_fn(const char *json, size_t size,
                                     char text_out[AS_QUERY_ERROR_MAX]);

struct as_server {
    const struct as_source_env *env;
    const char *word; /* for metrics */
    char *name;       /* for people: "Alertmanager http://am-1:9093" */
    char *url;        /* of the resource; NULL: no such server is configured */
    struct as_http_auth *auth;
    int64_t timeout_us;
    size_t max_response;
    bool ignores_body;   /* a 2xx is enough */
    bool reads_errors;   /* `done` gets the body of any status */
    const char *missing; /* what a 404 means, for people; NULL: nothing else */
    as_server_read_error_fn *read_error;
};

/* Sets url to `base` (with or without a slash at its end; NULL: none) and `path`. The caller sets
 * the other members. */
void as_server_set_url(struct as_server *server, const char *base, const char *path);
void as_server_deinit(struct as_server *server);

enum as_fetch_outcome {
    AS_FETCH_OK,
    AS_FETCH_NO_DATA,
    AS_FETCH_UNUSABLE,
    AS_FETCH_REFUSED,
    AS_FETCH_INVALID,
    AS_FETCH_TOO_LARGE,
    AS_FETCH_TIMEOUT,
    AS_FETCH_UNREACHABLE
};

/* `body` is that of a success ("" if it is not read), or of any status if the server's
 * `reads_errors` is set; NULL: the fetch has an error. */
typedef void as_fetch_done_fn(void *context, const char *body, size_t size);

struct as_fetch { /* the caller's; must not move until done or cancelled; all zero at first */
    const struct as_server *server;
    as_fetch_done_fn *done;
    void *context;
    struct as_http_call *transfer;
    struct as_timer *timer;
    as_mono_time started;
    enum as_fetch_outcome outcome;
    int status;       /* of the answer; 0: none */
    bool has_message; /* the error is the server's own text */
    size_t ignored;   /* bytes of a body that is not read */
    bool is_accepted; /* the head of a 2xx has come */
    struct as_error error;
};

struct as_fetch_body {
    const char *content_type;
    const char *data;
    size_t size;
};

/* GET; or POST of `body` unless NULL. `flow`: NULL, of no target. `done` is called once, in a later
 * turn. */
void as_fetch_start(struct as_fetch *fetch, const struct as_server *server,
                    const struct as_flow *flow, const struct as_fetch_body *body,
                    as_fetch_done_fn *done, void *context);
/* For a request that cannot be made: fails in a later turn. */
void as_fetch_fail(struct as_fetch *fetch, const struct as_server *server, const char *why,
                   as_fetch_done_fn *done, void *context);
void as_fetch_cancel(struct as_fetch *fetch);

/* For metrics; called when the quality of the answer is known. */
void as_fetch_count(const struct as_fetch *fetch, enum as_fetch_outcome outcome);

#endif
