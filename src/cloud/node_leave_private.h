/*
 * The files of nodes that leave share this: node_leave.c (who leaves, and the steps) and node_leave_delete.c
 * (deleting them).
 */
#ifndef ALERTSCALER_SRC_CLOUD_NODE_LEAVE_PRIVATE_H
#define ALERTSCALER_SRC_CLOUD_NODE_LEAVE_PRIVATE_H

#include <bsd/sys/queue.h>

#include <alertscaler/base/random.h>

#include "node_leave.h"
#include "removal.h"
#include <alertscaler/kube/target_outcome.h>

enum state { WAITS, LOOKED, READY, SENT, RETURNS, OVER };

struct leaving {
    LIST_ENTRY(leaving) entry;
    struct group *group;
    char *id, *provider_id, *decision;
    char *node; /* NULL: the instance has none */
    as_wall_time marked_at;
    as_maybe_time created; /* the node, as last read */
    enum state state;
    bool is_ready;
    bool is_listed; /* in the group, as last read */
    bool is_marked; /* as last read */
    struct as_drain *drain;
    as_mono_time next;    /* nothing is begun before */
    as_mono_time delete;  /* nor is it deleted before */
    as_mono_time give_up; /* deleting it: not tried any more then; INT64_MAX: not tried yet */
    char *why;            /* it returns */
    struct as_leave_return *returning;
    unsigned pins; /* lists outside of the group's that have it */
};

struct group {
    LIST_ENTRY(group) entry;
    struct as_leave *leave;
    struct as_target_ref *ref;
    char *select; /* as_nodes_config.select; NULL */
    struct as_drains *drains;
    enum as_nodes_drain drain;
    int64_t drain_after_us, drain_timeout_us, grace_us;
    unsigned keep; /* of enum as_keep */
    LIST_HEAD(, leaving) nodes;
    int32_t base, sent;   /* the size before the open removals, and what they remove */
    as_maybe_time failed; /* when a node was last put back */
};

struct batch { /* a removal */
    LIST_ENTRY(batch) entry;
    struct group *group;
    struct leaving **items;
    const char **ids, **nodes;
    size_t count;
    char id[AS_ULID_SIZE];
    struct as_group_talk talk; /* reads the group */
    struct as_account_call *call;
    struct as_removal *removal; /* NULL: still reading */
};

struct as_leave_return {
    struct leaving **items;
    size_t count;
    int32_t open, returned;
    as_leave_returned_fn *done; /* NULL: cancelled */
    void *context;
};

struct as_leave {
    const struct as_access_env *env;
    struct as_account *account;
    struct as_random random;
    LIST_HEAD(, group) groups;
    LIST_HEAD(, batch) batches;
    struct as_timer *timer;
    bool is_retired;
};

static inline as_mono_time leave_get_mono(const struct as_leave *leave)
{
    return leave->env->clock->get_mono(leave->env->clock);
}

static inline as_wall_time leave_get_wall(const struct as_leave *leave)
{
    return leave->env->clock->get_wall(leave->env->clock);
}

/* Whether the next step may be made now. */
bool leave_may_step(const struct group *group, const char **why_out);
int32_t leave_count(const struct group *group, bool (*is_one)(const struct leaving *));

/* Those of one decision are one record. */
void leave_record(const struct group *group, struct leaving *const *items, size_t count,
                  enum as_nodes_event event, const char *why);

void leave_try_later(struct leaving *item, int64_t us);
void leave_put_back(struct leaving *item, const char *why);
void leave_end(struct leaving *item); /* it is over */
void leave_end_removed(struct leaving *item, const char *why);

void leave_delete_ready(struct group *group);
void leave_free_batch(struct batch *batch);

#endif
