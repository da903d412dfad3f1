/*
 * Lists and watches while they arrive. Promise: however the bytes are cut, the same is told, and
 * the same error with the same place.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/buf.h>
#include <alertscaler/base/protobuf.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/kube/kube_stream.h>

static const char *const verbs[] = {
    [AS_KUBE_LISTED] = "LISTED",   [AS_KUBE_ADDED] = "ADDED",       [AS_KUBE_MODIFIED] = "MODIFIED",
    [AS_KUBE_DELETED] = "DELETED", [AS_KUBE_BOOKMARK] = "BOOKMARK", [AS_KUBE_ERROR] = "ERROR"};

/* Writes what it is told: a line each. */
static int take(void *context, const struct as_kube_stream_event *event, struct as_error *error)
{
    struct as_buf *told = context;
    as_buf_printf(told, "%s", verbs[event->verb]);
    if (event->object) {
        char *copy = as_xmalloc(event->size + 1); /* exactly, for the sanitizer */
        memcpy(copy, event->object, event->size);
        copy[event->size] = '\0';
        as_buf_printf(told, " %s", event->size < 1000 ? copy : "large");
        free(copy);
    }
    if (event->resource_version)
        as_buf_printf(told, " at %s", event->resource_version);
    if (event->status)
        as_buf_printf(told, " %d %s: %s", event->status->code, event->status->reason,
                      event->status->message);
    as_buf_append_char(told, '\n');
    if (event->size < 1000 && event->object && memmem(event->object, event->size, "refuse", 6)) {
        as_error_set(error, "refused");
        return -EDOM;
    }
    return 0;
}

/* One part of `first` bytes, and then the rest in parts of `step` bytes. */
static void read_cut(enum as_kube_stream_kind kind, enum as_kube_form form, const char *bytes,
                     size_t size, size_t first, size_t step, struct as_buf *told)
{
    AS_CLEANUP(as_kube_stream_free_p)
    struct as_kube_stream *stream = as_kube_stream_new(kind, form, take, told);
    struct as_error error = AS_ERROR_INIT;
    int code = 0;
    for (size_t at = 0, part = first; at < size && code == 0; at += part, part = step) {
        part = part < size - at ? part : size - at;
        char *copy = as_xmalloc(part > 0 ? part : 1);
        memcpy(copy, bytes + at, part);
        code = as_kube_stream_feed(stream, copy, part, &error);
        memset(copy, '?', part);
        free(copy);
    }
    if (code == 0)
        code = as_kube_stream_finish(stream, &error);
    if (code)
        as_buf_printf(told, "%s: %s\n", code == -EBADMSG ? "malformed" : strerror(-code),
                      error.text);
    else if (kind == AS_KUBE_STREAM_LIST)
        as_buf_printf(told, "version %s, continue %s\n", as_kube_stream_get_version(stream),
                      as_kube_stream_get_continue(stream));
    cr_assert_eq(as_buf_check(told), 0);
}

static const char *get_text(const struct as_buf *told)
{
    return told->data ? told->data : "";
}

static void expect(enum as_kube_stream_kind kind, enum as_kube_form form, const char *bytes,
                   size_t size, const char *expected)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf told = AS_BUF_INIT(1 << 20);
    for (size_t cut = 0; cut <= size; cut++) {
        as_buf_clear(&told);
        read_cut(kind, form, bytes, size, cut, size, &told);
        cr_assert_str_eq(get_text(&told), expected, "cut at %zu of %zu of %.60s: %s", cut, size,
                         bytes, told.data);
    }
    for (size_t step = 1; step < 5; step++) {
        as_buf_clear(&told);
        read_cut(kind, form, bytes, size, step, step, &told);
        cr_assert_str_eq(get_text(&told), expected, "parts of %zu: %s", step, told.data);
    }
}

struct row {
    const char *json, *told;
};

static void expect_rows(enum as_kube_stream_kind kind, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect(kind, AS_KUBE_JSON, rows[i].json, strlen(rows[i].json), rows[i].told);
}

Test(kube_stream, lists)
{
    static const struct row rows[] = {
        {"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"17\","
         "\"continue\":\"abc\",\"remainingItemCount\":3},\"items\":[{\"a\":1},{\"b\":[{},[]]}]}\n",
         "LISTED {\"a\":1}\nLISTED {\"b\":[{},[]]}\nversion 17, continue abc\n"},
        {" { \"items\" : [ { \"metadata\" : { \"resourceVersion\" : \"9\" } } ] , \"metadata\" : "
         "{ \"resourceVersion\" : \"1\" , \"continue\" : null } , \"kind\" : \"List\" } \r\n\t",
         "LISTED { \"metadata\" : { \"resourceVersion\" : \"9\" } }\nversion 1, continue \n"},
        {"{\"kind\":\"XList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":null}",
         "version 1, continue \n"},
        {"{\"kind\":\"XList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}",
         "version 1, continue \n"},
        /* Escapes in names, in texts that matter, in those that do not. */
        {"{\"k\\u0069nd\":\"XL\\u0069st\",\"metadata\":{\"resourceVersion\":\"\\u0031\\\\\","
         "\"continue\":\"\\ud83d\\ude00\"},\"items\":[{\"\\\"\\\\\\/"
         "\\b\\f\\n\\r\\t\":\"\\uD800\"}]}",
         "LISTED {\"\\\"\\\\\\/\\b\\f\\n\\r\\t\":\"\\uD800\"}\n"
         "version 1\\, continue \xf0\x9f\x98\x80\n"},
        /* Numbers and words. */
        {"{\"kind\":\"XList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"n\":[0,-0,10,"
         "-1.50,1e9,1E+9,0.1e-2,true,false,null]}],\"more\":[1,[2]],\"other\":12}",
         "LISTED {\"n\":[0,-0,10,-1.50,1e9,1E+9,0.1e-2,true,false,null]}\nversion 1, continue \n"},
        /* What is below the places that count has no meaning. */
        {"{\"kind\":\"XList\",\"x\":{\"items\":[{}],\"metadata\":{\"continue\":\"x\"},\"continue\":"
         "\"x\"},\"metadata\":{\"resourceVersion\":\"1\",\"x\":{\"resourceVersion\":\"2\"}},"
         "\"items\":[]}",
         "version 1, continue \n"},
        {"{\"kind\":\"XList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{},{\"refuse\":"
         "1},{}]}",
         "LISTED {}\nLISTED {\"refuse\":1}\nNumerical argument out of domain: items[1]: refused\n"},
    };
    expect_rows(AS_KUBE_STREAM_LIST, rows, AS_ARRAY_SIZE(rows));
}

Test(kube_stream, lists_that_are_none)
{
    static const struct row rows[] = {
        {"", "malformed: the list ends early\n"},
        {"{", "malformed: the list ends early\n"},
        {"{\"items\":[{}", "LISTED {}\nmalformed: the list ends early\n"},
        {"[]", "malformed: byte 1: expected an object\n"},
        {"5 ", "malformed: byte 1: expected an object\n"},
        {"{}", "malformed: byte 2: items: missing\n"},
        {"{\"items\":[]}", "malformed: kind: expected that of a list\n"},
        {"{\"kind\":\"Status\",\"items\":[]}", "malformed: kind: expected that of a list\n"},
        {"{\"kind\":\"XList\",\"items\":[]}", "malformed: metadata.resourceVersion: missing\n"},
        {"{\"kind\":1}", "malformed: byte 9: kind: expected a text\n"},
        {"{\"metadata\":[]}", "malformed: byte 13: metadata: expected an object\n"},
        {"{\"metadata\":{\"resourceVersion\":1}}",
         "malformed: byte 32: metadata.resourceVersion: expected a text\n"},
        {"{\"metadata\":{\"continue\":{}}}",
         "malformed: byte 25: metadata.continue: expected a text\n"},
        {"{\"metadata\":{\"continue\":\"a\\u0000b\"}}",
         "Message too long: metadata.continue: expected a text of at most 16384 bytes\n"},
        {"{\"items\":{}}", "malformed: byte 10: items: expected one list\n"},
        {"{\"items\":[],\"items\":[]}", "malformed: byte 21: items: expected one list\n"},
        {"{\"items\":[{},5]}", "LISTED {}\nmalformed: items[1]: byte 14: expected an object\n"},
        {"{\"items\":[null]}", "malformed: items[0]: byte 14: expected an object\n"},
        {"{\"items\":[]}{", "malformed: byte 13: expected the end\n"},
        {"{\"items\":[]}]", "malformed: not JSON: byte 12: expected a value\n"},
    };
    expect_rows(AS_KUBE_STREAM_LIST, rows, AS_ARRAY_SIZE(rows));
}

Test(kube_stream, what_is_no_json)
{
    static const struct row rows[] = {
        {"x", "0: expected a value"},
        {"{x", "1: expected a name"},
        {"{,", "1: expected a name"},
        {"{\"a\",", "4: expected ':'"},
        {"{\"a\":}", "5: expected a value"},
        {"{\"a\":1,}", "7: expected a name"},
        {"{\"a\":1]", "6: expected ',' or '}'"},
        {"{\"a\":[1}", "7: expected ',' or ']'"},
        {"{\"a\":[1,]", "8: expected a value"},
        {"{\"a\":[,", "6: expected a value"},
        {"{\"a\":01}", "6: expected a number"},
        {"{\"a\":1.}", "7: expected a digit"},
        {"{\"a\":1.e", "7: expected a number"},
        {"{\"a\":-}", "6: expected a digit"},
        {"{\"a\":--", "6: expected a number"},
        {"{\"a\":1e}", "7: expected a digit"},
        {"{\"a\":1e+-", "8: expected a number"},
        {"{\"a\":.5", "5: expected a value"},
        {"{\"a\":+5", "5: expected a value"},
        {"{\"a\":1.5.", "8: expected a number"},
        {"{\"a\":trux", "8: expected true, false or null"},
        {"{\"a\":nulL", "8: expected true, false or null"},
        {"{\"a\":truefalse", "9: expected ',' or '}'"},
        {"{\"a\":\"\\x", "7: expected an escape"},
        {"{\"a\":\"\\u12g4", "10: expected an escape"},
        {"{\"a\":\"\n", "6: expected no control character in a text"},
        {"{\"a\":\"\x01", "6: expected no control character in a text"},
        {"{\"a\":\xc3\xa9", "5: expected a value"},
        {"{\"a\":\v1", "5: expected a value"},
        {"{\"kind\":\"\\ud800\"", "15: expected a text that can be decoded"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        char told[128];
        snprintf(told, sizeof(told), "malformed: not JSON: byte %s\n", rows[i].told);
        expect(AS_KUBE_STREAM_LIST, AS_KUBE_JSON, rows[i].json, strlen(rows[i].json), told);
    }
    expect(AS_KUBE_STREAM_LIST, AS_KUBE_JSON, "{\"a\":\"\0\"}", 9,
           "malformed: not JSON: byte 6: expected no control character in a text\n");
    expect(AS_KUBE_STREAM_LIST, AS_KUBE_JSON, "\0", 1,
           "malformed: not JSON: byte 0: expected a value\n");
}

#define GONE                                                                                       \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":"      \
    "\"too old\",\"reason\":\"Expired\",\"code\":410}}\n"

Test(kube_stream, watches)
{
    static const struct row rows[] = {
        {"", ""},
        {"\n\n ", ""},
        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"7\"},"
         "\"spec\":{\"metadata\":{\"resourceVersion\":\"8\"}}}}\n"
         "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\",\"l\":{\"a\":"
         "\"b\"}}}}",
         "ADDED {\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"7\"},\"spec\":{\"metadata\":{"
         "\"resourceVersion\":\"8\"}}} at 7\n"
         "DELETED {\"metadata\":{\"resourceVersion\":\"9\",\"l\":{\"a\":\"b\"}}} at 9\n"},
        /* The type behind the object. */
        {"{ \"object\" : {\"metadata\":{\"resourceVersion\":\"7\"}} , \"x\":[{}], \"type\" : "
         "\"MODIFIED\" }",
         "MODIFIED {\"metadata\":{\"resourceVersion\":\"7\"}} at 7\n"},
        {"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":"
         "\"12\",\"creationTimestamp\":null},\"spec\":{\"containers\":null}}}\n",
         "BOOKMARK at 12\n"},
        {GONE, "ERROR 410 Expired: too old\n"},
        {"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Pod\"}}",
         "malformed: byte 40: kind: expected Status\n"},
        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}",
         "malformed: byte 41: object.metadata.resourceVersion: missing\n"},
        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}{\"type\":"
         "\"ADDED\",\"object\":{}}",
         "ADDED {\"metadata\":{\"resourceVersion\":\"7\"}} at 7\n"
         "malformed: byte 90: object.metadata.resourceVersion: missing\n"},
        {"{\"type\":\"TAKEN\",\"object\":{}}", "malformed: byte 28: type: unknown type of event\n"},
        {"{\"type\":\"a very long type\",\"object\":{}}",
         "malformed: byte 39: type: unknown type of event\n"},
        {"{\"type\":\"\",\"object\":{}}", "malformed: byte 23: type: unknown type of event\n"},
        {"{\"object\":{}}", "malformed: byte 13: type: unknown type of event\n"},
        {"{\"type\":\"ADDED\"}", "malformed: byte 16: object: missing\n"},
        {"{\"type\":\"ADDED\",\"object\":[]}", "malformed: byte 26: object: expected one object\n"},
        {"{\"object\":{},\"object\":{}}", "malformed: byte 23: object: expected one object\n"},
        {"{\"type\":\"ADDED\",\"object\":{", "malformed: the watch ends within an event\n"},
        {"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}},",
         "BOOKMARK at 1\nmalformed: not JSON: byte 65: expected a value\n"},
        {"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\"},\"refuse\":0}}",
         "ADDED {\"metadata\":{\"resourceVersion\":\"7\"},\"refuse\":0} at 7\n"
         "Numerical argument out of domain: byte 73: refused\n"},
    };
    expect_rows(AS_KUBE_STREAM_WATCH, rows, AS_ARRAY_SIZE(rows));
}

static char *repeat(const char *before, const char *text, size_t count, const char *behind)
{
    struct as_buf buf = AS_BUF_INIT(16 << 20);
    size_t size;
    as_buf_append_str(&buf, before);
    for (size_t i = 0; i < count; i++)
        as_buf_append_str(&buf, text);
    as_buf_append_str(&buf, behind);
    cr_assert_eq(as_buf_check(&buf), 0);
    return as_buf_take(&buf, &size);
}

static void expect_limit(char *json, const char *told_first, const char *told_rest)
{
    static const size_t steps[] = {10 << 20, 65536, 1000};
    for (size_t i = 0; i < AS_ARRAY_SIZE(steps); i++) {
        AS_CLEANUP(as_buf_deinit) struct as_buf told = AS_BUF_INIT(1 << 20);
        read_cut(AS_KUBE_STREAM_LIST, AS_KUBE_JSON, json, strlen(json), steps[i], steps[i], &told);
        cr_expect(as_str_starts_with(told.data, told_first), "%s", told.data);
        cr_expect(strstr(told.data, told_rest) != NULL, "%s", told.data);
    }
    free(json);
}

#define TAIL "],\"kind\":\"XList\",\"metadata\":{\"resourceVersion\":\"1\"}}"

Test(kube_stream, limits)
{
    const size_t frame = strlen("{\"a\":\"\"}");
    expect_limit(repeat("{\"items\":[{\"a\":\"", "x", AS_KUBE_ITEM_MAX - frame, "\"}" TAIL),
                 "LISTED large\nversion 1", "");
    expect_limit(repeat("{\"items\":[{\"a\":\"", "x", AS_KUBE_ITEM_MAX - frame + 1, "\"}" TAIL),
                 "Message too long: byte ", ": the object is larger than 3 MiB\n");
    expect_limit(repeat("{\"items\":[{\"a\":", "[", 61, ""), "malformed: the list ends early", "");
    expect_limit(repeat("{\"items\":[{\"a\":", "[", 62, ""),
                 "malformed: not JSON: byte 77: expected no deeper nesting\n", "");
    expect_limit(repeat("{\"items\":[" TAIL, "", 0, ""), "version 1", "");
    expect_limit(repeat("{\"items\":[],\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"1\","
                        "\"continue\":\"",
                        "x", 16 * 1024, "\"}}"),
                 "version 1, continue xxx", "");
    expect_limit(repeat("{\"items\":[],\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"1\","
                        "\"continue\":\"",
                        "x", 16 * 1024 + 1, "\"}}"),
                 "malformed: not JSON: byte ", ": expected a shorter text\n");
    expect_limit(repeat("{\"metadata\":{\"resourceVersion\":\"", "1", 256, "\"}}"),
                 "Message too long: metadata.resourceVersion: ", "less than 256 bytes\n");
}

/* ---- the binary form ---- */

static struct as_buf make_message(void)
{
    return AS_BUF_INIT(8 << 20);
}

static struct as_buf make_object(const char *version, const char *more)
{
    struct as_buf object = make_message(), metadata = make_message();
    as_protobuf_write_text(&metadata, 1, "name");
    as_protobuf_write_text(&metadata, 6, version);
    as_protobuf_write_message(&object, 1, &metadata);
    as_protobuf_write_text(&object, 9, more);
    as_buf_deinit(&metadata);
    return object;
}

static struct as_buf make_envelope(const char *kind, const struct as_buf *raw)
{
    struct as_buf envelope = make_message(), type = make_message();
    as_protobuf_write_text(&type, 1, "v1");
    as_protobuf_write_text(&type, 2, kind);
    as_buf_append(&envelope, "k8s", 4);
    as_protobuf_write_message(&envelope, 1, &type);
    as_protobuf_write_message(&envelope, 2, raw);
    as_protobuf_write_message(&envelope, 3, &AS_BUF_INIT(1)); /* as the API server: there, empty */
    as_protobuf_write_message(&envelope, 4, &AS_BUF_INIT(1));
    as_buf_deinit(&type);
    return envelope;
}

static void append_frame(struct as_buf *watch, const char *verb, struct as_buf envelope)
{
    struct as_buf event = make_message(), extension = make_message();
    as_protobuf_write_message(&extension, 1, &envelope);
    as_protobuf_write_text(&event, 1, verb);
    as_protobuf_write_message(&event, 2, &extension);
    for (int shift = 24; shift >= 0; shift -= 8)
        as_buf_append_char(watch, (char)(event.size >> shift));
    as_buf_append(watch, event.data, event.size);
    as_buf_deinit(&event);
    as_buf_deinit(&extension);
    as_buf_deinit(&envelope);
}

static struct as_buf make_list(const char *version, const char *next, size_t count, size_t size)
{
    struct as_buf list = make_message(), metadata = make_message();
    as_protobuf_write_text(&metadata, 2, version);
    as_protobuf_write_text(&metadata, 3, next);
    as_protobuf_write_int32(&metadata, 4, 77);
    as_protobuf_write_message(&list, 1, &metadata);
    for (size_t i = 0; i < count; i++) {
        struct as_buf item = make_message();
        for (size_t k = 0; k < size; k++)
            as_buf_append_char(&item, (char)('a' + i));
        as_protobuf_write_message(&list, 2, &item);
        as_buf_deinit(&item);
    }
    as_protobuf_write_int32(&list, 12, -5); /* of a future list */
    as_protobuf_write_text(&list, 300, "skipped");
    as_buf_append(&list, "\x0d....\x11........", 14);
    struct as_buf envelope = make_envelope("PodList", &list);
    as_buf_deinit(&list);
    as_buf_deinit(&metadata);
    return envelope;
}

Test(kube_stream, binary_lists)
{
    struct as_buf list = make_list("17", "next", 3, 200);
    AS_CLEANUP(as_buf_deinit) struct as_buf told = AS_BUF_INIT(1 << 20);
    for (size_t i = 0; i < 3; i++) {
        char line[201] = "";
        memset(line, (int)('a' + i), 200);
        as_buf_printf(&told, "LISTED %s\n", line);
    }
    as_buf_append_str(&told, "version 17, continue next\n");
    expect(AS_KUBE_STREAM_LIST, AS_KUBE_PROTOBUF, list.data, list.size, told.data);
    as_buf_deinit(&list);

    list = make_list("17", "", 2, 0); /* objects without a byte */
    expect(AS_KUBE_STREAM_LIST, AS_KUBE_PROTOBUF, list.data, list.size,
           "LISTED \nLISTED \nversion 17, continue \n");
    as_buf_deinit(&list);
}

Test(kube_stream, binary_lists_that_are_none)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *told;
    } rows[] = {
        {"", 0, "malformed: the list ends early\n"},
        {"{}", 2, "malformed: byte 1: expected \"k8s\\0\"\n"},
        {"k8s1", 4, "malformed: byte 4: expected \"k8s\\0\"\n"},
        {"k8s", 4, "malformed: the list ends early\n"},
        {"k8s\0\x12\x00", 6, "malformed: kind: expected that of a list\n"},
        {"k8s\0\x0a\x06\x12\x04List\x12\x00", 14, "malformed: metadata.resourceVersion: missing\n"},
        {"k8s\0\x12\x00\x12\x00", 8, "malformed: byte 8: expected one list\n"},
        {"k8s\0\x1a\x01x", 7, "malformed: byte 7: contentEncoding: unknown\n"},
        {"k8s\0\x12\x01\x12\x00", 8,
         "malformed: byte 7: a field is longer than its message\n"}, /* a tag alone */
        {"k8s\0\x12\x02\x12\x01x", 9, "malformed: byte 8: a field is longer than its message\n"},
        {"k8s\0\x12\x02\x0d\x01x12", 11, "malformed: byte 7: a field is longer than its message\n"},
        {"k8s\0\x12\x05\x12", 7, "malformed: the list ends early\n"},
        {"k8s\0\x00", 5, "malformed: byte 5: not Protocol Buffers: expected a field\n"},
        {"k8s\0\x13", 5, "malformed: byte 5: not Protocol Buffers: unknown type of field\n"},
        {"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 15,
         "malformed: byte 15: not Protocol Buffers: expected a varint\n"},
        {"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 15,
         "malformed: byte 15: a field is longer than its message\n"},
        {"k8s\0\x0a\xff\xff\xff\x7f", 9,
         "Message too long: byte 9: the object is larger than 3 MiB\n"},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++)
        expect(AS_KUBE_STREAM_LIST, AS_KUBE_PROTOBUF, rows[i].bytes, rows[i].size, rows[i].told);
}

static struct as_buf make_status(void)
{
    struct as_buf status = make_message(), details = make_message();
    as_protobuf_write_text(&details, 1, "pods");
    as_protobuf_write_int32(&details, 5, 9);
    as_protobuf_write_text(&status, 2, "Failure");
    as_protobuf_write_text(&status, 3, "too old");
    as_protobuf_write_text(&status, 4, "Expired");
    as_protobuf_write_message(&status, 5, &details);
    as_protobuf_write_int32(&status, 6, 410);
    struct as_buf envelope = make_envelope("Status", &status);
    as_buf_deinit(&details);
    as_buf_deinit(&status);
    return envelope;
}

static void append_object(struct as_buf *watch, const char *verb, const char *version,
                          const char *more)
{
    struct as_buf object = make_object(version, more);
    append_frame(watch, verb, make_envelope("Pod", &object));
    as_buf_deinit(&object);
}

Test(kube_stream, binary_watches)
{
    struct as_buf watch = make_message();
    append_object(&watch, "ADDED", "7", "x");
    append_object(&watch, "BOOKMARK", "8", "");
    append_object(&watch, "DELETED", "9", "");
    append_frame(&watch, "ERROR", make_status());
    expect(AS_KUBE_STREAM_WATCH, AS_KUBE_PROTOBUF, watch.data, watch.size,
           "ADDED \n\x09\n\x04name\x32\x01"
           "7J\x01x at 7\n"
           "BOOKMARK at 8\n"
           "DELETED \n\x09\n\x04name\x32\x01"
           "9 at 9\n"
           "ERROR 410 Expired: too old\n");
    as_buf_clear(&watch);
    append_object(&watch, "TAKEN", "7", "");
    expect(AS_KUBE_STREAM_WATCH, AS_KUBE_PROTOBUF, watch.data, watch.size,
           "malformed: byte 47: type: unknown type of event\n");
    as_buf_clear(&watch);
    append_object(&watch, "ADDED", "", "");
    expect(AS_KUBE_STREAM_WATCH, AS_KUBE_PROTOBUF, watch.data, watch.size,
           "malformed: byte 44: object.metadata.resourceVersion: missing\n");
    expect(AS_KUBE_STREAM_WATCH, AS_KUBE_PROTOBUF, watch.data, watch.size - 1,
           "malformed: the watch ends within an event\n");
    expect(AS_KUBE_STREAM_WATCH, AS_KUBE_PROTOBUF, "\0\0\0\1\0", 5,
           "malformed: byte 5: expected an event of a watch\n");
    expect(AS_KUBE_STREAM_WATCH, AS_KUBE_PROTOBUF, "\0\0\0\0", 4,
           "malformed: byte 4: expected an event of a watch\n");
    expect(AS_KUBE_STREAM_WATCH, AS_KUBE_PROTOBUF, "{\"type\"", 7,
           "Message too long: byte 4: the object is larger than 3 MiB\n");
    expect(AS_KUBE_STREAM_WATCH, AS_KUBE_PROTOBUF, "\0\0", 2,
           "malformed: the watch ends within an event\n");
    as_buf_deinit(&watch);
}

Test(kube_stream, errors_in_both_forms)
{
    struct as_kube_status status;
    struct as_error error = AS_ERROR_INIT;
    static const char json[] =
        "{\"kind\":\"Status\",\"message\":\"too old\",\"reason\":\"Expired\","
        "\"details\":{\"name\":\"pods\",\"retryAfterSeconds\":9},"
        "\"code\":410}";
    struct as_buf binary = make_status();
    for (unsigned i = 0; i < 2; i++) {
        int code = as_kube_stream_read_status(i ? binary.data : json,
                                              i ? binary.size : sizeof(json) - 1, &status, &error);
        cr_assert_eq(code, 0, "%s", error.text);
        cr_expect_eq(status.code, 410);
        cr_expect_str_eq(status.reason, "Expired");
        cr_expect_str_eq(status.message, "too old");
        cr_expect(status.names_object);
        cr_expect_eq(status.retry_after_us, 9 * AS_US_PER_S);
    }
    for (size_t size = 0; size < binary.size - 4; size++)
        cr_expect_eq(as_kube_stream_read_status(binary.data, size, &status, &error), -EBADMSG);
    cr_expect_eq(as_kube_stream_read_status("", 0, &status, &error), -EBADMSG);
    as_buf_deinit(&binary);
}
