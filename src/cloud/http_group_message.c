/*
 * The generic HTTP node group's documents: see the header. Known members are checked strictly,
 * unknown members are ignored: the other side is often a short script.
 */
#include <alertscaler/cloud/http_group_message.h>

#include <errno.h>
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/doc/json_writer.h>

#include <alertscaler/doc/json_reader.h>

int as_http_group_decode(const char *json, size_t size, struct as_http_group *group_out,
                         struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_http_group group = {.size = -1, .min = -1, .max = -1};
    struct as_reader reader;
    int status = tree_load_object(&tree, json, size, error);
    if (status)
        return status;
    as_read_lenient(&reader, tree.root, error);
    as_read_i32(&reader, "size", 0, &group.size);
    as_read_i32(&reader, "min", 0, &group.min);
    as_read_i32(&reader, "max", 0, &group.max);
    as_read_bool(&reader, "in_progress", &group.in_progress);
    as_read_bool(&reader, "removes_by_name", &group.removes_by_name);
    as_read_copy(&reader, "etag", group.etag, sizeof(group.etag));
    as_read_require(&reader, "size");
    if (!as_http_group_etag_is_valid(group.etag))
        as_read_fail(&reader, "etag", "expected printable ASCII");
    status = as_read_result(&reader);
    if (status == 0)
        *group_out = group;
    return status;
}

int as_http_group_decode_answer(const char *json, size_t size, const char *etag,
                                struct as_http_group *group_out, struct as_error *error)
{
    struct as_http_group group;
    int status = as_http_group_decode(json, size, &group, error);
    if (status == 0 && as_str_is_empty(group.etag)) {
        if (as_http_group_etag_is_valid(etag)) {
            memcpy(group.etag, etag, strlen(etag) + 1);
        } else {
            as_error_set(error, "ETag: too long, or not printable ASCII");
            status = -EBADMSG;
        }
    }
    if (status)
        as_error_wrap(error, "not a node group's document");
    else
        *group_out = group;
    return status;
}

static void begin_change(struct as_json_writer *json, int32_t size, int32_t observed,
                         struct as_buf *out)
{
    as_json_init(json, out, AS_JSON_ANY_ORDER);
    as_json_begin_object(json);
    as_json_write_member_i64(json, "size", size);
    as_json_write_member_i64(json, "observed", observed);
}

void as_http_group_encode_change(int32_t size, int32_t observed, struct as_buf *out)
{
    struct as_json_writer json;
    begin_change(&json, size, observed, out);
    as_json_end_object(&json);
}

void as_http_group_encode_removal(int32_t size, int32_t observed, const char *const *nodes,
                                  size_t count, struct as_buf *out)
{
    struct as_json_writer json;
    begin_change(&json, size, observed, out);
    as_json_write_key(&json, "remove");
    as_json_begin_array(&json);
    for (size_t i = 0; i < count; i++)
        as_json_write_string(&json, nodes[i]);
    as_json_end_array(&json);
    as_json_end_object(&json);
}

void as_http_group_decode_message(const char *json, size_t size, char message_out[AS_MESSAGE_SIZE])
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    const char *text = NULL;
    if (tree_load_object(&tree, json, size, NULL) == 0) {
        text = tree_find_text(tree.root, "message");
        if (!text)
            text = tree_find_text(tree.root, "error");
    }
    as_str_copy_line(text ? text : "", message_out, AS_MESSAGE_SIZE);
}

bool as_http_group_etag_is_valid(const char *etag)
{
    size_t size = strlen(etag);
    return size < AS_VERSION_SIZE && as_str_is_visible(etag, size);
}
