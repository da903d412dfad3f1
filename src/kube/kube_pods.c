/*
 * Pods of a target, from pages of a list. The defaults of the HorizontalPodAutoscaler for absent
 * values belong to the decision, not to this module.
 */
#include "kube_pods.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/base/quantity.h>
#include <alertscaler/base/str.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/doc/json_reader.h>
#include <alertscaler/doc/json_tree.h>

#include "kube_object.h"
#include "pod_requests.h"

/* Fields of a Pod that decisions need. */

#define SHOWN_MAX 32 /* bytes of a refused text in an error */

static const char *const phases[] = {
    [AS_POD_PENDING] = "Pending", [AS_POD_RUNNING] = "Running", [AS_POD_SUCCEEDED] = "Succeeded",
    [AS_POD_FAILED] = "Failed",   [AS_POD_UNKNOWN] = "Unknown",
};

static const char *const resource_names[AS_RESOURCE_COUNT] = {
    [AS_RESOURCE_CPU] = "cpu",
    [AS_RESOURCE_MEMORY] = "memory",
};

static void pod_read_time(struct as_reader *reader, const char *name, as_maybe_time *time_out)
{
    const struct tree_value *value = as_read_any(reader, name);
    time_out->set = tree_is(value, TREE_TEXT) &&
                    as_wall_time_parse(value->text, value->size, &time_out->at) == 0;
    if (value && !time_out->set)
        as_read_fail(reader, name, "expected an RFC 3339 time");
}

static enum as_pod_phase pod_get_phase(const struct tree_value *status)
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

static int pod_read_status(const struct tree_value *status, struct as_pod_seen *pod,
                           struct as_error *error)
{
    struct as_reader reader, ready;
    size_t count;
    as_read_lenient(&reader, status, error);
    pod_read_time(&reader, "startTime", &pod->start_time);
    const struct tree_value *condition = as_read_list(&reader, "conditions", &count);
    pod->phase = pod_get_phase(status);
    pod->ready = AS_UNKNOWN;
    for (; condition && as_read_result(&reader) == 0; condition = condition->next) {
        if (!as_str_equal(tree_find_text(condition, "type"), "Ready"))
            continue;
        pod->ready = get_condition_status(condition);
        as_read_lenient(&ready, condition, error);
        pod_read_time(&ready, "lastTransitionTime", &pod->ready_since);
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

static int pod_read_container(const struct tree_value *item, struct as_container_seen *container,
                              struct as_error *error)
{
    struct as_reader reader, resources;
    const char *name = tree_find_text(item, "name");
    *container = (struct as_container_seen){.name = name ? name : ""};
    as_read_lenient(&reader, item, error);
    as_read_object(&resources, &reader, "resources");
    int status = as_read_result(&reader);
    if (status ||
        (status = add_quantities(resources.object, "requests", container->requests, error)))
        return status;
    return add_quantities(resources.object, "limits", container->limits, error);
}

static void pod_add_container(struct as_pod_seen *pod, const struct as_container_seen *container)
{
    for (int i = 0; i < AS_RESOURCE_COUNT; i++) {
        pod->requests[i] += container->requests[i];
        pod->limits[i] += container->limits[i];
    }
    pod->container_count++;
}

/* Of init containers only sidecars count: they keep running beside the others. */
static bool is_counted(const struct tree_value *container, bool is_init)
{
    return !is_init || as_str_equal(tree_find_text(container, "restartPolicy"), "Always");
}

static int add_containers(const struct tree_value *spec, const char *name, bool is_init,
                          struct as_container_seen *containers, struct as_pod_seen *pod,
                          struct as_error *error)
{
    struct as_reader reader;
    size_t count;
    as_read_lenient(&reader, spec, error);
    const struct tree_value *item = as_read_list(&reader, name, &count);
    int status = as_read_result(&reader);
    for (size_t i = 0; !status && i < count; i++, item = item->next) {
        struct as_container_seen *container = &containers[pod->container_count];
        if (!is_counted(item, is_init))
            continue;
        if ((status = pod_read_container(item, container, error)))
            as_error_wrap(error, "%s[%zu]", name, i);
        else
            pod_add_container(pod, container);
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

static size_t count_items(const struct tree_value *spec, const char *name)
{
    const struct tree_value *list = tree_find(spec, name);
    return tree_is(list, TREE_ARRAY) ? list->size : 0;
}

static int pod_read_spec(const struct tree_value *spec, struct as_arena *arena,
                         struct as_pod_seen *pod, struct as_error *error)
{
    const size_t most = count_items(spec, "containers") + count_items(spec, "initContainers");
    struct as_container_seen *containers = as_arena_alloc(arena, most, sizeof(*containers));
    int status = add_containers(spec, "containers", false, containers, pod, error);
    if (status || (status = add_containers(spec, "initContainers", true, containers, pod, error)))
        return status;
    if (pod->container_count > 0)
        pod->containers = containers;
    for (int i = 0; pod->container_count == 0 && i < AS_RESOURCE_COUNT; i++)
        pod->requests[i] = pod->limits[i] = NAN;
    return read_pod_level(spec, pod, error);
}

static const char *controller_get_text(const struct tree_value *owner, const char *name)
{
    const char *text = tree_find_text(owner, name);
    return text ? text : "";
}

struct as_kube_controller as_kube_controller_read(const struct tree_value *metadata)
{
    const struct tree_value *owner = tree_get_first(tree_find(metadata, "ownerReferences"));
    while (owner && !tree_is_true(tree_find(owner, "controller")))
        owner = owner->next;
    return (struct as_kube_controller){
        .api_version = controller_get_text(owner, "apiVersion"),
        .kind = controller_get_text(owner, "kind"),
        .name = controller_get_text(owner, "name"),
        .uid = controller_get_text(owner, "uid"),
    };
}

int as_kube_pod_read(const struct tree_value *item, struct as_arena *arena,
                     struct as_pod_seen *pod_out, struct as_kube_controller *controller_out,
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
    if ((code = as_read_result(&root)) || (code = pod_read_spec(spec.object, arena, &pod, error)) ||
        (code = pod_read_status(status.object, &pod, error))) {
        as_error_wrap(error, "pod %s", pod.name);
        return code;
    }
    *controller_out = as_kube_controller_read(metadata.object);
    *pod_out = pod;
    return 0;
}

/* Lists of pods. */

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

int as_kube_pods_add(struct as_kube_pods *pods, const struct as_pod_seen *pod,
                     const struct as_kube_controller *controller, struct as_error *error)
{
    if (pods->count == pods->max) {
        as_error_set(error, "more than %zu pods", pods->max);
        return -E2BIG;
    }
    pods->items = as_xgrow(pods->items, pods->count, &pods->capacity, sizeof(*pods->items));
    pods->controllers = as_xgrow(pods->controllers, pods->count, &pods->controller_capacity,
                                 sizeof(*pods->controllers));
    pods->controllers[pods->count] = (struct as_kube_controller){
        .api_version = as_arena_strdup(&pods->texts, controller->api_version),
        .kind = as_arena_strdup(&pods->texts, controller->kind),
        .name = as_arena_strdup(&pods->texts, controller->name),
        .uid = as_arena_strdup(&pods->texts, controller->uid),
    };
    struct as_pod_seen *copy = &pods->items[pods->count++];
    *copy = *pod;
    copy->name = as_arena_strdup(&pods->texts, pod->name);
    copy->containers =
        as_containers_copy(pod, as_arena_alloc_raw(&pods->texts, as_containers_get_size(pod)));
    return 0;
}

static int pods_parse_pod(void *context, const struct tree_value *item, struct as_error *error)
{
    struct as_kube_pods *pods = context;
    struct as_pod_seen pod;
    struct as_kube_controller controller;
    as_arena_reset(&pods->scratch);
    int status = as_kube_pod_read(item, &pods->scratch, &pod, &controller, error);
    return status ? status : as_kube_pods_add(pods, &pod, &controller, error);
}

int as_kube_pods_decode(struct as_kube_pods *pods, const char *json, size_t size, char **next_out,
                        struct as_error *error)
{
    return kube_list_read(json, size, "PodList", pods_parse_pod, pods, next_out, error);
}

/* Equal names stay in the order in which they were read. */
static int pods_compare(const void *a, const void *b)
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
    struct as_kube_controller *controllers = as_xcalloc(pods->count, sizeof(*controllers));
    size_t kept = 0;
    for (size_t i = 0; i < pods->count; i++)
        order[i] = &pods->items[i];
    qsort(order, pods->count, sizeof(const struct as_pod_seen *), pods_compare);
    for (size_t i = 0; i < pods->count; i++) {
        if (i + 1 < pods->count && strcmp(order[i]->name, order[i + 1]->name) == 0)
            continue;
        controllers[kept] = pods->controllers[order[i] - pods->items];
        sorted[kept++] = *order[i];
    }
    free(order);
    free(pods->items);
    free(pods->controllers);
    pods->items = sorted;
    pods->controllers = controllers;
    pods->capacity = pods->controller_capacity = pods->count;
    pods->count = kept;
}

void as_kube_pods_clear(struct as_kube_pods *pods)
{
    pods->count = 0;
    as_arena_reset(&pods->texts);
}

void as_kube_pods_deinit(struct as_kube_pods *pods)
{
    free(pods->items);
    free(pods->controllers);
    as_arena_deinit(&pods->texts);
    as_arena_deinit(&pods->scratch);
    *pods = AS_KUBE_PODS_INIT(pods->max);
}
