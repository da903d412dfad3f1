/*
 * One Pod: see the header. What HPA would make of it is the decision's: here nothing is assumed.
 */
#include "kubernetes_pod.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/wire/kubernetes_pods.h>

#include "pod_requests.h"
#include "json/field.h"

#define SHOWN_MAX 32 /* bytes of a refused text in an error */

static const char *const phases[] = {
    [AS_POD_PENDING] = "Pending", [AS_POD_RUNNING] = "Running", [AS_POD_SUCCEEDED] = "Succeeded",
    [AS_POD_FAILED] = "Failed",   [AS_POD_UNKNOWN] = "Unknown",
};

static const char *const resource_names[AS_RESOURCE_COUNT] = {
    [AS_RESOURCE_CPU] = "cpu",
    [AS_RESOURCE_MEMORY] = "memory",
};

static int get_list(const json_t *object, const char *name, json_t **list_out,
                    struct as_error *error)
{
    json_t *list = json_object_get(object, name);
    if (list && !json_is_null(list) && !json_is_array(list)) {
        as_error_set(error, "%s: expected a list", name);
        return -EBADMSG;
    }
    *list_out = list;
    return 0;
}

static int get_time(const json_t *object, const char *name, as_maybe_time *time_out,
                    struct as_error *error)
{
    const json_t *value = json_object_get(object, name);
    as_maybe_time time = {.set = true};
    if (!value || json_is_null(value)) {
        *time_out = (as_maybe_time){.set = false};
        return 0;
    }
    if (!json_is_string(value) ||
        as_wall_time_parse(json_string_value(value), json_string_length(value), &time.at) < 0) {
        as_error_set(error, "%s: expected an RFC 3339 time", name);
        return -EBADMSG;
    }
    *time_out = time;
    return 0;
}

static enum as_pod_phase get_phase(const json_t *status)
{
    const char *text = as_field_find_string(status, "phase");
    for (size_t i = 0; i < AS_ARRAY_SIZE(phases); i++)
        if (as_str_equal(text, phases[i]))
            return (enum as_pod_phase)i;
    return AS_POD_UNKNOWN;
}

static enum as_tristate get_condition_status(const json_t *condition)
{
    const char *text = as_field_find_string(condition, "status");
    if (as_str_equal(text, "True"))
        return AS_TRUE;
    return as_str_equal(text, "False") ? AS_FALSE : AS_UNKNOWN;
}

static int read_status(const json_t *status, struct as_pod_seen *pod, struct as_error *error)
{
    json_t *conditions, *condition;
    size_t index;
    int code = get_time(status, "startTime", &pod->start_time, error);
    if (code || (code = get_list(status, "conditions", &conditions, error)))
        return code;
    pod->phase = get_phase(status);
    pod->ready = AS_UNKNOWN;
    json_array_foreach(conditions, index, condition)
    {
        if (!as_str_equal(as_field_find_string(condition, "type"), "Ready"))
            continue;
        pod->ready = get_condition_status(condition);
        return get_time(condition, "lastTransitionTime", &pod->ready_since, error);
    }
    return 0;
}

static int add_quantity(const json_t *quantities, enum as_resource resource, double *sum,
                        struct as_error *error)
{
    const json_t *value = json_object_get(quantities, resource_names[resource]);
    double number = NAN;
    if (!value || json_is_null(value)) {
        *sum = NAN;
        return 0;
    }
    if (!json_is_string(value)) {
        as_error_set(error, "%s: expected a string", resource_names[resource]);
        return -EBADMSG;
    }
    const char *text = json_string_value(value);
    size_t size = json_string_length(value);
    if (as_quantity_parse(text, size, &number) < 0) {
        as_error_set(error, "%s: no quantity: \"%.*s\"", resource_names[resource],
                     (int)as_str_cut_utf8(text, size, SHOWN_MAX), text);
        return -EBADMSG;
    }
    *sum += number;
    return 0;
}

static int add_quantities(const json_t *resources, const char *name, double sums[],
                          struct as_error *error)
{
    json_t *quantities;
    int code = as_field_get_object(resources, name, name, &quantities, error);
    for (enum as_resource i = 0; !code && i < AS_RESOURCE_COUNT; i++)
        if ((code = add_quantity(quantities, i, &sums[i], error)))
            as_error_wrap(error, "%s", name);
    return code;
}

static int add_container(const json_t *container, struct as_pod_seen *pod, struct as_error *error)
{
    json_t *resources;
    if (!json_is_object(container)) {
        as_error_set(error, "expected an object");
        return -EBADMSG;
    }
    int code = as_field_get_object(container, "resources", "resources", &resources, error);
    if (code || (code = add_quantities(resources, "requests", pod->requests, error)))
        return code;
    return add_quantities(resources, "limits", pod->limits, error);
}

/* Of init containers only those that go on running beside the others: the sidecars. */
static bool is_counted(const json_t *container, bool is_init)
{
    return !is_init || as_str_equal(as_field_find_string(container, "restartPolicy"), "Always");
}

static int add_containers(const json_t *spec, const char *name, bool is_init,
                          struct as_pod_seen *pod, size_t *counted, struct as_error *error)
{
    json_t *list, *container;
    size_t index;
    int code = get_list(spec, name, &list, error);
    if (code)
        return code;
    json_array_foreach(list, index, container)
    {
        if (!is_counted(container, is_init))
            continue;
        ++*counted;
        if ((code = add_container(container, pod, error))) {
            as_error_wrap(error, "%s[%zu]", name, index);
            return code;
        }
    }
    return 0;
}

/* What the pod says of itself goes before its containers. HPA: calculateRequests. */
static int read_pod_level(const json_t *spec, struct as_pod_seen *pod, struct as_error *error)
{
    double limits[AS_RESOURCE_COUNT] = {0};
    json_t *resources, *requests;
    int code = as_field_get_object(spec, "resources", "resources", &resources, error);
    if (code)
        return code;
    if ((code = as_field_get_object(resources, "requests", "requests", &requests, error)) ||
        (code = add_quantities(resources, "limits", limits, error))) {
        as_error_wrap(error, "resources");
        return code;
    }
    for (int i = 0; i < AS_RESOURCE_COUNT; i++)
        if (!isnan(limits[i]))
            pod->limits[i] = limits[i];
    return json_object_size(requests) > 0 ? pod_requests_read(spec, pod->requests, error) : 0;
}

static int read_spec(const json_t *spec, struct as_pod_seen *pod, struct as_error *error)
{
    size_t counted = 0;
    int code = add_containers(spec, "containers", false, pod, &counted, error);
    if (code || (code = add_containers(spec, "initContainers", true, pod, &counted, error)))
        return code;
    for (int i = 0; counted == 0 && i < AS_RESOURCE_COUNT; i++)
        pod->requests[i] = pod->limits[i] = NAN;
    return read_pod_level(spec, pod, error);
}

static int read_name(const json_t *metadata, const char **name_out, struct as_error *error)
{
    const json_t *value = json_object_get(metadata, "name");
    const char *name = json_string_value(value);
    size_t size = json_string_length(value);
    if (as_str_is_empty(name) || size > AS_KUBE_POD_NAME_MAX || strlen(name) != size) {
        as_error_set(error, "metadata.name: expected a name of 1 to %d bytes",
                     AS_KUBE_POD_NAME_MAX);
        return -EBADMSG;
    }
    *name_out = name;
    return 0;
}

static int read_body(const json_t *item, struct as_pod_seen *pod, struct as_error *error)
{
    json_t *spec, *status;
    int code;
    if ((code = as_field_get_object(item, "spec", "spec", &spec, error)) ||
        (code = as_field_get_object(item, "status", "status", &status, error)) ||
        (code = read_spec(spec, pod, error)) || (code = read_status(status, pod, error))) {
        as_error_wrap(error, "pod %s", pod->name);
        return code;
    }
    return 0;
}

int as_kube_pod_read(const json_t *item, struct as_pod_seen *pod_out, struct as_error *error)
{
    struct as_pod_seen pod = {.name = NULL};
    json_t *metadata;
    int code;
    if ((code = as_field_get_object(item, "metadata", "metadata", &metadata, error)) ||
        (code = read_name(metadata, &pod.name, error)) || (code = read_body(item, &pod, error)))
        return code;
    const json_t *deleted_at = json_object_get(metadata, "deletionTimestamp");
    pod.deleting = deleted_at && !json_is_null(deleted_at);
    *pod_out = pod;
    return 0;
}
