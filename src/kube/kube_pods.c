/*
 * A list of pods: see the header.
 */
#include "kube_pods.h"

#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/kube/target_limits.h>

#include "kube_pages.h"
#include "kube_path.h"

struct as_kube_pod_list {
    struct as_kube_pages *pages;
    as_kube_pod_list_done_fn *done;
    void *context;
    struct as_kube_pods pods;
};

static void free_list(struct as_kube_pod_list *list)
{
    as_kube_pods_deinit(&list->pods);
    free(list);
}

void as_kube_pod_list_cancel(struct as_kube_pod_list *list)
{
    as_kube_pages_cancel(list->pages);
    free_list(list);
}

static int pod_list_take(void *context, const char *json, size_t size, char **next_out,
                         struct as_error *error)
{
    struct as_kube_pod_list *list = context;
    return as_kube_pods_decode(&list->pods, json, size, next_out, error);
}

static void pod_list_clear(void *context)
{
    struct as_kube_pod_list *list = context;
    as_kube_pods_clear(&list->pods);
}

static void done(void *context, const struct as_outcome *outcome)
{
    struct as_kube_pod_list *list = context;
    if (outcome->reason == AS_REASON_APPLIED)
        as_kube_pods_finish(&list->pods);
    list->done(list->context, outcome, &list->pods);
    free_list(list);
}

static int pod_list_write_path(const char *namespace_, const char *selector, struct as_buf *path)
{
    as_buf_append_str(path, "/api/v1/namespaces");
    int status = as_kube_path_append(path, namespace_);
    as_buf_append_str(path, "/pods");
    as_kube_path_append_parameter(path, "labelSelector", selector);
    return status ? status : as_buf_check(path);
}

struct as_kube_pod_list *as_kube_pod_list_start(struct as_kube_client *client,
                                                const struct as_flow *flow, const char *namespace_,
                                                const char *selector,
                                                as_kube_pod_list_done_fn *done_fn, void *context)
{
    AS_CLEANUP(as_buf_deinit) struct as_buf path = AS_BUF_INIT(AS_TARGET_URL_MAX);
    const int status = pod_list_write_path(namespace_, selector, &path);
    struct as_kube_pod_list *list = as_xcalloc(1, sizeof(*list));
    const struct as_kube_pages_spec spec = {
        .path = status ? NULL : path.data,
        .trouble = "the selector is too long for a request",
        .operation = "list_pods",
        .what = "list pods",
        .right = "pods: list",
        .flow = *flow,
        .take = pod_list_take,
        .clear = pod_list_clear,
        .done = done,
        .context = list,
    };
    list->done = done_fn;
    list->context = context;
    list->pods = AS_KUBE_PODS_INIT(AS_KUBE_PODS_MAX);
    list->pages = as_kube_pages_start(client, &spec);
    return list;
}
