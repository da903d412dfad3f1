/*
 * One Pod: see the header. HPA's defaults for absent values belong to the decision, not here.
 */
#include "kubernetes_pod.h"

#include <errno.h>
#include <math.h>

#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/kubernetes_pods.h>

#include "kube_object.h"
#include "pod_requests.h"
#include <alertscaler/doc/json_reader.h>

#define SHOWN_MAX 32 /* bytes of a refused text in an error */

static const char *const phases[] = {
    [AS_POD_PENDING] = "Pending", [AS_POD_RUNNING] = "Running", [AS_POD_SUCCEEDED] = "Succeeded",
    [AS_POD_FAILED] = "Failed",   [AS_POD_UNKNOWN] = "Unknown",
};

static const char *const resource_names[AS_RESOURCE_COUNT] = {
    [AS_RESOURCE_CPU] = "cpu",
    [AS_RESOURCE_MEMORY] = "memory",
};

static void read_time(struct as_reader *reader, const char *name, as_maybe_time *time_out)
{
    const struct tree_value *value = as_read_any(reader, name);
    time_out->set = tree_is(value, TREE_TEXT) &&
                    as_wall_time_parse(value->text, value->size, &time_out->at) == 0;
    if (value && !time_out->set)
        as_read_fail(reader, name, "expected an RFC 3339 time");
}

static enum as_pod_phase get_phase(const struct tree_value *status)
{
    const char *text = tree_find_text(status, "phase");
    for (size_t i = 0; i < AS_ARRAY_SIZE(phases); i++)
        if (as_str_equal(text, phases[i]))
            return (enum as_pod_phase)i;
    return AS_POD_UNKNOWN;
}

static enum as_tristate get_condition_status(const struct tree_value *condition)
{
    const char *text = tree_find_text(condition, "status");
    if (as_str_equal(text, "True"))
        return AS_TRUE;
    return as_str_equal(text, "False") ? AS_FALSE : AS_UNKNOWN;
}

static int read_status(const struct tree_value *status, struct as_pod_seen *pod,
                       struct as_error *error)
{
    struct as_reader reader, ready;
    size_t count;
    as_read_lenient(&reader, status, error);
    read_time(&reader, "startTime", &pod->start_time);
    const struct tree_value *condition = as_read_list(&reader, "conditions", &count);
    pod->phase = get_phase(status);
    pod->ready = AS_UNKNOWN;
    for (; condition && as_read_result(&reader) == 0; condition = condition->next) {
        if (!as_str_equal(tree_find_text(condition, "type"), "Ready"))
            continue;
        pod->ready = get_condition_status(condition);
        as_read_lenient(&ready, condition, error);
        read_time(&ready, "lastTransitionTime", &pod->ready_since);
        return as_read_result(&ready);
    }
    return as_read_result(&reader);
}

static int add_quantity(const struct tree_value *quantities, enum as_resource resource, double *sum,
                        struct as_error *error)
{
    const struct tree_value *value = tree_find(quantities, resource_names[resource]);
    double number = NAN;
    if (!value || value->kind == TREE_NULL) {
        *sum = NAN;
        return 0;
    }
    if (value->kind != TREE_TEXT) {
        as_error_set(error, "%s: expected a string", resource_names[resource]);
        return -EBADMSG;
    }
    if (as_quantity_parse(value->text, value->size, &number) < 0) {
        as_error_set(error, "%s: no quantity: \"%.*s\"", resource_names[resource],
                     (int)as_str_cut_utf8(value->text, value->size, SHOWN_MAX), value->text);
        return -EBADMSG;
    }
    *sum += number;
    return 0;
}

static int add_quantities(const struct tree_value *resources, const char *name, double sums[],
                          struct as_error *error)
{
    struct as_reader reader, quantities;
    as_read_lenient(&reader, resources, error);
    as_read_object(&quantities, &reader, name);
    int status = as_read_result(&reader);
    for (enum as_resource i = 0; !status && i < AS_RESOURCE_COUNT; i++)
        if ((status = add_quantity(quantities.object, i, &sums[i], error)))
            as_error_wrap(error, "%s", name);
    return status;
}

static int add_container(const struct tree_value *container, struct as_pod_seen *pod,
                         struct as_error *error)
{
    struct as_reader reader, resources;
    as_read_lenient(&reader, container, error);
    as_read_object(&resources, &reader, "resources");
    int status = as_read_result(&reader);
    if (status || (status = add_quantities(resources.object, "requests", pod->requests, error)))
        return status;
    return add_quantities(resources.object, "limits", pod->limits, error);
}

/* Of init containers only sidecars count: they keep running beside the others. */
static bool is_counted(const struct tree_value *container, bool is_init)
{
    return !is_init || as_str_equal(tree_find_text(container, "restartPolicy"), "Always");
}

static int add_containers(const struct tree_value *spec, const char *name, bool is_init,
                          struct as_pod_seen *pod, size_t *counted, struct as_error *error)
{
    struct as_reader reader;
    size_t count;
    as_read_lenient(&reader, spec, error);
    const struct tree_value *container = as_read_list(&reader, name, &count);
    int status = as_read_result(&reader);
    for (size_t i = 0; !status && i < count; i++, container = container->next) {
        if (!is_counted(container, is_init))
            continue;
        ++*counted;
        if ((status = add_container(container, pod, error)))
            as_error_wrap(error, "%s[%zu]", name, i);
    }
    return status;
}

/* The pod's own requests and limits override its containers'. HPA: calculateRequests. */
static int read_pod_level(const struct tree_value *spec, struct as_pod_seen *pod,
                          struct as_error *error)
{
    double limits[AS_RESOURCE_COUNT] = {0};
    struct as_reader reader, inner, resources, requests;
    as_read_lenient(&reader, spec, error);
    as_read_object(&resources, &reader, "resources");
    int status = as_read_result(&reader);
    if (status)
        return status;
    as_read_lenient(&inner, resources.object, error);
    as_read_object(&requests, &inner, "requests");
    if ((status = as_read_result(&inner)) ||
        (status = add_quantities(resources.object, "limits", limits, error))) {
        as_error_wrap(error, "resources");
        return status;
    }
    for (int i = 0; i < AS_RESOURCE_COUNT; i++)
        if (!isnan(limits[i]))
            pod->limits[i] = limits[i];
    if (requests.object && requests.object->size > 0)
        pod_requests_read(&reader, NAN, pod->requests);
    return as_read_result(&reader);
}

static int read_spec(const struct tree_value *spec, struct as_pod_seen *pod, struct as_error *error)
{
    size_t counted = 0;
    int status = add_containers(spec, "containers", false, pod, &counted, error);
    if (status || (status = add_containers(spec, "initContainers", true, pod, &counted, error)))
        return status;
    for (int i = 0; counted == 0 && i < AS_RESOURCE_COUNT; i++)
        pod->requests[i] = pod->limits[i] = NAN;
    return read_pod_level(spec, pod, error);
}

int as_kube_pod_read(const struct tree_value *item, struct as_pod_seen *pod_out,
                     struct as_error *error)
{
    struct as_pod_seen pod = {.name = NULL};
    struct as_reader root, metadata, spec, status;
    as_read_lenient(&root, item, error);
    as_read_object(&metadata, &root, "metadata");
    pod.name = kube_object_read_name(&metadata, "name", AS_KUBE_POD_NAME_MAX, "name");
    pod.deleting = as_read_has(&metadata, "deletionTimestamp");
    int code = as_read_result(&root);
    if (code)
        return code;
    as_read_object(&spec, &root, "spec");
    as_read_object(&status, &root, "status");
    if ((code = as_read_result(&root)) || (code = read_spec(spec.object, &pod, error)) ||
        (code = read_status(status.object, &pod, error))) {
        as_error_wrap(error, "pod %s", pod.name);
        return code;
    }
    *pod_out = pod;
    return 0;
}
