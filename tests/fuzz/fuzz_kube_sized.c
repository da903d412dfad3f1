/*
 * Any bytes as a workload with its pod template, as a pod and as a page of pods, whose containers
 * are sized: read, or refused with a reason. What was read can be counted and changed to another
 * size, or says why not; a patch is JSON.
 */
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>

#include "fuzz.h"
#include "kube/kubernetes_resources.h"

#define PATCH_MAX ((size_t)1 << 20)
#define PODS_MAX  ((size_t)64)

static struct as_error error;

static void check_code(int code)
{
    FUZZ_CHECK(code == 0 || *error.text);
    error.text[0] = '\0';
}

static void check_patch(const struct as_buf *patch)
{
    FUZZ_CHECK(as_buf_check(patch) == 0);
    json_t *whole = json_loadb(patch->data, patch->size, JSON_REJECT_DUPLICATES, NULL);
    FUZZ_CHECK(whole);
    json_decref(whole);
}

/* A size that was counted can be made again, where the limit allows it. */
static int resize(const struct as_kube_amounts *amounts, enum as_resource resource, bool keep_limit,
                  struct as_kube_amounts *changed)
{
    struct as_unit unit;
    int32_t size = -1, max = -2;
    FUZZ_CHECK(as_unit_parse(resource == AS_RESOURCE_CPU ? "100m" : "64Mi", &unit, NULL) == 0);
    int code = as_kube_amounts_count(amounts, resource, &unit, keep_limit, &size, &max, &error);
    check_code(code);
    if (code)
        return code;
    FUZZ_CHECK(size >= 0 && max >= -1);
    code = as_kube_amounts_resize(amounts, resource, &unit, keep_limit, size, changed, &error);
    check_code(code);
    FUZZ_CHECK(code || (keep_limit && max >= 0 ? size <= max : true));
    FUZZ_CHECK(code || !*changed->limit == !*amounts->limit);
    return code;
}

static void check_workload(const char *text, size_t size, const struct as_kube_part *part)
{
    static const char *const kinds[] = {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"};
    for (size_t i = 0; i < AS_ARRAY_SIZE(kinds); i++) {
        struct as_kube_workload workload;
        struct as_kube_amounts changed;
        const int code = as_kube_workload_decode(as_kube_workload_kind_find(kinds[i]), text, size,
                                                 part, &workload, &error);
        check_code(code);
        if (code)
            continue;
        FUZZ_CHECK(!workload.selector || *workload.selector);
        FUZZ_CHECK(!workload.rollout.has_failed || workload.rollout.is_running);
        if (resize(&workload.amounts, part->resource, false, &changed) == 0) {
            struct as_buf patch = AS_BUF_INIT(PATCH_MAX);
            as_kube_template_patch_encode(part, &workload, &changed, &workload.amounts, &patch);
            check_patch(&patch);
            as_buf_deinit(&patch);
        }
        as_kube_workload_deinit(&workload);
    }
}

static void check_pod(const struct as_kube_part *part, const struct as_kube_sized_pod *pod)
{
    struct as_kube_amounts changed;
    struct as_buf patch = AS_BUF_INIT(PATCH_MAX);
    FUZZ_CHECK(*pod->name && pod->message);
    FUZZ_CHECK(pod->resize == AS_KUBE_RESIZE_NONE || pod->is_answered);
    if (pod->has_container &&
        resize(as_kube_sized_pod_get(pod), part->resource, true, &changed) == 0) {
        as_kube_resize_patch_encode(part, pod, &changed, &patch);
        check_patch(&patch);
    }
    as_buf_deinit(&patch);
}

static void check_pods(const char *text, size_t size, const struct as_kube_part *part)
{
    struct as_kube_sized_pods pods = {
        .part = *part, .kind = "Deployment", .name = "cart", .uid = "u-1", .max = PODS_MAX};
    struct as_kube_sized_pod pod;
    AS_CLEANUP(as_free_p) char *next = NULL;
    int code = as_kube_sized_pod_decode(&pods, text, size, &pod, &error);
    check_code(code);
    if (code == 0)
        check_pod(part, &pod);
    code = as_kube_sized_pods_decode(&pods, text, size, &next, &error);
    check_code(code);
    as_kube_sized_pods_finish(&pods);
    FUZZ_CHECK(pods.count + pods.without <= PODS_MAX);
    for (size_t i = 0; code == 0 && i < pods.count; i++)
        check_pod(part, &pods.items[i]);
    as_kube_sized_pods_deinit(&pods);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct as_kube_part parts[] = {{"app", AS_RESOURCE_MEMORY},
                                                {"app", AS_RESOURCE_CPU}};
    const char *text = (const char *)data;
    for (size_t i = 0; i < AS_ARRAY_SIZE(parts); i++) {
        check_workload(text, size, &parts[i]);
        check_pods(text, size, &parts[i]);
    }
    return 0;
}
