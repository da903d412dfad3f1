/*
 * Codec for a Lease (coordination.k8s.io/v1) as leader election uses it: client-go's record in
 * `spec`, and our kill switch in an annotation. Pure.
 *
 * An update starts from the object as it was read: labels, annotations and unknown fields stay.
 */
#ifndef ALERTSCALER_SRC_KUBE_LEASE_H
#define ALERTSCALER_SRC_KUBE_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/decide/observation.h>

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

#endif
