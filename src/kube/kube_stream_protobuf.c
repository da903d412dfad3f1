/*
 * Lists and watches in Kubernetes' binary form: see kube_stream.h.
 *
 * A list is "k8s\0" and a runtime.Unknown, whose `raw` is the list, for instance a PodList. `raw`
 * is walked while it arrives: only its elements, and the small messages, are captured. A watch is a
 * sequence of frames: a length of 4 bytes, the highest first, and a WatchEvent, whose object has an
 * envelope of its own. Field numbers: k8s.io/apimachinery, pkg/runtime and pkg/apis/meta/v1,
 * generated.proto. All lists have `metadata` 1 and `items` 2, all objects `metadata` 1.
 */
#include "kube_stream_private.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/protobuf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/document_limits.h>

#define MAGIC       "k8s"
#define MAGIC_SIZE  4U /* with its NUL */
#define LENGTH_SIZE 4U /* of a frame */

enum { UNKNOWN_TYPE = 1, UNKNOWN_RAW = 2, UNKNOWN_ENCODING = 3 }; /* runtime.Unknown */
enum { TYPE_KIND = 2 };                                           /* runtime.TypeMeta */
enum { LIST_METADATA = 1, LIST_ITEMS = 2 };
enum { LIST_META_VERSION = 2, LIST_META_CONTINUE = 3 }; /* meta.v1.ListMeta */
enum { EVENT_TYPE = 1, EVENT_OBJECT = 2 };              /* meta.v1.WatchEvent */
enum { EXTENSION_RAW = 1 };                             /* runtime.RawExtension */
enum { OBJECT_METADATA = 1, OBJECT_META_VERSION = 6 };  /* meta.v1.ObjectMeta */
enum { STATUS_MESSAGE = 3, STATUS_REASON = 4, STATUS_DETAILS = 5, STATUS_CODE = 6 };
enum { DETAILS_NAME = 1, DETAILS_RETRY_AFTER = 5 };

enum state {
    IN_HEAD,  /* the magic, or the length of a frame */
    AT_FIELD, /* in a tag, or before it */
    IN_VALUE, /* of a varint */
    IN_SIZE,  /* of bytes */
    IN_REST,  /* of a field that is passed over */
    IN_CAPTURE
};

struct proto_stream {
    struct as_kube_stream stream; /* the first member: the stream is cast to this one */
    enum state state;
    const char *begin, *at, *end; /* of the present part */
    uint64_t offset;              /* of `begin` */
    uint64_t left;                /* bytes of the field or of the frame that are still to come */
    uint64_t list_end;            /* offset of the end of `raw`; 0: not within it */
    uint64_t varint;
    unsigned shift; /* of the next byte of the varint, or of the head */
    unsigned field;
    bool has_list;
};

static struct proto_stream *get_proto(const struct as_kube_stream *stream)
{
    return (struct proto_stream *)(uintptr_t)stream;
}

static uint64_t get_offset(const struct proto_stream *proto)
{
    return proto->offset + (uint64_t)(proto->at - proto->begin);
}

static AS_RARE int fail(const struct proto_stream *proto, const char *what, struct as_error *error)
{
    as_error_set(error, "byte %llu: %s", (unsigned long long)get_offset(proto), what);
    return -EBADMSG;
}

static AS_RARE int fail_limit(const struct proto_stream *proto, struct as_error *error)
{
    fail(proto, "the object is larger than 3 MiB", error);
    return -EMSGSIZE;
}

/* ---- messages that are there as a whole ---- */

/* The last field of this number with bytes; false if there is none, or the message is malformed. */
static bool find_bytes(const void *message, size_t size, unsigned number,
                       struct as_protobuf_field *field_out)
{
    struct as_protobuf_reader reader;
    struct as_protobuf_field field;
    bool is_found = false;
    as_protobuf_reader_init(&reader, message, size);
    while (as_protobuf_next(&reader, &field)) {
        if (field.number != number || field.type != AS_PROTOBUF_BYTES)
            continue;
        *field_out = field;
        is_found = true;
    }
    return is_found && !reader.is_malformed;
}

/* A Kubernetes object's metadata.resourceVersion. Nothing behind the metadata is read. */
static bool find_version(const char *object, size_t size, struct as_protobuf_field *field_out)
{
    struct as_protobuf_reader reader;
    struct as_protobuf_field field;
    as_protobuf_reader_init(&reader, object, size);
    while (as_protobuf_next(&reader, &field))
        if (field.number == OBJECT_METADATA && field.type == AS_PROTOBUF_BYTES)
            return find_bytes(field.data, field.size, OBJECT_META_VERSION, field_out);
    return false;
}

/* The object within its envelope. */
static bool open_envelope(const void *bytes, size_t size, const char **object_out, size_t *size_out)
{
    struct as_protobuf_field raw, encoding;
    if (size < MAGIC_SIZE || memcmp(bytes, MAGIC, MAGIC_SIZE) != 0)
        return false;
    bytes = (const char *)bytes + MAGIC_SIZE;
    size -= MAGIC_SIZE;
    if (!find_bytes(bytes, size, UNKNOWN_RAW, &raw) ||
        (find_bytes(bytes, size, UNKNOWN_ENCODING, &encoding) && encoding.size > 0))
        return false;
    *object_out = (const char *)raw.data;
    *size_out = raw.size;
    return true;
}

static void copy_line(const struct as_protobuf_field *field, char line_out[AS_MESSAGE_SIZE])
{
    const char *bytes = (const char *)field->data;
    char text[AS_MESSAGE_SIZE];
    const size_t size = as_str_cut_utf8(bytes, field->size, sizeof(text) - 1);
    memcpy(text, bytes, size);
    text[size] = '\0';
    as_str_copy_line(text, line_out, AS_MESSAGE_SIZE);
}

static void read_details(const struct as_protobuf_field *details, struct as_kube_status *status)
{
    struct as_protobuf_reader reader;
    struct as_protobuf_field field;
    int32_t seconds = 0;
    as_protobuf_reader_init(&reader, details->data, details->size);
    while (as_protobuf_next(&reader, &field)) {
        if (field.number == DETAILS_NAME && field.type == AS_PROTOBUF_BYTES)
            status->names_object = field.size > 0;
        if (field.number == DETAILS_RETRY_AFTER && as_protobuf_get_int32(&field, &seconds) &&
            seconds > 0)
            status->retry_after_us = seconds * AS_US_PER_S;
    }
}

static int read_status(const char *object, size_t size, struct as_kube_status *status_out,
                       struct as_error *error)
{
    struct as_protobuf_reader reader;
    struct as_protobuf_field field;
    struct as_kube_status status = {.code = 0};
    int32_t code = 0;
    as_protobuf_reader_init(&reader, object, size);
    while (as_protobuf_next(&reader, &field)) {
        const bool is_bytes = field.type == AS_PROTOBUF_BYTES;
        if (field.number == STATUS_MESSAGE && is_bytes)
            copy_line(&field, status.message);
        else if (field.number == STATUS_REASON && is_bytes)
            copy_line(&field, status.reason);
        else if (field.number == STATUS_DETAILS && is_bytes)
            read_details(&field, &status);
        else if (field.number == STATUS_CODE && as_protobuf_get_int32(&field, &code))
            status.code = code > 0 && code < 1000 ? code : 0;
    }
    if (reader.is_malformed) {
        as_error_set(error, "Status: malformed");
        return -EBADMSG;
    }
    *status_out = status;
    return 0;
}

int as_kube_stream_read_status(const char *body, size_t size, struct as_kube_status *status_out,
                               struct as_error *error)
{
    const char *object;
    size_t object_size;
    if (size == 0 || *body != MAGIC[0])
        return as_kube_status_decode(body, size, status_out, error);
    if (open_envelope(body, size, &object, &object_size))
        return read_status(object, object_size, status_out, error);
    as_error_set(error, "Status: malformed");
    return -EBADMSG;
}

/* ---- a watch ---- */

static int take_frame(struct proto_stream *proto, const char *frame, size_t size,
                      struct as_error *error)
{
    struct as_kube_stream *stream = &proto->stream;
    struct as_protobuf_field type = {0}, extension = {0}, raw = {0}, version;
    const char *object;
    size_t object_size;
    if (!find_bytes(frame, size, EVENT_TYPE, &type) ||
        !find_bytes(frame, size, EVENT_OBJECT, &extension) ||
        !find_bytes(extension.data, extension.size, EXTENSION_RAW, &raw) ||
        !open_envelope(raw.data, raw.size, &object, &object_size))
        return fail(proto, "expected an event of a watch", error);
    stream->version[0] = '\0';
    int status = 0;
    if (find_version(object, object_size, &version))
        status = kube_stream_set_version(stream, (const char *)version.data, version.size, error);
    if (status == 0)
        status = kube_stream_take_event(stream, (const char *)type.data, type.size, object,
                                        object_size, read_status, error);
    if (status)
        as_error_wrap(error, "byte %llu", (unsigned long long)get_offset(proto));
    return status;
}

/* ---- a list ---- */

static int take_list_meta(struct as_kube_stream *stream, const char *message, size_t size,
                          struct as_error *error)
{
    struct as_protobuf_field field;
    int status = 0;
    if (find_bytes(message, size, LIST_META_VERSION, &field))
        status = kube_stream_set_version(stream, (const char *)field.data, field.size, error);
    if (status == 0 && find_bytes(message, size, LIST_META_CONTINUE, &field))
        status = kube_stream_set_continue(stream, (const char *)field.data, field.size, error);
    return status;
}

static int take_small(struct proto_stream *proto, const char *message, size_t size,
                      struct as_error *error)
{
    struct as_protobuf_field kind;
    if (proto->list_end > 0)
        return take_list_meta(&proto->stream, message, size, error);
    if (proto->field == UNKNOWN_ENCODING && size > 0)
        return fail(proto, "contentEncoding: unknown", error);
    if (proto->field == UNKNOWN_TYPE && find_bytes(message, size, TYPE_KIND, &kind))
        kube_stream_set_kind(&proto->stream, (const char *)kind.data, kind.size);
    return 0;
}

static int end_capture(struct proto_stream *proto, struct as_error *error)
{
    struct as_kube_stream *stream = &proto->stream;
    const bool is_watch = stream->kind == AS_KUBE_STREAM_WATCH;
    const char *message;
    size_t size;
    proto->state = is_watch ? IN_HEAD : AT_FIELD;
    if (kube_capture_end(&stream->object, proto->at) < 0)
        return fail_limit(proto, error);
    if (!is_watch && proto->list_end > 0 && proto->field == LIST_ITEMS)
        return kube_stream_take_item(stream, error);
    if (kube_capture_take(&stream->object, &message, &size) < 0)
        return fail_limit(proto, error);
    return is_watch ? take_frame(proto, message, size, error)
                    : take_small(proto, message, size, error);
}

/* `size` bytes of a field begin. */
static int begin_rest(struct proto_stream *proto, uint64_t size, struct as_error *error)
{
    const uint64_t room = (proto->list_end > 0 ? proto->list_end : UINT64_MAX) - get_offset(proto);
    if (size > room)
        return fail(proto, "a field is longer than its message", error);
    proto->left = size;
    proto->state = IN_REST;
    return 0;
}

/* Those of a text, of bytes or of a message, in the list or in the envelope. */
static int begin_bytes(struct proto_stream *proto, uint64_t size, struct as_error *error)
{
    const bool is_in_list = proto->list_end > 0;
    int status = begin_rest(proto, size, error);
    if (status)
        return status;
    if (!is_in_list && proto->field == UNKNOWN_RAW) {
        if (proto->has_list)
            return fail(proto, "expected one list", error);
        proto->has_list = true;
        proto->list_end = get_offset(proto) + size;
        proto->state = AT_FIELD;
        return 0;
    }
    const bool is_kept = is_in_list
                             ? proto->field == LIST_METADATA || proto->field == LIST_ITEMS
                             : proto->field == UNKNOWN_TYPE || proto->field == UNKNOWN_ENCODING;
    if (is_kept && size > AS_KUBE_OBJECT_MAX)
        return fail_limit(proto, error);
    if (is_kept) {
        proto->state = IN_CAPTURE;
        kube_capture_begin(&proto->stream.object, proto->at);
    }
    return 0;
}

/* A tag is there. */
static int begin_field(struct proto_stream *proto, uint64_t tag, struct as_error *error)
{
    proto->field = tag >> 3 > 0 && tag <= UINT32_MAX ? (unsigned)(tag >> 3) : 0;
    if (proto->field == 0)
        return fail(proto, "not Protocol Buffers: expected a field", error);
    switch ((enum as_protobuf_type)(tag & 7)) {
    case AS_PROTOBUF_VARINT: proto->state = IN_VALUE; return 0;
    case AS_PROTOBUF_BYTES: proto->state = IN_SIZE; return 0;
    case AS_PROTOBUF_FIXED64: return begin_rest(proto, 8, error);
    case AS_PROTOBUF_FIXED32: return begin_rest(proto, 4, error);
    }
    return fail(proto, "not Protocol Buffers: unknown type of field", error);
}

static int end_varint(struct proto_stream *proto, struct as_error *error)
{
    const uint64_t value = proto->varint;
    proto->varint = 0;
    proto->shift = 0;
    if (proto->state == AT_FIELD)
        return begin_field(proto, value, error);
    if (proto->state == IN_SIZE)
        return begin_bytes(proto, value, error);
    proto->state = AT_FIELD;
    return 0;
}

static int read_varint(struct proto_stream *proto, struct as_error *error)
{
    const unsigned char byte = (unsigned char)*proto->at++;
    if (proto->shift == 63 && byte > 1)
        return fail(proto, "not Protocol Buffers: expected a varint", error);
    proto->varint |= (uint64_t)(byte & 0x7f) << proto->shift;
    proto->shift += 7;
    return byte < 0x80 ? end_varint(proto, error) : 0;
}

/* ---- both ---- */

static int read_head(struct proto_stream *proto, struct as_error *error)
{
    const unsigned char byte = (unsigned char)*proto->at++;
    if (proto->stream.kind == AS_KUBE_STREAM_LIST) {
        if (byte != (unsigned char)MAGIC[proto->shift])
            return fail(proto, "expected \"k8s\\0\"", error);
        proto->state = ++proto->shift == MAGIC_SIZE ? AT_FIELD : IN_HEAD;
        proto->shift = proto->state == AT_FIELD ? 0 : proto->shift;
        return 0;
    }
    proto->left = proto->left << CHAR_BIT | byte;
    if (++proto->shift < LENGTH_SIZE)
        return 0;
    proto->shift = 0;
    if (proto->left > AS_KUBE_OBJECT_MAX)
        return fail_limit(proto, error);
    proto->state = IN_CAPTURE;
    kube_capture_begin(&proto->stream.object, proto->at);
    return 0;
}

/* The end of what has a length; it may have been 0. */
static int check_ends(struct proto_stream *proto, struct as_error *error)
{
    int status = 0;
    if (proto->state == IN_CAPTURE && proto->left == 0)
        status = end_capture(proto, error);
    if (proto->state == IN_REST && proto->left == 0)
        proto->state = AT_FIELD;
    if (status || proto->list_end == 0 || get_offset(proto) < proto->list_end)
        return status;
    if (get_offset(proto) > proto->list_end || proto->state != AT_FIELD || proto->shift > 0)
        return fail(proto, "a field is longer than its message", error);
    proto->list_end = 0;
    return 0;
}

static int step(struct proto_stream *proto, struct as_error *error)
{
    const uint64_t room = (uint64_t)(proto->end - proto->at);
    const uint64_t size = proto->left < room ? proto->left : room;
    switch (proto->state) {
    case IN_HEAD: return read_head(proto, error);
    case AT_FIELD:
    case IN_VALUE:
    case IN_SIZE: return read_varint(proto, error);
    case IN_REST:
    case IN_CAPTURE: break;
    }
    proto->at += size;
    proto->left -= size;
    return 0;
}

static int feed(struct as_kube_stream *stream, const char *bytes, size_t size,
                struct as_error *error)
{
    struct proto_stream *proto = get_proto(stream);
    int status = 0;
    proto->offset += (uint64_t)(proto->end - proto->begin);
    proto->begin = proto->at = bytes;
    proto->end = bytes + size;
    while (status == 0 && proto->at < proto->end) {
        status = step(proto, error);
        if (status == 0)
            status = check_ends(proto, error);
    }
    stream->is_complete =
        proto->has_list && proto->list_end == 0 && proto->state == AT_FIELD && proto->shift == 0;
    if (status == 0 && kube_capture_end_part(&stream->object, proto->end) < 0)
        status = fail_limit(proto, error);
    return status;
}

static struct as_kube_stream *allocate(enum as_kube_stream_kind kind)
{
    struct proto_stream *proto = as_xcalloc(1, sizeof(*proto));
    return &proto->stream;
}

static void release(struct as_kube_stream *stream)
{
}

static bool is_inside(const struct as_kube_stream *stream)
{
    const struct proto_stream *proto = get_proto(stream);
    return proto->state != IN_HEAD || proto->shift > 0;
}

const struct kube_stream_form kube_stream_protobuf = {AS_KUBE_PROTOBUF, allocate, release, feed,
                                                      is_inside};
