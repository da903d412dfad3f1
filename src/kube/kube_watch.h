/*
 * A watch of one resource of an API server: a LIST in pages, then a WATCH from the list's version,
 * reopened every AS_KUBE_WATCH_S. Answers are read while they arrive; memory is one object, and
 * AS_HTTP_PART_MAX bytes for the transfer.
 *
 * A watch that breaks goes on from the last version that was told. The list begins anew when the
 * API server no longer knows that version (410) or does not know it yet (its state was restored),
 * and when an answer cannot be trusted: malformed, an unknown type of event, a version that goes
 * back, an object that the listener refuses. After the first 410 in a row it begins at once, also
 * after an outage. Failures are retried after 1 s, doubling up to 30 s, with jitter, and not before
 * a Retry-After is over.
 *
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_WATCH_H
#define ALERTSCALER_SRC_KUBE_KUBE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/time.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/kube/kube_stream.h>

struct as_kube_watch_listener {
    /* The objects of a whole list follow, as LISTED; what is not among them does not exist. A list
     * that fails begins anew, with another list_begin. */
    void (*list_begin)(void *context);
    /* LISTED, ADDED, MODIFIED or DELETED. The same change may come twice. 0, or a negative errno
     * with an error if the object cannot be used: the list begins anew, later. */
    int (*object)(void *context, enum as_kube_verb verb, enum as_kube_form form, const char *bytes,
                  size_t size, struct as_error *error);
    void (*list_end)(void *context, const char *resource_version);
    /* "list /api/v1/pods: HTTP 403: ...". A retry is planned. May come often. */
    void (*failed)(void *context, const char *message);
};

struct as_kube_watch_spec {
    const char *path;           /* "/api/v1/pods", escaped (kube_client.h); copied */
    const char *field_selector; /* "status.phase!=Failed"; copied; NULL: none */
    /* "team=shop"; copied; NULL: none. An object that no longer matches is DELETED. */
    const char *label_selector;
    const char *list_operation, *watch_operation; /* for metrics; static memory */
    bool wants_protobuf;                          /* where the server has it; else JSON */
    uint64_t seed;                                /* of the jitter */
};

struct as_kube_watch;

/* `client` and `listener` outlive the watch. list_begin and object must not stop the watch; the
 * others may. Nothing is called in the turn of the start. */
struct as_kube_watch *as_kube_watch_start(struct as_kube_client *client,
                                          const struct as_kube_watch_spec *spec,
                                          const struct as_kube_watch_listener *listener,
                                          void *context) AS_MUST_USE;
struct as_kube_watch *as_kube_watch_stop(struct as_kube_watch *watch); /* NULL is allowed */

/* A whole list has been told, and no other list has begun since. */
bool as_kube_watch_is_synced(const struct as_kube_watch *watch);

/* Until when everything had been told, as far as is known: the last event, the last bookmark, the
 * last time that a watch was opened, or the request of the list. Only once it has been synced. */
as_mono_time as_kube_watch_get_fresh_at(const struct as_kube_watch *watch);

/* The last event, the last bookmark, or the request of the list. A watch that is opened and then
 * stalls does not count. */
as_mono_time as_kube_watch_get_confirmed_at(const struct as_kube_watch *watch);

/* The last answer was a 403: the right to list or to watch is missing. */
bool as_kube_watch_is_forbidden(const struct as_kube_watch *watch);

AS_DEFINE_CLEANUP(struct as_kube_watch *, as_kube_watch_stop)

#endif
