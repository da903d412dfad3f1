/*
 * The pods on one node: see the header.
 */
#include "node_pods.h"

#include <stdio.h>
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/target_limits.h>

#include "kube_pages.h"
#include "kube_path.h"
#include "kubernetes_pods.h"

struct as_node_pod_list {
    struct as_kube_pages *pages;
    as_node_pod_list_done_fn *done;
    void *context;
    struct as_kube_node_pods pods;
};

static void free_list(struct as_node_pod_list *list)
{
    as_kube_node_pods_deinit(&list->pods);
    free(list);
}

void as_node_pod_list_cancel(struct as_node_pod_list *list)
{
    as_kube_pages_cancel(list->pages);
    free_list(list);
}

static int take(void *context, const char *json, size_t size, char **next_out,
                struct as_error *error)
{
    struct as_node_pod_list *list = context;
    return as_kube_node_pods_decode(&list->pods, json, size, next_out, error);
}

static void clear(void *context)
{
    struct as_node_pod_list *list = context;
    as_kube_node_pods_clear(&list->pods);
}

static void done(void *context, const struct as_outcome *outcome)
{
    struct as_node_pod_list *list = context;
    list->done(list->context, outcome, &list->pods);
    free_list(list);
}

struct as_node_pod_list *as_node_pod_list_start(struct as_kube_client *client, const char *node,
                                                as_node_pod_list_done_fn *done_fn, void *context)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    char selector[AS_KUBE_POD_NAME_MAX + 32];
    struct as_node_pod_list *list = as_xcalloc(1, sizeof(*list));
    snprintf(selector, sizeof(selector), "spec.nodeName=%s", node);
    as_buf_append_str(&path, "/api/v1/pods");
    as_kube_path_append_parameter(&path, "fieldSelector", selector);
    const struct as_kube_pages_spec spec = {
        .path = as_buf_check(&path) ? NULL : path.data,
        .trouble = "the node's name is too long for a request",
        .operation = "list_node_pods",
        .what = "list pods of a node",
        .right = "pods: list (in all namespaces)",
        .take = take,
        .clear = clear,
        .done = done,
        .context = list,
    };
    list->done = done_fn;
    list->context = context;
    list->pods = AS_KUBE_NODE_PODS_INIT(AS_NODE_PODS_MAX);
    list->pages = as_kube_pages_start(client, &spec);
    return list;
}
