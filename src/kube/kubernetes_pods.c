/*
 * The pods behind a target: see the header.
 */
#include <alertscaler/kube/kubernetes_pods.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "kube_list.h"
#include "kubernetes_pod.h"
#include <alertscaler/doc/json_reader.h>

int as_kube_selector_decode(const char *json, size_t size, char **selector_out,
                            struct as_error *error)
{
    AS_CLEANUP(tree_deinit) struct tree tree = TREE_INIT(TREE_NO_LIMIT);
    struct as_reader root, status;
    int code = tree_load_object(&tree, json, size, error);
    if (code)
        return code;
    as_read_lenient(&root, tree.root, error);
    as_read_object(&status, &root, "status");
    const struct tree_value *selector = as_read_any(&status, "selector");
    if (!selector || selector->kind == TREE_OBJECT) /* old versions: a map, beside the text */
        selector = as_read_any(&status, "targetSelector");
    if (selector && selector->kind != TREE_TEXT)
        as_read_fail(&status, "selector", "expected a string");
    if ((code = as_read_result(&root)))
        return code;
    const char *text = tree_get_text(selector);
    *selector_out = as_str_is_empty(text) ? NULL : as_xstrdup(text);
    return 0;
}

/* Pages */

static int take_pod(void *context, const struct tree_value *item, struct as_error *error)
{
    struct as_kube_pods *pods = context;
    struct as_pod_seen pod;
    int status = as_kube_pod_read(item, &pod, error);
    if (status)
        return status;
    if (pods->count == pods->max) {
        as_error_set(error, "more than %zu pods", pods->max);
        return -E2BIG;
    }
    pod.name = as_arena_strdup(&pods->names, pod.name);
    pods->items = as_xgrow(pods->items, pods->count, &pods->capacity, sizeof(*pods->items));
    pods->items[pods->count++] = pod;
    return 0;
}

int as_kube_pods_decode(struct as_kube_pods *pods, const char *json, size_t size, char **next_out,
                        struct as_error *error)
{
    return kube_list_read(json, size, "PodList", take_pod, pods, next_out, error);
}

/* Equal names stay in the order in which they were read. */
static int compare(const void *a, const void *b)
{
    const struct as_pod_seen *left = *(const struct as_pod_seen *const *)a;
    const struct as_pod_seen *right = *(const struct as_pod_seen *const *)b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left > right) - (left < right);
}

void as_kube_pods_finish(struct as_kube_pods *pods)
{
    if (pods->count == 0)
        return;
    const struct as_pod_seen **order = as_xcalloc(pods->count, sizeof(const struct as_pod_seen *));
    struct as_pod_seen *sorted = as_xcalloc(pods->count, sizeof(*sorted));
    size_t kept = 0;
    for (size_t i = 0; i < pods->count; i++)
        order[i] = &pods->items[i];
    qsort(order, pods->count, sizeof(const struct as_pod_seen *), compare);
    for (size_t i = 0; i < pods->count; i++)
        if (i + 1 == pods->count || strcmp(order[i]->name, order[i + 1]->name) != 0)
            sorted[kept++] = *order[i];
    free(order);
    free(pods->items);
    pods->items = sorted;
    pods->capacity = pods->count;
    pods->count = kept;
}

void as_kube_pods_clear(struct as_kube_pods *pods)
{
    pods->count = 0;
    as_arena_reset(&pods->names);
}

void as_kube_pods_deinit(struct as_kube_pods *pods)
{
    free(pods->items);
    as_arena_deinit(&pods->names);
    *pods = AS_KUBE_PODS_INIT(pods->max);
}
