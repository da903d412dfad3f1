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
    int64_t timeout_us;  /* whole transfer */
    size_t max_response; /* bytes of body; more is AS_HTTP_TOO_LARGE */
    struct as_http_tls tls;
    bool is_http2;         /* the other side speaks HTTP/2, also where there is no TLS to say so */
    const char *proxy_url; /* NULL: none, whatever the environment says */
    const char *client_name; /* for metrics: "kubernetes", ...; static memory; NULL: not counted */
    const char *operation;   /* for metrics: "get_scale", ...; static memory */
};

enum as_http_outcome {
    AS_HTTP_ANSWERED,    /* there is a status */
    AS_HTTP_UNREACHABLE, /* nothing of the request can have been carried out */
    AS_HTTP_BROKEN,      /* failed after something was sent: it may have been carried out */
    AS_HTTP_TIMEOUT,     /* likewise */
    AS_HTTP_TOO_LARGE    /* likewise */
};

struct as_http_response { /* good during the callback */
    enum as_http_outcome outcome;
    int status;
    const char *body; /* NUL-terminated, never NULL */
    size_t body_size;
    const char *etag, *retry_after, *content_type, *location; /* "" where absent */
    const char *fields; /* of head and trailer, as http_fields.h reads them; NULL: none */
    const char *error;  /* for a person, where not AS_HTTP_ANSWERED */
};

typedef void as_http_done_fn(void *context, const struct as_http_response *response);
struct as_http_call;
struct as_http {
    /* `done` comes exactly once, in a later turn of the loop, unless it is cancelled first. */
    struct as_http_call *(*start)(struct as_http *self, const struct as_http_request *request,
                                  as_http_done_fn *done, void *context)AS_MUST_USE;
    void (*cancel)(struct as_http *self, struct as_http_call *call); /* no `done` after it */
};

#endif
