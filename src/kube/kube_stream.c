/*
 * Lists and watches while they arrive: see the header. Here is what does not depend on the form.
 */
#include "kube_stream_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/document_limits.h>

/* ---- captures ---- */

void kube_capture_begin(struct kube_capture *capture, const char *from)
{
    as_buf_clear(&capture->kept);
    capture->from = from;
    capture->to = NULL;
}

/* So far, with the present part up to `end`. */
static int check_size(const struct kube_capture *capture, const char *end)
{
    return (size_t)(end - capture->from) > AS_KUBE_OBJECT_MAX - capture->kept.size ? -EMSGSIZE : 0;
}

int kube_capture_end(struct kube_capture *capture, const char *to)
{
    capture->to = to;
    return check_size(capture, to);
}

int kube_capture_end_part(struct kube_capture *capture, const char *end)
{
    if (!capture->from)
        return 0;
    const char *to = capture->to ? capture->to : end;
    if (check_size(capture, to) < 0)
        return -EMSGSIZE;
    as_buf_append(&capture->kept, capture->from, (size_t)(to - capture->from));
    return as_buf_check(&capture->kept);
}

void kube_capture_begin_part(struct kube_capture *capture, const char *next)
{
    if (!capture->from)
        return;
    capture->from = next;
    if (capture->to)
        capture->to = next; /* it is whole; nothing of it comes any more */
}

int kube_capture_take(struct kube_capture *capture, const char **bytes_out, size_t *size_out)
{
    const char *from = capture->from;
    const size_t rest = (size_t)(capture->to - from);
    capture->from = NULL;
    *bytes_out = from;
    *size_out = rest;
    if (capture->kept.size == 0)
        return 0;
    as_buf_append(&capture->kept, from, rest);
    *bytes_out = capture->kept.data;
    *size_out = capture->kept.size;
    return as_buf_check(&capture->kept);
}

/* ---- what is told ---- */

int kube_stream_set_version(struct as_kube_stream *stream, const char *text, size_t size,
                            struct as_error *error)
{
    if (size >= sizeof(stream->version) || memchr(text, '\0', size)) {
        as_error_set(error, "metadata.resourceVersion: expected a text of less than %zu bytes",
                     sizeof(stream->version));
        return -EMSGSIZE;
    }
    memcpy(stream->version, text, size);
    stream->version[size] = '\0';
    return 0;
}

int kube_stream_set_continue(struct as_kube_stream *stream, const char *text, size_t size,
                             struct as_error *error)
{
    as_buf_clear(&stream->next);
    as_buf_append(&stream->next, text, size);
    if (as_buf_check(&stream->next) == 0 && !memchr(text, '\0', size))
        return 0;
    as_error_set(error, "metadata.continue: expected a text of at most %zu bytes",
                 AS_KUBE_CONTINUE_MAX);
    return -EMSGSIZE;
}

void kube_stream_set_kind(struct as_kube_stream *stream, const char *text, size_t size)
{
    stream->is_list = size >= 4 && memcmp(text + size - 4, "List", 4) == 0;
}

int kube_stream_take_item(struct as_kube_stream *stream, struct as_error *error)
{
    struct as_kube_stream_event event = {.verb = AS_KUBE_LISTED, .form = stream->form->name};
    int status = kube_capture_take(&stream->object, &event.object, &event.size);
    if (status == 0)
        status = stream->take(stream->context, &event, error);
    if (status)
        as_error_wrap(error, "items[%zu]", stream->item);
    stream->item++;
    return status;
}

static bool find_verb(const char *text, size_t size, enum as_kube_verb *verb_out)
{
    static const char *const names[] = {
        [AS_KUBE_LISTED] = "",           [AS_KUBE_ADDED] = "ADDED",
        [AS_KUBE_MODIFIED] = "MODIFIED", [AS_KUBE_DELETED] = "DELETED",
        [AS_KUBE_BOOKMARK] = "BOOKMARK", [AS_KUBE_ERROR] = "ERROR"};
    for (size_t i = AS_KUBE_ADDED; i < AS_ARRAY_SIZE(names); i++) {
        if (strlen(names[i]) == size && memcmp(names[i], text, size) == 0) {
            *verb_out = (enum as_kube_verb)i;
            return true;
        }
    }
    return false;
}

int kube_stream_take_event(struct as_kube_stream *stream, const char *verb, size_t verb_size,
                           const char *object, size_t size, kube_stream_status_fn *read_status,
                           struct as_error *error)
{
    struct as_kube_stream_event event = {.form = stream->form->name};
    struct as_kube_status status = {.code = 0};
    if (!find_verb(verb, verb_size, &event.verb)) {
        as_error_set(error, "type: unknown type of event");
        return -EBADMSG;
    }
    if (event.verb == AS_KUBE_ERROR) {
        int code = read_status(object, size, &status, error);
        event.status = &status;
        if (code)
            return code;
    } else if (!*stream->version) {
        as_error_set(error, "object.metadata.resourceVersion: missing");
        return -EBADMSG;
    } else {
        event.resource_version = stream->version;
    }
    if (event.verb != AS_KUBE_ERROR && event.verb != AS_KUBE_BOOKMARK) {
        event.object = object;
        event.size = size;
    }
    return stream->take(stream->context, &event, error);
}

/* ---- the stream ---- */

struct as_kube_stream *as_kube_stream_new(enum as_kube_stream_kind kind, enum as_kube_form form,
                                          as_kube_stream_fn *take, void *context)
{
    const struct kube_stream_form *own =
        form == AS_KUBE_PROTOBUF ? &kube_stream_protobuf : &kube_stream_json;
    struct as_kube_stream *stream = own->allocate(kind);
    stream->form = own;
    stream->kind = kind;
    stream->take = take;
    stream->context = context;
    stream->object.kept = AS_BUF_INIT_OPEN(AS_KUBE_OBJECT_MAX);
    stream->next = AS_BUF_INIT_OPEN(AS_KUBE_CONTINUE_MAX);
    return stream;
}

struct as_kube_stream *as_kube_stream_free(struct as_kube_stream *stream)
{
    if (!stream)
        return NULL;
    stream->form->release(stream);
    as_buf_deinit(&stream->object.kept);
    as_buf_deinit(&stream->next);
    free(stream);
    return NULL;
}

int as_kube_stream_feed(struct as_kube_stream *stream, const char *bytes, size_t size,
                        struct as_error *error)
{
    kube_capture_begin_part(&stream->object, bytes);
    return stream->form->feed(stream, bytes, size, error);
}

int as_kube_stream_finish(struct as_kube_stream *stream, struct as_error *error)
{
    const char *missing = NULL;
    if (stream->kind == AS_KUBE_STREAM_WATCH)
        missing = stream->form->is_inside(stream) ? "the watch ends within an event" : NULL;
    else if (!stream->is_complete)
        missing = "the list ends early";
    else if (!stream->is_list)
        missing = "kind: expected that of a list";
    else if (!*stream->version)
        missing = "metadata.resourceVersion: missing";
    if (missing)
        as_error_set(error, "%s", missing);
    return missing ? -EBADMSG : 0;
}

const char *as_kube_stream_get_version(const struct as_kube_stream *stream)
{
    return stream->version;
}

const char *as_kube_stream_get_continue(const struct as_kube_stream *stream)
{
    return stream->next.size > 0 ? stream->next.data : "";
}
