/*
 * Address and credentials of a Kubernetes cluster: in-cluster service account or kubeconfig, with
 * tokens that rotate and credential plugins that run without blocking. Also the namespace of
 * alertscaler's own objects.
 *
 * If neither is configured: a pod's service account, else the files of $KUBECONFIG, else
 * ~/.kube/config.
 */
#ifndef ALERTSCALER_KUBE_KUBE_ACCESS_H
#define ALERTSCALER_KUBE_KUBE_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/port/http.h>

struct as_kube_access;

struct as_kube_access_config {
    const char *kubeconfig; /* path of a file; NULL: see above */
    const char *context;    /* NULL: the current-context */
};

/* 0; or a negative errno with an error that names file and key. */
int as_kube_access_new(const struct as_kube_access_config *config, const struct as_access_env *env,
                       struct as_kube_access **access_out, struct as_error *error) AS_MUST_USE;
struct as_kube_access *as_kube_access_free(struct as_kube_access *access);

/* Calls `visit` for every file that an access with this configuration would read, and for its
 * credential plugin, as far as they can be found. */
typedef void as_kube_file_fn(void *context, const char *path, bool is_program);
void as_kube_access_visit_files(const struct as_kube_access_config *config,
                                const struct as_access_env *env, as_kube_file_fn *visit,
                                void *context);

/* The namespace that a command reads if none is given, as kubectl has it: that of the context, or
 * of the pod; else "default". Valid as long as the access. */
const char *as_kube_access_get_namespace(const struct as_kube_access *access);

struct as_kube_connection {    /* borrowed, valid until the next call on the access */
    const char *server;        /* "https://10.0.0.1:443", no slash at the end */
    const char *authorization; /* a whole header line, or NULL */
    const char *proxy_url;
    struct as_http_tls tls;
    uint64_t generation; /* of the credentials, for as_kube_access_renew */
};

enum as_kube_access_outcome { AS_KUBE_ACCESS_READY, AS_KUBE_ACCESS_PENDING };

/* READY; PENDING while a credential plugin runs (use as_kube_access_wait); or a negative errno with
 * an error if there are no credentials now. */
int as_kube_access_get(struct as_kube_access *access, struct as_kube_connection *connection_out,
                       struct as_error *error) AS_MUST_USE;

/* Called once, in a later turn, when the pending plugin has ended. Then call as_kube_access_get
 * again. */
struct as_kube_waiter {
    void (*ready)(void *context);
    void *context;
    LIST_ENTRY(as_kube_waiter) entry;
};

LIST_HEAD(as_kube_waiters, as_kube_waiter);

/* `waiter` is owned by the caller and must not move until it is called or cancelled. */
void as_kube_access_wait(struct as_kube_access *access, struct as_kube_waiter *waiter);
void as_kube_waiter_cancel(struct as_kube_waiter *waiter);

/* The server refused the credentials of this generation (401). True if as_kube_access_get may give
 * others next time; false for static credentials. */
bool as_kube_access_renew(struct as_kube_access *access, uint64_t generation) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_kube_access *, as_kube_access_free)

/*
 * The namespace of alertscaler's own objects: the configured one, else the pod's.
 */

/* `configured` may be NULL. 0 and memory that the caller frees with free(); or with an error:
 * -ENOENT if both are missing, -EINVAL if the name cannot be part of a path. */
int as_kube_namespace_find(const char *configured, const struct as_access_env *env,
                           char **namespace_out, struct as_error *error) AS_MUST_USE;

/*
 * Where Kubernetes mounts a pod's service account.
 */

#define AS_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

#endif
