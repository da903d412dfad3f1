/*
 * What the readers of both forms share (kube_stream.h): the object that is being read, and what is
 * known of the list or the event around it.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_STREAM_PRIVATE_H
#define ALERTSCALER_SRC_KUBE_KUBE_STREAM_PRIVATE_H

#include <stdbool.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/kube/kube_stream.h>

/* Some bytes of the stream: in the present part if all of them are there, else in `kept`. */
struct kube_capture {
    const char *from, *to; /* in the present part; from NULL: nothing; to NULL: it goes on */
    struct as_buf kept;    /* what earlier parts had */
};

void kube_capture_begin(struct kube_capture *capture, const char *from);
/* These two: 0, or -EMSGSIZE above the limit. */
int kube_capture_end(struct kube_capture *capture, const char *to) AS_MUST_USE;
/* The present part ends at `end`; another one begins at `next`. */
int kube_capture_end_part(struct kube_capture *capture, const char *end) AS_MUST_USE;
void kube_capture_begin_part(struct kube_capture *capture, const char *next);
/* The bytes, once it has ended; good until the next capture begins or the part ends. */
int kube_capture_take(struct kube_capture *capture, const char **bytes_out,
                      size_t *size_out) AS_MUST_USE;

/* What is read of a list or a watch, in one form. */
struct as_kube_stream {
    const struct kube_stream_form *form;
    enum as_kube_stream_kind kind;
    as_kube_stream_fn *take;
    void *context;

    struct kube_capture object;
    char version[AS_VERSION_SIZE]; /* of the list, or of the present event's object */
    struct as_buf next;            /* the list's continue */
    size_t item;                   /* of the list */
    bool is_list;                  /* its kind is that of a list */
    bool is_complete;              /* the list */
};

struct kube_stream_form {
    enum as_kube_form name;
    struct as_kube_stream *(*allocate)(enum as_kube_stream_kind kind);
    void (*release)(struct as_kube_stream *stream); /* what is the form's own */
    int (*feed)(struct as_kube_stream *stream, const char *bytes, size_t size,
                struct as_error *error);
    bool (*is_inside)(const struct as_kube_stream *stream); /* an event of a watch */
};

extern const struct kube_stream_form kube_stream_json, kube_stream_protobuf;

/* Hands over the captured object as the next element of the list. */
int kube_stream_take_item(struct as_kube_stream *stream, struct as_error *error) AS_MUST_USE;

/* Hands over an event of a watch. `verb` is checked: "ADDED", ... `object` is the captured one, or
 * that in the envelope. `status` is asked for where `verb` is ERROR. */
typedef int kube_stream_status_fn(const char *object, size_t size, struct as_kube_status *out,
                                  struct as_error *error);
int kube_stream_take_event(struct as_kube_stream *stream, const char *verb, size_t verb_size,
                           const char *object, size_t size, kube_stream_status_fn *read_status,
                           struct as_error *error) AS_MUST_USE;

/* What a list or an object says about itself. -EMSGSIZE if it is too long. */
int kube_stream_set_version(struct as_kube_stream *stream, const char *text, size_t size,
                            struct as_error *error) AS_MUST_USE;
int kube_stream_set_continue(struct as_kube_stream *stream, const char *text, size_t size,
                             struct as_error *error) AS_MUST_USE;
void kube_stream_set_kind(struct as_kube_stream *stream, const char *text, size_t size);

#endif
