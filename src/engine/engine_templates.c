/*
 * Templates of node groups: what a new node would be like, as last seen on a node. They are stored,
 * so that a group without a node keeps its template over a restart. The engine does not read them.
 */
#include <stdlib.h>
#include <string.h>

#include <alertscaler/base/alloc.h>
#include <alertscaler/base/str.h>

#include "engine_concerns.h"
#include "engine_effects.h"
#include "engine_registry.h"

struct node_template {
    char *text; /* the last one, as in as_nodes_seen; NULL: none */
};

static struct node_template *get_template(const struct target *target)
{
    return target->parts[CONCERN_TEMPLATES];
}

static const char *template_get(const struct target *target)
{
    return get_template(target)->text;
}

/* Returns how many there are. `templates_out` may be NULL. */
static size_t node_template_collect(const struct as_engine *engine, const char *cluster,
                                    struct as_group_template *templates_out)
{
    const struct target *member;
    size_t count = 0;
    for (size_t i = 0; i < engine->ruleset->target_count; i++) {
        const struct as_target_config *entry = engine->ruleset->targets[i];
        if (!entry->kind->has_nodes || !as_str_equal(entry->nodes.cluster, cluster))
            continue;
        LIST_FOREACH (member, target_get_members(engine, engine->ruleset->targets[i]), of_entry) {
            const char *text = template_get(member);
            if (text && templates_out)
                templates_out[count] = (struct as_group_template){member->ref->key, text};
            count += text != NULL;
        }
    }
    return count;
}

/* The templates of all node groups of the cluster. */
void templates_fill(struct as_engine *engine, const char *cluster,
                    struct as_observe_request *request)
{
    request->template_count = node_template_collect(engine, cluster, NULL);
    struct as_group_template *templates =
        as_arena_alloc(&engine->arena, request->template_count, sizeof(*templates));
    node_template_collect(engine, cluster, templates);
    request->templates = templates;
}

static void node_template_take(struct as_engine *engine, struct target *target, const char *seen)
{
    struct node_template *last = get_template(target);
    if (!seen || strcmp(seen, last->text ? last->text : "") == 0)
        return;
    free(last->text);
    last->text = *seen ? as_xstrdup(seen) : NULL;
    effect_put_target(engine, target);
    effect_commit(engine);
}

static struct target *template_find_group(struct as_engine *engine, const char *key)
{
    struct target *member;
    for (size_t i = 0; i < engine->ruleset->target_count; i++) {
        LIST_FOREACH (member, target_get_members(engine, engine->ruleset->targets[i]), of_entry) {
            if (strcmp(member->ref->key, key) == 0)
                return member;
        }
    }
    return NULL;
}

/* Stores the templates that were seen, where they are other ones. */
static void templates_take(struct as_engine *engine, struct target *target,
                           const struct as_observation *observation)
{
    if (observation->nodes)
        node_template_take(engine, target, observation->nodes->template_);
    for (size_t i = 0; i < observation->template_count; i++) {
        struct target *group = template_find_group(engine, observation->templates[i].group);
        if (group)
            node_template_take(engine, group, observation->templates[i].text);
    }
}

static void template_deinit(struct target *target)
{
    free(get_template(target)->text);
}

static void template_store(struct as_engine *engine, const struct target *target,
                           struct as_target_state *state)
{
    state->template_ = as_arena_strdup(&engine->arena, template_get(target));
}

static void template_restore(struct as_engine *engine, struct target *target,
                             const struct as_target_state *state)
{
    (void)engine;
    if (state->template_)
        get_template(target)->text = as_xstrdup(state->template_);
}

const struct concern concern_templates = {
    .name = "templates",
    .on_observed = templates_take,
    .size = sizeof(struct node_template),
    .deinit = template_deinit,
    .store = template_store,
    .restore = template_restore,
};
