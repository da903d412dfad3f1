/* Any bytes as each of the documents that targets answer with: read, or refused with a reason; a
 * size that was read is valid, and survives writing and reading. */
#include <errno.h>
#include <string.h>

#include <alertscaler/cloud/http_group.h>
#include <alertscaler/kube/kube_documents.h>

#include "fuzz.h"
#include "kube/kube_rollout.h"
#include "kube/kube_writers.h"

static struct as_error error;

static void check_code(int code)
{
    FUZZ_CHECK(code == 0 || (code == -EBADMSG && *error.text));
    error.text[0] = '\0';
}

static void check_scale(const char *json, size_t size)
{
    struct as_kube_scale scale, again;
    struct as_buf text = AS_BUF_INIT(4096);
    int code = as_kube_scale_decode(json, size, &scale, &error);
    check_code(code);
    if (code)
        return;
    FUZZ_CHECK(scale.replicas >= 0 && scale.status_replicas >= 0 && *scale.resource_version);
    struct as_kube_scale_update update = {"autoscaling/v1", "n", "x", scale.resource_version,
                                          scale.replicas};
    as_kube_scale_encode(&update, &text);
    FUZZ_CHECK(as_buf_check(&text) == 0);
    FUZZ_CHECK(as_kube_scale_decode(text.data, text.size, &again, &error) == 0);
    FUZZ_CHECK(again.replicas == scale.replicas);
    FUZZ_CHECK(strcmp(again.resource_version, scale.resource_version) == 0);
    as_buf_deinit(&text);
}

static void check_resources(const char *json, size_t size)
{
    struct as_kube_resources *list = NULL;
    int code = as_kube_resources_decode(json, size, &list, &error);
    check_code(code);
    for (size_t i = 0; code == 0 && i < list->count; i++) {
        FUZZ_CHECK(*list->items[i].kind && *list->items[i].plural);
        FUZZ_CHECK(as_kube_resources_find(list, list->items[i].kind) != NULL);
    }
    as_kube_resources_free(list);
}

static void check_messages(const char *json, size_t size)
{
    struct as_kube_status status;
    char message[AS_MESSAGE_SIZE];
    int code = as_kube_status_decode(json, size, &status, &error);
    check_code(code);
    if (code == 0)
        FUZZ_CHECK(status.retry_after_us >= 0 && !strchr(status.message, '\n'));
    as_http_group_decode_message(json, size, message);
    FUZZ_CHECK(strlen(message) < AS_MESSAGE_SIZE && !strchr(message, '\n'));
}

static void check_others(const char *json, size_t size)
{
    static as_kube_others_decode_fn *const decoders[] = {as_kube_hpas_decode,
                                                         as_kube_scaled_objects_decode};
    char manager[AS_MANAGER_SIZE] = "";
    for (size_t i = 0; i < AS_ARRAY_SIZE(decoders); i++) {
        struct as_kube_others others = {.max = 100, .texts = AS_ARENA_INIT};
        char *next = NULL;
        const int code = decoders[i](&others, json, size, &next, &error);
        FUZZ_CHECK(code == 0 || ((code == -EBADMSG || code == -E2BIG) && *error.text && !next));
        for (size_t k = 0; code == 0 && k < others.count; k++)
            FUZZ_CHECK(*others.items[k].name && *others.items[k].target && others.items[k].group);
        error.text[0] = '\0';
        free(next);
        as_kube_others_deinit(&others);
    }
    struct as_field_path field;
    FUZZ_CHECK(as_field_path_parse("spec.containers[name=app].size", &field, &error) == 0);
    check_code(as_kube_manager_decode(json, size, &field, manager, &error));
    FUZZ_CHECK(strlen(manager) < AS_MANAGER_SIZE);
}

static void check_rollout(const char *json, size_t size)
{
    static const char *const kinds[][2] = {{"apps/v1", "Deployment"},
                                           {"apps/v1", "StatefulSet"},
                                           {"argoproj.io/v1alpha1", "Rollout"},
                                           {"example.com/v1", "Shop"}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        struct as_rollout_seen seen;
        as_kube_rollout_decode(kinds[i][0], kinds[i][1], json, size, &seen);
        FUZZ_CHECK((seen.progress == AS_PROGRESS_UNKNOWN) == (seen.why[0] != '\0'));
        FUZZ_CHECK(strlen(seen.why) < AS_MESSAGE_SIZE && strlen(seen.revision) < AS_REVISION_SIZE);
    }
}

static void check_lease(const char *json, size_t size)
{
    struct as_lease_object object, again;
    struct as_lease ours = {.holder = "me", .duration_s = 15, .renewed = {true, {1}}};
    struct as_buf text = AS_BUF_INIT(1024 * 1024);
    int code = as_lease_decode(json, size, &object, &error);
    check_code(code);
    if (code)
        return;
    FUZZ_CHECK(object.lease.duration_s >= 0 && *object.resource_version);
    FUZZ_CHECK(as_lease_is_same(&object.lease, &object.lease));
    FUZZ_CHECK(as_lease_encode_update(json, size, &ours, &text, &error) == 0);
    if (as_buf_check(&text) == 0) {
        FUZZ_CHECK(as_lease_decode(text.data, text.size, &again, &error) == 0);
        FUZZ_CHECK(as_lease_is_same(&again.lease, &ours));
        FUZZ_CHECK(strcmp(again.resource_version, object.resource_version) == 0);
        FUZZ_CHECK(again.is_paused == object.is_paused);
    }
    as_buf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data;
    struct as_kube_exec_credential credential = {0};
    struct as_http_group group;

    check_scale(json, size);
    check_others(json, size);
    check_resources(json, size);
    check_messages(json, size);
    check_lease(json, size);
    check_rollout(json, size);
    int code = as_kube_exec_credential_decode(json, size, "client.authentication.k8s.io/v1",
                                              &credential, &error);
    check_code(code);
    if (code == 0)
        FUZZ_CHECK(credential.token || (credential.cert_pem && credential.key_pem));
    as_kube_exec_credential_deinit(&credential);
    code = as_http_group_decode(json, size, &group, &error);
    check_code(code);
    if (code == 0)
        FUZZ_CHECK(group.size >= 0 && group.min >= -1 && group.max >= -1 &&
                   as_http_group_etag_is_valid(group.etag));
    return 0;
}
