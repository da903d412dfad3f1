/*
 * One request to a cluster's API server, with the cluster's credentials: waits for a credential
 * plugin, and after a 401 asks for credentials again and tries once more.
 */
#ifndef ALERTSCALER_SRC_TARGET_KUBE_REQUEST_H
#define ALERTSCALER_SRC_TARGET_KUBE_REQUEST_H

#include <stddef.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/port/http.h>
#include <alertscaler/target/env.h>
#include <alertscaler/target/kube_access.h>

struct as_kube_request;

struct as_kube_client { /* what all requests to a cluster share */
    const struct as_target_env *env;
    struct as_kube_access *access;
    LIST_HEAD(, as_kube_request) requests;
};

struct as_kube_request_spec { /* borrowed for the call of start only */
    const char *method;
    const char *path;      /* "/apis/apps/v1", escaped */
    const char *operation; /* for metrics; static memory */
    const void *body;      /* JSON, or NULL */
    size_t body_size;
    size_t max_response;
};

/* `attempts`: requests that were sent. Where there are no credentials to be had, the outcome is
 * AS_HTTP_UNREACHABLE with 0 attempts. */
typedef void as_kube_request_done_fn(void *context, const struct as_http_response *response,
                                     unsigned attempts);

void as_kube_client_init(struct as_kube_client *client, const struct as_target_env *env,
                         struct as_kube_access *access);
void as_kube_client_deinit(struct as_kube_client *client); /* cancels what is under way */

/* `done` comes exactly once, in a later turn of the loop, unless cancelled first. */
struct as_kube_request *as_kube_request_start(struct as_kube_client *client,
                                              const struct as_kube_request_spec *spec,
                                              as_kube_request_done_fn *done,
                                              void *context) AS_MUST_USE;
void as_kube_request_cancel(struct as_kube_request *request);

#endif
