/*
 * Conflicting writers: what else sizes the targets of a cluster, and who set a size last.
 *
 * The codecs: lists of HPAs (autoscaling/v1) and of KEDA's ScaledObjects,
 * and the managers in an object's metadata. Pure. Unknown members are ignored, and so are items
 * that aim at nothing.
 */
#ifndef ALERTSCALER_SRC_KUBE_KUBE_WRITERS_H
#define ALERTSCALER_SRC_KUBE_KUBE_WRITERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/base/error.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/kube/kube_client.h>
#include <alertscaler/model/field_path.h>

struct as_kube_manager_ask;
struct as_kube_others_watch;

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

/*
 * Who else sizes the targets of a cluster: HPAs and KEDA's ScaledObjects that aim at them. They are
 * listed once for each namespace with targets: when the first target of it is seen, and every
 * AS_KUBE_OTHERS_EVERY_US while one is observed. Without the right, or without KEDA, the rest goes
 * on; the log says so once.
 */

/* Tells env->others_found of the client. */
struct as_kube_others_watch *as_kube_others_new(struct as_kube_client *client) AS_MUST_USE;
struct as_kube_others_watch *as_kube_others_free(struct as_kube_others_watch *watch);

/* A target's scale was observed in this namespace. `credential`: as in as_observe_request; narrowed
 * credentials have at most half of the namespaces and targets. */
void as_kube_others_note(struct as_kube_others_watch *watch, const struct as_target_ref *ref,
                         const char *credential);

/*
 * Who set an object's size last, by its managedFields: of the object where it was read, else by one
 * request for its metadata. That needs the right to get the object itself.
 */

/* Of an object as it was read; the field is a path (model/field_path.h). */
void as_kube_manager_read(const char *json, size_t size, const char *field,
                          char manager_out[AS_MANAGER_SIZE]);

/* "": not known, for whatever reason. */
typedef void as_kube_manager_done_fn(void *context, const char *manager);

/* Who set spec.replicas. `path` of the object, not of its scale; it is copied. `done` is called
 * exactly once, in a later turn of the loop, unless cancelled first. */
struct as_kube_manager_ask *as_kube_manager_start(struct as_kube_client *client,
                                                  const struct as_flow *flow, const char *path,
                                                  as_kube_manager_done_fn *done,
                                                  void *context) AS_MUST_USE;
void as_kube_manager_cancel(struct as_kube_manager_ask *ask);

#endif
