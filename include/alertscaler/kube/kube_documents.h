/*
 * Codecs for the objects of the Kubernetes API that scaling needs: Scale (autoscaling/v1 and the
 * group versions before it), discovery's APIResourceList, Status, Event, and the credential
 * plugins' ExecCredential. Pure. Unknown members are ignored.
 *
 * Decoders: 0, or -EBADMSG with an error that names the field. Encoders append one JSON document;
 * `out` is `failed` when it does not fit.
 */
#ifndef ALERTSCALER_KUBE_KUBE_DOCUMENTS_H
#define ALERTSCALER_KUBE_KUBE_DOCUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/observation.h>

struct as_kube_scale {
    int32_t replicas;        /* spec.replicas; absent is 0, as the API leaves zeros out */
    int32_t status_replicas; /* status.replicas; absent is 0 */
    char uid[AS_UID_SIZE];
    char resource_version[AS_VERSION_SIZE]; /* never empty */
};

int as_kube_scale_decode(const char *json, size_t size, struct as_kube_scale *scale_out,
                         struct as_error *error) AS_MUST_USE;

struct as_kube_scale_update {
    const char *api_version; /* of the Scale kind: "autoscaling/v1", "extensions/v1beta1", ... */
    const char *namespace_;  /* "" for a cluster-wide object */
    const char *name;
    const char *resource_version; /* "": unconditional */
    int32_t replicas;
};

void as_kube_scale_encode(const struct as_kube_scale_update *update, struct as_buf *out);

/* One kind of a group version. */
struct as_kube_resource {
    char *kind;
    char *plural;
    char *scale_version; /* apiVersion of its Scale; NULL: no scale subresource */
    bool is_namespaced;
};

struct as_kube_resources {
    size_t count;
    struct as_kube_resource *items;
};

int as_kube_resources_decode(const char *json, size_t size, struct as_kube_resources **list_out,
                             struct as_error *error) AS_MUST_USE;
struct as_kube_resources *as_kube_resources_free(struct as_kube_resources *list);
/* The resource of a kind, preferably one with a scale subresource; NULL if there is none. */
const struct as_kube_resource *as_kube_resources_find(const struct as_kube_resources *list,
                                                      const char *kind);
AS_DEFINE_CLEANUP(struct as_kube_resources *, as_kube_resources_free)

struct as_kube_status {
    int code; /* as the HTTP status; 0: not said */
    char reason[AS_MESSAGE_SIZE], message[AS_MESSAGE_SIZE];
    bool names_object;      /* details.name is given: the error is about an object, not a path */
    bool has_causes;        /* details.causes says which fields are wrong */
    int64_t retry_after_us; /* details.retryAfterSeconds; 0: absent */
};

int as_kube_status_decode(const char *json, size_t size, struct as_kube_status *status_out,
                          struct as_error *error) AS_MUST_USE;

struct as_kube_event {
    const char *api_version, *kind, *namespace_, *name, *uid; /* of the involved object */
    const char *reason, *message;
    bool is_warning;
    as_wall_time at;
};

void as_kube_event_encode(const struct as_kube_event *event, struct as_buf *out);

/* What KUBERNETES_EXEC_INFO tells a plugin; `server` NULL: nothing about the cluster. */
struct as_kube_exec_info {
    const char *api_version; /* client.authentication.k8s.io/v1 or v1beta1 */
    const char *server, *tls_server_name, *ca_base64, *proxy_url;
    bool insecure_skip_verify;
};

void as_kube_exec_info_encode(const struct as_kube_exec_info *info, struct as_buf *out);

struct as_kube_exec_credential {
    char *token, *cert_pem, *key_pem; /* NULL where absent */
    as_maybe_time expires;
};

/* Also -EBADMSG if its apiVersion is not `api_version`, or if it has no credential. */
int as_kube_exec_credential_decode(const char *json, size_t size, const char *api_version,
                                   struct as_kube_exec_credential *credential_out,
                                   struct as_error *error) AS_MUST_USE;
void as_kube_exec_credential_deinit(struct as_kube_exec_credential *credential); /* wipes too */

#endif
