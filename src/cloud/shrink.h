/*
 * Scales a node group down: chooses instances. If they are nodes of a cluster, these are marked,
 * and leave in the background (node_leave.h); else the provider deletes the instances together with the
 * size, and is waited for. If a node cannot be marked, its instance stays, and the size with it.
 */
#ifndef ALERTSCALER_SRC_CLOUD_SHRINK_H
#define ALERTSCALER_SRC_CLOUD_SHRINK_H

#include <alertscaler/base/attr.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/decide/observation.h>
#include <alertscaler/kube/env.h>

#include "node_leave.h"
#include "provider_account.h"
#include "provider_fault.h"
#include <alertscaler/kube/target_outcome.h>

struct as_shrink;

struct as_shrink_request { /* borrowed until done or cancelled */
    const struct as_access_env *env;
    struct as_account *account;
    struct as_leave *leave;
    const struct as_leave_group *group; /* without drains: the instances are not nodes */
    const struct as_scale_request *wanted;
    const struct as_group_view *view; /* just read; without what leaves, its size is wanted->from */
    const struct as_instance_node *nodes; /* one for each instance; borrowed for the call */
    size_t node_count;
    bool had_nodes;        /* an instance of the group was seen to be a node of this cluster */
    const bool *removable; /* of a clean-up, by `nodes`: who may leave, and nobody else; or NULL */
};

struct as_shrink_result {
    struct as_outcome outcome; /* applied: at least one instance left, or leaves */
    int32_t reached;           /* the resulting size, if applied or accepted */
    unsigned attempts;         /* requests to the provider */
    struct as_provider_call call;
};

typedef void as_shrink_done_fn(void *context, const struct as_shrink_result *result);

/* `done` is called exactly once, in a later turn, unless cancelled. */
struct as_shrink *as_shrink_start(const struct as_shrink_request *request, as_shrink_done_fn *done,
                                  void *context) AS_MUST_USE;
/* Before the drains are freed, without a turn between. */
void as_shrink_cancel(struct as_shrink *shrink);

#endif
