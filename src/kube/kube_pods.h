/*
 * Codecs for the pods behind a target: the selector in its Scale, the pages of a PodList, and
 * resource quantities. Pure. Unknown members are ignored.
 *
 * Decoders: 0, or -EBADMSG with an error that names pod and field, or -E2BIG if a list is longer
 * than the caller's limit.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_PODS_H
#define ALERTSCALER_SRC_KUBE_KUBE_PODS_H

#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/doc/json_tree.h>

#define AS_KUBE_POD_NAME_MAX 253 /* bytes: a DNS subdomain */

/*
 * The label selector of a Scale, as one text: status.selector of autoscaling/v1,
 * status.targetSelector of the versions before it. *selector_out is to be freed; NULL if it is
 * absent or empty.
 */
int as_kube_selector_decode(const char *json, size_t size, char **selector_out,
                            struct as_error *error) AS_MUST_USE;

/* The controller of a pod, by its metadata.ownerReferences. */
struct as_kube_controller {
    const char *api_version, *kind, *name, *uid; /* uid "": the pod has none */
};

/*
 * One pod. Its texts are borrowed from `item`, its containers are in the arena. requests and limits
 * are sums over spec.containers and the restartable spec.initContainers, as in HPA; NaN if one of
 * these has no value.
 */
int as_kube_pod_read(const struct tree_value *item, struct as_arena *arena,
                     struct as_pod_seen *pod_out, struct as_kube_controller *controller_out,
                     struct as_error *error) AS_MUST_USE;

/* Of an object's metadata, which may be NULL; borrowed. */
struct as_kube_controller as_kube_controller_read(const struct tree_value *metadata);

struct as_kube_pods {
    size_t max; /* pods; more is an error */
    size_t count, capacity;
    struct as_pod_seen *items;
    struct as_kube_controller *controllers; /* of the items */
    size_t controller_capacity;
    struct as_arena texts;   /* of the items, and their containers */
    struct as_arena scratch; /* of one pod that is read */
};

#define AS_KUBE_PODS_INIT(maximum) ((struct as_kube_pods){.max = (maximum)})

void as_kube_pods_clear(struct as_kube_pods *pods); /* before a list is read again */
void as_kube_pods_deinit(struct as_kube_pods *pods);

/*
 * Adds the pods of one page. *next_out is to be freed: the token of the next page, or NULL if this
 * was the last. After a failure only clear and deinit are allowed.
 */
int as_kube_pods_decode(struct as_kube_pods *pods, const char *json, size_t size, char **next_out,
                        struct as_error *error) AS_MUST_USE;

/* Adds a copy of the pod. 0, or -E2BIG. */
int as_kube_pods_add(struct as_kube_pods *pods, const struct as_pod_seen *pod,
                     const struct as_kube_controller *controller,
                     struct as_error *error) AS_MUST_USE;

/* After the last page: sorts by name (bytes). Of duplicate names the last one read is kept. */
void as_kube_pods_finish(struct as_kube_pods *pods);

#endif
