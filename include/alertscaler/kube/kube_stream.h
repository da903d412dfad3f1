/*
 * Lists and watches of the Kubernetes API, read while they arrive: parts of bytes in, cut anywhere;
 * objects, bookmarks and errors out, in order. An object is given as its bytes, unread. Memory: one
 * object, and the part that is being read. Pure.
 *
 * JSON is checked by its grammar, without the UTF-8 of texts. The bytes of a binary object are not
 * checked. Limits: decide/notification.h.
 */
#ifndef ALERTSCALER_KUBE_KUBE_STREAM_H
#define ALERTSCALER_KUBE_KUBE_STREAM_H

#include <stddef.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/kube/kube_documents.h>

enum as_kube_stream_kind { AS_KUBE_STREAM_LIST, AS_KUBE_STREAM_WATCH };

enum as_kube_form { AS_KUBE_JSON, AS_KUBE_PROTOBUF };

enum as_kube_verb {
    AS_KUBE_LISTED, /* an element of a list */
    AS_KUBE_ADDED,
    AS_KUBE_MODIFIED,
    AS_KUBE_DELETED,
    AS_KUBE_BOOKMARK, /* everything up to resource_version has been told */
    AS_KUBE_ERROR     /* the watch is over: `status` */
};

struct as_kube_stream_event { /* borrowed for the call */
    enum as_kube_verb verb;
    enum as_kube_form form;
    /* LISTED, ADDED, MODIFIED, DELETED: the text of one JSON object, or one message without the
     * envelope ("k8s\0", runtime.Unknown). Not NUL-terminated. */
    const char *object;
    size_t size;
    const char *resource_version;        /* ADDED, MODIFIED, DELETED, BOOKMARK: never empty */
    const struct as_kube_status *status; /* ERROR */
};

/* 0, or a negative errno with an error, which ends the reading. */
typedef int as_kube_stream_fn(void *context, const struct as_kube_stream_event *event,
                              struct as_error *error);

struct as_kube_stream;

struct as_kube_stream *as_kube_stream_new(enum as_kube_stream_kind kind, enum as_kube_form form,
                                          as_kube_stream_fn *take, void *context) AS_MUST_USE;
struct as_kube_stream *as_kube_stream_free(struct as_kube_stream *stream);

/* The next part of the body; calls `take` for what is complete. 0, or with an error that names the
 * place: -EBADMSG for what is malformed, -EMSGSIZE above a limit, what `take` returned. After a
 * failure the stream is good for free only. */
int as_kube_stream_feed(struct as_kube_stream *stream, const char *bytes, size_t size,
                        struct as_error *error) AS_MUST_USE;

/* The body has ended. -EBADMSG if it ends early, or if it was no list. */
int as_kube_stream_finish(struct as_kube_stream *stream, struct as_error *error) AS_MUST_USE;

/* Of a list, once it is finished; borrowed. The token of the next page is "" behind the last. */
const char *as_kube_stream_get_version(const struct as_kube_stream *stream);
const char *as_kube_stream_get_continue(const struct as_kube_stream *stream);

/* The Status in the body of an answer that is an error, in either form. -EBADMSG if there is none.
 */
int as_kube_stream_read_status(const char *body, size_t size, struct as_kube_status *status_out,
                               struct as_error *error) AS_MUST_USE;

AS_DEFINE_CLEANUP(struct as_kube_stream *, as_kube_stream_free)

#endif
