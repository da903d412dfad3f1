/* Any bytes as a page of nodes, as a page of a node's pods, and as one Node to be patched: read, or
 * refused with a reason. What was read has names, and sums that are numbers; patches are JSON. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/kube_nodes.h>

#include "fuzz.h"

#define PATCH_MAX ((size_t)1024 * 1024)

static struct as_error error;

static void check_code(int code)
{
    FUZZ_CHECK(code == 0 || (code == -EBADMSG && *error.text));
    error.text[0] = '\0';
}

static void check_nodes(const char *json, size_t size)
{
    struct as_kube_nodes nodes = AS_KUBE_NODES_INIT(64);
    AS_CLEANUP(as_free_p) char *next = NULL;
    check_code(as_kube_nodes_decode(&nodes, json, size, &next, &error));
    FUZZ_CHECK(nodes.count <= nodes.max);
    for (size_t i = 0; i < nodes.count; i++) {
        FUZZ_CHECK(*nodes.items[i].name && nodes.items[i].provider_id);
        FUZZ_CHECK(nodes.items[i].mark.owner && nodes.items[i].mark.decision);
    }
    as_kube_nodes_deinit(&nodes);
}

static void check_pods(const char *json, size_t size)
{
    struct as_kube_node_pods pods = AS_KUBE_NODE_PODS_INIT(64);
    AS_CLEANUP(as_free_p) char *next = NULL;
    check_code(as_kube_node_pods_decode(&pods, json, size, &next, &error));
    for (size_t i = 0; i < pods.count; i++) {
        const struct as_kube_node_pod *pod = &pods.items[i];
        FUZZ_CHECK(*pod->name && *pod->name != '.' && *pod->namespace_ && *pod->uid);
        FUZZ_CHECK(!pod->blocking || pod->fate == AS_KUBE_POD_EVICT);
        for (int j = 0; j < AS_RESOURCE_COUNT; j++)
            FUZZ_CHECK(isfinite(pod->requests[j]) && pod->requests[j] >= 0);
    }
    as_kube_node_pods_deinit(&pods);
}

static void check_patch(int code, struct as_buf *patch)
{
    json_t *object = code == 0 ? json_loadb(patch->data, patch->size, 0, NULL) : NULL;
    FUZZ_CHECK(code == 0 ? object != NULL : code == -EBADMSG || code == -EMSGSIZE);
    json_decref(object);
    as_buf_deinit(patch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const struct as_kube_node_mark mark = {.owner = "me", .decision = "01HD"};
    struct as_buf patch = AS_BUF_INIT(PATCH_MAX), undo = AS_BUF_INIT(PATCH_MAX);
    char version[AS_KUBE_EVICTION_VERSION_SIZE] = "";
    check_nodes(text, size);
    check_pods(text, size);
    check_patch(as_kube_node_mark_encode(text, size, &mark, &patch, &error), &patch);
    check_patch(as_kube_node_unmark_encode(text, size, &undo, &error), &undo);
    check_code(as_kube_eviction_version_decode(text, size, version, &error));
    return 0;
}
