/*
 * Lists and watches as JSON: see kube_stream.h. The scanner reports the tokens of the containers
 * around an object, and those of object.metadata, which has the version. The rest it only checks.
 */
#include "kube_stream_private.h"

#include <errno.h>
#include <string.h>

#include <alertscaler/base/alloc.h>

#include <alertscaler/doc/json_scan.h>

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
} names[] = {
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
} values[] = {
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

static AS_RARE int fail(const struct json_stream *json, const char *what, struct as_error *error)
{
    as_error_set(error, "byte %llu: %s", (unsigned long long)json_scan_get_offset(&json->scan),
                 what);
    return -EBADMSG;
}

static AS_RARE int fail_limit(const struct json_stream *json, struct as_error *error)
{
    fail(json, "the object is larger than 3 MiB", error);
    return -EMSGSIZE;
}

static void take_name(struct json_stream *json)
{
    struct json_scan *scan = &json->scan;
    enum member member = NONE;
    for (size_t i = 0; i < AS_ARRAY_SIZE(names) && member == NONE; i++)
        if (names[i].depth == scan->depth && names[i].kind == json->stream.kind &&
            names[i].parent == json->members[scan->depth - 1] &&
            strlen(names[i].name) == scan->text_size &&
            memcmp(names[i].name, scan->text, scan->text_size) == 0)
            member = names[i].member;
    json->members[scan->depth] = member;
    scan->wants_text = member == KIND || member == VERSION || member == CONTINUE || member == TYPE;
}

static int take_text(struct json_stream *json, enum member member, struct as_error *error)
{
    struct json_scan *scan = &json->scan;
    if (member == VERSION)
        return kube_stream_set_version(&json->stream, scan->text, scan->text_size, error);
    if (member == CONTINUE)
        return kube_stream_set_continue(&json->stream, scan->text, scan->text_size, error);
    if (member == KIND)
        kube_stream_set_kind(&json->stream, scan->text, scan->text_size);
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
static int take_value(struct json_stream *json, enum json_token token, unsigned depth,
                      struct as_error *error)
{
    enum member member = json->members[depth];
    const bool is_item = is_element(json, depth);
    if (depth == 0 && (token != JSON_TOKEN_OBJECT || json->stream.is_complete))
        return fail(json, json->stream.is_complete ? "expected the end" : "expected an object",
                    error);
    if (is_item && token != JSON_TOKEN_OBJECT) {
        fail(json, "expected an object", error);
        as_error_wrap(error, "items[%zu]", json->stream.item);
        return -EBADMSG;
    }
    if (!(values[member].tokens & 1U << token) || (member == ITEMS && json->has_items) ||
        (member == OBJECT && json->has_object))
        return fail(json, values[member].expected, error);
    json->has_items = json->has_items || member == ITEMS;
    json->has_object = json->has_object || member == OBJECT;
    if (is_item || member == OBJECT)
        kube_capture_begin(&json->stream.object, json->scan.at - 1);
    if (json->stream.kind == AS_KUBE_STREAM_WATCH)
        json->scan.told_depth = depth == 2 && member == METADATA ? 3 : json->scan.told_depth;
    if (json->scan.depth > depth && json->scan.depth <= DEPTH_MAX)
        json->members[json->scan.depth] = NONE;
    return token == JSON_TOKEN_STRING ? take_text(json, member, error) : 0;
}

static int end_event(struct json_stream *json, struct as_error *error)
{
    struct as_kube_stream *stream = &json->stream;
    const char *object;
    size_t size;
    if (json->verb_size == 0)
        return fail(json, "type: unknown type of event", error);
    if (!json->has_object)
        return fail(json, "object: missing", error);
    if (kube_capture_take(&stream->object, &object, &size) < 0)
        return fail_limit(json, error);
    int status = kube_stream_take_event(stream, json->verb, json->verb_size, object, size,
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
        return fail(json, "items: missing", error);
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
        kube_capture_end(&stream->object, json->scan.at) < 0)
        return fail_limit(json, error);
    return is_item ? kube_stream_take_item(stream, error) : 0;
}

static AS_RARE int fail_syntax(const struct json_stream *json, struct as_error *error)
{
    as_error_set(error, "not JSON: byte %llu: expected %s",
                 (unsigned long long)json_scan_get_offset(&json->scan), json->scan.error);
    return -EBADMSG;
}

static int feed(struct as_kube_stream *stream, const char *bytes, size_t size,
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
            return kube_capture_end_part(&stream->object, bytes + size) < 0
                       ? fail_limit(json, error)
                       : 0;
        case JSON_TOKEN_NAME: take_name(json); break;
        case JSON_TOKEN_OBJECT:
        case JSON_TOKEN_ARRAY: status = take_value(json, token, scan->depth - 1, error); break;
        case JSON_TOKEN_STRING:
        case JSON_TOKEN_NULL:
        case JSON_TOKEN_OTHER: status = take_value(json, token, scan->depth, error); break;
        case JSON_TOKEN_CLOSE: status = take_close(json, error); break;
        case JSON_TOKEN_ERROR: status = fail_syntax(json, error); break;
        }
    }
    return status;
}

static struct as_kube_stream *allocate(enum as_kube_stream_kind kind)
{
    struct json_stream *json = as_xcalloc(1, sizeof(*json));
    json_scan_init(&json->scan, 2);
    return &json->stream;
}

static void release(struct as_kube_stream *stream)
{
    json_scan_deinit(&get_json(stream)->scan);
}

static bool is_inside(const struct as_kube_stream *stream)
{
    return json_scan_is_inside(&get_json(stream)->scan);
}

const struct kube_stream_form kube_stream_json = {AS_KUBE_JSON, allocate, release, feed, is_inside};
