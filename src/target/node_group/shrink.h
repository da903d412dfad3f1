/*
 * Scales a node group down: chooses instances, empties their nodes, has the provider delete them
 * together with the size, and waits until they are gone. If a node cannot be emptied, its instance
 * stays, and the size with it.
 */
#ifndef ALERTSCALER_SRC_TARGET_NODE_GROUP_SHRINK_H
#define ALERTSCALER_SRC_TARGET_NODE_GROUP_SHRINK_H

#include <alertscaler/access/env.h>
#include <alertscaler/base/attr.h>
#include <alertscaler/core/choose.h>
#include <alertscaler/core/observation.h>

#include "account.h"
#include "drain/drain.h"
#include "fault.h"
#include "outcome.h"

struct as_shrink;

struct as_shrink_request { /* borrowed until done or cancelled */
    const struct as_access_env *env;
    struct as_account *account;
    const struct as_target_ref *group;
    const struct as_scale_request *wanted;
    const struct as_group_view *view;    /* just read; its size is wanted->from */
    const struct as_nodes_config *nodes; /* NULL: the instances are not nodes of a cluster */
    struct as_kube_client *client;       /* of nodes->cluster; NULL if there are no nodes */
    struct as_drains *drains;            /* of nodes->cluster; NULL if there are no nodes */
};

struct as_shrink_result {
    struct as_outcome outcome; /* applied: at least one instance left */
    int32_t reached;           /* the resulting size, if applied or accepted */
    unsigned attempts;         /* requests to the provider */
    struct as_provider_call call;
};

typedef void as_shrink_done_fn(void *context, const struct as_shrink_result *result);

/* `done` is called exactly once, in a later turn, unless cancelled. */
struct as_shrink *as_shrink_start(const struct as_shrink_request *request, as_shrink_done_fn *done,
                                  void *context) AS_MUST_USE;
/* Only after `drains` were freed: changes to nodes are undone by the next recovery. */
void as_shrink_cancel(struct as_shrink *shrink);

#endif
