/*
 * What is found in a group: see the header.
 */
#include <alertscaler/provider/group.h>

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

bool as_group_add_instance(struct as_group_talk *talk, const struct as_instance *instance)
{
    struct as_arena *arena = &talk->talk.arena;
    struct as_group_view *view = &talk->view;
    if (view->instance_count == AS_GROUP_INSTANCES_MAX) {
        as_talk_fail(&talk->talk, AS_TALK_CONFIGURATION, "the group has more than %d instances",
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
