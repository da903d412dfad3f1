/*
 * What a whole pod requests: see the header. A resource that a container does not name counts as 0
 * if the pod or another container names it.
 *
 * https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/ and, for requests of the
 * pod itself, KEP-2837.
 */
#include "pod_requests.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/core/observation.h>

#include "json/reader.h"

static const char *const resource_names[AS_RESOURCE_COUNT] = {
    [AS_RESOURCE_CPU] = "cpu",
    [AS_RESOURCE_MEMORY] = "memory",
};

static int add_requests(const json_t *quantities, double sums[], struct as_error *error)
{
    for (int i = 0; i < AS_RESOURCE_COUNT; i++) {
        const json_t *value = json_object_get(quantities, resource_names[i]);
        double number = 0;
        if (!value || json_is_null(value))
            continue;
        if (!json_is_string(value) ||
            as_quantity_parse(json_string_value(value), json_string_length(value), &number) < 0) {
            as_error_set(error, "requests: %s: no quantity", resource_names[i]);
            return -EBADMSG;
        }
        sums[i] = isnan(sums[i]) ? number : sums[i] + number;
    }
    return 0;
}

/* From a container, or from the pod itself. */
static int add_resources(const json_t *from, double sums[], struct as_error *error)
{
    return add_requests(json_object_get(json_object_get(from, "resources"), "requests"), sums,
                        error);
}

static void raise_to(double most[], const double sums[])
{
    for (int i = 0; i < AS_RESOURCE_COUNT; i++)
        most[i] = fmax(most[i], sums[i]); /* if one is NaN: the other one */
}

/* An init container runs beside the sidecars before it in the list. */
static int read_init_containers(const json_t *spec, double sidecars[], double most[],
                                struct as_error *error)
{
    const json_t *container, *list = json_object_get(spec, "initContainers");
    size_t index;
    json_array_foreach(list, index, container)
    {
        double sums[AS_RESOURCE_COUNT];
        memcpy(sums, sidecars, sizeof(sums));
        int status = add_resources(container, sums, error);
        if (status) {
            as_error_wrap(error, "initContainers[%zu]", index);
            return status;
        }
        if (as_str_equal(as_json_find_text(container, "restartPolicy"), "Always"))
            memcpy(sidecars, sums, sizeof(sums));
        raise_to(most, sums);
    }
    return 0;
}

static void forget(double sums[])
{
    for (int i = 0; i < AS_RESOURCE_COUNT; i++)
        sums[i] = NAN;
}

/* The larger of the sum of all containers and the peak of the start. */
static int read_containers(const json_t *spec, double most[], struct as_error *error)
{
    const json_t *container, *list = json_object_get(spec, "containers");
    double sums[AS_RESOURCE_COUNT];
    size_t index;
    forget(sums);
    int status = read_init_containers(spec, sums, most, error);
    if (status)
        return status;
    json_array_foreach(list, index, container)
    {
        if ((status = add_resources(container, sums, error))) {
            as_error_wrap(error, "containers[%zu]", index);
            return status;
        }
    }
    raise_to(most, sums);
    return 0;
}

int pod_requests_read(const json_t *spec, double requests_out[], struct as_error *error)
{
    double requests[AS_RESOURCE_COUNT], own[AS_RESOURCE_COUNT];
    forget(requests);
    forget(own);
    int status = read_containers(spec, requests, error);
    if (status)
        return status;
    if ((status = add_resources(spec, own, error))) {
        as_error_wrap(error, "resources");
        return status;
    }
    for (int i = 0; i < AS_RESOURCE_COUNT; i++)
        if (!isnan(own[i]))
            requests[i] = own[i];
    if ((status = add_requests(json_object_get(spec, "overhead"), requests, error)))
        return status;
    memcpy(requests_out, requests, sizeof(requests));
    return 0;
}
