/*
 * Readings of node groups: see the header.
 */
#include "pool_groups.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>

struct group {
    TAILQ_ENTRY(group) entry;
    char *key;
    struct as_arena texts;
    struct as_pool_reading reading;
};

struct call {
    LIST_ENTRY(call) entry;
    struct as_pool_groups *owner;
    struct as_target_ref *ref;
    as_pool_group_done_fn *done;
    void *context;
};

struct as_pool_groups {
    struct as_target_port *port;
    const struct as_access_env *env;
    TAILQ_HEAD(, group) groups; /* by the time of their readings */
    size_t count;
    LIST_HEAD(, call) calls;
};

struct as_pool_groups *as_pool_groups_new(struct as_target_port *port,
                                          const struct as_access_env *env)
{
    struct as_pool_groups *groups = as_xcalloc(1, sizeof(*groups));
    groups->port = port;
    groups->env = env;
    TAILQ_INIT(&groups->groups);
    LIST_INIT(&groups->calls);
    return groups;
}

static void pool_groups_forget(struct as_pool_groups *groups, struct group *group)
{
    TAILQ_REMOVE(&groups->groups, group, entry);
    groups->count--;
    as_arena_deinit(&group->texts);
    free(group->key);
    free(group);
}

static void pool_groups_free_call(struct call *call)
{
    LIST_REMOVE(call, entry);
    as_target_ref_free(call->ref);
    free(call);
}

struct as_pool_groups *as_pool_groups_free(struct as_pool_groups *groups)
{
    struct group *group;
    struct call *call;
    while ((group = TAILQ_FIRST(&groups->groups)))
        pool_groups_forget(groups, group);
    while ((call = LIST_FIRST(&groups->calls)))
        pool_groups_free_call(call);
    free(groups);
    return NULL;
}

static struct group *pool_groups_find(const struct as_pool_groups *groups, const char *key)
{
    struct group *group;
    TAILQ_FOREACH (group, &groups->groups, entry) {
        if (strcmp(group->key, key) == 0)
            return group;
    }
    return NULL;
}

const struct as_pool_reading *as_pool_groups_find(const struct as_pool_groups *groups,
                                                  const struct as_target_ref *ref)
{
    const struct group *group = pool_groups_find(groups, ref->key);
    return group ? &group->reading : NULL;
}

static struct group *pool_groups_add(struct as_pool_groups *groups, const char *key)
{
    struct group *group = as_xcalloc(1, sizeof(*group));
    if (groups->count == AS_POOL_GROUPS_KNOWN_MAX)
        pool_groups_forget(groups, TAILQ_FIRST(&groups->groups));
    group->key = as_xstrdup(key);
    group->texts = AS_ARENA_INIT;
    TAILQ_INSERT_TAIL(&groups->groups, group, entry);
    groups->count++;
    return group;
}

/* The time begins anew when more are missing, and after a gap in the readings. */
static void see_missing(struct as_pool_reading *reading, const struct as_pool_reading *before)
{
    const struct as_observation *seen = &reading->observation;
    const struct as_group_members *members = seen->members;
    reading->missing_since = reading->at;
    if (before->missing > 0 && reading->at.us - before->at.us <= AS_UNNEEDED_GAP_US &&
        (!members || seen->outcome != AS_REASON_APPLIED)) {
        reading->missing = before->missing;
        reading->missing_since = before->missing_since;
        return;
    }
    if (!members || seen->outcome != AS_REASON_APPLIED)
        return;
    const int64_t missing = (int64_t)seen->replicas + seen->marked - (int64_t)members->node_count -
                            members->young - members->overdue;
    reading->missing = missing > 0 ? (int32_t)missing : 0;
    if (reading->missing <= before->missing && reading->at.us - before->at.us <= AS_UNNEEDED_GAP_US)
        reading->missing_since = before->missing_since;
}

static void pool_groups_keep(struct as_pool_groups *groups, const char *key,
                             const struct as_observation *observation)
{
    const struct as_clock *clock = groups->env->clock;
    struct group *group = pool_groups_find(groups, key);
    const struct as_pool_reading before = group ? group->reading : (struct as_pool_reading){0};
    if (group)
        pool_groups_forget(groups, group);
    group = pool_groups_add(groups, key);
    group->reading.at = clock->get_mono(clock);
    group->reading.observation = *observation;
    see_missing(&group->reading, &before);
    group->reading.observation.pods = NULL;
    group->reading.observation.nodes = NULL;
    group->reading.observation.members = NULL;
    const char **backing =
        as_arena_alloc(&group->texts, observation->backing_count, sizeof(*backing));
    for (size_t i = 0; i < observation->backing_count; i++)
        backing[i] = as_arena_strdup(&group->texts, observation->backing[i]);
    group->reading.observation.backing = backing;
    if (!observation->members)
        return;
    const struct as_group_members *members = observation->members;
    const char **names = as_arena_alloc(&group->texts, members->node_count, sizeof(*names));
    for (size_t i = 0; i < members->node_count; i++)
        names[i] = as_arena_strdup(&group->texts, members->nodes[i]);
    group->reading.members = *members;
    group->reading.members.nodes = names;
}

static void was_read(void *context, uint64_t ticket, const struct as_observation *result)
{
    struct call *call = context;
    const struct call told = *call;
    pool_groups_keep(call->owner, call->ref->key, result);
    pool_groups_free_call(call);
    told.done(told.context);
}

void as_pool_groups_read(struct as_pool_groups *groups, const struct as_pool_member *member,
                         as_pool_group_done_fn *done, void *context)
{
    struct call *call = as_xcalloc(1, sizeof(*call));
    const struct as_observe_request request = {.with_members = true, .nodes = member->nodes};
    call->owner = groups;
    call->ref = as_target_ref_copy(member->ref);
    call->done = done;
    call->context = context;
    LIST_INSERT_HEAD(&groups->calls, call, entry);
    groups->port->observe(groups->port, 0, member->ref, &request, was_read, call);
}
