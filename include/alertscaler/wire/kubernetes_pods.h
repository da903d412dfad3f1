/*
 * Codecs for the pods behind a target: the selector in its Scale, the pages of a PodList, and
 * resource quantities. Pure. What the other side adds and we do not need is ignored.
 *
 * Decoders: 0, or -EBADMSG with an error that names pod and field, or -E2BIG where a list has
 * more than the caller has room for.
 */
#ifndef ALERTSCALER_WIRE_KUBERNETES_PODS_H
#define ALERTSCALER_WIRE_KUBERNETES_PODS_H

#include <stddef.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/core/observation.h>

#define AS_KUBE_POD_NAME_MAX 253 /* bytes: a DNS subdomain */

/* Bytes of memory that reading one object of a list may take. The API refuses one of more than
 * about 1.5 MiB, and as values they take some fifteen times their size. */
#define AS_KUBE_ITEM_MEMORY_MAX ((size_t)32 * 1024 * 1024)

/*
 * The label selector of a Scale, as one text: status.selector of autoscaling/v1,
 * status.targetSelector of the versions before it. *selector_out is to be freed; NULL where there
 * is none, or an empty one.
 */
int as_kube_selector_decode(const char *json, size_t size, char **selector_out,
                            struct as_error *error) AS_MUST_USE;

struct as_kube_pods {
    size_t max; /* pods; more is an error */
    size_t count, capacity;
    struct as_pod_seen *items;
    struct as_arena names;
};

#define AS_KUBE_PODS_INIT(maximum) ((struct as_kube_pods){.max = (maximum)})

void as_kube_pods_clear(struct as_kube_pods *pods); /* for a list that begins anew */
void as_kube_pods_deinit(struct as_kube_pods *pods);

/*
 * Adds the pods of one page. *next_out is to be freed: the token that continues the list, or NULL
 * where this was its last page. After a failure the pods are good for clear and deinit only.
 *
 * requests and limits are sums over spec.containers and the restartable ones of
 * spec.initContainers, as in HPA; NaN where one of them does not say.
 */
int as_kube_pods_decode(struct as_kube_pods *pods, const char *json, size_t size, char **next_out,
                        struct as_error *error) AS_MUST_USE;

/* After the last page: sorts by name (bytes); of several with the same name the last one read is
 * kept. */
void as_kube_pods_finish(struct as_kube_pods *pods);

#endif
