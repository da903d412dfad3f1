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

static const char *const resource_names[AS_RESOURCE_COUNT] = {
    [AS_RESOURCE_CPU] = "cpu",
    [AS_RESOURCE_MEMORY] = "memory",
};

static int add_requests(const struct tree_value *quantities, double sums[], struct as_error *error)
{
    for (int i = 0; i < AS_RESOURCE_COUNT; i++) {
        const struct tree_value *value = tree_find(quantities, resource_names[i]);
        double number = 0;
        if (!value || value->kind == TREE_NULL)
            continue;
        if (value->kind != TREE_TEXT || as_quantity_parse(value->text, value->size, &number) < 0) {
            as_error_set(error, "requests: %s: no quantity", resource_names[i]);
            return -EBADMSG;
        }
        sums[i] = isnan(sums[i]) ? number : sums[i] + number;
    }
    return 0;
}

/* From a container, or from the pod itself. */
static int add_resources(const struct tree_value *from, double sums[], struct as_error *error)
{
    return add_requests(tree_find(tree_find(from, "resources"), "requests"), sums, error);
}

static void raise_to(double most[], const double sums[])
{
    for (int i = 0; i < AS_RESOURCE_COUNT; i++)
        most[i] = fmax(most[i], sums[i]); /* if one is NaN: the other one */
}

/* An init container runs beside the sidecars before it in the list. */
static int read_init_containers(const struct tree_value *spec, double sidecars[], double most[],
                                struct as_error *error)
{
    const struct tree_value *container = tree_get_first(tree_find(spec, "initContainers"));
    for (size_t index = 0; container; index++, container = container->next) {
        double sums[AS_RESOURCE_COUNT];
        memcpy(sums, sidecars, sizeof(sums));
        int status = add_resources(container, sums, error);
        if (status) {
            as_error_wrap(error, "initContainers[%zu]", index);
            return status;
        }
        if (as_str_equal(tree_find_text(container, "restartPolicy"), "Always"))
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
static int read_containers(const struct tree_value *spec, double most[], struct as_error *error)
{
    const struct tree_value *container = tree_get_first(tree_find(spec, "containers"));
    double sums[AS_RESOURCE_COUNT];
    forget(sums);
    int status = read_init_containers(spec, sums, most, error);
    if (status)
        return status;
    for (size_t index = 0; container; index++, container = container->next) {
        if ((status = add_resources(container, sums, error))) {
            as_error_wrap(error, "containers[%zu]", index);
            return status;
        }
    }
    raise_to(most, sums);
    return 0;
}

int pod_requests_read(const struct tree_value *spec, double requests_out[], struct as_error *error)
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
    if ((status = add_requests(tree_find(spec, "overhead"), requests, error)))
        return status;
    memcpy(requests_out, requests, sizeof(requests));
    return 0;
}
