/*
 * What never came: instances that may be removed, and nodes of groups that cannot be read.
 */
#include "../engine/pool_world.h"

/* A group that cannot be read may still have what it had ordered. */
Test(pool_overdue, what_an_unreadable_group_has_ordered_counts_for_the_pools_max)
{
    static const struct {
        int32_t last_size;
        int32_t grown;
    } rows[] = {{0, 4}, {2, 4}, {5, 1}, {9, 0}};
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct world *world = world_new();
        world_add_group(world, "open", 1000, INT64_C(1) << 30, 0, 10);
        struct as_snapshot_group *other =
            world_add_group(world, "away", 1000, INT64_C(1) << 30, 2, 10);
        other->size = -1;
        other->last_size = rows[i].last_size;
        world->request.terms.max = 6;
        world_add_pending(world, 1000, 1, 9);
        const struct as_pool_plan plan = world_plan(world);
        cr_expect_eq(plan.groups[0].fit, rows[i].grown, "%d: %d", rows[i].last_size,
                     plan.groups[0].fit);
        world_free(world);
    }
}

Test(pool_overdue, what_never_became_a_node_leaves_above_the_minima)
{
    static const struct {
        enum as_reason closed;
        int32_t min, pool_min, count;
        bool is_unreadable;
    } rows[] = {
        {AS_REASON_SCALED, 1, 1, 3, false},      {AS_REASON_AT_MAX, 1, 1, 3, false},
        {AS_REASON_COOLDOWN, 1, 1, 3, false},    {AS_REASON_SCALED, 4, 4, 1, false},
        {AS_REASON_SCALED, 1, 3, 2, false},      {AS_REASON_SCALED, 5, 5, 0, false},
        {AS_REASON_PAUSED, 1, 1, 0, false},      {AS_REASON_DRY_RUN, 1, 1, 0, false},
        {AS_REASON_IN_PROGRESS, 1, 1, 0, false}, {AS_REASON_FORBIDDEN, 1, 1, 0, false},
        {AS_REASON_SCALED, 1, 1, 0, true},
    };
    for (size_t i = 0; i < AS_ARRAY_SIZE(rows); i++) {
        struct world *world = world_new();
        struct as_snapshot_group *group =
            world_add_group(world, "spot", 1000, INT64_C(1) << 30, 5, 10);
        group->removable = group->overdue = 3;
        group->closed = rows[i].closed;
        group->min = rows[i].min;
        group->size = rows[i].is_unreadable ? -1 : group->size;
        world->request.terms.min = rows[i].pool_min;
        const struct as_pool_plan plan = world_plan(world);
        cr_expect_eq(plan.groups[0].overdue, rows[i].count, "row %zu: %d", i,
                     plan.groups[0].overdue);
        cr_expect_eq(plan.overdue, rows[i].count);
        world->request.terms.with_fit = false;
        cr_expect_eq(world_plan(world).overdue, 0, "no rule asks for `fit`");
        world_free(world);
    }
}
