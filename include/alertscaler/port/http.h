/*
 * Port: an asynchronous HTTP client. No redirects, no cookies; time and size are limited.
 */
#ifndef ALERTSCALER_PORT_HTTP_H
#define ALERTSCALER_PORT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/port/http_body.h>
#include <alertscaler/port/http_class.h>
#include <alertscaler/port/http_tls.h>

struct as_http_request { /* all borrowed for the call of start only */
    const char *method, *url;
    const char *const *headers; /* "Name: value" lines, NULL at the end; or NULL */
    const void *body;
    size_t body_size;
    int64_t timeout_us;       /* limit of the whole transfer */
    int64_t idle_us;          /* without a byte for so long: AS_HTTP_TIMEOUT; 0: no limit */
    size_t max_response;      /* bytes of body that is collected; more: AS_HTTP_TOO_LARGE */
    as_http_body_fn *on_body; /* reads 2xx bodies, which `done` then lacks; NULL: all collected */
    struct as_http_tls tls;
    enum as_http_class class;
    struct as_flow flow;
    bool is_http2;           /* use HTTP/2 at once, also without TLS to negotiate it */
    const char *proxy_url;   /* NULL: no proxy, even if the environment sets one */
    const char *client_name; /* for metrics: "kubernetes", ...; static memory; NULL: not counted */
    const char *operation;   /* for metrics: "get_scale", ...; static memory */
};

enum as_http_outcome {
    AS_HTTP_ANSWERED,    /* `status` is set */
    AS_HTTP_UNREACHABLE, /* the server cannot have carried out the request */
    AS_HTTP_BROKEN,      /* failed after sending began: the request may have been carried out */
    AS_HTTP_TIMEOUT,     /* as BROKEN */
    AS_HTTP_TOO_LARGE    /* as BROKEN */
};

struct as_http_response { /* valid during the callback */
    enum as_http_outcome outcome;
    int status;
    const char *body; /* NUL-terminated, never NULL */
    size_t body_size;
    const char *etag, *retry_after, *content_type, *location; /* "" where absent */
    const char *fields; /* header and trailer fields, read by http_fields.h; NULL: none */
    const char *error;  /* for a person; set unless AS_HTTP_ANSWERED */
};
typedef void as_http_done_fn(void *context, const struct as_http_response *response);
struct as_http_call;
struct as_http {
    /* `done` is called exactly once, in a later turn of the loop, unless cancelled first. */
    struct as_http_call *(*start)(struct as_http *self, const struct as_http_request *request,
                                  as_http_done_fn *done, void *context)AS_MUST_USE;
    void (*cancel)(struct as_http *self, struct as_http_call *call); /* no `done` afterwards */
};

#endif
