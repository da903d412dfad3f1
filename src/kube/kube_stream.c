/*
 * Reader of lists and watches that arrive in parts, as JSON or in Kubernetes' binary form. Both
 * forms share the capture of an object, the report of items and events, and what is known of the
 * list or the event around an object. A table of two rows has the functions of each form.
 *
 * The reader keeps no object: a captured object is valid only during the callback. It does not
 * send requests and does not read the fields of an object (kube_facts.c).
 */
#include <alertscaler/kube/kube_stream.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/protobuf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/doc/json_scan.h>

/*
 * State that both forms share: the object that is being read, and what is known of the list or
 * the event around it.
 */

/* Some bytes of the stream: in the present part if all of them are there, else in `kept`. */
struct kube_capture {
    const char *from, *to; /* in the present part; from NULL: nothing; to NULL: it goes on */
    struct as_buf kept;    /* what earlier parts had */
};

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

/* Hands over an event of a watch. `verb` is checked: "ADDED", ... `object` is the captured one, or
 * that in the envelope. `status` is asked for where `verb` is ERROR. */
typedef int kube_stream_status_fn(const char *object, size_t size, struct as_kube_status *out,
                                  struct as_error *error);

/* Captures */

static void capture_begin(struct kube_capture *capture, const char *from)
{
    as_buf_clear(&capture->kept);
    capture->from = from;
    capture->to = NULL;
}

/* So far, with the present part up to `end`. */
static int stream_check_size(const struct kube_capture *capture, const char *end)
{
    return (size_t)(end - capture->from) > AS_KUBE_ITEM_MAX - capture->kept.size ? -EMSGSIZE : 0;
}

/* These two: 0, or -EMSGSIZE above the limit. */
static int capture_end(struct kube_capture *capture, const char *to)
{
    capture->to = to;
    return stream_check_size(capture, to);
}

/* The present part ends at `end`; another one begins at `next`. */
static int capture_end_part(struct kube_capture *capture, const char *end)
{
    if (!capture->from)
        return 0;
    const char *to = capture->to ? capture->to : end;
    if (stream_check_size(capture, to) < 0)
        return -EMSGSIZE;
    as_buf_append(&capture->kept, capture->from, (size_t)(to - capture->from));
    return as_buf_check(&capture->kept);
}

static void capture_begin_part(struct kube_capture *capture, const char *next)
{
    if (!capture->from)
        return;
    capture->from = next;
    if (capture->to)
        capture->to = next; /* it is whole; nothing of it comes any more */
}

/* The bytes, once it has ended; good until the next capture begins or the part ends. */
static int capture_take(struct kube_capture *capture, const char **bytes_out, size_t *size_out)
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

/* What is told */

/* What a list or an object says about itself. -EMSGSIZE if it is too long. */
static int stream_set_version(struct as_kube_stream *stream, const char *text, size_t size,
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

static int stream_set_continue(struct as_kube_stream *stream, const char *text, size_t size,
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

static void stream_set_kind(struct as_kube_stream *stream, const char *text, size_t size)
{
    stream->is_list = size >= 4 && memcmp(text + size - 4, "List", 4) == 0;
}

/* Hands over the captured object as the next element of the list. */
static int stream_take_item(struct as_kube_stream *stream, struct as_error *error)
{
    struct as_kube_stream_event event = {.verb = AS_KUBE_LISTED, .form = stream->form->name};
    int status = capture_take(&stream->object, &event.object, &event.size);
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

static int stream_take_event(struct as_kube_stream *stream, const char *verb, size_t verb_size,
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

/*
 * JSON form. The scanner reports the tokens of the containers around an object, and those of
 * object.metadata, which has the version. It only checks all other tokens.
 */

enum member { NONE, KIND, METADATA, VERSION, CONTINUE, ITEMS, TYPE, OBJECT };

#define DEPTH_MAX 3 /* of a token that is reported: within object.metadata */

struct json_stream {
    struct as_kube_stream stream; /* the first member: the stream is cast to this one */
    struct json_scan scan;
    enum member members[DEPTH_MAX + 1]; /* whose value is being read, at each depth */
    char verb[16];                      /* of the event; a longer one is cut, and unknown */
    size_t verb_size;
    bool has_items, has_object;
};

/* A member at a depth, below the member that its container is the value of. */
static const struct {
    enum as_kube_stream_kind kind;
    unsigned depth;
    enum member parent;
    const char *name;
    enum member member;
} json_names[] = {
    {AS_KUBE_STREAM_LIST, 1, NONE, "kind", KIND},
    {AS_KUBE_STREAM_LIST, 1, NONE, "metadata", METADATA},
    {AS_KUBE_STREAM_LIST, 2, METADATA, "resourceVersion", VERSION},
    {AS_KUBE_STREAM_LIST, 2, METADATA, "continue", CONTINUE},
    {AS_KUBE_STREAM_LIST, 1, NONE, "items", ITEMS},
    {AS_KUBE_STREAM_WATCH, 1, NONE, "type", TYPE},
    {AS_KUBE_STREAM_WATCH, 1, NONE, "object", OBJECT},
    {AS_KUBE_STREAM_WATCH, 2, OBJECT, "metadata", METADATA},
    {AS_KUBE_STREAM_WATCH, 3, METADATA, "resourceVersion", VERSION},
};

#define A(token) (1U << JSON_TOKEN_##token)

static const struct {
    unsigned tokens; /* that its value may be */
    const char *expected;
} json_values[] = {
    [NONE] = {A(STRING) | A(NULL) | A(OTHER) | A(OBJECT) | A(ARRAY), ""},
    [KIND] = {A(STRING), "kind: expected a text"},
    [METADATA] = {A(OBJECT) | A(NULL), "metadata: expected an object"},
    [VERSION] = {A(STRING) | A(NULL), "metadata.resourceVersion: expected a text"},
    [CONTINUE] = {A(STRING) | A(NULL), "metadata.continue: expected a text"},
    [ITEMS] = {A(ARRAY) | A(NULL), "items: expected one list"},
    [TYPE] = {A(STRING), "type: expected a text"},
    [OBJECT] = {A(OBJECT), "object: expected one object"},
};

static struct json_stream *get_json(const struct as_kube_stream *stream)
{
    return (struct json_stream *)(uintptr_t)stream;
}

static AS_RARE int proto_fail(const struct json_stream *json, const char *what,
                              struct as_error *error)
{
    as_error_set(error, "byte %llu: %s", (unsigned long long)json_scan_get_offset(&json->scan),
                 what);
    return -EBADMSG;
}

static AS_RARE int fail_limit(const struct json_stream *json, struct as_error *error)
{
    proto_fail(json, "the object is larger than 3 MiB", error);
    return -EMSGSIZE;
}

static void json_take_name(struct json_stream *json)
{
    struct json_scan *scan = &json->scan;
    enum member member = NONE;
    for (size_t i = 0; i < AS_ARRAY_SIZE(json_names) && member == NONE; i++)
        if (json_names[i].depth == scan->depth && json_names[i].kind == json->stream.kind &&
            json_names[i].parent == json->members[scan->depth - 1] &&
            strlen(json_names[i].name) == scan->text_size &&
            memcmp(json_names[i].name, scan->text, scan->text_size) == 0)
            member = json_names[i].member;
    json->members[scan->depth] = member;
    scan->wants_text = member == KIND || member == VERSION || member == CONTINUE || member == TYPE;
}

static int json_take_text(struct json_stream *json, enum member member, struct as_error *error)
{
    struct json_scan *scan = &json->scan;
    if (member == VERSION)
        return stream_set_version(&json->stream, scan->text, scan->text_size, error);
    if (member == CONTINUE)
        return stream_set_continue(&json->stream, scan->text, scan->text_size, error);
    if (member == KIND)
        stream_set_kind(&json->stream, scan->text, scan->text_size);
    if (member == TYPE) {
        json->verb_size = scan->text_size < sizeof(json->verb) ? scan->text_size : 0;
        memcpy(json->verb, scan->text, json->verb_size);
    }
    return 0;
}

static bool is_element(const struct json_stream *json, unsigned depth)
{
    return depth == 2 && json->stream.kind == AS_KUBE_STREAM_LIST && json->members[1] == ITEMS;
}

/* A value, or its beginning, in a container of `depth`. */
static int json_take_value(struct json_stream *json, enum json_token token, unsigned depth,
                           struct as_error *error)
{
    enum member member = json->members[depth];
    const bool is_item = is_element(json, depth);
    if (depth == 0 && (token != JSON_TOKEN_OBJECT || json->stream.is_complete))
        return proto_fail(
            json, json->stream.is_complete ? "expected the end" : "expected an object", error);
    if (is_item && token != JSON_TOKEN_OBJECT) {
        proto_fail(json, "expected an object", error);
        as_error_wrap(error, "items[%zu]", json->stream.item);
        return -EBADMSG;
    }
    if (!(json_values[member].tokens & 1U << token) || (member == ITEMS && json->has_items) ||
        (member == OBJECT && json->has_object))
        return proto_fail(json, json_values[member].expected, error);
    json->has_items = json->has_items || member == ITEMS;
    json->has_object = json->has_object || member == OBJECT;
    if (is_item || member == OBJECT)
        capture_begin(&json->stream.object, json->scan.at - 1);
    if (json->stream.kind == AS_KUBE_STREAM_WATCH)
        json->scan.told_depth = depth == 2 && member == METADATA ? 3 : json->scan.told_depth;
    if (json->scan.depth > depth && json->scan.depth <= DEPTH_MAX)
        json->members[json->scan.depth] = NONE;
    return token == JSON_TOKEN_STRING ? json_take_text(json, member, error) : 0;
}

static int end_event(struct json_stream *json, struct as_error *error)
{
    struct as_kube_stream *stream = &json->stream;
    const char *object;
    size_t size;
    if (json->verb_size == 0)
        return proto_fail(json, "type: unknown type of event", error);
    if (!json->has_object)
        return proto_fail(json, "object: missing", error);
    if (capture_take(&stream->object, &object, &size) < 0)
        return fail_limit(json, error);
    int status = stream_take_event(stream, json->verb, json->verb_size, object, size,
                                   as_kube_status_decode, error);
    if (status)
        as_error_wrap(error, "byte %llu", (unsigned long long)json_scan_get_offset(&json->scan));
    stream->version[0] = '\0';
    json->verb_size = 0;
    json->has_object = false;
    return status;
}

static int end_document(struct json_stream *json, struct as_error *error)
{
    if (json->stream.kind == AS_KUBE_STREAM_WATCH)
        return end_event(json, error);
    if (!json->has_items)
        return proto_fail(json, "items: missing", error);
    json->stream.is_complete = true;
    return 0;
}

static int take_close(struct json_stream *json, struct as_error *error)
{
    struct as_kube_stream *stream = &json->stream;
    const unsigned depth = json->scan.depth;
    const bool is_item = is_element(json, depth);
    if (depth == 0)
        return end_document(json, error);
    if (stream->kind == AS_KUBE_STREAM_WATCH && depth == 2)
        json->scan.told_depth = 2;
    if ((is_item || (depth == 1 && json->members[1] == OBJECT)) &&
        capture_end(&stream->object, json->scan.at) < 0)
        return fail_limit(json, error);
    return is_item ? stream_take_item(stream, error) : 0;
}

static AS_RARE int json_fail_syntax(const struct json_stream *json, struct as_error *error)
{
    as_error_set(error, "not JSON: byte %llu: expected %s",
                 (unsigned long long)json_scan_get_offset(&json->scan), json->scan.error);
    return -EBADMSG;
}

static int proto_feed(struct as_kube_stream *stream, const char *bytes, size_t size,
                      struct as_error *error)
{
    struct json_stream *json = get_json(stream);
    struct json_scan *scan = &json->scan;
    int status = 0;
    json_scan_feed(scan, bytes, size);
    while (status == 0) {
        enum json_token token = json_scan_next(scan);
        switch (token) {
        case JSON_TOKEN_NONE: break;
        case JSON_TOKEN_MORE:
            return capture_end_part(&stream->object, bytes + size) < 0 ? fail_limit(json, error)
                                                                       : 0;
        case JSON_TOKEN_NAME: json_take_name(json); break;
        case JSON_TOKEN_OBJECT:
        case JSON_TOKEN_ARRAY: status = json_take_value(json, token, scan->depth - 1, error); break;
        case JSON_TOKEN_STRING:
        case JSON_TOKEN_NULL:
        case JSON_TOKEN_OTHER: status = json_take_value(json, token, scan->depth, error); break;
        case JSON_TOKEN_CLOSE: status = take_close(json, error); break;
        case JSON_TOKEN_ERROR: status = json_fail_syntax(json, error); break;
        }
    }
    return status;
}

static struct as_kube_stream *proto_allocate(enum as_kube_stream_kind kind)
{
    struct json_stream *json = as_xcalloc(1, sizeof(*json));
    json_scan_init(&json->scan, 2);
    return &json->stream;
}

static void proto_release(struct as_kube_stream *stream)
{
    json_scan_deinit(&get_json(stream)->scan);
}

static bool is_inside(const struct as_kube_stream *stream)
{
    return json_scan_is_inside(&get_json(stream)->scan);
}

static const struct kube_stream_form kube_stream_json = {AS_KUBE_JSON, proto_allocate,
                                                         proto_release, proto_feed, is_inside};

/*
 * Binary form.
 *
 * A list is "k8s\0" and a runtime.Unknown, whose `raw` is the list, for instance a PodList.
 * `raw` is walked while it arrives: only its elements, and the small messages, are captured. A
 * watch is a sequence of frames: a length of 4 bytes, the highest first, and a WatchEvent, whose
 * object has an envelope of its own.
 *
 * Field numbers: k8s.io/apimachinery, pkg/runtime and pkg/apis/meta/v1, generated.proto. All
 * lists have `metadata` 1 and `items` 2, all objects `metadata` 1.
 */

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

static AS_RARE int stream_protobuf_fail(const struct proto_stream *proto, const char *what,
                                        struct as_error *error)
{
    as_error_set(error, "byte %llu: %s", (unsigned long long)get_offset(proto), what);
    return -EBADMSG;
}

static AS_RARE int stream_protobuf_fail_limit(const struct proto_stream *proto,
                                              struct as_error *error)
{
    stream_protobuf_fail(proto, "the object is larger than 3 MiB", error);
    return -EMSGSIZE;
}

/* Messages that are there as a whole */

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
    struct as_protobuf_field raw = {0}, encoding = {0};
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

static int proto_decode_status(const char *object, size_t size, struct as_kube_status *status_out,
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
        return proto_decode_status(object, object_size, status_out, error);
    as_error_set(error, "Status: malformed");
    return -EBADMSG;
}

/* A watch */

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
        return stream_protobuf_fail(proto, "expected an event of a watch", error);
    stream->version[0] = '\0';
    int status = 0;
    if (find_version(object, object_size, &version))
        status = stream_set_version(stream, (const char *)version.data, version.size, error);
    if (status == 0)
        status = stream_take_event(stream, (const char *)type.data, type.size, object, object_size,
                                   proto_decode_status, error);
    if (status)
        as_error_wrap(error, "byte %llu", (unsigned long long)get_offset(proto));
    return status;
}

/* A list */

static int take_list_meta(struct as_kube_stream *stream, const char *message, size_t size,
                          struct as_error *error)
{
    struct as_protobuf_field field;
    int status = 0;
    if (find_bytes(message, size, LIST_META_VERSION, &field))
        status = stream_set_version(stream, (const char *)field.data, field.size, error);
    if (status == 0 && find_bytes(message, size, LIST_META_CONTINUE, &field))
        status = stream_set_continue(stream, (const char *)field.data, field.size, error);
    return status;
}

static int take_small(struct proto_stream *proto, const char *message, size_t size,
                      struct as_error *error)
{
    struct as_protobuf_field kind;
    if (proto->list_end > 0)
        return take_list_meta(&proto->stream, message, size, error);
    if (proto->field == UNKNOWN_ENCODING && size > 0)
        return stream_protobuf_fail(proto, "contentEncoding: unknown", error);
    if (proto->field == UNKNOWN_TYPE && find_bytes(message, size, TYPE_KIND, &kind))
        stream_set_kind(&proto->stream, (const char *)kind.data, kind.size);
    return 0;
}

static int end_capture(struct proto_stream *proto, struct as_error *error)
{
    struct as_kube_stream *stream = &proto->stream;
    const bool is_watch = stream->kind == AS_KUBE_STREAM_WATCH;
    const char *message;
    size_t size;
    proto->state = is_watch ? IN_HEAD : AT_FIELD;
    if (capture_end(&stream->object, proto->at) < 0)
        return stream_protobuf_fail_limit(proto, error);
    if (!is_watch && proto->list_end > 0 && proto->field == LIST_ITEMS)
        return stream_take_item(stream, error);
    if (capture_take(&stream->object, &message, &size) < 0)
        return stream_protobuf_fail_limit(proto, error);
    return is_watch ? take_frame(proto, message, size, error)
                    : take_small(proto, message, size, error);
}

/* `size` bytes of a field begin. */
static int begin_rest(struct proto_stream *proto, uint64_t size, struct as_error *error)
{
    const uint64_t room = (proto->list_end > 0 ? proto->list_end : UINT64_MAX) - get_offset(proto);
    if (size > room)
        return stream_protobuf_fail(proto, "a field is longer than its message", error);
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
            return stream_protobuf_fail(proto, "expected one list", error);
        proto->has_list = true;
        proto->list_end = get_offset(proto) + size;
        proto->state = AT_FIELD;
        return 0;
    }
    const bool is_kept = is_in_list
                             ? proto->field == LIST_METADATA || proto->field == LIST_ITEMS
                             : proto->field == UNKNOWN_TYPE || proto->field == UNKNOWN_ENCODING;
    if (is_kept && size > AS_KUBE_ITEM_MAX)
        return stream_protobuf_fail_limit(proto, error);
    if (is_kept) {
        proto->state = IN_CAPTURE;
        capture_begin(&proto->stream.object, proto->at);
    }
    return 0;
}

/* A tag is there. */
static int begin_field(struct proto_stream *proto, uint64_t tag, struct as_error *error)
{
    proto->field = tag >> 3 > 0 && tag <= UINT32_MAX ? (unsigned)(tag >> 3) : 0;
    if (proto->field == 0)
        return stream_protobuf_fail(proto, "not Protocol Buffers: expected a field", error);
    switch ((enum as_protobuf_type)(tag & 7)) {
    case AS_PROTOBUF_VARINT: proto->state = IN_VALUE; return 0;
    case AS_PROTOBUF_BYTES: proto->state = IN_SIZE; return 0;
    case AS_PROTOBUF_FIXED64: return begin_rest(proto, 8, error);
    case AS_PROTOBUF_FIXED32: return begin_rest(proto, 4, error);
    }
    return stream_protobuf_fail(proto, "not Protocol Buffers: unknown type of field", error);
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

static int proto_read_varint(struct proto_stream *proto, struct as_error *error)
{
    const unsigned char byte = (unsigned char)*proto->at++;
    if (proto->shift == 63 && byte > 1)
        return stream_protobuf_fail(proto, "not Protocol Buffers: expected a varint", error);
    proto->varint |= (uint64_t)(byte & 0x7f) << proto->shift;
    proto->shift += 7;
    return byte < 0x80 ? end_varint(proto, error) : 0;
}

/* Both */

static int proto_read_head(struct proto_stream *proto, struct as_error *error)
{
    const unsigned char byte = (unsigned char)*proto->at++;
    if (proto->stream.kind == AS_KUBE_STREAM_LIST) {
        if (byte != (unsigned char)MAGIC[proto->shift])
            return stream_protobuf_fail(proto, "expected \"k8s\\0\"", error);
        proto->state = ++proto->shift == MAGIC_SIZE ? AT_FIELD : IN_HEAD;
        proto->shift = proto->state == AT_FIELD ? 0 : proto->shift;
        return 0;
    }
    proto->left = proto->left << CHAR_BIT | byte;
    if (++proto->shift < LENGTH_SIZE)
        return 0;
    proto->shift = 0;
    if (proto->left > AS_KUBE_ITEM_MAX)
        return stream_protobuf_fail_limit(proto, error);
    proto->state = IN_CAPTURE;
    capture_begin(&proto->stream.object, proto->at);
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
        return stream_protobuf_fail(proto, "a field is longer than its message", error);
    proto->list_end = 0;
    return 0;
}

static int proto_step(struct proto_stream *proto, struct as_error *error)
{
    const uint64_t room = (uint64_t)(proto->end - proto->at);
    const uint64_t size = proto->left < room ? proto->left : room;
    switch (proto->state) {
    case IN_HEAD: return proto_read_head(proto, error);
    case AT_FIELD:
    case IN_VALUE:
    case IN_SIZE: return proto_read_varint(proto, error);
    case IN_REST:
    case IN_CAPTURE: break;
    }
    proto->at += size;
    proto->left -= size;
    return 0;
}

static int stream_protobuf_feed(struct as_kube_stream *stream, const char *bytes, size_t size,
                                struct as_error *error)
{
    struct proto_stream *proto = get_proto(stream);
    int status = 0;
    proto->offset += (uint64_t)(proto->end - proto->begin);
    proto->begin = proto->at = bytes;
    proto->end = bytes + size;
    while (status == 0 && proto->at < proto->end) {
        status = proto_step(proto, error);
        if (status == 0)
            status = check_ends(proto, error);
    }
    stream->is_complete =
        proto->has_list && proto->list_end == 0 && proto->state == AT_FIELD && proto->shift == 0;
    if (status == 0 && capture_end_part(&stream->object, proto->end) < 0)
        status = stream_protobuf_fail_limit(proto, error);
    return status;
}

static struct as_kube_stream *stream_protobuf_allocate(enum as_kube_stream_kind kind)
{
    struct proto_stream *proto = as_xcalloc(1, sizeof(*proto));
    return &proto->stream;
}

static void stream_protobuf_release(struct as_kube_stream *stream)
{
}

static bool stream_protobuf_is_inside(const struct as_kube_stream *stream)
{
    const struct proto_stream *proto = get_proto(stream);
    return proto->state != IN_HEAD || proto->shift > 0;
}

static const struct kube_stream_form kube_stream_protobuf = {
    AS_KUBE_PROTOBUF, stream_protobuf_allocate, stream_protobuf_release, stream_protobuf_feed,
    stream_protobuf_is_inside};

/* Stream: the functions that do not depend on the form. */

/* The stream */

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
    stream->object.kept = AS_BUF_INIT_OPEN(AS_KUBE_ITEM_MAX);
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
    capture_begin_part(&stream->object, bytes);
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
