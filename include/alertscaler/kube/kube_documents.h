/*
 * Codecs for the objects of the Kubernetes API that scaling needs: Scale (autoscaling/v1 and the
 * group versions before it), discovery's APIResourceList, Status, Event, Lease, TokenReview, and
 * the credential plugins' ExecCredential. Pure. Unknown members are ignored.
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

/* "apps" of "apps/v1", for "%.*s"; 0 for the core group. */
int as_kube_get_group_size(const char *api_version);

/* YAML of a Role with its binding to the service account of the manifests; of a ClusterRole, if
 * `namespace_` is "". `rules`: lines that begin with two spaces. */
void as_kube_role_print(const char *namespace_, const char *name, const char *rules,
                        struct as_buf *out);

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

/*
 * Codec for a Lease (coordination.k8s.io/v1) as leader election uses it: client-go's record in
 * `spec`, and our kill switch in an annotation. Pure.
 *
 * An update starts from the object as it was read: labels, annotations and unknown fields stay.
 */

#define AS_LEASE_HOLDER_SIZE 256

/* Present with any value, even an empty one, it stops all actions. Its value is the reason. */
#define AS_LEASE_PAUSED_ANNOTATION "alertscaler.io/paused"

struct as_lease {                      /* spec */
    char holder[AS_LEASE_HOLDER_SIZE]; /* holderIdentity; "": nobody */
    int32_t duration_s;                /* leaseDurationSeconds; 0: not given */
    int32_t transitions;               /* leaseTransitions */
    as_maybe_time acquired, renewed;   /* by the writer's wall clock: for people */
};

struct as_lease_object {
    struct as_lease lease;
    char resource_version[AS_VERSION_SIZE]; /* never empty */
    bool is_paused;
    char paused[AS_MESSAGE_SIZE]; /* the reason, on one line */
};

/* 0, or -EBADMSG with an error that names the field. */
int as_lease_decode(const char *json, size_t size, struct as_lease_object *object_out,
                    struct as_error *error) AS_MUST_USE;

bool as_lease_is_same(const struct as_lease *a, const struct as_lease *b);

/* Append one document; `out` is `failed` if it does not fit. */
void as_lease_encode_new(const char *namespace_, const char *name, const struct as_lease *lease,
                         struct as_buf *out);
/* Based on `json`, which was decoded before and contains the expected resourceVersion. 0, or
 * -EBADMSG with an error. */
int as_lease_encode_update(const char *json, size_t size, const struct as_lease *lease,
                           struct as_buf *out, struct as_error *error) AS_MUST_USE;

/*
 * TokenReview of authentication.k8s.io/v1: asks an API server to whom a token belongs.
 */

#define AS_REVIEW_GROUPS_MAX 1000

struct as_reviewed {    /* its owner */
    bool authenticated; /* false: invalid, or for other audiences; the rest is empty */
    const char *user;
    const char *const *groups;
    size_t group_count;
};

/* Afterwards the buffer contains the token: wipe it. */
void as_token_review_encode(const char *token, const char *const *audiences, size_t audience_count,
                            struct as_buf *out);

/*
 * Calls `use` before it returns; the data are valid for that call. 0; or -EBADMSG with an error,
 * also if audiences were requested and the answer names none of them: an API server that does not
 * know audiences omits them, and would accept every token.
 */
typedef void as_reviewed_fn(void *context, const struct as_reviewed *reviewed);
int as_token_review_decode(const char *json, size_t size, const char *const *audiences,
                           size_t audience_count, as_reviewed_fn *use, void *context,
                           struct as_error *error) AS_MUST_USE;

#endif
