/*
 * Who set a size: see the header. A failure says nothing: the size itself is known.
 */
#include "kube_manager.h"

#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/log.h>
#include <alertscaler/kube/target_outcome.h>

#include "kubernetes_others.h"

#define OK 200

struct as_kube_manager_ask {
    struct as_kube_request *request;
    as_kube_manager_done_fn *done;
    void *context;
};

void as_kube_manager_read(const char *json, size_t size, const char *field,
                          char manager_out[AS_MANAGER_SIZE])
{
    struct as_error error = AS_ERROR_INIT;
    struct as_field_path path;
    if (as_field_path_parse(field, &path, &error) == 0 &&
        as_kube_manager_decode(json, size, &path, manager_out, &error) == 0)
        return;
    manager_out[0] = '\0';
    as_log(AS_LOG_DEBUG, "who set the size is not known", AS_F("error", error.text));
}

static void manager_answered(void *context, const struct as_http_response *response,
                             unsigned attempts)
{
    struct as_kube_manager_ask ask = *(struct as_kube_manager_ask *)context;
    char manager[AS_MANAGER_SIZE] = "";
    free(context);
    if (response->status != OK)
        as_log(AS_LOG_DEBUG, "who set the size is not known",
               AS_FI("http_status", response->status));
    else
        as_kube_manager_read(response->body, response->body_size, "spec.replicas", manager);
    ask.done(ask.context, manager);
}

struct as_kube_manager_ask *as_kube_manager_start(struct as_kube_client *client,
                                                  const struct as_flow *flow, const char *path,
                                                  as_kube_manager_done_fn *done, void *context)
{
    struct as_kube_manager_ask *ask = as_xcalloc(1, sizeof(*ask));
    ask->done = done;
    ask->context = context;
    ask->request = as_kube_request_start(
        client,
        &(struct as_kube_request_spec){
            .method = "GET",
            .path = path,
            .operation = "get_metadata",
            .accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            .max_response = AS_KUBE_METADATA_MAX,
            .flow = *flow,
        },
        manager_answered, ask);
    return ask;
}

void as_kube_manager_cancel(struct as_kube_manager_ask *ask)
{
    as_kube_request_cancel(ask->request);
    free(ask);
}
