/*
 * Instances that are no nodes: see the header.
 */
#include "nodeless.h"

#include <stdlib.h>
#include <string.h>

#include <bsd/sys/queue.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/arena.h>

struct nameless {
    const char *id;
    as_mono_time since;
};

struct group {
    TAILQ_ENTRY(group) entry;
    char *key, *cluster;
    bool had_node; /* in this cluster */
    as_mono_time looked;
    struct as_arena texts;
    struct nameless *items; /* ascending by id */
    size_t count;
};

struct as_nodeless {
    TAILQ_HEAD(, group) groups; /* by the time of their last look */
    size_t count;
};

struct as_nodeless *as_nodeless_new(void)
{
    struct as_nodeless *nodeless = as_xcalloc(1, sizeof(*nodeless));
    TAILQ_INIT(&nodeless->groups);
    return nodeless;
}

static void forget(struct as_nodeless *nodeless, struct group *group)
{
    TAILQ_REMOVE(&nodeless->groups, group, entry);
    nodeless->count--;
    as_arena_deinit(&group->texts);
    free(group->key);
    free(group->cluster);
    free(group);
}

struct as_nodeless *as_nodeless_free(struct as_nodeless *nodeless)
{
    struct group *group;
    while (nodeless && (group = TAILQ_FIRST(&nodeless->groups)))
        forget(nodeless, group);
    free(nodeless);
    return NULL;
}

static struct group *find(const struct as_nodeless *nodeless, const char *key)
{
    struct group *group;
    TAILQ_FOREACH (group, &nodeless->groups, entry) {
        if (strcmp(group->key, key) == 0)
            return group;
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct nameless *)a)->id, ((const struct nameless *)b)->id);
}

static const struct nameless *find_item(const struct group *group, const char *id)
{
    const struct nameless wanted = {.id = id};
    return group->count > 0 ? bsearch(&wanted, group->items, group->count, sizeof(wanted), compare)
                            : NULL;
}

static struct group *add(struct as_nodeless *nodeless, const char *key, const char *cluster)
{
    struct group *group = as_xcalloc(1, sizeof(*group));
    if (nodeless->count == AS_NODELESS_GROUPS_MAX)
        forget(nodeless, TAILQ_FIRST(&nodeless->groups));
    group->key = as_xstrdup(key);
    group->cluster = as_xstrdup(cluster);
    group->texts = AS_ARENA_INIT;
    TAILQ_INSERT_TAIL(&nodeless->groups, group, entry);
    nodeless->count++;
    return group;
}

static void see(struct group *group, const struct group *former,
                const struct as_instance_node *node, as_mono_time now)
{
    const struct nameless *known = former ? find_item(former, node->instance->id) : NULL;
    group->had_node = group->had_node || (node->is_found && !node->is_ambiguous);
    if (node->is_found || node->is_ambiguous || node->may_be_nameless ||
        node->instance->state == AS_INSTANCE_LEAVING)
        return;
    group->items[group->count++] = (struct nameless){
        .id = as_arena_strdup(&group->texts, node->instance->id),
        .since = known ? known->since : now,
    };
}

void as_nodeless_see(struct as_nodeless *nodeless, const char *group, const char *cluster,
                     const struct as_instance_node *nodes, size_t count, as_mono_time now)
{
    struct group *former = find(nodeless, group);
    if (former && strcmp(former->cluster, cluster) != 0) {
        forget(nodeless, former);
        former = NULL;
    }
    struct group *seen = add(nodeless, group, cluster);
    const bool is_row = former && now.us <= as_time_add(former->looked.us, AS_NODELESS_GAP_US);
    seen->had_node = former && former->had_node;
    seen->looked = now;
    seen->items = as_arena_alloc(&seen->texts, count, sizeof(*seen->items));
    for (size_t i = 0; i < count; i++)
        see(seen, is_row ? former : NULL, &nodes[i], now);
    qsort(seen->items, seen->count, sizeof(*seen->items), compare);
    if (former)
        forget(nodeless, former);
}

bool as_nodeless_had_node(const struct as_nodeless *nodeless, const char *group)
{
    const struct group *known = find(nodeless, group);
    return known && known->had_node;
}

bool as_nodeless_has(const struct as_nodeless *nodeless, const char *group, const char *id,
                     int64_t us)
{
    const struct group *known = find(nodeless, group);
    const struct nameless *item = known && known->had_node ? find_item(known, id) : NULL;
    return item && as_time_add(item->since.us, us) <= known->looked.us;
}
