/*
 * Templates of node groups: see the header.
 */
#include "engine_templates.h"

#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "engine_effects.h"
#include "engine_targets.h"

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

void templates_fill(struct as_engine *engine, const char *cluster,
                    struct as_observe_request *request)
{
    request->template_count = collect(engine, cluster, NULL);
    struct as_group_template *templates =
        as_arena_alloc(&engine->arena, request->template_count, sizeof(*templates));
    collect(engine, cluster, templates);
    request->templates = templates;
}

static void take(struct as_engine *engine, struct target *target, const char *seen)
{
    if (!seen || strcmp(seen, target->template_ ? target->template_ : "") == 0)
        return;
    free(target->template_);
    target->template_ = *seen ? as_xstrdup(seen) : NULL;
    effect_put_target(engine, target);
    effect_commit(engine);
}

static struct target *find_group(struct as_engine *engine, const char *key)
{
    struct target *member;
    for (size_t i = 0; i < engine->ruleset->target_count; i++) {
        LIST_FOREACH (member, &engine->members[i], of_entry) {
            if (strcmp(member->ref->key, key) == 0)
                return member;
        }
    }
    return NULL;
}

void templates_take(struct as_engine *engine, struct target *target,
                    const struct as_observation *observation)
{
    if (observation->nodes)
        take(engine, target, observation->nodes->template_);
    for (size_t i = 0; i < observation->template_count; i++) {
        struct target *group = find_group(engine, observation->templates[i].group);
        if (group)
            take(engine, group, observation->templates[i].text);
    }
}
