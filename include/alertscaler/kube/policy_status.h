/*
 * Writes the status of scaling policies: server-side apply of the subresource `status`, as the
 * field manager `alertscaler`. The UID is part of the request, so that a successor of the same name
 * does not get the status of its predecessor.
 *
 * A policy has one request under way and one status that waits: the newest. Statuses with a changed
 * condition are sent first. What the API server cannot do now is tried again; what it refuses, or
 * what is about an object that is gone, is dropped.
 */
#ifndef ALERTSCALER_KUBE_POLICY_STATUS_H
#define ALERTSCALER_KUBE_POLICY_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/kube/kube_client.h>

#define AS_POLICY_STATUS_A_SECOND     50                         /* requests */
#define AS_POLICY_STATUS_UNDER_WAY    16                         /* requests at a time */
#define AS_POLICY_STATUS_BYTES        ((size_t)64 * 1024 * 1024) /* that wait; more is dropped */
#define AS_POLICY_STATUS_RETRY_US     (1 * AS_US_PER_S)          /* the first wait, which doubles */
#define AS_POLICY_STATUS_RETRY_MAX_US (60 * AS_US_PER_S)

struct as_policy_status_writer;

/* The API server has this status now, and no newer one waits. */
typedef void as_policy_status_written_fn(void *context, const char *namespace, const char *name,
                                         const char *uid);

/* `client` outlives the writer. */
struct as_policy_status_writer *as_policy_status_writer_new(struct as_kube_client *client,
                                                            as_policy_status_written_fn *written,
                                                            void *context) AS_MUST_USE;
/* Cancels its requests; NULL is allowed. */
struct as_policy_status_writer *as_policy_status_writer_free(
    struct as_policy_status_writer *writer);

/* `json`: the object's member `status`; copied. */
void as_policy_status_put(struct as_policy_status_writer *writer, const char *namespace,
                          const char *name, const char *uid, const char *json, size_t size,
                          bool is_urgent);

/* Posts an Event on the policy: best effort, as the Events on scaled objects. */
void as_policy_status_post_event(struct as_policy_status_writer *writer, const char *namespace,
                                 const char *name, const char *uid, const char *reason,
                                 const char *message);

struct as_policy_status_counts {
    uint64_t written;
    uint64_t failed; /* requests that failed, and statuses that were dropped */
    size_t waiting;  /* policies whose status is not written yet */
};
struct as_policy_status_counts as_policy_status_get_counts(
    const struct as_policy_status_writer *writer);

AS_DEFINE_CLEANUP(struct as_policy_status_writer *, as_policy_status_writer_free)

#endif
