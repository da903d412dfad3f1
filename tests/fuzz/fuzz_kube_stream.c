/* Any bytes as a list or a watch of the Kubernetes API, in both forms, behind a byte that says
 * which and how they are cut: however that is, the same is told and the same is refused; what is
 * told is within the limits; what jansson reads is not called malformed. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/buf.h>
#include <alertscaler/decide/notification.h>
#include <alertscaler/kube/kube_stream.h>

#include "fuzz.h"

struct told {
    unsigned count;
    struct as_buf all;
    enum as_kube_stream_kind kind;
    enum as_kube_form form;
};

static void check_event(const struct told *told, const struct as_kube_stream_event *event)
{
    const bool has_object = event->verb < AS_KUBE_BOOKMARK;
    FUZZ_CHECK((event->verb == AS_KUBE_LISTED) == (told->kind == AS_KUBE_STREAM_LIST));
    FUZZ_CHECK(event->form == told->form && (event->object != NULL) == has_object);
    FUZZ_CHECK(event->size <= AS_KUBE_ITEM_MAX);
    FUZZ_CHECK((event->status != NULL) == (event->verb == AS_KUBE_ERROR));
    if (event->verb != AS_KUBE_ERROR && event->verb != AS_KUBE_LISTED)
        FUZZ_CHECK(*event->resource_version);
    if (has_object && event->form == AS_KUBE_JSON)
        FUZZ_CHECK(event->object[0] == '{' && event->object[event->size - 1] == '}');
}

static int take(void *context, const struct as_kube_stream_event *event, struct as_error *error)
{
    struct told *told = context;
    told->count++;
    check_event(told, event);
    as_buf_printf(&told->all, "%d %zu %s %s ", event->verb, event->size,
                  event->resource_version ? event->resource_version : "",
                  event->status ? event->status->message : "");
    as_buf_append(&told->all, event->object ? event->object : "", event->size);
    return 0;
}

static int read_in_parts(struct told *told, const char *bytes, size_t size, size_t step,
                         struct as_error *error)
{
    AS_CLEANUP(as_kube_stream_free_p)
    struct as_kube_stream *stream = as_kube_stream_new(told->kind, told->form, take, told);
    int code = 0;
    told->all = AS_BUF_INIT((size_t)64 * 1024 * 1024);
    for (size_t at = 0; at < size && code == 0; at += step)
        code = as_kube_stream_feed(stream, bytes + at, step < size - at ? step : size - at, error);
    if (code == 0)
        code = as_kube_stream_finish(stream, error);
    FUZZ_CHECK(code == 0 || ((code == -EBADMSG || code == -EMSGSIZE) && *error->text));
    if (code == 0 && told->kind == AS_KUBE_STREAM_LIST)
        as_buf_printf(&told->all, "%s %s", as_kube_stream_get_version(stream),
                      as_kube_stream_get_continue(stream));
    return code;
}

/* A list is one document, which jansson reads too. */
static void compare_syntax(const char *json, size_t size, const struct as_error *error)
{
    json_t *whole = json_loadb(json, size, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    const bool is_limit = strstr(error->text, "deeper") || strstr(error->text, "shorter");
    /* jansson passes over some NULs */
    if (whole && !memchr(json, '\0', size))
        FUZZ_CHECK(is_limit || strncmp(error->text, "not JSON", 8) != 0);
    json_decref(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *bytes = (const char *)data + 1;
    struct told whole = {.kind = data[0] & 1 ? AS_KUBE_STREAM_WATCH : AS_KUBE_STREAM_LIST,
                         .form = data[0] & 2 ? AS_KUBE_PROTOBUF : AS_KUBE_JSON};
    struct told cut = whole;
    struct as_error error = AS_ERROR_INIT, cut_error = AS_ERROR_INIT;
    struct as_kube_status status;

    int code = read_in_parts(&whole, bytes, size - 1, size, &error);
    int cut_code = read_in_parts(&cut, bytes, size - 1, 1 + (data[0] >> 2), &cut_error);
    FUZZ_CHECK(code == cut_code && strcmp(error.text, cut_error.text) == 0);
    FUZZ_CHECK(whole.count == cut.count && whole.all.size == cut.all.size);
    FUZZ_CHECK(whole.all.size == 0 || memcmp(whole.all.data, cut.all.data, whole.all.size) == 0);
    if (whole.form == AS_KUBE_JSON && whole.kind == AS_KUBE_STREAM_LIST)
        compare_syntax(bytes, size - 1, &error);
    as_buf_deinit(&whole.all);
    as_buf_deinit(&cut.all);
    code = as_kube_stream_read_status(bytes, size - 1, &status, &error);
    FUZZ_CHECK(code == 0 || code == -EBADMSG);
    return 0;
}
