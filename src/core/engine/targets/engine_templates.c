/*
 * Templates of node groups: see the header.
 */
#include "engine_templates.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "engine/state/engine_effects.h"
#include "engine/state/engine_targets.h"

/* Returns how many there are. `templates_out` may be NULL. */
static size_t collect(const struct as_engine *engine, const char *cluster,
                      struct as_group_template *templates_out)
{
    const struct target *member;
    size_t count = 0;
    for (size_t i = 0; i < engine->ruleset->target_count; i++) {
        const struct as_target_config *entry = &engine->ruleset->targets[i];
        if (!entry->kind->has_nodes || !as_str_equal(entry->nodes.cluster, cluster))
            continue;
        LIST_FOREACH (member, &engine->members[i], of_entry) {
            if (member->template_ && templates_out)
                templates_out[count] =
                    (struct as_group_template){member->ref->key, member->template_};
            count += member->template_ != NULL;
        }
    }
    return count;
}

void templates_fill(struct as_engine *engine, const struct target *target,
                    struct as_observe_request *request)
{
    const char *cluster = target_get_nodes(target)->cluster;
    if (!cluster)
        return;
    request->template_count = collect(engine, cluster, NULL);
    struct as_group_template *templates =
        as_arena_alloc(&engine->arena, request->template_count, sizeof(*templates));
    collect(engine, cluster, templates);
    request->templates = templates;
}

void templates_take(struct as_engine *engine, struct target *target,
                    const struct as_nodes_seen *nodes)
{
    const char *seen = nodes ? nodes->template_ : NULL;
    if (!seen || strcmp(seen, target->template_ ? target->template_ : "") == 0)
        return;
    free(target->template_);
    target->template_ = *seen ? as_xstrdup(seen) : NULL;
    effect_put_target(engine, target);
    effect_commit(engine);
}
