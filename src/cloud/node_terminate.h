/*
 * Nodes that are marked to leave their groups: emptying and deleting them goes on in the
 * background, node by node, while their groups are decided as usual. Of one provider's account.
 *
 * The marks are the memory: what another process has marked is found when the group is read, and is
 * gone on with. Each step first asks for the term, the kill switch and the target's permit
 * (kube/env.h).
 */
#ifndef ALERTSCALER_SRC_CLOUD_NODE_TERMINATE_H
#define ALERTSCALER_SRC_CLOUD_NODE_TERMINATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/attr.h>
#include <alertscaler/cloud/provider_group.h>
#include <alertscaler/decide/choose.h>
#include <alertscaler/kube/drain.h>
#include <alertscaler/kube/env.h>
#include <alertscaler/kube/nodes.h>
#include <alertscaler/kube/target_outcome.h>

#include "provider_account.h"
#include "provider_answer.h"

struct as_terminator;
struct as_terminator_return;
struct as_removal;

struct as_terminator *as_terminator_new(const struct as_access_env *env,
                                        struct as_account *account);
/* After the drains, before the account. The marks stay. */
struct as_terminator *as_terminator_free(struct as_terminator *terminator);
/* Begins no more steps: another port goes on. */
void as_terminator_retire(struct as_terminator *terminator);
bool as_terminator_is_idle(const struct as_terminator *terminator)
    AS_MUST_USE; /* no step is under way */

struct as_terminator_group { /* borrowed for a call */
    const struct as_target_ref *ref;
    const struct as_nodes_config *config;
    struct as_drains *drains; /* of its cluster */
};

struct as_terminator_view {
    int32_t size;         /* the provider's size less what leaves */
    int32_t max;          /* the provider's maximum, for this size; -1: none */
    int32_t returnable;   /* nodes that growth can have back */
    as_maybe_time failed; /* when a node was last put back */
};

/* The group and its nodes have just been read, one node for each instance. Finds marks of earlier
 * processes, and what has gone meanwhile. */
void as_terminator_observe(struct as_terminator *terminator,
                           const struct as_terminator_group *group,
                           const struct as_group_view *view, const struct as_instance_node *nodes,
                           size_t count, struct as_terminator_view *sight_out);
/* Whether the instance leaves. */
bool as_terminator_has(const struct as_terminator *terminator, const struct as_target_ref *ref,
                       const char *id);

struct as_terminating { /* an instance; copied */
    const char *id, *provider_id;
    const char *node; /* marked; NULL: the instance has no node */
};

/* They were chosen by the decision, and leave from now on. */
void as_terminator_add(struct as_terminator *terminator, const struct as_terminator_group *group,
                       const struct as_terminating *items, size_t count, const char *decision);

/* Puts up to `wanted` ready nodes back into service: those of the last decision first, and of these
 * the newest. `done`
 * receives how many, in a later turn, unless cancelled: the nodes come back all the same. NULL:
 * there are none, and `done` is not called. */
typedef void as_terminator_returned_fn(void *context, int32_t count);
struct as_terminator_return *as_terminator_take_back(struct as_terminator *terminator,
                                                     const struct as_target_ref *ref,
                                                     int32_t wanted,
                                                     as_terminator_returned_fn *done,
                                                     void *context) AS_MUST_USE;
void as_terminator_return_cancel(struct as_terminator_return *returning);
/* The provider was asked for so many more. */
void as_terminator_note_increase(struct as_terminator *terminator, const struct as_target_ref *ref,
                                 int32_t more);

/*
 * Has a provider delete instances of a group by name, together with the group's size, and waits
 * until they are gone.
 */

struct as_removal_request { /* borrowed until done or cancelled */
    const struct as_access_env *env;
    struct as_account *account;
    const struct as_target_ref *group;
    const struct as_group_view *view; /* just read; copied as far as it is needed */
    const char *idempotency;          /* a ULID, for these instances only */
    const char *const *ids;
    const char *const *nodes; /* their nodes, each may be NULL; or NULL */
    size_t count;
};

struct as_removal_result { /* valid during the callback */
    /* Applied: the instances that do not stay are gone, or leave. The message says what is left to
     * be said. */
    struct as_outcome outcome;
    const bool *stays; /* by `ids` */
    size_t gone;       /* how many do not stay */
    bool is_known;     /* false: after a failure it could not be read who stays */
    unsigned attempts; /* requests to the provider */
    struct as_provider_call call;
};

typedef void as_removal_done_fn(void *context, const struct as_removal_result *result);

/* `done` is called exactly once, in a later turn, unless cancelled. */
struct as_removal *as_removal_start(const struct as_removal_request *request,
                                    as_removal_done_fn *done, void *context) AS_MUST_USE;
void as_removal_cancel(struct as_removal *removal);

#endif
