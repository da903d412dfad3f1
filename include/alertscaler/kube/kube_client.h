/*
 * One request to a cluster's API server, with the cluster's credentials. Waits for a credential
 * plugin. After a 401 it asks for new credentials and tries once more.
 */
#ifndef ALERTSCALER_KUBE_KUBE_CLIENT_H
#define ALERTSCALER_KUBE_KUBE_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/kube_access.h>
#include <alertscaler/port/http.h>

struct as_kube_request;

struct as_kube_client { /* what all requests to a cluster share */
    const struct as_access_env *env;
    struct as_kube_access *access;
    LIST_HEAD(, as_kube_request) requests;
};

struct as_kube_request_spec { /* borrowed for the call of start only */
    const char *method;       /* static memory */
    const char *path;         /* "/apis/apps/v1", escaped (kube_path.h) */
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

#endif
