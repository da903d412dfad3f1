/*
 * A copy of a pool's request, for an observation that outlasts the call: memory of an arena, but
 * for addresses and configured templates.
 */
#include <string.h>

#include <alertscaler/decide/choose.h>
#include <alertscaler/decide/observation.h>

static void *copy_items(struct as_arena *arena, const void *items, size_t count, size_t size)
{
    void *copy = as_arena_alloc(arena, count, size);
    if (count > 0)
        memcpy(copy, items, count * size);
    return copy;
}

static struct as_pool_config *copy_config(const struct as_pool_config *config,
                                          struct as_arena *arena)
{
    struct as_pool_config *copy = copy_items(arena, config, 1, sizeof(*config));
    copy->groups = NULL; /* of a rule set that may be replaced */
    copy->group_count = 0;
    copy->ignore_labels =
        copy_items(arena, config->ignore_labels, config->ignore_label_count, sizeof(char *));
    for (size_t i = 0; i < config->ignore_label_count; i++)
        copy->ignore_labels[i] = as_arena_strdup(arena, config->ignore_labels[i]);
    return copy;
}

static void copy_member(const struct as_pool_member *member, struct as_arena *arena,
                        struct as_pool_member *copy_out)
{
    struct as_nodes_config *nodes = as_arena_alloc(arena, 1, sizeof(*nodes));
    as_nodes_config_copy(member->nodes, nodes);
    *copy_out = *member;
    copy_out->ref = as_target_ref_copy(member->ref);
    copy_out->name = as_arena_strdup(arena, member->name);
    copy_out->nodes = nodes;
}

void as_pool_request_copy(const struct as_pool_request *request, struct as_arena *arena,
                          struct as_pool_request *copy_out)
{
    struct as_pool_member *members = as_arena_alloc(arena, request->member_count, sizeof(*members));
    struct as_unneeded *unneeded =
        copy_items(arena, request->unneeded, request->unneeded_count, sizeof(*unneeded));
    struct as_asked *asked =
        copy_items(arena, request->asked, request->asked_count, sizeof(*asked));
    for (size_t i = 0; i < request->member_count; i++)
        copy_member(&request->members[i], arena, &members[i]);
    for (size_t i = 0; i < request->unneeded_count; i++)
        unneeded[i].node = as_arena_strdup(arena, unneeded[i].node);
    for (size_t i = 0; i < request->asked_count; i++)
        asked[i].group = as_arena_strdup(arena, asked[i].group);
    *copy_out = *request;
    copy_out->config = copy_config(request->config, arena);
    copy_out->members = members;
    copy_out->unneeded = unneeded;
    copy_out->asked = asked;
}

void as_pool_request_deinit(struct as_pool_request *copy)
{
    for (size_t i = 0; i < copy->member_count; i++) {
        as_target_ref_free((struct as_target_ref *)copy->members[i].ref);
        as_nodes_config_deinit((struct as_nodes_config *)copy->members[i].nodes);
    }
    *copy = (struct as_pool_request){0};
}
