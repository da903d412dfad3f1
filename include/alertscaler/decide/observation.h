/*
 * What a target adapter is asked, and its answers to "how large is it" and "set this size".
 *
 * Long because each answer is one struct, for all kinds of targets.
 */
#ifndef ALERTSCALER_DECIDE_OBSERVATION_H
#define ALERTSCALER_DECIDE_OBSERVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <alertscaler/base/arena.h>
#include <alertscaler/base/time.h>
#include <alertscaler/cluster/cluster.h>
#include <alertscaler/cluster/nodes_seen.h>
#include <alertscaler/cluster/pool_plan.h>
#include <alertscaler/cluster/snapshot.h>
#include <alertscaler/decide/target.h>
#include <alertscaler/model/action.h>
#include <alertscaler/model/reason.h>

struct as_nodes_config; /* decide/choose.h */

/* What a pool's observation needs to know of its groups, and of what was decided before */

#define AS_POOL_MEMBERS_MAX 1000 /* groups of one request */

/* Looks that are further apart do not count as one unbroken row: what was unneeded is counted
 * anew. */
#define AS_UNNEEDED_GAP_US (5 * AS_US_PER_MIN)

/* A node group as the engine sees it, for the snapshot of its pool. */
struct as_pool_member {
    const struct as_target_ref *ref;
    const char *name; /* of its target in the rule file */
    const struct as_nodes_config *nodes;
    bool is_member;           /* of this pool; else only what is on its way counts */
    int32_t min, max;         /* of the rule file */
    enum as_reason closed;    /* for growth: cooldown (a back-off is one), paused, dry_run;
                                 AS_REASON_SCALED: open */
    bool is_kept;             /* it must not go down: no node of it leaves */
    bool has_pending_scaleup; /* an increase of ours is under way */
    int32_t refused;          /* what a refused increase lacks */
    int32_t in_doubt;         /* nodes of an increase whose outcome is unknown */
    as_maybe_time open_at;    /* when the back-off ends; unset: there is none */
    bool down_in_doubt;       /* a decrease in the pool has an unknown outcome: no node leaves */
    int32_t surplus;          /* nodes of increases in doubt that the provider has accepted */
    as_maybe_time surplus_since;
    int32_t unregistered; /* nodes of another controller for which it has backed off */
    int32_t last_size;    /* as last observed; 0: never */
};

/* All of it is borrowed for the call that asks. */
struct as_pool_request {
    const struct as_pool_config *config;
    const struct as_pool_member *members; /* of the pool first, in its order; then all other groups
                                             of the cluster */
    size_t member_count;
    int32_t min, max; /* of the pool */
    bool with_fit, with_take;
    const struct as_unneeded *unneeded;
    size_t unneeded_count;
    const struct as_asked *asked;
    size_t asked_count;
    uint64_t seed;
};

/* Memory of the arena, but for addresses and what nodes are configured to be: call the deinit
 * before the arena's. */
void as_pool_request_copy(const struct as_pool_request *request, struct as_arena *arena,
                          struct as_pool_request *copy_out);
void as_pool_request_deinit(struct as_pool_request *copy);

/* The answers */

#define AS_VERSION_SIZE      256 /* of an ETag or resourceVersion, with NUL; a longer is an error */
#define AS_UID_SIZE          64  /* of an object's UID, with NUL */
#define AS_MANAGER_SIZE      129 /* of a manager in managedFields, with NUL */
#define AS_MESSAGE_SIZE      256 /* of the other side's message, cut */
#define AS_REQUEST_ID_SIZE   128 /* of the other side's name for a request, with NUL */
#define AS_BACKING_MAX       128 /* resources behind one node group; more is an error */
#define AS_BACKING_NAME_SIZE 512

/* A container that runs as long as its pod: an init container only if it is a sidecar. */
struct as_container_seen {
    const char *name;
    double requests[AS_RESOURCE_COUNT], limits[AS_RESOURCE_COUNT]; /* cores, bytes; NaN: none */
};

/* One pod of the target with its pod-level resources, or else the sum of its containers (sidecars
 * included). */
struct as_pod_seen {
    const char *name;
    enum as_pod_phase phase;
    enum as_tristate ready;
    bool deleting;
    as_maybe_time start_time, ready_since;
    double requests[AS_RESOURCE_COUNT], limits[AS_RESOURCE_COUNT]; /* cores, bytes; NaN: a container
                                                                      says none */
    enum as_pod_owner owner; /* with_owners; else as if it were the target's */
    const char *owner_name;  /* of an owner that is gone, for people; NULL: none is */
    const char *owner_error; /* why this owner cannot be read; NULL: it is not there */
    const struct as_container_seen *containers;
    size_t container_count;
};

/* A copy of the pod's containers with their names, in one block of memory of this size. */
size_t as_containers_get_size(const struct as_pod_seen *pod);
const struct as_container_seen *as_containers_copy(const struct as_pod_seen *pod, void *memory);

/* The nodes of a node group, and its instances that are none. */
struct as_group_members {
    const char *const *nodes; /* names, ascending (bytes) */
    size_t node_count;
    int32_t coming;    /* young instances, and instances that the size has and that are not there */
    int32_t young;     /* instances that are no nodes yet, and may still become some */
    int32_t overdue;   /* instances that are no nodes ready_timeout after they were made */
    int32_t removable; /* of these: seen to be none for ready_timeout, beyond doubt */
};

struct as_group_template { /* the last one that was told of a node group (as_nodes_seen) */
    const char *group;     /* key of its target */
    const char *text;
};

/* Of a container's resource: what becomes of the change of a pod template, or what pods have that
 * are resized in place. */
struct as_resize_seen {
    bool is_set;
    bool is_rolling;       /* the template's rollout has not ended */
    bool has_verdict;      /* its controller watches its deadline, */
    bool has_failed;       /* and says that it has passed */
    int32_t updated;       /* pods with the present template */
    int32_t template_size; /* of the pods: what new ones get; -1: the template is what is sized */
    int32_t settled; /* the smallest that is not the template's; -1: all pods have the template's */
    int32_t asked;   /* the smallest that pods ask for, whatever their kubelets granted; -1: none */
    as_maybe_time newest; /* when the newest of those that ask for the template's size was made */
    char message[AS_MESSAGE_SIZE]; /* why it has failed */
};

#define AS_REVISION_SIZE 256 /* of a pod template's revision, with NUL; a longer is cut */

/* X(enumerator, word): in rule tests */
#define AS_ROLLOUT_PROGRESSES(X)                                                                   \
    X(AS_PROGRESS_UNKNOWN, "unknown")                                                              \
    X(AS_PROGRESS_NONE, "none")                                                                    \
    X(AS_PROGRESS_UNDER_WAY, "under_way")

#define AS_PROGRESS_ENUM(enumerator, word) enumerator,
enum as_rollout_progress { AS_ROLLOUT_PROGRESSES(AS_PROGRESS_ENUM) AS_PROGRESS_COUNT };
#undef AS_PROGRESS_ENUM

/* Whether pods of a workload are being replaced. */
struct as_rollout_seen {
    enum as_rollout_progress progress;
    char revision[AS_REVISION_SIZE]; /* another one is another rollout; "": not known */
    char why[AS_MESSAGE_SIZE];       /* the progress is not known */
    bool is_forbidden;               /* for lack of a right: `right` names it */
};

struct as_observation {
    enum as_reason outcome;  /* AS_REASON_APPLIED: read; else target_not_found, forbidden,
                                unreachable,  throttled, rejected, timeout */
    int32_t replicas;        /* the desired size: spec.replicas */
    int32_t status_replicas; /* the actual size */
    int32_t marked;      /* nodes that are to leave, in the provider's size, not in `replicas` */
    int32_t min, max;    /* the other side's own bounds; -1: none */
    bool in_progress;    /* the other side is still carrying out a change */
    bool is_relative;    /* a change whose answer was lost must not be repeated meanwhile */
    bool lacks_capacity; /* the other side says that instances do not come for lack of it, */
    as_maybe_time gap_since;       /* since then; unset: since now */
    bool names_instances;          /* instances that do not come can be removed by name */
    char version[AS_VERSION_SIZE]; /* "" if it has none */
    char uid[AS_UID_SIZE];         /* another UID under the same name is another object; "": none */
    /* The resources behind a node group, for example its scale set: canonical names. Two targets
     * with a common resource are one group. Count 0: only this target's address leads to it. */
    const char *const *backing;
    size_t backing_count;
    bool has_pods;                  /* pods were asked for, and the target's kind has them */
    const struct as_pod_seen *pods; /* ascending by name (bytes) */
    size_t pod_count;
    const struct as_nodes_seen *nodes;         /* NULL: not asked for */
    const struct as_group_members *members;    /* NULL: not asked for, or not known */
    const struct as_snapshot *snapshot;        /* of a pool; NULL: not asked for */
    const struct as_group_template *templates; /* of a pool: of groups with a node */
    size_t template_count;
    const struct as_pool_plan *plan;     /* of the snapshot; NULL: the snapshot has an error */
    char changed_by[AS_MANAGER_SIZE];    /* manager of a size that is not `own_size`; "": unknown */
    struct as_resize_seen resize;        /* of a container's resource */
    struct as_rollout_seen rollout;      /* unknown: not asked for, or it could not be read */
    as_maybe_time drain_failed;          /* when a node that was to leave was last put back */
    int http_status;                     /* 0: no answer */
    int64_t retry_after_us;              /* 0: not given */
    char request_id[AS_REQUEST_ID_SIZE]; /* "": none */
    char message[AS_MESSAGE_SIZE];
    const char *right; /* forbidden, also of the rollout: the Role that allows it, as YAML, for
                          people; NULL: not known */
};

struct as_nodes_config; /* decide/choose.h */

struct as_observe_request {
    const char *credential; /* the narrowed one whose alerts alone cause it; NULL: none */
    bool with_pods;
    bool with_owners;  /* of the pods */
    bool with_nodes;   /* what the source `nodes` reads */
    bool with_members; /* of a node group */
    bool with_rollout; /* of a workload */
    bool has_own_size; /* if the size is not `own_size`, it is asked who set it */
    int32_t own_size;
    const struct as_nodes_config *nodes; /* of the target's entry; NULL: no node group */
    const struct as_pool_request *pool;  /* a snapshot and its plan are wanted; NULL: none */
    /* With nodes: of this group and the others of its cluster, as far as any is known. */
    const struct as_group_template *templates;
    size_t template_count;
};

/* The objects that `allow.list` of an entry selects. Borrowed for the callback. */
#define AS_LISTED_OBJECTS_MAX 10000
struct as_listed_object {
    const char *namespace_; /* "": it is in none */
    const char *name;
};
struct as_object_list {
    const char *error; /* why the list is not complete; NULL: it is */
    const char *right; /* YAML of the roles that are missing; NULL: none */
    const struct as_listed_object *items;
    size_t count;
};

struct as_policy_ref { /* the scaling policy that a target is of; without a name: none */
    const char *namespace, *name, *uid;
};

struct as_scale_request {
    int32_t from, to;
    char version[AS_VERSION_SIZE]; /* of the observation that the request is based on */
    const char *credential;        /* as in as_observe_request */
    const char *decision_id;
    bool is_ordered;   /* by an operator: the id is the command's, and there is no rule */
    bool is_take_back; /* removes only what never came: nothing that serves is touched */
    bool is_clean_up;  /* removes only instances that are removable (as_group_members), by name */
    bool is_put_back;  /* of a container's resource: to what it was before its last change */
    as_maybe_time later_than; /* of a container's resource: only pods made after it; unset: all */
    const char *rule;
    const char *alert; /* the alertname of the causing incident, for events; "" if unknown */
    const struct as_nodes_config *nodes; /* as in as_observe_request */
    const char *const *take;             /* down: exactly these nodes, by name; count 0: choose */
    size_t take_count;
    const char *const *backing; /* as last observed: with others the group is not changed */
    size_t backing_count;       /* 0: not known */
    struct as_policy_ref policy;
};

struct as_late_warning { /* an increase that has not become ready in time */
    int32_t from, to;
    int32_t ready;           /* -1: a rollout has not ended in time, and `from` is put back */
    const char *decision_id; /* or the command's */
    bool is_ordered;
    struct as_policy_ref policy;
};

struct as_scale_result {
    enum as_reason outcome; /* applied, a failure; did_not_come: it never can, and is as before */
    bool is_ambiguous;      /* not known as applied, but it may have been */
    bool is_shortage;       /* failed for lack of capacity */
    bool is_accepted;       /* accepted first, failed afterwards: counts as a step */
    bool is_partial;        /* counts as a step, but only to `reached`; the message says why */
    int32_t reached;
    int32_t returned; /* a growth: how many nodes that were to leave are back in service */
    int http_status;
    int64_t retry_after_us;
    unsigned attempts;
    char method[8];
    char path[512];                      /* of the requested object, cut */
    char request_id[AS_REQUEST_ID_SIZE]; /* "": none */
    char message[AS_MESSAGE_SIZE];
};

#endif
