/*
 * Port: an asynchronous HTTP client: the request, its outcome, and the response. No redirects, no
 * cookies; time and size are limited. The adapter is in http/; it does not retry.
 */
#ifndef ALERTSCALER_PORT_HTTP_H
#define ALERTSCALER_PORT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/fair_queue.h>

struct as_http_call;

/* Which places a request may have at its server, where places are limited.
 * Each class has places of its own at each origin: none waits for another. In a class, places are
 * given by the request's flow. */
enum as_http_class {
    AS_HTTP_CALL,
    AS_HTTP_REVIEW, /* of a client's token */
    AS_HTTP_LEASE,  /* of the leader */
    AS_HTTP_WATCH,  /* lasts long: a watch, and the list before it */
    AS_HTTP_CLASS_COUNT
};

/* How a request's connection is secured. */
struct as_http_tls { /* files are read by the client at each new connection; NULL: not set */
    const char *ca_file, *cert_file, *key_file, *server_name;
    const char *ca_pem, *cert_pem, *key_pem; /* the same as text, from memory */
    bool insecure_skip_verify;
};

#define AS_HTTP_PART_MAX ((size_t)64 * 1024) /* bytes of one call in one turn of the loop */

/*
 * The body of a response, read while it arrives.
 *
 * Called first when the head of a 2xx answer is there, maybe with 0 bytes; then with each part of
 * the body, in order. What has arrived is read before `done`, also when the call has failed.
 *
 * `context` is that of `done`. `content_type` is "" where absent. `bytes` is valid during the call
 * and has no NUL behind it. The function may start and cancel any call, its own too. False ends the
 * call as AS_HTTP_BROKEN.
 */
typedef bool as_http_body_fn(void *context, const char *content_type, const char *bytes,
                             size_t size);

struct as_http_request { /* all borrowed for the call of start only */
    const char *method, *url;
    const char *const *headers; /* "Name: value" lines, NULL at the end; or NULL */
    const void *body;
    size_t body_size;
    int64_t timeout_us;       /* limit of the whole transfer */
    int64_t idle_us;          /* without a byte for so long: AS_HTTP_TIMEOUT; 0: no limit */
    size_t max_response;      /* bytes of body that is collected; more: AS_HTTP_TOO_LARGE, but a 401
                               * or 403 is ANSWERED with the beginning of its body */
    as_http_body_fn *on_body; /* reads 2xx bodies, which `done` then lacks; NULL: all collected */
    /* With a login (login/http_auth.h): called with `context` right before the request is sent, as
     * it may have waited. False: AS_HTTP_UNSENT. NULL: it is sent. */
    bool (*permit)(void *context);
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
    AS_HTTP_TOO_LARGE,   /* as BROKEN */
    AS_HTTP_UNSENT       /* its login failed: nothing was sent to the server (login/http_auth.h) */
};

struct as_http_response { /* valid during the callback */
    enum as_http_outcome outcome;
    bool may_pass; /* UNSENT: the login may succeed later without a person */
    int status;
    const char *body; /* NUL-terminated, never NULL */
    size_t body_size;
    const char *etag, *retry_after, *content_type, *location; /* "" where absent */
    const char *fields; /* header and trailer fields, read by as_http_response_find; NULL: none */
    const char *error;  /* for a person; set unless AS_HTTP_ANSWERED */
};
typedef void as_http_done_fn(void *context, const struct as_http_response *response);
struct as_http {
    /* `done` is called exactly once, in a later turn of the loop, unless cancelled first. */
    struct as_http_call *(*start)(struct as_http *self, const struct as_http_request *request,
                                  as_http_done_fn *done, void *context)AS_MUST_USE;
    void (*cancel)(struct as_http *self, struct as_http_call *call); /* no `done` afterwards */
};

/* The header fields of a response, followed by its trailer fields: "name\0value\0...", ended by an
 * empty name. Fields that contain a NUL are left out.
 *
 * The value of the first field of this name, ignoring case; "" if there is no such field. */
static inline const char *as_http_response_find(const struct as_http_response *response,
                                                const char *name)
{
    const char *at = response->fields ? response->fields : "";
    while (*at) {
        const char *value = at + strlen(at) + 1;
        if (strcasecmp(at, name) == 0)
            return value;
        at = value + strlen(value) + 1;
    }
    return "";
}

#endif
