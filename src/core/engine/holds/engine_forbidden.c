/*
 * Who forbids a direction on a target, each from where it is known.
 */
#include "engine_forbidden.h"

#include <assert.h>

#include <alertscaler/base/attr.h>

#include "engine/targets/engine_pauses.h"

struct list {
    struct as_forbidden *rows;
    size_t count;
};

static void add(struct list *list, struct as_forbidden row)
{
    assert(list->count < FORBIDDEN_MAX);
    list->rows[list->count++] = row;
}

/* Pauses of all targets, and of this one. One of both directions is a flag of its own. */
static void add_pauses(struct as_engine *engine, const struct target *target, struct list *list)
{
    const struct pause *const pauses[] = {&engine->pause, &target->pause};

    for (size_t i = 0; i < AS_ARRAY_SIZE(pauses); i++) {
        if (pauses[i]->is_set && pauses[i]->ways != AS_WAYS_BOTH)
            add(list, (struct as_forbidden){
                          .ways = pauses[i]->ways,
                          .by = AS_HOLDER_PAUSE,
                          .name = as_arena_strdup(&engine->arena, pauses[i]->who),
                      });
    }
}

/* A rule with `hold` whose alert fires and is not silenced. */
static bool is_held_by_rule(const struct target *target, enum as_ways way)
{
    struct group *group;
    RB_FOREACH (group, group_tree, (struct group_tree *)(uintptr_t)&target->groups) {
        const struct binding *binding;
        if (group->rule->dry_run || !(group->rule->action.hold & way))
            continue;
        TAILQ_FOREACH (binding, &group->bindings, in_group) {
            if (!incident_is_held(binding->incident))
                return true;
        }
    }
    return false;
}

bool forbidden_is(const struct as_engine *engine, const struct target *target, enum as_ways way)
{
    return pauses_find_in(engine, target, way) || is_held_by_rule(target, way);
}

void forbidden_fill(struct as_engine *engine, const struct target *target,
                    struct as_decide_input *input)
{
    struct list list = {
        .rows = as_arena_alloc(&engine->arena, FORBIDDEN_MAX, sizeof(*list.rows)),
    };

    add_pauses(engine, target, &list);
    input->forbidden = list.rows;
    input->forbidden_count = list.count;
}
