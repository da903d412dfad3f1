/*
 * Requests to a cluster's API server, with the cluster's credentials: one request, and complete
 * lists. A request waits for a credential plugin. After a 401 it asks for new credentials and tries
 * once more.
 */
#ifndef ALERTSCALER_KUBE_KUBE_CLIENT_H
#define ALERTSCALER_KUBE_KUBE_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/kube/kube_documents.h>
#include <alertscaler/kube/target_outcome.h>
#include <alertscaler/port/http.h>

struct as_kube_pages;
struct as_kube_request;

struct as_kube_client { /* what all requests to a cluster share */
    const struct as_access_env *env;
    struct as_kube_access *access;
    LIST_HEAD(, as_kube_request) requests;
};

struct as_kube_request_spec { /* borrowed for the call of start only */
    const char *method;       /* static memory */
    const char *path;         /* "/apis/apps/v1", escaped (see below) */
    const char *operation;    /* for metrics; static memory */
    const char *accept;       /* static memory; NULL: application/json */
    const char *content_type; /* of the body; static memory; NULL: application/json */
    const void *body;         /* or NULL */
    size_t body_size;
    size_t max_response;
    enum as_http_class class; /* as in as_http_request, like the flow */
    struct as_flow flow;
    int64_t timeout_us;       /* of one attempt; 0: AS_KUBE_TIMEOUT_US */
    int64_t idle_us;          /* as in as_http_request */
    as_http_body_fn *on_body; /* as in as_http_request, with the context of `done`; or NULL */
};

/* `attempts`: how many requests were sent. Without credentials the outcome is AS_HTTP_UNREACHABLE
 * with 0 attempts. */
typedef void as_kube_request_done_fn(void *context, const struct as_http_response *response,
                                     unsigned attempts);

void as_kube_client_init(struct as_kube_client *client, const struct as_access_env *env,
                         struct as_kube_access *access);
void as_kube_client_deinit(struct as_kube_client *client); /* cancels its requests */

/* `done` is called exactly once, in a later turn of the loop, unless cancelled first. */
struct as_kube_request *as_kube_request_start(struct as_kube_client *client,
                                              const struct as_kube_request_spec *spec,
                                              as_kube_request_done_fn *done,
                                              void *context) AS_MUST_USE;
void as_kube_request_cancel(struct as_kube_request *request);

/* As as_outcome_init; a failure has the message and the time to wait of the API server's Status.
 * *status_out, if wanted: all zero unless the response is such a failure. */
void as_kube_outcome_init(struct as_outcome *outcome, const struct as_http_response *response,
                          bool is_change, as_wall_time now, struct as_kube_status *status_out);

/*
 * Paths of the Kubernetes API. Every segment from outside is checked and escaped.
 */

/* Appends "/apis/apps/v1" or "/api/v1". 0, or -EINVAL if `api_version` is not an apiVersion. */
int as_kube_path_append_version(struct as_buf *path, const char *api_version) AS_MUST_USE;

/* Appends "/" and the segment. 0, or -EINVAL if the segment is empty, "." or "..". */
int as_kube_path_append(struct as_buf *path, const char *segment) AS_MUST_USE;

/* Appends '?' or '&', then name=value. `name` is not escaped. */
void as_kube_path_append_parameter(struct as_buf *path, const char *name, const char *value);

/*
 * A complete list from a cluster's API server, read page by page, as of one moment: everything, or
 * a failure.
 */

/* Called exactly once, in a later turn of the loop, unless cancelled first. */
typedef void as_kube_pages_done_fn(void *context, const struct as_outcome *outcome);

struct as_kube_pages_spec { /* texts but `path` and those of the flow: valid until `done` */
    const char *path;       /* with its selectors, copied; NULL: see `trouble` */
    struct as_flow flow;    /* copied */
    const char *trouble;
    const char *operation; /* for metrics: "list_pods" */
    const char *what;      /* for messages: "list pods" */
    const char *right;     /* missing if the answer is 403: "pods: list" */
    const char *accept;    /* as in as_kube_request_spec */
    /* Takes a page: 0 with the token of the next page, to be freed, or NULL; else an error that
     * says why. */
    int (*take)(void *into, const char *json, size_t size, char **next_out, struct as_error *error);
    void (*clear)(void *into); /* drops what was taken: the list restarts, or has failed */
    void *into;                /* NULL: context */
    as_kube_pages_done_fn *done;
    void *context;
};

struct as_kube_pages *as_kube_pages_start(struct as_kube_client *client,
                                          const struct as_kube_pages_spec *spec) AS_MUST_USE;
void as_kube_pages_cancel(struct as_kube_pages *pages);

#endif
