/*
 * Undoing what nobody goes on with: first a list of nodes, then one node after the other.
 */
#include <stdlib.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>
#include <alertscaler/kube/target_limits.h>

#include "drain_private.h"
#include "kube_pages.h"

struct recovery {
    struct as_drains *owner;
    struct as_kube_pages *pages;
    struct as_kube_nodes nodes;
    size_t next;
    unsigned undone;
    bool is_outdated;          /* recovery was requested again */
    bool is_any_left;          /* somebody may still go on with a node */
    bool is_any_ours;          /* another node with our mark is worked on */
    struct as_outcome outcome; /* the first failure */
};

void recovery_free(struct recovery *recovery)
{
    if (!recovery)
        return;
    if (recovery->pages)
        as_kube_pages_cancel(recovery->pages);
    as_kube_nodes_deinit(&recovery->nodes);
    free(recovery);
}

static void finish(struct recovery *recovery)
{
    struct as_drains *drains = recovery->owner;
    drains->recovery = NULL;
    if (recovery->is_outdated || recovery->is_any_left ||
        recovery->outcome.reason != AS_REASON_APPLIED)
        recovery_begin_later(drains);
    drains->recovered(drains->recovered_context, &recovery->outcome, recovery->undone,
                      recovery->is_any_left || recovery->is_any_ours ||
                          recovery->outcome.reason != AS_REASON_APPLIED);
    recovery_free(recovery);
}

static void go_on(struct recovery *recovery);

static void undone(void *context, const struct as_drain_result *result)
{
    struct recovery *recovery = context;
    if (result->end == AS_DRAIN_STUCK && recovery->outcome.reason == AS_REASON_APPLIED)
        recovery->outcome = result->outcome;
    if (result->end == AS_DRAIN_FAILED)
        recovery->undone++;
    go_on(recovery);
}

static bool is_ours(const struct as_drains *drains, const struct as_kube_node *node)
{
    return node->is_marked && as_str_equal(node->mark.owner, drains->owner);
}

static bool is_worked_on(const struct as_drains *drains, const struct as_kube_node *node)
{
    return drain_find(drains, node->name) || drain_is_held(drains, node->name);
}

static bool is_nobodys(const struct as_drains *drains, const struct as_kube_node *node)
{
    const struct as_access_env *env = drains->client->env;
    const struct as_kube_node_mark *mark = &node->mark;
    const char *why;
    if (as_drain_is_unwanted(drains, node->name))
        return true;
    if (*mark->target)
        return as_access_get_leave_permit(env, mark->target, &why) == AS_LEAVE_GONE;
    return env->clock->get_mono(env->clock).us >= as_time_add(drains->since.us, AS_LEAVE_ORPHAN_US);
}

static void go_on(struct recovery *recovery)
{
    struct as_drains *drains = recovery->owner;
    while (recovery->next < recovery->nodes.count) {
        const struct as_kube_node *node = &recovery->nodes.items[recovery->next++];
        if (!is_ours(drains, node))
            continue;
        if (is_worked_on(drains, node)) {
            recovery->is_any_ours = true;
            continue;
        }
        if (!is_nobodys(drains, node)) {
            recovery->is_any_left = true;
            continue;
        }
        as_drain_undo_start(drains, node->name, undone, recovery);
        return;
    }
    finish(recovery);
}

static int take(void *context, const char *json, size_t size, char **next_out,
                struct as_error *error)
{
    struct recovery *recovery = context;
    return as_kube_nodes_decode(&recovery->nodes, json, size, next_out, error);
}

static void clear(void *context)
{
    struct recovery *recovery = context;
    as_kube_nodes_clear(&recovery->nodes);
}

static void nodes_read(void *context, const struct as_outcome *outcome)
{
    struct recovery *recovery = context;
    recovery->pages = NULL;
    recovery->outcome = *outcome;
    go_on(recovery); /* the list is empty after a failure */
}

static void begin(struct as_drains *drains)
{
    struct recovery *recovery = as_xcalloc(1, sizeof(*recovery));
    const struct as_kube_pages_spec spec = {
        .path = "/api/v1/nodes",
        .operation = "list_nodes",
        .what = "list nodes",
        .right = "nodes: list",
        .take = take,
        .clear = clear,
        .done = nodes_read,
        .context = recovery,
    };
    recovery->owner = drains;
    recovery->nodes = AS_KUBE_NODES_INIT(AS_NODES_MAX);
    drains->recovery = recovery;
    recovery->pages = as_kube_pages_start(drains->client, &spec);
}

/* A replica that no longer leads does nothing: the next leader looks for the nodes. */
static void begin_again(void *context)
{
    struct as_drains *drains = context;
    drains->recovery_timer = NULL;
    if (as_access_get_permit(drains->client->env) != AS_PERMIT_NONE)
        begin(drains);
}

void recovery_begin_later(struct as_drains *drains)
{
    struct as_loop *loop = drains->client->env->loop;
    if (drains->recovered && !drains->recovery && !drains->recovery_timer)
        drains->recovery_timer = loop->start_timer(loop, AS_DRAIN_RECOVER_US, begin_again, drains);
}

void as_drain_recover(struct as_drains *drains, as_drain_recovered_fn *done, void *context)
{
    const struct as_clock *clock = drains->client->env->clock;
    if (!drains->recovered)
        drains->since = clock->get_mono(clock);
    drains->recovered = done;
    drains->recovered_context = context;
    if (drains->recovery) {
        drains->recovery->is_outdated = true;
        return;
    }
    drains->client->env->loop->cancel_timer(drains->client->env->loop, drains->recovery_timer);
    drains->recovery_timer = NULL;
    begin(drains);
}
