/* Any bytes as an answer of a gRPC driver. The first byte chooses the answer's position in a
 * reading, and whether its frame is valid. The op continues or ends with a line for people; names
 * and sizes that were read are valid. */
#include <string.h>

#include <alertscaler/base/str.h>
#include <alertscaler/cloud/provider_group.h>

#include "fuzz.h"

#define PREFIX 5

static const struct {
    const char *bytes;
    size_t size;
} good[] = {
    {"\0\0\0\0\0", PREFIX},                  /* Refresh */
    {"\0\0\0\0\5\x0a\3\x0a\1g", PREFIX + 5}, /* NodeGroups: g */
    {"\0\0\0\0\2\x08\3", PREFIX + 2},        /* NodeGroupTargetSize: 3 */
    {"\0\0\0\0\5\x0a\3\x0a\1i", PREFIX + 5}, /* NodeGroupNodes: i */
};

static const char *get_nothing(const char *name)
{
    return NULL;
}

static void answer(struct as_cloud_op *op, const char *bytes, size_t size)
{
    const struct as_http_response response = {
        .status = 200,
        .body = bytes,
        .body_size = size,
        .etag = "",
        .retry_after = "",
        .content_type = "application/grpc",
        .location = "",
        .fields = "grpc-status\0000\0",
        .error = "",
    };
    as_cloud_op_on_response(op, (as_wall_time){0}, &response);
}

static void check_end(const struct as_group_op *group)
{
    const struct as_group_view *view = &group->view;
    const char *message = group->op.message;
    FUZZ_CHECK(as_str_is_utf8(message, strlen(message)) && !strpbrk(message, "\r\n"));
    FUZZ_CHECK((group->op.fault == AS_CLOUD_OP_OK) == !*message);
    FUZZ_CHECK(view->size >= 0);
    for (size_t i = 0; i < view->instance_count; i++)
        FUZZ_CHECK(*view->instances[i].id &&
                   as_str_is_utf8(view->instances[i].id, strlen(view->instances[i].id)));
}

/* A copy with nothing behind it, in a frame that says its size where it is wanted. */
static char *make_body(const uint8_t *data, size_t size, bool is_framed, size_t *size_out)
{
    const size_t start = is_framed ? PREFIX : 0;
    char *body = malloc(start + size + 1);
    for (size_t i = 0; i < start; i++)
        body[i] = (char)(i == 0 ? 0 : size >> 8 * (PREFIX - 1 - i) & 0xff);
    if (size > 0)
        memcpy(body + start, data, size);
    body[start + size] = '\0'; /* as every answer's */
    *size_out = start + size;
    return body;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_provider_option option = {.key = "endpoint", .value = "https://driver"};
    const struct as_provider_settings account = {.options = &option, .option_count = 1};
    const struct as_target_field field = {"name", "g"};
    const size_t turn = size > 0 ? data[0] % AS_ARRAY_SIZE(good) : 0;
    const struct as_group_provider *provider = as_group_provider_find("externalgrpc");
    struct as_group_op group = {.account = &account, .view = {.min = -1, .max = -1}};
    if (size == 0 || !provider)
        return 0;
    size_t body_size;
    char *body = make_body(data + 1, size - 1, data[0] < 128, &body_size);
    struct as_target_ref *ref = as_target_ref_make(&as_target_kind_node_group, "x", &field, 1);
    group.group = ref;
    as_cloud_op_init(&group.op, get_nothing);
    provider->begin(&group);
    for (size_t i = 0; group.op.want == AS_CLOUD_OP_SEND; i++) {
        FUZZ_CHECK(i < AS_ARRAY_SIZE(good));
        answer(&group.op, i == turn ? body : good[i].bytes, i == turn ? body_size : good[i].size);
    }
    check_end(&group);
    as_cloud_op_deinit(&group.op);
    as_target_ref_free(ref);
    free(body);
    return 0;
}
