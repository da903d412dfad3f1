/*
 * Port: an asynchronous HTTP client. No redirects, no cookies; time and size are limited.
 */
#ifndef ALERTSCALER_PORT_HTTP_H
#define ALERTSCALER_PORT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>

struct as_http_tls { /* files are read by the client at each new connection; NULL: not set */
    const char *ca_file, *cert_file, *key_file, *server_name;
    const char *ca_pem, *cert_pem, *key_pem; /* the same as text, from memory */
    bool insecure_skip_verify;
};

struct as_http_request { /* all borrowed for the call of start only */
    const char *method, *url;
    const char *const *headers; /* "Name: value" lines, NULL at the end; or NULL */
    const void *body;
    size_t body_size;
    int64_t timeout_us;  /* limit of the whole transfer */
    size_t max_response; /* bytes of body; a larger body is AS_HTTP_TOO_LARGE */
    struct as_http_tls tls;
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
