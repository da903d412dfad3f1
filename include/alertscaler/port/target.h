/*
 * Port: something that has a size. One attempt per call; the engine decides about retries.
 */
#ifndef ALERTSCALER_PORT_TARGET_H
#define ALERTSCALER_PORT_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include <alertscaler/decide/observation.h>
#include <alertscaler/decide/target.h>

/* Called exactly once per call, in a later turn of the loop. `result` is valid during the
 * callback. */
typedef void as_target_observed_fn(void *context, uint64_t call_id,
                                   const struct as_observation *result);
typedef void as_target_scaled_fn(void *context, uint64_t call_id,
                                 const struct as_scale_result *result);

/* Called once per call, in a later turn, unless the port is closed first. `result` is valid during
 * the callback. */
typedef void as_objects_listed_fn(void *context, uint64_t call_id,
                                  const struct as_object_list *result);

struct as_object_list_request {
    const struct as_target_config *entry; /* with `allow.list` */
    const char *own_namespace;            /* of alertscaler; NULL: not known */
};

struct as_target_port {
    /* Reads the size, and the pods if `request` asks for them and the target has pods. `ref` and
     * `request` are borrowed for the call. */
    void (*observe)(struct as_target_port *self, uint64_t call_id, const struct as_target_ref *ref,
                    const struct as_observe_request *request, as_target_observed_fn *done,
                    void *context);
    /* Sets an absolute size, if the target has not changed since the observation. */
    void (*scale)(struct as_target_port *self, uint64_t call_id, const struct as_target_ref *ref,
                  const struct as_scale_request *request, as_target_scaled_fn *done, void *context);
    /* No observation and no change is under way. Lists may be: a stop does not wait for them. */
    bool (*is_idle)(const struct as_target_port *self);
    void (*close)(struct as_target_port *self); /* no callbacks afterwards; frees it too */
    /* Tells those who look at the object, best effort. NULL: it has no place for that. */
    void (*warn)(struct as_target_port *self, const struct as_target_ref *ref,
                 const struct as_late_warning *warning);
    /* Lists the objects of `allow.list`. The request is borrowed for the call. NULL: no entry of
     * this kind can have `allow.list`. */
    void (*list)(struct as_target_port *self, uint64_t call_id,
                 const struct as_object_list_request *request, as_objects_listed_fn *done,
                 void *context);
};

#endif
