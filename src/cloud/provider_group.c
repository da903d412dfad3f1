/*
 * What was found in a group: see the header.
 */
#include <alertscaler/cloud/provider_group.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <alertscaler/base/str.h>

static int32_t count_states(const struct as_group_view *view, bool with_pending, bool with_failed)
{
    int32_t count = 0;
    for (size_t i = 0; i < view->instance_count; i++) {
        const enum as_instance_state state = view->instances[i].state;
        count += state == AS_INSTANCE_RUNNING || (with_pending && state == AS_INSTANCE_PENDING) ||
                 (with_failed && state == AS_INSTANCE_FAILED);
    }
    return count;
}

int32_t as_group_count_running(const struct as_group_view *view)
{
    return count_states(view, false, false);
}

int32_t as_group_count_coming(const struct as_group_view *view)
{
    return count_states(view, true, false);
}

int32_t as_group_count_present(const struct as_group_view *view)
{
    return count_states(view, true, true);
}

bool as_group_is_present(const struct as_group_view *view, const char *id)
{
    for (size_t i = 0; i < view->instance_count; i++) {
        if (strcmp(view->instances[i].id, id) == 0)
            return view->instances[i].state != AS_INSTANCE_LEAVING;
    }
    return false;
}

/* When an instance leaves, the size may fall or not (if another one replaces it). In either case
 * the removal must not take it below the decided size. */
bool as_group_keep_present(struct as_group_op *op)
{
    const size_t given = op->instance_count;
    const char **ids = as_arena_alloc(&op->op.arena, given, sizeof(*ids));
    const char **nodes = op->nodes ? as_arena_alloc(&op->op.arena, given, sizeof(*nodes)) : NULL;
    size_t kept = 0;
    for (size_t i = 0; i < given; i++) {
        if (!as_group_is_present(&op->view, op->instances[i]))
            continue;
        if (nodes)
            nodes[kept] = op->nodes[i];
        ids[kept++] = op->instances[i];
    }
    op->instances = ids;
    op->nodes = nodes;
    op->instance_count = kept;
    if (op->view.size <= op->from && op->view.size - (int32_t)kept >= op->to)
        return true;
    as_cloud_op_fail(&op->op, AS_CLOUD_OP_BUSY,
                     "the group has changed since it was looked at: its size is %d", op->view.size);
    return false;
}

void as_group_choose_missing(struct as_group_op *op, int32_t wanted, bool with_pending)
{
    static const enum as_instance_state states[] = {AS_INSTANCE_FAILED, AS_INSTANCE_PENDING};
    const struct as_group_view *view = &op->view;
    const char **ids = as_arena_alloc(&op->op.arena, view->instance_count + 1, sizeof(*ids));
    int32_t count = 0;
    for (size_t s = 0; s < (with_pending ? 2 : 1); s++) {
        for (size_t i = 0; i < view->instance_count && count < wanted; i++) {
            if (view->instances[i].state == states[s])
                ids[count++] = view->instances[i].id;
        }
    }
    op->instances = ids;
    op->instance_count = (size_t)count;
}

void as_group_note_gone(struct as_group_op *op, size_t index)
{
    if (!op->are_gone)
        op->are_gone = as_arena_alloc(&op->op.arena, op->instance_count, sizeof(*op->are_gone));
    op->are_gone[index] = true;
}

bool as_group_add_backing(struct as_group_op *op, const char *format, ...)
{
    struct as_group_view *view = &op->view;
    char name[AS_BACKING_NAME_SIZE];
    va_list list;
    va_start(list, format);
    const int size = vsnprintf(name, sizeof(name), format, list);
    va_end(list);
    for (size_t i = 0; i < view->backing_count; i++) {
        if (strcmp(view->backing[i], name) == 0)
            return true;
    }
    if (size < 0 || (size_t)size >= sizeof(name) || view->backing_count == AS_BACKING_MAX) {
        as_cloud_op_fail(&op->op, AS_CLOUD_OP_CONFIGURATION,
                         "the group has more than %d resources, or their names are too long",
                         AS_BACKING_MAX);
        return false;
    }
    if (!view->backing)
        view->backing = as_arena_alloc(&op->op.arena, AS_BACKING_MAX, sizeof(*view->backing));
    view->backing[view->backing_count++] = as_arena_strdup(&op->op.arena, name);
    return true;
}

bool as_group_add_instance(struct as_group_op *op, const struct as_instance *instance)
{
    struct as_arena *arena = &op->op.arena;
    struct as_group_view *view = &op->view;
    if (view->instance_count == AS_GROUP_INSTANCES_MAX) {
        as_cloud_op_fail(&op->op, AS_CLOUD_OP_CONFIGURATION, "the group has more than %d instances",
                         AS_GROUP_INSTANCES_MAX);
        return false;
    }
    if (view->instance_count == view->instance_room) {
        const size_t room = view->instance_room ? 2 * view->instance_room : 64;
        struct as_instance *more = as_arena_alloc(arena, room, sizeof(*more));
        if (view->instance_count > 0)
            memcpy(more, view->instances, view->instance_count * sizeof(*more));
        view->instances = more;
        view->instance_room = room;
    }
    struct as_instance copy = *instance;
    copy.id = as_arena_strdup(arena, instance->id);
    copy.provider_id = as_arena_strdup(
        arena, as_str_is_empty(instance->provider_id) ? instance->id : instance->provider_id);
    copy.zone = as_arena_strdup(arena, instance->zone ? instance->zone : "");
    view->instances[view->instance_count++] = copy;
    return true;
}
