/*
 * Codecs for who else sizes an object: lists of HPAs (autoscaling/v1) and of KEDA's ScaledObjects,
 * and the managers in an object's metadata. Pure. Unknown members are ignored, and so are items
 * that aim at nothing.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBERNETES_OTHERS_H
#define ALERTSCALER_SRC_KUBE_KUBERNETES_OTHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/model/field_path.h>

struct as_kube_other {
    const char *name;
    const char *group, *kind, *target; /* that it aims at; group "": the core's */
    const char *owner;                 /* of an HPA: the ScaledObject that made it; "": none */
    int32_t min, max;                  /* as in as_other */
    bool is_paused;
};

struct as_kube_others {
    size_t max; /* items; more is an error */
    size_t count, capacity;
    struct as_kube_other *items;
    struct as_arena texts;
};

void as_kube_others_clear(struct as_kube_others *others);
void as_kube_others_deinit(struct as_kube_others *others);

/* Each adds the items of one page. *next_out is to be freed: the token of the next page, or NULL.
 * 0; -EBADMSG with an error; -E2BIG beyond `max`. */
typedef int as_kube_others_decode_fn(struct as_kube_others *others, const char *json, size_t size,
                                     char **next_out, struct as_error *error);
as_kube_others_decode_fn as_kube_hpas_decode, as_kube_scaled_objects_decode;

/* Of an object's metadata: who set the field last, by metadata.managedFields. Who owns all of a
 * list or an object around it set it too. 0, with "" if nobody is named; or -EBADMSG with an error.
 * A longer name is cut. */
int as_kube_manager_decode(const char *json, size_t size, const struct as_field_path *field,
                           char manager_out[AS_MANAGER_SIZE], struct as_error *error) AS_MUST_USE;

#endif
