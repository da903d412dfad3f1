/*
 * A copy of a scale request: see the header.
 */
#include <alertscaler/kube/scale_request.h>

#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/decide/choose.h>

static char *scale_request_copy_text(const char *text)
{
    return as_xstrdup(text ? text : "");
}

static const char *const *scale_request_copy_names(const char *const *names, size_t count)
{
    const char **copy = as_xcalloc(count, sizeof(*copy));
    for (size_t i = 0; i < count; i++)
        copy[i] = as_xstrdup(names[i]);
    return copy;
}

static void scale_request_free_names(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)names[i]);
    free((void *)(uintptr_t)names);
}

static struct as_nodes_config *copy_nodes(const struct as_nodes_config *nodes)
{
    struct as_nodes_config *copy = NULL;
    if (nodes) {
        copy = as_xcalloc(1, sizeof(*copy));
        as_nodes_config_copy(nodes, copy);
    }
    return copy;
}

static void free_nodes(struct as_nodes_config *nodes)
{
    if (nodes)
        as_nodes_config_deinit(nodes);
    free(nodes);
}

void as_scale_request_copy(const struct as_scale_request *request,
                           struct as_scale_request *copy_out)
{
    *copy_out = *request;
    copy_out->is_ordered = request->is_ordered;
    copy_out->credential = request->credential ? as_xstrdup(request->credential) : NULL;
    copy_out->decision_id = scale_request_copy_text(request->decision_id);
    copy_out->rule = scale_request_copy_text(request->rule);
    copy_out->alert = scale_request_copy_text(request->alert);
    copy_out->nodes = copy_nodes(request->nodes);
    copy_out->take = scale_request_copy_names(request->take, request->take_count);
    copy_out->backing = scale_request_copy_names(request->backing, request->backing_count);
}

void as_scale_request_deinit(struct as_scale_request *copy)
{
    free((char *)(uintptr_t)copy->credential);
    free((char *)copy->decision_id);
    free((char *)copy->rule);
    free((char *)copy->alert);
    free_nodes((struct as_nodes_config *)copy->nodes);
    scale_request_free_names(copy->take, copy->take_count);
    scale_request_free_names(copy->backing, copy->backing_count);
    *copy = (struct as_scale_request){0};
}
