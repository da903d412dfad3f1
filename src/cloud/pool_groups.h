/*
 * Node groups as their providers last told them, for pools.
 */
#ifndef ALERTSCALER_SRC_CLOUD_POOL_GROUPS_H
#define ALERTSCALER_SRC_CLOUD_POOL_GROUPS_H

#include <alertscaler/kube/env.h>
#include <alertscaler/port/target.h>

#define AS_POOL_GROUPS_KNOWN_MAX 1000 /* with one more, the one read first is forgotten */

struct as_pool_groups;

struct as_pool_reading {               /* of one group; valid until the group is read again */
    struct as_observation observation; /* without pods and nodes */
    struct as_group_members members;   /* empty where they are not known */
    as_mono_time at;
    int32_t missing; /* nodes in the size, without an instance */
    as_mono_time missing_since;
};

/* Borrows both. To be freed after `port` is closed, which has the outstanding calls. */
struct as_pool_groups *as_pool_groups_new(struct as_target_port *port,
                                          const struct as_access_env *env);
struct as_pool_groups *as_pool_groups_free(struct as_pool_groups *groups);

/* NULL: it was never read. */
const struct as_pool_reading *as_pool_groups_find(const struct as_pool_groups *groups,
                                                  const struct as_target_ref *ref);

/* Reads one group. `done` is called exactly once, in a later turn of the loop; a failure is a
 * reading too. */
typedef void as_pool_group_done_fn(void *context);
void as_pool_groups_read(struct as_pool_groups *groups, const struct as_pool_member *member,
                         as_pool_group_done_fn *done, void *context);

#endif
